"""Whether a model is better than chance: labels permuted between people."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from brainlsap._arrays import check_choice
from brainlsap.data import Cohort
from brainlsap.evaluation.crossval import cross_validate
from brainlsap.evaluation.metrics import SCORES
from brainlsap.exceptions import ParameterError


class PermutationTest(NamedTuple):
    """A score, those with permuted labels, and how many are as high."""

    score: float
    permuted: np.ndarray
    p_value: float


def permutation_test(
    model: Any,
    cohort: Cohort,
    n_folds: int = 5,
    n_permutations: int = 100,
    random_state: int = 0,
    *,
    score: str = "balanced_accuracy",
    n_jobs: int = 1,
) -> PermutationTest:
    """Test whether a model is better than chance, by fitting it to permuted labels.

    Parameters
    ----------
    model : classifier
        As for :func:`brainlsap.evaluation.cross_validate`.
    cohort : Cohort
        The scans.
    n_folds : int
        Folds; drawn anew for permuted labels, as they are for the true ones: kept,
        they would be stratified for the true labels only.
    n_permutations : int
        How often labels are permuted and everything is fitted anew.
    random_state : int
        Seed.
    score : str
        One of :data:`brainlsap.evaluation.SCORES`.
    n_jobs : int
        Processes.

    Returns
    -------
    PermutationTest
        Fields score (mean over folds), permuted (n_permutations,) and p_value.

    Raises
    ------
    ParameterError
        Where the score is unknown or `n_permutations` is less than 1.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from brainlsap.data import make_cohort
    >>> cohort = make_cohort(60, atlas="desikan82")
    >>> permutation_test(DummyClassifier(), cohort, 3, 4).p_value
    1.0
    """
    check_choice("score", score, SCORES)
    if n_permutations < 1:
        raise ParameterError(
            f"n_permutations must be at least 1, got {n_permutations}."
        )
    rng = np.random.default_rng(random_state)
    first = cross_validate(
        model, cohort, n_folds, random_state, baselines=False, n_jobs=n_jobs
    )
    found = []
    for _ in range(n_permutations):
        label = permute_labels(cohort.y, cohort.groups, rng)
        permuted = replace(cohort, table=cohort.table.assign(label=label))
        evaluation = cross_validate(
            model,
            permuted,
            n_folds,
            random_state,
            baselines=False,
            n_jobs=n_jobs,
        )
        found.append(float(evaluation.main.scores()[score].mean()))
    reached = float(first.main.scores()[score].mean())
    beaten = sum(one >= reached - 1e-12 for one in found)
    p_value = (1 + beaten) / (n_permutations + 1)
    return PermutationTest(reached, np.array(found), p_value)


def permute_labels(
    y: np.ndarray, groups: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Permute labels between people; all visits of a person move together.

    Where labels change between visits they are exchanged between people with as many
    visits, else between any.

    Parameters
    ----------
    y, groups : arrays of length n_scans
        Label and participant of every scan.
    rng : numpy.random.Generator
        Draws the permutation.

    Returns
    -------
    array of length n_scans

    Examples
    --------
    >>> label, people = np.array(list("AAB")), np.array(list("ppq"))
    >>> "".join(permute_labels(label, people, np.random.default_rng(3)))
    'BBA'
    """
    _, person = np.unique(np.asarray(groups).astype(str), return_inverse=True)
    rows = [np.flatnonzero(person == one) for one in range(person.max() + 1)]
    constant = all(len(set(y[some])) == 1 for some in rows)
    size = np.ones(len(rows), int) if constant else np.array([len(one) for one in rows])
    out = np.array(y, dtype=object)
    for number in np.unique(size):
        alike = np.flatnonzero(size == number)
        for to, source in zip(alike, rng.permutation(alike), strict=True):
            out[rows[to]] = y[rows[source]][0] if constant else y[rows[source]]
    return out
