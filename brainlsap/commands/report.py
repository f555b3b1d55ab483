"""`brainlsap report`: make a report anew from its results folder."""

import argparse
from typing import Any


def add(commands: Any) -> None:
    """Add the command and its options."""
    report = commands.add_parser(
        "report",
        help="make the report of a results folder anew, figures and tables included",
        description="Needs neither the cohort nor torch.",
    )
    report.add_argument("results", help="results folder of run or rank")
    report.add_argument("--out", help="another folder to write (default: the same)")
    report.add_argument(
        "--animation",
        action="store_true",
        help="add the scales during training as a GIF in report/figures",
    )
    report.add_argument("--title", help="heading of the page")
    report.add_argument(
        "--with-identifiers",
        action="store_true",
        help="name scans and people in report/, which is then not to be shared",
    )


def call(options: argparse.Namespace) -> None:
    """Run the command."""
    from brainlsap.report import remake_report

    page = remake_report(
        options.results,
        options.out,
        title=options.title,
        with_identifiers=options.with_identifiers,
        animation=options.animation,
    )
    print(f"Report: {page}")
