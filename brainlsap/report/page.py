"""What a report shows: its tables, its figures, and the page made of them."""

import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas
from brainlsap.data import write_tsv
from brainlsap.evaluation import Evaluation, rank_regions
from brainlsap.evaluation.ranking import models_with_scales
from brainlsap.exceptions import ParameterError
from brainlsap.report import methods as texts
from brainlsap.report import plots
from brainlsap.report import tables as made
from brainlsap.report.brain import plot_regions, plot_scales_at_quarters
from brainlsap.report.brain_interactive import write_interactive
from brainlsap.report.exports import relative_scales
from brainlsap.report.figures import PAGE, own_axes


def report_tables(
    evaluation: Evaluation,
    atlas: Atlas | None,
    codes: Mapping[str, str],
    clean: Callable[[str], str],
) -> dict[str, pd.DataFrame]:
    """Return every table of a report that has rows, by name, as text for a paper.

    Without an atlas regions go by their names; scans go by `codes`, and `clean` takes
    other names out of free text.
    """
    cohort, models = evaluation.cohort, list(evaluation.predictions["model"].unique())
    scores = made.score_table(evaluation).drop(columns="remark", errors="ignore")
    compared = made.comparison_table(evaluation).iloc[:, :3]
    scores = scores.merge(compared, how="left", on="model").fillna("")
    tables = {
        "scores": scores.loc[:, (scores != "").any()],
        "ladder": made.ladder_text(evaluation),
        "intervals": made.interval_table(evaluation),
        "classes": made.class_rate_table(evaluation, models[0]) if models else None,
        "demographics": made.demographics_table(cohort.table, cohort.classes),
        "audit": made.audit_table(evaluation, codes).map(clean),
        "fits": made.fit_table(evaluation),
    }
    if "quality" in cohort.table:
        tables["quality"] = made.unusual_scans_table(evaluation, codes).map(clean)
    if (ranking := evaluation.ranking) is not None:
        tables["regions"] = made.region_table(ranking, atlas)
        tables["directions"] = made.direction_table(evaluation, ranking, atlas)
        tables["agreement"] = made.agreement_text(evaluation)
        tables["confounds"] = made.confound_text(ranking)
        if len(models_with_scales(evaluation)) > 1:
            common = made.common_region_table(evaluation, atlas)
            tables["common_regions"] = common if len(common) > 1 else None
    return {k: one for k, one in tables.items() if one is not None and len(one)}


def report_figures(evaluation: Evaluation, atlas: Atlas | None) -> dict[str, Any]:
    """Draw every figure of a report, by name."""
    figures: dict[str, Any] = {"scores": plots.plot_scores(evaluation).figure}
    if not evaluation.predictions.empty:
        figures["classes"] = _class_panels(evaluation)
    if evaluation.ranking is not None:
        figures["regions"] = _region_panels(evaluation, atlas)
        if atlas is not None:
            # a penalised model's scales hardly differ beside those of another
            how: Any = {"colorbar_label": "relative heat scale", "shared_scale": False}
            scales = relative_scales(evaluation)
            varied = scales.loc[:, scales.round(6).nunique() > 1]
            shown = scales if varied.empty else varied  # one scale alone is no map
            figures["brain"] = plot_regions(shown, atlas, **how)
        if (evaluation.scales["share"] < 1).any():
            figures["training"] = plots.plot_training(evaluation)[0].figure
            first = evaluation.scales.query("share < 1")["model"].iloc[0]
            # of scales that stay where they began, all quarters look alike
            is_moved = rank_regions(evaluation, first)["moved"].mean() >= 0.5
            if atlas is not None and is_moved:
                figures["quarters"] = plot_scales_at_quarters(evaluation, atlas)
    return figures


def _class_panels(evaluation: Evaluation) -> Any:
    """Draw confusion matrix, ROC and calibration of the first model side by side."""
    model = evaluation.predictions["model"].iloc[0]
    draw = (plots.plot_confusion, plots.plot_roc, plots.plot_calibration)
    panels = own_axes(None, PAGE, 52, number=3)
    for one, axes in zip(draw, panels, strict=True):
        try:
            one(evaluation, model, axes=axes)
        except ParameterError:  # without probabilities, or decision values
            axes.remove()
    return panels[0].figure


