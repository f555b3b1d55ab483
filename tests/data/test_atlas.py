import pickle
import subprocess
import sys

import numpy as np
import pytest

from brainlsap.data.atlas import (
    Atlas,
    available_atlases,
    bundled_atlases,
    load_atlas,
)
from brainlsap.data.region_tables import COLUMNS
from brainlsap.exceptions import ParameterError, RegionNameError

SIZES = {"destrieux160": (148, 12), "desikan82": (68, 14)}


@pytest.fixture(params=sorted(SIZES))
def atlas(request):
    return load_atlas(request.param)


def test_the_bundled_atlases_are_these():
    assert available_atlases() == tuple(sorted(SIZES))


def test_sizes_columns_and_sides(atlas):
    n_cortex, n_subcortex = SIZES[atlas.name]
    regions = atlas.regions
    assert len(atlas) == n_cortex + n_subcortex
    assert tuple(regions.columns) == COLUMNS
    assert (regions["structure"] == "cortex").sum() == n_cortex
    assert (regions["hemisphere"] == "L").sum() == len(atlas) // 2
    assert regions["freesurfer_id"].is_unique
    assert regions["short_name"].is_unique
    assert not regions.isna().any(axis=None)


def test_left_lies_left_and_homologues_mirror(atlas):
    regions = atlas.regions
    left = regions[regions["hemisphere"] == "L"].set_index("short_name")
    right = regions[regions["hemisphere"] == "R"].set_index("short_name")
    assert (left["x"] < 0).all()
    assert (right["x"] > 0).all()
    right.index = right.index.str.replace("(R)", "(L)")
    mirrored = right.loc[left.index, ["x", "y", "z"]] * [-1, 1, 1]
    assert np.abs(left[["x", "y", "z"]] - mirrored).to_numpy().max() < 15


def test_lobes_agree_with_where_regions_lie(atlas):
    centre = atlas.regions.groupby("lobe")[["y", "z"]].mean()
    assert centre["y"].idxmax() == "frontal"
    assert centre["y"].idxmin() == "occipital"
    assert centre["z"].idxmax() == "parietal"


def test_matching_returns_positions_in_the_order_given(atlas):
    order = np.random.default_rng(3).permutation(len(atlas))
    names = [atlas.names[k] for k in order]
    np.testing.assert_array_equal(atlas.match(names), order)
    assert atlas.match([]).shape == (0,)


def test_matching_names_of_one_side(atlas):
    side = atlas.regions[atlas.regions["hemisphere"] == "R"]
    bare = side["annot_name"].mask(side["annot_name"] == "n/a", side["long_name"])
    cortex = bare[side["structure"] == "cortex"]
    np.testing.assert_array_equal(atlas.match(cortex, hemisphere="R"), cortex.index)


def test_unknown_names_are_refused_with_the_nearest():
    atlas = load_atlas("destrieux160")
    with pytest.raises(
        RegionNameError,
        match=r"2 of 3 names unknown to atlas destrieux160: 'lh_G_precuneos' "
        r"\(nearest: ctx_lh_G_precuneus.*'zzz' \(nothing is near\).*\.names lists them",
    ):
        atlas.match(["lh_G_precuneos", "lh_G_cuneus", "zzz"])


def test_a_long_list_of_unknown_names_is_cut():
    names = [f"region{k}" for k in range(9)]
    with pytest.raises(RegionNameError, match=r"9 of 9 .*'region4'.* and 4 more\."):
        load_atlas("desikan82").match(names)


def test_a_name_without_a_side_is_not_guessed():
    with pytest.raises(
        RegionNameError, match=r"nearest: ctx-lh-insula, ctx-rh-insula.*with its side"
    ):
        load_atlas("desikan82").match(["insula"])


def test_doubled_names_are_refused():
    with pytest.raises(
        RegionNameError,
        match=r"1 of the regions of atlas desikan82 came more than once: "
        r"ctx-lh-insula as 'lh_insula', 'insula_lh'\. Keep one name per region",
    ):
        load_atlas("desikan82").match(["lh_insula", "lh_cuneus", "insula_lh"])


def test_a_users_table_in_a_file_or_a_folder(tmp_path):
    folder = tmp_path / "three"
    folder.mkdir()
    table = folder / "regions.tsv"
    table.write_text(
        "name\themisphere\nPrecentral_L\tL\nPrecentral_R\tR\nVermis_R\tM\n"
    )
    atlas = load_atlas(folder)
    assert (atlas.name, len(atlas), atlas.folder) == ("three", 3, None)
    assert load_atlas(str(table)).names == atlas.names
    assert atlas.match(["rh.precentral", "Vermis_R"]).tolist() == [1, 2]
    assert atlas.meshes() == {}
    assert load_atlas(table.rename(folder / "mine.tsv")).name == "mine"


def test_names_that_differ_by_a_separator_only_are_not_merged(tmp_path):
    table = tmp_path / "regions.tsv"
    table.write_text("name\themisphere\narea-1\tL\narea_1\tL\narea_11\tL\n")
    atlas = load_atlas(table)
    assert atlas.match(["area_1", "area-1", "area_11"]).tolist() == [1, 0, 2]
    assert atlas.find("area.1") is None
    assert atlas.find("lh_area_11") == 2


def test_an_atlas_is_returned_as_it_is(atlas):
    assert load_atlas(atlas) is atlas


def test_an_atlas_travels_to_other_processes(atlas):
    atlas.match(atlas.names[:3])
    copy = pickle.loads(pickle.dumps(atlas))
    assert copy.names == atlas.names


def test_an_unknown_atlas_is_refused_with_the_list():
    with pytest.raises(
        ParameterError, match=r"must be one of desikan82, destrieux160, or .*'aal'"
    ):
        load_atlas("aal")


def test_the_installed_folder_comes_first(tmp_path, monkeypatch):
    package = tmp_path / "brainlsap"
    (package / "data").mkdir(parents=True)
    monkeypatch.setattr("brainlsap.data.atlas.__file__", str(package / "data" / "a.py"))
    assert bundled_atlases() == tmp_path / "atlases"
    (package / "_atlases").mkdir()
    assert bundled_atlases() == package / "_atlases"


def test_reading_names_loads_no_heavy_library():
    code = (
        "import sys; from brainlsap.data.atlas import load_atlas; "
        "load_atlas('desikan82').match(['lh_insula']); "
        "heavy = {'nibabel', 'torch', 'matplotlib', 'nilearn'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_record_is_frozen(atlas):
    with pytest.raises(AttributeError):
        atlas.name = "other"
    assert isinstance(atlas, Atlas)
