"""The strongest edges of a network in the outline of the head's brain."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from brainlsap.data.atlas import Atlas
from brainlsap.exceptions import ParameterError
from brainlsap.report.axes import INK
from brainlsap.report.network_layout import (
    LOBE_COLOURS,
    OTHER_COLOUR,
    Network,
    as_network,
    strongest_edges,
)
from brainlsap.report.projection import CAMERAS, rasterise
from brainlsap.report.surface_pictures import cortex_mesh
from brainlsap.report.surface_values import as_atlas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Title, camera, and whose regions: edges between the hemispheres show from above only.
_PANELS = (
    ("Left hemisphere", "from left", "LM"),
    ("Both, from above", "from above", "LMR"),
    ("Right hemisphere", "from right", "MR"),
)


def plot_glass_brain(
    connectome: np.ndarray | pd.DataFrame,
    region_names: Sequence[str] | None = None,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    n_edges: int = 100,
    cmap: Any = "viridis",
    label: str = "weight",
    title: str | None = None,
) -> "Figure":
    """Draw the strongest edges between the centres of regions, in three outlines.

    Parameters
    ----------
    connectome : array of shape (n_rois, n_rois), or DataFrame with names
        Symmetric weights.
    region_names : sequence of str or None
        Name of every row; None for a data frame.
    atlas : str, Path or Atlas
        Knows the centres of regions.
    n_edges : int
        How many of the strongest edges of the whole network. From the sides only
        those within that hemisphere are drawn.
    cmap : str or Colormap
        Colours of the edges, weakest to strongest, by their logarithm.
    label : str
        What the weights are, with their unit.
    title : str or None
        Title of the figure.

    Returns
    -------
    Figure
        Dots are regions that an edge reaches, in the colour of their lobe, larger
        with more edges.

    Raises
    ------
    ParameterError
        If there is no edge to draw, or a region has no centre.
    RegionNameError
        If a name is unknown or doubled.

    Examples
    --------
    >>> names = ["lh_G_precuneus", "Left-Putamen", "Right-Putamen"]
    >>> weights = np.array([[0.0, 5, 0], [5, 0, 40], [0, 40, 0]])
    >>> figure = plot_glass_brain(weights, names, n_edges=2)
    >>> [ax.get_title() for ax in figure.axes][:3]
    ['Left hemisphere', 'Both, from above', 'Right hemisphere']
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    atlas = as_atlas(atlas)
    network = as_network(connectome, region_names, atlas)
    centres = _centres(network, atlas)
    edges = strongest_edges(network.weights, n_edges)
    weights = np.abs(network.weights[edges[:, 0], edges[:, 1]])
    low, high = weights.min(), weights.max()
    norm = LogNorm(low, high if high > low else 1.01 * low)
    scale = ScalarMappable(norm, cmap)
    figure = Figure(figsize=(10, 3.4), layout="compressed")
    panels = figure.subplots(1, 3, width_ratios=[1.25, 1, 1.25])
    for ax, (name, camera, sides) in zip(panels, _PANELS, strict=True):
        _draw_panel(ax, camera, sides, network, edges, centres, scale)
        ax.set_title(name, fontsize=9, color=INK)
    bar = figure.colorbar(scale, ax=list(panels), shrink=0.7, pad=0.01)
    bar.set_label(f"{label} ({len(edges)} strongest edges)", fontsize=9)
    bar.outline.set_visible(False)
    _explain_colours(figure, network)
    if title:
        figure.suptitle(title, fontsize=11, color=INK)
    return figure


def _centres(network: Network, atlas: Atlas) -> np.ndarray:
    centres = atlas.regions.iloc[network.places][["x", "y", "z"]].to_numpy(float)
    without = np.flatnonzero(np.isnan(centres).any(axis=1))
    if len(without):
        region = atlas.names[network.places[without[0]]]
        raise ParameterError(
            f"atlas {atlas.name} has no centre of {region} ({len(without)} without "
            "one); put columns x, y, z in mm into its regions.tsv, or use plot_ring."
        )
    return centres


def _explain_colours(figure: "Figure", network: Network) -> None:
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], marker="o", linestyle="", color=colour, markersize=5, label=lobe)
        for lobe, colour in LOBE_COLOURS.items()
        if lobe in network.lobes
    ]
    if marks:
        style = {"ncols": 7, "frameon": False, "fontsize": 8}
        figure.legend(handles=marks, loc="outside lower center", **style)


def _draw_panel(
    ax: "Axes",
    camera: str,
    sides: str,
    network: Network,
    edges: np.ndarray,
    centres: np.ndarray,
    scale: Any,
) -> None:
    from matplotlib.collections import LineCollection

    for x, y, mask in (_silhouette(camera, side) for side in sides if side != "M"):
        ax.contourf(x, y, mask, levels=[0.5, 2], colors=["#F1F1F1"])
        ax.contour(x, y, mask, levels=[0.5], colors=["#9A9A9A"], linewidths=0.8)
    seen = np.isin(network.sides, list(sides))
    inside = edges[seen[edges].all(axis=1)]
    flat = centres @ CAMERAS[camera].T[:, :2]
    weights = np.abs(network.weights[inside[:, 0], inside[:, 1]])
    widths = 0.5 + 1.8 * scale.norm(weights) if len(inside) else []
    lines = LineCollection(flat[inside], linewidths=widths, alpha=0.9, zorder=3)
    lines.set_color(scale.to_rgba(weights))
    ax.add_collection(lines)
    count = np.bincount(inside.ravel(), minlength=len(flat))
    hubs = count > 0
    colours = [LOBE_COLOURS.get(lobe, OTHER_COLOUR) for lobe in network.lobes[hubs]]
    sizes = 5 + 3.5 * count[hubs]
    x, y = flat[hubs].T
    ax.scatter(x, y, s=sizes, c=colours, edgecolors="white", lw=0.4, zorder=4)
    if camera == "from above":
        for side, across in (("L", 0.0), ("R", 1.0)):
            ax.text(across, 0.97, side, transform=ax.transAxes, ha="center", color=INK)
    ax.set_aspect("equal")
    ax.set_axis_off()


@lru_cache(maxsize=8)
def _silhouette(camera: str, side: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where the pial surface of a hemisphere is seen: x, y in mm, and a mask."""
    from scipy.ndimage import gaussian_filter

    points, faces = cortex_mesh("pial", side)
    seen = points @ CAMERAS[camera].T
    mask = np.pad(rasterise(seen, faces, 1.0).face >= 0, 2).astype(float)
    mask = gaussian_filter(mask, 1.2)  # mm: takes the pixels' stairs away
    low = seen[:, :2].min(axis=0)
    rows, columns = mask.shape
    x = low[0] + np.arange(columns) - 2.5
    y = low[1] + (rows - 1 - np.arange(rows)) - 2.5
    return x, y, mask
