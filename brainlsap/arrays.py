"""Checks of arrays, and the packed array that scikit-learn sees.

A scan is one block of `X`: its connectome first, its features behind, so `X` has
shape `(n_scans, n_rois, n_rois + n_features)` and `X.shape[1]` tells where to split.
Features that were not measured are NaN; connectomes are finite.
"""

import warnings

import numpy as np

from brainlsap.exceptions import ParameterError

# Weights and features may be as large: their squares then fit into float32.
LARGEST = 1e18


def check_connectomes(W: np.ndarray) -> None:
    """Raise unless every weight of (n_scans, n_rois, n_rois) is finite and not < 0."""
    # NaN is the smallest and the largest of its scan, and needs no mask
    lowest, highest = W.min(axis=(1, 2)), W.max(axis=(1, 2))
    bad = np.flatnonzero(~((lowest >= 0) & (highest <= LARGEST)))
    if bad.size:
        raise ParameterError(
            "connectomes must be finite and not negative; that of row "
            f"{bad[0]} of X is not. Leave the scan out or mend it; of correlations "
            "Cohort.from_arrays(..., negative='drop').to_array() sets those below 0 "
            "to 0."
        )


def check_features(features: np.ndarray) -> None:
    """Raise unless every feature is NaN or a number of a size that can be squared."""
    bad = np.argwhere(np.abs(features) > LARGEST)
    if len(bad):
        raise ParameterError(
            "features must be finite, or NaN where not measured, and at most "
            f"{LARGEST:g} in size; got {features[tuple(bad[0])]:g} in row {bad[0][0]} "
            "of X. Mend it, or give the feature in another unit."
        )


def check_groups(
    groups: np.ndarray | None, n_scans: int, consequence: str | None
) -> np.ndarray:
    """Return the participant of every scan; warn where that is a guess.

    Parameters
    ----------
    groups : array of shape (n_scans,) or None
    n_scans : int
    consequence : str or None
        Where a person's visits may end up; without it nothing is said.
    """
    if groups is None and consequence:
        warnings.warn(
            "fit without groups takes every scan for a person of its own: visits of "
            f"one person may be on both sides of {consequence}. Pass groups=people; "
            "after sklearn.set_config(enable_metadata_routing=True) searches and "
            'pipelines hand them on, and cross_val_score(params={"groups": people}). '
            "Stacking does not: there cv= must be a list of folds by person.",
            UserWarning,
            stacklevel=3,
        )
    groups = np.arange(n_scans) if groups is None else np.asarray(groups)
    if groups.shape != (n_scans,):
        raise ParameterError(
            f"groups must have shape ({n_scans},), got {groups.shape}."
        )
    return groups


def pack(
    connectomes: np.ndarray, features: np.ndarray, rows: np.ndarray | None = None
) -> np.ndarray:
    """Join connectomes and features to the packed array, float32, of some rows."""
    wanted = np.arange(len(features)) if rows is None else np.asarray(rows)
    n_rois, n_features = features.shape[1:]
    X = np.empty((len(wanted), n_rois, n_rois + n_features), dtype=np.float32)
    for place, row in enumerate(wanted):  # scan by scan: no second copy in memory
        X[place, :, :n_rois] = connectomes[row]
        X[place, :, n_rois:] = features[row]
    return X


def unpack(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split the packed array into connectomes and features (views, no copy)."""
    if X.ndim != 3 or X.shape[2] <= X.shape[1]:
        raise ParameterError(
            "X must have shape (n_scans, n_rois, n_rois + n_features) with at least "
            f"one feature, got {X.shape}. Cohort.to_array() makes such an array."
        )
    n_rois = X.shape[1]
    return X[..., :n_rois], X[..., n_rois:]
