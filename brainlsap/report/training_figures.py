"""Heat scales during training: on the brain at its quarters, and as lines."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from brainlsap.data.atlas import Atlas
from brainlsap.exceptions import ParameterError
from brainlsap.report.axes import INK, bare, new_axes, verbatim
from brainlsap.report.surface import plot_regions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's, without black and yellow: one is text, the other too pale for a line.
_LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SCALE_LABEL = "heat scale"


def scales_at_quarters(
    scales: Any, epochs: Sequence[int], region_names: Sequence[str]
) -> pd.DataFrame:
    """Return the scales at the start, the quarters and the end of training.

    Parameters
    ----------
    scales : array of shape (n_looks, n_rois)
        Scales at every look, such as `history.scales` of
        :class:`brainlsap.model.History`.
    epochs : sequence of int, length n_looks
        When it was looked, rising.
    region_names : sequence of str, length n_rois
        Name of every column.

    Returns
    -------
    DataFrame
        One row a region; columns "epoch 0 (start)", "epoch 12 (25%)" ...: of the looks
        the nearest to each quarter of the time from the first to the last. Where two
        quarters fall on one look, it stands once.

    Raises
    ------
    ParameterError
        If the shapes do not fit together, or the epochs do not rise.

    Examples
    --------
    >>> told = scales_at_quarters([[2.0], [1.5], [0.9]], [0, 10, 20], ["Left-Putamen"])
    >>> told.columns.tolist()
    ['epoch 0 (start)', 'epoch 10 (50%)', 'epoch 20 (end)']
    """
    scales, when = checked_history(scales, epochs, region_names)
    titles = {0: "start", 25: "25%", 50: "50%", 75: "75%", 100: "end"}
    parts: dict[int, str] = {}
    # The ends and the middle first: with few looks they are the ones to keep.
    for share in (0, 100, 50, 25, 75):
        wanted = when[0] + share / 100 * (when[-1] - when[0])
        look = int(np.abs(when - wanted).argmin())
        parts.setdefault(look, f"epoch {when[look]} ({titles[share]})")
    columns = {parts[look]: scales[look] for look in sorted(parts)}
    return pd.DataFrame(columns, index=list(region_names))


def plot_training_scales(
    scales: Any,
    epochs: Sequence[int],
    region_names: Sequence[str],
    atlas: str | Path | Atlas = "destrieux160",
    **how: Any,
) -> Any:
    """Draw the scales at the quarters of training on the brain, a row for each.

    Parameters
    ----------
    scales : array of shape (n_looks, n_rois)
        Scales at every look.
    epochs : sequence of int, length n_looks
        When it was looked, rising.
    region_names : sequence of str, length n_rois
        Name of every column.
    atlas : str, Path or Atlas
        With surface files.
    **how
        As for :func:`plot_regions`.

    Returns
    -------
    Figure
        As of :func:`plot_regions`; one scale of colours for all rows.

    Examples
    --------
    >>> scales = [[2.0, 2.0], [1.2, 2.3], [0.9, 2.9]]
    >>> names = ["lh_G_precuneus", "Left-Putamen"]
    >>> figure = plot_training_scales(scales, [0, 10, 20], names, views="inner left")
    >>> [text.get_text() for text in figure.texts][1:]
    ['epoch 0 (start)', 'epoch 10 (50%)', 'epoch 20 (end)']
    """
    maps = scales_at_quarters(scales, epochs, region_names)
    return plot_regions(maps, atlas, **{"colorbar_label": SCALE_LABEL, **how})


def plot_trajectories(
    scales: Any,
    epochs: Sequence[int],
    region_names: Sequence[str],
    *,
    highlight: int | Sequence[str] = 5,
    best_epoch: int | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the scale of every region during training as a line.

    Parameters
    ----------
    scales : array of shape (n_looks, n_rois)
        Scales at every look.
    epochs : sequence of int, length n_looks
        When it was looked, rising.
    region_names : sequence of str, length n_rois
        Name of every column.
    highlight : int or sequence of str
        How many of the regions that end smallest to colour and name, or which.
    best_epoch : int or None
        Marked, where it is known which epoch was chosen.
    ax : Axes, optional
        Where to draw; by default a new figure, without a window.

    Returns
    -------
    Axes
        All other regions are grey.

    Raises
    ------
    ParameterError
        If the shapes do not fit together, the epochs do not rise, or a name of
        `highlight` is none of the regions.

    Examples
    --------
    >>> ax = plot_trajectories(
    ...     [[2.0, 2.0], [0.5, 2.2]], [0, 9], ["a", "b"], highlight=1
    ... )
    >>> [text.get_text() for text in ax.texts]
    ['a']
    """
    scales, when = checked_history(scales, epochs, region_names)
    ax = new_axes(6.4, 3.8) if ax is None else ax
    chosen = _highlighted(scales, list(region_names), highlight)
    others = [k for k in range(scales.shape[1]) if k not in chosen]
    ax.plot(when, scales[:, others], color="#BBBBBB", linewidth=0.6, alpha=0.7)
    heights = _apart(scales[-1, chosen], 0.045 * max(np.nanmax(scales), 1e-9))
    for number, (place, height) in enumerate(zip(chosen, heights, strict=True)):
        colour = _LINES[number % len(_LINES)]
        dash = ("-", (0, (4, 1.5)), (0, (1, 1)))[number // len(_LINES) % 3]
        ax.plot(when, scales[:, place], color=colour, linewidth=1.7, linestyle=dash)
        ax.annotate(
            verbatim(region_names[place]),
            (1.01, height),
            xycoords=("axes fraction", "data"),
            va="center",
            color=colour,
            fontsize=8,
            annotation_clip=False,
        )
    if best_epoch is not None:
        ax.axvline(best_epoch, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
        ax.annotate(
            "chosen epoch",
            (best_epoch, 1),
            (0, 3),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    ax.set_xlim(when[0], when[-1] if len(when) > 1 else when[0] + 1)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("epoch")
    ax.set_ylabel(SCALE_LABEL)
    bare(ax)
    return ax


def checked_history(
    scales: Any, epochs: Sequence[int], region_names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return scales and epochs as arrays that fit together.

    Parameters
    ----------
    scales : array of shape (n_looks, n_rois)
        Scales at every look.
    epochs : sequence of int, length n_looks
        When it was looked.
    region_names : sequence of str, length n_rois
        Name of every column.

    Returns
    -------
    scales : ndarray of float, shape (n_looks, n_rois)
    epochs : ndarray of int, shape (n_looks,)

    Raises
    ------
    ParameterError
        If they do not fit together, or the epochs do not rise.
    """
    scales, when = np.asarray(scales, dtype=float), np.asarray(epochs)
    expected = (len(when), len(region_names))
    if scales.shape != expected or not len(when):
        raise ParameterError(
            "scales must have shape (n_looks, n_rois), one row for each of epochs and "
            f"one column for each of region_names; expected {expected} with a look at "
            f"least, got {scales.shape}."
        )
    if (np.diff(when) <= 0).any():
        raise ParameterError(f"epochs must rise, got {when.tolist()[:8]}.")
    return scales, when


def _highlighted(
    scales: np.ndarray, names: list[str], highlight: int | Sequence[str]
) -> list[int]:
    if isinstance(highlight, int):
        order = np.argsort(scales[-1], kind="stable")
        return order[~np.isnan(scales[-1][order])][:highlight].tolist()
    unknown = [name for name in highlight if name not in names]
    if unknown:
        raise ParameterError(
            f"highlight names {unknown[0]!r}, which is none of the {len(names)} "
            "regions."
        )
    return [names.index(name) for name in highlight]


def _apart(heights: np.ndarray, room: float) -> np.ndarray:
    """Return heights at least so far apart, so that names do not overlap."""
    order, out = np.argsort(heights, kind="stable"), heights.astype(float).copy()
    for below, above in pairwise(order):
        out[above] = max(out[above], out[below] + room)
    return out
