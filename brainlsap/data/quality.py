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

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from brainlsap.data.cohort import Cohort
from brainlsap.data.measures import get_measure
from brainlsap.text import listed

# Distance from the median, in MADs scaled to a standard deviation.
MOST_DEVIATION = 6.0
# Fewer scans than this have no distribution to stand out of.
FEWEST_SCANS = 8
_MOST_EQUAL = 0.1
# Share of values that may lie beyond the plausible ones.
_MOST_IMPLAUSIBLE = 0.01
# As `MOST_DEVIATION`, of one region.
_FARTHEST = 20.0
# Sums of weights differ less between scans of one unit, in powers of ten.
_MOST_DECADES = 1.0
_EXCHANGED = "looks as if left and right were exchanged"
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
        `connectome_deviation` (robust distance from the others) and
        `connectome_mirrored` (agreement of left-right differences with those of the
        others, usually about 1; below 0 where the sides look exchanged, NaN where it
        cannot be told). Of each feature: `<name>_missing` (regions without a value,
        which others have), `<name>_zeros` (regions filled with 0),
        `<name>_implausible`, `<name>_equal` (regions that share one value),
        `<name>_outliers` (regions beyond 20 MADs of the other scans),
        `<name>_deviation` and `<name>_mirrored`. At last `flags`, in words; empty
        where nothing is unusual. `attrs["notes"]` lists what could not be judged.
    """
    shared, n_rois = cohort.shares_connectome, cohort.n_rois
    mirror, is_enough = cohort.atlas.homotopic, cohort.n_scans >= FEWEST_SCANS
    W = cohort.connectomes[: 1 if shared else None]
    own = W.diagonal(axis1=1, axis2=2)
    total = W.sum(axis=(1, 2), dtype=np.float64)
    links = np.count_nonzero(W, axis=(1, 2)) - np.count_nonzero(own, axis=1)
    streamlines = (total + own.sum(axis=1, dtype=np.float64)) / 2
    isolated = np.resize(W.sum(axis=2) == own, cohort.features.shape[:2])
    columns = {
        "diagonal": own.sum(axis=1) / np.maximum(streamlines, 1e-300),
        "isolated": isolated.sum(axis=1),
        "density": links / (n_rois * (n_rois - 1)),
        "streamlines": streamlines,
    }
    columns = {k: np.resize(one, cohort.n_scans) for k, one in columns.items()}
    names, many = np.array(cohort.region_names), max(2, _MOST_EQUAL * n_rois)
    flags = list[np.ndarray]()
    if not shared:
        upper = np.triu_indices(n_rois, 1)
        distance, agreement = np.zeros((2, cohort.n_scans))
        for start in range(0, len(upper[0]), _BLOCK):
            i, j = (side[start : start + _BLOCK] for side in upper)
            values = np.log1p(W[:, i, j].astype(float))
            facing = np.log1p(W[:, mirror[i], mirror[j]])
            distance += _distance(_robust_deviation(values))
            agreement += _agreement(values - facing, cohort.groups)
        deviation = _robust_deviation(distance / len(upper[0]))
        columns["connectome_deviation"] = deviation * is_enough
        columns["connectome_mirrored"] = _sides(agreement)
        alone = [listed(names[row], 3) for row in isolated]
        told = zip(columns["isolated"], alone, strict=True)
        links = [f"{n} regions without links: {where}" for n, where in told]
        flags.append(np.where(columns["isolated"] > 0, links, ""))
        usual = max(np.median(streamlines), 1e-300)
        decades = np.log10(np.maximum(streamlines, 1e-300) / usual)
        is_other = np.abs(decades) > _MOST_DECADES
        other = f", in most scans to {usual:.3g}: another unit, or logarithms?"
        sums = [f"connectome weights sum to {one:.3g}{other}" for one in streamlines]
        flags.append(np.where(is_other & is_enough, sums, ""))
    for place, name in enumerate(cohort.feature_names):
        values = cohort.features[..., place]
        unknown = np.isnan(values)
        low, high = get_measure(name).plausible
        # below the cortex its volume may stand for what is measured on the surface
        is_odd = (values < low) | (values > high)
        is_odd &= cohort.atlas.cortex | (not get_measure(name).on_surface)
        counted = (np.unique_counts(x).counts for x in values)  # every NaN for itself
        deviation = np.abs(_robust_deviation(values))
        has_spread = np.median(np.nan_to_num(deviation), axis=0) > 0
        far = (deviation > _FARTHEST) & has_spread & is_enough
        distance = _distance(deviation) / np.maximum(n_rois - unknown.sum(axis=1), 1)
        gap = np.nan_to_num(values - values[:, mirror])
        counts = {
            "missing": unknown[:, ~unknown.all(axis=0)].sum(axis=1),
            "zeros": (values == 0).sum(axis=1),
            "implausible": is_odd.sum(axis=1),
            "equal": np.array([n.max() for n in counted]),
            "outliers": far.sum(axis=1),
        }
        columns |= {f"{name}_{kind}": numbers for kind, numbers in counts.items()}
        columns[f"{name}_deviation"] = _robust_deviation(distance) * is_enough
        columns[f"{name}_mirrored"] = _sides(_agreement(gap, cohort.groups))
        # a scan that is far as a whole is told below
        is_single = (far.sum(axis=1) > 0) & (far.sum(axis=1) <= many)
        where = [f"{name} far from other scans in {listed(names[x], 3)}" for x in far]
        flags.append(np.where(is_single, where, ""))
        for kind, what, most in (
            ("zeros", "filled with zero", 0),
            ("implausible", "implausible", 0),
            ("equal", "one value", many),
            ("missing", "missing", 0),
        ):
            texts = [f"{name} {what} in {n} regions" for n in counts[kind]]
            flags.append(np.where(counts[kind] > most, texts, ""))
    for name in (*(["connectome"] if not shared else []), *cohort.feature_names):
        is_far = columns[f"{name}_deviation"] > MOST_DEVIATION
        flags.append(np.where(is_far, f"{name} far from the others", ""))
        is_mirrored = columns[f"{name}_mirrored"] < 0
        flags.append(np.where(is_mirrored, f"{name} {_EXCHANGED}", ""))
    table = pd.DataFrame(columns, index=pd.Index(cohort.table["scan"], name="scan"))
    table.attrs["notes"] = [
        f"{name.removesuffix('_mirrored')}: left and right differ too little, or in "
        "too few scans, to tell whether they were exchanged"
        for name in table.filter(like="_mirrored")
        if table[name].isna().all()
    ]
    said = ["; ".join(filter(None, one)) for one in zip(*flags, strict=True)]
    return table.assign(flags=said)


def describe_values(cohort: Cohort) -> list[str]:
    """Say between what the values of known measures lie, and in which unit they are.

    >>> from brainlsap.simulation import make_cohort
    >>> describe_values(make_cohort(20, atlas="desikan82"))
    ['fdg (ratios to a reference region): median over regions 1.11 to 1.33 in ...']
    """
    sentences = list[str]()
    for name in cohort.feature_names:
        measure, medians = get_measure(name), _scan_medians(cohort, name)
        if measure.unit and medians.size:
            low, high = medians.min(), medians.max()
            range_text = f"median over regions {low:.3g} to {high:.3g} in single scans"
            sentences.append(f"{name} ({measure.unit}): {range_text}")
    return sentences


def find_odd_units(cohort: Cohort) -> list[str]:
    """Say which features may be in another unit than their names mean.

    So are those whose medians over regions are unusual in any scan, or with values
    that no brain has: ratios below 0 or above 20, or more than 1 in 100 implausible.
    """
    findings = list[str]()
    for name in cohort.feature_names:
        measure, medians = get_measure(name), _scan_medians(cohort, name)
        if not (measure.unit and medians.size):
            continue
        values = _measured(cohort, name)
        values = values[~np.isnan(values)]
        reasons = list[str]()
        low, high = measure.usual_medians
        n_scans = ((medians < low) | (medians > high)).sum()
        if n_scans:
            told = f"the median over regions is below {low:g} or above {high:g}"
            range_text = f"{medians.min():.3g} to {medians.max():.3g}"
            of = f"in {n_scans} of {len(medians)} scans ({range_text})"
            reasons.append(f"{told} {of}")
        n_impossible = ((values < 0) | (values > measure.medians[1])).sum()
        if n_impossible:
            told = f"{n_impossible} of {len(values)} values are below 0"
            highest = measure.medians[1]
            told += f" or above {highest:g}" if np.isfinite(highest) else ""
            reasons.append(told)
        low, high = measure.plausible
        share = ((values < low) | (values > high)).mean()
        if share > _MOST_IMPLAUSIBLE and not reasons:
            reasons.append(f"{share:.1%} of values are below {low:g} or above {high:g}")
        if reasons:
            findings.append(
                f"{name} may not be measured in {measure.unit}: {'; '.join(reasons)}"
            )
    return findings


def _measured(cohort: Cohort, name: str) -> np.ndarray:
    """Return a feature's values by scan and region, of where it is measured."""
    values = cohort.features[..., cohort.feature_names.index(name)]
    # below the cortex its volume may stand for what is measured on the surface
    return values[:, cohort.atlas.cortex] if get_measure(name).on_surface else values


def _scan_medians(cohort: Cohort, name: str) -> np.ndarray:
    """Return the median over regions of every scan that has values of a feature."""
    values = _measured(cohort, name)
    return np.nanmedian(values[~np.isnan(values).all(axis=1)], axis=1)


def _distance(deviation: np.ndarray) -> np.ndarray:
    """Return how far scans lie from the others, summed over regions or links."""
    size = np.nan_to_num(np.abs(deviation), nan=0.0)
    # a link that is 0 in most scans has no spread; capped, it cannot shout alone
    return np.minimum(size, 10).sum(axis=1)


def _robust_deviation(values: np.ndarray) -> np.ndarray:
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
