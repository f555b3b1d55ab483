"""What a ranking is held against becomes tables."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from brainlsap.data import Atlas
from brainlsap.evaluation import (
    Evaluation,
    RankingEvidence,
    agreement_table,
    confound_table,
    group_ranking,
)

TOP_K = 10


def agreement_text(
    evaluation: Evaluation, evidence: RankingEvidence | None, top_k: int = TOP_K
) -> pd.DataFrame:
    """Return how far folds, kernels, starts and views of importance agree.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds; those with scales are compared.
    evidence : RankingEvidence or None
        Starts and importance, where they were made.
    top_k : int
        How many regions are the top.

    Returns
    -------
    DataFrame
        Columns what, Kendall's W, Spearman and top-k Jaccard, as text.

    Examples
    --------
    See :func:`brainlsap.report.write_report`.
    """
    scales = {
        name: one
        for name, result in evaluation.results.items()
        if (one := result.scales()) is not None
    }
    measured = evaluation.main.measured
    parts = [agreement_table(scales, measured, top_k)]
    if evidence is not None and evidence.model in scales:
        parts += _further(scales[evidence.model], evidence, measured, top_k)
    table = pd.concat(parts, ignore_index=True)
    same = table["first"] == table["second"]
    return pd.DataFrame(
        {
            "what": np.where(
                same,
                "folds of " + table["first"],
                table["first"] + " and " + table["second"],
            ),
            "Kendall's W": [_number(one) for one in table["kendall_w"]],
            "Spearman": [_number(one) for one in table["spearman"]],
            f"top-{top_k} Jaccard": [_number(one) for one in table["top_k_jaccard"]],
        }
    )


def confound_text(ranking: pd.DataFrame, evidence: RankingEvidence) -> pd.DataFrame:
    """Return how scale goes with degree, strength, size and variance, as text.

    Parameters
    ----------
    ranking : DataFrame
        As from :func:`brainlsap.evaluation.rank_regions`.
    evidence : RankingEvidence
        With properties.

    Returns
    -------
    DataFrame
        Columns property, regions, Spearman with scale, Holm p and remark.

    Examples
    --------
    See :func:`brainlsap.report.write_report`.
    """
    found = confound_table(ranking, evidence.properties)
    return pd.DataFrame(
        {
            "property": [str(one).replace("_", " of ") for one in found["property"]],
            "regions": found["n_regions"].to_numpy(),
            "Spearman with scale": [_number(one, "+") for one in found["spearman"]],
            "Holm p": [p_text(one) for one in found["p_holm"]],
            "remark": np.where(found["flagged"], "scale follows it", ""),
        }
    )


def group_text(
    ranking: pd.DataFrame, atlas: Atlas, by: str = "lobe", top_k: int = TOP_K
) -> pd.DataFrame:
    """Return scale and rank by lobe or network, as text.

    Parameters
    ----------
    ranking : DataFrame
        As from :func:`brainlsap.evaluation.rank_regions`.
    atlas : Atlas
        The regions.
    by : str
        Column of the atlas.
    top_k : int
        How many regions are the top.

    Returns
    -------
    DataFrame
        Columns by, regions, mean scale, mean rank, best rank, in the top k and
        expected there by chance.

    Examples
    --------
    See :func:`brainlsap.report.write_report`.
    """
    found = group_ranking(ranking, atlas, by, top_k=top_k)
    return pd.DataFrame(
        {
            by: found["group"],
            "regions": found["regions"],
            "mean scale": [f"{one:.3f}" for one in found["scale"]],
            "mean rank": [f"{one:.1f}" for one in found["mean_rank"]],
            "best rank": found["best_rank"].astype(int),
            f"in the top {top_k}": found["top"],
            "expected by chance": [f"{one:.1f}" for one in found["top_expected"]],
        }
    )


def p_text(p: float) -> str:
    """Return a p-value for a table: three decimals, or "< 0.001", or "n/a".

    Parameters
    ----------
    p : float
        NaN where there is none.

    Returns
    -------
    str
    """
    if not np.isfinite(p):
        return "n/a"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _further(
    scales: np.ndarray, evidence: RankingEvidence, measured: np.ndarray, top_k: int
) -> list[pd.DataFrame]:
    """Compare starts, and the other view of importance, with the scales."""
    parts = []
    starts = {f"start {start:g}": one for start, one in evidence.starts.items()}
    others: Mapping[str, np.ndarray] = starts if len(starts) > 1 else {}
    if others:
        parts.append(agreement_table(others, measured, top_k))
    if evidence.importance is not None:
        both = {
            f"scales of {evidence.model}": scales.mean(axis=0),
            evidence.importance_kind or "importance": -evidence.importance,
        }
        known = measured & np.isfinite(evidence.importance)
        parts.append(agreement_table(both, known, top_k).iloc[2:])
    return parts


def _number(value: float, sign: str = "") -> str:
    return f"{value:{sign}.2f}" if np.isfinite(value) else "n/a"
