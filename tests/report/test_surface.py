import numpy as np
import pandas as pd
import pytest
from matplotlib import colormaps
from matplotlib.colors import to_rgb
from scipy.ndimage import distance_transform_cdt

from brainlsap.data.atlas import load_atlas
from brainlsap.exceptions import FileFormatError, ParameterError, RegionNameError
from brainlsap.report.surface import plot_regions
from brainlsap.report.surface_pictures import region_picture
from brainlsap.report.surface_sheet import DARK, LIGHT
from brainlsap.report.surface_views import VIEWS

ATLAS = load_atlas("destrieux160")
CORTEX = [view for view in VIEWS if view != "subcortical"]


def draw_values(seed=0, atlas=ATLAS):
    rng = np.random.default_rng(seed)
    return pd.Series(rng.uniform(0.2, 1.7, size=len(atlas)), index=atlas.names)


def drawings(figure, view):
    return [ax for ax in figure.axes if ax.get_label() == view]


def pixels_of(figure):
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3]


def colour_at(pixels, ax, row_share, column_share):
    """Read one pixel of the finished figure, as bytes."""
    box = ax.get_window_extent()
    x = int(box.x0 + column_share * box.width)
    y = int(len(pixels) - box.y1 + row_share * box.height)
    return pixels[y, x]


def deepest_pixel(picture, place):
    """Return where a region is widest, as shares, and how far its border is."""
    rows, columns = np.nonzero(picture.region == place)
    corner = np.array([rows.min() - 1, columns.min() - 1])
    part = picture.region[corner[0] : rows.max() + 2, corner[1] : columns.max() + 2]
    depth = distance_transform_cdt(part == place)
    inside = np.array(np.unravel_index(depth.argmax(), depth.shape))
    row, column = (corner + inside + 0.5) / picture.region.shape
    return row, column, depth.max()


def bar_colour(value, low, high, cmap="viridis"):
    return np.array(colormaps[cmap]((value - low) / (high - low), bytes=True)[:3])


def test_every_colour_of_the_cortex_is_the_one_of_the_bar():
    values = draw_values()
    low, high = values.min(), values.max()
    drawn, read_back = set(), set()
    for views in (CORTEX[0:2], CORTEX[2:4], CORTEX[4:6]):
        figure = plot_regions(values, ATLAS, views=views)
        pixels = pixels_of(figure)
        for view in views:
            ax, picture = drawings(figure, view)[0], region_picture(ATLAS, view)
            for place in np.unique(picture.region[picture.region >= 0]):
                *where, depth = deepest_pixel(picture, place)
                expected = bar_colour(values.iloc[place], low, high).astype(int)
                if depth > 1:
                    inside = tuple(np.array(where) * picture.region.shape)
                    found = ax.images[0].get_array()[int(inside[0]), int(inside[1]), :3]
                    np.testing.assert_array_equal(found, expected, ATLAS.names[place])
                    drawn.add(place)
                if depth > 7:  # pixels of the picture: some three of the figure
                    found = colour_at(pixels, ax, *where).astype(int)
                    # Making the picture smaller may round by one step of 255.
                    assert np.abs(found - expected).max() <= 1, ATLAS.names[place]
                    read_back.add(place)
    assert drawn == set(range(148))
    assert len(read_back) >= 144


def test_the_bar_shows_the_limits_and_the_colours():
    values = draw_values()
    figure = plot_regions(values, ATLAS, views="top", cmap="cividis", limits=(0, 2))
    (bar,) = drawings(figure, "colour bar")
    assert bar.get_ylim() == (0, 2)
    pixels = pixels_of(figure)
    for share in (0.1, 0.5, 0.9):
        found = colour_at(pixels, bar, 1 - share, 0.5).astype(int)
        near = bar_colour(share, 0, 1, "cividis").astype(int)
        assert np.abs(found - near).max() <= 3


def test_the_subcortex_shows_the_bars_colour_where_it_faces_the_viewer():
    values = draw_values()
    figure = plot_regions(values, ATLAS, views=["subcortical"])
    picture = region_picture(ATLAS, "subcortical")
    image = drawings(figure, "subcortical")[0].images[0].get_array()
    below = ATLAS.regions.index[ATLAS.regions["structure"] == "subcortex"]
    for place in below:
        here = picture.region == place
        inner = distance_transform_cdt(here) > 3
        brightest = image[inner][picture.facing[inner].argmax(), :3].astype(int)
        expected = bar_colour(values.iloc[place], values.min(), values.max())
        assert np.abs(brightest - expected.astype(int)).max() <= 6, ATLAS.names[place]
        assert here.sum() > 300


