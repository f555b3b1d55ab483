"""Atlases: the bundled ones, a user's own, names aligned, surfaces."""

import json
import pickle
import struct

import numpy as np
import pandas as pd
import pytest
from nibabel.freesurfer import read_annot, write_annot

from brainlsap.atlas import Atlas, available_atlases, load_atlas
from brainlsap.atlas.atlas import REGION_COLUMNS, read_annotation
from brainlsap.atlas.atlas_files import AtlasSettings
from brainlsap.atlas.region_names import is_non_region_name
from brainlsap.data.row_order import list_row_orders
from brainlsap.exceptions import FileFormatError, ParameterError, RegionNameError
from tests.conftest import raises_kind

SIZES = {"destrieux160": (148, 12), "destrieux164": (148, 16), "desikan82": (68, 14)}
SIZES |= {f"schaefer{n}": (n, 14) for n in (100, 200, 400)}
# A phrase of every licence: that of FreeSurfer, and that of MIT.
LICENCE_PHRASES = ("PART B. DOWN", "Permission is hereby")
# Settings that two atlases with different cortical regions cannot share.
OWN_SETTINGS = (
    "annotation",
    "segmentation",
    "ukbiobank",
    "file_words",
    "walls",
    "mrtrix",
)


def is_of_one_family(name, other_name):
    """Return whether the names of two atlases differ by their number alone."""
    return name.rstrip("0123456789") == other_name.rstrip("0123456789")


@pytest.fixture(params=sorted(SIZES))
def atlas(request):
    return load_atlas(request.param)


@pytest.fixture
def own(tmp_path):
    """Return a function that writes a user's table of regions and loads it."""

    def make(*lines):
        text = "".join(line.replace(" ", "\t") + "\n" for line in lines)
        (tmp_path / "regions.tsv").write_text(text)
        return load_atlas(tmp_path)

    return make


def test_bundled_atlases(atlas):
    n_cortex, n_subcortex = SIZES[atlas.name]
    regions = atlas.regions
    missing = {*available_atlases()} - {*SIZES}
    assert not missing, f"add the numbers of regions of {missing} to SIZES"
    assert available_atlases() == tuple(sorted(SIZES))
    assert len(atlas) == n_cortex + n_subcortex
    assert tuple(regions.columns)[: len(REGION_COLUMNS)] == REGION_COLUMNS
    assert atlas.cortex.sum() == n_cortex
    assert (regions["hemisphere"] == "L").sum() == len(atlas) // 2
    # nothing but the parts of a structure lacks a number and a place
    located = regions[~atlas.structure_part_mask]
    has_labels = located["freesurfer_id"].is_unique and located["freesurfer_id"].gt(0)
    assert np.all(has_labels), "give each region a label of its own in freesurfer_id"
    assert (regions["freesurfer_id"][atlas.structure_part_mask] == -1).all()
    assert regions["short_name"].is_unique
    incomplete = [*located.columns[located.isna().any() | (located == "").any()]]
    assert not incomplete, f"fill the columns {incomplete} of regions.tsv"
    assert atlas.has_surfaces, "add lh.annot and rh.annot, or surfaces in atlas.json"
    assert regions[[*"xyz"]][atlas.structure_part_mask].isna().all(axis=None)
    assert atlas.settings.get("annotation"), "name the annotation in atlas.json"
    assert load_atlas(atlas) is atlas


def test_left_lies_left_and_homotopic_regions_mirror(atlas):
    regions, other = atlas.regions, atlas.homotopic
    left = (regions["hemisphere"] == "L").to_numpy()
    assert (regions["x"][left & ~atlas.structure_part_mask] < 0).all()
    assert (regions["x"][~left & ~atlas.structure_part_mask] > 0).all()
    np.testing.assert_array_equal(other[other], np.arange(len(atlas)))
    pairs = other != np.arange(len(atlas))
    assert (left != left[other])[pairs].all()
    assert pairs.mean() > (0.4 if atlas.name.startswith("schaefer") else 0.99)
    place = regions[["x", "y", "z"]].to_numpy()
    distances = np.linalg.norm(place - place[other] * [-1, 1, 1], axis=1)
    assert distances[pairs & ~atlas.structure_part_mask].max() < 20


