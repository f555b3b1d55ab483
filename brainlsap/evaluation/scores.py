"""Predictions of a model, and the registry of their scores.

:data:`SCORES` has the title, range, direction and formula of each score in one entry.
Tables, intervals, comparisons and exact bounds read it; a further score is one more
entry.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from brainlsap.exceptions import ParameterError, check_choice

# A denominator of at least this keeps 0 / 0 at 0.
SMALLEST_DENOMINATOR = 1e-300


class Predictions(NamedTuple):
    """Predictions of one model as arrays of length n_rows, classes as codes."""

    actual_codes: np.ndarray
    predicted_codes: np.ndarray
    class_probabilities: np.ndarray | None
    ranking_scores: np.ndarray | None
    """Probabilities or decision values, from which the AUC is computed."""
    fold_numbers: np.ndarray
    n_classes: int
    is_ordered: bool

    def confidence(self) -> np.ndarray:
        """Return the probability of the predicted class, (n_rows,)."""
        if self.class_probabilities is None:
            raise ValueError("there are no probabilities")
        return self.class_probabilities[
            np.arange(len(self.predicted_codes)), self.predicted_codes
        ]


def weighted_confusion_counts(
    coded_predictions: Predictions, row_weights: np.ndarray
) -> np.ndarray:
    """Return weighted confusion counts (n_draws, n_true, n_predicted)."""
    n_classes = coded_predictions.n_classes
    confusion_cell_indices = (
        coded_predictions.actual_codes * n_classes + coded_predictions.predicted_codes
    )
    confusion_counts = (
        row_weights @ np.eye(n_classes * n_classes)[confusion_cell_indices]
    )
    return confusion_counts.reshape(-1, n_classes, n_classes)


def class_aucs(
    actual_codes: np.ndarray, ranking_scores: np.ndarray, row_weights: np.ndarray
) -> np.ndarray:
    """Return the AUC (n_draws, n_classes) of every class against the rest.

    Ties count half. NaN where a draw holds nobody of the class. `row_weights` (n_draws,
    n_scans) is how often each scan counts.
    """
    scan_weights = np.ascontiguousarray(row_weights.T)
    n_scans, n_draws = scan_weights.shape
    # Row i: weight of the i scans of the rest with the smallest values.
    cumulative_weight_buffer = np.zeros((n_scans + 1, n_draws))
    auc_columns = []
    for class_code in range(ranking_scores.shape[1]):
        class_scores = ranking_scores[:, class_code]
        class_indices = np.flatnonzero(actual_codes == class_code)
        rest_indices = np.flatnonzero(actual_codes != class_code)
        rest_indices = rest_indices[np.argsort(class_scores[rest_indices])]
        rest_cumulative_weights = cumulative_weight_buffer[: len(rest_indices) + 1]
        np.cumsum(scan_weights[rest_indices], axis=0, out=rest_cumulative_weights[1:])
        first_bounds, last_bounds = (
            np.searchsorted(
                class_scores[rest_indices], class_scores[class_indices], search_side
            )
            for search_side in ("left", "right")
        )
        rest_weights_below = rest_cumulative_weights[first_bounds]
        rest_weights_below += rest_cumulative_weights[last_bounds]
        class_scan_weights = scan_weights[class_indices]
        concordant_pair_weights = (
            np.einsum("ij,ij->j", class_scan_weights, rest_weights_below) / 2
        )
        draw_class_weights = class_scan_weights.sum(axis=0)
        total_pair_weights = draw_class_weights * rest_cumulative_weights[-1]
        draw_aucs = concordant_pair_weights / np.maximum(
            total_pair_weights, SMALLEST_DENOMINATOR
        )
        auc_columns.append(np.where(draw_class_weights > 0, draw_aucs, np.nan))
    return np.stack(auc_columns, 1)


def macro_auc(
    actual_codes: np.ndarray, ranking_scores: np.ndarray, row_weights: np.ndarray
) -> np.ndarray:
    """Return the mean AUC (n_draws,) of the classes that a draw holds.

    NaN where it holds fewer than two.
    """
    class_auc_matrix = class_aucs(actual_codes, ranking_scores, row_weights)
    return mean_over_classes(
        class_auc_matrix, ~np.isnan(class_auc_matrix), min_n_values=2
    )


def mean_over_classes(
    class_values: np.ndarray, present_value_mask: np.ndarray, min_n_values: int = 1
) -> np.ndarray:
    """Return the mean of what is present in each row, NaN of too few values."""
    n_present_values = present_value_mask.sum(axis=1)
    value_sums = np.where(present_value_mask, class_values, 0).sum(axis=1)
    return np.where(
        n_present_values >= min_n_values,
        value_sums / np.maximum(n_present_values, 1),
        np.nan,
    )


CountFormula = Callable[[np.ndarray], np.ndarray]
RowFormula = Callable[[Predictions, np.ndarray, np.ndarray], np.ndarray]

INTERVALS = ("percentile", "proportion", "pairs", "bias corrected")
"""Kinds of intervals over people, see :class:`Score`."""

N_CALIBRATION_BINS = 10
"""Number of confidence bins of the expected calibration error."""

# Largest excess over its range that a score may have by rounding.
_RANGE_TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Score:
    """A score of predictions: its name, its range and its formula.

    Exactly one of `of_counts`, `of_ranking` and `of_probability` is its formula. Each
    returns one value a draw, (n_draws,).

    Attributes
    ----------
    title : str
        Name in tables and figures.
    explanation : str
        Sentences that begin with the title and say what the score is, for reports.
        `{classes}` becomes the classes in their order.
    range : (float, float), or callable
        Smallest and largest value; a callable returns them from the number of classes.
    of_counts : callable, optional
        `(counts) -> values`, of weighted confusion counts (n_draws, n_true,
        n_predicted), which may be fractions of people.
    of_ranking, of_probability : callable, optional
        `(predictions, outputs, weight) -> values`, with `outputs` (n_rows, n_classes)
        the values that scans are ranked by, or the probabilities, and `weight`
        (n_draws, n_rows) how often each row counts. NaN for models without them.
    of_certain_counts : callable, optional
        Formula of a score of probabilities, as `of_counts`, where all probabilities
        are 0 or 1; its exact bounds need it. Required with `of_probability`.
    lower_is_better : bool
        Whether the best value is the smallest.
    needs_order : bool
        Whether it means something only where the order of the classes is known.
    interval : {"percentile", "proportion", "pairs", "bias corrected"}
        Interval over people: percentiles of the bootstrap; the same and Wilson's
        interval at either end of the range, for shares of people; the same and the
        bound of pairs of people, for areas under the curve; or percentiles of the draws
        less their mean excess over the estimate, for scores that draws bias upwards.
    is_by_fold : bool
        Whether it is computed in every fold too, else over all test scans only.
    is_main : bool
        Whether it is in short tables.
    is_shown_with_interval : bool
        Whether it has a column in the table of intervals.
    min_classes : int
        Number of classes from which tables show it.
    binary_title, binary_explanation : str, optional
        Title and explanation where there are two classes, if others.

    Raises
    ------
    ParameterError
        If the range is empty, the kind of interval unknown, a formula missing or
        doubled, or a score of short tables is not computed in every fold.
    """

    title: str
    explanation: str
    range: tuple[float, float] | Callable[[int], tuple[float, float]] = (0.0, 1.0)
    of_counts: CountFormula | None = None
    of_ranking: RowFormula | None = None
    of_probability: RowFormula | None = None
    of_certain_counts: CountFormula | None = None
    lower_is_better: bool = False
    needs_order: bool = False
    interval: str = "percentile"
    is_by_fold: bool = True
    is_main: bool = False
    is_shown_with_interval: bool = True
    min_classes: int = 2
    binary_title: str | None = None
    binary_explanation: str | None = None

    def __post_init__(self) -> None:
        """Check the entry."""
        check_choice("interval", self.interval, INTERVALS)
        optional_formulas = (self.of_counts, self.of_ranking, self.of_probability)
        n_formulas = sum(
            optional_formula is not None for optional_formula in optional_formulas
        )
        if n_formulas != 1:
            raise ParameterError(
                f"the score {self.title!r} has {n_formulas} formulas; expected "
                "exactly one of of_counts, of_ranking and of_probability."
            )
        if self.of_probability is not None and self.of_certain_counts is None:
            raise ParameterError(
                f"the score {self.title!r} of probabilities requires "
                "of_certain_counts, its formula where all probabilities are 0 or "
                "1. Exact bounds are computed by this formula."
            )
        if self.is_main and not self.is_by_fold:
            raise ParameterError(
                f"the score {self.title!r} has is_main=True and is_by_fold=False, but "
                "short tables show means over folds. Change one of these two settings."
            )
        lower_limit, upper_limit = self.lowest_and_highest(max(self.min_classes, 2))
        if not lower_limit < upper_limit:
            raise ParameterError(
                f"the score {self.title!r} has the range {lower_limit:g} to "
                f"{upper_limit:g}; expected the smallest value first."
            )

    def lowest_and_highest(self, n_classes: int) -> tuple[float, float]:
        """Return the smallest and the largest value for this number of classes."""
        return self.range(n_classes) if callable(self.range) else self.range

    def explanation_text(self, classes: Sequence[str]) -> str:
        """Return the explanation for these classes."""
        explanation = self.explanation
        if len(classes) == 2 and self.binary_explanation is not None:
            explanation = self.binary_explanation
        return explanation.format(classes=", ".join(classes))

    def title_text(self, n_classes: int) -> str:
        """Return the title for this number of classes, and that less is better."""
        score_title = self.title
        if n_classes == 2 and self.binary_title is not None:
            score_title = self.binary_title
        return (
            f"{score_title} (less is better)" if self.lower_is_better else score_title
        )


def _compute_class_correct_counts(confusion_counts: np.ndarray) -> np.ndarray:
    """Return the correct predictions of each class, (n_draws, n_classes)."""
    return np.einsum("bii->bi", confusion_counts)


def balanced_accuracy(confusion_counts: np.ndarray) -> np.ndarray:
    """Return the mean sensitivity of the classes that the rows hold."""
    true_class_counts = confusion_counts.sum(axis=2)
    return mean_over_classes(
        _compute_class_correct_counts(confusion_counts)
        / np.maximum(true_class_counts, SMALLEST_DENOMINATOR),
        true_class_counts > 0,
    )


def accuracy(confusion_counts: np.ndarray) -> np.ndarray:
    """Return the share of correct predictions."""
    return _compute_class_correct_counts(confusion_counts).sum(
        axis=1
    ) / confusion_counts.sum(axis=(1, 2))


def macro_precision(confusion_counts: np.ndarray) -> np.ndarray:
    """Return the mean precision; 0 for a class that is never predicted."""
    true_class_counts, predicted_class_counts = (
        confusion_counts.sum(axis=2),
        confusion_counts.sum(axis=1),
    )
    return mean_over_classes(
        _compute_class_correct_counts(confusion_counts)
        / np.maximum(predicted_class_counts, SMALLEST_DENOMINATOR),
        true_class_counts > 0,
    )


def macro_f1(confusion_counts: np.ndarray) -> np.ndarray:
    """Return the mean F1 of the classes that the rows hold."""
    true_class_counts, predicted_class_counts = (
        confusion_counts.sum(axis=2),
        confusion_counts.sum(axis=1),
    )
    f1 = (
        2
        * _compute_class_correct_counts(confusion_counts)
        / np.maximum(true_class_counts + predicted_class_counts, SMALLEST_DENOMINATOR)
    )
    return mean_over_classes(f1, true_class_counts > 0)


def _compute_stage_distances(n_classes: int) -> np.ndarray:
    """Return the number of stages between every two classes."""
    stage_numbers = np.arange(n_classes)
    return np.abs(stage_numbers[:, None] - stage_numbers)


def weighted_kappa(confusion_counts: np.ndarray) -> np.ndarray:
    """Return quadratic weighted kappa: agreement beyond that of the two margins."""
    true_class_counts, predicted_class_counts = (
        confusion_counts.sum(axis=2),
        confusion_counts.sum(axis=1),
    )
    n_predictions = confusion_counts.sum(axis=(1, 2))
    expected_confusion_counts = (
        true_class_counts[:, :, None]
        * predicted_class_counts[:, None, :]
        / n_predictions[:, None, None]
    )
    squared_distances = _compute_stage_distances(confusion_counts.shape[1]) ** 2
    observed_errors = (confusion_counts * squared_distances).sum(axis=(1, 2))
    chance_errors = (expected_confusion_counts * squared_distances).sum(axis=(1, 2))
    return np.where(chance_errors > 0, 1 - observed_errors / chance_errors, np.nan)


def mean_stage_error(confusion_counts: np.ndarray) -> np.ndarray:
    """Return the mean number of stages between truth and prediction."""
    stage_distances = _compute_stage_distances(confusion_counts.shape[1])
    return (confusion_counts * stage_distances).sum(axis=(1, 2)) / confusion_counts.sum(
        axis=(1, 2)
    )


def adjacent_accuracy(confusion_counts: np.ndarray) -> np.ndarray:
    """Return the share of predictions at most one stage from the truth."""
    near_stage_pair_mask = _compute_stage_distances(confusion_counts.shape[1]) <= 1
    return (confusion_counts * near_stage_pair_mask).sum(
        axis=(1, 2)
    ) / confusion_counts.sum(axis=(1, 2))


def fold_auc(
    coded_predictions: Predictions, ranking_scores: np.ndarray, row_weights: np.ndarray
) -> np.ndarray:
    """Return the macro AUC averaged over folds: two fits' values do not compare."""
    auc_vectors = []
    for fold_number in np.unique(coded_predictions.fold_numbers):
        fold_row_mask = coded_predictions.fold_numbers == fold_number
        draw_aucs = macro_auc(
            coded_predictions.actual_codes[fold_row_mask],
            ranking_scores[fold_row_mask],
            row_weights[:, fold_row_mask],
        )
        auc_vectors.append(draw_aucs)
    fold_auc_matrix = np.transpose(auc_vectors)
    return mean_over_classes(fold_auc_matrix, ~np.isnan(fold_auc_matrix))


