"""Who is in a cohort: people, their visits, labels, and the order of classes."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from brainlsap.data.find_files import (
    FOLDER_NAME,
    Scan,
    ScanName,
    StudyFiles,
    parse_scan_name,
    visit_order,
)
from brainlsap.data.region_tables import ScanTable
from brainlsap.data.tables import as_covariate, find_id, read_table
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


def read_people(path: Path) -> dict[str, Person]:
    """Read the table of people, and the sessions file beside it of every person.

    Returns people by their key. Raises a CohortError with every row that cannot be
    used: no name, one person twice, a sessions file that cannot be read.
    """
    table = read_table(path)
    heads = list(table)
    people, faults = collect_people(path, table, *find_id(path, heads))
    for person in people.values():
        names = {person.participant, f"sub-{person.participant}"}
        for name in names if FOLDER_NAME.fullmatch(person.participant) else ():
            own = path.parent / name / f"{name}_sessions.tsv"
            if not own.is_file() or own.parent.is_symlink():
                continue
            try:
                visits = read_table(own)
                if "session_id" not in visits or visits["session_id"].isna().any():
                    raise FileFormatError(
                        f"{own}: every row needs a 'session_id'; the columns are "
                        f"{', '.join(map(str, visits))}."
                    )
            except FileFormatError as error:
                faults.append(str(error))
                continue
            visits.insert(0, "participant", person.participant)
            more, wrong = collect_people(own, visits, "participant", "session_id")
            faults += wrong
            for one in more.values():
                for key, (said, facts) in one.visits.items():
                    known = person.visits.get(key, (said, {}))[1]
                    person.visits[key] = said, {**known, **facts}
    if faults:
        raise CohortError(f"{path} cannot be used", faults)
    return people


def people_of_table(table: ScanTable) -> dict[str, Person]:
    """Return the people of a table that holds labels and regions in one, by key."""
    names = [parse_scan_name(name) for name in table.scans["scan"]]
    sessions = zip(table.scans["session"], names, strict=True)
    rows = table.scans.drop(columns=["scan", "session"])
    rows["participant"] = [name.participant for name in names]
    rows["session"] = [session or name.session or None for session, name in sessions]
    people, faults = collect_people(table.path, rows, "participant", "session")
    if faults:
        raise CohortError(f"{table.path} cannot be used", faults)
    return people


def collect_people(
    path: Path, table: pd.DataFrame, id_column: str, session: str | None
) -> tuple[dict[str, Person], list[str]]:
    """Gather the rows of every person, by key; list the rows that cannot be used."""
    people: dict[str, Person] = {}
    faults = []
    # ADNI writes AGE, SEX, SITE; models, tests and texts know them in lower case
    lower = [str(head).lower() for head in table]
    heads = [
        low if low in _COVARIATES and lower.count(low) == 1 else head
        for head, low in zip(table, lower, strict=True)
    ]
    for number, cells in enumerate(table.to_numpy(dtype=object).tolist(), 1):
        row = dict(zip(heads, cells, strict=True))
        name = row.pop(id_column)
        visit = row.pop(session) if session else None
        if name is None or "/" in name or name.startswith("."):
            faults.append(
                f"{path}: row {number} below the header: {id_column} must be the name "
                f"of a subject, of letters, digits, '_', '-' and '.', got {name!r}"
            )
            continue
        key, visit_key = ScanName(name, visit or "").key
        is_new = key not in people
        person = people.setdefault(key, Person(name))
        if visit and (is_new or person.visits) and visit_key not in person.visits:
            person.visits[visit_key] = visit, row
        elif not visit and is_new:
            person.facts = row
        else:
            faults.append(
                f"{path}: {name} stands more than once"
                + (f" at visit {visit}" if visit_key in person.visits else "")
                + "; expected one row for a person, or each with its own session_id"
            )
    return people, faults


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


def list_scans(  # noqa: C901 (one question after the other)
    people: Mapping[str, Person],
    files: StudyFiles,
    label: str | None,
    *,
    source: str,
    classes: Sequence[str] | None = None,
    which: str = "all",
    known_sessions: Callable[[], Mapping[str, list[str]]],
) -> ScanList:
    """List the scans of a cohort with their labels, covariates and files.

    `source` is the name of the table of people; `known_sessions` returns visits by
    person, for people without folders of their own.
    """
    heads = {
        head: None
        for person in people.values()
        for facts in (person.facts, *(one for _, one in person.visits.values()))
        for head in facts
    }
    if label is not None and label not in heads and people:
        same = [str(head) for head in heads if str(head).lower() == label.lower()]
        if len(same) != 1:
            raise CohortError(
                f"{files.folder}: the label {label!r} is no column of {source}; found "
                f"{', '.join(map(str, heads)) or 'none besides the id'}. Name the "
                "column by label= (--label)"
            )
        label = same[0]
    rows: list[_Row] = []
    n_unscanned, n_without_baseline, n_differ = 0, 0, 0
    for key, person in people.items():
        sessions = list(files.sessions.get(key, {}).values())
        if not sessions and (key, "") not in files.files:
            sessions = known_sessions().get(key, [])
        listed = [name for name, _ in person.visits.values()]
        if sessions:
            scanned = {session.removeprefix("ses-") for session in sessions}
            n_unscanned += len(set(person.visits) - scanned)
        sessions = sorted(sessions or listed or [""], key=visit_order)
        chosen = sessions
        if which == "baseline" and listed:
            # what the table calls baseline, or its earliest; if it was scanned
            wanted = {n for n in person.visits if n.lower() in _BASELINE}
            wanted = wanted or {min(person.visits, key=visit_order)}
            chosen = [n for n in sessions if n.removeprefix("ses-") in wanted]
            n_without_baseline += not chosen
        # what visits say one by one is not taken from the person for another visit:
        # it may be listed under another name
        by_visit = {head for _, facts in person.visits.values() for head in facts}
        common = {h: fact for h, fact in person.facts.items() if h not in by_visit}
        for session in chosen[: 1 if which == "baseline" else None]:
            visit = session.removeprefix("ses-")
            own = person.visits.get(visit)
            facts = common if own is None else {**person.facts, **own[1]}
            both = person.facts.get(label), (own or ("", {}))[1].get(label)
            n_differ += None not in both and both[0] != both[1]
            name = f"{person.participant}_{session}".rstrip("_")
            is_only = len(sessions) == 1
            found = files.of_scan((key, visit), is_only)
            scan = Scan(name, (key, visit), is_only, found)
            rows.append((scan, person, session, facts))
    noted = (
        (n_unscanned, "listed visits have no folder ses-...: left out"),
        (n_without_baseline, "people without a scan at baseline: left out"),
        (
            n_differ,
            f"scans have another {label} in {source} than in sub-*_sessions.tsv: that "
            "of the visit, in sub-*_sessions.tsv, was taken",
        ),
    )
    notes = [f"{count} {what}" for count, what in noted if count]
    order: tuple[str, ...] = (UNLABELLED,)
    ordered, faults = False, list[str]()
    if label is not None:
        rows, order, ordered, more, faults = _choose_by_label(rows, label, classes)
        notes += more
    if not rows and not faults:
        raise CohortError(
            f"{files.folder}: no scan is left; {source} lists none"
            + ("".join(f"; {note}" for note in notes))
        )
    columns: dict[str, Any] = {
        "scan": [scan.name for scan, *_ in rows],
        "participant": [person.participant for _, person, *_ in rows],
        "session": [session for _, _, session, _ in rows],
        "label": [facts.get(label, UNLABELLED) for *_, facts in rows],
    }
    for head in dict.fromkeys(head for *_, facts in rows for head in facts):
        if head != label:
            column = pd.Series([facts.get(head) for *_, facts in rows], dtype=object)
            said = column.dropna().astype(str)
            commas = said[said.str.contains(",")]
            if len(commas) and said.str.fullmatch(r"-?\d+([.,]\d+)?").all():
                # every such number would count as a word of its own
                raise CohortError(
                    f"{head} is written with decimal commas, such as "
                    f"{commas.iloc[0]!r}; expected points. Replace them"
                )
            name = f"{head}_given" if head in KEY_COLUMNS else head
            columns[name] = as_covariate(column)
    scans = [scan for scan, *_ in rows]
    table = pd.DataFrame(columns)
    return ScanList(scans, table, label, order, ordered, notes, faults)


_Row = tuple[Scan, Person, str, dict[Any, str | None]]


def _choose_by_label(
    rows: Sequence[_Row], label: str, classes: Sequence[str] | None
) -> tuple[list[_Row], tuple[str, ...], bool, list[str], list[str]]:
    """Return the rows of the classes, the classes, whether ordered, notes, faults."""
    found = Counter(
        said for *_, facts in rows if (said := facts.get(label)) is not None
    )
    numbers = pd.to_numeric(pd.Series(list(found), dtype=object), errors="coerce")
    whole = (numbers == numbers.round()).all()
    many = not whole or len(found) > _MOST_NUMBERS or label.lower() == "age"
    if classes is None and found and numbers.notna().all() and many:
        raise CohortError(
            f"{label} is continuous ({len(found)} values from {numbers.min():g} to "
            f"{numbers.max():g} in {len(rows)} scans), and labels are classes. Name a "
            "column of classes by label= (--label), or say which values are classes by "
            "classes= (--classes)"
        )
    order, ordered = order_classes(list(found), classes)
    kept = [row for row in rows if row[-1].get(label) in order]
    faults = []
    for scan, person, _, facts in rows if classes is None else ():
        if facts.get(label) is None:
            names = ", ".join(name for name, _ in person.visits.values())
            unlisted = names and scan.key[1] not in person.visits
            but = f"; its visits are listed as {names}" if unlisted else ""
            faults.append(
                f"{scan.name}: no {label} (n/a{but}); give one, leave the scan out, or "
                "keep those with a label by classes= (--classes)"
            )
    counted = ", ".join(f"{name} ({n})" for name, n in sorted(found.items())) or "none"
    for name in (name for name in order if name not in found):
        meant = [known for known in found if known.lower() == name.lower()]
        hint = f". Did you mean {meant[0]!r}?" if meant else ""
        faults.append(
            f"no scan has the {label} {name!r} of classes; found {counted}{hint}"
        )
    if classes is None or len(kept) == len(rows):
        return kept, order, ordered, [], faults
    others = Counter(str(row[-1].get(label) or "n/a") for row in rows)
    left = sorted((name, n) for name, n in others.items() if name not in order)
    names = ", ".join(f"{name} ({n})" for name, n in left)
    note = f"left out, {label} is not among the classes: {names}"
    return kept, order, ordered, [note], faults
