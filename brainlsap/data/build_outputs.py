"""Build and write what is missing of one scan, each file whole with its sidecar."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from brainlsap._files import write_text
from brainlsap.data.atlas import Atlas
from brainlsap.data.build_inputs import ScanInputs
from brainlsap.data.spreadsheets import guarded_text
ATLAS_WORDS = {"destrieux160": "destrieux", "desikan82": "desikan"}
from brainlsap.data.suvr import extract_suvr
from brainlsap.data.tractography import build_connectome
from brainlsap.exceptions import BrainlsapError, WritingError

_TRACER = re.compile(r"_(trc-[A-Za-z0-9]+)")


@dataclass
class ScanOutcome:
    """What became of one scan.

    Parameters
    ----------
    name : str
        Of the scan.
    made, kept : list of Path
        Files that were made now, and those that were there already.
    fault : str
        Why it failed, in one line; empty where it did not.
    """

    name: str
    made: list[Path] = field(default_factory=list)
    kept: list[Path] = field(default_factory=list)
    fault: str = ""


def describe_dataset() -> dict[str, Any]:
    """Return what `dataset_description.json` says of the derivatives."""
    return {
        "Name": "Connectomes and regional values",
        "BIDSVersion": "1.10.0",
        "DatasetType": "derivative",
        "GeneratedBy": [{"Name": "brainlsap", "Version": version("brainlsap")}],
    }


def build_scan(
    scan: ScanInputs,
    atlas: Atlas,
    place: Path,
    connectome: dict[str, Any],
    suvr: dict[str, Any],
) -> ScanOutcome:
    """Build what is missing of one scan.

    Parameters
    ----------
    scan : ScanInputs
        Its images.
    atlas : Atlas
        Names the regions and gives their order.
    place : Path
        Folder of the derivatives.
    connectome, suvr : dict
        Arguments of :func:`.build_connectome` and :func:`.extract_suvr`.

    Returns
    -------
    ScanOutcome
        A fault is said in it, not raised: other scans go on.
    """
    outcome = ScanOutcome(scan.name, fault=scan.fault)
    if scan.fault:
        return outcome
    faults = []
    folder = place / scan.participant / scan.session
    word = ATLAS_WORDS.get(atlas.name, atlas.name)
    stem = f"{scan.name}_atlas-{word}"
    steps: list[tuple[str, Path, Callable[[], tuple[str, Any]], dict[str, Any]]] = []
    if "tractogram" in scan.files:
        path = folder / "dwi" / f"{stem}_connectivity.csv"
        made = lambda: _connectome(scan, atlas, connectome)  # noqa: E731
        steps.append(("tractogram", path, made, connectome))
    if "pet" in scan.files:
        tracer = _TRACER.search(scan.files["pet"].name)
        name = f"{scan.name}_{tracer[1]}" if tracer else scan.name
        path = folder / "pet" / f"{name}_atlas-{word}_desc-suvr_regions.tsv"
        made = lambda: _suvr(scan, atlas, suvr)  # noqa: E731
        steps.append(("pet", path, made, suvr))
    for what, path, call, settings in steps:
        record = _fingerprint(scan, what, atlas, settings)
        try:
            if _is_done(path, record):
                outcome.kept.append(path)
                continue
            text, facts = call()
            path.with_suffix(".json").unlink(missing_ok=True)
            write_text(path, text)
            whole = json.dumps({**facts, **record}, indent=2) + "\n"
            write_text(path.with_suffix(".json"), whole)
            outcome.made.append(path)
        except WritingError:  # it would be the same for every other scan
            raise
        except (BrainlsapError, OSError, MemoryError) as error:
            faults.append(" ".join(str(error).split()))
    outcome.fault = "; ".join(faults)
    return outcome


def _connectome(
    scan: ScanInputs, atlas: Atlas, settings: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Return the text of a connectome with names, and what its sidecar says."""
    files = scan.files
    weights = files.get("streamline_weights")
    more: dict[str, Any] = {"n_threads": 1}  # scans are built side by side
    if weights is not None:
        more["streamline_weights"] = weights
    made = build_connectome(
        files["tractogram"], files["parcellation"], atlas, **(more | settings)
    )
    facts = {
        "Description": "Connectome from streamlines; symmetric, regions by name",
        "Parameters": made.parameters,
        "Streamlines": {
            "Total": made.n_streamlines,
            "Kept": made.n_kept,
            "Unassigned": made.n_unassigned,
            "OutsideAtlas": made.n_outside,
        },
        "Notes": list(made.notes),
    }
    return made.to_frame().to_csv(index_label="region"), facts


def _suvr(
    scan: ScanInputs, atlas: Atlas, settings: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Return the text of a table of regions, and what its sidecar says."""
    files = scan.files
    more = {"transform": files["transform"]} if "transform" in files else {}
    made = extract_suvr(files["pet"], files["parcellation"], atlas, **(more | settings))
    frame = made.to_frame()[["suvr", "n_voxels", "coverage"]].reset_index()
    text = guarded_text(frame, missing="n/a")
    facts = {
        "Description": "Standardised uptake value ratio of every region",
        "Parameters": made.parameters,
        "Reference": {
            "Mean": made.reference_mean,
            "Coverage": made.reference_coverage,
        },
        "Overlap": made.overlap,
        "Notes": list(made.notes),
    }
    return text, facts


def _fingerprint(
    scan: ScanInputs, what: str, atlas: Atlas, settings: dict[str, Any]
) -> dict[str, Any]:
    """Return what must be the same for a file not to be made again."""
    of_pet = ("pet", "parcellation", "transform")
    of_tracts = ("tractogram", "parcellation", "streamline_weights")
    inputs = {}
    for name in of_pet if what == "pet" else of_tracts:
        path = scan.files.get(name)
        if path is not None and path.is_file():
            facts = path.stat()
            inputs[name] = [path.name, facts.st_size, facts.st_mtime_ns]
    given = {key: str(value) for key, value in sorted(settings.items())}
    return {"Inputs": inputs, "Asked": {"atlas": atlas.name, **given}}


def _is_done(path: Path, record: dict[str, Any]) -> bool:
    try:
        said = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        return path.is_file() and {key: said[key] for key in record} == record
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
