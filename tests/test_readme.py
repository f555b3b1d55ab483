"""The Python in the README runs as it stands, from top to bottom."""

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
