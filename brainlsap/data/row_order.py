"""What the rows of a matrix without names are: a list beside it, or a tool's order.

An order is taken without being asked for only where one documented tool writes
matrices of that size. Everything else is refused, with all that such a size may mean.
"""

import json
import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas
from brainlsap.atlas.region_names import HEMISPHERE_WORDS, are_counts
from brainlsap.data.table_rows import sniff_delimiter, split_cells
from brainlsap.data.tables import (
    INDEX_COLUMNS,
    NAME_COLUMNS,
    SIDE_COLUMNS,
    find_head,
    find_region_column,
    read_lines,
    read_table,
)
from brainlsap.exceptions import FileFormatError, check_choice, reading

ROW_ORDERS = ("atlas", "labels", "mrtrix", "micapipe", "freesurfer")
_STRUCTURES = "Thalamus Caudate Putamen Pallidum Hippocampus Amygdala Accumbens-area"
# Cerebellar rows of micapipe's full matrices, as its two versions count them, and of
# its subcortical ones.
_CEREBELLAR = (34, 28, 0)
_MICAPIPE = re.compile(
    r"(^|/)micapipe|[-_/](cor|sub|full)-(connectome|edgelengths)[^/]*$", re.IGNORECASE
)
# pandas writes whole numbers so where one is missing.
_WHOLE = re.compile(r"^(\d+)\.0+$")
# Fewer rows than this are never label numbers: parcellations count from 1, too.
_FEWEST_LABELS = 1000
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
# Three numbers in brackets behind a name: a place.
_IN_BRACKETS = re.compile(
    r"\s*[(\[]\s*" + r"[,;\s]+".join([r"([-+]?\d+\.?\d*)"] * 3) + r"\s*[)\]]\s*$"
)
# A number and a sign before the name: `1: Insula`, `1) Insula`, `1. Insula`.
_COUNTED = re.compile(r"\s*(\d+)\s*(?:[:=)]|\.(?=\s))\s*(?=\S)")
_WORKBENCH = re.compile(r"\s*\d+(\s+\d{1,3}){4}\s*")
_ENDING = re.compile(r"\.[^.]+(\.gz)?$", re.IGNORECASE)
_SIDECARS = ("labels.txt", "labels.csv", "labels.tsv", "labels_list.txt")


class RowOrder(NamedTuple):
    """Names of the rows of a tool's matrices, and whether their number says so."""

    tool: str
    names: tuple[str, ...]
    note: str
    by_size: bool


@lru_cache(maxsize=16)
def row_orders(atlas: Atlas) -> tuple[RowOrder, ...]:
    """Return the orders that matrices of an atlas without names may have."""
    settings, regions = atlas.settings, atlas.regions[atlas.cortex]
    regions = regions.sort_values("freesurfer_id")
    cortex = [regions["name"][regions["hemisphere"] == s].tolist() for s in "LR"]
    below = [[f"{s}-{name}" for name in _STRUCTURES.split()] for s in ("Left", "Right")]
    known, own = settings.get("unnamed_rows", False), f"in the order of {atlas.name}"
    orders = [RowOrder("atlas", atlas.names, f"read {own}", known)]
    numbered = atlas.regions.query("freesurfer_id > 0").sort_values("freesurfer_id")
    if not known and len(numbered) == len(atlas):
        note = f"read in the order of the label numbers of {atlas.name}"
        orders.append(RowOrder("labels", tuple(numbered["name"]), note, False))
        # without MRtrix's labelconvert there is a row for every number
        every, last = (
            [*map(str, range(numbered["freesurfer_id"].max() + 1))],
            "rows read",
        )
        for first in (1, 0) if len(every) > len(atlas) + 1 else ():
            note = f"{last} as label numbers of {atlas.name}, from {first}"
            orders.append(RowOrder("labels", tuple(every[first:]), note, False))
    if "mrtrix" in settings:
        left = (*cortex[0], "Left-Cerebellum-Cortex", *below[0])
        names = (*left, *below[1], *cortex[1], "Right-Cerebellum-Cortex")
        table = f"MRtrix's {settings['mrtrix']} ({len(names)} nodes)"
        note = f"read in the order of {table}"
        orders.append(RowOrder("mrtrix", names, note, True))
        # as of tck2connectome -keep_unassigned
        note += " after a first row for label 0"
        orders.append(RowOrder("mrtrix", ("Unknown", *names), note, True))
    if "wall" in settings:
        for side in cortex:
            side.insert(settings["wall"], "Medial_wall")
        for n in _CEREBELLAR:
            structures = (*below[0], *below[1], *("Cerebellum",) * n)
            names = (*structures, *cortex[0], *cortex[1])
            what = f"full matrix ({n} cerebellar rows)" if n else "subcortical matrix"
            note = f"read in the order of micapipe's {what}"
            orders.append(RowOrder("micapipe", names, note, n > 0))
    return tuple(orders)


