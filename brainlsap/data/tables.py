"""Read and write tables as text: nothing is guessed about what a cell means."""

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pandas as pd

from brainlsap.data.table_rows import (
    HeaderAndRows,
    TableRow,
    drop_title_rows,
    read_header_and_rows,
    read_sheet_header_and_rows,
    read_sheet_rows,
    read_text,
)
from brainlsap.exceptions import FileFormatError
from brainlsap.files import replace_when_whole
from brainlsap.text import join_with_commas

# A file or folder that was modified later may change again within the same clock tick.
_MIN_AGE_NS = 2_000_000_000
TABLE_SUFFIXES = (".tsv", ".csv", ".txt", ".dat", ".xlsx")
# Cells in lower case that count as missing.
MISSING_CELLS = frozenset(("", "n/a", "na", "nan", "null", "none"))
_MAX_MISSING_LENGTH = max(map(len, MISSING_CELLS))
# Numbers with thousands separators: 4,394 and 4.394,0 and 4'394 and 4 394.
_GROUPED = re.compile(
    r"[-+\u2212]?\d{1,3}(?P<mark>[,.'\u2019\s])\d{3}((?P=mark)\d{3})*([.,]\d*)?"
)
# 4,394 may be 4394 or 4.394.
_ONE_COMMA = re.compile(r"[-+\u2212]?\d{1,3},\d{3}")
_DECIMAL_COMMA = re.compile(r"[-+\u2212]?\d+,(?!\d{3}$)\d+")
# Quotation marks; alone in a cell they stand for the cell above (ditto marks).
QUOTES = "\"'`\u00b4\u2018\u2019\u201c\u201d\u201e\u201f\u2033\u3003"
# Spreadsheets write this for a formula that failed, in the languages of Excel.
_FORMULA_ERROR = re.compile(
    r"#[¡¿]?[^\W\d_][\w/]*[!?]|#[^\W\d_]/[^\W\d_]|#N[VB]|#YOK|##+|#GETTING_DATA"
)
PEOPLE_COLUMNS = (
    *("participant_id", "subject_id", "sub_id", "subjid", "subject", "participant"),
    *("ptid", "rid", "patient_id", "patient", "patient_number", "subject_number"),
    *("record_id", "mrn", "pseudonym", "patienten_id", "pat_id", "probanden_id"),
    *("patienten_nr", "no_patient", "n_patient", "probandennummer", "sujet"),
    # Of large studies: UK Biobank, NACC, PPMI, NIMH, OASIS, Cam-CAN, ROSMAP, LORIS
    *("eid", "f_eid", "naccid", "patno", "subjectkey", "src_subject_id"),
    *("oasisid", "oasis_id"),
    *("ccid", "projid", "bblid", "candid", "pscid", "loni_subject", "guid", "iid"),
)
ID_COLUMNS = (*PEOPLE_COLUMNS, "scan", "scan_id", "image_id", "id", "")
# First column of FreeSurfer's tables: side and measure instead of a word for ids.
FREESURFER_HEAD = re.compile(r"(?:([lr])h\..+\.|measure:)(\w+)", re.IGNORECASE)
SESSION_COLUMNS = (
    *("session_id", "session", "ses", "visit", "visit_id", "viscode2", "viscode"),
    *("timepoint", "tp", "wave", "besuch", "visite", "scan_date", "exam_date"),
    *("untersuchungsdatum", "date_examen"),
    # Of large studies: NACC, PPMI, ABCD, REDCap, UK Biobank
    *("naccvnum", "event_id", "eventname", "redcap_event_name", "instance"),
)
# Heads of UK Biobank's tables: field, instance (visit) and position in an array, as
# `ukbconv csv`, `ukbconv r` and the Research Analysis Platform write them, the last by
# number or by title.
_FIELD_HEADS = tuple(
    map(
        re.compile,
        (
            r"(?P<field>\d+)-(?P<instance>\d+)\.(?P<array>\d+)",
            r"f\.(?P<field>\d+)\.(?P<instance>\d+)\.(?P<array>\d+)",
            r"(?:participant\.)?p(?P<field>\d+)(?:_i(?P<instance>\d+))?"
            r"(?:_a(?P<array>\d+))?",
            r"(?P<field>.+?) \| Instance (?P<instance>\d+)"
            r"(?: \| Array (?P<array>\d+))?",
        ),
    )
)
_UKBIOBANK_IDS = ("eid", "f_eid", "participant_eid", "participant_id")
# The first visit with images.
_FIRST_IMAGING_INSTANCE = 2
# Column of visits of a table whose heads name instances.
INSTANCE_COLUMN = "instance"
# What UK Biobank's fields are called elsewhere, by number or title.
_NAME_OF_FIELD = {
    **dict.fromkeys(("31", "Sex"), "sex"),
    **dict.fromkeys(("21003", "Age when attended assessment centre"), "age"),
    **dict.fromkeys(("54", "UK Biobank assessment centre"), "site"),
    **dict.fromkeys(
        ("26521", "Volume of EstimatedTotalIntraCranial (whole brain)"), "eTIV"
    ),
}
# Heads of columns with names, numbers and sides of regions, best first.
NAME_COLUMNS = (
    *("name", "region", "roi", "label", "structure", "parcel", "node"),
    *("abbreviation", "abbrev", "abbr", "acronym"),
)
INDEX_COLUMNS = ("index", "freesurfer_id", "id", "no", "nr", "number", "value", "")
# Such names may begin with a word for region: `roi_name`, `label_id`, `StructName`.
_REGION_PREFIX = re.compile(
    r"^(region|roi|label|structure|struct|parcel|node)[-_. ]*(?=[a-z])", re.IGNORECASE
)
SIDE_COLUMNS = (
    *("hemisphere", "hemi", "side", "hem", "laterality", "lateralisation", "seite"),
    *("lateralization", "lateralite", "cote", "hemisfero", "emisfero", "hemisphare"),
    *("hemisphaere", "lado", "lato"),
)
# Files that import_adni writes beside the study; none has values of regions.
IMPORT_FILES = (
    *("adni_pairing.tsv", "adni_unused_images.tsv", "adni_labels_by_phase.tsv"),
    *("adni_skipped.tsv", "adni_notes.txt"),
)


