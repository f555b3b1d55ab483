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
import pandas as pd

from brainlsap.arrays import to_jsonable
from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data.find_files import (
    ScanIdentity,
    StudyFiles,
    choose_file_path,
    make_visit_sort_key,
    read_scan_rows,
)
from brainlsap.data.id_columns import UserColumns
from brainlsap.data.participants import list_people_table_paths
from brainlsap.data.tables import write_dataset_description
from brainlsap.exceptions import (
    BrainlsapError,
    CohortError,
    ParameterError,
    WritingError,
    check_at_least,
)
from brainlsap.files import check_writable, lock_folder, replace_when_whole
from brainlsap.findings import FAULT, Finding
from brainlsap.images.suvr import extract_suvr
from brainlsap.images.tractography import TRACTOGRAM_FORMATS, build_connectome
from brainlsap.text import option_text

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
        Faults that prevent files from being built, with the scan of each.
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
    image_paths: list[Path]
    segmentation_paths: list[Path]  # by FreeSurfer

    @property
    def scan(self) -> str:
        """Return the name of the scan."""
        return f"{self.participant}_{self.session}".rstrip("_")


class BuildTask(NamedTuple):
    """One file to build, and its input images by parameter."""

    scan: str
    output_path: Path
    path_by_parameter: dict[str, Path]


class TaskList(NamedTuple):
    """Files that can be built for a study, and faults that prevent others."""

    tasks: list[BuildTask]
    fault_findings: list[Finding]
    missing_lines: tuple[str, ...]


class BuildResult(NamedTuple):
    """Result for one file: new, up to date, or failed with a fault."""

    scan: str
    output_path: Path
    is_new: bool = False
    fault_finding: Finding | None = None


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
        raise CohortError("no such folder. Check the path", path=folder)
    out = folder / OUTPUT_FOLDER if out is None else Path(out)
    check_writable(out)
    study_hash = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    _check_output_of_study(out, folder, study_hash)
    people_paths = list_people_table_paths(folder)
    participant_ids = list[str]()
    if people_paths:
        people_scan_rows = read_scan_rows(
            people_paths[0], user_columns=UserColumns.from_options(id_column)
        )
        participant_ids = [
            scan_identity.participant
            for scan_identity in people_scan_rows.scan_identities
        ]
    study_files = StudyFiles(folder, participant_ids, derivatives, subjects_dir)
    build_tasks, fault_findings, missing_lines = make_task_list(
        study_files, out, atlas, dict(patterns or {})
    )
    arguments_by_image_kind = {"tractogram": connectome or {}, "pet": suvr or {}}
    build_calls = (
        delayed(build_file)(build_task, atlas, arguments_by_image_kind)
        for build_task in build_tasks
    )
    generator_record = {"Name": "brainlsap", "Version": version("brainlsap")}
    generator_record["StudyKey"] = study_hash
    with lock_folder(out):
        try:
            write_dataset_description(out, DATASET_NAME, generator_record)
            parallel_pool = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
            progress_bar = tqdm(
                parallel_pool(build_calls),
                "building",
                len(build_tasks),
                disable=not verbose or None,
            )
            build_results = sorted(progress_bar, key=lambda result: result.output_path)
        finally:  # also remove files of processes that were ended with this one
            for partial_path in [*out.rglob(".partial-*")]:
                shutil.rmtree(partial_path, ignore_errors=True)
    fault_findings += [
        build_result.fault_finding
        for build_result in build_results
        if build_result.fault_finding is not None
    ]
    successful_results = [
        build_result
        for build_result in build_results
        if build_result.fault_finding is None
    ]
    return BuiltStudy(
        folder=out,
        new_files=tuple(
            build_result.output_path
            for build_result in successful_results
            if build_result.is_new
        ),
        existing_files=tuple(
            build_result.output_path
            for build_result in successful_results
            if not build_result.is_new
        ),
        faults=tuple(
            sorted(fault_findings, key=lambda fault_finding: fault_finding.scan)
        ),
        missing=missing_lines,
    )


