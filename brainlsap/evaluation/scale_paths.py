"""The scales of a fitted model on their way through training, at even shares of it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

N_STEPS = 20
"""A path has one row more: the start, every twentieth of training, the end."""


def scale_path(model: Any) -> np.ndarray | None:
    """Return the scales during training, the mean over the model's starts.

    Every start counts from its first epoch to the one that was chosen, whenever that
    was, so that folds and starts can be averaged.

    Parameters
    ----------
    model : estimator
        Fitted. Read are `history_` (records with `epoch` and `scales`, one a start),
        `fit_report_["epochs"]`, `scales_start_` and `scales_`.

    Returns
    -------
    array of shape (21, n_rois) or None
        The first row is where scales started, the last what was learned. None for
        models without a history of scales.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> run = SimpleNamespace(epoch=[0, 10], scales=[np.array([2.0]), np.array([1.0])])
    >>> model = SimpleNamespace(
    ...     history_=[run],
    ...     fit_report_={"epochs": [10]},
    ...     scales_start_=[2.0],
    ...     scales_=[1.0],
    ... )
    >>> scale_path(model)[::5, 0].tolist()
    [2.0, 1.75, 1.5, 1.25, 1.0]
    """
    runs = [one for one in getattr(model, "history_", ()) if _has_scales(one)]
    best = getattr(model, "fit_report_", {}).get("epochs", [])
    if not runs or len(runs) != len(best) or not hasattr(model, "scales_start_"):
        return None
    n_rois = len(model.scales_)
    paths = [
        _resampled(run, last, n_rois) for run, last in zip(runs, best, strict=True)
    ]
    path = np.stack(paths).mean(axis=0)
    path[0], path[-1] = model.scales_start_, model.scales_
    return path.round(4)


def mean_scale_path(paths: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """Return the mean of the paths of several folds.

    Parameters
    ----------
    paths : sequence of array of shape (21, n_rois)
        As from :func:`scale_path`.

    Returns
    -------
    array of shape (21, n_rois) or None
        None where a fold has none.

    Examples
    --------
    >>> mean_scale_path([np.zeros((2, 1)), np.ones((2, 1))]).tolist()
    [[0.5], [0.5]]
    """
    found = [one for one in paths if one is not None]
    return np.mean(found, axis=0) if found and len(found) == len(paths) else None


def _has_scales(run: Any) -> bool:
    return len(getattr(run, "scales", ())) > 0


def _resampled(run: Any, last: int, n_rois: int) -> np.ndarray:
    epochs = np.asarray(run.epoch, dtype=float)
    scales = np.array([np.broadcast_to(one, (n_rois,)) for one in run.scales])
    wanted = np.linspace(epochs[0], max(last, epochs[0]), N_STEPS + 1)
    return np.stack([np.interp(wanted, epochs, one) for one in scales.T], axis=1)
