"""Read tables of regions in every layout that tools write.

Of many scans, a row each: FreeSurfer's `aparcstats2table` and `asegstats2table`, ADNI's
tables, and any whose columns are named by regions. Of one scan: a row or a column for
every region, both hemispheres in one file or in two, PET over time. Columns may say
their measure (`lh_cuneus_thickness`), the first head (`lh.aparc.a2009s.thickness`,
`Measure:volume`) or the file's name (`thickness.csv`) may say it for all, or nothing
does.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas
from brainlsap.atlas.region_names import HEMISPHERE_WORDS, is_outside, split_name
from brainlsap.data.measures import WORDS, Measure
from brainlsap.data.pet_tables import (
    average_frames,
    is_gtm_stats,
    is_time_series,
    read_gtm_stats,
)
from brainlsap.data.tables import (
    SESSION_COLUMNS,
    find_id,
    listed,
    parse_numbers,
    read_lines,
    read_table,
)
from brainlsap.exceptions import FileFormatError, RegionNameError

# Covariates that a study adjusts for, though they are named like regions.
_HEAD_SIZES = (
    *("etiv", "estimatedtotalintracranialvol", "intracranialvol", "icv", "tiv"),
    "st10cv",
)
_NAME_COLUMNS = (
    *("region", "name", "label_name", "label", "structname", "structure", "roi"),
)
_PERSON_COLUMNS = ("participant_id", "subject_id", "subject", "ptid", "rid", "scan_id")
_SIDE_COLUMNS = ("hemisphere", "hemi", "side")
_SIDE_OF_FILE = re.compile(
    r"(?:^|_)hemi-(l|r)(?:eft|ight|h)?(?:_|$)|^([lr])h\.", re.IGNORECASE
)
_SUFFIX = re.compile(rf"(.+?)[-_. ]({'|'.join(WORDS)})", re.IGNORECASE)
_UCSF = re.compile(r"(ST\d{1,3})(TA|SA|CV|SV|TS|HS)", re.IGNORECASE)
_UCSF_MEASURES = {"TA": "thickness", "SA": "area", "CV": "volume", "SV": "volume"}
_APARC_HEAD = re.compile(r"(lh|rh)\.(.+)\.([a-z]+)")
_ASEG_HEAD = re.compile(r"measure:(\w+)", re.IGNORECASE)
_COPY = re.compile(r"(.+)\.\d+")


class ScanTable(NamedTuple):
    """A table of many scans whose columns are sorted by what they mean."""

    path: Path
    scans: pd.DataFrame
    """A row a scan: `scan`, `session` (None without), labels and covariates as text."""
    values: pd.DataFrame
    """`row` of `scans`, `region` (place in atlas), `measure` ("" unsaid), `value`."""
    heads: dict[tuple[str, int], str]
    """Column of every measure and region."""
    strangers: tuple[str, ...]
    """Columns that name a side but no region of the atlas."""
    outside: tuple[str, ...]
    """Columns that atlases leave out on purpose."""
    head_size: np.ndarray | None
    """Intracranial volume (eTIV) of every row, NaN where it is not above 0."""
    notes: tuple[str, ...]


def read_scan_table(  # noqa: C901 (one kind of column after the other)
    path: str | Path, atlas: Atlas
) -> ScanTable:
    """Read a table of many scans and sort its columns by what they mean.

    Raises FileFormatError, with everything that is wrong, where the file is no table,
    no column names the scans, regions stand twice, or cells are no numbers.
    """
    path = Path(path)
    table = read_table(path)
    heads = list(table.columns)
    side, said = _read_first_head(heads[0])
    words = re.split(r"[^a-z0-9]+", path.stem.lower())
    of_file = {WORDS[word] for word in words if word in WORDS}
    said = said or (of_file.pop() if len(of_file) == 1 else "")
    id_column, session_column = find_id(path, heads)
    nameless = np.flatnonzero(table[id_column].isna())
    if nameless.size:
        raise FileFormatError(
            f"{path}: row {nameless[0] + 1} below the header has no "
            f"{id_column or 'name in its first column'}."
        )
    found: dict[tuple[str, int], list[str]] = {}
    kinds: dict[str, list[str]] = {"strangers": [], "outside": [], "others": []}
    for head in heads:
        if head in (id_column, session_column):
            continue
        copied = _COPY.fullmatch(head)
        original = copied[1] if copied and copied[1] in heads else head
        measure, place = find_region(original, atlas, side)
        if place is not None:
            found.setdefault((measure or said, place), []).append(head)
        else:
            kinds[_kind_of_head(original, atlas)].append(head)
    columns = [head for same in found.values() for head in same]
    numbers = pd.DataFrame(
        parse_numbers(path, table[columns]), columns=columns, dtype=float
    )
    chosen: dict[tuple[str, int], str] = {}
    doubled, copies = [], []
    for (measure, place), same in found.items():
        first = min(same, key=lambda head: _COPY.fullmatch(head) is not None)
        chosen[measure, place] = first
        for head in same:
            copied = numbers[head].equals(numbers[first]) or (numbers[head] == 0).all()
            if head != first and _COPY.fullmatch(head) and copied:
                copies.append(head)
            elif head != first:
                doubled.append(f"{first!r} and {head!r} ({atlas.names[place]})")
    _refuse_doubled(path, doubled)
    known = numbers[list(chosen.values())]
    empty = known.columns[known.notna().any() & known.fillna(0).eq(0).all()]
    notes = []
    if copies:
        what = "columns repeat others or are 0 everywhere, and are left out"
        notes.append(f"{len(copies)} {what}: {listed(copies)}")
    if len(empty):
        what = "columns of regions are 0 in every row; write n/a where not measured"
        notes.append(f"{len(empty)} {what}: {listed(empty)}")
    n_rows = len(table)
    values = pd.DataFrame(
        {
            "row": np.tile(np.arange(n_rows), len(chosen)),
            "region": np.repeat([place for _, place in chosen], n_rows).astype(int),
            "measure": np.repeat([measure for measure, _ in chosen], n_rows),
            "value": known.to_numpy().T.ravel(),
        }
    )
    sessions = None if session_column is None else table[session_column]
    scans = pd.DataFrame({"scan": table[id_column], "session": sessions}, dtype=object)
    more = [h for h in kinds["others"] + kinds["strangers"] if h not in scans.columns]
    scans = pd.concat([scans, table[more]], axis=1)
    size_column = _first_of(_HEAD_SIZES, heads)
    head_size = None
    if size_column is not None:
        sizes = pd.to_numeric(table[size_column], errors="coerce").to_numpy(float)
        head_size = np.where(sizes > 0, sizes, np.nan)
    strangers, outside = tuple(kinds["strangers"]), tuple(kinds["outside"])
    return ScanTable(
        path, scans, values, chosen, strangers, outside, head_size, tuple(notes)
    )


def _refuse_doubled(path: Path, doubled: Sequence[str]) -> None:
    """Refuse a table in which regions stand twice, with all of them."""
    if doubled:
        raise FileFormatError(
            f"{path}: {len(doubled)} regions stand in more than one column: "
            f"{listed(doubled)}. Keep one column for each."
        )


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
    path = Path(path)
    if measure.by_head_size:
        raise FileFormatError(
            f"{path}: {measure.name} needs the intracranial volume, which tables of "
            "regions do not hold; read it from FreeSurfer's stats or tables of scans."
        )
    scaled = Path(reference).name if reference is not None else "_ref- file"
    notes: tuple[str, ...] = (f"PET: divided by the mean of {scaled}",)
    lines = read_lines(path) if path.suffix.lower() in (".dat", ".txt") else []
    names: Sequence[str]
    cells: Sequence[str | None] | np.ndarray
    if is_gtm_stats(path, lines):
        words = None if reference is None else str(reference)
        names, cells = read_gtm_stats(path, lines, words)
        if reference is None:
            notes = ("PET: values as mri_gtmpvc scaled them",)
    else:
        table = read_table(path)
        if is_time_series(list(table.columns)):
            names, cells = average_frames(path, table, frames, reference)
            names = [_split_head(head, atlas)[1] for head in names]
        else:
            names, cells = _read_plain(path, table, measure, atlas)
            beside = other_side(path)
            if beside is not None:
                more = _read_plain(beside, read_table(beside), measure, atlas)
                names, cells = [*names, *more[0]], [*cells, *more[1]]
            notes = ()
    try:
        rows, _ = atlas.rows(names)
    except RegionNameError as error:
        other = atlas.other_atlas(names)
        hint = f" {atlas.settings.get('remake_values', '')}" if other else ""
        raise RegionNameError(f"{path}: {error}{hint}") from error
    places = np.flatnonzero(rows >= 0)
    values = np.full(len(atlas), np.nan)
    heads = [f"{measure.name} of {atlas.names[place]}" for place in places]
    kept = np.array(cells, dtype=object)[rows[places]]
    # one block of cells: a column each would cost ten times as much
    cells = pd.DataFrame(kept[None], columns=heads, dtype=object)
    values[places] = parse_numbers(path, cells)[0]
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


def _read_plain(  # noqa: C901 (one question after the other)
    path: Path, table: pd.DataFrame, measure: Measure, atlas: Atlas
) -> tuple[list[str], list[str | None]]:
    """Return names and cells of a table with a row, or a column, for every region."""
    found = _SIDE_OF_FILE.search(path.name)
    side = (found[1] or found[2]).upper() if found else None
    heads = {name.lower(): name for name in table.columns}
    if len(table) == 1 and not any(name in heads for name in _NAME_COLUMNS):
        return _read_wide(path, table, measure, atlas, side)
    for head in (*SESSION_COLUMNS, *_PERSON_COLUMNS):
        said = table[heads[head]].dropna().unique() if head in heads else []
        if len(said) > 1:  # a second visit could pass for the other side
            raise FileFormatError(
                f"{path}: the column {heads[head]!r} has {len(said)} values, such as "
                f"{said[0]!r} and {said[1]!r}; expected the regions of one scan."
            )
    columns = []
    for wanted in (_NAME_COLUMNS, measure.columns):
        column = _first_of(wanted, table.columns)
        if column is None:
            raise FileFormatError(
                f"{path}: no column headed {', '.join(wanted)}; found "
                f"{', '.join(heads.values())}."
            )
        columns.append(column)
    names = [str(name or "") for name in table[columns[0]]]
    cells = table[columns[1]].tolist()
    side_column = _first_of(_SIDE_COLUMNS, table.columns)
    sides = table[side_column].tolist() if side_column else [side] * len(names)
    for i, (name, cell) in enumerate(zip(names, sides, strict=True)):
        by_column, by_name = (
            HEMISPHERE_WORDS.get((cell or "").lower()),
            split_name(name),
        )
        if by_column and by_name[0] not in (None, by_column):
            raise RegionNameError(
                f"{path}: the name {name!r} says {by_name[0]}, but its hemisphere says "
                f"{by_column}. Correct one of them."
            )
        if by_column and not by_name[0]:
            names[i] = f"{by_column.lower()}h_{name}"
    bare = [n for n in names if not split_name(n)[0] and atlas.find(n, "L") is not None]
    half = len(bare) // 2
    if half > 1 and bare[:half] == bare[half:] and len(set(bare)) == half:
        # Clinica writes left, then right, and sums of the cortex before them
        seen: set[str] = set()
        for i, name in enumerate(names):
            if name in bare:
                names[i] = f"{'rh' if name in seen else 'lh'}_{name}"
                seen.add(name)
            elif not split_name(name)[0]:
                names[i] = "none"
    return names, cells


def _read_wide(
    path: Path, table: pd.DataFrame, measure: Measure, atlas: Atlas, side: str | None
) -> tuple[list[str], list[str | None]]:
    """Return names and cells of a table of one row; the measure's own columns count."""
    ranks = {word: rank for rank, word in enumerate((*measure.words, ""))}
    chosen: dict[str, tuple[int, str]] = {}
    doubled = []
    for head in table.columns:
        word, place = find_region(head, atlas, side)
        is_stranger = place is None and _kind_of_head(head, atlas) == "strangers"
        if word not in ranks or (place is None and not is_stranger):
            continue
        name = _split_head(head, atlas)[1] if place is None else atlas.names[place]
        rank, known = chosen.get(name, (99, ""))
        if rank == ranks[word]:
            doubled.append(f"{known!r} and {head!r} ({name})")
        chosen[name] = min((rank, known), (ranks[word], head))
    _refuse_doubled(path, doubled)
    return list(chosen), [table[head].iat[0] for _, head in chosen.values()]


