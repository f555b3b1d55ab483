"""Scores, confusion, calibration and rankings become figures; through pyplot."""

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.transforms import ScaledTranslation
from sklearn.metrics import auc, confusion_matrix, roc_curve

from brainlsap.evaluation import SCORES, Evaluation, fold_scores, rank_regions
from brainlsap.evaluation.comparison import wilson_interval
from brainlsap.evaluation.metrics import Predictions
from brainlsap.evaluation.results import check_evaluation_given
from brainlsap.exceptions import ParameterError, check_choice
from brainlsap.report import figures, tables
from brainlsap.report.figures import COLUMN, LETTER, MIDDLE, PAGE, own_axes, styled

# Okabe and Ito's colours, which people of any colour vision tell apart.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8a8a8a"
COLORS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
DASHES: dict[str, Any] = {"color": GREY, "linestyle": (0, (4, 3))}
N_SHOWN, N_BINS = 10, 8
QUARTERS = {0.0: "start", 0.25: "25%", 0.5: "50%", 0.75: "75%", 1.0: "end"}
BARS: dict[str, Any] = {"fmt": "o", "markersize": 4, "zorder": 3}


@styled()
def plot_scores(
    evaluation: Evaluation,
    score: str = "balanced_accuracy",
    *,
    axes: Axes | None = None,
    width: float = MIDDLE,
) -> Axes:
    """Draw one score of all models side by side, a dot for every fold.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    score : str
        One of :func:`brainlsap.evaluation.fold_scores`.
    axes : Axes, optional
        Where to draw, in letters of 7 points, for which axes with their labels need a
        width and height of 60 mm or more; by default a new figure. Labels are whole in
        a figure with `layout="constrained"`, and panels of one row keep their size with
        a subfigure each: `[one.subplots() for one in figure.subfigures(1, 3)]`.
    width : float
        Of a new figure, in mm, from 60 to 400, such as 85 (one column of a journal) or
        180 (two); letters keep their size.

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
    check_choice("score", score, fold_scores())
    title = tables.shown_scores(evaluation).get(score, SCORES[score].title)
    by_fold, summary = evaluation.scores(), tables.summary_of(evaluation, score)
    label = f"{title} (dots: folds; bar: mean ± s.d.)"
    axes = _named_rows(axes, width, list(summary.index), label)
    if score == "balanced_accuracy":
        chance = 1 / len(evaluation.cohort.classes)
        axes.axvline(chance, **DASHES)
        label_style: Any = {"ha": "center", "transform": axes.get_xaxis_transform()}
        axes.text(chance, 1.01, "chance", color=GREY, **label_style)
    for position, (name, row) in enumerate(summary.iterrows()):
        values = by_fold.loc[by_fold["model"] == name, score].to_numpy()
        color = BLUE if row["role"] == "model" else GREY
        # the same fold lies at the same height in every row
        height = position + np.linspace(-0.2, 0.2, len(values))
        axes.plot(values, height, ".", color=color, alpha=0.45, markersize=4)
        x, sd = row["mean"], row["sd"]
        _draw_errorbars(axes, x, position, x - sd, x + sd, color=color)
        failure_text = f"failed: {row['n_failed']} of {row['n_folds']}"
        annotation = (
            failure_text if row["n_failed"] else tables.spread_text(row["mean"])
        )
        axes.text(
            1.02,
            position,
            annotation,
            transform=axes.get_yaxis_transform(),
            va="center",
        )
    return axes


@styled()
def plot_confusion(
    evaluation: Evaluation,
    model: str | None = None,
    *,
    axes: Axes | None = None,
    width: float = COLUMN,
) -> Axes:
    """Draw the confusion matrix of all out-of-fold predictions of a model.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.
    model : str, optional
        Which; by default the first.
    axes, width
        As for :func:`plot_scores`.

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
    (_, predictions), classes = (
        _predictions(evaluation, model),
        evaluation.cohort.classes,
    )
    counts = confusion_matrix(
        predictions.actual, predictions.predicted, labels=range(len(classes))
    )
    totals = counts.sum(axis=1)
    row_shares = counts / np.maximum(totals[:, None], 1)
    (axes,) = own_axes(axes, width)
    axes.imshow(row_shares, cmap="Blues", vmin=0, vmax=1)
    for (row, column), count in np.ndenumerate(counts):
        color = "white" if row_shares[row, column] > 0.69 else None  # of more contrast
        text = f"{int(100 * row_shares[row, column] + 0.5)}%\n{count}"  # not 12 of 12.5
        axes.text(column, row, text, color=color, ha="center", va="center")
    rotated_style: Any = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    style = rotated_style if max(map(len, classes)) > 7 else {}
    names = [textwrap.fill(name, 24) for name in classes]
    axes.set_xticks(range(len(classes)), names, **style)
    labels = [f"{name}\nn = {n}" for name, n in zip(names, totals, strict=True)]
    axes.set_yticks(range(len(classes)), labels)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set(xlabel="predicted class", ylabel="true class")
    return axes


