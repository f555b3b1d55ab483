"""`brainlsap compare`: every model and control through the same folds, with tests."""

import argparse
import time
from contextlib import nullcontext
from functools import partial
from typing import Any

from brainlsap.commands.classes import check_classes, merge_classes
from brainlsap.options import (
    COHORT,
    PLACES,
    add_collapse,
    add_fitting,
    add_reading,
    add_tasks,
    comma_list,
    given,
)


def add(commands: Any) -> None:
    """Add the command and its options."""
    compare = commands.add_parser(
        "compare",
        help="compare models and controls on the same folds",
        description="Prints mean and s.d. of the scores over folds, and corrected "
        "resampled t-tests against one model, with Holm's correction.",
    )
    compare.add_argument("cohort", help="folder of subjects")
    compare.add_argument(
        "--models",
        type=comma_list,
        default=["all"],
        help="all (default), models, controls, or names with commas: lsap-c, "
        "linear-svm, gcn, shuffled-edges ...",
    )
    compare.add_argument(
        "--against",
        help="the model that others are tested against (default: the first)",
    )
    compare.add_argument(
        "--fast",
        action="store_true",
        help="fixed settings: one start, scales from 1, fewer epochs",
    )
    compare.add_argument(
        "--out", help="results folder: new, or of a run before, which it replaces"
    )
    add_reading(compare)
    add_collapse(compare)
    add_fitting(compare, jobs=1)
    add_tasks(compare)


def call(options: argparse.Namespace) -> None:
    """Run the command."""
    from brainlsap.data import load_cohort
    from brainlsap.report import check_results_folder
    from brainlsap.study import find_names
    from brainlsap.study.holding import hold_results

    find_names(_models(options))
    check_classes(options)
    hold: Any = nullcontext(options.cache)
    if options.out is not None:
        hold = hold_results(check_results_folder(options.out), options.cache)
    started = time.monotonic()
    cohort = load_cohort(
        options.cohort, **given(options, COHORT + PLACES), verbose=True
    )
    cohort = merge_classes(cohort, options)
    people = len(set(cohort.groups))
    print(f"Cohort: {cohort.n_scans} scans of {people} people", flush=True)
    with hold as tasks:
        _compare(options, cohort, tasks, started)


def _models(options: argparse.Namespace) -> str | list[str]:
    return options.models[0] if len(options.models) == 1 else options.models


def _compare(
    options: argparse.Namespace, cohort: Any, tasks: Any, started: float
) -> None:
    from brainlsap.report import table_text
    from brainlsap.study import compare_models, write_comparison

    found = compare_models(
        cohort,
        _models(options),
        n_folds=options.folds,
        random_state=options.seed,
        fast=options.fast,
        reference=options.against,
        n_jobs=options.jobs,
        progress=True,
        cache=tasks,
        tell=partial(print, flush=True),
        **given(options, ("n_epochs", "n_starts", "backend", "scheduler")),
    )
    print(f"\nSettings: {found.settings}\n\n{table_text(found.table)}")
    print(found.times(time.monotonic() - started), flush=True)
    if options.out is not None:
        print(f"Report: {write_comparison(found, cohort, options.out)}")
