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
from brainlsap.exceptions import FileFormatError, listed
from brainlsap.files import replace_when_whole

TABLE_SUFFIXES = (".tsv", ".csv", ".txt", ".dat", ".xlsx")
MISSING = frozenset(("", "n/a", "na", "nan", "null", "none"))
_LONGEST = max(map(len, MISSING))
# Numbers with separators of thousands: 4,394 and 4.394,0 and 4'394 and 4 394.
_GROUPED = re.compile(
    r"[-+\u2212]?\d{1,3}(?P<mark>[,.'\u2019\s])\d{3}((?P=mark)\d{3})*([.,]\d*)?"
)
_ONE_COMMA = re.compile(r"[-+\u2212]?\d{1,3},\d{3}")
_DECIMAL_COMMA = re.compile(r"[-+\u2212]?\d+,(?!\d{3}$)\d+")
# Quotation marks, which also stand for the cell above.
QUOTES = "\"'`\u00b4\u2018\u2019\u201c\u201d\u201e\u201f\u2033\u3003"
# What spreadsheets write for a formula that failed, in the languages of Excel.
_FORMULA_ERROR = re.compile(
    r"#[¡¿]?[^\W\d_][\w/]*[!?]|#[^\W\d_]/[^\W\d_]|#N[VB]|#YOK|##+|#GETTING_DATA"
)
PEOPLE_COLUMNS = (
    *("participant_id", "subject_id", "sub_id", "subjid", "subject", "participant"),
    *("ptid", "rid", "patient_id", "patient", "patient_number", "subject_number"),
    *("record_id", "mrn", "pseudonym", "patienten_id", "pat_id", "probanden_id"),
    *("patienten_nr", "no_patient", "n_patient", "probandennummer", "sujet"),
    # of large studies: UK Biobank, NACC, PPMI, NIMH, OASIS, Cam-CAN, ROSMAP, LORIS
    *("eid", "naccid", "patno", "subjectkey", "src_subject_id", "oasisid", "oasis_id"),
    *("ccid", "projid", "bblid", "candid", "pscid", "loni_subject", "guid", "iid"),
)
ID_COLUMNS = (*PEOPLE_COLUMNS, "scan", "scan_id", "image_id", "id", "")
# FreeSurfer's tables say side and measure where others say what ids are.
FREESURFER_HEAD = re.compile(r"(?:([lr])h\..+\.|measure:)(\w+)", re.IGNORECASE)
SESSION_COLUMNS = (
    *("session_id", "session", "ses", "visit", "visit_id", "viscode2", "viscode"),
    *("timepoint", "tp", "wave", "besuch", "visite", "scan_date", "exam_date"),
    *("untersuchungsdatum", "date_examen"),
    # of large studies: NACC, PPMI, ABCD, REDCap, UK Biobank
    *("naccvnum", "event_id", "eventname", "redcap_event_name", "instance"),
)
# Heads of columns of regions' names, numbers and sides, best first.
NAME_COLUMNS = (
    *("name", "region", "roi", "label", "structure", "parcel", "node"),
    *("abbreviation", "abbrev", "abbr", "acronym"),
)
INDEX_COLUMNS = ("index", "freesurfer_id", "id", "no", "nr", "number", "value", "")
# Such heads may say what they are of: `roi_name`, `label_id`, `StructName`.
_OF_REGIONS = re.compile(
    r"^(region|roi|label|structure|struct|parcel|node)[-_. ]*(?=[a-z])", re.IGNORECASE
)
SIDE_COLUMNS = (
    *("hemisphere", "hemi", "side", "hem", "laterality", "lateralisation", "seite"),
    *("lateralization", "lateralite", "cote", "hemisfero", "emisfero", "hemisphare"),
    *("hemisphaere", "lado", "lato"),
)
# Key of `DataFrame.attrs` under which a table has its `TableColumns.missing_words`.
MISSING_WORDS = "missing_words"
# Files that import_adni writes beside the study; none has values of regions.
IMPORT_FILES = (
    *("adni_pairing.tsv", "adni_unused_images.tsv", "adni_labels_by_phase.tsv"),
    *("adni_skipped.tsv", "adni_notes.txt"),
)
# What to do about a scan that a file lacks.
ADD_IT = "add it, or leave the scan out (its rows in tables, its folder)"


