"""Scores of predictions; those of ordered stages only where an order is known."""

from typing import NamedTuple

import numpy as np

SCORES = {
    "balanced_accuracy": "balanced accuracy",
    "accuracy": "accuracy",
    "precision": "macro precision",
    "f1": "macro F1",
    "auc": "AUC",
    "brier": "Brier score",
    "kappa": "quadratic weighted kappa",
    "stage_error": "mean stage error",
    "adjacent_accuracy": "within one stage",
}
"""Name of every score and how tables call it.

A score is one more key here and of :func:`weighted_scores`.
"""

# Scores that have an interval over people, and how tables call them.
INTERVAL_SCORES = {**SCORES, "ece": "expected calibration error"}

# Scores of which the smaller is better; `ece` (calibration) has an interval only.
LOWER_IS_BETTER = frozenset({"brier", "ece", "stage_error"})

# Scores that mean something only where the order of the classes is known.
ORDINAL_SCORES = frozenset({"kappa", "stage_error", "adjacent_accuracy"})

N_BINS = 10
# keeps what nobody has (0 / 0) at 0
LEAST = 1e-300


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


def weighted_counts(told: Predictions, weight: np.ndarray) -> np.ndarray:
    """Return weighted confusion counts (n_draws, n_true, n_predicted)."""
    k = told.n_classes
    return (weight @ np.eye(k * k)[told.actual * k + told.predicted]).reshape(-1, k, k)


def weighted_scores(told: Predictions, weight: np.ndarray) -> dict[str, np.ndarray]:
    r"""Return every interval score for each row of weights (n_draws, n_rows).

    Averages over classes (balanced accuracy, precision, F1, AUC of each class against
    the rest) count the classes that the rows hold; a class that is never predicted has
    precision 0. With p the probabilities and e the true class as 0 and 1, the Brier
    score is the mean of :math:`\sum_c (p_c - e_c)^2`, 0 to 2. NaN where a score does
    not exist: without probabilities, or without an order of the classes.
    """
    counts = weighted_counts(told, weight)
    total = counts.sum(axis=(1, 2))
    scores = score_counts(counts, ordered=told.ordered)
    scores |= {name: np.full(len(weight), np.nan) for name in ("auc", "brier", "ece")}
    if told.ranking is not None:
        folds = [told.fold == fold for fold in np.unique(told.fold)]
        aucs = [macro_auc(told.actual[f], told.ranking[f], weight[:, f]) for f in folds]
        scores["auc"] = mean_over(np.transpose(aucs), ~np.isnan(aucs).T)
    if told.probability is not None:
        error = (told.probability - np.eye(told.n_classes)[told.actual]) ** 2
        scores["brier"] = weight @ error.sum(axis=1) / total
        confidence = told.confidence()
        gap = (told.predicted == told.actual) - confidence
        place = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
        gaps = weight @ (np.eye(N_BINS)[place] * gap[:, None])
        scores["ece"] = np.abs(gaps).sum(axis=1) / total
    return scores


def score_counts(counts: np.ndarray, *, ordered: bool) -> dict[str, np.ndarray]:
    """Return the scores that confusion counts determine, (n_draws,) each.

    `counts` (n_draws, n_true, n_predicted) may be fractions of people. Scores of
    ordered stages are NaN where the classes have no order.
    """
    n_classes = counts.shape[1]
    total = counts.sum(axis=(1, 2))
    hits, true = np.einsum("bii->bi", counts), counts.sum(axis=2)
    predicted, present = counts.sum(axis=1), true > 0
    stage = np.arange(n_classes)
    step = np.abs(stage[:, None] - stage)
    expected = true[:, :, None] * predicted[:, None, :] / total[:, None, None]
    squared, chance = ((part * step**2).sum(axis=(1, 2)) for part in (counts, expected))
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = {
            "balanced_accuracy": mean_over(hits / np.maximum(true, LEAST), present),
            "accuracy": hits.sum(axis=1) / total,
            "precision": mean_over(hits / np.maximum(predicted, LEAST), present),
            "f1": mean_over(2 * hits / np.maximum(true + predicted, LEAST), present),
            "kappa": np.where(chance > 0, 1 - squared / chance, np.nan),
            "stage_error": (counts * step).sum(axis=(1, 2)) / total,
            "adjacent_accuracy": (counts * (step <= 1)).sum(axis=(1, 2)) / total,
        }
    if not ordered:
        scores |= {name: np.full(len(counts), np.nan) for name in ORDINAL_SCORES}
    return scores


def macro_auc(actual: np.ndarray, score: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the mean AUC (n_draws,) of every class against the rest.

    Ties count half; classes count that a draw holds, NaN where it holds fewer than
    two. `weight` (n_draws, n_scans) is how often each scan counts in every draw.
    """
    by_scan, found, present = np.ascontiguousarray(weight.T), [], []
    for code in range(score.shape[1]):
        mine, values = actual == code, score[:, code]
        order = np.argsort(values[~mine])
        rest, of_class, of_rest = values[~mine][order], by_scan[mine], by_scan[~mine]
        below = np.vstack([0 * by_scan[:1], of_rest[order].cumsum(axis=0)])
        ends = [np.searchsorted(rest, values[mine], one) for one in ("left", "right")]
        beaten = (of_class * below[ends].mean(axis=0)).sum(axis=0)
        n_class = of_class.sum(axis=0)
        found.append(beaten / np.maximum(n_class * below[-1], LEAST))
        present.append(n_class > 0)
    return mean_over(np.stack(found, 1), np.stack(present, 1), least=2)


def mean_over(values: np.ndarray, present: np.ndarray, least: int = 1) -> np.ndarray:
    """Return the mean of what is present in each row, of `least` values or NaN."""
    number = present.sum(axis=1)
    mean = np.where(present, values, 0).sum(axis=1) / np.maximum(number, 1)
    return np.where(number >= least, mean, np.nan)
