"""Folds that never share a person, permutations of labels, and the people in ids.

Folds are stratified, by site, given, or read from a file.

Whether ids belong to participants or to their sessions is told by their structure. An
id is split into words and numbers. Some part may vary within groups of ids that agree
in the rest, for example the last one of `OAS30001_MR_d0129` and `OAS30001_MR_d0929`.
Either the rest is a person and the part a visit, or the rest is a site and the part a
person. Names of visits and dates are never people. Any other part counts as a visit if
a few of its values come again and again, or if labels agree within the groups.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from brainlsap.data.covariates import to_group_text_series
from brainlsap.data.tables import read_table
from brainlsap.exceptions import FileFormatError, SplitError
from brainlsap.text import count_text, join_with_and, option_text

# Row indices of the training scans and of the test scans of one fold.
Split = tuple[np.ndarray, np.ndarray]

# Random divisions of the people, of which the most even is taken.
N_DRAWN_DIVISIONS = 1000
# Fewer divisions are drawn where they would assign people more often than this.
_MAX_DRAWN_PEOPLE = 2_000_000
# Cost of a class that is absent from a fold, above any imbalance: it leaves scores
# undefined.
ABSENCE_COST = 10.0

# A part of an id: first ids of participants that have several parts, then words and
# numbers.
_ID_PART = re.compile(
    r"\d{3}_S_\d{4,5}|(?<=ADNI)\d{3}S\d{4,5}|NDAR_?INV[A-Z0-9]{8}|[^\W\d_]+|\d+"
)
_UNITS = (
    r"(?:v|vis|visits?|ses|sess|sessions?|m|mo|mon|months?|y|yr|years?|w|wk|weeks?|d|"
    r"days?|t|tp|time|timepoint|wave|runs?|scans?|mr|mri|fu|followup|exam|retest)"
)
# A word for a visit: V1, 12m, baseline, 20190131.
_VISIT_WORD = re.compile(
    rf"{_UNITS}\d{{1,4}}|\d{{1,3}}{_UNITS}|bl|bsl|baseline|base|fu|followup|pre|post|"
    r"test|retest|sc|screening|init|initial|(?:19|20)\d{6}"
)
_DATE_PART = re.compile(r"(?:19|20)\d\d[-_.]?[01]\d[-_.]?[0-3]\d|d(?:ay)?-?_?\d{1,5}")
# A word that may accompany a word for a visit.
_ACCOMPANYING_WORD = re.compile(rf"{_UNITS}|\d{{1,3}}|mr|mri|pet|ct|fdg|t1|t1w")

# Groups with more than one sex, as a share of all groups: more are no mistakes.
_MAX_SHARE_OF_MIXED_SEX = 0.1
# Share of all ids that must be in groups if no word says that parts are visits.
_MIN_SHARE_OF_IDS = 0.1
# Groups that suffice, if all agree, where parts recur.
_MIN_PEOPLE = 4
# Median number of scans of a person where parts do not recur.
_MAX_SCANS_PER_PERSON = 6
# The permutation test: its size, and its level where parts recur in many groups, and
# where they do not.
_N_PERMUTATIONS = 999
_ALPHA_RECURRING = 0.05
_ALPHA_UNIQUE = 0.005

# How surely the parts cut out of ids are visits.
_NO_VISITS = 0
_BY_AGREEMENT = 1
_BY_NAME = 2

# The number of parts before a part, and after it.
_Position = tuple[int, int]


def make_splits(
    y: ArrayLike,
    groups: ArrayLike,
    n_folds: int = 5,
    random_state: int = 0,
    *,
    n_repeats: int = 1,
) -> tuple[Split, ...]:
    r"""Divide people, each with all scans, into stratified folds, once or repeatedly.

    People are assigned one after another, those with most scans first. A person with
    :math:`v_c` scans of class c goes to the fold f with the smallest
    :math:`\sum_c v_c n_{fc} / n_c^2`, a greedy step on the squared deviations of all
    :math:`n_{fc} / n_c` from their mean. If all people of a class have the same number
    of visits, no class differs by more than one person between folds. Otherwise a
    random cost is added, and the best of 1,000 divisions (fewer above 2,000 people) is
    used: the division that minimises the largest difference between the class shares of
    a fold and those of all scans.

    Parameters
    ----------
    y, groups : sequences of length n_scans
        Label and participant of every scan.
    n_folds : int
        Folds of one repeat, at least 2 and at most the people of the rarest class.
    random_state : int
        Seed. The first repeat is the same whatever `n_repeats`.
    n_repeats : int
        Number of repeats with new folds; every scan is tested once in each repeat.

    Returns
    -------
    tuple of (train, test)
        Row indices; `n_folds * n_repeats` folds.

    Raises
    ------
    SplitError
        If the people cannot be divided into such folds.
    """
    y, groups = np.asarray(y, dtype=object), np.asarray(groups, dtype=object)
    n_missing_entries = int(pd.isna(groups).sum() + pd.isna(y).sum())
    if y.ndim != 1 or y.shape != groups.shape or n_missing_entries:
        raise SplitError(
            "y and groups must contain the label and the participant ID of every "
            f"scan; got shapes {y.shape} and {groups.shape}, with {n_missing_entries} "
            "missing entries. For a cohort, pass cohort.y and cohort.groups."
        )
    _, person_codes = np.unique(groups.astype(str), return_inverse=True)
    class_names, class_codes = np.unique(y.astype(str), return_inverse=True)
    person_class_visit_counts = np.zeros(
        (person_codes.max(initial=-1) + 1, len(class_names)), dtype=int
    )
    np.add.at(person_class_visit_counts, (person_codes, class_codes), 1)
    class_people_counts = (person_class_visit_counts > 0).sum(axis=0)
    class_counts_text = ", ".join(
        f"{class_name} {n_people}"
        for class_name, n_people in zip(class_names, class_people_counts, strict=True)
    )
    if n_folds < 2 or n_repeats < 1 or len(class_people_counts) < 2:
        raise SplitError(
            "cross-validation needs at least two folds, one repeat and two classes; "
            f"got {n_folds} folds, {n_repeats} repeats and these numbers of people by "
            f"class: {class_counts_text or 'none'}."
        )
    if class_people_counts.min() < n_folds:
        raise SplitError(
            f"{n_folds} folds need at least {n_folds} people of every class; got these "
            f"numbers of people by class: {class_counts_text}. Use fewer folds with "
            f"{option_text('cv')}, merge classes with {option_text('merge_classes')}, "
            f"or choose only large classes with {option_text('classes')}."
        )
    splits: list[Split] = []
    for repeat_number in range(n_repeats):
        person_fold_numbers = _draw_person_fold_numbers(
            tuple(map(tuple, person_class_visit_counts.tolist())),
            n_folds,
            random_state,
            repeat_number,
        )
        scan_fold_numbers = person_fold_numbers[person_codes]
        splits += _make_fold_splits(scan_fold_numbers, range(n_folds))
    return tuple(splits)


def _make_fold_splits(
    scan_fold_labels: np.ndarray, fold_labels: Iterable
) -> list[Split]:
    """Return the rows outside and inside each fold."""
    return [
        (
            np.flatnonzero(scan_fold_labels != n),
            np.flatnonzero(scan_fold_labels == n),
        )
        for n in fold_labels
    ]


# Linear models of one training fold choose their settings on the same inner folds.
@lru_cache(maxsize=8)
def _draw_person_fold_numbers(
    visit_count_tuples: tuple[tuple[int, ...], ...],
    n_folds: int,
    random_state: int,
    repeat_number: int,
) -> np.ndarray:
    """Return the fold of every person, from each person's visits by class."""
    person_class_visit_counts = np.array(visit_count_tuples)
    rng = np.random.default_rng([random_state, repeat_number])
    class_visit_counts = person_class_visit_counts.sum(axis=0)
    person_visit_counts = person_class_visit_counts.sum(axis=1)
    # With one kind of person in each class, even spreading is exact.
    has_one_kind_per_class = len(np.unique(person_class_visit_counts, axis=0)) == len(
        class_visit_counts
    )
    # Divisions of many people differ little, and cost more.
    n_draws = min(
        N_DRAWN_DIVISIONS, max(20, _MAX_DRAWN_PEOPLE // len(person_class_visit_counts))
    )
    if has_one_kind_per_class:
        n_draws = 1
    person_class_codes = (
        person_class_visit_counts.argmax(axis=1)
        if has_one_kind_per_class
        else np.zeros_like(person_visit_counts)
    )
    # The last column prefers the smallest of folds that are equal in all classes.
    person_class_shares = np.column_stack(
        [
            person_class_visit_counts / class_visit_counts,
            1e-3 * person_visit_counts / person_visit_counts.sum(),
        ]
    )
    person_noise_scales = np.where(
        has_one_kind_per_class, 1e-12, (person_class_shares**2).sum(axis=1)
    )
    # One matrix for each column, because most columns of a person are 0.
    fold_loads = np.zeros((person_class_shares.shape[1], n_draws, n_folds))
    person_fold_matrix = np.empty(
        (n_draws, len(person_class_visit_counts)), dtype=np.int16
    )
    draw_offsets = np.arange(n_draws) * n_folds
    for person_code in np.lexsort(
        (rng.random(len(person_visit_counts)), person_class_codes, -person_visit_counts)
    ):
        fold_costs = person_noise_scales[person_code] * rng.random((n_draws, n_folds))
        share_column_indices = np.flatnonzero(person_class_shares[person_code])
        for share_column_index in share_column_indices:
            fold_costs += (
                fold_loads[share_column_index]
                * person_class_shares[person_code, share_column_index]
            )
        draw_fold_numbers = fold_costs.argmin(axis=1)
        person_fold_matrix[:, person_code] = draw_fold_numbers
        for share_column_index in share_column_indices:
            flat_fold_loads = fold_loads[share_column_index].reshape(-1)
            flat_fold_loads[draw_offsets + draw_fold_numbers] += person_class_shares[
                person_code, share_column_index
            ]
    fold_class_counts = np.moveaxis(fold_loads[:-1], 0, 2) * class_visit_counts
    fold_class_shares = fold_class_counts / np.maximum(
        fold_class_counts.sum(axis=2, keepdims=True), 1
    )
    max_share_deviations = np.abs(
        fold_class_shares - class_visit_counts / class_visit_counts.sum()
    ).max(axis=(1, 2))
    return person_fold_matrix[
        (
            max_share_deviations
            + ABSENCE_COST * (fold_class_counts == 0).sum(axis=(1, 2))
        ).argmin()
    ].copy()


def check_splits(splits: Sequence[Split], groups: ArrayLike) -> tuple[Split, ...]:
    """Return folds as integer arrays; raise where one is empty or shares a person."""
    groups = np.asarray(groups, dtype=object).astype(str)
    index_splits = []
    for fold_number, (train_sequence, test_sequence) in enumerate(splits, start=1):
        train_index = np.asarray(train_sequence, dtype=np.int64)
        test_index = np.asarray(test_sequence, dtype=np.int64)
        if not (len(train_index) and len(test_index)):
            raise SplitError(
                f"fold {fold_number} has no training scans or no test scans. Correct "
                "this fold."
            )
        if shared_person_ids := sorted(
            set(groups[train_index]) & set(groups[test_index])
        ):
            raise SplitError(
                f"fold {fold_number} has "
                f"{count_text(len(shared_person_ids), 'person')} in both training and "
                f"test scans ({', '.join(shared_person_ids[:3])}). All scans of a "
                "person must be training scans or all must be test scans. Use "
                "make_splits to create such folds."
            )
        index_splits.append((train_index, test_index))
    if not index_splits:
        raise SplitError("splits contains no folds. Use make_splits to create folds.")
    return tuple(index_splits)


def count_repeats(splits: Sequence[Split]) -> int:
    """Return the number of tests of every scan, or 1 if it differs between scans."""
    test_scan_indices = np.concatenate([test_index for _, test_index in splits])
    _, scan_test_counts = np.unique(test_scan_indices, return_counts=True)
    has_equal_counts = (scan_test_counts == scan_test_counts[0]).all() and len(
        splits
    ) % scan_test_counts[0] == 0
    return int(scan_test_counts[0]) if has_equal_counts else 1


def join_groups(*groupings: ArrayLike) -> np.ndarray:
    """Return groups that keep people, families and sites together.

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
    group_series_list = [
        pd.Series(np.asarray(group_column, dtype=object)) for group_column in groupings
    ]
    joined_group_series, previous_group_series = (
        pd.Series(range(len(group_series_list[0]))),
        None,
    )
    while not joined_group_series.equals(previous_group_series):
        previous_group_series = joined_group_series
        for group_series in group_series_list:
            joined_group_series = (
                joined_group_series.groupby(group_series)
                .transform("min")
                .fillna(joined_group_series)
                .astype(int)
            )
    return pd.factorize(joined_group_series)[0].astype(str).astype(object)


def leave_one_out_splits(
    group_column: ArrayLike, groups: ArrayLike
) -> tuple[Split, ...]:
    """Return folds in which every site, scanner or phase is the test fold once.

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
        If a site is missing, there is only one, or nobody is left to train on.
    """
    site_series = to_group_text_series(
        pd.Series(np.asarray(group_column, dtype=object))
    )
    groups = np.asarray(groups)
    site_names = sorted(site_series.dropna().unique(), key=str)
    if site_series.isna().any() or len(site_names) < 2:
        raise SplitError(
            "leaving one site out requires at least two sites, and a site for "
            f"every scan; got {count_text(len(site_names), 'site')} and "
            f"{count_text(site_series.isna().sum(), 'scan')} without a site. Add the "
            "sites, or leave these scans out."
        )
    test_index_arrays = [
        test_index
        for _, test_index in _make_fold_splits(site_series.to_numpy(), site_names)
    ]
    train_index_arrays = [
        np.flatnonzero(~np.isin(groups, groups[test_index]))
        for test_index in test_index_arrays
    ]
    return check_splits(
        [*zip(train_index_arrays, test_index_arrays, strict=True)], groups
    )


def read_splits(path: str | Path, scans: Sequence[str]) -> tuple[Split, ...]:
    """Read folds from a table that gives the test fold of every scan.

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
        If the table lacks these columns.
    SplitError
        If its scans are not those of the cohort.
    """
    splits_table = read_table(path)
    if not {"scan", "fold"} <= set(splits_table):
        raise FileFormatError(
            f"{path}: the table of folds must have the columns scan and fold, and "
            f"repeat if there are repeats; got {', '.join(splits_table)}."
        )
    splits_table["repeat"] = splits_table.get("repeat", "1")
    splits_table = splits_table.drop_duplicates(["repeat", "fold", "scan"])
    splits = []
    for repeat_number, repeat_table in splits_table.groupby("repeat", sort=False):
        fold_series = repeat_table.set_index("scan")["fold"]
        unmatched_scan_ids = sorted(set(fold_series.index) ^ set(scans))
        if unmatched_scan_ids or not fold_series.index.is_unique:
            raise SplitError(
                f"{path}: repeat {repeat_number} does not match the cohort. "
                f"{count_text(len(unmatched_scan_ids), 'scan', 'occur')} only in the "
                f"table or only in the cohort ({', '.join(unmatched_scan_ids[:3])}), "
                "and "
                f"{count_text(fold_series.index.duplicated().sum(), 'scan', 'occur')} "
                "in two folds. Write every scan of the cohort into one fold of each "
                "repeat."
            )
        scan_fold_labels = fold_series.loc[list(scans)].to_numpy()
        splits += _make_fold_splits(scan_fold_labels, repeat_table["fold"].unique())
    return tuple(splits)


EXCHANGE_CONDITIONS = {"groups": "with the same number of scans"}
"""Conditions under which labels are permuted, by parameter of `list_person_blocks`."""
EXCHANGE_PHRASE = (
    f"of the labels among participants {join_with_and(EXCHANGE_CONDITIONS.values())}"
)
"""The participants among whom tests permute labels; reports use this phrase."""


def list_person_blocks(groups: ArrayLike) -> list[np.ndarray]:
    """Return the rows of people whose labels are permuted, by `EXCHANGE_CONDITIONS`.

    The rows of all people with n scans are one array (n_people, n).
    """
    _, person_codes = np.unique(np.asarray(groups), return_inverse=True)
    row_order = np.argsort(person_codes, kind="stable")
    person_row_counts = np.bincount(person_codes)
    row_block_sizes = person_row_counts[person_codes[row_order]]
    return [
        row_order[row_block_sizes == block_size].reshape(-1, block_size)
        for block_size in np.unique(row_block_sizes)
    ]


def permute_labels(
    labels: ArrayLike, index_blocks: Sequence[np.ndarray], rng: np.random.Generator
) -> np.ndarray:
    """Permute labels among the people of each block, all scans of a person together.

    The people of a block of :func:`list_person_blocks` have the same number of scans.
    The number of visits is often correlated with the diagnosis and with the data.
    Permutations among people with different numbers of scans would test this
    correlation as well, and would change the sizes of classes. The labels of a person
    are kept if nobody else has the same number of scans.

    Parameters
    ----------
    labels : array-like of length n_scans
        The label of each scan.
    index_blocks : sequence of int arrays of shape (n_people, n_scans_of_person)
        Rows of the people whose labels are permuted, from :func:`list_person_blocks`.
    rng : numpy.random.Generator
        Source of the permutation.

    Returns
    -------
    array of length n_scans
        A permuted copy of `labels`.
    """
    return np.asarray(labels)[permute_row_indices(index_blocks, rng)]


def permute_row_indices(
    index_blocks: Sequence[np.ndarray], rng: np.random.Generator
) -> np.ndarray:
    """Return an order of all rows in which the people of each block are permuted.

    The blocks (n_people, n_rows_of_person) are those of :func:`list_person_blocks`.
    Together they contain every row once.
    """
    row_order = np.empty(
        sum(block_indices.size for block_indices in index_blocks), dtype=np.intp
    )
    for block_indices in index_blocks:
        row_order[block_indices] = rng.permutation(block_indices)
    return row_order


def count_labellings(labels: ArrayLike, index_blocks: Sequence[np.ndarray]) -> int:
    """Return the number of different results that :func:`permute_labels` can have.

    A label may be a row of several values, which are permuted together. The blocks
    (n_people, n_rows_of_person) are those of :func:`list_person_blocks`.
    """
    label_rows = np.asarray(labels)
    _, label_codes = np.unique(
        label_rows.reshape(len(label_rows), -1), axis=0, return_inverse=True
    )
    n_labellings = 1
    for block_indices in index_blocks:
        _, people_counts = np.unique(
            label_codes.reshape(-1)[block_indices], axis=0, return_counts=True
        )
        # Multinomial coefficient: people with the same labels are alike.
        n_labellings *= math.factorial(len(block_indices)) // math.prod(
            map(math.factorial, people_counts.tolist())
        )
    return n_labellings


class _IdSplit(NamedTuple):
    """All ids split at one position into a stem and a part; equal stems are a group."""

    id_indices: np.ndarray
    """Indices of the ids in groups of two or more."""
    group_codes: np.ndarray
    """Group of each of these ids."""
    visit_parts: list[str]
    """Part of each of these ids that may be a visit, in lower case; "" if none."""
    person_stems: list[str]
    """The rest of the ids of each group, with * where the part was."""

    @property
    def n_groups(self) -> int:
        return len(np.unique(self.group_codes))

    @property
    def n_distinct_parts(self) -> int:
        return len({*self.visit_parts})


def find_session_ids_and_n_people(
    scan_ids: Sequence[str], class_labels: Sequence[str], sexes: Sequence[object] = ()
) -> tuple[np.ndarray, int]:
    """Return the ids that may name sessions, and the number of their people.

    Parameters
    ----------
    scan_ids : sequence of str
        One for each person, no two alike.
    class_labels : sequence of str
        The class of each.
    sexes : sequence, optional
        The sex of each, where it is known: it does not change between visits.

    Returns
    -------
    rows : int array
        Indices of such ids, sorted; empty if there are none.
    n_people : int

    Examples
    --------
    >>> class_labels = ["CN", "CN", "AD", "AD"]
    >>> visits = ["1_V1", "1_V2", "2_V1", "2_V2"]
    >>> rows, n_people = find_session_ids_and_n_people(visits, class_labels)
    >>> len(rows), n_people
    (4, 2)
    """
    best_split = None
    best_sort_key = (_NO_VISITS, 0, 0)
    for id_split in _iter_id_splits(scan_ids):
        visit_certainty = _rate_visit_certainty(id_split, scan_ids, class_labels, sexes)
        split_sort_key = (visit_certainty, len(id_split.id_indices), id_split.n_groups)
        if visit_certainty != _NO_VISITS and split_sort_key > best_sort_key:
            best_split, best_sort_key = id_split, split_sort_key
    if best_split is None:
        return np.array([], dtype=np.int64), 0
    return np.sort(best_split.id_indices), best_split.n_groups


def _iter_id_splits(scan_ids: Sequence[str]) -> Iterator[_IdSplit]:
    """Yield the split at each position where two or more groups of ids agree."""
    pairs_by_stem_by_position: dict[_Position, dict[str, list[tuple[int, str]]]] = {}
    for id_index, scan_id in enumerate(scan_ids):
        for part_position, person_stem, visit_part in _iter_id_parts(scan_id):
            pairs_by_stem = pairs_by_stem_by_position.setdefault(part_position, {})
            pairs_by_stem.setdefault(person_stem, []).append((id_index, visit_part))
    for pairs_by_stem in pairs_by_stem_by_position.values():
        pairs_by_group_stem = {
            person_stem: index_part_pairs
            for person_stem, index_part_pairs in pairs_by_stem.items()
            if len(index_part_pairs) > 1
        }
        if len(pairs_by_group_stem) < 2:
            continue
        id_indices = []
        visit_parts = []
        group_codes = []
        for group_code, index_part_pairs in enumerate(pairs_by_group_stem.values()):
            for id_index, visit_part in index_part_pairs:
                id_indices.append(id_index)
                visit_parts.append(visit_part.lower())
                group_codes.append(group_code)
        yield _IdSplit(
            np.array(id_indices),
            np.array(group_codes),
            visit_parts,
            [*pairs_by_group_stem],
        )


def _iter_id_parts(scan_id: str) -> Iterator[tuple[_Position, str, str]]:
    """Yield position, stem and text of each part, or run of parts, of an id."""
    word_spans = [word_match.span() for word_match in _ID_PART.finditer(scan_id)]
    n_parts = len(word_spans)
    # The whole id may be the stem of others: it is then a first visit.
    yield (n_parts, 0), f"{scan_id}*", ""
    for first_part_index in range(n_parts):
        for last_part_index in range(first_part_index, n_parts):
            part_start = word_spans[first_part_index][0]
            part_end = word_spans[last_part_index][1]
            is_whole_id = (first_part_index, last_part_index) == (0, n_parts - 1)
            has_boundaries = _is_word_boundary(
                scan_id, part_start
            ) and _is_word_boundary(scan_id, part_end)
            if is_whole_id or not (
                has_boundaries or first_part_index == last_part_index
            ):
                continue
            id_prefix = scan_id[:part_start]
            id_suffix = scan_id[part_end:]
            n_parts_after = n_parts - 1 - last_part_index
            if n_parts_after == 0:
                id_prefix = id_prefix.rstrip("-_. ")
            yield (
                (first_part_index, n_parts_after),
                f"{id_prefix}*{id_suffix}",
                scan_id[part_start:part_end],
            )


def _is_word_boundary(scan_id: str, character_index: int) -> bool:
    """Return whether a word begins or ends at an index: also at the v of `01v2`."""
    if character_index in (0, len(scan_id)):
        return True
    previous_character = scan_id[character_index - 1]
    next_character = scan_id[character_index]
    if previous_character.isdigit() and next_character.isalpha():
        return True
    return not (previous_character.isalnum() and next_character.isalnum())


def _rate_visit_certainty(
    id_split: _IdSplit,
    scan_ids: Sequence[str],
    class_labels: Sequence[str],
    sexes: Sequence[object],
) -> int:
    """Return the certainty (2, 1 or 0) that parts are visits, and stems people.

    2 (`_BY_NAME`) by the words they are, 1 (`_BY_AGREEMENT`) by labels that agree.
    """
    if len(sexes) and _has_mixed_sexes(id_split, sexes):
        return _NO_VISITS
    visit_parts = [id_part for id_part in id_split.visit_parts if id_part]
    are_visits = all(map(_is_visit_text, visit_parts))
    # Scans of one day may be numbered: then there are many dates and few numbers.
    are_dates = all(
        map(_DATE_PART.fullmatch, visit_parts)
    ) and 4 * id_split.n_groups >= len(visit_parts)
    if are_visits and (id_split.n_groups >= id_split.n_distinct_parts or are_dates):
        return _BY_NAME
    person_stems = [
        person_stem.replace("*", "").strip("-_. ").lower()
        for person_stem in id_split.person_stems
    ]
    has_few_ids = len(id_split.id_indices) < _MIN_SHARE_OF_IDS * len(scan_ids)
    if has_few_ids or all(map(_is_visit_text, person_stems)):
        return _NO_VISITS
    label_and_sex_texts = [
        str(class_labels[id_index]) for id_index in id_split.id_indices
    ]
    if len(sexes):
        label_and_sex_texts = [
            f"{class_label} {sexes[id_index]}"
            for class_label, id_index in zip(
                label_and_sex_texts, id_split.id_indices, strict=True
            )
        ]
    label_and_sex_codes = np.unique(label_and_sex_texts, return_inverse=True)[1]
    return (
        _BY_AGREEMENT
        if _has_agreeing_groups(id_split, label_and_sex_codes)
        else _NO_VISITS
    )


def _has_mixed_sexes(id_split: _IdSplit, sexes: Sequence[object]) -> bool:
    """Return whether more groups have two sexes than mistakes explain."""
    group_sex_set = set()
    for id_index, group_code in zip(
        id_split.id_indices, id_split.group_codes, strict=True
    ):
        sex = sexes[id_index]
        has_known_sex = sex == sex and bool(sex)  # NaN differs from itself
        if has_known_sex:
            group_sex_set.add((group_code, sex))
    n_known_groups = len({group_code for group_code, _ in group_sex_set})
    n_mixed_groups = len(group_sex_set) - n_known_groups
    return n_mixed_groups > _MAX_SHARE_OF_MIXED_SEX * id_split.n_groups


def _is_visit_text(id_part: str) -> bool:
    """Return whether a part is a date or a word for a visit, maybe with other words."""
    if _DATE_PART.fullmatch(id_part):
        return True
    part_words = [part_word for part_word in re.split(r"[-_. ]+", id_part) if part_word]
    # also ses-01 and follow_up
    if _VISIT_WORD.fullmatch("".join(part_words)):
        return True
    visit_word_flags = [
        bool(_VISIT_WORD.fullmatch(part_word)) for part_word in part_words
    ]
    accompanying_word_flags = [
        bool(_ACCOMPANYING_WORD.fullmatch(part_word)) for part_word in part_words
    ]
    return any(visit_word_flags) and all(
        np.logical_or(visit_word_flags, accompanying_word_flags)
    )


def _has_agreeing_groups(id_split: _IdSplit, label_and_sex_codes: np.ndarray) -> bool:
    """Return whether facts agree within groups, as those of one person do.

    They must agree beyond chance in a permutation test. If few parts recur in many
    groups, the agreement must also exceed the mean of chance and perfect agreement.
    The test permutes facts among all scans, because the people are not yet known.
    """
    if len(np.unique(label_and_sex_codes)) < 2:
        return False  # Facts that all scans share do not show who is who.
    group_sizes = np.bincount(id_split.group_codes).astype(float)
    n_pairs = (group_sizes * (group_sizes - 1)).sum()
    n_agreeing_pairs = _count_agreeing_pairs(id_split.group_codes, label_and_sex_codes)
    code_frequencies = np.bincount(label_and_sex_codes) / len(label_and_sex_codes)
    expected_agreement = (code_frequencies**2).sum()
    rng = np.random.default_rng(0)
    n_exceeding = 0
    for _ in range(_N_PERMUTATIONS):
        permuted_codes = rng.permutation(label_and_sex_codes)
        n_exceeding += (
            _count_agreeing_pairs(id_split.group_codes, permuted_codes)
            >= n_agreeing_pairs
        )
        # Stop where p can no longer fall below the larger level.
        if 1 + n_exceeding >= _ALPHA_RECURRING * (1 + _N_PERMUTATIONS):
            break
    p_value = (1 + n_exceeding) / (1 + _N_PERMUTATIONS)
    if id_split.n_groups >= 2 * id_split.n_distinct_parts:
        has_high_agreement = n_agreeing_pairs / n_pairs >= (1 + expected_agreement) / 2
        # With few people even perfect agreement may not be significant.
        has_perfect_agreement = (
            n_agreeing_pairs == n_pairs and id_split.n_groups >= _MIN_PEOPLE
        )
        return bool(
            has_high_agreement and (p_value < _ALPHA_RECURRING or has_perfect_agreement)
        )
    # Stems such as HC and AD differ in words, those of people in numbers.
    distinct_stem_numbers = {
        re.sub(r"\D+", " ", person_stem) for person_stem in id_split.person_stems
    }
    are_people = (
        len(distinct_stem_numbers) >= 0.75 * id_split.n_groups
        and np.median(group_sizes) <= _MAX_SCANS_PER_PERSON
    )
    return bool(are_people and p_value < _ALPHA_UNIQUE)


def _count_agreeing_pairs(
    group_codes: np.ndarray, label_and_sex_codes: np.ndarray
) -> float:
    """Return the ordered pairs of ids of one group whose codes are the same."""
    n_groups = group_codes.max() + 1
    n_distinct_codes = label_and_sex_codes.max() + 1
    group_code_counts = np.bincount(
        group_codes * n_distinct_codes + label_and_sex_codes,
        minlength=n_groups * n_distinct_codes,
    ).astype(float)
    return float((group_code_counts * (group_code_counts - 1)).sum())
