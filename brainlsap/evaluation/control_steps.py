"""Controls that tell where a score comes from: covariates alone, edges moved, labels.

Each is a step ahead of a classifier, or around one, so that it runs through the very
same folds as the model it is a control for.
"""

import hashlib
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone

from brainlsap._arrays import check_connectomes, check_features, pack, unpack
from brainlsap.evaluation.fitting import fit_parameters
from brainlsap.evaluation.permutation import permute_labels
from brainlsap.exceptions import ParameterError

# A column of words with more values than this names people rather than groups.
_MOST_LEVELS = 50


class ShuffledEdges(TransformerMixin, BaseEstimator):
    """Move every edge of a network to another pair of regions, at random.

    Weights and density of each network stay, where edges run does not. The order is
    drawn from the seed and the network itself: the same network is always shuffled in
    the same way, also where it is shared by everybody.

    Parameters
    ----------
    random_state : int
        Seed.

    Examples
    --------
    >>> X = np.random.default_rng(0).gamma(1.0, size=(2, 4, 5))
    >>> moved = ShuffledEdges().fit_transform(X)
    >>> bool((moved[:, :, 4:] == X[:, :, 4:]).all())
    True
    """

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: object = None) -> "ShuffledEdges":  # noqa: ARG002
        """Learn nothing.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
            Packed scans.
        y : object, optional
            Not looked at.

        Returns
        -------
        ShuffledEdges
            The same object.
        """
        self.n_rois_ = np.asarray(X).shape[1]
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return scans with shuffled networks, their features as they are.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
            Packed scans.

        Returns
        -------
        array of shape (n_scans, n_rois, n_rois + n_features)
        """
        connectomes, features = unpack(np.asarray(X, dtype=np.float64))
        check_connectomes(connectomes)
        check_features(features)
        return pack(np.stack([self._shuffle(one) for one in connectomes]), features)

    def _shuffle(self, W: np.ndarray) -> np.ndarray:
        symmetric = np.ascontiguousarray((W + W.T) / 2)
        digest = hashlib.blake2b(symmetric.tobytes(), digest_size=8).digest()
        seeds = [self.random_state, int.from_bytes(digest, "little")]
        row, column = np.triu_indices(len(W), 1)
        order = np.random.default_rng(seeds).permutation(len(row))
        moved = np.zeros_like(symmetric)
        moved[row, column] = symmetric[row, column][order]
        return moved + moved.T


class CovariatesAsFeatures(TransformerMixin, BaseEstimator):
    """Put covariates in the place of brain data: what can be told without a brain.

    Total streamlines and density of each network are always among them; the columns
    of the cohort's table (numbers, and words as one column a level) are added where
    they are given, as :func:`brainlsap.evaluation.cross_validate` does. A column that
    is another name of the label is left out.

    Attributes
    ----------
    columns_ : dict of str to (tuple of str, or None)
        Columns used, with their levels; None for numbers.

    Examples
    --------
    >>> X = np.random.default_rng(0).gamma(1.0, size=(4, 3, 5))
    >>> CovariatesAsFeatures().fit_transform(X).shape
    (4, 3, 5)
    """

    def fit(
        self,
        X: np.ndarray,
        y: np.ndarray | None = None,
        covariates: pd.DataFrame | None = None,
    ) -> "CovariatesAsFeatures":
        """Learn which columns there are, and their levels.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
            Packed scans.
        y : array of shape (n_scans,), optional
            Class of every scan.
        covariates : DataFrame of n_scans rows, optional
            Columns to use.

        Returns
        -------
        CovariatesAsFeatures
        """
        del X
        self.columns_: dict[str, tuple[str, ...] | None] = {}
        table = pd.DataFrame() if covariates is None else covariates
        for name in table.columns:
            values = table[name]
            if name in _KEYS or (y is not None and _renames(values, y)):
                continue
            numbers = pd.to_numeric(values, errors="coerce")
            if numbers.notna().sum() == values.notna().sum():
                self.columns_[name] = None
            elif 1 < values.nunique() <= _MOST_LEVELS:
                levels = sorted(values.dropna().astype(str).unique())
                self.columns_[name] = tuple(levels)
        return self

    def transform(
        self, X: np.ndarray, covariates: pd.DataFrame | None = None
    ) -> np.ndarray:
        """Return packed scans without a network, the covariates at the first region.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
            Packed scans.
        covariates : DataFrame of n_scans rows, optional
            With the columns of the fit.

        Returns
        -------
        array of shape (n_scans, n_rois, n_rois + n_covariates)
            NaN at all other regions.

        Raises
        ------
        ParameterError
            Where the fit had covariates that are not given here.
        """
        table = pd.DataFrame() if covariates is None else covariates
        absent = [name for name in self.columns_ if name not in table.columns]
        if absent:
            raise ParameterError(
                f"covariates must hold the columns of the fit; {absent[0]!r} is "
                "missing. cross_validate hands them on."
            )
        connectomes, _ = unpack(np.asarray(X, dtype=np.float64))
        check_connectomes(connectomes)
        row, column = np.triu_indices(connectomes.shape[1], 1)
        edges = connectomes[:, row, column]
        told = [edges.sum(axis=1), (edges > 0).mean(axis=1)]
        for name, levels in self.columns_.items():
            told += _numbers(table[name], levels)
        features = np.full((*connectomes.shape[:2], len(told)), np.nan)
        features[:, 0] = np.stack(told, axis=1)
        return pack(np.zeros_like(connectomes), features)


class PermutedLabels(ClassifierMixin, BaseEstimator):
    """Fit a model to labels that were moved between people; it must then know nothing.

    All visits of a person move together, and each fold draws anew. One draw can lie
    far from chance on either side where few people differ in one strong way;
    :func:`brainlsap.evaluation.permutation_test` makes as many as asked.

    Parameters
    ----------
    model : classifier
        Fitted to the permuted labels.
    random_state : int
        Seed of the permutation.

    Attributes
    ----------
    model_ : classifier
        The fitted clone.
    classes_ : array of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> X, y = np.ones((4, 3, 4)), np.array(["AD", "CN", "CN", "CN"])
    >>> PermutedLabels(DummyClassifier()).fit(X, y, groups=y).classes_.tolist()
    ['AD', 'CN']
    """

    def __init__(self, model: Any, random_state: int = 0) -> None:
        self.model = model
        self.random_state = random_state

    def fit(
        self, X: np.ndarray, y: np.ndarray, groups: np.ndarray | None = None
    ) -> "PermutedLabels":
        """Permute labels between people, then fit.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
            Packed scans.
        y : array of shape (n_scans,)
            Class of every scan.
        groups : array of shape (n_scans,), optional
            Participant of every scan; without it every scan is a person.

        Returns
        -------
        PermutedLabels
        """
        groups = np.arange(len(y)) if groups is None else np.asarray(groups)
        # the training people are part of the seed: folds then draw independently
        names = "|".join(groups.astype(str)).encode()
        digest = hashlib.blake2b(names, digest_size=8).digest()
        seeds = [self.random_state, int.from_bytes(digest, "little")]
        rng = np.random.default_rng(seeds)
        moved = permute_labels(np.asarray(y), groups, rng).astype(str)
        model = clone(self.model)
        self.model_ = model.fit(X, moved, **fit_parameters(model, groups))
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probabilities of the model inside.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
            Packed scans.

        Returns
        -------
        array of shape (n_scans, n_classes)
        """
        return self.model_.predict_proba(X)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the class of highest probability.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
            Packed scans.

        Returns
        -------
        array of shape (n_scans,)
        """
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


_KEYS = ("scan", "participant", "session", "label")


def _renames(values: pd.Series, y: np.ndarray) -> bool:
    """Say whether a column and the label are functions of each other."""
    pairs = pd.DataFrame({"value": values.astype(str).to_numpy(), "label": list(y)})
    n_pairs = len(pairs.drop_duplicates())
    return n_pairs == pairs["value"].nunique() == pairs["label"].nunique()


def _numbers(values: pd.Series, levels: tuple[str, ...] | None) -> list[np.ndarray]:
    if levels is None:
        return [pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64)]
    text = values.astype(str).to_numpy()
    return [(text == level).astype(np.float64) for level in levels]
