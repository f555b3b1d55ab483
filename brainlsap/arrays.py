"""Checks of arrays, their plain forms, and the packed array that estimators take.

`X[i]` is the connectome of scan i followed by its features, so `X` has shape
`(n_scans, n_rois, n_rois + n_features)` and splits at column `X.shape[1]`. Features
that were not measured are NaN; connectomes are finite.
"""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.exceptions import ParameterError

# Largest absolute value allowed; its square still fits in float32.
MAX_ABSOLUTE = 1e18
# Maximum difference of the two triangles by rounding, relative to the largest weight.
MAX_ASYMMETRY = 1e-5
_LABEL_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)", re.ASCII)

EditFunction = Callable[[np.ndarray], np.ndarray]


def fill_masked_values(array_like: Any) -> Any:
    """Return values with masked entries replaced by NaN, or by None if not numeric.

    Lists are searched for masked arrays and masked values, too. NumPy drops masks
    silently if such values are put into a plain array.
    """
    if array_like is np.ma.masked:
        return np.nan
    if isinstance(array_like, np.ma.MaskedArray):
        if not np.ma.is_masked(array_like):
            return array_like.data
        if array_like.dtype.kind in "biu":
            array_like = array_like.astype(np.float64)
        if array_like.dtype.kind == "f":
            return array_like.filled(np.nan)
        object_cells = array_like.data.astype(object)
        object_cells[np.ma.getmaskarray(array_like)] = None
        return object_cells
    if isinstance(array_like, list | tuple):
        return [fill_masked_values(list_item) for list_item in array_like]
    return array_like


def as_number_array(array_like: Any) -> np.ndarray:
    """Return numbers as a plain array, NaN if masked or missing.

    Plain arrays of numbers are returned unchanged, and so are packed scans. pandas'
    nullable types (`pd.NA`) and categories of numbers are converted. Raises TypeError
    or ValueError if a value is not a number.
    """
    if isinstance(array_like, PackedScans):
        return array_like  # type: ignore[return-value]
    number_array = np.asarray(fill_masked_values(array_like))
    if number_array.dtype.kind in "uifb":
        return number_array
    if number_array.dtype.kind in "mMc":
        raise ValueError(
            f"{number_array.dtype} is not a type of real numbers; expected integers, "
            "booleans or floating-point numbers"
        )
    if number_array.dtype.kind == "O":
        number_array = np.where(pd.isna(number_array), np.nan, number_array)
    return number_array.astype(float)


def make_plain_series(column_values: Any) -> pd.Series:
    """Return a column of a NumPy type or of text; masked and NA values are missing."""
    column_values = fill_masked_values(column_values)
    is_extension_dtype = pd.api.types.is_extension_array_dtype(column_values)
    has_dtype = is_extension_dtype or isinstance(column_values, pd.Series)
    column_series = pd.Series(
        column_values if has_dtype else list(column_values)
    ).reset_index(drop=True)
    if _is_plain_column(column_series):
        return column_series
    missing_cell_mask = column_series.isna()
    object_cells = column_series.astype(object).where(~missing_cell_mask, None)
    if missing_cell_mask.any() and object_cells.dropna().map(type).eq(bool).all():
        return object_cells.astype(float)  # truth values with missing ones
    return pd.Series(object_cells.tolist())


def _is_plain_column(column_series: pd.Series) -> bool:
    """Return whether a column has a NumPy type or is text, and no NA of pandas."""
    dtype = column_series.dtype
    is_nullable = getattr(dtype, "na_value", None) is pd.NA
    if is_nullable or isinstance(dtype, pd.CategoricalDtype):
        return False
    if not pd.api.types.is_object_dtype(dtype):
        return True
    missing_cells = column_series[column_series.isna()]
    return not any(cell_value is pd.NA for cell_value in missing_cells)


