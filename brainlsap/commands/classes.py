"""Classes of a cohort merged as the command line asks, in every command that fits."""

import argparse
from typing import Any


def check_classes(options: argparse.Namespace) -> None:
    """Raise for a collapse that does not exist, before a cohort is read."""
    if options.collapse is not None:
        from brainlsap.evaluation import find_collapse

        find_collapse(options.collapse)


def merge_classes(cohort: Any, options: argparse.Namespace) -> Any:
    """Return the cohort with its classes merged, and say what was merged."""
    if options.collapse is None:
        return cohort
    from brainlsap.evaluation import collapse_cohort

    merged = collapse_cohort(cohort, options.collapse)
    print(merged.notes[-1].replace("classes", "Classes", 1), flush=True)
    return merged
