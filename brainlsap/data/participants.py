"""Who is in a cohort: people, their visits, labels, and the order of classes."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from brainlsap.data.find_files import (
    Scan,
    StudyFiles,
    is_folder_name,
    parse_scan_name,
    person_key,
    visit_key,
    visit_order,
)
from brainlsap.data.region_tables import ScanTable, find_id, find_session
from brainlsap.data.tables import as_covariate, read_table
from brainlsap.exceptions import CohortError, FileFormatError, ParameterError

UNLABELLED = "unlabelled"
"""The class of every scan where no label is read: of people to be predicted."""
KEY_COLUMNS = ("scan", "participant", "session", "label")
PEOPLE_FILES = tuple(
    f"{stem}{suffix}"
    for stem in ("participants", "subjects")
    for suffix in (".tsv", ".csv", ".xlsx", ".txt")
)
# Written in any case by tools; models, tests and texts know them in lower case.
_COVARIATES = ("age", "sex", "site", "phase", "scanner", "education")
_BASELINE = ("bl", "baseline", "sc", "screening", "init", "m0", "m00", "m000")
# Diagnoses in order of stage; those of one row are two words for one stage.
_STAGES = (
    ("nc", "cn", "hc"),
    ("smc", "scd"),
    ("emci",),
    ("mci",),
    ("lmci",),
    ("ad", "dementia"),
)
# More values than this are of a continuous number, not of classes.
_MOST_NUMBERS = 10


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
        In the order given; else NC/CN/HC, SMC/SCD, EMCI, MCI, LMCI, AD/Dementia, in
        any case, where every label is one of these and of a stage of its own; numbers
        by value; else sorted.
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
    (('AD', 'CN', 'FTD'), False)
    """
    if given is not None:
        names = tuple(str(name) for name in given)
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ParameterError(f"classes names {doubled[0]!r} more than once.")
        return names, True
    found = sorted({str(label) for label in labels})
    rank = {word: place for place, row in enumerate(_STAGES) for word in row}
    stages = [rank.get(name.lower(), -1) for name in found]
    if -1 not in stages and len(set(stages)) == len(stages):
        return tuple(sorted(found, key=lambda name: rank[name.lower()])), True
    try:
        return tuple(sorted(found, key=lambda name: (float(name), name))), True
    except ValueError:
        return tuple(found), False


@dataclass(eq=False)
class Person:
    """One person, and what is known about each visit (text, or None)."""

    participant: str
    facts: dict[Any, str | None] = field(default_factory=dict)
    visits: dict[str, tuple[str, dict[Any, str | None]]] = field(default_factory=dict)
    """Name and facts of each visit by its key; empty where no table lists visits."""

    def facts_at(self, session: str) -> dict[Any, str | None]:
        """Return what is known at one visit; the visit's own facts come first.

        What the person's other visits say one by one is not taken from the person for
        a visit that is not listed: it may be listed under another name.
        """
        visit = self.visits.get(visit_key(session))
        if visit is not None:
            return {**self.facts, **visit[1]}
        by_visit = {head for _, facts in self.visits.values() for head in facts}
        return {h: fact for h, fact in self.facts.items() if h not in by_visit}


def people_file(folder: Path) -> Path | None:
    """Return the table of people of a study, None where there is none."""
    return next((folder / n for n in PEOPLE_FILES if (folder / n).is_file()), None)


def read_people(path: Path, files: StudyFiles | None = None) -> list[Person]:
    """Read the table of people, and the sessions file of every person.

    Raises a CohortError with every row that cannot be used: no name, a name that is
    no name of a folder, one person twice, a sessions file that cannot be read.
    """
    table = read_table(path)
    id_column, session = find_id(path, list(table)), find_session(list(table))
    people, faults = _collect(path, _any_case(table), id_column, session, safe=True)
    for person in people if files is not None else ():
        names = (person.participant, f"sub-{person.participant}")
        path_of = [
            files.folder / name / f"{name}_sessions.tsv"
            for name in names
            if name in files.list_folder(files.folder)[0]
        ]
        for own in (file for file in path_of if file.is_file()):
            try:
                _add_sessions(own, person)
            except FileFormatError as error:
                faults.append(str(error))
    if faults:
        raise CohortError(f"{path} cannot be used", faults)
    return people


def people_of_table(scans: ScanTable) -> list[Person]:
    """Return the people of a table that holds labels and regions in one."""
    names = [parse_scan_name(name) for name in scans.scans["scan"]]
    table = scans.scans.drop(columns=["scan", "session"])
    table["participant"] = [name.participant for name in names]
    table["session"] = [
        session or name.session or None
        for session, name in zip(scans.scans["session"], names, strict=True)
    ]
    table = _any_case(table)
    people, faults = _collect(scans.path, table, "participant", "session", safe=False)
    if faults:
        raise CohortError(f"{scans.path} cannot be used", faults)
    return people


