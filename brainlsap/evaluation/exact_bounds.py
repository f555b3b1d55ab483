r"""Exact bounds of scores that every bootstrap draw has alike, such as perfect ones.

Where all people of a class are classified correctly, every bootstrap draw is perfect,
and percentiles are an interval of width 0. The bounds here are Buehler's (1957, Journal
of the American Statistical Association 52:482), which extend the interval of Clopper
and Pearson (1934, Biometrika 26:404) from one proportion to a function of several: with
:math:`n_c` people of class c, of whom a part :math:`e_c` of all such people would be
classified otherwise, the bound is the most extreme score among all

.. math:: e: \quad \prod_c (1 - e_c)^{n_c} \ge 0.025

that is, among the truths under which what was observed still happens in 2.5 % of
studies. One class with all of n people correct gives Clopper and Pearson's
:math:`0.025^{1/n}`.
"""

import numpy as np

from brainlsap.evaluation.metrics import Predictions, weighted_counts
from brainlsap.evaluation.scores import score_counts

TAIL = 0.025
"""Probability of what was observed at either end of a 95% interval."""

# Truths that are tried: shares of the errors by class, and where errors go.
_N_SHARES, _N_TARGETS, _SEED = 400, 60, 0


def bound_count_scores(
    predictions: Predictions, person: np.ndarray
) -> dict[str, tuple[float, float]]:
    """Return exact bounds of the scores that confusion counts determine.

    Parameters
    ----------
    predictions : Predictions
        Of one model.
    person : int array of shape (n_rows,)
        Whose each prediction is; a person counts once in each class.

    Returns
    -------
    dict of str to (low, high)
        By score. Empty where some class is classified correctly in part, and where one
        class is predicted for everybody: balanced accuracy is then 1 / n_classes
        whoever is drawn.
    """
    counts = weighted_counts(predictions, np.ones((1, len(person))))[0]
    n_classes, n_true = len(counts), counts.sum(axis=1)
    present = np.flatnonzero(n_true)
    is_whole = counts.max(axis=1)[present] == n_true[present]
    is_constant = np.count_nonzero(counts.sum(axis=0)) == 1 and len(present) > 1
    if n_classes < 2 or not is_whole.all() or is_constant:
        return {}
    observed = counts.argmax(axis=1)
    n_people = [len(set(person[predictions.actual == code])) for code in present]
    shares = _draw_shares(np.array(n_people, dtype=float))
    error_rates = 1 - TAIL ** (shares / n_people)
    tables = []
    for targets in _list_targets(observed[present], n_classes):
        table = np.zeros((len(shares), n_classes, n_classes))
        columns = n_true[present]
        table[:, present, observed[present]] = (1 - error_rates) * columns
        table[:, present, targets] = error_rates * columns
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

    The m pairs of one person of a class and one of the rest that share nobody are
    independent, and each is ordered correctly with probability A, the AUC. All people
    are separated in at most :math:`A^m` of studies, so that :math:`A \ge 0.025^{1/m}`,
    with m the people of the smaller side, summed over folds.

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
        The estimate twice where a model gives everybody in a fold the same values.
    """
    folds = [predictions.fold == fold for fold in np.unique(predictions.fold)]
    ranking = predictions.ranking
    if ranking is None or not any(
        np.ptp(ranking[rows], axis=0).any() for rows in folds
    ):
        return estimate, estimate
    factors = []
    for code in np.unique(predictions.actual):
        n_pairs = 0
        for rows in folds:
            is_class = predictions.actual[rows] == code
            people = person[rows]
            sides = len(set(people[is_class])), len(set(people[~is_class]))
            n_pairs += min(sides)
        factors.append(TAIL ** (1 / max(n_pairs / n_repeats, 1)))
    factor = float(np.mean(factors))
    return estimate * factor, 1 - (1 - estimate) * factor


def _draw_shares(n_people: np.ndarray) -> np.ndarray:
    """Return how the errors may be divided among classes, (n_shares, n_classes).

    All in one class, in proportion to its people, alike, and at random, also with fewer
    errors than the bound allows.
    """
    n_classes, rng = len(n_people), np.random.default_rng(_SEED)
    random = rng.dirichlet(np.ones(n_classes), _N_SHARES)
    sparse = rng.dirichlet(np.full(n_classes, 0.3), _N_SHARES)
    fewer = random * rng.random((_N_SHARES, 1))
    fixed = [np.zeros(n_classes), n_people / n_people.sum(), np.ones(n_classes)]
    fixed[2] /= n_classes
    return np.vstack([*fixed, np.eye(n_classes), random, sparse, fewer])


def _list_targets(observed: np.ndarray, n_classes: int) -> list[np.ndarray]:
    """Return to which class the errors of each class may go, (n_present,) each.

    The farthest stage, the nearest, one for all, and at random.
    """
    rng = np.random.default_rng(_SEED)
    others = [np.delete(np.arange(n_classes), column) for column in observed]
    pairs = [*zip(others, observed, strict=True)]
    far = [other[np.abs(other - column).argmax()] for other, column in pairs]
    near = [other[np.abs(other - column).argmin()] for other, column in pairs]
    targets = [np.array(far), np.array(near)]
    for code in range(n_classes):
        targets.append(np.where(observed == code, targets[0], code))
    n_random = _N_TARGETS if n_classes > 2 else 0
    for _ in range(n_random):
        drawn = [rng.choice(other) for other in others]
        targets.append(np.array(drawn))
    return [*np.unique(targets, axis=0)]
