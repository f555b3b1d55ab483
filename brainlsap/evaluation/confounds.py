"""Site effects and confounds taken out of features, learned from training scans."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from brainlsap.arrays import as_number_array
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
from brainlsap.evaluation.results import plain
from brainlsap.exceptions import ParameterError, listed

_UNKNOWN = "n/a"

# What ComBat leaves in the features, where the cohort has it; never the label.
PRESERVED = ("age", "sex")

# Fewer have no spread; ComBat cannot know what their site does.
FEWEST = 2
# Text of more kinds is no groups, where there is a kind for every second person.
MOST_GROUPS = 5


@dataclass(eq=False, repr=False)
class Deconfounder(BaseEstimator):
    r"""ComBat, then a regression on confounds, as far as they are asked for.

    ComBat (Johnson et al. 2007, Biostatistics 8:118; Fortin et al. 2018, NeuroImage
    167:104) takes out what sites add to features and how much they spread them: value
    :math:`y = \alpha + x\beta + \gamma_{site} + \delta_{site}\varepsilon`, the
    sites' :math:`\gamma, \delta` shrunken by empirical Bayes over all values. Unlike
    the reference code it is learned from training scans and applied to others (scans
    of sites that were not learned are left as they are, with a warning), and values
    that are missing are left out by their pattern. The regression takes out of every
    feature what covariates explain of it linearly.

    Parameters
    ----------
    harmonize : str, optional
        Column, such as a site, for ComBat; age and sex are preserved where the table
        has them, never the label: test scans would then need it.
    regress_out : str or sequence of str
        Columns: groups or numbers, as :func:`brainlsap.data.covariates.has_groups`
        decides by name and values. A missing value counts as the mean of those learned
        from, or as no group.

    Attributes
    ----------
    sites_ : list of str
        Learned sites.
    combat_, confounds_ : dict or None
        What was learned for either step, by name.
    """

    harmonize: str | None = None
    regress_out: str | Sequence[str] = ()

    def __post_init__(self) -> None:
        names = self.regress_out
        self.regress_out = (names,) if isinstance(names, str) else tuple(names)

    def preserved(self, table: pd.DataFrame) -> tuple[str, ...]:
        """Return what ComBat leaves in the features."""
        kinds = set(map(kind_of, table)) if self.harmonize else ()
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
                f"harmonize={self.harmonize!r} must name groups, such as sites or "
                f"scanners, but {column} is a quantity. Take it out with regress_out=."
            )
        site = group_names(table[column])
        for name in self.preserved(table):
            _check_values(table, find_column(table, name))
        if site.isna().any():
            told = f"{site.isna().sum()} scans have no {self.harmonize}"
            raise ParameterError(f"{told}; give one, or leave them out.")
        for fold, (train, test) in enumerate(splits, start=1):
            tested = site.iloc[test]
            people = table["participant"].iloc[train]
            n_people = people.groupby(site).nunique()
            # where no test scan is of a known site, training alone would change
            held_out = len(tested) > 0 and not tested.isin(n_people.index).any()
            if held_out or len(n_people) < 2 or n_people.min() < FEWEST:
                told = listed(
                    (f"{name}: {n} people" for name, n in n_people.items()), 8
                )
                raise ParameterError(
                    f"harmonize={self.harmonize!r} cannot work in fold {fold}, whose "
                    f"training scans are of {told}; ComBat needs two sites and "
                    f"{FEWEST} people of each, and cannot know a site that is held "
                    "out: leave_out= goes without harmonize=. Else leave people out, "
                    "merge small sites, or take fewer folds by person."
                )

    def fit(self, features: np.ndarray, table: pd.DataFrame) -> "Deconfounder":
        """Learn every step from training scans, each from what the one before left."""
        self.combat_ = self.confounds_ = None
        values = np.asarray(as_number_array(features), dtype=np.float64)
        values = values.reshape(len(features), -1)
        if self.harmonize:
            self.combat_ = self._learn_combat(values, table)
            values = self._harmonize(values, table)
        if self.regress_out:
            design = learn_design(self.regress_out, table)
            C = np.hstack([np.ones((len(table), 1)), apply_design(design, table)])
            slope = np.nan_to_num(_regress(C, values, C.shape[1] + 1)[1:])
            self.confounds_ = {"design": design, "slope": slope}
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
        """Raise where new people lack covariates, or code sex in another way."""
        learned: dict[str, Any] = {}
        for step in (self.combat_, self.confounds_):
            learned |= step["design"] if step else {}
        heads = _covariates(table)
        kinds = {*map(kind_of, heads)}
        needed = dict.fromkeys([*filter(None, [self.harmonize]), *learned])
        if absent := [name for name in needed if kind_of(name) not in kinds]:
            raise ParameterError(
                f"the model needs {', '.join(absent)} of new people, who have "
                f"{', '.join(heads) or 'no covariates'}. Add what is missing to their "
                "table, or to covariates=."
            )
        for column, shares in learned.items():
            groups = {*_group_names(table[find_column(table, column)])} - {_UNKNOWN}
            if kind_of(column) == "sex" and not groups <= {*shares}:
                raise ParameterError(
                    f"{column} was {' or '.join(shares)} in training, got "
                    f"{', '.join(sorted(groups))}. Write it in the same way."
                )

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted steps as JSON takes them; they hold no scan."""
        return plain(vars(self))

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> "Deconfounder":
        """Return what :meth:`to_dict` kept."""
        found = cls()
        found.__dict__.update(kept)
        return found

    def _learn_combat(self, values: np.ndarray, table: pd.DataFrame) -> dict[str, Any]:
        site = _group_names(table[find_column(table, str(self.harmonize))])
        names, counts = np.unique(site, return_counts=True)
        self.sites_ = [str(name) for name in names[counts >= FEWEST]]
        place, n_sites = pd.Index(self.sites_).get_indexer(site), len(self.sites_)
        rows, preserved = place >= 0, learn_design(self.preserved(table), table)
        values, sites = values[rows], np.eye(n_sites)[place[rows]]
        design = apply_design(preserved, table)[rows]
        count = sites.T @ ~np.isnan(values)
        beta = _regress(np.hstack([sites, design]), values)
        of_site, slope = beta[:n_sites], beta[n_sites:]
        n_scans = np.maximum(count.sum(axis=0), 1)
        mean = (count * of_site).sum(axis=0) / n_scans
        z = values - mean - design @ slope
        left = z - sites @ (of_site - mean)
        sd = np.sqrt(np.nansum(left**2, axis=0) / n_scans)
        # what does not vary, or was measured at one site, stays as it is
        still = sd <= 1e-10 * np.maximum(np.abs(mean), 1e-300)
        still |= ((count >= FEWEST).sum(axis=0) < 2) | np.isnan(sd)
        z = np.where(still, np.nan, z) / np.where(still, 1, sd)
        gamma, delta = np.zeros_like(of_site), np.ones_like(of_site)
        for one in range(n_sites):
            mine = z[sites[:, one] > 0]
            told = np.flatnonzero((~np.isnan(mine)).sum(axis=0) >= FEWEST)
            told = told[np.nanvar(mine[:, told], axis=0, ddof=1) > 0]
            if len(told):
                gamma[one, told], delta[one, told] = _shrink(mine[:, told])
        return {
            "design": preserved,
            "mean": np.where(still, 0, mean),
            "slope": np.where(still, 0, slope),
            "deviation": np.where(still, 1, sd),
            "gamma": gamma,
            "delta": delta,
        }

    def _harmonize(self, values: np.ndarray, table: pd.DataFrame) -> np.ndarray:
        """Return values as if they were from one site; unknown sites as they are."""
        site = _group_names(table[find_column(table, str(self.harmonize))])
        place = pd.Index(self.sites_).get_indexer(site)
        known, values, learned = place >= 0, values.copy(), self.combat_ or {}
        if not known.all():
            names = ", ".join(sorted(set(site[~known])))
            told = f"{(~known).sum()} scans are of sites not learned ({names})"
            warnings.warn(f"{told}; they are left as they are.", stacklevel=3)
        design = apply_design(learned["design"], table[known])
        centre = np.array(learned["mean"]) + design @ _slopes(learned, design, values)
        deviation = np.array(learned["deviation"])
        gamma, delta = (np.array(learned[n])[place[known]] for n in ("gamma", "delta"))
        z = (values[known] - centre) / deviation - gamma
        values[known] = z / np.sqrt(delta) * deviation + centre
        return values


