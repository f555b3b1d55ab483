"""Cross-validation of models on folds that never share a person, and its record."""

import hashlib
import json
import sys
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from inspect import getsource, signature
from itertools import product
from pathlib import Path
from pickle import PicklingError
from typing import Any

import numpy as np
import pandas as pd
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import get_routing_for_object
from threadpoolctl import threadpool_limits

import brainlsap
from brainlsap.arrays import pack
from brainlsap.data import Cohort
from brainlsap.evaluation.confounds import Deconfounder
from brainlsap.evaluation.leakage import audit
from brainlsap.evaluation.models import make_models
from brainlsap.evaluation.results import CohortSummary, Evaluation, plain
from brainlsap.evaluation.splits import Split, check_splits, count_repeats, make_splits
from brainlsap.exceptions import ParameterError
from brainlsap.files import replace_when_whole

Task = tuple[Any, Split, int, pd.DataFrame]
"""A model, a fold, a seed, and the table with the labels to learn."""

EARLIER = (0.0, 0.25, 0.5, 0.75)
"""Shares of the training at which scales are kept, before the end."""

KEYS = ["model", "repeat", "fold"]
# Classes whose code is known by the version of their package.
VERSIONED = ("brainlsap", "builtins", "numpy", "sklearn")
# Fewer scans are fitted before processes have started.
MANY = 300
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
    scan is handed to models whose `fit` takes `groups`, through searches and pipelines
    to those that request it (metadata routing). A `random_state` that is None
    gets a seed drawn from `random_state` and the fold. :func:`audit` looks at cohort
    and folds before anything is fitted.

    Parameters
    ----------
    model : classifier, or mapping of str to classifier or (classifier, role)
        Scikit-learn classifiers over the packed array of :meth:`.Cohort.to_array`, or
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
        Processes; by default those of the user's `joblib.parallel_config` (any backend
        but `multiprocessing`), else one a core from 300 scans on. The result does not
        depend on it.
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
    if isinstance(cv, int | np.integer):
        who = cohort.y, cohort.groups, int(cv), random_state
        splits: Sequence[Split] = make_splits(*who, n_repeats=n_repeats)
        described = "stratified folds of whole people"
    elif n_repeats != 1:
        raise ParameterError(
            "n_repeats goes with a number of folds; give cv all folds of all repeats."
        )
    else:
        rows = np.zeros((cohort.n_scans, 1))
        splits = list(check_cv(cv).split(rows, cohort.y, cohort.groups))
        described = repr(cv) if hasattr(cv, "split") else "given"
    # Scans that count as people of their own share nobody; rows are still checked.
    people = np.arange(cohort.n_scans) if people_may_be_shared else cohort.groups
    splits = check_splits(splits, people)
    n_repeats = count_repeats(splits)
    n_folds = len(splits) // n_repeats
    steps = Deconfounder(harmonize, tuple(regress_out), handle_unknown)
    steps.check(cohort.table, splits)
    findings = audit(cohort, splits)
    summary = CohortSummary.of(cohort)
    tasks: dict[str, Task] = {}
    for name, fold in product(models, range(len(splits))):
        # Seeds of neighbouring folds and of neighbouring runs must not coincide.
        words = np.random.SeedSequence([random_state, fold]).generate_state(1)
        task = (models[name][0], splits[fold], int(words[0] >> 1), cohort.table)
        tasks[f"{name}, fold {fold + 1} of {len(splits)}"] = task
    how: dict[str, Any] = {"n_jobs": n_jobs, "verbose": verbose, "memory": memory}
    results = run_fits(tasks, cohort, steps, **how)
    fits, predictions, scales = [], [], []
    scans = summary.table[["scan", "participant", "label"]].to_numpy(dtype=object)
    for (name, fold), result in zip(
        product(models, range(len(splits))), results, strict=True
    ):
        key = name, fold // n_folds + 1, fold % n_folds + 1
        own = dict(zip(KEYS, key, strict=True))
        fits.append({**own, "role": models[name][1], **result["row"]})
        if fits[-1]["failed"]:
            continue
        answers = (result[one] for one in ("predicted", "probability", "decision"))
        predictions += [
            (*key, *scan, cohort.classes[code], *p, *d)
            for scan, code, p, d in zip(scans[splits[fold][1]], *answers, strict=True)
        ]
        scales += [
            (*key, start, share, region, value)
            for start, share, values in result["scales"]
            for region, value in zip(summary.region_names, values, strict=True)
        ]
    columns = [*KEYS, "scan", "participant", "truth", "predicted"]
    columns += [f"{kind}_{name}" for kind in "pd" for name in cohort.classes]
    settings = {
        "cv": described,
        "n_folds": n_folds,
        "n_repeats": n_repeats,
        "random_state": random_state,
        "people_shared": bool((findings["check"] == "person in two folds").any()),
        "steps": steps.describe(cohort.table),
        "version": brainlsap.__version__,
    }
    return Evaluation(
        predictions=pd.DataFrame(predictions, columns=columns),
        scales=pd.DataFrame(
            scales, columns=[*KEYS, "start", "share", "region", "scale"]
        ),
        fits=pd.DataFrame(fits),
        cohort=summary,
        settings=settings,
        audit=findings,
    )


