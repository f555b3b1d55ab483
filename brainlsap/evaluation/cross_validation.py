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
from sklearn.utils.metadata_routing import get_routing_for_object
from threadpoolctl import threadpool_limits

import brainlsap
from brainlsap.arrays import pack
from brainlsap.class_prior import ClassPriorMixin
from brainlsap.data.cohort import Cohort, check_cohort_given
from brainlsap.evaluation.confounds import Deconfounder, adjust_features
from brainlsap.evaluation.leakage import audit
from brainlsap.evaluation.models import make_models
from brainlsap.evaluation.results import CohortSummary, Evaluation, plain
from brainlsap.evaluation.splits import Split, check_splits, count_repeats, make_splits
from brainlsap.exceptions import ParameterError
from brainlsap.files import replace_when_whole

# Shares of the training at which scales are kept, before the end.
EARLIER = (0.0, 0.25, 0.5, 0.75)

KEYS = ["model", "repeat", "fold"]
COLUMNS = {
    "predictions": ["scan", "participant", "truth", "predicted"],
    "scales": ["start", "share", "region", "scale"],
}
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
        likeliest class where classes weigh as in the fit, whatever their
        `class_prior`; others the class of highest probability, or decision value.
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
        Column of the cohort's table, such as a site, whose effect ComBat takes out; age
        and sex are preserved where the table has them; scans of sites that were not
        trained on are left as they are.
    regress_out : str or sequence of str
        Columns whose linear effect is taken out.
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
    steps = Deconfounder(harmonize, regress_out)
    steps.check(cohort.table, splits)
    taken_out = [*filter(None, [steps.harmonize]), *steps.regress_out]
    findings = audit(cohort, splits, taken_out)
    is_shared = findings["check"] == "person in two folds"  # which was allowed
    is_leak = (findings["severity"] == "error") & ~is_shared
    for told in findings["check"][is_leak].unique():
        text = f"the audit found a leak: {told} (see evaluation.audit)"
        warnings.warn(text, UserWarning, stacklevel=2)
    summary = CohortSummary.of(cohort, *adjust_features(cohort, steps))
    fits = list(product(models, range(len(splits))))
    tasks = {
        f"{name}, fold {place + 1} of {len(splits)}": (models[name][0], splits[place])
        for name, place in fits
    }
    results = _run_fits(
        tasks, cohort, steps, summary.data_hash, n_jobs, verbose, memory
    )
    tables: dict[str, list[pd.DataFrame]] = {}
    for (name, place), result in zip(fits, results, strict=True):
        key = {
            "model": name,
            "repeat": place // n_folds + 1,
            "fold": place % n_folds + 1,
        }
        for table, columns in result.items():
            tables.setdefault(table, []).append(pd.DataFrame(key | columns))
    joined = {key: pd.DataFrame(columns=[*KEYS, *one]) for key, one in COLUMNS.items()}
    joined |= {t: pd.concat(some, ignore_index=True) for t, some in tables.items()}
    roles = {name: role for name, (_, role) in models.items()}
    joined["fits"].insert(len(KEYS), "role", joined["fits"]["model"].map(roles))
    settings = {
        "cv": described,
        "n_folds": n_folds,
        "n_repeats": n_repeats,
        "random_state": random_state,
        "people_shared": bool(is_shared.any()),
        "steps": plain(
            steps.get_params() | {"preserve": steps.preserved(cohort.table)}
        ),
        "version": brainlsap.__version__,
    }
    return Evaluation(**joined, cohort=summary, settings=settings, audit=findings)


