"""Connectomes of every tool come out by name; what could be misread is refused."""

import gzip
import itertools
import json
import re

import h5py
import numpy as np
import pandas as pd
import pytest
from scipy.io import loadmat, savemat

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data.connectomes import FORMATS, read_connectome
from brainlsap.data.row_order import UNKNOWN_ORDER
from brainlsap.exceptions import (
    BrainlsapError,
    FileFormatError,
    ParameterError,
    RegionNameError,
)
from tests.conftest import raises_kind
from tests.data import formats

ATLAS = load_atlas("destrieux160")
N = len(ATLAS)
EXPECTED = formats.telling_matrix(N)
NAMES = np.array(ATLAS.names)
NOT_FINITE = "weights not finite"
ENDINGS = ("npz", "npy", "mat", "h5", "gii", "csv.gz")


def same(found, expected):
    np.testing.assert_array_equal(found.matrix, expected)
    assert found.matrix.dtype == np.float32
    return found.notes


# ---- text ---------------------------------------------------------------------------


def text_of(values, delimiter=",", rows=None, columns=None, corner="", end=""):
    """Return a matrix as text; corner=None leaves the head a cell shorter."""
    lines = [delimiter.join(f"{v:.10g}" for v in row) for row in values]
    if rows is not None:
        lines = [f"{n}{delimiter}{x}" for n, x in zip(rows, lines, strict=True)]
    if columns is not None:
        head = [*([] if corner is None else [corner]), *columns]
        lines.insert(0, delimiter.join(head))
    return "".join(f"{line}{end}\n" for line in lines)


@pytest.fixture
def read(write, tiny):
    def read(text, **options):
        return read_connectome(write("c.csv", text), tiny, **options)

    return read


@pytest.mark.parametrize("delimiter", [",", "\t", ";", " ", "   "])
@pytest.mark.parametrize("end", ["", ",", " "])
@pytest.mark.parametrize("scale", [1, 1.5, 1e-7])
def test_numbers_alone(read, matrix, delimiter, end, scale):
    end = delimiter if end == "," else end
    text = "# command_history: tck2connectome a.tck, b.mif\r\n" * (scale == 1)
    text += text_of(matrix * scale, delimiter, end=end)
    found = read(text)
    np.testing.assert_allclose(found.matrix, matrix * scale, rtol=1e-6)
    assert found.notes == ("the rows were read in the order of tiny",)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("corner", ["", "region", "No.", None])
def test_any_order_of_named_rows_and_columns_gives_the_same(
    read, tiny, matrix, seed, corner
):
    rng, names = np.random.default_rng(seed), np.array(tiny.names)
    i, j = rng.permutation(7), rng.permutation(7)
    text = text_of(matrix[np.ix_(i, j)], ",", names[i], names[j], corner)
    assert same(read(text), matrix) == ("read by name",)


@pytest.mark.parametrize("delimiter", [",", "\t", ";", " "])
@pytest.mark.parametrize("corner", ["", None])  # R's write.table has none
def test_names_in_quotes_may_have_delimiters(write, matrix, delimiter, corner):
    names = [f"{side} gyrus; {k},\t1" for side in ("left", "right") for k in range(4)]
    quoted = [f'"{name}"' for name in names[:7]]
    text = text_of(matrix[::-1, ::-1], delimiter, quoted[::-1], quoted[::-1], corner)
    found = read_connectome(write("c.csv", text), Atlas.from_names(names[:7]))
    assert same(found, matrix) == ("read by name",)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("triangle", [np.triu, np.tril])
def test_a_permuted_triangle_is_mirrored(read, tiny, matrix, triangle, seed):
    order = np.random.default_rng(seed).permutation(7)
    names = np.array(tiny.names)[order]
    half = triangle(matrix)[np.ix_(order, order)]
    notes = same(read(text_of(half, ",", names, names)), matrix)
    assert any("copied to the other" in note for note in notes)


def test_names_on_one_side_or_beside_a_count_serve_both(read, tiny, matrix):
    order = np.array([4, 0, 6, 2, 5, 1, 3])
    names = np.array(tiny.names)[order]
    values = matrix[np.ix_(order, order)]
    for start in (0, 1):
        counts = [str(i + start) for i in range(7)]
        for rows, columns, corner in (
            (None, names, None),
            (names, None, None),
            (counts, names, ""),
            (names, counts, ""),
            (counts, names, None),  # as R's write.table
        ):
            text = text_of(values, ",", rows, columns, corner)
            assert same(read(text), matrix) == ("read by name",)
        # names that only count the rows are no names
        notes = same(read(text_of(matrix, ",", counts, counts)), matrix)
        assert notes == ("the rows were read in the order of tiny",)