def test_an_atlas_of_parts_shares_the_cortex_of_another():
    atlas, whole = load_atlas("destrieux164"), load_atlas("destrieux160")
    assert atlas.names[:148] == whole.names[:148]
    for side in "LR":
        labels = atlas.vertex_labels(side)
        np.testing.assert_array_equal(labels, whole.vertex_labels(side))
    assert len(atlas.meshes()) == 12
    # UK Biobank's own spellings of rows 149 to 164
    words = "HIP AMY pTHA aTHA NAc GP PUT CAU"
    names = [f"{word}-{side}" for side in ("rh", "lh") for word in words.split()]
    for written in (names, [f"Tian_Subcortex_S1_3T_{name}" for name in names]):
        assert atlas.match(written).tolist() == list(range(148, 164))
    assert atlas.find("aparc.a2009s_right_G&S_frontomargin") == 74
    # the whole is neither of its parts, and its parts are not the whole
    assert atlas.find("Left-Thalamus") is None
    assert whole.find("pTHA-lh") is None
    assert atlas.find_file_rows(["Left-Thalamus-Proper", "Left-Caudate"])[1] == (
        "Left-Thalamus-Proper",
    )
    assert atlas.divides("Thalamus", "L")
    assert not atlas.divides("Left-Caudate")
    assert not whole.divides("Left-Thalamus")


def test_lobes_agree_with_where_regions_lie(atlas):
    centre = atlas.regions.groupby("lobe")[["y", "z"]].mean()
    if not {"frontal", "occipital", "parietal"} <= {*centre.index}:
        pytest.skip("an atlas of a part of the brain")
    assert centre["y"].idxmax() == "frontal"
    assert centre["y"].idxmin() == "occipital"
    assert centre["z"].idxmax() == "parietal"


def test_matching_returns_positions_in_the_order_given(atlas):
    order = np.random.default_rng(3).permutation(len(atlas))
    np.testing.assert_array_equal(atlas.match([atlas.names[k] for k in order]), order)
    side = atlas.regions[(atlas.regions["hemisphere"] == "R") & atlas.cortex]
    np.testing.assert_array_equal(atlas.match(side["annot_name"], "R"), side.index)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ["lh_precuneos", "lh_cuneus", "zzz"],
            r"2 of 3 names .* desikan82: 'lh_precuneos' \(.*: ctx-lh-precuneus.*"
            r"'zzz' \(.*: none\)\. Correct the spelling, or choose another atlas",
        ),
        # The only unknown name stands for the only region without a name.
        (
            ["lh_banks_of_sulcus", *load_atlas("desikan82").names[1:]],
            r"1 of 82 .*'lh_banks_of_sulcus' \(most similar: ctx-lh-bankssts\)",
        ),
        # The region of the nearest spelling has its own name.
        (
            ["lh_superiortemporall", "lh_superiortemporal"],
            r"1 of 2 .*similar: ctx-lh-inferiortemporal, ctx-lh-superiorparietal\)",
        ),
        ([f"region{k}" for k in range(9)], r"9 of 9 .*'region4'.* and 4 more\."),
        (
            ["insula"],
            r"1 of 1 .*: ctx-lh-insula, ctx-rh-insula.*the hemisphere into each",
        ),
        (
            ["lh_insula", "lh_cuneus", "insula_lh"],
            r"1 region of the atlas desikan82 occurs more than once: "
            r"ctx-lh-insula as 'lh_insula', 'insula_lh'\. Give each region once",
        ),
        (["lh_insula", "Left-Cerebellum-Cortex"], r"1 of 2 .*Leave these out"),
        (
            ["lh_insula", "Insula-Left", *["insula_lh"] * 3000],
            r"ctx-lh-insula as 'lh_insula', 'Insula-Left', 'insula_lh' \(3000 times\)",
        ),
        (
            load_atlas("destrieux160").names,
            "belong to destrieux160, not to desikan82.*atlas='destrieux160'",
        ),
        # Columns of aparcstats2table name the measure.
        (
            [f"{name}_thickness" for name in ("lh_bankssts", "rh_cuneus")],
            r"2 of 2 .*Remove '_thickness' from the names",
        ),
        (["lh_bankssts_area", "rh_cuneus_x"], r"2 of 2 .*Correct the spelling"),
        # Too few names to propose an atlas for a whole study, but enough to name it.
        (["lh_G_precuneus", "lh_insula_x"], r"2 of 2 .*most similar"),
        (
            ["Left-Hippocampus", "lh_G_precuneus"],
            r"1 of 2 .*: 'lh_G_precuneus'\. All names are regions of the atlas "
            r"destrieux160 or destrieux164\. .*atlas='destrieux160'",
        ),
    ],
)
def test_names_that_do_not_fit_are_refused_all_at_once(names, message):
    with pytest.raises(RegionNameError, match=message):
        load_atlas("desikan82").match(names)


