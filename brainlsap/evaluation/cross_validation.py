"""Cross-validation of models on folds that never share a person, and its record."""

import hashlib
import json
import sys
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
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
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import get_routing_for_object
from threadpoolctl import threadpool_limits

import brainlsap
from brainlsap.arrays import pack, to_jsonable
from brainlsap.class_prior import ClassPriorMixin
from brainlsap.data.cohort import Cohort, check_cohort_given
from brainlsap.evaluation.confounds import Deconfounder, adjust_features
from brainlsap.evaluation.leakage import Check, audit, check_title
from brainlsap.evaluation.models import make_models
from brainlsap.evaluation.results import CohortSummary, Evaluation
from brainlsap.evaluation.splits import Split, check_splits, count_repeats, make_splits
from brainlsap.exceptions import ParameterError
from brainlsap.files import replace_when_whole

# Shares of the training at which scales are stored, before the end.
PATH_SHARES = (0.0, 0.25, 0.5, 0.75)

KEYS = ["model", "repeat", "fold"]
COLUMNS = {
    "predictions": ["scan", "participant", "truth", "predicted"],
    "scales": ["start", "share", "region", "scale"],
}
# Packages whose version identifies the code of their classes.
VERSIONED = ("brainlsap", "builtins", "numpy", "sklearn")
# Below this number of scans, starting workers takes longer than fitting.
MIN_SCANS_FOR_WORKERS = 300
# `catch_warnings` is process-wide, so threads are serialised.
_WARNINGS_LOCK = threading.Lock()


