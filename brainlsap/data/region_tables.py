"""Read tables of regions in every layout that tools write.

Of many scans, a row each: FreeSurfer's `aparcstats2table` and `asegstats2table`, ADNI's
tables, and any whose columns are named by regions. Of one scan: a row or a column for
every region, both hemispheres in one file or in two, PET over time. Columns may say
their measure (`lh_cuneus_thickness`), the first head (`lh.aparc.a2009s.thickness`,
`Measure:volume`) or the file's name (`thickness.csv`) may say it for all, or nothing
does.

PETSurfer's `mri_gtmpvc` writes `gtm.stats.dat` without a header: index, number, name
and tissue of a segment, voxels, variance reduction, uptake, and in newer versions the
residual. petprep_extract_tacs writes `frame_start frame_end <regions>`, PETPrep
`FrameTimesStart FrameTimesEnd <regions>`: activity over time, which becomes SUVR by
the average over frames divided by that of a reference region.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas
from brainlsap.atlas.region_names import (
    HEMISPHERE_WORDS,
    MIDLINE_WORDS,
    are_counts,
    find_side,
    is_outside,
    split_name,
    split_words,
)
from brainlsap.data.covariates import kind_of
from brainlsap.data.find_files import SIDE_IN_NAME, ScanName, other_side, read_rows
from brainlsap.data.id_columns import NO_CHOICE, ChosenColumns
from brainlsap.data.measures import (
    PET_FEATURES,
    TRACERS,
    WORDS,
    Measure,
    Tracer,
    find_tracers,
    wrong_tracer,
)
from brainlsap.data.row_order import are_numbers
from brainlsap.data.tables import (
    FREESURFER_HEAD,
    NAME_COLUMNS,
    PEOPLE_COLUMNS,
    SESSION_COLUMNS,
    SIDE_COLUMNS,
    find_column,
    find_region_column,
    listed,
    parse_numbers,
    read_columns,
    read_lines,
    read_table,
)
from brainlsap.exceptions import (
    BrainlsapError,
    FileFormatError,
    ParameterError,
    RegionNameError,
    reading,
)
from brainlsap.findings import LEFT_OUT, Finding

# Covariates that a study adjusts for, though they are named like regions.
_HEAD_SIZES: tuple[str, ...] = ("etiv", "icv", "tiv", "st10cv")
_HEAD_SIZES += ("estimatedtotalintracranialvol", "intracranialvol")
_SCAN_COLUMNS = (*PEOPLE_COLUMNS, "scan_id", *SESSION_COLUMNS)
# What names of files and heads say -> measure; a tracer says it, too.
_WORDS = {word: t.feature for t in TRACERS for word in t.words}
_WORDS |= WORDS
_ANY_WORD = f"({'|'.join(map(re.escape, _WORDS))})"
_SUFFIX = re.compile(f"(.+?)[-_. ]{_ANY_WORD}", re.IGNORECASE)
_IN_FILE_NAME = re.compile(f"(?<![a-z0-9]){_ANY_WORD}(?![a-z0-9])")
# Share of the regions by whose columns a word of one's own is known, or a number.
_ENOUGH = 1 / 4
# Words that change no measure, and how many stand around a region's name at most.
_MEANS = {"mean", "avg", "average", "value", "values"}
_MOST_WORDS = 5
_UCSF = re.compile(r"(ST\d{1,3})(TA|SA|CV|SV|TS|HS)", re.IGNORECASE)
_UCSF_MEASURES = {"TA": "thickness", "SA": "area", "CV": "volume", "SV": "volume"}
_COPY = re.compile(r"\.\d+$")
# Reference region -> cores of the names whose mean it is.
REFERENCES = {
    "cerebellar cortex": ("cerebellumcortex",),
    "cerebellar white matter": ("cerebellumwhitematter",),
    "pons": ("pons",),
    "brain stem": ("brainstem",),
    "whole cerebellum": ("cerebellumcortex", "cerebellumwhitematter"),
}
# Heads of the starts and of the ends of frames.
_EDGES = ("frame_start", "frametimesstart"), ("frame_end", "frametimesend")


class ScanTable(NamedTuple):
    """A table of many scans, a row each.

    names : who and which visit every row is of; facts : labels and covariates as text;
    values : columns by measure ("" unsaid) and region (position in the atlas);
    strangers : names in heads that say a side but are no region of the atlas; outside :
    columns that atlases leave out on purpose; id_column, session_column : heads of the
    columns that names are of.
    """

    path: Path
    names: list[ScanName]
    facts: pd.DataFrame
    values: Mapping[tuple[str, int], np.ndarray] = MappingProxyType({})
    strangers: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    notes: tuple[Finding, ...] = ()
    id_column: str = ""
    session_column: str | None = None

    @property
    def is_exact(self) -> bool:
        """Whether it names no region that the atlas lacks."""
        return not self.outside + self.strangers

    @property
    def words(self) -> list[str]:
        """The measures that it says."""
        return sorted({word for word, _ in self.values} - {"", "other"})

    def holds(self, atlas: Atlas) -> str:
        """Say what stands there in place of what is looked for, if that is anything."""
        if self.words and not self.strangers:
            return f"{self.path.name} is of {', '.join(self.words)}"
        if not self.values and (head := find_region_column(self.facts, NAME_COLUMNS)):
            told = "expected a row for every scan, a column for every region; pivot it"
            return f"{self.path.name} has regions in its column {head!r}, {told}"
        if self.values or self.strangers or self.facts.shape[1] < _ENOUGH * len(atlas):
            return unknown_names(self.strangers, atlas)
        heads = listed(self.facts, 5)
        return f"{self.path.name}: no column is a region of {atlas.name}; found {heads}"

    def has(self, label: str | None) -> bool:
        """Return whether a column of facts is a label, in any case."""
        return label is None or find_column(self.facts, [label.lower()]) is not None


def read_sheets(
    path: str | Path, atlas: Atlas, chosen: ChosenColumns = NO_CHOICE
) -> tuple[list[ScanTable], list[str]]:
    """Read a table of many scans; of a workbook every sheet that is one.

    Returns why others are none, too. Raises what the first raises where none is.
    """
    found, errors, sheets = list[ScanTable](), list[BrainlsapError](), [""]
    if Path(path).suffix.lower() == ".xlsx":
        with reading(path, "an Excel workbook"), pd.ExcelFile(path) as book:
            if len(book.sheet_names) > 1:
                sheets = list(map(str, book.sheet_names))
    for sheet in sheets:
        try:
            found.append(read_scan_table(path, atlas, sheet, chosen))
        except BrainlsapError as error:
            errors.append(error)
    if not found:
        raise errors[0]
    return found, [*map(str, errors)]


def read_scan_table(
    path: str | Path, atlas: Atlas, sheet: str = "", chosen: ChosenColumns = NO_CHOICE
) -> ScanTable:
    """Read a table of many scans and sort its columns by what they mean.

    Raises FileFormatError, with everything that is wrong, where the file is no table,
    rows do not name scans, regions stand twice, or cells are no numbers.
    """
    names, table, id_column, session_column = read_rows(path, sheet, chosen)
    rows = [name.participant for name in names]
    if all(atlas.find(row) is not None for row in rows) and not are_counts(rows):
        raise FileFormatError(
            f"rows are named by regions, such as {rows[0]!r}; expected a row "
            "for every scan. Of a connectome say so by connectome= (--connectome).",
            path=path,
        )
    # what is said of the table names its sheet, which may say the measure, too
    path = Path(f"{path}, sheet {sheet!r}" if sheet else path)
    of_file = {_WORDS[word] for word in _IN_FILE_NAME.findall(path.name.lower())}
    of_file |= {tracer.feature for tracer in find_tracers(path.name)}
    of_file = of_file - {"suvr"} or of_file  # suvr_fdg.csv is of FDG
    side, said = None, of_file.pop() if len(of_file) == 1 else ""
    if said in ("", "suvr"):
        of_cells = find_tracer_features(table)
        said = of_cells.pop() if len(of_cells) == 1 else said
    if found := FREESURFER_HEAD.fullmatch(id_column):
        side = found[1].upper() if found[1] else None
        said = WORDS.get(found[2].lower(), "other")
    sorted_table = _sort_columns(path, names, table, atlas, side, said)
    return sorted_table._replace(id_column=id_column, session_column=session_column)


def find_tracer_columns(table: Mapping[str, Sequence[str | None]]) -> list[str]:
    """Return the columns whose cells name tracers, or that are headed so.

    A head that names one itself (`amyloid_tracer`) speaks of other values.
    """
    columns = list[str]()
    for head in table:
        cells = {cell for cell in table[head] if cell}
        if find_tracers(head) or not any(map(str.isalpha, min(cells, default=""))):
            continue
        is_said = (any(map(_is_exact, find_tracers(cell))) for cell in cells)
        if kind_of(head) == "tracer" or all(is_said):
            columns.append(head)
    return columns


def _is_exact(tracer: Tracer) -> bool:
    """Return whether a tracer is one, and not a word for a kind of tracers."""
    return tracer.name != tracer.feature


def find_tracer_features(table: Mapping[str, Sequence[str | None]]) -> set[str]:
    """Return the features (fdg, amyloid, tau) of the tracers in a table's cells."""
    cells = {c for head in find_tracer_columns(table) for c in table[head] if c}
    return {tracer.feature for cell in cells for tracer in find_tracers(cell)}


