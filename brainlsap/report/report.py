"""Write, check and read a results folder: the report and its private part."""

import datetime as dt
import json
import platform
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pandas as pd

from brainlsap.arrays import to_jsonable
from brainlsap.atlas import Atlas
from brainlsap.data import write_tsv
from brainlsap.evaluation import Evaluation, choose_subgroup_columns, rank_regions
from brainlsap.evaluation.cross_validation import choose_n_jobs
from brainlsap.exceptions import ParameterError
from brainlsap.files import (
    check_outputs,
    check_writable,
    fill_folder,
    lock_folder,
    replace_when_whole,
)
from brainlsap.report.tables import audit_table, feature_text, is_external
from brainlsap.text import join_with_commas, option_text

REPORT_FOLDER, PRIVATE_FOLDER, EVALUATION_FOLDER = "report", "private", "evaluation"
"""Folders of results: to share, not to share, and the evaluation within the second."""

FITS_FOLDER = "folds"
"""Folder in `private/` with the finished fits of a run; a new report keeps it."""

REPORT_SETTINGS = ("title", "date", "versions")
"""Settings that a report adds to those of an evaluation."""

REPORT_COLUMNS = ["code", "quality"]
"""Columns that a report adds to the table of scans."""

NO_SUBGROUPS = "no subgroups"
"""Kind of the error of columns that define no subgroups of stored results."""

PACKAGES = ("brainlsap", "numpy", "scipy", "pandas", "scikit-learn", "torch", "nilearn")
"""Packages with a version in `settings.json`."""


def write_report(
    evaluation: Evaluation,
    folder: str | Path,
    *,
    title: str | None = None,
    atlas: Atlas | None = None,
    quality: pd.DataFrame | None = None,
    ranking: pd.DataFrame | None = None,
    overwrite: bool = False,
    n_jobs: int | None = None,
) -> Path:
    """Write a results folder: a page with tables and figures, and a private part.

    The folder appears whole or not at all. `report/` may be shared: scans have random
    codes, and no person is named. `private/`, which only its owner can read, holds the
    evaluation, the key of the codes and everything that names people.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    folder : str or Path
        A new or empty folder, or an earlier report of the same data and settings,
        which is replaced.
    title : str, optional
        Heading of the page.
    atlas : Atlas, optional
        Atlas on which regions are drawn; by default that of the cohort.
    quality : DataFrame, optional
        From :func:`brainlsap.data.quality_table` of the cohort; its column flags
        becomes the table of unusual scans. By default that of the evaluation, if it
        was read from results that have it. It cannot be computed here, because an
        evaluation holds no connectomes.
    ranking : DataFrame, optional
        Ranking of the regions, for example from
        :func:`brainlsap.evaluation.add_region_tests`; by default that of the
        evaluation, else :func:`brainlsap.rank_regions`.
    overwrite : bool
        Whether a report of other data or settings may be replaced as well.
    n_jobs : int, optional
        Number of processes, as in :func:`brainlsap.cross_validate`. With two or more,
        others draw most of the figures; files do not depend on it.

    Returns
    -------
    Path
        The page, `folder/report/report.html`.

    Raises
    ------
    ParameterError
        If the folder holds files that no report wrote, or the report of another study,
        or if another run is using it.
    WritingError
        If the disk is full, or the folder is not writable.
    """
    # The module imports matplotlib and plotly.
    from brainlsap.report.page import start_drawing_figures, write_page

    folder = check_results_folder(folder)
    if ranking is not None:
        evaluation = replace(evaluation, ranking=ranking)
    if not overwrite:
        data_hash = evaluation.cohort.data_hash
        check_same_study(folder, evaluation.settings, lambda: data_hash)
    evaluation = _add_report_facts(evaluation, title, quality)
    with lock_folder(folder), fill_folder(folder, replace=True) as new_folder:
        atlas = atlas or evaluation.cohort.atlas
        n_jobs = choose_n_jobs(n_jobs, evaluation.cohort)
        drawing_iterator = start_drawing_figures(evaluation, atlas, n_jobs)
        _write_private_files(evaluation, new_folder / PRIVATE_FOLDER)
        write_page(evaluation, new_folder / REPORT_FOLDER, atlas, drawing_iterator)
        finished_fits_path = folder / PRIVATE_FOLDER / FITS_FOLDER
        if finished_fits_path.is_dir():
            finished_fits_path.rename(new_folder / PRIVATE_FOLDER / FITS_FOLDER)
    return folder / REPORT_FOLDER / "report.html"


