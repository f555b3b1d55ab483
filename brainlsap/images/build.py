"""Connectomes and SUVR tables of a whole study, from its images.

Files are written to `derivatives/brainlsap` in the layout that
:func:`~brainlsap.data.load_cohort` reads. Each has a `.json` sidecar, written last,
with the parameters and the sizes and times of the input files. A file is up to date,
and not built again, if its sidecar has the same ones. `dataset_description.json` marks
the folder as built from this study; no other folder is written to.
"""

import hashlib
import inspect
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data.find_files import (
    ScanName,
    StudyFiles,
    choose_file,
    read_rows,
    visit_order,
)
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
from brainlsap.images.streamlines import TRACTOGRAM_FORMATS
from brainlsap.images.suvr import extract_suvr
from brainlsap.images.tractography import build_connectome

OUTPUT_FOLDER = Path("derivatives") / "brainlsap"
# Name of the data set in dataset_description.json.
DATASET_NAME = "Connectomes and regional values"
# Kind of image -> patterns of file names; the first that matches any file is used.
IMAGE_PATTERNS: dict[str, Sequence[str]] = {
    "tractogram": tuple(f"*{suffix}" for suffix in TRACTOGRAM_FORMATS),
    "pet": ("*space-t1w*_pet.nii*", "*_pet.nii*", "*_pet.mgz"),
    "transform": ("*from-pet*_to-*_xfm.*",),
    "streamline_weights": (),
}
_DIFFUSION = re.compile(r"_dwi\.nii|/dwi/", re.IGNORECASE)
_TRACER = re.compile(r"_(trc-[A-Za-z0-9]+)")


class BuiltStudy(NamedTuple):
    """The files of a built study, and the scans that could not be built.

    Attributes
    ----------
    folder
        The output folder.
    new_files
        Files that were built.
    existing_files
        Files that were up to date.
    faults
        One per scan that failed.
    missing
        One line per kind of image that scans lack, with the number of scans.
    """

    folder: Path
    new_files: tuple[Path, ...]
    existing_files: tuple[Path, ...]
    faults: tuple[Finding, ...]
    missing: tuple[str, ...] = ()


class ScanImages(NamedTuple):
    """The images of one scan that a study holds."""

    participant: str
    session: str  # "ses-M00", or "" for a study without sessions
    images: list[Path]
    segmentations: list[Path]  # by FreeSurfer

    @property
    def scan(self) -> str:
        """Return the name of the scan."""
        return f"{self.participant}_{self.session}".rstrip("_")


class BuildTask(NamedTuple):
    """One file to build, and its input images by parameter."""

    scan: str
    path: Path
    inputs: dict[str, Path]


class TaskList(NamedTuple):
    """What can be built of a study, and what cannot."""

    tasks: list[BuildTask]
    faults: dict[str, list[str]]  # by name of the scan
    missing: tuple[str, ...]


class BuildResult(NamedTuple):
    """What became of one file: new, up to date, or failed with a fault."""

    scan: str
    path: Path
    is_new: bool = False
    fault: str = ""


