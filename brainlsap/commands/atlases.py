"""`brainlsap atlases`: the atlases that come along."""

import argparse
from typing import Any


def add(commands: Any) -> None:
    """Add the command and its options."""
    commands.add_parser("atlases", help="list the atlases that come along")


def call(options: argparse.Namespace) -> None:  # noqa: ARG001
    """Run the command."""
    from brainlsap.data import available_atlases, load_atlas

    for name in available_atlases():
        print(f"{name}: {len(load_atlas(name))} regions")
