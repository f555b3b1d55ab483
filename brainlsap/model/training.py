"""The training loop of every network, and the starts that are averaged.

Adam moves the weights, plain clipped steps the scales; validation on people who were
left out chooses the epoch; a run that is dead, diverges or does not learn its training
scans is repeated with another seed.
"""

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from brainlsap.exceptions import ParameterError
from brainlsap.graph.spectral import GraphBatch
from brainlsap.model.network import GraphNetwork
from brainlsap.model.propagation import DenseGraphs, HeatScale
from brainlsap.model.settings import Settings

# Epochs between validations: each costs a forward pass.
_VALIDATE_EVERY = 2
_MAX_RESTARTS = 3
_MIN_IMPROVEMENT = 1e-4
# A run whose logits differ by less between scans is dead.
_MIN_LOGIT_SPREAD = 1e-6
# The fault of a run that cannot predict.
_DIVERGED = "training diverged"
# With fewer people a validation set would be too noisy; none is split off.
MIN_VALIDATION_PEOPLE = 20

# A batch, and the class code of each of its scans.
Batch: TypeAlias = GraphBatch | DenseGraphs
Scans = tuple[Batch, Tensor]


@dataclass(eq=False)
class History:
    """The course of a training run, one entry per checkpoint.

    Attributes
    ----------
    epoch : list of int
        Epoch of the checkpoint, from 0.
    train_loss, validation_loss : list of float
        Mean cross-entropy of the epoch and of the validation slice (NaN without one).
    scales : list of array of shape (n_rois,)
        Heat scales at the checkpoint; empty for networks without.
    """

    epoch: list[int] = field(default_factory=list)
    train_loss: list[float] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    scales: list[np.ndarray] = field(default_factory=list)

    def add(
        self, epoch: int, train: float, validation: float, heat: HeatScale | None
    ) -> None:
        """Record one checkpoint; scales are copied."""
        self.epoch.append(epoch)
        self.train_loss.append(train)
        self.validation_loss.append(validation)
        if heat is not None:
            self.scales.append(heat().detach().cpu().numpy().copy())

    def scales_at(self, shares: np.ndarray, last: int) -> np.ndarray:
        """Return the scales at shares of the epochs up to `last`, interpolated."""
        epochs = np.asarray(self.epoch, dtype=float)
        epochs_at = epochs[0] + shares * (max(last, epochs[0]) - epochs[0])
        scales_of_regions = np.array(self.scales, dtype=np.float64).T
        return np.stack(
            [np.interp(epochs_at, epochs, path) for path in scales_of_regions], axis=1
        )


