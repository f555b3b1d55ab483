"""What a fit on the nodes of one graph can be told, and the paper's settings."""

from dataclasses import dataclass, fields, replace
from typing import Any

import torch

from brainlsap._arrays import check_at_least, check_choice
from brainlsap.exceptions import ParameterError
from brainlsap.graph import (
    EXPANSIONS,
    KERNELS,
    choose_degree,
    error_bound,
    largest_scale,
)


@dataclass(frozen=True)
class NodeSettings:
    """Every setting of one fit; see `LSAPNodeClassifier` for what each means."""

    kernel: str = "chebyshev"
    degree: int | None = None
    tolerance: float = 1e-3
    max_scale: float | None = None
    max_exact_nodes: int = 8000
    scale_mode: str = "node"
    scale_signal: str = "consistency"
    initial_scale: float | None = None
    scale_step: float = 10.0
    scale_clip: float = 0.1
    scale_smoothness: float = 0.0
    scale_penalty: str = "none"
    penalty_weight: float = 1.0
    n_layers: int = 1
    head: str = "linear"
    hidden_units: int = 64
    dropout: float = 0.5
    input_dropout: float = 0.5
    node_dropout: float = 0.5
    n_views: int = 2
    consistency: float = 1.0
    temperature: float = 0.5
    self_loops: bool = True
    normalize: str = "row"
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    n_epochs: int = 300
    patience: int = 100
    watch: str = "accuracy"


NODE_PRESETS = {
    "default": NodeSettings(),
    "paper": NodeSettings(
        tolerance=1e-4,
        scale_signal="labels",
        initial_scale=2.0,
        scale_step=1.0,
        scale_penalty="barrier",
        n_layers=2,
        head="convolution",
        input_dropout=0.0,
        node_dropout=0.0,
        n_views=1,
        consistency=0.0,
        self_loops=False,
    ),
}

# The supplement's table: hidden units, learning rate, alpha, beta_s. Its b (1.41 to
# 1.65) lies below the largest eigenvalue; ours is 2, where the bound holds.
PAPER_BY_DATASET: dict[str, dict[str, float]] = {
    "cora": {
        "hidden_units": 64,
        "learning_rate": 0.01,
        "penalty_weight": 0.1,
        "scale_step": 1.0,
    },
    "citeseer": {
        "hidden_units": 32,
        "learning_rate": 0.01,
        "penalty_weight": 1.0,
        "scale_step": 10.0,
    },
    "pubmed": {
        "hidden_units": 64,
        "learning_rate": 0.1,
        "penalty_weight": 1.0,
        "scale_step": 10.0,
    },
    "amazon-computers": {
        "hidden_units": 32,
        "learning_rate": 0.001,
        "penalty_weight": 1.0,
        "scale_step": 1.0,
    },
    "amazon-photo": {
        "hidden_units": 32,
        "learning_rate": 0.01,
        "penalty_weight": 1.0,
        "scale_step": 10.0,
    },
    "coauthor-cs": {
        "hidden_units": 32,
        "learning_rate": 0.01,
        "penalty_weight": 1.0,
        "scale_step": 1.0,
    },
}

# The degrees of the paper's supplement.
PAPER_DEGREES = {"exact": None, "chebyshev": 20, "hermite": 30, "laguerre": 20}

CHOICES = {
    "kernel": KERNELS,
    "scale_mode": ("node", "global", "descriptors", "frozen"),
    "scale_signal": ("labels", "consistency", "validation"),
    "scale_penalty": ("none", "barrier", "l1"),
    "head": ("linear", "convolution"),
    "normalize": ("row", "none"),
    "watch": ("accuracy", "loss"),
}

LOWEST = {
    "max_exact_nodes": 1,
    "scale_step": 0.0,
    "scale_clip": 0.0,
    "scale_smoothness": 0.0,
    "penalty_weight": 0.0,
    "n_layers": 1,
    "hidden_units": 1,
    "n_views": 1,
    "consistency": 0.0,
    "learning_rate": 0.0,
    "weight_decay": 0.0,
    "n_epochs": 1,
    "patience": 0,
}

# Where scales start, and how far they may go, unless told otherwise.
START, FARTHEST = 4.0, 8.0
# A start that is wrong by more is refused.
_UNTRUSTED_ERROR = 1e-2


