"""The flow of participants: one fate for every person and scan of a study's tables.

A scan is analysed, or left out for the first reason that it meets. A person's fate is
that of the scan of theirs that came furthest; visits other than the baseline count only
if all scans of the person are such visits. So both counts add up to those listed.
"""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from brainlsap.exceptions import ParameterError, convert_reading_errors
from brainlsap.findings import EXCLUDED, FAULT, FAULTY, LEFT_OUT, NO_LABEL, Finding
from brainlsap.text import count_text, join_with_commas, option_text

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


def read_excluded_ids(exclude: str | Path | Sequence[str] | None) -> list[str]:
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
    with convert_reading_errors(exclude, "a list of ids, one on each line"):
        text_lines = Path(exclude).read_text(encoding="utf-8-sig").splitlines()
    first_cells = [
        text_line.replace(",", "\t").split("\t")[0].strip(" \"'")
        for text_line in text_lines
    ]
    id_header_names = ("participant_id", "participant", "subject", "scan", "id")
    return [
        first_cell
        for first_cell in first_cells
        if first_cell and first_cell.lower() not in id_header_names
    ]


def _remove_name_prefixes(scan_or_person_name: str) -> str:
    """Return the name of a person or scan without `sub-` and `ses-`."""
    return scan_or_person_name.strip().removeprefix("sub-").replace("_ses-", "_")


def match_excluded_scan_names(
    scan_or_person_ids: Sequence[str],
    left_out_scans: Collection[LeftOutScan],
    *,
    option_name: str = "exclude",
) -> set[str]:
    """Return the scans that are meant by ids of people or scans.

    Parameters
    ----------
    scan_or_person_ids : sequence of str
        Ids; `sub-` and `ses-` may be left out.
    left_out_scans : collection of LeftOutScan
        Every scan that is listed; fates do not matter.

    Raises
    ------
    ParameterError
        With all ids that nobody has.
    """
    scan_names_by_id: dict[str, set[str]] = {}
    for left_out_scan in left_out_scans:
        for scan_or_person_id in (left_out_scan.scan, left_out_scan.participant):
            scan_names_by_id.setdefault(
                _remove_name_prefixes(scan_or_person_id), set()
            ).add(left_out_scan.scan)
    unknown_ids = [
        scan_or_person_id
        for scan_or_person_id in scan_or_person_ids
        if _remove_name_prefixes(scan_or_person_id) not in scan_names_by_id
    ]
    if unknown_ids:
        participant_ids = [
            left_out_scan.participant for left_out_scan in left_out_scans
        ]
        raise ParameterError(
            f"{option_text(option_name)} must name people or scans of the study, or a "
            f"file with such names; got {join_with_commas(unknown_ids, 20)}. Examples "
            f"of IDs in the study are {join_with_commas(participant_ids, 3)}."
        )
    scan_name_sets = [
        scan_names_by_id[_remove_name_prefixes(scan_or_person_id)]
        for scan_or_person_id in scan_or_person_ids
    ]
    return set[str]().union(*scan_name_sets)


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


def find_fault_by_name(findings: Iterable[Finding]) -> dict[str, Finding]:
    """Return the first fault of every scan or person that has one, by name."""
    fault_by_name: dict[str, Finding] = {}
    for finding in findings:
        faulty_name = finding.scan or finding.participant
        if finding.severity == FAULT and faulty_name:
            fault_by_name.setdefault(faulty_name, finding)
    return fault_by_name
