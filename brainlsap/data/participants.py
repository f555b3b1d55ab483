"""Who is in a cohort: people, their visits, labels, and the order of classes."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from brainlsap.data.covariates import (
    COVARIATES,
    KEY_COLUMNS,
    STAGE_OF_WORD,
    find_faults,
    find_spellings,
    kind_of,
)
from brainlsap.data.features import FeatureSources
from brainlsap.data.find_files import FIRST_VISITS, Scan, ScanName, visit_order
from brainlsap.data.region_tables import ScanTable
from brainlsap.data.tables import (
    MissingWords,
    TableColumns,
    is_formula_error,
    is_number_with_marks,
    read_columns,
)
from brainlsap.exceptions import (
    BrainlsapError,
    CohortError,
    FileFormatError,
    ParameterError,
)
from brainlsap.findings import (
    BASELINE,
    CLASSES,
    FAULT,
    LEFT_OUT,
    Finding,
    as_findings,
)
from brainlsap.text import option_text

UNLABELLED = "unlabelled"
"""The class of every scan where no label is read: of people to be predicted."""
PEOPLE_FILES = tuple(
    f"{name}{suffix}"
    for name in ("participants", "subjects")
    for suffix in (".tsv", ".csv", ".xlsx")
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
# More values than this are of a continuous number, not of classes.
_MOST_NUMBERS = 10

Facts = dict[str, str | None]


class People(dict[str, dict[str, tuple[ScanName, Facts]]]):
    """Who is in a study, by person and visit as keys of names.

    Of each the name as written, labels and covariates as text. What is known of the
    person, whatever the visit, has the visit "".

    Attributes
    ----------
    missing_words : dict of (person, visit) to (dict of str to str)
        By column, the words of cells that count as missing, such as `None`, and errors
        of formulas, such as `#N/A`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.missing_words: dict[tuple[str, str], dict[str, str]] = {}

    def find_word(self, person: str, visit: str, column: str) -> str:
        """Return what stands in a cell that counts as missing, empty if nothing."""
        for key in ((person, visit), (person, "")):
            if cell_text := self.missing_words.get(key, {}).get(column):
                return cell_text
        return ""


def people_files(folder: Path) -> list[Path]:
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
        That of `class_order`; else NC/CN/HC/Control/Healthy, SMC/SCD, EMCI, MCI, LMCI,
        AD/Dementia, in any case, where every label is one of these and of a stage of
        its own; numbers by value; else sorted, the healthy first.
    ordered : bool
        False where the classes are only sorted: no stage comes before another.

    Raises
    ------
    ParameterError
        Where `class_order` names a class twice.

    Examples
    --------
    >>> order_classes(["AD", "CN", "MCI"]), order_classes(["10", "9"])
    ((('CN', 'MCI', 'AD'), True), (('9', '10'), True))
    >>> order_classes(["CN", "AD", "FTD"])
    (('CN', 'AD', 'FTD'), False)
    """
    if class_order is not None:
        class_names = tuple(
            map(str, [class_order] if isinstance(class_order, str) else class_order)
        )
        if repeated_names := [
            name for name in class_names if class_names.count(name) > 1
        ]:
            raise ParameterError(f"classes names {repeated_names[0]!r} more than once.")
        return class_names, True
    label_texts = sorted({str(label) for label in labels})
    stages = [STAGE_OF_WORD.get(name.lower(), -1) for name in label_texts]
    if -1 not in stages and len(set(stages)) == len(stages):
        return tuple(
            sorted(label_texts, key=lambda name: STAGE_OF_WORD[name.lower()])
        ), True
    try:
        return tuple(sorted(label_texts, key=lambda name: (float(name), name))), True
    except ValueError:
        # the first class is the reference that others differ from
        return tuple(
            sorted(label_texts, key=lambda name: STAGE_OF_WORD.get(name.lower()) != 0)
        ), False


class _PeopleTable(NamedTuple):
    """A table of people, or of one person's visits; named in messages by its path."""

    path_and_sheet: str
    names: Sequence[ScanName]
    columns: Mapping[str, Sequence[str | None]]
    missing_words: MissingWords


