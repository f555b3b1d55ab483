"""Figures of scores, confusion, calibration, rankings, training and one scan's regions.

All are drawn by pyplot.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any, Literal

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.transforms import ScaledTranslation
from sklearn.metrics import auc, confusion_matrix, roc_curve

from brainlsap.atlas import Atlas
from brainlsap.atlas.atlas import AtlasSource
from brainlsap.evaluation import (
    SCORES,
    ConnectomeGain,
    Evaluation,
    fold_scores,
    rank_regions,
)
from brainlsap.evaluation.comparison import wilson_interval
from brainlsap.evaluation.connectome_worth import MIN_LOG_CREDIT, RANDOM_CONNECTOMES
from brainlsap.evaluation.ranking import ALPHA
from brainlsap.evaluation.results import check_evaluation_given
from brainlsap.evaluation.scores import Predictions
from brainlsap.evaluation.subgroups import subgroup_table
from brainlsap.exceptions import ParameterError, check_choice
from brainlsap.report import figures, regions, tables
from brainlsap.report.brain_layout import compute_text_width_mm
from brainlsap.report.figures import (
    COLUMN_WIDTH,
    INK,
    LETTER_WIDTH,
    LINE_HEIGHT,
    MIDDLE_WIDTH,
    PAGE_WIDTH,
    prepare_axes_array,
    use_paper_style,
)
from brainlsap.text import count_text, option_text

# Colours of Okabe and Ito, which readers of any colour vision can distinguish.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8a8a8a"
COLORS = (BLUE, ORANGE, GREEN, "#CC79A7", "#56B4E9", "#E69F00")

DASH_STYLE: dict[str, Any] = {"color": GREY, "linestyle": (0, (4, 3))}
"""Style of reference lines."""

ZERO_STYLE: dict[str, Any] = {"color": GREY, "linewidth": 0.6}
"""Style of lines at no difference."""

PRIOR_LABELS = {
    "training": "class shares of training scans",
    "balanced": "equal class shares",
}
"""Class shares that probabilities assume, in the label of an axis."""

# Lines of classes, told apart without colour too: solid, then more and more broken.
CLASS_LINES = (
    "solid",
    (0, (6, 1.5)),
    (0, (3, 1.5)),
    (0, (6, 1.5, 1, 1.5)),
    (0, (1, 1)),
)
CLASS_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""Markers of classes, which differ in shape as well as in colour."""

N_SHOWN = 10
"""Number of regions in a figure."""

N_BINS = 8
"""Number of points in a calibration plot."""

QUARTERS = {0.0: "start", 0.25: "25%", 0.5: "50%", 0.75: "75%", 1.0: "end"}
"""Labels for shares of the training."""

GAIN_LABELS = {
    "evidence": "difference in log evidence (nats, 90% interval)",
    "error": "difference in squared error removed (%, 90% interval)",
}
"""Labels of axes, by what a connectome adds."""

BAR_STYLE: dict[str, Any] = {"fmt": "o", "markersize": 4, "zorder": 3}
"""Style of points with error bars."""

FLOW_BOX, FLOW_GAP, FLOW_MARGIN = 10.0, 5.0, 1.0
"""Height of the boxes of the flow of participants, gap and margin, in mm."""

N_CONTRIBUTIONS = 15
"""Number of regions with the largest contributions; one row shows all others."""


def _draw_box(
    axes: Axes,
    centre_mm: tuple[float, float],
    width_mm: float,
    text_lines: Sequence[str],
    *,
    height_mm: float = FLOW_BOX,
) -> None:
    """Draw a box with centred lines of text, the first in bold; lengths in mm."""
    x, y = centre_mm
    corner = x - width_mm / 2, y - height_mm / 2
    box_patch = Rectangle(corner, width_mm, height_mm, facecolor="white", edgecolor=INK)
    box_patch.set_linewidth(0.6)
    axes.add_patch(box_patch)
    text_style: Any = {"ha": "center", "va": "center", "zorder": 3}
    n_lines = len(text_lines)
    for line_number, line_text in enumerate(text_lines):
        line_offset = (line_number - (n_lines - 1) / 2) * LINE_HEIGHT
        font_weight = "bold" if line_number == 0 else "normal"
        axes.text(x, y + line_offset, line_text, fontweight=font_weight, **text_style)


def _draw_arrow(
    axes: Axes, start_point_mm: tuple[float, float], end_point_mm: tuple[float, float]
) -> None:
    """Draw an arrow between two points."""
    line_style = {
        "arrowstyle": "-|>,head_width=0.18,head_length=0.35",
        "linewidth": 0.7,
    }
    arrow_style = {**line_style, "color": INK, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end_point_mm, start_point_mm, arrowprops=arrow_style)


