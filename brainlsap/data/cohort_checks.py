"""The checks at the door of a cohort; they list every fault, one a line."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from brainlsap._arrays import LARGEST
from brainlsap._scratch import copied_doubles, map_of, row_blocks

if TYPE_CHECKING:
    from brainlsap.data.cohort import Cohort

KEY_COLUMNS = ("scan", "participant", "session", "label")
# Two triangles that were averaged or rescaled in float64 may differ in the last bits.
SYMMETRY_TOLERANCE = 1e-10


def is_shared(connectomes: np.ndarray) -> bool:
    """Tell whether one matrix in memory serves all scans.

    Parameters
    ----------
    connectomes : array of shape (n_scans, n_rois, n_rois)
        As a cohort has them.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_shared(np.broadcast_to(np.eye(4), (3, 4, 4)))
    True
    """
    return (
        connectomes.ndim == 3 and len(connectomes) > 1 and connectomes.strides[0] == 0
    )


def frozen_array(values: np.ndarray) -> np.ndarray:
    """Return the values as float64 that cannot be written to.

    Parameters
    ----------
    values : array
        Copied where its memory could still be written to by others, kept where it
        is a broadcast view of one frozen matrix, or the read-only view of a file
        that nobody else knows (:func:`brainlsap._scratch.new_array`).

    Returns
    -------
    array
        Read-only, float64.

    Examples
    --------
    >>> frozen_array(np.ones(3)).flags.writeable
    False
    """
    array = np.asarray(values)
    if is_shared(array):
        return np.broadcast_to(frozen_array(array[0]), array.shape)
    if array.flags.writeable or array.dtype != np.float64 or array.base is not None:
        if not _is_frozen_map(array):
            array = copied_doubles(array)
        array.flags.writeable = False
    return array


def _is_frozen_map(array: np.ndarray) -> bool:
    """Tell whether an array is a whole map that was made read-only."""
    frozen = not array.flags.writeable and array.flags.c_contiguous
    return frozen and array.dtype == np.float64 and map_of(array) is not None


def cohort_faults(cohort: "Cohort") -> list[str]:
    """List everything that keeps the parts of a cohort from fitting.

    Parameters
    ----------
    cohort : Cohort
        Whose arrays are already float64.

    Returns
    -------
    list of str
        Empty where all is well.
    """
    faults = [*_table_faults(cohort), *_shape_faults(cohort)]
    if not faults:  # values are only worth reading where the axes agree
        faults += [*_connectome_faults(cohort), *_feature_faults(cohort)]
    try:
        json.dumps(cohort.provenance)
    except (TypeError, ValueError) as error:
        faults.append(f"provenance must be expressible as JSON: {error}")
    return faults


def _table_faults(cohort: "Cohort") -> Iterator[str]:
    table, classes = cohort.table, cohort.classes
    missing = [name for name in KEY_COLUMNS if name not in table.columns]
    if missing:
        yield (
            f"table must have the columns {', '.join(KEY_COLUMNS)}; "
            f"{', '.join(missing)} is missing"
        )
        return
    for name in ("scan", "participant", "label"):
        empty = np.flatnonzero(table[name].isna() | (table[name].astype(str) == ""))
        if empty.size:
            yield f"table has no {name} in row {empty[0]}"
    scans = table["scan"].astype(str)
    for scan in scans[scans.duplicated()].unique():
        yield f"scan {scan!r} stands more than once in table"
    yield from _class_faults(table["label"], classes)
    if not table.columns.is_unique:
        yield "table has two columns of one name"


def _class_faults(labels: pd.Series, classes: tuple[str, ...]) -> Iterator[str]:
    if len(set(classes)) < len(classes):
        yield f"classes must be different, got {', '.join(classes)}"
    found = labels.dropna().astype(str)
    for label in sorted(set(found) - set(classes)):
        count = int((found == label).sum())
        yield (
            f"label {label!r} of {count} scan(s) is not among the classes "
            f"{', '.join(classes)}"
        )


def _shape_faults(cohort: "Cohort") -> Iterator[str]:
    n_scans, n_rois = len(cohort.table), len(cohort.atlas)
    n_features = len(cohort.feature_names)
    if n_scans == 0:
        yield "table has no scans"
    if n_features == 0 or len(set(cohort.feature_names)) < n_features:
        yield f"feature_names must be different names, got {cohort.feature_names!r}"
    if cohort.connectomes.shape != (n_scans, n_rois, n_rois):
        yield (
            f"connectomes must have shape {(n_scans, n_rois, n_rois)} for {n_scans} "
            f"scans and the {n_rois} regions of {cohort.atlas.name}, "
            f"got {cohort.connectomes.shape}"
        )
    if cohort.features.shape != (n_scans, n_rois, n_features):
        yield (
            f"features must have shape {(n_scans, n_rois, n_features)} for {n_scans} "
            f"scans, the {n_rois} regions of {cohort.atlas.name} and {n_features} "
            f"feature names, got {cohort.features.shape}"
        )


def _connectome_faults(cohort: "Cohort") -> Iterator[str]:
    names = cohort.atlas.names
    shared = is_shared(cohort.connectomes)
    scans = cohort.table["scan"].tolist()
    # one scan at a time stays in the processor's cache
    for scan, W in zip(
        scans[: 1 if shared else None], _each(cohort.connectomes), strict=False
    ):
        where = "the shared connectome" if shared else f"connectome of scan {scan!r}"
        if not (W.min() >= 0 and W.max() <= LARGEST):
            i, j = np.argwhere(~((W >= 0) & (W <= LARGEST)))[0]
            yield (
                f"{where} must be finite and not negative, and at most {LARGEST:g}; "
                f"got {W[i, j]} between {names[i]} and {names[j]}"
            )
        elif not np.array_equal(W, W.T):
            gap = np.abs(W - W.T)
            i, j = np.unravel_index(gap.argmax(), gap.shape)
            if gap[i, j] > SYMMETRY_TOLERANCE * W.max():
                yield (
                    f"{where} must be symmetric, got {W[i, j]} from {names[i]} to "
                    f"{names[j]} and {W[j, i]} back"
                )


def _each(connectomes: np.ndarray) -> Iterator[np.ndarray]:
    for part in row_blocks(connectomes):
        yield from connectomes[part]


def _feature_faults(cohort: "Cohort") -> Iterator[str]:
    scan, region, feature = np.nonzero(np.abs(cohort.features) > LARGEST)
    if scan.size:
        value = cohort.features[scan[0], region[0], feature[0]]
        told = f"{value:g}" if np.isfinite(value) else "infinity"
        yield (
            "features must be finite, or NaN where not measured, and at most "
            f"{LARGEST:g} in size; got {told} for {cohort.feature_names[feature[0]]} "
            f"of {cohort.atlas.names[region[0]]} in scan "
            f"{cohort.table['scan'].iloc[scan[0]]!r}"
        )
