"""`brainlsap check`: what a cohort holds, what is mapped or dropped, every fault."""

import argparse
from typing import Any

from brainlsap.exceptions import BrainlsapError
from brainlsap.options import COHORT, PLACES, add_reading, given


def add(commands: Any) -> None:
    """Add the command and its options."""
    check = commands.add_parser(
        "check", help="say what a cohort holds, what is mapped or dropped, every fault"
    )
    check.add_argument("cohort", help="folder of subjects")
    add_reading(check)


def call(options: argparse.Namespace) -> None:
    """Run the command."""
    from brainlsap.data import check_cohort

    found = check_cohort(options.cohort, **given(options, COHORT + PLACES))
    print(found.text(), end="")
    if not found.is_sound:
        raise BrainlsapError(f"{options.cohort} has {len(found.faults)} fault(s)")