def _check_output_of_study(
    output_folder: Path, study_folder: Path, study_hash: str
) -> None:
    """Raise if `output_folder` has files that were not built from this study."""
    if output_folder.is_file():
        raise ParameterError(
            f"{output_folder} is a file; name a folder with {option_text('out')}."
        )
    entry_paths = [
        entry_path
        for entry_path in output_folder.glob("*")
        if not entry_path.name.startswith(".partial-")
    ]
    if not entry_paths:
        return
    generator_record: Mapping[str, Any] = {}
    description_record: Mapping[str, Any] = {}
    with suppress(OSError, ValueError, LookupError, TypeError):
        description_path = output_folder / "dataset_description.json"
        description_record = json.loads(description_path.read_text(encoding="utf-8"))
        generator_record = description_record["GeneratedBy"][0]
    has_dataset_name = description_record.get("Name") == DATASET_NAME
    if generator_record.get("Name") != "brainlsap" or not has_dataset_name:
        raise ParameterError(
            f"{output_folder} is not empty, and its files were not written by "
            f"`build`. Name another folder with {option_text('out')}."
        )
    # A folder in the study moves with the study.
    is_in_study = study_folder.resolve() in output_folder.resolve().parents
    if not is_in_study and generator_record.get("StudyKey", study_hash) != study_hash:
        raise ParameterError(
            f"{output_folder} contains files built from another study, or the study "
            f"was moved. Name another folder with {option_text('out')}, or delete this "
            "folder."
        )


def make_task_list(
    study_files: StudyFiles,
    output_folder: Path,
    atlas: Atlas,
    pattern_by_parameter: Mapping[str, str],
) -> TaskList:
    """Return the tasks, the faults that prevent scans from being built, and gaps.

    Files in `output_folder` are results of earlier builds and not inputs.
    """
    build_tasks: list[BuildTask] = []
    fault_findings: list[Finding] = []
    n_scans_by_image_kind = Counter[str]()
    for scan_images in _list_scan_images(study_files, output_folder, atlas):
        scan_name = scan_images.scan
        try:
            input_paths_by_kind, has_parcellation = _choose_input_paths(
                scan_images, atlas, pattern_by_parameter
            )
        except CohortError as error:
            fault_findings.append(Finding.from_error(error, scan_name))
            continue
        image_path_texts = map(str, scan_images.image_paths)
        n_scans_by_image_kind["scan"] += 1
        n_scans_by_image_kind["parcellation"] += has_parcellation
        n_scans_by_image_kind["tractogram"] += "tractogram" in input_paths_by_kind
        n_scans_by_image_kind["PET"] += any(
            image_kind != "tractogram" for image_kind in input_paths_by_kind
        )
        n_scans_by_image_kind["diffusion image"] += any(
            map(_DIFFUSION.search, image_path_texts)
        )
        if input_paths_by_kind and not has_parcellation:
            message = _missing_parcellation_text(atlas)
            fault_findings.append(Finding(message, FAULT, scan=scan_name))
            continue
        for image_kind, path_by_parameter in input_paths_by_kind.items():
            output_path = output_folder / _make_output_path(
                scan_images, image_kind, atlas
            )
            build_tasks.append(BuildTask(scan_name, output_path, path_by_parameter))
    missing_lines = _list_missing_image_lines(
        n_scans_by_image_kind, has_tasks=bool(build_tasks)
    )
    if not build_tasks and not fault_findings:
        raise CohortError(
            f"the study contains no tractogram ({', '.join(TRACTOGRAM_FORMATS)}) and "
            "no *_pet.nii.gz in its sub-* folders, in its derivatives, or in "
            f"{option_text('derivatives')}",
            missing_lines,
            path=study_files.folder,
        )
    return TaskList(build_tasks, fault_findings, missing_lines)


def _make_output_path(scan_images: ScanImages, image_kind: str, atlas: Atlas) -> Path:
    """Return the path of a connectome ("tractogram") or of a tracer's SUVR table."""
    folder = Path(scan_images.participant, scan_images.session)
    atlas_word = atlas.settings.get("file_words", [atlas.name])[0]
    if image_kind == "tractogram":
        file_name = f"{scan_images.scan}_atlas-{atlas_word}_connectivity.csv"
        return folder / "dwi" / file_name
    image_stem = f"{scan_images.scan}_{image_kind}".rstrip("_")
    return folder / "pet" / f"{image_stem}_atlas-{atlas_word}_desc-suvr_regions.tsv"


