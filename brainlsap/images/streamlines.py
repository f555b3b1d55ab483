"""Read streamlines block by block from `.tck`, `.trk` (also `.gz`) and `.trx` files.

nibabel reads `.trk` and the headers of `.tck`; a `.trx` is a zip archive of arrays.
Points come in blocks of a few megabytes, so a `.tck` or `.trx` may be larger than
memory. Readers raise ValueError if a file is truncated or inconsistent.
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
from brainlsap.images.volumes import ImageGrid

# Number of points that are read at once.
BLOCK_POINTS = 2**20


class StreamlineBlock(NamedTuple):
    """Consecutive streamlines of a file."""

    points: (
        np.ndarray
    )  # (n_points, 3) RAS in mm; rows between streamlines may be unused
    starts: np.ndarray  # (n_streamlines,) row of the first point
    stops: np.ndarray  # (n_streamlines,) row after the last point

    @property
    def lengths(self) -> np.ndarray:
        """Length of every streamline in mm; 0 for a single point or none."""
        points = self.points.astype(np.float64)
        step_lengths = np.zeros(len(points) + 2)
        with np.errstate(invalid="ignore"):  # separators between streamlines are NaN
            step_lengths[1:-2] = np.sqrt((np.diff(points, axis=0) ** 2).sum(axis=1))
        # Sum each streamline on its own: after a very long one, a running sum would
        # lose the precision of those that follow.
        point_bounds = np.column_stack([self.starts + 1, self.stops]).ravel()
        step_sums = np.zeros(0)
        if len(point_bounds):
            step_sums = np.add.reduceat(step_lengths, point_bounds)[::2]
        return np.where(self.stops - self.starts > 1, step_sums, 0.0)


def read_streamlines(path: str | Path) -> Iterator[StreamlineBlock]:
    """Read the streamlines of a file, about `BLOCK_POINTS` points at once.

    Raises FileFormatError if the format is unknown, or the file truncated or damaged.
    """
    lower_name = str(path).lower()
    file_suffix = next(
        (
            file_suffix
            for file_suffix in TRACTOGRAM_FORMATS
            if lower_name.endswith(file_suffix)
        ),
        None,
    )
    if file_suffix is None:
        raise FileFormatError(
            f"expected {', '.join(TRACTOGRAM_FORMATS)} files, got {Path(path).suffix}.",
            path=path,
        )
    with reading(path, "a tractogram"):
        for points, start_rows, stop_rows in TRACTOGRAM_FORMATS[file_suffix](
            Path(path)
        ):
            n_coordinates = 3 * (stop_rows - start_rows).sum()
            if np.count_nonzero(np.isfinite(points)) != n_coordinates:
                raise ValueError("a point has coordinates that are not numbers")
            yield StreamlineBlock(np.asarray(points), start_rows, stop_rows)


def read_reference_grid(path: str | Path) -> ImageGrid | None:
    """Return the grid of the tractogram's reference image, from the header.

    None if the format has no such header (`.tck`) or it was not filled in. Raises
    FileFormatError if the header contradicts itself.
    """
    lower_name = str(path).lower()
    if not lower_name.endswith((".trk", ".trk.gz", ".trx")):
        return None
    with reading(path, "a tractogram"):
        header_sizes = None
        if lower_name.endswith(".trx"):
            with zipfile.ZipFile(path) as trx_archive:
                header = json.loads(trx_archive.read("header.json"))
            grid_shape, affine = header.get("DIMENSIONS"), header.get("VOXEL_TO_RASMM")
            if grid_shape is None or affine is None:
                return None
        else:
            header = _open_header(Path(path))
            grid_shape, affine = header["dimensions"], header["voxel_to_rasmm"]
            header_sizes = np.asarray(header["voxel_sizes"], dtype=float)
        affine = np.asarray(affine, dtype=np.float64)
        grid_shape = tuple(int(axis_size) for axis_size in grid_shape)
        # nibabel and others write an identity or sizes of 1 if the image is unknown.
        if np.array_equal(affine, np.eye(4)) or min(grid_shape) < 2:
            return None
        if not np.isfinite(affine).all() or abs(np.linalg.det(affine)) < 1e-12:
            raise ValueError("the affine of its header cannot be inverted")
        affine_sizes = voxel_sizes(affine)
        if header_sizes is not None and not np.allclose(
            header_sizes, affine_sizes, rtol=0.01, atol=1e-3
        ):
            raise ValueError(
                f"the header says voxels of {header_sizes.tolist()} mm, and its affine "
                f"of {affine_sizes.round(3).tolist()}"
            )
    return ImageGrid(grid_shape, affine)


def _check_count(header_count: int, file_count: int, cause_hint: str = "") -> None:
    if header_count and header_count != file_count:  # 0 means not counted
        raise ValueError(
            f"the header says {header_count} streamlines, found "
            f"{file_count}{cause_hint}"
        )


def _iter_blocks(streamline_offsets: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield the rows of about `BLOCK_POINTS` points, and the offsets within them.

    Streamline i of a block has the rows from offset i to offset i + 1.
    """
    first_line = 0
    while first_line < len(streamline_offsets) - 1:
        max_row = streamline_offsets[first_line] + BLOCK_POINTS
        n_fitting = int(np.searchsorted(streamline_offsets, max_row, side="right"))
        stop_line = max(n_fitting - 1, first_line + 1)
        block_offsets = streamline_offsets[first_line : stop_line + 1]
        point_rows = slice(block_offsets[0], block_offsets[-1])
        yield point_rows, block_offsets - block_offsets[0]
        first_line = stop_line


