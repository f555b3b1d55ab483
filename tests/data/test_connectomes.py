"""Connectomes: order by name or documented size, triangles, and what is refused."""

import itertools

import numpy as np
import pytest

from brainlsap.data.atlas import load_atlas
from brainlsap.data.connectomes import check_connectome, read_connectome
from brainlsap.data.layouts import known_layouts, mrtrix_names, refusal
from brainlsap.data.subject_files import mrtrix_nodes
from brainlsap.exceptions import FileFormatError, ParameterError, RegionNameError


def write_named(path, matrix, rows, columns=None):
    columns = rows if columns is None else columns
    lines = ["," + ",".join(columns)]
    lines += [
        f"{name}," + ",".join(f"{v:.10g}" for v in row)
        for name, row in zip(rows, matrix, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("seed", range(4))
def test_any_order_of_named_rows_and_columns_gives_the_same(
    tmp_path, tiny, matrix, seed
):
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(7), rng.permutation(7)
    names = np.array(tiny.names)
    path = write_named(
        tmp_path / "c.csv", matrix[np.ix_(rows, columns)], names[rows], names[columns]
    )
    np.testing.assert_array_equal(read_connectome(path, tiny).matrix, matrix)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("triangle", [np.triu, np.tril])
def test_a_permuted_triangle_is_mirrored(tmp_path, tiny, matrix, triangle, seed):
    order = np.random.default_rng(seed).permutation(7)
    names = np.array(tiny.names)[order]
    half = triangle(matrix)[np.ix_(order, order)]
    found = read_connectome(write_named(tmp_path / "c.csv", half, names), tiny)
    np.testing.assert_array_equal(found.matrix, matrix)
    assert any("mirrored" in note for note in found.notes)


def test_spellings_and_names_to_leave_out(tmp_path, tiny, matrix):
    big = np.pad(matrix, (1, 1), constant_values=99)
    names = ["Unknown", "ctx-lh-a", "lh.b", "c_lh", "R a", "ctx_rh_b", "rh_c"]
    names += ["Left-Amygdala", "Left-Cerebellum-Cortex"]
    found = read_connectome(write_named(tmp_path / "c.csv", big, names), tiny)
    np.testing.assert_array_equal(found.matrix, matrix)
    assert "left out, not in tiny: Unknown, Left-Cerebellum-Cortex" in found.notes


def test_freesurfer_numbers_are_names(tmp_path, tiny, matrix):
    order = np.argsort(tiny.regions["freesurfer_id"])
    names = tiny.regions["freesurfer_id"][order].astype(str).tolist()
    path = write_named(tmp_path / "c.csv", matrix[np.ix_(order, order)], names)
    np.testing.assert_array_equal(read_connectome(path, tiny).matrix, matrix)


@pytest.mark.parametrize("start", [0, 1])
def test_names_that_only_count_are_no_names(tmp_path, tiny, matrix, start):
    names = [str(i) for i in range(start, start + 7)]
    found = read_connectome(write_named(tmp_path / "c.csv", matrix, names), tiny)
    np.testing.assert_array_equal(found.matrix, matrix)
    assert found.notes == ("read in the order of tiny",)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt", ".npy"])
def test_numbers_alone_are_read_in_atlas_order(tmp_path, tiny, matrix, suffix):
    path = tmp_path / f"c{suffix}"
    np.save(path, matrix) if suffix == ".npy" else np.savetxt(path, matrix)
    np.testing.assert_array_equal(read_connectome(path, tiny).matrix, matrix)


def test_labels_name_the_rows(tmp_path, tiny, matrix):
    np.savetxt(tmp_path / "c.txt", matrix[::-1, ::-1])
    names = tiny.names[::-1]
    (tmp_path / "names.txt").write_text("\n".join(names))
    for labels in (names, tmp_path / "names.txt"):
        found = read_connectome(tmp_path / "c.txt", tiny, labels=labels)
        np.testing.assert_array_equal(found.matrix, matrix)
    with pytest.raises(FileFormatError, match="7 rows, but 2 labels were given"):
        read_connectome(tmp_path / "c.txt", tiny, labels=["lh_a", "lh_b"])


@pytest.mark.parametrize(
    ("name", "sizes", "dropped"),
    [("destrieux160", (164, 165), 4), ("desikan82", (84, 85), 2)],
)
def test_mrtrix_sizes_are_mapped_by_name(tmp_path, name, sizes, dropped):
    atlas = load_atlas(name)
    names = mrtrix_names(atlas)
    # each weight tells its two nodes, so that any slip shows
    full = np.arange(1.0, len(names) + 1)
    full = np.add.outer(full, 1000 * full)
    for size in sizes:
        extra = size - len(names)
        np.savetxt(tmp_path / "c.csv", np.pad(np.triu(full), (extra, 0)), "%d", ",")
        found = read_connectome(tmp_path / "c.csv", atlas)
        for i, j in [(0, 1), (5, len(atlas) - 1), (40, 70), (len(atlas) - 2, 33)]:
            a, b = sorted(names.index(atlas.names[k]) for k in (i, j))
            assert found.matrix[i, j] == found.matrix[j, i] == full[a, b]
        left = next(note for note in found.notes if note.startswith("left out"))
        assert left.count(",") == dropped + extra  # one comma more than names


def test_mrtrix_names_agree_with_the_writer():
    for name in ("destrieux160", "desikan82"):
        atlas = load_atlas(name)
        nodes = [atlas.find(node) for node in mrtrix_names(atlas)]
        expected = mrtrix_nodes(atlas).tolist()
        assert [-1 if node is None else node for node in nodes] == expected


def test_mrtrix_names_are_those_of_labelconvert():
    # from fs_a2009s.txt and fs_default.txt: 1-based node and name
    published = {
        "destrieux160": {
            1: "ctx_lh_G_and_S_frontomargin",
            42: "ctx_lh_Pole_occipital",
            60: "ctx_lh_S_oc-temp_lat",
            61: "ctx_lh_S_oc-temp_med_and_Lingual",
            74: "ctx_lh_S_temporal_transverse",
            75: "Left-Cerebellum-Cortex",
            76: "Left-Thalamus",
            80: "Left-Hippocampus",
            82: "Left-Accumbens-area",
            83: "Right-Thalamus",
            90: "ctx_rh_G_and_S_frontomargin",
            163: "ctx_rh_S_temporal_transverse",
            164: "Right-Cerebellum-Cortex",
        },
        "desikan82": {
            1: "ctx-lh-bankssts",
            4: "ctx-lh-cuneus",
            31: "ctx-lh-frontalpole",
            34: "ctx-lh-insula",
            35: "Left-Cerebellum-Cortex",
            42: "Left-Accumbens-area",
            43: "Right-Thalamus",
            50: "ctx-rh-bankssts",
            84: "Right-Cerebellum-Cortex",
        },
    }
    for atlas, nodes in published.items():
        names = mrtrix_names(load_atlas(atlas))
        assert {number: names[number - 1] for number in nodes} == nodes


@pytest.mark.parametrize(
    ("atlas", "size", "reading"),
    [
        ("destrieux160", 148, "cortex only"),
        ("destrieux160", 150, "a medial wall on each side"),
        ("destrieux160", 152, "Unknown and Medial_wall"),
        ("destrieux160", 166, "two medial walls"),
        ("destrieux160", 84, "atlas desikan82"),
        ("desikan82", 68, "cortex only"),
        ("desikan82", 164, "atlas destrieux160"),
    ],
)
def test_sizes_without_an_order_are_refused(tmp_path, atlas, size, reading):
    np.save(tmp_path / "c.npy", np.ones((size, size)))
    message = rf"a matrix of {size} x {size} without names .* could be: .*{reading}"
    with pytest.raises(FileFormatError, match=message):
        read_connectome(tmp_path / "c.npy", load_atlas(atlas))


def test_84_rows_with_empty_callosa_are_not_mrtrix(tmp_path):
    values = np.ones((84, 84))
    values[[3, 38]] = values[:, [3, 38]] = 0
    np.save(tmp_path / "c.npy", values)
    with pytest.raises(
        FileFormatError, match=r"84 rows .* rows 4 and 39 are empty, as"
    ):
        read_connectome(tmp_path / "c.npy", load_atlas("desikan82"))


def test_refusal_lists_what_is_known(tiny):
    text = refusal(55, tiny)
    assert "55 x 55" in text
    assert "could be" not in text
    assert "7 (read in the order of tiny); 8 (read in the order of tiny after" in text
    assert sorted(known_layouts(tiny)) == [7, 8]


def change(matrix, *places, value):
    matrix = matrix.copy()
    for place in places:
        matrix[place] = value
    return matrix


@pytest.mark.parametrize(
    ("places", "value", "message"),
    [
        ([(1, 4)], np.nan, "1 weights are NaN, first nan between lh_b and rh_b"),
        ([(1, 4)], np.inf, "1 weights are infinite"),
        ([(1, 4), (4, 1)], -2, "2 weights are negative, first -2.0 between lh_b"),
        ([(1, 4)], 99, "not symmetric, 99.0 from lh_b to rh_b but 9.0 back"),
    ],
)
def test_weights_refused(tmp_path, tiny, matrix, places, value, message):
    path = tmp_path / "c.npy"
    np.save(path, change(matrix, *places, value=value))
    with pytest.raises(FileFormatError, match=rf"c\.npy: {message}"):
        read_connectome(path, tiny)


@pytest.mark.parametrize("matrix", [np.zeros((7, 7)), np.eye(7)])
def test_nothing_connected_is_refused(tmp_path, tiny, matrix):
    np.save(tmp_path / "c.npy", matrix)
    with pytest.raises(FileFormatError, match="every weight between two regions is 0"):
        read_connectome(tmp_path / "c.npy", tiny)


def test_rounding_is_averaged_and_said(tmp_path, tiny, matrix):
    np.save(tmp_path / "c.npy", change(matrix, (1, 4), value=9.00001))
    found = read_connectome(tmp_path / "c.npy", tiny)
    assert found.matrix[1, 4] == found.matrix[4, 1] == pytest.approx(9.000005)
    assert "the two triangles differ by rounding: averaged" in found.notes


def test_diagonal_is_kept(tmp_path, tiny, matrix):
    np.save(tmp_path / "c.npy", np.triu(matrix) + 5 * np.eye(7))
    found = read_connectome(tmp_path / "c.npy", tiny)
    np.testing.assert_array_equal(found.matrix, matrix + 5 * np.eye(7))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("lh_a",) * 7, "came more than once: lh_a as"),
        (
            ("lh_aa", "lh_b", "lh_c", "rh_a", "rh_b", "rh_c", "x"),
            "2 of 7 names unknown to atlas tiny",
        ),
        (
            ("lh_a", "lh_b", "lh_c", "rh_a", "rh_b", "rh_c", "CSF"),
            "1 of the 7 regions of",
        ),
    ],
)
def test_names_refused(tmp_path, tiny, matrix, names, message):
    path = write_named(tmp_path / "c.csv", matrix, names)
    with pytest.raises(RegionNameError, match=rf"c\.csv: .*{message}"):
        read_connectome(path, tiny)


