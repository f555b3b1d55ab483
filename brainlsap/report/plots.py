"""Scores, confusion, calibration and rankings become figures; through pyplot."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from brainlsap.arrays import check_at_least, check_choice
from brainlsap.atlas import Atlas
from brainlsap.evaluation import SCORES, Evaluation, confusion_counts
from brainlsap.evaluation.comparison import wilson_interval
from brainlsap.exceptions import ParameterError
from brainlsap.report.tables import region_labels, shown_scores, spread_text, summary_of

# Okabe and Ito's colours, which people of any colour vision tell apart.
INK, BLUE, ORANGE, GREY = "#222222", "#0072B2", "#D55E00", "#8A8A8A"
DASHES: dict[str, Any] = {"color": GREY, "linestyle": (0, (4, 3)), "linewidth": 1}


def plot_scores(
    evaluation: Evaluation,
    score: str = "balanced_accuracy",
    *,
    axes: Axes | None = None,
) -> Axes:
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
    axes = axes or _axes(6.4, 1.3 + 0.36 * len(summary))
    if score == "balanced_accuracy":
        _line_at(axes, 1 / len(evaluation.cohort.classes), "chance")
    beside = axes.get_yaxis_transform()
    for place, (name, row) in enumerate(summary.iterrows()):
        values = by_fold.loc[by_fold["model"] == name, score].to_numpy()
        color = BLUE if row["role"] == "model" else GREY
        # the same fold lies at the same height in every row
        height = place + np.linspace(-0.2, 0.2, len(values))
        axes.plot(values, height, ".", color=color, alpha=0.45, markersize=6)
        bar: Any = {"fmt": "o", "color": color, "capsize": 3, "zorder": 3}
        axes.errorbar(row["mean"], place, xerr=row["sd"], **bar)
        told = spread_text(row["mean"])
        if row["n_failed"]:
            told = f"failed: {row['n_failed']} of {row['n_folds']}"
        axes.text(1.02, place, told, transform=beside, va="center", fontsize=8)
    axes.set_yticks(range(len(summary)), [_verbatim(name) for name in summary.index])
    axes.set_ylim(len(summary) - 0.5, -0.5)
    title = shown_scores(evaluation).get(score, SCORES[score])
    axes.set_xlabel(f"{title} (dots: folds; bar: mean ± s.d.)")
    _bare(axes)
    return axes


def plot_confusion(
    evaluation: Evaluation, model: str | None = None, *, axes: Axes | None = None
) -> Axes:
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
    axes = axes or _axes(side + 1.2, side)
    image = axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    size = 9 if len(counts) < 8 else 6
    for (row, column), count in np.ndenumerate(counts):
        color = "white" if share[row, column] > 0.55 else INK
        text = f"{share[row, column]:.0%}\n{count}"
        middle: Any = {"ha": "center", "va": "center", "fontsize": size}
        axes.text(column, row, text, color=color, **middle)
    names = [_verbatim(name) for name in classes]
    turn = 45 if max(map(len, names)) > 7 else 0
    axes.set_xticks(range(len(names)), names, rotation=turn)
    labels = [f"{name}\nn = {n}" for name, n in zip(names, totals, strict=True)]
    axes.set_yticks(range(len(names)), labels)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set(xlabel="predicted class", ylabel="true class")
    bar: Any = {"label": "share of the true class", "format": PercentFormatter(1)}
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.8, pad=0.03, **bar)
    bar.outline.set_visible(False)
    return axes


def plot_calibration(
    evaluation: Evaluation,
    model: str | None = None,
    n_bins: int = 8,
    *,
    axes: Axes | None = None,
) -> Axes:
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
    axes = axes or _axes(4.2, 3.8)
    axes.plot([0, 1], [0, 1], **DASHES)
    for rows in np.array_split(order, min(n_bins, len(order))):
        hits, share = int(correct[rows].sum()), correct[rows].mean()
        low, high = wilson_interval(hits, len(rows))
        bar = [[max(share - low, 0)], [max(high - share, 0)]]
        at = probability[rows].mean()
        axes.errorbar(at, share, yerr=bar, fmt="o", color=BLUE, capsize=3)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set(xlabel="probability of the predicted class", ylabel="accuracy")
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def plot_scales(
    ranking: pd.DataFrame,
    atlas: Atlas | None = None,
    n_regions: int = 20,
    *,
    axes: Axes | None = None,
) -> Axes:
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
    axes = axes or _axes(6.4, 1.2 + 0.24 * len(top))
    _line_at(axes, 1, "median region")
    for kind, some in top.groupby("kind", sort=False):
        planted, learned = some[["planted", "learned"]].iloc[0]
        color = ORANGE if planted else BLUE
        axes.errorbar(
            some["relative_scale"],
            some.index,
            xerr=some[["below", "above"]].to_numpy().T,
            fmt="D" if planted else "o",
            color=color,
            markerfacecolor=color if learned else "white",
            capsize=2.5,
            markersize=5.5,
            label=kind,
        )
    labels = region_labels(list(top["region"]), atlas)
    axes.set_yticks(range(len(top)), [_verbatim(one) for one in labels], fontsize=8)
    axes.set_ylim(len(top) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.set_xlabel("relative heat scale (bars: 95% of folds and starts)")
    axes.grid(axis="y", color="#EEEEEE", zorder=0)
    _bare(axes)
    if set(top["kind"]) != {"other region"}:
        axes.legend(frameon=False, fontsize=8)
    return axes


def plot_ranks(ranking: pd.DataFrame, *, axes: Axes | None = None) -> Axes:
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
    axes = axes or _axes(6.4, 3.2)
    ranked["order"] = np.arange(1, len(ranked) + 1)
    axes.axhline(1, **DASHES)
    bounds = ranked[["relative_low", "relative_high"]].to_numpy().T
    axes.vlines(ranked["order"], *bounds, color=BLUE, alpha=0.25, linewidth=1.5)
    axes.plot("order", "relative_scale", ".", data=ranked, color=BLUE, markersize=4)
    planted = ranked[ranked["planted"]]
    if len(planted):
        style: Any = {"color": ORANGE, "markersize": 5, "label": "planted region"}
        axes.plot("order", "relative_scale", "D", data=planted, **style)
        axes.legend(
            handles=axes.lines[-1:], frameon=False, fontsize=8, loc="lower right"
        )
    axes.set_xlabel(f"measured regions in order of scale (n = {len(ranked)})")
    axes.set_ylabel("relative heat scale\n(bars: 95% of folds and starts)")
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _ranked(ranking: pd.DataFrame) -> pd.DataFrame:
    """Return measured regions in order, with their kind and the length of bars."""
    ranked = ranking.dropna(subset=["rank"]).sort_values("rank", kind="stable")
    if ranked.empty:
        raise ParameterError("ranking has no measured region; nothing to draw.")
    ranked["planted"] = ranked["planted"].astype(bool) if "planted" in ranked else False
    ranked["learned"] = ~(ranked["moved"] < 0.5)
    kind = np.where(ranked["planted"], "planted region", "other region")
    remark = np.where(ranked["learned"], "", ", not learned (within 5% of its start)")
    scale = ranked["relative_scale"]
    return ranked.assign(
        kind=np.char.add(kind, remark),
        below=(scale - ranked["relative_low"]).clip(lower=0),
        above=(ranked["relative_high"] - scale).clip(lower=0),
    )


def _predictions(evaluation: Evaluation, model: str | None) -> pd.DataFrame:
    model = evaluation.models[0] if model is None else model
    check_choice("model", model, evaluation.models)
    found = evaluation.predictions[evaluation.predictions["model"] == model]
    if found.empty:
        raise ParameterError(f"{model} failed in every fold; it has no predictions.")
    return found


def _axes(width: float, height: float) -> Axes:
    # "constrained" cuts labels beside axes of equal aspect off at the first drawing
    return plt.figure(figsize=(width, height), layout="compressed").add_subplot()


def _bare(axes: Axes) -> None:
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _line_at(axes: Axes, x: float, name: str) -> None:
    axes.axvline(x, **DASHES)
    above: Any = {"ha": "center", "va": "bottom", "color": GREY, "fontsize": 8}
    axes.text(x, 1.01, name, transform=axes.get_xaxis_transform(), **above)


def _verbatim(text: object) -> str:
    """Return text that matplotlib prints as it is, whatever dollars are in it."""
    return str(text).replace("$", r"\$")
