"""What all tests share: one small simulated cohort, and one evaluation of it."""

import gc
import re
from contextlib import contextmanager
from pathlib import Path

import pytest

from brainlsap.exceptions import FileFormatError

# The process that starts the others reads this file, and needs nothing heavy.

SHARED = Path(__file__).parents[2] / "shared" / "data"
# Penalties of linear baselines, where how they are chosen is not the subject.
FEW_POWERS = {"logistic": (-2, 0), "svm": (-3, -1)}
# The files that take longest, apart from tutorials.
LONG_FILES = (
    "test_adni.py",
    "test_brain.py",
    "test_check.py",
    "test_classifier.py",
    "test_cli.py",
    "test_conclusions.py",
    "test_cross_validation.py",
    "test_external.py",
    "test_methods.py",
    "test_models.py",
    "test_own_data.py",
    "test_plots.py",
    "test_processes.py",
    "test_report.py",
    "test_workflow.py",
)


# Files of examples, which share no fixtures: each of their tests goes to any process.
FILES_OF_EXAMPLES = ("tests/test_tutorials.py", "tests/test_readme.py")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Keep a file in one process, for its fixtures.

    The groups of pytest-xdist 3.8 are lost in pytest 9, which keeps ids elsewhere.
    """
    from xdist.scheduler import LoadScopeScheduling

    class FileScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.split("::")[0]
            return nodeid if file in FILES_OF_EXAMPLES else file

    return FileScheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep the collector of garbage from what is imported, now and afterwards.

    Each of its full rounds would pass through all modules, as of torch, again: a tenth
    of the time of tests. Its rounds over what tests make are rarer than by default.
    """
    gc.disable()
    result = yield
    gc.freeze()
    gc.set_threshold(200_000, 10, 10)
    gc.enable()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items):
    """Start long tests first."""
    yield
    items.sort(key=_order_of_start)  # stable: else the order stays random


def _order_of_start(item):
    if "tutorial" in item.keywords:
        return 0
    if item.path.name in LONG_FILES:
        return 1
    return 2 if "tests" in item.path.parts else 3


@contextmanager
def raises_kind(kind, file=None, error=FileFormatError, **values):
    """Expect an error of a kind, of the file of this name, with these values.

    Its words may be any.
    """
    with pytest.raises(error) as caught:
        yield caught
    assert caught.value.kind == kind
    if file is not None:
        assert Path(caught.value.path).name == file
    for name, value in values.items():
        assert caught.value.values[name] == value


def files_named_on_page(results_folder):
    """Return the files that a page lists beside itself, relative to the results."""
    page = (results_folder / "report" / "report.html").read_text(encoding="utf-8")
    file_list = page.split("<summary>Files beside this page</summary>")[1]
    named_files = set()
    for item in re.findall("<li>(.*?)</li>", file_list, re.DOTALL):
        folder = "private" if item.startswith("../private/") else "report"
        for name in re.findall(r"(?:tables/)?\b\w+\.(?:tsv|html|txt|json)\b", item):
            is_table = item.startswith("tables/") and not name.startswith("tables/")
            named_files.add(f"{folder}/{'tables/' if is_table else ''}{name}")
    return named_files


@pytest.fixture(scope="session")
def shared():
    """Folder of the open data beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip(f"{SHARED} is not here")
    return SHARED


@pytest.fixture
def write(tmp_path):
    """Return a function that writes text below a temporary folder."""

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


def make_small_atlas():
    """Return 14 regions of desikan82, for studies in which regions are not the subject.

    Among them are the six in which the simulated disease starts.
    """
    from brainlsap.atlas import Atlas, load_atlas

    regions = load_atlas("desikan82").regions
    structures = "entorhinal|parahippocampal|precuneus|insula|Putamen"
    names = regions["name"].str.contains(f"{structures}|Hippocampus|Amygdala")
    return Atlas("small", regions[names].reset_index(drop=True))


@pytest.fixture(scope="session")
def small_cohort():
    """Forty people with one or more scans, 82 regions, five stages; only to be read."""
    from brainlsap.simulation import make_cohort

    return make_cohort(40, atlas="desikan82", random_state=0)


@pytest.fixture(scope="session")
def tiny_cohort():
    """The same people with 14 regions; only to be read."""
    from brainlsap.simulation import make_cohort

    return make_cohort(40, atlas=make_small_atlas(), random_state=0)


@pytest.fixture(scope="session")
def example_evaluation(small_cohort):
    """LSAP-C and the baselines on two folds, drawn twice; only to be read."""
    from brainlsap.evaluation import cross_validate, make_models, models

    study_models = make_models(
        "default", random_state=0, n_epochs=4, n_starts=2, start="constant"
    )
    for name in ("LSAP-R", models.NESTED_RIDGES[-1]):
        study_models[name][0].set_params(n_draws=0)
    options = {"cv": 2, "n_repeats": 2, "baselines": False}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "EXPONENTS_OF_C", FEW_POWERS)
        return cross_validate(study_models, small_cohort, **options)


@pytest.fixture(scope="module")
def brief_studies(request):
    """Tune, draw, permute and divide people rarely, and save figures coarsely.

    For whole studies, where none of it is the subject. A test file may name its number
    of draws of scales as `N_SCALE_DRAWS`.
    """
    from brainlsap import workflow
    from brainlsap.evaluation import leakage, models, subgroups
    from brainlsap.model import ridge
    from brainlsap.report import figures, tables

    n_scale_draws = getattr(request.module, "N_SCALE_DRAWS", 2)
    sample_scales = ridge.sample_scales

    def sample_few_scales(evidence, initial_fit, n_draws, *arguments):
        n_draws = min(n_draws, n_scale_draws)
        return sample_scales(evidence, initial_fit, n_draws, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "EXPONENTS_OF_C", FEW_POWERS)
        patch.setattr(ridge, "sample_scales", sample_few_scales)
        patch.setattr(workflow, "N_HALVES", 2)
        patch.setattr(workflow, "N_SCALE_HALVES", 1)
        patch.setattr(leakage, "N_PERMUTATIONS", 999)
        patch.setattr(subgroups, "_N_DRAWS", 500)
        patch.setattr(tables, "N_EXCHANGES", 99)
        patch.setattr(tables, "N_DRAWS", 100)
        patch.setattr(tables, "N_SWAPS", 200)
        patch.setitem(figures._SAVED, "savefig.dpi", 60)
        clear_table_caches()
        yield
    clear_table_caches()


def clear_table_caches():
    """Forget tables of shared evaluations, which other numbers of draws gave."""
    from brainlsap.report import tables

    for function in vars(tables).values():
        if hasattr(function, "cache_clear"):
            function.cache_clear()


@pytest.fixture
def scores_figure_alone(monkeypatch):
    """Let reports draw an empty figure alone, where figures are not the subject."""
    draw_scores_alone(monkeypatch)


def draw_scores_alone(patch):
    """Let reports draw an empty figure of scores alone until the patch ends."""
    from brainlsap.report import figures, page

    def draw_scores(_, __, figure_names=("scores",)):
        if "scores" not in figure_names:
            return {}
        return {"scores": figures.make_figure(30, 20)}

    def return_nothing(*_, **__):
        return ""

    patch.setattr(page, "draw_figure_by_name", draw_scores)
    patch.setattr(page, "interactive_brain_html", return_nothing)
