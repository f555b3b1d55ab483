"""What the package offers, and who may import whom."""

import ast
import shutil
import sys
from pathlib import Path

import pytest

import brainlsap

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", brainlsap.__all__)
def test_every_short_name_is_there(name):
    value = getattr(brainlsap, name)
    assert value.__module__.startswith("brainlsap.")
    assert value.__name__ == name
    assert name in dir(brainlsap)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'brainlsap' has no attribute 'GCN'"):
        brainlsap.GCN  # noqa: B018


def test_the_version_is_that_of_the_installation():
    assert brainlsap.__version__[0].isdigit()


def test_packages_import_only_from_those_below():
    if shutil.which("lint-imports", path=str(Path(sys.executable).parent)) is None:
        pytest.skip("import-linter is not installed; `make lint` has it")
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("the contracts are in pyproject.toml, which is not here")
    from importlinter.cli import lint_imports

    assert lint_imports(str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_commands_use_only_what_their_packages_load_by_themselves():
    # A module that something else has imported is missing in a fresh process.
    tree = ast.parse((ROOT / "brainlsap" / "cli.py").read_text(encoding="utf-8"))
    used_names = {
        (node.value.attr, node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Attribute)
        and isinstance(node.value.value, ast.Name)
        and node.value.value.id == "brainlsap"
    }
    assert ("report", "read_results") in used_names
    absent_names = [
        f"{package_name}.{name}"
        for package_name, name in used_names
        if name not in dir(getattr(brainlsap, package_name))
    ]
    assert absent_names == []
