"""Tables and figures of a report, and the page that shows them."""

import base64
import io
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from brainlsap.atlas import Atlas
from brainlsap.data import write_tsv
from brainlsap.data.tables import PREDICTION_DIGITS
from brainlsap.evaluation import (
    ConnectomeGain,
    Evaluation,
    rank_regions,
)
from brainlsap.exceptions import ParameterError
from brainlsap.findings import make_findings
from brainlsap.report import plots, regions, tables
from brainlsap.report.brain import (
    plot_effects,
    plot_regions,
    plot_scales_at_quarters,
)
from brainlsap.report.brain_interactive import interactive_brain_html
from brainlsap.report.checklist import PAGE_SECTIONS, checklist_table
from brainlsap.report.conclusions import (
    class_text,
    confounding_text,
    draw_conclusions,
    draw_external_conclusions,
    excluded_text,
    external_model_text,
    kept_scans_sentence,
    left_out_text,
    less_probable_predictions_text,
    list_decisive_gains,
    model_and_test_text,
    predictor_text,
)
from brainlsap.report.demographics import demographics_table, several_classes_text
from brainlsap.report.exports import make_relative_scale_table
from brainlsap.report.figures import (
    FONT_SIZE,
    MAX_FIGURE_HEIGHT,
    MIDDLE_WIDTH,
    PAGE_WIDTH,
    PaperFigure,
    make_figure,
    prepare_axes_array,
)
from brainlsap.report.methods import (
    TEMPLATES,
    has_ordinal_output,
    kernels_text,
    list_methods_paragraphs,
    list_supplement_paragraphs,
    scale_changes_text,
    score_remarks,
)
from brainlsap.report.paper_tables import table_file_path
from brainlsap.report.privacy import (
    make_withholding_function,
    withhold_paths_in_settings,
)
from brainlsap.report.report import REPORT_SETTINGS
from brainlsap.report.tables import (
    is_external,
    is_simulated,
    make_external_table_by_name,
)

MOST_ROWS = 15
"""Largest number of regions in the table of tests."""

COHORT_FIELDS = (
    *("label_name", "classes", "classes_ordered", "feature_names", "atlas_name"),
    *("n_scans", "n_participants", "data_hash", "provenance"),
)
"""Fields of the cohort in `settings.json`."""


def make_report_table_by_name(evaluation: Evaluation) -> dict[str, pd.DataFrame]:
    """Return every table of a report that has rows, by name, as text for a paper.

    Scans are given by their codes.
    """
    pseudonym_by_scan, withhold_names = _make_pseudonym_by_scan_and_withholder(
        evaluation
    )
    cohort = evaluation.cohort
    model_names = list(evaluation.predictions["model"].unique())
    table_by_name = {
        "scores": tables.model_score_table(evaluation),
        "added_value": tables.added_value_text_table(evaluation),
        "ladder": tables.nested_model_text_table(evaluation),
        "intervals": tables.interval_table(evaluation),
    }
    if evaluation.connectome_gain is not None:
        connectome_gain = ConnectomeGain(evaluation.connectome_gain)
        table_by_name["connectome_gain"] = tables.connectome_gain_table(connectome_gain)
    table_by_name["learning_curve"] = tables.learning_curve_table(evaluation)
    if model_names:
        table_by_name["classes"] = tables.class_rate_table(evaluation, model_names[0])
        table_by_name["subgroups"] = tables.subgroup_text_table(evaluation).map(
            withhold_names
        )
    table_by_name |= make_external_table_by_name(evaluation)
    # An external test may lack people of a class that the model knows.
    count_table = cohort.class_counts()
    present_class_names = count_table["class"][count_table["scans"] > 0]
    table1_settings = evaluation.settings.get("table1", {})
    table_by_name |= {
        "demographics": demographics_table(
            cohort.table,
            list(present_class_names),
            table1_settings.get("columns"),
            is_corrected=table1_settings.get("is_corrected", False),
        ).map(withhold_names),
        "flow": tables.flow_text_table(evaluation),
        "audit": tables.audit_table(evaluation, pseudonym_by_scan).map(withhold_names),
        "fits": tables.fit_table(evaluation),
    }
    if "quality" in cohort.table:
        unusual_scan_table = tables.unusual_scans_table(evaluation, pseudonym_by_scan)
        table_by_name["quality"] = unusual_scan_table.map(withhold_names)
    table_by_name |= _make_region_table_by_name(evaluation)
    return {
        table_name: report_table
        for table_name, report_table in table_by_name.items()
        if len(report_table)
    }