def read_results(folder: str | Path) -> Evaluation:
    """Read the evaluation of a results folder.

    Parameters
    ----------
    folder : str or Path
        A folder that :func:`write_report` wrote, with its `private/`.

    Returns
    -------
    Evaluation
        Ready for :func:`write_report`, or for any table or figure.

    Raises
    ------
    FileFormatError
        If the folder holds no evaluation.
    """
    return Evaluation.load(
        Path(folder).expanduser() / PRIVATE_FOLDER / EVALUATION_FOLDER
    )


def change_subgroups(evaluation: Evaluation, columns: Sequence[str]) -> Evaluation:
    """Return an evaluation whose report scores the groups of these stored columns."""
    # Results have these columns from the report, and not from the study.
    study_table = evaluation.cohort.table.drop(columns=REPORT_COLUMNS, errors="ignore")
    try:
        subgroup_columns = choose_subgroup_columns(study_table, columns)
    except ParameterError as error:
        command_name = "evaluate" if is_external(evaluation) else "run"
        raise ParameterError(
            f"the stored table of people does not define these subgroups: {error} To "
            "use columns that are not stored, run "
            f"`brainlsap {command_name}` again with "
            f"{option_text('subgroups')}.",
            kind=NO_SUBGROUPS,
        ) from error
    changed_settings = evaluation.settings | {"subgroups": list(subgroup_columns)}
    return replace(evaluation, settings=changed_settings)


def check_results_folder(folder: str | Path) -> Path:
    """Raise unless results may be written to `folder`; call it before a long run.

    Parameters
    ----------
    folder : str or Path
        New, empty, or written by an earlier run and not changed since.

    Returns
    -------
    Path
        The absolute path of the folder.

    Raises
    ------
    ParameterError
        If it is a file or a mounted disk, or holds files that no run wrote.
    WritingError
        If it cannot be made or replaced.
    """
    folder = Path(folder).expanduser().resolve()
    if folder.is_file() or folder.is_mount():  # Neither can be replaced.
        raise ParameterError(f"{folder} is a file or a mounted disk; name a folder.")
    check_writable(folder)
    top_entry_set = {entry_path.name for entry_path in folder.glob("*")}
    foreign_file_names = sorted(top_entry_set - {REPORT_FOLDER, PRIVATE_FOLDER})
    # Walk the folder only if it looks like results: a home folder would take long.
    if not foreign_file_names:
        foreign_file_names = _list_foreign_file_paths(folder)
    if foreign_file_names:
        raise ParameterError(
            f"{folder} contains files that were not written by a report "
            f"({join_with_commas(foreign_file_names, 3)}). Name another folder."
        )
    return folder


def _list_foreign_file_paths(folder: Path) -> list[str]:
    """Return the files of a results folder that its report does not list."""
    reported_file_names: list[str] = []
    with suppress(OSError, ValueError, LookupError, TypeError):
        settings_record = json.loads(
            (folder / REPORT_FOLDER / "settings.json").read_bytes()
        )
        reported_file_names = settings_record["files"]
    present_file_paths = [
        file_path.relative_to(folder)
        for file_path in folder.rglob("*")
        if file_path.is_file()
    ]
    existing_file_set = {
        file_path.as_posix()
        for file_path in present_file_paths
        if not file_path.is_relative_to(f"{PRIVATE_FOLDER}/{FITS_FOLDER}")
    }
    return sorted(existing_file_set.difference(reported_file_names))


