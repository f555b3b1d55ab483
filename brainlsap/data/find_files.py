"""Find the files of every scan below a study's folder, each folder listed once.

Looked through are the study's folder, each data set in its `derivatives/`, and the
folders that the caller adds; in each of them `sub-X/[ses-Y/]`. FreeSurfer subjects
are found by the `stats` folder that they hold, and named `sub-X_ses-Y`, `PTID_date`
or `sub-X_ses-Y.long.base`. Connectomes may also lie in one folder of all.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from brainlsap.atlas import Atlas
from brainlsap.data.connectomes import FORMATS
from brainlsap.data.measures import get_measure, wrong_tracer
from brainlsap.data.region_tables import other_side
from brainlsap.data.tables import TABLE_SUFFIXES
from brainlsap.exceptions import CohortError, ParameterError

CONNECTOME_PATTERNS = (
    *("*connectivity.*", "*connectome*.*", "*relmat.*", "*_sc.*", "*desc-sc.*"),
    "compute_connectivity/sc.npy",
)
# Folders with all connectomes of a study, looked into where no pattern is given.
FLAT_FOLDERS = ("connectomes", "connectivity", "matrices")
_LABELS = re.compile(r"labels(_list)?\.(txt|csv|tsv)$")
_FREESURFER = {"label", "mri", "scripts", "surf", "tmp", "touch", "trash"}
_DEEPEST = 6
_LEFT = re.compile(r"(^|_|hemi-)(left|L|lh)(?=[_.])")
_FIELDS = {
    "participant": r"(?P<participant>.+?)",
    "session": r"(?P<session>[^_/]+)",
    "scan": r"(?P<scan>.+?)",
}
_PTID = re.compile(r"(?P<person>(?:sub-)?\d{3}_S_\d{4,5})(?:[_-](?P<visit>.+))?")
# What follows begins with a letter, as entities and suffixes do: sub-01_2 and sub-01-2
# are other people than sub-01.
_BIDS = re.compile(
    r"(?P<person>sub-[A-Za-z0-9]+)(?:_(?P<visit>ses-[A-Za-z0-9]+))?"
    r"(?:(?:_(?!ses-)[A-Za-z]|\.).*)?"
)


class ScanName(NamedTuple):
    """Who was scanned, at which visit, and by which kind of FreeSurfer run."""

    participant: str
    session: str = ""
    base: str = ""
    """Template of a longitudinal run, empty for a cross-sectional one."""

    @property
    def key(self) -> tuple[str, str]:
        """Person and visit in the one spelling that names are compared by."""
        return person_key(self.participant), visit_key(self.session)


def parse_scan_name(text: str) -> ScanName:
    """Take the name of a scan, of its folder or of its row apart.

    >>> tuple(parse_scan_name("/data/sub-01_ses-M00.long.sub-01/"))
    ('sub-01', 'ses-M00', 'sub-01')
    >>> tuple(parse_scan_name("002_S_0295_2006-04-18"))
    ('002_S_0295', '2006-04-18', '')
    """
    name = text.strip().replace("\\", "/").rstrip("/").rpartition("/")[2]
    name, _, base = name.partition(".long.")
    for pattern in (_PTID, _BIDS):
        found = pattern.fullmatch(name)
        if found:
            return ScanName(found["person"], found["visit"] or "", base)
    return ScanName(name, "", base)


def is_folder_name(name: str) -> bool:
    """Tell whether a name is that of a folder and stays where it is."""
    return re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", name) is not None


def person_key(participant: str) -> str:
    """Return a person's name without `sub-`; ADNI's numbers with underscores.

    >>> person_key("sub-ADNI002S0295") == person_key("002_S_0295")
    True
    """
    name = participant.strip().removeprefix("sub-")
    flat = re.fullmatch(r"(?:ADNI)?(\d{3})S(\d{4,5})", name)
    return f"{flat[1]}_S_{flat[2]}" if flat else name


def visit_key(session: str) -> str:
    """Return a visit's name without `ses-`."""
    return session.strip().removeprefix("ses-")


def visit_order(session: str) -> tuple[object, ...]:
    """Return the key by which the visits of a person are sorted in time.

    >>> sorted(["ses-M12", "ses-M6", "bl"], key=visit_order)
    ['bl', 'ses-M6', 'ses-M12']
    """
    name = visit_key(session).lower()
    first = ("sc", "screening", "bl", "baseline", "init")
    rank = first.index(name) if name in first else len(first)
    parts = re.split(r"(\d+)", name)
    return rank, *((1, int(p), "") if p.isdecimal() else (0, 0, p) for p in parts if p)


