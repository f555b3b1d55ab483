"""Every documented connectome file goes in and comes out by name."""

import json
import sys

import numpy as np
import pytest
from scipy.io import savemat

from brainlsap.data.atlas import load_atlas
from brainlsap.data.connectomes import read_connectome
from brainlsap.data.layouts import known_layouts, micapipe_layouts
from brainlsap.exceptions import FileFormatError, RegionNameError
from tests.data import formats

ATLAS = load_atlas("destrieux160")
N = len(ATLAS)
NAMED_WRITERS = {
    "qsirecon.mat": lambda p, W, n: formats.write_qsirecon(p, {"radius2_count": W}, n),
    "qsiprep.mat": lambda p, W, n: formats.write_qsirecon(
        p, {"sift_radius2_count": W}, n, "a2009s", prefix=""
    ),
    "dsi.count.end.connectivity.mat": lambda p, W, n: formats.write_dsi_studio(
        p, {"count": W}, n, current=False
    ),
    "dsi.connectivity.mat": lambda p, W, n: formats.write_dsi_studio(
        p, {"count": W, "qa": W / 2}, n
    ),
    "plain.h5": formats.write_h5,
    "plain.npz": formats.write_npz,
    "relmat": lambda p, W, n: formats.write_relmat(p.parent, W, n),
    "relmat.gz": lambda p, W, n: formats.write_relmat(p.parent, W, n, packed=True),
}


@pytest.fixture
def expected():
    return formats.telling_matrix(N)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", NAMED_WRITERS)
def test_named_files_come_out_by_name_in_any_order(tmp_path, expected, name, seed):
    order = np.random.default_rng(seed).permutation(N)
    names = np.array(ATLAS.names)[order]
    path = NAMED_WRITERS[name](tmp_path / name, expected[np.ix_(order, order)], names)
    np.testing.assert_array_equal(read_connectome(path, ATLAS).matrix, expected)


@pytest.mark.parametrize("name", NAMED_WRITERS)
def test_a_mirrored_copy_is_caught(tmp_path, expected, name):
    """Names of the other side on the rows give another connectome, by name."""
    swapped = [
        n.replace("_lh_", "_?_").replace("_rh_", "_lh_").replace("_?_", "_rh_")
        for n in ATLAS.names
    ]
    path = NAMED_WRITERS[name](tmp_path / name, expected, swapped)
    found = read_connectome(path, ATLAS).matrix
    rows = ATLAS.match(swapped)
    assert not np.array_equal(found, expected)
    np.testing.assert_array_equal(found[np.ix_(rows, rows)], expected)


@pytest.mark.parametrize("n_cerebellar", [34, 28])
@pytest.mark.parametrize("suffix", [".shape.gii", ".txt"])
def test_micapipe_full(tmp_path, n_cerebellar, suffix):
    ids = formats.micapipe_ids(n_cerebellar)
    full, expected = formats.whole(ATLAS, ids)
    path = tmp_path / f"sub-01_atlas-aparc-a2009s_desc-iFOD2_full-connectome{suffix}"
    half = np.triu(full)
    if suffix == ".txt":
        np.savetxt(path, half, "%d")
    else:
        formats.write_gii(path, half)
    found = read_connectome(path, ATLAS)
    np.testing.assert_array_equal(found.matrix, expected)
    assert "only the upper triangle is filled: mirrored" in found.notes
    assert "left out, not in destrieux160: Left-Accumbens-area, " in found.notes[1]
    if n_cerebellar == 34:
        assert ids[89] is ids[164] is None
        assert (ids[88], ids[90]) == (11141, 11143)


def test_micapipe_subcortical_has_the_size_of_mrtrix(tmp_path):
    full, expected = formats.whole(ATLAS, ids := formats.micapipe_ids(0))
    walls = [i for i, number in enumerate(ids) if number is None]
    assert (len(ids), walls) == (164, [55, 130])
    path = tmp_path / "sub-01_desc-iFOD2-1M-SIFT2_sub-connectome.txt"
    np.savetxt(path, np.triu(full), "%d")
    np.testing.assert_array_equal(read_connectome(path, ATLAS).matrix, expected)
    full[walls], full[:, walls] = 0, 0
    np.savetxt(tmp_path / "c.txt", np.triu(full), "%d")
    with pytest.raises(FileFormatError, match=r"164 rows .* rows 56 and 131 are empty"):
        read_connectome(tmp_path / "c.txt", ATLAS)


