"""How far rankings agree: between folds, seeds, starts and kernels."""

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pandas as pd


def rank_rows(values: np.ndarray, method: str = "average") -> np.ndarray:
    """Rank each row, 1 the smallest; what is equal to six digits is tied.

    Parameters
    ----------
    values : array of shape (n_rows, n_rois)
        NaN stays NaN.
    method : {"average", "min"}
        Whether ties share the mean of their ranks, or the smallest.

    Returns
    -------
    array of shape (n_rows, n_rois)

    Examples
    --------
    >>> rank_rows(np.array([[0.3, 0.1 + 0.2, 0.1]]), "min").tolist()
    [[2.0, 2.0, 1.0]]
    """
    from scipy.stats import rankdata

    rounded = np.vectorize(lambda value: float(f"{value:.5e}"))(values)
    ranks = rankdata(rounded, method=method, axis=1, nan_policy="omit")
    return ranks.astype(np.float64)


def fold_agreement(scales: np.ndarray) -> float:
    r"""Return Kendall's W: how far the folds agree on the order of regions.

    With rank sums :math:`R_i` of n regions over m folds,

    .. math:: W = \frac{12 \sum_i (R_i - \bar R)^2}{m^2 (n^3 - n) - m \sum_f t_f}

    where :math:`t_f = \sum (t^3 - t)` over the groups of t ties in fold f.

    Parameters
    ----------
    scales : array of shape (n_folds, n_rois)
        Learned scales of the measured regions.

    Returns
    -------
    float
        0 for no agreement, 1 for the same order in every fold. NaN with fewer than
        two folds or regions, or where all is tied. Training folds overlap, so
        agreement is no evidence that another sample would agree.

    Examples
    --------
    >>> fold_agreement(np.array([[0.1, 0.2, 0.3], [1.0, 2.0, 3.0]]))
    1.0
    """
    n_folds, n_rois = scales.shape
    ranks = rank_rows(scales)
    spread = ((ranks.sum(axis=0) - ranks.sum(axis=0).mean()) ** 2).sum()
    ties = 0.0
    for row in ranks:
        _, size = np.unique(row, return_counts=True)
        ties += float((size**3 - size).sum())
    most = n_folds**2 * (n_rois**3 - n_rois) - n_folds * ties
    return float(12 * spread / most) if n_folds > 1 and most > 0 else float("nan")


def top_k_overlap(scales: np.ndarray, top_k: int = 10) -> float:
    """Return how far the folds agree on the k smallest: mean Jaccard index of pairs.

    Parameters
    ----------
    scales : array of shape (n_folds, n_rois)
        Learned scales of the measured regions.
    top_k : int
        How many regions; those tied with the last count too.

    Returns
    -------
    float
        Common regions over regions in either, from 0 to 1; NaN with fewer than two
        folds. By chance it is about k / (2 n - k) for n regions.

    Examples
    --------
    >>> top_k_overlap(np.array([[0.1, 0.2, 0.3, 0.4], [0.1, 0.5, 0.6, 0.2]]), 1)
    1.0
    """
    tops = rank_rows(scales, "min") <= top_k
    found = [(a & b).sum() / (a | b).sum() for a, b in combinations(tops, 2)]
    return float(np.mean(found)) if found else float("nan")


def agreement_table(
    scales: Mapping[str, np.ndarray], measured: np.ndarray, top_k: int = 10
) -> pd.DataFrame:
    """Return how far folds agree within each kernel, and kernels with one another.

    Parameters
    ----------
    scales : mapping of str to array of shape (n_folds, n_rois)
        Learned scales by model; likewise by start or by view of importance.
    measured : array of bool of shape (n_rois,)
        Regions that count.
    top_k : int
        How many regions are the top.

    Returns
    -------
    DataFrame
        Columns first, second (the same name: its folds among themselves); kendall_w,
        of the folds, or of the two mean maps; spearman, of the mean maps (NaN within
        one model); and top_k_jaccard.

    Examples
    --------
    >>> folds = {"C": np.array([[0.1, 0.2, 0.3], [0.1, 0.3, 0.2]])}
    >>> agreement_table(folds, np.ones(3, bool), top_k=1)[
    ...     ["kendall_w", "top_k_jaccard"]
    ... ]
       kendall_w  top_k_jaccard
    0       0.75            1.0
    """
    known = {name: np.atleast_2d(one)[:, measured] for name, one in scales.items()}
    rows = [(name, name, one) for name, one in known.items()]
    means = {name: one.mean(axis=0) for name, one in known.items()}
    rows += [(a, b, np.stack([means[a], means[b]])) for a, b in combinations(means, 2)]
    return pd.DataFrame(
        {
            "first": first,
            "second": second,
            "kendall_w": fold_agreement(both),
            "spearman": float("nan") if first == second else rank_correlation(*both),
            "top_k_jaccard": top_k_overlap(both, top_k),
        }
        for first, second, both in rows
    )


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Return Spearman's correlation; NaN where a map is constant or too short.

    Parameters
    ----------
    first, second : arrays of shape (n_rois,)
        A pair with NaN does not count.

    Returns
    -------
    float

    Examples
    --------
    >>> rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0]))
    0.5
    """
    both = np.stack([first, second]).astype(float)
    both = both[:, np.isfinite(both).all(axis=0)]
    if both.shape[1] < 3:
        return float("nan")
    ranks = rank_rows(both)
    if (ranks.std(axis=1) == 0).any():
        return float("nan")
    return float(np.corrcoef(ranks)[0, 1].round(12))
