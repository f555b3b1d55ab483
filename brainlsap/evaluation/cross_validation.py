"""Cross-validation of models on folds that never share a person, and its record."""

import hashlib
import json
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from functools import cache, lru_cache
from importlib.metadata import version
from inspect import getsource, signature
from itertools import chain, product
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
from threadpoolctl import ThreadpoolController

import brainlsap
from brainlsap.arrays import PackedScans, to_jsonable
from brainlsap.class_prior import ClassPriorMixin
from brainlsap.data.cohort import Cohort, check_cohort_given
from brainlsap.data.reading_options import NO_CONNECTOME
from brainlsap.evaluation.confounds import (
    Deconfounder,
    adjust_features_with_factor_table,
)
from brainlsap.evaluation.leakage import CheckKey, audit, check_title
from brainlsap.evaluation.models import (
    NESTED_RIDGES,
    RANDOM_CONNECTOME_RIDGE,
    list_model_names,
    make_models,
    reads_packed_scans,
)
from brainlsap.evaluation.results import CohortSummary, Evaluation
from brainlsap.evaluation.splits import Split, check_splits, count_repeats, make_splits
from brainlsap.exceptions import ParameterError
from brainlsap.files import replace_when_whole
from brainlsap.text import option_name, option_text

# Shares of the training at which scales are stored, before the end.
PATH_SHARES = (0.0, 0.25, 0.5, 0.75)

FIT_KEYS = ["model", "repeat", "fold"]
COLUMNS_OF_TABLE = {
    "predictions": ["scan", "participant", "truth", "predicted"],
    "scales": ["start", "share", "region", "scale"],
}
# Packages whose version identifies the code of their classes.
VERSIONED_PACKAGES = ("brainlsap", "builtins", "numpy", "sklearn")
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
    reference_class: str | None = None,
    people_may_be_shared: bool = False,
    n_jobs: int | None = None,
    verbose: bool = False,
    memory: str | Path | None = None,
) -> Evaluation:
    """Fit and test models on stratified folds; no person is in two folds.

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
        Number of cross-validations, each with new folds, if `cv` is a number.
    harmonize : str, optional
        Column of the cohort's table, for example a site. ComBat removes its effect and
        preserves that of age and sex, where the table has them. Scans of sites without
        training scans are not changed.
    regress_out : str or sequence of str
        Columns of which the linear effect is removed.
    reference_class : str, optional
        Class from whose training scans alone both are learned, for example the
        controls; see :class:`Deconfounder`. By default from all training scans.
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
        If people cannot be divided as asked, or given folds share a person.
    ParameterError
        For no model, a name used twice, or steps that cannot work with the cohort.
    """
    evaluation, _ = cross_validate_with_calls(
        {},
        model,
        cohort,
        cv,
        random_state=random_state,
        baselines=baselines,
        n_repeats=n_repeats,
        harmonize=harmonize,
        regress_out=regress_out,
        reference_class=reference_class,
        people_may_be_shared=people_may_be_shared,
        n_jobs=n_jobs,
        verbose=verbose,
        memory=memory,
    )
    return evaluation


def cross_validate_with_calls(
    later_call_by_name: Mapping[str, Any],
    model: Any,
    cohort: Cohort,
    cv: int | Any = 5,
    *,
    random_state: int | None = 0,
    baselines: bool = True,
    n_repeats: int = 1,
    harmonize: str | None = None,
    regress_out: str | Sequence[str] = (),
    reference_class: str | None = None,
    people_may_be_shared: bool = False,
    n_jobs: int | None = None,
    verbose: bool = False,
    memory: str | Path | None = None,
) -> tuple[Evaluation, Iterator[tuple[str, Any]]]:
    """Return the evaluation of :func:`cross_validate`, and results of later calls.

    Processes that have no fit to do begin the later calls, which are named results of
    :func:`joblib.delayed`. Their results come by name, in the order of completion; the
    evaluation does not wait for them.
    """
    check_cohort_given(cohort)
    random_state = random_state or 0
    model_and_role_by_name = _collect_model_and_role_by_name(
        model, baselines, random_state, cohort
    )
    splits, cv_description = _make_splits_and_description(
        cv, cohort, random_state, n_repeats
    )
    # Scans that count as people of their own share nobody; rows are still checked.
    scan_person_ids = (
        np.arange(cohort.n_scans) if people_may_be_shared else cohort.groups
    )
    splits = check_splits(splits, scan_person_ids)
    deconfounder = Deconfounder(harmonize, regress_out, reference_class)
    deconfounder.check(cohort.table, splits)
    removed_covariate_names = [
        *filter(None, [deconfounder.harmonize]),
        *deconfounder.regress_out,
    ]
    audit_table = audit(cohort, splits, removed_covariate_names, reference_class)
    # Sharing people was allowed, or check_splits had raised.
    shared_person_row_mask = audit_table["check"] == CheckKey.PERSON_IN_TWO_FOLDS
    leak_row_mask = (audit_table["severity"] == "error") & ~shared_person_row_mask
    for leak_check_key in audit_table["check"][leak_row_mask].unique():
        leak_title = check_title(leak_check_key)
        message = (
            f"the audit found data leakage: {leak_title}. The table evaluation.audit "
            "says what to do"
        )
        warnings.warn(message, UserWarning, stacklevel=3)
    features, variance_factor_table = adjust_features_with_factor_table(
        cohort, deconfounder
    )
    return _evaluate_on_folds(
        later_call_by_name,
        model_and_role_by_name,
        cohort,
        splits,
        deconfounder,
        cohort_summary=CohortSummary.from_cohort(
            cohort, features, variance_factor_table
        ),
        audit_table=audit_table,
        cv_description=cv_description,
        random_state=random_state,
        n_jobs=n_jobs,
        verbose=verbose,
        memory=memory,
    )


