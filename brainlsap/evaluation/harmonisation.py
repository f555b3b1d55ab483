"""ComBat: what sites or scanners add to regional features is taken out.

Written from Johnson, Li and Rabinovic (2007, Biostatistics 8:118) and Fortin et al.
(2018, NeuroImage 167:104); the parametric empirical Bayes form.
"""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

from brainlsap._arrays import (
    check_choice,
    features_of,
    pack,
    unpack,
)
from brainlsap.evaluation.covariate_design import (
    CovariateDesign,
    check_covariates,
    find_column,
)
from brainlsap.exceptions import ParameterError

# A site with fewer scans has no spread of its own.
FEWEST_SCANS = 2


class CombatHarmonizer(TransformerMixin, BaseEstimator):
    r"""Take out what sites add to features and how much they spread them.

    A feature v of scan i at site j is modelled as

    .. math:: y_{ijv} = \alpha_v + x_{ij}^T \beta_v + \gamma_{jv}
              + \delta_{jv} \varepsilon_{ijv}

    with x the covariates to preserve. The site's :math:`\gamma` and :math:`\delta^2`
    are shrunk towards what the site does to features on average. Everything is
    learned in `fit`; in `transform` a scan is changed by its site and its covariates
    alone, and neither step looks at the label: an effect of the disease that goes
    with the site is taken out too, and cannot be told from one of the site.

    Scans of sites that were not seen in training, or with fewer than two scans of a
    feature there, are left as they are (`unseen="keep"`, with a warning) or refused
    (`unseen="error"`). Values that were not measured stay so and are not learned
    from; a feature that does not vary is left alone. A covariate that is missing
    counts as the mean of training. All visits of a person count, each as a scan.
    Connectomes are handed on unchanged.

    Parameters
    ----------
    site : str
        Column of the covariates that holds the site, scanner or phase.
    preserve : sequence of str
        Columns whose effects are kept, such as age and sex.
    unseen : {"keep", "error"}
        What happens to scans of sites that were not seen.

    Attributes
    ----------
    sites_ : tuple of str
        Sites that are corrected for.
    gamma_, delta_ : arrays of shape (n_sites, n_rois * n_features)
        Shrunken shift and variance, in units of the pooled deviation.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 3, 5))
    >>> table = pd.DataFrame({"site": ["a", "b"] * 20})
    >>> X[1::2, :, 3:] += 4
    >>> Z = CombatHarmonizer().fit(X, covariates=table).transform(X, covariates=table)
    >>> bool(abs(Z[1::2, :, 3:].mean() - Z[::2, :, 3:].mean()) < 0.2)
    True
    """

    def __init__(
        self, site: str = "site", preserve: Sequence[str] = (), unseen: str = "keep"
    ) -> None:
        self.site = site
        self.preserve = preserve
        self.unseen = unseen

    def fit(
        self,
        X: np.ndarray,
        y: object = None,  # noqa: ARG002
        covariates: pd.DataFrame | None = None,
    ) -> "CombatHarmonizer":
        """Learn what sites do, from training scans.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
            NaN where a feature was not measured.
        y : object, optional
            Not looked at.
        covariates : DataFrame of n_scans rows
            With the columns `site` and `preserve`.

        Returns
        -------
        CombatHarmonizer

        Raises
        ------
        ParameterError
            Where a column is missing, a scan has no site, or fewer than two sites
            have enough scans.
        """
        check_choice("unseen", self.unseen, ("keep", "error"))
        values = _flat(X)
        table = check_covariates(covariates, len(values), type(self).__name__)
        site = self._site_of(table)
        names, counts = np.unique(site, return_counts=True)
        self.sites_ = tuple(map(str, names[counts >= FEWEST_SCANS]))
        if len(self.sites_) < 2:
            raise ParameterError(
                f"{self.site} must have at least two values with {FEWEST_SCANS} scans "
                f"each in training, got {len(self.sites_)}; there is nothing to "
                "harmonise."
            )
        self.design_ = CovariateDesign.learn(tuple(self.preserve), table)
        place = np.array([self._place(one) for one in site])
        kept = place >= 0
        fitted = _fit(
            values[kept],
            place[kept],
            self.design_.apply(table.iloc[kept]),
            len(self.sites_),
        )
        self.mean_, self.slope_, self.deviation_ = fitted[:3]
        self.gamma_, self.delta_ = fitted[3:]
        return self

    def transform(
        self, X: np.ndarray, covariates: pd.DataFrame | None = None
    ) -> np.ndarray:
        """Return scans as if they were from one site.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
            Any scans; each is changed by itself.
        covariates : DataFrame of n_scans rows
            With the columns `site` and `preserve`.

        Returns
        -------
        array of the shape of `X`
            A copy.

        Raises
        ------
        ParameterError
            Where a site was not seen and `unseen` is "error".
        """
        values = _flat(X)
        table = check_covariates(covariates, len(values), type(self).__name__)
        place = np.array([self._place(one) for one in self._site_of(table)], dtype=int)
        self._tell_unseen(table, place)
        known = np.flatnonzero(place >= 0)
        centre = self.mean_ + self.design_.apply(table.iloc[known]) @ self.slope_
        site = place[known]
        z = (values[known] - centre) / self.deviation_ - self.gamma_[site]
        values[known] = z / np.sqrt(self.delta_[site]) * self.deviation_ + centre
        connectomes, features = unpack(np.asarray(X))
        return pack(connectomes, values.reshape(features.shape))

    def _site_of(self, table: pd.DataFrame) -> np.ndarray:
        column = table[find_column(table, self.site)]
        missing = int(column.isna().sum())
        if missing:
            raise ParameterError(
                f"{missing} scans have no {self.site}; give one, or leave them out."
            )
        return column.astype(str).to_numpy()

    def _place(self, site: str) -> int:
        return self.sites_.index(site) if site in self.sites_ else -1

    def _tell_unseen(self, table: pd.DataFrame, place: np.ndarray) -> None:
        count = int((place < 0).sum())
        if not count:
            return
        names = sorted(set(self._site_of(table)[place < 0]))
        told = f"{count} scans are of sites that were not learned ({', '.join(names)})"
        if self.unseen == "error":
            raise ParameterError(f'{told}; unseen="keep" leaves them as they are.')
        warnings.warn(f"{told}; they are left as they are.", UserWarning, stacklevel=3)


