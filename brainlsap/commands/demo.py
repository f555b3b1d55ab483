"""`brainlsap demo`: a simulated cohort, the whole way to a report."""

import argparse
from pathlib import Path
from typing import Any

from brainlsap.commands.printing import print_scores
from brainlsap.options import SETTINGS, add_fitting, at_least, given


def add(commands: Any) -> None:
    """Add the command and its options."""
    demo = commands.add_parser(
        "demo", help="simulate a cohort and go the whole way, to a report"
    )
    demo.add_argument("--out", default="demo", help="folder to write (default: demo)")
    demo.add_argument("--people", type=at_least(1), default=120, help="default: 120")
    add_fitting(demo, jobs=2)


def call(options: argparse.Namespace) -> None:
    """Run the command."""
    from brainlsap.data import load_cohort
    from brainlsap.evaluation import make_splits
    from brainlsap.report import check_results_folder
    from brainlsap.simulation import make_cohort, write_study_folder
    from brainlsap.study import run_study

    out = Path(options.out)
    results = check_results_folder(out / "results")
    folder = out / f"cohort_{options.people}_people_seed_{options.seed}"
    if folder.is_dir():
        print(f"Cohort: {folder} (made before)")
    else:
        made = make_cohort(options.people, feature="fdg", random_state=options.seed)
        # before anything is written: too few people for the folds is an error
        make_splits(made.y, made.groups, options.folds, options.seed)
        write_study_folder(made, folder, verbose=True)
        print(f"Cohort: {folder} ({made.n_scans} scans simulated)")
    cohort = load_cohort(folder, feature="fdg", verbose=True)
    page = run_study(
        cohort,
        results,
        ["chebyshev", "exact"],
        n_folds=options.folds,
        random_state=options.seed,
        n_jobs=options.jobs,
        progress=True,
        title="Demo: a simulated cohort",
        **given(options, SETTINGS),
    )
    print_scores(results)
    print(f"Report: {page}")
