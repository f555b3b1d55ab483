"""Further ways to divide a cohort: repeated, by site, held out, and by scan."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from brainlsap.evaluation.splits import Split, make_splits
from brainlsap.exceptions import SplitError


def repeat_splits(
    y: Sequence | np.ndarray,
    groups: Sequence | np.ndarray,
    n_folds: int = 5,
    n_repeats: int = 10,
    random_state: int = 0,
    *,
    balance: Sequence | np.ndarray | None = None,
) -> tuple[Split, ...]:
    """Divide scans into stratified folds of whole people, several times over.

    Parameters
    ----------
    y, groups : sequences of length n_scans
        Label and participant of every scan.
    n_folds : int
        Folds of each repeat, at least 2.
    n_repeats : int
        How often; every scan is tested once in each.
    random_state : int
        Seed; the first repeat is that of :func:`make_splits` with the same seed.
    balance : sequence of length n_scans, optional
        As for :func:`make_splits`.

    Returns
    -------
    tuple of (train, test)
        `n_repeats * n_folds` pairs, repeat after repeat.

    Raises
    ------
    SplitError
        As :func:`make_splits`, and where `n_repeats` is less than 1.

    Examples
    --------
    >>> splits = repeat_splits([0, 0, 1, 1], list("abcd"), n_folds=2, n_repeats=3)
    >>> len(splits), count_repeats(splits)
    (6, 3)
    """
    if n_repeats < 1:
        raise SplitError(f"n_repeats must be at least 1, got {n_repeats}.")
    # Seeds of neighbouring repeats and of neighbouring runs must not coincide.
    later = np.random.SeedSequence([random_state, n_folds]).generate_state(n_repeats)
    seeds = [random_state, *(int(seed) for seed in later[1:])]
    return tuple(
        split
        for seed in seeds
        for split in make_splits(y, groups, n_folds, seed, balance=balance)
    )


def count_repeats(splits: Sequence[Split]) -> int:
    """Return how often every scan is tested, or 1 where that differs between scans.

    Parameters
    ----------
    splits : sequence of (train, test)
        Rows of a cohort.

    Returns
    -------
    int

    Examples
    --------
    >>> count_repeats([([0], [1]), ([1], [0])])
    1
    """
    _, times = np.unique(
        np.concatenate([test for _, test in splits]), return_counts=True
    )
    return int(times[0]) if (times == times[0]).all() else 1


def whole_groups(*columns: Sequence | np.ndarray | pd.Series) -> np.ndarray:
    """Return groups that keep people, families and sites whole at once.

    Scans that agree in any of the columns, directly or through others, are one
    group. Where one person came to every site, all is one group.

    Parameters
    ----------
    *columns : sequences of length n_scans
        Such as the participant, the family and the site of every scan; a missing
        value joins nothing.

    Returns
    -------
    array of str of length n_scans
        To give to :func:`make_splits` as `groups`.

    Examples
    --------
    >>> whole_groups(["a", "a", "b", "c"], ["north", "south", "south", "west"])
    array(['0', '0', '0', '1'], dtype=object)
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n_scans = len(columns[0])
    scans, nodes, n_nodes = [], [], n_scans
    for column in columns:
        code, names = pd.factorize(np.asarray(column, dtype=object))
        known = np.flatnonzero(code >= 0)
        scans.append(known)
        nodes.append(code[known] + n_nodes)
        n_nodes += len(names)
    row, node = np.concatenate(scans), np.concatenate(nodes)
    links = coo_array((np.ones(len(row)), (row, node)), shape=(n_nodes, n_nodes))
    _, component = connected_components(links, directed=False)
    return pd.factorize(component[:n_scans])[0].astype(str).astype(object)


def leave_one_out_splits(
    sites: Sequence | np.ndarray | pd.Series, groups: Sequence | np.ndarray
) -> tuple[Split, ...]:
    """Test every site in turn with a model that was fitted on the others.

    Parameters
    ----------
    sites : sequence of length n_scans
        Site, scanner or phase of every scan.
    groups : sequence of length n_scans
        Participant of every scan. Scans that people of the tested site have at other
        sites are on neither side.

    Returns
    -------
    tuple of (train, test)
        One pair for each site, in the order of their names.

    Raises
    ------
    SplitError
        Where a scan has no site, there are fewer than two sites, or nobody is left to
        train on.

    Examples
    --------
    >>> splits = leave_one_out_splits(["n", "n", "s", "s"], ["a", "b", "b", "c"])
    >>> [(train.tolist(), test.tolist()) for train, test in splits]
    [([3], [0, 1]), ([0], [2, 3])]
    """
    column = pd.Series(np.asarray(sites, dtype=object))
    names = sorted(column.dropna().unique(), key=str)
    if column.isna().any() or len(names) < 2:
        raise SplitError(
            "leaving one site out needs the site of every scan and at least two "
            f"sites, got {len(names)} and {int(column.isna().sum())} scans without."
        )
    return tuple(hold_out_split(column, [name], groups)[0] for name in names)


def hold_out_split(
    column: Sequence | np.ndarray | pd.Series,
    held_out: Sequence,
    groups: Sequence | np.ndarray,
) -> tuple[Split]:
    """Hold out the scans of some sites, scanners, phases, or people.

    Parameters
    ----------
    column : sequence of length n_scans
        Site, scanner, phase or participant of every scan.
    held_out : sequence
        The values of `column` that are tested.
    groups : sequence of length n_scans
        Participant of every scan. Other scans of people who are tested are on neither
        side.

    Returns
    -------
    tuple of one (train, test)

    Raises
    ------
    SplitError
        Where a value is not in the column, or nobody is left to train on.

    Examples
    --------
    >>> ((train, test),) = hold_out_split(["n", "s", "s"], ["n"], ["a", "b", "c"])
    >>> train.tolist(), test.tolist()
    ([1, 2], [0])
    """
    values = pd.Series(np.asarray(column, dtype=object))
    groups = np.asarray(groups, dtype=object)
    unknown = [one for one in held_out if not (values == one).any()]
    if unknown or not len(held_out):
        known = ", ".join(sorted({str(one) for one in values.dropna()})[:10])
        wanted = repr(unknown[0]) if unknown else "nothing"
        raise SplitError(
            f"held_out must name values of the column ({known}), got {wanted}."
        )
    tested = values.isin(list(held_out)).to_numpy()
    trained = ~tested & ~np.isin(groups, groups[tested])
    if not trained.any():
        named = ", ".join(map(str, held_out))
        raise SplitError(
            f"with {named} held out nobody is left to train on: everybody else was "
            "scanned there too."
        )
    return ((np.flatnonzero(trained), np.flatnonzero(tested)),)


def split_scans_ignoring_people(
    y: Sequence | np.ndarray, n_folds: int = 5, random_state: int = 0
) -> tuple[Split, ...]:
    """Divide scans as if each were a person of its own: for comparison only.

    Visits of one person then stand in training and test scans, and a model can know
    the answer by knowing the person. :func:`cross_validate` takes such folds only with
    `people_may_be_shared=True`, and everything that comes of it is marked.

    Parameters
    ----------
    y : sequence of length n_scans
        Label of every scan.
    n_folds : int
        Number of folds, at least 2.
    random_state : int
        Seed.

    Returns
    -------
    tuple of (train, test)

    Raises
    ------
    SplitError
        As :func:`make_splits`.

    Examples
    --------
    >>> len(split_scans_ignoring_people(["CN", "CN", "AD", "AD"], n_folds=2))
    2
    """
    return make_splits(y, np.arange(len(y)).astype(str), n_folds, random_state)
