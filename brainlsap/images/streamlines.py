"""Streamlines, block by block, of `.tck`, `.trk` (also `.gz`) and `.trx` files.

nibabel reads the headers of the first two; a `.trx` is a zip archive of arrays, read as
a stream. Points are read in blocks of a few megabytes, so that a tractogram may be
larger than memory. Readers raise ValueError where a file is cut short or changed.
"""

import json
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from brainlsap.data.tables import reading
from brainlsap.exceptions import FileFormatError

# Points read at once.
BLOCK = 2**20
_TRX_KINDS = {
    "positions": ("float16", "float32", "float64"),
    "offsets": ("uint32", "uint64", "int32", "int64"),
}


class StreamlineBlock(NamedTuple):
    """Some streamlines of a file, one after the other."""

    first: int  # number of the first in its file, from 0
    points: np.ndarray  # (n_points, 3) RAS in mm; rows of none may stand between
    starts: np.ndarray  # (n_streamlines,) row of the first point
    stops: np.ndarray  # (n_streamlines,) row behind the last point

    @property
    def lengths(self) -> np.ndarray:
        """Length of every streamline in mm; 0 for a single point or none."""
        points = self.points.astype(np.float64)
        steps = np.zeros(len(points) + 2)
        with np.errstate(invalid="ignore"):  # beside marks of NaN and infinity
            steps[1:-2] = np.sqrt((np.diff(points, axis=0) ** 2).sum(axis=1))
        # each by itself: a running sum would lose all that follow a very long one
        ends = np.column_stack([self.starts + 1, self.stops]).ravel()
        sums = np.add.reduceat(steps, ends)[::2] if len(ends) else np.zeros(0)
        return np.where(self.stops - self.starts > 1, sums, 0.0)


def read_streamlines(path: str | Path, block: int = 0) -> Iterator[StreamlineBlock]:
    """Read the streamlines of a file, about `block` points at once (0: `BLOCK`).

    Raises FileFormatError where it is no such file, or is cut short or changed.
    """
    path = Path(path)
    suffix = "".join(path.suffixes[-2:]).lower()
    name = next((known for known in FORMATS if suffix.endswith(known)), None)
    if name is None:
        raise FileFormatError(
            f"{path}: tractograms are read from {', '.join(FORMATS)} files, got "
            f"{path.suffix or 'a name without suffix'}."
        )
    with reading(path, "a tractogram"):
        yield from FORMATS[name](path, block or BLOCK)


def _check_count(said: int, found: int) -> None:
    if said and said != found:  # 0 is no count
        raise ValueError(f"the header says {said} streamlines, found {found}")


def _check_points(points: np.ndarray) -> None:
    if not np.isfinite(points).all():
        raise ValueError("a point has coordinates that are no numbers")


def _open_header(path: Path) -> dict[str, Any]:
    """Return the header of a `.tck` or `.trk`, as nibabel reads it."""
    import nibabel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dict(nibabel.streamlines.load(path, lazy_load=True).header)


def _read_tck(path: Path, block: int) -> Iterator[StreamlineBlock]:
    """Read points in rows; NaN ends a streamline, infinity the file."""
    header = _open_header(path)
    kind = np.dtype(header["_dtype"]).newbyteorder(header["endianness"])
    first, rest = 0, np.empty((0, 3), dtype=kind)
    with path.open("rb") as file:
        file.seek(int(header["_offset_data"]))
        over = False
        while not over:
            numbers = np.fromfile(file, dtype=kind, count=3 * block)
            whole = len(numbers) // 3
            points = np.concatenate([rest, numbers[: 3 * whole].reshape(-1, 3)])
            is_end = np.isinf(points[:, 0])
            over = bool(is_end.any())
            if over:
                points = points[: int(np.argmax(is_end))]
            elif len(numbers) < 3 * block:
                raise ValueError("the mark at the end is missing")
            is_gap = np.isnan(points[:, 0])
            ends = np.flatnonzero(is_gap)
            if np.count_nonzero(np.isfinite(points)) != points.size - 3 * len(ends):
                raise ValueError("a point has coordinates that are no numbers")
            if over and len(points) and not is_gap[-1]:
                raise ValueError("the last streamline has no end")
            if len(ends):
                starts = np.concatenate([[0], ends[:-1] + 1])
                yield StreamlineBlock(first, points[: ends[-1]], starts, ends)
                first += len(ends)
                points = points[ends[-1] + 1 :]
            rest = points
    _check_count(int(header.get("count") or 0), first)


