"""How often the largest gap between groups of people excludes 0.

    python benchmarks/subgroups.py [--cohorts 20] [--sets 200]

Cohorts have 30 regions without a connectome; a ridge is cross-validated. In some, the
class shows in the brains of men only. Sets are predictions that are drawn without any
model, so that many can be counted.
"""

import argparse
from collections.abc import Sequence

import numpy as np
import pandas as pd
from measuring import keep, table

from brainlsap.data import Cohort
from brainlsap.evaluation import (
    Evaluation,
    cross_validate,
    make_models,
    subgroup_gap_table,
)
from brainlsap.evaluation.results import CohortSummary

N_ROIS = 30
MODEL = "ridge without connectome"
COHORTS = (
    # people, difference of five regions in s.d.
    (120, 1.0),
    (120, 2.0),
    (240, 1.0),
)
DRAWN_SETS = (
    # people, classes, sites, share of correct predictions
    (60, 2, 2, 0.7),
    (120, 2, 4, 0.7),
    (120, 5, 4, 0.5),
    (300, 2, 10, 0.9),
)


def draw_people(n_people: int, n_sites: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw sex, age and site of people."""
    return pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], n_people),
            "age": rng.normal(70, 7, n_people).round(1),
            "site": rng.choice([f"site{k}" for k in range(n_sites)], n_people),
        }
    )


def make_cohort(
    seed: int, n_people: int, effect: float, shows_in: Sequence[str]
) -> Cohort:
    """Make people of two classes that differ in five regions in these sexes."""
    rng = np.random.default_rng(seed)
    covariates = draw_people(n_people, 4, rng)
    is_ill = rng.random(n_people) < 0.5
    features = rng.normal(size=(n_people, N_ROIS))
    is_shown = is_ill & covariates["sex"].isin(shows_in).to_numpy()
    features[:, :5] -= effect * is_shown[:, None]
    return Cohort.from_arrays(
        np.zeros((N_ROIS, N_ROIS)),
        features,
        np.where(is_ill, "AD", "CN"),
        covariates=covariates,
        atlas=[f"region {k}" for k in range(N_ROIS)],
        classes=("CN", "AD"),
    )


def draw_evaluation(
    example: Evaluation,
    seed: int,
    n_people: int,
    n_classes: int,
    n_sites: int,
    hit: float,
) -> Evaluation:
    """Draw predictions with two scans of every person, equally good in all groups."""
    rng = np.random.default_rng(seed)
    classes = tuple("ABCDE"[:n_classes])
    people = draw_people(n_people, n_sites, rng)
    people.insert(0, "participant", [f"p{k}" for k in range(n_people)])
    codes = rng.integers(n_classes, size=n_people)
    people.insert(1, "label", np.array(classes)[codes])
    # The two scans of a person agree more often than by chance.
    propensity = rng.normal(size=n_people)[:, None] + rng.normal(size=(n_people, 2))
    is_hit = propensity < np.quantile(propensity, hit)
    errors = rng.integers(1, n_classes, size=(n_people, 2))
    predicted = np.where(is_hit, codes[:, None], (codes[:, None] + errors) % n_classes)
    scans = people.loc[people.index.repeat(2)].reset_index(drop=True)
    scans.insert(0, "scan", [f"s{k}" for k in range(2 * n_people)])
    predictions = pd.DataFrame(
        {
            "model": MODEL,
            "participant": scans["participant"],
            "truth": scans["label"],
            "predicted": np.array(classes)[predicted.ravel()],
        }
    )
    fields = vars(example.cohort) | {"table": scans, "classes": classes}
    return Evaluation(
        predictions, example.scales, example.fits, CohortSummary(**fields), {}
    )


def excludes_zero(evaluation: Evaluation) -> tuple[bool, bool]:
    """Return whether the gap of the sexes, and any gap, excludes 0."""
    gaps = subgroup_gap_table(evaluation)
    is_shown = (gaps["low"] > 0) | (gaps["high"] < 0)
    return bool(is_shown[gaps["column"] == "sex"].any()), bool(is_shown.any())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cohorts", type=int, default=20)
    parser.add_argument("--sets", type=int, default=200)
    options = parser.parse_args()
    head = (
        "people",
        "effect",
        "signal in",
        "cohorts",
        "gap of sexes shown",
        "any gap shown",
    )
    rows: list[tuple] = []
    for n_people, effect in COHORTS:
        for shows_in in (("M",), ("F", "M")):
            shown = []
            for seed in range(options.cohorts):
                cohort = make_cohort(seed, n_people, effect, shows_in)
                models = make_models(MODEL)
                example = cross_validate(models, cohort, 5, baselines=False, n_jobs=1)
                shown.append(excludes_zero(example))
            n_sex, n_any = np.sum(shown, axis=0)
            name = "men only" if shows_in == ("M",) else "men and women"
            rows.append((n_people, effect, name, options.cohorts, n_sex, n_any))
            print(rows[-1], flush=True)
    text = table(head, rows)
    head = ("people", "classes", "sites", "correct", "sets", *head[-2:])
    rows = []
    for n_people, n_classes, n_sites, hit in DRAWN_SETS:
        shown = [
            excludes_zero(
                draw_evaluation(example, seed, n_people, n_classes, n_sites, hit)
            )
            for seed in range(options.sets)
        ]
        n_sex, n_any = np.sum(shown, axis=0)
        rows.append((n_people, n_classes, n_sites, hit, options.sets, n_sex, n_any))
        print(rows[-1], flush=True)
    text = (
        f"Simulated cohorts, 5 folds, {MODEL}; groups by sex, thirds of age, and four "
        f"sites:\n\n{text}\n\nDrawn predictions, equally good in all groups:\n\n"
        f"{table(head, rows)}"
    )
    keep("subgroups", "Largest gap between groups", text)


if __name__ == "__main__":
    main()
