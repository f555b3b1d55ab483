"""Read tables of regions in every layout that tools write.

Of many scans, a row each: FreeSurfer's `aparcstats2table` and `asegstats2table`, ADNI's
tables, and any whose columns are named by regions. Of one scan: a row or a column for
every region, both hemispheres in one file or in two, PET over time. Columns may say
their measure (`lh_cuneus_thickness`), the first head (`lh.aparc.a2009s.thickness`,
`Measure:volume`) or the file's name (`thickness.csv`) may say it for all, or nothing
does.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas
from brainlsap.atlas.region_names import HEMISPHERE_WORDS, is_outside, split_name
from brainlsap.data.find_files import SIDE_IN_NAME, ScanName, other_side, read_rows
from brainlsap.data.measures import WORDS, Measure
from brainlsap.data.pet_tables import average_frames, is_time_series, read_gtm_stats
from brainlsap.data.tables import (
    FREESURFER_HEAD,
    NAME_COLUMNS,
    SESSION_COLUMNS,
    SIDE_COLUMNS,
    find_column,
    listed,
    parse_numbers,
    read_columns,
    sheets_of,
)
from brainlsap.exceptions import BrainlsapError, FileFormatError, RegionNameError

# Covariates that a study adjusts for, though they are named like regions.
_HEAD_SIZES = (
    *("etiv", "estimatedtotalintracranialvol", "intracranialvol", "icv", "tiv"),
    "st10cv",
)
_SCAN_COLUMNS = (
    *("participant_id", "subject_id", "subject", "ptid", "rid", "scan_id"),
    *SESSION_COLUMNS,
)
_SUFFIX = re.compile(rf"(.+?)[-_. ]({'|'.join(WORDS)})", re.IGNORECASE)
_UCSF = re.compile(r"(ST\d{1,3})(TA|SA|CV|SV|TS|HS)", re.IGNORECASE)
_UCSF_MEASURES = {"TA": "thickness", "SA": "area", "CV": "volume", "SV": "volume"}
_COPY = re.compile(r"\.\d+$")


class ScanTable(NamedTuple):
    """A table of many scans, a row each.

    names : who and which visit every row is of; facts : labels and covariates as text;
    values : columns by measure ("" unsaid) and region (position in the atlas);
    strangers : names in heads that say a side but are no region of the atlas; outside :
    columns that atlases leave out on purpose.
    """

    path: Path
    names: list[ScanName]
    facts: pd.DataFrame
    values: Mapping[tuple[str, int], np.ndarray] = MappingProxyType({})
    strangers: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether it names no region that the atlas lacks."""
        return not self.outside + self.strangers

    def has(self, label: str | None) -> bool:
        """Return whether a column of facts is a label, in any case."""
        return label is None or find_column(self.facts, [label.lower()]) is not None


def read_sheets(path: str | Path, atlas: Atlas) -> list[ScanTable]:
    """Read a table of many scans; of a workbook every sheet that is one.

    Raises what the first raises where there is none.
    """
    found, errors = list[ScanTable](), list[BrainlsapError]()
    for sheet in sheets_of(path):
        try:
            found.append(read_scan_table(path, atlas, sheet))
        except BrainlsapError as error:
            errors.append(error)
    if not found:
        raise errors[0]
    return found


def read_scan_table(path: str | Path, atlas: Atlas, sheet: str = "") -> ScanTable:
    """Read a table of many scans and sort its columns by what they mean.

    Raises FileFormatError, with everything that is wrong, where the file is no table,
    rows do not name scans, regions stand twice, or cells are no numbers.
    """
    names, table = read_rows(path, sheet)
    # what is said of the table names its sheet, which may say the measure, too
    path = Path(f"{path}, sheet {sheet!r}" if sheet else path)
    words = re.split(r"[^a-z0-9]+", path.name.lower())
    of_file = {WORDS[word] for word in words if word in WORDS}
    side, said = None, of_file.pop() if len(of_file) == 1 else ""
    if found := FREESURFER_HEAD.fullmatch(table.columns.name):
        side = found[1].upper() if found[1] else None
        said = WORDS.get(found[2].lower(), "other")
    values, kinds, notes = _read_columns(path, table, atlas, side, said)
    empty = [
        atlas.names[place]
        for (_, place), column in values.items()
        if not np.nan_to_num(column).any() and not np.isnan(column).all()
    ]
    if empty:
        what = "columns of regions are 0 in every row; write n/a where not measured"
        notes += (f"{len(empty)} {what}: {listed(empty)}",)
    facts = kinds["others"] + kinds["strangers"] + kinds["outside"] * (not values)
    strangers = tuple(_split_head(head, atlas)[1] for head in kinds["strangers"])
    outside = tuple(kinds["outside"])
    return ScanTable(path, names, table[facts], values, strangers, outside, notes)