def _find_tables(
    scan_table: ScanTable,
) -> tuple[list[_PeopleTable], list[Finding]]:
    """Return the table of people and every sessions file beside it, and faults."""
    columns_of_table = scan_table.facts.to_dict("list")
    tables = [
        _PeopleTable(
            scan_table.path_and_sheet,
            scan_table.names,
            columns_of_table,
            scan_table.missing_words,
        )
    ]
    faults = list[Finding]()
    participants = {name.key[0]: name.participant for name in scan_table.names}
    for participant in participants.values():
        for folder in {participant, f"sub-{participant}"}:
            sessions_path = scan_table.path.parent / folder / f"{folder}_sessions.tsv"
            if not sessions_path.is_file():
                continue
            try:
                session_ids, session_columns = _read_sessions(sessions_path)
            except FileFormatError as error:
                faults.append(Finding.from_error(error))
                continue
            visit_names = [
                ScanName(participant, session_id) for session_id in session_ids
            ]
            tables.append(
                _PeopleTable(
                    str(sessions_path),
                    visit_names,
                    session_columns,
                    session_columns.missing_words,
                )
            )
    return tables, faults


def list_people(scan_table: ScanTable) -> tuple[People, list[Finding]]:
    """Return who stands in a table, and in the sessions file beside it of each person.

    And faults: a person who stands twice, a sessions file that cannot be read.
    """
    tables, faults = _find_tables(scan_table)
    people = People()
    for table in tables:
        faults += _add_rows(people, table)
    return people, faults


def _add_rows(people: People, table: _PeopleTable) -> list[Finding]:
    """Add the rows of one table to `people`; return the rows that stand twice."""
    faults = list[Finding]()
    lower_heads = [head.lower() for head in table.columns]
    covariate_heads = {head for head in COVARIATES if lower_heads.count(head) == 1}
    column_heads = [
        head.lower() if head.lower() in covariate_heads else head
        for head in table.columns
    ]
    words_of_column = {
        head: table.missing_words.get(written_head, {})
        for written_head, head in zip(table.columns, column_heads, strict=True)
    }
    listed_visits: dict[str, set[str]] = {}
    table_rows = zip(table.names, *table.columns.values(), strict=True)
    for row_index, (name, *row_cells) in enumerate(table_rows):
        person, visit = name.key
        earlier_visits = listed_visits.setdefault(person, set())
        is_repeated_visit = visit in earlier_visits
        # One row without a visit would be of all visits.
        has_unnamed_visit = bool(earlier_visits) and "" in (visit, *earlier_visits)
        if is_repeated_visit or has_unnamed_visit:
            message = (
                f"stands more than once in {table.path_and_sheet}; expected one row, "
                "or a column session_id (or visit) that differs. Name a column of "
                f"visits by {option_text('session_column')}"
            )
            faults.append(Finding(message, FAULT, participant=name.participant))
            continue
        earlier_visits.add(visit)
        cell_of_head = dict(zip(column_heads, row_cells, strict=True))
        cell_words = {
            head: words_by_row[row_index]
            for head, words_by_row in words_of_column.items()
            if row_index in words_by_row
        }
        for head, cell in cell_of_head.items():
            if is_formula_error(cell):
                cell_words[head] = str(cell)
                cell_of_head[head] = None
        if cell_words:
            person_words = people.missing_words.setdefault((person, visit), {})
            person_words.update(cell_words)
        visits_of_person = people.setdefault(person, {})
        written_name, earlier_facts = visits_of_person.get(visit, (name, Facts()))
        visits_of_person[visit] = written_name, earlier_facts | cell_of_head
    return faults


def _read_sessions(path: Path) -> tuple[list[str], TableColumns]:
    """Return the visits that a person's sessions file lists, and its other columns."""
    session_columns = read_columns(path)
    if "session_id" not in session_columns:
        raise FileFormatError(
            "every row needs a 'session_id'; the columns are "
            f"{', '.join(session_columns)}.",
            path=path,
        )
    session_ids = session_columns.pop("session_id")
    for line, cell in zip(session_columns.lines, session_ids, strict=True):
        if cell is None or is_formula_error(cell):
            raise FileFormatError(
                f"every row needs a 'session_id'; line {line} has {cell or 'none'}.",
                path=path,
            )
    return [str(cell) for cell in session_ids], session_columns


