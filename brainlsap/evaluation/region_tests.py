r"""Test, without a model, in which regions classes differ, and where more than nearby.

Two questions, each with one number, one interval and one family-wise p-value:

1. *Does the region differ between classes?* The effect :math:`e_p` is the correlation
   of the region's values with the class number (0, 1, ...) if there are two classes or
   the classes are ordered; else eta, the square root of the share of variance that
   classes explain.
2. *Does its difference stand out from the regions it is connected to?* With
   :math:`m_p = \sum_q w_{pq} x_q / \sum_q w_{pq}`, the mean of the region's neighbours
   weighted by their connections (without self loops), the contrast of ordered classes
   is

   .. math:: c_p = \min\bigl(|r(x_p)|,\; \mathrm{sign}(r(x_p))\, r(x_p - m_p)\bigr)

   A region has a large contrast only if it differs itself, and if it differs further in
   the same direction than its neighbours do. Of several classes :math:`r` is a vector,
   the correlations with an orthonormal basis of the differences between classes: the
   sign becomes the direction :math:`r(x_p) / |r(x_p)|`, and the product the scalar
   product.

A contrast marks a **local peak of the difference, not its origin**. A region that
receives disease from many others can be a peak too, and a difference that spreads along
other connections than those given leaves peaks where nothing began.

Values are standardised by region before neighbours are averaged: units may differ
between regions (mm, mm3), and a difference common to all regions cancels in
:math:`x_p - m_p`. If no person's label changes between visits, every person is one row,
the mean over scans. If the label of any person changes, the rows are the scans of all
people, weighted so that every person counts the same.

Labels are permuted among people with the same number of scans, all scans of a person
together. Covariates are treated as by Freedman and Lane (1983, J Business Econ Stat
1:292): residuals of the values are permuted, and covariates are regressed out of them
again in every permutation. Quantities such as age are curves if the cohort is large
enough (`confounds.build_adjustment_design`), because the rest of a curved effect of age
would be a difference between classes of different age. The p-value of an effect is
family-wise by the largest effect of each permutation. The family is the whole table:
all regions and all features. The p-value of a contrast (`compute_contrast_p_values`) is
the largest of those of two or three null hypotheses: no region differs, all regions
differ by the same number of standard deviations, and all regions differ by the same
number of mm (or ratios of PET).

A reference class of the evaluation (`reference_class`) is not used here. Slopes and
site effects that are learned from its people depend on the labels, which are permuted.
Nothing is lost: class and covariates stand in one model, so a class difference that
goes along with a covariate is not taken out with it. In 200 simulated cohorts without
a difference (120 people in three stages, 6 years apart; 20 regions, 99 permutations)
this test, with age as a line, found one in 4 %, W-scores learned once in 75 %, and
W-scores learned anew in every permutation in 6 %. A planted difference was found in
39 % and, by W-scores learned anew, in 25 %.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ncfdtr
from scipy.stats import t as student
from sklearn.base import clone

from brainlsap.arrays import match_class_name
from brainlsap.data import Cohort
from brainlsap.data.cohort import check_cohort_given
from brainlsap.data.measures import get_measure_record
from brainlsap.evaluation.confounds import (
    STEP_OPTIONS,
    Deconfounder,
    adjust_features_with_factor_table,
    build_adjustment_design,
    find_covariate_column,
    fit_least_squares_slopes,
    list_known_row_masks_and_columns,
)
from brainlsap.evaluation.results import (
    CohortSummary,
    Evaluation,
    check_evaluation_given,
    data_hash,
    make_class_mean_sd_table,
)
from brainlsap.evaluation.splits import (
    count_labellings,
    list_person_blocks,
    permute_row_indices,
)
from brainlsap.exceptions import ParameterError, check_at_least, check_choice
from brainlsap.text import option_text

# Means over fewer people are not shown: they would disclose a person's value.
MIN_PEOPLE_SHOWN = 3
# Standard normal quantile of a 95% interval.
_Z_95 = 1.96
# Numbers in memory at once: 8 times as many bytes.
_BLOCK_SIZE = 2**22
# Regions whose effect has a larger p-value (without correction) are no peaks, and not
# in the family of the nulls in which all regions differ.
SCREENING_LEVEL = 0.2
# A norm below this part of the values' size is rounding.
_ROUNDING = 1e-9
# Statistics of two permutations that differ by less than this count as equal.
_SAME_STATISTIC = 1e-9


class RegionTestValues(NamedTuple):
    """Tested values; rows are people, or scans where labels change between visits."""

    value_matrix: np.ndarray
    """Standardised features, shape (n_rows, n_rois * n_features); NaN if missing."""
    neighbor_contrasts: np.ndarray
    """The values minus the mean of the region's neighbours; NaN without neighbours."""
    unit_contrasts: np.ndarray
    """Contrasts of values in their own unit; NaN for measures that grow with size."""
    class_codes: np.ndarray
    """Class of every row, as a number from 0."""
    covariate_design: np.ndarray
    """Intercept and centred covariates, shape (n_rows, 1 + n_covariates)."""
    person_codes: np.ndarray
    """Person of every row, as a number."""
    person_scan_counts: np.ndarray
    """For each row, the number of scans of its person."""
    is_ordered: bool
    """Whether the class number is a quantity."""

    def select_rows(self, selected_row_mask: np.ndarray) -> "RegionTestValues":
        """Return some of the rows."""
        return self._replace(
            value_matrix=self.value_matrix[selected_row_mask],
            neighbor_contrasts=self.neighbor_contrasts[selected_row_mask],
            unit_contrasts=self.unit_contrasts[selected_row_mask],
            class_codes=self.class_codes[selected_row_mask],
            covariate_design=self.covariate_design[selected_row_mask],
            person_codes=self.person_codes[selected_row_mask],
            person_scan_counts=self.person_scan_counts[selected_row_mask],
        )