class _Fitted(NamedTuple):
    """Arrays over values: mean, slope (n_columns first), deviation; two by site."""

    mean: np.ndarray
    slope: np.ndarray
    deviation: np.ndarray
    gamma: np.ndarray
    delta: np.ndarray


def _flat(X: np.ndarray) -> np.ndarray:
    """Return a copy of the features (n_scans, n_rois * n_features)."""
    features = features_of(np.asarray(X, dtype=np.float64))
    return features.reshape(len(features), -1)


def _fit(
    values: np.ndarray, place: np.ndarray, design: np.ndarray, n_sites: int
) -> _Fitted:
    """Fit scans (n_scans, n_values) of known sites, design (n_scans, n_columns)."""
    mean, slope, deviation, z = _standardise(values, place, design, n_sites)
    shape = (n_sites, values.shape[1])
    gamma, delta = np.zeros(shape), np.ones(shape)
    for site in range(n_sites):
        mine = z[place == site]
        n = (~np.isnan(mine)).sum(axis=0)
        told = np.flatnonzero(n >= FEWEST_SCANS)
        spread = np.nanvar(mine[:, told], axis=0, ddof=1)
        told = told[spread > 0]
        if len(told):
            shrunken = _shrink(mine[:, told], spread[spread > 0], n[told])
            gamma[site, told], delta[site, told] = shrunken
    return _Fitted(mean, slope, deviation, gamma, delta)


def _standardise(
    values: np.ndarray, place: np.ndarray, design: np.ndarray, n_sites: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return mean, slope and deviation of every value, and what is left of each scan.

    Values that the same scans have are fitted together; NaN is left of those that do
    not vary, or that fewer than two sites have.
    """
    n_values = values.shape[1]
    mean, deviation = np.zeros(n_values), np.ones(n_values)
    slope, z = np.zeros((design.shape[1], n_values)), np.full_like(values, np.nan)
    patterns, which = np.unique(~np.isnan(values), axis=1, return_inverse=True)
    for number in range(patterns.shape[1]):
        rows = np.flatnonzero(patterns[:, number])
        columns = np.flatnonzero(which.reshape(-1) == number)
        count = np.bincount(place[rows], minlength=n_sites)
        if (count >= FEWEST_SCANS).sum() < 2:
            continue
        whole = np.hstack([np.eye(n_sites)[place[rows]], design[rows]])
        y = values[np.ix_(rows, columns)]
        beta = np.linalg.lstsq(whole, y, rcond=None)[0]
        middle = count @ beta[:n_sites] / len(rows)
        sd = np.sqrt(((y - whole @ beta) ** 2).mean(axis=0))
        sd[sd <= 1e-10 * np.maximum(np.abs(middle), 1e-300)] = np.nan
        mean[columns], slope[:, columns] = middle, beta[n_sites:]
        deviation[columns] = np.where(np.isnan(sd), 1.0, sd)
        left = y - middle - design[rows] @ beta[n_sites:]
        z[np.ix_(rows, columns)] = left / sd
    return mean, slope, deviation, z


def _shrink(
    z: np.ndarray, delta_hat: np.ndarray, n: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior shift and variance of one site, of values that vary."""
    gamma_hat = np.nanmean(z, axis=0)
    centre, spread = gamma_hat.mean(), _variance(gamma_hat)
    m, s = delta_hat.mean(), _variance(delta_hat)
    if len(gamma_hat) < 2 or spread == 0 or s == 0:
        return gamma_hat, delta_hat  # one value by itself has nothing to borrow from
    a, b = (2 * s + m**2) / s, (m * s + m**3) / s
    gamma, delta = gamma_hat, delta_hat
    for _ in range(1000):
        before = gamma, delta
        gamma = (spread * n * gamma_hat + delta * centre) / (spread * n + delta)
        squares = np.nansum((z - gamma) ** 2, axis=0)
        delta = (0.5 * squares + b) / (n / 2 + a - 1)
        moved = max(np.abs(gamma - before[0]).max(), np.abs(delta - before[1]).max())
        if moved < 1e-12:
            break
    return gamma, delta


def _variance(values: np.ndarray) -> float:
    return float(values.var(ddof=1)) if len(values) > 1 else 0.0
