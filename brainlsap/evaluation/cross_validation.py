"""Cross-validation of models on folds that never share a person, and its record."""

import hashlib
import json
import threading
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from inspect import getsource, signature
from pathlib import Path
from pickle import PicklingError
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.arrays import pack
from brainlsap.data import Cohort
from brainlsap.evaluation.confounds import Deconfounder
from brainlsap.evaluation.leakage import audit
from brainlsap.evaluation.results import CohortSummary, Evaluation, plain
from brainlsap.evaluation.splits import Split, check_splits, count_repeats, make_splits
from brainlsap.exceptions import ParameterError
from brainlsap.files import replace_when_whole

__all__ = ["cross_validate"]

Task = tuple[Any, Split, int, pd.DataFrame]
"""A model, a fold, a seed, and the table with the labels to learn."""

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the training at which scales are kept."""

KEYS = ("model", "repeat", "fold")
PREDICTIONS = (*KEYS, "scan", "participant", "truth", "predicted")
SCALES = (*KEYS, "start", "share", "region", "scale")
# Classes whose code is known by the version of their package.
VERSIONED = ("brainlsap", "builtins", "numpy", "sklearn")
# Warnings are caught for a whole process: fits in threads of one take turns.
_ALONE = threading.Lock()


def cross_validate(
    model: Any,
    cohort: Cohort,
    cv: int | Any = 5,
    *,
    random_state: int = 0,
    baselines: bool | Mapping[str, Any] = True,
    n_repeats: int = 1,
    harmonize: str | None = None,
    regress_out: Sequence[str] = (),
    handle_unknown: str = "keep",
    people_may_be_shared: bool = False,
    n_jobs: int | None = None,
    verbose: bool = False,
    memory: str | Path | None = None,
) -> Evaluation:
    """Fit and test models on stratified folds that never share a person.

    Every model is cloned for every fold and sees the training scans only. Harmonisation
    and regression are learned from the training scans of the fold. The person of each
    scan is handed to models whose `fit` takes `groups`. A `random_state` that is None
    gets a seed drawn from `random_state` and the fold. :func:`audit` looks at cohort
    and folds before anything is fitted.

    Parameters
    ----------
    model : classifier, or mapping of str to classifier or (classifier, role)
        Scikit-learn classifiers over the packed array of :meth:`Cohort.to_array`, or
        what :func:`make_models` returns. The predicted class is the one of highest
        probability, or of highest decision value.
    cohort : Cohort
        The scans.
    cv : int, splitter or iterable of (train, test)
        Number of folds; a splitter of scikit-learn, asked for `split(X, y, groups)`;
        or row indices, as :func:`make_splits` and :func:`read_splits` return them.
    random_state : int
        Seed of the folds and of models without a seed of their own.
    baselines : bool or mapping
        Whether the usual baselines run through the same folds, or which do.
    n_repeats : int
        How often folds are drawn anew, where `cv` is a number.
    harmonize : str, optional
        Column of the cohort's table, such as a site, whose effect ComBat takes out.
    regress_out : sequence of str
        Columns whose linear effect is taken out.
    handle_unknown : {"keep", "error"}
        What to do with test scans of sites that were not trained on.
    people_may_be_shared : bool
        Whether given folds may have one person on both sides; the settings tell it.
    n_jobs : int, optional
        Processes; by default those of the user's `joblib.parallel_config`, which may
        name any backend. The result does not depend on it.
    verbose : bool
        Whether to show a bar, with the time left, on standard error.
    memory : str or Path, optional
        Folder in which every finished fit is kept, by a hash of code, data and
        settings; those found there are not computed again. It names people.

    Returns
    -------
    Evaluation

    Raises
    ------
    SplitError
        Where people cannot be divided as asked, or given folds share a person.
    ParameterError
        For no model, a name used twice, or steps that cannot work with the cohort.
    """
    models = _named_models(model, baselines, random_state, cohort)
    splits, n_repeats, described = _resolve_cv(cv, cohort, n_repeats, random_state)
    # Scans that count as people of their own share nobody; rows are still checked.
    people = np.arange(cohort.n_scans) if people_may_be_shared else cohort.groups
    splits = check_splits(splits, people)
    steps = Deconfounder(harmonize, tuple(regress_out), handle_unknown)
    steps.check(cohort.table, splits)
    findings = audit(cohort, splits)
    summary = CohortSummary.of(cohort)
    fits = [
        (name, role, one, fold)
        for name, (one, role) in models.items()
        for fold in range(len(splits))
    ]
    tasks = [
        (one, splits[fold], _fold_seed(random_state, fold), cohort.table)
        for _, _, one, fold in fits
    ]
    results = run_fits(
        tasks, cohort, steps, n_jobs=n_jobs, verbose=verbose, memory=memory
    )
    per_repeat = max(1, len(splits) // n_repeats)
    tables: dict[str, list] = {"predictions": [], "scales": [], "fits": []}
    for (name, role, _, fold), result in zip(fits, results, strict=True):
        repeat, place = divmod(fold, per_repeat)
        key = {"model": name, "repeat": repeat + 1, "fold": place + 1}
        _append_tables(tables, key, role, result, splits[fold], summary)
    settings = {
        "cv": described,
        "n_folds": per_repeat,
        "n_repeats": n_repeats,
        "random_state": random_state,
        "people_shared": _shares_people(splits, cohort.groups),
        "steps": steps.describe(cohort.table),
        "version": _version("brainlsap"),
    }
    answers = [f"{kind}_{name}" for kind in "pd" for name in cohort.classes]
    return Evaluation(
        predictions=_concat(tables["predictions"], (*PREDICTIONS, *answers)),
        scales=_concat(tables["scales"], SCALES),
        fits=pd.DataFrame(tables["fits"]),
        cohort=summary,
        settings=settings,
        audit=findings,
    )


def _named_models(
    model: Any, baselines: bool | Mapping[str, Any], seed: int, cohort: Cohort
) -> dict[str, tuple[Any, str]]:
    """Return every model by name, with its role; ordinal heads know the order."""
    from sklearn.base import clone

    from brainlsap.evaluation.baselines import make_models

    if baselines is True:
        baselines = make_models("baselines", random_state=seed)
    given = model if isinstance(model, Mapping) else {type(model).__name__: model}
    both = [(name, one, "model") for name, one in given.items()]
    both += [(name, one, "baseline") for name, one in (baselines or {}).items()]
    found: dict[str, tuple[Any, str]] = {}
    for name, one, usual in both:
        estimator, role = one if isinstance(one, tuple) else (one, usual)
        if name in found:
            raise ParameterError(
                f"a model must not have the name of a baseline, got {name!r}. Rename "
                "it, or pass baselines=False."
            )
        if not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
            raise ParameterError(
                f"model {name!r} must be a scikit-learn classifier with fit and "
                f"get_params, got {type(estimator).__name__}."
            )
        parameters = estimator.get_params(deep=True)
        orders = [
            key.removesuffix("head") + "classes"
            for key, value in parameters.items()
            if key.endswith("head") and isinstance(value, str) and value == "ordinal"
        ]
        unset = [key for key in orders if key in parameters and parameters[key] is None]
        if unset and not cohort.classes_ordered:
            raise ParameterError(
                f"the ordinal head of {name} needs the order of the classes, which is "
                f"not known for {', '.join(cohort.classes)}; give it, as classes= "
                f"(--classes {','.join(cohort.classes)} in the order of stages)."
            )
        fresh = clone(estimator)
        fresh.set_params(**dict.fromkeys(unset, cohort.classes))
        found[name] = (fresh, role)
    if not given:
        raise ParameterError("model must name at least one classifier, got none.")
    return found


def _resolve_cv(
    cv: Any, cohort: Cohort, n_repeats: int, random_state: int
) -> tuple[Sequence[Split], int, str]:
    """Return folds, the number of repeats, and the words for how they were made."""
    if isinstance(cv, int | np.integer):
        who = (cohort.y, cohort.groups, int(cv), random_state)
        drawn = make_splits(*who, n_repeats=n_repeats)
        return drawn, n_repeats, "stratified folds of whole people"
    if n_repeats != 1:
        raise ParameterError(
            "n_repeats goes with a number of folds; give cv all folds of all repeats."
        )
    if isinstance(cv, str) or not (hasattr(cv, "split") or isinstance(cv, Iterable)):
        raise ParameterError(
            "cv must be a number of folds, a splitter of scikit-learn, or pairs of "
            f"training and test rows, got {cv!r}."
        )
    if hasattr(cv, "split"):
        rows = np.zeros((cohort.n_scans, 1))
        splits, described = list(cv.split(rows, cohort.y, cohort.groups)), repr(cv)
    else:
        splits, described = list(cv), "given"
    repeats = count_repeats(splits) if splits else 1
    return splits, repeats if len(splits) % repeats == 0 else 1, described


def _fold_seed(random_state: int, fold: int) -> int:
    # Seeds of neighbouring folds and of neighbouring runs must not coincide.
    return int(np.random.SeedSequence([random_state, fold]).generate_state(1)[0] >> 1)


def _shares_people(splits: Sequence[Split], groups: np.ndarray) -> bool:
    return any(set(groups[train]) & set(groups[test]) for train, test in splits)


def run_fits(
    tasks: Sequence[Task],
    cohort: Cohort,
    steps: Deconfounder,
    *,
    n_jobs: int | None = None,
    verbose: bool = False,
    memory: str | Path | None = None,
) -> list[dict[str, Any]]:
    """Return :func:`fit_fold` of every task, in their order; keep each when finished.

    A task is a model, a fold, a seed, and the cohort's table with its labels.
    """
    from joblib import Parallel, delayed
    from tqdm import tqdm

    results: dict[int, dict[str, Any]] = {}
    paths: dict[int, Path] = {}
    if memory is not None:
        Path(memory).mkdir(parents=True, exist_ok=True, mode=0o700)
        keys = _task_keys(tasks, steps, CohortSummary.of(cohort))
        for number, key in enumerate(keys):
            if key is not None:
                paths[number] = Path(memory) / f"{key}.json"
                kept = _read_result(paths[number])
                results |= {} if kept is None else {number: kept}
    todo = [number for number in range(len(tasks)) if number not in results]
    # one matrix for everybody travels to the workers once, not once a scan
    n_matrices = 1 if cohort.shares_connectome else cohort.n_scans
    matrices = cohort.connectomes[:n_matrices]
    scans = (matrices, cohort.features, tuple(cohort.classes))
    calls = (delayed(_fit_numbered)(k, *tasks[k], steps, *scans) for k in todo)
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    with tqdm(
        total=len(tasks), initial=len(results), desc="fits", disable=None if verbose else True
    ) as bar:
        for number, result in parallel(calls) if todo else ():
            results[number] = result
            if number in paths:
                with replace_when_whole(paths[number]) as partial:
                    partial.write_text(json.dumps(result), encoding="utf-8")
                paths[number].chmod(0o600)
            bar.update()
    return [results[number] for number in range(len(tasks))]


def _fit_numbered(number: int, *arguments: Any) -> tuple[int, dict[str, Any]]:
    with _ALONE:
        return number, fit_fold(*arguments)


def fit_fold(
    model: Any,
    split: Split,
    seed: int,
    table: pd.DataFrame,
    steps: Deconfounder,
    connectomes: np.ndarray,
    features: np.ndarray,
    classes: tuple[str, ...],
) -> dict[str, Any]:
    """Fit a clone on the training scans, predict the test scans; JSON takes the result.

    The deconfounding steps come first, learned from the training scans.
    """
    from sklearn.base import clone
    from threadpoolctl import threadpool_limits

    model, shape = seeded(clone(model), seed), (len(table), *connectomes.shape[1:])
    connectomes = np.broadcast_to(connectomes, shape)
    (train, test), y = split, table["label"].to_numpy(dtype=object)
    covariates = [table.iloc[rows] for rows in split]
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")
        started = time.perf_counter()
        if steps:
            fitted = clone(steps).fit(features[train], covariates[0])
            given, features = features, features.astype(np.float64)
            for rows, part in zip(split, covariates, strict=True):
                features[rows] = fitted.transform(given[rows], part)
        X = pack(connectomes, features, train)
        people = covariates[0]["participant"].to_numpy(dtype=object)
        model.fit(X, y[train], **fit_parameters(model, people, covariates[0]))
        after_fit = time.perf_counter()
        X = pack(connectomes, features, test)
        answers = class_answers(model, X, classes, covariates[1])
        finished = time.perf_counter()
    inner = _inner_model(model)
    report = plain(getattr(inner, "fit_report_", {}))
    report.pop("scales_by_start", None)  # they have a table
    return {
        **{name: value.tolist() for name, value in answers.items()},
        "scales": _scales_of(inner, features.shape[1]),
        "seconds_fit": after_fit - started,
        "seconds_predict": finished - after_fit,
        "seed": seed,
        "settings": plain(model.get_params(deep=False)),
        "warnings": sorted({str(one.message) for one in caught}),
        "report": report,
    }


def seeded(model: Any, seed: int) -> Any:
    """Give a seed to every `random_state` of a model that is None."""
    unset = [
        name
        for name, value in model.get_params(deep=True).items()
        if value is None and name.rsplit("__")[-1] == "random_state"
    ]
    return model.set_params(**dict.fromkeys(unset, seed))


def fit_parameters(
    model: Any, groups: np.ndarray, covariates: pd.DataFrame
) -> dict[str, Any]:
    """Return what a model's `fit` takes of persons and covariates, as keywords."""
    from sklearn.pipeline import Pipeline

    if isinstance(model, Pipeline):
        step, last = model.steps[-1]
        if last in (None, "passthrough"):
            return {}
        inside = fit_parameters(last, groups, covariates)
        return {f"{step}__{name}": value for name, value in inside.items()}
    if "Group" in type(getattr(model, "cv", None)).__name__:
        return {"groups": groups}
    given = {"groups": groups, "covariates": covariates}
    known = signature(model.fit).parameters
    return {name: value for name, value in given.items() if name in known}


