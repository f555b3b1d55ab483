"""What training is given, what it goes through, what comes out."""

from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from brainlsap.model.network import GraphBatch, HeatNetwork


@dataclass(frozen=True, eq=False)
class Labelled:
    """Scans with their class codes.

    Parameters
    ----------
    batch : GraphBatch
        The scans.
    codes : int Tensor of shape (n_items,)
        Their classes, from 0.

    Examples
    --------
    See :func:`brainlsap.model.train_network`.
    """

    batch: GraphBatch
    codes: Tensor


@dataclass(eq=False)
class History:
    """What a training run went through, one entry a look.

    Parameters
    ----------
    epoch : list of int
        When it was looked, from 0.
    train_loss : list of float
        Mean cross-entropy of the epoch.
    validation_loss : list of float
        Mean cross-entropy of the validation slice; NaN without one.
    scales : list of array of shape (n_rois,)
        Heat scales at the look.

    Examples
    --------
    >>> import torch
    >>> history = History()
    >>> history.add(0, 1.5, 1.6, torch.full((3,), 2.0))
    >>> history.scales[-1].tolist()
    [2.0, 2.0, 2.0]
    """

    epoch: list[int] = field(default_factory=list)
    train_loss: list[float] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    scales: list[np.ndarray] = field(default_factory=list)

    def add(self, epoch: int, train: float, validation: float, scale: Tensor) -> None:
        """Append one look.

        Parameters
        ----------
        epoch : int
            Number of the epoch.
        train, validation : float
            Losses.
        scale : Tensor of shape (n_rois,)
            Copied.
        """
        self.epoch.append(epoch)
        self.train_loss.append(train)
        self.validation_loss.append(validation)
        self.scales.append(scale.detach().cpu().numpy().copy())


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """One network at its chosen epoch.

    Parameters
    ----------
    network : HeatNetwork
        In evaluation mode, with the statistics of all training scans.
    history : History
        Losses and scales at every look.
    best_epoch : int
        The chosen epoch, from 0.
    best_loss : float
        Validation loss there; training loss without a validation slice.
    n_restarts : int
        How often a dead or diverging run was started again with another seed.
    healthy : bool
        False if the last run was dead or diverging too.
    diverged : bool
        Whether its logits are not finite, so that it cannot predict.

    Examples
    --------
    See :func:`brainlsap.model.train_network`.
    """

    network: HeatNetwork
    history: History
    best_epoch: int
    best_loss: float
    n_restarts: int
    healthy: bool
    diverged: bool