@pytest.mark.parametrize("head", ["# {}", "#region,{}"])
@pytest.mark.parametrize("delimiter", [",", " "])
def test_names_in_a_comment_are_names(read, tiny, matrix, head, delimiter):
    names = tiny.names[::-1]
    said = head.replace(",", delimiter).format(delimiter.join(names))
    rows = names if "region" in head else None
    text = f"# made by hand\n{said}\n{text_of(matrix[::-1, ::-1], delimiter, rows)}"
    same(read(text), matrix)


def test_spellings_numbers_and_names_to_leave_out(read, tiny, matrix):
    big = np.pad(matrix, (1, 1), constant_values=99)
    names = ["Unknown", "ctx-lh-a", "lh.b", "c_lh", "R a", "ctx_rh_b", "rh_c"]
    names += ["Left-Amygdala", "Left-Cerebellum-Cortex"]
    notes = same(read(text_of(big, ",", names, names)), matrix)
    assert (
        "rows that are not regions of the atlas tiny are left out: Unknown, "
        "Left-Cerebellum-Cortex" in notes
    )
    order = np.argsort(tiny.regions["freesurfer_id"])
    numbers = tiny.regions["freesurfer_id"][order].astype(str).tolist()
    text = text_of(matrix[np.ix_(order, order)], ",", numbers, numbers)
    same(read(text), matrix)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "empty file"),
        ("1,2,3\n4,5,6\n", "matrix shape"),
        ("1,2\n3\n", "unreadable"),
        ("1,5;2\n3,5;4\n", "decimal commas"),
        ('"1,5","2"\n"3,5","4"\n', "decimal commas"),
        ("1 2\n3 x\n", "unreadable"),
        ("a,b\n1,2\n3,\n", "unreadable"),
        ("a,b,c\n1,2\n3,4\n", "names per axis"),
        ("a,b\n", "names per axis"),
        ("1,2\n3,\0\n", "zero bytes"),
    ],
)
def test_text_refused(read, text, kind):
    with raises_kind(kind, "c.csv"):
        read(text)


@pytest.mark.parametrize(
    ("text", "cell_text"),
    [
        ("a;b\n1;2\n3,5;4\n", "'3,5' in row 3, column 1"),
        ("1 2,5\n3,5 4\n", "'2,5' in row 1, column 2"),
        ('"1","2,25"\n"3,5","4"\n', "'2,25' in row 1, column 2"),
    ],
)
def test_the_first_cell_with_a_decimal_comma_is_named(read, text, cell_text):
    with raises_kind("decimal commas", "c.csv") as caught:
        read(text)
    assert caught.value.got == cell_text
    assert "decimal points" in caught.value.advice


@pytest.mark.parametrize("suffix", FORMATS)
def test_an_empty_file_of_every_format_is_refused(tmp_path, suffix, monkeypatch):
    path = tmp_path / f"empty{suffix}"
    path.write_bytes(b"")
    with raises_kind("empty file", path.name):
        read_connectome(path, "desikan82")
    # Also if the reader of a format returns no matrix of a file with other content.
    path.write_bytes(b"\n")
    reader = FORMATS[suffix]._replace(read_matrices=lambda _: [])
    monkeypatch.setitem(FORMATS, suffix, reader)
    with raises_kind("empty file", path.name):
        read_connectome(path, "desikan82")


WHOLE_MATRICES = {
    *(".csv", ".dat", ".gz", ".tsv", ".txt", ".h5", ".hdf5", ".gii", ".mat"),
    *(".npy", ".npz"),
}
"""Formats with one value for each pair of regions: none can stand twice."""
TEXT_WITH_A_CONNECTION_TWICE: dict[str, str] = {}
"""Of each format that lists connections: a file that lists one in its last line again.

It has an empty line, so that numbers of lines in messages are compared, too. The last
cell of a line is the weight. The test makes lines that are cut or have no number of it.
"""


def check_wrong_lines_are_refused(path, lines, atlas):
    """Check what is read if lines of a list of connections are wrong or missing."""
    *lines, last_line = lines
    first_cell, *_, weight = split_cells(last_line)
    without_weight = last_line.removesuffix(weight) + "x"
    for wrong_line in (last_line, first_cell, without_weight):
        path.write_text("\n".join([*lines, wrong_line, ""]))
        with pytest.raises(FileFormatError, match=rf"line {len(lines) + 1}\b"):
            read_connectome(path, atlas)
    # A reader that takes every line before the first number as a head loses these.
    for wrong_line in (first_cell, without_weight):
        path.write_text("\n".join([lines[0], wrong_line, *lines[1:], ""]))
        with pytest.raises(FileFormatError, match=r"line 2\b"):
            read_connectome(path, atlas)
    if not is_number(split_cells(lines[0])[-1]):
        path.write_text(f"{lines[0]}\n")
        with pytest.raises(BrainlsapError):
            read_connectome(path, atlas)


def split_cells(line):
    return re.findall(r"[^\s,;]+", line)


def is_number(cell):
    return re.fullmatch(r"[-+.\de]*\d", cell) is not None