def _open_header(path: Path) -> dict[str, Any]:
    """Return the header of a `.tck` or `.trk` as nibabel reads it."""
    import nibabel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dict(nibabel.streamlines.load(path, lazy_load=True).header)


BlockArrays = Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]


def _read_tck(path: Path) -> BlockArrays:
    """Read rows of points; a row of NaN ends a streamline, of infinity the file."""
    header = _open_header(path)
    dtype = np.dtype(header["_dtype"]).newbyteorder(header["endianness"])
    file_numbers = np.memmap(path, dtype, "r", int(header["_offset_data"]))
    points = file_numbers[: len(file_numbers) // 3 * 3].reshape(-1, 3)
    separator_rows = np.flatnonzero(~np.isfinite(points[:, 0]))
    is_file_end = np.isinf(points[separator_rows, 0])
    if not is_file_end.any():
        raise ValueError("the mark at the end is missing")
    n_streamlines = int(np.argmax(is_file_end))
    streamline_offsets = np.append(0, separator_rows[:n_streamlines] + 1)
    if separator_rows[n_streamlines] != streamline_offsets[-1]:
        raise ValueError("the last streamline has no end")
    cause_hint = " (a point that is NaN ends a streamline)"
    _check_count(int(header.get("count") or 0), n_streamlines, cause_hint)
    for point_rows, line_offsets in _iter_blocks(streamline_offsets):
        yield points[point_rows], line_offsets[:-1], line_offsets[1:] - 1


def _read_trk(path: Path) -> BlockArrays:
    """Read points; nibabel transforms them from the image's corner to RAS."""
    import nibabel

    header_count = int(_open_header(path)["nb_streamlines"])
    streamlines = nibabel.streamlines.load(path).streamlines
    _check_count(header_count, len(streamlines))
    points = streamlines.get_data()
    streamline_offsets = np.cumsum([0, *map(len, streamlines)])
    for point_rows, line_offsets in _iter_blocks(streamline_offsets):
        yield points[point_rows], line_offsets[:-1], line_offsets[1:]


def _read_trx(path: Path) -> BlockArrays:
    """Read points, and the first row of each streamline, from a zip archive."""
    with zipfile.ZipFile(path) as trx_archive:
        header = json.loads(trx_archive.read("header.json"))
        n_points = header["NB_VERTICES"]
        n_streamlines = header["NB_STREAMLINES"]
        if n_streamlines == 0:
            return
        array_name, dtype = _find_array(trx_archive, "offsets")
        streamline_offsets = np.frombuffer(
            trx_archive.read(array_name), dtype=dtype
        ).astype(np.int64)
        if len(streamline_offsets) == n_streamlines:  # early files omit the last offset
            streamline_offsets = np.append(streamline_offsets, n_points)
        _check_count(n_streamlines, len(streamline_offsets) - 1)
        if (
            streamline_offsets[0] != 0
            or streamline_offsets[-1] != n_points
            or (np.diff(streamline_offsets) < 0).any()
        ):
            raise ValueError(f"the offsets do not lead from 0 to {n_points} points")
        array_name, dtype = _find_array(trx_archive, "positions")
        point_bytes = 3 * dtype.itemsize
        n_bytes = trx_archive.getinfo(array_name).file_size
        if n_bytes != point_bytes * n_points:
            raise ValueError(f"{n_points} points expected, {n_bytes} bytes found")
        with trx_archive.open(array_name) as byte_stream:
            for _, line_offsets in _iter_blocks(streamline_offsets):
                point_data = byte_stream.read(point_bytes * int(line_offsets[-1]))
                points = np.frombuffer(point_data, dtype=dtype).reshape(-1, 3)
                yield points.astype(np.float32), line_offsets[:-1], line_offsets[1:]
            byte_stream.read()  # zipfile compares the checksum at the end of the stream


def _find_array(
    trx_archive: zipfile.ZipFile, array_name: str
) -> tuple[str, np.dtype[Any]]:
    """Return the file name of an array in the archive, and its type."""
    for file_name in trx_archive.namelist():
        array_stem, _, type_name = file_name.rpartition(".")
        if array_stem.split(".")[0] == array_name:
            return file_name, np.dtype(type_name).newbyteorder("<")
    raise ValueError(f"no {array_name} in the archive")


TRACTOGRAM_FORMATS: dict[str, Callable[[Path], BlockArrays]] = {
    ".tck": _read_tck,
    ".trk": _read_trk,
    ".trk.gz": _read_trk,
    ".trx": _read_trx,
}


def read_streamline_weights(weights: str | Path | np.ndarray) -> np.ndarray:
    """Read one weight per streamline, for example the text of MRtrix's `tcksift2`."""
    is_file = isinstance(weights, str | Path)
    weights_source = str(weights) if is_file else "streamline_weights"
    with reading(weights_source, "one number for each streamline"):
        weight_values = np.loadtxt(weights_source) if is_file else np.asarray(weights)
        weight_values = weight_values.astype(np.float64).ravel()
        is_valid = (weight_values >= 0) & (weight_values < np.inf)
        if not is_valid.all():
            invalid_value = weight_values[~is_valid][0]
            raise ValueError(
                f"weights must be finite, not negative; one is {invalid_value}"
            )
    return weight_values
