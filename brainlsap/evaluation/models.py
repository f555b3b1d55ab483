"""Every model that is compared, by name: LSAP, baselines, and controls."""

import hashlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC
from sklearn.utils.metaestimators import available_if

from brainlsap.arrays import check_connectomes, check_features, pack, unpack
from brainlsap.data.participants import KEY_COLUMNS
from brainlsap.evaluation.splits import Split, make_splits
from brainlsap.exceptions import ParameterError, SplitError

PENALTIES = {
    "logistic": tuple(10.0**power for power in range(-4, 2)),
    "svm": tuple(10.0**power for power in range(-5, 1)),
}
UNTUNED_C = 0.01
# Directions of less variance than this share of the largest are rounding.
LEAST_VARIANCE = 1e-10
# Text of more kinds, such as a comment, is no covariate.
MOST_LEVELS = 50

FAST = {"n_starts": 1, "initial_scale": 1.0, "n_epochs": 200, "patience": 20}
"""LSAP in a quick comparison: one start, at one scale."""

FAST_NETWORK = {"n_starts": 1, "n_epochs": 60, "patience": 8}
"""The other networks in a quick comparison."""


class RegionStandardizer(TransformerMixin, BaseEstimator):
    """Features (n_scans, n_rois * n_features), centred and scaled over training scans.

    What was not measured, and regions without spread, become 0.
    """

    @staticmethod
    def read(X: np.ndarray) -> np.ndarray:
        features = np.array(unpack(np.asarray(X))[1], dtype=np.float64)
        check_features(features)
        return features.reshape(len(features), -1)

    def fit(self, values: np.ndarray, y: object = None) -> "RegionStandardizer":  # noqa: ARG002
        known = ~np.isnan(values)
        count = np.maximum(known.sum(axis=0), 1)
        self.mean_ = np.where(known, values, 0).sum(axis=0) / count
        centred = np.where(known, values - self.mean_, 0)
        self.sd_ = _spread(np.sqrt((centred**2).sum(axis=0) / count), self.mean_)
        return self

    def transform(self, values: np.ndarray) -> np.ndarray:
        return np.nan_to_num((values - self.mean_) / self.sd_, nan=0.0)


class EdgeComponents:
    """log(1 + w) of all edges, standardised and rotated onto the training scans' span.

    There are far more edges than scans, and a linear model with a squared penalty
    never leaves that span: the rotation changes nothing but the price.
    """

    @staticmethod
    def read(X: np.ndarray) -> np.ndarray:
        W = unpack(np.asarray(X))[0]
        check_connectomes(W)
        row, column = np.triu_indices(W.shape[1], 1)
        both = [one[row, column].astype(float) + one[column, row] for one in W]
        return np.log1p(np.array(both) / 2)

    def fit(self, values: np.ndarray) -> "EdgeComponents":
        self.mean_ = values.mean(axis=0)
        self.sd_ = _spread(values.std(axis=0), self.mean_)
        Z = (values - self.mean_) / self.sd_
        variance, U = np.linalg.eigh(Z @ Z.T)
        kept = variance > LEAST_VARIANCE * max(variance.max(), 1e-300)
        self.rotation_ = np.zeros((Z.shape[1], 1))
        if kept.any():
            self.rotation_ = Z.T @ (U[:, kept] / np.sqrt(variance[kept]))
        return self

    def transform(self, values: np.ndarray) -> np.ndarray:
        return ((values - self.mean_) / self.sd_) @ self.rotation_


INPUTS: dict[str, Any] = {"edges": EdgeComponents, "features": RegionStandardizer}


