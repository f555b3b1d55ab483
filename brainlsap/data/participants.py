"""Read the people of a cohort, their visits, their labels, and the order of classes."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from brainlsap.arrays import match_class_name
from brainlsap.data.column_conflicts import find_column_conflicts
from brainlsap.data.covariates import (
    COVARIATES,
    KEY_COLUMNS,
    STAGE_OF_WORD,
    are_compact_dates,
    find_covariate_faults,
    find_covariate_kind,
    find_spelling_faults,
    find_stage_column_names,
    is_birth_column,
    is_diagnosis_column,
    make_unusual_value_notes,
    propose_label_option,
    unify_number_labels,
)
from brainlsap.data.dates import (
    count_days_since_1970,
    find_date_faults,
    find_scan_date_columns,
    find_visit_date_columns,
    list_age_step_contradictions,
    make_date_notes,
    parse_dates,
    parse_days,
)
from brainlsap.data.features import FeatureSources
from brainlsap.data.find_files import (
    FIRST_VISITS,
    Scan,
    ScanIdentity,
    StudyFiles,
    find_unnamed_visit_column,
    make_visit_sort_key,
)
from brainlsap.data.flow import (
    LATER_VISIT,
    NO_IMAGE,
    OTHER_CLASS,
    LeftOutScan,
    find_fate_of_fault,
    match_excluded_scan_names,
)
from brainlsap.data.id_columns import id_column_sentence, make_visit_column_advice
from brainlsap.data.region_tables import TableContents, make_pandas_reading_text
from brainlsap.data.tables import (
    MissingWords,
    TableColumns,
    is_formula_error,
    is_number_with_marks,
    read_table_columns,
)
from brainlsap.exceptions import (
    BrainlsapError,
    CohortError,
    FileFormatError,
    ParameterError,
)
from brainlsap.findings import (
    ASSUMED,
    BASELINE,
    CHANGED_PERSON,
    CLASSES,
    EXCLUDED,
    FAULT,
    FIRST_VISIT_VALUE,
    LEFT_OUT,
    NO_LABEL,
    ONE_ROW,
    Finding,
    make_findings,
)
from brainlsap.text import (
    count_text,
    format_leave_out_advice,
    join_with_commas,
    named_counts_text,
    option_text,
)

FOREIGN_VISITS = "foreign visits"
"""Kind of the error that the visits in file names are not those of the table."""
UNLABELLED = "unlabelled"
"""Class of all scans of people to predict, for whom no label is read."""
PEOPLE_FILES = tuple(
    f"{table_name}{table_suffix}"
    for table_name in ("participants", "subjects")
    for table_suffix in (".tsv", ".csv", ".xlsx")
)
# Words that call a visit the baseline, and words that say that it lies elsewhere.
_BASELINE_WORDS = frozenset(("bl", "bsl", "base"))
_NEUTRAL_WORDS = frozenset(("visit", "ses", "session", "scan", "exam", "examination"))
_NOT_BASELINE_WORDS = frozenset(
    ("post", "after", "pre", "before", "follow", "followup", "fu", "no", "not", "non")
)
# Units of time whose number 0 is the baseline (M00, "month 0", "0 months", T0).
_TIME_UNIT = r"(?:m|mo|mon|months?|y|yr|years?|w|wk|weeks?|d|days?|t|tp|time|timepoint)"
_TIME_ZERO = re.compile(rf"{_TIME_UNIT}0+|0+{_TIME_UNIT}")
# Dates that do not begin with the year: 31.12.2020, 12-2020, 311220.
_DATE = re.compile(r"(?!19\d\d|20\d\d)(\d+[./-][\d./-]+|\d{6,})")
# A label of more people is a class, however similar its name is to that of a stage.
_MOST_MISSPELT_PEOPLE = 2
# In shorter words one letter often distinguishes two classes.
_MIN_LETTERS = 5
_KEY_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
# Largest distance in years of an age of a person from those of the visits: ages may be
# rounded, and the first visit may be months after inclusion.
_MAX_AGE_DISTANCE = 1.0
# Smallest share of people with visits in file names of whom the table has other visits.
_MIN_SHARE_OF_FOREIGN_VISITS = 0.9
# Visits at least this many months apart are a year apart.
_MONTHS_PER_YEAR = 12
# Months in the units of time of names of visits: M12, "year 1", ses-d0365.
_MONTHS_PER_UNIT = {"d": 12 / 365.25, "w": 12 * 7 / 365.25, "m": 1, "y": 12}
_TIME_OF_VISIT = re.compile(
    r"(?P<unit>[dwmy])(?:ays?|eeks?|k|o|on|onths?|ears?|r)?[-_ ]?(?P<number>\d+)"
    r"|(?P<first_number>\d+)[-_ ]?(?P<last_unit>[dwmy])(?:ays?|eeks?|k|o|on|onths?|"
    r"ears?|r)?"
)
# Forms of dates in names of files, and in tables.
_FILE_DATE_FORMATS = ("%Y-%m-%d", "%Y%m%d")
_TABLE_DATE_FORMATS = (
    *("%Y-%m-%d", "%Y%m%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y"),
    *("%m-%d-%Y", "%d.%m.%y", "%m/%d/%y", "%d/%m/%y"),
)
# Words that say that an age is of the first visit.
_BASELINE_AGE = re.compile(r".*_?(bl|baseline)", re.IGNORECASE)
# More values than this are of a continuous number, not of classes.
_MOST_NUMBERS = 10

Facts = dict[str, str | None]


class FactsByPersonAndVisit(dict[str, dict[str, tuple[ScanIdentity, Facts]]]):
    """The people of a study, by person and visit as keys of names.

    The values are the name as written, and labels and covariates as text. Facts about
    a person that hold for all visits have the visit "".

    Attributes
    ----------
    missing_words_by_visit : dict of (person, visit) to (dict of str to str)
        By column, the words of cells that count as missing, such as `None`, and errors
        of formulas, such as `#N/A`.
    covariate_spellings : dict of str to str
        Heads of covariates as the first table writes them, by their lower case, so
        that `Age` of one table and `age` of another are one column.
    sessions_columns : dict of str to (set of str)
        Columns of the sessions file of each person who has one. Empty if the file
        cannot be read, which is a fault of its own.
    """

    def __init__(self) -> None:
        super().__init__()
        self.missing_words_by_visit: dict[tuple[str, str], dict[str, str]] = {}
        self.covariate_spellings: dict[str, str] = {}
        self.sessions_columns: dict[str, set[str]] = {}

    def find_missing_word(
        self, participant_id: str, session_id: str, column_name: str
    ) -> str:
        """Return the word in a cell that counts as missing; empty if there is none."""
        for person_visit_key in ((participant_id, session_id), (participant_id, "")):
            if cell_text := self.missing_words_by_visit.get(person_visit_key, {}).get(
                column_name
            ):
                return cell_text
        return ""


def list_people_table_paths(folder: Path) -> list[Path]:
    """Return the tables of people in a folder, best first."""
    return [
        folder / file_name
        for file_name in PEOPLE_FILES
        if (folder / file_name).is_file()
    ]


def order_classes(
    labels: Sequence[str] | np.ndarray, class_order: Sequence[str] | None = None
) -> tuple[tuple[str, ...], bool]:
    """Return the classes of some labels, and whether their order is known.

    Parameters
    ----------
    labels : sequence of str
        Of the scans.
    class_order : sequence of str, optional
        The order wanted, which then is known.

    Returns
    -------
    classes : tuple of str
        That of `class_order`; else NC/CN/HC/Control/Healthy, SMC/SCD, EMCI/early MCI,
        MCI, LMCI/late MCI, AD/Dementia, in any case, where every label is one of these
        and of a stage of its own; numbers by value; else sorted, the healthy first.
    ordered : bool
        False where the classes are only sorted: no stage comes before another.

    Raises
    ------
    ParameterError
        If `class_order` names a class twice.

    Examples
    --------
    >>> order_classes(["AD", "CN", "MCI"]), order_classes(["10", "9"])
    ((('CN', 'MCI', 'AD'), True), (('9', '10'), True))
    >>> order_classes(["CN", "AD", "FTD"])
    (('CN', 'AD', 'FTD'), False)
    """
    if class_order is not None:
        known_labels = [*dict.fromkeys(labels)]
        class_names = tuple(
            match_class_name(class_name, known_labels)
            for class_name in (
                [class_order] if isinstance(class_order, str) else class_order
            )
        )
        if repeated_class_names := [
            class_name
            for class_name in class_names
            if class_names.count(class_name) > 1
        ]:
            raise ParameterError(
                f"classes contains {repeated_class_names[0]!r} more than once. Name "
                "each class once."
            )
        return class_names, True
    label_texts = sorted({str(scan_label) for scan_label in labels})
    stage_number_list = [
        STAGE_OF_WORD.get(class_name.lower(), -1) for class_name in label_texts
    ]
    if -1 not in stage_number_list and len(set(stage_number_list)) == len(
        stage_number_list
    ):
        return tuple(
            sorted(
                label_texts, key=lambda class_name: STAGE_OF_WORD[class_name.lower()]
            )
        ), True
    try:
        return tuple(
            sorted(label_texts, key=lambda class_name: (float(class_name), class_name))
        ), True
    except ValueError:
        # the first class is the reference that others differ from
        return tuple(
            sorted(
                label_texts,
                key=lambda class_name: STAGE_OF_WORD.get(class_name.lower()) != 0,
            )
        ), False


class _PeopleRows(NamedTuple):
    """A table of people, or of one person's visits; named in messages by its path.

    `participant_id` is empty for the table of people, and `session_column_name` if no
    column names visits.
    """

    path_and_sheet: str
    scan_identities: Sequence[ScanIdentity]
    cells_by_column: Mapping[str, Sequence[str | None]]
    missing_words_by_column: MissingWords
    participant_id: str = ""
    id_column_name: str | None = None
    session_column_name: str | None = None


def _list_people_rows_and_faults(
    table_contents: TableContents,
) -> tuple[list[_PeopleRows], list[Finding]]:
    """Return the table of people and every sessions file beside it, and faults."""
    cells_by_column = table_contents.text_table.to_dict("list")
    people_rows_records = [
        _PeopleRows(
            table_contents.path_and_sheet,
            table_contents.scan_identities,
            cells_by_column,
            table_contents.missing_words_by_column,
            id_column_name=table_contents.id_column_name,
            session_column_name=table_contents.session_column_name,
        )
    ]
    table_findings = list[Finding]()
    participant_name_by_key = {
        scan_identity.key[0]: scan_identity.participant
        for scan_identity in table_contents.scan_identities
    }
    for participant_id, participant_name in participant_name_by_key.items():
        for folder_name in {participant_name, f"sub-{participant_name}"}:
            sessions_path = (
                table_contents.path.parent / folder_name / f"{folder_name}_sessions.tsv"
            )
            if not sessions_path.is_file():
                continue
            try:
                session_ids, other_cells_by_column = _read_sessions_and_columns(
                    sessions_path
                )
            except FileFormatError as error:
                table_findings.append(Finding.from_error(error))
                people_rows_records.append(
                    _PeopleRows(str(sessions_path), [], {}, {}, participant_id)
                )
                continue
            visit_identities = [
                ScanIdentity(participant_name, session_id) for session_id in session_ids
            ]
            people_rows_records.append(
                _PeopleRows(
                    str(sessions_path),
                    visit_identities,
                    other_cells_by_column,
                    other_cells_by_column.missing_words_by_column,
                    participant_id,
                    session_column_name="session_id",
                )
            )
    return people_rows_records, table_findings


def list_facts_and_findings(
    table_contents: TableContents,
) -> tuple[FactsByPersonAndVisit, list[Finding]]:
    """Return the people of a table, and of the sessions file of each person.

    And faults: a person who stands twice, a sessions file that cannot be read.
    """
    people_rows_records, table_findings = _list_people_rows_and_faults(table_contents)
    facts_by_person_and_visit = FactsByPersonAndVisit()
    for people_rows_record in people_rows_records:
        table_findings += _add_rows_and_find_repeats(
            facts_by_person_and_visit, people_rows_record
        )
    return facts_by_person_and_visit, table_findings


def _add_rows_and_find_repeats(
    facts_by_person_and_visit: FactsByPersonAndVisit, people_rows_record: _PeopleRows
) -> list[Finding]:
    """Add the rows of one table to the facts; return the rows that stand twice."""
    row_findings = list[Finding]()
    visit_column_name = find_unnamed_visit_column(
        people_rows_record.scan_identities, people_rows_record.cells_by_column
    )
    lower_names = [
        column_name.lower() for column_name in people_rows_record.cells_by_column
    ]
    column_names = [
        facts_by_person_and_visit.covariate_spellings.setdefault(
            lower_name, column_name
        )
        if lower_name in COVARIATES and lower_names.count(lower_name) == 1
        else column_name
        for column_name, lower_name in zip(
            people_rows_record.cells_by_column, lower_names, strict=True
        )
    ]
    if people_rows_record.participant_id:
        facts_by_person_and_visit.sessions_columns.setdefault(
            people_rows_record.participant_id, set()
        ).update(column_names)
    missing_words_by_column = {
        column_name: people_rows_record.missing_words_by_column.get(original_name, {})
        for original_name, column_name in zip(
            people_rows_record.cells_by_column, column_names, strict=True
        )
    }
    session_ids_by_person: dict[str, set[str]] = {}
    cells_by_visit: dict[tuple[str, str], list[str | None]] = {}
    table_rows = zip(
        people_rows_record.scan_identities,
        *people_rows_record.cells_by_column.values(),
        strict=True,
    )
    for row_index, (scan_identity, *row_cells) in enumerate(table_rows):
        participant_id, session_id = scan_identity.key
        person_session_ids = session_ids_by_person.setdefault(participant_id, set())
        is_repeated_visit = session_id in person_session_ids
        is_identical_row = cells_by_visit.get(scan_identity.key) == row_cells
        # One row without a visit would be of all visits.
        has_unnamed_visit = bool(person_session_ids) and "" in (
            session_id,
            *person_session_ids,
        )
        if is_repeated_visit or has_unnamed_visit:
            row_findings.append(
                _make_repeated_row_fault(
                    people_rows_record,
                    scan_identity,
                    visit_column_name,
                    _differing_cells_text(
                        column_names, cells_by_visit.get(scan_identity.key), row_cells
                    ),
                    is_repeated_visit=is_repeated_visit,
                    is_identical_row=is_identical_row,
                )
            )
            continue
        person_session_ids.add(session_id)
        cells_by_visit[scan_identity.key] = row_cells
        cell_by_column = dict(zip(column_names, row_cells, strict=True))
        missing_word_by_column = {
            column_name: missing_word_by_row[row_index]
            for column_name, missing_word_by_row in missing_words_by_column.items()
            if row_index in missing_word_by_row
        }
        for column_name, cell_text in cell_by_column.items():
            if is_formula_error(cell_text):
                missing_word_by_column[column_name] = str(cell_text)
                cell_by_column[column_name] = None
        if missing_word_by_column:
            known_word_by_column = (
                facts_by_person_and_visit.missing_words_by_visit.setdefault(
                    (participant_id, session_id), {}
                )
            )
            known_word_by_column.update(missing_word_by_column)
        identity_facts_by_visit = facts_by_person_and_visit.setdefault(
            participant_id, {}
        )
        earlier_identity, earlier_facts = identity_facts_by_visit.get(
            session_id, (scan_identity, Facts())
        )
        identity_facts_by_visit[session_id] = (
            earlier_identity,
            earlier_facts | cell_by_column,
        )
    return row_findings


def _make_repeated_row_fault(
    people_rows_record: _PeopleRows,
    scan_identity: ScanIdentity,
    visit_column_name: str | None,
    difference_text: str,
    *,
    is_repeated_visit: bool,
    is_identical_row: bool,
) -> Finding:
    """Return the fault that a table has several rows of a person or of a visit."""
    message = (
        f"{people_rows_record.path_and_sheet} contains several rows of one "
        "person; expected one row for each visit"
    )
    advice = (
        "Write the visits in a column session_id, name their column with "
        f"{option_text('session_column')}, or delete the row that is wrong"
    )
    finding_values: dict[str, str] = {}
    session_column_name = people_rows_record.session_column_name
    if visit_column_name is not None:
        advice = make_visit_column_advice(visit_column_name)
        finding_values["session_column"] = visit_column_name
    if is_identical_row:
        message = (
            f"{people_rows_record.path_and_sheet} contains two identical rows "
            "of one person"
        )
        advice = "Delete one of the rows"
        finding_values = {}
    elif is_repeated_visit and scan_identity.session and session_column_name:
        message = (
            f"{people_rows_record.path_and_sheet} contains several rows of one "
            "visit; expected one row for each visit"
        )
        advice = (
            "Delete the row that is wrong, or correct its visit in the column "
            f"{session_column_name!r}"
        )
        difference_text = f"{scan_identity.text} with {difference_text}"
    if people_rows_record.id_column_name is not None:
        advice += f". {id_column_sentence(people_rows_record.id_column_name)}"
    return Finding(
        message,
        FAULT,
        participant=scan_identity.participant,
        got=difference_text,
        advice=advice,
        values=finding_values,
    )


def _differing_cells_text(
    column_names: Sequence[str],
    earlier_cells: Sequence[str | None] | None,
    row_cells: Sequence[str | None],
) -> str:
    """Return the cells in which two rows differ, at most three; "" if none is known."""
    difference_texts = [
        f"{column_name} {earlier_cell or 'n/a'} and {row_cell or 'n/a'}"
        for column_name, earlier_cell, row_cell in zip(
            column_names, earlier_cells or row_cells, row_cells, strict=True
        )
        if earlier_cell != row_cell
    ]
    return join_with_commas(difference_texts, 3)


def _read_sessions_and_columns(sessions_path: Path) -> tuple[list[str], TableColumns]:
    """Return the visits that a person's sessions file lists, and its other columns."""
    cells_by_column = read_table_columns(sessions_path)
    if "session_id" not in cells_by_column:
        raise FileFormatError(
            "every row needs a 'session_id'; the columns are "
            f"{', '.join(cells_by_column)}.",
            path=sessions_path,
        )
    session_ids = cells_by_column.pop("session_id")
    for line_number, session_cell in zip(
        cells_by_column.line_numbers, session_ids, strict=True
    ):
        if session_cell is None or is_formula_error(session_cell):
            raise FileFormatError(
                f"every row must have a 'session_id'; line {line_number} contains "
                f"{session_cell or 'none'}. Write the ID of the visit in this line, "
                "for example ses-M12.",
                path=sessions_path,
            )
    return [str(session_cell) for session_cell in session_ids], cells_by_column