def cross_validate_again(
    evaluation: Evaluation,
    model_by_name: Mapping[str, Any],
    cohort: Cohort,
    splits: Sequence[Split],
    deconfounder: Deconfounder,
    *,
    n_jobs: int | None,
    verbose: bool,
    memory: str | Path | None,
) -> Evaluation:
    """Evaluate with other training scans a cohort that `evaluation` has audited.

    The audit and the summary of the cohort are those of `evaluation`, of the same
    cohort and the same steps. The steps can be learned in all `splits`.
    """
    random_state = evaluation.settings["random_state"]
    splits = check_splits(splits, cohort.groups)
    new_evaluation, _ = _evaluate_on_folds(
        {},
        _collect_model_and_role_by_name(model_by_name, False, random_state, cohort),
        cohort,
        splits,
        deconfounder,
        cohort_summary=evaluation.cohort,
        audit_table=evaluation.audit,
        cv_description=evaluation.settings["cv"],
        random_state=random_state,
        n_jobs=n_jobs,
        verbose=verbose,
        memory=memory,
    )
    return new_evaluation


def _evaluate_on_folds(
    later_call_by_name: Mapping[str, Any],
    model_and_role_by_name: Mapping[str, tuple[Any, str]],
    cohort: Cohort,
    splits: Sequence[Split],
    deconfounder: Deconfounder,
    *,
    cohort_summary: CohortSummary,
    audit_table: pd.DataFrame,
    cv_description: str,
    random_state: int,
    n_jobs: int | None,
    verbose: bool,
    memory: str | Path | None,
) -> tuple[Evaluation, Iterator[tuple[str, Any]]]:
    """Fit and test every model on every fold of an audited cohort.

    `later_call_by_name` is as in :func:`cross_validate_with_calls`.
    """
    n_repeats = count_repeats(splits)
    n_folds = len(splits) // n_repeats
    model_split_pairs = list(product(model_and_role_by_name, range(len(splits))))
    model_and_split_by_fit_name = {
        f"{model_name}, fold {split_number + 1} of {len(splits)}": (
            model_and_role_by_name[model_name][0],
            splits[split_number],
        )
        for model_name, split_number in model_split_pairs
    }
    fit_results, later_result_iterator = _run_fits_and_calls(
        model_and_split_by_fit_name,
        later_call_by_name,
        cohort,
        deconfounder,
        cohort_summary.data_hash,
        n_jobs,
        verbose,
        memory,
    )
    part_tables_by_table_name: dict[str, list[pd.DataFrame]] = {}
    for (model_name, split_number), columns_by_table in zip(
        model_split_pairs, fit_results, strict=True
    ):
        fit_key_by_column = {
            "model": model_name,
            "repeat": split_number // n_folds + 1,
            "fold": split_number % n_folds + 1,
        }
        for table_name, values_by_column in columns_by_table.items():
            part_table = pd.DataFrame(fit_key_by_column | values_by_column)
            part_tables_by_table_name.setdefault(table_name, []).append(part_table)
    table_by_name = {
        table_name: pd.DataFrame(columns=[*FIT_KEYS, *values_by_column])
        for table_name, values_by_column in COLUMNS_OF_TABLE.items()
    }
    for table_name, part_tables in part_tables_by_table_name.items():
        table_by_name[table_name] = pd.concat(part_tables, ignore_index=True)
    role_by_model = {
        model_name: model_role
        for model_name, (_, model_role) in model_and_role_by_name.items()
    }
    fit_table = table_by_name["fits"]
    fit_table.insert(len(FIT_KEYS), "role", fit_table["model"].map(role_by_model))
    preserved_covariate_names = deconfounder.preserved_covariates(cohort.table)
    value_by_study_setting = {
        "cv": cv_description,
        "n_folds": n_folds,
        "n_repeats": n_repeats,
        "random_state": random_state,
        "people_shared": CheckKey.PERSON_IN_TWO_FOLDS in set(audit_table["check"]),
        "steps": to_jsonable(
            deconfounder.get_params() | {"preserve": preserved_covariate_names}
        ),
        "version": brainlsap.__version__,
    }
    evaluation = Evaluation(
        **table_by_name,
        cohort=cohort_summary,
        settings=value_by_study_setting,
        audit=audit_table,
    )
    return evaluation, later_result_iterator


