"""Regional values of every scan: where they are read from, and reading them.

A feature of a cohort comes from one kind of source for all scans, never a mixture: a
table of regions beside each scan, else FreeSurfer's stats, else tables with a row per
scan.

Stats files are those of `mris_anatomical_stats` (`?h.aparc*.stats`) and `mri_segstats`
(`aseg.stats`). A measure that stats do not hold is averaged over the vertices of each
region as `ThickAvg` is: every vertex has the same weight, whatever the area around it,
and those outside `?h.cortex.label` are left out.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data.connectomes import is_matrix_file
from brainlsap.data.covariates import (
    COVARIATES,
    SCALE_KINDS,
    find_covariate_kind,
    propose_label_option,
)
from brainlsap.data.find_files import (
    Scan,
    ScanIdentity,
    StudyFiles,
    find_unnamed_visit_column,
    make_ambiguity_error,
)
from brainlsap.data.flow import NO_IMAGE
from brainlsap.data.id_columns import (
    NO_CHOICE,
    UserColumns,
    exchanged_ids_text,
    make_visit_column_advice,
)
from brainlsap.data.measures import (
    KNOWN_MEASURE_NAMES,
    PET_FEATURES,
    MeasureRecord,
    check_structures_complete,
    fill_subcortex_with_notes,
    find_measure_names_of_file,
    find_tracers,
    find_tracers_of_file,
    find_translated_measures,
    get_measure_record,
)
from brainlsap.data.region_tables import (
    TableContents,
    find_tracer_column_names,
    layouts_text,
    propose_atlas_option,
    read_region_values_and_notes,
    read_sheets_and_errors,
    unknown_names_sentence,
)
from brainlsap.data.tables import IMPORT_FILES, read_numbered_lines, was_just_modified
from brainlsap.exceptions import (
    ABSENT,
    BrainlsapError,
    CohortError,
    FileFormatError,
    check_choice,
    convert_reading_errors,
)
from brainlsap.findings import (
    ASSUMED,
    FAULT,
    LEFT_OUT,
    SCALES_DIFFER,
    Finding,
)
from brainlsap.text import (
    count_text,
    format_leave_out_advice,
    join_with_and,
    join_with_commas,
    named_counts_text,
    option_text,
)

TRUTH_FILE = "truth.tsv"
HEMISPHERES = {"lh": "L", "rh": "R"}
CORTEX_COLUMNS = {"thickness": "ThickAvg", "area": "SurfArea", "volume": "GrayVol"}
_STATS_COLUMNS = {*CORTEX_COLUMNS.values(), "Volume_mm3", "NumVert"}
_HEADER = re.compile(
    r"^# (ColHeaders|NRows|hemi|subjectname|Measure Cortex, NumVert,) (.*)",
    re.MULTILINE,
)
OTHER_SUBJECT = "files of several subjects"
"""Kind of the fault that stats files in one folder name different subjects."""
# Largest share of the vertices in no region of the table (measured: 1e-4).
_MAX_UNLABELLED = 5e-4
_CROSS_SECTIONAL = "cross-sectional"
_LONGITUDINAL = "longitudinal"
# Column -> entity in names of files. Both may tell on which scale values are.
_SCALE_ENTITIES = {
    "tracer": "trc",
    "pvc": "pvc",
    "reference_region": "suvr",
    "reference": "ref",
    "reconstruction": "rec",
}
# A column with more values names no scales; it may hold dates.
_MAX_SCALES = 10
# Heads of columns of PET values, apart from those of regions.
_PET_HEAD = re.compile("suvr|uptake|dvr|centiloid", re.IGNORECASE)
Source = Path | np.ndarray | Finding
"""Data of one scan: a file, a FreeSurfer subject or values; or the fault."""


class _RegionColumn(NamedTuple):
    """The column of one region in a table with a row per scan."""

    table_contents: TableContents
    header_measure: str
    """Measure in the name of the column; "" if the name contains none."""


class FeatureFile(NamedTuple):
    """One feature of one scan in the order of an atlas.

    Parameters
    ----------
    values : array of shape (n_rois,)
        In the unit of the file; NaN where not measured.
    notes : tuple of str
        Notes on values that were left out or filled, in the same words for every file.
    """

    values: np.ndarray
    notes: tuple[str, ...] = ()


def read_feature(
    path: str | Path,
    feature: str,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    subcortex: str = "absent",
    frames: tuple[float, float] | None = None,
    reference: str | None = None,
) -> FeatureFile:
    r"""Read one feature of one scan.

    Parameters
    ----------
    path : str or Path
        A FreeSurfer subject's folder (or its `stats`), or a table of regions: one row
        per region with a column of names (`region`, `name` ...) and one of values,
        headed like the feature, `suvr` or `value`; one row, a column per region;
        PETSurfer's `gtm.stats.dat`; or activity over time with the start and end of
        frames first.
    feature : str
        `thickness`, `area` and `volume` are known to FreeSurfer's stats; any other
        name is looked for as a column, or as a measure of vertices
        (`surf/?h.<feature>`).
    atlas : str, Path or Atlas
        As :func:`.load_atlas` takes it.
    subcortex : {"absent", "mean", "volume"}
        Values of the subcortex if the feature is measured on the cortical surface.
    frames : (float, float), optional
        Start and end of the window over which activity is averaged, in the unit of
        the file (seconds in BIDS).
    reference : str, optional
        Region of PET by whose mean values are divided: "pons", "whole cerebellum" ...,
        or the name of a region.

    Returns
    -------
    FeatureFile

    Raises
    ------
    FileFormatError
        If the file is missing, cut short, lacks the column or a region.
    RegionNameError
        If a region is unknown or stands twice.
    ParameterError
        If activity over time needs `frames` or `reference`.

    Examples
    --------
    >>> import tempfile
    >>> names = load_atlas("desikan82").names
    >>> rows = "".join(f"{name}\t{1 + i / 100}\n" for i, name in enumerate(names))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "sub-01_trc-18FFDG_regions.tsv"
    ...     _ = path.write_text("region\tsuvr\n" + rows)
    ...     read_feature(path, "fdg", "desikan82").values[:3].tolist()
    [1.0, 1.01, 1.02]
    """
    atlas = load_atlas(atlas)
    measure_record = get_measure_record(feature)
    path = Path(path)
    if path.is_dir():
        region_values, reading_notes = read_stats_values_and_notes(
            path, atlas, measure_record, subcortex
        )
    else:
        region_values, reading_notes, region_indices = read_region_values_and_notes(
            path, atlas, measure_record, frames=frames, reference=reference
        )
        check_structures_complete(region_indices, atlas, str(path))
    region_values, policy_notes = fill_subcortex_with_notes(
        region_values, measure_record, atlas, subcortex
    )
    return FeatureFile(region_values, (*reading_notes, *policy_notes))


def read_stats_values_and_notes(
    folder: str | Path,
    atlas: Atlas,
    measure_record: MeasureRecord,
    subcortex: str = "absent",
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return one measure of a FreeSurfer subject in the order of an atlas, and notes.

    `folder` is the subject's, or its `stats`. Subcortical volumes are read if the
    measure is one, or `subcortex` asks for them. A measure that stats do not hold is
    averaged over vertices.
    """
    folder = Path(folder)
    stats_folder = folder / "stats" if (folder / "stats").is_dir() else folder
    annotation_name = atlas.settings.get("annotation")
    if annotation_name is None:
        raise FileFormatError(
            f"the atlas.json of {atlas.name} does not name a FreeSurfer annotation, so "
            "brainlsap cannot read regions of this atlas from FreeSurfer stats files. "
            "Give the values as a table of regions.",
            path=stats_folder,
        )
    measure_name = measure_record.name
    is_on_surface = measure_record.is_on_surface
    region_values = np.full(len(atlas.names), np.nan)
    reading_notes = tuple[str, ...]()
    side_by_path: dict[Path, str | None] = {
        stats_folder / f"{hemisphere}.{annotation_name}.stats": side
        for hemisphere, side in HEMISPHERES.items()
    }
    if measure_name not in CORTEX_COLUMNS or not all(map(Path.is_file, side_by_path)):
        subject_folder = (
            stats_folder.parent if stats_folder.name == "stats" else stats_folder
        )
        region_means = _average_vertices_by_region(
            subject_folder, measure_name, atlas, annotation_name
        )
        if region_means is None:
            check_choice("feature of FreeSurfer's stats", measure_name, CORTEX_COLUMNS)
        else:
            region_values = region_means
            is_on_surface = True
            side_by_path = {}
            reading_notes = (
                f"{measure_name}: a region has the plain mean over its vertices",
            )
    subject_name_by_file = dict[str, str]()
    if not is_on_surface or subcortex == "volume":
        side_by_path[stats_folder / "aseg.stats"] = None
    for stats_path, side in side_by_path.items():
        if not stats_path.is_file():
            hint_text = _missing_stats_advice(stats_path, atlas)
            raise FileFormatError(
                f"no such file{hint_text}", path=stats_path, kind=ABSENT
            )
        stats_column_name = CORTEX_COLUMNS[measure_name] if side else "Volume_mm3"
        stats_file_values, subject_name = _read_stats_and_subject(
            stats_path, stats_column_name, atlas, side
        )
        subject_name_by_file[stats_path.name] = subject_name
        region_values = np.where(
            np.isnan(stats_file_values), region_values, stats_file_values
        )
    _check_same_subject(stats_folder, subject_name_by_file)
    return region_values, reading_notes


