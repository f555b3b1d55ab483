"""Remove site effects and confounds from features, learned from training scans."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from brainlsap.arrays import as_number_array, match_class_name, to_jsonable
from brainlsap.data import Cohort
from brainlsap.data.covariates import (
    IS_CATEGORICAL,
    KEY_COLUMNS,
    find_acquisition_kind,
    find_covariate_kind,
    find_known_sex_by_spelling,
    find_spelling_faults,
    find_wrong_number_faults,
    is_categorical_covariate,
    to_group_text_series,
)
from brainlsap.exceptions import ParameterError
from brainlsap.text import count_text, join_with_and, join_with_commas, option_text

# One column of a design: the mean of a number, or the share of each group.
CovariateCoding = float | Mapping[str, float]
CodingByCovariate = Mapping[str, CovariateCoding]

# Group of scans whose value is missing.
_UNKNOWN = "n/a"

# Covariates whose effects ComBat leaves in the features; never the label.
PRESERVED = ("age", "sex")

# A site needs two people in training, and a feature two values of a site: one value has
# no variance.
MIN_PER_SITE = 2
# A reference class needs so many people beyond the coefficients of the regression: the
# standard error of a standard deviation is 1 / sqrt(2 * 10), 22 % of it.
MIN_REFERENCE_PEOPLE = 10
# A covariate is removed as a curve if it has so many values, and if the cohort has so
# many people for every coefficient of the covariates.
MIN_CURVE_VALUES = 10
MIN_PEOPLE_PER_COEFFICIENT = 10
# Quantiles of the knots (Harrell 2015, Regression Modeling Strategies, section 2.4.6).
_KNOT_QUANTILES = (0.1, 0.5, 0.9)
# Text with more kinds than this, and a kind for every second person, is not groups.
MOST_GROUPS = 5

# ComBat's empirical Bayes estimates are iterated until they change by less than this.
_MAX_CHANGE = 1e-12
_MAX_ITERATIONS = 1000


@dataclass(eq=False, repr=False)
class Deconfounder(BaseEstimator):
    r"""Harmonise sites by ComBat and regress out confounds; both steps are optional.

    ComBat (Johnson et al. 2007, Biostatistics 8:118; Fortin et al. 2018, NeuroImage
    167:104) removes the shift and the scale of each site, in the model
    :math:`y = \alpha + x\beta + \gamma_{site} + \delta_{site}\varepsilon`; the
    sites' :math:`\gamma, \delta` are shrunken by empirical Bayes over all values.
    Unlike the reference code it is learned from training scans and applied to others;
    scans of sites that were not learned are unchanged, with a warning. Missing values
    are left out. The regression removes from every feature what covariates explain of
    it linearly.

    With a reference class both steps are learned from the training scans of this class
    alone and applied to all. A difference between classes that goes along with a
    covariate then stays in the features, and so does one that goes along with a site.
    The regression returns W-scores (La Joie et al. 2012, J Neurosci 32:16265),

    .. math:: W = \frac{y - \hat y_{reference}(x)}{s_{reference}}

    with :math:`s` the residual standard deviation of the reference class
    (:math:`n - p` degrees of freedom). A feature that fewer scans of it have than
    the regression needs is unchanged.

    Parameters
    ----------
    harmonize : str, optional
        Column, such as a site, for ComBat; age and sex are preserved where the table
        has them, never the label: test scans would then need it.
    regress_out : str or sequence of str
        Columns: groups or numbers, as
        `brainlsap.data.covariates.is_categorical_covariate` decides by name and values.
        A missing value counts as the mean of the training scans.
    reference_class : str, optional
        Class from whose training scans alone both steps are learned; by default from
        all training scans.

    Attributes
    ----------
    sites_ : list of str
        Learned sites.
    combat_, confounds_ : dict or None
        Learned parameters of ComBat and of the regression, by name.
    """

    harmonize: str | None = None
    regress_out: str | Sequence[str] = ()
    reference_class: str | None = None

    def __post_init__(self) -> None:
        covariate_names = self.regress_out
        self.regress_out = (
            (covariate_names,)
            if isinstance(covariate_names, str)
            else tuple(covariate_names)
        )

    def preserved_covariates(self, table: pd.DataFrame) -> tuple[str, ...]:
        """Return the covariates whose effects ComBat leaves in the features."""
        if not self.harmonize:
            return ()
        covariate_kind_set = set(map(find_covariate_kind, table))
        return tuple(
            covariate_name
            for covariate_name in PRESERVED
            if covariate_name in covariate_kind_set
        )

    def check(
        self, table: pd.DataFrame, splits: Sequence[tuple] = ((slice(None), []),)
    ) -> None:
        """Raise for columns that cannot be taken out, before anything is fitted.

        Parameters
        ----------
        table : DataFrame
            Of the cohort.
        splits : sequence of (train, test)
            Folds, by default all scans for training; every site needs two people in
            each training part that it is in. With a reference class these are people of
            it, and a regression needs ten of them more than it has coefficients.

        Raises
        ------
        ParameterError
            Naming column, site and what to do.
        """
        for covariate_name in self.regress_out:
            check_column_values(table, _find_confound_column(table, covariate_name))
        if self.reference_class is not None:
            self._check_reference(table, splits)
        if not self.harmonize:
            return
        site_column_name = _find_confound_column(table, self.harmonize)
        if IS_CATEGORICAL.get(find_acquisition_kind(site_column_name)) is False:
            raise ParameterError(
                f"{option_text('harmonize', self.harmonize)} must name a column of "
                f"groups, for example sites or scanners, but {site_column_name} is a "
                "quantity. Remove the effect of a quantity with "
                f"{option_text('regress_out')}."
            )
        for covariate_name in self.preserved_covariates(table):
            check_column_values(table, find_covariate_column(table, covariate_name))
        site_series = to_group_text_series(table[site_column_name])
        if site_series.isna().any():
            raise ParameterError(
                f"{count_text(site_series.isna().sum(), 'scan', 'have')} no value of "
                f"{self.harmonize}. "
                "Add the values, or leave these scans out."
            )
        for fold_number, (train_index, test_index) in enumerate(splits, start=1):
            train_table = table.iloc[train_index]
            reference_table = train_table[self._make_reference_scan_mask(train_table)]
            people_count_series = (
                reference_table["participant"].groupby(site_series).nunique()
            )
            # A site without a person of the reference class counts as 0.
            people_count_series = people_count_series.reindex(
                sorted(site_series.iloc[train_index].unique()), fill_value=0
            )
            self._check_sites_of_fold(
                fold_number, people_count_series, site_series.iloc[test_index]
            )

    def _make_reference_scan_mask(self, scan_table: pd.DataFrame) -> np.ndarray:
        """Return whether the steps are learned from a scan, by its label."""
        if self.reference_class is None:
            return np.ones(len(scan_table), dtype=bool)
        scan_labels = scan_table["label"].astype(str)
        reference_label = match_class_name(self.reference_class, scan_labels.unique())
        return (scan_labels == reference_label).to_numpy()

    def _check_reference(
        self, scan_table: pd.DataFrame, splits: Sequence[tuple]
    ) -> None:
        """Raise if the steps cannot be learned from the reference class in a fold."""
        setting_text = option_text("reference_class", str(self.reference_class))
        if not (self.harmonize or self.regress_out):
            raise ParameterError(
                f"{setting_text} has no effect, because no covariate or site is "
                f"adjusted for. Name covariates with {option_text('regress_out')}, or "
                f"a site with {option_text('harmonize')}."
            )
        if not self._make_reference_scan_mask(scan_table).any():
            raise ParameterError(
                f"{setting_text} is not a class of the cohort; its classes are "
                f"{', '.join(sorted(map(str, scan_table['label'].unique())))}."
            )
        covariate_names = (*self.regress_out, *self.preserved_covariates(scan_table))
        for fold_number, (train_index, _) in enumerate(splits, start=1):
            train_scan_table = scan_table.iloc[train_index]
            reference_scan_table = train_scan_table[
                self._make_reference_scan_mask(train_scan_table)
            ]
            n_people = reference_scan_table["participant"].nunique()
            n_required_people = MIN_PER_SITE
            if self.regress_out:
                coding_by_covariate = learn_coding_by_covariate(
                    self.regress_out, train_scan_table
                )
                n_required_people = (
                    1
                    + _count_design_columns(coding_by_covariate)
                    + MIN_REFERENCE_PEOPLE
                )
            if n_people < n_required_people:
                raise ParameterError(
                    f"{setting_text}: the training data of fold {fold_number} "
                    f"contain {count_text(n_people, 'person')} of this class, but "
                    f"these covariates need at least {n_required_people}. Use fewer "
                    "covariates, use more folds, or merge classes. To estimate the "
                    "effects from all people, leave out "
                    f"{option_text('reference_class')}."
                )
            for covariate_name in covariate_names:
                self._check_groups_of_reference(
                    fold_number, covariate_name, train_scan_table, reference_scan_table
                )

    def _check_groups_of_reference(
        self,
        fold_number: int,
        covariate_name: str,
        train_scan_table: pd.DataFrame,
        reference_scan_table: pd.DataFrame,
    ) -> None:
        """Raise if a group of a covariate has nobody of the reference class."""
        column_name = find_covariate_column(train_scan_table, covariate_name)
        if not is_categorical_covariate(column_name, train_scan_table[column_name]):
            return
        training_group_set = {
            *to_group_text_series(train_scan_table[column_name]).dropna()
        }
        reference_group_set = {
            *to_group_text_series(reference_scan_table[column_name]).dropna()
        }
        absent_group_names = sorted(training_group_set - reference_group_set)
        if absent_group_names:
            raise ParameterError(
                f"{option_text('reference_class', str(self.reference_class))}: no "
                f"person of this class in the training data of fold {fold_number} has "
                f"{column_name} {join_with_commas(absent_group_names, 8)}, so the "
                "effect of this value cannot be estimated. Leave out the people with "
                f"this value, or the column {column_name}. To estimate the effects "
                "from all people, leave out the reference class."
            )

    def _check_sites_of_fold(
        self,
        fold_number: int,
        people_count_series: pd.Series,
        test_site_series: pd.Series,
    ) -> None:
        """Raise if ComBat cannot learn the sites of a fold, or never applies them.

        `people_count_series` counts the people of each site in training.
        """
        # If no test scan is of a learned site, only the training scans would change.
        has_no_learned_site = (
            len(test_site_series) > 0
            and not test_site_series.isin(people_count_series.index).any()
        )
        if (
            has_no_learned_site
            or len(people_count_series) < 2
            or people_count_series.min() < MIN_PER_SITE
        ):
            site_texts = (
                f"{site_name}: {count_text(n_site_people, 'person')}"
                for site_name, n_site_people in people_count_series.items()
            )
            class_text = ""
            if self.reference_class is not None:
                class_text = f" of class {self.reference_class}"
            raise ParameterError(
                f"{option_text('harmonize', self.harmonize)} cannot be applied in "
                f"fold {fold_number}, because ComBat needs at least two sites "
                f"with at least {MIN_PER_SITE} people each, and training scans from "
                f"every site; the training scans{class_text} come from the sites "
                f"{join_with_commas(site_texts, 8)}. Leave people out, merge small "
                f"sites, or use fewer folds by person. {option_text('leave_out')} "
                f"cannot be combined with {option_text('harmonize')}."
            )

    def fit(self, features: np.ndarray, table: pd.DataFrame) -> "Deconfounder":
        """Learn each step from training scans as the step before returns them."""
        self.combat_ = self.confounds_ = None
        feature_values = np.asarray(as_number_array(features), dtype=np.float64)
        feature_values = feature_values.reshape(len(features), -1)
        if self.reference_class is not None:
            reference_scan_mask = self._make_reference_scan_mask(table)
            feature_values, table = (
                feature_values[reference_scan_mask],
                table[reference_scan_mask],
            )
        if self.harmonize:
            self.combat_ = self._learn_combat(feature_values, table)
            feature_values = self._harmonize_values(feature_values, table)
        if self.regress_out:
            coding_by_covariate = learn_coding_by_covariate(self.regress_out, table)
            C = np.hstack(
                [
                    np.ones((len(table), 1)),
                    build_covariate_design(coding_by_covariate, table),
                ]
            )
            coefficients = fit_least_squares_slopes(
                C, feature_values, min_scans=C.shape[1] + 1
            )
            self.confounds_ = {
                "design": coding_by_covariate,
                "slope": np.nan_to_num(coefficients[1:]),
            }
            if self.reference_class is not None:
                self.confounds_["mean"] = np.nan_to_num(coefficients[0])
                self.confounds_["deviation"] = _compute_residual_sds(
                    C, coefficients, feature_values
                )
        return self

    def transform(self, features: np.ndarray, table: pd.DataFrame) -> np.ndarray:
        """Return features (n_scans, n_rois, n_features) after every step, float64."""
        feature_values = np.array(features, dtype=np.float64).reshape(len(features), -1)
        if self.combat_:
            feature_values = self._harmonize_values(feature_values, table)
        if self.confounds_:
            covariate_design = build_covariate_design(self.confounds_["design"], table)
            feature_values = feature_values - covariate_design @ _reshape_step_slopes(
                self.confounds_, covariate_design, feature_values
            )
            if "deviation" in self.confounds_:
                feature_values -= np.array(self.confounds_["mean"])
                feature_values /= np.array(self.confounds_["deviation"])
        return feature_values.reshape(features.shape)

    def make_learned_site_mask(self, table: pd.DataFrame) -> np.ndarray:
        """Return of which scans the site can be harmonised; of all without ComBat."""
        if not self.harmonize:
            return np.ones(len(table), dtype=bool)
        return np.isin(self._make_site_labels(table), self.sites_)

    def list_learned_sites(self, table: pd.DataFrame) -> list[str]:
        """Return the sites of a table that ComBat has learned; none without ComBat."""
        if not self.harmonize:
            return []
        return sorted({*self._make_site_labels(table)} & {*map(str, self.sites_)})

    def fit_transform(self, features: np.ndarray, table: pd.DataFrame) -> np.ndarray:
        """Learn each step, and return the features of the same scans after it."""
        return self.fit(features, table).transform(features, table)

    def check_people(self, table: pd.DataFrame) -> None:
        """Raise if new people lack covariates, or code sex in another way."""
        coding_by_covariate: dict[str, CovariateCoding] = {}
        for step_parameter_by_name in (self.combat_, self.confounds_):
            if step_parameter_by_name:
                coding_by_covariate |= step_parameter_by_name["design"]
        covariate_column_names = _list_covariate_column_names(table)
        covariate_kind_set = {*map(find_covariate_kind, covariate_column_names)}
        required_covariate_names = dict.fromkeys(
            [*filter(None, [self.harmonize]), *coding_by_covariate]
        )
        missing_covariate_names = [
            covariate_name
            for covariate_name in required_covariate_names
            if find_covariate_kind(covariate_name) not in covariate_kind_set
        ]
        if missing_covariate_names:
            raise ParameterError(
                "the model requires the covariates "
                f"{', '.join(missing_covariate_names)} for new people; got "
                f"{', '.join(covariate_column_names) or 'no covariates'}. Add the "
                "missing columns to the table of the new people (for arrays in "
                "Python: to covariates=)."
            )
        for covariate_name, covariate_coding in coding_by_covariate.items():
            covariate_series = table[find_covariate_column(table, covariate_name)]
            if find_covariate_kind(covariate_name) != "sex" or isinstance(
                covariate_coding, float
            ):
                continue
            group_label_array = _spell_group_labels_as_trained(
                covariate_name, _make_group_labels(covariate_series), covariate_coding
            )
            unknown_group_names = sorted(
                {*group_label_array} - {_UNKNOWN, *covariate_coding}
            )
            if unknown_group_names:
                raise ParameterError(
                    f"{covariate_name} had the values {' or '.join(covariate_coding)} "
                    f"in training; got {', '.join(unknown_group_names)}. "
                    f"{_make_recoding_advice(covariate_coding)}"
                )

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted steps as JSON takes them; they hold no scan."""
        return to_jsonable(vars(self))

    @classmethod
    def from_dict(cls, attributes: Mapping[str, Any]) -> "Deconfounder":
        """Return the fitted steps from the output of :meth:`to_dict`."""
        deconfounder = cls()
        deconfounder.__dict__.update(attributes)
        return deconfounder

    def _make_site_labels(self, scan_table: pd.DataFrame) -> np.ndarray:
        """Return the site of each scan as text."""
        site_column_name = find_covariate_column(scan_table, str(self.harmonize))
        return _make_group_labels(scan_table[site_column_name])

    def _learn_combat(
        self, feature_values: np.ndarray, scan_table: pd.DataFrame
    ) -> dict[str, Any]:
        """Return ComBat's parameters for values (n_scans, n_values); set `sites_`."""
        site_label_array = self._make_site_labels(scan_table)
        site_names, site_scan_counts = np.unique(site_label_array, return_counts=True)
        large_site_mask = site_scan_counts >= MIN_PER_SITE
        self.sites_ = [str(site_name) for site_name in site_names[large_site_mask]]
        n_sites = len(self.sites_)
        site_indices = pd.Index(self.sites_).get_indexer(site_label_array)
        learned_site_scan_mask = site_indices >= 0
        coding_by_covariate = learn_coding_by_covariate(
            self.preserved_covariates(scan_table), scan_table
        )
        covariate_design = build_covariate_design(coding_by_covariate, scan_table)[
            learned_site_scan_mask
        ]
        feature_values = feature_values[learned_site_scan_mask]
        site_dummies = np.eye(n_sites)[site_indices[learned_site_scan_mask]]
        # values by site, each (n_sites, n_values)
        site_known_counts = site_dummies.T @ ~np.isnan(feature_values)
        coefficients = fit_least_squares_slopes(
            np.hstack([site_dummies, covariate_design]), feature_values
        )
        site_means, covariate_slopes = coefficients[:n_sites], coefficients[n_sites:]
        value_scan_counts = np.maximum(site_known_counts.sum(axis=0), 1)
        grand_means = (site_known_counts * site_means).sum(axis=0) / value_scan_counts
        covariate_residuals = (
            feature_values - grand_means - covariate_design @ covariate_slopes
        )
        residuals = covariate_residuals - site_dummies @ (site_means - grand_means)
        sd = np.sqrt(np.nansum(residuals**2, axis=0) / value_scan_counts)
        # Values that do not vary, or were measured at one site only, are not changed.
        unchanged_value_mask = sd <= 1e-10 * np.maximum(np.abs(grand_means), 1e-300)
        unchanged_value_mask |= (
            (site_known_counts >= MIN_PER_SITE).sum(axis=0) < 2
        ) | np.isnan(sd)
        sd = np.where(unchanged_value_mask, 1, sd)
        z = np.where(unchanged_value_mask, np.nan, covariate_residuals) / sd
        site_shifts, site_variances = _estimate_site_shifts_and_variances(
            z, site_dummies
        )
        return {
            "design": coding_by_covariate,
            "mean": np.where(unchanged_value_mask, 0, grand_means),
            "slope": np.where(unchanged_value_mask, 0, covariate_slopes),
            "deviation": sd,
            "gamma": site_shifts,
            "delta": site_variances,
        }

    def _harmonize_values(
        self, feature_values: np.ndarray, scan_table: pd.DataFrame
    ) -> np.ndarray:
        """Return values as if they were from one site; unknown sites unchanged."""
        site_label_array = self._make_site_labels(scan_table)
        site_indices = pd.Index(self.sites_).get_indexer(site_label_array)
        learned_site_scan_mask = site_indices >= 0
        if not learned_site_scan_mask.all():
            unknown_sites_text = ", ".join(
                sorted(set(site_label_array[~learned_site_scan_mask]))
            )
            warnings.warn(
                f"{count_text((~learned_site_scan_mask).sum(), 'scan', 'come')} from "
                f"sites that were not in training ({unknown_sites_text}). These scans "
                "were not harmonised.",
                stacklevel=3,
            )
        step_parameter_by_name = self.combat_ or {}
        covariate_design = build_covariate_design(
            step_parameter_by_name["design"], scan_table[learned_site_scan_mask]
        )
        expected_values = np.array(
            step_parameter_by_name["mean"]
        ) + covariate_design @ _reshape_step_slopes(
            step_parameter_by_name, covariate_design, feature_values
        )
        value_sds = np.array(step_parameter_by_name["deviation"])
        site_shifts = np.array(step_parameter_by_name["gamma"])[
            site_indices[learned_site_scan_mask]
        ]
        site_variances = np.array(step_parameter_by_name["delta"])[
            site_indices[learned_site_scan_mask]
        ]
        z = (
            feature_values[learned_site_scan_mask] - expected_values
        ) / value_sds - site_shifts
        harmonized_values = feature_values.copy()
        harmonized_values[learned_site_scan_mask] = (
            z / np.sqrt(site_variances) * value_sds + expected_values
        )
        return harmonized_values


