"""Check on the weights that the rows of connectomes are the regions they are taken for.

Three figures are computed under each known order of so many rows: the rank correlation
with a template connectome, region by region
(:func:`brainlsap.atlas.template.template_connectome`), that of the weights within the
left hemisphere with those within the right, and the mean rank of the links between
homotopic regions among all links of these to the other side (0 to 1; by chance .5). Two
orders are compared on the regions for which they differ. An order is preferred clearly
if its correlation is at least `LEAST` and exceeds the other's by `LEAD`; that of the
hemispheres counts only where the template does not decide, and where homotopic links
stand out (`HOMOTOPIC`). The exchange of whole hemispheres changes none of them: only
names say which side is left.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas
from brainlsap.atlas.template import template_connectome
from brainlsap.data.row_order import (
    RowNames,
    RowOrder,
    describe_size,
    find_atlas_of_size,
    fitting_orders,
    region_rows,
)
from brainlsap.exceptions import FileFormatError
from brainlsap.text import listed

# Smallest correlation that is evidence for an order, and its lead over another order
# (benchmarks/row_orders.py measures how often this rule errs).
LEAST, LEAD = 0.25, 0.15
# Smallest mean rank of homotopic links that stand out.
HOMOTOPIC = 0.6
# Fewer pairs of regions than this correlate by chance.
_FEWEST_PAIRS = 150


class UnknownOrderError(FileFormatError):
    """Nothing says which regions the rows of a matrix are."""


class Figures(NamedTuple):
    """What weights say of one order; NaN where there is nothing to compare."""

    template: float
    hemispheres: float
    homotopic: float

    def __str__(self) -> str:
        figures = zip(self._fields, self, strict=True)
        return ", ".join(f"{name} {x:.2f}" for name, x in figures if np.isfinite(x))


@dataclass
class _Group:
    """Matrices whose rows were named alike: their mean, and what named them."""

    rows: RowNames
    path: Path
    total: np.ndarray
    n_matrices: int = 1


@dataclass
class OrderCheck:
    """Collect matrices by the order of their rows, then check the mean of each group.

    Parameters
    ----------
    atlas : Atlas
        Whose regions the rows are.
    """

    atlas: Atlas
    groups: dict[RowNames, _Group] = field(default_factory=dict)

    def add(self, values: np.ndarray, rows: RowNames, path: Path) -> None:
        """Add one matrix in the order of its file; `rows` may have no names."""
        if rows.source == "numbers":
            return  # that weights stand at numbers of regions has been checked
        weights = _whole_matrix(values)
        total = weights.sum()
        weights = weights / total if total > 0 else weights
        group = self.groups.get(rows)
        if group is None or group.total.shape != weights.shape:
            self.groups[rows] = _Group(rows, path, weights)
            return
        group.total += weights
        group.n_matrices += 1

    def refusals(self) -> list[FileFormatError]:
        """Return an error for each group that is unknown, or of another order."""
        errors = list[FileFormatError]()
        for group in self.groups.values():
            message = _find_contradiction(group, self.atlas)
            path = str(group.path)
            if group.n_matrices > 1:
                path = f"{path} and {group.n_matrices - 1} other matrices"
            if message and group.rows.names:
                errors.append(FileFormatError(message, path=path))
            elif message:
                values = find_atlas_of_size(len(group.total), self.atlas)
                errors.append(UnknownOrderError(message, path=path, values=values))
        return errors

    def raise_refusal(self) -> None:
        """Raise the first refusal, if there is one."""
        for error in self.refusals():
            raise error

    def notes(self) -> dict[str, int]:
        """Return what the weights say about orders without names, and of how many."""
        counts = dict[str, int]()
        for group in self.groups.values():
            if group.rows.source not in ("words", "row_order"):
                continue
            figures = measure_order(group.total, group.rows, self.atlas)
            n_orders, alike = _find_rivals(group, self.atlas)
            text = f"this order of rows fits the weights best ({figures})"
            if len(alike) == n_orders:
                text = "the weights do not tell whether this order of rows is right"
            elif alike:
                text = f"the weights fit this order of rows ({figures}), and "
                text += f"{listed(alike, 3)} as well"
            counts[text] = counts.get(text, 0) + group.n_matrices
        return counts


def check_arrays(W: np.ndarray, atlas: Atlas) -> None:
    """Raise where connectomes in memory fit another order than the atlas' clearly.

    Parameters
    ----------
    W : array of shape (n_scans, n_rois, n_rois) or (n_rois, n_rois)
        In the order of `atlas`.
    atlas : Atlas
        Names the regions.

    Raises
    ------
    FileFormatError
        With the orders that so many rows may have, and what the weights say of each.
    """
    if W.ndim not in (2, 3) or W.shape[-2:] != (len(atlas), len(atlas)):
        return  # said where shapes are checked
    mean = W if W.ndim == 2 else W[0] if W.strides[0] == 0 else W.mean(axis=0)
    check = OrderCheck(atlas)
    rows = RowNames(atlas.names, f"taken in the order of {atlas.name}", "array")
    check.add(mean, rows, Path("connectomes="))
    check.raise_refusal()


def measure_order(
    values: np.ndarray,
    order: RowOrder | RowNames,
    atlas: Atlas,
    regions: np.ndarray | None = None,
) -> Figures:
    """Return the figures of a matrix under an order, on pairs of some regions.

    Parameters
    ----------
    values : array of shape (n_rows, n_rows)
        In the order of the file.
    order : RowOrder or RowNames
        Names the rows.
    atlas : Atlas
        Whose regions they are.
    regions : bool array of shape (n_rois,), optional
        Pairs count that hold one of these regions; by default all.
    """
    W = _to_regions(values, order, atlas)
    is_counted = np.ones(len(atlas), dtype=bool) if regions is None else regions
    touches = is_counted[:, None] | is_counted
    upper = np.triu(np.ones(W.shape, dtype=bool), 1)
    template = template_connectome(atlas)
    with_template = np.nan
    if template is not None:
        pairs = upper & touches & np.isfinite(template) & np.isfinite(W)
        with_template = _rank_correlation(W[pairs], template[pairs])
    left = np.flatnonzero(atlas.regions["hemisphere"] == "L")
    left = left[atlas.homotopic[left] != left]
    right = atlas.homotopic[left]
    within_left, within_right = W[np.ix_(left, left)], W[np.ix_(right, right)]
    pairs = touches[np.ix_(left, left)] | touches[np.ix_(right, right)]
    pairs &= np.triu(np.ones(pairs.shape, dtype=bool), 1)
    pairs &= np.isfinite(within_left) & np.isfinite(within_right)
    across = _rank_correlation(within_left[pairs], within_right[pairs])
    return Figures(with_template, across, _rank_homotopic(W[np.ix_(left, right)]))


def prefers(
    values: np.ndarray,
    order: RowOrder | RowNames,
    other: RowOrder | RowNames,
    atlas: Atlas,
) -> bool:
    """Return whether weights fit `order` clearly better than `other`.

    The template decides where it is clear, else the agreement of the hemispheres.
    """
    differs = _rows_of_regions(order, atlas) != _rows_of_regions(other, atlas)
    if not differs.any():
        return False
    own = measure_order(values, order, atlas, differs)
    others = measure_order(values, other, atlas, differs)
    if _is_clear(own.template, others.template):
        return True
    if _is_clear(others.template, own.template):
        return False
    stands_out = own.homotopic >= HOMOTOPIC
    return stands_out and _is_clear(own.hemispheres, others.hemispheres)


def _is_clear(correlation: float, other: float) -> bool:
    """Return whether one correlation is evidence against the order of the other."""
    return correlation >= LEAST and not correlation - other < LEAD


def _rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Return Spearman's correlation; NaN of few pairs, 0 where one is constant."""
    if len(x) < _FEWEST_PAIRS:
        return np.nan
    x, y = pd.Series(x).rank().to_numpy(), pd.Series(y).rank().to_numpy()
    x, y = x - x.mean(), y - y.mean()
    norm = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / norm) if norm > 0 else 0.0