def other_side(path: Path) -> Path | None:
    """Return the file of the other hemisphere beside a file of one, if there is one."""
    for pair in (("left", "right"), ("L", "R"), ("lh", "rh")):
        for one, other in (pair, pair[::-1]):
            name = re.sub(rf"(^|_|hemi-){one}(?=[_.])", rf"\1{other}", path.name)
            if name != path.name and path.with_name(name).is_file():
                return path.with_name(name)
    return None


def find_region(
    head: str, atlas: Atlas, side: str | None = None
) -> tuple[str, int | None]:
    """Return measure ("" where unsaid) and region (None: no region) of a column's head.

    >>> from brainlsap.atlas import load_atlas
    >>> find_region("lh_bankssts_area", load_atlas("desikan82"))
    ('area', 0)
    """
    place = atlas.find(head, side)
    if place is not None:
        return "", place
    measure, name = _split_head(head, atlas)
    return measure, None if name == head else atlas.find(name, side)


def _split_head(head: str, atlas: Atlas) -> tuple[str, str]:
    """Return the measure that a column's head says, and the name of its region."""
    structures = atlas.settings.get("ucsf_structures", {})
    found = _UCSF.fullmatch(head)
    if found and found[1].upper() in structures:
        measure = _UCSF_MEASURES.get(found[2].upper(), "other")
        return measure, structures[found[1].upper()]
    found = _SUFFIX.fullmatch(head)
    return (WORDS[found[2].lower()], found[1]) if found else ("", head)