def find_names(
    path: Path,
    values: np.ndarray,
    atlas: Atlas,
    row_order: str | None = None,
    labels: str | Path | Sequence[str] | None = None,
    own: Sequence[str] = (),
) -> tuple[tuple[str, ...], str]:
    """Return the names of the rows of a matrix, and whence they are.

    `labels` count before the names of the file's `own`, these before lists beside the
    matrix (BIDS, BEP017, writes a `.json` of its name, scilpy and Connectoflow a
    `labels_list.txt`), and last the order of a tool. Raises FileFormatError with the
    candidates where neither a list nor the number of rows says whose order it is.
    """
    n = len(values)
    if row_order is not None:
        check_choice("row_order", row_order, ROW_ORDERS)
    names: Sequence[str] | None = None
    if labels is not None:
        origin = "rows named by labels="
        names = read_names(labels) if isinstance(labels, str | Path) else labels
    elif own and not are_counts(own):
        names, origin = own, "read by name"
    elif row_order is None:
        stem = _ENDING.sub("", path.name)
        beside = [f"{stem}_labels{end}" for end in (".txt", ".csv", ".tsv")]
        # of folders above, those up to the one that holds this person's; a list
        # elsewhere may be of an atlas, or of another study
        inside = next((p for p in path.parents if p.name.startswith("sub-")), path)
        folder, *above = path.parents[: len(path.parts) - len(inside.parts) + 1]
        lists = [f"{folder}/{name}" for name in (*beside, f"{stem}.json", *_SIDECARS)]
        lists += [f"{one}/{name}" for one in above for name in _SIDECARS]
        # few matrices have one; a Path for every place would cost more than to read it
        for file in [Path(one) for one in lists if os.access(one, os.F_OK)]:
            if file == path or not file.is_file():
                continue
            is_json = file.suffix == ".json"
            found = _bids_nodes(file) if is_json else read_names(file)
            # one above that has another length is of other matrices
            if found is not None and (len(found) == n or file.parent == folder):
                # the name of a .json differs by scan
                what = "the .json beside the matrix" if is_json else file.name
                names, origin = found, f"rows named by {what}"
                break
    if names is None:
        return _names_by_size(path, values, atlas, row_order)
    if len(names) != n:
        raise FileFormatError(
            f"{path}: {n} rows, but {len(names)} names ({origin}); expected one for "
            "each row. Correct them, or give others by labels=."
        )
    return tuple(names), origin


def _names_by_size(
    path: Path, values: np.ndarray, atlas: Atlas, row_order: str | None
) -> tuple[tuple[str, ...], str]:
    """Return the names in the order of a tool that alone writes so many rows."""
    n, hint = len(values), ""
    fitting = [order for order in row_orders(atlas) if len(order.names) == n]
    numbers = atlas.regions["freesurfer_id"]
    if n >= _FEWEST_LABELS and 0 <= numbers.min() <= numbers.max() < n:
        note = "rows read as FreeSurfer's label numbers, from 0"
        fitting.append(RowOrder("freesurfer", tuple(map(str, range(n))), note, True))
    tool = row_order or ("micapipe" if _MICAPIPE.search(path.as_posix()) else None)
    taken = [order for order in fitting if order.tool == tool][:1]
    if not taken and row_order is None:
        # 14 structures and the cortex with a wall or callosum on each side have as
        # many rows as MRtrix's nodes, which have cortex at those places
        walls = atlas.settings.get("walls", {"size": 0})
        for rows in walls["rows"] if walls["size"] == n else ():
            if values.any() and not (values[rows].any() or values[:, rows].any()):
                first, second = rows
                hint = f" Rows {first + 1} and {second + 1} are empty, as walls are."
        taken = [order for order in fitting if order.by_size and not hint]
    if len(taken) == 1:
        return taken[0].names, taken[0].note
    orders = {one.names: one for one in fitting[::-1]}
    both = np.array([*orders]).reshape(len(orders), n)
    row = int((both != both[:1]).any(axis=0).argmax())  # the first that differs
    could = [
        f"{order.note.removeprefix('read ')} (row_order='{order.tool}': row {row + 1} "
        f"is {names[row]}, row {n} {names[-1]})"
        for names, order in orders.items()
    ]
    could += filter(None, [atlas.settings.get("sizes", {}).get(str(n))])
    if n == len(atlas) + 1:
        could.append("the regions and one row more; name the rows, Unknown for label 0")
    said = f" as row_order={row_order!r}" if row_order else ""
    if could:
        hint = f" {n} rows could be: {'; '.join(could)}.{hint}"
    raise FileFormatError(
        f"{path}: a matrix of {n} x {n} without names cannot be mapped to {atlas.name} "
        f"({len(atlas)} regions){said}.{hint} Write the names of the regions into the "
        "first row and column, give them by labels=, say whose order it is by "
        "row_order=, or choose the atlas that fits."
    )