def _read_columns(
    path: Path, table: pd.DataFrame, atlas: Atlas, side: str | None, said: str = ""
) -> tuple[dict[tuple[str, int], np.ndarray], dict[str, list[str]], tuple[str, ...]]:
    """Return values by measure and region, the heads of other columns, and notes.

    `side` and `said` are hemisphere and measure of heads that say none.
    """
    found: dict[tuple[str, int], list[str]] = {}
    kinds: dict[str, list[str]] = {"strangers": [], "outside": [], "others": []}
    # pandas and others count the columns of one name
    bare = {head: _COPY.sub("", head) for head in table}
    copies = {head for head in table if bare[head] != head and bare[head] in table}
    for head in table:
        original = bare[head] if head in copies else head
        measure, name = _split_head(original, atlas, side)
        place, kind = atlas.find(name, side), "others"
        if place is not None:
            found.setdefault((measure or said, place), []).append(head)
            continue
        is_left_out = is_outside(original) or is_outside(name)
        if is_left_out and original.lower() not in _HEAD_SIZES:
            kind = "outside"
        elif split_name(name)[0] is not None:
            kind = "strangers"
        kinds[kind].append(head)
    heads = [head for same in found.values() for head in same]
    columns = dict(zip(heads, parse_numbers(path, table[heads]).T, strict=True))
    values, doubled, dropped = {}, list[str](), list[str]()
    for (measure, place), same in found.items():
        first, *more = sorted(same, key=copies.__contains__)
        values[measure, place] = columns[first]
        for head in more:
            same_again = np.array_equal(columns[head], columns[first], equal_nan=True)
            if head in copies and (same_again or not columns[head].any()):
                dropped.append(head)
            else:
                doubled.append(f"{first!r} and {head!r} ({atlas.names[place]})")
    if doubled:
        raise FileFormatError(
            f"{path}: {len(doubled)} regions stand in more than one column: "
            f"{listed(doubled)}. Keep one column for each."
        )
    what = "columns repeat others or are 0 everywhere, and are left out"
    note = f"{len(dropped)} {what}: {listed(dropped)}"
    return values, kinds, (note,) if dropped else ()


def read_region_values(
    path: str | Path,
    atlas: Atlas,
    measure: Measure,
    *,
    frames: tuple[float, float] | None = None,
    reference: str | Path | None = None,
) -> tuple[np.ndarray, tuple[str, ...], np.ndarray]:
    """Read one scan's table: values in the order of an atlas, notes, regions there.

    It has a row for every region; one row with a column for every region; is
    PETSurfer's `gtm.stats.dat`; or activity over time, averaged over `frames` and
    divided by a `reference` as :func:`.average_frames` does. Of a file of one
    hemisphere, that of the other beside it is read, too.
    """
    path, notes = Path(path), tuple[str, ...]()
    divided = f"PET: divided by the mean of {Path(reference or '_ref- file').name}"
    cells: Sequence[str | float | None] | np.ndarray
    if path.name.endswith("gtm.stats.dat"):
        names, cells = read_gtm_stats(path, reference)
        notes = (divided if reference else "PET: values as mri_gtmpvc scaled them",)
    elif is_time_series(tuple(table := read_columns(path))):
        whole = pd.DataFrame(table, dtype=object)
        names, cells = average_frames(path, whole, frames, reference)
        names = [_split_head(head, atlas)[1] for head in names]
        notes = (divided,)
    else:
        names, cells = _read_plain(path, table, measure, atlas)
        if beside := other_side(path):
            more = _read_plain(beside, read_columns(beside), measure, atlas)
            names, cells = [*names, *more[0]], [*cells, *more[1]]
    try:
        rows, _ = atlas.rows(names)
    except RegionNameError as error:
        raise RegionNameError(f"{path}: {unknown_names(names, atlas)}") from error
    places = np.flatnonzero(rows >= 0)
    values = np.full(len(atlas), np.nan)
    kept = np.array(cells, dtype=object)[rows[places]]
    try:
        values[places] = kept.astype(float)  # None becomes NaN
    except ValueError:
        heads = [f"{measure.name} of {atlas.names[place]}" for place in places]
        parse_numbers(path, pd.DataFrame(kept[None], columns=heads, dtype=object))
    if (
        atlas.cortex[places].all()
        and not atlas.cortex.all()
        and path.suffix.lower() != ".xlsx"
        and path.read_bytes()[-1:] not in b"\n\r"
    ):
        raise FileFormatError(
            f"{path}: no subcortical region, and the last line has no end: the file "
            "may be cut short. Make it again, or add a line end if it is whole."
        )
    return values, notes, places


