"""Figures of scores and rankings show the numbers they are given."""

import re
from dataclasses import replace
from functools import partial
from inspect import signature
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.text import Text
from sklearn.metrics import roc_auc_score

from brainlsap import report
from brainlsap.atlas import load_atlas
from brainlsap.evaluation import ConnectomeGain, rank_regions
from brainlsap.exceptions import ParameterError
from brainlsap.report import page, tables
from brainlsap.report.page import draw_figure_by_name
from tests.report.conftest import (
    check_letters,
    draw_gain_table,
    draw_learning_curve,
    draw_region_tests,
)

FUNCTIONS = [getattr(report, name) for name in report.__all__]
ON_AXES = [one for one in FUNCTIONS if "axes" in signature(one).parameters]


def texts(axes):
    return [one.get_text() for one in axes.texts]


def read_legend(axes):
    """Return the names of a legend as they are read, row by row."""
    axes.figure.canvas.draw()
    names = axes.get_legend().get_texts()
    corners = [name.get_window_extent().corners()[1] for name in names]  # upper left
    order = sorted(
        range(len(names)), key=lambda k: (-round(corners[k][1]), corners[k][0])
    )
    return [names[k].get_text() for k in order]


def test_every_figure_is_drawn_by_a_test():
    folder = Path(__file__).parents[1]
    code = "".join(path.read_text("utf-8") for path in folder.rglob("test_*.py"))
    undrawn = [
        name
        for name in report.__all__
        if name.startswith("plot_") and not re.search(rf"\b{name}\(", code)
    ]
    assert not undrawn


def test_contributions_are_the_largest_and_the_sum_of_all_others():
    names = load_atlas("desikan82").names[:40]
    values = np.random.default_rng(0).normal(size=40)
    table = pd.DataFrame({"region": names, "contribution": values})
    (axes,) = report.plot_contributions(table, None, "contribution to AD").axes
    lengths = [bar.get_width() for bar in axes.patches]
    order = np.argsort(-np.abs(values))
    n_shown = len(lengths) - 1
    assert 1 < n_shown < 40
    np.testing.assert_allclose(lengths[:-1], values[order[:n_shown]])
    np.testing.assert_allclose(sum(lengths), values.sum())
    row_names = [label.get_text() for label in axes.get_yticklabels()]
    assert row_names[0] == names[order[0]]
    assert row_names[-1] == f"{40 - n_shown} other regions"
    assert axes.get_xlabel() == "contribution to AD"


def test_every_figure_on_axes_has_the_style_of_papers():
    plain = [one.__name__ for one in ON_AXES if not hasattr(one, "__wrapped__")]
    assert not plain, f"add @use_paper_style() to {plain}"


def test_scores_show_every_model_and_fold(make_evaluation):
    evaluation = make_evaluation(failed=["Exact"])
    axes = report.plot_scores(evaluation)
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    assert sorted(names) == sorted(evaluation.models)
    assert "failed: 1 of 3" in texts(axes)
    pooled = tables.score_interval_table(evaluation, "LSAP-C").loc["balanced_accuracy"]
    assert f"{pooled['estimate']:.3f}" in texts(axes)
    dots = [line for line in axes.lines if line.get_marker() == "."]
    assert [len(line.get_xdata()) for line in dots] == [3] * len(evaluation.models)
    assert axes.get_xlim()[0] <= 0
    chance = next(line for line in axes.lines if line.get_linestyle() == "--")
    assert chance.get_xdata()[0] == pytest.approx(1 / 3)
    with pytest.raises(ParameterError, match="score"):
        report.plot_scores(evaluation, "recall")


def test_a_model_of_the_same_predictions_is_named(make_evaluation):
    evaluation = make_evaluation(models=("LSAP-C",))
    rows = evaluation.predictions.query("model != 'LSAP-C'")
    same = rows[rows["model"] == "majority"].assign(model="LSAP-C")
    predictions = pd.concat([same, rows])
    axes = report.plot_scores(replace(evaluation, predictions=predictions))
    names = [tick.get_text().replace("\n", " ") for tick in axes.get_yticklabels()]
    assert sorted(names) == sorted(["LSAP-C (= majority)", *evaluation.models[1:]])


