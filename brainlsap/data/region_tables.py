"""Read tables of regions in every layout that tools write.

Tables of many scans have one of the layouts in `SCAN_TABLE_LAYOUTS`. The tables of
FreeSurfer's `aparcstats2table` and `asegstats2table`, those of ADNI, and any other with
columns named by regions have one row per scan.
Tables of one scan have one row or one column per region, both hemispheres in one file
or in two, or PET over time. Columns may name their measure (`lh_cuneus_thickness`), the
first column name (`lh.aparc.a2009s.thickness`, `Measure:volume`) or the file's name
(`thickness.csv`) may name it for all columns, or nothing does.

PETSurfer's `mri_gtmpvc` writes `gtm.stats.dat` without a header: index, number, name
and tissue of a segment, voxels, variance reduction, uptake, and in newer versions the
residual. petprep_extract_tacs writes `frame_start frame_end <regions>`, PETPrep
`FrameTimesStart FrameTimesEnd <regions>`: activity over time. Its average over frames,
divided by that of a reference region, is the SUVR.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas
from brainlsap.atlas.region_names import (
    HEMISPHERE_WORDS,
    MIDLINE_WORDS,
    are_default_row_names,
    find_side,
    is_non_region_name,
    split_side_from_name,
    split_words,
)
from brainlsap.data.covariates import COVARIATES, find_covariate_kind
from brainlsap.data.find_files import (
    SIDE_IN_NAME,
    ScanIdentity,
    ScanRows,
    find_other_side_path,
    sort_scan_columns,
)
from brainlsap.data.id_columns import NO_CHOICE, UserColumns
from brainlsap.data.measures import (
    MEASURE_OF_WORD,
    PET_FEATURES,
    TRACERS,
    VALUE_COLUMNS,
    MeasureRecord,
    find_measure_names_of_file,
    find_tracers,
    get_measure_record,
    wrong_tracer_text,
)
from brainlsap.data.region_lists import are_unsigned_integers
from brainlsap.data.tables import (
    FREESURFER_HEAD,
    NAME_COLUMNS,
    PEOPLE_COLUMNS,
    SESSION_COLUMNS,
    SIDE_COLUMNS,
    MissingWords,
    TableColumns,
    find_column_name,
    find_region_column_name,
    has_decimal_comma,
    is_number_with_marks,
    number_cell_advice,
    parse_number_array,
    read_lines,
    read_table,
    read_table_columns,
)
from brainlsap.exceptions import (
    BrainlsapError,
    FileFormatError,
    ParameterError,
    RegionNameError,
    convert_reading_errors,
)
from brainlsap.findings import FAULT, LEFT_OUT, Finding
from brainlsap.text import (
    count_text,
    format_leave_out_advice,
    join_with_commas,
    option_text,
    verb_form,
)

# Covariates that a study adjusts for, though their names look like regions.
_HEAD_SIZES = (
    *("etiv", "icv", "tiv", "st10cv"),
    *("estimatedtotalintracranialvol", "intracranialvol"),
)
_SCAN_COLUMNS = (*PEOPLE_COLUMNS, "scan_id", *SESSION_COLUMNS)
# Smallest number of columns besides the regions that are taken for participants.
_MIN_TRANSPOSED_COLUMNS = 4
# Word in a file's name or a column name -> measure; entities of tracers count, too.
_MEASURE_OF_TERM = {
    **{
        entity: tracer.feature for tracer in TRACERS for entity in tracer.lower_entities
    },
    **MEASURE_OF_WORD,
}
# Try the longest term first, so that none is taken for a shorter one within it.
_ANY_TERM = (
    f"({'|'.join(map(re.escape, sorted(_MEASURE_OF_TERM, key=len, reverse=True)))})"
)
_HEAD_WITH_TERM = re.compile(f"(.+?)[-_. ]{_ANY_TERM}", re.IGNORECASE)
_SUVR_IN_FILE_NAME = re.compile("(?<![a-z0-9])suvr(?![a-z0-9])")
# Accept a word that is no known measure (or a number as column name) if it occurs with
# more than this fraction of the regions.
_MIN_SHARE_OF_REGIONS = 1 / 4
# Words around a region's name that do not change the measure.
_STATISTIC_WORDS = {"mean", "avg", "average", "value", "values"}
# At most this many words stand around a region's name.
_MAX_WORDS = 5
_UCSF_HEAD = re.compile(r"(ST\d{1,3})(TA|SA|CV|SV|TS|HS)", re.IGNORECASE)
_UCSF_MEASURES = {"TA": "thickness", "SA": "area", "CV": "volume", "SV": "volume"}
# Titles of UK Biobank's fields of FreeSurfer.
_UKBIOBANK_TITLE = re.compile(
    r"(?P<measure>Area|Mean thickness|Volume) of (?P<region>\S+) "
    r"\((?P<side>left|right) hemisphere\)"
)
_UKBIOBANK_MEASURES = {
    "Area": "area",
    "Mean thickness": "thickness",
    "Volume": "volume",
}
_MEASURE_OF_UNIT = {"mm2": "area", "mm3": "volume", "suvr": "suvr"}
_COPY_NUMBER = re.compile(r"\.\d+$")
# Units in brackets at the end of column names.
_UNIT_IN_HEAD = re.compile(
    r"[\s_]*[\[(](mm(?:\^?[23]|[\u00b2\u00b3])?|suvr)[\])]$", re.IGNORECASE
)
_UNIT_OF_SIGN = str.maketrans({"\u00b2": "2", "\u00b3": "3", "^": None})
# Reference region -> cores of the names of regions that it consists of.
REFERENCES = {
    "cerebellar cortex": ("cerebellumcortex",),
    "cerebellar white matter": ("cerebellumwhitematter",),
    "pons": ("pons",),
    "brain stem": ("brainstem",),
    "whole cerebellum": ("cerebellumcortex", "cerebellumwhitematter"),
}
# Heads of columns with the start and the end of frames.
_FRAME_STARTS = ("frame_start", "frametimesstart")
_FRAME_ENDS = ("frame_end", "frametimesend")
_Cells = Sequence[str | None]


class TableContents(NamedTuple):
    """A table of many scans, a row each.

    path : the file; sheet_name : of a workbook with several; scan_identities : person
    and visit of every row; text_table : labels and covariates as text;
    values_by_measure_region : columns by measure ("" if it is not named) and region
    (position in the atlas); unmatched_region_names : names with a side, in column
    names, that are no region of the atlas; excluded_column_names : columns that atlases
    leave out on purpose; id_column_name, session_column_name : the columns that scan
    names are of; missing_words_by_column : those of its cells; fault_by_row_index : of
    single rows, whose values are NaN in `values_by_measure_region`;
    measures_in_other_units : measures whose columns name a unit that is not theirs.
    """

    path: Path
    scan_identities: list[ScanIdentity]
    text_table: pd.DataFrame
    values_by_measure_region: Mapping[tuple[str, int], np.ndarray] = MappingProxyType(
        {}
    )
    unmatched_region_names: tuple[str, ...] = ()
    excluded_column_names: tuple[str, ...] = ()
    notes: tuple[Finding, ...] = ()
    id_column_name: str = ""
    session_column_name: str | None = None
    sheet_name: str = ""
    missing_words_by_column: MissingWords = MappingProxyType({})
    fault_by_row_index: Mapping[int, Finding] = MappingProxyType({})
    measures_in_other_units: frozenset[str] = frozenset()

    @property
    def path_and_sheet(self) -> str:
        """Path and sheet, for messages."""
        return _file_and_sheet_name(self.path, self.sheet_name)

    @property
    def name_and_sheet(self) -> str:
        """Name of the file, and sheet."""
        return _file_and_sheet_name(self.path.name, self.sheet_name)

    @property
    def has_only_atlas_regions(self) -> bool:
        """Whether it names no region that the atlas lacks."""
        return not self.excluded_column_names + self.unmatched_region_names

    @property
    def measure_names(self) -> list[str]:
        """The measures that the names of its columns or of the file give."""
        return sorted(
            {measure for measure, _ in self.values_by_measure_region} - {"", "other"}
        )

    def mismatch_text(self, atlas: Atlas) -> str:
        """Return the contents of a table without the feature; empty if none."""
        table_name = self.name_and_sheet
        if self.measure_names and not self.unmatched_region_names:
            unit_advice = ""
            if self.measures_in_other_units:
                unit_advice = (
                    " with another unit in the column names. If the values are in the "
                    "usual unit, remove the unit from the column names"
                )
            return f"{table_name} contains {', '.join(self.measure_names)}{unit_advice}"
        if not self.values_by_measure_region and (
            column_name := find_region_column_name(self.text_table, NAME_COLUMNS)
        ):
            return (
                f"{table_name} has the regions in its column {column_name!r}; "
                f"expected a table with {layouts_text()} of the atlas {atlas.name}"
            )
        has_few_columns = self.text_table.shape[1] < _MIN_SHARE_OF_REGIONS * len(atlas)
        if (
            self.values_by_measure_region
            or self.unmatched_region_names
            or has_few_columns
        ):
            return unknown_names_sentence(self.unmatched_region_names, atlas)
        column_names_text = join_with_commas(self.text_table, 5)
        return (
            f"{table_name}: no column is a region of the atlas {atlas.name}; the "
            f"columns are {column_names_text}"
        )

    def has_label_column(self, label_name: str | None) -> bool:
        """Return whether a column of facts is a label, in any case."""
        return (
            label_name is None
            or find_column_name(self.text_table, [label_name.lower()]) is not None
        )


class _SortedColumns(NamedTuple):
    """The column names of a table by what the columns hold."""

    column_names_by_measure_region: dict[tuple[str, int], list[str]]
    """Heads by measure and region (position in the atlas)."""
    fact_column_names: list[str]
    excluded_column_names: list[str]
    """Columns that atlases leave out on purpose."""
    unmatched_region_names: list[str]
    """Names with a side that are no region of the atlas."""
    measures_in_other_units: set[str]
    """Measures whose heads name a unit that is not theirs, with this unit."""


def read_sheets_and_errors(
    table_path: str | Path, atlas: Atlas, user_columns: UserColumns = NO_CHOICE
) -> tuple[list[TableContents], list[BrainlsapError]]:
    """Read a table of many scans; of a workbook every sheet that is one.

    Also returns why other sheets are no such table. Raises the error of the first sheet
    if none is.
    """
    sheet_contents_list, sheet_errors = list[TableContents](), list[BrainlsapError]()
    for sheet_name in _list_sheet_names(table_path):
        try:
            sheet_contents_list.append(
                read_table_contents(table_path, atlas, sheet_name, user_columns)
            )
        except BrainlsapError as error:
            sheet_errors.append(error)
    if not sheet_contents_list:
        raise sheet_errors[0]
    return sheet_contents_list, sheet_errors


def _list_sheet_names(table_path: str | Path) -> list[str]:
    """Return the sheets of a workbook of several; "" for any other table."""
    if Path(table_path).suffix.lower() == ".xlsx":
        with (
            convert_reading_errors(table_path, "an Excel workbook"),
            pd.ExcelFile(table_path) as workbook,
        ):
            if len(workbook.sheet_names) > 1:
                return list(map(str, workbook.sheet_names))
    return [""]


def _refuse_regions_as_rows(
    cells_by_column: TableColumns,
    table_path: str | Path,
    sheet_name: str,
    atlas: Atlas,
) -> None:
    """Raise if the first column has regions, and the other columns are no regions.

    A table with one row for each scan and region repeats the regions; a connectome has
    them as columns, too. A column of participants has values in its cells.
    """
    if not cells_by_column:
        return
    first_column_name, *column_names = cells_by_column
    region_names = [cell_text or "" for cell_text in cells_by_column[first_column_name]]
    region_indices = {atlas.find(region_name) for region_name in region_names} - {None}
    has_many_columns = len(column_names) >= _MIN_TRANSPOSED_COLUMNS
    if (
        not has_many_columns
        or 2 * len(region_indices) < len(atlas.names)
        or len({*region_names}) < len(region_names)
        or any(atlas.find(column_name) is not None for column_name in column_names)
    ):
        return
    # Tables of the regions themselves have text, such as the hemisphere.
    has_text = any(
        pd.to_numeric(pd.Series(cells_by_column[x]), errors="coerce").isna().all()
        for x in column_names
    )
    if has_text:
        return
    reading_text = make_pandas_reading_text(table_path, sheet_name)
    raise FileFormatError(
        f"the rows are regions ({first_column_name or 'the first column'}: "
        f"{join_with_commas(region_names, 2)}) and the columns seem to be "
        f"participants ({join_with_commas(column_names, 2)}); expected one row per "
        "scan",
        path=_file_and_sheet_name(table_path, sheet_name),
        advice=f"Transpose the table: {reading_text}"
        f".set_index({first_column_name!r}).T",
    )


def make_pandas_reading_text(
    table_path: str | Path, sheet_name: str, *argument_texts: str
) -> str:
    r"""Return the Python code that reads a table with pandas.

    >>> print(make_pandas_reading_text("people.tsv", "", "index_col=0"))
    pandas.read_csv('people.tsv', sep='\t', index_col=0)
    """
    table_path = Path(table_path)
    function_name = "read_csv"
    all_argument_texts = [repr(table_path.name)]
    if table_path.suffix.lower() == ".xlsx":
        function_name = "read_excel"
        all_argument_texts += [repr(sheet_name)] * bool(sheet_name)
    elif table_path.suffix.lower() == ".tsv":
        all_argument_texts.append(r"sep='\t'")
    all_argument_texts += argument_texts
    return f"pandas.{function_name}({', '.join(all_argument_texts)})"


def read_table_contents(
    table_path: str | Path,
    atlas: Atlas,
    sheet_name: str = "",
    user_columns: UserColumns = NO_CHOICE,
) -> TableContents:
    """Read a table of many scans and sort its columns by what they mean.

    Raises FileFormatError, with everything that is wrong, if the file is no table, rows
    do not name scans, regions occur twice, or cells are not numbers. Cells that are not
    numbers in some rows only are faults of these rows.
    """
    path_and_sheet = _file_and_sheet_name(table_path, sheet_name)
    cells_by_column = read_table_columns(table_path, sheet_name)
    _refuse_regions_as_rows(cells_by_column, table_path, sheet_name, atlas)
    scan_rows_record, join_losses = _join_rows_and_losses(
        path_and_sheet,
        sort_scan_columns(table_path, cells_by_column, user_columns),
        atlas,
    )
    participant_ids = [
        scan_identity.participant for scan_identity in scan_rows_record.scan_identities
    ]
    are_rows_regions = all(
        atlas.find(participant_id) is not None for participant_id in participant_ids
    )
    if are_rows_regions and not are_default_row_names(participant_ids):
        raise FileFormatError(
            f"The row names are regions, such as {participant_ids[0]!r}; expected "
            "one row per scan. If the file is a connectome, give it with "
            f"{option_text('connectome')}.",
            path=table_path,
        )
    side_letter = None
    # The name of the sheet may give the measure, too.
    default_measure_name = _find_file_measure_name(
        _file_and_sheet_name(Path(table_path).name, sheet_name)
    )
    if default_measure_name in ("", "suvr"):
        tracer_feature_set = find_tracer_feature_set(scan_rows_record.text_table)
        if len(tracer_feature_set) == 1:
            default_measure_name = tracer_feature_set.pop()
    if header_match := FREESURFER_HEAD.fullmatch(scan_rows_record.id_column_name):
        side_letter = header_match[1].upper() if header_match[1] else None
        default_measure_name = MEASURE_OF_WORD.get(header_match[2].lower(), "other")
    table_contents = _parse_table_contents(
        Path(table_path),
        scan_rows_record.scan_identities,
        scan_rows_record.text_table,
        atlas,
        side_letter,
        default_measure_name,
        sheet_name,
    )
    return table_contents._replace(
        id_column_name=scan_rows_record.id_column_name,
        session_column_name=scan_rows_record.session_column_name,
        missing_words_by_column=scan_rows_record.missing_words_by_column,
        unmatched_region_names=(
            *table_contents.unmatched_region_names,
            *join_losses.unmatched_region_names,
        ),
        excluded_column_names=(
            *table_contents.excluded_column_names,
            *join_losses.excluded_names,
        ),
        fault_by_row_index={
            **table_contents.fault_by_row_index,
            **join_losses.fault_by_row_index,
        },
    )


class _RowRegions(NamedTuple):
    """The region of every row, and the columns that name it."""

    region_names: list[str]
    column_names: list[str]


class _JoinLosses(NamedTuple):
    """What was lost where several rows of a scan were joined.

    fault_by_row_index : of scans that lack a region, or have it twice;
    unmatched_region_names : regions that the atlas lacks; excluded_names : regions and
    columns left out.
    """

    fault_by_row_index: Mapping[int, Finding] = MappingProxyType({})
    unmatched_region_names: tuple[str, ...] = ()
    excluded_names: tuple[str, ...] = ()


def _find_row_regions(
    path_and_sheet: str, scan_rows_record: ScanRows, atlas: Atlas
) -> _RowRegions | None:
    """Return the region of every row; None if no column names enough regions."""
    cell_table = scan_rows_record.text_table
    name_column_name = None
    for column_name in cell_table:
        if find_region_column_name([column_name], NAME_COLUMNS) is None:
            continue
        if _has_enough_regions(cell_table[column_name].dropna().unique(), atlas):
            name_column_name = column_name
            break
    if name_column_name is None:
        return None
    side_column_names = _find_side_column_names(cell_table)
    region_names = [region_name or "" for region_name in cell_table[name_column_name]]
    row_indices_by_identity: dict[ScanIdentity, list[int]] = {}
    for row_index, scan_identity in enumerate(scan_rows_record.scan_identities):
        row_indices_by_identity.setdefault(scan_identity, []).append(row_index)
    # Most scans have the same rows, so that sides are found once for all of them.
    sided_names_by_cells: dict[tuple[object, ...], list[str]] = {}
    side_cells_by_column = {
        column_name: list(cell_table[column_name]) for column_name in side_column_names
    }
    for row_indices in row_indices_by_identity.values():
        scan_region_names = [region_names[row_index] for row_index in row_indices]
        scan_side_cells_by_column = {
            column_name: [side_cells[row_index] for row_index in row_indices]
            for column_name, side_cells in side_cells_by_column.items()
        }
        name_side_cells = (
            *scan_region_names,
            *map(tuple, scan_side_cells_by_column.values()),
        )
        if name_side_cells not in sided_names_by_cells:
            sided_names_by_cells[name_side_cells] = _make_sided_region_names(
                Path(path_and_sheet),
                scan_region_names,
                scan_side_cells_by_column,
                atlas,
                None,
            )
        for row_index, region_name in zip(
            row_indices, sided_names_by_cells[name_side_cells], strict=True
        ):
            region_names[row_index] = region_name
    return _RowRegions(region_names, [name_column_name, *side_column_names])


def _has_enough_regions(region_names: Iterable[str], atlas: Atlas) -> bool:
    """Return whether names are of enough regions to be a list of regions."""
    atlas_region_names = [
        region_name
        for region_name in {*region_names}
        if atlas.find(region_name) is not None
        or atlas.find(region_name, "L") is not None
    ]
    return len(atlas_region_names) > _MIN_SHARE_OF_REGIONS * len(atlas)


# Layout -> function that returns the region of every row, or None for a table of
# another layout. Without a function, a row has all regions of its scan.
# `_join_rows_and_losses` checks the rows of all layouts, and calls no function for a
# table with one row per scan.
SCAN_TABLE_LAYOUTS: dict[
    str, Callable[[str, ScanRows, Atlas], _RowRegions | None] | None
] = {
    "one row per scan and one column per region": None,
    "one row per scan and region": _find_row_regions,
}


def layouts_text() -> str:
    """Return the layouts of tables of many scans, for messages."""
    return ", or ".join(SCAN_TABLE_LAYOUTS)


def _find_side_column_names(column_names: Iterable[str]) -> list[str]:
    """Return the columns that are named as columns of hemispheres."""
    return [
        column_name
        for column_name in column_names
        if find_column_name([column_name], SIDE_COLUMNS)
    ]


def _join_rows_and_losses(
    path_and_sheet: str, scan_rows_record: ScanRows, atlas: Atlas
) -> tuple[ScanRows, _JoinLosses]:
    """Return one row per scan with a column per region, of a table in any layout.

    A scan without a row of a region that other scans have, or with two, has a fault:
    the table may be incomplete. Raise if a fact (age, label) differs within a scan, or
    if the rows name few regions: for example, numbers that only count rows.
    """
    if len({*scan_rows_record.scan_identities}) == len(
        scan_rows_record.scan_identities
    ):
        return scan_rows_record, _JoinLosses()
    for find_regions in SCAN_TABLE_LAYOUTS.values():
        row_regions_record = find_regions and find_regions(
            path_and_sheet, scan_rows_record, atlas
        )
        if row_regions_record:
            region_names = row_regions_record.region_names
            if not _has_enough_regions(region_names, atlas):
                columns_text = join_with_commas(
                    map(repr, row_regions_record.column_names)
                )
                raise FileFormatError(
                    f"expected the regions of the atlas {atlas.name} in {columns_text}",
                    path=path_and_sheet,
                    got=join_with_commas(dict.fromkeys(region_names), 5),
                    advice="Write the names of the regions into this column",
                    kind="few regions",
                )
            break
    else:
        return scan_rows_record, _JoinLosses()
    scan_identities = [*dict.fromkeys(scan_rows_record.scan_identities)]
    scan_index_by_identity = {
        scan_identity: i for i, scan_identity in enumerate(scan_identities)
    }
    scan_index_by_row = np.array(
        [
            scan_index_by_identity[scan_identity]
            for scan_identity in scan_rows_record.scan_identities
        ]
    )
    region_index_by_name = {
        region_name: atlas.find(region_name) for region_name in {*region_names}
    }
    region_index_by_row = np.array(
        [
            -1
            if region_index_by_name[region_name] is None
            else region_index_by_name[region_name]
            for region_name in region_names
        ]
    )
    region_row_indices = np.flatnonzero(region_index_by_row >= 0)
    row_count_matrix = np.zeros((len(scan_identities), len(atlas)), dtype=int)
    np.add.at(
        row_count_matrix,
        (
            scan_index_by_row[region_row_indices],
            region_index_by_row[region_row_indices],
        ),
        1,
    )
    used_region_indices = np.flatnonzero(row_count_matrix.any(axis=0))
    value_column_names, fact_column_names, excluded_names = _classify_column_names(
        path_and_sheet,
        scan_rows_record._replace(
            text_table=scan_rows_record.text_table.drop(
                columns=row_regions_record.column_names
            )
        ),
        scan_index_by_row,
        region_index_by_row,
    )
    first_row_indices = np.unique(scan_index_by_row, return_index=True)[1]
    cells_by_joined_column = {
        column_name: scan_rows_record.text_table[column_name].to_numpy()[
            first_row_indices
        ]
        for column_name in fact_column_names
    }
    for value_column_name in value_column_names:
        cell_matrix = np.full((len(scan_identities), len(atlas)), None, dtype=object)
        value_cells = scan_rows_record.text_table[value_column_name].to_numpy()
        cell_matrix[
            scan_index_by_row[region_row_indices],
            region_index_by_row[region_row_indices],
        ] = value_cells[region_row_indices]
        has_generic_value_name = (
            find_column_name([value_column_name], VALUE_COLUMNS) is not None
        )
        for i in used_region_indices:
            joined_column_name = (
                atlas.names[i]
                if has_generic_value_name
                else f"{atlas.names[i]}_{value_column_name}"
            )
            cells_by_joined_column[joined_column_name] = cell_matrix[:, i]
    nonatlas_region_names = sorted(
        region_name
        for region_name, region_index in region_index_by_name.items()
        if region_index is None and region_name
    )
    outside_region_names = [
        region_name
        for region_name in nonatlas_region_names
        if is_non_region_name(region_name) or atlas.divides(region_name)
    ]
    joined_scan_rows = scan_rows_record._replace(
        scan_identities=scan_identities,
        text_table=pd.DataFrame(cells_by_joined_column, dtype=object).rename_axis(
            columns=scan_rows_record.id_column_name
        ),
        missing_words_by_column={
            column_name: {
                int(scan_index_by_row[row_index]): missing_word
                for row_index, missing_word in missing_word_by_row.items()
            }
            for (
                column_name,
                missing_word_by_row,
            ) in scan_rows_record.missing_words_by_column.items()
            if column_name in fact_column_names
        },
    )
    return joined_scan_rows, _JoinLosses(
        fault_by_row_index=_find_region_fault_by_row(
            path_and_sheet,
            row_count_matrix[:, used_region_indices],
            [atlas.names[i] for i in used_region_indices],
        ),
        unmatched_region_names=tuple(
            region_name
            for region_name in nonatlas_region_names
            if region_name not in outside_region_names
        ),
        excluded_names=(*excluded_names, *outside_region_names),
    )


def _find_region_fault_by_row(
    path_and_sheet: str, row_count_matrix: np.ndarray, region_names: Sequence[str]
) -> dict[int, Finding]:
    """Return a fault for every scan that does not have one row per region.

    Scans are the rows of `row_count_matrix`.
    """
    fault_by_row_index: dict[int, Finding] = {}
    for i in np.flatnonzero((row_count_matrix != 1).any(axis=1)):
        missing_region_names = [
            region_names[int(j)] for j in np.flatnonzero(row_count_matrix[i] == 0)
        ]
        repeated_region_names = [
            region_names[int(j)] for j in np.flatnonzero(row_count_matrix[i] > 1)
        ]
        problem_texts, advice_texts = list[str](), list[str]()
        if missing_region_names:
            problem_texts.append(
                f"no row of {join_with_commas(missing_region_names, 5)}"
            )
            advice_texts.append(
                "Add the rows (with n/a for a region that was not measured)"
            )
        if repeated_region_names:
            problem_texts.append(
                f"more than one row of {join_with_commas(repeated_region_names, 5)}"
            )
            advice_texts.append(
                "Delete the rows that are wrong, or write the visits in a column "
                "session_id"
            )
        fault_by_row_index[int(i)] = Finding(
            f"expected one row of {path_and_sheet} for each of the {len(region_names)} "
            "regions of the scan",
            FAULT,
            kind="rows of regions",
            got=" and ".join(problem_texts),
            advice=f"{'. '.join(advice_texts)}, or {format_leave_out_advice()}",
            values={
                "missing_regions": tuple(missing_region_names),
                "repeated_regions": tuple(repeated_region_names),
            },
        )
    return fault_by_row_index


def _classify_column_names(
    path_and_sheet: str,
    scan_rows_record: ScanRows,
    scan_index_by_row: np.ndarray,
    region_index_by_row: np.ndarray,
) -> tuple[list[str], list[str], list[str]]:
    """Return the columns of values, of facts of scans, and of facts of regions.

    Raise if a column is none of these, because it differs within a scan.
    """
    cell_table = scan_rows_record.text_table
    value_column_names, fact_column_names, region_fact_column_names = (
        list[str](),
        list[str](),
        list[str](),
    )
    differing_texts = list[str]()
    for column_name in cell_table:
        column_series = cell_table[column_name]
        n_values_by_scan = column_series.groupby(scan_index_by_row).nunique(
            dropna=False
        )
        n_values_by_region = column_series.groupby(region_index_by_row).nunique(
            dropna=False
        )
        has_measure_name = (
            find_column_name([column_name], (*_MEASURE_OF_TERM, *VALUE_COLUMNS))
            is not None
        )
        is_covariate = find_covariate_kind(column_name) in COVARIATES
        may_be_value = not is_covariate and _are_mostly_numbers(column_series)
        is_constant_within_regions = (n_values_by_region == 1).all()
        if has_measure_name or (
            may_be_value
            and (n_values_by_scan > 1).mean() > 1 / 2
            and not (is_constant_within_regions and len(n_values_by_scan) > 1)
        ):
            value_column_names.append(column_name)
        elif (n_values_by_scan == 1).all():
            fact_column_names.append(column_name)
        elif is_constant_within_regions and not is_covariate:
            region_fact_column_names.append(column_name)
        else:
            scan_index = int(n_values_by_scan.index[n_values_by_scan > 1][0])
            distinct_cell_texts = (
                column_series[scan_index_by_row == scan_index].fillna("n/a").unique()
            )
            scan_text = scan_rows_record.scan_identities[
                int(np.argmax(scan_index_by_row == scan_index))
            ].text
            differing_texts.append(
                f"{column_name!r} "
                f"({join_with_commas(map(repr, distinct_cell_texts), 3)} "
                f"in {scan_text})"
            )
    if differing_texts:
        raise FileFormatError(
            "a scan has several rows, one for each region, and these rows contain "
            f"different values of {join_with_commas(differing_texts)}. Write the same "
            "value into all rows of a scan, or delete the column. If the rows belong "
            "to different visits, add a column session_id with the visit of each row.",
            path=path_and_sheet,
            kind="rows differ",
            values={"n_columns": len(differing_texts)},
        )
    return value_column_names, fact_column_names, region_fact_column_names


def _are_mostly_numbers(column_series: pd.Series) -> bool:
    """Return whether most cells are numbers, though other cells may be faulty."""
    filled_cells = column_series.dropna().astype(str)
    number_cell_mask = pd.to_numeric(
        filled_cells, errors="coerce"
    ).notna() | filled_cells.map(is_number_with_marks).astype(bool)
    return bool(number_cell_mask.mean() > 1 / 2)


def _file_and_sheet_name(file_name: str | Path, sheet_name: str) -> str:
    """Return the name or path of a file with the sheet of a workbook."""
    return f"{file_name}, sheet {sheet_name!r}" if sheet_name else str(file_name)


def _find_file_measure_name(file_name: str) -> str:
    """Return the one measure that a file's name gives, else ""."""
    measure_names = find_measure_names_of_file(file_name)
    # suvr_fdg.csv is of FDG.
    if not measure_names and _SUVR_IN_FILE_NAME.search(file_name.lower()):
        return "suvr"
    return min(measure_names) if len(measure_names) == 1 else ""


