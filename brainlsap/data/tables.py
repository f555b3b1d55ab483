"""Read and write tables as text: nothing is guessed about what a cell means."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pandas as pd

from brainlsap.data.table_rows import (
    TableRow,
    TableText,
    drop_titles,
    read_sheet_rows,
    read_sheet_text,
    read_table_text,
    read_text,
)
from brainlsap.exceptions import FileFormatError
from brainlsap.files import replace_when_whole
from brainlsap.text import listed

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
    *("eid", "naccid", "patno", "subjectkey", "src_subject_id", "oasisid", "oasis_id"),
    *("ccid", "projid", "bblid", "candid", "pscid", "loni_subject", "guid", "iid"),
)
ID_COLUMNS = (*PEOPLE_COLUMNS, "scan", "scan_id", "image_id", "id", "")
# First head of FreeSurfer's tables: side and measure instead of a word for ids.
FREESURFER_HEAD = re.compile(r"(?:([lr])h\..+\.|measure:)(\w+)", re.IGNORECASE)
SESSION_COLUMNS = (
    *("session_id", "session", "ses", "visit", "visit_id", "viscode2", "viscode"),
    *("timepoint", "tp", "wave", "besuch", "visite", "scan_date", "exam_date"),
    *("untersuchungsdatum", "date_examen"),
    # Of large studies: NACC, PPMI, ABCD, REDCap, UK Biobank
    *("naccvnum", "event_id", "eventname", "redcap_event_name", "instance"),
)
# Heads of columns with names, numbers and sides of regions, best first.
NAME_COLUMNS = (
    *("name", "region", "roi", "label", "structure", "parcel", "node"),
    *("abbreviation", "abbrev", "abbr", "acronym"),
)
INDEX_COLUMNS = ("index", "freesurfer_id", "id", "no", "nr", "number", "value", "")
# Such heads may begin with a word for region: `roi_name`, `label_id`, `StructName`.
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
# Advice in messages about a scan that a file lacks.
ADD_IT = "add it, or leave the scan out (its rows in tables, its folder)"


def read_lines(path: str | Path, *, comments: bool = False) -> list[str]:
    """Return the lines of a text file that are neither empty nor comments (`#`).

    Of a workbook return the rows, with tabs between the cells. For files whose format
    allows comments anywhere (lookup tables, stats); rows of a table come from
    `read_table`.
    """
    if Path(path).suffix.lower() == ".xlsx":
        rows = drop_titles(read_sheet_rows(path), _score_header)
        return ["\t".join(row.cells) for row in rows]
    all_lines = read_text(path).split("\n")
    lines = [line for line in all_lines if line and not line.isspace()]
    return lines if comments else [line for line in lines if line[0] != "#"]


def read_table(path: str | Path, sheet: str = "") -> pd.DataFrame:
    r"""Read a table with a header; every cell stays text.

    Parameters
    ----------
    path : str or Path
        Separated by tabs, commas, semicolons or white space, whatever its suffix
        says: tools write commas into `.tsv`. Lines above the header that start with
        `#` are comments. Empty rows, and empty columns without a head, are skipped.
    sheet : str
        Of a workbook (`.xlsx`); by default its first.

    Returns
    -------
    DataFrame
        Of str, without white space around cells; missing cells (`n/a`, `NA`, `nan`,
        empty ...) are None.

    Raises
    ------
    FileFormatError
        Where the file is missing, empty, not text, names columns twice, or has rows
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
    return pd.DataFrame(read_columns(path, sheet), dtype=object)


# By column and row, words such as `None` and `NA` that count as missing.
MissingWords = Mapping[str, Mapping[int, str]]


class TableColumns(dict[str, list[str | None]]):
    """The cells of a table by the heads of columns, None where missing.

    Attributes
    ----------
    lines : list of int
        Line of the file, or row of the sheet, that every row comes from.
    comment_lines : list of int
        Lines above the header that begin with `#`.
    missing_words : MissingWords
        Words that count as missing and may have been meant as words.
    """

    lines: list[int]
    comment_lines: list[int]
    missing_words: MissingWords


