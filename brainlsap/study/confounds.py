"""Models behind steps that take out sites and covariates, inside every fold."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from brainlsap.evaluation.covariate_design import find_column
from brainlsap.evaluation.harmonisation import CombatHarmonizer
from brainlsap.evaluation.residuals import ConfoundRegressor
from brainlsap.exceptions import ParameterError

PRESERVED = ("age", "sex")
NO_CONFOUNDS = {
    "label": "what is to be predicted",
    "participant": "who was scanned",
    "scan": "the name of every scan",
}
MOST_GROUPS = 5
"""Text of more kinds is no groups, where there is a kind for every second person."""


def without_confounds(
    models: Mapping[str, Any],
    table: pd.DataFrame,
    *,
    harmonize: str | None = None,
    regress_out: Sequence[str] = (),
    unseen: str = "keep",
) -> dict[str, Any]:
    """Put ComBat and a regression on covariates ahead of every model.

    Both are fitted on the training scans of each fold only, and never see the label.
    ComBat keeps what age and sex explain, where the table has them; the regression
    comes after it.

    Parameters
    ----------
    models : mapping of str to classifier
        Unfitted.
    table : DataFrame
        Of the cohort; nothing is learned from it.
    harmonize : str, optional
        Column of the site, scanner or phase.
    regress_out : sequence of str
        Columns such as age, sex and etiv.
    unseen : {"keep", "error"}
        Whether scans of sites that training did not see are left as they are, with a
        warning, or refused.

    Returns
    -------
    dict of str to classifier
        The models themselves, where nothing is asked for.

    Raises
    ------
    ParameterError
        Where the table has no such column, it is the label or a name, each of its
        values has one label only, or it holds text where numbers are expected.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> table = pd.DataFrame(columns=["site", "age"])
    >>> asked = {"harmonize": "site", "regress_out": ["age"]}
    >>> model = without_confounds({"x": DummyClassifier()}, table, **asked)["x"]
    >>> list(model.named_steps)
    ['combat', 'regression', 'model']
    """
    from sklearn.base import clone
    from sklearn.pipeline import Pipeline

    steps = confound_steps(
        table, harmonize=harmonize, regress_out=regress_out, unseen=unseen
    )
    if not steps:
        return dict(models)
    return {
        name: Pipeline([(step, clone(one)) for step, one in steps] + [("model", model)])
        for name, model in models.items()
    }


def confound_steps(
    table: pd.DataFrame,
    *,
    harmonize: str | None = None,
    regress_out: Sequence[str] = (),
    unseen: str = "keep",
) -> list[tuple[str, Any]]:
    """Return ComBat and the regression by name, unfitted, as they are asked for.

    Parameters
    ----------
    table : DataFrame
        Of the cohort; nothing is learned from it.
    harmonize, regress_out, unseen
        As for :func:`without_confounds`.

    Returns
    -------
    list of (str, transformer)

    Raises
    ------
    ParameterError
        Where the table has no such column, it is the label or a name, each of its
        values has one label only, or it holds text where numbers are expected.

    Examples
    --------
    >>> confound_steps(pd.DataFrame(columns=["age"]), regress_out=["age"])[0][0]
    'regression'
    """
    steps: list[tuple[str, Any]] = []
    if harmonize:
        _check_confound(table, harmonize)
        names = {str(name).lower() for name in table.columns}
        preserve = tuple(name for name in PRESERVED if name in names)
        for name in preserve:
            _check_values(table, find_column(table, name))
        steps.append(("combat", CombatHarmonizer(harmonize, preserve, unseen)))
    if regress_out:
        for name in regress_out:
            _check_values(table, _check_confound(table, name))
        steps.append(("regression", ConfoundRegressor(tuple(regress_out))))
    return steps


def _check_confound(table: pd.DataFrame, name: str) -> str:
    """Return the column that is meant, unless it is the label, or all but that."""
    column = find_column(table, name)
    if column in NO_CONFOUNDS:
        raise ParameterError(
            f"{column!r} is {NO_CONFOUNDS[column]}, and cannot be taken out of the "
            "features; name a column such as site, age or sex."
        )
    if not {"label", "participant"} <= set(table.columns):
        return column
    values = table[column].dropna().astype(str)
    labels = table["label"][values.index].groupby(values)
    several = table["label"].nunique() > 1 and labels.ngroups > 1
    shared = 2 * labels.ngroups <= table["participant"].nunique()
    if several and shared and labels.nunique().max() == 1:
        raise ParameterError(
            f"each value of {column} goes with one label only (all of "
            f"{values.iloc[0]!r} are {table['label'][values.index[0]]!r}): taking it "
            "out takes out what is to be predicted. Leave it out, and report what "
            "the column tells alone (brainlsap audit)."
        )
    return column


def _check_values(table: pd.DataFrame, column: str) -> None:
    """Raise for a column of numbers that were written as text."""
    values = table[column].dropna()
    text = values[pd.to_numeric(values, errors="coerce").isna()].astype(str)
    numbers = values.drop(text.index).nunique()
    mixed = len(text) > 0 and numbers > MOST_GROUPS
    n_people = table["participant"].nunique() if "participant" in table else len(table)
    kinds = text.nunique()
    if mixed or (kinds > MOST_GROUPS and 2 * kinds > n_people):
        counted = f"{kinds} kind{'s' * (kinds > 1)} for {n_people} people"
        raise ParameterError(
            f"the column {column} holds text such as {text.iloc[0]!r} ({counted}), "
            "neither numbers nor groups. Write numbers with a dot and without a unit, "
            "n/a where one is unknown, or leave it out."
        )