STEP_OPTIONS = tuple(step_field.name for step_field in fields(Deconfounder))
"""Options of a study that are parameters of :class:`Deconfounder`, in its order."""

STEP_PHRASES = {
    "harmonize": "ComBat harmonisation by {}",
    "regress_out": "linear regression on {}",
}
"""Phrase of each option except `reference_class`, in the order of the steps."""


def _make_option_value_text(step_option_value: object) -> str:
    """Return the value of an option of a step, or its values joined by "and"."""
    if isinstance(step_option_value, (list, tuple)):
        return join_with_and(step_option_value)
    return str(step_option_value)


def learned_sites_sentence(site_names: Sequence[str]) -> str:
    """Return that sites were harmonised as sites of the training; "" for none."""
    if not site_names:
        return ""
    sites_text = f"site {site_names[0]}"
    if len(site_names) > 1:
        sites_text = f"sites {join_with_and(site_names)}"
    return (
        f"Scans of the {sites_text} were harmonised as scans of the training "
        f"{'site' if len(site_names) == 1 else 'sites'} of the same name. If a site "
        "has another scanner than in the training, give it another name and repeat."
    )


def list_step_phrases(value_by_option: Mapping[str, Any]) -> list[str]:
    """Return a phrase for each step that the options of a stored model switch on."""
    return [
        step_phrase.format(_make_option_value_text(value_by_option[option_name]))
        for option_name, step_phrase in STEP_PHRASES.items()
        # A file of an earlier version lacks later options.
        if value_by_option.get(option_name)
    ]


