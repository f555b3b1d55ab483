"""HDF5 files that would keep the library busy for ever are refused."""

import struct

import h5py
import numpy as np
import pytest

from brainlsap.data.hdf_structure import check_structure
from brainlsap.exceptions import FileFormatError
from tests.data import test_reader_properties as readers

MARK = b"GCOL\x01\x00\x00\x00"


def write(path, n=9):
    with h5py.File(path, "w") as file:
        file["names"] = np.array([f"n{k}" * k for k in range(n)], h5py.string_dtype())
    return path


def test_whole_files_pass(tmp_path):
    check_structure(write(tmp_path / "a.h5"))
    check_structure(write(tmp_path / "b.h5", 900))
    check_structure(tmp_path / "missing.h5")
    (tmp_path / "empty.h5").touch()
    check_structure(tmp_path / "empty.h5")


def test_free_space_of_no_size_is_refused(tmp_path):
    """HDF5 stood still on such a file."""
    path = readers.MATRICES["c.h5"](tmp_path / "c.h5", readers.W, list("abcdefg"))
    content = bytearray(path.read_bytes())
    first = content.find(MARK) + 16
    struct.pack_into("<HH4xQ", content, first, 0, 0, 0)
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"c\.h5: a collection of texts.*damaged"):
        readers.read_matrix(path)


def test_texts_that_are_longer_than_their_collection_are_refused(tmp_path):
    """HDF5 went in a circle of 64 bits on such a file."""
    path = readers.MATRICES["c.h5"](tmp_path / "c.h5", readers.W, list("abcdefg"))
    content = bytearray(path.read_bytes())
    first = content.find(MARK) + 16
    (size,) = struct.unpack_from("<Q", content, first + 8)
    following = first + 16 + -(-size // 8) * 8
    struct.pack_into("<Q", content, following + 8, 2**64 - (following - first) - 16)
    content[first - 10] = 7  # reserved, and not looked at
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"c\.h5: a collection of texts.*damaged"):
        readers.read_matrix(path)


def test_free_space_that_leads_back_is_refused(tmp_path):
    """HDF5 went in a circle on such a file."""
    path = readers.MATRICES["c.h5"](tmp_path / "c.h5", readers.W, list("abcdefg"))
    content = bytearray(path.read_bytes())
    start = content.find(b"HEAP\x00")
    free, names = struct.unpack_from("<QQ", content, start + 16)
    assert free > 1
    struct.pack_into("<Q", content, names + free, free)
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"the names of a group .*damaged"):
        readers.read_matrix(path)


@pytest.mark.parametrize("version", ["earliest", "latest"])
def test_places_of_another_size_are_refused(tmp_path, version):
    """h5py can write them; nobody does."""
    made = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    made.set_sizes(4, 8)
    made.set_userblock(512)
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    last = h5py.h5f.LIBVER_LATEST
    access.set_libver_bounds(
        last if version == "latest" else h5py.h5f.LIBVER_EARLIEST, last
    )
    path = tmp_path / "small.h5"
    h5py.h5f.create(str(path).encode(), fcpl=made, fapl=access).close()
    with pytest.raises(FileFormatError, match=r"small\.h5: .* in 4 and 8 bytes; exp"):
        check_structure(path)


def test_a_collection_cut_short_is_refused(tmp_path):
    path = tmp_path / "cut.h5"
    head = b"\x89HDF\r\n\x1a\n" + bytes(5) + b"\x08\x08"
    path.write_bytes(head.ljust(40, b"x") + MARK)
    with pytest.raises(FileFormatError, match="byte 40"):
        check_structure(path)


def node_places(content, level):
    found = content.find(b"TREE")
    while found >= 0:
        if content[found + 5] == level:
            yield found
        found = content.find(b"TREE", found + 1)


MANY = {
    "groups": lambda file: [file.create_group(f"g{k}") for k in range(400)],
    "chunks": lambda file: file.create_dataset("a", data=np.ones(1600), chunks=(2,)),
    "planes": lambda file: file.create_dataset(
        "b", data=np.ones((40, 40)), chunks=(2, 2)
    ),
}


@pytest.fixture(params=MANY)
def indexed(request, tmp_path):
    """Return a file with an index of two levels, its kind, and where its root is."""
    path = tmp_path / "i.h5"
    with h5py.File(path, "w", userblock_size=512) as file:
        MANY[request.param](file)
    content = bytearray(path.read_bytes())
    roots = list(node_places(content, 1))
    assert roots
    key = {"groups": 8, "chunks": 24, "planes": 32}[request.param]
    check_structure(path)
    return path, content, roots[0], roots[0] + 24 + key


def refused(path, content):
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"i\.h5: an index .*damaged \(byte"):
        check_structure(path)
    with pytest.raises(FileFormatError, match=r"i\.h5: an index"):
        readers.read_matrix(path)


def test_an_index_that_is_its_own_child_is_refused(indexed):
    """HDF5 called itself until the process died."""
    path, content, root, child = indexed
    struct.pack_into("<Q", content, child, root - 512)
    refused(path, content)


def test_a_child_that_stands_twice_is_refused(indexed):
    path, content, _, child = indexed
    step = struct.unpack_from("<Q", content, child)[0]
    key = child - indexed[2] - 24
    struct.pack_into("<Q", content, child + 8 + key, step)
    refused(path, content)


@pytest.mark.parametrize("n_steps", [0, 1])
def test_neighbours_in_a_circle_are_refused(indexed, n_steps):
    """HDF5 went from one to the next for ever."""
    path, content, _, child = indexed
    first = 512 + struct.unpack_from("<Q", content, child)[0]
    last = first
    for _ in range(n_steps):
        last = 512 + struct.unpack_from("<Q", content, last + 16)[0]
    struct.pack_into("<Q", content, last + 16, first - 512)
    refused(path, content)


def test_marks_in_data_are_no_nodes(tmp_path):
    path = tmp_path / "d.h5"
    words = np.frombuffer(b"TREE\x01\x01\x02\x00" + bytes(range(120)), np.uint64)
    with h5py.File(path, "w") as file:
        file["a"] = words
        file["b"] = np.frombuffer(b"HEAP\x00" + bytes(43), np.uint64)
    check_structure(path)
