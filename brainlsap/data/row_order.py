"""Find the region of each row of a matrix, from names in a file or an order of a tool.

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

from brainlsap.atlas import Atlas, available_atlases, load_atlas
from brainlsap.atlas.region_names import are_default_row_names
from brainlsap.data.region_lists import (
    check_one_name_per_row,
    drop_background_name,
    find_row_names_by_list,
    read_row_names,
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
    *("Hippocampus", "Amygdala", "Thalamus-Posterior", "Thalamus-Anterior"),
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


FIGURES_TEXT = (
    "Measures of fit: 'template' is the correlation with a template connectome, "
    "'hemispheres' the correlation between the two hemispheres, and 'left-right links' "
    "the mean rank of the connection between a left region and its right counterpart "
    "(1 is the strongest). A measure that cannot be computed is left out."
)
"""Explanation of the figures of an order in a message."""


class RowOrder(NamedTuple):
    """An order in which a tool writes the rows of its matrices.

    Parameters
    ----------
    tool_name : str
        Value of `row_order=` for it.
    names : tuple of str
        Name of each row.
    description : str
        Completes the sentence "rows are read ...".
    adds_parts : bool
        Whether rows of one name are parts of a region, whose weights are added.
    """

    tool_name: str
    names: tuple[str, ...]
    description: str
    adds_parts: bool = False

    @property
    def note(self) -> str:
        """Note on a matrix that was read in this order."""
        return f"read {self.description}"


class RowNames(NamedTuple):
    """Names of the rows of one matrix, and what decided them.

    Parameters
    ----------
    names : tuple of str
        Empty where nothing decided.
    note : str
        Note on a matrix whose rows have these names.
    source : str
        "names" (of the file or a list), "words" of the path, "row_order", "settings" of
        the atlas, label "numbers", "array" in memory, or "" where nothing decided.
    adds_parts : bool
        Whether rows of one name are parts of a region, whose weights are added.
    tool_name : str
        The order's `RowOrder.tool_name`, where an order names the rows.
    """

    names: tuple[str, ...]
    note: str
    source: Literal["names", "words", "row_order", "settings", "numbers", "array", ""]
    adds_parts: bool = False
    tool_name: str = ""

    @property
    def is_tool_order(self) -> bool:
        """Whether the order is a tool's own, so that a study has one of them.

        Arrangements of the same regions may be mixed.
        """
        return self.tool_name != "" and self.tool_name not in _ARRANGEMENTS


# ---- known orders -------------------------------------------------------------------


_MRTRIX_ANNOTATIONS = ("aparc", "aparc.a2009s")


@lru_cache(maxsize=16)
def list_row_orders(atlas: Atlas) -> tuple[RowOrder, ...]:
    """Return the orders that matrices of an atlas without names may have.

    Each has all regions: FreeSurfer's tools have no parts of a structure.
    """
    candidate_orders = (
        RowOrder("atlas", atlas.names, f"in the order of {atlas.name}"),
        *_list_label_orders(atlas),
        *_list_mirrored_orders(atlas),
        *_list_freesurfer_orders(atlas),
    )
    return tuple(
        row_order
        for row_order in candidate_orders
        if len({*find_region_index_by_row(atlas, row_order.names)} - {None})
        == len(atlas)
    )


@lru_cache(maxsize=64)
def list_fitting_orders(atlas: Atlas, n_matrix_rows: int) -> list[RowOrder]:
    """Return the different orders that matrices of so many rows may have.

    Of orders that put the same regions into the same rows, the first counts.
    """
    order_by_region_indices = dict[tuple[int | None, ...], RowOrder]()
    for row_order in list_row_orders(atlas):
        if len(row_order.names) == n_matrix_rows:
            row_region_indices = find_region_index_by_row(atlas, row_order.names)
            order_by_region_indices.setdefault(row_region_indices, row_order)
    return list(order_by_region_indices.values())


def find_bundled_atlas_and_order(own_atlas: Atlas) -> tuple[str, str] | None:
    """Return the bundled atlas that has the regions of one's own, and their row order.

    All regions of the bundled atlas must be among the names, which may add others. The
    order is "" where the regions stand in none of the known ones.
    """
    for bundled_name in available_atlases():
        bundled_atlas = load_atlas(bundled_name)
        row_region_indices = find_region_index_by_row(bundled_atlas, own_atlas.names)
        if len({*row_region_indices} - {None}) < len(bundled_atlas):
            continue
        for row_order in list_fitting_orders(bundled_atlas, len(own_atlas)):
            if (
                find_region_index_by_row(bundled_atlas, row_order.names)
                == row_region_indices
            ):
                return bundled_name, row_order.tool_name
        return bundled_name, ""
    return None


def find_region_index_by_row(
    atlas: Atlas, row_names: Sequence[str]
) -> tuple[int | None, ...]:
    """Return the region of each row, None for rows that the atlas leaves out."""
    if all(map(str.isdecimal, row_names)):
        region_row_indices, _ = atlas.find_file_rows(row_names)
        region_index_by_row = {
            int(row_index): region_index
            for region_index, row_index in enumerate(region_row_indices)
        }
        return tuple(map(region_index_by_row.get, range(len(row_names))))
    return tuple(map(atlas.find, row_names))


def _list_label_orders(atlas: Atlas) -> list[RowOrder]:
    """Return the orders by label number of an atlas whose regions all have one."""
    numbered_table = atlas.regions.query("freesurfer_id > 0").sort_values(
        "freesurfer_id"
    )
    if len(numbered_table) != len(atlas):
        return []
    description = f"in the order of the label numbers of {atlas.name}"
    label_orders = [RowOrder("labels", tuple(numbered_table["name"]), description)]
    # without MRtrix's labelconvert there is a row for every number
    label_numbers = tuple(map(str, range(numbered_table["freesurfer_id"].max() + 1)))
    is_user_atlas = not atlas.settings.get("annotation")
    if is_user_atlas and len(label_numbers) > len(atlas) + 1:
        for first_number in (1, 0):
            description = f"as label numbers of {atlas.name}, from {first_number}"
            label_orders.append(
                RowOrder("labels", label_numbers[first_number:], description)
            )
    return label_orders


def _list_mirrored_orders(atlas: Atlas) -> list[RowOrder]:
    """Return orders of the atlas' own regions that arrange the sides otherwise."""
    hemispheres = atlas.regions["hemisphere"].to_numpy()
    left_indices = np.flatnonzero(hemispheres == "L")
    right_indices = np.flatnonzero(hemispheres == "R")
    midline_indices = np.flatnonzero(hemispheres == "M")
    if not len(left_indices) or len(left_indices) != len(right_indices):
        return []
    exchanged_indices = np.arange(len(atlas))
    exchanged_indices[left_indices] = right_indices
    exchanged_indices[right_indices] = left_indices
    interleaved_indices = np.column_stack([left_indices, right_indices]).ravel()
    midline_text = ", then all midline regions" if len(midline_indices) else ""
    arrangement_by_order: dict[str, tuple[Sequence[int], str]] = {
        "right-first": (exchanged_indices.tolist(), "right and left swapped"),
        "hemispheres": (
            [*left_indices, *right_indices, *midline_indices],
            f"all left regions, then all right regions{midline_text}",
        ),
        "hemispheres-right-first": (
            [*right_indices, *left_indices, *midline_indices],
            f"all right regions, then all left regions{midline_text}",
        ),
        "interleaved": (
            [*interleaved_indices, *midline_indices],
            f"left and right regions in turn{midline_text}",
        ),
    }
    return [
        RowOrder(
            arrangement_name,
            tuple(atlas.names[region_index] for region_index in arranged_indices),
            f"as {atlas.name}, {arrangement_text}",
        )
        for arrangement_name, (
            arranged_indices,
            arrangement_text,
        ) in arrangement_by_order.items()
    ]


