"""What the rows of a matrix without names are: a list beside it, or a tool's order.

A number of rows decides nothing, since many tools write as many. Names in the file come
first, then a list beside it, then words of the path that only one tool writes, then
`row_order=`. Whatever decides is checked on the weights
(:mod:`brainlsap.data.order_check`).
"""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

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

# Values of `row_order=`. A value names one order at most for each number of rows.
TRUST_NAMES = "names"
ROW_ORDERS = (
    *("atlas", "labels", "mrtrix", "ukbiobank", "micapipe", "freesurfer", "enigma"),
    *("aseg", "17networks", "17networks-enigma", "right-first", "hemispheres"),
    *("hemispheres-right-first", "interleaved", "walls", "aseg-cerebellum"),
    *("aseg-ventraldc", "labels-cerebellum", "labels-ventraldc", TRUST_NAMES),
)
_STRUCTURES = "Thalamus Caudate Putamen Pallidum Hippocampus Amygdala Accumbens-area"
# Rows of Tian's scale S1 of one side, as UK Biobank's connectomes have them.
_TIAN_S1 = (
    "Hippocampus Amygdala Thalamus Thalamus Accumbens-area Pallidum Putamen Caudate"
)
# Cerebellar rows of micapipe's full matrices, as its two versions count them, and of
# its subcortical ones.
_CEREBELLAR = (34, 28, 0)
# Words of paths and of files' first lines that one tool alone writes, the most special
# tool first: others call MRtrix.
_TOOL_WORDS = {
    "ukbiobank": re.compile(r"(?P<cortex>[A-Za-z0-9.]+)\+(?:S:)?Tian_Subcortex_S1"),
    "micapipe": re.compile(
        r"(?:^|/)micapipe|[-_/](?:cor|sub|full)-(?:connectome|edgelengths)[^/]*$",
        re.IGNORECASE | re.MULTILINE,
    ),
    "enigma": re.compile(r"(?:sc|fc|strucMatrix|funcMatrix)_with_sctx"),
    "mrtrix": re.compile(
        r"mrtrix|tck2connectome|labelconvert|fs_default\b|fs_a2009s\b"
        r"|connectome_based_processing",
        re.IGNORECASE,
    ),
}
# Images of nodes that MRtrix's users have beside the matrix.
_NODE_IMAGE = re.compile(r"\.mif(\.gz)?$|nodes[^/]*\.(nii(\.gz)?|mgz)$", re.IGNORECASE)
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
# Minimum share of the rows with weights that are numbers of regions.
_MOSTLY = 0.9
_ENDING = re.compile(r"(\.dense)?\.[^.]+(\.gz)?$", re.IGNORECASE)
# Most folders between a matrix and the root of its data set.
_DEEPEST = 6
# Lists that belong to the matrices of their folder, and must have a name for each row.
_OWN_LISTS = (
    *("labels.txt", "labels.csv", "labels.tsv", "labels_list.txt", "label.json"),
    *("centres.txt", "centers.txt"),
)
# Lists that count if they have as many names as the matrix has rows.
_OTHER_LISTS = tuple(
    f"{stem}.{ending}"
    for stem in (
        *("label", "region_labels", "region_names", "regions", "roi_labels", "lookup"),
        *("roi_names", "rois", "node_labels", "node_names", "nodes", "lut"),
    )
    for ending in ("txt", "csv", "tsv")
)


# Orders that arrange the sides, walls or label numbers of the same regions.
_ARRANGEMENTS = frozenset(
    (
        *("right-first", "hemispheres", "hemispheres-right-first", "interleaved"),
        *("walls", "labels", "freesurfer"),
    )
)


class RowOrder(NamedTuple):
    """Names of the rows of a tool's matrices, and the value of `row_order=` for it."""

    tool: str
    names: tuple[str, ...]
    note: str
    adds_parts: bool = False
    """Whether rows of one name are parts of a region, whose weights are added."""


