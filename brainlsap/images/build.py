"""Build the connectomes and SUVR tables of a study from its images.

The files are written to `derivatives/brainlsap` in the layout that
:func:`~brainlsap.data.load_cohort` reads. A `.json` file next to each, written last,
records the parameters and the sizes and times of the inputs; files for which these have
not changed are not built again. `dataset_description.json` records the study from which
the folder was built; no other folder is written to.
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
from brainlsap.images.streamlines import FORMATS
from brainlsap.images.suvr import extract_suvr
from brainlsap.images.tractography import build_connectome

OUTPUT_FOLDER = Path("derivatives") / "brainlsap"
DATASET_NAME = "Connectomes and regional values"
"""Name of the data set in `dataset_description.json`."""
# Kind of input -> file-name patterns; the first pattern that matches a file counts.
IMAGE_PATTERNS: dict[str, Sequence[str]] = {
    "tractogram": tuple(f"*{suffix}" for suffix in FORMATS),
    "pet": ("*space-t1w*_pet.nii*", "*_pet.nii*", "*_pet.mgz"),
    "transform": ("*from-pet*_to-*_xfm.*",),
    "streamline_weights": (),
}
_DIFFUSION_PATTERN = re.compile(r"_dwi\.nii|/dwi/", re.IGNORECASE)
_TRACER_PATTERN = re.compile(r"_(trc-[A-Za-z0-9]+)")


class BuiltStudy(NamedTuple):
    """Files built from a study, and a line for each scan with an error."""

    folder: Path
    new_files: tuple[Path, ...]
    existing_files: tuple[Path, ...]
    faults: tuple[str, ...]
    missing: tuple[str, ...] = ()  # kinds of images that scans lack, with counts


class Task(NamedTuple):
    """One file to build: its scan, its path, and the input images by parameter."""

    scan: str
    path: Path
    inputs: dict[str, Path]


class TaskList(NamedTuple):
    """The files that can be built from a study, and reasons for the others."""

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
    """Build the connectomes and SUVR tables of a study that do not exist yet.

    Parameters
    ----------
    folder : str or Path
        Study folder with `sub-*` folders or `derivatives/*/sub-*`. For each scan, these
        hold a tractogram (`.tck`, `.trk`, `.trx`), one `*_pet.nii.gz` for each tracer
        (`trc-`), and a parcellation, which can also be in FreeSurfer's `mri`.
    atlas : str, Path or Atlas
        Argument of :func:`.load_atlas`.
    out : path, optional
        By default `derivatives/brainlsap` in the folder.
    derivatives : sequence of path
        Further folders to search.
    subjects_dir : path, optional
        Folder of FreeSurfer subjects, if it is not in the study folder.
    patterns : mapping of str to str, optional
        File-name patterns of `tractogram`, `parcellation`, `pet`, `transform`
        (registration of PET to parcellation) and `streamline_weights`. The parcellation
        may also be the path of one image for all participants.
    connectome, suvr : mapping, optional
        Arguments of :func:`.build_connectome` and of :func:`.extract_suvr`. Both accept
        `same_space`. Without it, the name of a PET image must say that it was resampled
        to the space of the parcellation (`space-T1w`), or the image needs a transform;
        the name of a tractogram must not say another space.
    id_column : str or sequence of str, optional
        Column with the participant ID, as in :func:`brainlsap.load_cohort`.
    n_jobs : int
        Number of scans processed in parallel.
    verbose : bool
        Whether to show a progress bar on standard error.

    Returns
    -------
    BuiltStudy
        The output folder, its new and existing files, a line for each scan with an
        error, and how many scans lack a tractogram, PET or parcellation.

    Raises
    ------
    CohortError
        If no image is found, or a folder does not exist.
    ParameterError
        If an argument cannot be used, another process writes to `out`, or `out` holds
        a data set of another program or of another study.
    WritingError
        If the disk is full, or the folder may not be written to. Finished files are
        kept.
    """
    from joblib import Parallel, delayed
    from tqdm.auto import tqdm

    folder = Path(folder)
    atlas = load_atlas(atlas)
    if n_jobs != -1:
        check_at_least("n_jobs", n_jobs, 1)
    if not folder.is_dir():
        raise CohortError(f"{folder}: no such folder")
    out = folder / OUTPUT_FOLDER if out is None else Path(out)
    study_key = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    _check_owner(out, folder, study_key)
    tables = people_files(folder)
    participant_ids = list[str]()
    if tables:
        rows = read_rows(tables[0], chosen=ChosenColumns.of(id_column))
        participant_ids = [name.participant for name in rows.names]
    files = StudyFiles(folder, participant_ids, derivatives, subjects_dir)
    tasks, faults, missing = find_tasks(files, out, atlas, dict(patterns or {}))
    settings_by_input = {"tractogram": connectome or {}, "pet": suvr or {}}
    calls = (delayed(build_file)(task, atlas, settings_by_input) for task in tasks)
    program = {
        "Name": "brainlsap",
        "Version": version("brainlsap"),
        "StudyKey": study_key,
    }
    with lock_folder(out):
        try:
            describe_dataset(out, DATASET_NAME, program)
            results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(calls)
            is_hidden = None if verbose else True
            outcomes = sorted(tqdm(results, "building", len(tasks), disable=is_hidden))
        finally:
            # Worker processes that were killed may have left incomplete files.
            for path in [*out.rglob(".partial-*")]:
                shutil.rmtree(path, ignore_errors=True)
    new_files = tuple(path for _, path, outcome in outcomes if outcome == "made")
    existing_files = tuple(path for _, path, outcome in outcomes if outcome == "kept")
    messages = {
        path: outcome
        for _, path, outcome in outcomes
        if outcome not in ("made", "kept")
    }
    messages = _unify_messages(messages, {task.path: task.inputs for task in tasks})
    for scan, path, _ in outcomes:
        if path in messages:
            faults.setdefault(scan, []).append(messages[path])
    lines = (
        f"{scan}: {'; '.join(outcome)}" for scan, outcome in sorted(faults.items())
    )
    return BuiltStudy(out, new_files, existing_files, tuple(lines), missing)


def _unify_messages(
    messages: Mapping[Path, str], inputs: Mapping[Path, Mapping[str, Path]]
) -> dict[Path, str]:
    """Replace file names by their kind ("its pet") if several scans share a message."""
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
    """Raise ParameterError if `out` holds files not built from this study."""
    if out.is_file():
        raise ParameterError(f"{out} is a file; give the path of a folder by out=.")
    entries = [path for path in out.glob("*") if not path.name.startswith(".partial-")]
    if not entries:
        return
    program: Mapping[str, Any] = {}
    description: Mapping[str, Any] = {}
    with suppress(OSError, ValueError, LookupError, TypeError):
        path = out / "dataset_description.json"
        description = json.loads(path.read_text(encoding="utf-8"))
        program = description["GeneratedBy"][0]
    if program.get("Name") != "brainlsap" or description.get("Name") != DATASET_NAME:
        raise ParameterError(
            f"{out} is not empty and was not written by an earlier build. Choose "
            "another folder by out=."
        )
    # A folder inside the study moves with it, so the key of its path may differ.
    is_inside = folder.resolve() in out.resolve().parents
    if not is_inside and program.get("StudyKey", study_key) != study_key:
        raise ParameterError(
            f"{out} was built from another study, or the study has moved. Choose "
            "another folder by out=, or delete this one."
        )


def find_tasks(
    files: StudyFiles, out: Path, atlas: Atlas, patterns: Mapping[str, str]
) -> TaskList:
    """Return the files to build, errors of scans, and the images that scans lack.

    Files of a person that belong to no visit, for example one anatomical image, are
    used for all visits. Files in `out` were built before and are not inputs.
    """
    segmentation = atlas.settings.get("segmentation", "none")
    segmentation_paths = {
        (person, visit): folder / "mri" / segmentation
        for person, visits in files.subjects.items()
        for visit, subjects in visits.items()
        for person_name, folder in subjects
        # The longitudinal stream of FreeSurfer uses another space.
        if not person_name.base and (folder / "mri" / segmentation).is_file()
    }
    atlas_word = atlas.settings.get("file_words", [atlas.name])[0]
    tasks: list[Task] = []
    faults: dict[str, list[str]] = {}
    counts = Counter[str]()
    for person in sorted({person for person, _ in files.files}):
        visits = {
            visit
            for image_person, visit in (*files.files, *segmentation_paths)
            if image_person == person
        }
        for visit in sorted(visits - {""}, key=visit_order) or [""]:
            keys = ((person, visit), (person, ""))
            scan_paths = {path for key in keys for path in files.files.get(key, [])}
            images = sorted(path for path in scan_paths if out not in path.parents)
            segmentations = [
                segmentation_paths[key] for key in keys if key in segmentation_paths
            ]
            path_parts = (path_part for path in images for path_part in path.parts)
            folder_names = (
                path_part
                for path_part in path_parts
                if ScanName(path_part).key[0] == person
            )
            person_name, session = (
                next(folder_names, person),
                f"ses-{visit}" if visit else "",
            )
            scan = f"{person_name}_{session}".rstrip("_")
            try:
                inputs_by_image, has_labels = _choose_images(
                    images, segmentations, atlas, patterns
                )
            except CohortError as error:
                faults[scan] = [str(error)]
                continue
            counts["scan"] += 1
            counts["parcellation"] += has_labels
            counts["tractogram"] += "tractogram" in inputs_by_image
            counts["PET"] += any(
                image_name != "tractogram" for image_name in inputs_by_image
            )
            counts["diffusion image"] += any(
                map(_DIFFUSION_PATTERN.search, map(str, images))
            )
            if inputs_by_image and not has_labels:
                faults[scan] = [_describe_missing_parcellation(atlas)]
                continue
            for image_name, inputs in inputs_by_image.items():
                path = Path("dwi", f"{scan}_atlas-{atlas_word}_connectivity.csv")
                if image_name != "tractogram":
                    image = f"{scan}_{image_name}".rstrip("_")
                    path = Path(
                        "pet", f"{image}_atlas-{atlas_word}_desc-suvr_regions.tsv"
                    )
                tasks.append(Task(scan, out / person_name / session / path, inputs))
    missing = _describe_missing(counts, has_tasks=bool(tasks))
    if not tasks and not faults:
        raise CohortError(
            f"{files.folder}: no tractogram ({', '.join(FORMATS)}) and no *_pet.nii.gz "
            "was found below sub-* of it, of its derivatives, or of derivatives=",
            missing,
        )
    return TaskList(tasks, faults, missing)


def _describe_missing(counts: Mapping[str, int], *, has_tasks: bool) -> tuple[str, ...]:
    """Return a line for each kind of image that some scans lack.

    A kind that no scan has is listed only if it is expected.
    """
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
        # If nothing can be built, list every kind that is missing.
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
    files: list[Path],
    segmentations: list[Path],
    atlas: Atlas,
    patterns: Mapping[str, str],
) -> tuple[dict[str, dict[str, Path]], bool]:
    """Return the inputs of the connectome and of each tracer, one file of each kind.

    The second value says whether there is a parcellation.
    """
    parcellation_patterns = atlas.settings.get(
        "image_patterns", (f"*{atlas.name.lower()}*",)
    )
    default_patterns = IMAGE_PATTERNS | {"parcellation": parcellation_patterns}

    def choose(image_name: str, paths: Sequence[Path]) -> dict[str, Path]:
        flag = f"--{image_name.replace('_', '-')}"
        path = pick(
            paths,
            default_patterns[image_name],
            image_name,
            patterns.get(image_name, ""),
            atlas,
            flag,
        )
        return {} if path is None else {image_name: path}

    images = [p for p in files if p.name.lower().endswith((".nii", ".nii.gz", ".mgz"))]
    files = [path for path in files if path.suffix != ".json"]
    inputs_by_image = {}
    if tractogram := choose("tractogram", files):
        inputs_by_image["tractogram"] = tractogram | choose("streamline_weights", files)
    paths_by_tracer: dict[str, list[Path]] = {}
    for path in files:
        tracer = _TRACER_PATTERN.search(path.name)
        paths_by_tracer.setdefault(tracer[1] if tracer else "", []).append(path)
    for tracer_entity, tracer_paths in paths_by_tracer.items():
        if pet := choose("pet", tracer_paths):
            # A PET image with a space in its name has been transformed already.
            if "transform" in patterns or "space-" not in pet["pet"].name:
                pet |= choose(
                    "transform", sorted({*tracer_paths, *paths_by_tracer.get("", [])})
                )
            inputs_by_image[tracer_entity] = pet
    shared_image = Path(
        patterns.get("parcellation", "")
    )  # one image for all participants
    is_shared = shared_image.is_file()
    if not inputs_by_image:  # Only find out whether there is a parcellation.
        with suppress(CohortError):
            return {}, is_shared or bool(
                segmentations or choose("parcellation", images)
            )
        return {}, True
    parcellation = (
        {"parcellation": shared_image} if is_shared else choose("parcellation", images)
    )
    if segmentations and not parcellation:
        parcellation = {"parcellation": segmentations[0]}
    return {
        image_name: inputs | parcellation
        for image_name, inputs in inputs_by_image.items()
    }, bool(parcellation)


def build_file(
    task: Task, atlas: Atlas, settings_by_input: Mapping[str, Mapping[str, Any]]
) -> tuple[str, Path, str]:
    """Build one file unless it exists; return scan, path and outcome.

    The outcome is "made", "kept" or an error message. Errors are returned, so that
    other files are still built.
    """
    path, is_pet = task.path, "pet" in task.inputs
    sidecar = path.with_suffix(".json")
    build: Callable[..., Any] = extract_suvr if is_pet else build_connectome
    settings = settings_by_input["pet" if is_pet else "tractogram"]
    call = inspect.signature(build).bind(atlas=atlas, **task.inputs, **settings)
    call.apply_defaults()
    parameters = {k: v for k, v in call.arguments.items() if k not in task.inputs}
    stats = {name: (file.name, file.stat()) for name, file in task.inputs.items()}
    # An existing file is kept if this record has not changed.
    record = {
        "Inputs": {n: [f, s.st_size, s.st_mtime_ns] for n, (f, s) in stats.items()},
        "Parameters": parameters | {"atlas": atlas.name},
    }
    record = json.loads(json.dumps(record, default=str))
    try:
        if path.is_file() and sidecar.is_file():
            stored_record = json.loads(sidecar.read_text(encoding="utf-8"))
            if record.items() <= stored_record.items():
                return task.scan, path, "kept"
        built = build(*call.args, **call.kwargs)
        if is_pet:
            frame = built.table.drop(columns="mean")
        else:  # Write counts as whole numbers.
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
        stored_record = {"Notes": built.notes, **numbers, **record}
        with replace_when_whole(sidecar) as partial:
            partial.write_text(
                json.dumps(stored_record, indent=2) + "\n", encoding="utf-8"
            )
        return task.scan, path, "made"
    except WritingError:  # Every other scan would fail, too.
        raise
    except (BrainlsapError, OSError, MemoryError) as error:
        return task.scan, path, " ".join(str(error).split())