def _list_scan_images(
    study_files: StudyFiles, output_folder: Path, atlas: Atlas
) -> Iterator[ScanImages]:
    """Yield the images of every scan, sorted by participant and visit.

    A participant's files outside of visits, for example one anatomy, serve all visits.
    """
    segmentation_path_by_visit = _find_segmentation_by_visit(study_files, atlas)
    visit_names_by_person: dict[str, set[str]] = {}
    for participant_key, visit_name in (
        *study_files.files_by_visit,
        *segmentation_path_by_visit,
    ):
        visit_names_by_person.setdefault(participant_key, set()).add(visit_name)
    for participant_key in sorted(
        {participant_key for participant_key, _ in study_files.files_by_visit}
    ):
        visit_names = visit_names_by_person[participant_key] - {""}
        for visit_name in sorted(visit_names, key=make_visit_sort_key) or [""]:
            visit_keys = ((participant_key, visit_name), (participant_key, ""))
            image_paths = {
                image_path
                for visit_key in visit_keys
                for image_path in study_files.files_by_visit.get(visit_key, [])
            }
            scan_image_paths = sorted(
                image_path
                for image_path in image_paths
                if output_folder not in image_path.parents
            )
            yield ScanImages(
                participant=_find_participant_name(participant_key, scan_image_paths),
                session=f"ses-{visit_name}" if visit_name else "",
                image_paths=scan_image_paths,
                segmentation_paths=[
                    segmentation_path_by_visit[visit_key]
                    for visit_key in visit_keys
                    if visit_key in segmentation_path_by_visit
                ],
            )


def _find_participant_name(participant_key: str, image_paths: Sequence[Path]) -> str:
    """Return the name of a participant's folder, for example "sub-01" for "01"."""
    for image_path in image_paths:
        for path_part in image_path.parts:
            if ScanIdentity(path_part).key[0] == participant_key:
                return path_part
    return participant_key


def _find_segmentation_by_visit(
    study_files: StudyFiles, atlas: Atlas
) -> dict[tuple[str, str], Path]:
    """Return FreeSurfer's segmentations for the atlas, by person and visit."""
    file_name = atlas.settings.get("segmentation", "none")
    segmentation_path_by_visit = {}
    for (
        participant_key,
        freesurfer_subjects_by_visit,
    ) in study_files.subjects_by_person.items():
        for (
            visit_name,
            identity_folder_pairs,
        ) in freesurfer_subjects_by_visit.items():
            for subject_identity, subject_folder in identity_folder_pairs:
                segmentation_path = subject_folder / "mri" / file_name
                # Images of the longitudinal stream are in a space of their own.
                if not subject_identity.template_name and segmentation_path.is_file():
                    segmentation_path_by_visit[participant_key, visit_name] = (
                        segmentation_path
                    )
    return segmentation_path_by_visit


def _list_missing_image_lines(
    n_scans_by_image_kind: Mapping[str, int], *, has_tasks: bool
) -> tuple[str, ...]:
    """Return one line per kind of image that scans lack, but no kind that none has."""
    n_scans = n_scans_by_image_kind["scan"]
    expectation_by_image_kind = {
        "tractogram": f"{', '.join(TRACTOGRAM_FORMATS)}; MRtrix's tckgen, for example, "
        "makes a tractogram from the diffusion image",
        "PET": "*_pet.nii.gz",
        "parcellation": "FreeSurfer's, or --parcellation",
    }
    missing_lines = []
    for image_kind, expectation_text in expectation_by_image_kind.items():
        n_scans_without_image = n_scans - n_scans_by_image_kind[image_kind]
        is_expected_kind = (
            n_scans_by_image_kind[image_kind] > 0 or image_kind == "parcellation"
        )
        if image_kind == "tractogram":
            is_expected_kind = (
                is_expected_kind or n_scans_by_image_kind["diffusion image"] > 0
            )
        # If nothing can be built, report everything that is absent.
        if n_scans_without_image and (is_expected_kind or not has_tasks):
            missing_lines.append(
                f"{n_scans_without_image} of {n_scans} scans have no {image_kind} "
                f"(expected: {expectation_text})"
            )
    return tuple(missing_lines)


def _missing_parcellation_text(atlas: Atlas) -> str:
    expected_file_name = atlas.settings.get("segmentation", "segmentation")
    return (
        f"there is no parcellation of {atlas.name}; expected the file "
        f"mri/{expected_file_name} of FreeSurfer. {option_text('parcellation')} sets "
        "other images: a pattern of images in the folder of each scan, or the path of "
        "one image for all scans"
    )


