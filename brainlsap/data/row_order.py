"""Which region each row of a matrix is: named in a file, or in the order of a tool.

The number of rows decides nothing, since several tools write matrices of the same
size. Names in the file come first, then a list beside it
(:mod:`brainlsap.data.region_lists`), then `row_order=`, then words of the path that
only one tool writes. The order is then checked on the weights
(:mod:`brainlsap.data.order_check`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from brainlsap.atlas import Atlas
from brainlsap.atlas.region_names import are_counts
from brainlsap.data.region_lists import (
    check_length,
    find_lists_beside,
    read_names,
)
from brainlsap.exceptions import FileFormatError, check_choice
from brainlsap.text import option_text

# Kind of the error where nothing names the rows.
UNKNOWN_ORDER = "unknown order"
# The value of `row_order=` that uses names without a check, and all values. For each
# number of rows, a value names one order at most.
UNCHECKED_NAMES = "names"
ROW_ORDERS = (
    *("atlas", "labels", "mrtrix", "ukbiobank", "micapipe", "freesurfer", "enigma"),
    *("aseg", "17networks", "17networks-enigma", "right-first", "hemispheres"),
    *("hemispheres-right-first", "interleaved", "walls", "aseg-cerebellum"),
    *("aseg-ventraldc", "labels-cerebellum", "labels-ventraldc", UNCHECKED_NAMES),
)
_STRUCTURES = (
    *("Thalamus", "Caudate", "Putamen", "Pallidum"),
    *("Hippocampus", "Amygdala", "Accumbens-area"),
)
_BRAIN_STEM = "Brain-Stem"
# Rows of Tian's scale S1 of one side, as UK Biobank's connectomes have them.
_TIAN_S1 = (
    *("Hippocampus", "Amygdala", "Thalamus", "Thalamus"),
    *("Accumbens-area", "Pallidum", "Putamen", "Caudate"),
)
_ASEG_ORDER = (
    "the cortex, then FreeSurfer's structures (thalamus, caudate, putamen ...)"
)
# Numbers of cerebellar rows in micapipe's full matrices of its two versions, and in its
# subcortical ones.
_N_CEREBELLAR_ROWS = (34, 28, 0)
# Words of paths and of first lines that only one tool writes. MRtrix comes last, since
# the other tools call it.
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
# Images of nodes that MRtrix's users keep beside the matrix.
_NODE_IMAGE = re.compile(r"\.mif(\.gz)?$|nodes[^/]*\.(nii(\.gz)?|mgz)$", re.IGNORECASE)
# Smaller numbers may count the parcels of any atlas, so they are no label numbers.
_MIN_LABEL_NUMBER = 1000
# Minimum share of the rows with weights that are label numbers of regions.
_MIN_LABEL_SHARE = 0.9

# Orders that arrange the sides, walls or label numbers of the same regions.
_ARRANGEMENTS = frozenset(
    (
        "right-first",
        "hemispheres",
        "hemispheres-right-first",
        "interleaved",
        "walls",
        "labels",
        "freesurfer",
    )
)


class RowOrder(NamedTuple):
    """An order in which a tool writes the rows of its matrices.

    Parameters
    ----------
    tool : str
        Value of `row_order=` for it.
    names : tuple of str
        Name of each row.
    description : str
        Completes the sentence "rows are read ...".
    adds_parts : bool
        Whether rows of one name are parts of a region, whose weights are added.
    """

    tool: str
    names: tuple[str, ...]
    description: str
    adds_parts: bool = False

    @property
    def note(self) -> str:
        """What is said of a matrix that was read in this order."""
        return f"read {self.description}"


class RowNames(NamedTuple):
    """Names of the rows of one matrix, and what decided them.

    Parameters
    ----------
    names : tuple of str
        Empty where nothing decided.
    note : str
        What is said of a matrix whose rows have these names.
    source : str
        "names" (of the file or a list), "words" of the path, "row_order", "settings" of
        the atlas, label "numbers", "array" in memory, or "" where nothing decided.
    adds_parts : bool
        Whether rows of one name are parts of a region, whose weights are added.
    tool : str
        The order's `RowOrder.tool`, where an order names the rows.
    """

    names: tuple[str, ...]
    note: str
    source: Literal["names", "words", "row_order", "settings", "numbers", "array", ""]
    adds_parts: bool = False
    tool: str = ""

    @property
    def is_tool_order(self) -> bool:
        """Whether the order is a tool's own, so that a study has one of them.

        Arrangements of the same regions may be mixed.
        """
        return self.tool != "" and self.tool not in _ARRANGEMENTS


# ---- known orders -------------------------------------------------------------------


@lru_cache(maxsize=16)
def row_orders(atlas: Atlas) -> tuple[RowOrder, ...]:
    """Return the orders that matrices of an atlas without names may have."""
    return (
        RowOrder("atlas", atlas.names, f"in the order of {atlas.name}"),
        *_label_orders(atlas),
        *_mirrored_orders(atlas),
        *_freesurfer_orders(atlas),
    )


@lru_cache(maxsize=64)
def fitting_orders(atlas: Atlas, n_rows: int) -> list[RowOrder]:
    """Return the different orders that matrices of so many rows may have.

    Of orders that put the same regions into the same rows, the first counts.
    """
    distinct_orders = dict[tuple[int | None, ...], RowOrder]()
    for row_order in row_orders(atlas):
        if len(row_order.names) == n_rows:
            regions = regions_of_rows(atlas, row_order.names)
            distinct_orders.setdefault(regions, row_order)
    return list(distinct_orders.values())


def regions_of_rows(atlas: Atlas, row_names: Sequence[str]) -> tuple[int | None, ...]:
    """Return the region of each row, None for rows that the atlas leaves out."""
    if all(map(str.isdecimal, row_names)):
        row_of_region, _ = atlas.rows(row_names)
        region_of_row = {
            int(row_index): region_index
            for region_index, row_index in enumerate(row_of_region)
        }
        return tuple(map(region_of_row.get, range(len(row_names))))
    return tuple(map(atlas.find, row_names))


def _label_orders(atlas: Atlas) -> list[RowOrder]:
    """Return the orders by label number of an atlas whose regions all have one."""
    numbered_regions = atlas.regions.query("freesurfer_id > 0").sort_values(
        "freesurfer_id"
    )
    if len(numbered_regions) != len(atlas):
        return []
    description = f"in the order of the label numbers of {atlas.name}"
    orders = [RowOrder("labels", tuple(numbered_regions["name"]), description)]
    # without MRtrix's labelconvert there is a row for every number
    numbers = tuple(map(str, range(numbered_regions["freesurfer_id"].max() + 1)))
    is_own_atlas = not atlas.settings.get("annotation")
    if is_own_atlas and len(numbers) > len(atlas) + 1:
        for first in (1, 0):
            description = f"as label numbers of {atlas.name}, from {first}"
            orders.append(RowOrder("labels", numbers[first:], description))
    return orders


def _mirrored_orders(atlas: Atlas) -> list[RowOrder]:
    """Return orders of the atlas' own regions that arrange the sides otherwise."""
    sides = atlas.regions["hemisphere"].to_numpy()
    left_regions = np.flatnonzero(sides == "L")
    right_regions = np.flatnonzero(sides == "R")
    midline_regions = np.flatnonzero(sides == "M")
    if not len(left_regions) or len(left_regions) != len(right_regions):
        return []
    exchanged_regions = np.arange(len(atlas))
    exchanged_regions[left_regions] = right_regions
    exchanged_regions[right_regions] = left_regions
    by_turns = np.column_stack([left_regions, right_regions]).ravel()
    arrangements: dict[str, tuple[Sequence[int], str]] = {
        "right-first": (exchanged_regions.tolist(), "right and left exchanged"),
        "hemispheres": (
            [*left_regions, *right_regions, *midline_regions],
            "all of the left, then of the right",
        ),
        "hemispheres-right-first": (
            [*right_regions, *left_regions, *midline_regions],
            "all of the right, then of the left",
        ),
        "interleaved": ([*by_turns, *midline_regions], "left and right by turns"),
    }
    return [
        RowOrder(
            tool,
            tuple(atlas.names[region] for region in regions),
            f"as {atlas.name}, {arrangement}",
        )
        for tool, (regions, arrangement) in arrangements.items()
    ]