def _make_group_labels(covariate_series: pd.Series) -> np.ndarray:
    """Return the group of each scan as text; missing ones are `_UNKNOWN`."""
    return to_group_text_series(covariate_series).fillna(_UNKNOWN).to_numpy(object)


def _spell_group_labels_as_trained(
    covariate_name: str,
    group_label_array: np.ndarray,
    trained_group_names: Iterable[str],
) -> np.ndarray:
    """Return groups in which words for a sex are those of the training."""
    if find_covariate_kind(covariate_name) != "sex":
        return group_label_array
    trained_spelling_by_label = find_known_sex_by_spelling(
        {*group_label_array}, [*trained_group_names]
    )
    return np.array(
        [
            trained_spelling_by_label.get(group_label, group_label)
            for group_label in group_label_array
        ],
        dtype=object,
    )


def _make_recoding_advice(trained_group_names: Iterable[str]) -> str:
    """Return how to recode groups that the training wrote in another way."""
    return (
        "Look up the meaning of the new values in the codebook of the new people. In "
        f"the table, replace the values by {' or '.join(trained_group_names)}, or by "
        "n/a if none of these applies."
    )


def _reshape_step_slopes(
    step_parameter_by_name: Mapping,
    covariate_design: np.ndarray,
    feature_values: np.ndarray,
) -> np.ndarray:
    """Return the slopes of a fitted step as (n_columns, n_values), also from JSON."""
    return np.reshape(
        step_parameter_by_name["slope"],
        (covariate_design.shape[1], feature_values.shape[1]),
    )


