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

Where all scans of a new study are exchanged, only scans of another study, such as those
of a training, can show it (:func:`make_side_comparison`). Let `g` be a person's left
minus right of every pair of homotopic regions, `m` its mean over the people of the
training and `v` its variance. The agreement of a person is
`t = sum(g m / (v + mean(v)))`. In the training, `m` is the mean over the other people.
`T` and `S` are mean and standard
deviation of `t` there, over `n` people, and `t_new`, `S_new` and `n_new` those of the
new people. With `e = max(S, S_new) / sqrt(n_new)`, the new scans are taken for
exchanged if `t_new < -T / 2` and `t_new < -4 e`, and for not exchanged if `t_new > T /
2` and `t_new > 2 e`. All else shows nothing, as do trainings with `T < 6 S / sqrt(n)`,
whose hemispheres differ too little. A single new scan is taken for exchanged if its
`t < -T / 2` and `T > 5 S`, so that its `t` lies at least 7.5 S below that of the
training (:func:`make_exchanged_scan_mask`).
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum, auto
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from brainlsap.arrays import compute_robust_deviations
from brainlsap.data.cohort import Cohort
from brainlsap.data.measures import get_measure_record
from brainlsap.data.reading_options import NO_CONNECTOME
from brainlsap.text import count_text, join_with_commas

# A scan is flagged beyond this distance from the median, in MADs scaled to a standard
# deviation.
MAX_DEVIATION = 6.0
# The same for a single region.
MAX_REGION_DEVIATION = 20.0
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
_CORRECTION = "Correct the values or write n/a"
_FAR_CONNECTOME = (
    "connectome very different from the connectomes of other scans. Check the file of "
    "the connectome and the order of its rows"
)
_EXCHANGED = "left and right may have been swapped"
# Smallest mean agreement of sides in the training, in standard errors.
_MIN_TRAINING_AGREEMENT = 6.0
# Largest and smallest agreement of exchanged and correct sides, in standard errors.
_MAX_EXCHANGED = -4.0
# Smallest mean agreement of sides in the training that shows the sides of a single
# scan, in standard deviations.
_MIN_AGREEMENT_OF_SCAN = 5.0
_MIN_CORRECT = 2.0
# Largest deviation of an asymmetry that counts, in scaled median absolute deviations.
_MAX_ASYMMETRY_DEVIATION = 20.0
# Digits of the weights of asymmetries in a stored model.
_N_DIGITS = 6
# Edges that are compared at a time.
_EDGES_PER_BLOCK = 1000


@threadpool_limits.wrap(limits=1)
def quality_table(cohort: Cohort) -> pd.DataFrame:
    """Return measures of the quality of every scan, with a flag for unusual scans.

    Parameters
    ----------
    cohort : Cohort
        As it was loaded; negative and NaN weights were refused there.

    Returns
    -------
    DataFrame
        A row for every scan, indexed by its name. Of the connectome: `diagonal`
        (share of all weights), `isolated` (regions without a link to another; flagged
        if other scans have links of the region),
        `density`, `streamlines` (sum of weights, each link once),
        `connectome_deviation` (robust distance from the others) and
        `connectome_mirrored` (agreement of left-right differences with those of the
        others, usually about 1; below 0 where the sides look exchanged, NaN where it
        cannot be told). Of each feature: `<name>_missing` (regions without a value,
        which others have), `<name>_zeros` (regions filled with 0),
        `<name>_implausible`, `<name>_equal` (regions that share one value),
        `<name>_outliers` (regions beyond 20 MADs of the other scans),
        `<name>_deviation` and `<name>_mirrored`. At last `unlike` (whether the scan is
        unlike the others: it has a flag, apart from missing values in at most a tenth
        of the regions), `swapped` (names of values whose left and right may have been
        swapped, with commas) and `flags`, in words; empty where nothing is unusual.
        `attrs["notes"]` lists what could not be judged, and regions without a link in
        every scan.
    """
    isolated_region_mask = _make_isolated_region_mask(cohort)
    values_by_column = _compute_connectome_values_by_column(
        cohort, isolated_region_mask
    )
    flag_text_arrays = list[np.ndarray]()
    n_harmless_flags_by_scan = np.zeros(cohort.n_scans, dtype=int)
    compared_value_names = list(cohort.feature_names)
    if not cohort.shares_connectome:
        values_by_column |= _compute_comparison_values_by_column(cohort)
        flag_text_arrays += _list_connectome_flag_arrays(
            cohort, values_by_column, isolated_region_mask
        )
        compared_value_names.insert(0, "connectome")
    for feature_name in cohort.feature_names:
        feature_values_by_column, feature_flag_arrays = _compute_columns_and_flags(
            cohort, feature_name
        )
        values_by_column |= feature_values_by_column
        flag_text_arrays += feature_flag_arrays
        n_missing_by_scan = feature_values_by_column[f"{feature_name}_missing"]
        n_harmless_flags_by_scan += (n_missing_by_scan > 0) & (
            n_missing_by_scan <= _compute_max_n_regions(cohort)
        )
    swapped_mask_by_value = {
        value_name: values_by_column[f"{value_name}_mirrored"] < 0
        for value_name in compared_value_names
    }
    flag_text_arrays += [
        np.where(swapped_scan_mask, f"{value_name}: {_EXCHANGED}", "")
        for value_name, swapped_scan_mask in swapped_mask_by_value.items()
    ]
    scan_table = pd.DataFrame(
        values_by_column, index=pd.Index(cohort.table["scan"], name="scan")
    )
    scan_table.attrs["notes"] = _list_isolated_region_notes(
        cohort, isolated_region_mask
    ) + [
        unknown_sides_text(feature_name.removesuffix("_mirrored"))
        for feature_name in scan_table.filter(like="_mirrored")
        if scan_table[feature_name].isna().all()
    ]
    n_flags_by_scan = np.sum([texts != "" for texts in flag_text_arrays], axis=0)
    swapped_name_arrays = [
        np.where(swapped_scan_mask, value_name, "")
        for value_name, swapped_scan_mask in swapped_mask_by_value.items()
    ]
    return scan_table.assign(
        unlike=n_flags_by_scan > n_harmless_flags_by_scan,
        swapped=join_texts_by_scan(swapped_name_arrays, ", "),
        flags=join_texts_by_scan(flag_text_arrays, "; "),
    )