@dataclass
class ScanList:
    """The scans of a cohort, and what is found, noted and refused about them."""

    scans: list[Scan]
    table: pd.DataFrame
    label: str | None
    """The column, as the table writes it."""
    classes: tuple[str, ...]
    classes_ordered: bool
    notes: list[Finding]
    faults: list[Finding]
    found: list[str] = field(default_factory=list)
    """What was read, of how many scans."""
    notes_of_scans: list[Finding] = field(default_factory=list)
    """Notes on single scans: one entry for each scan of which it is true."""
    bar_options: Mapping[str, Any] = field(default_factory=dict)
    """How `tqdm` shows it."""

    def add_fault(
        self, error: BrainlsapError | Finding | str, scan: Scan | None = None
    ) -> None:
        """Add a fault, of a scan or of the study, unless it is known."""
        scan_name = "" if scan is None else scan.name
        if isinstance(error, BrainlsapError):
            fault = Finding.from_error(error, scan_name)
        elif isinstance(error, Finding):
            fault = error
        else:
            fault = Finding(error, FAULT, scan=scan_name)
        if fault not in self.faults:
            self.faults.append(fault)

    def add_notes(
        self, notes: Iterable[Finding | str], *, about: str = "", of_scan: bool = False
    ) -> None:
        """Add notes on the study, or on one scan; `about` is what they begin with."""
        target = self.notes_of_scans if of_scan else self.notes
        for note in as_findings(notes):
            message = f"{about}: {note.message}" if about else note.message
            target.append(replace(note, message=message))

    def count_notes(self) -> list[Finding]:
        """Return the notes on single scans, each once with its number of scans."""
        different_notes = list[Finding]()
        scan_counts = list[int]()
        for note in self.notes_of_scans:
            if note in different_notes:
                scan_counts[different_notes.index(note)] += 1
            else:
                different_notes.append(note)
                scan_counts.append(1)
        n_scans = len(self.scans)
        return [
            replace(note, message=f"{note.message} ({scan_count} of {n_scans})")
            for note, scan_count in zip(different_notes, scan_counts, strict=True)
        ]


def list_scans(
    people: People,
    sources: FeatureSources,
    label: str | None,
    table_name: str,
    classes: Sequence[str] | None = None,
    which_scans: str = "all",
) -> ScanList:
    """List the scans of a cohort with their labels, covariates and files.

    `table_name` is the name of the table of people. People without folders of their
    own have the visits that FreeSurfer or tables of regions know.
    """
    folder = sources.files.folder
    label = _find_label_column(people, label, table_name, folder)
    visits = _list_visits(people, sources, label, which_scans)
    notes = list[Finding]()
    if visits.unscanned_visits:
        message = (
            f"{len(visits.unscanned_visits)} listed visits left out: there are no "
            "files or folders of"
        )
        unscanned_visits = tuple(visits.unscanned_visits)
        notes.append(Finding(message, LEFT_OUT, people=unscanned_visits, max_people=3))
    if visits.n_without_baseline:
        message = "people without a listed scan at baseline: left out"
        message = f"{visits.n_without_baseline} {message}"
        notes.append(Finding(message, LEFT_OUT, kind=BASELINE))
    if visits.n_contradictions:
        message = (
            f"{visits.n_contradictions} scans have another {label} in {table_name} "
            "than in sub-*_sessions.tsv: that of the visit was taken"
        )
        notes.append(Finding(message))
    if not visits.scans:
        exclusion_reasons = [f"{table_name} lists none"]
        if visits.unscanned_visits:
            n_unscanned = len(visits.unscanned_visits)
            exclusion_reasons.append(
                f"{n_unscanned} listed visits have no files or folders"
            )
        exclusion_reasons += [str(note) for note in notes if not note.people]
        raise CohortError(
            f"no scan is left; {'; '.join(exclusion_reasons)}", path=folder
        )
    covariate_heads = _heads_of(people)
    covariates = pd.DataFrame(visits.facts, columns=covariate_heads, dtype=object)
    covariates = covariates.where(covariates.notna(), None)
    table = pd.DataFrame(visits.keys, columns=KEY_COLUMNS[:3])
    scans = visits.scans
    faults = visits.faults
    class_order: tuple[str, ...] = (UNLABELLED,)
    is_ordered = False
    if label is None:
        table["label"] = UNLABELLED
    else:
        table["label"] = covariates.pop(label)
        labelling = _select_labelled_scans(table, label, table_name, classes, visits)
        class_order, is_ordered = labelling.classes, labelling.is_ordered
        notes += labelling.notes
        faults += labelling.faults
        has_class = labelling.is_kept
        table = table[has_class].reset_index(drop=True)
        covariates = covariates[has_class].reset_index(drop=True)
        scans = [
            scan
            for scan, is_selected in zip(scans, has_class, strict=True)
            if is_selected
        ]
    notes += _count_failed_formulas(people, label)
    faults += _add_covariates(table, covariates)
    has_stage_order = label is None or is_ordered
    faults += find_faults(table, label or "", has_order=has_stage_order)
    return ScanList(scans, table, label, class_order, is_ordered, notes, faults)


