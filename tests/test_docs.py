"""What `make docs` makes from code and tutorials, without building the pages."""

import importlib
import importlib.util
import re
from pathlib import Path

import pytest

from brainlsap.options import OPTIONS

DOCS = Path(__file__).parents[1] / "docs"
pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="the docs are not here")


def load(name):
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


def test_every_public_name_of_every_package_is_on_its_page(pages):
    listed = (DOCS / "reference.rst").read_text(encoding="utf-8")
    for package, title in pages.PACKAGES.items():
        assert f"generated/{package}\n" in listed
        page = pages.package_page(package, title)
        for name in getattr(importlib.import_module(package), "__all__", ()):
            assert f" {name}\n" in page, f"{package}.{name}"


def test_no_package_is_left_out(pages):
    folders = (DOCS.parent / "brainlsap").glob("*/__init__.py")
    assert {f"brainlsap.{one.parent.name}" for one in folders} <= set(pages.PACKAGES)


def test_commands_formats_and_atlases_are_read_from_the_code(pages):
    assert "``brainlsap run``" in pages.commands_page()
    assert "--permutations N" in pages.commands_page()
    assert "``.npz``" in pages.suffixes()
    assert "* - ``destrieux160``\n     - 160\n     - 148\n" in pages.atlases()


def test_every_option_is_on_the_page_of_the_command_line(pages):
    page = pages.commands_page()
    settings = pages.settings_page()
    for option in OPTIONS:
        if option.flag:
            assert f"``{option.flag}" in page, option.name
            assert option.help.replace("*", "\\*") in page, option.name
        else:
            assert f"``{option.name}``" in settings


def test_every_page_is_in_a_table_of_contents():
    pages_of_docs = {page.stem for page in DOCS.glob("*.rst")} - {"index"}
    listed = set()
    for page in DOCS.glob("*.rst"):
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"\.\. toctree::\n((?:   .*\n|\n)+)", text):
            listed |= set(re.findall(r"(\w+)>?$", block, re.MULTILINE))
    assert pages_of_docs <= listed


def test_errors_of_expansions_are_computed(pages):
    assert pages.truncation_error("chebyshev", 20, 2.0) < 1e-14
    assert 1e-3 < pages.truncation_error("laguerre", 20, 4.0) < 1e-1
    assert "``hermite``, 30" in pages.errors()


def test_results_of_benchmarks_become_tables(pages):
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
    for script in gallery.find_tutorials(scripts):
        page = (tmp_path / "out" / f"{script.stem}.rst").read_text(encoding="utf-8")
        assert "What this does not show\n-----" in page


def test_names_and_files_in_the_guide_of_contributors_exist():
    root = DOCS.parent
    guide = (root / "CONTRIBUTING.md").read_text("utf-8")
    paths = [
        path
        for folder in ("brainlsap", "tests", "docs", "atlases", "benchmarks")
        for path in (root / folder).rglob("*")
    ]
    paths += root.iterdir()
    texts = [
        path.read_text("utf-8")
        for path in paths
        if path.suffix in {".py", ".j2", ".json", ".toml"} or path.name == "Makefile"
    ]
    words = {*re.findall(r"\w+", "\n".join(texts))}
    places = " ".join(f"{path.relative_to(root)} " for path in paths)
    missing = []
    for code in re.findall("`([^`]+)`", guide.replace("```", "")):
        if re.fullmatch(r"[\w./-]+\.(py|md|rst|j2|json|toml)", code):
            if f"{code} " not in places:
                missing.append(code)
        elif "*" not in code and not code.startswith(("pytest ", "make ")):
            # A name that ends in an underscore is the beginning of names.
            missing += {*re.findall(r"\b\w+\b(?<!_)", code)} - words
    assert not missing, f"CONTRIBUTING.md names {missing}, which do not exist"
