r"""Comparisons of models, intervals of their scores over people, and calibration.

**Exact bounds.** If all people of each class are classified correctly, every bootstrap
draw is perfect, and percentiles are an interval of width 0. The bounds here are
Buehler's (1957, Journal of the American Statistical Association 52:482), which extend
the interval of Clopper and Pearson (1934, Biometrika 26:404) from one proportion to a
function of several. Let :math:`n_c` people of class c be tested, and let the model err
on a share :math:`e_c` of all people of that class. The bound is the most extreme score
among all

.. math:: e: \quad \prod_c (1 - e_c)^{n_c} \ge 0.025

that is, among the error rates under which the observed result still occurs in 2.5 % of
studies. One class with all of n people correct gives Clopper and Pearson's
:math:`0.025^{1/n}`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student
from threadpoolctl import threadpool_limits

from brainlsap.evaluation.models import ADDED_VALUE_MODELS, NESTED_RIDGES
from brainlsap.evaluation.results import Evaluation
from brainlsap.evaluation.scores import (
    SCORES,
    Predictions,
    count_scores_by_name,
    fold_class_aucs,
    fold_scores,
    get_score,
    weighted_confusion_counts,
    weighted_scores_by_name,
)
from brainlsap.evaluation.splits import list_person_blocks, permute_row_indices
from brainlsap.exceptions import check_at_least, check_choice

GAIN_OF_RIDGE = {
    NESTED_RIDGES[1]: "averaging along the connectome",
    NESTED_RIDGES[2]: "averaging by a scale per region",
}
"""Difference of a ridge from the next simpler ridge, in the words of the tables."""

# Scores of two draws that differ by less differ by rounding only.
_SAME_SCORE = 1e-12
# Numbers in memory at once: 8 times as many bytes.
_VALUES_AT_ONCE = 2**22

TAIL_PROBABILITY = 0.025
"""Probability of the observed result at either end of a 95% interval."""

# Random divisions of the errors among classes, and random classes that errors go to.
_N_RANDOM_SHARES = 400
_N_RANDOM_TARGETS = 60
_BOUND_SEED = 0

_N_NEWTON_STEPS = 50
NORMAL_QUANTILE = 1.959963984540054  # of 95% intervals
# Probabilities of 0 and 1 have no finite log-odds.
_SMALLEST_PROBABILITY = 1e-9
N_CALIBRATION_DRAWS = 2000
"""Number of draws of classes from the probabilities that are tested."""
# A larger slope means that the class and the rest are separated.
_MAX_SLOPE = 100.0


class TTest(NamedTuple):
    """Mean difference over folds, its 95% interval, t, and p-value."""

    difference: float
    low: float
    high: float
    t: float
    p_value: float


def corrected_t_test(
    fold_differences: Sequence | np.ndarray, n_train: float, n_test: float
) -> TTest:
    r"""Test differences over folds, corrected for folds that share training scans.

    .. math:: t = \frac{\bar d}{\sqrt{(1/k + n_{test}/n_{train}) s_d^2}}

    with k - 1 degrees of freedom (Nadeau and Bengio 2003, Machine Learning 52:239).

    Parameters
    ----------
    fold_differences : sequence of length n_folds
        Score of one model minus that of the other.
    n_train, n_test : float
        Mean number of people on each side of a fold.

    Returns
    -------
    TTest
        NaN where there are fewer than two folds, or where the difference is the same
        in every fold, which leaves no spread; but p is 1 where all differences are 0.
    """
    d = np.asarray(fold_differences, dtype=float)
    d = d[np.isfinite(d)]
    mean_difference = float(d.mean()) if len(d) else float("nan")
    if len(d) > 1 and np.allclose(d, 0, atol=1e-12):
        return TTest(mean_difference, np.nan, np.nan, 0.0, 1.0)
    if len(d) < 2 or np.ptp(d) < 1e-12:
        return TTest(mean_difference, *[np.nan] * 4)
    standard_error = float(np.sqrt((1 / len(d) + n_test / n_train) * d.var(ddof=1)))
    lower_bound, upper_bound = student.interval(
        0.95, len(d) - 1, mean_difference, standard_error
    )
    p_value = float(2 * student.sf(abs(mean_difference / standard_error), len(d) - 1))
    return TTest(
        mean_difference,
        float(lower_bound),
        float(upper_bound),
        mean_difference / standard_error,
        p_value,
    )


def adjust_p_values(p_values: Sequence | np.ndarray) -> np.ndarray:
    """Correct p-values for their number (Holm); NaN stays and does not count."""
    adjusted_p_values = np.array(p_values, dtype=float)
    finite_indices = np.flatnonzero(np.isfinite(adjusted_p_values))
    p_value_order = finite_indices[
        np.argsort(adjusted_p_values[finite_indices], kind="stable")
    ]
    holm_factors = np.arange(len(p_value_order), 0, -1)
    step_p_values = np.maximum.accumulate(
        adjusted_p_values[p_value_order] * holm_factors
    )
    adjusted_p_values[p_value_order] = np.minimum(1, step_p_values)
    return adjusted_p_values


def compare_models(
    evaluation: Evaluation,
    score_name: str = "balanced_accuracy",
    *,
    reference: str | None = None,
) -> pd.DataFrame:
    """Compare a reference model with all other models on the same folds.

    Differences over folds are model minus reference. The test is the corrected
    resampled t test of :func:`corrected_t_test`, with the numbers of people that each
    fold was trained and tested on. Holm's correction is for the number of comparisons;
    models with the same predictions in every fold count once.

    Parameters
    ----------
    evaluation : Evaluation
        With two or more models.
    score_name : str
        Of those that are computed by fold, see :func:`fold_scores`.
    reference : str, optional
        The model that all others are compared with; by default the first.

    Returns
    -------
    DataFrame
        model, role, reference, difference (model minus reference; above 0 the model has
        the higher score), low, high (95%, not corrected, and within what a difference
        of this score can be), t, p_value, p_holm, n_comparisons (those with a p-value),
        n_folds (those in which both models have the score), better ("yes" where the
        model is better than the reference and p_holm < 0.05, "no" where it is worse and
        p_holm < 0.05, else "unclear"; an entry of :data:`SCORES` says whether lower is
        better). A model with a failed fit has NaN.

    Raises
    ------
    ParameterError
        For an unknown score or model.
    """
    check_choice("score_name", score_name, fold_scores())
    model_names, cohort = evaluation.models, evaluation.cohort
    reference = reference or model_names[0]
    check_choice("reference", reference, model_names)
    fold_score_table = _pivot_score_table(evaluation, score_name)
    n_train, n_test = _compute_mean_training_and_test_sizes(evaluation)
    other_model_names = [
        model_name for model_name in model_names if model_name != reference
    ]
    difference_table = fold_score_table[other_model_names].sub(
        fold_score_table[reference], axis="index"
    )
    t_tests = [
        corrected_t_test(difference_table[model_name], n_train, n_test)
        for model_name in other_model_names
    ]
    comparison_table = pd.DataFrame(t_tests, columns=TTest._fields)
    model_role_series = evaluation.fits.groupby("model")["role"].first()
    comparison_table.insert(0, "model", other_model_names)
    comparison_table.insert(1, "role", comparison_table["model"].map(model_role_series))
    comparison_table.insert(2, "reference", reference)
    lower_limit, upper_limit = get_score(score_name).lowest_and_highest(
        len(cohort.classes)
    )
    max_difference = upper_limit - lower_limit
    bound_column_names = ["low", "high"]
    comparison_table[bound_column_names] = comparison_table[bound_column_names].clip(
        -max_difference, max_difference
    )
    _add_adjusted_p_values(comparison_table, evaluation, reference)
    comparison_table["n_folds"] = difference_table.notna().sum().to_numpy()
    better_model_mask = (comparison_table["difference"] > 0) ^ get_score(
        score_name
    ).lower_is_better
    comparison_table["better"] = _make_gain_verdicts(
        comparison_table["p_holm"], better_model_mask
    )
    return comparison_table


def _add_adjusted_p_values(
    comparison_table: pd.DataFrame, evaluation: Evaluation, reference_model_name: str
) -> None:
    """Add p_holm and n_comparisons to tests of the models against a reference.

    Models with the very same predictions share one comparison.
    """
    model_name_series = pd.Series([reference_model_name, *comparison_table["model"]])
    first_twin_series = model_name_series.replace(evaluation.twin_of_model)
    repeated_model_mask = first_twin_series.duplicated()[1:].to_numpy()
    counted_comparison_mask = ~repeated_model_mask & comparison_table["p_value"].notna()
    comparison_table["p_holm"] = adjust_p_values(
        comparison_table["p_value"].where(counted_comparison_mask)
    )
    holm_groups = comparison_table.groupby(first_twin_series[1:].to_numpy())["p_holm"]
    comparison_table["p_holm"] = holm_groups.transform("first").fillna(
        comparison_table["p_value"]
    )
    comparison_table["n_comparisons"] = counted_comparison_mask.sum()


def _pivot_score_table(evaluation: Evaluation, score_name: str) -> pd.DataFrame:
    """Return a score by fold (rows) and model; NaN for models with a failed fit."""
    score_table = evaluation.scores().pivot(
        index=["repeat", "fold"], columns="model", values=score_name
    )
    score_table[list(_find_failed_model_set(evaluation))] = np.nan
    return score_table


def _find_failed_model_set(evaluation: Evaluation) -> set[str]:
    """Return the models with a failed fit."""
    return {*evaluation.fits.loc[evaluation.fits["failed"] != "", "model"]}


def _compute_mean_training_and_test_sizes(
    evaluation: Evaluation,
) -> tuple[float, float]:
    """Return the mean number of people that a fold is trained and tested on."""
    fold_groups = evaluation.predictions.groupby(["model", "repeat", "fold"])
    n_test = fold_groups["participant"].nunique().mean()
    n_train_series = evaluation.fits.get("n_train_people", pd.Series(dtype=float))
    n_train = n_train_series.mean()
    if np.isnan(n_train):  # evaluations saved before that number was stored
        n_train = evaluation.cohort.n_participants - n_test
    return n_train, n_test


@threadpool_limits.wrap(limits=1)
def nested_model_table(
    evaluation: Evaluation, n_draws: int = 5000, random_state: int = 0
) -> pd.DataFrame:
    """Test averaging along the connectome by nested ridge regressions.

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
        With two or more of the models of `NESTED_RIDGES`: "ridge without
        connectome", "ridge with one scale" and "ridge with a scale per region".
    n_draws : int
        Random exchanges.
    random_state : int
        Seed.

    Returns
    -------
    DataFrame
        One row a step: below, above (models), score_below, score_above, difference
        (above minus below), low, high (95%, not corrected; both 0 where the two have
        the same predictions), p_value, p_holm, and adds:
        the gain of `GAIN_OF_RIDGE` where the model above is better and p_holm < 0.05,
        "no" where it is worse and p_holm < 0.05, else "unclear". Empty where the models
        were not run, or failed.
    """
    check_at_least("n_draws", n_draws, 1)
    accuracy_table = _make_accuracy_contribution_table(evaluation)
    ridge_names = [
        ridge_name for ridge_name in NESTED_RIDGES if ridge_name in accuracy_table
    ]
    difference_table = accuracy_table[ridge_names].diff(axis=1)
    exchange_test_by_model = _compute_exchange_test_by_column(
        difference_table[ridge_names[1:]], n_draws, random_state
    )
    nesting_step_records = []
    for simpler_name, richer_name in pairwise(ridge_names):
        simpler_contributions = accuracy_table[simpler_name]
        richer_contributions = accuracy_table[richer_name]
        exchange_test = exchange_test_by_model[richer_name]
        if evaluation.have_same_predictions(simpler_name, richer_name):
            exchange_test = SAME_PREDICTIONS
        nesting_step_records.append(
            {
                "below": simpler_name,
                "above": richer_name,
                "score_below": simpler_contributions.sum(),
                "score_above": richer_contributions.sum(),
                **exchange_test._asdict(),
            }
        )
    leading_column_names = [
        "below",
        "above",
        "score_below",
        "score_above",
        "difference",
    ]
    nesting_step_table = pd.DataFrame(
        nesting_step_records, columns=[*leading_column_names, "low", "high", "p_value"]
    )
    nesting_step_table["p_holm"] = adjust_p_values(nesting_step_table["p_value"])
    verdict_series = pd.Series(
        _make_gain_verdicts(
            nesting_step_table["p_holm"], nesting_step_table["difference"] > 0
        )
    )
    nesting_step_table["adds"] = verdict_series.mask(
        verdict_series == "yes", nesting_step_table["above"].map(GAIN_OF_RIDGE)
    )
    return nesting_step_table


class ExchangeTest(NamedTuple):
    """Difference of two balanced accuracies, its 95% interval, and p-value."""

    difference: float
    low: float
    high: float
    p_value: float


SAME_PREDICTIONS = ExchangeTest(difference=0.0, low=0.0, high=0.0, p_value=1.0)
"""Test of two models with the same predictions; an interval for two models that may
differ in other people does not apply."""


@threadpool_limits.wrap(limits=1)
def compare_by_person(
    evaluation: Evaluation,
    reference: str | None = None,
    n_draws: int = 5000,
    random_state: int = 0,
) -> pd.DataFrame:
    """Compare one model with all other models, over the people of all test scans.

    Score, interval and test are of one method, that of :func:`nested_model_table`:
    balanced accuracy over all out-of-fold predictions, exchange of the two models'
    predictions of a person, and intervals over people. They treat the fitted models as
    fixed; :func:`compare_models` instead tests differences over folds.

    Parameters
    ----------
    evaluation : Evaluation
        With two or more models.
    reference : str, optional
        The model that is compared with all others; by default the first.
    n_draws : int
        Random exchanges.
    random_state : int
        Seed.

    Returns
    -------
    DataFrame
        One row per other model, in order: model, reference, difference (reference minus
        model; above 0 the reference has the higher score), low, high (95%, not
        corrected; both 0 where the two models have the same predictions), p_value,
        p_holm (corrected for the number of comparisons; models with the same
        predictions in every fold count once), n_comparisons. A model with
        a failed fit has NaN.

    Raises
    ------
    ParameterError
        For an unknown model.
    """
    check_at_least("n_draws", n_draws, 1)
    reference = reference or evaluation.models[0]
    check_choice("reference", reference, evaluation.models)
    accuracy_table = _make_accuracy_contribution_table(evaluation)
    other_model_names = [
        other_name for other_name in evaluation.models if other_name != reference
    ]
    exchange_test_by_model = {}
    if reference in accuracy_table:
        difference_table = accuracy_table.rsub(accuracy_table[reference], axis=0)
        exchange_test_by_model = _compute_exchange_test_by_column(
            difference_table.drop(columns=reference), n_draws, random_state
        )
    for model_name in exchange_test_by_model:
        if evaluation.have_same_predictions(reference, model_name):
            exchange_test_by_model[model_name] = SAME_PREDICTIONS
    nan_test = ExchangeTest(np.nan, np.nan, np.nan, np.nan)
    comparison_table = pd.DataFrame(
        [
            exchange_test_by_model.get(model_name, nan_test)
            for model_name in other_model_names
        ],
        columns=ExchangeTest._fields,
    )
    comparison_table.insert(0, "model", other_model_names)
    comparison_table.insert(1, "reference", reference)
    _add_adjusted_p_values(comparison_table, evaluation, reference)
    return comparison_table


def added_value_table(
    evaluation: Evaluation, n_draws: int = 5000, random_state: int = 0
) -> pd.DataFrame:
    """Compare a model of covariates and brain with models of either alone.

    Parameters
    ----------
    evaluation : Evaluation
        With the models "covariates", "LSAP-R" and "LSAP-R with covariates", as
        :func:`brainlsap.run_study` runs them.
    n_draws, random_state
        As of :func:`compare_by_person`.

    Returns
    -------
    DataFrame
        As of :func:`compare_by_person`, with both as the reference: the row of
        "covariates" is the gain from brain data, and that of "LSAP-R" the gain from
        covariates.
        Empty where one of the models was not run.
    """
    if not {*ADDED_VALUE_MODELS} <= {*evaluation.models}:
        return pd.DataFrame()
    table_by_name = {
        table_name: source_table[source_table["model"].isin(ADDED_VALUE_MODELS)]
        for table_name, source_table in (
            ("predictions", evaluation.predictions),
            ("fits", evaluation.fits),
        )
    }
    reference_model_name = ADDED_VALUE_MODELS[-1]
    reduced_evaluation = replace(evaluation, **table_by_name)
    comparison_table = compare_by_person(
        reduced_evaluation, reference_model_name, n_draws, random_state
    )
    rank_series = comparison_table["model"].map(ADDED_VALUE_MODELS.index)
    return comparison_table.iloc[np.argsort(rank_series)].reset_index(drop=True)


def _compute_exchange_test_by_column(
    difference_table: pd.DataFrame, n_draws: int, random_state: int
) -> dict[str, ExchangeTest]:
    """Test differences of two balanced accuracies from what people add to them.

    `difference_table` has a row per person and a column per comparison. All
    comparisons have the same draws, so that a p-value does not depend on which other
    models were compared.
    """
    D = difference_table.to_numpy()
    n_people, n_comparisons = D.shape
    if not n_comparisons:
        return {}
    min_extreme_differences = np.abs(D.sum(axis=0)) - _SAME_SCORE
    rng = np.random.default_rng(random_state)
    exceedance_counts = np.zeros(n_comparisons)
    for draw_slice in _iter_draw_slices(n_draws, n_people):
        exchange_flags = rng.integers(
            2, size=(draw_slice.stop - draw_slice.start, n_people), dtype=np.int8
        )
        null_differences = np.abs((1.0 - 2.0 * exchange_flags) @ D)
        exceedance_counts += (null_differences >= min_extreme_differences).sum(axis=0)
    p_values = (1 + exceedance_counts) / (1 + n_draws)
    # Bonett and Price: one person more for each side.
    pseudo_differences = np.repeat(
        [[1 / n_people], [-1 / n_people]], n_comparisons, axis=1
    )
    padded_differences = np.vstack([D, pseudo_differences]) * n_people / (n_people + 2)
    standard_errors = np.sqrt((n_people + 2) * padded_differences.var(axis=0, ddof=1))
    lower_bounds, upper_bounds = student.interval(
        0.95, n_people - 1, padded_differences.sum(axis=0), standard_errors
    )
    return {
        comparison_name: ExchangeTest(*map(float, exchange_test_values))
        for comparison_name, *exchange_test_values in zip(
            difference_table,
            D.sum(axis=0),
            lower_bounds.clip(-1, 1),
            upper_bounds.clip(-1, 1),
            p_values,
            strict=True,
        )
    }


def _make_accuracy_contribution_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return the contribution of each person (row) to each model's balanced accuracy.

    Models with a failed fit have no column.
    """
    n_classes = len(evaluation.cohort.classes)
    failed_prediction_mask = evaluation.predictions["model"].isin(
        _find_failed_model_set(evaluation)
    )
    scored_prediction_table = evaluation.predictions[~failed_prediction_mask]
    scan_weights = 1 / scored_prediction_table.groupby(["model", "truth"])[
        "scan"
    ].transform("size")
    contribution_series = (
        scan_weights
        / n_classes
        * (scored_prediction_table["truth"] == scored_prediction_table["predicted"])
    )
    return (
        contribution_series.groupby(
            [scored_prediction_table["participant"], scored_prediction_table["model"]]
        )
        .sum()
        .unstack()
    )


