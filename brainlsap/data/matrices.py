"""Read a square matrix with or without names; which region a row is comes later."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from brainlsap.data.name_lists import are_counts, split_cells
from brainlsap.data.text_lines import (
    DELIMITERS,
    read_all_lines,
    sniff_delimiter,
)
from brainlsap.exceptions import FileFormatError

# More rows than any parcellation has; beyond, arrays are not copied whole.
MOST_ROWS = 3000
_CORNER = frozenset(("", "region", "name", "label", "index", "node", "roi"))


@dataclass(frozen=True, eq=False)
class NamedMatrix:
    """A square matrix and what its file calls its rows and columns.

    Parameters
    ----------
    values : array of shape (n, n)
        The numbers.
    rows, columns : tuple of str of length n, or None
        None where the file has no names.
    measure : str
        What the weights are, where the file says it.
    leaves_out : bool
        Whether the tool leaves out regions that a brain does not have.
    """

    values: np.ndarray
    rows: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    measure: str = ""
    leaves_out: bool = False


def read_text_matrix(path: str | Path) -> NamedMatrix:
    """Read a matrix from text separated by commas, tabs, semicolons or spaces.

    Parameters
    ----------
    path : str or Path
        The delimiter is looked for, whatever the suffix says; lines that start with
        `#` are skipped; a first row and a first column of names are recognised.

    Returns
    -------
    NamedMatrix

    Raises
    ------
    FileFormatError
        Where the file is no square matrix of numbers.
    """
    return parse_matrix(path, read_all_lines(path))


def parse_matrix(path: str | Path, lines: list[str]) -> NamedMatrix:
    """Read a matrix from lines of text, as :func:`read_text_matrix` does.

    Parameters
    ----------
    path : str or Path
        Of the file, for messages.
    lines : list of str
        None empty. Comments are skipped, but for one that names every column, as
        NumPy's `savetxt(header=...)` writes it.

    Returns
    -------
    NamedMatrix

    Raises
    ------
    FileFormatError
        Where the lines are no square matrix of numbers.
    """
    comments = [line for line in lines if line.startswith("#")]
    lines = [line for line in lines if not line.startswith("#")]
    if not lines:
        raise FileFormatError(f"{path}: the file is empty; expected a matrix.")
    if lines[0].startswith("data\tdata\t"):
        raise FileFormatError(
            f"{path}: a connectogram of DSI Studio, made for drawing; read the "
            ".connectivity.mat that it writes beside it."
        )
    delimiter = sniff_delimiter(lines[0])
    lines = [line.strip(" ") for line in lines]
    if delimiter and all(line.endswith(delimiter) for line in lines):
        lines = [line[:-1] for line in lines]
    columns: list[str] | None = None
    first = split_cells(lines[0], delimiter)
    if not _are_numbers(first[1:]) or first[0].lower() in _CORNER:
        columns, lines = first, lines[1:]
    elif comments:
        columns = _commented_names(comments, len(lines))
    # a header with a corner promises names in the first column, be they numbers
    corner = columns is not None and len(columns) == len(lines) + 1
    corner = corner and columns is not None and columns[0].lower() in _CORNER
    rows, lines = _cut_row_names(lines, delimiter, always=corner)
    if columns is not None and rows is not None and len(columns) == len(rows) + 1:
        columns = columns[1:]
    values = _parse(path, lines, delimiter, skipped=int(columns is not None))
    check_square(path, values.shape)
    for names, side in ((rows, "rows"), (columns, "columns")):
        if names is not None and len(names) != len(values):
            raise FileFormatError(
                f"{path}: {len(names)} names for {len(values)} {side}; expected one "
                "name for each."
            )
    return NamedMatrix(values, *_usable_names(rows, columns))


def read_npy_matrix(path: str | Path) -> NamedMatrix:
    """Read a matrix from NumPy's `.npy`; it holds no names.

    Parameters
    ----------
    path : str or Path
        A `.npy` file.

    Returns
    -------
    NamedMatrix

    Raises
    ------
    FileFormatError
        Where the file is missing, cut short, or no square matrix of numbers.
    """
    try:
        # mapped, so that a header which lies about its shape allocates nothing
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError as error:
        raise FileFormatError(f"{path}: no such file.") from error
    except Exception as error:  # the parser of a broken header trips in many ways
        raise FileFormatError(
            f"{path}: cannot be read as a .npy array of numbers: {error}"
        ) from error
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "uifb":
        kind = getattr(values, "dtype", type(values).__name__)
        raise FileFormatError(f"{path}: expected an array of numbers, got {kind}.")
    check_square(path, values.shape)
    # a matrix of label numbers is large and mostly empty; its rows are picked first
    return NamedMatrix(values if len(values) > MOST_ROWS else values.astype(np.float64))


def check_square(path: str | Path, shape: tuple[int, ...]) -> None:
    """Raise where a shape is not that of a square matrix.

    Parameters
    ----------
    path : str or Path
        Of the file, for the message.
    shape : tuple of int
        Of the array.

    Raises
    ------
    FileFormatError
    """
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 2:
        size = " x ".join(map(str, shape)) or "a single number"
        raise FileFormatError(
            f"{path}: expected a square matrix, got {size}. The file may be cut short, "
            "or hold something else than a connectome."
        )


def _are_numbers(cells: Sequence[str]) -> bool:
    try:
        np.array([cell for cell in cells if cell != "n/a"], dtype=float)
    except ValueError:
        return False
    return True


def _commented_names(comments: Sequence[str], n: int) -> list[str] | None:
    """Return the names of the columns where a comment lists them all."""
    for comment in comments:
        text = comment.lstrip("#").strip(" ")
        cells = split_cells(text, sniff_delimiter(text))
        if len(cells) == n + 1 and cells[0].lower() in _CORNER:
            cells = cells[1:]
        named = not _are_numbers(cells) or all(cell.isdecimal() for cell in cells)
        if len(cells) == n and named:
            return cells
    return None


def _cut_row_names(
    lines: list[str], delimiter: str | None, always: bool
) -> tuple[list[str] | None, list[str]]:
    if not lines or (not always and _are_numbers(split_cells(lines[0], delimiter)[:1])):
        return None, lines
    parts = [line.strip().split(delimiter, 1) for line in lines]
    names = [part[0].strip().strip('"') for part in parts]
    return names, [part[1] if len(part) > 1 else "" for part in parts]


def _parse(
    path: str | Path, lines: list[str], delimiter: str | None, skipped: int
) -> np.ndarray:
    if not any(line.strip() for line in lines):
        raise FileFormatError(f"{path}: names but no numbers; expected a matrix.")
    try:
        return np.loadtxt(lines, delimiter=delimiter, ndmin=2)
    except ValueError as error:
        separator = DELIMITERS.get(delimiter or "", "white space")
        below = " below the names" if skipped else ""
        reason = str(error).split("; use `usecols`")[0]
        raise FileFormatError(
            f"{path}: not a matrix of numbers between {separator}: {reason}{below}. "
            "The file may be cut short, or have other delimiters."
        ) from error


def _usable_names(
    rows: list[str] | None, columns: list[str] | None
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Return both lists of names; one serves for both where there is only one."""
    if rows and columns:  # a count says nothing beside names
        rows = columns if are_counts(rows) else rows
        columns = rows if are_counts(columns) else columns
    rows, columns = rows or columns, columns or rows
    if rows is None or columns is None:
        return None, None
    return tuple(rows), tuple(columns)
