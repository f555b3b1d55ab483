"""Regions ranked by learned scale, and how far that ranking can be trusted."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from brainlsap._arrays import check_choice
from brainlsap.evaluation.ranking_agreement import rank_rows
from brainlsap.evaluation.ranking_evidence import RankingEvidence, add_evidence
from brainlsap.evaluation.ranking_spread import scale_spread
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
    evidence: RankingEvidence | None = None,
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
    evidence : RankingEvidence, optional
        Adds the columns of :func:`brainlsap.evaluation.add_evidence`: nulls, starts,
        confounds, a second view of importance.

    Returns
    -------
    DataFrame
        One row per region in the order of the atlas: region; scale and scale_sd, mean
        and s.d. over folds; mean_rank, over folds; rank (1 is the smallest, equals
        share the smaller number, NaN if not measured); top_share, the part of the
        folds in which the region is among the `top_k` smallest; measured; moved,
        whether the scale left its start by more than 5% in most folds (missing where
        the model does not tell its start); tied, whether others have the same rank;
        then intervals and deviations over folds, repeats and seeds, as of
        :func:`brainlsap.evaluation.scale_spread`; and seed, where `truth` is given.

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
    repeats = 1
    if isinstance(result, Evaluation):
        repeats = result.settings.get("n_repeats", 1)
    ranking = rank_scales(
        scales,
        found.region_names,
        measured=found.measured,
        start=found.scales_start(),
        by=by,
        top_k=top_k,
        truth=truth,
        seeds=seed_scales(found),
        n_repeats=repeats if len(scales) % repeats == 0 else 1,
    )
    return ranking if evidence is None else add_evidence(ranking, evidence)


def seed_scales(result: ModelResult) -> list[np.ndarray] | None:
    """Return the scales of every network that was averaged, fold by fold.

    Parameters
    ----------
    result : ModelResult
        Of a model whose `fit_report_` holds `scales_by_start`, as LSAPClassifier's.

    Returns
    -------
    list of arrays of shape (n_seeds, n_rois), or None
        None where some fold does not tell them.

    Examples
    --------
    See :func:`brainlsap.evaluation.rank_regions`.
    """
    told = [
        one.details.get("fit_report", {}).get("scales_by_start") for one in result.folds
    ]
    arrays = [np.atleast_2d(np.array(one, dtype=float)) for one in told if one]
    width = len(result.region_names)
    whole = len(arrays) == len(told) and all(one.shape[1] == width for one in arrays)
    return arrays if whole else None


def rank_scales(
    scales: np.ndarray,
    region_names: tuple[str, ...],
    *,
    measured: np.ndarray | None = None,
    start: np.ndarray | None = None,
    by: str = "scale",
    top_k: int = 10,
    truth: pd.DataFrame | None = None,
    seeds: Sequence[np.ndarray] | None = None,
    n_repeats: int = 1,
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
    seeds : sequence of arrays of shape (n_seeds, n_rois), optional
        Of every fold, the scales of each network that was averaged.
    n_repeats : int
        How often folds were drawn; those of one repeat stand together.

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
    fold_ranks = rank_rows(np.where(known, scales, np.nan), "min")
    # The half rank of ties, so that a mean over folds is fair to each of them.
    mean_rank = rank_rows(np.where(known, scales, np.nan), "average").mean(axis=0)
    mean = scales.mean(axis=0)
    basis = np.where(known, mean if by == "scale" else mean_rank, np.nan)
    rank = rank_rows(basis[None, :], "min")[0]
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
    spread = scale_spread(scales, known, seeds=seeds, n_repeats=n_repeats)
    frame = pd.concat([frame, spread], axis=1)
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


def _with_scales(result: ModelResult | Evaluation, model: str | None) -> ModelResult:
    if isinstance(result, ModelResult):
        return result
    if model is not None:
        return result.result(model)
    with_scales = [one for one in result.results.values() if one.scales() is not None]
    return with_scales[0] if with_scales else result.main


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
