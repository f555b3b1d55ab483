"""One page over an evaluation, and the results folder that it stands in."""

import datetime as dt
import json
import os
import platform
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from brainlsap.atlas import Atlas
from brainlsap.data import write_tsv
from brainlsap.evaluation import Evaluation, rank_regions
from brainlsap.evaluation.results import to_jsonable
from brainlsap.exceptions import ParameterError
from brainlsap.files import (
    check_outputs,
    fill_folder,
    lock_folder,
    replace_when_whole,
)
from brainlsap.report.tables import audit_table, feature_text, table_text
from brainlsap.text import listed

SHAREABLE, PRIVATE, STORED = "report", "private", "evaluation"
FOLDS = "folds"
"""Folder in `private/` of a run's finished fits; it outlives the report."""
ABOUT = ("title", "date", "versions")
"""What a report adds to the settings of an evaluation."""
PACKAGES = ("brainlsap", "numpy", "scipy", "pandas", "scikit-learn", "torch", "nilearn")


def write_report(
    evaluation: Evaluation,
    folder: str | Path,
    *,
    title: str | None = None,
    atlas: Atlas | None = None,
    quality: pd.DataFrame | None = None,
    ranking: pd.DataFrame | None = None,
    overwrite: bool = False,
) -> Path:
    """Write one results folder: a page, its tables and figures, and what is private.

    The folder appears whole or not at all. `report/` may be shared: scans have codes
    that were drawn at random, and no person is named. `private/`, which only its
    owner can read, holds the evaluation, the key of the codes and what names people.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    folder : str or Path
        New, empty, or of an earlier report of the same data and settings, which is
        replaced.
    title : str, optional
        Heading of the page.
    atlas : Atlas, optional
        Where brains are drawn; by default the atlas of the evaluation's cohort.
    quality : DataFrame, optional
        One row per scan: scan, and flags as text, as of
        :func:`brainlsap.data.quality_table`.
    ranking : DataFrame, optional
        Of the regions, such as :func:`brainlsap.permutation_null` returns; by default
        that of the evaluation, else :func:`brainlsap.rank_regions`.
    overwrite : bool
        Whether a report of other data or settings may be replaced, too.

    Returns
    -------
    Path
        The page, `folder/report/report.html`.

    Raises
    ------
    ParameterError
        Where the folder holds what no report wrote, or a report of another study, or
        another run is in it.
    WritingError
        Where the disk is full, or the folder may not be written to.
    """
    from brainlsap.report.page import write_page  # brings matplotlib and plotly

    folder = check_results_folder(folder)
    if ranking is not None:
        evaluation = replace(evaluation, ranking=ranking)
    if not overwrite:
        settings, data_hash = evaluation.settings, evaluation.cohort.data_hash
        check_same_study(folder, settings, data_hash)
    evaluation = _completed(evaluation, title, quality)
    with lock_folder(folder), fill_folder(folder, replace=True) as fresh:
        _write_private(evaluation, fresh / PRIVATE)
        write_page(evaluation, fresh / SHAREABLE, atlas or evaluation.cohort.atlas)
        kept = folder / PRIVATE / FOLDS
        if kept.is_dir():
            kept.rename(fresh / PRIVATE / FOLDS)
    return folder / SHAREABLE / "report.html"


def read_results(folder: str | Path) -> Evaluation:
    """Read the evaluation of a results folder.

    Parameters
    ----------
    folder : str or Path
        As :func:`write_report` left it, with its `private/`.

    Returns
    -------
    Evaluation
        Ready for :func:`write_report`, or for any table or figure.

    Raises
    ------
    FileFormatError
        Where the folder holds no evaluation.
    """
    return Evaluation.load(Path(folder).expanduser() / PRIVATE / STORED)


def check_results_folder(folder: str | Path) -> Path:
    """Raise unless results may be written to `folder`; ask before a long run.

    Parameters
    ----------
    folder : str or Path
        New, empty, or written by an earlier run and not added to since.

    Returns
    -------
    Path
        The folder, absolute.

    Raises
    ------
    ParameterError
        Where it cannot be made or replaced, is a file, or holds what no run wrote.
    """
    folder = Path(folder).expanduser().resolve()
    above = next(one for one in folder.parents if one.exists())
    if folder.is_file() or folder.is_mount():  # neither can be replaced
        raise ParameterError(f"{folder} is a file or a mounted disk; name a folder.")
    if not os.access(above, os.W_OK):
        raise ParameterError(f"{folder} cannot be made: {above} is read-only.")
    top = {one.name for one in folder.glob("*")}
    foreign = sorted(top - {SHAREABLE, PRIVATE})
    if not foreign:  # else a look into a home folder would take long
        record, own = folder / SHAREABLE / "settings.json", list[str]()
        with suppress(OSError, ValueError, LookupError, TypeError):
            own = json.loads(record.read_bytes())["files"]
        files = [one.relative_to(folder) for one in folder.rglob("*") if one.is_file()]
        others = [one for one in files if not one.is_relative_to(f"{PRIVATE}/{FOLDS}")]
        foreign = sorted({one.as_posix() for one in others}.difference(own))
    if foreign:
        told = f"holds files that no report wrote ({listed(foreign, 3)})"
        raise ParameterError(f"{folder} {told}; name another.")
    return folder


