"""Check on the weights that the rows of connectomes are the regions they are taken for.

Three figures are computed under each known order of so many rows: the rank correlation
of the weights with a template connectome (:func:`compute_template_connectome`), the
rank correlation of the weights within the left hemisphere with those within the right,
and the mean rank of the links between homotopic regions among all links of these
regions to the other side (0 to 1; 0.5 by chance).

Two orders are compared on the regions for which they differ. The weights clearly prefer
an order if its correlation is at least `MIN_CORRELATION` and exceeds that of the other
order by `MIN_LEAD`. The correlation of the hemispheres counts only where the template
does not decide and homotopic links stand out (`MIN_HOMOTOPIC_RANK`). The exchange of
whole hemispheres changes none of the figures: only names say which side is left.

The template is the ENIGMA Toolbox's structural connectome of young adults (Human
Connectome Project) on Schaefer's 400 parcels and 14 structures, stored with that atlas.
For another atlas, the weights of each parcel are distributed over the regions by the
share of its vertices in each region. The template shows which regions are usually
connected; it holds no data of single participants.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap.atlas.atlas import Atlas, load_atlas
from brainlsap.data.row_order import (
    FIGURES_TEXT,
    UNKNOWN_ORDER,
    RowNames,
    RowOrder,
    candidate_lines_text,
    find_region_index_by_row,
    format_candidate_line,
    list_fitting_orders,
    propose_atlas_by_size,
    unknown_order_message,
)
from brainlsap.exceptions import BrainlsapError, FileFormatError
from brainlsap.text import join_with_commas, option_text

# Smallest correlation that is evidence for an order, and its lead over another order
# (benchmarks/row_orders.py measures how often this rule errs).
MIN_CORRELATION = 0.25
MIN_LEAD = 0.15
# Smallest mean rank of homotopic links that stand out.
MIN_HOMOTOPIC_RANK = 0.6
# Fewer pairs of regions than this correlate by chance.
_MIN_PAIRS = 150
# Maximum number of better orders that a message lists.
_MAX_CANDIDATES = 4

_TEMPLATE_ATLAS = "schaefer400"
_TEMPLATE_FILE = "template_connectome.csv.gz"


class UnknownOrderError(FileFormatError):
    """Nothing says which regions the rows of a matrix are."""


class OrderFit(NamedTuple):
    """Fit of weights to an order of rows; NaN if nothing can be compared."""

    template_correlation: float
    hemisphere_correlation: float
    homotopic_rank: float

    def __str__(self) -> str:
        fit_measure_titles = ("template", "hemispheres", "left-right links")
        name_value_pairs = zip(fit_measure_titles, self, strict=True)
        return ", ".join(
            f"{fit_name} {fit_value:.2f}"
            for fit_name, fit_value in name_value_pairs
            if np.isfinite(fit_value)
        )


@dataclass
class _MatrixGroup:
    """Matrices with the same names of rows: the sum of their weights, and one path."""

    row_names_record: RowNames
    path: Path
    summed_weights: np.ndarray
    n_matrices: int = 1

    def __str__(self) -> str:
        if self.n_matrices == 1:
            return str(self.path)
        return f"{self.path} and {self.n_matrices - 1} other matrices"


@dataclass
class OrderCheck:
    """Collect matrices by the names of their rows, then check the mean of each group.

    Parameters
    ----------
    atlas : Atlas
        Atlas of the regions of the rows.
    """

    atlas: Atlas
    matrix_groups: dict[tuple[RowNames, int], _MatrixGroup] = field(
        default_factory=dict
    )

    def add_matrix(
        self, weight_matrix: np.ndarray, row_names_record: RowNames, matrix_path: Path
    ) -> None:
        """Add one matrix in the order of its file; its rows may have no names."""
        if row_names_record.source == "numbers":
            return  # these were recognised by their weights
        complete_weight_matrix = _fill_triangles_of_weights(weight_matrix)
        total_weight = complete_weight_matrix.sum()
        complete_weight_matrix = (
            complete_weight_matrix / total_weight
            if total_weight > 0
            else complete_weight_matrix
        )
        group_key = row_names_record, len(complete_weight_matrix)
        matrix_group = self.matrix_groups.get(group_key)
        if matrix_group is None:
            self.matrix_groups[group_key] = _MatrixGroup(
                row_names_record, matrix_path, complete_weight_matrix
            )
            return
        matrix_group.summed_weights += complete_weight_matrix
        matrix_group.n_matrices += 1

    def count_matrices_by_size(self) -> Counter[int]:
        """Return the number of matrices with each number of rows."""
        n_matrices_by_n_rows = Counter[int]()
        for matrix_group in self.matrix_groups.values():
            n_matrices_by_n_rows[len(matrix_group.summed_weights)] += (
                matrix_group.n_matrices
            )
        return n_matrices_by_n_rows

    def remove_unnamed_matrices(self, n_matrix_rows: int) -> None:
        """Forget the matrices of this size with rows that nothing names."""
        self.matrix_groups = {
            group_key: matrix_group
            for group_key, matrix_group in self.matrix_groups.items()
            if matrix_group.row_names_record.names
            or len(matrix_group.summed_weights) != n_matrix_rows
        }

    def list_refusals(self) -> list[FileFormatError]:
        """Return an error for each group that is unknown, or of another order."""
        order_errors = list[FileFormatError]()
        for matrix_group in self.matrix_groups.values():
            if not matrix_group.row_names_record.names:
                order_errors.append(_make_unknown_order_error(matrix_group, self.atlas))
                continue
            better_orders = _find_better_orders(matrix_group, self.atlas)
            if better_orders:
                message = _make_other_order_message(
                    matrix_group, better_orders, self.atlas
                )
                better_tool_names = tuple(
                    better_order.tool_name for better_order in better_orders
                )
                order_errors.append(
                    FileFormatError(
                        message,
                        path=str(matrix_group),
                        kind="another order fits better",
                        values={"row_orders": better_tool_names},
                    )
                )
        return order_errors

    def raise_refusal(self) -> None:
        """Raise the first refusal, if there is one."""
        for order_error in self.list_refusals():
            raise order_error

    def count_matrices_by_note(self) -> dict[str, int]:
        """Return notes on the fit of orders of unnamed rows, with numbers of matrices.

        The keys are sentences, the values numbers of matrices.
        """
        n_matrices_by_note = dict[str, int]()
        for matrix_group in self.matrix_groups.values():
            if matrix_group.row_names_record.source in ("words", "row_order"):
                evidence_note = _evidence_note(matrix_group, self.atlas)
                n_matrices_by_note[evidence_note] = (
                    n_matrices_by_note.get(evidence_note, 0) + matrix_group.n_matrices
                )
        return n_matrices_by_note


def check_arrays(W: np.ndarray, atlas: Atlas) -> None:
    """Raise where connectomes in memory clearly fit another order than the atlas'.

    Parameters
    ----------
    W : array of shape (n_scans, n_rois, n_rois) or (n_rois, n_rois)
        In the order of `atlas`.
    atlas : Atlas
        Names the regions.

    Raises
    ------
    FileFormatError
        With the orders that so many rows may have, and how well the weights fit each.
    """
    if W.ndim not in (2, 3) or W.shape[-2:] != (len(atlas), len(atlas)):
        return  # shapes are checked elsewhere
    mean_matrix = W
    if W.ndim == 3:
        is_connectome_shared = W.strides[0] == 0  # one connectome for all scans
        mean_matrix = W[0] if is_connectome_shared else W.mean(axis=0)
    order_check = OrderCheck(atlas)
    row_names_record = RowNames(
        atlas.names, f"taken in the order of {atlas.name}", "array"
    )
    order_check.add_matrix(mean_matrix, row_names_record, Path("connectomes="))
    order_check.raise_refusal()


def compute_order_fit(
    weight_matrix: np.ndarray,
    row_order: RowOrder | RowNames,
    atlas: Atlas,
) -> OrderFit:
    """Return the fit of a matrix to an order of its rows.

    Parameters
    ----------
    weight_matrix : array of shape (n_rows, n_rows)
        In the order of the file.
    row_order : RowOrder or RowNames
        Names the rows.
    atlas : Atlas
        Atlas of the regions.
    """
    W = _make_region_weight_matrix(weight_matrix, row_order, atlas)
    counted_pair_mask = np.ones(W.shape, dtype=bool)
    left_indices, right_indices = _find_homotopic_indices(atlas)
    return OrderFit(
        _correlate_with_template(W, atlas, counted_pair_mask),
        _correlate_hemispheres(W, left_indices, right_indices, counted_pair_mask),
        _average_homotopic_ranks(W[np.ix_(left_indices, right_indices)]),
    )


def is_clearly_better_fit(
    weight_matrix: np.ndarray,
    row_order: RowOrder | RowNames,
    other_order: RowOrder | RowNames,
    atlas: Atlas,
) -> bool:
    """Return whether weights fit `row_order` clearly better than `other_order`.

    The template decides where it is clear, else the agreement of the hemispheres.
    """
    differing_region_mask = _find_first_row_by_region(
        row_order, atlas
    ) != _find_first_row_by_region(other_order, atlas)
    if not differing_region_mask.any():
        return False
    counted_pair_mask = differing_region_mask[:, None] | differing_region_mask
    W = _make_region_weight_matrix(weight_matrix, row_order, atlas)
    other_W = _make_region_weight_matrix(weight_matrix, other_order, atlas)
    template_correlation = _correlate_with_template(W, atlas, counted_pair_mask)
    other_correlation = _correlate_with_template(other_W, atlas, counted_pair_mask)
    if _is_clearly_higher(template_correlation, other_correlation):
        return True
    if _is_clearly_higher(other_correlation, template_correlation):
        return False
    left_indices, right_indices = _find_homotopic_indices(atlas)
    homotopic_rank = _average_homotopic_ranks(W[np.ix_(left_indices, right_indices)])
    if not homotopic_rank >= MIN_HOMOTOPIC_RANK:
        return False
    return _is_clearly_higher(
        _correlate_hemispheres(W, left_indices, right_indices, counted_pair_mask),
        _correlate_hemispheres(other_W, left_indices, right_indices, counted_pair_mask),
    )


def is_same_or_mirrored(
    row_order: RowOrder, row_names_record: RowNames, atlas: Atlas
) -> bool:
    """Return whether two orders are the same, or the same with the sides exchanged."""
    region_row_indices = _find_first_row_by_region(row_names_record, atlas)
    other_region_row_indices = _find_first_row_by_region(row_order, atlas)
    return np.array_equal(
        region_row_indices, other_region_row_indices
    ) or np.array_equal(region_row_indices, other_region_row_indices[atlas.homotopic])


# ---- figures ------------------------------------------------------------------------


@lru_cache(maxsize=32)
def _find_homotopic_indices(atlas: Atlas) -> tuple[np.ndarray, np.ndarray]:
    """Return the regions of the left that have a partner, and their partners."""
    left_indices = np.flatnonzero(atlas.regions["hemisphere"] == "L")
    left_indices = left_indices[atlas.homotopic[left_indices] != left_indices]
    return left_indices, atlas.homotopic[left_indices]


def _correlate_with_template(
    W: np.ndarray, atlas: Atlas, counted_pair_mask: np.ndarray
) -> float:
    """Return the rank correlation with the template; NaN where there is none."""
    template_weight_matrix = compute_template_connectome(atlas)
    if template_weight_matrix is None:
        return np.nan
    comparable_pair_mask = np.triu(np.ones(W.shape, dtype=bool), 1) & counted_pair_mask
    comparable_pair_mask &= np.isfinite(template_weight_matrix) & np.isfinite(W)
    pair_weights = W[comparable_pair_mask]
    if len(pair_weights) < _MIN_PAIRS:
        return np.nan
    template_ranks = _compute_template_ranks(atlas, comparable_pair_mask.tobytes())
    return _correlate_ranks(_compute_centered_ranks(pair_weights), template_ranks)


@lru_cache(maxsize=32)  # every matrix is compared in the same candidate orders
def _compute_template_ranks(atlas: Atlas, mask_bytes: bytes) -> np.ndarray:
    """Return the ranks of the template's weights of these pairs around their mean."""
    template_weight_matrix = np.asarray(compute_template_connectome(atlas))
    comparable_pair_mask = np.frombuffer(mask_bytes, dtype=bool).reshape(
        template_weight_matrix.shape
    )
    return _compute_centered_ranks(template_weight_matrix[comparable_pair_mask])


