"""The flow of participants: one fate for every person and scan of a study's tables.

A scan is analysed, or left out for the first reason that it meets. A person's fate is
that of the scan of theirs that came furthest; visits other than the baseline count only
if all scans of the person are such visits. So both counts add up to those listed.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pandas as pd

from brainlsap.findings import EXCLUDED, FAULT, FAULTY, LEFT_OUT, NO_LABEL, Finding
from brainlsap.text import count_text, option_text

USED_FOR_TRAINING = "used for training"
NO_IMAGE = "no image"
LATER_VISIT = "later visit"
OTHER_CLASS = "other class"
NOT_SELECTED = "not selected"
ANALYSED = "analysed"
LISTED = "listed"

FATE_TITLES = {
    USED_FOR_TRAINING: USED_FOR_TRAINING,  # only in tests of a stored model
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


class LeftOutScan(NamedTuple):
    """One scan that is not analysed."""

    scan: str
    participant: str
    session: str
    fate: str
    reason: str = ""
    """Fault that led to this fate; it may name people and files."""


LEFT_OUT_COLUMNS = list(LeftOutScan._fields)


def left_out_table(left_out_scans: Iterable[LeftOutScan] = ()) -> pd.DataFrame:
    """Return scans that are not analysed as a table of text."""
    return pd.DataFrame([*left_out_scans], columns=LEFT_OUT_COLUMNS, dtype=object)


def flow_table(
    analysed_scan_table: pd.DataFrame, left_out_scan_table: pd.DataFrame
) -> pd.DataFrame:
    """Count people and scans by what became of them.

    Parameters
    ----------
    analysed_scan_table : DataFrame
        One row per scan that is analysed: scan and participant.
    left_out_scan_table : DataFrame
        One row per scan that is not: scan, participant and fate, a key of
        `FATE_TITLES`.

    Returns
    -------
    DataFrame
        fate, title, participants and scans: "listed" first, then every fate that
        somebody met, in the order of `FATE_TITLES`, and "analysed". The counts after
        the first row sum to it.
    """
    ordered_fates = [*FATE_TITLES, ANALYSED]
    fate_table = pd.concat(
        [
            left_out_scan_table[["participant", "fate"]],
            analysed_scan_table[["participant"]].assign(fate=ANALYSED),
        ],
        ignore_index=True,
    )
    fate_rank_series = fate_table["fate"].map(ordered_fates.index)
    # A person without the baseline scan is not left out because of later visits.
    person_rank_series = fate_rank_series.mask(fate_table["fate"] == LATER_VISIT, -1)
    furthest_rank_by_person = (
        person_rank_series.groupby(fate_table["participant"])
        .max()
        .replace(-1, ordered_fates.index(LATER_VISIT))
    )
    n_people_by_rank = furthest_rank_by_person.value_counts()
    n_scans_by_rank = fate_rank_series.value_counts()
    title_by_fate = FATE_TITLES | {ANALYSED: "analysed"}
    fate_rows = [
        (
            fate,
            title_by_fate[fate],
            int(n_people_by_rank.get(fate_rank, 0)),
            int(n_scans_by_rank.get(fate_rank, 0)),
        )
        for fate_rank, fate in enumerate(ordered_fates)
        if fate_rank in n_scans_by_rank.index or fate == ANALYSED
    ]
    total_row = (LISTED, "listed", len(furthest_rank_by_person), len(fate_rank_series))
    column_names = ["fate", "title", "participants", "scans"]
    return pd.DataFrame([total_row, *fate_rows], columns=column_names)


def format_leave_out_advice() -> str:
    """Return the advice to leave out the scan that a message is about."""
    return (
        f"leave the scan out with {option_text('exclude')} or "
        f"{option_text('skip_faulty', True)}"
    )


def exclusion_option_text(scan_or_person_names: Sequence[str]) -> str:
    """Return the option that leaves out people or scans; many need a file."""
    if len(scan_or_person_names) > _MAX_IDS_OF_OPTION:
        return f"{option_text('exclude')} (a file with one ID in each line)"
    return option_text("exclude", ",".join(scan_or_person_names))


def find_fate_of_fault(finding: Finding) -> str:
    """Return the fate of a scan that has this fault."""
    return finding.kind if finding.kind in (NO_IMAGE, NO_LABEL) else FAULTY


def make_left_out_notes(left_out_scans: Iterable[LeftOutScan]) -> list[Finding]:
    """Return notes on who was excluded, and who was left out for faults."""
    left_out_scans = [*left_out_scans]
    findings = list[Finding]()
    excluded_scan_names = tuple(
        left_out_scan.scan
        for left_out_scan in left_out_scans
        if left_out_scan.fate == EXCLUDED
    )
    if excluded_scan_names:
        message = (
            f"{count_text(len(excluded_scan_names), 'scan', 'were')} left out by "
            f"{option_text('exclude')}:"
        )
        findings.append(
            Finding(message, LEFT_OUT, kind=EXCLUDED, people=excluded_scan_names)
        )
    faulty_scan_names = tuple(
        left_out_scan.scan for left_out_scan in left_out_scans if left_out_scan.reason
    )
    if faulty_scan_names:
        message = (
            f"{count_text(len(faulty_scan_names), 'scan', 'were')} left out because of "
            "faults:"
        )
        findings.append(
            Finding(message, LEFT_OUT, kind=FAULTY, people=faulty_scan_names)
        )
    return findings


def find_fault_by_scan_or_person(findings: Iterable[Finding]) -> dict[str, Finding]:
    """Return the first fault of every scan or person that has one, by name."""
    fault_by_scan_or_person: dict[str, Finding] = {}
    for finding in findings:
        faulty_name = finding.scan or finding.participant
        if finding.severity == FAULT and faulty_name:
            fault_by_scan_or_person.setdefault(faulty_name, finding)
    return fault_by_scan_or_person
