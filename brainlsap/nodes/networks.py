"""Networks over one large graph: heat convolutions, and those compared with them.

The wide input never meets the graph: features are multiplied by weights, row by
sparse row, and only the hidden channels are propagated. Several views of the graph
(nodes dropped at random) are propagated side by side, as channels.

A model is how :meth:`NodeNetwork.propagate` takes channels along the graph, and a
function of :data:`READ_OUTS`, from the first channels to one logit a class.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from joblib import hash as hash_of
from scipy import sparse
from torch import Tensor, nn

from brainlsap.exceptions import ParameterError
from brainlsap.graph import decompose, diffuse_recurrence, normalized_laplacian
from brainlsap.graph.laplacian import csr_tensor
from brainlsap.model.network import drop
from brainlsap.model.propagation import HeatScale
from brainlsap.nodes.settings import NodeSettings

# What takes minutes to make of a graph, by a hash of both; seeds share it.
_made: dict[str, Any] = {}


class ConstantMatrix(nn.Module):
    """A constant matrix, sparse or dense, with its product and dropout of entries."""

    X: Tensor
    turned: Tensor

    def __init__(self, matrix: sparse.sparray) -> None:
        super().__init__()
        X = sparse.csr_array(matrix, dtype=np.float32)
        # multiplied as it is: indices then cost more than zeros
        self.is_dense = X.nnz > 0.25 * X.shape[0] * X.shape[1]
        whole = torch.from_numpy(X.toarray()) if self.is_dense else csr_tensor(X)
        self.register_buffer("X", whole, persistent=False)
        # the transpose, of each entry its place among the values of X
        numbers = sparse.csr_array((np.arange(X.nnz), X.indices, X.indptr), X.shape)
        self.register_buffer("turned", csr_tensor(numbers.T.tocsr()), persistent=False)

    def forward(self, H: Tensor, dropout: float = 0.0) -> Tensor:
        """Return the matrix times `H`; a share of its entries is dropped."""
        if self.is_dense:
            return drop(self.X, dropout, training=True) @ H
        values = drop(self.X.values(), dropout, training=True)
        return _SparseProduct.apply(values, H, self)  # type: ignore[no-any-return]


class _SparseProduct(torch.autograd.Function):
    """X H for constant sparse X; torch's own turns X around in every epoch."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, H: Tensor, matrix: ConstantMatrix) -> Tensor:
        ctx.values, ctx.turned = values, matrix.turned
        return csr_tensor(matrix.X, values) @ H

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        values = ctx.values[ctx.turned.values()]
        return None, csr_tensor(ctx.turned, values) @ grad, None


