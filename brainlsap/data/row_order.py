"""What the rows of a matrix without names are: a list beside it, or a tool's order.

An order is taken without being asked for only where one documented tool writes
matrices of that size. Everything else is refused, with all that such a size may mean.
"""

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas
from brainlsap.data.tables import (
    INDEX_COLUMNS,
    NAME_COLUMNS,
    find_column,
    read_lines,
    read_table,
    sniff_delimiter,
    split_cells,
)
from brainlsap.exceptions import FileFormatError, check_choice, reading

ROW_ORDERS = ("atlas", "mrtrix", "micapipe", "freesurfer")
_STRUCTURES = (
    *("Thalamus", "Caudate", "Putamen", "Pallidum"),
    *("Hippocampus", "Amygdala", "Accumbens-area"),
)
# Cerebellar rows of micapipe's full matrices, as its two versions count them, and of
# its subcortical ones.
_CEREBELLAR = (34, 28, 0)
_MICAPIPE = re.compile(
    r"(^|/)micapipe|[-_/](cor|sub|full)-(connectome|edgelengths)[^/]*$", re.IGNORECASE
)
# Fewer rows than this are never label numbers: parcellations count from 1, too.
_FEWEST_LABELS = 1000
_SIDECARS = ("labels.txt", "labels.csv", "labels.tsv", "labels_list.txt")
# The labels of a study may lie above the folders of its scans.
_FOLDERS_ABOVE = 2


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
    left_cortex, right_cortex = (
        regions["name"][regions["hemisphere"] == side].tolist() for side in "LR"
    )
    left = [f"Left-{name}" for name in _STRUCTURES]
    right = [f"Right-{name}" for name in _STRUCTURES]
    own = f"read in the order of {atlas.name}"
    orders = [RowOrder("atlas", atlas.names, own, settings.get("unnamed_rows", False))]
    if "mrtrix" in settings:
        names = (
            *(*left_cortex, "Left-Cerebellum-Cortex", *left),
            *(*right, *right_cortex, "Right-Cerebellum-Cortex"),
        )
        note = (
            f"read in the order of MRtrix's {settings['mrtrix']} ({len(names)} nodes)"
        )
        orders.append(RowOrder("mrtrix", names, note, True))
    # a first row for label 0 is documented of tck2connectome -keep_unassigned alone
    orders += [
        RowOrder(
            tool,
            ("Unknown", *names),
            f"{note} after a first row for label 0",
            tool == "mrtrix",
        )
        for tool, names, note, _ in orders
    ]
    if "wall" in settings:
        for side in (left_cortex, right_cortex):
            side.insert(settings["wall"], "Medial_wall")
        for n in _CEREBELLAR:
            names = (*left, *right, *("Cerebellum",) * n, *left_cortex, *right_cortex)
            what = f"full matrix ({n} cerebellar rows)" if n else "subcortical matrix"
            note = f"read in the order of micapipe's {what}"
            orders.append(RowOrder("micapipe", names, note, n > 0))
    return tuple(orders)


def find_names(  # noqa: C901 (lists first, then orders of tools)
    path: Path,
    values: np.ndarray,
    atlas: Atlas,
    row_order: str | None = None,
    labels: str | Path | Sequence[str] | None = None,
    own: Sequence[str] = (),
) -> tuple[tuple[str, ...], str]:
    """Return the names of the rows of a matrix, and whence they are.

    `labels` count before the names of the file's `own`, and these before all others.
    Unless `row_order`, one of `ROW_ORDERS`, is given, lists beside the matrix count
    next: BIDS (BEP017) writes a `.json` of its name, scilpy and Connectoflow a
    `labels_list.txt`, people a `labels.txt` or `labels.csv`. One in the folders above
    that has another length is of other matrices. Raises FileFormatError with the
    candidates where neither a list nor the number of rows says whose order it is.
    """
    n, walls, stem = len(values), "", path.name
    if labels is not None or (own and not are_counts(own)):
        origin = "read by name" if labels is None else "rows named by labels="
        given = own if labels is None else labels
        names = read_names(given) if isinstance(given, str | Path) else tuple(given)
        if len(names) != n:
            raise FileFormatError(
                f"{path}: {n} rows, but {len(names)} names ({origin}); expected one "
                "for each row."
            )
        return names, origin
    while Path(stem).suffix.lower() in (".gz", ".tsv", ".csv", ".txt"):
        stem = Path(stem).stem
    beside = [f"{Path(stem).stem}_labels{end}" for end in (".txt", ".csv", ".tsv")]
    beside = [*([f"{stem}.json"] if stem != path.name else []), *beside, *_SIDECARS]
    files = [path.with_name(name) for name in beside]
    above = path.parents[1 : _FOLDERS_ABOVE + 1]
    files += [folder / name for folder in above for name in _SIDECARS]
    if row_order is not None:
        check_choice("row_order", row_order, ROW_ORDERS)
        files = []
    for file in files:
        if not file.is_file() or file == path:
            continue
        is_json = file.suffix == ".json"
        found = _bids_nodes(file) if is_json else read_names(file)
        if found is not None and len(found) == n:
            what = "the .json beside the matrix" if is_json else file.name
            return found, f"rows named by {what}"
        if found is not None and file.parent == path.parent:
            raise FileFormatError(
                f"{path}: {n} rows, but {file.name} beside it names {len(found)}; "
                "expected one name for each row. Correct it, or give labels=."
            )
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
        known = atlas.settings.get("walls", {"size": 0})
        for rows in known["rows"] if known["size"] == n else ():
            if not values[rows].any() and not values[:, rows].any():
                walls = (
                    f" Rows {rows[0] + 1} and {rows[1] + 1} are empty, as walls are."
                )
        taken = [order for order in fitting if order.by_size and not walls]
    if len(taken) == 1:
        return taken[0].names, taken[0].note
    could = [f"{o.note.removeprefix('read ')} (row_order='{o.tool}')" for o in fitting]
    could += [text for text in [atlas.settings.get("sizes", {}).get(str(n))] if text]
    raise FileFormatError(
        f"{path}: a matrix of {n} x {n} without names cannot be mapped to {atlas.name} "
        f"({len(atlas)} regions){f' as row_order={row_order!r}' if row_order else ''}."
        + (f" {n} rows could be: {'; '.join(could)}.{walls}" if could else "")
        + " Write the names of the regions into the first row and column, give them by "
        "labels=, say whose order it is by row_order=, or choose the atlas that fits."
    )


