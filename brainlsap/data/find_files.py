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
from copy import copy
from fnmatch import fnmatchcase
from itertools import chain, takewhile
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Self, TypeVar

import pandas as pd

from brainlsap.atlas import Atlas
from brainlsap.data.connectomes import (
    FORMATS,
    find_unreadable_matrix_error,
    is_matrix_file,
)
from brainlsap.data.id_columns import (
    NO_CHOICE,
    UserColumns,
    choose_id_column,
    find_likely_visit_column_name,
    find_saved_index_names,
    find_session_column_name,
    find_user_column_name,
)
from brainlsap.data.measures import (
    find_tracers_of_file,
    get_measure_record,
    wrong_tracer_text,
)
from brainlsap.data.tables import (
    TABLE_SUFFIXES,
    MissingWords,
    TableColumns,
    is_ditto_mark,
    is_formula_error,
    read_table_columns,
    split_rows_by_visit,
)
from brainlsap.exceptions import CohortError, FileFormatError, ParameterError
from brainlsap.text import (
    count_text,
    format_leave_out_advice,
    join_with_commas,
    option_text,
)

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
_OPPOSITE_SIDE |= {
    right_side: left_side for left_side, right_side in _OPPOSITE_SIDE.items()
}
SIDE_IN_NAME = re.compile(
    rf"(?:(?<=hemi-)|(?<=_)|^)({'|'.join(_OPPOSITE_SIDE)})(?=[_.])"
)
# Smallest number of files in which numbers are ids, not those of runs or visits, unless
# half of the scans have such files.
_MIN_FILES_OF_NUMBERS = 6
# Fields that the pattern of a path may have, sorted.
_PATTERN_FIELDS = (["participant"], ["participant", "session"], ["scan"])
# Words of paths, with dates and fields of patterns as one word.
_PATTERN_WORD = re.compile(r"(\{\w+\}|(?:19|20)\d\d-\d\d-\d\d|[^\W_]+)")
_VISIT_OR_DATE = re.compile(
    r"(?:19|20)\d\d-?\d\d-?\d\d|(?:visit|[a-z]{0,2})\d{1,3}|bl|baseline|sc|screening|"
    r"fu|pre|post",
    re.IGNORECASE,
)
# ADNI's name of the baseline visit in tables of MRI.
_SCREENING_MRI = "scmri"
# Words for a participant's first visit, in order of time.
FIRST_VISITS = ("sc", "screening", "bl", "baseline", "init", "pre")
_PTID = re.compile(r"(?P<person>(?:sub-)?\d{3}_S_\d{4,5})(?:[_-](?P<visit>.+))?")
# Entities and suffixes begin with a letter: sub-01_2 and sub-01-2 are not the
# participant sub-01.
_BIDS = re.compile(
    r"(?P<person>sub-[A-Za-z0-9]+)(?:_(?P<visit>ses-[A-Za-z0-9]+))?"
    r"(?P<ending>(?:_(?!ses-)[A-Za-z]|\.).*)?"
)
# Words of endings that are visits in any study. T1 is rather a kind of image.
_VISIT_WORD = re.compile(
    r"(?:[vmuwy]|visit|month|year|week|wave|tp|timepoint)-?\d+"
    r"|(?:bl|baseline|screening|fu|followup|retest)-?\d*",
    re.IGNORECASE,
)

# Zeros at the front of a number, and the ".0" of an integer that was read as a float.
_ZEROS = re.compile(r"(?<!\d)0+(?=\d)|\.0$")


Entry = TypeVar("Entry")


class ScanIdentity(NamedTuple):
    """The participant, the visit and the kind of FreeSurfer run that a name gives."""

    participant: str
    session: str = ""
    template_name: str = ""
    """Template of a longitudinal run, empty for a cross-sectional one."""
    ending: str = ""
    """What follows the participant in a BIDS name without a visit; it may be one."""

    @property
    def key(self) -> tuple[str, str]:
        """Participant and visit in the spelling by which names are compared.

        Without `sub-` and `ses-`; ADNI's numbers with their underscores.
        """
        participant_id = self.participant.strip().removeprefix("sub-")
        participant_id = re.sub(
            r"^(?:ADNI)?(\d{3})S(\d{4,5})$", r"\1_S_\2", participant_id
        )
        return participant_id, self.session.strip().removeprefix("ses-")

    @property
    def text(self) -> str:
        """Participant and visit as they are written in names of files."""
        return "_".join(filter(None, (self.participant, self.session)))


def to_bare_id(participant_id: str) -> str:
    """Return an id in lower case, without zeros at the front of its numbers."""
    return _ZEROS.sub("", participant_id.lower())


def parse_scan_identity(name_text: str) -> ScanIdentity:
    """Split the name of a scan, of its folder or of its row into its parts.

    >>> tuple(parse_scan_identity("/data/sub-01_ses-M00.long.sub-01/"))
    ('sub-01', 'ses-M00', 'sub-01', '')
    >>> tuple(parse_scan_identity("002_S_0295_2006-04-18"))
    ('002_S_0295', '2006-04-18', '', '')
    >>> tuple(parse_scan_identity("sub-01_V1"))
    ('sub-01', '', '', '_V1')
    """
    base_name = name_text.strip().replace("\\", "/").rstrip("/").rpartition("/")[2]
    base_name, _, template_name = base_name.partition(".long.")
    for compiled_pattern in (_PTID, _BIDS):
        name_match = compiled_pattern.fullmatch(base_name)
        if name_match:
            part_by_name = name_match.groupdict()
            session_id = part_by_name["visit"] or ""
            ending = "" if session_id else part_by_name.get("ending") or ""
            return ScanIdentity(
                part_by_name["person"], session_id, template_name, ending
            )
    return ScanIdentity(base_name, "", template_name)


class ScanRows(NamedTuple):
    """The rows of a table of scans.

    Parameters
    ----------
    scan_identities : list of ScanIdentity
        The scan of each row.
    text_table : DataFrame
        The other columns, as text.
    id_column_name, session_column_name : str
        Heads of the columns that `scan_identities` are from.
    missing_words_by_column : MissingWords
        Those of :class:`.TableColumns`.
    """

    scan_identities: list[ScanIdentity]
    text_table: pd.DataFrame
    id_column_name: str
    session_column_name: str | None
    missing_words_by_column: MissingWords


def read_scan_rows(
    table_path: str | Path,
    sheet_name: str = "",
    user_columns: UserColumns = NO_CHOICE,
) -> ScanRows:
    """Read a table with a row for every scan.

    `user_columns` are those of ids and visits that the user named, if the table has
    them. Raises FileFormatError where the file is no table, no column names the scans,
    or two could, or rows do not name scans.
    """
    return sort_scan_columns(
        table_path, read_table_columns(table_path, sheet_name), user_columns
    )