@pytest.mark.parametrize(
    ("names", "advice"),
    [
        (["1001", "1035"], "'ctx-lh-bankssts' instead of '1001'"),
        ([1035, "ctx-lh-cuneus"], "'ctx-lh-insula' instead of '1035'"),
        (["p < 0.05"], "for example 'ctx-lh-bankssts'"),
        (["9999", ""], "for example 'ctx-lh-bankssts'"),
        (["hippocampus"], "the hemisphere .*'Left-Hippocampus'"),
    ],
)
def test_a_hemisphere_is_asked_for_only_where_it_helps(names, advice):
    with pytest.raises(RegionNameError, match=advice) as caught:
        load_atlas("desikan82").match(names)
    assert ("hemisphere" in str(caught.value)) == ("hemisphere" in advice)
    with pytest.raises(RegionNameError) as caught:
        Atlas.from_names(["A", "B"]).match(["A", "X"])
    assert "hemisphere" not in str(caught.value)


def test_rows_of_a_file_are_found_by_name():
    atlas = load_atlas("desikan82")
    order = np.random.default_rng(0).permutation(82)
    names = [*(atlas.names[k] for k in order), "Brain-Stem"]
    rows, dropped = atlas.find_file_rows(names)
    np.testing.assert_array_equal(order[rows], np.arange(82))
    assert dropped == ("Brain-Stem",)
    assert (atlas.find_file_rows(["lh_insula"])[0] >= 0).sum() == 1
    with pytest.raises(RegionNameError, match="'lh_q'"):
        atlas.find_file_rows(["lh_q"])
    # whole numbers are FreeSurfer's labels
    rows, dropped = atlas.find_file_rows(["0", "1002", "1001", "251"])
    assert rows[:3].tolist() == [2, 1, -1]
    assert dropped == ("0", "251")


def test_names_alone_make_an_atlas():
    atlas = Atlas.from_names(["Precentral_L", "PRECENTRAL_r", "Vermis"])
    assert atlas.regions["hemisphere"].tolist() == ["L", "R", "M"]
    assert load_atlas(list(atlas.names)).match(["rh.precentral", "vermis"])[1] == 2
    below = ["Vermis_1_2", "Cerebelum_Crus1_L", "Cerebellum_3_R", "Hippocampus_Head_L"]
    assert Atlas.from_names([*below, "ParaHippocampal_L"]).cortex.argmax() == 4
    assert atlas.homotopic.tolist() == [1, 0, 2]
    assert atlas.meshes() == {}
    place = np.arange(6.0).reshape(2, 3) * 10
    atlas = Atlas.from_names(["a", "b"], "LR", place)
    assert atlas.regions["hemisphere"].tolist() == ["L", "R"]
    np.testing.assert_array_equal(atlas.regions[["x", "y", "z"]], place)
    with pytest.raises(ParameterError, match=r"'b' .row 2., 'B' .row 3. .* case"):
        Atlas.from_names(["a", "b", "B"])
    with pytest.raises(ParameterError, match="coordinates=names"):
        Atlas.from_names({"a": place[0], "b": place[1]})
    for wrong in (place / 1000, place + 200, place[:1]):
        with pytest.raises(ParameterError, match=r"coordinates must .*\(2, 3\).* mm"):
            Atlas.from_names(["a", "b"], "LR", wrong)


