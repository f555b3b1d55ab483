"""Graph networks by PyTorch Geometric (extra `baselines`): GCN, GAT and GDC.

Its dense layers take all graphs of a step at once, which on some 160 regions is far
faster than a list of edges.
"""

import itertools
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from brainlsap.exceptions import ParameterError
from brainlsap.model.dropout import drop
from brainlsap.model.graph_scans import GraphScans
from brainlsap.model.layers import Readout

# Gasteiger et al. 2019: personalised PageRank, the strongest neighbours of each node.
_TELEPORT, _NEIGHBOURS = 0.15, 64


def geometric_layers() -> Any:
    """Return PyTorch Geometric's layers.

    Returns
    -------
    module
        `torch_geometric.nn`.

    Raises
    ------
    ParameterError
        Where it is not installed; the message names the extra.
    """
    try:
        return import_module("torch_geometric.nn")
    except ImportError as error:
        raise ParameterError(
            "the networks gcn, gat and gdc need PyTorch Geometric, which cannot be "
            f"imported ({error}). Install brainlsap[baselines]."
        ) from None


class GraphConvolutionNetwork(nn.Module):
    """GCN (Kipf and Welling 2017), or GAT (Velickovic et al. 2018), with a read-out.

    Parameters
    ----------
    layers : list of nn.Module
        PyTorch Geometric's dense layers.
    n_inputs : int
        Measured regions times channels of the last layer.
    settings : object
        With `hidden_units` and `dropout`.
    n_classes : int
    measured : bool Tensor of shape (n_rois,)
    """

    measured: Tensor

    def __init__(
        self,
        layers: list[nn.Module],
        n_inputs: int,
        settings: Any,
        n_classes: int,
        measured: Tensor,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.readout = Readout(
            n_inputs, settings.hidden_units, n_classes, settings.dropout
        )
        self.dropout = settings.dropout
        self.register_buffer("measured", measured)

    def forward(self, scans: GraphScans) -> Tensor:
        """Return logits of shape `(n_items, n_classes)`."""
        H, adjacency = scans.signal, scans.graphs[0]
        for number, layer in enumerate(self.layers):
            H = drop(H, self.dropout if number else 0.0, self.training)
            H = torch.relu(self._convolve(layer, H, adjacency))
        return self.readout(H[:, self.measured].flatten(1))

    def _convolve(self, layer: Any, H: Tensor, adjacency: Tensor) -> Tensor:
        if hasattr(layer, "att_src"):
            return attend(layer, H, adjacency)
        return layer(H, adjacency, add_loop=False)


def attend(layer: Any, H: Tensor, adjacency: Tensor) -> Tensor:
    """Do what a dense GAT layer does, with memory in the order that softmax needs.

    PyTorch Geometric keeps heads on the last axis, which takes three times as long
    on a CPU. A test holds the two together.

    Parameters
    ----------
    layer : torch_geometric.nn.DenseGATConv
        With its heads side by side.
    H : Tensor of shape (n_items, n_rois, n_channels)
    adjacency : Tensor of shape (n_items or 1, n_rois, n_rois)
        With self loops; where it is 0 nobody looks.

    Returns
    -------
    Tensor of shape (n_items, n_rois, n_units)
    """
    x = layer.lin(H).unflatten(-1, (layer.heads, layer.out_channels)).transpose(1, 2)
    source = (x * layer.att_src[0].transpose(0, 1)).sum(-1)
    target = (x * layer.att_dst[0].transpose(0, 1)).sum(-1)
    alpha = nn.functional.leaky_relu(
        target[..., :, None] + source[..., None, :], layer.negative_slope
    )
    unseen = torch.zeros_like(adjacency).masked_fill(adjacency == 0, -torch.inf)
    out = (alpha + unseen[:, None]).softmax(-1) @ x
    return out.transpose(1, 2).flatten(2) + layer.bias


def make_gcn(
    n_channels: int, n_classes: int, settings: Any, measured: Tensor
) -> GraphConvolutionNetwork:
    """Return a GCN, or a GDC: the same layers on rewired graphs."""
    layers = geometric_layers()
    widths = [n_channels] + [settings.hidden_units] * settings.n_layers
    return GraphConvolutionNetwork(
        [layers.DenseGCNConv(a, b) for a, b in itertools.pairwise(widths)],
        int(measured.sum()) * widths[-1],
        settings,
        n_classes,
        measured,
    )


def make_gat(
    n_channels: int, n_classes: int, settings: Any, measured: Tensor
) -> GraphConvolutionNetwork:
    """Return a GAT; the heads of a layer share its hidden units."""
    layers = geometric_layers()
    heads = 2 if settings.hidden_units % 2 == 0 else 1
    widths = [n_channels] + [settings.hidden_units] * settings.n_layers
    return GraphConvolutionNetwork(
        [
            layers.DenseGATConv(a, b // heads, heads=heads)
            for a, b in itertools.pairwise(widths)
        ],
        int(measured.sum()) * widths[-1],
        settings,
        n_classes,
        measured,
    )


def adjacency_with_loops(W: np.ndarray) -> tuple[Tensor, ...]:
    """Return connectomes over their mean strength, with self loops of weight 1.

    Streamline counts reach thousands: beside them a loop of 1 would be nothing, and
    a region's own value lost in the first layer. Over the mean strength, a region
    weighs as much as all its neighbours together; binary networks, which the method
    was written for, are left as they are.

    Parameters
    ----------
    W : array of shape (n_graphs, n_rois, n_rois)
        Prepared connectomes.

    Returns
    -------
    tuple of Tensor of shape (n_graphs, n_rois, n_rois)

    Examples
    --------
    >>> adjacency_with_loops(np.array([[[0.0, 4.0], [4.0, 0.0]]]))[0].tolist()
    [[[1.0, 1.0], [1.0, 1.0]]]
    """
    binary = bool(np.isin(W, (0.0, 1.0)).all())
    strength = W.sum(-1).mean(-1)
    unit = np.where((strength > 0) & (not binary), strength, 1.0)
    return (torch.from_numpy(W / unit[:, None, None] + np.eye(W.shape[-1])),)


def diffused_adjacency(W: np.ndarray) -> tuple[Tensor, ...]:
    r"""Return graphs rewired by personalised PageRank (GDC, Gasteiger et al. 2019).

    .. math:: S = \alpha \left(I - (1 - \alpha) T\right)^{-1}, \qquad
              T = D^{-1/2} (W + I) D^{-1/2}

    with :math:`\alpha = 0.15`; the 64 largest entries of each column are kept, then
    columns sum to 1. PyTorch Geometric's transform does the same one graph at a time
    (a test holds the two together).

    Parameters
    ----------
    W : array of shape (n_graphs, n_rois, n_rois)
        Prepared connectomes.

    Returns
    -------
    tuple of Tensor of shape (n_graphs, n_rois, n_rois)
        Symmetrised, as an undirected layer takes it.
    """
    S = rewired_by_pagerank(adjacency_with_loops(W)[0])
    return ((S + S.mT) / 2,)


def rewired_by_pagerank(
    adjacency: Tensor, teleport: float = _TELEPORT, n_neighbours: int = _NEIGHBOURS
) -> Tensor:
    """Return the sparsified PageRank matrices, columns summing to 1.

    Parameters
    ----------
    adjacency : Tensor of shape (n_graphs, n_rois, n_rois)
        With self loops.
    teleport : float
        Probability to start again.
    n_neighbours : int
        Entries kept in each column.

    Returns
    -------
    Tensor of shape (n_graphs, n_rois, n_rois)

    Examples
    --------
    >>> rewired_by_pagerank(torch.ones(1, 2, 2), n_neighbours=1)[0].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    root = adjacency.sum(-1).rsqrt()
    T = root[:, :, None] * adjacency * root[:, None, :]
    identity = torch.eye(T.shape[-1], dtype=T.dtype)
    S = teleport * torch.linalg.inv(identity - (1 - teleport) * T)
    kept = min(n_neighbours, S.shape[-1])
    rows = S.argsort(dim=1, descending=True)[:, :kept]
    sparse = torch.zeros_like(S).scatter(1, rows, S.gather(1, rows))
    return sparse / sparse.sum(1, keepdim=True)
