"""Remove site effects and confounds from features, learned from training scans."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from brainlsap.arrays import as_number_array, to_jsonable
from brainlsap.data import Cohort
from brainlsap.data.covariates import (
    IS_CATEGORICAL,
    KEY_COLUMNS,
    acquisition_kind,
    find_codes,
    find_spellings,
    group_names,
    has_groups,
    kind_of,
)
from brainlsap.exceptions import ParameterError
from brainlsap.text import listed

# One column of a design: the mean of a number, or the share of each group.
CovariateCoding = float | Mapping[str, float]
Design = Mapping[str, CovariateCoding]

# Group of scans whose value is missing.
_UNKNOWN = "n/a"

# Covariates whose effects ComBat leaves in the features; never the label.
PRESERVED = ("age", "sex")

# A site needs two people in training, and a feature two values of a site: one value has
# no variance.
MIN_PER_SITE = 2
# Text with more kinds than this, and a kind for every second person, is not groups.
MOST_GROUPS = 5

# ComBat's empirical Bayes estimates are iterated until they change by less than this.
_MAX_CHANGE = 1e-12
_MAX_ITERATIONS = 1000


@dataclass(eq=False, repr=False)
class Deconfounder(BaseEstimator):
    r"""Harmonise sites with ComBat, then regress confounds out; both are optional.

    ComBat (Johnson et al. 2007, Biostatistics 8:118; Fortin et al. 2018, NeuroImage
    167:104) removes the shift and the scale of each site, in the model
    :math:`y = \alpha + x\beta + \gamma_{site} + \delta_{site}\varepsilon`; the
    sites' :math:`\gamma, \delta` are shrunken by empirical Bayes over all values.
    Unlike the reference code it is learned from training scans and applied to others;
    scans of sites that were not learned are unchanged, with a warning. Missing values
    are left out. The regression removes from every feature what covariates explain of
    it linearly.

    Parameters
    ----------
    harmonize : str, optional
        Column, such as a site, for ComBat; age and sex are preserved where the table
        has them, never the label: test scans would then need it.
    regress_out : str or sequence of str
        Columns: groups or numbers, as `brainlsap.data.covariates.has_groups`
        decides by name and values. A missing value counts as the mean of the training
        scans.

    Attributes
    ----------
    sites_ : list of str
        Learned sites.
    combat_, confounds_ : dict or None
        What either step has learned, by name.
    """

    harmonize: str | None = None
    regress_out: str | Sequence[str] = ()

    def __post_init__(self) -> None:
        names = self.regress_out
        self.regress_out = (names,) if isinstance(names, str) else tuple(names)

    def preserved_covariates(self, table: pd.DataFrame) -> tuple[str, ...]:
        """Return the covariates whose effects ComBat leaves in the features."""
        if not self.harmonize:
            return ()
        kinds = set(map(kind_of, table))
        return tuple(name for name in PRESERVED if name in kinds)

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
            each training part that it is in.

        Raises
        ------
        ParameterError
            Naming column, site and what to do.
        """
        for name in self.regress_out:
            _check_values(table, _check_confound(table, name))
        if not self.harmonize:
            return
        column = _check_confound(table, self.harmonize)
        if IS_CATEGORICAL.get(acquisition_kind(column)) is False:
            raise ParameterError(
                f"harmonize={self.harmonize!r} must name groups, for example sites or "
                f"scanners, but {column} is a quantity. Take it out with regress_out=."
            )
        for name in self.preserved_covariates(table):
            _check_values(table, find_covariate_column(table, name))
        site = group_names(table[column])
        if site.isna().any():
            raise ParameterError(
                f"{site.isna().sum()} scans have no {self.harmonize}; give one, or "
                "leave them out."
            )
        for fold, (train, test) in enumerate(splits, start=1):
            n_people = table["participant"].iloc[train].groupby(site).nunique()
            self._check_sites_of_fold(fold, n_people, site.iloc[test])

    def _check_sites_of_fold(
        self, fold: int, n_people: pd.Series, test_site: pd.Series
    ) -> None:
        """Raise if ComBat cannot learn the sites of a fold, or never applies them.

        `n_people` counts the people of each site in training.
        """
        # If no test scan is of a learned site, only the training scans would change.
        is_held_out = len(test_site) > 0 and not test_site.isin(n_people.index).any()
        if is_held_out or len(n_people) < 2 or n_people.min() < MIN_PER_SITE:
            site_texts = (f"{name}: {count} people" for name, count in n_people.items())
            raise ParameterError(
                f"harmonize={self.harmonize!r} cannot work in fold {fold}, whose "
                f"training scans are of {listed(site_texts, 8)}; ComBat needs two "
                f"sites and {MIN_PER_SITE} people of each, and cannot know a site that "
                "is held out: leave_out= goes without harmonize=. Else leave people "
                "out, merge small sites, or take fewer folds by person."
            )

    def fit(self, features: np.ndarray, table: pd.DataFrame) -> "Deconfounder":
        """Learn each step from training scans as the step before returns them."""
        self.combat_ = self.confounds_ = None
        values = np.asarray(as_number_array(features), dtype=np.float64)
        values = values.reshape(len(features), -1)
        if self.harmonize:
            self.combat_ = self._learn_combat(values, table)
            values = self._harmonize(values, table)
        if self.regress_out:
            design = learn_design(self.regress_out, table)
            C = np.hstack([np.ones((len(table), 1)), apply_design(design, table)])
            slopes = least_squares(C, values, min_scans=C.shape[1] + 1)[1:]
            self.confounds_ = {"design": design, "slope": np.nan_to_num(slopes)}
        return self

    def transform(self, features: np.ndarray, table: pd.DataFrame) -> np.ndarray:
        """Return features (n_scans, n_rois, n_features) after every step, float64."""
        values = np.array(features, dtype=np.float64).reshape(len(features), -1)
        if self.combat_:
            values = self._harmonize(values, table)
        if self.confounds_:
            design = apply_design(self.confounds_["design"], table)
            values = values - design @ _slopes(self.confounds_, design, values)
        return values.reshape(features.shape)

    def check_people(self, table: pd.DataFrame) -> None:
        """Raise if new people lack covariates, or code sex in another way."""
        learned_design: dict[str, CovariateCoding] = {}
        for step in (self.combat_, self.confounds_):
            if step:
                learned_design |= step["design"]
        covariates = _covariate_columns(table)
        kinds = {*map(kind_of, covariates)}
        required_names = dict.fromkeys(
            [*filter(None, [self.harmonize]), *learned_design]
        )
        absent = [name for name in required_names if kind_of(name) not in kinds]
        if absent:
            raise ParameterError(
                f"the model needs {', '.join(absent)} of new people, who have "
                f"{', '.join(covariates) or 'no covariates'}. Add what is missing to "
                "their table, or to covariates=."
            )
        for name, coding in learned_design.items():
            values = table[find_covariate_column(table, name)]
            if kind_of(name) != "sex" or isinstance(coding, float):
                continue
            groups = {*_group_labels(values)} - {_UNKNOWN}
            if not groups <= {*coding}:
                raise ParameterError(
                    f"{name} was {' or '.join(coding)} in training, got "
                    f"{', '.join(sorted(groups))}. Write it in the same way."
                )

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted steps as JSON takes them; they hold no scan."""
        return to_jsonable(vars(self))

    @classmethod
    def from_dict(cls, attributes: Mapping[str, Any]) -> "Deconfounder":
        """Return the fitted steps from the output of :meth:`to_dict`."""
        steps = cls()
        steps.__dict__.update(attributes)
        return steps

    def _learn_combat(self, values: np.ndarray, table: pd.DataFrame) -> dict[str, Any]:
        """Return what ComBat learns of values (n_scans, n_values); set `sites_`."""
        site = _group_labels(table[find_covariate_column(table, str(self.harmonize))])
        names, n_scans_of_site = np.unique(site, return_counts=True)
        is_large_enough = n_scans_of_site >= MIN_PER_SITE
        self.sites_ = [str(name) for name in names[is_large_enough]]
        n_sites = len(self.sites_)
        site_index = pd.Index(self.sites_).get_indexer(site)
        is_learned = site_index >= 0
        preserved_design = learn_design(self.preserved_covariates(table), table)
        design = apply_design(preserved_design, table)[is_learned]
        values = values[is_learned]
        site_dummies = np.eye(n_sites)[site_index[is_learned]]
        # values by site, each (n_sites, n_values)
        n_known = site_dummies.T @ ~np.isnan(values)
        beta = least_squares(np.hstack([site_dummies, design]), values)
        site_means, slope = beta[:n_sites], beta[n_sites:]
        n_scans = np.maximum(n_known.sum(axis=0), 1)
        mean = (n_known * site_means).sum(axis=0) / n_scans
        deviations = values - mean - design @ slope
        residuals = deviations - site_dummies @ (site_means - mean)
        sd = np.sqrt(np.nansum(residuals**2, axis=0) / n_scans)
        # Values that do not vary, or were measured at one site only, are not changed.
        is_unchanged = sd <= 1e-10 * np.maximum(np.abs(mean), 1e-300)
        is_unchanged |= ((n_known >= MIN_PER_SITE).sum(axis=0) < 2) | np.isnan(sd)
        sd = np.where(is_unchanged, 1, sd)
        z = np.where(is_unchanged, np.nan, deviations) / sd
        gamma, delta = _estimate_site_effects(z, site_dummies)
        return {
            "design": preserved_design,
            "mean": np.where(is_unchanged, 0, mean),
            "slope": np.where(is_unchanged, 0, slope),
            "deviation": sd,
            "gamma": gamma,
            "delta": delta,
        }

    def _harmonize(self, values: np.ndarray, table: pd.DataFrame) -> np.ndarray:
        """Return values as if they were from one site; unknown sites unchanged."""
        site = _group_labels(table[find_covariate_column(table, str(self.harmonize))])
        site_index = pd.Index(self.sites_).get_indexer(site)
        is_learned = site_index >= 0
        if not is_learned.all():
            names = ", ".join(sorted(set(site[~is_learned])))
            warnings.warn(
                f"{(~is_learned).sum()} scans are of sites not learned ({names}); they "
                "are left as they are.",
                stacklevel=3,
            )
        combat = self.combat_ or {}
        design = apply_design(combat["design"], table[is_learned])
        centre = np.array(combat["mean"]) + design @ _slopes(combat, design, values)
        deviation = np.array(combat["deviation"])
        gamma = np.array(combat["gamma"])[site_index[is_learned]]
        delta = np.array(combat["delta"])[site_index[is_learned]]
        z = (values[is_learned] - centre) / deviation - gamma
        harmonized_values = values.copy()
        harmonized_values[is_learned] = z / np.sqrt(delta) * deviation + centre
        return harmonized_values


def _group_labels(values: pd.Series) -> np.ndarray:
    """Return the group of each scan as text; missing ones are `_UNKNOWN`."""
    return group_names(values).fillna(_UNKNOWN).to_numpy(object)


def _slopes(step: Mapping, design: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the slopes of a fitted step as (n_columns, n_values), also from JSON."""
    return np.reshape(step["slope"], (design.shape[1], values.shape[1]))