def test_suffix_refused(tmp_path, tiny):
    for name, said in (("c.xlsx", r"got \.xlsx"), ("c", "got a name without suffix")):
        with pytest.raises(
            FileFormatError, match=rf"\.csv, \.dat, .*\.txt files, {said}"
        ):
            read_connectome(tmp_path / name, tiny)


def test_a_changed_digit_changes_that_cell_alone(tmp_path, tiny, matrix):
    path = write_named(tmp_path / "c.csv", matrix, tiny.names)
    text = path.read_text()
    seen = set()
    for place in itertools.islice((i for i, c in enumerate(text) if c == "7"), 2):
        path.write_text(text[:place] + "8" + text[place + 1 :])
        with pytest.raises(FileFormatError, match="not symmetric"):
            read_connectome(path, tiny)
        seen.add(place)
    assert len(seen) == 2


def test_cut_files_are_refused(tmp_path, tiny, matrix):
    path = write_named(tmp_path / "c.csv", matrix, tiny.names)
    text = path.read_text()
    for length in range(0, len(text) - 3, 7):
        path.write_text(text[:length])
        with pytest.raises((FileFormatError, RegionNameError)):
            read_connectome(path, tiny)


def test_check_connectome(tiny, matrix):
    found = check_connectome(np.tril(matrix), tiny)
    np.testing.assert_array_equal(found.matrix, matrix)
    with pytest.raises(ParameterError, match=r"must have shape \(7, 7\) for tiny, got"):
        check_connectome(np.ones((3, 3)), tiny)
    with pytest.raises(FileFormatError, match="mine: 1 weights are NaN"):
        check_connectome(change(matrix, (0, 2), value=np.nan), tiny, "mine")


def test_real_template_connectome(shared):
    folder = shared / "tract_mni_destrieux" / "expected"
    atlas = load_atlas("destrieux160")
    whole = read_connectome(folder / "count_radial4_sym_zerodiag.csv", atlas)
    raw = np.loadtxt(folder / "count_radial4_sym_zerodiag.csv", delimiter=",")
    names = mrtrix_names(atlas)
    order = [names.index(name) for name in atlas.names]
    np.testing.assert_array_equal(whole.matrix, raw[np.ix_(order, order)])
    half = read_connectome(folder / "count_endvoxels.csv", atlas)
    assert "only the upper triangle is filled: mirrored" in half.notes
    np.testing.assert_array_equal(half.matrix, half.matrix.T)