def _correlate_hemispheres(
    W: np.ndarray,
    left_indices: np.ndarray,
    right_indices: np.ndarray,
    counted_pair_mask: np.ndarray,
) -> float:
    """Return the rank correlation of the weights within the two hemispheres.

    `left_indices` and `right_indices` hold homotopic regions.
    """
    left_weights = W[np.ix_(left_indices, left_indices)]
    right_weights = W[np.ix_(right_indices, right_indices)]
    compared_pair_mask = (
        counted_pair_mask[np.ix_(left_indices, left_indices)]
        | counted_pair_mask[np.ix_(right_indices, right_indices)]
    )
    compared_pair_mask &= np.triu(np.ones(compared_pair_mask.shape, dtype=bool), 1)
    compared_pair_mask &= np.isfinite(left_weights) & np.isfinite(right_weights)
    return _correlate_weights(
        left_weights[compared_pair_mask], right_weights[compared_pair_mask]
    )


def _average_homotopic_ranks(left_right_weights: np.ndarray) -> float:
    """Return the mean rank, 0 to 1, of the diagonal in its row and its column.

    `left_right_weights` holds the weights of left regions with their partners on the
    right.
    """
    n_pairs = len(left_right_weights)
    if n_pairs * n_pairs < _MIN_PAIRS:
        return np.nan
    homotopic_weights = left_right_weights.diagonal()
    homotopic_ranks = np.concatenate(
        [
            _compute_rank_by_row(homotopic_weights, left_right_weights),
            _compute_rank_by_row(homotopic_weights, left_right_weights.T),
        ]
    )
    homotopic_ranks = homotopic_ranks[np.isfinite(homotopic_ranks)]
    return (
        float((homotopic_ranks.mean() - 1) / (n_pairs - 1))
        if len(homotopic_ranks)
        else np.nan
    )