def _covariate_columns(table: pd.DataFrame) -> list[str]:
    """Return the columns that are neither ids nor the label."""
    return [str(column) for column in table.columns if column not in KEY_COLUMNS]


def find_covariate_column(table: pd.DataFrame, name: str) -> str:
    """Return the covariate that a name means: itself, or the one of its kind.

    Raises
    ------
    ParameterError
        If no covariate, or more than one, is of that kind.
    """
    covariates = _covariate_columns(table)
    if name in covariates:
        return name
    candidates = [column for column in covariates if kind_of(column) == kind_of(name)]
    if not candidates:
        kind = acquisition_kind(name)
        candidates = [
            column for column in covariates if acquisition_kind(column) == kind
        ]
    if len(candidates) == 1:
        return candidates[0]
    raise ParameterError(
        f"the covariates have {'more than one' if candidates else 'no'} column "
        f"{name!r}; there are {', '.join(covariates) or 'none'}. Labels are no "
        "covariates; others go to the people's table or covariates."
    )


def learn_design(
    names: Sequence[str], table: pd.DataFrame
) -> dict[str, CovariateCoding]:
    """Return the mean, or the shares of groups, of each column as a `Design`."""
    design: dict[str, CovariateCoding] = {}
    for name in names:
        column = find_covariate_column(table, name)
        values = table[column]
        if values.notna().sum() == 0:
            raise ParameterError(
                f"the covariate {column!r} is missing in every training scan; leave it "
                "out."
            )
        if has_groups(column, values):
            groups = pd.Series(_group_labels(values.dropna()))
            shares = groups.value_counts(normalize=True).sort_index()
            design[column] = shares.to_dict()
        else:
            design[column] = float(pd.to_numeric(values).mean())
    return design