def _check_tracer(
    path: Path, table: Mapping[str, Sequence[str | None]], measure: str
) -> None:
    """Raise where the name or the cells of one scan's table say another tracer."""
    of_name = wrong_tracer(path.name, measure)
    if of_name is not None and find_tracers(of_name):
        raise FileFormatError(
            f"is of {of_name}, not of {measure}. Name its measure by feature=.",
            path=path,
        )
    others = find_tracer_features(table) - {measure}
    if others and measure in PET_FEATURES:
        heads = listed(map(repr, find_tracer_columns(table)))
        raise FileFormatError(
            f"the column {heads} names a tracer of {listed(sorted(others))}, "
            f"not of {measure}. Name its measure by feature=.",
            path=path,
        )


def _sort_columns(
    path: Path,
    names: list[ScanName],
    table: pd.DataFrame,
    atlas: Atlas,
    side: str | None,
    said: str = "",
) -> ScanTable:
    """Sort the columns of a table; `side` and `said` are of heads that say neither."""
    found: dict[tuple[str, int], list[str]] = {}
    strangers, outside, facts = list[str](), list[str](), list[str]()
    # pandas and others count the columns of one name
    bare = {head: _COPY.sub("", head) for head in table}
    bare = {head: name if name in table else head for head, name in bare.items()}
    own = _own_heads([*bare.values()], atlas, side)
    # a ratio is of the tracer that the file's name says
    unsaid = ("", "suvr") if said in PET_FEATURES else ("",)
    for head, original in bare.items():
        measure, name = own.get(original) or _split_head(original, atlas, side)
        place = atlas.find(name, side)
        is_left_out = is_outside(original) or is_outside(name)
        if place is not None:
            measure = said if measure in unsaid else measure
            found.setdefault((measure, place), []).append(head)
        elif is_left_out and original.lower() not in _HEAD_SIZES:
            outside.append(head)
        else:
            facts.append(head)
            if split_name(name)[0]:
                strangers.append(name)
    heads = [head for same in found.values() for head in same]
    columns = dict(zip(heads, parse_numbers(path, table[heads]).T, strict=True))
    values, doubled, spare, empty = {}, list[str](), list[str](), list[str]()
    for (measure, place), same in found.items():
        told = [one for one in same if columns[one].any() or bare[one] == one]
        column, region = columns[told[0]], atlas.names[place]
        values[measure, place] = column
        spare += [head for head in same if head != told[0]]
        if not all(
            np.array_equal(columns[one], column, equal_nan=True) for one in told
        ):
            doubled.append(f"{' and '.join(map(repr, same))} ({region})")
        if {*column[~np.isnan(column)]} == {0}:
            empty.append(region)
    if doubled:
        raise FileFormatError(
            f"{len(doubled)} regions stand in more than one column: "
            f"{listed(doubled)}. Keep one column for each.",
            path=path,
        )
    findings = _note_columns(spare, empty)
    facts += [] if values else outside
    mapped = values, tuple(strangers), tuple(outside), tuple(findings)
    return ScanTable(path, names, table[facts], *mapped)


