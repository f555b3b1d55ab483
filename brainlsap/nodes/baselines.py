"""The networks that LSAP is compared with on nodes, in its own training loop.

Each starts with sparse features times weights (dropout on the features), and ends
with one logit a class: (n_nodes, n_views, n_classes).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn

from brainlsap.arrays import check_choice
from brainlsap.nodes.classifier import NodeClassifier
from brainlsap.nodes.networks import (
    ConstantMatrix,
    HeatScale,
    NodeInputs,
    NodeNetwork,
    drop,
    heat_network,
    with_loops,
)
from brainlsap.nodes.settings import (
    TABLES,
    NodeSettings,
    check_node_settings,
    settle_kernel,
)

# Nearest nodes by personalised PageRank that GDC keeps of each column.
_GDC_NEIGHBOURS, _GDC_TELEPORT = 64, 0.05


class Sequence(nn.Module):
    """Features times weights, then steps that take hidden channels."""

    def __init__(
        self, inputs: NodeInputs, n_units: int, settings: NodeSettings, *steps: Any
    ) -> None:
        super().__init__()
        self.features, self.dropout = inputs.features, settings.input_dropout
        self.weight = nn.Parameter(torch.empty(inputs.features.shape[1], n_units))
        nn.init.xavier_uniform_(self.weight)
        self.steps = nn.ModuleList(step() for step in steps)

    def forward(self, n_views: int = 1) -> Tensor:
        """Return logits of shape `(n_nodes, n_views, n_classes)`."""
        views = []
        for _ in range(n_views):
            H = self.features(self.weight, self.dropout * self.training)
            for step in self.steps:
                H = step(H)
            views.append(H)
        return torch.stack(views, dim=1)


class Activate(nn.Module):
    """A non-linearity, then dropout."""

    def __init__(self, rate: float, function: Callable = torch.relu) -> None:
        super().__init__()
        self.rate, self.function = rate, function

    def forward(self, H: Tensor) -> Tensor:
        """Return channels, some dropped while training."""
        return drop(self.function(H), self.rate, self.training)


class Convolve(nn.Module):
    """A H W + b; without W where the channels were multiplied before."""

    def __init__(self, A: ConstantMatrix, n_in: int | None, n_out: int) -> None:
        super().__init__()
        self.A, self.bias = A, nn.Parameter(torch.zeros(n_out))
        self.weight = None if n_in is None else nn.Parameter(torch.empty(n_in, n_out))
        if self.weight is not None:
            nn.init.xavier_uniform_(self.weight)

    def forward(self, H: Tensor) -> Tensor:
        """Return channels after the layer."""
        return self.A(H if self.weight is None else H @ self.weight) + self.bias


class Attend(nn.Module):
    """GAT's mean over neighbours, weighted by attention, for several heads.

    Of channels h, the weight of neighbour j of i is the softmax over j of
    leaky_relu(a . h_i + b . h_j).
    """

    def __init__(
        self, adjacency: sparse.csr_array, n_heads: int, n_out: int, rate: float
    ) -> None:
        super().__init__()
        edges = sparse.coo_array(with_loops(adjacency))
        ends = (edges.row, edges.col)
        self.target, self.source = (torch.from_numpy(i.astype(np.int64)) for i in ends)
        self.here = nn.Parameter(torch.empty(n_heads, n_out))
        self.there = nn.Parameter(torch.empty(n_heads, n_out))
        for weight in (self.here, self.there):
            nn.init.xavier_uniform_(weight)
        self.bias, self.rate = nn.Parameter(torch.zeros(n_heads * n_out)), rate

    def forward(self, H: Tensor) -> Tensor:
        """Return channels of shape `(n_nodes, n_heads * n_out)`."""
        heads = H.view(len(H), *self.here.shape)
        here, there = (heads * self.here).sum(-1), (heads * self.there).sum(-1)
        raw = nn.functional.leaky_relu(here[self.target] + there[self.source], 0.2)
        index = self.target[:, None].expand_as(raw)
        largest = raw.new_full((len(H), raw.shape[1]), -torch.inf)
        largest = largest.scatter_reduce(0, index, raw.detach(), "amax")
        weight = torch.exp(raw - largest[self.target])
        total = torch.zeros_like(largest).index_add(0, self.target, weight)
        weight = drop(weight / total[self.target], self.rate, self.training)
        sent = weight[..., None] * heads[self.source]
        mixed = torch.zeros_like(heads).index_add(0, self.target, sent)
        return mixed.flatten(1) + self.bias


class Propagate(nn.Module):
    """Steps H <- (1 - alpha) A H + alpha H_0 of personalised PageRank."""

    def __init__(self, A: ConstantMatrix, n_steps: int, alpha: float = 0.0) -> None:
        super().__init__()
        self.A, self.n_steps, self.alpha = A, n_steps, alpha

    def forward(self, H: Tensor) -> Tensor:
        """Return channels after all steps."""
        first = H
        for _ in range(self.n_steps):
            H = (1 - self.alpha) * self.A(H) + self.alpha * first
        return H


class AdaptiveDepth(nn.Module):
    """DAGNN's sum over steps, each weighted by the node itself (Liu et al. 2020)."""

    def __init__(self, A: ConstantMatrix, n_steps: int, n_classes: int) -> None:
        super().__init__()
        self.A, self.n_steps, self.gate = A, n_steps, nn.Linear(n_classes, 1)

    def forward(self, H: Tensor) -> Tensor:
        """Return logits."""
        steps = [H]
        for _ in range(self.n_steps):
            steps.append(self.A(steps[-1]))
        every = torch.stack(steps, dim=1)
        return (torch.sigmoid(self.gate(every)) * every).sum(1)


