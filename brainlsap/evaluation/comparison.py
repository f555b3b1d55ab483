"""Comparisons of models, and intervals of their scores over people."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from brainlsap.evaluation.exact_bounds import bound_auc, bound_count_scores
from brainlsap.evaluation.metrics import Predictions, weighted_counts
from brainlsap.evaluation.models import NESTED_RIDGES
from brainlsap.evaluation.results import Evaluation
from brainlsap.evaluation.scores import (
    SCORES,
    fold_scores,
    get_score,
    weighted_scores,
)
from brainlsap.evaluation.splits import person_blocks
from brainlsap.exceptions import check_at_least, check_choice

GAINS = {
    NESTED_RIDGES[1]: "averaging along the connectome",
    NESTED_RIDGES[2]: "averaging by a scale per region",
}
"""What a ridge has that the next simpler one lacks, as the tables say it."""

# Scores of two draws that differ by less differ by rounding only.
_SAME_SCORE = 1e-12


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
        Score of one model minus that of the other.
    n_train, n_test : float
        Mean number of people on each side of a fold.

    Returns
    -------
    TTest
        NaN where there are fewer than two folds, or where the difference is the same
        in every fold, which leaves no spread; but p is 1 where all differences are 0.
    """
    from scipy.stats import t as student

    d = np.asarray(differences, dtype=float)
    d = d[np.isfinite(d)]
    mean = float(d.mean()) if len(d) else float("nan")
    if len(d) > 1 and np.allclose(d, 0, atol=1e-12):
        return TTest(mean, np.nan, np.nan, 0.0, 1.0)
    if len(d) < 2 or np.ptp(d) < 1e-12:
        return TTest(mean, *[np.nan] * 4)
    error = float(np.sqrt((1 / len(d) + n_test / n_train) * d.var(ddof=1)))
    low, high = student.interval(0.95, len(d) - 1, mean, error)
    p_value = float(2 * student.sf(abs(mean / error), len(d) - 1))
    return TTest(mean, float(low), float(high), mean / error, p_value)


def adjust_p_values(p_values: Sequence | np.ndarray) -> np.ndarray:
    """Correct p-values for their number (Holm); NaN stays and does not count."""
    adjusted = np.array(p_values, dtype=float)
    is_finite = np.flatnonzero(np.isfinite(adjusted))
    order = is_finite[np.argsort(adjusted[is_finite], kind="stable")]
    n_remaining = np.arange(len(order), 0, -1)
    steps = np.maximum.accumulate(adjusted[order] * n_remaining)
    adjusted[order] = np.minimum(1, steps)
    return adjusted


def compare_models(
    evaluation: Evaluation,
    score: str = "balanced_accuracy",
    *,
    reference: str | None = None,
) -> pd.DataFrame:
    """Compare all other models with one, the reference, on the same folds.

    Differences over folds are model minus reference. The test is the corrected
    resampled t test of :func:`corrected_t_test`, with the numbers of people that each
    fold was trained and tested on. Holm's correction is for the number of comparisons;
    models with the same predictions in every fold count once.

    Parameters
    ----------
    evaluation : Evaluation
        With two or more models.
    score : str
        Of those that are computed by fold, see :func:`fold_scores`.
    reference : str, optional
        The model that all others are compared with; by default the first.

    Returns
    -------
    DataFrame
        model, role, reference, difference (model minus reference; above 0 the model has
        the higher score), low, high (95%, not corrected, and within what a difference
        of this score can be), t, p_value, p_holm, n_comparisons (those with a p-value),
        n_folds, better ("yes" where the model is better than the reference and p_holm <
        0.05, "no" where it is worse and p_holm < 0.05, else "unclear"; an entry of
        :data:`SCORES` says whether lower is better). A model with a failed fit has NaN.

    Raises
    ------
    ParameterError
        For an unknown score or model.
    """
    check_choice("score", score, fold_scores())
    models, cohort = evaluation.models, evaluation.cohort
    reference = reference or models[0]
    check_choice("reference", reference, models)
    scores = _pivot_scores(evaluation, score)
    n_train, n_test = _count_fold_people(evaluation)
    compared_models = [name for name in models if name != reference]
    tests = [
        corrected_t_test(scores[name] - scores[reference], n_train, n_test)
        for name in compared_models
    ]
    table = pd.DataFrame(tests, columns=TTest._fields)
    roles = evaluation.fits.groupby("model")["role"].first()
    table.insert(0, "model", compared_models)
    table.insert(1, "role", table["model"].map(roles))
    table.insert(2, "reference", reference)
    lowest, highest = get_score(score).limits(len(cohort.classes))
    largest_difference = highest - lowest
    bounds = ["low", "high"]
    table[bounds] = table[bounds].clip(-largest_difference, largest_difference)
    # Models with the very same predictions share one comparison.
    all_models = pd.Series([reference, *compared_models])
    distinct_model = all_models.replace(evaluation.same_as)
    is_repeated = distinct_model.duplicated()[1:].to_numpy()
    is_compared = ~is_repeated & table["p_value"].notna()
    table["p_holm"] = adjust_p_values(table["p_value"].where(is_compared))
    same_model_rows = table.groupby(distinct_model[1:].to_numpy())["p_holm"]
    table["p_holm"] = same_model_rows.transform("first").fillna(table["p_value"])
    table["n_comparisons"] = is_compared.sum()
    table["n_folds"] = len(scores)
    is_better = (table["difference"] > 0) ^ get_score(score).lower_is_better
    table["better"] = _verdicts(table["p_holm"], is_better)
    return table