class NodeNetwork(nn.Module):
    """Features times weights for every view, then a function of `READ_OUTS`.

    Parameters
    ----------
    graph : with `adjacency` and `features`
        Its labels are not touched.
    n_classes : int
    settings : NodeSettings
    """

    L: Tensor
    U: Tensor
    rates: Tensor

    def __init__(self, graph: Any, n_classes: int, settings: NodeSettings) -> None:
        super().__init__()
        self.settings, name, units = settings, settings.network, settings.hidden_units
        matrices = graph.adjacency, graph.features
        adjacency, X = (sparse.csr_array(one, dtype=np.float32) for one in matrices)
        if settings.normalize == "row":
            total = np.abs(X).sum(axis=1)
            X = sparse.diags_array(1 / np.where(total > 0, total, 1)) @ X
        self.features = ConstantMatrix(X)
        self._prepare(adjacency)
        n_heads, rate = 8 if name == "gat" else 1, settings.dropout
        sizes = [X.shape[1], n_heads * units]
        if name not in READ_OUTS:
            n_hidden = settings.n_layers - (settings.head == "convolution")
            sizes = [X.shape[1], *[units] * n_hidden, n_classes]
            self.biases = nn.ParameterList(torch.zeros(size) for size in sizes[1:])
        self.weights = nn.ParameterList(map(drawn_weights, sizes, sizes[1:]))
        if name == "gat":
            self.attend = Attention(n_heads, units, rate)
        elif name == "gcnii":
            deep = (drawn_weights(units, units) for _ in range(settings.n_layers))
            self.deep = nn.ParameterList(deep)
        if name in READ_OUTS:
            self.last = nn.Linear(sizes[1], n_classes, bias=name != "gat")
        if name == "gat":
            self.last_attend = Attention(1, n_classes, rate)
        elif name == "dagnn":
            self.gate = nn.Linear(n_classes, 1)

    def _prepare(self, adjacency: sparse.csr_array) -> None:
        """Keep what propagates: a matrix of steps, a Laplacian or its eigenvectors."""
        given, n_nodes = self.settings, adjacency.shape[0]
        mode = given.scale_mode.replace("node", "region")
        start, largest = given.initial_scale or 0.0, given.max_scale or 0.0
        self.heat = HeatScale(n_nodes, start, largest, mode)
        if given.network != "heat":
            make = page_rank_graph if given.network == "gdc" else normalized_adjacency
            self.steps = ConstantMatrix(made_once(make, adjacency))
            return
        W = with_loops(adjacency) if given.self_loops else adjacency
        if given.kernel != "exact":
            self.register_buffer("L", normalized_laplacian(W), persistent=False)
            return
        if n_nodes > given.max_exact_nodes:
            raise ParameterError(
                f"{n_nodes} nodes exceed max_exact_nodes={given.max_exact_nodes}; "
                "model='lsap-c' with tolerance=1e-6 gives the same to six digits."
            )
        for name, made in zip(("rates", "U"), made_once(spectrum_of, W), strict=True):
            self.register_buffer(name, made, persistent=False)

    def forward(self, n_views: int = 1) -> Tensor:
        """Return logits of shape `(n_nodes, n_views, n_classes)`."""
        given, views = self.settings, []
        for _ in range(n_views):
            H = self.features(self.weights[0], given.input_dropout * self.training)
            if self.training and given.node_dropout:
                keep = torch.rand(len(H), 1, device=H.device) >= given.node_dropout
                H = H * (keep / (1 - given.node_dropout))
            views.append(H)
        return READ_OUTS.get(given.network, layers)(self, torch.stack(views, dim=1))

    def propagate(self, H: Tensor, scale: Any = None) -> Tensor:
        """Take all views along the graph at once: as heat, or by steps over edges."""
        given, flat = self.settings, H.flatten(1)
        degree = int(given.degree or 0)
        if given.network != "heat":
            steps = self.walk(H, degree)
            if given.network == "grand":
                return sum(steps[1:], start=H) / len(steps)
            return steps[-1]
        if given.kernel != "exact":
            flat = diffuse_recurrence(self.L, flat, scale, given.kernel, degree)
        else:
            # as it reads: the engine for many small graphs is several times slower on
            # one large one, and one matrix of all responses fits into memory here
            response = torch.exp(-scale[:, None] * self.rates)
            flat = (self.U * response) @ (self.U.T @ flat)
        return flat.view(H.shape)

    def walk(self, H: Tensor, n_steps: int) -> list[Tensor]:
        """Return channels after 0 to `n_steps` steps over edges."""
        steps = [H]
        for _ in range(n_steps):
            steps.append(self.steps(steps[-1].flatten(1)).view(H.shape))
        return steps

    def drop(self, H: Tensor) -> Tensor:
        """Return channels, some dropped while training."""
        return drop(H, self.settings.dropout, self.training)