@styled()
def plot_roc(
    evaluation: Evaluation,
    model: str | None = None,
    *,
    axes: Axes | None = None,
    width: float = COLUMN,
) -> Axes:
    """Draw the ROC curve of every class against the rest, mean over folds.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.
    model : str, optional
        Which, of those that give probabilities or decision values; by default the
        first.
    axes, width
        As for :func:`plot_scores`.

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
    (model, predictions), classes = (
        _predictions(evaluation, model),
        evaluation.cohort.classes,
    )
    values = predictions.ranking
    if values is None:
        raise ParameterError(f"{model} has no ROC curve.")
    axes = _unit_square(axes, width, "1 \N{MINUS SIGN} specificity", "sensitivity")
    grid = np.linspace(0, 1, 1001)
    colors = class_colors(evaluation)
    folds = [
        np.flatnonzero(predictions.fold == fold) for fold in np.unique(predictions.fold)
    ]
    for code, name in enumerate(classes):
        is_class = predictions.actual == code
        scored_folds = [rows for rows in folds if 0 < is_class[rows].sum() < len(rows)]
        curves = [
            roc_curve(is_class[rows], values[rows, code])[:2] for rows in scored_folds
        ]
        if curves and (len(classes) > 2 or code == 1):
            area = pd.Series([auc(*curve) for curve in curves])
            mean = np.mean([np.interp(grid, *curve) for curve in curves], axis=0)
            text = f"{name} {tables.spread_text(area.mean(), area.std(), 2)}"
            axes.plot([0, *grid], [0, *mean], c=colors[name], label=text, clip_on=False)
    longest_label = max(
        len(str(line.get_label())) for line in axes.lines[-len(classes) :]
    )
    if 9 + LETTER * longest_label > 0.6 * figures.cell_size(axes)[0]:
        axes.set_xlabel(f"{axes.get_xlabel()} (above: AUC ± s.d.)")
        _legend(axes)
    else:
        legend_style: Any = {"handlelength": 1.2, "labelspacing": 0.2, "borderpad": 0.1}
        legend_style |= {"title": "AUC ± s.d.", "framealpha": 0.8, "edgecolor": "none"}
        axes.legend(loc="best", **legend_style)
    return axes


@styled()
def plot_calibration(
    evaluation: Evaluation,
    model: str | None = None,
    *,
    axes: Axes | None = None,
    width: float = COLUMN,
) -> Axes:
    """Draw how often predictions are correct against how confident the model was.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.
    model : str, optional
        Which, of those that give probabilities; by default the first.
    axes, width
        As for :func:`plot_scores`.

    Returns
    -------
    Axes
        Points hold equally many test scans, by the probability of the predicted
        class; those on the dashed line are calibrated, below it the model is
        overconfident. The label names the class shares that probabilities assume
        (`class_prior`).
        Bars are 95% Wilson intervals, which take scans for independent.

    Raises
    ------
    ParameterError
        Where the model gives no probabilities.
    """
    model, predictions = _predictions(evaluation, model)
    if predictions.probability is None:
        raise ParameterError(f"{model} gives no probabilities; it has no calibration.")
    confidence = predictions.confidence()
    correct = predictions.actual == predictions.predicted
    order = np.argsort(confidence, kind="stable")
    prior = evaluation.class_priors().get(model)
    label = "predicted probability"
    if prior is not None:
        label += f" ({prior if isinstance(prior, str) else 'given'} prior)"
    axes = _unit_square(axes, width, label, "accuracy")
    for rows in np.array_split(order, min(N_BINS, len(order))):
        share = correct[rows].mean()
        low, high = wilson_interval(correct[rows].sum(), len(rows))
        _draw_errorbars(
            axes, confidence[rows].mean(), share, low, high, along="yerr", color=BLUE
        )
    return axes


@styled()
def plot_scales(
    ranking: pd.DataFrame,
    atlas: Any = None,
    n_regions: int = N_SHOWN,
    *,
    axes: Axes | None = None,
    width: float = MIDDLE,
) -> Axes:
    """Draw the regions of smallest relative scale, with their intervals.

    Parameters
    ----------
    ranking : DataFrame
        As from :func:`brainlsap.evaluation.rank_regions`.
    atlas : str, Path, Atlas or sequence of str, optional
        For full names; else the names of the ranking.
    n_regions : int
        How many regions.
    axes, width
        As for :func:`plot_scores`.

    Returns
    -------
    Axes
        Smallest on top; bars are the range over folds and starts, or
        the middle 95% of 20 or more. Diamonds are
        planted regions of a simulation, hollow marks scales that were not learned: they
        kept within 5% of their start in most folds.

    Raises
    ------
    ParameterError
        Where no region has a rank.
    """
    top = tables.ranked_regions(ranking, n_regions).reset_index(drop=True)
    label = "relative heat scale (bars: range over folds)"
    names = tables.region_labels(list(top["region"]), atlas)
    axes = _named_rows(axes, width, names, label)
    axes.axvline(1, **DASHES, label="median region")
    for position, row in top.iterrows():
        is_planted, is_learned = bool(row.get("planted")), not row["moved"] < 0.5
        color, label_word = (ORANGE, "planted") if is_planted else (BLUE, "region")
        style: Any = {"fmt": "D" if is_planted else "o", "color": color}
        style["markerfacecolor"] = color if is_learned else "white"
        style["label"] = label_word + ("" if is_learned else ", not learned")
        bounds = row["relative_low"], row["relative_high"]
        _draw_errorbars(axes, row["relative_scale"], position, *bounds, **style)
    axes.set_xlim(left=max(0, axes.get_xlim()[0]))
    _legend(axes)
    return axes


@styled()
def plot_directions(
    evaluation: Evaluation,
    ranking: pd.DataFrame,
    atlas: Any = None,
    n_regions: int = N_SHOWN,
    *,
    feature: str | None = None,
    axes: Axes | None = None,
    width: float = MIDDLE,
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
    axes, width
        As for :func:`plot_scores`.

    Returns
    -------
    Axes
        For every class but the first, its difference from the first in pooled standard
        deviations with 95% intervals over people
        (:func:`brainlsap.report.class_differences`).
    """
    top = list(tables.ranked_regions(ranking, n_regions)["region"])
    feature = feature or evaluation.cohort.feature_names[0]
    check_choice("feature", feature, evaluation.cohort.feature_names)
    differences = tables.class_differences(evaluation).query("feature == @feature")
    first, *other_classes = evaluation.cohort.classes
    title = tables.feature_title(evaluation.cohort, feature)
    label = f"{title}: difference from {first} (s.d., 95%)"
    axes = _named_rows(axes, width, tables.region_labels(top, atlas), label)
    axes.axvline(0, **DASHES)
    colors = class_colors(evaluation)
    # classes of a region lie nearer to each other than to those of its neighbours
    middle, step = (len(other_classes) - 1) / 2, min(0.16, 0.5 / len(other_classes))
    for position, name in enumerate(other_classes):
        rows = (
            differences[differences["class"] == name].set_index("region").reindex(top)
        )
        style: Any = {"markersize": 3, "capsize": 0, "label": name}
        bounds = rows["difference_low"], rows["difference_high"]
        height = np.arange(len(top)) + step * (position - middle)
        _draw_errorbars(
            axes, rows["difference"], height, *bounds, color=colors[name], **style
        )
    _legend(axes)
    return axes