def _make_splits_and_description(
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
            f"{option_name('n_repeats')} is valid only if {option_name('cv')} is a "
            f"number of folds. Leave {option_name('n_repeats')} out, or list the "
            f"folds of all repeats in {option_name('cv')}."
        )
    X = np.zeros((cohort.n_scans, 1))
    splits = tuple(check_cv(cv).split(X, cohort.y, cohort.groups))
    return splits, repr(cv) if hasattr(cv, "split") else "given"


def make_cohort_splits(
    cohort: Cohort, cv: Any, random_state: int, n_repeats: int = 1
) -> tuple[Split, ...]:
    """Return the folds of :func:`cross_validate` for these arguments, checked."""
    splits, _ = _make_splits_and_description(cv, cohort, random_state, n_repeats)
    return check_splits(splits, cohort.groups)


def _collect_model_and_role_by_name(
    model: Any, adds_baselines: bool, seed: int, cohort: Cohort
) -> dict[str, tuple[Any, str]]:
    """Return every model by name, with its role and seed, as suits the cohort."""
    user_models = model if isinstance(model, Mapping) else {type(model).__name__: model}
    baseline_names = list_baseline_names(cohort) if adds_baselines else ()
    baseline_models = make_models(baseline_names, random_state=seed)
    repeated_name_set = set(user_models) & set(baseline_models)
    if not user_models or repeated_name_set:
        raise ParameterError(
            "model must name at least one classifier, and must not use the name of a "
            f"baseline model; got {', '.join(repeated_name_set) or 'no model'}. "
            f"Rename the classifier, or pass {option_text('baselines', False)}."
        )
    model_and_role_by_name: dict[str, tuple[Any, str]] = {}
    for model_name, model_and_role in (dict(user_models) | baseline_models).items():
        estimator, model_role = split_model_and_role(model_and_role)
        estimator = configure_model_for_cohort(clone(estimator), cohort)
        for parameter_name, parameter_value in estimator.get_params().items():
            if (
                parameter_value is None
                and parameter_name.rsplit("__")[-1] == "random_state"
            ):
                estimator.set_params(**{parameter_name: seed})
        model_and_role_by_name[model_name] = estimator, model_role
    warn_of_divided_people(
        [estimator for estimator, _ in model_and_role_by_name.values()], cohort
    )
    return model_and_role_by_name


def list_baseline_names(cohort: Cohort) -> tuple[str, ...]:
    """Return the names of the baselines, without connectomes without their control.

    Connectomes that a model makes of the features cannot be shuffled beforehand.
    """
    has_no_connectome = cohort.provenance.get("connectome") == NO_CONNECTOME
    return tuple(
        model_name
        for model_name in list_model_names("baselines")
        if not (has_no_connectome and model_name == RANDOM_CONNECTOME_RIDGE)
    )


def warn_of_divided_people(models: Sequence[Any], cohort: Cohort) -> None:
    """Warn once of models, or parts of them, that may divide a person's scans.

    Those with a `cv` (searches, calibration, stacking ...) do so where it takes no
    groups and some person has several scans.
    """
    if len(np.unique(cohort.groups)) == cohort.n_scans:
        return
    estimator_names = dict[str, None]()
    for model in models:
        for model_or_part in (model, *model.get_params().values()):
            has_cv = hasattr(model_or_part, "get_params") and hasattr(
                model_or_part, "cv"
            )
            if has_cv and _may_divide_people(model_or_part.cv, cohort):
                estimator_names[type(model_or_part).__name__] = None
    if estimator_names:
        verb = "divides" if len(estimator_names) == 1 else "divide"
        warnings.warn(
            f"{', '.join(estimator_names)} {verb} scans instead of people in the "
            "inner folds, and some people have several scans. Give "
            "cv=GroupKFold(...), to which cross_validate passes the people.",
            stacklevel=4,
        )


def _may_divide_people(cv: Any, cohort: Cohort) -> bool:
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
    scan_person_ids = cohort.groups
    try:
        splits = [
            *deepcopy(cv).split(
                np.zeros((len(scan_person_ids), 1)), cohort.y, scan_person_ids
            )
        ]
    except (TypeError, ValueError):  # not made for these rows
        return True
    return any(
        np.isin(scan_person_ids[test_index], scan_person_ids[train_index]).any()
        for train_index, test_index in splits
    )