def class_answers(
    model: Any, X: np.ndarray, classes: tuple[str, ...], covariates: pd.DataFrame
) -> dict[str, np.ndarray]:
    """Return predicted codes, and probability or decision values (n_scans, n_classes).

    Both are in the order of `classes`; NaN where the model does not give them.
    """
    known = [str(name) for name in model.classes_]
    foreign = sorted(set(known) - set(classes))
    if foreign:
        raise ParameterError(
            f"{type(model).__name__} knows the class {foreign[0]!r}; expected classes "
            f"of the cohort: {', '.join(classes)}."
        )
    place = [classes.index(name) for name in known]
    shape = (len(X), len(classes))
    probability, decision = np.full(shape, np.nan), np.full(shape, np.nan)
    if hasattr(model, "predict_proba"):
        asked = signature(model.predict_proba).parameters
        more = {"covariates": covariates} if "covariates" in asked else {}
        probability[:] = 0.0
        probability[:, place] = model.predict_proba(X, **more)
        best = probability
    elif hasattr(model, "decision_function"):
        values = np.asarray(model.decision_function(X), dtype=np.float64)
        if values.ndim == 1:
            values = np.column_stack([np.zeros_like(values), values])
        decision[:] = values.min() - 1e3  # a class that was never seen
        decision[:, place] = values
        best = decision
    else:
        answer = np.asarray(model.predict(X)).astype(str)
        best = np.array(answer[:, None] == np.array(classes)[None, :], dtype=float)
    if not np.isfinite(best).all():
        raise ParameterError(
            f"{type(model).__name__} predicts NaN; expected finite probabilities of "
            f"the classes {', '.join(classes)}."
        )
    answers = {"probability": probability, "decision": decision}
    return {"predicted": best.argmax(1), **answers}


