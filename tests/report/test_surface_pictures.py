import numpy as np
import pytest

from brainlsap.data.atlas import available_atlases, load_atlas
from brainlsap.exceptions import ParameterError
from brainlsap.report.surface_pictures import (
    NO_REGION,
    NOTHING,
    _regions_of_pixels,
    cortex_mesh,
    region_picture,
    scene_of,
)
from brainlsap.report.surface_views import MESHES, VIEWS, check_views

ATLAS = {name: load_atlas(name) for name in available_atlases()}


def pixels_by_region(atlas, views, mesh="inflated"):
    most = np.zeros(len(atlas), dtype=int)
    for view in views:
        region = region_picture(atlas, view, mesh).region
        count = np.bincount(region[region >= 0], minlength=len(atlas))
        most = np.maximum(most, count)
    return most


@pytest.mark.parametrize(
    ("name", "mesh"),
    [
        ("destrieux160", "inflated"),
        ("destrieux160", "half-inflated"),
        ("desikan82", "inflated"),
    ],
)
def test_every_region_is_seen(name, mesh):
    most = pixels_by_region(ATLAS[name], VIEWS, mesh)
    # 4 pixels a mm: 60 are an area of 2 mm x 2 mm.
    assert most.min() > (400 if mesh == "inflated" else 60)


def test_outer_and_inner_views_alone_show_the_whole_cortex():
    atlas = ATLAS["destrieux160"]
    views = [view for view in VIEWS if "outer" in view or "inner" in view]
    cortex = (atlas.regions["structure"] == "cortex").to_numpy()
    assert pixels_by_region(atlas, views)[cortex].min() > 400


@pytest.mark.parametrize("view", list(VIEWS))
def test_each_hemisphere_stands_where_its_letter_says(view):
    atlas = ATLAS["destrieux160"]
    picture = region_picture(atlas, view)
    side_of = atlas.regions["hemisphere"].to_numpy()
    width = picture.region.shape[1]
    for side, x, _ in picture.sides:
        rows, columns = np.nonzero(picture.region >= 0)
        here = side_of[picture.region[rows, columns]] == side
        assert here.any()
        middle = np.median(columns[here]) / width
        assert abs(middle - x) < 0.12
    letters = [side for side, _, _ in picture.sides][:2]
    expected = {"top": ["L", "R"], "bottom": ["R", "L"], "subcortical": ["L", "R"]}
    assert letters == expected.get(view, ["L" if "left" in view else "R"])


def test_left_frontal_lobe_stands_left_in_the_outer_left_view():
    atlas = ATLAS["desikan82"]
    for view, sign in [
        ("outer left", -1),
        ("outer right", 1),
        ("inner left", 1),
        ("inner right", -1),
    ]:
        region = region_picture(atlas, view).region
        lobe = np.array([*atlas.regions["lobe"], "none", "none"])[region]
        front = np.nonzero(lobe == "frontal")[1].mean()
        back = np.nonzero(lobe == "occipital")[1].mean()
        assert (front - back) * sign > 100


def test_the_top_of_the_picture_is_the_top_of_the_head():
    atlas = ATLAS["desikan82"]
    region = region_picture(atlas, "outer left").region
    above = np.nonzero(region == atlas.find("lh_superiorparietal"))[0].mean()
    below = np.nonzero(region == atlas.find("lh_inferiortemporal"))[0].mean()
    assert above < below - 100


def test_borders_stay_near_where_the_labels_change():
    atlas = ATLAS["destrieux160"]
    scene = scene_of(atlas, "inflated", "L")
    labels = atlas.vertex_labels("L")
    corner = np.eye(3)[np.zeros(len(scene.faces), int)]
    found = _regions_of_pixels(scene, np.arange(len(scene.faces)), corner)
    given = np.where(labels < 0, NO_REGION, labels)[scene.faces[:, 0]]
    assert (found == given).mean() > 0.97
    # Between three corners of one region there is nothing else.
    same = (labels[scene.faces] == labels[scene.faces[:, :1]]).all(axis=1)
    middle = np.full((len(scene.faces), 3), 1 / 3)
    found = _regions_of_pixels(scene, np.arange(len(scene.faces)), middle)
    assert (found == given)[same].mean() > 0.98


def test_what_is_no_region_and_what_is_nothing():
    picture = region_picture(ATLAS["destrieux160"], "inner left")
    height, width = picture.region.shape
    assert picture.region[0, 0] == NOTHING
    assert picture.region[height // 2, width // 2] == NO_REGION  # the medial wall
    assert (picture.facing[picture.region == NOTHING] == 0).all()
    seen = picture.facing[picture.region != NOTHING]
    assert seen.min() >= 0
    assert seen.max() <= 1
    assert np.median(seen) > 0.7


def test_a_picture_is_made_once():
    atlas = ATLAS["desikan82"]
    assert region_picture(atlas, "top") is region_picture(atlas, "top")


@pytest.mark.parametrize("mesh", sorted(MESHES))
def test_meshes_of_the_cortex_lie_over_each_other(mesh):
    points, faces = cortex_mesh(mesh, "R")
    assert points.shape == (10242, 3)
    np.testing.assert_array_equal(faces, cortex_mesh("inflated", "R")[1])


def test_an_atlas_without_subcortical_meshes(tmp_path):
    atlas = ATLAS["desikan82"]
    cortex = atlas.regions[atlas.regions["structure"] == "cortex"]
    cortex.to_csv(tmp_path / "regions.tsv", sep="\t", index=False)
    for name in ("lh.annot", "rh.annot"):
        (tmp_path / name).write_bytes((atlas.folder / name).read_bytes())
    alone = load_atlas(tmp_path)
    assert "subcortical" not in check_views("paper", alone)
    assert (region_picture(alone, "outer left").region >= 0).any()
    with pytest.raises(ParameterError, match="no subcortical mesh of side L; leave"):
        region_picture(alone, "subcortical")


def test_views_by_the_papers_and_by_anatomical_names():
    atlas = ATLAS["desikan82"]
    assert check_views("paper", atlas) == list(VIEWS)
    assert check_views("Dorsal", atlas) == ["top"]
    assert check_views(("medial right", "ventral"), atlas) == ["inner right", "bottom"]


@pytest.mark.parametrize(("views", "got"), [(["top", "side"], "'side'"), ([], r"\[\]")])
def test_unknown_views_are_refused(views, got):
    with pytest.raises(
        ParameterError, match=rf"'paper' or some of top, bottom, .*got {got}"
    ):
        check_views(views, ATLAS["desikan82"])