def split_model_and_role(model: Any) -> tuple[Any, str]:
    """Return a classifier and its role; raise where it is none."""
    estimator, model_role = model if isinstance(model, tuple) else (model, "model")
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise ParameterError(
            "model must be a classifier, such as LSAPClassifier(), or a dictionary "
            "that maps names to classifiers, such as make_models returns; got "
            f"{estimator!r}."
        )
    return estimator, model_role


def configure_model_for_cohort(model: Any, cohort: Cohort) -> Any:
    """Set parameters that the user left to the cohort, and return the model.

    The order of the classes, where it is known; that connectomes are made of the
    features of the training people, where none were read; and the hemispheres and
    structures of regions.
    """
    value_by_parameter = model.get_params()
    new_value_by_parameter = dict[str, Any]()
    for parameter_name, parameter_value in value_by_parameter.items():
        step_prefix = (
            parameter_name[: parameter_name.rfind("__") + 2]
            if "__" in parameter_name
            else ""
        )
        unprefixed_name = parameter_name.removeprefix(step_prefix)
        uses_order = (
            unprefixed_name in ("scales", "initial_scale")
            or str(parameter_value) == "ordinal"
        )
        classes_parameter_name = f"{step_prefix}classes"
        has_no_order = value_by_parameter.get(classes_parameter_name, "") is None
        if cohort.classes_ordered and uses_order and has_no_order:
            new_value_by_parameter[classes_parameter_name] = cohort.classes
        has_no_connectome = cohort.provenance.get("connectome") == NO_CONNECTOME
        if (
            unprefixed_name == "connectome"
            and parameter_value is None
            and has_no_connectome
        ):
            new_value_by_parameter[parameter_name] = "covariance"
        if unprefixed_name in ("hemispheres", "structures") and parameter_value is None:
            new_value_by_parameter[parameter_name] = tuple(
                cohort.atlas.regions[unprefixed_name.removesuffix("s")]
            )
    return (
        model.set_params(**new_value_by_parameter) if new_value_by_parameter else model
    )


def make_region_ridge(cohort: Cohort, model: Any = None) -> Any:
    """Return an unfitted ridge with a scale per region, configured for a cohort.

    Its settings are those of `model`, by default the usual ones.
    """
    if model is None:
        model, _ = make_models(NESTED_RIDGES[-1])[NESTED_RIDGES[-1]]
    return configure_model_for_cohort(clone(model), cohort)


def choose_n_jobs(n_jobs: int | None, cohort: Cohort | CohortSummary) -> int | None:
    """Return the number of processes for a cohort: by default one a core."""
    from joblib.parallel import get_active_backend

    uses_default_jobs = n_jobs is None and get_active_backend()[1] is None
    if uses_default_jobs and cohort.n_scans >= MIN_SCANS_FOR_WORKERS:
        return -1
    return n_jobs


