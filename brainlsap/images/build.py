"""Connectomes and SUVR tables of a whole study, from its images.

What is made stands in `derivatives/brainlsap` in the layout that
:func:`~brainlsap.data.load_cohort` reads. Each file has a `.json` beside it, written
last, with the parameters and the sizes and times of the inputs: what is there with the
same ones is not made again.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from brainlsap.arrays import check_at_least
from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data import read_table
from brainlsap.data.find_files import (
    ScanName,
    StudyFiles,
    parse_scan_name,
    visit_order,
)
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
    """What was built of a study, where, and a line for each scan that failed."""

    folder: Path
    made: tuple[Path, ...]
    kept: tuple[Path, ...]
    faults: tuple[str, ...]


class Task(NamedTuple):
    """One file to build, of which scan, and of which images by their parameter."""

    scan: str
    path: Path
    inputs: dict[str, Path]


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
        `folder`, files `made` and `kept`, and a line of `faults` a scan that failed.

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
    place = folder / FOLDER if out is None else Path(out)
    listed: list[str] = []
    if (folder / "participants.tsv").is_file():
        listed = [*read_table(folder / "participants.tsv").iloc[:, 0].dropna()]
    files = StudyFiles(folder, listed, derivatives, subjects_dir)
    tasks, faults = find_tasks(files, place, atlas, dict(patterns or {}))
    settings = {"tractogram": dict(connectome or {}), "pet": dict(suvr or {})}
    # a Dask cluster, which the caller may have chosen, gives all results at once
    in_turn = getattr(get_active_backend()[0], "supports_return_generator", False)
    order = "generator_unordered" if in_turn else "list"
    calls = (delayed(build_file)(task, atlas, place, settings) for task in tasks)
    with lock_folder(place):
        _remove_partials(place)
        try:
            _describe(place)
            results = Parallel(n_jobs=n_jobs, return_as=order)(calls)
            done = sorted(tqdm(results, "building", len(tasks), disable=not verbose))
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                "stopped. Run the same command again to continue: what is finished is "
                f"kept in {place}; nothing half-written is left."
            ) from None
        finally:
            _remove_partials(place)  # of processes that were ended with this one
    for scan, _, outcome in done:
        if outcome not in ("made", "kept"):
            faults.setdefault(scan, []).append(outcome)
    made, kept = (
        tuple(path for _, path, outcome in done if outcome == what)
        for what in ("made", "kept")
    )
    lines = (f"{scan}: {'; '.join(said)}" for scan, said in sorted(faults.items()))
    return BuiltStudy(place, made, kept, tuple(lines))


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


def find_tasks(
    files: StudyFiles, place: Path, atlas: Atlas, patterns: Mapping[str, str]
) -> tuple[list[Task], dict[str, list[str]]]:
    """Return what can be built, and what keeps scans from being built, by name.

    A person's files outside of visits, such as one anatomy, serve all visits. What
    lies in `place` was built before.
    """
    found, names = dict(files.files), dict[str, str]()
    segmented: dict[tuple[str, str], Path] = {}
    roots = files.roots if files.subjects_dir is None else [files.subjects_dir]
    glob = f"*/mri/{atlas.settings.get('segmentation', 'none')}"
    for image in (image for root in roots for image in sorted(root.glob(glob))):
        name = parse_scan_name(image.parents[1].name)
        if not name.base:  # the longitudinal stream has spaces of its own
            names.setdefault(name.key[0], name.participant)
            segmented.setdefault(name.key, image)
            found[name.key] = [*found.get(name.key, []), *_walk(image.parents[1])]
    for (person, _), paths in found.items():
        for part in (part for path in paths[:1] for part in path.parts):
            if ScanName(part).key[0] == person:
                names.setdefault(person, part)
    tasks: list[Task] = []
    faults: dict[str, list[str]] = {}
    for key, person in sorted(names.items(), key=lambda item: item[1]):
        visits = {visit for one, visit in (*found, *segmented) if one == key}
        for visit in sorted(visits - {""}, key=visit_order) or [""]:
            own = {*found.get((key, visit), []), *found.get((key, ""), [])}
            images = sorted(path for path in own if place not in path.parents)
            brain = segmented.get((key, visit), segmented.get((key, "")))
            session = f"ses-{visit}" if visit else ""
            chosen, wrong = _choose_images(images, atlas, patterns, brain)
            if wrong:
                faults[f"{person}_{session}".rstrip("_")] = wrong
            else:
                tasks += _plan(person, session, chosen, atlas)
    if not tasks and not faults:
        raise CohortError(
            f"{files.folder}: no tractogram ({', '.join(FORMATS)}) and no PET "
            "(*_pet.nii.gz) was found below sub-* of it, its derivatives, or the "
            "folders of derivatives="
        )
    return tasks, faults


def _walk(folder: Path) -> Iterator[Path]:
    """Yield the files of a FreeSurfer subject that are not FreeSurfer's."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        yield from (Path(place, name) for name in names if name[0] != ".")