def cross_validate(
    model: Any,
    cohort: Cohort,
    cv: int | Any = 5,
    *,
    random_state: int | None = 0,
    baselines: bool = True,
    n_repeats: int = 1,
    harmonize: str | None = None,
    regress_out: str | Sequence[str] = (),
    people_may_be_shared: bool = False,
    n_jobs: int | None = None,
    verbose: bool = False,
    memory: str | Path | None = None,
) -> Evaluation:
    """Fit and test models on stratified folds that never share a person.

    Every model is cloned for every fold and sees the training scans only. Harmonisation
    and regression are learned from the training scans of the fold. The person of each
    scan is handed to models whose `fit` takes `groups`, through searches and pipelines
    to those that request it (metadata routing). :func:`audit` looks at cohort and
    folds before anything is fitted.

    Parameters
    ----------
    model : classifier, or mapping of str to classifier or (classifier, role)
        Scikit-learn classifiers over the packed array of :meth:`.Cohort.to_array`, or
        what :func:`make_models` returns. Classifiers of this package predict the
        likeliest class at the class weights of the fit, whatever their `class_prior`;
        others the class of the highest probability, or decision value.
    cohort : Cohort
        The scans.
    cv : int, splitter or iterable of (train, test)
        Number of folds; a splitter of scikit-learn, asked for `split(X, y, groups)`;
        or row indices, as :func:`make_splits` and :func:`read_splits` return them.
    random_state : int, optional
        Seed of the folds, and of every model whose own `random_state` is None; None
        counts as 0, here as in the models.
    baselines : bool
        Whether the usual baselines run through the same folds.
    n_repeats : int
        How often folds are drawn anew, where `cv` is a number.
    harmonize : str, optional
        Column of the cohort's table, for example a site. ComBat removes its effect and
        preserves that of age and sex, where the table has them. Scans of sites without
        training scans are not changed.
    regress_out : str or sequence of str
        Columns of which the linear effect is removed.
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
    check_cohort_given(cohort)
    random_state = random_state or 0
    models = _named_models(model, baselines, random_state, cohort)
    splits, cv_text = _make_folds(cv, cohort, random_state, n_repeats)
    # Scans that count as people of their own share nobody; rows are still checked.
    people = np.arange(cohort.n_scans) if people_may_be_shared else cohort.groups
    splits = check_splits(splits, people)
    n_repeats = count_repeats(splits)
    n_folds = len(splits) // n_repeats
    steps = Deconfounder(harmonize, regress_out)
    steps.check(cohort.table, splits)
    removed_columns = [*filter(None, [steps.harmonize]), *steps.regress_out]
    findings = audit(cohort, splits, removed_columns)
    # Sharing people was allowed, or check_splits had raised.
    is_shared = findings["check"] == Check.PERSON_IN_TWO_FOLDS
    is_leak = (findings["severity"] == "error") & ~is_shared
    for check in findings["check"][is_leak].unique():
        title = check_title(check)
        message = f"the audit found a leak: {title} (see evaluation.audit)"
        warnings.warn(message, UserWarning, stacklevel=2)
    features, factors = adjust_features(cohort, steps)
    summary = CohortSummary.of(cohort, features, factors)
    fits = list(product(models, range(len(splits))))
    tasks = {
        f"{name}, fold {number + 1} of {len(splits)}": (
            models[name][0],
            splits[number],
        )
        for name, number in fits
    }
    results = _run_fits(
        tasks, cohort, steps, summary.data_hash, n_jobs, verbose, memory
    )
    tables: dict[str, list[pd.DataFrame]] = {}
    for (name, number), result in zip(fits, results, strict=True):
        key = {
            "model": name,
            "repeat": number // n_folds + 1,
            "fold": number % n_folds + 1,
        }
        for table_name, columns in result.items():
            table = pd.DataFrame(key | columns)
            tables.setdefault(table_name, []).append(table)
    joined_tables = {
        table_name: pd.DataFrame(columns=[*KEYS, *columns])
        for table_name, columns in COLUMNS.items()
    }
    for table_name, parts in tables.items():
        joined_tables[table_name] = pd.concat(parts, ignore_index=True)
    role_of_model = {name: role for name, (_, role) in models.items()}
    fit_table = joined_tables["fits"]
    fit_table.insert(len(KEYS), "role", fit_table["model"].map(role_of_model))
    preserved_columns = steps.preserved_covariates(cohort.table)
    settings = {
        "cv": cv_text,
        "n_folds": n_folds,
        "n_repeats": n_repeats,
        "random_state": random_state,
        "people_shared": bool(is_shared.any()),
        "steps": to_jsonable(steps.get_params() | {"preserve": preserved_columns}),
        "version": brainlsap.__version__,
    }
    return Evaluation(
        **joined_tables, cohort=summary, settings=settings, audit=findings
    )


def _make_folds(
    cv: Any, cohort: Cohort, random_state: int, n_repeats: int
) -> tuple[Sequence[Split], str]:
    """Return the folds that `cv` asks for, and what they are called in settings."""
    if isinstance(cv, int | np.integer):
        splits = make_splits(
            cohort.y, cohort.groups, int(cv), random_state, n_repeats=n_repeats
        )
        return splits, "stratified folds of whole people"
    if n_repeats != 1:
        raise ParameterError(
            "n_repeats goes with a number of folds; give cv all folds of all repeats."
        )
    X = np.zeros((cohort.n_scans, 1))
    splits = tuple(check_cv(cv).split(X, cohort.y, cohort.groups))
    return splits, repr(cv) if hasattr(cv, "split") else "given"


def _named_models(
    model: Any, baselines: bool, seed: int, cohort: Cohort
) -> dict[str, tuple[Any, str]]:
    """Return every model by name, with its role and seed, as suits the cohort."""
    own_models = model if isinstance(model, Mapping) else {type(model).__name__: model}
    baseline_models = make_models("baselines", random_state=seed) if baselines else {}
    repeated_names = set(own_models) & set(baseline_models)
    if not own_models or repeated_names:
        raise ParameterError(
            "model must name at least one classifier, and none may have the name of a "
            f"baseline, got {', '.join(repeated_names) or 'no model'}. Rename it, or "
            "pass baselines=False."
        )
    models: dict[str, tuple[Any, str]] = {}
    for name, model_and_role in (dict(own_models) | baseline_models).items():
        estimator, role = split_role(model_and_role)
        estimator = configure_for_cohort(clone(estimator), cohort)
        for key, value in estimator.get_params().items():
            if value is None and key.rsplit("__")[-1] == "random_state":
                estimator.set_params(**{key: seed})
        models[name] = estimator, role
    warn_of_divided_people([estimator for estimator, _ in models.values()], cohort)
    return models


def warn_of_divided_people(models: Sequence[Any], cohort: Cohort) -> None:
    """Warn once of models, or parts of them, that may divide a person's scans.

    Those with a `cv` (searches, calibration, stacking ...) do so where it takes no
    groups and some person has several scans.
    """
    if len(np.unique(cohort.groups)) == cohort.n_scans:
        return
    class_names = dict[str, None]()
    for model in models:
        for estimator in (model, *model.get_params().values()):
            has_cv = hasattr(estimator, "get_params") and hasattr(estimator, "cv")
            if has_cv and _divides_people(estimator.cv, cohort):
                class_names[type(estimator).__name__] = None
    if class_names:
        verb = "divides" if len(class_names) == 1 else "divide"
        warnings.warn(
            f"{', '.join(class_names)} {verb} scans, not people, in inner folds, and "
            "some people have several scans. Give cv=GroupKFold(...), to which "
            "cross_validate hands the people.",
            stacklevel=4,
        )


def _divides_people(cv: Any, cohort: Cohort) -> bool:
    """Return whether inner folds may divide the scans of a person."""
    if isinstance(cv, str):  # "prefit"
        return False
    if cv is None or isinstance(cv, int | np.integer):
        return True
    if not hasattr(cv, "split"):  # rows, of which nothing is known
        return True
    if get_routing_for_object(cv).consumes("split", {"groups"}):
        return False
    if type(cv).__module__.split(".")[0] == "sklearn":
        return True
    people = cohort.groups
    try:
        splits = [*deepcopy(cv).split(np.zeros((len(people), 1)), cohort.y, people)]
    except (TypeError, ValueError):  # not made for these rows
        return True
    return any(np.isin(people[test], people[train]).any() for train, test in splits)


def split_role(model: Any) -> tuple[Any, str]:
    """Return a classifier and its role; raise where it is none."""
    estimator, role = model if isinstance(model, tuple) else (model, "model")
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise ParameterError(
            "model must be a classifier, such as LSAPClassifier(), or classifiers by "
            f"name, as make_models(['LSAP-C', 'GCN']) has; got {estimator!r}."
        )
    return estimator, role


def configure_for_cohort(model: Any, cohort: Cohort) -> Any:
    """Set parameters that the user left to the cohort, and return the model.

    The order of the classes, where it is known; that connectomes are made of the
    features of the training people, where none were read; and the hemispheres and
    structures of regions.
    """
    parameters = model.get_params()
    changes = dict[str, Any]()
    for key, value in parameters.items():
        prefix = key[: key.rfind("__") + 2] if "__" in key else ""
        name = key.removeprefix(prefix)
        uses_order = name in ("scales", "initial_scale") or str(value) == "ordinal"
        classes_key = f"{prefix}classes"
        has_no_order = parameters.get(classes_key, "") is None
        if cohort.classes_ordered and uses_order and has_no_order:
            changes[classes_key] = cohort.classes
        was_not_read = cohort.provenance.get("connectome") == "none"
        if name == "connectome" and value is None and was_not_read:
            changes[key] = "covariance"
        if name in ("hemispheres", "structures") and value is None:
            changes[key] = tuple(cohort.atlas.regions[name.removesuffix("s")])
    return model.set_params(**changes) if changes else model


def _run_fits(
    tasks: Mapping[str, tuple[Any, Split]],
    cohort: Cohort,
    steps: Deconfounder,
    data_hash: str,
    n_jobs: int | None,
    verbose: bool,
    memory: str | Path | None,
) -> list[dict[str, Any]]:
    """Return the tables of :func:`_fit_fold` for every task; finished fits are read."""
    from joblib import Parallel, delayed
    from joblib.parallel import get_active_backend
    from tqdm.auto import tqdm

    paths: dict[str, Path] = {}
    results: dict[str, dict[str, Any]] = {}
    if memory is not None:
        paths = _cache_paths(tasks, cohort, steps, data_hash, Path(memory))
        for name, path in paths.items():
            # A file may be missing, or cut short.
            with suppress(OSError, ValueError):
                results[name] = json.loads(path.read_text(encoding="utf-8"))
    # One shared connectome travels to the workers once, not once a scan.
    n_matrices = 1 if cohort.shares_connectome else cohort.n_scans
    names = (tuple(cohort.classes), cohort.region_names, cohort.feature_names)
    scans = (cohort.connectomes[:n_matrices], cohort.features, cohort.table, names)
    calls = []
    for batch in _batch_tasks(tasks, results):
        models = {name: tasks[name][0] for name in batch}
        split = tasks[batch[0]][1]
        calls.append(delayed(_fit_fold)(models, split, steps, scans))
    uses_default_jobs = n_jobs is None and get_active_backend()[1] is None
    if uses_default_jobs and cohort.n_scans >= MIN_SCANS_FOR_WORKERS:
        n_jobs = -1
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    n_models = len(tasks) // len({id(split) for _, split in tasks.values()})
    bar = tqdm(
        total=len(tasks),
        initial=len(results),
        desc="fits",
        disable=None if verbose else True,  # None: only on a terminal
    )
    with bar:
        for batch_results in parallel(calls) if calls else ():
            for name, result in batch_results.items():
                results[name] = result
                if name in paths:
                    with replace_when_whole(paths[name]) as partial:
                        partial.write_text(json.dumps(result), encoding="utf-8")
                    paths[name].chmod(0o600)
                bar.update()
                # Without a terminal: one line for as many fits as a fold has.
                if verbose and bar.disable and len(results) % n_models == 0:
                    n_done = f"{len(results)} of {len(tasks)}"
                    bar.write(f"fitted {n_done}, last {name}", file=sys.stderr)
    return [results[name] for name in tasks]


def _cache_paths(
    tasks: Mapping[str, tuple[Any, Split]],
    cohort: Cohort,
    steps: Deconfounder,
    data_hash: str,
    folder: Path,
) -> dict[str, Path]:
    """Return the file of each task's fit, by a hash of code, data and settings."""
    from joblib import hash as hash_of

    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    names = (tuple(cohort.classes), cohort.region_names, cohort.feature_names)
    table = cohort.table.to_csv(index=False)
    study_hash = hash_of((_code_version(), data_hash, names, table, steps))
    paths = {}
    for name, (model, split) in tasks.items():
        kinds = {type(value) for value in (model, *model.get_params().values())}
        own_kinds = [k for k in kinds if k.__module__.split(".")[0] not in VERSIONED]
        # A lambda has no source, and its fit is not stored.
        with suppress(OSError, TypeError, AttributeError, PicklingError):
            sources = sorted(getsource(kind) for kind in own_kinds)
            key = hash_of((study_hash, sources, model, split))
            paths[name] = folder / f"{key}.json"
    return paths