def _note_columns(spare: Sequence[str], empty: Sequence[str]) -> list[Finding]:
    """Return notes on columns that are left out, and on regions without values."""
    findings = list[Finding]()
    if spare:
        message = "columns repeat others or are 0 everywhere, and are left out"
        findings.append(Finding(f"{len(spare)} {message}: {listed(spare)}", LEFT_OUT))
    if empty:
        message = "columns of regions are 0 in every row; write n/a where not measured"
        findings.append(Finding(f"{len(empty)} {message}: {listed(empty)}"))
    return findings


def read_region_values(
    path: str | Path,
    atlas: Atlas,
    measure: Measure,
    *,
    frames: tuple[float, float] | None = None,
    reference: str | None = None,
) -> tuple[np.ndarray, tuple[str, ...], np.ndarray]:
    """Read one scan's table: values in the order of an atlas, notes, regions there.

    It has a row for every region; one row with a column for every region; is
    PETSurfer's `gtm.stats.dat`; or activity over time, averaged over `frames` and
    divided by a `reference` as :func:`.average_frames` does. Of a file of one
    hemisphere, that of the other beside it is read, too.
    """
    path, notes = Path(path), tuple[str, ...]()
    divided = f"PET: divided by the mean of {reference or '_ref- file'}"
    cells: Sequence[str | float | None] | np.ndarray
    if path.name.endswith("gtm.stats.dat"):
        names, cells = read_gtm_stats(path, reference)
        notes = (divided if reference else "PET: values as mri_gtmpvc scaled them",)
    elif all(find_column(table := read_columns(path), edge) for edge in _EDGES):
        names, cells = average_frames(path, pd.DataFrame(table), frames, reference)
        names = [_split_head(head, atlas)[1] for head in names]
        notes = (divided,)
    else:
        names, cells = _read_plain(path, table, measure, atlas)
        if beside := other_side(path):
            more = _read_plain(beside, read_columns(beside), measure, atlas)
            names, cells = [*names, *more[0]], [*cells, *more[1]]
    if wrong := unknown_names(names, atlas):
        raise RegionNameError(wrong, path=path, values=find_other_atlas([names], atlas))
    rows, _ = atlas.rows(names)
    places = np.flatnonzero(rows >= 0)
    values = np.full(len(atlas), np.nan)
    heads = [f"{measure.name} of {atlas.names[place]}" for place in places]
    kept = np.array(cells, dtype=object)[rows[places]]
    values[places] = parse_numbers(path, kept[None], heads)[0]
    return values, notes, places


