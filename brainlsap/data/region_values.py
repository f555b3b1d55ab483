"""Read the named values of one scan's table, whichever of its layouts it has."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from brainlsap.data.atlas import Atlas, is_outside
from brainlsap.data.feature_rules import Feature
from brainlsap.data.file_names import other_side
from brainlsap.data.pet_tables import (
    average_frames,
    frames_first,
    is_gtm_stats,
    is_time_series,
    read_gtm_stats,
)
from brainlsap.data.region_names import HEMISPHERE_WORDS, split_name
from brainlsap.data.table_columns import (
    SESSION_COLUMNS,
    find_region,
    kind_of_head,
    region_of_head,
)
from brainlsap.data.tables import parse_number, read_table
from brainlsap.data.text_lines import read_lines
from brainlsap.exceptions import FileFormatError, RegionNameError

NAME_COLUMNS = (
    "region",
    "name",
    "label_name",
    "label",
    "structname",
    "structure",
    "roi",
)
_PERSON_COLUMNS = ("participant_id", "subject_id", "subject", "ptid", "rid", "scan_id")
_NO_COLUMN = (99, "")  # below any measure
_SIDE_COLUMNS = ("hemisphere", "hemi", "side")
_SIDES = re.compile(
    r"(?:^|_)hemi-(l|r)(?:eft|ight|h)?(?:_|$)|^([lr])h\.", re.IGNORECASE
)


@dataclass(frozen=True)
class NamedValues:
    """Names and values of one scan's regions as a file has them.

    Parameters
    ----------
    names : list of str
        Of regions.
    values : float array of shape (n_names,)
        NaN where not measured.
    notes : tuple of str
        What was averaged or scaled.
    """

    names: list[str]
    values: np.ndarray
    notes: tuple[str, ...] = ()


def read_named_values(
    path: Path,
    feature: Feature,
    atlas: Atlas,
    frames: tuple[float, float] | None = None,
    reference: str | Path | None = None,
) -> NamedValues:
    """Read the named values of one scan's table.

    Parameters
    ----------
    path : Path
        A row for every region; one row with a column for every region; PETSurfer's
        `gtm.stats.dat`; or activity over time.
    feature : Feature
        Heads of the columns of values.
    atlas : Atlas
        Tells regions from other columns.
    frames : (float, float), optional
        Window of activity over time.
    reference : str or path, optional
        Region of PET that becomes 1.

    Returns
    -------
    NamedValues

    Raises
    ------
    FileFormatError
        Where the table has no such layout, a region twice, or a cell is no number.
    RegionNameError
        Where a name and the column of its side contradict each other.
    ParameterError
        Where activity over time needs a window or a reference.
    """
    if path.suffix.lower() in (".dat", ".txt") and is_gtm_stats(path, read_lines(path)):
        names, values = read_gtm_stats(
            path, None if reference is None else str(reference)
        )
        note = "PET: values as mri_gtmpvc scaled them"
        return NamedValues(names, values, (_scaled(reference) or note,))
    table = frames_first(read_table(path))
    heads = {name.lower(): name for name in table.columns}
    if is_time_series(list(table.columns)):
        names, values = average_frames(path, table, frames, reference)
        named = [region_of_head(name) for name in names]
        return NamedValues(
            named, values, (_scaled(reference) or _scaled("_ref- file"),)
        )
    lies = len(table) == 1 and not any(name in heads for name in NAME_COLUMNS)
    read = _one_row if lies else _upright
    named, cells = read(path, table, feature, atlas)
    twin = other_side(path)
    if twin is not None:
        more = read(twin, read_table(twin), feature, atlas)
        named, cells = named + more[0], cells + more[1]
    numbers = [
        _number(path, feature, name, cell)
        for name, cell in zip(named, cells, strict=True)
    ]
    return NamedValues(named, np.array(numbers, dtype=float))


def _scaled(reference: str | Path | None) -> str:
    name = reference.name if isinstance(reference, Path) else reference
    return "" if name is None else f"PET: divided by the mean of {name}"


def _one_row(
    path: Path, table: pd.DataFrame, feature: Feature, atlas: Atlas
) -> tuple[list[str], list[str | None]]:
    """Return names and cells of a table with a column for every region."""
    said = _SIDES.search(path.name)
    side = (said[1] or said[2]).upper() if said else None
    ranks = {measure: rank for rank, measure in enumerate((*feature.measures, ""))}
    chosen: dict[str, tuple[int, str]] = {}
    for head in table.columns:
        measure, place = find_region(head, atlas, side)
        is_stranger = place is None and kind_of_head(head) == "strangers"
        if measure not in ranks or (place is None and not is_stranger):
            continue
        name = region_of_head(head) if place is None else atlas.names[place]
        known = chosen.get(name, _NO_COLUMN)
        if known[0] == ranks[measure]:
            raise FileFormatError(
                f"{path}: the columns {known[1]!r} and {head!r} are both {name}; "
                "expected one. Keep the one that is meant."
            )
        chosen[name] = min(known, (ranks[measure], head))
    return list(chosen), [table[head][0] for _, head in chosen.values()]


def _upright(
    path: Path, table: pd.DataFrame, feature: Feature, atlas: Atlas
) -> tuple[list[str], list[str | None]]:
    """Return names and cells of a table with a row for every region."""
    heads = {name.lower(): name for name in table.columns}
    _check_one_scan(path, table, heads)
    column = _pick_column(path, heads, NAME_COLUMNS, "names of regions")
    names = [str(name or "") for name in table[column]]
    cells = table[_pick_column(path, heads, feature.columns, feature.name)].tolist()
    column_of_sides = next((heads[h] for h in _SIDE_COLUMNS if h in heads), None)
    if column_of_sides is not None:
        return _with_sides(path, names, table[column_of_sides].tolist()), cells
    said = _SIDES.search(path.name)
    if said:
        side = (said[1] or said[2]).lower()
        return [n if split_name(n)[0] else f"{side}h_{n}" for n in names], cells
    if _left_then_right(names, atlas):
        sided = _tell_sides(names, atlas)
        kept = [i for i, name in enumerate(sided) if name]
        return [sided[i] for i in kept], [cells[i] for i in kept]
    return names, cells


def _check_one_scan(path: Path, table: pd.DataFrame, heads: dict[str, str]) -> None:
    """Refuse rows of several scans: a second visit could pass for the other side."""
    for head in (*SESSION_COLUMNS, *_PERSON_COLUMNS):
        found = table[heads[head]].dropna().unique() if head in heads else []
        if len(found) > 1:
            raise FileFormatError(
                f"{path}: the column {heads[head]!r} has {len(found)} values, such as "
                f"{found[0]!r} and {found[1]!r}; expected the regions of one scan. "
                "Give each scan a file, or make a table with a row for every scan."
            )


def _with_sides(path: Path, names: list[str], sides: list[str | None]) -> list[str]:
    """Put the side that a column says before names that say none."""
    result = []
    for name, cell in zip(names, sides, strict=True):
        side, said = HEMISPHERE_WORDS.get((cell or "").lower()), split_name(name)[0]
        if side and said and side != said:
            raise RegionNameError(
                f"{path}: the name {name!r} says {said}, but its hemisphere says "
                f"{side}. Correct one of them."
            )
        result.append(f"{side.lower()}h_{name}" if side and not said else name)
    return result


def _left_then_right(names: list[str], atlas: Atlas) -> bool:
    """Tell whether names without sides stand twice, as Clinica writes both sides."""
    cortex = [
        n for n in names if atlas.find(n, "L") is not None and not split_name(n)[0]
    ]
    half = len(cortex) // 2
    return half > 1 and cortex[:half] == cortex[half:] and len(set(cortex)) == half


def _tell_sides(names: list[str], atlas: Atlas) -> list[str]:
    """Put sides before the names; the sums that Clinica puts first become empty."""
    seen: set[str] = set()
    result = []
    for name in names:
        if split_name(name)[0]:
            result.append(name)
        elif atlas.find(name, "L") is None:
            result.append("")
        else:
            result.append(f"{'rh' if name in seen else 'lh'}_{name}")
            seen.add(name)
    return result


def _number(path: Path, feature: Feature, name: str, cell: str | None) -> float:
    try:
        return parse_number(cell)
    except ValueError as error:
        if is_outside(name):
            return np.nan
        raise FileFormatError(
            f"{path}: {feature.name} of {name} must be a number or n/a, got {cell!r}."
        ) from error


def _pick_column(
    path: str | Path, heads: dict[str, str], wanted: tuple[str, ...], what: str
) -> str:
    for head in wanted:
        if head in heads:
            return heads[head]
    raise FileFormatError(
        f"{path}: no column for {what}; expected one headed {', '.join(wanted)}, "
        f"found {', '.join(heads.values())}."
    )