@dataclass
class ScanList:
    """The scans of a cohort, and what is found, noted and refused about them."""

    scans: list[Scan]
    table: pd.DataFrame
    label_name: str | None
    """The column, as the table writes it."""
    classes: tuple[str, ...]
    classes_ordered: bool
    note_findings: list[Finding]
    fault_findings: list[Finding]
    count_texts: list[str] = field(default_factory=list)
    """Lines with the data that were read, and the number of scans."""
    scan_note_findings: list[Finding] = field(default_factory=list)
    """Notes on single scans; a note has one entry for each of its scans."""
    left_out_scans: list[LeftOutScan] = field(default_factory=list)
    """Scans of the tables that are not in `scans`."""
    progress_bar_options: Mapping[str, Any] = field(default_factory=dict)
    """Options of `tqdm` for the progress bar."""

    def add_fault(
        self, error_or_text: BrainlsapError | Finding | str, scan: Scan | None = None
    ) -> None:
        """Add a fault, of a scan or of the study, unless it is known."""
        scan_name = "" if scan is None else scan.name
        if isinstance(error_or_text, BrainlsapError):
            finding = Finding.from_error(error_or_text, scan_name)
        elif isinstance(error_or_text, Finding):
            finding = error_or_text
        else:
            finding = Finding(error_or_text, FAULT, scan=scan_name)
        if finding not in self.fault_findings:
            self.fault_findings.append(finding)

    def add_notes(
        self,
        notes: Iterable[Finding | str],
        *,
        prefix_text: str = "",
        is_about_scan: bool = False,
    ) -> None:
        """Add notes on the study, or on one scan, each beginning with `prefix_text`."""
        note_list = self.scan_note_findings if is_about_scan else self.note_findings
        for finding in make_findings(notes):
            message = (
                f"{prefix_text}: {finding.message}" if prefix_text else finding.message
            )
            note_list.append(replace(finding, message=message))

    def make_counted_notes(self) -> list[Finding]:
        """Return the notes on single scans, each once with its number of scans."""
        distinct_findings = list[Finding]()
        scan_counts = list[int]()
        for finding in self.scan_note_findings:
            if finding in distinct_findings:
                scan_counts[distinct_findings.index(finding)] += 1
            else:
                distinct_findings.append(finding)
                scan_counts.append(1)
        n_scans = len(self.scans)
        return [
            replace(
                finding, message=f"{finding.message} ({scan_count} of {n_scans} scans)"
            )
            for finding, scan_count in zip(distinct_findings, scan_counts, strict=True)
        ]