def _heads_of(people: People) -> list[str]:
    """Return the columns that are known of anybody, in the order of tables."""
    visit_records = [record for visits in people.values() for record in visits.values()]
    return [*dict.fromkeys(head for _, facts in visit_records for head in facts)]


def _find_label_column(
    people: People, label: str | None, table_name: str, folder: Path
) -> str | None:
    """Return the column of labels in the spelling of the table, which may differ."""
    column_heads = _heads_of(people)
    if label is None or label in column_heads or not people:
        return label
    matching_heads = [head for head in column_heads if head.lower() == label.lower()]
    if len(matching_heads) != 1:
        raise CohortError(
            f"the label {label!r} is no column of {table_name}; found "
            f"{', '.join(column_heads) or 'none besides the id'}. Name the column by "
            f"{option_text('label')}",
            path=folder,
        )
    return matching_heads[0]


@dataclass
class _VisitList:
    """The visits that become scans, one entry a scan in each list."""

    scans: list[Scan] = field(default_factory=list)
    keys: list[tuple[str, str, str]] = field(default_factory=list)
    """Names of scan, person and visit, as the table writes them."""
    facts: list[Facts] = field(default_factory=list)
    label_words: list[str] = field(default_factory=list)
    """What stands in cells of labels that count as missing."""
    listed_visits: dict[str, list[str]] = field(default_factory=dict)
    """By scan whose visit is not listed, the visits that are listed of its person."""
    unscanned_visits: list[str] = field(default_factory=list)
    """Listed visits without files, of people who have files of other visits."""
    n_without_baseline: int = 0
    n_contradictions: int = 0
    """Scans whose label differs between the tables of people and of visits."""
    faults: list[Finding] = field(default_factory=list)


def _list_visits(
    people: People, sources: FeatureSources, label: str | None, which_scans: str
) -> _VisitList:
    """List the visits of everybody that become scans, with what is known of each."""
    visit_list = _VisitList()
    for person, visits_of_person in people.items():
        participant = next(iter(visits_of_person.values()))[0].participant
        listed_sessions = {
            visit: name.session
            for visit, (name, _) in visits_of_person.items()
            if visit
        }
        scanned_sessions = _find_scanned(person, listed_sessions, sources)
        if scanned_sessions:
            visit_list.unscanned_visits += [
                f"{participant}_{session}"
                for visit, session in listed_sessions.items()
                if visit not in scanned_sessions
            ]
        sessions = scanned_sessions or listed_sessions or {"": ""}
        selected_visits = sorted(
            sessions, key=lambda visit: visit_order(sessions[visit])
        )
        if which_scans == "baseline":
            baselines, faults = _choose_baseline_visits(
                participant, listed_sessions, scanned_sessions
            )
            visit_list.faults += faults
            selected_visits = [
                visit for visit in selected_visits if visit in baselines
            ][:1]
            visit_list.n_without_baseline += not selected_visits
        facts_of_person = visits_of_person[""][1] if "" in visits_of_person else Facts()
        # What visits list one by one is not taken from the person for another visit:
        # that visit may be listed under another name.
        heads_of_visits = dict.fromkeys(
            head for visit in listed_sessions for head in visits_of_person[visit][1]
        )
        default_facts = facts_of_person | heads_of_visits
        for visit in selected_visits:
            scan_key = (person, visit)
            scan_name = f"{participant}_{sessions[visit]}".rstrip("_")
            is_only_visit = len(sessions) == 1
            # If several visits are listed, a file without a visit may be another's.
            files_are_own = is_only_visit and len(listed_sessions) < 2
            scan_paths = sources.files.of_scan(scan_key, files_are_own)
            facts_of_visit = (
                visits_of_person[visit][1] if visit in listed_sessions else Facts()
            )
            visit_list.scans.append(
                Scan(scan_name, scan_key, is_only_visit, scan_paths)
            )
            visit_list.keys.append((scan_name, participant, sessions[visit]))
            visit_list.facts.append(default_facts | facts_of_visit)
            label_word = people.find_word(person, visit, label or "")
            visit_list.label_words.append(label_word)
            stated_labels = {
                facts.get(label or "") for facts in (facts_of_visit, facts_of_person)
            }
            visit_list.n_contradictions += len(stated_labels - {None}) > 1
            if listed_sessions and visit not in listed_sessions:
                visit_list.listed_visits[scan_name] = [*listed_sessions.values()]
    return visit_list


