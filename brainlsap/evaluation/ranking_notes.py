"""What limits a ranking, in words."""

import numpy as np
import pandas as pd

from brainlsap.evaluation.ranking_agreement import rank_correlation
from brainlsap.evaluation.ranking_confounds import confound_table, rank_without
from brainlsap.evaluation.ranking_evidence import RankingEvidence, untrained_agreement
from brainlsap.evaluation.ranking_nulls import ALPHA, beats_null
from brainlsap.evaluation.ranking_reach import WHOLE_BRAIN

# A ranking that untrained networks have to this degree was not learned from labels.
_ALREADY_THERE = 0.5


def ranking_notes(
    ranking: pd.DataFrame, evidence: RankingEvidence | None = None
) -> tuple[str, ...]:
    """Say in words what limits a ranking: nulls, confounds, still scales, ties, gaps.

    Parameters
    ----------
    ranking : DataFrame
        As from :func:`brainlsap.evaluation.rank_regions`.
    evidence : RankingEvidence, optional
        What else was found out.

    Returns
    -------
    tuple of str
        Sentences; the gravest first; empty where there is nothing to say.

    Examples
    --------
    >>> import numpy as np
    >>> from brainlsap.evaluation import rank_scales
    >>> ranking = rank_scales(np.full((1, 3), 2.0), ("a", "b", "c"))
    >>> ranking_notes(ranking)[-1]
    'All 3 measured regions have the same scale: there is no ranking.'
    """
    verdict = ranking_verdict(ranking)
    notes = [] if verdict is None else [verdict]
    if evidence is not None:
        notes += _reach_notes(evidence)
        notes += _confound_notes(ranking, evidence)
        notes += _start_notes(ranking, evidence)
    return (*notes, *_scale_notes(ranking))


def ranking_verdict(ranking: pd.DataFrame) -> str | None:
    """Say that a ranking is not better than its null, where it is not.

    Parameters
    ----------
    ranking : DataFrame
        With the columns p_family and p_centred, where a null was computed.

    Returns
    -------
    str or None
        The first line of a report; None where some region is better than the null,
        or no null was computed. Where only scales against the median of their fit
        are (p_centred below half the level, for it is a second test), that is said.

    Examples
    --------
    >>> ranking = pd.DataFrame({"region": ["a"], "p_family": [0.4], "measured": [True]})
    >>> ranking_verdict(ranking)[:49]
    'The ranking of regions is not better than its nul'
    """
    if "p_family" not in ranking or beats_null(ranking["p_family"]):
        return None
    smallest = ranking["p_family"].min()
    sharp = ranking.get("p_centred", pd.Series(dtype=float)) < ALPHA / 2
    if sharp.any():
        return (
            "Scales as a whole are not smaller than in fits to permuted labels "
            f"(smallest family-wise corrected p = {smallest:.2f}); against the median "
            f"of their fit, {int(sharp.sum())} are (centred p < {ALPHA / 2:g}). Of the "
            "ranking, interpret these alone."
        )
    return (
        "The ranking of regions is not better than its null: fits to permuted labels "
        "give scales as small as these (smallest family-wise corrected p = "
        f"{smallest:.2f}). Do not interpret it."
    )


def _reach_notes(evidence: RankingEvidence) -> list[str]:
    dense = {k: v for k, v in evidence.rank_one.items() if v > WHOLE_BRAIN}
    if not dense:
        return []
    told = ", ".join(f"{name} {share:.0%}" for name, share in dense.items())
    return [
        "At the learned scales the mean kernel is almost one pattern for all regions "
        f"(share of rank one: {told}): scale here means own value against the "
        "whole-brain mean, not reach along connections. Sparser connectomes, by a "
        "threshold or weights, would change that."
    ]


def _confound_notes(ranking: pd.DataFrame, evidence: RankingEvidence) -> list[str]:
    if evidence.properties is None:
        return []
    table = confound_table(ranking, evidence.properties)
    flagged = table[table["flagged"]].sort_values("spearman", key=abs, ascending=False)
    if flagged.empty:
        return []
    told = ", ".join(
        f"{str(row['property']).replace('_', ' of ')} (Spearman {row['spearman']:+.2f})"
        for row in flagged.to_dict("records")
    )
    explained = rank_without(ranking, evidence.properties).attrs["explained"]
    part = f" Together the properties explain {explained:.0%} of the ranks' variance."
    return [
        f"Scale follows {told}: the order may be one of the network or the measure "
        "and not of the label; see the ranking after removing them."
        + (part if np.isfinite(explained) else "")
    ]


def _start_notes(ranking: pd.DataFrame, evidence: RankingEvidence) -> list[str]:
    notes = []
    there = untrained_agreement(evidence)
    if there >= _ALREADY_THERE:
        notes.append(
            "Networks before training order the regions alike (Spearman "
            f"{there:.2f}): much of the ranking was not learned from the labels."
        )
    known = ranking["measured"].to_numpy(dtype=bool)
    means = [one.mean(axis=0)[known] for one in evidence.starts.values()]
    pairs = [
        rank_correlation(a, b) for i, a in enumerate(means) for b in means[i + 1 :]
    ]
    if pairs and not min(pairs) >= _ALREADY_THERE:
        starts = ", ".join(f"{start:g}" for start in evidence.starts)
        notes.append(
            f"The ranking hangs on where scales start: between the starts {starts} "
            f"the lowest rank correlation is {min(pairs):.2f}."
        )
    return notes


def _scale_notes(ranking: pd.DataFrame) -> list[str]:
    known = ranking[ranking["measured"]]
    n_measured, notes = len(known), []
    still = int((~known["moved"].fillna(True).astype(bool)).sum())
    if known["moved"].isna().all():
        notes.append("The model does not tell where its scales started.")
    elif still == n_measured:
        notes.append(
            "No region's scale left its start by more than 5%: the scales were not "
            "learned, and their order says nothing."
        )
    elif still:
        notes.append(
            f"The scales of {still} of {n_measured} measured regions stayed within "
            "5% of their start: they were not learned."
        )
    tied = int(known["tied"].sum())
    if tied == n_measured > 1:
        notes.append(
            f"All {n_measured} measured regions have the same scale: there is no "
            "ranking."
        )
    elif tied:
        notes.append(f"{tied} regions share their rank with others.")
    absent = len(ranking) - n_measured
    if absent:
        notes.append(f"{absent} regions were not measured and have no rank.")
    return notes