def _choose_input_paths(
    scan_images: ScanImages, atlas: Atlas, pattern_by_parameter: Mapping[str, str]
) -> tuple[dict[str, dict[str, Path]], bool]:
    """Choose one file of each kind for the tractogram and for each tracer.

    Return the input files by "tractogram" or tracer, and whether there is a
    parcellation.
    """
    image_paths = [
        image_path
        for image_path in scan_images.image_paths
        if image_path.suffix != ".json"
    ]
    input_paths_by_kind = {}
    tractogram_path_by_parameter = _choose_path_by_parameter(
        "tractogram", image_paths, atlas, pattern_by_parameter
    )
    if tractogram_path_by_parameter:
        weight_path_by_parameter = _choose_path_by_parameter(
            "streamline_weights", image_paths, atlas, pattern_by_parameter
        )
        input_paths_by_kind["tractogram"] = (
            tractogram_path_by_parameter | weight_path_by_parameter
        )
    input_paths_by_kind |= _choose_paths_by_tracer(
        image_paths, atlas, pattern_by_parameter
    )
    shared_parcellation_path = Path(
        pattern_by_parameter.get("parcellation", "")
    )  # one image for everybody
    has_shared_parcellation = shared_parcellation_path.is_file()
    has_segmentation = bool(scan_images.segmentation_paths)
    if not input_paths_by_kind:  # nothing to build: only tell whether there is one
        with suppress(CohortError):
            has_parcellation = has_shared_parcellation or has_segmentation
            return {}, has_parcellation or bool(
                _choose_parcellation_by_parameter(
                    scan_images.image_paths, atlas, pattern_by_parameter
                )
            )
        return {}, True
    if has_shared_parcellation:
        parcellation_path_by_parameter = {"parcellation": shared_parcellation_path}
    else:
        parcellation_path_by_parameter = _choose_parcellation_by_parameter(
            scan_images.image_paths, atlas, pattern_by_parameter
        )
    if has_segmentation and not parcellation_path_by_parameter:
        parcellation_path_by_parameter = {
            "parcellation": scan_images.segmentation_paths[0]
        }
    input_paths_by_output = {
        output_kind: path_by_parameter | parcellation_path_by_parameter
        for output_kind, path_by_parameter in input_paths_by_kind.items()
    }
    return input_paths_by_output, bool(parcellation_path_by_parameter)


def _choose_parcellation_by_parameter(
    image_paths: Sequence[Path], atlas: Atlas, pattern_by_parameter: Mapping[str, str]
) -> dict[str, Path]:
    """Return the parcellation among files, by the name of its parameter."""
    image_suffixes = (".nii", ".nii.gz", ".mgz")
    label_image_paths = [
        image_path
        for image_path in image_paths
        if image_path.name.lower().endswith(image_suffixes)
    ]
    return _choose_path_by_parameter(
        "parcellation", label_image_paths, atlas, pattern_by_parameter
    )


def _choose_paths_by_tracer(
    image_paths: Sequence[Path], atlas: Atlas, pattern_by_parameter: Mapping[str, str]
) -> dict[str, dict[str, Path]]:
    """Return the PET image of each tracer, and its transform if it needs one."""
    paths_by_tracer: dict[str, list[Path]] = {}
    for image_path in image_paths:
        tracer_match = _TRACER.search(image_path.name)
        paths_by_tracer.setdefault(tracer_match[1] if tracer_match else "", []).append(
            image_path
        )
    input_paths_by_tracer = {}
    for tracer_name, tracer_paths in paths_by_tracer.items():
        pet_path_by_parameter = _choose_path_by_parameter(
            "pet", tracer_paths, atlas, pattern_by_parameter
        )
        if not pet_path_by_parameter:
            continue
        # If the name of the image states a space, the transform has been applied.
        if (
            "transform" in pattern_by_parameter
            or "space-" not in pet_path_by_parameter["pet"].name
        ):
            transform_paths = sorted({*tracer_paths, *paths_by_tracer.get("", [])})
            pet_path_by_parameter |= _choose_path_by_parameter(
                "transform", transform_paths, atlas, pattern_by_parameter
            )
        input_paths_by_tracer[tracer_name] = pet_path_by_parameter
    return input_paths_by_tracer


