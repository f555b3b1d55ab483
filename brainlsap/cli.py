"""The command line: parse, call one function of a room, say where it wrote.

Exit codes: 0 done; 2 bad input, with one message on standard error and nothing
written; 130 stopped by Ctrl-C.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from brainlsap.exceptions import BrainlsapError, CohortError
from brainlsap.options import build_parser

# Options that functions of the rooms take by the same name.
PET = ("frames", "reference")
READ = ("atlas", "feature", "label", "measure", "scans", "subcortex")
COHORT = ("classes", "pattern", *PET, *READ)
FILES = ("features_table", "labels", "subjects_dir")
PLACES = ("connectome", "derivatives", *FILES)
SETTINGS = ("device", "n_epochs", "n_starts", "threshold", "weights")

# Messages say "by label="; here it is --label. Nothing that is part of a path.
_KEYWORD = re.compile(rf"(?<![\w/.=-])({'|'.join(COHORT + PLACES)})=(?=[\s.,;:)]|$)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.

    Returns
    -------
    int
        Exit code.

    Examples
    --------
    >>> main(["atlases"])
    desikan82: 82 regions
    destrieux160: 160 regions
    0
    """
    options = build_parser().parse_args(arguments)
    try:
        CALLS[options.command](options)
    except (BrainlsapError, OSError) as error:
        print(f"brainlsap: error: {_one_message(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("brainlsap: stopped; nothing half-written is left.", file=sys.stderr)
        return 130
    return 0


def _one_message(error: BrainlsapError | OSError) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    text = str(error)
    if isinstance(error, CohortError) and len(error.faults) == 1:
        text = text.replace(":\n  ", ": ", 1)
    return _KEYWORD.sub(lambda found: "--" + found[1].replace("_", "-"), text)


def _demo(options: argparse.Namespace) -> None:
    from brainlsap.data import load_cohort, make_cohort, write_subject_folders
    from brainlsap.evaluation import make_splits
    from brainlsap.report import check_results_folder
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
        write_subject_folders(made, folder, progress=True)
        print(f"Cohort: {folder} ({made.n_scans} scans simulated)")
    cohort = load_cohort(folder, feature="fdg", progress=True)
    page = run_study(
        cohort,
        results,
        ["chebyshev", "exact"],
        n_folds=options.folds,
        random_state=options.seed,
        n_jobs=options.jobs,
        progress=True,
        title="Demo: a simulated cohort",
        **_given(options, SETTINGS),
    )
    _print_scores(results)
    print(f"Report: {page}")


def _simulate(options: argparse.Namespace) -> None:
    from brainlsap.data import make_cohort, write_subject_folders

    cohort = make_cohort(
        options.people,
        atlas=options.atlas,
        feature=options.feature,
        random_state=options.seed,
    )
    style = options.style
    folder = write_subject_folders(cohort, options.out, style=style, progress=True)
    people = len(set(cohort.groups))
    print(f"Cohort: {folder} ({cohort.n_scans} scans of {people} people)")


def _run(options: argparse.Namespace) -> None:
    from brainlsap.data import load_cohort
    from brainlsap.report import check_results_folder
    from brainlsap.study import run_study, study_models

    check_results_folder(options.out)
    settings = _given(options, SETTINGS)
    study_models(options.kernel, preset=options.preset, **settings)
    cohort = load_cohort(
        options.cohort, **_given(options, COHORT + PLACES), progress=True
    )
    people = len(set(cohort.groups))
    print(f"Cohort: {cohort.n_scans} scans of {people} people", flush=True)
    page = run_study(
        cohort,
        options.out,
        options.kernel,
        n_folds=options.folds,
        random_state=options.seed,
        preset=options.preset,
        n_jobs=options.jobs,
        progress=True,
        **settings,
    )
    _print_scores(Path(options.out))
    print(f"Report: {page}")


def _check(options: argparse.Namespace) -> None:
    from brainlsap.data import check_cohort

    found = check_cohort(options.cohort, **_given(options, COHORT + PLACES))
    print(found.text(), end="")
    if not found.is_sound:
        raise BrainlsapError(f"{options.cohort} has {len(found.faults)} fault(s)")


def _given(options: argparse.Namespace, names: Sequence[str]) -> dict[str, Any]:
    given = {name: getattr(options, name, None) for name in names}
    return {name: value for name, value in given.items() if value is not None}


def _atlases(options: argparse.Namespace) -> None:  # noqa: ARG001
    from brainlsap.data import available_atlases, load_atlas

    for name in available_atlases():
        print(f"{name}: {len(load_atlas(name))} regions")


def _print_scores(results: Path) -> None:
    table = results / "report" / "tables" / "scores.md"
    if table.is_file():
        print(table.read_text(encoding="utf-8"))


CALLS = {
    "atlases": _atlases,
    "check": _check,
    "demo": _demo,
    "run": _run,
    "simulate": _simulate,
}

if __name__ == "__main__":
    sys.exit(main())