def _rank_homotopic(between: np.ndarray) -> float:
    """Return the mean rank, 0 to 1, of the diagonal in its row and its column.

    `between` holds the weights of left regions with their partners on the right.
    """
    n = len(between)
    if n * n < _FEWEST_PAIRS:
        return np.nan
    by_row = pd.DataFrame(between).rank(axis=1).to_numpy().diagonal()
    by_column = pd.DataFrame(between).rank(axis=0).to_numpy().diagonal()
    ranks = np.concatenate([by_row, by_column])
    is_known = np.isfinite(ranks)
    return float((ranks[is_known].mean() - 1) / (n - 1)) if is_known.any() else np.nan


def _whole_matrix(values: np.ndarray) -> np.ndarray:
    """Return finite weights with both triangles, without the diagonal."""
    weights = np.nan_to_num(np.array(values, dtype=float), posinf=0, neginf=0)
    larger = np.where(np.abs(weights) >= np.abs(weights.T), weights, weights.T)
    np.fill_diagonal(larger, 0)
    return larger


def _rows_of_regions(order: RowOrder | RowNames, atlas: Atlas) -> np.ndarray:
    """Return the first row of each region, -1 where the order does not have it."""
    return _find_parts(tuple(order.names), atlas)[0]


@lru_cache(maxsize=256)
def _find_parts(
    names: tuple[str, ...], atlas: Atlas
) -> tuple[np.ndarray, tuple[tuple[int, int], ...]]:
    """Return the first row of each region, and (region, row) of its further parts."""
    rows = np.full(len(atlas), -1)
    parts = list[tuple[int, int]]()
    for row, region in enumerate(region_rows(atlas, names)):
        if region is None:
            continue
        if rows[region] >= 0:
            parts.append((region, row))
        else:
            rows[region] = row
    return rows, tuple(parts)