def _run_fits_and_calls(
    model_and_split_by_fit_name: Mapping[str, tuple[Any, Split]],
    later_call_by_name: Mapping[str, Any],
    cohort: Cohort,
    deconfounder: Deconfounder,
    data_hash: str,
    n_jobs: int | None,
    verbose: bool,
    memory: str | Path | None,
) -> tuple[list[dict[str, Any]], Iterator[tuple[str, Any]]]:
    """Return the tables of :func:`_fit_and_tabulate_fold` by task, and later results.

    Finished fits are read.
    """
    from joblib import Parallel, delayed
    from tqdm.auto import tqdm

    path_by_fit_name: dict[str, Path] = {}
    result_by_fit_name: dict[str, dict[str, Any]] = {}
    if memory is not None:
        path_by_fit_name = _make_cache_path_by_task(
            model_and_split_by_fit_name, cohort, deconfounder, data_hash, Path(memory)
        )
        for fit_name, fit_path in path_by_fit_name.items():
            # A file may be missing, or cut short.
            with suppress(OSError, ValueError):
                result_by_fit_name[fit_name] = json.loads(
                    fit_path.read_text(encoding="utf-8")
                )
    if result_by_fit_name and verbose:
        stored_text = f"{len(result_by_fit_name)} of {len(model_and_split_by_fit_name)}"
        tqdm.write(f"{stored_text} fits were stored already.", file=sys.stderr)
    fit_calls = []
    for batch_fit_names in _list_fit_name_batches(
        model_and_split_by_fit_name, result_by_fit_name
    ):
        model_by_fit_name = {
            fit_name: model_and_split_by_fit_name[fit_name][0]
            for fit_name in batch_fit_names
        }
        fold_split = model_and_split_by_fit_name[batch_fit_names[0]][1]
        # The cohort is an argument of its own, so that Dask sends it once a worker.
        fit_calls.append(
            delayed(_fit_and_tabulate_fold)(
                model_by_fit_name, fold_split, deconfounder, cohort
            )
        )
    later_tasks = [
        delayed(_run_named_call)(call_name, *call_parts)
        for call_name, call_parts in later_call_by_name.items()
    ]
    n_jobs = choose_n_jobs(n_jobs, cohort)
    # Otherwise joblib joins long tasks that follow short ones.
    parallel_pool = Parallel(n_jobs, return_as="generator_unordered", batch_size=1)
    all_tasks = fit_calls + later_tasks
    result_iterator = chain.from_iterable(
        result_by_name.items()
        for result_by_name in (parallel_pool(all_tasks) if all_tasks else ())
    )
    result_by_call_name: dict[str, Any] = {}
    n_models = len(model_and_split_by_fit_name) // len(
        {id(fold_split) for _, fold_split in model_and_split_by_fit_name.values()}
    )
    progress_bar = tqdm(
        total=len(model_and_split_by_fit_name),
        initial=len(result_by_fit_name),
        desc="fits",
        disable=None if verbose else True,  # None: only on a terminal
    )
    with (
        progress_bar,
        _note_stored_fits(path_by_fit_name, len(model_and_split_by_fit_name)),
    ):
        while len(result_by_fit_name) < len(model_and_split_by_fit_name):
            result_name, task_result = next(result_iterator)
            if result_name in later_call_by_name:
                result_by_call_name[result_name] = task_result
                continue
            result_by_fit_name[result_name] = task_result
            if result_name in path_by_fit_name:
                with replace_when_whole(path_by_fit_name[result_name]) as partial_path:
                    partial_path.write_text(json.dumps(task_result), encoding="utf-8")
                path_by_fit_name[result_name].chmod(0o600)
            progress_bar.update()
            # Without a terminal: one line for as many fits as a fold has.
            if (
                verbose
                and progress_bar.disable
                and len(result_by_fit_name) % n_models == 0
            ):
                progress_text = (
                    f"{len(result_by_fit_name)} of {len(model_and_split_by_fit_name)}"
                )
                progress_bar.write(
                    f"fitted {progress_text}, last {result_name}", file=sys.stderr
                )
    later_result_iterator: Iterator[Any] = chain(
        result_by_call_name.items(), result_iterator
    )
    if not later_call_by_name:
        later_result_iterator = iter(
            [*later_result_iterator]
        )  # Let the processes end their work.
    return [
        result_by_fit_name[fit_name] for fit_name in model_and_split_by_fit_name
    ], later_result_iterator


def _run_named_call(
    call_name: str, named_function: Callable[..., Any], args: Any, kwargs: Any
) -> dict[str, Any]:
    """Return the result of a call under its name, computed with one thread.

    The last digits of sums depend on the number of threads, which differs between
    processes.
    """
    thread_pools = _find_thread_pools(len(sys.modules))
    # Threads of one process share its limit, and therefore take turns.
    with _WARNINGS_LOCK, thread_pools.limit(limits=1):
        return {call_name: named_function(*args, **kwargs)}


@contextmanager
def _note_stored_fits(
    path_by_fit_name: Mapping[str, Path], n_tasks: int
) -> Iterator[None]:
    """Add a note to an interruption: how many of the fits are stored."""
    try:
        yield
    except KeyboardInterrupt as interruption:
        if path_by_fit_name:
            n_stored_fit_files = sum(
                fit_path.is_file() for fit_path in path_by_fit_name.values()
            )
            interruption.add_note(f"{n_stored_fit_files} of {n_tasks} fits are stored.")
        raise


def _make_cache_path_by_task(
    model_and_split_by_fit_name: Mapping[str, tuple[Any, Split]],
    cohort: Cohort,
    deconfounder: Deconfounder,
    data_hash: str,
    folder: Path,
) -> dict[str, Path]:
    """Return the file of each task's fit, by a hash of code, data and settings."""
    from joblib import hash as hash_of

    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    cohort_names = (tuple(cohort.classes), cohort.region_names, cohort.feature_names)
    table_csv = cohort.table.to_csv(index=False)
    study_hash = hash_of(
        (_hash_code_version(), data_hash, cohort_names, table_csv, deconfounder)
    )
    path_by_fit_name = {}
    for fit_name, (model, fold_split) in model_and_split_by_fit_name.items():
        model_type_set = {
            type(model_or_part)
            for model_or_part in (model, *model.get_params().values())
        }
        own_model_types = [
            k
            for k in model_type_set
            if k.__module__.split(".")[0] not in VERSIONED_PACKAGES
        ]
        # A lambda has no source, and its fit is not stored.
        with suppress(OSError, TypeError, AttributeError, PicklingError):
            source_texts = sorted(
                getsource(model_type) for model_type in own_model_types
            )
            fit_hash = hash_of((study_hash, source_texts, model, fold_split))
            path_by_fit_name[fit_name] = folder / f"{fit_hash}.json"
    return path_by_fit_name


