"""Small checks of arguments and arrays, and the packed array that scikit-learn sees.

A scan is packed as one block of `X`: the connectome first, the features behind, so
`X` has shape `(n_scans, n_rois, n_rois + n_features)` and the split is implied by
`X.shape[1]`. Unmeasured feature values are NaN; connectomes are finite.
"""

from collections.abc import Collection
from numbers import Real

import numpy as np

from brainlsap.exceptions import ParameterError


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Raise unless `value` is one of `choices`; the message lists them.

    Examples
    --------
    >>> check_choice("kernel", "fourier", ["exact", "chebyshev"])
    Traceback (most recent call last):
    brainlsap.exceptions.ParameterError: kernel must be one of ...
    """
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in sorted(choices))
        raise ParameterError(f"{name} must be one of {listed}; got {value!r}.")


def check_at_least(name: str, value: object, lowest: float) -> None:
    """Raise unless `value` is a finite number and at least `lowest`.

    Examples
    --------
    >>> check_at_least("n_folds", 1, 2)
    Traceback (most recent call last):
    brainlsap.exceptions.ParameterError: n_folds must be at least 2, got 1.
    """
    if not isinstance(value, Real) or not lowest <= float(value) < float("inf"):
        raise ParameterError(f"{name} must be at least {lowest}, got {value!r}.")


def pack(connectomes: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Join connectomes and features to the packed array.

    Parameters
    ----------
    connectomes : array of shape (n_scans, n_rois, n_rois)
    features : array of shape (n_scans, n_rois, n_features)
        Unmeasured values are NaN.

    Returns
    -------
    array of shape (n_scans, n_rois, n_rois + n_features)
        float64.

    Examples
    --------
    >>> pack(np.zeros((2, 3, 3)), np.ones((2, 3, 1))).shape
    (2, 3, 4)
    """
    return np.concatenate([connectomes, features], axis=2, dtype=np.float64)


def unpack(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split the packed array into connectomes and features (views, no copy).

    Parameters
    ----------
    X : array of shape (n_scans, n_rois, n_rois + n_features)

    Returns
    -------
    connectomes : array of shape (n_scans, n_rois, n_rois)
    features : array of shape (n_scans, n_rois, n_features)

    Raises
    ------
    ParameterError
        Where `X` has other axes, or holds no feature behind the connectome.

    Examples
    --------
    >>> connectomes, features = unpack(np.zeros((2, 3, 4)))
    >>> connectomes.shape, features.shape
    ((2, 3, 3), (2, 3, 1))
    """
    if X.ndim != 3 or X.shape[2] <= X.shape[1]:
        raise ParameterError(
            "X must have shape (n_scans, n_rois, n_rois + n_features) with at least "
            f"one feature, got {X.shape}. Cohort.to_array() makes such an array."
        )
    n_rois = X.shape[1]
    return X[..., :n_rois], X[..., n_rois:]
