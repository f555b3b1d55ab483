"""Scores of predictions; those of ordered stages only where an order is known."""

from collections.abc import Iterable, Sequence

import numpy as np

from brainlsap.exceptions import ParameterError

SCORES = {
    "balanced_accuracy": "balanced accuracy",
    "accuracy": "accuracy",
    "precision": "macro precision",
    "f1": "macro F1",
    "auc": "macro AUC",
    "brier": "Brier score",
    "kappa": "quadratic weighted kappa",
    "stage_error": "mean stage error",
    "adjacent_accuracy": "within one stage",
}
"""Name of every score and how tables call it.

A score of confusion counts is one more key here and of :func:`rates_of`. One of
probabilities stands in :func:`score_predictions` and, for its interval over people, in
`_weighted_scores` of `comparison`.
"""

LOWER_IS_BETTER = frozenset({"brier", "ece", "stage_error"})
"""Scores of which the smaller is better; `ece` (calibration) has an interval only."""

ORDINAL_SCORES = frozenset({"kappa", "stage_error", "adjacent_accuracy"})
"""Scores that mean something only where the order of the classes is known."""


def class_codes(labels: Iterable, classes: Sequence[str]) -> np.ndarray:
    """Return the place of every label among `classes`."""
    code_of, labels = {name: code for code, name in enumerate(classes)}, list(labels)
    unknown = sorted({str(label) for label in labels if label not in code_of})
    if unknown:
        raise ParameterError(
            f"classes must name every label; {', '.join(unknown)} not in "
            f"{', '.join(map(str, classes))}."
        )
    return np.array([code_of[label] for label in labels], dtype=np.int64)


def confusion_counts(
    truth: Iterable, predicted: Iterable, classes: Sequence[str]
) -> np.ndarray:
    """Count scans by true class (rows) and predicted class (columns).

    Parameters
    ----------
    truth, predicted : sequences of length n_scans
        Labels.
    classes : sequence of str
        Order of rows and columns.

    Returns
    -------
    int array of shape (n_classes, n_classes)

    Raises
    ------
    ParameterError
        For a label that is not among `classes`.
    """
    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    rows, columns = class_codes(truth, classes), class_codes(predicted, classes)
    np.add.at(counts, (rows, columns), 1)
    return counts


def score_predictions(
    truth: Iterable,
    predicted: Iterable,
    classes: Sequence[str],
    *,
    probability: np.ndarray | None = None,
    decision: np.ndarray | None = None,
    ordered: bool = True,
) -> dict[str, float]:
    r"""Score the predictions of one test fold.

    Averages over classes (balanced accuracy, precision, F1, AUC of each class against
    the rest) count the classes that the fold holds; a class that is never predicted
    has precision 0. With p the probabilities and e the true class as 0 and 1, the
    Brier score is the mean of :math:`\sum_c (p_c - e_c)^2`, 0 to 2.

    Parameters
    ----------
    truth, predicted : sequences of length n_scans
        Labels.
    classes : sequence of str
        In order of stage where `ordered`.
    probability : array of shape (n_scans, n_classes), optional
        Without it there is no Brier score.
    decision : array of shape (n_scans, n_classes), optional
        Stands in for probabilities in the AUC, as a softmax. Without both no AUC.
    ordered : bool
        Whether kappa and the errors in stages mean something; else they are NaN.

    Returns
    -------
    dict of str to float
        The names of :data:`SCORES`; NaN where a score does not exist.
    """
    from scipy.special import softmax

    truth, n_classes = list(truth), len(classes)
    actual = class_codes(truth, classes)
    counts = confusion_counts(truth, predicted, classes).astype(float)
    scores = {
        k: float(v[0]) for k, v in rates_of(counts[None], ordered=ordered).items()
    }
    scores |= {"auc": np.nan, "brier": np.nan}
    if probability is not None:
        error = (probability - np.eye(n_classes)[actual]) ** 2
        scores["brier"] = float(error.sum(axis=1).mean())
    elif decision is not None:
        probability = softmax(decision, axis=1)
    if probability is not None:
        weight = np.ones((1, len(actual)))
        scores["auc"] = float(macro_auc(actual, probability, weight)[0])
    return {name: scores[name] for name in SCORES}


def rates_of(counts: np.ndarray, *, ordered: bool) -> dict[str, np.ndarray]:
    """Return scores (n_draws,) of confusion counts (n_draws, n_true, n_predicted)."""
    total = counts.sum(axis=(1, 2))
    hits, true = np.einsum("bii->bi", counts), counts.sum(axis=2)
    predicted, present = counts.sum(axis=1), true > 0
    stage = np.arange(counts.shape[1])
    step = np.abs(stage[:, None] - stage)
    expected = true[:, :, None] * predicted[:, None, :] / total[:, None, None]
    squared, chance = ((part * step**2).sum(axis=(1, 2)) for part in (counts, expected))
    least = 1e-300
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = {
            "balanced_accuracy": mean_over(hits / np.maximum(true, least), present),
            "accuracy": hits.sum(axis=1) / total,
            "precision": mean_over(hits / np.maximum(predicted, least), present),
            "f1": mean_over(2 * hits / np.maximum(true + predicted, least), present),
            "kappa": np.where(chance > 0, 1 - squared / chance, np.nan),
            "stage_error": (counts * step).sum(axis=(1, 2)) / total,
            "adjacent_accuracy": (counts * (step <= 1)).sum(axis=(1, 2)) / total,
        }
    if not ordered:
        scores |= {name: np.full(len(counts), np.nan) for name in ORDINAL_SCORES}
    return scores


def macro_auc(actual: np.ndarray, score: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the mean AUC of every class against the rest, ties counting half.

    Parameters
    ----------
    actual : int array of shape (n_scans,)
        Code of the true class.
    score : array of shape (n_scans, n_classes)
        Higher for what is more likely.
    weight : array of shape (n_draws, n_scans)
        How often each scan counts in every draw.

    Returns
    -------
    array of shape (n_draws,)
        Over the classes that a draw holds; NaN where it holds fewer than two.
    """
    found, present = [], []
    for code in range(score.shape[1]):
        values, place = np.unique(score[:, code], return_inverse=True)
        order = np.argsort(place, kind="stable")
        start = np.searchsorted(place[order], np.arange(len(values)))
        mine, ordered = (actual == code)[order], weight[:, order]
        of_class = np.add.reduceat(ordered * mine, start, axis=1)
        of_rest = np.add.reduceat(ordered * ~mine, start, axis=1)
        below = np.cumsum(of_rest, axis=1) - of_rest / 2
        pairs = of_class.sum(axis=1) * of_rest.sum(axis=1)
        found.append((of_class * below).sum(axis=1) / np.maximum(pairs, 1e-300))
        present.append(of_class.sum(axis=1) > 0)
    return mean_over(np.stack(found, 1), np.stack(present, 1), least=2)


def mean_over(values: np.ndarray, present: np.ndarray, least: int = 1) -> np.ndarray:
    """Return the mean of what is present in each row, of `least` values or NaN."""
    number = present.sum(axis=1)
    mean = np.where(present, values, 0).sum(axis=1) / np.maximum(number, 1)
    return np.where(number >= least, mean, np.nan)