def _make_region_table_by_name(evaluation: Evaluation) -> dict[str, pd.DataFrame]:
    """Return the tables that concern regions, by name."""
    atlas, ranking_table = evaluation.cohort.atlas, evaluation.ranking
    table_by_name: dict[str, pd.DataFrame] = {}
    if evaluation.region_tests is not None:
        table_by_name["regions"] = regions.region_tests_table(evaluation, atlas)
        table_by_name["region_groups"] = regions.region_group_text_table(evaluation)
        table_by_name["directions"] = tables.direction_table(
            evaluation, _make_selected_ranking_table(evaluation), atlas, MOST_ROWS
        )
    elif ranking_table is not None:
        table_by_name["directions"] = tables.direction_table(
            evaluation, ranking_table, atlas
        )
    if ranking_table is None:
        return table_by_name
    if regions.is_ranked_by_varied_scales(evaluation):
        if evaluation.region_tests is not None:  # p-values are in the table of tests.
            ranking_table = ranking_table.drop(
                columns=["p_effect", "p_contrast"], errors="ignore"
            )
        table_by_name["scales"] = tables.region_table(ranking_table, atlas)
        table_by_name["confounds"] = tables.confound_text_table(ranking_table)
    varied_scale_model_names = regions.list_models_of_varied_scales(evaluation)
    if not varied_scale_model_names:
        return table_by_name
    # The order of scales that hardly differ means nothing.
    varied_scale_row_mask = evaluation.scales["model"].isin(varied_scale_model_names)
    varied_scale_evaluation = replace(
        evaluation, scales=evaluation.scales[varied_scale_row_mask]
    )
    table_by_name["agreement"] = tables.agreement_text_table(varied_scale_evaluation)
    if len(varied_scale_model_names) > 1:
        common_region_table = tables.common_region_table(varied_scale_evaluation, atlas)
        if len(common_region_table) > 1:  # The last row has the distances.
            table_by_name["common_regions"] = common_region_table
    return table_by_name


def _make_selected_ranking_table(
    evaluation: Evaluation, feature: str | None = None
) -> pd.DataFrame:
    """Return the regions of the table of tests, numbered in its order.

    With the columns of the ranking by scale, where there is one.
    """
    selected_table = regions.select_top_region_test_table(evaluation, feature=feature)
    region_names = list(dict.fromkeys(selected_table["region"]))
    selected_ranking_table = pd.DataFrame({"region": region_names})
    if evaluation.ranking is not None:
        scale_table = evaluation.ranking.drop(columns="rank")
        selected_ranking_table = selected_ranking_table.merge(
            scale_table, "left", "region"
        )
    return selected_ranking_table.assign(rank=np.arange(1, len(region_names) + 1))


def _list_region_marks(evaluation: Evaluation) -> list[str]:
    """Return the special marks that the figure of tested regions has."""
    if evaluation.region_tests is None or evaluation.ranking is None:
        return []
    if not regions.is_ranked_by_varied_scales(
        evaluation
    ):  # There is no panel of scales.
        return []
    selected_ranking_table = _make_selected_ranking_table(
        evaluation, evaluation.cohort.feature_names[0]
    )
    mark_texts = []
    if (
        "planted" in selected_ranking_table
        and selected_ranking_table["planted"].eq(True).any()
    ):
        mark_texts.append("planted")
    if (selected_ranking_table["moved"] < 0.5).any():
        mark_texts.append("not learned")
    return mark_texts


def _has_moved_scales(evaluation: Evaluation) -> bool:
    """Return whether training changed most scales of the first network.

    If it changed few, the maps of all quarters look alike.
    """
    trained_model_names = evaluation.scales.query("share < 1")["model"].unique()
    if not set(trained_model_names[:1]) & set(
        regions.list_models_of_varied_scales(evaluation)
    ):
        return False
    return bool(rank_regions(evaluation, trained_model_names[0])["moved"].mean() >= 0.5)


def _plot_first_effects(evaluation: Evaluation, atlas: Atlas | None) -> Any:
    """Draw a map of class differences in the first feature.

    Rows of many classes are low, so that the map fits below the first screen in print.
    """
    feature = evaluation.cohort.feature_names[0]
    n_maps = len(evaluation.cohort.classes) - 1
    if atlas is None or not atlas.has_surfaces or n_maps < 3:
        return plot_effects(evaluation, feature, atlas)
    low_figure = make_figure(PAGE_WIDTH, min(8 + 20 * n_maps, MAX_FIGURE_HEIGHT))
    return plot_effects(evaluation, feature, atlas, figure=low_figure)


def _effects_figure_name(feature: str) -> str:
    """Return the name of the map of class differences in a further feature."""
    return f"effects_{re.sub(r'[^A-Za-z0-9]+', '-', feature)}"


