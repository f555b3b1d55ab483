import struct

import h5py
import numpy as np
import pytest

from brainlsap.data.hdf_heaps import check_heaps, check_texts
from brainlsap.exceptions import FileFormatError
from tests.data import test_reader_properties as readers

MARK = b"GCOL\x01\x00\x00\x00"


def write(path, n=9):
    with h5py.File(path, "w") as file:
        file["names"] = np.array([f"n{k}" * k for k in range(n)], h5py.string_dtype())
    return path


def test_whole_files_pass(tmp_path):
    check_heaps(write(tmp_path / "a.h5"))
    check_heaps(write(tmp_path / "b.h5", 900))
    check_heaps(tmp_path / "missing.h5")
    (tmp_path / "empty.h5").touch()
    check_heaps(tmp_path / "empty.h5")


def test_free_space_of_no_size_is_refused(tmp_path):
    """HDF5 stood still on such a file."""
    path = readers.MATRICES["c.h5"](tmp_path / "c.h5", readers.W, list("abcdefg"))
    content = bytearray(path.read_bytes())
    first = content.find(MARK) + 16
    struct.pack_into("<HH4xQ", content, first, 0, 0, 0)
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
        check_heaps(path)


def test_a_collection_cut_short_is_refused(tmp_path):
    path = tmp_path / "cut.h5"
    path.write_bytes(b"x" * 40 + MARK)
    with pytest.raises(FileFormatError, match="byte 40"):
        check_heaps(path)


@pytest.mark.parametrize("how", [{}, {"chunks": (4,)}])
def test_a_text_that_is_said_to_be_longer_than_the_file_is_refused(tmp_path, how):
    """HDF5 asks for as much memory as the length says."""
    path = tmp_path / "t.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset(
            "t", data=["aa", "bbb"] * 4, dtype=h5py.string_dtype(), **how
        )
    with h5py.File(path) as file:
        check_texts(file["t"])
        kept = file["t"].id
        place = kept.get_chunk_info(0).byte_offset if how else kept.get_offset()
    content = bytearray(path.read_bytes())
    struct.pack_into("<I", content, place + 16, 4_000_000_000)
    path.write_bytes(content)
    with (
        h5py.File(path) as file,
        pytest.raises(ValueError, match="/t: a text is longer than the file"),
    ):
        check_texts(file["t"])