def fold_class_aucs(
    coded_predictions: Predictions, ranking_scores: np.ndarray, row_weights: np.ndarray
) -> np.ndarray:
    """Return the AUC (n_draws, n_classes) of every class, averaged over folds.

    Folds of a draw without people of the class, or without others, do not count.
    """
    auc_matrices = []
    for fold_number in np.unique(coded_predictions.fold_numbers):
        fold_row_mask = coded_predictions.fold_numbers == fold_number
        actual_codes = coded_predictions.actual_codes[fold_row_mask]
        fold_row_weights = row_weights[:, fold_row_mask]
        class_auc_matrix = class_aucs(
            actual_codes, ranking_scores[fold_row_mask], fold_row_weights
        )
        class_weights = (
            fold_row_weights @ np.eye(coded_predictions.n_classes)[actual_codes]
        )
        defined_auc_mask = fold_row_weights.sum(axis=1, keepdims=True) > class_weights
        auc_matrices.append(np.where(defined_auc_mask, class_auc_matrix, np.nan))
    fold_auc_stack = np.array(auc_matrices)  # (n_folds, n_draws, n_classes)
    n_defined_folds = (~np.isnan(fold_auc_stack)).sum(axis=0)
    mean_aucs = np.nansum(fold_auc_stack, axis=0) / np.maximum(n_defined_folds, 1)
    return np.where(n_defined_folds > 0, mean_aucs, np.nan)


