"""Who is in a cohort: `participants.tsv`, and the visits of `sub-*_sessions.tsv`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from brainlsap.data.feature_tables import ScanTable
from brainlsap.data.folder_walk import leaves
from brainlsap.data.scan_names import is_folder_name, person_key, visit_key
from brainlsap.data.table_columns import find_id, find_session
from brainlsap.data.tables import read_table
from brainlsap.exceptions import CohortError, FileFormatError

PARTICIPANTS_FILE = "participants.tsv"


@dataclass(frozen=True, eq=False)
class Visit:
    """What is known about one visit alone.

    Parameters
    ----------
    name : str
        As the table writes it.
    facts : dict
        Label and covariates, as text or None.
    """

    name: str
    facts: dict[Any, str | None]


@dataclass(frozen=True, eq=False)
class Person:
    """One person and what is known about each visit.

    Parameters
    ----------
    participant : str
        As the table writes it.
    key : str
        In the spelling that names are compared by.
    facts : dict
        Label and covariates that hold for every visit, as text or None.
    visits : dict of str to Visit
        From the key of a visit; empty where no table tells visits apart.
    """

    participant: str
    key: str
    facts: dict[Any, str | None] = field(default_factory=dict)
    visits: dict[str, Visit] = field(default_factory=dict)

    def facts_at(self, session: str) -> dict[Any, str | None]:
        """Return what is known at one visit; the visit's own facts come first.

        What the person's other visits say one by one is not taken from the person for
        a visit that is not listed: it may be listed under another name.

        Parameters
        ----------
        session : str
            Name of the visit.

        Returns
        -------
        dict
        """
        visit = self.visits.get(visit_key(session))
        if visit is not None:
            return {**self.facts, **visit.facts}
        by_visit = {head for other in self.visits.values() for head in other.facts}
        return {h: fact for h, fact in self.facts.items() if h not in by_visit}


def read_participants(folder: Path) -> list[Person]:
    """Read `participants.tsv` and the sessions file of every person.

    Parameters
    ----------
    folder : Path
        Of the cohort.

    Returns
    -------
    list of Person
        In the order of the table.

    Raises
    ------
    CohortError
        With every row that cannot be used: no name, a name that is no name of a
        folder, one person twice, a sessions file that cannot be read.
    """
    path = folder / PARTICIPANTS_FILE
    table = read_table(path)
    heads = list(table.columns)
    id_column, visit = find_id(path, heads), find_session(heads)
    people, faults = _collect(path, table, id_column, visit, safe=True)
    for person in people:
        try:
            for key, own in _read_sessions(folder, person).items():
                known = person.visits.get(key)
                facts = {**(known.facts if known else {}), **own.facts}
                person.visits[key] = Visit(own.name, facts)
        except FileFormatError as error:
            faults.append(str(error))
    if faults:
        raise CohortError(f"{path} cannot be used", faults)
    return people


def people_of_table(scans: ScanTable) -> list[Person]:
    """Return the people of a table that holds labels and regions in one.

    Parameters
    ----------
    scans : ScanTable
        The table.

    Returns
    -------
    list of Person

    Raises
    ------
    CohortError
        As :func:`read_participants`.
    """
    # a head such as left_handed only looks like a region's
    table = scans.table[[*scans.others, *scans.strangers]].copy()
    names = scans.scan_names()
    table["participant"] = [name.participant for name in names]
    table["session"] = [name.session or None for name in names]
    people, faults = _collect(scans.path, table, "participant", "session", safe=False)
    if faults:
        raise CohortError(f"{scans.path} cannot be used", faults)
    return people


def _collect(
    path: Path, table: pd.DataFrame, id_column: str, visit: str | None, *, safe: bool
) -> tuple[list[Person], list[str]]:
    """Gather the rows of every person; list the rows that cannot be used."""
    people: dict[str, Person] = {}
    faults = []
    for number, row in enumerate(table.to_dict("records"), start=1):
        name = row.pop(id_column)
        session = row.pop(visit) if visit else None
        if name is None or (safe and not is_folder_name(name)):
            faults.append(
                f"{path}: row {number} below the header: {id_column} must be the name "
                f"of a subject, of letters, digits, '_', '-' and '.', got {name!r}"
            )
            continue
        key = person_key(name)
        is_new = key not in people
        person = people.setdefault(key, Person(name, key))
        clash = _clash(person, is_new, session)
        if clash:
            faults.append(f"{path}: {name} {clash}")
        elif session is None:
            person.facts.update(row)
        else:
            person.visits[visit_key(session)] = Visit(session, row)
    return list(people.values()), faults


def _clash(person: Person, is_new: bool, session: str | None) -> str | None:
    """Say why a further row of a person cannot be, None where it can."""
    if is_new:
        return None
    if session is None and not person.visits:
        return (
            "stands more than once; expected one row for a person, or a column "
            "session_id that tells the rows apart"
        )
    if session is None or not person.visits:
        return "has rows with and without a session_id; expected it in all or none"
    if visit_key(session) in person.visits:
        return f"stands more than once at visit {session}"
    return None


def _read_sessions(folder: Path, person: Person) -> dict[str, Visit]:
    for name in (person.participant, f"sub-{person.participant}"):
        path = folder / name / f"{name}_sessions.tsv"
        if path.is_file() and not leaves(path.parent, [folder]):
            break
    else:
        return {}
    table = read_table(path)
    if "session_id" not in table.columns:
        raise FileFormatError(
            f"{path}: no column 'session_id'; found {', '.join(table.columns)}."
        )
    visits: dict[str, Visit] = {}
    for row in table.to_dict("records"):
        session = row.pop("session_id")
        if session is None or visit_key(session) in visits:
            raise FileFormatError(
                f"{path}: session_id must name every visit once, got {session!r}"
                f"{' again' if session else ''}."
            )
        visits[visit_key(session)] = Visit(session, row)
    return visits