def _choose_path_by_parameter(
    parameter_name: str,
    candidate_paths: Sequence[Path],
    atlas: Atlas,
    pattern_by_parameter: Mapping[str, str],
) -> dict[str, Path]:
    """Return the one file of a kind by the name of its parameter; empty if none."""
    default_patterns = IMAGE_PATTERNS.get(parameter_name)
    if default_patterns is None:
        name_pattern = f"*{atlas.name.lower()}*"
        default_patterns = atlas.settings.get("image_patterns", (name_pattern,))
    option_flag_text = f"--{parameter_name.replace('_', '-')}"
    image_path = choose_file_path(
        candidate_paths,
        default_patterns,
        parameter_name,
        pattern_by_parameter.get(parameter_name, ""),
        atlas,
        option_flag_text,
    )
    return {} if image_path is None else {parameter_name: image_path}


def build_file(
    build_task: BuildTask,
    atlas: Atlas,
    arguments_by_image_kind: Mapping[str, Mapping[str, Any]],
) -> BuildResult:
    """Build one file unless it is up to date.

    `arguments_by_image_kind` are those of :func:`.build_connectome` ("tractogram") and
    of :func:`.extract_suvr` ("pet"). A fault is returned and not raised, so that other
    scans are built.
    """
    is_pet = "pet" in build_task.path_by_parameter
    build_function: Callable[..., Any] = extract_suvr if is_pet else build_connectome
    bound_arguments = inspect.signature(build_function).bind(
        atlas=atlas,
        **build_task.path_by_parameter,
        **arguments_by_image_kind["pet" if is_pet else "tractogram"],
    )
    bound_arguments.apply_defaults()
    call_record = _make_call_record(build_task, atlas, bound_arguments.arguments)
    sidecar_path = build_task.output_path.with_suffix(".json")
    try:
        if build_task.output_path.is_file() and sidecar_path.is_file():
            earlier_record = json.loads(sidecar_path.read_text(encoding="utf-8"))
            if call_record.items() <= earlier_record.items():
                return BuildResult(build_task.scan, build_task.output_path)
        uptake_or_connectome = build_function(
            *bound_arguments.args, **bound_arguments.kwargs
        )
        if is_pet:
            output_table = uptake_or_connectome.table.drop(columns="mean")
        else:  # counts as whole numbers
            output_table = uptake_or_connectome.to_frame().convert_dtypes()
        sidecar_path.unlink(missing_ok=True)
        with replace_when_whole(build_task.output_path) as partial_path:
            column_separator = "\t" if is_pet else ","
            output_table.to_csv(
                partial_path, sep=column_separator, na_rep="n/a", index_label="region"
            )
        number_by_field = {
            field_name: field_value
            for field_name, field_value in vars(uptake_or_connectome).items()
            if isinstance(field_value, int | float) and np.isfinite(field_value)
        }
        sidecar_text = json.dumps(
            {"Notes": uptake_or_connectome.notes, **number_by_field, **call_record},
            indent=2,
        )
        with replace_when_whole(sidecar_path) as partial_path:
            partial_path.write_text(sidecar_text + "\n", encoding="utf-8")
        return BuildResult(build_task.scan, build_task.output_path, is_new=True)
    except WritingError:  # every other scan would fail in the same way
        raise
    except BrainlsapError as error:
        fault_finding = Finding.from_error(error, build_task.scan)
    except (OSError, MemoryError) as error:
        message = " ".join(str(error).split()) or type(error).__name__
        fault_finding = Finding(message, FAULT, scan=build_task.scan)
    return BuildResult(
        build_task.scan, build_task.output_path, fault_finding=fault_finding
    )


def _make_call_record(
    build_task: BuildTask, atlas: Atlas, value_by_argument: Mapping[str, Any]
) -> dict[str, Any]:
    """Return inputs and parameters as JSON values; if they change, rebuild the file."""
    file_record_by_parameter = {}
    for argument_name, input_path in build_task.path_by_parameter.items():
        file_stat = input_path.stat()
        file_record_by_parameter[argument_name] = [
            input_path.name,
            file_stat.st_size,
            file_stat.st_mtime_ns,
        ]
    value_by_parameter = {
        argument_name: argument_value
        for argument_name, argument_value in value_by_argument.items()
        if argument_name not in build_task.path_by_parameter
    }
    if isinstance(label_source := value_by_parameter.get("labels"), pd.DataFrame):
        value_by_parameter["labels"] = label_source.to_dict("list")
    value_by_parameter["atlas"] = atlas.name
    return to_jsonable(
        {"Inputs": file_record_by_parameter, "Parameters": value_by_parameter}
    )
