"""Connectomes and SUVR tables of a whole study, from its images.

What is made stands in `derivatives/brainlsap` in the layout that
:func:`~brainlsap.data.load_cohort` reads. Each file has a `.json` beside it, written
last, with the parameters and the sizes and times of the inputs: what is there with the
same ones is not made again. `dataset_description.json` marks the folder as built of
this study; no other folder is written to.
"""

import hashlib
import inspect
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data.find_files import ScanName, StudyFiles, pick, read_rows, visit_order
from brainlsap.data.id_columns import ChosenColumns
from brainlsap.data.participants import people_files
from brainlsap.data.tables import describe_dataset
from brainlsap.exceptions import (
    BrainlsapError,
    CohortError,
    ParameterError,
    WritingError,
    check_at_least,
)
from brainlsap.files import lock_folder, replace_when_whole
from brainlsap.findings import FAULT, Finding
from brainlsap.images.streamlines import FORMATS
from brainlsap.images.suvr import extract_suvr
from brainlsap.images.tractography import build_connectome

FOLDER = Path("derivatives") / "brainlsap"
NAME = "Connectomes and regional values"
"""Of the data set that is built."""
# What is looked for -> patterns of names, the first that fits anything counts.
PATTERNS: dict[str, Sequence[str]] = {
    "tractogram": tuple(f"*{suffix}" for suffix in FORMATS),
    "pet": ("*space-t1w*_pet.nii*", "*_pet.nii*", "*_pet.mgz"),
    "transform": ("*from-pet*_to-*_xfm.*",),
    "streamline_weights": (),
}
_DIFFUSION = re.compile(r"_dwi\.nii|/dwi/", re.IGNORECASE)
_TRACER = re.compile(r"_(trc-[A-Za-z0-9]+)")


class BuiltStudy(NamedTuple):
    """What was built of a study, where, and a fault of each scan that failed."""

    folder: Path
    made: tuple[Path, ...]
    kept: tuple[Path, ...]
    faults: tuple[Finding, ...]
    missing: tuple[str, ...] = ()  # what some scans lack, and how many


class Task(NamedTuple):
    """One file to build, of which scan, and of which images by their parameter."""

    scan: str
    path: Path
    inputs: dict[str, Path]


