"""Every table of a report, by name."""

from collections.abc import Callable

import pandas as pd

from brainlsap.report.audit_tables import audit_table, info_sheet
from brainlsap.report.common_regions import (
    common_region_table,
    mean_scales,
    short_region_table,
)
from brainlsap.report.comparison_tables import chosen_table, classification_table
from brainlsap.report.demographics import demographics_tests
from brainlsap.report.folder import scan_codes
from brainlsap.report.ranking_tables import agreement_text, confound_text, group_text
from brainlsap.report.record import fit_table
from brainlsap.report.score_tables import score_table
from brainlsap.report.statistics_tables import (
    class_rate_table,
    comparison_table,
    division_table,
    interval_table,
)
from brainlsap.report.stored import StoredResults
from brainlsap.report.tables import demographics_table, region_table, seed_table
from brainlsap.report.words import fold_table


def page_tables(
    results: StoredResults,
    ranking: pd.DataFrame | None,
    withhold: Callable[[str], str],
    with_identifiers: bool = False,
) -> dict[str, pd.DataFrame]:
    """Return every table of a report, by the name of its files.

    Parameters
    ----------
    results : StoredResults
        What the report is made of.
    ranking : DataFrame or None
        As from :func:`brainlsap.evaluation.rank_regions`.
    withhold : function of str
        Takes names of people out of text.
    with_identifiers : bool
        Whether scans go by their names instead of codes.

    Returns
    -------
    dict of str to DataFrame
    """
    evaluation = results.evaluation
    cohort = evaluation.cohort
    tables = {
        "scores": score_table(evaluation),
        "intervals": interval_table(evaluation),
        "classification": classification_table(evaluation).drop(columns="seconds"),
        "comparison": comparison_table(evaluation),
        "classes": class_rate_table(evaluation),
        "demographics": demographics_table(cohort.table, cohort.classes),
        "demographics_tests": demographics_tests(cohort.table, cohort.classes),
        "folds": fold_table(evaluation),
        "audit": audit_table(evaluation, withhold),
        "info_sheet": info_sheet(evaluation, withhold),
    }
    if len(chosen := chosen_table(evaluation)):
        tables["chosen"] = chosen
    for number, result in enumerate(evaluation.results.values(), start=1):
        tables[f"fit_{number}"] = fit_table(result)
    if results.by_scan is not None:
        tables["by_scan"] = division_table(evaluation, results.by_scan)
    if results.quality is not None:
        codes = {} if with_identifiers else scan_codes(evaluation)
        tables["quality"] = quality_text(results.quality, codes)
    if ranking is not None:
        tables |= ranking_tables(results, ranking)
    return tables


def quality_text(quality: pd.DataFrame, codes: dict[str, str]) -> pd.DataFrame:
    """Return the scans in which something is unusual, under their codes.

    Parameters
    ----------
    quality : DataFrame
        Columns scan and flags.
    codes : dict of str to str
        From scan to code; empty to leave names.

    Returns
    -------
    DataFrame
        Columns scan and what is unusual; other scans that a flag names go by code.
    """
    flagged = quality[quality["flags"].fillna("") != ""]
    flags = [str(one) for one in flagged["flags"]]
    for scan in sorted(codes, key=len, reverse=True):
        flags = [one.replace(scan, codes[scan]) for one in flags]
    names = [codes.get(scan, scan) for scan in flagged["scan"]]
    table = pd.DataFrame({"scan": names, "what is unusual": flags})
    return table.sort_values("scan", ignore_index=True)


def ranking_tables(
    results: StoredResults, ranking: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    """Return the tables of regions, and what their ranking is held against.

    Parameters
    ----------
    results : StoredResults
        What the report is made of.
    ranking : DataFrame
        As from :func:`brainlsap.evaluation.rank_regions`.

    Returns
    -------
    dict of str to DataFrame
        By the name of their files.
    """
    evaluation, atlas = results.evaluation, results.atlas
    tables = {"regions": region_table(ranking, atlas)}
    known = ranking["measured"].any()
    if known:
        tables["agreement"] = agreement_text(evaluation, results.evidence)
    if known and "lobe" in atlas.regions:
        tables["lobes"] = group_text(ranking, atlas)
    if known and "network" in atlas.regions:
        tables["networks"] = group_text(ranking, atlas, "network")
    if results.evidence is not None and results.evidence.properties is not None:
        tables["confounds"] = confound_text(ranking, results.evidence)
    if "seed" in ranking:
        tables["answer_key"] = seed_table(ranking, atlas)
    if len(mean_scales(evaluation)) > 1:
        tables["common_regions"] = common_region_table(evaluation, atlas)
        tables["common_regions_short"] = short_region_table(evaluation, atlas)
    return tables
