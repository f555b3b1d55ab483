"""Two runs in one results folder: the second is refused; a dead one holds nothing."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from brainlsap._locks import clean_after_kill, hold_folder, hold_on, lock_folder
from brainlsap.exceptions import ParameterError

HOLD = (
    "import sys, time; from brainlsap._locks import lock_folder\n"
    "with lock_folder(sys.argv[1]):\n    print('held', flush=True); time.sleep(60)"
)


def test_the_second_is_told_who_holds_it(tmp_path):
    with lock_folder(tmp_path / "out") as path:
        assert json.loads(path.read_text())["pid"] > 0
        with (
            pytest.raises(
                ParameterError, match=r"in use by another run \(process \d+ o"
            ),
            lock_folder(tmp_path / "out"),
        ):
            pass
        with lock_folder(tmp_path / "other"):
            pass
    assert list(tmp_path.iterdir()) == []
    with lock_folder(tmp_path / "out"):
        pass


def test_another_process_is_kept_out_until_it_is_killed(tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-c", HOLD, str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(ParameterError, match=rf"process {holder.pid} on .*remove"),
            lock_folder(out),
        ):
            pass
        holder.kill()
    assert (tmp_path / ".out.lock").is_file()  # what a killed run leaves
    with lock_folder(out):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_lock_from_another_machine_is_believed(tmp_path):
    (tmp_path / ".out.lock").write_text('{"pid": 7, "host": "elsewhere", "since": "x"}')
    with (
        pytest.raises(ParameterError, match="process 7 on elsewhere, since x"),
        lock_folder(tmp_path / "out"),
    ):
        pass


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"host": null}'])
def test_a_lock_that_says_nothing_is_stale(tmp_path, content):
    (tmp_path / ".out.lock").write_text(content)
    with lock_folder(tmp_path / "out"):
        pass


def test_systems_without_locks(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with lock_folder(tmp_path / "out") as path:
        assert path.is_file()


def make(folder, text):
    folder.mkdir()
    (folder / "a").write_text(text)
    return folder


def test_strays_of_a_killed_run_go_and_others_stay(tmp_path):
    folder = make(tmp_path / "out", "whole")
    make(tmp_path / ".partial-out-abcd_123", "half")
    make(tmp_path / ".partial-out-2-abcd1234", "of another folder, out-2")
    (tmp_path / ".old-out-abcdefgh").mkdir()
    make(tmp_path / ".old-out-abcdefgh" / "out", "older")
    clean_after_kill(folder)
    assert sorted(one.name for one in tmp_path.iterdir()) == [
        ".partial-out-2-abcd1234",
        "out",
    ]
    assert (folder / "a").read_text() == "whole"
    clean_after_kill(tmp_path / "absent" / "out")


def test_a_folder_moved_aside_is_put_back(tmp_path):
    (tmp_path / ".old-out-abcdefgh").mkdir()
    make(tmp_path / ".old-out-abcdefgh" / "out", "whole")
    clean_after_kill(tmp_path / "out")
    assert (tmp_path / "out" / "a").read_text() == "whole"
    assert [one.name for one in tmp_path.iterdir()] == ["out"]


def test_who_holds_a_folder_holds_it_on_and_finds_no_strays(tmp_path):
    make(tmp_path / ".partial-out-abcd_123", "half")
    with hold_folder(tmp_path / "out") as out:
        assert [one.name for one in tmp_path.iterdir()] == [".out.lock"]
        with hold_on(out):
            pass
        with (
            pytest.raises(ParameterError, match="in use by another run"),
            hold_folder(out),
        ):
            pass
        assert (tmp_path / ".out.lock").is_file()
    assert list(tmp_path.iterdir()) == []
    with hold_on(out):
        assert (tmp_path / ".out.lock").is_file()


def test_a_thread_does_not_hold_what_another_holds(tmp_path):
    def hold():
        with hold_on(tmp_path / "out"):
            pass

    with hold_folder(tmp_path / "out"), ThreadPoolExecutor(1) as threads:
        told = threads.submit(hold).exception()
    assert "in use by another run" in str(told)
