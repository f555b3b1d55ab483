"""Texts and names of an HDF5 file, looked at before its library reads them."""

import mmap
import struct
from pathlib import Path
from typing import Any

import numpy as np

# The head of a collection of texts, and of each text in it.
_HEAD = 16
# A place that ends the list of a heap's free space.
_LAST = 1
# How a text of any length is referred to: its length, its collection and its number.
_REFERENCE = np.dtype([("n", "<u4"), ("heap", "<u8"), ("number", "<u4")])
_TEXT = _REFERENCE.itemsize


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
    See :func:`brainlsap.data.hdf_structure.check_structure`.
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
    path = Path(dataset.file.filename)
    if place + size > path.stat().st_size:
        raise ValueError(f"{dataset.name}: its texts lie beyond the end of the file")
    with path.open("rb") as file:
        file.seek(place)
        return file.read(size)


def texts_can_be_walked(
    held: mmap.mmap,
    start: int,
    base: int,  # noqa: ARG001
) -> bool:
    """Return whether every step through a collection of texts leads on.

    The library walks it from object to object, by their sizes; free space of size 0
    lets it stand still, and a size beyond the end may lead it back.

    Parameters
    ----------
    held : mmap.mmap
        The file.
    start : int
        Where the collection begins.
    base : int
        Where the file begins; not used, a collection is one piece.

    Returns
    -------
    bool
    """
    if start + _HEAD > len(held):
        return False
    end = start + struct.unpack_from("<Q", held, start + 8)[0]
    place = start + _HEAD
    while place + _HEAD <= min(end, len(held)):
        number, _, size = struct.unpack_from("<HH4xQ", held, place)
        # free space counts its own head, an object does not
        step = size if number == 0 else _HEAD + -(-size // 8) * 8
        # the library counts in 64 bits: a step past the end may lead back
        if not _HEAD <= step <= end - place:
            return False
        place += step
    return True


def free_space_ends(held: mmap.mmap, start: int, base: int) -> bool:
    """Return whether the list of free space among the names of a group ends.

    Parameters
    ----------
    held : mmap.mmap
        The file.
    start : int
        Where the heap of names begins.
    base : int
        Where the file begins; places count from there.

    Returns
    -------
    bool
    """
    if start + 32 > len(held):
        return True
    place, names = struct.unpack_from("<QQ", held, start + 16)
    seen = set()
    while place != _LAST and base + names + place + 16 <= len(held):
        if place in seen:
            return False
        seen.add(place)
        (place,) = struct.unpack_from("<Q", held, base + names + place)
    return True
