"""Connectomes as nilearn draws them: edges in a glass brain, and the matrix by lobe."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from nilearn import plotting

from brainlsap.arrays import check_at_least
from brainlsap.atlas import Atlas, load_atlas
from brainlsap.exceptions import ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# From the front of the head to its back, and inwards; lobes of other names follow.
_LOBES = ("frontal", "insula", "limbic", "temporal", "parietal", "occipital")


def plot_connectome(
    connectome: np.ndarray | pd.DataFrame,
    region_names: Sequence[str] | None = None,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    n_edges: int = 100,
    label: str = "weight",
    **options: Any,
) -> Any:
    """Draw the strongest edges of a connectome in a glass brain.

    Parameters
    ----------
    connectome : array or DataFrame of shape (n_rois, n_rois)
        Symmetric.
    region_names : sequence of str, optional
        Name of each row; by default the data frame's, else those of the atlas.
    atlas : str, Path or Atlas
        With coordinates of its regions.
    n_edges : int
        How many edges to draw; dots are their ends, larger with more edges.
    label : str
        What the weights are, with their unit, beside the colour bar.
    **options
        As for :func:`nilearn.plotting.plot_connectome`.

    Returns
    -------
    nilearn.plotting.displays.OrthoProjector

    Raises
    ------
    ParameterError
        If there is no edge, a region has no coordinates, or the connectome's shape is
        not that of the names.
    """
    weights, atlas, places = _named_connectome(connectome, region_names, atlas)
    check_at_least("n_edges", n_edges, 1)
    centres = atlas.regions[["x", "y", "z"]].to_numpy(float)[places]
    lacking = np.isnan(centres).any(axis=1)
    if lacking.any():
        raise ParameterError(
            f"{lacking.sum()} regions of atlas {atlas.name} have no coordinates, "
            f"{atlas.names[places[lacking][0]]} first; plot_matrix needs none."
        )
    size = np.sort(np.abs(weights[np.triu_indices(len(weights), 1)]))
    weights = np.where(np.abs(weights) >= size[-n_edges:][0], weights, 0.0)
    signs = {"edge_cmap": "viridis", "edge_vmin": 0.0, "edge_vmax": size[-1]}
    n_of_region = np.count_nonzero(weights, axis=0)
    sizes = np.where(n_of_region > 0, 6 + 4 * n_of_region, 0)
    own: dict[str, Any] = {
        "node_size": sizes,
        "node_color": "black",
        "display_mode": "lzr",
    }
    own |= signs if weights.min() >= 0 else {}
    display = plotting.plot_connectome(weights, centres, **{**own, **options})
    if options.get("colorbar", True):
        bar = display.frame_axes.figure.axes[-1]  # it came last
        bar.yaxis.set_label_position("left")
        bar.set_ylabel(label)
    return display


def plot_matrix(
    connectome: np.ndarray | pd.DataFrame,
    region_names: Sequence[str] | None = None,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    label: str = "weight",
    log: bool = True,
    **options: Any,
) -> "Axes":
    """Draw a connectome as a matrix, ordered by hemisphere and lobe.

    Parameters
    ----------
    connectome, region_names, atlas
        As for :func:`plot_connectome`; no coordinates are needed.
    label : str
        As for :func:`plot_connectome`.
    log : bool
        Logarithmic colours; pairs without an edge are blank.
    **options
        As for :func:`nilearn.plotting.plot_matrix`.

    Returns
    -------
    Axes

    Raises
    ------
    ParameterError
        As for :func:`plot_connectome`.
    """
    weights, atlas, places = _named_connectome(connectome, region_names, atlas)
    regions = atlas.regions.iloc[places]
    lobes = regions["lobe"].fillna("").astype(str).tolist()
    sides = regions["hemisphere"].tolist()
    of_lobe = [_LOBES.index(one) if one in _LOBES else len(_LOBES) for one in lobes]
    order = sorted(range(len(lobes)), key=lambda k: (sides[k], of_lobe[k], lobes[k]))
    weights = weights[np.ix_(order, order)]
    np.fill_diagonal(weights, np.nan)
    if log:
        weights[weights <= 0] = np.nan
        if np.isnan(weights).all():
            raise ParameterError("No weight is above 0; log=False draws others.")
    low, high = np.nanmin(weights), np.nanmax(weights)
    own: dict[str, Any] = {
        "cmap": "viridis",
        "norm": LogNorm(low, high if high > low else 1.01 * low),
    }
    own = own if log else {"cmap": "viridis", "vmin": low, "vmax": high}
    if not {"figure", "axes"} & set(options):
        own["axes"] = plt.figure(figsize=(6.5, 5.6), layout="compressed").add_subplot()
    colorbar = options.pop("colorbar", True)
    ax = plotting.plot_matrix(weights, colorbar=False, **{**own, **options}).axes
    if colorbar:
        bar = ax.figure.colorbar(ax.images[0], ax=ax, shrink=0.8, pad=0.02, label=label)
        bar.ax.tick_params(labelsize=8)
    full = {"L": "left ", "R": "right "}
    names = [f"{full.get(sides[k], '')}{lobes[k] or 'no lobe'}" for k in order]
    middles, start = [], 0
    for name, run in groupby(names):
        end = start + len(list(run))
        middles.append(((start + end - 1) / 2, name))
        for line in (ax.axhline, ax.axvline):
            line(end - 0.5, color="#777777", linewidth=0.4)
        start = end
    ticks, words = zip(*middles, strict=True)
    ax.set_yticks(ticks, words, fontsize=7)
    ax.set_xticks(ticks, words, fontsize=7, rotation=90)
    ax.tick_params(length=0, labelbottom=True, bottom=False)
    return ax


def _named_connectome(
    connectome: np.ndarray | pd.DataFrame,
    region_names: Sequence[str] | None,
    atlas: str | Path | Atlas,
) -> tuple[np.ndarray, Atlas, np.ndarray]:
    """Return weights without self-connections, the atlas, and each row's region."""
    atlas = load_atlas(atlas)
    if isinstance(connectome, pd.DataFrame) and region_names is None:
        region_names = list(connectome.index)
        if list(connectome.columns) != region_names:
            raise ParameterError("connectome's rows and columns must have one order.")
    places = atlas.match(atlas.names if region_names is None else region_names)
    weights = np.array(connectome, dtype=float)
    n_rois = len(places)
    if weights.shape != (n_rois, n_rois):
        raise ParameterError(
            f"connectome must have shape (n_rois, n_rois) for {n_rois} region names, "
            f"got {weights.shape}."
        )
    if not np.isfinite(weights).all() or not np.allclose(weights, weights.T, rtol=1e-5):
        raise ParameterError("connectome must be finite and symmetric.")
    np.fill_diagonal(weights, 0.0)
    if not weights.any():
        raise ParameterError("connectome joins no two regions; nothing to draw.")
    return weights, atlas, places