def _pivot_scores(evaluation: Evaluation, score: str) -> pd.DataFrame:
    """Return a score by fold (rows) and model; NaN for models with a failed fit."""
    scores = evaluation.scores().pivot(
        index=["repeat", "fold"], columns="model", values=score
    )
    fits = evaluation.fits
    scores[list(set(fits.loc[fits["failed"] != "", "model"]))] = np.nan
    return scores


def _count_fold_people(evaluation: Evaluation) -> tuple[float, float]:
    """Return the mean number of people that a fold is trained and tested on."""
    folds = evaluation.predictions.groupby(["model", "repeat", "fold"])
    n_test = folds["participant"].nunique().mean()
    n_train_people = evaluation.fits.get("n_train_people", pd.Series(dtype=float))
    n_train = n_train_people.mean()
    if np.isnan(n_train):  # evaluations saved before that number was stored
        n_train = evaluation.cohort.n_participants - n_test
    return n_train, n_test


@threadpool_limits.wrap(limits=1)
def nested_model_table(
    evaluation: Evaluation, n_draws: int = 5000, random_state: int = 0
) -> pd.DataFrame:
    """Test averaging along the connectome: each ridge against one with fewer scales.

    A gain is one of averaging, not of these connections: where classes differ in many
    regions, averages over any dense graph separate them better than single regions,
    also averages over random connectomes. What the connectome adds is measured by
    :func:`connectome_gain`.

    Balanced accuracy over all out-of-fold predictions. The null exchanges the two
    models' predictions of a person, of all visits and repeats together, with Holm's
    correction for the number of steps. Intervals are Student's, over what each person
    adds to the difference, with two people more: one whom only the first model
    classifies correctly, and one whom only the second does (Bonett and Price 2012,
    Journal of Educational and Behavioral Statistics 37:479). Where few people are
    classified differently, percentiles of a bootstrap are too narrow.

    Parameters
    ----------
    evaluation : Evaluation
        With two or more of the models "ridge without network", "ridge with one scale"
        and "ridge with a scale per region".
    n_draws : int
        Random exchanges.
    random_state : int
        Seed.

    Returns
    -------
    DataFrame
        One row a step: below, above (models), score_below, score_above, difference
        (above minus below), low, high (95%, not corrected), p_value, p_holm, and adds:
        the gain of `GAINS` where the model above is better and p_holm < 0.05,
        "no" where it is worse and p_holm < 0.05, else "unclear". Empty where the models
        were not run, or failed.
    """
    from scipy.stats import t as student

    check_at_least("n_draws", n_draws, 1)
    contributions = _balanced_accuracy_by_person(evaluation)
    failed_models = {*evaluation.fits.query("failed != ''")["model"]}
    names = {*contributions} - failed_models
    rng = np.random.default_rng(random_state)
    n_people = len(contributions)
    rows = []
    for simpler, richer in pairwise(name for name in NESTED_RIDGES if name in names):
        simpler_score = contributions[simpler].sum()
        richer_score = contributions[richer].sum()
        d = (contributions[richer] - contributions[simpler]).to_numpy()
        signs = rng.choice([-1.0, 1.0], (n_draws, n_people))
        null_differences = np.abs(signs @ d)
        n_exceeding = (null_differences >= abs(d.sum()) - 1e-12).sum()
        p_value = (1 + n_exceeding) / (1 + n_draws)
        # Bonett and Price: one person more for each side.
        two_people = [1 / n_people, -1 / n_people]
        shares = np.append(d, two_people) * n_people / (n_people + 2)
        error = np.sqrt((n_people + 2) * shares.var(ddof=1))
        interval = student.interval(0.95, n_people - 1, shares.sum(), error)
        low, high = np.clip(interval, -1, 1)
        rows.append(
            {
                "below": simpler,
                "above": richer,
                "score_below": simpler_score,
                "score_above": richer_score,
                "difference": d.sum(),
                "low": low,
                "high": high,
                "p_value": p_value,
            }
        )
    columns = ["below", "above", "score_below", "score_above", "difference"]
    table = pd.DataFrame(rows, columns=[*columns, "low", "high", "p_value"])
    table["p_holm"] = adjust_p_values(table["p_value"])
    verdict = pd.Series(_verdicts(table["p_holm"], table["difference"] > 0))
    table["adds"] = verdict.mask(verdict == "yes", table["above"].map(GAINS))
    return table


