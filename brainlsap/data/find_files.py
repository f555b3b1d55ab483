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
    "Compute_Connectivity/sc.npy",
)
# Folders with all connectomes of a study, looked into where no pattern is given.
FLAT_FOLDERS = ("connectomes", "connectivity", "matrices")
_LABELS = re.compile(r"labels(_list)?\.(txt|csv|tsv)$")
# Names that are those of folders and stay where they are.
FOLDER_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
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
        """Person and visit in the one spelling that names are compared by.

        Without `sub-` and `ses-`; ADNI's numbers with their underscores.
        """
        person = self.participant.strip().removeprefix("sub-")
        person = re.sub(r"^(?:ADNI)?(\d{3})S(\d{4,5})$", r"\1_S_\2", person)
        return person, self.session.strip().removeprefix("ses-")


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


def visit_order(session: str) -> tuple[object, ...]:
    """Return the key by which the visits of a person are sorted in time.

    >>> sorted(["ses-M12", "ses-M6", "bl"], key=visit_order)
    ['bl', 'ses-M6', 'ses-M12']
    """
    name = session.strip().removeprefix("ses-").lower()
    first = ("sc", "screening", "bl", "baseline", "init")
    rank = first.index(name) if name in first else len(first)
    parts = re.split(r"(\d+)", name)
    return rank, *((1, int(p), "") if p.isdecimal() else (0, 0, p) for p in parts if p)


class Scan(NamedTuple):
    """One scan of a cohort, and its files."""

    name: str
    key: tuple[str, str]
    """Person and visit in the spelling that names are compared by."""
    is_only: bool
    """Whether the person has no other scan."""
    files: tuple[Path, ...]


