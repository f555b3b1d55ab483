import dataclasses

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib import colormaps
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.patches import Circle
from matplotlib.text import Text

from brainlsap.atlas import load_atlas
from brainlsap.evaluation import rank_regions
from brainlsap.exceptions import ParameterError, RegionNameError
from brainlsap.report import plot_regions, plot_scales_at_quarters
from brainlsap.report.brain import NO_VALUE, make_scalar_mappable
from brainlsap.report.brain_layout import (
    NO_REGION,
    VIEWS,
    make_view_picture,
    rasterise_face_indices,
)
from brainlsap.report.tables import shorten_name
from tests.report.conftest import check_letters

ATLAS = load_atlas("destrieux160")


LONG = "EMCI against CN (10 + 12 people), adjusted"


def draw_values(atlas=ATLAS, seed=0):
    rng = np.random.default_rng(seed)
    return pd.Series(rng.uniform(0.2, 1.7, size=len(atlas)), index=atlas.names)


def without_surfaces(**columns):
    regions = ATLAS.regions.assign(**columns)
    return dataclasses.replace(ATLAS, name="own", folder=None, regions=regions)


NAMES_ALONE = without_surfaces(x=np.nan)


def axes_of(figure, label):
    return [ax for ax in figure.axes if ax.get_label() == label]


def shapes_of(figure, view):
    """Return the drawn shapes of a view by region, row after row."""
    before = f"{view.replace(' ', '-')}."
    rows = [
        {(one.get_gid() or "").partition(before)[2]: one for one in ax.patches}
        for ax in axes_of(figure, view)
    ]
    return [{name: one for name, one in row.items() if name} for row in rows]


def words_of(figure):
    page = [text.get_text() for ax in figure.axes for text in ax.texts]
    titles = [ax.get_title() for ax in figure.axes]
    return [*page, *titles, *(text.get_text() for text in figure.texts)]


@pytest.mark.parametrize("name", ["destrieux160", "desikan82", "schaefer100"])
def test_every_region_is_seen_and_has_the_color_of_the_bar(name):
    atlas = load_atlas(name)
    values = draw_values(atlas).sample(frac=1, random_state=1)  # by name
    figure = plot_regions(values, atlas)
    low, high = axes_of(figure, "colour bar")[0].get_ylim()
    share, seen = (values - low) / (high - low), set()
    for view in VIEWS:
        (shapes,) = shapes_of(figure, view)
        for region in shapes.keys() - {"brain"}:
            expected = colormaps["viridis"](share[region])
            np.testing.assert_allclose(shapes[region].get_facecolor(), expected)
        seen |= shapes.keys() - {"brain"}
    assert seen == set(atlas.names)
    shade = make_view_picture(atlas, "subcortex").shade_rgba[..., 3]
    assert shade.max() > 0.3
    assert make_view_picture(atlas, "dorsal").shade_rgba is None


def test_regions_of_unknown_place_are_named_as_not_drawn():
    atlas = load_atlas("destrieux164")
    values = draw_values(atlas)
    with pytest.warns(UserWarning, match="Not drawn.*right posterior thalamus"):
        figure = plot_regions(values, atlas, views="subcortex")
    (shapes,) = shapes_of(figure, "subcortex")
    deep = {*np.array(atlas.names)[~atlas.cortex & ~atlas.structure_part_mask]}
    assert shapes.keys() - {"brain"} == deep


@pytest.mark.parametrize("view", VIEWS)
def test_outlines_hold_the_pixels_of_their_regions(view):
    picture = make_view_picture(ATLAS, view)
    covered = 0.0
    for place, area in picture.area_by_region.items():
        parts = picture.shape_by_region[place].to_polygons()
        x_y = [(one[:-1, 0], one[1:, 0], one[:-1, 1], one[1:, 1]) for one in parts]
        inside = abs(sum((x * v - u * y).sum() / 2 for x, u, y, v in x_y))
        assert inside == pytest.approx(area, rel=0.25, abs=8)
        covered += inside
    assert covered == pytest.approx(sum(picture.area_by_region.values()), rel=0.02)
    brain = picture.shape_by_region[NO_REGION].vertices
    assert brain.min() >= 0
    assert (brain.max(axis=0) <= (picture.width, picture.height)).all()