def test_gains_are_drawn_with_their_intervals():
    table = draw_gain_table(8, 3)
    axes = report.plot_connectome_gain(ConnectomeGain(table))
    names = [tick.get_text().replace("\n", " ") for tick in axes.get_yticklabels()]
    titles = report.connectome_gain_table(ConnectomeGain(table))["connectome"][1:]
    assert names == ["no connectome", *titles]
    (label, limit_label), line = axes.texts, axes.lines[0]
    assert limit_label.get_text() == "3.0 nats"
    assert "90% interval" in axes.get_xlabel().replace("\n", " ")
    gap = label.get_window_extent().y0 - line.get_window_extent().y1
    assert gap > 0  # the line does not run into its label
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    # The study's own gain, and its lead over the gain of each other connectome.
    assert [dot.get_xdata()[0] for dot in dots] == [9, 8, 8, 8, 8]
    assert len({dot.get_color() for dot in dots}) == 2
    bars = [bar.get_segments()[0][:, 0] for bar in axes.collections]
    np.testing.assert_array_equal(bars[:2], [[6, 12], [5, 11]])
    error = report.plot_connectome_gain(ConnectomeGain(table), "error")
    assert error.lines[1].get_xdata()[0] == 900  # in percent


def test_a_learning_curve_shows_people_and_intervals(evaluation):
    curve = draw_learning_curve(["LSAP-C", "LSAP-R"])
    axes = report.plot_learning_curve(replace(evaluation, learning_curve=curve))
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["LSAP-C", "LSAP-R"]
    ticks = [tick.get_text() for tick in axes.get_xticklabels()]
    assert ticks == ["6", "12", "18", "24"]
    bars = axes.collections[0].get_segments()
    rows = curve[curve["model"] == "LSAP-C"]
    assert np.allclose([bar[:, 1] for bar in bars], rows[["low", "high"]])
    with pytest.raises(ParameterError, match="learning curve"):
        report.plot_learning_curve(evaluation)


def test_confusion_counts_scans(evaluation):
    axes = report.plot_confusion(evaluation, "majority")
    assert plt.gcf() is axes.figure  # of pyplot
    predictions = evaluation.predictions.query("model == 'majority'")
    hits = ((predictions["truth"] == "CN") & (predictions["predicted"] == "CN")).sum()
    assert texts(axes)[0].endswith(f"\n{hits}")
    n = (predictions["truth"] == "CN").sum()
    assert axes.get_yticklabels()[0].get_text() == f"CN\nn = {n}"
    with pytest.raises(ParameterError, match="model"):
        report.plot_confusion(evaluation, "nobody")
    with pytest.raises(ParameterError, match="axes must be 1 Axes"):
        report.plot_confusion(evaluation, axes=plt.subplots(1, 2)[1])


def test_numbers_of_a_confusion_stand_out_from_their_cells(make_evaluation):
    for skill in (0.1, 0.25, 0.4, 0.9):
        axes = report.plot_confusion(make_evaluation(skill=skill))
        shares = axes.images[0].get_array().ravel()
        for text, cell in zip(axes.texts, axes.images[0].cmap(shares), strict=True):
            linear = [np.power(to_rgb(x), 2.2) for x in (text.get_color(), cell)]
            low, high = sorted(linear @ np.array([0.2126, 0.7152, 0.0722]))
            assert (high + 0.05) / (low + 0.05) > 4


def test_calibration_is_of_probabilities(evaluation):
    axes = report.plot_calibration(evaluation)
    assert len(axes.containers) == 8
    assert axes.get_xlabel().startswith("probability of the predicted class")
    assert axes.get_ylabel() == "share of correct predictions"
    marks = [mark for one in axes.containers for mark in one.get_children()]
    assert not any(mark.get_clip_on() for mark in marks)  # whole, also at 1
    with pytest.raises(ParameterError, match="linear SVM gives no probabilities"):
        report.plot_calibration(evaluation, "linear SVM")