def _make_gain_verdicts(
    p_values: pd.Series, better_model_mask: pd.Series
) -> np.ndarray:
    return np.where(
        p_values < 0.05, np.where(better_model_mask, "yes", "no"), "unclear"
    )


@threadpool_limits.wrap(limits=1)
def bootstrap_score_table(
    evaluation: Evaluation, model: str, n_draws: int = 1000, random_state: int = 0
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
    the docstring of this module. Only a model that predicts one class for
    everybody, or gives everybody one probability, has an interval of width 0.

    Parameters
    ----------
    evaluation : Evaluation
        The evaluation.
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
    coded_predictions, person_codes = _select_predictions_and_person_codes(
        evaluation, model
    )
    draws_by_score: dict[str, np.ndarray] = dict.fromkeys(SCORES, np.full(2, np.nan))
    if coded_predictions is not None:
        draws_by_score_blocks = [
            weighted_scores_by_name(coded_predictions, row_weights)
            for row_weights in _iter_bootstrap_weights(
                person_codes, n_draws, random_state
            )
        ]
        draws_by_score = {
            score_name: np.concatenate(
                [
                    block_draws_by_score[score_name]
                    for block_draws_by_score in draws_by_score_blocks
                ]
            )
            for score_name in SCORES
        }
    n_people, n_classes = len(np.unique(person_codes)), len(evaluation.cohort.classes)
    score_records = []
    for score_name, score_entry in SCORES.items():
        score_limits = score_entry.lowest_and_highest(n_classes)
        estimate_and_bounds = _compute_estimate_and_interval(
            draws_by_score[score_name], n_people, score_entry.interval, score_limits
        )
        score_records.append((score_name, *estimate_and_bounds))
    score_table = pd.DataFrame(
        score_records, columns=["score", "estimate", "low", "high"]
    )
    zero_width_row_mask = (score_table["high"] - score_table["low"]) < _SAME_SCORE
    if coded_predictions is None or not zero_width_row_mask.any():
        return score_table
    bounds_by_score = compute_bounds_by_count_score(coded_predictions, person_codes)
    n_repeats = int(evaluation.settings.get("n_repeats", 1))
    has_one_predicted_class = len(np.unique(coded_predictions.predicted_codes)) == 1
    for row_index in np.flatnonzero(zero_width_row_mask):
        score_name = score_table.loc[row_index, "score"]
        score_estimate = score_table.loc[row_index, "estimate"]
        # Predictions that are constant have an interval of width 0; that of any
        # other score without exact bounds is not known.
        default_bound = score_estimate if has_one_predicted_class else np.nan
        lower_bound, upper_bound = bounds_by_score.get(score_name, (default_bound,) * 2)
        if SCORES[score_name].interval == "pairs":
            lower_bound, upper_bound = compute_auc_bounds(
                coded_predictions, person_codes, score_estimate, n_repeats
            )
        score_table.loc[row_index, ["low", "high"]] = (
            min(lower_bound, score_estimate),
            max(upper_bound, score_estimate),
        )
    return score_table


def chance_p(
    evaluation: Evaluation,
    model: str,
    n_permutations: int = 2000,
    random_state: int = 0,
) -> float:
    """Return the p-value of a model's balanced accuracy against chance.

    Labels are permuted among people with the same number of scans, all visits together.
    The out-of-fold predictions are kept, and no model is refitted. The observed labels
    count as one of the draws.

    Parameters
    ----------
    evaluation, model, random_state
        As of :func:`bootstrap_score_table`.
    n_permutations : int
        Number of permutations.

    Returns
    -------
    float
        p, one-sided; NaN for a model without predictions.
    """
    p_value_series = chance_p_values(evaluation, [model], n_permutations, random_state)
    return float(p_value_series[model])


def chance_p_values(
    evaluation: Evaluation,
    models: Sequence[str],
    n_permutations: int = 2000,
    random_state: int = 0,
) -> pd.Series:
    """Return :func:`chance_p` of several models, by model.

    Models with predictions of the same scans share the permutations.
    """
    p_value_series = pd.Series(np.nan, index=list(models))
    model_names_by_truth_key: dict[tuple[bytes, bytes], list[str]] = {}
    predictions_by_model = {}
    for model_name in models:
        coded_predictions, person_codes = _select_predictions_and_person_codes(
            evaluation, model_name
        )
        if coded_predictions is None:
            continue
        predictions_by_model[model_name] = coded_predictions
        truth_key = person_codes.tobytes(), coded_predictions.actual_codes.tobytes()
        model_names_by_truth_key.setdefault(truth_key, []).append(model_name)
    for (person_code_bytes, _), model_names in model_names_by_truth_key.items():
        p_value_series[model_names] = _compute_permutation_p_values(
            [predictions_by_model[model_name] for model_name in model_names],
            np.frombuffer(person_code_bytes, dtype=np.intp),
            n_permutations,
            np.random.default_rng(random_state),
        )
    return p_value_series


def _compute_permutation_p_values(
    model_predictions: Sequence[Predictions],
    person_codes: np.ndarray,
    n_permutations: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return p of every model; their predictions are of the same scans."""
    actual_scan_codes = model_predictions[0].actual_codes
    n_classes = model_predictions[0].n_classes
    # The sum over classes of hits by class size orders draws as balanced accuracy does.
    class_weights = 1 / np.bincount(actual_scan_codes, minlength=n_classes).clip(1)
    predicted_codes = np.stack(
        [coded_predictions.predicted_codes for coded_predictions in model_predictions]
    )

    def weigh_hits(label_code_matrix: np.ndarray) -> np.ndarray:
        """Return the weighted hits of every model for each row of labels."""
        # Count hits exactly, so that draws with the same hits have the same score.
        class_hit_matrices = [
            (label_code_matrix == class_code).astype(np.float32)
            @ (predicted_codes == class_code).T.astype(np.float32)
            for class_code in range(n_classes)
        ]
        return np.tensordot(class_weights, np.array(class_hit_matrices, dtype=float), 1)

    min_extreme_hits = weigh_hits(actual_scan_codes[None]) - _SAME_SCORE
    index_blocks = list_person_blocks(person_codes)
    exceedance_counts = np.ones(len(model_predictions))
    for draw_slice in _iter_draw_slices(n_permutations, len(actual_scan_codes)):
        permuted_row_orders = [
            permute_row_indices(index_blocks, rng)
            for _ in range(draw_slice.stop - draw_slice.start)
        ]
        permuted_scores = weigh_hits(actual_scan_codes[np.array(permuted_row_orders)])
        exceedance_counts += (permuted_scores >= min_extreme_hits).sum(axis=0)
    return exceedance_counts / (n_permutations + 1)


def class_table(
    evaluation: Evaluation, model: str, n_draws: int = 2000, random_state: int = 0
) -> pd.DataFrame:
    """Return sensitivity, specificity, predictive values and AUC of every class.

    Parameters
    ----------
    evaluation, model, n_draws, random_state
        As of :func:`bootstrap_score_table`.

    Returns
    -------
    DataFrame
        class, people, scans; then sensitivity, specificity, ppv and npv (positive and
        negative predictive value) and auc (of the class against the rest, mean over
        folds; NaN without probabilities or decision values), each with `_low` and
        `_high` (95%).
    """
    rate_table = evaluation.cohort.class_counts().rename(
        columns={"participants": "people"}
    )
    coded_predictions, person_codes = _select_predictions_and_person_codes(
        evaluation, model
    )
    if coded_predictions is None:
        return rate_table
    confusion_count_blocks, auc_blocks = [], []
    for row_weights in _iter_bootstrap_weights(person_codes, n_draws, random_state):
        confusion_count_blocks.append(
            weighted_confusion_counts(coded_predictions, row_weights)
        )
        if coded_predictions.ranking_scores is not None:
            auc_blocks.append(
                fold_class_aucs(
                    coded_predictions, coded_predictions.ranking_scores, row_weights
                )
            )
    confusion_counts = np.concatenate(confusion_count_blocks)
    draw_prediction_counts = confusion_counts.sum(axis=(1, 2))[:, None]
    true_class_counts, predicted_class_counts = (
        confusion_counts.sum(axis=2),
        confusion_counts.sum(axis=1),
    )
    correct_class_counts = np.einsum("bii->bi", confusion_counts)
    other_class_counts = draw_prediction_counts - true_class_counts
    true_negative_counts = (
        other_class_counts - predicted_class_counts + correct_class_counts
    )
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN where a class is empty
        sensitivity_draws = correct_class_counts / true_class_counts
        specificity_draws = true_negative_counts / other_class_counts
        ppv_draws = correct_class_counts / predicted_class_counts
        npv_draws = true_negative_counts / (
            draw_prediction_counts - predicted_class_counts
        )
    auc_draws = np.full(sensitivity_draws.shape, np.nan)
    if auc_blocks:
        auc_draws = np.concatenate(auc_blocks)
    n_repeats = int(evaluation.settings.get("n_repeats", 1))
    for class_code in range(len(rate_table)):
        actual_class_row_mask = coded_predictions.actual_codes == class_code
        predicted_class_row_mask = coded_predictions.predicted_codes == class_code
        draws_and_rows_by_rate = {
            "sensitivity": (sensitivity_draws, actual_class_row_mask),
            "specificity": (specificity_draws, ~actual_class_row_mask),
            "ppv": (ppv_draws, predicted_class_row_mask),
            "npv": (npv_draws, ~predicted_class_row_mask),
        }
        for rate_name, (
            rate_draw_matrix,
            counted_row_mask,
        ) in draws_and_rows_by_rate.items():
            n_people = len(set(person_codes[counted_row_mask]))
            estimate_and_bounds = _compute_estimate_and_interval(
                rate_draw_matrix[:, class_code], n_people, "proportion", (0.0, 1.0)
            )
            rate_table.loc[
                class_code, [rate_name, f"{rate_name}_low", f"{rate_name}_high"]
            ] = estimate_and_bounds
        auc, auc_low, auc_high = _compute_estimate_and_interval(
            auc_draws[:, class_code], len(set(person_codes)), "pairs", (0.0, 1.0)
        )
        if auc_high - auc_low < _SAME_SCORE:
            auc_low, auc_high = compute_auc_bounds(
                coded_predictions,
                person_codes,
                auc,
                n_repeats,
                class_subset_codes=[class_code],
            )
        rate_table.loc[class_code, ["auc", "auc_low", "auc_high"]] = (
            auc,
            auc_low,
            auc_high,
        )
    return rate_table


def _select_predictions_and_person_codes(
    evaluation: Evaluation, model_name: str
) -> tuple[Predictions | None, np.ndarray]:
    """Return a model's predictions, None where a fit failed, and the people's codes."""
    check_choice("model", model_name, evaluation.models)
    prediction_table = evaluation.predictions[
        evaluation.predictions["model"] == model_name
    ]
    person_codes = pd.factorize(prediction_table["participant"], sort=True)[0]
    if prediction_table.empty or model_name in _find_failed_model_set(evaluation):
        return None, person_codes
    return evaluation.as_predictions(prediction_table), person_codes


def _iter_bootstrap_weights(
    person_codes: np.ndarray, n_draws: int, random_state: int
) -> Iterator[np.ndarray]:
    """Yield the count of each prediction: once in row 0, then in every draw.

    A few draws at a time, so that memory does not grow with people times draws.
    """
    check_at_least("n_draws", n_draws, 1)
    n_people = int(person_codes.max()) + 1
    person_draw_counts = _draw_bootstrap_counts(n_people, n_draws, random_state)
    for draw_slice in _iter_draw_slices(len(person_draw_counts), len(person_codes)):
        yield person_draw_counts[draw_slice][:, person_codes].astype(float)


def _iter_draw_slices(n_draws: int, n_values_per_draw: int) -> Iterator[slice]:
    """Yield rows of draws of so many values that are handled at once."""
    n_draws_at_once = max(1, _VALUES_AT_ONCE // n_values_per_draw)
    for start_index in range(0, n_draws, n_draws_at_once):
        yield slice(start_index, min(start_index + n_draws_at_once, n_draws))


@lru_cache(maxsize=1)
def _draw_bootstrap_counts(
    n_people: int, n_draws: int, random_state: int
) -> np.ndarray:
    """Return the draws of each person, (1 + n_draws, n_people), one in row 0.

    The draws are the same for all models of a study.
    """
    rng = np.random.default_rng(random_state)
    person_draw_counts = np.ones((1 + n_draws, n_people), dtype=np.int16)
    for draw_slice in _iter_draw_slices(n_draws, n_people):
        block_draw_counts = rng.multinomial(
            n_people,
            np.full(n_people, 1 / n_people),
            draw_slice.stop - draw_slice.start,
        )
        person_draw_counts[1:][draw_slice] = block_draw_counts
    person_draw_counts.flags.writeable = False
    return person_draw_counts


def _compute_estimate_and_interval(
    estimate_and_draws: np.ndarray,
    n_people: int,
    interval_kind: str,
    score_limits: tuple[float, float],
) -> tuple[float, float, float]:
    """Return an estimate, the first value, and an interval of the draws behind it.

    `interval_kind` is a kind of interval of :class:`Score`, `score_limits` the range of
    the score. The interval holds the estimate; draws that are NaN do not count.
    """
    lower_limit, upper_limit = score_limits
    estimate, score_draws = float(estimate_and_draws[0]), estimate_and_draws[1:]
    score_draws = score_draws[np.isfinite(score_draws)]
    if not len(score_draws) or not np.isfinite(estimate):
        return estimate, np.nan, np.nan
    if interval_kind == "proportion" and estimate in score_limits:
        n_hits = n_people if estimate == upper_limit else 0
        lower_bound, upper_bound = wilson_interval(n_hits, n_people)
        score_range_width = upper_limit - lower_limit
        return (
            estimate,
            lower_limit + lower_bound * score_range_width,
            lower_limit + upper_bound * score_range_width,
        )
    if interval_kind == "bias corrected":
        bootstrap_bias = score_draws.mean() - estimate
        score_draws = np.maximum(score_draws - bootstrap_bias, lower_limit)
    lower_bound, upper_bound = np.quantile(score_draws, [0.025, 0.975])
    return (
        estimate,
        min(float(lower_bound), estimate),
        max(float(upper_bound), estimate),
    )


def wilson_interval(n_hits: float, n: int) -> tuple[float, float]:
    """Return Wilson's 95% interval of a proportion: 0 of 14 gives 0 to 0.22.

    The number of hits can be a fraction, if people with several scans count once.
    """
    proportion, z_squared = n_hits / n, norm.ppf(0.975) ** 2
    interval_centre = (proportion + z_squared / (2 * n)) / (1 + z_squared / n)
    half_width = np.sqrt(
        z_squared * (proportion * (1 - proportion) + z_squared / (4 * n)) / n
    ) / (1 + z_squared / n)
    return max(0.0, float(interval_centre - half_width)), min(
        1.0, float(interval_centre + half_width)
    )


def compute_bounds_by_count_score(
    coded_predictions: Predictions, person_codes: np.ndarray
) -> dict[str, tuple[float, float]]:
    """Return exact bounds of the scores that confusion counts determine.

    Parameters
    ----------
    coded_predictions : Predictions
        Of one model.
    person_codes : int array of shape (n_rows,)
        The person of each prediction; a person counts once in each class.

    Returns
    -------
    dict of str to (low, high)
        By score. Empty if predictions differ within a class, and if one class is
        predicted for everybody: balanced accuracy is then 1 / n_classes in every draw.
    """
    confusion_counts = weighted_confusion_counts(
        coded_predictions, np.ones((1, len(person_codes)))
    )[0]
    n_classes = len(confusion_counts)
    class_prediction_counts = confusion_counts.sum(axis=1)
    present_class_codes = np.flatnonzero(class_prediction_counts)
    class_prediction_counts = class_prediction_counts[present_class_codes]
    uniform_class_mask = (
        confusion_counts.max(axis=1)[present_class_codes] == class_prediction_counts
    )
    has_one_predicted_class = (
        np.count_nonzero(confusion_counts.sum(axis=0)) == 1
        and len(present_class_codes) > 1
    )
    if n_classes < 2 or not uniform_class_mask.all() or has_one_predicted_class:
        return {}
    predicted_codes = confusion_counts.argmax(axis=1)[present_class_codes]
    class_people_counts = [
        len(set(person_codes[coded_predictions.actual_codes == class_code]))
        for class_code in present_class_codes
    ]
    error_shares = _compute_error_divisions(np.array(class_people_counts, dtype=float))
    error_rates = 1 - TAIL_PROBABILITY ** (error_shares / class_people_counts)
    confusion_count_blocks = []
    for error_target_codes in _list_error_target_codes(predicted_codes, n_classes):
        division_confusion_counts = np.zeros((len(error_shares), n_classes, n_classes))
        division_confusion_counts[:, present_class_codes, predicted_codes] = (
            1 - error_rates
        ) * class_prediction_counts
        division_confusion_counts[:, present_class_codes, error_target_codes] = (
            error_rates * class_prediction_counts
        )
        confusion_count_blocks.append(division_confusion_counts)
    class_probabilities = coded_predictions.class_probabilities
    has_certain_probabilities = class_probabilities is not None and bool(
        np.isin(class_probabilities, (0, 1)).all()
    )
    score_values_by_score = count_scores_by_name(
        np.concatenate(confusion_count_blocks),
        is_ordered=coded_predictions.is_ordered,
        is_certain=has_certain_probabilities,
    )
    return {
        score_name: (float(np.nanmin(score_values)), float(np.nanmax(score_values)))
        for score_name, score_values in score_values_by_score.items()
        if np.isfinite(score_values).any()
    }


def compute_auc_bounds(
    coded_predictions: Predictions,
    person_codes: np.ndarray,
    estimate: float,
    n_repeats: int,
    class_subset_codes: Sequence[int] | None = None,
) -> tuple[float, float]:
    r"""Return exact bounds of an AUC that is 0 or 1 in every draw.

    Pair people of a class with people of the other classes, each person once. The m
    pairs are independent, and each is ordered correctly with probability A, the AUC.
    All people are separated in at most :math:`A^m` of studies, so that
    :math:`A \ge 0.025^{1/m}`; m is the number of people on the smaller side, summed
    over folds.

    Parameters
    ----------
    predictions, person_codes
        As of :func:`compute_bounds_by_count_score`.
    estimate : float
        The AUC that was observed.
    n_repeats : int
        Number of repeats: the number of times that each person was tested.
    class_subset_codes : sequence of int, optional
        Codes of the classes that the AUC is the mean of; by default all that occur.

    Returns
    -------
    (low, high)
        The estimate twice if in each fold a model gives everybody the same values.
    """
    fold_row_masks = [
        coded_predictions.fold_numbers == fold_number
        for fold_number in np.unique(coded_predictions.fold_numbers)
    ]
    ranking_scores = coded_predictions.ranking_scores
    if ranking_scores is None or not any(
        np.ptp(ranking_scores[fold_row_mask], axis=0).any()
        for fold_row_mask in fold_row_masks
    ):
        return estimate, estimate
    class_probability_factors = []
    class_codes = (
        np.unique(coded_predictions.actual_codes)
        if class_subset_codes is None
        else class_subset_codes
    )
    for class_code in class_codes:
        n_pairs = 0
        for fold_row_mask in fold_row_masks:
            class_row_mask = coded_predictions.actual_codes[fold_row_mask] == class_code
            fold_person_codes = person_codes[fold_row_mask]
            n_class_people = len(set(fold_person_codes[class_row_mask]))
            n_other_people = len(set(fold_person_codes[~class_row_mask]))
            n_pairs += min(n_class_people, n_other_people)
        class_probability_factors.append(
            TAIL_PROBABILITY ** (1 / max(n_pairs / n_repeats, 1))
        )
    mean_probability_factor = float(np.mean(class_probability_factors))
    return estimate * mean_probability_factor, 1 - (
        1 - estimate
    ) * mean_probability_factor


def _compute_error_divisions(class_people_counts: np.ndarray) -> np.ndarray:
    """Return divisions of the errors among classes, (n_divisions, n_classes).

    None, in proportion to people, equally, all in one class, and at random, also with
    fewer errors than the bound allows.
    """
    n_classes = len(class_people_counts)
    rng = np.random.default_rng(_BOUND_SEED)
    random_shares = rng.dirichlet(np.ones(n_classes), _N_RANDOM_SHARES)
    sparse_shares = rng.dirichlet(np.full(n_classes, 0.3), _N_RANDOM_SHARES)
    smaller_shares = random_shares * rng.random((_N_RANDOM_SHARES, 1))
    return np.vstack(
        [
            np.zeros(n_classes),
            class_people_counts / class_people_counts.sum(),
            np.ones(n_classes) / n_classes,
            np.eye(n_classes),
            random_shares,
            sparse_shares,
            smaller_shares,
        ]
    )


def _list_error_target_codes(
    predicted_codes: np.ndarray, n_classes: int
) -> list[np.ndarray]:
    """Return assignments of a target class to the errors of each class, (n_present,).

    `predicted_codes` are the codes of the class predicted for each class. Errors go
    to the stage farthest from it, to the nearest, all to one class, or to classes at
    random.
    """
    rng = np.random.default_rng(_BOUND_SEED)
    error_class_code_arrays = [
        np.delete(np.arange(n_classes), predicted_code)
        for predicted_code in predicted_codes
    ]
    farthest_codes = []
    nearest_codes = []
    for error_class_codes, predicted_code in zip(
        error_class_code_arrays, predicted_codes, strict=True
    ):
        class_distances = np.abs(error_class_codes - predicted_code)
        farthest_codes.append(error_class_codes[class_distances.argmax()])
        nearest_codes.append(error_class_codes[class_distances.argmin()])
    target_code_arrays = [np.array(farthest_codes), np.array(nearest_codes)]
    for predicted_code in range(n_classes):
        target_code_arrays.append(
            np.where(
                predicted_codes == predicted_code,
                target_code_arrays[0],
                predicted_code,
            )
        )
    n_random_targets = _N_RANDOM_TARGETS if n_classes > 2 else 0
    for _ in range(n_random_targets):
        random_target_codes = [
            rng.choice(error_class_codes)
            for error_class_codes in error_class_code_arrays
        ]
        target_code_arrays.append(np.array(random_target_codes))
    return [*np.unique(target_code_arrays, axis=0)]


def calibration_table(evaluation: Evaluation, model: str | None = None) -> pd.DataFrame:
    r"""Return the agreement of the probabilities of every class with its frequency.

    With :math:`\ell` the log-odds of the predicted probability, the slope b is that of
    :math:`\mathrm{logit}\,P = a + b\ell`, and the intercept a that of
    :math:`\mathrm{logit}\,P = a + \ell` (Van Calster et al. 2019, BMC Medicine 17:230).
    Calibrated probabilities have slope 1 and intercept 0. A slope below 1 means that
    probabilities are too extreme; an intercept above 0 that they are too small.

    Parameters
    ----------
    evaluation : Evaluation
        With probabilities.
    model : str, optional
        By default the first.

    Returns
    -------
    DataFrame
        class, people, mean_probability, frequency (over people), slope, slope_low,
        slope_high, intercept, intercept_low, intercept_high, p_slope, p_intercept.
        Every person counts once; 95 % intervals are by robust standard errors over
        people. The p-values are of score tests of slope 1 and intercept 0, compared
        with classes that are drawn from the probabilities, and corrected for all slopes
        and intercepts by the largest statistic of each draw. NaN where a class
        has no people, or is separated from the rest. No rows without probabilities.
    """
    model = model or evaluation.models[0]
    prediction_table = evaluation.predictions[evaluation.predictions["model"] == model]
    probability_column_names = [
        f"p_{class_label}" for class_label in evaluation.cohort.classes
    ]
    table_records = []
    if not prediction_table[probability_column_names].isna().any(axis=None):
        person_codes = pd.factorize(prediction_table["participant"])[0]
        row_weights = 1 / np.bincount(person_codes)[person_codes]
        for class_name, probability_column_name in zip(
            evaluation.cohort.classes, probability_column_names, strict=True
        ):
            class_probabilities = prediction_table[probability_column_name].to_numpy(
                float
            )
            class_row_mask = (prediction_table["truth"] == class_name).to_numpy()
            table_records.append(
                {
                    "class": class_name,
                    "people": int(
                        prediction_table["participant"][class_row_mask].nunique()
                    ),
                    "mean_probability": float(
                        np.average(class_probabilities, weights=row_weights)
                    ),
                    "frequency": float(np.average(class_row_mask, weights=row_weights)),
                    **_make_calibration_record(
                        class_probabilities, class_row_mask, person_codes, row_weights
                    ),
                }
            )
    calibration_records = pd.DataFrame(table_records)
    if calibration_records.empty:
        return calibration_records
    p_values = _compute_calibration_p_values(
        prediction_table[probability_column_names].to_numpy(float),
        pd.Index(evaluation.cohort.classes).get_indexer(prediction_table["truth"]),
        person_codes,
        calibration_records[["slope", "intercept"]].notna().to_numpy(),
    )
    return calibration_records.assign(
        p_slope=p_values[:, 0], p_intercept=p_values[:, 1]
    )


def _compute_calibration_p_values(
    P: np.ndarray,
    y: np.ndarray,
    person_codes: np.ndarray,
    tested_parameter_mask: np.ndarray,
) -> np.ndarray:
    """Return family-wise p-values of slope and intercept, shape (n_classes, 2).

    The scores of both at slope 1 and intercept 0 are sums over people. The class of a
    person is drawn from the mean probabilities of the person's scans. Unlike a Wald
    test, this holds its level in small classes.
    """
    row_weights = 1 / np.bincount(person_codes)[person_codes]
    P_clipped = P.clip(_SMALLEST_PROBABILITY, 1 - _SMALLEST_PROBABILITY)
    log_odds = np.log(P_clipped) - np.log1p(-P_clipped)
    variances = row_weights[:, None] * P_clipped * (1 - P_clipped)
    # The slope is tested beyond the intercept.
    centered_log_odds = log_odds - (variances * log_odds).sum(0) / variances.sum(0)
    score_factors = np.stack([centered_log_odds, np.ones_like(P)], axis=2)
    score_factors *= row_weights[:, None, None]
    n_people = person_codes.max() + 1
    person_factors = np.zeros((n_people, *score_factors.shape[1:]))
    np.add.at(person_factors, person_codes, score_factors)
    person_probabilities = np.zeros((n_people, P.shape[1]))
    np.add.at(person_probabilities, person_codes, row_weights[:, None] * P)
    expected_scores = np.einsum("ik,ikj->kj", person_probabilities, person_factors)
    score_sds = np.sqrt(
        np.einsum(
            "ik,ikj->kj",
            person_probabilities * (1 - person_probabilities),
            person_factors**2,
        )
    )
    actual_class_mask = y[:, None] == np.arange(P.shape[1])
    scores = np.einsum("ik,ikj->kj", actual_class_mask, score_factors)
    tested_parameter_mask = tested_parameter_mask & (score_sds > 0)
    z = np.divide(
        abs(scores - expected_scores),
        score_sds,
        out=np.zeros_like(scores),
        where=tested_parameter_mask,
    )
    rng = np.random.default_rng(0)
    thresholds = person_probabilities.cumsum(axis=1)[:, :-1]
    n_larger = np.ones_like(z)
    for _ in range(N_CALIBRATION_DRAWS):
        drawn_codes = (rng.random((n_people, 1)) > thresholds).sum(axis=1)
        drawn_scores = np.zeros_like(scores)
        np.add.at(
            drawn_scores, drawn_codes, person_factors[np.arange(n_people), drawn_codes]
        )
        drawn_z = np.divide(
            abs(drawn_scores - expected_scores),
            score_sds,
            out=np.zeros_like(scores),
            where=tested_parameter_mask,
        )
        n_larger += drawn_z.max() >= z
    return np.where(tested_parameter_mask, n_larger / (N_CALIBRATION_DRAWS + 1), np.nan)


def compute_difference_and_interval(
    first_interval: Sequence[float], second_interval: Sequence[float]
) -> tuple[float, float, float]:
    """Return the difference of two scores of different people, with its interval.

    The interval follows from the two intervals (method of variance estimates recovery,
    Zou and Donner 2008, Statistics in Medicine 27:1693).

    Parameters
    ----------
    first_interval, second_interval : sequence of float, of length 3
        Estimate, lower and upper bound.

    Returns
    -------
    difference, low, high : float
        First minus second; the level is that of the two intervals.
    """
    first_score, first_low, first_high = first_interval
    second_score, second_low, second_high = second_interval
    difference = first_score - second_score
    return (
        difference,
        difference - np.hypot(first_score - first_low, second_high - second_score),
        difference + np.hypot(first_high - first_score, second_score - second_low),
    )


def _make_calibration_record(
    class_probabilities: np.ndarray,
    class_row_mask: np.ndarray,
    person_codes: np.ndarray,
    w: np.ndarray,
) -> dict[str, float]:
    """Return slope and intercept of one class, with 95 % intervals."""
    clipped_probabilities = class_probabilities.clip(
        _SMALLEST_PROBABILITY, 1 - _SMALLEST_PROBABILITY
    )
    log_odds = np.log(clipped_probabilities) - np.log1p(-clipped_probabilities)
    unit_column = np.ones_like(log_odds)
    zero_offsets = np.zeros_like(log_odds)
    y = class_row_mask.astype(float)
    line_coefficients, line_se = _fit_logistic_coefs_and_errors(
        np.column_stack([unit_column, log_odds]), zero_offsets, y, person_codes, w
    )
    level_coefficients, level_se = _fit_logistic_coefs_and_errors(
        unit_column[:, None], log_odds, y, person_codes, w
    )
    slope, slope_se = line_coefficients[1], line_se[1]
    return {
        "slope": slope,
        "slope_low": slope - NORMAL_QUANTILE * slope_se,
        "slope_high": slope + NORMAL_QUANTILE * slope_se,
        "intercept": level_coefficients[0],
        "intercept_low": level_coefficients[0] - NORMAL_QUANTILE * level_se[0],
        "intercept_high": level_coefficients[0] + NORMAL_QUANTILE * level_se[0],
    }


def _fit_logistic_coefs_and_errors(
    X: np.ndarray,
    log_odds_offset: np.ndarray,
    y: np.ndarray,
    person_codes: np.ndarray,
    w: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients and robust standard errors of a weighted logistic fit.

    Newton's method; NaN where there is no finite maximum.
    """
    nan_coefficients = np.full(X.shape[1], np.nan)
    if y.min() == y.max() or np.linalg.matrix_rank(X) < X.shape[1]:
        return nan_coefficients, nan_coefficients
    coefficients = np.zeros(X.shape[1])
    newton_step = np.full(X.shape[1], np.inf)
    information_matrix = np.eye(X.shape[1])
    mu = np.full(len(y), 0.5)
    for _ in range(_N_NEWTON_STEPS):
        mu = 1 / (1 + np.exp(-(X @ coefficients + log_odds_offset).clip(-500, 500)))
        information_matrix = (X * (w * mu * (1 - mu))[:, None]).T @ X
        if np.linalg.cond(information_matrix) > 1e12:
            return nan_coefficients, nan_coefficients
        newton_step = np.linalg.solve(information_matrix, X.T @ (w * (y - mu)))
        coefficients = coefficients + newton_step.clip(-2, 2)
        if np.abs(newton_step).max() < 1e-10:
            break
    if np.abs(newton_step).max() > 1e-6 or np.abs(coefficients).max() > _MAX_SLOPE:
        return nan_coefficients, nan_coefficients
    person_score_sums = np.zeros((person_codes.max() + 1, X.shape[1]))
    np.add.at(person_score_sums, person_codes, X * (w * (y - mu))[:, None])
    inverse_information = np.linalg.inv(information_matrix)
    covariance_matrix = (
        inverse_information
        @ (person_score_sums.T @ person_score_sums)
        @ inverse_information
    )
    return coefficients, np.sqrt(np.diag(covariance_matrix))