def _named_models(
    model: Any, baselines: bool | Mapping[str, Any], seed: int, cohort: Cohort
) -> dict[str, tuple[Any, str]]:
    """Return every model by name, with its role; ordinal ones know the order."""
    given = model if isinstance(model, Mapping) else {type(model).__name__: model}
    if baselines is True:
        baselines = make_models("baselines", random_state=seed)
    others: Mapping[str, Any] = baselines or {}
    if not given or set(given) & set(others):
        doubled = ", ".join(set(given) & set(others)) or "no model"
        raise ParameterError(
            "model must name at least one classifier, and none may have the name of a "
            f"baseline, got {doubled}. Rename it, or pass baselines=False."
        )
    found: dict[str, tuple[Any, str]] = {}
    for name, one in [*given.items(), *others.items()]:
        usual = "model" if name in given else "baseline"
        estimator, role = one if isinstance(one, tuple) else (one, usual)
        found[name] = order_classes(clone(estimator), cohort), role
    return found


def order_classes(model: Any, cohort: Cohort) -> Any:
    """Tell a model of ordered stages their order, where it is known and not given."""
    parameters = model.get_params() if cohort.classes_ordered else {}
    for key, value in parameters.items():
        prefix, _, name = key.rpartition("__")
        if name in ("ladder", "initial_scale") or str(value) == "ordinal":
            classes = f"{prefix}__classes" if prefix else "classes"
            if parameters.get(classes, "") is None:
                model.set_params(**{classes: cohort.classes})
    return model


def run_fits(
    tasks: Mapping[str, Task],
    cohort: Cohort,
    steps: Deconfounder,
    *,
    n_jobs: int | None = None,
    verbose: bool = False,
    memory: str | Path | None = None,
) -> list[dict[str, Any]]:
    """Return :func:`fit_fold` of every task, in their order; finished ones are kept."""
    from joblib import Parallel, delayed
    from joblib.parallel import get_active_backend
    from tqdm.auto import tqdm

    results: dict[str, dict[str, Any]] = {}
    paths: dict[str, Path] = {}
    if memory is not None:
        Path(memory).mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, key in _task_keys(tasks, steps, cohort).items():
            paths[name] = path = Path(memory) / f"{key}.json"
            with suppress(OSError, ValueError):  # not there, or cut short
                results[name] = json.loads(path.read_text(encoding="utf-8"))
    # one matrix for everybody travels to the workers once, not once a scan
    n_matrices = 1 if cohort.shares_connectome else cohort.n_scans
    scans = (cohort.connectomes[:n_matrices], cohort.features, tuple(cohort.classes))
    calls = [
        delayed(fit_fold)(name, *task, steps, *scans)
        for name, task in tasks.items()
        if name not in results
    ]
    if n_jobs is None and get_active_backend()[1] is None and cohort.n_scans >= MANY:
        n_jobs = -1
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    shown = {"total": len(tasks), "initial": len(results), "desc": "fits"}
    with tqdm(**shown, disable=None if verbose else True) as bar:  # None: not in a file
        for name, result in parallel(calls) if calls else ():
            results[name] = result
            if name in paths:
                with replace_when_whole(paths[name]) as partial:
                    partial.write_text(json.dumps(result), encoding="utf-8")
                paths[name].chmod(0o600)
            bar.update()
            if verbose and bar.disable:  # no terminal: a line a fold
                bar.write(f"fitted {name}", file=sys.stderr)
    return [results[name] for name in tasks]


