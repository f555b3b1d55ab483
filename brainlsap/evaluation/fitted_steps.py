"""Fitted steps ahead of a model as JSON takes them, and back; nothing is pickled."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from brainlsap.evaluation.covariate_design import CovariateDesign
from brainlsap.evaluation.harmonisation import CombatHarmonizer
from brainlsap.evaluation.residuals import ConfoundRegressor
from brainlsap.exceptions import FileFormatError, ParameterError

STEPS: dict[str, Any] = {
    one.__name__: one for one in (CombatHarmonizer, ConfoundRegressor)
}
"""Steps that can be kept, by name."""


def keep_step(step: Any) -> dict[str, Any]:
    """Return all that a fitted step knows, as JSON takes it.

    Parameters
    ----------
    step : CombatHarmonizer or ConfoundRegressor
        Fitted.

    Returns
    -------
    dict
        Numbers are exact: float64 in its shortest decimal form.

    Raises
    ------
    ParameterError
        For a step of another kind, or one that is not fitted.

    Examples
    --------
    See :func:`restore_step`.
    """
    kind = type(step).__name__
    state = getattr(step, "__dict__", {})
    fitted = {name: one for name, one in state.items() if name.endswith("_")}
    if kind not in STEPS or not fitted:
        raise ParameterError(
            f"step must be one of {', '.join(STEPS)}, fitted; got {kind}"
            f"{'' if fitted else ', not fitted'}."
        )
    parameters = {
        name: value if isinstance(value, str) else list(value)
        for name, value in step.get_params().items()
    }
    kept = {name: _keep(value) for name, value in fitted.items()}
    return {"kind": kind, "parameters": parameters, "fitted": kept}


def restore_step(kept: Mapping[str, Any]) -> Any:
    """Return the fitted step that was kept.

    Parameters
    ----------
    kept : mapping
        From :func:`keep_step`.

    Returns
    -------
    CombatHarmonizer or ConfoundRegressor
        It transforms as before, to the last bit.

    Raises
    ------
    FileFormatError
        Where that is no step.

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20, 3, 5))
    >>> ages = pd.DataFrame({"age": np.linspace(50, 80, 20)})
    >>> step = ConfoundRegressor(["age"]).fit(X, covariates=ages)
    >>> again = restore_step(keep_step(step))
    >>> one, other = (s.transform(X, covariates=ages) for s in (step, again))
    >>> bool((one == other).all())
    True
    """
    try:
        parameters = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in kept["parameters"].items()
        }
        step = STEPS[kept["kind"]](**parameters)
        for name, value in kept["fitted"].items():
            setattr(step, name, _restore(value))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise FileFormatError(
            f"a step kept with the model is damaged ({error}); expected one of "
            f"{', '.join(STEPS)}. Fit the model again."
        ) from error
    return step


def _keep(value: Any) -> Any:
    if isinstance(value, CovariateDesign):
        return {"design": asdict(value)}
    if isinstance(value, np.ndarray):
        return {"shape": list(value.shape), "values": value.reshape(-1).tolist()}
    return list(value)


def _restore(kept: Any) -> Any:
    if isinstance(kept, list):
        return tuple(map(str, kept))
    if "design" in kept:
        design = kept["design"]
        return CovariateDesign(**(design | {"columns": tuple(design["columns"])}))
    return np.array(kept["values"], dtype=np.float64).reshape(kept["shape"])
