"""Read the first sheet of an Excel workbook as text, by openpyxl (extra `xlsx`)."""

import datetime as dt
import zipfile
from importlib import import_module
from pathlib import Path

from brainlsap.exceptions import FileFormatError

# Unpacked size of any table that a study has; more is a fault or an attack.
MOST_BYTES = 256 * 2**20


def read_sheet(path: str | Path) -> list[list[str]]:
    """Read the first sheet of a workbook; every cell becomes text.

    Parameters
    ----------
    path : str or Path
        A `.xlsx` file. Cells hold what was last computed, formulas are not run.

    Returns
    -------
    list of list of str
        Rows that are not empty, all of the length of the first; dates as
        `2006-04-18`, whole numbers without a point.

    Raises
    ------
    FileFormatError
        Where the file is missing, broken, too large, or openpyxl is not installed.
    """
    path = Path(path)
    if not path.is_file():
        raise FileFormatError(f"{path}: no such file.")
    try:
        openpyxl = import_module("openpyxl")
    except ImportError as error:
        raise FileFormatError(
            f"{path}: workbooks are read by openpyxl, which is not installed. Install "
            "it by 'pip install brainlsap[xlsx]', or save the sheet as .csv."
        ) from error
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > MOST_BYTES:
            raise FileFormatError(
                f"{path}: unpacks to more than {MOST_BYTES >> 20} MiB."
            )
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        rows = [
            [_text(cell) for cell in row]
            for row in book.worksheets[0].iter_rows(values_only=True)
        ]
        book.close()
    except FileFormatError:
        raise
    except Exception as error:  # of zip, XML and openpyxl; a broken file has them all
        raise FileFormatError(
            f"{path}: cannot be read as an Excel workbook: {error}."
        ) from error
    rows = [row for row in rows if any(row)]
    return _same_length(rows)


def _same_length(rows: list[list[str]]) -> list[list[str]]:
    """Cut empty columns on the right; fill rows that end early."""
    if not rows:
        return []
    width = max(i + 1 for row in rows for i, cell in enumerate(row) if cell)
    return [(row + [""] * width)[:width] for row in rows]


def _text(cell: object) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    if isinstance(cell, dt.datetime) and cell.time() == dt.time():
        return cell.date().isoformat()
    return cell.isoformat() if isinstance(cell, dt.date) else str(cell).strip()
