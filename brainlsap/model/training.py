"""The training loop of every network, and the starts that are averaged.

Adam moves the weights, plain clipped steps the scales; validation on people who were
left out chooses the epoch, and the weight of networks that start from a ridge; a run
that is dead, diverges or does not learn its training scans is repeated with another
seed.
"""

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.special import log_softmax
from torch import Tensor, nn

from brainlsap.exceptions import ParameterError
from brainlsap.model.network import GraphNetwork
from brainlsap.model.settings import LEFT_OUT, Settings

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
# Weights of the networks that are tried beside a ridge.
_NETWORK_WEIGHTS = np.linspace(0, 1, 11)
# Standard errors by which networks must improve the prediction of left-out people. With
# one, the weight was not 0 in a fifth of folds of 40 people, where networks are worse;
# two lose nothing where networks are needed.
_MIN_STANDARD_ERRORS = 2.0

# A batch, and the class code of each of its scans.
Scans = tuple[Any, Tensor]


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

    def add(self, epoch: int, train: float, validation: float, heat: Any) -> None:
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


class Snapshot(NamedTuple):
    """A network at one checkpoint.

    `validation_logits` (n_validation_scans, n_classes) has no row without a validation
    set.
    """

    epoch: int
    validation_logits: np.ndarray
    state: dict[str, Tensor]


