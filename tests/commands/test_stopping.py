"""Ctrl-C and SIGTERM: an answer at once, a way to continue, nothing half-written."""

import os
import signal

import pytest

from brainlsap.cli import main


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_says_how_to_continue(
    simulated_folder, tmp_path, command, monkeypatch, capfd, sign
):
    from brainlsap.evaluation import tasks

    real, seen = tasks.fit_task, []

    def stop_at_third(task, scans):
        seen.append(task.name)
        if len(seen) == 3:
            os.kill(os.getpid(), sign)
        return real(task, scans)

    before = signal.getsignal(sign)
    monkeypatch.setattr(tasks, "fit_task", stop_at_third)
    asked = command(simulated_folder, tmp_path / "out")
    asked[asked.index("exact,chebyshev")] = "exact"
    assert main(asked) == 130
    told = capfd.readouterr().err
    assert "brainlsap: stopping; a run continues if the same command is given" in told
    assert told.strip().endswith("nothing half-written is left.")
    assert "2 finished tasks are kept in" in told
    assert signal.getsignal(sign) is before
    left = sorted(one.name for one in tmp_path.rglob("*") if one.is_file())
    assert len(left) == 2
    assert all(name.endswith(".safetensors") for name in left)