@pytest.mark.parametrize(
    ("left", "right"),
    [("Insula G", "Insula D"), ("s_insula", "d_insula"), ("a_L", "a_P")],
)
def test_letters_that_may_be_sides_are_refused(left, right):
    with pytest.raises(ParameterError, match="hemispheres=") as refused:
        Atlas.from_names([left, right, "Vermis"])
    assert repr(left) in str(refused.value)
    assert repr(right) in str(refused.value)
    # Sides that are given, and names that differ otherwise, are accepted.
    atlas = Atlas.from_names([left, right, "Vermis"], "LRM")
    assert atlas.homotopic.tolist()[2] == 2
    assert (
        Atlas.from_names(["Insula G", "Insula H"]).regions["hemisphere"].eq("M").all()
    )


def test_coordinates_are_read_by_name():
    names = ["Insula_L", "Insula_R", "Vermis"]
    place = np.array([[-40.0, 5, 0], [41, 6, 1], [0, -60, -20]])
    table = pd.DataFrame(place, names, [*"xyz"])
    mixed = table.iloc[[2, 0, 1]].assign(lobe=list("abc"))[["z", "lobe", "y", "x"]]
    for given in (mixed, table.reset_index(drop=True), place):
        np.testing.assert_array_equal(
            Atlas.from_names(names, coordinates=given).coordinates, place
        )
    for wrong, told in (
        (table.rename({"Insula_L": "Insulla_L"}), "'Insulla_L' .*: Insula_L"),
        (table[1:], "1 of the 3 regions .* own are missing: Insula_L"),
        (mixed.reset_index(names="region"), r"\.set_index\('region'\)"),
    ):
        with pytest.raises(ValueError, match=told):
            Atlas.from_names(names, coordinates=wrong)


def test_a_users_table_is_filled_and_kept(own, tmp_path):
    atlas = own(
        "Name Hemisphere network freesurfer_id X",
        "lh_north L salience 1001 -21.5",
        "Right-Putamen right motor n/a n/a",
        "Brain-Stem M none n/a n/a",
    )
    table = atlas.regions
    assert (atlas.name, atlas.folder) == (tmp_path.name, tmp_path)
    assert list(table.columns) == [*REGION_COLUMNS, "network"]
    assert table["hemisphere"].tolist() == ["L", "R", "M"]
    assert table["structure"].tolist() == ["cortex", "subcortex", "subcortex"]
    assert table["annot_name"].tolist() == ["north", "Putamen", "Brain-Stem"]
    assert table["short_name"].tolist() == table["name"].tolist()
    assert table["freesurfer_id"].tolist() == [1001, -1, -1]
    assert table["x"][0] == -21.5
    assert np.isnan(table[["y", "z"]].to_numpy()).all()
    path = (tmp_path / "regions.tsv").rename(tmp_path / "mine.tsv")
    assert load_atlas(path).name == "mine"