def _group_names(values: pd.Series) -> np.ndarray:
    """Return groups as text; what is missing is `_UNKNOWN`."""
    return group_names(values).fillna(_UNKNOWN).to_numpy(object)


def _slopes(learned: Mapping, design: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.reshape(learned["slope"], (design.shape[1], values.shape[1]))


def _covariates(table: pd.DataFrame) -> list[str]:
    return [str(one) for one in table.columns if one not in KEY_COLUMNS]


def find_column(table: pd.DataFrame, name: str) -> str:
    """Return the covariate of a table that is meant, whatever its case."""
    covariates = _covariates(table)
    if name in covariates:
        return name
    found = [one for one in covariates if kind_of(one) == kind_of(name)]
    if not found:
        kind = acquisition_kind(name)
        found = [column for column in covariates if acquisition_kind(column) == kind]
    if len(found) == 1:
        return found[0]
    raise ParameterError(
        f"the covariates have {'more than one' if found else 'no'} column {name!r}; "
        f"there are {', '.join(covariates) or 'none'}. Labels are no covariates; "
        "others go to the people's table or covariates."
    )


def learn_design(names: Sequence[str], table: pd.DataFrame) -> dict[str, Any]:
    """Return mean or shares of groups of every column, to code scans as numbers."""
    design: dict[str, Any] = {}
    for column in (find_column(table, name) for name in names):
        values = table[column]
        if values.notna().sum() == 0:
            told = f"the covariate {column!r} is missing in every training scan"
            raise ParameterError(f"{told}; leave it out.")
        if not has_groups(column, values):
            design[column] = float(pd.to_numeric(values).mean())
        else:
            known = pd.Series(_group_names(values.dropna()))
            shares = known.value_counts(normalize=True).sort_index()
            design[column] = shares.to_dict()
    return design


def apply_design(design: Mapping[str, Any], table: pd.DataFrame) -> np.ndarray:
    """Return scans as centred numbers (n_scans, n_columns); what is missing is 0."""
    parts = []
    for column, learned in design.items():
        values = table[find_column(table, column)]
        _check_coding(column, values.dropna(), learned)
        if isinstance(learned, float):
            numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=float)
            parts.append(np.nan_to_num(numbers - learned, nan=0.0))
            continue
        groups = _group_names(values)
        known = np.isin(groups, list(learned))
        if unknown := sorted({*groups[~known]} - {_UNKNOWN}):
            told = f"{column}: {', '.join(unknown)} not among {', '.join(learned)} of"
            warnings.warn(f"{told} the training; nothing is taken out.", stacklevel=3)
        parts += [
            np.where(known, (groups == name) - learned[name], 0.0)
            for name in list(learned)[1:]
        ]
    return np.stack(parts, axis=1) if parts else np.zeros((len(table), 0))


