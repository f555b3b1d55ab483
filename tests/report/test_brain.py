import dataclasses

import numpy as np
import pandas as pd
import pytest
from matplotlib import colormaps
from scipy.ndimage import distance_transform_cdt

from brainlsap.atlas import load_atlas
from brainlsap.evaluation import rank_regions
from brainlsap.exceptions import ParameterError, RegionNameError
from brainlsap.report.brain import (
    WIDTH,
    plot_regions,
    plot_scales_at_quarters,
)
from brainlsap.report.brain_raster import (
    BACKGROUND,
    NO_REGION,
    VIEWS,
    region_picture,
)

ATLAS = load_atlas("destrieux160")


def draw_values(atlas=ATLAS, seed=0):
    rng = np.random.default_rng(seed)
    return pd.Series(rng.uniform(0.2, 1.7, size=len(atlas)), index=atlas.names)


def without_surfaces(**columns):
    regions = ATLAS.regions.assign(**columns)
    return dataclasses.replace(ATLAS, name="own", folder=None, regions=regions)


def axes_of(figure, label):
    return [ax for ax in figure.axes if ax.get_label() == label]


def images_of(figure, view):
    return [one for ax in figure.axes for one in ax.images if one.get_label() == view]


def pixels_of(figure, view):
    return images_of(figure, view)[0].get_array()


def words_of(figure):
    page = [text.get_text() for ax in figure.axes for text in ax.texts]
    return [*page, *(text.get_text() for text in figure.texts)]


def painted(figure, view):
    """Return the pixels of a view in the colours of autumn, which has no blue."""
    image = pixels_of(figure, view)
    return (image[..., 2] == 0) & (image[..., 3] == 255)


@pytest.mark.parametrize("name", ["destrieux160", "desikan82"])
def test_every_region_is_seen_and_has_the_color_of_the_bar(name):
    atlas = load_atlas(name)
    values = draw_values(atlas)
    figure = plot_regions(values, atlas)
    assert list(VIEWS) == [one.get_label() for one in figure.axes[0].images]
    low, high = values.min(), values.max()
    seen = set()
    for view in VIEWS:
        picture = region_picture(atlas, view)
        image = pixels_of(figure, view)
        assert image.shape[:2] == picture.pixels.shape
        places, pixels = np.unique(picture.pixels, return_index=True)
        for place, pixel in zip(places[places >= 0], pixels[places >= 0], strict=True):
            share = (values.iloc[place] - low) / (high - low)
            expected = np.array(colormaps["viridis"](share, bytes=True)[:3], float)
            expected = np.round(expected * picture.light.flat[pixel])
            found = image.reshape(-1, 4)[pixel]
            np.testing.assert_array_equal(found, [*expected, 255], atlas.names[place])
            seen.add(int(place))
    below = region_picture(atlas, "subcortex")
    assert below.light[below.pixels >= 0].max() > 0.99  # what faces the viewer
    assert below.light[below.pixels >= 0].min() < 0.7
    assert seen == set(range(len(atlas)))


def test_the_finished_figure_shows_the_color_where_the_region_is():
    figure = plot_regions({"lh_S_central": 1.0}, ATLAS, views="lateral left", vmax=1)
    figure.set_dpi(100)
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)
    picture = region_picture(ATLAS, "lateral left").pixels
    depth = distance_transform_cdt(picture == ATLAS.find("lh_S_central"))
    row, column = np.unravel_index(depth.argmax(), depth.shape)
    box = images_of(figure, "lateral left")[0].get_window_extent()
    x = int(box.x0 + (column + 0.5) / picture.shape[1] * box.width)
    y = int(len(pixels) - box.y1 + (row + 0.5) / picture.shape[0] * box.height)
    expected = np.array(colormaps["viridis"](1.0, bytes=True)[:3], int)
    assert np.abs(pixels[y, x] - expected).max() <= 2
    assert np.abs(pixels[0, 0] - 255).max() == 0


@pytest.mark.parametrize(
    ("region", "view", "half"),
    [
        ("lh_S_central", "dorsal", "left"),
        ("rh_S_central", "dorsal", "right"),
        ("lh_G_oc-temp_lat-fusifor", "ventral", "right"),
        ("Left-Putamen", "subcortex", "left"),
    ],
)
def test_left_is_where_the_letter_says(region, view, half):
    figure = plot_regions({region: 1.0}, ATLAS, views=view, cmap="autumn")
    here = painted(figure, view)
    share = np.nonzero(here)[1] / here.shape[1]
    assert len(share) > 500
    assert ((share < 0.5) == (half == "left")).all()
    letters = [text for text in figure.axes[0].texts if text.get_text() in ("L", "R")]
    letters.sort(key=lambda text: text.get_position()[0])
    assert letters[half == "right"].get_text() == region[0].upper()


def test_values_go_by_name_and_not_by_position():
    shuffled = draw_values().sample(frac=1, random_state=1)
    first, *others = [
        pixels_of(plot_regions(one, ATLAS, views="medial left"), "medial left")
        for one in (draw_values(), shuffled, dict(shuffled))
    ]
    for image in others:
        np.testing.assert_array_equal(image, first)


