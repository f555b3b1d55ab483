"""Small checks of arguments and arrays, and the packed array that scikit-learn sees.

A scan is packed as one block of `X`: the connectome first, the features behind, so
`X` has shape `(n_scans, n_rois, n_rois + n_features)` and the split is implied by
`X.shape[1]`. Unmeasured feature values are NaN; connectomes are finite.
"""

from collections.abc import Collection
from numbers import Real

import numpy as np

from brainlsap._scratch import new_array, release, row_blocks
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


LARGEST = np.float64(1e100)
"""Weights and features may be as large: sums of their squares can then be told."""


def check_connectomes(W: np.ndarray, first_row: int = 0, when: str = "") -> None:
    """Raise unless every weight is finite, not negative and at most 1e100.

    Parameters
    ----------
    W : array of shape (n_scans, n_rois, n_rois)
    first_row : int
        Number of the first scan, for the message.
    when : str
        What was done to them before, for the message.

    Raises
    ------
    ParameterError
        Naming the first row that is not so.

    Examples
    --------
    >>> check_connectomes(np.ones((2, 3, 3)))
    """
    # NaN is the smallest and the largest of its scan, and needs no mask
    lowest, highest = W.min(axis=(1, 2)), W.max(axis=(1, 2))
    bad = np.flatnonzero(~((lowest >= 0) & (highest <= LARGEST)))
    if bad.size:
        raise ParameterError(
            f"connectomes must be finite, at most {LARGEST:g}{when} and not negative; "
            f"that of row {first_row + bad[0]} of X is not. Leave the scan out or mend "
            "its connectome."
        )


def check_features(features: np.ndarray) -> None:
    """Raise unless every feature is NaN or a number up to 1e100 in size.

    Parameters
    ----------
    features : array of shape (n_scans, ...)

    Raises
    ------
    ParameterError
        Naming the first row that is not so.

    Examples
    --------
    >>> check_features(np.array([[1.0, np.nan]]))
    """
    bad = np.argwhere(np.abs(features) > LARGEST)
    if len(bad):
        raise ParameterError(
            "features must be finite, or NaN where not measured, and at most "
            f"{LARGEST:g} in size; got {features[tuple(bad[0])]:g} in row {bad[0][0]} "
            "of X. Mend it, or give the feature in another unit."
        )


def power_of_two(values: np.ndarray) -> np.ndarray:
    """Return units in which the numbers of each column are about 1.

    Squares of very small and very large numbers leave the range of doubles; divided
    by a power of two first they do not, and no digit changes.

    Parameters
    ----------
    values : array of shape (n_rows, ...)
        Finite.

    Returns
    -------
    array of shape (...)
        Powers of two; 1 where a column is 0.

    Examples
    --------
    >>> power_of_two(np.array([[3.0, 0.0], [-5.0, 0.0]]))
    array([4., 1.])
    """
    largest = np.abs(values).max(axis=0, initial=0.0)
    exponent = np.frexp(largest)[1] - 1
    return np.ldexp(1.0, np.where(largest > 0, np.maximum(exponent, -1000), 0))


def root_mean_square(values: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return the root of the mean square of each column, whatever the unit.

    Parameters
    ----------
    values : array of shape (n_rows, ...)
        Finite; 0 where there is no value.
    count : int array of shape (...)
        How many values each column has.

    Returns
    -------
    array of shape (...)
        Of numbers centred before, their standard deviation.

    Examples
    --------
    >>> root_mean_square(np.array([[3e-200], [-3e-200], [0.0]]), np.array([2]))
    array([3.e-200])
    """
    unit = power_of_two(values)
    return unit * np.sqrt(((values / unit) ** 2).sum(axis=0) / count)


def pack(
    connectomes: np.ndarray, features: np.ndarray, rows: np.ndarray | None = None
) -> np.ndarray:
    """Join connectomes and features to the packed array.

    Parameters
    ----------
    connectomes : array of shape (n_scans, n_rois, n_rois)
    features : array of shape (n_scans, n_rois, n_features)
        Unmeasured values are NaN.
    rows : int array, optional
        Scans to pack, by default all.

    Returns
    -------
    array of shape (n_scans, n_rois, n_rois + n_features)
        float64; mapped to a file where it is large, see :mod:`brainlsap._scratch`.

    Examples
    --------
    >>> pack(np.zeros((2, 3, 3)), np.ones((2, 3, 1))).shape
    (2, 3, 4)
    """
    wanted = np.arange(len(features)) if rows is None else np.asarray(rows)
    n_rois, n_features = features.shape[1:]
    X = new_array((len(wanted), n_rois, n_rois + n_features))
    for part in row_blocks(X):
        X[part, :, :n_rois] = connectomes[wanted[part]]
        X[part, :, n_rois:] = features[wanted[part]]
        release(connectomes)
    return X


def unpack(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split the packed array into connectomes and features (views, no copy).

    The features of a large array are better read by :func:`features_of`.

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


def features_of(X: np.ndarray) -> np.ndarray:
    """Return a copy of the features alone, which lie far apart in a packed array.

    Parameters
    ----------
    X : array of shape (n_scans, n_rois, n_rois + n_features)

    Returns
    -------
    array of shape (n_scans, n_rois, n_features)

    Raises
    ------
    ParameterError
        As :func:`unpack` and :func:`check_features`.

    Examples
    --------
    >>> features_of(np.ones((2, 3, 4))).shape
    (2, 3, 1)
    """
    _, features = unpack(X)
    copied = np.empty(features.shape, features.dtype)
    for part in row_blocks(X):
        copied[part] = features[part]
    check_features(copied)
    return copied