def sort_scan_columns(
    table_path: str | Path,
    cells_by_column: TableColumns,
    user_columns: UserColumns = NO_CHOICE,
) -> ScanRows:
    """Sort the columns of a table with a row for every scan, as `read_scan_rows` does.

    Changes `cells_by_column`.
    """
    cells_by_column = split_rows_by_visit(cells_by_column)
    id_column_name = find_user_column_name(
        cells_by_column, user_columns.id_column_names
    )
    if id_column_name is None:
        id_column_name = _choose_id_column_name(table_path, cells_by_column)
    saved_index_names = find_saved_index_names(cells_by_column)
    scan_identities = _pop_scan_identities(table_path, cells_by_column, id_column_name)
    session_column_name = find_user_column_name(
        cells_by_column, user_columns.session_column_names
    ) or find_session_column_name(cells_by_column)
    if session_column_name:
        session_ids = _pop_session_cells(
            table_path, cells_by_column, session_column_name
        )
        scan_identities = [
            scan_identity._replace(session=session_id or scan_identity.session)
            for scan_identity, session_id in zip(
                scan_identities, session_ids, strict=True
            )
        ]
    for index_column_name in {*saved_index_names} & {*cells_by_column}:
        cells_by_column.pop(index_column_name)  # the order of rows is no covariate
    text_table = pd.DataFrame(cells_by_column, dtype=object).rename_axis(
        columns=id_column_name
    )
    return ScanRows(
        scan_identities,
        text_table,
        id_column_name,
        session_column_name,
        cells_by_column.missing_words_by_column,
    )


def find_unnamed_visit_column(
    scan_identities: Sequence[ScanIdentity],
    cells_by_column: Mapping[str, Sequence[str | None]],
) -> str | None:
    """Return the column that may contain the visits of rows, if no row has a visit."""
    if any(scan_identity.session for scan_identity in scan_identities):
        return None
    participant_ids = [scan_identity.participant for scan_identity in scan_identities]
    return find_likely_visit_column_name(participant_ids, cells_by_column)


def _choose_id_column_name(
    table_path: str | Path, cells_by_column: TableColumns
) -> str:
    """Return the column of ids; raise where none is, or several could be."""
    id_choice = choose_id_column(cells_by_column)
    if id_choice.column_name is not None:
        return id_choice.column_name
    candidates_text = join_with_commas(map(repr, id_choice.candidate_names), 5)
    if not candidates_text:
        candidates_text = (
            f"none; the columns are {join_with_commas(map(repr, cells_by_column), 8)}"
        )
    hint_text = ""
    if cells_by_column.comment_line_numbers:
        comment_line_number = cells_by_column.comment_line_numbers[-1]
        hint_text = (
            f" Line {comment_line_number} begins with # and was read as a comment. If "
            "this line is the header, delete the #."
        )
    raise FileFormatError(
        f"{id_choice.no_choice_reason}. Columns that may contain participant IDs: "
        f"{candidates_text}. Name the ID column with {option_text('id_column')}, or "
        f"rename it to participant_id.{hint_text}",
        path=table_path,
    )


def _pop_scan_identities(
    table_path: str | Path, cells_by_column: TableColumns, id_column_name: str
) -> list[ScanIdentity]:
    """Remove the column of ids, and return its names; raise where a row has none."""
    id_texts = cells_by_column.pop(id_column_name)
    scan_identities = [parse_scan_identity(id_text or "") for id_text in id_texts]
    missing_word_by_row = cells_by_column.missing_words_by_column.get(
        id_column_name, {}
    )
    row_texts = [
        f"row {cells_by_column.line_numbers[row_index]} "
        f"({id_text or missing_word_by_row.get(row_index, 'empty')})"
        for row_index, (id_text, scan_identity) in enumerate(
            zip(id_texts, scan_identities, strict=True)
        )
        if scan_identity.participant[:1] in ("", ".")
        or is_formula_error(id_text)
        or is_ditto_mark(id_text)
    ]
    if row_texts:
        raise FileFormatError(
            f"{id_column_name or 'the first column'} must contain a participant ID in "
            "every row. Rows without an ID: "
            f"{join_with_commas(row_texts)}. Merged cells "
            "contain the ID only in their first row; write the ID into every row.",
            path=table_path,
        )
    return scan_identities


def _pop_session_cells(
    table_path: str | Path, cells_by_column: TableColumns, session_column_name: str
) -> list[str | None]:
    """Remove the column of visits, and return its cells; raise at failed formulas."""
    session_cells = cells_by_column.pop(session_column_name)
    for row_index, session_cell in enumerate(session_cells):
        if is_formula_error(session_cell):
            raise FileFormatError(
                f"the column {session_column_name} must contain the name of a visit, "
                "or be empty",
                path=table_path,
                got=f"{session_cell!r} in row "
                f"{cells_by_column.line_numbers[row_index]}, the result of a failed "
                "formula",
                advice="Write the name of the visit in this row.",
            )
    return session_cells


def make_visit_sort_key(session_id: str) -> tuple[object, ...]:
    """Return the key by which the visits of a participant are sorted in time.

    >>> sorted(["ses-M12", "ses-M6", "bl"], key=make_visit_sort_key)
    ['bl', 'ses-M6', 'ses-M12']
    """
    visit_name = session_id.strip().removeprefix("ses-").lower()
    visit_rank = (*FIRST_VISITS, visit_name).index(visit_name)
    name_parts = filter(None, re.split(r"(\d+)", visit_name))
    return visit_rank, *(
        (1, int(name_part), "") if name_part.isdecimal() else (0, 0, name_part)
        for name_part in name_parts
    )


class Scan(NamedTuple):
    """One scan of a cohort, and its files."""

    name: str
    key: tuple[str, str]
    """Participant and visit in the spelling that is used to compare names."""
    is_only_scan: bool
    """Whether the participant has no other scan."""
    paths: tuple[Path, ...]

    def find_entries(
        self, entries_by_person_and_visit: Mapping[str, Mapping[str, list[Entry]]]
    ) -> list[Entry]:
        """Return the entries of the scan in an index by participant, then by visit.

        Entries without a visit belong to a participant's only scan. A scan without a
        visit has all entries of its participant.
        """
        participant_id, session_id = self.key
        entries_by_visit = entries_by_person_and_visit.get(participant_id, {})
        visit_entries = entries_by_visit.get(session_id)
        if visit_entries:
            return visit_entries
        if not session_id:
            return list(chain(*entries_by_visit.values()))
        return entries_by_visit.get("", []) if self.is_only_scan else []


class _FoundFiles(NamedTuple):
    """Files of one scan in one folder, or one FreeSurfer subject.

    `subject_folder` is that of the FreeSurfer subject, whose files are not listed.
    """

    scan_identity: ScanIdentity
    subject_folder: Path | None
    paths: list[Path]


