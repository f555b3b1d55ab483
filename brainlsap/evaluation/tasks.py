"""One model on one fold: the unit of work, fitted anywhere, and kept when finished."""

import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from brainlsap._arrays import check_choice, pack
from brainlsap._processes import deaf_to_ctrl_c
from brainlsap.data import Cohort
from brainlsap.evaluation.fitting import (
    class_probabilities,
    fit_model,
    inner_model,
    plain,
    regional,
    seeded,
)
from brainlsap.evaluation.records import FoldResult
from brainlsap.evaluation.scale_paths import scale_path
from brainlsap.evaluation.splits import Split
from brainlsap.evaluation.task_keys import data_key, task_key
from brainlsap.evaluation.task_store import TaskStore
from brainlsap.exceptions import ParameterError

BACKENDS = ("dask", "processes")

# Random generators, numbers of threads and warnings belong to a process: workers of a
# cluster that have several threads fit one model at a time all the same.
_ALONE = threading.Lock()


class Task(NamedTuple):
    """One model on one fold; it depends on nothing else."""

    name: str
    model: Any
    fold: int
    split: Split
    seed: int


class Scans(NamedTuple):
    """What every task may look at: its training rows, then its test rows."""

    connectomes: np.ndarray
    features: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    names: np.ndarray
    classes: tuple[str, ...]
    table: pd.DataFrame


class Work(NamedTuple):
    """How tasks are run: none of it changes a result.

    Parameters
    ----------
    n_jobs : int
        Processes on this machine.
    progress : bool
        Whether to show a bar, with the time left, on standard error.
    cache : path, optional
        Folder in which finished tasks are kept, and looked for.
    backend : {"processes", "dask"}
        Processes here, or the workers of a Dask cluster.
    scheduler : str, optional
        Address of the cluster's scheduler.
    tell : function of str, optional
        Is told in one line how many tasks were finished before.
    """

    n_jobs: int = 1
    progress: bool = False
    cache: str | Path | None = None
    backend: str = "processes"
    scheduler: str | None = None
    tell: Callable[[str], None] | None = None


def run_tasks(tasks: Sequence[Task], cohort: Cohort, work: Work) -> list[FoldResult]:
    """Fit every task that was not finished before.

    Parameters
    ----------
    tasks : sequence of Task
        What is to be done.
    cohort : Cohort
        The scans.
    work : Work
        How.

    Returns
    -------
    list of FoldResult
        In the order of the tasks.

    Raises
    ------
    ParameterError
        Where the backend is unknown, not installed, or has no scheduler.
    """
    check_choice("backend", work.backend, BACKENDS)
    store = None if work.cache is None else TaskStore(work.cache)
    keys = _keys(tasks, cohort) if store else [f"task {k}" for k in range(len(tasks))]
    found: dict[str, FoldResult] = {}
    if store is not None:
        stored = {key: store.find(key) for key in keys if key[0] != "-"}
        found = {key: one for key, one in stored.items() if one is not None}
        if work.tell is not None:
            reused = sum(key in found for key in keys)
            told = f"{reused} of {len(tasks)} reused" if reused else f"{len(tasks)}"
            work.tell(f"Tasks: {told}, kept in {store.folder}")
    wanted = {key: k for k, key in enumerate(keys) if key not in found}
    before = len(tasks) - len(wanted)
    todo = list(wanted.values())
    with _bar(work, len(tasks), before) as bar:
        for place, result in _fit_all([tasks[k] for k in todo], cohort, work):
            key = keys[todo[place]]
            found[key] = result
            if store is not None and key[0] != "-":
                store.keep(key, result)
            bar.update()
    return [
        replace(found[key], fold=task.fold)
        for key, task in zip(keys, tasks, strict=True)
    ]