def build_study(
    folder: str | Path,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    out: str | Path | None = None,
    derivatives: Sequence[str | Path] = (),
    subjects_dir: str | Path | None = None,
    patterns: Mapping[str, str] | None = None,
    connectome: Mapping[str, object] | None = None,
    suvr: Mapping[str, object] | None = None,
    id_column: str | Sequence[str] | None = None,
    n_jobs: int = 1,
    verbose: bool = False,
) -> BuiltStudy:
    """Build the connectomes and SUVR tables that a study lacks.

    Parameters
    ----------
    folder : str or Path
        Study with `sub-*` folders or `derivatives/*/sub-*`, which are searched for
        tractograms (`.tck`, `.trk`, `.trx`) and `*_pet.nii.gz` of every scan, one for
        each tracer (`trc-`). Parcellations are also searched in FreeSurfer's `mri`.
    atlas : str, Path or Atlas
        Anything that :func:`.load_atlas` accepts.
    out : path, optional
        Output folder; by default `derivatives/brainlsap` in `folder`.
    derivatives : sequence of path
        Further data sets to search.
    subjects_dir : path, optional
        FreeSurfer's subjects, if they are not in `folder`.
    patterns : mapping of str to str, optional
        Patterns of file names, by `tractogram`, `parcellation`, `pet`, `transform`
        (registration of PET to parcellation) and `streamline_weights`. The parcellation
        may also be the path of one image for everybody.
    connectome, suvr : mapping, optional
        Arguments of :func:`.build_connectome` and of :func:`.extract_suvr`. Without
        `same_space` in them, the name of a PET image must state the parcellation's
        space (`space-T1w`) or the image have a transform, and the name of a tractogram
        must not state another space.
    id_column : str or sequence of str, optional
        Header of the column of participants, as in :func:`brainlsap.load_cohort`.
    n_jobs : int
        Number of processes (joblib).
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
        If an argument is invalid, another process is building there, or `out` is a data
        set of another program or of another study.
    WritingError
        If the disk is full, or the folder is not writable; finished files remain.
    """
    from joblib import Parallel, delayed
    from tqdm.auto import tqdm

    folder = Path(folder)
    atlas = load_atlas(atlas)
    if n_jobs != -1:
        check_at_least("n_jobs", n_jobs, 1)
    if not folder.is_dir():
        raise CohortError("no such folder", path=folder)
    out = folder / OUTPUT_FOLDER if out is None else Path(out)
    study_key = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    _check_owner(out, folder, study_key)
    tables = people_files(folder)
    participants = list[str]()
    if tables:
        rows = read_rows(tables[0], chosen=ChosenColumns.of(id_column))
        participants = [name.participant for name in rows.names]
    files = StudyFiles(folder, participants, derivatives, subjects_dir)
    tasks, faults, missing = find_tasks(files, out, atlas, dict(patterns or {}))
    arguments = {"tractogram": connectome or {}, "pet": suvr or {}}
    calls = (delayed(build_file)(task, atlas, arguments) for task in tasks)
    generator = {"Name": "brainlsap", "Version": version("brainlsap")}
    generator["StudyKey"] = study_key
    with lock_folder(out):
        try:
            describe_dataset(out, DATASET_NAME, generator)
            parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
            progress = tqdm(
                parallel(calls), "building", len(tasks), disable=not verbose or None
            )
            results = sorted(progress)
        finally:  # also remove files of processes that were ended with this one
            for path in [*out.rglob(".partial-*")]:
                shutil.rmtree(path, ignore_errors=True)
    messages = {result.path: result.fault for result in results if result.fault}
    messages = _unify_messages(messages, {task.path: task.inputs for task in tasks})
    for result in results:
        if result.fault:
            faults.setdefault(result.scan, []).append(messages[result.path])
    finished = [result for result in results if not result.fault]
    return BuiltStudy(
        folder=out,
        new_files=tuple(result.path for result in finished if result.is_new),
        existing_files=tuple(result.path for result in finished if not result.is_new),
        faults=tuple(
            Finding("; ".join(texts), FAULT, scan=scan)
            for scan, texts in sorted(faults.items())
        ),
        missing=missing,
    )


def _unify_messages(
    messages: Mapping[Path, str], inputs: Mapping[Path, Mapping[str, Path]]
) -> dict[Path, str]:
    """Replace file names by "its pet" if several scans have the same fault."""
    general = {
        path: _generalize_message(message, inputs[path])
        for path, message in messages.items()
    }
    counts = Counter(general.values())
    return {
        path: general[path] if counts[general[path]] > 1 else message
        for path, message in messages.items()
    }


def _generalize_message(message: str, inputs: Mapping[str, Path]) -> str:
    """Return a message with the kind of each input in place of its path."""
    for kind, file in inputs.items():
        without_path = message.replace(str(file), f"its {kind}")
        message = without_path.replace(file.name, f"its {kind}")
    return message


