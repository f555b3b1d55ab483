"""`brainlsap import-adni`: ADNI's tables and images become a cohort's folder."""

import argparse
from typing import Any

from brainlsap.options import at_least, comma_list


def add(commands: Any) -> None:
    """Add the command and its options."""
    adni = commands.add_parser(
        "import-adni",
        help="make a cohort's folder of ADNI's tables and images",
        description="Tables: ADNIMERGE, or DXSUM and ARM, as CSV. Images: LONI's "
        "PTID/description/date/I-id. Everything is written, or nothing.",
    )
    adni.add_argument("tables", help="folder of ADNI's tables, or ADNIMERGE's file")
    adni.add_argument("images", help="folder of LONI's images")
    adni.add_argument("out", help="the cohort's folder: new or empty")
    adni.add_argument(
        "--window",
        type=at_least(0),
        default=180,
        help="days between an image and its visit, at the most (default: 180)",
    )
    adni.add_argument(
        "--stages",
        choices=("baseline", "carry"),
        default="baseline",
        help="SMC, EMCI, LMCI: at baseline (default), or carried forward and marked",
    )
    adni.add_argument(
        "--require",
        type=comma_list,
        default=[],
        help="modalities that a visit needs, with commas: anat, dwi, fdg, amyloid, tau",
    )
    adni.add_argument(
        "--modality",
        action="append",
        default=[],
        metavar="NAME=WORDS",
        help="words in a description that mean a modality, such as fdg=Coreg,_Avg",
    )
    adni.add_argument(
        "--files",
        choices=("link", "copy", "none"),
        default="link",
        help="images in the cohort's folder: links to them (default), copies, or none",
    )


def call(options: argparse.Namespace) -> None:
    """Run the command."""
    from brainlsap.adni import import_adni
    from brainlsap.exceptions import ParameterError

    words = dict(part.partition("=")[::2] for part in options.modality)
    if not all(name and text for name, text in words.items()):
        raise ParameterError("--modality must be NAME=WORDS, such as fdg=Coreg,_Avg.")
    found = import_adni(
        options.tables,
        options.images,
        options.out,
        window=options.window,
        stages=options.stages,
        require=tuple(options.require),
        modalities=words,
        files=options.files,
    )
    print(found.text(), end="")
    print(f"Cohort: {found.folder}")