def _read_plain(
    path: Path,
    table: Mapping[str, Sequence[str | None]],
    measure: Measure,
    atlas: Atlas,
) -> tuple[list[str], list[str | float | None]]:
    """Return names and cells of a table with a row, or a column, for every region."""
    found = SIDE_IN_NAME.search(path.name)
    side = found[1][0].upper() if found else None
    texts = [head for head in table if not are_numbers(table[head])]  # before numbers
    name_column = find_region_column(texts, NAME_COLUMNS)
    name_column = name_column or find_region_column(table, NAME_COLUMNS)
    if name_column is None and len(next(iter(table.values()))) == 1:
        _check_tracer(path, table, measure.name)
        row = _sort_columns(path, [], pd.DataFrame(table, dtype=object), atlas, side)
        best: dict[str, str | float | None] = dict.fromkeys(row.strangers)
        # the measure's own columns count most
        for word in ("", *map(str.lower, measure.words[::-1])):
            known = {i: v[0] for (said, i), v in row.values.items() if said == word}
            best |= {atlas.names[i]: value for i, value in known.items()}
        return list(best), list(best.values())
    column = find_column(table, measure.columns)
    if name_column is None or column is None:
        wanted = NAME_COLUMNS if name_column is None else measure.columns
        told = f"{', '.join(wanted)}; found {', '.join(table)}"
        raise FileFormatError(f"no column headed {told}.", path=path)
    for head in [one for one in table if find_column([one], _SCAN_COLUMNS)]:
        said = [*dict.fromkeys(cell for cell in table[head] if cell)]
        if len(said) > 1:  # a second visit could pass for the other side
            raise FileFormatError(
                f"the column {head!r} has {len(said)} values, such as "
                f"{said[0]!r} and {said[1]!r}; expected the regions of one scan.",
                path=path,
            )
    _check_tracer(path, table, measure.name)
    names = [name or "" for name in table[name_column]]
    others = {h: c for h, c in table.items() if h not in (name_column, column)}
    return _add_sides(path, names, others, atlas, side), list(table[column])