@pytest.mark.parametrize(
    ("region", "view", "half"),
    [
        ("lh_S_central", "top", "left"),
        ("rh_S_central", "top", "right"),
        ("lh_G_oc-temp_lat-fusifor", "bottom", "right"),
        ("rh_G_oc-temp_lat-fusifor", "bottom", "left"),
        ("Left-Putamen", "subcortical", "left"),
        ("Right-Putamen", "subcortical", "right"),
    ],
)
def test_left_is_left_as_labelled(region, view, half):
    figure = plot_regions({region: 1.0}, ATLAS, views=view, cmap="autumn")
    ax = drawings(figure, view)[0]
    image = ax.images[0].get_array()
    # autumn has no blue; greys and outlines do
    painted = (image[..., 2] == 0) & (image[..., 3] == 255)
    share = np.nonzero(painted)[1] / image.shape[1]
    assert len(share) > 500
    assert ((share < 0.5) == (half == "left")).all()
    letters = {
        t.get_text(): t.get_position()[0] for t in ax.texts if len(t.get_text()) == 1
    }
    assert letters == ({"R": 0, "L": 1} if view == "bottom" else {"L": 0, "R": 1})
    letter = {v: k for k, v in letters.items()}[0 if half == "left" else 1]
    assert (
        ATLAS.names[ATLAS.find(region)]
        .lower()
        .startswith(("ctx_" + letter.lower(), {"L": "left", "R": "right"}[letter]))
    )


@pytest.mark.parametrize("side", ["left", "right"])
def test_each_side_has_its_own_outer_and_inner_view(side):
    letter = side[0]
    figure = plot_regions({f"{letter}h_S_central": 1.0}, ATLAS, cmap="autumn")
    for view in CORTEX[2:]:
        image = drawings(figure, view)[0].images[0].get_array()
        painted = ((image[..., 2] == 0) & (image[..., 3] == 255)).any()
        assert painted == (view == f"outer {side}")


def test_regions_without_a_value_are_grey_and_explained():
    values = draw_values()
    nan, missing = ATLAS.find("lh_G_front_sup"), ATLAS.find("rh_G_front_sup")
    values.iloc[nan] = np.nan
    values = values.drop(ATLAS.names[missing])
    figure = plot_regions(values, ATLAS, views="top")
    picture = region_picture(ATLAS, "top")
    pixels = pixels_of(figure)
    grey = np.round(np.array(to_rgb(LIGHT.no_value)) * 255)
    for place in (nan, missing):
        *where, _ = deepest_pixel(picture, place)
        found = colour_at(pixels, drawings(figure, "top")[0], *where)
        np.testing.assert_allclose(found, grey, atol=1)
    (patch,) = drawings(figure, "no value")
    assert [t.get_text() for t in patch.texts] == ["no value"]
    np.testing.assert_array_equal(colour_at(pixels, patch, 0.5, 0.5), grey)
    assert not drawings(plot_regions(draw_values(), ATLAS, views="top"), "no value")


def test_several_maps_share_one_scale_and_one_bar():
    first, second = draw_values(1), draw_values(2) + 3
    figure = plot_regions({"one": first, "two": second}, ATLAS, views=["top", "bottom"])
    (bar,) = drawings(figure, "colour bar")
    assert bar.get_ylim() == (first.min(), second.max())
    upper, lower = drawings(figure, "bottom")
    assert upper.get_position().y0 > lower.get_position().y1
    place = ATLAS.find("lh_G_orbital")
    *where, _ = deepest_pixel(region_picture(ATLAS, "bottom"), place)
    pixels = pixels_of(figure)
    for ax, values in ((upper, first), (lower, second)):
        expected = bar_colour(values.iloc[place], first.min(), second.max())
        np.testing.assert_allclose(colour_at(pixels, ax, *where), expected, atol=1)
    assert {"one", "two"} <= {text.get_text() for text in figure.texts}


def test_a_frame_a_mapping_and_other_spellings_draw_the_same():
    values = draw_values(3)
    other = {
        name.replace("ctx_", "").replace("_and_", "&"): v for name, v in values.items()
    }
    shuffled = dict(sorted(other.items(), key=lambda item: item[1]))
    images = []
    for given in (values, shuffled, pd.DataFrame({"": values})):
        figure = plot_regions(given, ATLAS, views="inner left")
        images.append(drawings(figure, "inner left")[0].images[0].get_array())
    np.testing.assert_array_equal(images[0], images[1])
    np.testing.assert_array_equal(images[0], images[2])


def test_values_beyond_the_limits_are_shown_on_the_bar():
    values = draw_values(4)
    ends = {}
    for limits in [(0, 2), (0.5, 2), (0, 1), (0.5, 1)]:
        figure = plot_regions(values, ATLAS, views="top", limits=limits)
        (bar,) = drawings(figure, "colour bar")
        ends[limits] = bar._colorbar.extend
    assert list(ends.values()) == ["neither", "min", "max", "both"]


def test_one_value_everywhere_can_be_drawn():
    figure = plot_regions(dict.fromkeys(ATLAS.names, 2.0), ATLAS, views="top")
    (bar,) = drawings(figure, "colour bar")
    assert bar.get_ylim() == (1.0, 3.0)


LONG = {"Mean learned heat scale of all": 0, "b": 1, "c": 2}


