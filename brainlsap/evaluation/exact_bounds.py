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

from brainlsap.evaluation.metrics import Predictions, weighted_counts
from brainlsap.evaluation.scores import score_counts

TAIL = 0.025
"""Probability of the observed result at either end of a 95% interval."""

# Random divisions of the errors among classes, and random classes that errors go to.
_N_RANDOM_SHARES = 400
_N_RANDOM_TARGETS = 60
_SEED = 0


def bound_count_scores(
    predictions: Predictions, person: np.ndarray
) -> dict[str, tuple[float, float]]:
    """Return exact bounds of the scores that confusion counts determine.

    Parameters
    ----------
    predictions : Predictions
        Of one model.
    person : int array of shape (n_rows,)
        The person of each prediction; a person counts once in each class.

    Returns
    -------
    dict of str to (low, high)
        By score. Empty if predictions differ within a class, and if one class is
        predicted for everybody: balanced accuracy is then 1 / n_classes in every draw.
    """
    counts = weighted_counts(predictions, np.ones((1, len(person))))[0]
    n_classes = len(counts)
    class_sizes = counts.sum(axis=1)
    present = np.flatnonzero(class_sizes)
    class_sizes = class_sizes[present]
    has_one_prediction = counts.max(axis=1)[present] == class_sizes
    is_constant = np.count_nonzero(counts.sum(axis=0)) == 1 and len(present) > 1
    if n_classes < 2 or not has_one_prediction.all() or is_constant:
        return {}
    predicted = counts.argmax(axis=1)[present]
    n_people = [len(set(person[predictions.actual == code])) for code in present]
    shares = _divide_errors(np.array(n_people, dtype=float))
    error_rates = 1 - TAIL ** (shares / n_people)
    tables = []
    for targets in _list_targets(predicted, n_classes):
        table = np.zeros((len(shares), n_classes, n_classes))
        table[:, present, predicted] = (1 - error_rates) * class_sizes
        table[:, present, targets] = error_rates * class_sizes
        tables.append(table)
    probability = predictions.probability
    is_certain = probability is not None and bool(np.isin(probability, (0, 1)).all())
    scores = score_counts(
        np.concatenate(tables), ordered=predictions.ordered, is_certain=is_certain
    )
    return {
        name: (float(np.nanmin(values)), float(np.nanmax(values)))
        for name, values in scores.items()
        if np.isfinite(values).any()
    }


def bound_auc(
    predictions: Predictions, person: np.ndarray, estimate: float, n_repeats: int
) -> tuple[float, float]:
    r"""Return exact bounds of an AUC that is 0 or 1 in every draw.

    Pair people of a class with people of the other classes, each person once. The m
    pairs are independent, and each is ordered correctly with probability A, the AUC.
    All people are separated in at most :math:`A^m` of studies, so that
    :math:`A \ge 0.025^{1/m}`; m is the number of people on the smaller side, summed
    over folds.

    Parameters
    ----------
    predictions, person
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
    ranking = predictions.ranking
    if ranking is None or not any(
        np.ptp(ranking[rows], axis=0).any() for rows in is_in_fold
    ):
        return estimate, estimate
    factors = []
    for code in np.unique(predictions.actual):
        n_pairs = 0
        for rows in is_in_fold:
            is_class = predictions.actual[rows] == code
            people = person[rows]
            n_class_people = len(set(people[is_class]))
            n_other_people = len(set(people[~is_class]))
            n_pairs += min(n_class_people, n_other_people)
        factors.append(TAIL ** (1 / max(n_pairs / n_repeats, 1)))
    factor = float(np.mean(factors))
    return estimate * factor, 1 - (1 - estimate) * factor


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


def _list_targets(predicted: np.ndarray, n_classes: int) -> list[np.ndarray]:
    """Return assignments of a target class to the errors of each class, (n_present,).

    `predicted` is the class that is predicted for each class. Errors go to the stage
    farthest from it, to the nearest, all to one class, or to classes at random.
    """
    rng = np.random.default_rng(_SEED)
    alternatives = [np.delete(np.arange(n_classes), code) for code in predicted]
    farthest = []
    nearest = []
    for codes, code in zip(alternatives, predicted, strict=True):
        distance = np.abs(codes - code)
        farthest.append(codes[distance.argmax()])
        nearest.append(codes[distance.argmin()])
    targets = [np.array(farthest), np.array(nearest)]
    for code in range(n_classes):
        targets.append(np.where(predicted == code, targets[0], code))
    n_random = _N_RANDOM_TARGETS if n_classes > 2 else 0
    for _ in range(n_random):
        random_targets = [rng.choice(codes) for codes in alternatives]
        targets.append(np.array(random_targets))
    return [*np.unique(targets, axis=0)]