def test_every_pixel_shows_the_nearest_of_the_faces_that_hold_its_centre():
    rng = np.random.default_rng(0)
    vertices, faces = rng.uniform(0, 10, (60, 3)), np.arange(60).reshape(20, 3)
    shown = rasterise_face_indices(vertices, faces, 3.0)
    n_rows = len(shown)
    expected, depth = np.full(shown.shape, -1), np.full(shown.shape, -np.inf)
    low = vertices.min(axis=0)
    row, column = np.indices(shown.shape)
    # Half a pixel lies between the mesh and the centre of the first pixel.
    x = low[0] + (column - 0.5) / 3
    y = low[1] + (n_rows - 1 - row - 0.5) / 3
    for k, corners in enumerate(vertices[faces]):
        edges = np.roll(corners, -1, axis=0) - corners
        sides = [
            edge[0] * (y - start[1]) - edge[1] * (x - start[0])
            for start, edge in zip(corners, edges, strict=True)
        ]
        holds = (np.min(sides, axis=0) >= 0) & (corners[:, 2].mean() > depth)
        expected[holds], depth[holds] = k, corners[:, 2].mean()
    np.testing.assert_array_equal(shown, expected)
    assert 5 < len(np.unique(shown)) < 20  # Some faces show their back.


def test_the_finished_figure_shows_the_color_where_the_region_is():
    figure = plot_regions({"lh_S_central": 1.0}, ATLAS, views="lateral left", vmax=1)
    figure.set_dpi(100)
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)
    shape = shapes_of(figure, "lateral left")[0]["ctx_lh_S_central"]
    x, y = shape.get_transform().transform(shape.get_path().vertices.mean(axis=0))
    expected = np.array(colormaps["viridis"](1.0, bytes=True)[:3], int)
    assert np.abs(pixels[len(pixels) - int(y), int(x)] - expected).max() <= 2
    assert np.abs(pixels[0, 0] - 255).max() == 0


@pytest.mark.parametrize(
    ("region", "view", "half"),
    [
        ("ctx_lh_S_central", "dorsal", "left"),
        ("ctx_rh_S_central", "dorsal", "right"),
        ("ctx_lh_G_oc-temp_lat-fusifor", "ventral", "right"),
        ("Left-Putamen", "subcortex", "left"),
    ],
)
def test_left_is_where_the_letter_says(region, view, half):
    figure = plot_regions({region: 1.0}, ATLAS, views=view)
    share = shapes_of(figure, view)[0][region].get_path().vertices[:, 0]
    share = share / make_view_picture(ATLAS, view).width
    assert ((share < 0.5) == (half == "left")).all()
    (ax,) = axes_of(figure, view)
    letters = [text for text in ax.texts if text.get_text() in ("L", "R")]
    letters.sort(key=lambda text: text.get_position()[0])
    side = "L" if "lh" in region or "Left" in region else "R"
    assert letters[half == "right"].get_text() == side


def test_maps_share_one_scale_of_colors_and_the_bar_says_what_is_beyond():
    maps = pd.DataFrame({"first": draw_values(), "second": 3 * draw_values(seed=1)})
    figure = plot_regions(maps, ATLAS, views="dorsal", vmax=2, colorbar_label="SUVR")
    (bar,) = axes_of(figure, "colour bar")
    assert bar.get_ylim() == (min(maps.min()), 2)
    assert bar.get_ylabel() == "SUVR"
    assert bar._colorbar.extend == "max"
    assert len(shapes_of(figure, "dorsal")) == 2
    assert {"first", "second", "Dorsal"} <= set(words_of(figure))
    how = {"shared_scale": False, "colorbar_label": ["SUVR", "$t_{38}$"]}
    how |= {"vmax": [None, 5], "cmap": ["viridis", "magma"]}
    bars = axes_of(plot_regions(maps, ATLAS, views="dorsal", **how), "colour bar")
    assert bars[0].get_ylim()[1] < 2 < bars[1].get_ylim()[1] == 5
    assert [one._colorbar.cmap.name for one in bars] == how["cmap"]
    labels = [one.yaxis.label for one in bars]
    assert [one.get_text() for one in labels] == ["SUVR", "$t_{38}$"]
    assert [one.get_rotation() for one in labels] == [90, 0]  # a turned t is a plus
    assert labels[1].get_parse_math()