def make_plain_table(data_frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table of columns of `make_plain_series`, with a default index."""
    columns = [data_frame.iloc[:, i] for i in range(data_frame.shape[1])]
    if all(map(_is_plain_column, columns)):
        return data_frame.reset_index(drop=True)
    joined_table = pd.concat(map(make_plain_series, columns), axis=1)
    joined_table.columns = data_frame.columns
    return joined_table


def check_connectomes(W: np.ndarray) -> None:
    """Raise unless all weights (n_scans, n_rois, n_rois) are finite and >= 0.

    Raise as well where both triangles are filled and differ by more than rounding.
    """
    # A NaN is both minimum and maximum of its scan, and fails both comparisons.
    min_weights = W.min(axis=(1, 2))
    max_weights = W.max(axis=(1, 2))
    valid_connectome_mask = (min_weights >= 0) & (max_weights <= MAX_ABSOLUTE)
    if not valid_connectome_mask.all():
        invalid_scan_index = np.flatnonzero(~valid_connectome_mask)[0]
        raise ParameterError(
            f"connection weights must lie between 0 and {MAX_ABSOLUTE:g}. The "
            f"connectome in row {invalid_scan_index} of X contains a weight that is "
            "NaN or outside this range. Correct the connectome, or leave this scan "
            "out. If the weights are correlations, Cohort.from_arrays(..., "
            "negative='drop').to_array() sets negative weights to 0."
        )
    for scan_index, connectome in enumerate(W):
        if _is_asymmetric(connectome):
            raise ParameterError(
                "connectomes must be symmetric, but the connectome in row "
                f"{scan_index} of X has different weights above and below its "
                "diagonal. Symmetrise this connectome, for example by (W + W.T) / 2. "
                "To change the order of the regions, use X[:, order][..., [*order, "
                "*range(X.shape[1], X.shape[2])]]. This expression reorders the rows "
                "and the columns of every connectome, but only the rows of the "
                "features."
            )


def _is_asymmetric(connectome: np.ndarray) -> bool:
    """Return whether both triangles are filled, and differ by more than rounding."""
    if (connectome == connectome.T).all():
        return False
    asymmetry = np.abs(connectome - connectome.T).max()
    if not asymmetry > MAX_ASYMMETRY * connectome.max():
        return False
    n_weights_both_ways = np.count_nonzero(np.minimum(connectome, connectome.T))
    return bool(n_weights_both_ways > np.count_nonzero(connectome.diagonal()))


def check_features(features: np.ndarray) -> None:
    """Raise unless every feature is NaN or small enough to be squared in float32."""
    invalid_value_positions = np.argwhere(np.abs(features) > MAX_ABSOLUTE)
    if len(invalid_value_positions):
        scan_index = invalid_value_positions[0][0]
        raise ParameterError(
            f"feature values must lie between -{MAX_ABSOLUTE:g} and {MAX_ABSOLUTE:g}; "
            f"got {features[tuple(invalid_value_positions[0])]:g} in row {scan_index} "
            "of X. Correct the value, or convert the feature to another unit. If the "
            "value was not measured, write NaN."
        )


def check_groups(
    groups: np.ndarray | None, n_scans: int, leaking_split_name: str | None
) -> np.ndarray:
    """Return the participant of every scan; warn if that is a guess.

    Parameters
    ----------
    groups : array of shape (n_scans,) or None
    n_scans : int
    leaking_split_name : str or None
        Name of the split that leaks if visits are treated as participants; None gives
        no warning.
    """
    if groups is None and leaking_split_name:
        warnings.warn(
            "fit without groups treats every scan as a separate person, so visits of "
            f"one person may be on both sides of {leaking_split_name}. Use groups= to "
            "give the participant ID of every scan. In cross-validation, divide "
            "people, too, for example by cv=GroupKFold(5), because a number as cv= "
            "divides scans. To pass groups through searches and pipelines, first call "
            "sklearn.set_config(enable_metadata_routing=True). Give cross_val_score "
            "params={'groups': people}. StackingClassifier does not pass groups on: "
            "give it a list of folds by person as cv=.",
            UserWarning,
            stacklevel=3,
        )
    if np.ma.is_masked(groups):
        raise ParameterError(
            "groups has masked entries. Give the participant ID of every scan."
        )
    groups = np.arange(n_scans) if groups is None else np.asarray(groups)
    if groups.shape != (n_scans,):
        raise ParameterError(
            f"groups must have shape ({n_scans},), one participant ID for each "
            f"scan; got {groups.shape}."
        )
    return groups


class SelectedRows:
    """Rows of an array (n_rows, ...) in float32, which are read when asked for.

    Parameters
    ----------
    values : array of shape (n_values, ...)
        In memory, or mapped to a file.
    rows : int array of shape (n_rows,)
        Rows of `values`.
    edit_function : callable, optional
        Returns the rows (..., n_rois, n_rois) of connectomes that are used for those
        that were read. Equal rows must give equal rows.

    Attributes
    ----------
    keeps_polynomials : bool
        Whether a ridge stores the polynomials T_n(L - I) x of these connectomes for the
        network that is fitted next.
    polynomials : (str, float32 array of shape (degree + 1, n_rows, n_rois, n_columns))
        Key of the signals x, and the polynomials; `("", None)` if none are stored.
    """

    def __init__(
        self,
        values: np.ndarray,
        row_indices: np.ndarray,
        edit_function: EditFunction | None = None,
    ) -> None:
        self._values, self._rows = values, row_indices
        self._edit_function = edit_function
        self.keeps_polynomials = False
        self.polynomials: tuple[str, np.ndarray | None] = ("", None)
        self.shape = len(row_indices), *values.shape[1:]
        self.ndim = values.ndim
        self.dtype = np.dtype(np.float32)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def __getitem__(self, index: Any) -> np.ndarray:
        """Return the row or rows of an index, a slice or a list of indices."""
        selected_rows = np.asarray(self._values[self._rows[index]], dtype=self.dtype)
        if self._edit_function is None:
            return selected_rows
        return self._edit_function(selected_rows)

    def __iter__(self) -> Iterator[np.ndarray]:
        """Iterate over the rows."""
        for row_index in range(len(self)):
            yield self[row_index]

    def edit(self, edit_function: EditFunction) -> "SelectedRows":
        """Return the same rows, which are edited whenever they are read."""
        return SelectedRows(self._values, self._rows, edit_function)

    def are_rows_equal(self) -> bool:
        """Return whether all rows are the same; the first that differs ends it."""
        first_row = self[0]
        return self._values.strides[0] == 0 or all(
            np.array_equal(other_row, first_row) for other_row in self
        )


def pack_scans(
    connectomes: np.ndarray | SelectedRows,
    features: np.ndarray,
    row_indices: np.ndarray | None = None,
) -> np.ndarray:
    """Return the packed array (float32) of connectomes and features.

    `row_indices` selects scans; all by default. Masked values become NaN.
    """
    if not isinstance(connectomes, SelectedRows):
        connectomes = as_number_array(connectomes)
    features = as_number_array(features)
    scan_indices = (
        np.arange(len(features)) if row_indices is None else np.asarray(row_indices)
    )
    n_rois, n_features = features.shape[1:]
    X = np.empty((len(scan_indices), n_rois, n_rois + n_features), dtype=np.float32)
    for i, scan_index in enumerate(scan_indices):  # scan by scan, to save memory
        X[i, :, :n_rois] = connectomes[scan_index]
        X[i, :, n_rois:] = features[scan_index]
    return X


class PackedScans:
    """Scans of a cohort, of which classifiers read a few connectomes at a time.

    It stands for the packed array (n_scans, n_rois, n_rois + n_features), which
    `np.asarray` makes of it. The cohort has been checked.

    Parameters
    ----------
    connectomes : array of shape (n_cohort_scans, n_rois, n_rois)
        Of the whole cohort; nothing is copied.
    features : array of shape (n_cohort_scans, n_rois, n_features)
    rows : int array of shape (n_scans,)
        Rows of these scans.
    keeps_terms : bool
        Whether the diffusion terms that were computed last are kept for the next
        model.
    """

    def __init__(
        self,
        connectomes: np.ndarray,
        features: np.ndarray,
        row_indices: np.ndarray,
        keeps_terms: bool = False,
    ) -> None:
        self.connectomes = SelectedRows(connectomes, row_indices)
        self.features = np.asarray(features[row_indices], dtype=np.float32)
        n_scans, n_rois, n_features = self.features.shape
        self.shape = n_scans, n_rois, n_rois + n_features
        self.ndim, self.dtype = 3, np.dtype(np.float32)
        self.keeps_terms = keeps_terms
        self.terms: tuple[Any, Any] = (None, None)

    def edit_connectomes(self, edit_function: EditFunction) -> "PackedScans":
        """Return the same scans, with connectomes edited whenever they are read."""
        edited_scans = copy(self)
        edited_scans.connectomes = self.connectomes.edit(edit_function)
        edited_scans.terms = (None, None)
        return edited_scans

    def __len__(self) -> int:
        """Return the number of scans."""
        return len(self.features)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return the packed array."""
        return np.asarray(pack_scans(self.connectomes, self.features), dtype=dtype)


def unpack_connectomes_and_features(X: Any) -> tuple[Any, np.ndarray]:
    """Split the packed array into connectomes and features (views, no copy)."""
    if isinstance(X, PackedScans):
        return X.connectomes, X.features
    if X.ndim != 3 or X.shape[2] <= X.shape[1]:
        message = (
            "X must have shape (n_scans, n_rois, n_rois + n_features) with at least "
            f"one feature; got {X.shape}. Use Cohort.to_array() to make this array."
        )
        if X.ndim == 2:
            message += (
                " A step that makes tables, for example StandardScaler, cannot "
                "precede this classifier, which standardises the features itself."
            )
        raise ParameterError(message)
    n_rois = X.shape[1]
    return X[..., :n_rois], X[..., n_rois:]


def compute_robust_deviations(scan_values: np.ndarray) -> np.ndarray:
    """Return signed deviations from the median along axis 0, in scaled MADs.

    They are not scaled if the MAD is 0, and NaN where values are missing.
    """
    if not np.isnan(scan_values).any():
        # Medians of contiguous columns take a fraction of the time of nanmedian.
        value_columns = np.ascontiguousarray(scan_values.T)
        value_columns = value_columns - np.median(value_columns, axis=-1, keepdims=True)
        scaled_mads = 1.4826 * np.median(np.abs(value_columns), axis=-1, keepdims=True)
        return (value_columns / np.where(scaled_mads > 0, scaled_mads, 1)).T
    # Regions that are measured in no scan have no median.
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        deviations = scan_values - np.nanmedian(scan_values, axis=0)
        scaled_mads = 1.4826 * np.nanmedian(np.abs(deviations), axis=0)
    return deviations / np.where(scaled_mads > 0, scaled_mads, 1)


def to_jsonable(value: Any) -> Any:
    """Return options, settings and reports as JSON takes them.

    Numbers that are not finite become None and paths text. Functions are named by their
    own name, other objects by that of their class.

    >>> to_jsonable({"folder": Path("study"), "frames": (1.5, np.nan), 3: np.int64(4)})
    {'folder': 'study', 'frames': [1.5, None], '3': 4}
    """
    if isinstance(value, np.generic | np.ndarray | pd.Series | pd.Index):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(item_key): to_jsonable(item) for item_key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_jsonable(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Path):
        return str(value)
    return getattr(value, "__name__", type(value).__name__)


def match_class_name(class_name: object, known_class_names: Iterable[object]) -> str:
    """Return the known name of a class, which may spell a number in another way.

    >>> match_class_name(1, ["0.0", "1.0"]), match_class_name("AD", ["0.0", "1.0"])
    ('1.0', 'AD')
    """
    class_text = str(class_name).strip()
    known_texts = [str(known_name) for known_name in known_class_names]
    class_number = parse_label_number(class_text)
    if class_text in known_texts or class_number is None:
        return class_text
    return next(
        (
            known_text
            for known_text in known_texts
            if parse_label_number(known_text) == class_number
        ),
        class_text,
    )


def parse_label_number(label: object) -> float | None:
    """Return the number that a label is, None if it is a word or missing."""
    label_text = str(label).strip()
    return float(label_text) if _LABEL_NUMBER.fullmatch(label_text) else None
