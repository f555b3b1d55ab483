"""Read streamlines block by block from `.tck`, `.trk` (also `.gz`) and `.trx` files.

nibabel reads the headers of the first two. Points are read in blocks of a few
megabytes, so that a tractogram may be larger than memory.
"""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from brainlsap.data.streamline_blocks import (
    StreamlineBlock,
    check_count,
    check_points,
    cut_short,
)
from brainlsap.data.trx_files import ZIP_ERRORS, read_trx
from brainlsap.data.volume_files import DECODING_ERRORS
from brainlsap.exceptions import FileFormatError

# Points read at once.
BLOCK = 2**20


def read_streamlines(path: str | Path, block: int = BLOCK) -> Iterator[StreamlineBlock]:
    """Read the streamlines of a file, block by block.

    Parameters
    ----------
    path : str or Path
        `.tck`, `.trk`, `.trk.gz` or `.trx`.
    block : int
        About how many points are read at once.

    Yields
    ------
    StreamlineBlock

    Raises
    ------
    FileFormatError
        Where the file is no such file, or is cut short or changed.
    """
    path = Path(path)
    suffix = "".join(path.suffixes[-2:]).lower()
    name = next((known for known in FORMATS if suffix.endswith(known)), None)
    if name is None:
        raise FileFormatError(
            f"{path}: tractograms are read from {', '.join(FORMATS)} files, got "
            f"{path.suffix or 'a name without suffix'}."
        )
    if not path.is_file():
        raise FileFormatError(f"{path}: no such file; expected a tractogram.")
    try:
        yield from FORMATS[name](path, block)
    except FileFormatError:
        raise
    except (*DECODING_ERRORS, *ZIP_ERRORS) as error:
        raise FileFormatError(
            f"{path}: cannot be read as {name}: {error}. The file may be cut short."
        ) from error


def _open_header(path: Path) -> dict[str, Any]:
    """Return the header of a `.tck` or `.trk`, as nibabel reads it."""
    import nibabel
    from nibabel.streamlines.tractogram_file import DataError, HeaderError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return dict(nibabel.streamlines.load(path, lazy_load=True).header)
    except (DataError, HeaderError) as error:
        raise FileFormatError(f"{path}: the header is wrong: {error}.") from error


def _read_tck(path: Path, block: int) -> Iterator[StreamlineBlock]:
    header = _open_header(path)
    kind = np.dtype(header["_dtype"]).newbyteorder(header["endianness"])
    first, rest = 0, np.empty((0, 3), dtype=kind)
    with path.open("rb") as file:
        file.seek(int(header["_offset_data"]))
        while True:
            numbers = np.fromfile(file, dtype=kind, count=3 * block)
            whole = len(numbers) // 3
            points = np.concatenate([rest, numbers[: 3 * whole].reshape(-1, 3)])
            is_end = np.isinf(points[:, 0])
            over = bool(is_end.any())
            if over:
                points = points[: int(np.argmax(is_end))]
            elif len(numbers) < 3 * block:
                raise cut_short(path, "the mark at the end is missing")
            ends = np.flatnonzero(np.isnan(points[:, 0]))
            _check_tck(path, points, len(ends), over)
            if len(ends):
                starts = np.concatenate([[0], ends[:-1] + 1])
                yield StreamlineBlock(first, points[: ends[-1]], starts, ends)
                first += len(ends)
                points = points[ends[-1] + 1 :]
            if over:
                break
            rest = points
    check_count(path, int(header.get("count") or 0), first)


def _check_tck(path: Path, points: np.ndarray, n_ends: int, over: bool) -> None:
    """Raise where a number that is none is no separator, or the last one is missing."""
    if 3 * n_ends != points.size - np.count_nonzero(np.isfinite(points)):
        raise cut_short(path, "a point has coordinates that are no numbers")
    if over and len(points) and np.isfinite(points[-1, 0]):
        raise cut_short(path, "the last streamline has no end")


def _read_trk(path: Path, block: int) -> Iterator[StreamlineBlock]:
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
        while True:
            read = file.read(4 * width * block)
            if len(read) % 4:
                raise cut_short(path, "the last number is incomplete")
            words = np.concatenate([rest, np.frombuffer(read, dtype=word)])
            heads, stop = _walk(path, words, width, behind)
            if not read:
                if len(words):
                    raise cut_short(path, "the last streamline is incomplete")
                break
            if len(heads):
                points, starts, stops = _unpack(words[:stop], heads, width, behind)
                check_points(path, points)
                # as single precision, which is what nibabel and MRtrix would write
                with np.errstate(over="ignore"):
                    there = apply_affine(affine, points).astype(np.float32)
                yield StreamlineBlock(first, there, starts, stops)
                first += len(heads)
            rest = words[stop:]
    check_count(path, int(header["nb_streamlines"]), first)


def _walk(
    path: Path, words: np.ndarray, width: int, behind: int
) -> tuple[np.ndarray, int]:
    """Return where the counts of whole streamlines stand, and where the last ends."""
    heads, place, end = [], 0, len(words)
    numbers = words.data if words.dtype.isnative else words.astype("=i4").data
    while place < end:
        n = numbers[place]
        if n < 0:
            raise cut_short(path, f"a streamline of {n} points")
        following = place + 1 + n * width + behind
        if following > end:
            break
        heads.append(place)
        place = following
    return np.array(heads, dtype=np.intp), place


def _unpack(
    words: np.ndarray, heads: np.ndarray, width: int, behind: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points, and the rows in which streamlines start and stop."""
    n_points = words[heads].astype(np.intp)
    is_point = np.ones(len(words), dtype=bool)
    is_point[heads] = False
    for k in range(behind):
        is_point[heads + 1 + n_points * width + k] = False
    floats = words.view(words.dtype.str.replace("i4", "f4"))
    points = floats[is_point].reshape(-1, width)[:, :3]
    stops = np.cumsum(n_points)
    return points, stops - n_points, stops


FORMATS: dict[str, Callable[[Path, int], Iterator[StreamlineBlock]]] = {
    ".tck": _read_tck,
    ".trk": _read_trk,
    ".trk.gz": _read_trk,
    ".trx": read_trx,
}