def find_tracer_column_names(cells_by_column: Mapping[str, _Cells]) -> list[str]:
    """Return the columns whose cells name tracers, or whose name announces them.

    A column name that names a tracer itself (`amyloid_tracer`) is about other values.
    """
    tracer_column_names = list[str]()
    for column_name in cells_by_column:
        distinct_cell_texts = {
            cell_text for cell_text in cells_by_column[column_name] if cell_text
        }
        has_letters = any(map(str.isalpha, min(distinct_cell_texts, default="")))
        if find_tracers(column_name) or not has_letters:
            continue
        if find_covariate_kind(column_name) == "tracer" or all(
            map(_has_tracer_name, distinct_cell_texts)
        ):
            tracer_column_names.append(column_name)
    return tracer_column_names


def _has_tracer_name(cell_text: str) -> bool:
    """Return whether a cell names a tracer, and not only a kind of tracers."""
    return any(not tracer.is_generic for tracer in find_tracers(cell_text))


def find_tracer_feature_set(cells_by_column: Mapping[str, _Cells]) -> set[str]:
    """Return the features, such as fdg, of the tracers in a table's cells."""
    distinct_cell_texts = {
        cell_text
        for tracer_column_name in find_tracer_column_names(cells_by_column)
        for cell_text in cells_by_column[tracer_column_name]
        if cell_text
    }
    return {
        tracer.feature
        for cell_text in distinct_cell_texts
        for tracer in find_tracers(cell_text)
    }


