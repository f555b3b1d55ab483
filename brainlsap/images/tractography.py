"""From a tractogram and a parcellation to a connectome.

**Reading.** Streamlines are read block by block from `.tck`, `.trk` (also `.gz`) and
`.trx` files. nibabel reads `.trk` and the headers of `.tck`; a `.trx` is a zip archive
of arrays. Points come in blocks of a few megabytes, so a `.tck` or `.trx` may be larger
than memory. Readers raise ValueError if a file is truncated or inconsistent.

**Assigning.** Each end of a streamline is assigned to a node; the streamline then adds
to the connection between its two nodes. Rules and weights are those of MRtrix 3.0.3's
`tck2connectome`, and every cell of the matrix agrees with it. Two rules assign an end
the code of a node, or 0 for none:

- `end_voxels`: the label of the voxel in which the end lies;
- `radial`: the label of the nearest labelled voxel, by the distance of its centre
  from the end, if that distance is below the radius.

Distances are in mm, and halves are rounded away from 0. Of several voxels at the same
distance, the one that comes first in MRtrix's order of search wins.
"""

import json
import warnings
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from nibabel import orientations
from nibabel.affines import apply_affine, voxel_sizes
from scipy.spatial import cKDTree

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.exceptions import (
    FileFormatError,
    check_at_least,
    check_choice,
    convert_reading_errors,
)
from brainlsap.images.parcellation import (
    NON_ATLAS_NODES,
    LabelImage,
    LabelSource,
    match_label_image,
)
from brainlsap.images.volumes import (
    ImageGrid,
    check_named_spaces,
    check_tractogram_covers_labels,
    make_brain_mask,
    read_image_grid,
    transform_coordinate_arrays,
)
from brainlsap.text import option_text

# Number of points that are read at once.
BLOCK_POINTS = 2**20

ASSIGNMENTS = ("end_voxels", "radial")
WEIGHTS = ("count", "inverse_length", "inverse_node_volume", "mean_length")
# Share of the ends that typically lie in a node if a whole-brain tractogram is in
# register with the parcellation, by assignment rule.
TYPICAL_SHARE_IN_NODES = {"radial": 0.8, "end_voxels": 0.3}
# Share of the ends outside the brain. In register it is 2 % or less (10 % if only the
# cortex is labelled); after a shift of 40 mm or a lost sign it is 24 % or more.
TYPICAL_SHARE_OUTSIDE = 0.1
MAX_SHARE_OUTSIDE = 0.2
MIN_SHARE_IN_NODES = 0.05
# With fewer ends than this, placement is not checked.
MIN_ENDS = 20
# If all ends lie within a smaller share of the labels' span, the units differ.
MIN_EXTENT_SHARE = 0.12
# Distances that differ by less than this share are compared in MRtrix's own order.
_RELATIVE_TOLERANCE = 1e-9


class StreamlineBlock(NamedTuple):
    """Consecutive streamlines of a file."""

    points: (
        np.ndarray
    )  # (n_points, 3) RAS in mm; rows between streamlines may be unused
    start_rows: np.ndarray  # (n_streamlines,) row of the first point
    stop_rows: np.ndarray  # (n_streamlines,) row after the last point

    @property
    def lengths_mm(self) -> np.ndarray:
        """Length of every streamline in mm; 0 for a single point or none."""
        points = self.points.astype(np.float64)
        step_lengths = np.zeros(len(points) + 2)
        with np.errstate(invalid="ignore"):  # separators between streamlines are NaN
            step_lengths[1:-2] = np.sqrt((np.diff(points, axis=0) ** 2).sum(axis=1))
        # Sum each streamline on its own: after a very long one, a running sum would
        # lose the precision of those that follow.
        point_bounds = np.column_stack([self.start_rows + 1, self.stop_rows]).ravel()
        step_sums = np.zeros(0)
        if len(point_bounds):
            step_sums = np.add.reduceat(step_lengths, point_bounds)[::2]
        return np.where(self.stop_rows - self.start_rows > 1, step_sums, 0.0)


