"""`brainlsap fit`: one model on all scans of a cohort, stored for new people."""

import argparse
from typing import Any

from brainlsap.commands.classes import check_classes, merge_classes
from brainlsap.commands.preparing import add_preparation, preparation
from brainlsap.options import (
    COHORT,
    CONFOUNDS,
    KERNELS,
    PLACES,
    SETTINGS,
    add_answers,
    add_confounds,
    add_length,
    add_preset,
    add_reading,
    at_least,
    given,
)


def add(commands: Any) -> None:
    """Add the command and its options."""
    fit = commands.add_parser(
        "fit",
        help="fit one model on a whole cohort and store it, to predict new people",
        description="Nothing is cross-validated here: say how good the model is by "
        "brainlsap run on the same cohort.",
    )
    fit.add_argument("cohort", help="folder of subjects, or a cohort's file (.h5)")
    fit.add_argument("--out", required=True, help="the model's file, written whole")
    add_reading(fit)
    fit.add_argument(
        "--kernel", choices=KERNELS, default="chebyshev", help="default: chebyshev"
    )
    add_preset(fit)
    fit.add_argument(
        "--seed", type=at_least(0), default=0, help="of all chance (default: 0)"
    )
    add_length(fit)
    add_confounds(fit)
    add_answers(fit)
    add_preparation(fit)


def call(options: argparse.Namespace) -> None:
    """Run the command."""
    from pathlib import Path

    from brainlsap.data import Cohort, load_cohort
    from brainlsap.exceptions import ParameterError
    from brainlsap.study import fit_model, study_models

    if Path(options.out).is_dir():
        raise ParameterError(f"{options.out} is a folder; --out needs a file.")
    check_classes(options)
    (model,) = study_models(
        [options.kernel],
        preset=options.preset,
        random_state=options.seed,
        **given(options, SETTINGS) | preparation(options),
    ).values()
    reading = given(options, COHORT + PLACES)
    if Path(options.cohort).suffix == ".h5":
        cohort, reading = Cohort.load(options.cohort), {}
    else:
        cohort = load_cohort(options.cohort, **reading, verbose=True)
    cohort = merge_classes(cohort, options)
    people = len(set(cohort.groups))
    print(f"Cohort: {cohort.n_scans} scans of {people} people", flush=True)
    how = given(options, CONFOUNDS)
    fit_model(cohort, options.out, model, reading=reading, **how)
    print(f"Model: {options.out}")
