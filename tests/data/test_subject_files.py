"""The text of connectomes and region tables."""

import io

import numpy as np
import pandas as pd
import pytest

from brainlsap.data.atlas import Atlas, load_atlas
from brainlsap.data.connectomes import read_connectome
from brainlsap.data.region_names import split_name
from brainlsap.data.subject_files import (
    mrtrix_nodes,
    mrtrix_text,
    named_text,
    region_text,
)
from brainlsap.data.tables import read_table
from brainlsap.exceptions import ParameterError


def draw_counts(n_rois, seed=0):
    upper = np.triu(np.random.default_rng(seed).poisson(30.0, (n_rois, n_rois)), 1)
    return (upper + upper.T).astype(float)


def read_numbers(text):
    return np.loadtxt(io.StringIO(text), delimiter=",")


@pytest.mark.parametrize(
    ("name", "n_nodes", "some"),
    [
        # Node numbers as fs_a2009s.txt and fs_default.txt of MRtrix count them, from 1.
        (
            "destrieux160",
            164,
            {
                1: "ctx_lh_G_and_S_frontomargin",
                74: "ctx_lh_S_temporal_transverse",
                75: None,
                76: "Left-Thalamus",
                80: "Left-Hippocampus",
                81: "Left-Amygdala",
                82: None,
                83: "Right-Thalamus",
                87: "Right-Hippocampus",
                89: None,
                90: "ctx_rh_G_and_S_frontomargin",
                163: "ctx_rh_S_temporal_transverse",
                164: None,
            },
        ),
        (
            "desikan82",
            84,
            {
                1: "ctx-lh-bankssts",
                5: "ctx-lh-entorhinal",
                34: "ctx-lh-insula",
                35: None,
                40: "Left-Hippocampus",
                42: "Left-Accumbens-area",
                43: "Right-Thalamus",
                49: "Right-Accumbens-area",
                50: "ctx-rh-bankssts",
                83: "ctx-rh-insula",
                84: None,
            },
        ),
    ],
)
def test_nodes_stand_where_mrtrix_puts_them(name, n_nodes, some):
    atlas = load_atlas(name)
    nodes = mrtrix_nodes(atlas)
    assert len(nodes) == n_nodes
    assert sorted(nodes[nodes >= 0]) == list(range(len(atlas)))
    for number, region in some.items():
        position = nodes[number - 1]
        assert (atlas.find(region) if region else -1) == position


def test_an_atlas_unknown_to_mrtrix_is_refused():
    own = Atlas("own", load_atlas("desikan82").regions, None)
    with pytest.raises(
        ParameterError, match=r"style 'mrtrix' is known for .* 'own'.*style='named'"
    ):
        mrtrix_nodes(own)


def test_mrtrix_text_is_the_upper_triangle_in_node_order():
    counts, nodes = draw_counts(4), np.array([2, -1, 0, 3, 1])
    matrix = read_numbers(mrtrix_text(counts, nodes, "sub-01"))
    assert matrix.shape == (5, 5)
    assert not np.tril(matrix).any()
    whole = matrix + matrix.T
    known = [0, 2, 3, 4]
    for row in known:
        for column in known:
            assert whole[row, column] == counts[nodes[row], nodes[column]]


def test_nodes_outside_the_atlas_get_plausible_counts():
    atlas = load_atlas("destrieux160")
    counts = draw_counts(160)
    text = mrtrix_text(counts, mrtrix_nodes(atlas), "sub-01_ses-M00")
    whole = read_numbers(text)
    whole = whole + whole.T
    for node in (74, 81, 88, 163):
        assert np.array_equal(whole[node], np.rint(whole[node]))
        assert whole[node, node] == 0
        assert 0.2 < whole[node].sum() / whole[node - 1].sum() < 0.5


def test_mrtrix_text_depends_on_the_scan_only():
    counts, nodes = draw_counts(4), np.array([2, -1, 0, 3, 1])
    first = mrtrix_text(counts, nodes, "sub-01")
    assert first == mrtrix_text(counts, nodes, "sub-01")
    assert first != mrtrix_text(counts, nodes, "sub-02")


def test_counts_are_written_as_whole_numbers_and_weights_in_full():
    nodes = np.array([0, 1, 2])
    assert "." not in mrtrix_text(draw_counts(3), nodes, "a")
    weights = draw_counts(3) / 7
    matrix = read_numbers(mrtrix_text(weights, nodes, "a"))
    assert np.array_equal(matrix + matrix.T, weights)


def test_named_text_has_names_on_both_sides():
    counts = draw_counts(3)
    table = pd.read_csv(io.StringIO(named_text(counts, ["a", "b", "c"])), index_col=0)
    assert list(table.columns) == list(table.index) == ["a", "b", "c"]
    assert np.array_equal(table.to_numpy(), counts)


def test_no_region_is_a_formula_and_all_are_found_again(tmp_path):
    names = ["=A1()", "@b", "c"]
    text = named_text(draw_counts(3), names)
    assert text.startswith("region,'=A1(),'@b,c\n")
    assert [line.split(",")[0] for line in text.splitlines()[1:]] == [
        "'=A1()",
        "'@b",
        "c",
    ]
    text = region_text(names, np.array([1.5, -2.0, np.nan]), "+suvr")
    assert text == "region\t'+suvr\n'=A1()\t1.5\n'@b\t-2\nc\tn/a\n"
    (tmp_path / "t.tsv").write_text(text)
    table = read_table(tmp_path / "t.tsv")
    assert list(table) == ["region", "+suvr"]
    assert table["region"].tolist() == names
    assert {split_name(f"'{name}") for name in names} == set(map(split_name, names))


def test_region_text_keeps_ten_digits_and_marks_what_is_absent():
    values = np.array([1.23456789012, np.nan, 3200.5])
    text = region_text(["a", "b", "c"], values, "suvr")
    assert text.splitlines()[2] == "b\tn/a"
    table = pd.read_csv(io.StringIO(text), sep="\t", index_col="region")
    assert table["suvr"].to_numpy() == pytest.approx(values, rel=1e-9, nan_ok=True)


@pytest.mark.parametrize("name", ["destrieux160", "desikan82"])
@pytest.mark.parametrize("style", ["mrtrix", "named"])
def test_connectomes_are_read_back_as_they_were(name, style, tmp_path):
    atlas = load_atlas(name)
    weights = draw_counts(len(atlas)) / 3
    if style == "mrtrix":
        text = mrtrix_text(weights, mrtrix_nodes(atlas), "sub-01")
    else:
        text = named_text(weights, atlas.names)
    (tmp_path / "connectome.csv").write_text(text)
    assert np.array_equal(
        read_connectome(tmp_path / "connectome.csv", atlas).matrix, weights
    )
