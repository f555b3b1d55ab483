"""`brainlsap build`: connectomes and SUVR of a cohort from its images."""

import argparse
from typing import Any

from brainlsap.exceptions import CohortError
from brainlsap.options import at_least, given, window

PATTERNS = {
    "tractogram": "streamlines (.tck, .trk, .trx)",
    "parcellation": "labels of regions (default: by the atlas' usual names)",
    "pet": "PET images (default: *_pet.nii*, *_pet.mgz)",
    "transform": "registrations of PET to the parcellation (.lta, ITK, FSL)",
    "streamline_weights": "a weight for each streamline, such as SIFT2's",
}
CONNECTOME = ("assignment", "radius", "weight", "labels")
SUVR = (
    *("reference", "grid", "frames", "erosion", "min_voxels", "accept_low_coverage"),
    *("labels", "same_space"),
)


def add(commands: Any) -> None:
    """Add the command and its options."""
    build = commands.add_parser(
        "build",
        help="make connectomes and SUVR tables of a cohort from its images",
        description="Finds tractograms, parcellations and PET of every scan and writes "
        "what is missing to derivatives/brainlsap. What is there with the same "
        "parameters and inputs is kept, so a run that was stopped goes on.",
    )
    build.add_argument("cohort", help="folder of subjects")
    build.add_argument("--out", help="default: derivatives/brainlsap in the cohort")
    build.add_argument(
        "--atlas",
        default="destrieux160",
        help="name or regions.tsv (default: destrieux160)",
    )
    build.add_argument(
        "--derivatives",
        action="append",
        default=[],
        metavar="FOLDER",
        help="results of other programs outside the cohort's folder; may be repeated",
    )
    build.add_argument("--subjects-dir", help="FreeSurfer's subjects")
    build.add_argument(
        "--jobs", type=at_least(1), default=1, help="scans at once (default: 1)"
    )
    _add_files(build)
    _add_connectomes(build)
    _add_uptake(build)


def _add_files(build: argparse.ArgumentParser) -> None:
    files = build.add_argument_group("patterns of the names of files")
    for name, what in PATTERNS.items():
        flag = f"--{name.replace('_', '-')}"
        files.add_argument(flag, metavar="PATTERN", help=f"of {what}")
    files.add_argument("--labels", help="table of numbers and names of the labels")


def _add_connectomes(build: argparse.ArgumentParser) -> None:
    lines = build.add_argument_group("connectomes")
    lines.add_argument(
        "--assignment",
        choices=("end_voxels", "radial", "reverse_search"),
        help="where a streamline's end belongs: the label of its voxel, the nearest "
        "within --radius (radial, default), or the first on the way back",
    )
    lines.add_argument("--radius", type=float, help="in mm (default: 4)")
    lines.add_argument(
        "--weight",
        choices=("count", "inverse_length", "inverse_node_volume", "mean_length"),
        help="what a streamline adds: 1 (count, default), 1 / its length, 2 / voxels "
        "of both nodes; or the mean length of a link's streamlines",
    )


def _add_uptake(build: argparse.ArgumentParser) -> None:
    pet = build.add_argument_group("SUVR")
    pet.add_argument(
        "--reference",
        help="whose mean is 1: cerebellar cortex (default), pons, whole cerebellum, or "
        "a mask",
    )
    pet.add_argument(
        "--grid",
        choices=("pet", "parcellation"),
        help="where voxels are averaged: labels go to the PET (default), or it to them",
    )
    pet.add_argument(
        "--frames", type=window, metavar="START,END", help="of time to average, in s"
    )
    pet.add_argument(
        "--erosion", type=at_least(0), help="layers of voxels taken off (default: 0)"
    )
    pet.add_argument(
        "--min-voxels",
        type=at_least(1),
        help="regions of fewer are not measured (default: 1)",
    )
    pet.add_argument(
        "--same-space",
        action="store_true",
        default=None,
        help="PET is in the space of the parcellation though its name does not say so "
        "(space-T1w) and there is no registration",
    )
    pet.add_argument(
        "--accept-low-coverage",
        action="store_true",
        default=None,
        help="go on where the PET covers less than 90 %% of regions or 80 %% of the "
        "reference, or seems to lie beside the labels",
    )


def call(options: argparse.Namespace) -> None:
    """Run the command."""
    from brainlsap.images import build_study

    built = build_study(
        options.cohort,
        options.atlas,
        out=options.out,
        derivatives=options.derivatives,
        subjects_dir=options.subjects_dir,
        patterns=given(options, tuple(PATTERNS)),
        connectome=given(options, CONNECTOME),
        suvr=given(options, SUVR),
        n_jobs=options.jobs,
        verbose=True,
    )
    if options.owner_only:  # files that were there before are not to be read either
        built.folder.chmod(0o700)
    print(f"Built: {built.folder} ({len(built.made)} made, {len(built.kept)} kept)")
    if built.faults:
        n = len(built.faults)
        raise CohortError(f"{n} scan{'s' * (n > 1)} failed", built.faults)