def _choose_images(  # noqa: C901
    files: Sequence[Path],
    atlas: Atlas,
    patterns: Mapping[str, str],
    brain: Path | None,
) -> tuple[dict[str, dict[str, Path]], list[str]]:
    """Choose one file of each kind, for "" (tractogram) and each tracer; and faults."""
    faults = []

    def choose(
        what: str, among: Sequence[Path], usual: Sequence[str]
    ) -> dict[str, Path]:
        for glob in (patterns[what],) if what in patterns else usual:
            fitting = [
                path
                for path in among
                if fnmatch(str(path), f"*/{glob}")
                and path.suffix != ".json"
                and (what != "parcellation" or path.name.lower().endswith(_IMAGES))
            ]
            if len(fitting) > 1:
                shown = ", ".join(path.name for path in fitting)
                faults.append(
                    f"{len(fitting)} files could be its {what}: {shown}; choose by "
                    f"{what}="
                )
            if fitting:
                return {what: fitting[0]}
        return {}

    usual = tuple(atlas.settings.get("image_patterns", (f"*{atlas.name}*",)))
    labels = choose("parcellation", files, usual)
    if not labels and brain is not None:
        labels = {"parcellation": brain}
    chosen = {}
    if lines := choose("tractogram", files, PATTERNS["tractogram"]):
        weights = choose("streamline_weights", files, ())
        chosen["tractogram"] = {**lines, **labels, **weights}
    by_tracer: dict[str, list[Path]] = {}
    for path in files:
        found = _TRACER.search(path.name)
        by_tracer.setdefault(found[1] if found else "", []).append(path)
    for tracer, own in by_tracer.items():
        pet = choose("pet", own, PATTERNS["pet"])
        if not pet:
            continue
        moves: dict[str, Path] = {}
        # it has been applied where the PET's name says a space
        if "transform" in patterns or "space-" not in pet["pet"].name:
            among = own if not tracer else [*own, *by_tracer.get("", [])]
            moves = choose("transform", among, PATTERNS["transform"])
        chosen[tracer] = {**pet, **labels, **moves}
    if chosen and not labels and not faults:
        expected = atlas.settings.get("segmentation", "segmentation")
        faults.append(
            f"no parcellation of {atlas.name}; expected FreeSurfer's mri/{expected}, "
            "or an image chosen by parcellation="
        )
    return chosen, faults


def _plan(
    person: str, session: str, chosen: Mapping[str, dict[str, Path]], atlas: Atlas
) -> Iterator[Task]:
    """Yield a task for the connectome of a scan and for the uptake of each tracer."""
    scan = f"{person}_{session}".rstrip("_")
    word = atlas.settings.get("file_words", [atlas.name])[0]
    for what, inputs in chosen.items():
        if what == "tractogram":
            path = Path("dwi", f"{scan}_atlas-{word}_connectivity.csv")
        else:
            name = f"{scan}_{what}".rstrip("_")
            path = Path("pet", f"{name}_atlas-{word}_desc-suvr_regions.tsv")
        yield Task(scan, Path(person, session, path), inputs)


def build_file(
    task: Task, atlas: Atlas, place: Path, settings: Mapping[str, dict[str, Any]]
) -> tuple[str, Path, str]:
    """Build one file if it is missing; return its scan, and "made", "kept" or why not.

    A fault is returned, not raised: others go on.
    """
    path, is_pet = place / task.path, "pet" in task.inputs
    sidecar = path.with_suffix(".json")
    asked = settings["pet" if is_pet else "tractogram"]
    facts = {name: (file.name, file.stat()) for name, file in task.inputs.items()}
    record = {  # what must be the same for a file not to be made again
        "Inputs": {n: [f, s.st_size, s.st_mtime_ns] for n, (f, s) in facts.items()},
        "Asked": {"atlas": atlas.name, **{k: str(asked[k]) for k in sorted(asked)}},
    }
    try:
        if path.is_file() and _says(sidecar, record):
            return task.scan, path, "kept"
        told: Any
        if is_pet:
            told = extract_suvr(atlas=atlas, **(task.inputs | asked))
            frame = told.to_frame()[["suvr", "n_voxels", "coverage"]]
        else:  # files are built side by side
            inputs = {"n_threads": 1} | task.inputs | asked
            told = build_connectome(atlas=atlas, **inputs)
            is_whole = np.array_equal(told.matrix, np.rint(told.matrix))
            frame = told.to_frame().astype(np.int64 if is_whole else float)
        sidecar.unlink(missing_ok=True)
        with replace_when_whole(path) as partial:
            sep = "," if path.suffix == ".csv" else "\t"
            frame.to_csv(partial, sep=sep, na_rep="n/a", index_label="region")
        numbers = {
            name: value
            for name, value in vars(told).items()
            if isinstance(value, int | float) and np.isfinite(value)
        }
        said = {"Parameters": told.parameters, "Notes": told.notes, **numbers, **record}
        with replace_when_whole(sidecar) as partial:
            partial.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
        return task.scan, path, "made"
    except WritingError:  # it would be the same for every other scan
        raise
    except (BrainlsapError, OSError, MemoryError) as error:
        return task.scan, path, " ".join(str(error).split())


def _says(sidecar: Path, record: dict[str, Any]) -> bool:
    try:
        said = json.loads(sidecar.read_text(encoding="utf-8"))
        return {key: said[key] for key in record} == record
    except (OSError, ValueError, KeyError, TypeError):
        return False