def _find_scanned(
    person: str, listed_sessions: Mapping[str, str], sources: FeatureSources
) -> dict[str, str]:
    """Return the visits of a person that have files or rows of values, by key."""
    study_files = sources.files
    folder_sessions = study_files.sessions.get(person, {})
    scanned_sessions = {
        visit: session
        for visit, session in folder_sessions.items()
        # A folder may hold lists and questionnaires alone.
        if visit not in listed_sessions or sources.has_data(person, visit)
    }
    has_files = any(
        study_files.files.get((person, visit)) for visit in ("", *folder_sessions)
    )
    if has_files:
        return scanned_sessions
    return {**sources.sessions.get(person, {}), **scanned_sessions}


def _choose_baseline_visits(
    participant: str,
    listed_sessions: Mapping[str, str],
    scanned_sessions: Mapping[str, str],
) -> tuple[list[str], list[Finding]]:
    """Return the visits of a person that are the baseline, and faults.

    The baseline is a listed visit if any is listed; the earliest visit may be one that
    was scanned and is not listed, and then no visit is the baseline.
    """
    faults = list[Finding]()
    sessions = scanned_sessions or listed_sessions or {"": ""}
    candidate_visits = listed_sessions or sessions
    all_sessions = {**scanned_sessions, **listed_sessions} or sessions
    baselines = choose_baselines(candidate_visits, sessions)
    if len({*baselines} & {*sessions}) > 1:
        visit_names = ", ".join(candidate_visits[visit] for visit in baselines)
        message = "several visits are called baseline; expected one"
        faults.append(Finding(message, FAULT, participant=participant, got=visit_names))
    if not (baselines or _have_order(all_sessions)):
        visit_names = ", ".join(all_sessions.values())
        message = (
            "which visit is the first is not known; write dates as 2020-12-31, or call "
            "one baseline"
        )
        faults.append(Finding(message, FAULT, participant=participant, got=visit_names))
    baselines = baselines or [min(all_sessions, key=visit_order)]
    return [visit for visit in baselines if visit in candidate_visits], faults


class _Labelling(NamedTuple):
    """The classes of a cohort, which scans have one of them, and what was found."""

    classes: tuple[str, ...]
    is_ordered: bool
    is_kept: pd.Series
    notes: list[Finding]
    faults: list[Finding]


