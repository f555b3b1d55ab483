"""Streamlines, block by block, of `.tck`, `.trk` (also `.gz`) and `.trx` files.

nibabel reads `.trk`, and headers of `.tck`; a `.trx` is a zip archive of arrays. Points
come in blocks of a few megabytes, so that a `.tck` or `.trx` may be larger than memory.
Readers raise ValueError where a file is cut short or changed.
"""

import json
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from nibabel.affines import voxel_sizes

from brainlsap.exceptions import FileFormatError, reading
from brainlsap.images.space import ImageGrid

# Points read at once.
BLOCK = 2**20


class StreamlineBlock(NamedTuple):
    """Some streamlines of a file, one after the other."""

    points: np.ndarray  # (n_points, 3) RAS in mm; rows of none may stand between
    starts: np.ndarray  # (n_streamlines,) row of the first point
    stops: np.ndarray  # (n_streamlines,) row behind the last point

    @property
    def lengths(self) -> np.ndarray:
        """Length of every streamline in mm; 0 for a single point or none."""
        points = self.points.astype(np.float64)
        steps = np.zeros(len(points) + 2)
        with np.errstate(invalid="ignore"):  # beside marks of NaN
            steps[1:-2] = np.sqrt((np.diff(points, axis=0) ** 2).sum(axis=1))
        # each by itself: a running sum would lose all that follow a very long one
        ends = np.column_stack([self.starts + 1, self.stops]).ravel()
        sums = np.add.reduceat(steps, ends)[::2] if len(ends) else np.zeros(0)
        return np.where(self.stops - self.starts > 1, sums, 0.0)


def read_streamlines(path: str | Path) -> Iterator[StreamlineBlock]:
    """Read the streamlines of a file, about `BLOCK` points at once.

    Raises FileFormatError where it is no such file, or is cut short or changed.
    """
    name = next((end for end in FORMATS if str(path).lower().endswith(end)), None)
    if name is None:
        raise FileFormatError(
            f"expected {', '.join(FORMATS)} files, got {Path(path).suffix}.", path=path
        )
    with reading(path, "a tractogram"):
        for points, starts, stops in FORMATS[name](Path(path)):
            if np.count_nonzero(np.isfinite(points)) != 3 * (stops - starts).sum():
                raise ValueError("a point has coordinates that are no numbers")
            yield StreamlineBlock(np.asarray(points), starts, stops)


def read_grid(path: str | Path) -> ImageGrid | None:
    """Return the grid of the image that a tractogram was made in, by its header.

    None where the format has no such header (`.tck`), or it was not filled in. Raises
    FileFormatError where the header contradicts itself.
    """
    name = str(path).lower()
    if not name.endswith((".trk", ".trk.gz", ".trx")):
        return None
    with reading(path, "a tractogram"):
        sizes = None
        if name.endswith(".trx"):
            with zipfile.ZipFile(path) as archive:
                header = json.loads(archive.read("header.json"))
            shape, affine = header.get("DIMENSIONS"), header.get("VOXEL_TO_RASMM")
            if shape is None or affine is None:
                return None
        else:
            header = _open_header(Path(path))
            shape, affine = header["dimensions"], header["voxel_to_rasmm"]
            sizes = np.asarray(header["voxel_sizes"], dtype=float)
        affine = np.asarray(affine, dtype=np.float64)
        shape = tuple(int(size) for size in shape)
        # what nibabel and others write where nothing is known
        if np.array_equal(affine, np.eye(4)) or min(shape) < 2:
            return None
        if not np.isfinite(affine).all() or abs(np.linalg.det(affine)) < 1e-12:
            raise ValueError("the affine of its header cannot be inverted")
        if sizes is not None and not np.allclose(
            sizes, voxel_sizes(affine), rtol=0.01, atol=1e-3
        ):
            raise ValueError(
                f"the header says voxels of {sizes.tolist()} mm, and its affine of "
                f"{voxel_sizes(affine).round(3).tolist()}"
            )
    return ImageGrid(shape, affine)


def _check_count(said: int, found: int, hint: str = "") -> None:
    if said and said != found:  # 0 is no count
        raise ValueError(f"the header says {said} streamlines, found {found}{hint}")


