"""Read tables of regions in every layout that tools write.

Tables of many scans have one row per scan: FreeSurfer's `aparcstats2table` and
`asegstats2table`, ADNI's tables, and any other whose columns are named by regions.
Tables of one scan have one row or one column per region, both hemispheres in one file
or in two, or PET over time. Columns may name their measure (`lh_cuneus_thickness`), the
first head (`lh.aparc.a2009s.thickness`, `Measure:volume`) or the file's name
(`thickness.csv`) may name it for all columns, or nothing does.

PETSurfer's `mri_gtmpvc` writes `gtm.stats.dat` without a header: index, number, name
and tissue of a segment, voxels, variance reduction, uptake, and in newer versions the
residual. petprep_extract_tacs writes `frame_start frame_end <regions>`, PETPrep
`FrameTimesStart FrameTimesEnd <regions>`: activity over time. Its average over frames,
divided by that of a reference region, is the SUVR.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas
from brainlsap.atlas.region_names import (
    HEMISPHERE_WORDS,
    MIDLINE_WORDS,
    are_counts,
    find_side,
    is_outside,
    split_name,
    split_words,
)
from brainlsap.data.covariates import kind_of
from brainlsap.data.find_files import SIDE_IN_NAME, ScanName, other_side, read_rows
from brainlsap.data.id_columns import NO_CHOICE, ChosenColumns
from brainlsap.data.measures import (
    MEASURE_OF_WORD,
    PET_FEATURES,
    TRACERS,
    Measure,
    find_tracers,
    wrong_tracer,
)
from brainlsap.data.region_lists import are_numbers
from brainlsap.data.tables import (
    FREESURFER_HEAD,
    NAME_COLUMNS,
    PEOPLE_COLUMNS,
    SESSION_COLUMNS,
    SIDE_COLUMNS,
    MissingWords,
    find_head,
    find_region_column,
    parse_numbers,
    read_columns,
    read_lines,
    read_table,
)
from brainlsap.exceptions import (
    BrainlsapError,
    FileFormatError,
    ParameterError,
    RegionNameError,
    reading,
)
from brainlsap.findings import LEFT_OUT, Finding
from brainlsap.text import listed, option_text

# Covariates that a study adjusts for, though their names look like regions.
_HEAD_SIZES = (
    *("etiv", "icv", "tiv", "st10cv"),
    *("estimatedtotalintracranialvol", "intracranialvol"),
)
_SCAN_COLUMNS = (*PEOPLE_COLUMNS, "scan_id", *SESSION_COLUMNS)
# Word in a file's name or a head -> measure; entities of tracers count, too.
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
_TERM_IN_FILE_NAME = re.compile(f"(?<![a-z0-9]){_ANY_TERM}(?![a-z0-9])")
# Accept a word that is no known measure (or numbers as heads) if it occurs with more
# than this fraction of the regions.
_MIN_SHARE_OF_REGIONS = 1 / 4
# Words around a region's name that do not change the measure.
_STATISTIC_WORDS = {"mean", "avg", "average", "value", "values"}
# At most this many words stand around a region's name.
_MAX_WORDS = 5
_UCSF_HEAD = re.compile(r"(ST\d{1,3})(TA|SA|CV|SV|TS|HS)", re.IGNORECASE)
_UCSF_MEASURES = {"TA": "thickness", "SA": "area", "CV": "volume", "SV": "volume"}
_COPY_NUMBER = re.compile(r"\.\d+$")
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


class ScanTable(NamedTuple):
    """A table of many scans, a row each.

    path : the file; sheet : of a workbook with several; names : person and visit of
    every row; facts : labels and covariates as text; values : columns by measure (""
    if it is not named) and region (position in the atlas); unmatched_names : names in
    heads with a side that are no region of the atlas; excluded_heads : columns that
    atlases leave out on purpose; id_column, session_column : heads of the columns that
    names are of; missing_words : those of its cells.
    """

    path: Path
    names: list[ScanName]
    facts: pd.DataFrame
    values: Mapping[tuple[str, int], np.ndarray] = MappingProxyType({})
    unmatched_names: tuple[str, ...] = ()
    excluded_heads: tuple[str, ...] = ()
    notes: tuple[Finding, ...] = ()
    id_column: str = ""
    session_column: str | None = None
    sheet: str = ""
    missing_words: MissingWords = MappingProxyType({})

    @property
    def path_and_sheet(self) -> str:
        """Path and sheet, for messages."""
        return _name_sheet(self.path, self.sheet)

    @property
    def name_and_sheet(self) -> str:
        """Name of the file, and sheet."""
        return _name_sheet(self.path.name, self.sheet)

    @property
    def is_exact(self) -> bool:
        """Whether it names no region that the atlas lacks."""
        return not self.excluded_heads + self.unmatched_names

    @property
    def measures(self) -> list[str]:
        """The measures that its heads or its name give."""
        return sorted({measure for measure, _ in self.values} - {"", "other"})

    def describe_mismatch(self, atlas: Atlas) -> str:
        """Return what the table holds instead of a feature, empty if nothing."""
        name = self.name_and_sheet
        if self.measures and not self.unmatched_names:
            return f"{name} is of {', '.join(self.measures)}"
        if not self.values and (head := find_region_column(self.facts, NAME_COLUMNS)):
            return (
                f"{name} has regions in its column {head!r}, expected a row for every "
                "scan, a column for every region; pivot it"
            )
        has_few_columns = self.facts.shape[1] < _MIN_SHARE_OF_REGIONS * len(atlas)
        if self.values or self.unmatched_names or has_few_columns:
            return unknown_names(self.unmatched_names, atlas)
        heads = listed(self.facts, 5)
        return f"{name}: no column is a region of {atlas.name}; found {heads}"

    def has(self, label: str | None) -> bool:
        """Return whether a column of facts is a label, in any case."""
        return label is None or find_head(self.facts, [label.lower()]) is not None


class _SortedHeads(NamedTuple):
    """The heads of a table by what their columns hold."""

    by_region: dict[tuple[str, int], list[str]]
    """Heads by measure and region (position in the atlas)."""
    facts: list[str]
    excluded: list[str]
    """Columns that atlases leave out on purpose."""
    unmatched_names: list[str]
    """Names with a side that are no region of the atlas."""


def read_sheets(
    path: str | Path, atlas: Atlas, chosen_columns: ChosenColumns = NO_CHOICE
) -> tuple[list[ScanTable], list[str]]:
    """Read a table of many scans; of a workbook every sheet that is one.

    Also returns why other sheets are no such table. Raises the error of the first sheet
    if none is.
    """
    tables, errors = list[ScanTable](), list[BrainlsapError]()
    for sheet in _list_sheets(path):
        try:
            tables.append(read_scan_table(path, atlas, sheet, chosen_columns))
        except BrainlsapError as error:
            errors.append(error)
    if not tables:
        raise errors[0]
    return tables, [*map(str, errors)]


def _list_sheets(path: str | Path) -> list[str]:
    """Return the sheets of a workbook of several; "" for any other table."""
    if Path(path).suffix.lower() == ".xlsx":
        with reading(path, "an Excel workbook"), pd.ExcelFile(path) as workbook:
            if len(workbook.sheet_names) > 1:
                return list(map(str, workbook.sheet_names))
    return [""]


def read_scan_table(
    path: str | Path,
    atlas: Atlas,
    sheet: str = "",
    chosen_columns: ChosenColumns = NO_CHOICE,
) -> ScanTable:
    """Read a table of many scans and sort its columns by what they mean.

    Raises FileFormatError, with everything that is wrong, if the file is no table, rows
    do not name scans, regions occur twice, or cells are not numbers.
    """
    rows = read_rows(path, sheet, chosen_columns)
    people = [name.participant for name in rows.names]
    are_regions = all(atlas.find(person) is not None for person in people)
    if are_regions and not are_counts(people):
        raise FileFormatError(
            f"rows are named by regions, such as {people[0]!r}; expected a row "
            f"for every scan. Of a connectome say so by {option_text('connectome')}.",
            path=path,
        )
    side = None
    # The name of the sheet may give the measure, too.
    default_measure = _measure_of_file_name(_name_sheet(Path(path).name, sheet))
    if default_measure in ("", "suvr"):
        tracer_features = find_tracer_features(rows.columns)
        if len(tracer_features) == 1:
            default_measure = tracer_features.pop()
    if match := FREESURFER_HEAD.fullmatch(rows.id_column):
        side = match[1].upper() if match[1] else None
        default_measure = MEASURE_OF_WORD.get(match[2].lower(), "other")
    sorted_table = _sort_columns(
        Path(path), rows.names, rows.columns, atlas, side, default_measure, sheet
    )
    return sorted_table._replace(
        id_column=rows.id_column,
        session_column=rows.session_column,
        missing_words=rows.missing_words,
    )


def _name_sheet(file_name: str | Path, sheet: str) -> str:
    """Return the name or path of a file with the sheet of a workbook."""
    return f"{file_name}, sheet {sheet!r}" if sheet else str(file_name)


def _measure_of_file_name(file_name: str) -> str:
    """Return the one measure that a file's name gives, else ""."""
    terms = _TERM_IN_FILE_NAME.findall(file_name.lower())
    measures = {_MEASURE_OF_TERM[term] for term in terms}
    measures |= {tracer.feature for tracer in find_tracers(file_name)}
    # suvr_fdg.csv is of FDG.
    measures = measures - {"suvr"} or measures
    return measures.pop() if len(measures) == 1 else ""