def _batch_tasks(
    tasks: Mapping[str, tuple[Any, Split]], results: Mapping[str, Any]
) -> list[list[str]]:
    """Return the tasks without a result; nested ridges of a fold are fitted at once."""
    batches: dict[Any, list[str]] = {}
    for name, (model, split) in tasks.items():
        if name in results:
            continue
        settings = model.get_params()
        batch_key = name
        if "scales" in settings:
            batch_key = str(settings | {"scales": None})
        batches.setdefault((batch_key, id(split)), []).append(name)
    return list(batches.values())


def _fit_fold(
    models: Mapping[str, Any], split: Split, steps: Deconfounder, scans: tuple
) -> dict[str, Any]:
    """Learn steps and models from the training scans, predict the test scans.

    Several models are ridges that differ in `scales` only and are fitted together.
    Returns the rows of every table by model, as columns that JSON can hold.
    """
    connectomes, features, table, (classes, regions, _) = scans
    models = {name: clone(model) for name, model in models.items()}
    train_rows, test_rows = split
    train, test = table.iloc[train_rows], table.iloc[test_rows]
    connectomes = np.broadcast_to(connectomes, (len(table), *connectomes.shape[1:]))
    results: dict[str, Any] = {}
    recorder = warnings.catch_warnings(record=True)
    with _WARNINGS_LOCK, recorder as fit_warnings, threadpool_limits(1):
        warnings.simplefilter("always")
        fit_start = time.perf_counter()
        fold_steps = clone(steps).fit(features[train_rows], train)
        features = features.copy()
        features[train_rows] = fold_steps.transform(features[train_rows], train)
        features[test_rows] = fold_steps.transform(features[test_rows], test)
        _fit_models([*models.values()], pack(connectomes, features, train_rows), train)
        X_test = pack(connectomes, features, test_rows)
        seconds_fit = (time.perf_counter() - fit_start) / len(models)
        for name, model in models.items():
            predict_start = time.perf_counter()
            answers = _class_answers(model, X_test, classes, test)
            inner = _inner_model(model)
            report = to_jsonable(getattr(inner, "fit_report_", {}))
            messages = {str(warning.message) for warning in fit_warnings or ()}
            fit = {
                "n_train": len(train),
                "n_test": len(test),
                "n_train_people": train["participant"].nunique(),
                "seconds_fit": seconds_fit,
                "seconds_predict": time.perf_counter() - predict_start,
                "epochs": float(np.mean(report.get("epochs") or np.nan)),
                "failed": str(report.get("failed") or ""),
                "settings": json.dumps(to_jsonable(model.get_params())),
                "warnings": json.dumps(sorted(messages)),
                "report": json.dumps(report),
            }
            results[name] = {"fits": {key: [value] for key, value in fit.items()}}
            if fit["failed"]:
                continue
            rows = test[["scan", "participant"]].assign(truth=test["label"])
            results[name]["predictions"] = rows.join(answers).to_dict("list")
            if np.ptp(getattr(inner, "scales_", 0.0)):  # equal scales rank no region
                results[name]["scales"] = _scales_of(inner, regions)
    return results