def brier_score(
    coded_predictions: Predictions,
    class_probabilities: np.ndarray,
    row_weights: np.ndarray,
) -> np.ndarray:
    r"""Return the mean of :math:`\sum_c (p_c - e_c)^2`, e the true class as 0 and 1."""
    one_hot_actual_codes = np.eye(coded_predictions.n_classes)[
        coded_predictions.actual_codes
    ]
    squared_errors = (class_probabilities - one_hot_actual_codes) ** 2
    return row_weights @ squared_errors.sum(axis=1) / row_weights.sum(axis=1)


def calibration_error(
    coded_predictions: Predictions,
    class_probabilities: np.ndarray,
    row_weights: np.ndarray,
) -> np.ndarray:
    r"""Return the expected calibration error over bins b of confidence.

    .. math:: \sum_b \frac{n_b}{n} |\mathrm{accuracy}_b - \mathrm{confidence}_b|
    """
    predicted_codes = coded_predictions.predicted_codes
    confidences = class_probabilities[np.arange(len(predicted_codes)), predicted_codes]
    confidence_gaps = (predicted_codes == coded_predictions.actual_codes) - confidences
    bin_indices = np.minimum(
        (confidences * N_CALIBRATION_BINS).astype(int), N_CALIBRATION_BINS - 1
    )
    bin_gap_sums = row_weights @ (
        np.eye(N_CALIBRATION_BINS)[bin_indices] * confidence_gaps[:, None]
    )
    return np.abs(bin_gap_sums).sum(axis=1) / row_weights.sum(axis=1)