def _to_regions(
    values: np.ndarray, order: RowOrder | RowNames, atlas: Atlas
) -> np.ndarray:
    """Return weights between the regions of an atlas; NaN for those without a row."""
    rows, parts = _find_parts(tuple(order.names), atlas)
    W = values[np.ix_(rows, rows)].astype(float)
    if parts:
        merge = np.zeros((len(atlas), len(values)))
        merge[np.arange(len(atlas)), rows] = 1
        for region, row in parts:
            merge[region, row] = 1
        W = merge @ values @ merge.T
    W[rows < 0] = np.nan
    W[:, rows < 0] = np.nan
    return W


def _shifted(order: RowNames) -> Iterable[RowOrder]:
    """Return the orders in which names stand a row too early or too late."""
    names = order.names
    late, early = ("Unknown", *names[:-1]), (*names[1:], "Unknown")
    yield RowOrder("labels=", late, "these names, each one row further down")
    yield RowOrder("labels=", early, "these names, each one row further up")


def _find_contradiction(group: _Group, atlas: Atlas) -> str:
    """Return why a group is refused, empty where it is not."""
    values, rows = group.total, group.rows
    orders = fitting_orders(atlas, len(values))
    if not rows.names:
        measured = {order: measure_order(values, order, atlas) for order in orders}
        best_first = sorted(
            orders, key=lambda order: _strength(measured[order]), reverse=True
        )
        texts = {order: f"; {measured[order]}".rstrip("; ") for order in best_first}
        return describe_size(values, atlas, figures=texts)
    others = [*orders, *_shifted(rows)]
    better = [order for order in others if prefers(values, order, rows, atlas)]
    if not better:
        return ""
    better.sort(key=lambda order: _strength(measure_order(values, order, atlas)))
    own_figures = measure_order(values, rows, atlas)
    shown = list[str]()
    for order in better[::-1][:4]:
        flag = "" if order.tool == "labels=" else f"row_order={order.tool!r}; "
        figures = measure_order(values, order, atlas)
        shown.append(f"{order.note.removeprefix('read ')} ({flag}{figures})")
    return (
        "the weights fit another order of rows than this: "
        f"{rows.note} ({own_figures}). Better fit: {'; '.join(shown)}; figures are the "
        "correlation with a template connectome and of the hemispheres, and the rank "
        "of homotopic links. Say whose order it is by row_order=, give the names by "
        "labels=, or keep the names unchecked by row_order='names'."
    )


def _strength(figures: Figures) -> tuple[float, ...]:
    """Return what orders are sorted by: the template first."""
    return tuple(np.nan_to_num(figures, nan=-1).tolist())


def _find_rivals(group: _Group, atlas: Atlas) -> tuple[int, list[str]]:
    """Return how many other orders there are, and those that do not fit clearly worse.

    Mirror images are not counted, which no weights can tell apart.
    """
    rows = group.rows
    others = [
        order
        for order in fitting_orders(atlas, len(group.total))
        if not _is_mirror_image(order, rows, atlas)
    ]
    alike = [o.tool for o in others if not prefers(group.total, rows, o, atlas)]
    return len(others), alike


def _is_mirror_image(order: RowOrder, rows: RowNames, atlas: Atlas) -> bool:
    """Return whether orders are the same but for the sides, if at all."""
    own, other = _rows_of_regions(rows, atlas), _rows_of_regions(order, atlas)
    return np.array_equal(own, other) or np.array_equal(own, other[atlas.homotopic])