class RowNames(NamedTuple):
    """Names of the rows of one matrix, and what decided them."""

    names: tuple[str, ...]
    note: str
    source: str
    """"names" (file or list), "words", "row_order", "settings", "numbers", or "" where
    nothing decided; then there are no names."""
    adds_parts: bool = False
    tool: str = ""
    """The order's `RowOrder.tool`, if rows were named by an order."""

    @property
    def is_tool_order(self) -> bool:
        """Whether the order is a tool's own, so that a study has one of them.

        Arrangements of the same regions may be mixed.
        """
        return self.tool != "" and self.tool not in _ARRANGEMENTS


@lru_cache(maxsize=16)
def row_orders(atlas: Atlas) -> tuple[RowOrder, ...]:
    """Return the orders that matrices of an atlas without names may have."""
    orders = [RowOrder("atlas", atlas.names, f"read in the order of {atlas.name}")]
    numbered = atlas.regions.query("freesurfer_id > 0").sort_values("freesurfer_id")
    if len(numbered) == len(atlas):
        note = f"read in the order of the label numbers of {atlas.name}"
        orders.append(RowOrder("labels", tuple(numbered["name"]), note))
        # Without MRtrix's labelconvert there is a row for every number.
        every_number = [*map(str, range(numbered["freesurfer_id"].max() + 1))]
        is_own = not atlas.settings.get("annotation")
        for first in (1, 0) if is_own and len(every_number) > len(atlas) + 1 else ():
            note = f"rows read as label numbers of {atlas.name}, from {first}"
            orders.append(RowOrder("labels", tuple(every_number[first:]), note))
    orders += _mirror_orders(atlas)
    orders += _freesurfer_orders(atlas)
    return tuple(orders)


def _mirror_orders(atlas: Atlas) -> list[RowOrder]:
    """Return orders of the atlas' own regions that arrange the sides otherwise."""
    sides = atlas.regions["hemisphere"].to_numpy()
    names = np.array(atlas.names)
    left, right = np.flatnonzero(sides == "L"), np.flatnonzero(sides == "R")
    middle = np.flatnonzero(sides == "M")
    if not len(left) or len(left) != len(right):
        return []
    swapped = np.arange(len(atlas))
    swapped[left], swapped[right] = right, left
    interleaved = np.column_stack([left, right]).ravel()
    arrangements: dict[str, tuple[Sequence[int], str]] = {
        "right-first": (swapped.tolist(), "right and left exchanged"),
        "hemispheres": ([*left, *right, *middle], "all of the left, then of the right"),
        "hemispheres-right-first": (
            [*right, *left, *middle],
            "all of the right, then of the left",
        ),
        "interleaved": ([*interleaved, *middle], "left and right by turns"),
    }
    return [
        RowOrder(tool, tuple(names[[*rows]]), f"read as {atlas.name}, {arrangement}")
        for tool, (rows, arrangement) in arrangements.items()
    ]


