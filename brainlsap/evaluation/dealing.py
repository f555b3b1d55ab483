"""How people are dealt to folds: evenly by kind, then exchanged until balanced."""

from collections.abc import Callable

import numpy as np

# An exchange of people is looked for among at most this many kinds of person; with
# more kinds (people with many visits and changing labels) a seeded draw is looked at.
KINDS_LOOKED_AT = 60
MOST_EXCHANGES = 1000
# Exchanges end where no single one helps; another start, every other one at random,
# ends elsewhere.
MOST_DEALS = 8
# A class absent from a fold leaves scores undefined: worse than any imbalance.
ABSENCE = 10.0


def deal_people(
    visits: np.ndarray, n_folds: int, rng: np.random.Generator
) -> np.ndarray:
    r"""Deal whole people to folds so that every class is spread evenly.

    People with the same visits per class are interchangeable, so what is sought is
    only how many people of each kind every fold gets. Each kind is dealt evenly; what
    is left over goes to the fold that has least of its classes; then people are
    moved, or exchanged between two folds, as long as that lowers

    .. math:: \sum_f \Big(\frac{n_f}{n} - \frac1k\Big)^2
              + \sum_{f, c} \Big(\frac{n_{fc}}{n_c} - \frac1k\Big)^2

    over the scans :math:`n_{fc}` of class c in fold f of k. A class absent from a
    fold costs more than any imbalance. Where people have several visits, a second
    round lowers the worst deviation (:func:`worst_imbalance`), and of eight such deals
    the one with the smallest is taken. Last, people of a kind are drawn at random.

    Parameters
    ----------
    visits : array of shape (n_people, n_classes)
        How many scans of every class a person has.
    n_folds : int
        Number of folds k.
    rng : numpy.random.Generator
        Decides between equals, and who of a kind goes where.

    Returns
    -------
    array of shape (n_people,)
        Fold of every person, from 0.

    Examples
    --------
    >>> visits = np.array([[2, 0], [1, 0], [1, 0], [0, 3], [0, 3]])
    >>> fold = deal_people(visits, 2, np.random.default_rng(0))
    >>> [int(visits[fold == one].sum()) for one in (0, 1)]
    [5, 5]
    """
    kinds, kind_of_person = np.unique(visits, axis=0, return_inverse=True)
    kind_of_person = kind_of_person.reshape(-1)
    how_many = np.bincount(kind_of_person, minlength=len(kinds))
    # Where a class has one kind of people a single deal is exact: no class differs by
    # more than one. With very many kinds people are small change, and deals slow.
    of_one_class = ((kinds > 0).sum(axis=1) == 1).all()
    several = not (of_one_class and len(kinds) == visits.shape[1])
    many = len(kinds) > KINDS_LOOKED_AT
    deals = []
    for number in range(MOST_DEALS if several and not many else 1):
        if number % 2:
            even = np.full(n_folds, 1 / n_folds)
            dealt = rng.multinomial(how_many, even).T
        else:
            dealt = _deal_evenly(kinds, how_many, n_folds, rng)
        dealt = _exchange(dealt, kinds, imbalance, rng)
        if several:
            dealt = _exchange(dealt, kinds, worst_imbalance, rng)
        deals.append(dealt)
    dealt = min(deals, key=lambda one: _worst_deviation(one @ kinds))
    fold = np.empty(len(visits), dtype=np.int64)
    for kind in range(len(kinds)):
        places = np.repeat(np.arange(n_folds), dealt[:, kind])
        fold[kind_of_person == kind] = rng.permutation(places)
    return fold


def imbalance(scans: np.ndarray, total: np.ndarray, n_folds: int) -> np.ndarray:
    """Return what a fold adds to the sum of squares in :func:`deal_people`.

    Parameters
    ----------
    scans : array of shape (..., n_classes)
        Scans of every class in a fold.
    total : array of shape (n_classes,)
        Scans of every class in all folds.
    n_folds : int
        Number of folds.

    Returns
    -------
    array of shape (...)
        0 for a fold that has its even part of everything.

    Examples
    --------
    >>> float(imbalance(np.array([4, 1]), np.array([8, 2]), 2))
    0.0
    """
    by_class = ((scans / total - 1 / n_folds) ** 2).sum(axis=-1)
    by_size = (scans.sum(axis=-1) / total.sum() - 1 / n_folds) ** 2
    return by_class + by_size + ABSENCE * (scans == 0).sum(axis=-1)