def _check_owner(out: Path, folder: Path, study_key: str) -> None:
    """Raise if `out` has files that were not built from this study."""
    if out.is_file():
        raise ParameterError(f"{out} is a file; name a folder by out=.")
    entries = [path for path in out.glob("*") if not path.name.startswith(".partial-")]
    if not entries:
        return
    generator: Mapping[str, Any] = {}
    description: Mapping[str, Any] = {}
    with suppress(OSError, ValueError, LookupError, TypeError):
        path = out / "dataset_description.json"
        description = json.loads(path.read_text(encoding="utf-8"))
        generator = description["GeneratedBy"][0]
    is_ours = description.get("Name") == DATASET_NAME
    if generator.get("Name") != "brainlsap" or not is_ours:
        raise ParameterError(
            f"{out} is not empty, and no earlier build wrote it. Name another folder "
            "by out=."
        )
    # A folder in the study moves with the study.
    is_inside = folder.resolve() in out.resolve().parents
    if not is_inside and generator.get("StudyKey", study_key) != study_key:
        raise ParameterError(
            f"{out} was built of another study, or the study has moved. Name another "
            "folder by out=, or delete it."
        )


def find_tasks(
    files: StudyFiles, out: Path, atlas: Atlas, patterns: Mapping[str, str]
) -> TaskList:
    """Return what can be built, what prevents scans from being built, and gaps.

    Files in `out` are results of earlier builds and not inputs.
    """
    tasks: list[BuildTask] = []
    faults: dict[str, list[str]] = {}
    counts = Counter[str]()
    for scan_images in _list_scan_images(files, out, atlas):
        scan = scan_images.scan
        try:
            inputs_of_kind, has_labels = _choose_images(scan_images, atlas, patterns)
        except CohortError as error:
            faults[scan] = [str(error)]
            continue
        image_names = map(str, scan_images.images)
        counts["scan"] += 1
        counts["parcellation"] += has_labels
        counts["tractogram"] += "tractogram" in inputs_of_kind
        counts["PET"] += any(kind != "tractogram" for kind in inputs_of_kind)
        counts["diffusion image"] += any(map(_DIFFUSION.search, image_names))
        if inputs_of_kind and not has_labels:
            faults[scan] = [_describe_missing_parcellation(atlas)]
            continue
        for kind, inputs in inputs_of_kind.items():
            path = out / _output_path(scan_images, kind, atlas)
            tasks.append(BuildTask(scan, path, inputs))
    missing = _describe_missing(counts, has_tasks=bool(tasks))
    if not tasks and not faults:
        raise CohortError(
            f"no tractogram ({', '.join(TRACTOGRAM_FORMATS)}) and no *_pet.nii.gz "
            "was found below sub-* of it, of its derivatives, or of derivatives=",
            missing,
            path=files.folder,
        )
    return TaskList(tasks, faults, missing)


def _output_path(scan_images: ScanImages, kind: str, atlas: Atlas) -> Path:
    """Return the path of a connectome ("tractogram") or of a tracer's SUVR table."""
    folder = Path(scan_images.participant, scan_images.session)
    atlas_word = atlas.settings.get("file_words", [atlas.name])[0]
    if kind == "tractogram":
        name = f"{scan_images.scan}_atlas-{atlas_word}_connectivity.csv"
        return folder / "dwi" / name
    image_name = f"{scan_images.scan}_{kind}".rstrip("_")
    return folder / "pet" / f"{image_name}_atlas-{atlas_word}_desc-suvr_regions.tsv"


def _list_scan_images(
    files: StudyFiles, out: Path, atlas: Atlas
) -> Iterator[ScanImages]:
    """Yield the images of every scan, sorted by participant and visit.

    A participant's files outside of visits, for example one anatomy, serve all visits.
    """
    segmentations = _find_segmentations(files, atlas)
    visits_of_person: dict[str, set[str]] = {}
    for person, visit in (*files.files, *segmentations):
        visits_of_person.setdefault(person, set()).add(visit)
    for person in sorted({person for person, _ in files.files}):
        visits = visits_of_person[person] - {""}
        for visit in sorted(visits, key=visit_order) or [""]:
            keys = ((person, visit), (person, ""))
            paths = {path for key in keys for path in files.files.get(key, [])}
            images = sorted(path for path in paths if out not in path.parents)
            yield ScanImages(
                participant=_participant_name(person, images),
                session=f"ses-{visit}" if visit else "",
                images=images,
                segmentations=[
                    segmentations[key] for key in keys if key in segmentations
                ],
            )