def _check_tracer_of_name(table_path: Path, measure_name: str) -> None:
    """Raise if the name of one scan's table names another tracer."""
    tracer_text = wrong_tracer_text(table_path.name, measure_name)
    if tracer_text is not None:
        raise FileFormatError(
            f"the file contains {tracer_text}, not {measure_name}. Choose the measure "
            f"of this file with {option_text('feature')}, or correct the tracer in the "
            "file name.",
            path=table_path,
        )


def _check_tracer_of_columns(
    table_path: Path, cells_by_column: Mapping[str, _Cells], measure_name: str
) -> None:
    """Raise if the columns of one scan's table name another tracer."""
    other_feature_names = find_tracer_feature_set(cells_by_column) - {measure_name}
    if other_feature_names and measure_name in PET_FEATURES:
        columns_text = join_with_commas(
            map(repr, find_tracer_column_names(cells_by_column))
        )
        raise FileFormatError(
            "the table contains values of "
            f"{join_with_commas(sorted(other_feature_names))} (column {columns_text}), "
            f"but the chosen measure is {measure_name}. Choose the measure of the "
            f"table with {option_text('feature')}.",
            path=table_path,
            kind="other tracer",
            values={"features": sorted(other_feature_names)},
        )


def _parse_table_contents(
    table_path: Path,
    scan_identities: list[ScanIdentity],
    cell_table: pd.DataFrame,
    atlas: Atlas,
    side_letter: str | None,
    default_measure_name: str = "",
    sheet_name: str = "",
) -> TableContents:
    """Sort the columns of a table by what they hold.

    `side_letter` and `default_measure_name` are of column names that name neither.
    """
    path_and_sheet = _file_and_sheet_name(table_path, sheet_name)
    original_name_by_column = _make_stem_by_column(cell_table)
    sorted_columns_record = _sort_column_names(
        original_name_by_column, atlas, side_letter, default_measure_name
    )
    value_column_names = [
        value_column_name
        for equivalent_column_names in (
            sorted_columns_record.column_names_by_measure_region.values()
        )
        for value_column_name in equivalent_column_names
    ]
    region_cell_table = cell_table[value_column_names]
    fault_by_row_index: dict[int, Finding] = {}
    try:
        column_arrays = parse_number_array(path_and_sheet, region_cell_table).T
    except FileFormatError:
        fault_by_row_index = _find_number_fault_by_row(
            path_and_sheet, region_cell_table
        )
        if not (scan_identities and fault_by_row_index):
            raise
        # No value of a faulty row is used.
        faultless_cell_array = region_cell_table.to_numpy(dtype=object, copy=True)
        faultless_cell_array[[*fault_by_row_index]] = None
        column_arrays = parse_number_array(path_and_sheet, faultless_cell_array).T
    numbers_by_column = dict(zip(value_column_names, column_arrays, strict=True))
    values_by_measure_region: dict[tuple[str, int], np.ndarray] = {}
    conflict_texts = list[str]()
    unused_column_names = list[str]()
    zero_region_names = list[str]()
    for (
        (
            measure_name,
            region_index,
        ),
        equivalent_column_names,
    ) in sorted_columns_record.column_names_by_measure_region.items():
        region_name = atlas.names[region_index]
        # Numbered copies that are 0 everywhere do not count.
        used_column_names = [
            value_column_name
            for value_column_name in equivalent_column_names
            if numbers_by_column[value_column_name].any()
            or original_name_by_column[value_column_name] == value_column_name
        ]
        column_numbers = numbers_by_column[used_column_names[0]]
        values_by_measure_region[measure_name, region_index] = column_numbers
        unused_column_names += [
            value_column_name
            for value_column_name in equivalent_column_names
            if value_column_name != used_column_names[0]
        ]
        if not all(
            np.array_equal(
                numbers_by_column[value_column_name], column_numbers, equal_nan=True
            )
            for value_column_name in used_column_names
        ):
            conflict_texts.append(
                f"{' and '.join(map(repr, equivalent_column_names))} ({region_name})"
            )
        if {*column_numbers[~np.isnan(column_numbers)]} == {0}:
            zero_region_names.append(region_name)
    if conflict_texts:
        raise FileFormatError(
            f"{count_text(len(conflict_texts), 'region', 'have')} more than one "
            f"column: {join_with_commas(conflict_texts)}. Keep one column for each "
            "region.",
            path=path_and_sheet,
        )
    table_findings = list[Finding]()
    if unused_column_names:
        message = (
            f"{count_text(len(unused_column_names), 'column')} with the values of "
            "another column, or with 0 in every row, "
            f"{verb_form(len(unused_column_names), 'are')} left out: "
            f"{join_with_commas(unused_column_names)}"
        )
        table_findings.append(Finding(message, LEFT_OUT))
    if zero_region_names:
        message = (
            f"{count_text(len(zero_region_names), 'region', 'are')} 0 in every row; "
            "write n/a for a region that was not measured: "
            f"{join_with_commas(zero_region_names)}"
        )
        table_findings.append(Finding(message))
    fact_column_names = sorted_columns_record.fact_column_names
    if not values_by_measure_region:
        fact_column_names = (
            fact_column_names + sorted_columns_record.excluded_column_names
        )
    return TableContents(
        table_path,
        scan_identities,
        cell_table[fact_column_names],
        values_by_measure_region,
        unmatched_region_names=tuple(sorted_columns_record.unmatched_region_names),
        excluded_column_names=tuple(sorted_columns_record.excluded_column_names),
        notes=tuple(table_findings),
        sheet_name=sheet_name,
        fault_by_row_index=fault_by_row_index,
        measures_in_other_units=frozenset(
            sorted_columns_record.measures_in_other_units
        ),
    )