def _select_labelled_scans(
    table: pd.DataFrame,
    label: str,
    table_name: str,
    classes: Sequence[str] | None,
    visits: _VisitList,
) -> _Labelling:
    """Order the classes, and choose the scans that have one of them."""
    class_counts = table["label"].value_counts().sort_index()
    class_order, is_ordered = order_classes(list(class_counts.index), classes)
    has_class = table["label"].isin(class_order)
    label_words = pd.Series(visits.label_words, dtype=object)
    if classes is None:
        refuse_continuous(label, class_order)
        faults = [
            _describe_unlabelled(scan_name, label, label_word, visits)
            for scan_name, label_word in zip(
                table["scan"][~has_class], label_words[~has_class], strict=True
            )
        ]
        return _Labelling(class_order, is_ordered, has_class, [], faults)
    notes = list[Finding]()
    lower_class_names = {name.lower() for name in class_order}
    has_class_in_any_case = table["label"].str.lower().isin(lower_class_names)
    faults = find_spellings(label, table["label"][has_class_in_any_case])
    other_labels = table["label"][~has_class]
    unlabelled_words = label_words[~has_class].map(
        lambda label_word: label_word or "n/a"
    )
    other_labels = other_labels.fillna(unlabelled_words).value_counts().sort_index()
    if len(other_labels):
        counts_text = _describe_counts(other_labels)
        message = f"left out, {label} is not among the classes: {counts_text}"
        notes.append(Finding(message, LEFT_OUT, kind=CLASSES))
    word_of_class = {
        label_word.lower(): label_word for label_word in label_words if label_word
    }
    classes_read_as_missing = [
        name for name in class_order if name.lower() in word_of_class
    ]
    for name in classes_read_as_missing:
        label_word = word_of_class[name.lower()]
        message = (
            f"{label}: {table_name} has {label_word!r} for "
            f"{(label_words == label_word).sum()} scans, {_explain_word(label_word)}; "
            f"write another word for the class, there and in {option_text('classes')}"
        )
        faults.append(Finding(message, FAULT))
    other_classes = [
        name for name in class_order if name not in classes_read_as_missing
    ]
    faults += find_absent(label, other_classes, class_counts)
    return _Labelling(class_order, is_ordered, has_class, notes, faults)


def _describe_unlabelled(
    scan_name: str, label: str, label_word: str, visits: _VisitList
) -> Finding:
    """Return the fault of a scan without a label, whose cell may hold a word."""
    hint = ""
    if sessions := visits.listed_visits.get(scan_name):
        hint = f"; its visits are listed as {', '.join(sessions)}"
    message = f"no {label} (n/a{hint}); give one"
    if label_word:
        message = (
            f"{label} is {label_word!r}, {_explain_word(label_word)}; give another"
        )
    message += (
        f", leave the scan out, or keep those with a label by {option_text('classes')}"
    )
    return Finding(message, FAULT, scan=scan_name)


def _count_failed_formulas(people: People, label: str | None) -> list[Finding]:
    """Return a note for each error of a formula that covariates hold."""
    failed_cells = Counter(
        f"{head}: {cell_text!r}"
        for word_of_head in people.missing_words.values()
        for head, cell_text in word_of_head.items()
        if head != label and is_formula_error(cell_text)
    )
    return [
        Finding(
            f"{cell}, a formula that failed in the spreadsheet, counts as missing "
            f"({n_rows} rows)"
        )
        for cell, n_rows in failed_cells.items()
    ]


def _add_covariates(table: pd.DataFrame, covariates: pd.DataFrame) -> list[Finding]:
    """Add covariates to the table of scans, as numbers where all are; return faults."""
    faults = list[Finding]()
    for head, covariate_column in covariates.items():
        filled_cells = covariate_column.dropna()
        numbers = pd.to_numeric(covariate_column, errors="coerce")
        unparsed_cells = filled_cells[numbers[filled_cells.index].isna()]
        # With decimal commas every number would count as a word of its own.
        are_marked_numbers = unparsed_cells.map(is_number_with_marks).all()
        if are_marked_numbers or kind_of(head) in ("age", "education"):
            faults += [
                Finding(
                    f"{head} must be a number with a point and no unit or mark of "
                    "thousands, or n/a",
                    FAULT,
                    scan=table["scan"][row],
                    got=repr(cell_text),
                )
                for row, cell_text in unparsed_cells.items()
            ]
        is_numeric = len(filled_cells) > 0 and unparsed_cells.empty
        covariate_name = f"{head}_given" if head in KEY_COLUMNS else head
        table[covariate_name] = (
            numbers if is_numeric else pd.Series(covariate_column.tolist())
        )
    return faults