def _freesurfer_orders(atlas: Atlas) -> list[RowOrder]:
    """Return orders of a cortex of FreeSurfer with deep structures of `aseg`."""
    if "annotation" not in atlas.settings:
        return []
    cortex = atlas.regions[atlas.cortex].sort_values("freesurfer_id")
    left_names = cortex["name"][cortex["hemisphere"] == "L"].tolist()
    right_names = cortex["name"][cortex["hemisphere"] == "R"].tolist()
    return [
        *_structure_orders(atlas, left_names, right_names),
        *_schaefer_17_orders(atlas, left_names, right_names),
        *_wall_orders(atlas, left_names, right_names),
    ]


def _on_both_sides(
    structures: Iterable[str], sides: Sequence[str] = ("Left", "Right")
) -> list[str]:
    """Return the names of structures on the first side, then on the second."""
    structures = [*structures]
    return [f"{side}-{structure}" for side in sides for structure in structures]


def _structure_orders(
    atlas: Atlas, left_names: Sequence[str], right_names: Sequence[str]
) -> list[RowOrder]:
    """Return orders of a left and a right cortex with structures of `aseg`."""
    deep = _on_both_sides(_STRUCTURES)
    alphabetic = _on_both_sides(sorted(_STRUCTURES))
    cerebella = _on_both_sides(["Cerebellum-Cortex"])
    with_ventral_dc = _on_both_sides([*_STRUCTURES, "VentralDC"])
    tian = _on_both_sides(_TIAN_S1, ("Right", "Left"))
    n_half = len(_STRUCTURES)
    by_number = [cerebella[0], *deep[:n_half], cerebella[1], *deep[n_half:]]
    # FreeSurfer counts the brain stem (16) between pallidum (13) and hippocampus (17)
    with_brain_stem = [*with_ventral_dc[:4], _BRAIN_STEM, *with_ventral_dc[4:]]
    nodes = [*left_names, cerebella[0], *deep, *right_names, cerebella[1]]
    node_table = atlas.settings.get("mrtrix", "labelconvert table of this parcellation")
    mrtrix = f"in the order of MRtrix's {node_table} ({len(nodes)} nodes)"
    by_label = "in the order of FreeSurfer's numbers, with"
    rows_by_order: list[tuple[str, list[str], str]] = [
        ("mrtrix", nodes, mrtrix),
        # as of tck2connectome -keep_unassigned
        ("mrtrix", ["Unknown", *nodes], f"{mrtrix} after a first row for label 0"),
        (
            "ukbiobank",
            [*left_names, *right_names, *tian],
            "as UK Biobank's: the cortex, then Tian S1",
        ),
        ("aseg", [*left_names, *right_names, *deep], f"as {_ASEG_ORDER}"),
        (
            "enigma",
            [*left_names, *right_names, *alphabetic],
            "as ENIGMA's: accumbens, amygdala ...",
        ),
        (
            "aseg-cerebellum",
            [*left_names, *right_names, *deep, *cerebella],
            f"as {_ASEG_ORDER}, cerebellum",
        ),
        (
            "aseg-ventraldc",
            [*left_names, *right_names, *with_ventral_dc],
            f"as {_ASEG_ORDER}, VentralDC",
        ),
        (
            "aseg-ventraldc",
            [*left_names, *right_names, *with_ventral_dc, _BRAIN_STEM],
            f"as {_ASEG_ORDER}, VentralDC, brain stem",
        ),
        (
            "labels-cerebellum",
            [*by_number, *left_names, *right_names],
            f"{by_label} cerebellum",
        ),
        (
            "labels-ventraldc",
            [*with_ventral_dc, *left_names, *right_names],
            f"{by_label} VentralDC",
        ),
        (
            "labels-ventraldc",
            [*with_brain_stem, *left_names, *right_names],
            f"{by_label} VentralDC and brain stem",
        ),
    ]
    in_atlas = [name for name in alphabetic if atlas.find(name) is not None]
    if len(in_atlas) < len(alphabetic):
        description = "as ENIGMA's: the cortex, then amygdala, caudate ..."
        rows_by_order.append(
            ("enigma", [*left_names, *right_names, *in_atlas], description)
        )
    return [
        RowOrder(tool, tuple(names), description, adds_parts=tool == "ukbiobank")
        for tool, names, description in rows_by_order
    ]


