"""Tuning inside a fit: scikit-learn's searches over a space, people kept whole."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from brainlsap.arrays import check_at_least, check_choice
from brainlsap.exceptions import ParameterError
from brainlsap.model.classifier import LSAPClassifier
from brainlsap.model.inputs import PackedClassifier, check_groups
from brainlsap.model.settings import OPTIONS

SPACES: dict[str, dict[str, dict[str, Sequence[Any]]]] = {
    "default": {
        "LSAPClassifier": {
            "hidden_units": (8, 16),
            "dropout": (0.1, 0.3, 0.5),
            "readout_penalty": (1e-3, 1e-2, 1e-1),
        },
        "NetworkClassifier": {
            "hidden_units": (8, 16, 32),
            "dropout": (0.1, 0.3, 0.5),
            "learning_rate": (1e-3, 1e-2),
        },
    },
    "paper": {
        "LSAPClassifier": {
            "hidden_units": (16, 32),
            "penalty_weight": (0.1, 1.0),
            "scale_step": (1.0, 10.0),
        },
        "NetworkClassifier": {
            "hidden_units": (16, 32),
            "dropout": (0.1, 0.5),
            "learning_rate": (1e-2,),
        },
    },
}
"""Spaces by name and class of model: what each setting may be. "paper" holds the values
that the paper's table of hyperparameters has for any of its data sets."""


class TunedClassifier(PackedClassifier):
    """A model that chooses its settings by inner folds of every fit.

    Parameters
    ----------
    model : classifier
        Of packed scans, unfitted; or a pipeline, whose last step is tuned.
    space : {"default", "paper"} or mapping
        A name of :data:`SPACES`, or the values of each setting.
    n_candidates : int, optional
        So many combinations, drawn at random (RandomizedSearchCV); by default every
        one (GridSearchCV).
    n_inner_folds : int
        Stratified inner folds that never share a person; fewer where a class has
        fewer people.
    scoring : str
        A score that scikit-learn knows.
    random_state : int, optional
        Seed of inner folds and random search.

    Attributes
    ----------
    best_estimator_ : classifier
        Fitted to all scans with the chosen settings.
    best_params_ : dict
        The chosen settings.
    best_score_ : float
        Their mean inner score; NaN where a class has too few people to tune.
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
        space: str | Mapping[str, Sequence[Any]] = "default",
        *,
        n_candidates: int | None = None,
        n_inner_folds: int = 3,
        scoring: str = "balanced_accuracy",
        random_state: int | None = None,
    ) -> None:
        self.model = model
        self.space = space
        self.n_candidates = n_candidates
        self.n_inner_folds = n_inner_folds
        self.scoring = scoring
        self.random_state = random_state

    def fit(
        self, X: np.ndarray, y: np.ndarray, groups: np.ndarray | None = None
    ) -> "TunedClassifier":
        """Choose settings on inner folds of these scans, then fit to all of them.

        Takes what :meth:`.LSAPClassifier.fit` takes; raises ParameterError also where
        the space is unknown, or says nothing of this model.
        """
        from sklearn import config_context
        from sklearn import model_selection as sk
        from sklearn.base import clone

        y, seed = np.asarray(y), self.random_state or 0
        groups = check_groups(groups, len(y), "an inner fold")
        space = find_space(self.model, self.space)
        check_at_least("n_inner_folds", self.n_inner_folds, 2)
        n_folds = min(
            self.n_inner_folds, *(len(set(groups[y == one])) for one in np.unique(y))
        )
        model = clone(self.model)
        with config_context(enable_metadata_routing=True):
            _last(model).set_fit_request(groups=True)
            if n_folds < 2:
                self.best_params_ = {name: one[0] for name, one in space.items()}
                model.set_params(**self.best_params_)
                self.best_estimator_ = model.fit(X, y, groups=groups)
                self.best_score_ = float("nan")
            else:
                folds = sk.StratifiedGroupKFold(
                    n_folds, shuffle=True, random_state=seed
                )
                given = {"cv": folds, "scoring": self.scoring, "error_score": "raise"}
                search: Any = sk.GridSearchCV(model, space, **given)
                if self.n_candidates is not None:
                    n_iter = min(self.n_candidates, len(sk.ParameterGrid(space)))
                    given |= {"n_iter": n_iter, "random_state": seed}
                    search = sk.RandomizedSearchCV(model, space, **given)
                search.fit(X, y, groups=groups)
                self.best_estimator_ = search.best_estimator_
                self.best_params_ = search.best_params_
                self.best_score_ = float(search.best_score_)
        self.classes_ = self.best_estimator_.classes_
        last = _last(self.best_estimator_)
        chosen = {"chosen": dict(self.best_params_), "inner_score": self.best_score_}
        last.fit_report_ = {**getattr(last, "fit_report_", {}), "tuned": chosen}
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probabilities of the model with the chosen settings."""
        return self.best_estimator_.predict_proba(X)


tuned = TunedClassifier


def _last(model: Any) -> Any:
    return model.steps[-1][1] if hasattr(model, "steps") else model


def find_space(
    model: Any, space: str | Mapping[str, Sequence[Any]]
) -> dict[str, list[Any]]:
    """Return the values that each setting of a model may have, by name, checked."""
    last, prefix = _last(model), ""
    if last is not model:
        prefix = f"{model.steps[-1][0]}__"
    if isinstance(space, str):
        check_choice("space", space, SPACES)
        kind = type(last).__name__
        if kind not in SPACES[space]:
            raise ParameterError(
                f"the space {space!r} says nothing of {kind}; give values by setting."
            )
        space = {prefix + name: one for name, one in SPACES[space][kind].items()}
    known = set(model.get_params(deep=True))
    if isinstance(last, LSAPClassifier):
        known |= {prefix + name for name in OPTIONS}
    unknown = [name for name in space if name not in known]
    if unknown or not space:
        got = f"got {unknown[0]!r}" if unknown else "got none"
        raise ParameterError(f"space must name settings of the model, {got}.")
    return {name: list(values) for name, values in space.items()}