class PermutedStatistics(NamedTuple):
    """Statistics of the labels (first row) and of permuted labels.

    Each has the shape (1 + n_permutations, n_values); NaN if a statistic is unknown.
    """

    effects: np.ndarray
    """Size of the correlation of the values."""
    contrast_statistics: np.ndarray
    """The contrast c of the module."""
    excesses: np.ndarray
    """Correlation of the values minus the values of neighbours.

    The sign is positive in the direction of the region's effect for the labels
    themselves, also in the permutations.
    """
    unit_excesses: np.ndarray
    """The same correlation for values in their own unit."""


class _Correlations(NamedTuple):
    """Correlations with a basis of class differences, shape (n_contrasts, n_values)."""

    value_correlations: np.ndarray
    contrast_correlations: np.ndarray

    @property
    def effects(self) -> np.ndarray:
        """Length of the correlation of values, shape (n_values,)."""
        return np.sqrt((self.value_correlations**2).sum(axis=0))

    @property
    def directed_contrasts(self) -> np.ndarray:
        """Correlation of contrasts along that of values, shape (n_values,)."""
        summed_products = (self.value_correlations * self.contrast_correlations).sum(
            axis=0
        )
        effect_sizes = self.effects
        return np.divide(
            summed_products,
            effect_sizes,
            out=np.zeros_like(summed_products),
            where=effect_sizes > 0,
        )


def compare_regions(
    cohort: Cohort,
    evaluation: Evaluation | None = None,
    *,
    model: str | None = None,
    reference: str | None = None,
    harmonize: str | None = None,
    regress_out: str | tuple[str, ...] | list[str] = (),
    n_permutations: int = 200,
    random_state: int = 0,
) -> pd.DataFrame:
    """Test in every region whether classes differ, and whether the region stands out.

    The statistics are described in :mod:`brainlsap.evaluation.region_tests`.

    Parameters
    ----------
    cohort : Cohort
        All of its scans are used.
    evaluation : Evaluation, optional
        Cross-validation of the same cohort. Its harmonisation and covariates are used
        (from all people, not from a reference class), and the table gets the scales
        of a model.
    model : str, optional
        Model of the evaluation whose scales are given, as for :func:`rank_regions`.
    reference : str, optional
        Class from which Cohen's d of the others is taken; by default the first.
    harmonize : str, optional
        Column of the site or scanner. ComBat, fitted to all scans without the label,
        removes its effects, and the site is a covariate. Without `evaluation` only.
    regress_out : str or sequence of str
        Covariates, for example age and sex. Without `evaluation` only.
    n_permutations : int
        Exchanges of labels between people; 0 for no p-values. With fewer than 20 no p
        can be below 0.05.
    random_state : int
        Seed of the permutations.

    Returns
    -------
    DataFrame
        One row for every region and feature, in the order of the atlas:

        - region, feature, n_people (with a value).
        - effect, effect_low, effect_high: correlation with the class number
          if classes are two or ordered, with Fisher's 95% interval; else eta with
          the 95% interval of the noncentral F distribution, extended to eta. F, if
          classes are not ordered. p_effect: family-wise over regions and features.
        - d_<class>, d_<class>_low, d_<class>_high: Cohen's d of every class but the
          reference, with its 95% interval, as of
          :func:`brainlsap.report.class_difference_table`.
        - contrast: c of the module, a correlation; contrast_low and contrast_high, the
          smaller of the 95% bounds of its two correlations, NaN where the interval of
          the effect includes 0 (its direction is then not known); contrast_z:
          standardised over permutations. p_contrast: family-wise over regions and
          features, the largest of those of the null hypotheses of the module.
        - n_permutations, measured.
        - With an evaluation: model, rank, relative_scale, relative_low, relative_high
          and scale, as of :func:`rank_regions`. They describe the model, not the
          classes.
        - planted, if the cohort is simulated.

        Regions that were not measured, or whose values do not vary, are NaN; contrasts
        also where no neighbour was measured. All are NaN if covariates explain the
        classes completely.

    Raises
    ------
    ParameterError
        If the evaluation is of another cohort.

    Examples
    --------
    >>> from brainlsap import make_cohort
    >>> regions = compare_regions(make_cohort(60, atlas="desikan82"))
    >>> regions.nlargest(2, "contrast_z")["region"].tolist()
    ['ctx-rh-entorhinal', 'Left-Amygdala']
    """
    check_cohort_given(cohort)
    check_at_least("n_permutations", n_permutations, 0)
    if reference is not None:
        reference = match_class_name(reference, cohort.classes)
        check_choice("reference", reference, cohort.classes)
    deconfounder = _choose_deconfounder(cohort, evaluation, harmonize, regress_out)
    deconfounder.check(cohort.table)
    region_test_values = make_region_test_values(cohort, deconfounder)
    region_table = pd.DataFrame(
        {
            "region": np.repeat(list(cohort.region_names), cohort.n_features),
            "feature": np.tile(list(cohort.feature_names), cohort.n_rois),
        }
    )
    region_table = region_table.join(_make_association_table(region_test_values))
    rng = np.random.default_rng(random_state)
    permuted_statistics = compute_permuted_statistics(
        region_test_values, n_permutations, rng
    )
    region_table["p_effect"] = compute_family_wise_p_values(permuted_statistics.effects)
    region_table["contrast_z"] = standardize_statistics(
        permuted_statistics.contrast_statistics
    )[0]
    region_table["p_contrast"] = compute_contrast_p_values(permuted_statistics)
    region_table["n_permutations"] = n_permutations
    region_table["measured"] = cohort.measured.any(axis=0).reshape(-1)
    region_table = _add_difference_columns_to_table(
        region_table, cohort, deconfounder, reference or cohort.classes[0]
    )
    if evaluation is not None:
        region_table = _add_scale_columns_to_table(region_table, evaluation, model)
    add_planted_regions(region_table, cohort)
    return region_table