def read_streamlines(path: str | Path) -> Iterator[StreamlineBlock]:
    """Read the streamlines of a file, about `BLOCK_POINTS` points at once.

    Raises FileFormatError if the format is unknown, or the file truncated or damaged.
    """
    lower_path_text = str(path).lower()
    file_suffix = next(
        (
            file_suffix
            for file_suffix in TRACTOGRAM_FORMATS
            if lower_path_text.endswith(file_suffix)
        ),
        None,
    )
    if file_suffix is None:
        raise FileFormatError(
            f"tractograms are read from {', '.join(TRACTOGRAM_FORMATS)} files; got "
            f"{Path(path).suffix}.",
            path=path,
        )
    with convert_reading_errors(path, "a tractogram"):
        for points, start_rows, stop_rows in TRACTOGRAM_FORMATS[file_suffix](
            Path(path)
        ):
            n_expected_coordinates = 3 * (stop_rows - start_rows).sum()
            if np.count_nonzero(np.isfinite(points)) != n_expected_coordinates:
                raise ValueError("the coordinates of a point are not numbers")
            yield StreamlineBlock(np.asarray(points), start_rows, stop_rows)


def read_reference_grid(path: str | Path) -> ImageGrid | None:
    """Return the grid of the tractogram's reference image, from the header.

    None if the format has no such header (`.tck`) or it was not filled in. Raises
    FileFormatError if the header contradicts itself.
    """
    lower_path_text = str(path).lower()
    if not lower_path_text.endswith((".trk", ".trk.gz", ".trx")):
        return None
    with convert_reading_errors(path, "a tractogram"):
        header_voxel_sizes_mm = None
        if lower_path_text.endswith(".trx"):
            with zipfile.ZipFile(path) as trx_archive:
                header = json.loads(trx_archive.read("header.json"))
            grid_shape, affine = header.get("DIMENSIONS"), header.get("VOXEL_TO_RASMM")
            if grid_shape is None or affine is None:
                return None
        else:
            header = _read_header(Path(path))
            grid_shape, affine = header["dimensions"], header["voxel_to_rasmm"]
            header_voxel_sizes_mm = np.asarray(header["voxel_sizes"], dtype=float)
        affine = np.asarray(affine, dtype=np.float64)
        grid_shape = tuple(int(axis_size) for axis_size in grid_shape)
        # nibabel and others write an identity or sizes of 1 if the image is unknown.
        if np.array_equal(affine, np.eye(4)) or min(grid_shape) < 2:
            return None
        if not np.isfinite(affine).all() or abs(np.linalg.det(affine)) < 1e-12:
            raise ValueError("the affine of its header cannot be inverted")
        affine_voxel_sizes_mm = voxel_sizes(affine)
        if header_voxel_sizes_mm is not None and not np.allclose(
            header_voxel_sizes_mm, affine_voxel_sizes_mm, rtol=0.01, atol=1e-3
        ):
            raise ValueError(
                f"the header contains voxel sizes of {header_voxel_sizes_mm.tolist()} "
                f"mm, but its affine has {affine_voxel_sizes_mm.round(3).tolist()}"
            )
    return ImageGrid(grid_shape, affine)


def _check_header_streamline_count(
    n_header_streamlines: int, n_file_streamlines: int, cause_hint: str = ""
) -> None:
    if (
        n_header_streamlines and n_header_streamlines != n_file_streamlines
    ):  # 0 means not counted
        raise ValueError(
            f"the header contains a count of {n_header_streamlines} streamlines, but "
            f"the file contains {n_file_streamlines}{cause_hint}"
        )


