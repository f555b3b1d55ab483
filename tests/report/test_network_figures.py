import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from brainlsap.data.atlas import load_atlas
from brainlsap.exceptions import ParameterError, RegionNameError
from brainlsap.report import (
    plot_connectome,
    plot_glass_brain,
    plot_reach,
    plot_regions,
    plot_ring,
)
from brainlsap.report.network_layout import LOBE_COLOURS, as_network, strongest_edges
from brainlsap.report.projection import CAMERAS

ATLAS = load_atlas("desikan82")
PAIR = ["lh_precentral", "rh_precentral"]


def draw_network(seed=0):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.poisson(3, size=(82, 82)) * rng.integers(0, 40, (82, 82)), 1)
    return (upper + upper.T).astype(float)


def test_the_matrix_stands_by_hemisphere_and_lobe():
    weights = draw_network()
    mixed = np.random.default_rng(1).permutation(82)
    names = np.array(ATLAS.names)[mixed].tolist()
    ax = plot_connectome(weights[np.ix_(mixed, mixed)], names, ATLAS, log=False)
    ticks = [one.get_text() for one in ax.get_yticklabels()]
    lobes = [
        "frontal",
        "insula",
        "limbic",
        "temporal",
        "parietal",
        "occipital",
        "subcortical",
    ]
    assert ticks == [f"{side} {lobe}" for side in ("left", "right") for lobe in lobes]
    image = np.ma.filled(ax.images[0].get_array(), np.nan)
    np.testing.assert_allclose(np.nansum(image), weights.sum())
    assert np.isnan(np.diag(image)).all()
    # the block of left frontal regions holds their weights and no others
    frontal = [
        k
        for k, (side, lobe) in enumerate(
            zip(ATLAS.regions["hemisphere"], ATLAS.regions["lobe"], strict=True)
        )
        if (side, lobe) == ("L", "frontal")
    ]
    block = image[: len(frontal), : len(frontal)]
    assert np.nansum(block) == weights[np.ix_(frontal, frontal)].sum()


def test_a_data_frame_brings_its_names_and_log_leaves_zero_blank():
    weights = draw_network()
    frame = pd.DataFrame(weights, index=ATLAS.names, columns=ATLAS.names)
    ax = plot_connectome(frame, atlas=ATLAS, label="streamlines")
    image = np.ma.filled(ax.images[0].get_array(), np.nan)
    assert (~np.isnan(image)).sum() == (weights > 0).sum()
    assert ax.figure.axes[1].get_ylabel() == "streamlines"


def test_the_strongest_edges_are_found_and_the_strongest_is_last():
    weights = draw_network()
    edges = strongest_edges(weights, 13)
    found = weights[edges[:, 0], edges[:, 1]]
    assert (np.diff(found) >= 0).all()
    assert found.min() >= np.sort(weights[np.triu_indices(82, 1)])[-13]
    assert (edges[:, 0] < edges[:, 1]).all()


def test_the_ring_has_left_on_the_left_and_joins_what_is_joined():
    weights = np.zeros((82, 82))
    first, second = ATLAS.match(PAIR)
    weights[first, second] = weights[second, first] = 7
    ax = plot_ring(weights, ATLAS.names, ATLAS, n_edges=4)
    curves = ax.collections[0]
    (curve,) = curves.get_paths()
    start, _, end = curve.vertices
    assert start[0] < 0 < end[0]
    assert start[1] == pytest.approx(end[1])  # homotopic regions are mirrored
    x, y = ax.lines[0].get_data()
    np.testing.assert_allclose(np.hypot(x, y), 1)
    assert ((x < 0) == (ATLAS.regions["hemisphere"] == "L")).all()
    assert len(set(np.round(np.arctan2(y, x), 6))) == 82
    colours = {to_hex(patch.get_facecolor()).upper() for patch in ax.patches}
    assert colours == set(LOBE_COLOURS.values())
    ax.figure.canvas.draw()
    assert len(curves.get_edgecolor()) == 1  # drawn, and not only its dots