def test_maps_share_one_scale_of_colors_and_the_bar_says_what_is_beyond():
    maps = pd.DataFrame({"first": draw_values(), "second": 3 * draw_values(seed=1)})
    figure = plot_regions(maps, ATLAS, views="dorsal", vmax=2, colorbar_label="SUVR")
    (bar,) = axes_of(figure, "colour bar")
    assert bar.get_ylim() == (pytest.approx(np.nanmin(maps)), 2)
    assert bar.get_ylabel() == "SUVR"
    assert bar._colorbar.extend == "max"
    assert len(images_of(figure, "dorsal")) == 2
    words = words_of(figure)
    assert {"first", "second", "Dorsal"} <= set(words)


def test_regions_without_a_value_are_grey_and_the_medial_wall_is_paler():
    values = draw_values()
    values["ctx_lh_G_precuneus"] = np.nan
    figure = plot_regions(values, ATLAS, views="medial left")
    image = pixels_of(figure, "medial left")
    picture = region_picture(ATLAS, "medial left").pixels
    for place, grey in ((ATLAS.find("lh_G_precuneus"), 0xB4), (NO_REGION, 0xED)):
        inside = distance_transform_cdt(picture == place) > 2
        assert (image[inside][:, :3] == grey).all()
    assert (image[distance_transform_cdt(picture == BACKGROUND) > 2, 3] == 0).all()
    assert axes_of(figure, "no value")
    assert not axes_of(plot_regions(draw_values(), ATLAS, views="dorsal"), "no value")


def test_letters_are_readable_on_a_journals_page_and_nothing_is_clipped():
    maps = {"A model": draw_values(), "Another, of a long name": draw_values(seed=1)}
    label = "regional uptake of the tracer (SUVR)"
    figure = plot_regions(maps, ATLAS, title="T", colorbar_label=label)
    assert figure.get_size_inches()[0] == pytest.approx(WIDTH)
    figure.canvas.draw()
    page = figure.bbox
    texts = [t for ax in figure.axes for t in ax.texts if t.get_text()]
    (bar,) = axes_of(figure, "colour bar")
    low, high = bar.get_ylim()
    ticks = [t for t in bar.get_yticklabels() if low <= t.get_position()[1] <= high]
    texts += [*ticks, bar.yaxis.label]
    assert len(texts) > 30
    for text in texts:
        assert text.get_fontsize() >= 7, text
        box = text.get_window_extent()
        assert page.x0 <= box.x0 < box.x1 <= page.x1, text
        assert page.y0 <= box.y0 < box.y1 <= page.y1, text


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"values": {"lh_G_precunius": 1.0}}, RegionNameError, "G_precuneus"),
        ({"values": {"lh_S_central": 1, "S_central_lh": 2}}, RegionNameError, "once"),
        ({"values": [1.0, 2.0]}, ParameterError, "by the region's name"),
        ({"values": {"lh_S_central": "much"}}, ParameterError, "must be numbers"),
        ({"values": {"lh_S_central": np.inf}}, ParameterError, "infinite"),
        ({"values": {"lh_S_central": np.nan}}, ParameterError, "no value"),
        ({"vmin": 2, "vmax": 1}, ParameterError, "vmin"),
        ({"views": ["top"]}, ParameterError, "dorsal"),
        (
            {"atlas": without_surfaces(x=np.nan)},
            ParameterError,
            "neither surfaces nor coordinates",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(wrong, error, says):
    with pytest.raises(error, match=says):
        plot_regions(**{"values": draw_values(), "atlas": ATLAS, **wrong})


def test_an_atlas_without_surfaces_is_drawn_as_markers_and_says_so():
    figure = plot_regions({"A": draw_values()}, without_surfaces())
    assert any("has no surfaces: markers" in word for word in words_of(figure))
    spots = [
        collection
        for ax in figure.axes
        for collection in ax.collections
        if len(collection.get_offsets()) == (ATLAS.regions["hemisphere"] == "L").sum()
    ]
    assert spots


def test_a_region_with_a_value_and_no_surface_is_named():
    extra = ATLAS.regions.iloc[[0]].assign(
        name="Brain-Stem", hemisphere="M", long_name="Brain stem", structure="subcortex"
    )
    regions = pd.concat([ATLAS.regions, extra], ignore_index=True)
    atlas = dataclasses.replace(ATLAS, name="161", regions=regions)
    figure = plot_regions({"Brain-Stem": 1.0, "lh_S_central": 2.0}, atlas)
    assert "Not drawn, for want of a surface: brain stem." in words_of(figure)


def test_scales_at_quarters_do_not_depend_on_where_folds_began(make_evaluation):
    one = make_evaluation(regions=list(ATLAS.names), atlas_name="destrieux160")
    begun = one.scales["scale"] * one.scales["fold"]  # each fold from another start
    other = dataclasses.replace(one, scales=one.scales.assign(scale=begun))
    view = "medial left"
    figures = [plot_scales_at_quarters(two, views=view) for two in (one, other)]
    assert {"start", "end"} <= set(words_of(figures[0]))
    rows, again = (images_of(figure, view) for figure in figures)
    assert len(rows) == 2
    for a, b in zip(rows, again, strict=True):
        pixels = [image.get_array().astype(int) for image in (a, b)]
        assert np.abs(pixels[0] - pixels[1]).max() <= 1
    highest = rank_regions(one)["relative_scale"].max()
    (bar,) = axes_of(figures[0], "colour bar")
    assert bar.get_ylim()[1] == pytest.approx(highest)
    assert axes_of(figures[0], "no value")  # the region that was not measured
    with pytest.raises(ParameterError, match=r"\(LSAP-C, Exact\), got 'SVM'"):
        plot_scales_at_quarters(one, model="SVM")
