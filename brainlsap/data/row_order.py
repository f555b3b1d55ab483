"""What the rows of a matrix without names are: a list beside it, or a tool's order.

An order is taken without being asked for only where one documented tool writes
matrices of that size. Everything else is refused, with all that such a size may mean.
"""

import json
import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import zip_longest
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
    find_column,
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
    case. A line of a list or lookup table is a name, and whole numbers before and
    behind it. Of several such columns that one is the index which has the labels
    `present` in an image, or else the first.
    """
    lines = read_lines(path)
    if not lines:
        raise FileFormatError(f"{path}: the file is empty; expected names of regions.")
    if lines[0].lstrip().startswith("<"):
        raise FileFormatError(
            f"{path}: is XML; expected names of regions, a table or a list. Write a "
            "number and a name on each line (1 more than the index of FSL's atlases)."
        )
    delimiter = sniff_delimiter(lines[0])
    cells = [filter(None, split_cells(line, delimiter)) for line in lines]
    rows = [[_WHOLE.sub(r"\1", cell) for cell in row] or [""] for row in cells]
    has_number = any(map(str.isdecimal, rows[0]))
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
    rest = (head for head in texts if find_column([head], SIDE_COLUMNS) is None)
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
    index = find_region_column(fitting, (*INDEX_COLUMNS, *NAME_COLUMNS, *others))
    names, counts = table.pop(name), "" if index is None else table.pop(index)
    table = table.assign(index=counts, name=names)
    return table[["index", "name"]] if is_list else table


def _read_list(path: str | Path, rows: list[list[str]], is_cut: bool) -> pd.DataFrame:
    """Return columns of numbers ("0" ...) and `name` of lines that have no header.

    Behind a short name (MRtrix, AAL) the last word is the name, if it is no side and
    tells as much as all of them.
    """
    first, *rest = rows
    is_table = is_cut or any(map(are_numbers, zip(*rest, strict=False)))
    is_head = is_table and len(first) > 1 and not any(map(str.isdecimal, first))
    numbers = [[c for c in row if c.isdecimal() and len(row) > 1] for row in rows]
    words = [[c for c in row if not c.isdecimal()] or row[-1:] for row in rows]
    # a short name and a long one, or a name and a side, need no heads
    if is_head or (is_cut and max(map(len, words)) > 2):
        raise FileFormatError(
            f"{path}: no column of names among {', '.join(map(repr, first))}; "
            f"understood are {', '.join(NAME_COLUMNS)} (or roi_name ...), and for "
            f"their numbers {', '.join(filter(None, INDEX_COLUMNS))}. Name the columns "
            "so in the first row."
        )
    names, last = [" ".join(part) for part in words], [part[-1] for part in words]
    is_side = not HEMISPHERE_WORDS.keys().isdisjoint(map(str.lower, last))
    has_two = is_cut or rows[0][-1].isdecimal()  # names, or words of one name
    if has_two and not is_side and len(set(last)) == len(set(names)):
        names = last
    columns = enumerate(zip_longest(*numbers, fillvalue=""))
    return pd.DataFrame({str(i): cells for i, cells in columns} | {"name": names})


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