def _compute_rank_by_row(
    value_by_row: np.ndarray, weight_matrix: np.ndarray
) -> np.ndarray:
    """Return the rank of one value of each row in its row; NaN of a NaN.

    Ranks count from 1 and do not count NaN. Equal values share their mean rank.
    """
    n_lower_weights = (weight_matrix < value_by_row[:, None]).sum(axis=1)
    n_equal_weights = (weight_matrix == value_by_row[:, None]).sum(axis=1)
    row_ranks = n_lower_weights + (n_equal_weights + 1) / 2
    return np.where(np.isnan(value_by_row), np.nan, row_ranks)


def _compute_ranks(finite_values: np.ndarray) -> np.ndarray:
    """Return the ranks of finite values from 1; equal values share their mean rank."""
    sort_indices = np.argsort(finite_values)
    sorted_values = finite_values[sort_indices]
    new_value_mask = np.append(True, sorted_values[1:] != sorted_values[:-1])
    tie_starts = np.flatnonzero(new_value_mask)
    tie_ends = np.append(tie_starts[1:], len(finite_values))
    tie_mean_ranks = (tie_starts + 1 + tie_ends) / 2
    ranks = np.empty(len(finite_values))
    ranks[sort_indices] = np.repeat(tie_mean_ranks, tie_ends - tie_starts)
    return ranks