def _list_freesurfer_orders(atlas: Atlas) -> list[RowOrder]:
    """Return orders of a cortex of FreeSurfer with deep structures of `aseg`."""
    if "annotation" not in atlas.settings:
        return []
    cortex_table = atlas.regions[atlas.cortex].sort_values("freesurfer_id")
    left_names = cortex_table["name"][cortex_table["hemisphere"] == "L"].tolist()
    right_names = cortex_table["name"][cortex_table["hemisphere"] == "R"].tolist()
    return [
        *_list_orders_with_subcortex(atlas, left_names, right_names),
        *_list_schaefer_17_orders(atlas, left_names, right_names),
        *_list_orders_with_walls(atlas, left_names, right_names),
    ]


def _list_names_by_side(
    structure_names: Iterable[str], side_words: Sequence[str] = ("Left", "Right")
) -> list[str]:
    """Return the names of structures on the first side, then on the second."""
    structure_names = [*structure_names]
    return [
        f"{side_word}-{structure_name}"
        for side_word in side_words
        for structure_name in structure_names
    ]


def _list_orders_with_subcortex(
    atlas: Atlas, left_names: Sequence[str], right_names: Sequence[str]
) -> list[RowOrder]:
    """Return orders of a left and a right cortex with structures of `aseg`."""
    deep_structure_names = _list_names_by_side(_STRUCTURES)
    alphabetic_names = _list_names_by_side(sorted(_STRUCTURES))
    cerebellum_names = _list_names_by_side(["Cerebellum-Cortex"])
    ventral_dc_names = _list_names_by_side([*_STRUCTURES, "VentralDC"])
    tian_names = _list_names_by_side(_TIAN_S1, ("Right", "Left"))
    has_structure_parts = bool(atlas.structure_part_mask.any())
    if not has_structure_parts:
        tian_names = [
            re.sub("(?<=Thalamus)-.*", "", tian_name) for tian_name in tian_names
        ]
    n_structures = len(_STRUCTURES)
    numbered_names = [
        cerebellum_names[0],
        *deep_structure_names[:n_structures],
        cerebellum_names[1],
        *deep_structure_names[n_structures:],
    ]
    # FreeSurfer counts the brain stem (16) between pallidum (13) and hippocampus (17)
    brain_stem_names = [*ventral_dc_names[:4], _BRAIN_STEM, *ventral_dc_names[4:]]
    node_names = [
        *left_names,
        cerebellum_names[0],
        *deep_structure_names,
        *right_names,
        cerebellum_names[1],
    ]
    number_order_text = "in the order of FreeSurfer's numbers, with"
    order_triples: list[tuple[str, list[str], str]] = []
    node_table_name = atlas.settings.get("mrtrix")
    # MRtrix has its own tables for these annotations: an atlas with other regions has
    # none of its nodes.
    if not node_table_name and atlas.settings["annotation"] not in _MRTRIX_ANNOTATIONS:
        node_table_name = "labelconvert table of this parcellation"
    if node_table_name:
        mrtrix_description = (
            f"in the order of MRtrix's {node_table_name} ({len(node_names)} nodes)"
        )
        order_triples += [
            ("mrtrix", node_names, mrtrix_description),
            # as of tck2connectome -keep_unassigned
            (
                "mrtrix",
                ["Unknown", *node_names],
                f"{mrtrix_description} after a first row for label 0",
            ),
        ]
    order_triples += [
        (
            "ukbiobank",
            [*left_names, *right_names, *tian_names],
            "as UK Biobank's: the cortex, then Tian S1",
        ),
        (
            "aseg",
            [*left_names, *right_names, *deep_structure_names],
            f"as {_ASEG_ORDER}",
        ),
        (
            "enigma",
            [*left_names, *right_names, *alphabetic_names],
            "as ENIGMA's: accumbens, amygdala ...",
        ),
        (
            "aseg-cerebellum",
            [*left_names, *right_names, *deep_structure_names, *cerebellum_names],
            f"as {_ASEG_ORDER}, cerebellum",
        ),
        (
            "aseg-ventraldc",
            [*left_names, *right_names, *ventral_dc_names],
            f"as {_ASEG_ORDER}, VentralDC",
        ),
        (
            "aseg-ventraldc",
            [*left_names, *right_names, *ventral_dc_names, _BRAIN_STEM],
            f"as {_ASEG_ORDER}, VentralDC, brain stem",
        ),
        (
            "labels-cerebellum",
            [*numbered_names, *left_names, *right_names],
            f"{number_order_text} cerebellum",
        ),
        (
            "labels-ventraldc",
            [*ventral_dc_names, *left_names, *right_names],
            f"{number_order_text} VentralDC",
        ),
        (
            "labels-ventraldc",
            [*brain_stem_names, *left_names, *right_names],
            f"{number_order_text} VentralDC and brain stem",
        ),
    ]
    atlas_structure_names = [
        structure_name
        for structure_name in alphabetic_names
        if atlas.find(structure_name) is not None
    ]
    if len(atlas_structure_names) < len(alphabetic_names):
        description = "as ENIGMA's: the cortex, then amygdala, caudate ..."
        order_triples.append(
            ("enigma", [*left_names, *right_names, *atlas_structure_names], description)
        )
    return [
        RowOrder(
            tool_name,
            tuple(row_names),
            description,
            adds_parts=tool_name == "ukbiobank" and not has_structure_parts,
        )
        for tool_name, row_names, description in order_triples
    ]


