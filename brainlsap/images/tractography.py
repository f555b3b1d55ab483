"""From a tractogram and a parcellation to a connectome.

Every streamline is given to two nodes by its ends, and adds to the connection between
them. Rules and weights are those of MRtrix 3.0.3's `tck2connectome`, cell for cell.
Each rule gives an end the code of a node, or 0:

- `end_voxels`: the label of the voxel in which the end lies;
- `radial`: the label of the nearest labelled voxel, by the distance of its centre
  from the end, if that is below the radius;
- `reverse_search`: the first label met on the way from the end along the streamline
  to its middle; the way is at most as long as the radius, 0 for no limit.

Distances are in mm, halves are rounded away from 0, and of voxels at the same distance
the one wins that comes first in MRtrix's order of search.
"""

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from nibabel import orientations
from scipy import ndimage
from scipy.spatial import cKDTree

from brainlsap.arrays import check_at_least, check_choice
from brainlsap.atlas import Atlas, load_atlas
from brainlsap.exceptions import FileFormatError
from brainlsap.images.parcellation import NODES_BESIDE, Labels, read_label_image
from brainlsap.images.streamlines import (
    StreamlineBlock,
    read_streamline_weights,
    read_streamlines,
)

ASSIGNMENTS = ("end_voxels", "radial", "reverse_search")
WEIGHTS = ("count", "inverse_length", "inverse_node_volume", "mean_length")
# Distances closer to each other than this share are compared in MRtrix's own order.
_NEARLY = 1e-9
# Ends are searched in the order of cubes of so many voxels: near ones share memory.
_CUBE = 8
# From the ends of a block's streamlines to the codes of nodes, 0 for none.
EndFinder = Callable[[StreamlineBlock], list[np.ndarray]]


@dataclass(frozen=True, eq=False)
class BuiltConnectome:
    """A connectome made from streamlines, and what became of them.

    Attributes
    ----------
    matrix
        (n_rois, n_rois) symmetric, in atlas order; diagonal: within a region.
    names
        Of the regions.
    notes
        What the labels were taken for, and what was dropped.
    n_streamlines
        In the tractogram.
    n_kept
        Both ends lie in regions of the atlas.
    n_unassigned
        An end at least lies in no node.
    n_outside
        Both lie in nodes, but one is left out by the atlas (cerebellum, accumbens).
    parameters
        How it was made.
    """

    matrix: np.ndarray
    names: tuple[str, ...]
    notes: tuple[str, ...]
    n_streamlines: int
    n_kept: int
    n_unassigned: int
    n_outside: int
    parameters: dict[str, Any]

    def to_frame(self) -> pd.DataFrame:
        """Return the matrix with the regions' names on both sides."""
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
    labels: Labels | None = None,
    n_threads: int = 2,
) -> BuiltConnectome:
    r"""Build a connectome from streamlines and a parcellation, by name.

    Parameters
    ----------
    tractogram : str or Path
        `.tck`, `.trk`, `.trk.gz` or `.trx`, in the space of the parcellation; read in
        blocks, so it may be larger than memory.
    parcellation : str or Path
        NIfTI or MGZ of labels: FreeSurfer's `aparc.a2009s+aseg`, the nodes of
        MRtrix's `labelconvert`, or any other with `labels`. White matter, fluid and
        whatever is no grey matter is no node.
    atlas : str, Path or Atlas
        As :func:`.load_atlas` takes it.
    assignment : {"radial", "end_voxels", "reverse_search"}
        Which node an end belongs to: the nearest within `radius`, that of the voxel,
        or the first on the way back along the streamline.
    radius : float
        In mm: of the radial search, or longest way of the reverse search (there 0
        means to the middle).
    weight : {"count", "inverse_length", "inverse_node_volume", "mean_length"}
        What a streamline adds: 1; 1 / length in mm; 2 / voxels of both nodes; or the
        mean length in mm of the streamlines of a connection.
    streamline_weights : path or array of shape (n_streamlines,), optional
        A factor for every streamline, such as the output of MRtrix's `tcksift2`.
    labels : path, or mapping of int to str, optional
        Names of the labels: a lookup table of FreeSurfer's or MRtrix's form, or of
        the columns `index` and `name`; or names by number.
    n_threads : int
        At once; the result does not depend on it.

    Returns
    -------
    BuiltConnectome
        `matrix` in atlas order, `names`, and the numbers of streamlines kept and left
        out; `to_frame()` has names on both sides.

    Raises
    ------
    FileFormatError
        Where a file cannot be read, is cut short, or its labels are not known.
    RegionNameError
        Where labels have names that are no regions, or regions are missing.
    ParameterError
        Where an argument cannot be used.
    """
    atlas = load_atlas(atlas)
    check_choice("assignment", assignment, ASSIGNMENTS)
    check_choice("weight", weight, WEIGHTS)
    check_at_least("radius", radius, 0)
    check_at_least("n_threads", n_threads, 1)
    image = read_label_image(parcellation, atlas, labels)
    nodes = sorted({*image.places, *image.with_cores(NODES_BESIDE)})
    codes = {label: code for code, label in enumerate(nodes, start=1)}
    volumes = np.array([0, *(image.counts[label] for label in nodes)])
    factors = said = None
    if streamline_weights is not None:
        is_file = isinstance(streamline_weights, str | Path)
        said = str(streamline_weights) if is_file else "given as an array"
        factors = read_streamline_weights(streamline_weights)
    ends = assign_ends(
        NodeImage(image.recoded(codes), image.affine), assignment, float(radius)
    )
    blocks = read_streamlines(tractogram)
    counts, values = sum_blocks(blocks, ends, weight, volumes, factors, n_threads)
    n_streamlines = int(counts.sum())
    if factors is not None and len(factors) != n_streamlines:
        raise FileFormatError(
            f"{tractogram}: {n_streamlines} streamlines, but {len(factors)} weights in "
            "streamline_weights=; expected one for each."
        )
    place = np.array([-1, *(image.places.get(label, -1) for label in nodes)])
    kept = np.flatnonzero(place >= 0)
    matrix = np.zeros((len(atlas), len(atlas)))
    both = values + np.triu(values, 1).T
    matrix[np.ix_(place[kept], place[kept])] = both[np.ix_(kept, kept)]
    n_unassigned = n_streamlines - int(counts[1:, 1:].sum())
    n_kept = int(counts[np.ix_(kept, kept)].sum())
    n_outside = n_streamlines - n_unassigned - n_kept
    note = (
        f"{n_kept} of {n_streamlines} streamlines kept; {n_unassigned} have an end in "
        f"no node, {n_outside} one in a node that {atlas.name} leaves out"
    )
    parameters = {
        "tractogram": str(tractogram),
        "parcellation": str(parcellation),
        "atlas": atlas.name,
        "assignment": assignment,
        "radius_mm": None if assignment == "end_voxels" else float(radius),
        "weight": weight,
        "streamline_weights": said,
    }
    numbers = (n_streamlines, n_kept, n_unassigned, n_outside)
    notes = (*image.notes, note)
    return BuiltConnectome(matrix, atlas.names, notes, *numbers, parameters)


