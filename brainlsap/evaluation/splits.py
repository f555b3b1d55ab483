"""Stratified folds that never share a person, given folds, and folds in a file."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from brainlsap.exceptions import FileFormatError, SplitError
from brainlsap.files import replace_when_whole

Split = tuple[np.ndarray, np.ndarray]
"""Row indices of the training scans and of the test scans of one fold."""

# An exchange of people is looked for among at most this many kinds of person; with
# more (many visits, changing labels) a seeded draw of the kinds is looked at.
MOST_KINDS = 60
MOST_EXCHANGES = 1000
# Exchanges end where no single one helps; another start ends elsewhere.
MOST_STARTS = 8
# A class absent from a fold leaves scores undefined: worse than any imbalance.
ABSENCE = 10.0
# Above so many people scikit-learn's folds take minutes, and are not compared.
MOST_PEOPLE_COMPARED = 2000
FILE_COLUMNS = ("fold", "part", "scan", "participant")


def make_splits(
    y: Sequence | np.ndarray,
    groups: Sequence | np.ndarray,
    n_folds: int = 5,
    random_state: int = 0,
    *,
    n_repeats: int = 1,
) -> tuple[Split, ...]:
    r"""Divide scans into stratified folds of whole people, once or several times.

    People with the same visits per class are interchangeable, so that only their
    number in every fold is sought. They are spread evenly, then moved or exchanged
    between two folds as long as that lowers

    .. math:: \sum_f \Big(\frac{n_f}{n} - \frac1k\Big)^2
              + \sum_{f, c} \Big(\frac{n_{fc}}{n_c} - \frac1k\Big)^2

    over the scans :math:`n_{fc}` of class c in fold f of k. With several visits a
    person a second round lowers the worst deviation, the best of eight starts is
    taken, and scikit-learn's `StratifiedGroupKFold` where that is better still.

    Parameters
    ----------
    y, groups : sequences of length n_scans
        Label and participant of every scan.
    n_folds : int
        Folds of one repeat, at least 2 and at most the people of the rarest class.
    random_state : int
        Seed. The first repeat is the same whatever `n_repeats`.
    n_repeats : int
        How often folds are drawn anew; every scan is tested once in each.

    Returns
    -------
    tuple of (train, test)
        Row indices; `n_folds * n_repeats` folds.

    Raises
    ------
    SplitError
        Where the people cannot be divided so.
    """
    given = np.asarray(groups)
    y, groups = np.asarray(y, dtype=object), given.astype(object)
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
    classes, label = np.unique(y.astype(str), return_inverse=True)
    _, person = np.unique(groups.astype(str), return_inverse=True)
    visits = _count(person, label)
    n_people = pd.Series((visits > 0).sum(axis=0), index=classes)
    if n_folds < 2 or n_repeats < 1 or len(classes) < 2:
        raise SplitError(
            f"at least two folds, one repeat and two classes are needed, got {n_folds} "
            f"folds, {n_repeats} repeats and the classes {', '.join(classes) or '-'}."
        )
    if n_people.min() < n_folds:
        few = n_people[n_people < n_folds].items()
        told = " and ".join(f"{name!r} has {number} people" for name, number in few)
        raise SplitError(
            f"every class needs at least as many people as folds ({n_folds}), but "
            f"{told}. Ask for fewer folds, merge classes or leave the class out."
        )
    # numbers in their own order, as scikit-learn has
    is_number = given.dtype.kind in "iu"
    theirs_of = np.unique(given, return_inverse=True)[1] if is_number else person
    later = np.random.SeedSequence([random_state, n_folds]).generate_state(n_repeats)
    splits: list[Split] = []
    for seed in [random_state, *map(int, later[1:])]:
        fold = _assign_people(visits, n_folds, np.random.default_rng(seed))[person]
        if len(visits) < min(len(y), MOST_PEOPLE_COMPARED):
            other = _folds_of_scikit_learn(label, theirs_of, n_folds, seed)
            ours, theirs = (
                _worst_share(_count(one, label, n_folds)) for one in (fold, other)
            )
            fold = other if theirs < ours - 1e-12 else fold
        splits += [
            (np.flatnonzero(fold != one), np.flatnonzero(fold == one))
            for one in range(n_folds)
        ]
    return tuple(splits)


def check_splits(
    splits: Sequence[Split], groups: Sequence | np.ndarray
) -> tuple[Split, ...]:
    """Raise unless every fold has scans on both sides and shares no person.

    Parameters
    ----------
    splits : sequence of (train, test)
        Row indices.
    groups : sequence of length n_scans
        Participant of every scan.

    Returns
    -------
    tuple of (train, test)
        As integer arrays.

    Raises
    ------
    SplitError
        Naming fold and people.
    """
    groups = np.asarray(groups, dtype=object).astype(str)
    checked = []
    for number, (learn, watch) in enumerate(splits, start=1):
        train, test = (np.asarray(rows, dtype=np.int64) for rows in (learn, watch))
        if not (len(train) and len(test)):
            raise SplitError(f"fold {number} has no training or no test scans.")
        rows = np.concatenate([train, test])
        if rows.min() < 0 or rows.max() >= len(groups):
            raise SplitError(
                f"fold {number} names row {rows.max()}, but the cohort has "
                f"{len(groups)} scans; were these splits made for another cohort?"
            )
        shared = sorted(set(groups[train]) & set(groups[test]))
        if shared:
            raise SplitError(
                f"fold {number} has {len(shared)} people in training and test scans "
                f"({', '.join(shared[:3])}); all visits of a person must be on one "
                "side. make_splits does that."
            )
        checked.append((train, test))
    if not checked:
        raise SplitError("splits has no fold; make_splits makes them.")
    return tuple(checked)


def count_repeats(splits: Sequence[Split]) -> int:
    """Return how often every scan is tested, or 1 where that differs between scans."""
    tested = np.concatenate([test for _, test in splits])
    _, times = np.unique(tested, return_counts=True)
    return int(times[0]) if (times == times[0]).all() else 1


def join_groups(*columns: Sequence | np.ndarray | pd.Series) -> np.ndarray:
    """Return groups that keep people, families and sites together at once.

    Parameters
    ----------
    *columns : sequences of length n_scans
        Participant, and whatever else must not be divided; missing values bind
        nobody.

    Returns
    -------
    object array of str, shape (n_scans,)
        For `groups` of :func:`make_splits`.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n_scans = n_nodes = len(columns[0])
    scans, nodes = [], []
    for column in columns:
        code, names = pd.factorize(np.asarray(column, dtype=object))
        scans.append(np.flatnonzero(code >= 0))
        nodes.append(code[code >= 0] + n_nodes)
        n_nodes += len(names)
    ends = np.concatenate(scans), np.concatenate(nodes)
    links = coo_array((np.ones(len(ends[0])), ends), shape=(n_nodes, n_nodes))
    _, component = connected_components(links, directed=False)
    return pd.factorize(component[:n_scans])[0].astype(str).astype(object)