def _list_schaefer_17_orders(
    atlas: Atlas, left_names: Sequence[str], right_names: Sequence[str]
) -> list[RowOrder]:
    """Return orders of Schaefer's parcels as 17 networks number them."""
    if "order_17networks" not in atlas.settings:
        return []
    parcel_indices = np.argsort(atlas.settings["order_17networks"])
    parcel_names = np.array([*left_names, *right_names])[parcel_indices].tolist()
    deep_structure_names = _list_names_by_side(_STRUCTURES)
    alphabetic_names = _list_names_by_side(sorted(_STRUCTURES))
    order_description = "in the order of Schaefer's 17 networks"
    return [
        RowOrder(
            "17networks",
            (*parcel_names, *deep_structure_names),
            f"{order_description}, then FreeSurfer's structures",
        ),
        RowOrder(
            "17networks-enigma",
            (*parcel_names, *alphabetic_names),
            f"{order_description}, then ENIGMA's",
        ),
    ]


def _list_orders_with_walls(
    atlas: Atlas, left_names: Sequence[str], right_names: Sequence[str]
) -> list[RowOrder]:
    """Return orders with a row for the medial wall of each side."""
    if "wall" not in atlas.settings:
        return []
    wall_index = atlas.settings["wall"]
    cortical_row_names = list[str]()
    for parcel_names in (left_names, right_names):
        cortical_row_names += [
            *parcel_names[:wall_index],
            "Medial_wall",
            *parcel_names[wall_index:],
        ]
    deep_structure_names = _list_names_by_side(_STRUCTURES)
    description = f"as {_ASEG_ORDER}, with a wall on each side"
    wall_orders = [
        RowOrder("walls", (*cortical_row_names, *deep_structure_names), description)
    ]
    for n_cerebellar_rows in _N_CEREBELLAR_ROWS:
        matrix_kind_text = "subcortical matrix"
        if n_cerebellar_rows:
            matrix_kind_text = f"full matrix ({n_cerebellar_rows} cerebellar rows)"
        row_names = (
            *deep_structure_names,
            *["Cerebellum"] * n_cerebellar_rows,
            *cortical_row_names,
        )
        description = f"in the order of micapipe's {matrix_kind_text}"
        wall_orders.append(RowOrder("micapipe", row_names, description))
    return wall_orders