def _schaefer_17_orders(
    atlas: Atlas, left_names: Sequence[str], right_names: Sequence[str]
) -> list[RowOrder]:
    """Return orders of Schaefer's parcels as 17 networks number them."""
    if "order_17networks" not in atlas.settings:
        return []
    positions = np.argsort(atlas.settings["order_17networks"])
    parcels = np.array([*left_names, *right_names])[positions].tolist()
    deep = _on_both_sides(_STRUCTURES)
    alphabetic = _on_both_sides(sorted(_STRUCTURES))
    networks = "in the order of Schaefer's 17 networks"
    return [
        RowOrder(
            "17networks",
            (*parcels, *deep),
            f"{networks}, then FreeSurfer's structures",
        ),
        RowOrder(
            "17networks-enigma", (*parcels, *alphabetic), f"{networks}, then ENIGMA's"
        ),
    ]


def _wall_orders(
    atlas: Atlas, left_names: Sequence[str], right_names: Sequence[str]
) -> list[RowOrder]:
    """Return orders with a row for the medial wall of each side."""
    if "wall" not in atlas.settings:
        return []
    wall = atlas.settings["wall"]
    cortex = list[str]()
    for parcels in (left_names, right_names):
        cortex += [*parcels[:wall], "Medial_wall", *parcels[wall:]]
    deep = _on_both_sides(_STRUCTURES)
    description = f"as {_ASEG_ORDER}, with a wall on each side"
    orders = [RowOrder("walls", (*cortex, *deep), description)]
    for n_cerebellar in _N_CEREBELLAR_ROWS:
        kind = "subcortical matrix"
        if n_cerebellar:
            kind = f"full matrix ({n_cerebellar} cerebellar rows)"
        names = (*deep, *["Cerebellum"] * n_cerebellar, *cortex)
        description = f"in the order of micapipe's {kind}"
        orders.append(RowOrder("micapipe", names, description))
    return orders


