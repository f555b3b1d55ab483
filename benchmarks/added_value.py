"""What the brain adds to covariates, where age tells all and where both tell.

    python benchmarks/added_value.py [--cohorts 20]

Cohorts have 30 regions without a connectome. All regions shrink with age, and the ill
are older. Where both tell, the illness lowers five regions, too. In a third kind of
cohort, age tells all, but the middle one of three classes is the youngest: a model of
covariates that is linear in age, or in the number of the class, would miss it.
"""

import argparse

import numpy as np
import pandas as pd
from measuring import keep, table

from brainlsap.data import Cohort
from brainlsap.evaluation import added_value_table, cross_validate, make_models
from brainlsap.evaluation.models import ADDED_VALUE_MODELS

N_ROIS = 30
# Difference in age of the classes, effect of ten years and of illness on a region.
YEARS, AGING = 10.0, 0.5


def make_cohort(seed: int, n_people: int, effect: float) -> Cohort:
    """Make people of two classes that differ in age, and in five regions."""
    rng = np.random.default_rng(seed)
    is_ill = rng.random(n_people) < 0.5
    age = rng.normal(70, 7, n_people) + YEARS * is_ill
    features = rng.normal(size=(n_people, N_ROIS)) - AGING * (age[:, None] - 70) / 10
    features[:, :5] -= effect * is_ill[:, None]
    sex = rng.choice(["F", "M"], n_people)
    return Cohort.from_arrays(
        np.zeros((N_ROIS, N_ROIS)),
        features,
        np.where(is_ill, "AD", "CN"),
        covariates=pd.DataFrame({"age": age.round(1), "sex": sex}),
        atlas=[f"region {k}" for k in range(N_ROIS)],
        classes=("CN", "AD"),
    )


def make_cohort_of_young_middle_class(
    seed: int, n_people: int, effect: float = 0.0
) -> Cohort:
    """Make people of three classes, of which the middle one is the youngest."""
    rng = np.random.default_rng(seed)
    stages = rng.integers(0, 3, n_people)
    age = rng.normal(70, 7, n_people) - YEARS * (stages == 1)
    features = rng.normal(size=(n_people, N_ROIS)) - AGING * (age[:, None] - 70) / 10
    features[:, :5] -= effect * stages[:, None]
    sex = rng.choice(["F", "M"], n_people)
    classes = ("CN", "MCI", "AD")
    return Cohort.from_arrays(
        np.zeros((N_ROIS, N_ROIS)),
        features,
        np.array(classes)[stages],
        covariates=pd.DataFrame({"age": age.round(1), "sex": sex}),
        atlas=[f"region {k}" for k in range(N_ROIS)],
        classes=classes,
    )


COHORTS = {
    "age only": (make_cohort, 0.0),
    "age and brain": (make_cohort, 1.0),
    "age only, youngest in the middle": (make_cohort_of_young_middle_class, 0.0),
    "age, youngest in the middle, and brain": (make_cohort_of_young_middle_class, 0.5),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cohorts", type=int, default=20)
    n_cohorts = parser.parse_args().cohorts
    rows = []
    for n_people in (120, 240):
        for name, (make, effect) in COHORTS.items():
            scores, shown = [], []
            for seed in range(n_cohorts):
                cohort = make(seed, n_people, effect)
                models = make_models(ADDED_VALUE_MODELS)
                evaluation = cross_validate(
                    models, cohort, 5, baselines=False, n_jobs=1
                )
                summary = evaluation.summary().set_index(["score", "model"])["mean"]
                names = list(ADDED_VALUE_MODELS)
                scores.append(summary["balanced_accuracy"].loc[names])
                gains = added_value_table(evaluation)
                shown.append((gains["low"] > 0).to_numpy())
                worse = (gains["high"] < 0).to_numpy()
                shown[-1] = np.append(shown[-1], worse[0])
            n_brain, n_covariates, n_worse = np.sum(shown, axis=0)
            means = [f"{score:.2f}" for score in np.mean(scores, axis=0)]
            rows.append(
                (n_people, name, n_cohorts, *means, n_brain, n_worse, n_covariates)
            )
            print(rows[-1], flush=True)
    head = (
        *("people", "class shows in", "cohorts", "covariates", "brain", "both"),
        *("brain adds", "brain harms", "covariates add"),
    )
    text = (
        "Mean balanced accuracy over 5 folds, and number of cohorts in which the 95% "
        f"interval of the difference excludes 0:\n\n{table(head, rows)}"
    )
    keep("added_value", "What the brain adds to age and sex", text)


if __name__ == "__main__":
    main()
