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

from brainlsap.exceptions import ParameterError, check_choice
from brainlsap.graph import decompose, diffuse_recurrence, normalized_laplacian
from brainlsap.graph.laplacian import csr_tensor
from brainlsap.model.network import drop
from brainlsap.model.propagation import HeatScale
from brainlsap.nodes.graphs import NodeGraph
from brainlsap.nodes.settings import NodeSettings

# One-entry cache of what takes minutes to compute from a graph, keyed by function and
# graph; the seeds of a run share it.
_cache: dict[str, Any] = {}


class ConstantMatrix(nn.Module):
    """A constant matrix, sparse or dense, with its product and dropout of entries."""

    X: Tensor
    transpose: Tensor

    def __init__(self, matrix: sparse.sparray) -> None:
        super().__init__()
        X = sparse.csr_array(matrix, dtype=np.float32)
        # a dense product is faster here: indices cost more than zeros
        self.is_dense = X.nnz > 0.25 * X.shape[0] * X.shape[1]
        stored = torch.from_numpy(X.toarray()) if self.is_dense else csr_tensor(X)
        self.register_buffer("X", stored, persistent=False)
        # the transpose holds, for each entry, its position among the values of X
        numbers = sparse.csr_array((np.arange(X.nnz), X.indices, X.indptr), X.shape)
        self.register_buffer(
            "transpose", csr_tensor(numbers.T.tocsr()), persistent=False
        )

    def forward(self, H: Tensor, dropout: float = 0.0) -> Tensor:
        """Return the matrix times `H`; a share of its entries is dropped."""
        if self.is_dense:
            return drop(self.X, dropout, training=True) @ H
        values = drop(self.X.values(), dropout, training=True)
        return _SparseProduct.apply(values, H, self)  # type: ignore[no-any-return]


class _SparseProduct(torch.autograd.Function):
    """X H for constant sparse X; torch would transpose X again in every epoch."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, H: Tensor, matrix: ConstantMatrix) -> Tensor:
        ctx.values, ctx.transpose = values, matrix.transpose
        return csr_tensor(matrix.X, values) @ H

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        values = ctx.values[ctx.transpose.values()]
        return None, csr_tensor(ctx.transpose, values) @ grad, None


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
    eigenvalues: Tensor
    steps: ConstantMatrix
    deep: nn.ParameterList
    last: nn.Linear
    gate: nn.Linear
    attend: "Attention"
    last_attend: "Attention"

    def __init__(
        self, graph: NodeGraph, n_classes: int, settings: NodeSettings
    ) -> None:
        super().__init__()
        self.settings = settings
        name, units = settings.network, settings.hidden_units
        check_choice("network", name, READ_OUTS)
        self.read_out = READ_OUTS[name]
        is_convolution = self.read_out is convolution_layers
        adjacency = sparse.csr_array(graph.adjacency, dtype=np.float32)
        X = sparse.csr_array(graph.features, dtype=np.float32)
        if settings.normalize == "row":
            total = np.abs(X).sum(axis=1)
            X = sparse.diags_array(1 / np.where(total > 0, total, 1)) @ X
        self.features = ConstantMatrix(X)
        self._prepare(adjacency)
        n_heads, rate = 8 if name == "gat" else 1, settings.dropout
        sizes = [X.shape[1], n_heads * units]
        if is_convolution:
            n_hidden = settings.n_layers - (settings.head == "convolution")
            sizes = [X.shape[1], *[units] * n_hidden, n_classes]
            self.biases = nn.ParameterList(torch.zeros(size) for size in sizes[1:])
        self.weights = nn.ParameterList(map(draw_weights, sizes, sizes[1:]))
        if name == "gat":
            self.attend = Attention(n_heads, units, rate)
        elif name == "gcnii":
            deep = (draw_weights(units, units) for _ in range(settings.n_layers))
            self.deep = nn.ParameterList(deep)
        if not is_convolution:
            self.last = nn.Linear(sizes[1], n_classes, bias=name != "gat")
        if name == "gat":
            self.last_attend = Attention(1, n_classes, rate)
        elif name == "dagnn":
            self.gate = nn.Linear(n_classes, 1)

    def _prepare(self, adjacency: sparse.csr_array) -> None:
        """Store what propagates: a matrix of steps, a Laplacian or its eigenvectors."""
        settings, n_nodes = self.settings, adjacency.shape[0]
        mode = settings.scale_mode.replace("node", "region")
        start, largest = settings.initial_scale or 0.0, settings.max_scale or 0.0
        self.heat = HeatScale(n_nodes, start, largest, mode)
        if settings.network != "heat":
            make_steps = (
                page_rank_graph if settings.network == "gdc" else normalized_adjacency
            )
            self.steps = ConstantMatrix(cached(make_steps, adjacency))
            return
        W = with_loops(adjacency) if settings.self_loops else adjacency
        if settings.kernel != "exact":
            self.register_buffer("L", normalized_laplacian(W), persistent=False)
            return
        if n_nodes > settings.max_exact_nodes:
            raise ParameterError(
                f"{n_nodes} nodes exceed max_exact_nodes={settings.max_exact_nodes}; "
                "model='lsap-c' with tolerance=1e-6 gives the same to six digits."
            )
        for name, tensor in zip(
            ("eigenvalues", "U"), cached(spectrum_of, W), strict=True
        ):
            self.register_buffer(name, tensor, persistent=False)

    def forward(self, n_views: int = 1) -> Tensor:
        """Return logits of shape `(n_nodes, n_views, n_classes)`."""
        settings, views = self.settings, []
        for _ in range(n_views):
            H = self.features(self.weights[0], settings.input_dropout * self.training)
            if self.training and settings.node_dropout:
                is_kept_node = (
                    torch.rand(len(H), 1, device=H.device) >= settings.node_dropout
                )
                H = H * (is_kept_node / (1 - settings.node_dropout))
            views.append(H)
        return self.read_out(self, torch.stack(views, dim=1))

    def propagate(self, H: Tensor, scale: Any = None) -> Tensor:
        """Propagate all views at once, as heat or by steps over edges."""
        settings, channels = self.settings, H.flatten(1)
        degree = int(settings.degree or 0)
        if settings.network != "heat":
            steps = self.walk(H, degree)
            if settings.network == "grand":
                return sum(steps[1:], start=H) / len(steps)
            return steps[-1]
        if settings.kernel != "exact":
            channels = diffuse_recurrence(
                self.L, channels, scale, settings.kernel, degree
            )
        else:
            # written out: the engine for many small graphs is several times slower on
            # one large graph, and one matrix of all responses fits into memory here
            response = torch.exp(-scale[:, None] * self.eigenvalues)
            channels = (self.U * response) @ (self.U.T @ channels)
        return channels.view(H.shape)

    def walk(self, H: Tensor, n_steps: int) -> list[Tensor]:
        """Return channels after 0 to `n_steps` steps over edges."""
        steps = [H]
        for _ in range(n_steps):
            steps.append(self.steps(steps[-1].flatten(1)).view(H.shape))
        return steps

    def drop(self, H: Tensor) -> Tensor:
        """Return channels, some dropped while training."""
        return drop(H, self.settings.dropout, self.training)


def draw_weights(n_in: int, n_out: int) -> nn.Parameter:
    """Draw a matrix of weights."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(n_in, n_out)))


