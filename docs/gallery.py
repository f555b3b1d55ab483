"""Make pages from tutorials: text, code, and the output and figures of each cell."""

import base64
import contextlib
import io
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
CELL = re.compile(r"^# %%", flags=re.MULTILINE)
COMMENT = re.compile(r"^# ?", flags=re.MULTILINE)
HEAD = """
Each page shows a program or a notebook of the folder ``tutorials/`` with its code,
output and figures. The programs were run when this page was built. A run takes
seconds, and all people are simulated. Each page begins with a question and its
result. It ends with a section on what the result does not show."""


class Cell(NamedTuple):
    """Markdown, or code."""

    is_text: bool
    source: str


class Ran(NamedTuple):
    """Output of a cell: printed text, HTML and figures."""

    printed: str = ""
    html: str = ""
    drawn: tuple[str, ...] = ()


def find_tutorials(folder: Path) -> list[Path]:
    """Return programs and notebooks in their order."""
    return sorted(one for one in folder.glob("[0-9]*") if one.suffix in RUNNERS)


def write_gallery(scripts: Path, folder: Path, *, run: bool = True) -> None:
    """Write a page for each tutorial, and the page that lists all of them."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "images").mkdir(parents=True)
    cards, names = [], []
    for script in find_tutorials(scripts):
        cells = read_cells(script)
        ran = [Ran()] * len(cells)
        if run:
            ran = RUNNERS[script.suffix](cells, script, folder / "images")
        (folder / f"{script.stem}.rst").write_text(page(cells, ran), encoding="utf-8")
        drawn = [one for cell in ran for one in cell.drawn]
        cards.append(card(script.stem, title_of(cells), drawn))
        names.append(script.stem)
    toc = [".. toctree::", "   :hidden:", "", *(f"   {name}" for name in names), ""]
    head = ["Examples", "========", "", HEAD, "", ".. container:: gallery", ""]
    index = "\n".join([*head, *cards, "", *toc])
    (folder / "index.rst").write_text(index, encoding="utf-8")


def read_cells(script: Path) -> list[Cell]:
    """Return the cells of a program or of a notebook."""
    text = script.read_text(encoding="utf-8")
    if script.suffix == ".ipynb":
        import nbformat

        cells = nbformat.reads(text, as_version=4).cells
        return [Cell(one.cell_type == "markdown", one.source) for one in cells]
    found = []
    for cell in CELL.split(text)[1:]:
        first, _, rest = cell.partition("\n")
        is_text, source = first.strip() == "[markdown]", rest.strip("\n")
        found.append(Cell(is_text, COMMENT.sub("", source) if is_text else source))
    return found


def title_of(cells: list[Cell]) -> str:
    """Return the first heading."""
    return cells[0].source.splitlines()[0].removeprefix("# ")


def run_program(cells: list[Cell], script: Path, images: Path) -> list[Ran]:
    """Run the code from top to bottom in an empty folder, and return its output."""
    import matplotlib.pyplot as plt
    from joblib.externals.loky import get_reusable_executor

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
            drawn = tuple(one.name for one in new)
            ran.append(Ran(said.getvalue(), drawn=drawn))
        # Idle processes would go on in the next program, in a folder that is gone.
        get_reusable_executor().shutdown(wait=True)
    plt.close("all")
    return ran


def run_notebook(_cells: list[Cell], script: Path, images: Path) -> list[Ran]:
    """Run a notebook in its own kernel, and return the output of its cells."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(script, as_version=4)
    # figures appear as in any notebook, whatever drew before in this process
    inline = "module://matplotlib_inline.backend_inline"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": inline}
    with tempfile.TemporaryDirectory() as place:
        resources = {"metadata": {"path": place}}
        client = NotebookClient(notebook, timeout=300, resources=resources)
        client.execute(env=environment)
    ran = []
    for number, cell in enumerate(notebook.cells):
        printed, html, drawn = "", "", []
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if output.output_type == "stream":
                printed += output.text if output.name == "stdout" else ""
            elif "image/png" in data:
                drawn.append(f"{script.stem[:2]}_{number}_{len(drawn)}.png")
                (images / drawn[-1]).write_bytes(base64.b64decode(data["image/png"]))
            elif "text/html" in data:
                html += data["text/html"]
            else:
                printed += data.get("text/plain", "")
        ran.append(Ran(printed, html, tuple(drawn)))
    return ran


RUNNERS = {".py": run_program, ".ipynb": run_notebook}


def page(cells: list[Cell], ran: list[Ran]) -> str:
    """Return a tutorial as reStructuredText."""
    parts = []
    for (is_text, source), came in zip(cells, ran, strict=True):
        if is_text:
            parts.append(to_rst(source))
            continue
        parts.append(block("code-block:: python", source))
        if came.printed.strip():
            parts.append(block("code-block:: text", came.printed.rstrip()))
        if came.html:
            parts.append(block("raw:: html", came.html))
        parts += [f".. image:: images/{one}\n" for one in came.drawn]
    return "\n".join(parts) + "\n"


def block(directive: str, text: str) -> str:
    """Return a directive with its content."""
    lines = [f"   {line}".rstrip() for line in text.splitlines()]
    return "\n".join([f".. {directive}", "", *lines, ""])


def to_rst(markdown: str) -> str:
    """Return the Markdown of a cell as reStructuredText: headings, code, links."""
    plain = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", markdown)
    plain = re.sub(r"\[([^\]]+)\]\(([^)]+)\)", r"`\1 <\2>`__", plain)
    lines = []
    for line in plain.splitlines():
        title = re.fullmatch(r"(#+) (.*)", line)
        if title:
            lines += [title[2], "=-"[len(title[1]) - 1] * len(title[2])]
        else:
            lines.append(line)
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
