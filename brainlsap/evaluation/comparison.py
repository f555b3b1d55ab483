"""Models against each other, and intervals of scores, both over people."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from brainlsap.arrays import check_at_least, check_choice
from brainlsap.evaluation.metrics import (
    LOWER_IS_BETTER,
    SCORES,
    class_codes,
    macro_auc,
    mean_over,
    rates_of,
)
from brainlsap.evaluation.results import Evaluation

__all__ = ["bootstrap_scores", "class_table", "compare_models", "corrected_t_test"]

INTERVAL_SCORES = {**SCORES, "ece": "expected calibration error"}
"""Scores of :func:`bootstrap_scores`, and how tables call them."""

LEVEL = (0.025, 0.975)
N_BINS = 10
DRAWS_AT_ONCE = 200


class TTest(NamedTuple):
    """Mean difference over folds, its 95% interval, t, and p-value."""

    difference: float
    low: float
    high: float
    t: float
    p_value: float


def corrected_t_test(
    differences: Sequence | np.ndarray, n_train: float, n_test: float
) -> TTest:
    r"""Test differences over folds, corrected for folds that share training scans.

    .. math:: t = \frac{\bar d}{\sqrt{(1/k + n_{test}/n_{train}) s_d^2}}

    with k - 1 degrees of freedom (Nadeau and Bengio 2003, Machine Learning 52:239).

    Parameters
    ----------
    differences : sequence of length n_folds
        Score of one model less that of the other.
    n_train, n_test : float
        Mean number of people on each side of a fold.

    Returns
    -------
    TTest
        NaN where there are fewer than two folds.
    """
    from scipy.stats import t as student

    d = np.asarray(differences, dtype=float)
    d = d[np.isfinite(d)]
    mean = float(d.mean()) if len(d) else float("nan")
    if len(d) < 2:
        return TTest(mean, *[float("nan")] * 4)
    error = float(np.sqrt((1 / len(d) + n_test / n_train) * d.var(ddof=1)))
    half = float(student.ppf(LEVEL[1], len(d) - 1)) * error
    if error == 0:
        same = mean == 0
        return TTest(mean, mean, mean, 0.0 if same else np.inf, float(same))
    t = mean / error
    p_value = float(2 * student.sf(abs(t), len(d) - 1))
    return TTest(mean, mean - half, mean + half, t, p_value)


def adjust_p_values(p_values: Sequence | np.ndarray) -> np.ndarray:
    """Correct p-values for how many there are (Holm); NaN does not count."""
    p = np.array(p_values, dtype=float)
    known = np.flatnonzero(np.isfinite(p))
    order = known[np.argsort(p[known], kind="stable")]
    left = np.arange(len(order), 0, -1)
    p[order] = np.minimum(1, np.maximum.accumulate(p[order] * left))
    return p


def compare_models(
    evaluation: Evaluation,
    score: str = "balanced_accuracy",
    *,
    reference: str | None = None,
) -> pd.DataFrame:
    """Compare one model with all others on the same folds: the report's only test.

    Differences over folds, the corrected resampled t test of :func:`corrected_t_test`
    with people counted, and Holm's correction for the number of models.

    Parameters
    ----------
    evaluation : Evaluation
        With two or more models.
    score : str
        Of :data:`SCORES`.
    reference : str, optional
        The model that is compared; by default the first.

    Returns
    -------
    DataFrame
        model, role, difference (reference less model; above 0 the reference has the
        higher score), low, high (95%, not corrected), t, p_value, p_holm, n_folds,
        better ("yes" where the reference is better and p_holm < 0.05, "no" where it is
        worse so, else "not shown"). A model with a failed fit has NaN.

    Raises
    ------
    ParameterError
        For an unknown score or model.
    """
    check_choice("score", score, SCORES)
    models, fits = evaluation.models, evaluation.fits
    reference = reference or models[0]
    check_choice("reference", reference, models)
    folds = ["repeat", "fold"]
    scores = evaluation.scores().pivot(index=folds, columns="model", values=score)
    scores[list(set(fits.loc[fits["failed"] != "", "model"]))] = np.nan
    people = evaluation.predictions.groupby(["model", *folds])["participant"]
    n_people, n_test = evaluation.cohort.n_participants, people.nunique().mean()
    n_train = n_people - n_test
    if evaluation.settings["n_folds"] < 2:
        n_train = n_people * fits["n_train"].mean() / evaluation.cohort.n_scans
    roles = fits.groupby("model")["role"].first()
    rows = [
        {
            "model": name,
            "role": roles[name],
            **corrected_t_test(
                scores[reference] - scores[name], n_train, n_test
            )._asdict(),
            "n_folds": len(scores),
        }
        for name in models
        if name != reference
    ]
    table = pd.DataFrame(rows, columns=["model", "role", *TTest._fields, "n_folds"])
    table.insert(7, "p_holm", adjust_p_values(table["p_value"]))
    sign = -1 if score in LOWER_IS_BETTER else 1
    sure, ahead = table["p_holm"] < 0.05, sign * table["difference"] > 0
    table["better"] = np.where(sure, np.where(ahead, "yes", "no"), "not shown")
    return table


@threadpool_limits.wrap(limits=1)
def bootstrap_scores(
    evaluation: Evaluation, model: str, n_draws: int = 2000, random_state: int = 0
) -> pd.DataFrame:
    r"""Score all out-of-fold predictions of a model together, with 95% intervals.

    People are drawn with replacement, each with all visits and all repeats. The AUC is
    averaged over folds, as probabilities of two fits cannot be compared.
    The expected calibration error,

    .. math:: \sum_b \frac{n_b}{n} |\mathrm{accuracy}_b - \mathrm{confidence}_b|

    over ten bins of the highest probability, is biased upwards in every draw; its
    interval is that of the draws less their mean excess over the estimate, from 0 up.
    Proportions of 0 or 1, of which every draw is the same, have Wilson's interval.

    Parameters
    ----------
    evaluation : Evaluation
        What was evaluated.
    model : str
        One of its models.
    n_draws : int
        Bootstrap draws.
    random_state : int
        Seed; the same people are drawn for every model.

    Returns
    -------
    DataFrame
        score, estimate, low, high; the rows of :data:`INTERVAL_SCORES`, NaN for scores
        that the model or the cohort does not have.
    """
    told = _predictions_of(evaluation, model)
    if told is None:
        nothing = dict.fromkeys(("estimate", "low", "high"), np.nan)
        return pd.DataFrame([{"score": name, **nothing} for name in INTERVAL_SCORES])
    estimate = _weighted_scores(told, np.ones((1, len(told.actual))))
    draws = [_weighted_scores(told, w) for w in _weights(told, n_draws, random_state)]
    rows = []
    for name in INTERVAL_SCORES:
        value = float(estimate[name][0])
        drawn = np.concatenate([one[name] for one in draws])
        low, high = _interval(value, drawn, told.n_people, name)
        rows.append({"score": name, "estimate": value, "low": low, "high": high})
    return pd.DataFrame(rows)


def class_table(
    evaluation: Evaluation, model: str, n_draws: int = 2000, random_state: int = 0
) -> pd.DataFrame:
    """Return sensitivity, specificity and predictive value of every class.

    Parameters
    ----------
    evaluation, model, n_draws, random_state
        As of :func:`bootstrap_scores`.

    Returns
    -------
    DataFrame
        class, people, scans; then each rate with `_low` and `_high` (95%).
    """
    classes = evaluation.cohort.classes
    counts = evaluation.cohort.class_counts()
    rows = counts.rename(columns={"participants": "people"}).to_dict("records")
    told = _predictions_of(evaluation, model)
    if told is None:
        return pd.DataFrame(rows)
    estimate = _class_rates(_confusions(told, np.ones((1, len(told.actual)))))
    weights = _weights(told, n_draws, random_state)
    drawn = _class_rates(np.concatenate([_confusions(told, w) for w in weights]))
    for code in range(len(classes)):
        mine = told.actual == code
        n_mine = len(np.unique(told.person[mine]))
        n_others = len(np.unique(told.person[~mine]))
        taken = len(np.unique(told.person[told.predicted == code]))
        of = {"sensitivity": n_mine, "specificity": n_others, "predictive_value": taken}
        for rate, n_people in of.items():
            value = float(estimate[rate][0, code])
            low, high = _interval(value, drawn[rate][:, code], n_people, "accuracy")
            rows[code] |= {rate: value, f"{rate}_low": low, f"{rate}_high": high}
    return pd.DataFrame(rows)


class _Predictions(NamedTuple):
    """Every out-of-fold prediction of one model, as arrays of length n_rows."""

    actual: np.ndarray
    predicted: np.ndarray
    person: np.ndarray
    fold: np.ndarray
    probability: np.ndarray | None
    ranking: np.ndarray | None  # what the AUC is of: probability or softmax of decision
    n_people: int
    n_classes: int
    ordered: bool


def _predictions_of(evaluation: Evaluation, model: str) -> _Predictions | None:
    """Return a model's predictions; None where it has none."""
    from scipy.special import softmax

    check_choice("model", model, evaluation.models)
    rows = evaluation.predictions[evaluation.predictions["model"] == model]
    fits = evaluation.fits
    if rows.empty or (fits.loc[fits["model"] == model, "failed"] != "").any():
        return None
    cohort = evaluation.cohort
    names = list(cohort.classes)
    probability = rows[[f"p_{name}" for name in names]].to_numpy(dtype=float)
    decision = rows[[f"d_{name}" for name in names]].to_numpy(dtype=float)
    given = None if np.isnan(probability).any() else probability
    ranking = given
    if given is None and not np.isnan(decision).any():
        ranking = softmax(decision, axis=1)
    person = pd.factorize(rows["participant"].astype(str), sort=True)[0]
    return _Predictions(
        class_codes(rows["truth"], names),
        class_codes(rows["predicted"], names),
        person,
        pd.factorize(rows["repeat"].astype(str) + "/" + rows["fold"].astype(str))[0],
        given,
        ranking,
        int(person.max()) + 1,
        len(names),
        cohort.classes_ordered,
    )