def _check_same_subject(
    stats_folder: Path, subject_name_by_file: dict[str, str]
) -> None:
    """Raise where the headers of one folder's stats name different subjects.

    The folder may have another name, and a longitudinal run is also that of its visit.
    """
    base_subject_by_file = {
        file_name: Path(subject_name).name.partition(".long.")[0]
        for file_name, subject_name in subject_name_by_file.items()
        if subject_name
    }
    if len({*base_subject_by_file.values()}) > 1:
        names_text = ", ".join(
            f"{subject_name} in {file_name}"
            for file_name, subject_name in base_subject_by_file.items()
        )
        raise FileFormatError(
            "the stats files of one scan have different subject names in their headers",
            path=stats_folder,
            got=names_text,
            advice="A file may have been copied from the folder of another person. "
            "Copy the files again from the FreeSurfer folder of this scan. If the "
            "folder was renamed between two steps of FreeSurfer, write the same "
            "subject name into the line '# subjectname' of every file.",
            kind=OTHER_SUBJECT,
        )


def _missing_stats_advice(stats_path: Path, atlas: Atlas) -> str:
    """Return that stats of another parcellation are there, or what to do."""
    hemisphere = stats_path.name[:2]
    other_paths = sorted(stats_path.parent.glob(f"{hemisphere}.aparc*.stats"))
    if not other_paths:
        return f". Add the file, or {format_leave_out_advice()}."
    remake_advice = atlas.settings.get("remake_values", "")
    return f"; {other_paths[0].name} belongs to another parcellation. {remake_advice}"


def _read_stats_and_subject(
    stats_path: Path, column_name: str, atlas: Atlas, side: str | None
) -> tuple[np.ndarray, str]:
    """Return a column of a stats file in the order of an atlas, and its subject.

    The name of the subject is empty if the header has none. `side` is None for
    segmentations, whose cortical regions are left out.
    """
    file_status = stats_path.stat()
    read_table_function: Callable[..., _StatsTable] = _read_stats_table
    if was_just_modified(file_status.st_mtime_ns):
        read_table_function = _read_stats_table.__wrapped__
    stats_table = read_table_function(
        stats_path, file_status.st_mtime_ns, file_status.st_size
    )
    header_value_by_key = stats_table.header_value_by_key
    if not stats_table.is_complete or column_name not in stats_table.column_names:
        raise FileFormatError(
            "the file is not a complete FreeSurfer stats file with the column "
            f"{column_name}. Expected {stats_table.n_rows_text} rows of "
            f"{len(stats_table.column_names)} cells; got "
            f"{stats_table.n_table_rows} rows of {stats_table.min_row_length} or more "
            "cells. The line '# ColHeaders' must "
            f"contain StructName and {column_name}.",
            path=stats_path,
        )
    if HEMISPHERES.get(header_value_by_key.get("hemi", ""), side) != side:
        raise FileFormatError(
            "the content of the file belongs to the other hemisphere. The files of "
            "the two hemispheres may have been swapped. Copy both files again from "
            "the FreeSurfer folder of this scan.",
            path=stats_path,
        )
    with convert_reading_errors(stats_path, "a stats file"):
        stats_values = np.array(stats_table.values_by_column[column_name], dtype=float)
        expected_region_mask, region_row_indices = _match_regions_and_rows(
            atlas, stats_table.region_names, side
        )
    missing_region_mask = (
        expected_region_mask & ~atlas.structure_part_mask & (region_row_indices < 0)
    )
    missing_region_indices = np.flatnonzero(missing_region_mask)
    # FreeSurfer has no row for a region that a surface lacks, and its vertices are in
    # other regions. In a file that was cut short, vertices are missing.
    vertex_counts = (
        stats_table.values_by_column.get("NumVert", ())
        if missing_region_indices.size
        else ()
    )
    n_labelled_vertices = np.array(vertex_counts, dtype=float).sum()
    n_vertices = float(
        header_value_by_key.get("Measure Cortex, NumVert,", ",inf,").split(",")[-2]
    )
    if missing_region_indices.size and n_labelled_vertices < n_vertices * (
        1 - _MAX_UNLABELLED
    ):
        raise FileFormatError(
            f"{missing_region_indices.size} of {expected_region_mask.sum()} regions "
            "have no row "
            f"({join_with_commas((atlas.names[i] for i in missing_region_indices), 5)})"
            ". The file may be incomplete. Run mris_anatomical_stats or mri_segstats "
            "again.",
            path=stats_path,
        )
    region_in_table_mask = expected_region_mask & (region_row_indices >= 0)
    column_values = np.where(
        region_in_table_mask, stats_values[region_row_indices], np.nan
    )
    return column_values, header_value_by_key.get("subjectname", "")


class _StatsTable(NamedTuple):
    """Content of a stats file: what is used of its header and of its columns.

    Columns are arrays, or tuples of texts where a cell is no number.
    """

    header_value_by_key: dict[str, str]
    column_names: tuple[str, ...]
    n_rows_text: str
    n_table_rows: int
    min_row_length: int
    is_complete: bool
    region_names: tuple[str, ...]
    values_by_column: dict[str, Any]


# A command may read another measure of the same file later. The number of files limits
# the memory, to about 30 MB.
@lru_cache(maxsize=8192)
def _read_stats_table(
    stats_path: Path, _modified_ns: int, _n_bytes: int
) -> _StatsTable:
    """Return what a stats file of this time and size contains."""
    file_lines = [text_line for _, text_line in read_numbered_lines(stats_path)]
    comment_lines = [text_line for text_line in file_lines if text_line[0] == "#"]
    cell_rows = [text_line.split() for text_line in file_lines if text_line[0] != "#"]
    header_value_by_key = {
        header_key: header_value.strip()
        for header_key, header_value in _HEADER.findall("\n".join(comment_lines))
    }
    column_names = _intern_texts(
        tuple(header_value_by_key.pop("ColHeaders", "").split())
    )
    row_lengths = [len(row_cells) for row_cells in cell_rows]
    n_rows_text = header_value_by_key.pop("NRows", f"{len(cell_rows)}")
    is_complete = (
        {*row_lengths} == {len(column_names)}
        and n_rows_text == f"{len(cell_rows)}"
        and "StructName" in column_names
    )
    values_by_column: dict[str, Any] = {}
    region_names: tuple[str, ...] = ()
    if is_complete:
        cells_by_column = dict(
            zip(column_names, zip(*cell_rows, strict=True), strict=True)
        )
        region_names = _intern_texts(cells_by_column["StructName"])
        for column_name in _STATS_COLUMNS & cells_by_column.keys():
            values_by_column[column_name] = cells_by_column[column_name]
            with suppress(ValueError):
                values_by_column[column_name] = np.array(
                    values_by_column[column_name], dtype=float
                )
    return _StatsTable(
        header_value_by_key,
        column_names,
        n_rows_text,
        len(cell_rows),
        min(row_lengths, default=0),
        is_complete,
        region_names,
        values_by_column,
    )