def _transform(affine: np.ndarray, points: Any) -> list[np.ndarray]:
    """Return transformed coordinates in float64, one array for each axis."""
    found = []
    for row in affine[:3]:
        used = [axis for axis in range(3) if row[axis]]
        total = points[used[0]].astype(np.float64) * row[used[0]]
        for axis in used[1:]:
            total += points[axis] * row[axis]
        total += row[3]
        found.append(total)
    return found


class NodeImage:
    """Codes of nodes in space, axes turned to right, anterior, superior.

    As MRtrix does: where distances tie, the order of the axes decides.
    """

    def __init__(self, codes: np.ndarray, affine: np.ndarray) -> None:
        turn = orientations.io_orientation(affine)
        self.codes = np.ascontiguousarray(orientations.apply_orientation(codes, turn))
        self.affine = affine @ orientations.inv_ornt_aff(turn, codes.shape)
        self.inverse = np.linalg.inv(self.affine)
        self.spacing = np.sqrt((self.affine[:3, :3] ** 2).sum(axis=0))

    def voxels(self, points: np.ndarray) -> list[np.ndarray]:
        """Return the coordinates in voxels of points (n, 3), one array an axis."""
        return _transform(self.inverse, points.T)

    def at(self, points: np.ndarray) -> np.ndarray:
        """Return the codes of the voxels in which points lie; 0 outside the image."""
        return self.look_up(self.voxels(points))

    def look_up(self, voxels: list[np.ndarray]) -> np.ndarray:
        """Return the codes at coordinates in voxels, one array for each axis."""
        inside = np.ones(len(voxels[0]), dtype=bool)
        flat = np.zeros(len(voxels[0]), dtype=np.intp)
        for position, size in zip(voxels, self.codes.shape, strict=True):
            # -0.5 is rounded away from 0, so it is outside, as size - 0.5 is
            inside &= (position > -0.5) & (position < size - 0.5)
            flat *= size
            flat += np.floor(np.clip(position, 0, size - 1) + 0.5).astype(np.intp)
        found = self.codes.ravel()[flat]
        found[~inside] = 0
        return found


