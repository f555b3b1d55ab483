"""How one scikit-learn classifier is seeded, fitted with groups, and asked."""

from collections.abc import Mapping
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.evaluation.covariate_steps import (
    has_covariate_steps,
    transform_with,
    transforming_steps,
)
from brainlsap.exceptions import ParameterError


def seeded(model: Any, seed: int) -> tuple[Any, dict[str, Any]]:
    """Give a seed to every `random_state` of a model that is None.

    Parameters
    ----------
    model : estimator
        A fresh clone; it is changed.
    seed : int
        Given to the model and to the models inside.

    Returns
    -------
    model : estimator
        The same object.
    told : dict
        Keys seeded (whether a seed was given) and parameters (as JSON takes them).

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> seeded(LogisticRegression(), 7)[0].random_state
    7
    """
    unset = [
        name
        for name, value in model.get_params(deep=True).items()
        if value is None and name.rsplit("__")[-1] == "random_state"
    ]
    if unset:
        model.set_params(**dict.fromkeys(unset, seed))
    return model, {
        "seeded": bool(unset),
        "parameters": plain(model.get_params(deep=False)),
    }


def fit_parameters(model: Any, groups: np.ndarray) -> dict[str, np.ndarray]:
    """Return the keyword by which a model's `fit` takes the person of each scan.

    Parameters
    ----------
    model : estimator
        Any classifier; pipelines hand `groups` to their last step, searches to their
        splitter.
    groups : array of length n_scans
        Participant of every scan.

    Returns
    -------
    dict
        Empty where `fit` has no use for groups.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> fit_parameters(DummyClassifier(), np.array(["a", "b"]))
    {}
    """
    from sklearn.pipeline import Pipeline

    if isinstance(model, Pipeline):
        step, last = model.steps[-1]
        inside = {} if last in (None, "passthrough") else fit_parameters(last, groups)
        return {f"{step}__{name}": value for name, value in inside.items()}
    # A searcher takes groups through **params; splitters that do not group warn.
    if "Group" in type(getattr(model, "cv", None)).__name__:
        return {"groups": groups}
    return {"groups": groups} if "groups" in signature(model.fit).parameters else {}


def fit_model(
    model: Any,
    X: np.ndarray,
    y: np.ndarray,
    groups: np.ndarray,
    covariates: pd.DataFrame,
) -> Any:
    """Fit a model; hand persons and covariates to the parts that take them.

    Parameters
    ----------
    model : estimator
        A fresh clone; it is fitted.
    X : array of shape (n_scans, n_rois, n_rois + n_features)
        Training scans.
    y, groups : arrays of length n_scans
        Label and participant of every scan.
    covariates : DataFrame of n_scans rows
        Given to the steps of a pipeline whose `transform` takes covariates, such as
        :class:`brainlsap.evaluation.CombatHarmonizer`.

    Returns
    -------
    estimator
        The same object.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> X, y = np.zeros((2, 3, 4)), np.array(["a", "b"])
    >>> fit_model(DummyClassifier(), X, y, y, pd.DataFrame(index=[0, 1])).classes_
    array(['a', 'b'], dtype='<U1')
    """
    if not has_covariate_steps(model):
        return model.fit(X, y, **fit_parameters(model, groups))
    for step in transforming_steps(model):
        given: dict[str, Any] = {"covariates": covariates, "groups": groups}
        known = signature(step.fit).parameters
        step.fit(X, y, **{name: one for name, one in given.items() if name in known})
        X = transform_with(step, X, covariates)
    last = model.steps[-1][1]
    last.fit(X, y, **fit_parameters(last, groups))
    return model


def inner_model(model: Any) -> Any:
    """Return the fitted model at the heart of a search or a pipeline.

    Parameters
    ----------
    model : estimator
        A fitted classifier.

    Returns
    -------
    estimator
        The best estimator's last step, or the model itself.
    """
    if hasattr(model, "best_estimator_"):
        return inner_model(model.best_estimator_)
    if hasattr(model, "steps"):
        return inner_model(model.steps[-1][1])
    return model