@dataclass(eq=False)
class Run:
    """One network at its chosen epoch, in evaluation mode.

    Attributes
    ----------
    network : GraphNetwork
        With the statistics of all training scans.
    history : History
    best_epoch : int
        The chosen epoch, from 0.
    best_loss : float
        Validation loss there; training loss without a validation slice.
    fault : str
        Why it cannot be trusted; "" if it can.
    n_restarts : int
        How often it was started again with another seed.
    """

    network: GraphNetwork
    history: History
    best_epoch: int
    best_loss: float
    fault: str
    n_restarts: int = 0


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the generators of the CPU and of one device; put both back afterwards.

    Other devices' generators are left alone (`torch.manual_seed` sets them all).
    """
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.default_generator.manual_seed(seed)
        for cuda_device in devices:
            with torch.cuda.device(cuda_device):
                torch.cuda.manual_seed(seed)
        yield


def inner_splits(
    codes: np.ndarray, groups: np.ndarray, settings: Settings, seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Split training scans into training and validation sets, by person.

    Starts of one fit validate on different people, so together they learn from all of
    them. There is no validation set with fewer than 20 people, where a class has fewer
    than two people, or without patience.

    Parameters
    ----------
    codes : int array of shape (n_scans,)
        Class of every scan.
    groups : array of shape (n_scans,)
        Participant of every scan.
    settings : Settings
        Number of starts, share of people for validation, and patience.
    seed : int

    Returns
    -------
    list of (train_rows, validation_rows)
        Rows, for every start.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    all_rows = np.arange(len(codes))
    split_without_validation = all_rows, all_rows[:0]
    _, people = np.unique(groups, return_inverse=True)
    sizes = [len(set(people[codes == code])) for code in set(codes)]
    n_people, n_starts = people.max() + 1, settings.n_starts
    if not settings.patience or n_people < MIN_VALIDATION_PEOPLE or min(sizes) < 2:
        return [split_without_validation] * n_starts
    n_slices = min(max(2, round(1 / settings.validation_fraction)), max(sizes))
    splits: list = []
    with warnings.catch_warnings():
        # a class with fewer people than slices is missing from some; that is fine
        warnings.simplefilter("ignore", UserWarning)
        for repeat in range(-(-n_starts // n_slices)):
            splitter = StratifiedGroupKFold(
                n_slices, shuffle=True, random_state=seed + repeat
            )
            splits += splitter.split(codes, codes, people)
    return [
        (train_rows, validation_rows)
        if len(set(codes[train_rows])) == len(sizes)
        else split_without_validation
        for train_rows, validation_rows in splits[:n_starts]
    ]


def train_network(
    make_network: Callable[[], GraphNetwork],
    train: Scans,
    validation: Scans | None,
    settings: Settings,
    seed: int,
) -> Run:
    """Train until validation stops improving; start bad runs again.

    Parameters
    ----------
    make_network : callable
        Returns a network with fresh weights.
    train : (batch, codes)
        What is learned from.
    validation : (batch, codes) or None
        What chooses the epoch; None trains for all epochs and takes the last.
    settings : Settings
    seed : int
        Of weights, dropout and batches. The global generators are left as they were.
    """
    for attempt in range(_MAX_RESTARTS + 1):
        # a stride that no other start's seed lands on
        with seeded(seed + 1_000_003 * attempt, train[1].device):
            run = _run(make_network(), train, validation, settings)
        run.n_restarts = attempt
        if not run.fault:
            break
    return run


def usable_runs(runs: list[Run]) -> list[Run]:
    """Return the runs to average: healthy ones, else those that can predict."""
    usable = [run for run in runs if not run.fault]
    usable = usable or [run for run in runs if run.fault != _DIVERGED]
    if not usable:
        raise ParameterError(
            f"training diverged in every start ({len(runs)}), also with other seeds. "
            "Lower learning_rate or scale_step, or check the features."
        )
    return usable


def make_epoch(
    network: GraphNetwork, train: Scans, settings: Settings
) -> Callable[[], float]:
    """Return a function that takes one training epoch and returns the mean loss."""
    batch, codes = train
    n_items = len(codes)
    n_steps = -(-n_items // (settings.batch_size or n_items))
    weights_by_decay = dict[float, list]()
    for name, weight in network.named_parameters():
        if "raw_scale" not in name:  # Adam's decay is the slope of half the squares
            is_readout = weight is network.readout.weight
            penalty = settings.readout_penalty if is_readout else 0.0
            decay = settings.weight_decay + 2 * penalty
            weights_by_decay.setdefault(decay, []).append(weight)
    adam = torch.optim.Adam(
        [
            {"params": minibatch, "weight_decay": decay}
            for decay, minibatch in weights_by_decay.items()
        ],
        lr=settings.learning_rate,
        fused=True,
    )
    loss_of = _loss_of(network, codes, settings)

    def epoch() -> float:
        network.train()
        # drawn on the CPU, so that batches are the same on every device
        order = torch.randperm(n_items).to(codes.device)
        total = torch.zeros((), device=codes.device)
        # equal parts: a last batch of one scan could not be standardised
        for items in torch.tensor_split(order, n_steps):
            minibatch = train if n_steps == 1 else (batch.select(items), codes[items])
            network.zero_grad()
            loss = loss_of(network(minibatch[0]), minibatch[1])
            loss.backward()
            total += loss.detach() * len(items)
            adam.step()
            if network.heat is not None:
                network.heat.step_(settings)
        return float(total) / n_items

    return epoch


def _run(
    network: GraphNetwork, train: Scans, validation: Scans | None, settings: Settings
) -> Run:
    """Train once and check the result."""
    from sklearn.metrics import balanced_accuracy_score

    train_epoch = make_epoch(network, train, settings)
    loss_of = _loss_of(network, train[1], settings)
    history, state = History(), network.state_dict()
    best_loss, best_epoch, validation_loss = float("inf"), -1, float("nan")
    for epoch in range(settings.n_epochs):
        loss = train_epoch()
        if not np.isfinite(loss):
            break
        if epoch % _VALIDATE_EVERY == 0 and epoch < settings.n_epochs - 1:
            continue
        if validation is not None:
            logits = _known_logits(network, train, validation[0])
            validation_loss = float(loss_of(logits, validation[1]))
        history.add(epoch, loss, validation_loss, network.heat)
        if validation is None:
            best_loss, best_epoch = loss, epoch
        elif validation_loss < best_loss - _MIN_IMPROVEMENT:
            best_loss, best_epoch = validation_loss, epoch
            state = copy.deepcopy(network.state_dict())
        elif settings.patience and epoch - best_epoch >= settings.patience:
            break
    accuracy = 1.0
    if settings.least_learned:  # of the last epoch, whichever is selected
        predicted = _known_logits(network, train, train[0]).argmax(1)
        accuracy = balanced_accuracy_score(train[1].cpu(), predicted.cpu())
    if validation is not None:
        network.load_state_dict(state)
    fault = _fault(network, train, accuracy, settings) if history.epoch else _DIVERGED
    return Run(network, history, best_epoch, best_loss, fault)


def _fault(
    network: GraphNetwork, train: Scans, accuracy: float, settings: Settings
) -> str:
    """Return why a trained network cannot be trusted, or "" if it can."""
    logits = _known_logits(network, train, train[0]).double()
    if not bool(torch.isfinite(logits).all()):
        return _DIVERGED
    if float(logits.std(0, correction=0).max()) <= _MIN_LOGIT_SPREAD:
        return "every scan gets the same output"
    chance = 1 / network.n_classes
    if accuracy >= chance + settings.least_learned * (1 - chance):
        return ""
    return (
        "the training scans themselves were not learned: balanced accuracy "
        f"{accuracy:.2f}, chance {chance:.2f}"
    )


@torch.no_grad()
def _known_logits(network: GraphNetwork, train: Scans, batch: Batch) -> Tensor:
    """Return the logits of some scans by the statistics of the training scans."""
    network.eval()
    network.remember_statistics(train[0])
    return network(batch)


def _loss_of(network: GraphNetwork, codes: Tensor, settings: Settings) -> nn.Module:
    weight = None
    if settings.class_weight == "balanced":
        count = torch.bincount(codes, minlength=network.n_classes).float()
        weight = len(codes) / (network.n_classes * count.clamp_min(1.0))
    return nn.CrossEntropyLoss(weight=weight)


def train_starts(
    batch: Batch,
    codes: np.ndarray,
    splits: list[tuple[np.ndarray, np.ndarray]],
    is_measured: np.ndarray,
    scales: np.ndarray,
    settings: Settings,
    seed: int,
) -> list[Run]:
    """Train several networks, each validated on other people of the training scans.

    Parameters
    ----------
    batch : GraphBatch or DenseGraphs
        All training scans.
    codes : int array of shape (n_items,)
    splits : list of (train_rows, validation_rows)
        Rows, for every start; from :func:`inner_splits`.
    is_measured : bool array of shape (n_rois,)
        Regions to read out.
    scales : array of shape (n_rois,)
        Where heat scales start.
    settings : Settings
        With kernel and degree settled.
    seed : int
    """
    n_rois, n_channels = batch.signal.shape[-2:]
    dimensions = n_rois, n_channels, int(codes.max()) + 1

    def make_network() -> GraphNetwork:
        network_start = torch.from_numpy(is_measured), scales
        network = GraphNetwork(*dimensions, settings, *network_start)
        if batch.offset is not None:  # start from the offset alone
            for weights in network.output.parameters():
                nn.init.zeros_(weights)
        return network.to(batch.signal.device)

    runs = []
    for start_number, split in enumerate(splits):
        train, validation_part = (
            select_scans(batch, codes, subset) for subset in split
        )
        validation = validation_part if len(validation_part[1]) else None
        run = train_network(
            make_network, train, validation, settings, seed + 7919 * start_number
        )
        # prediction uses the statistics of all training scans
        run.network.remember_statistics(batch)
        runs.append(run)
    return runs


def select_scans(batch: Batch, codes: np.ndarray, rows: np.ndarray) -> Scans:
    """Return the scans of these rows of a batch, with their codes, on its device."""
    items = torch.from_numpy(rows).to(batch.signal.device)
    return batch.select(items), torch.from_numpy(codes[rows]).to(items.device)