@use_paper_style()
def plot_flow(evaluation: Evaluation, *, width: float = MIDDLE_WIDTH) -> Figure:
    """Draw what became of the people and scans listed, as CONSORT and STARD do.

    Parameters
    ----------
    evaluation : Evaluation
    width : float
        Width of the figure in mm, from 100 to 400.

    Returns
    -------
    Figure
        Boxes from above: listed; to the right everybody left out, in order; analysed;
        analysed by class. In each the number of participants (n) and of scans.
    """
    flow_table = evaluation.cohort.flow()
    class_count_table = evaluation.cohort.class_counts()
    class_count_table = class_count_table[class_count_table["scans"] > 0]
    box_distance = FLOW_BOX + FLOW_GAP
    n_side_boxes = len(flow_table) - 2
    first_box_y = FLOW_MARGIN + FLOW_BOX / 2
    last_box_y = first_box_y + (n_side_boxes + 1) * box_distance
    figure_height_mm = (
        last_box_y + 1.5 * FLOW_BOX + 2 * FLOW_GAP + LINE_HEIGHT + FLOW_MARGIN
    )
    figure = figures.make_figure(width, figure_height_mm, layout="none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(figure_height_mm, 0))
    axes.axis("off")
    main_x, main_width = 0.25 * width, 0.42 * width
    side_x, side_width = 0.75 * width, 0.47 * width
    _draw_arrow(
        axes, (main_x, first_box_y + FLOW_BOX / 2), (main_x, last_box_y - FLOW_BOX / 2)
    )
    flow_records = [*flow_table.itertuples()]
    for row_number, flow_record in enumerate(flow_records):
        counts_text = (
            f"n = {flow_record.participants} ({count_text(flow_record.scans, 'scan')})"
        )
        if 0 < row_number <= n_side_boxes:
            box_y = first_box_y + row_number * box_distance
            _draw_arrow(axes, (main_x, box_y), (side_x - side_width / 2, box_y))
            box_title = flow_record.title[:1].upper() + flow_record.title[1:]
            _draw_box(axes, (side_x, box_y), side_width, [box_title, counts_text])
        else:
            box_y = first_box_y if row_number == 0 else last_box_y
            box_title = "Listed in the tables" if row_number == 0 else "Analysed"
            _draw_box(axes, (main_x, box_y), main_width, [box_title, counts_text])
    _draw_class_boxes(axes, class_count_table, (main_x, last_box_y), width)
    return figure


def _draw_class_boxes(
    axes: Axes,
    class_count_table: pd.DataFrame,
    parent_centre_mm: tuple[float, float],
    width_mm: float,
) -> None:
    """Draw a row of boxes with the participants and scans of each class."""
    parent_x, parent_y = parent_centre_mm
    n_classes = len(class_count_table)
    # The row is as wide as the boxes above it.
    left_x, right_x = 0.04 * width_mm, 0.985 * width_mm
    box_distance = (right_x - left_x + FLOW_GAP / 2) / n_classes
    box_width = box_distance - FLOW_GAP / 2
    first_x = left_x + box_width / 2
    if n_classes <= 2:
        first_x, box_distance, box_width = parent_x, 0.5 * width_mm, 0.42 * width_mm
    box_height = FLOW_BOX + LINE_HEIGHT
    line_y = parent_y + FLOW_BOX / 2 + FLOW_GAP
    top_y = line_y + FLOW_GAP
    axes.plot([parent_x] * 2, [parent_y + FLOW_BOX / 2, line_y], color=INK, lw=0.7)
    last_x = first_x + (n_classes - 1) * box_distance
    line_end_positions = [min(first_x, parent_x), max(last_x, parent_x)]
    axes.plot(line_end_positions, [line_y] * 2, color=INK, lw=0.7)
    for class_index, class_record in enumerate(class_count_table.to_dict("records")):
        x = first_x + class_index * box_distance
        _draw_arrow(axes, (x, line_y), (x, top_y))
        n_letters = int(box_width / LETTER_WIDTH)
        class_title = textwrap.shorten(
            class_record["class"], n_letters, placeholder="..."
        )
        text_lines = [
            class_title,
            f"n = {class_record['participants']}",
            count_text(class_record["scans"], "scan"),
        ]
        _draw_box(
            axes,
            (x, top_y + box_height / 2),
            box_width,
            text_lines,
            height_mm=box_height,
        )


@use_paper_style()
def plot_scores(
    evaluation: Evaluation,
    score_name: str = "balanced_accuracy",
    *,
    axes: Axes | None = None,
    width: float = MIDDLE_WIDTH,
) -> Axes:
    """Draw one score of all models side by side, a dot for every fold.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    score_name : str
        One of :func:`brainlsap.evaluation.fold_scores`.
    axes : Axes, optional
        Axes to draw on; by default those of a new figure. Text has 7 points, so axes
        with their labels need 60 mm or more in width and height. Use a figure with
        `layout="constrained"` so that no label is cut off, and one subfigure per panel
        so that the panels of a row keep their size:
        `[panel.subplots() for panel in figure.subfigures(1, 3)]`.
    width : float
        Width of a new figure in mm, from 60 to 400: for example 85 (one column of a
        journal) or 180 (two). The size of the text does not change.

    Returns
    -------
    Axes
        The large dot is the score of all test scans, the bar its 95% interval over
        participants, and small dots are folds. Models are blue, baselines and controls
        grey; the dashed line is chance. Behind the name of a model, "= name" is the
        model of the same predictions (`evaluation.twin_of_model`). Rows have the order
        of the table of scores, and the axis begins at 0 or below.

    Raises
    ------
    ParameterError
        If `score_name` is unknown.
    """
    check_choice("score_name", score_name, fold_scores())
    score_title = tables.find_title_by_score(evaluation).get(
        score_name, SCORES[score_name].title
    )
    fold_score_table = evaluation.scores()
    summary_table = tables.select_score_summary_table(evaluation, score_name)
    # Order models as the table of scores does.
    group_indices = [
        tables.MODEL_GROUPS.index(tables.find_model_group_name(str(model_name), role))
        for model_name, role in summary_table["role"].items()
    ]
    summary_table = summary_table.iloc[np.argsort(group_indices, kind="stable")]
    axis_label = f"{score_title} (small dots: folds; bar: 95% interval)"
    twin_by_model = evaluation.twin_of_model
    row_names = [
        f"{model_name} (= {twin_by_model[model_name]})"
        if model_name in twin_by_model
        else str(model_name)
        for model_name in summary_table.index
    ]
    axes = _make_row_axes(axes, width, row_names, axis_label)
    if score_name == "balanced_accuracy":
        _draw_reference_line(axes, 1 / len(evaluation.cohort.classes), "chance")
    for bar_position, (model_name, summary_row) in enumerate(summary_table.iterrows()):
        fold_values = fold_score_table.loc[
            fold_score_table["model"] == model_name, score_name
        ].to_numpy()
        bar_color = BLUE if summary_row["role"] == "model" else GREY
        # Draw each fold at the same height in every row.
        dot_positions = bar_position + np.linspace(-0.2, 0.2, len(fold_values))
        axes.plot(
            fold_values, dot_positions, ".", color=bar_color, alpha=0.45, markersize=4
        )
        estimate_and_bounds = tables.score_interval_table(
            evaluation, str(model_name)
        ).loc[score_name]
        _draw_errorbars(
            axes,
            estimate_and_bounds["estimate"],
            bar_position,
            estimate_and_bounds["low"],
            estimate_and_bounds["high"],
            color=bar_color,
        )
        score_text = tables.spread_text(estimate_and_bounds["estimate"])
        if summary_row["n_failed"]:
            score_text = f"failed: {summary_row['n_failed']} of {len(fold_values)}"
        axes.text(
            1.02,
            bar_position,
            score_text,
            transform=axes.get_yaxis_transform(),
            va="center",
        )
    if axes.get_xlim()[0] > 0:
        axes.set_xlim(left=0)
    return axes


@use_paper_style()
def plot_connectome_gain(
    gain: ConnectomeGain,
    statistic: str = "evidence",
    *,
    axes: Axes | None = None,
    width: float = MIDDLE_WIDTH,
) -> Axes:
    """Draw what the study's connectome adds, minus what other connectomes add.

    Parameters
    ----------
    gain : ConnectomeGain
        Of :func:`brainlsap.evaluation.connectome_gain`.
    statistic : {"evidence", "error"}
        Log evidence, or part of the left-out squared error that is removed.
    axes, width
        As for :func:`plot_scores`.

    Returns
    -------
    Axes
        A dot is a difference (the mean over draws), a bar its 90% interval. The first
        row is the gain over the regions' own values without any connectome. The rows
        that decide whether the connectome helps are blue, those of connectomes of other
        people orange; the dashed line is no difference, and the dotted line the
        smallest difference in log evidence that counts.
    """
    check_choice("statistic", statistic, GAIN_LABELS)
    gain_records = gain.table.to_dict("records")
    row_names = ["no connectome"] + [
        tables.CONNECTOME_TITLES[gain_record["connectome"]]
        for gain_record in gain_records[1:]
    ]
    axes = _make_row_axes(axes, width, row_names, GAIN_LABELS[statistic])
    axes.locator_params("x", nbins=5)
    _draw_reference_line(axes, 0, "equal")
    if statistic == "evidence":
        _draw_reference_line(
            axes,
            MIN_LOG_CREDIT,
            f"{MIN_LOG_CREDIT:.1f} nats",
            alignment="left",
            linestyle="dotted",
        )
    percent_factor = 100 if statistic == "error" else 1
    for row_position, gain_record in enumerate(gain_records):
        is_original = gain_record["connectome"] == "original"
        is_decisive = is_original or gain_record["connectome"] in RANDOM_CONNECTOMES
        column_name = f"{statistic}_{'gain' if is_original else 'lead'}"
        x, lower_bound, upper_bound = (
            percent_factor * gain_record[f"{column_name}{bound_suffix}"]
            for bound_suffix in ("", "_low", "_high")
        )
        dot_color = BLUE if is_decisive else ORANGE
        _draw_errorbars(
            axes, x, row_position, lower_bound, upper_bound, color=dot_color
        )
    left_limit, right_limit = axes.get_xlim()
    # The label of the line at 0 must not run into the letter of the panel.
    axes.set_xlim(left=min(left_limit, -0.2 * right_limit))
    return axes


@use_paper_style()
def plot_learning_curve(
    evaluation: Evaluation, *, axes: Axes | None = None, width: float = COLUMN_WIDTH
) -> Axes:
    """Draw the balanced accuracy of models by the number of people in training.

    Parameters
    ----------
    evaluation : Evaluation
        With the table of :func:`brainlsap.evaluation.learning_curve`.
    axes, width
        As for :func:`plot_scores`.

    Returns
    -------
    Axes
        A dot is the score of all test scans, a bar its 95% interval over people. The
        axis of people is logarithmic; the dashed line is chance.

    Raises
    ------
    ParameterError
        If the evaluation has no learning curve.
    """
    curve_table = evaluation.learning_curve
    if curve_table is None:
        raise ParameterError(
            "the evaluation has no learning curve; run the study with "
            f"{option_text('learning_curve', True)}."
        )
    (axes,) = prepare_axes_array(axes, width)
    axes.axhline(1 / len(evaluation.cohort.classes), color=GREY, linestyle="--")
    curve_styles = zip((BLUE, ORANGE), ("o", "s"), ("-", ":"), strict=True)
    x_factors = (0.985, 1.015)  # of dots, so that bars do not cover each other
    for (model_name, model_table), (color, marker, line_style), x_factor in zip(
        curve_table.groupby("model", sort=False), curve_styles, x_factors, strict=False
    ):
        person_counts = model_table["n_train_people"] * x_factor
        lower_errors, upper_errors = (
            model_table["estimate"] - model_table["low"],
            model_table["high"] - model_table["estimate"],
        )
        axes.errorbar(
            person_counts,
            model_table["estimate"],
            [lower_errors, upper_errors],
            color=color,
            marker=marker,
            linestyle=line_style,
            markersize=4,
            label=str(model_name),
        )
    axes.set_xscale("log")
    tick_values = sorted(set(curve_table["n_train_people"]))
    axes.set_xticks(tick_values, [f"{tick_value:.0f}" for tick_value in tick_values])
    axes.minorticks_off()
    axes.set_xlabel("training participants of a fold")
    axes.set_ylabel("balanced accuracy")
    axes.legend(loc="best")
    return axes


@use_paper_style()
def plot_subgroups(
    evaluation: Evaluation,
    columns: str | Sequence[str] | None = None,
    model: str | None = None,
    *,
    axes: Axes | None = None,
    width: float = MIDDLE_WIDTH,
) -> Axes:
    """Draw the balanced accuracy of a model in groups of people.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds, or an external evaluation.
    columns : str or sequence of str, optional
        As of :func:`brainlsap.evaluation.choose_subgroup_columns`; by default those of
        the study.
    model : str, optional
        Name of the model; by default the first.
    axes, width
        As for :func:`plot_scores`.

    Returns
    -------
    Axes
        A dot is the score of a group, a bar its 95% interval over people; groups of
        one column have one colour. The dashed line is the score of these groups
        together, over the same classes, and the dotted line is their chance. Groups
        without a score are not drawn.

    Raises
    ------
    ParameterError
        If no group has a score, or as of :func:`brainlsap.evaluation.subgroup_table`.
    """
    model = _resolve_model_name(evaluation, model)
    group_table = subgroup_table(evaluation, columns, model)
    group_table = group_table[group_table["note"] == ""].reset_index(drop=True)
    if group_table.empty:
        raise ParameterError("no group of people has a score.")
    row_names = [
        f"{group_record['column']}: {group_record['group']} (n = "
        f"{group_record['people']})"
        for group_record in group_table.to_dict("records")
    ]
    axis_label = "balanced accuracy (dashed: groups together; dotted: chance)"
    axes = _make_row_axes(axes, width, row_names, axis_label)
    for _, column_table in group_table.groupby("column"):
        line_end_positions = (
            column_table.index.min() - 0.4,
            column_table.index.max() + 0.4,
        )
        axes.vlines(
            column_table["all_groups"].iloc[0],
            *line_end_positions,
            linewidth=1,
            **DASH_STYLE,
        )
        chance_score = column_table["chance"].iloc[0]
        axes.vlines(
            chance_score,
            *line_end_positions,
            linewidth=1,
            color="black",
            linestyle="dotted",
        )
    color_by_column = dict(zip(group_table["column"].unique(), cycle(COLORS)))
    for row_position, group_record in enumerate(group_table.to_dict("records")):
        _draw_errorbars(
            axes,
            group_record["balanced_accuracy"],
            row_position,
            group_record["low"],
            group_record["high"],
            color=color_by_column[group_record["column"]],
        )
    return axes


@use_paper_style()
def plot_confusion(
    evaluation: Evaluation,
    model: str | None = None,
    *,
    axes: Axes | None = None,
    width: float = COLUMN_WIDTH,
) -> Axes:
    """Draw the confusion matrix of all out-of-fold predictions of a model.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    model : str, optional
        Name of the model; by default the first.
    axes, width
        As for :func:`plot_scores`.

    Returns
    -------
    Axes
        Rows are true classes and sum to 100%, columns are predicted classes. Each cell
        shows its share, by which it is shaded, and below it the number of scans.

    Raises
    ------
    ParameterError
        If no such model was evaluated.
    """
    _, model_predictions = _select_name_and_predictions(evaluation, model)
    class_names = evaluation.cohort.classes
    confusion_counts = confusion_matrix(
        model_predictions.actual_codes,
        model_predictions.predicted_codes,
        labels=range(len(class_names)),
    )
    class_scan_totals = confusion_counts.sum(axis=1)
    row_shares = confusion_counts / np.maximum(class_scan_totals[:, None], 1)
    (axes,) = prepare_axes_array(axes, width)
    # Dark letters are easy to read on the lighter half of the colours.
    light_blues = plt.get_cmap("Blues")(np.linspace(0, 0.5, 256))
    axes.imshow(row_shares, cmap=ListedColormap(light_blues), vmin=0, vmax=1)
    for (row_index, column_index), cell_count in np.ndenumerate(confusion_counts):
        row_share = row_shares[row_index, column_index]
        # Round 12.5 up, not to even.
        cell_text = f"{int(100 * row_share + 0.5)}%\n{cell_count}"
        axes.text(
            column_index,
            row_index,
            cell_text,
            color=INK,
            ha="center",
            va="center",
        )
    rotated_style: Any = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    label_style = rotated_style if max(map(len, class_names)) > 7 else {}
    wrapped_class_names = [textwrap.fill(class_name, 24) for class_name in class_names]
    axes.set_xticks(range(len(class_names)), wrapped_class_names, **label_style)
    class_row_labels = [
        f"{class_name}\nn = {class_total}"
        for class_name, class_total in zip(
            wrapped_class_names, class_scan_totals, strict=True
        )
    ]
    axes.set_yticks(range(len(class_names)), class_row_labels)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set(xlabel="predicted class", ylabel="true class")
    return axes


@use_paper_style()
def plot_roc(
    evaluation: Evaluation,
    model: str | None = None,
    *,
    axes: Axes | None = None,
    width: float = COLUMN_WIDTH,
) -> Axes:
    """Draw the ROC curve of every class against the rest, mean over folds.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    model : str, optional
        Name of a model with probabilities or decision values; by default the first.
    axes, width
        As for :func:`plot_scores`.

    Returns
    -------
    Axes
        One curve per class, of its own colour and dashes; with two classes only that
        of the second. The legend, above the axes so that it covers no curve, gives the
        area under the curve: mean ± s.d. over the folds that contain the class.

    Raises
    ------
    ParameterError
        If the model gives neither probabilities nor decision values.
    """
    model, model_predictions = _select_name_and_predictions(evaluation, model)
    class_names = evaluation.cohort.classes
    ranking_scores = model_predictions.ranking_scores
    if ranking_scores is None:
        raise ParameterError(f"{model} has no ROC curve.")
    axes = _make_square_axes(axes, width, "1 \N{MINUS SIGN} specificity", "sensitivity")
    false_positive_rates = np.linspace(0, 1, 1001)
    color_by_class = choose_color_by_class(evaluation)
    test_indices_of_folds = [
        np.flatnonzero(model_predictions.fold_numbers == fold_number)
        for fold_number in np.unique(model_predictions.fold_numbers)
    ]
    for class_code, class_name in enumerate(class_names):
        class_scan_mask = model_predictions.actual_codes == class_code
        test_indices_of_scored_folds = [
            test_indices
            for test_indices in test_indices_of_folds
            if 0 < class_scan_mask[test_indices].sum() < len(test_indices)
        ]
        roc_curves = [
            roc_curve(
                class_scan_mask[test_indices], ranking_scores[test_indices, class_code]
            )[:2]
            for test_indices in test_indices_of_scored_folds
        ]
        if roc_curves and (len(class_names) > 2 or class_code == 1):
            fold_aucs = pd.Series(
                [auc(*roc_curve_points) for roc_curve_points in roc_curves]
            )
            mean_true_positive_rates = np.mean(
                [
                    np.interp(false_positive_rates, *roc_curve_points)
                    for roc_curve_points in roc_curves
                ],
                axis=0,
            )
            auc_text = tables.spread_text(fold_aucs.mean(), fold_aucs.std(), 2)
            legend_text = f"{class_name} {auc_text}"
            axes.plot(
                [0, *false_positive_rates],
                [0, *mean_true_positive_rates],
                c=color_by_class[class_name],
                linestyle=CLASS_LINES[class_code % len(CLASS_LINES)],
                label=legend_text,
                clip_on=False,
            )
    auc_title = "AUC ± s.d. over folds" if len(test_indices_of_folds) > 1 else "AUC"
    # Beside other panels, a legend of one column would be as high as half a panel.
    legend_overhang_mm = 8.0 if len(axes.figure.axes) > 1 else 0.0
    _draw_legend(axes, auc_title, legend_overhang_mm)
    return axes


@use_paper_style()
def plot_calibration(
    evaluation: Evaluation,
    model: str | None = None,
    *,
    axes: Axes | None = None,
    width: float = COLUMN_WIDTH,
) -> Axes:
    """Draw the share of correct predictions against the probability of their class.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    model : str, optional
        Name of a model with probabilities; by default the first.
    axes, width
        As for :func:`plot_scores`.

    Returns
    -------
    Axes
        Test scans are sorted by the probability of their predicted class and divided
        into groups of the same size. Each point is the mean of a group. The predicted
        class can have a smaller probability than another class, because the class
        weights of the fit choose it. Points on the dashed line are calibrated; below
        the line the model is overconfident. The label names the class shares that
        probabilities assume (`class_prior`). Bars are 95% Wilson intervals, which treat
        scans as independent.

    Raises
    ------
    ParameterError
        If the model gives no probabilities.
    """
    model, model_predictions = _select_name_and_predictions(evaluation, model)
    if model_predictions.class_probabilities is None:
        raise ParameterError(
            f"{model} gives no probabilities, so it has no calibration."
        )
    confidences = model_predictions.confidence()
    correct_prediction_mask = (
        model_predictions.actual_codes == model_predictions.predicted_codes
    )
    confidence_order = np.argsort(confidences, kind="stable")
    class_prior = evaluation.class_priors().get(model)
    axis_label = "probability of the predicted class"
    if class_prior is not None:
        prior_label = PRIOR_LABELS.get(str(class_prior), "given class shares")
        axis_label += f"\n({prior_label})"
    axes = _make_square_axes(axes, width, axis_label, "share of correct predictions")
    for bin_scan_indices in np.array_split(
        confidence_order, min(N_BINS, len(confidence_order))
    ):
        bin_accuracy = correct_prediction_mask[bin_scan_indices].mean()
        lower_bound, upper_bound = wilson_interval(
            correct_prediction_mask[bin_scan_indices].sum(), len(bin_scan_indices)
        )
        mean_confidence = confidences[bin_scan_indices].mean()
        _draw_errorbars(
            axes,
            mean_confidence,
            bin_accuracy,
            lower_bound,
            upper_bound,
            error_keyword="yerr",
            color=BLUE,
        )
    return axes


@use_paper_style()
def plot_scales(
    ranking: pd.DataFrame,
    atlas: AtlasSource | None = None,
    n_regions: int = N_SHOWN,
    *,
    axes: Axes | None = None,
    width: float = MIDDLE_WIDTH,
) -> Axes:
    """Draw the regions of smallest relative scale, with their range over folds.

    Parameters
    ----------
    ranking : DataFrame
        Result of :func:`brainlsap.evaluation.rank_regions`.
    atlas : str, Path, Atlas or sequence of str, optional
        Source of full region names; by default the names of the ranking.
    n_regions : int
        Number of regions.
    axes, width
        As for :func:`plot_scores`.

    Returns
    -------
    Axes
        The smallest scale is on top. Bars are the range over folds and random
        initialisations, or the middle 95% of 20 or more. Black diamonds are planted
        regions of a simulation. Hollow marks are scales that were not learned: in most
        folds they stayed within 5% of their initial value.

    Raises
    ------
    ParameterError
        If no region has a rank.
    """
    top_table = tables.select_ranked_region_table(ranking, n_regions).reset_index(
        drop=True
    )
    axis_label = "relative scale (bars: range over folds)"
    region_names = tables.region_labels(list(top_table["region"]), atlas)
    axes = _make_row_axes(axes, width, region_names, axis_label)
    axes.axvline(1, **DASH_STYLE, label="median region")
    for row_position, region_row in top_table.iterrows():
        is_planted = bool(region_row.get("planted"))
        is_learned = not region_row["moved"] < 0.5
        dot_color = INK if is_planted else GREY
        region_kind = "planted" if is_planted else "region"
        _draw_errorbars(
            axes,
            region_row["relative_scale"],
            row_position,
            region_row["relative_low"],
            region_row["relative_high"],
            fmt="D" if is_planted else "o",
            color=dot_color,
            markerfacecolor=dot_color if is_learned else "white",
            label=region_kind if is_learned else f"{region_kind}, not learned",
        )
    axes.set_xlim(left=max(0, axes.get_xlim()[0]))
    _draw_legend(axes)
    return axes


@use_paper_style()
def plot_directions(
    evaluation: Evaluation,
    ranking: pd.DataFrame,
    atlas: AtlasSource | None = None,
    n_regions: int = N_SHOWN,
    *,
    feature: str | None = None,
    axes: Axes | None = None,
    width: float = MIDDLE_WIDTH,
) -> Axes:
    """Draw how a feature of the first regions differs between classes.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    ranking, atlas, n_regions
        As for :func:`plot_scales`, which draws the same rows.
    feature : str, optional
        Name of the feature; by default the first.
    axes, width
        As for :func:`plot_scores`.

    Returns
    -------
    Axes
        Differences of every other class from the first in pooled standard deviations,
        with 95% intervals over people
        (:func:`brainlsap.report.class_difference_table`). Each class has its own colour
        and shape of marks.
    """
    top_region_names = list(
        tables.select_ranked_region_table(ranking, n_regions)["region"]
    )
    feature = feature or evaluation.cohort.feature_names[0]
    check_choice("feature", feature, evaluation.cohort.feature_names)
    difference_table = tables.class_difference_table(evaluation).query(
        "feature == @feature"
    )
    first_class, *other_classes = evaluation.cohort.classes
    feature_text = tables.feature_title(evaluation.cohort, feature)
    axis_label = f"{feature_text}: difference from {first_class} (s.d., 95% CI)"
    axes = _make_row_axes(
        axes, width, tables.region_labels(top_region_names, atlas), axis_label
    )
    axes.axvline(0, **ZERO_STYLE)
    color_by_class = choose_color_by_class(evaluation)
    # Space classes so that those of one region are closer than neighbouring regions.
    middle_offset = (len(other_classes) - 1) / 2
    class_spacing = min(0.16, 0.5 / len(other_classes))
    for class_index, class_name in enumerate(other_classes):
        class_table = (
            difference_table[difference_table["class"] == class_name]
            .set_index("region")
            .reindex(top_region_names)
        )
        _draw_errorbars(
            axes,
            class_table["difference"],
            np.arange(len(top_region_names))
            + class_spacing * (class_index - middle_offset),
            class_table["difference_low"],
            class_table["difference_high"],
            color=color_by_class[class_name],
            fmt=CLASS_MARKERS[class_index % len(CLASS_MARKERS)],
            markersize=3.5,
            capsize=0,
            label=class_name,
        )
    _draw_legend(axes)
    return axes


@use_paper_style()
def plot_region_tests(
    evaluation: Evaluation,
    atlas: AtlasSource | None = None,
    n_regions: int = N_SHOWN,
    *,
    feature: str | None = None,
    axes: Axes | None = None,
    width: float = MIDDLE_WIDTH,
) -> Axes:
    """Draw effect and contrast of the regions of largest effect.

    Parameters
    ----------
    evaluation : Evaluation
        With `region_tests` of :func:`brainlsap.evaluation.compare_regions`.
    atlas, n_regions
        As for :func:`brainlsap.report.region_tests_table`, which chooses the rows.
    feature : str, optional
        Name of the feature; by default the first.
    axes, width
        As for :func:`plot_scores`.

    Returns
    -------
    Axes
        Circles: effect. Squares: contrast, with the sign of the effect. Bars are 95%
        intervals; a contrast has none where that of the effect includes 0. Filled
        marks have a family-wise p below 0.05; without tests all are hollow. The legend
        explains hollow marks of tests.

    Raises
    ------
    ParameterError
        If the evaluation has no `region_tests`.
    """
    feature = feature or evaluation.cohort.feature_names[0]
    check_choice("feature", feature, evaluation.cohort.feature_names)
    selected_test_table = regions.select_top_region_test_table(
        evaluation, n_regions, feature
    )
    region_names = tables.region_labels(list(selected_test_table["region"]), atlas)
    axis_label = "correlation with the class number (95%)"
    if "F" in selected_test_table:
        axis_label = "eta (95%)"
    axes = _make_row_axes(axes, width, region_names, axis_label)
    axes.axvline(0, **ZERO_STYLE)
    effects_and_bounds = selected_test_table[
        ["effect", "effect_low", "effect_high"]
    ].to_numpy()
    contrasts_and_bounds = selected_test_table[
        ["contrast", "contrast_low", "contrast_high"]
    ].to_numpy()
    mark_style: Any = {"markersize": 3.5, "capsize": 0}
    for (
        statistic_name,
        estimates_and_bounds,
        statistic_color,
        statistic_marker,
        row_offset,
    ) in (
        ("effect", effects_and_bounds, BLUE, "o", -0.15),
        ("contrast", contrasts_and_bounds, GREEN, "s", 0.15),
    ):
        significant_region_mask = (
            selected_test_table[f"p_{statistic_name}"].to_numpy() < ALPHA
        )
        for drawn_region_mask, face_color in (
            (~significant_region_mask, "white"),
            (significant_region_mask, statistic_color),
        ):
            if not drawn_region_mask.any():
                continue
            _draw_errorbars(
                axes,
                estimates_and_bounds[drawn_region_mask, 0],
                np.flatnonzero(drawn_region_mask) + row_offset,
                estimates_and_bounds[drawn_region_mask, 1],
                estimates_and_bounds[drawn_region_mask, 2],
                fmt=statistic_marker,
                color=statistic_color,
                markerfacecolor=face_color,
                label=statistic_name,
                **mark_style,
            )
    p_values = selected_test_table[["p_effect", "p_contrast"]].to_numpy(float)
    if (p_values >= ALPHA).any():
        hollow_style: Any = {"fmt": "o", "color": GREY, "markerfacecolor": "white"}
        axes.errorbar(
            [], [], label=f"hollow: p ≥ {ALPHA:g}", **mark_style | hollow_style
        )
    _draw_legend(axes)
    return axes


@use_paper_style()
def plot_training(
    evaluation: Evaluation,
    model: str | None = None,
    *,
    axes: Sequence[Axes] | None = None,
    width: float = PAGE_WIDTH,
) -> np.ndarray:
    """Draw the loss of a model over its epochs, and its scales over the training.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    model : str, optional
        Name of the model; by default the first.
    axes : sequence of two Axes, optional
        Axes to draw on; by default those of a new figure.
    width : float
        As for :func:`plot_scores`; panels narrower than 50 mm are stacked.

    Returns
    -------
    array of two Axes
        First, the losses of every fold (thin) for the random initialisation of lowest
        validation loss, and their median (thick) up to the last epoch of the fold that
        stopped first; epochs are counted from 1. Second, the relative scale of every
        region, mean over folds, with the ten smallest in blue. A panel is empty if the
        model has no such record.

    Raises
    ------
    ParameterError
        If the model is unknown, or has neither record.
    """
    model = _resolve_model_name(evaluation, model)
    model_fit_table = evaluation.fits[evaluation.fits["model"] == model]
    loss_records = tables.list_reported_values(model_fit_table, "losses")
    scale_path_table = make_training_scale_table(evaluation, model)
    if not loss_records and scale_path_table.empty:
        raise ParameterError(
            f"{model} has no record of training (losses, scales); name another model."
        )
    loss_axes, scale_axes = panel_axes_array = prepare_axes_array(
        axes, width, 60, n_panels=2
    )
    for loss_kind, curve_color in (("training", GREY), ("validation", BLUE)):
        loss_curves = [
            pd.Series(loss_record[loss_kind], np.add(loss_record["epoch"], 1), float)
            for loss_record in loss_records
        ]
        if any(loss_curve.notna().any() for loss_curve in loss_curves):
            loss_table = pd.concat(loss_curves, axis=1)
            thin_line, *_ = loss_axes.plot(
                loss_table, color=curve_color, lw=0.4, alpha=0.7
            )
            thin_line.set_label("_" if curve_color == BLUE else "each fold")
            loss_axes.plot(
                loss_table.dropna().median(axis=1),
                color=curve_color,
                lw=1.6,
                label=loss_kind,
            )
    if len(scale_path_table):
        training_shares = scale_path_table.columns
        small_scale_region_mask = scale_path_table.iloc[:, -1].rank() <= N_SHOWN
        for drawn_region_mask, curve_color, legend_label in (
            (~small_scale_region_mask, "#c4c4c4", "other regions"),
            (small_scale_region_mask, BLUE, f"{N_SHOWN} smallest"),
        ):
            scale_axes.plot(
                training_shares,
                scale_path_table[drawn_region_mask].T,
                curve_color,
                lw=0.6,
                label=legend_label,
            )
    scale_axes.set_xticks(list(QUARTERS), list(QUARTERS.values()))
    loss_axes.locator_params("x", integer=True)
    loss_axes.set(xlabel="epoch", ylabel="mean cross-entropy")
    scale_axes.set(xlabel="share of the epochs kept", ylabel="relative scale")
    for panel_ax in panel_axes_array:
        _draw_legend(panel_ax)
    return panel_axes_array


def plot_contributions(
    contributions: pd.DataFrame, atlas: Atlas | None, axis_label: str
) -> Figure:
    """Draw the largest contributions of regions to the score of one scan.

    Parameters
    ----------
    contributions : DataFrame
        Rows of one scan and one target of :func:`brainlsap.contribution_table`.
    atlas : Atlas or None
        For the names of regions.
    axis_label : str
        Label of the axis.

    Returns
    -------
    Figure
        A bar per region, and one for the sum of all others.
    """
    contribution_series = contributions.set_index("region")["contribution"]
    ordered_region_names = (
        contribution_series.abs().sort_values(ascending=False, kind="stable").index
    )
    largest_region_names = list(ordered_region_names[:N_CONTRIBUTIONS])
    other_region_names = ordered_region_names[N_CONTRIBUTIONS:]
    row_names = tables.region_labels(largest_region_names, atlas)
    bar_lengths = contribution_series[largest_region_names].tolist()
    if len(other_region_names):
        row_names.append(f"{len(other_region_names)} other regions")
        bar_lengths.append(float(contribution_series[other_region_names].sum()))
    (axes,) = prepare_axes_array(None, COLUMN_WIDTH, 18 + 5 * len(row_names))
    axes.barh(np.arange(len(row_names)), bar_lengths, color="#0b5a8f")
    axes.axvline(0, color="black", linewidth=0.8)
    label_rows(axes, [tables.shorten_name(row_name, 40) for row_name in row_names])
    axes.set_xlabel(textwrap.fill(axis_label, 22))
    return axes.figure


def make_training_scale_table(evaluation: Evaluation, model_name: str) -> pd.DataFrame:
    """Return relative scales during training: rows are regions, columns shares.

    The values are those of :func:`rank_regions` (means over folds) at every recorded
    share of the training. Without such records the frame is empty.
    """
    scale_table = evaluation.scales.query("model == @model_name and start == 'mean'")
    if not (scale_table["share"] < 1).any():
        return pd.DataFrame()
    scale_series_by_share = {}
    for training_share, share_table in scale_table.groupby("share"):
        share_evaluation = replace(evaluation, scales=share_table.assign(share=1.0))
        ranking_table = rank_regions(share_evaluation, model_name).set_index("region")
        scale_series_by_share[training_share] = ranking_table["relative_scale"]
    return pd.DataFrame(scale_series_by_share).dropna()


def choose_color_by_class(evaluation: Evaluation) -> dict[str, str]:
    """Return a colour for every class; ordered classes go from light to dark."""
    class_names = evaluation.cohort.classes
    color_list: list[Any] = list(COLORS)
    if evaluation.cohort.classes_ordered and len(class_names) > 2:
        color_list = list(
            plt.get_cmap("inferno_r")(np.linspace(0.23, 1, len(class_names)))
        )
    return {
        class_name: color_list[class_index % len(color_list)]
        for class_index, class_name in enumerate(class_names)
    }


def _draw_errorbars(
    axes: Axes,
    x: Any,
    y: Any,
    lower_bounds: Any,
    upper_bounds: Any,
    *,
    error_keyword: str = "xerr",
    **errorbar_style: Any,
) -> None:
    """Draw values with their bounds, unclipped at the limits of the axes."""
    interval_centres = x if error_keyword == "xerr" else y
    errorbar_style[error_keyword] = (
        np.array([interval_centres - lower_bounds, upper_bounds - interval_centres])
        .clip(0)
        .reshape(2, -1)
    )
    for errorbar_artist in axes.errorbar(
        x, y, **BAR_STYLE | errorbar_style
    ).get_children():
        errorbar_artist.set_clip_on(False)


def _draw_reference_line(
    axes: Axes,
    x: float,
    reference_label: str,
    *,
    alignment: Literal["center", "left"] = "center",
    **line_properties: Any,
) -> None:
    """Draw a vertical line, dashed by default, with its label above the axes."""
    axes.axvline(x, **DASH_STYLE | line_properties)
    # Letters such as g reach below their line, so keep a space of two points.
    axes.annotate(
        reference_label,
        (x, 1),
        (0, 2),
        xycoords=axes.get_xaxis_transform(),
        textcoords="offset points",
        color=GREY,
        ha=alignment,
        va="bottom",
    )


def _make_square_axes(
    axes: Axes | None, figure_width_mm: float, xlabel: str, ylabel: str
) -> Axes:
    """Return square axes from 0 to 1, with their diagonal."""
    (axes,) = prepare_axes_array(axes, figure_width_mm)
    axes.plot([0, 1], [0, 1], **DASH_STYLE)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel=xlabel, ylabel=ylabel)
    return axes