@pytest.mark.parametrize("views", ["paper", ["subcortical"], ["outer left"]])
@pytest.mark.parametrize(
    ("n_maps", "dark", "label"),
    [(1, False, None), (3, True, "learned heat scale (mean over folds)")],
)
def test_nothing_is_cut_off(views, n_maps, dark, label):
    maps = {name: draw_values(k) * 1e-4 for name, k in list(LONG.items())[:n_maps]}
    maps["Mean learned heat scale of all"].iloc[3] = np.nan
    figure = plot_regions(
        maps,
        ATLAS,
        views=views,
        title="A title",
        colorbar_label=label,
        dark=dark,
    )
    figure.canvas.draw()
    sheet = figure.bbox
    assert figure.get_figwidth() <= 10.01
    for ax in figure.axes:
        box = ax.get_tightbbox()
        assert sheet.x0 <= box.x0 < box.x1 <= sheet.x1, ax.get_label()
        assert sheet.y0 <= box.y0 < box.y1 <= sheet.y1, ax.get_label()
    (bar,) = drawings(figure, "colour bar")
    for ax in figure.axes:
        if ax.get_label() in VIEWS:
            assert not bar.get_tightbbox().overlaps(ax.get_window_extent())
    boxes = [text.get_window_extent() for text in figure.texts if text.get_text()]
    for k, box in enumerate(boxes):
        assert sheet.x0 <= box.x0 < box.x1 <= sheet.x1
        assert sheet.y0 <= box.y0 < box.y1 <= sheet.y1
        assert not any(box.overlaps(other) for other in boxes[:k])
        assert not any(box.overlaps(ax.get_window_extent()) for ax in figure.axes)
    paper = to_rgb((DARK if dark else LIGHT).paper)
    assert figure.get_facecolor()[:3] == paper


def test_no_display_and_no_window(monkeypatch, tmp_path):
    import matplotlib.pyplot as plt

    def refuse(*_, **__):
        raise AssertionError("a window was asked for")

    for name in ("figure", "subplots", "show"):
        monkeypatch.setattr(plt, name, refuse)
    monkeypatch.delenv("DISPLAY", raising=False)
    figure = plot_regions({"lh_G_rectus": 1.0}, ATLAS, views="bottom")
    for ending in ("png", "pdf"):
        figure.savefig(tmp_path / f"brain.{ending}")
        assert (tmp_path / f"brain.{ending}").stat().st_size > 5_000
    assert not plt.get_fignums()


@pytest.mark.parametrize("mesh", ["pial", "white"])
def test_folded_surfaces_are_lit(mesh):
    figure = plot_regions(
        dict.fromkeys(ATLAS.names, 1.0), ATLAS, views="outer left", mesh=mesh
    )
    image = drawings(figure, "outer left")[0].images[0].get_array()
    assert len(np.unique(image[image[..., 3] == 255][:, 1])) > 20


def test_an_atlas_by_name_and_one_without_surfaces(tmp_path):
    other = load_atlas("desikan82")
    figure = plot_regions(draw_values(0, other), "desikan82", views="top")
    assert len(drawings(figure, "top")) == 1
    table = tmp_path / "mine.tsv"
    table.write_text("name\themisphere\nlh_a\tL\n")
    with pytest.raises(FileFormatError, match="has no surface labels"):
        plot_regions({"lh_a": 1.0}, table, views="top")


BAD = [
    ({"lh_G_rectum": 1}, {}, RegionNameError, r"nearest: ctx_lh_G_rectus"),
    (
        pd.Series([1, 2], index=["lh_G_rectus", "lh.G_rectus"]),
        {},
        RegionNameError,
        r"ctx_lh_G_rectus as 'lh_G_rectus', 'lh\.G_rectus'",
    ),
    ([1.0, 2.0], {}, ParameterError, r"value by the region's name: .*got list"),
    ({"lh_G_rectus": "high"}, {}, ParameterError, r"must be numbers .*'high'"),
    ({"lh_G_rectus": np.inf}, {}, ParameterError, r"at ctx_lh_G_rectus is infinite"),
    ({"lh_G_rectus": np.nan}, {}, ParameterError, r"no value to draw"),
    (
        {"a": {"lh_G_rectus": np.nan}},
        {},
        ParameterError,
        r"no value of map 'a' to draw",
    ),
    ({}, {}, ParameterError, r"no value to draw"),
    ({"lh_G_rectus": 1}, {"limits": (2, 1)}, ParameterError, r"limits must.*\(2, 1\)"),
    ({"lh_G_rectus": 1}, {"cmap": "mud"}, ParameterError, r"cmap must be .*got 'mud'"),
    ({"lh_G_rectus": 1}, {"mesh": "flat"}, ParameterError, r"mesh must .*got 'flat'"),
    ({"lh_G_rectus": 1}, {"views": "back"}, ParameterError, r"views must .*got 'back'"),
]


@pytest.mark.parametrize(("values", "how", "error", "message"), BAD)
def test_what_cannot_be_drawn_is_refused(values, how, error, message):
    with pytest.raises(error, match=message):
        plot_regions(values, ATLAS, **how)