def was_just_modified(modified_ns: int) -> bool:
    """Return whether another change could have the same time of modification."""
    return time.time_ns() - modified_ns < _MIN_AGE_NS


def read_numbered_lines(text_path: str | Path) -> list[tuple[int, str]]:
    """Return the lines of a text file that are not empty, each with its number from 1.

    Comments (`#`) are included.
    """
    return [
        (line_number, text_line)
        for line_number, text_line in enumerate(read_text(text_path).split("\n"), 1)
        if text_line and not text_line.isspace()
    ]


def read_lines(table_path: str | Path) -> list[str]:
    """Return the lines of a text file that are neither empty nor comments (`#`).

    Of a workbook return the rows, with tabs between the cells. For files whose format
    allows comments anywhere (lookup tables, stats); rows of a table come from
    `read_table`.
    """
    if Path(table_path).suffix.lower() == ".xlsx":
        table_rows = drop_title_rows(read_sheet_rows(table_path), _score_header)
        return ["\t".join(table_row.cells) for table_row in table_rows]
    return [
        text_line
        for _, text_line in read_numbered_lines(table_path)
        if text_line[0] != "#"
    ]


def read_table(table_path: str | Path, sheet_name: str = "") -> pd.DataFrame:
    r"""Read a table with a header; every cell stays text.

    Parameters
    ----------
    table_path : str or Path
        Separated by tabs, commas, semicolons or white space, whatever its suffix
        says: tools write commas into `.tsv`. Lines above the header that start with
        `#` are comments. Empty rows, and empty columns without a name, are skipped.
    sheet_name : str
        Of a workbook (`.xlsx`); by default its first.

    Returns
    -------
    DataFrame
        Of str, without white space around cells; missing cells (`n/a`, `NA`, `nan`,
        empty ...) are None.

    Raises
    ------
    FileFormatError
        If the file is missing, empty, not text, names columns twice, or has rows
        of different numbers of cells; with the line, also where a quotation mark or a
        `#` leaves open what is a row.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "participants.tsv"
    ...     _ = path.write_text("participant_id\tage\nsub-01\tn/a\n")
    ...     read_table(path).iloc[0].tolist()
    ['sub-01', None]
    """
    return pd.DataFrame(read_table_columns(table_path, sheet_name), dtype=object)


