"""Folds that keep every person whole, balanced by class."""

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd

from brainlsap.evaluation.dealing import deal_people
from brainlsap.exceptions import SplitError

# With more people the comparison with scikit-learn's folds takes long for nothing.
MOST_PEOPLE_COMPARED = 2000

Split = tuple[np.ndarray, np.ndarray]
"""Row indices of the training scans and of the test scans of one fold."""


def make_splits(
    y: Sequence | np.ndarray,
    groups: Sequence | np.ndarray,
    n_folds: int = 5,
    random_state: int = 0,
    *,
    balance: Sequence | np.ndarray | None = None,
) -> tuple[Split, ...]:
    """Divide scans into stratified folds that never share a person.

    Classes are balanced by scans, so a person counts with all visits. With one visit
    each, class counts of people and sizes of folds differ by at most 1 between folds;
    with several, classes are spread no worse than by scikit-learn's
    StratifiedGroupKFold of the same seed.

    Parameters
    ----------
    y : sequence of length n_scans
        Label of every scan. A person whose label changes between visits stays whole
        and counts in each class with the visits of that class.
    groups : sequence of length n_scans
        Participant of every scan.
    n_folds : int
        Number of folds, at least 2.
    random_state : int
        Seed; the same seed gives the same folds.
    balance : sequence of length n_scans, optional
        Site, scanner or phase of every scan, spread over the folds like the classes.
        Both cannot always be even at once; neither is then put first.

    Returns
    -------
    tuple of (train, test)
        One pair per fold of sorted row indices.

    Raises
    ------
    SplitError
        Where there is one class only, or a class has fewer people than folds.

    Examples
    --------
    >>> y = ["CN", "CN", "CN", "CN", "AD", "AD", "AD", "AD"]
    >>> people = ["a", "a", "b", "b", "c", "c", "d", "d"]
    >>> for train, test in make_splits(y, people, n_folds=2):
    ...     print(len(train), len(test), len(set(np.take(people, test))))
    4 4 2
    4 4 2
    """
    given = np.asarray(groups)
    y, groups = _checked(y, groups)
    classes, label = np.unique(y, return_inverse=True)
    _, person = np.unique(groups, return_inverse=True)
    visits = _count(person, label)
    _check_request(classes, visits, n_folds)
    if balance is not None:
        other, _ = _checked(balance, groups)
        _, place = np.unique(other, return_inverse=True)
        visits = np.column_stack([visits, _count(person, place)])

    fold = deal_people(visits, n_folds, np.random.default_rng(random_state))[person]
    if balance is None and len(visits) < len(y):
        # numbers in their own order, as scikit-learn has them
        if given.dtype.kind in "iu":
            _, person = np.unique(given, return_inverse=True)
        fold = _no_worse(fold, label, person, n_folds, random_state)
    return tuple(
        (np.flatnonzero(fold != one), np.flatnonzero(fold == one))
        for one in range(n_folds)
    )


def check_splits(
    splits: Sequence[Split], groups: Sequence | np.ndarray
) -> tuple[Split, ...]:
    """Raise unless no fold shares a person between training and test scans.

    Parameters
    ----------
    splits : sequence of (train, test)
        Row indices, as from :func:`make_splits`.
    groups : sequence of length n_scans
        Participant of every scan.

    Returns
    -------
    tuple of (train, test)
        The splits as integer arrays.

    Raises
    ------
    SplitError
        Where a fold is empty, has rows that the cohort has not, or shares a person.

    Examples
    --------
    >>> check_splits([([0, 1], [2])], ["a", "b", "a"])
    Traceback (most recent call last):
    brainlsap.exceptions.SplitError: fold 1 has 1 person in training and test ...
    """
    groups = np.asarray(groups, dtype=object)
    checked = []
    for number, split in enumerate(splits, start=1):
        train, test = (np.asarray(rows, dtype=np.int64) for rows in split)
        if not (len(train) and len(test)):
            raise SplitError(f"fold {number} has no training or no test scans.")
        rows = np.concatenate([train, test])
        if rows.min() < 0 or rows.max() >= len(groups):
            raise SplitError(
                f"fold {number} names row {rows.max()}, but the cohort has "
                f"{len(groups)} scans; were these splits made for another cohort?"
            )
        shared = sorted({str(person) for person in groups[train]} & set(groups[test]))
        if shared:
            noun = "person" if len(shared) == 1 else "people"
            raise SplitError(
                f"fold {number} has {len(shared)} {noun} in training and test scans "
                f"({', '.join(shared[:3])}{' ...' if len(shared) > 3 else ''}); all "
                "visits of a person must be on one side. make_splits does that."
            )
        checked.append((train, test))
    if not checked:
        raise SplitError("splits has no fold; make_splits makes them.")
    return tuple(checked)