def test_a_wrong_line_of_a_list_of_connections_is_refused_with_its_number(tmp_path):
    assert FORMATS.keys() == WHOLE_MATRICES | TEXT_WITH_A_CONNECTION_TWICE.keys(), (
        "add the suffix to one of the two; a list of connections needs an example"
    )
    for suffix, text in TEXT_WITH_A_CONNECTION_TWICE.items():
        path = tmp_path / f"wrong{suffix}"
        check_wrong_lines_are_refused(path, text.splitlines(), "desikan82")


def test_an_empty_file_is_refused_with_a_way_out(read):
    with pytest.raises(FileFormatError) as error:
        read("")
    assert "skip_faulty=True" in error.value.advice


@pytest.mark.parametrize("axis", [0, 1])
def test_a_lost_row_or_column_is_named(read, tiny, matrix, axis):
    names = [list(tiny.names), list(tiny.names)]
    lost_name = names[axis].pop(4)
    rows = np.delete(matrix, 4, axis=axis)
    text = text_of(rows, ",", names[0], names[1])
    word = ("row", "column")[axis]
    message = f"the {word} of {lost_name} is missing"
    with raises_kind("names per axis") as caught:
        read(text)
    assert message in str(caught.value)


def test_one_number_is_no_matrix(read):
    with raises_kind("unknown order", "c.csv"):
        read("7\n")


def test_cut_and_changed_files_are_refused(read, tiny, matrix):
    text = text_of(matrix, ",", tiny.names, tiny.names)
    for length in range(0, len(text) - 3, 11):
        with pytest.raises((FileFormatError, RegionNameError)):
            read(text[:length])
    for place in [i for i, c in enumerate(text) if c == "7"][:2]:
        with raises_kind("not symmetric"):
            read(text[:place] + "8" + text[place + 1 :])


# ---- weights, symmetry, names -------------------------------------------------------


def change(matrix, *places, value):
    matrix = matrix.copy()
    for place in places:
        matrix[place] = value
    return matrix


@pytest.mark.parametrize(
    ("places", "value", "kind", "got"),
    [
        (
            [(1, 4)],
            np.nan,
            NOT_FINITE,
            "1 NaN or infinite weights, for example nan between lh_b and rh_b",
        ),
        (
            [(1, 4)],
            np.inf,
            NOT_FINITE,
            "1 NaN or infinite weights, for example inf between lh_b and rh_b",
        ),
        (
            [(2, 2)],
            np.inf,
            NOT_FINITE,
            "1 NaN or infinite weights, for example inf between lh_c and lh_c",
        ),
        (
            [(1, 4), (4, 1)],
            -2,
            "negative weights",
            "2 negative weights, the lowest -2",
        ),
        (
            [(1, 4)],
            99,
            "not symmetric",
            "99.0 from lh_b to rh_b, but 9.0 in the opposite direction",
        ),
        ([np.s_[:]], 0, "no connections", ""),
    ],
)
def test_weights_refused(tmp_path, tiny, matrix, places, value, kind, got):
    np.save(tmp_path / "c.npy", change(matrix, *places, value=value))
    with raises_kind(kind, "c.npy", BrainlsapError) as caught:
        read_connectome(tmp_path / "c.npy", tiny)
    assert caught.value.got == got


def test_symmetrize_is_decided_by_the_reader(tmp_path, tiny, matrix):
    path = tmp_path / "c.npy"
    np.save(path, change(matrix, (1, 4), value=99))
    for how, value in (("mean", 54), ("max", 99)):
        found = read_connectome(path, tiny, symmetrize=how)
        expected = change(matrix, (1, 4), (4, 1), value=value)
        assert f"symmetrize={how!r}" in same(found, expected)[-1]
    with pytest.raises(ParameterError, match="symmetrize must be one of"):
        read_connectome(path, tiny, symmetrize="sum")
    np.save(path, change(matrix, (1, 4), value=9.00001))
    found = read_connectome(path, tiny)
    assert found.matrix[1, 4] == found.matrix[4, 1] == pytest.approx(9.000005)
    assert any("rounding errors, so their mean" in note for note in found.notes)
    np.save(path, np.triu(matrix) + 5 * np.eye(7))  # the diagonal is kept
    same(read_connectome(path, tiny), matrix + 5 * np.eye(7))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("lh_a lh_a lh_a lh_a lh_a lh_a lh_a", "occurs more than once: lh_a as"),
        ("lh_aa lh_b lh_c rh_a rh_b rh_c x", "2 of 7 names .* atlas tiny"),
        ("lh_a lh_b lh_c rh_a rh_b rh_c CSF", "1 of the 7 regions of tiny are missing"),
    ],
)
def test_names_refused(read, matrix, names, message):
    with pytest.raises(RegionNameError, match=rf"c\.csv: .*{message}"):
        read(text_of(matrix, ",", names.split(), names.split()))