# By column and row, words such as `None` and `NA` that count as missing.
MissingWords = Mapping[str, Mapping[int, str]]


class TableColumns(dict[str, list[str | None]]):
    """The cells of a table by column name, None where missing.

    Attributes
    ----------
    line_numbers : list of int
        Line of the file, or row of the sheet, that every row comes from.
    comment_line_numbers : list of int
        Lines above the header that begin with `#`.
    missing_words_by_column : MissingWords
        Words that count as missing and may have been meant as words.
    """

    line_numbers: list[int]
    comment_line_numbers: list[int]
    missing_words_by_column: MissingWords


def read_table_columns(table_path: str | Path, sheet_name: str = "") -> TableColumns:
    """Return the cells of a table by column name, as `read_table` does."""
    if Path(table_path).suffix.lower() == ".xlsx":
        header_and_rows = read_sheet_header_and_rows(
            table_path, sheet_name, _score_header
        )
    else:
        header_and_rows = read_header_and_rows(table_path, _score_header)
    _check_marked_rows(table_path, header_and_rows)
    column_names, cell_columns = _list_filled_names_and_cells(header_and_rows)
    repeated_column_names = sorted(
        {
            column_name
            for column_name in column_names
            if column_names.count(column_name) > 1
        }
    )
    if repeated_column_names:
        raise FileFormatError(
            "the first row was read as the header, but it contains the same column "
            "name more than once: "
            f"{join_with_commas(map(repr, repeated_column_names))}. The header is "
            f"{join_with_commas(map(repr, column_names), 5)}. Give every column a "
            "different name, and delete all lines above the header.",
            path=table_path,
            kind="repeated heads",
            values={"heads": tuple(repeated_column_names)},
        )
    cells_by_column = TableColumns()
    cells_by_column.line_numbers = [
        table_row.line_number for table_row in header_and_rows.rows
    ]
    cells_by_column.comment_line_numbers = header_and_rows.comment_line_numbers
    missing_words_by_column: dict[str, dict[int, str]] = {}
    for column_name, column_cells in zip(column_names, cell_columns, strict=True):
        known_cell_texts = [
            _get_known_cell_text(cell_text.strip()) for cell_text in column_cells
        ]
        cells_by_column[column_name] = known_cell_texts
        missing_word_by_row = {
            row_index: column_cells[row_index].strip()
            for row_index, cell_text in enumerate(known_cell_texts)
            if cell_text is None and is_missing_word(column_cells[row_index])
        }
        if missing_word_by_row:
            missing_words_by_column[column_name] = missing_word_by_row
    cells_by_column.missing_words_by_column = missing_words_by_column
    return cells_by_column


