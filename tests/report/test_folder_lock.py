"""Two runs in one results folder: the second is refused; a dead one holds nothing."""

import json
import subprocess
import sys

import pytest

from brainlsap.exceptions import ParameterError
from brainlsap.report.folder_lock import lock_folder

HOLD = (
    "import sys, time; from brainlsap.report.folder_lock import lock_folder\n"
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