def _freesurfer_orders(atlas: Atlas) -> list[RowOrder]:
    """Return orders of a cortex of FreeSurfer with deep structures of `aseg`."""
    settings = atlas.settings
    if "annotation" not in settings:
        return []
    cortex = atlas.regions[atlas.cortex].sort_values("freesurfer_id")
    left, right = (cortex["name"][cortex["hemisphere"] == s].tolist() for s in "LR")
    structures = _STRUCTURES.split()

    def both(
        parts: Iterable[str], order: Sequence[str] = ("Left", "Right")
    ) -> list[str]:
        parts = [*parts]
        return [f"{side}-{part}" for side in order for part in parts]

    deep, alphabetic = both(structures), both(sorted(structures))
    known = [name for name in alphabetic if atlas.find(name) is not None]
    cerebella = both(["Cerebellum-Cortex"])
    first, second = cerebella
    ventral = both([*structures, "VentralDC"])
    half, stem = len(structures), "Brain-Stem"
    # FreeSurfer counts the brain stem (16) between pallidum (13) and hippocampus (17).
    with_stem = [*ventral[:4], stem, *ventral[4:]]
    by_number = [first, *deep[:half], second, *deep[half:]]
    tian = both(_TIAN_S1.split(), ("Right", "Left"))
    aseg = "the cortex, then FreeSurfer's structures (thalamus, caudate, putamen ...)"
    table = settings.get("mrtrix", "labelconvert table of this parcellation")
    nodes = [*left, first, *deep, *right, second]
    mrtrix = f"in the order of MRtrix's {table} ({len(nodes)} nodes)"
    orders = [
        ("mrtrix", nodes, mrtrix),
        # as of tck2connectome -keep_unassigned
        ("mrtrix", ["Unknown", *nodes], f"{mrtrix} after a first row for label 0"),
        (
            "ukbiobank",
            [*left, *right, *tian],
            "as UK Biobank's: the cortex, then Tian S1",
        ),
        ("aseg", [*left, *right, *deep], f"as {aseg}"),
        (
            "enigma",
            [*left, *right, *alphabetic],
            "as ENIGMA's: accumbens, amygdala ...",
        ),
        (
            "aseg-cerebellum",
            [*left, *right, *deep, *cerebella],
            f"as {aseg}, cerebellum",
        ),
        ("aseg-ventraldc", [*left, *right, *ventral], f"as {aseg}, VentralDC"),
        (
            "aseg-ventraldc",
            [*left, *right, *ventral, stem],
            f"as {aseg}, VentralDC, brain stem",
        ),
        (
            "labels-cerebellum",
            [*by_number, *left, *right],
            "in the order of FreeSurfer's numbers, with cerebellum",
        ),
        (
            "labels-ventraldc",
            [*ventral, *left, *right],
            "in the order of FreeSurfer's numbers, with VentralDC",
        ),
        (
            "labels-ventraldc",
            [*with_stem, *left, *right],
            "in the order of FreeSurfer's numbers, with VentralDC and brain stem",
        ),
    ]
    if len(known) < len(alphabetic):
        own = "as ENIGMA's: the cortex, then amygdala, caudate ..."
        orders.append(("enigma", [*left, *right, *known], own))
    if "order_17networks" in settings:
        numbers = np.argsort(settings["order_17networks"])
        parcels = np.array([*left, *right])[numbers].tolist()
        networks = "in the order of Schaefer's 17 networks"
        orders += [
            (
                "17networks",
                [*parcels, *deep],
                f"{networks}, then FreeSurfer's structures",
            ),
            (
                "17networks-enigma",
                [*parcels, *alphabetic],
                f"{networks}, then ENIGMA's",
            ),
        ]
    if "wall" in settings:
        walled = [[*side] for side in (left, right)]
        for side in walled:
            side.insert(settings["wall"], "Medial_wall")
        sides = [*walled[0], *walled[1]]
        orders.append(
            ("walls", [*sides, *deep], f"as {aseg}, with a wall on each side")
        )
        for n in _CEREBELLAR:
            kind = f"full matrix ({n} cerebellar rows)" if n else "subcortical matrix"
            names = [*deep, *("Cerebellum",) * n, *sides]
            orders.append(("micapipe", names, f"in the order of micapipe's {kind}"))
    return [
        RowOrder(tool, tuple(names), f"read {note}", tool == "ukbiobank")
        for tool, names, note in orders
    ]


@lru_cache(maxsize=64)
def fitting_orders(atlas: Atlas, n_rows: int) -> list[RowOrder]:
    """Return the different orders that matrices of so many rows may have."""
    orders = [order for order in row_orders(atlas) if len(order.names) == n_rows]
    by_rows = {region_rows(atlas, order.names): order for order in orders[::-1]}
    return [order for order in orders if order in by_rows.values()]


def region_rows(atlas: Atlas, names: Sequence[str]) -> tuple[int | None, ...]:
    """Return the region of each row, None for rows that the atlas leaves out."""
    if all(map(str.isdecimal, names)):
        rows, _ = atlas.rows(names)
        regions = dict(zip(rows.tolist(), range(len(rows)), strict=True))
        return tuple(map(regions.get, range(len(names))))
    return tuple(map(atlas.find, names))


