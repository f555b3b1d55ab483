import struct

import numpy as np
import pytest
from nibabel.freesurfer import write_annot

from brainlsap.data.annotations import read_annotated
from brainlsap.exceptions import FileFormatError

N = 5


def write(path):
    table = np.array([[1, 2, 3, 0, 0], [9, 8, 7, 0, 0]])
    write_annot(path, np.array([0, 1, 1, -1, 0]), table, ["a", "b"], True)
    return path


def test_labels_and_names_are_read(tmp_path):
    labels, names = read_annotated(write(tmp_path / "lh.annot"))
    assert labels.tolist() == [0, 1, 1, -1, 0]
    assert names == [b"a", b"b"]


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
def test_names_stand_in_any_order_and_numbers_are_left_out(tmp_path, numbers):
    path = tmp_path / "lh.annot"
    path.write_bytes(annotation(numbers, [2, 0, 3, 2, 0], 4))
    labels, names = read_annotated(path)
    assert [names[one] for one in labels] == [b"n2", b"n0", b"n3", b"n2", b"n0"]


@pytest.mark.parametrize("unknown", [1, 5])
def test_a_colour_that_has_no_name_is_refused(tmp_path, unknown):
    path = tmp_path / "lh.annot"
    path.write_bytes(annotation([0, 2, 3], [2, unknown, 0], 4))
    with pytest.raises(FileFormatError, match="a vertex has a label without a name"):
        read_annotated(path)


def test_a_name_of_an_impossible_number_is_refused(tmp_path):
    content = annotation([0, 1], [1, 0], 2)
    path = tmp_path / "lh.annot"
    # -1 would be the last row of the table
    path.write_bytes(
        content.replace(struct.pack(">2i", 1, 3), struct.pack(">2i", -1, 3))
    )
    with pytest.raises(FileFormatError, match="a name has the number -1, of 2"):
        read_annotated(path)


@pytest.mark.parametrize(
    ("place", "number", "said"),
    [
        (0, 2**28, "cannot hold its vertices"),
        (0, 0, "cannot hold its vertices"),
        # behind the vertices: a table follows, its version, and how many names
        (4 + 8 * N + 8, 2**30, "cannot hold its 1073741824 names"),
    ],
)
def test_sizes_that_cannot_be_are_refused(tmp_path, place, number, said):
    path = write(tmp_path / "lh.annot")
    content = bytearray(path.read_bytes())
    struct.pack_into(">i", content, place, number)
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=rf"lh\.annot: cannot be read .*{said}"):
        read_annotated(path)


def test_what_is_no_annotation_is_refused(tmp_path):
    path = tmp_path / "lh.annot"
    path.write_bytes(b"ab")
    with pytest.raises(FileFormatError, match=r"cannot be read \(2 bytes\)"):
        read_annotated(path)
    whole = write(path).read_bytes()
    path.write_bytes(whole[:-3])
    with pytest.raises(FileFormatError, match="cannot be read"):
        read_annotated(path)