def _correlate_weights(x: np.ndarray, y: np.ndarray) -> float:
    """Return Spearman's correlation; NaN of few pairs, 0 where one is constant."""
    if len(x) < _MIN_PAIRS:
        return np.nan
    return _correlate_ranks(_compute_centered_ranks(x), _compute_centered_ranks(y))


def _compute_centered_ranks(finite_values: np.ndarray) -> np.ndarray:
    """Return the ranks of finite values around their mean."""
    ranks = _compute_ranks(finite_values)
    return ranks - ranks.mean()


def _correlate_ranks(x_ranks: np.ndarray, y_ranks: np.ndarray) -> float:
    """Return the correlation of centred ranks, 0 where one is constant."""
    product_of_norms = np.sqrt((x_ranks @ x_ranks) * (y_ranks @ y_ranks))
    return float(x_ranks @ y_ranks / product_of_norms) if product_of_norms > 0 else 0.0


def _is_clearly_higher(correlation: float, other_correlation: float) -> bool:
    """Return whether one correlation is evidence against the order of the other.

    If the other is NaN, the size of the correlation alone decides.
    """
    correlation_lead = correlation - other_correlation
    return correlation >= MIN_CORRELATION and not correlation_lead < MIN_LEAD


# ---- from rows to regions -----------------------------------------------------------


