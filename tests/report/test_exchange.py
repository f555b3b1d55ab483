"""One folder in the place of another, and what a kill in between leaves."""

import pytest

from brainlsap.report import exchange
from brainlsap.report.exchange import clean_after_kill, exchange_folders


def make(folder, text):
    folder.mkdir()
    (folder / "a").write_text(text)
    return folder


@pytest.mark.parametrize("at_once", [True, False])
def test_the_new_folder_stands_in_the_old_ones_place(tmp_path, monkeypatch, at_once):
    if not at_once:
        monkeypatch.setattr(exchange, "_exchanged", lambda *_: False)
    folder = make(tmp_path / "out", "old")
    exchange_folders(make(tmp_path / "new", "new"), folder)
    assert (folder / "a").read_text() == "new"
    exchange_folders(make(tmp_path / "first", "first"), tmp_path / "none")
    assert (tmp_path / "none" / "a").read_text() == "first"
    assert not list(tmp_path.glob(".old-*"))


def test_what_cannot_be_moved_leaves_the_old_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(exchange, "_exchanged", lambda *_: False)
    folder = make(tmp_path / "out", "old")
    with pytest.raises(OSError, match="No such file"):
        exchange_folders(tmp_path / "absent", folder)
    assert (folder / "a").read_text() == "old"


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