def find_tracer_columns(table: Mapping[str, _Cells]) -> list[str]:
    """Return the columns whose cells name tracers, or whose head announces them.

    A head that names a tracer itself (`amyloid_tracer`) is about other values.
    """
    heads = list[str]()
    for head in table:
        cells = {cell for cell in table[head] if cell}
        has_letters = any(map(str.isalpha, min(cells, default="")))
        if find_tracers(head) or not has_letters:
            continue
        if kind_of(head) == "tracer" or all(map(_names_tracer, cells)):
            heads.append(head)
    return heads


def _names_tracer(cell: str) -> bool:
    """Return whether a cell names a tracer, and not only a kind of tracers."""
    return any(not tracer.is_generic for tracer in find_tracers(cell))


def find_tracer_features(table: Mapping[str, _Cells]) -> set[str]:
    """Return the features (fdg, amyloid, tau) of the tracers in a table's cells."""
    cells = {
        cell for head in find_tracer_columns(table) for cell in table[head] if cell
    }
    return {tracer.feature for cell in cells for tracer in find_tracers(cell)}


def _check_tracer(path: Path, table: Mapping[str, _Cells], measure: str) -> None:
    """Raise if the name or the cells of one scan's table name another tracer."""
    file_tracer = wrong_tracer(path.name, measure)
    if file_tracer is not None and find_tracers(file_tracer):
        raise FileFormatError(
            f"is of {file_tracer}, not of {measure}. Name its measure by "
            f"{option_text('feature')}.",
            path=path,
        )
    other_features = find_tracer_features(table) - {measure}
    if other_features and measure in PET_FEATURES:
        heads = listed(map(repr, find_tracer_columns(table)))
        raise FileFormatError(
            f"the column {heads} names a tracer of "
            f"{listed(sorted(other_features))}, not of {measure}. Name its measure by "
            f"{option_text('feature')}.",
            path=path,
        )