def _inner_model(model: Any) -> Any:
    """Return the fitted model at the heart of a search or a pipeline."""
    if hasattr(model, "best_estimator_"):
        return _inner_model(model.best_estimator_)
    return _inner_model(model.steps[-1][1]) if hasattr(model, "steps") else model


def _scales_of(model: Any, n_rois: int) -> dict[str, Any] | None:
    """Return a fitted model's scales: mean, by start, and during the training."""
    if getattr(model, "scales_", None) is None:
        return None

    def spread(value: Any) -> list[float]:
        return np.broadcast_to(np.asarray(value, float), (n_rois,)).tolist()

    by_start = getattr(model, "scales_by_start_", None)
    path = getattr(model, "scale_path_", None)
    if path is None:
        path = _path_from_history(model, n_rois)
    return {
        "mean": spread(model.scales_),
        "starts": [] if by_start is None else [spread(one) for one in by_start],
        "path": None if path is None else [spread(one) for one in path],
    }


def _path_from_history(model: Any, n_rois: int) -> np.ndarray | None:
    # Until every model has scale_path_: the mean over starts at quarters of training.
    runs = [one for one in getattr(model, "history_", ()) if len(one.scales)]
    best = getattr(model, "fit_report_", {}).get("best_epochs", [])
    if not runs or len(runs) != len(best):
        return None
    paths = []
    for run, last in zip(runs, best, strict=True):
        epochs = np.asarray(run.epoch, dtype=float)
        scales = np.array([np.broadcast_to(one, (n_rois,)) for one in run.scales])
        wanted = epochs[0] + np.array(SHARES) * (max(last, epochs[0]) - epochs[0])
        paths.append(np.stack([np.interp(wanted, epochs, s) for s in scales.T], 1))
    path = np.mean(paths, axis=0)
    path[0], path[-1] = model.scales_start_, model.scales_
    return path