def convolution_layers(net: NodeNetwork, H: Tensor) -> Tensor:
    r"""Return logits of K layers :math:`H \leftarrow \sigma(P(H) W + b)`.

    P is heat for LSAP, GraphHeat (one fixed scale) and ADC (one learned scale); a step
    along the edges for GCN, GDC (of another graph) and SGC (two steps); and the mean
    of several for GRAND.
    """
    scale = net.heat()
    for k, bias in enumerate(net.biases):
        if k > 0:
            H = net.drop(torch.relu(H)) @ net.weights[k]
        H = (net.propagate(H, scale) if k < net.settings.n_layers else H) + bias
    return H


def gat(net: NodeNetwork, H: Tensor) -> Tensor:
    """Apply GAT: two layers of attention."""
    edges = net.steps.X.to_sparse().indices()
    H = net.drop(nn.functional.elu(net.attend(H, edges)))
    return net.last_attend(net.last(H), edges)


def mlp(net: NodeNetwork, H: Tensor) -> Tensor:
    """Apply a perceptron, which ignores the graph."""
    return net.last(net.drop(torch.relu(H)))


def appnp(net: NodeNetwork, H: Tensor) -> Tensor:
    """Apply APPNP: ten steps, each with a tenth of the initial channels."""
    H = first = mlp(net, H)
    for _ in range(10):
        H = 0.9 * net.propagate(H) + 0.1 * first
    return H


def dagnn(net: NodeNetwork, H: Tensor) -> Tensor:
    """Apply DAGNN: a sum over steps, weighted at every node by a gate."""
    all_steps = torch.stack(net.walk(mlp(net, H), 10), dim=2)
    return (torch.sigmoid(net.gate(all_steps)) * all_steps).sum(2)


def gcnii(net: NodeNetwork, H: Tensor) -> Tensor:
    """Apply GCNII: every layer mixes in the first channels."""
    H = first = torch.relu(H)
    for k, weight in enumerate(net.deep, start=1):
        beta = float(np.log(0.5 / k + 1))
        H = 0.9 * net.propagate(net.drop(H)) + 0.1 * first
        H = torch.relu((1 - beta) * H + beta * (H @ weight))
    return mlp(net, H)


