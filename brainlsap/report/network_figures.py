"""Pictures of networks: the matrix by lobe, and a ring of the strongest edges."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from brainlsap.data.atlas import Atlas
from brainlsap.exceptions import ParameterError
from brainlsap.report.axes import INK, new_axes
from brainlsap.report.network_layout import (
    LOBE_COLOURS,
    OTHER_COLOUR,
    Network,
    as_network,
    order_by_lobe,
    runs_of,
    strongest_edges,
)
from brainlsap.report.surface_values import as_atlas

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIDE = {"L": "left", "R": "right", "M": "midline"}


def plot_connectome(
    connectome: np.ndarray | pd.DataFrame,
    region_names: Sequence[str] | None = None,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    log: bool = True,
    cmap: Any = "viridis",
    label: str = "weight",
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw a connectome as a matrix ordered by hemisphere and lobe.

    Parameters
    ----------
    connectome : array of shape (n_rois, n_rois), or DataFrame with names
        Symmetric weights.
    region_names : sequence of str or None
        Name of every row; None for a data frame.
    atlas : str, Path or Atlas
        Knows the lobes.
    log : bool
        Colours by the logarithm, as fits counts of streamlines; weights of 0 and
        below, and the diagonal, are blank. Without it, all but the diagonal are shown.
    cmap : str or Colormap
        Colours, low to high.
    label : str
        What the weights are, with their unit.
    ax : Axes, optional
        Where to draw; by default a new figure, without a window.

    Returns
    -------
    Axes
        Left hemisphere first, in each the lobes from the front; lines between lobes.

    Raises
    ------
    ParameterError
        If rows have no names, or the weights are not square and symmetric, or none
        can be drawn.
    RegionNameError
        If a name is unknown or doubled.

    Examples
    --------
    >>> names = ["lh_G_precuneus", "Left-Putamen", "Right-Putamen"]
    >>> weights = np.array([[0.0, 5, 0], [5, 0, 40], [0, 40, 0]])
    >>> ax = plot_connectome(weights, names)
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['left parietal', 'left subcortical', 'right subcortical']
    """
    from matplotlib.colors import LogNorm, Normalize

    network = as_network(connectome, region_names, as_atlas(atlas))
    order = order_by_lobe(network.sides, network.lobes)
    weights = network.weights[np.ix_(order, order)].copy()
    np.fill_diagonal(weights, np.nan)
    if log:
        weights[weights <= 0] = np.nan
    shown = weights[~np.isnan(weights)]
    if not shown.size:
        raise ParameterError(
            "connectome joins no two regions; there is nothing to draw."
        )
    ax = new_axes(6.6, 5.6) if ax is None else ax
    low, high = shown.min(), shown.max()
    scale: Any = LogNorm if log else Normalize
    norm = scale(low, high if high > low else low * 1.01 + (not log))
    image = ax.imshow(weights, cmap=cmap, norm=norm, interpolation="none")
    ax.set_facecolor("#F2F2F2")
    _mark_lobes(ax, network, order)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.75, pad=0.02)
    bar.set_label(label)
    bar.outline.set_visible(False)
    return ax


