import struct

import h5py
import pytest

from brainlsap.data.hdf_heaps import check_texts


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


def test_texts_beyond_the_end_of_the_file_are_refused(tmp_path):
    """Memory was asked for as much as the file said."""
    path = tmp_path / "t.h5"
    with h5py.File(path, "w") as file:
        kind = h5py.string_dtype()
        file.create_dataset("t", data=["aa", "bbb"] * 4, dtype=kind, chunks=(4,))
    content = bytearray(path.read_bytes())
    node = content.find(b"TREE\x01\x00")
    assert struct.unpack_from("<I", content, node + 24) == (4 * 16,)
    struct.pack_into("<I", content, node + 24, 2**31)
    path.write_bytes(content)
    with (
        h5py.File(path) as file,
        pytest.raises(ValueError, match="/t: its texts lie beyond the end of the file"),
    ):
        check_texts(file["t"])
