"""Controls that need the graph: diffuse at one tuned scale, then a linear model."""

from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from brainlsap.graph import LearnedPreparation
from brainlsap.model.connectome_inputs import learn_preparation
from brainlsap.model.inputs import (
    InputScaler,
    check_groups,
    check_labels,
    check_packed,
    make_batch,
)
from brainlsap.model.settings import Settings, settle_kernel

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# Of signals in standard deviations.
_ROUNDING = 1e-12


class DiffusedLogisticRegression(ClassifierMixin, BaseEstimator):
    """Diffuse every region's features at one scale, then logistic regression.

    Cheap and strong: a learned scale for every region must beat it to be worth its
    name. Scale and penalty are tuned together, by balanced accuracy on inner folds
    that keep people whole; features are standardised per region before and after
    diffusion, inside each fold.

    Parameters
    ----------
    scales : sequence of float
        Candidates; 0 leaves the features as they are.
    n_inner_folds : int
        Inner folds for tuning.
    threshold : float
        Edges below it are dropped, in the connectome's unit.
    weights : {"weighted", "log", "binary"}
        What becomes of the edges that stay.
    preparation : dict, optional
        Further options of :class:`brainlsap.graph.Preparation`.
    random_state : int
        Seed of the inner folds.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    scale_, C_ : float
        Chosen scale, and inverse penalty of the logistic regression.
    fit_report_ : dict
        The choice, as plain numbers.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(1.0, size=(40, 5, 6))
    >>> y = np.where(np.arange(40) % 2, "AD", "CN")
    >>> X[y == "AD", 2, 5] += 3
    >>> model = DiffusedLogisticRegression().fit(X, y, groups=np.arange(40))
    >>> model.predict(X[:2]).tolist()
    ['CN', 'AD']
    """

    def __init__(
        self,
        scales: tuple[float, ...] = (0.0, 0.5, 1.0, 2.0, 4.0),
        *,
        n_inner_folds: int = 3,
        threshold: float = 0.0,
        weights: str = "weighted",
        preparation: dict[str, Any] | None = None,
        random_state: int | None = None,
    ) -> None:
        self.scales = scales
        self.n_inner_folds = n_inner_folds
        self.threshold = threshold
        self.weights = weights
        self.preparation = preparation
        self.random_state = random_state

    def fit(
        self, X: np.ndarray, y: np.ndarray, groups: np.ndarray | None = None
    ) -> "DiffusedLogisticRegression":
        """Tune scale and penalty, then fit on all scans.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
            From :meth:`brainlsap.data.Cohort.to_array`.
        y : array of shape (n_scans,)
            Class of every scan.
        groups : array of shape (n_scans,), optional
            Participant of every scan.

        Returns
        -------
        DiffusedLogisticRegression

        Raises
        ------
        ParameterError
            For arrays that cannot be used, or a single class.
        """
        connectomes, features = check_packed(X)
        self.classes_, codes = check_labels(y, len(features))
        y = self.classes_[codes]
        self.settings_ = settle_kernel(
            Settings(
                initial_scale=0.0,
                max_scale=max(*self.scales, 1e-6),
                threshold=self.threshold,
                weights=self.weights,
                preparation=self.preparation,
            )
        )
        people = np.arange(len(y))
        if groups is not None:
            people = check_groups(groups, len(y), self.settings_)
        best = max(
            self._tune(connectomes, features, y, people),
            # between equals the smaller scale, then the stronger penalty
            key=lambda one: (round(one[0], 9), -one[1], -one[2]),
        )
        self.scale_, self.C_ = best[1], best[2]
        self.scaler_ = InputScaler.learn(features, "region")
        scaled = self.scaler_.apply(features)
        learned = learn_preparation(connectomes, features, people, self.settings_)
        self.preparation_ = learned.to_dict()
        diffused = self._diffused(connectomes, scaled, learned)[self.scale_]
        self.after_ = InputScaler.learn(diffused, "region")
        self.model_ = self._linear(self.C_)
        self.model_.fit(self._flat(self.after_.apply(diffused)), y)
        self.fit_report_ = {
            "scale": self.scale_,
            "C": self.C_,
            "inner_balanced_accuracy": best[0],
        }
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probability of every class.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
            With the regions and features of the fit.

        Returns
        -------
        array of shape (n_scans, n_classes)
        """
        check_is_fitted(self, "model_")
        connectomes, features = check_packed(X)
        scaled = self.scaler_.apply(features)
        learned = LearnedPreparation.from_dict(self.preparation_)
        diffused = self._diffused(connectomes, scaled, learned)[self.scale_]
        return self.model_.predict_proba(self._flat(self.after_.apply(diffused)))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the class of highest probability.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
            With the regions and features of the fit.

        Returns
        -------
        array of shape (n_scans,)
        """
        probability = self.predict_proba(X)  # first, so that an unfitted model says so
        return self.classes_[probability.argmax(1)]

    def _tune(
        self,
        connectomes: np.ndarray,
        features: np.ndarray,
        y: np.ndarray,
        people: np.ndarray,
    ) -> list[tuple[float, float, float]]:
        """Return (score, scale, C) of every candidate."""
        from sklearn.metrics import balanced_accuracy_score
        from sklearn.model_selection import StratifiedGroupKFold

        rarest = min(len(set(people[y == one])) for one in self.classes_)
        if rarest < 2:
            return [(float("nan"), float(self.scales[0]), 0.01)]
        dealer = StratifiedGroupKFold(
            min(self.n_inner_folds, rarest),
            shuffle=True,
            random_state=self.random_state or 0,
        )
        scores: dict[tuple[float, float], list[float]] = {}
        for learn, watch in dealer.split(features[:, :, 0], y, people):
            before = InputScaler.learn(features[learn], "region")
            prepared = learn_preparation(
                connectomes[learn], features[learn], people[learn], self.settings_
            )
            each = self._diffused(connectomes, before.apply(features), prepared)
            for scale, diffused in each.items():
                after = InputScaler.learn(diffused[learn], "region")
                Z = self._flat(after.apply(diffused))
                model = self._linear(PENALTIES[0])
                for C in PENALTIES:
                    model.set_params(C=C).fit(Z[learn], y[learn])
                    score = balanced_accuracy_score(y[watch], model.predict(Z[watch]))
                    scores.setdefault((scale, C), []).append(score)
        return [(float(np.mean(found)), *key) for key, found in scores.items()]

    def _diffused(
        self, connectomes: np.ndarray, scaled: np.ndarray, learned: LearnedPreparation
    ) -> dict[float, np.ndarray]:
        device = torch.device("cpu")
        batch = make_batch(
            connectomes, scaled, self.settings_, device, torch.float64, learned
        )
        n_rois = scaled.shape[1]
        found = {}
        for scale in map(float, self.scales):
            same = torch.full((n_rois,), scale, dtype=torch.float64)
            signals = batch.diffuse(same).numpy()
            # rounding in a region that heat does not reach is no signal: scaled to
            # unit spread it would be one
            found[scale] = np.where(np.abs(signals) < _ROUNDING, 0.0, signals)
        return found

    @staticmethod
    def _flat(Z: np.ndarray) -> np.ndarray:
        return Z.reshape(len(Z), -1)

    @staticmethod
    def _linear(C: float) -> Any:
        from sklearn.linear_model import LogisticRegression

        # along the grid every fit starts from the one before
        return LogisticRegression(
            C=C, class_weight="balanced", max_iter=2000, warm_start=True
        )
