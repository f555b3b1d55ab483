"""Look at every scan of a cohort for what no format can forbid.

Nothing is removed here: a table describes every scan, and `flags` says what is unusual
about it. Outliers are judged by the median and the median absolute deviation (MAD) over
scans, which a few bad scans hardly change.

Exchanged hemispheres are found by how the hemispheres differ. Let `g` be a scan's left
minus right of every region (or edge), `m` the mean of `g` over all other people and `v`
its variance over scans. The agreement `t = sum(g m / (v + mean(v)))` changes its sign
if a scan's hemispheres are exchanged. With `M` the median and `S` the robust standard
deviation of `t`, a scan is flagged if `t < min(0, M - k S)`, `k = 4.5 + 20 / n_scans`.
This is only done if `M > (k - 1) S`, so that nearly all exchanged scans are found.
Otherwise the hemispheres differ too little: the column is NaN, and
`table.attrs["notes"]` says so.
"""

import warnings

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from brainlsap.data.cohort import Cohort
from brainlsap.data.measures import get_measure
from brainlsap.text import listed

# A scan is flagged beyond this distance from the median, in MADs scaled to a standard
# deviation.
MAX_DEVIATION = 6.0
# The same for a single region.
_MAX_REGION_DEVIATION = 20.0
# Fewer scans have no distribution that one scan could stand out from.
MIN_SCANS = 8
# Largest share of a scan's regions that may have one value, or be outliers by
# themselves.
_MAX_SHARE_OF_REGIONS = 0.1
# Largest share of values outside the plausible range.
_MAX_SHARE_IMPLAUSIBLE = 0.01
# Sums of weights of scans in one unit differ by less, in powers of ten.
_MAX_DECADES = 1.0
# Deviations are capped, so that no single edge or region dominates their sum. An edge
# that is absent in most scans has a MAD of 0.
_DEVIATION_CAP = 10
_EXCHANGED = "looks as if left and right were exchanged"
# Edges that are compared at a time.
_EDGES_PER_BLOCK = 1000


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
    is_isolated = _find_isolated(cohort)
    columns = _describe_connectomes(cohort, is_isolated)
    flags = list[np.ndarray]()
    compared_names = list(cohort.feature_names)
    if not cohort.shares_connectome:
        columns |= _compare_connectomes(cohort)
        flags += _flag_connectomes(cohort, columns, is_isolated)
        compared_names.insert(0, "connectome")
    for name in cohort.feature_names:
        feature_columns, feature_flags = _describe_feature(cohort, name)
        columns |= feature_columns
        flags += feature_flags
    for name in compared_names:
        is_far = columns[f"{name}_deviation"] > MAX_DEVIATION
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
    flags_by_scan = zip(*flags, strict=True)
    return table.assign(
        flags=["; ".join(filter(None, scan_flags)) for scan_flags in flags_by_scan]
    )


def _unique_connectomes(cohort: Cohort) -> np.ndarray:
    """Return the connectomes of all scans, or the single one that scans share."""
    return cohort.connectomes[: 1 if cohort.shares_connectome else None]


def _edge_sums(W: np.ndarray) -> np.ndarray:
    """Return the sum of the weights of every connectome, each edge once."""
    total = W.sum(axis=(1, 2), dtype=np.float64)
    diagonal_sum = W.diagonal(axis1=1, axis2=2).sum(axis=1, dtype=np.float64)
    return (total + diagonal_sum) / 2


def _find_isolated(cohort: Cohort) -> np.ndarray:
    """Return which regions of every scan have no edge to another region."""
    W = _unique_connectomes(cohort)
    is_isolated = W.sum(axis=2) == W.diagonal(axis1=1, axis2=2)
    return np.resize(is_isolated, cohort.features.shape[:2])