def _plot_effects_figure_by_name(
    evaluation: Evaluation, atlas: Atlas | None
) -> dict[str, Any]:
    """Draw a map of class differences in each further feature, by name."""
    figure_by_name = {}
    for feature in evaluation.cohort.feature_names[1:]:
        figure_name = _effects_figure_name(feature)
        with suppress(ParameterError):  # No two classes may have a value of it.
            figure_by_name[figure_name] = plot_effects(evaluation, feature, atlas)
    return figure_by_name


def _plot_scale_maps(evaluation: Evaluation, atlas: Any) -> Any:
    """Draw the relative scales of every model that distinguishes regions."""
    scale_map_table = make_relative_scale_table(evaluation)
    scale_map_table = scale_map_table[regions.list_models_of_varied_scales(evaluation)]
    # Use one range from 0 for all maps, so that a map of similar scales looks even.
    largest_scale = max(1.0, float(scale_map_table.max(axis=None)))
    brain_figure = plot_regions(
        scale_map_table,
        atlas,
        colorbar_label="relative scale (median region: 1)",
        views="compact",
        vmin=0.0,
        vmax=largest_scale,
    )
    for axes in brain_figure.axes:
        if axes.get_label() == "colour bar":
            # The text below the bar stands in place of its number.
            axes.set_yticks(
                [
                    tick_position
                    for tick_position in axes.get_yticks()
                    if tick_position > 0
                ]
            )
            axes.set_ylim(0, largest_scale)
            text_style: Any = {"transform": axes.transAxes, "fontsize": FONT_SIZE}
            axes.text(0, 1.02, "averaged", va="bottom", **text_style)
            axes.text(0, -0.02, "own value", va="top", **text_style)
    return brain_figure


def _plot_class_panels(evaluation: Evaluation) -> Any:
    """Draw confusion matrix, ROC and calibration of the first model side by side."""
    model_name = evaluation.predictions["model"].iloc[0]
    plot_functions = (plots.plot_confusion, plots.plot_roc, plots.plot_calibration)
    # Panels with long class names are too wide to stand side by side.
    has_long_names = max(map(len, evaluation.cohort.classes)) > 10
    figure_width_mm, figure_height_mm = (
        (MIDDLE_WIDTH, 75) if has_long_names else (PAGE_WIDTH, 62)
    )
    panel_axes_array = prepare_axes_array(
        None, figure_width_mm, figure_height_mm, n_panels=3
    )
    for plot_function, axes in zip(plot_functions, panel_axes_array, strict=True):
        try:
            plot_function(evaluation, model_name, axes=axes)
        except ParameterError:  # The model has no probabilities or decision values.
            axes.remove()
    return panel_axes_array[0].figure


def _plot_gain_panels(evaluation: Evaluation) -> Any:
    """Draw what the connectome adds beyond others, in evidence and left-out error."""
    gain_table: Any = evaluation.connectome_gain
    connectome_gain = ConnectomeGain(gain_table)
    panel_axes_array = prepare_axes_array(
        None, PAGE_WIDTH, 24 + 5 * len(gain_table), n_panels=2
    )
    for statistic, axes in zip(plots.GAIN_LABELS, panel_axes_array, strict=True):
        plots.plot_connectome_gain(connectome_gain, statistic, axes=axes)
    panel_axes_array[1].set_yticklabels([])
    return panel_axes_array[0].figure


def _plot_region_panels(evaluation: Evaluation) -> Any:
    """Draw differences, tests and scales of the same regions side by side."""
    cohort, feature = evaluation.cohort, evaluation.cohort.feature_names[0]
    selected_ranking_table = _make_selected_ranking_table(evaluation, feature)
    n_regions = len(selected_ranking_table)
    has_scales = evaluation.ranking is not None
    has_scales = has_scales and regions.has_reported_scales(evaluation)
    n_panels = 3 if has_scales else 2
    panel_axes_array = prepare_axes_array(
        None, PAGE_WIDTH, 24 + 6 * n_regions, n_panels=n_panels
    )
    plots.plot_directions(
        evaluation,
        selected_ranking_table,
        cohort.atlas,
        n_regions,
        feature=feature,
        axes=panel_axes_array[0],
    )
    plots.plot_region_tests(
        evaluation, cohort.atlas, feature=feature, axes=panel_axes_array[1]
    )
    if n_panels > 2:
        plots.plot_scales(
            selected_ranking_table, cohort.atlas, n_regions, axes=panel_axes_array[2]
        )
    _wrap_panel_labels(panel_axes_array)
    return panel_axes_array[0].figure