def test_a_new_atlas_is_a_folder(own, tmp_path):
    settings = {"annotation": "mine", "file_words": ["three"]}
    (tmp_path / "atlas.json").write_text(json.dumps(settings))
    atlas = own("name hemisphere", "a_L L", "a_R R")
    assert atlas.settings == settings
    (tmp_path / "atlas.json").write_text("{")
    with raises_kind("unreadable", "atlas.json"):
        load_atlas(tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('{"annotations": "aparc"}', "the key 'annotations' .*'annotation'"),
        ('{"space": "mni305"}', "space must be MNI152 or MNI305; got 'mni305'"),
        ('{"annotation": ""}', "annotation must be a text; got ''"),
        ('{"file_words": "three"}', "file_words must be a list .*; got 'three'"),
        ('{"file_words": ["Three"]}', "file_words must be .* in lower case"),
        ('{"unnamed_rows": 1}', "unnamed_rows must be true or false; got 1"),
        ('{"parts": {"Left-Thalamus": "a"}}', "parts must be .* text"),
        ('{"ukbiobank_fields": {"area": [1]}}', "ukbiobank_fields must be the first"),
        ('{"wall": -1}', "wall must be a whole number"),
        ('{"walls": {"size": 4, "rows": [[0, 4]]}}', "walls must be"),
        ('{"walls": {"size": 4}}', "walls must be"),
        (
            '{"sizes": {"few": "a slab"}}',
            "sizes must be a dictionary from a number of rows to text",
        ),
        ('{"order_17networks": [1, 1]}', "order_17networks must be .* from 1 to"),
        ('{"order_17networks": [1]}', "order_17networks must have 2 numbers.* got 1"),
        ('{"mrtrix": "fs_default.txt"}', "the nodes of MRtrix's .* 68 .* Remove `mrtr"),
        ('{"wall": 1, "wall": 2}', "the key wall is repeated"),
        ("[]", "the file must contain a JSON object"),
    ],
)
def test_settings_of_an_atlas_are_checked(own, tmp_path, settings, message):
    (tmp_path / "atlas.json").write_text(settings)
    with pytest.raises(FileFormatError, match=rf"atlas\.json: {message}"):
        own("name hemisphere", "a_L L", "a_R R")


def test_every_key_of_settings_is_explained_and_leads_to_an_atlas(atlas):
    lines = (atlas.folder.parent / "README.md").read_text().splitlines()
    keys = {key for line in lines if line[:3] == "| `" for key in line.split("`")[1::2]}
    assert {*AtlasSettings.__annotations__} <= keys
    assert {*atlas.settings.get("atlas_by_size", {}).values()} <= {*SIZES}


def test_a_copied_description_is_changed_to_that_of_the_atlas(atlas):
    n_named = int("".join(filter(str.isdigit, atlas.name)) or len(atlas))
    assert n_named in (len(atlas), atlas.cortex.sum()), "the name has another number"
    title = (atlas.folder / "README.md").read_text("utf-8").splitlines()[0]
    assert title == f"# {atlas.name}", "README.md is of another atlas"
    for key in ("remake_connectome", "remake_values"):
        advice = atlas.settings.get(key, atlas.name)
        assert atlas.name in advice, f"{key} of atlas.json is of another atlas"
    assert str(len(atlas)) not in atlas.settings.get("atlas_by_size", {})


def test_structures_in_the_settings_are_those_of_the_atlas(atlas):
    named = []
    for key in ("ucsf_structures", "ukbiobank_volumes"):
        named += atlas.settings.get(key, {}).values()
    for parts in atlas.settings.get("parts", {}).values():
        named += parts
    unknown = [
        name
        for name in named
        if atlas.find(name) is None
        and not (is_non_region_name(name) or atlas.divides(name))
    ]
    assert not unknown, "atlas.json names regions of another atlas"


WALL_NAMES = {"corpuscallosum", "medial_wall"}


def test_the_wall_has_the_position_that_the_annotation_gives(atlas):
    if not (atlas.folder / "lh.annot").is_file():
        assert "wall" not in atlas.settings
        return
    _, _, annotation_names = read_annot(atlas.folder / "lh.annot")
    label_names = [name.decode().lower() for name in annotation_names]
    label_names = [name for name in label_names if name != "unknown"]
    wall_positions = [
        position for position, name in enumerate(label_names) if name in WALL_NAMES
    ]
    stated = [atlas.settings["wall"]] if "wall" in atlas.settings else []
    assert stated == wall_positions, "wall of atlas.json is of another atlas"


