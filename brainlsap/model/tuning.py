"""Tuning inside a fit: scikit-learn's searchers over a space, people kept whole."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from brainlsap._arrays import check_at_least, check_choice
from brainlsap.model.packed_classifier import PackedClassifier
from brainlsap.model.tuning_spaces import space_of

SEARCHES = ("grid", "random")


def tuned(
    model: Any,
    space: str | Mapping[str, Sequence[Any]] = "default",
    *,
    search: str = "grid",
    n_candidates: int = 10,
    n_inner_folds: int = 3,
    scoring: str = "balanced_accuracy",
    random_state: int | None = None,
) -> "TunedClassifier":
    """Return a model that chooses its settings inside every fit.

    Parameters
    ----------
    model : classifier
        Of packed scans, unfitted.
    space : {"default", "paper"} or mapping
        A name of :data:`brainlsap.model.SPACES`, or the values of each setting.
    search : {"grid", "random"}
        Every combination, or `n_candidates` of them (scikit-learn's GridSearchCV and
        RandomizedSearchCV).
    n_candidates : int
        Combinations that a random search tries.
    n_inner_folds : int
        Stratified inner folds that never share a person.
    scoring : str
        A score that scikit-learn knows.
    random_state : int, optional
        Seed of inner folds and random search.

    Returns
    -------
    TunedClassifier

    Raises
    ------
    ParameterError
        Where the space is unknown, or says nothing of this model.

    Examples
    --------
    >>> from brainlsap.model import LSAPClassifier
    >>> tuned(LSAPClassifier(), {"dropout": (0.1, 0.5)}).space
    {'dropout': (0.1, 0.5)}
    """
    found = space_of(model, space)
    check_choice("search", search, SEARCHES)
    check_at_least("n_inner_folds", n_inner_folds, 2)
    check_at_least("n_candidates", n_candidates, 1)
    return TunedClassifier(
        model,
        found,
        search=search,
        n_candidates=n_candidates,
        n_inner_folds=n_inner_folds,
        scoring=scoring,
        random_state=random_state,
    )


class TunedClassifier(PackedClassifier):
    """A classifier that chooses settings by inner folds, as :func:`tuned` makes it.

    Parameters
    ----------
    model : classifier
        Of packed scans, unfitted.
    space : mapping of str to sequence
        The values that each setting may have.
    search : {"grid", "random"}
        Every combination, or some.
    n_candidates : int
        Combinations of a random search.
    n_inner_folds : int
        Inner folds; fewer where a class has fewer people.
    scoring : str
        A score that scikit-learn knows.
    random_state : int, optional
        Seed.

    Attributes
    ----------
    best_estimator_ : classifier
        Fitted to all scans with the chosen settings.
    best_params_ : dict
        The chosen settings.
    best_score_ : float
        Their mean inner score; NaN where nothing could be tuned.
    classes_ : array of shape (n_classes,)

    Examples
    --------
    >>> from brainlsap.model import NetworkClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(1.0, size=(30, 4, 5))
    >>> y = np.where(np.arange(30) % 2, "AD", "CN")
    >>> X[y == "AD", 2, 4] += 5
    >>> model = tuned(NetworkClassifier(n_epochs=20), {"dropout": (0.0, 0.9)})
    >>> model.fit(X, y, groups=np.arange(30)).best_params_
    {'dropout': 0.0}
    """

    def __init__(
        self,
        model: Any,
        space: Mapping[str, Sequence[Any]],
        *,
        search: str = "grid",
        n_candidates: int = 10,
        n_inner_folds: int = 3,
        scoring: str = "balanced_accuracy",
        random_state: int | None = None,
    ) -> None:
        self.model = model
        self.space = space
        self.search = search
        self.n_candidates = n_candidates
        self.n_inner_folds = n_inner_folds
        self.scoring = scoring
        self.random_state = random_state

    def fit(
        self,
        X: np.ndarray,
        y: np.ndarray,
        groups: np.ndarray | None = None,
        covariates: object = None,  # noqa: ARG002
    ) -> "TunedClassifier":
        """Choose settings on inner folds of these scans, then fit to all of them.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
            From :meth:`brainlsap.data.Cohort.to_array`.
        y : array of shape (n_scans,)
            Class of every scan.
        groups : array of shape (n_scans,), optional
            Participant of every scan; inner folds never share one.
        covariates : object, optional
            Declared for metadata routing; not looked at here.

        Returns
        -------
        TunedClassifier
            The same object.
        """
        from sklearn import config_context

        y, groups = np.asarray(y), self._people(y, groups)
        n_folds = min(self.n_inner_folds, _rarest(y, groups))
        with config_context(enable_metadata_routing=True):
            if n_folds < 2:
                self._take_first(X, y, groups)
            else:
                self._search(X, y, groups, n_folds)
        self.classes_ = self.best_estimator_.classes_
        last = self.best_estimator_
        last = last.steps[-1][1] if hasattr(last, "steps") else last
        told = {"chosen": dict(self.best_params_), "inner_score": self.best_score_}
        last.fit_report_ = {**getattr(last, "fit_report_", {}), "tuned": told}
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probabilities of the model with the chosen settings.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
            With the regions and features of the fit.

        Returns
        -------
        array of shape (n_scans, n_classes)
        """
        return self.best_estimator_.predict_proba(X)

    def _search(
        self, X: np.ndarray, y: np.ndarray, groups: np.ndarray, n_folds: int
    ) -> None:
        from sklearn.model_selection import (
            GridSearchCV,
            ParameterGrid,
            RandomizedSearchCV,
            StratifiedGroupKFold,
        )

        seed = self.random_state or 0
        given: dict[str, Any] = {
            "cv": StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed),
            "scoring": self.scoring,
            "error_score": "raise",
        }
        space = {name: list(values) for name, values in self.space.items()}
        searcher = GridSearchCV(_asking_for_groups(self.model), space, **given)
        if self.search == "random":
            n_iter = min(self.n_candidates, len(ParameterGrid(space)))
            model = _asking_for_groups(self.model)
            searcher = RandomizedSearchCV(
                model, space, n_iter=n_iter, random_state=seed, **given
            )
        searcher.fit(X, y, groups=groups)
        self.best_estimator_ = searcher.best_estimator_
        self.best_params_ = searcher.best_params_
        self.best_score_ = float(searcher.best_score_)

    def _take_first(self, X: np.ndarray, y: np.ndarray, groups: np.ndarray) -> None:
        self.best_params_ = {name: values[0] for name, values in self.space.items()}
        model = _asking_for_groups(self.model).set_params(**self.best_params_)
        self.best_estimator_ = model.fit(X, y, groups=groups)
        self.best_score_ = float("nan")

    @staticmethod
    def _people(y: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
        if groups is not None:
            return np.asarray(groups)
        warnings.warn(
            "fit without groups takes every scan for a person of its own: visits of "
            "one person may be on both sides of an inner fold. Pass "
            "groups=participants.",
            UserWarning,
            stacklevel=3,
        )
        return np.arange(len(y))


def _rarest(y: np.ndarray, groups: np.ndarray) -> int:
    return min(len(set(groups[y == one])) for one in np.unique(y))


def _asking_for_groups(model: Any) -> Any:
    """Return a clone whose fit is handed groups by searches."""
    from sklearn.base import clone

    fresh = clone(model)
    last = fresh.steps[-1][1] if hasattr(fresh, "steps") else fresh
    last.set_fit_request(groups=True)
    return fresh
