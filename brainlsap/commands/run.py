"""`brainlsap run`: cross-validate a cohort, rank its regions, write a report."""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from brainlsap.commands.classes import check_classes, merge_classes
from brainlsap.commands.preparing import (
    add_preparation,
    preparation,
    print_connectomes,
)
from brainlsap.commands.printing import print_scores
from brainlsap.options import (
    COHORT,
    CONFOUNDS,
    KERNELS,
    PLACES,
    SETTINGS,
    TASKS,
    add_answers,
    add_confounds,
    add_fitting,
    add_preset,
    add_reading,
    add_tasks,
    given,
    kernel_list,
)


def add(commands: Any) -> None:
    """Add the command and its options."""
    run = commands.add_parser(
        "run",
        help="cross-validate a cohort, rank and draw its regions, write a report",
        description="The report's folder is written whole at the end, or not at all. "
        "A run that was stopped continues when it is started again.",
    )
    run.add_argument("cohort", help="folder of subjects")
    run.add_argument(
        "--out",
        required=True,
        help="results folder: new, or of a run before, which it replaces",
    )
    add_reading(run)
    run.add_argument(
        "--kernel",
        type=kernel_list,
        default=["chebyshev"],
        help=f"one or more of {', '.join(KERNELS)}, with commas, or all (default: "
        "chebyshev)",
    )
    add_preset(run)
    run.add_argument(
        "--tune",
        choices=("default", "paper"),
        help="choose settings from this space by inner folds of each training fold "
        "(default: no choice)",
    )
    add_fitting(run, jobs=1)
    add_confounds(run)
    add_answers(run)
    add_tasks(run)
    add_preparation(run)


def call(options: argparse.Namespace) -> None:
    """Run the command."""
    from brainlsap.data import load_cohort
    from brainlsap.report import check_results_folder
    from brainlsap.study import run_study, study_models

    check_results_folder(options.out)
    check_classes(options)
    settings = given(options, SETTINGS) | preparation(options)
    study_models(options.kernel, preset=options.preset, **settings)
    cohort = load_cohort(
        options.cohort, **given(options, COHORT + PLACES), verbose=True
    )
    cohort = merge_classes(cohort, options)
    people = len(set(cohort.groups))
    print(f"Cohort: {cohort.n_scans} scans of {people} people", flush=True)
    page = run_study(
        cohort,
        options.out,
        options.kernel,
        n_folds=options.folds,
        random_state=options.seed,
        preset=options.preset,
        tune=options.tune,
        n_jobs=options.jobs,
        progress=True,
        tell=partial(print, flush=True),
        **given(options, CONFOUNDS + TASKS),
        **settings,
    )
    print_scores(Path(options.out))
    print_connectomes(Path(options.out))
    print(f"Report: {page}")