def test_signed_values_diverge_about_zero_and_one_limit_is_mirrored():
    highest = (draw_values() - 0.5).max()
    for limit, expected in (({}, highest), ({"vmax": 1}, 1), ({"vmin": -2}, 2)):
        figure = plot_regions(draw_values() - 0.5, ATLAS, views="lateral", **limit)
        (bar,) = axes_of(figure, "colour bar")
        assert bar.get_ylim() == (-expected, expected)
        assert bar._colorbar.cmap.name == "RdBu_r"
    figure = plot_regions(draw_values() - 0.5, ATLAS, views="dorsal", vmin=0)
    assert axes_of(figure, "colour bar")[0]._colorbar.cmap.name == "viridis"


OWN = LinearSegmentedColormap.from_list("own", ["navy", "white", "darkgreen"])


@pytest.mark.parametrize("cmap", ["RdBu_r", "coolwarm", OWN])
def test_a_diverging_map_has_its_middle_at_zero_and_two_limits_are_kept(cmap):
    values = pd.DataFrame({"": {"lh_S_central": -1.2, "rh_S_central": 6.0}})
    low, middle, high = plt.get_cmap(cmap)([0.25, 0.5, 1.0])
    for limits, expected in (((None, None), (-6, 6)), ((-2, np.float64(4)), (-2, 4))):
        scale = make_scalar_mappable(values, cmap, *limits)
        assert scale.get_clim() == expected
        found = scale.to_rgba([expected[1] / -2, 0.0, 9.0])
        np.testing.assert_allclose(found, [low, middle, high], atol=0.02)
    positive = make_scalar_mappable(values.abs(), cmap, None, None)
    assert positive.get_clim() == (1.2, 6)
    same = make_scalar_mappable(pd.DataFrame({"": [0.3, 0.1 + 0.2]}), cmap, None, None)
    assert np.ptp(same.get_clim()) == pytest.approx(0.3)
    np.testing.assert_array_equal(positive.to_rgba([1.2])[0], plt.get_cmap(cmap)(0.0))


def test_regions_without_a_value_are_grey_and_the_medial_wall_is_paler():
    values = draw_values()
    values["ctx_lh_G_precuneus"] = np.nan
    figure = plot_regions(values, ATLAS, views="medial left")
    (shapes,) = shapes_of(figure, "medial left")
    assert to_hex(shapes["ctx_lh_G_precuneus"].get_facecolor()) == NO_VALUE
    assert next(iter(shapes)) == "brain"  # below all others
    assert to_hex(shapes["brain"].get_facecolor()) > NO_VALUE
    assert "no value" in words_of(figure)
    figure = plot_regions(draw_values().filter(like="ctx"), ATLAS)
    assert "no value" not in words_of(figure)
    assert "of the subcortex has a value, so the subcortex is not drawn" in figure.note
    below = plot_regions({"Left-Putamen": 1.0}, ATLAS)
    assert [ax.get_label() for ax in below.axes] == ["subcortex", "colour bar"]
    assert "of the cortex has a value, so the cortex is not drawn" in below.note
    cortex = plot_regions(values, ATLAS, views="cortex")
    assert [ax.get_label() for ax in cortex.axes[:-1]] == [*VIEWS][:-1]
    assert not axes_of(figure, "subcortex")
    assert axes_of(plot_regions(draw_values(), ATLAS), "subcortex")
    some = plot_regions(draw_values(), ATLAS, views="cortex")
    assert "The colour scale includes the values of these regions." in some.note


def test_bars_of_rows_have_their_own_key_and_a_figure_is_no_taller_than_a_page():
    some = (1 + 0.004 * (draw_values() - 1)).where(lambda x: x.index != "Left-Putamen")
    maps = {"cognitively unimpaired": some} | dict.fromkeys("abcd", draw_values())
    options = {"shared_scale": False, "colorbar_label": "uptake (kBq/ml)"}
    figure = plot_regions(maps, ATLAS, width=60, **options)
    assert words_of(figure).count("no value") == 1
    assert round(figure.get_size_inches()[1] * 25.4) <= 240
    check_letters(figure)