class RadialSearch:
    """The nearest node within a radius, for many points at once.

    A tree of the labelled voxels finds the nearest two. Where these are equally far,
    or at the very radius, the search is done again in MRtrix's order. A voxel whose
    centre is exactly as far away as the radius is too far.
    """

    def __init__(self, nodes: NodeImage, radius: float) -> None:
        self.nodes, self.radius = nodes, radius
        self.half_diagonal = float(np.sqrt(((0.5 * nodes.spacing) ** 2).sum()))
        axes = nodes.affine[:3, :3] / nodes.spacing
        is_square = np.allclose(axes.T @ axes, np.eye(3), atol=1e-5)
        # then the voxel in which a point lies is the nearest, and near enough
        self.trusts_own = is_square and radius > self.half_diagonal
        wanted = nodes.codes > 0
        if self.trusts_own:  # voxels inside a node are never nearest to one outside
            wanted &= ~ndimage.binary_erosion(wanted)
        voxels = np.argwhere(wanted)
        centres = np.stack(_transform(nodes.affine, voxels.T), axis=1)
        self.found_codes = np.append(nodes.codes[tuple(voxels.T)], 0)
        self.tree = cKDTree(centres, balanced_tree=False)

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Return the code of the nearest node of every point (n, 3), 0 for none."""
        voxels = self.nodes.voxels(points)
        codes = self.nodes.look_up(voxels)
        if not self.trusts_own:
            codes[:] = 0
        rest = np.flatnonzero(codes == 0)
        key = np.zeros(len(rest), dtype=np.uint16)
        for axis in voxels:  # neighbours in space follow each other
            cube = np.clip(axis[rest], 0, 31 * _CUBE).astype(np.uint16) // _CUBE
            key = key * np.uint16(32) + cube
        rest = rest[np.argsort(key, kind="stable")]
        points = points[rest].astype(np.float64)
        far = self.radius * (1 + _NEARLY) + np.finfo(float).tiny
        distance, index = self.tree.query(points, k=2, distance_upper_bound=far)
        near, second = distance.T
        found = self.found_codes[index[:, 0]]
        found[near >= self.radius] = 0
        unsure = second <= near * (1 + _NEARLY) + 1e-12
        unsure |= near >= self.radius * (1 - _NEARLY)
        again = np.flatnonzero(unsure & (near < np.inf))
        found[again] = self.in_order(points[again])
        codes[rest] = found
        return codes

    @cached_property
    def offsets(self) -> np.ndarray:
        """Voxels around a voxel in the order of search (int, n_offsets, 3)."""
        reach = self.radius + self.half_diagonal
        most = int(np.ceil(reach / self.nodes.spacing.min()))
        steps = np.arange(-most, most + 1)
        z, y, x = np.meshgrid(steps, steps, steps, indexing="ij")
        offsets = np.stack([x.ravel(), y.ravel(), z.ravel()], axis=1)
        squares = (offsets * self.nodes.spacing) ** 2
        distance = np.sqrt(squares[:, 2] + squares[:, 1] + squares[:, 0])
        order = np.argsort(distance, kind="stable")
        return offsets[order[distance[order] < reach]]

    def in_order(self, points: np.ndarray) -> np.ndarray:
        """Search voxel by voxel in MRtrix's order; slow, and right where voxels tie."""
        codes = np.zeros(len(points), dtype=self.nodes.codes.dtype)
        least = np.full(len(points), self.radius)
        active = np.arange(len(points))
        centre = np.stack(self.nodes.voxels(points), axis=1)
        centre = np.trunc(centre + np.copysign(0.5, centre))
        for offset in self.offsets:
            if not len(active):
                break
            voxel = (centre[active] + offset).T
            here = _transform(self.nodes.affine, voxel)
            dx, dy, dz = (points[active, axis] - here[axis] for axis in range(3))
            distance = np.sqrt(dx * dx + (dy * dy + dz * dz))
            nearer = distance < least[active]
            found = np.where(nearer, self.nodes.look_up(list(voxel)), 0)
            changed = found > 0
            codes[active[changed]] = found[changed]
            # no voxel further on can be nearer than the nearest so far
            is_over = distance > least[active] + 2 * self.half_diagonal
            least[active[changed]] = distance[changed]
            active = active[~is_over]
        return codes


