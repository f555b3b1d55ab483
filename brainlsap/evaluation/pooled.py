"""Scores of all out-of-fold predictions together, with intervals over people."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap._arrays import check_at_least
from brainlsap.evaluation.metrics import SCORES
from brainlsap.evaluation.records import ModelResult
from brainlsap.exceptions import ParameterError

POOLED_SCORES = {
    **SCORES,
    "adjacent_accuracy": "within one stage",
    "brier": "Brier score",
    "ece": "expected calibration error",
}
"""Name of every pooled score and how tables call it."""

N_BINS = 10
DRAWS_AT_ONCE = 200


class Predictions(NamedTuple):
    """Every out-of-fold prediction of one model, as arrays."""

    actual: np.ndarray  # code of the true class, (n_rows,)
    probability: np.ndarray  # (n_rows, n_classes)
    person: np.ndarray  # code of the participant, (n_rows,)


def pooled_scores(
    result: ModelResult,
    n_draws: int = 2000,
    level: float = 0.95,
    random_state: int = 0,
) -> pd.DataFrame:
    r"""Score all out-of-fold predictions together, with bootstrap intervals.

    People are drawn with replacement, each with all visits and all repeats, so that
    the interval is one over people and not over scans. It does not contain what
    another training sample would change. Pooled scores differ a little from means
    over folds; AUC compares probabilities across the models of different folds.

    With p the probabilities and e the true class as 0 and 1, the Brier score is the
    mean of :math:`\sum_c (p_c - e_c)^2` (0 to 2); the expected calibration error is

    .. math:: \sum_b \frac{n_b}{n} |\mathrm{accuracy}_b - \mathrm{confidence}_b|

    over ten bins of equal width of the highest probability; both are better smaller.

    Parameters
    ----------
    result : ModelResult
        One model over all folds.
    n_draws : int
        Bootstrap draws.
    level : float
        Of the interval, between 0 and 1.
    random_state : int
        Seed; the same seed draws the same people for every model.

    Returns
    -------
    DataFrame
        Index: the names of :data:`POOLED_SCORES`; columns estimate, low, high.

    Raises
    ------
    ParameterError
        Where `n_draws` is less than 1 or `level` is not between 0 and 1.

    Examples
    --------
    See :func:`brainlsap.evaluation.class_table`.
    """
    told = predictions_of(result)
    estimate = weighted_scores(told, np.ones((1, len(told.actual))))
    draws = bootstrap_draws(told, n_draws, random_state)
    rows = {}
    for name in POOLED_SCORES:
        low, high = interval(draws[name], level)
        rows[name] = (float(estimate[name][0]), low, high)
    return pd.DataFrame.from_dict(rows, "index", columns=["estimate", "low", "high"])


def class_table(
    result: ModelResult,
    n_draws: int = 2000,
    level: float = 0.95,
    random_state: int = 0,
) -> pd.DataFrame:
    """Return sensitivity and specificity of every class, with bootstrap intervals.

    Parameters
    ----------
    result : ModelResult
        One model over all folds.
    n_draws : int
        Bootstrap draws of people.
    level : float
        Of the intervals, between 0 and 1.
    random_state : int
        Seed.

    Returns
    -------
    DataFrame
        One row per class: class, people, scans; sensitivity (part of the class that
        is recognised), specificity (part of the others that is not taken for it) and
        predictive value (part of those taken for it that are), each with `_low` and
        `_high`.

    Raises
    ------
    ParameterError
        As :func:`pooled_scores`.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from brainlsap.data import make_cohort
    >>> from brainlsap.evaluation import cross_validate
    >>> cohort = make_cohort(60, atlas="desikan82")
    >>> result = cross_validate(DummyClassifier(), cohort, 3, baselines=False).main
    >>> class_table(result, 50).set_index("class")["sensitivity"].to_dict()
    {'CN': 0.0, 'SMC': 0.0, 'EMCI': 1.0, 'LMCI': 0.0, 'AD': 0.0}
    >>> pooled_scores(result, 50).loc["balanced_accuracy"].round(2).tolist()
    [0.2, 0.2, 0.2]
    """
    told = predictions_of(result)
    of_all = class_rates(confusions(told, np.ones((1, len(told.actual)))))
    drawn = class_rates(
        np.concatenate(
            [confusions(told, w) for w in _weights(told, n_draws, random_state)]
        )
    )
    rows = []
    for code, name in enumerate(result.classes):
        mine = told.actual == code
        row: dict[str, object] = {
            "class": name,
            "people": len(set(told.person[mine])),
            "scans": int(mine.sum()) // _times_tested(result),
        }
        for rate, values in of_all.items():
            low, high = interval(drawn[rate][:, code], level)
            row |= {rate: values[0, code], f"{rate}_low": low, f"{rate}_high": high}
        rows.append(row)
    return pd.DataFrame(rows)


def predictions_of(result: ModelResult) -> Predictions:
    """Return every out-of-fold prediction of a model as arrays."""
    code = {name: place for place, name in enumerate(result.classes)}
    truth = np.concatenate([one.truth for one in result.folds])
    people = np.concatenate([one.participants for one in result.folds])
    return Predictions(
        np.array([code[name] for name in truth]),
        np.concatenate([one.probability for one in result.folds]),
        np.unique(people.astype(str), return_inverse=True)[1],
    )


def bootstrap_draws(
    told: Predictions, n_draws: int, random_state: int
) -> dict[str, np.ndarray]:
    """Return every pooled score of every draw of people, arrays of shape (n_draws,)."""
    parts = [weighted_scores(told, w) for w in _weights(told, n_draws, random_state)]
    return {name: np.concatenate([one[name] for one in parts]) for name in parts[0]}


def interval(draws: np.ndarray, level: float) -> tuple[float, float]:
    """Return the percentile interval of bootstrap draws; NaN draws do not count."""
    if not 0 < level < 1:
        raise ParameterError(f"level must be between 0 and 1, got {level!r}.")
    known = draws[np.isfinite(draws)]
    if not len(known):
        return float("nan"), float("nan")
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def weighted_scores(told: Predictions, weight: np.ndarray) -> dict[str, np.ndarray]:
    """Return every pooled score for each row of weights.

    Parameters
    ----------
    told : Predictions
        With n_rows predictions.
    weight : array of shape (n_draws, n_rows)
        How often each prediction counts.

    Returns
    -------
    dict of str to array of shape (n_draws,)
    """
    counts = confusions(told, weight)
    total = weight.sum(axis=1)
    hits, true = np.einsum("bii->bi", counts), counts.sum(axis=2)
    predicted, present = counts.sum(axis=1), true > 0
    recall = _mean_over(hits / np.maximum(true, 1e-300), present)
    stage = np.arange(counts.shape[1])
    step = np.abs(stage[:, None] - stage)
    expected = true[:, :, None] * predicted[:, None, :] / total[:, None, None]
    squared, chance = ((part * step**2).sum(axis=(1, 2)) for part in (counts, expected))
    one_hot = np.eye(counts.shape[1])[told.actual]
    brier = ((told.probability - one_hot) ** 2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        kappa = np.where(chance > 0, 1 - squared / chance, np.nan)
    return {
        "balanced_accuracy": recall,
        "accuracy": hits.sum(axis=1) / total,
        "precision": _mean_over(hits / np.maximum(predicted, 1e-300), present),
        "recall": recall,
        "f1": _mean_over(2 * hits / np.maximum(true + predicted, 1e-300), present),
        "auc": _mean_over(_aucs(told, weight), present, least=2),
        "kappa": kappa,
        "stage_error": (counts * step).sum(axis=(1, 2)) / total,
        "adjacent_accuracy": (counts * (step <= 1)).sum(axis=(1, 2)) / total,
        "brier": weight @ brier / total,
        "ece": _calibration_error(told, weight),
    }


def confusions(told: Predictions, weight: np.ndarray) -> np.ndarray:
    """Return weighted counts (n_draws, n_true, n_predicted)."""
    k = told.probability.shape[1]
    cell = told.actual * k + told.probability.argmax(axis=1)
    return (weight @ np.eye(k * k)[cell]).reshape(-1, k, k)


def class_rates(counts: np.ndarray) -> dict[str, np.ndarray]:
    """Return rates of every class (n_draws, n_classes); NaN where nobody is counted."""
    total = counts.sum(axis=(1, 2))[:, None]
    hits = np.einsum("bii->bi", counts)
    true, predicted = counts.sum(axis=2), counts.sum(axis=1)
    right_others = total - true - predicted + hits
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "sensitivity": hits / true,
            "specificity": right_others / (total - true),
            "predictive_value": hits / predicted,
        }


def _weights(told: Predictions, n_draws: int, random_state: int) -> list[np.ndarray]:
    """Return how often each prediction counts, some draws at a time."""
    check_at_least("n_draws", n_draws, 1)
    rng, n_people = np.random.default_rng(random_state), int(told.person.max()) + 1
    sizes = [
        min(DRAWS_AT_ONCE, n_draws - start)
        for start in range(0, n_draws, DRAWS_AT_ONCE)
    ]
    even = np.full(n_people, 1 / n_people)
    return [
        rng.multinomial(n_people, even, size).astype(float)[:, told.person]
        for size in sizes
    ]


def _mean_over(values: np.ndarray, present: np.ndarray, least: int = 1) -> np.ndarray:
    number = present.sum(axis=1)
    mean = np.where(present, values, 0).sum(axis=1) / np.maximum(number, 1)
    return np.where(number >= least, mean, np.nan)


def _aucs(told: Predictions, weight: np.ndarray) -> np.ndarray:
    """Return the AUC of every class against the rest (n_draws, n_classes)."""
    found = []
    for code in range(told.probability.shape[1]):
        values, place = np.unique(told.probability[:, code], return_inverse=True)
        order = np.argsort(place, kind="stable")
        start = np.searchsorted(place[order], np.arange(len(values)))
        mine = (told.actual == code)[order]
        ordered = weight[:, order]
        of_class = np.add.reduceat(ordered * mine, start, axis=1)
        of_rest = np.add.reduceat(ordered * ~mine, start, axis=1)
        below = np.cumsum(of_rest, axis=1) - of_rest / 2  # ties count half
        pairs = of_class.sum(axis=1) * of_rest.sum(axis=1)
        found.append((of_class * below).sum(axis=1) / np.maximum(pairs, 1e-300))
    return np.stack(found, axis=1)


def _calibration_error(told: Predictions, weight: np.ndarray) -> np.ndarray:
    confidence = told.probability.max(axis=1)
    right = told.probability.argmax(axis=1) == told.actual
    place = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    gap = weight @ (np.eye(N_BINS)[place] * (right - confidence)[:, None])
    return np.abs(gap).sum(axis=1) / weight.sum(axis=1)


def _times_tested(result: ModelResult) -> int:
    rows = np.concatenate([one.test for one in result.folds])
    return max(1, len(rows) // len(np.unique(rows)))
