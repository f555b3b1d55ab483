"""Look at every scan of a cohort for what no format can forbid.

Nothing is removed here: a table says what is unusual, and `flags` says why one would
look at the scan. Outliers are told from the median and the median absolute deviation
(MAD) over scans, which a few bad scans cannot move.

Exchanged hemispheres are found by how the sides differ. Let `g` be a scan's left minus
right of every region (or link), `m` the mean of `g` over all other people and `v` its
variance over scans. The agreement `t = sum(g m / (v + mean(v)))` changes its sign where
a scan's sides are exchanged. With `M` the median and `S` the robust standard deviation
of `t`, a scan is flagged where `t < min(0, M - k S)`, `k = 4.5 + 20 / n_scans`. This is
only done where `M > (k - 1) S`, so that nearly all exchanged scans are found.
Elsewhere the sides differ too little to tell: the column is NaN, and
`table.attrs["notes"]` says so.
"""

import warnings
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from brainlsap.data.cohort import Cohort
from brainlsap.data.measures import get_measure

# Distance from the median, in MADs scaled to a standard deviation.
MOST_DEVIATION = 6.0
# Fewer scans than this have no distribution to stand out of.
FEWEST_SCANS = 8
_MOST_EQUAL = 0.1
_BLOCK = 1000


@threadpool_limits.wrap(limits=1)
def quality_table(cohort: Cohort) -> pd.DataFrame:
    """Return what is unusual about every scan.

    Parameters
    ----------
    cohort : Cohort
        As it was loaded; negative and NaN weights were refused there.

    Returns
    -------
    DataFrame
        A row for every scan, indexed by its name. Of the connectome: `diagonal`
        (share of all weights), `isolated` (regions without a link to another),
        `density`, `streamlines` (sum of weights, each link once),
        `connectome_deviation` (robust distance from the others),
        `connectome_mirrored` (agreement of left-right differences with those of the
        others, usually about 1; below 0 where the sides look exchanged, NaN where it
        cannot be told), `connectome_duplicate` (a scan with the very same matrix). Of
        each feature: `<name>_missing`, `<name>_zeros` (regions filled with 0),
        `<name>_implausible`, `<name>_equal` (regions that share one value),
        `<name>_deviation`, `<name>_mirrored`, `<name>_duplicate`. At last `flags`, in
        words; empty where nothing is unusual. `attrs["notes"]` lists what could not
        be judged.
    """
    columns, notes = _connectome_columns(cohort), list[str]()
    for place, name in enumerate(cohort.feature_names):
        columns |= _feature_columns(cohort, place, name)
    parts = [name.removesuffix("_deviation") for name in columns if "_devi" in name]
    for part in parts:
        if np.isnan(columns[f"{part}_mirrored"]).all():
            notes.append(
                f"{part}: left and right differ too little, or in too few scans, to "
                "tell whether they were exchanged"
            )
    table = pd.DataFrame(columns, index=pd.Index(cohort.table["scan"], name="scan"))
    table["flags"] = [
        "; ".join(flag for part in parts for flag in _flags(part, row, cohort.n_rois))
        for row in table.to_dict("records")
    ]
    table.attrs["notes"] = notes
    return table


def _connectome_columns(cohort: Cohort) -> dict[str, np.ndarray]:
    n_rois, mirror = cohort.n_rois, cohort.atlas.homotopic
    W = cohort.connectomes[: 1 if cohort.shares_connectome else None]
    own = W.diagonal(axis1=1, axis2=2)
    total = W.sum(axis=(1, 2), dtype=np.float64)
    links = np.count_nonzero(W, axis=(1, 2)) - np.count_nonzero(own, axis=1)
    streamlines = (total + own.sum(axis=1, dtype=np.float64)) / 2
    columns = {
        "diagonal": own.sum(axis=1) / np.maximum(streamlines, 1e-300),
        "isolated": (W.sum(axis=2) == own).sum(axis=1),
        "density": links / (n_rois * (n_rois - 1)),
        "streamlines": streamlines,
    }
    if cohort.shares_connectome:
        return {name: np.repeat(one, cohort.n_scans) for name, one in columns.items()}
    upper = np.triu_indices(n_rois, 1)
    blocks = (
        (np.log1p(W[:, i, j].astype(float)), np.log1p(W[:, mirror[i], mirror[j]]))
        for start in range(0, len(upper[0]), _BLOCK)
        for i, j in [[side[start : start + _BLOCK] for side in upper]]
    )
    keys = [one.tobytes() for one in W]
    return columns | _compare("connectome", blocks, len(upper[0]), keys, cohort)


