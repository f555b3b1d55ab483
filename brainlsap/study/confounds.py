"""Models behind steps that take out sites and covariates, inside every fold."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from brainlsap.evaluation.covariate_design import find_column
from brainlsap.evaluation.harmonisation import CombatHarmonizer
from brainlsap.evaluation.residuals import ConfoundRegressor

PRESERVED = ("age", "sex")


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
        Of the cohort; only its columns are looked at.
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
        Where the table has no such column.

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
        Of the cohort; only its columns are looked at.
    harmonize, regress_out, unseen
        As for :func:`without_confounds`.

    Returns
    -------
    list of (str, transformer)

    Raises
    ------
    ParameterError
        Where the table has no such column.

    Examples
    --------
    >>> confound_steps(pd.DataFrame(columns=["age"]), regress_out=["age"])[0][0]
    'regression'
    """
    steps: list[tuple[str, Any]] = []
    if harmonize:
        find_column(table, harmonize)
        names = {str(name).lower() for name in table.columns}
        preserve = tuple(name for name in PRESERVED if name in names)
        steps.append(("combat", CombatHarmonizer(harmonize, preserve, unseen)))
    if regress_out:
        for name in regress_out:
            find_column(table, name)
        steps.append(("regression", ConfoundRegressor(tuple(regress_out))))
    return steps