def apply_design(design: Design, table: pd.DataFrame) -> np.ndarray:
    """Return covariates as centred numbers (n_scans, n_columns); missing ones are 0.

    A covariate with groups has a column for each group but the first.
    """
    columns = []
    for name, coding in design.items():
        values = table[find_covariate_column(table, name)]
        _check_coding(name, values.dropna(), coding)
        if isinstance(coding, float):
            numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=float)
            columns.append(np.nan_to_num(numbers - coding, nan=0.0))
            continue
        groups = _group_labels(values)
        is_known = np.isin(groups, list(coding))
        unknown_groups = sorted({*groups[~is_known]} - {_UNKNOWN})
        if unknown_groups:
            warnings.warn(
                f"{name}: {', '.join(unknown_groups)} not among {', '.join(coding)} "
                "of the training; nothing is taken out.",
                stacklevel=3,
            )
        for group in list(coding)[1:]:
            dummy = (groups == group) - coding[group]
            columns.append(np.where(is_known, dummy, 0.0))
    return np.stack(columns, axis=1) if columns else np.zeros((len(table), 0))


def adjust_features(
    cohort: Cohort, steps: Deconfounder, reference: str | None = None
) -> tuple[np.ndarray, pd.DataFrame | None]:
    """Return features at the mean of the covariates taken out, by within-class slopes.

    Parameters
    ----------
    cohort : Cohort
    steps : Deconfounder
        Says which covariates are taken out; it need not be fitted.
    reference : str, optional
        Class from which the others differ; by default the first.

    Returns
    -------
    features : array of shape (n_scans, n_rois, n_features)
    factors : DataFrame or None
        By class: by how much the adjustment raises the variance of the class mean
        (mean_factor), and of its difference from the reference (difference_factor).
        None if nothing is taken out.
    """
    covariates = code_covariates(cohort, steps)
    if not covariates.shape[1]:
        return cohort.features, None
    values = cohort.features.astype(np.float64).reshape(cohort.n_scans, -1)
    class_dummies = pd.get_dummies(cohort.y)
    n_classes = class_dummies.shape[1]
    design = np.hstack([class_dummies.to_numpy(np.float64), covariates])
    slopes = least_squares(design, values, min_scans=design.shape[1] + 1)[n_classes:]
    adjusted = (values - covariates @ np.nan_to_num(slopes)).reshape(
        cohort.features.shape
    )
    people = pd.DataFrame(design).groupby([cohort.groups, cohort.y]).mean().to_numpy()
    reference_index = class_dummies.columns.get_loc(reference or cohort.classes[0])
    factors = _variance_factors(people, n_classes, reference_index)
    return adjusted, pd.DataFrame(factors, index=class_dummies.columns)


