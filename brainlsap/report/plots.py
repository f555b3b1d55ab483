"""Scores, confusion, calibration and rankings become figures; through pyplot."""

import json
import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from sklearn.metrics import confusion_matrix

from brainlsap.atlas import Atlas
from brainlsap.evaluation import SCORES, Evaluation
from brainlsap.evaluation.comparison import wilson_interval
from brainlsap.exceptions import ParameterError, check_choice
from brainlsap.report.figures import (
    FULL_WIDTH,
    GREY,
    INK,
    SINGLE_COLUMN,
    new_axes,
    new_figure,
    styled,
)
from brainlsap.report.tables import (
    FEATURES,
    class_differences,
    ranked_regions,
    region_labels,
    shown_scores,
    spread_text,
    summary_of,
)

# Okabe and Ito's colours, which people of any colour vision tell apart.
BLUE, ORANGE = "#0072B2", "#D55E00"
COLORS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
DASHES: dict[str, Any] = {"color": GREY, "linestyle": (0, (4, 3))}
N_SHOWN, N_BINS = 10, 8
QUARTERS = {0.0: "start", 0.25: "25%", 0.5: "50%", 0.75: "75%", 1.0: "end"}
# A legend in one row above the axes, beside the letter of a panel.
CLOSE: dict[str, Any] = {"ncols": 8, "columnspacing": 0.8, "handletextpad": 0.2}
BARS: dict[str, Any] = {"fmt": "o", "markersize": 4, "zorder": 3}


@styled()
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
    axes = axes or new_axes(FULL_WIDTH * 0.75, 16 + 6 * len(summary))
    if score == "balanced_accuracy":
        _line_at(axes, 1 / len(evaluation.cohort.classes), "chance")
    beside = axes.get_yaxis_transform()
    for place, (name, row) in enumerate(summary.iterrows()):
        values = by_fold.loc[by_fold["model"] == name, score].to_numpy()
        color = BLUE if row["role"] == "model" else GREY
        # the same fold lies at the same height in every row
        height = place + np.linspace(-0.2, 0.2, len(values))
        axes.plot(values, height, ".", color=color, alpha=0.45, markersize=4)
        axes.errorbar(row["mean"], place, xerr=row["sd"], color=color, **BARS)
        failed = f"failed: {row['n_failed']} of {row['n_folds']}"
        told = failed if row["n_failed"] else spread_text(row["mean"])
        axes.text(1.02, place, told, transform=beside, va="center")
    axes.set_yticks(range(len(summary)), [_verbatim(name) for name in summary.index])
    axes.set_ylim(len(summary) - 0.5, -0.5)
    title = shown_scores(evaluation).get(score, SCORES[score])
    axes.set_xlabel(f"{title} (dots: folds; bar: mean ± s.d.)")
    _bare(axes)
    return axes


