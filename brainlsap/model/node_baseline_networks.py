"""Networks that LSAP is compared with on nodes, from PyTorch Geometric's layers.

The first weights are applied to the sparse features before the graph is met, as in
LSAP: the same numbers, much sooner. Each takes `network(n_views)`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn

from brainlsap.exceptions import ParameterError
from brainlsap.graph import normalized_laplacian
from brainlsap.model.network import drop
from brainlsap.model.node_graph_inputs import NodeInputs, make_diffusion
from brainlsap.model.node_network import NodeNetwork
from brainlsap.model.node_propagation import mean_of_powers, page_rank_graph
from brainlsap.model.node_settings import NodeSettings
from brainlsap.model.propagation import HeatScale

# Nearest nodes by personalised PageRank that GDC keeps of each column.
_GDC_NEIGHBOURS, _GDC_TELEPORT = 64, 0.05


def geometric() -> Any:
    """Return PyTorch Geometric's layers; say what to install where it is absent."""
    try:
        import torch_geometric.nn as layers
    except ImportError:
        raise ParameterError(
            "this baseline needs PyTorch Geometric: pip install 'brainlsap[baselines]'."
        ) from None
    return layers


class FirstLinear(nn.Module):
    """Sparse features times weights, features dropped while training."""

    def __init__(self, inputs: NodeInputs, n_units: int, settings: NodeSettings):
        super().__init__()
        self.features, self.dropout = inputs.features, settings.input_dropout
        self.weight = nn.Parameter(torch.empty(inputs.features.shape[1], n_units))
        nn.init.xavier_uniform_(self.weight)

    def forward(self) -> Tensor:
        """Return hidden channels of all nodes."""
        return self.features(self.weight, self.dropout * self.training)


class Sequence(nn.Module):
    """First weights, then steps that take channels and the graph.

    Parameters
    ----------
    first : FirstLinear
    steps : list of Module
        Each `step(H)`.
    """

    def __init__(self, first: FirstLinear, *steps: nn.Module) -> None:
        super().__init__()
        self.first, self.steps = first, nn.ModuleList(steps)

    def forward(self, n_views: int = 1) -> Tensor:
        """Return logits of shape `(n_nodes, n_views, n_classes)`."""
        views = []
        for _ in range(n_views):
            H = self.first()
            for step in self.steps:
                H = step(H)
            views.append(H)
        return torch.stack(views, dim=1)


class OnGraph(nn.Module):
    """A layer of PyTorch Geometric with its graph, after its weights or not."""

    def __init__(
        self,
        layer: nn.Module,
        edges: Tensor,
        weights: Tensor | None = None,
        *,
        weighted_before: bool = False,
    ) -> None:
        super().__init__()
        if weighted_before:
            layer.lin = nn.Identity()
        self.layer = layer
        self.register_buffer("edges", edges, persistent=False)
        self.given = {} if weights is None else {"edge_weight": weights}

    def forward(self, H: Tensor) -> Tensor:
        """Return channels after the layer."""
        return self.layer(H, self.edges, **self.given)


class Activate(nn.Module):
    """A non-linearity, then dropout."""

    def __init__(self, rate: float, function: Callable = torch.relu) -> None:
        super().__init__()
        self.rate, self.function = rate, function

    def forward(self, H: Tensor) -> Tensor:
        """Return channels, some dropped while training."""
        return drop(self.function(H), self.rate, self.training)


def edges_of(W: sparse.csr_array) -> tuple[Tensor, Tensor]:
    """Return edges of shape (2, n_edges) and their weights."""
    listed = sparse.coo_array(W)
    pairs = np.stack([listed.col, listed.row]).astype(np.int64)
    return torch.from_numpy(pairs), torch.from_numpy(listed.data.astype(np.float32))


def mlp(inputs: NodeInputs, n_classes: int, settings: NodeSettings) -> nn.Module:
    """Make a perceptron of two layers; the graph is not used."""
    return Sequence(*_perceptron(inputs, n_classes, settings))


def _perceptron(
    inputs: NodeInputs, n_classes: int, settings: NodeSettings
) -> tuple[FirstLinear, nn.Module, nn.Module]:
    units = settings.hidden_units
    return (
        FirstLinear(inputs, units, settings),
        Activate(settings.dropout),
        nn.Linear(units, n_classes),
    )


def gcn(inputs: NodeInputs, n_classes: int, settings: NodeSettings) -> nn.Module:
    """Convolve twice over the graph (Kipf and Welling 2017)."""
    return _two_convolutions(inputs, n_classes, settings, inputs.adjacency, loops=True)


def gdc(inputs: NodeInputs, n_classes: int, settings: NodeSettings) -> nn.Module:
    """Run GCN on the graph of personalised PageRank (Gasteiger et al. 2019)."""
    near = page_rank_graph(inputs.adjacency, _GDC_TELEPORT, _GDC_NEIGHBOURS)
    return _two_convolutions(inputs, n_classes, settings, near, loops=False)


def _two_convolutions(
    inputs: NodeInputs,
    n_classes: int,
    settings: NodeSettings,
    W: sparse.csr_array,
    *,
    loops: bool,
) -> nn.Module:
    layers, units = geometric(), settings.hidden_units
    edges, weights = edges_of(W)
    given = {"cached": True, "add_self_loops": loops, "normalize": loops}
    one = layers.GCNConv(units, units, **given)
    two = layers.GCNConv(units, n_classes, **given)
    return Sequence(
        FirstLinear(inputs, units, settings),
        OnGraph(one, edges, weights, weighted_before=True),
        Activate(settings.dropout),
        OnGraph(two, edges, weights),
    )