def _fill_triangles_of_weights(weight_matrix: np.ndarray) -> np.ndarray:
    """Return finite weights with both triangles, without the diagonal."""
    finite_weights = np.nan_to_num(
        np.array(weight_matrix, dtype=float), posinf=0, neginf=0
    )
    symmetric_weights = np.where(
        np.abs(finite_weights) >= np.abs(finite_weights.T),
        finite_weights,
        finite_weights.T,
    )
    np.fill_diagonal(symmetric_weights, 0)
    return symmetric_weights


def _find_first_row_by_region(
    row_order: RowOrder | RowNames, atlas: Atlas
) -> np.ndarray:
    """Return the first row of each region, -1 where the order does not have it."""
    return _find_first_and_further_rows(tuple(row_order.names), atlas)[0]


@lru_cache(maxsize=256)
def _find_first_and_further_rows(
    row_names: tuple[str, ...], atlas: Atlas
) -> tuple[np.ndarray, tuple[tuple[int, int], ...]]:
    """Return the first row of each region, and (region, row) of its further parts."""
    first_row_indices = np.full(len(atlas), -1)
    further_region_row_pairs = list[tuple[int, int]]()
    for row_index, region_index in enumerate(
        find_region_index_by_row(atlas, row_names)
    ):
        if region_index is None:
            continue
        if first_row_indices[region_index] >= 0:
            further_region_row_pairs.append((region_index, row_index))
        else:
            first_row_indices[region_index] = row_index
    return first_row_indices, tuple(further_region_row_pairs)


def _make_region_weight_matrix(
    weight_matrix: np.ndarray, row_order: RowOrder | RowNames, atlas: Atlas
) -> np.ndarray:
    """Return weights between the regions of an atlas; NaN for those without a row.

    The weights of several rows of one region are added.
    """
    first_row_indices, further_region_row_pairs = _find_first_and_further_rows(
        tuple(row_order.names), atlas
    )
    W = weight_matrix[np.ix_(first_row_indices, first_row_indices)].astype(float)
    if further_region_row_pairs:
        merging_matrix = np.zeros((len(atlas), len(weight_matrix)))
        merging_matrix[np.arange(len(atlas)), first_row_indices] = 1
        for region_index, row_index in further_region_row_pairs:
            merging_matrix[region_index, row_index] = 1
        W = merging_matrix @ weight_matrix @ merging_matrix.T
    absent_region_mask = first_row_indices < 0
    W[absent_region_mask] = np.nan
    W[:, absent_region_mask] = np.nan
    return W


# ---- verdicts -----------------------------------------------------------------------


def _find_better_orders(matrix_group: _MatrixGroup, atlas: Atlas) -> list[RowOrder]:
    """Return the orders that fit clearly better than the names of rows, best first."""
    summed_weights = matrix_group.summed_weights
    possible_orders = [
        *list_fitting_orders(atlas, len(summed_weights)),
        *_iter_shifted_orders(matrix_group.row_names_record),
    ]
    better_orders = [
        possible_order
        for possible_order in possible_orders
        if is_clearly_better_fit(
            summed_weights, possible_order, matrix_group.row_names_record, atlas
        )
    ]
    # reversed, so that of equals the last one comes first
    better_orders.sort(
        key=lambda possible_order: _make_fit_sort_key(
            compute_order_fit(summed_weights, possible_order, atlas)
        )
    )
    return better_orders[::-1]