def count_region_labellings(evaluation: Evaluation) -> int:
    """Return the number of labellings from which the tests of regions draw.

    Covariates are permuted with the label, because a permutation of residuals changes
    them relative to the values.
    """
    scan_table = evaluation.cohort.table
    value_by_step_option = evaluation.settings.get("steps") or {}
    covariate_names = [*(value_by_step_option.get("regress_out") or ())]
    if value_by_step_option.get("harmonize"):
        covariate_names.append(value_by_step_option["harmonize"])
    covariate_columns = [
        find_covariate_column(scan_table, covariate_name)
        for covariate_name in covariate_names
    ]
    return count_labellings(
        scan_table[["label", *covariate_columns]].astype(str).to_numpy(dtype=str),
        list_person_blocks(scan_table["participant"].to_numpy()),
    )


def compute_smallest_p(evaluation: Evaluation, n_permutations: int) -> float:
    """Return the smallest p that the tests of regions can show.

    It is 1 / (n_permutations + 1), but at least 1 / (number of labellings), because
    the observed labels are one of the equally probable labellings.
    """
    return max(
        1 / (n_permutations + 1), 1 / min(count_region_labellings(evaluation), 10**15)
    )


def add_planted_regions(
    region_table: pd.DataFrame, cohort: Cohort | CohortSummary
) -> None:
    """Add which measured regions were planted, if the cohort is simulated."""
    truth_table = cohort.truth
    # The planted regions are those of the disease, not of other labels such as sex.
    if truth_table is not None and cohort.label_name == "diagnosis":
        planted_name_series = truth_table.loc[
            truth_table["seed"].astype(bool), "region"
        ]
        region_table["planted"] = (
            region_table["region"].isin(planted_name_series) & region_table["measured"]
        )


def _choose_deconfounder(
    cohort: Cohort,
    evaluation: Evaluation | None,
    harmonize: str | None,
    regress_out: str | tuple[str, ...] | list[str],
) -> Deconfounder:
    """Return the steps of the evaluation, else those that were asked for."""
    if evaluation is None:
        return Deconfounder(harmonize, regress_out)
    check_evaluation_given(evaluation)
    if evaluation.cohort.data_hash != data_hash(cohort):
        raise ParameterError(
            "cohort must be the evaluated cohort, but its scans or labels differ from "
            "the evaluated scans or labels. Pass the cohort that was evaluated."
        )
    if harmonize or regress_out:
        raise ParameterError(
            f"{option_text('harmonize')} and {option_text('regress_out')} are set in "
            "the evaluation and cannot be given again. Leave both options out."
        )
    value_by_option = {
        step_option: step_option_value
        for step_option, step_option_value in evaluation.settings["steps"].items()
        if step_option in STEP_OPTIONS
    }
    # Leave the reference class out: permuting labels would change who is in it.
    return Deconfounder(**value_by_option | {"reference_class": None})


def make_region_test_values(
    cohort: Cohort, deconfounder: Deconfounder
) -> RegionTestValues:
    """Return the values, contrasts and covariates of people (or scans) to be tested.

    Parameters
    ----------
    cohort : Cohort
    deconfounder : Deconfounder
        Says what is harmonised and regressed out; it need not be fitted. Its reference
        class is not used.

    Returns
    -------
    RegionTestValues
        Features are in the order region, then feature.
    """
    # The regression is a part of the test.
    fitted_deconfounder = clone(deconfounder)
    fitted_deconfounder.set_params(regress_out=(), reference_class=None)
    features = fitted_deconfounder.fit_transform(cohort.features, cohort.table)
    class_codes = pd.Index(cohort.classes).get_indexer(cohort.y)
    person_codes = pd.factorize(cohort.groups)[0]
    first_scan_indices = np.unique(person_codes, return_index=True)[1]
    has_constant_labels = bool(
        (class_codes == class_codes[first_scan_indices][person_codes]).all()
    )

    def average_to_rows(scan_value_matrix: np.ndarray) -> np.ndarray:
        if not has_constant_labels:
            return scan_value_matrix
        return pd.DataFrame(scan_value_matrix).groupby(person_codes).mean().to_numpy()

    n_scans = cohort.n_scans
    covariate_matrix = average_to_rows(build_adjustment_design(cohort, deconfounder))
    covariate_design = np.column_stack(
        [np.ones(len(covariate_matrix)), covariate_matrix]
    )
    feature_matrix = average_to_rows(features.reshape(n_scans, -1))
    column_means = np.nanmean(
        np.where(np.isnan(feature_matrix).all(axis=0), 0.0, feature_matrix), axis=0
    )
    residuals = compute_covariate_residuals(covariate_design, feature_matrix)
    column_known_counts = np.maximum((~np.isnan(residuals)).sum(axis=0), 1)
    sd = np.sqrt(np.nansum(residuals**2, axis=0) / column_known_counts)
    constant_column_mask = sd <= _ROUNDING * np.maximum(np.abs(column_means), 1e-300)
    sd = np.where(constant_column_mask, np.nan, sd)
    own_unit_features = features
    features = (features - column_means.reshape(features.shape[1:])) / sd.reshape(
        features.shape[1:]
    )
    neighbor_contrasts = features - compute_neighbor_means(cohort.connectomes, features)
    own_unit_features = np.where(
        _make_comparable_value_mask(cohort), own_unit_features, np.nan
    )
    unit_contrasts = own_unit_features - compute_neighbor_means(
        cohort.connectomes, own_unit_features
    )
    region_test_values = RegionTestValues(
        value_matrix=average_to_rows(features.reshape(n_scans, -1)),
        neighbor_contrasts=average_to_rows(neighbor_contrasts.reshape(n_scans, -1)),
        unit_contrasts=average_to_rows(unit_contrasts.reshape(n_scans, -1)),
        class_codes=class_codes,
        covariate_design=covariate_design,
        person_codes=person_codes,
        person_scan_counts=np.bincount(person_codes)[person_codes],
        is_ordered=bool(cohort.classes_ordered),
    )
    if not has_constant_labels:
        return region_test_values
    return region_test_values._replace(
        class_codes=class_codes[first_scan_indices],
        person_codes=np.arange(len(first_scan_indices)),
        person_scan_counts=np.bincount(person_codes),
    )


