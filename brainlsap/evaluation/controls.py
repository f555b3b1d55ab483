"""Baselines that every report shows beside the model, on the very same folds."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin

from brainlsap._arrays import check_choice, unpack
from brainlsap.evaluation.fitting import softmax_of
from brainlsap.evaluation.splits import Split, make_splits
from brainlsap.exceptions import SplitError

LOGISTIC_C = tuple(10.0**power for power in range(-4, 2))
SVM_C = tuple(10.0**power for power in range(-5, 1))
UNTUNED_C = 0.01


def baseline_models(random_state: int = 0) -> dict[str, Any]:
    """Return the baselines, unfitted, by name.

    Each takes the packed array and reads the features only, never the connectome.

    Parameters
    ----------
    random_state : int
        Seed of the inner folds on which the linear models are tuned.

    Returns
    -------
    dict of str to classifier
        "majority class" (class shares of the training scans), "logistic regression"
        and "linear SVM" (both :class:`TunedLinearClassifier`).

    Examples
    --------
    >>> list(baseline_models())
    ['majority class', 'logistic regression', 'linear SVM']
    """
    from sklearn.dummy import DummyClassifier

    return {
        "majority class": DummyClassifier(strategy="prior"),
        "logistic regression": TunedLinearClassifier(
            "logistic", random_state=random_state
        ),
        "linear SVM": TunedLinearClassifier("svm", random_state=random_state),
    }


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
        values = _features(X)
        known = ~np.isnan(values)
        count = np.maximum(known.sum(axis=0), 1)
        self.mean_ = np.where(known, values, 0).sum(axis=0) / count
        centred = np.where(known, values - self.mean_, 0)
        spread = np.sqrt((centred**2).sum(axis=0) / count)
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
        values = (_features(X) - self.mean_) / self.sd_
        return np.nan_to_num(values, nan=0.0)


class _Choice(NamedTuple):
    """A setting of a linear model, and its mean inner balanced accuracy."""

    score: float
    C: float
    class_weight: str | None


class TunedLinearClassifier(ClassifierMixin, BaseEstimator):
    """Linear classifier of standardised regional features, tuned inside.

    `C` and `class_weight` (none or balanced) are chosen by balanced accuracy, the
    headline score of the reports, averaged over stratified inner folds that keep
    people whole; standardisation is learned inside each inner fold. Between equals
    the smallest `C` wins, then no weights. Where a class has fewer than two people
    nothing can be tuned: C = 0.01 with balanced weights is taken.

    Probabilities of the SVM are the softmax of its decision values (for two classes
    the logistic function): they keep the ranking and are not calibrated.

    Parameters
    ----------
    kind : {"logistic", "svm"}
        Multinomial logistic regression, or one linear SVM per class (one against the
        rest, squared hinge), both with a squared penalty.
    n_inner_folds : int
        Inner folds; fewer where a class has fewer people.
    random_state : int
        Seed of the inner folds.

    Attributes
    ----------
    classes_ : array of str
        Classes seen.
    fit_report_ : dict
        C, class_weight and inner_balanced_accuracy that were chosen.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 3, 4))
    >>> y = np.where(X[:, 1, 3] > 0, "AD", "CN")
    >>> people = np.arange(40)
    >>> fitted = TunedLinearClassifier("logistic").fit(X, y, groups=people)
    >>> fitted.score(X, y) > 0.9
    True
    """

    def __init__(
        self, kind: str = "logistic", n_inner_folds: int = 3, random_state: int = 0
    ) -> None:
        self.kind = kind
        self.n_inner_folds = n_inner_folds
        self.random_state = random_state

    def fit(
        self, X: np.ndarray, y: np.ndarray, groups: np.ndarray | None = None
    ) -> "TunedLinearClassifier":
        """Tune inside, then fit on all scans.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
        y : array of str of shape (n_scans,)
        groups : array of shape (n_scans,), optional
            Participant of every scan. Without it every scan is taken for a person,
            with a warning: visits of a person may then be on both sides of an inner
            fold, which tunes for the wrong task.

        Returns
        -------
        TunedLinearClassifier

        Raises
        ------
        ParameterError
            Where `kind` is unknown.
        """
        check_choice("kind", self.kind, ("logistic", "svm"))
        y = np.asarray(y).astype(str)
        chosen = self._tune(X, y, self._inner_splits(y, groups))
        self.standardizer_ = RegionStandardizer().fit(X)
        self.model_ = self._linear(chosen.C, chosen.class_weight)
        self.model_.fit(self.standardizer_.transform(X), y)
        self.classes_ = self.model_.classes_
        self.fit_report_ = {
            "C": chosen.C,
            "class_weight": chosen.class_weight or "none",
            "inner_balanced_accuracy": chosen.score,
        }
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
        values = self.standardizer_.transform(X)
        if self.kind == "logistic":
            return self.model_.predict_proba(values)
        return softmax_of(self.model_.decision_function(values))

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

    def _inner_splits(
        self, y: np.ndarray, groups: np.ndarray | None
    ) -> tuple[Split, ...]:
        if groups is None:
            warnings.warn(
                "fit without groups takes every scan for a person of its own; pass "
                "groups=participants where people have several visits.",
                UserWarning,
                stacklevel=3,
            )
            groups = np.arange(len(y))
        groups = np.asarray(groups).astype(str)
        people = min(len(set(groups[y == one])) for one in set(y))
        try:
            return make_splits(
                y, groups, min(self.n_inner_folds, people), self.random_state
            )
        except SplitError:
            if len(set(y)) < 2:
                raise
            return ()

    def _tune(self, X: np.ndarray, y: np.ndarray, inner: tuple[Split, ...]) -> _Choice:
        from sklearn.metrics import balanced_accuracy_score

        if not inner:
            return _Choice(float("nan"), UNTUNED_C, "balanced")
        grid = LOGISTIC_C if self.kind == "logistic" else SVM_C
        found: dict[tuple[float, str | None], list[float]] = {}
        for train, test in inner:
            standardizer = RegionStandardizer().fit(X[train])
            seen, unseen = map(standardizer.transform, (X[train], X[test]))
            for class_weight in (None, "balanced"):
                model = self._linear(grid[0], class_weight)
                for C in grid:
                    model.set_params(C=C).fit(seen, y[train])
                    score = balanced_accuracy_score(y[test], model.predict(unseen))
                    found.setdefault((C, class_weight), []).append(score)
        choices = [
            _Choice(float(np.mean(scores)), *key) for key, scores in found.items()
        ]
        # Rounded, so that the last bit of a mean does not decide between equals.
        return max(
            choices,
            key=lambda one: (round(one.score, 9), -one.C, one.class_weight is None),
        )

    def _linear(self, C: float, class_weight: str | None) -> Any:
        if self.kind == "logistic":
            from sklearn.linear_model import LogisticRegression

            # Along the grid every fit starts from the one before.
            return LogisticRegression(
                C=C, class_weight=class_weight, max_iter=2000, warm_start=True
            )
        from sklearn.svm import LinearSVC

        return LinearSVC(
            C=C,
            class_weight=class_weight,
            dual="auto",
            max_iter=20000,
            random_state=self.random_state,
        )


def _features(X: np.ndarray) -> np.ndarray:
    _, features = unpack(np.asarray(X))
    return features.reshape(len(features), -1)
