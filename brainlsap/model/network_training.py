"""The training loop of the networks to compare: Adam on small batches, early stopping.

They have no scales that would need steps of their own; :mod:`brainlsap.model.training`
is the loop of LSAP.
"""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from brainlsap.model.graph_scans import GraphScans
from brainlsap.model.plain_networks import BrainNetwork

_LEAST_GAIN = 1e-4
_AT_ONCE = 256


class TrainedModule(NamedTuple):
    """A network at its chosen epoch, and how it came there."""

    network: nn.Module
    best_epoch: int
    best_loss: float
    n_epochs: int


def train_module(
    make_network: Callable[[], nn.Module],
    scans: GraphScans,
    codes: np.ndarray,
    rows: tuple[np.ndarray, np.ndarray],
    settings: Any,
    seed: int,
) -> TrainedModule:
    """Train one network, and take the epoch of lowest validation loss.

    Parameters
    ----------
    make_network : callable
        Returns a network with fresh weights.
    scans : GraphScans
        All training scans.
    codes : int array of shape (n_items,)
        Their classes, from 0.
    rows : (learn, watch)
        From :func:`brainlsap.model.inner_split.inner_split`; with nobody to watch,
        the last epoch is taken.
    settings : object
        With `n_epochs`, `patience`, `batch_size`, `learning_rate`, `weight_decay` and
        `class_weight`.
    seed : int
        Of weights, dropout and batches. The global generator is left as it was.

    Returns
    -------
    TrainedModule
    """
    learn, watch = (torch.from_numpy(one) for one in rows)
    target = torch.from_numpy(codes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = make_network()
        if isinstance(network, BrainNetwork):
            network.learn_statistics(scans.select(learn))
        loss_of = nn.CrossEntropyLoss(_class_weights(target, settings.class_weight))
        adam = torch.optim.Adam(
            network.parameters(),
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
        )
        best = (float("inf"), -1, network.state_dict())
        for epoch in range(settings.n_epochs):
            loss = _epoch(network, scans, target, learn, settings, adam, loss_of)
            if len(watch):
                loss = _loss(network, scans.select(watch), target[watch], loss_of)
            if not len(watch) or loss < best[0] - _LEAST_GAIN:
                best = (loss, epoch, copy.deepcopy(network.state_dict()))
            elif settings.patience and epoch - best[1] >= settings.patience:
                break
    network.load_state_dict(best[2])
    network.eval()
    return TrainedModule(network, best[1], best[0], epoch + 1)


@torch.no_grad()
def logits_of(network: nn.Module, scans: GraphScans) -> Tensor:
    """Return the logits of all scans, a part at a time, so that memory stays small.

    Parameters
    ----------
    network : nn.Module
    scans : GraphScans

    Returns
    -------
    Tensor of shape (n_items, n_classes)
    """
    network.eval()
    parts = torch.arange(len(scans)).split(_AT_ONCE)
    return torch.cat([network(scans.select(items)) for items in parts])


def _epoch(
    network: nn.Module,
    scans: GraphScans,
    target: Tensor,
    learn: Tensor,
    settings: Any,
    adam: torch.optim.Optimizer,
    loss_of: nn.Module,
) -> float:
    network.train()
    order = learn[torch.randperm(len(learn))]
    steps = torch.tensor_split(order, -(-len(order) // settings.batch_size))
    total = 0.0
    for items in steps:
        adam.zero_grad()
        loss = loss_of(network(scans.select(items)), target[items])
        loss.backward()
        adam.step()
        total += float(loss.detach()) * len(items)
    return total / len(learn)


def _loss(
    network: nn.Module, scans: GraphScans, target: Tensor, loss_of: nn.Module
) -> float:
    value = float(loss_of(logits_of(network, scans), target))
    return value if np.isfinite(value) else float("inf")


def _class_weights(target: Tensor, mode: str) -> Tensor | None:
    if mode == "none":
        return None
    count = torch.bincount(target).float()
    return len(target) / (len(count) * count.clamp_min(1.0))