def _find_number_fault_by_row(
    path_and_sheet: str, region_cell_table: pd.DataFrame
) -> dict[int, Finding]:
    """Return a fault for every row with cells that are not numbers, by row.

    Empty where the table is at fault rather than its rows: most of its rows, or all
    cells of a column, are not numbers; or numbers are written in another way, which
    only large ones may show. A decimal comma among points is the fault of its row.
    """
    cell_array = region_cell_table.to_numpy(dtype=object)
    cell_numbers = region_cell_table.apply(pd.to_numeric, errors="coerce").to_numpy(
        float
    )
    filled_cell_mask = ~pd.isna(cell_array)
    wrong_cell_mask = np.isnan(cell_numbers) & filled_cell_mask
    wrong_row_mask = wrong_cell_mask.any(axis=1)
    n_filled_rows = filled_cell_mask.any(axis=1).sum()
    wrong_column_mask = wrong_cell_mask.any(axis=0) & (
        wrong_cell_mask == filled_cell_mask
    ).all(axis=0)
    marked_number_cells = [
        *filter(is_number_with_marks, map(str, cell_array[wrong_cell_mask]))
    ]
    point_cell_mask = np.array(
        ["." in str(cell_text) for cell_text in cell_array[filled_cell_mask]]
    )
    has_other_notation = bool(marked_number_cells) and not (
        all(map(has_decimal_comma, marked_number_cells))
        and 2 * point_cell_mask.sum() > filled_cell_mask.sum()
    )
    if (
        2 * wrong_row_mask.sum() > n_filled_rows
        or wrong_column_mask.any()
        or has_other_notation
    ):
        return {}
    fault_by_row_index: dict[int, Finding] = {}
    for row_index in np.flatnonzero(wrong_row_mask):
        column_indices = np.flatnonzero(wrong_cell_mask[row_index])
        cells_text = join_with_commas(
            dict.fromkeys(map(repr, cell_array[row_index, column_indices])), 3
        )
        first_wrong_column_name = str(region_cell_table.columns[column_indices[0]])
        number_advice = number_cell_advice(cell_array[row_index, column_indices])
        number_advice = number_advice.strip(" .") or "Write n/a for missing values"
        fault_by_row_index[int(row_index)] = Finding(
            f"cells in {path_and_sheet} must be numbers",
            FAULT,
            kind="not numbers",
            got=f"{cells_text} in {count_text(len(column_indices), 'column')} (first "
            f"{first_wrong_column_name!r})",
            advice=f"{number_advice}, or {format_leave_out_advice()}",
            values={"cells": tuple(cell_array[row_index, column_indices])},
        )
    return fault_by_row_index


