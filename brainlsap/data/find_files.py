"""Find the files of every scan below a study's folder, each folder listed once.

The search covers the study's folder, each data set in its `derivatives/`, and the
folders that the caller adds; in each of them `sub-X/[ses-Y/]`. FreeSurfer subjects are
recognised by their `stats` folder, and named `sub-X_ses-Y`, `PTID_date`,
`sub-X_ses-Y.long.base` or `ID_T1w`. Connectomes may also lie in one folder for all
scans.
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
    TABLE_SUFFIXES,
    MissingWords,
    TableColumns,
    is_ditto_mark,
    is_formula_error,
    read_columns,
)
from brainlsap.exceptions import CohortError, FileFormatError, ParameterError
from brainlsap.text import listed, option_text

CONNECTOME_PATTERNS = (
    *("*connectivity.*", "*connectome*.*", "*relmat.*", "*_sc.*", "*desc-sc.*"),
    "Compute_Connectivity/sc.npy",
)
# Folders with all connectomes of a study, searched where no pattern is given.
FLAT_FOLDERS = ("connectomes", "connectivity", "matrices")
_LABEL_LIST = re.compile(r"labels(_list)?\.(txt|csv|tsv)$")
# Files that describe visits, images and participants, but are no data of a visit.
_BOOKKEEPING = re.compile(
    r".*_(sessions|scans)\.(tsv|csv|xlsx|json)|.+\.json|(README|CHANGES|LICENSE)(\.\w+)?"
    r"|Thumbs\.db|desktop\.ini",
    re.IGNORECASE,
)
_BEHAVIOUR_FOLDERS = ("beh", "pheno", "phenotype")  # tests and questionnaires
_FREESURFER_FOLDERS = {"label", "mri", "scripts", "surf", "tmp", "touch", "trash"}
# Maximum number of folders between a data set and a file.
_MAX_DEPTH = 6
_OPPOSITE_SIDE = {"left": "right", "L": "R", "lh": "rh"}
_OPPOSITE_SIDE |= {right: left for left, right in _OPPOSITE_SIDE.items()}
SIDE_IN_NAME = re.compile(
    rf"(?:(?<=hemi-)|(?<=_)|^)({'|'.join(_OPPOSITE_SIDE)})(?=[_.])"
)
# Fields that the pattern of a path may have, sorted.
_PATTERN_FIELDS = (["participant"], ["participant", "session"], ["scan"])
# Words for a participant's first visit, in order of time.
FIRST_VISITS = ("sc", "screening", "bl", "baseline", "init", "pre")
_PTID = re.compile(r"(?P<person>(?:sub-)?\d{3}_S_\d{4,5})(?:[_-](?P<visit>.+))?")
# Entities and suffixes begin with a letter: sub-01_2 and sub-01-2 are not the
# participant sub-01.
_BIDS = re.compile(
    r"(?P<person>sub-[A-Za-z0-9]+)(?:_(?P<visit>ses-[A-Za-z0-9]+))?"
    r"(?:(?:_(?!ses-)[A-Za-z]|\.).*)?"
)

# Zeros at the front of a number, and the ".0" of an integer that was read as a float.
_ZEROS = re.compile(r"(?<!\d)0+(?=\d)|\.0$")


Entry = TypeVar("Entry")


class ScanName(NamedTuple):
    """The participant, the visit and the kind of FreeSurfer run that a name gives."""

    participant: str
    session: str = ""
    base: str = ""
    """Template of a longitudinal run, empty for a cross-sectional one."""

    @property
    def key(self) -> tuple[str, str]:
        """Participant and visit in the spelling by which names are compared.

        Without `sub-` and `ses-`; ADNI's numbers with their underscores.
        """
        person = self.participant.strip().removeprefix("sub-")
        person = re.sub(r"^(?:ADNI)?(\d{3})S(\d{4,5})$", r"\1_S_\2", person)
        return person, self.session.strip().removeprefix("ses-")


def bare_id(person: str) -> str:
    """Return an id in lower case, without zeros at the front of its numbers."""
    return _ZEROS.sub("", person.lower())


def parse_scan_name(text: str) -> ScanName:
    """Split the name of a scan, of its folder or of its row into its parts.

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

    Parameters
    ----------
    names : list of ScanName
        The scan of each row.
    columns : DataFrame
        The other columns, as text.
    id_column, session_column : str
        Heads of the columns that `names` are from.
    missing_words : MissingWords
        Those of :class:`.TableColumns`.
    """

    names: list[ScanName]
    columns: pd.DataFrame
    id_column: str
    session_column: str | None
    missing_words: MissingWords


def read_rows(
    path: str | Path, sheet: str = "", chosen_columns: ChosenColumns = NO_CHOICE
) -> ScanRows:
    """Read a table with a row for every scan.

    `chosen_columns` are those of ids and visits that the user named, if the table has
    them. Raises FileFormatError where the file is no table, no column names the scans,
    or two could, or rows do not name scans.
    """
    columns = read_columns(path, sheet)
    id_column = find_chosen(columns, chosen_columns.id)
    if id_column is None:
        id_column = _choose_id_column(path, columns)
    saved_index = find_saved_index(columns)
    names = _take_scan_names(path, columns, id_column)
    session_column = find_chosen(
        columns, chosen_columns.session
    ) or find_session_column(columns)
    if session_column:
        sessions = _take_sessions(path, columns, session_column)
        names = [
            name._replace(session=session or name.session)
            for name, session in zip(names, sessions, strict=True)
        ]
    for index in {*saved_index} & {*columns}:
        columns.pop(index)  # the order of rows is no covariate
    table = pd.DataFrame(columns, dtype=object).rename_axis(columns=id_column)
    return ScanRows(names, table, id_column, session_column, columns.missing_words)


def _choose_id_column(path: str | Path, columns: TableColumns) -> str:
    """Return the column of ids; raise where none is, or several could be."""
    choice = choose_id_column(columns)
    if choice.head is not None:
        return choice.head
    candidates = listed(map(repr, choice.candidates), 5)
    if not candidates:
        candidates = f"none; the columns are {listed(map(repr, columns), 8)}"
    hint = ""
    if columns.comment_lines:
        line = columns.comment_lines[-1]
        hint = f" Line {line} begins with # and is a comment."
    raise FileFormatError(
        f"{choice.problem}. Columns that may be the ids of people: "
        f"{candidates}. Name the column by {option_text('id_column')}, or give it the "
        f"head participant_id.{hint}",
        path=path,
    )


def _take_scan_names(
    path: str | Path, columns: TableColumns, id_column: str
) -> list[ScanName]:
    """Remove the column of ids, and return its names; raise where a row has none."""
    texts = columns.pop(id_column)
    names = [parse_scan_name(text or "") for text in texts]
    missing_words = columns.missing_words.get(id_column, {})
    unnamed_rows = [
        f"row {columns.lines[row]} ({text or missing_words.get(row, 'empty')})"
        for row, (text, name) in enumerate(zip(texts, names, strict=True))
        if name.participant[:1] in ("", ".")
        or is_formula_error(text)
        or is_ditto_mark(text)
    ]
    if unnamed_rows:
        raise FileFormatError(
            f"{id_column or 'the first column'} must be the name of a subject "
            "in every row (cells that were merged are empty but the first); not so in "
            f"{listed(unnamed_rows)}.",
            path=path,
        )
    return names


def _take_sessions(
    path: str | Path, columns: TableColumns, session_column: str
) -> list[str | None]:
    """Remove the column of visits, and return its cells; raise at failed formulas."""
    sessions = columns.pop(session_column)
    for row, session in enumerate(sessions):
        if is_formula_error(session):
            raise FileFormatError(
                f"{session_column} must be the name of a visit, or empty",
                path=path,
                got=f"{session!r}, a formula that failed, in row "
                f"{columns.lines[row]}. Write the visit there.",
            )
    return sessions


def visit_order(session: str) -> tuple[object, ...]:
    """Return the key by which the visits of a participant are sorted in time.

    >>> sorted(["ses-M12", "ses-M6", "bl"], key=visit_order)
    ['bl', 'ses-M6', 'ses-M12']
    """
    name = session.strip().removeprefix("ses-").lower()
    rank = (*FIRST_VISITS, name).index(name)
    words_and_numbers = filter(None, re.split(r"(\d+)", name))
    return rank, *(
        (1, int(text), "") if text.isdecimal() else (0, 0, text)
        for text in words_and_numbers
    )


class Scan(NamedTuple):
    """One scan of a cohort, and its files."""

    name: str
    key: tuple[str, str]
    """Participant and visit in the spelling by which names are compared."""
    is_only: bool
    """Whether the participant has no other scan."""
    files: tuple[Path, ...]

    def entries(self, index: Mapping[str, Mapping[str, list[Entry]]]) -> list[Entry]:
        """Return the entries of the scan in an index by participant, then by visit.

        Entries without a visit belong to a participant's only scan. A scan without a
        visit has all entries of its participant.
        """
        person, visit = self.key
        entries_by_visit = index.get(person, {})
        entries = entries_by_visit.get(visit)
        if entries:
            return entries
        if not visit:
            return list(chain(*entries_by_visit.values()))
        return entries_by_visit.get("", []) if self.is_only else []


class _FoundFiles(NamedTuple):
    """Files of one scan in one folder, or one FreeSurfer subject.

    `subject` is the folder of the FreeSurfer subject, whose files are not listed.
    """

    scan: ScanName
    subject: Path | None
    files: list[Path]


class StudyFiles:
    """An index of a study's files by participant and visit. Lists each folder once.

    Parameters
    ----------
    folder : Path
        Of the study.
    people : iterable of str or ScanName
        Names of participants, whose folders are searched besides those named `sub-*`.
        Their visits are used to split names that join the two (`P01_V2`).
    derivatives : sequence of path
        Further data sets, each with `sub-*` or FreeSurfer subjects inside.
    subjects_dir : path, optional
        The only folder in which FreeSurfer subjects are searched.
    pattern : str or mapping of str to str, optional
        Pattern of a connectome's file name, or a path with `{participant}`,
        `{session}`, `{scan}` below the folder; or patterns by `connectome`, name of a
        feature, and `freesurfer` (a leading `!` excludes).

    Attributes
    ----------
    files : dict of (participant, visit) to list of Path
        The visit is empty for files outside `ses-*`. Files that only describe others
        are left out: `*_sessions.tsv`, `*_scans.tsv`, `*.json`. The list may be empty.
    sessions : dict of participant to (dict of visit to name)
        Visits that have a folder, or a connectome in one folder for all scans.
    subjects : dict of participant to (dict of visit to list of (ScanName, Path))
        FreeSurfer subjects, without the templates of longitudinal runs.
    flat : set of Path
        Connectomes that lie in one folder for all scans.
    tables : list of Path
        Tables that lie in the folder of a data set itself.
    subject_aliases : dict of str to str
        FreeSurfer subjects whose name is a participant's id and more, to this id.
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
        self.folder = folder
        self.patterns = dict(patterns or {})
        scan_names = [ScanName(x) if isinstance(x, str) else x for x in people]
        self._people = {name.key[0]: name.participant for name in scan_names}
        self.subjects_dir = None
        if subjects_dir is not None:
            self.subjects_dir = self.resolve_path(subjects_dir)
        added_folders = [self.resolve_path(path) for path in derivatives]
        self._check_folders([*added_folders, *filter(None, [self.subjects_dir])])
        self.files: dict[tuple[str, str], list[Path]] = {}
        self.sessions: dict[str, dict[str, str]] = {}
        self.subjects: dict[str, dict[str, list[tuple[ScanName, Path]]]] = {}
        self.subject_aliases = dict[str, str]()
        self.tables: list[Path] = []
        all_found = self._walk_all(self._data_sets(added_folders))
        scan_of_flat = self._find_flat_connectomes()
        self.flat = set(scan_of_flat)
        # of two spellings of a visit, that of the files counts
        file_scans = [
            found_files.scan for found_files in all_found if found_files.subject is None
        ]
        visit_names = [*scan_names, *scan_of_flat.values(), *file_scans]
        self._visits = {name.key[1].lower(): name.key[1] for name in visit_names}
        self._visits.pop("", None)
        self._joined_name = self._compile_joined_name()
        all_found += [
            _FoundFiles(scan_of_flat[path], None, [path])
            for path in sorted(scan_of_flat)
        ]
        for found_files in all_found:
            if found_files.subject is None:
                self._add_files(found_files.scan, found_files.files)
            else:
                self._add_subject(found_files.scan, found_files.subject)

    @staticmethod
    def _check_folders(folders: Iterable[Path]) -> None:
        """Raise where folders that the user named do not exist."""
        absent_folders = [path for path in folders if not path.is_dir()]
        if absent_folders:
            faults = [f"{path}: no such folder" for path in absent_folders]
            raise CohortError("some folders that were named do not exist", faults)

    def _data_sets(self, added_folders: Sequence[Path]) -> list[Path]:
        """Return the folders that hold folders of participants, each once."""
        derivatives = self.folder / "derivatives"
        data_sets = sorted(path for path in derivatives.glob("*") if path.is_dir())
        # Clinica's CAPS has its participants below subjects/
        for path in (self.folder, *data_sets):
            if (path / "subjects").is_dir():
                data_sets.append(path / "subjects")
        # of several names of a folder the first counts
        all_folders = [self.folder, *data_sets, *added_folders]
        by_real_path = {path.resolve(): path for path in reversed(all_folders)}
        return list(reversed(by_real_path.values()))

    def _walk_all(self, data_sets: Iterable[Path]) -> list[_FoundFiles]:
        """Return the files of all data sets; with `subjects_dir` its subjects only."""
        all_found = [
            found_files for root in data_sets for found_files in self._walk(root)
        ]
        if self.subjects_dir is not None:
            all_found = [
                found_files for found_files in all_found if found_files.subject is None
            ]
            all_found += self._walk(self.subjects_dir)
        return all_found

    def _find_flat_connectomes(self) -> dict[Path, ScanName]:
        """Return the connectomes in one folder for all scans, and the scan of each."""
        pattern = self.patterns.get("connectome", "")
        templates = [pattern]
        if "{" not in pattern:
            templates = [
                f"{name}/{{scan}}.*"
                for name in FLAT_FOLDERS
                if (self.folder / name).is_dir()
            ]
        return {
            path: scan
            for template in templates
            for path, scan in self._fit_template(template).items()
            if path.suffix.lower() in FORMATS and not _LABEL_LIST.search(path.name)
        }

    def _compile_joined_name(self) -> re.Pattern[str]:
        """Return the pattern of names that join a participant and a visit.

        The visit is one of the study's, or differs from one only in its number.
        """
        shapes = {re.sub(r"\d+", r"\\d+", re.escape(x)) for x in self._visits}
        visit_pattern = "|".join(sorted(shapes)) or "(?!)"
        participant_pattern = r"(.+)(?:[-_](?:ses-)?|(?<=\d)(?=[A-Za-z]))"
        return re.compile(f"{participant_pattern}({visit_pattern})", re.IGNORECASE)

    def _add_files(self, scan: ScanName, paths: Sequence[Path]) -> None:
        """Add files of a scan, and its visit."""
        person, visit = self.key_of(scan)
        self.files.setdefault((person, visit), []).extend(paths)
        if visit:
            sessions = self.sessions.setdefault(person, {})
            sessions.setdefault(visit, scan.session or visit)

    def _add_subject(self, scan: ScanName, subject: Path) -> None:
        """Add a FreeSurfer subject, which may be named by more than an id."""
        person, visit = self.key_of(scan)
        if person not in self._people:
            # pipelines add to the names of subjects: P001_T1w, P001_V1_recon
            ends = [match.start() for match in re.finditer("_(?=[A-Za-z])", person)]
            for end in reversed(ends):
                id_person, id_visit = self.key_of(ScanName(person[:end]))
                if id_person in self._people:
                    person = id_person
                    visit = visit or id_visit
                    self.subject_aliases[scan.participant] = self._people[person]
                    break
        runs = self.subjects.setdefault(person, {}).setdefault(visit, [])
        if (scan, subject) not in runs:
            runs.append((scan, subject))

    def key_of(self, name: ScanName) -> tuple[str, str]:
        """Return participant and visit, also of a name that joins the two."""
        person, visit = name.key
        match = self._joined_name.fullmatch(person)
        if visit or person in self._people or not match:
            return person, visit
        participant, visit_text = match.groups()
        if participant not in self._people:
            return person, ""
        return participant, self._visits.get(visit_text.lower(), visit_text)

    def _walk(self, root: Path) -> Iterator[_FoundFiles]:
        """Yield the FreeSurfer subjects and the files of participants in a data set.

        Folders are listed to a depth of six. Tables in the root itself are added to
        `tables`.
        """
        for folder, folder_names, file_names in os.walk(root, followlinks=True):
            path = Path(folder)
            parts = path.parts[len(root.parts) :]
            # in place, so that os.walk goes on with these folders only
            folder_names[:] = sorted(name for name in folder_names if name[0] != ".")
            files = sorted(name for name in file_names if name[0] != ".")
            if not parts:
                tables = (path / name for name in files)
                self.tables += [
                    table for table in tables if table.suffix.lower() in TABLE_SUFFIXES
                ]
                continue
            found_subject = self._find_subject(root, path, folder_names, files)
            if found_subject is not None:
                yield found_subject
            has_stats = "stats" in folder_names
            if has_stats:
                folder_names[:] = [
                    name for name in folder_names if name not in _FREESURFER_FOLDERS
                ]
            is_subject = has_stats and root != self.folder and len(parts) == 1
            is_participant = self._is_participant_folder(parts[0])
            if root == self.subjects_dir or not is_participant or is_subject:
                may_have_visits = parts[0].startswith("sub-") and not has_stats
                folder_names[:] = [
                    name
                    for name in folder_names
                    if may_have_visits and name.startswith("ses-")
                ]
                continue
            if len(parts) > _MAX_DEPTH:
                folder_names.clear()
            if path.name in _BEHAVIOUR_FOLDERS:
                files = []
            data_files = [path / n for n in files if not _BOOKKEEPING.fullmatch(n)]
            yield _FoundFiles(ScanName(parts[0], _visit_of(parts)), None, data_files)

    def _is_participant_folder(self, name: str) -> bool:
        """Return whether a folder of this name holds the files of a participant."""
        return ScanName(name).key[0] in self._people or name.startswith("sub-")

    def _find_subject(
        self,
        root: Path,
        path: Path,
        folder_names: Sequence[str],
        file_names: Sequence[str],
    ) -> _FoundFiles | None:
        """Return the FreeSurfer subject that a folder with these contents belongs to.

        The folder holds `stats`, or the statistics themselves. Templates of
        longitudinal runs, and subjects that the pattern excludes, do not count.
        """
        parts = path.parts[len(root.parts) :]
        visit = _visit_of(parts)
        scan = None
        subject = None
        if "stats" in folder_names and parts[1:] in ((), (visit,)):
            subject = path
        has_statistics = any(name.startswith("lh.aparc") for name in file_names)
        if has_statistics and self._is_participant_folder(parts[0]):
            subject = path.parent if path.name == "stats" else path
            scan = ScanName(parts[0], visit, parse_scan_name(subject.name).base)
        if subject is None or "base-tps" in (*folder_names, *file_names):
            return None
        name = "_".join(subject.parts[len(root.parts) :])
        pattern = self.patterns.get("freesurfer", "*")
        is_excluding = pattern[:1] == "!"
        if fnmatchcase(name, pattern.removeprefix("!")) == is_excluding:
            return None
        return _FoundFiles(scan or parse_scan_name(name), subject, [])

    def _fit_template(self, pattern: str) -> dict[Path, ScanName]:
        """Find connectomes by a path with fields, and read the scan of each from it."""
        fields = re.findall(r"\{(.*?)\}", pattern)
        pattern_path = PurePosixPath(pattern)
        is_below = not pattern_path.is_absolute() and ".." not in pattern_path.parts
        if not is_below or sorted(fields) not in _PATTERN_FIELDS:
            raise ParameterError(
                "pattern must be below the cohort's folder with one {participant} or "
                f"one {{scan}}, and {{session}} if need be, got {pattern!r}."
            )
        path_regex = re.sub(r"\\\*", "[^/]*?", re.escape(pattern))
        for name in fields:
            letters = "[^_/]+" if name == "session" else ".+?"
            path_regex = path_regex.replace(
                re.escape(f"{{{name}}}"), f"(?P<{name}>{letters})"
            )
        scan_of_path = dict[Path, ScanName]()
        for path in self.folder.glob(re.sub(r"(\*|\{.*?\})+", "*", pattern)):
            match = re.fullmatch(path_regex, path.relative_to(self.folder).as_posix())
            if not match or path.name[0] == "." or not path.is_file():
                continue
            values = match.groupdict()
            if "scan" in values:
                scan_of_path[path] = parse_scan_name(values["scan"])
            else:
                scan_of_path[path] = ScanName(**values)
        # participants with one visit may have no visit in the name
        sessionless_pattern = re.sub(r"[-_]\{session\}", "", pattern)
        if sessionless_pattern != pattern:
            for path, scan in self._fit_template(sessionless_pattern).items():
                if scan.key[0] in self._people:
                    scan_of_path[path] = scan
        return scan_of_path

    def resolve_path(self, path: str | Path) -> Path:
        """Return a path, relative to the study's folder where it exists there."""
        study_path = self.folder / path
        return study_path if study_path.exists() else Path(path)

    def of_scan(self, key: tuple[str, str], is_only: bool) -> tuple[Path, ...]:
        """Return all files of one scan, sorted.

        `is_only` says that the participant has no other scan, so that a matrix without
        a visit in its name belongs to this scan.
        """
        person, visit = key
        scan_files = set(self.files.get(key, ()))
        visitless_files = self.files.get((person, ""), [])
        if visit and visit not in self.sessions.get(person, {}):
            # the folder of a visit may be named without ses-
            scan_files |= {
                path for path in visitless_files if visit in path.parts[-4:-1]
            }
        if visit and is_only and not scan_files & self.flat:
            scan_files |= self.flat & set(visitless_files)
        return tuple(sorted(scan_files))

    def connectome(self, scan: Scan, atlas: Atlas) -> Path | None:
        """Return the one connectome of a scan, None where there is none.

        Raises a CohortError where there is more than one.
        """
        pattern = self.patterns.get("connectome", "")
        flat_files = [path for path in scan.files if path in self.flat]
        if flat_files or "{" in pattern:
            return choose_file(flat_files, ["*"], "connectome", "", atlas)
        files = [
            path for path in scan.files if pattern or path.suffix.lower() in FORMATS
        ]
        return choose_file(files, [CONNECTOME_PATTERNS], "connectome", pattern, atlas)

    def regions(self, scan: Scan, feature: str, atlas: Atlas) -> Path | None:
        """Return a scan's table of regions of a feature, None where there is none.

        The left one where each side has one. Raises a CohortError where there is more
        than one.
        """
        pattern = self.patterns.get(feature, "")
        # PETPrep writes a table of the reference region beside that of the regions
        files = [
            path
            for path in scan.files
            if path.suffix.lower() in TABLE_SUFFIXES and "_ref-" not in path.name
            if pattern
            or "trc-" not in path.name
            or not wrong_tracer(path.name, feature)
        ]
        left_files = list[Path]()
        for path in files:
            side = SIDE_IN_NAME.search(path.name)
            if side and side[1][0] in "lL":
                left_files.append(path)
        right_files = {other_side(path) for path in left_files}
        files = [path for path in files if path not in right_files]
        return choose_file(files, get_measure(feature).files, feature, pattern, atlas)

    def unmatched_pattern_message(self, feature: str, scans: Sequence[Scan]) -> str:
        """Return the message that a pattern fits no file of any scan.

        `feature` is a key of `patterns`.
        """
        names = list(dict.fromkeys(path.name for scan in scans for path in scan.files))
        files = f"their files are {listed(names, 5)}"
        if not names:
            files = (
                "they have no files. Where one folder has the files of all scans, a "
                "pattern names the participant, for example 'sc/{participant}.txt'"
            )
        return (
            f"{feature}: the pattern {self.patterns[feature]!r} "
            f"({option_text('pattern')}) fits no file of any of {len(scans)} scans; "
            f"{files}"
        )


