"""Read one file with the connectomes of many scans, found by participant and visit."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas
from brainlsap.atlas.region_names import are_default_row_names, is_non_region_name
from brainlsap.data.connectomes import (
    FORMATS,
    NameList,
    RawMatrix,
    have_few_repeats,
    read_raw_matrices,
)
from brainlsap.data.find_files import Scan, StudyFiles, parse_scan_identity
from brainlsap.data.order_check import OrderCheck
from brainlsap.data.region_lists import are_unsigned_integers
from brainlsap.data.row_order import (
    UNCHECKED_NAMES,
    choose_row_names,
    find_region_index_by_row,
)
from brainlsap.data.tables import ID_COLUMNS, find_column_name, read_lines
from brainlsap.exceptions import CohortError, FileFormatError, convert_reading_errors
from brainlsap.text import count_text, verb_form

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

MatricesByPersonAndVisit = dict[str, dict[str, list[np.ndarray]]]
"""Matrices by participant and visit."""


class ConnectomeStack(NamedTuple):
    """Matrices of many scans by participant and visit, and the names of their rows."""

    path: Path
    scan_ids: tuple[str, ...]
    """IDs of the matrices, as they are written in the list."""
    matrices_by_person_and_visit: MatricesByPersonAndVisit
    row_names: tuple[str, ...]
    notes: tuple[str, ...]

    def find_connectome_source(self, scan: Scan, _: Atlas) -> pd.DataFrame | None:
        """Return the matrix of a scan with its names, None where there is none."""
        scan_matrices = scan.find_entries(self.matrices_by_person_and_visit)
        if not scan_matrices:
            return None
        if len(scan_matrices) > 1:
            raise CohortError(
                f"{self.path.name} contains {len(scan_matrices)} connectomes of "
                "this scan; expected one. Include the visit in the ID of each "
                "connectome, for example sub-01_ses-M00"
            )
        return pd.DataFrame(scan_matrices[0], self.row_names, self.row_names)


def read_connectome_stack(
    stack_path: Path,
    atlas: Atlas,
    study_files: StudyFiles,
    scan_keys: Sequence[tuple[str, str]],
    label_source: str | Path | Sequence[str] | None = None,
    row_order_name: str | None = None,
) -> ConnectomeStack | None:
    """Read the array of all connectomes; None where the file holds no such array.

    Parameters
    ----------
    stack_path : Path
        The file. Its ids are a list in it with an entry for each matrix, or the lines
        of `<name>_ids.txt` or of another list of `_ID_LISTS` beside it.
    atlas : Atlas
        Names the regions.
    study_files : StudyFiles
        Knows the participants and visits that an id may join.
    scan_keys : sequence of (str, str)
        Participant and visit of the study's scans, by which the list of ids is
        recognised.
    labels, row_order
        As :func:`.read_connectome` takes them.

    Raises
    ------
    FileFormatError
        If there are no ids, or not as many as matrices, or several lists that could
        be the ids; or where the rows cannot be named.
    """
    matrix_format = FORMATS.get(stack_path.suffix.lower())
    if matrix_format is None or not matrix_format.may_hold_many_scans:
        return None
    with convert_reading_errors(stack_path, f"a {stack_path.suffix} file"):
        raw_matrices = read_raw_matrices(stack_path)
    name_list_by_key = raw_matrices[0].name_list_by_key
    if name_list_by_key is None:
        return None
    origin_text, scan_ids = _choose_origin_text_and_ids(
        stack_path, name_list_by_key, len(raw_matrices), study_files, scan_keys
    )
    other_list_by_key = {
        list_key: name_list
        for list_key, name_list in name_list_by_key.items()
        if name_list.names != scan_ids
    }
    _check_equal_rows(stack_path, raw_matrices, scan_ids)
    n_matrix_rows = len(raw_matrices[0].weights)
    file_row_names = raw_matrices[0].row_names or _choose_row_names(
        stack_path, other_list_by_key, n_matrix_rows, atlas
    )
    stacked_weights = np.array([raw_matrix.weights for raw_matrix in raw_matrices])
    mean_matrix = stacked_weights.mean(axis=0)
    row_names_record = choose_row_names(
        stack_path,
        mean_matrix,
        atlas,
        row_order_name,
        label_source,
        file_row_names,
        raw_matrices[0].comment_text,
    )
    order_check = OrderCheck(atlas)
    if row_order_name != UNCHECKED_NAMES or not row_names_record.names:
        order_check.add_matrix(mean_matrix, row_names_record, stack_path)
    order_check.raise_refusal()
    if row_names_record.adds_parts:
        raise FileFormatError(
            f"some regions have several rows ({row_names_record.note}). In every "
            "matrix, sum "
            "the rows and the columns that belong to the same region. Then give every "
            "row a name.",
            path=stack_path,
        )
    matrices_by_person_and_visit: MatricesByPersonAndVisit = {}
    for scan_id, scan_matrix in zip(scan_ids, stacked_weights, strict=True):
        participant_id, session_id = study_files.get_scan_key(
            parse_scan_identity(scan_id)
        )
        matrices_by_person_and_visit.setdefault(participant_id, {}).setdefault(
            session_id, []
        ).append(scan_matrix)
    stack_notes = (
        f"matrices were taken from {stack_path.name} by their IDs ({origin_text})",
        row_names_record.note,
        *order_check.count_matrices_by_note(),
    )
    return ConnectomeStack(
        stack_path,
        scan_ids,
        matrices_by_person_and_visit,
        row_names_record.names,
        stack_notes,
    )


def _check_equal_rows(
    stack_path: Path, raw_matrices: Sequence[RawMatrix], scan_ids: Sequence[str]
) -> None:
    """Raise where a matrix has another shape, or other names, than the first one."""
    first_matrix = raw_matrices[0]
    for scan_id, raw_matrix in zip(scan_ids, raw_matrices, strict=True):
        if raw_matrix.weights.shape != first_matrix.weights.shape:
            raise FileFormatError(
                f"the matrices of {scan_id} and {scan_ids[0]} have different shapes: "
                f"{raw_matrix.weights.shape} and {first_matrix.weights.shape}. All "
                "matrices of a file must have the same regions.",
                path=stack_path,
                kind="matrix shape",
            )
        column_names = raw_matrix.column_names or raw_matrix.row_names
        if not raw_matrix.row_names == column_names == first_matrix.row_names:
            raise FileFormatError(
                f"the matrices of {scan_id} and {scan_ids[0]} have different row or "
                "column names. All matrices of a file must have the same regions in "
                "the same order.",
                path=stack_path,
                kind="matrix names",
            )


def _choose_origin_text_and_ids(
    stack_path: Path,
    name_list_by_key: Mapping[str, NameList],
    n_scans: int,
    study_files: StudyFiles,
    scan_keys: Sequence[tuple[str, str]],
) -> tuple[str, tuple[str, ...]]:
    """Return the list of ids of the matrices, and where it is from.

    Texts that are the study's ids precede numbers. A list that only counts holds no
    ids, unless its key says so. Raises where two lists of the study's ids differ, or
    where there is none.
    """
    default_file_name = f"{stack_path.stem}_ids.txt"
    id_list_by_file_name = _read_id_list_by_file(
        stack_path, [default_file_name, *_ID_LISTS]
    )
    candidate_list_by_key = {
        list_key: name_list
        for list_key, name_list in {**name_list_by_key, **id_list_by_file_name}.items()
        if len(name_list.names) == n_scans and all(name_list.names)
    }
    text_ids_by_list = {
        list_key: name_list.names
        for list_key, name_list in candidate_list_by_key.items()
        if name_list.are_texts
    }
    number_ids_by_list = {
        list_key: name_list.names
        for list_key, name_list in candidate_list_by_key.items()
        if not name_list.are_texts
        and (_ID_KEY.search(list_key) or not are_default_row_names(name_list.names))
    }

    def describe_origin(list_key: str) -> str:
        return list_key if list_key in id_list_by_file_name else "in the file"

    for ids_by_list in (text_ids_by_list, number_ids_by_list):
        study_ids_by_list = {
            list_key: ids_in_list
            for list_key, ids_in_list in ids_by_list.items()
            if _are_study_ids(ids_in_list, study_files, scan_keys)
        }
        if len({*study_ids_by_list.values()}) > 1:
            raise FileFormatError(
                f"the lists {' and '.join(map(repr, study_ids_by_list))} both contain "
                "IDs of this study, but not the same IDs. It is therefore unclear "
                "which list gives the IDs of the matrices. Keep only the correct list.",
                path=stack_path,
            )
        for list_key, ids_in_list in study_ids_by_list.items():
            return describe_origin(list_key), ids_in_list
    other_ids_by_list = text_ids_by_list | number_ids_by_list
    if len(other_ids_by_list) > 1:
        raise FileFormatError(
            f"none of the lists {', '.join(map(repr, other_ids_by_list))} in the file "
            "contains the IDs of this study. Store the IDs as text in the file, or "
            f"write them into {default_file_name} in the same folder, one ID per line.",
            path=stack_path,
        )
    # ids of others are refused later, with the scans that have no matrix
    for list_key, ids_in_list in other_ids_by_list.items():
        return describe_origin(list_key), ids_in_list
    n_ids = 0
    origin_text = "in the file"
    if id_list_by_file_name:
        file_name, name_list = next(iter(id_list_by_file_name.items()))
        origin_text = f"in {file_name}"
        n_ids = len(name_list.names)
    raise FileFormatError(
        f"there {verb_form(n_scans, 'are')} {count_text(n_scans, 'connectome')} in the "
        f"file, but {count_text(n_ids, 'ID')} {origin_text}. Expected one ID for each "
        "connectome. Store the IDs as text in the file, or write them into "
        f"{default_file_name} in the same folder, one ID per line.",
        path=stack_path,
    )


def _read_id_list_by_file(
    stack_path: Path, file_names: Sequence[str]
) -> dict[str, NameList]:
    """Return the lists of ids beside a file, by name."""
    id_list_by_file_name = dict[str, NameList]()
    for file_name in file_names:
        list_path = stack_path.with_name(file_name)
        ids_in_list = _read_ids(list_path) if list_path.is_file() else ()
        if ids_in_list:
            id_list_by_file_name[file_name] = NameList(ids_in_list, are_texts=True)
    return id_list_by_file_name


def _read_ids(list_path: Path) -> tuple[str, ...]:
    """Return the ids of a list, one a line; none of a table."""
    text_lines = [text_line.strip() for text_line in read_lines(list_path)]
    if not text_lines or re.search(r"[\t,;]", text_lines[0]):
        return ()
    has_header = find_column_name(text_lines[:1], ID_COLUMNS) is not None
    return tuple(text_lines[1:] if has_header else text_lines)


def _are_study_ids(
    candidate_ids: Sequence[str],
    study_files: StudyFiles,
    scan_keys: Sequence[tuple[str, str]],
) -> bool:
    """Return whether most ids are of the study, or most participants have one."""
    study_participant_ids = {
        study_participant_id for study_participant_id, _ in scan_keys
    }
    listed_participant_ids = [
        study_files.get_scan_key(parse_scan_identity(scan_id))[0]
        for scan_id in candidate_ids
    ]
    n_ids_in_study = sum(
        participant_id in study_participant_ids
        for participant_id in listed_participant_ids
    )
    n_people_with_id = len(study_participant_ids.intersection(listed_participant_ids))
    return (
        n_ids_in_study >= _MIN_ID_SHARE * len(candidate_ids)
        or n_people_with_id >= _MIN_ID_SHARE * len(study_participant_ids) > 0
    )


def _choose_row_names(
    stack_path: Path,
    name_list_by_key: Mapping[str, NameList],
    n_matrix_rows: int,
    atlas: Atlas,
) -> tuple[str, ...]:
    """Return the list that names the rows, none where no list does.

    Names of regions precede other texts, and these precede label numbers. A list that
    only counts is none of them. Raises where two lists of regions name the rows
    differently.
    """
    names_by_list_key = {
        list_key: name_list.names
        for list_key, name_list in name_list_by_key.items()
        if len(name_list.names) == n_matrix_rows == len({*name_list.names})
        if not are_default_row_names(name_list.names)
    }
    text_list_keys = [
        list_key
        for list_key, names_in_list in names_by_list_key.items()
        if not are_unsigned_integers(names_in_list)
    ]
    region_list_keys = [
        list_key
        for list_key in text_list_keys
        if _are_region_names(names_by_list_key[list_key], atlas)
    ]
    region_index_tuples = {
        find_region_index_by_row(atlas, names_by_list_key[list_key])
        for list_key in region_list_keys
    }
    if len(region_index_tuples) > 1:
        raise FileFormatError(
            f"the lists {' and '.join(map(repr, region_list_keys))} contradict each "
            "other about the names of the rows. Keep only the correct list.",
            path=stack_path,
        )
    label_list_keys = [
        list_key
        for list_key, names_in_list in names_by_list_key.items()
        if list_key not in text_list_keys
        and len(atlas.name_by_label.keys() & names_in_list) >= len(atlas) / 2
    ]
    # names that are no regions are refused later, with the nearest known names
    for list_key in (*region_list_keys, *text_list_keys, *label_list_keys):
        return names_by_list_key[list_key]
    for name_list in name_list_by_key.values():
        # A region that stands twice is refused later, too.
        if (
            len(name_list.names) == n_matrix_rows
            and name_list.are_texts
            and have_few_repeats(name_list.names)
            and _are_region_names(name_list.names, atlas)
        ):
            return name_list.names
    return ()


def _are_region_names(candidate_names: Sequence[str], atlas: Atlas) -> bool:
    """Return whether most names are regions, or are left out of atlases on purpose."""
    n_known_names = sum(
        atlas.find(candidate_name) is not None
        or is_non_region_name(candidate_name)
        or atlas.divides(candidate_name)
        for candidate_name in candidate_names
    )
    return n_known_names >= _MIN_NAMED_SHARE * len(candidate_names)