def _make_stem_by_column(column_names: Iterable[str]) -> dict[str, str]:
    """Return every column name without pandas' number of a repeated name (`x.1`)."""
    column_names = list(column_names)
    stem_by_column_name = {
        column_name: _COPY_NUMBER.sub("", column_name) for column_name in column_names
    }
    return {
        column_name: name_stem if name_stem in stem_by_column_name else column_name
        for column_name, name_stem in stem_by_column_name.items()
    }


def _split_name_and_unit(column_name: str) -> tuple[str, str]:
    """Return a column name without the unit in brackets at its end, and the unit."""
    unit_match = _UNIT_IN_HEAD.search(column_name)
    if unit_match is None:
        return column_name, ""
    unit = unit_match[1].lower().translate(_UNIT_OF_SIGN)
    return column_name[: unit_match.start()], unit


def _measure_name_with_unit(measure_name: str, unit: str) -> str:
    """Return the measure of a column with a unit; measures in other units keep it."""
    if measure_name == "":
        return _MEASURE_OF_UNIT.get(unit, "")
    if unit == "suvr" and measure_name in (*PET_FEATURES, "suvr"):
        return measure_name
    measure_unit = get_measure_record(measure_name).unit
    return measure_name if measure_unit in ("", unit) else f"{measure_name} [{unit}]"


def _sort_column_names(
    original_name_by_column: Mapping[str, str],
    atlas: Atlas,
    side_letter: str | None,
    default_measure_name: str,
) -> _SortedColumns:
    """Sort column names by what they name: a region, something left out, or a fact."""
    sorted_columns_record = _SortedColumns({}, [], [], [], set())
    name_unit_by_column = {
        column_name: _split_name_and_unit(unitless_column_name)
        for column_name, unitless_column_name in original_name_by_column.items()
    }
    unitless_column_names = [
        unitless_name for unitless_name, _ in name_unit_by_column.values()
    ]
    measure_region_by_column = _find_measure_region_by_column(
        unitless_column_names, atlas, side_letter
    )
    # A ratio is of the tracer that the file's name gives.
    unspecific_measure_names = (
        ("", "suvr") if default_measure_name in PET_FEATURES else ("",)
    )
    for column_name, (unitless_column_name, unit) in name_unit_by_column.items():
        measure_name, region_name = measure_region_by_column.get(
            unitless_column_name
        ) or _split_measure_and_region(unitless_column_name, atlas, side_letter)
        region_index = atlas.find(region_name, side_letter)
        is_excluded_region = (
            is_non_region_name(unitless_column_name)
            or is_non_region_name(region_name)
            or atlas.divides(region_name, side_letter)
        )
        if region_index is not None:
            measure_name = (
                default_measure_name
                if measure_name in unspecific_measure_names
                else measure_name
            )
            if unit:
                unitless_measure_name = measure_name
                measure_name = _measure_name_with_unit(measure_name, unit)
                if unitless_measure_name not in ("", measure_name):
                    sorted_columns_record.measures_in_other_units.add(measure_name)
            measure_region_key = (measure_name, region_index)
            sorted_columns_record.column_names_by_measure_region.setdefault(
                measure_region_key, []
            ).append(column_name)
        elif is_excluded_region and unitless_column_name.lower() not in _HEAD_SIZES:
            sorted_columns_record.excluded_column_names.append(column_name)
        else:
            sorted_columns_record.fact_column_names.append(column_name)
            if split_side_from_name(region_name)[0]:
                sorted_columns_record.unmatched_region_names.append(region_name)
    return sorted_columns_record


def read_region_values_and_notes(
    table_path: str | Path,
    atlas: Atlas,
    measure_record: MeasureRecord,
    *,
    frames: tuple[float, float] | None = None,
    reference: str | None = None,
) -> tuple[np.ndarray, tuple[str, ...], np.ndarray]:
    """Read one scan's table: values in the order of an atlas, notes, region index.

    The table has a row for every region; one row with a column for every region; is
    PETSurfer's `gtm.stats.dat`; or holds activity over time, averaged over `frames` and
    divided by a `reference` as :func:`.average_frames_by_region` does. If the file
    is of one hemisphere, the file of the other beside it is read, too.
    """
    table_path = Path(table_path)
    _check_tracer_of_name(table_path, measure_record.name)
    frame_notes = tuple[str, ...]()
    reference_text = reference or "the reference region in the _ref- file"
    scaling_note = f"PET: values were divided by the mean of {reference_text}"
    value_cells: Sequence[str | float | None] | np.ndarray
    if table_path.name.endswith("gtm.stats.dat"):
        region_names, value_cells = read_gtm_names_and_uptake(table_path, reference)
        frame_notes = ("PET: values have the scaling of mri_gtmpvc",)
        if reference:
            frame_notes = (scaling_note,)
    else:
        cells_by_column = read_table_columns(table_path)
        if find_column_name(cells_by_column, _FRAME_STARTS) and find_column_name(
            cells_by_column, _FRAME_ENDS
        ):
            column_names, value_cells = average_frames_by_region(
                table_path, pd.DataFrame(cells_by_column), frames, reference
            )
            region_names = [
                _split_measure_and_region(column_name, atlas)[1]
                for column_name in column_names
            ]
            frame_notes = (scaling_note,)
        else:
            region_names, value_cells = _read_hemisphere_names_and_cells(
                table_path, cells_by_column, measure_record, atlas
            )
    if message := unknown_names_sentence(region_names, atlas):
        raise RegionNameError(
            message, path=table_path, values=propose_atlas_option([region_names], atlas)
        )
    row_indices, dropped_names = atlas.find_file_rows(region_names)
    region_indices = np.flatnonzero(row_indices >= 0)
    if dropped_names and _are_row_counts(region_names):
        raise FileFormatError(
            "the rows or columns are numbered, and these numbers are not the label "
            f"numbers of regions of {atlas.name}",
            path=table_path,
            got=join_with_commas(region_names, 5),
            advice="Write the names of the regions instead",
            kind="few regions",
        )
    if not region_indices.size:
        raise FileFormatError(
            f"no row or column of the table belongs to a region of {atlas.name}. Write "
            "a row or a column for every region.",
            path=table_path,
            kind="no regions",
        )
    region_cells = np.array(value_cells, dtype=object)[row_indices[region_indices]]
    # Messages about wrong numbers name the region.
    value_titles = [
        f"{measure_record.name} of {atlas.names[i]}" for i in region_indices
    ]
    region_values = np.full(len(atlas), np.nan)
    region_values[region_indices] = parse_number_array(
        table_path, region_cells[None], value_titles
    )[0]
    return region_values, frame_notes, region_indices


def _are_row_counts(region_names: Sequence[str]) -> bool:
    """Return whether names are consecutive numbers, as the label numbers are not."""
    if not all(map(str.isdecimal, region_names)):
        return False
    sorted_numbers = sorted(map(int, region_names))
    return sorted_numbers == [
        *range(sorted_numbers[0], sorted_numbers[0] + len(sorted_numbers))
    ]