class StudyFiles:
    """An index of a study's files, by person and visit; each folder is listed once.

    Parameters
    ----------
    folder : Path
        Of the study.
    people : iterable of str
        Names of people, whose folders are looked into beside those named `sub-*`.
    derivatives : sequence of path
        Further data sets, each with `sub-*` or FreeSurfer subjects inside.
    subjects_dir : path, optional
        The only folder in which FreeSurfer subjects are looked for.
    pattern : str or mapping of str to str, optional
        Pattern of a connectome's file name, or a path with `{participant}`,
        `{session}`, `{scan}` below the folder; or patterns by `connectome`, name of a
        feature, and `freesurfer` (a leading `!` excludes).

    Attributes
    ----------
    files : dict of (person, visit) to list of Path
        The visit is empty for files outside `ses-*`.
    sessions : dict of person to (dict of visit to name)
        Visits that have a folder, or a connectome in one folder of all.
    subjects : dict of (person, visit) to list of (ScanName, Path)
        FreeSurfer subjects; templates of people left out.
    flat : set of Path
        Connectomes that lie in one folder.
    tables : list of Path
        Tables that lie in the study's folders themselves.
    """

    def __init__(
        self,
        folder: Path,
        people: Iterable[str] = (),
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
        self.folder, self.people = folder, set(people)
        self.subjects_dir = None if subjects_dir is None else Path(subjects_dir)
        given = [Path(place) for place in derivatives]
        absent = [p for p in (*given, self.subjects_dir) if p and not p.is_dir()]
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
        self.files: dict[tuple[str, str], list[Path]] = {}
        self.sessions: dict[str, dict[str, str]] = {}
        self.subjects: dict[tuple[str, str], list[tuple[ScanName, Path]]] = {}
        self.flat: set[Path] = set()
        self.tables: list[Path] = []
        for root in self.roots:
            self._walk(root)
        if self.subjects_dir is not None:
            self.subjects.clear()
            self._walk(self.subjects_dir)
        self._find_flat(self.patterns.get("connectome", ""))

    def _walk(self, root: Path) -> None:
        """List a root's people, FreeSurfer subjects and tables, six levels deep."""
        glob = self.patterns.get("freesurfer", "*")
        for place, folders, names in os.walk(root, followlinks=True):
            parts = Path(place).parts[len(root.parts) :]
            folders[:] = sorted(name for name in folders if name[0] != ".")
            for name in folders:
                if Path(f"{place}/{name}").is_symlink():
                    self._refuse_leaving(Path(place, name))
            if not parts:
                self.tables += [
                    root / name
                    for name in sorted(names)
                    if Path(name).suffix.lower() in TABLE_SUFFIXES and name[0] != "."
                ]
                continue
            is_visit = len(parts) == 2 and parts[1].startswith("ses-")
            is_subject = "stats" in folders and "base-tps" not in (*folders, *names)
            title = "_".join(parts)
            fits = fnmatchcase(title, glob.removeprefix("!")) != glob.startswith("!")
            if is_subject and fits and (len(parts) == 1 or is_visit):
                scan = parse_scan_name(title)
                self.subjects.setdefault(scan.key, []).append((scan, Path(place)))
            if "stats" in folders:
                folders[:] = [n for n in folders if n not in _FREESURFER]
            is_person = parts[0].startswith("sub-") or parts[0] in self.people
            of_freesurfer = "stats" in folders and root != self.folder
            if (
                root == self.subjects_dir
                or not is_person
                or (of_freesurfer and len(parts) == 1)
            ):
                below = parts[0].startswith("sub-") and "stats" not in folders
                folders[:] = [n for n in folders if below and n.startswith("ses-")]
                continue
            if len(parts) > _DEEPEST:
                folders.clear()
            session = parts[1] if len(parts) > 1 and parts[1][:4] == "ses-" else ""
            person, visit = ScanName(parts[0], session).key
            if session:
                self.sessions.setdefault(person, {}).setdefault(visit, session)
            known = self.files.setdefault((person, visit), [])
            known += [Path(place, name) for name in names if name[0] != "."]

    def _refuse_leaving(self, folder: Path) -> None:
        """Raise where a link leads out of the study.

        Who packs a cohort must not decide which folders of another machine are read.
        """
        if not Path(folder).is_symlink():
            return
        place = folder.resolve()
        known = [*self.roots, *([self.subjects_dir] if self.subjects_dir else [])]
        if not any(place.is_relative_to(root.resolve()) for root in known):
            raise CohortError(
                f"{folder} is a link that leads out of the cohort's folder, to "
                f"{place}, and is not followed; move the data there, or name the other "
                "data set by derivatives= (--derivatives)"
            )

    def _find_flat(self, pattern: str) -> None:
        """Find connectomes that lie in one folder, by a pattern with fields or not."""
        found: list[tuple[Path, ScanName]] = []
        if "{" not in pattern:
            for path in (p for n in FLAT_FOLDERS for p in (self.folder / n).glob("*")):
                is_matrix = path.suffix.lower() in FORMATS and path.name[0] != "."
                if is_matrix and not _LABELS.search(path.name):
                    found.append((path, parse_scan_name(path.name.partition(".")[0])))
        else:
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
                    "pattern of connectomes must be a path below the cohort's folder "
                    "with one {participant} or one {scan}, and {session} if need be, "
                    f"got {pattern!r}."
                )
            wanted = re.sub(r"\\\*", "[^/]*?", re.escape(pattern))
            for name, group in _FIELDS.items():
                wanted = wanted.replace(re.escape(f"{{{name}}}"), group)
            for path in self.folder.glob(re.sub(r"\{.*?\}", "*", pattern)):
                match = re.fullmatch(wanted, path.relative_to(self.folder).as_posix())
                if match and path.is_file():
                    said = match.groupdict()
                    scan = ScanName(
                        said.get("participant", ""), said.get("session", "")
                    )
                    scan = parse_scan_name(said["scan"]) if "scan" in said else scan
                    found.append((path, scan))
        for path, scan in sorted(found):
            person, visit = scan.key
            self.flat.add(path)
            self.files.setdefault((person, visit), []).append(path)
            if visit:
                self.sessions.setdefault(person, {}).setdefault(visit, scan.session)

    def of_scan(self, key: tuple[str, str], is_only: bool) -> tuple[Path, ...]:
        """Return all files of one scan, sorted.

        `is_only` says that the person has no other scan, so that a matrix without a
        visit in its name is of this one.
        """
        person, visit = key
        found, of_none = set(self.files.get(key, ())), self.files.get((person, ""), [])
        if visit and visit not in self.sessions.get(person, {}):
            # a folder that is named without ses-
            found |= {path for path in of_none if visit in path.parts[-4:-1]}
        if visit and is_only and not found & self.flat:
            found |= self.flat & set(of_none)
        return tuple(sorted(found))

    def connectome(self, scan: Scan, atlas: Atlas) -> Path | None:
        """Return the one connectome of a scan, None where there is none.

        Raises a CohortError where there is more than one.
        """
        given = self.patterns.get("connectome", "")
        flat = [path for path in scan.files if path in self.flat]
        if flat or "{" in given:
            return pick(flat, [("*",)], "connectome", given, atlas)
        files = [p for p in scan.files if given or p.suffix.lower() in FORMATS]
        return pick(files, [CONNECTOME_PATTERNS], "connectome", given, atlas)

    def regions(
        self, scan: Scan, feature: str, atlas: Atlas
    ) -> tuple[Path | None, list[str]]:
        """Return a scan's table of regions of a feature, and those of other tracers.

        None where there is no such file; the left one where each side has one.
        Raises a CohortError where there is more than one.
        """
        given = self.patterns.get(feature, "")
        # PETPrep writes the reference beside the regions
        tables = [
            path
            for path in scan.files
            if path.suffix.lower() in TABLE_SUFFIXES and "_ref-" not in path.name
        ]
        other = (
            {}
            if given
            else {p: wrong_tracer(p.name, feature) for p in tables if "trc-" in p.name}
        )
        right = {other_side(p) for p in tables if _LEFT.search(p.name)}
        files = [p for p in tables if not other.get(p) and p not in right]
        groups = [(glob,) for glob in get_measure(feature).files]
        found = pick(files, groups, feature, given, atlas)
        return found, [f"{p.name} is of {one}" for p, one in other.items() if one]


