"""Models of the node task by the names of the paper, and how LSAP was chosen."""

from typing import Any

from brainlsap._arrays import check_choice
from brainlsap.exceptions import ParameterError
from brainlsap.model import NODE_BASELINES, LSAPNodeClassifier, NodeBaseline

# As the command takes them, and as the paper prints them.
LSAP_NAMES = {
    "lsap-c": ("chebyshev", "LSAP-C"),
    "lsap-h": ("hermite", "LSAP-H"),
    "lsap-l": ("laguerre", "LSAP-L"),
    "exact": ("exact", "Exact"),
}
BASELINE_NAMES = {
    "mlp": "MLP",
    "gcn": "GCN",
    "gat": "GAT",
    "appnp": "APPNP",
    "gdc": "GDC",
    "sgc": "SGC",
    "graphheat": "GraphHeat",
    "gcnii": "GCNII",
    "grand": "GRAND (random propagation)",
    "dagnn": "DAGNN",
    "adc": "ADC",
}
NODE_MODELS = {
    **BASELINE_NAMES,
    **{key: printed for key, (_, printed) in LSAP_NAMES.items()},
}

# Other names that people use.
_ALIASES = {
    "lsap": "lsap-c",
    **{kernel: key for key, (kernel, _) in LSAP_NAMES.items()},
}

# How scales are learned without any label of a test node.
VARIANTS: dict[str, dict[str, Any]] = {
    "frozen": {"scale_mode": "frozen"},
    "global": {"scale_mode": "global"},
    "labels": {"scale_signal": "labels", "scale_step": 100.0},
    "smooth": {
        "scale_signal": "labels",
        "scale_step": 100.0,
        "scale_smoothness": 4.0,
    },
    "descriptors": {"scale_mode": "descriptors"},
    "consistency": {"scale_signal": "consistency", "scale_step": 10.0},
    "validation": {"scale_signal": "validation", "scale_step": 100.0},
    "paper": {"preset": "paper"},
}

# Settings of the rest by data set, chosen on validation nodes of the public split.
# Those of the 60/20/20 data sets, by Amazon Photo, in a few trials.
SETTINGS: dict[str, dict[str, Any]] = {
    "cora": {},
    "citeseer": {},
    "pubmed": {
        "learning_rate": 0.1,
        "weight_decay": 1e-3,
        "temperature": 0.2,
        "hidden_units": 32,
        "tolerance": 1e-2,
        "n_epochs": 150,
        "patience": 50,
    },
}
_MANY_LABELS = {
    "consistency": 0.0,
    "n_views": 1,
    "node_dropout": 0.0,
    "initial_scale": 1.0,
    "input_dropout": 0.3,
    "dropout": 0.3,
    "normalize": "none",
    "weight_decay": 5e-5,
}
for _name in ("amazon-computers", "amazon-photo", "coauthor-cs"):
    SETTINGS[_name] = _MANY_LABELS

# The variant of the best mean validation accuracy.
CHOSEN_VARIANT = {"cora": "global", "citeseer": "frozen", "pubmed": "frozen"}


def model_key(name: str) -> str:
    """Return the key of a model in `NODE_MODELS`; capitals do not matter."""
    key = name.strip().lower()
    key = _ALIASES.get(key, key)
    check_choice("model", key, NODE_MODELS)
    return key


def chosen_variant(dataset: str) -> str:
    """Return the variant that was chosen on a data set's validation nodes."""
    return CHOSEN_VARIANT.get(dataset, "global")


def node_model(
    name: str,
    dataset: str = "",
    *,
    variant: str = "chosen",
    random_state: int = 0,
    n_epochs: int | None = None,
    **given: Any,
) -> LSAPNodeClassifier | NodeBaseline:
    """Return a model of the node task by name, unfitted.

    Parameters
    ----------
    name : str
        One of `NODE_MODELS`, such as `lsap-c` or `gcn`.
    dataset : str
        Its settings, chosen on validation nodes.
    variant : str
        Of LSAP, how scales are learned: one of `VARIANTS`, or the one that was
        chosen on the data set's validation nodes.
    random_state : int
        Seed.
    n_epochs : int, optional
        At the most.
    **given
        Further settings of :class:`brainlsap.model.LSAPNodeClassifier`.

    Returns
    -------
    LSAPNodeClassifier or NodeBaseline

    Raises
    ------
    ParameterError
        For an unknown name or variant, or settings given to a baseline.

    Examples
    --------
    >>> node_model("lsap-l", "cora", variant="frozen").kernel
    'laguerre'
    """
    name = model_key(name)
    if name in NODE_BASELINES:
        if given:
            raise ParameterError(
                f"settings are for LSAP only; the baseline {name} was given "
                f"{', '.join(given)}."
            )
        return NodeBaseline(name, random_state=random_state, n_epochs=n_epochs)
    check_choice("variant", variant, (*VARIANTS, "chosen"))
    if variant == "chosen":
        variant = chosen_variant(dataset)
    settings = {} if variant == "paper" else SETTINGS.get(dataset, {})
    settings = {**settings, **VARIANTS[variant], **given}
    if n_epochs is not None:
        settings["n_epochs"] = n_epochs
    kernel = LSAP_NAMES[name][0]
    if kernel == "hermite" and variant != "paper":
        # its recurrence is right up to 2.5 only: it starts as far as it can
        settings["initial_scale"] = min(settings.get("initial_scale", 2.5), 2.5)
    return LSAPNodeClassifier(kernel, random_state=random_state, **settings)