def fit_task(task: Task, scans: Scans) -> FoldResult:
    """Fit one model on the training scans of one fold and predict its test scans.

    Linear algebra gets one thread, wherever the task runs: sums are then made in one
    order, and results are the same to the last bit.

    Parameters
    ----------
    task : Task
        Model, fold and seed.
    scans : Scans
        All of the cohort.

    Returns
    -------
    FoldResult
    """
    from sklearn.base import clone
    from threadpoolctl import threadpool_limits

    train, test = (np.asarray(rows) for rows in task.split)
    model, settings = seeded(clone(task.model), task.seed)
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")
        started = time.perf_counter()
        fit_model(
            model,
            pack(scans.connectomes, scans.features, train),
            scans.y[train],
            scans.groups[train],
            scans.table.iloc[train],
        )
        fitted = time.perf_counter()
        probability, source = class_probabilities(
            model,
            pack(scans.connectomes, scans.features, test),
            scans.classes,
            scans.table.iloc[test],
        )
        finished = time.perf_counter()
    details = {
        "seed": task.seed if settings["seeded"] else None,
        "seconds_fit": fitted - started,
        "seconds_predict": finished - fitted,
        "probability_from": source,
        "settings": settings["parameters"],
        "warnings": sorted({str(one.message) for one in caught}),
    }
    return _result(task, scans, inner_model(model), probability, details)


def _result(
    task: Task,
    scans: Scans,
    inner: Any,
    probability: np.ndarray,
    details: dict[str, Any],
) -> FoldResult:
    train, test = task.split
    report = plain(getattr(inner, "fit_report_", {}))
    return FoldResult(
        fold=task.fold,
        train=train,
        test=test,
        scans=scans.names[test],
        participants=scans.groups[test],
        truth=scans.y[test],
        probability=probability,
        classes=scans.classes,
        scales=regional(inner, "scales_", scans.features.shape[1]),
        scales_start=regional(inner, "scales_start_", scans.features.shape[1]),
        scale_path=scale_path(inner),
        details=details | {"fit_report": report},
    )


def _fit_numbered(place: int, task: Task, scans: Scans) -> tuple[int, FoldResult]:
    with _ALONE:
        return place, fit_task(task, scans)


def _keys(tasks: Sequence[Task], cohort: Cohort) -> list[str]:
    """Return the key of every task; one that cannot be told from others is "-k"."""
    data = data_key(cohort)
    keys = [task_key(one.model, one.split, one.seed, data) for one in tasks]
    return [key or f"-{number}" for number, key in enumerate(keys)]


def _fit_all(
    tasks: Sequence[Task], cohort: Cohort, work: Work
) -> Iterator[tuple[int, FoldResult]]:
    """Yield place and result of every task as soon as it is finished."""
    from joblib import Parallel, delayed

    if not tasks:
        return
    table = cohort.table
    names = table["scan"].to_numpy(dtype=object)
    classes = tuple(cohort.classes)
    arrays = cohort.connectomes, cohort.features
    scans = Scans(*arrays, cohort.y, cohort.groups, names, classes, table)
    with _workers(work) as settings:
        parallel = Parallel(**settings, return_as="generator_unordered")
        calls = (delayed(_fit_numbered)(k, one, scans) for k, one in enumerate(tasks))
        with deaf_to_ctrl_c(work.n_jobs if work.backend == "processes" else 1):
            results = parallel(calls)
        yield from results


@contextmanager
def _workers(work: Work) -> Iterator[dict[str, Any]]:
    """Yield the settings of joblib, with the cluster connected where one is asked."""
    if work.backend == "processes":
        yield {"n_jobs": work.n_jobs}
        return
    from joblib import parallel_config

    try:
        from distributed import Client
    except ImportError as error:
        raise ParameterError(
            "the backend 'dask' needs the package distributed; install it with "
            "pip install 'brainlsap[dask]'."
        ) from error
    if not work.scheduler:
        raise ParameterError(
            "the backend 'dask' needs the address of a scheduler, such as "
            "tcp://127.0.0.1:8786; give it by scheduler="
        )
    try:
        client = Client(work.scheduler, timeout=20, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ParameterError(
            f"no scheduler of Dask answers at {work.scheduler} ({error}). Start one "
            "with: dask scheduler"
        ) from error
    with client, parallel_config("dask", client=client):
        yield {"n_jobs": -1}


@contextmanager
def _bar(work: Work, total: int, before: int) -> Iterator[Any]:
    from tqdm import tqdm

    with tqdm(
        total=total, initial=before, desc="folds", disable=not work.progress
    ) as bar:
        yield bar