def fit_fold(
    name: str,
    model: Any,
    split: Split,
    seed: int,
    table: pd.DataFrame,
    steps: Deconfounder,
    connectomes: np.ndarray,
    features: np.ndarray,
    classes: tuple[str, ...],
) -> tuple[str, dict[str, Any]]:
    """Learn steps and model from the training scans, predict the test scans.

    Returns the name and what JSON can hold.
    """
    model = clone(model)
    for key, value in model.get_params().items():
        if value is None and key.rsplit("__")[-1] == "random_state":
            model.set_params(**{key: seed})
    connectomes = np.broadcast_to(connectomes, (len(table), *connectomes.shape[1:]))
    (train, test), y = split, table["label"].to_numpy(dtype=object)
    covariates = [table.iloc[rows] for rows in split]
    with _ALONE, warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")
        started = time.perf_counter()
        if steps:
            fitted = clone(steps).fit(features[train], covariates[0])
            given, features = features, features.astype(np.float64)
            for rows, part in zip(split, covariates, strict=True):
                features[rows] = fitted.transform(given[rows], part)
        X = pack(connectomes, features, train)
        people = covariates[0]["participant"].to_numpy(dtype=object)
        known = {"groups": people, "covariates": covariates[0]}
        takes = set(signature(model.fit).parameters)
        takes |= get_routing_for_object(model).consumes("fit", known)
        with config_context(enable_metadata_routing=True):  # searches, pipelines
            model.fit(X, y[train], **{k: v for k, v in known.items() if k in takes})
        after_fit = time.perf_counter()
        X = pack(connectomes, features, test)
        answers = _class_answers(model, X, classes, covariates[1])
        finished = time.perf_counter()
    inner = _inner_model(model)
    report = plain(getattr(inner, "fit_report_", {}))
    return name, {
        **{key: value.tolist() for key, value in answers.items()},
        "scales": _scales_of(inner, features.shape[1]),
        "row": {
            "n_train": len(train),
            "n_test": len(test),
            "seconds_fit": after_fit - started,
            "seconds_predict": finished - after_fit,
            "seed": seed,
            "epochs": float(np.mean(report.get("epochs") or np.nan)),
            "failed": str(report.get("failed") or ""),
            "settings": json.dumps(plain(model.get_params(deep=False))),
            "warnings": json.dumps(sorted({str(one.message) for one in caught})),
            "report": json.dumps(report),
        },
    }


def _class_answers(
    model: Any, X: np.ndarray, classes: tuple[str, ...], covariates: pd.DataFrame
) -> dict[str, np.ndarray]:
    """Return predicted codes, and probability or decision values (n_scans, n_classes).

    Both are in the order of `classes`; NaN where the model does not give them.
    """
    place = [classes.index(str(name)) for name in model.classes_]
    probability = np.full((len(X), len(classes)), np.nan)
    decision = probability.copy()
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
        best = np.equal.outer(np.asarray(model.predict(X)).astype(str), classes) * 1.0
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


def _scales_of(model: Any, n_rois: int) -> list[tuple[str, float, list[float]]]:
    """Return a fitted model's scales as (start, share, values), the mean first.

    A model whose regions all have one scale has none to compare.
    """
    if np.ptp(getattr(model, "scales_", 0.0)) == 0:
        return []
    starts = enumerate(getattr(model, "scales_by_start_", ()), start=1)
    interval = getattr(model, "scales_interval_", None)
    bounds = zip(("low", "high"), () if interval is None else interval.T, strict=False)
    earlier = zip(EARLIER, getattr(model, "scale_path_", ()), strict=False)
    parts = [("mean", 1.0, model.scales_)]
    parts += [(str(number), 1.0, one) for number, one in starts]
    parts += [("mean", share, one) for share, one in earlier]
    parts += [(name, 1.0, one) for name, one in bounds]
    return [
        (start, share, np.broadcast_to(np.asarray(one, float), n_rois).tolist())
        for start, share, one in parts
    ]


def _task_keys(
    tasks: Mapping[str, Task], steps: Deconfounder, cohort: Cohort
) -> dict[str, str]:
    """Return what tells every fit from all others; fits that nothing tells are out."""
    from joblib import hash as hash_of

    names = (cohort.classes, cohort.region_names, cohort.feature_names)
    about = (_code_version(), CohortSummary.of(cohort).data_hash, names)
    tables = {id(table): table for *_, table in tasks.values()}
    texts = {key: table.to_csv(index=False) for key, table in tables.items()}
    keys = {}
    for name, (model, split, seed, table) in tasks.items():
        kinds = {type(one) for one in (model, *model.get_params().values())}
        own = [k for k in kinds if k.__module__.split(".")[0] not in VERSIONED]
        with suppress(OSError, TypeError, AttributeError, PicklingError):  # a lambda
            parts = (sorted(getsource(one) for one in own), texts[id(table)], split)
            keys[name] = hash_of((about, model, steps, seed, parts))
    return keys


@cache
def _code_version() -> str:
    """Return a hash of the package's code and the versions of what it rests on."""
    sources = sorted(Path(brainlsap.__file__).parent.rglob("*.py"))
    told = [one.read_text(encoding="utf-8") for one in sources]
    told += [version(name) for name in ("numpy", "scipy", "scikit-learn", "torch")]
    return hashlib.sha256("\x00".join(told).encode()).hexdigest()
