import re
import sys
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from matplotlib import colormaps

from brainlsap.data.atlas import load_atlas
from brainlsap.exceptions import ParameterError, RegionNameError
from brainlsap.report.engines import ENGINES
from brainlsap.report.surface import plot_regions
from brainlsap.report.surface_paint import region_paths
from brainlsap.report.surface_pictures import NOTHING, region_picture

ATLAS = load_atlas("desikan82")
FLAT = dict.fromkeys(ATLAS.names, 1.0)


def draw_values(seed=0):
    rng = np.random.default_rng(seed)
    return pd.Series(rng.uniform(0.2, 1.7, size=len(ATLAS)), index=ATLAS.names)


def drawing(figure, view):
    return next(ax for ax in figure.axes if ax.get_label() == view)


def texts(ax):
    return {one.get_text(): one.get_position() for one in ax.texts}


# --- labels


def test_top_regions_are_numbered_where_they_are_and_named_below():
    values = draw_values()
    figure = plot_regions(values, ATLAS, labels=3)
    for number, name in enumerate(values.nsmallest(3).index, start=1):
        place = ATLAS.find(name)
        (ax,) = [ax for ax in figure.axes if str(number) in texts(ax)]
        x, y = texts(ax)[str(number)]
        region = region_picture(ATLAS, ax.get_label()).region
        row = int((1 - y) * region.shape[0])
        assert region[row, int(x * region.shape[1])] == place
    key = " ".join(one.get_text() for one in figure.texts).replace("\xa0", " ")
    short = [ATLAS.short_names[ATLAS.find(one)] for one in values.nsmallest(3).index]
    assert re.search(r"1 {} +2 {} +3 {}".format(*map(re.escape, short)), key)


def test_each_map_has_a_key_of_its_own_and_can_count_from_the_largest():
    maps = {"a": draw_values(1), "b": draw_values(2)}
    figure = plot_regions(maps, ATLAS, views="outer left", labels=1, top="largest")
    key = [one.get_text().replace("\xa0", " ") for one in figure.texts]
    for values in maps.values():
        place = ATLAS.find(values.idxmax())
        seen = (region_picture(ATLAS, "outer left").region == place).any()
        hidden = "" if seen else " (not in view)"
        assert f"1 {ATLAS.short_names[place]}{hidden}" in key


def test_regions_can_be_named_by_hand_and_missing_ones_are_never_top():
    values = draw_values(3)
    values.iloc[7] = np.nan
    figure = plot_regions(values, ATLAS, views="top", labels=["Left-Putamen"])
    assert "1\xa0(L)\xa0Sub.put\xa0(not\xa0in\xa0view)" in [
        one.get_text() for one in figure.texts
    ]
    values = values.iloc[5:9]
    figure = plot_regions(values, ATLAS, views="outer left", labels=4)
    key = " ".join(one.get_text() for one in figure.texts).replace("\xa0", " ")
    assert ATLAS.short_names[7] not in key
    assert f"3 {ATLAS.short_names[ATLAS.find(values.idxmax())]}" in key


@pytest.mark.parametrize("labels", [-1, True, "lh_insula", 2.5])
def test_labels_that_cannot_be_used_are_refused(labels):
    with pytest.raises(ParameterError, match=r"labels must be how many .*, got "):
        plot_regions(draw_values(), ATLAS, views="top", labels=labels)


def test_an_unknown_label_and_an_unknown_top_are_refused():
    with pytest.raises(RegionNameError, match="nearest: ctx-lh-insula"):
        plot_regions(draw_values(), ATLAS, views="top", labels=["lh_insulla"])
    with pytest.raises(ParameterError, match=r"top must be one of .*got 'best'"):
        plot_regions(draw_values(), ATLAS, views="top", labels=1, top="best")


def test_labels_leave_nothing_cut_off():
    figure = plot_regions(draw_values(), ATLAS, views="outer left", labels=9)
    figure.canvas.draw()
    boxes = [one.get_window_extent() for one in figure.texts if one.get_text()]
    for k, box in enumerate(boxes):
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0
        assert not any(box.overlaps(other) for other in boxes[:k])
        assert not any(box.overlaps(ax.get_window_extent()) for ax in figure.axes)


# --- borders and outlines


def test_there_is_no_halo_at_a_border():
    """Every pixel of the cortex has the colour of a region or of a line."""
    values = draw_values(4)
    image = drawing(plot_regions(values, ATLAS, views="outer left"), "outer left")
    pixels = image.images[0].get_array()
    drawn = {tuple(one) for one in pixels[pixels[..., 3] == 255][:, :3].tolist()}
    share = (values - values.min()) / (values.max() - values.min())
    known = {
        tuple(one) for one in colormaps["viridis"](share, bytes=True)[:, :3].tolist()
    }
    others = drawn - known
    assert others <= {(0x2B,) * 3, (0xED,) * 3}  # lines, medial wall


@pytest.fixture(scope="module")
def outlines():
    picture = region_picture(ATLAS, "outer left")
    return picture, *region_paths(picture)