def _weights(
    told: _Predictions, n_draws: int, random_state: int
) -> Iterator[np.ndarray]:
    """Yield how often each prediction counts (n_draws, n_rows), a part at a time."""
    check_at_least("n_draws", n_draws, 1)
    rng = np.random.default_rng(random_state)
    even = np.full(told.n_people, 1 / told.n_people)
    for start in range(0, n_draws, DRAWS_AT_ONCE):
        size = min(DRAWS_AT_ONCE, n_draws - start)
        drawn = rng.multinomial(told.n_people, even, size)
        yield drawn.astype(float)[:, told.person]


def _weighted_scores(told: _Predictions, weight: np.ndarray) -> dict[str, np.ndarray]:
    """Return every score for each row of weights (n_draws, n_rows)."""
    nothing = np.full(len(weight), np.nan)
    scores = rates_of(_confusions(told, weight), ordered=told.ordered)
    scores |= {"auc": nothing, "brier": nothing, "ece": nothing}
    total = weight.sum(axis=1)
    if told.ranking is not None:
        folds = [told.fold == fold for fold in range(told.fold.max() + 1)]
        aucs = np.array(
            [macro_auc(told.actual[f], told.ranking[f], weight[:, f]) for f in folds]
        ).T
        scores["auc"] = mean_over(aucs, ~np.isnan(aucs))
    if told.probability is not None:
        error = (told.probability - np.eye(told.n_classes)[told.actual]) ** 2
        scores["brier"] = weight @ error.sum(axis=1) / total
        confidence = told.probability.max(axis=1)
        right = told.predicted == told.actual
        place = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
        gap = weight @ (np.eye(N_BINS)[place] * (right - confidence)[:, None])
        scores["ece"] = np.abs(gap).sum(axis=1) / total
    return scores


