"""From a tractogram and a parcellation to a connectome.

Every streamline is given to two nodes by its ends, and adds to the connection between
them. Rules and weights are those of MRtrix 3.0.3's `tck2connectome`, cell for cell.
Each rule gives an end the code of a node, or 0:

- `end_voxels`: the label of the voxel in which the end lies;
- `radial`: the label of the nearest labelled voxel, by the distance of its centre
  from the end, if that is below the radius.

Distances are in mm, halves are rounded away from 0, and of voxels at the same distance
the one wins that comes first in MRtrix's order of search.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from threading import Lock

import numpy as np
import pandas as pd
from nibabel import orientations
from nibabel.affines import apply_affine, voxel_sizes
from scipy.spatial import cKDTree

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.exceptions import FileFormatError, check_at_least, check_choice
from brainlsap.images import streamlines as tracts
from brainlsap.images.parcellation import (
    NODES_BESIDE,
    LabelImage,
    Labels,
    read_label_image,
)
from brainlsap.images.space import brain_mask, check_grids, check_named_spaces
from brainlsap.images.volumes import read_image_grid, transform_points

ASSIGNMENTS = ("end_voxels", "radial")
WEIGHTS = ("count", "inverse_length", "inverse_node_volume", "mean_length")
# Shares of ends in nodes of a whole-brain tractogram that lies in place, by rule. In
# place 2 % or fewer of its ends lie outside of the brain, 10 % if only the cortex is
# labelled; moved by 40 mm or turned by a lost sign, 24 % or more.
USUAL_IN_NODES = {"radial": 0.8, "end_voxels": 0.3}
USUAL_OUTSIDE, MOST_OUTSIDE, LEAST_IN_NODES = 0.1, 0.2, 0.05
# Fewer ends than this show nothing; all of them within a smaller share of the labels'
# span are in another unit.
FEWEST_ENDS, LEAST_EXTENT = 20, 0.12
# Distances closer to each other than this share are compared in MRtrix's own order.
_NEARLY = 1e-9


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
    ends_in_nodes
        Share of the ends that lie in a node, by the rule of assignment.
    ends_outside_brain
        Share of the ends that lie outside of the brain; NaN where the parcellation
        spans no whole brain.
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
    same_space: bool = False,
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
    assignment : {"radial", "end_voxels"}
        Which node an end belongs to: the nearest within `radius`, or that of the voxel.
    radius : float
        Of the radial search, in mm.
    weight : {"count", "inverse_length", "inverse_node_volume", "mean_length"}
        What a streamline adds: 1; 1 / length in mm; 2 / voxels of both nodes; or the
        mean length in mm of the streamlines of a connection.
    streamline_weights : path or array of shape (n_streamlines,), optional
        A factor for every streamline, such as the output of MRtrix's `tcksift2`.
    labels : path, or mapping of int to str, optional
        Names of the labels: a lookup table of FreeSurfer's or MRtrix's form, or of
        the columns `index` and `name`; or names by number.
    same_space : bool
        Your word that both lie in one space, where names (`space-`), the image in the
        header of a `.trk` or `.trx`, or the ends of the streamlines say otherwise.
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
        Where a file cannot be read, is cut short, or its labels are not known; where
        the streamlines lie elsewhere than the labels.
    RegionNameError
        Where labels have names that are no regions, or regions are missing.
    ParameterError
        Where an argument cannot be used, or names say two spaces.
    """
    atlas = load_atlas(atlas)
    check_choice("assignment", assignment, ASSIGNMENTS)
    check_choice("weight", weight, WEIGHTS)
    check_at_least("radius", radius, 0)
    check_at_least("n_threads", n_threads, 1)
    if not same_space:
        check_named_spaces(tractogram, parcellation)
    image = read_label_image(parcellation, atlas, labels)
    grid = tracts.read_grid(tractogram)
    if grid is not None and not same_space:
        voxels = apply_affine(image.affine, np.argwhere(image.values > 0))
        check_grids(tractogram, grid, read_image_grid(parcellation), voxels)
    placement = Placement(image)
    labelled = sorted({*image.positions, *image.with_cores(NODES_BESIDE)})
    n_codes = len(labelled) + 1  # 0 is no node
    volumes = np.array([0, *image.counts[labelled]])
    codes = {label: code for code, label in enumerate(labelled, start=1)}
    nodes = NodeImage(image.recoded(codes), image.affine)
    node_at = RadialSearch(nodes, radius) if assignment == "radial" else nodes.find
    factors = np.zeros(0)
    if streamline_weights is not None:
        factors = tracts.read_streamline_weights(streamline_weights)

    def tally(block: tracts.StreamlineBlock, first: int) -> np.ndarray:
        """Return counts, values and shares of a block by pairs of nodes."""
        n = len(block.starts)
        share = np.append(factors[first : first + n], np.ones(n))[:n]
        some = block.stops > block.starts
        block = block._replace(starts=block.starts[some], stops=block.stops[some])
        rows = block.starts, block.stops - 1
        ends = [node_at(block.points[one]) for one in rows]
        placement.add(block.points[np.concatenate(rows)], np.concatenate(ends))
        low, high = np.sort(ends, axis=0)
        value = share[some] * weigh(block, volumes[low] + volumes[high], weight)
        pair = low.astype(np.int64) * n_codes + high
        sums = [np.bincount(pair, w, n_codes**2) for w in (None, value, share[some])]
        return np.reshape(sums, (3, n_codes, n_codes))

    n_streamlines, total = 0, np.zeros((3, n_codes, n_codes))
    blocks = tracts.read_streamlines(tractogram)
    with ThreadPoolExecutor(n_threads) as pool:  # so many blocks are in memory at once
        while some := list(islice(blocks, n_threads)):
            firsts = np.cumsum([n_streamlines, *(len(one.starts) for one in some)])
            n_streamlines = int(firsts[-1])
            for sums in pool.map(tally, some, firsts.tolist()):
                total += sums
    if streamline_weights is not None and len(factors) != n_streamlines:
        raise FileFormatError(
            f"{n_streamlines} streamlines, but {len(factors)} weights in "
            "streamline_weights=; expected one for each.",
            path=tractogram,
        )
    if not same_space:
        placement.check(tractogram)
    counts, values, shares = total
    if weight == "mean_length":
        values = np.divide(values, shares, np.zeros_like(values), where=shares > 0)
    rows, kept = [*image.positions.values()], [codes[n] for n in image.positions]
    matrix = np.zeros((len(atlas), len(atlas)))
    both = values + np.triu(values, 1).T
    matrix[np.ix_(rows, rows)] = both[np.ix_(kept, kept)]
    n_kept = int(counts[np.ix_(kept, kept)].sum())
    n_unassigned = n_streamlines - int(counts[1:, 1:].sum())
    n_outside = n_streamlines - n_unassigned - n_kept
    note = (
        f"{n_kept} of {n_streamlines} streamlines kept; {n_unassigned} have an end in "
        f"no node, {n_outside} one in a node that {atlas.name} leaves out"
    )
    return BuiltConnectome(
        matrix,
        atlas.names,
        (*image.notes, *placement.notes(assignment), note),
        n_streamlines,
        n_kept,
        n_unassigned,
        n_outside,
        placement.share_in_nodes,
        placement.share_outside,
    )