def list_scans(
    facts_by_person_and_visit: FactsByPersonAndVisit,
    feature_sources: FeatureSources,
    label_name: str | None,
    people_table_name: str,
    classes: Sequence[str] | None = None,
    scan_choice: str = "all",
    place_by_excluded_id: Mapping[str, str] | None = None,
    skipped_fault_by_scan_or_person: Mapping[str, Finding] | None = None,
) -> ScanList:
    """List the scans of a cohort with their labels, covariates and files.

    `people_table_name` is the name of the table of people. People without folders of
    their own have the visits that FreeSurfer or tables of regions know. Scans and
    people in `place_by_excluded_id`, and those with a fault in
    `skipped_fault_by_scan_or_person`, are left out.
    """
    folder = feature_sources.study_files.folder
    label_name = _find_label_column_name(
        facts_by_person_and_visit,
        label_name,
        people_table_name,
        folder,
        feature_sources.people_contents,
    )
    _refuse_other_date_form(
        facts_by_person_and_visit, feature_sources, people_table_name
    )
    _refuse_foreign_visits(
        facts_by_person_and_visit, feature_sources.study_files, people_table_name
    )
    visit_list = _list_visits(
        facts_by_person_and_visit, feature_sources, label_name, scan_choice
    )
    visit_list.exclude_scans(place_by_excluded_id or {})
    visit_list.skip_faulty_scans(skipped_fault_by_scan_or_person or {})
    omission_findings = list[Finding]()
    if visit_list.unscanned_visit_names:
        message = (
            count_text(len(visit_list.unscanned_visit_names), "listed visit", "were")
            + " left out, because no files or folders were found for"
        )
        unscanned_visit_names = tuple(visit_list.unscanned_visit_names)
        omission_findings.append(
            Finding(
                message,
                LEFT_OUT,
                kind=NO_IMAGE,
                people=unscanned_visit_names,
                max_people=3,
            )
        )
    for people_names, reason_text in (
        (
            visit_list.people_without_listed_baseline,
            f"{people_table_name} lists no baseline visit of",
        ),
        (
            visit_list.people_without_scanned_baseline,
            "no files or folders of the baseline visit were found, although "
            f"{people_table_name} lists this visit for",
        ),
    ):
        if people_names:
            people_text = count_text(len(people_names), "person", "were")
            omission_findings.append(
                Finding(
                    f"{people_text} left out, because {reason_text}",
                    LEFT_OUT,
                    kind=BASELINE,
                    people=tuple(people_names),
                    max_people=3,
                )
            )
    if visit_list.n_contradictions:
        message = (
            f"the {label_name} of {count_text(visit_list.n_contradictions, 'scan')} "
            f"differs between {people_table_name} and sub-*_sessions.tsv. The labels "
            "of the sessions files were used"
        )
        omission_findings.append(Finding(message))
    if visit_list.n_other_ages:
        message = (
            f"the age of {count_text(visit_list.n_other_ages, 'person')} differs "
            f"between {people_table_name} and sub-*_sessions.tsv. The ages of the "
            "sessions files were used"
        )
        omission_findings.append(Finding(message))
    if not visit_list.scans:
        exclusion_reasons = [f"{people_table_name} lists no scan"]
        n_excluded_scans = sum(
            left_out_scan.fate == EXCLUDED or bool(left_out_scan.reason)
            for left_out_scan in visit_list.left_out_scans
        )
        if n_excluded_scans:
            exclusion_reasons = [
                f"{count_text(n_excluded_scans, 'scan', 'were')} excluded or faulty"
            ]
            exclusion_reasons += _list_commonest_fault_text(
                skipped_fault_by_scan_or_person or {}
            )
        if visit_list.unscanned_visit_names:
            n_unscanned_visits = len(visit_list.unscanned_visit_names)
            exclusion_reasons.append(
                f"{count_text(n_unscanned_visits, 'listed visit', 'have')} no files or "
                "folders"
            )
        exclusion_reasons += [
            omission_finding.shareable_text()
            for omission_finding in omission_findings
            if omission_finding.kind != NO_IMAGE
        ]
        raise CohortError(
            "no scan is left for the analysis. Reasons: "
            f"{'; '.join(exclusion_reasons)}",
            path=folder,
        )
    covariate_names = _list_fact_names(facts_by_person_and_visit)
    covariate_table = pd.DataFrame(
        visit_list.facts, columns=covariate_names, dtype=object
    )
    covariate_table = covariate_table.where(covariate_table.notna(), None)
    scan_table = pd.DataFrame(visit_list.name_triples, columns=KEY_COLUMNS[:3])
    scans = visit_list.scans
    scan_fault_findings = visit_list.fault_findings
    conflict_faults, conflict_notes = _list_conflict_faults_and_notes(
        feature_sources, scans, covariate_table, facts_by_person_and_visit, label_name
    )
    scan_fault_findings += conflict_faults
    omission_findings += conflict_notes
    class_names: tuple[str, ...] = (UNLABELLED,)
    are_classes_ordered = False
    if label_name is None:
        scan_table["label"] = UNLABELLED
    else:
        scan_table["label"] = covariate_table.pop(label_name)
        class_selection = _select_labelled_scans(
            scan_table, label_name, people_table_name, classes, visit_list
        )
        class_names, are_classes_ordered = (
            class_selection.classes,
            class_selection.are_classes_ordered,
        )
        omission_findings += class_selection.note_findings
        scan_fault_findings += class_selection.fault_findings
        labelled_scan_mask = class_selection.labelled_scan_mask
        visit_list.left_out_scans += [
            LeftOutScan(
                scan_row.scan,
                scan_row.participant,
                scan_row.session,
                NO_LABEL if pd.isna(scan_row.label) else OTHER_CLASS,
            )
            for scan_row in scan_table[~labelled_scan_mask].itertuples()
        ]
        scan_table = scan_table[labelled_scan_mask].reset_index(drop=True)
        covariate_table = covariate_table[labelled_scan_mask].reset_index(drop=True)
        scans = [
            scan
            for scan, is_labelled in zip(scans, labelled_scan_mask, strict=True)
            if is_labelled
        ]
    omission_findings += _make_failed_formula_notes(
        facts_by_person_and_visit, label_name
    )
    scan_fault_findings += _add_covariates_to_table(scan_table, covariate_table)
    omission_findings += make_unusual_value_notes(scan_table)
    omission_findings += make_changed_person_notes(scan_table)
    omission_findings += make_date_notes(scan_table)
    omission_findings += _make_one_row_notes(
        scan_table, visit_list.people_with_one_row, label_name, people_table_name
    )
    omission_findings += make_first_visit_value_notes(scan_table, label_name)
    scan_fault_findings += find_date_faults(scan_table)
    has_stage_order = label_name is None or are_classes_ordered
    scan_fault_findings += find_covariate_faults(
        scan_table, label_name or "", has_class_order=has_stage_order
    )
    return ScanList(
        scans,
        scan_table,
        label_name,
        class_names,
        are_classes_ordered,
        omission_findings,
        scan_fault_findings,
        left_out_scans=visit_list.left_out_scans,
    )


def _list_conflict_faults_and_notes(
    feature_sources: FeatureSources,
    scans: Sequence[Scan],
    covariate_table: pd.DataFrame,
    facts_by_person_and_visit: FactsByPersonAndVisit,
    label_name: str | None,
) -> tuple[list[Finding], list[Finding]]:
    """Return faults and notes on columns that differ between the tables of a study.

    `covariate_table` has one row for each scan.
    """
    if feature_sources.people_contents is None:
        return [], []
    conflict_findings = find_column_conflicts(
        feature_sources.people_contents,
        [*feature_sources.people_sheet_contents, *feature_sources.table_contents_list],
        feature_sources.study_files,
        scans,
        {
            str(column_name): covariate_table[column_name].tolist()
            for column_name in covariate_table
        },
        facts_by_person_and_visit,
        label_name,
    )
    fault_findings = [
        finding for finding in conflict_findings if finding.severity == FAULT
    ]
    note_findings = [
        finding for finding in conflict_findings if finding.severity != FAULT
    ]
    return fault_findings, note_findings


def _list_commonest_fault_text(
    fault_by_scan_or_person: Mapping[str, Finding],
) -> list[str]:
    """Return the text of the fault of most scans or people, if there are faults."""
    fault_by_message = {
        fault_finding.message: fault_finding
        for fault_finding in fault_by_scan_or_person.values()
    }
    n_faults_by_message = Counter(
        fault_finding.message for fault_finding in fault_by_scan_or_person.values()
    )
    return [
        f"the most frequent fault ({n_faults} of {n_faults_by_message.total()}) is: "
        f"{fault_by_message[message].text()}"
        for message, n_faults in n_faults_by_message.most_common(1)
    ]


def _list_fact_names(facts_by_person_and_visit: FactsByPersonAndVisit) -> list[str]:
    """Return the columns that are known of anybody, in the order of tables."""
    identity_facts_pairs = [
        identity_facts_pair
        for identity_facts_by_visit in facts_by_person_and_visit.values()
        for identity_facts_pair in identity_facts_by_visit.values()
    ]
    return [
        *dict.fromkeys(
            column_name
            for _, visit_facts in identity_facts_pairs
            for column_name in visit_facts
        )
    ]


def _find_label_column_name(
    facts_by_person_and_visit: FactsByPersonAndVisit,
    label_name: str | None,
    people_table_name: str,
    folder: Path,
    people_contents: TableContents | None,
) -> str | None:
    """Return the column of labels in the spelling of the table, which may differ."""
    column_names = _list_fact_names(facts_by_person_and_visit)
    if (
        label_name is None
        or label_name in column_names
        or not facts_by_person_and_visit
    ):
        return label_name
    matching_names = [
        column_name
        for column_name in column_names
        if column_name.lower() == label_name.lower()
    ]
    if len(matching_names) != 1:
        columns_text = join_with_commas(column_names, 8) or "none besides the ID"
        advice = f"Name the label column with {option_text('label')}"
        if people_contents is not None and _has_person_named(
            facts_by_person_and_visit, label_name
        ):
            reading_text = make_pandas_reading_text(
                people_contents.path, people_contents.sheet_name, "index_col=0"
            )
            advice = (
                "The rows seem to be columns, because the first column contains "
                f"{label_name!r}. Transpose the table: {reading_text}.T"
            )
        raise CohortError(
            f"{people_table_name} has no column {label_name!r} for the label; its "
            f"columns are {columns_text}. {advice}",
            path=folder,
            values=propose_label_option([_make_fact_table(facts_by_person_and_visit)]),
        )
    return matching_names[0]