def read_labels(path: str | Path, present: Iterable[object] = ()) -> pd.DataFrame:
    """Read names of regions, one a line: columns `index` ("" where none), `name` ...

    Of a table with a header (`NAME_COLUMNS`) all columns are returned, heads in lower
    case. A line of a list or lookup table is a name, and numbers before and behind it:
    whole ones, colours, or the region's place (`x`, `y`, `z`). Of several columns of
    whole numbers that one is the index which has the labels `present` in an image, or
    else the first.
    """
    lines = read_lines(path)
    if not lines:
        raise FileFormatError(f"{path}: the file is empty; expected names of regions.")
    if lines[0].lstrip().startswith("<"):
        raise FileFormatError(
            f"{path}: is XML; expected names of regions, a table or a list. Write a "
            "number and a name on each line (1 more than the index of FSL's atlases)."
        )
    if (labels := _read_workbench_list(lines)) is not None:
        return labels
    lines = [_IN_BRACKETS.sub(r" \1 \2 \3", line) for line in lines]
    if all(map(_COUNTED.match, lines)):
        lines = [_COUNTED.sub(r"\1 ", line, count=1) for line in lines]
    delimiter = sniff_delimiter(lines[0])
    cells = [filter(None, split_cells(line, delimiter)) for line in lines]
    rows = [[_WHOLE.sub(r"\1", cell) for cell in row] or [""] for row in cells]
    has_number = any(map(_NUMBER.fullmatch, rows[0]))
    is_list = has_number or find_region_column(rows[0], NAME_COLUMNS) is None
    if is_list:
        table = _read_list(path, rows, delimiter is not None)
    else:
        table = read_table(path).fillna("").rename(columns=str.lower)
        table = table.replace(_WHOLE, r"\1", regex=True)
    texts = [head for head in table if not are_numbers(table[head])]
    # of several that which tells all regions apart
    distinct = [head for head in texts if table[head].is_unique]
    found = (find_region_column(one, NAME_COLUMNS) for one in (distinct, texts, table))
    name = next(filter(None, found))
    rest = (head for head in texts if find_head([head], SIDE_COLUMNS) is None)
    words = [h for h in rest if pd.to_numeric(table[h], errors="coerce").isna().all()]
    if words and name not in texts:
        raise FileFormatError(
            f"{path}: the column {name!r} holds numbers and no names; call that of the "
            f"names 'name' ({', '.join(words)}?)."
        )
    numbers = [head for head in table if head not in (*texts, name)]
    wanted = {str(number).removesuffix(".0") for number in present}
    fitting = [head for head in numbers if wanted.issubset(table[head])] or numbers
    others = fitting if wanted or is_list else ()
    fitting = [head for head in fitting if not is_list or head not in "xyz"]
    index = find_region_column(fitting, (*INDEX_COLUMNS, *NAME_COLUMNS, *others))
    names, counts = table.pop(name), "" if index is None else table.pop(index)
    table = table.assign(index=counts, name=names)
    if not is_list:
        return table
    table = table[["index", "name", *(axis for axis in "xyz" if axis in table)]]
    table.attrs["is_list"] = True
    return table