def find_names(
    path: Path,
    values: np.ndarray,
    atlas: Atlas,
    row_order: str | None = None,
    labels: str | Path | Sequence[str] | None = None,
    own: Sequence[str] = (),
    header: str = "",
) -> RowNames:
    """Return the names of the rows of a matrix, and what decided them.

    In this order: `labels`; the names of the file's `own`; lists beside the matrix
    (BIDS writes a `.json` of its name, scilpy and Connectoflow a `labels_list.txt`,
    brainlife a `label.json`, The Virtual Brain a `centres.txt`); words of one tool in
    its path or its first lines (`header`). `row_order` says whose order the rows have
    where there are no names, and may not contradict a list. Where nothing decides the
    result has no names.

    Raises
    ------
    FileFormatError
        Where a list has another length than the matrix, or lists contradict each other
        or `row_order`, or no order of that name has so many rows.
    """
    n = len(values)
    if row_order is not None:
        check_choice("row_order", row_order, ROW_ORDERS)
    if labels is not None:
        names = read_names(labels) if isinstance(labels, str | Path) else labels
        origin = "rows named by labels="
        _check_length(path, n, names, origin)
        return RowNames(tuple(names), origin, "names")
    if own and not are_counts(own):
        _check_length(path, n, own, "read by name")
        return RowNames(tuple(own), "read by name", "names")
    asked = None if row_order == TRUST_NAMES else row_order
    chosen = None if asked is None else _choose_order(path, values, atlas, asked)
    list_beside = _find_list(path, n, atlas)
    if list_beside is not None:
        names, origin = list_beside
        if chosen and region_rows(atlas, names) != region_rows(atlas, chosen.names):
            raise FileFormatError(
                f"{origin} and row_order={row_order!r} name the rows "
                "differently. Leave row_order= out to follow the list, or give the "
                "names by labels=.",
                path=path,
            )
        return RowNames(names, f"rows named by {origin}", "names")
    if chosen is not None:
        return RowNames(
            chosen.names, chosen.note, "row_order", chosen.adds_parts, chosen.tool
        )
    return _find_other_evidence(path, values, atlas, header)


def _find_other_evidence(
    path: Path, values: np.ndarray, atlas: Atlas, header: str
) -> RowNames:
    """Return the names of rows that neither a list nor the user names, if any."""
    n = len(values)
    tool = _find_tool(path, header, atlas)
    for order in fitting_orders(atlas, n):
        if order.tool == tool:
            note = f"{order.note}, by words of its path or first line"
            return RowNames(order.names, note, "words", order.adds_parts, order.tool)
    if _are_label_numbers(values, atlas):
        note = "rows read as FreeSurfer's label numbers, from 0"
        return RowNames(tuple(map(str, range(n))), note, "numbers")
    if atlas.settings.get("unnamed_rows") and n == len(atlas):
        note = f"read in the order of {atlas.name}"
        return RowNames(atlas.names, note, "settings", tool="atlas")
    return RowNames((), "", "")


def _check_length(path: Path, n: int, names: Sequence[str], origin: str) -> None:
    """Raise where there is not one name for each row."""
    if len(names) != n:
        raise FileFormatError(
            f"{n} rows, but {len(names)} names ({origin}); expected one for "
            "each row. Correct them, or give others by labels=.",
            path=path,
        )


def _are_label_numbers(values: np.ndarray, atlas: Atlas) -> bool:
    """Return whether rows with weights are at the numbers of regions, from 0."""
    numbers = atlas.regions["freesurfer_id"].to_numpy()
    n = len(values)
    if not (n >= _FEWEST_LABELS and 0 <= numbers.min() <= numbers.max() < n):
        return False
    others = values[1:, 1:]  # every row may have links to label 0
    used = 1 + np.flatnonzero(np.any(others, axis=1) | np.any(others, axis=0))
    used = used[used >= _FEWEST_LABELS]  # below are also structures without a region
    return len(used) > 0 and np.isin(used, numbers).mean() >= _MOSTLY


