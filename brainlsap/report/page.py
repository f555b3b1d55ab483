"""What a report shows: its tables, its figures, and the page made of them."""

import base64
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from brainlsap.atlas import Atlas
from brainlsap.data import write_tsv
from brainlsap.evaluation import Evaluation, rank_regions
from brainlsap.evaluation.leakage import Check
from brainlsap.evaluation.ranking import models_with_scales
from brainlsap.exceptions import ParameterError
from brainlsap.findings import as_findings
from brainlsap.report import methods as texts
from brainlsap.report import plots
from brainlsap.report import tables as made
from brainlsap.report.brain import plot_regions, plot_scales_at_quarters
from brainlsap.report.brain_interactive import write_interactive
from brainlsap.report.exports import relative_scales
from brainlsap.report.figures import MIDDLE, PAGE, own_axes
from brainlsap.report.privacy import withhold_paths, withholder
from brainlsap.report.report import ABOUT

# Of relative scales; maps that vary less look as even as they are.
LEAST_RANGE = 0.05
TOLD = (
    *("label_name", "classes", "classes_ordered", "feature_names", "atlas_name"),
    *("n_scans", "n_participants", "data_hash", "provenance"),
)
"""What `settings.json` says of the cohort."""


def report_tables(evaluation: Evaluation) -> dict[str, Any]:
    """Return every table of a report that has rows, by name, as text for a paper.

    Scans go by their codes.
    """
    codes, clean = _withheld(evaluation)
    cohort, models = evaluation.cohort, list(evaluation.predictions["model"].unique())
    atlas = cohort.atlas
    scores = made.score_table(evaluation).drop(columns="remark", errors="ignore")
    compared = made.comparison_table(evaluation).iloc[:, :3]
    scores = scores.merge(compared, how="left", on="model")
    scores = scores.astype(object).fillna("")
    tables = {
        "scores": scores.loc[:, (scores != "").any()],
        "ladder": made.nested_model_text(evaluation),
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


def report_figures(evaluation: Evaluation, atlas: Any) -> dict[str, Any]:
    """Draw every figure of a report, by name."""
    figures: dict[str, Any] = {"scores": plots.plot_scores(evaluation).figure}
    if not evaluation.predictions.empty:
        figures["classes"] = _class_panels(evaluation)
    if evaluation.ranking is not None:
        figures["regions"] = _region_panels(evaluation)
        # a penalised model's scales hardly differ beside those of another
        how: Any = {"colorbar_label": "relative heat scale", "shared_scale": False}
        scales = relative_scales(evaluation)
        varied = scales.loc[:, scales.round(6).nunique() > 1]
        shown = scales if varied.empty else varied  # one scale alone is no map
        # colours of maps that hardly vary are not stretched
        spare = (LEAST_RANGE - shown.max() + shown.min()).clip(lower=0) / 2
        how |= {"vmin": [*(shown.min() - spare)], "vmax": [*(shown.max() + spare)]}
        figures["brain"] = plot_regions(shown, atlas, **how)
        if (evaluation.scales["share"] < 1).any():
            with suppress(ParameterError):  # of models, the first may have kept none
                figures["training"] = plots.plot_training(evaluation)[0].figure
            first = evaluation.scales.query("share < 1")["model"].iloc[0]
            # of scales that stay where they began, all quarters look alike
            if rank_regions(evaluation, first)["moved"].mean() >= 0.5:
                figures["quarters"] = plot_scales_at_quarters(evaluation, atlas=atlas)
    return figures


def _class_panels(evaluation: Evaluation) -> Any:
    """Draw confusion matrix, ROC and calibration of the first model side by side."""
    model = evaluation.predictions["model"].iloc[0]
    draw = (plots.plot_confusion, plots.plot_roc, plots.plot_calibration)
    # long names have no room side by side
    is_long = max(map(len, evaluation.cohort.classes)) > 10
    panels = own_axes(None, *((MIDDLE, 75) if is_long else (PAGE, 58)), number=3)
    for one, axes in zip(draw, panels, strict=True):
        try:
            one(evaluation, model, axes=axes)
        except ParameterError:  # without probabilities, or decision values
            axes.remove()
    return panels[0].figure


def _region_panels(evaluation: Evaluation) -> Any:
    """Draw scales and directions of the same regions side by side."""
    ranking, atlas = evaluation.ranking, evaluation.cohort.atlas
    n_rows = len(made.ranked_regions(ranking, plots.N_SHOWN))
    features = evaluation.cohort.feature_names[:2]  # of more, tables tell the rest
    panels = own_axes(None, PAGE, 19 + 9 * n_rows, number=1 + len(features))
    plots.plot_scales(ranking, atlas, axes=panels[0])
    for axes, feature in zip(panels[1:], features, strict=True):
        plots.plot_directions(evaluation, ranking, atlas, feature=feature, axes=axes)
        axes.set_yticklabels([])
    for axes in panels:  # all have the room that names of rows leave
        axes.locator_params("x", nbins=5)
        axes.set_xlabel(fill(" ".join(axes.get_xlabel().split()), 96 // len(panels)))
    return panels[0].figure


def write_page(evaluation: Evaluation, folder: Path, atlas: Any) -> None:
    """Write what may be shared: page, tables, figures, predictions and settings."""
    folder.mkdir()
    codes, clean = _withheld(evaluation)
    tables = report_tables(evaluation)
    for name, frame in tables.items():
        write_tsv(frame, folder / "tables" / f"{name}.tsv")
    write_tsv(evaluation.scores(), folder / "tables" / "fold_scores.tsv")
    if evaluation.ranking is not None:
        _write_ranking(evaluation, folder / "tables", atlas)
    figures = {
        name: _saved(figure, folder / "figures" / f"{name}.png")
        for name, figure in report_figures(evaluation, atlas).items()
    }
    turns = evaluation.ranking is not None and atlas.has_surfaces
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
        headline=[clean(one) for one in texts.headline(evaluation)],
        unit_findings=[clean(one) for one in _find_unit_findings(evaluation)],
        features=made.feature_text(evaluation.cohort),
        training=texts.training_text(evaluation),
        notes=_shareable_notes(evaluation, clean),
        tables=tables,
        figures=figures,
        methods=methods,
        warned=warned.items(),
        atlas=atlas,
    )
    (folder / "report.html").write_text(page, "utf-8")
    predictions = evaluation.predictions.rename(columns={"participant": "person"})
    predictions["scan"] = predictions["scan"].map(codes)
    # a person goes by the code of one of the scans
    first = evaluation.cohort.table.groupby("participant")["code"].min()
    predictions["person"] = predictions["person"].map(first)
    place = predictions["model"].map(evaluation.models.index)
    # in an order that names nobody
    order = np.lexsort((predictions["scan"], predictions["repeat"], place))
    write_tsv(predictions.iloc[order], folder / "predictions.tsv")
    models = evaluation.fits.drop_duplicates("model").set_index("model")["settings"]
    settings = evaluation.settings
    cohort_facts = {name: getattr(evaluation.cohort, name) for name in TOLD}
    own_settings = {k: v for k, v in settings.items() if k not in ABOUT}
    told = {
        "title": settings["title"],
        "cohort": cohort_facts | {"provenance": _shareable_provenance(evaluation)},
        "settings": withhold_paths(own_settings),
        "models": models.map(json.loads).to_dict(),
    }
    paths = [one for one in folder.parent.rglob("*") if one.is_file()]
    files = [one.relative_to(folder.parent).as_posix() for one in paths]
    record = {"written_by": "brainlsap", **{name: settings[name] for name in ABOUT}}
    record |= _cleaned(told, clean)
    record["files"] = sorted([*files, "report/settings.json"])
    text = json.dumps(record, indent=1, ensure_ascii=False)
    (folder / "settings.json").write_text(text + "\n", "utf-8")


def _write_ranking(evaluation: Evaluation, folder: Path, atlas: Atlas) -> None:
    """Write ranking and features by class of all regions, as numbers."""
    ranking: Any = evaluation.ranking
    ranking = ranking.sort_values("rank", kind="stable")
    places = atlas.match(list(ranking["region"]))
    ranking.insert(2, "full_name", np.array(atlas.full_names)[places])
    ranking[[*"xyz"]] = atlas.coordinates[places]
    others = relative_scales(evaluation).add_prefix("relative_scale of ")
    ranking = ranking.join(others, on="region").dropna(axis=1, how="all")
    write_tsv(ranking, folder / "ranking.tsv")
    differences = made.class_differences(evaluation)
    pairs = zip(differences["feature"], differences["region"], strict=True)
    what = [made.feature_title(evaluation.cohort, *pair) for pair in pairs]
    differences.insert(2, "measure", what)
    write_tsv(differences, folder / "class_features.tsv")


def _find_unit_findings(evaluation: Evaluation) -> list[str]:
    """Return what the audit says of units and scales, for the top of the page."""
    audit = evaluation.audit
    if audit is None:
        return []
    checks = (Check.UNUSUAL_UNIT, Check.SEVERAL_SCALES)
    findings = audit.loc[audit["check"].isin(checks), "finding"]
    return [f"Units and scales: {finding}." for finding in findings]


def _saved(figure: Any, path: Path) -> dict[str, Any]:
    """Save a figure as PNG and return what the page shows of it."""
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path)
    plt.close(figure)
    png = base64.b64encode(path.read_bytes()).decode("ascii")
    width = round(figure.get_size_inches()[0] * 25.4)  # mm
    return {"png": png, "width": width, "note": figure.note}


def _withheld(evaluation: Evaluation) -> tuple[dict[str, str], Callable[[str], str]]:
    """Return the codes of scans, and what takes other names out of free text."""
    scans = evaluation.cohort.table
    return scans.set_index("scan")["code"].to_dict(), withholder(scans)


def _shareable_notes(evaluation: Evaluation, clean: Callable[[str], str]) -> list[str]:
    """Return a cohort's notes without names of people, files and days."""
    findings = as_findings(evaluation.cohort.findings)
    return [clean(finding.shareable_text()) for finding in findings]


def _shareable_provenance(evaluation: Evaluation) -> dict[str, Any]:
    """Return where a cohort comes from, without paths."""
    return withhold_paths(evaluation.cohort.provenance)


def _cleaned(value: Any, clean: Callable[[str], str]) -> Any:
    """Take names out of every text of a record."""
    if isinstance(value, Mapping):
        return {clean(str(key)): _cleaned(one, clean) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(one, clean) for one in value]
    return clean(value) if isinstance(value, str) else value