def _iter_slices_and_offsets(
    streamline_offsets: np.ndarray,
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield the rows of about `BLOCK_POINTS` points, and the offsets within them.

    Streamline i of a block has the rows from offset i to offset i + 1.
    """
    start_streamline_index = 0
    while start_streamline_index < len(streamline_offsets) - 1:
        max_point_row = streamline_offsets[start_streamline_index] + BLOCK_POINTS
        n_fitting_offsets = int(
            np.searchsorted(streamline_offsets, max_point_row, side="right")
        )
        end_streamline_index = max(n_fitting_offsets - 1, start_streamline_index + 1)
        block_offsets = streamline_offsets[
            start_streamline_index : end_streamline_index + 1
        ]
        point_slice = slice(block_offsets[0], block_offsets[-1])
        yield point_slice, block_offsets - block_offsets[0]
        start_streamline_index = end_streamline_index


def _read_header(path: Path) -> dict[str, Any]:
    """Return the header of a `.tck` or `.trk` as nibabel reads it."""
    import nibabel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dict(nibabel.streamlines.load(path, lazy_load=True).header)


BlockArrayIterator = Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]


def _iter_tck_blocks(path: Path) -> BlockArrayIterator:
    """Read rows of points; a row of NaN ends a streamline, of infinity the file."""
    header = _read_header(path)
    dtype = np.dtype(header["_dtype"]).newbyteorder(header["endianness"])
    stored_numbers = np.memmap(path, dtype, "r", int(header["_offset_data"]))
    points = stored_numbers[: len(stored_numbers) // 3 * 3].reshape(-1, 3)
    separator_rows = np.flatnonzero(~np.isfinite(points[:, 0]))
    file_end_mask = np.isinf(points[separator_rows, 0])
    if not file_end_mask.any():
        raise ValueError(
            "the file does not end with the end mark of its format; it may be "
            "incomplete"
        )
    n_streamlines = int(np.argmax(file_end_mask))
    streamline_offsets = np.append(0, separator_rows[:n_streamlines] + 1)
    if separator_rows[n_streamlines] != streamline_offsets[-1]:
        raise ValueError("the last streamline has no end mark")
    cause_hint = " (a point that is NaN ends a streamline)"
    _check_header_streamline_count(
        int(header.get("count") or 0), n_streamlines, cause_hint
    )
    for point_slice, block_offsets in _iter_slices_and_offsets(streamline_offsets):
        yield points[point_slice], block_offsets[:-1], block_offsets[1:] - 1


def _iter_trk_blocks(path: Path) -> BlockArrayIterator:
    """Read points; nibabel transforms them from the image's corner to RAS."""
    import nibabel

    n_header_streamlines = int(_read_header(path)["nb_streamlines"])
    streamlines = nibabel.streamlines.load(path).streamlines
    _check_header_streamline_count(n_header_streamlines, len(streamlines))
    points = streamlines.get_data()
    streamline_offsets = np.cumsum([0, *map(len, streamlines)])
    for point_slice, block_offsets in _iter_slices_and_offsets(streamline_offsets):
        yield points[point_slice], block_offsets[:-1], block_offsets[1:]


def _iter_trx_blocks(path: Path) -> BlockArrayIterator:
    """Read points, and the first row of each streamline, from a zip archive."""
    with zipfile.ZipFile(path) as trx_archive:
        header = json.loads(trx_archive.read("header.json"))
        n_points = header["NB_VERTICES"]
        n_streamlines = header["NB_STREAMLINES"]
        if n_streamlines == 0:
            return
        array_file_name, dtype = _find_array_name_and_dtype(trx_archive, "offsets")
        streamline_offsets = np.frombuffer(
            trx_archive.read(array_file_name), dtype=dtype
        ).astype(np.int64)
        if len(streamline_offsets) == n_streamlines:  # early files omit the last offset
            streamline_offsets = np.append(streamline_offsets, n_points)
        _check_header_streamline_count(n_streamlines, len(streamline_offsets) - 1)
        if (
            streamline_offsets[0] != 0
            or streamline_offsets[-1] != n_points
            or (np.diff(streamline_offsets) < 0).any()
        ):
            raise ValueError(
                "the offsets of the streamlines do not increase from 0 to the number "
                f"of points ({n_points})"
            )
        array_file_name, dtype = _find_array_name_and_dtype(trx_archive, "positions")
        n_bytes_per_point = 3 * dtype.itemsize
        n_bytes = trx_archive.getinfo(array_file_name).file_size
        if n_bytes != n_bytes_per_point * n_points:
            raise ValueError(
                f"the points have {n_bytes} bytes; expected "
                f"{n_bytes_per_point * n_points} bytes for {n_points} points"
            )
        with trx_archive.open(array_file_name) as byte_stream:
            for _, block_offsets in _iter_slices_and_offsets(streamline_offsets):
                point_bytes = byte_stream.read(
                    n_bytes_per_point * int(block_offsets[-1])
                )
                points = np.frombuffer(point_bytes, dtype=dtype).reshape(-1, 3)
                yield points.astype(np.float32), block_offsets[:-1], block_offsets[1:]
            byte_stream.read()  # zipfile compares the checksum at the end of the stream


def _find_array_name_and_dtype(
    trx_archive: zipfile.ZipFile, array_name: str
) -> tuple[str, np.dtype[Any]]:
    """Return the file name of an array in the archive, and its type."""
    for file_name in trx_archive.namelist():
        array_stem, _, type_name = file_name.rpartition(".")
        if array_stem.split(".")[0] == array_name:
            return file_name, np.dtype(type_name).newbyteorder("<")
    raise ValueError(f"the archive contains no {array_name}")


TRACTOGRAM_FORMATS: dict[str, Callable[[Path], BlockArrayIterator]] = {
    ".tck": _iter_tck_blocks,
    ".trk": _iter_trk_blocks,
    ".trk.gz": _iter_trk_blocks,
    ".trx": _iter_trx_blocks,
}


def read_streamline_weights(weights: str | Path | np.ndarray) -> np.ndarray:
    """Read one weight per streamline, for example the text of MRtrix's `tcksift2`."""
    is_file = isinstance(weights, str | Path)
    source_text = str(weights) if is_file else "streamline_weights"
    with convert_reading_errors(source_text, "one number for each streamline"):
        weight_values = np.loadtxt(source_text) if is_file else np.asarray(weights)
        weight_values = weight_values.astype(np.float64).ravel()
        valid_weight_mask = (weight_values >= 0) & (weight_values < np.inf)
        if not valid_weight_mask.all():
            invalid_value = weight_values[~valid_weight_mask][0]
            raise ValueError(
                "streamline weights must be finite and not negative; got "
                f"{invalid_value}. Correct the file."
            )
    return weight_values


@dataclass(frozen=True, eq=False)
class BuiltConnectome:
    """A connectome built from streamlines, with counts of the streamlines used.

    Attributes
    ----------
    matrix
        (n_rois, n_rois), symmetric, in atlas order; the diagonal is within a region.
    names
        Names of the regions.
    notes
        Notes on the reading of labels and on streamlines that were dropped.
    n_streamlines
        Number of streamlines in the tractogram.
    n_kept
        Streamlines with both ends in regions of the atlas.
    n_unassigned
        Streamlines with at least one end in no node.
    n_outside
        Streamlines with both ends in nodes, but at least one in a node that the atlas
        leaves out (cerebellum, accumbens).
    ends_in_nodes
        Share of the ends that lie in a node, by the assignment rule.
    ends_outside_brain
        Share of the ends that lie outside the brain; NaN if the parcellation does not
        cover a whole brain.
    """

    matrix: np.ndarray
    names: tuple[str, ...]
    notes: tuple[str, ...]
    n_streamlines: int
    n_kept: int
    n_unassigned: int
    n_outside: int
    ends_in_nodes: float
    ends_outside_brain: float

    def to_frame(self) -> pd.DataFrame:
        """Return the matrix with region names on both axes."""
        return pd.DataFrame(self.matrix, index=self.names, columns=self.names)


def build_connectome(
    tractogram: str | Path,
    parcellation: str | Path,
    atlas: str | Path | Atlas = "destrieux160",
    assignment: str = "radial",
    radius: float = 4.0,
    weight: str = "count",
    *,
    streamline_weights: str | Path | np.ndarray | None = None,
    labels: LabelSource | None = None,
    same_space: bool = False,
    n_threads: int = 2,
) -> BuiltConnectome:
    r"""Build a connectome from streamlines and a parcellation.

    Parameters
    ----------
    tractogram : str or Path
        `.tck`, `.trk`, `.trk.gz` or `.trx`, in the space of the parcellation; read in
        blocks, so it may be larger than memory.
    parcellation : str or Path
        NIfTI or MGZ of labels: FreeSurfer's `aparc.a2009s+aseg`, the nodes of
        MRtrix's `labelconvert`, or any other with `labels`. White matter, fluid and
        other labels outside grey matter are not nodes.
    atlas : str, Path or Atlas
        Anything that :func:`.load_atlas` accepts.
    assignment : {"radial", "end_voxels"}
        The node of an end: the nearest within `radius`, or that of the end's voxel.
    radius : float
        Radius of the radial search in mm.
    weight : {"count", "inverse_length", "inverse_node_volume", "mean_length"}
        Contribution of a streamline: 1; 1 / length in mm; 2 / voxels of both nodes; or
        the mean length in mm of the streamlines of a connection.
    streamline_weights : path or array of shape (n_streamlines,), optional
        A factor for every streamline, for example the output of MRtrix's `tcksift2`.
    labels : path, or mapping of int to str, optional
        Names of the labels: a lookup table in FreeSurfer's or MRtrix's form, or with
        the columns `index` and `name`; or names by number.
    same_space : bool
        State that both lie in one space, although file names (`space-`), the image in
        the header of a `.trk` or `.trx`, or the ends of the streamlines disagree.
    n_threads : int
        Number of threads; the result does not depend on it.

    Returns
    -------
    BuiltConnectome
        `matrix` in atlas order, `names`, and the numbers of streamlines kept and left
        out; `to_frame()` has region names on both axes.

    Raises
    ------
    FileFormatError
        If a file cannot be read or is truncated, its labels are unknown, or the
        streamlines and the labels do not overlap.
    RegionNameError
        If labels have names that are not regions of the atlas, or regions are missing.
    ParameterError
        If an argument is invalid, or the file names state two spaces.
    """
    atlas = load_atlas(atlas)
    check_choice("assignment", assignment, ASSIGNMENTS)
    check_choice("weight", weight, WEIGHTS)
    check_at_least("radius", radius, 0)
    check_at_least("n_threads", n_threads, 1)
    if not same_space:
        check_named_spaces(tractogram, parcellation)
    label_image = match_label_image(parcellation, atlas, labels)
    reference_grid = read_reference_grid(tractogram)
    if reference_grid is not None and not same_space:
        labelled_points_mm = apply_affine(
            label_image.affine, np.argwhere(label_image.label_volume > 0)
        )
        check_tractogram_covers_labels(
            tractogram,
            reference_grid,
            read_image_grid(parcellation),
            labelled_points_mm,
        )
    streamline_factors = np.zeros(0)
    if streamline_weights is not None:
        streamline_factors = read_streamline_weights(streamline_weights)

    end_counter = StreamlineEndCounter(label_image)
    node_label_numbers = sorted(
        {
            *label_image.region_index_by_label,
            *label_image.find_label_numbers(NON_ATLAS_NODES),
        }
    )
    code_by_label = {
        label_number: node_code
        for node_code, label_number in enumerate(node_label_numbers, start=1)
    }
    node_image = NodeImage(label_image.recode(code_by_label), label_image.affine)
    node_assigner = (
        RadialSearch(node_image, radius) if assignment == "radial" else node_image
    )
    n_node_codes = len(node_label_numbers) + 1  # code 0 is no node
    code_voxel_counts = np.array(
        [0, *label_image.label_voxel_counts[node_label_numbers]]
    )

    def compute_pair_sums(
        streamline_block: StreamlineBlock, first_streamline_index: int
    ) -> np.ndarray:
        """Return counts, weights and factors of a block, summed by pair of nodes."""
        n_block_streamlines = len(streamline_block.start_rows)
        block_factors = streamline_factors[
            first_streamline_index : first_streamline_index + n_block_streamlines
        ]
        padded_streamline_factors = np.append(
            block_factors, np.ones(n_block_streamlines)
        )[:n_block_streamlines]
        nonempty_streamline_mask = (
            streamline_block.stop_rows > streamline_block.start_rows
        )
        padded_streamline_factors = padded_streamline_factors[nonempty_streamline_mask]
        streamline_block = streamline_block._replace(
            start_rows=streamline_block.start_rows[nonempty_streamline_mask],
            stop_rows=streamline_block.stop_rows[nonempty_streamline_mask],
        )
        end_point_rows = streamline_block.stop_rows - 1
        start_node_codes = node_assigner.find_node_codes(
            streamline_block.points[streamline_block.start_rows]
        )
        end_node_codes = node_assigner.find_node_codes(
            streamline_block.points[end_point_rows]
        )
        end_counter.add_ends(
            streamline_block.points[
                np.concatenate([streamline_block.start_rows, end_point_rows])
            ],
            np.concatenate([start_node_codes, end_node_codes]),
        )
        low_node_codes, high_node_codes = np.sort(
            [start_node_codes, end_node_codes], axis=0
        )
        pair_voxel_counts = (
            code_voxel_counts[low_node_codes] + code_voxel_counts[high_node_codes]
        )
        block_streamline_weights = (
            padded_streamline_factors
            * compute_streamline_weights(streamline_block, pair_voxel_counts, weight)
        )
        flat_pair_indices = (
            low_node_codes.astype(np.int64) * n_node_codes + high_node_codes
        )
        pair_sums = [
            np.bincount(flat_pair_indices, summed_values, n_node_codes**2)
            for summed_values in (
                None,
                block_streamline_weights,
                padded_streamline_factors,
            )
        ]
        return np.reshape(pair_sums, (3, n_node_codes, n_node_codes))

    n_streamlines = 0
    pair_total_matrices = np.zeros((3, n_node_codes, n_node_codes))
    streamline_blocks = read_streamlines(tractogram)
    with ThreadPoolExecutor(
        n_threads
    ) as thread_pool:  # n_threads blocks are in memory at once
        while block_batch := list(islice(streamline_blocks, n_threads)):
            block_streamline_counts = [
                len(streamline_block.start_rows) for streamline_block in block_batch
            ]
            first_streamline_indices = np.cumsum(
                [n_streamlines, *block_streamline_counts]
            )
            n_streamlines = int(first_streamline_indices[-1])
            for pair_sums in thread_pool.map(
                compute_pair_sums, block_batch, first_streamline_indices.tolist()
            ):
                pair_total_matrices += pair_sums
    if streamline_weights is not None and len(streamline_factors) != n_streamlines:
        raise FileFormatError(
            f"the tractogram contains {n_streamlines} streamlines, but "
            f"{option_text('streamline_weights')} contains "
            f"{len(streamline_factors)} weights; expected one weight for each "
            "streamline. Give the weights of this tractogram.",
            path=tractogram,
        )
    if not same_space:
        end_counter.check_overlap(tractogram)

    pair_count_matrix, pair_weight_matrix, pair_factor_matrix = pair_total_matrices
    if weight == "mean_length":
        linked_pair_mask = pair_factor_matrix > 0
        pair_weight_matrix = np.divide(
            pair_weight_matrix,
            pair_factor_matrix,
            np.zeros_like(pair_weight_matrix),
            where=linked_pair_mask,
        )
    symmetric_weight_matrix = pair_weight_matrix + np.triu(pair_weight_matrix, 1).T
    region_indices = list(label_image.region_index_by_label.values())
    region_node_codes = [
        code_by_label[label_number]
        for label_number in label_image.region_index_by_label
    ]
    region_code_indexer = np.ix_(region_node_codes, region_node_codes)
    connectome = np.zeros((len(atlas), len(atlas)))
    connectome[np.ix_(region_indices, region_indices)] = symmetric_weight_matrix[
        region_code_indexer
    ]
    n_kept_streamlines = int(pair_count_matrix[region_code_indexer].sum())
    n_unassigned_streamlines = n_streamlines - int(pair_count_matrix[1:, 1:].sum())
    n_non_atlas_streamlines = (
        n_streamlines - n_unassigned_streamlines - n_kept_streamlines
    )
    summary_text = (
        f"{n_kept_streamlines} of {n_streamlines} streamlines were kept. "
        f"{n_unassigned_streamlines} have an end in no region, and "
        f"{n_non_atlas_streamlines} have an end in a region that is not part of "
        f"{atlas.name}"
    )
    return BuiltConnectome(
        matrix=connectome,
        names=atlas.names,
        notes=(*label_image.notes, *end_counter.list_notes(assignment), summary_text),
        n_streamlines=n_streamlines,
        n_kept=n_kept_streamlines,
        n_unassigned=n_unassigned_streamlines,
        n_outside=n_non_atlas_streamlines,
        ends_in_nodes=end_counter.share_in_nodes,
        ends_outside_brain=end_counter.share_outside_brain,
    )


def compute_streamline_weights(
    streamline_block: StreamlineBlock,
    node_pair_voxel_counts: np.ndarray,
    weight_kind: str,
) -> np.ndarray:
    """Return the weight of each streamline.

    `node_pair_voxel_counts` is the number of voxels of the streamline's two nodes
    together.
    """
    if weight_kind == "count":
        return np.ones(len(node_pair_voxel_counts))
    if weight_kind == "mean_length":
        return streamline_block.lengths_mm
    weight_divisors = (
        node_pair_voxel_counts / 2
        if weight_kind == "inverse_node_volume"
        else streamline_block.lengths_mm
    )
    # A single point has length 0 and adds nothing.
    return np.divide(
        1.0, weight_divisors, np.zeros(len(weight_divisors)), where=weight_divisors > 0
    )


class StreamlineEndCounter:
    """Counts of streamline ends inside nodes and inside the brain, block by block."""

    def __init__(self, label_image: LabelImage) -> None:
        self.label_span_mm = (
            voxel_sizes(label_image.affine) * label_image.label_volume.shape
        ).max()
        mask_and_affine = make_brain_mask(
            label_image.label_volume > 0, label_image.affine
        )
        self.brain_image = None
        if mask_and_affine is not None:
            brain_mask, affine = mask_and_affine
            self.brain_image = NodeImage(brain_mask.astype(np.int32), affine)
        self.lock = Lock()
        self.n_ends = 0
        self.n_ends_in_nodes = 0
        self.n_ends_in_brain = 0
        self.min_end_coordinates = np.full(3, np.inf)
        self.max_end_coordinates = np.full(3, -np.inf)

    def add_ends(self, end_points: np.ndarray, end_node_codes: np.ndarray) -> None:
        """Add ends (n, 3) and the codes of their nodes, 0 for none."""
        if not len(end_points):
            return
        n_added_in_brain = 0
        if self.brain_image is not None:
            n_added_in_brain = int(
                np.count_nonzero(self.brain_image.find_node_codes(end_points))
            )
        with self.lock:
            self.n_ends += len(end_points)
            self.n_ends_in_nodes += int(np.count_nonzero(end_node_codes))
            self.n_ends_in_brain += n_added_in_brain
            self.min_end_coordinates = np.minimum(
                self.min_end_coordinates, end_points.min(axis=0)
            )
            self.max_end_coordinates = np.maximum(
                self.max_end_coordinates, end_points.max(axis=0)
            )

    @property
    def share_in_nodes(self) -> float:
        """Return the share of ends in a node; NaN without ends."""
        return self.n_ends_in_nodes / self.n_ends if self.n_ends else np.nan

    @property
    def share_outside_brain(self) -> float:
        """Return the share of ends outside the brain; NaN if it is unknown."""
        if self.brain_image is None or not self.n_ends:
            return np.nan
        return 1 - self.n_ends_in_brain / self.n_ends

    def list_notes(self, assignment_rule: str) -> list[str]:
        """Return a note on the share of ends in nodes, compared with typical values."""
        if not self.n_ends:
            return []
        typical_share = TYPICAL_SHARE_IN_NODES[assignment_rule]
        share_note = (
            f"{self.share_in_nodes:.0%} of the ends of streamlines are inside a region"
        )
        if self.brain_image is None:
            return [share_note]
        return [
            f"{share_note} (usually about {typical_share:.0%}), and "
            f"{self.share_outside_brain:.0%} are outside the brain (usually less than "
            f"{TYPICAL_SHARE_OUTSIDE:.0%})"
        ]

    def check_overlap(self, tractogram_path: str | Path) -> None:
        """Raise if the ends show that streamlines and labels do not overlap."""
        advice_text = (
            "The tractogram may not be in the space and unit (mm) of the "
            "parcellation. If it is in the same space, skip this check with "
            f"{option_text('same_space', True)}."
        )
        if self.n_ends == 0:
            raise FileFormatError(
                "the tractogram contains no streamlines. Leave this scan out, or "
                "compute the tractogram again.",
                path=tractogram_path,
            )
        if self.n_ends < MIN_ENDS:
            return
        if self.share_in_nodes < MIN_SHARE_IN_NODES:
            raise FileFormatError(
                f"{self.share_in_nodes:.1%} of the streamline ends are inside a "
                f"region; expected {MIN_SHARE_IN_NODES:.0%} or more. {advice_text}",
                path=tractogram_path,
            )
        if self.brain_image is None:
            return
        if self.share_outside_brain > MAX_SHARE_OUTSIDE:
            raise FileFormatError(
                f"{self.share_outside_brain:.0%} of the streamline ends are outside "
                f"the brain; expected at most {MAX_SHARE_OUTSIDE:.0%}. {advice_text}",
                path=tractogram_path,
            )
        largest_extent_mm = (self.max_end_coordinates - self.min_end_coordinates).max()
        if largest_extent_mm < MIN_EXTENT_SHARE * self.label_span_mm:
            raise FileFormatError(
                f"all streamlines end within {largest_extent_mm:.2g} mm of each other, "
                f"but the labels span {self.label_span_mm:.0f} mm. {advice_text}",
                path=tractogram_path,
            )


class NodeImage:
    """Image of node codes, with axes reoriented to right, anterior, superior.

    MRtrix does the same; if distances tie, the order of the axes decides.
    """

    def __init__(self, node_code_volume: np.ndarray, affine: np.ndarray) -> None:
        axis_orientation = orientations.io_orientation(affine)
        self.code_volume = np.ascontiguousarray(
            orientations.apply_orientation(node_code_volume, axis_orientation)
        )
        self.affine = affine @ orientations.inv_ornt_aff(
            axis_orientation, node_code_volume.shape
        )
        self.mm_to_voxel_affine = np.linalg.inv(self.affine)
        self.voxel_sizes_mm = np.sqrt((self.affine[:3, :3] ** 2).sum(axis=0))

    def find_node_codes(self, points_mm: np.ndarray) -> np.ndarray:
        """Return the codes at points in mm (n, 3); 0 outside the image."""
        inside_image_mask = np.ones(len(points_mm), dtype=bool)
        flat_indices = np.zeros(len(points_mm), dtype=np.intp)
        axis_coordinate_arrays = transform_coordinate_arrays(
            self.mm_to_voxel_affine, points_mm.T
        )
        for axis_coordinates, axis_size in zip(
            axis_coordinate_arrays, self.code_volume.shape, strict=True
        ):
            # -0.5 is rounded away from 0, so it lies outside, like size - 0.5.
            inside_image_mask &= (axis_coordinates > -0.5) & (
                axis_coordinates < axis_size - 0.5
            )
            flat_indices *= axis_size
            nearest_axis_indices = np.floor(
                np.clip(axis_coordinates, 0, axis_size - 1) + 0.5
            )
            flat_indices += nearest_axis_indices.astype(np.intp)
        point_codes = self.code_volume.ravel()[flat_indices]
        point_codes[~inside_image_mask] = 0
        return point_codes


class RadialSearch:
    """The nearest node within a radius, for many points at once.

    A tree of the labelled voxels finds the nearest two. If these are equally far, or
    exactly at the radius, all voxels at that distance are compared as in MRtrix: voxel
    by voxel, from the point's own voxel outwards. A voxel whose centre lies exactly at
    the radius is too far.
    """

    def __init__(self, node_image: NodeImage, radius: float) -> None:
        self.node_image = node_image
        self.radius = radius
        self.labelled_voxel_indices = np.argwhere(node_image.code_volume)
        self.voxel_codes = np.append(
            node_image.code_volume[node_image.code_volume > 0], 0
        )
        self.voxel_centres_mm = np.stack(
            transform_coordinate_arrays(
                node_image.affine, self.labelled_voxel_indices.T
            ),
            axis=1,
        )
        self.voxel_tree = cKDTree(self.voxel_centres_mm, balanced_tree=False)

    def find_node_codes(self, points_mm: np.ndarray) -> np.ndarray:
        """Return the code of the nearest node of every point (n, 3); 0 for none."""
        points_mm = points_mm.astype(np.float64)
        max_distance = self.radius * (1 + _RELATIVE_TOLERANCE) + np.finfo(float).tiny
        distance_pairs, nearest_voxel_indices = self.voxel_tree.query(
            points_mm, k=2, distance_upper_bound=max_distance
        )
        nearest_distances, second_distances = distance_pairs.T
        nearest_codes = self.voxel_codes[nearest_voxel_indices[:, 0]]
        nearest_codes[nearest_distances >= self.radius] = 0
        tied_point_mask = (
            second_distances <= nearest_distances * (1 + _RELATIVE_TOLERANCE) + 1e-12
        )
        tied_point_mask |= nearest_distances >= self.radius * (1 - _RELATIVE_TOLERANCE)
        tied_point_indices = np.flatnonzero(
            tied_point_mask & (nearest_distances < np.inf)
        )
        if len(tied_point_indices):
            nearest_codes[tied_point_indices] = self.find_tied_codes(
                points_mm[tied_point_indices], nearest_distances[tied_point_indices]
            )
        return nearest_codes

    def find_tied_codes(
        self, points_mm: np.ndarray, nearest_distances: np.ndarray
    ) -> np.ndarray:
        """Return the codes that come first in MRtrix's order of search; 0 if too far.

        `nearest_distances` is that of each point's nearest labelled voxel.
        """
        neighbour_index_lists = self.voxel_tree.query_ball_point(
            points_mm, nearest_distances * (1 + _RELATIVE_TOLERANCE) + 1e-12
        )
        neighbour_counts = [len(index_list) for index_list in neighbour_index_lists]
        point_indices = np.repeat(np.arange(len(points_mm)), neighbour_counts)
        voxel_indices = np.concatenate(neighbour_index_lists).astype(np.intp)
        dx, dy, dz = (points_mm[point_indices] - self.voxel_centres_mm[voxel_indices]).T
        exact_distances = np.sqrt(dx * dx + (dy * dy + dz * dz))
        point_voxel_coordinates = np.stack(
            transform_coordinate_arrays(
                self.node_image.mm_to_voxel_affine, points_mm.T
            ),
            axis=1,
        )
        point_voxel_indices = np.trunc(
            point_voxel_coordinates + np.copysign(0.5, point_voxel_coordinates)
        )
        voxel_steps = (
            self.labelled_voxel_indices[voxel_indices]
            - point_voxel_indices[point_indices]
        )
        x, y, z = (voxel_steps * self.node_image.voxel_sizes_mm).T
        voxel_distances = np.sqrt(z**2 + y**2 + x**2)
        sort_indices = np.lexsort(
            (x, y, z, voxel_distances, exact_distances, point_indices)
        )
        _, first_positions = np.unique(point_indices[sort_indices], return_index=True)
        first_candidate_indices = sort_indices[first_positions]
        near_candidate_mask = exact_distances[first_candidate_indices] < self.radius
        return np.where(
            near_candidate_mask,
            self.voxel_codes[voxel_indices[first_candidate_indices]],
            0,
        )
