"""Read and write tables as text: nothing is guessed about what a cell means."""

import csv
import datetime as dt
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd

from brainlsap.exceptions import BrainlsapError, FileFormatError
from brainlsap.files import replace_when_whole

DELIMITERS = {"\t": "tabs", ",": "commas", ";": "semicolons"}
TABLE_SUFFIXES = (".tsv", ".csv", ".txt", ".dat", ".xlsx")
MISSING = frozenset(("", "n/a", "na", "nan", "null", "none"))
# Larger than any file of a scan, or any table of a study, also when unpacked.
MOST_BYTES = 256 * 2**20
# Of a long list of faults so many are shown.
_MOST_SHOWN = 20


@contextmanager
def reading(path: str | Path, what: str) -> Iterator[None]:
    """Turn whatever a library raises while it reads a file into FileFormatError."""
    try:
        yield
    except BrainlsapError:
        raise
    except FileNotFoundError as error:
        raise FileFormatError(f"{path}: no such file.") from error
    except Exception as error:  # broken files fail in every way there is
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise FileFormatError(
            f"{path}: cannot be read as {what}: {reason.rstrip('.')}. The file may be "
            "cut short, or something else than its name says."
        ) from error


def read_lines(
    path: str | Path, data: bytes | None = None, *, comments: bool = False
) -> list[str]:
    """Return the lines of a text file that are neither empty nor comments (`#`)."""
    if data is None:
        with reading(path, "text"):
            data = Path(path).read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path}: not a text file in UTF-8.") from error
    if "\0" in text:
        raise FileFormatError(f"{path}: not a text file (it holds zero bytes).")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    lines = [line for line in lines if line and not line.isspace()]
    return lines if comments else [line for line in lines if line[0] != "#"]


def sniff_delimiter(line: str) -> str | None:
    """Return what separates the cells of a line, None for white space."""
    return next((one for one in DELIMITERS if one in line), None)


def split_cells(line: str, delimiter: str | None) -> list[str]:
    """Return the cells of a line without white space and quotes around them."""
    return [cell.strip().strip('"').strip() for cell in line.split(delimiter)]


def read_table(path: str | Path) -> pd.DataFrame:
    r"""Read a table with a header; every cell stays text.

    Parameters
    ----------
    path : str or Path
        Separated by tabs, commas, semicolons or white space, whatever its suffix
        says: tools write commas into `.tsv`. Lines that start with `#` are skipped.
        Of a workbook (`.xlsx`) the first sheet counts.

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
    if Path(path).suffix.lower() == ".xlsx":
        rows, between = _read_sheet(path), "columns"
    else:
        lines = read_lines(path)
        delimiter = sniff_delimiter(lines[0]) if lines else None
        between = DELIMITERS.get(delimiter or "", "white space")
        if delimiter is None:
            lines = [" ".join(line.split()) for line in lines]
        with reading(path, "a table"):
            rows = list(
                csv.reader(lines, delimiter=delimiter or " ", skipinitialspace=True)
            )
    if not rows:
        raise FileFormatError(f"{path}: the table is empty; expected a header line.")
    heads = [head.strip() for head in rows[0]]
    doubled = sorted({head for head in heads if heads.count(head) > 1})
    if doubled:
        raise FileFormatError(
            f"{path}: {len(doubled)} columns stand more than once in the header: "
            f"{listed(map(repr, doubled))}. Keep one of each."
        )
    for number, row in enumerate(rows[1:], start=1):
        if len(row) != len(heads):
            raise FileFormatError(
                f"{path}: row {number} below the header has {len(row)} cells, expected "
                f"{len(heads)} (between {between}). The file may be cut short."
            )
    cells = [
        [None if (bare := cell.strip()).lower() in MISSING else bare for cell in row]
        for row in rows[1:]
    ]
    return pd.DataFrame(cells, columns=heads, dtype=object)


def write_tsv(table: pd.DataFrame, path: str | Path) -> Path:
    r"""Write a table as TSV, "n/a" where a value is missing, as BIDS has it.

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
    with replace_when_whole(path) as partial:
        table.to_csv(partial, sep="\t", index=False, na_rep="n/a", lineterminator="\n")
    return Path(path)


def parse_numbers(path: str | Path, table: pd.DataFrame) -> np.ndarray:
    """Return a table of text as numbers, NaN where missing.

    Raises FileFormatError that names row and column of the cells that are no numbers.
    """
    cells = table.to_numpy(dtype=object)
    try:
        return cells.astype(float)  # None becomes NaN
    except (ValueError, TypeError):
        wrong = [
            f"{cell!r} in row {row + 1}, column {table.columns[column]!r}"
            for (row, column), cell in np.ndenumerate(cells)
            if not _is_number(cell)
        ]
    raise FileFormatError(
        f"{path}: {len(wrong)} cells must be numbers or n/a: {listed(wrong)}."
    )


def as_covariate(column: pd.Series) -> pd.Series:
    """Return a column of text as numbers where all that is there are numbers."""
    if not column.isna().all():
        try:
            return pd.to_numeric(column)
        except (ValueError, TypeError):
            pass
    return pd.Series(column.tolist(), column.index)  # text in pandas' own type


def listed(items: Iterator[str] | Sequence[str], most: int = _MOST_SHOWN) -> str:
    """Return items of a list for a message, cut where it is long."""
    items = list(items)
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more


def _is_number(cell: str | None) -> bool:
    try:
        float("nan" if cell is None else cell)
    except ValueError:
        return False
    return True


def _read_sheet(path: str | Path) -> list[list[str]]:
    """Return the first sheet of a workbook as text, without empty rows."""
    try:
        openpyxl = import_module("openpyxl")
    except ImportError as error:
        raise FileFormatError(
            f"{path}: workbooks are read by openpyxl, which is not installed. Install "
            "it by 'pip install brainlsap[xlsx]', or save the sheet as .csv."
        ) from error
    with reading(path, "an Excel workbook"):
        with zipfile.ZipFile(path) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MOST_BYTES:
                raise FileFormatError(
                    f"{path}: unpacks to more than {MOST_BYTES >> 20} MiB."
                )
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        sheet = book.worksheets[0].iter_rows(values_only=True)
        rows = [row for row in ([_text(cell) for cell in r] for r in sheet) if any(row)]
        book.close()
    # rows may end early, and empty columns stand on the right
    width = max(
        (i + 1 for row in rows for i, cell in enumerate(row) if cell), default=0
    )
    return [(row + [""] * width)[:width] for row in rows]


def _text(cell: object) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    if isinstance(cell, dt.datetime) and cell.time() == dt.time():
        return cell.date().isoformat()
    return cell.isoformat() if isinstance(cell, dt.date) else str(cell).strip()