def read_columns(path: str | Path, sheet: str = "") -> TableColumns:
    """Return the cells of a table by the heads of columns, as `read_table` does."""
    if Path(path).suffix.lower() == ".xlsx":
        text = read_sheet_text(path, sheet, _score_header)
    else:
        text = read_table_text(path, _score_header)
    _check_marked_rows(path, text)
    heads, columns = _drop_empty_columns(text)
    repeated_heads = sorted({head for head in heads if heads.count(head) > 1})
    if repeated_heads:
        raise FileFormatError(
            f"{listed(map(repr, repeated_heads))} stand more than once in the "
            f"first row, taken for the header: {listed(map(repr, heads), 5)}. Name "
            "every column otherwise, and delete what stands above the header.",
            path=path,
            kind="repeated heads",
            values={"heads": tuple(repeated_heads)},
        )
    table = TableColumns()
    table.lines = [row.line for row in text.rows]
    table.comment_lines = text.comment_lines
    words_of_column: dict[str, dict[int, str]] = {}
    for head, column in zip(heads, columns, strict=True):
        cells = [_missing_to_none(cell.strip()) for cell in column]
        table[head] = cells
        missing_words = {
            row: column[row].strip()
            for row, cell in enumerate(cells)
            if cell is None and is_missing_word(column[row])
        }
        if missing_words:
            words_of_column[head] = missing_words
    table.missing_words = words_of_column
    return table


def _missing_to_none(cell: str) -> str | None:
    """Return a cell, None if it counts as missing."""
    is_missing = len(cell) <= _MAX_MISSING_LENGTH and cell.lower() in MISSING_CELLS
    return None if is_missing else cell


def is_missing_word(cell: str) -> bool:
    """Return whether a cell counts as missing but could be meant as a word (`None`)."""
    lower_cell = cell.strip().lower()
    return lower_cell in MISSING_CELLS and lower_cell not in ("", "n/a")


def is_formula_error(cell: object) -> bool:
    """Return whether a cell is the error of a spreadsheet's formula.

    >>> [*map(is_formula_error, ["#N/A", "#DIV/0!", "#REF!", "#NV", "#01", "N/A"])]
    [True, True, True, True, False, False]
    """
    is_marked = isinstance(cell, str) and cell.startswith("#")
    return is_marked and _FORMULA_ERROR.fullmatch(str(cell)) is not None


def is_ditto_mark(cell: object) -> bool:
    """Return whether a cell is a mark that stands for the cell above it."""
    return isinstance(cell, str) and 0 < len(cell) < 4 and not cell.strip(QUOTES)


def _score_header(cells: Sequence[str]) -> int:
    """Return 2 if the first cell is a known head, 1 if another is, else 0."""
    known_letters = [letters_of(head) for head in (*ID_COLUMNS, *NAME_COLUMNS) if head]
    is_known = [
        letters_of(cell) in known_letters or FREESURFER_HEAD.fullmatch(cell) is not None
        for cell in cells
    ]
    return 2 if is_known[0] else int(any(is_known))


def _check_marked_rows(path: str | Path, text: TableText) -> None:
    """Raise if a row repeats the header, or some rows, but not all, begin with `#`.

    Only lines above the header are comments, so such a row may have been meant as one.
    If all rows begin with `#`, the mark is part of their names.
    """
    marked_rows = list[TableRow]()
    for row in text.rows:
        first_cell = row.cells[0].strip()
        if first_cell[:1] == "#" and not is_formula_error(first_cell):
            marked_rows.append(row)
        # The first cells are compared first, because that is fast.
        begins_alike = first_cell == text.header.cells[0]
        if begins_alike and [cell.strip() for cell in row.cells] == text.header.cells:
            raise FileFormatError(
                f"line {row.line} repeats the header (line "
                f"{text.header.line}). Delete the line.",
                path=path,
                kind="repeated header",
                values={"line": row.line},
            )
    if 0 < len(marked_rows) < len(text.rows):
        row = marked_rows[0]
        n_further = len(marked_rows) - 1
        count = f" (and {n_further} more)" if n_further else ""
        raise FileFormatError(
            f"line {row.line}{count} begins with # "
            f"({row.cells[0].strip()!r}) below the header, where no comments are. "
            "Delete the line to leave the row out, or write its first cell without #.",
            path=path,
            kind="comment among rows",
            values={"line": row.line},
        )


def _drop_empty_columns(text: TableText) -> tuple[list[str], list[Sequence[str]]]:
    """Return heads and columns, without columns that have no head and no cell.

    Spreadsheets leave such columns. A table of nothing else keeps them.
    """
    heads = [head.strip() for head in text.header.cells]
    columns: list[Sequence[str]] = list(
        zip(*(row.cells for row in text.rows), strict=True)
    )
    if not columns:
        columns = [()] * len(heads)
    filled_heads, filled_columns = list[str](), list[Sequence[str]]()
    for head, column in zip(heads, columns, strict=True):
        if head != "" or any(map(str.strip, column)):
            filled_heads.append(head)
            filled_columns.append(column)
    if not filled_heads:
        return heads, columns
    return filled_heads, filled_columns