# ---- the rows of one matrix ---------------------------------------------------------


def choose_row_names(
    matrix_path: Path,
    weight_matrix: np.ndarray,
    atlas: Atlas,
    row_order_name: str | None = None,
    row_name_source: str | Path | Sequence[str] | None = None,
    file_row_names: Sequence[str] = (),
    comment_text: str = "",
) -> RowNames:
    """Return the names of the rows of a matrix, and what decided them.

    In this order: `row_name_source`; the names in the file; lists beside the matrix
    (BIDS writes a `.json` of its name, scilpy and Connectoflow a `labels_list.txt`,
    brainlife a `label.json`, The Virtual Brain a `centres.txt`); `row_order_name`;
    words of one tool in the path or the comment lines (`comment_text`). Where nothing
    decides, the result has no names.

    Raises
    ------
    FileFormatError
        If a list has another length than the matrix, or lists contradict each other
        or `row_order_name`, or no order of that name has so many rows.
    """
    n_matrix_rows = len(weight_matrix)
    if row_order_name is not None:
        check_choice("row_order", row_order_name, ROW_ORDERS)
    if row_name_source is not None:
        row_names = (
            read_row_names(row_name_source)
            if isinstance(row_name_source, str | Path)
            else row_name_source
        )
        row_names = drop_background_name(row_names, n_matrix_rows)
        order_note = f"rows named with {option_text('labels')}"
        check_one_name_per_row(matrix_path, n_matrix_rows, row_names, order_note)
        return RowNames(row_names, order_note, "names")
    if file_row_names and not are_default_row_names(file_row_names):
        check_one_name_per_row(
            matrix_path, n_matrix_rows, file_row_names, "read by name"
        )
        return RowNames(tuple(file_row_names), "read by name", "names")
    expected_order = None
    if row_order_name is not None and row_order_name != UNCHECKED_NAMES:
        expected_order = _get_named_row_order(
            matrix_path, weight_matrix, atlas, row_order_name
        )
    names_by_list = find_row_names_by_list(matrix_path, n_matrix_rows)
    if names_by_list:
        return _choose_row_names_by_lists(
            matrix_path, names_by_list, atlas, expected_order
        )
    if expected_order is not None:
        return RowNames(
            expected_order.names,
            expected_order.note,
            "row_order",
            expected_order.adds_parts,
            expected_order.tool_name,
        )
    return _choose_row_names_by_evidence(
        matrix_path, weight_matrix, atlas, comment_text
    )


