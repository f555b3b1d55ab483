"""One results folder, and the HTML page that binds it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from brainlsap._locks import hold_folder
from brainlsap.data import Atlas
from brainlsap.data.spreadsheets import write_tsv
from brainlsap.evaluation import Evaluation, RankingEvidence, ranking_auc
from brainlsap.report.contents import Contents, gather_contents
from brainlsap.report.folder import (
    PRIVATE,
    SHAREABLE,
    check_results_folder,
    predictions_table,
    replace_folder,
    scan_codes,
    write_private,
)
from brainlsap.report.folder_files import STORED, check_stored
from brainlsap.report.log import log_text
from brainlsap.report.record import made_with, timing_table
from brainlsap.report.rendering import render_page
from brainlsap.report.score_tables import mark_by_scan, score_numbers
from brainlsap.report.stored import StoredResults, read_results, store_results
from brainlsap.report.text_tables import write_every_style
from brainlsap.report.training_pictures import animate_training

PAGE, BRAIN = "report.html", "brain.html"


def write_report(
    evaluation: Evaluation,
    folder: str | Path,
    *,
    atlas: Atlas,
    ranking: pd.DataFrame | None = None,
    truth: pd.DataFrame | None = None,
    cohort_notes: Sequence[str] = (),
    title: str | None = None,
    surface_maps: Mapping[str, Any] | None = None,
    by_scan: Evaluation | None = None,
    evidence: RankingEvidence | None = None,
    quality: pd.DataFrame | None = None,
    with_identifiers: bool = False,
) -> Path:
    """Write one results folder: tables, figures, settings, and the page over them.

    The folder appears whole or not at all. `report/` in it may be shared: scans have
    codes, and no person is named. `private/`, which only its owner can read, holds
    the splits and predictions by name, the key of the codes, and the evaluation
    itself, from which :func:`remake_report` makes the page anew. `report/timing.tsv`
    and `report/log.txt` alone tell of the machine and its speed.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    folder : str or Path
        New, empty, or an earlier report, which is replaced.
    atlas : Atlas
        The regions of the cohort.
    ranking : DataFrame, optional
        As from :func:`brainlsap.evaluation.rank_regions`; by default made here, where
        a model has scales.
    truth : DataFrame, optional
        Answer key of a simulated cohort: columns region and seed.
    cohort_notes : sequence of str
        Further notes on how the cohort was read, beside its own.
    title : str, optional
        Heading of the page.
    surface_maps : mapping of str to (mapping or Series), optional
        Heat scales to draw on the brain, by the name of the model: one value per
        region name, one row of drawings for each. By default the mean scale of the
        measured regions.
    by_scan : Evaluation, optional
        The same models on folds that share people, to be shown beside: `by_scan` of
        :func:`brainlsap.evaluation.score_by_person_and_by_scan`.
    evidence : RankingEvidence, optional
        What the ranking is held against: nulls, starts, confounds, importance.
    quality : DataFrame, optional
        One row per scan: scan, and flags in words, as of
        :func:`brainlsap.data.quality_table` with its index as a column.
    with_identifiers : bool
        Whether `report/` may name scans and people. By default it does not.

    Returns
    -------
    Path
        The page, `folder/report/report.html`.

    Raises
    ------
    ParameterError
        Where the folder holds what no report wrote, or another run is in it.
    WritingError
        Where the disk is full, or the folder may not be written to.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.dummy import DummyClassifier
    >>> from brainlsap.data import make_cohort
    >>> from brainlsap.evaluation import cross_validate
    >>> cohort = make_cohort(30, atlas="desikan82")
    >>> evaluation = cross_validate(DummyClassifier(), cohort, 2, baselines=False)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     page = write_report(evaluation, f"{place}/results", atlas=cohort.atlas)
    ...     sorted(one.name for one in page.parent.iterdir())[:3]
    ['figures', 'log.txt', 'methods.txt']
    """
    results = StoredResults(
        evaluation=evaluation,
        atlas=atlas,
        title=title,
        truth=truth,
        evidence=evidence,
        quality=None if quality is None else quality[["scan", "flags"]],
        cohort_notes=tuple(cohort_notes),
        by_scan=by_scan,
    )
    return _write(results, folder, ranking, surface_maps, with_identifiers)


def remake_report(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    title: str | None = None,
    evidence: RankingEvidence | None = None,
    with_identifiers: bool = False,
    animation: bool = False,
) -> Path:
    """Make a report anew from its results folder; neither cohort nor torch is needed.

    Parameters
    ----------
    folder : str or Path
        Results folder, with its `private/`.
    out : str or Path, optional
        Another folder to write; by default the same, which is replaced.
    title : str, optional
        Another heading.
    evidence : RankingEvidence, optional
        In place of what was stored.
    with_identifiers : bool
        As for :func:`write_report`.
    animation : bool
        Whether to add the scales during training as a GIF, in `figures/`.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    FileFormatError
        Where the folder holds no stored evaluation.
    ParameterError
        Where `out` holds what no report wrote, or another run is in it.
    WritingError
        Where the disk is full, or `out` may not be written to.

    Examples
    --------
    See :func:`brainlsap.report.read_results`.
    """
    check_stored(folder)
    # held before it is read: a run that ends meanwhile must not be written over
    with hold_folder(check_results_folder(out or folder)) as target:
        results = read_results(folder)
        results = replace(
            results,
            title=title or results.title,
            evidence=evidence or results.evidence,
        )
        return _write(results, target, None, None, with_identifiers, animation)


def _write(
    results: StoredResults,
    folder: str | Path,
    ranking: pd.DataFrame | None,
    surface_maps: Mapping[str, Any] | None,
    with_identifiers: bool,
    animation: bool = False,
) -> Path:
    evaluation = results.evaluation
    results = replace(results, made_with=results.made_with or made_with())
    with replace_folder(folder) as fresh:
        contents = gather_contents(
            results, ranking, surface_maps, with_identifiers=with_identifiers
        )
        codes = scan_codes(evaluation)
        private = write_private(evaluation, fresh / PRIVATE, codes)
        store_results(results, private / STORED)
        for file in private.iterdir():
            file.chmod(0o600)
        inside = fresh / SHAREABLE
        (inside / "figures").mkdir(parents=True)
        if animation:
            animate_training(evaluation, results.atlas, inside / "figures")
        _write_shareable(contents, inside, codes, log_text(results, codes))
    return Path(folder).expanduser().resolve() / SHAREABLE / PAGE


def _write_shareable(
    contents: Contents, folder: Path, codes: dict[str, str], log: str
) -> None:
    evaluation, ranking = contents.evaluation, contents.ranking
    write_every_style(contents.tables, folder / "tables")
    told = predictions_table(evaluation, None if contents.identified else codes)
    write_tsv(told, folder / "predictions.tsv")
    by_fold = mark_by_scan(evaluation.scores(), evaluation)
    write_tsv(by_fold, folder / "scores_by_fold.tsv")
    write_tsv(score_numbers(evaluation), folder / "scores.tsv")
    write_tsv(timing_table(evaluation), folder / "timing.tsv")
    (folder / "log.txt").write_text(log, encoding="utf-8")
    if ranking is not None:
        write_tsv(ranking, folder / "ranking.tsv")
    pictures = [one for group in contents.pictures.values() for one in group]
    for one in pictures:
        (folder / "figures" / f"{one.name}.png").write_bytes(one.png)
    auc = None
    if ranking is not None and contents.truth is not None:
        auc = ranking_auc(ranking, contents.truth)
    evidence = contents.evidence
    record = {
        "title": contents.title,
        **contents.record,
        "ranking_evidence": None
        if evidence is None
        else _write_evidence(evidence, folder),
        "ranking_auc": auc,
        "figures": {f"figures/{one.name}.png": one.caption for one in pictures},
    }
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
    if contents.brain is not None:
        (folder / BRAIN).write_text(contents.brain, encoding="utf-8")
    (folder / "methods.txt").write_text("\n\n".join(contents.methods) + "\n", "utf-8")
    files = sorted(one.relative_to(folder).as_posix() for one in folder.rglob("*.*"))
    page = render_page(contents, files)
    (folder / PAGE).write_text(page, encoding="utf-8")


def _write_evidence(evidence: RankingEvidence, folder: Path) -> dict[str, Any]:
    """Write the mean connectome as a table, and return the rest as JSON takes it."""
    record = evidence.to_record()
    connectome = record.pop("connectome")
    if connectome is not None:
        names = list(evidence.region_names)
        matrix = pd.DataFrame(connectome, columns=names)
        matrix.insert(0, "region", names)
        write_tsv(matrix, folder / "mean_connectome.tsv")
    return record