def _read_hemisphere_names_and_cells(
    table_path: Path,
    cells_by_column: Mapping[str, _Cells],
    measure_record: MeasureRecord,
    atlas: Atlas,
) -> tuple[list[str], list[str | float | None]]:
    """Return names and cells of a table, and of that of the other hemisphere."""
    region_names, region_cells = _read_static_names_and_cells(
        table_path, cells_by_column, measure_record, atlas
    )
    other_path = find_other_side_path(table_path)
    if other_path:
        other_file_cells_by_column = read_table_columns(other_path)
        other_region_names, other_region_cells = _read_static_names_and_cells(
            other_path, other_file_cells_by_column, measure_record, atlas
        )
        region_names = [*region_names, *other_region_names]
        region_cells = [*region_cells, *other_region_cells]
    return region_names, region_cells


def _read_static_names_and_cells(
    table_path: Path,
    cells_by_column: Mapping[str, _Cells],
    measure_record: MeasureRecord,
    atlas: Atlas,
) -> tuple[list[str], list[str | float | None]]:
    """Return names and cells of a table with a row, or a column, for every region."""
    side_match = SIDE_IN_NAME.search(table_path.name)
    file_side = side_match[1][0].upper() if side_match else None
    # Columns of text come before those of numbers.
    text_column_names = [
        column_name
        for column_name in cells_by_column
        if not are_unsigned_integers(cells_by_column[column_name])
    ]
    name_column_name = find_region_column_name(text_column_names, NAME_COLUMNS)
    name_column_name = name_column_name or find_region_column_name(
        cells_by_column, NAME_COLUMNS
    )
    # Before any layout is read, so that no layout can forget it.
    _check_tracer_of_columns(table_path, cells_by_column, measure_record.name)
    if name_column_name is not None:
        _check_one_scan(table_path, cells_by_column)
    if name_column_name is None and len(next(iter(cells_by_column.values()))) == 1:
        return _read_row_names_and_cells(
            table_path, cells_by_column, measure_record, atlas, file_side
        )
    value_column_name = find_column_name(
        cells_by_column, measure_record.value_column_names
    )
    if name_column_name is None or value_column_name is None:
        expected_column_names = (
            NAME_COLUMNS
            if name_column_name is None
            else measure_record.value_column_names
        )
        content_text = "region names" if name_column_name is None else "values"
        raise FileFormatError(
            f"no column has one of the names {', '.join(expected_column_names)}; the "
            f"columns are {join_with_commas(cells_by_column, 8)}. Give one of these "
            f"names to the column that contains the {content_text}.",
            path=table_path,
        )
    region_names = [
        region_name or "" for region_name in cells_by_column[name_column_name]
    ]
    other_cells_by_column = {
        column_name: column_cells
        for column_name, column_cells in cells_by_column.items()
        if column_name not in (name_column_name, value_column_name)
    }
    region_names = _make_sided_region_names(
        table_path, region_names, other_cells_by_column, atlas, file_side
    )
    return region_names, list(cells_by_column[value_column_name])


def _read_row_names_and_cells(
    table_path: Path,
    cells_by_column: Mapping[str, _Cells],
    measure_record: MeasureRecord,
    atlas: Atlas,
    file_side_letter: str | None,
) -> tuple[list[str], list[str | float | None]]:
    """Return names and values of a table of one row with a column for every region."""
    row_table = pd.DataFrame(cells_by_column, dtype=object)
    table_contents = _parse_table_contents(
        table_path, [], row_table, atlas, file_side_letter
    )
    value_by_region_name: dict[str, str | float | None] = dict.fromkeys(
        table_contents.unmatched_region_names
    )
    # Columns that name the measure come last, because they replace the others.
    for accepted_measure_name in (
        "",
        *map(str.lower, reversed(measure_record.header_measures)),
    ):
        for (
            column_measure_name,
            region_index,
        ), column_values in table_contents.values_by_measure_region.items():
            if column_measure_name == accepted_measure_name:
                value_by_region_name[atlas.names[region_index]] = column_values[0]
    return list(value_by_region_name), list(value_by_region_name.values())


def _check_one_scan(table_path: Path, cells_by_column: Mapping[str, _Cells]) -> None:
    """Raise if a table of regions has several scans.

    A second visit could pass for the other hemisphere.
    """
    for column_name in cells_by_column:
        if find_column_name([column_name], _SCAN_COLUMNS) is None:
            continue
        distinct_cell_texts = [
            *dict.fromkeys(
                cell_text for cell_text in cells_by_column[column_name] if cell_text
            )
        ]
        if len(distinct_cell_texts) > 1:
            raise FileFormatError(
                f"the column {column_name!r} contains {len(distinct_cell_texts)} "
                f"different values, such as {distinct_cell_texts[0]!r} and "
                f"{distinct_cell_texts[1]!r}; expected the regions of one scan only. "
                "Write one table for each scan.",
                path=table_path,
            )


def _make_sided_region_names(
    table_path: Path,
    region_names: list[str],
    cells_by_column: Mapping[str, _Cells],
    atlas: Atlas,
    file_side_letter: str | None,
) -> list[str]:
    """Return names of regions with the sides that columns, or the file, give them.

    If names come twice, a column that tells the two apart must say which is left;
    without one only Clinica's order is known. Raise if a name says another side than
    its column.
    """
    sideless_flags = [
        not split_side_from_name(region_name)[0]
        and atlas.find(region_name, "L") is not None
        for region_name in region_names
    ]
    side_letters_by_column = {
        column_name: [find_side(cell_text or "") for cell_text in column_cells]
        for column_name, column_cells in cells_by_column.items()
    }
    side_column_names = _find_side_column_names(cells_by_column)
    for column_name in side_column_names:
        _check_side_words(
            table_path,
            column_name,
            cells_by_column[column_name],
            side_letters_by_column[column_name],
            sideless_flags,
        )
    row_index_pairs = _list_row_index_pairs(region_names, sideless_flags)
    if row_index_pairs:
        distinguishing_column_names = [
            column_name
            for column_name, side_letters in side_letters_by_column.items()
            if all(
                {side_letters[row_index] for row_index in row_index_pair} == {"L", "R"}
                for row_index_pair in row_index_pairs
            )
        ]
        if not distinguishing_column_names:
            _refuse_unclear_side_column(table_path, cells_by_column, row_index_pairs)
            if file_side_letter is None and _is_clinica_table(
                table_path, cells_by_column
            ):
                return _make_clinica_region_names(region_names, sideless_flags)
            first_row_index = min(
                row_index
                for row_index_pair in row_index_pairs
                for row_index in row_index_pair
            )
            raise FileFormatError(
                f"{count_text(len(row_index_pairs), 'region')}, such as "
                f"{region_names[first_row_index]!r}, "
                f"{verb_form(len(row_index_pairs), 'occur')} twice, but it is unclear "
                "which row belongs to which hemisphere. Write the side into each name "
                "(lh_, rh_), or add a column 'hemisphere' with 'left' or 'right'.",
                path=table_path,
            )
        side_column_names = [
            *dict.fromkeys([*distinguishing_column_names, *side_column_names])
        ]
    side_letters = [file_side_letter] * len(region_names)
    for column_name in side_column_names:
        for row_index, column_side in enumerate(side_letters_by_column[column_name]):
            if column_side and side_letters[row_index] not in (None, column_side):
                is_only_side_column = len(side_column_names) == 1
                other_source_text = (
                    "the name of the file" if is_only_side_column else "another column"
                )
                raise FileFormatError(
                    f"the column {column_name!r} contains "
                    f"{cells_by_column[column_name][row_index]!r} for "
                    f"{region_names[row_index]!r}, but {other_source_text} gives the "
                    "opposite side. Correct the table.",
                    path=table_path,
                )
            side_letters[row_index] = column_side or side_letters[row_index]
    contradictory_region_names = [
        repr(region_name)
        for region_name, side_letter in zip(region_names, side_letters, strict=True)
        if side_letter
        and split_side_from_name(region_name)[0] not in (None, side_letter)
        and atlas.find(region_name) is not None
    ]
    if contradictory_region_names:
        side_source_text = (
            f"the column {side_column_names[0]!r}"
            if side_column_names
            else "the name of the file"
        )
        raise RegionNameError(
            f"{side_source_text} and the name of the region give opposite sides in "
            f"{count_text(len(contradictory_region_names), 'row')}: "
            f"{join_with_commas(contradictory_region_names, 3)}. Correct the side or "
            "the name.",
            path=table_path,
            kind="opposite sides",
        )
    return [
        region_name
        if side_letter in (None, split_side_from_name(region_name)[0])
        else f"{side_letter.lower()}h_{region_name}"
        for region_name, side_letter in zip(region_names, side_letters, strict=True)
    ]


def _list_row_index_pairs(
    region_names: Sequence[str], sideless_flags: Sequence[bool]
) -> list[list[int]]:
    """Return the rows of every name without a side that comes exactly twice."""
    row_indices_by_name: dict[str, list[int]] = {}
    for row_index, region_name in enumerate(region_names):
        if sideless_flags[row_index]:
            row_indices_by_name.setdefault(region_name, []).append(row_index)
    return [
        row_indices
        for row_indices in row_indices_by_name.values()
        if len(row_indices) == 2
    ]


