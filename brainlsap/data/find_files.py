"""Find the files of every scan below a study's folder, each folder listed once.

Looked through are the study's folder, each data set in its `derivatives/`, and the
folders that the caller adds; in each of them `sub-X/[ses-Y/]`. FreeSurfer subjects
are found by the `stats` folder that they hold, and named `sub-X_ses-Y`, `PTID_date`,
`sub-X_ses-Y.long.base` or `ID_T1w`. Connectomes may also lie in one folder of all.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeVar

import pandas as pd

from brainlsap.atlas import Atlas
from brainlsap.data.connectomes import FORMATS
from brainlsap.data.id_columns import (
    NO_CHOICE,
    ChosenColumns,
    choose_id_column,
    find_chosen,
    find_saved_index,
    find_session_column,
)
from brainlsap.data.measures import get_measure, wrong_tracer
from brainlsap.data.tables import (
    MISSING_WORDS,
    TABLE_SUFFIXES,
    is_ditto_mark,
    is_formula_error,
    read_columns,
)
from brainlsap.exceptions import CohortError, FileFormatError, ParameterError
from brainlsap.text import listed

CONNECTOME_PATTERNS = (
    *("*connectivity.*", "*connectome*.*", "*relmat.*", "*_sc.*", "*desc-sc.*"),
    "Compute_Connectivity/sc.npy",
)
# Folders with all connectomes of a study, looked into where no pattern is given.
FLAT_FOLDERS = ("connectomes", "connectivity", "matrices")
_LABELS = re.compile(r"labels(_list)?\.(txt|csv|tsv)$")
# Files that describe visits, images and people, but are no data of a visit.
_BOOKKEEPING = re.compile(
    r".*_(sessions|scans)\.(tsv|csv|xlsx|json)|.+\.json|(README|CHANGES|LICENSE)(\.\w+)?"
    r"|Thumbs\.db|desktop\.ini",
    re.IGNORECASE,
)
_WITHOUT_IMAGES = ("beh", "pheno", "phenotype")  # folders of tests and questionnaires
_FREESURFER = {"label", "mri", "scripts", "surf", "tmp", "touch", "trash"}
_DEEPEST = 6
_SIDES = {"left": "right", "L": "R", "lh": "rh"}
_SIDES |= {right: left for left, right in _SIDES.items()}
SIDE_IN_NAME = re.compile(rf"(?:(?<=hemi-)|(?<=_)|^)({'|'.join(_SIDES)})(?=[_.])")
_FIELDS_TOGETHER = (["participant"], ["participant", "session"], ["scan"])
# Words for a person's first visit, in order of time.
FIRST_VISITS = ("sc", "screening", "bl", "baseline", "init", "pre")
_PTID = re.compile(r"(?P<person>(?:sub-)?\d{3}_S_\d{4,5})(?:[_-](?P<visit>.+))?")
# What follows begins with a letter, as entities and suffixes do: sub-01_2 and sub-01-2
# are other people than sub-01.
_BIDS = re.compile(
    r"(?P<person>sub-[A-Za-z0-9]+)(?:_(?P<visit>ses-[A-Za-z0-9]+))?"
    r"(?:(?:_(?!ses-)[A-Za-z]|\.).*)?"
)


Entry = TypeVar("Entry")
_ZEROS = re.compile(r"(?<!\d)0+(?=\d)|\.0$")


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


def bare_id(person: str) -> str:
    """Return an id in lower case, without zeros at the front of its numbers."""
    return _ZEROS.sub("", person.lower())


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
        match = pattern.fullmatch(name)
        if match:
            return ScanName(match["person"], match["visit"] or "", base)
    return ScanName(name, "", base)


class ScanRows(NamedTuple):
    """The rows of a table of scans.

    names : whose scan every row is; columns : the other columns, as text; id_column,
    session_column : heads of the columns that names are of.
    """

    names: list[ScanName]
    columns: pd.DataFrame
    id_column: str
    session_column: str | None = None


def read_rows(
    path: str | Path, sheet: str = "", chosen: ChosenColumns = NO_CHOICE
) -> ScanRows:
    """Read a table with a row for every scan: whose each is, and the other columns.

    `chosen` are the columns of ids and visits that the user named, where the table has
    them. Raises FileFormatError where the file is no table, no column names the scans,
    or two could, or rows do not name scans.
    """
    columns = read_columns(path, sheet)
    lines, missing_words = columns.lines, columns.missing_words
    saved_index = find_saved_index(columns)
    head = find_chosen(columns, chosen.id)
    if head is None:
        choice = choose_id_column(columns)
        if choice.head is None:
            candidates = listed(map(repr, choice.candidates), 5)
            if not candidates:
                candidates = f"none; the columns are {listed(map(repr, columns), 8)}"
            hint = ""
            if columns.comment_lines:
                line = columns.comment_lines[-1]
                hint = f" Line {line} begins with # and is a comment."
            raise FileFormatError(
                f"{choice.problem}. Columns that may be the ids of people: "
                f"{candidates}. Name the column by id_column= (--id), or give it the "
                f"head participant_id.{hint}",
                path=path,
            )
        head = choice.head
    texts = columns.pop(head)
    names = [parse_scan_name(text or "") for text in texts]
    missing_words_of_ids = missing_words.get(head, {})
    wrong = [
        f"row {lines[row]} ({text or missing_words_of_ids.get(row, 'empty')})"
        for row, (text, name) in enumerate(zip(texts, names, strict=True))
        if name.participant[:1] in ("", ".")
        or is_formula_error(text)
        or is_ditto_mark(text)
    ]
    if wrong:
        raise FileFormatError(
            f"{head or 'the first column'} must be the name of a subject in "
            "every row (cells that were merged are empty but the first); not so in "
            f"{listed(wrong)}.",
            path=path,
        )
    visits = find_chosen(columns, chosen.session) or find_session_column(columns)
    if visits:
        sessions = columns.pop(visits)
        failed_rows = [
            row for row, visit in enumerate(sessions) if is_formula_error(visit)
        ]
        if failed_rows:
            raise FileFormatError(
                f"{visits} must be the name of a visit, or empty",
                path=path,
                got=f"{sessions[failed_rows[0]]!r}, a formula that failed, in row "
                f"{lines[failed_rows[0]]}. Write the visit there.",
            )
        names_and_sessions = zip(names, sessions, strict=True)
        names = [
            one._replace(session=visit or one.session)
            for one, visit in names_and_sessions
        ]
    for index in {*saved_index} & {*columns}:
        columns.pop(index)  # the order of rows is no covariate
    table = pd.DataFrame(columns, dtype=object).rename_axis(columns=head)
    table.attrs[MISSING_WORDS] = missing_words
    return ScanRows(names, table, head, visits)


def visit_order(session: str) -> tuple[object, ...]:
    """Return the key by which the visits of a person are sorted in time.

    >>> sorted(["ses-M12", "ses-M6", "bl"], key=visit_order)
    ['bl', 'ses-M6', 'ses-M12']
    """
    name = session.strip().removeprefix("ses-").lower()
    rank = (*FIRST_VISITS, name).index(name)
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

    def entries(self, index: Mapping[str, Mapping[str, list[Entry]]]) -> list[Entry]:
        """Return what an index by person, and then by visit, has of the scan.

        What names no visit is of a person's only scan; a scan without a visit has all
        of its person.
        """
        person, visit = self.key
        entries_by_visit = index.get(person, {})
        if entries := entries_by_visit.get(visit):
            return entries
        if visit:
            return entries_by_visit.get("", []) if self.is_only else []
        return list(chain(*entries_by_visit.values()))


class StudyFiles:
    """An index of a study's files, by person and visit; each folder is listed once.

    Parameters
    ----------
    folder : Path
        Of the study.
    people : iterable of str or ScanName
        Names of people, whose folders are looked into beside those named `sub-*`; with
        visits, by which names that join the two (`P01_V2`) are taken apart.
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
        The visit is empty for files outside `ses-*`. Files that only describe others
        are left out: `*_sessions.tsv`, `*_scans.tsv`, `*.json`. The list may be empty.
    sessions : dict of person to (dict of visit to name)
        Visits that have a folder, or a connectome in one folder of all.
    subjects : dict of person to (dict of visit to list of (ScanName, Path))
        FreeSurfer subjects; templates of people left out.
    flat : set of Path
        Connectomes that lie in one folder.
    tables : list of Path
        Tables that lie in the study's folders themselves.
    longer : dict of str to str
        FreeSurfer subjects that are named by a person's id and more.
    """

    def __init__(
        self,
        folder: Path,
        people: Iterable[str | ScanName] = (),
        derivatives: Sequence[str | Path] = (),
        subjects_dir: str | Path | None = None,
        pattern: str | Mapping[str, str] | None = None,
    ) -> None:
        patterns = {"connectome": pattern} if isinstance(pattern, str) else pattern
        self.folder, self.patterns = folder, dict(patterns or {})
        self.longer = dict[str, str]()
        names = [ScanName(one) if isinstance(one, str) else one for one in people]
        self._people = {name.key[0]: name.participant for name in names}
        self._visits = {name.key[1].lower(): name.key[1] for name in names if name[1]}
        self.subjects_dir = None if subjects_dir is None else self.inside(subjects_dir)
        given = [self.inside(one) for one in derivatives]
        named = [*given, *filter(None, [self.subjects_dir])]
        if absent := [path for path in named if not path.is_dir()]:
            faults = [f"{path}: no such folder" for path in absent]
            raise CohortError("some folders that were named do not exist", faults)
        own = sorted(p for p in (folder / "derivatives").glob("*") if p.is_dir())
        # Clinica's CAPS has people below subjects/
        own += [p / "subjects" for p in (folder, *own) if (p / "subjects").is_dir()]
        # of a folder that was named twice the first name counts
        roots = {path.resolve(): path for path in reversed([folder, *own, *given])}
        self.files: dict[tuple[str, str], list[Path]] = {}
        self.sessions: dict[str, dict[str, str]] = {}
        self.subjects: dict[str, dict[str, list[tuple[ScanName, Path]]]] = {}
        self.tables: list[Path] = []
        found = [one for root in reversed(roots.values()) for one in self._walk(root)]
        if self.subjects_dir is not None:
            found = [one for one in found if one[1] is None]
            found += self._walk(self.subjects_dir)
        connectomes = self.patterns.get("connectome", "")
        usual = [f"{n}/{{scan}}.*" for n in FLAT_FOLDERS if (folder / n).is_dir()]
        flat = {
            path: scan
            for template in ([connectomes] if "{" in connectomes else usual)
            for path, scan in self._fit_template(template).items()
            if path.suffix.lower() in FORMATS and not _LABELS.search(path.name)
        }
        self.flat = set(flat)
        # by visits of files, too, names are taken apart; other numbers are of others
        visited = [*flat.values(), *(scan for scan, subject, _ in found if not subject)]
        self._visits |= {scan.key[1].lower(): scan.key[1] for scan in visited}
        self._visits.pop("", None)
        shapes = {re.sub(r"\d+", r"\\d+", re.escape(one)) for one in self._visits}
        visits = "|".join(sorted(shapes)) or "(?!)"
        joint = r"(.+)(?:[-_](?:ses-)?|(?<=\d)(?=[A-Za-z]))"
        self._joined = re.compile(f"{joint}({visits})", re.IGNORECASE)
        found += [(flat[path], None, [path]) for path in sorted(flat)]
        for scan, subject, paths in found:
            person, visit = self.key_of(scan)
            if subject is None:
                self.files.setdefault((person, visit), []).extend(paths)
                if visit:
                    scanned = self.sessions.setdefault(person, {})
                    scanned.setdefault(visit, scan.session or visit)
                continue
            if person not in self._people:
                # pipelines add to the names of subjects: P001_T1w, P001_V1_recon
                ends = [one.start() for one in re.finditer("_(?=[A-Za-z])", person)]
                starts = [self.key_of(ScanName(person[:end])) for end in ends[::-1]]
                longer = next((one for one in starts if one[0] in self._people), None)
                if longer is not None:
                    person, visit = longer[0], visit or longer[1]
                    self.longer[scan.participant] = self._people[person]
            runs = self.subjects.setdefault(person, {}).setdefault(visit, [])
            if (scan, subject) not in runs:
                runs.append((scan, subject))

    def key_of(self, name: ScanName) -> tuple[str, str]:
        """Return person and visit, also of a name that joins those of the people."""
        person, visit = name.key
        match = self._joined.fullmatch(person)
        if visit or person in self._people or not match:
            return person, visit
        spelt = self._visits.get(match[2].lower(), match[2])
        return (match[1], spelt) if match[1] in self._people else (person, "")

    def _walk(self, root: Path) -> Iterator[tuple[ScanName, Path | None, list[Path]]]:
        """Yield the FreeSurfer subjects of a root and the files of its people.

        Six levels deep, folder by folder. Tables in the root itself are listed.
        """
        glob = self.patterns.get("freesurfer", "*")
        for place, folders, inside in os.walk(root, followlinks=True):
            path = Path(place)
            parts = path.parts[len(root.parts) :]
            folders[:] = sorted(name for name in folders if name[0] != ".")
            names = sorted(name for name in inside if name[0] != ".")
            if not parts:
                paths = (path / name for name in names)
                self.tables += [p for p in paths if p.suffix.lower() in TABLE_SUFFIXES]
                continue
            is_person = ScanName(parts[0]).key[0] in self._people
            is_person |= parts[0].startswith("sub-")
            visit = parts[1] if len(parts) > 1 and parts[1][:4] == "ses-" else ""
            has_stats, scan = "stats" in folders, None
            subject = path if has_stats and parts[1:] in ((), (visit,)) else None
            if is_person and any(name.startswith("lh.aparc") for name in names):
                subject = path.parent if path.name == "stats" else path
                scan = ScanName(parts[0], visit, parse_scan_name(subject.name).base)
            if subject is not None and "base-tps" not in (*folders, *names):
                title = "_".join(subject.parts[len(root.parts) :])
                if fnmatchcase(title, glob.removeprefix("!")) != (glob[:1] == "!"):
                    yield scan or parse_scan_name(title), subject, []
            if has_stats:
                folders[:] = [name for name in folders if name not in _FREESURFER]
            is_subject = has_stats and root != self.folder and len(parts) == 1
            if root == self.subjects_dir or not is_person or is_subject:
                below = parts[0].startswith("sub-") and not has_stats
                folders[:] = [n for n in folders if below and n.startswith("ses-")]
                continue
            if len(parts) > _DEEPEST:
                folders.clear()
            data = [name for name in names if not _BOOKKEEPING.fullmatch(name)]
            data = [] if path.name in _WITHOUT_IMAGES else data
            yield ScanName(parts[0], visit), None, [path / name for name in data]

    def _fit_template(self, pattern: str) -> dict[Path, ScanName]:
        """Find connectomes by a path with fields, and read off whose they are."""
        fields = re.findall(r"\{(.*?)\}", pattern)
        parts = PurePosixPath(pattern)
        is_below = not parts.is_absolute() and ".." not in parts.parts
        if not is_below or sorted(fields) not in _FIELDS_TOGETHER:
            raise ParameterError(
                "pattern must be below the cohort's folder with one {participant} or "
                f"one {{scan}}, and {{session}} if need be, got {pattern!r}."
            )
        regex = re.sub(r"\\\*", "[^/]*?", re.escape(pattern))
        for name in fields:
            letters = "[^_/]+" if name == "session" else ".+?"
            regex = regex.replace(re.escape(f"{{{name}}}"), f"(?P<{name}>{letters})")
        scan_of_path = {}
        for path in self.folder.glob(re.sub(r"(\*|\{.*?\})+", "*", pattern)):
            match = re.fullmatch(regex, path.relative_to(self.folder).as_posix())
            if match and path.name[0] != "." and path.is_file():
                fields_of_path = match.groupdict()
                scan = (
                    parse_scan_name(fields_of_path.pop("scan"))
                    if "scan" in fields_of_path
                    else None
                )
                scan_of_path[path] = scan or ScanName(**fields_of_path)
        pattern_without_session = re.sub(r"[-_]\{session\}", "", pattern)
        if (
            pattern_without_session != pattern
        ):  # who came once may have no visit in the name
            other_files = self._fit_template(pattern_without_session).items()
            scan_of_path |= {
                path: x for path, x in other_files if x.key[0] in self._people
            }
        return scan_of_path

    def inside(self, path: str | Path) -> Path:
        """Return a path, which may also be relative to the study's folder."""
        inside = self.folder / path
        return inside if inside.exists() else Path(path)

    def of_scan(self, key: tuple[str, str], is_only: bool) -> tuple[Path, ...]:
        """Return all files of one scan, sorted.

        `is_only` says that the person has no other scan, so that a matrix without a
        visit in its name is of this one.
        """
        person, visit = key
        own_files, files_without_visit = (
            set(self.files.get(key, ())),
            self.files.get((person, ""), []),
        )
        if visit and visit not in self.sessions.get(person, {}):
            # a folder that is named without ses-
            own_files |= {
                path for path in files_without_visit if visit in path.parts[-4:-1]
            }
        if visit and is_only and not own_files & self.flat:
            own_files |= self.flat & set(files_without_visit)
        return tuple(sorted(own_files))

    def connectome(self, scan: Scan, atlas: Atlas) -> Path | None:
        """Return the one connectome of a scan, None where there is none.

        Raises a CohortError where there is more than one.
        """
        given = self.patterns.get("connectome", "")
        flat = [path for path in scan.files if path in self.flat]
        if flat or "{" in given:
            return pick(flat, ["*"], "connectome", "", atlas)
        files = [p for p in scan.files if given or p.suffix.lower() in FORMATS]
        return pick(files, [CONNECTOME_PATTERNS], "connectome", given, atlas)

    def regions(self, scan: Scan, feature: str, atlas: Atlas) -> Path | None:
        """Return a scan's table of regions of a feature, None where there is none.

        The left one where each side has one. Raises a CohortError where there is more
        than one.
        """
        given = self.patterns.get(feature, "")
        # PETPrep writes the reference beside the regions
        files = [
            path
            for path in scan.files
            if path.suffix.lower() in TABLE_SUFFIXES and "_ref-" not in path.name
            if given or "trc-" not in path.name or not wrong_tracer(path.name, feature)
        ]
        lefts = [
            p for p in files if (s := SIDE_IN_NAME.search(p.name)) and s[1][0] in "lL"
        ]
        rights = {other_side(path) for path in lefts}
        files = [path for path in files if path not in rights]
        return pick(files, get_measure(feature).files, feature, given, atlas)

    def fits_nothing(self, content: str, scans: Sequence[Scan]) -> str:
        """Say that a pattern fits no file of any scan, and what there is."""
        names = list(dict.fromkeys(path.name for scan in scans for path in scan.files))
        hint = f"their files are {listed(names, 5)}"
        if not names:
            hint = "no file is known to be theirs; where one folder has those of all, "
            hint += "a pattern says whose each is, such as 'sc/{participant}.txt'"
        return (
            f"{content}: the pattern {self.patterns[content]!r} (pattern=) fits no "
            f"file of any of {len(scans)} scans; {hint}"
        )


