"""One file with the connectomes of many scans, found by person and visit."""

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
from brainlsap.data.row_order import (
    TRUST_NAMES,
    are_numbers,
    find_names,
    region_rows,
)
from brainlsap.data.tables import ID_COLUMNS, find_head, read_lines
from brainlsap.exceptions import CohortError, FileFormatError, reading

# Names of lists of ids, one a line; a table of people may have such a name, too.
_LISTS = ("ids.txt", "subjects.txt", "subject_ids.txt", "subject_list.txt")
# Keys of lists whose numbers are ids although they only count.
_SAYS_ID = re.compile(
    r"(^|[-_. ])(ids?|subj(ects?)?|participants?|subjects?_?ids?|pat(ients?)?|eids?)"
    r"($|[-_. ])",
    re.IGNORECASE,
)
# Smallest share of ids that are the study's, or of its people that are among them.
_MOSTLY = 0.5


class ConnectomeStack(NamedTuple):
    """Matrices of many scans by person and visit, and the names of their rows."""

    path: Path
    matrices: dict[str, dict[str, list[np.ndarray]]]
    names: tuple[str, ...]
    notes: tuple[str, ...]

    def connectome(self, scan: Scan, _: Atlas) -> pd.DataFrame | None:
        """Return the matrix of a scan with its names, None where there is none."""
        found = scan.entries(self.matrices)
        if len(found) > 1:
            raise CohortError(
                f"{self.path.name} has {len(found)} connectomes of it; expected one, "
                "under an id with its visit, such as sub-01_ses-M00"
            )
        return pd.DataFrame(found[0], self.names, self.names) if found else None


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
        The file. Its ids are a list in it with an entry for each matrix, or lines of
        `<name>_ids.txt` or another list of `_LISTS` beside it.
    atlas : Atlas
        Names the regions.
    scans : sequence of (str, str)
        Person and visit of the study's scans, by which the list of ids is recognised.
    labels, row_order
        As :func:`.read_connectome` takes them.

    Raises
    ------
    FileFormatError
        Where there are no ids, or not as many as matrices, or several lists that could
        be them; or where the rows cannot be named.
    """
    if path.suffix.lower() not in (".npy", ".npz", ".mat", ".h5", ".hdf5"):
        return None
    with reading(path, f"a {path.suffix} file"):
        matrices_read = FORMATS[path.suffix.lower()](path)
    lists = matrices_read[0].lists
    if lists is None:
        return None
    n_scans, n_rows = len(matrices_read), len(matrices_read[0].values)
    origin, ids = _choose_ids(path, lists, n_scans, scans)
    rest = {key: entry for key, entry in lists.items() if entry.names != ids}
    own = _choose_row_names(path, rest, n_rows, atlas)
    values = np.array([matrix.values for matrix in matrices_read])
    mean = values.mean(axis=0)
    rows = find_names(path, mean, atlas, row_order, labels, own)
    check = OrderCheck(atlas)
    if row_order != TRUST_NAMES or not rows.names:
        check.add(mean, rows, path)
    check.raise_refusal()
    if rows.adds_parts:
        raise FileFormatError(
            f"some regions have several rows ({rows.note}). Add these rows "
            "and columns first, and name the rows.",
            path=path,
        )
    matrices: dict[str, dict[str, list[np.ndarray]]] = {}
    for name, matrix in zip(ids, values, strict=True):
        person, visit = parse_scan_name(name).key
        matrices.setdefault(person, {}).setdefault(visit, []).append(matrix)
    notes = (f"taken from {path.name} by ids ({origin})", rows.note, *check.notes())
    return ConnectomeStack(path, matrices, rows.names, notes)


def _choose_ids(
    path: Path,
    lists: Mapping[str, NameList],
    n_scans: int,
    scans: Sequence[tuple[str, str]],
) -> tuple[str, tuple[str, ...]]:
    """Return the list of ids of the matrices, and where it stands.

    Texts that are the study's ids come before numbers; a list that only counts names
    nobody unless its name says that it does. Raises where two lists that are the
    study's ids differ, or where there is none.
    """
    places = [path.with_name(name) for name in (f"{path.stem}_ids.txt", *_LISTS)]
    beside = {
        file.name: NameList(ids, are_texts=True)
        for file in places
        if file.is_file() and (ids := _read_ids(file))
    }
    candidates = {
        key: entry
        for key, entry in {**lists, **beside}.items()
        if len(entry.names) == n_scans and all(entry.names)
    }
    texts = {key: entry.names for key, entry in candidates.items() if entry.are_texts}
    numbers = {
        key: entry.names
        for key, entry in candidates.items()
        if key not in texts and (_SAYS_ID.search(key) or not are_counts(entry.names))
    }
    own = places[0].name
    for group in (texts, numbers):
        matching = {key: ids for key, ids in group.items() if _are_ids(ids, scans)}
        if len({*matching.values()}) > 1:
            raise FileFormatError(
                f"the lists {' and '.join(map(repr, matching))} could both be "
                "the ids of its matrices, and they differ. Keep the one that is right.",
                path=path,
            )
        for key, ids in matching.items():
            return key if key in beside else "in the file", ids
    unmatched = texts | numbers
    if len(unmatched) > 1:
        raise FileFormatError(
            f"none of its lists {', '.join(map(repr, unmatched))} holds the "
            "ids of this study. Write them as texts into the file, or as lines of "
            f"{own} beside it.",
            path=path,
        )
    for key, ids in unmatched.items():  # scans without a matrix are named one by one
        return key if key in beside else "in the file", ids
    counts = [(len(entry.names), name) for name, entry in beside.items()]
    n_ids, origin = counts[0] if counts else (0, "in the file")
    raise FileFormatError(
        f"{n_scans} connectomes, but {n_ids} ids ({origin}); expected one for "
        f"each, as texts in the file or as lines of {own} beside it.",
        path=path,
    )


def _read_ids(path: Path) -> tuple[str, ...]:
    """Return the ids of a list, one a line; none of a table."""
    lines = [line.strip() for line in read_lines(path)]
    if not lines or re.search(r"[\t,;]", lines[0]):
        return ()
    is_headed = find_head(lines[:1], ID_COLUMNS) is not None
    return tuple(lines[1:] if is_headed else lines)


def _are_ids(ids: Sequence[str], scans: Sequence[tuple[str, str]]) -> bool:
    """Return whether ids name most people of the study, or most are of the study."""
    people = {person for person, _ in scans}
    named = [parse_scan_name(name).key[0] for name in ids]
    n_known = sum(name in people for name in named)
    n_named = len(people.intersection(named))
    return n_known >= _MOSTLY * len(ids) or n_named >= _MOSTLY * len(people) > 0


def _choose_row_names(
    path: Path, lists: Mapping[str, NameList], n_rows: int, atlas: Atlas
) -> tuple[str, ...]:
    """Return the list that names the rows, none where no list does.

    Names of regions come before numbers of labels; a list that only counts is neither.
    Raises where two lists of regions name the rows differently.
    """
    fitting = {
        key: entry
        for key, entry in lists.items()
        if len(entry.names) == n_rows == len({*entry.names})
        if not are_counts(entry.names)
    }
    labels = {*atlas.regions["freesurfer_id"].astype(str)}
    texts = [key for key, entry in fitting.items() if not are_numbers(entry.names)]
    regions = {
        key: region_rows(atlas, fitting[key].names)
        for key in texts
        if sum(atlas.find(n) is not None or is_outside(n) for n in fitting[key].names)
        >= _MOSTLY * n_rows
    }
    if len({*regions.values()}) > 1:
        raise FileFormatError(
            f"the lists {' and '.join(map(repr, regions))} name the rows "
            "differently. Keep the one that is right.",
            path=path,
        )
    numbered = [
        key
        for key, entry in fitting.items()
        if key not in texts and len(labels.intersection(entry.names)) >= len(atlas) / 2
    ]
    # names that are not known are refused with the nearest, where they are read
    for key in (*regions, *texts, *numbered):
        return fitting[key].names
    return ()
