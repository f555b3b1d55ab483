"""Every tutorial runs, and ends with what it does not show."""

import ast
import re
import runpy
from functools import partial
from pathlib import Path
from unittest.mock import patch

import matplotlib.pyplot as plt
import pytest

from brainlsap.data.connectomes import FORMATS
from brainlsap.evaluation import models
from brainlsap.report import page
from tests.conftest import FEW_POWERS
from tests.test_docs import load

ROOT = Path(__file__).parents[1]
TUTORIALS = sorted((ROOT / "tutorials").glob("[0-9]*.py"))
NOTEBOOKS = sorted((ROOT / "tutorials").glob("[0-9]*.ipynb"))
pytestmark = [
    pytest.mark.skipif(not TUTORIALS, reason="the tutorials are not here"),
    pytest.mark.usefixtures("brief_studies"),
]
# Draws of scales, 30 by default. What tutorials assert holds for both numbers. Their
# texts state the results of 30 draws, with which the documentation is built.
N_SCALE_DRAWS = 6
N_SCALE_DRAWS_OF_NOTEBOOKS = 12


def test_numbers_of_tutorials_count_up():
    numbers = [int(path.name[:2]) for path in sorted([*TUTORIALS, *NOTEBOOKS])]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("path", [*TUTORIALS, *NOTEBOOKS], ids=lambda path: path.stem)
def test_tutorials_show_the_default_model_or_name_the_plain_network(path):
    text = path.read_text(encoding="utf-8")
    assert "initial_scale" not in text
    if "constant" in re.findall(r"start\W+(constant|ridge)", text):
        assert "plain network" in " ".join(text.replace("#", " ").split())


@pytest.mark.parametrize("path", [*TUTORIALS, *NOTEBOOKS], ids=lambda path: path.stem)
def test_tutorials_begin_with_a_question_and_assert_their_result(path):
    cells = load("gallery").read_cells(path)
    _, question, *results = cells[0].source.split("\n\n")
    assert "?" in question
    assert results[0].startswith("**What comes out.** ")
    assert "simulated" in cells[0].source
    assert re.search(r"\d", results[0])
    code = "\n".join(cell.source for cell in cells if not cell.is_text)
    asserted = [
        node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Assert)
    ]
    assert len(asserted) >= 3


@pytest.mark.parametrize("path", [*TUTORIALS, *NOTEBOOKS], ids=lambda path: path.stem)
def test_tutorials_say_which_settings_are_for_speed_alone(path):
    code = "\n".join(
        cell.source for cell in load("gallery").read_cells(path) if not cell.is_text
    )
    if re.search(r"n_epochs|n_starts|--epochs|n_folds=|cv=|n_spins=|n_repeats=", code):
        assert "so that this runs in seconds" in " ".join(code.replace("#", "").split())


def test_the_cluster_of_the_tutorial_counts_what_reached_it():
    (path,) = (one for one in TUTORIALS if "dask" in one.name)
    text = path.read_text(encoding="utf-8")
    assert "n_workers=2" in text
    assert re.search(r"assert n_finished == \d", text)


@pytest.fixture
def brief_cluster(monkeypatch):
    """Let a cluster of subprocesses have its scheduler here, and no nannies.

    Each of their processes would import torch. The documentation starts all of them.
    """
    import distributed
    from distributed.deploy import subprocess

    def make_scheduler(scheduler_kwargs):
        return distributed.Scheduler(**scheduler_kwargs | {"dashboard": False})

    start_cluster = partial(
        distributed.SubprocessCluster, worker_class="distributed.Worker"
    )
    monkeypatch.setattr(subprocess, "SubprocessScheduler", make_scheduler)
    monkeypatch.setattr(distributed, "SubprocessCluster", start_cluster)


@pytest.fixture
def brief_run(monkeypatch):
    """Let `run` fit two baselines, and draw the one figure that the page shows."""
    draw_figure_by_name = page.draw_figure_by_name

    def draw_effects(evaluation, atlas, figure_names=("effects",)):
        names = [name for name in figure_names if name == "effects"]
        return draw_figure_by_name(evaluation, atlas, names) if names else {}

    monkeypatch.setattr(models, "BASELINES", ("majority class", "logistic regression"))
    monkeypatch.setattr(page, "draw_figure_by_name", draw_effects)


@pytest.mark.tutorial
@pytest.mark.filterwarnings("ignore:.*unlike the training")  # as 10 says
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorial_runs_and_says_what_it_does_not_show(
    path, tmp_path, monkeypatch, capsys, request
):
    if "SubprocessCluster" in path.read_text(encoding="utf-8"):
        request.getfixturevalue("brief_cluster")
    if "command_line" in path.name:
        request.getfixturevalue("brief_run")
    cells = re.split(r"^# %%", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert cells[0] == ""
    assert cells[1].startswith(" [markdown]\n# # ")
    assert cells[-1].startswith(" [markdown]\n# ## What this does not show\n")
    assert cells[-1].count("\n# - ") >= 3

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # of the workers of a cluster
    with patch.dict(FORMATS):  # tutorial 13 adds a format, which other tests lack
        runpy.run_path(str(path), run_name="__main__")
    plt.close("all")
    assert "nan" not in capsys.readouterr().out.lower().split()
    drawn = sorted((tmp_path / "figures").iterdir())
    assert drawn
    for figure in drawn:
        assert figure.name.startswith(path.name[:2])
        assert figure.read_bytes()[:4] == b"\x89PNG"
        assert figure.stat().st_size > 5000


# Few penalties and draws, as `brief_studies` has them, for the process of a notebook.
BRIEF_KERNEL = f"""
import gc
gc.disable()  # Its rounds slow imports.
from brainlsap.evaluation import models
from brainlsap.model import ridge
from brainlsap.model.scale_sampler import sample_scales

models.EXPONENTS_OF_C = {FEW_POWERS}
ridge.sample_scales = lambda evidence, fit, _, *arguments: sample_scales(
    evidence, fit, {N_SCALE_DRAWS_OF_NOTEBOOKS}, *arguments
)
"""


@pytest.mark.tutorial
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the kernel's client
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_its_pictures_and_tables(path, tmp_path, monkeypatch):
    startup = tmp_path / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "brief.py").write_text(BRIEF_KERNEL)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    gallery = load("gallery")
    cells = gallery.read_cells(path)
    ran = gallery.run_notebook(cells, path, tmp_path)
    assert cells[-1].source.startswith("## What this does not show")
    for (is_text, source), came in zip(cells, ran, strict=True):
        last = source.splitlines()[-1]
        if is_text or not last.startswith("plot_"):
            continue
        (name,) = came.drawn  # by itself, as the last line of its cell, and once
        assert (tmp_path / name).stat().st_size > 5000
    assert sum(bool(one.drawn) for one in ran) == 4
    assert any("<table" in one.html for one in ran)
