"""What a fit on the nodes of one graph is made of.

`settings.json` holds, by data set, what the files hold (nodes; edges, each once: the
paper's Table 1 counts those of Planetoid as listed; classes, features), the `variant`
of how LSAP's scales are learned, and settings: the paper's hyperparameters (its
supplement; its b, 1.41 to 1.65, lies below the largest eigenvalue: ours is 2, where the
bound holds), ours (`lsap`; chosen on validation nodes of the public split, those of the
60/20/20 sets on Amazon Photo and Computers), and each baseline's where they differ from
those of its publication for Cora, which stand in `networks`, with the `title` of models
that brains are not compared with. An entry adds to the one that it is `like`. Features
of hundreds of words a node are not divided by their sum, which would make them too
small to learn from.
"""

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import torch

from brainlsap.exceptions import check_choice
from brainlsap.graph.kernels import find_recurrence_limit
from brainlsap.model.network import NETWORKS
from brainlsap.model.settings import (
    PAPER_DEGREES,
    HeatSettings,
    check_settings,
    resolve_kernel,
)


@dataclass(frozen=True)
class NodeSettings(HeatSettings):
    """Every setting of one fit; see `LSAPNodeClassifier` for what each means."""

    tolerance: float = 1e-3
    max_exact_nodes: int = 8000
    scale_mode: Literal["node", "global", "frozen"] = "node"
    scale_signal: Literal["labels", "consistency", "validation"] = "consistency"
    initial_scale: float | None = None
    head: Literal["linear", "convolution"] = "linear"
    hidden_units: int = 64
    dropout: float = 0.5
    input_dropout: float = 0.5
    node_dropout: float = 0.5
    n_views: int = 2
    consistency: float = 1.0
    temperature: float = 0.5
    self_loops: bool = True
    normalize: Literal["row", "none"] = "row"
    weight_decay: float = 5e-4
    n_epochs: int = 300
    patience: int = 100


_TABLES = json.loads(Path(__file__).with_name("settings.json").read_text("utf-8"))


def _inherit_settings(settings_entries: dict[str, Any]) -> dict[str, Any]:
    """Return entries, each completed by the earlier one that its `like` names."""
    completed_entries: dict[str, Any] = {}
    for entry_name, settings_entry in settings_entries.items():
        completed_entries[entry_name] = (
            completed_entries.get(settings_entry.pop("like", ""), {}) | settings_entry
        )
    return completed_entries


def _title_models(network_entries: dict[str, Any]) -> dict[str, str]:
    """Return titles of the networks that are models, and remove them from `networks`.

    A network that brains are compared with, too, has its title there. One without any
    title only holds settings for others.
    """
    title_of_network: dict[str, str] = {}
    for network_name, network_entry in network_entries.items():
        title = network_entry.pop("title", "")
        if network_name in NETWORKS:
            title = NETWORKS[network_name].title
        if title:
            title_of_network[network_name] = title
    return title_of_network


NODE_MODELS = _title_models(_TABLES["networks"])
"""Printed names of the models, as in the paper, by the names that are asked for."""
NODE_DATASETS, _NETWORKS = map(
    _inherit_settings, (_TABLES["datasets"], _TABLES["networks"])
)
# How LSAP's scales are learned without any label of a test node.
VARIANTS: dict[str, dict[str, Any]] = _TABLES["variants"]


def chosen_variant(model: str, variant_name: str = "chosen", dataset: str = "") -> str:
    """Return how a model's scales are learned; "" where it has none of its own."""
    if "kernel" not in _NETWORKS[model]:
        return ""
    if variant_name != "chosen":
        return variant_name
    return str(NODE_DATASETS.get(dataset, {}).get("variant", "consistency"))


def resolve_node_settings(
    model: str, variant: str, options: dict[str, Any], dataset: str = ""
) -> NodeSettings:
    """Return the settings of a model on a data set, changed by `options` (not None)."""
    check_choice("model", model, NODE_MODELS)
    check_choice("variant", variant, (*VARIANTS, "chosen"))
    variant = chosen_variant(model, variant, dataset)
    for option_name in options:
        check_choice(
            "option",
            option_name,
            {setting_field.name for setting_field in fields(NodeSettings)},
        )
    dataset_settings = NODE_DATASETS.get(dataset, {})
    setting_values = dict(_NETWORKS[model])
    if variant == "paper":
        setting_values |= VARIANTS[variant] | dataset_settings.get("paper", {})
        setting_values["degree"] = PAPER_DEGREES.get(setting_values["kernel"])
    elif variant:
        setting_values |= VARIANTS[variant] | dataset_settings.get("lsap", {})
    else:
        setting_values |= dataset_settings.get("baselines", {}) | dataset_settings.get(
            model, {}
        )
    setting_values |= {
        option_name: option_value
        for option_name, option_value in options.items()
        if option_value is not None
    }
    settings = NodeSettings(**setting_values)
    check_settings(settings)
    return _complete_scales(settings) if settings.network == "heat" else settings


def _complete_scales(settings: Any) -> Any:
    """Fill in degree, start and largest scale, so that each is known and accurate."""
    kernel_name = settings.kernel
    initial_scale = settings.initial_scale
    max_scale = settings.max_scale
    scale_limit = max(8.0, initial_scale or 0.0) if max_scale is None else max_scale
    if kernel_name != "exact":
        # signals on large graphs are float32
        trusted_limit = find_recurrence_limit(kernel_name, torch.float32)
        scale_limit = min(scale_limit, trusted_limit)
    initial_scale = min(4.0, scale_limit) if initial_scale is None else initial_scale
    if settings.scale_mode == "frozen" and max_scale is None:
        scale_limit = min(scale_limit, max(initial_scale, 1e-3))
    return resolve_kernel(
        replace(settings, initial_scale=initial_scale, max_scale=scale_limit)
    )
