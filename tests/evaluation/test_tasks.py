"""Tasks are finished once, wherever they run, and killed runs continue."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from brainlsap.data import make_cohort
from brainlsap.evaluation import cross_validate, tasks
from brainlsap.exceptions import ParameterError

RANDOM = DummyClassifier(strategy="stratified")


def same(one, two):
    for name in one.results:
        first, second = (each.result(name) for each in (one, two))
        assert first.predictions().equals(second.predictions())
        for a, b in zip(first.folds, second.folds, strict=True):
            assert a.fold == b.fold
            np.testing.assert_array_equal(a.train, b.train)
            np.testing.assert_array_equal(a.test, b.test)


@pytest.fixture
def counted(monkeypatch):
    """Return how often each model was fitted."""
    seen = []

    def fit_task(task, scans):
        seen.append(task.name)
        return real(task, scans)

    real = tasks.fit_task
    monkeypatch.setattr(tasks, "fit_task", fit_task)
    return seen


def test_nothing_is_computed_twice(cohort, tmp_path, counted):
    told = []
    given = {"cache": tmp_path / "tasks", "tell": told.append}
    one = cross_validate({"a": RANDOM}, cohort, 3, **given)
    assert len(counted) == 12
    two = cross_validate({"a": RANDOM}, cohort, 3, **given)
    assert len(counted) == 12
    same(one, two)
    same(one, cross_validate({"a": RANDOM}, cohort, 3))
    folder = tmp_path / "tasks"
    assert told == [
        f"Tasks: 12, kept in {folder}",
        f"Tasks: 12 of 12 reused, kept in {folder}",
    ]
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_what_changes_a_result_is_computed_anew(cohort, tmp_path, counted):
    def evaluate(model=RANDOM, cohort=cohort, seed=0):
        before = len(counted)
        given = {"baselines": False, "cache": tmp_path}
        cross_validate(model, cohort, 2, seed, **given)
        return len(counted) - before

    assert evaluate() == 2
    assert evaluate() == 0
    assert evaluate(DummyClassifier(strategy="uniform")) == 2
    assert evaluate(seed=1) == 2
    features = cohort.features.copy()
    features[0, 0] += 1e-9
    assert evaluate(cohort=replace(cohort, features=features)) == 2
    older = cohort.table.assign(age=cohort.table["age"] + 1)
    assert evaluate(cohort=replace(cohort, table=older)) == 2
    assert evaluate() == 0


def test_one_task_under_two_names_is_done_once(cohort, counted, tmp_path):
    models = {"one": RANDOM, "other": RANDOM}
    found = cross_validate(models, cohort, 2, baselines=False, cache=tmp_path)
    assert len(counted) == 2
    one, other = (found.result(name).predictions() for name in models)
    assert one.equals(other)


def test_models_that_cannot_be_told_apart_are_never_reused(cohort, tmp_path, counted):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    model = make_pipeline(FunctionTransformer(lambda X: X[:, 0]), LogisticRegression())
    for number in (1, 2):
        cross_validate(model, cohort, 2, baselines=False, cache=tmp_path)
        assert len(counted) == 2 * number
    assert list(tmp_path.iterdir()) == []


def test_damaged_tasks_are_done_again(cohort, tmp_path, counted):
    given = {"baselines": False, "cache": tmp_path}
    one = cross_validate(RANDOM, cohort, 2, **given)
    first, second = sorted(tmp_path.iterdir())
    first.write_bytes(first.read_bytes()[:-7])
    content = bytearray(second.read_bytes())
    content[-1] ^= 1
    second.write_bytes(bytes(content))
    (tmp_path / ".partial-0123.safetensors").write_bytes(b"half")
    same(one, cross_validate(RANDOM, cohort, 2, **given))
    assert len(counted) == 4
    assert sorted(tmp_path.iterdir()) == [first, second]


def test_a_run_that_fails_keeps_what_was_finished(cohort, tmp_path):
    class Fails(DummyClassifier):
        def fit(self, X, y):  # noqa: ARG002
            raise RuntimeError("out of luck")

    models = {"random": RANDOM, "fails": Fails()}
    with pytest.raises(RuntimeError, match="out of luck"):
        cross_validate(models, cohort, 2, baselines=False, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


PROGRAM = """
import sys, time
from sklearn.dummy import DummyClassifier
from brainlsap.data import make_cohort
from brainlsap.evaluation import cross_validate, tasks

real = tasks.fit_task
def slowly(task, scans):
    time.sleep(0.05)
    return real(task, scans)
tasks.fit_task = slowly
cohort = make_cohort(40, atlas="desikan82", random_state=0)
models = {str(k): DummyClassifier(strategy="stratified", random_state=k)
          for k in range(10)}
found = cross_validate(models, cohort, 2, baselines=False, cache=sys.argv[1])
found.scores().to_csv(sys.argv[2], index=False)
"""


def test_a_run_killed_twice_ends_in_the_same_bytes(tmp_path):
    def start(name):
        arguments = [str(tmp_path / name), str(tmp_path / f"{name}.csv")]
        return subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments])

    assert start("undisturbed").wait() == 0
    for wanted in (3, 11):
        process, folder = start("killed"), tmp_path / "killed"
        deadline = time.monotonic() + 60
        while len(list(folder.glob("*.safetensors"))) < wanted:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert wanted <= len(list(folder.glob("*.safetensors"))) < 20
    assert start("killed").wait() == 0
    killed, undisturbed = (tmp_path / f"{n}.csv" for n in ("killed", "undisturbed"))
    assert killed.read_bytes() == undisturbed.read_bytes()
    assert len(list((tmp_path / "killed").iterdir())) == 20


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_processes_and_a_cluster_predict_the_same():
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    from brainlsap.model import LSAPClassifier

    cohort = make_cohort(30, atlas="desikan82", random_state=1)
    # the processes of a pool are spared the import of torch here; a test of the
    # command line has LSAP in them
    light = {"dice": RANDOM}
    same(cross_validate(light, cohort, 2), cross_validate(light, cohort, 2, n_jobs=2))
    models = light | {"LSAP": LSAPClassifier("exact", n_epochs=3, n_starts=1)}
    one = cross_validate(models, cohort, 2)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=2, processes=False, dashboard_address=None
    ) as cluster:
        given = {"backend": "dask", "scheduler": cluster.scheduler_address}
        same(one, cross_validate(models, cohort, 2, **given))


def test_backends_that_cannot_be_used(cohort, monkeypatch):
    given = {"baselines": False, "backend": "dask"}
    with pytest.raises(ParameterError, match="backend must be one of 'dask', 'proc"):
        cross_validate(RANDOM, cohort, 2, backend="hope")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ParameterError, match=r"pip install 'brainlsap\[dask\]'"):
        cross_validate(RANDOM, cohort, 2, **given)
    monkeypatch.undo()
    pytest.importorskip("distributed", reason="needs the extra dask")
    with pytest.raises(ParameterError, match="needs the address of a scheduler"):
        cross_validate(RANDOM, cohort, 2, **given)


def test_a_scheduler_that_is_not_there(cohort, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")

    def refuse(*_, **__):
        raise OSError("timed out")

    monkeypatch.setattr(distributed, "Client", refuse)
    with pytest.raises(
        ParameterError, match=r"no scheduler of Dask answers at tcp://x"
    ):
        cross_validate(RANDOM, cohort, 2, backend="dask", scheduler="tcp://x:1")
