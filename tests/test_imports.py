"""What an import costs, what the package offers, and who may import whom."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import brainlsap

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "matplotlib", "nilearn", "plotly", "sklearn", "jinja2", "h5py")


STEPS = (
    "import brainlsap, brainlsap.data",
    "brainlsap.load_atlas('desikan82').names",
    "from brainlsap.cli import main\ntry: main(['--help'])\nexcept SystemExit: 0",
    "import brainlsap.evaluation, brainlsap.report.tables, brainlsap.report.page",
)


@pytest.fixture(scope="module")
def loaded():
    """Return which heavy libraries a fresh process has loaded after each step."""
    count = f"print('loaded', *[name for name in {HEAVY!r} if name in sys.modules])"
    code = "\n".join(["import sys", *(f"{step}\n{count}" for step in STEPS)])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert done.stderr == ""
    lines = [line.split() for line in done.stdout.splitlines()]
    return [set(words[1:]) for words in lines if words[:1] == ["loaded"]]


def test_light_imports_stay_light(loaded):
    assert loaded[:3] == [set()] * 3


def test_evaluation_and_report_need_no_torch(loaded):
    assert "sklearn" in loaded[3]
    assert "torch" not in loaded[3]


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