def read_lines(path: str | Path, *, comments: bool = False) -> list[str]:
    """Return the lines of a text file that are neither empty nor comments (`#`).

    Of a workbook the rows, with tabs between the cells. For files whose format has
    comments anywhere (lookup tables, stats); rows of a table come from `read_table`.
    """
    if Path(path).suffix.lower() == ".xlsx":
        rows = drop_titles(read_sheet_rows(path), _score_header)
        return ["\t".join(row.cells) for row in rows]
    lines = read_text(path).split("\n")
    lines = [line for line in lines if line and not line.isspace()]
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


class MissingWords(dict[str, dict[int, str]]):
    """By column and row, words such as `None` and `NA` that count as missing.

    Tables of pandas carry it in their `attrs`, which pandas copies at every step: so
    that copy is the same object.
    """

    def __deepcopy__(self, _: object) -> "MissingWords":
        return self


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
    _refuse_marked_rows(path, text)
    heads, columns = _drop_empty_columns(text)
    doubled = sorted({head for head in heads if heads.count(head) > 1})
    if doubled:
        raise FileFormatError(
            f"{listed(map(repr, doubled))} stand more than once in the first "
            f"row, taken for the header: {listed(map(repr, heads), 5)}. Name every "
            "column otherwise, and delete what stands above the header.",
            path=path,
        )
    table = TableColumns()
    table.lines = [row.line for row in text.rows]
    table.comment_lines = text.comment_lines
    table.missing_words = MissingWords()
    for head, column in zip(heads, columns, strict=True):
        cells = [
            None if len(cell) <= _LONGEST and cell.lower() in MISSING else cell
            for cell in map(str.strip, column)
        ]
        table[head] = cells
        words = {
            row: column[row].strip()
            for row, cell in enumerate(cells)
            if cell is None and is_missing_word(column[row])
        }
        if words:
            table.missing_words[head] = words
    return table


def is_missing_word(cell: str) -> bool:
    """Return whether a cell is a word that counts as missing, but `n/a` or nothing."""
    word = cell.strip().lower()
    return word in MISSING and word not in ("", "n/a")


def is_formula_error(cell: object) -> bool:
    """Return whether a cell is what a spreadsheet writes for a formula that failed.

    >>> [*map(is_formula_error, ["#N/A", "#DIV/0!", "#REF!", "#NV", "#01", "N/A"])]
    [True, True, True, True, False, False]
    """
    is_marked = isinstance(cell, str) and cell.startswith("#")
    return is_marked and _FORMULA_ERROR.fullmatch(str(cell)) is not None


def is_ditto_mark(cell: object) -> bool:
    """Return whether a cell is a mark that stands for the cell above it."""
    return isinstance(cell, str) and 0 < len(cell) < 4 and not cell.strip(QUOTES)


def _score_header(cells: Sequence[str]) -> int:
    """Return 2 where the first cell is a known head, 1 where another is, else 0."""
    known = [letters_of(head) for head in (*ID_COLUMNS, *NAME_COLUMNS) if head]
    is_known = [
        letters_of(cell) in known or FREESURFER_HEAD.fullmatch(cell) is not None
        for cell in cells
    ]
    return 2 if is_known[0] else int(any(is_known))


def _refuse_marked_rows(path: str | Path, text: TableText) -> None:
    """Raise where a row repeats the header, or a few rows begin with `#`.

    Such a row may have been taken out as a comment, which only lines above the header
    are; where all begin so, the mark is part of their names.
    """
    marked = list[TableRow]()
    for row in text.rows:
        first = row.cells[0].strip()
        if first[:1] == "#" and not is_formula_error(first):
            marked.append(row)
        is_alike = first == text.header.cells[0]
        if is_alike and [cell.strip() for cell in row.cells] == text.header.cells:
            raise FileFormatError(
                f"line {row.line} repeats the header (line "
                f"{text.header.line}). Delete the line.",
                path=path,
            )
    if 0 < len(marked) < len(text.rows):
        row = marked[0]
        more = f" (and {len(marked) - 1} more)" if len(marked) > 1 else ""
        raise FileFormatError(
            f"line {row.line}{more} begins with # ({row.cells[0].strip()!r}) "
            "below the header, where no comments are. Delete the line to leave the row "
            "out, or write its first cell without #.",
            path=path,
        )


def _drop_empty_columns(text: TableText) -> tuple[list[str], list[Sequence[str]]]:
    """Return heads and columns, without columns of nothing that spreadsheets leave."""
    heads = [head.strip() for head in text.header.cells]
    cells = zip(*(row.cells for row in text.rows), strict=True)
    columns: list[Sequence[str]] = list(cells) or [()] * len(heads)
    is_kept = [
        head != "" or any(map(str.strip, column))
        for head, column in zip(heads, columns, strict=True)
    ]
    if not any(is_kept):
        is_kept = [True] * len(heads)
    kept_heads = [head for head, keep in zip(heads, is_kept, strict=True) if keep]
    kept_columns = [one for one, keep in zip(columns, is_kept, strict=True) if keep]
    return kept_heads, kept_columns