def _has_person_named(
    facts_by_person_and_visit: FactsByPersonAndVisit, name: str
) -> bool:
    """Return whether the id of a person is a name, in any case."""
    return any(
        visit_identity.participant.lower() == name.lower()
        for identity_facts_by_visit in facts_by_person_and_visit.values()
        for visit_identity, _ in identity_facts_by_visit.values()
    )


def _make_fact_table(facts_by_person_and_visit: FactsByPersonAndVisit) -> pd.DataFrame:
    """Return the facts of every visit of every person, one visit a row."""
    return pd.DataFrame(
        [
            visit_facts
            for identity_facts_by_visit in facts_by_person_and_visit.values()
            for _, visit_facts in identity_facts_by_visit.values()
        ],
        dtype=object,
    )


@dataclass
class _VisitList:
    """The visits that become scans, one entry a scan in each list."""

    scans: list[Scan] = field(default_factory=list)
    name_triples: list[tuple[str, str, str]] = field(default_factory=list)
    """Names of scan, person and visit, as the table writes them."""
    facts: list[Facts] = field(default_factory=list)
    missing_label_words: list[str] = field(default_factory=list)
    """Words in label cells that count as missing."""
    listed_visits_by_scan: dict[str, list[str]] = field(default_factory=dict)
    """Listed visits of the person, for each scan whose visit is not listed."""
    unscanned_visit_names: list[str] = field(default_factory=list)
    """Listed visits without files, of people who have files of other visits."""
    people_without_listed_baseline: list[str] = field(default_factory=list)
    people_without_scanned_baseline: list[str] = field(default_factory=list)
    """People whose baseline is listed, but has no files and no rows of values."""
    n_contradictions: int = 0
    """Scans whose label differs between the tables of people and of visits."""
    n_other_ages: int = 0
    """People whose age in the table of people fits no visit."""
    people_with_one_row: set[str] = field(default_factory=set)
    """People whose label is in a row for all visits."""
    fault_findings: list[Finding] = field(default_factory=list)
    left_out_scans: list[LeftOutScan] = field(default_factory=list)
    """Scans of the tables that do not become scans of the cohort."""

    def exclude_scans(self, place_by_excluded_id: Mapping[str, str]) -> None:
        """Leave out scans by the ids of people or scans; raise for unknown ids."""
        if not place_by_excluded_id:
            return
        all_left_out_scans = [
            *self.left_out_scans,
            *(LeftOutScan(*name_triple, EXCLUDED) for name_triple in self.name_triples),
        ]
        excluded_scan_names = match_excluded_scan_names(
            place_by_excluded_id, all_left_out_scans
        )
        excluded_person_ids = {
            left_out_scan.participant for left_out_scan in all_left_out_scans
        } - {
            left_out_scan.participant
            for left_out_scan in all_left_out_scans
            if left_out_scan.scan not in excluded_scan_names
        }
        self.left_out_scans = [
            left_out_scan._replace(fate=EXCLUDED)
            if left_out_scan.scan in excluded_scan_names
            else left_out_scan
            for left_out_scan in self.left_out_scans
        ]
        self._remove_scans(dict.fromkeys(excluded_scan_names, (EXCLUDED, "")))
        self.fault_findings = [
            fault_finding
            for fault_finding in self.fault_findings
            if fault_finding.participant not in excluded_person_ids
        ]

    def skip_faulty_scans(self, fault_by_scan_or_person: Mapping[str, Finding]) -> None:
        """Leave out scans that have a fault, or whose person has one."""
        fate_and_reason_by_scan = dict[str, tuple[str, str]]()
        for scan_name, participant_name, _ in self.name_triples:
            fault_finding = fault_by_scan_or_person.get(
                scan_name
            ) or fault_by_scan_or_person.get(participant_name)
            if fault_finding is not None:
                fate_and_reason_by_scan[scan_name] = (
                    find_fate_of_fault(fault_finding),
                    str(fault_finding),
                )
        self._remove_scans(fate_and_reason_by_scan)
        self.fault_findings = [
            fault_finding
            for fault_finding in self.fault_findings
            if fault_finding.participant not in fault_by_scan_or_person
        ]

    def _remove_scans(
        self, fate_and_reason_by_scan: Mapping[str, tuple[str, str]]
    ) -> None:
        """Move scans to `left_out_scans`, with fate and reason by name."""
        self.left_out_scans += [
            LeftOutScan(*name_triple, *fate_and_reason_by_scan[name_triple[0]])
            for name_triple in self.name_triples
            if name_triple[0] in fate_and_reason_by_scan
        ]
        remaining_indices = [
            row_index
            for row_index, name_triple in enumerate(self.name_triples)
            if name_triple[0] not in fate_and_reason_by_scan
        ]
        self.scans = [self.scans[row_index] for row_index in remaining_indices]
        self.facts = [self.facts[row_index] for row_index in remaining_indices]
        self.missing_label_words = [
            self.missing_label_words[row_index] for row_index in remaining_indices
        ]
        self.name_triples = [
            self.name_triples[row_index] for row_index in remaining_indices
        ]


def _list_visits(
    facts_by_person_and_visit: FactsByPersonAndVisit,
    feature_sources: FeatureSources,
    label_name: str | None,
    scan_choice: str,
) -> _VisitList:
    """List the visits of everybody that become scans, with what is known of each."""
    visit_list = _VisitList()
    for participant_id, identity_facts_by_visit in facts_by_person_and_visit.items():
        participant_name = next(iter(identity_facts_by_visit.values()))[0].participant
        listed_session_by_visit = {
            visit_key: visit_identity.session
            for visit_key, (visit_identity, _) in identity_facts_by_visit.items()
            if visit_key
        }
        scanned_session_by_visit = _make_scanned_session_by_visit(
            participant_id, listed_session_by_visit, feature_sources
        )
        if scanned_session_by_visit:
            unscanned_session_ids = [
                session_id
                for visit_key, session_id in listed_session_by_visit.items()
                if visit_key not in scanned_session_by_visit
            ]
            for session_id in unscanned_session_ids:
                scan_name = f"{participant_name}_{session_id}"
                visit_list.unscanned_visit_names.append(scan_name)
                visit_list.left_out_scans.append(
                    LeftOutScan(scan_name, participant_name, session_id, NO_IMAGE)
                )
        session_by_visit = (
            scanned_session_by_visit or listed_session_by_visit or {"": ""}
        )
        selected_visit_keys = sorted(
            session_by_visit,
            key=lambda visit_key: make_visit_sort_key(session_by_visit[visit_key]),
        )
        if scan_choice == "baseline":
            baseline_visit_keys, baseline_findings = _choose_baselines_and_faults(
                participant_name, listed_session_by_visit, scanned_session_by_visit
            )
            visit_list.fault_findings += baseline_findings
            all_visit_keys = selected_visit_keys
            selected_visit_keys = [
                visit_key
                for visit_key in all_visit_keys
                if visit_key in baseline_visit_keys
            ][:1]
            people_without_baseline = (
                visit_list.people_without_scanned_baseline
                if baseline_visit_keys
                else visit_list.people_without_listed_baseline
            )
            people_without_baseline += [participant_name] * (not selected_visit_keys)
            visit_list.left_out_scans += [
                LeftOutScan(
                    f"{participant_name}_{session_by_visit[visit_key]}".rstrip("_"),
                    participant_name,
                    session_by_visit[visit_key],
                    LATER_VISIT,
                )
                for visit_key in all_visit_keys
                if visit_key not in selected_visit_keys
            ]
        person_facts = (
            identity_facts_by_visit[""][1] if "" in identity_facts_by_visit else Facts()
        )
        if len(selected_visit_keys) > 1 and not listed_session_by_visit:
            visit_list.fault_findings += _find_sessions_faults(
                facts_by_person_and_visit.sessions_columns,
                person_facts,
                participant_id,
                participant_name,
                len(selected_visit_keys),
            )
        # What visits list one by one is not taken from the person for another visit:
        # that visit may be listed under another name.
        empty_visit_facts = dict.fromkeys(
            column_name
            for visit_key in listed_session_by_visit
            for column_name in identity_facts_by_visit[visit_key][1]
        )
        default_facts = person_facts | empty_visit_facts
        if person_facts and (label_name or "") not in empty_visit_facts:
            visit_list.people_with_one_row.add(participant_name)
        if selected_visit_keys:
            visit_list.n_other_ages += _has_other_age(
                person_facts,
                [
                    identity_facts_by_visit[visit_key][1]
                    for visit_key in listed_session_by_visit
                ],
            )
        for visit_key in selected_visit_keys:
            scan_key = (participant_id, visit_key)
            scan_name = f"{participant_name}_{session_by_visit[visit_key]}".rstrip("_")
            is_only_visit = len(session_by_visit) == 1
            # If several visits are listed, a file without a visit may be another's.
            owns_unassigned_files = is_only_visit and len(listed_session_by_visit) < 2
            scan_paths = feature_sources.study_files.list_scan_files(
                scan_key, owns_unassigned_files
            )
            visit_facts = (
                identity_facts_by_visit[visit_key][1]
                if visit_key in listed_session_by_visit
                else Facts()
            )
            visit_list.scans.append(
                Scan(scan_name, scan_key, is_only_visit, scan_paths)
            )
            visit_list.name_triples.append(
                (scan_name, participant_name, session_by_visit[visit_key])
            )
            visit_list.facts.append(default_facts | visit_facts)
            label_word = facts_by_person_and_visit.find_missing_word(
                participant_id, visit_key, label_name or ""
            )
            visit_list.missing_label_words.append(label_word)
            stated_labels = {
                facts.get(label_name or "") for facts in (visit_facts, person_facts)
            }
            visit_list.n_contradictions += len(stated_labels - {None}) > 1
            if listed_session_by_visit and visit_key not in listed_session_by_visit:
                visit_list.listed_visits_by_scan[scan_name] = [
                    *listed_session_by_visit.values()
                ]
    return visit_list


def _refuse_other_date_form(
    facts_by_person_and_visit: FactsByPersonAndVisit,
    feature_sources: FeatureSources,
    people_table_name: str,
) -> None:
    """Raise if visits are dates that the table of people writes in another form."""
    people_contents = feature_sources.people_contents
    session_column_name = "session_id"
    if people_contents is not None and people_contents.session_column_name:
        session_column_name = people_contents.session_column_name
    listed_visits_by_person = {
        participant_id: [x for x in identity_facts_by_visit if x]
        for participant_id, identity_facts_by_visit in facts_by_person_and_visit.items()
    }
    for place_text, sessions_by_person in (
        ("the names of files", feature_sources.study_files.folder_sessions_by_person),
        ("another table", feature_sources.session_by_person_and_visit),
    ):
        date_forms = _find_other_date_form(listed_visits_by_person, sessions_by_person)
        if date_forms is None:
            continue
        column_text = f"table[{session_column_name!r}]"
        raise CohortError(
            f"the dates of visits in {people_table_name} ({date_forms.table_date}) "
            f"have another form than in {place_text} ({date_forms.file_date})",
            kind=FOREIGN_VISITS,
            advice=f"Write the dates in one form. In pandas: {column_text} = "
            f'pandas.to_datetime({column_text}, format="{date_forms.table_format}")'
            f'.dt.strftime("{date_forms.file_format}")',
            path=feature_sources.study_files.folder,
            values={
                "table_format": date_forms.table_format,
                "file_format": date_forms.file_format,
            },
        )