def _count_design_columns(coding_by_covariate: CodingByCovariate) -> int:
    """Return the number of columns of covariates, one for each group but the first."""
    return sum(
        1 if isinstance(covariate_coding, float) else len(covariate_coding) - 1
        for covariate_coding in coding_by_covariate.values()
    )


def _compute_residual_sds(
    design_matrix: np.ndarray, coefficients: np.ndarray, feature_values: np.ndarray
) -> np.ndarray:
    """Return the residual s.d. of every value; 1 where it is not known, or is 0."""
    residuals = feature_values - design_matrix @ coefficients
    n_known_scans = (~np.isnan(residuals)).sum(axis=0)
    degrees_of_freedom = np.maximum(n_known_scans - design_matrix.shape[1], 1)
    residual_sds = np.sqrt(np.nansum(residuals**2, axis=0) / degrees_of_freedom)
    # The residuals of values that do not vary are rounding errors.
    constant_value_mask = residual_sds <= 1e-10 * np.nan_to_num(np.abs(coefficients[0]))
    return np.where((n_known_scans == 0) | constant_value_mask, 1.0, residual_sds)


def _list_covariate_column_names(scan_table: pd.DataFrame) -> list[str]:
    """Return the columns that are neither ids nor the label."""
    return [
        str(column_name)
        for column_name in scan_table.columns
        if column_name not in KEY_COLUMNS
    ]