def _plot_scale_panels(evaluation: Evaluation) -> Any:
    """Draw scales and directions of the same regions side by side."""
    ranking_table, atlas = evaluation.ranking, evaluation.cohort.atlas
    n_rows = len(tables.select_ranked_region_table(ranking_table, plots.N_SHOWN))
    feature_names = evaluation.cohort.feature_names[:2]  # Further ones are in a table.
    panel_axes_array = prepare_axes_array(
        None, PAGE_WIDTH, 19 + 9 * n_rows, n_panels=1 + len(feature_names)
    )
    plots.plot_scales(ranking_table, atlas, axes=panel_axes_array[0])
    for axes, feature in zip(panel_axes_array[1:], feature_names, strict=True):
        plots.plot_directions(
            evaluation, ranking_table, atlas, feature=feature, axes=axes
        )
    _wrap_panel_labels(panel_axes_array)
    return panel_axes_array[0].figure


def _plot_selected_regions(evaluation: Evaluation) -> Any:
    """Draw the regions that tests select, or those of smallest scale."""
    if evaluation.region_tests is not None:
        return _plot_region_panels(evaluation)
    return _plot_scale_panels(evaluation)


def _wrap_panel_labels(panel_axes_array: Any) -> None:
    """Keep the names of rows in the first panel; wrap labels to its width."""
    row_names = [
        tick_label.get_text() for tick_label in panel_axes_array[0].get_yticklabels()
    ]
    panel_axes_array[0].set_yticklabels(
        [fill(" ".join(row_name.split()), 40) for row_name in row_names]
    )
    for axes in panel_axes_array[1:]:
        axes.set_yticklabels([])
    for (
        axes
    ) in panel_axes_array:  # Region names leave little width for tick and axis labels.
        axes.locator_params("x", nbins=5)
        axes.set_xlabel(
            fill(" ".join(axes.get_xlabel().split()), 96 // len(panel_axes_array))
        )


@dataclass(frozen=True)
class ReportFigure:
    """One figure of a report.

    `guide_title` is its title in `docs/reading_a_report.rst`. `draw` takes an
    evaluation, and an atlas if it `needs_atlas`, and returns a figure or the axes of
    one. It is called if `drawing_condition` is true of the evaluation. The page of an
    external evaluation has only the figures with `is_on_external_page`. With
    `may_lack_data`, the report has no such figure if `draw` raises a `ParameterError`.
    A figure that `shows_intervals` draws bootstraps that the tables contain, too: the
    process that makes the tables draws it, because it keeps them.
    """

    guide_title: str
    draw: Callable[..., Any]
    drawing_condition: Callable[[Evaluation], bool]
    needs_atlas: bool = False
    may_lack_data: bool = False
    shows_intervals: bool = False
    is_on_external_page: bool = False

    def is_on_page(self, evaluation: Evaluation) -> bool:
        """Return whether the page of an evaluation has a place for the figure."""
        is_possible = self.is_on_external_page or not is_external(evaluation)
        return is_possible and self.drawing_condition(evaluation)


FIGURES = {
    "flow": ReportFigure(
        "flow of participants",
        draw=plots.plot_flow,
        drawing_condition=lambda evaluation: (
            len(tables.flow_text_table(evaluation)) > 0
        ),
        is_on_external_page=True,
    ),
    "scores": ReportFigure(
        "balanced accuracy of every model",
        draw=partial(plots.plot_scores, width=PAGE_WIDTH),
        drawing_condition=lambda _: True,
        shows_intervals=True,
    ),
    "classes": ReportFigure(
        "confusion, ROC and calibration",
        draw=_plot_class_panels,
        drawing_condition=lambda evaluation: not evaluation.predictions.empty,
        is_on_external_page=True,
    ),
    "subgroups": ReportFigure(
        "balanced accuracy of subgroups",
        draw=partial(plots.plot_subgroups, width=PAGE_WIDTH),
        drawing_condition=lambda evaluation: not evaluation.predictions.empty,
        may_lack_data=True,  # No group may have a score.
        shows_intervals=True,
        is_on_external_page=True,
    ),
    "connectome_gain": ReportFigure(
        "what connectomes add",
        draw=_plot_gain_panels,
        drawing_condition=lambda evaluation: evaluation.connectome_gain is not None,
    ),
    "learning_curve": ReportFigure(
        "balanced accuracy by number of training participants",
        draw=plots.plot_learning_curve,
        drawing_condition=lambda evaluation: evaluation.learning_curve is not None,
    ),
    "effects": ReportFigure(
        "difference between classes",
        draw=_plot_first_effects,
        needs_atlas=True,
        drawing_condition=lambda evaluation: evaluation.region_tests is not None,
        may_lack_data=True,  # No two classes may have a value of the feature.
    ),
    "regions": ReportFigure(
        "the same regions",
        draw=_plot_selected_regions,
        drawing_condition=lambda evaluation: (
            evaluation.region_tests is not None
            or (
                evaluation.ranking is not None
                and regions.is_ranked_by_varied_scales(evaluation)
            )
        ),
    ),
    "brain": ReportFigure(
        "how models read regions",
        draw=_plot_scale_maps,
        needs_atlas=True,
        drawing_condition=lambda evaluation: (
            evaluation.ranking is not None
            and len(regions.list_models_of_varied_scales(evaluation)) > 0
        ),
    ),
    "quarters": ReportFigure(
        "scales at quarters of training",
        draw=plot_scales_at_quarters,
        needs_atlas=True,
        drawing_condition=lambda evaluation: (
            evaluation.ranking is not None and _has_moved_scales(evaluation)
        ),
    ),
}
"""Every figure of a report by its key, which is the name of its file.

Maps of class differences in further features are added.
"""

_INTERVAL_FIGURES = {
    figure_name for figure_name in FIGURES if FIGURES[figure_name].shows_intervals
}


def list_figure_names(evaluation: Evaluation) -> list[str]:
    """Return the names of the figures that a report may have, without drawing."""
    figure_names = [
        figure_name
        for figure_name, report_figure in FIGURES.items()
        if report_figure.is_on_page(evaluation)
    ]
    if evaluation.region_tests is not None:
        figure_names += map(_effects_figure_name, evaluation.cohort.feature_names[1:])
    return figure_names


def draw_figure_by_name(
    evaluation: Evaluation,
    atlas: Atlas | None,
    figure_names: Collection[str] = FIGURES.keys(),
) -> dict[str, Any]:
    """Draw the figures of a report with these keys, by name."""
    figure_by_name = {}
    for figure_name, report_figure in FIGURES.items():
        if figure_name not in figure_names or not report_figure.is_on_page(evaluation):
            continue
        atlas_arguments = {"atlas": atlas} if report_figure.needs_atlas else {}
        try:
            figure_or_axes = report_figure.draw(evaluation, **atlas_arguments)
        except ParameterError:
            if not report_figure.may_lack_data:
                raise
        else:
            # The figure of axes, or the figure itself.
            figure_by_name[figure_name] = figure_or_axes.figure
            _check_is_paper_figure(figure_by_name[figure_name], report_figure.draw)
    if "effects" in figure_names and evaluation.region_tests is not None:
        figure_by_name |= _plot_effects_figure_by_name(evaluation, atlas)
    return figure_by_name


def _check_is_paper_figure(figure: object, draw: Callable[..., Any]) -> None:
    """Raise if a figure lacks the size, style and note of figures of reports."""
    if not isinstance(figure, PaperFigure):
        function_name = getattr(getattr(draw, "func", draw), "__name__", repr(draw))
        raise TypeError(
            f"{function_name} must draw on axes of prepare_axes_array "
            f"(brainlsap/report/figures.py); got a {type(figure).__name__}."
        )


def start_drawing_figures(
    evaluation: Evaluation, atlas: Any, n_jobs: int | None = None
) -> Iterator[Any]:
    """Begin to draw most figures of a page; return the results to come.

    Other processes draw while this one does other work; a single one draws when the
    results are read.
    """
    map_figure_set = {
        figure_name for figure_name in FIGURES if FIGURES[figure_name].needs_atlas
    }
    other_figure_names = FIGURES.keys() - map_figure_set - _INTERVAL_FIGURES
    draw_calls: list[Any] = [
        delayed(_draw_figure_record_by_name)(evaluation, atlas, map_figure_set),
        delayed(_draw_figure_record_by_name)(evaluation, atlas, other_figure_names),
    ]
    varied_scale_model_names = regions.list_models_of_varied_scales(evaluation)
    if (
        evaluation.ranking is not None
        and varied_scale_model_names
        and atlas.has_surfaces
    ):
        draw_calls.append(
            delayed(interactive_brain_html)(
                make_relative_scale_table(evaluation)[varied_scale_model_names],
                atlas,
                title="Relative scale",
                colorbar_label="relative scale",
            )
        )
    if getattr(get_active_backend()[0], "uses_threads", False):
        n_jobs = 1  # Pyplot is not safe for several threads.
    # One of the processors is for this process, which makes the tables meanwhile.
    n_drawing_processes = max(1, effective_n_jobs(n_jobs) - 1)
    n_calls_per_process = -(-len(draw_calls) // n_drawing_processes)
    # Joblib would divide a batch of so few calls among all processes, and each of them
    # would import the libraries of figures.
    draw_tasks = [
        delayed(_run_calls)(draw_calls[start_index : start_index + n_calls_per_process])
        for start_index in range(0, len(draw_calls), n_calls_per_process)
    ]
    drawing_iterator = Parallel(n_jobs, return_as="generator")(draw_tasks)
    return chain.from_iterable(drawing_iterator)


def _run_calls(calls: Sequence[Any]) -> list[Any]:
    """Return the results of calls that were made by `delayed`."""
    return [function(*args, **kwargs) for function, args, kwargs in calls]


def write_page(
    evaluation: Evaluation, folder: Path, atlas: Any, drawing_iterator: Iterator[Any]
) -> None:
    """Write what may be shared: page, tables, figures, predictions and settings.

    The outputs are those of :func:`start_drawing_figures`.
    """
    (folder / "figures").mkdir(parents=True)
    pseudonym_by_scan, withhold_names = _make_pseudonym_by_scan_and_withholder(
        evaluation
    )
    table_by_name = make_report_table_by_name(evaluation)
    written_table_by_name = dict(table_by_name)
    if evaluation.region_tests is not None:
        written_table_by_name["regions"] = regions.region_tests_table(
            evaluation, evaluation.cohort.atlas, marks_smallest_p=False
        )
    for table_name, written_table in written_table_by_name.items():
        write_tsv(written_table, folder / table_file_path(table_name))
    write_tsv(evaluation.scores(), folder / table_file_path("fold_scores"))
    if evaluation.region_tests is not None:
        signed_test_table = regions.make_signed_test_table(evaluation.region_tests)
        write_tsv(signed_test_table, folder / table_file_path("region_tests"))
        group_difference_table = regions.region_group_table(evaluation)
        write_tsv(group_difference_table, folder / table_file_path("group_differences"))
    if evaluation.ranking is not None:
        _write_ranking(evaluation, folder, atlas)
    methods_paragraphs = list(map(withhold_names, list_methods_paragraphs(evaluation)))
    supplement_paragraphs = list(
        map(withhold_names, list_supplement_paragraphs(evaluation))
    )
    methods_file_text = "\n\n".join(
        ["METHODS", *methods_paragraphs]
        + (["SUPPLEMENT", *supplement_paragraphs] if supplement_paragraphs else [])
    )
    (folder / "methods.txt").write_text(f"{methods_file_text}\n", "utf-8")
    first_screen_variables = _make_first_screen_variables(evaluation, withhold_names)
    page_template = TEMPLATES.get_template("report.html.j2")
    region_answers = regions.list_region_answers(evaluation, evaluation.cohort.atlas)
    _write_predictions(evaluation, folder / "predictions.tsv", pseudonym_by_scan)
    interval_record_by_figure = _draw_figure_record_by_name(
        evaluation, atlas, _INTERVAL_FIGURES
    )
    map_record_by_figure, other_record_by_figure, *interactive_html_texts = (
        drawing_iterator
    )
    figure_record_by_name = (
        other_record_by_figure | map_record_by_figure | interval_record_by_figure
    )
    for interactive_html in interactive_html_texts:
        (folder / "brain.html").write_text(interactive_html, "utf-8")
    for figure_name, figure_record in figure_record_by_name.items():
        png_bytes = base64.b64decode(figure_record["png"])
        (folder / "figures" / f"{figure_name}.png").write_bytes(png_bytes)
    page_html = page_template.render(
        evaluation=evaluation,
        has_interactive_brain=bool(interactive_html_texts),
        has_ordinal_output=has_ordinal_output(evaluation),
        is_simulated=is_simulated(evaluation),
        title=withhold_names(evaluation.settings["title"]),
        predictor=predictor_text(evaluation),
        kept_scans=kept_scans_sentence(evaluation),
        calibration_error=tables.calibration_error_text(evaluation),
        kernels=kernels_text(evaluation),
        remarks=list(map(withhold_names, score_remarks(evaluation))),
        **first_screen_variables,
        features=tables.feature_text(evaluation.cohort),
        decisive_gains=list_decisive_gains,
        several_classes_text=several_classes_text,
        less_probable_predictions=less_probable_predictions_text(evaluation),
        training=scale_changes_text(evaluation)
        if "brain" in figure_record_by_name
        else "",
        has_reported_scales=regions.has_reported_scales(evaluation),
        notes=_list_shareable_notes(evaluation, withhold_names),
        page_tables=table_by_name,
        figures=figure_record_by_name,
        methods=methods_paragraphs,
        supplement=supplement_paragraphs,
        fold_warnings=_make_fold_count_series(evaluation, withhold_names).items(),
        region_answers=region_answers,
        planted_text=regions.planted_text(evaluation),
        confounding=""
        if is_external(evaluation)
        else confounding_text(evaluation, first_screen_variables["conclusions"]),
        excluded=withhold_names(excluded_text(evaluation)),
        region_notes=regions.list_test_notes(evaluation),
        has_replicable_scales=regions.are_scale_ranks_replicable(evaluation),
        scale_limit=regions.scale_limit_text(evaluation)
        if "scales" in table_by_name
        else "",
        has_region_tests=regions.has_region_tests(evaluation),
        region_marks=_list_region_marks(evaluation),
        marked_regions_of_feature=regions.list_marked_regions(
            evaluation, evaluation.cohort.feature_names[0]
        ),
        further_effects=[
            figure_name
            for figure_name in figure_record_by_name
            if figure_name.startswith("effects_")
        ],
        atlas=atlas,
    )
    (folder / "report.html").write_text(page_html, "utf-8")
    _write_checklist(evaluation, folder, page_html, withhold_names)
    _write_settings(evaluation, folder, withhold_names)


def _make_fold_count_series(
    evaluation: Evaluation, withhold_names: Callable[[str], str]
) -> "pd.Series[int]":
    """Return in how many folds each model gave each warning, by model and text."""
    fit_warnings_series = evaluation.fits["warnings"].map(json.loads)
    warning_table = (
        evaluation.fits[["model"]]
        .assign(text=fit_warnings_series)
        .explode("text")
        .dropna()
    )
    return warning_table.assign(
        text=warning_table["text"].map(withhold_names)
    ).value_counts(sort=False)


def _write_predictions(
    evaluation: Evaluation, table_path: Path, pseudonym_by_scan: Mapping[str, str]
) -> None:
    """Write the out-of-fold predictions, with codes for scans and people."""
    prediction_table = evaluation.predictions.rename(columns={"participant": "person"})
    prediction_table["scan"] = prediction_table["scan"].map(pseudonym_by_scan)
    # The code of a person is the first of those of the person's scans.
    person_pseudonym_series = evaluation.cohort.table.groupby("participant")[
        "code"
    ].min()
    prediction_table["person"] = prediction_table["person"].map(person_pseudonym_series)
    model_indices = prediction_table["model"].map(evaluation.models.index)
    # Sort by code: the order of the cohort would reveal who is who.
    row_order = np.lexsort(
        (prediction_table["scan"], prediction_table["repeat"], model_indices)
    )
    write_tsv(prediction_table.iloc[row_order], table_path, n_digits=PREDICTION_DIGITS)


def _write_checklist(
    evaluation: Evaluation,
    folder: Path,
    page_html: str,
    withhold_names: Callable[[str], str],
) -> None:
    """Write the reporting checklist, with the places of this report that answer it."""
    report_place_set = {
        file_path.relative_to(folder).as_posix()
        for file_path in folder.rglob("*")
        if file_path.is_file()
    }
    report_place_set |= {
        page_place_text
        for section_id, page_place_text in PAGE_SECTIONS.items()
        if f'<section id="{section_id}">' in page_html
    }
    item_table = checklist_table(evaluation, {*report_place_set, "settings.json"})
    write_tsv(item_table.map(withhold_names), folder / "checklist.tsv")


def _write_settings(
    evaluation: Evaluation, folder: Path, withhold_names: Callable[[str], str]
) -> None:
    """Write settings, versions and the list of files, without names and paths."""
    study_settings, cohort = evaluation.settings, evaluation.cohort
    cohort_settings = {
        field_name: getattr(cohort, field_name) for field_name in COHORT_FIELDS
    }
    cohort_settings["provenance"] = withhold_paths_in_settings(cohort.provenance)
    reading_option_values = cohort.reading_options.to_jsonable()
    cohort_settings["reading_options"] = withhold_paths_in_settings(
        reading_option_values
    )
    first_fit_table = evaluation.fits.drop_duplicates("model").set_index("model")
    shared_settings = {
        "title": study_settings["title"],
        "cohort": cohort_settings,
        "settings": withhold_paths_in_settings(
            {
                setting_name: setting_value
                for setting_name, setting_value in study_settings.items()
                if setting_name not in REPORT_SETTINGS
            }
        ),
        "models": first_fit_table["settings"].map(json.loads).to_dict(),
    }
    results_folder = folder.parent
    file_names = [
        file_path.relative_to(results_folder).as_posix()
        for file_path in results_folder.rglob("*")
        if file_path.is_file()
    ]
    settings_record: dict[str, Any] = {"written_by": "brainlsap"}
    settings_record |= {
        field_name: study_settings[field_name] for field_name in REPORT_SETTINGS
    }
    settings_record |= _withhold_texts(shared_settings, withhold_names)
    settings_record["files"] = sorted([*file_names, "report/settings.json"])
    settings_text = json.dumps(settings_record, indent=1, ensure_ascii=False)
    (folder / "settings.json").write_text(settings_text + "\n", "utf-8")


def _write_ranking(evaluation: Evaluation, folder: Path, atlas: Any) -> None:
    """Write ranking and features by class of all regions, as numbers."""
    ranking_table: Any = evaluation.ranking
    ranking_table = ranking_table.sort_values("rank", kind="stable")
    atlas_indices = atlas.match(list(ranking_table["region"]))
    ranking_table.insert(2, "full_name", np.array(atlas.full_names)[atlas_indices])
    ranking_table[[*"xyz"]] = atlas.coordinates[atlas_indices]
    scale_map_table = make_relative_scale_table(evaluation).add_prefix(
        "relative_scale of "
    )
    ranking_table = ranking_table.join(scale_map_table, on="region").dropna(
        axis=1, how="all"
    )
    write_tsv(ranking_table, folder / table_file_path("ranking"))
    difference_table = tables.class_difference_table(evaluation)
    feature_region_pairs = zip(
        difference_table["feature"], difference_table["region"], strict=True
    )
    measure_titles = [
        tables.feature_title(evaluation.cohort, *feature_and_region)
        for feature_and_region in feature_region_pairs
    ]
    difference_table.insert(2, "measure", measure_titles)
    write_tsv(difference_table, folder / table_file_path("class_features"))


def _make_first_screen_variables(
    evaluation: Evaluation, withhold_names: Callable[[str], str]
) -> dict[str, Any]:
    """Return the first screen of the page, without names of people, files and days."""
    if is_external(evaluation):
        external_conclusions = draw_external_conclusions(evaluation)
        return {
            "conclusions": replace(
                external_conclusions,
                may_write=withhold_names(external_conclusions.may_write),
                cautions=tuple(map(withhold_names, external_conclusions.cautions)),
            ),
            "summary": [
                [
                    ("Participants", withhold_names(class_text(evaluation))),
                    ("Left out", withhold_names(left_out_text(evaluation))),
                ],
                [("Model", withhold_names(external_model_text(evaluation)))],
            ],
        }
    study_conclusions = draw_conclusions(evaluation)
    study_conclusions = replace(
        study_conclusions,
        may_write=withhold_names(study_conclusions.may_write),
        cautions=tuple(map(withhold_names, study_conclusions.cautions)),
        covariates=replace(
            study_conclusions.covariates,
            sentence=withhold_names(study_conclusions.covariates.sentence),
        ),
    )
    return {
        "conclusions": study_conclusions,
        "summary": [
            [
                ("Participants", withhold_names(class_text(evaluation))),
                ("Left out", withhold_names(left_out_text(evaluation))),
            ],
            [("Method", withhold_names(model_and_test_text(evaluation)))],
        ],
    }


def _draw_figure_record_by_name(
    evaluation: Evaluation, atlas: Any, figure_names: Collection[str]
) -> dict[str, dict[str, Any]]:
    """Draw figures of a report; return image, width in mm and note, by name.

    This process may be one of another machine: it writes no file.
    """
    figure_by_name = draw_figure_by_name(evaluation, atlas, figure_names)
    return {
        figure_name: _make_figure_record(page_figure)
        for figure_name, page_figure in figure_by_name.items()
    }


def _make_figure_record(figure: Any) -> dict[str, Any]:
    """Return a figure as PNG in base64, its width in mm and its note; close it."""
    png_buffer = io.BytesIO()
    figure.savefig(png_buffer, format="png")
    plt.close(figure)
    png_base64 = base64.b64encode(png_buffer.getvalue()).decode("ascii")
    width_mm = round(figure.get_size_inches()[0] * 25.4)  # mm
    return {"png": png_base64, "width": width_mm, "note": figure.note}


def _make_pseudonym_by_scan_and_withholder(
    evaluation: Evaluation,
) -> tuple[dict[str, str], Callable[[str], str]]:
    """Return the codes of scans, and the function that withholds names in free text."""
    scan_table = evaluation.cohort.table
    return scan_table.set_index("scan")["code"].to_dict(), make_withholding_function(
        scan_table
    )


def _list_shareable_notes(
    evaluation: Evaluation, withhold_names: Callable[[str], str]
) -> list[str]:
    """Return a cohort's notes without names of people, files and days."""
    cohort_findings = make_findings(evaluation.cohort.findings)
    note_texts = [finding.shareable_text() for finding in cohort_findings]
    if is_external(evaluation):
        note_texts += evaluation.settings["external"]["side_notes"]
    return [withhold_names(note_text) for note_text in note_texts]


def _withhold_texts(nested_value: Any, withhold_names: Callable[[str], str]) -> Any:
    """Withhold names in every text of a record, keys included."""
    if isinstance(nested_value, Mapping):
        return {
            withhold_names(str(item_name)): _withhold_texts(item_value, withhold_names)
            for item_name, item_value in nested_value.items()
        }
    if isinstance(nested_value, list | tuple):
        return [
            _withhold_texts(item_value, withhold_names) for item_value in nested_value
        ]
    return (
        withhold_names(nested_value) if isinstance(nested_value, str) else nested_value
    )
