"""The scales that a fitted model went through, for figures."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.exceptions import ParameterError


def scale_history(model: Any, region_names: Sequence[str]) -> pd.DataFrame:
    """Return the scales of a fitted model during training, mean over its starts.

    Parameters
    ----------
    model : LSAPClassifier
        Fitted; its `history_` holds the scales at every look of every start.
    region_names : sequence of str, length n_rois
        Names of the regions, in the order of the model's input.

    Returns
    -------
    DataFrame
        One row an epoch that was looked at, one column a region. A start that ended
        earlier than others keeps its last scales.

    Raises
    ------
    ParameterError
        If the model has no history, or other regions than these.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> first = SimpleNamespace(epoch=[0, 2], scales=[[2.0], [1.0]])
    >>> second = SimpleNamespace(epoch=[0, 2, 4], scales=[[2.0], [1.5], [0.5]])
    >>> model = SimpleNamespace(history_=[first, second])
    >>> scale_history(model, ["Left-Putamen"])["Left-Putamen"].to_dict()
    {0: 2.0, 2: 1.25, 4: 0.75}
    """
    histories = [one for one in getattr(model, "history_", ()) if len(one.epoch)]
    if not histories:
        raise ParameterError(
            f"{type(model).__name__} has no history of scales; fit an LSAPClassifier "
            "first."
        )
    frames = [pd.DataFrame(np.stack(one.scales), one.epoch) for one in histories]
    if frames[0].shape[1] != len(region_names):
        raise ParameterError(
            f"the model has {frames[0].shape[1]} regions, region_names "
            f"{len(region_names)}; give the names of the cohort that it was fitted to."
        )
    epochs = sorted({epoch for one in frames for epoch in one.index})
    total = sum(one.reindex(epochs).ffill().to_numpy() for one in frames)
    told = pd.DataFrame(total / len(frames), epochs, list(region_names))
    return told.rename_axis(index="epoch")