def find_covariate_column(table: pd.DataFrame, covariate_name: str) -> str:
    """Return the covariate that a name means: itself, or the one of its kind.

    Raises
    ------
    ParameterError
        If no covariate, or more than one, is of that kind.
    """
    covariate_column_names = _list_covariate_column_names(table)
    if covariate_name in covariate_column_names:
        return covariate_name
    matching_column_names = [
        column_name
        for column_name in covariate_column_names
        if find_covariate_kind(column_name) == find_covariate_kind(covariate_name)
    ]
    if not matching_column_names:
        covariate_kind = find_acquisition_kind(covariate_name)
        matching_column_names = [
            column_name
            for column_name in covariate_column_names
            if find_acquisition_kind(column_name) == covariate_kind
        ]
    if len(matching_column_names) == 1:
        return matching_column_names[0]
    advice_text = ""
    if "," in covariate_name:
        advice_text = f" Give several columns as a list, {covariate_name.split(',')!r}."
    raise ParameterError(
        f"the covariates contain {'more than one' if matching_column_names else 'no'} "
        f"column {covariate_name!r}; their columns are "
        f"{join_with_commas(covariate_column_names, 8) or 'none'}. If the column is "
        "missing, add it to the table of participants (for arrays in Python: to "
        f"covariates=). A label cannot be a covariate.{advice_text}"
    )


def learn_coding_by_covariate(
    covariate_names: Sequence[str], table: pd.DataFrame
) -> dict[str, CovariateCoding]:
    """Return the mean, or the shares of groups, of each covariate column."""
    coding_by_covariate: dict[str, CovariateCoding] = {}
    for covariate_name in covariate_names:
        column_name = find_covariate_column(table, covariate_name)
        covariate_series = table[column_name]
        if covariate_series.notna().sum() == 0:
            raise ParameterError(
                f"the covariate {column_name!r} is missing in every training scan. "
                "Leave this covariate out."
            )
        if is_categorical_covariate(column_name, covariate_series):
            group_series = pd.Series(_make_group_labels(covariate_series.dropna()))
            group_share_series = group_series.value_counts(normalize=True).sort_index()
            coding_by_covariate[column_name] = group_share_series.to_dict()
        else:
            coding_by_covariate[column_name] = float(
                pd.to_numeric(covariate_series).mean()
            )
    return coding_by_covariate


