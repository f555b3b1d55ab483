"""Every tutorial runs as a program, and ends with what it does not show."""

import re
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

TUTORIALS = sorted((Path(__file__).parents[1] / "tutorials").glob("[0-9]*.py"))
pytestmark = pytest.mark.skipif(not TUTORIALS, reason="the tutorials are not here")


def test_numbers_of_tutorials_count_up():
    numbers = [int(path.name[:2]) for path in TUTORIALS]
    assert numbers == list(range(1, len(TUTORIALS) + 1))


@pytest.mark.tutorial
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorial_runs_and_says_what_it_does_not_show(
    path, tmp_path, monkeypatch, capsys
):
    cells = re.split(r"^# %%", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert cells[0] == ""
    assert cells[1].startswith(" [markdown]\n# # ")
    assert cells[-1].startswith(" [markdown]\n# ## What this does not show\n")
    assert cells[-1].count("\n# - ") >= 3

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    runpy.run_path(str(path), run_name="__main__")
    plt.close("all")
    assert "nan" not in capsys.readouterr().out.lower().split()
    drawn = sorted((tmp_path / "figures").iterdir())
    assert drawn
    for figure in drawn:
        assert figure.name.startswith(path.name[:2])
        assert figure.read_bytes()[:4] == b"\x89PNG"
        assert figure.stat().st_size > 5000
