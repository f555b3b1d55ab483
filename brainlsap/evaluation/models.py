"""Every model that is compared, by name: LSAP, baselines, and controls."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.decomposition import KernelPCA
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.metaestimators import available_if

from brainlsap.arrays import as_number_array, check_groups, pack, unpack
from brainlsap.class_prior import BALANCED, TRAINING, ClassPrior, ClassPriorMixin
from brainlsap.data.covariates import (
    IS_CATEGORICAL,
    KEY_COLUMNS,
    acquisition_kind,
    has_groups,
)
from brainlsap.evaluation.confounds import (
    MOST_GROUPS,
    apply_design,
    learn_design,
)
from brainlsap.evaluation.splits import make_splits
from brainlsap.exceptions import ParameterError

# C is tuned over these powers of ten.
POWERS = {"logistic": range(-4, 2), "svm": range(-5, 1)}


def read_features(X: np.ndarray) -> np.ndarray:
    """Return the features alone, as models that know no connectomes take them.

    Parameters
    ----------
    X : array of shape (n_scans, n_rois, n_rois + n_features)
        The packed array of :meth:`.Cohort.to_array`.

    Returns
    -------
    array of shape (n_scans, n_rois * n_features)
        NaN where not measured.
    """
    features = np.array(unpack(as_number_array(X))[1], dtype=np.float64)
    return features.reshape(len(features), -1)


def _read_networks(X: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return connectomes, features, and the two regions of each edge."""
    W, features = unpack(as_number_array(X))
    return W, features, *np.triu_indices(W.shape[1], 1)


def read_edges(X: np.ndarray) -> np.ndarray:
    """Return log(1 + w) of all edges of the packed array."""
    W, _, row, column = _read_networks(X)
    both = [one[row, column].astype(float) + one[column, row] for one in W]
    return np.log1p(np.array(both) / 2)


def learn_covariates(covariates: pd.DataFrame, y: np.ndarray) -> dict[str, Any]:
    """Learn to code what is no key, renamed label, or text such as names and dates."""
    names = []
    for name, values in covariates.items():
        pairs = pd.DataFrame({"value": values.astype(str).to_numpy(), "label": y})
        is_label = (pairs.nunique() == len(pairs.drop_duplicates())).all()
        known = values.dropna()
        # text of many kinds is names or dates, but sites may be many
        is_named = IS_CATEGORICAL.get(acquisition_kind(name), False)
        n_kinds = known.nunique()
        most = max(MOST_GROUPS, len(known) / (2 if is_named else 4))
        told = 1 < n_kinds <= most if has_groups(str(name), known) else len(known)
        if told and not is_label and name not in KEY_COLUMNS:
            names.append(str(name))
    return learn_design(names, covariates)


def standardizer(reads: str = "features") -> Pipeline:
    """Return steps that centre and scale; what was not measured becomes 0.

    Edges are rotated onto the training scans' span: there are far more of them than
    scans, and a linear model with a squared penalty never leaves that span.
    """
    if reads == "edges":
        rotation = KernelPCA(eigen_solver="dense", remove_zero_eig=True)
        return make_pipeline(StandardScaler(), rotation)
    return make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())