def _sort_columns(
    path: Path,
    names: list[ScanName],
    table: pd.DataFrame,
    atlas: Atlas,
    side: str | None,
    default_measure: str = "",
    sheet: str = "",
) -> ScanTable:
    """Sort the columns of a table by what they hold.

    `side` and `default_measure` are of heads that name neither.
    """
    path_and_sheet = _name_sheet(path, sheet)
    original_heads = _drop_copy_numbers(table)
    sorted_heads = _sort_heads(original_heads, atlas, side, default_measure)
    region_heads = [head for heads in sorted_heads.by_region.values() for head in heads]
    numbers = parse_numbers(path_and_sheet, table[region_heads]).T
    columns = dict(zip(region_heads, numbers, strict=True))
    values: dict[tuple[str, int], np.ndarray] = {}
    conflicts = list[str]()
    spare_heads = list[str]()
    zero_regions = list[str]()
    for (measure, region_index), heads in sorted_heads.by_region.items():
        region = atlas.names[region_index]
        # Numbered copies that are 0 everywhere do not count.
        used_heads = [
            head
            for head in heads
            if columns[head].any() or original_heads[head] == head
        ]
        column = columns[used_heads[0]]
        values[measure, region_index] = column
        spare_heads += [head for head in heads if head != used_heads[0]]
        if not all(
            np.array_equal(columns[head], column, equal_nan=True) for head in used_heads
        ):
            conflicts.append(f"{' and '.join(map(repr, heads))} ({region})")
        if {*column[~np.isnan(column)]} == {0}:
            zero_regions.append(region)
    if conflicts:
        raise FileFormatError(
            f"{len(conflicts)} regions stand in more than one column: "
            f"{listed(conflicts)}. Keep one column for each.",
            path=path_and_sheet,
        )
    notes = list[Finding]()
    if spare_heads:
        message = (
            f"{len(spare_heads)} columns repeat others or are 0 everywhere, and are "
            f"left out: {listed(spare_heads)}"
        )
        notes.append(Finding(message, LEFT_OUT))
    if zero_regions:
        message = (
            f"{len(zero_regions)} columns of regions are 0 in every row; write n/a "
            f"where not measured: {listed(zero_regions)}"
        )
        notes.append(Finding(message))
    fact_heads = sorted_heads.facts
    if not values:
        fact_heads = fact_heads + sorted_heads.excluded
    return ScanTable(
        path,
        names,
        table[fact_heads],
        values,
        unmatched_names=tuple(sorted_heads.unmatched_names),
        excluded_heads=tuple(sorted_heads.excluded),
        notes=tuple(notes),
        sheet=sheet,
    )


