r"""Exact bounds of scores that are the same in every bootstrap draw.

If all people of each class are classified correctly, every bootstrap draw is perfect,
and percentiles are an interval of width 0. The bounds here are Buehler's (1957, Journal
of the American Statistical Association 52:482), which extend the interval of Clopper
and Pearson (1934, Biometrika 26:404) from one proportion to a function of several. Let
:math:`n_c` people of class c be tested, and let the model err on a share :math:`e_c` of
all people of that class. The bound is the most extreme score among all

.. math:: e: \quad \prod_c (1 - e_c)^{n_c} \ge 0.025

that is, among the error rates under which the observed result still occurs in 2.5 % of
studies. One class with all of n people correct gives Clopper and Pearson's
:math:`0.025^{1/n}`.
"""

import numpy as np

from brainlsap.evaluation.scores import Predictions, score_counts, weighted_counts

TAIL = 0.025
"""Probability of the observed result at either end of a 95% interval."""

# Random divisions of the errors among classes, and random classes that errors go to.
_N_RANDOM_SHARES = 400
_N_RANDOM_TARGETS = 60
_SEED = 0


def bound_count_scores(
    predictions: Predictions, person_codes: np.ndarray
) -> dict[str, tuple[float, float]]:
    """Return exact bounds of the scores that confusion counts determine.

    Parameters
    ----------
    predictions : Predictions
        Of one model.
    person_codes : int array of shape (n_rows,)
        The person of each prediction; a person counts once in each class.

    Returns
    -------
    dict of str to (low, high)
        By score. Empty if predictions differ within a class, and if one class is
        predicted for everybody: balanced accuracy is then 1 / n_classes in every draw.
    """
    confusion_counts = weighted_counts(predictions, np.ones((1, len(person_codes))))[0]
    n_classes = len(confusion_counts)
    class_sizes = confusion_counts.sum(axis=1)
    present_classes = np.flatnonzero(class_sizes)
    class_sizes = class_sizes[present_classes]
    has_one_prediction = confusion_counts.max(axis=1)[present_classes] == class_sizes
    is_constant = (
        np.count_nonzero(confusion_counts.sum(axis=0)) == 1 and len(present_classes) > 1
    )
    if n_classes < 2 or not has_one_prediction.all() or is_constant:
        return {}
    predicted_classes = confusion_counts.argmax(axis=1)[present_classes]
    n_people = [
        len(set(person_codes[predictions.actual == class_code]))
        for class_code in present_classes
    ]
    error_shares = _divide_errors(np.array(n_people, dtype=float))
    error_rates = 1 - TAIL ** (error_shares / n_people)
    confusion_tables = []
    for target_classes in _list_targets(predicted_classes, n_classes):
        divided_counts = np.zeros((len(error_shares), n_classes, n_classes))
        divided_counts[:, present_classes, predicted_classes] = (
            1 - error_rates
        ) * class_sizes
        divided_counts[:, present_classes, target_classes] = error_rates * class_sizes
        confusion_tables.append(divided_counts)
    class_probabilities = predictions.probability
    is_certain = class_probabilities is not None and bool(
        np.isin(class_probabilities, (0, 1)).all()
    )
    scores = score_counts(
        np.concatenate(confusion_tables),
        ordered=predictions.ordered,
        is_certain=is_certain,
    )
    return {
        score_name: (float(np.nanmin(score_values)), float(np.nanmax(score_values)))
        for score_name, score_values in scores.items()
        if np.isfinite(score_values).any()
    }


def bound_auc(
    predictions: Predictions, person_codes: np.ndarray, estimate: float, n_repeats: int
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
        As of :func:`bound_count_scores`.
    estimate : float
        The AUC that was observed.
    n_repeats : int
        How often each person was tested.

    Returns
    -------
    (low, high)
        The estimate twice if in each fold a model gives everybody the same values.
    """
    is_in_fold = [predictions.fold == fold for fold in np.unique(predictions.fold)]
    ranking_scores = predictions.ranking
    if ranking_scores is None or not any(
        np.ptp(ranking_scores[class_rows], axis=0).any() for class_rows in is_in_fold
    ):
        return estimate, estimate
    class_factors = []
    for class_code in np.unique(predictions.actual):
        n_pairs = 0
        for class_rows in is_in_fold:
            is_class = predictions.actual[class_rows] == class_code
            class_people = person_codes[class_rows]
            n_class_people = len(set(class_people[is_class]))
            n_other_people = len(set(class_people[~is_class]))
            n_pairs += min(n_class_people, n_other_people)
        class_factors.append(TAIL ** (1 / max(n_pairs / n_repeats, 1)))
    mean_factor = float(np.mean(class_factors))
    return estimate * mean_factor, 1 - (1 - estimate) * mean_factor


def _divide_errors(n_people: np.ndarray) -> np.ndarray:
    """Return divisions of the errors among classes, (n_divisions, n_classes).

    None, in proportion to people, equally, all in one class, and at random, also with
    fewer errors than the bound allows.
    """
    n_classes = len(n_people)
    rng = np.random.default_rng(_SEED)
    random_shares = rng.dirichlet(np.ones(n_classes), _N_RANDOM_SHARES)
    sparse_shares = rng.dirichlet(np.full(n_classes, 0.3), _N_RANDOM_SHARES)
    smaller_shares = random_shares * rng.random((_N_RANDOM_SHARES, 1))
    return np.vstack(
        [
            np.zeros(n_classes),
            n_people / n_people.sum(),
            np.ones(n_classes) / n_classes,
            np.eye(n_classes),
            random_shares,
            sparse_shares,
            smaller_shares,
        ]
    )


def _list_targets(predicted_classes: np.ndarray, n_classes: int) -> list[np.ndarray]:
    """Return assignments of a target class to the errors of each class, (n_present,).

    `predicted_classes` is the class that is predicted for each class. Errors go to the
    stage farthest from it, to the nearest, all to one class, or to classes at random.
    """
    rng = np.random.default_rng(_SEED)
    other_classes = [
        np.delete(np.arange(n_classes), predicted_class)
        for predicted_class in predicted_classes
    ]
    farthest_classes = []
    nearest_classes = []
    for class_codes, predicted_class in zip(
        other_classes, predicted_classes, strict=True
    ):
        class_distances = np.abs(class_codes - predicted_class)
        farthest_classes.append(class_codes[class_distances.argmax()])
        nearest_classes.append(class_codes[class_distances.argmin()])
    target_assignments = [np.array(farthest_classes), np.array(nearest_classes)]
    for predicted_class in range(n_classes):
        target_assignments.append(
            np.where(
                predicted_classes == predicted_class,
                target_assignments[0],
                predicted_class,
            )
        )
    n_random = _N_RANDOM_TARGETS if n_classes > 2 else 0
    for _ in range(n_random):
        random_targets = [rng.choice(class_codes) for class_codes in other_classes]
        target_assignments.append(np.array(random_targets))
    return [*np.unique(target_assignments, axis=0)]
