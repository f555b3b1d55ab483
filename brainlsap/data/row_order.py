"""What the rows of a matrix without names are: a list beside it, or a tool's order.

An order is taken without being asked for only where one documented tool writes
matrices of that size. Everything else is refused, with all that such a size may mean.
"""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from brainlsap.arrays import check_choice
from brainlsap.atlas import Atlas
from brainlsap.data.tables import (
    read_lines,
    read_table,
    reading,
    sniff_delimiter,
    split_cells,
)
from brainlsap.exceptions import FileFormatError

ROW_ORDERS = ("atlas", "mrtrix", "micapipe", "freesurfer")
NAME_HEADS = ("name", "label", "region")
INDEX_HEADS = ("index", "node_index", "id")
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
    settings, regions = atlas.settings, atlas.regions.sort_values("freesurfer_id")
    own = f"read in the order of {atlas.name}"
    orders = [RowOrder("atlas", atlas.names, own, settings.get("unnamed_rows", False))]
    cortex = [
        regions.query(f"structure == 'cortex' and hemisphere == {side!r}")[
            "name"
        ].tolist()
        for side in "LR"
    ]
    left = [f"Left-{name}" for name in _STRUCTURES]
    right = [f"Right-{name}" for name in _STRUCTURES]
    if "mrtrix" in settings:
        names = (
            *(*cortex[0], "Left-Cerebellum-Cortex", *left),
            *(*right, *cortex[1], "Right-Cerebellum-Cortex"),
        )
        table = f"MRtrix's {settings['mrtrix']} ({len(names)} nodes)"
        orders.append(RowOrder("mrtrix", names, f"read in the order of {table}", True))
    for order in tuple(orders):
        note = f"{order.note} after a first row for label 0"
        # documented of tck2connectome -keep_unassigned alone
        by_size = order.tool == "mrtrix"
        orders.append(RowOrder(order.tool, ("Unknown", *order.names), note, by_size))
    if "wall" in settings:
        at = settings["wall"]
        rows = [[*side[:at], "Medial_wall", *side[at:]] for side in cortex]
        for n in _CEREBELLAR:
            names = (*left, *right, *("Cerebellum",) * n, *rows[0], *rows[1])
            what = f"full matrix ({n} cerebellar rows)" if n else "subcortical matrix"
            note = f"read in the order of micapipe's {what}"
            orders.append(RowOrder("micapipe", names, note, n > 0))
    return tuple(orders)


def find_names(  # noqa: C901 (lists of names, then what the size may mean)
    path: Path, values: np.ndarray, atlas: Atlas, row_order: str | None = None
) -> tuple[tuple[str, ...], str]:
    """Return the names of the rows of a matrix without names, and whence they are.

    Unless `row_order`, one of `ROW_ORDERS`, is given, lists beside the matrix count
    first: BIDS (BEP017) writes a `.json` of its name, scilpy and Connectoflow a
    `labels_list.txt`, people a `labels.txt` or `labels.csv`. One in the folders above
    that has another length is of other matrices. Raises FileFormatError with the
    candidates where neither a list nor the number of rows says whose order it is.
    """
    n, walls = len(values), ""
    stem = path.name
    while Path(stem).suffix.lower() in (".gz", ".tsv", ".csv", ".txt"):
        stem = Path(stem).stem
    lists = [(path.with_name(f"{stem}.json"), True)] if stem != path.name else []
    own = [f"{Path(stem).stem}_labels{end}" for end in (".txt", ".csv", ".tsv")]
    lists += [(path.with_name(name), True) for name in (*own, *_SIDECARS)]
    above = path.parents[1 : _FOLDERS_ABOVE + 1]
    lists += [(folder / name, False) for folder in above for name in _SIDECARS]
    for file, beside in lists if row_order is None else ():
        if not file.is_file() or file == path:
            continue
        names = _bids_nodes(file) if file.suffix == ".json" else read_names(file)
        if names is not None and len(names) == n:
            what = (
                "the .json beside the matrix" if file.suffix == ".json" else file.name
            )
            return names, f"rows named by {what}"
        if names is not None and beside:
            raise FileFormatError(
                f"{path}: {n} rows, but {file.name} beside it names {len(names)}; "
                "expected one name for each row. Correct it, or give labels=."
            )
    fitting = [order for order in row_orders(atlas) if len(order.names) == n]
    numbers = atlas.regions["freesurfer_id"]
    if n >= _FEWEST_LABELS and 0 <= numbers.min() <= numbers.max() < n:
        note = "rows read as FreeSurfer's label numbers, from 0"
        labels = tuple(map(str, range(n)))
        fitting.append(RowOrder("freesurfer", labels, note, True))
    if row_order is not None:
        check_choice("row_order", row_order, ROW_ORDERS)
    tool = row_order or ("micapipe" if _MICAPIPE.search(path.as_posix()) else None)
    taken = [order for order in fitting if order.tool == tool][:1]
    if not taken and row_order is None:
        # 14 structures and the cortex with a wall or callosum on each side have as
        # many rows as MRtrix's nodes, which have cortex at those places
        known = atlas.settings.get("walls", {"size": 0, "rows": ()})
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


