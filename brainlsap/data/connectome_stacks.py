"""One file with the connectomes of many scans, found by person and visit."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas
from brainlsap.data.connectomes import FORMATS
from brainlsap.data.find_files import Scan, parse_scan_name
from brainlsap.data.row_order import find_names
from brainlsap.data.tables import ID_COLUMNS, find_head, read_lines
from brainlsap.exceptions import CohortError, FileFormatError, reading

# Names of lists of ids, one a line; a table of people may have such a name, too.
_LISTS = ("ids.txt", "subjects.txt", "subject_ids.txt", "subject_list.txt")


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
    labels: str | Path | Sequence[str] | None = None,
    row_order: str | None = None,
) -> ConnectomeStack | None:
    """Read the array of all connectomes; None where the file holds no such array.

    Ids are texts or whole numbers in the file, one for each matrix, or lines of
    `<name>_ids.txt` or another list of `_LISTS` beside it. Raises FileFormatError where
    there are none, or not as many as matrices, or where the rows cannot be named.
    """
    if path.suffix.lower() not in (".npy", ".npz", ".mat", ".h5", ".hdf5"):
        return None
    with reading(path, f"a {path.suffix} file"):
        found = FORMATS[path.suffix.lower()](path)
    if found[0].scan is None:
        return None
    ids, origin = [one.scan or "" for one in found], "in the file"
    beside = [path.with_name(name) for name in (f"{path.stem}_ids.txt", *_LISTS)]
    for file in beside if not any(ids) else ():
        lines = [line.strip() for line in read_lines(file)] if file.is_file() else []
        if lines and not re.search(r"[\t,;]", lines[0]):
            ids, origin = lines, file.name
            ids = ids if find_head(ids[:1], ID_COLUMNS) is None else ids[1:]
            break
    if len(ids) != len(found) or not all(ids):
        raise FileFormatError(
            f"{path}: {len(found)} connectomes, but {len([*filter(None, ids)])} ids "
            f"({origin}); expected one for each, as texts in the file or as lines of "
            f"{beside[0].name} beside it."
        )
    matrices: dict[str, dict[str, list[np.ndarray]]] = {}
    for name, one in zip(ids, found, strict=True):
        person, visit = parse_scan_name(name).key
        matrices.setdefault(person, {}).setdefault(visit, []).append(one.values)
    own = found[0].rows or ()
    names, note = find_names(path, found[0].values, atlas, row_order, labels, own)
    notes = (f"taken from {path.name} by ids ({origin})", note)
    return ConnectomeStack(path, matrices, names, notes)
