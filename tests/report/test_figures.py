import io

import numpy as np
import pytest
from matplotlib.figure import Figure

from brainlsap.evaluation import confusion_counts, rank_regions, rank_scales
from brainlsap.exceptions import ParameterError
from brainlsap.report import plot_confusion, plot_ranks, plot_scales, plot_scores


def texts(ax):
    ax.figure.savefig(io.BytesIO(), format="png")  # so that every text is laid out
    return [one.get_text() for one in ax.texts]


def tick_names(axis):
    return [one.get_text() for one in axis.get_ticklabels()]


def test_confusion_rows_are_true_classes_in_order(evaluation):
    told = evaluation.main.predictions()
    classes = evaluation.main.classes
    counts = confusion_counts(told["truth"], told["predicted"], classes)
    ax = plot_confusion(evaluation.main)
    shown = ax.images[0].get_array()
    np.testing.assert_allclose(shown, counts / counts.sum(axis=1, keepdims=True))
    assert [int(one.split("\n")[1]) for one in texts(ax)] == counts.ravel().tolist()
    assert tick_names(ax.xaxis) == list(classes)
    assert tick_names(ax.yaxis)[2] == f"AD\nn = {counts[2].sum()}"


def test_every_fold_is_a_dot(evaluation):
    ax = plot_scores(evaluation)
    assert tick_names(ax.yaxis) == ["LSAP_x", "majority", "linear"]
    scores = evaluation.main.scores()["balanced_accuracy"]
    dots = [line for line in ax.lines if line.get_marker() == "."]
    np.testing.assert_allclose(dots[0].get_xdata(), scores)
    assert f"{scores.mean():.3f}" in texts(ax)
    assert "chance" in texts(ax)
    assert "chance" not in texts(plot_scores(evaluation, "auc"))


def test_smallest_scale_is_on_top_and_seeds_are_marked(evaluation, atlas, truth):
    ranking = rank_regions(evaluation, truth=truth)
    ax = plot_scales(ranking, atlas, 5)
    assert tick_names(ax.yaxis)[:2] == ["(R) G&S_r6", "(R) G&S_r4"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    key = [one.get_text() for one in ax.get_legend().get_texts()]
    assert key == ["seed of the answer key", "other region"]
    everything = plot_scales(ranking, n_regions=99)
    assert tick_names(everything.yaxis)[-1] == "region_0"
    assert "not learned" in everything.get_legend().get_texts()[-1].get_text()
    assert plot_scales(rank_regions(evaluation), n_regions=2).get_legend() is None


def test_all_measured_regions_are_in_order(evaluation, truth):
    ax = plot_ranks(rank_regions(evaluation, truth=truth))
    heights = ax.lines[0].get_ydata()
    assert len(heights) == 6
    assert (np.diff(heights) >= 0).all()
    np.testing.assert_array_equal(ax.lines[1].get_xdata(), [1])


def test_axes_that_are_given_are_drawn_in(evaluation):
    ranking = rank_regions(evaluation)
    ax = Figure().add_subplot()
    assert plot_confusion(evaluation.main, ax) is ax
    for draw in (plot_scores, plot_scales, plot_ranks):
        ax = Figure().add_subplot()
        assert draw(evaluation if draw is plot_scores else ranking, ax=ax) is ax


def test_dollars_in_labels_are_no_formulas(make_evaluation):
    evaluation = make_evaluation(classes=("$x", r"$\broken{$"), name="$5")
    assert len(texts(plot_confusion(evaluation.main))) == 4
    texts(plot_scores(evaluation))


def test_drawing_opens_no_window(evaluation):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    plot_confusion(evaluation.main)
    plot_scores(evaluation)
    assert plt.get_fignums() == before


def test_what_cannot_be_drawn(evaluation, atlas):
    with pytest.raises(ParameterError, match=r"score must be one of .*got 'beauty'"):
        plot_scores(evaluation, "beauty")
    none = rank_scales(np.ones((2, 7)), atlas.names, measured=np.zeros(7, bool))
    with pytest.raises(ParameterError, match="ranking has no measured region"):
        plot_scales(none)


def test_no_label_of_a_confusion_matrix_is_cut_off(evaluation):
    ax = plot_confusion(evaluation.main)
    ax.figure.savefig(io.BytesIO(), format="png")
    for text in (ax.xaxis.label, ax.yaxis.label, *ax.get_yticklabels()):
        box = text.get_window_extent()
        assert box.width > 0
        assert min(box.x0, box.y0) >= 0