def _fit_models(models: Sequence[Any], X: np.ndarray, train: pd.DataFrame) -> None:
    """Fit one model, or several nested ridges at once, to packed training scans."""
    model, *other_models = models
    y = train["label"].to_numpy(object)
    people = train["participant"].to_numpy(object)
    metadata = {"groups": people, "covariates": train}
    metadata_names = set(signature(model.fit).parameters)
    metadata_names |= get_routing_for_object(model).consumes("fit", metadata)
    fit_metadata = {name: metadata[name] for name in metadata if name in metadata_names}
    with config_context(enable_metadata_routing=True):  # for searches, pipelines
        try:
            if other_models:
                model.fit_with(other_models, X, y, people)
            else:
                model.fit(X, y, **fit_metadata)
        except ValueError as error:
            if isinstance(error, ParameterError) or not _reads_two_dimensions(model):
                raise
            raise ParameterError(
                f"{error} Give it features alone, by read_features of "
                "brainlsap.evaluation: make_pipeline(FunctionTransformer("
                f"read_features), SimpleImputer(), {type(model).__name__}())."
            ) from error


def _reads_two_dimensions(model: Any) -> bool:
    """Return whether scikit-learn's first step of a model takes tables only."""
    if hasattr(model, "steps"):
        return _reads_two_dimensions(model.steps[0][1])
    if hasattr(model, "estimator"):
        return _reads_two_dimensions(model.estimator)
    if type(model).__module__.split(".")[0] != "sklearn":
        return False
    tags = get_tags(model)
    return not (tags.no_validation or tags.input_tags.three_d_array)