def test_roc_has_a_curve_of_every_class_and_its_area(evaluation):
    axes = report.plot_roc(evaluation)
    names = read_legend(axes)
    assert [one.split()[0] for one in names] == list(evaluation.cohort.classes)
    predictions = evaluation.predictions.query("model == 'LSAP-C'")
    folds = [fold for _, fold in predictions.groupby("fold")]
    areas = [roc_auc_score(one["truth"] == "CN", one["p_CN"]) for one in folds]
    assert names[0].split()[1] == f"{np.mean(areas):.2f}"
    assert report.plot_roc(evaluation, "linear SVM").lines  # of decision values
    without_scores = evaluation.predictions.assign(d_CN=np.nan, p_CN=np.nan)
    with pytest.raises(ParameterError, match="no ROC curve"):
        report.plot_roc(replace(evaluation, predictions=without_scores))


@pytest.mark.parametrize("classes", [("CN", "AD"), ("CN", "SMC", "EMCI", "AD")])
def test_the_legend_hides_no_curve_and_no_letter_of_a_panel(make_evaluation, classes):
    axes = plt.figure(figsize=(3, 3), layout="constrained").subplots()
    report.plot_roc(make_evaluation(classes, skill=-0.3), axes=axes)
    axes.set_title("b", loc="left", size=12)
    check_letters(axes.figure)
    box = axes.get_legend().get_window_extent()
    for line in axes.lines:
        assert not box.count_contains(axes.transData.transform(line.get_xydata()))
    assert not box.overlaps(axes.bbox)


def test_the_legend_of_a_panel_of_60_mm_is_not_cut(make_evaluation):
    size = (180 / 25.4, 60 / 25.4)
    panels = plt.figure(figsize=size, layout="constrained").subfigures(1, 3)
    evaluation = make_evaluation(("control", "MCI", "AD"))
    axes = report.plot_roc(evaluation, axes=panels[0].subplots())
    axes.figure.figure.draw_without_rendering()
    assert axes.get_legend().get_window_extent().x0 >= 0


def test_directions_are_differences_from_the_first_class(evaluation):
    ranking = rank_regions(evaluation)
    axes = report.plot_directions(evaluation, ranking, n_regions=2)
    names = [one.get_text() for one in axes.get_legend().get_texts()]
    assert names == ["R&D_<50%>", "AD"]
    first = ranking.set_index("rank").loc[1.0, "region"]
    differences = report.class_difference_table(evaluation).set_index(
        ["class", "region"]
    )
    expected = differences.loc[("AD", first), "difference"]
    assert axes.containers[1].lines[0].get_xdata()[0] == expected
    marks = [container.lines[0].get_marker() for container in axes.containers]
    assert len(set(marks)) == 2  # told apart without colour


def test_hollow_marks_of_tests_are_explained(make_evaluation):
    evaluation = make_evaluation()
    region_tests = draw_region_tests(evaluation)
    p_values = region_tests.filter(regex="^p_").columns
    for p, names in (
        (0.2, ["effect", "contrast", "hollow: p ≥ 0.05"]),
        (0.01, ["effect", "contrast"]),
        (np.nan, ["effect", "contrast"]),
    ):
        tests = region_tests.assign(**dict.fromkeys(p_values, p))
        axes = report.plot_region_tests(replace(evaluation, region_tests=tests))
        assert read_legend(axes) == names


