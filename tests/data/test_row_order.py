"""Matrices without names: read in the order of a known tool, else refused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from brainlsap.atlas import Atlas, available_atlases, load_atlas
from brainlsap.atlas.atlas import fill_region_table
from brainlsap.data.connectomes import read_connectome
from brainlsap.data.row_order import list_fitting_orders, list_row_orders
from brainlsap.exceptions import FileFormatError, ParameterError
from tests.data import formats

ATLAS, DESIKAN = load_atlas("destrieux160"), load_atlas("desikan82")


def mrtrix_ids(bases, n_labels, unused):
    """Rows of labelconvert: cortex of the left, structures, cortex of the right."""
    left, right = (
        [base + k for k in range(1, n_labels + 1) if k != unused] for base in bases
    )
    below = [8, 10, 11, 12, 13, 17, 18, 26, 49, 50, 51, 52, 53, 54, 58]
    return [*left, *below, *right, 47]


MRTRIX = [
    (ATLAS, "fs_a2009s.txt (164 nodes)", mrtrix_ids((11100, 12100), 75, 42)),
    (DESIKAN, "fs_default.txt (84 nodes)", mrtrix_ids((1000, 2000), 35, 4)),
]


def test_every_table_of_labelconvert_is_compared_with_its_node_ids():
    table_of_atlas = {
        atlas_name: load_atlas(atlas_name).settings["mrtrix"]
        for atlas_name in available_atlases()
        if "mrtrix" in load_atlas(atlas_name).settings
    }
    tested_tables = {atlas.name: order.split()[0] for atlas, order, _ in MRTRIX}
    assert table_of_atlas == tested_tables, "add the ids of the nodes to MRTRIX"


@pytest.mark.parametrize(("atlas", "order", "ids"), MRTRIX)
@pytest.mark.parametrize("n_before", [0, 1])
@pytest.mark.parametrize(
    ("suffix", "delimiter"),
    [(".csv", ","), (".csv", " "), (".tsv", "\t"), (".txt", " ")],
)
def test_mrtrix_before_and_since_3(
    tmp_path, atlas, order, ids, n_before, suffix, delimiter
):
    """Upper triangle, perhaps a first row of unassigned streamlines, any delimiter."""
    full, expected = formats.whole(atlas, ids)
    full = np.pad(full, (n_before, 0), constant_values=3.0)
    head = "command_history: tck2connectome a.tck nodes.mif c.csv"
    path = tmp_path / f"c{suffix}"
    np.savetxt(path, np.triu(full), "%d", delimiter, header=head, comments="# ")
    found = read_connectome(path, atlas)
    np.testing.assert_array_equal(found.matrix, expected)
    assert f"MRtrix's {order}" in found.notes[0]
    out = {ATLAS: "Left-Accumbens-area", DESIKAN: "Right-Cerebellum-Cortex"}[atlas]
    assert f"Left-Cerebellum-Cortex, {out}" in found.notes[1]


def test_an_atlas_without_the_nodes_of_mrtrix_has_no_order_of_mrtrix():
    """Its cortex lacks regions of the table; another number of nodes was invented."""
    rows = ~DESIKAN.regions["name"].str.contains("insula").to_numpy()
    regions = DESIKAN.regions[rows].reset_index(drop=True)
    settings = {
        name: value for name, value in DESIKAN.settings.items() if name != "mrtrix"
    }
    atlas = replace(DESIKAN, name="few", regions=regions, settings=settings)
    assert "mrtrix" in {order.tool_name for order in list_row_orders(DESIKAN)}
    assert "mrtrix" not in {order.tool_name for order in list_row_orders(atlas)}
    assert "aseg" in {order.tool_name for order in list_row_orders(atlas)}


@pytest.mark.parametrize("n_cerebellar", [34, 28])
@pytest.mark.parametrize("suffix", [".shape.gii", ".txt"])
@pytest.mark.parametrize("kind", ["full-connectome", "full-edgeLengths"])
def test_micapipe_full(tmp_path, n_cerebellar, suffix, kind):
    ids = formats.micapipe_ids(n_cerebellar)
    full, expected = formats.whole(ATLAS, ids)
    path = tmp_path / f"sub-01_atlas-aparc-a2009s_desc-iFOD2-10M-SIFT2_{kind}{suffix}"
    write = formats.write_gii if suffix == ".shape.gii" else np.savetxt
    write(path, np.triu(full))
    found = read_connectome(path, ATLAS)
    np.testing.assert_array_equal(found.matrix, expected)
    assert f"micapipe's full matrix ({n_cerebellar} cerebellar rows)" in found.notes[0]


def test_micapipe_subcortical_has_the_size_of_mrtrix(tmp_path):
    full, expected = formats.whole(ATLAS, ids := formats.micapipe_ids(0))
    walls = [i for i, number in enumerate(ids) if number is None]
    assert (len(ids), walls) == (164, [55, 130])
    path = tmp_path / "sub-01_desc-iFOD2-1M-SIFT2_sub-connectome.txt"
    np.savetxt(path, np.triu(full), "%d")
    np.testing.assert_array_equal(read_connectome(path, ATLAS).matrix, expected)
    full[walls], full[:, walls] = 0, 0
    path = tmp_path / "c.txt"
    np.savetxt(path, np.triu(full), "%d")
    with pytest.raises(FileFormatError, match=r"(?s)164 x 164 .* 56 and 131 are empty"):
        read_connectome(path, ATLAS)
    found = read_connectome(path, ATLAS, row_order="micapipe")
    np.testing.assert_array_equal(found.matrix, expected)


def test_rows_that_are_label_numbers(tmp_path):
    """dipy's connectivity_matrix: a row for every number up to the largest label."""
    numbers = DESIKAN.regions["freesurfer_id"].to_numpy()
    small = formats.telling_matrix(82)
    labels = np.zeros((2036, 2036), dtype=np.int32)
    labels[np.ix_(numbers, numbers)] = small
    labels[0] = labels[:, 0] = 5
    np.save(tmp_path / "l.npy", labels)
    found = read_connectome(tmp_path / "l.npy", DESIKAN)
    np.testing.assert_array_equal(found.matrix, small)
    assert found.notes == (
        "read as FreeSurfer's label numbers, from 0",
        "rows that are not regions of the atlas desikan82 are left out: 0, 1, 2, "
        "3, 4, 5, 6, 7 and 1946 more",
    )


