"""Every table of a report, by name."""

from collections.abc import Callable

import pandas as pd

from brainlsap.data import Atlas
from brainlsap.evaluation import Evaluation
from brainlsap.report.audit_tables import audit_table, info_sheet
from brainlsap.report.record import fit_table
from brainlsap.report.score_tables import score_table
from brainlsap.report.statistics_tables import (
    class_rate_table,
    comparison_table,
    division_table,
    interval_table,
)
from brainlsap.report.tables import demographics_table, region_table, seed_table
from brainlsap.report.words import fold_table


def page_tables(
    evaluation: Evaluation,
    atlas: Atlas,
    ranking: pd.DataFrame | None,
    withhold: Callable[[str], str],
    by_scan: Evaluation | None = None,
) -> dict[str, pd.DataFrame]:
    """Return every table of a report, by the name of its files.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.
    atlas : Atlas
        The regions of the cohort.
    ranking : DataFrame or None
        As from :func:`brainlsap.evaluation.rank_regions`.
    withhold : function of str
        Takes names of people out of text.
    by_scan : Evaluation, optional
        The same models on folds that share people.

    Returns
    -------
    dict of str to DataFrame
    """
    cohort = evaluation.cohort
    tables = {
        "scores": score_table(evaluation),
        "intervals": interval_table(evaluation),
        "comparison": comparison_table(evaluation),
        "classes": class_rate_table(evaluation),
        "demographics": demographics_table(cohort.table, cohort.classes),
        "folds": fold_table(evaluation),
        "audit": audit_table(evaluation, withhold),
        "info_sheet": info_sheet(evaluation, withhold),
    }
    for number, result in enumerate(evaluation.results.values(), start=1):
        tables[f"fit_{number}"] = fit_table(result)
    if by_scan is not None:
        tables["by_scan"] = division_table(evaluation, by_scan)
    if ranking is not None:
        tables["regions"] = region_table(ranking, atlas)
        if "seed" in ranking:
            tables["answer_key"] = seed_table(ranking, atlas)
    return tables