def test_layouts_of_micapipe():
    assert micapipe_layouts(load_atlas("desikan82"))[118].names[51] == "Medial_wall"
    assert 118 in known_layouts(load_atlas("desikan82"))
    assert micapipe_layouts(ATLAS)[198].names[163] == ATLAS.names[40 + 74]


def test_measures_of_one_file(tmp_path, expected):
    matrices = {"radius2_meanlength": expected * 2, "sift_radius2_count": expected}
    path = formats.write_qsirecon(tmp_path / "c.mat", matrices, ATLAS.names)
    found = read_connectome(path, ATLAS)
    np.testing.assert_array_equal(found.matrix, expected)
    assert found.notes[0] == (
        "took sift_radius2_count; measure= takes another of radius2_meanlength"
    )
    found = read_connectome(path, ATLAS, measure="radius2_meanlength")
    np.testing.assert_array_equal(found.matrix, expected * 2)
    with pytest.raises(FileFormatError, match=r"no measure 'fa'; found radius2_meanl"):
        read_connectome(path, ATLAS, measure="fa")
    path = formats.write_dsi_studio(
        tmp_path / "d.mat", {"qa": expected, "fa": expected}, ATLAS.names
    )
    with pytest.raises(FileFormatError, match=r"2 matrices could be .* one of fa, qa"):
        read_connectome(path, ATLAS)


def test_the_atlas_chooses_among_several(tmp_path, expected):
    other = np.array([f"LH_Vis_{i}" for i in range(100)])
    stem = "atlas_Schaefer100_"
    matrices = {"sift_radius2_count": expected}
    formats.write_qsirecon(tmp_path / "c.mat", matrices, ATLAS.names)
    from scipy.io import loadmat

    content = {k: v for k, v in loadmat(tmp_path / "c.mat").items() if k[0] != "_"}
    content[f"{stem}region_labels"] = formats.cells(other)
    content[f"{stem}sift_radius2_count_connectivity"] = np.ones((100, 100))
    savemat(tmp_path / "c.mat", content)
    found = read_connectome(tmp_path / "c.mat", ATLAS)
    np.testing.assert_array_equal(found.matrix, expected)


def test_absent_regions_of_dsi_studio_and_qsirecon(tmp_path, expected):
    gone = [5, 77]
    kept = np.setdiff1d(np.arange(N), gone)
    wanted = expected.copy()
    wanted[gone], wanted[:, gone] = 0, 0
    names = np.array(ATLAS.names)
    without = expected[np.ix_(kept, kept)]
    dsi = formats.write_dsi_studio(tmp_path / "d.mat", {"count": without}, names[kept])
    empty = expected.copy()
    empty[gone], empty[:, gone] = np.nan, np.nan
    qsi = formats.write_qsirecon(tmp_path / "q.mat", {"radius2_count": empty}, names)
    for path in (dsi, qsi):
        found = read_connectome(path, ATLAS)
        np.testing.assert_array_equal(found.matrix, wanted)
        listed = ", ".join(names[gone])
        assert f"absent from the file, without connections: {listed}" in found.notes
    few = kept[:-20]
    path = formats.write_dsi_studio(
        tmp_path / "f.mat", {"count": expected[np.ix_(few, few)]}, names[few]
    )
    with pytest.raises(RegionNameError, match="22 of the 160 regions of destrieux160"):
        read_connectome(path, ATLAS)


@pytest.mark.parametrize("whose", ["numbers", "names"])
def test_connectoflow(tmp_path, expected, whose):
    order = np.random.default_rng(3).permutation(N)
    ids = ATLAS.regions["freesurfer_id"] if whose == "numbers" else ATLAS.names
    matrix = expected[np.ix_(order, order)]
    path = formats.write_connectoflow(tmp_path, matrix, np.array(ids)[order])
    found = read_connectome(path, ATLAS)
    np.testing.assert_array_equal(found.matrix, expected)
    assert "rows named by labels_list.txt" in found.notes


