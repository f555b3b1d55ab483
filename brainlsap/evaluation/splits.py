"""Folds that never share a person: stratified, by site, given, or read from a file."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from brainlsap.data.covariates import group_names
from brainlsap.data.tables import read_table
from brainlsap.exceptions import FileFormatError, SplitError
from brainlsap.text import option_text

# Row indices of the training scans and of the test scans of one fold.
Split = tuple[np.ndarray, np.ndarray]

# Random divisions of the people, of which the most even is taken.
N_DRAWN_DIVISIONS = 1000
# Cost of a class that is absent from a fold, above any imbalance: it leaves scores
# undefined.
ABSENCE = 10.0


def make_splits(
    y: ArrayLike,
    groups: ArrayLike,
    n_folds: int = 5,
    random_state: int = 0,
    *,
    n_repeats: int = 1,
) -> tuple[Split, ...]:
    r"""Divide scans into stratified folds of whole people, once or several times.

    People are assigned one after another, those with most scans first. A person with
    :math:`v_c` scans of class c goes to the fold f with the smallest
    :math:`\sum_c v_c n_{fc} / n_c^2`, a greedy step on the squared deviations of all
    :math:`n_{fc} / n_c` from their mean. Where all people of a class have equally many
    visits, no class differs by more than one person between folds. Elsewhere a random
    cost is added, and the best of 1,000 divisions is taken: the one with the smallest
    largest difference between the class shares of a fold and those of all scans.

    Parameters
    ----------
    y, groups : sequences of length n_scans
        Label and participant of every scan.
    n_folds : int
        Folds of one repeat, at least 2 and at most the people of the rarest class.
    random_state : int
        Seed. The first repeat is the same whatever `n_repeats`.
    n_repeats : int
        How often folds are drawn anew; every scan is tested once in each repeat.

    Returns
    -------
    tuple of (train, test)
        Row indices; `n_folds * n_repeats` folds.

    Raises
    ------
    SplitError
        Where the people cannot be divided into such folds.
    """
    y, groups = np.asarray(y, dtype=object), np.asarray(groups, dtype=object)
    n_missing = int(pd.isna(groups).sum() + pd.isna(y).sum())
    if y.ndim != 1 or y.shape != groups.shape or n_missing:
        raise SplitError(
            "y and groups must name the label and the person of every scan, got "
            f"shapes {y.shape} and {groups.shape}, {n_missing} missing. Of a cohort "
            "they are cohort.y and cohort.groups."
        )
    visit_counts = pd.crosstab(groups.astype(str), y.astype(str))
    n_people = (visit_counts > 0).sum()
    if n_folds < 2 or n_repeats < 1 or len(n_people) < 2 or n_people.min() < n_folds:
        counts_text = ", ".join(
            f"{class_name} {n_class_people}"
            for class_name, n_class_people in n_people.items()
        )
        raise SplitError(
            "two folds, one repeat and two classes are needed at least, and as many "
            f"people of every class as folds; got {n_folds} folds, {n_repeats} repeats "
            f"and people by class: {counts_text or 'none'}. Correct labels, ask for "
            "fewer folds, merge classes (--merge-classes), or name the others by "
            f"{option_text('classes')}."
        )
    person_codes = visit_counts.index.get_indexer(groups.astype(str))
    splits: list[Split] = []
    for repeat_number in range(n_repeats):
        rng = np.random.default_rng([random_state, repeat_number])
        fold = _assign_folds(visit_counts.to_numpy(), n_folds, rng)[person_codes]
        splits += _splits_of_folds(fold, range(n_folds))
    return tuple(splits)


def _splits_of_folds(fold: np.ndarray, fold_names: Iterable) -> list[Split]:
    """Return the rows outside and inside each fold."""
    return [(np.flatnonzero(fold != n), np.flatnonzero(fold == n)) for n in fold_names]


def _assign_folds(
    visit_counts: np.ndarray, n_folds: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the fold of every person; `visit_counts` is (n_people, n_classes)."""
    class_totals = visit_counts.sum(axis=0)
    n_visits_of_person = visit_counts.sum(axis=1)
    # With one kind of person in each class, even spreading is exact.
    is_uniform = len(np.unique(visit_counts, axis=0)) == len(class_totals)
    n_draws = 1 if is_uniform else N_DRAWN_DIVISIONS
    by_class = (
        visit_counts.argmax(axis=1) if is_uniform else np.zeros_like(n_visits_of_person)
    )
    # The last column prefers the smallest of folds that are equal in all classes.
    class_shares = np.column_stack(
        [
            visit_counts / class_totals,
            1e-3 * n_visits_of_person / n_visits_of_person.sum(),
        ]
    )
    tie_noise = np.where(is_uniform, 1e-12, (class_shares**2).sum(axis=1))
    fold_load = np.zeros((n_draws, n_folds, class_shares.shape[1]))
    fold_of_person = np.empty((n_draws, len(visit_counts)), dtype=np.int16)
    for person_code in np.lexsort(
        (rng.random(len(n_visits_of_person)), by_class, -n_visits_of_person)
    ):
        fold_costs = fold_load @ class_shares[person_code] + tie_noise[
            person_code
        ] * rng.random((n_draws, n_folds))
        fold_of_person[:, person_code] = fold_costs.argmin(axis=1)
        fold_load[np.arange(n_draws), fold_of_person[:, person_code]] += class_shares[
            person_code
        ]
    scans = fold_load[..., :-1] * class_totals
    fold_class_shares = scans / np.maximum(scans.sum(axis=2, keepdims=True), 1)
    largest_deviations = np.abs(
        fold_class_shares - class_totals / class_totals.sum()
    ).max(axis=(1, 2))
    return fold_of_person[
        (largest_deviations + ABSENCE * (scans == 0).sum(axis=(1, 2))).argmin()
    ]