@lru_cache(maxsize=64)  # tables of a study repeat their heads
def _find_columns(
    heads: tuple[str, ...], values: tuple[str, ...]
) -> tuple[str | None, str | None, str | None, list[str]]:
    """Return the heads of names, values and sides, and those that tell scans apart."""
    scans = [head for head in heads if find_column([head], _SCAN_COLUMNS)]
    name, side = find_column(heads, NAME_COLUMNS), find_column(heads, SIDE_COLUMNS)
    return name, find_column(heads, values), side, scans


def _read_plain(
    path: Path,
    table: Mapping[str, Sequence[str | None]],
    measure: Measure,
    atlas: Atlas,
) -> tuple[list[str], list[str | float | None]]:
    """Return names and cells of a table with a row, or a column, for every region."""
    found = SIDE_IN_NAME.search(path.name)
    side = found[1][0].upper() if found else None
    heads = tuple(table)
    name_column, column, side_column, scans = _find_columns(heads, measure.columns)
    if name_column is None and len(table[heads[0]]) == 1:
        whole = pd.DataFrame(table, dtype=object)
        values, kinds, _ = _read_columns(path, whole, atlas, side)
        best: dict[str, str | float | None] = {}
        for word in ("", *measure.words[::-1]):  # the measure's own columns count most
            best |= {atlas.names[i]: v[0] for (w, i), v in values.items() if w == word}
            strangers = [_split_head(head, atlas) for head in kinds["strangers"]]
            best |= {name: None for said, name in strangers if said == word}
        return list(best), list(best.values())
    if name_column is None or column is None:
        wanted = NAME_COLUMNS if name_column is None else measure.columns
        told = f"{', '.join(wanted)}; found {', '.join(heads)}"
        raise FileFormatError(f"{path}: no column headed {told}.")
    for head in scans:
        said = [*dict.fromkeys(cell for cell in table[head] if cell)]
        if len(said) > 1:  # a second visit could pass for the other side
            raise FileFormatError(
                f"{path}: the column {head!r} has {len(said)} values, such as "
                f"{said[0]!r} and {said[1]!r}; expected the regions of one scan."
            )
    names = [name or "" for name in table[name_column]]
    words = table[side_column] if side_column else [side] * len(names)
    sides = [HEMISPHERE_WORDS.get((word or "").lower()) for word in words]
    names = [
        # a name that says another side becomes unknown
        name if side in (None, split_name(name)[0]) else f"{side.lower()}h_{name}"
        for name, side in zip(names, sides, strict=True)
    ]
    bare = [n for n in names if not split_name(n)[0] and atlas.find(n, "L") is not None]
    half = len(bare) // 2
    if half > 1 and bare[:half] == bare[half:] and len(set(bare)) == half:
        # Clinica writes left, then right, and sums of the cortex before them
        sided = iter([f"{'lr'[i >= half]}h_{name}" for i, name in enumerate(bare)])
        names = [
            next(sided) if name in bare else name if split_name(name)[0] else "none"
            for name in names
        ]
    return names, list(table[column])


def _split_head(head: str, atlas: Atlas, side: str | None = None) -> tuple[str, str]:
    """Return the measure that a column's head says, and the name of its region."""
    if atlas.find(head, side) is not None:
        return "", head
    structures = atlas.settings.get("ucsf_structures", {})
    found = _UCSF.fullmatch(head)
    if found and found[1].upper() in structures:
        measure = _UCSF_MEASURES.get(found[2].upper(), "other")
        return measure, structures[found[1].upper()]
    found = _SUFFIX.fullmatch(head)
    return (WORDS[found[2].lower()], found[1]) if found else ("", head)


def unknown_names(names: Sequence[str], atlas: Atlas) -> str:
    """Return a sentence on names that are no regions of the atlas, empty if none."""
    try:
        atlas.rows(names)
    except RegionNameError as error:
        hint = atlas.settings.get("remake_values", "")
        return f"{error} {hint if atlas.other_atlas(names) else ''}".rstrip()
    return ""