def test_another_parcellation_is_refused_with_the_step(tmp_path):
    names = load_atlas("desikan82").names
    path = formats.write_npz(tmp_path / "c.npz", formats.telling_matrix(82), names)
    message = r"belong to desikan82, not to destrieux160\. Make .*labelconvert aparc"
    with pytest.raises(RegionNameError, match=message):
        read_connectome(path, ATLAS)


def test_matrices_in_memory(tiny, matrix):
    same(read_connectome(np.tril(matrix), tiny), matrix)
    frame = pd.DataFrame(matrix, tiny.names, tiny.names).iloc[::-1]
    same(read_connectome(frame, tiny), matrix)
    same(read_connectome(pd.DataFrame(matrix), tiny), matrix)
    with pytest.raises(
        FileFormatError,
        match=r"connectome=: the matrix has 3 rows, but the list contains 7 names",
    ):
        read_connectome(np.ones((3, 3)), tiny)
    with raises_kind(NOT_FINITE, "connectome="):
        read_connectome(change(matrix, (0, 2), value=np.nan), tiny)


def test_negative_weights_need_an_option(tmp_path, tiny, matrix):
    signed = change(matrix, (1, 4), (4, 1), value=-9)
    np.save(tmp_path / "c.npy", signed)
    for source in (tmp_path / "c.npy", signed):
        with raises_kind("negative weights", error=ParameterError):
            read_connectome(source, tiny)
        found = read_connectome(source, tiny, negative="drop")
        assert "negative weights were set to 0" in same(found, np.maximum(signed, 0))
        found = read_connectome(source, tiny, negative="absolute")
        assert "by their absolute values" in same(found, np.abs(signed))[-1]
    with pytest.raises(ParameterError, match="negative must be one of"):
        read_connectome(signed, tiny, negative="keep")


# ---- what each tool writes ----------------------------------------------------------


def write_listed(suffix):
    def write(folder, matrix, names):
        writers = {".gii": formats.write_gii, ".npy": np.save}
        writers.get(suffix, np.savetxt)(folder / f"c{suffix}", matrix)
        (folder / "labels.txt").write_text("\n".join(names))
        return folder / f"c{suffix}"

    return write


def write_xcp_d(folder, matrix, names):
    """Names on both sides, and commas in a .tsv."""
    path = folder / "sub-01_stat-pearson_relmat.tsv"
    pd.DataFrame(matrix, names, names).to_csv(path, index_label="Node")
    return path


def write_plain_mat(folder, matrix, names):
    savemat(folder / "c.mat", {"W": matrix, "names": formats.cells(names)})
    return folder / "c.mat"


def write_matlab_7_3(folder, matrix, names):
    """HDF5 behind 512 bytes; text is numbers, cells are references, all transposed."""
    path = folder / "c.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["connectome"] = matrix.T
        file["connectome"].attrs["MATLAB_class"] = np.bytes_("double")
        refs = []
        for place, name in enumerate(names):
            file[f"#refs#/{place}"] = np.array([[ord(c)] for c in name], np.uint16)
            refs.append([file[f"#refs#/{place}"].ref])
        file.create_dataset("names", data=np.array(refs, dtype=h5py.ref_dtype))
        file["names"].attrs["MATLAB_class"] = np.bytes_("cell")
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file")
    return path


def write_numbered(folder, matrix, names):
    """The labels' numbers beside the matrix, as Connectoflow has them."""
    ids = ATLAS.regions["freesurfer_id"][ATLAS.match(names)]
    return formats.write_connectoflow(folder, matrix, ids)


TOOLS = {
    "QSIRecon": lambda f, W, n: formats.write_qsirecon(f / "q.mat", {"count": W}, n),
    "QSIPrep": lambda f, W, n: formats.write_qsirecon(f / "q.mat", {"count": W}, n, ""),
    "DSI Studio, old": lambda f, W, n: formats.write_dsi_studio(
        f / "d.count.end.connectivity.mat", {"count": W}, n, current=False
    ),
    "DSI Studio": lambda f, W, n: formats.write_dsi_studio(
        f / "d.connectivity.mat", {"count": W, "qa": W / 2}, n
    ),
    "HDF5": lambda f, W, n: formats.write_h5(f / "c.h5", W, n),
    "npz": lambda f, W, n: formats.write_npz(f / "c.npz", W, n),
    "npz, triangle": lambda f, W, n: formats.write_npz(f / "c.npz", np.triu(W), n),
    "BIDS": formats.write_relmat,
    "BIDS, gz": lambda f, W, n: formats.write_relmat(f, W, n, packed=True),
    "XCP-D": write_xcp_d,
    "Connectoflow": formats.write_connectoflow,
    "Connectoflow, numbers": write_numbered,
    "MATLAB": write_plain_mat,
    "MATLAB 7.3": write_matlab_7_3,
    "gii with a list": write_listed(".gii"),
    "npy with a list": write_listed(".npy"),
    "text with a list": write_listed(".txt"),
}


