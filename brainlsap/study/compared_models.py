"""Every model and control that LSAP is compared with, by name."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from brainlsap.evaluation import (
    CovariatesAsFeatures,
    PermutedLabels,
    ShuffledEdges,
    baseline_models,
)
from brainlsap.evaluation.controls import TunedLinearClassifier
from brainlsap.evaluation.trees import TreeClassifier
from brainlsap.exceptions import ParameterError
from brainlsap.model import (
    DiffusedLogisticRegression,
    LSAPClassifier,
    NetworkClassifier,
)
from brainlsap.study.models import MODEL_NAMES

FAST = {"n_starts": 1, "initial_scale": 1.0, "n_epochs": 200, "patience": 20}
"""Fixed settings of LSAP for a quick comparison: one start, one starting scale."""

FAST_NETWORK = {"n_starts": 1, "n_epochs": 60, "patience": 8}
"""Settings of the other networks for a quick comparison."""

FULL_NETWORK = {"n_starts": 4}
"""As many starts as LSAP averages by default."""

NETWORK_NAMES = {
    "MLP": "mlp",
    "GCN": "gcn",
    "GAT": "gat",
    "GDC": "gdc",
    "GraphHeat": "graphheat",
    "ADC": "adc",
}

# How many networks a fit trains in full (three scales on three slices, one more
# start) against one in a fast comparison; for the estimate of the time.
_TRAININGS = {"lsap": 10, "network": 4, "other": 1}


class Settings(NamedTuple):
    """What a comparison can be told of its models."""

    random_state: int = 0
    fast: bool = False
    n_epochs: int | None = None
    n_starts: int | None = None

    def lsap(self, kernel: str = "chebyshev", **given: Any) -> LSAPClassifier:
        """Return LSAP with one of its settings changed."""
        chosen = (FAST if self.fast else {}) | self._asked() | given
        model = LSAPClassifier(kernel, random_state=self.random_state)
        return model.set_params(**chosen)

    def network(self, name: str) -> NetworkClassifier:
        """Return one of the other networks."""
        chosen = (FAST_NETWORK if self.fast else FULL_NETWORK) | self._asked()
        return NetworkClassifier(name, random_state=self.random_state, **chosen)

    def _asked(self) -> dict[str, Any]:
        asked = {"n_epochs": self.n_epochs, "n_starts": self.n_starts}
        return {name: value for name, value in asked.items() if value is not None}


class Entry(NamedTuple):
    """How a model is made, and what it is: a model or a control."""

    make: Callable[[Settings], Any]
    work: str = "other"
    is_control: bool = False


def _covariates(settings: Settings) -> Any:
    from sklearn.pipeline import make_pipeline

    linear = TunedLinearClassifier(random_state=settings.random_state)
    return make_pipeline(CovariatesAsFeatures(), linear)


def _shuffled(settings: Settings) -> Any:
    from sklearn.pipeline import make_pipeline

    return make_pipeline(ShuffledEdges(settings.random_state), settings.lsap())


def _baseline(name: str) -> Callable[[Settings], Any]:
    return lambda settings: baseline_models(settings.random_state)[name]


def _network(name: str) -> Entry:
    return Entry(lambda told: told.network(name), "network")


def _lsap(kernel: str) -> Entry:
    return Entry(lambda told: told.lsap(kernel), "lsap")


def _control(**given: Any) -> Entry:
    return Entry(lambda told: told.lsap(**given), "lsap", is_control=True)


COMPARED: dict[str, Entry] = {
    **{
        MODEL_NAMES[kernel]: _lsap(kernel)
        for kernel in ("chebyshev", "hermite", "laguerre", "exact")
    },
    "linear SVM": Entry(_baseline("linear SVM")),
    "logistic regression": Entry(_baseline("logistic regression")),
    "random forest": Entry(
        lambda told: TreeClassifier("forest", random_state=told.random_state)
    ),
    "gradient boosting": Entry(
        lambda told: TreeClassifier("boosting", 100, random_state=told.random_state)
    ),
    **{label: _network(name) for label, name in NETWORK_NAMES.items()},
    "majority class": Entry(_baseline("majority class"), is_control=True),
    "covariates only": Entry(_covariates, is_control=True),
    # the read-out of LSAP without any diffusion
    "features only": _control(scale_mode="frozen", initial_scale=0.0),
    "edges only": Entry(
        lambda told: TunedLinearClassifier(
            random_state=told.random_state, reads="edges"
        ),
        is_control=True,
    ),
    "diffused logistic regression": Entry(
        lambda told: DiffusedLogisticRegression(random_state=told.random_state),
        is_control=True,
    ),
    "constant features": _control(inputs="constant"),
    "random-walk kernel": _control(normalization="random_walk"),
    "shuffled edges": Entry(_shuffled, "lsap", is_control=True),
    "one global scale": _control(scale_mode="global"),
    "frozen scales": _control(scale_mode="frozen"),
    "permuted labels": Entry(
        lambda told: PermutedLabels(told.lsap(), told.random_state),
        "lsap",
        is_control=True,
    ),
}
"""Every model and control by name; the first is what the others are tested against."""

CONTROLS = tuple(name for name, entry in COMPARED.items() if entry.is_control)
"""Those that say where a score comes from."""


def find_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return models by the names of tables; case, blanks and hyphens do not matter.

    Parameters
    ----------
    names : str or sequence of str
        "all", "models", "controls", or names of :data:`COMPARED`.

    Returns
    -------
    tuple of str
        In the order of :data:`COMPARED`.

    Raises
    ------
    ParameterError
        For an unknown name; the message lists all.

    Examples
    --------
    >>> find_names(["lsap-c", "linear-svm"])
    ('LSAP-C', 'linear SVM')
    """
    groups = {
        "all": tuple(COMPARED),
        "models": tuple(name for name in COMPARED if name not in CONTROLS),
        "controls": CONTROLS,
    }
    asked = [names] if isinstance(names, str) else list(names)
    by_key = {_key(name): (name,) for name in COMPARED} | groups
    found: set[str] = set()
    for name in asked:
        if _key(name) not in by_key:
            raise ParameterError(
                f"models must be all, models, controls, or some of "
                f"{', '.join(COMPARED)}; got {name!r}."
            )
        found |= set(by_key[_key(name)])
    if not found:
        raise ParameterError("models must name at least one, got none.")
    return tuple(name for name in COMPARED if name in found)


def full_work(name: str) -> int:
    """Return how many times the work of a fast fit a full one is, roughly."""
    return _TRAININGS[COMPARED[name].work]


def _key(name: str) -> str:
    return name.lower().replace(" ", "").replace("-", "").replace("_", "")
