"""The README: it is short, its code runs as it stands, and its links lead somewhere."""

import re
import shlex
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from brainlsap.cli import build_parser, main
from brainlsap.evaluation import models

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
pytestmark = [
    pytest.mark.skipif(not README.is_file(), reason="there is no README"),
    pytest.mark.usefixtures("brief_studies"),
]
BRIEF_FLAGS = {
    "simulate": "--people 16 --atlas desikan82",
    "check": "--atlas desikan82",
}
"""Flags that make the commands of the README faster; they stand behind its own."""

BRIEF_CODE = {
    "LSAPClassifier()": "LSAPClassifier(n_epochs=3, n_starts=1)",
    "n_people=60": "n_people=30",
    "cv=3": "cv=2",
    '"results_arrays"': '"results_arrays", cv=2, n_epochs=3, n_starts=1',
}
"""Settings that make Python code of the documentation faster."""


@pytest.fixture
def few_baselines(monkeypatch):
    """Fit two of the baselines, because examples are not about baselines."""
    names = ("majority class", "logistic regression")
    monkeypatch.setattr(models, "BASELINES", names)


@pytest.fixture(scope="module")
def text():
    return README.read_text(encoding="utf-8")


def code_of(text, language):
    """Return the blocks of code in a language."""
    pattern = rf"^```{language}\n(.*?)^```"
    return re.findall(pattern, text, re.MULTILINE | re.DOTALL)


def make_brief(code):
    """Return the code of an example with settings that make it faster."""
    for shown, brief in BRIEF_CODE.items():
        code = code.replace(shown, brief)
    assert "n_epochs=3" in code
    return code


def commands_of(text):
    """Return the commands of brainlsap in a text, as lists of arguments."""
    lines = "".join(code_of(text, "sh")).splitlines()
    commands = [shlex.split(line, comments=True) for line in lines]
    return [command[1:] for command in commands if command[:1] == ["brainlsap"]]


def test_is_short(text):
    assert len(text.split()) <= 550


def test_links_lead_to_files(text):
    targets = re.findall(r"\]\((?!https:)([^)]+)\)", text)
    assert len(targets) >= 6
    for target in targets:
        assert (ROOT / target).exists(), target


@pytest.mark.tutorial
@pytest.mark.usefixtures("few_baselines")
def test_python_runs(text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    (block,) = code_of(text, "python")
    exec(compile(make_brief(block), str(README), "exec"), {"__name__": "readme"})
    plt.close("all")
    printed = capsys.readouterr().out
    assert "logistic regression" in printed
    assert "p_effect" in printed
    assert (tmp_path / "effects.pdf").stat().st_size > 5000


@pytest.mark.tutorial
def test_commands_run(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    *brief_commands, run_command = commands_of(text)
    assert [command[0] for command in brief_commands] == list(BRIEF_FLAGS)
    for command in brief_commands:
        assert main([*command, *BRIEF_FLAGS[command[0]].split()]) == 0
    # test_cli.py runs such a study by `demo`.
    assert build_parser().parse_args(run_command).out == "results"


def test_make_targets_exist(text):
    lines = "".join(code_of(text, "sh")).splitlines()
    targets = [line.split()[1] for line in lines if line.startswith("make ")]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets == ["demo", "test"]
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


@pytest.mark.tutorial
@pytest.mark.usefixtures("scores_figure_alone", "few_baselines")
def test_arrays_of_the_documentation_run(tmp_path, monkeypatch):
    """Run the page *Bring arrays*, with arrays of 30 people and six regions."""
    page = ROOT / "docs" / "arrays.rst"
    if not page.is_file():
        pytest.skip("the docs are not here")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    (block,) = rst_code_of(page, "python")
    rng = np.random.default_rng(0)
    upper = rng.uniform(-1, 1, (30, 6, 6))
    variables = {
        "__name__": "arrays",
        "connectomes": upper + upper.transpose(0, 2, 1),
        "features": rng.normal(size=(30, 6)),
        "labels": ["CN", "MCI", "AD"] * 10,
        "people": range(30),
        "table": pd.DataFrame({"age": rng.uniform(60, 80, 30)}),
        "names": [f"{name}_{side}" for name in "abc" for side in "LR"],
        "xyz": [[side * 9.0 * k, -7 * k, 9] for k in (2, 3, 4) for side in (-1, 1)],
    }
    new_upper = rng.uniform(-1, 1, (3, 6, 6))
    variables["new_connectomes"] = new_upper + new_upper.transpose(0, 2, 1)
    variables["new_features"] = rng.normal(size=(3, 6))
    exec(compile(make_brief(block), str(page), "exec"), variables)
    plt.close("all")
    assert (tmp_path / "results_arrays" / "report" / "report.html").is_file()


def rst_code_of(page, language):
    """Return the blocks of code in a language of a page of the documentation."""
    blocks = re.findall(
        rf"\.\. code-block:: {language}\n\n((?:   .*\n|\n)+)",
        page.read_text(encoding="utf-8"),
    )
    return [re.sub(r"^ {3}", "", block, flags=re.MULTILINE) for block in blocks]


@pytest.mark.parametrize("name", ["command_line", "ten_minutes"])
def test_commands_of_the_documentation_can_be_parsed(name):
    page = ROOT / "docs" / f"{name}.rst"
    if not page.is_file():
        pytest.skip("the docs are not here")
    lines = "\n".join(rst_code_of(page, "sh")).splitlines()
    commands = [shlex.split(line, comments=True) for line in lines if line]
    assert len(commands) >= 5
    for command in commands:
        assert command[0] == "brainlsap"
        build_parser().parse_args(command[1:])