class _DateForms(NamedTuple):
    """Two forms of dates with an example of each."""

    table_format: str
    file_format: str
    table_date: str
    file_date: str


def _find_other_date_form(
    listed_visits_by_person: Mapping[str, Sequence[str]],
    sessions_by_person: Mapping[str, Mapping[str, str]],
) -> _DateForms | None:
    """Return the forms in which most visits agree, if none agrees as it is written."""
    listed_scans = {
        (participant_id, visit_key)
        for participant_id, listed_visits in listed_visits_by_person.items()
        for visit_key in listed_visits
    }
    scanned_scans = {
        (participant_id, visit_key)
        for participant_id, listed_visits in listed_visits_by_person.items()
        for visit_key in sessions_by_person.get(participant_id, {})
        if listed_visits
    }
    if not scanned_scans or not listed_scans.isdisjoint(scanned_scans):
        return None
    listed_table = pd.DataFrame(sorted(listed_scans), columns=["person", "visit"])
    for table_format, file_format in product(_TABLE_DATE_FORMATS, _FILE_DATE_FORMATS):
        dates = pd.to_datetime(
            listed_table["visit"], format=table_format, errors="coerce"
        )
        visits = dates.dt.strftime(file_format)
        n_matches = len(
            {*zip(listed_table["person"], visits, strict=False)} & scanned_scans
        )
        if 2 * n_matches > len(scanned_scans):
            first_visit = min(scanned_scans)[1]
            return _DateForms(
                table_format, file_format, listed_table["visit"].iloc[0], first_visit
            )
    return None


def _refuse_foreign_visits(
    facts_by_person_and_visit: FactsByPersonAndVisit,
    study_files: StudyFiles,
    people_table_name: str,
) -> None:
    """Raise if the visits in file names are in nobody's rows of the table."""
    folder_sessions_by_person = {
        participant_id: study_files.folder_sessions_by_person[participant_id]
        for participant_id in facts_by_person_and_visit
        if study_files.folder_sessions_by_person.get(participant_id)
    }
    listed_visits_by_person = {
        participant_id: {
            visit_key for visit_key in identity_facts_by_visit if visit_key
        }
        for participant_id, identity_facts_by_visit in facts_by_person_and_visit.items()
    }
    foreign_person_ids = [
        participant_id
        for participant_id, session_by_visit in folder_sessions_by_person.items()
        if listed_visits_by_person[participant_id]
        and listed_visits_by_person[participant_id].isdisjoint(session_by_visit)
    ]
    if not foreign_person_ids or len(foreign_person_ids) < (
        _MIN_SHARE_OF_FOREIGN_VISITS * len(folder_sessions_by_person)
    ):
        return
    file_visits = {
        visit_key
        for participant_id in foreign_person_ids
        for visit_key in folder_sessions_by_person[participant_id]
    }
    table_visits = set[str]().union(*listed_visits_by_person.values())
    sorted_file_visits = sorted(file_visits, key=make_visit_sort_key)
    sorted_table_visits = sorted(table_visits, key=make_visit_sort_key)
    column_name = _find_column_of_visits(
        facts_by_person_and_visit,
        {x: folder_sessions_by_person[x] for x in foreign_person_ids},
    )
    rename_advice = "Write the visits of the table into the names of the files"
    advice = rename_advice
    if column_name:
        advice = (
            f"{rename_advice}, or name the column of these visits with "
            f"{option_text('session_column', column_name)}"
        )
    elif np.isfinite(_parse_date_months(pd.Series([*file_visits]))).all():
        advice = (
            f"{rename_advice}, for example the visits that are nearest to the dates, "
            "or write the dates into a column of the table and name this column with "
            f"{option_text('session_column')}"
        )
    raise CohortError(
        f"the visits in the file names ({join_with_commas(sorted_file_visits, 4)}) are "
        f"not visits of {people_table_name} "
        f"({join_with_commas(sorted_table_visits, 4)})",
        kind=FOREIGN_VISITS,
        advice=advice,
        path=study_files.folder,
        values={"n_people": len(foreign_person_ids), "column": column_name},
    )


def _find_column_of_visits(
    facts_by_person_and_visit: FactsByPersonAndVisit,
    sessions_by_person: Mapping[str, Mapping[str, str]],
) -> str:
    """Return the column with most visits of file names in the rows of the people."""
    n_scans_by_column = Counter[str]()
    for participant_id, session_by_visit in sessions_by_person.items():
        cells_by_column: dict[str, set[str]] = {}
        for _, visit_facts in facts_by_person_and_visit[participant_id].values():
            for column_name, cell_text in visit_facts.items():
                visit_key = ScanIdentity("", cell_text or "").key[1]
                cells_by_column.setdefault(column_name, set()).add(visit_key)
        for column_name, visit_keys in cells_by_column.items():
            n_scans_by_column[column_name] += len(visit_keys & {*session_by_visit})
    n_scans = sum(map(len, sessions_by_person.values()))
    for column_name, n_matching_scans in n_scans_by_column.most_common(1):
        if 2 * n_matching_scans > n_scans:
            return column_name
    return ""


def _has_other_age(person_facts: Facts, facts_of_visits: Sequence[Facts]) -> bool:
    """Return whether the age of a person is outside the ages of the person's visits."""
    if not facts_of_visits:
        return False
    for column_name, age_text in person_facts.items():
        if find_covariate_kind(column_name) != "age":
            continue
        person_age = pd.to_numeric(age_text, errors="coerce")
        visit_ages = pd.to_numeric(
            pd.Series(
                [visit_facts.get(column_name) for visit_facts in facts_of_visits],
                dtype=object,
            ),
            errors="coerce",
        )
        # Comparisons with an age that is not known are false.
        if (
            person_age < visit_ages.min() - _MAX_AGE_DISTANCE
            or person_age > visit_ages.max() + _MAX_AGE_DISTANCE
        ):
            return True
    return False


def _find_sessions_faults(
    column_names_by_person: Mapping[str, Collection[str]],
    person_facts: Facts,
    participant_id: str,
    participant_name: str,
    n_visits: int,
) -> list[Finding]:
    """Return a fault if a person with several visits needs a sessions file.

    If the sessions files of other people state the label or a covariate of each visit,
    one value of the table of people must not stand for all visits of this person.
    `column_names_by_person` are the columns of the sessions files.
    """
    if (
        participant_id in column_names_by_person
        and not column_names_by_person[participant_id]
    ):
        return []
    sessions_column_names = set[str]().union(*column_names_by_person.values())
    shared_column_names = [
        column_name
        for column_name, cell_text in person_facts.items()
        if cell_text is not None and column_name in sessions_column_names
    ]
    if not shared_column_names:
        return []
    visits_text = count_text(n_visits, "visit")
    columns_text = join_with_commas(["session_id", *shared_column_names], 4)
    message = (
        f"the participant has {visits_text} but no sessions file, which other "
        "participants have"
    )
    file_advice = "Add the file *_sessions.tsv with"
    if participant_id in column_names_by_person:
        message = (
            f"the participant has {visits_text}, but the sessions file lists no visit"
        )
        file_advice = "Write into this file"
    return [
        Finding(
            message,
            FAULT,
            participant=participant_name,
            advice=f"{file_advice} one row for each visit ({columns_text}), or leave "
            f"the participant out with {option_text('exclude')} or "
            f"{option_text('skip_faulty', True)}",
        )
    ]


def _make_scanned_session_by_visit(
    participant_id: str,
    listed_session_by_visit: Mapping[str, str],
    feature_sources: FeatureSources,
) -> dict[str, str]:
    """Return the visits of a person that have files or rows of values, by key."""
    study_files = feature_sources.study_files
    folder_session_by_visit = study_files.folder_sessions_by_person.get(
        participant_id, {}
    )
    scanned_session_by_visit = {
        visit_key: session_id
        for visit_key, session_id in folder_session_by_visit.items()
        # A folder may hold lists and questionnaires alone.
        if visit_key not in listed_session_by_visit
        or feature_sources.has_data_of_visit(participant_id, visit_key)
    }
    has_files = any(
        study_files.files_by_visit.get((participant_id, visit_key))
        for visit_key in ("", *folder_session_by_visit)
    )
    if has_files:
        return scanned_session_by_visit
    return {
        **feature_sources.session_by_person_and_visit.get(participant_id, {}),
        **scanned_session_by_visit,
    }


def _choose_baselines_and_faults(
    participant_name: str,
    listed_session_by_visit: Mapping[str, str],
    scanned_session_by_visit: Mapping[str, str],
) -> tuple[list[str], list[Finding]]:
    """Return the visits of a person that are the baseline, and faults.

    The baseline is a listed visit if any is listed; the earliest visit may be one that
    was scanned and is not listed, and then no visit is the baseline.
    """
    baseline_findings = list[Finding]()
    session_by_visit = scanned_session_by_visit or listed_session_by_visit or {"": ""}
    candidate_session_by_visit = listed_session_by_visit or session_by_visit
    any_session_by_visit = {
        **scanned_session_by_visit,
        **listed_session_by_visit,
    } or session_by_visit
    baseline_visit_keys = choose_baseline_names(
        candidate_session_by_visit, session_by_visit
    )
    if len({*baseline_visit_keys} & {*session_by_visit}) > 1:
        visit_names_text = ", ".join(
            candidate_session_by_visit[baseline_visit_key]
            for baseline_visit_key in baseline_visit_keys
        )
        baseline_findings.append(
            Finding(
                "exactly one visit of a person may be the baseline",
                FAULT,
                participant=participant_name,
                got=visit_names_text,
                advice="Correct the names of the visits",
            )
        )
    if not (baseline_visit_keys or _are_numbered_visits(any_session_by_visit)):
        visit_names_text = ", ".join(any_session_by_visit.values())
        baseline_findings.append(
            Finding(
                "the first visit is unknown",
                FAULT,
                participant=participant_name,
                got=visit_names_text,
                advice="Write dates as 2020-12-31, or call one visit 'baseline'",
            )
        )
    baseline_visit_keys = baseline_visit_keys or [
        min(any_session_by_visit, key=make_visit_sort_key)
    ]
    return [
        baseline_visit_key
        for baseline_visit_key in baseline_visit_keys
        if baseline_visit_key in candidate_session_by_visit
    ], baseline_findings