def test_the_walls_are_the_rows_of_matrices_that_keep_them(atlas):
    wall_orders = [
        row_order
        for row_order in list_row_orders(atlas)
        if "Medial_wall" in row_order.names
    ]
    if "wall" not in atlas.settings:
        assert "walls" not in atlas.settings
        assert not wall_orders
        return
    n_rows = min(len(row_order.names) for row_order in wall_orders)
    wall_rows = [
        [row for row, name in enumerate(row_order.names) if name == "Medial_wall"]
        for row_order in wall_orders
        if len(row_order.names) == n_rows
    ]
    walls = {"size": n_rows, "rows": wall_rows}
    assert atlas.settings.get("walls") == walls, "write these walls into atlas.json"
    # These are the cortex with two walls, and FreeSurfer's 14 structures.
    assert n_rows == atlas.cortex.sum() + 2 + 14


def test_refusals_name_the_cortex_of_this_atlas(atlas):
    n_cortex = atlas.cortex.sum()
    assert str(n_cortex) in atlas.settings["sizes"], "sizes is of another atlas"
    if "wall" in atlas.settings:
        assert str(n_cortex + 2) in atlas.settings["sizes"]


def test_atlases_of_different_regions_have_different_settings(atlas):
    cortex = {*np.array(atlas.names)[atlas.cortex]}
    for other in map(load_atlas, {*SIZES} - {atlas.name}):
        assert atlas.settings != other.settings, f"atlas.json is that of {other.name}"
        assert atlas.names != other.names, f"the regions are those of {other.name}"
        other_cortex = {*np.array(other.names)[other.cortex]}
        if cortex <= {*other.names} or other_cortex <= {*atlas.names}:
            continue
        shared = [
            key
            for key in OWN_SETTINGS
            if key in atlas.settings and atlas.settings[key] == other.settings.get(key)
        ]
        if not is_of_one_family(atlas.name, other.name):
            is_cited_alike = atlas.settings["citation"] == other.settings["citation"]
            shared += ["citation"] if is_cited_alike else []
        assert not shared, f"atlas.json shares {shared} with {other.name}"


def test_names_that_differ_by_a_separator_only_are_not_merged(own):
    atlas = own("name hemisphere", "area-1 L", "area_1 L", "area_11 L")
    assert atlas.match(["area_1", "area-1", "area_11"]).tolist() == [1, 0, 2]
    assert atlas.find("area.1") is None


def test_sides_may_be_left_out_or_said_in_words(own):
    deep = ["Cerebellar_vermis", "pons", "GPi_L", "SN_pc_R", "Ventral_Striatum_L"]
    assert not Atlas.from_names(deep).cortex.any()
    atlas = own("name hemisphere", "a_L n/a", "stem Midline", "vermis both", "b Right")
    assert atlas.regions["hemisphere"].tolist() == ["L", "M", "M", "R"]


BAD = [
    (
        ["name side", "a L"],
        "must have the columns name and hem.* 1 row with the columns 'name', 's",
    ),
    (["name hemisphere"], "got 0 rows with the columns 'name', 'hemisphere'"),
    (["name hemisphere", "a L", " L"], "name of '' .row 2. .* a text; got ''"),
    (["name hemisphere", "a up"], r"hemisphere of 'a' .* must be L, R or M .*got 'up'"),
    (
        ["name hemisphere", "lh_a R"],
        "column and the name contradict each other; got 'R'",
    ),
    (["name hemisphere x", "a L far"], "x .*'a'.* must be a number or n/a; got 'far'"),
    (
        ["name hemisphere freesurfer_id", "a L 7", "b L 8", "c R 7"],
        "freesurfer_id .*'c'.* must be a whole number that no other region has, .*7",
    ),
    (
        ["name hemisphere structure", "a L brain"],
        "cortex, subcortex or unknown.*'brain'",
    ),
    (
        ["name hemisphere x y z", "a L -4 5 6", "b R 4 5 n/a"],  # in cm
        "coordinates x, y, z must be in mm .* at least 20; got 6 as",
    ),
    (["name hemisphere", "a L", "b L R L"], "cannot be read as a tab-separated table"),
    ([], "cannot be read as a tab-separated table"),
]