class StudyFiles:
    """An index of a study's files by participant and visit. Lists each folder once.

    Parameters
    ----------
    folder : Path
        Of the study.
    people_names : iterable of str or ScanIdentity
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
    files_by_visit : dict of (participant, visit) to list of Path
        The visit is empty for files outside `ses-*`. Files that only describe others
        are left out: `*_sessions.tsv`, `*_scans.tsv`, `*.json`. The list may be empty.
    folder_sessions_by_person : dict of participant to (dict of visit to name)
        Visits that have a folder, or a connectome in one folder for all scans.
    subjects_by_person : dict of participant to (dict of visit to list)
        Name and folder of FreeSurfer subjects, without templates of longitudinal runs.
    flat_connectome_paths : set of Path
        Connectomes that lie in one folder for all scans.
    table_paths : list of Path
        Tables that lie in the folder of a data set itself.
    study_name_by_subject : dict of str to str
        FreeSurfer subjects whose name is a participant's id and more, to this id.
    """

    def __init__(
        self,
        folder: Path,
        people_names: Iterable[str | ScanIdentity] = (),
        derivatives: Sequence[str | Path] = (),
        subjects_dir: str | Path | None = None,
        pattern: str | Mapping[str, str] | None = None,
    ) -> None:
        pattern_by_feature = (
            {"connectome": pattern} if isinstance(pattern, str) else pattern
        )
        self.folder = folder
        self.pattern_by_feature = dict(pattern_by_feature or {})
        scan_identities = [
            ScanIdentity(x) if isinstance(x, str) else x for x in people_names
        ]
        self._name_by_participant = {
            scan_identity.key[0]: scan_identity.participant
            for scan_identity in scan_identities
        }
        self.subjects_dir = None
        if subjects_dir is not None:
            self.subjects_dir = self.resolve_path(subjects_dir)
        added_folders = [self.resolve_path(folder_path) for folder_path in derivatives]
        self._check_folders([*added_folders, *filter(None, [self.subjects_dir])])
        self.files_by_visit: dict[tuple[str, str], list[Path]] = {}
        self.folder_sessions_by_person: dict[str, dict[str, str]] = {}
        self.subjects_by_person: dict[
            str, dict[str, list[tuple[ScanIdentity, Path]]]
        ] = {}
        self.study_name_by_subject = dict[str, str]()
        self.table_paths: list[Path] = []
        all_found_files = self._walk_all_data_sets(self._list_data_sets(added_folders))
        identity_by_path = self._find_identity_by_flat_path()
        self.flat_connectome_paths = set(identity_by_path)
        # of two spellings of a visit, that of the files counts
        file_identities = [
            found_files.scan_identity
            for found_files in all_found_files
            if found_files.subject_folder is None
        ]
        visit_identities = [
            *scan_identities,
            *identity_by_path.values(),
            *file_identities,
        ]
        self._set_visits(scan_identity.key[1] for scan_identity in visit_identities)
        all_found_files += [
            _FoundFiles(identity_by_path[connectome_path], None, [connectome_path])
            for connectome_path in sorted(identity_by_path)
        ]
        for found_files in all_found_files:
            if found_files.subject_folder is None:
                self._add_files(found_files.scan_identity, found_files.paths)
            else:
                self._add_freesurfer_subject(
                    found_files.scan_identity, found_files.subject_folder
                )

    @staticmethod
    def _check_folders(folder_paths: Iterable[Path]) -> None:
        """Raise where folders that the user named do not exist."""
        absent_folders = [
            folder_path for folder_path in folder_paths if not folder_path.is_dir()
        ]
        if absent_folders:
            fault_texts = [
                f"{folder_path}: no such folder" for folder_path in absent_folders
            ]
            raise CohortError("some of the named folders do not exist", fault_texts)

    def _list_data_sets(self, added_folders: Sequence[Path]) -> list[Path]:
        """Return the folders that hold folders of participants, each once."""
        derivatives_folder = self.folder / "derivatives"
        data_set_paths = sorted(
            data_set_path
            for data_set_path in derivatives_folder.glob("*")
            if data_set_path.is_dir()
        )
        # Clinica's CAPS has its participants below subjects/
        for data_set_path in (self.folder, *data_set_paths):
            if (data_set_path / "subjects").is_dir():
                data_set_paths.append(data_set_path / "subjects")
        # of several names of a folder the first counts
        all_folders = [self.folder, *data_set_paths, *added_folders]
        path_by_real_path = {
            data_set_path.resolve(): data_set_path
            for data_set_path in reversed(all_folders)
        }
        return list(reversed(path_by_real_path.values()))

    def _walk_all_data_sets(self, data_set_paths: Iterable[Path]) -> list[_FoundFiles]:
        """Return the files of all data sets; with `subjects_dir` its subjects only."""
        all_found_files = [
            found_files
            for data_set_path in data_set_paths
            for found_files in self._walk_data_set(data_set_path)
        ]
        if self.subjects_dir is not None:
            all_found_files = [
                found_files
                for found_files in all_found_files
                if found_files.subject_folder is None
            ]
            all_found_files += self._walk_data_set(self.subjects_dir)
        return all_found_files

    def _find_identity_by_flat_path(self) -> dict[Path, ScanIdentity]:
        """Return the connectomes in one folder for all scans, and the scan of each."""
        connectome_pattern = self.pattern_by_feature.get("connectome", "")
        path_templates = [connectome_pattern]
        if "{" not in connectome_pattern:
            path_templates = [
                f"{folder_name}/{{scan}}.*"
                for folder_name in FLAT_FOLDERS
                if (self.folder / folder_name).is_dir()
            ]
        return {
            connectome_path: scan_identity
            for path_template in path_templates
            for connectome_path, scan_identity in self._find_identity_by_template_path(
                path_template
            ).items()
            if connectome_path.suffix.lower() in FORMATS
            and not _LABEL_LIST.search(connectome_path.name)
        }

    def with_visits(self, session_ids: Iterable[str]) -> Self:
        """Return the same index for a study that has these visits as well.

        The people of a table may have visits in the tables of regional values only.
        """
        extended_files = copy(self)
        # of two spellings of a visit, that of the files counts
        extended_files._set_visits([*session_ids, *self._visit_by_lower_name.values()])
        return extended_files

    def _set_visits(self, session_ids: Iterable[str]) -> None:
        """Set the visits by which names of participant and visit are split."""
        self._visit_by_lower_name = {
            session_id.lower(): session_id for session_id in session_ids if session_id
        }
        visit_pattern = self._make_visit_pattern()
        self._visit_regex = re.compile(visit_pattern, re.IGNORECASE)
        self._joined_name_regex = re.compile(
            rf"(.+?)(?:[-_](?:ses-)?|(?<=\d)(?=[A-Za-z]))({visit_pattern})",
            re.IGNORECASE,
        )

    def _make_visit_pattern(self) -> str:
        """Return the pattern of visits that differ from the study's in number only."""
        visit_patterns = {
            re.sub(r"\d+", r"\\d+", re.escape(x)) for x in self._visit_by_lower_name
        }
        return "|".join(sorted(visit_patterns)) or "(?!)"

    def _find_visit_in_ending(self, ending: str) -> str:
        """Return the word of an ending that is a visit; "" in a study without visits.

        A visit that the study does not have is not dropped: sub-01_V1 is no scan of
        the only visit V2.
        """
        if self._visit_by_lower_name:
            for ending_word in filter(None, re.split(r"[_.]", ending)):
                if self._visit_regex.fullmatch(ending_word) or _VISIT_WORD.fullmatch(
                    ending_word
                ):
                    return ending_word
        return ""

    def _add_files(
        self, scan_identity: ScanIdentity, file_paths: Sequence[Path]
    ) -> None:
        """Add files of a scan, and its visit."""
        participant_id, session_id = self.get_scan_key(scan_identity)
        self.files_by_visit.setdefault((participant_id, session_id), []).extend(
            file_paths
        )
        if session_id:
            folder_by_visit = self.folder_sessions_by_person.setdefault(
                participant_id, {}
            )
            folder_by_visit.setdefault(session_id, scan_identity.session or session_id)

    def _add_freesurfer_subject(
        self, scan_identity: ScanIdentity, subject_folder: Path
    ) -> None:
        """Add a FreeSurfer subject, which may be named by more than an id."""
        participant_id, session_id = self.get_scan_key(scan_identity)
        if participant_id not in self._name_by_participant:
            # pipelines add to the names of subjects: P001_T1w, P001_V1_recon
            separator_positions = [
                separator_match.start()
                for separator_match in re.finditer("_(?=[A-Za-z])", participant_id)
            ]
            for separator_position in reversed(separator_positions):
                person_id, visit_id = self.get_scan_key(
                    ScanIdentity(participant_id[:separator_position])
                )
                if person_id in self._name_by_participant:
                    participant_id = person_id
                    session_id = session_id or visit_id
                    self.study_name_by_subject[scan_identity.participant] = (
                        self._name_by_participant[participant_id]
                    )
                    break
        run_pairs = self.subjects_by_person.setdefault(participant_id, {}).setdefault(
            session_id, []
        )
        if (scan_identity, subject_folder) not in run_pairs:
            run_pairs.append((scan_identity, subject_folder))

    def get_scan_key(self, scan_identity: ScanIdentity) -> tuple[str, str]:
        """Return participant and visit, also of a name that joins the two."""
        participant_id, session_id = scan_identity.key
        visit_in_ending = self._find_visit_in_ending(scan_identity.ending)
        if visit_in_ending:
            return participant_id, self._visit_by_lower_name.get(
                visit_in_ending.lower(), visit_in_ending
            )
        joined_match = self._joined_name_regex.fullmatch(participant_id)
        if (
            session_id
            or participant_id in self._name_by_participant
            or not joined_match
        ):
            return participant_id, session_id
        joined_participant_id, visit_text = joined_match.groups()
        if joined_participant_id not in self._name_by_participant:
            return participant_id, ""
        return joined_participant_id, self._visit_by_lower_name.get(
            visit_text.lower(), visit_text
        )

    def list_row_keys(
        self, scan_identities: Iterable[ScanIdentity]
    ) -> list[tuple[str, str]]:
        """Return participant and visit of every row of one table.

        ADNI's tables of MRI call the screening scan `scmri`, which is the scan of the
        baseline visit. It has the key of `bl` if the study has `bl` and no `scmri`, and
        the table has no row `bl` of this person.
        """
        scan_keys = [self.get_scan_key(x) for x in scan_identities]
        baseline_visit = self._visit_by_lower_name.get("bl")
        if baseline_visit is None or _SCREENING_MRI in self._visit_by_lower_name:
            return scan_keys
        distinct_keys = {*scan_keys}
        return [
            (participant_id, baseline_visit)
            if session_id.lower() == _SCREENING_MRI
            and (participant_id, baseline_visit) not in distinct_keys
            else (participant_id, session_id)
            for participant_id, session_id in scan_keys
        ]

    def _walk_data_set(self, data_set_path: Path) -> Iterator[_FoundFiles]:
        """Yield the FreeSurfer subjects and the files of participants in a data set.

        Folders are listed to a depth of six. Tables in the root itself are added to
        `tables`.
        """
        for folder_text, folder_names, file_names in os.walk(
            data_set_path, followlinks=True
        ):
            folder_path = Path(folder_text)
            relative_parts = folder_path.parts[len(data_set_path.parts) :]
            # in place, so that os.walk goes on with these folders only
            folder_names[:] = sorted(
                entry_name for entry_name in folder_names if entry_name[0] != "."
            )
            visible_file_names = sorted(
                entry_name for entry_name in file_names if entry_name[0] != "."
            )
            if not relative_parts:
                table_paths = (
                    folder_path / entry_name for entry_name in visible_file_names
                )
                self.table_paths += [
                    table_path
                    for table_path in table_paths
                    if table_path.suffix.lower() in TABLE_SUFFIXES
                ]
                continue
            subject_files = self._find_freesurfer_subject(
                data_set_path, folder_path, folder_names, visible_file_names
            )
            if subject_files is not None:
                yield subject_files
            has_stats_folder = "stats" in folder_names
            if has_stats_folder:
                folder_names[:] = [
                    entry_name
                    for entry_name in folder_names
                    if entry_name not in _FREESURFER_FOLDERS
                ]
            is_subject_folder = (
                has_stats_folder
                and data_set_path != self.folder
                and len(relative_parts) == 1
            )
            is_participant_folder = self._is_participant_folder(relative_parts[0])
            if (
                data_set_path == self.subjects_dir
                or not is_participant_folder
                or is_subject_folder
            ):
                may_have_visits = (
                    relative_parts[0].startswith("sub-") and not has_stats_folder
                )
                folder_names[:] = [
                    entry_name
                    for entry_name in folder_names
                    if may_have_visits and entry_name.startswith("ses-")
                ]
                continue
            if len(relative_parts) > _MAX_DEPTH:
                folder_names.clear()
            if folder_path.name in _BEHAVIOUR_FOLDERS:
                visible_file_names = []
            data_paths = [
                folder_path / n
                for n in visible_file_names
                if not _BOOKKEEPING.fullmatch(n)
            ]
            yield _FoundFiles(
                ScanIdentity(relative_parts[0], _get_visit_folder_name(relative_parts)),
                None,
                data_paths,
            )

    def _is_participant_folder(self, folder_name: str) -> bool:
        """Return whether a folder of this name holds the files of a participant."""
        return ScanIdentity(folder_name).key[
            0
        ] in self._name_by_participant or folder_name.startswith("sub-")

    def _find_freesurfer_subject(
        self,
        data_set_path: Path,
        folder_path: Path,
        folder_names: Sequence[str],
        file_names: Sequence[str],
    ) -> _FoundFiles | None:
        """Return the FreeSurfer subject that a folder with these contents belongs to.

        The folder holds `stats`, or the statistics themselves. Templates of
        longitudinal runs, and subjects that the pattern excludes, do not count.
        """
        relative_parts = folder_path.parts[len(data_set_path.parts) :]
        session_id = _get_visit_folder_name(relative_parts)
        scan_identity = None
        subject_folder = None
        if "stats" in folder_names and relative_parts[1:] in ((), (session_id,)):
            subject_folder = folder_path
        has_stats_files = any(
            file_name.startswith("lh.aparc") for file_name in file_names
        )
        if has_stats_files and self._is_participant_folder(relative_parts[0]):
            subject_folder = (
                folder_path.parent if folder_path.name == "stats" else folder_path
            )
            scan_identity = ScanIdentity(
                relative_parts[0],
                session_id,
                parse_scan_identity(subject_folder.name).template_name,
            )
        if subject_folder is None or "base-tps" in (*folder_names, *file_names):
            return None
        file_name = "_".join(subject_folder.parts[len(data_set_path.parts) :])
        subject_pattern = self.pattern_by_feature.get("freesurfer", "*")
        is_excluding_pattern = subject_pattern[:1] == "!"
        if (
            fnmatchcase(file_name, subject_pattern.removeprefix("!"))
            == is_excluding_pattern
        ):
            return None
        return _FoundFiles(
            scan_identity or parse_scan_identity(file_name), subject_folder, []
        )

    def _find_identity_by_template_path(
        self, path_template: str
    ) -> dict[Path, ScanIdentity]:
        """Find connectomes by a path with fields, and read the scan of each from it."""
        field_names = re.findall(r"\{(.*?)\}", path_template)
        pattern_path = PurePosixPath(path_template)
        is_below_folder = (
            not pattern_path.is_absolute() and ".." not in pattern_path.parts
        )
        if not is_below_folder or sorted(field_names) not in _PATTERN_FIELDS:
            raise ParameterError(
                "pattern must be a path inside the folder of the study, and must "
                f"contain {{scan}} once; got {path_template!r}. Instead of {{scan}}, "
                "the path may contain {participant} once, or {participant} and "
                "{session} once each."
            )
        path_regex = re.sub(r"\\\*", "[^/]*?", re.escape(path_template))
        for field_name in field_names:
            field_regex = "[^_/]+" if field_name == "session" else ".+?"
            path_regex = path_regex.replace(
                re.escape(f"{{{field_name}}}"), f"(?P<{field_name}>{field_regex})"
            )
        identity_by_path = dict[Path, ScanIdentity]()
        for matrix_path in self.folder.glob(
            re.sub(r"(\*|\{.*?\})+", "*", path_template)
        ):
            path_match = re.fullmatch(
                path_regex, matrix_path.relative_to(self.folder).as_posix()
            )
            if (
                not path_match
                or matrix_path.name[0] == "."
                or not matrix_path.is_file()
            ):
                continue
            value_by_field = path_match.groupdict()
            if "scan" in value_by_field:
                identity_by_path[matrix_path] = parse_scan_identity(
                    value_by_field["scan"]
                )
            else:
                identity_by_path[matrix_path] = ScanIdentity(**value_by_field)
        # participants with one visit may have no visit in the name
        sessionless_pattern = re.sub(r"[-_]\{session\}", "", path_template)
        if sessionless_pattern != path_template:
            for matrix_path, scan_identity in self._find_identity_by_template_path(
                sessionless_pattern
            ).items():
                if scan_identity.key[0] in self._name_by_participant:
                    identity_by_path[matrix_path] = scan_identity
        return identity_by_path

    def resolve_path(self, user_path: str | Path) -> Path:
        """Return a path, relative to the study's folder where it exists there."""
        study_path = self.folder / user_path
        return study_path if study_path.exists() else Path(user_path)

    def list_scan_files(
        self, scan_key: tuple[str, str], is_only_scan: bool
    ) -> tuple[Path, ...]:
        """Return all files of one scan, sorted.

        `is_only_scan` says that the participant has no other scan, so that a matrix
        without a visit in its name belongs to this scan.
        """
        participant_id, session_id = scan_key
        scan_paths = set(self.files_by_visit.get(scan_key, ()))
        visitless_paths = self.files_by_visit.get((participant_id, ""), [])
        if session_id and session_id not in self.folder_sessions_by_person.get(
            participant_id, {}
        ):
            # the folder of a visit may be named without ses-
            scan_paths |= {
                file_path
                for file_path in visitless_paths
                if session_id in file_path.parts[-4:-1]
            }
        if session_id and is_only_scan and not scan_paths & self.flat_connectome_paths:
            scan_paths |= self.flat_connectome_paths & set(visitless_paths)
        return tuple(sorted(scan_paths))

    def find_connectome_source(self, scan: Scan, atlas: Atlas) -> Path | None:
        """Return the one connectome of a scan, None where there is none.

        Raises a CohortError where there is more than one.
        """
        connectome_pattern = self.pattern_by_feature.get("connectome", "")
        flat_paths = [
            file_path
            for file_path in scan.paths
            if file_path in self.flat_connectome_paths
        ]
        if flat_paths or "{" in connectome_pattern:
            fitting_paths = _choose_paths_of_atlas(flat_paths, atlas)
            if len(fitting_paths) > 1:
                raise _make_flat_ambiguity_error(fitting_paths, connectome_pattern)
            return fitting_paths[0] if fitting_paths else None
        connectome_paths = [
            file_path
            for file_path in scan.paths
            if connectome_pattern or file_path.suffix.lower() in FORMATS
        ]
        return choose_file_path(
            connectome_paths,
            [CONNECTOME_PATTERNS],
            "connectome",
            connectome_pattern,
            atlas,
        )

    def find_region_table_path(
        self, scan: Scan, feature_name: str, atlas: Atlas
    ) -> Path | None:
        """Return a scan's table of regions of a feature, None where there is none.

        The left one where each side has one. Raises a CohortError where there is more
        than one.
        """
        feature_pattern = self.pattern_by_feature.get(feature_name, "")
        # PETPrep writes a table of the reference region beside that of the regions
        region_paths = [
            file_path
            for file_path in scan.paths
            if file_path.suffix.lower() in TABLE_SUFFIXES
            and "_ref-" not in file_path.name
            if feature_pattern
            or not self.find_other_tracer_name(file_path, feature_name)
        ]
        left_paths = list[Path]()
        for file_path in region_paths:
            side_match = SIDE_IN_NAME.search(file_path.name)
            if side_match and side_match[1][0] in "lL":
                left_paths.append(file_path)
        right_paths = {find_other_side_path(file_path) for file_path in left_paths}
        region_paths = [
            file_path for file_path in region_paths if file_path not in right_paths
        ]
        return choose_file_path(
            region_paths,
            get_measure_record(feature_name).file_patterns,
            feature_name,
            feature_pattern,
            atlas,
        )

    def find_other_tracer_name(self, file_path: Path, feature_name: str) -> str | None:
        """Return the tracer of a file if it is not of a feature.

        Its name decides, or the nearest folder below the study's that names a tracer.
        """
        folder_names = list[str]()
        if file_path.is_relative_to(self.folder):
            folder_names = [*file_path.relative_to(self.folder).parts[-2::-1]]
        for path_part in (file_path.name, *folder_names):
            if "trc-" in path_part or find_tracers_of_file(path_part):
                return wrong_tracer_text(path_part, feature_name)
        return None

    def _are_visits_unnamed(self, feature_name: str, scans: Sequence[Scan]) -> bool:
        """Return whether files of a pattern name people of scans, but no visit."""
        return "{session}" not in self.pattern_by_feature[feature_name] and any(
            not self.flat_connectome_paths.isdisjoint(
                self.files_by_visit.get((scan.key[0], ""), ())
            )
            for scan in scans
            if scan.key[1]
        )

    def unmatched_pattern_text(self, feature_name: str, scans: Sequence[Scan]) -> str:
        """Return the message that a pattern fits no file of any scan.

        `feature_name` is a key of `pattern_by_feature`.
        """
        file_names = list(
            dict.fromkeys(file_path.name for scan in scans for file_path in scan.paths)
        )
        file_names_text = (
            f"their files are {join_with_commas(file_names, 5)}. Correct the pattern"
        )
        has_fields = "{" in self.pattern_by_feature[feature_name]
        if not file_names and has_fields and self.flat_connectome_paths:
            file_names_text = (
                f"it fits {count_text(len(self.flat_connectome_paths), 'file')} of "
                "other participants or visits. Write participants and visits in the "
                "table as in the file names"
            )
            if self._are_visits_unnamed(feature_name, scans):
                file_names_text = (
                    f"it fits {count_text(len(self.flat_connectome_paths), 'file')} of "
                    "the participants, but these names contain no visit, and the "
                    "table has several visits of a participant. Add the visit to the "
                    "names of the files and as {session} to the pattern, or keep one "
                    "row of each participant in the table, without the visit"
                )
        elif not file_names and has_fields:
            file_names_text = (
                "no file has such a path inside the folder of the study. Correct the "
                "pattern"
            )
        elif not file_names:
            file_names_text = (
                "the scans have no files. If one folder contains the files of all "
                "scans, write the participant into the pattern, for example "
                "'sc/{participant}.txt'"
            )
        return (
            f"{feature_name}: the pattern {self.pattern_by_feature[feature_name]!r} "
            f"({option_text('pattern')}) fits no file of any of {len(scans)} scans; "
            f"{file_names_text}"
        )