def leave_one_out_splits(
    column: Sequence | np.ndarray | pd.Series, groups: Sequence | np.ndarray
) -> tuple[Split, ...]:
    """Test every site, scanner or phase in turn with a model fitted on the others.

    People who were also scanned at the site that is held out are not trained on.

    Parameters
    ----------
    column, groups : sequences of length n_scans
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
    values, groups = pd.Series(np.asarray(column, dtype=object)), np.asarray(groups)
    names = sorted(values.dropna().unique(), key=str)
    if values.isna().any() or len(names) < 2:
        raise SplitError(
            "leaving one site out needs the site of every scan and at least two "
            f"sites, got {len(names)} and {int(values.isna().sum())} scans without."
        )
    splits = []
    for name in names:
        tested = (values == name).to_numpy()
        trained = ~tested & ~np.isin(groups, groups[tested])
        if not trained.any():
            raise SplitError(
                f"with {name} held out nobody is left to train on: everybody else "
                "was scanned there too."
            )
        splits.append((np.flatnonzero(trained), np.flatnonzero(tested)))
    return tuple(splits)


def write_splits(
    splits: Sequence[Split],
    path: str | Path,
    *,
    scans: Sequence[str],
    participants: Sequence[str],
) -> Path:
    """Write folds to a TSV file: fold, part (train, test, unused), scan, participant.

    Parameters
    ----------
    splits : sequence of (train, test)
        Row indices.
    path : str or Path
        An existing file is replaced.
    scans, participants : sequences of length n_scans
        Names of the rows.

    Returns
    -------
    Path
    """
    tables = []
    for number, (train, test) in enumerate(splits, start=1):
        part = np.full(len(scans), "unused", dtype=object)
        part[train], part[test] = "train", "test"
        columns = ([number] * len(scans), part, scans, participants)
        table = pd.DataFrame(dict(zip(FILE_COLUMNS, columns, strict=True)))
        tables.append(table.sort_values("part", kind="stable"))
    with replace_when_whole(path) as partial:
        pd.concat(tables).to_csv(partial, sep="\t", index=False)
    return Path(path)


def read_splits(path: str | Path, scans: Sequence[str]) -> tuple[Split, ...]:
    """Read folds that :func:`write_splits` wrote, for the same scans in any order.

    Parameters
    ----------
    path : str or Path
        Of the file.
    scans : sequence of str
        Every scan of the cohort, in its order.

    Returns
    -------
    tuple of (train, test)

    Raises
    ------
    FileFormatError
        Where the file holds something else.
    SplitError
        Where its scans are not those of the cohort.
    """
    try:
        table = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{path}: cannot be read as splits ({error}).") from None
    parts = {"train", "test", "unused"}
    if not set(FILE_COLUMNS[:3]) <= set(table) or set(table["part"]) - parts:
        raise FileFormatError(
            f"{path}: splits need the columns {', '.join(FILE_COLUMNS)} with part "
            f"train, test or unused, got {', '.join(table.columns)}."
        )
    row_of = {str(scan): row for row, scan in enumerate(scans)}
    splits = []
    for fold, members in table.groupby("fold", sort=False):
        named = list(members["scan"])
        if sorted(named) != sorted(row_of):
            wrong = sorted(set(named) ^ set(row_of))
            raise SplitError(
                f"{path}: fold {fold} does not fit the cohort: {len(wrong)} scans are "
                f"in one of them only ({', '.join(wrong[:3])}), "
                f"{len(named) - len(set(named))} named twice. Splits belong to one "
                "cohort."
            )
        rows, part = members["scan"].map(row_of).to_numpy(), members["part"].to_numpy()
        splits.append((np.sort(rows[part == "train"]), np.sort(rows[part == "test"])))
    return tuple(splits)


def _folds_of_scikit_learn(
    label: np.ndarray, person: np.ndarray, n_folds: int, seed: int
) -> np.ndarray:
    from sklearn.model_selection import StratifiedGroupKFold

    fold = np.empty(len(label), dtype=np.int64)
    splitter = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for number, (_, test) in enumerate(splitter.split(label, label, person)):
            fold[test] = number
    return fold


def _assign_people(
    visits: np.ndarray, n_folds: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the fold (n_people,) of people with `visits` (n_people, n_classes)."""
    kinds, kind_of_person = np.unique(visits, axis=0, return_inverse=True)
    kind_of_person = kind_of_person.reshape(-1)
    n_people = np.bincount(kind_of_person, minlength=len(kinds))
    # Where a class has one kind of people an even spread is exact: no class differs by
    # more than one. With very many kinds people are small change, and starts slow.
    of_one_class = ((kinds > 0).sum(axis=1) == 1).all()
    several = not (of_one_class and len(kinds) == visits.shape[1])
    starts = []
    for number in range(MOST_STARTS if several and len(kinds) <= MOST_KINDS else 1):
        if number % 2:
            counts = rng.multinomial(n_people, np.full(n_folds, 1 / n_folds)).T
        else:
            counts = _spread_evenly(kinds, n_people, n_folds, rng)
        counts = _exchange(counts, kinds, _imbalance, rng)
        if several:
            counts = _exchange(counts, kinds, _worst_imbalance, rng)
        starts.append(counts)
    counts = min(starts, key=lambda one: _worst_share(one @ kinds, absence=ABSENCE))
    fold = np.empty(len(visits), dtype=np.int64)
    for kind in range(len(kinds)):
        places = np.repeat(np.arange(n_folds), counts[:, kind])
        fold[kind_of_person == kind] = rng.permutation(places)
    return fold