def drawn_weights(n_in: int, n_out: int) -> nn.Parameter:
    """Draw a matrix of weights."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(n_in, n_out)))


def layers(net: NodeNetwork, H: Tensor) -> Tensor:
    r"""Return logits of K layers :math:`H \leftarrow \sigma(P(H) W + b)`.

    P is heat for LSAP, GraphHeat (one scale, given) and ADC (one, learned); a step
    along the edges for GCN, GDC (of another graph) and SGC (two steps); and the mean
    of several for GRAND.
    """
    scale = net.heat()
    for k, bias in enumerate(net.biases):
        if k > 0:
            H = net.drop(torch.relu(H)) @ net.weights[k]
        H = (net.propagate(H, scale) if k < net.settings.n_layers else H) + bias
    return H


def gat(net: Any, H: Tensor) -> Tensor:
    """Attention twice."""
    edges = net.steps.X.to_sparse().indices()
    H = net.drop(nn.functional.elu(net.attend(H, edges)))
    return net.last_attend(net.last(H), edges)


def mlp(net: Any, H: Tensor) -> Tensor:
    """Nothing of the graph."""
    return net.last(net.drop(torch.relu(H)))


def appnp(net: Any, H: Tensor) -> Tensor:
    """Ten steps, each with a tenth of the start."""
    H = first = mlp(net, H)
    for _ in range(10):
        H = 0.9 * net.propagate(H) + 0.1 * first
    return H


def dagnn(net: Any, H: Tensor) -> Tensor:
    """Sum over steps, each weighted by the node itself."""
    every = torch.stack(net.walk(mlp(net, H), 10), dim=2)
    return (torch.sigmoid(net.gate(every)) * every).sum(2)


def gcnii(net: Any, H: Tensor) -> Tensor:
    """Every layer sees the first channels again."""
    H = first = torch.relu(H)
    for k, weight in enumerate(net.deep, start=1):
        beta = float(np.log(0.5 / k + 1))
        H = 0.9 * net.propagate(net.drop(H)) + 0.1 * first
        H = torch.relu((1 - beta) * H + beta * (H @ weight))
    return mlp(net, H)


# What follows the first channels; other networks are of `layers`.
READ_OUTS = {one.__name__: one for one in (mlp, gat, appnp, dagnn, gcnii)}


class Attention(nn.Module):
    """GAT's mean over neighbours, weighted by attention, for several heads.

    Of channels h, the weight of neighbour j of i is the softmax over j of
    leaky_relu(a . h_i + b . h_j).
    """

    def __init__(self, n_heads: int, n_out: int, rate: float) -> None:
        super().__init__()
        self.here = drawn_weights(n_heads, n_out)
        self.there = drawn_weights(n_heads, n_out)
        self.bias, self.rate = nn.Parameter(torch.zeros(n_heads * n_out)), rate

    def forward(self, H: Tensor, edges: Tensor) -> Tensor:
        """Return channels of shape `(n_nodes, n_views, n_heads * n_out)`."""
        (target, source), heads = edges, H.unflatten(-1, self.here.shape)
        here, there = (heads * self.here).sum(-1), (heads * self.there).sum(-1)
        raw = nn.functional.leaky_relu(here[target] + there[source], 0.2)
        index = target[:, None, None].expand_as(raw)
        lowest = torch.full_like(here, -torch.inf)
        largest = lowest.scatter_reduce(0, index, raw.detach(), "amax")
        weight = torch.exp(raw - largest[target])
        total = torch.zeros_like(here).index_add(0, target, weight)
        weight = drop(weight / total[target], self.rate, self.training)
        sent = weight[..., None] * heads[source]
        mixed = torch.zeros_like(heads).index_add(0, target, sent)
        return mixed.flatten(2) + self.bias


def made_once(make: Callable[[Any], Any], W: sparse.csr_array) -> Any:
    """Return `make(W)`; the last result is kept."""
    key = hash_of((make.__name__, W.indptr, W.indices, W.data))
    if key not in _made:
        _made.clear()
        _made[key] = make(W)
    return _made[key]


def spectrum_of(adjacency: sparse.csr_array) -> tuple[Tensor, Tensor]:
    """Return eigenvalues and eigenvectors of the normalised Laplacian."""
    L = normalized_laplacian(adjacency).to_dense()
    spectrum = decompose(L[None], torch.float32)
    return spectrum.eigenvalues[0].float(), spectrum.eigenvectors[0]


def with_loops(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Return a graph in which every node is its own neighbour too."""
    loops = sparse.eye_array(adjacency.shape[0], dtype=np.float32)
    return sparse.csr_array(adjacency + loops)


def normalized_adjacency(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Return D^-1/2 (A + I) D^-1/2."""
    return _normalized(with_loops(adjacency))


def _normalized(W: sparse.csr_array) -> sparse.csr_array:
    left, right = (sparse.diags_array(W.sum(axis=one) ** -0.5) for one in (1, 0))
    return sparse.csr_array(left @ W @ right, dtype=np.float32)


def page_rank_graph(
    adjacency: sparse.csr_array, teleport: float = 0.05, n_neighbours: int = 64
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
        low = np.argpartition(-rank, kept - 1, axis=0)[kept:]
        np.put_along_axis(rank, low, 0, axis=0)
        blocks.append(sparse.csr_array(rank))
    return _normalized(sparse.csr_array(sparse.hstack(blocks)))