def check_splits(splits: Sequence[Split], groups: ArrayLike) -> tuple[Split, ...]:
    """Return folds as integer arrays; raise where one is empty or shares a person."""
    groups = np.asarray(groups, dtype=object).astype(str)
    index_splits = []
    for fold_number, (train_rows, test_rows) in enumerate(splits, start=1):
        train = np.asarray(train_rows, dtype=np.int64)
        test_index = np.asarray(test_rows, dtype=np.int64)
        if not (len(train) and len(test_index)):
            raise SplitError(f"fold {fold_number} has no training or no test scans.")
        if shared_people := sorted(set(groups[train]) & set(groups[test_index])):
            raise SplitError(
                f"fold {fold_number} has {len(shared_people)} people in training and "
                f"test scans ({', '.join(shared_people[:3])}); all visits of a person "
                "must be on one side. make_splits does that."
            )
        index_splits.append((train, test_index))
    if not index_splits:
        raise SplitError("splits has no fold; make_splits makes them.")
    return tuple(index_splits)


def count_repeats(splits: Sequence[Split]) -> int:
    """Return how often every scan is tested, or 1 where that differs between scans."""
    test_rows = np.concatenate([fold_test_rows for _, fold_test_rows in splits])
    _, n_tests = np.unique(test_rows, return_counts=True)
    is_constant = (n_tests == n_tests[0]).all() and len(splits) % n_tests[0] == 0
    return int(n_tests[0]) if is_constant else 1


def join_groups(*groupings: ArrayLike) -> np.ndarray:
    """Return groups that keep people, families and sites together at once.

    Parameters
    ----------
    *groupings : sequences of length n_scans
        Participant, and other groups that folds must not divide; missing values join
        nobody.

    Returns
    -------
    object array of str, shape (n_scans,)
        For `groups` of :func:`make_splits`.
    """
    group_columns = [
        pd.Series(np.asarray(group_column, dtype=object)) for group_column in groupings
    ]
    labels, previous_labels = pd.Series(range(len(group_columns[0]))), None
    while not labels.equals(previous_labels):
        previous_labels = labels
        for group_values in group_columns:
            labels = (
                labels.groupby(group_values).transform("min").fillna(labels).astype(int)
            )
    return pd.factorize(labels)[0].astype(str).astype(object)