@pytest.mark.parametrize(("lines", "message"), BAD)
def test_a_table_that_cannot_be_used_is_refused(own, lines, message):
    with pytest.raises(FileFormatError, match=rf"regions\.tsv: .*{message}"):
        own(*lines)


def test_an_unknown_atlas_is_refused_with_the_list():
    said = f"must be one of {', '.join(map(repr, available_atlases()))}.*'aal'"
    with pytest.raises(ParameterError, match=said):
        load_atlas("aal")


def test_an_atlas_travels_to_other_processes(atlas):
    atlas.match(atlas.names[:3])
    assert pickle.loads(pickle.dumps(atlas)).names == atlas.names


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("desikan82", "aparc"),
        *((f"schaefer{n}", f"schaefer_{n}") for n in (100, 200, 400)),
    ],
)
def test_labels_agree_with_the_source_vertex_by_vertex(shared, name, source):
    folder = shared / "enigma_parcellations"
    atlas = load_atlas(name)
    labels = np.loadtxt(folder / f"{source}_fsa5.csv", dtype=int)
    names = (folder / f"labels_ctx_{source}.csv").read_text().strip().split(",")
    below = (folder / "labels_sctx.csv").read_text().strip().split(",")
    ours = np.concatenate([atlas.vertex_labels(side) for side in "LR"])
    if source == "aparc":  # whose numbers are those of a table with other rows
        kinds = np.setdiff1d(labels, (4, 39))  # the corpus callosum
        labels = np.searchsorted(kinds, np.where(np.isin(labels, kinds), labels, 0))
    else:
        assert [*names, *below] == list(atlas.names)
    positions = np.append(atlas.match(names), -1)[labels - 1]
    np.testing.assert_array_equal(ours, positions)


def test_every_cortical_region_has_vertices_of_its_own_side(atlas):
    for side in ("L", "R"):
        labels = atlas.vertex_labels(side)
        here = np.flatnonzero(atlas.cortex & (atlas.regions["hemisphere"] == side))
        assert labels.shape == (10242,)
        assert set(labels) == {-1, *here}
    with pytest.raises(ParameterError, match="must be one of 'L', 'R'; got 'left'"):
        atlas.vertex_labels("left")


def test_labels_are_read_by_name_and_not_by_position(own, tmp_path):
    lines = ("name hemisphere", "lh_west L", "lh_north L", "rh_east R")

    def draw(labels, codes):
        table = np.arange(len(labels) * 4).reshape(-1, 4) + 1
        table = np.column_stack([table, np.zeros(len(labels), int)])
        write_annot(tmp_path / "lh.annot", np.array(codes), table, labels, True)
        return own(*lines)

    atlas = draw(["Unknown", "north", "west"], [1, 1, 2, 0, 2, -1, 1])
    assert atlas.vertex_labels("L").tolist() == [1, 1, 0, -1, 0, -1, 1]
    with raises_kind("no such file", "rh.annot"):
        atlas.vertex_labels("R")
    atlas = draw(["Unknown", "nort", "west"], [0, 1, 2, 0, 0, 0, 0])
    with pytest.raises(FileFormatError, match=r"'nort' \(.*: lh_north"):
        atlas.vertex_labels("L")


def annotation(numbers, used, size):
    """Return a file whose names have these numbers, and vertices of these."""
    parts = [struct.pack(">i", len(used))]
    parts += [struct.pack(">2i", v, 10 * (one + 1)) for v, one in enumerate(used)]
    parts.append(struct.pack(">4i2si", 1, -2, size, 2, b"x", len(numbers)))
    for one in numbers:
        parts.append(struct.pack(">2i3s", one, 3, b"n%d" % one))
        parts.append(struct.pack(">4i", 10 * (one + 1), 0, 0, 0))
    return b"".join(parts)


