"""Read streamlines from `.trx` files: a zip archive of arrays.

`header.json` counts streamlines and vertices, `positions.3.<type>` holds the points
(RAS, mm) and `offsets.<type>` the first of every streamline. The archive is read as a
stream: nothing is unpacked beside it, no right to write is needed, and the checksums
in it are compared.
"""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from brainlsap.data.streamline_blocks import (
    StreamlineBlock,
    check_count,
    check_points,
    cut_short,
)

ZIP_ERRORS = (zipfile.BadZipFile, NotImplementedError, RuntimeError, AttributeError)
_KINDS = {
    "positions": ("float16", "float32", "float64"),
    "offsets": ("uint32", "uint64", "int32", "int64"),
}


def read_trx(path: Path, block: int) -> Iterator[StreamlineBlock]:
    """Read the streamlines of a `.trx` file, block by block.

    Parameters
    ----------
    path : Path
        Of the file.
    block : int
        About how many points are read at once.

    Yields
    ------
    StreamlineBlock

    Raises
    ------
    FileFormatError
        Where the file is no such archive, or is damaged.
    """
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("header.json"))
        n_points, n_lines = header["NB_VERTICES"], header["NB_STREAMLINES"]
        if n_lines == 0:
            return
        offsets = _read_offsets(archive, path, n_lines, n_points)
        name, kind = _find(archive, path, "positions")
        size = archive.getinfo(name).file_size
        if size != 3 * kind.itemsize * n_points:
            raise cut_short(path, f"{n_points} points expected, {size} bytes found")
        first = 0
        with archive.open(name) as stream:
            while first < n_lines:
                place = np.searchsorted(offsets, offsets[first] + block, side="right")
                last = min(max(int(place) - 1, first + 1), n_lines)
                n_here = int(offsets[last] - offsets[first])
                data = stream.read(3 * kind.itemsize * n_here)
                points = np.frombuffer(data, dtype=kind).reshape(-1, 3)
                with np.errstate(over="ignore"):  # infinite is refused
                    points = points.astype(np.float32)
                check_points(path, points)
                here = offsets[first : last + 1] - offsets[first]
                yield StreamlineBlock(first, points, here[:-1], here[1:])
                first = last
            stream.read()  # the checksum is compared at the very end


def _find(
    archive: zipfile.ZipFile, path: Path, what: str
) -> tuple[str, np.dtype[np.generic]]:
    """Return the name of an array in the archive, and its type."""
    for name in archive.namelist():
        base, _, kind = name.rpartition(".")
        if base.split(".")[0] == what and kind in _KINDS[what]:
            return name, np.dtype(kind).newbyteorder("<")
    raise cut_short(path, f"no {what}.{'|'.join(_KINDS[what])} in the archive")


def _read_offsets(
    archive: zipfile.ZipFile, path: Path, n_lines: int, n_points: int
) -> np.ndarray:
    name, kind = _find(archive, path, "offsets")
    offsets = np.frombuffer(archive.read(name), dtype=kind).astype(np.int64)
    if len(offsets) == n_lines:  # early files leave the last one out
        offsets = np.append(offsets, n_points)
    check_count(path, n_lines, len(offsets) - 1)
    if offsets[0] != 0 or offsets[-1] != n_points or (np.diff(offsets) < 0).any():
        raise cut_short(path, f"the offsets do not lead from 0 to {n_points} points")
    return offsets