@pytest.mark.parametrize(
    ("atlas", "size", "could"),
    [
        ("destrieux160", 148, "cortex only"),
        ("destrieux160", 150, "a medial wall on each side"),
        ("destrieux160", 152, "Unknown and Medial_wall"),
        ("destrieux160", 161, "Unknown"),
        ("destrieux160", 166, "two medial walls"),
        ("destrieux160", 84, "atlas desikan82"),
        ("desikan82", 68, "cortex only"),
        ("desikan82", 82, r"row_order='atlas' [^:]*: row 70 is Left-Caudate, "),
        (
            "desikan82",
            82,
            "'labels' [^:]*: row 70 is ctx-rh-post.*, and row 82 is ctx-rh",
        ),
        ("desikan82", 82, "ENIGMA"),
        ("desikan82", 83, "Lausanne"),
        ("desikan82", 164, "atlas destrieux160"),
    ],
)
def test_sizes_that_say_no_order_are_refused_with_candidates(
    tmp_path, atlas, size, could
):
    """J6: 83 rows were read as desikan82 behind a label 0, 82 as its own order."""
    np.save(tmp_path / "c.npy", np.ones((size, size)))
    message = rf"(?s)a matrix of {size} x {size} without .* could be:.*{could}"
    with pytest.raises(FileFormatError, match=message):
        read_connectome(tmp_path / "c.npy", load_atlas(atlas))


