"""Several starts of one fit: each watches other people; the healthy are averaged."""

from dataclasses import dataclass

import numpy as np
import torch

from brainlsap.model.inner_split import inner_split
from brainlsap.model.network import GraphBatch, HeatNetwork
from brainlsap.model.settings import Settings, candidates
from brainlsap.model.training import Labelled, TrainedNetwork, train_network

# "auto" compares starting scales on so many slices of the training people.
_PILOTS = 3


@dataclass(frozen=True, eq=False)
class TrainingTask:
    """What every start of a fit is given.

    Attributes
    ----------
    batch : GraphBatch
        All training scans.
    codes : int array of shape (n_items,)
    groups : array of shape (n_items,)
        Participant of every scan.
    measured : bool array of shape (n_rois,)
        Regions to read out.
    n_classes : int
    seed : int
    """

    batch: GraphBatch
    codes: np.ndarray
    groups: np.ndarray
    measured: np.ndarray
    n_classes: int
    seed: int


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The starts of one fit.

    Attributes
    ----------
    runs : list of TrainedNetwork
        Every start from the chosen scale.
    settings : Settings
        The candidate that was chosen, without "auto".
    start_losses : dict of str to list of float
        Validation loss by starting scale, where several were tried.
    """

    runs: list[TrainedNetwork]
    settings: Settings
    start_losses: dict[str, list[float]]


def train_ensemble(task: TrainingTask, settings: Settings) -> Ensemble:
    """Choose the starting scale if asked to, then train every start.

    Parameters
    ----------
    task : TrainingTask
    settings : Settings
        With kernel and degree settled.

    Returns
    -------
    Ensemble
    """
    choices = candidates(settings)
    _, watch = inner_split(
        task.codes, task.groups, settings.validation_fraction, 0, task.seed
    )
    if settings.patience == 0 or len(watch) == 0:
        # nobody is left to choose by, and training loss favours memorising
        choices = choices[-1:]
    n_pilots = min(_PILOTS, settings.n_starts) if len(choices) > 1 else 0
    pilots = [
        [train_start(task, choice, number) for number in range(n_pilots)]
        for choice in choices
    ]
    losses = [
        [run.best_loss for run in runs if np.isfinite(run.best_loss)] for runs in pilots
    ]
    mean_losses = [float(np.mean(found)) if found else np.inf for found in losses]
    best = int(np.argmin(mean_losses))
    runs = pilots[best] + [
        train_start(task, choices[best], number)
        for number in range(n_pilots, settings.n_starts)
    ]
    told = {
        f"{choice.initial_scale:g}": found
        for choice, found in zip(choices, losses, strict=True)
        if found
    }
    return Ensemble(runs, choices[best], told)


def train_start(task: TrainingTask, settings: Settings, number: int) -> TrainedNetwork:
    """Train one network, watching its own slice of the people.

    Parameters
    ----------
    task : TrainingTask
    settings : Settings
        With the starting scale as a number.
    number : int
        Which start, from 0.

    Returns
    -------
    TrainedNetwork
    """
    learn, watch = inner_split(
        task.codes, task.groups, settings.validation_fraction, number, task.seed
    )
    if settings.patience == 0:
        learn, watch = np.arange(len(task.codes)), watch[:0]
    device = task.batch.signal.device
    target = torch.from_numpy(task.codes).to(device)
    parts = [
        Labelled(task.batch.select(rows), target[rows])
        for rows in (
            torch.from_numpy(learn).to(device),
            torch.from_numpy(watch).to(device),
        )
    ]
    n_rois, n_channels = task.batch.signal.shape[-2:]

    def make_network() -> HeatNetwork:
        measured = torch.from_numpy(task.measured)
        network = HeatNetwork(n_rois, n_channels, task.n_classes, settings, measured)
        return network.to(device)

    watched = parts[1] if len(watch) else None
    seed = task.seed + 7919 * number
    run = train_network(make_network, parts[0], watched, settings, seed)
    # prediction uses the statistics of everybody that was given
    run.network.remember_statistics(task.batch)
    return run