def _feature_columns(cohort: Cohort, place: int, name: str) -> dict[str, np.ndarray]:
    values = cohort.features[..., place]
    missing = np.isnan(values)
    low, high = get_measure(name).plausible
    columns = {
        f"{name}_missing": missing.sum(axis=1),
        f"{name}_zeros": (values == 0).sum(axis=1),
        f"{name}_implausible": ((values < low) | (values > high)).sum(axis=1),
        f"{name}_equal": np.array(
            [
                np.unique(row[~gone], return_counts=True)[1].max(initial=0)
                for row, gone in zip(values, missing, strict=True)
            ]
        ),
    }
    keys = [b"" if np.isnan(row).all() else row.tobytes() for row in values]
    given = np.maximum((~missing).sum(axis=1), 1)
    blocks = [(values, values[:, cohort.atlas.homotopic])]
    return columns | _compare(name, blocks, given, keys, cohort)


def _compare(
    part: str,
    blocks: Iterable[tuple[np.ndarray, np.ndarray]],
    n_values: int | np.ndarray,
    keys: Sequence[bytes],
    cohort: Cohort,
) -> dict[str, np.ndarray]:
    """Compare scans by blocks of values and of those facing them; equal keys: equal."""
    distance, agreement = np.zeros((2, cohort.n_scans))
    for values, facing in blocks:
        size = np.nan_to_num(np.abs(robust_deviation(values)), nan=0.0)
        # a link that is 0 in most scans has no spread; capped, it cannot shout alone
        distance += np.minimum(size, 10).sum(axis=1)
        agreement += _agreement(np.nan_to_num(values - facing), cohort.groups)
    is_enough = cohort.n_scans >= FEWEST_SCANS
    return {
        f"{part}_deviation": robust_deviation(distance / n_values) * is_enough,
        f"{part}_mirrored": _sides(agreement),
        f"{part}_duplicate": _duplicates(keys, cohort.table["scan"].tolist()),
    }


def robust_deviation(values: np.ndarray) -> np.ndarray:
    """Return how far values lie from their median, in scaled MADs, along axis 0.

    Signed; 0 where all values are one, NaN where missing.
    """
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        gap = values - np.nanmedian(values, axis=0)  # of regions not measured: NaN
        mad = 1.4826 * np.nanmedian(np.abs(gap), axis=0)
    return gap / np.where(mad > 0, mad, 1)


def _agreement(gap: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return how each scan's differences of the sides agree with other people's."""
    people, codes = np.unique(groups.astype(str), return_inverse=True)
    own = np.zeros((len(people), gap.shape[1]))
    np.add.at(own, codes, gap)
    n_others = np.maximum(len(gap) - np.bincount(codes)[codes], 1)
    mean = (gap.sum(axis=0) - own[codes]) / n_others[:, None]
    spread = gap.var(axis=0)
    weight = 1 / np.maximum(spread + spread.mean(), 1e-300)
    return np.einsum("ij,ij,j->i", gap, mean, weight)


def _sides(agreement: np.ndarray) -> np.ndarray:
    """Return agreement over its median, below 0 only where the sides are exchanged."""
    n_scans, median = len(agreement), np.median(agreement)
    spread = max(1.4826 * np.median(np.abs(agreement - median)), 1e-12)
    far = 4.5 + 20 / n_scans
    if n_scans < FEWEST_SCANS or not median > (far - 1) * spread:
        return np.full(n_scans, np.nan)
    exchanged = agreement < min(0, median - far * spread)
    return np.where(exchanged, agreement, np.maximum(agreement, 0)) / median


def _duplicates(keys: Sequence[bytes], scans: Sequence[str]) -> np.ndarray:
    """Return another scan with the very same values, empty where there is none."""
    first: dict[bytes, int] = {}
    duplicates = [""] * len(scans)
    for row, key in enumerate(keys):
        other = first.setdefault(key, row) if key else row
        if other != row:
            duplicates[row] = scans[other]
            duplicates[other] = duplicates[other] or scans[row]
    return np.array(duplicates, dtype=object)


def _flags(part: str, row: dict, n_rois: int) -> list[str]:
    """Say what is unusual about the connectome, or about one feature, of a scan."""
    duplicate = row[f"{part}_duplicate"]
    said = [
        (row[f"{part}_deviation"] > MOST_DEVIATION, "far from the others"),
        (row[f"{part}_mirrored"] < 0, "looks as if left and right were exchanged"),
        (duplicate, f"identical to {duplicate}"),
    ]
    if part != "connectome":
        zeros, odd, equal = (
            int(row[f"{part}_{what}"]) for what in ("zeros", "implausible", "equal")
        )
        said += [
            (zeros, f"filled with zero in {zeros} regions"),
            (odd, f"implausible in {odd} regions"),
            (equal > max(2, _MOST_EQUAL * n_rois), f"one value in {equal} regions"),
            (row[f"{part}_missing"] == n_rois, "not measured"),
        ]
    flags = [f"{part} {what}" for is_so, what in said if is_so]
    if part == "connectome" and row["isolated"]:
        flags.append(f"{int(row['isolated'])} regions without links")
    return flags
