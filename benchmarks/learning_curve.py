"""How often a learning curve says that more people would help, and its interval.

    python benchmarks/learning_curve.py [--cohorts 100]

Cohorts of two classes have few regions without a connectome, and LSAP-R learns from
half and all of the training people. The true gain by a doubling is the mean of the
estimated ones over all cohorts of a kind.
"""

import argparse
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from measuring import keep, table

from brainlsap.data import Cohort
from brainlsap.evaluation import learning_curve, make_models, make_splits
from brainlsap.evaluation.learning_curve import N_SUBSETS, NO, UNCLEAR, YES

MODEL = "LSAP-R"
SHARES = (0.5, 1.0)
COHORTS = {
    # name: (people, regions, differing regions, difference in s.d.)
    "permuted labels": (100, 20, 0, 0.0),
    "past saturation": (200, 2, 2, 1.5),
    "still rising": (100, 60, 20, 0.4),
}


def make_cohort(
    seed: int, n_people: int, n_rois: int, n_differing: int, effect: float
) -> Cohort:
    """Make people of two classes that differ in some regions."""
    rng = np.random.default_rng([seed, n_people, n_rois])
    is_ill = rng.permutation(n_people) % 2 == 1
    features = rng.normal(size=(n_people, n_rois))
    features[:, :n_differing] -= effect * is_ill[:, None]
    return Cohort.from_arrays(
        np.zeros((n_rois, n_rois)),
        features,
        np.where(is_ill, "AD", "CN"),
        atlas=[f"region {k}" for k in range(n_rois)],
        classes=("CN", "AD"),
    )


def measure_cohort(name: str, seed: int) -> dict[str, float | str]:
    """Return the scores, the gain by a doubling with its interval, and the answer."""
    cohort = make_cohort(seed, *COHORTS[name])
    curve = learning_curve(
        cohort,
        make_models(MODEL),
        make_splits(cohort.y, cohort.groups, 5, random_state=seed),
        shares=SHARES,
        random_state=seed,
        n_draws=300,
        n_jobs=1,
    )
    first_row, last_row = curve.iloc[0], curve.iloc[-1]
    return {
        "half": first_row["estimate"],
        "all": last_row["estimate"],
        **last_row[["slope", "slope_low", "slope_high", "answer"]],
    }


def summarize_cohorts(
    name: str, measures: Sequence[Mapping[str, float | str]]
) -> tuple[object, ...]:
    """Return one row of the table."""
    frame = pd.DataFrame(measures)
    true_gain = frame["slope"].mean()
    is_held = frame["slope_low"].le(true_gain) & frame["slope_high"].ge(true_gain)
    counts = [int((frame["answer"] == answer).sum()) for answer in (YES, NO, UNCLEAR)]
    return (
        name,
        len(frame),
        f"{frame['half'].mean():.3f}",
        f"{frame['all'].mean():.3f}",
        f"{true_gain:+.4f}",
        int(is_held.sum()),
        f"{(frame['slope_high'] - frame['slope_low']).mean():.3f}",
        *counts,
    )


def keep_table(rows: Sequence[Sequence[object]]) -> None:
    """Write the table."""
    head = (
        "cohort",
        "cohorts",
        "score at 50 %",
        "at 100 %",
        "gain by a doubling",
        "interval holds it",
        "mean width",
        *(YES, NO, UNCLEAR),
    )
    kinds = "; ".join(
        f"{name}: {n_people} people, {n_rois} regions, of which {n_differing} differ "
        f"by {effect} s.d."
        for name, (n_people, n_rois, n_differing, effect) in COHORTS.items()
    )
    text = (
        f"{MODEL}, 5 folds, {N_SUBSETS} random subsets of each share, 95 % intervals. "
        f"{kinds}\n\n{table(head, rows)}"
    )
    keep("learning_curve", "Would more people help", text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cohorts", type=int, default=100)
    options = parser.parse_args()
    rows: list[tuple[object, ...]] = []
    for name in COHORTS:
        measures = [measure_cohort(name, seed) for seed in range(options.cohorts)]
        rows.append(summarize_cohorts(name, measures))
        print(rows[-1], flush=True)
    keep_table(rows)


if __name__ == "__main__":
    main()
