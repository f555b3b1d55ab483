"""Prediction sets of a person: class-conditional conformal prediction.

A class c is in the set of a scan with score s if its nonconformity A_c(s) is at most
the quantile q_c of the people of c in training; their scores are left-out scores. If a
new person of c is exchangeable with these people, the set holds c with a probability
of at least the level, whatever the distribution of scores (Vovk, Lei and
Shafer 2005; by class: Vovk 2012, Asian Conference on Machine Learning).
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
"""Share of new people of each class whose set holds their class."""

MIN_PEOPLE = 9
"""Fewest people of a class: `ceil((n + 1) * LEVEL) <= n`."""


def fit_prediction_sets(
    model: LSAPRidgeClassifier,
    y: Sequence[Any] | np.ndarray,
    groups: Sequence[Any] | np.ndarray,
) -> dict[str, Any]:
    """Learn the quantile of nonconformity of every class from left-out scores.

    Parameters
    ----------
    model : LSAPRidgeClassifier
        Fitted to these scans.
    y, groups : sequences of length n_scans
        Class and participant of every training scan.

    Returns
    -------
    dict
        As JSON allows, for :func:`predict_sets`: `classes` in order of stage, and for
        each `centers`, `quantiles` (None where it has too few people) and `n_people`.
    """
    class_codes = pd.Index(model.stages_).get_indexer(np.asarray(y))
    person_codes = pd.factorize(np.asarray(groups))[0]
    n_classes = len(model.stages_)
    rebalanced_scores = rebalance_scores(
        model.left_out_scores_, class_codes, person_codes
    )
    centers: list[float] = []
    quantiles: list[float | None] = []
    n_people: list[int] = []
    for class_code in range(n_classes):
        is_class = class_codes == class_code
        persons_of_class = person_codes[is_class]
        n_visits = np.bincount(persons_of_class)[persons_of_class]
        # Every person counts once.
        person_weights = 1 / n_visits
        n_persons = len(np.unique(persons_of_class))
        class_scores = rebalanced_scores[is_class]
        center = float(np.average(class_scores[:, 0], weights=person_weights))
        nonconformity = _nonconformity(model, class_scores, class_code, center)
        if _is_between(model, class_code) and n_persons > 1:
            # Leave each person out of the center: a new person is not in it either.
            nonconformity = nonconformity * n_persons / (n_persons - 1)
        centers.append(center)
        quantiles.append(_find_quantile(nonconformity, person_weights, n_persons))
        n_people.append(n_persons)
    return {
        "classes": [str(class_name) for class_name in model.stages_],
        "centers": centers,
        "quantiles": quantiles,
        "n_people": n_people,
    }


def rebalance_scores(
    left_out_scores: np.ndarray, class_codes: np.ndarray, person_codes: np.ndarray
) -> np.ndarray:
    """Return left-out scores of fits in which all classes weigh alike.

    The closed form takes a person's weight from the person's class, so that the mean
    target of the others, and with it the score, moves away from this class. A fit to
    the others weighs all classes alike again; undo the shift.
    """
    n_people = person_codes.max() + 1
    n_visits = np.bincount(person_codes)
    scan_weights = 1 / n_visits[person_codes]
    scan_weights /= np.bincount(class_codes, scan_weights)[class_codes]
    scan_weights *= n_people / scan_weights.sum()
    n_classes = class_codes.max() + 1
    class_targets = np.eye(n_classes)[class_codes]
    if left_out_scores.shape[1] == 1:
        class_targets = class_codes[:, None].astype(float)
    deviations = scan_weights[:, None] * (
        class_targets - np.average(class_targets, 0, scan_weights)
    )
    target_sums = np.zeros((n_people, class_targets.shape[1]))
    np.add.at(target_sums, person_codes, deviations)
    person_weights = np.bincount(person_codes, scan_weights)[:, None]
    return left_out_scores + (target_sums / (n_people - person_weights))[person_codes]


def predict_sets(
    model: LSAPRidgeClassifier, fitted_sets: Mapping[str, Any], scores: np.ndarray
) -> np.ndarray:
    """Return which classes are in the set of every scan.

    Parameters
    ----------
    model : LSAPRidgeClassifier
    sets : mapping
        From :func:`fit_prediction_sets`.
    scores : array of shape (n_scans, n_targets)
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
    if None in fitted_sets["quantiles"]:
        raise ParameterError(
            f"a class has fewer than {MIN_PEOPLE} people, so no set can be computed "
            "at this level."
        )
    set_columns = [
        _nonconformity(model, scores, class_code, center) <= quantile
        for class_code, (center, quantile) in enumerate(
            zip(fitted_sets["centers"], fitted_sets["quantiles"], strict=True)
        )
    ]
    is_in_set = np.column_stack(set_columns)
    if scores.shape[1] == 1:
        has_earlier = np.maximum.accumulate(is_in_set, axis=1)
        has_later = np.maximum.accumulate(is_in_set[:, ::-1], axis=1)[:, ::-1]
        is_in_set = has_earlier & has_later
    return is_in_set


def _is_between(model: LSAPRidgeClassifier, class_code: int) -> bool:
    """Return whether a class is an ordered stage with stages on both sides."""
    return model.means_.shape[1] == 1 and 0 < class_code < len(model.stages_) - 1


def _nonconformity(
    model: LSAPRidgeClassifier, scores: np.ndarray, class_code: int, class_center: float
) -> np.ndarray:
    """Return how unlike the people of a class scans are.

    On a line of stages this is the score towards later stages for the first class, the
    score towards earlier stages for the last, and the distance from the mean score for
    those between; of unordered classes, minus the log-probability of the class where
    classes are equally common.
    """
    if model.means_.shape[1] > 1:
        log_odds = model.log_odds(scores)
        return logsumexp(log_odds, axis=1) - log_odds[:, class_code]
    if _is_between(model, class_code):
        return np.abs(scores[:, 0] - class_center)
    return scores[:, 0] if class_code == 0 else -scores[:, 0]


def _find_quantile(
    nonconformity: np.ndarray, person_weights: np.ndarray, n_persons: int
) -> float | None:
    """Return the smallest value with `LEVEL * (n + 1)` people up to it, or None."""
    score_order = np.argsort(nonconformity)
    n_below = np.cumsum(person_weights[score_order])
    reaches_level = n_below >= float(LEVEL * (n_persons + 1)) - 1e-9
    if not reaches_level.any():
        return None
    return float(nonconformity[score_order][reaches_level.argmax()])