def read_names(path: str | Path) -> tuple[str, ...]:
    """Read the names of a matrix's rows, one a line.

    Of several columns the one headed `name`, `label` or `region` counts, else the
    last. A column that counts the names from 0 or 1 decides their order.
    """
    rows = [split_cells(line, sniff_delimiter(line)) for line in read_lines(path)]
    if not rows:
        raise FileFormatError(f"{path}: the file is empty; expected names of regions.")
    heads = [cell.lower() for cell in rows[0]]
    named = [heads.index(head) for head in NAME_HEADS if head in heads]
    if not named:
        return _in_counted_order([r[0] for r in rows], [r[-1] for r in rows])
    columns = list(zip(*[r for r in rows[1:] if len(r) >= len(heads)], strict=False))
    digits = [i for i, cells in enumerate(columns) if all(map(str.isdecimal, cells))]
    place = next((i for i in named if i not in digits), named[0])
    counts = next((columns[i] for i in digits if i != place), ())
    return _in_counted_order(counts, columns[place] if columns else ())


def _in_counted_order(numbers: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return names in the order of numbers that count them, else as they are."""
    if numbers and are_counts(sorted(numbers, key=lambda n: (len(n), n))):
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
    if not files:
        return tuple(indices) or None
    known: dict[str, str] = {}
    for name in files:
        inside = name.removeprefix("bids:").lstrip(":/")  # from the data set's root
        found = [folder / inside for folder in path.parents[:6]]
        file = next(filter(Path.is_file, found), None)
        if file is None:
            raise FileFormatError(f"{path}: NodeFiles names {name}, which is nowhere.")
        table = read_table(file)
        table.columns = table.columns.str.lower()
        index = next((head for head in INDEX_HEADS if head in table), None)
        head = next((head for head in NAME_HEADS if head in table), None)
        if head is None:
            raise FileFormatError(
                f"{file}: no column {' or '.join(NAME_HEADS)} that names the nodes."
            )
        numbers = range(1, len(table) + 1) if index is None else table[index]
        for number, region in zip(map(str, numbers), table[head], strict=True):
            if known.setdefault(number, str(region)) != region:
                raise FileFormatError(
                    f"{file}: the node {number} is {known[number]} and {region}; "
                    "expected every index once. Give each node its own index."
                )
    if not indices:
        return _in_counted_order(list(known), list(known.values()))
    unknown = [index for index in indices if index not in known]
    if unknown:
        raise FileFormatError(
            f"{path}: NodeIndices names the node {unknown[0]}, which is not in "
            f"{', '.join(files)}."
        )
    return tuple(known[index] for index in indices)
