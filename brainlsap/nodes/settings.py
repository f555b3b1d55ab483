"""What a fit on the nodes of one graph is made of.

`settings.json` holds, by data set, what the files count (Table 1 of the paper: nodes,
edges, classes, features), the paper's hyperparameters (its supplement; its b, 1.41 to
1.65, lies below the largest eigenvalue: ours is 2, where the bound holds), ours
(`lsap`, and the `variant` of how scales are learned; chosen on validation nodes of the
public split, those of the 60/20/20 sets on Amazon Photo), and each baseline's where it
differs from that of its publication for Cora. Features of hundreds of words a node are
not divided by their sum, which would make them too small to learn from.
"""

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch

from brainlsap.arrays import check_at_least, check_choice
from brainlsap.exceptions import ParameterError
from brainlsap.graph import (
    EXPANSIONS,
    KERNELS,
    choose_degree,
    error_bound,
    largest_scale,
)
from brainlsap.model.settings import PAPER_DEGREES, UNTRUSTED_ERROR


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


TABLES = json.loads(Path(__file__).with_name("settings.json").read_text("utf-8"))

_CHOICES = {
    "kernel": KERNELS,
    "scale_mode": ("node", "global", "descriptors", "frozen"),
    "scale_signal": ("labels", "consistency", "validation"),
    "scale_penalty": ("none", "barrier", "l1"),
    "head": ("linear", "convolution"),
    "normalize": ("row", "none"),
}
_DROPOUTS = ("dropout", "input_dropout", "node_dropout")
# The lowest value; numbers that are not named may be 0.
_LOWEST = {
    **dict.fromkeys(("tolerance", "temperature"), 1e-12),
    **dict.fromkeys(("n_layers", "hidden_units", "n_views", "n_epochs"), 1),
}


def resolve_node_settings(
    preset: str, given: dict[str, Any], dataset: str = ""
) -> NodeSettings:
    """Return a preset with the settings that were given (not None) in their place."""
    check_choice("preset", preset, ("default", "paper"))
    settings = NodeSettings()
    if preset == "paper":
        known = TABLES["datasets"]
        published = known.get(dataset, known["cora"])["paper"]
        settings = replace(settings, **TABLES["paper"] | published)
    names = [field.name for field in fields(NodeSettings)]
    for name in given:
        check_choice("option", name, names)
    chosen = {name: value for name, value in given.items() if value is not None}
    settings = replace(settings, **chosen)
    check_node_settings(settings)
    if preset == "paper" and settings.degree is None:
        settings = replace(settings, degree=PAPER_DEGREES.get(settings.kernel))
    return settle_kernel(settings)


def check_node_settings(settings: NodeSettings) -> None:
    """Raise for the first setting that cannot be used."""
    for name, value in vars(settings).items():
        if name in _CHOICES:
            check_choice(name, value, _CHOICES[name])
        elif value is not None:
            check_at_least(name, value, _LOWEST.get(name, 0))
    for name in _DROPOUTS:
        if getattr(settings, name) > 0.95:
            raise ParameterError(
                f"{name} must be at most 0.95, got {getattr(settings, name)!r}."
            )
    if settings.scale_mode == "descriptors" and settings.max_scale == 0:
        raise ParameterError(
            "max_scale must be above 0 where scale_mode is 'descriptors', whose scales "
            "are shares of it. Use scale_mode='frozen' with initial_scale=0 for none."
        )


def settle_kernel(settings: NodeSettings) -> NodeSettings:
    """Fill in degree, start and largest scale, so that each is known and trusted."""
    kernel, degree, start = settings.kernel, settings.degree, settings.initial_scale
    limit = settings.max_scale
    if limit is None:
        limit = max(8.0, start or 0.0)
    if kernel != "exact":
        # signals on large graphs are float32
        trusted = EXPANSIONS[kernel].recurrence_limit
        limit = min(limit, trusted.get(torch.float32, limit))
    start = min(4.0, limit) if start is None else start
    if settings.scale_mode == "frozen" and settings.max_scale is None:
        limit = min(limit, max(start, 1e-3))
    if start > limit:
        raise ParameterError(
            f"initial_scale {start:g} lies above {limit:g}, the largest scale of the "
            f"{kernel} kernel here. Start lower, raise max_scale, or use chebyshev."
        )
    if kernel == "exact":
        degree = None
    elif degree is None:
        degree = choose_degree(kernel, limit, settings.tolerance)
    else:
        at_start = error_bound(kernel, start, degree, dtype=torch.float64)
        if at_start > UNTRUSTED_ERROR:
            raise ParameterError(
                f"the {kernel} kernel of degree {degree} can be wrong by "
                f"{at_start:.2g} at initial_scale {start:g}; raise it, or start lower."
            )
        tolerance = max(settings.tolerance, at_start)
        limit = min(limit, max(largest_scale(kernel, degree, tolerance), start))
    return replace(settings, degree=degree, initial_scale=start, max_scale=limit)