# ---- the rows of one matrix ---------------------------------------------------------


def name_rows(
    matrix_path: Path,
    weight_matrix: np.ndarray,
    atlas: Atlas,
    row_order: str | None = None,
    labels: str | Path | Sequence[str] | None = None,
    file_names: Sequence[str] = (),
    header: str = "",
) -> RowNames:
    """Return the names of the rows of a matrix, and what decided them.

    In this order: `labels`; the names in the file; lists beside the matrix (BIDS writes
    a `.json` of its name, scilpy and Connectoflow a `labels_list.txt`, brainlife a
    `label.json`, The Virtual Brain a `centres.txt`); `row_order`; words of one tool in
    the path or the first lines (`header`). Where nothing decides, the result has no
    names.

    Raises
    ------
    FileFormatError
        Where a list has another length than the matrix, or lists contradict each other
        or `row_order`, or no order of that name has so many rows.
    """
    n_rows = len(weight_matrix)
    if row_order is not None:
        check_choice("row_order", row_order, ROW_ORDERS)
    if labels is not None:
        row_names = read_names(labels) if isinstance(labels, str | Path) else labels
        order_note = f"rows named by {option_text('labels')}"
        check_length(matrix_path, n_rows, row_names, order_note)
        return RowNames(tuple(row_names), order_note, "names")
    if file_names and not are_counts(file_names):
        check_length(matrix_path, n_rows, file_names, "read by name")
        return RowNames(tuple(file_names), "read by name", "names")
    order_of_rows = None
    if row_order is not None and row_order != UNCHECKED_NAMES:
        order_of_rows = _find_order(matrix_path, weight_matrix, atlas, row_order)
    names_of_list = find_lists_beside(matrix_path, n_rows)
    if names_of_list:
        return _follow_list(matrix_path, names_of_list, atlas, order_of_rows)
    if order_of_rows is not None:
        return RowNames(
            order_of_rows.names,
            order_of_rows.note,
            "row_order",
            order_of_rows.adds_parts,
            order_of_rows.tool,
        )
    return _name_rows_by_other_evidence(matrix_path, weight_matrix, atlas, header)