@pytest.mark.parametrize(
    ("low", "high"),
    [(-4.6, 4.58), (0.55, 1), (1e-4, 9e-4), (0, 0.05), (-5e5, 5e5), (1e-7, 3e-6)],
)
def test_a_bar_is_as_long_as_its_values_with_even_ticks(low, high):
    maps = {"lh_S_central": low, "rh_S_central": high}
    figure = plot_regions(maps, ATLAS, views="lateral", width=85, cmap="viridis")
    check_letters(figure)
    (bar,) = axes_of(figure, "colour bar")
    begin, end = bar.get_ylim()
    assert begin <= low < high <= end
    assert end - begin < 1.05 * (high - low)
    ticks = [tick for tick in bar.get_yticks() if begin <= tick <= end]
    np.testing.assert_allclose(np.diff(ticks), ticks[1] - ticks[0], rtol=1e-6)
    told = [one.get_text() for one in bar.get_yticklabels()]
    numbers = [float(one.replace("\N{MINUS SIGN}", "-")) for one in told]
    assert numbers == pytest.approx(bar.get_yticks())  # and no "1e5" above
    assert len({len(one.partition(".")[2]) for one in told}) == 1 or high < 1e-4


def test_an_outline_leaves_the_region_its_color_and_its_label_ends_inside():
    outline = {"lh_G_precuneus": "PCun", "Right-Hippocampus": "HIP"}
    every = (outline, "ctx_lh_G_precuneus", ())
    figures = [plot_regions(draw_values(), ATLAS, outline=x) for x in every]
    texts = axes_of(figures[0], "medial left")[0].texts
    (note,) = [text for text in texts if hasattr(text, "xy")]
    assert note.get_text() == "PCun"
    picture = make_view_picture(ATLAS, "medial left")
    shape = picture.shape_by_region[ATLAS.names.index("ctx_lh_G_precuneus")]
    assert shape.contains_point(np.multiply(note.xy, (picture.width, picture.height)))
    shapes = [shapes_of(one, "dorsal")[0]["ctx_lh_G_precuneus"] for one in figures]
    assert [bool(one.get_path_effects()) for one in shapes] == [True, True, False]
    assert shapes[0].get_facecolor() == shapes[2].get_facecolor()


@pytest.mark.parametrize(("width", "atlas"), [(85, ATLAS), (180, without_surfaces())])
def test_a_mark_is_a_dot_in_its_region_and_the_key_explains_it(width, atlas):
    options = {"outline": "Left-Putamen", "mark": ["Right-Hippocampus", "lh_G_cuneus"]}
    labels = {"outline_label": "classes differ (p < 0.05)", "mark_label": 12 * "peak "}
    figure = plot_regions(draw_values(), atlas, width=width, **options, **labels)
    check_letters(figure)
    (key,) = axes_of(figure, "key")
    words = [one.get_text().split() for one in key.texts]
    assert words == [label.split() for label in labels.values()]
    (swatch,) = key.patches
    assert isinstance(swatch, Circle) != atlas.has_surfaces  # markers have rings
    side_view = "medial left" if atlas.has_surfaces else "lateral left"
    (ax,) = axes_of(figure, side_view)
    shape = shapes_of(figure, side_view)[0]["ctx_lh_G_cuneus"]
    (spot,) = ax.transAxes.transform(ax.lines[0].get_xydata())  # none on the right
    assert shape.get_transform().transform_path(shape.get_path()).contains_point(spot)
    plain = plot_regions(draw_values(), atlas, width=width, mark_label="nowhere")
    assert not axes_of(plain, "key")