class _ClassSelection(NamedTuple):
    """The classes of a cohort, which scans have one of them, and what was found."""

    classes: tuple[str, ...]
    are_classes_ordered: bool
    labelled_scan_mask: pd.Series
    note_findings: list[Finding]
    fault_findings: list[Finding]


def _select_labelled_scans(
    scan_table: pd.DataFrame,
    label_name: str,
    people_table_name: str,
    classes: Sequence[str] | None,
    visit_list: _VisitList,
) -> _ClassSelection:
    """Order the classes, and choose the scans that have one of them."""
    scan_table["label"] = pd.Series(
        unify_number_labels(scan_table["label"].tolist()),
        index=scan_table.index,
        dtype=object,
    )
    n_scans_by_label = scan_table["label"].value_counts().sort_index()
    class_names, are_classes_ordered = order_classes(
        list(n_scans_by_label.index), classes
    )
    labelled_scan_mask = scan_table["label"].isin(class_names)
    missing_word_series = pd.Series(visit_list.missing_label_words, dtype=object)
    if classes is None:
        refuse_continuous(label_name, class_names)
        # A label of the first visit only, such as ADNI's stage, is read from there.
        labelled_person_ids = scan_table["participant"][labelled_scan_mask]
        unlabelled_person_ids = scan_table["participant"][~labelled_scan_mask]
        has_label_at_other_visit = bool(
            unlabelled_person_ids.isin(labelled_person_ids).all()
        )
        label_findings = [
            _make_unlabelled_fault(
                scan_name,
                label_name,
                label_word,
                visit_list,
                has_label_at_other_visit=has_label_at_other_visit,
            )
            for scan_name, label_word in zip(
                scan_table["scan"][~labelled_scan_mask],
                missing_word_series[~labelled_scan_mask],
                strict=True,
            )
        ]
        spelling_findings = _find_misspelt_label_faults(
            scan_table, label_name, class_names
        )
        order_notes = (
            [] if spelling_findings else make_unordered_class_notes(class_names)
        )
        return _ClassSelection(
            class_names,
            are_classes_ordered,
            labelled_scan_mask,
            order_notes,
            label_findings + spelling_findings,
        )
    label_notes = list[Finding]()
    lower_class_names = {class_name.lower() for class_name in class_names}
    caseless_class_mask = scan_table["label"].str.lower().isin(lower_class_names)
    label_findings = find_spelling_faults(
        label_name,
        scan_table["label"][caseless_class_mask],
        scan_table["scan"],
    )
    other_labels = scan_table["label"][~labelled_scan_mask]
    unlabelled_word_series = missing_word_series[~labelled_scan_mask].map(
        lambda label_word: label_word or "n/a"
    )
    n_scans_by_other_label = (
        other_labels.fillna(unlabelled_word_series).value_counts().sort_index()
    )
    if len(n_scans_by_other_label):
        counts_text = named_counts_text(n_scans_by_other_label.items())
        message = (
            f"scans are left out because their {label_name} is not one of the classes: "
            f"{counts_text}"
        )
        label_notes.append(Finding(message, LEFT_OUT, kind=CLASSES))
    missing_word_by_lower_word = {
        label_word.lower(): label_word
        for label_word in missing_word_series
        if label_word
    }
    classes_read_as_missing = [
        class_name
        for class_name in class_names
        if class_name.lower() in missing_word_by_lower_word
    ]
    for class_name in classes_read_as_missing:
        label_word = missing_word_by_lower_word[class_name.lower()]
        n_scans = (missing_word_series == label_word).sum()
        message = (
            f"{label_name}: {people_table_name} has {label_word!r} for "
            f"{count_text(n_scans, 'scan')}, {_missing_word_reason(label_word)}. If "
            "it is the name of a class, write another name into the table and into "
            f"{option_text('classes')}"
        )
        label_findings.append(Finding(message, FAULT))
    other_class_names = [
        class_name
        for class_name in class_names
        if class_name not in classes_read_as_missing
    ]
    label_findings += find_absent_class_faults(
        label_name, other_class_names, n_scans_by_label
    )
    return _ClassSelection(
        class_names,
        are_classes_ordered,
        labelled_scan_mask,
        label_notes,
        label_findings,
    )


def _find_misspelt_label_faults(
    scan_table: pd.DataFrame, label_name: str, class_names: Sequence[str]
) -> list[Finding]:
    """Return a fault of every scan whose label is rare and like another label.

    One misspelt label would be a class of its own, and the classes would lose the
    order of stages.
    """
    known_stage_names = [
        class_name for class_name in class_names if class_name.lower() in STAGE_OF_WORD
    ]
    unknown_class_names = [
        class_name for class_name in class_names if class_name not in known_stage_names
    ]
    if not unknown_class_names:
        return []
    n_people_by_label = scan_table.groupby("label")["participant"].nunique()
    spelling_by_stage = {
        class_name.lower(): class_name for class_name in known_stage_names
    }
    spelling_findings = list[Finding]()
    for class_name in unknown_class_names:
        if n_people_by_label[class_name] > _MOST_MISSPELT_PEOPLE:
            continue
        intended_labels = [
            other_class_name
            for other_class_name in class_names
            if other_class_name in known_stage_names
            or n_people_by_label[other_class_name] > _MOST_MISSPELT_PEOPLE
            if _is_misspelling(class_name.lower(), other_class_name.lower())
        ]
        if len(known_stage_names) >= 2:
            intended_labels += [
                spelling_by_stage[stage_name]
                for stage_name in get_close_matches(
                    class_name.lower(), spelling_by_stage, n=1
                )
            ]
        if not intended_labels:
            continue
        advice = (
            f"If this label should be {intended_labels[0]!r}, correct the label. "
            f"Otherwise name all classes in their order with {option_text('classes')}"
        )
        problem_text = f"{label_name} {class_name!r} is no known stage"
        if intended_labels[0] not in known_stage_names:
            problem_text = (
                f"{label_name} {class_name!r} is rare and similar to another label"
            )
        misspelt_scan_mask = scan_table["label"] == class_name
        spelling_findings += [
            Finding(problem_text, FAULT, scan=scan_name, advice=advice)
            for scan_name in scan_table["scan"][misspelt_scan_mask]
        ]
    return spelling_findings


def make_unordered_class_notes(class_names: Sequence[str]) -> list[Finding]:
    """Return a note on three or more classes that `order_classes` cannot order."""
    if len(class_names) < 3 or order_classes(class_names)[1]:
        return []
    unknown_class_names = [
        class_name
        for class_name in class_names
        if class_name.lower() not in STAGE_OF_WORD
    ]
    reason_text = "some are names of the same stage"
    if unknown_class_names:
        reason_text = (
            f"these are no known stages: {join_with_commas(unknown_class_names, 5)}"
        )
    message = (
        "the order of stages is unknown for the classes "
        f"{join_with_commas(class_names)}, because {reason_text}. The first class, "
        f"{class_names[0]}, is the reference of all differences"
    )
    advice = f"Give the order of stages, if there is one, with {option_text('classes')}"
    return [Finding(message, kind=ASSUMED, advice=advice)]


def _is_misspelling(first_word: str, second_word: str) -> bool:
    """Return whether one slip of letters leads from one lower-case word to another.

    Two letters are exchanged, one is lost or added, or one is another. Digits and signs
    count groups. In short words, and at the end, another letter must be the next one on
    the keyboard: AD and PD, or group A and group B, are two classes.
    """
    if abs(len(first_word) - len(second_word)) == 1:
        short_word, long_word = sorted((first_word, second_word), key=len)
        removable_letters = [
            letter
            for i, letter in enumerate(long_word)
            if long_word[:i] + long_word[i + 1 :] == short_word
        ]
        return len(long_word) >= _MIN_LETTERS and any(
            map(str.isalpha, removable_letters)
        )
    if len(first_word) != len(second_word):
        return False
    differing_indices = [
        i for i in range(len(first_word)) if first_word[i] != second_word[i]
    ]
    differing_letters = "".join(first_word[i] for i in differing_indices)
    other_differing_letters = "".join(second_word[i] for i in differing_indices)
    if not (differing_letters + other_differing_letters).isalpha():
        return False
    if len(differing_indices) == 2:
        are_letters_adjacent = differing_indices[1] == differing_indices[0] + 1
        return (
            are_letters_adjacent and differing_letters == other_differing_letters[::-1]
        )
    letter_pairs = {
        differing_letters + other_differing_letters,
        other_differing_letters + differing_letters,
    }
    are_neighbouring_keys = any(
        letter_pair in keyboard_row
        for keyboard_row in _KEY_ROWS
        for letter_pair in letter_pairs
    )
    is_within_long_word = len(first_word) >= _MIN_LETTERS and differing_indices[
        -1:
    ] != [len(first_word) - 1]
    return len(differing_indices) == 1 and (
        are_neighbouring_keys or is_within_long_word
    )


def _make_unlabelled_fault(
    scan_name: str,
    label_name: str,
    missing_label_word: str,
    visit_list: _VisitList,
    *,
    has_label_at_other_visit: bool,
) -> Finding:
    """Return the fault of a scan without a label, whose cell may hold a word."""
    message, got_text = f"{label_name} is missing (n/a)", ""
    write_advice = "Write a value"
    if missing_label_word:
        message = (
            f"{label_name} is {missing_label_word!r}, "
            f"{_missing_word_reason(missing_label_word)}"
        )
        write_advice = "Write another value"
    elif listed_session_ids := visit_list.listed_visits_by_scan.get(scan_name):
        message += ", because the table has no row of this visit"
        sorted_session_ids = sorted(listed_session_ids, key=make_visit_sort_key)
        got_text = f"rows of {', '.join(sorted_session_ids)}"
        write_advice = "Write a row of this visit"
    advice = (
        f"{write_advice}, {format_leave_out_advice()}, or choose the classes to keep "
        f"with {option_text('classes')}"
    )
    if has_label_at_other_visit:
        advice += (
            ". The people have a label at another visit; if this visit is the "
            f"baseline, use {option_text('scans', 'baseline')}"
        )
    return Finding(
        message,
        FAULT,
        kind=NO_LABEL,
        scan=scan_name,
        got=got_text,
        advice=advice,
    )