def split_rows_by_visit(cells_by_column: TableColumns) -> TableColumns:
    """Return a table of UK Biobank with a row for every imaging visit of a person.

    In the original every person has one row, and a column for every field and instance
    (`27403-2.0`, `p27403_i2`). Instances 2 and later are visits with images. A person
    has such a visit if a field that only such visits have has a value of it. A field
    that no such visit has (sex) has its first value at every visit, as columns have
    that name no instance. People without images keep one row without a visit. Any
    other table is returned unchanged.
    """
    id_column_name = find_column_name(cells_by_column, _UKBIOBANK_IDS)
    has_visits = find_column_name(cells_by_column, SESSION_COLUMNS) is not None
    column_mapping_by_field = _make_column_by_field_instance(cells_by_column)
    column_by_instance_dicts = [
        column_name_by_instance
        for column_name_by_instance in column_mapping_by_field.values()
        if min(column_name_by_instance) >= _FIRST_IMAGING_INSTANCE
    ]
    if id_column_name is None or has_visits or not column_by_instance_dicts:
        return cells_by_column
    row_visit_pairs = _find_row_visit_pairs(cells_by_column, column_by_instance_dicts)
    visit_cells_by_column = TableColumns()
    visit_cells_by_column.line_numbers = [
        cells_by_column.line_numbers[row_index] for row_index, _ in row_visit_pairs
    ]
    visit_cells_by_column.comment_line_numbers = cells_by_column.comment_line_numbers
    missing_words_by_column: dict[str, dict[int, str]] = {}
    visit_numbers = {visit_number for _, visit_number in row_visit_pairs}
    empty_cells: list[str | None] = [None] * len(cells_by_column.line_numbers)
    for field_name, column_name_by_instance in column_mapping_by_field.items():
        column_name_by_visit = {
            visit_number: _find_column_name_at_visit(
                column_name_by_instance, visit_number
            )
            for visit_number in visit_numbers
        }
        cells_by_visit = {
            visit_number: empty_cells
            if column_name is None
            else cells_by_column[column_name]
            for visit_number, column_name in column_name_by_visit.items()
        }
        visit_cells_by_column[field_name] = [
            cells_by_visit[visit_number][row_index]
            for row_index, visit_number in row_visit_pairs
        ]
        missing_words_by_visit: dict[int | None, Mapping[int, str]] = {
            visit_number: {}
            if column_name is None
            else cells_by_column.missing_words_by_column.get(column_name, {})
            for visit_number, column_name in column_name_by_visit.items()
        }
        if any(missing_words_by_visit.values()):
            missing_words_by_column[field_name] = {
                visit_row_index: missing_words_by_visit[visit_number][row_index]
                for visit_row_index, (row_index, visit_number) in enumerate(
                    row_visit_pairs
                )
                if row_index in missing_words_by_visit[visit_number]
            }
    visit_cells_by_column.missing_words_by_column = missing_words_by_column
    visit_cells_by_column[INSTANCE_COLUMN] = [
        None if visit_number is None else str(visit_number)
        for _, visit_number in row_visit_pairs
    ]
    return visit_cells_by_column


def _make_column_by_field_instance(
    column_names: Iterable[str],
) -> dict[str, dict[int, str]]:
    """Return the column of every instance by the name that a field is given.

    A column that names no instance is as one of instance 0.
    """
    column_mapping_by_field: dict[str, dict[int, str]] = {}
    for column_name in column_names:
        header_matches = (
            header_pattern.fullmatch(column_name) for header_pattern in _FIELD_HEADS
        )
        header_match = next(filter(None, header_matches), None)
        field_name, instance_number = column_name, 0
        if header_match is not None:
            field_name = _NAME_OF_FIELD.get(
                header_match["field"], header_match["field"]
            )
            instance_number = int(header_match["instance"] or 0)
            if int(header_match["array"] or 0):
                field_name = f"{field_name}_a{header_match['array']}"
        if instance_number in column_mapping_by_field.get(field_name, {}):
            field_name = column_name
        column_mapping_by_field.setdefault(field_name, {})[instance_number] = (
            column_name
        )
    return column_mapping_by_field


def _find_row_visit_pairs(
    cells_by_column: TableColumns, column_by_instance_dicts: Sequence[Mapping[int, str]]
) -> list[tuple[int, int | None]]:
    """Return every row with each of its visits; None for a row that has none."""
    visit_mask_by_instance: dict[int, np.ndarray] = {}
    for column_name_by_instance in column_by_instance_dicts:
        for instance_number, column_name in column_name_by_instance.items():
            filled_cell_flags = [
                cell_text is not None for cell_text in cells_by_column[column_name]
            ]
            visit_mask_by_instance[instance_number] = visit_mask_by_instance.get(
                instance_number, False
            ) | np.array(filled_cell_flags)
    row_visit_pairs = list[tuple[int, int | None]]()
    for row_index in range(len(cells_by_column.line_numbers)):
        visit_numbers = [
            visit_number
            for visit_number in sorted(visit_mask_by_instance)
            if visit_mask_by_instance[visit_number][row_index]
        ]
        row_visit_pairs += [
            (row_index, visit_number) for visit_number in visit_numbers or (None,)
        ]
    return row_visit_pairs