def _visit_of(parts: Sequence[str]) -> str:
    """Return the folder of a visit, the second of a path, "" where there is none."""
    has_visit = len(parts) > 1 and parts[1].startswith("ses-")
    return parts[1] if has_visit else ""


def ambiguity_error(
    problem: str, feature: str, paths: Collection[Path], flag: str = ""
) -> CohortError:
    """Return the error that several files could be a scan's; it says how to choose.

    Files of different names are chosen by a pattern of names, files of one name by the
    folders in which they differ.

    Parameters
    ----------
    problem : str
        The first part of the message.
    feature : str
        The key of the pattern: `connectome`, `freesurfer`, or a feature.
    paths : collection of Path
        The files.
    flag : str
        The option of the command line that takes a pattern, if any.
    """
    have_same_names = len({path.name for path in paths}) < len(paths)
    patterns = ["*_x*"]
    if have_same_names:
        path_in_folder = _different_folders(paths)
        if feature == "freesurfer":
            folders = " or ".join(map(str, path_in_folder))
            return CohortError(
                f"{problem}; choose their folder by {option_text('subjects_dir')} "
                f"({folders})"
            )
        patterns = [_pattern_below(*item) for item in path_in_folder.items()]
        patterns = [pattern for pattern in patterns if pattern]
    flag = "--pattern" if feature == "connectome" else flag
    advice = f"choose by {_format_patterns(patterns, feature, flag)}"
    if feature == "freesurfer":
        advice += "; visits belong into a column visit of the table of participants"
    names = [str(path) for path in paths]
    if len(patterns) <= 1 and feature != "freesurfer":
        names = [path.name for path in paths]
    return CohortError(f"{problem}; {advice}", got=listed(names, 5))


