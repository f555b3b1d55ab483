import gc
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

import brainlsap._scratch as module
from brainlsap._scratch import (
    LARGE_BYTES,
    LARGE_VARIABLE,
    as_doubles,
    copied_doubles,
    large_bytes,
    letting_go,
    map_of,
    new_array,
    release,
    row_blocks,
    take_rows,
)
from brainlsap.exceptions import ParameterError, WritingError


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """Map every array to a file of a folder of its own."""
    monkeypatch.setenv(LARGE_VARIABLE, "0")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def resident_bytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_small_arrays_are_ordinary_ones(monkeypatch):
    monkeypatch.delenv(LARGE_VARIABLE, raising=False)
    assert large_bytes() == LARGE_BYTES
    array = new_array((3, 2), np.float32)
    assert array.dtype == np.float32
    assert map_of(array) is None


def test_the_limit_is_a_number_of_bytes(monkeypatch):
    monkeypatch.setenv(LARGE_VARIABLE, "24")
    assert map_of(new_array((3,))) is None
    assert map_of(new_array((4,))) is not None
    monkeypatch.setenv(LARGE_VARIABLE, "1 GB")
    with pytest.raises(ParameterError, match=r"whole number of bytes, got '1 GB'"):
        new_array((3,))


def test_a_large_array_is_a_private_file_that_goes_with_it(scratch):
    array = new_array((7, 3))
    (path,) = scratch.iterdir()
    assert path.stat().st_size == 7 * 3 * 8
    assert path.stat().st_mode & 0o077 == 0
    array[:] = 5.0
    part = torch.from_numpy(array)[2:]
    assert map_of(array[1:, 1:]) is map_of(array)
    del array
    gc.collect()
    release()
    assert part.sum() == 5.0 * 5 * 3
    del part
    gc.collect()
    assert list(scratch.iterdir()) == []


def test_numbers_outlive_the_memory_that_is_given_back(scratch):
    del scratch
    array = new_array((64, 1024, 256))  # 128 MB
    for row in range(64):
        array[row] = row
    before = resident_bytes()
    release()
    assert resident_bytes() < before - 100e6
    assert_array_equal(array[:, 5, 7], np.arange(64))


def test_blocks_cover_the_rows_and_do_not_depend_on_the_map(scratch, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 48)
    expected = [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert list(row_blocks(new_array((5, 3)))) == expected
    assert list(row_blocks(np.zeros((5, 3)))) == expected
    assert list(row_blocks(np.broadcast_to(np.zeros(3), (5, 3)))) == expected
    assert list(letting_go(expected, 2)) == expected
    assert len(list(scratch.iterdir())) <= 1


@pytest.mark.parametrize("dtype", [np.int16, np.float32, np.float64])
def test_rows_and_doubles_are_copied_as_they_are(scratch, dtype):
    del scratch
    values = np.random.default_rng(0).integers(0, 9, (6, 4, 3)).astype(dtype)
    rows = np.array([5, 0, 3, 3])
    taken = take_rows(values, rows)
    assert taken.dtype == dtype
    assert_array_equal(taken, values[rows])
    doubles = as_doubles(values)
    assert doubles.dtype == np.float64
    assert_array_equal(doubles, values)
    assert as_doubles(doubles) is doubles
    again = copied_doubles(doubles)
    assert_array_equal(again, values)
    assert not np.shares_memory(again, doubles)
    assert copied_doubles(values[0, 0, 0]) == values[0, 0, 0]
    assert map_of(taken) is not None


def test_a_folder_without_room_is_named(scratch, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_reserve", full)
    with pytest.raises(WritingError, match=r"brainlsap-scratch-\* cannot be written"):
        new_array((3,))
    assert list(scratch.iterdir()) == []


KILLED = """
import time
from brainlsap._scratch import new_array
array = new_array((3, 5))
print("made", flush=True)
time.sleep(60)
"""


def test_what_a_killed_process_left_is_removed_by_the_next(scratch, monkeypatch):
    told = os.environ | {LARGE_VARIABLE: "0", "TMPDIR": str(scratch)}
    command = [sys.executable, "-c", KILLED]
    with subprocess.Popen(command, env=told, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"made\n"
        held = list(scratch.iterdir())
        # hours later, by the clock of the next one: whoever lives keeps the file
        later = time.time() + 9999
        monkeypatch.setattr(module.time, "time", lambda: later)
        monkeypatch.setattr(module, "_SWEPT", [])
        first = new_array((2,))
        assert set(held) < set(scratch.iterdir())
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    monkeypatch.setattr(module, "_SWEPT", [])
    second = new_array((2,))
    left = set(scratch.iterdir())
    assert left.isdisjoint(held)
    assert left == {Path(map_of(one).filename) for one in (first, second)}


@pytest.mark.parametrize("mode", ["r+", "c"])
def test_what_others_wrote_to_their_own_map_stays(tmp_path, mode):
    path = tmp_path / "mine.npy"
    np.save(path, np.zeros((300, 200)))
    mine = np.load(path, mmap_mode=mode)
    mine[7] = 3.0
    release(mine[5:])
    assert mine.sum() == 3.0 * 200
