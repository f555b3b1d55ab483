"""Steps of a pipeline that need covariates of the scans they transform."""

from inspect import signature
from typing import Any

import numpy as np
import pandas as pd


def has_covariate_steps(model: Any) -> bool:
    """Say whether a model is a pipeline with a step that transforms by covariates.

    Parameters
    ----------
    model : estimator
        Any.

    Returns
    -------
    bool
    """
    from sklearn.pipeline import Pipeline

    return isinstance(model, Pipeline) and any(
        _takes_covariates(step) for step in transforming_steps(model)
    )


def transforming_steps(model: Any) -> list[Any]:
    """Return the steps of a pipeline before the last, those that do nothing left out.

    Parameters
    ----------
    model : Pipeline
        Of scikit-learn.

    Returns
    -------
    list of transformers
    """
    steps = [step for _, step in model.steps[:-1]]
    return [one for one in steps if one is not None and not isinstance(one, str)]


def transform_with(
    step: Any, X: np.ndarray, covariates: pd.DataFrame | None
) -> np.ndarray:
    """Transform by one fitted step, with covariates where it takes them.

    Parameters
    ----------
    step : transformer
        Fitted.
    X : array
        What the step before gave.
    covariates : DataFrame of n_scans rows
        Of the scans of `X`.

    Returns
    -------
    array
    """
    given = {"covariates": covariates} if _takes_covariates(step) else {}
    return step.transform(X, **given)


def _takes_covariates(step: Any) -> bool:
    transform = getattr(step, "transform", None)
    return transform is not None and "covariates" in signature(transform).parameters
