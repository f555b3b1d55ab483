"""Folds of whole people on random cohorts, against StratifiedGroupKFold.

Cohorts of 2 to 5 classes, 2 to 7 folds and up to about 150 people, 500 of each kind:
everybody has one visit; up to five; and the label of some people changes between
them. Counted: folds that share a person; cohorts in which class
counts of people differ by more than 1 between folds (one visit each); and cohorts in
which the worst deviation of a class's share of a fold from its share of all scans is
larger than scikit-learn's.

    python benchmarks/splits_study.py
"""

import argparse

import numpy as np
from measuring import keep
from sklearn.model_selection import StratifiedGroupKFold

from brainlsap.evaluation import make_splits

KINDS = {"one visit": (1, False), "visits": (5, False), "changing labels": (5, True)}


def draw(seed: int, most_visits: int, changing: bool) -> tuple:
    rng = np.random.default_rng(seed)
    n_classes, n_folds = int(rng.integers(2, 6)), int(rng.integers(2, 8))
    others = rng.choice(n_classes, rng.integers(5, 120))
    label = np.concatenate([np.repeat(np.arange(n_classes), n_folds), others])
    visits = rng.integers(1, most_visits + 1, len(label))
    groups, y = np.repeat(np.arange(len(label)), visits), np.repeat(label, visits)
    if changing:
        last = np.flatnonzero(np.diff(groups, append=-1))
        later = last[visits > 1][::3]
        y[later] = (y[later] + 1) % n_classes
    return y, groups, n_folds


def deviation(y: np.ndarray, splits: list) -> float:
    """Return the largest difference of a class's share of a fold from that of all."""
    codes = np.unique(y)
    overall = np.array([(y == one).mean() for one in codes])
    shares = [[(y[test] == one).mean() for one in codes] for _, test in splits]
    return float(np.abs(np.array(shares) - overall).max())


def spread(y: np.ndarray, groups: np.ndarray, splits: list) -> int:
    """Return the most by which people of one class differ between two folds."""
    counts = [
        [len(set(groups[test][y[test] == one])) for one in np.unique(y)]
        for _, test in splits
    ]
    return int(np.ptp(counts, axis=0).max())


def study(options: argparse.Namespace) -> list[str]:
    lines = ["| cohorts | number | share a person | counts differ by more than 1 |"]
    lines[0] += " worse than scikit-learn | mean worst deviation: ours | theirs |"
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    number = options.cohorts
    for kind in options.kinds:
        most_visits, changing = KINDS[kind]
        shared = uneven = worse = 0
        found = []
        for seed in range(options.first, options.first + number):
            y, groups, n_folds = draw(seed, most_visits, changing)
            splits = make_splits(y, groups, n_folds, random_state=seed)
            theirs = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
            both = [deviation(y, splits), deviation(y, theirs.split(y, y, groups))]
            found.append(both)
            shared += any(set(groups[a]) & set(groups[b]) for a, b in splits)
            uneven += spread(y, groups, splits) > 1
            worse += both[0] > both[1] + 1e-12
        ours, other = np.mean(found, axis=0)
        even = uneven if most_visits == 1 else "not asked"
        lines.append(
            f"| {kind} | {number} | {shared} | {even} | {worse} | {ours:.4f} | "
            f"{other:.4f} |"
        )
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cohorts", type=int, default=500, help="of each kind")
    parser.add_argument("--first", type=int, default=0, help="seed")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    options = parser.parse_args()
    keep("splits", "Folds", "\n".join(study(options)))


if __name__ == "__main__":
    main()
