"""Tell the arrays of one file apart: square matrices, and the names of their rows.

Known by their keys are QSIRecon and QSIPrep (`atlas_<A>_<measure>_connectivity`, with
or without `atlas_`, beside `<A>_region_labels`) and DSI Studio (`connectivity` or
`<measure> r2r`, beside `name`); any other file may hold square matrices and a list of
as many names.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from brainlsap.data.matrices import MOST_ROWS, NamedMatrix
from brainlsap.exceptions import FileFormatError

NAME_KEYS = ("region_labels", "region_names", "regions", "names", "name", "labels")
# Numbers of labels, where a file holds no names.
_NUMBER_KEYS = (*NAME_KEYS, "ids", "id")
_SUFFIXES = ("_connectivity", " r2r")
_LAST_CHARACTER = 0x10FFFF  # of Unicode
# DSI Studio and QSIRecon leave out, or fill with NaN, regions that they did not find.
_DSI_KEYS = frozenset(("connectivity",))


def collect_matrices(
    path: Path, arrays: Mapping[str, np.ndarray]
) -> tuple[NamedMatrix, ...]:
    """Return the square matrices of a file, each with its names and its measure.

    Parameters
    ----------
    path : Path
        Of the file, for the message.
    arrays : mapping of str to array
        All that the file holds, by key.

    Returns
    -------
    tuple of NamedMatrix

    Raises
    ------
    FileFormatError
        Where no array is a square matrix of numbers, or it cannot be told which
        names are those of its rows.
    """
    squares = {
        key: value
        for key, value in arrays.items()
        if _is_square(value) and len(value) <= MOST_ROWS
    }
    if not squares:
        shapes = ", ".join(f"{k} {v.shape}" for k, v in list(arrays.items())[:8])
        raise FileFormatError(
            f"{path}: expected a square matrix of numbers, found {shapes or 'nothing'}."
        )
    lists = {key: text_list(value) for key, value in arrays.items()}
    texts = {key: names for key, names in lists.items() if names}
    found = []
    for key, values in squares.items():
        prefix, names = _names_for(key, len(values), texts)
        if names is None:
            names = _any_names(path, squares, len(values), arrays, texts)
        if names is None:
            _check_orphans(path, key, squares, texts)
        measure = key.removeprefix(prefix)
        for suffix in _SUFFIXES:
            measure = measure.removesuffix(suffix)
        is_known = key.endswith(_SUFFIXES) or key in _DSI_KEYS
        matrix = np.array(values, dtype=np.float64)
        found.append(NamedMatrix(matrix, names, names, measure, is_known))
    return tuple(found)


def text_list(value: np.ndarray) -> tuple[str, ...]:
    r"""Return the names that an array holds, in any of the ways that tools write them.

    Parameters
    ----------
    value : array
        Text; cells of text (MATLAB); or the bytes of lines of text (DSI Studio).

    Returns
    -------
    tuple of str
        Empty where the array holds something else.

    Examples
    --------
    >>> text_list(np.frombuffer(b"lh_a\nlh_b\n", dtype=np.uint8)[None])
    ('lh_a', 'lh_b')
    >>> text_list(np.array(["lh_a ", "lh_b "]))
    ('lh_a', 'lh_b')
    >>> text_list(np.eye(2))
    ()
    """
    if value.size == 0:
        return ()
    if value.dtype == np.uint8 and value.ndim <= 2 and min(value.shape) == 1:
        if not set(value.ravel().tolist()) & {10}:
            return ()
        joined = value.tobytes().decode("utf-8", "replace")
        return tuple(joined.replace("\0", "").strip("\n").split("\n"))
    cells = value.ravel()
    if value.dtype == object:
        cells = np.array([_cell_text(cell) for cell in cells], dtype=str)
    if cells.dtype.kind not in "US" or not is_text(cells):
        return ()
    texts = [c.decode("utf-8", "replace") if isinstance(c, bytes) else c for c in cells]
    if len(texts) == 1 and "\n" in texts[0]:
        texts = texts[0].strip("\n").split("\n")
    return tuple(str(text).strip() for text in texts)


def is_text(array: np.ndarray) -> bool:
    r"""Tell whether an array of text holds characters only.

    NumPy takes any four bytes of a file for one; Python then cannot make text of it.

    Parameters
    ----------
    array : array
        Of any type.

    Returns
    -------
    bool
        True also for an array that is not of text.

    Examples
    --------
    >>> is_text(np.array(["a"])), is_text(np.frombuffer(b"\xff" * 4, "<U1"))
    (True, False)
    """
    if array.dtype.kind != "U" or not array.dtype.itemsize:
        return True
    flat = np.frombuffer(array.tobytes(), f"{array.dtype.str[0]}u4")
    return not flat.size or int(flat.max()) <= _LAST_CHARACTER


def _is_square(value: object) -> bool:
    return (
        isinstance(value, np.ndarray)
        and value.ndim == 2
        and value.shape[0] == value.shape[1] >= 2
        and value.dtype.kind in "uifb"
    )


def _cell_text(cell: object) -> str:
    if isinstance(cell, np.ndarray):
        cell = cell.ravel()[0] if cell.size == 1 else "".join(map(str, cell.ravel()))
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)


def _names_for(
    key: str, n: int, texts: Mapping[str, tuple[str, ...]]
) -> tuple[str, tuple[str, ...] | None]:
    """Return the prefix that a matrix shares with its names, and the names."""
    fitting = {name: text for name, text in texts.items() if len(text) == n}
    for wanted in NAME_KEYS:
        for name, text in fitting.items():
            last = name.rsplit("/", 1)[-1].lower()
            prefix = name[: len(name) - len(wanted)]
            if last.endswith(wanted) and key.startswith(prefix):
                return prefix, text
    return "", None


def _any_names(
    path: Path,
    squares: Mapping[str, np.ndarray],
    n: int,
    arrays: Mapping[str, np.ndarray],
    texts: Mapping[str, tuple[str, ...]],
) -> tuple[str, ...] | None:
    """Return the one list of names that a file holds under a key of its own."""
    numbers = {
        key: _label_numbers(value)
        for key, value in arrays.items()
        if key.lower().endswith(_NUMBER_KEYS)
    }
    for lists in (texts, numbers):
        fitting = {
            key: names
            for key, names in lists.items()
            if len(names) == n == len(set(names)) and not _is_of_another(key, squares)
        }
        if len(set(fitting.values())) > 1:
            raise FileFormatError(
                f"{path}: {', '.join(map(repr, fitting))} could each name the {n} "
                "rows; expected one such list. Keep one, under the key "
                f"{NAME_KEYS[0]!r}."
            )
        if fitting:
            return next(iter(fitting.values()))
    return None


def _check_orphans(
    path: Path,
    key: str,
    squares: Mapping[str, np.ndarray],
    texts: Mapping[str, tuple[str, ...]],
) -> None:
    """Refuse a matrix beside names that are of another number than any rows."""
    sizes = {len(values) for values in squares.values()}
    for name, text in texts.items():
        prefixes = [name[: -len(k)] for k in NAME_KEYS if name.lower().endswith(k)]
        mine = any(key.startswith(prefix) for prefix in prefixes)
        if mine and len(text) > 1 and len(text) not in sizes:
            raise FileFormatError(
                f"{path}: {len(squares[key])} rows of {key!r}, but {name!r} names "
                f"{len(text)}; expected one name for each row. Correct the list, or "
                "leave it out."
            )


def _is_of_another(key: str, squares: Mapping[str, np.ndarray]) -> bool:
    """Tell whether a list of names belongs, by its prefix, to some of the matrices."""
    prefixes = [key[: -len(k)] for k in NAME_KEYS if key.lower().endswith(k)]
    return any(p and square.startswith(p) for p in prefixes for square in squares)


def _label_numbers(value: np.ndarray) -> tuple[str, ...]:
    """Return whole numbers of a list as text, nothing where it holds others."""
    is_list = value.size > 0 and max(value.shape, default=0) == value.size
    if not is_list or value.size > MOST_ROWS or value.dtype.kind not in "uif":
        return ()
    flat = value.ravel()
    if not np.isfinite(flat).all() or (flat < 0).any() or (flat != np.rint(flat)).any():
        return ()
    return tuple(str(int(number)) for number in flat)