def join_texts_by_scan(text_arrays: Sequence[np.ndarray], separator: str) -> list[str]:
    """Return the texts of every scan in one text; "" if it has none."""
    return [
        separator.join(filter(None, scan_texts))
        for scan_texts in zip(*text_arrays, strict=True)
    ]


def list_swapped_scan_sentences(
    scan_names_by_value: Mapping[str, Sequence[str]],
) -> list[str]:
    """Return a sentence for every value whose sides may be swapped in single scans.

    `scan_names_by_value` has the names or codes of these scans.

    >>> list_swapped_scan_sentences({"fdg": ["sub-1"], "connectome": []})
    ['In 1 scan, left and right of fdg may have been swapped: sub-1. Correct ...']
    """
    return [
        f"In {count_text(len(scan_names), 'scan')}, left and right of "
        f"{'the ' if value_name == 'connectome' else ''}{value_name} may have been "
        f"swapped: {join_with_commas(scan_names, 5)}. "
        + (
            "Correct the scan, or leave it out with --exclude."
            if len(scan_names) == 1
            else "Correct the scans, or leave them out with --exclude."
        )
        for value_name, scan_names in scan_names_by_value.items()
        if scan_names
    ]


def list_swapped_scans_by_value(swapped_name_series: pd.Series) -> dict[str, list[str]]:
    """Return the scans of every value in the column `swapped` of a quality table.

    The index of the series has the scans.
    """
    scan_names_by_value: dict[str, list[str]] = {}
    for scan_name, swapped_names_text in swapped_name_series.items():
        for value_name in filter(None, swapped_names_text.split(", ")):
            scan_names_by_value.setdefault(value_name, []).append(str(scan_name))
    return scan_names_by_value


def unknown_sides_text(value_name: str) -> str:
    """Return the note that the sides of values could not be verified."""
    return (
        f"{value_name}: left and right differ too little, or in too few scans, to show "
        "whether they were swapped"
    )


def _get_unique_weight_matrices(cohort: Cohort) -> np.ndarray:
    """Return the connectomes of all scans, or the single one that scans share."""
    return cohort.connectomes[: 1 if cohort.shares_connectome else None]


def _compute_edge_sums(W: np.ndarray) -> np.ndarray:
    """Return the sum of the weights of every connectome, each edge once."""
    total_weights = W.sum(axis=(1, 2), dtype=np.float64)
    diagonal_sums = W.diagonal(axis1=1, axis2=2).sum(axis=1, dtype=np.float64)
    return (total_weights + diagonal_sums) / 2


