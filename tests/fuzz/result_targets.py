"""Fuzzed readers of what the package itself has written: models, results, cohorts."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from brainlsap.data.cohort import Cohort
from brainlsap.evaluation import FoldResult
from brainlsap.evaluation.split_files import read_splits, write_splits
from brainlsap.evaluation.task_store import TaskStore
from brainlsap.exceptions import FileFormatError
from brainlsap.report import read_results, write_report
from brainlsap.report.stored import StoredResults, store_results
from brainlsap.report.verification import verify_results
from tests.data import test_reader_properties as readers
from tests.fuzz.target import Target
from tests.report.conftest import draw_atlas, draw_evaluation

TINY, W, VALUES = readers.TINY, readers.W, readers.VALUES
KEY = "0" * 64
STORED = "evaluation.json"


def _write_cohort(path: Path) -> None:
    import pandas as pd

    table = pd.DataFrame(
        {
            "scan": ["a_1", "a_2", "b_1"],
            "participant": ["a", "a", "b"],
            "session": ["1", "2", "1"],
            "label": ["CN", "CN", "AD"],
            "age": [70.5, np.nan, 81.0],
            "site": ["x", None, "y"],
        }
    )
    features = np.arange(3)[:, None, None] + VALUES[None, :, None]
    cohort = Cohort(
        connectomes=np.stack([W, W, W]),
        features=features,
        table=table,
        atlas=TINY,
        feature_names=("thickness",),
        classes=("CN", "AD"),
        label_name="diagnosis",
        notes=("one note",),
        provenance={"reader": "none"},
    )
    cohort.write(path)


@cache
def _model_bytes() -> bytes:
    from brainlsap.model import LSAPClassifier, save_model

    rng = np.random.default_rng(0)
    graphs = np.broadcast_to(1.0 - np.eye(3), (8, 3, 3))
    X = np.concatenate([graphs, rng.normal(size=(8, 3, 1))], axis=2)
    model = LSAPClassifier(n_epochs=2, n_starts=1, initial_scale=1.0)
    groups = np.array([f"p{k}" for k in range(8)])
    model.fit(X, np.array(["CN", "AD"] * 4), groups=groups)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "m.safetensors"
        save_model(model, path, region_names=list("abc"), feature_names=["thickness"])
        return path.read_bytes()


def _load_model(path: Path) -> object:
    from brainlsap.model import load_model

    return load_model(path)


def _unseal(whole: bytes) -> bytes:
    """Return what a model's header tells, as JSON."""
    n = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + n])["__metadata__"]["brainlsap"]
    return json.dumps(json.loads(header)["about"], sort_keys=True).encode()


def _seal(whole: bytes, about: bytes) -> bytes:
    """Return a model of this header, with the checksum that a forger would give it."""
    from safetensors.numpy import load

    try:
        told = json.loads(about)
    except (ValueError, RecursionError):
        return whole[:8] + about
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode())
    arrays = load(whole)
    for name in sorted(arrays):
        told_of = f"{name} {arrays[name].dtype.str} {arrays[name].shape}"
        digest.update(told_of.encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    n = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + n])
    kept = {"about": told, "sha256": digest.hexdigest()}
    header["__metadata__"]["brainlsap"] = json.dumps(kept, sort_keys=True)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + whole[8 + n :]


def _model(name: str, **how: Callable) -> Target:
    return Target(
        name, lambda p: p.write_bytes(_model_bytes()), _load_model, "models", **how
    )


def _stored() -> Target:
    results = StoredResults(evaluation=draw_evaluation(n_people=9), atlas=draw_atlas())

    def make(path: Path) -> Path:
        return store_results(results, path.parent / "private" / STORED)

    return Target(STORED, make, lambda p: read_results(p.parents[1]), "results")


@cache
def _report_folder() -> Path:
    """Return a results folder that lives as long as the process."""
    place = tempfile.TemporaryDirectory()
    _KEPT.append(place)
    folder = Path(place.name) / "results"
    write_report(draw_evaluation(n_people=9), folder, atlas=draw_atlas())
    return folder


_KEPT: list[tempfile.TemporaryDirectory] = []


def _verified(name: str) -> Target:
    part = {"results.json": "report", "scores_by_fold.tsv": "report"}.get(
        name, "private"
    )

    def make(path: Path) -> Path:
        shutil.copytree(_report_folder(), path.parent / "results")
        return path.parent / "results" / part / path.name

    return Target(
        name, make, lambda p: verify_results(p.parents[1], remake=False), "results"
    )


def _splits() -> Target:
    scans, people = ["a1", "a2", "b1", "c1"], ["a", "a", "b", "c"]
    folds = [([0, 1], [2, 3]), ([2, 3], [0, 1])]

    def make(path: Path) -> None:
        write_splits(folds, path, scans=scans, participants=people)

    return Target("s.tsv", make, lambda path: read_splits(path, scans), "results")


def _task() -> Target:
    words = np.array(["a1", "b1"], dtype=object)
    one = FoldResult(
        fold=1,
        train=np.array([2, 3]),
        test=np.array([0, 1]),
        scans=words,
        participants=words,
        truth=np.array(["CN", "AD"], dtype=object),
        probability=np.array([[0.5, 0.5], [0.25, 0.75]]),
        classes=("CN", "AD"),
        scales=np.arange(3.0),
        details={"seed": 5},
    )

    def make(path: Path) -> Path:
        return TaskStore(path.parent).keep(KEY, one)

    def read(path: Path) -> object:
        found = TaskStore(path.parent).find(KEY)
        if found is None:  # counts as absent: the task is done again
            raise FileFormatError(f"{path}: not a finished task.")
        return found

    return Target("task.safetensors", make, read, "results")


RESULTS = (
    Target("c.cohort.h5", _write_cohort, Cohort.read, "cohort files"),
    _model("m.safetensors"),
    _model("m.safetensors:about", open=_unseal, close=_seal),
    _stored(),
    *map(_verified, ("results.json", "predictions.tsv", "splits.tsv")),
    _splits(),
    _task(),
)
