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
