"""Read and write tables as text: nothing is guessed about what a cell means."""

import csv
import datetime as dt
import gzip
import json
import os
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import pandas as pd

from brainlsap.exceptions import FileFormatError, listed, reading
from brainlsap.files import replace_when_whole

DELIMITERS = "\t;,"
TABLE_SUFFIXES = (".tsv", ".csv", ".txt", ".dat", ".xlsx")
MISSING = frozenset(("", "n/a", "na", "nan", "null", "none"))
PEOPLE_COLUMNS = (
    *("participant_id", "subject_id", "sub_id", "subjid", "subject", "participant"),
    *("ptid", "rid", "patient_id", "patient", "patient_number", "subject_number"),
    *("record_id", "mrn", "pseudonym", "patienten_id", "pat_id", "probanden_id"),
    *("patienten_nr", "no_patient", "n_patient", "probandennummer", "sujet"),
)
ID_COLUMNS = (*PEOPLE_COLUMNS, "scan", "scan_id", "image_id", "id", "")
# FreeSurfer's tables say side and measure where others say what ids are.
FREESURFER_HEAD = re.compile(r"(?:([lr])h\..+\.|measure:)(\w+)", re.IGNORECASE)
SESSION_COLUMNS = (
    *("session_id", "session", "ses", "visit", "visit_id", "viscode2", "viscode"),
    *("timepoint", "tp", "wave", "besuch", "visite", "scan_date", "exam_date"),
    *("untersuchungsdatum", "date_examen"),
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
SIDE_COLUMNS = ("hemisphere", "hemi", "side")
# Files that import_adni writes beside the study; none has values of regions.
IMPORT_FILES = (
    *("adni_pairing.tsv", "adni_unused_images.tsv", "adni_labels_by_phase.tsv"),
    *("adni_skipped.tsv", "adni_notes.txt"),
)
# What to do about a scan that a file lacks.
ADD_IT = "add it, or leave the scan out (its rows in tables, its folder)"


def read_lines(path: str | Path, *, comments: bool = False) -> list[str]:
    """Return the lines of a text file that are neither empty nor comments (`#`).

    Of a workbook the rows, with tabs between the cells.
    """
    if Path(path).suffix.lower() == ".xlsx":
        return ["\t".join(row) for row in _read_sheet(path, "")]
    with reading(path, "text"):
        data = Path(path).read_bytes()
        data = gzip.decompress(data) if Path(path).suffix.lower() == ".gz" else data
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            told = f"{path}: is no text in UTF-8 ({error}). Save a table as that (in "
            raise FileFormatError(f"{told}Excel: CSV UTF-8).") from error
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        raise FileFormatError(f"{path}: not a text file (it holds zero bytes).")
    lines = [line for line in text.split("\n") if line and not line.isspace()]
    return lines if comments else [line for line in lines if line[0] != "#"]


def sniff_delimiter(line: str) -> str | None:
    """Return what separates the cells of a line, None for white space."""
    bare = re.sub(r'"[^"]*"', "", line)  # a name in quotes may have commas
    return next((one for one in DELIMITERS if one in bare), None)


def split_cells(line: str, delimiter: str | None) -> list[str]:
    """Return the cells of a line without white space and quotes around them."""
    line = line if delimiter else " ".join(line.split())
    cut = csv.reader([line], delimiter=delimiter or " ", skipinitialspace=True)
    return [cell.strip() for cell in next(cut)]


def read_table(path: str | Path, sheet: str = "") -> pd.DataFrame:
    r"""Read a table with a header; every cell stays text.

    Parameters
    ----------
    path : str or Path
        Separated by tabs, commas, semicolons or white space, whatever its suffix
        says: tools write commas into `.tsv`. Lines that start with `#` are skipped.
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
        of different numbers of cells.

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


def read_columns(path: str | Path, sheet: str = "") -> dict[str, list[str | None]]:
    """Return the cells of a table by the heads of columns, as `read_table` does."""
    if Path(path).suffix.lower() == ".xlsx":
        rows = _read_sheet(path, sheet)
    else:
        lines = read_lines(path)
        delimiter = sniff_delimiter(lines[0]) if lines else None
        if lines and len(lines[0].split()) == 1:
            delimiter = delimiter or "\t"  # one column, whose cells may have blanks
        if delimiter is None:
            lines = [" ".join(line.split()) for line in lines]
        with reading(path, "a table"):
            cut = csv.reader(lines, delimiter=delimiter or " ", skipinitialspace=True)
            rows = list(cut)
    if not rows:
        raise FileFormatError(f"{path}: the table is empty; expected a header line.")
    heads = [head.strip() for head in rows[0]]
    doubled = sorted({head for head in heads if heads.count(head) > 1})
    if doubled:
        raise FileFormatError(
            f"{path}: {listed(map(repr, doubled))} stand more than once in the first "
            f"row, taken for the header: {listed(map(repr, heads), 5)}. Name every "
            "column otherwise, and delete what stands above the header."
        )
    for number, row in enumerate(rows[1:], start=1):
        if len(row) != len(heads):
            raise FileFormatError(
                f"{path}: row {number} below the header has {len(row)} cells, expected "
                f"{len(heads)}. The file may be cut short."
            )
    columns = list(zip(*rows[1:], strict=True)) or [()] * len(heads)
    return {
        head: [
            None if cell.lower() in MISSING else cell for cell in map(str.strip, column)
        ]
        for head, column in zip(heads, columns, strict=True)
    }


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
    hint = " Write decimals with a point." if re.match(r"'-?\d+,\d+'", wrong[0]) else ""
    raise FileFormatError(
        f"{path}: {len(wrong)} cells must be numbers or n/a: {listed(wrong, 5)}.{hint}"
    )


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


def group_faults(faults: Sequence[str], folder: str | Path = "") -> list[str]:
    r"""Return faults, those that differ only in whose they are as one.

    Of what stands behind "; got", which may differ too, that of the first is told.

    >>> faults = ["sub-01: no connectome", "sub-02: no age", "sub-03: no connectome"]
    >>> print("\n".join(group_faults(faults)))
    2 scans: no connectome
        sub-01, sub-03
    sub-02: no age
    """
    shared: dict[str, list[str]] = {}
    for fault in faults:
        what = fault.partition(": ")[2].partition("; got ")[0]
        shared.setdefault(what or fault, []).append(fault)
    grouped = []
    for alike in shared.values():
        if len(alike) == 1:
            grouped += alike
            continue
        places, tails = zip(*(one.split(": ", 1) for one in alike), strict=True)
        what = tails[0].replace("; got ", "; the first got ", 1)
        names = listed((one.removeprefix(f"{folder}{os.sep}") for one in places), 5)
        lines = textwrap.wrap(names, 84, break_long_words=False, break_on_hyphens=False)
        kind = "files" if all("/" in one or "\\" in one for one in places) else "scans"
        grouped.append("\n    ".join([f"{len(places)} {kind}: {what}", *lines]))
    return grouped


def _read_sheet(path: str | Path, sheet: str) -> list[list[str]]:
    """Return a sheet of a workbook as text, without empty rows."""
    how: dict[str, Any] = {"header": None, "dtype": object, "na_filter": False}
    with reading(path, "an Excel workbook"):
        cells = pd.read_excel(path, sheet_name=sheet or 0, **how)
    rows = [[_text(cell) for cell in row] for row in cells.to_numpy().tolist()]
    rows = [row for row in rows if any(row)]
    while len(rows) > 1 and sum(map(bool, rows[0])) < 2 <= sum(map(bool, rows[1])):
        rows = rows[1:]  # a title above the heads
    return rows


def _text(cell: object) -> str:
    if isinstance(cell, dt.datetime):
        return cell.isoformat().removesuffix("T00:00:00")
    return str(cell).strip()