def _named_models(
    model: Any, baselines: bool, seed: int, cohort: Cohort
) -> dict[str, tuple[Any, str]]:
    """Return every model by name, with its role and seed, as suits the cohort."""
    given = model if isinstance(model, Mapping) else {type(model).__name__: model}
    usual = make_models("baselines", random_state=seed) if baselines else {}
    if not given or set(given) & set(usual):
        doubled = ", ".join(set(given) & set(usual)) or "no model"
        raise ParameterError(
            "model must name at least one classifier, and none may have the name of a "
            f"baseline, got {doubled}. Rename it, or pass baselines=False."
        )
    found: dict[str, tuple[Any, str]] = {}
    for name, one in (dict(given) | usual).items():
        estimator, role = split_role(one)
        estimator = suit_model(clone(estimator), cohort)
        for key, value in estimator.get_params().items():
            if value is None and key.rsplit("__")[-1] == "random_state":
                estimator.set_params(**{key: seed})
        found[name] = estimator, role
    warn_of_divided_people([estimator for estimator, _ in found.values()], cohort)
    return found


def warn_of_divided_people(models: Sequence[Any], cohort: Cohort) -> None:
    """Warn once of models, or parts of them, that may divide a person's scans.

    Those with a `cv` (searches, calibration, stacking ...) do so where it takes no
    groups and some person has several scans.
    """
    if len(np.unique(cohort.groups)) == cohort.n_scans:
        return
    divided = dict[str, None]()
    for model in models:
        for part in (model, *model.get_params().values()):
            has_cv = hasattr(part, "get_params") and hasattr(part, "cv")
            if has_cv and _divides_people(part.cv, cohort):
                divided[type(part).__name__] = None
    if divided:
        verb = "divides" if len(divided) == 1 else "divide"
        warnings.warn(
            f"{', '.join(divided)} {verb} scans, not people, in inner folds, and some "
            "people have several scans. Give cv=GroupKFold(...), to which "
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


def suit_model(model: Any, cohort: Cohort) -> Any:
    """Tell a model what it was not told: the order of stages, where it is known.

    And where no connectome was read, that networks are made of the features of the
    training people.
    """
    known, told = model.get_params(), dict[str, Any]()
    for key, value in known.items():
        prefix = key[: key.rfind("__") + 2] if "__" in key else ""
        name, classes = key.removeprefix(prefix), f"{prefix}classes"
        has_order = name in ("scales", "initial_scale") or str(value) == "ordinal"
        if cohort.classes_ordered and has_order and known.get(classes, "") is None:
            told[classes] = cohort.classes
        has_none = cohort.provenance.get("connectome") == "none"
        if name == "connectome" and value is None and has_none:
            told[key] = "covariance"
    return model.set_params(**told) if told else model


def _run_fits(
    tasks: Mapping[str, tuple[Any, Split]],
    cohort: Cohort,
    steps: Deconfounder,
    data_hash: str,
    n_jobs: int | None,
    verbose: bool,
    memory: str | Path | None,
) -> list[dict[str, Any]]:
    """Return what :func:`_fit_fold` found for every task; finished ones are kept."""
    from joblib import Parallel, delayed
    from joblib import hash as hash_of
    from joblib.parallel import get_active_backend
    from tqdm.auto import tqdm

    names = (tuple(cohort.classes), cohort.region_names, cohort.feature_names)
    results: dict[str, dict[str, Any]] = {}
    paths: dict[str, Path] = {}
    if memory is not None:
        Path(memory).mkdir(parents=True, exist_ok=True, mode=0o700)
        table = cohort.table.to_csv(index=False)
        about = hash_of((_code_version(), data_hash, names, table, steps))
        for name, (model, split) in tasks.items():
            # the version of a package tells the code of other classes
            kinds = {type(one) for one in (model, *model.get_params().values())}
            own = [k for k in kinds if k.__module__.split(".")[0] not in VERSIONED]
            # a lambda has no key
            with suppress(OSError, TypeError, AttributeError, PicklingError):
                sources = sorted(getsource(one) for one in own)
                key = hash_of((about, sources, model, split))
                paths[name] = path = Path(memory) / f"{key}.json"
                with suppress(ValueError):  # cut short
                    results[name] = json.loads(path.read_text(encoding="utf-8"))
    # one matrix for everybody travels to the workers once, not once a scan
    n_matrices = 1 if cohort.shares_connectome else cohort.n_scans
    scans = (cohort.connectomes[:n_matrices], cohort.features, cohort.table, names)
    at_once: dict[Any, list[str]] = {}  # ridges that differ in `scales` only
    for name, (model, split) in tasks.items():
        settings = model.get_params()
        alike = str(settings | {"scales": None}) if "scales" in settings else name
        if name not in results:
            at_once.setdefault((alike, id(split)), []).append(name)
    calls = [
        delayed(_fit_fold)(
            {n: tasks[n][0] for n in some}, tasks[some[0]][1], steps, scans
        )
        for some in at_once.values()
    ]
    if n_jobs is None and get_active_backend()[1] is None and cohort.n_scans >= MANY:
        n_jobs = -1
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    shown = {"total": len(tasks), "initial": len(results), "desc": "fits"}
    n_models = len(tasks) // len({id(split) for _, split in tasks.values()})
    with tqdm(**shown, disable=None if verbose else True) as bar:  # None: not in a file
        found = parallel(calls) if calls else ()
        for name, result in (pair for some in found for pair in some.items()):
            results[name] = result
            if name in paths:
                with replace_when_whole(paths[name]) as partial:
                    partial.write_text(json.dumps(result), encoding="utf-8")
                paths[name].chmod(0o600)
            bar.update()
            # no terminal: a line for as many fits as a fold has
            if verbose and bar.disable and len(results) % n_models == 0:
                n_done = f"{len(results)} of {len(tasks)}"
                bar.write(f"fitted {n_done}, last {name}", file=sys.stderr)
    return [results[name] for name in tasks]


def _fit_fold(
    models: Mapping[str, Any], split: Split, steps: Deconfounder, scans: tuple
) -> dict[str, Any]:
    """Learn steps and models from the training scans, predict the test scans.

    Several models are ridges that differ in `scales` only and are fitted together.
    Returns the rows of every table by model, as columns that JSON can hold.
    """
    connectomes, features, table, (classes, regions, _) = scans
    fitted = {name: clone(model) for name, model in models.items()}
    (model, *others), results = fitted.values(), {}
    train, test = (table.iloc[rows] for rows in split)
    connectomes = np.broadcast_to(connectomes, (len(table), *connectomes.shape[1:]))
    with _ALONE, warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")
        started = time.perf_counter()
        learned = clone(steps).fit(features[split[0]], train)
        features = features.copy()
        for rows, part in zip(split, (train, test), strict=True):
            features[rows] = learned.transform(features[rows], part)
        X = pack(connectomes, features, split[0])
        y, people = (train[key].to_numpy(object) for key in ("label", "participant"))
        known = {"groups": people, "covariates": train}
        takes = set(signature(model.fit).parameters)
        takes |= get_routing_for_object(model).consumes("fit", known)
        with config_context(enable_metadata_routing=True):  # searches, pipelines
            try:
                if others:
                    model.fit_with(others, X, y, people)
                else:
                    model.fit(X, y, **{k: v for k, v in known.items() if k in takes})
            except ValueError as error:
                if "array with dim 3" not in str(error):
                    raise
                raise ParameterError(
                    f"{error} Give it features alone, by read_features of "
                    "brainlsap.evaluation: make_pipeline(FunctionTransformer("
                    f"read_features), SimpleImputer(), {type(model).__name__}())."
                ) from error
        X = pack(connectomes, features, split[1])
        seconds = (time.perf_counter() - started) / len(models)
        for name, model in fitted.items():
            started = time.perf_counter()
            answers = _class_answers(model, X, classes, test)
            inner = _inner_model(model)
            report = plain(getattr(inner, "fit_report_", {}))
            fit = {
                "n_train": len(train),
                "n_test": len(test),
                "n_train_people": train["participant"].nunique(),
                "seconds_fit": seconds,
                "seconds_predict": time.perf_counter() - started,
                "epochs": float(np.mean(report.get("epochs") or np.nan)),
                "failed": str(report.get("failed") or ""),
                "settings": json.dumps(plain(model.get_params())),
                "warnings": json.dumps(sorted({str(one.message) for one in caught})),
                "report": json.dumps(report),
            }
            told = test[["scan", "participant"]].assign(truth=test["label"])
            results[name] = {"fits": {key: [one] for key, one in fit.items()}}
            if not fit["failed"]:
                results[name]["predictions"] = told.join(answers).to_dict("list")
                if np.ptp(getattr(inner, "scales_", 0.0)):  # else none to compare
                    results[name]["scales"] = _scales_of(inner, regions)
    return results


def _class_answers(
    model: Any, X: np.ndarray, classes: tuple[str, ...], covariates: pd.DataFrame
) -> pd.DataFrame:
    """Return predicted classes, `p_` probability and `d_` decision value of each.

    NaN where the model does not give them.
    """
    names = [str(name) for name in model.classes_]
    inner = _inner_model(model)
    kind, unseen = "", 0.0  # what a class gets that was not among the training
    if hasattr(model, "predict_proba"):
        asked = signature(model.predict_proba).parameters
        more = {"covariates": covariates} if "covariates" in asked else {}
        kind, told = "p", model.predict_proba(X, **more)
    elif hasattr(model, "decision_function"):
        kind, told = "d", np.asarray(model.decision_function(X), dtype=float)
        told = np.column_stack([-told, told]) if told.ndim == 1 else told
        unseen = told.min() - 1e3
    else:
        told = np.equal.outer(np.asarray(model.predict(X)).astype(str), names)
    values = pd.DataFrame(told, covariates.index, names, dtype=float)
    values = values.reindex(columns=list(classes), fill_value=unseen)
    if not np.isfinite(values).all(axis=None):
        raise ParameterError(
            f"{type(model).__name__} predicts NaN; expected finite probabilities of "
            f"the classes {', '.join(classes)}."
        )
    predicted = values.idxmax(axis=1)
    if kind == "p" and isinstance(inner, ClassPriorMixin):
        chosen = np.array(names, dtype=object)[inner.choose_classes(told)]
        predicted = pd.Series(chosen, covariates.index)
    answers = predicted.to_frame("predicted")
    for one in "pd":
        given = values if one == kind else values * np.nan
        answers = answers.join(given.add_prefix(f"{one}_"))
    return answers


def _inner_model(model: Any) -> Any:
    """Return the fitted model at the heart of a search or a pipeline."""
    if hasattr(model, "best_estimator_"):
        return _inner_model(model.best_estimator_)
    return _inner_model(model.steps[-1][1]) if hasattr(model, "steps") else model


def _scales_of(model: Any, regions: tuple[str, ...]) -> dict[str, list]:
    """Return a fitted model's scales as columns, the mean over its starts first."""
    parts = {("mean", 1.0): model.scales_}
    starts = enumerate(getattr(model, "scales_by_start_", ()), start=1)
    parts |= {(str(number), 1.0): one for number, one in starts}
    earlier = zip(EARLIER, getattr(model, "scale_path_", ()), strict=False)
    parts |= {("mean", share): one for share, one in earlier}
    if (interval := getattr(model, "scales_interval_", None)) is not None:
        parts |= {("low", 1.0): interval[:, 0], ("high", 1.0): interval[:, 1]}
    table = pd.DataFrame(parts, list(regions)).unstack()
    table = table.rename_axis(["start", "share", "region"]).reset_index(name="scale")
    return table.to_dict("list")


@cache
def _code_version() -> str:
    """Return a hash of the package's code and the versions of what it rests on."""
    sources = sorted(Path(brainlsap.__file__).parent.rglob("*.py"))
    told = [one.read_text(encoding="utf-8") for one in sources]
    told += [version(name) for name in ("numpy", "scipy", "scikit-learn", "torch")]
    return hashlib.sha256("\x00".join(told).encode()).hexdigest()
