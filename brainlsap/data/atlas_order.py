"""Put the rows of a matrix in the order of an atlas: by name, or by a known layout."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from brainlsap.data.atlas import Atlas, is_outside
from brainlsap.data.layouts import find_layout
from brainlsap.data.matrices import NamedMatrix
from brainlsap.data.name_lists import are_counts
from brainlsap.data.parcellations import LABELCONVERT, other_parcellation
from brainlsap.data.weights import check_weights, make_symmetric
from brainlsap.exceptions import RegionNameError

# Regions that a tool leaves out where a brain lacks them; more is another atlas.
MOST_ABSENT = 8


@dataclass(frozen=True, eq=False)
class ConnectomeFile:
    """A connectome in the order of an atlas, and what was done to get there.

    Parameters
    ----------
    matrix : array of shape (n_rois, n_rois)
        Symmetric, finite, not negative; float64.
    notes : tuple of str
        What was mapped, mirrored or dropped; the same words for every file that
        needed the same.

    Examples
    --------
    See :func:`brainlsap.data.read_connectome`.
    """

    matrix: np.ndarray
    notes: tuple[str, ...] = ()


def in_atlas_order(raw: NamedMatrix, atlas: Atlas, path: Path) -> ConnectomeFile:
    """Put the rows and columns of a matrix in the order of an atlas.

    Parameters
    ----------
    raw : NamedMatrix
        As a reader gives it.
    atlas : Atlas
        Names the regions and gives their order.
    path : Path
        Of the file.

    Returns
    -------
    ConnectomeFile

    Raises
    ------
    FileFormatError, RegionNameError
        As :func:`.read_connectome` does.
    """
    where = str(path)
    named = raw.rows is not None and not are_counts(raw.rows)
    if raw.rows is not None and raw.columns is not None and named:
        rows, columns, notes = raw.rows, raw.columns, ["read by name"]
    else:
        layout = find_layout(raw.values, atlas, path)
        rows = columns = layout.names
        notes = [layout.note]
    try:
        to_row, dropped = _find_rows(rows, atlas, raw.leaves_out)
        to_column, _ = _find_rows(columns, atlas, raw.leaves_out)
    except RegionNameError as error:
        other = other_parcellation(rows, atlas)
        hint = f" {other} {LABELCONVERT}" if other else ""
        raise RegionNameError(f"{where}: {error}{hint}") from error
    if dropped:
        notes.append(f"left out, not in {atlas.name}: {_listed(dropped)}")
    values, absent = _pick(raw, to_row, to_column)
    if absent.any():
        names = ", ".join(np.array(atlas.names)[absent])
        notes.append(f"absent from the file, without connections: {names}")
    check_weights(values, atlas.names, where)
    # triangles are told apart in the order of the file, where it has one for both
    kept = np.sort(to_row[to_row >= 0])
    in_file = raw.values[np.ix_(kept, kept)] if rows == columns else values
    matrix, note = make_symmetric(values, in_file, atlas.names, where, named=named)
    return ConnectomeFile(matrix, (*notes, *note))


def _pick(
    raw: NamedMatrix, to_row: np.ndarray, to_column: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of an atlas' regions, and which regions have no row."""
    values = np.asarray(raw.values[np.ix_(to_row, to_column)], dtype=np.float64)
    absent = (to_row < 0) | (to_column < 0)
    if raw.leaves_out:
        empty = np.isnan(values) | absent[:, None] | absent
        absent = empty.sum(axis=0) >= len(values) - 1
        absent &= empty.sum(axis=1) >= len(values) - 1
        if absent.sum() <= MOST_ABSENT:
            values[absent], values[:, absent] = 0, 0
    return values, absent


def _listed(names: Sequence[str]) -> str:
    different = list(dict.fromkeys(names))
    return ", ".join(different) if len(different) < 40 else f"{len(names)} rows"


@lru_cache(maxsize=16)
def _find_rows(
    names: tuple[str, ...], atlas: Atlas, leaves_out: bool = False
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the row of every region, and the names that the atlas leaves out.

    A region without a row, which only some tools leave out, has -1.

    Remembered, since all files of a cohort have the same names.
    """
    if all(name.isdecimal() for name in names):
        numbers = atlas.regions["freesurfer_id"].tolist()
        known = {str(n): name for n, name in zip(numbers, atlas.names, strict=True)}
        kept = [i for i, name in enumerate(names) if name in known]
        places = atlas.match([known[names[i]] for i in kept])
    else:
        kept = [
            i
            for i, name in enumerate(names)
            if atlas.find(name) is not None or not is_outside(name)
        ]
        places = atlas.match([names[i] for i in kept])
    there = set(places.tolist())
    missing = [name for i, name in enumerate(atlas.names) if i not in there]
    if len(missing) > (MOST_ABSENT if leaves_out else 0):
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise RegionNameError(
            f"{len(missing)} of the {len(atlas)} regions of {atlas.name} are missing: "
            f"{', '.join(missing[:5])}{more}. A connectome needs every region; write a "
            "row of zeros for one without connections."
        )
    rows = np.full(len(atlas), -1)
    rows[places] = kept
    rows.flags.writeable = False
    taken = set(kept)
    return rows, tuple(name for i, name in enumerate(names) if i not in taken)