def list_files_outside_scans(folder: Path) -> list[Path]:
    """Return the files of matrix formats outside the folders of scans, sorted.

    Those in `sub-*` and in `derivatives` are left out.
    """
    file_paths = list[Path]()
    for top_path in sorted(folder.glob("[!.]*")):
        is_scan_folder = top_path.name[:4] in ("sub-", "deri") and top_path.is_dir()
        inner_paths = () if is_scan_folder else sorted(top_path.rglob("*"))
        file_paths += [
            file_path
            for file_path in (top_path, *inner_paths)
            if file_path.suffix.lower() in FORMATS and file_path.name[0] != "."
        ]
    return file_paths


def find_unreadable_connectome_error(
    folder: Path, scans: Iterable[Scan]
) -> FileFormatError | None:
    """Return the error of the first connectome of a study that cannot be read.

    Of files whose names differ only in digits, the first is read.
    """
    path_by_form: dict[str, Path] = {}
    scan_paths = (file_path for scan in scans for file_path in scan.paths)
    for file_path in (*list_files_outside_scans(folder), *scan_paths):
        path_by_form.setdefault(re.sub(r"\d+", "", str(file_path)), file_path)
    for file_path in path_by_form.values():
        matrix_error = find_unreadable_matrix_error(
            file_path,
            is_named_connectome=any(
                fnmatchcase(file_path.name, name_pattern)
                for name_pattern in CONNECTOME_PATTERNS
            ),
        )
        if matrix_error is not None:
            return matrix_error
    return None