def resolve_node_settings(
    preset: str, given: dict[str, Any], dataset: str = ""
) -> NodeSettings:
    """Return a preset with the settings that were given in place of its own.

    Parameters
    ----------
    preset : {"default", "paper"}
        Where the rest comes from.
    given : dict
        Settings by name; None means the preset's.
    dataset : str
        Name of the graph: the paper's hyperparameters differ by data set; a graph
        that it does not have gets Cora's.

    Returns
    -------
    NodeSettings
        `degree` (but for the exact kernel), `initial_scale` and `max_scale` are
        numbers that can be trusted.

    Raises
    ------
    ParameterError
        For unknown choices, numbers out of range, and starts beyond the kernel.

    Examples
    --------
    >>> resolve_node_settings("paper", {}, "citeseer").hidden_units
    32
    """
    check_choice("preset", preset, NODE_PRESETS)
    settings = NODE_PRESETS[preset]
    if preset == "paper":
        published = PAPER_BY_DATASET.get(dataset, PAPER_BY_DATASET["cora"])
        settings = replace(settings, **published)  # type: ignore[arg-type]
    names = {field.name for field in fields(NodeSettings)}
    chosen = {k: v for k, v in given.items() if k in names and v is not None}
    settings = replace(settings, **chosen)
    check_node_settings(settings)
    if preset == "paper" and settings.degree is None:
        settings = replace(settings, degree=PAPER_DEGREES[settings.kernel])
    return settle_kernel(settings)


def check_node_settings(settings: NodeSettings) -> None:
    """Raise for the first setting that cannot be used."""
    for name, choices in CHOICES.items():
        check_choice(name, getattr(settings, name), choices)
    for name, lowest in LOWEST.items():
        check_at_least(name, getattr(settings, name), lowest)
    for name in ("dropout", "input_dropout", "node_dropout"):
        if not 0 <= getattr(settings, name) <= 0.95:
            raise ParameterError(
                f"{name} must lie between 0 and 0.95, got {getattr(settings, name)!r}."
            )
    for name in ("tolerance", "temperature"):
        if not 0 < getattr(settings, name) <= 1:
            raise ParameterError(
                f"{name} must lie above 0 and at most at 1, got "
                f"{getattr(settings, name)!r}."
            )
    for name in ("initial_scale", "max_scale"):
        if getattr(settings, name) is not None:
            check_at_least(name, getattr(settings, name), 0.0)


def settle_kernel(settings: NodeSettings) -> NodeSettings:
    """Fill in degree, start and largest scale, so that each is known and trusted.

    Parameters
    ----------
    settings : NodeSettings
        As given.

    Returns
    -------
    NodeSettings

    Raises
    ------
    ParameterError
        If the start lies beyond what the kernel is trusted at.

    Examples
    --------
    >>> settle_kernel(NodeSettings(scale_mode="frozen")).degree
    7
    """
    kernel, degree = settings.kernel, settings.degree
    limit = settings.max_scale
    if limit is None:
        limit = max(FARTHEST, settings.initial_scale or 0.0)
    if kernel != "exact":
        # signals on large graphs are float32
        reach = EXPANSIONS[kernel].recurrence_limit
        limit = min(limit, reach.get(torch.float32, limit))
    start = settings.initial_scale
    start = min(START, limit) if start is None else start
    if settings.scale_mode == "frozen" and settings.max_scale is None:
        limit = min(limit, max(start, 1e-3))
    if start > limit:
        raise ParameterError(
            f"initial_scale {start:g} lies above {limit:g}, the largest scale of the "
            f"{kernel} kernel here. Start lower, raise max_scale, or use the chebyshev "
            "kernel."
        )
    if kernel == "exact":
        degree = None
    elif degree is None:
        degree = choose_degree(kernel, limit, settings.tolerance)
    else:
        limit = _trusted(settings, degree, start, limit)
    return replace(settings, degree=degree, initial_scale=start, max_scale=limit)


def _trusted(settings: NodeSettings, degree: int, start: float, limit: float) -> float:
    """Return how far scales may go with a degree that was given."""
    kernel = settings.kernel
    at_start = error_bound(kernel, start, degree, dtype=torch.float64)
    if at_start > _UNTRUSTED_ERROR:
        raise ParameterError(
            f"the {kernel} kernel of degree {degree} can be wrong by {at_start:.2g} at "
            f"initial_scale {start:g}. Leave degree at None, raise it, or start lower."
        )
    trusted = largest_scale(kernel, degree, max(settings.tolerance, at_start))
    return min(limit, max(trusted, start))