def _imbalance(scans: np.ndarray, total: np.ndarray, n_folds: int) -> np.ndarray:
    """Return what folds with `scans` (..., n_classes) add to the sum of squares."""
    by_class = ((scans / total - 1 / n_folds) ** 2).sum(axis=-1)
    by_size = (scans.sum(axis=-1) / total.sum() - 1 / n_folds) ** 2
    return by_class + by_size + ABSENCE * (scans == 0).sum(axis=-1)


def _worst_imbalance(scans: np.ndarray, total: np.ndarray, n_folds: int) -> np.ndarray:
    """Return 8th powers of deviations, in which the worst deviation rules."""
    size = np.maximum(scans.sum(axis=-1, keepdims=True), 1)
    by_part = ((scans / total - 1 / n_folds) ** 8).sum(axis=-1) / 10
    by_share = ((scans / size - total / total.sum()) ** 8).sum(axis=-1)
    return by_part + by_share + ABSENCE * (scans == 0).sum(axis=-1)


def _worst_share(scans: np.ndarray, absence: float = np.inf) -> float:
    """Return how far a class's share of a fold is from that of all, at the worst."""
    total, n_absent = scans.sum(axis=0), int((scans == 0).sum())
    shares = scans / np.maximum(scans.sum(axis=1, keepdims=True), 1)
    worst = float(np.abs(shares - total / total.sum()).max())
    return worst + (absence * n_absent if n_absent else 0)


