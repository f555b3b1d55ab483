"""Scans with their graphs as the networks to compare take them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from brainlsap.graph import prepare_connectomes
from brainlsap.model.connectome_inputs import all_equal


@dataclass(frozen=True, eq=False)
class GraphScans:
    """Signals on regions, and what a network keeps of each scan's graph.

    Attributes
    ----------
    signal : Tensor of shape (n_items, n_rois, n_channels)
        Standardised features.
    graphs : tuple of Tensor
        Each of shape (n_items, ...), or (1, ...) where all scans share one graph.
    shared : bool
        Whether they do.
    """

    signal: Tensor
    graphs: tuple[Tensor, ...]
    shared: bool

    def __len__(self) -> int:
        return len(self.signal)

    def select(self, items: Tensor) -> "GraphScans":
        """Return some of the scans."""
        graphs = self.graphs
        if not self.shared:
            graphs = tuple(one[items] for one in graphs)
        return GraphScans(self.signal[items], graphs, self.shared)


def prepare_scans(
    connectomes: np.ndarray,
    scaled: np.ndarray,
    read_graphs: Callable[[np.ndarray], tuple[Tensor, ...]],
    *,
    threshold: float,
    weights: str,
) -> GraphScans:
    """Prepare connectomes, and read of them what a network keeps.

    Parameters
    ----------
    connectomes : array of shape (n_scans, n_rois, n_rois)
    scaled : array of shape (n_scans, n_rois, n_features)
        From :class:`brainlsap.model.inputs.InputScaler`.
    read_graphs : callable
        Takes prepared connectomes; returns tensors with one row a graph.
    threshold, weights : float, str
        As for :func:`brainlsap.graph.prepare_connectomes`.

    Returns
    -------
    GraphScans
        One graph where all connectomes are the same.

    Examples
    --------
    >>> scans = prepare_scans(
    ...     np.ones((4, 3, 3)),
    ...     np.zeros((4, 3, 2)),
    ...     lambda W: (torch.from_numpy(W),),
    ...     threshold=0.0,
    ...     weights="weighted",
    ... )
    >>> len(scans), scans.shared, scans.graphs[0].shape
    (4, True, torch.Size([1, 3, 3]))
    """
    shared = len(connectomes) > 1 and all_equal(connectomes)
    chosen = connectomes[:1] if shared else connectomes
    prepared = prepare_connectomes(chosen, threshold=threshold, weights=weights)
    graphs = tuple(one.float() for one in read_graphs(prepared))
    return GraphScans(torch.from_numpy(scaled).float(), graphs, shared)
