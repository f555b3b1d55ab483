"""Connectomes and SUVR tables of a whole study, from its images.

What is made stands in `derivatives/brainlsap` in the layout that
:func:`~brainlsap.data.load_cohort` reads. Each file has a `.json` beside it, written
last, with the parameters and the sizes and times of the inputs: what is there with the
same ones is not made again.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from brainlsap.arrays import check_at_least
from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data.find_files import (
    StudyFiles,
    parse_scan_name,
    person_key,
    visit_key,
    visit_order,
)
from brainlsap.data.tables import read_table
from brainlsap.exceptions import BrainlsapError, CohortError, WritingError
from brainlsap.files import lock_folder, replace_when_whole
from brainlsap.images.streamlines import FORMATS
from brainlsap.images.suvr import extract_suvr
from brainlsap.images.tractography import build_connectome

FOLDER = Path("derivatives") / "brainlsap"
# What is looked for -> patterns of names, the first that fits anything counts.
PATTERNS = {
    "tractogram": tuple(f"*{suffix}" for suffix in FORMATS),
    "pet": ("*space-T1w*_pet.nii*", "*_pet.nii*", "*_pet.mgz"),
    "transform": ("*from-pet*_to-*_xfm.*",),
    "streamline_weights": (),
}
_IMAGES = (".nii", ".nii.gz", ".mgz")
_TRACER = re.compile(r"_(trc-[A-Za-z0-9]+)")
# Folders of a FreeSurfer subject that hold many files and none of these.
_SKIPPED = ("label", "mri", "scripts", "stats", "surf", "tmp", "touch", "trash")


class BuiltStudy(NamedTuple):
    """What was built of a study.

    Attributes
    ----------
    folder
        Where it stands.
    made
        Files that were made now.
    kept
        Files that were there already, of the same inputs and parameters.
    """

    folder: Path
    made: tuple[Path, ...]
    kept: tuple[Path, ...]
    faults: tuple[str, ...]
    """One line for each scan that failed."""


class ScanImages(NamedTuple):
    """The images of one scan, by what they are; or what keeps it from being built.

    Attributes
    ----------
    files
        `tractogram`, `streamline_weights`, `parcellation`, and for each tracer (such
        as `trc-18FFDG`, empty where not said) `pet <tracer>` and `transform
        <tracer>`.
    """

    participant: str
    session: str
    files: dict[str, Path]
    fault: str

    @property
    def name(self) -> str:
        """Name of the scan, such as `sub-01_ses-M00`."""
        return f"{self.participant}_{self.session}".rstrip("_")

    @property
    def tracers(self) -> list[str]:
        """Tracers of which there is a PET image."""
        return [key[4:] for key in self.files if key.startswith("pet ")]


def build_study(
    folder: str | Path,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    out: str | Path | None = None,
    derivatives: Sequence[str | Path] = (),
    subjects_dir: str | Path | None = None,
    patterns: Mapping[str, str] | None = None,
    connectome: Mapping[str, Any] | None = None,
    suvr: Mapping[str, Any] | None = None,
    n_jobs: int = 1,
    verbose: bool = False,
) -> BuiltStudy:
    """Build what is missing of a study's connectomes and SUVR tables.

    Parameters
    ----------
    folder : str or Path
        With `sub-*` folders or `derivatives/*/sub-*`; tractograms (`.tck`, `.trk`,
        `.trx`) and `*_pet.nii.gz` of a scan, one for each tracer (`trc-`), are looked
        for there, the parcellation also in FreeSurfer's `mri`.
    atlas : str, Path or Atlas
        As :func:`.load_atlas` takes it.
    out : path, optional
        By default `derivatives/brainlsap` in the folder.
    derivatives : sequence of path
        Further data sets to look through.
    subjects_dir : path, optional
        Where FreeSurfer's subjects are, if not below the folder.
    patterns : mapping of str to str, optional
        Patterns of the names of files, by `tractogram`, `parcellation`, `pet`,
        `transform` (registration of PET to parcellation) and `streamline_weights`.
    connectome, suvr : mapping, optional
        Arguments of :func:`.build_connectome` and of :func:`.extract_suvr`; among the
        latter `same_space`, without which PET must say that it was resampled to the
        parcellation's space (`space-T1w`), or have a transform.
    n_jobs : int
        Scans at once, by joblib.
    verbose : bool
        Whether to show a bar on standard error.

    Returns
    -------
    BuiltStudy
        Where it stands, files made and kept, and a line for each scan that failed.

    Raises
    ------
    CohortError
        Where no image is found, or a folder does not exist.
    ParameterError
        Where an argument cannot be used, or another process is building there.
    WritingError
        Where the disk is full, or the folder may not be written to; what is finished
        is kept.
    """
    from joblib import Parallel, delayed
    from joblib.parallel import get_active_backend
    from tqdm import tqdm

    folder, atlas = Path(folder), load_atlas(atlas)
    if n_jobs != -1:
        check_at_least("n_jobs", n_jobs, 1)
    if not folder.is_dir():
        raise CohortError(f"{folder}: no such folder")
    files = StudyFiles(folder, derivatives, subjects_dir)
    place = folder / FOLDER if out is None else Path(out)
    own = [] if files.subjects is None else [files.subjects]
    roots = [r for r in (*files.roots, *own) if r.resolve() != place.resolve()]
    scans = find_scans(folder, roots, atlas, dict(patterns or {}))
    settings = dict(connectome or {}), dict(suvr or {})
    # a Dask cluster, which the caller may have chosen, gives all results at once
    in_turn = getattr(get_active_backend()[0], "supports_return_generator", False)
    order = "generator_unordered" if in_turn else "list"
    calls = (delayed(build_scan)(scan, atlas, place, *settings) for scan in scans)
    with lock_folder(place):
        _remove_partials(place)
        try:
            _describe(place)
            results = Parallel(n_jobs=n_jobs, return_as=order)(calls)
            bar = tqdm(
                results,
                total=len(scans),
                desc="building",
                unit="scan",
                file=sys.stderr,
                disable=not verbose,
            )
            done = sorted(bar, key=lambda outcome: outcome[0])
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                "stopped. Run the same command again to continue: what is finished is "
                f"kept in {place}; nothing half-written is left."
            ) from None
        finally:
            _remove_partials(place)  # of processes that were ended with this one
    return BuiltStudy(
        place,
        tuple(path for _, made, _, _ in done for path in made),
        tuple(path for _, _, kept, _ in done for path in kept),
        tuple(f"{name}: {fault}" for name, _, _, fault in done if fault),
    )


def _remove_partials(place: Path) -> None:
    for path in place.rglob(".partial-*") if place.is_dir() else ():
        path.unlink(missing_ok=True)


def _describe(place: Path) -> None:
    by = {"Name": "brainlsap", "Version": version("brainlsap")}
    description = {
        "Name": "Connectomes and regional values",
        "BIDSVersion": "1.10.0",
        "DatasetType": "derivative",
        "GeneratedBy": [by],
    }
    text = json.dumps(description, indent=2) + "\n"
    path = place / "dataset_description.json"
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        with replace_when_whole(path) as partial:
            partial.write_text(text, encoding="utf-8")


def find_scans(
    folder: Path, roots: Sequence[Path], atlas: Atlas, patterns: Mapping[str, str]
) -> list[ScanImages]:
    """Return the images of all scans that have a tractogram or PET, sorted by name.

    A file is of the person and the visit whose folders (`sub-X/ses-Y`, a FreeSurfer
    subject named `sub-X_ses-Y`, or a name of participants.tsv) it lies in; a person's
    files outside of visits, such as one anatomy, serve all visits.
    """
    listed = set()
    if (folder / "participants.tsv").is_file():
        table = read_table(folder / "participants.tsv")
        listed = {person_key(str(name)) for name in table.iloc[:, 0].dropna()}
    names: dict[str, str] = {}
    found: dict[tuple[str, str], list[Path]] = {}
    segmented: dict[tuple[str, str], Path] = {}
    for place in (place for root in roots for place in sorted(root.glob("*/"))):
        name = parse_scan_name(place.name)
        key = person_key(name.participant)
        image = place / "mri" / atlas.settings.get("segmentation", "none")
        is_person = place.name.startswith("sub-") or key in listed
        # the longitudinal stream has spaces of its own
        if name.base or not (is_person or image.is_file()):
            continue
        names.setdefault(key, name.participant)
        if image.is_file():
            segmented.setdefault((key, visit_key(name.session)), image)
        for path in _walk(place):
            first = path.relative_to(place).parts[0]
            visit = first if first.startswith("ses-") else name.session
            found.setdefault((key, visit_key(visit)), []).append(path)
    scans = []
    for key in sorted(names, key=names.__getitem__):
        visits = {visit for person, visit in (*found, *segmented) if person == key}
        for visit in sorted(visits - {""}, key=visit_order) or [""]:
            own = {*found.get((key, visit), []), *found.get((key, ""), [])}
            brain = segmented.get((key, visit), segmented.get((key, "")))
            scans.append(
                _choose(names[key], visit, sorted(own), atlas, patterns, brain)
            )
    scans = [s for s in scans if "tractogram" in s.files or s.tracers or s.fault]
    if not scans:
        raise CohortError(
            f"{folder}: no tractogram ({', '.join(FORMATS)}) and no PET "
            "(*_pet.nii.gz) was found below sub-* of it, its derivatives, or the "
            "folders of derivatives="
        )
    return scans


def _walk(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        is_freesurfer = "stats" in folders or "mri" in folders
        skipped = _SKIPPED if is_freesurfer else ()
        folders[:] = [f for f in folders if f not in skipped and f[0] != "."]
        yield from (Path(place, name) for name in files if name[0] != ".")


def _choose(
    person: str,
    visit: str,
    files: Sequence[Path],
    atlas: Atlas,
    patterns: Mapping[str, str],
    image: Path | None,
) -> ScanImages:
    """Choose one file of each kind, and one PET of each tracer."""
    chosen: dict[str, Path] = {}
    faults = []

    def choose(
        key: str, what: str, among: Sequence[Path], usual: Sequence[str]
    ) -> None:
        globs = (patterns[what],) if what in patterns else usual
        fitting = next((fits for g in globs if (fits := _fitting(among, g, what))), [])
        if len(fitting) > 1:
            shown = ", ".join(path.name for path in fitting)
            faults.append(
                f"{len(fitting)} files could be its {what}: {shown}; choose by {what}="
            )
        elif fitting:
            chosen[key] = fitting[0]

    usual = tuple(atlas.settings.get("image_patterns", (f"*{atlas.name}*",)))
    choose("parcellation", "parcellation", files, usual)
    choose("tractogram", "tractogram", files, PATTERNS["tractogram"])
    choose("streamline_weights", "streamline_weights", files, ())
    if "parcellation" not in chosen and image is not None:
        chosen["parcellation"] = image
    by_tracer: dict[str, list[Path]] = {}
    for path in files:
        by_tracer.setdefault(_tracer(path), []).append(path)
    for tracer, own in by_tracer.items():
        choose(f"pet {tracer}", "pet", own, PATTERNS["pet"])
        # it has been applied where the PET's name says a space
        is_moved = "space-" in chosen.get(f"pet {tracer}", Path()).name
        if f"pet {tracer}" in chosen and ("transform" in patterns or not is_moved):
            among = own if not tracer else [*own, *by_tracer.get("", [])]
            choose(f"transform {tracer}", "transform", among, PATTERNS["transform"])
    session = f"ses-{visit}" if visit else ""
    scan = ScanImages(person, session, chosen, "; ".join(faults))
    has_images = "tractogram" in chosen or scan.tracers
    if has_images and "parcellation" not in chosen and not faults:
        expected = atlas.settings.get("segmentation", "segmentation")
        fault = (
            f"no parcellation of {atlas.name}; expected FreeSurfer's mri/{expected}, "
            "or an image chosen by parcellation="
        )
        return scan._replace(fault=fault)
    return scan


def _tracer(path: Path) -> str:
    found = _TRACER.search(path.name)
    return found[1] if found else ""


def _fitting(files: Sequence[Path], glob: str, what: str) -> list[Path]:
    suffixes = _IMAGES if what == "parcellation" else ("",)
    return [
        path
        for path in files
        if fnmatch(str(path), f"*/{glob}")
        and path.suffix != ".json"
        and path.name.lower().endswith(suffixes)
    ]


def build_scan(
    scan: ScanImages,
    atlas: Atlas,
    place: Path,
    connectome: Mapping[str, Any],
    suvr: Mapping[str, Any],
) -> tuple[str, list[Path], list[Path], str]:
    """Build what is missing of one scan; return its name, made, kept, and its fault.

    A fault is returned, not raised: other scans go on.
    """
    made: list[Path] = []
    kept: list[Path] = []
    if scan.fault:
        return scan.name, made, kept, scan.fault
    folder = place / scan.participant / scan.session
    word = atlas.settings.get("file_words", [atlas.name])[0]
    steps: list[tuple[Path, str, Mapping[str, Any]]] = []
    if "tractogram" in scan.files:
        name = f"{scan.name}_atlas-{word}_connectivity.csv"
        steps.append((folder / "dwi" / name, "tractogram", connectome))
    for tracer in scan.tracers:
        name = f"{scan.name}_{tracer}".rstrip("_")
        name = f"{name}_atlas-{word}_desc-suvr_regions.tsv"
        steps.append((folder / "pet" / name, f"pet {tracer}", suvr))
    faults = []
    for path, what, settings in steps:
        record = _fingerprint(scan, what, atlas, settings)
        try:
            if _is_done(path, record):
                kept.append(path)
                continue
            if what == "tractogram":
                table, facts = _make_connectome(scan, atlas, settings)
            else:
                table, facts = _make_suvr(scan, what, atlas, settings)
            sidecar = path.with_suffix(".json")
            sidecar.unlink(missing_ok=True)
            with replace_when_whole(path) as partial:
                sep = "," if path.suffix == ".csv" else "\t"
                table.to_csv(partial, sep=sep, na_rep="n/a", index_label="region")
            with replace_when_whole(sidecar) as partial:
                text = json.dumps({**facts, **record}, indent=2) + "\n"
                partial.write_text(text, encoding="utf-8")
            made.append(path)
        except WritingError:  # it would be the same for every other scan
            raise
        except (BrainlsapError, OSError, MemoryError) as error:
            faults.append(" ".join(str(error).split()))
    return scan.name, made, kept, "; ".join(faults)


def _make_connectome(
    scan: ScanImages, atlas: Atlas, settings: Mapping[str, Any]
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return a connectome with names, and what its sidecar says."""
    files = scan.files
    more: dict[str, Any] = {"n_threads": 1}  # scans are built side by side
    if "streamline_weights" in files:
        more["streamline_weights"] = files["streamline_weights"]
    made = build_connectome(
        files["tractogram"], files["parcellation"], atlas, **(more | dict(settings))
    )
    frame = made.to_frame()
    if np.array_equal(made.matrix, np.rint(made.matrix)):
        frame = frame.astype(np.int64)
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
    return frame, facts


def _make_suvr(
    scan: ScanImages, what: str, atlas: Atlas, settings: Mapping[str, Any]
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return a table of regions, and what its sidecar says."""
    files = scan.files
    transform = files.get(what.replace("pet", "transform", 1))
    more = {} if transform is None else {"transform": transform}
    made = extract_suvr(
        files[what], files["parcellation"], atlas, **(more | dict(settings))
    )
    is_known = np.isfinite(made.shift_mm)
    facts = {
        "Description": "Standardised uptake value ratio of every region",
        "Parameters": made.parameters,
        "Reference": {
            "Mean": made.reference_mean,
            "Coverage": made.reference_coverage,
        },
        "Overlap": made.overlap,
        "BestShift_mm": made.shift_mm if is_known else None,
        "Notes": list(made.notes),
    }
    return made.to_frame()[["suvr", "n_voxels", "coverage"]], facts


def _fingerprint(
    scan: ScanImages, what: str, atlas: Atlas, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what must be the same for a file not to be made again."""
    beside = what.replace("pet", "transform", 1)
    if what == "tractogram":
        beside = "streamline_weights"
    inputs = {}
    for name in (what, "parcellation", beside):
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
    except (OSError, ValueError, KeyError, TypeError):
        return False