class Scan(NamedTuple):
    """One scan of a cohort, and its files."""

    name: str
    participant: str
    session: str
    is_only: bool
    """Whether the person has no other scan."""
    files: tuple[Path, ...]

    @property
    def key(self) -> tuple[str, str]:
        """Person and visit in the spelling that names are compared by."""
        return person_key(self.participant), visit_key(self.session)


class StudyFiles:
    """The files of a study, by participant and session.

    Parameters
    ----------
    folder : Path
        Of the study.
    derivatives : sequence of path
        Further data sets, each with `sub-*` or FreeSurfer subjects inside.
    subjects_dir : path, optional
        The only folder in which FreeSurfer subjects are looked for.
    pattern : str or mapping of str to str, optional
        Pattern of a connectome's file name, or a path with `{participant}`,
        `{session}`, `{scan}` below the folder; or patterns by `connectome`, name of a
        feature, and `freesurfer` (a leading `!` excludes).
    """

    def __init__(
        self,
        folder: Path,
        derivatives: Sequence[str | Path] = (),
        subjects_dir: str | Path | None = None,
        pattern: str | Mapping[str, str] | None = None,
    ) -> None:
        patterns = {"connectome": pattern} if isinstance(pattern, str) else pattern
        self.patterns = dict(patterns or {})
        for name, glob in self.patterns.items():
            if not isinstance(glob, str):
                raise ParameterError(
                    f"pattern of {name!r} must be text such as '*_connectivity.csv', "
                    f"got {glob!r}."
                )
        self.folder = folder
        self.subjects = None if subjects_dir is None else Path(subjects_dir)
        given = [Path(place) for place in derivatives]
        absent = [p for p in (*given, self.subjects) if p and not p.is_dir()]
        if absent:
            raise CohortError(
                "some folders that were named do not exist",
                [f"{path}: no such folder" for path in absent],
            )
        own = sorted(p for p in (folder / "derivatives").glob("*") if p.is_dir())
        # Clinica's CAPS has people below subjects/
        own += [p / "subjects" for p in (folder, *own) if (p / "subjects").is_dir()]
        roots = {path.resolve(): path for path in reversed([folder, *own, *given])}
        self.roots = list(reversed(roots.values()))
        self._listed: dict[Path, tuple[list[str], list[str]]] = {}
        self._visits: dict[str, dict[str, tuple[str, list[Path]]]] = {}

    def list_folder(self, folder: Path) -> tuple[list[str], list[str]]:
        """Return the names of folders and of files in a folder, hidden ones left out.

        Raises a CohortError for a link that leads out of the study: who packs a
        cohort must not decide which folders of another machine are read.
        """
        if folder not in self._listed:
            folders, files = [], []
            with os.scandir(folder) as entries:
                for entry in sorted(entries, key=lambda one: one.name):
                    if entry.name.startswith("."):
                        continue
                    if not entry.is_dir():
                        files.append(entry.name)
                        continue
                    folders.append(entry.name)
                    if entry.is_symlink():
                        self._refuse_leaving(Path(entry.path))
            self._listed[folder] = folders, files
        return self._listed[folder]

    def _refuse_leaving(self, link: Path) -> None:
        place = link.resolve()
        known = [*self.roots, *([self.subjects] if self.subjects else [])]
        if not any(place.is_relative_to(root.resolve()) for root in known):
            raise CohortError(
                f"{link} is a link that leads out of the cohort's folder, to {place}, "
                "and is not followed; move the data there, or name the other data set "
                "by derivatives= (--derivatives)"
            )

    def _walk(self, folder: Path, skip: str = "", depth: int = 0) -> list[Path]:
        """List the files below a folder, of a FreeSurfer subject the stats alone."""
        folders, names = self.list_folder(folder)
        files = [folder / name for name in names]
        is_subject = "stats" in folders
        for name in folders if depth < _DEEPEST else ():
            if not (skip and name.startswith(skip)) and not (
                is_subject and name in _FREESURFER
            ):
                files += self._walk(folder / name, depth=depth + 1)
        return files

    def person_folders(self, participant: str) -> list[Path]:
        """Return the folders of one person that exist."""
        if not is_folder_name(participant):  # nothing outside is ever looked at
            return []
        names = sorted({participant, f"sub-{participant}"})
        found = [
            root / name
            for root in self.roots
            for name in names
            if name in self.list_folder(root)[0]
        ]
        # elsewhere a folder with stats is FreeSurfer's, and is found as such
        return [
            path
            for path in found
            if path.parent == self.folder or "stats" not in self.list_folder(path)[0]
        ]

    def people(self) -> list[str]:
        """Return the names of all folders `sub-*`, in order."""
        names = {name for root in self.roots for name in self.list_folder(root)[0]}
        return sorted(n for n in names if n.startswith("sub-") and "_" not in n)

    def visits(self, participant: str) -> dict[str, tuple[str, list[Path]]]:
        """Return name and files of every visit by its key; "" for those of none."""
        if participant in self._visits:
            return self._visits[participant]
        found: dict[str, tuple[str, list[Path]]] = {}
        for folder in self.person_folders(participant):
            found.setdefault("", ("", []))[1].extend(self._walk(folder, skip="ses-"))
            for name in self.list_folder(folder)[0]:
                if name.startswith("ses-"):
                    known = found.setdefault(visit_key(name), (name, []))
                    known[1].extend(self._walk(folder / name))
        for visit, files in self.flat.get(person_key(participant), {}).items():
            session = visit and files[0][1].session
            found.setdefault(visit, (session, []))[1].extend(path for path, _ in files)
        self._visits[participant] = found
        return found

    def sessions(self, participant: str) -> list[str]:
        """Return the visits of one person that have files, in time."""
        found = [name for name, _ in self.visits(participant).values() if name]
        return sorted(found, key=visit_order)

    def files(
        self, participant: str, session: str, is_only: bool = False
    ) -> tuple[Path, ...]:
        """Return all files of one scan, sorted.

        `is_only` says that the person has no other scan, so that a matrix without a
        visit in its name is of this one.
        """
        visits, visit = self.visits(participant), visit_key(session)
        found = set(visits.get(visit, ("", []))[1])
        of_none = visits.get("", ("", []))[1]
        if session and visit not in visits:  # a folder that is named without ses-
            found |= {path for path in of_none if session in path.parts[-4:-1]}
        if session and is_only and not found & self.flat_paths:
            found |= self.flat_paths & set(of_none)
        return tuple(sorted(found))

    @cached_property
    def flat(self) -> dict[str, dict[str, list[tuple[Path, ScanName]]]]:
        """Connectomes that lie in one folder, by person and visit."""
        found: dict[str, dict[str, list[tuple[Path, ScanName]]]] = {}
        pattern = self.patterns.get("connectome", "")
        for path, name in (
            self._of_template(pattern) if "{" in pattern else self._of_flat_folders()
        ):
            person, visit = name.key
            found.setdefault(person, {}).setdefault(visit, []).append((path, name))
        return found

    @cached_property
    def flat_paths(self) -> frozenset[Path]:
        """Paths of the connectomes that lie in one folder."""
        return frozenset(
            path
            for visits in self.flat.values()
            for files in visits.values()
            for path, _ in files
        )

    def _of_flat_folders(self) -> list[tuple[Path, ScanName]]:
        folders = [n for n in FLAT_FOLDERS if n in self.list_folder(self.folder)[0]]
        return [
            (self.folder / folder / name, parse_scan_name(name.partition(".")[0]))
            for folder in folders
            for name in self.list_folder(self.folder / folder)[1]
            if Path(name).suffix.lower() in FORMATS and not _LABELS.search(name)
        ]

    def _of_template(self, pattern: str) -> list[tuple[Path, ScanName]]:
        fields = re.findall(r"\{(.*?)\}", pattern)
        parts = PurePosixPath(pattern)
        if (
            not {"participant", "scan"} & set(fields)
            or len(set(fields)) < len(fields)
            or set(fields) - set(_FIELDS)
            or parts.is_absolute()
            or ".." in parts.parts
        ):
            raise ParameterError(
                "pattern of connectomes must be a path below the cohort's folder with "
                f"one {{participant}} or one {{scan}}, and {{session}} if need be, got "
                f"{pattern!r}."
            )
        wanted = re.sub(r"\\\*", "[^/]*?", re.escape(pattern))
        for name, group in _FIELDS.items():
            wanted = wanted.replace(re.escape(f"{{{name}}}"), group)
        found = []
        for path in sorted(self.folder.glob(re.sub(r"\{.*?\}", "*", pattern))):
            match = re.fullmatch(wanted, path.relative_to(self.folder).as_posix())
            if match and path.is_file():
                said = match.groupdict()
                scan = ScanName(said.get("participant", ""), said.get("session", ""))
                found.append(
                    (path, parse_scan_name(said["scan"]) if "scan" in said else scan)
                )
        return found

    @cached_property
    def freesurfer(self) -> dict[tuple[str, str], list[tuple[ScanName, Path]]]:
        """FreeSurfer subjects by person and visit; templates of people left out."""
        glob = self.patterns.get("freesurfer", "*")
        found: dict[tuple[str, str], list[tuple[ScanName, Path]]] = {}
        for root in self.roots if self.subjects is None else [self.subjects]:
            for name in self.list_folder(root)[0]:
                folder = root / name
                inside = self.list_folder(folder)
                subjects = {}
                if "base-tps" in (*inside[0], *inside[1]):
                    continue
                if "stats" in inside[0]:
                    subjects = {name: folder}
                elif name.startswith("sub-"):
                    subjects = {
                        f"{name}_{visit}": folder / visit
                        for visit in inside[0]
                        if visit.startswith("ses-")
                        and "stats" in self.list_folder(folder / visit)[0]
                    }
                for title, path in subjects.items():
                    fits = fnmatchcase(title, glob.removeprefix("!"))
                    if fits != glob.startswith("!"):
                        scan = parse_scan_name(title)
                        found.setdefault(scan.key, []).append((scan, path))
        return found

    def tables(self) -> list[Path]:
        """Return the tables that lie in the study's folders themselves."""
        roots = [*self.roots, *([self.subjects] if self.subjects else [])]
        return [
            root / name
            for root in roots
            for name in self.list_folder(root)[1]
            if Path(name).suffix.lower() in TABLE_SUFFIXES
        ]

    def connectome(self, scan: Scan, atlas: Atlas) -> Path | None:
        """Return the one connectome of a scan, None where there is none.

        Raises a CohortError where there is more than one.
        """
        given = self.patterns.get("connectome")
        found = [path for path in scan.files if path in self.flat_paths]
        if not found and "{" not in (given or ""):
            if given:
                found = _fitting(scan.files, [given])
            else:
                found = [
                    path
                    for path in _fitting(scan.files, CONNECTOME_PATTERNS)
                    if path.suffix.lower() in FORMATS
                ]
        if len(found) > 1 and given is None:
            found = _of_atlas(found, atlas)
        return _only(found, "connectome")

    def regions(
        self, scan: Scan, feature: str, atlas: Atlas
    ) -> tuple[Path | None, list[str]]:
        """Return a scan's table of regions of a feature, and those of other tracers.

        None where there is no such file; the left one where each side has one.
        Raises a CohortError where there is more than one.
        """
        given = self.patterns.get(feature)
        # PETPrep writes the reference beside the regions
        files = [
            path
            for path in scan.files
            if path.suffix.lower() in TABLE_SUFFIXES and "_ref-" not in path.name
        ]
        of_other = {} if given else {p: wrong_tracer(p.name, feature) for p in files}
        files = [path for path in files if not of_other.get(path)]
        for glob in [given] if given else get_measure(feature).files:
            found = _of_atlas(_fitting(files, [glob]), atlas)
            if found:
                right = {other_side(p) for p in found if _LEFT.search(p.name)}
                return _only([p for p in found if p not in right], feature), []
        return None, [
            f"{p.name} is of {other}" for p, other in of_other.items() if other
        ]


