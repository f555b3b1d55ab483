"""Connectomes as nilearn draws them: edges in a glass brain, and the matrix by lobe."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.ticker import LogLocator, MaxNLocator
from nilearn import plotting

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.exceptions import ParameterError, check_at_least
from brainlsap.report import figures
from brainlsap.report.figures import PAGE, check_width, new_figure, own_axes, styled

# From the front of the head to its back, and inwards; lobes of other names follow.
_LOBES = ("frontal", "insula", "limbic", "temporal", "parietal", "occipital")


@styled()
def plot_connectome(
    connectome: np.ndarray | pd.DataFrame,
    region_names: Sequence[str] | Atlas | None = None,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    n_edges: int = 100,
    label: str = "weight",
    title: str = "",
    width: float = PAGE,
) -> Any:
    """Draw the strongest edges of a connectome in a glass brain.

    Parameters
    ----------
    connectome : array or DataFrame of shape (n_rois, n_rois)
        Symmetric; what is on its diagonal is not drawn.
    region_names : sequence of str, optional
        Name of each row of an array; by default those of the atlas. A data frame has
        its own, its index. An atlas may stand here, too.
    atlas : str, Path or Atlas
        With coordinates of its regions.
    n_edges : int
        How many edges to draw; dots are their ends, larger with more edges.
    label : str
        What the weights are, with their unit, beside the colour bar.
    title : str
        Title of the figure.
    width : float
        In mm, such as 85 (one column of a journal) or 180 (two).

    Returns
    -------
    nilearn.plotting.displays.OrthoProjector
        Its `frame_axes.figure` is saved as figures of :func:`plot_regions` are.

    Raises
    ------
    ParameterError
        If there is no edge, a region has no coordinates, the connectome is not finite
        and symmetric off its diagonal, or its shape or names are not those of
        `region_names`.
    """
    atlas, weights, places = _named_connectome(connectome, region_names, atlas)
    check_at_least("n_edges", n_edges, 1)
    centres = atlas.coordinates[places]
    for k in places[np.isnan(centres).any(axis=1)]:
        raise ParameterError(f"{atlas.names[k]} has no coordinates; try plot_matrix.")
    size = np.sort(np.abs(weights[np.triu_indices(len(weights), 1)]))
    weights = np.where(np.abs(weights) >= size[-n_edges:][0], weights, 0.0)
    n_of_region = np.count_nonzero(weights, axis=0)
    low, cmap = (0.0, "viridis") if weights.min() >= 0 else (-size[-1], "RdBu_r")
    check_width(width)
    tall = min(80, 195 * (width - 18) / (195 + 150 + 195)) + 8  # of three views
    figure = new_figure(width, tall)
    how: Any = {"edge_cmap": cmap, "edge_vmin": low, "edge_vmax": size[-1]}
    how |= {"edge_kwargs": {"linewidth": 1}, "node_color": "black"}
    sizes = np.where(n_of_region > 0, 2 + 2 * n_of_region, 0) * (width / PAGE) ** 2
    how |= {"node_size": sizes, "display_mode": "lzr", "colorbar": True}
    how |= {"figure": figure, "axes": (0, 0, 1 - 14 / width, 1 - 6 / tall)}
    display = plotting.plot_connectome(weights, centres, annotate=False, **how)
    display.annotate(size=7)
    patches = [one for view in display.axes.values() for one in view.ax.patches]
    plt.setp(patches, linewidth=0.8)
    axis = figure.axes[-1].yaxis  # it came last, with its numbers at the left
    axis.set(ticks_position="right", label_position="right", label_text=label)
    axis.label.set_parse_math(True)
    locator = MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])
    axis.set(major_locator=locator, major_formatter="{x:.12g}")
    style: Any = {"fontsize": 9, "ha": "center", "va": "top", "parse_math": True}
    figure.text(0.5, 1 - 2 / tall, title, **style)
    return display


@styled()
def plot_matrix(
    connectome: np.ndarray | pd.DataFrame,
    region_names: Sequence[str] | Atlas | None = None,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    label: str = "weight",
    log: bool | None = None,
    axes: Axes | None = None,
    width: float = 0.8 * PAGE,
) -> Axes:
    """Draw a connectome as a matrix, ordered by hemisphere and lobe.

    Parameters
    ----------
    connectome, region_names, atlas
        As for :func:`plot_connectome`; no coordinates are needed.
    label : str
        As for :func:`plot_connectome`.
    log : bool, optional
        Logarithmic colours, pairs without an edge blank; by default where no weight is
        negative. Others have the middle of their colours at 0.
    axes, width
        As for :func:`plot_scores`.

    Returns
    -------
    Axes

    Raises
    ------
    ParameterError
        As for :func:`plot_connectome`.
    """
    atlas, weights, places = _named_connectome(connectome, region_names, atlas)
    regions = atlas.regions.iloc[places]
    lobe = regions["lobe"].replace("n/a", "")
    sides = regions["hemisphere"].map({"L": "left ", "R": "right "}).fillna("")
    of_lobe = lobe.map(dict(zip(_LOBES, range(6), strict=True))).fillna(6)
    order = np.lexsort((lobe, of_lobe, regions["hemisphere"]))
    weights = weights[np.ix_(order, order)]
    np.fill_diagonal(weights, np.nan)
    is_signed, high = weights[weights < 0].any(), np.nanmax(np.abs(weights))
    log = not is_signed if log is None else log
    if log and is_signed:
        raise ParameterError("log= draws no negative weights; log=False draws them.")
    weights[(weights == 0) & log] = np.nan
    low = -high if is_signed else np.nanmin(weights)
    norm = LogNorm(low, max(high, 1.01 * low)) if log else Normalize(low, high)
    (axes,) = own_axes(axes, width)
    image = axes.imshow(weights, cmap="RdBu_r" if is_signed else "viridis", norm=norm)
    ticks: Any = MaxNLocator(6)
    if log and high > 300 * low:  # two numbers at least, and eight at most
        ticks = 10.0 ** np.arange(np.ceil(np.log10(low)), np.log10(high) + 1e-9)
        ticks = ticks[:: -(-len(ticks) // 8)]
    elif log and high >= 5 * low:
        ticks = LogLocator(subs=(1, 2, 5), numticks=9)
    style: Any = {"ax": axes, "shrink": 0.8, "pad": 0.02, "format": "{x:.12g}"}
    # at the foot of their room: a layout has none for labels of axes that move down
    style |= {"ticks": ticks, "anchor": (0, 0), "panchor": (1, 0)}
    bar = axes.figure.colorbar(image, label=label, **style)
    bar.minorticks_off()
    bar.ax.yaxis.label.set_parse_math(True)
    names = (sides + lobe).str.strip().replace("", "midline").to_numpy(str)[order]
    lobes = pd.Series(np.arange(len(names))).groupby(names, sort=False)
    style = {"color": "#777777", "linewidth": 0.4, "clip_on": False}
    middles, ends = lobes.mean(), lobes.max() + 0.5
    axes.hlines(ends, -0.5, len(names) - 0.5, **style)
    axes.vlines(ends, -0.5, len(names) - 0.5, **style)
    # labels of small lobes move apart, each with a line to its lobe
    side = min(figures.cell_size(axes) - (42, 27))  # without labels and colour bar
    apart = len(names) * min(figures.LINE / max(side, 1), 1 / len(middles))
    steps = apart * np.arange(len(middles))
    down = np.maximum.accumulate(middles - steps)
    up = np.minimum.accumulate((middles - steps)[::-1])[::-1]
    places = steps + (down + up) / 2
    axes.autoscale(False)  # lines of labels beyond the matrix do not widen it
    out = np.repeat([[0], [-0.02]], len(middles), axis=1)
    axes.plot(out, [middles, places], transform=axes.get_yaxis_transform(), **style)
    axes.plot([middles, places], out, transform=axes.get_xaxis_transform(), **style)
    axes.set_yticks(places, middles.index)
    axes.set_xticks(places, middles.index, rotation=90)
    axes.tick_params(length=0, pad=7, labelbottom=True, bottom=False)
    return axes


def _named_connectome(
    connectome: Any, names: Any, atlas: Any
) -> tuple[Atlas, np.ndarray, np.ndarray]:
    """Return atlas, weights without self-connections, and each row's position."""
    if isinstance(names, Atlas):
        atlas, names = names, None
    atlas, frame = load_atlas(atlas), connectome
    # rows and columns that are only numbered have no names: such a frame is an array
    if not all(isinstance(one, pd.RangeIndex) for one in getattr(frame, "axes", ())):
        own = list(frame.index)
        if {*own} != {*frame.columns} or (names is not None and list(names) != own):
            told = "the same names as index and columns; leave region_names= out"
            raise ParameterError(f"connectome, a data frame, must have {told}.")
        names, connectome = own, frame.reindex(columns=own)
    places = np.arange(len(atlas)) if names is None else atlas.match(names)
    W, shape = np.array(connectome, dtype=float), (len(places), len(places))
    if W.shape != shape:
        told = f"{shape} ({atlas.name}, or region_names); got {W.shape}"
        raise ParameterError(f"connectome must be of shape {told}.")
    np.fill_diagonal(W, 0.0)  # whatever it holds
    if n := np.count_nonzero(~np.isfinite(W) | ~np.isclose(W, W.T)):
        told = f"finite and symmetric; {n} of {W.size} weights are not"
        raise ParameterError(f"connectome must be {told}.")
    if not W.any():
        raise ParameterError("connectome joins no two regions; nothing to draw.")
    return atlas, W, places
