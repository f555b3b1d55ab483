"""What tells one task from another: code, data, model, fold and seed, as one hash."""

import hashlib
import inspect
import json
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from brainlsap.data import Cohort
from brainlsap.evaluation.cohort_summary import summarise_cohort
from brainlsap.evaluation.splits import Split

# Rooms and packages whose code decides what a task gives.
ROOMS = ("evaluation", "graph", "model")
PACKAGES = ("brainlsap", "numpy", "scipy", "scikit-learn", "torch", "torch-geometric")
TRUSTED = ("brainlsap", "sklearn", "torch_geometric")


class _IndescribableError(TypeError):
    """Of what cannot be told from others by its description."""


def task_key(model: Any, split: Split, seed: int, data: str) -> str | None:
    """Return what tells a task from all others, now and in a later run.

    Parameters
    ----------
    model : estimator
        Unfitted, or to be cloned.
    split : (train, test)
        Rows of the cohort.
    seed : int
        For what has no seed of its own.
    data : str
        From :func:`data_key`.

    Returns
    -------
    str or None
        64 hexadecimal digits; None for models that cannot be described, such as
        those with a function defined on the spot: their tasks are never reused.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> split = (np.arange(3), np.arange(3, 5))
    >>> one = task_key(DummyClassifier(), split, 0, "data")
    >>> one == task_key(DummyClassifier(), split, 0, "data")
    True
    >>> one == task_key(DummyClassifier(strategy="uniform"), split, 0, "data")
    False
    """
    try:
        told = describe(model)
    except _IndescribableError:
        return None
    rows = [np.asarray(part, dtype=np.int64).tolist() for part in split]
    parts = {"code": code_version(), "data": data, "model": told}
    return _hash(json.dumps({**parts, "rows": rows, "seed": seed}, sort_keys=True))


def data_key(cohort: Cohort) -> str:
    """Return a hash of everything in a cohort that a task may look at.

    Parameters
    ----------
    cohort : Cohort
        Arrays, labels, people, covariates and the order of classes count.

    Returns
    -------
    str
    """
    table = cohort.table.to_csv(index=False)
    names = json.dumps([cohort.classes, cohort.region_names, cohort.feature_names])
    return _hash(summarise_cohort(cohort).data_hash, table, names)


@cache
def code_version() -> str:
    """Return a hash of the code that fits and predicts, and of what it rests on.

    Returns
    -------
    str
        Changes with any source file of the rooms graph, model and evaluation, and
        with the versions of Python, NumPy, SciPy, scikit-learn and PyTorch.
    """
    package = Path(__file__).parents[1]
    sources = [package / "_arrays.py"]
    for room in ROOMS:
        sources += sorted((package / room).glob("*.py"))
    told = [f"{one.name} {_hash(one.read_text(encoding='utf-8'))}" for one in sources]
    for name in PACKAGES:
        try:
            told.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            told.append(f"{name} absent")
    return _hash(*told, platform.python_version(), platform.machine())


def describe(value: Any) -> Any:
    """Return a description of a model or a setting, as JSON takes it.

    Parameters
    ----------
    value : object
        Estimators are told by class and settings, arrays and code by their hash.

    Returns
    -------
    object

    Raises
    ------
    TypeError
        For what has no description that stays the same from run to run.

    Examples
    --------
    >>> describe({"C": np.float64(0.5), "cv": (1, None)})
    {'C': 0.5, 'cv': [1, None]}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray) and value.dtype != object:
        return {"array": _hash(value.tobytes().hex()), "like": _form(value)}
    if isinstance(value, list | tuple | np.ndarray):
        return [describe(one) for one in value]
    if isinstance(value, dict):
        return {str(key): describe(one) for key, one in value.items()}
    if isinstance(value, np.ufunc):
        return f"numpy.{value.__name__}"
    return _describe_object(value)


def _describe_object(value: Any) -> Any:
    if isinstance(value, type) or inspect.isroutine(value):
        return _code_of(value)
    if type(value).__name__ == "FrozenEstimator":
        raise _IndescribableError("what it has learned is not among its settings")
    if hasattr(value, "get_params"):
        settings = value.get_params(deep=False)
    elif hasattr(value, "__dict__") and _is_trusted(type(value)):
        settings = vars(value)  # splitters have no get_params
    else:
        raise _IndescribableError(f"nothing lasting tells a {type(value).__name__}")
    return {"kind": _code_of(type(value)), "settings": describe(settings)}


def _form(value: np.ndarray) -> str:
    return f"{value.dtype.str} {value.shape}"


def _is_trusted(kind: Any) -> bool:
    return str(getattr(kind, "__module__", "")).split(".")[0] in TRUSTED


def _code_of(value: Any) -> str:
    """Return where code is from; of a user's own also a hash of its file."""
    name = f"{getattr(value, '__module__', None)}.{value.__qualname__}"
    if _is_trusted(value) and "<" not in name:
        return name
    try:
        source = Path(inspect.getsourcefile(value) or "").read_text(encoding="utf-8")
    except (OSError, TypeError) as error:
        raise _IndescribableError(f"{name} has no source") from error
    if "<lambda>" in name or getattr(value, "__closure__", None):
        raise _IndescribableError(f"{name} may hold other values each time")
    return f"{name} {_hash(source)}"


def _hash(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