def unknown_order_message(
    weight_matrix: np.ndarray,
    atlas: Atlas,
    row_order_name: str | None = None,
    fit_text_by_order: Mapping[RowOrder, str] | None = None,
    best_order: RowOrder | None = None,
) -> str:
    """Return the message that rows have no known order, with the orders they may have.

    Parameters
    ----------
    weight_matrix : array of shape (n_rows, n_rows)
        The matrix.
    atlas : Atlas
        Names the regions.
    row_order_name : str, optional
        The order that was asked for and has another number of rows.
    fit_text_by_order : mapping of RowOrder to str, optional
        Fit of the weights to each order, the best first.
    best_order : RowOrder, optional
        The order that the weights fit clearly better than all others.
    """
    n_matrix_rows = len(weight_matrix)
    if fit_text_by_order is None:
        fit_text_by_order = dict.fromkeys(list_fitting_orders(atlas, n_matrix_rows), "")
    candidate_lines = list[str]()
    telling_row_index = _find_telling_row_index([*fit_text_by_order])
    for candidate_order, fit_text in fit_text_by_order.items():
        rows_text = (
            f"row {telling_row_index + 1} is "
            f"{candidate_order.names[telling_row_index]}, and row {n_matrix_rows} is "
            f"{candidate_order.names[-1]}"
        )
        facts_text = f"{rows_text}; {fit_text}" if fit_text else rows_text
        candidate_line = format_candidate_line(candidate_order, facts_text)
        if candidate_order is best_order:
            candidate_line = f"best fit: {candidate_line}"
        candidate_lines.append(candidate_line)
    candidate_lines += filter(
        None, [atlas.settings.get("sizes", {}).get(str(n_matrix_rows))]
    )
    if n_matrix_rows == len(atlas) + 1:
        candidate_lines.append(
            "the regions and one further row; name all rows, and call the row of "
            "label 0 'Unknown'"
        )
    message = (
        f"a matrix of {n_matrix_rows} x {n_matrix_rows} without names cannot be mapped "
        f"to {atlas.name} ({len(atlas)} regions)"
    )
    if row_order_name:
        message += f" as {option_text('row_order', row_order_name)}"
    advice_text = (
        f"Name the rows in the first row and column or with {option_text('labels')}, "
        f"choose their order with {option_text('row_order')}, or choose another "
        "atlas."
    )
    if not candidate_lines:
        return f"{message}. {advice_text}"
    if any(fit_text_by_order.values()):
        advice_text = f"{FIGURES_TEXT} {advice_text}"
    elif row_order_name:
        advice_text += (
            f" Without {option_text('row_order')}, this message shows how well the "
            "weights fit each order."
        )
    return (
        f"{message}; its rows could be:{candidate_lines_text(candidate_lines)}"
        f"{_empty_walls_sentence(weight_matrix, atlas)}{advice_text}"
    )