def _list_fit_name_batches(
    model_and_split_by_fit_name: Mapping[str, tuple[Any, Split]],
    result_by_fit_name: Mapping[str, Any],
) -> list[list[str]]:
    """Return the tasks without a result, in batches that share a fit.

    Nested ridges of a fold are fitted at once, and so is the ridge that a network, or
    a model with covariates, starts from. Each further network is a task of its own,
    for another process.
    """
    fit_names_by_batch_key: dict[Any, list[str]] = {}
    for fit_name, (model, fold_split) in model_and_split_by_fit_name.items():
        if fit_name in result_by_fit_name:
            continue
        ridge_classifier = _find_ridge_model(model)
        batch_key = fit_name
        if ridge_classifier is not None:
            batch_key = _make_shared_settings_text(ridge_classifier)
        is_network = ridge_classifier is not model and not hasattr(
            model, "covariate_names"
        )
        if is_network and (batch_key, id(fold_split)) in fit_names_by_batch_key:
            batch_key = fit_name
        fit_names_by_batch_key.setdefault((batch_key, id(fold_split)), []).append(
            fit_name
        )
    return list(fit_names_by_batch_key.values())


def _find_ridge_model(model: Any) -> Any:
    """Return a ridge, or the one that a network starts from, or None."""
    if "scales" in model.get_params():
        return model
    return model.make_ridge() if hasattr(model, "make_ridge") else None


def _make_shared_settings_text(ridge_classifier: Any) -> str:
    """Return the common settings of ridges that are fitted at once, as text."""
    ridge_settings = ridge_classifier.get_params() | {"scales": None}
    ridge_settings["connectome"] = ridge_settings["connectome"] or "own"
    ridge_settings["max_scale"] = float(ridge_settings["max_scale"])
    return str(ridge_settings)


@lru_cache(maxsize=1)
def _find_thread_pools(_n_modules: int) -> ThreadpoolController:
    """Return the thread pools of all libraries that this process has loaded.

    The search costs more than a small fit. It is repeated after new modules were
    imported because they may have loaded further libraries.
    """
    return ThreadpoolController()


def _fit_and_tabulate_fold(
    model_by_name: Mapping[str, Any],
    fold_split: Split,
    deconfounder: Deconfounder,
    cohort: Cohort,
) -> dict[str, Any]:
    """Learn steps and models from the training scans, predict the test scans.

    Several models are ridges that differ in `scales` only, and at most one network
    and models with covariates that start from such a ridge; ridges are fitted together.
    Returns the rows of every table by model, as columns that JSON can hold.
    """
    connectomes, scan_table = cohort.connectomes, cohort.table
    class_names, region_names = tuple(cohort.classes), cohort.region_names
    model_by_name = {
        model_name: clone(model) for model_name, model in model_by_name.items()
    }
    train_index, test_index = fold_split
    train_scan_table, test_scan_table = (
        scan_table.iloc[train_index],
        scan_table.iloc[test_index],
    )
    tables_by_model: dict[str, Any] = {}
    thread_pools = _find_thread_pools(len(sys.modules))
    with _WARNINGS_LOCK, thread_pools.limit(limits=1):
        with _record_warnings() as deconfound_warnings:
            deconfound_start_seconds = time.perf_counter()
            fold_deconfounder = clone(deconfounder)
            features = cohort.features.copy()
            features[train_index] = fold_deconfounder.fit_transform(
                features[train_index], train_scan_table
            )
            features[test_index] = fold_deconfounder.transform(
                features[test_index], test_scan_table
            )
            packed_train_scans = PackedScans(connectomes, features, train_index)
            # A network reads the polynomials of the ridge that is fitted before it.
            packed_train_scans.connectomes.keeps_polynomials = len(
                model_by_name
            ) > 1 and any(
                hasattr(model, "scale_mode") for model in model_by_name.values()
            )
            packed_test_scans = PackedScans(
                connectomes, features, test_index, keeps_terms=len(model_by_name) > 1
            )
            deconfound_seconds = (time.perf_counter() - deconfound_start_seconds) / len(
                model_by_name
            )
        ridge_by_name = {
            fold_model_name: _find_ridge_model(model)
            for fold_model_name, model in model_by_name.items()
        }
        ridge_name_set: set[str] = set()
        ridge_seconds = 0.0
        with _record_warnings() as ridge_warnings:
            ridge_start_seconds = time.perf_counter()
            if len(model_by_name) > 1:
                ridge_name_set = {
                    n for n in model_by_name if ridge_by_name[n] is model_by_name[n]
                }
                # The first gives its parameters to the others: put models first.
                ordered_model_names = sorted(
                    model_by_name, key=lambda n: n not in ridge_name_set
                )
                shared_ridges = [ridge_by_name[n] for n in ordered_model_names]
                _fit_models(shared_ridges, packed_train_scans, train_scan_table)
                ridge_seconds = (time.perf_counter() - ridge_start_seconds) / len(
                    model_by_name
                )
        for model_name, model in model_by_name.items():
            with _record_warnings() as fit_warnings:
                fit_start_seconds = time.perf_counter()
                if model_name not in ridge_name_set:
                    has_shared_ridge = len(model_by_name) > 1
                    ridge_classifier = (
                        ridge_by_name[model_name] if has_shared_ridge else None
                    )
                    _fit_models(
                        [model], packed_train_scans, train_scan_table, ridge_classifier
                    )
                predict_start_seconds = time.perf_counter()
                fit_seconds = (
                    deconfound_seconds
                    + ridge_seconds
                    + predict_start_seconds
                    - fit_start_seconds
                )
                class_prediction_table = _make_prediction_table(
                    model, packed_test_scans, class_names, test_scan_table
                )
                predict_seconds = time.perf_counter() - predict_start_seconds
            inner_model = _unwrap_fitted_model(model)
            fit_report = to_jsonable(getattr(inner_model, "fit_report_", {}))
            warning_text_set = {
                str(fit_warning.message)
                for fit_warning in (
                    *deconfound_warnings,
                    *ridge_warnings,
                    *fit_warnings,
                )
            }
            fact_by_fit_column = {
                "n_train": len(train_scan_table),
                "n_test": len(test_scan_table),
                "n_train_people": train_scan_table["participant"].nunique(),
                "seconds_fit": fit_seconds,
                "seconds_predict": predict_seconds,
                "epochs": float(np.mean(fit_report.get("epochs") or np.nan)),
                "failed": str(fit_report.get("failed") or ""),
                "settings": json.dumps(to_jsonable(model.get_params())),
                "warnings": json.dumps(sorted(warning_text_set)),
                "report": json.dumps(fit_report),
            }
            tables_by_model[model_name] = {
                "fits": {
                    column_name: [fact_value]
                    for column_name, fact_value in fact_by_fit_column.items()
                }
            }
            if fact_by_fit_column["failed"]:
                continue
            prediction_table = test_scan_table[["scan", "participant"]].assign(
                truth=test_scan_table["label"]
            )
            tables_by_model[model_name]["predictions"] = prediction_table.join(
                class_prediction_table
            ).to_dict("list")
            if np.ptp(
                getattr(inner_model, "scales_", 0.0)
            ):  # equal scales rank no region
                tables_by_model[model_name]["scales"] = _make_scale_column_by_name(
                    inner_model, region_names
                )
    return tables_by_model


