"""What `make docs` makes from code and tutorials, without building the pages."""

import importlib
import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def load(name):
    if not DOCS.is_dir():
        pytest.skip(f"{DOCS} is not here")
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages():
    return load("pages_from_code")


@pytest.fixture(scope="module")
def gallery():
    return load("gallery")


def test_every_public_name_has_a_page(pages):
    rooms = {room: said for room, said in pages.ROOMS.items() if "exc" not in room}
    for room, title in rooms.items():
        page = pages.room_page(room, title)
        for name in importlib.import_module(room).__all__:
            wanted = (f"   {name}\n", f"``{name}``", f".{name}`")
            assert any(form in page for form in wanted), name
    assert "   load_cohort\n" in pages.room_page("brainlsap.data", "data")


def test_reference_lists_every_room(pages):
    listed = (DOCS / "reference.rst").read_text(encoding="utf-8")
    for room in pages.ROOMS:
        assert f"generated/{room}\n" in listed


def test_commands_and_severities_are_tables(pages):
    assert "``brainlsap run``" in pages.commands_page()
    assert "* - person in two folds\n     - error" in pages.severities()


def test_results_become_tables(pages):
    table = "| a | b |\n| --- | ---: |\n| 1 | - |\n"
    made = pages.to_rst(f"# nodes\n\n## Title\n\nBy `make`.\n\n{table}")
    assert "nodes" not in made
    assert ".. rubric:: Title\n" in made
    assert "By ``make``." in made
    assert "   * - a\n     - b\n   * - 1\n     - \\-\n" in made


def test_cells_become_a_page(gallery, tmp_path):
    script = tmp_path / "01_small.py"
    script.write_text(
        "# %% [markdown]\n# # Title\n#\n# Of `code` and a [link](there).\n\n"
        "# %%\nfrom pathlib import Path\n\nprint(6 * 7)\nPath('figures').mkdir()\n"
        "_ = Path('figures/01_a.png').write_bytes(b'')\n"
    )
    gallery.write_gallery(tmp_path, tmp_path / "out")
    page = (tmp_path / "out" / "01_small.rst").read_text()
    assert page.startswith("Title\n=====\n\nOf ``code`` and a `link <there>`__.\n")
    assert "   print(6 * 7)\n" in page
    assert ".. code-block:: text\n\n   42\n" in page
    assert ".. image:: images/01_a.png" in page
    assert "figure:: images/01_a.png" in (tmp_path / "out" / "index.rst").read_text()


def test_every_tutorial_is_a_page(gallery, tmp_path):
    scripts = DOCS.parent / "tutorials"
    gallery.write_gallery(scripts, tmp_path / "out", run=False)
    for script in scripts.glob("[0-9]*.py"):
        page = (tmp_path / "out" / f"{script.stem}.rst").read_text()
        assert "What this does not show\n-----" in page


def test_errors_of_expansions_are_computed(pages):
    assert pages.truncation_error("chebyshev", 20, 2.0) < 1e-14
    assert 1e-3 < pages.truncation_error("laguerre", 20, 4.0) < 1e-1
    assert "``hermite``, 30" in pages.errors()