def _draw_legend(axes: Axes, title: str = "", legend_overhang_mm: float = 0.0) -> None:
    """Draw a legend above the axes that names each kind of mark once.

    It may be wider than the axes with their labels by an overhang in mm.
    """
    legend_handles, mark_names = axes.get_legend_handles_labels()
    handle_by_name = dict(zip(mark_names, legend_handles, strict=True))
    cell_width_mm = figures.cell_width_and_height_mm(axes)[0]
    wrapped_mark_names = [
        textwrap.fill(mark_name, max(8, int((cell_width_mm - 12) / LETTER_WIDTH)))
        for mark_name in handle_by_name
    ]
    is_paper_figure = isinstance(axes.figure, figures.PaperFigure)
    entry_width_mm = 6.2 + max(map(compute_text_width_mm, handle_by_name), default=0)
    # The last entry of a row has no space behind it. The axes of a panel of the user
    # end before the panel, so a legend as wide as the panel would be cut at its left.
    legend_margin = -2.0
    if is_paper_figure or legend_overhang_mm:
        legend_margin = 2.0 + legend_overhang_mm
    legend_width_mm = cell_width_mm + legend_margin
    n_entries_per_line = max(1, int(legend_width_mm / entry_width_mm))
    n_lines = -(-len(wrapped_mark_names) // n_entries_per_line) + sum(
        mark_name.count("\n") for mark_name in wrapped_mark_names
    )
    n_lines += bool(title)
    figures.add_height_for_lines(axes, n_lines - 1, is_side_by_side=True)
    legend_style: Any = {"borderpad": 0.1, "columnspacing": 0.8, "handletextpad": 0.4}
    # Leave room for the letter of a panel, of up to 12 points.
    is_narrow = (
        min(n_entries_per_line, len(wrapped_mark_names)) * entry_width_mm
        < cell_width_mm - 20
    )
    has_panel_letter = not (is_paper_figure and len(axes.figure.axes) == 1)
    title_offset_inches = 12 / 72 if has_panel_letter and not is_narrow else 3 / 72
    title_transform = ScaledTranslation(
        0, title_offset_inches, axes.figure.dpi_scale_trans
    )
    legend_style |= {
        "bbox_to_anchor": (1, 1),
        "bbox_transform": axes.transAxes + title_transform,
    }
    legend_style |= {
        "loc": "lower right",
        "ncols": n_entries_per_line,
        "handlelength": 1.6,
    }
    legend_style |= {"title": title or None, "alignment": "left"}
    legend_style |= {"title_fontsize": figures.FONT_SIZE}
    # Order the entries by rows, as they are read; matplotlib fills column by column.
    n_columns = min(n_entries_per_line, len(wrapped_mark_names))
    legend_entries = list(zip(handle_by_name.values(), wrapped_mark_names, strict=True))
    ordered_entries = [
        legend_entry
        for column_index in range(n_columns)
        for legend_entry in legend_entries[column_index::n_columns]
    ]
    axes.legend(
        [legend_handle for legend_handle, _ in ordered_entries],
        [mark_name for _, mark_name in ordered_entries],
        **legend_style,
    )