def test_dipy_row_zero_and_label_numbers(tmp_path, expected):
    np.save(tmp_path / "c.npy", np.pad(expected, (1, 0), constant_values=7))
    found = read_connectome(tmp_path / "c.npy", ATLAS)
    np.testing.assert_array_equal(found.matrix, expected)
    desikan = load_atlas("desikan82")
    numbers = desikan.regions["freesurfer_id"].to_numpy()
    small = formats.telling_matrix(82)
    labels = np.zeros((2036, 2036), dtype=np.int32)
    labels[np.ix_(numbers, numbers)] = small
    labels[0] = labels[:, 0] = 5
    np.save(tmp_path / "l.npy", labels)
    found = read_connectome(tmp_path / "l.npy", desikan)
    np.testing.assert_array_equal(found.matrix, small)
    assert found.notes == (
        "rows read as FreeSurfer's label numbers, from 0",
        "left out, not in desikan82: 1954 rows",
    )


def test_sidecars(tmp_path, expected):
    path = tmp_path / "a" / "b" / "c.csv"
    path.parent.mkdir(parents=True)
    np.savetxt(path, expected[::-1, ::-1], "%d", ",")
    listed = "\n".join(ATLAS.names[::-1])
    (tmp_path / "labels.txt").write_text(listed)
    np.testing.assert_array_equal(read_connectome(path, ATLAS).matrix, expected)
    # names for another matrix lie above: passed over; beside it: refused
    (tmp_path / "a" / "labels.txt").write_text("lh_a\nlh_b\n")
    np.testing.assert_array_equal(read_connectome(path, ATLAS).matrix, expected)
    (path.parent / "c_labels.csv").write_text("lh_a\nlh_b\n")
    with pytest.raises(
        FileFormatError, match=r"160 rows, but c_labels\.csv .* names 2"
    ):
        read_connectome(path, ATLAS)


@pytest.mark.parametrize(
    ("described", "message"),
    [
        ("{", "cannot be read as JSON"),
        ({"NodeFiles": ["no.tsv"]}, "NodeFiles names no.tsv, which does not exist"),
        ({"NodeFiles": ["../no.tsv"]}, "names ../no.tsv; expected a path below the"),
        ({"NodeFiles": ["bids::/etc/passwd"]}, "expected a path below the data set"),
        ({"NodeFiles": 3}, "NodeFiles must be names of files, got 3"),
        ({"NodeIndices": {"a": 1}}, "NodeIndices must list numbers or names"),
        ({"NodeIndices": [1, 2]}, r"160 rows, but .*relmat\.json beside it names 2"),
        (
            {"NodeFiles": ["seg-destrieux_nodes.tsv"], "NodeIndices": [999]},
            "the node 999, which is not in seg-destrieux_nodes.tsv",
        ),
        ({"NodeFiles": ["bad.tsv"]}, r"bad\.tsv: no column name or label or region"),
    ],
)
def test_bids_sidecars_refused(tmp_path, expected, described, message):
    path = formats.write_relmat(tmp_path, expected, ATLAS.names)
    text = described if isinstance(described, str) else json.dumps(described)
    path.with_suffix(".json").write_text(text)
    (tmp_path / "bad.tsv").write_text("x\ty\n1\t2\n")
    with pytest.raises(FileFormatError, match=message):
        read_connectome(path, ATLAS)


def test_bids_nodes_go_by_their_index(tmp_path, expected):
    path = formats.write_relmat(tmp_path, expected, ATLAS.names)
    nodes = tmp_path / "seg-destrieux_nodes.tsv"
    head, *rows = nodes.read_text().splitlines()
    nodes.write_text("\n".join([head, *rows[::-1]]) + "\n")
    path.with_suffix(".json").write_text(json.dumps({"NodeFiles": [nodes.name]}))
    np.testing.assert_array_equal(read_connectome(path, ATLAS).matrix, expected)
    nodes.write_text("\n".join([head, *rows, "1\tctx_lh_Medial_wall"]) + "\n")
    with pytest.raises(
        FileFormatError, match=r"the node 1 is ctx_lh_.* every index on"
    ):
        read_connectome(path, ATLAS)


def test_bids_sidecar_without_nodes_says_nothing(tmp_path, expected):
    path = formats.write_relmat(tmp_path, expected, ATLAS.names)
    for text in ('{"Description": "counts"}', "[]"):
        path.with_suffix(".json").write_text(text)
        found = read_connectome(path, ATLAS)
        assert found.notes == ("read in the order of destrieux160",)