def count_files_by_path_pattern(folder: Path, scans: Sequence[Scan]) -> dict[str, int]:
    """Return patterns of matrices that are named by scans, and how many files fit each.

    Only files outside the folders of scans count. The order is that of the scans. If
    ids are numbers, a pattern of few files may be that of runs or visits. Parts of
    names that change between people, such as the site, are `*` in a pattern, and
    visits that the table does not have are `{session}`.
    """
    path_by_text = {
        file_path.relative_to(folder).as_posix(): file_path
        for file_path in list_files_outside_scans(folder)
    }
    lower_text_by_text = {path_text: path_text.lower() for path_text in path_by_text}
    named_paths_by_pattern: dict[str, dict[Path, str]] = {}
    for scan in scans:
        participant_id, session_id = scan.key
        lower_id = participant_id.lower()
        for path_text, lower_text in lower_text_by_text.items():
            if lower_id not in lower_text:
                continue
            for path_pattern in _iter_paths_with_placeholder(
                path_text, participant_id, "{participant}"
            ):
                scan_pattern = path_pattern
                if session_id:
                    session_patterns = _iter_paths_with_placeholder(
                        path_pattern, session_id, "{session}"
                    )
                    scan_pattern = next(session_patterns, path_pattern)
                named_paths = named_paths_by_pattern.setdefault(scan_pattern, {})
                named_paths[path_by_text[path_text]] = participant_id
    named_paths_by_pattern = _merge_path_patterns(
        folder,
        named_paths_by_pattern,
        n_people=len({scan.key[0] for scan in scans}),
        has_visits=any(scan.key[1] for scan in scans),
    )
    has_number_ids = all(scan.key[0].isdecimal() for scan in scans)
    min_files = min(_MIN_FILES_OF_NUMBERS, len(scans) / 2) if has_number_ids else 1
    return {
        path_pattern: len(named_paths)
        for path_pattern, named_paths in named_paths_by_pattern.items()
        if len(named_paths) >= min_files
        and any(map(is_matrix_file, [*named_paths][:3]))
    }


