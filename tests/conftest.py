"""What all tests share: one small simulated cohort, and one evaluation of it."""

from pathlib import Path

import pytest

from brainlsap.evaluation import cross_validate, make_models
from brainlsap.evaluation.models import NESTED_RIDGES
from brainlsap.simulation import make_cohort

SHARED = Path(__file__).parents[2] / "shared" / "data"


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


@pytest.fixture(scope="session")
def small_cohort():
    """Forty people with one or more scans, 82 regions, five stages; only to be read."""
    return make_cohort(40, atlas="desikan82", random_state=0)


@pytest.fixture(scope="session")
def example_evaluation(small_cohort):
    """LSAP-C and the baselines on two folds, drawn twice; only to be read."""
    models = make_models(
        "default", random_state=0, n_epochs=6, n_starts=2, start="constant"
    )
    for name in ("LSAP-R", NESTED_RIDGES[-1]):
        models[name][0].set_params(n_draws=0)
    return cross_validate(models, small_cohort, cv=2, n_repeats=2, baselines=False)
