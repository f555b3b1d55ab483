"""Networks without a graph convolution: a perceptron, and one that reads edges."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from brainlsap.model.graph_scans import GraphScans
from brainlsap.model.layers import Readout

_EDGE_CHANNELS = 4


class Perceptron(nn.Module):
    """A perceptron of two layers on the features; it never sees the connectome.

    Parameters
    ----------
    n_channels, n_classes : int
    settings : object
        With `hidden_units` and `dropout`.
    measured : bool Tensor of shape (n_rois,)
    """

    measured: Tensor

    def __init__(
        self, n_channels: int, n_classes: int, settings: Any, measured: Tensor
    ) -> None:
        super().__init__()
        n_inputs = int(measured.sum()) * n_channels
        self.readout = Readout(
            n_inputs, settings.hidden_units, n_classes, settings.dropout
        )
        self.register_buffer("measured", measured)

    def forward(self, scans: GraphScans) -> Tensor:
        """Return logits of shape `(n_items, n_classes)`."""
        return self.readout(scans.signal[:, self.measured].flatten(1))


class EdgeToEdge(nn.Module):
    r"""BrainNetCNN's edge-to-edge filter: each edge sees those of its two regions.

    .. math:: A'_{ij} = \sum_k r_k A_{ik} + \sum_k c_k A_{kj} + b

    Parameters
    ----------
    n_rois, n_channels : int
        Regions; filters, of one input channel.

    Examples
    --------
    >>> EdgeToEdge(3, 5)(torch.ones(2, 3, 3)).shape
    torch.Size([2, 5, 3, 3])
    """

    def __init__(self, n_rois: int, n_channels: int) -> None:
        super().__init__()
        self.row = nn.Linear(n_rois, n_channels)
        self.column = nn.Linear(n_rois, n_channels, bias=False)

    def forward(self, A: Tensor) -> Tensor:
        """Return `(n_items, n_channels, n_rois, n_rois)`."""
        row = self.row(A).mT
        column = self.column(A.mT).mT
        return row[..., :, None] + column[..., None, :]


class BrainNetwork(nn.Module):
    """BrainNetCNN (Kawahara et al. 2017) that reads regional features too.

    Edge-to-edge filters, then edge-to-node; the features of each region are put
    beside what its edges gave, and the read-out is that of the other networks. Where
    all scans share one connectome, its edges tell nothing and the features remain.

    Parameters
    ----------
    n_channels, n_classes : int
    settings : object
        With `hidden_units` and `dropout`.
    measured : bool Tensor of shape (n_rois,)
    """

    measured: Tensor
    edge_mean: Tensor
    edge_deviation: Tensor

    def __init__(
        self, n_channels: int, n_classes: int, settings: Any, measured: Tensor
    ) -> None:
        super().__init__()
        n_rois = len(measured)
        self.edge_to_edge = EdgeToEdge(n_rois, _EDGE_CHANNELS)
        self.edge_to_node = nn.Linear(_EDGE_CHANNELS * n_rois, settings.hidden_units)
        self.readout = Readout(
            n_rois * (settings.hidden_units + n_channels),
            settings.hidden_units,
            n_classes,
            settings.dropout,
        )
        self.register_buffer("measured", measured)
        self.register_buffer("edge_mean", torch.zeros(n_rois, n_rois))
        self.register_buffer("edge_deviation", torch.ones(n_rois, n_rois))

    @torch.no_grad()
    def learn_statistics(self, scans: GraphScans) -> None:
        """Store mean and deviation of every edge over training scans."""
        edges = scans.graphs[0]
        self.edge_mean = edges.mean(0)
        deviation = edges.std(0, correction=0)
        flat = deviation <= 1e-6 * (1 + self.edge_mean.abs())
        self.edge_deviation = torch.where(flat, torch.inf, deviation)

    def forward(self, scans: GraphScans) -> Tensor:
        """Return logits of shape `(n_items, n_classes)`."""
        standardized = (scans.graphs[0] - self.edge_mean) / self.edge_deviation
        edges = nn.functional.leaky_relu(self.edge_to_edge(standardized), 0.33)
        nodes = self.edge_to_node(edges.permute(0, 2, 1, 3).flatten(2))
        nodes = nn.functional.leaky_relu(nodes, 0.33).expand(len(scans), -1, -1)
        signal = scans.signal * self.measured[:, None]
        return self.readout(torch.cat([nodes, signal], dim=2).flatten(1))


def no_graphs(W: np.ndarray) -> tuple[Tensor, ...]:
    """Return nothing of the graphs."""
    del W
    return ()


def log_edges(W: np.ndarray) -> tuple[Tensor, ...]:
    """Return log(1 + w) of every edge; edges span orders of magnitude."""
    return (torch.from_numpy(np.log1p(W)),)
