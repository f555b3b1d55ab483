"""Prediction sets of a person: class-conditional conformal prediction.

A class c is in the set of a scan with score s if its nonconformity A_c(s) is at most
the quantile q_c of the people of c in training. With n people, q_c is the smallest
value that at least (n + 1) level people do not exceed. A person with several scans
counts as equal parts of a person. If the score of a new person of c is exchangeable
with the scores of these people, the set holds c with a probability of at least the
level, whatever the distribution of scores (by class: Vovk 2012, Asian Conference on
Machine Learning; for one random scan of a person with several scans: Lee, Barber and
Willett 2023, arXiv:2306.06342).

The scores of the training people are left-out scores of a fit whose scales come from
all people. The score of a new person comes from the fit to all people. These scores are
only approximately exchangeable, so that the coverage is not guaranteed
(`benchmarks/set_coverage.py` measures it).
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from brainlsap.exceptions import ParameterError
from brainlsap.model.ridge import LSAPRidgeClassifier

LEVEL = Fraction(9, 10)
"""Intended share of new people of each class whose set contains their class."""

MIN_PEOPLE = 9
"""Smallest number n of people of a class: `ceil((n + 1) * LEVEL) <= n`."""


def fit_prediction_sets(
    model: LSAPRidgeClassifier,
    y: Sequence[Any] | np.ndarray,
    groups: Sequence[Any] | np.ndarray,
) -> dict[str, Any]:
    """Compute the quantile of nonconformity of every class from left-out scores.

    Parameters
    ----------
    model : LSAPRidgeClassifier
        Fitted to these scans.
    y, groups : sequences of length n_scans
        Class and participant of every training scan.

    Returns
    -------
    dict
        As JSON allows, for :func:`predict_set_membership`: `classes` in order of stage,
        and for each `centers`, `quantiles` (None where it has too few people) and
        `n_people`.
    """
    class_codes = pd.Index(model.stages_).get_indexer(np.asarray(y))
    person_codes = pd.factorize(np.asarray(groups))[0]
    n_classes = len(model.stages_)
    rebalanced_scores = rebalance_scores(
        model.left_out_scores_, class_codes, person_codes
    )
    class_centers: list[float] = []
    class_quantiles: list[float | None] = []
    class_people_counts: list[int] = []
    for class_code in range(n_classes):
        class_scan_mask = class_codes == class_code
        class_person_codes = person_codes[class_scan_mask]
        scan_visit_counts = np.bincount(class_person_codes)[class_person_codes]
        # Every person counts once.
        visit_weights = 1 / scan_visit_counts
        n_people = len(np.unique(class_person_codes))
        class_scores = rebalanced_scores[class_scan_mask]
        class_center = float(np.average(class_scores[:, 0], weights=visit_weights))
        person_centers: float | np.ndarray = class_center
        if _is_middle_stage(model, class_code) and n_people > 1:
            # A new person is not in the center; leave each training person out as well.
            person_sums = np.bincount(
                class_person_codes, visit_weights * class_scores[:, 0]
            )
            person_centers = (
                n_people * class_center - person_sums[class_person_codes]
            ) / (n_people - 1)
        nonconformities = _compute_nonconformities(
            model, class_scores, class_code, person_centers
        )
        class_centers.append(class_center)
        class_quantiles.append(_find_quantile(nonconformities, visit_weights, n_people))
        class_people_counts.append(n_people)
    return {
        "classes": [str(class_name) for class_name in model.stages_],
        "centers": class_centers,
        "quantiles": class_quantiles,
        "n_people": class_people_counts,
    }


def rebalance_scores(
    left_out_scores: np.ndarray, class_codes: np.ndarray, person_codes: np.ndarray
) -> np.ndarray:
    """Return left-out scores of fits in which all classes have the same weight.

    `left_out_scores` are (n_scans, n_targets). In their closed form, the class of the
    person who is left out loses the person's weight. The mean target of the other
    people, and with it the score, therefore moves away from this class. A new fit
    to the other people would give all classes the same weight again. Add the shift
    of the mean target: the sum of the person's u_i (t_i - mean), divided by the
    weight of the others.
    """
    n_people = person_codes.max() + 1
    person_visit_counts = np.bincount(person_codes)
    scan_weights = 1 / person_visit_counts[person_codes]
    scan_weights /= np.bincount(class_codes, scan_weights)[class_codes]
    scan_weights *= n_people / scan_weights.sum()
    n_classes = class_codes.max() + 1
    class_targets = np.eye(n_classes)[class_codes]
    if left_out_scores.shape[1] == 1:
        class_targets = class_codes[:, None].astype(float)
    target_deviations = scan_weights[:, None] * (
        class_targets - np.average(class_targets, 0, scan_weights)
    )
    target_sums = np.zeros((n_people, class_targets.shape[1]))
    np.add.at(target_sums, person_codes, target_deviations)
    person_weights = np.bincount(person_codes, scan_weights)[:, None]
    return left_out_scores + (target_sums / (n_people - person_weights))[person_codes]


def predict_set_membership(
    model: LSAPRidgeClassifier,
    prediction_set_record: Mapping[str, Any],
    decision_scores: np.ndarray,
) -> np.ndarray:
    """Return whether each class is in the set of every scan.

    Parameters
    ----------
    model : LSAPRidgeClassifier
    prediction_set_record : mapping
        From :func:`fit_prediction_sets`.
    decision_scores : array of shape (n_scans, n_targets)
        From :meth:`.LSAPRidgeClassifier.decision_scores`.

    Returns
    -------
    bool array of shape (n_scans, n_classes)
        Classes in order of stage. The stages of a set have no gap: a stage between two
        others of the set belongs to it. A set is empty where a scan is unlike the
        people of every class.

    Raises
    ------
    ParameterError
        If a class has too few people.
    """
    if None in prediction_set_record["quantiles"]:
        raise ParameterError(
            f"a class has fewer than {MIN_PEOPLE} people, so no set can be computed "
            "at this level."
        )
    set_mask_columns = [
        _compute_nonconformities(model, decision_scores, class_code, class_center)
        <= quantile
        for class_code, (class_center, quantile) in enumerate(
            zip(
                prediction_set_record["centers"],
                prediction_set_record["quantiles"],
                strict=True,
            )
        )
    ]
    set_membership_mask = np.column_stack(set_mask_columns)
    if decision_scores.shape[1] == 1:
        earlier_class_mask = np.maximum.accumulate(set_membership_mask, axis=1)
        later_class_mask = np.maximum.accumulate(set_membership_mask[:, ::-1], axis=1)[
            :, ::-1
        ]
        set_membership_mask = earlier_class_mask & later_class_mask
    return set_membership_mask


def _is_middle_stage(ridge_classifier: LSAPRidgeClassifier, class_code: int) -> bool:
    """Return whether a class is an ordered stage with stages on both sides."""
    return (
        ridge_classifier.means_.shape[1] == 1
        and 0 < class_code < len(ridge_classifier.stages_) - 1
    )


def _compute_nonconformities(
    ridge_classifier: LSAPRidgeClassifier,
    decision_scores: np.ndarray,
    class_code: int,
    class_center: float | np.ndarray,
) -> np.ndarray:
    """Return the nonconformity of scans with a class, shape (n_scans,).

    If the classes are unordered and more than two, it is minus the log-probability of
    the class under equal class shares. Otherwise it is the score for the first class,
    minus the score for the last class, and the distance from `class_center` for the
    classes between them. `class_center` may differ between scans.
    """
    if ridge_classifier.means_.shape[1] > 1:
        log_odds = ridge_classifier.log_odds(decision_scores)
        return logsumexp(log_odds, axis=1) - log_odds[:, class_code]
    if _is_middle_stage(ridge_classifier, class_code):
        return np.abs(decision_scores[:, 0] - class_center)
    return decision_scores[:, 0] if class_code == 0 else -decision_scores[:, 0]


def _find_quantile(
    nonconformities: np.ndarray, visit_weights: np.ndarray, n_people: int
) -> float | None:
    """Return the smallest value not exceeded by `LEVEL * (n + 1)` people, or None."""
    nonconformity_order = np.argsort(nonconformities)
    cumulative_people = np.cumsum(visit_weights[nonconformity_order])
    # Sums of reciprocal numbers of visits have rounding errors.
    reaches_level_mask = cumulative_people >= float(LEVEL * (n_people + 1)) - 1e-9
    if not reaches_level_mask.any():
        return None
    return float(nonconformities[nonconformity_order][reaches_level_mask.argmax()])