def refuse_continuous(label: str, classes: Sequence[str]) -> None:
    """Raise where labels are numbers that are no classes, such as ages."""
    label_numbers = pd.to_numeric(pd.Series(classes, dtype=object), errors="coerce")
    are_whole_numbers = (
        label_numbers == label_numbers.round()
    ).all() and label.lower() != "age"
    has_many_values = len(label_numbers) > _MOST_NUMBERS or not are_whole_numbers
    if len(label_numbers) and label_numbers.notna().all() and has_many_values:
        raise CohortError(
            f"{label} is continuous ({len(label_numbers)} values from "
            f"{label_numbers.min():g} to {label_numbers.max():g}), and labels are "
            f"classes. Name a column of classes by {option_text('label')}, or say "
            f"which values are classes by {option_text('classes')}"
        )


def _have_order(visits: Collection[str]) -> bool:
    """Return whether visits differ in a number alone (M6, M12), which is no date."""
    is_dated = any(map(_DATE.fullmatch, visits))
    names_without_digits = {re.sub(r"\d+", "", visit) for visit in visits}
    return len(visits) < 2 or (len(names_without_digits) == 1 and not is_dated)


def choose_baselines(
    visits: Collection[str], scanned_visits: Collection[str]
) -> list[str]:
    """Return the visits of a person that are called baseline, those scanned if any.

    A word for it (BL, "baseline visit") counts before the time 0 (M00, "year 0"), and
    that before a longer name ("baseline_arm_1"). Where there is none, return the first
    visit by its name alone (screening, init, pre), or nothing.

    >>> choose_baselines(["SC", "V04", "BL"], ["SC", "BL"])
    ['BL']
    >>> choose_baselines(["Screening", "Month 6"], ["Screening", "Month 6"])
    ['Screening']
    """
    ranks = {visit: _baseline_rank(visit) for visit in visits}
    baseline_visits = [visit for visit in visits if ranks[visit] is not None]
    baseline_visits = [
        visit for visit in baseline_visits if visit in scanned_visits
    ] or baseline_visits
    if baseline_visits:
        best_rank = min(
            rank for visit in baseline_visits if (rank := ranks[visit]) is not None
        )
        return [visit for visit in baseline_visits if ranks[visit] == best_rank]
    first_visits = [
        visit
        for visit in visits
        if visit.lower() in FIRST_VISITS or "screening" in visit.lower()
    ]
    first_visits = [
        visit for visit in first_visits if visit in scanned_visits
    ] or first_visits
    return [min(first_visits, key=visit_order)] if first_visits else []


def _baseline_rank(visit: str) -> int | None:
    """Return how plainly a visit is called baseline: 0 plainest, None not at all."""
    visit_terms = [
        visit_term.lower()
        for visit_term in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", visit)
    ]
    visit_terms = [
        visit_term for visit_term in visit_terms if visit_term not in _NEUTRAL_WORDS
    ]
    is_baseline = [
        "baseline" in visit_term or visit_term in _BASELINE_WORDS
        for visit_term in visit_terms
    ]
    if not visit_terms or _NOT_BASELINE_WORDS & {*visit_terms}:
        return None
    if all(is_baseline):
        return 0
    if _TIME_ZERO.fullmatch("".join(visit_terms)):
        return 1
    return 2 if any(is_baseline) else None


def is_called_baseline(visit: str) -> bool:
    """Return whether the name of a visit calls it the baseline."""
    return _baseline_rank(visit) is not None


def _explain_word(cell_text: str) -> str:
    """Say why a cell that has a word counts as missing."""
    if is_formula_error(cell_text):
        return "a formula that failed in the spreadsheet"
    return "a word that counts as missing"


def find_absent(
    label: str, class_names: Sequence[str], class_counts: pd.Series
) -> list[Finding]:
    """Return a fault for each class in `class_names` that no scan has.

    `class_counts` are the numbers of scans by class.
    """
    spelling_of_class = {
        str(class_name).lower(): class_name for class_name in class_counts.index
    }
    faults = list[Finding]()
    for class_name in class_names:
        if class_name in class_counts:
            continue
        message = (
            f"no scan has the {label} {class_name!r} of classes; found "
            f"{_describe_counts(class_counts) or 'none'}"
        )
        if class_name.lower() in spelling_of_class:
            message += f". Did you mean {spelling_of_class[class_name.lower()]!r}?"
        faults.append(Finding(message, FAULT))
    return faults


def _describe_counts(counts: pd.Series) -> str:
    """Return classes with their numbers, as `CN (4), AD (3)`."""
    return ", ".join(f"{name} ({count})" for name, count in counts.items())