def _read_list(path: str | Path, rows: list[list[str]], is_cut: bool) -> pd.DataFrame:
    """Return whole numbers ("0" ...), `name`, and x, y, z of lines without a header.

    The cells that are numbers in every line, before and behind the name, are columns;
    other numbers belong to the name (`Brodmann area 44 L`).
    """
    first, *rest = rows
    is_table = is_cut or any(map(_are_any_numbers, zip(*rest, strict=False)))
    is_head = is_table and len(first) > 1 and not any(map(_NUMBER.fullmatch, first))
    n_numbers = [*map(_count_numbers, rows)]
    n_before, n_bare = min(n_numbers), n_numbers.count(0)
    if 0 < n_bare < len(rows) and not is_head:
        numbered = " ".join(rows[n_numbers.index(max(n_numbers))])
        raise FileFormatError(
            f"{path}: {len(rows) - n_bare} of {len(rows)} lines begin with a number "
            f"({numbered!r}), the others do not. "
            "Give every line its number, or write name into the first line where such "
            "numbers are parts of names."
        )
    n_behind = min(_count_numbers(row[::-1]) for row in rows)
    if n_before + n_behind >= min(map(len, rows)):  # names are numbers, too
        n_behind = 0
    words = [row[n_before : len(row) - n_behind] for row in rows]
    # a short name and a long one, or a name and a side, need no heads
    if is_head or (is_cut and max(map(len, words)) > 2):
        raise FileFormatError(
            f"{path}: no column of names among {', '.join(map(repr, first))}; "
            f"understood are {', '.join(NAME_COLUMNS)} (or roi_name ...), and for "
            f"their numbers {', '.join(filter(None, INDEX_COLUMNS))}. Name the columns "
            "so in the first row."
        )
    before = [[row[i] for row in rows] for i in range(n_before)]
    behind = [[row[i - n_behind] for row in rows] for i in range(n_behind)]
    places = _find_coordinates(path, before, behind)
    names = [" ".join(part) for part in words]
    for columns, place in ((behind, 0), (before, -1)):
        if places or not columns or not _is_part_of_name(columns, place, words, is_cut):
            continue
        pairs = zip(columns.pop(place), names, strict=True)
        ordered = (pair[::-1] if columns is behind else pair for pair in pairs)
        names = [*map(" ".join, ordered)]
    has_numbers = bool(behind) and not places
    if (is_cut or has_numbers) and (long_names := _choose_long_names(words, is_cut)):
        names = long_names
    numbers = [column for column in (*before, *behind) if are_numbers(column)]
    table = pd.DataFrame({str(i): cells for i, cells in enumerate(numbers)})
    return table.assign(name=names, **places)


def _is_part_of_name(
    columns: list[list[str]], place: int, words: list[list[str]], is_cut: bool
) -> bool:
    """Return whether the numbers beside names without a header belong to the names.

    They count the parts of one name (`Vis 1`, `Vis 2`), or stand behind names of
    several words that they do not number (`Brodmann area 44`).
    """
    names, numbers = [" ".join(part) for part in words], columns[place]
    is_label = len(set(numbers)) == len(numbers)
    if len(set(names)) == len(names):
        is_of_words = min(map(len, words)) > 1 and not is_cut
        return is_of_words and place == 0 and len(columns) == 1 and not is_label
    # of two regions of one name the number may be the label, of more it is not
    most = max(map(names.count, names))
    is_distinct = len({*zip(names, numbers, strict=True)}) == len(names)
    return is_distinct and (most > 2 or not is_label)


def _choose_long_names(words: list[list[str]], is_cut: bool) -> list[str] | None:
    """Return the second of two names of every line, as of MRtrix and AAL.

    None where the words are of one name: one of them is a side, or not all differ.
    """
    is_side = any(word.lower() in HEMISPHERE_WORDS for row in words for word in row)
    n_words = {len(row) for row in words}
    first, last = ({row[place] for row in words} for place in (0, -1))
    is_pair = is_cut or (n_words == {2} and len(first) == len(words))
    if is_side or not is_pair or len(last) < len({*map(tuple, words)}):
        return None
    return [row[-1] for row in words]