def reverse_search(
    nodes: NodeImage, block: StreamlineBlock, radius: float, *, at_end: bool
) -> np.ndarray:
    """Follow streamlines from one end to their middle until a node is met."""
    n_points = block.stops - block.starts
    step = -1 if at_end else 1
    place = (block.stops - 1 if at_end else block.starts).copy()
    middle = block.starts + (n_points // 2 if at_end else (n_points + 1) // 2)
    codes = np.zeros(len(place), dtype=nodes.codes.dtype)
    way = np.zeros(len(place))
    active = np.flatnonzero(place != middle)
    while len(active):
        here = block.points[place[active]]
        codes[active] = nodes.at(here)
        active, here = active[codes[active] == 0], here[codes[active] == 0]
        place[active] += step
        if radius > 0:
            inside = np.clip(place[active], 0, len(block.points) - 1)
            # single precision, as in MRtrix: the limit is compared to its sums
            d = (here - block.points[inside]).astype(np.float32)
            way[active] += np.sqrt(d[:, 0] ** 2 + (d[:, 1] ** 2 + d[:, 2] ** 2))
            active = active[~(way[active] > radius)]
        active = active[place[active] != middle[active]]
    return codes


def assign_ends(nodes: NodeImage, assignment: str, radius: float) -> EndFinder:
    """Return the function that gives the ends of a block's streamlines to nodes."""
    search = RadialSearch(nodes, radius) if assignment == "radial" else nodes.at

    def ends(block: StreamlineBlock) -> list[np.ndarray]:
        if assignment == "reverse_search":
            return [
                reverse_search(nodes, block, radius, at_end=at_end)
                for at_end in (False, True)
            ]
        both = np.concatenate([block.starts, block.stops - 1])
        return np.split(search(block.points[both]), 2)

    return ends


def sum_blocks(
    blocks: Iterable[StreamlineBlock],
    ends: EndFinder,
    weight: str,
    volumes: np.ndarray,
    factors: np.ndarray | None,
    n_threads: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the streamlines of every pair of nodes, and what they add (or their mean).

    Both of shape (n_nodes + 1, n_nodes + 1), the smaller code first, the same for any
    number of threads. `volumes` are voxels of every code, `factors` of streamlines.
    """
    n = len(volumes)
    counts = np.zeros(n * n, dtype=np.int64)
    values, shares = np.zeros((2, n * n))
    waiting: deque[Future[tuple[np.ndarray, ...]]] = deque()

    def add(most_waiting: int) -> None:
        while len(waiting) > most_waiting:
            pair, *sums = waiting.popleft().result()
            for total, one in zip((counts, values, shares), sums, strict=True):
                total[pair] += one

    with ThreadPoolExecutor(n_threads) as pool:
        for block in blocks:
            given = (block, ends, weight, volumes, factors)
            waiting.append(pool.submit(_sum_block, *given))
            add(n_threads)  # no more blocks in memory than that
        add(0)
    if weight == "mean_length":
        values = np.divide(values, shares, np.zeros(n * n), where=shares > 0)
    return counts.reshape(n, n), values.reshape(n, n)


def _sum_block(
    block: StreamlineBlock,
    ends: EndFinder,
    weight: str,
    volumes: np.ndarray,
    factors: np.ndarray | None,
) -> tuple[np.ndarray, ...]:
    """Return pairs of nodes, and the counts, values and shares of each."""
    n, n_lines = len(volumes), len(block.starts)
    has_points = block.stops > block.starts
    some = block._replace(
        starts=block.starts[has_points], stops=block.stops[has_points]
    )
    one, two = np.zeros((2, n_lines), dtype=np.int64)
    one[has_points], two[has_points] = ends(some)
    given = np.ones(n_lines)
    if factors is not None:
        known = factors[block.first : block.first + n_lines]
        given[: len(known)] = known
    value = np.where(has_points, given, 0.0)
    if weight == "mean_length":
        value[has_points] *= some.lengths
    elif weight == "inverse_length":
        # a single point has no length, and adds nothing
        lengths = some.lengths
        nothing = np.zeros_like(lengths)
        value[has_points] *= np.divide(1.0, lengths, nothing, where=lengths > 0)
    elif weight == "inverse_node_volume":
        both = volumes[one] + volumes[two]
        value *= np.divide(2.0, both, np.zeros(n_lines), where=both > 0)
    key = np.minimum(one, two) * n + np.maximum(one, two)
    counts = np.bincount(key, minlength=n * n)
    pair = np.flatnonzero(counts)
    sums, shares = (np.bincount(key, part, n * n)[pair] for part in (value, given))
    return pair, counts[pair], sums, shares
