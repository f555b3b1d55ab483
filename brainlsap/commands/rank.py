"""`brainlsap rank`: rank regions, with what the ranking is held against."""

import argparse
from pathlib import Path
from typing import Any

from brainlsap.commands.classes import check_classes, merge_classes
from brainlsap.commands.preparing import add_preparation, preparation
from brainlsap.exceptions import BrainlsapError
from brainlsap.options import (
    COHORT,
    KERNELS,
    PLACES,
    SETTINGS,
    add_answers,
    add_fitting,
    add_preset,
    add_reading,
    at_least,
    given,
    kernel_list,
)

PERMUTATIONS = 99


def add(commands: Any) -> None:
    """Add the command and its options."""
    rank = commands.add_parser(
        "rank",
        help="rank regions: from a results folder, or a cohort with refits",
        description="From a results folder, the ranking is printed, and written where "
        "--out says. From a cohort, models are cross-validated and refitted, to "
        "permuted labels among others, and --out becomes a results folder.",
    )
    rank.add_argument("source", help="results folder, or folder of subjects")
    rank.add_argument("--out", help="folder to write")
    rank.add_argument(
        "--permutations",
        type=at_least(0),
        metavar="N",
        help=f"refits to permuted labels (default with a cohort: {PERMUTATIONS})",
    )
    _add_table(rank)
    add_reading(rank)
    rank.add_argument(
        "--kernel",
        type=kernel_list,
        default=["chebyshev"],
        help=f"one or more of {', '.join(KERNELS)}, with commas; the first is "
        "ranked (default: chebyshev)",
    )
    add_preset(rank)
    add_fitting(rank, jobs=1)
    add_answers(rank)
    add_preparation(rank)
    _add_comparison(rank)


def _add_table(rank: argparse.ArgumentParser) -> None:
    rank.add_argument(
        "--model",
        help="which model of a results folder (default: the one ranked, or first)",
    )
    rank.add_argument(
        "--top",
        type=at_least(1),
        default=10,
        help="so many regions are the top, and printed (default: 10)",
    )
    rank.add_argument(
        "--names",
        choices=("short", "long", "atlas"),
        default="short",
        help="of regions: short (default), written out, or the atlas' own",
    )
    rank.add_argument(
        "--style",
        choices=("markdown", "csv", "latex", "tsv"),
        help="of the printed table (default: markdown)",
    )


def _add_comparison(rank: argparse.ArgumentParser) -> None:
    group = rank.add_argument_group("another map of the brain")
    group.add_argument(
        "--against",
        metavar="MAP",
        help="compare the scales with the maps of a table by region, or of another "
        "results folder, by a spin test",
    )
    group.add_argument("--column", help="which column, or model, of MAP (default: all)")
    group.add_argument(
        "--spins",
        type=at_least(1),
        dest="n_spins",
        metavar="N",
        help="rotations of the cortex (default: 1000)",
    )


def call(options: argparse.Namespace) -> None:
    """Run the command."""
    from brainlsap.report import write_ranking

    if (Path(options.source) / "private" / "evaluation.json").is_file():
        if options.permutations:
            raise BrainlsapError(
                f"{options.source} is a results folder, and permutations= needs the "
                "scans; give the folder of subjects, and the results folder as out="
            )
        results, out = options.source, options.out
    else:
        results, out = _refit(options), None
    told = write_ranking(
        results,
        out,
        model=options.model,
        top_k=options.top,
        names=options.names,
        style=options.style or "markdown",
        random_state=options.seed,
        **given(options, ("against", "column", "n_spins")),
    )
    print(told, end="")
    if out is not None:
        print(f"Ranking: {Path(out).resolve()}")


def _refit(options: argparse.Namespace) -> Path:
    from brainlsap.data import load_cohort
    from brainlsap.report import check_results_folder
    from brainlsap.study import rank_cohort, study_models

    if not Path(options.source).exists():
        raise BrainlsapError(f"{options.source}: no such folder")
    if options.out is None:
        raise BrainlsapError(
            f"{options.source} is not a results folder; to rank the regions of a "
            "cohort, say where the results go by out="
        )
    check_results_folder(options.out)
    check_classes(options)
    settings = given(options, SETTINGS) | preparation(options)
    study_models(options.kernel, preset=options.preset, **settings)
    cohort = load_cohort(
        options.source, **given(options, COHORT + PLACES), verbose=True
    )
    cohort = merge_classes(cohort, options)
    n = PERMUTATIONS if options.permutations is None else options.permutations
    page = rank_cohort(
        cohort,
        options.out,
        options.kernel,
        n_permutations=n,
        n_folds=options.folds,
        random_state=options.seed,
        preset=options.preset,
        n_jobs=options.jobs,
        progress=True,
        **settings,
    )
    print(f"Report: {page}")
    return Path(options.out)
