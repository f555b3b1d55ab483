"""A results folder held by one run: tasks outlive reports, and runs continue."""

import pytest

from brainlsap.cli import main
from brainlsap.exceptions import ParameterError
from brainlsap.report import check_results_folder
from brainlsap.report.folder import replace_folder
from brainlsap.study.holding import hold_results

TASK = "0" * 64 + ".safetensors"


def test_tasks_are_not_foreign_and_outlive_the_report(tmp_path):
    out = tmp_path / "out"
    with hold_results(out) as tasks:
        tasks.mkdir()
        (tasks / TASK).write_text("finished")
        assert tasks.parent.stat().st_mode & 0o777 == 0o700
        for text in ("first", "second"):
            with replace_folder(out) as fresh:
                (fresh / "page").write_text(text)
                (fresh / "private").mkdir()
    assert (out / "page").read_text() == "second"
    assert (tasks / TASK).read_text() == "finished"
    assert TASK not in (out / "brainlsap-report.json").read_text()
    check_results_folder(out)
    (tasks / "mine.txt").write_text("x")
    with pytest.raises(ParameterError, match=r"no report wrote \(private/tasks/mine"):
        check_results_folder(out)


def finish_and_raise(out, error, text="finished"):
    with hold_results(out) as tasks:
        tasks.mkdir()
        if text:
            (tasks / TASK).write_text(text)
        raise error


def test_stopping_says_how_to_continue(tmp_path):
    told = r"same command again.* 1 finished tasks are kept in .*private.tasks"
    with pytest.raises(KeyboardInterrupt, match=told):
        finish_and_raise(tmp_path / "out", KeyboardInterrupt())
    assert [one.name for one in tmp_path.iterdir()] == ["out"]


def test_a_fault_of_the_package_leaves_a_log_that_names_nobody(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(RuntimeError, match="sub-01 of /home/anna") as caught:
        finish_and_raise(out, RuntimeError("sub-01 of /home/anna"), text="")
    assert str(tmp_path / "out-fault.txt") in caught.value.__notes__[0]
    told = (tmp_path / "out-fault.txt").read_text()
    assert "version: python 3." in told
    assert "fault: RuntimeError\n" in told
    assert "at: study/holding.py, line " in told
    assert "at: test_holding.py, line " in told
    assert "in finish_and_raise\n" in told
    assert "sub-01" not in told
    assert "anna" not in told
    assert str(tmp_path) not in told
    with pytest.raises(ParameterError):
        finish_and_raise(out, ParameterError("bad luck"), text="")
    assert not (tmp_path / "out-fault.txt").exists()


@pytest.mark.parametrize("there", [True, False])
def test_nothing_is_left_where_nothing_was_finished(tmp_path, there):
    out = tmp_path / "out"
    if there:
        out.mkdir()
    with pytest.raises(ParameterError, match="bad luck"):
        finish_and_raise(out, ParameterError("bad luck"), text="")
    assert list(tmp_path.rglob("*")) == ([out] if there else [])


def test_run_reuses_its_tasks_and_refuses_a_folder_in_use(
    simulated_folder, tmp_path, command, monkeypatch, capsys
):
    monkeypatch.setattr(
        "brainlsap.study.whole_way.write_study", lambda *_, **__: "page"
    )
    out, kept = tmp_path / "out", tmp_path / "kept"
    asked = command(simulated_folder, out, "--cache", str(kept))
    asked[asked.index("exact,chebyshev")] = "exact"
    assert main(asked) == 0
    assert f"Tasks: 10, kept in {kept}" in capsys.readouterr().out
    assert main(asked) == 0
    assert f"Tasks: 10 of 10 reused, kept in {kept}" in capsys.readouterr().out
    with hold_results(out.resolve()):
        assert main(asked) == 2
    assert "is in use by another run" in capsys.readouterr().err
    assert main([*asked, "--backend", "dask"]) == 0  # nothing is left to be done
