"""Coverage of 90 % prediction sets, by class, for people whom the model has not seen.

    python benchmarks/set_coverage.py [--cohorts 40]

Every cohort is simulated with its own seed. Half of the people train LSAP-R, with all
their visits; the sets of the other half are counted by class, every person once.
"""

import argparse
from collections.abc import Sequence

import numpy as np
from measuring import keep, table

from brainlsap.evaluation import make_models
from brainlsap.evaluation.cross_validation import configure_model_for_cohort
from brainlsap.model.prediction_sets import fit_prediction_sets, predict_set_membership
from brainlsap.simulation import make_cohort

N_PEOPLE = 600
VISITS = (0.7, 0.3)
EFFECTS = (0.1, 0.2, 0.27)


def measure_cohort(
    seed: int, effect: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return coverage, mean size of a set, and training people, by class."""
    cohort = make_cohort(
        N_PEOPLE,
        atlas="desikan82",
        visit_shares=VISITS,
        effect=effect,
        random_state=seed,
    )
    people = np.unique(cohort.groups)
    rng = np.random.default_rng(seed)
    train_people = rng.choice(people, len(people) // 2, replace=False)
    is_train = np.isin(cohort.groups, train_people)
    train, test = cohort.select(is_train), cohort.select(~is_train)
    ((model, _),) = make_models("LSAP-R").values()
    configure_model_for_cohort(model, train).fit(
        train.to_array(), train.y, train.groups
    )
    sets = fit_prediction_sets(model, train.y, train.groups)
    is_in_set = predict_set_membership(
        model, sets, model.decision_scores(test.to_array())
    )
    codes = np.array([cohort.classes.index(name) for name in test.y])
    holds_truth = is_in_set[np.arange(len(codes)), codes]
    _, person, n_visits = np.unique(
        test.groups, return_inverse=True, return_counts=True
    )
    weights = (1 / n_visits[person])[:, None] * (codes[:, None] == np.unique(codes))
    coverage = holds_truth @ weights / weights.sum(axis=0)
    sizes = is_in_set.sum(axis=1) @ weights / weights.sum(axis=0)
    return coverage, sizes, np.array(sets["n_people"])


def coverage_table(effects: Sequence[float], n_cohorts: int) -> str:
    """Measure cohorts whose effects take turns; return a row for every class."""
    results = []
    for seed in range(n_cohorts):
        results.append(measure_cohort(seed, effects[seed % len(effects)]))
        print(effects, seed, results[-1][0].round(3), results[-1][2], flush=True)
    coverage, sizes, n_people = (
        np.array(values) for values in zip(*results, strict=True)
    )
    names = make_cohort(10, atlas="desikan82").classes
    standard_errors = coverage.std(axis=0, ddof=1) / np.sqrt(n_cohorts)
    rows = [
        (
            name,
            f"{n_people[:, code].min()} to {n_people[:, code].max()}",
            f"{coverage[:, code].mean():.1%}",
            f"{standard_errors[code]:.1%}",
            f"{sizes[:, code].mean():.2f}",
        )
        for code, name in enumerate(names)
    ]
    head = ("class", "training people", "coverage", "standard error", "classes in set")
    return table(head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cohorts", type=int, default=40)
    options = parser.parse_args()
    n_null = options.cohorts // 4
    text = (
        f"{options.cohorts} cohorts of {N_PEOPLE} people with up to two visits, "
        f"effects of disease {', '.join(map(str, EFFECTS))} in turn:\n\n"
        f"{coverage_table(EFFECTS, options.cohorts)}\n\n"
        f"{n_null} cohorts without any effect of disease:\n\n"
        f"{coverage_table((0.0,), n_null)}"
    )
    keep("set_coverage", "Coverage of 90 % prediction sets, by class", text)


if __name__ == "__main__":
    main()