def unknown_columns(table: ScanTable, atlas: Atlas) -> str:
    """Return a sentence on the columns that name a side but no region of the atlas."""
    names = [_split_head(head, atlas)[1] for head in table.strangers]
    hint = atlas.settings.get("remake_values", "") if atlas.other_atlas(names) else ""
    try:
        atlas.match(names)
    except RegionNameError as error:
        return f"{error} {hint}".rstrip()
    return ""


def _first_of(wanted: Sequence[str], heads: Sequence[str]) -> str | None:
    lower = {head.lower(): head for head in heads}
    return next((lower[name] for name in wanted if name in lower), None)


def _read_first_head(head: str) -> tuple[str | None, str]:
    """Return the side and measure that FreeSurfer's tables say in their first head.

    >>> _read_first_head("lh.aparc.a2009s.thickness")
    ('L', 'thickness')
    """
    if found := _APARC_HEAD.fullmatch(head.lower()):
        return found[1][0].upper(), WORDS.get(found[3], "other")
    if found := _ASEG_HEAD.fullmatch(head):
        return None, "volume" if found[1].lower() == "volume" else "other"
    return None, ""


def _kind_of_head(head: str, atlas: Atlas) -> str:
    """Return what a column is that is no region: outside, strangers or others."""
    name = _split_head(head, atlas)[1]
    if head.lower() in _HEAD_SIZES:
        return "others"
    if is_outside(head) or is_outside(name):
        return "outside"
    return "others" if split_name(name)[0] is None else "strangers"