@styled()
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
        share, by which cells are shaded, stands the number of scans.

    Raises
    ------
    ParameterError
        Where no such model was evaluated.
    """
    predictions, classes = _predictions(evaluation, model), evaluation.cohort.classes
    truth, predicted = predictions["truth"], predictions["predicted"]
    counts = confusion_matrix(truth, predicted, labels=list(classes))
    totals = counts.sum(axis=1)
    share = counts / np.maximum(totals[:, None], 1)
    axes = axes or new_axes(SINGLE_COLUMN, 70)
    axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    for (row, column), count in np.ndenumerate(counts):
        color = "white" if share[row, column] > 0.55 else INK
        text = f"{share[row, column]:.0%}\n{count}"
        axes.text(column, row, text, color=color, ha="center", va="center")
    names = [_verbatim(name) for name in classes]
    turn = 45 if max(map(len, names)) > 7 else 0
    axes.set_xticks(range(len(names)), names, rotation=turn)
    labels = [f"{name}\nn = {n}" for name, n in zip(names, totals, strict=True)]
    axes.set_yticks(range(len(names)), labels)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set(xlabel="predicted class", ylabel="true class")
    return axes


@styled()
def plot_roc(
    evaluation: Evaluation, model: str | None = None, *, axes: Axes | None = None
) -> Axes:
    """Draw the ROC curve of every class against the rest, mean over folds.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.
    model : str, optional
        Which, of those that give probabilities or decision values; by default the
        first.
    axes : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        One curve a class, of two classes that of the second. The legend has the area
        under the curve: mean ± s.d. over the folds that hold the class.

    Raises
    ------
    ParameterError
        Where the model gives neither probabilities nor decision values.
    """
    from sklearn.metrics import auc, roc_curve

    predictions, classes = _predictions(evaluation, model), evaluation.cohort.classes
    values = evaluation.as_predictions(predictions).ranking
    if values is None:
        raise ParameterError(f"{predictions['model'].iloc[0]} has no ROC curve.")
    axes = axes or new_axes(SINGLE_COLUMN, 70)
    axes.plot([0, 1], [0, 1], **DASHES)
    grid = np.linspace(0, 1, 101)
    colors = class_colors(evaluation)
    folds = predictions.groupby(["repeat", "fold"]).indices.values()
    for code, name in enumerate(classes):
        hit = (predictions["truth"] == name).to_numpy()
        both = [rows for rows in folds if 0 < hit[rows].sum() < len(rows)]
        curves = [roc_curve(hit[rows], values[rows, code])[:2] for rows in both]
        if not curves or (len(classes) == 2 and code == 0):
            continue
        areas = [auc(*curve) for curve in curves]
        mean = np.mean([np.interp(grid, *curve) for curve in curves], axis=0)
        area = pd.Series(areas)
        label = f"{_verbatim(name)} {spread_text(area.mean(), area.std(), 2)}"
        axes.plot([0, *grid], [0, *mean], color=colors[name], label=label)
    axes.set(xlim=(0, 1), ylim=(0, 1.01), aspect="equal")
    axes.set(xlabel="1 \N{MINUS SIGN} specificity", ylabel="sensitivity")
    axes.legend(
        title="class, AUC", loc="upper left", bbox_to_anchor=(1, 1), handlelength=1.2
    )
    return axes


@styled()
def plot_calibration(
    evaluation: Evaluation, model: str | None = None, *, axes: Axes | None = None
) -> Axes:
    """Draw how often predictions are correct against how confident the model was.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.
    model : str, optional
        Which, of those that give probabilities; by default the first.
    axes : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        Points hold equally many test scans, by the probability of the predicted
        class; those on the dashed line are calibrated, below it the model is
        overconfident.
        Bars are 95% Wilson intervals, which take scans for independent.

    Raises
    ------
    ParameterError
        Where the model gives no probabilities.
    """
    predictions = _predictions(evaluation, model)
    columns = [f"p_{name}" for name in evaluation.cohort.classes]
    probability = predictions[columns].max(axis=1, skipna=False).to_numpy()
    if not np.isfinite(probability).all():
        name = predictions["model"].iloc[0]
        raise ParameterError(f"{name} gives no probabilities; it has no calibration.")
    correct = (predictions["truth"] == predictions["predicted"]).to_numpy()
    order = np.argsort(probability, kind="stable")
    axes = axes or new_axes(SINGLE_COLUMN, 70)
    axes.plot([0, 1], [0, 1], **DASHES)
    for rows in np.array_split(order, min(N_BINS, len(order))):
        hits, share = int(correct[rows].sum()), correct[rows].mean()
        low, high = wilson_interval(hits, len(rows))
        bar = [[max(share - low, 0)], [max(high - share, 0)]]
        at = probability[rows].mean()
        axes.errorbar(at, share, yerr=bar, color=BLUE, **BARS)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set(xlabel="probability of the predicted class", ylabel="accuracy")
    return axes


@styled()
def plot_scales(
    ranking: pd.DataFrame,
    atlas: Atlas | None = None,
    n_regions: int = N_SHOWN,
    *,
    axes: Axes | None = None,
) -> Axes:
    """Draw the regions of smallest relative scale, with their intervals.

    Parameters
    ----------
    ranking : DataFrame
        As from :func:`brainlsap.evaluation.rank_regions`.
    atlas : Atlas, optional
        For full names; else the names of the ranking.
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
    top = ranked_regions(ranking, n_regions).reset_index(drop=True)
    axes = axes or new_axes(FULL_WIDTH * 0.75, 18 + 5 * len(top))
    _line_at(axes, 1, "median region")
    planted = top["planted"].astype(bool) if "planted" in top else top["rank"] < 0
    learned = ~(top["moved"] < 0.5)
    mean = top["relative_scale"]
    bars = np.array([mean - top["relative_low"], top["relative_high"] - mean]).clip(0)
    for (is_planted, is_learned), some in top.groupby(
        [planted, learned]
    ).indices.items():
        color = ORANGE if is_planted else BLUE
        remark = "" if is_learned else ", not learned (within 5% of its start)"
        style = {**BARS, "fmt": "D" if is_planted else "o", "color": color}
        style["markerfacecolor"] = color if is_learned else "white"
        style["label"] = f"{'planted' if is_planted else 'other'} region{remark}"
        axes.errorbar(mean[some], some, xerr=bars[:, some], **style)
    _name_rows(axes, region_labels(list(top["region"]), atlas))
    axes.set_xlim(left=0)
    axes.set_xlabel("relative heat scale (bars: 95% of folds and starts)")
    if planted.any() or not learned.all():
        axes.legend(loc="lower left", bbox_to_anchor=(0.02, 1))
    return axes