def _choose_order(
    path: Path, values: np.ndarray, atlas: Atlas, row_order: str
) -> RowOrder:
    """Return the order that `row_order` names for so many rows, or raise."""
    n = len(values)
    for order in row_orders(atlas):
        if order.tool == row_order and len(order.names) == n:
            return order
    if row_order == "freesurfer" and n >= _FEWEST_LABELS:
        note = "rows read as FreeSurfer's label numbers, from 0"
        return RowOrder("freesurfer", tuple(map(str, range(n))), note)
    raise FileFormatError(
        describe_size(values, atlas, row_order),
        path=path,
        values=find_atlas_of_size(n, atlas),
    )


def _find_tool(path: Path, header: str, atlas: Atlas) -> str | None:
    """Return the tool that the path or the first lines name, None where none do."""
    text = f"{path.as_posix()}\n{header}"
    for tool, words in _TOOL_WORDS.items():
        match = words.search(text)
        if match is None:
            continue
        if tool == "ukbiobank" and match["cortex"] != atlas.settings.get("ukbiobank"):
            return None  # of another cortex
        return tool
    has_image = path.parent.is_dir() and any(
        _NODE_IMAGE.search(file.name) for file in path.parent.iterdir()
    )
    return "mrtrix" if has_image else None


def find_atlas_of_size(n_rows: int, atlas: Atlas) -> dict[str, str]:
    """Return `{"atlas": name}` of another atlas that so many rows may be of, if any."""
    other = atlas.settings.get("atlas_by_size", {}).get(str(n_rows))
    return {"atlas": other} if other else {}


def describe_size(
    values: np.ndarray,
    atlas: Atlas,
    row_order: str | None = None,
    figures: Mapping[RowOrder, str] | None = None,
) -> str:
    """Say that rows have no known order, with all that so many rows could be.

    `figures` says what the weights tell of each order, the best first.
    """
    n = len(values)
    figures = (
        dict.fromkeys(fitting_orders(atlas, n), "") if figures is None else figures
    )
    orders = [*figures]
    if orders:
        names_by_row = zip(*(order.names for order in orders), strict=True)
        n_different = [len({*names}) for names in names_by_row]
        row = int(np.argmax(n_different))  # the first that tells most orders apart
    candidates = [
        f"{order.note.removeprefix('read ')} (row_order='{order.tool}': row {row + 1} "
        f"is {order.names[row]}, row {n} {order.names[-1]}{figures[order]})"
        for order in orders
    ]
    candidates += filter(None, [atlas.settings.get("sizes", {}).get(str(n))])
    if n == len(atlas) + 1:
        candidates.append(
            "the regions and one row more; name the rows, Unknown for label 0"
        )
    asked = f" as row_order={row_order!r}" if row_order else ""
    hint = f" {n} rows could be: {'; '.join(candidates)}." if candidates else ""
    # 14 structures and the cortex with a wall on each side have as many rows as
    # MRtrix's nodes, which have cortex at those places.
    walls = atlas.settings.get("walls", {"size": 0})
    for rows in walls["rows"] if walls["size"] == n else ():
        if values.any() and not (values[rows].any() or values[:, rows].any()):
            hint += f" Rows {rows[0] + 1} and {rows[1] + 1} are empty, as walls are."
    return (
        f"a matrix of {n} x {n} without names cannot be mapped to {atlas.name} "
        f"({len(atlas)} regions){asked}.{hint} Write the names of the regions into the "
        "first row and column, give them by labels=, say whose order it is by "
        "row_order=, or choose the atlas that fits."
    )


# ---- lists of names beside a matrix -------------------------------------------------


