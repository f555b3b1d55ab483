"""Regions ranked by learned scale, and how far that ranking can be trusted."""

import numpy as np
import pandas as pd

from brainlsap._arrays import check_choice
from brainlsap.evaluation.records import Evaluation, ModelResult
from brainlsap.exceptions import ParameterError

MOVED = 0.05
"""A scale that ends within this part of its start was not learned."""

RANK_BY = ("scale", "mean_rank")


def rank_regions(
    result: ModelResult | Evaluation,
    by: str = "scale",
    *,
    model: str | None = None,
    top_k: int = 10,
    truth: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Rank the measured regions, smallest learned scale first.

    A small scale means that the model keeps the region's own value instead of
    averaging it with its neighbours on the network.

    Parameters
    ----------
    result : ModelResult or Evaluation
        Of a model with scales; of an evaluation the first such model is taken.
    by : {"scale", "mean_rank"}
        Rank by the mean scale over folds, or by the mean of the ranks of the folds.
    model : str, optional
        Name of the model within an evaluation.
    top_k : int
        For `top_share`.
    truth : DataFrame, optional
        Answer key of a simulated cohort: columns region and seed (bool).

    Returns
    -------
    DataFrame
        One row per region in the order of the atlas: region; scale and scale_sd, mean
        and s.d. over folds; mean_rank, over folds; rank (1 is the smallest, equals
        share the smaller number, NaN if not measured); top_share, the part of the
        folds in which the region is among the `top_k` smallest; measured; moved,
        whether the scale left its start by more than 5% in most folds (missing where
        the model does not tell its start); tied, whether others have the same rank;
        and seed, where `truth` is given.

    Raises
    ------
    ParameterError
        Where the model has no scales, or `truth` does not name regions.

    Examples
    --------
    >>> folds = np.array([[0.4, 2.0, 0.9], [0.2, 2.0, 1.1]])
    >>> ranking = rank_scales(folds, ("a", "b", "c"), start=np.full((2, 3), 2.0))
    >>> ranking[["region", "scale", "rank", "moved"]]
      region  scale  rank  moved
    0      a    0.3   1.0   True
    1      b    2.0   3.0  False
    2      c    1.0   2.0   True
    """
    found = _with_scales(result, model)
    scales = found.scales()
    if scales is None:
        raise ParameterError(
            f"model {found.name!r} has no scales to rank regions by; a model needs "
            "`scales_` after fit, as LSAPClassifier has."
        )
    return rank_scales(
        scales,
        found.region_names,
        measured=found.measured,
        start=found.scales_start(),
        by=by,
        top_k=top_k,
        truth=truth,
    )


def rank_scales(
    scales: np.ndarray,
    region_names: tuple[str, ...],
    *,
    measured: np.ndarray | None = None,
    start: np.ndarray | None = None,
    by: str = "scale",
    top_k: int = 10,
    truth: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Rank regions by an array of scales; :func:`rank_regions` explains the columns.

    Parameters
    ----------
    scales : array of shape (n_folds, n_rois)
        Learned scales.
    region_names : tuple of str
        Name of every region.
    measured : array of bool of shape (n_rois,), optional
        By default all are.
    start : array of shape (n_folds, n_rois), optional
        Where the scales started.
    by : {"scale", "mean_rank"}
        What the rank is of.
    top_k : int
        For `top_share`.
    truth : DataFrame, optional
        Answer key: columns region and seed (bool).

    Returns
    -------
    DataFrame
        As of :func:`rank_regions`.

    Examples
    --------
    >>> rank_scales(np.array([[0.4, 2.0], [0.2, 1.0]]), ("a", "b"))["rank"].tolist()
    [1.0, 2.0]
    """
    check_choice("by", by, RANK_BY)
    known = np.ones(len(region_names), bool) if measured is None else measured
    fold_ranks = _ranks(np.where(known, scales, np.nan), "min")
    # The half rank of ties, so that a mean over folds is fair to each of them.
    mean_rank = _ranks(np.where(known, scales, np.nan), "average").mean(axis=0)
    mean = scales.mean(axis=0)
    basis = np.where(known, mean if by == "scale" else mean_rank, np.nan)
    rank = _ranks(basis[None, :], "min")[0]
    n_folds = len(scales)
    frame = pd.DataFrame(
        {
            "region": list(region_names),
            "scale": mean,
            "scale_sd": scales.std(axis=0, ddof=1) if n_folds > 1 else np.nan,
            "mean_rank": mean_rank,
            "rank": rank,
            "top_share": np.where(known, (fold_ranks <= top_k).mean(axis=0), np.nan),
            "measured": known,
            "moved": _moved(scales, start),
            "tied": known & pd.Series(rank).duplicated(keep=False).to_numpy(),
        }
    )
    if truth is not None:
        frame["seed"] = _seeds(frame, truth)
    return frame


def ranking_auc(ranking: pd.DataFrame, truth: pd.DataFrame) -> float:
    """Return how well the smallest ranks recover the regions of the answer key.

    Parameters
    ----------
    ranking : DataFrame
        As from :func:`rank_regions`.
    truth : DataFrame
        Answer key: columns region and seed (bool).

    Returns
    -------
    float
        Area under the curve among the measured regions: the probability that a seed
        ranks before a region that is none. 0.5 is chance, 1 is perfect.

    Raises
    ------
    ParameterError
        Where `truth` does not name regions, or among the measured ones all or none
        are seeds.

    Examples
    --------
    >>> ranking = rank_scales(np.array([[0.4, 2.0, 0.9]]), ("a", "b", "c"))
    >>> ranking_auc(ranking, pd.DataFrame({"region": ["a"], "seed": [True]}))
    1.0
    """
    from sklearn.metrics import roc_auc_score

    known = ranking["measured"].to_numpy(dtype=bool)
    seed = _seeds(ranking, truth)[known]
    if not 0 < seed.sum() < len(seed):
        raise ParameterError(
            "truth must mark some of the measured regions as seeds, got "
            f"{int(seed.sum())} of {len(seed)}."
        )
    return float(roc_auc_score(seed, -ranking.loc[known, "rank"].to_numpy()))


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
    ranks = _ranks(scales, "average")
    spread = ((ranks.sum(axis=0) - ranks.sum(axis=0).mean()) ** 2).sum()
    ties = 0.0
    for row in ranks:
        _, size = np.unique(row, return_counts=True)
        ties += float((size**3 - size).sum())
    most = n_folds**2 * (n_rois**3 - n_rois) - n_folds * ties
    return float(12 * spread / most) if n_folds > 1 and most > 0 else float("nan")


def _with_scales(result: ModelResult | Evaluation, model: str | None) -> ModelResult:
    if isinstance(result, ModelResult):
        return result
    if model is not None:
        return result.result(model)
    with_scales = [one for one in result.results.values() if one.scales() is not None]
    return with_scales[0] if with_scales else result.main


def _ranks(values: np.ndarray, method: str) -> np.ndarray:
    """Rank each row, NaN as NaN; what is equal to six digits is tied."""
    from scipy.stats import rankdata

    rounded = np.vectorize(lambda value: float(f"{value:.5e}"))(values)
    ranks = rankdata(rounded, method=method, axis=1, nan_policy="omit")
    return ranks.astype(np.float64)


def _moved(scales: np.ndarray, start: np.ndarray | None) -> pd.Series:
    if start is None:
        return pd.Series([pd.NA] * scales.shape[1], dtype="boolean")
    beyond = np.abs(scales - start) > MOVED * np.abs(start)
    return pd.Series(beyond.mean(axis=0) > 0.5, dtype="boolean")


def _seeds(ranking: pd.DataFrame, truth: pd.DataFrame) -> np.ndarray:
    missing = [name for name in ("region", "seed") if name not in truth]
    if missing:
        raise ParameterError(
            f"truth must have the columns region and seed; {', '.join(missing)} "
            "missing. Cohort.truth of a simulated cohort has them."
        )
    seeds = set(truth.loc[truth["seed"].astype(bool), "region"])
    unknown = sorted(seeds - set(ranking["region"]))
    if unknown:
        raise ParameterError(
            f"truth names regions that the ranking has not: {', '.join(unknown[:3])}."
        )
    return ranking["region"].isin(seeds).to_numpy()
