"""Models against each other, and intervals of scores, both over people."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from brainlsap.evaluation.exact_bounds import bound_auc, bound_count_scores
from brainlsap.evaluation.metrics import (
    INTERVAL_SCORES,
    LOWER_IS_BETTER,
    SCORES,
    Predictions,
    weighted_counts,
    weighted_scores,
)
from brainlsap.evaluation.models import LADDER
from brainlsap.evaluation.results import Evaluation
from brainlsap.evaluation.splits import person_blocks
from brainlsap.exceptions import check_at_least, check_choice

GAINS = {
    LADDER[1]: "averaging along the connectome",
    LADDER[2]: "averaging by a scale per region",
}
"""What a ridge gains over those below it, in words."""

# Scores of two draws that differ by less are the same but for rounding.
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
        Score of one model less that of the other.
    n_train, n_test : float
        Mean number of people on each side of a fold.

    Returns
    -------
    TTest
        NaN where there are fewer than two folds, or none to judge the spread by: of
        the same difference in every fold there is no interval, and no p-value but 1
        where all are 0.
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
    """Compare all other models with one, the reference, on the same folds.

    Differences over folds are model minus reference. The test is the corrected
    resampled t test of :func:`corrected_t_test`, with the people that each fold was
    really trained and tested on. Holm's correction is for the number of comparisons:
    models that predicted the very same in every fold are one.

    Parameters
    ----------
    evaluation : Evaluation
        With two or more models.
    score : str
        Of :data:`SCORES`.
    reference : str, optional
        The model that all others are compared with; by default the first.

    Returns
    -------
    DataFrame
        model, role, reference, difference (model minus reference; above 0 the model has
        the higher score), low, high (95%, not corrected, and within what a difference
        of this score can be), t, p_value, p_holm, n_comparisons (those with a p-value),
        n_folds, better ("yes" where the model is better than the reference and p_holm <
        0.05, "no" where it is worse and p_holm < 0.05, else "unclear"; of the scores
        `LOWER_IS_BETTER` the smaller is better). A model with a failed fit has NaN.

    Raises
    ------
    ParameterError
        For an unknown score or model.
    """
    check_choice("score", score, SCORES)
    models, fits, cohort = evaluation.models, evaluation.fits, evaluation.cohort
    reference = reference or models[0]
    check_choice("reference", reference, models)
    folds = ["repeat", "fold"]
    scores = evaluation.scores().pivot(index=folds, columns="model", values=score)
    scores[list(set(fits.loc[fits["failed"] != "", "model"]))] = np.nan
    people = evaluation.predictions.groupby(["model", *folds])["participant"]
    n_test = people.nunique().mean()
    n_train = fits.get("n_train_people", pd.Series(dtype=float)).mean()
    if np.isnan(n_train):  # evaluations saved before that number was kept
        n_train = cohort.n_participants - n_test
    others = [name for name in models if name != reference]
    differences = [scores[name] - scores[reference] for name in others]
    tests = [corrected_t_test(one, n_train, n_test) for one in differences]
    table = pd.DataFrame(tests, columns=TTest._fields)
    table.insert(0, "model", others)
    table.insert(1, "role", table["model"].map(fits.groupby("model")["role"].first()))
    table.insert(2, "reference", reference)
    widest = {"brier": 2, "kappa": 2, "stage_error": len(cohort.classes) - 1}
    bounds, most = ["low", "high"], widest.get(score, 1)
    table[bounds] = table[bounds].clip(-most, most)
    kind = pd.Series([reference, *others]).replace(evaluation.same_as)
    counted = ~kind.duplicated()[1:].to_numpy() & table["p_value"].notna()
    table["p_holm"] = adjust_p_values(table["p_value"].where(counted))
    alike = table.groupby(kind[1:].to_numpy())["p_holm"]
    table["p_holm"] = alike.transform("first").fillna(table["p_value"])
    table["n_comparisons"] = counted.sum()
    table["n_folds"] = len(scores)
    ahead = (table["difference"] > 0) ^ (score in LOWER_IS_BETTER)
    table["better"] = _verdicts(table["p_holm"], ahead)
    return table


@threadpool_limits.wrap(limits=1)
def ladder_table(
    evaluation: Evaluation, n_draws: int = 5000, random_state: int = 0
) -> pd.DataFrame:
    """Test averaging along the connectome: each ridge against one with fewer scales.

    A gain is one of averaging, not of these connections: where classes differ in many
    regions, averages over any dense graph tell them better than single regions do, also
    over connectomes drawn at random.

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
        (above less below), low, high (95%, not corrected), p_value, p_holm, and adds:
        what is gained, of :data:`GAINS`, where the model above is better and p_holm <
        0.05, "no" where it is worse and p_holm < 0.05, else "unclear". Empty where the
        models are not there, or failed.
    """
    from scipy.stats import t as student

    check_at_least("n_draws", n_draws, 1)
    n_classes, rows = len(evaluation.cohort.classes), evaluation.predictions
    of_class = 1 / rows.groupby(["model", "truth"])["scan"].transform("size")
    part = of_class / n_classes * (rows["truth"] == rows["predicted"])
    by_person = part.groupby([rows["participant"], rows["model"]]).sum().unstack()
    names = {*by_person} - {*evaluation.fits.query("failed != ''")["model"]}
    rng, n, found = np.random.default_rng(random_state), len(by_person), []
    for below, above in pairwise(name for name in LADDER if name in names):
        scores = by_person[below].sum(), by_person[above].sum()
        d = (by_person[above] - by_person[below]).to_numpy()
        exchanged = np.abs(rng.choice([-1.0, 1.0], (n_draws, n)) @ d)
        p = (1 + (exchanged >= abs(d.sum()) - 1e-12).sum()) / (1 + n_draws)
        more = np.append(d, [1 / n, -1 / n]) * n / (n + 2)
        error = np.sqrt((n + 2) * more.var(ddof=1))
        interval = student.interval(0.95, n - 1, more.sum(), error)
        found.append((below, above, *scores, d.sum(), *np.clip(interval, -1, 1), p))
    columns = ["below", "above", "score_below", "score_above", "difference"]
    table = pd.DataFrame(found, columns=[*columns, "low", "high", "p_value"])
    table["p_holm"] = adjust_p_values(table["p_value"])
    verdict = pd.Series(_verdicts(table["p_holm"], table["difference"] > 0))
    table["adds"] = verdict.mask(verdict == "yes", table["above"].map(GAINS))
    return table


def _verdicts(p_values: pd.Series, ahead: pd.Series) -> np.ndarray:
    return np.where(p_values < 0.05, np.where(ahead, "yes", "no"), "unclear")


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
    :mod:`brainlsap.evaluation.exact_bounds`. Only a model that predicts one class for
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
        score, estimate, low, high; the rows of `INTERVAL_SCORES`, NaN for scores
        that the model or the cohort does not have.
    """
    predictions, person = _predictions_of(evaluation, model)
    draws: dict[str, np.ndarray] = dict.fromkeys(INTERVAL_SCORES, np.full(2, np.nan))
    if predictions is not None:
        draws = weighted_scores(predictions, _weights(person, n_draws, random_state))
    n_people = len(np.unique(person))
    rows = [(s, *_with_interval(draws[s], n_people, s)) for s in INTERVAL_SCORES]
    table = pd.DataFrame(rows, columns=["score", "estimate", "low", "high"])
    is_point = (table["high"] - table["low"]) < _SAME_SCORE
    if predictions is None or not is_point.any():
        return table
    bounds = bound_count_scores(predictions, person)
    auc = table["estimate"][table["score"] == "auc"].item()
    n_repeats = int(evaluation.settings.get("n_repeats", 1))
    bounds["auc"] = bound_auc(predictions, person, auc, n_repeats)
    for row in np.flatnonzero(is_point):
        estimate = table.loc[row, "estimate"]
        low, high = bounds.get(table.loc[row, "score"], (estimate, estimate))
        table.loc[row, ["low", "high"]] = min(low, estimate), max(high, estimate)
    return table