@contextmanager
def _record_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Record all warnings that are given inside, and show none."""
    with warnings.catch_warnings(record=True) as recorded_warnings:
        warnings.simplefilter("always")
        yield recorded_warnings


def _fit_models(
    models: Sequence[Any],
    packed_scans: PackedScans,
    train_scan_table: pd.DataFrame,
    ridge_classifier: Any = None,
) -> None:
    """Fit one model, or several nested ridges at once, to packed training scans.

    `ridge_classifier` is the fitted one that a model starts from, if there is one.
    """
    model, *other_models = models
    X = _make_model_input(model, packed_scans)
    y = train_scan_table["label"].to_numpy(object)
    scan_person_ids = train_scan_table["participant"].to_numpy(object)
    value_by_metadata_name = {"groups": scan_person_ids, "covariates": train_scan_table}
    fit_parameter_set = set(signature(model.fit).parameters)
    fit_parameter_set |= get_routing_for_object(model).consumes(
        "fit", value_by_metadata_name
    )
    value_by_fit_argument = {
        metadata_name: value_by_metadata_name[metadata_name]
        for metadata_name in value_by_metadata_name
        if metadata_name in fit_parameter_set
    }
    with config_context(enable_metadata_routing=True):  # for searches, pipelines
        try:
            if ridge_classifier is not None:
                model.fit_from_ridge(
                    ridge_classifier,
                    X,
                    y,
                    **value_by_fit_argument | {"groups": scan_person_ids},
                )
            elif other_models:
                model.fit_with(other_models, X, y, scan_person_ids)
            else:
                model.fit(X, y, **value_by_fit_argument)
        except ValueError as error:
            if isinstance(error, ParameterError) or not _reads_two_dimensions(model):
                raise
            raise ParameterError(
                f"{error} Pass only the features to this model. read_features of "
                "brainlsap.evaluation selects them: "
                "make_pipeline(FunctionTransformer(read_features), "
                f"SimpleImputer(), {type(model).__name__}())."
            ) from error


def _reads_two_dimensions(model: Any) -> bool:
    """Return whether scikit-learn's first step of a model takes tables only."""
    if hasattr(model, "steps"):
        return _reads_two_dimensions(model.steps[0][1])
    if hasattr(model, "estimator"):
        return _reads_two_dimensions(model.estimator)
    if type(model).__module__.split(".")[0] != "sklearn":
        return False
    estimator_tags = get_tags(model)
    return not (estimator_tags.no_validation or estimator_tags.input_tags.three_d_array)