def check_every_weight(folder, write, *, has_both_directions=True):
    """Check what is read from the file of a writer; return the path of the file."""
    order = np.random.default_rng(1).permutation(N)
    weights = EXPECTED / 8  # All weights differ; some are no whole numbers.
    weights[3, 7] = weights[7, 3] = 0
    weights[5] = weights[:, 5] = 0  # Region 5 has no connection.
    path = write(folder, weights[np.ix_(order, order)], NAMES[order])
    same(read_connectome(path, ATLAS), weights)
    if has_both_directions:
        # The reader returns both as they are: the package refuses the file.
        weights[1, 4] += 99
        other_folder = folder / "asymmetric"
        other_folder.mkdir()
        other_path = write(other_folder, weights[np.ix_(order, order)], NAMES[order])
        with raises_kind("not symmetric", other_path.name) as caught:
            read_connectome(other_path, ATLAS)
        direction_text = f"{weights[1, 4]} from {NAMES[1]} to {NAMES[4]}, "
        assert caught.value.got.startswith(direction_text), "rows and columns exchanged"
    return path


@pytest.mark.parametrize("tool", TOOLS)
def test_every_weight_of_every_tool_comes_out_by_name(tmp_path, tool):
    has_both_directions = "triangle" not in tool
    path = check_every_weight(
        tmp_path, TOOLS[tool], has_both_directions=has_both_directions
    )
    content = path.read_bytes()
    lines = content.decode().splitlines() if content.isascii() else [""]
    last_cells = split_cells(lines[-1])
    is_list = 2 < len(last_cells) < N and is_number(last_cells[-1])
    if is_list:  # of connections, in a suffix that others use for whole matrices
        # An empty line is a line of the file, too.
        lines = [*lines[:-1], "", lines[-1], lines[-1]]
        check_wrong_lines_are_refused(path, lines, ATLAS)


def write_named_text(suffix):
    """Return a writer of text whose first row and column contain the names."""

    def write(folder, matrix, names):
        path = folder / f"c{suffix}"
        pd.DataFrame(matrix, names, names).to_csv(path, index_label="region")
        return path

    return write


# Of every format, a writer `(folder, matrix, names) -> path of the matrix`. The names
# are written into the file, or beside it if the format has no place for names.
WRITERS_BY_SUFFIX = {
    **{suffix: write_named_text(suffix) for suffix in (".csv", ".dat", ".tsv", ".txt")},
    ".gz": write_named_text(".csv.gz"),
    ".gii": TOOLS["gii with a list"],
    ".h5": TOOLS["HDF5"],
    ".hdf5": lambda f, W, n: formats.write_h5(f / "c.hdf5", W, n),
    ".mat": TOOLS["MATLAB"],
    ".npy": TOOLS["npy with a list"],
    ".npz": TOOLS["npz"],
}


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_weight_of_every_format_comes_out_by_name(tmp_path, suffix):
    assert suffix in WRITERS_BY_SUFFIX, (
        f"add a function that writes a matrix with names as {suffix} to "
        "WRITERS_BY_SUFFIX of tests/data/test_connectomes.py"
    )
    path = check_every_weight(tmp_path, WRITERS_BY_SUFFIX[suffix])
    assert path.suffix == suffix


def test_measures_of_one_file(tmp_path):
    matrices = {"radius2_meanlength": EXPECTED * 2, "sift_radius2_count": EXPECTED}
    path = formats.write_qsirecon(tmp_path / "c.mat", matrices, NAMES)
    notes = same(read_connectome(path, ATLAS), EXPECTED)
    named_words = ("sift_radius2_count", "measure=", "radius2_meanlength")
    assert all(word in notes[0] for word in named_words)
    found = read_connectome(path, ATLAS, measure="radius2_meanlength")
    same(found, EXPECTED * 2)
    with raises_kind("no such measure", path.name):
        read_connectome(path, ATLAS, measure="fa")
    # one more parcellation in the file: the atlas chooses
    content = {k: v for k, v in loadmat(path).items() if k[0] != "_"}
    stem = "atlas_Schaefer100_"
    content[f"{stem}region_labels"] = formats.cells([f"LH_{i}" for i in range(100)])
    content[f"{stem}sift_radius2_count_connectivity"] = np.ones((100, 100))
    savemat(path, content)
    same(read_connectome(path, ATLAS), EXPECTED)
    both = {"qa": EXPECTED, "fa": EXPECTED}
    path = formats.write_dsi_studio(tmp_path / "d.mat", both, NAMES)
    with raises_kind("several matrices"):
        read_connectome(path, ATLAS)


