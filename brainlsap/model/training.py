"""The training loop: Adam for weights, plain clipped steps for scales."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from brainlsap.exceptions import ParameterError
from brainlsap.model.network import HeatNetwork
from brainlsap.model.records import History, Labelled, TrainedNetwork
from brainlsap.model.settings import Settings

# Validation is looked at every few epochs: each look costs a forward pass.
_LOOK_EVERY = 2
# The released code pushes a scale up where it is below this (erratum 5).
_BARRIER = 0.01
_RESTARTS = 3
_LEAST_GAIN = 1e-4
# What a layer holds of the scans that are gone through at once, where scans stand
# alone: more leaves the cache and takes memory, less does not pay for its own steps.
_LAYER_BYTES = 1 << 21
# Logits that differ by less between scans tell nothing apart.
_DEAD_SPREAD = 1e-6


def train_network(
    make_network: Callable[[], HeatNetwork],
    train: Labelled,
    validation: Labelled | None,
    settings: Settings,
    seed: int,
) -> TrainedNetwork:
    """Train until validation stops improving; start dead runs again.

    Parameters
    ----------
    make_network : callable
        Returns a network with fresh weights.
    train : Labelled
        What is learned from.
    validation : Labelled or None
        What chooses the epoch; None trains for all epochs and takes the last.
    settings : Settings
        Of the fit.
    seed : int
        Of weights, dropout and batches. The global generator is left as it was.

    Returns
    -------
    TrainedNetwork

    Examples
    --------
    >>> from brainlsap.graph import SpectralEngine, decompose
    >>> from brainlsap.model import GraphBatch, HeatNetwork, Labelled
    >>> from brainlsap.model.settings import resolve_settings
    >>> given = {"initial_scale": 1.0, "linear_penalty": 0.0, "n_epochs": 9}
    >>> settings = resolve_settings("default", given)
    >>> engine = SpectralEngine(decompose(torch.zeros(6, 3, 3)), kernel="exact")
    >>> batch = GraphBatch.build(engine, torch.arange(36.0).reshape(6, 3, 2))
    >>> scans = Labelled(batch, torch.tensor([0, 0, 0, 1, 1, 1]))
    >>> measured = torch.tensor([True] * 3)
    >>> run = train_network(
    ...     lambda: HeatNetwork(3, 2, 2, settings, measured), scans, None, settings, 0
    ... )
    >>> run.network(batch).shape, run.healthy
    (torch.Size([6, 2]), True)
    """
    for attempt in range(_RESTARTS + 1):
        with torch.random.fork_rng(devices=_cuda_devices(train.codes)):
            # a stride no neighbour's seed lands on
            torch.manual_seed(seed + 1_000_003 * attempt)
            network = make_network()
            history, best_epoch, best_loss = _run(network, train, validation, settings)
        spread = _spread(network, train)
        diverged = not np.isfinite(spread)
        healthy = not diverged and spread > _DEAD_SPREAD
        if healthy or attempt == _RESTARTS:
            break
    return TrainedNetwork(
        network, history, best_epoch, best_loss, attempt, healthy, diverged
    )


def usable_runs(runs: list[TrainedNetwork]) -> list[TrainedNetwork]:
    """Return the runs to average: healthy ones, else those that can predict.

    Parameters
    ----------
    runs : list of TrainedNetwork
        Of every start.

    Returns
    -------
    list of TrainedNetwork

    Raises
    ------
    ParameterError
        If every run diverged.
    """
    chosen = [run for run in runs if run.healthy]
    chosen = chosen or [run for run in runs if not run.diverged]
    if not chosen:
        raise ParameterError(
            f"training diverged in every start ({len(runs)}), also with other seeds. "
            "Lower learning_rate or scale_step, or check the features."
        )
    return chosen


def make_epoch(
    network: HeatNetwork, train: Labelled, settings: Settings
) -> Callable[[], float]:
    """Return a function that takes one training epoch and returns the mean loss.

    Parameters
    ----------
    network : HeatNetwork
        Trained in place.
    train : Labelled
        What is learned from.
    settings : Settings
        Of the fit.

    Returns
    -------
    callable
    """
    weights = [p for name, p in network.named_parameters() if "raw_scale" not in name]
    adam = torch.optim.Adam(
        weights, lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    loss_of = nn.CrossEntropyLoss(
        weight=_class_weights(network, train, settings),
        label_smoothing=settings.label_smoothing,
    )

    def epoch() -> float:
        network.train()
        return _epoch(network, train, settings, adam, loss_of)

    return epoch


def _cuda_devices(codes: Tensor) -> list[Any]:
    return [codes.device] if codes.is_cuda else []


def _run(
    network: HeatNetwork,
    train: Labelled,
    validation: Labelled | None,
    settings: Settings,
) -> tuple[History, int, float]:
    take_epoch = make_epoch(network, train, settings)
    loss_of = nn.CrossEntropyLoss(weight=_class_weights(network, train, settings))
    history, best = History(), (float("inf"), -1, network.state_dict())
    for epoch in range(settings.n_epochs):
        loss = take_epoch()
        last = epoch == settings.n_epochs - 1
        if not np.isfinite(loss) or not (epoch % _LOOK_EVERY or last):
            if not np.isfinite(loss):
                break
            continue
        value = _look(network, train, validation, loss_of)
        history.add(epoch, loss, value, network.heat())
        if validation is None:
            best = (loss, epoch, best[2])
        elif value < best[0] - _LEAST_GAIN:
            best = (value, epoch, copy.deepcopy(network.state_dict()))
        elif settings.patience and epoch - best[1] >= settings.patience:
            break
    if validation is not None:
        network.load_state_dict(best[2])
    network.eval()
    network.remember_statistics(train.batch)
    return history, best[1], best[0]


def _epoch(
    network: HeatNetwork,
    train: Labelled,
    settings: Settings,
    adam: torch.optim.Optimizer,
    loss_of: nn.CrossEntropyLoss,
) -> float:
    """Take one pass over the scans; return the mean loss."""
    n_items = len(train.codes)
    size = settings.batch_size or n_items
    order = torch.randperm(n_items, device=train.codes.device)
    # equal parts: a last batch of one scan could not be standardised
    steps = torch.tensor_split(order, -(-n_items // size))
    total = 0.0
    for items in steps:
        whole = len(steps) == 1
        batch = train.batch if whole else train.batch.select(items)
        codes = train.codes if whole else train.codes[items]
        network.zero_grad()
        loss = _add_slopes(network, Labelled(batch, codes), loss_of)
        if not np.isfinite(loss):
            return float("nan")
        network.penalty(settings).backward()
        adam.step()
        _penalize(network, settings)
        network.heat.step_(settings.scale_step, settings.scale_clip)
        total += loss * len(batch)
    return total / n_items


def _add_slopes(
    network: HeatNetwork, scans: Labelled, loss_of: nn.CrossEntropyLoss
) -> float:
    """Add the mean loss's slopes to the weights' and scales'; return the loss.

    Where no scan's output depends on another scan, some at a time: what layers keep
    for the way back is then small, and stays in cache.
    """
    n_items = len(scans.codes)
    size = n_items
    if not network.joins_scans:  # equal parts: each costs the same beside its scans
        n_parts = -(-n_items * network.layer_bytes // _LAYER_BYTES)
        size = -(-n_items // n_parts)
    weight = loss_of.weight
    counts = scans.codes.new_ones(n_items) if weight is None else weight[scans.codes]
    total = 0.0
    for start in range(0, n_items, size):
        part = slice(start, start + size)
        # the mean over all is the sum of the parts' means, each by what it counts
        share = counts[part].sum() / counts.sum()
        batch = scans.batch if size >= n_items else scans.batch.select(part)
        loss = loss_of(network(batch), scans.codes[part]) * share
        loss.backward()
        total += float(loss.detach())
    return total


@torch.no_grad()
def _penalize(network: HeatNetwork, settings: Settings) -> None:
    """Add the l1 term's slope, read literally, or as the released code's barrier."""
    scale = network.heat.raw_scale
    if scale.grad is None or settings.scale_penalty == "none":
        return
    if settings.scale_penalty == "l1":
        scale.grad += settings.penalty_weight
    else:
        scale.grad -= settings.penalty_weight * (scale < _BARRIER)


@torch.no_grad()
def _look(
    network: HeatNetwork,
    train: Labelled,
    validation: Labelled | None,
    loss_of: nn.Module,
) -> float:
    if validation is None:
        return float("nan")
    network.eval()
    network.remember_statistics(train.batch)
    return float(loss_of(network(validation.batch), validation.codes))


def _class_weights(
    network: HeatNetwork, train: Labelled, settings: Settings
) -> Tensor | None:
    if settings.class_weight == "none":
        return None
    count = torch.bincount(train.codes, minlength=network.n_classes).float()
    return len(train.codes) / (network.n_classes * count.clamp_min(1.0))


@torch.no_grad()
def _spread(network: HeatNetwork, train: Labelled) -> float:
    """Return the largest deviation of a logit over scans; NaN if one is not finite."""
    logits = network(train.batch)
    if not bool(torch.isfinite(logits).all()):
        return float("nan")
    return float(logits.double().std(0, correction=0).max())