class TaskList(NamedTuple):
    """What can be built of a study, and what cannot."""

    tasks: list[Task]
    faults: dict[str, list[str]]  # by name of the scan
    missing: tuple[str, ...]


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
    id_column: str | Sequence[str] | None = None,
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
        `transform` (registration of PET to parcellation) and `streamline_weights`. The
        parcellation may also be the path of one image for everybody.
    connectome, suvr : mapping, optional
        Arguments of :func:`.build_connectome` and of :func:`.extract_suvr`; among both
        `same_space`, without which PET must say that it was resampled to the
        parcellation's space (`space-T1w`), or have a transform, and a tractogram may
        not say another space.
    id_column : str or sequence of str, optional
        Head of the column that names people, as in :func:`brainlsap.load_cohort`.
    n_jobs : int
        Scans at once, by joblib.
    verbose : bool
        Whether to show a bar on standard error.

    Returns
    -------
    BuiltStudy
        `folder`, files `made` and `kept`, a line of `faults` a scan that failed, and
        what is `missing` of how many scans: tractogram, PET, parcellation.

    Raises
    ------
    CohortError
        Where no image is found, or a folder does not exist.
    ParameterError
        Where an argument cannot be used, another process is building there, or `out` is
        a data set of another program or of another study.
    WritingError
        Where the disk is full, or the folder may not be written to; what is finished
        is kept.
    """
    from joblib import Parallel, delayed
    from tqdm.auto import tqdm

    folder, atlas = Path(folder), load_atlas(atlas)
    if n_jobs != -1:
        check_at_least("n_jobs", n_jobs, 1)
    if not folder.is_dir():
        raise CohortError("no such folder", path=folder)
    out = folder / FOLDER if out is None else Path(out)
    study_key = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    _check_owner(out, folder, study_key)
    tables = people_files(folder)
    listed = list[str]()
    if tables:
        rows = read_rows(tables[0], chosen=ChosenColumns.of(id_column))
        listed = [name.participant for name in rows.names]
    files = StudyFiles(folder, listed, derivatives, subjects_dir)
    tasks, faults, missing = find_tasks(files, out, atlas, dict(patterns or {}))
    asked = {"tractogram": connectome or {}, "pet": suvr or {}}
    calls = (delayed(build_file)(task, atlas, asked) for task in tasks)
    about = {"Name": "brainlsap", "Version": version("brainlsap")}
    about["StudyKey"] = study_key
    with lock_folder(out):
        try:
            describe_dataset(out, NAME, about)
            results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(calls)
            hidden = None if verbose else True
            done = sorted(tqdm(results, "building", len(tasks), disable=hidden))
        finally:  # also of processes that were ended with this one
            for path in [*out.rglob(".partial-*")]:
                shutil.rmtree(path, ignore_errors=True)
    made = tuple(path for _, path, said in done if said == "made")
    kept = tuple(path for _, path, said in done if said == "kept")
    messages = {path: said for _, path, said in done if said not in ("made", "kept")}
    messages = _unify_messages(messages, {task.path: task.inputs for task in tasks})
    for scan, path, _ in done:
        if path in messages:
            faults.setdefault(scan, []).append(messages[path])
    findings = tuple(
        Finding("; ".join(texts), FAULT, scan=scan)
        for scan, texts in sorted(faults.items())
    )
    return BuiltStudy(out, made, kept, findings, missing)


def _unify_messages(
    messages: Mapping[Path, str], inputs: Mapping[Path, Mapping[str, Path]]
) -> dict[Path, str]:
    """Say "its pet" in place of a file where several scans have the same fault."""
    general = {}
    for path, message in messages.items():
        for kind, file in inputs[path].items():
            message = message.replace(str(file), f"its {kind}")  # noqa: PLW2901
            message = message.replace(file.name, f"its {kind}")  # noqa: PLW2901
        general[path] = message
    counts = Counter(general.values())
    return {
        path: general[path] if counts[general[path]] > 1 else message
        for path, message in messages.items()
    }


def _check_owner(out: Path, folder: Path, study_key: str) -> None:
    """Raise where `out` holds something that was not built of this study."""
    if out.is_file():
        raise ParameterError(f"{out} is a file; name a folder by out=.")
    entries = [path for path in out.glob("*") if not path.name.startswith(".partial-")]
    if not entries:
        return
    about: Mapping[str, Any] = {}
    description: Mapping[str, Any] = {}
    with suppress(OSError, ValueError, LookupError, TypeError):
        path = out / "dataset_description.json"
        description = json.loads(path.read_text(encoding="utf-8"))
        about = description["GeneratedBy"][0]
    if about.get("Name") != "brainlsap" or description.get("Name") != NAME:
        raise ParameterError(
            f"{out} is not empty, and no earlier build wrote it. Name another folder "
            "by out=."
        )
    # what lies in the study moves with it
    is_inside = folder.resolve() in out.resolve().parents
    if not is_inside and about.get("StudyKey", study_key) != study_key:
        raise ParameterError(
            f"{out} was built of another study, or the study has moved. Name another "
            "folder by out=, or delete it."
        )


def find_tasks(
    files: StudyFiles, out: Path, atlas: Atlas, patterns: Mapping[str, str]
) -> TaskList:
    """Return what can be built, what keeps scans from being built, and what they lack.

    A person's files outside of visits, such as one anatomy, serve all visits. What
    lies in `out` was built before.
    """
    segmentation = atlas.settings.get("segmentation", "none")
    segmented = {
        (person, visit): folder / "mri" / segmentation
        for person, visits in files.subjects.items()
        for visit, subjects in visits.items()
        for name, folder in subjects
        # the longitudinal stream has spaces of its own
        if not name.base and (folder / "mri" / segmentation).is_file()
    }
    word = atlas.settings.get("file_words", [atlas.name])[0]
    tasks: list[Task] = []
    faults: dict[str, list[str]] = {}
    counts = Counter[str]()
    for person in sorted({person for person, _ in files.files}):
        visits = {visit for one, visit in (*files.files, *segmented) if one == person}
        for visit in sorted(visits - {""}, key=visit_order) or [""]:
            keys = ((person, visit), (person, ""))
            own = {path for key in keys for path in files.files.get(key, [])}
            images = sorted(path for path in own if out not in path.parents)
            brains = [segmented[key] for key in keys if key in segmented]
            parts = (part for path in images for part in path.parts)
            own_names = (part for part in parts if ScanName(part).key[0] == person)
            name, session = next(own_names, person), f"ses-{visit}" if visit else ""
            scan = f"{name}_{session}".rstrip("_")
            try:
                chosen, has_labels = _choose_images(images, brains, atlas, patterns)
            except CohortError as error:
                faults[scan] = [str(error)]
                continue
            counts["scan"] += 1
            counts["parcellation"] += has_labels
            counts["tractogram"] += "tractogram" in chosen
            counts["PET"] += any(what != "tractogram" for what in chosen)
            counts["diffusion image"] += any(map(_DIFFUSION.search, map(str, images)))
            if chosen and not has_labels:
                faults[scan] = [_describe_missing_parcellation(atlas)]
                continue
            for what, inputs in chosen.items():
                path = Path("dwi", f"{scan}_atlas-{word}_connectivity.csv")
                if what != "tractogram":
                    image = f"{scan}_{what}".rstrip("_")
                    path = Path("pet", f"{image}_atlas-{word}_desc-suvr_regions.tsv")
                tasks.append(Task(scan, out / name / session / path, inputs))
    missing = _describe_missing(counts, has_tasks=bool(tasks))
    if not tasks and not faults:
        raise CohortError(
            f"no tractogram ({', '.join(FORMATS)}) and no *_pet.nii.gz "
            "was found below sub-* of it, of its derivatives, or of derivatives=",
            missing,
            path=files.folder,
        )
    return TaskList(tasks, faults, missing)


def _describe_missing(counts: Mapping[str, int], *, has_tasks: bool) -> tuple[str, ...]:
    """Say once which images scans lack and how many; not what no scan is to have."""
    n_scans = counts["scan"]
    advice = {
        "tractogram": f"{', '.join(FORMATS)}; MRtrix's tckgen, for example, makes it "
        "of the diffusion image",
        "PET": "*_pet.nii.gz",
        "parcellation": "FreeSurfer's, or --parcellation",
    }
    lines = []
    for kind, text in advice.items():
        n_absent = n_scans - counts[kind]
        is_expected = counts[kind] > 0 or kind == "parcellation"
        if kind == "tractogram":
            is_expected = is_expected or counts["diffusion image"] > 0
        # where nothing can be built, everything that is absent is of interest
        if n_absent and (is_expected or not has_tasks):
            lines.append(f"no {kind}: {n_absent} of {n_scans} scans ({text})")
    return tuple(lines)


def _describe_missing_parcellation(atlas: Atlas) -> str:
    expected = atlas.settings.get("segmentation", "segmentation")
    return (
        f"no parcellation of {atlas.name}; expected FreeSurfer's "
        f"mri/{expected}, or parcellation=: a pattern of images of its folder, or "
        "the path of one for everybody"
    )


def _choose_images(
    files: list[Path], brains: list[Path], atlas: Atlas, patterns: Mapping[str, str]
) -> tuple[dict[str, dict[str, Path]], bool]:
    """Choose one file of each kind, for the tractogram and each tracer.

    Return them, and whether there is a parcellation.
    """
    own = atlas.settings.get("image_patterns", (f"*{atlas.name.lower()}*",))
    usual = PATTERNS | {"parcellation": own}

    def choose(what: str, among: Sequence[Path]) -> dict[str, Path]:
        flag = f"--{what.replace('_', '-')}"
        found = pick(among, usual[what], what, patterns.get(what, ""), atlas, flag)
        return {} if found is None else {what: found}

    images = [p for p in files if p.name.lower().endswith((".nii", ".nii.gz", ".mgz"))]
    files = [path for path in files if path.suffix != ".json"]
    chosen = {}
    if lines := choose("tractogram", files):
        chosen["tractogram"] = lines | choose("streamline_weights", files)
    by_tracer: dict[str, list[Path]] = {}
    for path in files:
        tracer = _TRACER.search(path.name)
        by_tracer.setdefault(tracer[1] if tracer else "", []).append(path)
    for name, of_tracer in by_tracer.items():
        if pet := choose("pet", of_tracer):
            # it has been applied where the PET's name says a space
            if "transform" in patterns or "space-" not in pet["pet"].name:
                pet |= choose("transform", sorted({*of_tracer, *by_tracer.get("", [])}))
            chosen[name] = pet
    shared = Path(patterns.get("parcellation", ""))  # of all, in a template's space
    is_shared = shared.is_file()
    if not chosen:  # nothing to build: whether there is one, not which
        with suppress(CohortError):
            return {}, is_shared or bool(brains or choose("parcellation", images))
        return {}, True
    labels = {"parcellation": shared} if is_shared else choose("parcellation", images)
    if brains and not labels:
        labels = {"parcellation": brains[0]}
    return {what: inputs | labels for what, inputs in chosen.items()}, bool(labels)


def build_file(
    task: Task, atlas: Atlas, asked: Mapping[str, Mapping[str, Any]]
) -> tuple[str, Path, str]:
    """Build one file if it is missing; return its scan, and "made", "kept" or why not.

    A fault is returned, not raised: others go on.
    """
    path, is_pet = task.path, "pet" in task.inputs
    sidecar = path.with_suffix(".json")
    build: Callable[..., Any] = extract_suvr if is_pet else build_connectome
    settings = asked["pet" if is_pet else "tractogram"]
    call = inspect.signature(build).bind(atlas=atlas, **task.inputs, **settings)
    call.apply_defaults()
    given = {k: v for k, v in call.arguments.items() if k not in task.inputs}
    stats = {name: (file.name, file.stat()) for name, file in task.inputs.items()}
    record = {  # what must be the same for a file not to be made again
        "Inputs": {n: [f, s.st_size, s.st_mtime_ns] for n, (f, s) in stats.items()},
        "Parameters": given | {"atlas": atlas.name},
    }
    record = json.loads(json.dumps(record, default=str))
    try:
        if path.is_file() and sidecar.is_file():
            said = json.loads(sidecar.read_text(encoding="utf-8"))
            if record.items() <= said.items():
                return task.scan, path, "kept"
        built = build(*call.args, **call.kwargs)
        if is_pet:
            frame = built.table.drop(columns="mean")
        else:  # counts as whole numbers
            frame = built.to_frame().convert_dtypes()
        sidecar.unlink(missing_ok=True)
        with replace_when_whole(path) as partial:
            sep = "\t" if is_pet else ","
            frame.to_csv(partial, sep=sep, na_rep="n/a", index_label="region")
        numbers = {
            name: value
            for name, value in vars(built).items()
            if isinstance(value, int | float) and np.isfinite(value)
        }
        said = {"Notes": built.notes, **numbers, **record}
        with replace_when_whole(sidecar) as partial:
            partial.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
        return task.scan, path, "made"
    except WritingError:  # it would be the same for every other scan
        raise
    except (BrainlsapError, OSError, MemoryError) as error:
        return task.scan, path, " ".join(str(error).split())