def _confusions(told: _Predictions, weight: np.ndarray) -> np.ndarray:
    """Return weighted counts (n_draws, n_true, n_predicted)."""
    k = told.n_classes
    return (weight @ np.eye(k * k)[told.actual * k + told.predicted]).reshape(-1, k, k)


def _class_rates(counts: np.ndarray) -> dict[str, np.ndarray]:
    """Return rates of every class (n_draws, n_classes); NaN where nobody is counted."""
    total = counts.sum(axis=(1, 2))[:, None]
    hits = np.einsum("bii->bi", counts)
    true, predicted = counts.sum(axis=2), counts.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "sensitivity": hits / true,
            "specificity": (total - true - predicted + hits) / (total - true),
            "predictive_value": hits / predicted,
        }


def _interval(
    estimate: float, draws: np.ndarray, n_people: int, name: str
) -> tuple[float, float]:
    """Return an interval that holds its estimate; NaN draws do not count."""
    known = draws[np.isfinite(draws)]
    if not len(known) or not np.isfinite(estimate):
        return np.nan, np.nan
    if name in ("accuracy", "adjacent_accuracy") and estimate in (0.0, 1.0):
        return wilson_interval(round(estimate * n_people), n_people)
    if name == "ece":
        known = np.maximum(known - (known.mean() - estimate), 0)
    low, high = np.quantile(known, LEVEL)
    return min(float(low), estimate), max(float(high), estimate)


def wilson_interval(hits: float, n: int) -> tuple[float, float]:
    """Return Wilson's 95% interval of a proportion: 0 of 14 gives 0 to 0.22."""
    z = 1.959963984540054
    p = hits / n
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))