def _fitting(files: Iterable[Path], patterns: Sequence[str]) -> list[Path]:
    """Return the files that fit a pattern, of the name or of the end of the path.

    Patterns in lower case, as ours are, fit names in any case.
    """

    def fits(path: Path, glob: str) -> bool:
        name = str(path) if "/" in glob else path.name
        whole = f"*/{glob}" if "/" in glob else glob
        return fnmatchcase(name, whole) or fnmatchcase(name.lower(), whole)

    return [path for path in files if any(fits(path, glob) for glob in patterns)]


def _of_atlas(files: list[Path], atlas: Atlas) -> list[Path]:
    """Return the files whose names say the atlas; all where none does."""
    words = atlas.settings.get("file_words", [atlas.name.lower()])
    others = atlas.settings.get("other_words", [])
    fitting = [
        path
        for path in files
        if any(word in path.name.lower() for word in words)
        and not any(word in path.name.lower() for word in others)
    ]
    fitting = fitting or files
    # micapipe writes parts of its matrix beside the whole
    return [path for path in fitting if "full-connectome" in path.name] or fitting


def _only(found: list[Path], what: str) -> Path | None:
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise CohortError(
            f"{len(found)} files could be its {what}: {names}; choose by "
            f"pattern={{{what!r}: ...}} (--pattern)"
        )
    return found[0] if found else None
