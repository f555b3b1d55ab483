"""The page of a report: its sections, and every table and figure as a file."""

import base64
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from jinja2 import Environment, FileSystemLoader

from brainlsap.atlas import Atlas
from brainlsap.data import write_tsv
from brainlsap.evaluation import (
    NULL_HEADING,
    Evaluation,
    rank_regions,
    ranking_auc,
    ranking_verdict,
)
from brainlsap.report import tables as made
from brainlsap.report.brain import (
    can_be_drawn,
    plot_regions,
    plot_scales_at_quarters,
)
from brainlsap.report.brain_interactive import write_interactive
from brainlsap.report.exports import relative_scales
from brainlsap.report.methods import headline, methods_text
from brainlsap.report.plots import (
    plot_calibration,
    plot_confusion,
    plot_ranks,
    plot_scales,
    plot_scores,
)

PAGE_SCORES = (
    *("balanced_accuracy", "auc", "brier"),
    *("kappa", "stage_error", "adjacent_accuracy"),
)


class _Page:
    """Sections of the page; tables and figures are written to files as well."""

    def __init__(
        self, folder: Path, codes: Mapping[str, str], clean: Callable[[str], str]
    ) -> None:
        self.folder, self.codes, self.clean = folder, codes, clean
        self.sections: list[dict[str, Any]] = []
        (folder / "tables").mkdir()
        (folder / "figures").mkdir()

    def section(self, name: str, title: str) -> None:
        self.sections.append({"id": name, "title": title, "blocks": []})

    def _add(self, kind: str, **content: Any) -> None:
        self.sections[-1]["blocks"].append({"kind": kind, **content})

    def heading(self, text: str) -> None:
        self._add("heading", text=text)

    def text(self, text: str) -> None:
        self._add("text", text=text)

    def items(self, items: Iterable[str]) -> None:
        self._add("list", points=list(items))

    def table(self, name: str, frame: pd.DataFrame, caption: str) -> None:
        if frame.empty:
            return
        for style, ending in (("tsv", "tsv"), ("latex", "tex")):
            text = made.table_text(frame, style)
            (self.folder / "tables" / f"{name}.{ending}").write_text(text, "utf-8")
        cells = frame.astype(str)
        number = (
            r"(?:n/a|failed|-|)|(?:[<+-] ?)?\d[\d.,%]*(?:e-?\d+)?(?: .*\d\]?\*?)?\*?"
        )
        numeric = [one for one in frame if cells[one].str.fullmatch(number).all()]
        long = [one for one in frame if cells[one].map(len).max() > 40]
        self._add("table", frame=frame, caption=caption, numeric=numeric, long=long)

    def figure(
        self, name: str, figure: Any, caption: str, *, wide: bool = False
    ) -> None:
        file, dpi = io.BytesIO(), 300 if wide else 200
        figure.savefig(file, format="png", dpi=dpi, bbox_inches="tight")
        plt.close(figure)
        png = file.getvalue()
        (self.folder / "figures" / f"{name}.png").write_bytes(png)
        width = int.from_bytes(png[16:20], "big") * (140 if wide else 96) // dpi
        text = base64.b64encode(png).decode("ascii")
        self._add("figure", name=name, png=text, caption=caption, width=width)


def render_page(
    evaluation: Evaluation,
    folder: Path,
    codes: Mapping[str, str],
    clean: Callable[[str], str],
    atlas: Atlas | None,
) -> str:
    """Write tables, figures and methods text to a folder; return the page as HTML.

    `codes` has what the page calls every scan; `clean` takes names out of free text;
    without an atlas, regions go by their names and no brain is drawn.
    """
    page, settings = _Page(folder, codes, clean), evaluation.settings
    _scores(page, evaluation)
    _people(page, evaluation)
    _folds(page, evaluation)
    if not evaluation.scales.empty:
        _regions(page, evaluation, atlas)
    _fitting(page, evaluation)
    methods = [clean(one) for one in methods_text(evaluation)]
    page.section("methods", "Methods, ready to paste")
    for one in methods:
        page.text(one)
    (folder / "methods.txt").write_text("\n\n".join(methods) + "\n", "utf-8")
    surroundings = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return surroundings.get_template("report.html.j2").render(
        title=clean(settings["title"]),
        date=settings["date"],
        version=settings["versions"]["brainlsap"],
        identified=all(scan == code for scan, code in codes.items()),
        headline=[clean(one) for one in headline(evaluation)],
        sections=page.sections,
        atlas_name=evaluation.cohort.atlas_name,
    )