def _iter_shifted_orders(row_names_record: RowNames) -> Iterator[RowOrder]:
    """Yield the orders in which names are one row too early or too late.

    No tool writes these orders, and `row_order=` does not accept them.
    """
    names_shifted_down = ("Unknown", *row_names_record.names[:-1])
    names_shifted_up = (*row_names_record.names[1:], "Unknown")
    yield RowOrder("", names_shifted_down, "the same names, shifted down by one row")
    yield RowOrder("", names_shifted_up, "the same names, shifted up by one row")


def _make_fit_sort_key(order_fit: OrderFit) -> tuple[float, ...]:
    """Return the key by which orders are sorted: the template first."""
    return tuple(np.nan_to_num(order_fit, nan=-1).tolist())


def _make_unknown_order_error(
    matrix_group: _MatrixGroup, atlas: Atlas
) -> UnknownOrderError:
    """Return the error for matrices whose rows nothing names."""
    summed_weights = matrix_group.summed_weights
    possible_orders = list_fitting_orders(atlas, len(summed_weights))
    fit_by_order = {
        row_order: compute_order_fit(summed_weights, row_order, atlas)
        for row_order in possible_orders
    }
    best_orders = sorted(
        possible_orders,
        key=lambda row_order: _make_fit_sort_key(fit_by_order[row_order]),
        reverse=True,
    )
    fit_text_by_order = {
        row_order: str(fit_by_order[row_order]) for row_order in best_orders
    }
    best_order = None
    error_values = propose_atlas_by_size(len(summed_weights), atlas)
    if len(best_orders) > 1 and all(
        is_clearly_better_fit(summed_weights, best_orders[0], other_order, atlas)
        for other_order in best_orders[1:]
    ):
        best_order = best_orders[0]
        error_values["row_order"] = best_order.tool_name
    message = unknown_order_message(
        summed_weights,
        atlas,
        fit_text_by_order=fit_text_by_order,
        best_order=best_order,
    )
    return UnknownOrderError(
        message, path=str(matrix_group), kind=UNKNOWN_ORDER, values=error_values
    )


def _make_other_order_message(
    matrix_group: _MatrixGroup, better_orders: list[RowOrder], atlas: Atlas
) -> str:
    """Return the message for matrices that fit other orders clearly better."""
    candidate_lines = list[str]()
    for better_order in better_orders[:_MAX_CANDIDATES]:
        fit_text = str(
            compute_order_fit(matrix_group.summed_weights, better_order, atlas)
        )
        if better_order.tool_name:
            candidate_lines.append(format_candidate_line(better_order, fit_text))
        else:
            candidate_lines.append(f"{better_order.description}: {fit_text}")
    own_order_fit = compute_order_fit(
        matrix_group.summed_weights, matrix_group.row_names_record, atlas
    )
    advice_text = (
        f"Choose an order with {option_text('row_order')}, name the rows with "
        f"{option_text('labels')}, or use the names without this check with "
        f"{option_text('row_order', 'names')}."
    )
    if matrix_group.row_names_record.source == "array":
        advice_text = (
            "The correct order may also be none of these. Therefore give DataFrames "
            "with the names of the regions as index and columns, for example "
            "[pd.DataFrame(weights, names, names) for weights in W], and "
            "pd.DataFrame(X, columns=names)."
        )
    return (
        "the weights fit another order of rows better than this one: "
        f"{matrix_group.row_names_record.note}, with {own_order_fit}. These orders fit "
        f"better:{candidate_lines_text(candidate_lines)}{FIGURES_TEXT} {advice_text}"
    )


def _evidence_note(matrix_group: _MatrixGroup, atlas: Atlas) -> str:
    """Return the note of whether the weights support the order of a group's rows."""
    order_fit = compute_order_fit(
        matrix_group.summed_weights, matrix_group.row_names_record, atlas
    )
    n_orders, rival_orders = _count_and_list_rivals(matrix_group, atlas)
    if len(rival_orders) == n_orders:
        return (
            "the weights do not show whether this order of rows is correct. Compare "
            "the order with the documentation of the tool that wrote the matrix"
        )
    if rival_orders:
        rival_tools_text = join_with_commas(
            (rival_order.tool_name for rival_order in rival_orders), 3
        )
        return (
            f"the weights fit this order of rows ({order_fit}), but they fit the order "
            f"of {rival_tools_text} equally well"
        )
    return (
        f"of the known orders, this order of rows fits the weights best ({order_fit})"
    )