def test_orders_are_told_apart_where_they_differ(tmp_path):
    regions = {"name": ["a_L", "b_L", "a_R", "b_R"], "hemisphere": [*"LLRR"]}
    regions |= {"freesurfer_id": [11, 13, 12, 14]}
    atlas = Atlas("mine", fill_region_table(pd.DataFrame(regions), "mine"))
    np.save(tmp_path / "c.npy", np.ones((4, 4)))
    message = (
        r"(?s)'atlas' .*: row 2 is b_L, and row 4 is b_R.*'labels' .*: row 2 is "
        r"a_R, and row"
    )
    with pytest.raises(FileFormatError, match=message):
        read_connectome(tmp_path / "c.npy", atlas)


def test_whose_order_can_be_said(tmp_path):
    expected = formats.telling_matrix(82)
    path = tmp_path / "c.npy"
    np.save(path, expected)
    found = read_connectome(path, DESIKAN, row_order="atlas")
    np.testing.assert_array_equal(found.matrix, expected)
    order = DESIKAN.regions["freesurfer_id"].argsort()
    np.save(path, expected[np.ix_(order, order)])
    found = read_connectome(path, DESIKAN, row_order="labels")
    np.testing.assert_array_equal(found.matrix, expected)
    np.save(path, expected)
    for labels in (DESIKAN.names, list(DESIKAN.names)):
        found = read_connectome(path, DESIKAN, labels=labels)
        np.testing.assert_array_equal(found.matrix, expected)
    with pytest.raises(FileFormatError, match="as row_order='mrtrix'"):
        read_connectome(path, DESIKAN, row_order="mrtrix")
    with pytest.raises(
        FileFormatError, match=r"82 rows, but the list contains 2 names .rows named"
    ):
        read_connectome(path, DESIKAN, labels=["lh_a", "lh_b"])
    np.save(path, np.ones((7, 7)))
    with pytest.raises(ParameterError, match="row_order must be one of"):
        read_connectome(path, DESIKAN, row_order="lausanne")


def test_the_paper_s_160_is_asked_for_and_so_are_own_atlases(tmp_path, tiny, matrix):
    np.save(tmp_path / "c.npy", formats.telling_matrix(160))
    with pytest.raises(FileFormatError, match=r"(?s)row_order='atlas'.*Dosenbach"):
        read_connectome(tmp_path / "c.npy", ATLAS)
    found = read_connectome(tmp_path / "c.npy", ATLAS, row_order="atlas")
    assert found.notes[0] == "read in the order of destrieux160"
    np.save(tmp_path / "c.npy", matrix)
    own = Atlas("own", tiny.regions)
    with pytest.raises(FileFormatError, match=r"'atlas' \(in the order of own\)"):
        read_connectome(tmp_path / "c.npy", own)
    assert read_connectome(tmp_path / "c.npy", own, row_order="atlas").notes


def test_84_rows_with_empty_callosa_are_not_mrtrix(tmp_path):
    values = np.ones((84, 84))
    values[[3, 38]] = values[:, [3, 38]] = 0
    np.save(tmp_path / "c.npy", values)
    with pytest.raises(FileFormatError, match="Rows 4 and 39 are empty"):
        read_connectome(tmp_path / "c.npy", DESIKAN)


@pytest.mark.parametrize("midline_names", [[], ["Brain-Stem"]])
def test_orders_by_side_give_the_place_of_midline_regions(midline_names):
    sided_names = [f"{side}_{base}" for base in ("cuneus", "insula") for side in "LR"]
    atlas = Atlas.from_names([*midline_names, *sided_names], name="own")
    orders = {
        order.tool_name: order for order in list_fitting_orders(atlas, len(atlas))
    }
    for tool in ("hemispheres", "hemispheres-right-first", "interleaved"):
        if tool in orders:
            description = orders[tool].description
            assert ("midline" in description) == bool(midline_names)
    assert "hemispheres" in orders
