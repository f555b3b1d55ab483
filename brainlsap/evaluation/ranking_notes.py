"""What limits a ranking, in words."""

import pandas as pd


def ranking_notes(ranking: pd.DataFrame) -> tuple[str, ...]:
    """Say in words what limits a ranking: scales that did not move, ties, gaps.

    Parameters
    ----------
    ranking : DataFrame
        As from :func:`brainlsap.evaluation.rank_regions`.

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
    return tuple(notes)