def _any_case(table: pd.DataFrame) -> pd.DataFrame:
    """Write the heads of usual covariates in lower case (ADNI has AGE, SEX, SITE)."""
    lower = {head: str(head).lower() for head in table}
    return table.rename(
        columns={
            head: name
            for head, name in lower.items()
            if name in _COVARIATES and list(lower.values()).count(name) == 1
        }
    )


def _collect(
    path: Path, table: pd.DataFrame, id_column: str, session: str | None, *, safe: bool
) -> tuple[list[Person], list[str]]:
    """Gather the rows of every person; list the rows that cannot be used."""
    people: dict[str, Person] = {}
    faults = []
    for number, row in enumerate(table.to_dict("records"), start=1):
        name = row.pop(id_column)
        visit = row.pop(session) if session else None
        if name is None or (safe and not is_folder_name(name)):
            faults.append(
                f"{path}: row {number} below the header: {id_column} must be the name "
                f"of a subject, of letters, digits, '_', '-' and '.', got {name!r}"
            )
            continue
        is_new = person_key(name) not in people
        person = people.setdefault(person_key(name), Person(name))
        if not is_new and visit is None and not person.visits:
            faults.append(
                f"{path}: {name} stands more than once; expected one row for a person, "
                "or a column session_id that tells the rows apart"
            )
        elif not is_new and (visit is None or not person.visits):
            faults.append(
                f"{path}: {name} has rows with and without a session_id; expected it "
                "in all or none"
            )
        elif visit is None:
            person.facts = row
        elif visit_key(visit) in person.visits:
            faults.append(f"{path}: {name} stands more than once at visit {visit}")
        else:
            person.visits[visit_key(visit)] = visit, row
    return list(people.values()), faults


def _add_sessions(path: Path, person: Person) -> None:
    table = _any_case(read_table(path))
    if "session_id" not in table:
        found = ", ".join(map(str, table))
        raise FileFormatError(f"{path}: no column 'session_id'; found {found}.")
    names = [None if name is None else visit_key(name) for name in table["session_id"]]
    if None in names or len(set(names)) < len(names):
        raise FileFormatError(
            f"{path}: session_id must name every visit once, got "
            f"{', '.join(map(str, names))}."
        )
    for row in table.to_dict("records"):
        session = row.pop("session_id")
        known = person.visits.get(visit_key(session), (session, {}))[1]
        person.visits[visit_key(session)] = session, {**known, **row}


class ScanList(NamedTuple):
    """The scans of a cohort, before any array is read."""

    scans: list[Scan]
    table: pd.DataFrame
    label: str | None
    """The column, as the table writes it."""
    classes: tuple[str, ...]
    classes_ordered: bool
    notes: list[str]
    faults: list[str]


def list_scans(  # noqa: C901
    people: Sequence[Person],
    files: StudyFiles,
    label: str | None,
    *,
    source: str,
    classes: Sequence[str] | None = None,
    which: str = "all",
    known_sessions: dict[str, list[str]],
) -> ScanList:
    """List the scans of a cohort with their labels, covariates and files.

    `known_sessions` are visits by person, for people without folders of their own;
    `source` is the name of the table of people.
    """
    notes: list[str] = []
    faults: list[str] = []
    label = _label_column(people, label, files, source)
    rows: list[tuple[Person, str, int]] = []
    n_unscanned, n_without_baseline = 0, 0
    for person in people:
        sessions = files.sessions(person.participant)
        if not sessions and not files.visits(person.participant):
            sessions = known_sessions.get(person_key(person.participant), [])
        if sessions:
            scanned = {visit_key(session) for session in sessions}
            n_unscanned += len(set(person.visits) - scanned)
        elif person.visits:
            listed = [name for name, _ in person.visits.values()]
            sessions = sorted(listed, key=visit_order)
        else:
            sessions = [""]
        chosen = _baseline(person, sessions) if which == "baseline" else sessions
        n_without_baseline += not chosen
        rows += [(person, session, len(sessions)) for session in chosen]
    if n_unscanned:
        have = (
            "visits are listed but have"
            if n_unscanned > 1
            else "visit is listed but has"
        )
        notes.append(f"{n_unscanned} {have} no folder ses-...: left out")
    if n_without_baseline:
        notes.append(
            f"{n_without_baseline} people without a scan at baseline: left out"
        )
    labels = [person.facts_at(session).get(label) for person, session, _ in rows]
    order: tuple[str, ...] = (UNLABELLED,)
    ordered = False
    if label is not None:
        found = Counter(name for name in labels if name is not None)
        if classes is None:
            _refuse_continuous(label, found, len(rows))
        order, ordered = order_classes(list(found), classes)
        left: Counter[str] = Counter()
        kept = []
        for row, name in zip(rows, labels, strict=True):
            if name in order:
                kept.append(row)
            elif classes is not None:
                left[name or "n/a"] += 1
            else:
                faults.append(
                    f"{_scan_name(*row[:2])}: no {label} (n/a"
                    f"{_other_visits(*row[:2])}); give one, leave the scan out, or "
                    "keep those with a label by classes= (--classes)"
                )
        rows = kept
        counted = ", ".join(f"{name} ({n})" for name, n in sorted(found.items()))
        for name in order:
            if name not in found:
                meant = [known for known in found if known.lower() == name.lower()]
                faults.append(
                    f"no scan has the {label} {name!r} of classes; found "
                    f"{counted or 'none'}"
                    + (f". Did you mean {meant[0]!r}?" if meant else "")
                )
        if left:
            counted = ", ".join(f"{name} ({n})" for name, n in sorted(left.items()))
            notes.append(f"left out, {label} is not among the classes: {counted}")
        notes += _contradictions(rows, label, source)
    if not rows and not faults:
        raise CohortError(
            f"{files.folder}: no scan is left; {source} lists none"
            + ("".join(f"; {note}" for note in notes))
        )
    scans = [
        Scan(
            _scan_name(person, session),
            person.participant,
            session,
            n == 1,
            files.files(person.participant, session, n == 1),
        )
        for person, session, n in rows
    ]
    facts = [person.facts_at(session) for person, session, _ in rows]
    table = _table(scans, facts, label)
    return ScanList(scans, table, label, order, ordered, notes, faults)