def _cut(offsets: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield rows of about `BLOCK` points, and where in them streamlines begin, end."""
    first = 0
    while first < len(offsets) - 1:
        behind = np.searchsorted(offsets, offsets[first] + BLOCK, side="right")
        last = max(int(behind) - 1, first + 1)
        cut = offsets[first : last + 1]
        yield slice(cut[0], cut[-1]), cut - cut[0]
        first = last


def _open_header(path: Path) -> dict[str, Any]:
    """Return the header of a `.tck` or `.trk`, as nibabel reads it."""
    import nibabel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dict(nibabel.streamlines.load(path, lazy_load=True).header)


Parts = Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]


def _read_tck(path: Path) -> Parts:
    """Read points in rows; NaN ends a streamline, infinity the file."""
    header = _open_header(path)
    kind = np.dtype(header["_dtype"]).newbyteorder(header["endianness"])
    numbers = np.memmap(path, kind, "r", int(header["_offset_data"]))
    points = numbers[: len(numbers) // 3 * 3].reshape(-1, 3)
    marks = np.flatnonzero(~np.isfinite(points[:, 0]))
    is_last = np.isinf(points[marks, 0])
    if not is_last.any():
        raise ValueError("the mark at the end is missing")
    n_lines = int(np.argmax(is_last))
    offsets = np.append(0, marks[:n_lines] + 1)
    if marks[n_lines] != offsets[-1]:
        raise ValueError("the last streamline has no end")
    hint = " (a point that is NaN ends a streamline)"
    _check_count(int(header.get("count") or 0), n_lines, hint)
    for rows, ends in _cut(offsets):
        yield points[rows], ends[:-1], ends[1:] - 1


def _read_trk(path: Path) -> Parts:
    """Read points as nibabel moves them from the image's corner to RAS."""
    import nibabel

    said = int(_open_header(path)["nb_streamlines"])
    lines = nibabel.streamlines.load(path).streamlines
    _check_count(said, len(lines))
    points, offsets = lines.get_data(), np.cumsum([0, *map(len, lines)])
    for rows, ends in _cut(offsets):
        yield points[rows], ends[:-1], ends[1:]


def _read_trx(path: Path) -> Parts:
    """Read arrays in a zip archive: points, and the first of every streamline."""
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("header.json"))
        n_points, n_lines = header["NB_VERTICES"], header["NB_STREAMLINES"]
        if n_lines == 0:
            return
        name, kind = _find_array(archive, "offsets")
        offsets = np.frombuffer(archive.read(name), dtype=kind).astype(np.int64)
        if len(offsets) == n_lines:  # early files leave the last one out
            offsets = np.append(offsets, n_points)
        _check_count(n_lines, len(offsets) - 1)
        if offsets[0] != 0 or offsets[-1] != n_points or (np.diff(offsets) < 0).any():
            raise ValueError(f"the offsets do not lead from 0 to {n_points} points")
        name, kind = _find_array(archive, "positions")
        size = archive.getinfo(name).file_size
        if size != 3 * kind.itemsize * n_points:
            raise ValueError(f"{n_points} points expected, {size} bytes found")
        with archive.open(name) as stream:
            for _, ends in _cut(offsets):
                data = stream.read(3 * kind.itemsize * int(ends[-1]))
                points = np.frombuffer(data, dtype=kind).reshape(-1, 3)
                yield points.astype(np.float32), ends[:-1], ends[1:]
            stream.read()  # the checksum is compared at the very end


def _find_array(archive: zipfile.ZipFile, what: str) -> tuple[str, np.dtype[Any]]:
    """Return the name of an array in the archive, and its type."""
    for name in archive.namelist():
        base, _, kind = name.rpartition(".")
        if base.split(".")[0] == what:
            return name, np.dtype(kind).newbyteorder("<")
    raise ValueError(f"no {what} in the archive")


FORMATS: dict[str, Callable[[Path], Parts]] = {
    ".tck": _read_tck,
    ".trk": _read_trk,
    ".trk.gz": _read_trk,
    ".trx": _read_trx,
}


def read_streamline_weights(weights: str | Path | np.ndarray) -> np.ndarray:
    """Read one weight for every streamline, such as the text of MRtrix's `tcksift2`."""
    is_file = isinstance(weights, str | Path)
    where = str(weights) if is_file else "streamline_weights"
    with reading(where, "one number for each streamline"):
        values = np.loadtxt(where) if is_file else np.asarray(weights)
        values = values.astype(np.float64).ravel()
        wrong = values[~((values >= 0) & (values < np.inf))]
        if wrong.size:
            raise ValueError(f"weights must be finite, not negative; one is {wrong[0]}")
    return values