def _merge_path_patterns(
    folder: Path,
    named_paths_by_pattern: Mapping[str, dict[Path, str]],
    n_people: int,
    *,
    has_visits: bool,
) -> dict[str, dict[Path, str]]:
    """Return patterns of which those that differ in a few parts are one.

    The values are the paths of a pattern with the participant of each. A merged
    pattern must fit the files of half of the people, one for each person and visit.
    """
    patterns_by_form: dict[tuple[str, ...], list[str]] = {}
    for path_pattern in named_paths_by_pattern:
        # Every second part is a word; the others are separators.
        pattern_parts = _PATTERN_WORD.split(path_pattern)
        form = (
            *pattern_parts[::2],
            *(part for part in pattern_parts if part[:1] == "{"),
            str(pattern_parts.index("{participant}")),
            PurePosixPath(path_pattern).suffix,
        )
        patterns_by_form.setdefault(form, []).append(path_pattern)
    merged_paths_by_pattern: dict[str, dict[Path, str]] = {}
    for path_patterns in patterns_by_form.values():
        for path_pattern, merged_patterns in _group_path_patterns(
            path_patterns, named_paths_by_pattern, has_visits=has_visits
        ).items():
            named_paths: dict[Path, str] = {}
            for merged_pattern in merged_patterns:
                named_paths |= named_paths_by_pattern[merged_pattern]
            fitting_paths = folder.glob(re.sub(r"(\*|\{.*?\})+", "*", path_pattern))
            is_common = 2 * len({*named_paths.values()}) >= n_people and 2 * len(
                named_paths
            ) >= len([*fitting_paths])
            if len(merged_patterns) == 1 or is_common:
                # Patterns of two forms may become the same pattern.
                merged_paths_by_pattern.setdefault(path_pattern, {}).update(named_paths)
                continue
            for merged_pattern in merged_patterns:
                merged_paths_by_pattern.setdefault(merged_pattern, {}).update(
                    named_paths_by_pattern[merged_pattern]
                )
    return merged_paths_by_pattern


