"""Trees on regional features: random forest and gradient boosting."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from brainlsap._arrays import check_choice
from brainlsap.evaluation.linear_inputs import RegionStandardizer


class TreeClassifier(ClassifierMixin, BaseEstimator):
    """Random forest or gradient boosting on regional features; never sees a network.

    Parameters
    ----------
    kind : {"forest", "boosting"}
        Scikit-learn's random forest, or its histogram gradient boosting.
    n_trees : int
        Trees, or rounds of boosting.
    random_state : int
        Seed.

    Attributes
    ----------
    classes_ : array of str
        Classes seen.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 3, 4))
    >>> y = np.where(X[:, 1, 3] > 0, "AD", "CN")
    >>> TreeClassifier(n_trees=20).fit(X, y).score(X, y)
    1.0
    """

    def __init__(
        self, kind: str = "forest", n_trees: int = 300, random_state: int = 0
    ) -> None:
        self.kind = kind
        self.n_trees = n_trees
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> "TreeClassifier":
        """Grow the trees.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
        y : array of str of shape (n_scans,)

        Returns
        -------
        TreeClassifier

        Raises
        ------
        ParameterError
            Where `kind` is unknown.
        """
        check_choice("kind", self.kind, ("boosting", "forest"))
        # codes: scikit-learn takes words such as "0" and "1" for numbers
        self.classes_, codes = np.unique(np.asarray(y).astype(str), return_inverse=True)
        self.standardizer_ = RegionStandardizer().fit(X)
        self.model_ = self._trees().fit(self.standardizer_.transform(X), codes)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probability of every class.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)

        Returns
        -------
        array of shape (n_scans, n_classes)
        """
        return self.model_.predict_proba(self.standardizer_.transform(X))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the class of highest probability.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)

        Returns
        -------
        array of str of shape (n_scans,)
        """
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _trees(self) -> Any:
        from sklearn.ensemble import (
            HistGradientBoostingClassifier,
            RandomForestClassifier,
        )

        if self.kind == "forest":
            return RandomForestClassifier(
                self.n_trees, class_weight="balanced", random_state=self.random_state
            )
        return HistGradientBoostingClassifier(
            max_iter=self.n_trees,
            class_weight="balanced",
            random_state=self.random_state,
        )