def test_the_glass_brain_shows_edges_between_hemispheres_from_above_only():
    weights = np.zeros((82, 82))
    for k, pair in enumerate([PAIR, ["lh_insula", "Left-Putamen"]]):
        first, second = ATLAS.match(pair)
        weights[first, second] = weights[second, first] = 5 + k
    figure = plot_glass_brain(weights, ATLAS.names, ATLAS, title="Edges")
    from matplotlib.collections import LineCollection

    lines = [
        next(one for one in ax.collections if isinstance(one, LineCollection))
        for ax in figure.axes[:3]
    ]
    assert [len(one.get_segments()) for one in lines] == [1, 2, 0]
    centre = ATLAS.regions.loc[ATLAS.match(PAIR), ["x", "y", "z"]].to_numpy()
    np.testing.assert_allclose(
        lines[1].get_segments()[0], centre @ CAMERAS["from above"].T[:, :2]
    )


def test_centres_lie_inside_the_outline():
    from brainlsap.report.glass_brain import _silhouette

    for camera, side in [("from left", "L"), ("from above", "R")]:
        x, y, mask = _silhouette(camera, side)
        here = (ATLAS.regions["hemisphere"] == side).to_numpy()
        flat = ATLAS.regions[["x", "y", "z"]].to_numpy()[here] @ CAMERAS[camera].T
        rows = np.abs(y[:, None] - flat[:, 1]).argmin(axis=0)
        columns = np.abs(x[:, None] - flat[:, 0]).argmin(axis=0)
        assert (mask[rows, columns] > 0.5).mean() > 0.97


def test_reach_leaves_the_region_itself_out_of_the_limits():
    reach = pd.Series(np.linspace(0.001, 0.02, 82), index=ATLAS.names)
    reach.iloc[ATLAS.find("lh_insula")] = 0.7
    figure = plot_reach(reach, "lh_insula", ATLAS, views=["outer left"])
    bar = next(ax for ax in figure.axes if ax.get_label() == "colour bar")
    assert bar.get_ylim() == pytest.approx((0, 0.02))
    assert bar._colorbar.extend == "max"
    brain = figure.axes[0]
    assert [one.get_text() for one in brain.texts if one.get_text() == "1"] == ["1"]
    alike = plot_regions(
        reach, ATLAS, views=["outer left"], limits=(0, 0.02), labels=["lh_insula"]
    )
    np.testing.assert_array_equal(
        brain.images[0].get_array(), alike.axes[0].images[0].get_array()
    )


BAD = [
    (np.zeros((3, 3)), None, r"give region_names, one for each row"),
    (np.zeros((3, 3)), PAIR, r"for 2 region names, got \(3, 3\)"),
    (np.array([[0, 1.0], [2, 0]]), PAIR, r"must be symmetric"),
    (
        pd.DataFrame(np.zeros((2, 2)), index=PAIR, columns=PAIR[::-1]),
        None,
        r"rows and columns must have the same names",
    ),
]


@pytest.mark.parametrize(("connectome", "names", "message"), BAD)
def test_networks_that_cannot_be_drawn_are_refused(connectome, names, message):
    with pytest.raises(ParameterError, match=message):
        as_network(connectome, names, ATLAS)


def test_empty_networks_unknown_names_and_lost_centres_are_refused(tmp_path):
    empty = np.zeros((2, 2))
    with pytest.raises(ParameterError, match=r"joins no two regions; .*nothing"):
        plot_connectome(empty, PAIR, ATLAS)
    with pytest.raises(ParameterError, match=r"joins no two regions; .*no edge"):
        plot_ring(empty, PAIR, ATLAS)
    with pytest.raises(ParameterError, match=r"n_edges must be at least 1, got 0"):
        plot_ring(empty + 1, PAIR, ATLAS, n_edges=0)
    with pytest.raises(RegionNameError, match="nearest: ctx-lh-insula"):
        plot_ring(empty + 1, ["lh_insulla", "rh_insula"], ATLAS)
    with pytest.raises(ParameterError, match=r"no value but that of ctx-lh-insula"):
        plot_reach({"lh_insula": 1.0}, "lh_insula", ATLAS)
    (tmp_path / "mine.tsv").write_text("name\themisphere\nlh_a\tL\nrh_a\tR\n")
    with pytest.raises(ParameterError, match=r"mine has no centre of lh_a \(2 without"):
        plot_glass_brain(1 - np.eye(2), ["lh_a", "rh_a"], tmp_path / "mine.tsv")
