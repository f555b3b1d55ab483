"""Every tutorial runs as a program, and ends with what it does not show."""

import re
import runpy
from pathlib import Path

import pytest

TUTORIALS = sorted((Path(__file__).parents[1] / "tutorials").glob("[0-9]*.py"))
PNG = b"\x89PNG"


def test_there_are_tutorials_and_their_numbers_count_up():
    numbers = [int(path.name[:2]) for path in TUTORIALS]
    assert numbers == list(range(1, len(TUTORIALS) + 1))
    assert len(TUTORIALS) >= 2


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorial_is_written_in_cells(path):
    cells = re.split(r"^# %%", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert cells[0] == ""
    assert cells[1].startswith(" [markdown]\n# # ")
    last = cells[-1]
    assert last.startswith(" [markdown]\n# ## What this does not show\n")
    assert last.count("\n# - ") >= 3


@pytest.mark.tutorial
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorial_runs(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    runpy.run_path(str(path), run_name="__main__")
    drawn = sorted((tmp_path / "figures").iterdir())
    assert drawn
    for figure in drawn:
        assert figure.name.startswith(path.name[:2])
        assert figure.read_bytes()[:4] == PNG
        assert figure.stat().st_size > 5000
    assert "nan" not in capsys.readouterr().out.lower().split()