def _find_column_name_at_visit(
    column_name_by_instance: Mapping[int, str], visit_number: int | None
) -> str | None:
    """Return the column that holds a field at a visit, None if there is none."""
    if visit_number is not None and visit_number in column_name_by_instance:
        return column_name_by_instance[visit_number]
    has_imaging = max(column_name_by_instance) >= _FIRST_IMAGING_INSTANCE
    return (
        None if has_imaging else column_name_by_instance[min(column_name_by_instance)]
    )


def _get_known_cell_text(cell_text: str) -> str | None:
    """Return a cell, None if it counts as missing."""
    is_missing = (
        len(cell_text) <= _MAX_MISSING_LENGTH and cell_text.lower() in MISSING_CELLS
    )
    return None if is_missing else cell_text


def is_missing_word(cell_text: str) -> bool:
    """Return whether a cell counts as missing but could be meant as a word (`None`)."""
    lower_cell = cell_text.strip().lower()
    return lower_cell in MISSING_CELLS and lower_cell not in ("", "n/a")


def is_formula_error(cell_text: object) -> bool:
    """Return whether a cell is the error of a spreadsheet's formula.

    >>> [*map(is_formula_error, ["#N/A", "#DIV/0!", "#REF!", "#NV", "#01", "N/A"])]
    [True, True, True, True, False, False]
    """
    has_hash_mark = isinstance(cell_text, str) and cell_text.startswith("#")
    return has_hash_mark and _FORMULA_ERROR.fullmatch(str(cell_text)) is not None


def is_ditto_mark(cell_text: object) -> bool:
    """Return whether a cell is a mark that stands for the cell above it."""
    return (
        isinstance(cell_text, str)
        and 0 < len(cell_text) < 4
        and not cell_text.strip(QUOTES)
    )


def _score_header(header_cells: Sequence[str]) -> int:
    """Return 2 if the first cell is a known column name, 1 if another is, else 0."""
    known_name_letters = [
        get_name_letters(column_name)
        for column_name in (*ID_COLUMNS, *NAME_COLUMNS)
        if column_name
    ]
    known_column_flags = [
        get_name_letters(cell_text) in known_name_letters
        or FREESURFER_HEAD.fullmatch(cell_text) is not None
        for cell_text in header_cells
    ]
    return 2 if known_column_flags[0] else int(any(known_column_flags))


def _check_marked_rows(table_path: str | Path, header_and_rows: HeaderAndRows) -> None:
    """Raise if a row repeats the header, or some rows, but not all, begin with `#`.

    Only lines above the header are comments, so such a row may have been meant as one.
    If all rows begin with `#`, the mark is part of their names.
    """
    marked_rows = list[TableRow]()
    for table_row in header_and_rows.rows:
        first_cell = table_row.cells[0].strip()
        if first_cell[:1] == "#" and not is_formula_error(first_cell):
            marked_rows.append(table_row)
        # The first cells are compared first, because that is fast.
        has_same_first_cell = first_cell == header_and_rows.header.cells[0]
        if (
            has_same_first_cell
            and [cell_text.strip() for cell_text in table_row.cells]
            == header_and_rows.header.cells
        ):
            raise FileFormatError(
                f"line {table_row.line_number} repeats the header (line "
                f"{header_and_rows.header.line_number}). Delete the line.",
                path=table_path,
                kind="repeated header",
                values={"line": table_row.line_number},
            )
    if 0 < len(marked_rows) < len(header_and_rows.rows):
        table_row = marked_rows[0]
        n_further_rows = len(marked_rows) - 1
        further_rows_text = f" (and {n_further_rows} more)" if n_further_rows else ""
        raise FileFormatError(
            f"line {table_row.line_number}{further_rows_text} begins with # "
            f"({table_row.cells[0].strip()!r}). Comments are not allowed below the "
            "header. To leave the row out, delete the line. To use the row, write its "
            "first cell without #.",
            path=table_path,
            kind="comment among rows",
            values={"line": table_row.line_number},
        )


