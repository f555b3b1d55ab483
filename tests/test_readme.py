"""The Python in the README runs as it stands, from top to bottom."""

import argparse
import re
from pathlib import Path

import pytest


README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(
    r"(<!-- not run -->\s*)?^```python\n(.*?)^```", re.MULTILINE | re.DOTALL
)


def blocks_in(text):
    return [code for skipped, code in BLOCK.findall(text) if not skipped]


def test_blocks_are_found_and_marked_ones_left_out():
    text = "a\n```python\nx = 1\n```\n<!-- not run -->\n```python\nno\n```\n"
    assert blocks_in(text + "```bash\nls\n```\n") == ["x = 1\n"]


@pytest.mark.tutorial
def test_readme_runs(tmp_path, monkeypatch):
    if not README.is_file():
        pytest.skip(f"{README} is not here")
    text = README.read_text(encoding="utf-8")
    blocks = blocks_in(text)
    assert bool(blocks) == ("```python" in text)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "readme"}
    for number, code in enumerate(blocks, start=1):
        exec(compile(code, f"README.md, block {number}", "exec"), names)


def test_every_command_is_in_the_table():
    if not README.is_file():
        pytest.skip(f"{README} is not here")
    table = README.read_text(encoding="utf-8").partition("| command | does |")[2]
    table = table.partition("\n\n")[0]
    assert set(re.findall(r"`([a-z-]+)`", table)) - {"bash", "zsh"} == set(COMMANDS)


def test_flags_of_the_table_exist():
    if not README.is_file():
        pytest.skip(f"{README} is not here")
    table = README.read_text(encoding="utf-8").partition("| flag of `run` |")[2]
    first = [line.split("|")[1] for line in table.partition("\n\n")[0].splitlines()[2:]]
    flags = set(re.findall(r"--[a-z-]+", " ".join(first)))
    parser = argparse.ArgumentParser()
    COMMANDS["run"].add(parser.add_subparsers())
    words = parser._subparsers._group_actions[0].choices["run"]._option_string_actions
    assert len(flags) > 10
    assert flags <= set(words)
