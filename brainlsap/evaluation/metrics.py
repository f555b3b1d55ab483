"""Predictions of one model as arrays, and what scores of them are computed from."""

from typing import NamedTuple

import numpy as np

# A denominator of at least this keeps 0 / 0 at 0.
SMALLEST_DENOMINATOR = 1e-300


class Predictions(NamedTuple):
    """Predictions of one model as arrays of length n_rows, classes as codes."""

    actual: np.ndarray
    predicted: np.ndarray
    probability: np.ndarray | None
    ranking: np.ndarray | None  # what the AUC is of: probability or decision value
    fold: np.ndarray
    n_classes: int
    ordered: bool

    def confidence(self) -> np.ndarray:
        """Return the probability of the predicted class, (n_rows,)."""
        if self.probability is None:
            raise ValueError("there are no probabilities")
        return self.probability[np.arange(len(self.predicted)), self.predicted]


def weighted_counts(predictions: Predictions, row_weights: np.ndarray) -> np.ndarray:
    """Return weighted confusion counts (n_draws, n_true, n_predicted)."""
    n_classes = predictions.n_classes
    cell_codes = predictions.actual * n_classes + predictions.predicted
    confusion_counts = row_weights @ np.eye(n_classes * n_classes)[cell_codes]
    return confusion_counts.reshape(-1, n_classes, n_classes)


def macro_auc(
    actual_classes: np.ndarray, ranking_scores: np.ndarray, row_weights: np.ndarray
) -> np.ndarray:
    """Return the mean AUC (n_draws,) of every class against the rest.

    Ties count half. The mean is over the classes that a draw holds, and NaN where it
    holds fewer than two. `row_weights` (n_draws, n_scans) is how often each scan
    counts.
    """
    scan_weight = np.ascontiguousarray(row_weights.T)
    class_aucs, is_present = [], []
    for class_code in range(ranking_scores.shape[1]):
        is_class = actual_classes == class_code
        class_scores = ranking_scores[:, class_code]
        class_weight, rest_weight = scan_weight[is_class], scan_weight[~is_class]
        score_order = np.argsort(class_scores[~is_class])
        rest_values = class_scores[~is_class][score_order]
        # Row i: weight of the i scans of the rest with the smallest values.
        weight_below = np.vstack(
            [0 * scan_weight[:1], rest_weight[score_order].cumsum(axis=0)]
        )
        rank_bounds = [
            np.searchsorted(rest_values, class_scores[is_class], search_side)
            for search_side in ("left", "right")
        ]
        n_ordered_pairs = (class_weight * weight_below[rank_bounds].mean(axis=0)).sum(
            axis=0
        )
        n_class = class_weight.sum(axis=0)
        n_pairs = n_class * weight_below[-1]
        class_aucs.append(n_ordered_pairs / np.maximum(n_pairs, SMALLEST_DENOMINATOR))
        is_present.append(n_class > 0)
    return mean_over(np.stack(class_aucs, 1), np.stack(is_present, 1), min_values=2)


def mean_over(
    values: np.ndarray, is_present: np.ndarray, min_values: int = 1
) -> np.ndarray:
    """Return the mean of what is present in each row, NaN of too few values."""
    n_present = is_present.sum(axis=1)
    value_sums = np.where(is_present, values, 0).sum(axis=1)
    return np.where(
        n_present >= min_values, value_sums / np.maximum(n_present, 1), np.nan
    )