def _scores(page: _Page, evaluation: Evaluation) -> None:
    classes, first = evaluation.cohort.classes, evaluation.models[0]
    page.section("scores", "Scores")
    page.figure(
        "scores",
        plot_scores(evaluation).figure,
        "Balanced accuracy of every model in every fold. Blue: models; grey: baselines "
        "and controls.",
    )
    page.table(
        "scores",
        made.score_table(evaluation, PAGE_SCORES),
        "Scores of every model: mean ± s.d. over folds.",
    )
    page.text(
        "Macro scores are means over the classes present in a test fold. "
        "A model that gives no probabilities has no Brier score and no calibration."
    )
    if evaluation.cohort.classes_ordered and len(classes) > 2:
        page.text(
            "Kappa and errors in stages read the order of the classes, "
            f"{', '.join(classes)}, as the order of stages."
        )
    page.table(
        "intervals",
        made.interval_table(evaluation),
        "The same scores with 95% bootstrap intervals over people, drawn with all "
        "their visits. What another training sample would change is not in them.",
    )
    page.table(
        "classification",
        made.classification_table(evaluation),
        "Classification table: mean ± s.d. over folds.",
    )
    if len(evaluation.models) > 1:
        page.heading("Comparison")
        page.table(
            "comparison",
            made.comparison_table(evaluation),
            f"Balanced accuracy of {first} minus that of every other model. Corrected "
            "p: t-test over folds, corrected for folds that share training people "
            "(Nadeau and Bengio 2003). Holm p: corrected for the number of comparisons "
            "as well; the verdict of the summary is this one.",
        )
    told = evaluation.predictions
    if told.empty:
        return
    page.heading("Classes")
    model = told["model"].iloc[0]
    page.figure(
        "confusion",
        plot_confusion(evaluation, model).figure,
        f"Confusion matrix of {model}, all test scans.",
    )
    known = told.loc[told[f"p_{classes[0]}"].notna(), "model"]
    if len(known):
        page.figure(
            "calibration",
            plot_calibration(evaluation, known.iloc[0]).figure,
            f"Calibration of {known.iloc[0]}, all test scans: dots on the dashed line "
            "are calibrated, below it the model is overconfident; bars are 95% Wilson "
            "intervals.",
        )
    page.table(
        "classes",
        made.class_rate_table(evaluation, model),
        f"Rates of every class, {model}, with 95% intervals over people. Predictive "
        "value holds at the shares of this cohort.",
    )


def _people(page: _Page, evaluation: Evaluation) -> None:
    cohort = evaluation.cohort
    page.section("people", "People and scans")
    page.text(
        f"{cohort.n_scans} scans of {cohort.n_participants} people; "
        f"{made.feature_text(cohort.feature_names)} in {int(cohort.measured.sum())} of "
        f"{len(cohort.region_names)} regions of {cohort.atlas_name}."
    )
    page.table(
        "demographics",
        made.demographics_table(cohort.table, cohort.classes),
        f"People by {cohort.label_name}. A person counts once in every class, with "
        "the first scan in it.",
    )
    page.table(
        "demographics_tests",
        made.demographics_tests(cohort.table, cohort.classes),
        "Whether the groups differ. A person counts once, in the class of the first "
        "scan; * expected counts under 5.",
    )
    page.heading("Quality control")
    if "quality" not in cohort.table:
        page.text("Scans were not looked at one by one; `brainlsap check` does that.")
    else:
        unusual = made.unusual_scans_table(evaluation, page.codes)
        page.table(
            "quality",
            unusual.map(page.clean),
            "Scans in which something is unusual. Nothing was left out because of it.",
        )
        if unusual.empty:
            page.text("Nothing unusual was found in any scan.")
    page.heading("How the data were read")
    page.items(
        map(page.clean, cohort.notes or ["Nothing was mapped, mirrored or dropped."])
    )


def _folds(page: _Page, evaluation: Evaluation) -> None:
    page.section("folds", "Folds and leakage")
    shared = evaluation.settings["people_shared"]
    page.items(
        [
            "Folds divide scans and not people: visits of one person stand on both "
            "sides."
            if shared
            else "No person is in both the training and the test scans of a fold; this "
            "was checked before anything was fitted.",
            "Every model was fitted anew in every fold, on the training scans alone, "
            "and all models saw the very same folds. Settings that a model chooses are "
            "chosen on inner folds of the training people.",
            "Folds share most of their training scans, so the s.d. over folds is no "
            "standard error and understates what another sample would change.",
            "Not guaranteed: that the label is not confounded with site, scanner, age "
            "or sex, and that nobody chose settings by looking at these scores.",
        ]
    )
    page.table("folds", made.fold_table(evaluation), "People and scans in every fold.")
    page.heading("Leakage audit")
    findings = made.audit_table(evaluation, page.codes)
    page.table(
        "audit",
        findings.map(lambda cell: page.clean(str(cell))),
        "Findings. Error: a leak. Warning: something other than the brain that may "
        "explain the score. Note: to know.",
    )
    if evaluation.audit is None:
        page.text("No audit was made.")
    else:
        page.text(
            ("Nothing was found. " if findings.empty else "")
            + "An audit that finds nothing is no proof: it cannot see how scans were "
            "chosen, or what was tried on these folds before."
        )
    page.table(
        "model_info",
        made.model_info_table(evaluation).map(page.clean),
        "Model info sheet, after Kapoor and Narayanan 2023.",
    )