def test_dots_of_an_atlas_of_names_are_outlined_and_marked():
    values = draw_values()
    inner = (values - values.median()).abs().nsmallest(2).index
    options = {"outline": [inner[0]], "mark": [inner[1]], "mark_label": "peak"}
    figure = plot_regions(values, NAMES_ALONE, **options)
    ax = figure.axes[0]
    names = [one.get_text() for one in ax.get_yticklabels()]
    widths = dict(zip(names, ax.collections[-1].get_linewidths(), strict=True))
    assert [name for name in names if widths[name] > 1] == [inner[0]]
    assert [names[int(y)] for y in ax.lines[-1].get_ydata()] == [inner[1]]
    assert "White centre: peak" in figure.get_supxlabel()
    assert "Not outlined" not in figure.note


def test_whole_numbers_have_a_colour_each_of_a_qualitative_map():
    scale = make_scalar_mappable(
        pd.DataFrame({"": [2.0, 5.0, np.nan]}), "tab10", None, None
    )
    tab10 = plt.get_cmap("tab10")
    np.testing.assert_allclose(scale.to_rgba([2, 3, 5]), tab10([0, 1, 3]))
    figure = plot_regions({"lh_G_cuneus": 2, "lh_G_precuneus": 5}, ATLAS, cmap="tab10")
    ticks = [one.get_text() for one in figure.axes[-1].get_yticklabels()]
    assert ticks == ["2", "3", "4", "5"]


@pytest.mark.parametrize("atlas", [ATLAS, without_surfaces()])
def test_an_outline_that_is_not_seen_is_told(atlas):
    options = {"views": "lateral left", "outline": {"Right-Hippocampus": "HIP"}}
    with pytest.warns(
        UserWarning, match="Not outlined or marked, .*: right hippocampus"
    ):
        figure = plot_regions(draw_values(), atlas, **options)
    assert "right hippocampus" in figure.note


def test_a_journals_figure_has_its_width_ids_and_labels(tmp_path):
    figure = plot_regions(draw_values(), ATLAS)
    named = plot_regions({"$t$ (mm²)": draw_values()}, ATLAS, views="dorsal")
    assert named.axes[0].patches[0].get_gid() == "t-mm.dorsal.brain"
    figure.savefig(tmp_path / "brain.svg")
    told = (tmp_path / "brain.svg").read_text("utf-8")
    for name in ATLAS.names:
        assert f'.{name}"' in told
    assert 'id="lateral-left.ctx_lh_S_central"' in told
    assert ">Lateral left</text>" in told
    whole = plt.figure(figsize=(180 / 25.4, 60 / 25.4))
    part = whole.subfigures(1, 3)[1]
    assert plot_regions(draw_values(), ATLAS, figure=part) is part
    check_letters(whole)
    with pytest.raises(ParameterError, match="without axes"):
        plot_regions(draw_values(), ATLAS, figure=part)


@pytest.mark.parametrize("width", [85, 180])
def test_labels_stand_above_or_below_their_own_view(width):
    outline = {"lh_G_precuneus": "Precuneus (posteromedial cortex)", "lh_G_cuneus": 3}
    outline |= {"lh_S_parieto_occipital": "POS", "lh_G_precentral": "precentral"}
    outline |= {"lh_S_central": "central sulcus", "Left-Putamen": "putamen"}
    figure = plot_regions(draw_values(), ATLAS, width=width, outline=outline)
    assert figure.get_size_inches()[0] * 25.4 == pytest.approx(width)
    check_letters(figure)
    *views, _ = figure.axes
    labels = [(ax, one) for ax in views for one in ax.texts if hasattr(one, "xy")]
    assert len(labels) == 6
    for ax, label in labels:
        box = Text.get_window_extent(label)
        beside = [one.bbox for one in views if one is not ax]
        for one in beside:
            if one.y0 < ax.bbox.y1 and ax.bbox.y0 < one.y1:  # on the same line
                assert box.x1 <= one.x0 or one.x1 <= box.x0, label


