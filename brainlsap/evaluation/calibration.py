"""Calibration of probabilities: slope and intercept of every class against the rest."""

import numpy as np
import pandas as pd

from brainlsap.evaluation.results import Evaluation

_N_STEPS = 50
_NORMAL_QUANTILE = 1.959963984540054
# Probabilities of 0 and 1 have no finite log-odds.
_SMALLEST_PROBABILITY = 1e-9
# A larger slope means that the class and the rest are separated.
_MAX_SLOPE = 100.0


def calibration_table(evaluation: Evaluation, model: str | None = None) -> pd.DataFrame:
    r"""Return how the probabilities of every class agree with its frequency.

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
        slope_high, intercept, intercept_low, intercept_high. Every person counts once;
        95 % intervals are by robust standard errors over people. NaN where a class
        has no people, or is separated from the rest. No rows without probabilities.
    """
    model = model or evaluation.models[0]
    rows = evaluation.predictions[evaluation.predictions["model"] == model]
    columns = [f"p_{name}" for name in evaluation.cohort.classes]
    table_rows = []
    if not rows[columns].isna().any(axis=None):
        person = pd.factorize(rows["participant"])[0]
        weights = 1 / np.bincount(person)[person]
        for class_name, column in zip(evaluation.cohort.classes, columns, strict=True):
            probability = rows[column].to_numpy(float)
            is_class = (rows["truth"] == class_name).to_numpy()
            table_rows.append(
                {
                    "class": class_name,
                    "people": int(rows["participant"][is_class].nunique()),
                    "mean_probability": float(np.average(probability, weights=weights)),
                    "frequency": float(np.average(is_class, weights=weights)),
                    **_fit_calibration(probability, is_class, person, weights),
                }
            )
    return pd.DataFrame(table_rows)


def _fit_calibration(
    probability: np.ndarray, is_class: np.ndarray, person: np.ndarray, w: np.ndarray
) -> dict[str, float]:
    """Return slope and intercept of one class, with 95 % intervals."""
    p = probability.clip(_SMALLEST_PROBABILITY, 1 - _SMALLEST_PROBABILITY)
    log_odds = np.log(p) - np.log1p(-p)
    ones = np.ones_like(log_odds)
    zeros = np.zeros_like(log_odds)
    y = is_class.astype(float)
    line, line_se = _logistic(np.column_stack([ones, log_odds]), zeros, y, person, w)
    level, level_se = _logistic(ones[:, None], log_odds, y, person, w)
    slope, slope_se = line[1], line_se[1]
    return {
        "slope": slope,
        "slope_low": slope - _NORMAL_QUANTILE * slope_se,
        "slope_high": slope + _NORMAL_QUANTILE * slope_se,
        "intercept": level[0],
        "intercept_low": level[0] - _NORMAL_QUANTILE * level_se[0],
        "intercept_high": level[0] + _NORMAL_QUANTILE * level_se[0],
    }


def _logistic(
    X: np.ndarray, offset: np.ndarray, y: np.ndarray, person: np.ndarray, w: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients and robust standard errors of a weighted logistic fit.

    Newton's method; NaN where there is no finite maximum.
    """
    undefined = np.full(X.shape[1], np.nan)
    if y.min() == y.max() or np.linalg.matrix_rank(X) < X.shape[1]:
        return undefined, undefined
    coefficients = np.zeros(X.shape[1])
    step = np.full(X.shape[1], np.inf)
    information = np.eye(X.shape[1])
    mu = np.full(len(y), 0.5)
    for _ in range(_N_STEPS):
        mu = 1 / (1 + np.exp(-(X @ coefficients + offset).clip(-500, 500)))
        information = (X * (w * mu * (1 - mu))[:, None]).T @ X
        if np.linalg.cond(information) > 1e12:
            return undefined, undefined
        step = np.linalg.solve(information, X.T @ (w * (y - mu)))
        coefficients = coefficients + step.clip(-2, 2)
        if np.abs(step).max() < 1e-10:
            break
    if np.abs(step).max() > 1e-6 or np.abs(coefficients).max() > _MAX_SLOPE:
        return undefined, undefined
    person_scores = np.zeros((person.max() + 1, X.shape[1]))
    np.add.at(person_scores, person, X * (w * (y - mu))[:, None])
    inverse = np.linalg.inv(information)
    covariance = inverse @ (person_scores.T @ person_scores) @ inverse
    return coefficients, np.sqrt(np.diag(covariance))
