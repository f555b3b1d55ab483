"""What the rows of a matrix without names are: a list beside it, or a tool's order.

An order is taken without being asked for only where one documented tool writes
matrices of that size. Everything else is refused, with all that such a size may mean.
"""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path, PurePath
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
# Cerebellar rows of micapipe's full matrices, as its two versions count them.
_CEREBELLAR = (34, 28)
_MICAPIPE = re.compile(
    r"(^|[-_])(cor|sub|full)-(connectome|edgelengths)", re.IGNORECASE
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
    cortex = {
        side: regions.loc[
            (regions["structure"] == "cortex") & (regions["hemisphere"] == side), "name"
        ].tolist()
        for side in "LR"
    }
    left = [f"Left-{name}" for name in _STRUCTURES]
    right = [f"Right-{name}" for name in _STRUCTURES]
    if "mrtrix" in settings:
        names = (
            *(*cortex["L"], "Left-Cerebellum-Cortex", *left),
            *(*right, *cortex["R"], "Right-Cerebellum-Cortex"),
        )
        table = f"MRtrix's {settings['mrtrix']} ({len(names)} nodes)"
        orders.append(RowOrder("mrtrix", names, f"read in the order of {table}", True))
    for order in tuple(orders):
        note = f"{order.note} after a first row for label 0"
        # documented of tck2connectome -keep_unassigned alone
        by_size = order.tool == "mrtrix"
        orders.append(RowOrder(order.tool, ("Unknown", *order.names), note, by_size))
    if "wall" in settings:
        wall = settings["wall"]
        rows = [
            name
            for side in cortex.values()
            for name in (*side[:wall], "Medial_wall", *side[wall:])
        ]
        note = "read in the order of micapipe's"
        for n in _CEREBELLAR:
            full = (*left, *right, *("Cerebellum",) * n, *rows)
            what = f"{note} full matrix ({n} cerebellar rows)"
            orders.append(RowOrder("micapipe", full, what, True))
        part = (*left, *right, *rows)
        orders.append(RowOrder("micapipe", part, f"{note} subcortical matrix", False))
    return tuple(orders)


def find_row_order(
    values: np.ndarray, atlas: Atlas, path: Path, row_order: str | None = None
) -> tuple[tuple[str, ...], str]:
    """Return the names of the rows of a matrix without names, and whose order it is.

    Raises FileFormatError with the candidates where the number of rows does not say,
    and `row_order`, one of `ROW_ORDERS`, was not given or has another size.
    """
    n, walls = len(values), ""
    numbers = atlas.regions["freesurfer_id"]
    are_labels = n >= _FEWEST_LABELS and 0 <= numbers.min() <= numbers.max() < n
    fitting = [order for order in row_orders(atlas) if len(order.names) == n]
    if are_labels:
        names = tuple(map(str, range(n)))
        note = "rows read as FreeSurfer's label numbers, from 0"
        fitting.append(RowOrder("freesurfer", names, note, True))
    if row_order is not None:
        check_choice("row_order", row_order, ROW_ORDERS)
        asked = [order for order in fitting if order.tool == row_order]
        if asked:
            return asked[0].names, asked[0].note
    else:
        is_micapipe = _MICAPIPE.search(path.name) or any(
            part.lower().startswith("micapipe") for part in path.parts
        )
        taken = [o for o in fitting if is_micapipe and o.tool == "micapipe"]
        if not taken:
            walls = _empty_walls(values, atlas)
            taken = [order for order in fitting if order.by_size and not walls]
        if len(taken) == 1:
            return taken[0].names, taken[0].note
    could = [f"{o.note.removeprefix('read ')} (row_order='{o.tool}')" for o in fitting]
    could += [text for text in [atlas.settings.get("sizes", {}).get(str(n))] if text]
    known = sorted({len(o.names) for o in row_orders(atlas) if o.by_size})
    raise FileFormatError(
        f"{path}: a matrix of {n} x {n} without names cannot be mapped to {atlas.name} "
        f"({len(atlas)} regions){f' as row_order={row_order!r}' if row_order else ''}."
        + (f" {n} rows could be: {'; '.join(could)}.{walls}" if could else "")
        + (f" Known without names: {', '.join(map(str, known))} rows." if known else "")
        + " Write the names of the regions into the first row and column, give them by "
        "labels=, say whose order it is by row_order=, or choose the atlas that fits."
    )


def _empty_walls(values: np.ndarray, atlas: Atlas) -> str:
    """Return which rows are empty where other tools of MRtrix's size have walls.

    14 structures and the cortex with a wall or callosum on each side have as many rows
    as MRtrix's nodes, which have cortex at those places.
    """
    walls = atlas.settings.get("walls", {"size": 0, "rows": ()})
    if len(values) == walls["size"]:
        for rows in walls["rows"]:
            if not values[rows].any() and not values[:, rows].any():
                return f" Rows {rows[0] + 1} and {rows[1] + 1} are empty, as walls are."
    return ""


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
    if not columns:
        return ()
    digits = [i for i in range(len(heads)) if all(map(str.isdecimal, columns[i]))]
    place = next((i for i in named if i not in digits), named[0])
    counts = next((columns[i] for i in digits if i != place), ())
    return _in_counted_order(counts, columns[place])


def _in_counted_order(numbers: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return names in the order of numbers that count them, else as they are."""
    if numbers and are_counts(sorted(numbers, key=lambda n: (len(n), n))):
        place = dict(zip(numbers, names, strict=True))
        return tuple(place[number] for number in sorted(place, key=int))
    return tuple(names)


def find_sidecar(path: Path, n: int) -> tuple[tuple[str, ...], str] | None:
    """Return the names of a matrix's rows from a file beside it, and which file.

    BIDS (BEP017) writes a `.json` of the same name; scilpy and Connectoflow a
    `labels_list.txt`; people a `labels.txt` or `labels.csv`. Lists in the folders above
    that have another length are not of this matrix; beside it they are refused.
    """
    stem = re.sub(r"(\.(gz|tsv|csv|txt))+$", "", path.name, flags=re.IGNORECASE)
    described = path.with_name(f"{stem}.json")
    if stem != path.name and described.is_file():
        names = _bids_nodes(described)
        if names is not None:
            _check_length(described, names, path, n)
            return names, "rows named by the .json beside the matrix"
    own = [f"{Path(stem).stem}_labels{end}" for end in (".txt", ".csv", ".tsv")]
    for level, folder in enumerate(path.parents[: _FOLDERS_ABOVE + 1]):
        for name in _SIDECARS if level else (*own, *_SIDECARS):
            file = folder / name
            if not file.is_file() or name == path.name:
                continue
            names = read_names(file)
            if level == 0:
                _check_length(file, names, path, n)
            if len(names) == n:
                return names, f"rows named by {name}"
    return None


def _check_length(file: Path, names: Sequence[str], path: Path, n: int) -> None:
    if len(names) != n:
        raise FileFormatError(
            f"{path}: {n} rows, but {file.name} beside it names {len(names)}; "
            "expected one name for each row. Correct it, or give the names by labels=."
        )


def _bids_nodes(path: Path) -> tuple[str, ...] | None:
    """Return the names of the nodes that a BIDS sidecar gives, None where none."""
    with reading(path, "a BIDS sidecar"):
        described = json.loads(path.read_text(encoding="utf-8"))
        described = described if isinstance(described, dict) else {}
        indices = [str(index) for index in described.get("NodeIndices") or ()]
        files = described.get("NodeFiles", described.get("NodeFile")) or ()
        files = [files] if isinstance(files, str) else files
        tables = [_locate(path, name) for name in files]
    if not tables:
        return tuple(indices) or None
    known: dict[str, str] = {}
    for file in tables:
        table = read_table(file)
        heads = {head.lower(): head for head in table.columns}
        index = next((heads[h] for h in INDEX_HEADS if h in heads), None)
        name = next((heads[h] for h in NAME_HEADS if h in heads), None)
        if name is None:
            raise FileFormatError(
                f"{file}: no column {' or '.join(NAME_HEADS)} that names the nodes."
            )
        numbers = range(1, len(table) + 1) if index is None else table[index]
        for number, region in zip(map(str, numbers), table[name], strict=True):
            if number in known:
                raise FileFormatError(
                    f"{file}: the node {number} is {known[number]} and {region}; "
                    "expected every index once. Give each node its own index."
                )
            known[number] = str(region)
    if not indices:
        return _in_counted_order(list(known), list(known.values()))
    unknown = [index for index in indices if index not in known]
    if unknown:
        raise FileFormatError(
            f"{path}: NodeIndices names the node {unknown[0]}, which is not in "
            f"{', '.join(file.name for file in tables)}."
        )
    return tuple(known[index] for index in indices)


def _locate(path: Path, name: str) -> Path:
    """Return a file that BIDS names: relative, or from the root of the data set."""
    inside = name.removeprefix("bids:").lstrip(":")
    if PurePath(inside).is_absolute() or ".." in PurePath(inside).parts:
        raise FileFormatError(
            f"{path}: NodeFiles names {name}; expected a path below the data set."
        )
    for folder in [path.parent, *path.parent.parents][:6]:
        if (folder / inside).is_file():
            return folder / inside
    raise FileFormatError(f"{path}: NodeFiles names {name}, which does not exist.")