@styled()
def plot_training(
    evaluation: Evaluation,
    model: str | None = None,
    *,
    axes: Sequence[Axes] | None = None,
    width: float = PAGE,
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
    width : float
        As for :func:`plot_scores`; panels of less than 50 mm stand one below the other.

    Returns
    -------
    array of two Axes
        First, the losses of every fold (thin), of its start of lowest validation loss,
        and their median (thick), up to the last epoch of the fold that stopped first;
        epochs are counted from 1. Second, the relative scale of every region, mean over
        folds; those of the ten smallest scales are blue. A panel is empty where the
        model kept none.

    Raises
    ------
    ParameterError
        If the model is unknown, or kept neither.
    """
    model = _check_model(evaluation, model)
    fits = evaluation.fits[evaluation.fits["model"] == model]
    losses = tables.reported_values(fits, "losses")
    paths = scales_in_training(evaluation, model)
    if not losses and paths.empty:
        told = "has neither losses nor scales of a training; name another model"
        raise ParameterError(f"{model} {told}.")
    loss_axes, scale_axes = panels = own_axes(axes, width, 60, number=2)
    for kind, color in (("training", GREY), ("validation", BLUE)):
        folds = [pd.Series(x[kind], np.add(x["epoch"], 1), float) for x in losses]
        if any(one.notna().any() for one in folds):
            fold_losses = pd.concat(folds, axis=1)
            thin_line, *_ = loss_axes.plot(fold_losses, color=color, lw=0.4, alpha=0.7)
            thin_line.set_label("_" if color == BLUE else "each fold")
            loss_axes.plot(
                fold_losses.dropna().median(axis=1), color=color, lw=1.6, label=kind
            )
    if len(paths):
        is_small, other_label = paths.iloc[:, -1].rank() <= N_SHOWN, "other regions"
        scale_axes.plot(
            paths.columns, paths[~is_small].T, "#c4c4c4", lw=0.6, label=other_label
        )
        label = f"{N_SHOWN} smallest"
        scale_axes.plot(paths.columns, paths[is_small].T, BLUE, lw=0.6, label=label)
    scale_axes.set_xticks(list(QUARTERS), list(QUARTERS.values()))
    loss_axes.locator_params("x", integer=True)
    loss_axes.set(xlabel="epoch", ylabel="mean cross-entropy")
    scale_axes.set(xlabel="share of the epochs kept", ylabel="relative heat scale")
    for panel in panels:
        _legend(panel)
    return panels


def scales_in_training(evaluation: Evaluation, model: str) -> pd.DataFrame:
    """Return relative scales, mean over folds: a row a region, a column a share.

    Those of :func:`rank_regions` at every share of the training; of measured regions.
    Empty where the model has none during training.
    """
    own = evaluation.scales.query("model == @model and start == 'mean'")
    relative_scales = {}
    for share, scales in own.groupby("share") if (own["share"] < 1).any() else ():
        at_share = replace(evaluation, scales=scales.assign(share=1.0))
        relative_scales[share] = rank_regions(at_share, model).set_index("region")[
            "relative_scale"
        ]
    return pd.DataFrame(relative_scales).dropna()


def class_colors(evaluation: Evaluation) -> dict[str, Any]:
    """Return a colour for every class: of ordered ones, from light to dark."""
    classes, colors = evaluation.cohort.classes, list(COLORS)
    if evaluation.cohort.classes_ordered and len(classes) > 2:
        colors = list(plt.get_cmap("inferno_r")(np.linspace(0.15, 1, len(classes))))
    return {
        name: colors[position % len(colors)] for position, name in enumerate(classes)
    }


def _draw_errorbars(
    axes: Axes, x: Any, y: Any, low: Any, high: Any, along: str = "xerr", **style: Any
) -> None:
    """Draw values with their bounds, whole also where they lie on a limit."""
    center = x if along == "xerr" else y
    style[along] = np.array([center - low, high - center]).clip(0).reshape(2, -1)
    for mark in axes.errorbar(x, y, **BARS | style).get_children():
        mark.set_clip_on(False)


def _unit_square(axes: Any, width: float, xlabel: str, ylabel: str) -> Axes:
    """Return square axes of shares, with their diagonal."""
    (axes,) = own_axes(axes, width)
    axes.plot([0, 1], [0, 1], **DASHES)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel=xlabel, ylabel=ylabel)
    return axes


def _legend(axes: Axes) -> None:
    """Name each kind of mark once, above the axes."""
    marks, names = axes.get_legend_handles_labels()
    mark_of_name = dict(zip(names, marks, strict=True))
    width = figures.cell_size(axes)[0]
    wrapped_names = [
        textwrap.fill(name, max(8, int((width - 12) / LETTER))) for name in mark_of_name
    ]
    entry_width = 9 + LETTER * max(map(len, mark_of_name), default=0)
    per_line = max(1, int(width / entry_width))
    n_lines = -(-len(wrapped_names) // per_line) + sum(
        name.count("\n") for name in wrapped_names
    )
    figures.add_lines(axes, n_lines - 1, is_side_by_side=True)
    legend_style: Any = {"borderpad": 0.1, "columnspacing": 0.8, "handletextpad": 0.4}
    # above the letter that one of several panels may have, if need be of 12 points
    is_ours = isinstance(axes.figure, figures.PaperFigure)
    title_height = 0 if is_ours and len(axes.figure.axes) == 1 else 12 / 72
    offset = ScaledTranslation(0, title_height, axes.figure.dpi_scale_trans)
    legend_style |= {
        "bbox_to_anchor": (1, 1),
        "bbox_transform": axes.transAxes + offset,
    }
    legend_style |= {"loc": "lower right", "ncols": per_line}
    axes.legend(mark_of_name.values(), wrapped_names, **legend_style)


def _named_rows(axes: Any, width: float, names: list[str], label: str) -> Axes:
    """Return axes with a row a name, of a new figure as high as they need."""
    (axes,) = own_axes(axes, width, 19)
    width = figures.cell_size(axes)[0]
    per_line = int(17 + width / 6.4)
    plot_width = width - 8 - LETTER * min(per_line, max(map(len, names)))
    names = [textwrap.fill(tables.shorten_name(one, 72), per_line) for one in names]
    label = textwrap.fill(label, max(12, int(plot_width / LETTER)))
    row_height = max(1.5, 1 + max(name.count("\n") for name in names))
    figures.add_lines(axes, label.count("\n") + row_height * len(names))
    name_rows(axes, names)
    axes.set_xlabel(label)
    axes.locator_params("x", nbins=int(np.clip(plot_width / 13, 1, 9)))
    return axes


def _check_model(evaluation: Evaluation, model: str | None) -> str:
    """Return a model's name, by default the first one's; raise unless there is one."""
    check_evaluation_given(evaluation)
    model = evaluation.models[0] if model is None else model
    check_choice("model", model, evaluation.models)
    return model


def _predictions(evaluation: Evaluation, model: str | None) -> tuple[str, Predictions]:
    """Return a model's name and what it predicted, by default the first model's."""
    model = _check_model(evaluation, model)
    rows = evaluation.predictions[evaluation.predictions["model"] == model]
    if rows.empty:
        raise ParameterError(f"{model} failed in every fold; it has no predictions.")
    return model, evaluation.as_predictions(rows)


def name_rows(axes: Axes, names: list[str]) -> None:
    """Name rows, the first on top, each with a pale line; of spines keep the lower."""
    axes.set_yticks(range(len(names)), names)
    axes.set(ylim=(len(names) - 0.4, -0.6), axisbelow=True)
    axes.grid(axis="y", color="#eeeeee", linewidth=0.6)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
