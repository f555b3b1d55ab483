"""What a ranking of regions is worth, in sentences."""

import numpy as np
import pandas as pd

from brainlsap.evaluation import (
    RankingEvidence,
    fold_agreement,
    ranking_auc,
    ranking_notes,
    ranking_verdict,
)
from brainlsap.report.words import ALPHA, count


def ranking_words(
    ranking: pd.DataFrame,
    scales: np.ndarray | None,
    truth: pd.DataFrame | None,
    evidence: RankingEvidence | None = None,
) -> tuple[str, ...]:
    """Say what a ranking of regions is worth.

    Parameters
    ----------
    ranking : DataFrame
        As from :func:`brainlsap.evaluation.rank_regions`.
    scales : array of shape (n_folds, n_rois) or None
        Scales of all folds, for their agreement.
    truth : DataFrame or None
        Answer key of a simulated cohort.
    evidence : RankingEvidence, optional
        What else was found out.

    Returns
    -------
    tuple of str
        Sentences.
    """
    sentences = [] if "p_family" not in ranking else [_null_sentence(ranking)]
    if truth is not None:
        auc = ranking_auc(ranking, truth)
        known = ranking["measured"].to_numpy(dtype=bool)
        seeds = int(
            ranking["region"].isin(truth.loc[truth["seed"], "region"])[known].sum()
        )
        sentences.append(
            f"Against the answer key of the simulation, the smallest scales recover "
            f"the {seeds} measured seed regions with an AUC of {auc:.3f} (1 is "
            "perfect, 0.5 is chance)."
        )
    verdict = ranking_verdict(ranking)
    # said before all, in the summary
    sentences += [one for one in ranking_notes(ranking, evidence) if one != verdict]
    if scales is not None:
        agreement = fold_agreement(scales[:, ranking["measured"].to_numpy(dtype=bool)])
        if np.isfinite(agreement):
            sentences.append(
                f"Kendall's W of the folds is {agreement:.2f} (1: the same order in "
                "every fold). Folds share training scans, so this is agreement on "
                "this sample, not evidence that another would agree."
            )
    if "p_family" not in ranking:
        sentences.append(
            "No null distribution was computed here: a small scale is a property of "
            "the fitted model, not a test of the region. `brainlsap rank` with "
            "--permutations makes one."
        )
    return tuple(sentences)


def _null_sentence(ranking: pd.DataFrame) -> str:
    found = int((ranking["p_family"] < ALPHA).sum())
    by_rate = int((ranking["p_fdr"] < ALPHA).sum())
    verb = "has" if found == 1 else "have"
    return (
        f"{count(found, 'region')} {verb} a scale smaller than fits to labels permuted "
        f"between people give, at a family-wise corrected p < {ALPHA:g}; {by_rate} at "
        f"a false discovery rate below {ALPHA:.0%}. Where a label can be learned at "
        "all, training may move every scale: this is a test of the ranking, not yet of "
        f"each region.{_centred_sentence(ranking)}"
    )


def _centred_sentence(ranking: pd.DataFrame) -> str:
    if "p_centred" not in ranking:
        return ""
    found = ranking[ranking["p_centred"] < ALPHA]
    told = " (by name in the table)" if len(found) else ""
    return (
        f" Against the median and spread of their fit, which tells regions apart, "
        f"{count(len(found), 'region')} stand{'s' if len(found) == 1 else ''} out at a "
        f"family-wise corrected p < {ALPHA:g}{told}."
    )
