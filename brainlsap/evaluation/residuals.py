"""Confounds regressed out of regional features, on the training scans' slopes."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

from brainlsap._arrays import features_of, pack, unpack
from brainlsap.evaluation.covariate_design import CovariateDesign, check_covariates


class ConfoundRegressor(TransformerMixin, BaseEstimator):
    r"""Take out of every feature what covariates tell of it, by a line.

    .. math:: \hat y_{iv} = y_{iv} - (x_i - \bar x)^T \beta_v

    with slopes :math:`\beta` and means of the training scans, so that units and means
    stay. What goes with the label and with the covariate alike is taken out too.
    Values that were not measured stay so and are not learned from; a covariate that
    is missing counts as the training mean. Connectomes are handed on unchanged.

    Parameters
    ----------
    columns : sequence of str
        Columns of the covariates, such as age, sex and etiv, in any case; text is
        taken for categories.

    Attributes
    ----------
    slope_ : array of shape (n_columns, n_rois * n_features)
        In the features' units per unit of the covariate.

    Examples
    --------
    >>> age = np.linspace(50, 80, 20)
    >>> X = np.zeros((20, 2, 3))
    >>> X[:, :, 2] = 3 - 0.01 * age[:, None]
    >>> table = pd.DataFrame({"age": age})
    >>> left = ConfoundRegressor(["age"]).fit(X, covariates=table)
    >>> left.transform(X, covariates=table)[:3, 0, 2].round(6)
    array([2.35, 2.35, 2.35])
    """

    def __init__(self, columns: Sequence[str] = ("age", "sex")) -> None:
        self.columns = columns

    def fit(
        self,
        X: np.ndarray,
        y: object = None,  # noqa: ARG002
        covariates: pd.DataFrame | None = None,
    ) -> "ConfoundRegressor":
        """Learn slopes from training scans; the label is not looked at.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
            NaN where a feature was not measured.
        y : object, optional
            Not looked at.
        covariates : DataFrame of n_scans rows
            With the columns.

        Returns
        -------
        ConfoundRegressor

        Raises
        ------
        ParameterError
            Where a column is missing.
        """
        features = features_of(np.asarray(X, dtype=np.float64))
        table = check_covariates(covariates, len(features), type(self).__name__)
        self.design_ = CovariateDesign.learn(tuple(self.columns), table)
        C = self.design_.apply(table)
        values = features.reshape(len(features), -1)
        self.slope_ = np.zeros((C.shape[1], values.shape[1]))
        patterns, which = np.unique(~np.isnan(values), axis=1, return_inverse=True)
        for number in range(patterns.shape[1]):
            rows = np.flatnonzero(patterns[:, number])
            columns = np.flatnonzero(which.reshape(-1) == number)
            if len(rows) > C.shape[1] + 1:
                whole = np.hstack([np.ones((len(rows), 1)), C[rows]])
                y_known = values[np.ix_(rows, columns)]
                found = np.linalg.lstsq(whole, y_known, rcond=None)[0]
                self.slope_[:, columns] = found[1:]
        return self

    def transform(
        self, X: np.ndarray, covariates: pd.DataFrame | None = None
    ) -> np.ndarray:
        """Return scans without what the covariates tell.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
            Any scans; each is changed by itself.
        covariates : DataFrame of n_scans rows
            With the columns.

        Returns
        -------
        array of the shape of `X`
            A copy.

        Raises
        ------
        ParameterError
            Where a column is missing.
        """
        features = features_of(np.asarray(X, dtype=np.float64))
        table = check_covariates(covariates, len(features), type(self).__name__)
        told = self.design_.apply(table) @ self.slope_
        features -= told.reshape(features.shape)
        return pack(unpack(np.asarray(X))[0], features)