def _make_failed_formula_notes(
    facts_by_person_and_visit: FactsByPersonAndVisit, label_name: str | None
) -> list[Finding]:
    """Return a note for each error of a formula that covariates hold."""
    n_rows_by_error = Counter(
        f"{column_name}: {cell_text!r}"
        for word_by_column in facts_by_person_and_visit.missing_words_by_visit.values()
        for column_name, cell_text in word_by_column.items()
        if column_name != label_name and is_formula_error(cell_text)
    )
    return [
        Finding(
            f"{count_text(n_rows_with_error, 'row', 'contain')} {error_text}, the "
            "result of a failed formula, which counts as missing"
        )
        for error_text, n_rows_with_error in n_rows_by_error.items()
    ]


def _add_covariates_to_table(
    scan_table: pd.DataFrame, covariate_table: pd.DataFrame
) -> list[Finding]:
    """Add covariates to the table of scans, as numbers where all are; return faults."""
    covariate_findings = list[Finding]()
    for column_name, covariate_series in covariate_table.items():
        filled_cells = covariate_series.dropna()
        column_numbers = pd.to_numeric(covariate_series, errors="coerce")
        unparsed_cells = filled_cells[column_numbers[filled_cells.index].isna()]
        # With decimal commas every number would count as a word of its own.
        are_marked_numbers = unparsed_cells.map(is_number_with_marks).all()
        if are_marked_numbers or find_covariate_kind(column_name) in (
            "age",
            "education",
        ):
            covariate_findings += [
                Finding(
                    f"{column_name} must be a number or n/a",
                    FAULT,
                    scan=scan_table["scan"][row_index],
                    got=repr(cell_text),
                    advice="Write numbers with a decimal point, without a unit and "
                    "without separators of thousands",
                )
                for row_index, cell_text in unparsed_cells.items()
            ]
        # As numbers, dates would lose zeros and count as quantities.
        has_dates = are_compact_dates(column_name, filled_cells)
        is_numeric = len(filled_cells) > 0 and unparsed_cells.empty and not has_dates
        covariate_name = (
            f"{column_name}_given" if column_name in KEY_COLUMNS else column_name
        )
        scan_table[covariate_name] = (
            column_numbers if is_numeric else pd.Series(covariate_series.tolist())
        )
    return covariate_findings


def refuse_continuous(label_name: str, classes: Sequence[str]) -> None:
    """Raise where labels are numbers that are no classes, such as ages."""
    label_numbers = pd.to_numeric(pd.Series(classes, dtype=object), errors="coerce")
    are_whole_numbers = (
        label_numbers == label_numbers.round()
    ).all() and label_name.lower() != "age"
    has_many_values = len(label_numbers) > _MOST_NUMBERS or not are_whole_numbers
    if len(label_numbers) and label_numbers.notna().all() and has_many_values:
        raise CohortError(
            f"{label_name} is continuous ({len(label_numbers)} values from "
            f"{label_numbers.min():g} to {label_numbers.max():g}), but labels must "
            f"be classes. Name a column of classes with {option_text('label')}, or "
            f"list the classes with {option_text('classes')}"
        )


def _are_numbered_visits(visit_names: Collection[str]) -> bool:
    """Return whether visits differ in a number alone (M6, M12), which is no date."""
    has_dates = any(
        _DATE.fullmatch(visit_name.removeprefix("ses-")) for visit_name in visit_names
    )
    names_without_digits = {
        re.sub(r"\d+", "", visit_name) for visit_name in visit_names
    }
    return len(visit_names) < 2 or (len(names_without_digits) == 1 and not has_dates)


def choose_baseline_names(
    visit_names: Collection[str], scanned_visit_names: Collection[str]
) -> list[str]:
    """Return the visits of a person that are called baseline, those scanned if any.

    A word for it (BL, "baseline visit") counts before the time 0 (M00, "year 0"), and
    that before a longer name ("baseline_arm_1"). Where there is none, return the first
    visit by its name alone (screening, init, pre), or nothing.

    >>> choose_baseline_names(["SC", "V04", "BL"], ["SC", "BL"])
    ['BL']
    >>> choose_baseline_names(["Screening", "Month 6"], ["Screening", "Month 6"])
    ['Screening']
    """
    rank_by_visit = {
        visit_name: _rank_baseline_name(visit_name) for visit_name in visit_names
    }
    baseline_names = [
        visit_name
        for visit_name in visit_names
        if rank_by_visit[visit_name] is not None
    ]
    baseline_names = [
        visit_name for visit_name in baseline_names if visit_name in scanned_visit_names
    ] or baseline_names
    if baseline_names:
        best_rank = min(
            visit_rank
            for visit_name in baseline_names
            if (visit_rank := rank_by_visit[visit_name]) is not None
        )
        return [
            visit_name
            for visit_name in baseline_names
            if rank_by_visit[visit_name] == best_rank
        ]
    first_visit_names = [
        visit_name
        for visit_name in visit_names
        if visit_name.lower() in FIRST_VISITS or "screening" in visit_name.lower()
    ]
    first_visit_names = [
        visit_name
        for visit_name in first_visit_names
        if visit_name in scanned_visit_names
    ] or first_visit_names
    return (
        [min(first_visit_names, key=make_visit_sort_key)] if first_visit_names else []
    )


def make_changed_person_notes(scan_table: pd.DataFrame) -> list[Finding]:
    """Return notes on people whose age, birth or dates contradict each other.

    Ages and dates fall if they are lower at a later visit. They are compared only if
    the names of a person's visits tell their order. Ages are compared with dates, too.
    """
    if scan_table["participant"].is_unique:
        return []
    return [
        finding
        for column_label in scan_table.columns
        if column_label not in KEY_COLUMNS
        for finding in _make_change_notes(scan_table, str(column_label))
    ]


def _make_change_notes(scan_table: pd.DataFrame, column_name: str) -> list[Finding]:
    """Return a note on each person whose values of a column contradict each other."""
    if find_covariate_kind(column_name) == "age":
        ages = pd.to_numeric(scan_table[column_name], errors="coerce")
        findings = _make_fall_notes(
            scan_table,
            ages,
            ages.map("{:g}".format),
            f"{column_name} falls from one visit to the next",
        )
        known_ids = {finding.participant for finding in findings}
        return findings + [
            _make_changed_person_note(
                f"{column_name} does not change by the time between the visits",
                participant_id,
                visits_text,
            )
            for participant_id, visits_text in list_age_step_contradictions(
                scan_table, column_name
            ).items()
            if participant_id not in known_ids
        ]
    if find_scan_date_columns([column_name]):
        return _make_fall_notes(
            scan_table,
            pd.Series(parse_days(scan_table[column_name]), scan_table.index),
            scan_table[column_name],
            f"{column_name} is earlier at the later visit",
        )
    if is_birth_column(column_name):
        return _make_changed_birth_notes(scan_table, column_name)
    return []


def _make_fall_notes(
    scan_table: pd.DataFrame,
    number_series: pd.Series,
    text_series: pd.Series,
    message: str,
) -> list[Finding]:
    """Return a note on each person whose numbers fall from one visit to a later one.

    `text_series` are the numbers as text. Only people whose visits have names that tell
    their order are compared.
    """
    findings = list[Finding]()
    numbers_by_person = _group_by_person_and_visit(scan_table, number_series)
    texts_by_person = _group_by_person_and_visit(scan_table, text_series)
    for participant_id, number_by_visit in numbers_by_person.items():
        visit_names = sorted(number_by_visit, key=make_visit_sort_key)
        if not _is_order_known(visit_names):
            continue
        for earlier_visit, later_visit in pairwise(visit_names):
            if number_by_visit[later_visit] < number_by_visit[earlier_visit]:
                text_by_visit = texts_by_person[participant_id]
                findings.append(
                    _make_changed_person_note(
                        message,
                        participant_id,
                        f"{text_by_visit[earlier_visit]} at {earlier_visit}, "
                        f"{text_by_visit[later_visit]} at {later_visit}",
                        [earlier_visit, later_visit],
                    )
                )
                break
    return findings


def _group_by_person_and_visit(
    scan_table: pd.DataFrame, value_series: pd.Series
) -> dict[str, dict[str, Any]]:
    """Return the known values of scans by person and visit."""
    values_by_person: dict[str, dict[str, Any]] = {}
    known_series = value_series.dropna()
    known_table = scan_table.loc[known_series.index]
    for participant_id, visit_name, value in zip(
        known_table["participant"], known_table["session"], known_series, strict=True
    ):
        values_by_person.setdefault(str(participant_id), {})[visit_name] = value
    return values_by_person


def _make_changed_birth_notes(
    scan_table: pd.DataFrame, column_name: str
) -> list[Finding]:
    """Return a note on each person whose birth differs between visits."""
    findings = list[Finding]()
    births_by_person = _group_by_person_and_visit(scan_table, scan_table[column_name])
    for participant_id, birth_by_visit in births_by_person.items():
        visit_names = sorted(birth_by_visit, key=make_visit_sort_key)
        for earlier_visit, later_visit in pairwise(visit_names):
            if str(birth_by_visit[later_visit]) != str(birth_by_visit[earlier_visit]):
                findings.append(
                    _make_changed_person_note(
                        f"{column_name} differs between visits of a person",
                        participant_id,
                        # Reports show this text, and must not tell when a person was
                        # born.
                        f"other values at {earlier_visit} and at {later_visit}",
                        [earlier_visit, later_visit],
                    )
                )
                break
    return findings


def _make_changed_person_note(
    message: str,
    participant_id: str,
    visits_text: str,
    visit_names: Sequence[str] = (),
) -> Finding:
    """Return the note that values of a person contradict each other at two visits."""
    return Finding(
        message,
        kind=CHANGED_PERSON,
        participant=participant_id,
        got=visits_text,
        advice="Visits or people may be mistaken for each other. Check the rows of "
        "this person, and correct the value or write n/a",
        values={"visits": [*visit_names]} if visit_names else {},
    )


def _make_one_row_notes(
    scan_table: pd.DataFrame,
    people_with_one_row: Collection[str],
    label_name: str | None,
    people_table_name: str,
) -> list[Finding]:
    """Return a note on people whose only row is used for several scans."""
    is_one_row_series = scan_table["participant"].isin(people_with_one_row)
    has_other_scan_series = scan_table["participant"].duplicated(keep=False)
    one_row_table = scan_table[is_one_row_series & has_other_scan_series]
    n_scans = len(one_row_table)
    if not n_scans:
        return []
    n_people = one_row_table["participant"].nunique()
    value_names = f"{label_name} and covariates" if label_name else "covariates"
    return [
        Finding(
            f"{people_table_name} has one row for all visits of a person: the "
            f"{value_names} of this row were used for {n_scans} scans of "
            f"{count_text(n_people, 'person')} with several scans",
            kind=ONE_ROW,
            advice="If these values change between visits, write one row for each "
            "visit into the table",
            values={"n_people": n_people, "n_scans": n_scans},
        )
    ]


