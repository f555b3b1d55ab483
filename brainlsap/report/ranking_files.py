"""The ranking of a results folder, as text and as files."""

from pathlib import Path

import pandas as pd

from brainlsap.data.spreadsheets import write_tsv
from brainlsap.evaluation import add_evidence, rank_regions, ranking_verdict
from brainlsap.report.folder import replace_folder
from brainlsap.report.map_comparison import (
    compare_maps,
    comparison_words,
    read_maps,
)
from brainlsap.report.page_tables import ranking_tables
from brainlsap.report.ranking_words import ranking_words
from brainlsap.report.stored import read_results
from brainlsap.report.tables import region_table
from brainlsap.report.text_tables import table_text, write_every_style


def write_ranking(
    results: str | Path,
    out: str | Path | None = None,
    *,
    model: str | None = None,
    top_k: int = 10,
    names: str = "short",
    style: str = "markdown",
    against: str | Path | None = None,
    column: str | None = None,
    n_spins: int = 1000,
    random_state: int = 0,
) -> str:
    """Rank the regions of a results folder; say it in words and a table.

    Parameters
    ----------
    results : str or Path
        Results folder, with its `private/`.
    out : str or Path, optional
        Folder to write ranking.tsv, notes.txt and all tables of regions to, in every
        style: new, empty, or written so before.
    model : str, optional
        Which; by default the one whose evidence is stored, or the first with scales.
    top_k : int
        How many regions are the top, and shown.
    names : {"short", "long", "atlas"}
        How regions are called in the first table.
    style : {"csv", "latex", "markdown", "tsv"}
        Of the table in the text.
    against : str or Path, optional
        Maps to compare the scales with by the spin test, as
        :func:`brainlsap.report.read_maps` reads them.
    column : str, optional
        Which of them; by default all.
    n_spins, random_state : int
        Rotations of the cortex, and their seed.

    Returns
    -------
    str
        What the ranking is worth, one sentence a line, then the regions of smallest
        scale. No person is named.

    Raises
    ------
    FileFormatError
        Where there is no stored evaluation.
    ParameterError
        Where the model has no scales, `out` holds what no report wrote, or the maps
        cannot be compared.

    Examples
    --------
    See :func:`brainlsap.report.read_results`.
    """
    found = read_results(results)
    evaluation, evidence = found.evaluation, found.evidence
    if evidence is not None and model is not None and model != evidence.model:
        evidence = None
    if model is None and evidence is not None:
        model = evidence.model
    ranking = rank_regions(evaluation, model=model, top_k=top_k, truth=found.truth)
    if evidence is not None:
        ranking = add_evidence(ranking, evidence)
    chosen = next(
        one
        for name, one in evaluation.results.items()
        if name == model or (model is None and one.scales() is not None)
    )
    verdict = ranking_verdict(ranking)
    words = ranking_words(ranking, chosen.scales(), found.truth, evidence)
    notes = "\n".join([*([verdict] if verdict else []), *words])
    regions = region_table(ranking, found.atlas, top_k, names=names)
    compared: dict[str, pd.DataFrame] = {}
    if against is not None:
        maps = read_maps(against, found.atlas, column)
        spins = {"n_spins": n_spins, "random_state": random_state}
        compared["against"] = compare_maps(ranking, maps, found.atlas, **spins)
        notes += "\n" + comparison_words(compared["against"], chosen.name)
    if out is not None:
        tables = {**ranking_tables(found, ranking), "regions": regions, **compared}
        with replace_folder(out) as fresh:
            write_tsv(ranking, fresh / "ranking.tsv")
            (fresh / "notes.txt").write_text(f"{notes}\n", encoding="utf-8")
            write_every_style(tables, fresh)
    return f"{notes}\n\n{table_text(regions, style)}"