class Residual(nn.Module):
    """GCNII's layers: each sees the first channels again (Chen et al. 2020)."""

    weight_decay = 0.01  # the linear maps before and after keep the settings'

    def __init__(self, A: ConstantMatrix, settings: NodeSettings) -> None:
        super().__init__()
        self.A, self.dropout, units = A, settings.dropout, settings.hidden_units
        self.weights = nn.ParameterList(
            nn.init.xavier_uniform_(torch.empty(units, units))
            for _ in range(settings.n_layers)
        )

    def forward(self, H: Tensor) -> Tensor:
        """Return channels after all layers."""
        first = H
        for k, weight in enumerate(self.weights, start=1):
            beta = float(np.log(0.5 / k + 1))
            H = drop(H, self.dropout, self.training)
            H = 0.9 * self.A(H) + 0.1 * first
            H = torch.relu((1 - beta) * H + beta * (H @ weight))
        return H


def normalized_adjacency(adjacency: sparse.csr_array) -> ConstantMatrix:
    """Return D^-1/2 (A + I) D^-1/2."""
    W = with_loops(adjacency)
    root = sparse.diags_array(W.sum(axis=1) ** -0.5)
    return ConstantMatrix(sparse.csr_array(root @ W @ root, dtype=np.float32))


def page_rank_graph(
    adjacency: sparse.csr_array, teleport: float, n_neighbours: int
) -> sparse.csr_array:
    """Return personalised PageRank, the largest entries of each column, normalised.

    GDC of Gasteiger et al. 2019: the walk's matrix is symmetric; what is kept of it is
    divided by the roots of its sums over rows and columns.
    """
    n_nodes, at_once, rest = adjacency.shape[0], 512, 1e-3
    W = with_loops(adjacency)
    root = sparse.diags_array(W.sum(axis=1) ** -0.5)
    A = sparse.csr_array(root @ W @ root, dtype=np.float32)
    kept, blocks = min(n_neighbours, n_nodes), []
    for start in range(0, n_nodes, at_once):
        home = np.eye(n_nodes, min(at_once, n_nodes - start), -start, np.float32)
        rank = home.copy()
        for _ in range(int(np.ceil(np.log(rest) / np.log(1 - teleport)))):
            rank = (1 - teleport) * (A @ rank) + teleport * home
        order = np.argpartition(-rank, kept - 1, axis=0)[:kept]
        values = np.take_along_axis(rank, order, axis=0)
        columns = np.broadcast_to(np.arange(rank.shape[1]), order.shape)
        places = (order.ravel(), columns.ravel())
        blocks.append(sparse.csr_array((values.ravel(), places), shape=rank.shape))
    near = sparse.csr_array(sparse.hstack(blocks))
    left = sparse.diags_array(near.sum(axis=1) ** -0.5)
    right = sparse.diags_array(near.sum(axis=0) ** -0.5)
    return sparse.csr_array(left @ near @ right, dtype=np.float32)