def chance_p(
    evaluation: Evaluation,
    model: str,
    n_permutations: int = 2000,
    random_state: int = 0,
) -> float:
    """Return how often chance gives a balanced accuracy as high as a model's.

    Labels are exchanged between people with as many scans, all visits together; the
    out-of-fold predictions stay, and no model is fitted anew. The observed labels count
    as one of the draws.

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
    told, person = _predictions_of(evaluation, model)
    if told is None:
        return float("nan")
    blocks = person_blocks(person)
    weight = 1 / np.bincount(told.actual, minlength=told.n_classes).clip(1)
    observed = weight[told.actual[told.actual == told.predicted]].sum()
    rng, reached, labels = np.random.default_rng(random_state), 1, told.actual.copy()
    for _ in range(n_permutations):
        for rows in blocks:
            labels[rows] = told.actual[rng.permutation(rows)]
        hits = weight[labels[labels == told.predicted]].sum()
        reached += hits >= observed - 1e-12
    return reached / (n_permutations + 1)


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
    told, person = _predictions_of(evaluation, model)
    if told is None:
        return table
    counts = weighted_counts(told, _weights(person, n_draws, random_state))
    total, hits = counts.sum(axis=(1, 2))[:, None], np.einsum("bii->bi", counts)
    true, predicted = counts.sum(axis=2), counts.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN of nobody
        specificity = (total - true - predicted + hits) / (total - true)
        rates = np.stack([hits / true, specificity, hits / predicted])
    for code in range(len(table)):
        mine, taken = told.actual == code, told.predicted == code
        of = {"sensitivity": mine, "specificity": ~mine, "predictive_value": taken}
        for (rate, rows), values in zip(of.items(), rates[:, :, code], strict=True):
            found = _with_interval(values, len(set(person[rows])), "accuracy")
            table.loc[code, [rate, f"{rate}_low", f"{rate}_high"]] = found
    return table


def _predictions_of(
    evaluation: Evaluation, model: str
) -> tuple[Predictions | None, np.ndarray]:
    """Return a model's predictions and whose they are; None where it has none."""
    check_choice("model", model, evaluation.models)
    rows = evaluation.predictions[evaluation.predictions["model"] == model]
    fits, person = evaluation.fits, pd.factorize(rows["participant"], sort=True)[0]
    if rows.empty or (fits.loc[fits["model"] == model, "failed"] != "").any():
        return None, person
    return evaluation.as_predictions(rows), person


