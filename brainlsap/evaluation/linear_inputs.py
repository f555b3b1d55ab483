"""What linear models read of packed scans: regional features, or edges."""

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from brainlsap._arrays import (
    check_connectomes,
    features_of,
    root_mean_square,
    unpack,
)
from brainlsap._scratch import row_blocks

# Directions of less variance than this share of the largest are rounding.
_LEAST = 1e-10


class RegionStandardizer(TransformerMixin, BaseEstimator):
    """Centre and scale every feature of every region over the scans it is fitted on.

    Values that were not measured, and regions without spread, become 0: they tell
    nothing, rather than something huge.

    Attributes
    ----------
    mean_, sd_ : arrays of shape (n_rois * n_features,)
        Over the measured scans; `sd_` is infinite where there is no spread.

    Examples
    --------
    >>> X = np.zeros((2, 3, 4))
    >>> X[:, 0, 3], X[:, 1, 3] = [1, 3], np.nan
    >>> RegionStandardizer().fit_transform(X)
    array([[-1.,  0.,  0.],
           [ 1.,  0.,  0.]])
    """

    def fit(self, X: np.ndarray, y: object = None) -> "RegionStandardizer":  # noqa: ARG002
        """Learn mean and s.d. of every region from packed scans.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
        y : ignored

        Returns
        -------
        RegionStandardizer
        """
        return self.fit_values(self.read(X))

    @staticmethod
    def read(X: np.ndarray) -> np.ndarray:
        """Return the features of packed scans, shape (n_scans, n_rois * n_features)."""
        return features_of(np.asarray(X)).reshape(len(X), -1)

    def fit_values(self, values: np.ndarray) -> "RegionStandardizer":
        """Learn from what :meth:`read` returns.

        Parameters
        ----------
        values : array of shape (n_scans, n_rois * n_features)

        Returns
        -------
        RegionStandardizer
        """
        known = ~np.isnan(values)
        count = np.maximum(known.sum(axis=0), 1)
        self.mean_ = np.where(known, values, 0).sum(axis=0) / count
        centred = np.where(known, values - self.mean_, 0)
        spread = root_mean_square(centred, count)
        # Rounding leaves a constant region a spread of about 1e-16 of its value.
        flat = spread <= 1e-10 * np.maximum(np.abs(self.mean_), 1e-300)
        self.sd_ = np.where(flat, np.inf, spread)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return standardised features.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)

        Returns
        -------
        array of shape (n_scans, n_rois * n_features)
            Without NaN.
        """
        return self.transform_values(self.read(X))

    def transform_values(self, values: np.ndarray) -> np.ndarray:
        """Return standardised values, without NaN.

        Parameters
        ----------
        values : array of shape (n_scans, n_rois * n_features)
            From :meth:`read`.

        Returns
        -------
        array of shape (n_scans, n_rois * n_features)
        """
        return np.nan_to_num((values - self.mean_) / self.sd_, nan=0.0)


class EdgeComponents(TransformerMixin, BaseEstimator):
    """Standardise log edges over training scans, and rotate them to as few numbers.

    There are far more edges than scans. A linear model with a squared penalty never
    leaves the span of its training scans, so that rotating the edges onto that span
    changes nothing but its price.

    Attributes
    ----------
    mean_, sd_ : arrays of shape (n_edges,)
        Of log(1 + w) over the training scans; `sd_` is infinite without spread.
    rotation_ : array of shape (n_edges, n_components)
        Orthonormal columns; one column of zeros where no edge varies.

    Examples
    --------
    >>> X = np.random.default_rng(0).gamma(1.0, size=(6, 5, 6))
    >>> EdgeComponents().fit_transform(X).shape
    (6, 5)
    """

    def fit(self, X: np.ndarray, y: object = None) -> "EdgeComponents":  # noqa: ARG002
        """Learn standardisation and rotation from packed scans.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
        y : ignored

        Returns
        -------
        EdgeComponents
        """
        return self.fit_values(self.read(X))

    @staticmethod
    def read(X: np.ndarray) -> np.ndarray:
        """Return log(1 + w) of the edges of packed scans, (n_scans, n_edges)."""
        return log_edges(X)

    def fit_values(self, edges: np.ndarray) -> "EdgeComponents":
        """Learn from what :meth:`read` returns.

        Parameters
        ----------
        edges : array of shape (n_scans, n_edges)

        Returns
        -------
        EdgeComponents
        """
        self.mean_ = edges.mean(axis=0)
        spread = edges.std(axis=0)
        flat = spread <= 1e-10 * np.maximum(np.abs(self.mean_), 1e-300)
        self.sd_ = np.where(flat, np.inf, spread)
        Z = (edges - self.mean_) / self.sd_
        variance, U = np.linalg.eigh(Z @ Z.T)
        kept = variance > _LEAST * max(variance.max(), 1e-300)
        if not kept.any():
            self.rotation_ = np.zeros((Z.shape[1], 1))
            return self
        self.rotation_ = Z.T @ (U[:, kept] / np.sqrt(variance[kept]))
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return rotated edges.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)

        Returns
        -------
        array of shape (n_scans, n_components)
        """
        return self.transform_values(self.read(X))

    def transform_values(self, edges: np.ndarray) -> np.ndarray:
        """Return rotated edges.

        Parameters
        ----------
        edges : array of shape (n_scans, n_edges)
            From :meth:`read`.

        Returns
        -------
        array of shape (n_scans, n_components)
        """
        return ((edges - self.mean_) / self.sd_) @ self.rotation_


def log_edges(X: np.ndarray) -> np.ndarray:
    """Return log(1 + w) of every edge, counted once.

    Parameters
    ----------
    X : array of shape (n_scans, n_rois, n_rois + n_features)

    Returns
    -------
    array of shape (n_scans, n_rois * (n_rois - 1) / 2)
    """
    W, _ = unpack(np.asarray(X))
    row, column = np.triu_indices(W.shape[1], 1)
    edges = np.empty((len(W), len(row)))
    for part in row_blocks(X):
        check_connectomes(W[part], part.start)
        both = W[part][:, row, column] + W[part][:, column, row]
        edges[part] = np.log1p(both / 2)
    return edges