def check_same_study(folder: Path, settings: Mapping[str, Any], data_hash: str) -> None:
    """Raise where a results folder holds a report of other settings or other data.

    Settings are compared by what was asked of :func:`brainlsap.run_study`, where
    they say it.
    """
    path = folder / PRIVATE / STORED / "evaluation.json"
    if not path.is_file():
        if (folder / SHAREABLE).is_dir():
            raise ParameterError(
                f"{folder} holds a report without its private/ folder, so whose it is "
                "cannot be told. Choose another out=, or replace it by overwrite=True."
            )
        return
    earlier = json.loads(path.read_text(encoding="utf-8"))
    before, now = _owner(earlier["settings"]), _owner(to_jsonable(settings))
    differences = [
        f"{name}= ({before.get(name)}, now {now.get(name)})"
        for name in sorted(now.keys() | before.keys())
        if now.get(name) != before.get(name)
    ]
    if earlier["cohort"]["data_hash"] != data_hash:
        differences = differences or ["data"]
    if differences:
        text = ", ".join(differences).replace("None", "not given")
        raise ParameterError(
            f"{folder} holds a report with other {text}. Choose another out=, or "
            "replace the report by overwrite=True."
        )


def _owner(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings by which one study is told from another."""
    asked = settings.get("asked")
    if asked:
        return asked
    beside = (*ABOUT, "version")
    return {key: value for key, value in settings.items() if key not in beside}


def _completed(
    evaluation: Evaluation, title: str | None = None, quality: Any = None
) -> Evaluation:
    """Add what a remade report must have alike, such as date and codes."""
    cohort, settings = evaluation.cohort, dict(evaluation.settings)
    features = feature_text(cohort)
    usual = f"{cohort.label_name} from {features}: {evaluation.models[0]}"
    settings["title"] = title or settings.get("title") or usual[:1].upper() + usual[1:]
    settings.setdefault("date", dt.datetime.now().astimezone().date().isoformat())
    versions = {name: version(name) for name in PACKAGES}
    settings.setdefault("versions", {"python": platform.python_version(), **versions})
    table = cohort.table.copy()
    if "code" not in table:
        numbers = secrets.SystemRandom().sample(range(len(table)), len(table))
        width = max(4, len(str(len(table))))
        table["code"] = [f"S{number + 1:0{width}d}" for number in numbers]
    if quality is not None:
        flags = quality.set_index("scan")["flags"]
        table["quality"] = table["scan"].map(flags).fillna("")
    if evaluation.ranking is None and not evaluation.scales.empty:
        evaluation = replace(evaluation, ranking=rank_regions(evaluation))
    return replace(evaluation, cohort=replace(cohort, table=table), settings=settings)


def write_tables(
    evaluation: Evaluation, folder: str | Path, *, overwrite: bool = False
) -> list[Path]:
    """Write the numbered tables of a report for manuscripts: LaTeX and Markdown.

    Parameters
    ----------
    evaluation : Evaluation
        As of :func:`read_results`.
    folder : str or Path
        Made if need be. Scans go by their codes.
    overwrite : bool
        Whether files of these names may be replaced.

    Returns
    -------
    list of Path

    Raises
    ------
    ParameterError
        Where a file of such a name is there already.
    """
    from brainlsap.report.page import report_tables

    tables = report_tables(_completed(evaluation))
    texts = {
        Path(folder, f"{name}.{suffix}"): table_text(frame, style)
        for name, frame in tables.items()
        for style, suffix in (("latex", "tex"), ("markdown", "md"))
    }
    check_outputs(texts, overwrite=overwrite)
    for path, text in texts.items():
        with replace_when_whole(path) as partial:
            partial.write_text(text, "utf-8")
    return [*texts]


def write_figures(
    evaluation: Evaluation, folder: str | Path, *, overwrite: bool = False
) -> list[Path]:
    """Write every figure of a report for manuscripts: PDF, text as text.

    Parameters
    ----------
    evaluation : Evaluation
        As of :func:`read_results`.
    folder : str or Path
        Made if need be.
    overwrite : bool
        Whether files of these names may be replaced.

    Returns
    -------
    list of Path

    Raises
    ------
    ParameterError
        Where a file of such a name is there already.
    """
    from matplotlib.pyplot import close

    from brainlsap.report.page import report_figures

    evaluation = _completed(evaluation)
    figures = report_figures(evaluation, evaluation.cohort.atlas)
    paths = {name: Path(folder, f"{name}.pdf") for name in figures}
    try:
        check_outputs(paths.values(), overwrite=overwrite)
        for name, figure in figures.items():
            with replace_when_whole(paths[name]) as partial:
                figure.savefig(partial)
    finally:
        for figure in figures.values():
            close(figure)
    return [*paths.values()]


def _write_private(evaluation: Evaluation, folder: Path) -> None:
    folder.mkdir(mode=0o700)
    evaluation.save(folder / STORED)
    codes = evaluation.cohort.table[["code", "scan", "participant"]]
    write_tsv(codes, folder / "codes.tsv")
    if evaluation.audit is not None:
        write_tsv(audit_table(evaluation), folder / "audit.tsv")
    for one in folder.rglob("*"):
        one.chmod(0o700 if one.is_dir() else 0o600)
