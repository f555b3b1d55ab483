"""`brainlsap verify`: recompute what can be recomputed of a results folder."""

import argparse
from typing import Any

from brainlsap.exceptions import BrainlsapError


def add(commands: Any) -> None:
    """Add the command and its options."""
    verify = commands.add_parser(
        "verify",
        help="recompute a results folder and say what differs; exit code 2 if anything",
        description="Hashes of all files, scores from predictions, splits, the inputs "
        "if they are there, and the whole report made anew. No torch is needed.",
    )
    verify.add_argument("results", help="results folder, with its private/")
    verify.add_argument(
        "--quick",
        action="store_true",
        help="neither make the report anew nor read the cohort again",
    )
    verify.add_argument(
        "--cohort", help="its folder, if it is elsewhere than when it was run"
    )


def call(options: argparse.Namespace) -> None:
    """Run the command."""
    from brainlsap.report.verification import verify_results

    found = verify_results(
        options.results, remake=not options.quick, cohort=options.cohort
    )
    for line in found.checked:
        print(f"Checked: {line}")
    for line in found.notes:
        print(f"Note: {line}")
    for line in found.differences:
        print(f"Differs: {line}")
    if not found.is_sound:
        number = len(found.differences)
        raise BrainlsapError(
            f"{options.results} differs in {number} place{'s' * (number > 1)} from "
            "what it should be"
        )
    print(f"{options.results} is as it was written.")
