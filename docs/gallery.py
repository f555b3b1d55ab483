"""Tutorials become pages: text, code, what each cell printed, what it drew."""

import contextlib
import io
import re
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

CELL = re.compile(r"^# %%", flags=re.MULTILINE)


class Ran(NamedTuple):
    """What a cell printed and drew."""

    printed: str = ""
    drawn: tuple[str, ...] = ()


def write_gallery(scripts: Path, folder: Path, *, run: bool = True) -> None:
    """Write a page for each tutorial, and the page that shows them all."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "images").mkdir(parents=True)
    cards, names = [], []
    for script in sorted(scripts.glob("[0-9]*.py")):
        cells = read_cells(script)
        ran = run_cells(cells, script, folder / "images") if run else [Ran()] * 999
        (folder / f"{script.stem}.rst").write_text(page(cells, ran), encoding="utf-8")
        drawn = [one for cell in ran for one in cell.drawn]
        cards.append(card(script.stem, title_of(cells), drawn))
        names.append(script.stem)
    toc = [".. toctree::", "   :hidden:", "", *(f"   {name}" for name in names), ""]
    head = ["Tutorials", "=========", "", HEAD, "", ".. container:: gallery", ""]
    index = "\n".join([*head, *cards, "", *toc])
    (folder / "index.rst").write_text(index, encoding="utf-8")


HEAD = """Each page is a program of the folder ``tutorials/``, run when this page was
built: text, code, and what the code printed and drew. People are simulated; a run takes
seconds. Each ends with what its result does not show."""


def read_cells(script: Path) -> list[tuple[bool, str]]:
    """Return (is text, source) for every cell."""
    cells = []
    for cell in CELL.split(script.read_text(encoding="utf-8"))[1:]:
        first, _, rest = cell.partition("\n")
        cells.append((first.strip() == "[markdown]", rest.strip("\n")))
    return cells


def title_of(cells: list[tuple[bool, str]]) -> str:
    """Return the first heading."""
    return cells[0][1].splitlines()[0].removeprefix("# # ")


def run_cells(cells: list[tuple[bool, str]], script: Path, images: Path) -> list[Ran]:
    """Run the code from top to bottom in an empty folder; keep what came out."""
    import matplotlib.pyplot as plt

    names: dict[str, object] = {"__name__": "__main__", "__file__": str(script)}
    ran, seen = [], set()
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        for is_text, source in cells:
            if is_text:
                ran.append(Ran())
                continue
            said = io.StringIO()
            with (
                contextlib.redirect_stdout(said),
                contextlib.redirect_stderr(io.StringIO()),  # bars of progress
            ):
                exec(compile(source, str(script), "exec"), names)
            new = sorted(set(Path("figures").glob("*.png")) - seen)
            seen.update(new)
            for figure in new:
                shutil.copy(figure, images / figure.name)
            ran.append(Ran(said.getvalue(), tuple(one.name for one in new)))
    plt.close("all")
    return ran


def page(cells: list[tuple[bool, str]], ran: list[Ran]) -> str:
    """Return a tutorial as reStructuredText."""
    parts = []
    for (is_text, source), came in zip(cells, ran, strict=False):
        if is_text:
            parts.append(to_rst(source))
            continue
        parts.append(block("python", source))
        if came.printed.strip():
            parts.append(block("text", came.printed.rstrip()))
        parts += [f".. image:: images/{one}\n" for one in came.drawn]
    return "\n".join(parts) + "\n"


def block(language: str, text: str) -> str:
    """Return a block of code."""
    lines = [f"   {line}".rstrip() for line in text.splitlines()]
    return "\n".join([f".. code-block:: {language}", "", *lines, ""])


def to_rst(source: str) -> str:
    """Return the Markdown of a cell as reStructuredText: headings, code, links."""
    plain = "\n".join(
        line.removeprefix("#").removeprefix(" ") for line in source.splitlines()
    )
    plain = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", plain)
    plain = re.sub(r"\[([^\]]+)\]\(([^)]+)\)", r"`\1 <\2>`__", plain)
    lines = []
    for line in plain.splitlines():
        text = line
        for mark, under in (("# ", "="), ("## ", "-")):
            if text.startswith(mark):
                text = text.removeprefix(mark)
                lines += [text, under * len(text)]
                break
        else:
            lines.append(text)
    return "\n".join(lines) + "\n"


def card(stem: str, title: str, drawn: list[str]) -> str:
    """Return one picture of the gallery, with its title."""
    if not drawn:
        return f"   * :doc:`{title} <{stem}>`\n"
    return "\n".join(
        [
            f"   .. figure:: images/{drawn[0]}",
            f"      :target: {stem}.html",
            f"      :alt: {title}",
            "",
            f"      :doc:`{title} <{stem}>`",
            "",
        ]
    )
