"""What the tests of the roof share: simulated subject folders, and one report."""

import shutil
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest

from brainlsap.cli import main

# Small enough for seconds; two people at least in every class.
N_PEOPLE, N_SCANS = 14, 25


@pytest.fixture(scope="session")
def simulated_folder(tmp_path_factory):
    """Subject folders of 14 people in `desikan82`; only to be read."""
    folder = tmp_path_factory.mktemp("simulated") / "study"
    arguments = ["--people", str(N_PEOPLE), "--atlas", "desikan82"]
    assert main(["simulate", str(folder), *arguments]) == 0
    return folder


@pytest.fixture
def subject_folders(simulated_folder, tmp_path):
    """Hold a copy of the simulated folders that a test may spoil."""
    return Path(shutil.copytree(simulated_folder, tmp_path / "study"))


def run_command(folder, out, *more):
    """Return the command that runs two kernels on the simulated folders quickly."""
    return [
        *("run", str(folder), "--out", str(out), "--atlas", "desikan82"),
        *("--feature", "fdg", "--kernel", "exact,chebyshev"),
        *("--folds", "2", "--epochs", "4", "--starts", "1", *more),
    ]


@pytest.fixture(scope="session")
def command():
    return run_command


@dataclass(frozen=True)
class FinishedRun:
    """Where the results lie, and what was printed."""

    out: Path
    printed: tuple[str, ...]


@pytest.fixture(scope="session")
def finished_run(simulated_folder, tmp_path_factory):
    """Results of two kernels on the simulated folders; only to be read."""
    out = tmp_path_factory.mktemp("finished") / "results"
    with redirect_stdout(StringIO()) as printed:
        assert main(run_command(simulated_folder, out)) == 0
    return FinishedRun(out, tuple(printed.getvalue().strip().splitlines()))