def _regions(page: _Page, evaluation: Evaluation, atlas: Atlas | None) -> None:
    ranking = evaluation.ranking
    ranking = rank_regions(evaluation) if ranking is None else ranking
    first = ranking["model"].iloc[0]
    page.section("regions", "Regions")
    page.text(ranking_verdict(ranking))
    if "planted" in ranking and ranking["planted"].any():
        page.text(
            "Against the ground truth of the simulation, the smallest scales recover "
            f"the {int(ranking['planted'].sum())} planted regions with an AUC of "
            f"{ranking_auc(ranking):.3f} (1 is perfect, 0.5 is chance)."
        )
    page.table(
        "regions",
        made.region_table(ranking, atlas),
        f"Regions of smallest heat scale, {first}. Relative scale: to the median of "
        "the measured regions in its fit, arithmetic mean over folds [middle 95% of "
        "folds and starts]; spread: its s.d.; scale: median over folds."
        + (f" {NULL_HEADING}." if "p" in ranking else ""),
    )
    write_tsv(ranking, page.folder / "tables" / "ranking.tsv")
    page.figure(
        "scales",
        plot_scales(ranking, atlas).figure,
        f"Regions of smallest relative heat scale, {first}.",
    )
    page.figure(
        "ranks",
        plot_ranks(ranking).figure,
        f"Relative heat scales of all measured regions in order, {first}.",
    )
    _brains(page, evaluation, atlas, first)
    if evaluation.scales["model"].nunique() > 1:
        page.heading("Regions in common")
        common = made.common_region_table(evaluation, atlas)
        page.table(
            "common_regions",
            common,
            f"Regions among the twenty smallest scales of {common.columns[2]} and of "
            "at least one other model; models: of how many; -: not among that model's "
            "twenty. Scales are medians over folds; RMSE: of a model's scales to those "
            f"of {common.columns[2]}, over all measured regions.",
        )
    page.heading("Agreement")
    page.table(
        "agreement",
        made.agreement_text(evaluation),
        "How far folds and models agree on the order of regions. Folds share training "
        "scans: this is agreement on this sample, not evidence that another agrees.",
    )
    page.table(
        "confounds",
        made.confound_text(ranking),
        "Confounds of the ranking: rank correlation of relative scale with what "
        "regions are apart from the label. Neighbouring regions are alike, so these "
        "p-values are too small.",
    )


def _brains(
    page: _Page, evaluation: Evaluation, atlas: Atlas | None, first: str
) -> None:
    if atlas is None or not can_be_drawn(atlas):
        name = evaluation.cohort.atlas_name
        page.text(f"No brain is drawn: {name} has no surfaces and no coordinates here.")
        return
    maps = relative_scales(evaluation)
    page.figure(
        "brain",
        plot_regions(maps, atlas, colorbar_label="relative heat scale"),
        "Heat scale of every region relative to the median region (1), by model, "
        "arithmetic mean over folds; small scales are dark.",
        wide=True,
    )
    write_interactive(maps, page.folder / "brain.html", atlas)
    page.text("An interactive view with region names is in brain.html.")
    if (evaluation.scales["share"] < 1).any():
        page.heading("Scales during training")
        page.figure(
            "scales_at_quarters",
            plot_scales_at_quarters(evaluation, atlas),
            "Relative heat scale at the start, at quarters and at the end of training, "
            f"{first}.",
            wide=True,
        )


def _fitting(page: _Page, evaluation: Evaluation) -> None:
    settings, fits = evaluation.settings, evaluation.fits
    page.section("fitting", "Fitting and settings")
    page.table(
        "fits",
        made.fit_table(evaluation),
        "Every model over all folds: failed fits, epochs (mean), the bound on the "
        "error of the heat kernel at the highest learned scale (its entries are at "
        "most 1), and the range of learned scales.",
    )
    page.heading("Warnings")
    warned = Counter(
        (name, text)
        for name, texts in fits[["model", "warnings"]].itertuples(index=False)
        for text in json.loads(texts)
    )
    told = [f"{name}, in {n} folds: {text}" for (name, text), n in warned.items()]
    page.items(map(page.clean, told or ["No model warned while it was fitted."]))
    page.heading("Settings")
    versions = ", ".join(f"{name} {one}" for name, one in settings["versions"].items())
    page.text(
        f"Seed {settings['random_state']}. SHA-256 of connectomes, features and "
        f"labels: {evaluation.cohort.data_hash}. Settings of all models are in "
        f"settings.json. Made with {versions}."
    )