SCORES: dict[str, Score] = {
    "balanced_accuracy": Score(
        title="balanced accuracy",
        explanation="Balanced accuracy is the share of correct predictions of a class, "
        "averaged over the classes that are present.",
        of_counts=balanced_accuracy,
        is_main=True,
    ),
    "accuracy": Score(
        title="accuracy",
        explanation="Accuracy is the share of correct predictions.",
        of_counts=accuracy,
        interval="proportion",
        is_main=True,
        is_shown_with_interval=False,
    ),
    "precision": Score(
        title="macro precision",
        explanation="Macro precision is the share of correct predictions among the "
        "predictions of a class, averaged over the classes that are present.",
        of_counts=macro_precision,
        is_shown_with_interval=False,
    ),
    "f1": Score(
        title="macro F1",
        explanation="Macro F1 is the harmonic mean of the precision and the "
        "sensitivity of a class, averaged over the classes that are present.",
        of_counts=macro_f1,
        is_main=True,
        is_shown_with_interval=False,
    ),
    "auc": Score(
        title="AUC",
        explanation="AUC is the area under the ROC curve. With more than two classes, "
        "it is an average over the classes that are present.",
        of_ranking=fold_auc,
        interval="pairs",
        is_main=True,
    ),
    "brier": Score(
        title="Brier score",
        explanation="Brier score is the squared error of the probabilities, summed "
        "over classes (0 to 2) and averaged over scans.",
        range=(0.0, 2.0),
        of_probability=brier_score,
        of_certain_counts=lambda counts: 2 * (1 - accuracy(counts)),
        lower_is_better=True,
    ),
    "kappa": Score(
        title="quadratic weighted kappa",
        explanation="Quadratic weighted kappa is Cohen's kappa with weights: the "
        "weight of an error is the squared number of stages between the true and the "
        "predicted class, in the order {classes}.",
        range=(-1.0, 1.0),
        of_counts=weighted_kappa,
        needs_order=True,
        # Between two classes the weights have no effect.
        binary_title="Cohen's kappa",
        binary_explanation="Cohen's kappa is not weighted.",
    ),
    "stage_error": Score(
        title="mean stage error",
        explanation="Mean stage error is the mean number of stages between the true "
        "and the predicted class.",
        range=lambda n_classes: (0.0, n_classes - 1.0),
        of_counts=mean_stage_error,
        lower_is_better=True,
        needs_order=True,
        is_shown_with_interval=False,
        min_classes=3,
    ),
    "adjacent_accuracy": Score(
        title="within one stage",
        explanation="Within one stage is the share of scans that are predicted in "
        "their own or a neighbouring stage.",
        of_counts=adjacent_accuracy,
        needs_order=True,
        interval="proportion",
        min_classes=3,
    ),
    "ece": Score(
        title="expected calibration error",
        explanation="Expected calibration error is the mean difference between the "
        "probability of the predicted class and the share of correct predictions, over "
        "ten bins of probability. A model without skill can have a small calibration "
        "error, if its probabilities are near the class shares. A model without "
        "probabilities has neither a Brier score nor a calibration error.",
        of_probability=calibration_error,
        of_certain_counts=lambda counts: 1 - accuracy(counts),
        lower_is_better=True,
        interval="bias corrected",
        is_by_fold=False,
    ),
}
"""Every score by name. Add an entry for a new score."""