def write_tsv(table: pd.DataFrame, path: str | Path) -> Path:
    r"""Write a table as TSV, with "n/a" for missing values as in BIDS.

    Cells are separated by commas if the file is named `.csv`.

    Parameters
    ----------
    table : DataFrame
        Without its index.
    path : str or Path
        The file; it appears whole or not at all.

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
    sep = "," if Path(path).suffix.lower() == ".csv" else "\t"
    with replace_when_whole(path) as partial:
        table.to_csv(partial, sep=sep, index=False, na_rep="n/a", lineterminator="\n")
    return Path(path)


def describe_dataset(
    folder: Path,
    name: str,
    generated_by: Mapping[str, object],
    dataset_type: str = "derivative",
) -> None:
    """Write the `dataset_description.json` that BIDS asks for."""
    description = {
        "Name": name,
        "BIDSVersion": "1.10.0",
        "DatasetType": dataset_type,
        "GeneratedBy": [generated_by],
    }
    with replace_when_whole(folder / "dataset_description.json") as partial:
        text = json.dumps(description, indent=2) + "\n"
        partial.write_text(text, encoding="utf-8")


def parse_numbers(
    path: str | Path, table: pd.DataFrame | np.ndarray, heads: Sequence[str] = ()
) -> np.ndarray:
    """Return a table of text as numbers, NaN where missing.

    Raises FileFormatError with row and column of cells that are not numbers.
    """
    cells = np.asarray(table, dtype=object)
    heads = heads or list(table)
    try:
        return cells.astype(float)  # None becomes NaN
    except ValueError:
        numbers = pd.to_numeric(cells.ravel(), errors="coerce").reshape(cells.shape)
    is_wrong = pd.isna(numbers) & ~pd.isna(cells)
    wrong_cells = [
        f"{cells[row, column]!r} in row {row + 1}, column {heads[column]!r}"
        for row, column in np.argwhere(is_wrong)
    ]
    raise FileFormatError(
        f"{len(wrong_cells)} cells must be numbers or n/a: "
        f"{listed(wrong_cells, 5)}.{_explain_numbers(cells[is_wrong])}",
        path=path,
        kind="not numbers",
        values={"cells": tuple(cells[is_wrong])},
    )


def is_number_with_marks(cell: str) -> bool:
    """Return whether a cell is a number with a decimal comma or marked thousands."""
    return any(mark.fullmatch(cell) for mark in (_GROUPED, _DECIMAL_COMMA))


def _explain_numbers(cells: Iterable[str]) -> str:
    """Return advice on how to write cells that should be numbers, or nothing."""
    texts = [str(cell).strip() for cell in cells]
    if any(map(is_formula_error, texts)):
        return " A formula failed in the spreadsheet; write n/a for what is not known."
    with_thousands = [text for text in texts if _GROUPED.fullmatch(text)]
    ambiguous = [text for text in with_thousands if _ONE_COMMA.fullmatch(text)]
    if len(with_thousands) > len(ambiguous):
        return " Write thousands without separators, and decimals with a point."
    if any(map(_DECIMAL_COMMA.fullmatch, texts)):
        return " Write decimals with a point."
    if ambiguous:
        text = ambiguous[0]
        meanings = f"{text.replace(',', '')} or {text.replace(',', '.')}"
        return (
            " Write decimals with a point, and thousands without separators: "
            f"{text!r} may be {meanings}."
        )
    return ""


def letters_of(head: str) -> str:
    """Return the letters and digits of a head in lower case, without accents."""
    return "".join(filter(str.isalnum, normalize("NFKD", head.lower())))


def find_head(heads: Iterable[str], candidates: Sequence[str]) -> str | None:
    """Return the head that equals the first possible candidate, None if none does.

    Only letters and digits count, in any case.
    """
    head_of_letters = {letters_of(head): head for head in heads}
    for candidate in candidates:
        head = head_of_letters.get(letters_of(candidate))
        if head is not None:
            return head
    return None


def find_region_column(heads: Iterable[str], candidates: Sequence[str]) -> str | None:
    """Return the head that equals a candidate, if need be without `roi_` before it."""
    heads = list(heads)
    head = find_head(heads, candidates)
    if head:
        return head
    # Of heads that differ only by the prefix, the first counts.
    head_of_stem = {_REGION_PREFIX.sub("", head): head for head in reversed(heads)}
    stem = find_head(map(str, head_of_stem), candidates)
    return None if stem is None else head_of_stem.get(stem)
