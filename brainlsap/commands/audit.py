"""`brainlsap audit`: whatever may make a score too good, before anything is fitted."""

import argparse
from typing import Any

from brainlsap.exceptions import BrainlsapError
from brainlsap.options import (
    COHORT,
    PLACES,
    add_reading,
    at_least,
    comma_list,
    given,
)


def add(commands: Any) -> None:
    """Add the command and its options."""
    audit = commands.add_parser(
        "audit",
        help="look for leaks in a cohort and its folds; exit code 2 if there is one",
        description="Errors are leaks: exit code 2. Warnings are something other than "
        "the brain that may explain a score. The audit of the models themselves is "
        "part of every report.",
    )
    audit.add_argument("cohort", help="folder of subjects, or a cohort's file (.h5)")
    audit.add_argument(
        "--splits", metavar="TSV", help="folds to look at; by default they are drawn"
    )
    audit.add_argument("--folds", type=at_least(2), default=5, help="default: 5")
    audit.add_argument("--seed", type=at_least(0), default=0, help="default: 0")
    audit.add_argument(
        "--whole",
        type=comma_list,
        default=[],
        help="columns, such as site, whose values must not be divided between folds",
    )
    audit.add_argument("--out", metavar="TSV", help="write the table of findings too")
    add_reading(audit)


def call(options: argparse.Namespace) -> None:
    """Run the command."""
    from pathlib import Path

    from brainlsap.data import Cohort, load_cohort
    from brainlsap.evaluation import audit
    from brainlsap.report.text_tables import table_text

    if Path(options.cohort).suffix == ".h5":
        cohort = Cohort.load(options.cohort)
    else:
        reading = given(options, COHORT + PLACES)
        cohort = load_cohort(options.cohort, **reading, verbose=True)
    people = len(set(cohort.groups))
    print(f"Cohort: {cohort.n_scans} scans of {people} people", flush=True)
    found = audit(cohort, _splits(options, cohort), whole=options.whole)
    table = found.to_frame()
    if len(table):
        print(f"\n{table_text(table)}")
    passed = ", ".join(found.passed())
    print(f"Made and nothing found: {passed or 'none'}")
    for check, reason in found.skipped.items():
        print(f"Not made: {check} ({reason})")
    if options.out:
        from brainlsap._files import write_text

        print(f"Table: {write_text(options.out, table_text(table, 'tsv'))}")
    print(found.sentence(), flush=True)
    if not found.is_clean:
        checks = ", ".join(found.checks_of("error"))
        raise BrainlsapError(f"{options.cohort} has leaks: {checks}")


def _splits(options: argparse.Namespace, cohort: Any) -> Any:
    from brainlsap.evaluation import make_splits, read_splits, whole_groups

    if options.splits:
        return read_splits(options.splits, list(cohort.table["scan"]))
    missing = [name for name in options.whole if name not in cohort.table]
    if missing:
        raise BrainlsapError(
            f"--whole names {missing[0]!r}, and the cohort has the columns "
            f"{', '.join(map(str, cohort.table.columns))}."
        )
    columns = [cohort.table[name] for name in options.whole]
    groups = whole_groups(cohort.groups, *columns) if columns else cohort.groups
    return make_splits(cohort.y, groups, options.folds, options.seed)
