"""Scores of models become tables."""

import numpy as np
import pandas as pd

from brainlsap.evaluation import SCORES, Evaluation
from brainlsap.evaluation.metrics import LOWER_IS_BETTER
from brainlsap.report.audit_tables import NOT_BY_PERSON


def score_table(evaluation: Evaluation, digits: int = 3) -> pd.DataFrame:
    """Return the scores of every model as "mean ± s.d." over folds.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    digits : int
        Decimals.

    Returns
    -------
    DataFrame
        One row per model in the order of the evaluation: model, then every score under
        its written-out name, which says where less is better. "n/a" where a score is
        undefined in every fold. Two classes have no stages between them: the stage
        error, which is then 1 - accuracy, is left out.

    Examples
    --------
    >>> spread_text(0.6251, 0.0449, 3), spread_text(0.6251, np.nan, 3)
    ('0.625 ± 0.045', '0.625')
    """
    numbers = score_numbers(evaluation)
    table = {"model": list(numbers["model"])}
    names = score_names(len(evaluation.cohort.classes))
    for name, label in names.items():
        title = f"{label} (less is better)" if name in LOWER_IS_BETTER else label
        table[title] = [
            spread_text(mean, sd, digits)
            for mean, sd in zip(
                numbers[f"{name}_mean"], numbers[f"{name}_sd"], strict=True
            )
        ]
    return mark_by_scan(pd.DataFrame(table), evaluation)


def mark_by_scan(frame: pd.DataFrame, evaluation: Evaluation) -> pd.DataFrame:
    """Return a table that says so where its folds share people.

    Parameters
    ----------
    frame : DataFrame
        Any table of scores or predictions.
    evaluation : Evaluation
        Where it comes from.

    Returns
    -------
    DataFrame
        With the column "folds" behind the others, or as it is where no person is on
        both sides of a fold.
    """
    return frame.assign(folds=NOT_BY_PERSON) if evaluation.people_shared else frame


def score_names(n_classes: int) -> dict[str, str]:
    """Return the scores that tables show, and what they call them.

    Parameters
    ----------
    n_classes : int
        Two classes have one AUC, Cohen's kappa and no stage error.

    Returns
    -------
    dict of str to str
        In the order of :data:`brainlsap.evaluation.SCORES`.

    Examples
    --------
    >>> list(score_names(2).values())[-2:]
    ['AUC', "Cohen's kappa"]
    """
    if n_classes != 2:
        return dict(SCORES)
    told = {**SCORES, "auc": "AUC", "kappa": "Cohen's kappa"}
    return {name: label for name, label in told.items() if name != "stage_error"}


def score_numbers(evaluation: Evaluation) -> pd.DataFrame:
    """Return mean and s.d. of every score of every model, as numbers.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.

    Returns
    -------
    DataFrame
        One row per model: model, then `<score>_mean` and `<score>_sd` for the names
        of :data:`brainlsap.evaluation.SCORES`.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from brainlsap.data import make_cohort
    >>> from brainlsap.evaluation import cross_validate
    >>> cohort = make_cohort(30, atlas="desikan82")
    >>> evaluation = cross_validate(DummyClassifier(), cohort, 2, baselines=False)
    >>> score_numbers(evaluation)[["model", "auc_mean"]]
                 model  auc_mean
    0  DummyClassifier       0.5
    """
    rows = []
    for model, result in evaluation.results.items():
        row: dict[str, object] = {"model": model}
        for name, summary in result.summary().iterrows():
            row[f"{name}_mean"], row[f"{name}_sd"] = summary["mean"], summary["sd"]
        rows.append(row)
    return mark_by_scan(pd.DataFrame(rows), evaluation)


def spread_text(mean: float, sd: float, digits: int = 3) -> str:
    """Return "mean ± s.d."; the mean alone without s.d.; "n/a" without mean.

    Parameters
    ----------
    mean, sd : float
        NaN where undefined.
    digits : int
        Decimals.

    Returns
    -------
    str
    """
    if not np.isfinite(mean):
        return "n/a"
    text = f"{mean:.{digits}f}"
    return f"{text} ± {sd:.{digits}f}" if np.isfinite(sd) else text