def _network(
    name: str, inputs: NodeInputs, n_classes: int, settings: NodeSettings
) -> nn.Module:
    """Make the network of a baseline; see `NodeBaseline` for who proposed which."""
    units, rate = settings.hidden_units, settings.dropout
    if name in {"graphheat", "adc"}:
        return heat_network(inputs, n_classes, settings)
    if name == "gat":
        W = inputs.adjacency
        return Sequence(
            inputs,
            8 * units,
            settings,
            lambda: Attend(W, 8, units, rate),
            lambda: Activate(rate, nn.functional.elu),
            lambda: nn.Linear(8 * units, n_classes, bias=False),
            lambda: Attend(W, 1, n_classes, rate),
        )
    if name == "gdc":
        near = page_rank_graph(inputs.adjacency, _GDC_TELEPORT, _GDC_NEIGHBOURS)
        A = ConstantMatrix(near)
    else:
        A = normalized_adjacency(inputs.adjacency)
    if name == "grand":

        def mean_of_steps(H: Tensor, _: Tensor) -> Tensor:
            total = H
            n_steps = int(settings.degree or 0)
            for _step in range(n_steps):
                H = A(H)
                total = total + H
            return total / (n_steps + 1)

        heat = HeatScale(inputs.adjacency.shape[0], 1.0, 1.0, "frozen")
        return NodeNetwork(inputs.features, mean_of_steps, heat, n_classes, settings)
    if name == "sgc":
        return Sequence(inputs, n_classes, settings, lambda: Propagate(A, 2))
    steps: dict[str, list[Callable[[], nn.Module]]] = {
        "gcn": [
            lambda: Convolve(A, None, units),
            lambda: Activate(rate),
            lambda: Convolve(A, units, n_classes),
        ],
        "mlp": [lambda: Activate(rate), lambda: nn.Linear(units, n_classes)],
        "gcnii": [
            lambda: Activate(0.0),
            lambda: Residual(A, settings),
            lambda: Activate(rate),
            lambda: nn.Linear(units, n_classes),
        ],
    }
    steps["gdc"] = steps["gcn"]
    steps["appnp"] = [*steps["mlp"], lambda: Propagate(A, 10, 0.1)]
    steps["dagnn"] = [*steps["mlp"], lambda: AdaptiveDepth(A, 10, n_classes)]
    return Sequence(inputs, units, settings, *steps[name])


NODE_BASELINES = tuple(TABLES["baselines"])


class NodeBaseline(NodeClassifier):
    """A baseline of the node task, trained and chosen exactly as LSAP is.

    Parameters
    ----------
    model : str
        mlp; gcn (Kipf and Welling 2017); gat (Velickovic et al. 2018); sgc (Wu et al.
        2019); appnp and gdc (Gasteiger et al. 2019); graphheat (Xu et al. 2019); adc
        (Zhao et al. 2021); gcnii (Chen et al. 2020); dagnn (Liu et al. 2020); grand
        (random propagation, Feng et al. 2020).
    random_state : int
        Seed of weights and dropout.
    n_epochs, patience : int, optional
        As for :class:`LSAPNodeClassifier`.

    Attributes
    ----------
    classes_, best_epoch_, history_, settings_, fit_report_
        As for :class:`LSAPNodeClassifier`.
    """

    def __init__(
        self,
        model: str = "gcn",
        *,
        random_state: int = 0,
        n_epochs: int | None = None,
        patience: int | None = None,
    ) -> None:
        self.model = model
        self.random_state = random_state
        self.n_epochs = n_epochs
        self.patience = patience

    def settings(self, dataset: str = "") -> NodeSettings:
        """Return the settings of a fit on a data set of this name, checked."""
        check_choice("model", self.model, NODE_BASELINES)
        named = dict(TABLES["baselines"][self.model])
        by_dataset = TABLES["datasets"].get(dataset, {"baselines": {}})["baselines"]
        named |= by_dataset.get(self.model, {})
        given = {"n_epochs": self.n_epochs, "patience": self.patience}
        named |= {name: value for name, value in given.items() if value is not None}
        settings = NodeSettings(**named)
        check_node_settings(settings)
        return settings if self.model == "grand" else settle_kernel(settings)

    def _make_network(
        self, inputs: NodeInputs, n_classes: int, settings: NodeSettings
    ) -> nn.Module:
        return _network(self.model, inputs, n_classes, settings)
