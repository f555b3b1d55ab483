"""Connectomes as nilearn draws them: edges in a glass brain, and the matrix by lobe."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm, Normalize
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
    weights, regions = _named_connectome(connectome, region_names, atlas)
    check_at_least("n_edges", n_edges, 1)
    centres = regions[["x", "y", "z"]].to_numpy(float)
    lacking = np.isnan(centres).any(axis=1)
    if lacking.any():
        raise ParameterError(
            f"{lacking.sum()} regions have no coordinates, "
            f"{regions['name'].iloc[lacking.argmax()]} first; plot_matrix needs none."
        )
    size = np.sort(np.abs(weights[np.triu_indices(len(weights), 1)]))
    weights = np.where(np.abs(weights) >= size[-n_edges:][0], weights, 0.0)
    n_of_region = np.count_nonzero(weights, axis=0)
    own: dict[str, Any] = {
        "node_size": np.where(n_of_region > 0, 6 + 4 * n_of_region, 0),
        "node_color": "black",
        "display_mode": "lzr",
        "colorbar": True,
    }
    if weights.min() >= 0:
        own |= {"edge_cmap": "viridis", "edge_vmin": 0.0, "edge_vmax": size[-1]}
    display = plotting.plot_connectome(weights, centres, **{**own, **options})
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

    Returns
    -------
    Axes

    Raises
    ------
    ParameterError
        As for :func:`plot_connectome`.
    """
    weights, regions = _named_connectome(connectome, region_names, atlas)
    lobes = regions["lobe"].fillna("").to_numpy(str)
    of_lobe = [_LOBES.index(one) if one in _LOBES else len(_LOBES) for one in lobes]
    order = np.lexsort((lobes, of_lobe, regions["hemisphere"]))
    weights = weights[np.ix_(order, order)]
    np.fill_diagonal(weights, np.nan)
    if log:
        weights[weights <= 0] = np.nan
        if np.isnan(weights).all():
            raise ParameterError("No weight is above 0; log=False draws others.")
    low, high = np.nanmin(weights), np.nanmax(weights)
    norm = LogNorm(low, max(high, 1.01 * low)) if log else Normalize(low, high)
    axes = plt.figure(figsize=(6.5, 5.6), layout="compressed").add_subplot()
    image = plotting.plot_matrix(
        weights, axes=axes, colorbar=False, cmap="viridis", norm=norm
    )
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.8, pad=0.02, label=label)
    bar.ax.tick_params(labelsize=8)
    sides = regions["hemisphere"].map({"L": "left ", "R": "right "}).fillna("")
    names = (sides + np.where(lobes == "", "no lobe", lobes)).to_numpy(str)[order]
    starts = np.flatnonzero(np.append(True, names[1:] != names[:-1]))
    ends = np.append(starts[1:], len(names))
    for line in (axes.axhline, axes.axvline):
        for end in ends:
            line(end - 0.5, color="#777777", linewidth=0.4)
    middles = (starts + ends - 1) / 2
    axes.set_yticks(middles, names[starts], fontsize=7)
    axes.set_xticks(middles, names[starts], fontsize=7, rotation=90)
    axes.tick_params(length=0, labelbottom=True, bottom=False)
    return axes


def _named_connectome(
    connectome: np.ndarray | pd.DataFrame,
    region_names: Sequence[str] | None,
    atlas: str | Path | Atlas,
) -> tuple[np.ndarray, pd.DataFrame]:
    """Return weights without self-connections, and the atlas' region of each row."""
    atlas = load_atlas(atlas)
    if isinstance(connectome, pd.DataFrame) and region_names is None:
        region_names = list(connectome.index)
        connectome = connectome.reindex(columns=region_names)
    regions = atlas.regions
    if region_names is not None:
        regions = regions.iloc[atlas.match(region_names)]
    W = np.array(connectome, dtype=float)
    shape = (len(regions), len(regions))
    if W.shape != shape or not np.isfinite(W).all() or not np.allclose(W, W.T):
        raise ParameterError(
            f"connectome must be finite, symmetric and of shape {shape}, as its region "
            f"names are; got one of shape {W.shape}."
        )
    np.fill_diagonal(W, 0.0)
    if not W.any():
        raise ParameterError("connectome joins no two regions; nothing to draw.")
    return W, regions
