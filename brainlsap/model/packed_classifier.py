"""What every classifier of packed scans shares: the answer, and what it takes."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class PackedClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of packed scans; says the class of highest probability.

    Examples
    --------
    >>> class Constant(PackedClassifier):
    ...     classes_ = np.array(["AD", "CN"])
    ...
    ...     def predict_proba(self, X):
    ...         return np.tile([0.2, 0.8], (len(X), 1))
    >>> Constant().predict(np.ones((1, 3, 4))).tolist()
    ['CN']
    """

    classes_: np.ndarray

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probability of every class, shape (n_scans, n_classes)."""
        raise NotImplementedError

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the class of highest probability.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
            With the regions and features of the fit.

        Returns
        -------
        array of shape (n_scans,)
            Members of `classes_`.
        """
        probability = self.predict_proba(X)  # first, so that an unfitted model says so
        return self.classes_[probability.argmax(1)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.allow_nan = True
        return tags