def test_training_shows_losses_and_every_regions_scale(evaluation):
    left, right = report.plot_training(evaluation)
    wide = [line.get_linewidth() for line in left.lines]
    assert wide == 2 * [*3 * [min(wide)], max(wide)]  # folds, and their median
    assert len(right.lines) == evaluation.cohort.measured.sum()
    assert left.lines[0].get_xdata().tolist() == [1, 2]  # kept from 0
    left.figure.canvas.draw()
    assert {one % 1 for one in left.get_xticks()} == {0}
    with pytest.raises(ParameterError, match="majority has no record of training"):
        report.plot_training(evaluation, "majority")
    first = replace(evaluation, fits=evaluation.fits[::-1])  # linear SVM
    assert "training" not in draw_figure_by_name(first, first.cohort.atlas)


def test_figures_are_saved_for_journals(evaluation, tmp_path):
    figure = report.plot_scores(evaluation).figure
    figure.savefig(tmp_path / "a.pdf")
    assert b"/CIDFontType2" in (tmp_path / "a.pdf").read_bytes()  # TrueType
    figure.savefig(tmp_path / "a.png")
    width = int.from_bytes((tmp_path / "a.png").read_bytes()[16:20], "big")
    assert width == pytest.approx(figure.get_size_inches()[0] * 300, abs=1)


def test_scales_show_intervals_and_planted_regions(evaluation):
    ranking = rank_regions(evaluation)
    ranking = ranking.assign(planted=ranking["rank"] == 2)
    axes = report.plot_scales(ranking, evaluation.cohort.region_names, 3)
    first = ranking.set_index("rank").loc[1.0]
    assert axes.get_yticklabels()[0].get_text() == first["region"]
    bar = axes.containers[0].lines[2][0].get_segments()[0]
    bounds = first[["relative_low", "relative_high"]].astype(float)
    assert np.allclose(bar[:, 0], bounds)
    names = [one.get_text() for one in axes.get_legend().get_texts()]
    assert names == ["median region", "region", "planted"]
    with pytest.raises(ParameterError, match="no measured region"):
        report.plot_scales(ranking.assign(rank=np.nan))


def test_letters_are_whole_beside_other_axes(make_evaluation):
    atlas = load_atlas("desikan82")
    classes = ("CN", "late mild cognitive impairment", "behavioural-variant dementia")
    evaluation = make_evaluation(classes, regions=list(atlas.names))
    features = evaluation.cohort.class_features.assign(feature="$R_1$ beside $T_2$")
    changes = {"feature_names": ("$R_1$ beside $T_2$",), "class_features": features}
    evaluation = replace(evaluation, cohort=replace(evaluation.cohort, **changes))
    ranking = rank_regions(evaluation)
    bounds = ranking.filter(like="relative_")
    ranking[[*bounds]] = 1 + 0.0005 * (bounds - 1)  # long numbers
    size = (180 / 25.4, 150 / 25.4)
    figure, axes = plt.subplots(2, 2, figsize=size, layout="constrained")
    report.plot_roc(evaluation, axes=axes[0, 0])
    report.plot_scales(ranking, atlas, 5, axes=axes[0, 1])
    report.plot_directions(evaluation, ranking, atlas, 5, axes=axes[1, 0])
    check_letters(figure)
    assert not axes[1, 0].xaxis.label.get_parse_math()  # a name is never math
    boxes = [axes[0, 0].get_legend().get_window_extent(), axes[0, 0].bbox]
    assert not boxes[0].overlaps(boxes[1])


def test_colors_of_ordered_classes_are_told_apart(make_evaluation):
    evaluation = make_evaluation(("CN", "SMC", "EMCI", "LMCI", "AD"), ordered=True)
    lines = [x for x in report.plot_roc(evaluation).lines if x.get_label()[0] != "_"]
    grey = [to_rgb(line.get_color()) @ np.array([0.3, 0.6, 0.1]) for line in lines]
    assert (np.diff(grey) < -0.13).all()  # for readers of any colour vision