def _group_path_patterns(
    path_patterns: Sequence[str],
    named_paths_by_pattern: Mapping[str, Mapping[Path, str]],
    *,
    has_visits: bool,
) -> dict[str, list[str]]:
    """Return merged patterns with those that each stands for, all of one form.

    A word that every participant has in one form, such as the site, is `*`. A visit
    behind the participant is `{session}`. Other words, such as the kind of a matrix,
    are kept.
    """
    words_by_pattern = {
        path_pattern: _PATTERN_WORD.split(path_pattern)
        for path_pattern in path_patterns
    }
    first_words = words_by_pattern[path_patterns[0]]
    participant_index = first_words.index("{participant}")
    has_session = "{session}" in first_words
    field_by_index: dict[int, str] = {}
    for word_index in range(1, len(first_words), 2):
        ids_by_word: dict[str, set[str]] = {}
        for path_pattern, words in words_by_pattern.items():
            ids_by_word.setdefault(words[word_index], set()).update(
                named_paths_by_pattern[path_pattern].values()
            )
        if len(ids_by_word) == 1:
            continue
        n_ids = len(set[str]().union(*ids_by_word.values()))
        is_one_per_person = sum(map(len, ids_by_word.values())) == n_ids
        words_between = first_words[participant_index + 2 : word_index : 2]
        is_visit = (
            not has_session
            and word_index > participant_index
            and {*map(str.lower, words_between)} <= {"ses", "session", "visit"}
            and all(map(_VISIT_OR_DATE.fullmatch, ids_by_word))
        )
        if is_visit and (has_visits or not is_one_per_person):
            field_by_index[word_index] = "{session}"
            has_session = True
        elif is_one_per_person:
            field_by_index[word_index] = "*"
    merged_patterns: dict[str, list[str]] = {}
    for path_pattern, words in words_by_pattern.items():
        merged_pattern = "".join(
            field_by_index.get(word_index, word)
            for word_index, word in enumerate(words)
        )
        merged_patterns.setdefault(merged_pattern, []).append(path_pattern)
    return merged_patterns


def _iter_paths_with_placeholder(
    path_text: str, id_text: str, placeholder_text: str
) -> Iterator[str]:
    """Yield a path with a field in one place of an id; one path for each place."""
    id_pattern = rf"(?i)(?<![A-Z0-9]){re.escape(id_text)}(?![A-Z0-9])"
    for id_match in re.finditer(id_pattern, path_text):
        path_start = path_text[: id_match.start()]
        yield path_start + placeholder_text + path_text[id_match.end() :]


def _get_visit_folder_name(path_parts: Sequence[str]) -> str:
    """Return the folder of a visit, the second of a path, "" where there is none."""
    has_visit = len(path_parts) > 1 and path_parts[1].startswith("ses-")
    return path_parts[1] if has_visit else ""


def make_ambiguity_error(
    problem_text: str,
    feature_name: str,
    file_paths: Collection[Path],
    pattern_option_name: str = "",
) -> CohortError:
    """Return the error that several files could be a scan's; it says how to choose.

    Files of different names are chosen by a pattern of names, files of one name by the
    folders in which they differ.

    Parameters
    ----------
    problem_text : str
        The first part of the message.
    feature_name : str
        The key of the pattern: `connectome`, `freesurfer`, or a feature.
    file_paths : collection of Path
        The files.
    pattern_option_name : str
        The option of the command line that takes a pattern, if any.
    """
    have_same_names = len({file_path.name for file_path in file_paths}) < len(
        file_paths
    )
    file_patterns = ["*_x*"]  # the names of subjects may differ in ids alone
    if not have_same_names and feature_name != "freesurfer":
        file_patterns = _list_file_patterns(file_paths)
    if have_same_names:
        path_by_folder = _find_path_by_folder(file_paths)
        if feature_name == "freesurfer":
            folders_text = " or ".join(map(str, path_by_folder))
            return CohortError(
                f"{problem_text}. Choose the folder of the files with "
                f"{option_text('subjects_dir')} ({folders_text})"
            )
        file_patterns = [
            _make_folder_pattern(*folder_and_path)
            for folder_and_path in path_by_folder.items()
        ]
        file_patterns = [file_pattern for file_pattern in file_patterns if file_pattern]
    pattern_option_name = (
        "--pattern" if feature_name == "connectome" else pattern_option_name
    )
    if not file_patterns:
        names_text = join_with_commas((file_path.name for file_path in file_paths), 5)
        return CohortError(problem_text, got=names_text, advice=_deletion_advice())
    pattern_text = _pattern_options_text(
        file_patterns, feature_name, pattern_option_name
    )
    advice_text = f"Choose one with {pattern_text}"
    if feature_name == "freesurfer":
        advice_text += (
            ". Also name the visits in a column visit of the table of participants"
        )
    path_texts = [str(file_path) for file_path in file_paths]
    if not have_same_names and feature_name != "freesurfer":
        path_texts = [file_path.name for file_path in file_paths]
    return CohortError(
        problem_text, got=join_with_commas(path_texts, 5), advice=advice_text
    )


def _make_flat_ambiguity_error(
    file_paths: Sequence[Path], user_pattern: str
) -> CohortError:
    """Return the error that several files of one folder are a scan's connectome.

    A pattern decides if the names differ behind the scan, as `sub-1_a.csv` and
    `sub-1_b.csv`.
    """
    name_endings = list[str]()
    for file_path in file_paths:
        scan_identity = parse_scan_identity(file_path.stem)
        name_endings.append(file_path.name.removeprefix(scan_identity.text))
    advice_text = _deletion_advice()
    if user_pattern:
        advice_text = (
            f"Write a pattern ({option_text('pattern')}) that fits one file of each "
            f"scan, or {format_leave_out_advice()}"
        )
    elif len({*name_endings}) == len(name_endings):
        file_patterns = [
            f"{file_path.parent.name}/{{scan}}{name_ending}"
            for file_path, name_ending in zip(file_paths, name_endings, strict=True)
        ]
        patterns_text = _pattern_options_text(file_patterns, "connectome", "--pattern")
        advice_text = f"Choose one with {patterns_text}"
    return CohortError(
        f"{len(file_paths)} files could be the connectome",
        got=join_with_commas((file_path.name for file_path in file_paths), 5),
        advice=advice_text,
    )