def choose_one(
    message: str, content: str, paths: Collection[Path], flag: str = ""
) -> CohortError:
    """Return the fault that several files could be a scan's, and how to choose.

    Files of different names are chosen by a pattern of names, files of one name by
    the folders in which they differ.
    """
    if len({path.name for path in paths}) < len(paths):
        roots = _different_folders(paths)
        if content == "freesurfer":
            folders = " or ".join(map(str, roots))
            return CohortError(
                f"{message}; choose their folder by subjects_dir= ({folders})"
            )
        patterns = [_pattern_below(root, path) for root, path in roots.items()]
        patterns = [pattern for pattern in patterns if pattern]
    else:
        patterns = ["*_x*"]
    flag = "--pattern" if content == "connectome" else flag
    key = content if re.fullmatch(r"[A-Za-z0-9_-]+", content) else f'"{content}"'
    choices = [
        f"{flag} {pattern!r}" if flag else f"pattern = {{{key} = {pattern!r}}}"
        for pattern in patterns
    ]
    instruction = " or ".join(choices) + " in --config" * (not flag)
    instruction += f" (in Python pattern={{{content!r}: {patterns[0]!r}}})"
    if content == "freesurfer":
        instruction += "; visits stand in a column visit of the table of people"
    names = (
        paths
        if len(patterns) > 1 or content == "freesurfer"
        else [p.name for p in paths]
    )
    return CohortError(
        f"{message}; choose by {instruction}", got=listed(map(str, names), 5)
    )