def get_score(score_name: str) -> Score:
    """Return a registered score; raise where there is none of that name."""
    check_choice("score", score_name, SCORES)
    return SCORES[score_name]


def fold_scores() -> list[str]:
    """Return the names of the scores that are computed in every fold.

    Returns
    -------
    list of str
        Keys of :data:`SCORES`, in its order.

    Examples
    --------
    >>> "auc" in fold_scores(), "ece" in fold_scores()
    (True, False)
    """
    return [
        score_name
        for score_name, score_entry in SCORES.items()
        if score_entry.is_by_fold
    ]


def main_score_names() -> list[str]:
    """Return the names of the scores in short tables; files have all.

    Returns
    -------
    list of str
        Keys of :data:`SCORES`, in its order.

    Examples
    --------
    >>> "auc" in main_score_names(), "ece" in main_score_names()
    (True, False)
    """
    return [
        score_name for score_name, score_entry in SCORES.items() if score_entry.is_main
    ]


def title_by_score_name(n_classes: int, *, is_ordered: bool) -> dict[str, str]:
    """Return the titles of the scores that are shown for such classes."""
    return {
        score_name: score_entry.title_text(n_classes)
        for score_name, score_entry in SCORES.items()
        if n_classes >= score_entry.min_classes
        and (is_ordered or not score_entry.needs_order)
    }