def _drop_copy_numbers(heads: Iterable[str]) -> dict[str, str]:
    """Return every head as it was before pandas counted columns of one name (`x.1`)."""
    heads = list(heads)
    stems = {head: _COPY_NUMBER.sub("", head) for head in heads}
    return {head: stem if stem in stems else head for head, stem in stems.items()}


def _sort_heads(
    original_heads: Mapping[str, str],
    atlas: Atlas,
    side: str | None,
    default_measure: str,
) -> _SortedHeads:
    """Sort heads by what they name: a region, something left out, or a fact."""
    sorted_heads = _SortedHeads({}, [], [], [])
    custom_heads = _find_custom_heads([*original_heads.values()], atlas, side)
    # A ratio is of the tracer that the file's name gives.
    unspecific = ("", "suvr") if default_measure in PET_FEATURES else ("",)
    for head, original_head in original_heads.items():
        measure, name = custom_heads.get(original_head) or _split_head(
            original_head, atlas, side
        )
        region_index = atlas.find(name, side)
        is_excluded = is_outside(original_head) or is_outside(name)
        if region_index is not None:
            measure = default_measure if measure in unspecific else measure
            key = (measure, region_index)
            sorted_heads.by_region.setdefault(key, []).append(head)
        elif is_excluded and original_head.lower() not in _HEAD_SIZES:
            sorted_heads.excluded.append(head)
        else:
            sorted_heads.facts.append(head)
            if split_name(name)[0]:
                sorted_heads.unmatched_names.append(name)
    return sorted_heads


def read_region_values(
    path: str | Path,
    atlas: Atlas,
    measure: Measure,
    *,
    frames: tuple[float, float] | None = None,
    reference: str | None = None,
) -> tuple[np.ndarray, tuple[str, ...], np.ndarray]:
    """Read one scan's table: values in the order of an atlas, notes, region index.

    The table has a row for every region; one row with a column for every region; is
    PETSurfer's `gtm.stats.dat`; or holds activity over time, averaged over `frames` and
    divided by a `reference` as :func:`.average_frames` does. If the file is of one
    hemisphere, the file of the other beside it is read, too.
    """
    path = Path(path)
    notes = tuple[str, ...]()
    scaling_note = f"PET: divided by the mean of {reference or '_ref- file'}"
    cells: Sequence[str | float | None] | np.ndarray
    if path.name.endswith("gtm.stats.dat"):
        names, cells = read_gtm_stats(path, reference)
        notes = ("PET: values as mri_gtmpvc scaled them",)
        if reference:
            notes = (scaling_note,)
    else:
        table = read_columns(path)
        if find_head(table, _FRAME_STARTS) and find_head(table, _FRAME_ENDS):
            heads, cells = average_frames(path, pd.DataFrame(table), frames, reference)
            names = [_split_head(head, atlas)[1] for head in heads]
            notes = (scaling_note,)
        else:
            names, cells = _read_hemisphere_tables(path, table, measure, atlas)
    if message := unknown_names(names, atlas):
        raise RegionNameError(
            message, path=path, values=find_other_atlas([names], atlas)
        )
    rows, _ = atlas.rows(names)
    region_index = np.flatnonzero(rows >= 0)
    region_cells = np.array(cells, dtype=object)[rows[region_index]]
    # Messages about wrong numbers name the region.
    heads = [f"{measure.name} of {atlas.names[i]}" for i in region_index]
    values = np.full(len(atlas), np.nan)
    values[region_index] = parse_numbers(path, region_cells[None], heads)[0]
    return values, notes, region_index


def _read_hemisphere_tables(
    path: Path, table: Mapping[str, _Cells], measure: Measure, atlas: Atlas
) -> tuple[list[str], list[str | float | None]]:
    """Return names and cells of a table, and of that of the other hemisphere."""
    names, cells = _read_static_table(path, table, measure, atlas)
    other_path = other_side(path)
    if other_path:
        other_table = read_columns(other_path)
        other_names, other_cells = _read_static_table(
            other_path, other_table, measure, atlas
        )
        names = [*names, *other_names]
        cells = [*cells, *other_cells]
    return names, cells


