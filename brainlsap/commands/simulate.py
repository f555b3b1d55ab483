"""`brainlsap simulate`: subject folders with a planted answer."""

import argparse
from typing import Any

from brainlsap.options import at_least, comma_list


def add(commands: Any) -> None:
    """Add the command and its options."""
    simulate = commands.add_parser(
        "simulate", help="write simulated subject folders with a planted answer"
    )
    simulate.add_argument("out", help="new or empty folder")
    simulate.add_argument(
        "--people", type=at_least(1), default=120, help="default: 120"
    )
    simulate.add_argument(
        "--atlas",
        default="destrieux160",
        help="name or regions.tsv (default: destrieux160)",
    )
    simulate.add_argument(
        "--feature",
        type=comma_list,
        default=["fdg"],
        help="fdg, thickness, volume; with commas (default: fdg)",
    )
    simulate.add_argument(
        "--style",
        choices=("mrtrix", "named"),
        default="mrtrix",
        help="of connectomes: MRtrix's numbers without names (default), or matrices "
        "with the names of the regions",
    )
    simulate.add_argument("--seed", type=at_least(0), default=0, help="default: 0")


def call(options: argparse.Namespace) -> None:
    """Run the command."""
    from brainlsap.simulation import make_cohort, write_study_folder

    cohort = make_cohort(
        options.people,
        atlas=options.atlas,
        feature=options.feature,
        random_state=options.seed,
    )
    style = options.style
    folder = write_study_folder(cohort, options.out, style=style, verbose=True)
    people = len(set(cohort.groups))
    print(f"Cohort: {folder} ({cohort.n_scans} scans of {people} people)")