def test_xcp_d_writes_names_and_commas_into_tsv(tmp_path, expected):
    path = tmp_path / "sub-01_stat-pearson_relmat.tsv"
    order = np.random.default_rng(5).permutation(N)
    names = np.array(ATLAS.names)[order]
    rows = [
        f"{name},{','.join(f'{v:g}' for v in row)}"
        for name, row in zip(names, expected[np.ix_(order, order)], strict=True)
    ]
    path.write_text("\n".join([",".join(["Node", *names]), *rows]) + "\n")
    np.testing.assert_array_equal(read_connectome(path, ATLAS).matrix, expected)


def test_another_parcellation_is_refused_with_the_step(tmp_path):
    desikan = load_atlas("desikan82")
    path = formats.write_npz(
        tmp_path / "c.npz", formats.telling_matrix(82), desikan.names
    )
    message = r"those of desikan82, not of destrieux160\. Make .*labelconvert aparc"
    with pytest.raises(RegionNameError, match=message):
        read_connectome(path, ATLAS)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("c.npz", r"c\.npz: cannot be read as a \.npz archive .* may be cut short"),
        ("c.mat", "cannot be read as a MATLAB file"),
        ("c.h5", "cannot be read as a HDF5 file"),
        ("c.gii", "cannot be read as a GIFTI file"),
        ("c.csv.gz", "cannot be unpacked"),
        ("c.npy.gz", "compressed files are read as text only"),
    ],
)
def test_broken_files_are_refused(tmp_path, name, message):
    path = tmp_path / name
    with pytest.raises(FileFormatError, match="no such file"):
        read_connectome(path, ATLAS)
    path.write_bytes(b"not what it says")
    with pytest.raises(FileFormatError, match=message):
        read_connectome(path, ATLAS)


def test_files_without_a_matrix_are_refused(tmp_path):
    np.savez(tmp_path / "c.npz", a=np.ones(3), b=np.ones((2, 3)))
    with pytest.raises(FileFormatError, match=r"found a \(3,\), b \(2, 3\)"):
        read_connectome(tmp_path / "c.npz", ATLAS)
    np.savez(tmp_path / "e.npz", a=np.array([{}]))
    with pytest.raises(FileFormatError, match="Object arrays cannot be loaded"):
        read_connectome(tmp_path / "e.npz", ATLAS)


def test_large_files_are_refused_unread(tmp_path, monkeypatch):
    module = sys.modules["brainlsap.data.matrix_files"]
    monkeypatch.setattr(module, "MOST_BYTES", 2000)
    np.savez_compressed(tmp_path / "c.npz", a=np.zeros((99, 99)))
    savemat(tmp_path / "c.mat", {"a": np.zeros((99, 99))}, do_compression=True)
    formats.write_relmat(tmp_path, np.zeros((99, 99)), ["a"] * 99, packed=True)
    (tmp_path / "c.gii").write_bytes(b"x" * 3000)
    for path, message in (
        (tmp_path / "c.npz", "unpacks to more than"),
        (tmp_path / "c.mat", "unpacks to more than"),
        (next(tmp_path.glob("*.gz")), "unpacks to more than"),
        (tmp_path / "c.gii", "Is it the right file"),
    ):
        with pytest.raises(FileFormatError, match=message):
            read_connectome(path, ATLAS)


def test_gifti_with_two_arrays_is_refused(tmp_path):
    import nibabel as nib

    arrays = [nib.gifti.GiftiDataArray(np.ones((3, 3), np.float32)) for _ in range(2)]
    nib.save(nib.gifti.GiftiImage(darrays=arrays), tmp_path / "c.gii")
    with pytest.raises(FileFormatError, match="with one matrix, got 2 arrays"):
        read_connectome(tmp_path / "c.gii", ATLAS)


def test_matlab_7_3_is_hdf5(tmp_path, expected):
    path = formats.write_h5(tmp_path / "c.h5", expected, ATLAS.names)
    block = b"MATLAB 7.3 MAT-file".ljust(512)
    (tmp_path / "c.mat").write_bytes(block + path.read_bytes())
    found = read_connectome(tmp_path / "c.mat", ATLAS)
    np.testing.assert_array_equal(found.matrix, expected)