def _read_static_table(
    path: Path, table: Mapping[str, _Cells], measure: Measure, atlas: Atlas
) -> tuple[list[str], list[str | float | None]]:
    """Return names and cells of a table with a row, or a column, for every region."""
    match = SIDE_IN_NAME.search(path.name)
    file_side = match[1][0].upper() if match else None
    # Columns of text come before those of numbers.
    text_heads = [head for head in table if not are_numbers(table[head])]
    name_column = find_region_column(text_heads, NAME_COLUMNS)
    name_column = name_column or find_region_column(table, NAME_COLUMNS)
    if name_column is None and len(next(iter(table.values()))) == 1:
        _check_tracer(path, table, measure.name)
        return _read_single_row(path, table, measure, atlas, file_side)
    value_column = find_head(table, measure.columns)
    if name_column is None or value_column is None:
        expected_heads = NAME_COLUMNS if name_column is None else measure.columns
        raise FileFormatError(
            f"no column headed {', '.join(expected_heads)}; found {', '.join(table)}.",
            path=path,
        )
    _check_one_scan(path, table)
    _check_tracer(path, table, measure.name)
    names = [name or "" for name in table[name_column]]
    side_columns = {
        head: cells
        for head, cells in table.items()
        if head not in (name_column, value_column)
    }
    names = _add_sides(path, names, side_columns, atlas, file_side)
    return names, list(table[value_column])


def _read_single_row(
    path: Path,
    table: Mapping[str, _Cells],
    measure: Measure,
    atlas: Atlas,
    file_side: str | None,
) -> tuple[list[str], list[str | float | None]]:
    """Return names and values of a table of one row with a column for every region."""
    frame = pd.DataFrame(table, dtype=object)
    scan_table = _sort_columns(path, [], frame, atlas, file_side)
    value_of_name: dict[str, str | float | None] = dict.fromkeys(
        scan_table.unmatched_names
    )
    # Columns that name the measure come last, because they replace the others.
    for accepted_measure in ("", *map(str.lower, reversed(measure.head_measures))):
        for (column_measure, region_index), column in scan_table.values.items():
            if column_measure == accepted_measure:
                value_of_name[atlas.names[region_index]] = column[0]
    return list(value_of_name), list(value_of_name.values())


def _check_one_scan(path: Path, table: Mapping[str, _Cells]) -> None:
    """Raise if a table of regions has several scans.

    A second visit could pass for the other hemisphere.
    """
    for head in table:
        if find_head([head], _SCAN_COLUMNS) is None:
            continue
        values = [*dict.fromkeys(cell for cell in table[head] if cell)]
        if len(values) > 1:
            raise FileFormatError(
                f"the column {head!r} has {len(values)} values, such as "
                f"{values[0]!r} and {values[1]!r}; expected the regions of one scan.",
                path=path,
            )


def _add_sides(
    path: Path,
    names: list[str],
    columns: Mapping[str, _Cells],
    atlas: Atlas,
    file_side: str | None,
) -> list[str]:
    """Return names of regions with the sides that columns, or the file, give them.

    If names come twice, a column that tells the two apart must say which is left;
    without one only Clinica's order is known. A name that says another side than its
    column becomes unknown.
    """
    is_bare = [
        not split_name(name)[0] and atlas.find(name, "L") is not None for name in names
    ]
    sides_by_column = {
        head: [find_side(cell or "") for cell in cells]
        for head, cells in columns.items()
    }
    side_heads = [head for head in columns if find_head([head], SIDE_COLUMNS)]
    for head in side_heads:
        _check_side_words(path, head, columns[head], sides_by_column[head], is_bare)
    row_pairs = _find_row_pairs(names, is_bare)
    if row_pairs:
        distinguishing_heads = [
            head
            for head, sides in sides_by_column.items()
            if all({sides[row] for row in pair} == {"L", "R"} for pair in row_pairs)
        ]
        if not distinguishing_heads:
            _refuse_halves(path, columns, row_pairs)
            if file_side is None and _is_clinica(path, columns):
                return _add_sides_of_clinica(names, is_bare)
            first_row = min(row for pair in row_pairs for row in pair)
            raise FileFormatError(
                f"{len(row_pairs)} regions, such as {names[first_row]!r}, come "
                "twice, and nothing says which is left and which is right. Write the "
                "sides into the names (lh_, rh_), or into a column hemisphere (left, "
                "right).",
                path=path,
            )
        side_heads = [*dict.fromkeys([*distinguishing_heads, *side_heads])]
    sides = [file_side] * len(names)
    for head in side_heads:
        for row, column_side in enumerate(sides_by_column[head]):
            if column_side and sides[row] not in (None, column_side):
                is_only = len(side_heads) == 1
                other_source = "the name of the file" if is_only else "another column"
                raise FileFormatError(
                    f"the column {head!r} says {columns[head][row]!r} of "
                    f"{names[row]!r}, and {other_source} says the other side. Correct "
                    "it.",
                    path=path,
                )
            sides[row] = column_side or sides[row]
    return [
        name if side in (None, split_name(name)[0]) else f"{side.lower()}h_{name}"
        for name, side in zip(names, sides, strict=True)
    ]