def _make_comparable_value_mask(cohort: Cohort) -> np.ndarray:
    """Return of which regions and features (n_rois, n_features) units are comparable.

    A volume that replaces the thickness of the subcortex is not.
    """
    comparable_value_mask = np.empty((cohort.n_rois, cohort.n_features), dtype=bool)
    has_subcortex_volumes = cohort.provenance.get("subcortex") == "volume"
    subcortex_region_mask = (
        cohort.atlas.regions["structure"] == "subcortex"
    ).to_numpy()
    for comparable_region_mask, feature_name in zip(
        comparable_value_mask.T, cohort.feature_names, strict=True
    ):
        measure_record = get_measure_record(feature_name)
        comparable_region_mask[:] = measure_record.is_independent_of_size
        if measure_record.is_on_surface and has_subcortex_volumes:
            comparable_region_mask[subcortex_region_mask] = False
    return comparable_value_mask


def compute_neighbor_means(connectomes: np.ndarray, features: np.ndarray) -> np.ndarray:
    r"""Return the mean of each region's neighbours, weighted by their connections.

    .. math:: m_p = \frac{\sum_{q \ne p} w_{pq} x_q}{\sum_{q \ne p} w_{pq}}

    over the regions q that were measured.

    Parameters
    ----------
    connectomes : array of shape (n_scans, n_rois, n_rois)
        Weights, not negative; self loops do not count. A broadcast matrix is used once.
    features : array of shape (n_scans, n_rois, n_features)
        NaN where not measured.

    Returns
    -------
    array of shape (n_scans, n_rois, n_features)
        NaN for a region without a measured neighbour.
    """
    n_scans, n_rois, n_features = features.shape
    has_shared_connectome = connectomes.strides[0] == 0
    measured_value_mask = ~np.isnan(features)
    stacked_features = np.concatenate(
        [
            np.where(measured_value_mask, features, 0.0),
            measured_value_mask.astype(float),
        ],
        axis=2,
    )
    neighbor_features = np.empty(features.shape)
    n_scans_at_once = max(1, _BLOCK_SIZE // (n_rois * max(n_rois, 2 * n_features)))
    for block_start in range(0, n_scans, n_scans_at_once):
        scan_slice = slice(block_start, block_start + n_scans_at_once)
        W = np.array(
            connectomes[:1] if has_shared_connectome else connectomes[scan_slice],
            dtype=float,
        )
        np.einsum("nii->ni", W)[...] = 0.0
        weighted_sums = W @ stacked_features[scan_slice]
        feature_sums = weighted_sums[..., :n_features]
        weight_sums = weighted_sums[..., n_features:]
        neighbor_features[scan_slice] = np.divide(
            feature_sums,
            weight_sums,
            out=np.full_like(feature_sums, np.nan),
            where=weight_sums > 0,
        )
    return neighbor_features


def compute_covariate_residuals(
    covariate_design: np.ndarray, value_matrix: np.ndarray
) -> np.ndarray:
    """Return residuals of values (n_rows, n_values) on a design; NaN where missing.

    A value that too few rows have is NaN in all of them.
    """
    covariate_slopes = fit_least_squares_slopes(
        covariate_design, value_matrix, min_scans=covariate_design.shape[1] + 1
    )
    return value_matrix - covariate_design @ covariate_slopes


def compute_permuted_statistics(
    region_test_values: RegionTestValues, n_permutations: int, rng: np.random.Generator
) -> PermutedStatistics:
    r"""Return statistics of the labels and of permuted labels.

    Let x be the residuals of a value on the intercept and the covariates, of length 1.
    Let Q be an orthonormal basis of the covariates without their mean, and U one of the
    class differences without mean and covariates. To permute the residuals (Freedman
    and Lane) is to permute the rows of U and Q by the inverse permutation. With rows in
    the order b, the permuted residuals keep mean 0, and the covariates explain
    :math:`|Q_b^T x|^2` of them. Their correlation with the classes given the covariates
    is

    .. math:: r_b = \frac{U_b^T x}{\sqrt{1 - |Q_b^T x|^2}}

    Rows are multiplied by the square roots of their weights, which no permutation
    changes. A missing value counts as its expectation from the covariates (a residual
    of 0).

    Parameters
    ----------
    region_test_values : RegionTestValues
    n_permutations : int
    rng : Generator
        Draws the permutations.

    Returns
    -------
    PermutedStatistics
    """
    root_weights = _compute_root_row_weights(region_test_values.person_codes)
    weighted_design = region_test_values.covariate_design * root_weights
    n_rows, n_values = region_test_values.value_matrix.shape
    tested_value_matrices = [
        region_test_values.value_matrix,
        region_test_values.neighbor_contrasts,
    ]
    # Most measures have none: columns that nobody has would cost more than the others.
    has_unit_contrasts = bool(np.isfinite(region_test_values.unit_contrasts).any())
    if has_unit_contrasts:
        tested_value_matrices.append(region_test_values.unit_contrasts)
    x = _compute_unit_residuals(
        weighted_design, np.hstack(tested_value_matrices) * root_weights
    )
    tested_column_mask = np.isfinite(x).any(axis=0)
    x = np.nan_to_num(x)
    class_basis = _compute_class_basis(
        region_test_values.class_codes,
        region_test_values.is_ordered,
        weighted_design,
        root_weights,
    )
    covariate_basis = _compute_orthonormal_basis(
        _compute_residuals(weighted_design[:, :1], weighted_design[:, 1:])
    )
    # U above Q, each transposed.
    joint_basis = np.hstack([class_basis, covariate_basis]).T
    n_contrasts = class_basis.shape[1]
    tested_column_mask &= n_contrasts > 0
    index_blocks = _list_exchange_row_blocks(region_test_values)
    row_orders = np.tile(np.arange(n_rows), (1 + n_permutations, 1))
    for row_order in row_orders[1:]:
        row_order[:] = permute_row_indices(index_blocks, rng)
    permuted_statistics = PermutedStatistics(
        *np.full((4, len(row_orders), n_values), np.nan)
    )
    directions = np.empty((n_contrasts, 1, n_values))
    n_permutations_at_once = max(
        1, _BLOCK_SIZE // (len(joint_basis) * (n_rows + 3 * n_values))
    )
    for block_start in range(0, len(row_orders), n_permutations_at_once):
        permutation_slice = slice(block_start, block_start + n_permutations_at_once)
        permuted_basis = joint_basis[:, row_orders[permutation_slice]]
        # Shape (n_columns, n_labellings, n_values of all tested columns)
        basis_products = permuted_basis @ x
        explained_squares = (basis_products[n_contrasts:] ** 2).sum(axis=0)
        r = basis_products[:n_contrasts] / np.sqrt(
            np.maximum(1 - explained_squares, _ROUNDING)
        )
        r, contrast_r, *unit_r_list = np.split(r, len(tested_value_matrices), axis=-1)
        basis_correlations = _Correlations(r, contrast_r)
        if block_start == 0:
            effect_sizes = basis_correlations.effects[:1]
            directions = r[:, :1] / np.where(effect_sizes > 0, effect_sizes, 1.0)
        permuted_statistics.effects[permutation_slice] = basis_correlations.effects
        permuted_statistics.contrast_statistics[permutation_slice] = np.minimum(
            basis_correlations.effects, basis_correlations.directed_contrasts
        )
        permuted_statistics.excesses[permutation_slice] = (directions * contrast_r).sum(
            axis=0
        )
        if has_unit_contrasts:
            permuted_statistics.unit_excesses[permutation_slice] = (
                directions * unit_r_list[0]
            ).sum(axis=0)
    tested_value_mask, tested_contrast_mask, *tested_unit_masks = np.split(
        tested_column_mask, len(tested_value_matrices)
    )
    permuted_statistics.effects[:, ~tested_value_mask] = np.nan
    permuted_statistics.contrast_statistics[:, ~tested_contrast_mask] = np.nan
    permuted_statistics.excesses[:, ~tested_contrast_mask] = np.nan
    if has_unit_contrasts:
        permuted_statistics.unit_excesses[:, ~tested_unit_masks[0]] = np.nan
    return permuted_statistics


def _list_exchange_row_blocks(region_test_values: RegionTestValues) -> list[np.ndarray]:
    """Return the rows of people whose labels are permuted, each (n_people, n_rows).

    These people have the same number of scans, as in :func:`.permute_labels`.
    """
    index_blocks = []
    for block_indices in list_person_blocks(region_test_values.person_codes):
        row_scan_counts = region_test_values.person_scan_counts[block_indices[:, 0]]
        index_blocks += [
            block_indices[row_scan_counts == n] for n in np.unique(row_scan_counts)
        ]
    return index_blocks


def _compute_root_row_weights(person_codes: np.ndarray) -> np.ndarray:
    """Return square roots of row weights (n_rows, 1); every person weighs the same.

    Labels are permuted only among people with the same number of rows, so no
    permutation changes the weights.
    """
    person_row_counts = np.bincount(person_codes)
    return np.sqrt(1 / person_row_counts[person_codes])[:, None]


def _compute_unit_residuals(
    covariate_design: np.ndarray, value_matrix: np.ndarray
) -> np.ndarray:
    """Return residuals of length 1 for every column; NaN for those that do not vary."""
    residuals = compute_covariate_residuals(covariate_design, value_matrix)
    residual_norms = np.sqrt(np.nansum(residuals**2, axis=0))
    value_norms = np.sqrt(np.nansum(value_matrix**2, axis=0))
    residual_norms[residual_norms <= _ROUNDING * np.maximum(value_norms, 1e-300)] = (
        np.nan
    )
    return residuals / residual_norms


def _compute_residuals(
    covariate_design: np.ndarray, complete_value_matrix: np.ndarray
) -> np.ndarray:
    """Return the residuals of complete columns after least squares on a design."""
    return complete_value_matrix - covariate_design @ (
        np.linalg.pinv(covariate_design) @ complete_value_matrix
    )


def _compute_orthonormal_basis(column_matrix: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the span of columns, shape (n_rows, rank)."""
    if column_matrix.shape[1] == 1:  # Keep the sign.
        column_norm = np.linalg.norm(column_matrix)
        return (
            column_matrix / column_norm
            if column_norm > _ROUNDING
            else column_matrix[:, :0]
        )
    U, singular_values, _ = np.linalg.svd(column_matrix, full_matrices=False)
    largest_singular_value = singular_values.max(initial=0.0)
    return U[:, singular_values > _ROUNDING * max(1.0, largest_singular_value)]


def _compute_class_basis(
    class_codes: np.ndarray,
    is_ordered: bool,
    covariate_design: np.ndarray,
    root_weights: np.ndarray,
) -> np.ndarray:
    """Return an orthonormal basis of class differences that covariates do not explain.

    One column, larger in later classes, where classes are two or ordered.
    """
    present_class_codes = np.unique(class_codes)
    if is_ordered or len(present_class_codes) == 2:
        class_column_matrix = class_codes[:, None].astype(float)
    else:
        class_column_matrix = (class_codes[:, None] == present_class_codes).astype(
            float
        )
    return _compute_orthonormal_basis(
        _compute_residuals(covariate_design, class_column_matrix * root_weights)
    )


def _correlate_with_classes(
    region_test_values: RegionTestValues, value_matrix: np.ndarray
) -> np.ndarray:
    """Return correlations with class differences from the rows that have the value.

    Shape (n_contrasts, n_values). Columns that the same rows have share one basis.
    """
    n_classes = len(np.unique(region_test_values.class_codes))
    n_contrasts = (
        1 if region_test_values.is_ordered or n_classes == 2 else n_classes - 1
    )
    correlation_matrix = np.full((n_contrasts, value_matrix.shape[1]), np.nan)
    for measured_row_mask, column_indices in list_known_row_masks_and_columns(
        value_matrix
    ):
        if measured_row_mask.sum() < region_test_values.covariate_design.shape[1] + 2:
            continue
        root_weights = _compute_root_row_weights(
            region_test_values.person_codes[measured_row_mask]
        )
        weighted_design = (
            region_test_values.covariate_design[measured_row_mask] * root_weights
        )
        class_codes = region_test_values.class_codes[measured_row_mask]
        class_basis = _compute_class_basis(
            class_codes, region_test_values.is_ordered, weighted_design, root_weights
        )
        if not class_basis.shape[1]:
            continue
        x = _compute_unit_residuals(
            weighted_design,
            value_matrix[np.ix_(measured_row_mask, column_indices)] * root_weights,
        )
        correlation_matrix[:, column_indices] = 0.0
        correlation_matrix[: class_basis.shape[1], column_indices] = class_basis.T @ x
    return correlation_matrix


def _make_association_table(region_test_values: RegionTestValues) -> pd.DataFrame:
    """Return effect and contrast of every value, with intervals and F."""
    value_matrix, contrasts = (
        region_test_values.value_matrix,
        region_test_values.neighbor_contrasts,
    )
    value_people_counts = _compute_value_people_counts(
        value_matrix, region_test_values.person_codes
    )
    r = _correlate_with_classes(region_test_values, value_matrix)
    n_contrasts = len(r)
    n_covariates = region_test_values.covariate_design.shape[1] - 1
    has_signed_effect = n_contrasts == 1
    association_table = pd.DataFrame({"n_people": value_people_counts})
    if has_signed_effect:
        association_table["effect"] = r[0]
        lower_and_upper_bounds = _compute_correlation_lows_and_highs(
            r[0], value_people_counts - n_covariates
        )
    else:
        association_table["effect"] = np.sqrt((r**2).sum(axis=0))
        error_dof = value_people_counts - n_covariates - n_contrasts - 1
        lower_and_upper_bounds = _compute_eta_lows_and_highs(
            association_table["effect"].to_numpy(), n_contrasts, error_dof
        )
    association_table["effect_low"], association_table["effect_high"] = (
        lower_and_upper_bounds
    )
    if not has_signed_effect:
        eta_squared = association_table["effect"] ** 2
        association_table["F"] = (
            eta_squared / n_contrasts / ((1 - eta_squared) / error_dof)
        )
    # Both correlations of a contrast are of the rows that have it.
    basis_correlations = _Correlations(
        _correlate_with_classes(
            region_test_values, np.where(np.isnan(contrasts), np.nan, value_matrix)
        ),
        _correlate_with_classes(region_test_values, contrasts),
    )
    contrast_people_counts = (
        _compute_value_people_counts(contrasts, region_test_values.person_codes)
        - n_covariates
    )
    association_table["contrast"] = np.minimum(
        basis_correlations.effects, basis_correlations.directed_contrasts
    )
    lower_and_upper_bounds = _compute_contrast_lows_and_highs(
        basis_correlations, contrast_people_counts
    )
    association_table["contrast_low"], association_table["contrast_high"] = (
        lower_and_upper_bounds
    )
    return association_table


def _compute_contrast_lows_and_highs(
    basis_correlations: _Correlations, value_people_counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the smaller of the bounds of effect and contrast in its direction.

    NaN where the interval of the effect includes 0: the direction is then not known,
    and the contrast in the other direction has the opposite sign. `value_people_counts`
    lacks one for every covariate. `benchmarks/ranking.py intervals` measures the
    coverage.
    """
    effects = basis_correlations.effects
    n_contrasts = len(basis_correlations.value_correlations)
    if n_contrasts == 1:
        effect_lows, effect_highs = _compute_correlation_lows_and_highs(
            effects, value_people_counts
        )
    else:
        error_dof = value_people_counts - n_contrasts - 1
        effect_lows, effect_highs = _compute_eta_lows_and_highs(
            effects, n_contrasts, error_dof
        )
    directed_contrasts = basis_correlations.directed_contrasts
    directed_lows, directed_highs = _compute_correlation_lows_and_highs(
        directed_contrasts, value_people_counts
    )
    if n_contrasts > 1:
        # By chance alone, the mean of eta squared is n_contrasts / (n - 1), and
        # the contrast in the direction of the values is too large by the same share.
        chance_squares = n_contrasts / np.maximum(value_people_counts - 1, 1)
        shrinkage_factors = 1 - np.minimum(
            chance_squares / np.maximum(effects**2, 1e-300), 1
        )
        directed_lows = _compute_correlation_lows_and_highs(
            directed_contrasts * shrinkage_factors, value_people_counts
        )[0]
    known_direction_mask = effect_lows > 0
    contrast_lows = np.where(
        known_direction_mask, np.minimum(effect_lows, directed_lows), np.nan
    )
    contrast_highs = np.where(
        known_direction_mask, np.minimum(effect_highs, directed_highs), np.nan
    )
    return contrast_lows, contrast_highs


def _compute_value_people_counts(
    value_matrix: np.ndarray, person_codes: np.ndarray
) -> np.ndarray:
    """Return the number of people with each value, shape (n_values,)."""
    measured_value_table = (
        pd.DataFrame(~np.isnan(value_matrix)).groupby(person_codes).any()
    )
    return measured_value_table.sum().to_numpy()


def _compute_correlation_lows_and_highs(
    r: np.ndarray, value_people_counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return Fisher's 95% interval.

    `value_people_counts` lacks one for each covariate.
    """
    degrees_of_freedom = np.where(
        value_people_counts > 3, value_people_counts - 3.0, np.nan
    )
    z = np.arctanh(np.clip(r, -1 + 1e-15, 1 - 1e-15))
    half_widths = _Z_95 / np.sqrt(degrees_of_freedom)
    return np.tanh(z - half_widths), np.tanh(z + half_widths)


def _compute_eta_lows_and_highs(
    eta: np.ndarray, n_contrasts: int, error_dof: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the 95% interval of eta by the noncentral F distribution.

    Steiger 2004 (Psychol Methods 9:164): the noncentralities at which the F that was
    seen is the 97.5% and the 2.5% point, as eta. Found by bisection. A small eta can
    lie above both, because chance alone makes eta larger than 0; the interval is then
    extended to eta, which only raises its coverage.
    """
    value_people_counts = n_contrasts + error_dof + 1
    defined_interval_mask = np.isfinite(eta) & (error_dof > 0) & (eta < 1)
    eta_squared = np.where(defined_interval_mask, eta, 0.5) ** 2
    degrees_of_freedom = np.where(defined_interval_mask, error_dof, 1)
    F = eta_squared / n_contrasts / ((1 - eta_squared) / degrees_of_freedom)
    eta_bounds = []
    for probability in (0.975, 0.025):
        lower_noncentralities = np.zeros_like(F)
        upper_noncentralities = 10 * n_contrasts * F + 100.0
        for _ in range(60):
            middle_noncentralities = (lower_noncentralities + upper_noncentralities) / 2
            high_probability_mask = (
                ncfdtr(n_contrasts, degrees_of_freedom, middle_noncentralities, F)
                > probability
            )
            lower_noncentralities = np.where(
                high_probability_mask,
                middle_noncentralities,
                lower_noncentralities,
            )
            upper_noncentralities = np.where(
                high_probability_mask,
                upper_noncentralities,
                middle_noncentralities,
            )
        eta_bounds.append(
            np.where(
                defined_interval_mask,
                np.sqrt(
                    lower_noncentralities
                    / (lower_noncentralities + value_people_counts)
                ),
                np.nan,
            )
        )
    return np.minimum(eta_bounds[0], eta), np.maximum(eta_bounds[1], eta)


def standardize_statistics(statistic_matrix: np.ndarray) -> np.ndarray:
    """Return statistics (n_labellings, n_values) in s.d. from the mean of labellings.

    Columns that do not vary are 0.
    """
    sd = statistic_matrix.std(axis=0)
    constant_column_mask = sd <= _ROUNDING * (1 + np.abs(statistic_matrix).max(axis=0))
    statistic_deviations = np.where(
        constant_column_mask, 0.0, statistic_matrix - statistic_matrix.mean(axis=0)
    )
    return statistic_deviations / np.where(constant_column_mask, 1.0, sd)


def compute_family_wise_p_values(statistic_matrix: np.ndarray) -> np.ndarray:
    r"""Return p-values that are corrected by the largest statistic of each permutation.

    .. math:: p_p = \frac{1 + \#\{b \ge 1 : \max_q t_{bq} \ge t_{0p}\}}{B + 1}

    Under exchangeable labels the smallest p of all columns is below 0.05 in at most 5%
    of studies (Westfall and Young 1993).

    Parameters
    ----------
    statistic_matrix : array of shape (1 + n_permutations, n_values)
        The first row is of the labels, the others of permuted ones; large values count.
        NaN in columns that are not tested.

    Returns
    -------
    array of shape (n_values,)
        NaN for columns that are not tested, and without permutations.
    """
    tested_column_mask = np.isfinite(statistic_matrix).all(axis=0)
    if len(statistic_matrix) < 2 or not tested_column_mask.any():
        return np.full(statistic_matrix.shape[1], np.nan)
    max_statistics = statistic_matrix[1:, tested_column_mask].max(axis=1)
    exceedance_counts = (
        max_statistics[:, None] >= statistic_matrix[0] - _SAME_STATISTIC
    ).sum(axis=0)
    return np.where(
        tested_column_mask, (1 + exceedance_counts) / len(statistic_matrix), np.nan
    )


def compute_contrast_p_values(permuted_statistics: PermutedStatistics) -> np.ndarray:
    r"""Return the p-value of every contrast: the largest of two or three p-values.

    They are of two or three null hypotheses:

    1. No region differs: the contrasts, standardised over permutations.
    2. All regions differ by the same number of standard deviations: the excesses
       :math:`r(x_p - m_p)` of the regions whose effect has a p-value (without
       correction) below `SCREENING_LEVEL`.
    3. All regions differ by the same amount in their own unit: the excesses in that
       unit of the same regions, where units are comparable.

    Each is family-wise by the largest value of each permutation. The first alone is
    too small where all regions differ: the contrast of a permutation is the smaller
    of two chance values, and that of the labels is a single one, because the other is
    large.

    Returns
    -------
    array of shape (n_values,)
        NaN for contrasts that are not tested, and without permutations.
    """
    p = compute_family_wise_p_values(
        standardize_statistics(permuted_statistics.contrast_statistics)
    )
    effects = permuted_statistics.effects
    exceedance_counts = (effects[1:] >= effects[0] - _SAME_STATISTIC).sum(axis=0)
    candidate_column_mask = (1 + exceedance_counts) / len(effects) < SCREENING_LEVEL
    for excesses in (permuted_statistics.excesses, permuted_statistics.unit_excesses):
        known_column_mask = np.isfinite(excesses).all(axis=0)
        candidate_excesses = np.where(candidate_column_mask, excesses, np.nan)
        candidate_p_values = np.where(
            candidate_column_mask, compute_family_wise_p_values(candidate_excesses), 1.0
        )
        p = np.where(known_column_mask, np.maximum(p, candidate_p_values), p)
    return p


def standardized_difference_table(
    class_mean_sd_table: pd.DataFrame, reference_class: str
) -> pd.DataFrame:
    """Return features by class, and the difference of every class from the reference.

    Parameters
    ----------
    class_mean_sd_table : DataFrame
        As of :class:`.CohortSummary`. Classes of fewer than three people are left out.
    reference_class : str
        Class from which the others differ.

    Returns
    -------
    DataFrame
        feature, region, class, people; mean with its 95% t interval, low and high; and
        difference, from the reference in pooled standard deviations (Cohen's d), with
        its 95% interval, difference_low and difference_high (NaN for the reference).
    """
    reference_column_names = ["feature", "region", "class", "people", "mean", "sd"]
    feature_table: Any = class_mean_sd_table[
        class_mean_sd_table["people"] >= MIN_PEOPLE_SHOWN
    ]
    reference_class_table = feature_table.loc[
        feature_table["class"] == reference_class, reference_column_names
    ]
    feature_table = feature_table.merge(
        reference_class_table,
        "left",
        on=reference_column_names[:2],
        suffixes=("", "_first"),
    )
    n_people_series = feature_table["people"]
    class_means = feature_table["mean"]
    class_sds = feature_table["sd"]
    reference_counts, reference_means, reference_sds = (
        feature_table[f"{column_name}_first"]
        for column_name in reference_column_names[3:]
    )
    # Estimating the slopes of covariates widens the intervals.
    mean_factors, difference_factors = (
        feature_table.get(f"{column_name}_factor", 1.0)
        for column_name in ("mean", "difference")
    )
    half_widths = (
        student.ppf(0.975, n_people_series - 1)
        * class_sds
        * np.sqrt(mean_factors / n_people_series)
    )
    pooled_squares = (n_people_series - 1) * class_sds**2 + (
        reference_counts - 1
    ) * reference_sds**2
    class_differences = (class_means - reference_means) / np.sqrt(
        pooled_squares / (n_people_series + reference_counts - 2)
    )
    class_differences[feature_table["class"] == reference_class] = np.nan
    difference_variances = difference_factors * (n_people_series + reference_counts) / (
        n_people_series * reference_counts
    ) + class_differences**2 / (2 * (n_people_series + reference_counts))
    difference_half_widths = _Z_95 * np.sqrt(difference_variances)
    return feature_table[reference_column_names[:5]].assign(
        low=class_means - half_widths,
        high=class_means + half_widths,
        difference=class_differences,
        difference_low=class_differences - difference_half_widths,
        difference_high=class_differences + difference_half_widths,
    )


def _add_difference_columns_to_table(
    region_table: pd.DataFrame,
    cohort: Cohort,
    deconfounder: Deconfounder,
    reference_class_name: str,
) -> pd.DataFrame:
    """Add Cohen's d of every class but the reference, with its interval."""
    features, variance_factor_table = adjust_features_with_factor_table(
        cohort, deconfounder, reference_class_name
    )
    class_mean_sd_table = make_class_mean_sd_table(
        cohort, features, variance_factor_table
    )
    class_difference_table = standardized_difference_table(
        class_mean_sd_table, reference_class_name
    )
    suffix_by_column = {
        "difference": "",
        "difference_low": "_low",
        "difference_high": "_high",
    }
    for class_name in cohort.classes:
        if class_name == reference_class_name:
            continue
        difference_table = class_difference_table[
            class_difference_table["class"] == class_name
        ]
        difference_table = difference_table[
            ["region", "feature", *suffix_by_column]
        ].rename(
            columns={
                column_name: f"d_{class_name}{column_suffix}"
                for column_name, column_suffix in suffix_by_column.items()
            }
        )
        region_table = region_table.merge(
            difference_table, "left", ["region", "feature"]
        )
    return region_table


def _add_scale_columns_to_table(
    region_table: pd.DataFrame, evaluation: Evaluation, model_name: str | None
) -> pd.DataFrame:
    """Add the scales of a model, if the evaluation has one."""
    from brainlsap.evaluation.ranking import rank_regions

    if evaluation.scales.empty and model_name is None:
        return region_table
    ranking_column_names = [
        "rank",
        "relative_scale",
        "relative_low",
        "relative_high",
        "scale",
    ]
    scale_table = rank_regions(evaluation, model_name)[
        ["region", "model", *ranking_column_names]
    ]
    return region_table.merge(scale_table, "left", "region")