def _participant_name(person: str, images: Sequence[Path]) -> str:
    """Return the name of a participant's folder, for example "sub-01" for "01"."""
    for path in images:
        for name in path.parts:
            if ScanName(name).key[0] == person:
                return name
    return person


def _find_segmentations(files: StudyFiles, atlas: Atlas) -> dict[tuple[str, str], Path]:
    """Return FreeSurfer's segmentations for the atlas, by person and visit."""
    file_name = atlas.settings.get("segmentation", "none")
    segmentations = {}
    for person, subjects_of_visit in files.subjects.items():
        for visit, subjects in subjects_of_visit.items():
            for name, folder in subjects:
                path = folder / "mri" / file_name
                # Images of the longitudinal stream are in a space of their own.
                if not name.base and path.is_file():
                    segmentations[person, visit] = path
    return segmentations


def _describe_missing(counts: Mapping[str, int], *, has_tasks: bool) -> tuple[str, ...]:
    """Return one line per kind of image that scans lack, but no kind that none has."""
    n_scans = counts["scan"]
    advice = {
        "tractogram": f"{', '.join(TRACTOGRAM_FORMATS)}; MRtrix's tckgen, for example, "
        "makes it of the diffusion image",
        "PET": "*_pet.nii.gz",
        "parcellation": "FreeSurfer's, or --parcellation",
    }
    lines = []
    for kind, text in advice.items():
        n_absent = n_scans - counts[kind]
        is_expected = counts[kind] > 0 or kind == "parcellation"
        if kind == "tractogram":
            is_expected = is_expected or counts["diffusion image"] > 0
        # If nothing can be built, report everything that is absent.
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
    scan_images: ScanImages, atlas: Atlas, patterns: Mapping[str, str]
) -> tuple[dict[str, dict[str, Path]], bool]:
    """Choose one file of each kind for the tractogram and for each tracer.

    Return the input files by "tractogram" or tracer, and whether there is a
    parcellation.
    """
    files = [path for path in scan_images.images if path.suffix != ".json"]
    inputs_of_kind = {}
    tractogram = _choose_file("tractogram", files, atlas, patterns)
    if tractogram:
        weights = _choose_file("streamline_weights", files, atlas, patterns)
        inputs_of_kind["tractogram"] = tractogram | weights
    inputs_of_kind |= _choose_pet(files, atlas, patterns)
    common_labels = Path(patterns.get("parcellation", ""))  # one image for everybody
    has_common_labels = common_labels.is_file()
    has_segmentation = bool(scan_images.segmentations)
    if not inputs_of_kind:  # nothing to build: only tell whether there is one
        with suppress(CohortError):
            has_labels = has_common_labels or has_segmentation
            return {}, has_labels or bool(
                _choose_labels(scan_images.images, atlas, patterns)
            )
        return {}, True
    if has_common_labels:
        labels = {"parcellation": common_labels}
    else:
        labels = _choose_labels(scan_images.images, atlas, patterns)
    if has_segmentation and not labels:
        labels = {"parcellation": scan_images.segmentations[0]}
    all_inputs = {kind: inputs | labels for kind, inputs in inputs_of_kind.items()}
    return all_inputs, bool(labels)


def _choose_labels(
    files: Sequence[Path], atlas: Atlas, patterns: Mapping[str, str]
) -> dict[str, Path]:
    """Return the parcellation among files, by the name of its parameter."""
    suffixes = (".nii", ".nii.gz", ".mgz")
    images = [path for path in files if path.name.lower().endswith(suffixes)]
    return _choose_file("parcellation", images, atlas, patterns)