def test_absent_regions_of_dsi_studio_and_qsirecon(tmp_path):
    gone = [5, 77]
    kept = np.setdiff1d(np.arange(N), gone)
    wanted = change(EXPECTED, np.s_[gone], np.s_[:, gone], value=0)
    without = EXPECTED[np.ix_(kept, kept)]
    dsi = formats.write_dsi_studio(tmp_path / "d.mat", {"count": without}, NAMES[kept])
    empty = change(EXPECTED, np.s_[gone], np.s_[:, gone], value=np.nan)
    qsi = formats.write_qsirecon(tmp_path / "q.mat", {"radius2_count": empty}, NAMES)
    listed = ", ".join(NAMES[gone])
    for path in (dsi, qsi):
        notes = same(read_connectome(path, ATLAS), wanted)
        assert (
            "regions that are absent from the file count as regions without "
            f"connections: {listed}" in notes
        )
    few = kept[:-20]
    matrix = EXPECTED[np.ix_(few, few)]
    formats.write_dsi_studio(tmp_path / "f.mat", {"count": matrix}, NAMES[few])
    with pytest.raises(RegionNameError, match="22 of the 160 regions of destrieux160"):
        read_connectome(tmp_path / "f.mat", ATLAS)


# ---- names beside a matrix in one file ----------------------------------------------

ORDER = np.array([4, 0, 6, 2, 5, 1, 3])


@pytest.fixture
def shuffled(matrix, tiny):
    """Rows in another order than the atlas', of a size that fits it."""
    return matrix[np.ix_(ORDER, ORDER)], np.array(tiny.names)[ORDER]


@pytest.mark.parametrize("key", ["node_names", "roi_labels", "RegionNames", "ROI"])
def test_names_under_any_key(tmp_path, tiny, matrix, shuffled, key):
    values, names = shuffled
    np.savez(tmp_path / "c.npz", connectome=values, **{key: names})
    savemat(tmp_path / "c.mat", {"connectome": values, key: formats.cells(names)})
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file["connectome"] = values
        file[key] = np.array(names, dtype=h5py.string_dtype())[:, None]
    for suffix in ("npz", "mat", "h5"):
        found = read_connectome(tmp_path / f"c.{suffix}", tiny)
        assert same(found, matrix) == ("read by name",)


@pytest.mark.parametrize("key", ["labels", "region_ids", "ids"])
def test_numbers_of_labels_are_names(tmp_path, tiny, matrix, shuffled, key):
    numbers = tiny.regions["freesurfer_id"].to_numpy()[ORDER]
    np.savez(tmp_path / "c.npz", connectome=shuffled[0], **{key: numbers})
    savemat(tmp_path / "c.mat", {"connectome": shuffled[0], key: numbers * 1.0})
    for suffix in ("npz", "mat"):
        same(read_connectome(tmp_path / f"c.{suffix}", tiny), matrix)
    # what does not distinguish the rows names none of them
    for values in (numbers > 2000, np.arange(7) / 2):
        np.savez(tmp_path / "d.npz", connectome=matrix, **{key: values})
        assert "order of tiny" in read_connectome(tmp_path / "d.npz", tiny).notes[0]


@pytest.mark.parametrize("names", [[1, 0, 1], [2, 2, 0], None])
def test_names_that_are_repeated_are_refused_and_not_ignored(tmp_path, names):
    """Without its names, a matrix would be advised to be read in the atlas' order."""
    if names is None:  # names without a hemisphere stand twice
        texts = [re.sub("ctx-[lr]h-|Left-|Right-", "", name) for name in ATLAS.names]
    else:
        texts = [ATLAS.names[k] for k in names] + list(ATLAS.names[3:])
    n_rois = len(ATLAS)
    matrix = formats.telling_matrix(n_rois)
    np.savez(tmp_path / "c.npz", connectome=matrix, regions=np.array(texts))
    savemat(tmp_path / "c.mat", {"connectome": matrix, "rows": formats.cells(texts)})
    for suffix in ("npz", "mat"):
        with pytest.raises(RegionNameError) as caught:
            read_connectome(tmp_path / f"c.{suffix}", ATLAS)
        assert "row_order" not in str(caught.value)
    # a list of networks is no list of names
    networks = np.array([f"network {i % 7}" for i in range(n_rois)])
    np.savez(tmp_path / "c.npz", connectome=matrix, regions=networks)
    with raises_kind(UNKNOWN_ORDER, "c.npz"):
        read_connectome(tmp_path / "c.npz", ATLAS)


def test_names_of_another_matrix_are_not_taken(tmp_path, tiny, matrix, shuffled):
    other = {"b_count_connectivity": np.ones((3, 3)), "b_region_labels": shuffled[1]}
    np.savez(tmp_path / "c.npz", a_connectivity=matrix, **other)
    assert "order of tiny" in read_connectome(tmp_path / "c.npz", tiny).notes[0]


def test_lists_that_do_not_fit_are_refused(tmp_path, tiny, matrix, shuffled):
    path = tmp_path / "c.npz"
    np.savez(path, connectome=matrix, names=np.array(["Unknown", *tiny.names]))
    with raises_kind("names per row", "c.npz"):
        read_connectome(path, tiny)
    lists = {"rows_of": shuffled[1], "nodes": np.array(tiny.names)}
    np.savez(path, connectome=shuffled[0], **lists)
    with raises_kind("names per row", "c.npz"):
        read_connectome(path, tiny)
    np.savez(path, connectome=matrix, names=np.array("counts of a study"))
    assert "order of tiny" in read_connectome(path, tiny).notes[0]


