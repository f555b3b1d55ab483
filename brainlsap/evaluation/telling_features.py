"""Features and edges that contain the label."""

import re

import numpy as np

from brainlsap._scratch import release
from brainlsap.data import Cohort
from brainlsap.evaluation.findings import Finding

EXPLAINED = 0.99
"""Part of the variance within classes and between that the classes explain."""
FEWEST_SCANS = 5
MOST_NAMED = 3
_ROWS_AT_ONCE = 256
# Scores by which dementia is staged, and words for the label itself.
CLINICAL = re.compile(
    r"(?:^|[_\W])(?:mmse|moca|cdr(?:sb|global)?|adas(?:1[13])?|faq|gds|dx|diagnosis|"
    r"label|stage)(?:$|[_\W])",
    re.IGNORECASE,
)


def find_telling_features(cohort: Cohort) -> tuple[list[Finding], dict[str, str]]:
    r"""Look for features and edges that are a function of the label.

    For every value of a scan the classes' part of its variance is

    .. math:: \eta^2 = \frac{\sum_c n_c (\bar x_c - \bar x)^2}{\sum_i (x_i - \bar x)^2}

    over classes of at least five scans; 0.99 and more is no biology.

    Parameters
    ----------
    cohort : Cohort
        The scans.

    Returns
    -------
    findings : list of Finding
    skipped : dict of str to str
        Where no two classes have five scans.
    """
    findings = [
        Finding("clinical score as feature", f"the feature is named {name!r}")
        for name in cohort.feature_names
        if CLINICAL.search(name)
    ]
    names, counts = np.unique(cohort.y.astype(str), return_counts=True)
    large = names[counts >= FEWEST_SCANS]
    if len(large) < 2:
        reason = f"no two classes have {FEWEST_SCANS} scans"
        return findings, {"label in the features": reason}
    for what, values, named in _values(cohort):
        share = explained_by_class(values, cohort.y, tuple(large))
        told = np.flatnonzero(share >= EXPLAINED)
        if told.size:
            shown = ", ".join(named(place) for place in told[:MOST_NAMED])
            more = " ..." if told.size > MOST_NAMED else ""
            evidence = (
                f"{told.size} {what} of which the classes explain "
                f"{share[told].max():.1%} of the variance: {shown}{more}"
            )
            findings.append(Finding("label in the features", evidence))
    return findings, {}


def explained_by_class(
    values: np.ndarray, label: np.ndarray, classes: tuple[str, ...]
) -> np.ndarray:
    """Return the part of the variance of every column that the classes explain.

    Parameters
    ----------
    values : array of shape (n_scans, n_values)
        NaN is left out.
    label : array of str of length n_scans
        Class of every scan.
    classes : tuple of str
        The classes that count.

    Returns
    -------
    array of shape (n_values,)
        0 where a column does not vary, or a class has fewer than five numbers in it.

    Examples
    --------
    >>> values = np.array([[0.0, 1.0]] * 5 + [[2.0, 1.0]] * 5)
    >>> explained_by_class(values, np.array(["a"] * 5 + ["b"] * 5), ("a", "b"))
    array([1., 0.])
    """
    total = np.zeros((3, values.shape[1]))  # count, sum and sum of squares
    between = np.zeros(values.shape[1])
    enough = np.ones(values.shape[1], dtype=bool)
    # Shifted, so that squares do not drown what little a column varies.
    shift = np.where(np.isnan(values[0]), 0, values[0])
    for name in classes:
        count, summed, squares = _sums(values, np.flatnonzero(label == name), shift)
        total += (count, summed, squares)
        between += summed**2 / np.maximum(count, 1)
        enough &= count >= FEWEST_SCANS
    centre = total[1] ** 2 / np.maximum(total[0], 1)
    spread = total[2] - centre
    # Rounding leaves a constant column about 1e-16 of its square.
    varies = enough & (spread > 1e-9 * np.maximum(total[2], 1e-300))
    return np.where(varies, (between - centre) / np.where(varies, spread, 1), 0)


def _sums(values: np.ndarray, rows: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Return count, sum and sum of squares of some rows, some of them at a time."""
    total = np.zeros((3, values.shape[1]))
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = values[rows[start : start + _ROWS_AT_ONCE]] - shift
        known = ~np.isnan(part)
        if not known.all():
            part = np.where(known, part, 0)
        squares = np.einsum("ij,ij->j", part, part)
        total += (known.sum(axis=0), part.sum(axis=0), squares)
        release(values)
    return total


def _values(cohort: Cohort) -> list:
    """Return what the values are, the values, and how one is named."""
    n_features, regions = cohort.n_features, cohort.region_names

    def feature(place: int) -> str:
        name = cohort.feature_names[place % n_features]
        return f"{name} of {regions[place // n_features]}"

    def edge(place: int) -> str:
        return f"{regions[place // cohort.n_rois]} to {regions[place % cohort.n_rois]}"

    flat = (cohort.n_scans, -1)
    found: list = [("features", cohort.features.reshape(flat), feature)]
    if not cohort.shares_connectome:
        found.append(("entries of W", cohort.connectomes.reshape(flat), edge))
    return found
