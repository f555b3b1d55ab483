"""Scores of one fold from stored probabilities, and their mean over folds."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from brainlsap.exceptions import ParameterError

SCORES = {
    "balanced_accuracy": "balanced accuracy",
    "accuracy": "accuracy",
    "precision": "macro precision",
    "recall": "macro recall",
    "f1": "macro F1",
    "auc": "macro AUC",
    "kappa": "quadratic weighted kappa",
    "stage_error": "mean stage error",
}
"""Name of every score and how tables call it; the first is the headline."""

LOWER_IS_BETTER = frozenset({"stage_error"})
"""Scores of which the smaller value is the better one."""


def fold_scores(
    truth: Sequence | np.ndarray, probability: np.ndarray, classes: Sequence[str]
) -> dict[str, float]:
    r"""Score the predictions of one test fold.

    The predicted class is the one of highest probability. Macro means are over the
    classes *present* in `truth`, so that a class absent from a small fold does not
    count as a failure; macro recall then equals balanced accuracy. A class that is
    never predicted has precision 0. AUC is one against the rest, averaged over the
    present classes. With confusion counts :math:`o_{ij}` (true i, predicted j) and
    counts :math:`e_{ij}` expected from the margins,

    .. math:: \kappa = 1 - \frac{\sum_{ij} (i - j)^2 o_{ij}}
                                {\sum_{ij} (i - j)^2 e_{ij}}

    and the mean stage error is the mean of :math:`|i - j|`. Both take the order of
    `classes` as the order of stages.

    Parameters
    ----------
    truth : sequence of str of length n_scans
        True class of every scan.
    probability : array of shape (n_scans, n_classes)
        Columns in the order of `classes`.
    classes : sequence of str
        All classes, in order of stage.

    Returns
    -------
    dict
        The names of :data:`SCORES` and their values. AUC and kappa are NaN where the
        fold holds one class only.

    Raises
    ------
    ParameterError
        Where shapes or labels do not fit, or a probability is not finite.

    Examples
    --------
    >>> scores = fold_scores(["CN", "AD"], [[0.9, 0.1], [0.4, 0.6]], ["CN", "AD"])
    >>> scores["balanced_accuracy"], scores["auc"], scores["stage_error"]
    (1.0, 1.0, 0.0)
    """
    actual, probability = _checked(truth, probability, classes)
    confusion = np.zeros((len(classes), len(classes)))
    np.add.at(confusion, (actual, probability.argmax(axis=1)), 1)
    present = confusion.sum(axis=1) > 0
    hits = confusion.diagonal()[present]
    true, predicted = (confusion.sum(axis=axis)[present] for axis in (1, 0))
    stage = np.arange(len(classes))
    step = np.abs(stage[:, None] - stage[None, :])
    return {
        "balanced_accuracy": float(np.mean(hits / true)),
        "accuracy": float(hits.sum() / len(actual)),
        "precision": float(np.mean(hits / np.maximum(predicted, 1))),
        "recall": float(np.mean(hits / true)),
        "f1": float(np.mean(2 * hits / (true + predicted))),
        "auc": _macro_auc(actual, probability, np.flatnonzero(present)),
        "kappa": _quadratic_kappa(confusion, step),
        "stage_error": float((confusion * step).sum() / len(actual)),
    }


def confusion_counts(
    truth: Sequence | np.ndarray | pd.Series,
    predicted: Sequence | np.ndarray | pd.Series,
    classes: Sequence[str],
) -> np.ndarray:
    """Count scans by true class (rows) and predicted class (columns).

    Parameters
    ----------
    truth, predicted : sequences of str of length n_scans
        Classes of every scan.
    classes : sequence of str
        Order of rows and columns.

    Returns
    -------
    array of int of shape (n_classes, n_classes)

    Examples
    --------
    >>> confusion_counts(["CN", "AD", "AD"], ["CN", "CN", "AD"], ["CN", "AD"])
    array([[1, 0],
           [1, 1]])
    """
    row, column = (_codes(labels, classes) for labels in (truth, predicted))
    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(counts, (row, column), 1)
    return counts


def summarise(scores: pd.DataFrame) -> pd.DataFrame:
    """Return mean and standard deviation of every score over folds.

    Parameters
    ----------
    scores : DataFrame
        One row per fold, one column per score.

    Returns
    -------
    DataFrame
        Index: the scores; columns: mean, sd (with n - 1), n_folds (how many folds have
        a value). With one fold the s.d. is NaN.

    Examples
    --------
    >>> summarise(pd.DataFrame({"accuracy": [0.5, 0.7]})).round(3)
              mean     sd  n_folds
    accuracy   0.6  0.141        2
    """
    kept = scores[[name for name in SCORES if name in scores]]
    return pd.DataFrame(
        {"mean": kept.mean(), "sd": kept.std(ddof=1), "n_folds": kept.count()}
    )


def _codes(labels: Iterable, classes: Sequence[str]) -> np.ndarray:
    code_of = {name: code for code, name in enumerate(classes)}
    labels = list(labels)
    unknown = sorted({str(label) for label in labels if label not in code_of})
    if unknown:
        raise ParameterError(
            f"classes must name every label; {', '.join(unknown)} not in "
            f"{', '.join(map(str, classes))}."
        )
    return np.array([code_of[label] for label in labels], dtype=np.int64)


def _checked(
    truth: Sequence | np.ndarray, probability: np.ndarray, classes: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    actual = _codes(truth, classes)
    probability = np.asarray(probability, dtype=np.float64)
    wanted = (len(actual), len(classes))
    if probability.shape != wanted or not len(actual):
        raise ParameterError(
            "probability must have shape (n_scans, n_classes) with at least one scan, "
            f"here {wanted}; got {probability.shape}."
        )
    if not np.isfinite(probability).all():
        bad = int((~np.isfinite(probability).all(axis=1)).sum())
        raise ParameterError(
            f"probability must be finite; {bad} of {len(actual)} scans have NaN or "
            "infinite values. The model that made them diverged."
        )
    return actual, probability


def _macro_auc(
    actual: np.ndarray, probability: np.ndarray, present: np.ndarray
) -> float:
    from sklearn.metrics import roc_auc_score

    if len(present) < 2:
        return float("nan")
    return float(
        np.mean([roc_auc_score(actual == one, probability[:, one]) for one in present])
    )


def _quadratic_kappa(confusion: np.ndarray, step: np.ndarray) -> float:
    expected = np.outer(confusion.sum(axis=1), confusion.sum(axis=0)) / confusion.sum()
    by_chance = (expected * step**2).sum()
    if by_chance == 0:
        return float("nan")
    return float(1 - (confusion * step**2).sum() / by_chance)