def _deletion_advice() -> str:
    """Return the advice where no pattern can choose one of several files."""
    return f"Delete all but one of the files, or {format_leave_out_advice()}"


def _list_file_patterns(file_paths: Collection[Path]) -> list[str]:
    """Return a pattern of each file that fits no other file and names no scan.

    Names begin with the scan, or are alike up to the word in which they differ.
    """
    file_names = [file_path.name for file_path in file_paths]
    letters_by_position = zip(*file_names, strict=False)
    common_start = "".join(
        letters_at_position[0]
        for letters_at_position in takewhile(
            lambda x: len({*x}) == 1, letters_by_position
        )
    )
    last_separator_position = max(map(common_start.rfind, "_-."))
    file_patterns = list[str]()
    for file_path in file_paths:
        name_ending = re.sub(r"^(?:(?:sub|ses)-[^_]+_)+", "", file_path.name)
        leading_folder_names = [
            folder_name
            for folder_name in file_path.parts[-4:-1]
            if file_path.name.startswith(folder_name)
        ]
        file_pattern = file_path.name
        if last_separator_position > 0:
            file_pattern = f"*{file_path.name[last_separator_position:]}"
        elif name_ending != file_path.name:
            file_pattern = f"*_{name_ending}"
        elif leading_folder_names:
            file_pattern = f"*{file_path.name.removeprefix(leading_folder_names[0])}"
        fitting_names = [
            file_name
            for file_name in file_names
            if fnmatchcase(file_name, file_pattern)
        ]
        if fitting_names == [file_path.name]:
            file_patterns.append(file_pattern)
    return file_patterns


def _pattern_options_text(
    file_patterns: Sequence[str], feature_name: str, pattern_option_name: str
) -> str:
    """Return patterns as the command line (or --config) and as Python take them."""
    python_text = f"(in Python pattern={{{feature_name!r}: {file_patterns[0]!r}}})"
    if pattern_option_name:
        option_texts = [
            f"{pattern_option_name} {file_pattern!r}" for file_pattern in file_patterns
        ]
        return f"{' or '.join(option_texts)} {python_text}"
    is_bare_key = re.fullmatch(r"[A-Za-z0-9_-]+", feature_name)  # of TOML
    toml_key = feature_name if is_bare_key else f'"{feature_name}"'
    config_lines = [
        f"pattern = {{{toml_key} = {file_pattern!r}}}" for file_pattern in file_patterns
    ]
    return f"{' or '.join(config_lines)} in --config {python_text}"


def _find_path_by_folder(file_paths: Collection[Path]) -> dict[Path, Path]:
    """Return the folders in which paths of one name differ, and the path in each."""
    n_trailing_parts = 1
    while len(
        {file_path.parts[-n_trailing_parts - 1 :] for file_path in file_paths}
    ) < len(file_paths):
        n_trailing_parts += 1
    return {
        file_path.parents[n_trailing_parts - 1]: file_path for file_path in file_paths
    }


def _make_folder_pattern(root_folder: Path, file_path: Path) -> str:
    """Return a pattern of files like this one of any scan, in one folder.

    "" where the folder has no name, as ".".
    """
    n_folders = len(file_path.relative_to(root_folder).parts) - 1
    name_ending = re.sub(r"^(?:(?:sub|ses)-[^_]+_)+", "", file_path.name)
    file_pattern = (
        f"*{file_path.suffix}" if name_ending == file_path.name else f"*_{name_ending}"
    )
    if not root_folder.name:
        return ""
    return "/".join([root_folder.name, *["*"] * n_folders, file_pattern])


def find_other_side_path(file_path: Path) -> Path | None:
    """Return the file of the other hemisphere beside a file of one, if there is one."""
    other_name = SIDE_IN_NAME.sub(
        lambda match: _OPPOSITE_SIDE[match[1]], file_path.name
    )
    other_path = file_path.with_name(other_name)
    return other_path if other_path != file_path and other_path.is_file() else None


def choose_file_path(
    file_paths: Sequence[Path],
    usual_pattern_groups: Sequence[str | tuple[str, ...]],
    feature_name: str,
    user_pattern: str,
    atlas: Atlas,
    pattern_option_name: str = "",
) -> Path | None:
    """Return the one file that fits a pattern, None where none does.

    Of several files, the one whose name says the atlas is taken.

    Parameters
    ----------
    file_paths : sequence of Path
        Files of one scan.
    usual_pattern_groups : sequence of (str or tuple of str)
        Patterns, or groups of patterns, of which the first that any file fits counts;
        in any case of letters.
    feature_name : str
        Name of the data in the message.
    user_pattern : str
        The user's pattern, which replaces the usual ones; "" for none.
    atlas : Atlas
        The atlas of the study.
    pattern_option_name : str
        The option of the command line that takes a pattern, if any.

    Raises
    ------
    CohortError
        If more than one file is left.
    """
    candidate_paths = list[Path]()
    for pattern_group in [user_pattern] if user_pattern else usual_pattern_groups:
        file_patterns = (
            (pattern_group,) if isinstance(pattern_group, str) else pattern_group
        )
        candidate_paths = [
            file_path
            for file_path in file_paths
            if any(
                _is_path_of_pattern(
                    file_path, file_pattern, ignores_case=not user_pattern
                )
                for file_pattern in file_patterns
            )
        ]
        if candidate_paths:
            break
    candidate_paths = _choose_paths_of_atlas(candidate_paths, atlas)
    if len(candidate_paths) > 1:
        problem_text = f"{len(candidate_paths)} files could be the {feature_name}"
        raise make_ambiguity_error(
            problem_text, feature_name, candidate_paths, pattern_option_name
        )
    return candidate_paths[0] if candidate_paths else None


def _choose_paths_of_atlas(file_paths: list[Path], atlas: Atlas) -> list[Path]:
    """Return, of several files, those whose names say the atlas and the whole."""
    if len(file_paths) < 2:
        return file_paths
    atlas_paths = [
        file_path for file_path in file_paths if _is_of_atlas(file_path, atlas)
    ] or file_paths
    # micapipe writes parts of its matrix beside the whole
    return [
        file_path for file_path in atlas_paths if "full-connectome" in file_path.name
    ] or atlas_paths


def _is_path_of_pattern(file_path: Path, name_pattern: str, ignores_case: bool) -> bool:
    """Return whether a pattern fits the name or, with `/`, the end of a path."""
    file_name = file_path.name.lower() if ignores_case else file_path.name
    return fnmatchcase(file_name, name_pattern) or (
        "/" in name_pattern and file_path.match(name_pattern)
    )


def _is_of_atlas(file_path: Path, atlas: Atlas) -> bool:
    """Return whether a file's name says this atlas, and none of its relatives."""
    file_name = file_path.name.lower()
    atlas_words = atlas.settings.get("file_words", [atlas.name.lower()])
    other_atlas_words = atlas.settings.get("other_words", [])
    return any(file_word in file_name for file_word in atlas_words) and not any(
        file_word in file_name for file_word in other_atlas_words
    )
