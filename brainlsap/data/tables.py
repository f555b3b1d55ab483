"""Read delimited text tables as text: nothing is guessed about what a cell means."""

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd

from brainlsap.data.spreadsheets import unguard_cells
from brainlsap.data.text_lines import DELIMITERS, read_lines, sniff_delimiter
from brainlsap.data.workbooks import read_sheet
from brainlsap.exceptions import FileFormatError

TABLE_SUFFIXES = (".tsv", ".csv", ".txt", ".dat", ".xlsx")
MISSING = frozenset(("", "n/a", "na", "nan", "null", "none"))


def read_table(path: str | Path) -> pd.DataFrame:
    r"""Read a table with a header; every cell stays text.

    Parameters
    ----------
    path : str or Path
        Separated by tabs, commas, semicolons or white space, whatever its suffix
        says: tools write commas into `.tsv`. Lines that start with `#` and empty
        lines are skipped. Of a workbook (`.xlsx`) the first sheet counts.

    Returns
    -------
    DataFrame
        Of str, without white space around cells; missing cells (`n/a`, `NA`, `nan`,
        empty ...) are None. An apostrophe that guards a formula
        (:mod:`brainlsap.data.spreadsheets`) is taken off.

    Raises
    ------
    FileFormatError
        Where the file is missing, empty, not text, or its rows have different
        numbers of cells.

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
        return _table_of_rows(path, read_sheet(path))
    lines = read_lines(path)
    if not lines:
        raise FileFormatError(f"{path}: the table is empty; expected a header line.")
    delimiter = sniff_delimiter(lines[0])
    try:
        heads = next(csv.reader(lines[:1], delimiter=delimiter or " "))
    except csv.Error as error:
        raise FileFormatError(f"{path}: cannot be read as a table: {error}") from error
    _check_heads(path, heads if delimiter else lines[0].split())
    # pandas would drop surplus cells of a row; a row that is short or long is a fault
    if delimiter is not None and '"' not in "".join(lines[:2]):
        _check_rows(path, lines, delimiter)
    text = "\n".join(lines)
    try:
        table = pd.read_csv(
            io.StringIO(text),
            sep=delimiter or r"\s+",
            dtype=str,
            keep_default_na=False,
            index_col=False,
            skipinitialspace=True,
        )
    except (pd.errors.ParserError, pd.errors.ParserWarning, ValueError) as error:
        raise FileFormatError(f"{path}: cannot be read as a table: {error}") from error
    heads = [str(name).strip() for name in table.columns]
    # pandas names an empty head by itself
    table.columns = pd.Index(["" if h.startswith("Unnamed: ") else h for h in heads])
    table = table.apply(_clean).astype(object)
    return _unguarded(path, table) if "'" in text else table


def is_missing(cell: object) -> bool:
    """Tell whether a cell says that there is no value.

    Parameters
    ----------
    cell : str or None
        As the table has it.

    Returns
    -------
    bool

    Examples
    --------
    >>> [is_missing(cell) for cell in ("n/a", "", None, "0", "AD")]
    [True, True, True, False, False]
    """
    return cell is None or str(cell).strip().lower() in MISSING


def parse_number(cell: str | None) -> float:
    """Return the number of a cell, NaN where it is missing.

    Parameters
    ----------
    cell : str or None
        As the table has it.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        Where the cell is neither missing nor a number.

    Examples
    --------
    >>> parse_number("2.5"), parse_number("n/a")
    (2.5, nan)
    """
    if cell is None or is_missing(cell):
        return np.nan
    if "_" in cell:  # Python reads 1_5 as 15, which no table means
        raise ValueError(f"could not convert string to float: {cell!r}")
    return float(cell)


def parse_numbers(path: str | Path, table: pd.DataFrame) -> np.ndarray:
    """Return the numbers of a table of text.

    Parameters
    ----------
    path : str or Path
        For the message.
    table : DataFrame
        As :func:`read_table` gives it.

    Returns
    -------
    float array of shape (n_rows, n_columns)
        NaN where missing.

    Raises
    ------
    FileFormatError
        Naming row and column of the first cell that is not a number.
    """
    try:
        return table.to_numpy(dtype=float, na_value=np.nan)
    except (ValueError, TypeError):
        pass
    for column in table.columns:
        for row, cell in enumerate(table[column]):
            try:
                parse_number(cell)
            except ValueError as error:
                raise FileFormatError(
                    f"{path}: row {row + 1} below the header, column {column!r}: "
                    f"expected a number or n/a, got {cell!r}."
                ) from error
    return np.array([[parse_number(cell) for cell in row] for row in table.to_numpy()])


def as_covariate(column: pd.Series) -> pd.Series:
    """Return a column of text as numbers where all that is there are numbers.

    Parameters
    ----------
    column : Series of str or None
        Cells as text.

    Returns
    -------
    Series
        Of float64 or int64 where possible, otherwise text.

    Examples
    --------
    >>> as_covariate(pd.Series(["70.5", None])).tolist()
    [70.5, nan]
    """
    if not column.isna().all():
        try:
            return pd.to_numeric(column)
        except (ValueError, TypeError):
            pass
    return pd.Series(column.tolist(), column.index)  # text in pandas' own type


def _clean(column: pd.Series) -> pd.Series:
    text = column.astype(object).fillna("").str.strip()
    return text.where(~text.str.lower().isin(MISSING), None)


def _check_heads(path: str | Path, heads: list[str]) -> None:
    names = [head.strip() for head in heads]
    doubled = [name for name in names if names.count(name) > 1]
    if doubled:
        raise FileFormatError(
            f"{path}: the column {doubled[0]!r} stands more than once in the header."
        )


def _unguarded(path: str | Path, table: pd.DataFrame) -> pd.DataFrame:
    table = unguard_cells(table)
    _check_heads(path, list(table.columns))
    return table


def _table_of_rows(path: str | Path, rows: list[list[str]]) -> pd.DataFrame:
    if not rows:
        raise FileFormatError(f"{path}: the table is empty; expected a header line.")
    _check_heads(path, rows[0])
    table = pd.DataFrame(
        rows[1:], columns=[head.strip() for head in rows[0]], dtype=str
    )
    return table.apply(_clean).astype(object)


def _check_rows(path: str | Path, lines: list[str], delimiter: str) -> None:
    expected = lines[0].count(delimiter)
    for number, line in enumerate(lines[1:], start=1):
        if line.count(delimiter) != expected and '"' not in line:
            raise FileFormatError(
                f"{path}: row {number} below the header has "
                f"{line.count(delimiter) + 1} cells, expected {expected + 1} (between "
                f"{DELIMITERS[delimiter]}). The file may be cut short."
            )
