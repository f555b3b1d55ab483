"""Square matrices from text and .npy, with and without names."""

import numpy as np
import pytest

from brainlsap.data.matrices import read_npy_matrix, read_text_matrix
from brainlsap.exceptions import FileFormatError

VALUES = np.array([[0, 1.5, 2], [1.5, 0, 1e-7], [2, 1e-7, 4]])
NAMES = ("a", "b", "c")


def as_text(values, delimiter=",", rows=None, columns=None, corner=""):
    lines = [delimiter.join(repr(v) for v in row) for row in values.tolist()]
    if rows is not None:
        lines = [f"{n}{delimiter}{x}" for n, x in zip(rows, lines, strict=True)]
    if columns is not None:
        head = [corner, *columns] if corner is not None else columns
        lines.insert(0, delimiter.join(head))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("delimiter", [",", "\t", ";", " ", "   "])
def test_numbers_alone(write, delimiter):
    found = read_text_matrix(write("m.csv", as_text(VALUES, delimiter)))
    np.testing.assert_array_equal(found.values, VALUES)
    assert found.rows is found.columns is None


@pytest.mark.parametrize("end", [",", " ", ", "])
def test_delimiter_at_the_end_of_lines(write, end):
    text = as_text(VALUES).replace("\n", f"{end}\n")
    np.testing.assert_array_equal(read_text_matrix(write("m.csv", text)).values, VALUES)


def test_comments_are_skipped(write):
    text = "# command_history: tck2connectome a.tck, b.mif\n" + as_text(VALUES, " ")
    np.testing.assert_array_equal(read_text_matrix(write("m.csv", text)).values, VALUES)


@pytest.mark.parametrize("corner", ["", "region", None])
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_names_on_both_sides(write, corner, delimiter):
    text = as_text(VALUES, delimiter, NAMES, ("c", "a", "b"), corner)
    found = read_text_matrix(write("m.tsv", text))
    np.testing.assert_array_equal(found.values, VALUES)
    assert (found.rows, found.columns) == (NAMES, ("c", "a", "b"))


def test_names_on_one_side_serve_both(write):
    for text in (
        as_text(VALUES, columns=NAMES, corner=None),
        as_text(VALUES, rows=NAMES),
    ):
        found = read_text_matrix(write("m.csv", text))
        assert found.rows == found.columns == NAMES
        np.testing.assert_array_equal(found.values, VALUES)


def test_numbers_as_names_behind_a_corner(write):
    text = as_text(VALUES, rows=("11", "12", "30"), columns=("11", "12", "30"))
    found = read_text_matrix(write("m.csv", text))
    assert found.rows == ("11", "12", "30")
    np.testing.assert_array_equal(found.values, VALUES)


@pytest.mark.parametrize("first", [0, 1])
def test_a_count_of_the_rows_does_not_hide_names(write, first):
    counts = [str(i + first) for i in range(3)]
    for rows, columns in ((counts, NAMES), (NAMES, counts)):
        found = read_text_matrix(write("m.csv", as_text(VALUES, ",", rows, columns)))
        assert found.rows == found.columns == NAMES


@pytest.mark.parametrize(
    ("head", "delimiter"),
    [("# c,a,b", ","), ("#region,c,a,b", ","), ("# c a b", " "), ("# c,a,b", " ")],
)
def test_names_in_a_comment_are_names(write, tmp_path, head, delimiter):
    rows = NAMES if "region" in head else None
    text = f"# made by my own hand\n{head}\n{as_text(VALUES, delimiter, rows)}"
    found = read_text_matrix(write("m.csv", text))
    assert found.columns == ("c", "a", "b")
    assert found.rows == (rows or found.columns)
    np.testing.assert_array_equal(found.values, VALUES)
    np.savetxt(tmp_path / "m.txt", VALUES, header="1003 8 1001")
    assert read_text_matrix(tmp_path / "m.txt").rows == ("1003", "8", "1001")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty; expected a matrix"),
        ("1,2\n", "expected a square matrix, got 1 x 2"),
        ("1,2,3\n4,5,6\n", "expected a square matrix, got 2 x 3. The file may be cut"),
        ("7\n", "expected a square matrix, got 1 x 1"),
        ("1,2\n3\n", "not a matrix of numbers between commas: .* columns changed"),
        ("1 2\n3 x\n", "between white space: could not convert string 'x'"),
        ("a,b\n1,2\n3,\n", "could not convert string '' to float64.* below the names"),
        ("a,b,c\n1,2\n3,4\n", "3 names for 2 columns"),
        ("a,b\n", "names but no numbers"),
    ],
)
def test_text_refused(write, text, message):
    with pytest.raises(FileFormatError, match=rf"m\.csv: .*{message}"):
        read_text_matrix(write("m.csv", text))


def test_npy(tmp_path):
    np.save(tmp_path / "m.npy", VALUES.astype(np.float32))
    found = read_npy_matrix(tmp_path / "m.npy")
    assert found.values.dtype == np.float64
    np.testing.assert_array_equal(found.values, VALUES.astype(np.float32))


def test_npy_refused(tmp_path):
    path = tmp_path / "m.npy"
    with pytest.raises(FileFormatError, match="no such file"):
        read_npy_matrix(path)
    np.save(path, VALUES)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(FileFormatError, match=r"cannot be read as a \.npy array"):
        read_npy_matrix(path)
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(FileFormatError, match=r"cannot be read as a \.npy array"):
        read_npy_matrix(path)
    np.save(path, np.array(["a"]))
    with pytest.raises(FileFormatError, match="expected an array of numbers, got <U1"):
        read_npy_matrix(path)
    np.save(path, np.zeros((3, 4, 5)))
    with pytest.raises(FileFormatError, match="square matrix, got 3 x 4 x 5"):
        read_npy_matrix(path)
