"""Pictures of quality: how scans differ, connectomes of some, values per region."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from brainlsap.data import Cohort
from brainlsap.report.axes import BLUE, GREY, INK, ORANGE, verbatim

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = 4
# Beyond these shares of the scans a value is drawn as a dot of its own.
_BAND = (5, 95)


def plot_measures(
    values: dict[str, np.ndarray], marked: np.ndarray, codes: Sequence[str]
) -> "Figure":
    """Draw the distribution of each measure over scans; marked scans stand out.

    Parameters
    ----------
    values : dict of str to array of shape (n_scans,)
        By what they are.
    marked : bool array of shape (n_scans,)
        Scans that are flagged.
    codes : sequence of str
        Name of every scan.

    Returns
    -------
    Figure
    """
    from matplotlib.figure import Figure

    n_rows = -(-len(values) // _COLUMNS)
    figure = Figure(figsize=(12, 2.1 * n_rows), layout="constrained")
    grid = figure.subplots(n_rows, _COLUMNS, squeeze=False).ravel()
    for ax, (name, column) in zip(grid, values.items(), strict=False):
        given = np.isfinite(column)
        ax.hist(column[given], bins=min(40, max(8, given.sum() // 3)), color="#C9D3DC")
        foot = -0.06 * ax.get_ylim()[1]
        ax.vlines(column[given & ~marked], foot, 0, color=GREY, lw=0.5)
        some = given & marked
        ax.plot(column[some], np.full(some.sum(), foot / 2), "v", color=ORANGE, ms=6)
        _name_extremes(ax, column, some, codes)
        ax.margins(x=0.12)
        ax.set_title(verbatim(name), fontsize=9, loc="left", color=INK)
        ax.tick_params(labelsize=7)
        ax.set_ylabel("scans", fontsize=7)
        ax.spines[["top", "right"]].set_visible(False)
    for ax in grid[len(values) :]:
        ax.set_visible(False)
    return figure


def _name_extremes(
    ax: object, column: np.ndarray, some: np.ndarray, codes: Sequence[str]
) -> None:
    """Write the code beside the two flagged scans that lie farthest out."""
    # within the bulk a name says nothing
    rows = np.flatnonzero(
        some & (np.abs(column - np.nanmedian(column)) > _reach(column))
    )
    far = np.abs(column[rows] - np.nanmedian(column))
    top = ax.get_ylim()[1]  # type: ignore[attr-defined]
    for height, row in enumerate(rows[np.argsort(-far, kind="stable")[:2]]):
        ax.annotate(  # type: ignore[attr-defined]
            verbatim(codes[row]),
            (column[row], 0),
            (column[row], top * (0.35 + 0.2 * height)),
            fontsize=7,
            color=ORANGE,
            ha="center",
            arrowprops={"arrowstyle": "-", "color": ORANGE, "lw": 0.6},
        )


def _reach(column: np.ndarray) -> float:
    """Return the distance from the median that few scans exceed by chance."""
    gap = np.abs(column - np.nanmedian(column))
    return max(6 * float(np.nanmedian(gap)), 0.05 * float(np.nanmax(gap)))


def plot_connectomes(
    cohort: Cohort,
    rows: Sequence[int],
    titles: Sequence[str],
    marked: Sequence[bool] | None = None,
) -> "Figure":
    """Draw the median connectome of the cohort, then those of some scans.

    Parameters
    ----------
    cohort : Cohort
        All scans.
    rows : sequence of int
        Which to draw.
    titles : sequence of str
        One for each.
    marked : sequence of bool, optional
        Which of them have a title in the colour of flagged scans.

    Returns
    -------
    Figure
        log(1 + weight), the same colours in all; left regions first where the atlas
        has them so.
    """
    from matplotlib.figure import Figure

    n_cells = len(rows) + 1
    n_columns = min(6, max(n_cells, 2))
    n_rows = -(-n_cells // n_columns)
    median = np.log1p(_median(cohort))
    figure = Figure(figsize=(2.15 * n_columns, 2.4 * n_rows), layout="constrained")
    grid = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    high = max(float(np.quantile(median, 0.999)), 1e-12)
    matrices = [median, *(np.log1p(cohort.connectomes[row]) for row in rows)]
    names = ["median of all scans", *titles]
    colours = [INK, *(ORANGE if one else INK for one in marked or [False] * len(rows))]
    for ax, W, name, colour in zip(grid, matrices, names, colours, strict=False):
        image = ax.imshow(W, cmap="magma", vmin=0, vmax=high, interpolation="nearest")
        ax.set_title(verbatim(name), fontsize=8, color=colour)
        ax.set(xticks=[], yticks=[])
    for ax in grid[n_cells:]:
        ax.set_visible(False)
    bar = figure.colorbar(image, ax=list(grid[:n_cells]), shrink=0.7, pad=0.01)
    bar.set_label("log(1 + weight)", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    return figure


def _median(cohort: Cohort) -> np.ndarray:
    """Return the median of every link, from 200 scans spread over the cohort."""
    if cohort.shares_connectome:
        return np.asarray(cohort.connectomes[0])
    rows = np.unique(np.linspace(0, cohort.n_scans - 1, 200).astype(int))
    return np.median(cohort.connectomes[rows], axis=0)


def plot_region_values(
    values: np.ndarray,
    names: Sequence[str],
    sides: Sequence[str],
    *,
    label: str,
    plausible: tuple[float, float] | None = None,
    marked: np.ndarray | None = None,
) -> "Figure":
    """Draw how a feature is distributed over scans, in every region.

    Parameters
    ----------
    values : array of shape (n_scans, n_rois)
        NaN where not measured.
    names, sides : sequence of str of length n_rois
        Short name and hemisphere of every region.
    label : str
        The feature.
    plausible : (float, float), optional
        Values beyond are measured in no brain.
    marked : bool array of shape (n_scans,), optional
        Scans whose extreme values are drawn in another colour.

    Returns
    -------
    Figure
        One panel for each side: median, the band that holds nine scans of ten, and a
        dot for every value beyond it that lies farthest out.
    """
    from matplotlib.figure import Figure

    shown = ~np.isnan(values).all(axis=0)
    panels = [side for side in dict.fromkeys(sides) if shown[_on(sides, side)].any()]
    figure = Figure(figsize=(13, 3.1 * max(len(panels), 1)), layout="constrained")
    grid = figure.subplots(max(len(panels), 1), 1, squeeze=False, sharey=True).ravel()
    flagged = np.zeros(len(values), dtype=bool) if marked is None else marked
    for ax, side in zip(grid, panels, strict=False):
        columns = np.flatnonzero(_on(sides, side) & shown)
        _draw_side(ax, values[:, columns], flagged, plausible)
        ax.set_xticks(
            range(len(columns)),
            [verbatim(names[column].split(") ")[-1]) for column in columns.tolist()],
            rotation=90,
            fontsize=6 if len(columns) > 50 else 7,
        )
        where = {"L": "left", "R": "right"}.get(side, "midline")
        ax.set_ylabel(verbatim(f"{label}, {where}"), fontsize=8)
    return figure


def _on(sides: Sequence[str], side: str) -> np.ndarray:
    return np.array([one == side for one in sides])


def _draw_side(
    ax: object,
    values: np.ndarray,
    flagged: np.ndarray,
    plausible: tuple[float, float] | None,
) -> None:
    place = np.arange(values.shape[1])
    low, middle, high = np.nanpercentile(values, [_BAND[0], 50, _BAND[1]], axis=0)
    ax.vlines(place, low, high, color="#9DB7CC", lw=4)  # type: ignore[attr-defined]
    ax.plot(place, middle, "_", color=INK, ms=5)  # type: ignore[attr-defined]
    # one dot beyond the usual reach of the band, as box plots draw them
    reach = 1.5 * (high - low)
    out = (values < low - reach) | (values > high + reach)
    for scans, colour in ((~flagged, BLUE), (flagged, ORANGE)):
        scan, column = np.nonzero(out & scans[:, None])
        ax.plot(  # type: ignore[attr-defined]
            column, values[scan, column], ".", color=colour, ms=4, alpha=0.8
        )
    for edge in plausible or ():
        inside = values[~np.isnan(values)]
        if (
            inside.min() - 0.3 * np.ptp(inside)
            < edge
            < inside.max() + 0.3 * np.ptp(inside)
        ):
            ax.axhline(edge, color=ORANGE, lw=0.8, ls="--")  # type: ignore[attr-defined]
    ax.set_xlim(-0.8, values.shape[1] - 0.2)  # type: ignore[attr-defined]
    ax.tick_params(axis="y", labelsize=7)  # type: ignore[attr-defined]
    ax.spines[["top", "right"]].set_visible(False)  # type: ignore[attr-defined]