def _spread_evenly(
    kinds: np.ndarray, n_people: np.ndarray, n_folds: int, rng: np.random.Generator
) -> np.ndarray:
    """Return how many people of each kind every fold gets (n_folds, n_kinds)."""
    counts = np.tile(n_people // n_folds, (n_folds, 1))
    scans = counts @ kinds
    difficulty = (kinds / (n_people @ kinds)).sum(axis=1)
    for kind in np.lexsort((rng.random(len(kinds)), -difficulty)):
        taken = np.zeros(n_folds, dtype=bool)
        for _ in range(n_people[kind] % n_folds):
            held = scans[:, kinds[kind] > 0].sum(axis=1)
            order = (rng.random(n_folds), scans.sum(axis=1), held, taken)
            neediest = np.lexsort(order)[0]
            taken[neediest] = True
            counts[neediest, kind] += 1
            scans[neediest] += kinds[kind]
    return counts


def _exchange(
    counts: np.ndarray, kinds: np.ndarray, loss: Callable, rng: np.random.Generator
) -> np.ndarray:
    """Move or exchange people between two folds while that lowers the loss."""
    nobody = len(kinds)  # a kind without scans: to move is to exchange for nobody
    kinds = np.vstack([kinds, np.zeros_like(kinds[:1])])
    plenty = np.full(len(counts), counts.sum() + MOST_EXCHANGES)
    counts = np.column_stack([counts, plenty])
    scans = counts @ kinds
    pairs = [(i, j) for i in range(len(counts)) for j in range(i)]
    for _ in range(MOST_EXCHANGES):
        looked_at = np.arange(nobody + 1)
        if nobody > MOST_KINDS:
            looked_at = np.append(rng.permutation(nobody)[:MOST_KINDS], nobody)
        offers = [
            _best_offer(counts, kinds, scans, pair, looked_at, loss) for pair in pairs
        ]
        best = int(np.argmax([gain for gain, _, _ in offers]))
        gain, a, b = offers[best]
        if gain <= 1e-9:
            break
        i, j = pairs[best]
        counts[i, [a, b]] += (-1, 1)
        counts[j, [a, b]] += (1, -1)
        scans = counts @ kinds
    return counts[:, :nobody]


def _best_offer(
    counts: np.ndarray,
    kinds: np.ndarray,
    scans: np.ndarray,
    pair: tuple[int, int],
    looked_at: np.ndarray,
    loss: Callable,
) -> tuple[float, int, int]:
    """Return relative gain, a and b of the best exchange of a in fold i for b in j."""
    i, j = pair
    of_i, of_j = (looked_at[counts[fold, looked_at] > 0] for fold in pair)
    change = kinds[of_j][None, :, :] - kinds[of_i][:, None, :]
    total, n_folds = scans.sum(axis=0), len(scans)
    now = loss(scans[[i, j]], total, n_folds).sum()
    then = loss(scans[i] + change, total, n_folds)
    then += loss(scans[j] - change, total, n_folds)
    best = np.unravel_index(np.argmin(then), then.shape)
    gain = (now - then[best]) / now if now > 0 else 0.0
    return float(gain), int(of_i[best[0]]), int(of_j[best[1]])


def _count(person: np.ndarray, kind: np.ndarray, n_people: int = 0) -> np.ndarray:
    """Return how many scans of every kind a person (or fold) has."""
    n_people = max(n_people, person.max(initial=-1) + 1)
    counts = np.zeros((n_people, kind.max(initial=-1) + 1), dtype=np.int64)
    np.add.at(counts, (person, kind), 1)
    return counts