def _weights(person: np.ndarray, n_draws: int, random_state: int) -> np.ndarray:
    """Return how often each prediction counts: once, and in every draw."""
    check_at_least("n_draws", n_draws, 1)
    n, rng = person.max() + 1, np.random.default_rng(random_state)
    drawn = rng.multinomial(n, np.full(n, 1 / n), n_draws)
    return np.vstack([np.ones(n), drawn])[:, person]


def _with_interval(
    values: np.ndarray, n_people: int, name: str
) -> tuple[float, float, float]:
    """Return an estimate, the first value, and an interval of the draws behind it.

    It holds the estimate; draws that are NaN do not count.
    """
    estimate, draws = float(values[0]), values[1:]
    known = draws[np.isfinite(draws)]
    if not len(known) or not np.isfinite(estimate):
        return estimate, np.nan, np.nan
    if name in ("accuracy", "adjacent_accuracy") and estimate in (0.0, 1.0):
        return estimate, *wilson_interval(round(estimate * n_people), n_people)
    if name == "ece":
        known = np.maximum(known - (known.mean() - estimate), 0)
    low, high = np.quantile(known, [0.025, 0.975])
    return estimate, min(float(low), estimate), max(float(high), estimate)


def wilson_interval(hits: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95% interval of a proportion: 0 of 14 gives 0 to 0.22."""
    from scipy.stats import binomtest

    return tuple(binomtest(int(hits), int(n)).proportion_ci(method="wilson"))