def _make_isolated_region_mask(cohort: Cohort) -> np.ndarray:
    """Return whether regions of every scan have no edge to another region."""
    W = _get_unique_weight_matrices(cohort)
    isolated_region_mask = W.sum(axis=2) == W.diagonal(axis1=1, axis2=2)
    return np.resize(isolated_region_mask, cohort.features.shape[:2])


def _list_isolated_region_notes(
    cohort: Cohort, isolated_region_mask: np.ndarray
) -> list[str]:
    """Return a note on the regions that have no link in any scan."""
    isolated_region_names = np.array(cohort.region_names)[
        isolated_region_mask.all(axis=0)
    ]
    has_connectomes = cohort.provenance.get("connectome") != NO_CONNECTOME
    if not (has_connectomes and isolated_region_names.size):
        return []
    return [
        f"connectome: {count_text(isolated_region_names.size, 'region', 'have')} no "
        f"connection in any scan: {join_with_commas(isolated_region_names, 3)}. Check "
        "the order of the rows, and whether the parcellation contains these regions"
    ]


def _compute_connectome_values_by_column(
    cohort: Cohort, isolated_region_mask: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the columns on every connectome by itself."""
    W = _get_unique_weight_matrices(cohort)
    diagonal_weights = W.diagonal(axis1=1, axis2=2)
    edge_sums = _compute_edge_sums(W)
    n_entries_by_connectome = np.array([np.count_nonzero(matrix) for matrix in W])
    n_entries_by_connectome -= np.count_nonzero(diagonal_weights, axis=1)
    values_by_column = {
        "diagonal": diagonal_weights.sum(axis=1) / np.maximum(edge_sums, 1e-300),
        "isolated": isolated_region_mask.sum(axis=1),
        "density": n_entries_by_connectome / (cohort.n_rois * (cohort.n_rois - 1)),
        "streamlines": edge_sums,
    }
    return {
        column_name: np.resize(column_values, cohort.n_scans)
        for column_name, column_values in values_by_column.items()
    }


def _compute_comparison_values_by_column(cohort: Cohort) -> dict[str, np.ndarray]:
    """Return the deviation of each connectome, and the agreement of its sides."""
    # Reading weights by one index is faster than by row and column.
    flat_weights = cohort.connectomes.reshape(cohort.n_scans, -1)
    mirrored_indices = cohort.atlas.homotopic
    row_indices, column_indices = np.triu_indices(cohort.n_rois, 1)
    scan_distances = np.zeros(cohort.n_scans)
    side_agreements = np.zeros(cohort.n_scans)
    for block_start in range(0, len(row_indices), _EDGES_PER_BLOCK):
        i = row_indices[block_start : block_start + _EDGES_PER_BLOCK]
        j = column_indices[block_start : block_start + _EDGES_PER_BLOCK]
        mirrored_pair_indices = (
            mirrored_indices[i] * cohort.n_rois + mirrored_indices[j]
        )
        log_weights = np.log1p(flat_weights.take(i * cohort.n_rois + j, axis=1))
        log_mirrored_weights = np.log1p(
            flat_weights.take(mirrored_pair_indices, axis=1)
        )
        scan_distances += _compute_scan_distances(
            compute_robust_deviations(log_weights)
        )
        asymmetries = log_weights.astype(float) - log_mirrored_weights
        side_agreements += _compute_side_agreements(asymmetries, cohort.groups)
    distance_deviations = compute_robust_deviations(scan_distances / len(row_indices))
    return {
        "connectome_deviation": distance_deviations * (cohort.n_scans >= MIN_SCANS),
        "connectome_mirrored": _compute_mirror_scores(side_agreements),
    }


def _list_connectome_flag_arrays(
    cohort: Cohort,
    values_by_column: dict[str, np.ndarray],
    isolated_region_mask: np.ndarray,
) -> list[np.ndarray]:
    """Return flags of isolated regions, of another unit, and of far connectomes."""
    region_names = np.array(cohort.region_names)
    # A note names the regions that are isolated in every scan.
    unusually_isolated_mask = isolated_region_mask & ~isolated_region_mask.all(axis=0)
    n_isolated_by_scan = unusually_isolated_mask.sum(axis=1)
    isolated_texts = [
        f"{count_text(n_regions, 'region')} without connections: "
        f"{join_with_commas(region_names[isolated_mask_in_scan], 3)}"
        for n_regions, isolated_mask_in_scan in zip(
            n_isolated_by_scan, unusually_isolated_mask, strict=True
        )
    ]
    edge_sums = values_by_column["streamlines"]
    median_edge_sum = max(np.median(edge_sums), 1e-300)
    log_ratios = np.log10(np.maximum(edge_sums, 1e-300) / median_edge_sum)
    other_unit_scan_mask = np.abs(log_ratios) > _MAX_DECADES
    unit_texts = [
        f"connectome weights have the sum {weight_sum:.3g}, but in most scans "
        f"about {median_edge_sum:.3g}. The unit may be different, or the weights may "
        "be logarithms"
        for weight_sum in edge_sums
    ]
    has_enough_scans = cohort.n_scans >= MIN_SCANS
    far_scan_mask = values_by_column["connectome_deviation"] > MAX_DEVIATION
    return [
        np.where(n_isolated_by_scan > 0, isolated_texts, ""),
        np.where(other_unit_scan_mask & has_enough_scans, unit_texts, ""),
        np.where(far_scan_mask, _FAR_CONNECTOME, ""),
    ]


def _compute_columns_and_flags(
    cohort: Cohort, feature_name: str
) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """Return the columns and flags of one feature."""
    feature_values = cohort.features[..., cohort.feature_names.index(feature_name)]
    missing_value_mask = np.isnan(feature_values)
    n_measured_by_scan = np.maximum(cohort.n_rois - missing_value_mask.sum(axis=1), 1)
    value_deviations = compute_robust_deviations(feature_values)
    absolute_deviations = np.abs(value_deviations)
    varying_region_mask = np.median(np.nan_to_num(absolute_deviations), axis=0) > 0
    outlier_value_mask = absolute_deviations > MAX_REGION_DEVIATION
    outlier_value_mask &= varying_region_mask & (cohort.n_scans >= MIN_SCANS)
    scan_distances = _compute_scan_distances(absolute_deviations) / n_measured_by_scan
    region_asymmetries = np.nan_to_num(
        feature_values - feature_values[:, cohort.atlas.homotopic]
    )
    implausible_value_mask = make_implausible_value_mask(cohort, feature_name)
    unusually_missing_mask = missing_value_mask & ~missing_value_mask.all(axis=0)
    zero_value_mask = feature_values == 0
    # Every NaN counts as a value of its own.
    n_equal_by_scan = np.array(
        [np.unique_counts(scan_values).counts.max() for scan_values in feature_values]
    )
    values_by_column = {
        f"{feature_name}_missing": unusually_missing_mask.sum(axis=1),
        f"{feature_name}_zeros": zero_value_mask.sum(axis=1),
        f"{feature_name}_implausible": implausible_value_mask.sum(axis=1),
        f"{feature_name}_equal": n_equal_by_scan,
        f"{feature_name}_outliers": outlier_value_mask.sum(axis=1),
    }
    scan_deviations = compute_robust_deviations(scan_distances) * (
        cohort.n_scans >= MIN_SCANS
    )
    values_by_column[f"{feature_name}_deviation"] = scan_deviations
    values_by_column[f"{feature_name}_mirrored"] = _compute_mirror_scores(
        _compute_side_agreements(
            _limit_extreme_asymmetries(region_asymmetries), cohort.groups
        )
    )
    far_scan_mask = scan_deviations > MAX_DEVIATION
    max_n_regions = _compute_max_n_regions(cohort)
    equal_texts = [
        f"{feature_name} has the same value in {count_text(n_regions, 'region')}"
        for n_regions in n_equal_by_scan
    ]
    return values_by_column, [
        *_list_feature_flag_arrays(
            cohort,
            feature_name,
            outlier_value_mask,
            implausible_value_mask,
            max_n_regions,
        ),
        _make_region_flag_texts(
            cohort, f"{feature_name} filled with zero", zero_value_mask
        ),
        _make_region_flag_texts(
            cohort, f"{feature_name} missing", unusually_missing_mask
        ),
        np.where(n_equal_by_scan > max_n_regions, equal_texts, ""),
        _make_far_flag_texts(cohort, feature_name, value_deviations, far_scan_mask),
    ]


def _compute_max_n_regions(cohort: Cohort) -> float:
    """Return the largest number of odd regions of a scan that is not odd as a whole."""
    return max(2, _MAX_SHARE_OF_REGIONS * cohort.n_rois)


def make_implausible_value_mask(cohort: Cohort, feature_name: str) -> np.ndarray:
    """Return whether values of a feature are impossible in a brain."""
    measure_record = get_measure_record(feature_name)
    feature_values = cohort.features[..., cohort.feature_names.index(feature_name)]
    lowest_plausible_value, highest_plausible_value = measure_record.plausible_range
    # In the subcortex a measure of the surface may be replaced by the volume.
    judged_region_mask = cohort.atlas.cortex | (not measure_record.is_on_surface)
    return (
        (feature_values < lowest_plausible_value)
        | (feature_values > highest_plausible_value)
    ) & judged_region_mask


def _list_feature_flag_arrays(
    cohort: Cohort,
    feature_name: str,
    outlier_value_mask: np.ndarray,
    implausible_value_mask: np.ndarray,
    max_n_outlier_regions: float,
) -> list[np.ndarray]:
    """Return flags of single regions that are far from other scans, or implausible."""
    # Implausible values are named below.
    plausible_outlier_mask = outlier_value_mask & ~implausible_value_mask
    outlier_texts = [
        f"{feature_name} very different from other scans in {region_text}. "
        f"{_CORRECTION}"
        for region_text in _list_region_texts_by_scan(
            cohort, feature_name, plausible_outlier_mask
        )
    ]
    # A scan with more outliers is far as a whole, and has a flag of its own.
    few_outliers_scan_mask = plausible_outlier_mask.any(axis=1)
    few_outliers_scan_mask &= outlier_value_mask.sum(axis=1) <= max_n_outlier_regions
    flag_text_arrays = [np.where(few_outliers_scan_mask, outlier_texts, "")]
    n_implausible_by_scan = implausible_value_mask.sum(axis=1)
    implausible_texts = [
        f"{feature_name} has implausible values in {count_text(n_regions, 'region')}: "
        f"{region_text}. "
        f"{_CORRECTION}"
        for n_regions, region_text in zip(
            n_implausible_by_scan,
            _list_region_texts_by_scan(cohort, feature_name, implausible_value_mask),
            strict=True,
        )
    ]
    flag_text_arrays.append(np.where(n_implausible_by_scan > 0, implausible_texts, ""))
    return flag_text_arrays


def _make_region_flag_texts(
    cohort: Cohort, problem_text: str, problem_region_mask: np.ndarray
) -> np.ndarray:
    """Return a flag of every scan with regions that have a problem."""
    region_names = np.array(cohort.region_names)
    flag_texts = [
        f"{problem_text} in {count_text(int(problem_mask_in_scan.sum()), 'region')}: "
        f"{join_with_commas(region_names[problem_mask_in_scan], 3)}"
        for problem_mask_in_scan in problem_region_mask
    ]
    return np.where(problem_region_mask.any(axis=1), flag_texts, "")


def _make_far_flag_texts(
    cohort: Cohort,
    feature_name: str,
    value_deviations: np.ndarray,
    far_scan_mask: np.ndarray,
) -> np.ndarray:
    """Return a flag of every scan that is far as a whole, with its farthest regions."""
    filled_deviations = np.nan_to_num(value_deviations)
    farthest_region_indices = np.argsort(-np.abs(filled_deviations), axis=1)[:, :3]
    farthest_region_mask = np.zeros(filled_deviations.shape, dtype=bool)
    np.put_along_axis(
        farthest_region_mask, farthest_region_indices, far_scan_mask[:, None], axis=1
    )
    n_higher_by_scan = (filled_deviations > 0).sum(axis=1)
    n_lower_by_scan = (filled_deviations < 0).sum(axis=1)
    far_texts = [
        f"{feature_name} very different from other scans (higher than their median in "
        f"{n_higher} of {cohort.n_rois} regions, lower in {n_lower}), most of all in "
        f"{region_text}. Check the image and its processing"
        for n_higher, n_lower, region_text in zip(
            n_higher_by_scan,
            n_lower_by_scan,
            _list_region_texts_by_scan(cohort, feature_name, farthest_region_mask),
            strict=True,
        )
    ]
    return np.where(far_scan_mask, far_texts, "")


def _list_region_texts_by_scan(
    cohort: Cohort, feature_name: str, described_region_mask: np.ndarray
) -> list[str]:
    """Return of every scan the listed regions, with the values of it and others."""
    feature_values = cohort.features[..., cohort.feature_names.index(feature_name)]
    values_of_other_scans = np.where(described_region_mask, np.nan, feature_values)
    range_texts = [
        f"; in other scans {known_values.min():.3g} to {known_values.max():.3g}"
        if known_values.size
        else ""
        for known_values in (x[~np.isnan(x)] for x in values_of_other_scans.T)
    ]
    return [
        join_with_commas(
            (
                f"{cohort.region_names[region_index]} "
                f"({scan_values[region_index]:.5g}{range_texts[region_index]})"
                for region_index in np.flatnonzero(described_mask_in_scan)
            ),
            3,
        )
        for scan_values, described_mask_in_scan in zip(
            feature_values, described_region_mask, strict=True
        )
    ]


def list_value_range_sentences(cohort: Cohort) -> list[str]:
    """Describe the range of known measures over scans, and their units.

    >>> from brainlsap.simulation import make_cohort
    >>> list_value_range_sentences(make_cohort(20, atlas="desikan82"))
    ['fdg (ratios to a reference region): the medians ... between 1.11 and 1.33']
    """
    range_sentences = list[str]()
    for feature_name in cohort.feature_names:
        measure_record = get_measure_record(feature_name)
        scan_medians = _compute_scan_medians(cohort, feature_name)
        if measure_record.unit and scan_medians.size:
            lowest_median, highest_median = scan_medians.min(), scan_medians.max()
            range_text = (
                "the medians over regions of the scans lie between "
                f"{lowest_median:.3g} and {highest_median:.3g}"
            )
            range_sentences.append(
                f"{feature_name} ({measure_record.unit}): {range_text}"
            )
    return range_sentences


def list_odd_unit_texts(cohort: Cohort) -> list[str]:
    """Describe features that may be in another unit than their names mean.

    Their medians over regions are unusual in some scan, or more than 1 in 100 values
    are such as no brain has.
    """
    finding_texts = list[str]()
    for feature_name in cohort.feature_names:
        unit_name = get_measure_record(feature_name).unit
        unit_reasons = _list_odd_unit_reasons(cohort, feature_name) if unit_name else []
        if unit_reasons:
            finding_texts.append(
                f"{feature_name} may not be measured in {unit_name}: "
                f"{'; '.join(unit_reasons)}"
            )
    return finding_texts


def _list_odd_unit_reasons(cohort: Cohort, feature_name: str) -> list[str]:
    """Return the reasons for which a feature may have another unit than its measure."""
    measure_record = get_measure_record(feature_name)
    scan_medians = _compute_scan_medians(cohort, feature_name)
    if not scan_medians.size:
        return []
    feature_values = _get_measured_values(cohort, feature_name)
    feature_values = feature_values[~np.isnan(feature_values)]
    unit_reasons = list[str]()
    lowest_median, highest_median = measure_record.usual_median_range
    n_unusual_scans = (
        (scan_medians < lowest_median) | (scan_medians > highest_median)
    ).sum()
    if n_unusual_scans:
        unit_reasons.append(
            f"the median over regions is below {lowest_median:g} or above "
            f"{highest_median:g} in {n_unusual_scans} of {len(scan_medians)} scans "
            f"(range {scan_medians.min():.3g} to {scan_medians.max():.3g})"
        )
    highest_possible_value = measure_record.plausible_median_range[1]
    n_impossible_values = (
        (feature_values < 0) | (feature_values > highest_possible_value)
    ).sum()
    # A single impossible value is an error of one cell, which `quality_table` names.
    if n_impossible_values > _MAX_SHARE_IMPLAUSIBLE * len(feature_values):
        unit_reason = (
            f"{n_impossible_values} of {len(feature_values)} values are below 0"
        )
        if np.isfinite(highest_possible_value):
            unit_reason += f" or above {highest_possible_value:g}"
        unit_reasons.append(unit_reason)
    lowest_plausible_value, highest_value = measure_record.plausible_range
    implausible_share = (
        (feature_values < lowest_plausible_value) | (feature_values > highest_value)
    ).mean()
    if implausible_share > _MAX_SHARE_IMPLAUSIBLE and not unit_reasons:
        unit_reasons.append(
            f"{implausible_share:.1%} of values are below "
            f"{lowest_plausible_value:g} or above {highest_value:g}"
        )
    return unit_reasons


def _get_measured_values(cohort: Cohort, feature_name: str) -> np.ndarray:
    """Return a feature's values by scan and region, of regions that it is measured in.

    In the subcortex a measure of the surface may be replaced by the volume.
    """
    feature_values = cohort.features[..., cohort.feature_names.index(feature_name)]
    return (
        feature_values[:, cohort.atlas.cortex]
        if get_measure_record(feature_name).is_on_surface
        else feature_values
    )


def _compute_scan_medians(cohort: Cohort, feature_name: str) -> np.ndarray:
    """Return the median over regions of every scan that has values of a feature."""
    feature_values = _get_measured_values(cohort, feature_name)
    return np.nanmedian(feature_values[~np.isnan(feature_values).all(axis=1)], axis=1)


def _compute_scan_distances(deviations: np.ndarray) -> np.ndarray:
    """Return every scan's distance from the others, summed over regions or edges."""
    absolute_deviations = np.nan_to_num(np.abs(deviations), nan=0.0)
    capped_deviations = np.minimum(absolute_deviations, _DEVIATION_CAP)
    return capped_deviations.sum(axis=1, dtype=np.float64)


def _compute_side_agreements(asymmetries: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return the agreement of each scan's left minus right with that of other people.

    t = sum(g m / (v + mean(v))), as the top of this module defines it.
    """
    from scipy import sparse

    participant_ids, person_index_by_scan = np.unique(
        groups.astype(str), return_inverse=True
    )
    scan_indices = np.arange(len(asymmetries))
    person_indicator_matrix = sparse.csr_array(
        (np.ones(len(asymmetries)), (person_index_by_scan, scan_indices)),
        shape=(len(participant_ids), len(asymmetries)),
    )
    person_sums = person_indicator_matrix @ asymmetries
    n_scans_of_own_person = np.bincount(person_index_by_scan)[person_index_by_scan]
    n_scans_of_others = np.maximum(len(asymmetries) - n_scans_of_own_person, 1)
    other_person_sums = asymmetries.sum(axis=0) - person_sums[person_index_by_scan]
    other_person_means = other_person_sums / n_scans_of_others[:, None]
    return np.einsum(
        "ij,ij,j->i",
        asymmetries,
        other_person_means,
        _compute_asymmetry_weights(asymmetries),
    )


def _limit_extreme_asymmetries(asymmetries: np.ndarray) -> np.ndarray:
    """Return asymmetries, with those far beyond the other scans moved to a limit.

    One number without its decimal point would else hide the sides of all scans. The
    limit lies beyond exchanged sides, which differ by twice the median.
    """
    median_asymmetries = np.median(asymmetries, axis=0)
    scaled_mads = 1.4826 * np.median(np.abs(asymmetries - median_asymmetries), axis=0)
    max_distances = np.where(
        scaled_mads > 0,
        2 * np.abs(median_asymmetries) + _MAX_ASYMMETRY_DEVIATION * scaled_mads,
        np.inf,
    )
    return np.clip(
        asymmetries,
        median_asymmetries - max_distances,
        median_asymmetries + max_distances,
    )


def _compute_asymmetry_weights(asymmetries: np.ndarray) -> np.ndarray:
    """Return the weight of every region (or edge) in the agreement of sides."""
    region_variances = asymmetries.var(axis=0)
    return 1 / np.maximum(region_variances + region_variances.mean(), 1e-300)


def _compute_mirror_scores(side_agreements: np.ndarray) -> np.ndarray:
    """Return agreement over its median, below 0 only if the sides are exchanged."""
    n_scans = len(side_agreements)
    median_agreement = np.median(side_agreements)
    robust_sd = max(
        1.4826 * np.median(np.abs(side_agreements - median_agreement)), 1e-12
    )
    n_sds_to_flag = 4.5 + 20 / n_scans
    if n_scans < MIN_SCANS or not median_agreement > (n_sds_to_flag - 1) * robust_sd:
        return np.full(n_scans, np.nan)
    exchanged_scan_mask = side_agreements < min(
        0, median_agreement - n_sds_to_flag * robust_sd
    )
    return (
        np.where(exchanged_scan_mask, side_agreements, np.maximum(side_agreements, 0))
        / median_agreement
    )


class SideComparison(StrEnum):
    """Whether the sides of new scans are those of a training."""

    CORRECT = auto()
    EXCHANGED = auto()
    UNKNOWN = auto()


def learn_asymmetry_record(
    region_values: np.ndarray, groups: np.ndarray, homotopic_indices: np.ndarray
) -> dict[str, Any] | None:
    """Learn the mean asymmetry of regional values, as JSON takes it.

    Parameters
    ----------
    region_values : array of shape (n_scans, n_rois)
        Of one feature; NaN where not measured.
    groups : array of shape (n_scans,)
        Participant of every scan.
    homotopic_indices : int array of shape (n_rois,)
        The other hemisphere's region of each; the region itself if it has none.

    Returns
    -------
    dict or None
        `regions` and `partners`, positions of homotopic regions; `weights`, by which
        left minus right are multiplied and added; `mean` and `sd` of this sum. None
        where the hemispheres differ too little, or in too few people.
    """
    region_indices = np.flatnonzero(
        homotopic_indices > np.arange(len(homotopic_indices))
    )
    partner_indices = homotopic_indices[region_indices]
    asymmetries = _limit_extreme_asymmetries(
        _compute_asymmetries_by_person(
            region_values, groups, region_indices, partner_indices
        )
    )
    n_people = len(asymmetries)
    if n_people < MIN_SCANS or not region_indices.size:
        return None
    person_agreements = _compute_side_agreements(asymmetries, np.arange(n_people))
    mean_agreement, sd_agreement = (
        person_agreements.mean(),
        person_agreements.std(ddof=1),
    )
    if not mean_agreement > _MIN_TRAINING_AGREEMENT * sd_agreement / np.sqrt(n_people):
        return None
    asymmetry_weights = asymmetries.mean(axis=0) * _compute_asymmetry_weights(
        asymmetries
    )
    return {
        "regions": region_indices.tolist(),
        "partners": partner_indices.tolist(),
        "weights": [
            float(f"{asymmetry_weight:.{_N_DIGITS}g}")
            for asymmetry_weight in asymmetry_weights
        ],
        "mean": float(mean_agreement),
        "sd": float(sd_agreement),
    }


def make_side_comparison(
    region_values: np.ndarray,
    groups: np.ndarray,
    training_asymmetry_record: Mapping[str, Any] | None,
) -> SideComparison:
    """Return whether new scans have the sides of :func:`learn_asymmetry_record`.

    `region_values` has the regions of the training in its order.
    """
    if training_asymmetry_record is None:
        return SideComparison.UNKNOWN
    asymmetries = _limit_extreme_asymmetries(
        _compute_asymmetries_by_person(
            region_values,
            groups,
            training_asymmetry_record["regions"],
            training_asymmetry_record["partners"],
        )
    )
    person_agreements = asymmetries @ np.array(training_asymmetry_record["weights"])
    sd_agreement = training_asymmetry_record["sd"]
    if len(person_agreements) > 1:
        sd_agreement = max(sd_agreement, person_agreements.std(ddof=1))
    standard_error = sd_agreement / np.sqrt(len(person_agreements))
    mean_agreement = person_agreements.mean()
    if mean_agreement < min(
        -training_asymmetry_record["mean"] / 2, _MAX_EXCHANGED * standard_error
    ):
        return SideComparison.EXCHANGED
    if mean_agreement > max(
        training_asymmetry_record["mean"] / 2, _MIN_CORRECT * standard_error
    ):
        return SideComparison.CORRECT
    return SideComparison.UNKNOWN


def make_exchanged_scan_mask(
    region_values: np.ndarray, training_asymmetry_record: Mapping[str, Any] | None
) -> np.ndarray:
    """Return whether single scans have the sides opposite to those of a training.

    As in :func:`make_side_comparison`; all are False if the training cannot show it.
    """
    exchanged_scan_mask = np.zeros(len(region_values), dtype=bool)
    if training_asymmetry_record is None:
        return exchanged_scan_mask
    mean_agreement = training_asymmetry_record["mean"]
    if not mean_agreement > _MIN_AGREEMENT_OF_SCAN * training_asymmetry_record["sd"]:
        return exchanged_scan_mask
    asymmetries = np.nan_to_num(
        region_values[:, training_asymmetry_record["regions"]]
        - region_values[:, training_asymmetry_record["partners"]]
    )
    scan_agreements = _limit_extreme_asymmetries(asymmetries) @ np.array(
        training_asymmetry_record["weights"]
    )
    return scan_agreements < -mean_agreement / 2


def exchanged_sides_text(value_name: str) -> str:
    """Return the warning that the sides of values are opposite to the training's."""
    return (
        f"{value_name}: left and right may have been swapped in all scans, because "
        "their differences are opposite to the differences in the training scans. "
        "Check which files and columns belong to which hemisphere. If left and right "
        "were swapped, the predictions are wrong"
    )


def _compute_asymmetries_by_person(
    region_values: np.ndarray,
    groups: np.ndarray,
    region_indices: Any,
    partner_indices: Any,
) -> np.ndarray:
    """Return each person's mean difference of homotopic regions; 0 if not measured."""
    difference_table = pd.DataFrame(
        region_values[:, region_indices] - region_values[:, partner_indices]
    )
    return (
        difference_table.groupby(np.asarray(groups, dtype=str))
        .mean()
        .fillna(0)
        .to_numpy()
    )
