"""Who is in a cohort: people, their visits, labels, and the order of classes."""

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
from brainlsap.data.tables import (
    MISSING_WORDS,
    TableColumns,
    is_formula_error,
    is_number_with_marks,
    read_columns,
)
from brainlsap.exceptions import CohortError, FileFormatError, ParameterError
from brainlsap.text import listed

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
            if word := self.missing_words.get(key, {}).get(column):
                return word
        return ""


def people_files(folder: Path) -> list[Path]:
    """Return the tables of people in a folder, best first."""
    return [folder / name for name in PEOPLE_FILES if (folder / name).is_file()]


def order_classes(
    labels: Sequence[str] | np.ndarray, given: Sequence[str] | None = None
) -> tuple[tuple[str, ...], bool]:
    """Return the classes of some labels, and whether their order is known.

    Parameters
    ----------
    labels : sequence of str
        Of the scans.
    given : sequence of str, optional
        The order wanted, which then is known.

    Returns
    -------
    classes : tuple of str
        In the order given; else NC/CN/HC/Control/Healthy, SMC/SCD, EMCI, MCI, LMCI,
        AD/Dementia, in any case, where every label is one of these and of a stage of
        its own; numbers by value; else sorted, the healthy first.
    ordered : bool
        False where the classes are only sorted: no stage comes before another.

    Raises
    ------
    ParameterError
        Where `given` names a class twice.

    Examples
    --------
    >>> order_classes(["AD", "CN", "MCI"]), order_classes(["10", "9"])
    ((('CN', 'MCI', 'AD'), True), (('9', '10'), True))
    >>> order_classes(["CN", "AD", "FTD"])
    (('CN', 'AD', 'FTD'), False)
    """
    if given is not None:
        names = tuple(map(str, [given] if isinstance(given, str) else given))
        if doubled := [name for name in names if names.count(name) > 1]:
            raise ParameterError(f"classes names {doubled[0]!r} more than once.")
        return names, True
    found = sorted({str(label) for label in labels})
    stages = [STAGE_OF_WORD.get(name.lower(), -1) for name in found]
    if -1 not in stages and len(set(stages)) == len(stages):
        return tuple(sorted(found, key=lambda name: STAGE_OF_WORD[name.lower()])), True
    try:
        return tuple(sorted(found, key=lambda name: (float(name), name))), True
    except ValueError:
        # the first class is the reference that others differ from
        return tuple(
            sorted(found, key=lambda name: STAGE_OF_WORD.get(name.lower()) != 0)
        ), False


class _PeopleTable(NamedTuple):
    """A table of people or of a person's visits: who each row is of, and columns."""

    path: Path
    names: Sequence[ScanName]
    columns: Mapping[str, Sequence[str | None]]
    missing_words: Mapping[str, Mapping[int, str]]


def _find_tables(
    path: Path, names: Sequence[ScanName], facts: pd.DataFrame
) -> tuple[list[_PeopleTable], list[str]]:
    """Return the table of people and every sessions file beside it, and faults."""
    words = facts.attrs.get(MISSING_WORDS, {})
    tables = [_PeopleTable(path, names, facts.to_dict("list"), words)]
    faults = list[str]()
    for participant in {name.key[0]: name.participant for name in names}.values():
        for folder in {participant, f"sub-{participant}"}:
            own = path.parent / folder / f"{folder}_sessions.tsv"
            if not own.is_file():
                continue
            try:
                session_ids, columns = _read_sessions(own)
            except FileFormatError as error:
                faults.append(str(error))
                continue
            visited = [ScanName(participant, visit) for visit in session_ids]
            tables.append(_PeopleTable(own, visited, columns, columns.missing_words))
    return tables, faults


def read_people(
    path: Path, names: Sequence[ScanName], facts: pd.DataFrame
) -> tuple[People, list[str]]:
    """Return who stands in a table, and in the sessions file beside it of every person.

    And faults: a person who stands twice, a sessions file that cannot be read.
    """
    tables, faults = _find_tables(path, names, facts)
    people = People()
    for source, scans, given, missing_words in tables:
        lower = [head.lower() for head in given]
        usual = {head for head in COVARIATES if lower.count(head) == 1}
        heads = [head.lower() if head.lower() in usual else head for head in given]
        columns = zip(given, heads, strict=True)
        words = {name: missing_words.get(head, {}) for head, name in columns}
        of_table: dict[str, set[str]] = {}
        rows = enumerate(zip(scans, *given.values(), strict=True))
        for place, (name, *row) in rows:
            person, visit = name.key
            visits = of_table.setdefault(person, set())
            if visit in visits or (visits and "" in (visit, *visits)):
                faults.append(
                    f"{name.participant}: stands more than once in {source}; expected "
                    "one row, or a column session_id (or visit) that differs. Name a "
                    "column of visits by session_column= (--session)"
                )
                continue
            visits.add(visit)
            said_of = people.setdefault(person, {})
            written, known = said_of.get(visit, (name, Facts()))
            cells = dict(zip(heads, row, strict=True))
            cell_words = {
                head: of_rows[place]
                for head, of_rows in words.items()
                if place in of_rows
            }
            for head in [head for head in cells if is_formula_error(cells[head])]:
                cell_words[head] = str(cells[head])
                cells[head] = None
            if cell_words:
                known_words = people.missing_words.setdefault((person, visit), {})
                known_words.update(cell_words)
            said_of[visit] = written, known | cells
    return people, faults