@styled()
def plot_directions(
    evaluation: Evaluation,
    ranking: pd.DataFrame,
    atlas: Atlas | None = None,
    n_regions: int = N_SHOWN,
    *,
    feature: str | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw whether a feature of the first regions rises or falls from class to class.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.
    ranking, atlas, n_regions
        As of :func:`plot_scales`, whose rows these are.
    feature : str, optional
        Which; by default the first.
    axes : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
        For every class but the first, its difference from the first in pooled standard
        deviations with 95% intervals over people
        (:func:`brainlsap.report.class_differences`).
    """
    top = list(ranked_regions(ranking, n_regions)["region"])
    feature = feature or evaluation.cohort.feature_names[0]
    check_choice("feature", feature, evaluation.cohort.feature_names)
    found = class_differences(evaluation).query("feature == @feature")
    axes = axes or new_axes(FULL_WIDTH * 0.75, 18 + 5 * len(top))
    axes.axvline(0, **DASHES)
    first, *others = evaluation.cohort.classes
    colors = class_colors(evaluation)
    shifts = np.linspace(-0.28, 0.28, len(others)) if len(others) > 1 else [0.0]
    for name, shift in zip(others, shifts, strict=True):
        rows = found[found["class"] == name].set_index("region").reindex(top)
        mean = rows["difference"]
        bars = [mean - rows["difference_low"], rows["difference_high"] - mean]
        style: Any = {**BARS, "markersize": 3, "capsize": 0, "color": colors[name]}
        height = np.arange(len(top)) + shift
        axes.errorbar(mean, height, xerr=bars, label=_verbatim(name), **style)
    _name_rows(axes, region_labels(top, atlas))
    title = FEATURES.get(feature, feature)
    axes.set_xlabel(f"{title}: difference from {_verbatim(first)} (s.d., 95%)")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), **CLOSE)
    return axes


@styled()
def plot_training(
    evaluation: Evaluation,
    model: str | None = None,
    *,
    axes: Sequence[Axes] | None = None,
) -> np.ndarray:
    """Draw the loss of a model over its epochs, and its scales over the training.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.
    model : str, optional
        Which; by default the first.
    axes : sequence of two Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    array of two Axes
        Left, the losses of every fold, of its start of lowest validation loss. Right,
        the relative scale of every region, mean over folds; those of the ten smallest
        scales are blue. A panel is empty where the model kept none.

    Raises
    ------
    ParameterError
        If the model is unknown.
    """
    model = model or evaluation.models[0]
    check_choice("model", model, evaluation.models)
    if axes is None:
        axes = new_figure(FULL_WIDTH, 60, layout="constrained").subplots(1, 2)
    left, right = axes
    reports = evaluation.fits.loc[evaluation.fits["model"] == model, "report"]
    kept = [(json.loads(text) or {}).get("losses") for text in reports]
    for one in filter(None, kept):
        for kind, color in (("training", GREY), ("validation", BLUE)):
            values = np.array(one[kind], dtype=float)
            left.plot(one["epoch"], values, color=color, label=kind)
    paths = scales_in_training(evaluation, model)
    small = paths.iloc[:, -1].rank() <= N_SHOWN if len(paths) else []
    kinds = (("other regions", "#c4c4c4"), (f"{N_SHOWN} smallest", BLUE))
    for is_small, (label, color) in enumerate(kinds if len(paths) else ()):
        style: Any = {"color": color, "linewidth": 0.6, "label": label}
        right.plot(paths.columns, paths[small == is_small].T, **style)
    right.set_xticks(list(QUARTERS), list(QUARTERS.values()))
    left.set(xlabel="epoch", ylabel="mean cross-entropy")
    right.set(xlabel="share of training", ylabel="relative heat scale")
    for one in (left, right):
        lines = {line.get_label(): line for line in one.lines}  # each label once
        one.legend(handles=list(lines.values()))
    return np.array([left, right], dtype=object)


def scales_in_training(evaluation: Evaluation, model: str) -> pd.DataFrame:
    """Return relative scales, mean over folds: a row a region, a column a share.

    Each scale is taken over the median of the measured regions of its fold at that
    share of the training. Empty where the model has none during training.
    """
    cohort = evaluation.cohort
    measured = set(np.array(cohort.region_names)[np.asarray(cohort.measured)])
    own = evaluation.scales.query("start == 'mean'")
    own = own[(own["model"] == model) & own["region"].isin(measured)]
    if not (own["share"] < 1).any():
        return pd.DataFrame()
    median = own.groupby(["repeat", "fold", "share"])["scale"].transform("median")
    relative = own["scale"] / median.where(median > 0)
    return relative.groupby([own["region"], own["share"]]).mean().unstack("share")


def class_colors(evaluation: Evaluation) -> dict[str, Any]:
    """Return a colour for every class: of ordered ones, from light to dark."""
    classes, colors = evaluation.cohort.classes, list(COLORS)
    if evaluation.cohort.classes_ordered and len(classes) > 2:
        colors = list(plt.get_cmap("plasma_r")(np.linspace(0.1, 0.9, len(classes))))
    return {name: colors[place % len(colors)] for place, name in enumerate(classes)}


def _name_rows(axes: Axes, names: list[str]) -> None:
    lines = [textwrap.fill(_verbatim(one), 36) for one in names]
    axes.set_yticks(range(len(names)), lines)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="y", color="#eeeeee", linewidth=0.6)
    axes.set_axisbelow(True)
    _bare(axes)


def _predictions(evaluation: Evaluation, model: str | None) -> pd.DataFrame:
    model = evaluation.models[0] if model is None else model
    check_choice("model", model, evaluation.models)
    found = evaluation.predictions[evaluation.predictions["model"] == model]
    if found.empty:
        raise ParameterError(f"{model} failed in every fold; it has no predictions.")
    return found


def _bare(axes: Axes) -> None:
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _line_at(axes: Axes, x: float, name: str) -> None:
    axes.axvline(x, **DASHES)
    above: Any = {"ha": "center", "va": "bottom", "color": GREY}
    axes.text(x, 1.01, name, transform=axes.get_xaxis_transform(), **above)


def _verbatim(text: object) -> str:
    """Return text that matplotlib prints as it is, whatever dollars are in it."""
    return str(text).replace("$", r"\$")