def adjust_features(
    cohort: Cohort, steps: Deconfounder
) -> tuple[np.ndarray, pd.DataFrame | None]:
    """Return features as at the mean of what is taken out, by slopes within classes.

    Then by class by how much that raises the variance of its mean, and of its
    difference from the first; None where nothing is taken out.
    """
    names, table = [*steps.regress_out], cohort.table
    if steps.harmonize:
        names.append(find_column(table, steps.harmonize))
        # sites may be numbered
        table = table.assign(**{names[-1]: "site " + table[names[-1]].astype(str)})
    if not names:
        return cohort.features, None
    values = cohort.features.astype(np.float64).reshape(cohort.n_scans, -1)
    dummies = pd.get_dummies(cohort.y)
    classes = dummies.to_numpy(np.float64)
    design = apply_design(learn_design(names, table), table)
    both = np.hstack([classes, design])
    slope = _regress(both, values, both.shape[1] + 1)[classes.shape[1] :]
    adjusted = (values - design @ np.nan_to_num(slope)).reshape(cohort.features.shape)
    people = pd.DataFrame(both).groupby([cohort.groups, cohort.y]).mean().to_numpy()
    n, n_classes = people[:, : classes.shape[1]].sum(axis=0), classes.shape[1]
    cov = np.linalg.pinv(people.T @ people)[:n_classes, :n_classes]
    own, first = np.diag(cov), dummies.columns.get_loc(cohort.classes[0])
    apart = own + own[first] - 2 * cov[first]
    raised = {
        "mean_factor": own * n,
        "difference_factor": apart / (1 / n + 1 / n[first]),
    }
    return adjusted, pd.DataFrame(raised, index=dummies.columns)