def _check_side_words(
    table_path: Path,
    column_name: str,
    side_cells: _Cells,
    side_letters: Sequence[str | None],
    sideless_flags: Sequence[bool],
) -> None:
    """Raise if a column of sides has words that are not known."""
    unknown_side_cells = [
        repr(cell_text)
        for row_index, cell_text in enumerate(side_cells)
        if sideless_flags[row_index]
        and cell_text
        and not (side_letters[row_index] or _is_midline(cell_text))
    ]
    if unknown_side_cells:
        raise FileFormatError(
            f"the column {column_name!r} contains "
            f"{join_with_commas(dict.fromkeys(unknown_side_cells), 5)}, which means "
            "neither left nor right. Write 'left' or 'right' (or L or R, or lh or rh) "
            "in this column.",
            path=table_path,
        )


def _refuse_unclear_side_column(
    table_path: Path,
    cells_by_column: Mapping[str, _Cells],
    row_index_pairs: list[list[int]],
) -> None:
    """Raise if a column has two values that tell regions of one name apart."""
    for column_name, column_cells in cells_by_column.items():
        distinct_pair_cells = dict.fromkeys(
            column_cells[row_index]
            for row_index_pair in row_index_pairs
            for row_index in row_index_pair
        )
        differs_within_pairs = all(
            len({column_cells[row_index] for row_index in row_index_pair}) == 2
            for row_index_pair in row_index_pairs
        )
        if differs_within_pairs and len(distinct_pair_cells) == 2:
            values_text = " and ".join(
                repr(pair_cell or "n/a") for pair_cell in distinct_pair_cells
            )
            raise FileFormatError(
                f"the column {column_name!r} contains {values_text} for regions of the "
                "same name, but it is unclear which of these values means the left "
                "hemisphere. Write 'left' or 'right' in this column.",
                path=table_path,
            )


def _is_midline(cell_text: str) -> bool:
    """Return whether a cell of sides means the midline, or both sides."""
    return cell_text.strip().lower() in MIDLINE_WORDS


def _is_clinica_table(table_path: Path, column_names: Iterable[str]) -> bool:
    """Return whether a table has the form of Clinica's t1-freesurfer, with both sides.

    Such files are `*_parcellation-<atlas>_<measure>.tsv` with two columns.
    """
    return "_parcellation-" in table_path.name and not [*column_names]


def _make_clinica_region_names(
    region_names: list[str], sideless_flags: list[bool]
) -> list[str]:
    """Return names of Clinica's tables: first sums, then left, then right regions."""
    sideless_names = [
        region_name
        for region_name, is_sideless in zip(region_names, sideless_flags, strict=True)
        if is_sideless
    ]
    n_regions = len(sideless_names) // 2
    left_region_names = sideless_names[:n_regions]
    if (
        left_region_names != sideless_names[n_regions:]
        or len(set(left_region_names)) != n_regions
    ):
        # Names without a side stay unknown.
        return region_names
    sided_name_iterator = iter(
        [
            *(f"lh_{region_name}" for region_name in left_region_names),
            *(f"rh_{region_name}" for region_name in left_region_names),
        ]
    )
    sided_region_names = list[str]()
    for region_name, is_sideless in zip(region_names, sideless_flags, strict=True):
        if is_sideless:
            sided_region_names.append(next(sided_name_iterator))
        else:
            sided_region_names.append(
                region_name if split_side_from_name(region_name)[0] else "none"
            )
    return sided_region_names


def _split_measure_and_region(
    column_name: str, atlas: Atlas, side_letter: str | None = None
) -> tuple[str, str]:
    """Return the measure and the region in a column name."""
    if atlas.find(column_name, side_letter) is not None:
        return "", column_name
    region_name_by_ucsf_code = atlas.settings.get("ucsf_structures", {})
    ucsf_match = _UCSF_HEAD.fullmatch(column_name)
    if ucsf_match and ucsf_match[1].upper() in region_name_by_ucsf_code:
        measure_name = _UCSF_MEASURES.get(ucsf_match[2].upper(), "other")
        return measure_name, region_name_by_ucsf_code[ucsf_match[1].upper()]
    measure_and_region = _find_ukbiobank_measure_and_region(column_name, atlas)
    if measure_and_region is not None:
        return measure_and_region
    term_match = _HEAD_WITH_TERM.fullmatch(column_name)
    if term_match:
        return _MEASURE_OF_TERM[term_match[2].lower()], term_match[1]
    return "", column_name


def _find_ukbiobank_measure_and_region(
    column_name: str, atlas: Atlas
) -> tuple[str, str] | None:
    """Return the measure and the region of a field of UK Biobank, None if it has none.

    The head is the field's number, or its title as the Data Showcase has it, which says
    the parcellation by the spelling of the region alone. Several parcellations with the
    names of Desikan's have the same titles, so that atlases without fields read none.
    Titles of other parcellations are no region ("none").
    """
    if "ukbiobank_fields" not in atlas.settings:
        return None
    if column_name.isdecimal():
        return _make_measure_region_by_field(atlas).get(int(column_name))
    title_match = _UKBIOBANK_TITLE.fullmatch(column_name)
    if title_match is None:
        return None
    region_name = f"{title_match['side'].capitalize()}-{title_match['region']}"
    if atlas.find(region_name) is None:
        return "other", "none"
    return _UKBIOBANK_MEASURES[title_match["measure"]], region_name


@lru_cache(maxsize=16)
def _make_measure_region_by_field(atlas: Atlas) -> dict[int, tuple[str, str]]:
    """Return measure and region by number of UK Biobank's field.

    Fields of one measure and side follow each other in the order of FreeSurfer's
    labels.
    """
    measure_region_by_field = {
        int(field_number): ("volume", region_name)
        for field_number, region_name in atlas.settings.get(
            "ukbiobank_volumes", {}
        ).items()
    }
    cortex_table = atlas.regions[atlas.cortex].sort_values("freesurfer_id")
    first_field_numbers_by_measure = atlas.settings.get("ukbiobank_fields", {})
    for measure_name, side_field_numbers in first_field_numbers_by_measure.items():
        for side_letter, first_field_number in zip(
            "LR", side_field_numbers, strict=True
        ):
            region_names = cortex_table["name"][
                cortex_table["hemisphere"] == side_letter
            ]
            for field_offset, region_name in enumerate(region_names):
                measure_region_by_field[first_field_number + field_offset] = (
                    measure_name,
                    region_name,
                )
    return measure_region_by_field


def _find_measure_region_by_column(
    column_names: Sequence[str], atlas: Atlas, side_letter: str | None
) -> dict[str, tuple[str, str]]:
    """Return measure and region of column names that no known word explains.

    They are the labels of the atlas, unless they only count; or have a custom word
    before or behind the names of enough regions (`HIP_L_gmv`).
    """
    min_n_regions = _MIN_SHARE_OF_REGIONS * len(atlas)
    number_column_names = [
        column_name for column_name in column_names if column_name.isdecimal()
    ]
    are_label_numbers = {*number_column_names} <= {
        *atlas.name_by_label
    } and not are_default_row_names(number_column_names)
    if are_label_numbers and len(number_column_names) > min_n_regions:
        return {
            number_column_name: ("", atlas.name_by_label[number_column_name])
            for number_column_name in number_column_names
        }
    measure_region_by_column = dict[str, tuple[str, str]]()
    for column_name in column_names:
        is_known_region = (
            atlas.find(
                _split_measure_and_region(column_name, atlas, side_letter)[1],
                side_letter,
            )
            is not None
        )
        if is_known_region or is_non_region_name(column_name):
            continue
        measure_and_region = _find_measure_and_region(column_name, atlas, side_letter)
        if measure_and_region is not None:
            measure_region_by_column[column_name] = measure_and_region
    n_columns_by_measure = Counter(
        measure_name for measure_name, _ in measure_region_by_column.values()
    )
    return {
        column_name: (measure_name, region_name)
        for column_name, (measure_name, region_name) in measure_region_by_column.items()
        if n_columns_by_measure[measure_name] > min_n_regions
    }


def _find_measure_and_region(
    column_name: str, atlas: Atlas, side_letter: str | None
) -> tuple[str, str] | None:
    """Return measure and longest region name in a column name, None if there is none.

    Other words may come before and behind the name (`FDG_ctx-lh-insula_SUVR`); none of
    them may name a side.
    """
    gap_matches = [*re.finditer("[-_. :]+", column_name)]
    start_positions = [0, *(gap_match.end() for gap_match in gap_matches)]
    end_positions = [
        len(column_name),
        *(gap_match.start() for gap_match in reversed(gap_matches)),
    ]
    for n_words_outside in range(1, min(len(start_positions), _MAX_WORDS + 1)):
        for n_words_before in range(n_words_outside, -1, -1):
            start_position = start_positions[n_words_before]
            end_position = end_positions[n_words_outside - n_words_before]
            text_before_region = column_name[:start_position].rstrip("-_. :")
            text_behind_region = column_name[end_position:].lstrip("-_. :")
            if not HEMISPHERE_WORDS.keys().isdisjoint(
                split_words(f"{text_before_region} {text_behind_region}")
            ):
                continue
            has_number = (
                text_before_region.isdecimal() or text_behind_region.isdecimal()
            )
            if (
                not has_number
                and atlas.find(column_name[start_position:end_position], side_letter)
                is not None
            ):
                return _find_surrounding_measure_name(
                    text_before_region, text_behind_region
                ), column_name[start_position:end_position]
    return None