def _list_filled_names_and_cells(
    header_and_rows: HeaderAndRows,
) -> tuple[list[str], list[Sequence[str]]]:
    """Return names and cells of columns, without those of no name and no cell.

    Spreadsheets leave such columns. A table of nothing else keeps them.
    """
    column_names = [column_name.strip() for column_name in header_and_rows.header.cells]
    cell_columns: list[Sequence[str]] = list(
        zip(*(table_row.cells for table_row in header_and_rows.rows), strict=True)
    )
    if not cell_columns:
        cell_columns = [()] * len(column_names)
    filled_column_names, filled_cell_columns = list[str](), list[Sequence[str]]()
    for column_name, column_cells in zip(column_names, cell_columns, strict=True):
        if column_name != "" or any(map(str.strip, column_cells)):
            filled_column_names.append(column_name)
            filled_cell_columns.append(column_cells)
    if not filled_column_names:
        return column_names, cell_columns
    return filled_column_names, filled_cell_columns


# Significant digits of probabilities and decision values in shared tables.
PREDICTION_DIGITS = 6


def write_tsv(
    table: pd.DataFrame, table_path: str | Path, *, n_digits: int | None = None
) -> Path:
    r"""Write a table as TSV, with "n/a" for missing values as in BIDS.

    Cells are separated by commas if the file is named `.csv`.

    Parameters
    ----------
    table : DataFrame
        Without its index.
    table_path : str or Path
        The file; it appears whole or not at all.
    n_digits : int, optional
        Number of significant digits of floating-point numbers; by default as many as
        identify the number.

    Returns
    -------
    Path

    Raises
    ------
    WritingError
        If the disk is full, or the folder may not be written to.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tsv(pd.DataFrame({"age": [70.5, None]}), f"{folder}/t").read_bytes()
    b'age\n70.5\nn/a\n'
    """
    delimiter = "," if Path(table_path).suffix.lower() == ".csv" else "\t"
    float_format = None if n_digits is None else f"%.{n_digits}g"
    with replace_when_whole(table_path) as partial_path:
        table.to_csv(
            partial_path,
            sep=delimiter,
            index=False,
            na_rep="n/a",
            lineterminator="\n",
            float_format=float_format,
        )
    return Path(table_path)


def write_dataset_description(
    folder: Path,
    dataset_name: str,
    generated_by: Mapping[str, object],
    dataset_type: str = "derivative",
) -> None:
    """Write the `dataset_description.json` that BIDS asks for."""
    description_fields = {
        "Name": dataset_name,
        "BIDSVersion": "1.10.0",
        "DatasetType": dataset_type,
        "GeneratedBy": [generated_by],
    }
    with replace_when_whole(folder / "dataset_description.json") as partial_path:
        json_text = json.dumps(description_fields, indent=2) + "\n"
        partial_path.write_text(json_text, encoding="utf-8")


def parse_number_array(
    table_path: str | Path,
    table: pd.DataFrame | np.ndarray,
    column_names: Sequence[str] = (),
) -> np.ndarray:
    """Return a table of text as numbers, NaN where missing.

    Raises FileFormatError with row and column of cells that are not numbers.
    """
    cell_array = np.asarray(table, dtype=object)
    column_names = column_names or list(table)
    try:
        return cell_array.astype(float)  # None becomes NaN
    except ValueError:
        parsed_numbers = pd.to_numeric(cell_array.ravel(), errors="coerce").reshape(
            cell_array.shape
        )
    wrong_cell_mask = pd.isna(parsed_numbers) & ~pd.isna(cell_array)
    wrong_cell_texts = [
        f"{cell_array[row_index, column_index]!r} in row {row_index + 1} below the "
        f"header, column {column_names[column_index]!r}"
        for row_index, column_index in np.argwhere(wrong_cell_mask)
    ]
    problem_text = (
        f"{len(wrong_cell_texts)} cells must be numbers or n/a: "
        f"{join_with_commas(wrong_cell_texts, 5)}"
    )
    filled_cell_texts = [*map(str, cell_array[~pd.isna(cell_array)])]
    conversion_advice = ""
    if _have_decimal_commas(filled_cell_texts, cell_array[wrong_cell_mask]):
        problem_text = (
            f"all numbers have decimal commas, for example {wrong_cell_texts[0]}"
        )
        conversion_advice = (
            " Read the file in pandas with decimal=',' (read_csv or read_excel) and "
            "save it with to_csv, which writes decimal points."
        )
    raise FileFormatError(
        f"{problem_text}.{number_cell_advice(cell_array[wrong_cell_mask])}{conversion_advice}",
        path=table_path,
        kind="not numbers",
        values={"cells": tuple(cell_array[wrong_cell_mask])},
    )


