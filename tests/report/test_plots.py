"""Figures of scores and rankings show the numbers they are given."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from brainlsap.evaluation import rank_regions
from brainlsap.exceptions import ParameterError
from brainlsap.report import (
    plot_calibration,
    plot_confusion,
    plot_ranks,
    plot_scales,
    plot_scores,
)


def texts(axes):
    return [one.get_text() for one in axes.texts]


def test_scores_show_every_model_and_fold(make_evaluation):
    one = make_evaluation(failed=["Exact"])
    axes = plot_scores(one)
    assert [tick.get_text() for tick in axes.get_yticklabels()] == list(one.models)
    assert "failed: 1 of 3" in texts(axes)
    mean = one.summary().query("model == 'LSAP-C' and score == 'balanced_accuracy'")
    assert f"{mean['mean'].item():.3f}" in texts(axes)
    dots = [line for line in axes.lines if line.get_marker() == "."]
    assert [len(line.get_xdata()) for line in dots] == [3] * len(one.models)
    chance = next(line for line in axes.lines if line.get_linestyle() == "--")
    assert chance.get_xdata()[0] == pytest.approx(1 / 3)
    with pytest.raises(ParameterError, match="score"):
        plot_scores(one, "recall")


def test_figures_are_pyplots_and_take_axes(evaluation):
    axes = plot_scores(evaluation)
    assert plt.gcf() is axes.figure
    _, given = plt.subplots()
    assert plot_confusion(evaluation, axes=given) is given


def test_confusion_counts_scans(evaluation):
    axes = plot_confusion(evaluation, "majority")
    told = evaluation.predictions.query("model == 'majority'")
    hits = ((told["truth"] == "CN") & (told["predicted"] == "CN")).sum()
    assert texts(axes)[0].endswith(f"\n{hits}")
    n = (told["truth"] == "CN").sum()
    assert axes.get_yticklabels()[0].get_text() == f"CN\nn = {n}"
    with pytest.raises(ParameterError, match="model"):
        plot_confusion(evaluation, "nobody")


def test_calibration_is_of_probabilities(evaluation):
    axes = plot_calibration(evaluation, n_bins=4)
    assert len(axes.containers) == 4
    with pytest.raises(ParameterError, match="linear SVM gives no probabilities"):
        plot_calibration(evaluation, "linear SVM")


def test_scales_show_intervals_and_planted_regions(evaluation):
    ranking = rank_regions(evaluation)
    ranking = ranking.assign(planted=ranking["rank"] == 2)
    axes = plot_scales(ranking, n_regions=3)
    first = ranking.set_index("rank").loc[1.0]
    assert axes.get_yticklabels()[0].get_text() == first["region"]
    bar = axes.containers[0].lines[2][0].get_segments()[0]
    bounds = first[["relative_low", "relative_high"]].astype(float)
    assert np.allclose(bar[:, 0], bounds)
    names = [one.get_text() for one in axes.get_legend().get_texts()]
    assert names == ["other region", "planted region"]
    assert "n = 6" in plot_ranks(ranking).get_xlabel()
    with pytest.raises(ParameterError, match="no measured region"):
        plot_scales(ranking.assign(rank=np.nan))
