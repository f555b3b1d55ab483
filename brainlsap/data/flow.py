"""The flow of participants: one fate for every person and scan of a study's tables.

A scan is analysed, or left out for the first reason that it meets. A person's fate is
that of the scan of theirs that came furthest. So both counts add up to those listed.
"""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from brainlsap.exceptions import ParameterError, reading
from brainlsap.findings import EXCLUDED, FAULT, FAULTY, LEFT_OUT, NO_LABEL, Finding
from brainlsap.text import count, listed, option_text

NO_IMAGE = "no image"
LATER_VISIT = "later visit"
OTHER_CLASS = "other class"
NOT_SELECTED = "not selected"
ANALYSED = "analysed"
LISTED = "listed"

FATE_TITLES = {
    EXCLUDED: "excluded by the authors",
    NO_IMAGE: "no image or table of regions",
    LATER_VISIT: "not the baseline visit",
    NO_LABEL: "no label",
    OTHER_CLASS: "of another class",
    FAULTY: "data with a fault",
    NOT_SELECTED: "not selected",
}
"""Fates of scans that are not analysed, in the order of the steps of reading."""


# Most ids that a message writes behind `--exclude`.
_MAX_IDS_OF_OPTION = 10


class LeftOut(NamedTuple):
    """One scan that is not analysed."""

    scan: str
    participant: str
    session: str
    fate: str
    reason: str = ""
    """Fault that led to this fate; it may name people and files."""


LEFT_OUT_COLUMNS = list(LeftOut._fields)


def left_out_table(left_out_rows: Iterable[LeftOut] = ()) -> pd.DataFrame:
    """Return scans that are not analysed as a table of text."""
    return pd.DataFrame([*left_out_rows], columns=LEFT_OUT_COLUMNS, dtype=object)


def flow_table(table: pd.DataFrame, left_out: pd.DataFrame) -> pd.DataFrame:
    """Count people and scans by what became of them.

    Parameters
    ----------
    table : DataFrame
        One row per scan that is analysed: scan and participant.
    left_out : DataFrame
        One row per scan that is not: scan, participant and fate, a key of
        `FATE_TITLES`.

    Returns
    -------
    DataFrame
        fate, title, participants and scans: "listed" first, then every fate that
        somebody met, in the order of `FATE_TITLES`, and "analysed". The counts after
        the first row sum to it.
    """
    fate_order = [*FATE_TITLES, ANALYSED]
    fate_table = pd.concat(
        [
            left_out[["participant", "fate"]],
            table[["participant"]].assign(fate=ANALYSED),
        ],
        ignore_index=True,
    )
    fate_ranks = fate_table["fate"].map(fate_order.index)
    furthest_ranks = fate_ranks.groupby(fate_table["participant"]).max()
    n_people_by_fate = furthest_ranks.value_counts()
    n_scans_by_fate = fate_ranks.value_counts()
    title_of_fate = FATE_TITLES | {ANALYSED: "analysed"}
    fate_entries = [
        (
            fate,
            title_of_fate[fate],
            int(n_people_by_fate.get(rank, 0)),
            int(n_scans_by_fate.get(rank, 0)),
        )
        for rank, fate in enumerate(fate_order)
        if rank in n_scans_by_fate.index or fate == ANALYSED
    ]
    first_entry = (LISTED, "listed", len(furthest_ranks), len(fate_ranks))
    column_names = ["fate", "title", "participants", "scans"]
    return pd.DataFrame([first_entry, *fate_entries], columns=column_names)


def read_exclusions(exclude: str | Path | Sequence[str] | None) -> list[str]:
    """Return the ids of a file (the first cell of each line), or those given.

    A head such as `participant_id` is no id. Text that names no file is ids with
    commas between them.
    """
    if exclude is None:
        return []
    if not isinstance(exclude, str | Path):
        return [str(excluded_id).strip() for excluded_id in exclude]
    if not Path(exclude).is_file():
        return [
            excluded_id.strip()
            for excluded_id in str(exclude).split(",")
            if excluded_id.strip()
        ]
    with reading(exclude, "a list of ids, one on each line"):
        text_lines = Path(exclude).read_text(encoding="utf-8-sig").splitlines()
    first_cells = [
        text_line.replace(",", "\t").split("\t")[0].strip(" \"'")
        for text_line in text_lines
    ]
    header_names = ("participant_id", "participant", "subject", "scan", "id")
    return [
        first_cell
        for first_cell in first_cells
        if first_cell and first_cell.lower() not in header_names
    ]