def _add_sides(
    path: Path,
    names: list[str],
    columns: Mapping[str, Sequence[str | None]],
    atlas: Atlas,
    side: str | None,
) -> list[str]:
    """Return names of regions with the sides that columns, or the file, say of them.

    `side` is that of the file. Of names that come twice, a column that tells the two
    apart must say which is left; without one only Clinica's order is known. A name
    that says another side than its column becomes unknown.
    """
    is_bare = [
        not split_name(name)[0] and atlas.find(name, "L") is not None for name in names
    ]
    counts = Counter(name for name, bare in zip(names, is_bare, strict=True) if bare)
    doubled = [
        row for row, name in enumerate(names) if is_bare[row] and counts[name] == 2
    ]
    found = {h: [find_side(cell or "") for cell in columns[h]] for h in columns}
    known = [head for head in columns if find_column([head], SIDE_COLUMNS)]
    for head in known:
        unread = [
            repr(cell)
            for row, cell in enumerate(columns[head])
            if is_bare[row] and cell and not (found[head][row] or _is_middle(cell))
        ]
        if unread:
            raise FileFormatError(
                f"the column {head!r} has {listed(dict.fromkeys(unread), 5)}, "
                "which are no known words for left and right. Write left and right "
                "(or L and R, lh and rh) there.",
                path=path,
            )
    by_name: dict[str, list[int]] = {}
    for row in doubled:
        by_name.setdefault(names[row], []).append(row)
    pairs = [*by_name.values()]
    telling = [
        head
        for head in columns
        if doubled
        and all({found[head][row] for row in one} == {*"LR"} for one in pairs)
    ]
    if doubled and not telling:
        _refuse_halves(path, columns, pairs)
        if side is None and _is_clinica(path, columns):
            return _add_sides_of_clinica(names, is_bare)
        raise FileFormatError(
            f"{len(pairs)} regions, such as {names[doubled[0]]!r}, come twice, "
            "and nothing says which is left and which is right. Write the sides into "
            "the names (lh_, rh_), or into a column hemisphere (left, right).",
            path=path,
        )
    heads = dict.fromkeys([*telling, *known])
    sides = [side] * len(names)
    for head in heads:
        for row, of_column in enumerate(found[head]):
            if of_column and sides[row] not in (None, of_column):
                where = "the name of the file" if len(heads) == 1 else "another column"
                raise FileFormatError(
                    f"the column {head!r} says {columns[head][row]!r} of "
                    f"{names[row]!r}, and {where} says the other side. Correct it.",
                    path=path,
                )
            sides[row] = of_column or sides[row]
    return [
        name if side in (None, split_name(name)[0]) else f"{side.lower()}h_{name}"
        for name, side in zip(names, sides, strict=True)
    ]


def _refuse_halves(
    path: Path, columns: Mapping[str, Sequence[str | None]], pairs: list[list[int]]
) -> None:
    """Raise where a column has two values that tell regions of one name apart."""
    for head, cells in columns.items():
        values = dict.fromkeys(cells[row] for one in pairs for row in one)
        splits = all(len({cells[row] for row in one}) == 2 for one in pairs)
        if splits and len(values) == 2:
            told = " and ".join(repr(value or "n/a") for value in values)
            raise FileFormatError(
                f"the column {head!r} tells regions of one name apart by "
                f"{told}, which may be left and right, or right and left. Write left "
                "and right there.",
                path=path,
            )


def _is_middle(cell: str) -> bool:
    """Return whether a cell of sides says the midline, or both sides."""
    return cell.strip().lower() in MIDLINE_WORDS


def _is_clinica(path: Path, columns: Iterable[str]) -> bool:
    """Return whether a table has the form of Clinica's t1-freesurfer, both sides in it.

    Their files are `*_parcellation-<atlas>_<measure>.tsv` with two columns.
    """
    return "_parcellation-" in path.name and not [*columns]


def _add_sides_of_clinica(names: list[str], is_bare: list[bool]) -> list[str]:
    """Return names of Clinica's tables, which are sums, then left, then right."""
    bare = [name for name, is_one in zip(names, is_bare, strict=True) if is_one]
    half = len(bare) // 2
    if bare[:half] != bare[half:] or len(set(bare)) != half:
        return names  # unknown without a side
    sided = iter([f"{'lr'[i >= half]}h_{name}" for i, name in enumerate(bare)])
    return [
        next(sided) if is_one else name if split_name(name)[0] else "none"
        for name, is_one in zip(names, is_bare, strict=True)
    ]


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
    return (_WORDS[found[2].lower()], found[1]) if found else ("", head)