def worst_imbalance(scans: np.ndarray, total: np.ndarray, n_folds: int) -> np.ndarray:
    """Return the 8th powers of deviations, in which the worst deviation rules.

    Counted are, for every class, its share of the fold against its share of all
    scans, and, with a tenth of the weight, the fold's part of the class against an
    even part.

    Parameters
    ----------
    scans : array of shape (..., n_classes)
        Scans of every class in a fold.
    total : array of shape (n_classes,)
        Scans of every class in all folds.
    n_folds : int
        Number of folds.

    Returns
    -------
    array of shape (...)
        0 for a fold that has its even part of everything.

    Examples
    --------
    >>> float(worst_imbalance(np.array([4, 1]), np.array([8, 2]), 2))
    0.0
    """
    size = np.maximum(scans.sum(axis=-1, keepdims=True), 1)
    by_part = ((scans / total - 1 / n_folds) ** 8).sum(axis=-1) / 10
    by_share = ((scans / size - total / total.sum()) ** 8).sum(axis=-1)
    return by_part + by_share + ABSENCE * (scans == 0).sum(axis=-1)


def _worst_deviation(scans: np.ndarray) -> float:
    """Return the largest difference between a share of a fold and of all scans."""
    total = scans.sum(axis=0)
    shares = scans / np.maximum(scans.sum(axis=1, keepdims=True), 1)
    absent = ABSENCE * float((scans == 0).sum())
    return absent + float(np.abs(shares - total / total.sum()).max())


def _deal_evenly(
    kinds: np.ndarray, how_many: np.ndarray, n_folds: int, rng: np.random.Generator
) -> np.ndarray:
    """Return how many people of each kind every fold gets (n_folds, n_kinds)."""
    dealt = np.tile(how_many // n_folds, (n_folds, 1))
    scans = dealt @ kinds
    # Rare classes and people with many visits first: they are hardest to place.
    difficulty = (kinds / (how_many @ kinds)).sum(axis=1)
    for kind in np.lexsort((rng.random(len(kinds)), -difficulty)):
        taken = np.zeros(n_folds, dtype=bool)
        for _ in range(how_many[kind] % n_folds):
            held = scans[:, kinds[kind] > 0].sum(axis=1)
            order = (rng.random(n_folds), scans.sum(axis=1), held, taken)
            neediest = np.lexsort(order)[0]
            taken[neediest] = True
            dealt[neediest, kind] += 1
            scans[neediest] += kinds[kind]
    return dealt


def _exchange(
    dealt: np.ndarray, kinds: np.ndarray, loss: Callable, rng: np.random.Generator
) -> np.ndarray:
    """Exchange people between folds while that lowers the loss."""
    # The last kind is nobody, of whom there are plenty: an exchange with nobody
    # moves a person.
    nobody = len(kinds)
    kinds = np.vstack([kinds, np.zeros_like(kinds[:1])])
    plenty = np.full(len(dealt), dealt.sum() + MOST_EXCHANGES)
    dealt = np.column_stack([dealt, plenty])
    scans = dealt @ kinds
    pairs = [(i, j) for i in range(len(dealt)) for j in range(i)]
    for _ in range(MOST_EXCHANGES):
        looked_at = np.arange(nobody + 1)
        if nobody > KINDS_LOOKED_AT:
            drawn = rng.permutation(nobody)[:KINDS_LOOKED_AT]
            looked_at = np.append(drawn, nobody)
        offers = [
            _best_offer(dealt, kinds, scans, pair, looked_at, loss) for pair in pairs
        ]
        best = int(np.argmax([gain for gain, _, _ in offers]))
        gain, a, b = offers[best]
        if gain <= 1e-9:
            break
        i, j = pairs[best]
        dealt[i, [a, b]] += (-1, 1)
        dealt[j, [a, b]] += (1, -1)
        scans = dealt @ kinds
    return dealt[:, :nobody]


def _best_offer(
    dealt: np.ndarray,
    kinds: np.ndarray,
    scans: np.ndarray,
    pair: tuple[int, int],
    looked_at: np.ndarray,
    loss: Callable,
) -> tuple[float, int, int]:
    """Return relative gain, a and b of the best exchange of a in i for b in j."""
    i, j = pair
    of_i = looked_at[dealt[i, looked_at] > 0]
    of_j = looked_at[dealt[j, looked_at] > 0]
    change = kinds[of_j][None, :, :] - kinds[of_i][:, None, :]
    total, n_folds = scans.sum(axis=0), len(scans)
    now = loss(scans[[i, j]], total, n_folds).sum()
    then = loss(scans[i] + change, total, n_folds)
    then += loss(scans[j] - change, total, n_folds)
    best = np.unravel_index(np.argmin(then), then.shape)
    # Relative, because 8th powers are tiny; nothing can be gained where all is even.
    gain = (now - then[best]) / now if now > 0 else 0.0
    return float(gain), int(of_i[best[0]]), int(of_j[best[1]])