def _find_coordinates(
    path: str | Path, before: list[list[str]], behind: list[list[str]]
) -> dict[str, list[str]]:
    """Return x, y, z of lines without a header: three columns, some below 0.

    Columns of 0 to 1 are colours. Raises FileFormatError where other columns have
    fractions or signs, as nobody says what those are.
    """
    for columns in (before, behind):
        is_place = [not are_numbers(column) for column in columns]
        values = [[*map(float, column)] for column in columns]
        is_colour = [min(x) >= 0 and max(x) <= 1 for x in values]
        if not any(p and not c for p, c in zip(is_place, is_colour, strict=True)):
            continue
        # an index may stand first
        start = int(len(columns) == 4 and columns is before and not is_place[0])
        if len(columns) - start != 3 or (columns is behind and before[1:]):
            raise FileFormatError(
                f"{path}: the numbers beside the names have no heads, and are neither "
                "labels nor colours. Name the columns in the first row: index, name, "
                "x, y, z (mm of MNI152)."
            )
        places = dict(zip("xyz", columns[start:], strict=True))
        del columns[start:]
        return places
    return {}


def _count_numbers(row: Sequence[str]) -> int:
    """Return how many cells of a line are numbers, up to the first that is none.

    The last one may be a name.
    """
    is_number = [_NUMBER.fullmatch(cell) is not None for cell in row[:-1]]
    return [*is_number, False].index(False)


def _are_any_numbers(cells: Iterable[str]) -> bool:
    """Return whether all cells are numbers of any kind."""
    return all(map(_NUMBER.fullmatch, cells))


def _read_workbench_list(lines: Sequence[str]) -> pd.DataFrame | None:
    """Return index and name of Connectome Workbench's label lists, None of others.

    They have a name on one line, and its number, red, green, blue, alpha on the next.
    """
    names, numbers = lines[::2], lines[1::2]
    is_pair = len(names) == len(numbers) and all(map(_WORKBENCH.fullmatch, numbers))
    if not is_pair or any(map(_WORKBENCH.fullmatch, names)):
        return None
    index = [line.split()[0] for line in numbers]
    return pd.DataFrame({"index": index, "name": [*map(str.strip, names)]})


def are_numbers(cells: Iterable[str | None]) -> bool:
    """Return whether all cells that are not empty are whole numbers."""
    return all(map(str.isdecimal, filter(None, cells)))


def read_names(path: str | Path) -> tuple[str, ...]:
    """Read the names of a matrix's rows; numbers that count them decide their order."""
    return _in_counted_order(read_labels(path), path)


def _in_counted_order(table: pd.DataFrame, path: str | Path) -> tuple[str, ...]:
    """Return names in the order of numbers that count them, else as they are.

    Raises where other numbers, as of a lookup table, say another order than lines.
    """
    numbers = sorted(table["index"], key=lambda number: (len(number), number))
    labels = pd.to_numeric(table["index"], errors="coerce").dropna()
    if are_counts(numbers):
        table = table.set_index("index").loc[numbers]
    elif labels.is_unique and not labels.is_monotonic_increasing:
        raise FileFormatError(
            f"{path}: its numbers do not rise from line to line, so that the order of "
            "rows is not known. Sort the lines as rows stand, or leave numbers out."
        )
    return tuple(table["name"])


def _bids_nodes(path: Path) -> tuple[str, ...] | None:
    """Return the names of the nodes that a BIDS sidecar gives, None where none."""
    with reading(path, "a BIDS sidecar"):
        described = json.loads(path.read_text(encoding="utf-8")) or {}
        indices = [str(index) for index in described.get("NodeIndices") or ()]
        files = described.get("NodeFiles", described.get("NodeFile")) or ()
    tables = []
    for name in [files] if isinstance(files, str) else files:
        inside = name.removeprefix("bids:").lstrip(":/")  # from the data set's root
        found = (folder / inside for folder in path.parents[:6])
        tables.append(read_labels(next(filter(Path.is_file, found), inside)))
    if not tables:
        return tuple(indices) or None
    nodes = pd.concat(tables)[["index", "name"]].drop_duplicates()
    known = nodes.groupby("index")["name"].agg(list)
    for index in indices or filter(None, known.index):
        if len(names := known.get(index, [])) != 1:
            raise FileFormatError(
                f"{path}: the node {index} is {' and '.join(names) or 'nowhere'} in "
                f"{files}; expected every index once. Give each node its own."
            )
    if not indices:
        return _in_counted_order(nodes, path)
    return tuple(known[index][0] for index in indices)