@pytest.mark.parametrize(
    ("width", "atlas"), [(60, ATLAS), (85, without_surfaces()), (180, ATLAS)]
)
def test_letters_are_readable_on_a_journals_page_and_nothing_is_clipped(width, atlas):
    long = LONG if width > 60 else "Another, of a long name"
    maps = {"A model": draw_values(), long: draw_values(seed=1)}
    label = "regional uptake of the tracer (SUVR)"
    title = "A title $t_{38}$ of a figure that is longer than even two columns: " * 2
    options = {"title": title, "colorbar_label": label, "width": width}
    figure = plot_regions(maps, atlas, **options)
    left, right = (axes_of(figure, f"lateral {side}")[0] for side in ("left", "right"))
    assert left.bbox.y0 == right.bbox.y0  # on one line
    assert len(check_letters(figure)) > 18


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"values": {"lh_G_precunius": 1.0}}, RegionNameError, "G_precuneus"),
        ({"values": {"lh_S_central": 1, "S_central_lh": 2}}, RegionNameError, "once"),
        ({"outline": "effect"}, RegionNameError, "outline= must contain names"),
        ({"mark": ["lh_S_centrall"]}, RegionNameError, "mark= must .*lh_S_central"),
        ({"values": [1.0, 2.0]}, ParameterError, "names of the regions"),
        ({"values": {"lh_S_central": "much"}}, ParameterError, "must be numbers"),
        ({"values": {"lh_S_central": "0,7"}}, ParameterError, "decimal=','"),
        ({"values": {"lh_S_central": np.inf}}, ParameterError, "infinite"),
        (
            {"values": {"lh_S_central": np.nan}},
            ParameterError,
            "the map: the value is missing",
        ),
        ({"values": draw_values().reset_index()}, ParameterError, "set_index"),
        ({"figure": plt.Axes}, ParameterError, "fig.subfigures"),
        ({"vmin": 2, "vmax": 1}, ParameterError, "vmin"),
        ({"vmax": [1, 2]}, ParameterError, "vmax has 2 values for 1 colour bars"),
        ({"cmap": "viridiss"}, ParameterError, "cmap .*'viridiss'.* viridis"),
        ({"cmap": 7}, ParameterError, "cmap .*got 7"),
        *(({"views": x}, ParameterError, "dorsal") for x in (["top"], [])),
        ({"atlas": None}, ParameterError, "atlas must be one of"),
        *(({"width": x}, ParameterError, "from 60 to 400") for x in (59, np.nan, "9")),
    ],
)
def test_what_cannot_be_drawn_is_refused(wrong, error, says):
    with pytest.raises(error, match=says):
        plot_regions(**{"values": draw_values(), "atlas": ATLAS, **wrong})


def test_an_atlas_without_surfaces_is_drawn_as_markers_and_says_so():
    values, own = draw_values(), without_surfaces()
    outline = {"ctx_lh_G_precuneus": "PCun", "Right-Hippocampus": "HIP"}
    figure = plot_regions({"A": values}, own, outline=outline)
    assert "has no surfaces, so markers" in figure.note
    views = ("dorsal", "posterior", "lateral left", "lateral right")
    assert {*outline.values(), *map(str.capitalize, views)} <= set(words_of(figure))
    spots = [shapes_of(figure, view)[0] for view in views]
    left, right = ({*own.regions.query("hemisphere == @x")["name"]} for x in "LR")
    assert [{*one} for one in spots] == [left | right, left | right, left, right]
    rings = [[n for n, one in each.items() if one.get_path_effects()] for each in spots]
    assert [len(one) for one in rings] == [2, 2, 1, 1]
    ring = spots[2][rings[2][0]]
    middle = ring.get_transform().transform_path(ring.get_path()).get_extents()
    (ax,) = axes_of(figure, "lateral left")
    found = ax.transData.inverted().transform((middle.min + middle.max) / 2)
    centre = ATLAS.coordinates[ATLAS.names.index("ctx_lh_G_precuneus")]
    np.testing.assert_allclose(found, centre[1:])
    low, high = axes_of(figure, "colour bar")[0].get_ylim()
    drawn = [*spots[2]]
    expected = colormaps["viridis"]((values[drawn[0]] - low) / (high - low))
    np.testing.assert_allclose(spots[2][drawn[0]].get_facecolor(), expected)
    above = (values[drawn] - values.median()).abs()
    assert above.is_monotonic_increasing  # deep regions that stand out are seen
    signed = plot_regions((values - 1).drop(drawn[-1]), own, views="lateral left")
    (spots,) = shapes_of(signed, "lateral left")
    assert next(iter(spots)) == drawn[-1]  # without a value
    assert (values[[*spots][1:]] - 1).abs().is_monotonic_increasing
    with pytest.raises(ParameterError, match="posterior"):
        plot_regions(values, own, views="medial")


