"""The fixed cohorts of benchmarks/: what was judged on them is compared for years."""

import hashlib
import sys
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def make(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    from benchmark_cohort import make_benchmark_cohort

    yield make_benchmark_cohort
    del sys.modules["benchmark_cohort"]


@pytest.mark.parametrize(
    ("case", "features", "effect", "labels"),
    [
        ("normalized", 2672.243504093186, -43.94853315267636, "CLCESAE"),
        ("combinatorial", 2703.284685566042, -33.53162906352481, "CLCESAE"),
        ("planted", 2758.8795727566157, -15.0, "CLCESAE"),
        ("permuted", 2672.243504093186, 0.0, "CAESCEL"),
    ],
)
def test_draws_are_those_fixed_at_first(make, case, features, effect, labels):
    made = make(case, noise="high", n_people=7, random_state=1)
    counts = hashlib.sha256(made.connectomes.tobytes()).hexdigest()
    assert counts[:16] == "49d1c0534d4a12e6"
    assert made.features.sum() == pytest.approx(features, rel=1e-12)
    assert made.truth["effect"].sum() == pytest.approx(effect, rel=1e-12)
    assert "".join(label[0] for label in made.y) == labels


def test_bytes_do_not_depend_on_the_number_of_threads(make):
    made = []
    for n_threads in (1, 2, 3):
        with threadpool_limits(n_threads):
            cohort = make("combinatorial", n_people=6, random_state=4)
        made.append((cohort.features.tobytes(), cohort.connectomes.tobytes()))
    assert made[0] == made[1] == made[2]
