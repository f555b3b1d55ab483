"""The networks that LSAP is compared with on nodes, in its own training loop.

A baseline is what it draws in :class:`BaselineNetwork`, and one function of
:data:`FORWARD`, from sparse features times weights to one logit a class.
"""

from collections.abc import Callable

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
    drawn_weights,
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

NODE_BASELINES = tuple(TABLES["baselines"])
# Nearest nodes by personalised PageRank that GDC keeps of each column.
_GDC_NEIGHBOURS, _GDC_TELEPORT = 64, 0.05
_GAT_HEADS = 8


class BaselineNetwork(nn.Module):
    """Features times weights, then what `FORWARD` has under its name."""

    def __init__(
        self, name: str, inputs: NodeInputs, n_classes: int, settings: NodeSettings
    ) -> None:
        super().__init__()
        self.name, self.features, self.given = name, inputs.features, settings
        if name == "gdc":
            A = page_rank_graph(inputs.adjacency, _GDC_TELEPORT, _GDC_NEIGHBOURS)
        else:
            A = normalized_adjacency(inputs.adjacency)
        self.A = ConstantMatrix(A)
        units = settings.hidden_units
        first = {"sgc": n_classes, "gat": _GAT_HEADS * units}.get(name, units)
        self.weight = drawn_weights(inputs.features.shape[1], first)
        if name in {"gcn", "gdc"}:
            self.bias = nn.Parameter(torch.zeros(units))
            self.last_weight = drawn_weights(units, n_classes)
            self.last_bias = nn.Parameter(torch.zeros(n_classes))
        elif name == "gat":
            self.attend = Attend(inputs.adjacency, _GAT_HEADS, units, settings.dropout)
            self.last = nn.Linear(first, n_classes, bias=False)
            self.last_attend = Attend(inputs.adjacency, 1, n_classes, settings.dropout)
        elif name != "sgc":
            n_deep = settings.n_layers if name == "gcnii" else 0
            self.deep = nn.ParameterList(
                drawn_weights(units, units) for _ in range(n_deep)
            )
            self.last = nn.Linear(units, n_classes)
            if name == "dagnn":
                self.gate = nn.Linear(n_classes, 1)

    def forward(self, n_views: int = 1) -> Tensor:
        """Return logits of shape `(n_nodes, n_views, n_classes)`."""
        rate = self.given.input_dropout * self.training
        views = [
            FORWARD[self.name](self, self.features(self.weight, rate))
            for _ in range(n_views)
        ]
        return torch.stack(views, dim=1)

    def drop(self, H: Tensor) -> Tensor:
        """Return channels, some dropped while training."""
        return drop(H, self.given.dropout, self.training)


def _gcn(net: BaselineNetwork, H: Tensor) -> Tensor:
    H = net.drop(torch.relu(net.A(H) + net.bias))
    return net.A(H @ net.last_weight) + net.last_bias


def _gat(net: BaselineNetwork, H: Tensor) -> Tensor:
    return net.last_attend(net.last(net.drop(nn.functional.elu(net.attend(H)))))


def _mlp(net: BaselineNetwork, H: Tensor) -> Tensor:
    return net.last(net.drop(torch.relu(H)))


def _appnp(net: BaselineNetwork, H: Tensor) -> Tensor:
    H = first = _mlp(net, H)
    for _ in range(10):
        H = 0.9 * net.A(H) + 0.1 * first
    return H


def _dagnn(net: BaselineNetwork, H: Tensor) -> Tensor:
    """Sum over steps, each weighted by the node itself."""
    steps = [_mlp(net, H)]
    for _ in range(10):
        steps.append(net.A(steps[-1]))
    every = torch.stack(steps, dim=1)
    return (torch.sigmoid(net.gate(every)) * every).sum(1)


def _gcnii(net: BaselineNetwork, H: Tensor) -> Tensor:
    """Every layer sees the first channels again."""
    H = first = torch.relu(H)
    for k, weight in enumerate(net.deep, start=1):
        beta = float(np.log(0.5 / k + 1))
        H = 0.9 * net.A(net.drop(H)) + 0.1 * first
        H = torch.relu((1 - beta) * H + beta * (H @ weight))
    return _mlp(net, H)


FORWARD: dict[str, Callable[[BaselineNetwork, Tensor], Tensor]] = {
    "gcn": _gcn,
    "gdc": _gcn,
    "gat": _gat,
    "sgc": lambda net, H: net.A(net.A(H)),
    "mlp": _mlp,
    "appnp": _appnp,
    "dagnn": _dagnn,
    "gcnii": _gcnii,
}


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
        self.here, self.there = (
            drawn_weights(n_heads, n_out),
            drawn_weights(n_heads, n_out),
        )
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


def normalized_adjacency(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Return D^-1/2 (A + I) D^-1/2."""
    W = with_loops(adjacency)
    root = sparse.diags_array(W.sum(axis=1) ** -0.5)
    return sparse.csr_array(root @ W @ root, dtype=np.float32)


def page_rank_graph(
    adjacency: sparse.csr_array, teleport: float, n_neighbours: int
) -> sparse.csr_array:
    """Return personalised PageRank, the largest entries of each column, normalised.

    GDC of Gasteiger et al. 2019: the walk's matrix is symmetric; what is kept of it is
    divided by the roots of its sums over rows and columns.
    """
    n_nodes, at_once, rest = adjacency.shape[0], 512, 1e-3
    A = normalized_adjacency(adjacency)
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


def random_propagation(
    inputs: NodeInputs, n_classes: int, settings: NodeSettings
) -> nn.Module:
    """Make GRAND: LSAP's network, diffused by the mean of powers of the adjacency."""
    A = ConstantMatrix(normalized_adjacency(inputs.adjacency))
    n_steps = int(settings.degree or 0)

    def mean_of_steps(H: Tensor, _: Tensor) -> Tensor:
        total = H
        for _step in range(n_steps):
            H = A(H)
            total = total + H
        return total / (n_steps + 1)

    heat = HeatScale(inputs.adjacency.shape[0], 1.0, 1.0, "frozen")
    return NodeNetwork(inputs.features, mean_of_steps, heat, n_classes, settings)


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
        if self.model in FORWARD:
            return BaselineNetwork(self.model, inputs, n_classes, settings)
        if self.model == "grand":
            return random_propagation(inputs, n_classes, settings)
        return heat_network(inputs, n_classes, settings)
