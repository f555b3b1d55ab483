"""Scores, confusion, calibration and rankings become figures; through pyplot."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from brainlsap.arrays import check_at_least, check_choice
from brainlsap.atlas import Atlas
from brainlsap.evaluation import SCORES, Evaluation, confusion_counts
from brainlsap.evaluation.comparison import wilson_interval
from brainlsap.exceptions import ParameterError
from brainlsap.report.tables import region_labels, shown_scores, summary_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "plot_calibration",
    "plot_confusion",
    "plot_ranks",
    "plot_scales",
    "plot_scores",
]

# Okabe and Ito's colours, which people of any colour vision tell apart.
INK, BLUE, ORANGE, GREY = "#222222", "#0072B2", "#D55E00", "#8A8A8A"
DASHES: dict[str, Any] = {"color": GREY, "linestyle": (0, (4, 3)), "linewidth": 1}


def plot_scores(
    evaluation: Evaluation,
    score: str = "balanced_accuracy",
    *,
    axes: "Axes | None" = None,
) -> "Axes":
    """Draw one score of all models side by side, a dot for every fold.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    score : str
        One of :data:`brainlsap.evaluation.SCORES`.
    axes : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        Small dots are folds, the large one is their mean, the bar its s.d. Blue are
        models, grey baselines and controls; the dashed line is chance.

    Raises
    ------
    ParameterError
        Where `score` is unknown.
    """
    check_choice("score", score, SCORES)
    by_fold, summary = evaluation.scores(), summary_of(evaluation, score)
    axes = _axes(6.4, 1.3 + 0.36 * len(summary)) if axes is None else axes
    if score == "balanced_accuracy":
        chance = 1 / len(evaluation.cohort.classes)
        axes.axvline(chance, **DASHES)
        _beside(axes, "chance", (chance, 1), (0, 3), "data", ha="center", color=GREY)
    for place, (name, row) in enumerate(summary.iterrows()):
        values = by_fold.loc[by_fold["model"] == name, score].to_numpy()
        color = BLUE if row["role"] == "model" else GREY
        # the same fold lies at the same height in every row
        height = place + np.linspace(-0.2, 0.2, len(values))
        axes.plot(values, height, ".", color=color, alpha=0.45, markersize=6)
        if np.isfinite(row["mean"]):
            axes.errorbar(
                row["mean"],
                place,
                xerr=row["sd"] if np.isfinite(row["sd"]) else None,
                fmt="o",
                color=color,
                capsize=3,
                zorder=3,
            )
        told = f"{row['mean']:.3f}" if np.isfinite(row["mean"]) else "n/a"
        if row["n_failed"]:
            told = f"failed: {row['n_failed']} of {row['n_folds']}"
        _beside(axes, told, (1, place), (6, 0), "axes", va="center", color=INK)
    axes.set_yticks(range(len(summary)), [_verbatim(name) for name in summary.index])
    axes.set_ylim(len(summary) - 0.5, -0.5)
    title = shown_scores(evaluation).get(score, SCORES[score])
    axes.set_xlabel(f"{title} (dots: folds; bar: mean ± s.d.)")
    _bare(axes)
    return axes


def plot_confusion(
    evaluation: Evaluation, model: str | None = None, *, axes: "Axes | None" = None
) -> "Axes":
    """Draw the confusion matrix of all out-of-fold predictions of a model.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.
    model : str, optional
        Which; by default the first.
    axes : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        Rows are true classes and sum to 100%, columns predicted ones; below each
        share stands the number of scans.

    Raises
    ------
    ParameterError
        Where no such model was evaluated.
    """
    predictions, classes = _predictions(evaluation, model), evaluation.cohort.classes
    counts = confusion_counts(predictions["truth"], predictions["predicted"], classes)
    totals = counts.sum(axis=1)
    share = counts / np.maximum(totals[:, None], 1)
    side = 1.2 + 0.75 * len(counts)
    axes = _axes(side + 1.2, side) if axes is None else axes
    image = axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    for (row, column), count in np.ndenumerate(counts):
        axes.text(
            column,
            row,
            f"{share[row, column]:.0%}\n{count}",
            ha="center",
            va="center",
            color="white" if share[row, column] > 0.55 else INK,
            fontsize=9 if len(counts) < 8 else 6,
        )
    names = [_verbatim(name) for name in classes]
    turned = max(map(len, names)) > 7
    axes.set_xticks(range(len(names)), names, rotation=45 if turned else 0)
    labels = [f"{name}\nn = {n}" for name, n in zip(names, totals, strict=True)]
    axes.set_yticks(range(len(names)), labels)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("predicted class")
    axes.set_ylabel("true class")
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.8, pad=0.03)
    bar.set_label("share of the true class")
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    bar.outline.set_visible(False)
    return axes


def plot_calibration(
    evaluation: Evaluation,
    model: str | None = None,
    n_bins: int = 8,
    *,
    axes: "Axes | None" = None,
) -> "Axes":
    """Draw how often predictions are correct against how confident the model was.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.
    model : str, optional
        Which, of those that give probabilities; by default the first.
    n_bins : int
        Groups of equally many test scans, by the probability of the predicted class.
    axes : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        Points on the dashed line are calibrated; below it the model is overconfident.
        Bars are 95% Wilson intervals, which take scans for independent.

    Raises
    ------
    ParameterError
        Where the model gives no probabilities.
    """
    check_at_least("n_bins", n_bins, 1)
    predictions = _predictions(evaluation, model)
    columns = [f"p_{name}" for name in evaluation.cohort.classes]
    probability = predictions[columns].max(axis=1, skipna=False).to_numpy()
    if not np.isfinite(probability).all():
        name = predictions["model"].iloc[0]
        raise ParameterError(f"{name} gives no probabilities; it has no calibration.")
    correct = (predictions["truth"] == predictions["predicted"]).to_numpy()
    order = np.argsort(probability, kind="stable")
    axes = _axes(4.2, 3.8) if axes is None else axes
    axes.plot([0, 1], [0, 1], **DASHES)
    for rows in np.array_split(order, min(n_bins, len(order))):
        hits, share = int(correct[rows].sum()), correct[rows].mean()
        low, high = wilson_interval(hits, len(rows))
        axes.errorbar(
            probability[rows].mean(),
            share,
            yerr=[[max(share - low, 0)], [max(high - share, 0)]],
            fmt="o",
            color=BLUE,
            capsize=3,
        )
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set_xlabel("probability of the predicted class")
    axes.set_ylabel("accuracy")
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def plot_scales(
    ranking: pd.DataFrame,
    atlas: Atlas | None = None,
    n_regions: int = 20,
    *,
    axes: "Axes | None" = None,
) -> "Axes":
    """Draw the regions of smallest relative scale, with their intervals.

    Parameters
    ----------
    ranking : DataFrame
        As from :func:`brainlsap.evaluation.rank_regions`.
    atlas : Atlas, optional
        For short names; else the names of the ranking.
    n_regions : int
        How many regions.
    axes : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        Smallest on top; bars hold the middle 95% of all folds and starts. The dashed
        line is the median region. Diamonds are planted regions of a simulation,
        hollow marks scales that were not learned.

    Raises
    ------
    ParameterError
        Where no region has a rank.
    """
    check_at_least("n_regions", n_regions, 1)
    top = _ranked(ranking).head(n_regions).reset_index(drop=True)
    axes = _axes(6.4, 1.2 + 0.24 * len(top)) if axes is None else axes
    axes.axvline(1, **DASHES)
    _beside(axes, "median region", (1, 1), (0, 3), "data", ha="center", color=GREY)
    for place, row in top.iterrows():
        color = ORANGE if row["planted"] else BLUE
        scale, low, high = row[["relative_scale", "relative_low", "relative_high"]]
        axes.errorbar(
            scale,
            place,
            xerr=[[max(scale - low, 0)], [max(high - scale, 0)]],
            fmt="D" if row["planted"] else "o",
            color=color,
            markerfacecolor=color if row["learned"] else "white",
            capsize=2.5,
            markersize=5.5,
        )
    labels = region_labels(list(top["region"]), atlas)
    axes.set_yticks(range(len(top)), [_verbatim(one) for one in labels], fontsize=8)
    axes.set_ylim(len(top) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.set_xlabel("relative heat scale (bars: 95% of folds and starts)")
    axes.grid(axis="y", color="#EEEEEE", zorder=0)
    _bare(axes)
    _key(axes, top)
    return axes


def plot_ranks(ranking: pd.DataFrame, *, axes: "Axes | None" = None) -> "Axes":
    """Draw the relative scales of all measured regions in order, with their intervals.

    Parameters
    ----------
    ranking : DataFrame
        As from :func:`brainlsap.evaluation.rank_regions`.
    axes : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        One dot per region: rank across, relative scale up; planted regions of a
        simulation are orange.
    """
    ranked = _ranked(ranking)
    axes = _axes(6.4, 3.2) if axes is None else axes
    order = np.arange(1, len(ranked) + 1)
    scale = ranked["relative_scale"].to_numpy()
    axes.axhline(1, **DASHES)
    bounds = ranked[["relative_low", "relative_high"]].to_numpy().T
    axes.vlines(order, *bounds, color=BLUE, alpha=0.25, linewidth=1.5)
    axes.plot(order, scale, ".", color=BLUE, markersize=4)
    planted = ranked["planted"].to_numpy()
    axes.plot(order[planted], scale[planted], "D", color=ORANGE, markersize=5)
    axes.set_xlabel(f"measured regions in order of scale (n = {len(ranked)})")
    axes.set_ylabel("relative heat scale\n(bars: 95% of folds and starts)")
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    _key(axes, ranked.assign(learned=True), "lower right")
    return axes


def _ranked(ranking: pd.DataFrame) -> pd.DataFrame:
    """Return measured regions in order, with the columns planted and learned."""
    ranked = ranking.dropna(subset=["rank"]).sort_values("rank", kind="stable")
    if ranked.empty:
        raise ParameterError("ranking has no measured region; nothing to draw.")
    planted = ranked["planted"].astype(bool) if "planted" in ranked else False
    return ranked.assign(planted=planted, learned=~(ranked["moved"] < 0.5))


def _key(axes: "Axes", shown: pd.DataFrame, place: Any = "best") -> None:
    from matplotlib.lines import Line2D

    marks = []
    if shown["planted"].any():
        marks += [("D", ORANGE, ORANGE, "planted region")]
        marks += [("o", BLUE, BLUE, "other region")]
    if not shown["learned"].all():
        marks += [("o", BLUE, "white", "not learned: within 5% of its start")]
    handles = [
        Line2D([], [], marker=m, color=edge, markerfacecolor=face, ls="", label=text)
        for m, edge, face, text in marks
    ]
    if handles:
        axes.legend(handles=handles, frameon=False, fontsize=8, loc=place)


def _predictions(evaluation: Evaluation, model: str | None) -> pd.DataFrame:
    model = evaluation.models[0] if model is None else model
    check_choice("model", model, evaluation.models)
    found = evaluation.predictions[evaluation.predictions["model"] == model]
    if found.empty:
        raise ParameterError(f"{model} failed in every fold; it has no predictions.")
    return found


def _axes(width: float, height: float) -> "Axes":
    import matplotlib.pyplot as plt

    # "constrained" cuts labels beside axes of equal aspect off at the first drawing
    return plt.figure(figsize=(width, height), layout="compressed").add_subplot()


def _bare(axes: "Axes") -> None:
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _beside(
    axes: "Axes",
    text: str,
    at: tuple[float, float],
    offset: tuple[float, float],
    across: str,
    **style: Any,
) -> None:
    """Write beside a point that lies in data or axes coordinates across."""
    coordinates = (
        ("data", "axes fraction") if across == "data" else ("axes fraction", "data")
    )
    axes.annotate(text, at, offset, coordinates, "offset points", fontsize=8, **style)


def _verbatim(text: object) -> str:
    """Return text that matplotlib prints as it is, whatever dollars are in it."""
    return str(text).replace("$", r"\$")
