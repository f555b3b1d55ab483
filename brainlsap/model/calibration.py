"""Temperature scaling: probabilities as sure as the people left out allow."""

from collections.abc import Sequence

import numpy as np
import torch

from brainlsap.model.ensemble import TrainingTask
from brainlsap.model.inner_split import inner_split
from brainlsap.model.records import TrainedNetwork
from brainlsap.model.settings import Settings

_LARGEST = 20.0


def learn_temperature(
    task: TrainingTask, runs: Sequence[TrainedNetwork], settings: Settings
) -> float:
    """Learn one temperature on the slices of people that the starts watched.

    Each network is asked about its own slice only, which it did not learn from; what
    is learned is one number, by which all logits are divided.

    Parameters
    ----------
    task : TrainingTask
        All training scans.
    runs : sequence of TrainedNetwork
        Every start, in order.
    settings : Settings
        Of the fit.

    Returns
    -------
    float
        1 where nobody was left to watch.
    """
    logits, codes = [], []
    for number, run in enumerate(runs):
        _, watch = inner_split(
            task.codes, task.groups, settings.validation_fraction, number, task.seed
        )
        if settings.patience == 0 or len(watch) == 0 or not run.healthy:
            continue
        rows = torch.from_numpy(watch).to(task.batch.signal.device)
        with torch.no_grad():
            told = run.network(task.batch.select(rows)).double().cpu().numpy()
        logits.append(told)
        codes.append(task.codes[watch])
    if not logits:
        return 1.0
    return fit_temperature(np.concatenate(logits), np.concatenate(codes))


def fit_temperature(logits: np.ndarray, codes: np.ndarray) -> float:
    r"""Return the T at which softmax(logits / T) has the lowest mean log loss.

    Parameters
    ----------
    logits : array of shape (n_items, n_classes)
    codes : int array of shape (n_items,)
        True class of every item.

    Returns
    -------
    float
        Between 1/20 and 20; above 1 where the logits were too sure.

    Examples
    --------
    >>> logits = np.array([[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [4.0, 0.0]])
    >>> round(fit_temperature(logits, np.array([0, 0, 0, 1])), 2)
    3.64
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import log_softmax

    rows = np.arange(len(codes))

    def loss(log_temperature: float) -> float:
        told = log_softmax(logits / np.exp(log_temperature), axis=1)
        return float(-told[rows, codes].mean())

    limit = np.log(_LARGEST)
    found = minimize_scalar(loss, bounds=(-limit, limit), method="bounded")
    return float(np.exp(found.x))
