"""Linear control that needs the graph: diffuse at one tuned scale, then regress."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from brainlsap.graph import Preparation
from brainlsap.model.inputs import (
    InputScaler,
    PackedClassifier,
    check_groups,
    check_packed,
    make_batch,
    order_labels,
    threads,
)
from brainlsap.model.settings import Settings, settle_kernel

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# Of signals in standard deviations.
_ROUNDING = 1e-12


class DiffusedLogisticRegression(PackedClassifier):
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
    random_state : int, optional
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
        self.scales, self.n_inner_folds = scales, n_inner_folds
        self.threshold, self.weights = threshold, weights
        self.preparation, self.random_state = preparation, random_state

    # one BLAS thread: the same bytes whatever their number
    @threadpool_limits.wrap(limits=1)
    def fit(
        self, X: np.ndarray, y: np.ndarray, groups: np.ndarray | None = None
    ) -> "DiffusedLogisticRegression":
        """Tune scale and penalty, then fit on all scans; as `LSAPClassifier.fit`."""
        connectomes, features = check_packed(X)
        self.classes_, codes = order_labels(y, len(features))
        y, people = self.classes_[codes], check_groups(groups, len(features), None)
        names = ("threshold", "weights", "preparation")
        given: dict[str, Any] = {name: getattr(self, name) for name in names}
        given |= {"initial_scale": 0.0, "max_scale": max(*self.scales, 1e-6)}
        self.settings_ = settle_kernel(Settings(**given))
        self.n_rois_, self.n_features_ = features.shape[1:]
        tried = self._tune(connectomes, features, y, people)
        # between equals the smaller scale, then the stronger penalty
        score, self.scale_, self.C_ = max(
            tried, key=lambda one: (round(one[0], 9), -one[1], -one[2])
        )
        self.inputs_ = self._learn(connectomes, features, people)
        found = self._diffused(connectomes, features, self.inputs_, [self.scale_])
        diffused = found[self.scale_]
        self.after_ = InputScaler.learn(diffused)
        self.model_ = _linear(self.C_).fit(_flat(self.after_.apply(diffused)), y)
        self.fit_report_ = {"scale": self.scale_, "C": self.C_}
        self.fit_report_ |= {"inner_balanced_accuracy": score}
        return self

    @threadpool_limits.wrap(limits=1)
    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probability of every class, shape (n_scans, n_classes)."""
        check_is_fitted(self, "model_")
        connectomes, features = check_packed(X, (self.n_rois_, self.n_features_))
        found = self._diffused(connectomes, features, self.inputs_, [self.scale_])
        return self.model_.predict_proba(_flat(self.after_.apply(found[self.scale_])))

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
        n_folds, seed = min(self.n_inner_folds, rarest), self.random_state or 0
        splitter = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
        scores: dict[tuple[float, float], list[float]] = {}
        for learn, watch in splitter.split(features[:, :, 0], y, people):
            inputs = self._learn(connectomes[learn], features[learn], people[learn])
            each = self._diffused(connectomes, features, inputs, self.scales)
            for scale, diffused in each.items():
                Z = _flat(InputScaler.learn(diffused[learn]).apply(diffused))
                model = _linear(PENALTIES[0])
                for C in PENALTIES:
                    model.set_params(C=C).fit(Z[learn], y[learn])
                    score = balanced_accuracy_score(y[watch], model.predict(Z[watch]))
                    scores.setdefault((scale, C), []).append(score)
        return [(float(np.mean(found)), *key) for key, found in scores.items()]

    def _learn(self, *training: np.ndarray) -> tuple[InputScaler, Preparation]:
        """Return what connectomes, features and people of a training fold teach."""
        preparing = self.settings_.preparing()
        return InputScaler.learn(training[1]), preparing.learn(*training)

    def _diffused(
        self,
        connectomes: np.ndarray,
        features: np.ndarray,
        inputs: tuple[InputScaler, Preparation],
        scales: Iterable[float],
    ) -> dict[float, np.ndarray]:
        """Return the features diffused at every given scale, float64."""
        (scaler, preparation), dtype, found = inputs, torch.float64, {}
        how = self.settings_, preparation, torch.device("cpu"), dtype
        with threads(1):
            batch: Any = make_batch(connectomes, scaler.apply(features), *how)
            for scale in map(float, scales):
                same = torch.full((self.n_rois_,), scale, dtype=dtype)
                signals = batch.diffuse(same).numpy()
                # rounding in a region that heat does not come to is no signal: scaled
                # to unit spread it would be one
                found[scale] = np.where(np.abs(signals) < _ROUNDING, 0.0, signals)
        return found


def _flat(Z: np.ndarray) -> np.ndarray:
    return Z.reshape(len(Z), -1)


def _linear(C: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    # along the grid every fit starts from the one before
    return LogisticRegression(
        C=C, class_weight="balanced", max_iter=2000, warm_start=True
    )
