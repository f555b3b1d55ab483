"""Whether a statistic that is centred in every fit singles out planted regions.

Cohorts of 120 people, 40 regions and one drawn network, as in ranking_null.py: without
any effect, and with four regions that differ between the classes by 1 to 2.5 standard
deviations. 49 refits to permuted labels each, at the settings of the recall study.
Counted are regions at p < 0.05 by the maximum statistic as it is (p_family), and by
the one of scales against the median and spread of their fit (p_centred).

    python benchmarks/ranking_centred.py --cohorts 30 --keep FOLDER

The folder holds the refits of finished cohorts; started again, the program goes on.
"""

import argparse
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from ranking_null import BRIEF, N_ROIS, append, draw_cohort

from brainlsap.data import Cohort
from brainlsap.evaluation import null_p_values
from brainlsap.model import LSAPClassifier
from brainlsap.study import permuted_scales

N_PLANTED, N_REFITS = 4, 49
EFFECTS = (1.0, 1.5, 2.5)
STATISTICS = {"p_family": "as it is", "p_centred": "centred"}


def plant(cohort: Cohort, seed: int, effect: float) -> tuple[Cohort, np.ndarray]:
    """Return the cohort with four regions lower in AD by so many s.d., and which."""
    planted = np.zeros(N_ROIS, dtype=bool)
    rng = np.random.default_rng([seed, 13])
    planted[rng.permutation(N_ROIS)[:N_PLANTED]] = True
    features = np.array(cohort.features)
    features[np.ix_(cohort.y == "AD", planted)] -= effect
    return replace(cohort, features=features), planted


def refit(seed: int, effect: float, keep: Path) -> dict[str, np.ndarray]:
    """Return scales of one cohort's fits and what was planted; made once."""
    path = keep / f"effect_{effect:g}_seed_{seed}.npz"
    if not path.is_file():
        cohort, planted = draw_cohort(seed), np.zeros(N_ROIS, dtype=bool)
        if effect:
            cohort, planted = plant(cohort, seed, effect)
        found = permuted_scales(LSAPClassifier(**BRIEF), cohort, N_REFITS, seed)
        partial = path.with_suffix(".partial.npz")
        np.savez(partial, observed=found[0], null=found[1], planted=planted)
        partial.rename(path)
        print(path.name, flush=True)
    with np.load(path) as stored:
        return dict(stored)


def count(refits: list[dict[str, np.ndarray]]) -> list[str]:
    """Return, of both statistics: cohorts with any region, planted ones, others."""
    cells = []
    for name in STATISTICS:
        small = [
            null_p_values(one["observed"], one["null"])[name].to_numpy() < 0.05
            for one in refits
        ]
        told = [one["planted"] for one in refits]
        planted = sum((p & one).sum() for p, one in zip(small, told, strict=True))
        others = sum((p & ~one).sum() for p, one in zip(small, told, strict=True))
        cells.append(f"{sum(p.any() for p in small)} / {planted} / {others}")
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cohorts", type=int, default=30)
    parser.add_argument("--planted", type=int, default=10, help="cohorts an effect")
    parser.add_argument("--keep", type=Path, required=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    options.keep.mkdir(parents=True, exist_ok=True)
    lines = [
        f"## The maximum statistic as it is, and centred: {N_REFITS} refits\n",
        "Cohorts with any region at p < 0.05 / planted regions / other regions.\n",
        f"| effect (s.d.) | cohorts | planted | {' | '.join(STATISTICS.values())} |",
        "| --- | --- | --- | --- | --- |",
    ]
    for effect in (0.0, *EFFECTS):
        n = options.planted if effect else options.cohorts
        refits = [refit(seed, effect, options.keep) for seed in range(n)]
        planted = sum(int(one["planted"].sum()) for one in refits)
        cells = " | ".join(count(refits))
        lines.append(f"| {effect:g} | {n} | {planted} | {cells} |")
        print(lines[-1], flush=True)
    append(lines)


if __name__ == "__main__":
    main()
