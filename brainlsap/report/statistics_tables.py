"""Intervals, rates of classes and comparisons of models become tables."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from brainlsap.evaluation import (
    POOLED_SCORES,
    Evaluation,
    class_table,
    compare_models,
    pooled_scores,
)
from brainlsap.report.score_tables import mark_by_scan, score_names, spread_text

SHOWN = ("balanced_accuracy", "auc", "kappa", "adjacent_accuracy", "brier", "ece")
N_DRAWS = 1000


def interval_table(evaluation: Evaluation, digits: int = 3) -> pd.DataFrame:
    """Return pooled scores of every model with their 95% intervals over people.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    digits : int
        Decimals.

    Returns
    -------
    DataFrame
        One row per model: model, then "estimate [low, high]" for balanced accuracy,
        AUC, kappa, accuracy within one stage (not with two classes), Brier score and
        calibration error.

    Examples
    --------
    >>> interval_text(0.6251, 0.58, 0.669, 2)
    '0.63 [0.58, 0.67]'
    """
    two = len(evaluation.cohort.classes) == 2
    names = {**POOLED_SCORES, **score_names(len(evaluation.cohort.classes))}
    shown = [name for name in SHOWN if not (two and name == "adjacent_accuracy")]
    rows = []
    for model, result in evaluation.results.items():
        found = pooled_scores(result, N_DRAWS)
        texts = [_cell(found.loc[name].to_numpy(), digits) for name in shown]
        titles = [_title(name, names[name]) for name in shown]
        rows.append({"model": model, **dict(zip(titles, texts, strict=True))})
    return mark_by_scan(pd.DataFrame(rows), evaluation)


def class_rate_table(evaluation: Evaluation, model: str | None = None) -> pd.DataFrame:
    """Return sensitivity, specificity and predictive value of every class.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    model : str, optional
        Which; by default the first.

    Returns
    -------
    DataFrame
        One row per class: class, people, scans and the three rates as
        "estimate [low, high]", 95% intervals over people.

    Examples
    --------
    See :func:`brainlsap.report.interval_table`.
    """
    found = class_table(evaluation.result(model), N_DRAWS)
    table = found[["class", "people", "scans"]].copy()
    for rate in ("sensitivity", "specificity", "predictive_value"):
        columns = [found[rate], found[f"{rate}_low"], found[f"{rate}_high"]]
        table[rate.replace("_", " ")] = [
            _cell(row, 2) for row in zip(*columns, strict=True)
        ]
    return mark_by_scan(table, evaluation)


def comparison_table(evaluation: Evaluation, digits: int = 3) -> pd.DataFrame:
    """Return how the first model compares with every other, in balanced accuracy.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    digits : int
        Decimals.

    Returns
    -------
    DataFrame
        One row per other model, as of :func:`brainlsap.evaluation.compare_models`;
        empty where there is one model.

    Examples
    --------
    See :func:`brainlsap.report.interval_table`.
    """
    found = compare_models(evaluation, n_draws=N_DRAWS)
    rows = [
        {
            f"{evaluation.main.name} minus": row["model"],
            "difference": f"{row['difference']:+.{digits}f}",
            "95% interval over people": _bounds(row["low"], row["high"], digits),
            "higher in folds": f"{row['wins']} of {row['n_folds']}",
            "effect size": _number(row["effect_size"], 2),
            "corrected p": _number(row["p_value"], digits),
            "Holm p": _number(row["p_adjusted"], digits),
            "uncorrected p": _number(row["p_naive"], digits),
            "detectable": _number(row["detectable"], digits),
        }
        for row in found.to_dict("records")
    ]
    return mark_by_scan(pd.DataFrame(rows), evaluation)


def division_table(by_person: Evaluation, by_scan: Evaluation) -> pd.DataFrame:
    """Return balanced accuracy by person and by scan side by side, and the gap.

    Parameters
    ----------
    by_person : Evaluation
        On folds that never share a person.
    by_scan : Evaluation
        The same models on folds that do.

    Returns
    -------
    DataFrame
        One row per model: model, by person, by scan ("mean ± s.d." over folds), gap.

    Examples
    --------
    See :func:`brainlsap.report.interval_table`.
    """
    rows = []
    for name, result in by_person.results.items():
        both = [result.scores(), by_scan.result(name).scores()]
        means = [one["balanced_accuracy"].mean() for one in both]
        texts = [
            spread_text(mean, one["balanced_accuracy"].std(ddof=1))
            for mean, one in zip(means, both, strict=True)
        ]
        rows.append((name, *texts, f"{means[1] - means[0]:+.3f}"))
    columns = ["model", "by person", "by scan: people shared", "gap"]
    return pd.DataFrame(rows, columns=columns)


def interval_text(estimate: float, low: float, high: float, digits: int = 3) -> str:
    """Return "estimate [low, high]", or "n/a" where there is no estimate.

    Parameters
    ----------
    estimate, low, high : float
        NaN where undefined.
    digits : int
        Decimals.

    Returns
    -------
    str
    """
    if not np.isfinite(estimate):
        return "n/a"
    return f"{estimate:.{digits}f} {_bounds(low, high, digits)}"


def _cell(row: Iterable[float], digits: int) -> str:
    estimate, low, high = row
    return interval_text(estimate, low, high, digits)


def _bounds(low: float, high: float, digits: int) -> str:
    return f"[{low:.{digits}f}, {high:.{digits}f}]" if np.isfinite(low) else "[n/a]"


def _number(value: float, digits: int) -> str:
    if not np.isfinite(value):
        return "n/a"
    least = 10.0**-digits
    return f"< {least:g}" if 0 <= value < least else f"{value:.{digits}f}"


def _title(name: str, label: str) -> str:
    return f"{label} (less is better)" if name in ("brier", "ece") else label
