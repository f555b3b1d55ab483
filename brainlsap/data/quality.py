"""Look at every scan of a cohort for what no format can forbid.

Nothing is removed here: a table says what is unusual, and `flags` says why one would
look at the scan. Outliers are told from the median and the median absolute deviation
(MAD) over scans, which a few bad scans cannot move.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd

from brainlsap.data.cohort import Cohort
from brainlsap.data.mirror import asymmetry_scores, mirror_positions

# Regional values beyond these are measured in no brain: mm, mm2, mm3, ratios.
PLAUSIBLE = {
    "amyloid": (0.2, 6.0),
    "area": (20.0, 15000.0),
    "fdg": (0.1, 4.0),
    "suvr": (0.1, 8.0),
    "tau": (0.1, 8.0),
    "thickness": (0.8, 5.0),
    "volume": (20.0, 60000.0),
    "volume_per_etiv": (1e-5, 0.05),
}
# Distance from the median, in MADs scaled to a standard deviation.
MOST_DEVIATION = 6.0
# Fewer scans than this have no distribution to stand out of.
FEWEST_SCANS = 8
_MOST_EQUAL = 0.1


def quality_table(cohort: Cohort) -> pd.DataFrame:
    """Return what is unusual about every scan.

    Parameters
    ----------
    cohort : Cohort
        As it was loaded. Negative and NaN weights were refused there, scan by scan,
        so that their columns hold 0 here.

    Returns
    -------
    DataFrame
        A row for every scan, indexed by its name. Of the connectome: `negative`,
        `not_finite` and `zero_rows` (rows without any weight); `asymmetry`
        (largest difference of the triangles over the largest weight), `diagonal`
        (share of all weights), `isolated` (regions without a link to another),
        `density`, `streamlines` (sum of weights, each link once),
        `connectome_deviation` (robust distance from the others), `mirrored`
        (agreement of the left-right differences with those of the others, -1 to 1;
        negative in a swap), `connectome_twin` (a scan with the very same matrix). Of
        each feature: `<name>_missing`, `<name>_zeros` (regions filled with 0),
        `<name>_implausible`, `<name>_equal` (regions that share one value),
        `<name>_deviation`, `<name>_mirrored`, `<name>_twin`. At last `flags`, in
        words; empty where nothing is unusual.

    Examples
    --------
    >>> from brainlsap.simulation import make_cohort
    >>> table = quality_table(make_cohort(12))
    >>> table.shape[0], sorted(set(table["flags"]))
    (22, [''])
    """
    columns = _connectome_columns(cohort)
    for place, name in enumerate(cohort.feature_names):
        columns |= _feature_columns(cohort, place, name)
    table = pd.DataFrame(columns, index=pd.Index(cohort.table["scan"], name="scan"))
    table["flags"] = [_flags(row, cohort) for _, row in table.iterrows()]
    return table


def region_quality_table(cohort: Cohort) -> pd.DataFrame:
    """Return what is unusual about every region, over all scans.

    Parameters
    ----------
    cohort : Cohort
        As it was loaded.

    Returns
    -------
    DataFrame
        A row for every region, indexed by its name: `isolated` (share of scans in
        which it has no link), and of each feature `<name>_missing` (share of scans)
        and `<name>_constant` (whether all scans have one value).

    Examples
    --------
    >>> from brainlsap.simulation import make_cohort
    >>> region_quality_table(make_cohort(5)).columns.tolist()
    ['isolated', 'fdg_missing', 'fdg_constant']
    """
    columns: dict[str, np.ndarray] = {"isolated": _isolated(cohort).mean(axis=0)}
    for place, name in enumerate(cohort.feature_names):
        values = cohort.features[..., place]
        missing = np.isnan(values)
        low = np.where(missing, np.inf, values).min(axis=0)
        high = np.where(missing, -np.inf, values).max(axis=0)
        columns[f"{name}_missing"] = missing.mean(axis=0)
        columns[f"{name}_constant"] = (low == high) & (cohort.n_scans > 1)
    return pd.DataFrame(columns, index=pd.Index(cohort.region_names, name="region"))


def robust_deviation(values: np.ndarray) -> np.ndarray:
    """Return how far values lie from their median, in scaled MADs.

    Parameters
    ----------
    values : array of shape (n, ...)
        NaN where missing.

    Returns
    -------
    array of the same shape
        Signed; 0 where all values are one, NaN where missing.

    Examples
    --------
    >>> robust_deviation(np.array([1.0, 2, 3, 4, 100])).round(1)
    array([-1.3, -0.7,  0. ,  0.7, 65.4])
    """
    present = ~np.isnan(values).all(axis=0)
    result = np.full(values.shape, np.nan)
    given = values[:, present] if values.ndim > 1 else values
    gap = given - np.nanmedian(given, axis=0)
    mad = 1.4826 * np.nanmedian(np.abs(gap), axis=0)
    scale = np.where(mad > 0, mad, 1)  # one value in most scans: no spread to tell by
    if values.ndim > 1:
        result[:, present] = gap / scale
        return result
    return gap / scale


def _isolated(cohort: Cohort) -> np.ndarray:
    """Return which regions have no link to another, in every scan."""
    found = np.empty((cohort.n_scans, cohort.n_rois), dtype=bool)
    for row, W in enumerate(cohort.connectomes):
        found[row] = (W.sum(axis=1) - np.diagonal(W)) == 0
        if cohort.shares_connectome:
            found[:] = found[0]
            break
    return found


def _connectome_columns(cohort: Cohort) -> dict[str, np.ndarray]:
    n_scans, n_rois = cohort.n_scans, cohort.n_rois
    shared = cohort.shares_connectome
    rows = range(1 if shared else n_scans)
    upper = np.triu_indices(n_rois, 1)
    links = np.empty((len(rows), len(upper[0])))
    diagonal = np.empty(len(rows))
    asymmetry = np.empty(len(rows))
    for row in rows:
        W = cohort.connectomes[row]
        links[row], diagonal[row] = W[upper], np.trace(W)
        asymmetry[row] = np.abs(W - W.T).max() / max(W.max(), 1e-300)
    total = links.sum(axis=1)
    columns = {
        "negative": _count(cohort, rows, lambda W: (W < 0).sum()),
        "not_finite": _count(cohort, rows, lambda W: (~np.isfinite(W)).sum()),
        "zero_rows": _count(cohort, rows, lambda W: (~W.any(axis=1)).sum()),
        "asymmetry": asymmetry,
        "diagonal": diagonal / np.maximum(total + diagonal, 1e-300),
        "isolated": _isolated(cohort)[list(rows)].sum(axis=1),
        "density": (links > 0).mean(axis=1),
        "streamlines": total + diagonal,
    }
    if shared:
        return {name: np.repeat(value, n_scans) for name, value in columns.items()}
    logs = np.log1p(links)
    columns["connectome_deviation"] = _distance(logs)
    mirror = mirror_positions(cohort.atlas)
    number = np.zeros((n_rois, n_rois), dtype=int)
    number[upper] = np.arange(len(upper[0]))
    number += number.T
    facing = number[mirror[upper[0]], mirror[upper[1]]]
    columns["mirrored"] = asymmetry_scores(logs, facing, cohort.groups)
    columns["connectome_twin"] = _twins(
        [W.tobytes() for W in cohort.connectomes], cohort
    )
    return columns


def _count(
    cohort: Cohort, rows: Iterable[int], what: Callable[[np.ndarray], int]
) -> np.ndarray:
    return np.array([what(cohort.connectomes[row]) for row in rows])


def _feature_columns(cohort: Cohort, place: int, name: str) -> dict[str, np.ndarray]:
    values = cohort.features[..., place]
    missing = np.isnan(values)
    low, high = PLAUSIBLE.get(name, (-np.inf, np.inf))
    columns = {
        f"{name}_missing": missing.sum(axis=1),
        f"{name}_zeros": (values == 0).sum(axis=1),
        f"{name}_implausible": ((values < low) | (values > high)).sum(axis=1),
        f"{name}_equal": np.array([_most_equal(row) for row in values]),
        f"{name}_deviation": _distance(values),
        f"{name}_mirrored": asymmetry_scores(
            values, mirror_positions(cohort.atlas), cohort.groups
        ),
        f"{name}_twin": _twins(
            [
                "" if gone.all() else row.tobytes()
                for row, gone in zip(values, missing, strict=True)
            ],
            cohort,
        ),
    }
    return columns


def _most_equal(values: np.ndarray) -> int:
    """Return how many regions share the commonest value; 1 where all differ."""
    given = values[~np.isnan(values)]
    if not given.size:
        return 0
    return int(np.unique(given, return_counts=True)[1].max())


def _distance(values: np.ndarray) -> np.ndarray:
    """Return every scan's typical distance from the median, told from the others'."""
    if len(values) < FEWEST_SCANS:
        return np.zeros(len(values))
    size = np.nan_to_num(np.abs(robust_deviation(values)), nan=0.0)
    given = np.maximum((~np.isnan(values)).sum(axis=1), 1)
    # a link that is 0 in most scans has no spread; capped, it cannot shout alone
    typical = np.minimum(size, 10).sum(axis=1) / given
    return robust_deviation(typical)


def _twins(keys: Sequence[str | bytes], cohort: Cohort) -> np.ndarray:
    """Return another scan with the very same values, empty where there is none."""
    first: dict[str | bytes, int] = {}
    scans = cohort.table["scan"].tolist()
    twins = [""] * len(scans)
    for row, key in enumerate(keys):
        if not key:
            continue
        other = first.setdefault(key, row)
        if other != row:
            twins[row] = scans[other]
            twins[other] = twins[other] or scans[row]
    return np.array(twins, dtype=object)


def _flags(row: pd.Series, cohort: Cohort) -> str:
    # what one connectome for everybody is like says nothing about a scan
    own = () if cohort.shares_connectome else ("connectome",)
    parts = (*own, *cohort.feature_names)
    found = [flag for part in parts for flag in _flags_of(part, row, cohort.n_rois)]
    return "; ".join(found)


def _flags_of(part: str, row: pd.Series, n_rois: int) -> list[str]:
    """Say what is unusual about the connectome, or about one feature, of a scan."""
    mirrored = "mirrored" if part == "connectome" else f"{part}_mirrored"
    flags = []
    if row.get(f"{part}_deviation", 0) > MOST_DEVIATION:
        flags.append(f"{part} far from the others")
    if row.get(mirrored, 0) < 0:
        flags.append(f"{part} looks as if left and right were swapped")
    if row.get(f"{part}_twin", ""):
        flags.append(f"{part} identical to {row[f'{part}_twin']}")
    if part == "connectome":
        if row["isolated"] > 0:
            flags.append(f"{int(row['isolated'])} regions without links")
        return flags
    if row[f"{part}_zeros"] > 0:
        flags.append(f"{part} filled with zero in {int(row[f'{part}_zeros'])} regions")
    if row[f"{part}_implausible"] > 0:
        flags.append(f"{part} implausible in {int(row[f'{part}_implausible'])} regions")
    if row[f"{part}_equal"] > max(2, _MOST_EQUAL * n_rois):
        flags.append(f"{part} one value in {int(row[f'{part}_equal'])} regions")
    if row[f"{part}_missing"] == n_rois:
        flags.append(f"{part} not measured")
    return flags
