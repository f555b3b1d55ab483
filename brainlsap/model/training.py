"""The training loop of every network, and the starts that are averaged.

Adam moves the weights, plain clipped steps the scales; validation on people who were
left out chooses the epoch, and the weight of networks that start from a ridge; a run
that is dead, diverges or does not learn its training scans is repeated with another
seed.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import compress, cycle, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from brainlsap.exceptions import ParameterError
from brainlsap.graph.spectral import GraphBatch
from brainlsap.model.network import DenseGraphs, GraphNetwork, HeatScale
from brainlsap.model.settings import BY_LEFT_OUT_PEOPLE, Settings
from brainlsap.text import option_name

# Epochs between validations: each costs a forward pass.
_VALIDATE_EVERY = 2
_MAX_RESTARTS = 3
_MIN_IMPROVEMENT = 1e-4
# A run whose logits differ by less between scans is dead.
_MIN_LOGIT_SPREAD = 1e-6
# The fault of a run that cannot predict.
_DIVERGED = "training diverged"
# Most scans of a step, of a validation set, and of the statistics while training.
# Training needs a number of steps; with more scans a step costs more and is no better.
MAX_STEP_SCANS = 2048
# With fewer people a validation set would be too noisy; none is split off.
MIN_VALIDATION_PEOPLE = 20
# Weights of the networks that are tried beside a ridge.
_NETWORK_WEIGHTS = np.linspace(0, 1, 11)
# Standard errors by which networks must improve the prediction of left-out people. With
# one, the weight was not 0 in a fifth of folds of 40 people, where networks are worse;
# two lose nothing where networks are needed.
_MIN_STANDARD_ERRORS = 2.0
# Standard errors that the gain over all left-out people must be expected to reach for
# another start. The best of many epochs and weights has a gain by chance: without an
# effect 1.7 to 2.5 were expected after the first start, with one at least 5.4.
_MIN_EXPECTED_STANDARD_ERRORS = 3.0

# A batch, and the class code of each of its scans.
Batch: TypeAlias = GraphBatch | DenseGraphs
BatchAndCodes = tuple[Batch, Tensor]


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
        self,
        epoch: int,
        train_loss: float,
        validation_loss: float,
        heat_scale: HeatScale | None,
    ) -> None:
        """Record one checkpoint; scales are copied."""
        self.epoch.append(epoch)
        self.train_loss.append(train_loss)
        self.validation_loss.append(validation_loss)
        if heat_scale is not None:
            self.scales.append(heat_scale().detach().cpu().numpy().copy())

    def interpolate_scales(
        self, epoch_shares: np.ndarray, last_epoch: int
    ) -> np.ndarray:
        """Interpolate the scales at shares of the epochs up to `last_epoch`."""
        stored_epochs = np.asarray(self.epoch, dtype=float)
        interpolation_epochs = stored_epochs[0] + epoch_shares * (
            max(last_epoch, stored_epochs[0]) - stored_epochs[0]
        )
        scale_paths = np.array(self.scales, dtype=np.float64).T
        return np.stack(
            [
                np.interp(interpolation_epochs, stored_epochs, scale_path)
                for scale_path in scale_paths
            ],
            axis=1,
        )


class NetworkSnapshot(NamedTuple):
    """A network at one checkpoint.

    `validation_logits` (n_validation_scans, n_classes) has no row without a validation
    set.
    """

    epoch: int
    validation_logits: np.ndarray
    state: dict[str, Tensor]


class NetworkChoice(NamedTuple):
    """The weight of networks beside a ridge, and what it was chosen by.

    `gain` is how much smaller the cross-entropy of left-out people is at best with the
    networks than by the ridge alone, in nats per person, with its standard error; None
    where no person was left out. `snapshot_index` is that of the chosen snapshot.
    """

    weight: float
    gain: float | None
    standard_error: float | None
    snapshot_index: int


@dataclass(eq=False)
class TrainingRun:
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
    fault_text : str
        Reason for which the network cannot be trusted; "" if it can be trusted.
    n_restarts : int
        Number of restarts with another seed.
    snapshots : list of Snapshot
        The network at every checkpoint, if its weight is to be chosen.
    validation_scan_indices : int array
        Training scans that it was validated on.
    """

    network: GraphNetwork
    history: History
    best_epoch: int
    best_loss: float
    fault_text: str
    n_restarts: int = 0
    snapshots: list[NetworkSnapshot] = field(default_factory=list)
    validation_scan_indices: np.ndarray = field(
        default_factory=lambda: np.zeros(0, dtype=int)
    )


