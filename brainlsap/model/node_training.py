"""One training loop for every model on nodes: LSAP and the baselines alike.

Labels of the training nodes teach, those of the validation nodes choose the epoch;
no other label is handed to it.
"""

import copy
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from brainlsap.model.node_settings import NodeSettings
from brainlsap.model.propagation import HeatScale

# The released code pushes a scale up where it is below this.
_BARRIER = 0.01


@dataclass(frozen=True, eq=False)
class LabelledNodes:
    """Some nodes and their classes.

    Parameters
    ----------
    nodes : int Tensor of shape (n_items,)
        Which nodes.
    codes : int Tensor of shape (n_items,)
        Their classes, from 0.
    """

    nodes: Tensor
    codes: Tensor

    def score(self, logits: Tensor) -> tuple[float, float]:
        """Return accuracy and cross-entropy of logits of all nodes."""
        mine = logits[self.nodes]
        right = (mine.argmax(1) == self.codes).float().mean()
        return float(right), float(nn.functional.cross_entropy(mine, self.codes))


@dataclass(eq=False)
class NodeRun:
    """What a run on nodes went through; entries of the lists are epochs.

    Parameters
    ----------
    best_epoch : int
        The epoch that was kept, from 0.
    validation_accuracy, validation_loss : float
        At that epoch; NaN without validation nodes.
    n_epochs : int
        Epochs that were trained.
    seconds : float
        Wall time of training, validation with it.
    train_loss, validation_accuracies, mean_scale : list of float
        One entry each epoch.
    """

    best_epoch: int = -1
    validation_accuracy: float = float("nan")
    validation_loss: float = float("nan")
    n_epochs: int = 0
    seconds: float = 0.0
    train_loss: list[float] = field(default_factory=list)
    validation_accuracies: list[float] = field(default_factory=list)
    mean_scale: list[float] = field(default_factory=list)


def train_nodes(
    network: nn.Module,
    train: LabelledNodes,
    validation: LabelledNodes | None,
    settings: NodeSettings,
) -> NodeRun:
    """Train until validation stops improving; the network is left at its best.

    Parameters
    ----------
    network : Module
        `network(n_views)` returns logits of shape (n_nodes, n_views, n_classes); a
        `heat` that it has takes plain clipped steps.
    train : LabelledNodes
        What is learned from.
    validation : LabelledNodes or None
        What chooses the epoch; None keeps the last.
    settings : NodeSettings
        Of the fit.

    Returns
    -------
    NodeRun
    """
    groups = _weight_groups(network, settings.weight_decay)
    adam = torch.optim.Adam(groups, lr=settings.learning_rate)
    run, start = NodeRun(), time.perf_counter()
    best: tuple[tuple[float, float], dict] | None = None
    for epoch in range(settings.n_epochs):
        loss = take_epoch(network, train, settings, adam, validation)
        run.train_loss.append(loss)
        run.n_epochs = epoch + 1
        if not np.isfinite(loss):
            break
        if validation is None:
            run.best_epoch = epoch
            continue
        accuracy, value = look(network, validation)
        run.validation_accuracies.append(accuracy)
        rank = (
            (accuracy, -value) if settings.watch == "accuracy" else (-value, accuracy)
        )
        if best is None or rank > best[0]:
            best = (rank, copy.deepcopy(network.state_dict()))
            run.best_epoch = epoch
            run.validation_accuracy, run.validation_loss = accuracy, value
        elif settings.patience and epoch - run.best_epoch >= settings.patience:
            break
    if best is not None:
        network.load_state_dict(best[1])
    network.eval()
    run.seconds = time.perf_counter() - start
    return run


@torch.no_grad()
def look(network: nn.Module, nodes: LabelledNodes) -> tuple[float, float]:
    """Return accuracy and cross-entropy of some nodes, nothing dropped."""
    network.eval()
    return nodes.score(network(1)[:, 0])