@lru_cache(maxsize=64)  # an atlas is hashed by identity
def _match_regions_and_rows(
    atlas: Atlas, region_names: tuple[str, ...], side: str | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return which regions of an atlas belong in a file, and their rows there."""
    if side is None:
        # Segments that are no region of the atlas are left out.
        region_names = tuple(
            n if atlas.find(n) is not None else "none" for n in region_names
        )
        expected_region_mask = ~atlas.cortex
    else:
        hemisphere = atlas.regions["hemisphere"].to_numpy()
        expected_region_mask = atlas.cortex & (hemisphere == side)
    region_row_indices, _ = atlas.find_file_rows(region_names, side)
    return expected_region_mask, region_row_indices


@lru_cache(maxsize=64)
def _intern_texts(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the first tuple of these texts, so that files share one."""
    return texts


def _average_vertices_by_region(
    subject_folder: Path, measure_name: str, atlas: Atlas, annotation_name: str
) -> np.ndarray | None:
    """Return the plain mean of `surf/?h.<name>` over the vertices of every region.

    Returns None if a hemisphere has no such file.
    """
    from nibabel.freesurfer import read_morph_data

    overlay_path_by_hemisphere = {
        hemisphere: subject_folder / "surf" / f"{hemisphere}.{measure_name}"
        for hemisphere in HEMISPHERES
    }
    if not all(map(Path.is_file, overlay_path_by_hemisphere.values())):
        return None
    if measure_name in ("area", "volume"):
        raise FileFormatError(
            f"the {measure_name} of a region is a sum over faces, not a mean over "
            f"vertices. brainlsap therefore reads the {measure_name} of regions only "
            "from stats files. Run mris_anatomical_stats to make these files.",
            path=subject_folder,
        )
    region_values = np.full(len(atlas.names), np.nan)
    for hemisphere, overlay_path in overlay_path_by_hemisphere.items():
        with convert_reading_errors(overlay_path, "one value a vertex"):
            vertex_values = read_morph_data(overlay_path).astype(np.float64)
        annot_path = subject_folder / "label" / f"{hemisphere}.{annotation_name}.annot"
        vertex_labels = atlas.vertex_labels(HEMISPHERES[hemisphere], annot_path)
        if len(vertex_labels) != len(vertex_values):
            raise FileFormatError(
                f"the file contains {len(vertex_values)} vertices, but "
                f"{annot_path.name} contains {len(vertex_labels)} vertices. The two "
                "files describe different surfaces, or one of them is incomplete.",
                path=overlay_path,
            )
        averaged_vertex_mask = vertex_labels >= 0
        cortex_path = subject_folder / "label" / f"{hemisphere}.cortex.label"
        if cortex_path.is_file():
            cortex_vertex_mask = np.zeros(len(vertex_labels), dtype=bool)
            with convert_reading_errors(cortex_path, "a FreeSurfer label"):
                vertex_indices = np.loadtxt(
                    cortex_path, int, skiprows=2, usecols=0, ndmin=1
                )
                cortex_vertex_mask[vertex_indices] = True
            averaged_vertex_mask &= cortex_vertex_mask
        cortex_vertex_values = pd.Series(vertex_values[averaged_vertex_mask])
        means_by_region_index = cortex_vertex_values.groupby(
            vertex_labels[averaged_vertex_mask]
        ).mean()
        region_values[means_by_region_index.index] = means_by_region_index
    return region_values


class TableReader:
    """Reads tables of many scans, each once.

    One reader serves one reading of a study, or one search for options, so that it
    never returns the contents of a file that a user has changed since.
    """

    def __init__(self) -> None:
        self._result_by_key: dict[
            tuple[Path, Atlas, UserColumns],
            tuple[list[TableContents], list[BrainlsapError]] | BrainlsapError,
        ] = {}

    def read_sheets_and_errors(
        self, table_path: Path, atlas: Atlas, user_columns: UserColumns
    ) -> tuple[list[TableContents], list[BrainlsapError]]:
        """Return the sheets that are tables of many scans, and errors of others."""
        table_key = (table_path, atlas, user_columns)
        if table_key not in self._result_by_key:
            try:
                self._result_by_key[table_key] = read_sheets_and_errors(*table_key)
            except BrainlsapError as error:
                self._result_by_key[table_key] = error
        result = self._result_by_key[table_key]
        if isinstance(result, BrainlsapError):
            raise result
        return result


@dataclass
class FeatureSources:
    """The files and tables that the features of a study can come from."""

    study_files: StudyFiles
    atlas: Atlas
    subcortex: str
    table_paths: Sequence[str | Path] | None = None
    """Tables that are searched for features; None for all tables of the study."""
    skipped_table_errors: list[BrainlsapError] = field(default_factory=list)
    """Faults for which tables were not used."""
    has_named_features: bool = True
    """Whether the user named features; otherwise tables must name their features."""
    accepts_translated_measures: bool = False
    """Whether words of other languages in column names count as names of features."""
    feature_names: Sequence[str] = ()
    """All features that are read."""
    people_column_names: Collection[str] = ()
    """Columns of the table of people."""
    scale_names_by_column: dict[str, list[str | None]] = field(default_factory=dict)
    """For each scan, the scale of its values by column, if scales can differ."""
    id_mismatch_finding: Finding | None = None
    """Difference between ids of tables and of files, added to messages of faults."""
    user_columns: UserColumns = NO_CHOICE
    """Columns of ids and visits that the user named."""
    people_contents: TableContents | None = None
    """The table of people, with which other tables are compared."""
    people_sheet_contents: Sequence[TableContents] = ()
    """All sheets of the file of people."""
    table_reader: TableReader = field(default_factory=TableReader)
    """Reader of all tables of many scans."""

    @cached_property
    def table_contents_list(self) -> list[TableContents]:
        """Tables of many scans: those that the user named, or those in the study."""
        table_paths: Iterable[Path]
        if self.table_paths is None:
            excluded_file_names = (TRUTH_FILE, *IMPORT_FILES)
            table_paths = (
                table_path
                for table_path in self.study_files.table_paths
                if table_path.name not in excluded_file_names
            )
        else:
            table_paths = map(self.study_files.resolve_path, self.table_paths)
        table_contents_list = list[TableContents]()
        for table_path in table_paths:
            try:
                sheet_contents_list, sheet_errors = (
                    self.table_reader.read_sheets_and_errors(
                        table_path, self.atlas, self.user_columns
                    )
                )
            except BrainlsapError as error:
                if self.table_paths is not None:
                    raise
                # A connectome is not expected to be such a table.
                if not is_matrix_file(table_path):
                    self.skipped_table_errors.append(error)
            else:
                table_contents_list += sheet_contents_list
                self.skipped_table_errors += sheet_errors
        return table_contents_list

    def find_people_contents(self, label_name: str | None) -> TableContents:
        """Return the one table that holds people and labels.

        Of several, prefer those that name no region that the atlas lacks, then those
        without regions. Raises a CohortError if there is none, with the reasons, or
        more than one.
        """
        candidate_contents_list = [
            table_contents
            for table_contents in self.table_contents_list
            if table_contents.has_label_column(label_name)
        ]
        candidate_contents_list = [
            table_contents
            for table_contents in candidate_contents_list
            if table_contents.has_only_atlas_regions
        ] or candidate_contents_list
        candidate_contents_list = [
            table_contents
            for table_contents in candidate_contents_list
            if not table_contents.values_by_measure_region
        ] or candidate_contents_list
        candidate_paths = {
            table_contents.path for table_contents in candidate_contents_list
        }
        # Of the sheets of one workbook, choose that with most of age, sex ...
        covariate_counts = [
            len({*map(find_covariate_kind, table_contents.text_table)} & {*COVARIATES})
            for table_contents in candidate_contents_list
        ]
        if (
            len(candidate_paths) == 1
            and covariate_counts.count(max(covariate_counts)) == 1
        ):
            candidate_contents_list = [
                candidate_contents_list[covariate_counts.index(max(covariate_counts))]
            ]
        if len(candidate_contents_list) == 1:
            return candidate_contents_list[0]
        problem_text = (
            f"{self.study_files.folder}: there is no participants.tsv (or .csv, "
            ".xlsx), and"
        )
        if candidate_contents_list:
            paths_text = join_with_commas(
                table_contents.path_and_sheet
                for table_contents in candidate_contents_list
            )
            advice_text = "Keep only one of these sheets"
            if len(candidate_paths) > 1 and all(
                table_contents.values_by_measure_region
                for table_contents in candidate_contents_list
            ):
                advice_text = f"Choose one with {option_text('features_table')}"
            elif len(candidate_paths) > 1:
                # Other tables contain the features, and --features-table would exclude
                # these tables.
                advice_text = (
                    "Rename the table to use to participants.csv (or .tsv, .xlsx), or "
                    "move the other tables out of the folder"
                )
            raise CohortError(
                f"{problem_text} {len(candidate_contents_list)} tables could be the "
                f"table of participants: {paths_text}. {advice_text}"
            )
        rejection_reasons = [
            f"{table_contents.path_and_sheet} has no column {label_name!r}; its "
            f"columns are {join_with_commas(table_contents.text_table, 5)}"
            for table_contents in self.table_contents_list
            if not (
                table_contents.text_table.empty or is_matrix_file(table_contents.path)
            )
        ]
        rejection_reasons = [
            *dict.fromkeys((*rejection_reasons, *map(str, self.skipped_table_errors)))
        ][:5]
        action_text = (
            "Correct one of the tables below"
            if rejection_reasons
            else "Add such a table"
        )
        expected_text = "IDs"
        if label_name is not None:
            expected_text += f" and the column {label_name!r}"
            action_text += f", name the label column with {option_text('label')}"
        raise CohortError(
            f"{problem_text} no other table with {expected_text}. "
            f"{action_text}, or give the folder of the study"
            + "".join(
                f"\n    not used: {rejection_reason}"
                for rejection_reason in rejection_reasons
            ),
            values=propose_label_option(
                table_contents.text_table for table_contents in self.table_contents_list
            ),
        )

    def has_data_of_visit(self, participant_id: str, session_id: str) -> bool:
        """Return whether files, FreeSurfer or tables of regions have data of a visit.

        A visit's folder may be empty, or hold lists and questionnaires alone.
        """
        if self.study_files.files_by_visit.get((participant_id, session_id)):
            return True
        subjects_by_visit = self.study_files.subjects_by_person.get(participant_id, {})
        return (
            session_id in subjects_by_visit
            or session_id in self.session_by_person_and_visit.get(participant_id, {})
        )

    @cached_property
    def session_by_person_and_visit(self) -> dict[str, dict[str, str]]:
        """Visits with FreeSurfer subjects or rows of regional tables, by person."""
        scan_identities = [
            scan_identity
            for subjects_by_visit in self.study_files.subjects_by_person.values()
            for identity_path_pairs in subjects_by_visit.values()
            for scan_identity, _ in identity_path_pairs
        ]
        scan_keys = [self.study_files.get_scan_key(x) for x in scan_identities]
        if not scan_identities or self.table_paths is not None:
            scan_identities, scan_keys = [], []
            for table_contents in self.table_contents_list:
                if table_contents.values_by_measure_region:
                    scan_identities += table_contents.scan_identities
                    scan_keys += self.study_files.list_row_keys(
                        table_contents.scan_identities
                    )
        session_by_person_and_visit: dict[str, dict[str, str]] = {}
        for scan_identity, (participant_id, session_id) in zip(
            scan_identities, scan_keys, strict=True
        ):
            if session_id:
                is_renamed = session_id != scan_identity.key[1]
                session_by_person_and_visit.setdefault(participant_id, {}).setdefault(
                    session_id,
                    session_id if is_renamed else scan_identity.session or session_id,
                )
        return session_by_person_and_visit

    def locate_feature_sources(
        self, feature_name: str, scans: Sequence[Scan]
    ) -> tuple[Sequence[Source], list[Finding | str]]:
        """Return the source of a feature for every scan, and notes.

        Raises a CohortError if there is none for any scan.
        """
        measure_record = get_measure_record(feature_name)
        if self.table_paths is None:
            scan_sources, reading_notes = self._locate_region_file_sources(
                measure_record, scans
            )
            if scan_sources:
                return scan_sources, reading_notes
            if feature_name in self.study_files.pattern_by_feature:
                raise CohortError(
                    self.study_files.unmatched_pattern_text(feature_name, scans)
                )
            run_pair_lists = [
                scan.find_entries(self.study_files.subjects_by_person) for scan in scans
            ]
            if measure_record.is_in_stats and any(run_pair_lists):
                return self._choose_freesurfer_sources(scans, run_pair_lists)
        column_by_region_index = self._choose_column_by_region(measure_record)
        if column_by_region_index:
            return self._read_table_sources(
                column_by_region_index, scans, measure_record
            )
        table_errors = [
            error
            for error in self.skipped_table_errors
            if error.kind in ("not numbers", "rows differ", "few regions")
        ]
        if table_errors:
            raise CohortError(
                f"{feature_name} was not found, and a table of regions could not be "
                f"read: {join_with_commas(table_errors, 3)}",
                kind=table_errors[0].kind,
            )
        if self.table_paths is None:
            self._refuse_unread_table(feature_name)
        search_text = self._search_result_text(measure_record, scans)
        raise CohortError(
            f"{feature_name}: not found in any file or table; expected {search_text}",
            values=propose_atlas_option(
                [
                    table_contents.unmatched_region_names
                    for table_contents in self.table_contents_list
                ],
                self.atlas,
            ),
        )

    def _refuse_unread_table(self, feature_name: str) -> None:
        """Raise with the fault of the table whose file name contains the feature."""
        for error in self.skipped_table_errors:
            name_words = re.split(r"[\W_]+", Path(error.path or "").stem.lower())
            if feature_name.lower() in name_words:
                raise CohortError(
                    f"{feature_name}: a table could not be read, because "
                    f"{error.message}",
                    path=error.path,
                    got=error.got,
                    advice=error.advice,
                )

    def _list_other_tracer_texts(
        self, feature_name: str, scans: Sequence[Scan]
    ) -> list[str]:
        """Return which files of scans are of other tracers, at most five."""
        file_paths = dict.fromkeys(
            file_path for scan in scans for file_path in scan.paths
        )
        path_tracer_pairs = (
            (
                file_path,
                self.study_files.find_other_tracer_name(file_path, feature_name),
            )
            for file_path in file_paths
        )
        return [
            f"{file_path.name} is an image of {tracer_name}"
            for file_path, tracer_name in path_tracer_pairs
            if tracer_name
        ][:5]

    def _locate_region_file_sources(
        self, measure_record: MeasureRecord, scans: Sequence[Scan]
    ) -> tuple[list[Source], list[Finding | str]]:
        """Return every scan's table of regions, and notes; nothing if no scan has one.

        A scan without a table has a fault instead.
        """
        feature_name = measure_record.name
        optional_sources = list[Source | None]()
        for scan in scans:
            try:
                optional_sources.append(
                    self.study_files.find_region_table_path(
                        scan, feature_name, self.atlas
                    )
                )
            except CohortError as error:
                optional_sources.append(Finding.from_error(error, scan.name))
        if not any(optional_sources):
            return [], []
        expected_text = self.study_files.pattern_by_feature.get(
            feature_name, measure_record.expected_files_text
        )
        scan_sources = list[Source]()
        for scan, scan_source in zip(scans, optional_sources, strict=True):
            if scan_source:
                scan_sources.append(scan_source)
                continue
            message = (
                f"the table of regions for {feature_name} is missing; expected a "
                f"file {expected_text}. Add this file, or {format_leave_out_advice()}"
            )
            message = "; not used: ".join(
                [message, *self._list_other_tracer_texts(feature_name, [scan])]
            )
            scan_sources.append(Finding(message, FAULT, kind=NO_IMAGE, scan=scan.name))
        reading_notes: list[Finding | str]
        reading_notes = [
            f"{feature_name} was read from separate tables, one for each scan"
        ]
        for scale_column_name, entity_key in _SCALE_ENTITIES.items():
            entity_pattern = re.compile(f"(?:^|[_/]){entity_key}-([^_./]+)")
            entity_matches = [
                entity_pattern.search(str(scan_source)) for scan_source in scan_sources
            ]
            entity_values = [
                entity_match[1] if entity_match else None
                for entity_match in entity_matches
            ]
            origin_text = f"the entity {entity_key}- in file names"
            reading_notes += self._collect_scale_column_findings(
                feature_name, scale_column_name, entity_values, origin_text
            )
        return scan_sources, reading_notes

    def _search_result_text(
        self, measure_record: MeasureRecord, scans: Sequence[Scan]
    ) -> str:
        """Return the places searched for a feature, their contents, and reasons."""
        feature_name = measure_record.name
        folders_text = ", ".join(
            map(str, self.table_paths or [self.study_files.folder])
        )
        search_text = f"a table with {layouts_text()}, in {folders_text}"
        if self.table_paths is None:
            if measure_record.is_in_stats:
                search_text = (
                    "FreeSurfer subjects in this folder or in "
                    f"{option_text('subjects_dir')}, or {search_text}"
                )
            search_text = (
                f"files {measure_record.expected_files_text} of the scans, or "
                f"{search_text}"
            )
        file_names_text = " ".join(
            file_path.name for scan in scans for file_path in scan.paths
        )
        region_table_names = re.findall(
            r"desc-([a-z0-9]+)_regions", file_names_text.lower()
        )
        region_table_names += [
            table_contents.path.stem.lower()
            for table_contents in self.table_contents_list
            if table_contents.values_by_measure_region
        ]
        region_table_names = sorted({*region_table_names})
        other_feature_names = {*region_table_names, *KNOWN_MEASURE_NAMES} - {
            feature_name
        }
        for similar_feature_name in get_close_matches(
            feature_name.lower(), other_feature_names, 1
        ):
            search_text += f"; a similar name is {similar_feature_name!r}"
        if region_table_names:
            search_text += (
                "; the study has tables of regions named "
                f"{join_with_commas(region_table_names, 8)}"
            )
        rejection_reasons = [
            *self._list_other_tracer_texts(feature_name, scans),
            *map(str, self.skipped_table_errors),
        ]
        rejection_reasons += [
            table_contents.mismatch_text(self.atlas)
            for table_contents in self.table_contents_list
        ]
        freesurfer_pattern = self.study_files.pattern_by_feature.get("freesurfer")
        if measure_record.is_in_stats and self.study_files.subjects_by_person:
            subject_names_text = join_with_commas(
                self.study_files.subjects_by_person, 3
            )
            scan_names_text = join_with_commas((scan.name for scan in scans), 3)
            rejection_reasons.append(
                f"the FreeSurfer subjects are named {subject_names_text}, but the "
                f"scans are named {scan_names_text}. Write the same IDs in the table "
                "of participants as in the names of the FreeSurfer folders"
            )
        elif measure_record.is_in_stats and freesurfer_pattern:
            rejection_reasons.append(
                f"the pattern {freesurfer_pattern!r} of freesurfer "
                f"({option_text('pattern')}) fits no folder of a subject"
            )
        return search_text + "".join(
            f"; not used: {rejection_reason}"
            for rejection_reason in rejection_reasons
            if rejection_reason
        )

    def _choose_freesurfer_sources(
        self,
        scans: Sequence[Scan],
        run_pair_lists: Sequence[list[tuple[ScanIdentity, Path]]],
    ) -> tuple[list[Source], list[Finding | str]]:
        """Return every scan's FreeSurfer subject, all of one kind of run.

        The kind that more scans have is chosen. Longitudinal runs have a base.
        """
        cross_sectional_run_flags = [
            any(not scan_identity.template_name for scan_identity, _ in run_pairs)
            for run_pairs in run_pair_lists
        ]
        longitudinal_run_flags = [
            any(scan_identity.template_name for scan_identity, _ in run_pairs)
            for run_pairs in run_pair_lists
        ]
        if all(cross_sectional_run_flags) and all(longitudinal_run_flags):
            raise CohortError(
                "every scan has both a cross-sectional and a longitudinal "
                "FreeSurfer run. Choose one type of run with pattern = {freesurfer = "
                "'*.long.*'} or pattern = {freesurfer = '!*.long.*'} in --config "
                "(in Python pattern={'freesurfer': '*.long.*'})"
            )
        are_longitudinal = sum(longitudinal_run_flags) > sum(cross_sectional_run_flags)
        run_kind = _LONGITUDINAL if are_longitudinal else _CROSS_SECTIONAL
        other_run_kind = _CROSS_SECTIONAL if are_longitudinal else _LONGITUDINAL
        scan_sources = list[Source]()
        for scan, run_pairs in zip(scans, run_pair_lists, strict=True):
            run_paths = [
                run_path
                for scan_identity, run_path in run_pairs
                if bool(scan_identity.template_name) == are_longitudinal
            ]
            if len(run_paths) == 1:
                scan_sources.append(run_paths[0])
                continue
            if run_paths:
                ambiguity_text = (
                    f"{len(run_paths)} FreeSurfer folders could belong to the scan"
                )
                run_error = make_ambiguity_error(
                    ambiguity_text, "freesurfer", run_paths
                )
                scan_sources.append(Finding.from_error(run_error, scan.name))
                continue
            message = f"the {run_kind} FreeSurfer run is missing"
            if run_pairs:
                message += (
                    f" (there is a {other_run_kind} run, but longitudinal and "
                    "cross-sectional runs must not be mixed)"
                )
            message += (
                "; expected a folder that has the name of the scan and contains the "
                "folder stats, but the FreeSurfer folders are named "
                f"{join_with_commas(self.study_files.subjects_by_person, 3)}. Add the "
                f"folder, or {format_leave_out_advice()}"
            )
            scan_sources.append(Finding(message, FAULT, kind=NO_IMAGE, scan=scan.name))
        return scan_sources, [f"FreeSurfer: the stats of {run_kind} runs were read"]

    def add_scale_columns(self, scan_table: pd.DataFrame) -> None:
        """Add the columns that tell on which scale values are to the table of scans."""
        for scale_column_name, scale_names in self.scale_names_by_column.items():
            if scale_column_name not in scan_table:
                scan_table[scale_column_name] = scale_names

    def _collect_scale_column_findings(
        self,
        feature_name: str,
        scale_column_name: str,
        scan_scale_names: Sequence[str | None],
        origin_text: str,
    ) -> list[Finding]:
        """Keep a column that tells on which scale values are, if it differs by scan.

        Return its values with counts as a note, and nothing if the table of people has
        the column.
        """
        scale_display_texts = [
            join_with_commas(sorted(tracer.name for tracer in find_tracers(scale_name)))
            or scale_name
            for scale_name in scan_scale_names
            if scale_name
        ]
        n_scans_by_scale_text = Counter(scale_display_texts)
        if (
            len(n_scans_by_scale_text) < 2
            or scale_column_name in self.people_column_names
        ):
            return []
        if len(n_scans_by_scale_text) <= _MAX_SCALES:
            if scale_column_name in self.scale_names_by_column:
                scale_column_name = (
                    f"{feature_name}_{find_covariate_kind(scale_column_name)}"
                )
            self.scale_names_by_column[scale_column_name] = list(scan_scale_names)
        counts_text = named_counts_text(
            n_scans_by_scale_text.most_common(), max_items=5
        )
        message = (
            f"{feature_name}: {origin_text} has {len(n_scans_by_scale_text)} different "
            f"values ({counts_text}). The scale of {feature_name} may differ between "
            "these values. The audit of leakage compares the scans with different "
            "values"
        )
        return [Finding(message, kind=SCALES_DIFFER)]

    def _check_tracers(
        self,
        measure_record: MeasureRecord,
        table_contents: TableContents,
        row_indices: Sequence[int],
        is_tracer_unnamed: bool,
    ) -> None:
        """Raise if rows of a table are of another tracer than a feature's.

        If no column of regions names its tracer (`is_tracer_unnamed`), neither the
        table's name nor the names of its other columns may name another.
        """
        feature_name = measure_record.name
        if feature_name not in (*PET_FEATURES, "suvr"):
            return
        for tracer_column_name in find_tracer_column_names(table_contents.text_table):
            n_rows_by_cell = Counter(
                table_contents.text_table[tracer_column_name]
                .iloc[list(row_indices)]
                .dropna()
            )
            feature_names_by_cell = {
                cell_text: {tracer.feature for tracer in find_tracers(cell_text)}
                for cell_text in n_rows_by_cell
            }
            tracer_feature_names = sorted(set().union(*feature_names_by_cell.values()))
            has_other_tracer = any(
                cell_feature_names not in (set(), {feature_name})
                for cell_feature_names in feature_names_by_cell.values()
            )
            if (has_other_tracer and feature_name != "suvr") or len(
                tracer_feature_names
            ) > 1:
                counts_text = named_counts_text(
                    n_rows_by_cell.most_common(), max_items=20
                )
                raise CohortError(
                    f"{feature_name}: the column {tracer_column_name!r} of "
                    f"{table_contents.name_and_sheet} contains several tracers "
                    f"({counts_text}). Keep only the rows of one tracer. With "
                    f"{option_text('feature')}, choose the measure of this tracer "
                    f"({' or '.join(tracer_feature_names)})"
                )
        pet_column_names = [
            column_name
            for column_name in table_contents.text_table
            if _PET_HEAD.search(column_name)
        ]
        feature_names_in_table = {
            tracer.feature
            for pet_column_name in pet_column_names
            for tracer in find_tracers(pet_column_name)
        }
        if any(
            "centiloid" in pet_column_name.lower()
            for pet_column_name in pet_column_names
        ):
            feature_names_in_table.add("amyloid")
        feature_names_in_table |= {
            tracer.feature
            for tracer in find_tracers_of_file(table_contents.name_and_sheet)
        }
        has_other_feature_names = bool(
            feature_names_in_table
        ) and feature_names_in_table != {feature_name}
        if is_tracer_unnamed and has_other_feature_names and feature_name != "suvr":
            raise CohortError(
                f"{feature_name}: the names of the region columns in "
                f"{table_contents.name_and_sheet} do not contain a tracer. However, "
                "the name of the table, or of another column, is typical of "
                f"{join_with_commas(sorted(feature_names_in_table))}. Write the tracer "
                "into the names of the region columns, or into the file name"
            )

    def _choose_column_by_region(
        self, measure_record: MeasureRecord
    ) -> dict[int, _RegionColumn]:
        """Return the column of every region (position in the atlas) of a feature.

        A column that names the feature comes before one that names no measure, and a
        table that names regions of the atlas alone before one that names more. Raises a
        CohortError if two tables are left.
        """
        cortex_measure_names = (*map(str.lower, measure_record.header_measures), "")
        subcortex_measure_names: tuple[str, ...] = cortex_measure_names
        if measure_record.is_on_surface:
            has_volumes = self.subcortex == "volume"
            subcortex_measure_names = ("volume", "") if has_volumes else ()
        rank_column_pairs_by_region: dict[
            int, list[tuple[tuple[float, bool, bool], _RegionColumn]]
        ] = {}
        for table_contents in self.table_contents_list:
            has_file_name_measure = _is_measure_in_file_name(
                table_contents.name_and_sheet, measure_record.name
            )
            for (
                header_measure,
                atlas_region_index,
            ) in table_contents.values_by_measure_region:
                is_cortex = self.atlas.cortex[atlas_region_index]
                accepted_measure_names = (
                    cortex_measure_names if is_cortex else subcortex_measure_names
                )
                header_rank = _rank_header_measure(
                    header_measure, accepted_measure_names
                )
                if header_rank is None:
                    continue
                # If no column name has a measure, that of a file's name counts.
                is_measure_unnamed = not (header_measure or has_file_name_measure)
                column_rank = (
                    header_rank,
                    is_measure_unnamed,
                    not table_contents.has_only_atlas_regions,
                )
                region_column = _RegionColumn(table_contents, header_measure)
                rank_column_pairs_by_region.setdefault(atlas_region_index, []).append(
                    (column_rank, region_column)
                )
        column_by_region_index: dict[int, _RegionColumn] = {}
        for atlas_region_index, rank_column_pairs in sorted(
            rank_column_pairs_by_region.items()
        ):
            min_column_rank = min(column_rank for column_rank, _ in rank_column_pairs)
            best_columns = [
                region_column
                for column_rank, region_column in rank_column_pairs
                if column_rank == min_column_rank
            ]
            if len(best_columns) > 1:
                paths_text = join_with_commas(
                    region_column.table_contents.path_and_sheet
                    for region_column in best_columns
                )
                # --features-table cannot choose among the sheets of one file.
                is_one_file = (
                    len(
                        {
                            region_column.table_contents.path
                            for region_column in best_columns
                        }
                    )
                    == 1
                )
                advice_text = f"Choose one with {option_text('features_table')}"
                if is_one_file:
                    advice_text = "Keep only one of them in this file"
                raise CohortError(
                    f"{measure_record.name}: several tables contain the same "
                    f"regions: {paths_text}. {advice_text}"
                )
            column_by_region_index[atlas_region_index] = best_columns[0]
        return column_by_region_index

    def _check_same_people(self, table_contents: TableContents) -> None:
        """Raise if a table gives ids of the table of people to other people.

        The check is skipped if the user named the column of ids.
        """
        if self.people_contents is None or self.user_columns.id_column_names:
            return
        person_ids = [
            self.study_files.get_scan_key(scan_identity)[0]
            for scan_identity in self.people_contents.scan_identities
        ]
        table_person_ids = [
            self.study_files.get_scan_key(scan_identity)[0]
            for scan_identity in table_contents.scan_identities
        ]
        message = exchanged_ids_text(
            person_ids,
            {
                **self.people_contents.text_table.to_dict("list"),
                self.people_contents.id_column_name: person_ids,
            },
            table_person_ids,
            {
                **table_contents.text_table.to_dict("list"),
                table_contents.id_column_name: table_person_ids,
            },
            (self.people_contents.id_column_name, table_contents.id_column_name),
        )
        if message:
            raise CohortError(
                f"{self.people_contents.name_and_sheet}, "
                f"{table_contents.name_and_sheet}: {message}"
            )

    def _read_table_sources(
        self,
        column_by_region_index: dict[int, _RegionColumn],
        scans: Sequence[Scan],
        measure_record: MeasureRecord,
    ) -> tuple[list[Source], list[Finding | str]]:
        """Return the values of every scan in tables with a row per scan, and notes.

        A scan without its one row in every table has a fault instead.
        """
        used_contents_list = [
            *{
                id(region_column.table_contents): region_column.table_contents
                for region_column in column_by_region_index.values()
            }.values()
        ]
        table_names_text = ", ".join(
            used_contents.name_and_sheet for used_contents in used_contents_list
        )
        reading_notes: list[Finding | str] = [
            f"{measure_record.name} was read from {table_names_text}"
        ]
        feature_values = np.full((len(scans), len(self.atlas)), np.nan)
        fault_by_scan_index = dict[int, Finding]()
        for used_contents in used_contents_list:
            self._check_same_people(used_contents)
            row_index_lists, table_fault_by_scan_index = self._match_rows_and_faults(
                used_contents, scans
            )
            fault_by_scan_index |= table_fault_by_scan_index
            first_row_indices = [
                row_indices[0] if row_indices else None
                for row_indices in row_index_lists
            ]
            matched_row_indices = [
                first_row_index
                for first_row_index in first_row_indices
                if first_row_index is not None
            ]
            header_measures = {
                region_column.header_measure
                for region_column in column_by_region_index.values()
                if region_column.table_contents is used_contents
            }
            is_tracer_unnamed = not header_measures.isdisjoint(
                _get_unspecific_header_measures(measure_record)
            )
            self._check_tracers(
                measure_record,
                used_contents,
                matched_row_indices,
                is_tracer_unnamed,
            )
            reading_notes += self._collect_table_scale_findings(
                measure_record, used_contents, first_row_indices
            )
            filled_row_indices = [
                first_row_index or 0 for first_row_index in first_row_indices
            ]
            for atlas_region_index, region_column in column_by_region_index.items():
                if region_column.table_contents is used_contents:
                    feature_values[:, atlas_region_index] = (
                        used_contents.values_by_measure_region[
                            region_column.header_measure, atlas_region_index
                        ][filled_row_indices]
                    )
            reading_notes += [
                replace(table_finding, path=used_contents.name_and_sheet)
                for table_finding in used_contents.notes
            ]
            reading_notes += self._make_unused_part_notes(
                used_contents, row_index_lists
            )
        unmeasured_region_names = [
            self.atlas.names[i]
            for i in column_by_region_index
            if np.isnan(feature_values[:, i]).all()
        ]
        if unmeasured_region_names:
            region_names_text = join_with_commas(unmeasured_region_names, 5)
            reading_notes.append(
                f"{measure_record.name} was not measured in any scan in these "
                f"regions: {region_names_text}"
            )
        _check_one_kind_of_run(used_contents_list, table_names_text)
        self._check_regions(column_by_region_index, used_contents_list)
        for used_contents in used_contents_list:
            if any(
                region_column.table_contents is used_contents
                and region_column.header_measure
                in _get_unspecific_header_measures(measure_record)
                and (
                    self.atlas.cortex[atlas_region_index]
                    or not measure_record.is_on_surface
                )
                for atlas_region_index, region_column in column_by_region_index.items()
            ):
                self._refuse_other_measure(
                    measure_record.name, used_contents, used_contents_list
                )
        reading_notes += self._check_unnamed_columns(
            column_by_region_index, measure_record, feature_values, table_names_text
        )
        reading_notes += self._make_unused_subcortex_notes(
            column_by_region_index, measure_record, used_contents_list
        )
        scan_sources: list[Source] = [
            fault_by_scan_index.get(i, scan_values)
            for i, scan_values in enumerate(feature_values)
        ]
        return scan_sources, reading_notes

    def _match_rows_and_faults(
        self, table_contents: TableContents, scans: Sequence[Scan]
    ) -> tuple[list[list[int]], dict[int, Finding]]:
        """Return the rows of every scan in a table, and faults by scan.

        A fault is no row, more than one, or a row with a fault.
        """
        row_indices_by_person: dict[str, dict[str, list[int]]] = {}
        row_keys = self.study_files.list_row_keys(table_contents.scan_identities)
        for row_index, (participant_id, session_id) in enumerate(row_keys):
            row_indices_by_person.setdefault(participant_id, {}).setdefault(
                session_id, []
            ).append(row_index)
        row_index_lists = [scan.find_entries(row_indices_by_person) for scan in scans]
        repeat_advice = (
            "Delete the rows that are wrong, write the visits in a column session_id"
        )
        repeat_values: dict[str, str] = {}
        visit_column_name = find_unnamed_visit_column(
            table_contents.scan_identities, table_contents.text_table.to_dict("list")
        )
        if visit_column_name is not None:
            repeat_advice = make_visit_column_advice(visit_column_name)
            repeat_values["session_column"] = visit_column_name
        absent_person_hint = ""
        if not all(row_index_lists):
            absent_person_hint = self._absent_person_text(table_contents)
        fault_by_scan_index = dict[int, Finding]()
        for i, (scan, row_indices) in enumerate(
            zip(scans, row_index_lists, strict=True)
        ):
            if len(row_indices) > 1:
                fault_by_scan_index[i] = Finding(
                    f"{table_contents.path_and_sheet} contains more than one row of "
                    "this scan; expected one",
                    FAULT,
                    scan=scan.name,
                    got=count_text(len(row_indices), "row"),
                    advice=f"{repeat_advice}, or {format_leave_out_advice()}",
                    values=repeat_values,
                )
            elif row_indices and row_indices[0] in table_contents.fault_by_row_index:
                row_finding = table_contents.fault_by_row_index[row_indices[0]]
                fault_by_scan_index[i] = replace(row_finding, scan=scan.name)
            elif not row_indices:
                row_indices_by_visit = row_indices_by_person.get(scan.key[0])
                row_hint = absent_person_hint
                if row_indices_by_visit:
                    row_hint = _absent_visit_text(row_indices_by_visit)
                missing_row_text = (
                    f"no row in {table_contents.path_and_sheet}, {row_hint}. If the "
                    f"row is really missing, add it, or {format_leave_out_advice()}"
                )
                fault_by_scan_index[i] = Finding(
                    missing_row_text, FAULT, kind=NO_IMAGE, scan=scan.name
                )
        return row_index_lists, fault_by_scan_index

    def _absent_person_text(self, table_contents: TableContents) -> str:
        """Return the people of a table that has no row for a person, as text."""
        spelling_advice = (
            "write the IDs in the same way in both tables, including upper and lower "
            "case and leading zeros"
        )
        if self.people_contents is not None:
            people_table_ids = {
                self.study_files.get_scan_key(scan_identity)[0]
                for scan_identity in self.people_contents.scan_identities
            }
            unlisted_participant_ids = dict.fromkeys(
                scan_identity.participant
                for scan_identity in table_contents.scan_identities
                if self.study_files.get_scan_key(scan_identity)[0]
                not in people_table_ids
            )
            if unlisted_participant_ids:
                for (
                    column_name,
                    column_series,
                ) in self.people_contents.text_table.items():
                    # ADNI's tables have two numberings of people, RID and PTID.
                    if {*unlisted_participant_ids} <= {*column_series}:
                        spelling_advice = (
                            f"these are values of the column {column_name} of "
                            f"{self.people_contents.name_and_sheet}, so add the column "
                            f"{self.people_contents.id_column_name} to "
                            f"{table_contents.name_and_sheet}, with the ID of each row"
                        )
                return (
                    "which has rows of people who are not in "
                    f"{self.people_contents.name_and_sheet}: "
                    f"{join_with_commas(unlisted_participant_ids, 3)}; "
                    f"{spelling_advice}"
                )
        people_text = join_with_commas(
            (
                scan_identity.participant
                for scan_identity in table_contents.scan_identities
            ),
            3,
        )
        return f"whose rows are named {people_text}; {spelling_advice}"

    def _collect_table_scale_findings(
        self,
        measure_record: MeasureRecord,
        table_contents: TableContents,
        scan_row_indices: Sequence[int | None],
    ) -> list[Finding]:
        """Keep the columns of a table that tell on which scale its values are."""
        scale_column_names = [
            scale_column_name
            for scale_column_name in table_contents.text_table
            if find_covariate_kind(scale_column_name) in SCALE_KINDS
        ]
        scale_findings = list[Finding]()
        for scale_column_name in dict.fromkeys(
            [*scale_column_names, *find_tracer_column_names(table_contents.text_table)]
        ):
            scale_cells = table_contents.text_table[scale_column_name].to_numpy()
            scan_scale_names = [
                None if row_index is None else scale_cells[row_index]
                for row_index in scan_row_indices
            ]
            origin_text = (
                f"the column {scale_column_name!r} of {table_contents.name_and_sheet}"
            )
            scale_findings += self._collect_scale_column_findings(
                measure_record.name,
                scale_column_name,
                scan_scale_names,
                origin_text,
            )
        return scale_findings

    def _make_unused_part_notes(
        self, table_contents: TableContents, row_index_lists: Sequence[Sequence[int]]
    ) -> list[Finding]:
        """Return notes on the columns and rows of a table that are not used."""
        omission_findings = list[Finding]()
        used_column_names = {*self.people_column_names, *self.scale_names_by_column}
        unused_column_names = [
            column_name
            for column_name in (
                *table_contents.text_table,
                *table_contents.excluded_column_names,
            )
            if column_name not in used_column_names
        ]
        if unused_column_names:
            message = (
                f"columns that are not regions of the atlas {self.atlas.name} are "
                f"left out: {join_with_commas(unused_column_names, 5)}"
            )
            omission_findings.append(
                Finding(message, LEFT_OUT, path=table_contents.name_and_sheet)
            )
        if table_contents.unmatched_region_names:
            message = (
                f"regions that the atlas {self.atlas.name} does not contain are left "
                f"out: {join_with_commas(table_contents.unmatched_region_names, 5)}"
            )
            omission_findings.append(
                Finding(message, LEFT_OUT, path=table_contents.name_and_sheet)
            )
        used_row_indices = {
            row_index for row_indices in row_index_lists for row_index in row_indices
        }
        unused_scan_names = tuple(
            dict.fromkeys(
                scan_identity.text
                for row_index, scan_identity in enumerate(
                    table_contents.scan_identities
                )
                if row_index not in used_row_indices
            )
        )
        if unused_scan_names:
            omission_findings.append(
                Finding(
                    f"{count_text(len(unused_scan_names), 'scan', 'were')} not used, "
                    "because the cohort does not contain "
                    f"{'it' if len(unused_scan_names) == 1 else 'them'}:",
                    path=table_contents.name_and_sheet,
                    people=unused_scan_names,
                )
            )
        return omission_findings

    def _check_regions(
        self,
        column_by_region_index: dict[int, _RegionColumn],
        used_contents_list: Sequence[TableContents],
    ) -> None:
        """Raise if tables have only a part of the cortex, or of the subcortex."""
        paths_text = ", ".join(
            used_contents.path_and_sheet for used_contents in used_contents_list
        )
        unmatched_region_names = [
            unmatched_region_name
            for used_contents in used_contents_list
            for unmatched_region_name in used_contents.unmatched_region_names
        ]
        unknown_names_text = unknown_names_sentence(unmatched_region_names, self.atlas)
        region_indices = np.array(list(column_by_region_index))
        try:
            check_structures_complete(region_indices, self.atlas, paths_text)
            if unknown_names_text and not self.atlas.cortex[region_indices].any():
                raise FileFormatError(
                    "the table contains no cortical region.", path=paths_text
                )
        except FileFormatError as error:
            message_parts = [error.message, unknown_names_text]
            # A misspelt name explains a missing region, so it comes first.
            if self.atlas.cortex[region_indices].any():
                message_parts.reverse()
            raise FileFormatError(
                " ".join(message_parts).strip(),
                path=error.path,
                values=propose_atlas_option(
                    [
                        used_contents.unmatched_region_names
                        for used_contents in used_contents_list
                    ],
                    self.atlas,
                ),
            ) from error

    def _refuse_other_measure(
        self,
        measure_name: str,
        table_contents: TableContents,
        used_contents_list: Sequence[TableContents],
    ) -> None:
        """Raise if a table whose columns name no measure is probably of another one.

        Its name then names another measure, or a file beside it names the feature.
        """
        table_name = table_contents.name_and_sheet
        file_measure_names = find_measure_names_of_file(table_name)
        if not _is_measure_in_file_name(table_name, measure_name):
            file_measure_names |= find_translated_measures(table_name)
        if file_measure_names - {measure_name}:
            raise CohortError(
                f"{measure_name}: the names of the region columns in "
                f"{table_contents.name_and_sheet} do not contain a measure, but the "
                "name of the table contains "
                f"{join_with_commas(sorted(file_measure_names))}. Write the measure "
                "into the names of the region columns, or write only this measure into "
                "the file name"
            )
        if _is_measure_in_file_name(table_contents.name_and_sheet, measure_name):
            return
        file_names_with_measure = [
            used_contents.name_and_sheet
            for used_contents in used_contents_list
            if used_contents is not table_contents
            and (
                measure_name in used_contents.measure_names
                or _is_measure_in_file_name(used_contents.name_and_sheet, measure_name)
            )
        ]
        if self.table_paths is None:
            people_path = self.people_contents.path if self.people_contents else None
            file_names_with_measure += [
                table_path.name
                for table_path in self.study_files.table_paths
                if table_path not in (table_contents.path, people_path)
                and _is_measure_in_file_name(table_path.name, measure_name)
            ]
        if file_names_with_measure:
            unread_tables_text = "".join(
                f"; not used: {error}"
                for error in self.skipped_table_errors
                if Path(error.path or "").name in file_names_with_measure
            ) + "".join(
                f"; not used: {other_contents.mismatch_text(self.atlas)}"
                for other_contents in self.table_contents_list
                if other_contents.path.name in file_names_with_measure
                and other_contents not in used_contents_list
            )
            raise CohortError(
                f"neither the name of {table_contents.name_and_sheet} nor the names of "
                "its columns contain a measure, but the name of "
                f"{join_with_commas(dict.fromkeys(file_names_with_measure))} contains "
                f"{measure_name}. If the values of {table_contents.name_and_sheet} are "
                f"{measure_name}, write {measure_name} into the name of this file or "
                f"of its columns{unread_tables_text}"
            )

    def _check_unnamed_columns(
        self,
        column_by_region_index: dict[int, _RegionColumn],
        measure_record: MeasureRecord,
        scan_region_values: np.ndarray,
        table_names_text: str,
    ) -> list[Finding]:
        """Check columns of the cortex that do not name the measure; return a note.

        Raises a CohortError unless the user named the feature and the values are
        plausible for it.
        """
        measure_name = measure_record.name
        unnamed_region_indices = [
            atlas_region_index
            for atlas_region_index, region_column in column_by_region_index.items()
            if self.atlas.cortex[atlas_region_index]
            and (
                region_column.header_measure
                in _get_unspecific_header_measures(measure_record)
                or _is_translation(region_column.header_measure, measure_record)
            )
        ]
        if not unnamed_region_indices:
            return []
        median_value = np.nanmedian(scan_region_values[:, unnamed_region_indices])
        lowest_plausible_value, highest_plausible_value = measure_record.plausible_range
        is_plausible = lowest_plausible_value <= median_value <= highest_plausible_value
        first_column = column_by_region_index[unnamed_region_indices[0]]
        kind_word = "tracer" if first_column.header_measure else "measure"
        name_text = f"{table_names_text} does not name the {kind_word} of its values"
        is_translated = any(
            _is_translation(
                column_by_region_index[region_index].header_measure
                or column_by_region_index[region_index].table_contents.name_and_sheet,
                measure_record,
            )
            for region_index in unnamed_region_indices
        )
        if _is_translation(first_column.header_measure, measure_record):
            name_text = (
                f"{table_names_text} names the measure of its values "
                f"{first_column.header_measure!r}"
            )
        has_named_features = self.has_named_features or (
            is_translated and self.accepts_translated_measures
        )
        if has_named_features and is_plausible:
            if all(
                _is_measure_in_file_name(
                    column_by_region_index[
                        atlas_region_index
                    ].table_contents.name_and_sheet,
                    measure_name,
                )
                for atlas_region_index in unnamed_region_indices
            ):
                return []
            message = f"{name_text}, so they were read as {measure_name}"
            return [Finding(message, kind=ASSUMED)]
        message = f"{name_text}, and the median is {median_value:.3g}"
        plausible_range_by_measure = {
            other_measure_name: get_measure_record(other_measure_name).plausible_range
            for other_measure_name in KNOWN_MEASURE_NAMES
            if other_measure_name != measure_name
        }
        other_measure_names = [
            other_measure_name
            for other_measure_name, (
                lowest_other_value,
                highest_other_value,
            ) in plausible_range_by_measure.items()
            if np.isfinite((lowest_other_value, highest_other_value)).all()
            and lowest_other_value <= median_value <= highest_other_value
        ]
        if is_plausible and is_translated:
            message += (
                f". If the measure is {measure_name}, name the feature with "
                f"{option_text('feature', measure_name)}"
            )
        elif is_plausible and other_measure_names:
            measures_text = join_with_and([measure_name, *other_measure_names])
            message += (
                f" and thus plausible for {measures_text}. Name the correct feature "
                f"with {option_text('feature')}"
            )
        elif is_plausible:
            feature_option_text = option_text("feature", measure_name)
            message += (
                f" and thus plausible for {measure_name}. Name the feature with "
                f"{feature_option_text}"
            )
        else:
            message += (
                f"; plausible values of {measure_name} lie between "
                f"{lowest_plausible_value:g} and "
                f"{highest_plausible_value:g}. Give the feature another name "
                f"with {option_text('feature')}"
            )
        raise CohortError(message)

    def _make_unused_subcortex_notes(
        self,
        column_by_region_index: dict[int, _RegionColumn],
        measure_record: MeasureRecord,
        table_contents_list: Sequence[TableContents],
    ) -> list[Finding]:
        """Return a note on subcortical columns that a measure of the surface leaves."""
        unused_measure_region_pairs = {
            (header_measure, atlas_region_index)
            for table_contents in table_contents_list
            for (
                header_measure,
                atlas_region_index,
            ) in table_contents.values_by_measure_region
            if header_measure != "other"
            and not self.atlas.cortex[atlas_region_index]
            and atlas_region_index not in column_by_region_index
        }
        if not measure_record.is_on_surface or not unused_measure_region_pairs:
            return []
        n_regions = len(
            {
                atlas_region_index
                for _, atlas_region_index in unused_measure_region_pairs
            }
        )
        columns_text = count_text(n_regions, "subcortical column", "are")
        note_text = f"{measure_record.name}: {columns_text} left out"
        volume_region_indices = {
            atlas_region_index
            for header_measure, atlas_region_index in unused_measure_region_pairs
            if header_measure in ("volume", "")
        }
        has_all_volumes = volume_region_indices == {*np.flatnonzero(~self.atlas.cortex)}
        # Beside the feature volume they would count twice.
        may_use_volumes = (
            self.subcortex != "volume" and "volume" not in self.feature_names
        )
        if may_use_volumes and has_all_volumes:
            note_text += f"; {option_text('subcortex', 'volume')} reads them as volumes"
        return [Finding(note_text, LEFT_OUT)]


def _get_unspecific_header_measures(measure_record: MeasureRecord) -> set[str]:
    """Return the kind of values in column names without a measure: none, or a ratio."""
    return {"", "suvr"} - {measure_record.name}


def _is_translation(name: str, measure_record: MeasureRecord) -> bool:
    """Return whether a name has a word of another language for this measure alone."""
    return find_translated_measures(name) == {measure_record.name}


def _rank_header_measure(
    header_measure: str, accepted_measure_names: Sequence[str]
) -> float | None:
    """Return the rank of a column by the measure in its name, None if it is another.

    A word of another language comes before no word.
    """
    if header_measure in accepted_measure_names:
        return accepted_measure_names.index(header_measure)
    translated_measure_names = find_translated_measures(header_measure)
    if len(translated_measure_names) == 1 and translated_measure_names <= {
        *accepted_measure_names
    }:
        return len(accepted_measure_names) - 1.5
    return None


def _is_measure_in_file_name(file_name: str, measure_name: str) -> bool:
    """Return whether the name of a file names a measure."""
    if measure_name in find_measure_names_of_file(file_name):
        return True
    # Ordinary words contain the short names.
    is_short_name = measure_name in (*PET_FEATURES, "area")
    return not is_short_name and measure_name.lower() in file_name.lower()


def _absent_visit_text(visit_names: Iterable[str]) -> str:
    """Return the visits of a person in a table that has no row for a visit, as text."""
    visits_text = join_with_commas(
        (visit_name or "none" for visit_name in visit_names), 3
    )
    return (
        f"whose rows are of visit {visits_text}; write the visits in the same way in "
        "both tables, in a column session_id (for example M000 for bl)"
    )


def _check_one_kind_of_run(
    table_contents_list: Sequence[TableContents], table_names_text: str
) -> None:
    """Raise if rows are of longitudinal and of cross-sectional FreeSurfer runs."""
    longitudinal_flag_set = {
        bool(scan_identity.template_name)
        for table_contents in table_contents_list
        for scan_identity in table_contents.scan_identities
    }
    if len(longitudinal_flag_set) > 1:
        raise CohortError(
            f"{table_names_text}: some rows come from longitudinal FreeSurfer runs "
            "('.long.'), and other rows come from cross-sectional runs. Rows of these "
            "two types of run must not be mixed. Keep the rows of only one type"
        )
