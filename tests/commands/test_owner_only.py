"""`--owner-only`: what a command writes is read by nobody else."""

import os
import stat

import pytest

from brainlsap._files import current_umask
from brainlsap.cli import build_parser, main
from brainlsap.commands import COMMANDS, WRITING_NOTHING


@pytest.fixture(autouse=True)
def open_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def read_by_others(folder):
    paths = [folder, *folder.rglob("*")]
    assert len(paths) > 2
    return [
        one.relative_to(folder).as_posix()
        for one in paths
        if stat.S_IMODE(one.stat().st_mode) & 0o077
    ]


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - set(WRITING_NOTHING)))
def test_every_command_that_writes_takes_it(name):
    (commands,) = (one for one in build_parser()._actions if one.dest == "command")
    taken = commands.choices[name]._option_string_actions
    assert "--owner-only" in taken


def test_a_simulated_cohort_is_for_its_owner(tmp_path, capsys):
    asked = ["simulate", "--people", "6", "--atlas", "desikan82"]
    assert main([*asked, str(tmp_path / "closed"), "--owner-only"]) == 0
    assert current_umask() == 0o022  # as it was
    assert read_by_others(tmp_path / "closed") == []
    assert main([*asked, str(tmp_path / "open")]) == 0
    assert "participants.tsv" in read_by_others(tmp_path / "open")
    assert "scans of 6 people" in capsys.readouterr().out


def test_results_are_for_their_owner(finished_run, tmp_path, capsys):
    asked = ["rank", str(finished_run.out), "--out", str(tmp_path / "ranking")]
    assert main([*asked, "--owner-only"]) == 0
    assert read_by_others(tmp_path / "ranking") == []
    assert "Ranking: " in capsys.readouterr().out
