"""The flow of participants: one fate for every person and scan of a study's tables.

A scan is analysed, or left out for the first reason that it meets. A person's fate is
that of the scan of theirs that came furthest; visits other than the baseline count only
if all scans of the person are such visits. So both counts add up to those listed. The
ids of people and scans that the user excludes are read and matched here, too.
"""

import re
import string
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from brainlsap.data.id_columns import find_person_column_names
from brainlsap.data.tables import (
    MISSING_CELLS,
    QUOTES,
    SESSION_COLUMNS,
    find_column_name,
    read_numbered_lines,
)
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


# Kind of the error of ids that nobody has.
UNKNOWN_IDS = "unknown ids"
# Columns whose cells name a scan.
_SCAN_COLUMNS = ("scan", "scan_id")


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


def read_place_by_excluded_id(
    exclude: str | Path | Sequence[str] | None,
) -> dict[str, str]:
    """Return the ids of a file, of text with commas, or of a list, with their places.

    The place of an id is the file and the line, empty without a file. In a table with a
    header, the ids are in the columns of scans, or of people and visits. In a file
    without a header, every cell is an id; words without digits behind an id with digits
    are remarks.
    """
    if exclude is None:
        return {}
    if not isinstance(exclude, str | Path):
        return {str(excluded_id).strip(): "" for excluded_id in exclude}
    if not Path(exclude).is_file():
        return dict.fromkeys(_split_cells(str(exclude), ",;\t\n"), "")
    with convert_reading_errors(exclude, "a list of ids"):
        numbered_lines = [
            (line_number, text_line)
            for line_number, text_line in read_numbered_lines(exclude)
            if not text_line.startswith("#")
        ]
    if not numbered_lines:
        return {}
    header_line = numbered_lines[0][1]
    separator = max("\t;,", key=header_line.count)
    header_cells = _split_cells(header_line, separator, keeps_empty=True)
    key_column_indices = _find_key_column_indices(header_cells)
    place_by_id: dict[str, str] = {}
    for line_number, text_line in numbered_lines[bool(key_column_indices) :]:
        line_ids: list[str] = []
        if key_column_indices:
            line_ids = _list_ids_of_row(
                _split_cells(text_line, separator, keeps_empty=True),
                header_cells,
                key_column_indices,
            )
        if not line_ids:
            first_id, *other_cells = _split_cells(text_line, ",;\t") or [""]
            line_ids = [first_id]
            line_ids += [
                cell_text
                for cell_text in other_cells
                if _has_digit(cell_text) or not _has_digit(first_id)
            ]
        for line_id in filter(None, line_ids):
            place_by_id.setdefault(line_id, f"{Path(exclude).name}, line {line_number}")
    return place_by_id


def _split_cells(
    text_line: str, separators: str, *, keeps_empty: bool = False
) -> list[str]:
    """Return the cells of a line without quotation marks and blanks around them."""
    # Separators within quotation marks belong to the cell.
    cell_texts = [
        cell_text.strip(QUOTES + string.whitespace)
        for cell_text in re.split(
            rf'[{separators}](?=(?:[^"]*"[^"]*")*[^"]*$)', text_line
        )
    ]
    return cell_texts if keeps_empty else [*filter(None, cell_texts)]


def _has_digit(cell_text: str) -> bool:
    """Return whether a text contains a digit, as most ids do and most words do not."""
    return any(map(str.isdigit, cell_text))


def _find_key_column_indices(header_cells: Sequence[str]) -> list[int]:
    """Return the columns of scans, or of people and visits; none without a header."""
    if any(map(_has_digit, header_cells)):
        return []
    singular_names = [header_cell.removesuffix("s") for header_cell in header_cells]
    for column_names in (header_cells, singular_names):
        scan_column_name = find_column_name(column_names, _SCAN_COLUMNS)
        if scan_column_name is not None:
            return [column_names.index(scan_column_name)]
        person_column_names = find_person_column_names(column_names)
        person_column_name = next(
            iter(person_column_names), find_column_name(column_names, ["id"])
        )
        if person_column_name is not None:
            session_column_name = find_column_name(column_names, SESSION_COLUMNS)
            return [
                column_names.index(column_name)
                for column_name in (person_column_name, session_column_name)
                if column_name is not None
            ]
    return []


def _list_ids_of_row(
    row_cells: Sequence[str],
    header_cells: Sequence[str],
    key_column_indices: Sequence[int],
) -> list[str]:
    """Return the ids of a table's row; none if the row does not fit the header."""
    is_last_column = max(key_column_indices) == len(header_cells) - 1
    if is_last_column and len(row_cells) > len(header_cells):
        return []
    key_cells = [
        row_cells[column_index]
        for column_index in key_column_indices
        if column_index < len(row_cells)
        and row_cells[column_index].lower() not in MISSING_CELLS
    ]
    if len(key_column_indices) == 1:
        return [
            cell_id
            for key_cell in key_cells
            for cell_id in _split_cells(key_cell, ",;")
        ]
    return ["_".join(key_cells)] if key_cells else []


def _remove_name_prefixes(scan_or_person_name: str) -> str:
    """Return the name of a person or scan without `sub-` and `ses-`."""
    return scan_or_person_name.strip().removeprefix("sub-").replace("_ses-", "_")


def match_excluded_scan_names(
    place_by_excluded_id: Mapping[str, str],
    left_out_scans: Collection[LeftOutScan],
) -> set[str]:
    """Return the scans that are meant by ids of people or scans.

    Parameters
    ----------
    place_by_excluded_id : mapping of str to str
        Ids, and their places in a file; `sub-` and `ses-` may be left out. Ids with
        blanks between them may be one entry.
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
    unknown_id_texts: list[str] = []
    matching_scan_names = set[str]()
    for scan_or_person_id, place_text in place_by_excluded_id.items():
        bare_names = [_remove_name_prefixes(scan_or_person_id)]
        if bare_names[0] not in scan_names_by_id:
            bare_names = [*map(_remove_name_prefixes, scan_or_person_id.split())]
        if bare_names and scan_names_by_id.keys() >= {*bare_names}:
            for bare_name in bare_names:
                matching_scan_names |= scan_names_by_id[bare_name]
        else:
            place_suffix = f" ({place_text})" if place_text else ""
            unknown_id_texts.append(f"{scan_or_person_id}{place_suffix}")
    if unknown_id_texts:
        participant_ids = [
            left_out_scan.participant for left_out_scan in left_out_scans
        ]
        advice_text = ""
        if any(place_by_excluded_id.values()):
            advice_text = (
                " If the file has a header or remarks, name the column of the IDs "
                "participant_id in its first line."
            )
        raise ParameterError(
            f"{option_text('exclude')} must name people or scans of the study, or a "
            f"file with such names; got {join_with_commas(unknown_id_texts, 20)}. "
            "Examples of IDs in the study are "
            f"{join_with_commas(participant_ids, 3)}.{advice_text}",
            kind=UNKNOWN_IDS,
            values={"ids": unknown_id_texts},
        )
    return matching_scan_names