def make_first_visit_value_notes(
    scan_table: pd.DataFrame, label_name: str | None
) -> list[Finding]:
    """Return notes on a label and an age that are those of the first visit.

    All visits of a person have this value, although the diagnosis of the visits
    changes, or although the visits are years apart.
    """
    if scan_table["participant"].is_unique:
        return []
    return [
        *_make_first_visit_label_notes(scan_table, label_name or ""),
        *_make_first_visit_age_notes(scan_table),
    ]


def _make_first_visit_label_notes(
    scan_table: pd.DataFrame, label_name: str
) -> list[Finding]:
    """Return a note if a label never changes within people, but a diagnosis does."""
    if count_people_with_changes(scan_table, "label"):
        return []
    covariate_table = scan_table.drop(columns=[*KEY_COLUMNS])
    n_values_table = covariate_table.groupby(scan_table["participant"]).nunique()
    changed_people_by_column = {
        str(column_name): int(n_changed_people)
        for column_name, n_changed_people in (n_values_table > 1).sum().items()
        if n_changed_people
    }
    if not changed_people_by_column:
        return []
    stage_column_names = find_stage_column_names(
        scan_table[["label", *changed_people_by_column]]
    )
    label_words = _list_lower_words(scan_table["label"])
    n_people_by_column: dict[str, int] = {}
    for column_name, n_changed_people in changed_people_by_column.items():
        column_words = _list_lower_words(scan_table[column_name])
        are_both_stages = {"label", column_name} <= {*stage_column_names}
        are_both_diagnoses = all(map(is_diagnosis_column, (label_name, column_name)))
        if (
            are_both_stages
            or (
                is_diagnosis_column(column_name) and len(label_words & column_words) > 1
            )
            or (are_both_diagnoses and len(column_words) <= _MOST_NUMBERS)
        ):
            n_people_by_column[column_name] = n_changed_people
    if not n_people_by_column:
        return []
    changing_name = max(n_people_by_column, key=lambda name: n_people_by_column[name])
    n_people = n_people_by_column[changing_name]
    return [
        Finding(
            f"{label_name} is the same at all visits of a person, but {changing_name} "
            f"changes in {count_text(n_people, 'person')}",
            kind=FIRST_VISIT_VALUE,
            advice=f"Give {option_text('scans', 'baseline')}, or the label of the "
            f"visit with {option_text('label')}",
            values={"column": changing_name, "n_people": n_people},
        )
    ]


def _list_lower_words(column_series: pd.Series) -> set[str]:
    """Return the different values of a column as text in lower case."""
    return {str(cell_value).lower() for cell_value in column_series.dropna()}


def count_people_with_changes(scan_table: pd.DataFrame, column_name: str) -> int:
    """Return the number of people with different values of a column."""
    return int((scan_table.groupby("participant")[column_name].nunique() > 1).sum())


def _make_first_visit_age_notes(scan_table: pd.DataFrame) -> list[Finding]:
    """Return a note on each age that stays the same in most people over years.

    The names of visits, or else a column of dates, say how far visits are apart.
    """
    month_array_list = [
        _parse_visit_months(scan_table["session"]),
        *(
            _parse_date_months(scan_table[column_name])
            for column_name in find_visit_date_columns(map(str, scan_table.columns))
        ),
    ]
    is_over_a_year_by_person = pd.Series(dtype=bool)
    for month_array in month_array_list:
        spans = pd.Series(month_array, scan_table.index).groupby(
            scan_table["participant"], sort=False
        )
        is_over_a_year_by_person = spans.max() - spans.min() >= _MONTHS_PER_YEAR
        if is_over_a_year_by_person.any():
            break
    if not is_over_a_year_by_person.any():
        return []
    person_ids = is_over_a_year_by_person.index[is_over_a_year_by_person]
    long_table = scan_table[scan_table["participant"].isin(person_ids)]
    findings = list[Finding]()
    for column_label in scan_table.columns:
        column_name = str(column_label)
        if (
            column_name in KEY_COLUMNS
            or find_covariate_kind(column_name) != "age"
            or _BASELINE_AGE.fullmatch(column_name)
        ):
            continue
        ages_by_person = long_table.groupby("participant")[column_name]
        n_known = int((ages_by_person.count() > 1).sum())
        n_unchanged = n_known - count_people_with_changes(long_table, column_name)
        # Rounded ages stay the same in some people who are scanned after 11 months.
        if not n_unchanged or 2 * n_unchanged < n_known:
            continue
        findings.append(
            Finding(
                f"{column_name} is the same at all visits of "
                f"{count_text(n_unchanged, 'person')}, although their visits lie a "
                "year or more apart",
                kind=FIRST_VISIT_VALUE,
                advice=f"If {column_name} is the age at the first visit, add the years "
                f"since then to it, or give {option_text('scans', 'baseline')}",
                values={"column": column_name, "n_people": n_unchanged},
            )
        )
    return findings


def _parse_visit_months(visit_names: pd.Series) -> np.ndarray:
    """Return the months after the baseline that names of visits say; NaN if none.

    Names that are dates are parsed as dates.
    """
    date_months = _parse_date_months(visit_names)
    if np.isfinite(date_months).any():
        return date_months
    month_array = np.full(len(visit_names), np.nan)
    for row_index, visit_name in enumerate(visit_names.fillna("").astype(str)):
        lower_name = visit_name.strip().lower().removeprefix("ses-")
        time_match = _TIME_OF_VISIT.fullmatch(lower_name)
        if is_called_baseline(visit_name) or lower_name in FIRST_VISITS:
            month_array[row_index] = 0
        elif time_match:
            unit = time_match["unit"] or time_match["last_unit"]
            number_text = time_match["number"] or time_match["first_number"]
            month_array[row_index] = int(number_text) * _MONTHS_PER_UNIT[unit]
    return month_array


def _parse_date_months(column_series: pd.Series) -> np.ndarray:
    """Return the months of dates since 1970; NaN unless all known cells are dates."""
    days = count_days_since_1970(parse_dates(column_series))
    return (days * _MONTHS_PER_UNIT["d"]).to_numpy(dtype=float)


def list_visit_ranks(scan_table: pd.DataFrame) -> list[tuple[object, ...]]:
    """Return the rank in time of the visit of every scan, by the column session."""
    visit_names = scan_table["session"].astype(str)
    dates = parse_dates(visit_names)
    # Days before months are not in order of time.
    iso_dates = dates.dt.strftime("%Y-%m-%d")
    return [*iso_dates.fillna(visit_names).map(make_visit_sort_key)]


def order_rows_by_visit(scan_table: pd.DataFrame) -> np.ndarray:
    """Return the index of rows in which each person has the visits in order of time.

    Each person keeps the positions of the person's scans, so that the order of people
    stays the same.

    >>> visits = {"participant": ["a", "b", "a"], "session": ["M12", "bl", "bl"]}
    >>> order_rows_by_visit(pd.DataFrame(visits))
    array([2, 1, 0])
    """
    if "session" not in scan_table:
        return np.arange(len(scan_table))
    person_codes = pd.factorize(scan_table["participant"])[0]
    visit_ranks = list_visit_ranks(scan_table)
    sorted_indices = sorted(
        range(len(scan_table)), key=lambda i: (person_codes[i], visit_ranks[i])
    )
    row_index = np.empty(len(scan_table), dtype=np.int64)
    row_index[np.argsort(person_codes, kind="stable")] = sorted_indices
    return row_index


def _is_order_known(visit_names: Sequence[str]) -> bool:
    """Return whether the names of visits tell their order: numbers, after a baseline.

    >>> _is_order_known(["bl", "M06", "M12"]), _is_order_known(["tp1", "followup"])
    (True, False)
    """
    later_visit_names = [
        visit_name
        for visit_name in visit_names
        if not is_called_baseline(visit_name)
        and visit_name.lower().removeprefix("ses-") not in FIRST_VISITS
    ]
    return _are_numbered_visits(later_visit_names)


def _rank_baseline_name(visit_name: str) -> int | None:
    """Return the clarity of a baseline name, 0 for the clearest; None for others."""
    visit_terms = [
        visit_term.lower()
        for visit_term in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", visit_name)
    ]
    visit_terms = [
        visit_term for visit_term in visit_terms if visit_term not in _NEUTRAL_WORDS
    ]
    baseline_term_flags = [
        "baseline" in visit_term or visit_term in _BASELINE_WORDS
        for visit_term in visit_terms
    ]
    if not visit_terms or _NOT_BASELINE_WORDS & {*visit_terms}:
        return None
    if all(baseline_term_flags):
        return 0
    if _TIME_ZERO.fullmatch("".join(visit_terms)):
        return 1
    return 2 if any(baseline_term_flags) else None


def is_called_baseline(visit_name: str) -> bool:
    """Return whether the name of a visit calls it the baseline."""
    return _rank_baseline_name(visit_name) is not None


def _missing_word_reason(cell_text: str) -> str:
    """Return the reason for which a cell with a word counts as missing."""
    if is_formula_error(cell_text):
        return "the result of a failed formula"
    return "which counts as missing"


def find_absent_class_faults(
    label_name: str, class_names: Sequence[str], n_scans_by_label: pd.Series
) -> list[Finding]:
    """Return a fault for each class in `class_names` that no scan has.

    `n_scans_by_label` are the numbers of scans by class.
    """
    labels_text = named_counts_text(n_scans_by_label.items()) or "none"
    absent_class_findings = list[Finding]()
    for class_name in class_names:
        if class_name in n_scans_by_label:
            continue
        similar_label = _find_similar_label(str(class_name), n_scans_by_label.index)
        absent_class_findings.append(
            Finding(
                f"no scan has the {label_name} {class_name!r}; the scans have "
                f"{labels_text}",
                FAULT,
                advice=f"Did you mean {similar_label!r}?" if similar_label else "",
            )
        )
    return absent_class_findings


def _find_similar_label(class_name: str, known_labels: Iterable[object]) -> str:
    """Return the label with the same words in any order, or a similar one, or ""."""
    label_by_text = {str(label).lower(): str(label) for label in known_labels}
    class_words = sorted(re.split(r"[\W_]+", class_name.lower()))
    for label_text, label in label_by_text.items():
        if sorted(re.split(r"[\W_]+", label_text)) == class_words:
            return label
    # Short words of similar letters are other classes: CN and MCN, AD and VaD.
    similar_texts = get_close_matches(
        class_name.lower(), label_by_text, n=1, cutoff=0.8
    )
    return label_by_text[similar_texts[0]] if similar_texts else ""
