"""Baselines that every report shows beside the model, on the very same folds."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from brainlsap._arrays import check_choice
from brainlsap.evaluation.fitting import softmax_of
from brainlsap.evaluation.linear_inputs import EdgeComponents, RegionStandardizer
from brainlsap.evaluation.splits import Split, make_splits
from brainlsap.exceptions import SplitError

LOGISTIC_C = tuple(10.0**power for power in range(-4, 2))
SVM_C = tuple(10.0**power for power in range(-5, 1))
UNTUNED_C = 0.01
INPUTS: dict[str, Any] = {"edges": EdgeComponents, "features": RegionStandardizer}


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


class _Choice(NamedTuple):
    """A setting of a linear model, and its mean inner balanced accuracy."""

    score: float
    C: float
    class_weight: str | None


class TunedLinearClassifier(ClassifierMixin, BaseEstimator):
    """Linear classifier of standardised regional features or edges, tuned inside.

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
    reads : {"features", "edges"}
        Regional features, or log(1 + w) of the connectome's edges.

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
        self,
        kind: str = "logistic",
        n_inner_folds: int = 3,
        random_state: int = 0,
        reads: str = "features",
    ) -> None:
        self.kind = kind
        self.n_inner_folds = n_inner_folds
        self.random_state = random_state
        self.reads = reads

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
            Where `kind` or `reads` is unknown.
        """
        check_choice("kind", self.kind, ("logistic", "svm"))
        check_choice("reads", self.reads, INPUTS)
        y = np.asarray(y).astype(str)
        values = INPUTS[self.reads].read(X)
        chosen = self._tune(values, y, self._inner_splits(y, groups))
        self.standardizer_ = INPUTS[self.reads]().fit_values(values)
        self.model_ = self._linear(chosen.C, chosen.class_weight)
        self.model_.fit(self.standardizer_.transform_values(values), y)
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

    def _tune(
        self, values: np.ndarray, y: np.ndarray, inner: tuple[Split, ...]
    ) -> _Choice:
        from sklearn.metrics import balanced_accuracy_score

        if not inner:
            return _Choice(float("nan"), UNTUNED_C, "balanced")
        grid = LOGISTIC_C if self.kind == "logistic" else SVM_C
        found: dict[tuple[float, str | None], list[float]] = {}
        for train, test in inner:
            standardizer = INPUTS[self.reads]().fit_values(values[train])
            seen, unseen = (
                standardizer.transform_values(values[rows]) for rows in (train, test)
            )
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