def _find_list(
    path: Path, n_rows: int, atlas: Atlas
) -> tuple[tuple[str, ...], str] | None:
    """Return the names that a list beside a matrix gives its rows, and its name.

    Looked through are the matrix's folder and those above it, up to the one that holds
    this person's; further away a list may be of an atlas, or of another study. The
    nearest folder with a list decides. Raises where two lists of one folder contradict
    each other, or a list of the matrix's own has another length.
    """
    stem = _ENDING.sub("", path.name)
    n_levels = _count_levels(path)
    sidecar = _read_sidecars(path, [*path.parents[:n_levels]])
    if sidecar is not None:
        _check_length(
            path, n_rows, sidecar, "rows named by the .json beside the matrix"
        )
        return sidecar, "the .json beside the matrix"
    own_names = [f"{stem}_labels{end}" for end in (".txt", ".csv", ".tsv")]
    for level, folder in enumerate(path.parents[: max(n_levels, 2)]):
        lists = dict[str, tuple[str, ...]]()
        is_near = level < n_levels
        names = (*own_names, *_OWN_LISTS, *_OTHER_LISTS) if is_near else ("label.json",)
        # few matrices have one; a Path for every place would cost more than to read it
        for name in names:
            place = f"{folder}/{name}"
            if not os.access(place, os.F_OK) or Path(place) == path:
                continue
            regions = _read_list_file(Path(place), n_rows)
            is_own = level == 0 and name not in _OTHER_LISTS
            if regions is not None and is_own:
                _check_length(path, n_rows, regions, f"rows named by {name}")
            # one above that has another length is of other matrices
            if regions is not None and len(regions) == n_rows:
                lists[name] = regions
        rows = {name: region_rows(atlas, regions) for name, regions in lists.items()}
        if len({*rows.values()}) > 1:
            raise FileFormatError(
                f"{' and '.join(lists)} beside it name its rows differently. "
                "Keep the one that is right, or give the names by labels=.",
                path=path,
            )
        for name, regions in lists.items():
            return regions, name
    return None


def _count_levels(path: Path) -> int:
    """Return how many folders above a matrix belong to its data set, at least one."""
    person = next((p for p in path.parents if p.name.startswith("sub-")), None)
    if person is not None:
        return len(path.parts) - len(person.parts) + 1
    for n_levels, folder in enumerate(path.parents[:_DEEPEST], start=1):
        if os.access(f"{folder}/dataset_description.json", os.F_OK):
            return n_levels
    return 1


def _read_list_file(path: Path, n_rows: int) -> tuple[str, ...] | None:
    """Return the names in a list beside a matrix, None where it is no list of names."""
    if not path.is_file():
        return None
    if path.name == "label.json":
        return _read_brainlife(path, n_rows)
    if path.stem in ("centres", "centers"):
        return _read_centres(path)
    if path.name not in _OTHER_LISTS:
        return read_names(path)
    try:
        return read_names(path)
    except FileFormatError:  # another kind of file has such a name, too
        return None


def _read_brainlife(path: Path, n_rows: int) -> tuple[str, ...] | None:
    """Return the names in brainlife's `label.json`, one entry for each region.

    The first may be of the diagonal: it has no name, or says that it is a self-loop.
    """
    with reading(path, "brainlife's label.json"):
        entries = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(entries, list):
            return None
        names = [str(entry.get("name") or "") for entry in entries]
    if len(names) == n_rows + 1 and names[0].lower() in ("", "self-loop", "selfloop"):
        names = names[1:]
    return tuple(names)


def _read_centres(path: Path) -> tuple[str, ...]:
    """Return the names in The Virtual Brain's `centres.txt`: name, x, y, z."""
    rows = [split_cells(line, sniff_delimiter(line)) for line in read_lines(path)]
    if any(len(row) < 4 for row in rows):
        raise FileFormatError(
            "expected the name and three coordinates of a region on each line.",
            path=path,
        )
    return tuple(" ".join(row[:-3]) for row in rows)


