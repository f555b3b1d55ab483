"""Cross-validation of any scikit-learn classifier on a cohort, people kept whole."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from brainlsap.data import Cohort
from brainlsap.evaluation.class_order import told_order
from brainlsap.evaluation.cohort_summary import summarise_cohort
from brainlsap.evaluation.controls import baseline_models
from brainlsap.evaluation.designs import count_repeats, repeat_splits, whole_groups
from brainlsap.evaluation.leakage import audit
from brainlsap.evaluation.records import (
    CohortSummary,
    Evaluation,
    FoldResult,
    ModelResult,
)
from brainlsap.evaluation.splits import Split, check_splits
from brainlsap.evaluation.tasks import Task, Work, run_tasks
from brainlsap.exceptions import ParameterError

__all__ = [
    "CohortSummary",
    "Evaluation",
    "FoldResult",
    "ModelResult",
    "cross_validate",
    "summarise_cohort",
]


def cross_validate(
    model: Any,
    cohort: Cohort,
    n_folds: int = 5,
    random_state: int = 0,
    *,
    baselines: bool | Mapping[str, Any] = True,
    splits: Sequence[Split] | None = None,
    n_repeats: int = 1,
    balance: str | None = None,
    whole: Sequence[str] = (),
    people_may_be_shared: bool = False,
    n_jobs: int = 1,
    progress: bool = False,
    cache: str | Path | None = None,
    backend: str = "processes",
    scheduler: str | None = None,
    tell: Callable[[str], None] | None = None,
) -> Evaluation:
    """Fit and test models on stratified folds that never share a person.

    Every model is cloned for every fold and sees the training scans only. The person
    of each scan is handed to models whose `fit` takes `groups`, so that what they
    split off inside keeps people whole too. A model whose `random_state` is None
    gets a seed drawn from `random_state` and the fold. The leakage audit
    (:func:`brainlsap.evaluation.audit`) runs over cohort, folds and models before
    anything is fitted, and its findings stay with the results.

    Parameters
    ----------
    model : classifier or mapping of str to classifier
        Scikit-learn classifiers over the packed array of :meth:`Cohort.to_array`.
        The predicted class is the one of highest probability; models that have no
        `predict_proba` are asked for `decision_function`, then for `predict`.
    cohort : Cohort
        The scans.
    n_folds : int
        Number of folds, at least 2; not looked at where `splits` is given.
    random_state : int
        Seed of the folds and of models without a seed of their own.
    baselines : bool or mapping of str to classifier
        Whether :func:`baseline_models` run through the same folds, or which do.
    splits : sequence of (train, test), optional
        Folds to use instead of drawing them.
    n_repeats : int
        How often folds are drawn anew, each scan being tested once in each.
    balance : str, optional
        Column of the cohort's table, such as a site, to spread over the folds.
    whole : sequence of str
        Columns, such as a family or a site, whose groups are kept in one fold.
    people_may_be_shared : bool
        Whether given `splits` may have one person on both sides. Every table, figure
        and page that comes of it then says that its scores are not by person.
    n_jobs : int
        Processes; the result does not depend on it.
    progress : bool
        Whether to show a bar, with the time left, on standard error.
    cache : str or Path, optional
        Folder in which every finished task (a model on a fold) is kept, by a hash of
        code, data, settings and seed; those found there are not computed again. It
        names people.
    backend : {"processes", "dask"}
        Where tasks run: processes here, or the workers of a Dask cluster.
    scheduler : str, optional
        Address of the cluster's scheduler, such as "tcp://127.0.0.1:8786".
    tell : function of str, optional
        Is told in one line how many tasks were finished before.

    Returns
    -------
    Evaluation
        Every out-of-fold prediction, learned scales, settings and seconds.

    Raises
    ------
    SplitError
        Where people cannot be divided as asked, or `splits` share a person.
    ParameterError
        Where there is no model, or two of one name, or the cohort has no such column.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from brainlsap.simulation import make_cohort
    >>> cohort = make_cohort(60, atlas="desikan82", random_state=0)
    >>> evaluation = cross_validate(
    ...     {"prior": DummyClassifier()}, cohort, n_folds=3, baselines=False
    ... )
    >>> evaluation.main.summary().loc["balanced_accuracy", "mean"].round(2)
    np.float64(0.2)
    """
    asked, controls = _named(model), _baselines(baselines, random_state)
    models = _together(asked, controls, cohort.classes)
    drawn = splits is None
    if splits is None:
        splits = _draw(cohort, n_folds, n_repeats, random_state, balance, whole)
    # Scans that count as people of their own share nobody; rows are still checked.
    people = np.arange(cohort.n_scans) if people_may_be_shared else cohort.groups
    splits = check_splits(splits, people)
    audited = audit(cohort, splits, asked, whole=whole)
    seeds = [_fold_seed(random_state, fold) for fold in range(len(splits))]
    tasks = [
        Task(name, one, fold, split, seeds[fold])
        for name, one in models.items()
        for fold, split in enumerate(splits)
    ]
    work = Work(n_jobs, progress, cache, backend, scheduler, tell)
    folds = run_tasks(tasks, cohort, work)
    summary = summarise_cohort(cohort)
    results = {
        name: ModelResult(
            name,
            tuple(folds[start : start + len(splits)]),
            summary.classes,
            summary.region_names,
            summary.measured,
        )
        for name, start in zip(models, range(0, len(tasks), len(splits)), strict=True)
    }
    settings = {
        "n_folds": len(splits),
        "n_repeats": count_repeats(splits),
        "random_state": random_state,
        "splits": "drawn" if drawn else "given",
        "balance": balance if drawn else None,
        "whole": list(whole),
        "people_shared": "person in two folds" in audited.checks_of("error"),
        "baselines": list(controls),
    }
    return Evaluation(results, splits, settings, summary, audited)


def _named(model: Any) -> dict[str, Any]:
    models = (
        dict(model) if isinstance(model, Mapping) else {type(model).__name__: model}
    )
    if not models:
        raise ParameterError("model must name at least one classifier, got none.")
    for name, one in models.items():
        if not (hasattr(one, "fit") and hasattr(one, "get_params")):
            raise ParameterError(
                f"model {name!r} must be a scikit-learn classifier with fit and "
                f"get_params, got {type(one).__name__}."
            )
    return models


def _baselines(baselines: bool | Mapping[str, Any], seed: int) -> dict[str, Any]:
    if isinstance(baselines, Mapping):
        return dict(baselines)
    return baseline_models(seed) if baselines else {}


def _draw(
    cohort: Cohort,
    n_folds: int,
    n_repeats: int,
    random_state: int,
    balance: str | None,
    whole: Sequence[str],
) -> tuple[Split, ...]:
    table = cohort.table
    for column in (*whole, *([] if balance is None else [balance])):
        if column not in table:
            raise ParameterError(
                f"balance and whole must name columns of the cohort's table, got "
                f"{column!r}; there are {', '.join(map(str, table.columns))}."
            )
    groups = whole_groups(cohort.groups, *(table[column] for column in whole))
    return repeat_splits(
        cohort.y,
        groups if whole else cohort.groups,
        n_folds,
        n_repeats,
        random_state,
        balance=None if balance is None else table[balance].to_numpy(),
    )


def _together(
    asked: dict[str, Any], controls: dict[str, Any], classes: tuple[str, ...]
) -> dict[str, Any]:
    doubled = sorted(set(asked) & set(controls))
    if doubled:
        raise ParameterError(
            f"a model must not have the name of a baseline, got {doubled[0]!r}. "
            "Rename it, or pass baselines=False."
        )
    models = {**asked, **controls}
    return {name: told_order(one, classes) for name, one in models.items()}


def _fold_seed(random_state: int, fold: int) -> int:
    # Seeds of neighbouring folds and of neighbouring runs must not coincide.
    return int(np.random.SeedSequence([random_state, fold]).generate_state(1)[0] >> 1)
