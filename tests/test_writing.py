"""Whatever is written appears whole or not at all, and says where it could not."""

import ast
import errno
import os
from pathlib import Path

import pytest

import brainlsap
from brainlsap._files import remove_partials, replace_when_whole, try_lock, write_text
from brainlsap._locks import fill_folder, lock_folder
from brainlsap.cli import main
from brainlsap.exceptions import WritingError
from brainlsap.report.folder import replace_folder

PACKAGE = Path(brainlsap.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
WRITES = {
    *("copy2", "copyfile", "copytree", "dump", "imsave", "imwrite"),
    *("save", "save_file", "savefig", "savetxt", "savez", "savez_compressed"),
    *("to_csv", "to_excel", "to_filename", "to_file", "to_json", "tofile"),
    *("write_bytes", "write_html", "write_image", "write_text", "symlink_to"),
}
WHOLE = {"replace_when_whole", "replace_folder", "fill_folder"}
# Their functions are called with a folder that appears whole.
INSIDE = {
    "report/page.py": "replace_folder",
    "report/folder.py": "replace_folder",
    "report/folder_files.py": "replace_folder",
    "data/subject_folders.py": "fill_folder",
    "data/adni_folder.py": "fill_folder",
    "data/adni_files.py": "fill_folder, of adni_folder.py",
}
# Written to memory, not to a file.
STREAMS = {"stream", "buffer", "kept"}


def name_of(path):
    return path.relative_to(PACKAGE).as_posix()


def called(call):
    function = call.func
    return getattr(function, "attr", getattr(function, "id", ""))


def opens_to_write(call):
    """Tell whether a call of open() or h5py.File() asks for another mode than "r"."""
    if called(call) not in {"open", "File", "fdopen", "ZipFile"}:
        return False
    mode = [one.value for one in call.keywords if one.arg == "mode"] or call.args[1:2]
    if called(call) == "open" and isinstance(call.func, ast.Attribute):
        mode = mode or call.args[:1]  # path.open("w")
    told = [one.value for one in mode if isinstance(one, ast.Constant)]
    return any(isinstance(one, str) and set(one) & set("wax+") for one in told)


def makes_text(call):
    """Tell whether to_csv() and the like have no path: then they return text."""
    given = [one for one in call.args if not isinstance(one, ast.Starred)]
    told = called(call).startswith("to_") and not given
    return told and not any(one.arg in {"path", "path_or_buf"} for one in call.keywords)


def goes_to_memory(call):
    first = call.args[0] if call.args else None
    return isinstance(first, ast.Name) and first.id in STREAMS


def bare_writes(tree):
    """Return the lines that write, but not within what makes files whole."""
    covered = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.With)
        and any(
            called(item.context_expr) in WHOLE
            for item in node.items
            if isinstance(item.context_expr, ast.Call)
        )
        for inner in ast.walk(node)
    }
    return [
        f"line {node.lineno}: {ast.unparse(node)[:80]}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and id(node) not in covered
        and (
            opens_to_write(node)
            or (
                isinstance(node.func, ast.Attribute)
                and called(node) in WRITES
                and not makes_text(node)
                and not goes_to_memory(node)
            )
        )
    ]