def code_covariates(cohort: Cohort, steps: Deconfounder) -> np.ndarray:
    """Return what the steps take out as centred numbers (n_scans, n_columns).

    The site of `harmonize` counts as a covariate: ComBat does not know the label, and
    also removes the part of a class difference that goes with the site. Within sites
    the difference is whole.
    """
    names = [*steps.regress_out]
    table = cohort.table
    if steps.harmonize:
        site_column = find_covariate_column(table, steps.harmonize)
        names.append(site_column)
        # Sites may be numbered: make them text, so that they count as groups.
        site_names = "site " + table[site_column].astype(str)
        table = table.assign(**{site_column: site_names})
    return apply_design(learn_design(names, table), table)


def _variance_factors(
    people: np.ndarray, n_classes: int, reference: int
) -> dict[str, np.ndarray]:
    """Return by how much covariates raise the variance of class means and differences.

    `people` is a design (n_people, n_columns) whose first columns are the classes.
    Without covariates the variance of a mean is 1 / n, that of a difference
    1 / n + 1 / n_reference.
    """
    n_people = people[:, :n_classes].sum(axis=0)
    covariance = np.linalg.pinv(people.T @ people)[:n_classes, :n_classes]
    variance = np.diag(covariance)
    difference_variance = variance + variance[reference] - 2 * covariance[reference]
    return {
        "mean_factor": variance * n_people,
        "difference_factor": difference_variance
        / (1 / n_people + 1 / n_people[reference]),
    }


