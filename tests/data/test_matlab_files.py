"""MATLAB files: what scipy writes and reads comes out; what is broken is refused."""

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from brainlsap.data.matlab_files import parse_matlab

MOST = 2**20


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize(
    "dtype", ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
)
def test_numbers_are_those_of_scipy(tmp_path, dtype, compressed):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 100, (5, 7)).astype(dtype)
    path = tmp_path / "a.mat"
    savemat(path, {"W": values, "x": values[:1, :1]}, do_compression=compressed)
    found = parse_matlab(path.read_bytes(), MOST)
    for name in ("W", "x"):
        np.testing.assert_array_equal(found[name], loadmat(path)[name])
        assert found[name].dtype == np.dtype(dtype)


@pytest.mark.parametrize("level", ["4", "5"])
def test_text_and_order(tmp_path, level):
    path = tmp_path / "a.mat"
    content = {"W": np.arange(6.0).reshape(2, 3), "t": "one line"}
    content["rows"] = np.array(["lh_a", "rhbb"])
    savemat(path, content, format=level)
    found = parse_matlab(path.read_bytes(), MOST)
    np.testing.assert_array_equal(found["W"], content["W"])
    assert found["t"].tolist() == ["one line"]
    assert found["rows"].tolist() == ["lh_a", "rhbb"]


def test_cells_hold_text_and_other_kinds_are_passed_over(tmp_path):
    names = np.empty((1, 3), dtype=object)
    names[0] = ["lh_é", "", "rh"]
    path = tmp_path / "a.mat"
    content = {"names": names, "s": {"a": 1.0}, "c": np.ones((2, 2)) * 1j}
    savemat(path, {**content, "W": np.eye(2)})
    found = parse_matlab(path.read_bytes(), MOST)
    assert found["names"].tolist() == ["lh_é", "", "rh"]
    assert sorted(found) == ["W", "names"]


@pytest.mark.parametrize("level", ["4", "5"])
def test_every_cut_is_refused_or_loses_whole_arrays(tmp_path, level):
    path = tmp_path / "a.mat"
    values = {"W": np.arange(6.0).reshape(2, 3), "u": np.ones((1, 3), np.uint8)}
    savemat(path, values, format=level)
    whole = path.read_bytes()
    for end in range(1, len(whole)):
        try:
            found = parse_matlab(whole[:end], MOST)
        except ValueError:
            continue
        for name, array in found.items():
            np.testing.assert_array_equal(array, values[name])


def test_big_endian_level_4():
    head = np.array([1000, 1, 2, 0, 2], dtype=">i4").tobytes()
    data = head + b"W\0" + np.array([3.0, 4], dtype=">f8").tobytes()
    np.testing.assert_array_equal(parse_matlab(data, MOST)["W"], [[3, 4]])


def level_5(*words, content=b""):
    return bytes(124) + b"\0\1IM" + np.array(words, "<u4").tobytes() + content


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"x", "header is cut short"),
        (b"x" * 40, "neither a MATLAB file of level 4 nor of level 5"),
        (np.array([80, 1, 1, 0, 1], "<i4").tobytes(), "unknown numbers"),
        (np.array([0, 9, 9, 0, 1], "<i4").tobytes() + b"\0", "expected 648 bytes"),
        (level_5(9 << 16 | 1, 0), "a small element of more than 4 bytes"),
        (level_5(14, 8, 6, 0), "without its three headers"),
        (level_5(14, 999), "expected 999 bytes"),
        (level_5(14, 40, 6, 8, 6, 0, 99, 0, 0, 0, 1, 0), "unknown type 99"),
    ],
)
def test_refused(data, message):
    with pytest.raises(ValueError, match=message):
        parse_matlab(data, MOST)


def test_shapes_that_lie_are_refused(tmp_path):
    path = tmp_path / "a.mat"
    savemat(path, {"W": np.eye(3)})
    data = path.read_bytes()
    shape = np.array([3, 3], "<i4").tobytes()
    assert data.count(shape) == 1
    for lie in ([3, 4], [2**31 - 1] * 2):
        broken = data.replace(shape, np.array(lie, "<i4").tobytes())
        with pytest.raises(ValueError, match="W: 9 numbers for the shape"):
            parse_matlab(broken, MOST)


@pytest.mark.parametrize("level", ["4", "5"])
def test_rows_without_characters_cost_nothing(tmp_path, level):
    path = tmp_path / "a.mat"
    savemat(path, {"t": np.array(["abc", "def"])}, format=level)
    content = path.read_bytes()
    if level == "4":
        head = np.frombuffer(content[:20], "<i4").copy()
        head[1:3] = 2**31 - 1, 0
        content = head.tobytes() + content[20:22]
        assert parse_matlab(content, MOST)["t"].size == 0
    else:
        sizes = np.array([2, 3], "<i4").tobytes()
        wide = np.array([2**31 - 1, 0], "<i4").tobytes()
        assert content.count(sizes) == 1
        content = content.replace(sizes, wide)
        # without the element's eight bytes, and with the lengths that follow from it
        kept = content.find(b"adbecf")
        content = bytearray(content[: kept - 4] + bytes(4))
        content[132:136] = np.array([len(content) - 136], "<i4").tobytes()
        content = bytes(content)
        assert parse_matlab(content, MOST)["t"].tolist() == [""]


def test_compressed_content_is_bounded(tmp_path):
    path = tmp_path / "a.mat"
    savemat(path, {"W": np.zeros((500, 500))}, do_compression=True)
    with pytest.raises(ValueError, match="unpacks to more than 1 MiB"):
        parse_matlab(path.read_bytes(), MOST)
    data = path.read_bytes()
    size = int(np.frombuffer(data[132:136], "<u4")[0]) - 20
    cut = data[:132] + np.array([size], "<u4").tobytes() + data[136 : 136 + size]
    with pytest.raises(ValueError, match="compressed content is cut short"):
        parse_matlab(cut, 2**24)