class TunedLinearClassifier(ClassifierMixin, BaseEstimator):
    """Linear classifier of standardised regional features or edges, tuned inside.

    `C` and `class_weight` (none or balanced) are chosen by balanced accuracy over
    stratified inner folds that keep people whole; standardisation is learned inside
    each. Between equals the smallest `C` wins, then no weights. Where a class has
    fewer than two people C = 0.01 with balanced weights is taken. The SVM gives
    decision values and no probabilities.

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
    fit_report_ : dict
        C, class_weight and inner_balanced_accuracy that were chosen.
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
        """Tune on inner folds of X (packed), then fit on all scans."""
        y = np.asarray(y).astype(str)
        values = INPUTS[self.reads].read(X)
        score, C, class_weight = self._tune(values, y, self._inner_splits(y, groups))
        self.standardizer_ = INPUTS[self.reads]().fit(values)
        self.model_ = self._linear(C, class_weight)
        self.model_.fit(self.standardizer_.transform(values), y)
        self.classes_ = self.model_.classes_
        self.fit_report_ = {
            "C": C,
            "class_weight": class_weight or "none",
            "inner_balanced_accuracy": score,
        }
        return self

    @available_if(lambda self: self.kind == "logistic")
    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return probabilities (n_scans, n_classes)."""
        return self.model_.predict_proba(self._inputs(X))

    @available_if(lambda self: self.kind == "svm")
    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Return decision values: (n_scans, n_classes), or (n_scans,) for two."""
        return self.model_.decision_function(self._inputs(X))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the likeliest class of every scan."""
        return self.model_.predict(self._inputs(X))

    def _inputs(self, X: np.ndarray) -> np.ndarray:
        return self.standardizer_.transform(INPUTS[self.reads].read(X))

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
        n_people = min(len(set(groups[y == one])) for one in set(y))
        n_folds = min(self.n_inner_folds, n_people)
        try:
            return make_splits(y, groups, n_folds, random_state=self.random_state)
        except SplitError:
            if len(set(y)) < 2:
                raise
            return ()

    def _tune(
        self, values: np.ndarray, y: np.ndarray, inner: tuple[Split, ...]
    ) -> tuple[float, float, str | None]:
        """Return inner balanced accuracy, C and class weight of the best choice."""
        if not inner:
            return float("nan"), UNTUNED_C, "balanced"
        found: dict[tuple[float, str | None], list[float]] = {}
        for train, test in inner:
            standardizer = INPUTS[self.reads]().fit(values[train])
            seen, unseen = (standardizer.transform(values[r]) for r in (train, test))
            for class_weight in (None, "balanced"):
                model = self._linear(UNTUNED_C, class_weight)
                for C in PENALTIES[self.kind]:
                    model.set_params(C=C).fit(seen, y[train])
                    score = balanced_accuracy_score(y[test], model.predict(unseen))
                    found.setdefault((C, class_weight), []).append(score)
        choices = [(float(np.mean(scores)), *key) for key, scores in found.items()]
        return max(choices, key=lambda one: (round(one[0], 9), -one[1], one[2] is None))

    def _linear(self, C: float, class_weight: str | None) -> Any:
        given: dict[str, Any] = {"C": C, "class_weight": class_weight}
        if self.kind == "logistic":
            return LogisticRegression(**given, max_iter=2000, warm_start=True)
        given |= {"dual": "auto", "random_state": self.random_state}
        return LinearSVC(**given, max_iter=20000)


class ConfoundsOnlyClassifier(ClassifierMixin, BaseEstimator):
    """Logistic regression on covariates and on the size of the connectome.

    What can be predicted without looking at any region: every column of the cohort's
    table but the keys and renamings of the label, total edge weight, and density.

    Parameters
    ----------
    random_state : int
        Seed of the inner folds.
    """

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(
        self,
        X: np.ndarray,
        y: np.ndarray,
        groups: np.ndarray | None = None,
        covariates: pd.DataFrame | None = None,
    ) -> "ConfoundsOnlyClassifier":
        """Learn columns and levels from training scans, then tune and fit."""
        self.columns_: dict[str, tuple[str, ...] | None] = {}
        table = pd.DataFrame() if covariates is None else covariates
        for name, values in table.items():
            pairs = pd.DataFrame({"value": values.astype(str).to_numpy(), "label": y})
            if (
                name in KEY_COLUMNS
                or (pairs.nunique() == len(pairs.drop_duplicates())).all()
            ):
                continue
            numbers = pd.to_numeric(values, errors="coerce")
            if numbers.notna().sum() == values.notna().sum():
                self.columns_[str(name)] = None
            elif 1 < values.nunique() <= MOST_LEVELS:
                levels = sorted(values.dropna().astype(str).unique())
                self.columns_[str(name)] = tuple(levels)
        linear = TunedLinearClassifier(random_state=self.random_state)
        self.model_ = linear.fit(self._inputs(X, covariates), y, groups)
        self.classes_, self.fit_report_ = self.model_.classes_, self.model_.fit_report_
        return self

    def predict_proba(
        self, X: np.ndarray, covariates: pd.DataFrame | None = None
    ) -> np.ndarray:
        """Return probabilities (n_scans, n_classes)."""
        return self.model_.predict_proba(self._inputs(X, covariates))

    def predict(
        self, X: np.ndarray, covariates: pd.DataFrame | None = None
    ) -> np.ndarray:
        """Return the class of highest probability."""
        return self.classes_[self.predict_proba(X, covariates).argmax(axis=1)]

    def _inputs(self, X: np.ndarray, covariates: pd.DataFrame | None) -> np.ndarray:
        """Return covariates packed as the features of one region without edges."""
        W = unpack(np.asarray(X))[0]
        check_connectomes(W)
        row, column = np.triu_indices(W.shape[1], 1)
        edges = W[:, row, column].astype(float)
        told = [edges.sum(axis=1), (edges > 0).mean(axis=1)]
        table = pd.DataFrame() if covariates is None else covariates
        for name, levels in self.columns_.items():
            if levels is None:
                told.append(pd.to_numeric(table[name], errors="coerce").to_numpy(float))
            else:
                text = table[name].astype(str).to_numpy()
                told += [(text == level).astype(float) for level in levels]
        return pack(np.zeros((len(X), 1, 1)), np.stack(told, axis=1)[:, None, :])


