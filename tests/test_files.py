import os

import pytest

from brainlsap._files import replace_when_whole, write_text


def test_text_is_written_whole_into_a_new_folder(tmp_path):
    path = write_text(tmp_path / "new" / "a.txt", "größe\n")
    assert path.read_bytes() == "größe\n".encode()
    assert [one.name for one in path.parent.iterdir()] == ["a.txt"]


def test_the_temporary_file_keeps_the_suffixes(tmp_path):
    with replace_when_whole(tmp_path / "table.tsv.gz") as partial:
        assert partial.parent == tmp_path
        assert partial.name.startswith(".partial-")
        assert partial.name.endswith(".tsv.gz")


def test_a_failure_leaves_what_was_there(tmp_path):
    path = write_text(tmp_path / "a.txt", "first")

    def fail_half_way():
        with replace_when_whole(path) as partial:
            partial.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail_half_way()
    assert path.read_text() == "first"
    assert [one.name for one in tmp_path.iterdir()] == ["a.txt"]


def test_permissions_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        path = write_text(tmp_path / "a.txt", "text")
        assert os.umask(0o027) == 0o027  # it was put back
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640
