"""Give the two ends of every streamline to nodes, as MRtrix 3.0.3 does.

Three rules, each of which gives an end the code of a node, or 0:

- `end_voxels`: the label of the voxel in which the end lies;
- `radial`: the label of the nearest labelled voxel, by the distance of its centre
  from the end, if that is below the radius;
- `reverse_search`: the first label met on the way from the end along the streamline
  to its middle; the way is at most as long as the radius, 0 for no limit.

Distances are in mm, halves are rounded away from 0, and of voxels at the same distance
the one wins that comes first in MRtrix's order of search.
"""

from collections.abc import Callable

import numpy as np

from brainlsap.data.node_images import NodeImage
from brainlsap.data.radial_search import RadialSearch
from brainlsap.data.streamline_blocks import StreamlineBlock


def reverse_search(
    nodes: NodeImage, block: StreamlineBlock, radius: float, *, at_end: bool
) -> np.ndarray:
    """Follow streamlines from one end to their middle until a node is met.

    Parameters
    ----------
    nodes : NodeImage
        Codes of nodes in space.
    block : StreamlineBlock
        Streamlines with one point at least.
    radius : float
        Longest way in mm; 0 for no limit.
    at_end : bool
        Whether to start at the last point.

    Returns
    -------
    int array of shape (n_streamlines,)
    """
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
            with np.errstate(over="ignore"):  # too far is too far
                way[active] += np.sqrt(d[:, 0] ** 2 + (d[:, 1] ** 2 + d[:, 2] ** 2))
            active = active[~(way[active] > radius)]
        active = active[place[active] != middle[active]]
    return codes


def assign_ends(
    nodes: NodeImage, assignment: str, radius: float
) -> Callable[[StreamlineBlock], tuple[np.ndarray, np.ndarray]]:
    """Return the function that gives the ends of a block's streamlines to nodes.

    Parameters
    ----------
    nodes : NodeImage
        Codes of nodes in space.
    assignment : {"end_voxels", "radial", "reverse_search"}
        The rule.
    radius : float
        In mm; not used by `end_voxels`.

    Returns
    -------
    callable
        From a block to the codes at the first and at the last point.
    """
    if assignment == "reverse_search":
        return lambda block: (
            reverse_search(nodes, block, radius, at_end=False),
            reverse_search(nodes, block, radius, at_end=True),
        )
    search = RadialSearch(nodes, radius) if assignment == "radial" else nodes.at

    def ends(block: StreamlineBlock) -> tuple[np.ndarray, np.ndarray]:
        both = np.concatenate([block.starts, block.stops - 1])
        codes = search(block.points[both])
        return codes[: len(block.starts)], codes[len(block.starts) :]

    return ends