def plot_ring(
    connectome: np.ndarray | pd.DataFrame,
    region_names: Sequence[str] | None = None,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    n_edges: int = 100,
    cmap: Any = "viridis",
    label: str = "weight",
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the strongest edges of a network inside a ring of its regions.

    Parameters
    ----------
    connectome : array of shape (n_rois, n_rois), or DataFrame with names
        Symmetric weights.
    region_names : sequence of str or None
        Name of every row; None for a data frame.
    atlas : str, Path or Atlas
        Knows the lobes.
    n_edges : int
        How many of the strongest edges.
    cmap : str or Colormap
        Colours of the edges drawn, weakest to strongest, by their logarithm.
    label : str
        What the weights are, with their unit.
    ax : Axes, optional
        Where to draw; by default a new figure, without a window.

    Returns
    -------
    Axes
        Left hemisphere on the left, its frontal lobe on top; right mirrored. The arc
        outside tells the lobe.

    Raises
    ------
    ParameterError
        If there is no edge to draw, or the weights cannot be used.
    RegionNameError
        If a name is unknown or doubled.

    Examples
    --------
    >>> names = ["lh_G_precuneus", "Left-Putamen", "Right-Putamen"]
    >>> weights = np.array([[0.0, 5, 0], [5, 0, 40], [0, 40, 0]])
    >>> ax = plot_ring(weights, names, n_edges=1)
    >>> len(ax.collections[0].get_paths())
    1
    """
    network = as_network(connectome, region_names, as_atlas(atlas))
    edges = strongest_edges(network.weights, n_edges)
    angle = _angles(network)
    ax = new_axes(6.4, 5.6) if ax is None else ax
    drawn = _add_edges(ax, network, edges, angle, cmap)
    _add_arcs(ax, network, angle)
    ax.set(xlim=(-1.35, 1.35), ylim=(-1.25, 1.25), aspect="equal")
    ax.set_axis_off()
    bar = ax.figure.colorbar(drawn, ax=ax, shrink=0.55, pad=0.02)
    bar.set_label(f"{label} ({len(edges)} strongest edges)")
    bar.outline.set_visible(False)
    return ax


def _mark_lobes(ax: "Axes", network: Network, order: np.ndarray) -> None:
    names = [
        f"{_SIDE.get(side, side)} {lobe}".strip()
        for side, lobe in zip(network.sides[order], network.lobes[order], strict=True)
    ]
    runs = runs_of(names)
    for _, start, _ in runs[1:]:
        for line in (ax.axhline, ax.axvline):
            line(start - 0.5, color="#777777", linewidth=0.4)
    middles = [(start + end - 1) / 2 for _, start, end in runs]
    ax.set_yticks(middles, [name for name, _, _ in runs], fontsize=7.5)
    ax.set_xticks(middles, [name for name, _, _ in runs], fontsize=7.5, rotation=90)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def _angles(network: Network) -> np.ndarray:
    """Return where regions stand on the ring, in radians; 0 is right, left mirrored."""
    angle = np.zeros(len(network.sides))
    gap = 0.06  # of a half, left free above and below
    for side, sign in (("L", 1), ("R", -1)):
        own = (side,) if side == "L" else ("R", "M")
        here = np.flatnonzero(np.isin(network.sides, own))
        order = here[order_by_lobe(network.sides[here], network.lobes[here])]
        steps = (np.arange(len(order)) + 0.5) / max(len(order), 1)
        angle[order] = np.pi / 2 + sign * np.pi * (gap / 2 + (1 - gap) * steps)
    return angle


def _add_edges(
    ax: "Axes", network: Network, edges: np.ndarray, angle: np.ndarray, cmap: Any
) -> Any:
    from matplotlib.collections import PathCollection
    from matplotlib.colors import LogNorm
    from matplotlib.path import Path as Line

    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    ends = ring[edges]  # (n_edges, 2, 2)
    # Neighbours bend little, those across the ring pass near its middle.
    bend = 0.75 * (1 - np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1) / 2)
    middle = bend[:, None] * ends.mean(axis=1)
    codes = [Line.MOVETO, Line.CURVE3, Line.CURVE3]
    curves = [
        Line([first, through, second], codes)
        for (first, second), through in zip(ends, middle, strict=True)
    ]
    weights = np.abs(network.weights[edges[:, 0], edges[:, 1]])
    low, high = weights.min(), weights.max()
    share = (weights - low) / (high - low) if high > low else np.ones(len(weights))
    drawn = PathCollection(curves, facecolors="none", linewidths=0.6 + 1.6 * share)
    drawn.set_array(weights)
    drawn.set_cmap(cmap)
    drawn.set_norm(LogNorm(low, high if high > low else 1.01 * low))
    drawn.set_transform(ax.transData)
    ax.add_collection(drawn, autolim=False)
    ax.plot(*ring.T, ".", color=INK, markersize=2.5)
    return drawn


def _add_arcs(ax: "Axes", network: Network, angle: np.ndarray) -> None:
    from matplotlib.patches import Wedge

    names = [f"{a}|{b}" for a, b in zip(network.sides, network.lobes, strict=True)]
    for name in dict.fromkeys(names):
        here = angle[[one == name for one in names]]
        half = 0.45 * np.pi / max((network.sides == name[0]).sum(), 1)
        low, high = np.degrees([here.min() - half, here.max() + half])
        lobe = name.partition("|")[2]
        colour = LOBE_COLOURS.get(lobe, OTHER_COLOUR)
        ax.add_patch(Wedge((0, 0), 1.09, low, high, width=0.05, color=colour))
        middle = np.radians((low + high) / 2)
        x, y = 1.12 * np.cos(middle), 1.12 * np.sin(middle)
        across = "right" if x < 0 else "left"
        told = lobe or "no lobe"
        ax.text(x, y, told, ha=across, va="center", fontsize=7.5, color=INK)
    for side, x in (("L", -1.25), ("R", 1.25)):
        ax.text(x, 1.15, side, ha="center", fontsize=11, color=INK)
