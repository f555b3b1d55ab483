"""A ranking becomes figures: axes in, axes out, nothing saved or shown."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from brainlsap.data import Atlas
from brainlsap.exceptions import ParameterError
from brainlsap.report.axes import BLUE, GREY, ORANGE, bare, new_axes, verbatim

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_scales(
    ranking: pd.DataFrame,
    atlas: Atlas | None = None,
    n_regions: int = 20,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the regions of smallest heat scale, with their s.d. over folds.

    Parameters
    ----------
    ranking : DataFrame
        As from :func:`brainlsap.evaluation.rank_regions`; where it has the column
        seed, the regions of the answer key are marked.
    atlas : Atlas, optional
        For the paper's short names; else the names of the ranking.
    n_regions : int
        How many regions.
    ax : Axes, optional
        Where to draw; by default a new figure, without a window.

    Returns
    -------
    Axes
        Smallest scale on top. Bars end at zero. Hollow marks are scales that did not
        leave their start.

    Raises
    ------
    ParameterError
        Where no region has a rank.

    Examples
    --------
    >>> from brainlsap.data import load_atlas
    >>> from brainlsap.evaluation import rank_scales
    >>> atlas = load_atlas("desikan82")
    >>> ranking = rank_scales(np.arange(82.0)[None], atlas.names)
    >>> ax = plot_scales(ranking, atlas, n_regions=3)
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['(L) bankssts', '(L) caudalanteriorcingulate', '(L) caudalmiddlefrontal']
    """
    ranked = ranking.dropna(subset=["rank"]).sort_values("rank", kind="stable")
    top = ranked.head(n_regions).fillna({"scale_sd": 0.0}).reset_index(drop=True)
    if top.empty:
        raise ParameterError(
            "ranking has no measured region; there is nothing to draw."
        )
    ax = new_axes(6.4, 1.2 + 0.24 * len(top)) if ax is None else ax
    labels = list(top["region"])
    if atlas is not None:
        labels = [atlas.short_names[place] for place in atlas.match(labels)]
    seed = (
        top["seed"].to_numpy(dtype=bool) if "seed" in top else np.zeros(len(top), bool)
    )
    learned = top["moved"].fillna(True).to_numpy(dtype=bool)
    for place, row in enumerate(top.to_dict("records")):
        color = ORANGE if seed[place] else BLUE
        ax.errorbar(
            row["scale"],
            place,
            # A scale is never negative, so the bar ends at zero.
            xerr=[[min(row["scale_sd"], row["scale"])], [row["scale_sd"]]],
            fmt="D" if seed[place] else "o",
            color=color,
            markerfacecolor=color if learned[place] else "white",
            capsize=2.5,
            markersize=5.5,
        )
    ax.set_yticks(range(len(top)), [verbatim(label) for label in labels], fontsize=8)
    ax.set_ylim(len(top) - 0.4, -0.6)
    ax.set_xlim(left=0)
    ax.set_xlabel("learned heat scale (mean ± s.d. over folds)")
    ax.grid(axis="y", color="#EEEEEE", zorder=0)
    bare(ax)
    _key(ax, seed, learned)
    return ax


def plot_ranks(ranking: pd.DataFrame, ax: "Axes | None" = None) -> "Axes":
    """Draw the scales of all measured regions in order, the answer key marked.

    Parameters
    ----------
    ranking : DataFrame
        As from :func:`brainlsap.evaluation.rank_regions`, with the column seed for
        simulated cohorts.
    ax : Axes, optional
        Where to draw; by default a new figure, without a window.

    Returns
    -------
    Axes
        One dot per region: rank across, scale up.

    Examples
    --------
    >>> from brainlsap.evaluation import rank_scales
    >>> plot_ranks(rank_scales(np.array([[0.4, 2.0]]), ("a", "b"))).get_xlabel()
    'measured regions in order of scale (n = 2)'
    """
    ranked = ranking.dropna(subset=["rank"]).sort_values("rank", kind="stable")
    ax = new_axes(6.4, 3.2) if ax is None else ax
    order = np.arange(1, len(ranked) + 1)
    scale = ranked["scale"].to_numpy()
    ax.plot(order, scale, ".", color=BLUE, markersize=4)
    if "seed" in ranked:
        seed = ranked["seed"].to_numpy(dtype=bool)
        ax.plot(order[seed], scale[seed], "D", color=ORANGE, markersize=6)
        _key(ax, seed, np.ones(len(seed), bool))
    ax.set_xlabel(f"measured regions in order of scale (n = {len(ranked)})")
    ax.set_ylabel("learned heat scale")
    ax.set_ylim(bottom=0)
    bare(ax)
    return ax


def _key(ax: "Axes", seed: np.ndarray, learned: np.ndarray) -> None:
    from matplotlib.lines import Line2D

    marks = []
    if seed.any():
        marks.append(("D", ORANGE, ORANGE, "seed of the answer key"))
        marks.append(("o", BLUE, BLUE, "other region"))
    if not learned.all():
        marks.append(("o", GREY, "white", "not learned: within 5% of its start"))
    handles = [
        Line2D(
            [],
            [],
            marker=mark,
            color=edge,
            markerfacecolor=face,
            linestyle="",
            label=text,
        )
        for mark, edge, face, text in marks
    ]
    if handles:
        ax.legend(handles=handles, frameon=False, fontsize=8, loc="best")
