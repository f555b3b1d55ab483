"""Whether one model is better than another on the same folds."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap._arrays import check_choice
from brainlsap.evaluation.metrics import SCORES
from brainlsap.evaluation.pooled import bootstrap_draws, interval, predictions_of
from brainlsap.evaluation.records import Evaluation

POWER = 0.8


class TTest(NamedTuple):
    """A t-test of differences over folds."""

    mean: float
    t: float
    p_value: float
    standard_error: float


def corrected_t_test(
    differences: Sequence | np.ndarray, n_train: float, n_test: float
) -> TTest:
    r"""Test differences over folds, corrected for folds that share training scans.

    The variance of the mean over J folds is taken to be larger than that of
    independent differences, by Nadeau and Bengio (2003, Machine Learning 52:239):

    .. math:: t = \bar d \Big/ \sqrt{\Big(\frac1J
              + \frac{n_\mathrm{test}}{n_\mathrm{train}}\Big) s^2}

    with J - 1 degrees of freedom. With `n_test=0` it is the naive paired t-test, which
    finds differences where there are none.

    Parameters
    ----------
    differences : sequence of float of length n_folds
        Score of one model minus that of another, on the same folds.
    n_train, n_test : float
        Mean number of people, or scans, in training and test folds.

    Returns
    -------
    TTest
        Fields mean, t, p_value (two-sided) and standard_error; p is 1 where all
        differences are 0, and NaN with one fold.

    Examples
    --------
    >>> corrected_t_test([0.1, 0.3, 0.1, 0.2], 75, 25).p_value > 0.05
    True
    >>> corrected_t_test([0.1, 0.3, 0.1, 0.2], 75, 0).p_value < 0.05
    True
    """
    from scipy.stats import t as student

    d = np.asarray(differences, dtype=float)
    d = d[np.isfinite(d)]
    mean = float(d.mean()) if len(d) else float("nan")
    if len(d) < 2:
        return TTest(mean, float("nan"), float("nan"), float("nan"))
    error = float(np.sqrt((1 / len(d) + n_test / n_train) * d.var(ddof=1)))
    if error == 0:
        same = mean == 0
        return TTest(mean, 0.0 if same else float("inf"), 1.0 if same else 0.0, 0.0)
    t = mean / error
    return TTest(mean, t, float(2 * student.sf(abs(t), len(d) - 1)), error)


def adjust_p_values(
    p_values: Sequence | np.ndarray, method: str = "holm"
) -> np.ndarray:
    """Correct p-values for how many there are.

    Parameters
    ----------
    p_values : sequence of float
        NaN stays and does not count.
    method : {"fdr", "holm", "none"}
        Holm's bound on any false positive, or Benjamini and Hochberg's on their part.

    Returns
    -------
    array of float

    Raises
    ------
    ParameterError
        Where `method` is unknown.

    Examples
    --------
    >>> adjust_p_values([0.01, 0.04, 0.03]).round(2)
    array([0.03, 0.06, 0.06])
    >>> adjust_p_values([0.01, 0.04, 0.03], "fdr").round(2)
    array([0.03, 0.04, 0.04])
    """
    check_choice("method", method, ("fdr", "holm", "none"))
    p = np.asarray(p_values, dtype=float).copy()
    known = np.flatnonzero(np.isfinite(p))
    order = known[np.argsort(p[known], kind="stable")]
    rank = np.arange(1, len(order) + 1)
    if method == "holm":
        p[order] = np.minimum(1, np.maximum.accumulate(p[order] * rank[::-1]))
    elif method == "fdr":
        raised = p[order] * len(order) / rank
        p[order] = np.minimum(1, np.minimum.accumulate(raised[::-1])[::-1])
    return p


def compare_models(
    evaluation: Evaluation,
    score: str = "balanced_accuracy",
    *,
    reference: str | None = None,
    correction: str = "holm",
    n_draws: int = 2000,
    random_state: int = 0,
) -> pd.DataFrame:
    """Compare one model with all others on the same folds.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    score : str
        One of :data:`brainlsap.evaluation.SCORES`.
    reference : str, optional
        The model that is compared; by default the first.
    correction : {"fdr", "holm", "none"}
        How p-values are corrected for the number of comparisons.
    n_draws : int
        Bootstrap draws of people.
    random_state : int
        Seed of the bootstrap.

    Returns
    -------
    DataFrame
        One row per other model: model; difference, mean over folds of reference minus
        model; effect_size, that mean over its s.d.; wins, number of folds in which the
        reference is higher; t, p_value of :func:`corrected_t_test` and p_adjusted;
        p_naive, of the paired t-test that takes folds for independent; detectable,
        the difference that this design would find with 80% power at 5%; and low and
        high, the 95% interval of the pooled difference over people.

    Raises
    ------
    ParameterError
        Where a model, a score or a correction is unknown.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from brainlsap.data import make_cohort
    >>> from brainlsap.evaluation import cross_validate
    >>> models = {name: DummyClassifier(strategy=name) for name in ("prior", "uniform")}
    >>> cohort = make_cohort(60, atlas="desikan82")
    >>> evaluation = cross_validate(models, cohort, 3, baselines=False)
    >>> compare_models(evaluation, n_draws=50)["model"].tolist()
    ['uniform']
    """
    check_choice("score", score, SCORES)
    check_choice("correction", correction, ("fdr", "holm", "none"))
    main = evaluation.result(reference)
    drawn = bootstrap_draws(predictions_of(main), n_draws, random_state)[score]
    own = main.scores()[score].to_numpy()
    n_train, n_test = _people_in_folds(evaluation)
    rows = []
    for name, other in evaluation.results.items():
        if name == main.name:
            continue
        difference = own - other.scores()[score].to_numpy()
        # The same seed draws the same people for both models.
        theirs = bootstrap_draws(predictions_of(other), n_draws, random_state)[score]
        low, high = interval(drawn - theirs, 0.95)
        row = _test_row(difference, n_train, n_test)
        rows.append({"model": name, **row, "low": low, "high": high})
    frame = pd.DataFrame(rows)
    if len(frame):
        adjusted = adjust_p_values(frame["p_value"].to_numpy(), correction)
        frame.insert(7, "p_adjusted", adjusted)
    return frame


def _people_in_folds(evaluation: Evaluation) -> tuple[float, float]:
    people = evaluation.cohort.table["participant"].to_numpy()
    sizes = [[len(set(people[rows])) for rows in split] for split in evaluation.splits]
    n_train, n_test = np.mean(sizes, axis=0)
    return float(n_train), float(n_test)


def _test_row(
    difference: np.ndarray, n_train: float, n_test: float
) -> dict[str, float]:
    test = corrected_t_test(difference, n_train, n_test)
    return {
        "difference": test.mean,
        "effect_size": _effect_size(difference),
        "wins": int((difference > 0).sum()),
        "n_folds": len(difference),
        "t": test.t,
        "p_value": test.p_value,
        "p_naive": corrected_t_test(difference, n_train, 0).p_value,
        "detectable": _detectable(test.standard_error, len(difference)),
    }


def _effect_size(difference: np.ndarray) -> float:
    sd = difference.std(ddof=1) if len(difference) > 1 else 0.0
    return float(difference.mean() / sd) if sd > 0 else float("nan")


def _detectable(standard_error: float, n_folds: int) -> float:
    from scipy.stats import t as student

    if n_folds < 2 or not np.isfinite(standard_error):
        return float("nan")
    quantiles = student.ppf([0.975, POWER], n_folds - 1)
    return float(quantiles.sum() * standard_error)