def _no_worse(
    fold: np.ndarray,
    label: np.ndarray,
    person: np.ndarray,
    n_folds: int,
    random_state: int,
) -> np.ndarray:
    """Return scikit-learn's folds where, for once, their classes are spread better."""
    from sklearn.model_selection import StratifiedGroupKFold

    if person.max() >= MOST_PEOPLE_COMPARED:
        return fold  # so many are dealt evenly in any case
    dealer = StratifiedGroupKFold(n_folds, shuffle=True, random_state=random_state)
    other = np.empty_like(fold)
    with warnings.catch_warnings():
        # of classes with fewer scans than folds, which were refused before
        warnings.simplefilter("ignore", UserWarning)
        for number, (_, test) in enumerate(dealer.split(label, label, person)):
            other[test] = number
    ours, theirs = (_worst_share(one, label, n_folds) for one in (fold, other))
    return other if theirs < ours - 1e-12 else fold


def _worst_share(fold: np.ndarray, label: np.ndarray, n_folds: int) -> float:
    """Return how far a class's share of a fold is from that of all, at the worst."""
    counts = _count(fold, label).astype(float)
    if len(counts) < n_folds or (counts == 0).any():
        return float("inf")
    shares = counts / counts.sum(axis=1, keepdims=True)
    return float(np.abs(shares - counts.sum(axis=0) / counts.sum()).max())


def _count(person: np.ndarray, kind: np.ndarray) -> np.ndarray:
    """Return how many scans of every kind a person has (n_people, n_kinds)."""
    shape = person.max(initial=-1) + 1, kind.max(initial=-1) + 1
    counts = np.zeros(shape, dtype=np.int64)
    np.add.at(counts, (person, kind), 1)
    return counts


def _checked(
    y: Sequence | np.ndarray, groups: Sequence | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    y, groups = np.asarray(y, dtype=object), np.asarray(groups, dtype=object)
    if y.ndim != 1 or y.shape != groups.shape:
        raise SplitError(
            "y and groups must name the label and the person of every scan, got "
            f"shapes {y.shape} and {groups.shape}."
        )
    unnamed = int(pd.isna(groups).sum() + pd.isna(y).sum())
    if unnamed:
        raise SplitError(
            f"{unnamed} scans have no label or no participant; drop or name them."
        )
    return y.astype(str), groups.astype(str)


def _check_request(classes: np.ndarray, visits: np.ndarray, n_folds: int) -> None:
    if n_folds < 2:
        raise SplitError(f"n_folds must be at least 2, got {n_folds}.")
    if len(classes) < 2:
        found = f"only {str(classes[0])!r}" if len(classes) else "none"
        raise SplitError(
            f"at least two classes are needed, got {found}. Predict another label, or "
            "add scans of another class."
        )
    people = (visits > 0).sum(axis=0)
    if people.min() < n_folds:
        few = ", ".join(
            f"{str(name)!r} has {count} {'person' if count == 1 else 'people'}"
            for name, count in zip(classes, people, strict=True)
            if count < n_folds
        )
        most = people.min()
        advice = f"Ask for at most {most} folds, merge" if most > 1 else "Merge"
        raise SplitError(
            f"every class needs at least as many people as folds ({n_folds}), but "
            f"{few}. {advice} classes or leave the class out."
        )