def build_covariate_design(
    coding_by_covariate: CodingByCovariate, table: pd.DataFrame
) -> np.ndarray:
    """Return covariates as centred numbers (n_scans, n_columns); missing ones are 0.

    A covariate with groups has a column for each group but the first.
    """
    design_columns = []
    for covariate_name, covariate_coding in coding_by_covariate.items():
        covariate_series = table[find_covariate_column(table, covariate_name)]
        _check_coding(covariate_name, covariate_series.dropna(), covariate_coding)
        if isinstance(covariate_coding, float):
            covariate_numbers = pd.to_numeric(
                covariate_series, errors="coerce"
            ).to_numpy(dtype=float)
            design_columns.append(
                np.nan_to_num(covariate_numbers - covariate_coding, nan=0.0)
            )
            continue
        group_label_array = _spell_group_labels_as_trained(
            covariate_name, _make_group_labels(covariate_series), covariate_coding
        )
        known_group_scan_mask = np.isin(group_label_array, list(covariate_coding))
        unknown_group_names = sorted(
            {*group_label_array[~known_group_scan_mask]} - {_UNKNOWN}
        )
        if unknown_group_names:
            warnings.warn(
                f"{covariate_name}: the values {', '.join(unknown_group_names)} did "
                "not occur in training, where the values were "
                f"{', '.join(covariate_coding)}. Features were not adjusted for these "
                "values.",
                stacklevel=3,
            )
        for group_name in list(covariate_coding)[1:]:
            dummy_column = (group_label_array == group_name) - covariate_coding[
                group_name
            ]
            design_columns.append(np.where(known_group_scan_mask, dummy_column, 0.0))
    return (
        np.stack(design_columns, axis=1)
        if design_columns
        else np.zeros((len(table), 0))
    )


def adjust_features_with_factor_table(
    cohort: Cohort, deconfounder: Deconfounder, reference_class: str | None = None
) -> tuple[np.ndarray, pd.DataFrame | None]:
    """Return features at the mean of the covariates taken out, by within-class slopes.

    Parameters
    ----------
    cohort : Cohort
    deconfounder : Deconfounder
        Says which covariates are taken out; it need not be fitted.
    reference_class : str, optional
        Class from which the others differ; by default the first.

    Returns
    -------
    features : array of shape (n_scans, n_rois, n_features)
    factors : DataFrame or None
        By class: by how much the adjustment raises the variance of the class mean
        (mean_factor), and of its difference from the reference (difference_factor).
        None if nothing is taken out.
    """
    covariate_design = build_adjustment_design(cohort, deconfounder)
    if not covariate_design.shape[1]:
        return cohort.features, None
    feature_values = cohort.features.astype(np.float64).reshape(cohort.n_scans, -1)
    class_dummy_table = pd.get_dummies(cohort.y)
    n_classes = class_dummy_table.shape[1]
    design_matrix = np.hstack(
        [class_dummy_table.to_numpy(np.float64), covariate_design]
    )
    covariate_slopes = fit_least_squares_slopes(
        design_matrix, feature_values, min_scans=design_matrix.shape[1] + 1
    )[n_classes:]
    adjusted_features = (
        feature_values - covariate_design @ np.nan_to_num(covariate_slopes)
    ).reshape(cohort.features.shape)
    person_mean_design = (
        pd.DataFrame(design_matrix).groupby([cohort.groups, cohort.y]).mean().to_numpy()
    )
    reference_index = class_dummy_table.columns.get_loc(
        reference_class or cohort.classes[0]
    )
    factors_by_column = _compute_variance_factors_by_column(
        person_mean_design, n_classes, reference_index
    )
    return adjusted_features, pd.DataFrame(
        factors_by_column, index=class_dummy_table.columns
    )


def build_adjustment_design(cohort: Cohort, deconfounder: Deconfounder) -> np.ndarray:
    """Return the covariates to remove as standardised columns (n_scans, n_columns).

    A quantity, such as age, has a second column for its curve if it has
    `MIN_CURVE_VALUES` values in different people and if there are
    `MIN_PEOPLE_PER_COEFFICIENT` people for every coefficient. Otherwise all quantities
    are lines.

    The site of `harmonize` counts as a covariate: ComBat does not know the label, and
    also removes the part of a class difference that goes with the site. Within sites
    the difference is whole.
    """
    covariate_names = [*deconfounder.regress_out]
    scan_table = cohort.table
    if deconfounder.harmonize:
        site_column_name = find_covariate_column(scan_table, deconfounder.harmonize)
        covariate_names.append(site_column_name)
        # Sites may be numbered: make them text, so that they count as groups.
        site_series = "site " + scan_table[site_column_name].astype(str)
        scan_table = scan_table.assign(**{site_column_name: site_series})
    coding_by_covariate = learn_coding_by_covariate(covariate_names, scan_table)
    covariate_design = build_covariate_design(coding_by_covariate, scan_table)
    curve_design = _build_curve_design(coding_by_covariate, scan_table)
    n_coefficients = 1 + covariate_design.shape[1] + curve_design.shape[1]
    n_people = scan_table["participant"].nunique()
    if n_people >= MIN_PEOPLE_PER_COEFFICIENT * n_coefficients:
        covariate_design = np.hstack([covariate_design, curve_design])
    # Units as far apart as mm and mm3 would lose digits in one basis.
    column_sds = covariate_design.std(axis=0)
    return covariate_design / np.where(column_sds > 0, column_sds, 1.0)


def _build_curve_design(
    coding_by_covariate: CodingByCovariate, scan_table: pd.DataFrame
) -> np.ndarray:
    """Return the centred curve of every quantity with enough values; missing ones 0."""
    curve_columns = []
    for covariate_name, covariate_coding in coding_by_covariate.items():
        if not isinstance(covariate_coding, float):
            continue
        covariate_series = pd.to_numeric(
            scan_table[find_covariate_column(scan_table, covariate_name)],
            errors="coerce",
        )
        covariate_mean_series = (
            covariate_series.groupby(scan_table["participant"]).mean().dropna()
        )
        if covariate_mean_series.nunique() < MIN_CURVE_VALUES:
            continue
        knots = np.quantile(covariate_mean_series, _KNOT_QUANTILES)
        if np.diff(knots).min() > 0:
            curve_column = compute_cubic_curve(
                covariate_series.to_numpy(dtype=float), knots
            )
            curve_columns.append(
                np.nan_to_num(curve_column - np.nanmean(curve_column), nan=0.0)
            )
    return (
        np.stack(curve_columns, axis=1)
        if curve_columns
        else np.zeros((len(scan_table), 0))
    )


