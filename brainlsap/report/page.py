"""One results folder, and the HTML page that binds it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from brainlsap.data import Atlas
from brainlsap.evaluation import Evaluation, rank_regions, ranking_auc
from brainlsap.report.audit_tables import (
    NOT_BY_PERSON,
    audit_words,
)
from brainlsap.report.folder import (
    PRIVATE,
    SHAREABLE,
    name_filter,
    predictions_table,
    replace_folder,
    scan_codes,
    write_private,
    write_tsv,
)
from brainlsap.report.illustrations import (
    Picture,
    draw_maps,
    draw_ranking,
    draw_scores,
    scale_map,
)
from brainlsap.report.page_tables import page_tables
from brainlsap.report.record import (
    approximation_errors,
    fit_warnings,
    run_record,
)
from brainlsap.report.score_tables import mark_by_scan, score_numbers
from brainlsap.report.text_tables import table_text
from brainlsap.report.words import (
    default_title,
    headline,
    promises,
    ranking_words,
)

PAGE = "report.html"
TEMPLATES = Path(__file__).parent / "templates"
ENDINGS = {"csv": "csv", "latex": "tex", "markdown": "md", "tsv": "tsv"}


@dataclass(frozen=True, eq=False)
class _Contents:
    """All that a report shows, before it is written."""

    evaluation: Evaluation
    atlas: Atlas
    title: str
    ranking: pd.DataFrame | None
    truth: pd.DataFrame | None
    notes: tuple[str, ...]
    pictures: dict[str, tuple[Picture, ...]]
    gaps: tuple[str, ...]
    tables: dict[str, pd.DataFrame]
    record: dict[str, Any]
    warnings: dict[str, list[str]]


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
) -> Path:
    """Write one results folder: tables, figures, settings, and the page over them.

    The folder appears whole or not at all. `report/` in it may be shared: scans have
    codes, and no person is named. `private/`, which only its owner can read, holds
    the splits and predictions by name and the key of the codes.

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

    Returns
    -------
    Path
        The page, `folder/report/report.html`.

    Raises
    ------
    ParameterError
        Where the folder holds what no report wrote.

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
    ['figures', 'predictions.tsv', 'report.html']
    """
    with replace_folder(folder) as fresh:
        ranking = _complete_ranking(evaluation, ranking, truth)
        withhold = name_filter(evaluation)
        notes = (*evaluation.cohort.notes, *cohort_notes)
        pictures, gaps = _pictures(evaluation, atlas, ranking, surface_maps)
        mark = f" ({NOT_BY_PERSON})" if evaluation.people_shared else ""
        contents = _Contents(
            evaluation=evaluation,
            atlas=atlas,
            title=f"{title or default_title(evaluation)}{mark}",
            ranking=ranking,
            truth=truth,
            notes=tuple(dict.fromkeys(withhold(note) for note in notes)),
            pictures=pictures,
            gaps=gaps,
            tables=page_tables(evaluation, atlas, ranking, withhold, by_scan),
            record=run_record(evaluation, withhold),
            warnings=fit_warnings(evaluation, withhold),
        )
        codes = scan_codes(evaluation)
        write_private(evaluation, fresh / PRIVATE, codes)
        _write_shareable(contents, fresh / SHAREABLE, codes)
    return Path(folder).expanduser().resolve() / SHAREABLE / PAGE


def _complete_ranking(
    evaluation: Evaluation, ranking: pd.DataFrame | None, truth: pd.DataFrame | None
) -> pd.DataFrame | None:
    """Return the ranking with the answer key marked, or None without scales."""
    if ranking is None:
        models = evaluation.results.values()
        if all(one.scales() is None for one in models):
            return None
        return rank_regions(evaluation, truth=truth)
    if truth is None or "seed" in ranking:
        return ranking
    seeds = truth.loc[truth["seed"].astype(bool), "region"]
    return ranking.assign(seed=ranking["region"].isin(seeds))


def _pictures(
    evaluation: Evaluation,
    atlas: Atlas,
    ranking: pd.DataFrame | None,
    surface_maps: Mapping[str, Any] | None,
) -> tuple[dict[str, tuple[Picture, ...]], tuple[str, ...]]:
    scores, confusion = draw_scores(evaluation)
    pictures: dict[str, tuple[Picture, ...]] = {
        "scores": (scores,),
        "confusion": (confusion,),
        "ranking": (),
    }
    if surface_maps is None:
        surface_maps = {} if ranking is None else scale_map(ranking)
    pictures["surfaces"], gaps = draw_maps(surface_maps, atlas)
    if ranking is not None and ranking["measured"].any():
        pictures["ranking"] = draw_ranking(ranking, atlas)
    return pictures, gaps


def _write_shareable(contents: _Contents, folder: Path, codes: dict[str, str]) -> None:
    evaluation, ranking = contents.evaluation, contents.ranking
    for inside in (folder / "tables", folder / "figures"):
        inside.mkdir(parents=True)
    for name, table in contents.tables.items():
        for style, ending in ENDINGS.items():
            text = table_text(table, style)
            (folder / "tables" / f"{name}.{ending}").write_text(text, encoding="utf-8")
    write_tsv(predictions_table(evaluation, codes), folder / "predictions.tsv")
    by_fold = mark_by_scan(evaluation.scores(), evaluation)
    write_tsv(by_fold, folder / "scores_by_fold.tsv")
    write_tsv(score_numbers(evaluation), folder / "scores.tsv")
    if ranking is not None:
        write_tsv(ranking, folder / "ranking.tsv")
    pictures = [one for group in contents.pictures.values() for one in group]
    for one in pictures:
        (folder / "figures" / f"{one.name}.png").write_bytes(one.png)
    auc = None
    if ranking is not None and contents.truth is not None:
        auc = ranking_auc(ranking, contents.truth)
    record = {
        "title": contents.title,
        **contents.record,
        "ranking_auc": auc,
        "figures": {f"figures/{one.name}.png": one.caption for one in pictures},
    }
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
    files = sorted(one.relative_to(folder).as_posix() for one in folder.rglob("*.*"))
    page = _render(contents, files)
    (folder / PAGE).write_text(page, encoding="utf-8")


def _render(contents: _Contents, files: Sequence[str]) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    evaluation, ranking = contents.evaluation, contents.ranking
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        # Labels and notes come out of users' files: everything is text, no markup.
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    about_ranking: tuple[str, ...] = ()
    if ranking is not None:
        found = (one.scales() for one in evaluation.results.values())
        scales = next((one for one in found if one is not None), None)
        about_ranking = ranking_words(ranking, scales, contents.truth)
    return environment.get_template("report.html.j2").render(
        contents=contents,
        evaluation=evaluation,
        cohort=evaluation.cohort,
        headline=headline(evaluation),
        promises=promises(evaluation),
        about_audit=audit_words(evaluation),
        about_ranking=about_ranking,
        errors=approximation_errors(evaluation.main),
        settings=json.dumps(_settled(contents.record, evaluation.main.name), indent=1),
        files=files,
    )


def _settled(record: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a model's settings in the first fold, as the fit settled them."""
    first = record["models"][name]["folds"][0]
    settled = first.get("fit_report", {}).get("settings", {})
    return {**first["settings"], **settled}