# ---- broken files -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((f"c.{end}", "unreadable") for end in (*ENDINGS, "npy.gz")),
        ("c.xlsx", "unknown format"),
        ("c", "unknown format"),
    ],
)
def test_broken_files_and_other_formats_are_refused(tmp_path, tiny, name, kind):
    (tmp_path / name).write_bytes(b"not what it says")
    with raises_kind(kind, name):
        read_connectome(tmp_path / name, tiny)
    with raises_kind("no such file", "none.npz"):
        read_connectome(tmp_path / "none.npz", tiny)


@pytest.mark.parametrize(
    "tool",
    ["npy with a list", "npz", "QSIRecon", "HDF5", "gii with a list", "BIDS, gz"],
)
def test_files_cut_short_are_refused(tmp_path, tool):
    path = TOOLS[tool](tmp_path, EXPECTED, NAMES)
    whole = path.read_bytes()
    for share in (0.3, 0.6, 0.99):
        path.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(FileFormatError):
            read_connectome(path, ATLAS)


def test_files_without_a_matrix_are_refused(tmp_path, tiny):
    np.savez(tmp_path / "c.npz", a=np.ones(3), b=np.ones((2, 3)))
    with raises_kind("no square matrix", "c.npz"):
        read_connectome(tmp_path / "c.npz", tiny)
    for array, kind in (
        (np.array([{"a": 1}], dtype=object), "unreadable"),
        (np.full((7, 7), "a"), "matrix shape"),
        (np.zeros((3, 4, 5)), "matrix shape"),
    ):
        np.save(tmp_path / "c.npy", array, allow_pickle=True)
        with raises_kind(kind, "c.npy"):
            read_connectome(tmp_path / "c.npy", tiny)


# ---- files beside a matrix ----------------------------------------------------------


def test_sidecars(tmp_path):
    path = tmp_path / "sub-01" / "ses-M00" / "c.csv"
    path.parent.mkdir(parents=True)
    np.savetxt(path, EXPECTED[::-1, ::-1], "%d", ",")
    (tmp_path / "labels.txt").write_text("\n".join(NAMES[::-1]))
    same(read_connectome(path, ATLAS), EXPECTED)
    # a list above a folder that is no person's may be of anything
    (tmp_path / "flat").mkdir()
    np.savetxt(tmp_path / "flat" / "01.csv", EXPECTED, "%d", ",")
    flat = tmp_path / "flat" / "01.csv"
    with raises_kind("unknown order"):
        read_connectome(flat, ATLAS)
    same(read_connectome(flat, ATLAS, row_order="atlas"), EXPECTED)
    # names for another matrix lie above: passed over; beside it: refused
    (tmp_path / "sub-01" / "labels.txt").write_text("lh_a\nlh_b\n")
    same(read_connectome(path, ATLAS), EXPECTED)
    (path.parent / "c_labels.csv").write_text("lh_a\nlh_b\n")
    message = r"160 rows, but the list contains 2 names .*c_labels\.csv"
    with pytest.raises(FileFormatError, match=message):
        read_connectome(path, ATLAS)
    same(read_connectome(path, ATLAS, labels=tmp_path / "labels.txt"), EXPECTED)


@pytest.mark.parametrize(
    ("described", "message"),
    [
        ("{", "cannot be read as a BIDS sidecar"),
        ({"NodeFiles": ["no.tsv"]}, r"no\.tsv: no such file"),
        (
            {"NodeIndices": [1, 2]},
            r"160 rows, but the list contains 2 names .*the \.json beside",
        ),
        (
            {"NodeFiles": ["seg-destrieux_nodes.tsv"], "NodeIndices": [999]},
            "the index 999 has no name in .*seg-destrieux_nodes.tsv",
        ),
        (
            {"NodeFiles": ["bad.tsv"]},
            r"none of the columns 'x', 'y' contains names",
        ),
    ],
)
def test_bids_sidecars_refused(tmp_path, described, message):
    path = formats.write_relmat(tmp_path, EXPECTED, ATLAS.names)
    text = described if isinstance(described, str) else json.dumps(described)
    path.with_suffix(".json").write_text(text)
    (tmp_path / "bad.tsv").write_text("x\ty\n1\t2\n")
    with pytest.raises(FileFormatError, match=message):
        read_connectome(path, ATLAS)


