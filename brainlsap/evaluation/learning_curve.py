r"""Would more people help? The score of models by the number of people in training.

Each share of the training people is drawn several times. An interval over test people
takes the fits as they are, and which people were drawn for training changes them. With
:math:`s^2` the variance of the estimate between R draws, :math:`s^2/R` is added to the
variance over test people. How the training people of the study came about needs no
further term to first order: a fit to all of them, and the mean of fits to subsets of
them, deviate alike. Error rates in simulated cohorts are in
`benchmarks/results/learning_curve.md`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.data.cohort import Cohort, check_cohort_given
from brainlsap.evaluation.comparison import NORMAL_QUANTILE, bootstrap_score_table
from brainlsap.evaluation.confounds import Deconfounder
from brainlsap.evaluation.cross_validation import (
    cross_validate,
    cross_validate_again,
)
from brainlsap.evaluation.results import Evaluation
from brainlsap.evaluation.scores import balanced_accuracy, weighted_confusion_counts
from brainlsap.evaluation.splits import Split
from brainlsap.exceptions import ParameterError

SHARES = (0.25, 0.5, 0.75, 1.0)
"""Default shares of the training people of each fold."""

FIRST_SHARE_OF_SLOPE = 0.5
"""Smallest share from which the slope, the gain of the last doubling, is computed."""

MIN_TRAINING_PEOPLE = 2
"""Smallest number of training people of a class, if the class has so many people."""

N_SUBSETS = 4
"""Default number of random subsets of each share."""

SMALLEST_GAIN = 0.02
"""Smallest relevant gain in balanced accuracy when training people are doubled."""

YES, NO, UNCLEAR = "yes", "no", "unclear"


def learning_curve(
    cohort: Cohort,
    models: Mapping[str, Any],
    splits: Sequence[Split],
    *,
    shares: Sequence[float] = SHARES,
    n_subsets: int = N_SUBSETS,
    random_state: int = 0,
    harmonize: str | None = None,
    regress_out: str | Sequence[str] = (),
    reference_class: str | None = None,
    n_draws: int = 1000,
    n_jobs: int | None = None,
    verbose: bool = False,
    memory: str | Path | None = None,
) -> pd.DataFrame:
    r"""Score models that are fitted to a share of the training people of each fold.

    Test people are the same at every share. In each fold, the people of a class are
    put in a random order, and a share takes the first of them, so that smaller sets are
    nested in larger ones. This is repeated with other orders, every second of which is
    the one before in reverse, and scores are means over these subsets. The slope is
    that of least squares of the balanced accuracy on :math:`\log_2` of the number of
    people, over shares from 0.5 on: the gain by a doubling. Its interval draws test
    people with replacement, the same everywhere, and adds the variance between subsets.

    Parameters
    ----------
    cohort : Cohort
        The scans.
    models : mapping of str to classifier or (classifier, role)
        As for :func:`brainlsap.cross_validate`.
    splits : sequence of (train, test)
        Row indices, as :func:`brainlsap.evaluation.make_splits` returns them.
    shares : sequence of float
        Shares of the training people, ascending, the last 1.
    n_subsets : int
        Random subsets of each share below 1, at least 2.
    random_state : int
        Seed of the order of people, of models and of the bootstrap.
    harmonize, regress_out, reference_class, n_jobs, verbose, memory
        As for :func:`brainlsap.cross_validate`; finished fits are kept in `memory`.
    n_draws : int
        Bootstrap draws.

    Returns
    -------
    DataFrame
        One row per model and share: model, share, n_train_people (mean over folds and
        subsets), estimate, low, high (balanced accuracy of all test scans, 95% interval
        over test people and subsets), slope, slope_low, slope_high (95%), and answer:
        "yes" where the intervals of the slope and of the last score are above 0 and
        chance, "no" where that of the slope is below 0.02, else "unclear".
        Shares at which harmonisation or regression cannot be learned, for example
        because a site has one person, have no rows. A model that failed in a fold has
        NaN.

    Raises
    ------
    ParameterError
        If shares are not ascending up to 1, or there are fewer than two subsets.
    """
    check_cohort_given(cohort)
    shares = [float(share) for share in shares]
    if sorted(set(shares)) != shares or shares[0] <= 0 or shares[-1] != 1:
        raise ParameterError(
            "shares must be increasing numbers above 0, and the last must be 1, "
            f"for example {SHARES}; got {shares}."
        )
    if n_subsets < 2:
        raise ParameterError(f"n_subsets must be at least 2; got {n_subsets}.")
    deconfounder = Deconfounder(harmonize, regress_out, reference_class)
    # All training people come first: the other shares have the same audit.
    whole_evaluation = cross_validate(
        models,
        cohort,
        splits,
        baselines=False,
        random_state=random_state,
        harmonize=harmonize,
        regress_out=regress_out,
        reference_class=reference_class,
        n_jobs=n_jobs,
        verbose=verbose,
        memory=memory,
    )
    evaluations_by_share: dict[float, list[Evaluation]] = {}
    for share in shares[:-1]:
        reduced_split_lists = [
            reduce_training_splits(cohort, splits, share, random_state, subset_number)
            for subset_number in range(n_subsets)
        ]
        if all(
            _can_learn_adjustments(deconfounder, cohort, reduced_splits)
            for reduced_splits in reduced_split_lists
        ):
            evaluations_by_share[share] = [
                cross_validate_again(
                    whole_evaluation,
                    models,
                    cohort,
                    reduced_splits,
                    deconfounder,
                    n_jobs=n_jobs,
                    verbose=verbose,
                    memory=memory,
                )
                for reduced_splits in reduced_split_lists
            ]
    evaluations_by_share[1.0] = [whole_evaluation]
    curve_records = []
    for model_name in models:
        model_records: list[dict[str, Any]] = []
        for share, subset_evaluations in evaluations_by_share.items():
            interval_record = _make_score_record(
                subset_evaluations, model_name, n_draws, random_state
            )
            n_train_people = _compute_mean_training_size(subset_evaluations, model_name)
            curve_record = {"model": model_name, "share": share}
            model_records.append(
                curve_record | {"n_train_people": n_train_people} | interval_record
            )
        slope_record = _make_slope_record(
            evaluations_by_share, model_name, n_draws, random_state
        )
        answer_text = UNCLEAR
        is_above_chance = model_records[-1]["low"] > 1 / len(cohort.classes)
        if slope_record["slope_low"] > 0 and is_above_chance:
            answer_text = YES
        elif slope_record["slope_high"] < SMALLEST_GAIN:
            answer_text = NO
        curve_records += [
            curve_record | slope_record | {"answer": answer_text}
            for curve_record in model_records
        ]
    return pd.DataFrame(curve_records)


def reduce_training_splits(
    cohort: Cohort,
    splits: Sequence[Split],
    share: float,
    random_state: int = 0,
    subset_number: int = 0,
) -> list[Split]:
    """Return folds with a share of their training people, stratified by class.

    A class keeps at least two people, where it has as many. The people of a smaller
    share are among those of a larger one with the same number of the subset. Subsets 1,
    3, 5 ... take people in the reverse of the order of the subset before.
    """
    if share == 1:
        return list(splits)
    scan_person_ids, class_labels = np.asarray(cohort.groups), np.asarray(cohort.y)
    reduced_splits = []
    for fold_index, (train_index, test_index) in enumerate(splits):
        rng = np.random.default_rng([random_state, fold_index, subset_number // 2])
        train_indices = np.asarray(train_index)
        train_person_ids, first_scan_indices = np.unique(
            scan_person_ids[train_indices], return_index=True
        )
        # A person with scans of several classes counts in that of the first.
        person_class_labels = class_labels[train_indices][first_scan_indices]
        subset_person_ids: list[Any] = []
        for class_name in np.unique(class_labels[train_indices]):
            class_person_ids = rng.permutation(
                train_person_ids[person_class_labels == class_name]
            )
            if subset_number % 2:
                class_person_ids = class_person_ids[::-1]
            n_subset_people = max(
                MIN_TRAINING_PEOPLE, int(np.ceil(share * len(class_person_ids)))
            )
            subset_person_ids += list(class_person_ids[:n_subset_people])
        subset_scan_mask = np.isin(scan_person_ids[train_indices], subset_person_ids)
        reduced_splits.append((train_indices[subset_scan_mask], np.asarray(test_index)))
    return reduced_splits


def _can_learn_adjustments(
    deconfounder: Deconfounder, cohort: Cohort, splits: Sequence[Split]
) -> bool:
    """Return whether adjustments can be learned from the training of all folds."""
    try:
        deconfounder.check(cohort.table, splits)
    except ParameterError:  # A site has too few people.
        return False
    return True


def _select_fit_table(evaluation: Evaluation, model_name: str) -> pd.DataFrame:
    """Return the fits of a model."""
    return evaluation.fits[evaluation.fits["model"] == model_name]


def _compute_mean_training_size(
    subset_evaluations: Sequence[Evaluation], model_name: str
) -> float:
    """Return the number of training people, mean over folds and subsets."""
    mean_training_sizes = [
        _select_fit_table(evaluation, model_name)["n_train_people"].mean()
        for evaluation in subset_evaluations
    ]
    return float(np.mean(mean_training_sizes))


def _make_score_record(
    subset_evaluations: Sequence[Evaluation],
    model_name: str,
    n_draws: int,
    random_state: int,
) -> dict[str, float]:
    """Return the mean balanced accuracy of subsets, with its interval."""
    interval_table = pd.DataFrame(
        [
            bootstrap_score_table(evaluation, model_name, n_draws, random_state)
            .set_index("score")
            .loc["balanced_accuracy"]
            for evaluation in subset_evaluations
        ]
    )
    # The mean of the intervals over people is at least as wide as that of the mean.
    estimate, mean_low, mean_high = interval_table[["estimate", "low", "high"]].mean(
        skipna=False
    )
    mean_low, mean_high = _widen_interval(
        estimate, mean_low, mean_high, interval_table["estimate"].to_numpy()
    )
    return {
        "estimate": estimate,
        "low": max(mean_low, 0.0),
        "high": min(mean_high, 1.0),
    }


def _widen_interval(
    estimate: float, mean_low: float, mean_high: float, subset_estimates: np.ndarray
) -> tuple[float, float]:
    """Add the variance of the mean over subsets to an interval over people."""
    n_subsets = len(subset_estimates)
    if n_subsets < 2:
        return float(mean_low), float(mean_high)
    standard_error = np.std(subset_estimates, ddof=1) / np.sqrt(n_subsets)
    half_width = NORMAL_QUANTILE * standard_error
    return (
        float(estimate - np.hypot(estimate - mean_low, half_width)),
        float(estimate + np.hypot(mean_high - estimate, half_width)),
    )


def _make_slope_record(
    evaluations_by_share: Mapping[float, Sequence[Evaluation]],
    model_name: str,
    n_draws: int,
    random_state: int,
) -> dict[str, float]:
    """Return the slope over the last doubling with its interval; NaN if undefined."""
    log_training_sizes, share_score_draws = [], []
    for share, subset_evaluations in evaluations_by_share.items():
        has_failed_fit = any(
            (_select_fit_table(evaluation, model_name)["failed"] != "").any()
            for evaluation in subset_evaluations
        )
        if share < FIRST_SHARE_OF_SLOPE or has_failed_fit:
            continue
        share_score_draws.append(
            [
                _bootstrap_accuracies(evaluation, model_name, n_draws, random_state)
                for evaluation in subset_evaluations
            ]
        )
        log_training_sizes.append(
            np.log2(_compute_mean_training_size(subset_evaluations, model_name))
        )
    x = np.array(log_training_sizes)
    if len(x) < 2 or np.ptp(x) < 1e-9:
        return dict.fromkeys(("slope", "slope_low", "slope_high"), np.nan)
    centred_log_training_sizes = x - x.mean()
    n_subsets = max(map(len, share_score_draws))
    # Every subset of a share below 1 has the one fit to all training people.
    subset_score_array = np.array(
        [
            [
                subset_score_draws[min(subset_number, len(subset_score_draws) - 1)]
                for subset_score_draws in share_score_draws
            ]
            for subset_number in range(n_subsets)
        ]
    )
    # The first column has the scores of everybody, the others those of the draws.
    subset_slope_matrix = (
        centred_log_training_sizes
        @ subset_score_array
        / (centred_log_training_sizes @ centred_log_training_sizes)
    )
    draw_slopes = subset_slope_matrix.mean(axis=0)
    slope_low, slope_high = np.quantile(draw_slopes[1:], [0.025, 0.975])
    slope = float(draw_slopes[0])
    slope_low, slope_high = _widen_interval(
        slope, min(slope_low, slope), max(slope_high, slope), subset_slope_matrix[:, 0]
    )
    return {"slope": slope, "slope_low": slope_low, "slope_high": slope_high}


def _bootstrap_accuracies(
    evaluation: Evaluation, model_name: str, n_draws: int, random_state: int
) -> np.ndarray:
    """Return the balanced accuracy of everybody, then of people drawn anew."""
    prediction_table = evaluation.predictions[
        evaluation.predictions["model"] == model_name
    ]
    person_codes = pd.factorize(prediction_table["participant"], sort=True)[0]
    n_people = person_codes.max() + 1
    rng = np.random.default_rng(random_state)
    person_draw_counts = rng.multinomial(
        n_people, np.full(n_people, 1 / n_people), n_draws
    )
    scan_weights = np.vstack([np.ones(n_people), person_draw_counts])[:, person_codes]
    return balanced_accuracy(
        weighted_confusion_counts(
            evaluation.as_predictions(prediction_table), scan_weights
        )
    )
