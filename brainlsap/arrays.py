"""Checks of arrays, and the packed array that scikit-learn sees.

A scan is one block of `X`: its connectome first, its features behind, so `X` has
shape `(n_scans, n_rois, n_rois + n_features)` and `X.shape[1]` tells where to split.
Features that were not measured are NaN; connectomes are finite.
"""

import warnings
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.exceptions import ParameterError

# Weights and features may be as large: their squares then fit into float32.
LARGEST = 1e18


def fill_masked(values: Any) -> Any:
    """Return values without a mask: NaN, or None where they are no numbers.

    Also of masked arrays, and single masked values, in lists. NumPy drops masks without
    a word where such values are put into a plain array.
    """
    if values is np.ma.masked:
        return np.nan
    if isinstance(values, np.ma.MaskedArray):
        if not np.ma.is_masked(values):
            return values.data
        if values.dtype.kind in "biu":
            values = values.astype(np.float64)
        if values.dtype.kind == "f":
            return values.filled(np.nan)
        cells = values.data.astype(object)
        cells[np.ma.getmaskarray(values)] = None
        return cells
    if isinstance(values, list | tuple):
        return [fill_masked(value) for value in values]
    return values


def as_number_array(values: Any) -> np.ndarray:
    """Return numbers as a plain array, NaN where they are masked or missing.

    Plain arrays of numbers are returned as they are. Of pandas, the nullable types
    (`pd.NA`) and categories of numbers are read, too. Raises TypeError or ValueError
    where there are others than numbers.
    """
    array = np.asarray(fill_masked(values))
    if array.dtype.kind in "uifb":
        return array
    if array.dtype.kind in "mMc":
        raise ValueError(f"{array.dtype} is no type of real numbers")
    if array.dtype.kind == "O":
        array = np.where(pd.isna(array), np.nan, array)
    return array.astype(float)


def plain_column(values: Any) -> pd.Series:
    """Return a column in NumPy's types or pandas' text, missing where masked or NA."""
    values = fill_masked(values)
    is_extension = pd.api.types.is_extension_array_dtype(values)
    is_typed = is_extension or isinstance(values, pd.Series)
    column = pd.Series(values if is_typed else list(values)).reset_index(drop=True)
    is_missing = column.isna()
    is_nullable = getattr(column.dtype, "na_value", None) is pd.NA
    is_category = isinstance(column.dtype, pd.CategoricalDtype)
    has_na = column.dtype == object and any(x is pd.NA for x in column[is_missing])
    if not (is_nullable or is_category or has_na):
        return column
    cells = column.astype(object).where(~is_missing, None)
    if is_missing.any() and cells.dropna().map(type).eq(bool).all():
        return cells.astype(float)  # truth values, some of them missing
    return pd.Series(cells.tolist())


def plain_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with every column as `plain_column` makes it, rows counted."""
    columns = [plain_column(table.iloc[:, i]) for i in range(table.shape[1])]
    if not columns:
        return table.reset_index(drop=True)
    plain = pd.concat(columns, axis=1)
    plain.columns = table.columns
    return plain


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
    if np.ma.is_masked(groups):
        raise ParameterError("groups has masked entries; name the person of each scan.")
    groups = np.arange(n_scans) if groups is None else np.asarray(groups)
    if groups.shape != (n_scans,):
        raise ParameterError(
            f"groups must have shape ({n_scans},), got {groups.shape}."
        )
    return groups


def pack(
    connectomes: np.ndarray, features: np.ndarray, rows: np.ndarray | None = None
) -> np.ndarray:
    """Join connectomes and features to the packed array, float32, of some rows.

    What is masked becomes NaN.
    """
    connectomes, features = as_number_array(connectomes), as_number_array(features)
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