def compute_cubic_curve(covariate_values: np.ndarray, knots: np.ndarray) -> np.ndarray:
    r"""Return the curved column of a restricted cubic spline with three knots.

    With :math:`(u)_+ = \max(u, 0)` and knots :math:`a < b < c`,

    .. math:: \frac{1}{(c - a)^2} \left[ (x - a)_+^3
              - \frac{c - a}{c - b} (x - b)_+^3 + \frac{b - a}{c - b} (x - c)_+^3
              \right]

    Together with x and 1 it spans the functions that are cubic between the knots, have
    two continuous derivatives, and are lines below a and above c (Stone and Koo 1985,
    Proc Stat Comput Sect ASA 45).

    Parameters
    ----------
    covariate_values : array of shape (n,)
        NaN where missing.
    knots : array of shape (3,)
        In ascending order.

    Returns
    -------
    array of shape (n,)
        In the unit of the numbers; 0 up to the first knot, NaN where missing.
    """
    first_knot, middle_knot, last_knot = knots
    first_cubes, middle_cubes, last_cubes = (
        np.maximum(covariate_values - knot, 0.0) ** 3 for knot in knots
    )
    middle_factor = (last_knot - first_knot) / (last_knot - middle_knot)
    last_factor = (middle_knot - first_knot) / (last_knot - middle_knot)
    curve_values = first_cubes - middle_factor * middle_cubes + last_factor * last_cubes
    return curve_values / (last_knot - first_knot) ** 2


def _compute_variance_factors_by_column(
    person_mean_design: np.ndarray, n_classes: int, reference_index: int
) -> dict[str, np.ndarray]:
    """Return by how much covariates raise the variance of class means and differences.

    `person_mean_design` is a design (n_people, n_columns) whose first columns are the
    classes. Without covariates the variance of a mean is 1 / n, that of a difference
    1 / n + 1 / n_reference.
    """
    class_people_counts = person_mean_design[:, :n_classes].sum(axis=0)
    covariance_matrix = np.linalg.pinv(person_mean_design.T @ person_mean_design)[
        :n_classes, :n_classes
    ]
    mean_variances = np.diag(covariance_matrix)
    difference_variances = (
        mean_variances
        + mean_variances[reference_index]
        - 2 * covariance_matrix[reference_index]
    )
    return {
        "mean_factor": mean_variances * class_people_counts,
        "difference_factor": difference_variances
        / (1 / class_people_counts + 1 / class_people_counts[reference_index]),
    }


def _check_coding(
    column_name: str, covariate_series: pd.Series, covariate_coding: CovariateCoding
) -> None:
    """Raise if new values are coded otherwise, for example 1 and 2 for F and M."""
    numeric_value_mask = pd.to_numeric(covariate_series, errors="coerce").notna()
    if isinstance(covariate_coding, float):
        expected_values_text = "numbers"
        conflicting_value_mask = ~numeric_value_mask
    else:
        group_number_series = pd.to_numeric(
            pd.Series(list(covariate_coding)), errors="coerce"
        )
        expected_values_text = " or ".join(covariate_coding)
        conflicting_value_mask = numeric_value_mask & group_number_series.isna().all()
    if len(covariate_series) and conflicting_value_mask.all():
        raise ParameterError(
            f"the covariate {column_name!r} was {expected_values_text} in training; "
            f"got {str(covariate_series.iloc[0])!r}. Replace the new values by the "
            "values used in training."
        )


def fit_least_squares_slopes(
    design_matrix: np.ndarray, feature_values: np.ndarray, min_scans: int = 1
) -> np.ndarray:
    """Return slopes (n_columns, n_values), each from the scans that have the value.

    NaN if fewer than `min_scans` scans have it.
    """
    coefficients = np.full((design_matrix.shape[1], feature_values.shape[1]), np.nan)
    # Solve once for all values that the same scans have.
    for measured_row_mask, column_indices in list_known_row_masks_and_columns(
        feature_values
    ):
        if measured_row_mask.sum() >= min_scans:
            value_block = feature_values[np.ix_(measured_row_mask, column_indices)]
            coefficients[:, column_indices] = np.linalg.lstsq(
                design_matrix[measured_row_mask], value_block, rcond=None
            )[0]
    return coefficients


