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

from collections.abc import Sequence

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
    mirror, notes = cohort.atlas.homotopic, list[str]()
    columns, parts = _connectome_columns(cohort), list(cohort.feature_names)
    if not cohort.shares_connectome:
        parts = ["connectome", *parts]
        columns |= _link_columns(cohort, mirror)
    for place, name in enumerate(cohort.feature_names):
        columns |= _feature_columns(cohort, place, name, mirror)
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


def _isolated(W: np.ndarray) -> np.ndarray:
    """Return which regions have no link to another, in every scan."""
    return np.array([(one.sum(axis=1) - np.diagonal(one)) == 0 for one in W])


def _connectome_columns(cohort: Cohort) -> dict[str, np.ndarray]:
    n_rois = cohort.n_rois
    W = cohort.connectomes[: 1 if cohort.shares_connectome else None]
    own = np.array([np.trace(one, dtype=np.float64) for one in W])
    total = np.array([one.sum(dtype=np.float64) for one in W])
    links = [np.count_nonzero(one) - np.count_nonzero(one.diagonal()) for one in W]
    columns = {
        "diagonal": own / np.maximum((total + own) / 2, 1e-300),
        "isolated": _isolated(W).sum(axis=1),
        "density": np.array(links) / (n_rois * (n_rois - 1)),
        "streamlines": (total + own) / 2,
    }
    n_copies = cohort.n_scans // len(W)
    return {name: np.repeat(one, n_copies) for name, one in columns.items()}


def _link_columns(cohort: Cohort, mirror: np.ndarray) -> dict[str, np.ndarray]:
    """Judge the links of every scan, a block of links at a time."""
    upper = np.triu_indices(cohort.n_rois, 1)
    W = cohort.connectomes

    distance, agreement = np.zeros((2, cohort.n_scans))
    for start in range(0, len(upper[0]), _BLOCK):
        i, j = (side[start : start + _BLOCK] for side in upper)
        links = np.log1p(W[:, i, j].astype(float))
        facing = np.log1p(W[:, mirror[i], mirror[j]].astype(float))
        distance += _distances(links)
        agreement += _agreement(links - facing, cohort.groups)
    return {
        "connectome_deviation": _stand_out(distance / len(upper[0])),
        "connectome_mirrored": _sides(agreement),
        "connectome_duplicate": _duplicates([one.tobytes() for one in W], cohort),
    }


def _feature_columns(
    cohort: Cohort, place: int, name: str, mirror: np.ndarray
) -> dict[str, np.ndarray]:
    values = cohort.features[..., place]
    missing = np.isnan(values)
    low, high = get_measure(name).plausible
    equal, keys = [], []
    for row, gone in zip(values, missing, strict=True):
        equal.append(np.unique(row[~gone], return_counts=True)[1].max(initial=0))
        keys.append(b"" if gone.all() else row.tobytes())
    given = np.maximum((~missing).sum(axis=1), 1)
    gap = np.nan_to_num(values - values[:, mirror])
    return {
        f"{name}_missing": missing.sum(axis=1),
        f"{name}_zeros": (values == 0).sum(axis=1),
        f"{name}_implausible": ((values < low) | (values > high)).sum(axis=1),
        f"{name}_equal": np.array(equal),
        f"{name}_deviation": _stand_out(_distances(values) / given),
        f"{name}_mirrored": _sides(_agreement(gap, cohort.groups)),
        f"{name}_duplicate": _duplicates(keys, cohort),
    }


def robust_deviation(values: np.ndarray) -> np.ndarray:
    """Return how far values lie from their median, in scaled MADs, along axis 0.

    Signed; 0 where all values are one, NaN where missing.
    """
    present = ~np.isnan(values).all(axis=0)
    result = np.full(values.shape, np.nan)
    given = values[..., present] if values.ndim > 1 else values
    gap = given - np.nanmedian(given, axis=0)
    mad = 1.4826 * np.nanmedian(np.abs(gap), axis=0)
    result[..., present] = gap / np.where(mad > 0, mad, 1)
    return result


def _distances(values: np.ndarray) -> np.ndarray:
    """Sum each scan's distances from the medians of all scans."""
    size = np.nan_to_num(np.abs(robust_deviation(values)), nan=0.0)
    # a link that is 0 in most scans has no spread; capped, it cannot shout alone
    return np.minimum(size, 10).sum(axis=1)


def _stand_out(distance: np.ndarray) -> np.ndarray:
    if len(distance) < FEWEST_SCANS:
        return np.zeros(len(distance))
    return robust_deviation(distance[:, None])[:, 0]


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


def _duplicates(keys: Sequence[bytes], cohort: Cohort) -> np.ndarray:
    """Return another scan with the very same values, empty where there is none."""
    first: dict[bytes, int] = {}
    scans = cohort.table["scan"].tolist()
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