def _check_coding(column: str, values: pd.Series, coding: CovariateCoding) -> None:
    """Raise if new values are coded otherwise, for example 1 and 2 for F and M."""
    is_number = pd.to_numeric(values, errors="coerce").notna()
    if isinstance(coding, float):
        expected = "numbers"
        is_other_coding = ~is_number
    else:
        learned_numbers = pd.to_numeric(pd.Series(list(coding)), errors="coerce")
        expected = " or ".join(coding)
        is_other_coding = is_number & learned_numbers.isna().all()
    if len(values) and is_other_coding.all():
        raise ParameterError(
            f"the covariate {column!r} was {expected} in training, got "
            f"{str(values.iloc[0])!r}. Write it in the same way."
        )


def least_squares(
    design: np.ndarray, values: np.ndarray, min_scans: int = 1
) -> np.ndarray:
    """Return slopes (n_columns, n_values), each from the scans that have the value.

    NaN if fewer than `min_scans` scans have it.
    """
    slopes = np.full((design.shape[1], values.shape[1]), np.nan)
    # Solve once for all values that the same scans have.
    for has_value, columns in missing_patterns(values):
        if has_value.sum() >= min_scans:
            block = values[np.ix_(has_value, columns)]
            slopes[:, columns] = np.linalg.lstsq(design[has_value], block, rcond=None)[
                0
            ]
    return slopes


