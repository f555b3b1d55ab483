"""Files and folders appear whole or not at all; a folder has one run at a time."""

import errno
import subprocess
import sys

import pytest

from brainlsap.exceptions import ParameterError, WritingError
from brainlsap.files import (
    check_new_folder,
    check_outputs,
    check_writable,
    fill_folder,
    lock_folder,
    replace_when_whole,
    restrict_new_files_to_owner,
)


def test_a_file_appears_whole(tmp_path):
    with replace_when_whole(tmp_path / "new" / "a.tsv") as partial:
        partial.write_text("text")
        assert not (tmp_path / "new" / "a.tsv").exists()
        assert partial.suffix == ".tsv"
    assert (tmp_path / "new" / "a.tsv").read_text() == "text"


def test_a_file_that_fails_leaves_the_earlier_one_and_nothing_stray(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("before")
    with pytest.raises(RuntimeError), replace_when_whole(path) as partial:
        partial.write_text("half")
        raise RuntimeError
    assert [one.name for one in tmp_path.iterdir()] == ["a.tsv"]
    assert path.read_text() == "before"


def test_a_folder_appears_whole_or_leaves_the_earlier_one(tmp_path):
    folder = tmp_path / "results"
    with fill_folder(folder) as partial:
        (partial / "one").write_text("1")
    with pytest.raises(RuntimeError), fill_folder(folder, replace=True) as partial:
        (partial / "two").write_text("2")
        raise RuntimeError
    assert [one.name for one in folder.iterdir()] == ["one"]
    with fill_folder(folder, replace=True) as partial:
        (partial / "two").write_text("2")
    assert [one.name for one in folder.iterdir()] == ["two"]
    assert [one.name for one in tmp_path.iterdir()] == ["results"]


def test_what_a_killed_run_left_is_taken_away(tmp_path):
    (tmp_path / ".partial-results-a1b2c3d4" / "results").mkdir(parents=True)
    (tmp_path / ".partial-results-a1b2c3d4" / "results" / "file").touch()
    with fill_folder(tmp_path / "results", replace=True) as partial:
        assert not list(partial.iterdir())
    assert [one.name for one in tmp_path.iterdir()] == ["results"]


def test_a_folder_that_holds_something_is_refused(tmp_path):
    (tmp_path / "mine.txt").touch()
    with pytest.raises(ParameterError, match="must be new or empty"):
        with fill_folder(tmp_path):
            pass


def test_two_runs_in_one_folder_are_refused(tmp_path):
    folder = tmp_path / "results"
    program = (
        "import sys\nfrom brainlsap.files import lock_folder\n"
        "with lock_folder(sys.argv[1]): print('held', flush=True)"
    )
    with lock_folder(folder):
        second = subprocess.run(
            [sys.executable, "-c", program, str(folder)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "is in use by another run" in second.stderr
    with lock_folder(folder):  # given up, and taken again
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_a_place_that_cannot_be_written_is_named(tmp_path, number):
    with pytest.raises(WritingError, match=r"a\.tsv cannot be written: .*choose a"):
        with replace_when_whole(tmp_path / "a.tsv"):
            raise OSError(number, "as the system says")
    assert not list(tmp_path.iterdir())


def test_a_place_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    check_writable(tmp_path / "new" / "folder" / "file.tsv")
    assert check_new_folder(tmp_path / "new") == tmp_path / "new"
    for check in (check_writable, check_new_folder, lambda path: check_outputs([path])):
        with pytest.raises(WritingError, match="file is a file, not a folder"):
            check(tmp_path / "file" / "new" / "model")
    for name in ("file", "full"):
        with pytest.raises(ParameterError):
            check_new_folder(tmp_path / name)
    monkeypatch.setattr("os.access", lambda path, _: path != tmp_path)
    with pytest.raises(WritingError, match="no permission to write"):
        check_new_folder(tmp_path / "new" / "folder")
    check_writable(tmp_path / "full" / "file.tsv")
    assert sorted(tmp_path.rglob("*")) == before


def test_private_files_are_for_their_owner_alone(tmp_path):
    with (
        restrict_new_files_to_owner(),
        replace_when_whole(tmp_path / "secret") as partial,
    ):
        partial.touch()
    assert (tmp_path / "secret").stat().st_mode & 0o077 == 0


def test_what_is_read_is_never_an_output(tmp_path):
    study, other = tmp_path / "study", tmp_path / "other.tsv"
    study.mkdir()
    table = study / "participants.tsv"
    table.write_text("read")
    other.write_text("of somebody")
    link, twin = tmp_path / "link.tsv", tmp_path / "twin.tsv"
    link.symlink_to(table)
    twin.hardlink_to(table)
    for path in (table, link, study / ".." / "study" / "participants.tsv"):
        with pytest.raises(ParameterError, match="one of the input files"):
            check_outputs([path], input_values=[study, None, 3], overwrite=True)
    with pytest.raises(ParameterError, match="one of the input files"):
        check_outputs([twin], input_values=[table], overwrite=True)
    with pytest.raises(ParameterError, match="is a folder"):
        check_outputs([study], overwrite=True)
    with pytest.raises(ParameterError, match="overwrite=True"):
        check_outputs([tmp_path / "new", other], input_values=[study])
    check_outputs([tmp_path / "new", study / "new"], input_values=[study])
    check_outputs([other], input_values=[study], overwrite=True)


def test_a_file_is_no_folder_to_fill(tmp_path):
    (tmp_path / "file").write_text("mine")
    for replace in (False, True):
        with pytest.raises(ParameterError, match="is a file"):
            with fill_folder(tmp_path / "file", replace=replace):
                pass
    assert (tmp_path / "file").read_text() == "mine"