def format_candidate_line(row_order: RowOrder, evidence_text: str) -> str:
    """Return the line of a message for one order that rows may have."""
    setting_text = option_text("row_order", row_order.tool_name)
    return f"{setting_text} ({row_order.description}): {evidence_text}"


def candidate_lines_text(candidate_lines: Iterable[str]) -> str:
    """Return lines of a message, one for each candidate, and the start of the next."""
    return (
        "".join(f"\n    {candidate_line}" for candidate_line in candidate_lines)
        + "\n  "
    )


def _choose_row_names_by_lists(
    matrix_path: Path,
    names_by_list: Mapping[str, tuple[str, ...]],
    atlas: Atlas,
    expected_order: RowOrder | None,
) -> RowNames:
    """Return the names in the lists of a folder.

    Raises where the lists contradict each other, or the order that was asked for.
    """
    region_indices_by_list = {
        list_name: find_region_index_by_row(atlas, row_names)
        for list_name, row_names in names_by_list.items()
    }
    if len({*region_indices_by_list.values()}) > 1:
        raise FileFormatError(
            f"{' and '.join(names_by_list)} in the same folder contradict each other "
            "about the names of the rows. Keep only the correct list, or give the "
            f"names with {option_text('labels')}.",
            path=matrix_path,
        )
    list_name, row_names = next(iter(names_by_list.items()))
    if expected_order and region_indices_by_list[list_name] != find_region_index_by_row(
        atlas, expected_order.names
    ):
        raise FileFormatError(
            f"the names of the rows in {list_name} contradict "
            f"{option_text('row_order', expected_order.tool_name)}. To use the names "
            f"in {list_name}, leave {option_text('row_order')} out. To use other "
            f"names, give them with {option_text('labels')}.",
            path=matrix_path,
        )
    return RowNames(row_names, f"rows named by {list_name}", "names")


def _choose_row_names_by_evidence(
    matrix_path: Path, weight_matrix: np.ndarray, atlas: Atlas, comment_text: str
) -> RowNames:
    """Return the names of rows that neither a list nor the user names, if any."""
    n_matrix_rows = len(weight_matrix)
    tool_name = _find_tool_name(matrix_path, comment_text, atlas)
    # of all orders, since one of another tool may put the same regions into these rows
    for row_order in list_row_orders(atlas):
        if row_order.tool_name == tool_name and len(row_order.names) == n_matrix_rows:
            order_note = (
                f"{row_order.note}, because its path or first line names this tool"
            )
            return RowNames(
                row_order.names,
                order_note,
                "words",
                row_order.adds_parts,
                row_order.tool_name,
            )
    if _are_rows_label_numbers(weight_matrix, atlas):
        row_order = _make_label_number_order(n_matrix_rows)
        return RowNames(row_order.names, row_order.note, "numbers")
    if atlas.settings.get("unnamed_rows") and n_matrix_rows == len(atlas):
        order_note = f"the rows were read in the order of {atlas.name}"
        return RowNames(atlas.names, order_note, "settings", tool_name="atlas")
    return RowNames((), "", "")


def _get_named_row_order(
    matrix_path: Path, weight_matrix: np.ndarray, atlas: Atlas, row_order_name: str
) -> RowOrder:
    """Return the order of this name for so many rows, or raise."""
    n_matrix_rows = len(weight_matrix)
    for row_order in list_row_orders(atlas):
        if (
            row_order.tool_name == row_order_name
            and len(row_order.names) == n_matrix_rows
        ):
            return row_order
    if row_order_name == "freesurfer" and n_matrix_rows >= _MIN_LABEL_NUMBER:
        return _make_label_number_order(n_matrix_rows)
    raise FileFormatError(
        unknown_order_message(weight_matrix, atlas, row_order_name),
        path=matrix_path,
        kind=UNKNOWN_ORDER,
        values={"n_rows": n_matrix_rows, **propose_atlas_by_size(n_matrix_rows, atlas)},
    )