def weigh(block: tracts.StreamlineBlock, voxels: np.ndarray, weight: str) -> np.ndarray:
    """Return what each streamline adds, whose nodes have so many voxels together."""
    if weight == "count":
        return np.ones(len(voxels))
    amount = voxels / 2 if weight == "inverse_node_volume" else block.lengths
    if weight == "mean_length":
        return amount
    # a single point has no length, and adds nothing
    return np.divide(1.0, amount, np.zeros(len(amount)), where=amount > 0)


class Placement:
    """Where the ends of streamlines lie among the labels, counted block by block."""

    def __init__(self, image: LabelImage) -> None:
        self.span = (voxel_sizes(image.affine) * image.values.shape).max()
        coarse = brain_mask(image.values > 0, image.affine)
        self.brain = None
        if coarse is not None:
            mask, affine = coarse
            self.brain = NodeImage(mask.astype(np.int32), affine)
        self.lock = Lock()
        self.n_ends, self.n_in_nodes, self.n_in_brain = 0, 0, 0
        self.lowest, self.highest = np.full(3, np.inf), np.full(3, -np.inf)

    def add(self, points: np.ndarray, nodes: np.ndarray) -> None:
        """Count ends (n, 3) and their nodes, 0 for none."""
        if not len(points):
            return
        n_in_brain = 0
        if self.brain is not None:
            n_in_brain = int(np.count_nonzero(self.brain.find(points)))
        with self.lock:
            self.n_ends += len(points)
            self.n_in_nodes += int(np.count_nonzero(nodes))
            self.n_in_brain += n_in_brain
            self.lowest = np.minimum(self.lowest, points.min(axis=0))
            self.highest = np.maximum(self.highest, points.max(axis=0))

    @property
    def share_in_nodes(self) -> float:
        """Return the share of ends in a node."""
        return self.n_in_nodes / self.n_ends if self.n_ends else np.nan

    @property
    def share_outside(self) -> float:
        """Return the share of ends outside of the brain, NaN if it is not known."""
        if self.brain is None or not self.n_ends:
            return np.nan
        return 1 - self.n_in_brain / self.n_ends

    def notes(self, assignment: str) -> list[str]:
        """Say which share of ends lies in nodes, beside what is usual."""
        if not self.n_ends:
            return []
        usual = USUAL_IN_NODES[assignment]
        note = f"{self.share_in_nodes:.0%} of streamlines' ends lie in a node"
        if self.brain is None:
            return [note]
        return [
            f"{note} (usual: about {usual:.0%}), {self.share_outside:.0%} outside of "
            f"the brain (usual: below {USUAL_OUTSIDE:.0%})"
        ]

    def check(self, tractogram: str | Path) -> None:
        """Raise where the ends show that the streamlines lie elsewhere."""
        advice = (
            "Is the tractogram in the space and unit (mm) of the parcellation? "
            "same_space=True (--same-space) goes on."
        )
        if self.n_ends == 0:
            raise FileFormatError(
                "holds no streamline; expected some.", path=tractogram
            )
        if self.n_ends < FEWEST_ENDS:
            return
        if self.share_in_nodes < LEAST_IN_NODES:
            raise FileFormatError(
                f"{self.share_in_nodes:.1%} of the streamlines' ends lie "
                f"in a node; expected {LEAST_IN_NODES:.0%} or more. {advice}",
                path=tractogram,
            )
        if self.brain is None:
            return
        if self.share_outside > MOST_OUTSIDE:
            raise FileFormatError(
                f"{self.share_outside:.0%} of the streamlines' ends lie "
                f"outside of the brain; expected {MOST_OUTSIDE:.0%} at most. {advice}",
                path=tractogram,
            )
        extent = (self.highest - self.lowest).max()
        if extent < LEAST_EXTENT * self.span:
            raise FileFormatError(
                f"all streamlines end within {extent:.2g} mm of each "
                f"other, and the labels span {self.span:.0f} mm. {advice}",
                path=tractogram,
            )


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

    def find(self, points: np.ndarray) -> np.ndarray:
        """Return the codes at points in mm (n, 3); 0 outside."""
        inside = np.ones(len(points), dtype=bool)
        flat = np.zeros(len(points), dtype=np.intp)
        voxels = transform_points(self.inverse, points.T)
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
    or at the very radius, all that are as far are compared as MRtrix does, voxel by
    voxel from the point's own outwards. A voxel whose centre is exactly as far away as
    the radius is too far.
    """

    def __init__(self, nodes: NodeImage, radius: float) -> None:
        self.nodes, self.radius = nodes, radius
        self.voxels = np.argwhere(nodes.codes)
        self.codes = np.append(nodes.codes[nodes.codes > 0], 0)
        self.centres = np.stack(transform_points(nodes.affine, self.voxels.T), axis=1)
        self.tree = cKDTree(self.centres, balanced_tree=False)

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Return the code of the nearest node of every point (n, 3), 0 for none."""
        points = points.astype(np.float64)
        far = self.radius * (1 + _NEARLY) + np.finfo(float).tiny
        distance, index = self.tree.query(points, k=2, distance_upper_bound=far)
        near, second = distance.T
        found = self.codes[index[:, 0]]
        found[near >= self.radius] = 0
        unsure = second <= near * (1 + _NEARLY) + 1e-12
        unsure |= near >= self.radius * (1 - _NEARLY)
        again = np.flatnonzero(unsure & (near < np.inf))
        if len(again):
            found[again] = self.first_of_equals(points[again], near[again])
        return found

    def first_of_equals(self, points: np.ndarray, near: np.ndarray) -> np.ndarray:
        """Return the codes that MRtrix's order of search prefers, 0 where too far."""
        tied = self.tree.query_ball_point(points, near * (1 + _NEARLY) + 1e-12)
        who = np.repeat(np.arange(len(points)), [len(one) for one in tied])
        which = np.concatenate(tied).astype(np.intp)
        dx, dy, dz = (points[who] - self.centres[which]).T
        distance = np.sqrt(dx * dx + (dy * dy + dz * dz))
        own = np.stack(transform_points(self.nodes.inverse, points.T), axis=1)
        own = np.trunc(own + np.copysign(0.5, own))
        x, y, z = ((self.voxels[which] - own[who]) * self.nodes.spacing).T
        around = np.sqrt(z**2 + y**2 + x**2)
        order = np.lexsort((x, y, z, around, distance, who))
        first = order[np.unique(who[order], return_index=True)[1]]
        return np.where(distance[first] < self.radius, self.codes[which[first]], 0)