class NetworkShare(NamedTuple):
    """The weight of networks beside a ridge, and what it was chosen by.

    `gain` is how much smaller the cross-entropy of left-out people is at best with the
    networks than by the ridge alone, in nats per person, with its standard error; None
    where no person was left out. `step` is the number of the chosen snapshot.
    """

    weight: float
    gain: float | None
    standard_error: float | None
    step: int


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
    snapshots : list of Snapshot
        The network at every checkpoint, if its weight is to be chosen.
    validation_rows : int array
        Training scans that it was validated on.
    """

    network: GraphNetwork
    history: History
    best_epoch: int
    best_loss: float
    fault: str
    n_restarts: int = 0
    snapshots: list[Snapshot] = field(default_factory=list)
    validation_rows: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))


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
    than two people, or where neither the epoch nor the weight of networks needs one.

    Parameters
    ----------
    codes : int array of shape (n_scans,)
        Class of every scan.
    groups : array of shape (n_scans,)
        Participant of every scan.
    settings : Settings
        Number of starts, share of people for validation, and what needs it.
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
    is_too_small = n_people < MIN_VALIDATION_PEOPLE or min(sizes) < 2
    if is_too_small or not settings.leaves_people_out():
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
    train_epoch = make_epoch(network, train, settings)
    loss_of = _loss_of(network, train[1], settings)
    history, state, snapshots = History(), network.state_dict(), list[Snapshot]()
    best_loss, best_epoch, validation_loss = float("inf"), -1, float("nan")
    chooses_epoch = validation is not None and settings.patience > 0
    for epoch in range(settings.n_epochs):
        loss = train_epoch()
        if not np.isfinite(loss):
            break
        if epoch % _VALIDATE_EVERY == 0 and epoch < settings.n_epochs - 1:
            continue
        logits = train[1].new_zeros((0, network.n_classes))
        if validation is not None:
            logits = _known_logits(network, train, validation[0])
            validation_loss = float(loss_of(logits, validation[1]))
        if settings.network_weight == LEFT_OUT:
            weights = copy.deepcopy(network.state_dict())
            snapshots.append(Snapshot(epoch, logits.cpu().numpy(), weights))
        history.add(epoch, loss, validation_loss, network.heat)
        if not chooses_epoch:
            best_loss, best_epoch = loss, epoch
        elif validation_loss < best_loss - _MIN_IMPROVEMENT:
            best_loss, best_epoch = validation_loss, epoch
            state = copy.deepcopy(network.state_dict())
        elif epoch - best_epoch >= settings.patience:
            break
    # of the last epoch, whichever is selected
    accuracy = _training_accuracy(network, train) if settings.least_learned else 1.0
    if chooses_epoch:
        network.load_state_dict(state)
    fault = _fault(network, train, accuracy, settings) if history.epoch else _DIVERGED
    return Run(network, history, best_epoch, best_loss, fault, snapshots=snapshots)


def _training_accuracy(network: GraphNetwork, train: Scans) -> float:
    """Return the balanced accuracy in the scans that a network was trained on."""
    from sklearn.metrics import balanced_accuracy_score

    predicted = _known_logits(network, train, train[0]).argmax(1)
    return float(balanced_accuracy_score(train[1].cpu(), predicted.cpu()))


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
def _known_logits(network: GraphNetwork, train: Scans, batch: Any) -> Tensor:
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
    batch: Any,
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
        run.validation_rows = split[1]
        # prediction uses the statistics of all training scans
        run.network.remember_statistics(batch)
        runs.append(run)
    return runs


def mix_logits(
    ridge_logits: np.ndarray, network_logits: np.ndarray, weight: float
) -> np.ndarray:
    """Return logits of which a network has this weight, and the ridge the rest."""
    return (1 - weight) * ridge_logits + weight * network_logits


def choose_network_share(
    runs: list[Run],
    codes: np.ndarray,
    groups: np.ndarray,
    ridge_logits: np.ndarray,
    settings: Settings,
) -> NetworkShare:
    r"""Choose the epoch of all networks, and their weight beside a ridge.

    The logits of a scan are :math:`(1 - w)` times those of the ridge and :math:`w`
    times those of a network. Epoch and w, from 0 to 1 in tenths, minimise the
    cross-entropy of the scans that each network was not trained on, all together. One
    epoch for all networks and everybody left out: a network that chose its epoch by
    its own few people would look better on them than it is. w is 0 unless the gain
    over the ridge exceeds two standard errors over people; the epoch is then the one
    at which the networks by themselves predict best.

    Parameters
    ----------
    runs : list of Run
        With snapshots. A run that stopped early keeps its last one.
    codes : int array of shape (n_scans,)
        Class of every training scan.
    groups : array of shape (n_scans,)
        Participant of every training scan.
    ridge_logits : array of shape (n_scans, n_classes)
        Of fits of the ridge without the scan's participant.
    settings : Settings
        Class weights; without patience, only the last epoch is considered.
    """
    rows = np.concatenate([run.validation_rows for run in runs])
    n_steps = max(len(run.snapshots) for run in runs)
    if not len(rows):
        return NetworkShare(0.0, None, None, n_steps - 1)
    steps = range(n_steps) if settings.patience else range(n_steps - 1, n_steps)
    n_classes = ridge_logits.shape[1]
    class_weights = np.ones(n_classes)
    if settings.class_weight == "balanced":
        class_weights = len(codes) / (n_classes * np.bincount(codes))
    row_codes, row_logits = codes[rows], ridge_logits[rows]

    def loss_of_scans(logits: np.ndarray) -> np.ndarray:
        log_probability = log_softmax(logits, axis=1)[np.arange(len(rows)), row_codes]
        return -class_weights[row_codes] * log_probability

    ridge_loss = loss_of_scans(row_logits)
    gains = np.full((n_steps, len(_NETWORK_WEIGHTS), len(rows)), -np.inf)
    for step in steps:
        logits = np.concatenate(
            [_snapshot_at(run, step).validation_logits for run in runs]
        ).astype(np.float64)
        if not np.isfinite(logits).all():
            continue
        for number, weight in enumerate(_NETWORK_WEIGHTS):
            mixed_logits = mix_logits(row_logits, logits, weight)
            gains[step, number] = ridge_loss - loss_of_scans(mixed_logits)
    total_gains = gains.sum(axis=2)
    step, number = np.unravel_index(total_gains.argmax(), total_gains.shape)
    _, person_index = np.unique(groups[rows], return_inverse=True)
    gain_of_people = np.bincount(person_index, gains[step, number])
    mean = float(gain_of_people.mean())
    standard_error = float(gain_of_people.std(ddof=1) / np.sqrt(len(gain_of_people)))
    if number == 0 or mean < _MIN_STANDARD_ERRORS * standard_error:
        own_step = int(total_gains[:, -1].argmax())
        return NetworkShare(0.0, mean, standard_error, own_step)
    return NetworkShare(
        float(_NETWORK_WEIGHTS[number]), mean, standard_error, int(step)
    )


def restore_snapshots(runs: list[Run], step: int, batch: Any) -> None:
    """Put every network back to a snapshot, with the statistics of all scans."""
    for run in runs:
        snapshot = _snapshot_at(run, step)
        run.network.load_state_dict(snapshot.state)
        run.network.remember_statistics(batch)
        run.best_epoch = snapshot.epoch


def _snapshot_at(run: Run, step: int) -> Snapshot:
    """Return a snapshot of a run, its last if it stopped before."""
    return run.snapshots[min(step, len(run.snapshots) - 1)]


def select_scans(batch: Any, codes: np.ndarray, rows: np.ndarray) -> Scans:
    """Return the scans of these rows of a batch, with their codes, on its device."""
    items = torch.from_numpy(rows).to(batch.signal.device)
    return batch.select(items), torch.from_numpy(codes[rows]).to(items.device)