def pick(
    files: Sequence[Path],
    groups: Sequence[tuple[str, ...]],
    what: str,
    given: str,
    atlas: Atlas,
) -> Path | None:
    """Return the one file that fits the first group of patterns that any file fits.

    Patterns are of the name, or with `/` of the end of the path; ours, in contrast to
    one that is given, fit names in any case. Of several files, the one whose name says
    the atlas is taken. Raises a CohortError where more than one is left.
    """
    for globs in [(given,)] if given and "{" not in given else groups:
        found = [
            path
            for path in files
            for name in [path.name if given else path.name.lower()]
            if any(fnmatchcase(name, glob) for glob in globs)
            or any("/" in glob and path.match(glob) for glob in globs)
        ]
        if len(found) > 1 and not (given and what == "connectome"):
            words = atlas.settings.get("file_words", [atlas.name.lower()])
            others = atlas.settings.get("other_words", [])
            names = {path: path.name.lower() for path in found}
            fitting = [
                path
                for path, name in names.items()
                if any(word in name for word in words)
                and not any(word in name for word in others)
            ]
            found = fitting or found
            # micapipe writes parts of its matrix beside the whole
            found = [p for p in found if "full-connectome" in p.name] or found
        if len(found) > 1:
            listed = ", ".join(path.name for path in found)
            raise CohortError(
                f"{len(found)} files could be its {what}: {listed}; choose by "
                f"pattern={{{what!r}: ...}} (--pattern)"
            )
        if found:
            return found[0]
    return None