def _describe_connectomes(
    cohort: Cohort, is_isolated: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the columns on every connectome by itself."""
    W = _unique_connectomes(cohort)
    diagonal = W.diagonal(axis1=1, axis2=2)
    streamlines = _edge_sums(W)
    n_entries = np.count_nonzero(W, axis=(1, 2)) - np.count_nonzero(diagonal, axis=1)
    columns = {
        "diagonal": diagonal.sum(axis=1) / np.maximum(streamlines, 1e-300),
        "isolated": is_isolated.sum(axis=1),
        "density": n_entries / (cohort.n_rois * (cohort.n_rois - 1)),
        "streamlines": streamlines,
    }
    return {head: np.resize(column, cohort.n_scans) for head, column in columns.items()}


def _compare_connectomes(cohort: Cohort) -> dict[str, np.ndarray]:
    """Return how each connectome deviates from the others, and its sides agree."""
    W = cohort.connectomes
    mirror = cohort.atlas.homotopic
    rows, cols = np.triu_indices(cohort.n_rois, 1)
    distance = np.zeros(cohort.n_scans)
    agreement = np.zeros(cohort.n_scans)
    for start in range(0, len(rows), _EDGES_PER_BLOCK):
        i = rows[start : start + _EDGES_PER_BLOCK]
        j = cols[start : start + _EDGES_PER_BLOCK]
        log_weights = np.log1p(W[:, i, j].astype(float))
        log_mirrored = np.log1p(W[:, mirror[i], mirror[j]])
        distance += _sum_deviations(_robust_deviation(log_weights))
        agreement += _agreement(log_weights - log_mirrored, cohort.groups)
    deviation = _robust_deviation(distance / len(rows))
    return {
        "connectome_deviation": deviation * (cohort.n_scans >= MIN_SCANS),
        "connectome_mirrored": _mirror_score(agreement),
    }


def _flag_connectomes(
    cohort: Cohort, columns: dict[str, np.ndarray], is_isolated: np.ndarray
) -> list[np.ndarray]:
    """Return flags of isolated regions and of sums of weights in another unit."""
    region_names = np.array(cohort.region_names)
    n_isolated = columns["isolated"]
    isolated_texts = [
        f"{n_regions} regions without links: {listed(region_names[is_region], 3)}"
        for n_regions, is_region in zip(n_isolated, is_isolated, strict=True)
    ]
    streamlines = columns["streamlines"]
    median = max(np.median(streamlines), 1e-300)
    decades = np.log10(np.maximum(streamlines, 1e-300) / median)
    is_other_unit = np.abs(decades) > _MAX_DECADES
    unit_texts = [
        f"connectome weights sum to {weight_sum:.3g}, in most scans to {median:.3g}: "
        "another unit, or logarithms?"
        for weight_sum in streamlines
    ]
    is_enough = cohort.n_scans >= MIN_SCANS
    return [
        np.where(n_isolated > 0, isolated_texts, ""),
        np.where(is_other_unit & is_enough, unit_texts, ""),
    ]


def _describe_feature(
    cohort: Cohort, name: str
) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """Return the columns and flags of one feature."""
    values = cohort.features[..., cohort.feature_names.index(name)]
    is_missing = np.isnan(values)
    n_measured = np.maximum(cohort.n_rois - is_missing.sum(axis=1), 1)
    deviation = np.abs(_robust_deviation(values))
    has_spread = np.median(np.nan_to_num(deviation), axis=0) > 0
    is_outlier = deviation > _MAX_REGION_DEVIATION
    is_outlier &= has_spread & (cohort.n_scans >= MIN_SCANS)
    distance = _sum_deviations(deviation) / n_measured
    asymmetry = np.nan_to_num(values - values[:, cohort.atlas.homotopic])
    counts = {
        "missing": is_missing[:, ~is_missing.all(axis=0)].sum(axis=1),
        "zeros": (values == 0).sum(axis=1),
        "implausible": _find_implausible(cohort, name).sum(axis=1),
        # Every NaN counts as a value of its own.
        "equal": np.array([np.unique_counts(row).counts.max() for row in values]),
        "outliers": is_outlier.sum(axis=1),
    }
    columns = {f"{name}_{kind}": numbers for kind, numbers in counts.items()}
    deviation_of_scan = _robust_deviation(distance) * (cohort.n_scans >= MIN_SCANS)
    columns[f"{name}_deviation"] = deviation_of_scan
    columns[f"{name}_mirrored"] = _mirror_score(_agreement(asymmetry, cohort.groups))
    return columns, _flag_feature(cohort, name, counts, is_outlier)


def _find_implausible(cohort: Cohort, name: str) -> np.ndarray:
    """Return which values of a feature no brain has."""
    measure = get_measure(name)
    values = cohort.features[..., cohort.feature_names.index(name)]
    low, high = measure.plausible
    # In the subcortex a measure of the surface may be replaced by the volume.
    can_judge = cohort.atlas.cortex | (not measure.on_surface)
    return ((values < low) | (values > high)) & can_judge


def _flag_feature(
    cohort: Cohort, name: str, counts: dict[str, np.ndarray], is_outlier: np.ndarray
) -> list[np.ndarray]:
    """Return flags of single regions far from other scans, and of unusual counts."""
    max_regions = max(2, _MAX_SHARE_OF_REGIONS * cohort.n_rois)
    region_names = np.array(cohort.region_names)
    n_outliers = counts["outliers"]
    outlier_texts = [
        f"{name} far from other scans in {listed(region_names[is_region], 3)}"
        for is_region in is_outlier
    ]
    # With more outliers the scan is far as a whole, and flagged as such.
    are_few = (n_outliers > 0) & (n_outliers <= max_regions)
    flags = [np.where(are_few, outlier_texts, "")]
    phrases = (
        ("zeros", "filled with zero", 0),
        ("implausible", "implausible", 0),
        ("equal", "one value", max_regions),
        ("missing", "missing", 0),
    )
    for kind, phrase, max_count in phrases:
        texts = [
            f"{name} {phrase} in {n_regions} regions" for n_regions in counts[kind]
        ]
        flags.append(np.where(counts[kind] > max_count, texts, ""))
    return flags


def describe_values(cohort: Cohort) -> list[str]:
    """Describe the range of known measures over scans, and their units.

    >>> from brainlsap.simulation import make_cohort
    >>> describe_values(make_cohort(20, atlas="desikan82"))
    ['fdg (ratios to a reference region): median over regions 1.11 to 1.33 in ...']
    """
    sentences = list[str]()
    for name in cohort.feature_names:
        measure = get_measure(name)
        medians = _scan_medians(cohort, name)
        if measure.unit and medians.size:
            low, high = medians.min(), medians.max()
            range_text = f"median over regions {low:.3g} to {high:.3g} in single scans"
            sentences.append(f"{name} ({measure.unit}): {range_text}")
    return sentences


def find_odd_units(cohort: Cohort) -> list[str]:
    """Describe features that may be in another unit than their names mean.

    Their medians over regions are unusual in some scan, or they have values that no
    brain has: ratios below 0 or above 20, or more than 1 in 100 implausible.
    """
    findings = list[str]()
    for name in cohort.feature_names:
        unit = get_measure(name).unit
        reasons = _find_unit_reasons(cohort, name) if unit else []
        if reasons:
            findings.append(
                f"{name} may not be measured in {unit}: {'; '.join(reasons)}"
            )
    return findings


def _find_unit_reasons(cohort: Cohort, name: str) -> list[str]:
    """Return why a feature may be in another unit than that of its measure."""
    measure = get_measure(name)
    medians = _scan_medians(cohort, name)
    if not medians.size:
        return []
    values = _measured_values(cohort, name)
    values = values[~np.isnan(values)]
    reasons = list[str]()
    low, high = measure.usual_medians
    n_scans = ((medians < low) | (medians > high)).sum()
    if n_scans:
        reasons.append(
            f"the median over regions is below {low:g} or above {high:g} in {n_scans} "
            f"of {len(medians)} scans ({medians.min():.3g} to {medians.max():.3g})"
        )
    highest = measure.medians[1]
    n_impossible = ((values < 0) | (values > highest)).sum()
    if n_impossible:
        reason = f"{n_impossible} of {len(values)} values are below 0"
        if np.isfinite(highest):
            reason += f" or above {highest:g}"
        reasons.append(reason)
    low, high = measure.plausible
    implausible_share = ((values < low) | (values > high)).mean()
    if implausible_share > _MAX_SHARE_IMPLAUSIBLE and not reasons:
        reasons.append(
            f"{implausible_share:.1%} of values are below {low:g} or above {high:g}"
        )
    return reasons


def _measured_values(cohort: Cohort, name: str) -> np.ndarray:
    """Return a feature's values by scan and region, of regions that it is measured in.

    In the subcortex a measure of the surface may be replaced by the volume.
    """
    values = cohort.features[..., cohort.feature_names.index(name)]
    return values[:, cohort.atlas.cortex] if get_measure(name).on_surface else values


def _scan_medians(cohort: Cohort, name: str) -> np.ndarray:
    """Return the median over regions of every scan that has values of a feature."""
    values = _measured_values(cohort, name)
    return np.nanmedian(values[~np.isnan(values).all(axis=1)], axis=1)


def _sum_deviations(deviation: np.ndarray) -> np.ndarray:
    """Return every scan's distance from the others, summed over regions or edges."""
    distance = np.nan_to_num(np.abs(deviation), nan=0.0)
    return np.minimum(distance, _DEVIATION_CAP).sum(axis=1)


def _robust_deviation(values: np.ndarray) -> np.ndarray:
    """Return signed deviations from the median along axis 0, in scaled MADs.

    They are not scaled if the MAD is 0, and NaN where values are missing.
    """
    # Regions that are measured in no scan have no median.
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        deviation = values - np.nanmedian(values, axis=0)
        mad = 1.4826 * np.nanmedian(np.abs(deviation), axis=0)
    return deviation / np.where(mad > 0, mad, 1)


def _agreement(asymmetry: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return how each scan's left minus right agrees with that of other people.

    t = sum(g m / (v + mean(v))), as the top of this module defines it.
    """
    people, person_index = np.unique(groups.astype(str), return_inverse=True)
    person_sum = np.zeros((len(people), asymmetry.shape[1]))
    np.add.at(person_sum, person_index, asymmetry)
    n_own_scans = np.bincount(person_index)[person_index]
    n_other_scans = np.maximum(len(asymmetry) - n_own_scans, 1)
    other_sum = asymmetry.sum(axis=0) - person_sum[person_index]
    other_mean = other_sum / n_other_scans[:, None]
    variance = asymmetry.var(axis=0)
    weight = 1 / np.maximum(variance + variance.mean(), 1e-300)
    return np.einsum("ij,ij,j->i", asymmetry, other_mean, weight)


def _mirror_score(agreement: np.ndarray) -> np.ndarray:
    """Return agreement over its median, below 0 only if the sides are exchanged."""
    n_scans = len(agreement)
    median = np.median(agreement)
    robust_sd = max(1.4826 * np.median(np.abs(agreement - median)), 1e-12)
    threshold = 4.5 + 20 / n_scans
    if n_scans < MIN_SCANS or not median > (threshold - 1) * robust_sd:
        return np.full(n_scans, np.nan)
    is_exchanged = agreement < min(0, median - threshold * robust_sd)
    return np.where(is_exchanged, agreement, np.maximum(agreement, 0)) / median