@contextmanager
def seed_generators(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the generators of the CPU and of one device; put both back afterwards.

    Other devices' generators are left alone (`torch.manual_seed` sets them all).
    """
    cuda_devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda_devices):
        torch.default_generator.manual_seed(seed)
        for cuda_device in cuda_devices:
            with torch.cuda.device(cuda_device):
                torch.cuda.manual_seed(seed)
        yield


def make_inner_splits(
    class_codes: np.ndarray, groups: np.ndarray, network_settings: Settings, seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Split training scans into training and validation sets, by person.

    Starts of one fit validate on different people, so together they learn from all of
    them. There is no validation set with fewer than 20 people, where a class has fewer
    than two people, or where neither the epoch nor the weight of networks needs one.

    Parameters
    ----------
    class_codes : int array of shape (n_scans,)
        Class of every scan.
    groups : array of shape (n_scans,)
        Participant of every scan.
    network_settings : Settings
        Number of starts, share of people for validation, and what needs it.
    seed : int

    Returns
    -------
    list of (train_rows, validation_scan_indices)
        Rows, for every start.
    """
    all_scan_indices = np.arange(len(class_codes))
    split_without_validation = all_scan_indices, all_scan_indices[:0]
    _, person_codes = np.unique(groups, return_inverse=True)
    class_people_counts = [
        len(set(person_codes[class_codes == class_code]))
        for class_code in set(class_codes)
    ]
    n_people, n_starts = person_codes.max() + 1, network_settings.n_starts
    if network_settings.validation_fraction * len(class_codes) > MAX_STEP_SCANS:
        return _draw_validation_splits(class_codes, person_codes, n_starts, seed)
    is_too_small = n_people < MIN_VALIDATION_PEOPLE or min(class_people_counts) < 2
    if is_too_small or not network_settings.leaves_people_out():
        return [split_without_validation] * n_starts
    n_folds = min(
        max(2, round(1 / network_settings.validation_fraction)),
        max(class_people_counts),
    )
    splits: list[tuple[np.ndarray, np.ndarray]] = []
    for repeat_index in range(-(-n_starts // n_folds)):
        scan_fold_indices = _draw_scan_fold_numbers(
            class_codes, person_codes, n_folds, seed + repeat_index
        )
        splits += [
            (
                np.flatnonzero(scan_fold_indices != k),
                np.flatnonzero(scan_fold_indices == k),
            )
            for k in range(n_folds)
        ]
    return [
        (train_rows, validation_scan_indices)
        if len(set(class_codes[train_rows])) == len(class_people_counts)
        else split_without_validation
        for train_rows, validation_scan_indices in splits[:n_starts]
    ]


def _draw_scan_fold_numbers(
    class_codes: np.ndarray, person_codes: np.ndarray, n_folds: int, seed: int
) -> np.ndarray:
    """Return the fold of every scan: people are whole, and classes are spread evenly.

    The folds are those of scikit-learn's `StratifiedGroupKFold` with shuffling, which
    takes ten times as long because it compares one fold after the other.
    """
    class_counts = np.bincount(class_codes)
    person_class_visit_counts = np.zeros((person_codes.max() + 1, len(class_counts)))
    np.add.at(person_class_visit_counts, (person_codes, class_codes), 1)
    person_order = np.arange(len(person_class_visit_counts))
    np.random.RandomState(seed).shuffle(person_order)
    person_unevenness = np.std(person_class_visit_counts[person_order], axis=1)
    person_order = person_order[np.argsort(-person_unevenness, kind="stable")]
    fold_class_counts = np.zeros((n_folds, len(class_counts)))
    all_fold_indices = np.arange(n_folds)
    person_fold_indices = np.empty(len(person_class_visit_counts), dtype=int)
    for person_code in person_order:
        # Counts of all folds (second axis) with the person in each fold (first axis).
        candidate_fold_counts = np.repeat(fold_class_counts[None], n_folds, axis=0)
        candidate_fold_counts[all_fold_indices, all_fold_indices] += (
            person_class_visit_counts[person_code]
        )
        candidate_deviations = np.std(
            candidate_fold_counts / class_counts, axis=1
        ).mean(axis=1)
        fold_scan_counts = fold_class_counts.sum(axis=1)
        best_fold_index = 0
        for k in range(1, n_folds):
            smallest_deviation = candidate_deviations[best_fold_index]
            # As numpy.isclose: among equals the fold with fewer scans.
            tolerance = 1e-8 + 1e-5 * smallest_deviation
            is_equal_deviation = (
                abs(candidate_deviations[k] - smallest_deviation) <= tolerance
            )
            if candidate_deviations[k] < smallest_deviation or (
                is_equal_deviation
                and fold_scan_counts[k] < fold_scan_counts[best_fold_index]
            ):
                best_fold_index = k
        fold_class_counts[best_fold_index] += person_class_visit_counts[person_code]
        person_fold_indices[person_code] = best_fold_index
    return person_fold_indices[person_codes]


def _draw_validation_splits(
    class_codes: np.ndarray, person_codes: np.ndarray, n_starts: int, seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return training and validation rows of every start in a large cohort.

    About `MAX_STEP_SCANS` scans, with as many people of each class as the cohort
    has.
    """
    validation_share = MAX_STEP_SCANS / len(class_codes)
    _, first_row_indices = np.unique(person_codes, return_index=True)
    person_class_codes = class_codes[first_row_indices]
    # Rank of each person in a random order of the class, from 0 to 1.
    person_order = np.random.default_rng(seed).permutation(len(first_row_indices))
    person_rank_shares = np.empty(len(first_row_indices))
    for class_code in np.unique(person_class_codes):
        class_person_codes = person_order[
            person_class_codes[person_order] == class_code
        ]
        person_rank_shares[class_person_codes] = np.arange(
            len(class_person_codes)
        ) / len(class_person_codes)
    splits = []
    for start_number in range(n_starts):
        validation_scan_mask = (
            (person_rank_shares - start_number * validation_share) % 1.0
            < validation_share
        )[person_codes]
        splits.append(
            (
                np.flatnonzero(~validation_scan_mask),
                np.flatnonzero(validation_scan_mask),
            )
        )
    return splits


def train_network_run(
    make_network: Callable[[], GraphNetwork],
    train_batch_and_codes: BatchAndCodes,
    validation_batch_and_codes: BatchAndCodes | None,
    network_settings: Settings,
    seed: int,
) -> TrainingRun:
    """Train until validation stops improving; start bad runs again.

    Parameters
    ----------
    make_network : callable
        Returns a network with fresh weights.
    train_batch_and_codes : (batch, codes)
        Scans for training.
    validation_batch_and_codes : (batch, codes) or None
        Scans that choose the epoch; None trains for all epochs and uses the last.
    network_settings : Settings
    seed : int
        Of weights, dropout and batches. The global generators are left as they were.
    """
    for attempt_number in range(_MAX_RESTARTS + 1):
        # a stride that no other start's seed lands on
        with seed_generators(
            seed + 1_000_003 * attempt_number, train_batch_and_codes[1].device
        ):
            training_run = _train_single_run(
                make_network(),
                train_batch_and_codes,
                validation_batch_and_codes,
                network_settings,
            )
        training_run.n_restarts = attempt_number
        if not training_run.fault_text:
            break
    return training_run


def select_usable_runs(training_runs: list[TrainingRun]) -> list[TrainingRun]:
    """Return the runs to average: healthy ones, else those that can predict."""
    healthy_runs = [
        training_run for training_run in training_runs if not training_run.fault_text
    ]
    healthy_runs = healthy_runs or [
        training_run
        for training_run in training_runs
        if training_run.fault_text != _DIVERGED
    ]
    if not healthy_runs:
        raise ParameterError(
            f"training diverged in all {len(training_runs)} starts, also with other "
            f"seeds. Lower {option_name('learning_rate')} or "
            f"{option_name('scale_step')}, or check the features."
        )
    return healthy_runs


class Adam:
    """Adam with its usual rates, of weights that have one decay.

    The steps are those of `torch.optim.Adam`, which imports the compiler of torch: two
    seconds in every process that fits a network.
    """

    def __init__(
        self,
        parameters: list[nn.Parameter],
        learning_rate: float,
        weight_decay: float,
        fused: bool | None = None,
    ) -> None:
        """Begin without momentum; `fused` takes the steps of all weights at once."""
        self.parameters = parameters
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.fused = fused
        self.means = [torch.zeros_like(parameter) for parameter in parameters]
        self.mean_squares = [torch.zeros_like(parameter) for parameter in parameters]
        # Steps of the fused kernel are counted where the weights are.
        self.n_steps = [
            torch.zeros((), device=parameter.device if fused else "cpu")
            for parameter in parameters
        ]

    @torch.no_grad()
    def step(self) -> None:
        """Move every weight that has a gradient by one step."""
        gradient_flags = [parameter.grad is not None for parameter in self.parameters]
        adam(
            params=[*compress(self.parameters, gradient_flags)],
            grads=[
                parameter.grad
                for parameter in self.parameters
                if parameter.grad is not None
            ],
            exp_avgs=[*compress(self.means, gradient_flags)],
            exp_avg_sqs=[*compress(self.mean_squares, gradient_flags)],
            max_exp_avg_sqs=[],
            state_steps=[*compress(self.n_steps, gradient_flags)],
            fused=self.fused,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.learning_rate,
            weight_decay=self.weight_decay,
            eps=1e-8,
            maximize=False,
        )


def make_epoch_function(
    network: GraphNetwork,
    train_batch_and_codes: BatchAndCodes,
    network_settings: Settings,
) -> Callable[[], float]:
    """Return a function that takes one training epoch and returns the mean loss.

    Without a batch size an epoch is one step on all scans, or, if there are more than
    `MAX_STEP_SCANS`, on the next part of them, in their order.
    """
    class_codes = train_batch_and_codes[1]
    parameters_by_decay = dict[float, list]()
    for parameter_name, parameter in network.named_parameters():
        if (
            "raw_scale" not in parameter_name
        ):  # Adam's decay is the slope of half the squares
            is_readout = parameter is network.readout.weight
            readout_penalty = network_settings.readout_penalty if is_readout else 0.0
            weight_decay = network_settings.weight_decay + 2 * readout_penalty
            parameters_by_decay.setdefault(weight_decay, []).append(parameter)
    optimizers = [
        Adam(parameters, network_settings.learning_rate, weight_decay, fused=True)
        for weight_decay, parameters in parameters_by_decay.items()
    ]
    loss_function = _make_loss_function(network, class_codes, network_settings)

    step_batch_cycle = cycle(_split_into_step_batches(network, train_batch_and_codes))

    def run_epoch() -> float:
        # Setting the mode of all modules takes a twentieth of an epoch.
        if not network.training:
            network.train()
        loss_sum = torch.zeros((), device=class_codes.device)
        n_scans_seen = 0
        minibatches = (
            _draw_minibatches(train_batch_and_codes, network_settings.batch_size)
            if network_settings.batch_size
            else [next(step_batch_cycle)]
        )
        for minibatch, minibatch_codes in minibatches:
            network.zero_grad()
            loss = loss_function(network(minibatch), minibatch_codes)
            loss.backward()
            loss_sum += loss.detach() * len(minibatch_codes)
            n_scans_seen += len(minibatch_codes)
            for optimizer in optimizers:
                optimizer.step()
            if network.heat is not None:
                network.heat.step_(network_settings)
        return float(loss_sum) / n_scans_seen

    return run_epoch


def _split_into_step_batches(
    network: GraphNetwork, train_batch_and_codes: BatchAndCodes
) -> list[BatchAndCodes]:
    """Return parts of at most `MAX_STEP_SCANS` scans, in their order."""
    batch, class_codes = train_batch_and_codes
    n_items = len(class_codes)
    if network.reads_terms:  # before the division: parts copy nothing
        batch.region_terms(network.rows)  # type: ignore[union-attr]
    n_parts = -(-n_items // MAX_STEP_SCANS)
    if n_parts == 1:
        return [train_batch_and_codes]
    slice_bounds = [n_items * k // n_parts for k in range(n_parts + 1)]
    scan_slices = [
        slice(start_row, end_row) for start_row, end_row in pairwise(slice_bounds)
    ]
    return [
        (batch.select_items(scan_slice), class_codes[scan_slice])
        for scan_slice in scan_slices
    ]


def _draw_minibatches(
    train_batch_and_codes: BatchAndCodes, batch_size: int
) -> Iterator[BatchAndCodes]:
    """Yield all scans in a random order, so many at a time."""
    batch, class_codes = train_batch_and_codes
    n_items = len(class_codes)
    # Draw on the CPU, so that batches are the same on every device.
    item_order = torch.randperm(n_items).to(class_codes.device)
    # Equal parts: a last batch of one scan could not be standardised.
    for item_indices in torch.tensor_split(item_order, -(-n_items // batch_size)):
        if len(item_indices) == n_items:
            yield train_batch_and_codes
        else:
            yield batch.select_items(item_indices), class_codes[item_indices]


def _train_single_run(
    network: GraphNetwork,
    train_batch_and_codes: BatchAndCodes,
    validation_batch_and_codes: BatchAndCodes | None,
    network_settings: Settings,
) -> TrainingRun:
    """Train once and check the result."""
    run_training_epoch = make_epoch_function(
        network, train_batch_and_codes, network_settings
    )
    loss_function = _make_loss_function(
        network, train_batch_and_codes[1], network_settings
    )
    statistics_batch_and_codes = (
        train_batch_and_codes
        if network.reads_terms
        else _select_evenly_spread_batch(train_batch_and_codes)
    )
    training_history, best_state_dict = History(), network.state_dict()
    snapshots: list[NetworkSnapshot] = []
    chooses_epoch = (
        validation_batch_and_codes is not None and network_settings.patience > 0
    )
    best_loss, best_epoch, validation_loss = float("inf"), -1, float("nan")
    for epoch in range(network_settings.n_epochs):
        loss = run_training_epoch()
        if not np.isfinite(loss):
            break
        if epoch % _VALIDATE_EVERY == 0 and epoch < network_settings.n_epochs - 1:
            continue
        logits = train_batch_and_codes[1].new_zeros((0, network.n_classes))
        if validation_batch_and_codes is not None:
            logits = _compute_logits(
                network, statistics_batch_and_codes, validation_batch_and_codes[0]
            )
            validation_loss = float(
                loss_function(logits, validation_batch_and_codes[1])
            )
        if network_settings.network_weight == BY_LEFT_OUT_PEOPLE:
            network_state_dict = _copy_state_dict(network)
            snapshots.append(
                NetworkSnapshot(epoch, logits.cpu().numpy(), network_state_dict)
            )
        training_history.add(epoch, loss, validation_loss, network.heat)
        if not chooses_epoch:
            best_loss, best_epoch = loss, epoch
        elif validation_loss < best_loss - _MIN_IMPROVEMENT:
            best_loss, best_epoch = validation_loss, epoch
            best_state_dict = _copy_state_dict(network)
        elif epoch - best_epoch >= network_settings.patience:
            break
    # of the last epoch, whichever is selected
    training_accuracy = (
        _compute_training_accuracy(network, train_batch_and_codes)
        if network_settings.least_learned
        else 1.0
    )
    if chooses_epoch:
        network.load_state_dict(best_state_dict)
    fault_text = (
        _training_fault_text(
            network, train_batch_and_codes, training_accuracy, network_settings
        )
        if training_history.epoch
        else _DIVERGED
    )
    return TrainingRun(
        network,
        training_history,
        best_epoch,
        best_loss,
        fault_text,
        snapshots=snapshots,
    )


def _copy_state_dict(network: GraphNetwork) -> dict[str, Tensor]:
    """Return a copy of weights and statistics."""
    return {
        tensor_name: tensor.clone()
        for tensor_name, tensor in network.state_dict().items()
    }


def _select_evenly_spread_batch(batch_and_codes: BatchAndCodes) -> BatchAndCodes:
    """Return at most `MAX_STEP_SCANS` scans, evenly spread over the rows."""
    batch, class_codes = batch_and_codes
    n_scans = len(class_codes)
    if n_scans <= MAX_STEP_SCANS:
        return batch_and_codes
    item_indices = torch.arange(MAX_STEP_SCANS) * n_scans // MAX_STEP_SCANS
    item_indices = item_indices.to(class_codes.device)
    return batch.select_items(item_indices), class_codes[item_indices]


def _compute_training_accuracy(
    network: GraphNetwork, train_batch_and_codes: BatchAndCodes
) -> float:
    """Return the balanced accuracy in the scans that a network was trained on."""
    from sklearn.metrics import balanced_accuracy_score

    predicted_codes = _compute_logits(
        network, train_batch_and_codes, train_batch_and_codes[0]
    ).argmax(1)
    return float(
        balanced_accuracy_score(train_batch_and_codes[1].cpu(), predicted_codes.cpu())
    )


def _training_fault_text(
    network: GraphNetwork,
    train_batch_and_codes: BatchAndCodes,
    training_accuracy: float,
    network_settings: Settings,
) -> str:
    """Return the reason for not trusting a trained network, or "" if there is none."""
    logits = _compute_logits(
        network,
        train_batch_and_codes,
        _select_evenly_spread_batch(train_batch_and_codes)[0],
    ).double()
    if not bool(torch.isfinite(logits).all()):
        return _DIVERGED
    if float(logits.std(0, correction=0).max()) <= _MIN_LOGIT_SPREAD:
        return "the model gives every scan the same output"
    chance_balanced_accuracy = 1 / network.n_classes
    if (
        training_accuracy
        >= chance_balanced_accuracy
        + network_settings.least_learned * (1 - chance_balanced_accuracy)
    ):
        return ""
    return (
        "the model did not learn the training scans: its balanced accuracy on them "
        f"is {training_accuracy:.2f}, and chance is {chance_balanced_accuracy:.2f}"
    )


@torch.no_grad()
def _compute_logits(
    network: GraphNetwork, train_batch_and_codes: BatchAndCodes, batch: Batch
) -> Tensor:
    """Return the logits of some scans by the statistics of the training scans."""
    network.eval()
    network.remember_statistics(train_batch_and_codes[0])
    return network(batch)


def _make_loss_function(
    network: GraphNetwork, class_codes: Tensor, network_settings: Settings
) -> nn.Module:
    class_weights = None
    if network_settings.class_weight == "balanced":
        class_counts = torch.bincount(class_codes, minlength=network.n_classes).float()
        class_weights = len(class_codes) / (
            network.n_classes * class_counts.clamp_min(1.0)
        )
    return nn.CrossEntropyLoss(weight=class_weights)


def train_validated_runs(
    batch: Batch,
    class_codes: np.ndarray,
    splits: list[tuple[np.ndarray, np.ndarray]],
    measured_region_mask: np.ndarray,
    initial_scales: np.ndarray,
    network_settings: Settings,
    seed: int,
    stop_function: Callable[[list[TrainingRun]], bool] | None = None,
) -> list[TrainingRun]:
    """Train several networks, each validated on other people of the training scans.

    Parameters
    ----------
    batch : GraphBatch or DenseGraphs
        All training scans.
    class_codes : int array of shape (n_items,)
    splits : list of (train_rows, validation_scan_indices)
        Rows, for every start; from :func:`make_inner_splits`.
    measured_region_mask : bool array of shape (n_rois,)
        Regions to read out.
    initial_scales : array of shape (n_rois,)
        Initial values of the scales.
    network_settings : Settings
        With kernel and degree settled.
    seed : int
    stop_function : callable, optional
        `(training_runs) -> bool`, called before every further start: whether training
        ends without it.
    """
    n_rois, n_channels = batch.signal.shape[-2:]
    network_size_triple = n_rois, n_channels, int(class_codes.max()) + 1

    def make_network() -> GraphNetwork:
        network_arguments = torch.from_numpy(measured_region_mask), initial_scales
        network = GraphNetwork(
            *network_size_triple, network_settings, *network_arguments
        )
        if batch.offset is not None:  # start from the offset alone
            for output_parameter in network.output.parameters():
                nn.init.zeros_(output_parameter)
        return network.to(batch.signal.device)

    training_runs: list[TrainingRun] = []
    for start_number, split in enumerate(splits):
        if training_runs and stop_function is not None and stop_function(training_runs):
            break
        train_rows, validation_scan_indices = split
        if len(train_rows) > MAX_STEP_SCANS:  # steps take parts of them in their order
            rng = np.random.default_rng([seed, start_number])
            train_rows = rng.permutation(train_rows)
        train_batch_and_codes = select_batch_and_codes(batch, class_codes, train_rows)
        selected_batch_and_codes = select_batch_and_codes(
            batch, class_codes, validation_scan_indices
        )
        validation_batch_and_codes = (
            selected_batch_and_codes if len(selected_batch_and_codes[1]) else None
        )
        training_run = train_network_run(
            make_network,
            train_batch_and_codes,
            validation_batch_and_codes,
            network_settings,
            seed + 7919 * start_number,
        )
        training_run.validation_scan_indices = validation_scan_indices
        # prediction uses the statistics of all training scans
        training_run.network.remember_statistics(batch)
        training_runs.append(training_run)
    return training_runs


def mix_logits(
    ridge_logits: np.ndarray,
    network_logits: np.ndarray,
    network_weight: float | np.ndarray,
) -> np.ndarray:
    """Return logits of which a network has this weight, and the ridge the rest."""
    return (1 - network_weight) * ridge_logits + network_weight * network_logits


def make_network_choice(
    training_runs: list[TrainingRun],
    class_codes: np.ndarray,
    groups: np.ndarray,
    ridge_logits: np.ndarray,
    network_settings: Settings,
) -> NetworkChoice:
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
    training_runs : list of TrainingRun
        With snapshots. A run that stopped early keeps its last one.
    class_codes : int array of shape (n_scans,)
        Class of every training scan.
    groups : array of shape (n_scans,)
        Participant of every training scan.
    ridge_logits : array of shape (n_scans, n_classes)
        Of fits of the ridge without the scan's participant.
    network_settings : Settings
        Class weights; without patience, only the last epoch is considered.
    """
    validation_scan_indices = np.concatenate(
        [training_run.validation_scan_indices for training_run in training_runs]
    )
    n_steps = max(len(training_run.snapshots) for training_run in training_runs)
    _, row_person_codes = np.unique(
        groups[validation_scan_indices], return_inverse=True
    )
    if len(set(row_person_codes)) < 2:
        return NetworkChoice(0.0, None, None, n_steps - 1)
    step_numbers = (
        range(n_steps) if network_settings.patience else range(n_steps - 1, n_steps)
    )
    n_classes = ridge_logits.shape[1]
    class_weights = np.ones(n_classes)
    if network_settings.class_weight == "balanced":
        class_weights = len(class_codes) / (n_classes * np.bincount(class_codes))
    validation_codes = class_codes[validation_scan_indices]
    # Classes are on the first axis, because sums over a short last axis are slow.
    validation_ridge_logits = ridge_logits[validation_scan_indices].T[:, None]
    scan_gains = np.full(
        (n_steps, len(_NETWORK_WEIGHTS), len(validation_scan_indices)), -np.inf
    )
    scan_gains[:, 0] = 0.0
    for step_index in step_numbers:
        logits = np.concatenate(
            [
                _get_network_snapshot(training_run, step_index).validation_logits
                for training_run in training_runs
            ]
        ).astype(np.float64)
        if not np.isfinite(logits).all():  # diverged
            continue
        mixed_logits = mix_logits(
            validation_ridge_logits, logits.T[:, None], _NETWORK_WEIGHTS[:, None]
        )
        scan_losses = (
            _compute_cross_entropy(mixed_logits, validation_codes)
            * class_weights[validation_codes]
        )
        scan_gains[step_index] = scan_losses[0] - scan_losses
    total_gains = scan_gains.sum(axis=2)
    step_index, weight_index = np.unravel_index(total_gains.argmax(), total_gains.shape)
    person_gains = np.bincount(row_person_codes, scan_gains[step_index, weight_index])
    mean_gain_over_ridge = float(person_gains.mean())
    standard_error = float(person_gains.std(ddof=1) / np.sqrt(len(person_gains)))
    if (
        weight_index == 0
        or mean_gain_over_ridge < _MIN_STANDARD_ERRORS * standard_error
    ):
        best_network_step = int(total_gains[:, -1].argmax())
        return NetworkChoice(
            0.0, mean_gain_over_ridge, standard_error, best_network_step
        )
    return NetworkChoice(
        float(_NETWORK_WEIGHTS[weight_index]),
        mean_gain_over_ridge,
        standard_error,
        int(step_index),
    )


def _compute_cross_entropy(logits: np.ndarray, class_codes: np.ndarray) -> np.ndarray:
    """Return the cross-entropy of every scan, without the first axis of `logits`.

    `logits` is of shape (n_classes, ..., n_scans).
    """
    shifted_logits = logits - logits.max(axis=0)
    log_totals = np.log(np.exp(shifted_logits).sum(axis=0))
    code_indices = np.broadcast_to(class_codes, (1, *log_totals.shape))
    return log_totals - np.take_along_axis(shifted_logits, code_indices, axis=0)[0]


def are_networks_futile(
    training_runs: list[TrainingRun],
    n_all_left_out_people: int,
    class_codes: np.ndarray,
    groups: np.ndarray,
    ridge_logits: np.ndarray,
    network_settings: Settings,
) -> bool:
    r"""Return whether the weight of networks will be 0 after all starts, too.

    A gain of z standard errors over the n people whom the first starts leave out comes
    to :math:`z \sqrt{N / n}` over the N people whom all starts leave out. The weight is
    0 unless the gain exceeds two. z is the largest over epochs and weights, and
    therefore rather too large: three are expected for another start.

    Only starts count whose best epoch is no earlier than `patience`. Other starts may
    have stopped on a plateau that the next start leaves, and took little time.

    Parameters
    ----------
    training_runs : list of TrainingRun
        The starts so far, with snapshots.
    n_all_left_out_people : int
        Number of people whom all starts leave out, N.
    class_codes, groups, ridge_logits, settings
        As of :func:`make_network_choice`.
    """
    trained_runs = [
        training_run
        for training_run in training_runs
        if not training_run.fault_text
        and training_run.best_epoch >= network_settings.patience
    ]
    if not trained_runs:
        return False
    trained_network_choice = make_network_choice(
        trained_runs, class_codes, groups, ridge_logits, network_settings
    )
    if (
        trained_network_choice.gain is None
        or trained_network_choice.standard_error is None
    ):
        return True  # Nobody is left out.
    validation_row_arrays = [
        training_run.validation_scan_indices for training_run in trained_runs
    ]
    n_people = len(set(groups[np.concatenate(validation_row_arrays)]))
    expected_gain = trained_network_choice.gain * np.sqrt(
        n_all_left_out_people / n_people
    )
    standard_error = trained_network_choice.standard_error
    if expected_gain > _MIN_EXPECTED_STANDARD_ERRORS * standard_error:
        return False
    averaged_runs = select_usable_runs(training_runs)
    if averaged_runs == trained_runs:
        return trained_network_choice.weight == 0
    averaged_network_choice = make_network_choice(
        averaged_runs, class_codes, groups, ridge_logits, network_settings
    )
    return averaged_network_choice.weight == 0


def restore_snapshots(
    training_runs: list[TrainingRun], snapshot_index: int, batch: Batch
) -> None:
    """Put every network back to a snapshot, with the statistics of all scans."""
    for training_run in training_runs:
        snapshot = _get_network_snapshot(training_run, snapshot_index)
        training_run.network.load_state_dict(snapshot.state)
        training_run.network.remember_statistics(batch)
        training_run.best_epoch = snapshot.epoch


def _get_network_snapshot(
    training_run: TrainingRun, snapshot_index: int
) -> NetworkSnapshot:
    """Return a snapshot of a run, its last if it stopped before."""
    return training_run.snapshots[min(snapshot_index, len(training_run.snapshots) - 1)]


def select_batch_and_codes(
    batch: Batch, class_codes: np.ndarray, scan_indices: np.ndarray
) -> BatchAndCodes:
    """Return the scans of these rows of a batch, with their codes, on its device."""
    item_indices = torch.from_numpy(scan_indices).to(batch.signal.device)
    return batch.select_items(item_indices), torch.from_numpy(
        class_codes[scan_indices]
    ).to(item_indices.device)
