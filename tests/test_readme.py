"""The README: its Python runs as it stands, and its tables name what exists."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from brainlsap.cli import build_parser

README = Path(__file__).parents[1] / "README.md"
pytestmark = pytest.mark.skipif(not README.is_file(), reason="there is no README")


@pytest.fixture(scope="module")
def text():
    return README.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def commands():
    """Every command's parser, by name."""
    return build_parser()._subparsers._group_actions[0].choices


def first_column(text, head):
    rows = text.partition(head)[2].partition("\n\n")[0].splitlines()[2:]
    return " ".join(row.split("|")[1] for row in rows)


@pytest.mark.tutorial
def test_python_runs(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    rng = np.random.default_rng(0)
    W = rng.uniform(-1, 1, (30, 6, 6))
    given = {
        "connectomes": W + W.transpose(0, 2, 1),
        "labels": ["CN", "MCI", "AD"] * 10,
    }
    given |= {"features": rng.normal(size=(30, 6)), "people": range(30)}
    given |= {"table": {"age": rng.uniform(60, 80, 30)}, "__name__": "readme"}
    given["names"] = [f"{name}_{side}" for name in "abc" for side in "LR"]
    given["xyz"] = [[side * 9.0 * k, -7 * k, 9] for k in (2, 3, 4) for side in (-1, 1)]
    given |= {f"new_{name}": given[name][:3] for name in ("connectomes", "features")}
    for block in blocks:
        exec(compile(block, str(README), "exec"), given)
    plt.close("all")
    assert len(blocks) == 2
    assert (tmp_path / "scales.pdf").stat().st_size > 5000
    assert (tmp_path / "results_arrays" / "report" / "report.html").is_file()


def test_table_of_commands_has_all_of_them(text, commands):
    table = first_column(text, "| command | does |")
    assert set(re.findall(r"`([a-z-]+)`", table)) == set(commands)


def test_flags_exist_and_no_flag_of_run_is_missing(text, commands):
    table = first_column(text, "| flag of `run` |")
    listed = set(re.findall(r"--[a-z-]+", table))
    there = {flag for flag in commands["run"]._option_string_actions if "--" in flag}
    assert listed == there - {"--help", "--out"}


def test_commands_shown_can_be_parsed(text):
    shell = "".join(re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    lines = shell.replace("\\\n", " ").splitlines()
    shown = [line for line in lines if line.startswith("brainlsap ")]
    assert len(shown) == 9
    for line in shown:
        build_parser().parse_args(line.partition("#")[0].split()[1:])