def _read_trk(path: Path, block: int) -> Iterator[StreamlineBlock]:
    """Read counts, each with points, their scalars, and properties behind them."""
    from nibabel.affines import apply_affine
    from nibabel.openers import Opener
    from nibabel.streamlines.trk import get_affine_trackvis_to_rasmm

    header = _open_header(path)
    affine = get_affine_trackvis_to_rasmm(header)
    word = np.dtype(header["endianness"] + "i4")
    width = 3 + int(header["nb_scalars_per_point"])
    behind = int(header["nb_properties_per_streamline"])
    first, rest = 0, np.empty(0, dtype=word)
    with Opener(str(path)) as file:
        file.seek(int(header["_offset_data"]))
        while read := file.read(4 * width * block):
            words = np.concatenate([rest, np.frombuffer(read, dtype=word)])
            heads, stop = _find_counts(words, width, behind)
            if len(heads):
                # Only the first three of each point's numbers are coordinates.
                n_points = words[heads].astype(np.intp)
                is_point = np.ones(stop, dtype=bool)
                is_point[heads] = False
                for k in range(behind):
                    is_point[heads + 1 + n_points * width + k] = False
                floats = words[:stop].view(word.str.replace("i4", "f4"))
                points = floats[is_point].reshape(-1, width)[:, :3]
                _check_points(points)
                # as single precision, which is what nibabel and MRtrix would write
                there = apply_affine(affine, points).astype(np.float32)
                stops = np.cumsum(n_points)
                yield StreamlineBlock(first, there, stops - n_points, stops)
                first += len(heads)
            rest = words[stop:]
    if len(rest):
        raise ValueError("the last streamline is incomplete")
    _check_count(int(header["nb_streamlines"]), first)


def _find_counts(words: np.ndarray, width: int, behind: int) -> tuple[np.ndarray, int]:
    """Return where the counts of whole streamlines stand, and where the last ends."""
    heads, place, end = [], 0, len(words)
    numbers = words.data if words.dtype.isnative else words.astype("=i4").data
    while place < end:
        n = numbers[place]
        if n < 0:
            raise ValueError(f"a streamline of {n} points")
        following = place + 1 + n * width + behind
        if following > end:
            break
        heads.append(place)
        place = following
    return np.array(heads, dtype=np.intp), place


def _read_trx(path: Path, block: int) -> Iterator[StreamlineBlock]:
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
        first = 0
        with archive.open(name) as stream:
            while first < n_lines:
                place = np.searchsorted(offsets, offsets[first] + block, side="right")
                last = min(max(int(place) - 1, first + 1), n_lines)
                n_here = int(offsets[last] - offsets[first])
                data = stream.read(3 * kind.itemsize * n_here)
                points = np.frombuffer(data, dtype=kind).reshape(-1, 3)
                points = points.astype(np.float32)
                _check_points(points)
                here = offsets[first : last + 1] - offsets[first]
                yield StreamlineBlock(first, points, here[:-1], here[1:])
                first = last
            stream.read()  # the checksum is compared at the very end


def _find_array(
    archive: zipfile.ZipFile, what: str
) -> tuple[str, np.dtype[np.generic]]:
    """Return the name of an array in the archive, and its type."""
    for name in archive.namelist():
        base, _, kind = name.rpartition(".")
        if base.split(".")[0] == what and kind in _TRX_KINDS[what]:
            return name, np.dtype(kind).newbyteorder("<")
    raise ValueError(f"no {what}.{'|'.join(_TRX_KINDS[what])} in the archive")


FORMATS: dict[str, Callable[[Path, int], Iterator[StreamlineBlock]]] = {
    ".tck": _read_tck,
    ".trk": _read_trk,
    ".trk.gz": _read_trk,
    ".trx": _read_trx,
}


def read_streamline_weights(weights: str | Path | np.ndarray) -> np.ndarray:
    """Read one weight for every streamline, such as the text of MRtrix's `tcksift2`."""
    where, values = "streamline_weights", weights
    if isinstance(weights, str | Path):
        where = str(weights)
        with reading(where, "one number for each streamline"):
            values = np.loadtxt(where)
    values = np.asarray(values, dtype=np.float64).ravel()
    wrong = np.flatnonzero(~(values >= 0) | np.isinf(values))
    if wrong.size:
        raise FileFormatError(
            f"{where}: weights must be finite and not negative; number {wrong[0] + 1} "
            f"is {values[wrong[0]]}."
        )
    return values