@pytest.mark.parametrize("numbers", [[0, 1, 2, 3], [2, 3, 0], [0, 2, 3]])
def test_names_of_annotations_stand_in_any_order(tmp_path, numbers):
    path = tmp_path / "lh.annot"
    path.write_bytes(annotation(numbers, [2, 0, 3, 2, 0], 4))
    labels, names = read_annotation(path)
    assert [names[one] for one in labels] == ["n2", "n0", "n3", "n2", "n0"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (annotation([0, 2, 3], [2, 1, 0], 4), "a vertex has a label that has no name"),
        (annotation([0, 1], [1, 0], 2)[:-9], "cannot be read"),
        (struct.pack(">i", 10**9), "buffer is smaller than requested"),
    ],
)
def test_broken_annotations_are_refused(tmp_path, content, message):
    path = tmp_path / "lh.annot"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=rf"lh\.annot: .*{message}"):
        read_annotation(path)


def test_every_subcortical_region_has_a_closed_mesh_of_its_place(atlas):
    meshes = atlas.meshes()
    below = atlas.regions[~atlas.cortex & ~atlas.structure_part_mask]
    without_mesh = {*below["name"]} - {*meshes}
    assert not without_mesh, f"add meshes/NAME.surf.gii of {without_mesh}"
    assert {*meshes} <= {*below["name"]}
    for _, row in below.iterrows():
        vertices, faces = meshes[row["name"]]
        edges = np.sort(faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
        n_edges, uses = np.unique(edges, axis=0, return_counts=True)
        assert set(uses) == {2}  # closed
        assert len(vertices) - len(n_edges) + len(faces) == 2  # in one piece, no holes
        assert 750 <= len(vertices) <= 850
        centre = row[["x", "y", "z"]].to_numpy(float)
        assert np.abs(vertices.mean(axis=0) - centre).max() < 3
        a, b, c = (vertices[faces[:, k]] for k in range(3))
        assert np.sum(a * np.cross(b, c)) > 0  # outside is out


def test_a_broken_mesh_is_refused(own, tmp_path):
    mesh = tmp_path / "meshes" / "lh_west.surf.gii"
    mesh.parent.mkdir()
    for text in ("no mesh", "<GIFTI></GIFTI>"):
        mesh.write_text(text)
        with pytest.raises(FileFormatError, match=r"lh_west\.surf\.gii: cannot be re"):
            own("name hemisphere", "lh_west L").meshes()


def test_the_licence_stands_beside_the_files(atlas):
    licence = (atlas.folder / "LICENSE.txt").read_text()
    is_known = any(phrase in licence for phrase in LICENCE_PHRASES)
    assert is_known, f"add a phrase of the licence of {atlas.name} to LICENCE_PHRASES"
    assert all(f.stat().st_size < 500_000 for f in atlas.folder.rglob("*.*"))


def test_names_and_coordinates_for_readers(atlas):
    if (amygdala := atlas.find("Left-Amygdala")) is not None:
        assert atlas.full_names[amygdala] == "left amygdala"
    assert not any("(" in name or "_" in name for name in atlas.full_names)
    assert atlas.match(atlas.full_names).tolist() == list(range(len(atlas)))
    moved = atlas.coordinates - atlas.regions[["x", "y", "z"]].to_numpy()
    moved = moved[~atlas.structure_part_mask].mean(axis=0)
    if atlas.settings.get("space") == "MNI305":
        # fsaverage lies a little behind and below MNI152
        assert ((moved > [-1, 0, 0]) & (moved < 3)).all()
    else:
        np.testing.assert_array_equal(moved, 0)
    own = Atlas.from_names(["Precentral_L", "precentral_R", "V1"], "LRR")
    assert own.full_names == ("Precentral_L", "precentral_R", "right V1")
    assert np.isnan(own.coordinates).all()


def test_another_atlas_is_named_by_its_names(atlas):
    for other in map(load_atlas, {*SIZES} - {atlas.name}):
        assert other.find_better_atlas_name(atlas.names) == atlas.name
    assert atlas.find_better_atlas_name(atlas.names) is None