def list_known_row_masks_and_columns(
    value_matrix: np.ndarray,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return columns that the same rows have: a mask of these rows, and the columns."""
    measured_value_mask = ~np.isnan(value_matrix)
    if measured_value_mask.all():
        return [
            (np.ones(len(value_matrix), dtype=bool), np.arange(value_matrix.shape[1]))
        ]
    row_pattern_matrix, pattern_indices = np.unique(
        measured_value_mask, axis=1, return_inverse=True
    )
    pattern_indices = pattern_indices.reshape(-1)
    return [
        (measured_row_mask, np.flatnonzero(pattern_indices == pattern_index))
        for pattern_index, measured_row_mask in enumerate(row_pattern_matrix.T)
    ]


def _estimate_site_shifts_and_variances(
    z: np.ndarray, site_dummies: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return ComBat's gamma and delta (n_sites, n_values) of standardised values z.

    Values that vary too little at a site keep its gamma at 0 and its delta at 1.
    """
    effect_shape = site_dummies.shape[1], z.shape[1]
    gamma = np.zeros(effect_shape)
    site_variances = np.ones(effect_shape)
    for site_index in range(len(gamma)):
        site_z = z[site_dummies[:, site_index] > 0]
        n_known_scans = (~np.isnan(site_z)).sum(axis=0)
        estimable_value_indices = np.flatnonzero(n_known_scans >= MIN_PER_SITE)
        varying_value_mask = (
            np.nanvar(site_z[:, estimable_value_indices], axis=0, ddof=1) > 0
        )
        estimable_value_indices = estimable_value_indices[varying_value_mask]
        if len(estimable_value_indices):
            gamma_row, delta_row = _shrink_site_shift_and_variance(
                site_z[:, estimable_value_indices]
            )
            gamma[site_index, estimable_value_indices] = gamma_row
            site_variances[site_index, estimable_value_indices] = delta_row
    return gamma, site_variances


def _shrink_site_shift_and_variance(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior shift and variance of one site, of values that vary.

    Shifts have a normal prior, variances an inverse gamma prior, both with the moments
    of the site's estimates over all values (Johnson et al. 2007, section 3.2).
    """
    n = (~np.isnan(z)).sum(axis=0)
    gamma_hat = np.nanmean(z, axis=0)
    delta_hat = np.nanvar(z, axis=0, ddof=1)
    shrunken_shifts, shrunken_variances = gamma_hat, delta_hat
    if len(shrunken_shifts) < 2 or gamma_hat.var() == 0 or delta_hat.var() == 0:
        return shrunken_shifts, shrunken_variances
    prior_mean = gamma_hat.mean()
    prior_variance = gamma_hat.var(ddof=1)
    m, s = delta_hat.mean(), delta_hat.var(ddof=1)
    prior_shape = (2 * s + m**2) / s
    prior_rate = (m * s + m**3) / s
    for _ in range(_MAX_ITERATIONS):
        previous_shifts, previous_variances = shrunken_shifts, shrunken_variances
        shrunken_shifts = (
            prior_variance * n * gamma_hat + shrunken_variances * prior_mean
        ) / (prior_variance * n + shrunken_variances)
        squared_deviations = np.nansum((z - shrunken_shifts) ** 2, axis=0)
        shrunken_variances = (0.5 * squared_deviations + prior_rate) / (
            n / 2 + prior_shape - 1
        )
        max_shift_change = np.abs(shrunken_shifts - previous_shifts).max()
        max_variance_change = np.abs(shrunken_variances - previous_variances).max()
        if max(max_shift_change, max_variance_change) < _MAX_CHANGE:
            break
    return shrunken_shifts, shrunken_variances


def _find_confound_column(scan_table: pd.DataFrame, covariate_name: str) -> str:
    """Return the column that a name means; raise if it determines the label."""
    column_name = find_covariate_column(scan_table, covariate_name)
    label_count_series = (
        scan_table["label"]
        .groupby(scan_table[column_name].dropna().astype(str))
        .nunique()
    )
    has_few_groups = (
        1 < len(label_count_series) <= scan_table["participant"].nunique() / 2
    )
    if (
        has_few_groups
        and scan_table["label"].nunique() > 1
        and label_count_series.max() == 1
    ):
        raise ParameterError(
            f"each value of {column_name} occurs with one label only, so adjusting "
            "for it would remove the differences between the labels. Leave this "
            "covariate out. The audit reports how well this covariate alone "
            "predicts the label."
        )
    return column_name


def check_column_values(table: pd.DataFrame, column_name: str) -> None:
    """Raise if a column is neither groups nor numbers, or spells a group in two ways.

    Warn of scans without a value.
    """
    coding_findings = find_wrong_number_faults(table, [column_name])
    if is_categorical_covariate(column_name, table[column_name]):
        coding_findings += find_spelling_faults(
            column_name, table[column_name], table.get("scan")
        )
    if coding_findings:
        raise ParameterError(f"{'; '.join(map(str, coding_findings))}.")
    known_value_series = table[column_name].dropna()
    n_missing = len(table) - len(known_value_series)
    if n_missing:
        warnings.warn(
            f"{n_missing} of {len(table)} scans have no {column_name}. The mean of "
            "the training scans is used for these scans.",
            stacklevel=4,
        )
    is_categorical = IS_CATEGORICAL.get(find_acquisition_kind(column_name), False)
    text_values = known_value_series[
        pd.to_numeric(known_value_series, errors="coerce").isna()
    ].astype(str)
    has_codes = is_categorical or (
        text_values.empty and is_categorical_covariate(column_name, known_value_series)
    )
    if has_codes:
        text_values = to_group_text_series(known_value_series)
    n_distinct_texts = text_values.nunique()
    n_people = table["participant"].nunique()
    n_distinct_numbers = known_value_series.drop(text_values.index).nunique()
    mixes_numbers_and_texts = len(text_values) > 0 and n_distinct_numbers > MOST_GROUPS
    has_too_many_values = (
        n_distinct_texts > MOST_GROUPS and 2 * n_distinct_texts > n_people
    )
    if has_too_many_values and has_codes:
        raise ParameterError(
            f"the column {column_name} has {n_distinct_texts} groups among {n_people} "
            "people, so adjusting for it would remove the differences between "
            "people. Merge small groups, or leave the column out."
        )
    if mixes_numbers_and_texts or has_too_many_values:
        raise ParameterError(
            f"the column {column_name} contains text such as "
            f"{text_values.iloc[0]!r}, which is neither a number nor the name of a "
            "group. Write numbers with a decimal point and no unit, and n/a for "
            "unknown values."
        )