def _append_tables(
    tables: dict[str, list],
    key: dict[str, Any],
    role: str,
    result: dict[str, Any],
    split: Split,
    cohort: CohortSummary,
) -> None:
    """Add one finished fit to the tables of an evaluation."""
    train, test = split
    report = result["report"]
    failed = str(report.get("failed") or "")
    found = [report.get(n) for n in ("epochs", "best_epochs", "best_epoch")]
    epochs = next((one for one in found if one not in (None, [])), np.nan)
    tables["fits"].append(
        {
            **key,
            "role": role,
            "n_train": len(train),
            "n_test": len(test),
            "seconds_fit": result["seconds_fit"],
            "seconds_predict": result["seconds_predict"],
            "seed": result["seed"],
            "epochs": float(np.mean(epochs)),
            "failed": failed,
            **{n: json.dumps(result[n]) for n in ("settings", "warnings", "report")},
        }
    )
    if failed:
        return
    names = np.array(cohort.classes, dtype=object)
    table = cohort.table.iloc[test][["scan", "participant", "label"]]
    table = table.rename(columns={"label": "truth"}).reset_index(drop=True)
    table["predicted"] = names[result["predicted"]]
    for kind in ("probability", "decision"):
        columns = [f"{kind[0]}_{name}" for name in names]
        table[columns] = np.array(result[kind], dtype=float)
    tables["predictions"].append(_with_key(key, table))
    scales = result["scales"]
    if scales is None:
        return
    parts = [("mean", 1.0, scales["mean"])]
    parts += [(str(k), 1.0, one) for k, one in enumerate(scales["starts"], start=1)]
    earlier = zip(SHARES[:-1], (scales["path"] or [])[:-1], strict=False)
    parts += [("mean", share, one) for share, one in earlier]
    for start, share, values in parts:
        table = pd.DataFrame({"region": list(cohort.region_names), "scale": values})
        told = key | {"start": start, "share": share}
        tables["scales"].append(_with_key(told, table))