@dataclass(eq=False, repr=False)
class TunedLinearClassifier(ClassPriorMixin, ClassifierMixin, BaseEstimator):
    """Linear classifier of standardised regional features, edges or covariates.

    `C` and `class_weight` (none or balanced) are tuned by balanced accuracy over
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
    reads : {"features", "edges", "covariates"}
        Regional features; log(1 + w) of the connectome's edges; or what can be told
        without looking at any region: `covariates` (but the keys and renamings of the
        label), total edge weight and density.
    class_prior : {"training", "balanced"} or dict of class to share, optional
        As of :class:`brainlsap.LSAPClassifier`: what probabilities assume, whichever
        class weights were chosen (:func:`make_models` sets "training"). By default
        probabilities are those of the chosen weights.

    Attributes
    ----------
    classes_ : array of str
    class_prior_ : array of shape (n_classes,)
    fit_report_ : dict
        C, class_weight and inner_balanced_accuracy that were chosen; covariates read.
    """

    __metadata_request__fit: ClassVar = {"groups": True}

    kind: str = "logistic"
    n_inner_folds: int = 3
    random_state: int = 0
    reads: str = "features"
    class_prior: ClassPrior | None = None

    def fit(
        self,
        X: np.ndarray,
        y: np.ndarray,
        groups: np.ndarray | None = None,
        covariates: pd.DataFrame | None = None,
    ) -> "TunedLinearClassifier":
        """Tune on inner folds of X (packed), then fit on all scans."""
        if self.reads == "covariates":
            self.design_ = learn_covariates(covariates, y)
        y, values = np.asarray(y).astype(str), self._read(X, covariates)
        # one network for all, or none, spans nothing to rotate edges onto
        reads = self.reads if np.ptp(values, axis=0).any() else "nothing"
        linear: Any = LogisticRegression(max_iter=2000, warm_start=True)
        seed = self.random_state
        if self.kind == "svm":
            linear = LinearSVC(dual="auto", random_state=seed, max_iter=20000)
        groups = check_groups(groups, len(y), "the inner folds that choose C")
        people = pd.Series(groups.astype(str))
        n_folds = min(self.n_inner_folds, people.groupby(y).nunique().min())
        splits = make_splits(y, people, n_folds, seed) if n_folds > 1 else ()
        found: dict[tuple[float, str | None], list[float]] = {}
        for train, test in splits:
            inputs = standardizer(reads).fit(values[train])
            seen, unseen = (inputs.transform(values[rows]) for rows in (train, test))
            for class_weight in (None, "balanced"):
                model = clone(linear).set_params(class_weight=class_weight)
                for C in [10.0**power for power in POWERS[self.kind]]:
                    model.set_params(C=C).fit(seen, y[train])
                    score = balanced_accuracy_score(y[test], model.predict(unseen))
                    found.setdefault((C, class_weight), []).append(score)
        choices = [(float(np.mean(scores)), *key) for key, scores in found.items()]
        score, C, class_weight = max(
            choices or [(float("nan"), 0.01, "balanced")],
            key=lambda one: (round(one[0], 9), -one[1], one[2] is None),
        )
        linear.set_params(C=C, class_weight=class_weight)
        self.model_ = make_pipeline(standardizer(reads), linear).fit(values, y)
        self.classes_ = self.model_.classes_
        is_balanced = class_weight == "balanced"
        prior = self.class_prior
        if prior is None:
            prior = BALANCED if is_balanced else TRAINING
        self._learn_prior(y, prior, is_balanced=is_balanced)
        chosen = {"C": C, "class_weight": class_weight or "none"}
        chosen |= {"covariates": [*getattr(self, "design_", ())]}
        self.fit_report_ = chosen | {"inner_balanced_accuracy": score}
        return self

    @available_if(lambda self: self.kind == "logistic")
    def predict_proba(
        self, X: np.ndarray, covariates: pd.DataFrame | None = None
    ) -> np.ndarray:
        """Return probabilities (n_scans, n_classes) at the shares `class_prior_`."""
        learned = self.model_.predict_proba(self._read(X, covariates))
        return self._assume_prior(learned)

    @available_if(lambda self: self.kind == "svm")
    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Return decision values: (n_scans, n_classes), or (n_scans,) for two."""
        return self.model_.decision_function(self._read(X))

    def predict(
        self, X: np.ndarray, covariates: pd.DataFrame | None = None
    ) -> np.ndarray:
        """Return the likeliest class of every scan, by the class weights of the fit."""
        return self.model_.predict(self._read(X, covariates))

    def _read(self, X: np.ndarray, covariates: Any = None) -> np.ndarray:
        if self.reads != "covariates":
            return read_edges(X) if self.reads == "edges" else read_features(X)
        W, _, row, column = _read_networks(X)
        edges = W[:, row, column].astype(float)
        size = edges.sum(axis=1), (edges > 0).mean(axis=1)
        return np.column_stack([*size, apply_design(self.design_, covariates)])


def shuffle_edges(X: np.ndarray, random_state: int) -> np.ndarray:
    """Move the edges of packed networks to other pairs of regions, all alike.

    Every network keeps its weights.
    """
    W, features, row, column = _read_networks(np.array(X))
    order = np.random.default_rng(random_state).permutation(len(row))
    edges = ((W + W.transpose(0, 2, 1)) / 2)[:, row, column][:, order]
    W[:] = 0
    W[:, row, column] = W[:, column, row] = edges
    return pack(W, features)


def remove_edges(X: np.ndarray, random_state: int = 0) -> np.ndarray:  # noqa: ARG001
    """Return packed scans without any edge."""
    W, features = unpack(np.array(X))
    return pack(np.zeros_like(W), features)


class Entry(NamedTuple):
    """How a model is made of a seed and settings."""

    make: Callable[[int, dict[str, Any]], Any]
    role: str


# What other models take of the settings of LSAP.
_OF_RIDGES = ("threshold", "weights", "connectome", "max_scale", "class_prior")
_OF_NETWORKS = (
    *("n_epochs", "n_starts", "threshold", "weights", "connectome", "class_prior"),
)


def _made(
    kind: str, given: str, takes: Sequence[str] | None = None, **fixed: Any
) -> Callable:
    """Return what makes a model of `brainlsap.model`; `takes` None is all settings."""

    def make(seed: int, settings: dict[str, Any]) -> Any:
        import brainlsap.model

        if takes is not None:
            told = settings | (settings.get("options") or {})
            settings = {k: told[k] for k in takes if told.get(k) is not None}
        model = getattr(brainlsap.model, kind)(given, random_state=seed)
        try:
            return model.set_params(**(settings | fixed))
        except ValueError as error:  # scikit-learn's, of a name that is none
            raise ParameterError(f"{error} Models are named by models=.") from error

    return make


def _lsap(kernel: str = "chebyshev", **fixed: Any) -> Callable:
    return _made("LSAPClassifier", kernel, **fixed)


def _ridge(scales: str) -> Callable:
    return _made("LSAPRidgeClassifier", scales, _OF_RIDGES)


def _network(name: str) -> Callable:
    make = _made("NetworkClassifier", name, _OF_NETWORKS)
    return lambda seed, settings: make(seed, {"n_starts": 4} | settings)


def _linear(**given: Any) -> Callable:
    def make(seed: int, settings: dict[str, Any]) -> TunedLinearClassifier:
        prior = settings.get("class_prior") or TRAINING
        return TunedLinearClassifier(random_state=seed, class_prior=prior, **given)

    return make


def _forest(seed: int, *_: Any) -> Any:
    forest = RandomForestClassifier(300, class_weight="balanced", random_state=seed)
    return make_pipeline(FunctionTransformer(read_features), standardizer(), forest)


def _changed(change: Callable[..., np.ndarray]) -> Callable:
    """Return what makes LSAP-C of connectomes that are changed."""

    def make(seed: int, settings: dict[str, Any]) -> Any:
        step = FunctionTransformer(change, kw_args={"random_state": seed})
        # never those that are made of features, where no connectome was read
        return make_pipeline(step, _lsap(connectome="own")(seed, settings))

    return make


NETWORKS = ("MLP", "GCN", "GAT", "GDC", "GraphHeat", "ADC")
MODELS: dict[str, Entry] = {
    "LSAP-C": Entry(_lsap("chebyshev"), "model"),
    "LSAP-H": Entry(_lsap("hermite"), "model"),
    "LSAP-L": Entry(_lsap("laguerre"), "model"),
    "Exact": Entry(_lsap("exact"), "model"),
    "LSAP-R": Entry(_ridge("auto"), "model"),
    "majority class": Entry(lambda *_: DummyClassifier(strategy="prior"), "baseline"),
    "logistic regression": Entry(_linear(kind="logistic"), "baseline"),
    "linear SVM": Entry(_linear(kind="svm"), "baseline"),
    "ridge without network": Entry(_ridge("none"), "baseline"),
    "ridge with one scale": Entry(_ridge("one"), "baseline"),
    "ridge with a scale per region": Entry(_ridge("regions"), "baseline"),
    "random forest": Entry(_forest, "baseline"),
    **{name: Entry(_network(name.lower()), "baseline") for name in NETWORKS},
    "features only": Entry(_changed(remove_edges), "control"),
    "edges only": Entry(_linear(reads="edges"), "control"),
    "shuffled edges": Entry(_changed(shuffle_edges), "control"),
    "frozen scales": Entry(_lsap(scale_mode="frozen"), "control"),
    "one global scale": Entry(_lsap(scale_mode="global"), "control"),
    "constant features": Entry(_lsap(inputs="constant"), "control"),
    "confounds only": Entry(_linear(reads="covariates"), "control"),
}
"""Every model, baseline and control by name."""

# Averaging along the connectome, more with each; "LSAP-R" chooses among them.
LADDER = (
    "ridge without network",
    "ridge with one scale",
    "ridge with a scale per region",
)

# Those that every study runs beside its models.
BASELINES = ("majority class", "logistic regression", "linear SVM", "LSAP-R", *LADDER)

# Names that stand for several models.
GROUPS: dict[str, tuple[str, ...]] = {
    "all": tuple(MODELS),
    "models": tuple(name for name, one in MODELS.items() if one.role != "control"),
    "controls": ("LSAP-C", *(n for n, one in MODELS.items() if one.role == "control")),
    "baselines": BASELINES,
    "default": ("LSAP-C", *BASELINES),
}


def make_models(
    names: str | Sequence[str] = "default",
    *,
    preset: str = "default",
    random_state: int = 0,
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
    **settings
        Further settings of LSAP; the other networks take n_epochs, n_starts and, as
        ridges do, what prepares a connectome; class_prior goes to all of them and to
        linear models.

    Returns
    -------
    dict of str to (classifier, role)
        In the order of :data:`MODELS`; role is "model", "baseline" or "control".
        Where several kernels start from a ridge, all get the largest scale that each
        of them is trusted at (LSAP-H: 5), unless `max_scale` is given: so they start
        alike, and only the kernel differs.

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
    names = [names] if isinstance(names, str) else list(names)
    if unknown := [name for name in names if _key(name) not in by_key]:
        raise ParameterError(
            f"models must be {', '.join(GROUPS)}, or some of {', '.join(MODELS)}; "
            f"got {unknown[0]!r}. Classifiers of your own are a dict by name."
        )
    if "kernel" in settings:
        raise ParameterError(
            f"kernel is said by models=, such as LSAP-L; got {settings['kernel']!r}."
        )
    wanted = {member for name in names for member in by_key[_key(name)]}
    settings = {"preset": preset, **settings}
    models = {
        name: (entry.make(random_state, settings), entry.role)
        for name, entry in MODELS.items()
        if name in wanted
    }
    _share_largest_scale([model for model, _ in models.values()])
    return models


def _share_largest_scale(models: Sequence[Any]) -> None:
    """Let kernels that start from a ridge start alike: set their `max_scale`.

    Networks start at the scales of the ridge, at most at half of the largest scale of
    their kernel. That differs between kernels, and so would what they learn.
    """
    hearts = [model[-1] if isinstance(model, Pipeline) else model for model in models]
    networks = [model for model in hearts if hasattr(model, "scale_mode")]
    if len({model.kernel for model in networks}) < 2:
        return
    resolved = [model.resolve() for model in networks]
    if any(one.start != "ridge" for one in resolved if one.inputs != "constant"):
        return
    largest = [float(one.max_scale) for one in resolved]
    if len(set(largest)) > 1:
        for model in networks:
            model.set_params(max_scale=min(largest))


def _key(name: object) -> str:
    return str(name).lower().replace(" ", "").replace("-", "").replace("_", "")