def _different_folders(paths: Collection[Path]) -> dict[Path, Path]:
    """Return the folders in which paths of one name differ, and the path in each."""
    n_same = 1
    while len({path.parts[-n_same - 1 :] for path in paths}) < len(paths):
        n_same += 1
    return {path.parents[n_same - 1]: path for path in paths}


def _pattern_below(root: Path, path: Path) -> str:
    """Return a pattern of files like this one of any scan, in one folder.

    "" where the folder has no name, as ".".
    """
    folders = path.relative_to(root).parts[:-1]
    ending = re.sub(r"^(?:(?:sub|ses)-[^_]+_)+", "", path.name)
    name = f"*{path.suffix}" if ending == path.name else f"*_{ending}"
    return "/".join([root.name, *["*"] * len(folders), name]) if root.name else ""


def other_side(path: Path) -> Path | None:
    """Return the file of the other hemisphere beside a file of one, if there is one."""
    other = path.with_name(SIDE_IN_NAME.sub(lambda said: _SIDES[said[1]], path.name))
    return other if other != path and other.is_file() else None


def pick(
    files: Sequence[Path],
    groups: Sequence[str | tuple[str, ...]],
    content: str,
    given: str,
    atlas: Atlas,
    flag: str = "",
) -> Path | None:
    """Return the one file that fits the first pattern, or group, that any file fits.

    Patterns are of the name, or with `/` of the end of the path; ours, in contrast to
    one that is given, fit names in any case. Of several files, the one whose name says
    the atlas is taken. Raises a CohortError where more than one is left.
    """

    def fits(path: Path, glob: str) -> bool:
        name = path.name if given else path.name.lower()
        return fnmatchcase(name, glob) or ("/" in glob and path.match(glob))

    def says(path: Path, file_words: Iterable[str]) -> bool:
        return any(word in path.name.lower() for word in file_words)

    fitting_files = list[Path]()
    for group in [given] if given else groups:
        globs = (group,) if isinstance(group, str) else group
        fitting_files = fitting_files or [
            p for p in files if any(fits(p, glob) for glob in globs)
        ]
    if len(fitting_files) > 1:
        file_words = atlas.settings.get("file_words", [atlas.name.lower()])
        other_words = atlas.settings.get("other_words", [])
        fitting_files = [
            p for p in fitting_files if says(p, file_words) and not says(p, other_words)
        ] or fitting_files
        # micapipe writes parts of its matrix beside the whole
        fitting_files = [
            p for p in fitting_files if "full-connectome" in p.name
        ] or fitting_files
    if len(fitting_files) > 1:
        message = f"{len(fitting_files)} files could be its {content}"
        raise choose_one(message, content, fitting_files, flag)
    return fitting_files[0] if fitting_files else None