def unknown_order_message(
    weight_matrix: np.ndarray,
    atlas: Atlas,
    row_order: str | None = None,
    figures_of_order: Mapping[RowOrder, str] | None = None,
) -> str:
    """Return the message that rows have no known order, with the orders they may have.

    Parameters
    ----------
    weight_matrix : array of shape (n_rows, n_rows)
        The matrix.
    atlas : Atlas
        Names the regions.
    row_order : str, optional
        The order that was asked for and has another number of rows.
    figures_of_order : mapping of RowOrder to str, optional
        How well the weights fit each order, the best first.
    """
    n_rows = len(weight_matrix)
    if figures_of_order is None:
        figures_of_order = dict.fromkeys(fitting_orders(atlas, n_rows), "")
    candidate_lines = list[str]()
    telling_row = _most_telling_row([*figures_of_order])
    for order, figure_text in figures_of_order.items():
        rows_text = (
            f"row {telling_row + 1} is {order.names[telling_row]}, row {n_rows} "
            f"{order.names[-1]}"
        )
        facts_text = f"{rows_text}; {figure_text}" if figure_text else rows_text
        candidate_lines.append(format_candidate(order, facts_text))
    candidate_lines += filter(None, [atlas.settings.get("sizes", {}).get(str(n_rows))])
    if n_rows == len(atlas) + 1:
        candidate_lines.append(
            "the regions and one row more; name the rows, Unknown for label 0"
        )
    message = (
        f"a matrix of {n_rows} x {n_rows} without names cannot be mapped to "
        f"{atlas.name} ({len(atlas)} regions)"
    )
    if row_order:
        message += f" as row_order={row_order!r}"
    advice_text = (
        f"Name the rows in the first row and column or by {option_text('labels')}, "
        f"choose their order by {option_text('row_order')}, or choose the atlas that "
        "fits."
    )
    if not candidate_lines:
        return f"{message}. {advice_text}"
    return (
        f"{message}; its rows could be:{list_candidates(candidate_lines)}"
        f"{_describe_empty_walls(weight_matrix, atlas)}{advice_text}"
    )


def format_candidate(row_order: RowOrder, facts_text: str) -> str:
    """Return the line of a message for one order that rows may have."""
    return f"row_order={row_order.tool!r} ({row_order.description}): {facts_text}"


def list_candidates(candidate_lines: Iterable[str]) -> str:
    """Return lines of a message, one for each candidate, and the start of the next."""
    return (
        "".join(f"\n    {candidate_line}" for candidate_line in candidate_lines)
        + "\n  "
    )


def _follow_list(
    matrix_path: Path,
    names_of_list: Mapping[str, tuple[str, ...]],
    atlas: Atlas,
    order: RowOrder | None,
) -> RowNames:
    """Return the names in the lists of a folder.

    Raises where the lists contradict each other, or the order that was asked for.
    """
    regions_by_list = {
        list_name: regions_of_rows(atlas, row_names)
        for list_name, row_names in names_of_list.items()
    }
    if len({*regions_by_list.values()}) > 1:
        raise FileFormatError(
            f"{' and '.join(names_of_list)} beside it name its rows differently. "
            "Keep the one that is right, or give the names by "
            f"{option_text('labels')}.",
            path=matrix_path,
        )
    list_name, row_names = next(iter(names_of_list.items()))
    if order and regions_by_list[list_name] != regions_of_rows(atlas, order.names):
        raise FileFormatError(
            f"{list_name} and row_order={order.tool!r} name the rows "
            f"differently. Leave {option_text('row_order')} out to follow the list, or "
            f"give the names by {option_text('labels')}.",
            path=matrix_path,
        )
    return RowNames(row_names, f"rows named by {list_name}", "names")


def _name_rows_by_other_evidence(
    path: Path, values: np.ndarray, atlas: Atlas, header: str
) -> RowNames:
    """Return the names of rows that neither a list nor the user names, if any."""
    n_rows = len(values)
    tool = _find_tool(path, header, atlas)
    # of all orders, since one of another tool may put the same regions into these rows
    for order in row_orders(atlas):
        if order.tool == tool and len(order.names) == n_rows:
            note = f"{order.note}, by words of its path or first line"
            return RowNames(order.names, note, "words", order.adds_parts, order.tool)
    if _are_label_numbers(values, atlas):
        order = _label_number_order(n_rows)
        return RowNames(order.names, order.note, "numbers")
    if atlas.settings.get("unnamed_rows") and n_rows == len(atlas):
        note = f"read in the order of {atlas.name}"
        return RowNames(atlas.names, note, "settings", tool="atlas")
    return RowNames((), "", "")