def propose_atlas_by_size(n_matrix_rows: int, atlas: Atlas) -> dict[str, str]:
    """Return `{"atlas": name}` of another atlas that so many rows may be of, if any."""
    other_atlas_name = atlas.settings.get("atlas_by_size", {}).get(str(n_matrix_rows))
    return {"atlas": other_atlas_name} if other_atlas_name else {}


def _make_label_number_order(n_matrix_rows: int) -> RowOrder:
    """Return the order of matrices with a row for every label number of FreeSurfer."""
    label_numbers = tuple(map(str, range(n_matrix_rows)))
    return RowOrder(
        "freesurfer", label_numbers, "as FreeSurfer's label numbers, from 0"
    )


def _are_rows_label_numbers(weight_matrix: np.ndarray, atlas: Atlas) -> bool:
    """Return whether rows with weights are at the numbers of regions, from 0."""
    label_numbers = atlas.regions["freesurfer_id"].to_numpy()
    n_matrix_rows = len(weight_matrix)
    if (
        n_matrix_rows < _MIN_LABEL_NUMBER
        or label_numbers.min() < 0
        or label_numbers.max() >= n_matrix_rows
    ):
        return False
    region_weights = weight_matrix[1:, 1:]  # every row may have links to label 0
    linked_row_mask = np.any(region_weights, axis=1) | np.any(region_weights, axis=0)
    linked_row_indices = 1 + np.flatnonzero(linked_row_mask)
    linked_row_indices = linked_row_indices[
        linked_row_indices >= _MIN_LABEL_NUMBER
    ]  # smaller ones may be of no region
    return (
        len(linked_row_indices) > 0
        and np.isin(linked_row_indices, label_numbers).mean() >= _MIN_LABEL_SHARE
    )


def _find_tool_name(matrix_path: Path, comment_text: str, atlas: Atlas) -> str | None:
    """Return the tool that the path or the first lines name, None where none do."""
    searched_text = f"{matrix_path.as_posix()}\n{comment_text}"
    for tool_name, tool_pattern in _TOOL_WORDS.items():
        word_match = tool_pattern.search(searched_text)
        if word_match is None:
            continue
        if tool_name == "ukbiobank" and word_match["cortex"] != atlas.settings.get(
            "ukbiobank"
        ):
            return None  # of another cortex
        return tool_name
    has_node_image = matrix_path.parent.is_dir() and any(
        _NODE_IMAGE.search(file_path.name) for file_path in matrix_path.parent.iterdir()
    )
    return "mrtrix" if has_node_image else None


def _find_telling_row_index(possible_orders: Sequence[RowOrder]) -> int:
    """Return the first row by whose name most orders differ."""
    if not possible_orders:
        return 0
    names_by_row = zip(*(row_order.names for row_order in possible_orders), strict=True)
    return int(
        np.argmax([len({*candidate_row_names}) for candidate_row_names in names_by_row])
    )


def _empty_walls_sentence(weight_matrix: np.ndarray, atlas: Atlas) -> str:
    """Return the sentence that rows are empty where an order has the medial walls.

    The cortex with a wall on each side and 14 structures has as many rows as MRtrix's
    nodes, which have cortex in these rows.
    """
    wall_settings = atlas.settings.get("walls")
    if (
        wall_settings is None
        or wall_settings["size"] != len(weight_matrix)
        or not weight_matrix.any()
    ):
        return ""
    wall_texts = [
        f"Rows {wall_row_indices[0] + 1} and {wall_row_indices[1] + 1} are empty, as "
        "the medial walls usually are. "
        for wall_row_indices in wall_settings["rows"]
        if not (
            weight_matrix[wall_row_indices].any()
            or weight_matrix[:, wall_row_indices].any()
        )
    ]
    return "".join(wall_texts)
