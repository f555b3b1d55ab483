"""Find the images of every scan: tractogram, parcellation and PET."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from brainlsap.data.atlas import Atlas
from brainlsap.data.find_files import (
    FOLDER_NAME,
    ScanName,
    parse_scan_name,
    visit_order,
)
from brainlsap.data.find_files import StudyFiles as CohortFiles
from brainlsap.data.participants import PEOPLE_FILES, read_people
from brainlsap.data.streamline_files import FORMATS
from brainlsap.exceptions import CohortError

# What is looked for -> patterns of names, the first that fits anything counts.
PATTERNS = {
    "tractogram": tuple(f"*{suffix}" for suffix in FORMATS),
    "pet": ("*space-T1w*_pet.nii*", "*_pet.nii*", "*_pet.mgz"),
    "transform": ("*from-pet*_to-*_xfm.*",),
    "streamline_weights": (),
}
_IMAGES = (".nii", ".nii.gz", ".mgz")
PARCELLATIONS = {
    "destrieux160": ("*a2009s*", "*destrieux*", "*nodes*"),
    "desikan82": ("*aparc+aseg*", "*aparcaseg*", "*desikan*", "*nodes*"),
}
FREESURFER = {
    "destrieux160": "aparc.a2009s+aseg.mgz",
    "desikan82": "aparc+aseg.mgz",
}


@dataclass(frozen=True)
class ScanInputs:
    """The images of one scan.

    Parameters
    ----------
    participant, session : str
        Name of the person's folder, and `ses-...`; empty where there is no session.
    files : dict of str to Path
        By what they are: `tractogram`, `parcellation`, `pet`, `transform`,
        `streamline_weights`; those that were found.
    fault : str
        What keeps the scan from being built; empty for nothing.
    """

    participant: str
    session: str
    files: dict[str, Path]
    fault: str = ""

    @property
    def name(self) -> str:
        """Name of the scan, such as `sub-01_ses-M00`."""
        return f"{self.participant}_{self.session}".rstrip("_")


def find_inputs(
    files: CohortFiles, atlas: Atlas, patterns: Mapping[str, str]
) -> list[ScanInputs]:
    """Find the images of all scans below a cohort's folders.

    Parameters
    ----------
    files : CohortFiles
        Of the cohort.
    atlas : Atlas
        Its name decides between parcellations.
    patterns : mapping of str to str
        Of names of files, by `tractogram`, `parcellation`, `pet`, `transform` and
        `streamline_weights`.

    Returns
    -------
    list of ScanInputs
        Of scans that have a tractogram or PET, in the order of names.

    Raises
    ------
    CohortError
        Where there is none.
    """
    segmented = _freesurfer_images(files, atlas)
    found = []
    for person, name in sorted(_people(files, segmented).items()):
        visits = {visit for key, visit in segmented if key == person and visit}
        sessions = sorted(files.sessions.get(person, {}).values(), key=visit_order)
        sessions = sessions or sorted(visits) or [""]
        for session in sessions:
            own = set(
                files.of_scan(
                    (person, ScanName("", session).key[1]), len(sessions) == 1
                )
            )
            if session:  # a person's anatomy may serve all visits
                own.update(files.of_scan((person, ""), False))
            image = _of_scan(segmented, (person, ScanName("", session).key[1]))
            if image is not None:  # dwi and pet may lie in FreeSurfer's folder, too
                own.update(p for p in image.parents[1].rglob("*") if p.is_file())
            scan = _find_scan(name, session, sorted(own), atlas, patterns, image)
            if {"tractogram", "pet"} & set(scan.files) or scan.fault:
                found.append(scan)
    if not found:
        raise CohortError(
            f"{files.folder}: no tractogram ({', '.join(FORMATS)}) and no PET "
            "(*_pet.nii.gz) was found below sub-* of it, its derivatives, or the "
            "folders of derivatives="
        )
    return found


def _people(
    files: CohortFiles, segmented: Mapping[tuple[str, str], Path]
) -> dict[str, str]:
    """Return the name of every person's folder, by the key of the person."""
    names = [
        path.name
        for root in files.roots
        for path in sorted(root.glob("sub-*"))
        if path.is_dir() and "_" not in path.name
    ]
    for table in (files.folder / name for name in PEOPLE_FILES):
        if table.is_file():
            names += [person.participant for person in read_people(table).values()]
    names += [
        parse_scan_name(path.parents[1].name).participant for path in segmented.values()
    ]
    found: dict[str, str] = {}
    for name in names:
        if FOLDER_NAME.fullmatch(name):
            found.setdefault(ScanName(name).key[0], name)
    return found


def _of_scan(
    segmented: Mapping[tuple[str, str], Path], key: tuple[str, str]
) -> Path | None:
    return segmented.get(key, segmented.get((key[0], "")))


def _find_scan(
    person: str,
    session: str,
    files: Sequence[Path],
    atlas: Atlas,
    patterns: Mapping[str, str],
    image: Path | None,
) -> ScanInputs:
    chosen: dict[str, Path] = {}
    faults = []
    wanted = dict(PATTERNS)
    wanted["parcellation"] = PARCELLATIONS.get(atlas.name, (f"*{atlas.name}*",))
    for what, usual in wanted.items():
        given = patterns.get(what)
        fitting = _fitting(files, (given,) if given else usual, what)
        if len(fitting) > 1:
            names = ", ".join(path.name for path in fitting)
            faults.append(
                f"{len(fitting)} files could be its {what}: {names}; choose by {what}="
            )
        elif fitting:
            chosen[what] = fitting[0]
    if "space-" in chosen.get("pet", Path()).name and "transform" not in patterns:
        chosen.pop("transform", None)  # it has been applied
    if "parcellation" not in chosen and image is not None:
        chosen["parcellation"] = image
    has_images = {"tractogram", "pet"} & set(chosen)
    if has_images and "parcellation" not in chosen and not faults:
        faults.append(
            f"no parcellation of {atlas.name}; expected FreeSurfer's mri/"
            f"{FREESURFER.get(atlas.name, 'segmentation')}, or an image chosen by "
            "parcellation="
        )
    name = f"ses-{ScanName(person, session).key[1]}" if session else ""
    return ScanInputs(person, name, chosen, "; ".join(faults))


def _fitting(files: Sequence[Path], globs: Sequence[str], what: str) -> list[Path]:
    """Return the files that fit the first pattern that any file fits."""
    suffixes = _IMAGES if what == "parcellation" else ()
    for glob in globs:
        fitting = [
            path
            for path in files
            if fnmatch(str(path), f"*/{glob}")
            and path.suffix != ".json"
            and (not suffixes or path.name.lower().endswith(suffixes))
        ]
        if fitting:
            return fitting
    return []


def _freesurfer_images(files: CohortFiles, atlas: Atlas) -> dict[tuple[str, str], Path]:
    """Return the parcellation of every FreeSurfer subject, by person and visit."""
    wanted = FREESURFER.get(atlas.name)
    if wanted is None:
        return {}
    roots = files.roots if files.subjects_dir is None else [files.subjects_dir]
    found: dict[tuple[str, str], Path] = {}
    for root in roots:
        for path in sorted(root.glob(f"*/mri/{wanted}")):
            scan = parse_scan_name(path.parents[1].name)
            if not scan.base:  # the longitudinal stream has spaces of its own
                found.setdefault(scan.key, path)
    return found