def test_an_atlas_of_names_alone_is_drawn_as_dots_and_says_so():
    figure = plot_regions({"A": draw_values(), "B": 2.0 - draw_values()}, NAMES_ALONE)
    assert "neither surfaces nor coordinates, so dots" in figure.note
    said = (
        "The figure leaves out 120 of 160 regions, whose values are nearest to the "
        "middle."
    )
    assert said in figure.note
    assert said in figure.get_supxlabel()
    first = figure.axes[0]
    assert first.get_xlim()[0] > 0  # not from 0, where no value is
    shown = first.collections[-1].get_offsets()
    values = draw_values()
    far = (values - values.median()).abs().nlargest(40).index
    assert shown[:, 0].tolist() == sorted(values[far])
    signed = values - 1.5
    dots = plot_regions(signed, NAMES_ALONE).axes[0].collections[-1]
    far = signed.abs().nlargest(40).index
    assert dots.get_offsets()[:, 0].tolist() == sorted(signed[far])
    names = {one.get_text() for one in first.get_yticklabels()}
    # a map that does not vary, as scales at the start of training, chooses none
    again = plot_regions({"start": 0 * draw_values(), "B": draw_values()}, NAMES_ALONE)
    assert {one.get_text() for one in again.axes[0].get_yticklabels()} == names
    assert shorten_name("left " + 99 * "a" + " 7", 25) == "left aaaaa ... aaaaaaaa 7"
    long_name = "left banks of the superior temporal sulcus"
    assert shorten_name(long_name, 36) == "left banks of ... temporal sulcus"
    for max_length in range(12, 60):
        short_name = shorten_name(long_name, max_length)
        assert len(short_name) <= max_length
        assert short_name[:2] + short_name[-2:] == "leus"
    assert names <= {*ATLAS.names}  # as they are


def test_a_region_with_a_value_and_no_surface_is_named():
    how = {"name": "Brain-Stem", "long_name": "Brain stem", "hemisphere": "M"}
    extra = ATLAS.regions.iloc[[0]].assign(structure="subcortex", **how)
    regions = pd.concat([ATLAS.regions, extra], ignore_index=True)
    atlas = dataclasses.replace(ATLAS, name="161", regions=regions)
    with pytest.warns(UserWarning, match="Not drawn, .* no position: brain stem"):
        figure = plot_regions(
            {"Brain-Stem": 1.0, "lh_S_central": 2.0}, atlas, views="lateral left"
        )
    assert "brain stem" in figure.note
    with pytest.raises(
        ParameterError, match="161 does not contain the positions of brain stem"
    ):
        plot_regions({"Brain-Stem": 1.0}, atlas, views="subcortex")


def test_scales_at_quarters_do_not_depend_on_where_folds_began(make_evaluation):
    one = make_evaluation(regions=list(ATLAS.names), atlas_name="destrieux160")
    begun = one.scales["scale"] * one.scales["fold"]  # each fold from another start
    other = dataclasses.replace(one, scales=one.scales.assign(scale=begun))
    view = "medial left"
    figures = [plot_scales_at_quarters(two, views=view) for two in (one, other)]
    assert {"start", "end"} <= set(words_of(figures[0]))
    rows, again = (shapes_of(figure, view) for figure in figures)
    assert len(rows) == 2
    for a, b in zip(rows, again, strict=True):
        colors = [[one.get_facecolor() for one in row.values()] for row in (a, b)]
        np.testing.assert_allclose(*colors, atol=0.01)
    highest = rank_regions(one)["relative_scale"].max()
    (bar,) = axes_of(figures[0], "colour bar")
    assert bar.get_ylim()[1] >= highest
    assert "no value" in words_of(figures[0])  # the region that was not measured
    with pytest.raises(ParameterError, match="one of 'Exact', 'LSAP-C'; got 'SVM'"):
        plot_scales_at_quarters(one, model="SVM")