def _class_answers(
    model: Any, X: np.ndarray, classes: tuple[str, ...], covariates: pd.DataFrame
) -> pd.DataFrame:
    """Return predicted classes, `p_` probability and `d_` decision value of each.

    NaN where the model does not give them.
    """
    names = [str(name) for name in model.classes_]
    inner = _inner_model(model)
    kind = ""
    absent_value = 0.0  # of a class without training scans
    if hasattr(model, "predict_proba"):
        parameters = signature(model.predict_proba).parameters
        metadata = {"covariates": covariates} if "covariates" in parameters else {}
        kind, outputs = "p", model.predict_proba(X, **metadata)
    elif hasattr(model, "decision_function"):
        kind, outputs = "d", np.asarray(model.decision_function(X), dtype=float)
        if outputs.ndim == 1:
            outputs = np.column_stack([-outputs, outputs])
        absent_value = outputs.min() - 1e3
    else:
        outputs = np.equal.outer(np.asarray(model.predict(X)).astype(str), names)
    values = pd.DataFrame(outputs, covariates.index, names, dtype=float)
    values = values.reindex(columns=list(classes), fill_value=absent_value)
    if not np.isfinite(values).all(axis=None):
        raise ParameterError(
            f"{type(model).__name__} predicts NaN; expected finite probabilities of "
            f"the classes {', '.join(classes)}."
        )
    predicted = values.idxmax(axis=1)
    if kind == "p" and isinstance(inner, ClassPriorMixin):
        codes = inner.choose_classes(outputs)
        labels = np.array(names, dtype=object)[codes]
        predicted = pd.Series(labels, covariates.index)
    answers = predicted.to_frame("predicted")
    for prefix in "pd":
        columns = values if prefix == kind else values * np.nan
        answers = answers.join(columns.add_prefix(f"{prefix}_"))
    return answers


def _inner_model(model: Any) -> Any:
    """Return the fitted model at the heart of a search or a pipeline."""
    if hasattr(model, "best_estimator_"):
        return _inner_model(model.best_estimator_)
    return _inner_model(model.steps[-1][1]) if hasattr(model, "steps") else model


def _scales_of(model: Any, regions: tuple[str, ...]) -> dict[str, list]:
    """Return a fitted model's scales as columns, the mean over its starts first."""
    columns = {("mean", 1.0): model.scales_}
    for number, scales in enumerate(getattr(model, "scales_by_start_", ()), start=1):
        columns[str(number), 1.0] = scales
    scale_path = getattr(model, "scale_path_", ())
    for share, scales in zip(PATH_SHARES, scale_path, strict=False):
        columns["mean", share] = scales
    interval = getattr(model, "scales_interval_", None)
    if interval is not None:
        columns["low", 1.0], columns["high", 1.0] = interval[:, 0], interval[:, 1]
    table = pd.DataFrame(columns, list(regions)).unstack()
    table = table.rename_axis(["start", "share", "region"]).reset_index(name="scale")
    return table.to_dict("list")


@cache
def _code_version() -> str:
    """Return a hash of the package's code and of the versions of its requirements."""
    paths = sorted(Path(brainlsap.__file__).parent.rglob("*.py"))
    texts = [path.read_text(encoding="utf-8") for path in paths]
    texts += [version(name) for name in ("numpy", "scipy", "scikit-learn", "torch")]
    return hashlib.sha256("\x00".join(texts).encode()).hexdigest()