def _find_row_pairs(names: Sequence[str], is_bare: Sequence[bool]) -> list[list[int]]:
    """Return the rows of every name without a side that comes exactly twice."""
    rows_by_name: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        if is_bare[row]:
            rows_by_name.setdefault(name, []).append(row)
    return [rows for rows in rows_by_name.values() if len(rows) == 2]


def _check_side_words(
    path: Path,
    head: str,
    cells: _Cells,
    sides: Sequence[str | None],
    is_bare: Sequence[bool],
) -> None:
    """Raise if a column of sides has words that are not known."""
    unknown_cells = [
        repr(cell)
        for row, cell in enumerate(cells)
        if is_bare[row] and cell and not (sides[row] or _is_midline(cell))
    ]
    if unknown_cells:
        raise FileFormatError(
            f"the column {head!r} has "
            f"{listed(dict.fromkeys(unknown_cells), 5)}, which are no known words for "
            "left and right. Write left and right (or L and R, lh and rh) there.",
            path=path,
        )


def _refuse_halves(
    path: Path, columns: Mapping[str, _Cells], row_pairs: list[list[int]]
) -> None:
    """Raise if a column has two values that tell regions of one name apart."""
    for head, cells in columns.items():
        values = dict.fromkeys(cells[row] for pair in row_pairs for row in pair)
        is_split = all(len({cells[row] for row in pair}) == 2 for pair in row_pairs)
        if is_split and len(values) == 2:
            value_texts = " and ".join(repr(value or "n/a") for value in values)
            raise FileFormatError(
                f"the column {head!r} tells regions of one name apart by "
                f"{value_texts}, which may be left and right, or right and left. Write "
                "left and right there.",
                path=path,
            )


def _is_midline(cell: str) -> bool:
    """Return whether a cell of sides means the midline, or both sides."""
    return cell.strip().lower() in MIDLINE_WORDS


def _is_clinica(path: Path, columns: Iterable[str]) -> bool:
    """Return whether a table has the form of Clinica's t1-freesurfer, with both sides.

    Such files are `*_parcellation-<atlas>_<measure>.tsv` with two columns.
    """
    return "_parcellation-" in path.name and not [*columns]


def _add_sides_of_clinica(names: list[str], is_bare: list[bool]) -> list[str]:
    """Return names of Clinica's tables: first sums, then left, then right regions."""
    bare_names = [name for name, bare in zip(names, is_bare, strict=True) if bare]
    n_regions = len(bare_names) // 2
    left_names = bare_names[:n_regions]
    if left_names != bare_names[n_regions:] or len(set(left_names)) != n_regions:
        # Names without a side stay unknown.
        return names
    sided_names = iter(
        [*(f"lh_{name}" for name in left_names), *(f"rh_{name}" for name in left_names)]
    )
    complete_names = list[str]()
    for name, bare in zip(names, is_bare, strict=True):
        if bare:
            complete_names.append(next(sided_names))
        else:
            complete_names.append(name if split_name(name)[0] else "none")
    return complete_names


def _split_head(head: str, atlas: Atlas, side: str | None = None) -> tuple[str, str]:
    """Return the measure that a column's head names, and the name of its region."""
    if atlas.find(head, side) is not None:
        return "", head
    structures = atlas.settings.get("ucsf_structures", {})
    match = _UCSF_HEAD.fullmatch(head)
    if match and match[1].upper() in structures:
        measure = _UCSF_MEASURES.get(match[2].upper(), "other")
        return measure, structures[match[1].upper()]
    match = _HEAD_WITH_TERM.fullmatch(head)
    if match:
        return _MEASURE_OF_TERM[match[2].lower()], match[1]
    return "", head