def _find_order(
    path: Path, values: np.ndarray, atlas: Atlas, row_order: str
) -> RowOrder:
    """Return the order that `row_order` names for so many rows, or raise."""
    n_rows = len(values)
    for order in row_orders(atlas):
        if order.tool == row_order and len(order.names) == n_rows:
            return order
    if row_order == "freesurfer" and n_rows >= _MIN_LABEL_NUMBER:
        return _label_number_order(n_rows)
    raise FileFormatError(
        unknown_order_message(values, atlas, row_order),
        path=path,
        kind=UNKNOWN_ORDER,
        values=find_atlas_of_size(n_rows, atlas),
    )


def find_atlas_of_size(n_rows: int, atlas: Atlas) -> dict[str, str]:
    """Return `{"atlas": name}` of another atlas that so many rows may be of, if any."""
    other_atlas = atlas.settings.get("atlas_by_size", {}).get(str(n_rows))
    return {"atlas": other_atlas} if other_atlas else {}


def _label_number_order(n_rows: int) -> RowOrder:
    """Return the order of matrices with a row for every label number of FreeSurfer."""
    numbers = tuple(map(str, range(n_rows)))
    return RowOrder("freesurfer", numbers, "as FreeSurfer's label numbers, from 0")


def _are_label_numbers(values: np.ndarray, atlas: Atlas) -> bool:
    """Return whether rows with weights are at the numbers of regions, from 0."""
    numbers = atlas.regions["freesurfer_id"].to_numpy()
    n_rows = len(values)
    if n_rows < _MIN_LABEL_NUMBER or numbers.min() < 0 or numbers.max() >= n_rows:
        return False
    weights = values[1:, 1:]  # every row may have links to label 0
    has_weights = np.any(weights, axis=1) | np.any(weights, axis=0)
    rows = 1 + np.flatnonzero(has_weights)
    rows = rows[rows >= _MIN_LABEL_NUMBER]  # smaller ones may be of no region
    return len(rows) > 0 and np.isin(rows, numbers).mean() >= _MIN_LABEL_SHARE


def _find_tool(matrix_path: Path, header: str, atlas: Atlas) -> str | None:
    """Return the tool that the path or the first lines name, None where none do."""
    searched_text = f"{matrix_path.as_posix()}\n{header}"
    for tool_name, tool_words in _TOOL_WORDS.items():
        word_match = tool_words.search(searched_text)
        if word_match is None:
            continue
        if tool_name == "ukbiobank" and word_match["cortex"] != atlas.settings.get(
            "ukbiobank"
        ):
            return None  # of another cortex
        return tool_name
    has_node_image = matrix_path.parent.is_dir() and any(
        _NODE_IMAGE.search(folder_file.name)
        for folder_file in matrix_path.parent.iterdir()
    )
    return "mrtrix" if has_node_image else None


def _most_telling_row(possible_orders: Sequence[RowOrder]) -> int:
    """Return the first row by whose name most orders differ."""
    if not possible_orders:
        return 0
    names_by_row = zip(*(row_order.names for row_order in possible_orders), strict=True)
    return int(np.argmax([len({*names_of_row}) for names_of_row in names_by_row]))


def _describe_empty_walls(weight_matrix: np.ndarray, atlas: Atlas) -> str:
    """Return the sentence that rows are empty where an order has the medial walls.

    The cortex with a wall on each side and 14 structures has as many rows as MRtrix's
    nodes, which have cortex in these rows.
    """
    walls = atlas.settings.get("walls")
    if walls is None or walls["size"] != len(weight_matrix) or not weight_matrix.any():
        return ""
    wall_texts = [
        f"Rows {rows[0] + 1} and {rows[1] + 1} are empty, as medial walls are. "
        for rows in walls["rows"]
        if not (weight_matrix[rows].any() or weight_matrix[:, rows].any())
    ]
    return "".join(wall_texts)