def gat(inputs: NodeInputs, n_classes: int, settings: NodeSettings) -> nn.Module:
    """Attend to neighbours in two layers, with 8 heads (Velickovic et al. 2018)."""
    layers, units = geometric(), settings.hidden_units
    edges, _ = edges_of(inputs.adjacency)
    one = layers.GATConv(8 * units, units, heads=8, dropout=settings.dropout)
    two = layers.GATConv(8 * units, n_classes, dropout=settings.dropout)
    return Sequence(
        FirstLinear(inputs, 8 * units, settings),
        OnGraph(one, edges, weighted_before=True),
        Activate(settings.dropout, nn.functional.elu),
        OnGraph(two, edges),
    )


def sgc(inputs: NodeInputs, n_classes: int, settings: NodeSettings) -> nn.Module:
    """Fit a linear model after two steps over the graph (Wu et al. 2019)."""
    edges, _ = edges_of(inputs.adjacency)
    step = geometric().APPNP(K=2, alpha=0.0, cached=True)
    return Sequence(FirstLinear(inputs, n_classes, settings), OnGraph(step, edges))


def appnp(inputs: NodeInputs, n_classes: int, settings: NodeSettings) -> nn.Module:
    """Predict, then propagate by personalised PageRank (Gasteiger et al. 2019)."""
    edges, _ = edges_of(inputs.adjacency)
    # its own dropout of edges adds up over the steps: after ten, none would be left
    step = geometric().APPNP(K=10, alpha=0.1, cached=True)
    return Sequence(*_perceptron(inputs, n_classes, settings), OnGraph(step, edges))


class Residual(nn.Module):
    """GCNII's layers: each sees the first channels again (Chen et al. 2020)."""

    weight_decay = 0.01  # the linear maps before and after keep the settings'

    def __init__(self, settings: NodeSettings, edges: Tensor) -> None:
        super().__init__()
        units, self.dropout = settings.hidden_units, settings.dropout
        self.layers = nn.ModuleList(
            geometric().GCN2Conv(units, 0.1, theta=0.5, layer=k + 1, cached=True)
            for k in range(settings.n_layers)
        )
        self.register_buffer("edges", edges, persistent=False)

    def forward(self, H: Tensor) -> Tensor:
        """Return channels after all layers."""
        first = H
        for layer in self.layers:
            H = drop(H, self.dropout, self.training)
            H = torch.relu(layer(H, first, self.edges))
        return H


def gcnii(inputs: NodeInputs, n_classes: int, settings: NodeSettings) -> nn.Module:
    """Stack convolutions that see the first channels again (Chen et al. 2020)."""
    units = settings.hidden_units
    edges, _ = edges_of(inputs.adjacency)
    return Sequence(
        FirstLinear(inputs, units, settings),
        Activate(0.0),
        Residual(settings, edges),
        Activate(settings.dropout),
        nn.Linear(units, n_classes),
    )


class AdaptiveDepth(nn.Module):
    """DAGNN's sum over steps, each weighted by the node itself (Liu et al. 2020)."""

    def __init__(self, n_classes: int, n_steps: int, edges: Tensor) -> None:
        super().__init__()
        self.gate = nn.Linear(n_classes, 1)
        self.step = geometric().APPNP(K=1, alpha=0.0, cached=True)
        self.n_steps = n_steps
        self.register_buffer("edges", edges, persistent=False)

    def forward(self, H: Tensor) -> Tensor:
        """Return logits."""
        steps = [H]
        for _ in range(self.n_steps):
            steps.append(self.step(steps[-1], self.edges))
        every = torch.stack(steps, dim=1)
        return (torch.sigmoid(self.gate(every)) * every).sum(1)


def dagnn(inputs: NodeInputs, n_classes: int, settings: NodeSettings) -> nn.Module:
    """Predict, then take as many steps as each node likes (Liu et al. 2020)."""
    edges, _ = edges_of(inputs.adjacency)
    steps = AdaptiveDepth(n_classes, 10, edges)
    return Sequence(*_perceptron(inputs, n_classes, settings), steps)


def grand(inputs: NodeInputs, n_classes: int, settings: NodeSettings) -> nn.Module:
    """Propagate at random, with consistency (Feng et al. 2020).

    The mean of powers of the normalised graph, applied after the first weights.
    """
    n_nodes = inputs.adjacency.shape[0]
    loops = sparse.eye_array(n_nodes, dtype=np.float32)
    L = normalized_laplacian(sparse.csr_array(inputs.adjacency + loops))

    def propagate(H: Tensor, _: Tensor) -> Tensor:
        return mean_of_powers(H, L, int(settings.degree or 0))

    heat = HeatScale(n_nodes, 1.0, 1.0, "frozen")
    return NodeNetwork(inputs.features, propagate, heat, n_classes, settings)


def heat_network(
    inputs: NodeInputs, n_classes: int, settings: NodeSettings
) -> nn.Module:
    """Convolve by heat with one scale, given (GraphHeat) or learned (ADC)."""
    start, largest = settings.initial_scale or 0, settings.max_scale or 0
    n_nodes = inputs.adjacency.shape[0]
    heat = HeatScale(n_nodes, float(start), float(largest), settings.scale_mode)
    diffusion = make_diffusion(inputs.adjacency, settings)
    return NodeNetwork(inputs.features, diffusion, heat, n_classes, settings)


NODE_NETWORKS = {
    "mlp": mlp,
    "gcn": gcn,
    "gat": gat,
    "sgc": sgc,
    "appnp": appnp,
    "gdc": gdc,
    "graphheat": heat_network,
    "adc": heat_network,
    "gcnii": gcnii,
    "dagnn": dagnn,
    "grand": grand,
}