def test_outlines_have_the_area_of_their_pixels(outlines):
    picture, silhouette, regions = outlines

    def area(path):
        rings = path.to_polygons()
        x_y = [np.asarray(ring).T for ring in rings]
        return abs(sum((x[:-1] * y[1:] - x[1:] * y[:-1]).sum() / 2 for x, y in x_y))

    n_seen = (picture.region != NOTHING).sum()
    assert area(silhouette) == pytest.approx(n_seen, rel=0.01)
    for region, path in regions.items():
        n_pixels = (picture.region == region).sum()
        if n_pixels > 300:
            assert area(path) == pytest.approx(n_pixels, rel=0.06), region


def test_vector_and_pixels_show_the_same_colours():
    values = draw_values(5)
    images = []
    for vector in (False, True):
        figure = plot_regions(values, ATLAS, views="outer left", vector=vector)
        figure.canvas.draw()
        images.append(np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int))
    differs = np.abs(images[0] - images[1]).max(axis=-1) > 12
    assert differs.mean() < 0.06  # along the lines only
    ax = drawing(figure, "outer left")
    assert not ax.images


def test_a_vector_file_holds_outlines_and_no_image():
    figure = plot_regions(draw_values(), ATLAS, views="outer left", vector=True)
    stream = BytesIO()
    figure.savefig(stream, format="svg")
    text = stream.getvalue().decode()
    brain = text.split('id="axes_2"')[0]
    assert "<image" not in brain
    regions = np.unique(region_picture(ATLAS, "outer left").region)
    assert brain.count("<path ") >= len(regions) - 1
    assert len(text) < 700_000


# --- the other engines


def test_an_unknown_engine_is_refused():
    with pytest.raises(ParameterError, match=r"engine must be one of .*got 'mayavi'"):
        plot_regions(FLAT, ATLAS, engine="mayavi")
    assert set(ENGINES) == {"matplotlib", "pyvista", "plotly"}


@pytest.mark.parametrize("engine", ["pyvista", "plotly"])
def test_an_engine_that_is_not_installed_names_its_extra(engine, monkeypatch):
    monkeypatch.setitem(sys.modules, engine, None)
    with pytest.raises(ImportError, match=r"pip install brainlsap\[surfaces\]"):
        plot_regions(FLAT, ATLAS, views="top", engine=engine)


def test_the_lit_engine_draws_the_same_pixels():
    pytest.importorskip("pyvista")
    values = {"lh_insula": 1.0, "lh_precentral": 0.0}
    figure = plot_regions(values, ATLAS, views="outer left", engine="pyvista")
    image = drawing(figure, "outer left").images[0].get_array().astype(int)
    region = region_picture(ATLAS, "outer left").region
    assert image.shape[:2] == region.shape
    seen = image[..., 3] > 127
    assert (seen == (region != NOTHING)).mean() > 0.995
    # viridis ends in yellow: red and green, hardly any blue
    yellow = (image[..., 0] > 120) & (image[..., 2] < 90) & seen
    insula = region == ATLAS.find("lh_insula")
    assert (yellow & insula).sum() > 0.9 * insula.sum()
    assert (yellow & ~insula).sum() < 0.1 * insula.sum()


def test_the_turning_engine_has_a_region_a_trace_and_both_menus():
    pytest.importorskip("plotly")
    maps = {"one": draw_values(1), "two": draw_values(2)}
    maps["two"].iloc[0] = np.nan
    figure = plot_regions(maps, ATLAS, engine="plotly", title="Scales")
    meshes = [trace for trace in figure.data if trace.type == "mesh3d"]
    assert len(meshes) == 82 + 2  # and the medial walls
    of_maps, of_views = figure.layout.updatemenus
    assert [one.label for one in of_maps.buttons] == ["one", "two"]
    assert [one.label for one in of_views.buttons][:2] == ["Top", "Bottom"]
    text = f"{ATLAS.names[0]}: {maps['one'].iloc[0]:.4g}"
    place = next(k for k, one in enumerate(meshes) if one.hovertext == text)
    share = (maps["one"] - min(map(min, maps.values()))) / (
        np.nanmax(pd.concat(maps)) - min(map(min, maps.values()))
    )
    assert meshes[place].color == "#{:02x}{:02x}{:02x}".format(
        *colormaps["viridis"](share.iloc[0], bytes=True)[:3]
    )
    switched = of_maps.buttons[1].args[0]
    assert switched["hovertext"][place] == f"{ATLAS.names[0]}: no value"
    assert switched["color"][place] == "#b4b4b4"


def test_the_turning_engine_shows_what_a_view_shows():
    pytest.importorskip("plotly")
    figure = plot_regions(
        draw_values(), ATLAS, engine="plotly", views=["outer left", "subcortical"]
    )
    names = [str(one.hovertext).split(":")[0] for one in figure.data]
    of_views = figure.layout.updatemenus[1].buttons
    outer, below = (one.args[0]["visible"] for one in of_views)
    shown = {name for name, seen in zip(names, outer, strict=True) if seen}
    assert "ctx-lh-insula" in shown
    assert not shown & {"ctx-rh-insula", "Left-Putamen"}
    shown = {name for name, seen in zip(names, below, strict=True) if seen}
    assert {"Left-Putamen", "Right-Putamen"} <= shown
    assert "ctx-lh-insula" not in shown