def _own_heads(
    heads: Sequence[str], atlas: Atlas, side: str | None
) -> dict[str, tuple[str, str]]:
    """Return measure and region of heads that say them in words of one's own.

    Such are the labels of the atlas, not counts, and a word before or behind the names
    of enough regions (`HIP_L_gmv`).
    """
    found, enough = dict[str, tuple[str, str]](), _ENOUGH * len(atlas)
    ids = atlas.regions["freesurfer_id"].astype(str)
    labels = dict(zip(ids, atlas.names, strict=True))
    numbers = [head for head in heads if head.isdecimal()]
    are_labels = {*numbers} <= {*labels} and not are_counts(numbers)
    if are_labels and len(numbers) > enough:
        return {number: ("", labels[number]) for number in numbers}
    for head in heads:
        is_known = atlas.find(_split_head(head, atlas, side)[1], side) is not None
        if is_known or is_outside(head):
            continue
        if (region := _find_region(head, atlas, side)) is not None:
            found[head] = region
    counts = Counter(word for word, _ in found.values())
    return {head: one for head, one in found.items() if counts[one[0]] > enough}


def _find_region(head: str, atlas: Atlas, side: str | None) -> tuple[str, str] | None:
    """Return the measure and the longest name of a region in a head, None if none.

    Other words stand before the name, behind it, or on both sides of it
    (`FDG_ctx-lh-insula_SUVR`); none of them may say a side.
    """
    gaps = [*re.finditer("[-_. :]+", head)]
    starts = [0, *(gap.end() for gap in gaps)]
    ends = [len(head), *(gap.start() for gap in gaps[::-1])]
    for n_outside in range(1, min(len(starts), _MOST_WORDS + 1)):
        for n_before in range(n_outside, -1, -1):
            start, end = starts[n_before], ends[n_outside - n_before]
            before, behind = head[:start].rstrip("-_. :"), head[end:].lstrip("-_. :")
            words = split_words(f"{before} {behind}")
            if not HEMISPHERE_WORDS.keys().isdisjoint(words):
                continue
            is_word = not (before.isdecimal() or behind.isdecimal())
            if is_word and atlas.find(head[start:end], side) is not None:
                return _name_measure(before, behind), head[start:end]
    return None


def _name_measure(before: str, behind: str) -> str:
    """Return the measure that words around a region's name say.

    A word that is known, beside a tracer's ratio or a mean; else the words themselves.
    """
    text = "_".join(filter(None, (before.lower(), behind.lower())))
    words = {*split_words(text)} - _MEANS
    measures = {_WORDS.get(word, word) for word in words}
    measures = measures - {"suvr"} or measures
    is_known = len(measures) == 1 and measures <= {*_WORDS.values()}
    return measures.pop() if is_known else text


def unknown_names(names: Sequence[str], atlas: Atlas) -> str:
    """Return a sentence on names that are no regions of the atlas, empty if none."""
    try:
        atlas.rows(names)
    except RegionNameError as error:
        hint = atlas.settings.get("remake_values", "")
        message = error.message
        n_unknown = error.values.get("n_unknown")
        # A table may pass its unknown names alone, so that their share says nothing.
        if n_unknown and n_unknown == error.values["n_names"]:
            message = f"{n_unknown} name(s) {error.values['description']}"
        return f"{message} {hint if atlas.other_atlas(names) else ''}".rstrip()
    return ""


def find_other_atlas(tables: Iterable[Sequence[str]], atlas: Atlas) -> dict[str, str]:
    """Return `{"atlas": name}` of the first other atlas that names of tables are of."""
    for names in tables:
        other = atlas.other_atlas(names) if names else None
        if other:
            return {"atlas": other}
    return {}


def read_gtm_stats(
    path: Path, reference: str | None = None
) -> tuple[list[str], np.ndarray]:
    """Return names and uptake of PETSurfer's segments.

    `reference`, a key of `REFERENCES` or a segment's name, becomes 1; by default
    values stay as `mri_gtmpvc` scaled them (to the pons unless told otherwise).
    """
    rows = [line.split() for line in read_lines(path)]
    counted = [row[0] for row in rows] == [str(i) for i in range(1, len(rows) + 1)]
    if {len(row) for row in rows} not in ({7}, {8}) or not counted:
        raise FileFormatError(
            "expected PETSurfer's rows of 7 or 8 cells, counted 1, 2 ... in "
            "their first column. The file may be cut short.",
            path=path,
        )
    table = pd.DataFrame([row[:7] for row in rows])
    names, (voxels, values) = table[2].tolist(), parse_numbers(path, table[[4, 6]]).T
    if reference is not None:
        values = values / _reference_mean(path, names, values, reference, voxels)
    return names, values