def _read_sessions(path: Path) -> tuple[list[str], TableColumns]:
    """Return the visits that a person's sessions file lists, and its other columns."""
    columns = read_columns(path)
    if "session_id" not in columns:
        what = f"'session_id'; the columns are {', '.join(columns)}"
        raise FileFormatError(f"{path}: every row needs a {what}.")
    session_ids = columns.pop("session_id")
    for line, cell in zip(columns.lines, session_ids, strict=True):
        if cell is None or is_formula_error(cell):
            raise FileFormatError(
                f"{path}: every row needs a 'session_id'; line {line} has "
                f"{cell or 'none'}."
            )
    return [str(cell) for cell in session_ids], columns


@dataclass
class ScanList:
    """The scans of a cohort, and what is found, noted and refused about them."""

    scans: list[Scan]
    table: pd.DataFrame
    label: str | None
    """The column, as the table writes it."""
    classes: tuple[str, ...]
    classes_ordered: bool
    notes: list[str]
    faults: list[str]
    found: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    """Notes on single scans, and of how many."""
    shareable_notes: dict[str, str] = field(default_factory=dict)
    """Notes that name people or visits, and the same without the names."""
    bar: Mapping[str, Any] = field(default_factory=dict)
    """How `tqdm` shows it."""

    def note_names(self, text: str, names: Iterable[str], most: int) -> None:
        """Add a note that ends with names, which a report is not to show."""
        note = f"{text} {listed(names, most)}"
        self.notes.append(note)
        self.shareable_notes[note] = f"{text} [names withheld]"

    def fault(self, error: object, scan: Scan | None = None) -> None:
        """Add a fault, which names its scan or its file."""
        message = str(error)
        is_whole = message[-2:-1] in (".", " ")  # ends with dots, or the folder "."
        message = message if is_whole else message.removesuffix(".")
        # a file says whose it is, and what many files share is said once
        head = message.partition(": ")[0]
        is_of_file = os.sep in head and "; " not in head  # no pattern with folders
        is_said = scan is not None and message.startswith(f"{scan.name}:")
        if scan is not None and not (is_said or is_of_file):
            message = f"{scan.name}: {message}"
        if message not in self.faults:
            self.faults.append(message)