def _balanced_accuracy_by_person(evaluation: Evaluation) -> pd.DataFrame:
    """Return what each person (row) adds to the balanced accuracy of each model."""
    n_classes, rows = len(evaluation.cohort.classes), evaluation.predictions
    row_share = 1 / rows.groupby(["model", "truth"])["scan"].transform("size")
    contribution = row_share / n_classes * (rows["truth"] == rows["predicted"])
    return contribution.groupby([rows["participant"], rows["model"]]).sum().unstack()


def _verdicts(p_values: pd.Series, is_better: pd.Series) -> np.ndarray:
    return np.where(p_values < 0.05, np.where(is_better, "yes", "no"), "unclear")


@threadpool_limits.wrap(limits=1)
def bootstrap_scores(
    evaluation: Evaluation, model: str, n_draws: int = 2000, random_state: int = 0
) -> pd.DataFrame:
    r"""Score all out-of-fold predictions of a model together, with 95% intervals.

    People are drawn with replacement, each with all visits and all repeats. The AUC is
    averaged over folds, as probabilities of two fits cannot be compared.
    The expected calibration error,

    .. math:: \sum_b \frac{n_b}{n} |\mathrm{accuracy}_b - \mathrm{confidence}_b|

    over ten bins of the probability of the predicted class, is biased upwards in every
    draw; its interval is that of the draws less their mean excess over the estimate,
    from 0 up. Where every draw is the same, as at perfect scores, accuracies have
    Wilson's interval and other scores the exact bounds of Buehler (1957), those of
    `brainlsap.evaluation.exact_bounds`. Only a model that predicts one class for
    everybody, or gives everybody one probability, has an interval of width 0.

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
        score, estimate, low, high; a row for each of :data:`SCORES`, NaN for scores
        that the model or the cohort does not have.
    """
    predictions, person = _predictions_of(evaluation, model)
    draws: dict[str, np.ndarray] = dict.fromkeys(SCORES, np.full(2, np.nan))
    if predictions is not None:
        draws = weighted_scores(predictions, _weights(person, n_draws, random_state))
    n_people, n_classes = len(np.unique(person)), len(evaluation.cohort.classes)
    rows = []
    for name, score in SCORES.items():
        limits = score.limits(n_classes)
        interval = _with_interval(draws[name], n_people, score.interval, limits)
        rows.append((name, *interval))
    table = pd.DataFrame(rows, columns=["score", "estimate", "low", "high"])
    is_point = (table["high"] - table["low"]) < _SAME_SCORE
    if predictions is None or not is_point.any():
        return table
    bounds = bound_count_scores(predictions, person)
    n_repeats = int(evaluation.settings.get("n_repeats", 1))
    for row in np.flatnonzero(is_point):
        name, estimate = table.loc[row, "score"], table.loc[row, "estimate"]
        low, high = bounds.get(name, (estimate, estimate))
        if SCORES[name].interval == "pairs":
            low, high = bound_auc(predictions, person, estimate, n_repeats)
        table.loc[row, ["low", "high"]] = min(low, estimate), max(high, estimate)
    return table


