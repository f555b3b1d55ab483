"""A look at an HDF5 file before its library reads it."""

import mmap
import struct
from pathlib import Path
from typing import Any

import numpy as np

from brainlsap.exceptions import FileFormatError

# A collection of texts: its mark, version 1 and three reserved zeros.
_MARK = b"GCOL\x01\x00\x00\x00"
_HEAD = 16
# The names of a group: mark and version; sizes and places follow after a word.
_NAMES = b"HEAP\x00"
# A place that ends the list of a heap's free space.
_LAST = 1
# Where a file may begin (after a block of the user's), and how.
_BEGINNINGS = (0, *(512 << k for k in range(12)))
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
# How a text of any length is referred to: its length, its collection and its number.
_REFERENCE = np.dtype([("n", "<u4"), ("heap", "<u8"), ("number", "<u4")])
_TEXT = _REFERENCE.itemsize


def check_heaps(path: str | Path) -> None:
    """Refuse a file whose texts or names would keep HDF5 busy for ever.

    The library walks a collection of texts from object to object, by their sizes;
    free space of size 0 lets it stand still. It walks the free space among the names
    of a group from place to place; a place that leads back lets it go in a circle
    (HDF5 1.14).

    Parameters
    ----------
    path : str or Path
        An HDF5 file.

    Raises
    ------
    FileFormatError
        Where either is damaged, or places are not written in 8 bytes.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"no HDF5 at all")
    ...     file.flush()
    ...     check_heaps(file.name)
    """
    path = Path(path)
    if not path.is_file() or path.stat().st_size == 0:
        return
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held,
    ):
        _check_places(path, held)
        for mark, holds, what in (
            (_MARK, _can_be_walked, "a collection of texts"),
            (_NAMES, _free_space_ends, "the names of a group"),
        ):
            start = held.find(mark)
            while start >= 0:
                if not holds(held, start):
                    raise FileFormatError(
                        f"{path}: {what} in this HDF5 file cannot be read: it is "
                        f"damaged (byte {start}). Write or copy the file again."
                    )
                start = held.find(mark, start + 1)


def check_texts(dataset: Any) -> None:
    """Refuse texts that say that they are longer than the whole file.

    The library asks for as much memory as they say, before it looks for them.

    Parameters
    ----------
    dataset : h5py.Dataset
        Of texts of any length, in one piece or in chunks.

    Raises
    ------
    ValueError
        Naming the data set.

    Examples
    --------
    See :func:`brainlsap.data.hdf_heaps.check_heaps`.
    """
    kept = dataset.id
    if dataset.dtype.kind != "O":
        return
    if dataset.chunks is None:
        place, size = kept.get_offset(), kept.get_storage_size()
        parts = [] if place is None else [_read_at(dataset, place, size)]
    else:
        chunks = [kept.get_chunk_info(k) for k in range(kept.get_num_chunks())]
        if dataset.compression is not None:
            return
        parts = [_read_at(dataset, one.byte_offset, one.size) for one in chunks]
    for part in parts:
        lengths = np.frombuffer(part[: len(part) // _TEXT * _TEXT], _REFERENCE)["n"]
        if lengths.size and lengths.max() > dataset.file.id.get_filesize():
            raise ValueError(f"{dataset.name}: a text is longer than the file")


def _read_at(dataset: Any, place: int, size: int) -> bytes:
    with Path(dataset.file.filename).open("rb") as file:
        file.seek(place)
        return file.read(size)


def _check_places(path: Path, held: mmap.mmap) -> None:
    """Refuse places of other than 8 bytes, which nothing here could check."""
    for start in _BEGINNINGS:
        if held[start : start + 8] == _SIGNATURE and start + 15 <= len(held):
            sizes = start + (13 if held[start + 8] < 2 else 9)
            if tuple(held[sizes : sizes + 2]) != (8, 8):
                raise FileFormatError(
                    f"{path}: this HDF5 file writes places and lengths in "
                    f"{held[sizes]} and {held[sizes + 1]} bytes; expected 8 and 8, as "
                    "all programs do that we know. Write it again with h5py."
                )


def _free_space_ends(held: mmap.mmap, start: int) -> bool:
    """Return whether the list of free space among names comes to its end."""
    if start + 32 > len(held):
        return True
    place, names = struct.unpack_from("<QQ", held, start + 16)
    seen = set()
    while place != _LAST and names + place + 16 <= len(held):
        if place in seen:
            return False
        seen.add(place)
        (place,) = struct.unpack_from("<Q", held, names + place)
    return True


def _can_be_walked(held: mmap.mmap, start: int) -> bool:
    """Return whether every step through a collection leads on."""
    if start + _HEAD > len(held):
        return False
    end = start + struct.unpack_from("<Q", held, start + 8)[0]
    place = start + _HEAD
    while place + _HEAD <= min(end, len(held)):
        number, _, size = struct.unpack_from("<HH4xQ", held, place)
        # free space counts its own head, an object does not
        step = size if number == 0 else _HEAD + -(-size // 8) * 8
        if step < _HEAD:
            return False
        place += step
    return True
