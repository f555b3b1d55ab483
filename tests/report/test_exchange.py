"""One folder in the place of another."""

import pytest

from brainlsap.report import exchange
from brainlsap.report.exchange import exchange_folders


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