@pytest.mark.parametrize(
    "path",
    [p for p in MODULES if name_of(p) not in {"_files.py", *INSIDE}],
    ids=name_of,
)
def test_no_module_writes_a_file_that_may_stay_half_written(path):
    assert bare_writes(ast.parse(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "line",
    [
        "open(path, 'w')",
        "path.open('ab')",
        "h5py.File(path, 'w')",
        "frame.to_csv(path, sep=',')",
        "frame.to_csv(path_or_buf=path)",
        "figure.savefig(path)",
        "np.save(path, values)",
        "path.write_text(text)",
    ],
)
def test_the_guard_sees_what_it_looks_for(line):
    assert len(bare_writes(ast.parse(line))) == 1
    whole = f"with replace_when_whole(out) as path:\n    {line}"
    assert bare_writes(ast.parse(whole)) == []


@pytest.mark.parametrize(
    "line", ["open(path)", "frame.to_csv(sep=',')", "figure.savefig(stream)"]
)
def test_the_guard_leaves_readers_and_memory_alone(line):
    assert bare_writes(ast.parse(line)) == []


# ---- a full disk, and a folder that may not be written to -------------------------


def fail_in_file(path, error):
    with replace_when_whole(path) as partial:
        partial.write_text("half")
        raise error


def fail_in_folder(path, error):
    with replace_folder(path) as fresh:
        (fresh / "a").write_text("half")
        raise error


def fail_in_new_folder(path, error):
    with fill_folder(path) as whole:
        (whole / "a").write_text("half")
        raise error


FAILING = (fail_in_file, fail_in_folder, fail_in_new_folder)
FULL = OSError(errno.ENOSPC, "No space left on device")
BY_TEXT = OSError("Can't write data (error message = 'No space left on device')")


@pytest.mark.parametrize("fail", FAILING)
@pytest.mark.parametrize("error", [FULL, BY_TEXT, OSError(errno.EDQUOT, "Quota")])
def test_a_full_disk_is_said_with_the_path(fail, error, tmp_path):
    told = r"out cannot be written: no space left on the disk\. Free some and give the"
    with pytest.raises(WritingError, match=told) as caught:
        fail(tmp_path / "out", error)
    assert str(tmp_path / "out") in str(caught.value)
    assert caught.value.__cause__ is error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fail", FAILING)
@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.EPERM])
def test_a_closed_folder_is_said_with_the_path(fail, code, tmp_path):
    out = tmp_path / "out"
    told = r"out cannot be written: .*\. Name a folder that you may write to; what was"
    with pytest.raises(WritingError, match=told):
        fail(out, OSError(code, os.strerror(code), str(out)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fail", FAILING)
def test_an_input_that_may_not_be_read_is_not_blamed_on_the_output(fail, tmp_path):
    error = PermissionError(errno.EACCES, "Permission denied", "/elsewhere/mesh.gii")
    with pytest.raises(PermissionError) as caught:
        fail(tmp_path / "out", error)
    assert caught.value is error
    with pytest.raises(FileNotFoundError):
        fail(tmp_path / "out", FileNotFoundError(errno.ENOENT, "none", "x"))


def test_what_was_there_before_stays(tmp_path):
    path = write_text(tmp_path / "a.txt", "first")
    with pytest.raises(WritingError):
        fail_in_file(path, FULL)
    assert path.read_text() == "first"
    with replace_folder(tmp_path / "out") as fresh:
        (fresh / "a").write_text("first")
    with pytest.raises(WritingError):
        fail_in_folder(tmp_path / "out", FULL)
    assert (tmp_path / "out" / "a").read_text() == "first"


def test_a_lock_that_cannot_be_written_is_said(tmp_path, monkeypatch):
    def fail(*_):
        raise FULL

    monkeypatch.setattr(os, "pwrite", fail)
    with (
        pytest.raises(WritingError, match=r"\.out\.lock cannot be written: no space"),
        lock_folder(tmp_path / "out"),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_commands_say_it_in_one_line(tmp_path, monkeypatch, capsys):
    def fail(*_, **__):
        raise FULL

    monkeypatch.setattr("brainlsap.data.subject_folders._write_dataset", fail)
    asked = ["simulate", str(tmp_path / "new"), "--people", "6", "--atlas", "desikan82"]
    assert main(asked) == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert line.startswith(
        f"brainlsap: error: {tmp_path / 'new'} cannot be written: no"
    )
    assert list(tmp_path.iterdir()) == []


# ---- what killed processes leave, and what others are writing ----------------------


def test_partials_of_the_dead_go_and_of_the_living_stay(tmp_path):
    deep = tmp_path / "sub-01" / "dwi"
    deep.mkdir(parents=True)
    (deep / ".partial-abcd_123.csv").write_text("half")
    (deep / ".partial-notes").mkdir()
    (deep / ".partial-MINE.txt").write_text("somebody's own")
    with replace_when_whole(deep / "b.csv") as partial:
        remove_partials(tmp_path)
        assert partial.is_file()
        handle = os.open(partial, os.O_RDWR)
        assert not try_lock(handle)
        os.close(handle)
    left = {one.name for one in deep.iterdir()}
    assert left == {".partial-notes", ".partial-MINE.txt", "b.csv"}
    remove_partials(tmp_path / "absent")
