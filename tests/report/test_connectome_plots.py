import dataclasses

import numpy as np
import pandas as pd
import pytest

from brainlsap.atlas import load_atlas
from brainlsap.exceptions import BrainlsapError, ParameterError
from brainlsap.report.connectome_plots import plot_connectome, plot_matrix
from tests.report.conftest import check_letters

ATLAS = load_atlas("desikan82")
N_ROIS = len(ATLAS)


def draw_connectome(seed=0):
    rng = np.random.default_rng(seed)
    half = np.triu(rng.lognormal(size=(N_ROIS, N_ROIS)), 1)
    half[rng.uniform(size=half.shape) < 0.4] = 0
    return half + half.T


def lines_of(display):
    return [line for view in display.axes.values() for line in view.ax.lines]


def test_the_matrix_is_ordered_by_hemisphere_and_lobe_by_name():
    weights = draw_connectome()
    ax = plot_matrix(weights, None, ATLAS, label="streamlines")
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names[0] == "left frontal"
    assert names.index("left subcortical") < names.index("right frontal")
    assert len(names) == len(set(names))
    shown = ax.images[0].get_array()
    frontal = ATLAS.regions.query("hemisphere == 'L' and lobe == 'frontal'").index
    block = np.where(weights == 0, np.nan, weights)[np.ix_(frontal, frontal)]
    n = len(frontal)
    np.testing.assert_array_equal(np.ma.filled(shown[:n, :n], np.nan), block)
    bar = ax.figure.axes[-1]
    assert bar.get_ylabel() == "streamlines"
    assert {"0.1", "1", "10"} <= {one.get_text() for one in bar.get_yticklabels()}
    order = np.random.default_rng(1).permutation(N_ROIS)
    named = pd.DataFrame(weights, ATLAS.names, ATLAS.names).iloc[order, order]
    again = plot_matrix(named, atlas=ATLAS)
    rows = np.sort(np.ma.filled(again.images[0].get_array(), 0).sum(axis=1))
    np.testing.assert_allclose(rows, np.sort(np.ma.filled(shown, 0).sum(axis=1)))


@pytest.mark.parametrize("decades", [(0, 0.6), (-0.9, 0.3), (0, 3), (-3, 3), (-7, 4)])
def test_a_bar_of_the_matrix_has_numbers_that_are_apart(decades):
    rng = np.random.default_rng(0)
    half = np.triu(10 ** rng.uniform(*decades, size=(N_ROIS, N_ROIS)), 1)
    figure = plot_matrix(half + half.T, None, ATLAS, width=85).figure
    bar = figure.axes[-1]
    low, high = bar.get_ylim()
    assert 2 <= np.sum((low <= bar.get_yticks()) & (bar.get_yticks() <= high)) <= 9
    check_letters(figure)
    image = figure.axes[0].images[0]  # which lines to labels do not widen
    limits = (*image.axes.get_xlim(), *image.axes.get_ylim())
    assert limits == tuple(image.get_extent())


def test_a_matrix_with_negative_weights_is_drawn_linearly():
    weights = draw_connectome() - 1
    image = plot_matrix(weights, None, ATLAS).images[0]
    largest = np.abs(weights[~np.eye(N_ROIS, dtype=bool)]).max()
    assert image.get_clim() == (-largest, largest)
    assert image.cmap.name == "RdBu_r"
    with pytest.raises(ParameterError, match="log=False"):
        plot_matrix(weights, None, ATLAS, log=True)


def test_the_glass_brain_shows_the_strongest_edges_between_their_regions():
    weights = draw_connectome()
    a, b = ATLAS.match(["lh_insula", "Left-Thalamus"])
    weights[a, b] = weights[b, a] = 100.0
    display = plot_connectome(weights, None, ATLAS, n_edges=1, label="streamlines")
    lines = lines_of(display)
    assert len(lines) == 2  # from the left and from above, not from the right
    centres = ATLAS.coordinates
    above = sorted(lines[-1].get_xydata().round(3).tolist())
    assert above in [
        sorted(centres[[a, b]][:, axes].round(3).tolist()) for axes in ([0, 1], [1, 2])
    ]
    figure = display.frame_axes.figure
    figure.canvas.draw()
    assert figure.get_size_inches()[0] * 25.4 == pytest.approx(180)
    bar = figure.axes[-1]
    assert bar.get_ylabel() == "streamlines"
    assert bar.bbox.x1 < bar.yaxis.label.get_window_extent().x0  # and not on the brain
    assert "20" in [one.get_text() for one in bar.get_yticklabels()]
    narrow = plot_connectome(weights, None, ATLAS, n_edges=1, width=90)
    dots = [one.axes["z"].ax.collections[0] for one in (narrow, display)]
    sizes = [one.get_sizes().max() for one in dots]
    assert sizes[0] == sizes[1] / 4  # as the brain
    many = plot_connectome(weights, None, ATLAS, n_edges=30).axes["z"].ax
    assert len(many.lines) == 30


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda W: W[:-1, :-1], r"of shape \(82, 82\) .*; got \(81, 81\)"),
        (np.triu, "finite and symmetric; [0-9]+ of 6724 weights are not"),
        (lambda W: W * np.nan, "finite and symmetric; 6642 of 6724 weights"),
        (lambda W: pd.DataFrame(W, ATLAS.names), "the same names"),
        (np.zeros_like, "no two regions"),
        (lambda W: pd.DataFrame(W, *2 * [["insulla", *ATLAS.names[1:]]]), "insulla"),
    ],
)
def test_what_is_no_connectome_is_refused(change, says):
    for plot in (plot_connectome, plot_matrix):
        with pytest.raises(BrainlsapError, match=says):
            plot(change(draw_connectome()), None, ATLAS)


def test_a_frame_has_names_of_its_own_and_a_diagonal_is_never_drawn():
    weights = draw_connectome()
    expected = plot_matrix(weights, None, ATLAS).images[0].get_array()
    np.fill_diagonal(weights, np.inf)
    named, order = pd.DataFrame(weights, ATLAS.names, ATLAS.names), [*ATLAS.names[::-1]]
    for one in (weights, pd.DataFrame(weights), named):
        found = plot_matrix(one, ATLAS.names, ATLAS).images[0].get_array()
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(ParameterError, match="leave region_names= out"):
        plot_matrix(named, order, ATLAS)


def test_edges_need_coordinates():
    regions = ATLAS.regions.assign(x=np.nan)
    atlas = dataclasses.replace(ATLAS, name="own", regions=regions, folder=None)
    with pytest.raises(ParameterError, match="no coordinates"):
        plot_connectome(draw_connectome(), None, atlas)
    assert plot_matrix(draw_connectome(), None, atlas)
    with pytest.raises(ParameterError, match="width must be a number"):
        plot_connectome(draw_connectome(), None, ATLAS, width="180")