class ShuffledEdges(ClassifierMixin, BaseEstimator):
    """A model on networks whose edges were moved to other pairs of regions at random.

    Every network keeps its weights; the order is drawn from the seed and the network
    itself, so that a scan is shuffled alike in training and test.

    Parameters
    ----------
    model : classifier
        Fitted to the shuffled networks.
    random_state : int
        Seed.
    """

    def __init__(self, model: Any, random_state: int = 0) -> None:
        self.model = model
        self.random_state = random_state

    def fit(
        self, X: np.ndarray, y: np.ndarray, groups: np.ndarray | None = None
    ) -> "ShuffledEdges":
        """Shuffle, then fit."""
        self.model_ = clone(self.model).fit(self._shuffled(X), y, groups=groups)
        self.classes_ = self.model_.classes_
        self.fit_report_ = getattr(self.model_, "fit_report_", {})
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return probabilities (n_scans, n_classes)."""
        return self.model_.predict_proba(self._shuffled(X))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the class of highest probability."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _shuffled(self, X: np.ndarray) -> np.ndarray:
        connectomes, features = unpack(np.array(X, dtype=np.float64))
        check_connectomes(connectomes)
        check_features(features)
        for W in connectomes:
            symmetric = np.ascontiguousarray((W + W.T) / 2)
            digest = hashlib.blake2b(symmetric.tobytes(), digest_size=8).digest()
            seeds = [self.random_state, int.from_bytes(digest, "little")]
            row, column = np.triu_indices(len(W), 1)
            order = np.random.default_rng(seeds).permutation(len(row))
            W[:] = 0
            W[row, column] = W[column, row] = symmetric[row, column][order]
        return pack(connectomes, features)


class Asked(NamedTuple):
    """What :func:`make_models` was asked for."""

    random_state: int
    fast: bool
    settings: dict[str, Any]

    def chosen(self, *names: str) -> dict[str, Any]:
        """Return those of the settings that were given and are not None."""
        given = self.settings | (self.settings.get("options") or {})
        return {name: given[name] for name in names if given.get(name) is not None}


class Entry(NamedTuple):
    """How a model is made of what was asked for, and its role."""

    make: Callable[[Asked], Any]
    role: str


def _lsap(kernel: str = "chebyshev", **fixed: Any) -> Callable[[Asked], Any]:
    def make(asked: Asked) -> Any:
        from brainlsap.model import LSAPClassifier

        usual = FAST if asked.fast else {}
        model = LSAPClassifier(kernel, random_state=asked.random_state)
        return model.set_params(**(usual | asked.settings | fixed))

    return make


def _network(name: str) -> Entry:
    def make(asked: Asked) -> Any:
        from brainlsap.model import NetworkClassifier

        given: dict[str, Any] = FAST_NETWORK if asked.fast else {"n_starts": 4}
        given = given | asked.chosen("n_epochs", "n_starts", "threshold", "weights")
        return NetworkClassifier(name, random_state=asked.random_state, **given)

    return Entry(make, "baseline")


def _linear(**given: Any) -> Callable[[Asked], Any]:
    return lambda asked: TunedLinearClassifier(random_state=asked.random_state, **given)


def _diffused(asked: Asked) -> Any:
    from brainlsap.model import DiffusedLogisticRegression

    given = asked.chosen("threshold", "weights", "preparation")
    return DiffusedLogisticRegression(random_state=asked.random_state, **given)


def _forest(asked: Asked) -> Any:
    return make_pipeline(
        FunctionTransformer(RegionStandardizer.read),
        RegionStandardizer(),
        RandomForestClassifier(
            300, class_weight="balanced", random_state=asked.random_state
        ),
    )


MODELS: dict[str, Entry] = {
    "LSAP-C": Entry(_lsap(), "model"),
    "LSAP-H": Entry(_lsap("hermite"), "model"),
    "LSAP-L": Entry(_lsap("laguerre"), "model"),
    "Exact": Entry(_lsap("exact"), "model"),
    "majority class": Entry(lambda _: DummyClassifier(strategy="prior"), "baseline"),
    "logistic regression": Entry(_linear(kind="logistic"), "baseline"),
    "linear SVM": Entry(_linear(kind="svm"), "baseline"),
    "diffused logistic regression": Entry(_diffused, "baseline"),
    "random forest": Entry(_forest, "baseline"),
    "MLP": _network("mlp"),
    "GCN": _network("gcn"),
    "GAT": _network("gat"),
    "GDC": _network("gdc"),
    "GraphHeat": _network("graphheat"),
    "ADC": _network("adc"),
    # the read-out of LSAP without any diffusion
    "features only": Entry(_lsap(scale_mode="frozen", initial_scale=0.0), "control"),
    "edges only": Entry(_linear(reads="edges"), "control"),
    "shuffled edges": Entry(
        lambda asked: ShuffledEdges(_lsap()(asked), asked.random_state), "control"
    ),
    "frozen scales": Entry(_lsap(scale_mode="frozen"), "control"),
    "one global scale": Entry(_lsap(scale_mode="global"), "control"),
    "constant features": Entry(_lsap(inputs="constant"), "control"),
    "confounds only": Entry(
        lambda asked: ConfoundsOnlyClassifier(asked.random_state), "control"
    ),
}
"""Every model, baseline and control by name."""

LADDER = (
    "ridge without network",
    "ridge with one scale",
    "ridge with a scale per region",
)
"""What the network adds, each to the one before; "LSAP-R" chooses among them."""

BASELINES = (
    "majority class",
    "logistic regression",
    "linear SVM",
    "diffused logistic regression",
)
"""Those that every study runs beside its models."""

GROUPS: dict[str, tuple[str, ...]] = {
    "all": tuple(MODELS),
    "models": tuple(name for name, one in MODELS.items() if one.role != "control"),
    "controls": tuple(name for name, one in MODELS.items() if one.role == "control"),
    "baselines": BASELINES,
    "default": ("LSAP-C", *BASELINES),
}
"""Names that stand for several models."""


def make_models(
    names: str | Sequence[str] = "default",
    *,
    preset: str = "default",
    random_state: int = 0,
    fast: bool = False,
    **settings: Any,
) -> dict[str, tuple[Any, str]]:
    """Return unfitted models by name, each with its role, for :func:`cross_validate`.

    Parameters
    ----------
    names : str or sequence of str
        Of :data:`MODELS`, or "all", "models", "controls", "baselines", "default"; case,
        blanks and hyphens do not matter.
    preset : {"default", "paper"}
        Of the LSAP models.
    random_state : int
        Seed of every model.
    fast : bool
        One start and fewer epochs, for a first look.
    **settings
        Further settings of LSAP; the other networks take n_epochs, n_starts, threshold
        and weights of them, the diffused logistic regression what prepares a network.

    Returns
    -------
    dict of str to (classifier, role)
        In the order of :data:`MODELS`; role is "model", "baseline" or "control".

    Raises
    ------
    ParameterError
        For an unknown name; the message lists all.

    Examples
    --------
    >>> {
    ...     name: role
    ...     for name, (_, role) in make_models(["lsap-c", "linear-svm"]).items()
    ... }
    {'LSAP-C': 'model', 'linear SVM': 'baseline'}
    """
    by_key: dict[str, tuple[str, ...]] = {_key(name): (name,) for name in MODELS}
    by_key |= {_key(name): members for name, members in GROUPS.items()}
    wanted: set[str] = set()
    for name in [names] if isinstance(names, str) else names:
        if _key(name) not in by_key:
            raise ParameterError(
                f"models must be {', '.join(GROUPS)}, or some of {', '.join(MODELS)}; "
                f"got {name!r}."
            )
        wanted |= set(by_key[_key(name)])
    if "kernel" in settings:
        raise ParameterError(
            "kernel must be said by models=, such as LSAP-L, got "
            f"{settings['kernel']!r}."
        )
    asked = Asked(random_state, fast, {"preset": preset, **settings})
    return {
        name: (entry.make(asked), entry.role)
        for name, entry in MODELS.items()
        if name in wanted
    }


def _spread(spread: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return s.d., infinite where there is none but rounding."""
    flat = spread <= 1e-10 * np.maximum(np.abs(mean), 1e-300)
    return np.where(flat, np.inf, spread)


def _key(name: str) -> str:
    return name.lower().replace(" ", "").replace("-", "").replace("_", "")