def test_bids_nodes_go_by_their_index(tmp_path):
    path = formats.write_relmat(tmp_path, EXPECTED, ATLAS.names)
    nodes = tmp_path / "seg-destrieux_nodes.tsv"
    head, *rows = nodes.read_text().splitlines()
    nodes.write_text("\n".join([head, *rows[::-1]]) + "\n")
    path.with_suffix(".json").write_text(json.dumps({"NodeFiles": [nodes.name]}))
    same(read_connectome(path, ATLAS), EXPECTED)
    nodes.write_text("\n".join([head, *rows, "1\tctx_lh_Medial_wall"]) + "\n")
    message = "the index 1 has the names .ctx_lh_.* one name for each"
    with pytest.raises(FileFormatError, match=message):
        read_connectome(path, ATLAS)
    for text in ('{"Description": "counts"}', "[]"):  # without nodes
        path.with_suffix(".json").write_text(text)
        with raises_kind("unknown order"):
            read_connectome(path, ATLAS)
        found = read_connectome(path, ATLAS, row_order="atlas")
        assert found.notes[0] == "read in the order of destrieux160"


@pytest.mark.parametrize("ending", ["tsv", "dense.tsv", "tsv.gz"])
@pytest.mark.parametrize("above", ["relmat", "meas-count_relmat", "seg-x_relmat"])
def test_one_sidecar_at_the_root_is_of_all_matrices(tmp_path, above, ending):
    """BIDS: a file counts for all below that have its suffix and its entities."""
    place = tmp_path / "sub-01" / "ses-1" / "dwi"
    place.mkdir(parents=True)
    written = formats.write_relmat(place, EXPECTED[::-1, ::-1], NAMES[::-1])
    nodes = place / "seg-destrieux_nodes.tsv"
    nodes.rename(tmp_path / nodes.name)
    written.with_suffix(".json").rename(tmp_path / f"{above}.json")
    name = f"sub-01_ses-1_seg-x_meas-count_relmat.{ending}"
    text = written.read_bytes()
    path = place / name
    path.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
    notes = same(read_connectome(path, ATLAS), EXPECTED)
    assert notes == ("rows named by the .json beside the matrix",)
    # of another measure it says nothing; a nearer one replaces single keys
    other = place / name.replace("seg-x_meas-count", "seg-y_meas-length")
    path.rename(other)
    if above != "relmat":
        with raises_kind("unknown order"):
            read_connectome(other, ATLAS)
        return
    nearer = {"NodeIndices": [*range(160, 0, -1)]}
    (tmp_path / "sub-01" / "sub-01_relmat.json").write_text(json.dumps(nearer))
    same(read_connectome(other, ATLAS), EXPECTED[::-1, ::-1])
    # two of one folder may not differ
    (tmp_path / "seg-y_relmat.json").write_text(json.dumps({"NodeIndices": [1]}))
    with pytest.raises(FileFormatError, match="describe the nodes differently"):
        read_connectome(other, ATLAS)


def test_real_template_connectome(shared):
    folder = shared / "tract_mni_destrieux" / "expected"
    path = folder / "count_radial4_sym_zerodiag.csv"
    whole = read_connectome(path, "destrieux160", row_order="mrtrix")
    raw = np.loadtxt(folder / "count_radial4_sym_zerodiag.csv", delimiter=",")
    # fs_a2009s.txt: 74 left, cerebellum, 7 + 7 structures, 74 right, cerebellum
    cortex = [*range(74), *range(89, 163)]
    order = [*cortex, *range(75, 81), *range(82, 88)]
    same(whole, raw[np.ix_(order, order)])
    half = read_connectome(folder / "count_endvoxels.csv", ATLAS, row_order="mrtrix")
    assert (
        "only one triangle of the matrix was filled, so it was copied to the other"
        in half.notes
    )


@pytest.mark.parametrize("delimiter", [",", "\t", " "])
@pytest.mark.parametrize("head", [[], ["a", "b", "w"]])
def test_a_list_of_connections_is_called_so(write, tiny, delimiter, head):
    names = ["lh_a", "lh_b", "lh_c", "rh_a"]
    pairs = [[a, b, k] for k, (a, b) in enumerate(itertools.combinations(names, 2))]
    for rows in (pairs, [[*pair, 5.5] for pair in pairs], pairs[:1]):
        heads = [[*head, "length"][: len(rows[0])]] if head else []
        text = "".join(delimiter.join(map(str, x)) + "\n" for x in (*heads, *rows))
        with raises_kind("list of connections", "e.csv"):
            read_connectome(write("e.csv", text), tiny)
    text = "".join(f"{i}{delimiter}{i + 1}{delimiter}0.5\n" for i in range(1, 9))
    with pytest.raises(FileFormatError, match="may be a list of connections"):
        read_connectome(write("e.csv", text), tiny)


def test_a_connectogram_is_called_so(write, tiny):
    names = tiny.names
    rows = [["data", "data", *range(7)], ["data", "data", *names]]
    rows += [[9, name, *range(7)] for name in names]
    text = "".join("\t".join(map(str, row)) + "\t\n" for row in rows)
    with raises_kind("connectogram", "x.txt"):
        read_connectome(write("x.txt", text), tiny)
