"""How well the smallest scales find the seeds of simulated cohorts, seeds 0 to 4.

The demo's cohort (120 people, FDG), its folds and its first model, for five seeds of
the simulator that were fixed in advance.

    python benchmarks/recovery.py [--jobs 2]
"""

import argparse

import numpy as np

from brainlsap.evaluation import (
    cross_validate,
    make_models,
    rank_regions,
    ranking_auc,
)
from brainlsap.simulation import make_cohort

SEEDS = range(5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    print("| simulator seed | balanced accuracy | AUC of the measured seed regions |")
    print("| --- | --- | --- |")
    found = []
    for seed in SEEDS:
        cohort = make_cohort(120, feature="fdg", random_state=seed)
        models = make_models("LSAP-C", random_state=seed)
        evaluation = cross_validate(
            models,
            cohort,
            5,
            random_state=seed,
            baselines=False,
            n_jobs=options.jobs,
        )
        found.append(ranking_auc(rank_regions(evaluation)))
        score = evaluation.scores()["balanced_accuracy"].mean()
        print(f"| {seed} | {score:.3f} | {found[-1]:.3f} |", flush=True)
    print(f"\nmean {np.mean(found):.3f}, lowest {min(found):.3f}")


if __name__ == "__main__":
    main()