def _region_panels(evaluation: Evaluation, atlas: Atlas | None) -> Any:
    """Draw scales and directions of the same regions side by side."""
    ranking, features = evaluation.ranking, evaluation.cohort.class_features
    n_rows = len(made.ranked_regions(ranking, plots.N_SHOWN))
    number = 1 if features is None else 2
    left, *right = own_axes(None, PAGE, 22 + 6 * n_rows, number)
    plots.plot_scales(ranking, atlas, axes=left)
    for axes in right:
        plots.plot_directions(evaluation, ranking, atlas, axes=axes)
        axes.set_yticklabels([])
    return left.figure


def write_page(
    evaluation: Evaluation,
    folder: Path,
    codes: Mapping[str, str],
    clean: Callable[[str], str],
    atlas: Any,
) -> None:
    """Write the page, and its tables and figures as files.

    `codes` has what the page calls every scan; `clean` takes names out of free text;
    without an atlas, regions go by their names and no brain is drawn.
    """
    tables = report_tables(evaluation, atlas, codes, clean)
    for name, frame in tables.items():
        write_tsv(frame, folder / "tables" / f"{name}.tsv")
    write_tsv(evaluation.scores(), folder / "tables" / "fold_scores.tsv")
    if evaluation.ranking is not None:
        _write_ranking(evaluation, folder / "tables", atlas)
    figures = {
        name: _saved(figure, folder / "figures" / f"{name}.png")
        for name, figure in report_figures(evaluation, atlas).items()
    }
    turns = evaluation.ranking is not None and atlas is not None and atlas.has_surfaces
    if turns:
        how: Any = {"title": "Relative heat scale", "colorbar_label": "relative scale"}
        maps = relative_scales(evaluation)
        write_interactive(maps, folder / "brain.html", atlas, **how)
    methods = [clean(one) for one in texts.methods_text(evaluation)]
    (folder / "methods.txt").write_text("\n\n".join(methods) + "\n", "utf-8")
    told = evaluation.fits["warnings"].map(json.loads)
    told = evaluation.fits[["model"]].assign(text=told).explode("text").dropna()
    warned = told.assign(text=told["text"].map(clean)).value_counts(sort=False)
    page = texts.TEMPLATES.get_template("report.html.j2").render(
        evaluation=evaluation,
        interactive=turns,
        title=clean(evaluation.settings["title"]),
        headline=[clean(one) for one in texts.headline(evaluation, atlas)],
        features=made.feature_text(evaluation.cohort.feature_names),
        notes=[clean(one) for one in evaluation.cohort.notes],
        tables=tables,
        figures=figures,
        methods=methods,
        warned=warned.items(),
        atlas=atlas,
    )
    (folder / "report.html").write_text(page, "utf-8")


def _write_ranking(evaluation: Evaluation, folder: Path, atlas: Atlas | None) -> None:
    """Write ranking and features by class of all regions, as numbers."""
    ranking: Any = evaluation.ranking
    ranking = ranking.sort_values("rank", kind="stable")
    if atlas is not None:
        places = atlas.match(list(ranking["region"]))
        ranking.insert(2, "full_name", np.array(atlas.full_names)[places])
        for axis, values in zip("xyz", atlas.coordinates[places].T, strict=True):
            ranking[axis] = values
    others = relative_scales(evaluation).add_prefix("relative_scale of ")
    ranking = ranking.join(others, on="region").dropna(axis=1, how="all")
    write_tsv(ranking, folder / "ranking.tsv")
    differences = made.class_differences(evaluation)
    if len(differences):
        write_tsv(differences, folder / "class_features.tsv")


def _saved(figure: Any, path: Path) -> dict[str, Any]:
    """Save a figure as PNG and return what the page shows of it."""
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path)
    plt.close(figure)
    png = base64.b64encode(path.read_bytes()).decode("ascii")
    width = round(figure.get_size_inches()[0] * 25.4)  # mm
    return {"png": png, "width": width, "note": figure.note}