def class_probabilities(
    model: Any,
    X: np.ndarray,
    classes: tuple[str, ...],
    covariates: pd.DataFrame | None = None,
) -> tuple[np.ndarray, str]:
    """Ask a fitted model for the probability of every class.

    Parameters
    ----------
    model : estimator
        A fitted classifier with `classes_`.
    X : array of shape (n_scans, n_rois, n_rois + n_features)
        Test scans.
    classes : tuple of str
        Columns wanted; a class that the model never saw has probability 0.
    covariates : DataFrame of n_scans rows, optional
        As in :func:`fit_model`.

    Returns
    -------
    probability : array of shape (n_scans, n_classes)
        Rows sum to 1.
    source : str
        The method asked: predict_proba; decision_function, whose softmax (for two
        classes: logistic function) keeps the ranking but is not calibrated; or
        predict, which gives 0 and 1.

    Raises
    ------
    ParameterError
        Where the model returns NaN, or a class that the cohort has not.
    """
    if has_covariate_steps(model):
        for step in transforming_steps(model):
            X = transform_with(step, X, covariates)
        model = model.steps[-1][1]
    if hasattr(model, "predict_proba"):
        given, source = np.asarray(model.predict_proba(X)), "predict_proba"
    elif hasattr(model, "decision_function"):
        given, source = softmax_of(model.decision_function(X)), "decision_function"
    else:
        answer = np.asarray(model.predict(X))
        given = (answer[:, None] == np.asarray(model.classes_)[None, :]).astype(float)
        source = "predict"
    known = [str(name) for name in model.classes_]
    foreign = sorted(set(known) - set(classes))
    if foreign or not np.isfinite(given).all():
        fault = f"knows the class {foreign[0]!r}" if foreign else "predicts NaN"
        raise ParameterError(
            f"{type(model).__name__} {fault}; expected finite probabilities of the "
            f"cohort's classes {', '.join(classes)}."
        )
    probability = np.zeros((len(X), len(classes)))
    probability[:, [classes.index(name) for name in known]] = given
    return probability, source


def softmax_of(decision: np.ndarray) -> np.ndarray:
    """Turn decision values into numbers that sum to 1 and keep their order.

    Parameters
    ----------
    decision : array of shape (n_scans,) or (n_scans, n_classes)
        As `decision_function` gives them; one column stands for two classes.

    Returns
    -------
    array of shape (n_scans, n_classes)

    Examples
    --------
    >>> softmax_of(np.array([0.0, 1.0])).round(3)
    array([[0.5  , 0.5  ],
           [0.269, 0.731]])
    """
    from scipy.special import softmax

    decision = np.asarray(decision, dtype=np.float64)
    if decision.ndim == 1:
        decision = np.column_stack([np.zeros_like(decision), decision])
    return softmax(decision, axis=1)


def regional(model: Any, name: str, n_rois: int) -> np.ndarray | None:
    """Return a fitted model's value of every region, such as `scales_`.

    Parameters
    ----------
    model : estimator
        A fitted classifier.
    name : str
        Attribute that holds one value, or one per region.
    n_rois : int
        Number of regions.

    Returns
    -------
    array of shape (n_rois,) or None
        None where the model has no such attribute.
    """
    value = getattr(model, name, None)
    if value is None:
        return None
    return np.broadcast_to(np.asarray(value, dtype=np.float64), (n_rois,)).copy()


def plain(value: Any) -> Any:
    """Turn settings and reports into what JSON can hold.

    Parameters
    ----------
    value : object
        Numbers, text, None, arrays, and mappings and sequences of them; of anything
        else only the name of its kind is kept.

    Returns
    -------
    object
        NaN and infinity become None.

    Examples
    --------
    >>> plain({"C": np.float64(0.5), "grid": np.arange(2), "gap": float("nan")})
    {'C': 0.5, 'grid': [0, 1], 'gap': None}
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one) for one in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return type(value).__name__