def _count_and_list_rivals(
    matrix_group: _MatrixGroup, atlas: Atlas
) -> tuple[int, list[RowOrder]]:
    """Return the number of other orders, and the orders that do not fit clearly worse.

    Mirror images do not count, since weights cannot distinguish them.
    """
    other_orders = [
        row_order
        for row_order in list_fitting_orders(atlas, len(matrix_group.summed_weights))
        if not is_same_or_mirrored(row_order, matrix_group.row_names_record, atlas)
    ]
    rival_orders = [
        row_order
        for row_order in other_orders
        if not is_clearly_better_fit(
            matrix_group.summed_weights, matrix_group.row_names_record, row_order, atlas
        )
    ]
    return len(other_orders), rival_orders


@lru_cache(maxsize=16)
def compute_template_connectome(atlas: Atlas) -> np.ndarray | None:
    """Return the weights between regions that a healthy group has on average.

    Parameters
    ----------
    atlas : Atlas
        Atlas with surfaces on fsaverage5.

    Returns
    -------
    array of shape (n_rois, n_rois) or None
        In arbitrary units; NaN for regions that the template does not have. None for an
        atlas without surfaces.
    """
    template_atlas = load_atlas(_TEMPLATE_ATLAS)
    parcel_share_matrix = _compute_parcel_share_matrix(template_atlas, atlas)
    if parcel_share_matrix is None or template_atlas.folder is None:
        return None
    weight_table = pd.read_csv(template_atlas.folder / _TEMPLATE_FILE, index_col=0)
    log_weight_matrix = weight_table.to_numpy() / 100  # stored in hundredths
    template_weight_matrix = np.where(
        log_weight_matrix != 0, np.exp(log_weight_matrix), 0
    )
    region_weight_matrix = (
        parcel_share_matrix @ template_weight_matrix @ parcel_share_matrix.T
    )
    absent_region_mask = ~parcel_share_matrix.any(axis=1)
    region_weight_matrix[absent_region_mask] = np.nan
    region_weight_matrix[:, absent_region_mask] = np.nan
    region_weight_matrix.flags.writeable = False
    return region_weight_matrix


def _compute_parcel_share_matrix(
    template_atlas: Atlas, atlas: Atlas
) -> np.ndarray | None:
    """Return the share of each template parcel that lies in each region.

    An array of shape (n_rois, n_parcels), or None for an atlas without surfaces on
    fsaverage5. Deep structures are matched by name.
    """
    if not atlas.has_surfaces:
        return None
    parcel_share_matrix = np.zeros((len(atlas), len(template_atlas)))
    for hemisphere in "LR":
        try:
            vertex_region_indices = atlas.vertex_labels(hemisphere)
        except BrainlsapError:  # another surface, or names that are not of the atlas
            return None
        vertex_parcel_indices = template_atlas.vertex_labels(hemisphere)
        if vertex_region_indices.shape != vertex_parcel_indices.shape:
            return None
        labelled_vertex_mask = (vertex_region_indices >= 0) & (
            vertex_parcel_indices >= 0
        )
        region_parcel_indexer = (
            vertex_region_indices[labelled_vertex_mask],
            vertex_parcel_indices[labelled_vertex_mask],
        )
        np.add.at(parcel_share_matrix, region_parcel_indexer, 1)
    parcel_share_matrix /= np.maximum(parcel_share_matrix.sum(axis=0), 1)
    for region_index in np.flatnonzero(~atlas.cortex):
        parcel_index = template_atlas.find(atlas.names[region_index])
        if parcel_index is not None and not template_atlas.cortex[parcel_index]:
            parcel_share_matrix[region_index, parcel_index] = 1
    return parcel_share_matrix