def _find_custom_heads(
    heads: Sequence[str], atlas: Atlas, side: str | None
) -> dict[str, tuple[str, str]]:
    """Return measure and region of heads that no known word explains.

    They are the labels of the atlas, unless they only count; or have a custom word
    before or behind the names of enough regions (`HIP_L_gmv`).
    """
    min_count = _MIN_SHARE_OF_REGIONS * len(atlas)
    labels = atlas.regions["freesurfer_id"].astype(str)
    name_of_label = dict(zip(labels, atlas.names, strict=True))
    numbers = [head for head in heads if head.isdecimal()]
    are_labels = {*numbers} <= {*name_of_label} and not are_counts(numbers)
    if are_labels and len(numbers) > min_count:
        return {number: ("", name_of_label[number]) for number in numbers}
    measure_and_region = dict[str, tuple[str, str]]()
    for head in heads:
        is_known = atlas.find(_split_head(head, atlas, side)[1], side) is not None
        if is_known or is_outside(head):
            continue
        match = _find_region(head, atlas, side)
        if match is not None:
            measure_and_region[head] = match
    counts = Counter(measure for measure, _ in measure_and_region.values())
    return {
        head: (measure, region)
        for head, (measure, region) in measure_and_region.items()
        if counts[measure] > min_count
    }


def _find_region(head: str, atlas: Atlas, side: str | None) -> tuple[str, str] | None:
    """Return the measure and the longest name of a region in a head, None if none.

    Other words may come before and behind the name (`FDG_ctx-lh-insula_SUVR`); none of
    them may name a side.
    """
    gaps = [*re.finditer("[-_. :]+", head)]
    starts = [0, *(gap.end() for gap in gaps)]
    ends = [len(head), *(gap.start() for gap in reversed(gaps))]
    for n_outside in range(1, min(len(starts), _MAX_WORDS + 1)):
        for n_before in range(n_outside, -1, -1):
            start = starts[n_before]
            end = ends[n_outside - n_before]
            prefix = head[:start].rstrip("-_. :")
            suffix = head[end:].lstrip("-_. :")
            if not HEMISPHERE_WORDS.keys().isdisjoint(
                split_words(f"{prefix} {suffix}")
            ):
                continue
            has_number = prefix.isdecimal() or suffix.isdecimal()
            if not has_number and atlas.find(head[start:end], side) is not None:
                return _name_measure(prefix, suffix), head[start:end]
    return None


def _name_measure(prefix: str, suffix: str) -> str:
    """Return the measure that the words around a region's name give.

    It is the one known measure among them, ignoring words for a ratio or a mean; else
    the words themselves.
    """
    text = "_".join(filter(None, (prefix.lower(), suffix.lower())))
    terms = {*split_words(text)} - _STATISTIC_WORDS
    measures = {_MEASURE_OF_TERM.get(term, term) for term in terms}
    measures = measures - {"suvr"} or measures
    is_known = len(measures) == 1 and measures <= {*_MEASURE_OF_TERM.values()}
    return measures.pop() if is_known else text


def unknown_names(names: Sequence[str], atlas: Atlas) -> str:
    """Return a sentence on names that are no regions of the atlas, empty if none."""
    try:
        atlas.rows(names)
    except RegionNameError as error:
        hint = atlas.settings.get("remake_values", "")
        message = error.message
        n_unknown = error.values.get("n_unknown")
        # A table may pass its unknown names alone, so that their share says nothing.
        if n_unknown and n_unknown == error.values["n_names"]:
            message = f"{n_unknown} name(s) {error.values['description']}"
        return f"{message} {hint if atlas.other_atlas(names) else ''}".rstrip()
    return ""


def find_other_atlas(tables: Iterable[Sequence[str]], atlas: Atlas) -> dict[str, str]:
    """Return `{"atlas": name}` of the first other atlas that names of tables are of."""
    for names in tables:
        atlas_name = atlas.other_atlas(names) if names else None
        if atlas_name:
            return {"atlas": atlas_name}
    return {}


def read_gtm_stats(
    path: Path, reference: str | None = None
) -> tuple[list[str], np.ndarray]:
    """Return names and uptake of PETSurfer's segments.

    `reference`, a key of `REFERENCES` or a segment's name, is scaled to 1; by default
    values stay as `mri_gtmpvc` scaled them (to the pons by its default).
    """
    rows = [line.split() for line in read_lines(path)]
    are_counted = [row[0] for row in rows] == [str(i + 1) for i in range(len(rows))]
    if {len(row) for row in rows} not in ({7}, {8}) or not are_counted:
        raise FileFormatError(
            "expected PETSurfer's rows of 7 or 8 cells, counted 1, 2 ... in "
            "their first column. The file may be cut short.",
            path=path,
        )
    table = pd.DataFrame([row[:7] for row in rows])
    names = table[2].tolist()
    n_voxels, values = parse_numbers(path, table[[4, 6]]).T
    if reference is not None:
        values = values / _reference_mean(path, names, values, reference, n_voxels)
    return names, values