def check_same_study(
    folder: Path,
    study_settings: Mapping[str, object],
    compute_data_hash: Callable[[], str],
) -> None:
    """Raise if a results folder holds a report of other settings or other data.

    Compares the options given to :func:`brainlsap.run_study`, if they were recorded.
    `compute_data_hash` returns the hash of the data. It is called only if there is a
    report, because hashing reads all connectomes.
    """
    stored_path = folder / PRIVATE_FOLDER / EVALUATION_FOLDER / "evaluation.json"
    if not stored_path.is_file():
        if (folder / REPORT_FOLDER).is_dir():
            raise ParameterError(
                f"{folder} contains a report without its private/ folder, so its "
                "study cannot be compared with this one. Choose another "
                f"{option_text('out')}, or replace the report with "
                f"{option_text('overwrite', True)}."
            )
        return
    stored_record = json.loads(stored_path.read_text(encoding="utf-8"))
    earlier_value_by_option = _select_study_options(stored_record["settings"])
    study_options = _select_study_options(to_jsonable(study_settings))
    difference_texts = [
        f"{option_text(option_name)} ({earlier_value_by_option.get(option_name)}, now "
        f"{study_options.get(option_name)})"
        for option_name in sorted(study_options.keys() | earlier_value_by_option.keys())
        if study_options.get(option_name) != earlier_value_by_option.get(option_name)
    ]
    if stored_record["cohort"]["data_hash"] != compute_data_hash():
        difference_texts = difference_texts or ["data"]
    if difference_texts:
        differences_text = ", ".join(difference_texts).replace("None", "not given")
        raise ParameterError(
            f"{folder} contains a report that differs from this study in "
            f"{differences_text}. Choose another {option_text('out')}, or replace the "
            f"report with {option_text('overwrite', True)}."
        )


def _select_study_options(study_settings: Mapping[str, object]) -> Mapping[str, object]:
    """Return the options that identify a study, else all settings but the report's."""
    study_options = study_settings.get("study_options")
    if isinstance(study_options, Mapping) and study_options:
        return study_options
    excluded_setting_names = (*REPORT_SETTINGS, "version")
    return {
        setting_name: setting_value
        for setting_name, setting_value in study_settings.items()
        if setting_name not in excluded_setting_names
    }


def _add_report_facts(
    evaluation: Evaluation,
    title: str | None = None,
    quality_table: pd.DataFrame | None = None,
) -> Evaluation:
    """Add title, date, versions, codes, quality and ranking, if they are missing.

    The evaluation is stored with them, so that a report made again is the same.
    """
    cohort, study_settings = evaluation.cohort, dict(evaluation.settings)
    features_text = feature_text(cohort)
    # A question does not read as a success if the answer is no.
    default_title = f"Can {cohort.label_name} be predicted from {features_text}?"
    study_settings["title"] = title or study_settings.get("title") or default_title
    study_settings.setdefault("date", dt.datetime.now().astimezone().date().isoformat())
    version_by_package = {
        package_name: version(package_name) for package_name in PACKAGES
    }
    study_settings.setdefault(
        "versions", {"python": platform.python_version(), **version_by_package}
    )
    cohort_table = cohort.table.copy()
    if "code" not in cohort_table:
        code_numbers = secrets.SystemRandom().sample(
            range(len(cohort_table)), len(cohort_table)
        )
        n_digits = max(4, len(str(len(cohort_table))))
        cohort_table["code"] = [
            f"S{code_number + 1:0{n_digits}d}" for code_number in code_numbers
        ]
    if quality_table is not None:
        unrated_scan_series = cohort_table["scan"][
            ~cohort_table["scan"].isin(quality_table.index)
        ]
        if len(unrated_scan_series):
            raise ParameterError(
                f"{option_text('quality')} must have a row for every scan, indexed by "
                "its name; it has none for "
                f"{join_with_commas(unrated_scan_series, 3)}. Compute the table with "
                "brainlsap.data.quality_table(cohort)."
            )
        cohort_table["quality"] = cohort_table["scan"].map(quality_table["flags"])
        for column_name in quality_table.columns.intersection(["unlike", "swapped"]):
            # An external evaluation has also compared the sides with the training.
            report_column = f"quality_{column_name}"
            if report_column not in cohort_table:
                cohort_table[report_column] = cohort_table["scan"].map(
                    quality_table[column_name]
                )
    if evaluation.ranking is None and not evaluation.scales.empty:
        evaluation = replace(evaluation, ranking=rank_regions(evaluation))
    return replace(
        evaluation, cohort=replace(cohort, table=cohort_table), settings=study_settings
    )


