"""`brainlsap export`: scales per region as files for other programs."""

import argparse
from typing import Any

from brainlsap.options import comma_list

FORMATS = "tsv, csv, shape, func, cifti, annot, ggseg, enigma, nifti"


def add(commands: Any) -> None:
    """Add the command and its options."""
    export = commands.add_parser(
        "export",
        help="write the scales of a results folder for other programs",
        description="Tables, GIFTI, CIFTI-2, FreeSurfer's annotations, NIfTI; for "
        "Connectome Workbench, ggseg and the ENIGMA toolbox. Needs neither the cohort "
        "nor torch.",
    )
    export.add_argument("results", help="results folder of run or rank")
    export.add_argument("--out", help="folder (default: RESULTS_regions beside it)")
    export.add_argument(
        "--formats", type=comma_list, default="all", help=f"all (default), or {FORMATS}"
    )
    export.add_argument(
        "--parcellation", help="NIfTI or MGZ of the regions' labels, for nifti"
    )


def call(options: argparse.Namespace) -> None:
    """Run the command."""
    from brainlsap.report import export_results

    formats = options.formats
    files = export_results(
        options.results,
        options.out,
        formats="all" if formats == ["all"] else formats,
        parcellation=options.parcellation,
    )
    print(f"Regions: {files[0].parent} ({len(files)} files)")