def _read_sidecars(path: Path, folders: Sequence[Path]) -> tuple[str, ...] | None:
    """Return the names that BIDS sidecars of a matrix give, None where none do.

    By BIDS' inheritance a `.json` counts for every file below its folder whose name
    has its suffix and all of its entities; nearer ones replace single keys.
    """
    stem = path.name.partition(".")[0]
    *entities, suffix = stem.split("_")
    described = dict[str, Any]()
    origin = path
    keys = ("NodeFiles", "NodeFile", "NodeIndices")
    for folder in folders[::-1]:
        names = (
            sorted(entry.name for entry in os.scandir(folder))
            if folder.is_dir()
            else []
        )
        fitting = [
            name
            for name in names
            if name.endswith(".json")
            if name.partition(".")[0].split("_")[-1] == suffix
            if {*name.partition(".")[0].split("_")} <= {*entities, suffix}
        ]
        contents = [_read_json(folder / name) for name in fitting]
        nodes = [{key: one[key] for key in keys if key in one} for one in contents]
        nodes = [one for one in nodes if one]
        if any(one != nodes[0] for one in nodes):
            raise FileFormatError(
                f"{' and '.join(fitting)} in {folder} describe its nodes "
                "differently. Keep one of them in that folder.",
                path=path,
            )
        if nodes:
            described |= nodes[0]
            origin = folder / fitting[0]
    return _bids_nodes(origin, path, described) if described else None


def _read_json(path: Path) -> dict[str, Any]:
    """Return the keys of a JSON file, none where it holds something else."""
    with reading(path, "a BIDS sidecar"):
        content = json.loads(path.read_text(encoding="utf-8"))
    return content if isinstance(content, dict) else {}


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
        raise FileFormatError(
            "the file is empty; expected names of regions.", path=path
        )
    if lines[0].lstrip().startswith("<"):
        raise FileFormatError(
            "is XML; expected names of regions, a table or a list. Write a "
            "number and a name on each line (1 more than the index of FSL's atlases).",
            path=path,
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
            f"the column {name!r} holds numbers and no names; call that of the "
            f"names 'name' ({', '.join(words)}?).",
            path=path,
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
            f"{len(rows) - n_bare} of {len(rows)} lines begin with a number "
            f"({numbered!r}), the others do not. "
            "Give every line its number, or write name into the first line where such "
            "numbers are parts of names.",
            path=path,
        )
    n_behind = min(_count_numbers(row[::-1]) for row in rows)
    if n_before + n_behind >= min(map(len, rows)):  # names are numbers, too
        n_behind = 0
    words = [row[n_before : len(row) - n_behind] for row in rows]
    # a short name and a long one, or a name and a side, need no heads
    if is_head or (is_cut and max(map(len, words)) > 2):
        raise FileFormatError(
            f"no column of names among {', '.join(map(repr, first))}; "
            f"understood are {', '.join(NAME_COLUMNS)} (or roi_name ...), and for "
            f"their numbers {', '.join(filter(None, INDEX_COLUMNS))}. Name the columns "
            "so in the first row.",
            path=path,
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
                "the numbers beside the names have no heads, and are neither "
                "labels nor colours. Name the columns in the first row: index, name, "
                "x, y, z (mm of MNI152).",
                path=path,
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
            "its numbers do not rise from line to line, so that the order of "
            "rows is not known. Sort the lines as rows stand, or leave numbers out.",
            path=path,
        )
    return tuple(table["name"])


def _bids_nodes(
    origin: Path, path: Path, described: dict[str, Any]
) -> tuple[str, ...] | None:
    """Return the names of the nodes that the keys of BIDS sidecars give, None if none.

    `origin` is the sidecar nearest to the matrix at `path`.
    """
    with reading(origin, "a BIDS sidecar"):
        indices = [str(index) for index in described.get("NodeIndices") or ()]
        files = described.get("NodeFiles", described.get("NodeFile")) or ()
        files = [files] if isinstance(files, str) else files
    tables = []
    for name in files:
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
                f"{origin}: the node {index} is {' and '.join(names) or 'nowhere'} in "
                f"{files}; expected every index once. Give each node its own."
            )
    if not indices:
        return _in_counted_order(nodes, origin)
    return tuple(known[index][0] for index in indices)