def are_counts(names: Sequence[str]) -> bool:
    """Return whether names only count the rows from 0 or 1, as data frames do."""
    numbers = [str(i) for i in range(len(names) + 1)]
    return list(names) in (numbers[:-1], numbers[1:])


def read_labels(path: str | Path) -> pd.DataFrame:
    """Read names of regions, one a line: columns `index` ("" where none), `name` ...

    Of a table with a header (`NAME_COLUMNS`) all columns are returned, heads in lower
    case. Without one it is a list, or a lookup table as of FreeSurfer and MRtrix: a
    number, one or more names of which the last counts, a colour.
    """
    lines = read_lines(path)
    if not lines:
        raise FileFormatError(f"{path}: the file is empty; expected names of regions.")
    first, *rest = [split_cells(line, sniff_delimiter(line)) for line in lines]
    if find_column(first, NAME_COLUMNS) is None:
        columns = list(zip(*rest, strict=False))
        is_table = sniff_delimiter(lines[0]) or any(map(_are_numbers, columns))
        if is_table and len(first) > 1 and not any(map(str.isdecimal, first)):
            raise FileFormatError(
                f"{path}: no column of names among {', '.join(map(repr, first))}; "
                f"understood are {', '.join(NAME_COLUMNS)}, and for their numbers "
                f"{', '.join(filter(None, INDEX_COLUMNS))}. Rename the columns."
            )
        cells = [
            (row[0], next((c for c in row[::-1] if not c.isdecimal()), row[-1]))
            if row[0].isdecimal() and len(row) > 1
            else ("", " ".join(c for c in row if not c.isdecimal()) or row[0])
            for row in (first, *rest)
        ]
        return pd.DataFrame(cells, columns=["index", "name"])
    table = read_table(path).fillna("")
    table.columns = table.columns.str.lower()
    numbers = [head for head in table if _are_numbers(table[head])]
    texts = [head for head in table if head not in numbers]
    name = find_column(texts, NAME_COLUMNS) or find_column(table, NAME_COLUMNS)
    numbers = [head for head in numbers if head != name]
    index = find_column(numbers, (*INDEX_COLUMNS, *NAME_COLUMNS))
    names, counts = table.pop(name), "" if index is None else table.pop(index)
    return table.assign(index=counts, name=names)


def _are_numbers(cells: Iterable[str]) -> bool:
    return all(map(str.isdecimal, cells))


def read_names(path: str | Path) -> tuple[str, ...]:
    """Read the names of a matrix's rows; numbers that count them decide their order."""
    table = read_labels(path)
    return _in_counted_order(table["index"].tolist(), table["name"].tolist())


def _in_counted_order(numbers: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return names in the order of numbers that count them, else as they are."""
    if len(numbers) and are_counts(sorted(numbers, key=lambda n: (len(n), n))):
        place = dict(zip(numbers, names, strict=True))
        return tuple(place[number] for number in sorted(place, key=int))
    return tuple(names)


def _bids_nodes(path: Path) -> tuple[str, ...] | None:
    """Return the names of the nodes that a BIDS sidecar gives, None where none."""
    with reading(path, "a BIDS sidecar"):
        described = json.loads(path.read_text(encoding="utf-8")) or {}
        indices = [str(index) for index in described.get("NodeIndices") or ()]
        files = described.get("NodeFiles", described.get("NodeFile")) or ()
        files = [files] if isinstance(files, str) else list(files)
    tables = []
    for name in files:
        inside = name.removeprefix("bids:").lstrip(":/")  # from the data set's root
        found = (folder / inside for folder in path.parents[:6])
        file = next(filter(Path.is_file, found), None)
        if file is None:
            raise FileFormatError(f"{path}: NodeFiles names {name}, which is nowhere.")
        tables.append(read_labels(file))
    if not tables:
        return tuple(indices) or None
    nodes = pd.concat(tables, ignore_index=True)[["index", "name"]].drop_duplicates()
    doubled = nodes[nodes["index"].duplicated(keep=False) & (nodes["index"] != "")]
    if len(doubled):
        raise FileFormatError(
            f"{path}: the node {doubled['index'].iloc[0]} is "
            f"{' and '.join(doubled['name'][:2])} in {', '.join(files)}; expected "
            "every index once. Give each node its own index."
        )
    if not indices:
        return _in_counted_order(nodes["index"].tolist(), nodes["name"].tolist())
    known = dict(zip(nodes["index"], nodes["name"], strict=True))
    unknown = [index for index in indices if index not in known]
    if unknown:
        raise FileFormatError(
            f"{path}: NodeIndices names the node {unknown[0]}, which is not in "
            f"{', '.join(files)}."
        )
    return tuple(known[index] for index in indices)