READ_OUTS = {
    **dict.fromkeys(("heat", "gcn", "gdc", "sgc", "grand"), convolution_layers),
    "mlp": mlp,
    "gat": gat,
    "appnp": appnp,
    "dagnn": dagnn,
    "gcnii": gcnii,
}
"""Function from the first channels to logits, of every network of `settings.json`."""


class Attention(nn.Module):
    """GAT's mean over neighbours, weighted by attention, for several heads.

    Of channels h, the weight of neighbour j of i is the softmax over j of
    leaky_relu(a . h_i + b . h_j).
    """

    def __init__(self, n_heads: int, n_out: int, rate: float) -> None:
        super().__init__()
        self.target_weight = draw_weights(n_heads, n_out)
        self.source_weight = draw_weights(n_heads, n_out)
        self.bias, self.rate = nn.Parameter(torch.zeros(n_heads * n_out)), rate

    def forward(self, H: Tensor, edges: Tensor) -> Tensor:
        """Return channels of shape `(n_nodes, n_views, n_heads * n_out)`."""
        (target, source), heads = edges, H.unflatten(-1, self.target_weight.shape)
        target_score, source_score = (
            (heads * self.target_weight).sum(-1),
            (heads * self.source_weight).sum(-1),
        )
        attention_logits = nn.functional.leaky_relu(
            target_score[target] + source_score[source], 0.2
        )
        index = target[:, None, None].expand_as(attention_logits)
        minus_infinity = torch.full_like(target_score, -torch.inf)
        largest = minus_infinity.scatter_reduce(
            0, index, attention_logits.detach(), "amax"
        )
        weight = torch.exp(attention_logits - largest[target])
        total = torch.zeros_like(target_score).index_add(0, target, weight)
        weight = drop(weight / total[target], self.rate, self.training)
        messages = weight[..., None] * heads[source]
        outputs = torch.zeros_like(heads).index_add(0, target, messages)
        return outputs.flatten(2) + self.bias


def cached(compute: Callable[[sparse.csr_array], Any], W: sparse.csr_array) -> Any:
    """Return `compute(W)`; the last result is cached."""
    key = hash_of((compute.__name__, W.indptr, W.indices, W.data))
    if key not in _cache:
        _cache.clear()
        _cache[key] = compute(W)
    return _cache[key]


def spectrum_of(adjacency: sparse.csr_array) -> tuple[Tensor, Tensor]:
    """Return eigenvalues and eigenvectors of the normalised Laplacian."""
    L = normalized_laplacian(adjacency).to_dense()
    spectrum = decompose(L[None], torch.float32)
    return spectrum.eigenvalues[0].float(), spectrum.eigenvectors[0]


def with_loops(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Return the graph with a self loop at every node."""
    loops = sparse.eye_array(adjacency.shape[0], dtype=np.float32)
    return sparse.csr_array(adjacency + loops)


def normalized_adjacency(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Return D^-1/2 (A + I) D^-1/2."""
    return _normalized(with_loops(adjacency))


def _normalized(W: sparse.csr_array) -> sparse.csr_array:
    row_scaling, column_scaling = (
        sparse.diags_array(W.sum(axis=axis) ** -0.5) for axis in (1, 0)
    )
    return sparse.csr_array(row_scaling @ W @ column_scaling, dtype=np.float32)


def page_rank_graph(
    adjacency: sparse.csr_array, teleport: float = 0.05, n_neighbours: int = 64
) -> sparse.csr_array:
    """Return personalised PageRank, the largest entries of each column, normalised.

    GDC of Gasteiger et al. 2019: the matrix of the walk is symmetric; its largest
    entries are divided by the square roots of their sums over rows and columns.
    """
    n_nodes, block_size, remainder = adjacency.shape[0], 512, 1e-3
    A = normalized_adjacency(adjacency)
    n_kept, blocks = min(n_neighbours, n_nodes), []
    for start in range(0, n_nodes, block_size):
        teleports = np.eye(
            n_nodes, min(block_size, n_nodes - start), -start, np.float32
        )
        ranks = teleports.copy()
        for _ in range(int(np.ceil(np.log(remainder) / np.log(1 - teleport)))):
            ranks = (1 - teleport) * (A @ ranks) + teleport * teleports
        smallest = np.argpartition(-ranks, n_kept - 1, axis=0)[n_kept:]
        np.put_along_axis(ranks, smallest, 0, axis=0)
        blocks.append(sparse.csr_array(ranks))
    return _normalized(sparse.csr_array(sparse.hstack(blocks)))