def _find_surrounding_measure_name(
    text_before_region: str, text_behind_region: str
) -> str:
    """Return the measure that the words around a region's name give.

    It is the one known measure among them, ignoring words for a ratio or a mean; else
    the words themselves.
    """
    measure_text = "_".join(
        filter(None, (text_before_region.lower(), text_behind_region.lower()))
    )
    measure_terms = {*split_words(measure_text)} - _STATISTIC_WORDS
    measure_names = {
        _MEASURE_OF_TERM.get(measure_term, measure_term)
        for measure_term in measure_terms
    }
    measure_names = measure_names - {"suvr"} or measure_names
    is_known_measure = len(measure_names) == 1 and measure_names <= {
        *_MEASURE_OF_TERM.values()
    }
    return measure_names.pop() if is_known_measure else measure_text


def unknown_names_sentence(region_names: Sequence[str], atlas: Atlas) -> str:
    """Return a sentence on names that are no regions of the atlas, empty if none."""
    try:
        atlas.find_file_rows(region_names)
    except RegionNameError as error:
        hint_text = atlas.settings.get("remake_values", "")
        message = error.message
        n_unknown_names = error.values.get("n_unknown")
        # A table may pass its unknown names alone, so that their share says nothing.
        if n_unknown_names and n_unknown_names == error.values["n_names"]:
            message = f"These names {error.values['description']}"
        has_better_atlas = atlas.find_better_atlas_name(region_names) is not None
        return f"{message} {hint_text if has_better_atlas else ''}".rstrip()
    return ""


def propose_atlas_option(
    region_name_lists: Iterable[Sequence[str]], atlas: Atlas
) -> dict[str, str]:
    """Return `{"atlas": name}` of the first other atlas that names of tables are of."""
    for region_names in region_name_lists:
        atlas_name = (
            atlas.find_better_atlas_name(region_names) if region_names else None
        )
        if atlas_name:
            return {"atlas": atlas_name}
    return {}


def read_gtm_names_and_uptake(
    stats_path: Path, reference: str | None = None
) -> tuple[list[str], np.ndarray]:
    """Return names and uptake of PETSurfer's segments.

    `reference`, a key of `REFERENCES` or a segment's name, is scaled to 1; by default
    values stay as `mri_gtmpvc` scaled them (to the pons by its default).
    """
    cell_rows = [text_line.split() for text_line in read_lines(stats_path)]
    are_rows_numbered = [row_cells[0] for row_cells in cell_rows] == [
        str(i + 1) for i in range(len(cell_rows))
    ]
    if {len(row_cells) for row_cells in cell_rows} not in (
        {7},
        {8},
    ) or not are_rows_numbered:
        raise FileFormatError(
            "expected a PETSurfer table with 7 or 8 cells in each row and the row "
            "numbers 1, 2 ... in the first column. The file may be incomplete.",
            path=stats_path,
        )
    segment_table = pd.DataFrame([row_cells[:7] for row_cells in cell_rows])
    segment_names = segment_table[2].tolist()
    n_voxels_by_segment, uptake_values = parse_number_array(
        stats_path, segment_table[[4, 6]]
    ).T
    if reference is not None:
        uptake_values = uptake_values / _compute_reference_mean(
            stats_path, segment_names, uptake_values, reference, n_voxels_by_segment
        )
    return segment_names, uptake_values


def average_frames_by_region(
    table_path: Path,
    frame_table: pd.DataFrame,
    frames: tuple[float, float] | None = None,
    reference: str | None = None,
) -> tuple[list[str], np.ndarray]:
    """Average activity over a window of frames, divided by that of a reference.

    `frames` is the start and end of the window, not needed for a single frame;
    `reference` is a key of `REFERENCES` or a column; by default the one `_ref-` file
    that PETPrep writes beside the table.
    """
    region_names, region_means = _average_window_by_region(
        table_path, frame_table, frames
    )
    if reference is not None:
        return region_names, region_means / _compute_reference_mean(
            table_path, region_names, region_means, reference
        )
    name_stem = table_path.name.partition("_desc-")[0]
    reference_paths = list(table_path.parent.glob(f"{name_stem}_ref-*_timeseries.tsv"))
    if len(reference_paths) != 1:
        raise ParameterError(
            f"{table_path} contains activity over time. Name the reference region with "
            f"{option_text('reference')}: one of {', '.join(map(repr, REFERENCES))}, "
            "or a column of the table. brainlsap divides all values by the mean "
            "activity in the reference region."
        )
    reference_path = reference_paths[0]
    reference_names, reference_means = _average_window_by_region(
        reference_path, read_table(reference_path), frames
    )
    if len(reference_names) != 1:
        raise FileFormatError(
            "expected a time series of one reference region; got "
            f"{join_with_commas(reference_names, 6)}. Keep only one of them.",
            path=reference_path,
        )
    return region_names, region_means / _compute_reference_mean(
        reference_path, reference_names, reference_means, reference_names[0]
    )


def _average_window_by_region(
    table_path: Path, frame_table: pd.DataFrame, frames: tuple[float, float] | None
) -> tuple[list[str], np.ndarray]:
    """Return the regions of a time series, and their means over a window."""
    edge_column_names = [
        find_column_name(frame_table, _FRAME_STARTS),
        find_column_name(frame_table, _FRAME_ENDS),
    ]
    if None in edge_column_names:
        raise FileFormatError(
            "the table has no columns for the start and the end of each frame. Add "
            f"the columns {_FRAME_STARTS[0]} and {_FRAME_ENDS[0]}.",
            path=table_path,
        )
    # A column without a name counts the rows.
    region_names = [
        column_name
        for column_name in frame_table
        if column_name and column_name not in edge_column_names
    ]
    frame_starts, frame_ends = parse_number_array(
        table_path, frame_table[edge_column_names]
    ).T
    frame_weight_array = compute_frame_weights(
        table_path, frame_starts, frame_ends, frames
    )
    weighted_frame_mask = frame_weight_array > 0
    return region_names, frame_weight_array[weighted_frame_mask] @ parse_number_array(
        table_path, frame_table[region_names]
    )[weighted_frame_mask]


def compute_frame_weights(
    table_path: Path,
    frame_starts: np.ndarray,
    frame_ends: np.ndarray,
    frames: tuple[float, float] | None,
) -> np.ndarray:
    """Return the weight of every frame in the average over a window: its duration."""
    edges_text = ", ".join(
        f"{edge_time:g}" for edge_time in (*frame_starts[:40], *frame_ends[-1:])
    )
    if frames is None and len(frame_starts) != 1:
        raise ParameterError(
            f"the {len(frame_starts)} frames change at {edges_text}. Choose the "
            f"frames to average with {option_text('frames')}, as [start, end].",
            path=table_path,
        )
    window_start, window_end = frames or (frame_starts[0], frame_ends[0])
    frame_in_window_mask = (frame_starts >= window_start - 1e-6) & (
        frame_ends <= window_end + 1e-6
    )
    frame_durations = np.where(frame_in_window_mask, frame_ends - frame_starts, 0)
    are_consecutive = (frame_ends > frame_starts).all() and (
        frame_starts[1:] >= frame_ends[:-1] - 1e-6
    ).all()
    # Otherwise there is a gap, or an edge of the window cuts a frame.
    is_window_filled = frame_in_window_mask.any() and np.isclose(
        frame_durations.sum(), window_end - window_start, rtol=1e-3
    )
    if not (are_consecutive and is_window_filled):
        raise FileFormatError(
            f"the time window from {window_start:g} to {window_end:g} must begin at "
            "the start of a frame and end at the end of a frame. In this window, each "
            "frame must begin where the previous frame ends. Frames begin or end at "
            f"{edges_text}.",
            path=table_path,
            kind="frame window",
        )
    return frame_durations / frame_durations.sum()


def _compute_reference_mean(
    table_path: Path,
    region_names: Sequence[str],
    region_values: np.ndarray,
    reference: str,
    region_volumes: np.ndarray | None = None,
) -> float:
    """Return the mean of a reference region over its volume.

    Without `region_volumes`, left and right of one structure weigh the same; two
    tissues cannot be averaged.
    """
    reference_side, reference_core_name = split_side_from_name(reference)
    accepted_core_names = REFERENCES.get(reference.lower(), (reference_core_name,))
    core_name_by_row_index = dict[int, str]()
    for row_index, region_name in enumerate(region_names):
        region_side, region_core_name = split_side_from_name(region_name)
        if region_core_name in accepted_core_names and reference_side in (
            None,
            region_side,
        ):
            core_name_by_row_index[row_index] = region_core_name
    if set(core_name_by_row_index.values()) != set(accepted_core_names):
        raise FileFormatError(
            f"unknown reference region {reference!r}. Choose one of "
            f"{', '.join(map(repr, REFERENCES))}, or a region of the file.",
            path=table_path,
        )
    if len(accepted_core_names) > 1 and region_volumes is None:
        raise FileFormatError(
            f"{reference} consists of {len(core_name_by_row_index)} parts. The mean "
            "over these parts must be weighted by their volumes, but the file contains "
            f"no volumes. Choose another {option_text('reference')}.",
            path=table_path,
            kind="parts without volumes",
            values={"n_parts": len(core_name_by_row_index)},
        )
    row_indices = list(core_name_by_row_index)
    volume_weights = None if region_volumes is None else region_volumes[row_indices]
    reference_mean = np.average(region_values[row_indices], weights=volume_weights)
    if not 0 < reference_mean < np.inf:
        raise FileFormatError(
            f"the mean value in the reference region {reference} must be above 0; got "
            f"{reference_mean:g}. Choose another reference region.",
            path=table_path,
        )
    return float(reference_mean)