def _format_patterns(patterns: Sequence[str], feature: str, flag: str) -> str:
    """Return patterns as the command line (or --config) and as Python take them."""
    in_python = f"(in Python pattern={{{feature!r}: {patterns[0]!r}}})"
    if flag:
        options = [f"{flag} {pattern!r}" for pattern in patterns]
        return f"{' or '.join(options)} {in_python}"
    is_bare_key = re.fullmatch(r"[A-Za-z0-9_-]+", feature)  # of TOML
    key = feature if is_bare_key else f'"{feature}"'
    lines = [f"pattern = {{{key} = {pattern!r}}}" for pattern in patterns]
    return f"{' or '.join(lines)} in --config {in_python}"


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
    n_folders = len(path.relative_to(root).parts) - 1
    ending = re.sub(r"^(?:(?:sub|ses)-[^_]+_)+", "", path.name)
    file_pattern = f"*{path.suffix}" if ending == path.name else f"*_{ending}"
    if not root.name:
        return ""
    return "/".join([root.name, *["*"] * n_folders, file_pattern])


def other_side(path: Path) -> Path | None:
    """Return the file of the other hemisphere beside a file of one, if there is one."""
    name = SIDE_IN_NAME.sub(lambda match: _OPPOSITE_SIDE[match[1]], path.name)
    other_path = path.with_name(name)
    return other_path if other_path != path and other_path.is_file() else None