def _unprefixed_name(scan_or_person: str) -> str:
    """Return the name of a person or scan without `sub-` and `ses-`."""
    return scan_or_person.strip().removeprefix("sub-").replace("_ses-", "_")


def match_exclusions(
    names: Sequence[str],
    left_out_rows: Collection[LeftOut],
    *,
    option_name: str = "exclude",
) -> set[str]:
    """Return the scans that are meant by ids of people or scans.

    Parameters
    ----------
    names : sequence of str
        Ids; `sub-` and `ses-` may be left out.
    left_out_rows : collection of LeftOut
        Every scan that is listed; fates do not matter.

    Raises
    ------
    ParameterError
        With all ids that nobody has.
    """
    scans_of_name: dict[str, set[str]] = {}
    for left_out_row in left_out_rows:
        for name in (left_out_row.scan, left_out_row.participant):
            scans_of_name.setdefault(_unprefixed_name(name), set()).add(
                left_out_row.scan
            )
    unknown_names = [
        name for name in names if _unprefixed_name(name) not in scans_of_name
    ]
    if unknown_names:
        participant_ids = [left_out_row.participant for left_out_row in left_out_rows]
        raise ParameterError(
            f"{option_text(option_name)} contains "
            f"{listed(unknown_names, 20)}, but the study has no person or "
            "scan of this name, and there is no such file. Examples of IDs in the "
            f"study are {listed(participant_ids, 3)}."
        )
    scan_sets = [scans_of_name[_unprefixed_name(name)] for name in names]
    return set[str]().union(*scan_sets)


def leave_out_text() -> str:
    """Return the advice to leave out the scan that a message is about."""
    return (
        f"leave the scan out with {option_text('exclude')} or "
        f"{option_text('skip_faulty', True)}"
    )


def exclude_text(names: Sequence[str]) -> str:
    """Return the option that leaves out people or scans; many need a file."""
    if len(names) > _MAX_IDS_OF_OPTION:
        return f"{option_text('exclude')} (a file with one ID in each line)"
    return option_text("exclude", ",".join(names))


def fate_of_fault(finding: Finding) -> str:
    """Return the fate of a scan that has this fault."""
    return finding.kind if finding.kind in (NO_IMAGE, NO_LABEL) else FAULTY


def describe_left_out(left_out_rows: Iterable[LeftOut]) -> list[Finding]:
    """Return notes on who was excluded, and who was left out for faults."""
    left_out_rows = [*left_out_rows]
    findings = list[Finding]()
    excluded_scan_names = tuple(
        left_out_row.scan
        for left_out_row in left_out_rows
        if left_out_row.fate == EXCLUDED
    )
    if excluded_scan_names:
        message = (
            f"{count(len(excluded_scan_names), 'scan', 'were')} left out by "
            f"{option_text('exclude')}:"
        )
        findings.append(
            Finding(message, LEFT_OUT, kind=EXCLUDED, people=excluded_scan_names)
        )
    faulty_scan_names = tuple(
        left_out_row.scan for left_out_row in left_out_rows if left_out_row.reason
    )
    if faulty_scan_names:
        message = (
            f"{count(len(faulty_scan_names), 'scan', 'were')} left out for faults:"
        )
        findings.append(
            Finding(message, LEFT_OUT, kind=FAULTY, people=faulty_scan_names)
        )
    return findings


def find_faults_by_name(findings: Iterable[Finding]) -> dict[str, Finding]:
    """Return the first fault of every scan or person that has one, by name."""
    fault_of_name: dict[str, Finding] = {}
    for finding in findings:
        faulty_name = finding.scan or finding.participant
        if finding.severity == FAULT and faulty_name:
            fault_of_name.setdefault(faulty_name, finding)
    return fault_of_name