def average_frames(
    path: Path,
    table: pd.DataFrame,
    frames: tuple[float, float] | None = None,
    reference: str | None = None,
) -> tuple[list[str], np.ndarray]:
    """Average activity over a window of frames, divided by that of a reference.

    `frames` is the start and end of the window, needless where there is one frame;
    `reference` a key of `REFERENCES` or a column; by default PETPrep's one `_ref-` file
    beside the table.
    """
    names, values = _mean_of_frames(path, table, frames)
    if reference is not None:
        return names, values / _reference_mean(path, names, values, reference)
    stem = path.name.partition("_desc-")[0]
    files = list(path.parent.glob(f"{stem}_ref-*_timeseries.tsv"))
    if len(files) != 1:
        raise ParameterError(
            f"{path} holds activity over time; name the region that is to be 1 by "
            f"reference=, one of {', '.join(REFERENCES)}, or a column."
        )
    parts, means = _mean_of_frames(files[0], read_table(files[0]), frames)
    if len(parts) != 1:
        wanted = f"a time series of one reference region, got {listed(parts, 6)}"
        raise FileFormatError(f"expected {wanted}.", path=files[0])
    return names, values / _reference_mean(files[0], parts, means, parts[0])


def _mean_of_frames(
    path: Path, table: pd.DataFrame, frames: tuple[float, float] | None
) -> tuple[list[str], np.ndarray]:
    """Return the regions of a time series, and their means over a window."""
    edges = [find_column(table, words) for words in _EDGES]
    if None in edges:
        raise FileFormatError("no columns of starts and ends of frames.", path=path)
    # a head may be empty: such a column counts the rows
    names = [head for head in table if head and head not in edges]
    start, end = parse_numbers(path, table[edges]).T
    weights = frame_weights(path, start, end, frames)
    used = weights > 0
    return names, weights[used] @ parse_numbers(path, table[names])[used]


def frame_weights(
    path: Path, start: np.ndarray, end: np.ndarray, frames: tuple[float, float] | None
) -> np.ndarray:
    """Return the share of every frame in the average."""
    edges = ", ".join(f"{edge:g}" for edge in (*start[:40], *end[-1:]))
    if frames is None and len(start) != 1:
        raise ParameterError(
            f"{len(start)} frames that change at {edges}; say which to average "
            "by frames=, as start and end.",
            path=path,
        )
    first, last = frames or (start[0], end[0])
    inside = (start >= first - 1e-6) & (end <= last + 1e-6)
    duration = np.where(inside, end - start, 0)
    # frames that do not overlap fill the window, or one is cut by its edges
    follow = (end > start).all() and (start[1:] >= end[:-1] - 1e-6).all()
    is_filled = np.isclose(duration.sum(), last - first, rtol=1e-3) and inside.any()
    if not (follow and is_filled):
        raise FileFormatError(
            f"frames must follow each other, and the window {first:g} to "
            f"{last:g} must begin and end where frames do; they change at {edges}.",
            path=path,
        )
    return duration / duration.sum()


def _reference_mean(
    path: Path,
    names: Sequence[str],
    values: np.ndarray,
    reference: str,
    sizes: np.ndarray | None = None,
) -> float:
    """Return the mean of a reference region over its volume.

    Where sizes are not known, left and right of one structure count alike; two tissues
    do not.
    """
    side, core = split_name(reference)
    cores = REFERENCES.get(reference.lower(), (core,))
    parts = [(row, *split_name(name)) for row, name in enumerate(names)]
    found = {row: core for row, s, core in parts if core in cores and side in (None, s)}
    if set(found.values()) != set(cores):
        raise FileFormatError(
            f"no region {reference!r} to refer to; known are "
            f"{', '.join(REFERENCES)} and the regions of the file.",
            path=path,
        )
    if len(cores) > 1 and sizes is None:
        raise FileFormatError(
            f"the {reference} has {len(found)} parts, which count by their "
            "volumes, and those are not known. Give another reference=.",
            path=path,
        )
    rows = list(found)
    mean = np.average(values[rows], weights=None if sizes is None else sizes[rows])
    if not 0 < mean < np.inf:
        raise FileFormatError(
            f"{reference} has the mean {mean:g}; expected more than 0.", path=path
        )
    return float(mean)