def leave_one_out_splits(
    group_column: ArrayLike, groups: ArrayLike
) -> tuple[Split, ...]:
    """Test every site, scanner or phase in turn with a model fitted on the others.

    People with a scan at the site that is held out are not in the training scans.

    Parameters
    ----------
    group_column, groups : sequences of length n_scans
        Site and participant of every scan.

    Returns
    -------
    tuple of (train, test)
        In alphabetical order of the sites.

    Raises
    ------
    SplitError
        Where a site is missing, there is only one, or nobody is left to train on.
    """
    group_values = group_names(pd.Series(np.asarray(group_column, dtype=object)))
    groups = np.asarray(groups)
    fold_names = sorted(group_values.dropna().unique(), key=str)
    if group_values.isna().any() or len(fold_names) < 2:
        raise SplitError(
            "leaving one site out needs the site of every scan and at least two "
            f"sites, got {len(fold_names)} and {int(group_values.isna().sum())} scans "
            "without."
        )
    test_rows = [
        fold_test_rows
        for _, fold_test_rows in _splits_of_folds(group_values.to_numpy(), fold_names)
    ]
    train_rows = [
        np.flatnonzero(~np.isin(groups, groups[fold_rows])) for fold_rows in test_rows
    ]
    return check_splits([*zip(train_rows, test_rows, strict=True)], groups)


def read_splits(path: str | Path, scans: Sequence[str]) -> tuple[Split, ...]:
    """Read folds from a table that says in which fold every scan is tested.

    Parameters
    ----------
    path : str or Path
        A table with the columns scan and fold, and repeat where folds were drawn
        several times. The scans of all other folds of a repeat are the training scans.
        `private/predictions.tsv` of an earlier study is such a table.
    scans : sequence of str
        Every scan of the cohort, in its order.

    Returns
    -------
    tuple of (train, test)
        Folds in the order of the file.

    Raises
    ------
    FileFormatError
        Where the table lacks these columns.
    SplitError
        Where its scans are not those of the cohort.
    """
    splits_table = read_table(path)
    if not {"scan", "fold"} <= set(splits_table):
        raise FileFormatError(
            f"{path}: folds need the columns scan and fold (and repeat), got "
            f"{', '.join(splits_table)}."
        )
    splits_table["repeat"] = splits_table.get("repeat", "1")
    splits_table = splits_table.drop_duplicates(["repeat", "fold", "scan"])
    splits = []
    for repeat_number, repeat_rows in splits_table.groupby("repeat", sort=False):
        fold_of = repeat_rows.set_index("scan")["fold"]
        unmatched_scans = sorted(set(fold_of.index) ^ set(scans))
        if unmatched_scans or not fold_of.index.is_unique:
            raise SplitError(
                f"{path}: repeat {repeat_number} does not fit the cohort: "
                f"{len(unmatched_scans)} scans are in one of them only "
                f"({', '.join(unmatched_scans[:3])}), "
                f"{fold_of.index.duplicated().sum()} in two folds."
            )
        fold = fold_of.loc[list(scans)].to_numpy()
        splits += _splits_of_folds(fold, repeat_rows["fold"].unique())
    return tuple(splits)


def person_blocks(groups: ArrayLike) -> list[np.ndarray]:
    """Return the rows of people: of those with n rows as one array (n_people, n)."""
    _, person_index = np.unique(np.asarray(groups), return_inverse=True)
    person_order = np.argsort(person_index, kind="stable")
    n_rows = np.bincount(person_index)
    block_sizes = n_rows[person_index[person_order]]
    return [
        person_order[block_sizes == block_size].reshape(-1, block_size)
        for block_size in np.unique(block_sizes)
    ]


def permute_labels(
    labels: np.ndarray, groups: ArrayLike, rng: np.random.Generator
) -> np.ndarray:
    """Exchange labels between people with equally many scans, all scans together.

    Every permutation test of labels uses this exchange. The number of visits often goes
    with the diagnosis and with the data; labels that moved between people with unequal
    numbers would test that as well, and would change the sizes of classes. Somebody
    with a number of scans that nobody else has keeps the labels.

    Parameters
    ----------
    labels, groups : array-like of length n_scans
        The label and the person of each scan.
    rng : numpy.random.Generator
        Source of the permutation.

    Returns
    -------
    array of length n_scans
        A permuted copy of `labels`.
    """
    labels = np.asarray(labels)
    return labels[permute_rows(person_blocks(groups), rng)]


def permute_rows(
    row_blocks: Sequence[np.ndarray], rng: np.random.Generator
) -> np.ndarray:
    """Return an order of all rows in which the people of each block are exchanged.

    Each block (n_people, n_rows_of_person) is as of :func:`person_blocks`; together
    they hold every row once.
    """
    row_order = np.empty(
        sum(block_rows.size for block_rows in row_blocks), dtype=np.intp
    )
    for block_rows in row_blocks:
        row_order[block_rows] = rng.permutation(block_rows)
    return row_order