def missing_patterns(values: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return columns that the same rows have: a mask of these rows, and the columns."""
    is_known = ~np.isnan(values)
    if is_known.all():
        return [(np.ones(len(values), dtype=bool), np.arange(values.shape[1]))]
    patterns, pattern_index = np.unique(is_known, axis=1, return_inverse=True)
    pattern_index = pattern_index.reshape(-1)
    return [
        (has_value, np.flatnonzero(pattern_index == index))
        for index, has_value in enumerate(patterns.T)
    ]


def _estimate_site_effects(
    z: np.ndarray, site_dummies: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return ComBat's gamma and delta (n_sites, n_values) of standardised values z.

    Values that vary too little at a site keep its gamma at 0 and its delta at 1.
    """
    shape = site_dummies.shape[1], z.shape[1]
    gamma = np.zeros(shape)
    delta = np.ones(shape)
    for site_index in range(len(gamma)):
        site_z = z[site_dummies[:, site_index] > 0]
        n_known = (~np.isnan(site_z)).sum(axis=0)
        estimable = np.flatnonzero(n_known >= MIN_PER_SITE)
        varies = np.nanvar(site_z[:, estimable], axis=0, ddof=1) > 0
        estimable = estimable[varies]
        if len(estimable):
            site_gamma, site_delta = _shrink_site_effects(site_z[:, estimable])
            gamma[site_index, estimable] = site_gamma
            delta[site_index, estimable] = site_delta
    return gamma, delta


def _shrink_site_effects(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior shift and variance of one site, of values that vary.

    Shifts have a normal prior, variances an inverse gamma prior, both with the moments
    of the site's estimates over all values (Johnson et al. 2007, section 3.2).
    """
    n = (~np.isnan(z)).sum(axis=0)
    gamma_hat = np.nanmean(z, axis=0)
    delta_hat = np.nanvar(z, axis=0, ddof=1)
    gamma, delta = gamma_hat, delta_hat
    if len(gamma) < 2 or gamma_hat.var() == 0 or delta_hat.var() == 0:
        return gamma, delta
    prior_mean = gamma_hat.mean()
    prior_variance = gamma_hat.var(ddof=1)
    m, s = delta_hat.mean(), delta_hat.var(ddof=1)
    prior_shape = (2 * s + m**2) / s
    prior_rate = (m * s + m**3) / s
    for _ in range(_MAX_ITERATIONS):
        previous_gamma, previous_delta = gamma, delta
        gamma = (prior_variance * n * gamma_hat + delta * prior_mean) / (
            prior_variance * n + delta
        )
        squares = np.nansum((z - gamma) ** 2, axis=0)
        delta = (0.5 * squares + prior_rate) / (n / 2 + prior_shape - 1)
        gamma_change = np.abs(gamma - previous_gamma).max()
        delta_change = np.abs(delta - previous_delta).max()
        if max(gamma_change, delta_change) < _MAX_CHANGE:
            break
    return gamma, delta


def _check_confound(table: pd.DataFrame, name: str) -> str:
    """Return the column that a name means; raise if it determines the label."""
    column = find_covariate_column(table, name)
    n_labels = table["label"].groupby(table[column].dropna().astype(str)).nunique()
    are_groups = 1 < len(n_labels) <= table["participant"].nunique() / 2
    if are_groups and table["label"].nunique() > 1 and n_labels.max() == 1:
        raise ParameterError(
            f"each value of {column} goes with one label only and would take out what "
            "is to be predicted. Drop it; the audit reports what it tells alone."
        )
    return column


def _check_values(table: pd.DataFrame, column: str) -> None:
    """Raise if a column is neither groups nor numbers, or spells a group in two ways.

    Warn of scans without a value.
    """
    faults = find_codes(table, [column])
    if has_groups(column, table[column]):
        faults += find_spellings(column, table[column])
    if faults:
        raise ParameterError(f"{'; '.join(map(str, faults))}.")
    values = table[column].dropna()
    n_missing = len(table) - len(values)
    if n_missing:
        warnings.warn(
            f"{n_missing} of {len(table)} scans have no {column}: the mean of the "
            "training stands for it.",
            stacklevel=4,
        )
    is_categorical = IS_CATEGORICAL.get(acquisition_kind(column), False)
    text = values[pd.to_numeric(values, errors="coerce").isna()].astype(str)
    are_codes = is_categorical or (text.empty and has_groups(column, values))
    if are_codes:
        text = group_names(values)
    n_kinds = text.nunique()
    n_people = table["participant"].nunique()
    n_numbers = values.drop(text.index).nunique()
    is_mixed = len(text) > 0 and n_numbers > MOST_GROUPS
    has_too_many_kinds = n_kinds > MOST_GROUPS and 2 * n_kinds > n_people
    if has_too_many_kinds and are_codes:
        raise ParameterError(
            f"the column {column} has {n_kinds} groups among {n_people} people, so "
            "that little but the people themselves would be taken out. Merge small "
            "groups, or leave it out."
        )
    if is_mixed or has_too_many_kinds:
        raise ParameterError(
            f"the column {column} holds text such as {text.iloc[0]!r}, neither numbers "
            "nor groups. Write numbers with a dot and no unit, n/a for unknown ones."
        )
