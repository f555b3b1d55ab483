"""Read one file with the connectomes of many scans, found by participant and visit."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas
from brainlsap.atlas.region_names import are_counts, is_outside
from brainlsap.data.connectomes import FORMATS, NameList
from brainlsap.data.find_files import Scan, parse_scan_name
from brainlsap.data.order_check import OrderCheck
from brainlsap.data.region_lists import are_numbers
from brainlsap.data.row_order import UNCHECKED_NAMES, name_rows, regions_of_rows
from brainlsap.data.tables import ID_COLUMNS, find_head, read_lines
from brainlsap.exceptions import CohortError, FileFormatError, reading

# Names of lists of ids, one a line. A table of participants may have such a name, too.
_ID_LISTS = ("ids.txt", "subjects.txt", "subject_ids.txt", "subject_list.txt")
# Keys by which a list holds ids even if its numbers only count.
_ID_KEY = re.compile(
    r"(^|[-_. ])(ids?|subj(ects?)?|participants?|subjects?_?ids?|pat(ients?)?|eids?)"
    r"($|[-_. ])",
    re.IGNORECASE,
)
# Minimum share of the ids that are of the study, or of its participants with an id.
_MIN_ID_SHARE = 0.5
# Minimum share of the names in a list that are regions.
_MIN_NAMED_SHARE = 0.5

MatrixIndex = dict[str, dict[str, list[np.ndarray]]]
"""Matrices by participant and visit."""


class ConnectomeStack(NamedTuple):
    """Matrices of many scans by participant and visit, and the names of their rows."""

    path: Path
    matrices: MatrixIndex
    names: tuple[str, ...]
    notes: tuple[str, ...]

    def connectome(self, scan: Scan, _: Atlas) -> pd.DataFrame | None:
        """Return the matrix of a scan with its names, None where there is none."""
        matrices = scan.entries(self.matrices)
        if not matrices:
            return None
        if len(matrices) > 1:
            raise CohortError(
                f"{self.path.name} has {len(matrices)} connectomes of it; expected "
                "one, under an id with its visit, for example sub-01_ses-M00"
            )
        return pd.DataFrame(matrices[0], self.names, self.names)


def read_stack(
    path: Path,
    atlas: Atlas,
    scans: Sequence[tuple[str, str]],
    labels: str | Path | Sequence[str] | None = None,
    row_order: str | None = None,
) -> ConnectomeStack | None:
    """Read the array of all connectomes; None where the file holds no such array.

    Parameters
    ----------
    path : Path
        The file. Its ids are a list in it with an entry for each matrix, or the lines
        of `<name>_ids.txt` or of another list of `_ID_LISTS` beside it.
    atlas : Atlas
        Names the regions.
    scans : sequence of (str, str)
        Participant and visit of the study's scans, by which the list of ids is
        recognised.
    labels, row_order
        As :func:`.read_connectome` takes them.

    Raises
    ------
    FileFormatError
        Where there are no ids, or not as many as matrices, or several lists that could
        be the ids; or where the rows cannot be named.
    """
    matrix_format = FORMATS.get(path.suffix.lower())
    if matrix_format is None or not matrix_format.may_hold_many_scans:
        return None
    with reading(path, f"a {path.suffix} file"):
        raw_matrices = matrix_format.read(path)
    lists = raw_matrices[0].lists
    if lists is None:
        return None
    origin, ids = _choose_ids(path, lists, len(raw_matrices), scans)
    other_lists = {key: entry for key, entry in lists.items() if entry.names != ids}
    n_rows = len(raw_matrices[0].values)
    file_names = _choose_row_names(path, other_lists, n_rows, atlas)
    values = np.array([raw.values for raw in raw_matrices])
    mean = values.mean(axis=0)
    rows = name_rows(path, mean, atlas, row_order, labels, file_names)
    check = OrderCheck(atlas)
    if row_order != UNCHECKED_NAMES or not rows.names:
        check.add(mean, rows, path)
    check.raise_refusal()
    if rows.adds_parts:
        raise FileFormatError(
            f"some regions have several rows ({rows.note}). Add these rows "
            "and columns first, and name the rows.",
            path=path,
        )
    matrices: MatrixIndex = {}
    for scan_id, matrix in zip(ids, values, strict=True):
        person, visit = parse_scan_name(scan_id).key
        matrices.setdefault(person, {}).setdefault(visit, []).append(matrix)
    notes = (f"taken from {path.name} by ids ({origin})", rows.note, *check.notes())
    return ConnectomeStack(path, matrices, rows.names, notes)


def _choose_ids(
    path: Path,
    lists: Mapping[str, NameList],
    n_scans: int,
    scans: Sequence[tuple[str, str]],
) -> tuple[str, tuple[str, ...]]:
    """Return the list of ids of the matrices, and where it is from.

    Texts that are the study's ids precede numbers. A list that only counts holds no
    ids, unless its key says so. Raises where two lists of the study's ids differ, or
    where there is none.
    """
    default_list = f"{path.stem}_ids.txt"
    lists_beside = _read_id_lists(path, [default_list, *_ID_LISTS])
    candidates = {
        key: entry
        for key, entry in {**lists, **lists_beside}.items()
        if len(entry.names) == n_scans and all(entry.names)
    }
    texts = {key: entry.names for key, entry in candidates.items() if entry.are_texts}
    numbers = {
        key: entry.names
        for key, entry in candidates.items()
        if not entry.are_texts and (_ID_KEY.search(key) or not are_counts(entry.names))
    }

    def origin_of(key: str) -> str:
        return key if key in lists_beside else "in the file"

    for id_lists in (texts, numbers):
        study_lists = {
            key: ids for key, ids in id_lists.items() if _are_ids(ids, scans)
        }
        if len({*study_lists.values()}) > 1:
            raise FileFormatError(
                f"the lists {' and '.join(map(repr, study_lists))} could both "
                "be the ids of its matrices, and they differ. Keep the one that is "
                "right.",
                path=path,
            )
        for key, ids in study_lists.items():
            return origin_of(key), ids
    other_lists = texts | numbers
    if len(other_lists) > 1:
        raise FileFormatError(
            f"none of its lists {', '.join(map(repr, other_lists))} holds the "
            "ids of this study. Write them as texts into the file, or as lines of "
            f"{default_list} beside it.",
            path=path,
        )
    # ids of others are refused later, with the scans that have no matrix
    for key, ids in other_lists.items():
        return origin_of(key), ids
    n_ids = 0
    origin = "in the file"
    if lists_beside:
        origin, entry = next(iter(lists_beside.items()))
        n_ids = len(entry.names)
    raise FileFormatError(
        f"{n_scans} connectomes, but {n_ids} ids ({origin}); expected one for "
        f"each, as texts in the file or as lines of {default_list} beside it.",
        path=path,
    )


def _read_id_lists(path: Path, file_names: Sequence[str]) -> dict[str, NameList]:
    """Return the lists of ids beside a file, by name."""
    lists = dict[str, NameList]()
    for file_name in file_names:
        list_path = path.with_name(file_name)
        ids = _read_ids(list_path) if list_path.is_file() else ()
        if ids:
            lists[file_name] = NameList(ids, are_texts=True)
    return lists


def _read_ids(path: Path) -> tuple[str, ...]:
    """Return the ids of a list, one a line; none of a table."""
    lines = [line.strip() for line in read_lines(path)]
    if not lines or re.search(r"[\t,;]", lines[0]):
        return ()
    has_header = find_head(lines[:1], ID_COLUMNS) is not None
    return tuple(lines[1:] if has_header else lines)


def _are_ids(ids: Sequence[str], scans: Sequence[tuple[str, str]]) -> bool:
    """Return whether most ids are of the study, or most participants have one."""
    participants = {participant for participant, _ in scans}
    id_participants = [parse_scan_name(scan_id).key[0] for scan_id in ids]
    n_study_ids = sum(name in participants for name in id_participants)
    n_with_id = len(participants.intersection(id_participants))
    return (
        n_study_ids >= _MIN_ID_SHARE * len(ids)
        or n_with_id >= _MIN_ID_SHARE * len(participants) > 0
    )


def _choose_row_names(
    path: Path, lists: Mapping[str, NameList], n_rows: int, atlas: Atlas
) -> tuple[str, ...]:
    """Return the list that names the rows, none where no list does.

    Names of regions precede other texts, and these precede label numbers. A list that
    only counts is none of them. Raises where two lists of regions name the rows
    differently.
    """
    names_by_key = {
        key: entry.names
        for key, entry in lists.items()
        if len(entry.names) == n_rows == len({*entry.names})
        if not are_counts(entry.names)
    }
    texts = [key for key, names in names_by_key.items() if not are_numbers(names)]
    region_lists = [key for key in texts if _are_regions(names_by_key[key], atlas)]
    rows_by_list = {regions_of_rows(atlas, names_by_key[key]) for key in region_lists}
    if len(rows_by_list) > 1:
        raise FileFormatError(
            f"the lists {' and '.join(map(repr, region_lists))} name the rows "
            "differently. Keep the one that is right.",
            path=path,
        )
    labels = {*atlas.regions["freesurfer_id"].astype(str)}
    label_lists = [
        key
        for key, names in names_by_key.items()
        if key not in texts and len(labels.intersection(names)) >= len(atlas) / 2
    ]
    # names that are no regions are refused later, with the nearest known names
    for key in (*region_lists, *texts, *label_lists):
        return names_by_key[key]
    return ()


def _are_regions(names: Sequence[str], atlas: Atlas) -> bool:
    """Return whether most names are regions, or are left out of atlases on purpose."""
    n_known = sum(atlas.find(name) is not None or is_outside(name) for name in names)
    return n_known >= _MIN_NAMED_SHARE * len(names)
