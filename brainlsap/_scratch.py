"""Arrays too large for memory: in files of the folder for temporary files.

Small arrays are ordinary ones. An array above :func:`large_bytes` is mapped to a file,
so that the system keeps in memory only what is being read; numbers are the same either
way. The file goes when the array does, at the latest with the process; what a killed
process left is removed by the next one that needs such a file.
"""

import mmap
import os
import tempfile
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from brainlsap._files import saying_where, try_lock
from brainlsap.exceptions import ParameterError

T = TypeVar("T")

LARGE_BYTES = 500_000_000
"""Arrays above this are mapped to a file, unless the environment says otherwise."""
LARGE_VARIABLE = "BRAINLSAP_LARGE_BYTES"

BLOCK_BYTES = 1 << 26
PREFIX = "brainlsap-scratch-"
# A file that is not locked may still be in the making.
_YOUNG_SECONDS = 60

_MAPPED: dict[str, "weakref.ref[np.memmap]"] = {}
_SWEPT: list[Path] = []


def large_bytes() -> int:
    """Return the size above which arrays are mapped to files, in bytes.

    Returns
    -------
    int
        `BRAINLSAP_LARGE_BYTES` of the environment, by default 500 million.

    Raises
    ------
    ParameterError
        Where the variable is no whole number.

    Examples
    --------
    >>> large_bytes() >= 0
    True
    """
    told = os.environ.get(LARGE_VARIABLE)
    if told is None:
        return LARGE_BYTES
    if not told.isdecimal():
        raise ParameterError(
            f"the environment's {LARGE_VARIABLE} must be a whole number of bytes, "
            f"got {told!r}."
        )
    return int(told)


def new_array(shape: Sequence[int], dtype: Any = np.float64) -> np.ndarray:
    """Return an array to be filled, mapped to a file where it is large.

    Parameters
    ----------
    shape : sequence of int
    dtype : dtype

    Returns
    -------
    array
        Of unknown content.

    Raises
    ------
    WritingError
        Where the folder for temporary files has no room; the variable `TMPDIR` of the
        environment names another.

    Examples
    --------
    >>> new_array((2, 3)).shape
    (2, 3)
    """
    n_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if n_bytes <= large_bytes() or n_bytes == 0:
        return np.empty(shape, dtype)
    folder = Path(tempfile.gettempdir())
    _sweep(folder)
    with saying_where(folder / f"{PREFIX}*"):
        handle, name = tempfile.mkstemp(prefix=PREFIX, dir=folder)
        try:
            try_lock(handle)
            _reserve(handle, n_bytes)
            array = np.memmap(name, dtype, "r+", shape=tuple(shape))
        except BaseException:
            _forget(handle, name, os.getpid())
            raise
    weakref.finalize(array, _forget, handle, name, os.getpid())
    _MAPPED[name] = weakref.ref(array)
    return np.asarray(array)


def map_of(array: np.ndarray) -> "np.memmap | None":
    """Return the map that an array's memory belongs to; None for ordinary memory.

    Parameters
    ----------
    array : array

    Returns
    -------
    memmap or None
    """
    one: Any = array
    while one is not None and not isinstance(one, np.memmap):
        one = getattr(one, "base", None)
    # the last map of a chain is the one that was opened
    while one is not None and isinstance(one.base, np.memmap):
        one = one.base
    return one


def release(array: np.ndarray | None = None) -> None:
    """Let the system take back memory of mapped arrays; their numbers stay on file.

    Parameters
    ----------
    array : array, optional
        One more than those that :func:`new_array` has made in this process.
    """
    if not hasattr(mmap, "MADV_DONTNEED"):
        return
    maps = [one() for one in list(_MAPPED.values())]
    for one in (*maps, None if array is None else map_of(array)):
        # of a map that copies on writing, what was written is in memory alone
        if one is not None and one.mode != "c":
            one._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]


def row_blocks(array: np.ndarray) -> Iterator[slice]:
    """Yield slices of rows that are 64 MB large at the most; let go of those behind.

    They do not depend on whether the array is mapped, so neither do sums over them.

    Parameters
    ----------
    array : array of shape (n_rows, ...)

    Yields
    ------
    slice

    Examples
    --------
    >>> list(row_blocks(np.zeros((3, 2))))
    [slice(0, 3, None)]
    """
    row_bytes = array.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
    step = max(1, BLOCK_BYTES // max(1, row_bytes))
    for start in range(0, len(array), step):
        yield slice(start, min(start + step, len(array)))
        release(array)


def letting_go(parts: Iterable[T], every: int) -> Iterator[T]:
    """Yield parts; let go of mapped memory after every so many.

    Parameters
    ----------
    parts : iterable
    every : int

    Yields
    ------
    object
        Each of the parts.
    """
    for number, part in enumerate(parts, 1):
        yield part
        if number % every == 0:
            release()


def take_rows(array: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return a copy of some rows, mapped to a file where it is large.

    Parameters
    ----------
    array : array of shape (n_rows, ...)
    rows : int array of shape (n_taken,)

    Returns
    -------
    array of shape (n_taken, ...)

    Examples
    --------
    >>> take_rows(np.arange(6).reshape(3, 2), np.array([2, 0])).tolist()
    [[4, 5], [0, 1]]
    """
    taken = new_array((len(rows), *array.shape[1:]), array.dtype)
    for part in row_blocks(taken):
        taken[part] = array[rows[part]]
        release(array)
    return taken


def as_doubles(array: np.ndarray) -> np.ndarray:
    """Return an array in float64: itself, or a copy that is mapped where it is large.

    Parameters
    ----------
    array : array

    Returns
    -------
    array
        Of the same shape.
    """
    array = np.asarray(array)
    return array if array.dtype == np.float64 else copied_doubles(array)


def copied_doubles(array: np.ndarray) -> np.ndarray:
    """Return a copy in float64 that is mapped to a file where it is large.

    Parameters
    ----------
    array : array

    Returns
    -------
    array
        Of the same shape, its rows one after another in memory.

    Examples
    --------
    >>> copied_doubles(np.array(3)).item()
    3.0
    """
    if array.ndim == 0 or array.size * 8 <= large_bytes():
        return np.array(array, dtype=np.float64, order="C")
    made = new_array(array.shape)
    for part in row_blocks(made):
        made[part] = array[part]
        release(array)
    return made


def _reserve(handle: int, n_bytes: int) -> None:
    """Take the room on the disk now: a map of a full disk would end the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, n_bytes)
    else:
        os.truncate(handle, n_bytes)


def _forget(handle: int, name: str, owner: int) -> None:
    if os.getpid() != owner:  # a child has it too, and it is not the child's
        return
    _MAPPED.pop(name, None)
    os.close(handle)
    Path(name).unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    """Remove, once a process, what killed processes of this user left."""
    if folder in _SWEPT:
        return
    _SWEPT.append(folder)
    for stray in folder.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if time.time() - stray.lstat().st_ctime < _YOUNG_SECONDS:
                continue
            handle = os.open(stray, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
            try:
                if try_lock(handle):
                    stray.unlink()
            finally:
                os.close(handle)
