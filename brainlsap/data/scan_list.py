"""Which scans a cohort has: people, their visits, labels and covariates."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from brainlsap.data.classes import order_classes
from brainlsap.data.cohort import KEY_COLUMNS
from brainlsap.data.feature_sources import Scan
from brainlsap.data.participants import (
    PARTICIPANTS_FILE,
    Person,
    people_of_table,
    read_participants,
)
from brainlsap.data.scan_files import CohortFiles
from brainlsap.data.scan_names import visit_key, visit_order
from brainlsap.data.source_choice import SourceChoice
from brainlsap.data.tables import as_covariate
from brainlsap.exceptions import CohortError

UNLABELLED = "unlabelled"
"""The class of every scan where no label is read: of people to be predicted."""


@dataclass(frozen=True, eq=False)
class ScanList:
    """The scans of a cohort, before any array is read.

    Parameters
    ----------
    scans : tuple of Scan
        Names, keys and files.
    table : DataFrame
        As :class:`~brainlsap.data.cohort.Cohort` has it.
    classes : tuple of str
        Labels in order of stage.
    notes, faults : tuple of str
        What was left out, and what keeps the cohort from being loaded.
    """

    scans: tuple[Scan, ...]
    table: pd.DataFrame
    classes: tuple[str, ...]
    notes: tuple[str, ...]
    faults: tuple[str, ...]


def list_scans(
    files: CohortFiles,
    choice: SourceChoice,
    features: Sequence[str],
    label: str | None,
    *,
    classes: Sequence[str] | None = None,
    which: str = "all",
) -> ScanList:
    """List the scans of a cohort with their labels, covariates and files.

    Parameters
    ----------
    files : CohortFiles
        Of the cohort.
    choice : SourceChoice
        Knows the visits of people without `ses-` folders, and the table that stands
        in the place of `participants.tsv`.
    features : sequence of str
        That need files.
    label : str or None
        Column that is to be predicted; with None none is read, and every scan is
        :data:`UNLABELLED`.
    classes : sequence of str, optional
        Labels in order of stage.
    which : {"all", "baseline"}
        All visits, or the first of every person.

    Returns
    -------
    ScanList

    Raises
    ------
    CohortError
        Where there is no list of people, no such label, or no scan is left.
    """
    if (files.folder / PARTICIPANTS_FILE).is_file():
        people, source = read_participants(files.folder), PARTICIPANTS_FILE
    else:
        chosen = choice.people_table(features, label)
        people, source = people_of_table(chosen), chosen.path.name
    rows, notes = _visits(people, files, choice, which)
    order: tuple[str, ...] = (UNLABELLED,)
    kept, left, faults = rows, Counter[str](), list[str]()
    if label is not None:
        _check_label(people, label, files, source)
        labels = [person.facts_at(session).get(label) for person, session, _ in rows]
        order = order_classes([name for name in labels if name is not None], classes)
        kept, left, faults = _sort_by_label(
            rows, labels, order, label, classes is not None
        )
    if left:
        counted = ", ".join(f"{name} ({n})" for name, n in sorted(left.items()))
        notes.append(f"left out, {label} is not among the classes: {counted}")
    if not kept and not faults:
        raise CohortError(f"{files.folder}: no scan is left; {source} lists none")
    if source == PARTICIPANTS_FILE:
        notes += _unlisted(people, files)
    scans = tuple(_make_scan(person, s, n, files) for person, s, n in kept)
    table = _make_table(kept, scans, label)
    return ScanList(scans, table, order, tuple(notes), tuple(faults))


_Row = tuple[Person, str, int]


def _check_label(
    people: Sequence[Person], label: str, files: CohortFiles, source: str
) -> None:
    heads: dict[object, None] = {}
    for person in people:
        heads.update(dict.fromkeys(person.facts))
        for visit in person.visits.values():
            heads.update(dict.fromkeys(visit.facts))
    if people and label not in heads:
        found = ", ".join(str(head) for head in heads) or "none besides the id"
        raise CohortError(
            f"{files.folder}: the label {label!r} is no column of {source}; "
            f"found {found}. Name the column by label="
        )


def _visits(
    people: Sequence[Person], files: CohortFiles, choice: SourceChoice, which: str
) -> tuple[list[_Row], list[str]]:
    """Return person, session and number of scans of the person, for every scan."""
    rows: list[_Row] = []
    without = 0
    for person in people:
        sessions = files.sessions(person.participant)
        if not sessions and not files.person_folders(person.participant):
            sessions = choice.sessions(person.key)
        if sessions:
            known = {visit_key(session) for session in sessions}
            without += len(set(person.visits) - known)
        elif person.visits:
            names = [visit.name for visit in person.visits.values()]
            sessions = sorted(names, key=visit_order)
        else:
            sessions = [""]
        first = sessions[:1] if which == "baseline" else sessions
        rows += [(person, session, len(sessions)) for session in first]
    if not without:
        return rows, []
    have = "visits are listed but have" if without > 1 else "visit is listed but has"
    return rows, [f"{without} {have} no folder ses-...: left out"]


def _sort_by_label(
    rows: Sequence[_Row],
    labels: Sequence[str | None],
    order: tuple[str, ...],
    label: str,
    chosen: bool,
) -> tuple[list[_Row], Counter[str], list[str]]:
    """Return the rows of the classes, how many are left out, and the faults."""
    kept: list[_Row] = []
    left: Counter[str] = Counter()
    faults = []
    for row, name in zip(rows, labels, strict=True):
        if name in order:
            kept.append(row)
        elif chosen:
            left[name or "n/a"] += 1
        else:
            faults.append(
                f"{_scan_name(row)}: no {label} (n/a{_other_visits(row)}); give one, "
                "leave the scan out, or keep those with a label by classes="
            )
    counts = Counter(name for name in labels if name is not None)
    found = ", ".join(f"{name} ({n})" for name, n in sorted(counts.items())) or "none"
    faults += [
        f"no scan has the {label} {name!r} of classes; found {found}"
        + _other_case(name, counts)
        for name in order
        if name not in counts
    ]
    return kept, left, faults


def _other_case(name: str, counts: Counter[str]) -> str:
    meant = [known for known in counts if known.lower() == name.lower()]
    return f". Did you mean {meant[0]!r}?" if meant else ""


def _other_visits(row: _Row) -> str:
    """Return the visits of a person that are listed, where this one is not."""
    person, session, _ = row
    if not person.visits or visit_key(session) in person.visits:
        return ""
    names = ", ".join(visit.name for visit in person.visits.values())
    return f"; its visits are listed as {names}"


def _scan_name(row: _Row) -> str:
    person, session, _ = row
    return f"{person.participant}_{session}" if session else person.participant


def _make_scan(person: Person, session: str, n: int, files: CohortFiles) -> Scan:
    return Scan(
        name=_scan_name((person, session, n)),
        participant=person.participant,
        session=session,
        key=(person.key, visit_key(session)),
        is_only=n == 1,
        files=tuple(files.files(person.participant, session, is_only=n == 1)),
    )


def _make_table(
    rows: Sequence[_Row], scans: Sequence[Scan], label: str | None
) -> pd.DataFrame:
    facts = [person.facts_at(session) for person, session, _ in rows]
    table = pd.DataFrame(
        {
            "scan": [scan.name for scan in scans],
            "participant": [scan.participant for scan in scans],
            "session": [scan.session for scan in scans],
            "label": [UNLABELLED if label is None else fact[label] for fact in facts],
        }
    )
    for head in dict.fromkeys(head for fact in facts for head in fact):
        if head != label:
            name = f"{head}_given" if head in KEY_COLUMNS else head
            column = pd.Series([fact.get(head) for fact in facts], dtype=object)
            _check_decimals(head, column)
            table[name] = as_covariate(column)
    return table


def _check_decimals(head: str, column: pd.Series) -> None:
    """Refuse decimal commas: every such number would count as a word of its own."""
    text = column.dropna().astype(str)
    comma = text[text.str.fullmatch(r"-?\d+,\d+")]
    if len(comma) and text.str.fullmatch(r"-?\d+([.,]\d+)?").all():
        raise CohortError(
            f"{head} is written with decimal commas, such as {comma.iloc[0]!r}; "
            "expected points. Replace them"
        )


def _unlisted(people: Sequence[Person], files: CohortFiles) -> list[str]:
    listed = {name for p in people for name in (p.participant, f"sub-{p.participant}")}
    spare = [
        path
        for path in files.folder.glob("sub-*")
        if path.is_dir() and path.name not in listed
    ]
    if not spare:
        return []
    return [f"{len(spare)} subject folders are not in {PARTICIPANTS_FILE}: left out"]