def chance_p(
    evaluation: Evaluation,
    model: str,
    n_permutations: int = 2000,
    random_state: int = 0,
) -> float:
    """Return how often chance gives a balanced accuracy as high as a model's.

    Labels are exchanged between people with equally many scans, all visits together.
    The out-of-fold predictions stay, and no model is fitted again. The observed labels
    count as one of the draws.

    Parameters
    ----------
    evaluation, model, random_state
        As of :func:`bootstrap_scores`.
    n_permutations : int
        Exchanges drawn.

    Returns
    -------
    float
        p, one-sided; NaN for a model without predictions.
    """
    predictions, person = _predictions_of(evaluation, model)
    if predictions is None:
        return float("nan")
    actual, predicted = predictions.actual, predictions.predicted
    blocks = person_blocks(person)
    # The sum over classes of hits by class size orders draws as balanced accuracy does.
    class_weight = 1 / np.bincount(actual, minlength=predictions.n_classes).clip(1)
    observed = class_weight[actual[actual == predicted]].sum()
    rng = np.random.default_rng(random_state)
    n_exceeding = 1
    labels = actual.copy()
    for _ in range(n_permutations):
        for rows in blocks:
            labels[rows] = actual[rng.permutation(rows)]
        permuted = class_weight[labels[labels == predicted]].sum()
        n_exceeding += permuted >= observed - _SAME_SCORE
    return n_exceeding / (n_permutations + 1)


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
    table = evaluation.cohort.class_counts().rename(columns={"participants": "people"})
    predictions, person = _predictions_of(evaluation, model)
    if predictions is None:
        return table
    weight = _weights(person, n_draws, random_state)
    counts = weighted_counts(predictions, weight)
    n_total = counts.sum(axis=(1, 2))[:, None]
    n_true, n_predicted = counts.sum(axis=2), counts.sum(axis=1)
    n_hits = np.einsum("bii->bi", counts)
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN where a class is empty
        sensitivity = n_hits / n_true
        n_others = n_total - n_true
        specificity = (n_others - n_predicted + n_hits) / n_others
        predictive_value = n_hits / n_predicted
    for code in range(len(table)):
        is_class = predictions.actual == code
        is_predicted = predictions.predicted == code
        rates = {
            "sensitivity": (sensitivity, is_class),
            "specificity": (specificity, ~is_class),
            "predictive_value": (predictive_value, is_predicted),
        }
        for name, (rate, is_counted) in rates.items():
            n_people = len(set(person[is_counted]))
            interval = _with_interval(rate[:, code], n_people, "proportion", (0.0, 1.0))
            table.loc[code, [name, f"{name}_low", f"{name}_high"]] = interval
    return table


def _predictions_of(
    evaluation: Evaluation, model: str
) -> tuple[Predictions | None, np.ndarray]:
    """Return a model's predictions, None where a fit failed, and the people's codes."""
    check_choice("model", model, evaluation.models)
    rows = evaluation.predictions[evaluation.predictions["model"] == model]
    fits, person = evaluation.fits, pd.factorize(rows["participant"], sort=True)[0]
    if rows.empty or (fits.loc[fits["model"] == model, "failed"] != "").any():
        return None, person
    return evaluation.as_predictions(rows), person


def _weights(person: np.ndarray, n_draws: int, random_state: int) -> np.ndarray:
    """Return how often each prediction counts: once in row 0, then in every draw."""
    check_at_least("n_draws", n_draws, 1)
    n_people, rng = person.max() + 1, np.random.default_rng(random_state)
    n_times = rng.multinomial(n_people, np.full(n_people, 1 / n_people), n_draws)
    return np.vstack([np.ones(n_people), n_times])[:, person]


def _with_interval(
    values: np.ndarray, n_people: int, interval: str, limits: tuple[float, float]
) -> tuple[float, float, float]:
    """Return an estimate, the first value, and an interval of the draws behind it.

    `interval` is a kind of interval of :class:`Score`, `limits` the range of the score.
    The interval holds the estimate; draws that are NaN do not count.
    """
    lowest, highest = limits
    estimate, draws = float(values[0]), values[1:]
    draws = draws[np.isfinite(draws)]
    if not len(draws) or not np.isfinite(estimate):
        return estimate, np.nan, np.nan
    if interval == "proportion" and estimate in limits:
        n_hits = n_people if estimate == highest else 0
        low, high = wilson_interval(n_hits, n_people)
        width = highest - lowest
        return estimate, lowest + low * width, lowest + high * width
    if interval == "bias corrected":
        excess = draws.mean() - estimate
        draws = np.maximum(draws - excess, lowest)
    low, high = np.quantile(draws, [0.025, 0.975])
    return estimate, min(float(low), estimate), max(float(high), estimate)


def wilson_interval(hits: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95% interval of a proportion: 0 of 14 gives 0 to 0.22."""
    from scipy.stats import binomtest

    return tuple(binomtest(int(hits), int(n)).proportion_ci(method="wilson"))