def _scan_name(person: Person, session: str) -> str:
    return f"{person.participant}_{session}" if session else person.participant


def _label_column(
    people: Sequence[Person], label: str | None, files: StudyFiles, source: str
) -> str | None:
    """Return the head of the label's column, which may be written in another case."""
    heads: dict[object, None] = {}
    for person in people:
        heads.update(dict.fromkeys(person.facts))
        for _, facts in person.visits.values():
            heads.update(dict.fromkeys(facts))
    if label is None or label in heads or not people:
        return label
    same = [str(head) for head in heads if str(head).lower() == label.lower()]
    if len(same) == 1:
        return same[0]
    found = ", ".join(map(str, heads)) or "none besides the id"
    raise CohortError(
        f"{files.folder}: the label {label!r} is no column of {source}; found {found}. "
        "Name the column by label= (--label)"
    )


def _baseline(person: Person, sessions: list[str]) -> list[str]:
    """Return the visit that the table calls baseline, or its earliest, if scanned."""
    if not person.visits:
        return sessions[:1]
    listed = [name for name, _ in person.visits.values()]
    wanted = [name for name in listed if visit_key(name).lower() in _BASELINE]
    wanted = wanted or sorted(listed, key=visit_order)[:1]
    keys = {visit_key(name) for name in wanted}
    return [session for session in sessions if visit_key(session) in keys][:1]


def _refuse_continuous(label: str, found: Counter[str], n_scans: int) -> None:
    try:
        values = [float(name) for name in found]
    except ValueError:
        return
    whole = all(value.is_integer() for value in values if math.isfinite(value))
    if values and (not whole or len(values) > _MOST_NUMBERS or label.lower() == "age"):
        raise CohortError(
            f"{label} is continuous ({len(values)} values from {min(values):g} to "
            f"{max(values):g} in {n_scans} scans), and labels are classes. Name a "
            "column of classes by label= (--label), or say which values are classes by "
            "classes= (--classes)"
        )


def _other_visits(person: Person, session: str) -> str:
    """Return the visits of a person that are listed, where this one is not."""
    if not person.visits or visit_key(session) in person.visits:
        return ""
    names = ", ".join(name for name, _ in person.visits.values())
    return f"; its visits are listed as {names}"


def _contradictions(
    rows: Sequence[tuple[Person, str, int]], label: str, source: str
) -> list[str]:
    """Say where a person's label and that of the visit differ, and which counts."""
    n_differ = 0
    for person, session, _ in rows:
        by_visit = person.visits.get(visit_key(session), ("", {}))[1].get(label)
        n_differ += None not in (by_visit, person.facts.get(label)) and (
            by_visit != person.facts[label]
        )
    if not n_differ:
        return []
    return [
        f"{label} of {n_differ} scans differs between {source} and sub-*_sessions.tsv: "
        "that of the visit, in sub-*_sessions.tsv, was taken"
    ]


def _table(
    scans: Sequence[Scan], facts: Sequence[dict[Any, str | None]], label: str | None
) -> pd.DataFrame:
    columns: dict[str, Any] = {
        "scan": [scan.name for scan in scans],
        "participant": [scan.participant for scan in scans],
        "session": [scan.session for scan in scans],
        "label": [UNLABELLED if label is None else fact[label] for fact in facts],
    }
    for head in dict.fromkeys(head for fact in facts for head in fact):
        if head != label:
            column = pd.Series([fact.get(head) for fact in facts], dtype=object)
            text = column.dropna().astype(str)
            comma = text[text.str.fullmatch(r"-?\d+,\d+")]
            if len(comma) and text.str.fullmatch(r"-?\d+([.,]\d+)?").all():
                # every such number would count as a word of its own
                raise CohortError(
                    f"{head} is written with decimal commas, such as "
                    f"{comma.iloc[0]!r}; expected points. Replace them"
                )
            name = f"{head}_given" if head in KEY_COLUMNS else head
            columns[name] = as_covariate(column)
    return pd.DataFrame(columns)