def write_tsv(table: pd.DataFrame, path: str | Path) -> Path:
    r"""Write a table as TSV, "n/a" where a value is missing, as BIDS has it.

    With commas where the file is named `.csv`.

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
        Where the disk is full, or the folder may not be written to.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     write_tsv(pd.DataFrame({"age": [70.5, None]}), f"{place}/t").read_bytes()
    b'age\n70.5\nn/a\n'
    """
    sep = "," if Path(path).suffix.lower() == ".csv" else "\t"
    with replace_when_whole(path) as partial:
        table.to_csv(partial, sep=sep, index=False, na_rep="n/a", lineterminator="\n")
    return Path(path)


def describe_dataset(
    folder: Path, name: str, by: Mapping[str, object], kind: str = "derivative"
) -> None:
    """Write the `dataset_description.json` that BIDS asks for."""
    about = {"Name": name, "BIDSVersion": "1.10.0", "DatasetType": kind}
    with replace_when_whole(folder / "dataset_description.json") as partial:
        text = json.dumps(about | {"GeneratedBy": [by]}, indent=2) + "\n"
        partial.write_text(text, encoding="utf-8")


def parse_numbers(
    path: str | Path, table: pd.DataFrame | np.ndarray, heads: Sequence[str] = ()
) -> np.ndarray:
    """Return a table of text as numbers, NaN where missing.

    Raises FileFormatError that names row and column of the cells that are no numbers.
    """
    cells, heads = np.asarray(table, dtype=object), heads or list(table)
    try:
        return cells.astype(float)  # None becomes NaN
    except ValueError:
        parsed = pd.to_numeric(cells.ravel(), errors="coerce").reshape(cells.shape)
    wrong = [
        f"{cells[row, column]!r} in row {row + 1}, column {heads[column]!r}"
        for row, column in np.argwhere(pd.isna(parsed) & ~pd.isna(cells))
    ]
    hint = _explain_numbers(cells[pd.isna(parsed) & ~pd.isna(cells)])
    raise FileFormatError(
        f"{len(wrong)} cells must be numbers or n/a: {listed(wrong, 5)}.{hint}",
        path=path,
    )


def is_number_with_marks(cell: str) -> bool:
    """Return whether a cell is a number with a decimal comma or marked thousands."""
    return any(mark.fullmatch(cell) for mark in (_GROUPED, _DECIMAL_COMMA))


def _explain_numbers(cells: Iterable[str]) -> str:
    """Return a sentence on how to write cells that should be numbers, or nothing."""
    cells = [str(cell).strip() for cell in cells]
    if any(map(is_formula_error, cells)):
        return " A formula failed in the spreadsheet; write n/a for what is not known."
    grouped = [cell for cell in cells if _GROUPED.fullmatch(cell)]
    ambiguous = [cell for cell in grouped if _ONE_COMMA.fullmatch(cell)]
    if len(grouped) > len(ambiguous):
        return " Write thousands without separators, and decimals with a point."
    if any(map(_DECIMAL_COMMA.fullmatch, cells)):
        return " Write decimals with a point."
    if ambiguous:
        cell = ambiguous[0]
        both = f"{cell.replace(',', '')} or {cell.replace(',', '.')}"
        return (
            " Write decimals with a point, and thousands without separators: "
            f"{cell!r} may be {both}."
        )
    return ""


def letters_of(head: str) -> str:
    """Return the letters and digits of a head in lower case, without accents."""
    return "".join(filter(str.isalnum, normalize("NFKD", head.lower())))


def find_column(heads: Iterable[str], wanted: Sequence[str]) -> str | None:
    """Return the first head that is wanted, by its letters and digits in any case."""
    heads = list(heads)
    letters = [letters_of(one) for one in (*heads, *wanted)]
    known = dict(zip(letters, heads, strict=False))
    return next((known[one] for one in letters[len(heads) :] if one in known), None)


def find_region_column(heads: Iterable[str], wanted: Sequence[str]) -> str | None:
    """Return the first head that is wanted, or is so without `roi_` before it."""
    heads, bare = list(heads), dict[str | None, str]()
    for head in heads[::-1]:
        bare[_OF_REGIONS.sub("", head)] = head
    return find_column(heads, wanted) or bare.get(find_column(map(str, bare), wanted))