def weighted_scores_by_name(
    coded_predictions: Predictions, row_weights: np.ndarray
) -> dict[str, np.ndarray]:
    """Return every score for each row of weights (n_draws, n_rows).

    Averages over classes (balanced accuracy, precision, F1, AUC of each class against
    the rest) count the classes that the rows hold. NaN where a score does not exist:
    without probabilities, or without an order of the classes.
    """
    values_by_count_score = count_scores_by_name(
        weighted_confusion_counts(coded_predictions, row_weights),
        is_ordered=coded_predictions.is_ordered,
    )
    values_by_score = {
        score_name: np.full(len(row_weights), np.nan) for score_name in SCORES
    } | values_by_count_score
    for score_name, score_entry in SCORES.items():
        score_formula, output_matrix = (
            score_entry.of_probability,
            coded_predictions.class_probabilities,
        )
        if score_entry.of_ranking is not None:
            score_formula, output_matrix = (
                score_entry.of_ranking,
                coded_predictions.ranking_scores,
            )
        has_required_order = coded_predictions.is_ordered or not score_entry.needs_order
        if (
            score_formula is not None
            and output_matrix is not None
            and has_required_order
        ):
            values_by_score[score_name] = score_formula(
                coded_predictions, output_matrix, row_weights
            )
        _check_one_value_per_draw(
            score_name, values_by_score[score_name], len(row_weights)
        )
        values_by_score[score_name] = _clip_to_range(
            score_name, values_by_score[score_name], coded_predictions.n_classes
        )
    return values_by_score


def count_scores_by_name(
    confusion_counts: np.ndarray, *, is_ordered: bool, is_certain: bool = False
) -> dict[str, np.ndarray]:
    """Return the scores that confusion counts determine, (n_draws,) each.

    `confusion_counts` (n_draws, n_true, n_predicted) may be fractions of people. Scores
    of ordered stages are NaN where the classes have no order. Where all probabilities
    are 0 or 1 (`is_certain`), counts determine scores of probabilities as well.
    """
    values_by_score = {}
    for score_name, score_entry in SCORES.items():
        score_formula = score_entry.of_counts or (
            score_entry.of_certain_counts if is_certain else None
        )
        if score_formula is None:
            continue
        if score_entry.needs_order and not is_ordered:
            values_by_score[score_name] = np.full(len(confusion_counts), np.nan)
            continue
        with np.errstate(invalid="ignore", divide="ignore"):
            values_by_score[score_name] = score_formula(confusion_counts)
        _check_one_value_per_draw(
            score_name, values_by_score[score_name], len(confusion_counts)
        )
        values_by_score[score_name] = _clip_to_range(
            score_name, values_by_score[score_name], confusion_counts.shape[1]
        )
    return values_by_score


def _check_one_value_per_draw(
    score_name: str, score_values: np.ndarray, n_draws: int
) -> None:
    """Raise where a formula does not return one value a draw."""
    if np.shape(score_values) != (n_draws,):
        raise ParameterError(
            f"the score {score_name!r} returned an array of shape "
            f"{np.shape(score_values)}; expected one value for each resampling, "
            f"({n_draws},). Correct its formula in SCORES."
        )


def _clip_to_range(
    score_name: str, score_values: np.ndarray, n_classes: int
) -> np.ndarray:
    """Return values without rounding beyond their range; raise where they leave it."""
    lower_limit, upper_limit = SCORES[score_name].lowest_and_highest(n_classes)
    tolerance = _RANGE_TOLERANCE * (upper_limit - lower_limit)
    outside_value_mask = (score_values < lower_limit - tolerance) | (
        score_values > upper_limit + tolerance
    )
    if outside_value_mask.any():
        raise ParameterError(
            f"the score {score_name!r} is {score_values[outside_value_mask][0]:g}, "
            f"which is outside its range {lower_limit:g} to {upper_limit:g}. Correct "
            "its range or formula in SCORES."
        )
    return np.clip(score_values, lower_limit, upper_limit)