def _weight_groups(network: nn.Module, decay: float) -> list[dict[str, Any]]:
    """Return weights by their decay: the settings', or that of their own module."""
    own = {
        id(weight): float(module.weight_decay)  # type: ignore[arg-type]
        for module in network.modules()
        if hasattr(module, "weight_decay")
        for weight in module.parameters()
    }
    groups: dict[float, list[Tensor]] = {}
    for name, weight in network.named_parameters():
        if "raw_scale" not in name:
            groups.setdefault(own.get(id(weight), decay), []).append(weight)
    return [{"params": group, "weight_decay": d} for d, group in groups.items()]


def take_epoch(
    network: nn.Module,
    train: LabelledNodes,
    settings: NodeSettings,
    adam: torch.optim.Optimizer,
    validation: LabelledNodes | None = None,
) -> float:
    """Take one full-batch epoch with both updates; return the loss of the labels.

    Parameters
    ----------
    network : Module
        As for :func:`train_nodes`.
    train : LabelledNodes
        What is learned from.
    settings : NodeSettings
        Of the fit.
    adam : Optimizer
        Of the weights.
    validation : LabelledNodes or None
        Moves the scales where `scale_signal` says so.

    Returns
    -------
    float
    """
    network.train()
    network.zero_grad()
    logits = network(settings.n_views)
    loss = label_loss(logits, train)
    total = loss
    if settings.consistency:
        total = loss + settings.consistency * inconsistency(
            logits, settings.temperature
        )
    heat = _free_scales(network)
    slope = None
    if heat is not None and settings.scale_signal == "labels" and settings.consistency:
        (slope,) = torch.autograd.grad(loss, heat.raw_scale, retain_graph=True)
    total.backward()
    signal = settings.scale_signal
    if heat is not None and signal == "validation" and validation is not None:
        chosen = label_loss(network(1), validation)
        (slope,) = torch.autograd.grad(chosen, heat.raw_scale)
    adam.step()
    if heat is not None:
        heat.raw_scale.grad = heat.raw_scale.grad if slope is None else slope
        _step_scales(network, heat, settings)
    return float(loss.detach())


def _free_scales(network: nn.Module) -> HeatScale | None:
    """Return the scales that take plain steps, if the network has any."""
    heat = getattr(network, "heat", None)
    if isinstance(heat, HeatScale) and heat.raw_scale.requires_grad:
        return heat
    return None


def label_loss(logits: Tensor, train: LabelledNodes) -> Tensor:
    """Return the mean cross-entropy of the labelled nodes over all views."""
    mine = logits[train.nodes]
    codes = train.codes[:, None].expand(mine.shape[:2])
    return nn.functional.cross_entropy(mine.flatten(0, 1), codes.flatten())


def inconsistency(logits: Tensor, temperature: float) -> Tensor:
    """Return how far views differ from their own sharpened mean, over all nodes.

    No label enters: it is the regulariser of random propagation (Feng et al. 2020).
    """
    probability = logits.softmax(-1)
    sharp = probability.mean(1).pow(1 / temperature)
    target = (sharp / sharp.sum(1, keepdim=True)).detach()
    return (probability - target[:, None]).square().sum(-1).mean()


@torch.no_grad()
def _step_scales(network: nn.Module, heat: HeatScale, settings: NodeSettings) -> None:
    """Smooth the slope over the graph if asked for, add the penalty's, and step."""
    slope = heat.raw_scale.grad
    if slope is None:
        return
    if settings.scale_smoothness and len(slope) > 1:
        # steepest descent where distance between scale vectors counts roughness:
        # nodes far from any label move with those near one
        reach = torch.full_like(slope, min(settings.scale_smoothness, heat.largest))
        slope = network.diffuse(slope[:, None], reach)[:, 0]  # type: ignore[operator]
    if settings.scale_penalty == "l1":
        slope = slope + settings.penalty_weight
    elif settings.scale_penalty == "barrier":
        slope = slope - settings.penalty_weight * (heat.raw_scale < _BARRIER)
    heat.raw_scale.grad = slope
    heat.step_(settings.scale_step, settings.scale_clip)
