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
    check.add_argument(
        "--page",
        metavar="OUT",
        help="write what is unusual about every scan, with pictures: a folder, or the "
        "page's .html file",
    )
    check.add_argument(
        "--with-identifiers",
        action="store_true",
        help="name people on the page; without it scans go by codes",
    )
    add_reading(check)


def call(options: argparse.Namespace) -> None:
    """Run the command."""
    from brainlsap.data import check_cohort

    found = check_cohort(options.cohort, **given(options, COHORT + PLACES))
    print(found.text(), end="")
    if not found.is_sound:
        later = "; mend them before a page is written" if options.page else ""
        raise BrainlsapError(
            f"{options.cohort} has {len(found.faults)} fault(s){later}"
        )
    if options.page and found.cohort is not None:
        from brainlsap.report import write_quality_page

        page = write_quality_page(
            found.cohort, options.page, with_identifiers=options.with_identifiers
        )
        print(f"Quality: {page}")
