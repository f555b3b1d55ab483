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
# How a text of any length is referred to: its length, its collection and its number.
_REFERENCE = np.dtype([("n", "<u4"), ("heap", "<u8"), ("number", "<u4")])
_TEXT = _REFERENCE.itemsize


def check_heaps(path: str | Path) -> None:
    """Refuse a file whose collections of texts would keep HDF5 busy for ever.

    The library walks a collection from object to object, by their sizes; free space
    of size 0 lets it stand still (HDF5 1.14).

    Parameters
    ----------
    path : str or Path
        An HDF5 file.

    Raises
    ------
    FileFormatError
        Where a collection is damaged.

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
        start = held.find(_MARK)
        while start >= 0:
            if not _can_be_walked(held, start):
                raise FileFormatError(
                    f"{path}: a collection of texts in this HDF5 file is damaged "
                    f"(byte {start}). Write or copy the file again."
                )
            start = held.find(_MARK, start + 1)


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