def _choose_pet(
    files: Sequence[Path], atlas: Atlas, patterns: Mapping[str, str]
) -> dict[str, dict[str, Path]]:
    """Return the PET image of each tracer, and its transform if it needs one."""
    files_of_tracer: dict[str, list[Path]] = {}
    for path in files:
        match = _TRACER.search(path.name)
        files_of_tracer.setdefault(match[1] if match else "", []).append(path)
    inputs_of_tracer = {}
    for tracer, tracer_files in files_of_tracer.items():
        inputs = _choose_file("pet", tracer_files, atlas, patterns)
        if not inputs:
            continue
        # If the name of the image states a space, the transform has been applied.
        if "transform" in patterns or "space-" not in inputs["pet"].name:
            candidates = sorted({*tracer_files, *files_of_tracer.get("", [])})
            inputs |= _choose_file("transform", candidates, atlas, patterns)
        inputs_of_tracer[tracer] = inputs
    return inputs_of_tracer


def _choose_file(
    kind: str, files: Sequence[Path], atlas: Atlas, patterns: Mapping[str, str]
) -> dict[str, Path]:
    """Return the one file of a kind by the name of its parameter; empty if none."""
    default_patterns = IMAGE_PATTERNS.get(kind)
    if default_patterns is None:
        name_pattern = f"*{atlas.name.lower()}*"
        default_patterns = atlas.settings.get("image_patterns", (name_pattern,))
    flag = f"--{kind.replace('_', '-')}"
    path = choose_file(
        files, default_patterns, kind, patterns.get(kind, ""), atlas, flag
    )
    return {} if path is None else {kind: path}


def build_file(
    task: BuildTask, atlas: Atlas, arguments: Mapping[str, Mapping[str, object]]
) -> BuildResult:
    """Build one file unless it is up to date.

    `arguments` are those of :func:`.build_connectome` ("tractogram") and of
    :func:`.extract_suvr` ("pet"). A fault is returned and not raised, so that other
    scans are built.
    """
    is_pet = "pet" in task.inputs
    build: Callable[..., Any] = extract_suvr if is_pet else build_connectome
    call = inspect.signature(build).bind(
        atlas=atlas, **task.inputs, **arguments["pet" if is_pet else "tractogram"]
    )
    call.apply_defaults()
    record = _record_call(task, atlas, call.arguments)
    sidecar = task.path.with_suffix(".json")
    try:
        if task.path.is_file() and sidecar.is_file():
            earlier_record = json.loads(sidecar.read_text(encoding="utf-8"))
            if record.items() <= earlier_record.items():
                return BuildResult(task.scan, task.path)
        built = build(*call.args, **call.kwargs)
        if is_pet:
            table = built.table.drop(columns="mean")
        else:  # counts as whole numbers
            table = built.to_frame().convert_dtypes()
        sidecar.unlink(missing_ok=True)
        with replace_when_whole(task.path) as partial:
            separator = "\t" if is_pet else ","
            table.to_csv(partial, sep=separator, na_rep="n/a", index_label="region")
        numbers = {
            name: value
            for name, value in vars(built).items()
            if isinstance(value, int | float) and np.isfinite(value)
        }
        content = json.dumps({"Notes": built.notes, **numbers, **record}, indent=2)
        with replace_when_whole(sidecar) as partial:
            partial.write_text(content + "\n", encoding="utf-8")
        return BuildResult(task.scan, task.path, is_new=True)
    except WritingError:  # every other scan would fail in the same way
        raise
    except (BrainlsapError, OSError, MemoryError) as error:
        message = " ".join(str(error).split()) or type(error).__name__
        return BuildResult(task.scan, task.path, fault=message)


def _record_call(
    task: BuildTask, atlas: Atlas, arguments: Mapping[str, object]
) -> dict[str, object]:
    """Return inputs and parameters as JSON values; if they change, rebuild the file."""
    inputs = {}
    for name, path in task.inputs.items():
        stat = path.stat()
        inputs[name] = [path.name, stat.st_size, stat.st_mtime_ns]
    parameters = {
        name: value for name, value in arguments.items() if name not in task.inputs
    }
    record = {"Inputs": inputs, "Parameters": parameters | {"atlas": atlas.name}}
    return json.loads(json.dumps(record, default=str))