def list_scans(  # noqa: C901 (one question after the other)
    people: People,
    sources: FeatureSources,
    label: str | None,
    source: str,
    classes: Sequence[str] | None = None,
    which: str = "all",
) -> ScanList:
    """List the scans of a cohort with their labels, covariates and files.

    `source` is the name of the table of people. People without folders of their own
    have the visits that FreeSurfer or tables of regions know.
    """
    files = sources.files
    records = [record for visits in people.values() for record in visits.values()]
    heads = dict.fromkeys(head for _, facts in records for head in facts)
    if label is not None and label not in heads and people:
        same = [head for head in heads if head.lower() == label.lower()]
        if len(same) != 1:
            raise CohortError(
                f"{files.folder}: the label {label!r} is no column of {source}; found "
                f"{', '.join(heads) or 'none besides the id'}. Name the column by "
                "label= (--label)"
            )
        label = same[0]
    scans, keys, facts = list[Scan](), list[tuple[str, str, str]](), list[Facts]()
    label_words = list[str]()  # of cells without a label
    hints, faults = dict[str, str](), list[str]()
    n_without_baseline, n_differ, unscanned = 0, 0, list[str]()
    for person, visits in people.items():
        written = next(iter(visits.values()))[0].participant
        known = {visit: name.session for visit, (name, _) in visits.items() if visit}
        folders = files.sessions.get(person, {})
        scanned = {
            visit: session
            for visit, session in folders.items()
            # a folder may hold lists and questionnaires alone
            if visit not in known or sources.has_data(person, visit)
        }
        if not any(files.files.get((person, visit)) for visit in ("", *folders)):
            scanned = {**sources.sessions.get(person, {}), **scanned}
        absent = [known[one] for one in known if scanned and one not in scanned]
        unscanned += [f"{written}_{session}" for session in absent]
        sessions = scanned or known or {"": ""}
        chosen = sorted(sessions, key=lambda one: visit_order(sessions[one]))
        if which == "baseline":
            candidates = known or sessions
            # the earliest may be a visit that was scanned and is not listed
            every = {**scanned, **known} or sessions
            baselines = choose_baselines(candidates, sessions)
            if len({*baselines} & {*sessions}) > 1:
                faults.append(
                    f"{written}: several visits are called baseline; expected one; got "
                    f"{', '.join(candidates[visit] for visit in baselines)}"
                )
            if not (baselines or _have_order(every)):
                faults.append(
                    f"{written}: which visit is the first is not known; write "
                    "dates as 2020-12-31, or call one baseline; got "
                    f"{', '.join(every.values())}"
                )
            baselines = baselines or [min(every, key=visit_order)]
            chosen = [one for one in chosen if one in baselines and one in candidates]
            n_without_baseline += not chosen
            chosen = chosen[:1]
        # what visits say one by one is not taken from the person for another visit:
        # it may be listed under another name
        of_visits = dict.fromkeys(head for one in known for head in visits[one][1])
        of_person = (visits[""][1] if "" in visits else {}) | of_visits
        for visit in chosen:
            name = f"{written}_{sessions[visit]}".rstrip("_")
            key, is_only = (person, visit), len(sessions) == 1
            # of several visits that are listed it may be another's
            paths = files.of_scan(key, is_only and len(known) < 2)
            scans.append(Scan(name, key, is_only, paths))
            keys.append((name, written, sessions[visit]))
            of_visit = visits[visit][1] if visit in known else {}
            facts.append(of_person | of_visit)
            label_words.append(people.find_word(person, visit, label or ""))
            both = of_visit, visits[""][1] if "" in visits else {}
            n_differ += len({row.get(label or "") for row in both} - {None}) > 1
            if known and visit not in known:
                hints[name] = f"; its visits are listed as {', '.join(known.values())}"
    notes = list[str]()
    if n_without_baseline:
        what = "people without a listed scan at baseline: left out"
        notes.append(f"{n_without_baseline} {what}")
    if n_differ:
        told = f"scans have another {label} in {source} than in sub-*_sessions.tsv"
        notes.append(f"{n_differ} {told}: that of the visit was taken")
    if not scans:
        n_unscanned = f"{len(unscanned)} listed visits have no files or folders"
        absent = [n_unscanned] if unscanned else []
        what = "; ".join([f"{source} lists none", *absent, *notes])
        raise CohortError(f"{files.folder}: no scan is left; {what}")
    covariates = pd.DataFrame(facts, columns=[*heads], dtype=object)
    covariates = covariates.where(covariates.notna(), None)
    table = pd.DataFrame(keys, columns=KEY_COLUMNS[:3])
    table["label"] = UNLABELLED if label is None else covariates.pop(label)
    order: tuple[str, ...] = (UNLABELLED,)
    ordered = False
    if label is not None:
        found = table["label"].value_counts().sort_index()
        order, ordered = order_classes(list(found.index), classes)
        is_kept = table["label"].isin(order)
        words = pd.Series(label_words, dtype=object)
        if classes is None:
            refuse_continuous(label, order)
            unlabelled = zip(table["scan"][~is_kept], words[~is_kept], strict=True)
            for name, word in unlabelled:
                what = f"no {label} (n/a{hints.get(name, '')}); give one"
                if word:
                    what = f"{label} is {word!r}, {_explain_word(word)}; give another"
                faults.append(
                    f"{name}: {what}, leave the scan out, or keep those with a label "
                    "by classes= (--classes)"
                )
        else:
            lower = {name.lower() for name in order}
            some = table["label"][table["label"].str.lower().isin(lower)]
            faults += find_spellings(label, some)
            others = table["label"][~is_kept]
            others = others.fillna(words[~is_kept].map(lambda word: word or "n/a"))
            others = others.value_counts().sort_index()
            if counted := _counts(others):
                notes.append(f"left out, {label} is not among the classes: {counted}")
            spelt = {word.lower(): word for word in words if word}
            absent = [name for name in order if name.lower() in spelt]
            for word in (spelt[name.lower()] for name in absent):
                faults.append(
                    f"{label}: {source} has {word!r} for {(words == word).sum()} "
                    f"scans, {_explain_word(word)}; write another word for the class, "
                    "there and in classes= (--classes)"
                )
            rest = [name for name in order if name not in absent]
            faults += find_absent(label, rest, found)
        table, covariates = table[is_kept].reset_index(drop=True), covariates[is_kept]
        scans = [scan for scan, is_one in zip(scans, is_kept, strict=True) if is_one]
    covariates = covariates.reset_index(drop=True)
    failed = Counter(
        f"{head}: {word!r}"
        for words_of_scan in people.missing_words.values()
        for head, word in words_of_scan.items()
        if head != label and is_formula_error(word)
    )
    what = "a formula that failed in the spreadsheet, counts as missing"
    notes += [f"{cell}, {what} ({n} rows)" for cell, n in failed.items()]
    for head, column in covariates.items():
        known, numbers = column.dropna(), pd.to_numeric(column, errors="coerce")
        odd = known[numbers[known.index].isna()]
        # with decimal commas every number would count as a word of its own
        is_number = odd.map(is_number_with_marks).all()
        if is_number or kind_of(head) in ("age", "education"):
            faults += [
                f"{table['scan'][row]}: {head} must be a number with a point and no "
                f"unit or mark of thousands, or n/a; got {said!r}"
                for row, said in odd.items()
            ]
        # numbers where all that is there are numbers, else text in pandas' own type
        is_number = len(known) and odd.empty
        name = f"{head}_given" if head in KEY_COLUMNS else head
        table[name] = numbers if is_number else pd.Series(column.tolist())
    faults += find_faults(table, label or "", has_order=label is None or ordered)
    study = ScanList(scans, table, label, order, ordered, [], faults)
    if unscanned:
        n_visits = len(unscanned)
        text = f"{n_visits} listed visits left out: there are no files or folders of"
        study.note_names(text, unscanned, 3)
    study.notes += notes
    return study