def _with_key(key: dict[str, Any], table: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([pd.DataFrame([key] * len(table)), table], axis=1)


def _concat(tables: list[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    empty = pd.DataFrame(columns=list(columns))
    return pd.concat(tables, ignore_index=True) if tables else empty


def _task_keys(
    tasks: Sequence[Task], steps: Deconfounder, cohort: CohortSummary
) -> list[str | None]:
    """Return what tells every fit from all others; None where nothing does."""
    from joblib import hash as hash_of

    names = (cohort.classes, cohort.region_names, cohort.feature_names)
    tables: dict[int, str] = {}
    keys: list[str | None] = []
    for model, split, seed, table in tasks:
        if id(table) not in tables:
            tables[id(table)] = table.to_csv(index=False)
        kinds = {type(one) for one in (model, *model.get_params(deep=True).values())}
        try:
            sources = sorted(getsource(one) for one in kinds if not _is_versioned(one))
            described = hash_of((model, steps, [rows.tolist() for rows in split], seed))
        except (OSError, TypeError, AttributeError, PicklingError):  # such as a lambda
            keys.append(None)
            continue
        about = (cohort.data_hash, repr(names), tables[id(table)])
        parts = (_code_version(), described, *about, *sources)
        keys.append(hashlib.sha256("\x00".join(parts).encode()).hexdigest())
    return keys


def _is_versioned(kind: type) -> bool:
    return kind.__module__.split(".")[0] in VERSIONED


@cache
def _code_version() -> str:
    """Return a hash of the code that fits, and of the versions of what it rests on."""
    package = Path(__file__).parents[1]
    sources = [package / "arrays.py"]
    for folder in ("evaluation", "graph", "model"):
        sources += sorted((package / folder).glob("*.py"))
    told = [one.read_text(encoding="utf-8") for one in sources]
    told += [_version(name) for name in ("numpy", "scipy", "scikit-learn", "torch")]
    return hashlib.sha256("\x00".join(told).encode()).hexdigest()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def _read_result(path: Path) -> dict[str, Any] | None:
    """Return a finished fit, or None where there is none or it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