def _make_row_axes(
    axes: Any, figure_width_mm: float, row_names: list[str], axis_label: str
) -> Axes:
    """Return axes with one named row per name; a new figure is as high as they need."""
    (axes,) = prepare_axes_array(axes, figure_width_mm, 19)
    axes_width_mm = figures.cell_width_and_height_mm(axes)[0]
    n_letters_per_line = int(17 + axes_width_mm / 6.4)
    plot_width_mm = (
        axes_width_mm
        - 8
        - LETTER_WIDTH * min(n_letters_per_line, max(map(len, row_names)))
    )
    row_names = [
        textwrap.fill(tables.shorten_name(row_name, 72), n_letters_per_line)
        for row_name in row_names
    ]
    axis_label = textwrap.fill(axis_label, max(12, int(plot_width_mm / LETTER_WIDTH)))
    row_height = max(1.3, 1 + max(row_name.count("\n") for row_name in row_names))
    figures.add_height_for_lines(
        axes, axis_label.count("\n") + row_height * len(row_names)
    )
    label_rows(axes, row_names)
    axes.set_xlabel(axis_label)
    axes.locator_params("x", nbins=int(np.clip(plot_width_mm / 13, 1, 9)))
    return axes


def _resolve_model_name(evaluation: Evaluation, model_name: str | None) -> str:
    """Return the name of a model, by default the first; raise if it is unknown."""
    check_evaluation_given(evaluation)
    model_name = evaluation.models[0] if model_name is None else model_name
    check_choice("model", model_name, evaluation.models)
    return model_name


def _select_name_and_predictions(
    evaluation: Evaluation, model_name: str | None
) -> tuple[str, Predictions]:
    """Return name and predictions of a model, by default of the first."""
    model_name = _resolve_model_name(evaluation, model_name)
    prediction_table = evaluation.predictions[
        evaluation.predictions["model"] == model_name
    ]
    if prediction_table.empty:
        raise ParameterError(
            f"{model_name} failed in every fold, so it has no predictions."
        )
    return model_name, evaluation.as_predictions(prediction_table)


def label_rows(axes: Axes, row_names: list[str]) -> None:
    """Label rows, the first on top, with pale lines; keep only the lower spine."""
    axes.set_yticks(range(len(row_names)), row_names)
    axes.set(ylim=(len(row_names) - 0.4, -0.6), axisbelow=True)
    axes.grid(axis="y", color="#eeeeee", linewidth=0.6)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
