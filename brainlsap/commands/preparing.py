"""Options of how connectomes are made ready, shared by the commands that fit."""

import argparse
import json
from pathlib import Path
from typing import Any

OPTIONS = (
    "threshold_unit",
    "symmetrize",
    "consensus",
    "group_density",
    "isolated",
)


def add_preparation(command: argparse.ArgumentParser) -> None:
    """Add the options of :class:`brainlsap.graph.Preparation`."""
    group = command.add_argument_group(
        "how connectomes are prepared", "what is learned comes from each training fold"
    )
    group.add_argument(
        "--threshold",
        type=float,
        help="drop links below it (default: 0; preset paper: 10 streamlines)",
    )
    group.add_argument(
        "--threshold-unit",
        choices=("weight", "share", "density"),
        help="unit of --threshold: weight (streamlines), share of the scan's total, or "
        "density: keep the strongest links, this share of all pairs (default: weight)",
    )
    group.add_argument(
        "--weights",
        choices=("weighted", "log", "binary"),
        help="of links: as they are (default), log(1 + weight), or 1 (preset paper)",
    )
    group.add_argument(
        "--symmetrize",
        choices=("mean", "max", "refuse"),
        help="where two directions differ: their mean (default), the larger, or refuse",
    )
    _add_group(group)


def _add_group(group: Any) -> None:
    group.add_argument(
        "--volumes", help="divide by region volumes: table of region and volume"
    )
    group.add_argument(
        "--consensus",
        type=float,
        help="keep links that this share of the training people has",
    )
    group.add_argument(
        "--group-density",
        type=float,
        help="keep the training people's strongest links, this share of all pairs",
    )
    group.add_argument(
        "--isolated",
        choices=("keep", "strongest", "mean", "refuse"),
        help="regions left without links: keep them to themselves (default), give back "
        "the strongest link, take the training mean's, or refuse",
    )
    group.add_argument(
        "--network",
        choices=("own", "mean", "covariance"),
        help="each scan's own connectome (default), the training people's mean, or the "
        "covariance of their features (for people without diffusion imaging)",
    )


def preparation(options: argparse.Namespace) -> dict[str, Any]:
    """Return what was asked for, as the models' setting; empty where nothing was."""
    found = {
        name: getattr(options, name)
        for name in OPTIONS
        if getattr(options, name) is not None
    }
    if options.network is not None:
        found["connectome"] = options.network
    if options.volumes is not None:
        from brainlsap.data import load_atlas, region_volumes

        volumes = region_volumes(options.volumes, load_atlas(options.atlas))
        found["volumes"] = volumes.tolist()
    if options.network == "covariance" and options.connectome is None:
        options.connectome = "none"  # nobody's own is looked for
    return {"preparation": found} if found else {}


def print_connectomes(results: Path) -> None:
    """Print what the preparation made of the connectomes, from a results folder."""
    path = results / "report" / "results.json"
    if not path.is_file():
        return
    record = json.loads(path.read_text("utf-8"))
    for name, model in record["models"].items():
        reports = [fold.get("fit_report", {}) for fold in model["folds"]]
        if not all("density" in one for one in reports):
            continue
        mean = {
            key: sum(one[key] for one in reports) / len(reports)
            for key in ("density", "isolated_regions", "spectral_gap")
        }
        print(
            f"Connectomes as {name} takes them (mean of training folds): density "
            f"{mean['density']:.3f}, isolated regions {mean['isolated_regions']:.2f}, "
            f"spectral gap {mean['spectral_gap']:.3f}"
        )
        return