def choose_file(
    files: Sequence[Path],
    usual_patterns: Sequence[str | tuple[str, ...]],
    feature: str,
    pattern: str,
    atlas: Atlas,
    flag: str = "",
) -> Path | None:
    """Return the one file that fits a pattern, None where none does.

    Of several files, the one whose name says the atlas is taken.

    Parameters
    ----------
    files : sequence of Path
        Files of one scan.
    usual_patterns : sequence of (str or tuple of str)
        Patterns, or groups of patterns, of which the first that any file fits counts;
        in any case of letters.
    feature : str
        What is chosen, for the message.
    pattern : str
        The user's pattern, which replaces the usual ones; "" for none.
    atlas : Atlas
        The atlas of the study.
    flag : str
        The option of the command line that takes a pattern, if any.

    Raises
    ------
    CohortError
        Where more than one file is left.
    """
    candidates = list[Path]()
    for group in [pattern] if pattern else usual_patterns:
        patterns = (group,) if isinstance(group, str) else group
        candidates = [
            path
            for path in files
            if any(_fits_pattern(path, x, ignores_case=not pattern) for x in patterns)
        ]
        if candidates:
            break
    if len(candidates) > 1:
        candidates = [p for p in candidates if _is_of_atlas(p, atlas)] or candidates
        # micapipe writes parts of its matrix beside the whole
        candidates = [
            p for p in candidates if "full-connectome" in p.name
        ] or candidates
    if len(candidates) > 1:
        problem = f"{len(candidates)} files could be its {feature}"
        raise ambiguity_error(problem, feature, candidates, flag)
    return candidates[0] if candidates else None


def _fits_pattern(path: Path, pattern: str, ignores_case: bool) -> bool:
    """Return whether a pattern fits the name or, with `/`, the end of a path."""
    name = path.name.lower() if ignores_case else path.name
    return fnmatchcase(name, pattern) or ("/" in pattern and path.match(pattern))


def _is_of_atlas(path: Path, atlas: Atlas) -> bool:
    """Return whether a file's name says this atlas, and none of its relatives."""
    name = path.name.lower()
    atlas_words = atlas.settings.get("file_words", [atlas.name.lower()])
    other_words = atlas.settings.get("other_words", [])
    return any(file_word in name for file_word in atlas_words) and not any(
        file_word in name for file_word in other_words
    )