def write_tables(
    evaluation: Evaluation, folder: str | Path, *, overwrite: bool = False
) -> list[Path]:
    """Write the numbered tables of a report for manuscripts: LaTeX and Markdown.

    The tables have a caption and notes. LaTeX tables are at most 160 mm wide, the text
    of A4 with margins of 25 mm. They need the packages booktabs and array.

    Parameters
    ----------
    evaluation : Evaluation
        For example from :func:`read_results`.
    folder : str or Path
        Made if it does not exist. The tables give scans by their codes.
    overwrite : bool
        Whether files of these names may be replaced.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    ParameterError
        If a file of that name exists.
    """
    from brainlsap.report.page import make_report_table_by_name
    from brainlsap.report.paper_tables import (
        make_latex_by_table,
        make_markdown_by_table,
    )

    check_outputs(table_paths(folder), overwrite=overwrite)
    evaluation = _add_report_facts(evaluation)
    table_by_name = make_report_table_by_name(evaluation)
    latex_by_name = make_latex_by_table(table_by_name, evaluation)
    markdown_by_name = make_markdown_by_table(table_by_name, evaluation)
    text_by_path: dict[Path, str] = {}
    for table_name in table_by_name:
        text_by_path[Path(folder, f"{table_name}.tex")] = latex_by_name[table_name]
        text_by_path[Path(folder, f"{table_name}.md")] = markdown_by_name[table_name]
    check_outputs(text_by_path, overwrite=overwrite)
    for table_path, file_text in text_by_path.items():
        with replace_when_whole(table_path) as partial_path:
            partial_path.write_text(file_text, "utf-8")
    return [*text_by_path]


def table_paths(folder: str | Path) -> list[Path]:
    """Return the files that :func:`write_tables` may write, without making a table."""
    from brainlsap.report.paper_tables import PAPER_TEXTS

    return [
        Path(folder, f"{table_name}{file_suffix}")
        for table_name in PAPER_TEXTS
        for file_suffix in (".tex", ".md")
    ]


def figure_paths(evaluation: Evaluation, folder: str | Path) -> list[Path]:
    """Return the files that :func:`write_figures` may write, without drawing."""
    from brainlsap.report.page import list_figure_names

    return [
        Path(folder, f"{figure_name}.pdf")
        for figure_name in list_figure_names(evaluation)
    ]


def write_figures(
    evaluation: Evaluation, folder: str | Path, *, overwrite: bool = False
) -> list[Path]:
    """Write every figure of a report for manuscripts: PDF, text as text.

    Parameters
    ----------
    evaluation : Evaluation
        For example from :func:`read_results`.
    folder : str or Path
        Made if it does not exist.
    overwrite : bool
        Whether files of these names may be replaced.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    ParameterError
        If a file of that name exists.
    """
    # Drawing takes long.
    check_outputs(figure_paths(evaluation, folder), overwrite=overwrite)
    from matplotlib.pyplot import close

    from brainlsap.report.page import draw_figure_by_name

    evaluation = _add_report_facts(evaluation)
    figure_by_name = draw_figure_by_name(evaluation, evaluation.cohort.atlas)
    path_by_figure = {
        figure_name: Path(folder, f"{figure_name}.pdf")
        for figure_name in figure_by_name
    }
    try:
        check_outputs(path_by_figure.values(), overwrite=overwrite)
        for figure_name, report_figure in figure_by_name.items():
            with replace_when_whole(path_by_figure[figure_name]) as partial_path:
                report_figure.savefig(partial_path)
    finally:
        for report_figure in figure_by_name.values():
            close(report_figure)
    return [*path_by_figure.values()]


def _write_private_files(evaluation: Evaluation, folder: Path) -> None:
    """Write what names people, readable by the owner alone."""
    folder.mkdir(mode=0o700)
    evaluation.save(folder / EVALUATION_FOLDER)
    scan_code_table = evaluation.cohort.table[["code", "scan", "participant"]]
    write_tsv(scan_code_table, folder / "codes.tsv")
    left_out_table = evaluation.cohort.left_out
    if left_out_table is not None and len(left_out_table):
        write_tsv(left_out_table, folder / "left_out.tsv")
    if evaluation.audit is not None:
        write_tsv(audit_table(evaluation), folder / "audit.tsv")
    for file_path in folder.rglob("*"):
        file_path.chmod(0o700 if file_path.is_dir() else 0o600)