def is_number_with_marks(cell_text: str) -> bool:
    """Return whether a cell is a number with a decimal comma or marked thousands."""
    return any(
        number_pattern.fullmatch(cell_text)
        for number_pattern in (_GROUPED, _DECIMAL_COMMA)
    )


def _have_decimal_commas(
    filled_cell_texts: Sequence[str], faulty_cell_texts: Sequence[str] | np.ndarray
) -> bool:
    """Return whether most cells have a decimal comma, and no cell has a point.

    Some comma must be one of decimals for certain: 4,394 may be 4394.
    """
    are_most_faulty = 2 * len(faulty_cell_texts) > len(filled_cell_texts)
    has_decimal_point = any("." in cell_text for cell_text in filled_cell_texts)
    has_certain_comma = any(map(_DECIMAL_COMMA.fullmatch, map(str, faulty_cell_texts)))
    return (
        are_most_faulty
        and has_certain_comma
        and not has_decimal_point
        and all(map(has_decimal_comma, faulty_cell_texts))
    )


def has_decimal_comma(cell_text: str) -> bool:
    """Return whether a cell is a number whose one comma may be that of decimals."""
    return any(
        number_pattern.fullmatch(cell_text)
        for number_pattern in (_ONE_COMMA, _DECIMAL_COMMA)
    )


def number_cell_advice(faulty_cell_texts: Iterable[str]) -> str:
    """Return advice on how to write cells that should be numbers, or nothing."""
    stripped_cell_texts = [str(cell_value).strip() for cell_value in faulty_cell_texts]
    if any(map(is_formula_error, stripped_cell_texts)):
        return " A formula failed in the spreadsheet; write n/a for an unknown value."
    texts_with_thousands = [
        cell_text for cell_text in stripped_cell_texts if _GROUPED.fullmatch(cell_text)
    ]
    ambiguous_texts = [
        cell_text
        for cell_text in texts_with_thousands
        if _ONE_COMMA.fullmatch(cell_text)
    ]
    if len(texts_with_thousands) > len(ambiguous_texts):
        return " Write thousands without separators, and decimals with a point."
    if any(map(_DECIMAL_COMMA.fullmatch, stripped_cell_texts)):
        return " Write decimals with a point."
    if ambiguous_texts:
        cell_text = ambiguous_texts[0]
        meanings_text = f"{cell_text.replace(',', '')} or {cell_text.replace(',', '.')}"
        return (
            " Write decimals with a point, and thousands without separators: "
            f"{cell_text!r} may be {meanings_text}."
        )
    return ""


@lru_cache(maxsize=4096)
def get_name_letters(column_name: str) -> str:
    """Return the letters and digits of a column name in lower case, without accents."""
    return "".join(filter(str.isalnum, normalize("NFKD", column_name.lower())))


def find_column_name(
    column_names: Iterable[str], candidate_names: Sequence[str]
) -> str | None:
    """Return the column name equal to the first possible candidate, None if none is.

    Only letters and digits count, in any case.
    """
    column_name_by_letters = {
        get_name_letters(column_name): column_name for column_name in column_names
    }
    for candidate_name in candidate_names:
        column_name = column_name_by_letters.get(get_name_letters(candidate_name))
        if column_name is not None:
            return column_name
    return None


def find_region_column_name(
    column_names: Iterable[str], candidate_names: Sequence[str]
) -> str | None:
    """Return the column name equal to a candidate, if need be without its `roi_`."""
    column_names = list(column_names)
    column_name = find_column_name(column_names, candidate_names)
    if column_name:
        return column_name
    # Of column names that differ only by the prefix, the first counts.
    column_name_by_stem = {
        _REGION_PREFIX.sub("", column_name): column_name
        for column_name in reversed(column_names)
    }
    unprefixed_name = find_column_name(map(str, column_name_by_stem), candidate_names)
    return None if unprefixed_name is None else column_name_by_stem.get(unprefixed_name)