def _check_coding(column: str, given: pd.Series, learned: Any) -> None:
    """Refuse another coding: 1 and 2 for F and M would count as not known."""
    is_number = pd.to_numeric(given, errors="coerce").notna()
    if isinstance(learned, float):
        expected, is_other = "numbers", ~is_number
    else:
        worded = pd.to_numeric(pd.Series(list(learned)), errors="coerce").isna().all()
        expected, is_other = " or ".join(learned), is_number & worded
    if len(given) and is_other.all():
        raise ParameterError(
            f"the covariate {column!r} was {expected} in training, got "
            f"{str(given.iloc[0])!r}. Write it in the same way."
        )


def _regress(design: np.ndarray, values: np.ndarray, least: int = 1) -> np.ndarray:
    """Return slopes (n_columns, n_values), each from the scans that have the value.

    NaN where fewer than `least` scans have it.
    """
    slopes = np.full((design.shape[1], values.shape[1]), np.nan)
    patterns, which = np.unique(~np.isnan(values), axis=1, return_inverse=True)
    for number, rows in enumerate(patterns.T):
        alike = which.reshape(-1) == number
        if rows.sum() >= least:
            given = values[np.ix_(rows, alike)]
            slopes[:, alike] = np.linalg.lstsq(design[rows], given, rcond=None)[0]
    return slopes


def _shrink(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior shift and variance of one site, of values that vary."""
    n, gamma_hat = (~np.isnan(z)).sum(axis=0), np.nanmean(z, axis=0)
    delta_hat = np.nanvar(z, axis=0, ddof=1)
    gamma, delta = gamma_hat, delta_hat
    if len(gamma) < 2 or gamma_hat.var() == 0 or delta_hat.var() == 0:
        return gamma, delta
    centre, spread = gamma_hat.mean(), gamma_hat.var(ddof=1)
    m, s = delta_hat.mean(), delta_hat.var(ddof=1)
    a, b = (2 * s + m**2) / s, (m * s + m**3) / s
    for _ in range(1000):
        before = gamma, delta
        gamma = (spread * n * gamma_hat + delta * centre) / (spread * n + delta)
        squares = np.nansum((z - gamma) ** 2, axis=0)
        delta = (0.5 * squares + b) / (n / 2 + a - 1)
        moved = max(np.abs(gamma - before[0]).max(), np.abs(delta - before[1]).max())
        if moved < 1e-12:
            break
    return gamma, delta


def _check_confound(table: pd.DataFrame, name: str) -> str:
    """Return the column that is meant, unless it is all but the label."""
    column = find_column(table, name)
    n_labels = table["label"].groupby(table[column].dropna().astype(str)).nunique()
    groups = 1 < len(n_labels) <= table["participant"].nunique() / 2
    if groups and table["label"].nunique() > 1 and n_labels.max() == 1:
        raise ParameterError(
            f"each value of {column} goes with one label only and would take out what "
            "is to be predicted. Drop it; the audit reports what it tells alone."
        )
    return column


def _check_values(table: pd.DataFrame, column: str) -> None:
    """Raise for text that is neither groups nor numbers, and for words written twice.

    Warn of scans that have no value.
    """
    faults = find_codes(table, [column])
    if has_groups(column, table[column]):
        faults += find_spellings(column, table[column])
    if faults:
        raise ParameterError(f"{'; '.join(map(str, faults))}.")
    values = table[column].dropna()
    if n := len(table) - len(values):
        told = f"{n} of {len(table)} scans have no {column}: the mean of the training"
        warnings.warn(f"{told} stands for it.", stacklevel=4)
    is_named = IS_CATEGORICAL.get(acquisition_kind(column), False)
    text = values[pd.to_numeric(values, errors="coerce").isna()].astype(str)
    are_codes = is_named or (text.empty and has_groups(column, values))
    if are_codes:
        text = group_names(values)
    mixed = len(text) > 0 and values.drop(text.index).nunique() > MOST_GROUPS
    n_people, kinds = table["participant"].nunique(), text.nunique()
    is_name = kinds > MOST_GROUPS and 2 * kinds > n_people
    if is_name and are_codes:
        raise ParameterError(
            f"the column {column} has {kinds} groups among {n_people} people, so that "
            "little but the people themselves would be taken out. Merge small groups, "
            "or leave it out."
        )
    if mixed or is_name:
        raise ParameterError(
            f"the column {column} holds text such as {text.iloc[0]!r}, neither numbers "
            "nor groups. Write numbers with a dot and no unit, n/a for unknown ones."
        )