def _make_model_input(model: Any, packed_scans: PackedScans) -> Any:
    """Return scans for a model: packed in an array, if it is not of this package."""
    if reads_packed_scans(model):
        return packed_scans
    return np.asarray(packed_scans)


def _make_prediction_table(
    model: Any,
    packed_scans: PackedScans,
    cohort_class_names: tuple[str, ...],
    test_scan_table: pd.DataFrame,
) -> pd.DataFrame:
    """Return predicted classes, `p_` probability and `d_` decision value of each.

    NaN where the model does not give them.
    """
    X = _make_model_input(model, packed_scans)
    class_names = [str(class_name) for class_name in model.classes_]
    inner_model = _unwrap_fitted_model(model)
    output_kind = ""
    absent_class_score = 0.0  # of a class without training scans
    if hasattr(model, "predict_proba"):
        method_parameters = signature(model.predict_proba).parameters
        value_by_predict_argument = (
            {"covariates": test_scan_table} if "covariates" in method_parameters else {}
        )
        output_kind, output_matrix = (
            "p",
            model.predict_proba(X, **value_by_predict_argument),
        )
    elif hasattr(model, "decision_function"):
        output_kind = "d"
        output_matrix = np.asarray(model.decision_function(X), dtype=float)
        if output_matrix.ndim == 1:
            output_matrix = np.column_stack([-output_matrix, output_matrix])
        absent_class_score = output_matrix.min() - 1e3
    else:
        output_matrix = np.equal.outer(
            np.asarray(model.predict(X)).astype(str), class_names
        )
    output_matrix = np.asarray(output_matrix, dtype=float)
    score_matrix = np.full(
        (len(test_scan_table), len(cohort_class_names)), absent_class_score
    )
    for class_name, class_output_column in zip(
        class_names, output_matrix.T, strict=True
    ):
        if class_name in cohort_class_names:
            score_matrix[:, cohort_class_names.index(class_name)] = class_output_column
    if not np.isfinite(score_matrix).all():
        raise ParameterError(
            f"{type(model).__name__} predicts NaN; expected finite probabilities of "
            f"the classes {', '.join(cohort_class_names)}. Check the model."
        )
    predicted_class_names = [cohort_class_names[k] for k in score_matrix.argmax(axis=1)]
    if output_kind == "p" and isinstance(inner_model, ClassPriorMixin):
        class_codes = inner_model.choose_class_indices(output_matrix)
        predicted_class_names = [class_names[k] for k in class_codes]
    values_by_column: dict[str, Any] = {"predicted": predicted_class_names}
    for column_prefix in "pd":
        for class_name, score_column in zip(
            cohort_class_names, score_matrix.T, strict=True
        ):
            is_output_column = column_prefix == output_kind
            values_by_column[f"{column_prefix}_{class_name}"] = (
                score_column if is_output_column else np.nan
            )
    return pd.DataFrame(values_by_column, index=test_scan_table.index)


def _unwrap_fitted_model(model: Any) -> Any:
    """Return the fitted model at the heart of a search or a pipeline."""
    if hasattr(model, "best_estimator_"):
        return _unwrap_fitted_model(model.best_estimator_)
    return (
        _unwrap_fitted_model(model.steps[-1][1]) if hasattr(model, "steps") else model
    )


def _make_scale_column_by_name(
    model: Any, region_names: tuple[str, ...]
) -> dict[str, list]:
    """Return a fitted model's scales as columns, the mean over its starts first."""
    scales_by_column = {("mean", 1.0): model.scales_}
    for start_number, region_scales in enumerate(
        getattr(model, "scales_by_start_", ()), start=1
    ):
        scales_by_column[str(start_number), 1.0] = region_scales
    path_scales = getattr(model, "scale_path_", ())
    for path_share, region_scales in zip(PATH_SHARES, path_scales, strict=False):
        scales_by_column["mean", path_share] = region_scales
    scale_intervals = getattr(model, "scales_interval_", None)
    if scale_intervals is not None:
        scales_by_column["low", 1.0], scales_by_column["high", 1.0] = (
            scale_intervals[:, 0],
            scale_intervals[:, 1],
        )
    scale_table = pd.DataFrame(scales_by_column, list(region_names)).unstack()
    scale_table = scale_table.rename_axis(["start", "share", "region"]).reset_index(
        name="scale"
    )
    return scale_table.to_dict("list")


@cache
def _hash_code_version() -> str:
    """Return a hash of the package's code and of the versions of its requirements."""
    source_paths = sorted(Path(brainlsap.__file__).parent.rglob("*.py"))
    hashed_texts = [
        source_path.read_text(encoding="utf-8") for source_path in source_paths
    ]
    hashed_texts += [
        version(package_name)
        for package_name in ("numpy", "scipy", "scikit-learn", "torch")
    ]
    return hashlib.sha256("\x00".join(hashed_texts).encode()).hexdigest()