def average_frames(
    path: Path,
    table: pd.DataFrame,
    frames: tuple[float, float] | None = None,
    reference: str | None = None,
) -> tuple[list[str], np.ndarray]:
    """Average activity over a window of frames, divided by that of a reference.

    `frames` is the start and end of the window, not needed for a single frame;
    `reference` is a key of `REFERENCES` or a column; by default the one `_ref-` file
    that PETPrep writes beside the table.
    """
    names, values = _mean_of_frames(path, table, frames)
    if reference is not None:
        return names, values / _reference_mean(path, names, values, reference)
    stem = path.name.partition("_desc-")[0]
    reference_paths = list(path.parent.glob(f"{stem}_ref-*_timeseries.tsv"))
    if len(reference_paths) != 1:
        raise ParameterError(
            f"{path} holds activity over time; name the region that is to be 1 by "
            f"{option_text('reference')}, one of {', '.join(REFERENCES)}, or a column."
        )
    reference_path = reference_paths[0]
    reference_names, reference_values = _mean_of_frames(
        reference_path, read_table(reference_path), frames
    )
    if len(reference_names) != 1:
        raise FileFormatError(
            "expected a time series of one reference region, got "
            f"{listed(reference_names, 6)}.",
            path=reference_path,
        )
    return names, values / _reference_mean(
        reference_path, reference_names, reference_values, reference_names[0]
    )


def _mean_of_frames(
    path: Path, table: pd.DataFrame, frames: tuple[float, float] | None
) -> tuple[list[str], np.ndarray]:
    """Return the regions of a time series, and their means over a window."""
    edge_columns = [find_head(table, _FRAME_STARTS), find_head(table, _FRAME_ENDS)]
    if None in edge_columns:
        raise FileFormatError("no columns of starts and ends of frames.", path=path)
    # A column without a head counts the rows.
    names = [head for head in table if head and head not in edge_columns]
    start, end = parse_numbers(path, table[edge_columns]).T
    weights = frame_weights(path, start, end, frames)
    is_used = weights > 0
    return names, weights[is_used] @ parse_numbers(path, table[names])[is_used]


def frame_weights(
    path: Path, start: np.ndarray, end: np.ndarray, frames: tuple[float, float] | None
) -> np.ndarray:
    """Return the weight of every frame in the average over a window: its duration."""
    edges = ", ".join(f"{edge:g}" for edge in (*start[:40], *end[-1:]))
    if frames is None and len(start) != 1:
        raise ParameterError(
            f"{len(start)} frames that change at {edges}; say which to average "
            f"by {option_text('frames')}, as start and end.",
            path=path,
        )
    window_start, window_end = frames or (start[0], end[0])
    is_inside = (start >= window_start - 1e-6) & (end <= window_end + 1e-6)
    duration = np.where(is_inside, end - start, 0)
    are_consecutive = (end > start).all() and (start[1:] >= end[:-1] - 1e-6).all()
    # Otherwise there is a gap, or an edge of the window cuts a frame.
    is_filled = is_inside.any() and np.isclose(
        duration.sum(), window_end - window_start, rtol=1e-3
    )
    if not (are_consecutive and is_filled):
        raise FileFormatError(
            f"frames must follow each other, and the window {window_start:g} "
            f"to {window_end:g} must begin and end where frames do; they change at "
            f"{edges}.",
            path=path,
        )
    return duration / duration.sum()


def _reference_mean(
    path: Path,
    names: Sequence[str],
    values: np.ndarray,
    reference: str,
    sizes: np.ndarray | None = None,
) -> float:
    """Return the mean of a reference region over its volume.

    Without `sizes`, left and right of one structure have the same weight; two tissues
    cannot be averaged.
    """
    side, core = split_name(reference)
    cores = REFERENCES.get(reference.lower(), (core,))
    core_of_row = dict[int, str]()
    for row, name in enumerate(names):
        name_side, name_core = split_name(name)
        if name_core in cores and side in (None, name_side):
            core_of_row[row] = name_core
    if set(core_of_row.values()) != set(cores):
        raise FileFormatError(
            f"no region {reference!r} to refer to; known are "
            f"{', '.join(REFERENCES)} and the regions of the file.",
            path=path,
        )
    if len(cores) > 1 and sizes is None:
        raise FileFormatError(
            f"the {reference} has {len(core_of_row)} parts, which count by "
            "their volumes, and those are not known. Give another "
            f"{option_text('reference')}.",
            path=path,
        )
    rows = list(core_of_row)
    weights = None if sizes is None else sizes[rows]
    mean = np.average(values[rows], weights=weights)
    if not 0 < mean < np.inf:
        raise FileFormatError(
            f"{reference} has the mean {mean:g}; expected more than 0.", path=path
        )
    return float(mean)