@pytest.fixture(scope="module")
def long_named(make_evaluation):
    """Return the arguments of every figure, with long names; only to be read."""
    atlas = load_atlas("schaefer100")
    classes = ("CN", "R&D_<50%>", "behavioural-variant frontotemporal dementia")
    models = ("LSAP-C", "logistic regression on all features")
    evaluation = make_evaluation(classes, models, regions=list(atlas.names))
    region_tests = draw_region_tests(evaluation)
    curve = draw_learning_curve(models)
    evaluation = replace(evaluation, region_tests=region_tests, learning_curve=curve)
    return {
        "evaluation": evaluation,
        "ranking": rank_regions(evaluation),
        "atlas": atlas,
        "gain": ConnectomeGain(draw_gain_table(8, 3)),
        "connectome": np.ones((len(atlas), len(atlas))),
    }


@pytest.mark.parametrize("width", [85, 180, "of axes"])
@pytest.mark.parametrize("plot", ON_AXES)
def test_letters_have_one_size_and_are_whole(long_named, plot, width):
    parameters = signature(plot).parameters.keys()
    draw = partial(plot, **{k: long_named[k] for k in parameters & long_named})
    if width == "of axes":
        with plt.rc_context({"font.size": 12}):
            figure, axes = plt.subplots(1, 1 + (plot is report.plot_training))
        assert np.array_equal(np.ravel(draw(axes=axes)), np.ravel(axes))
        texts = [text for text in figure.findobj(Text) if text.get_text()]
        assert {text.get_fontsize() for text in texts} == {7}
        spines = [ax.spines[k] for ax in np.ravel(axes) for k in ("top", "right")]
        assert not any(spine.get_visible() for spine in spines)
    else:
        figure = np.ravel(draw(width=width))[0].figure
        assert figure.get_size_inches()[0] * 25.4 == pytest.approx(width)
        check_letters(figure)
    with pytest.raises(ParameterError, match="width must be a number from 60 to 400"):
        draw(width="85")


def test_figures_of_several_panels_are_whole_and_no_taller_than_they_need(
    example_evaluation,
):
    # Scales are drawn if a fold has chosen a ridge with a scale for each region.
    fits = example_evaluation.fits.copy()
    fits.loc[fits["model"] == "LSAP-R", "report"] = '{"chosen": "regions"}'
    evaluation = replace(
        example_evaluation,
        fits=fits,
        ranking=rank_regions(example_evaluation),
        connectome_gain=draw_gain_table(8, 3),
    )
    # with the legend above the curves; ten regions; and five connectomes
    heights = {"classes": 80, "regions": 110, "connectome_gain": 60}
    figures = draw_figure_by_name(evaluation, load_atlas("desikan82"), heights.keys())
    for name, tallest in heights.items():
        assert figures[name].get_figheight() * 25.4 < tallest
        check_letters(figures[name])


def test_axes_that_cannot_be_drawn_on_are_rejected(evaluation):
    figure, axes = plt.subplots(1, 2)
    with pytest.raises(ParameterError, match="Axes"):
        report.plot_scores(evaluation, axes=axes)
    plt.close(figure)
    with pytest.raises(ParameterError, match="60 to 400"):
        report.plot_scores(evaluation, width=20)
    figure, axes = plt.subplots(figsize=(0.8, 0.8))
    with pytest.warns(UserWarning, match="may be too small"):
        report.plot_scores(evaluation, axes=axes)
    plt.close(figure)


def test_a_notebook_shows_a_figure_once(evaluation, monkeypatch):
    figure = report.plot_scores(evaluation).figure
    monkeypatch.setattr(plt, "get_backend", lambda: "inline")
    # The notebook then draws the figure, which is no longer open.
    with pytest.raises(NotImplementedError):
        figure._ipython_display_()
    assert not plt.fignum_exists(figure.number)


def test_a_figure_of_a_report_must_be_of_its_own_kind(evaluation, monkeypatch):
    def plot_own(_):
        return plt.figure().subplots()

    own = page.ReportFigure("own", draw=plot_own, drawing_condition=lambda _: True)
    monkeypatch.setitem(page.FIGURES, "own", own)
    with pytest.raises(TypeError, match="plot_own must draw on axes of prepare_axes"):
        draw_figure_by_name(evaluation, None, {"own"})