def refuse_continuous(label: str, classes: Sequence[str]) -> None:
    """Raise where labels are numbers that are no classes, such as ages."""
    numbers = pd.to_numeric(pd.Series(classes, dtype=object), errors="coerce")
    is_whole = (numbers == numbers.round()).all() and label.lower() != "age"
    is_many = len(numbers) > _MOST_NUMBERS or not is_whole
    if len(numbers) and numbers.notna().all() and is_many:
        raise CohortError(
            f"{label} is continuous ({len(numbers)} values from {numbers.min():g} to "
            f"{numbers.max():g}), and labels are classes. Name a column of classes by "
            "label= (--label), or say which values are classes by classes= (--classes)"
        )


def _have_order(visits: Collection[str]) -> bool:
    """Return whether visits differ in a number alone (M6, M12), which is no date."""
    is_dated = any(map(_DATE.fullmatch, visits))
    words = {re.sub(r"\d+", "", visit) for visit in visits}
    return len(visits) < 2 or (len(words) == 1 and not is_dated)


def choose_baselines(visits: Collection[str], scanned: Collection[str]) -> list[str]:
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
    called = [visit for visit in visits if ranks[visit] is not None]
    called = [visit for visit in called if visit in scanned] or called
    if called:
        best = min(rank for visit in called if (rank := ranks[visit]) is not None)
        return [visit for visit in called if ranks[visit] == best]
    named = [
        visit
        for visit in visits
        if visit.lower() in FIRST_VISITS or "screening" in visit.lower()
    ]
    named = [visit for visit in named if visit in scanned] or named
    return [min(named, key=visit_order)] if named else []


def is_called_baseline(visit: str) -> bool:
    """Return whether the name of a visit calls it the baseline."""
    return _baseline_rank(visit) is not None


def _baseline_rank(visit: str) -> int | None:
    """Return how plainly a visit is called baseline: 0 plainest, None not at all."""
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", visit)]
    words = [word for word in words if word not in _NEUTRAL_WORDS]
    is_baseline = ["baseline" in word or word in _BASELINE_WORDS for word in words]
    if not words or _NOT_BASELINE_WORDS & {*words}:
        return None
    if all(is_baseline):
        return 0
    if _TIME_ZERO.fullmatch("".join(words)):
        return 1
    return 2 if any(is_baseline) else None


def _explain_word(word: str) -> str:
    """Say why a cell that has a word counts as missing."""
    if is_formula_error(word):
        return "a formula that failed in the spreadsheet"
    return "a word that counts as missing"


def find_absent(label: str, names: Sequence[str], found: pd.Series) -> list[str]:
    """Say which classes were asked for and are none of those found, with counts."""
    lower = {name.lower(): f". Did you mean {name!r}?" for name in found.index}
    told = f"of classes; found {_counts(found) or 'none'}"
    return [
        f"no scan has the {label} {name!r} {told}{lower.get(name.lower(), '')}"
        for name in names
        if name not in found
    ]


def _counts(labels: pd.Series) -> str:
    return ", ".join(f"{name} ({n})" for name, n in labels.items())
