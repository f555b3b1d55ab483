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
from brainlsap.model.network import HeatScale, drop
from brainlsap.nodes.graphs import NodeGraph
from brainlsap.nodes.settings import NodeSettings

# One-entry cache of what takes minutes to compute from a graph, keyed by function and
# graph; the seeds of a run share it.
_last_result: dict[str, Any] = {}


class ConstantMatrix(nn.Module):
    """A constant matrix, sparse or dense, with its product and dropout of entries."""

    X: Tensor
    transpose: Tensor

    def __init__(self, matrix: sparse.sparray) -> None:
        super().__init__()
        X = sparse.csr_array(matrix, dtype=np.float32)
        # a dense product is faster here: indices cost more than zeros
        self.is_dense = X.nnz > 0.25 * X.shape[0] * X.shape[1]
        stored_matrix = (
            torch.from_numpy(X.toarray()) if self.is_dense else csr_tensor(X)
        )
        self.register_buffer("X", stored_matrix, persistent=False)
        # the transpose holds, for each entry, its position among the values of X
        entry_numbers = sparse.csr_array(
            (np.arange(X.nnz), X.indices, X.indptr), X.shape
        )
        self.register_buffer(
            "transpose", csr_tensor(entry_numbers.T.tocsr()), persistent=False
        )

    def forward(self, H: Tensor, dropout: float = 0.0) -> Tensor:
        """Return the matrix times `H`; a share of its entries is dropped."""
        if self.is_dense:
            return drop(self.X, dropout, is_training=True) @ H
        entries = drop(self.X.values(), dropout, is_training=True)
        return _SparseProduct.apply(entries, H, self)  # type: ignore[no-any-return]


class _SparseProduct(torch.autograd.Function):
    """X H for constant sparse X; torch would transpose X again in every epoch."""

    @staticmethod
    def forward(ctx: Any, entries: Tensor, H: Tensor, matrix: ConstantMatrix) -> Tensor:
        ctx.values, ctx.transpose = entries, matrix.transpose
        return csr_tensor(matrix.X, entries) @ H

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        transposed_entries = ctx.values[ctx.transpose.values()]
        return None, csr_tensor(ctx.transpose, transposed_entries) @ grad_output, None


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
        network_name, n_units = settings.network, settings.hidden_units
        check_choice("network", network_name, READ_OUTS)
        self.read_out = READ_OUTS[network_name]
        is_convolution = self.read_out is convolution_layers
        adjacency = sparse.csr_array(graph.adjacency, dtype=np.float32)
        X = sparse.csr_array(graph.features, dtype=np.float32)
        if settings.normalize == "row":
            row_sums = np.abs(X).sum(axis=1)
            X = sparse.diags_array(1 / np.where(row_sums > 0, row_sums, 1)) @ X
        self.features = ConstantMatrix(X)
        self._prepare(adjacency)
        n_heads, dropout_rate = 8 if network_name == "gat" else 1, settings.dropout
        layer_sizes = [X.shape[1], n_heads * n_units]
        if is_convolution:
            n_hidden = settings.n_layers - (settings.head == "convolution")
            layer_sizes = [X.shape[1], *[n_units] * n_hidden, n_classes]
            self.biases = nn.ParameterList(
                torch.zeros(layer_size) for layer_size in layer_sizes[1:]
            )
        self.weights = nn.ParameterList(map(draw_weights, layer_sizes, layer_sizes[1:]))
        if network_name == "gat":
            self.attend = Attention(n_heads, n_units, dropout_rate)
        elif network_name == "gcnii":
            deep_weights = (
                draw_weights(n_units, n_units) for _ in range(settings.n_layers)
            )
            self.deep = nn.ParameterList(deep_weights)
        if not is_convolution:
            self.last = nn.Linear(layer_sizes[1], n_classes, bias=network_name != "gat")
        if network_name == "gat":
            self.last_attend = Attention(1, n_classes, dropout_rate)
        elif network_name == "dagnn":
            self.gate = nn.Linear(n_classes, 1)

    def _prepare(self, adjacency: sparse.csr_array) -> None:
        """Store what propagates: a matrix of steps, a Laplacian or its eigenvectors."""
        settings, n_nodes = self.settings, adjacency.shape[0]
        scale_mode = settings.scale_mode.replace("node", "region")
        initial_scale = settings.initial_scale or 0.0
        max_scale = settings.max_scale or 0.0
        self.heat = HeatScale(n_nodes, initial_scale, max_scale, scale_mode)
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
        for buffer_name, buffer in zip(
            ("eigenvalues", "U"), cached(spectrum_of, W), strict=True
        ):
            self.register_buffer(buffer_name, buffer, persistent=False)

    def forward(self, n_views: int = 1) -> Tensor:
        """Return logits of shape `(n_nodes, n_views, n_classes)`."""
        settings, view_logits = self.settings, []
        for _ in range(n_views):
            H = self.features(self.weights[0], settings.input_dropout * self.training)
            if self.training and settings.node_dropout:
                is_kept_node = (
                    torch.rand(len(H), 1, device=H.device) >= settings.node_dropout
                )
                H = H * (is_kept_node / (1 - settings.node_dropout))
            view_logits.append(H)
        return self.read_out(self, torch.stack(view_logits, dim=1))

    def propagate(self, H: Tensor, scale: Any = None) -> Tensor:
        """Propagate all views at once, as heat or by steps over edges."""
        settings, channels = self.settings, H.flatten(1)
        n_steps = int(settings.degree or 0)
        if settings.network != "heat":
            step_channels = self.walk(H, n_steps)
            if settings.network == "grand":
                return sum(step_channels[1:], start=H) / len(step_channels)
            return step_channels[-1]
        if settings.kernel != "exact":
            channels = diffuse_recurrence(
                self.L, channels, scale, settings.kernel, n_steps
            )
        else:
            # written out: the engine for many small graphs is several times slower on
            # one large graph, and one matrix of all responses fits into memory here
            spectral_response = torch.exp(-scale[:, None] * self.eigenvalues)
            channels = (self.U * spectral_response) @ (self.U.T @ channels)
        return channels.view(H.shape)

    def walk(self, H: Tensor, n_steps: int) -> list[Tensor]:
        """Return channels after 0 to `n_steps` steps over edges."""
        step_channels = [H]
        for _ in range(n_steps):
            step_channels.append(self.steps(step_channels[-1].flatten(1)).view(H.shape))
        return step_channels

    def drop(self, H: Tensor) -> Tensor:
        """Return channels, some dropped while training."""
        return drop(H, self.settings.dropout, self.training)


def draw_weights(n_in: int, n_out: int) -> nn.Parameter:
    """Draw a matrix of weights."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(n_in, n_out)))


def convolution_layers(network: NodeNetwork, H: Tensor) -> Tensor:
    r"""Return logits of K layers :math:`H \leftarrow \sigma(P(H) W + b)`.

    P is heat for LSAP, GraphHeat (one fixed scale) and ADC (one learned scale); a step
    along the edges for GCN, GDC (of another graph) and SGC (two steps); and the mean
    of several for GRAND.
    """
    scale = network.heat()
    for layer, layer_bias in enumerate(network.biases):
        if layer > 0:
            H = network.drop(torch.relu(H)) @ network.weights[layer]
        H = (
            network.propagate(H, scale) if layer < network.settings.n_layers else H
        ) + layer_bias
    return H


def gat(network: Any, H: Tensor) -> Tensor:
    """Apply GAT: two layers of attention."""
    edge_index = network.steps.X.to_sparse().indices()
    H = network.drop(nn.functional.elu(network.attend(H, edge_index)))
    return network.last_attend(network.last(H), edge_index)


def mlp(network: Any, H: Tensor) -> Tensor:
    """Apply a perceptron, which ignores the graph."""
    return network.last(network.drop(torch.relu(H)))


def appnp(network: Any, H: Tensor) -> Tensor:
    """Apply APPNP: ten steps, each with a tenth of the initial channels."""
    H = initial_channels = mlp(network, H)
    for _ in range(10):
        H = 0.9 * network.propagate(H) + 0.1 * initial_channels
    return H


def dagnn(network: Any, H: Tensor) -> Tensor:
    """Apply DAGNN: a sum over steps, weighted at every node by a gate."""
    all_steps = torch.stack(network.walk(mlp(network, H), 10), dim=2)
    return (torch.sigmoid(network.gate(all_steps)) * all_steps).sum(2)


def gcnii(network: Any, H: Tensor) -> Tensor:
    """Apply GCNII: every layer mixes in the first channels."""
    H = initial_channels = torch.relu(H)
    for k, layer_weights in enumerate(network.deep, start=1):
        beta = float(np.log(0.5 / k + 1))
        H = 0.9 * network.propagate(network.drop(H)) + 0.1 * initial_channels
        H = torch.relu((1 - beta) * H + beta * (H @ layer_weights))
    return mlp(network, H)


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

    def __init__(self, n_heads: int, n_out: int, dropout_rate: float) -> None:
        super().__init__()
        self.target_weight = draw_weights(n_heads, n_out)
        self.source_weight = draw_weights(n_heads, n_out)
        self.bias, self.rate = nn.Parameter(torch.zeros(n_heads * n_out)), dropout_rate

    def forward(self, H: Tensor, edge_index: Tensor) -> Tensor:
        """Return channels of shape `(n_nodes, n_views, n_heads * n_out)`."""
        (target_nodes, source_nodes), head_channels = (
            edge_index,
            H.unflatten(-1, self.target_weight.shape),
        )
        target_score = (head_channels * self.target_weight).sum(-1)
        source_score = (head_channels * self.source_weight).sum(-1)
        attention_logits = nn.functional.leaky_relu(
            target_score[target_nodes] + source_score[source_nodes], 0.2
        )
        target_index = target_nodes[:, None, None].expand_as(attention_logits)
        minus_infinity = torch.full_like(target_score, -torch.inf)
        max_logits = minus_infinity.scatter_reduce(
            0, target_index, attention_logits.detach(), "amax"
        )
        edge_weights = torch.exp(attention_logits - max_logits[target_nodes])
        weight_sums = torch.zeros_like(target_score).index_add(
            0, target_nodes, edge_weights
        )
        edge_weights = drop(
            edge_weights / weight_sums[target_nodes], self.rate, self.training
        )
        edge_messages = edge_weights[..., None] * head_channels[source_nodes]
        head_outputs = torch.zeros_like(head_channels).index_add(
            0, target_nodes, edge_messages
        )
        return head_outputs.flatten(2) + self.bias


def cached(compute: Callable[[sparse.csr_array], Any], W: sparse.csr_array) -> Any:
    """Return `compute(W)`; the last result is cached."""
    result_key = hash_of((compute.__name__, W.indptr, W.indices, W.data))
    if result_key not in _last_result:
        _last_result.clear()
        _last_result[result_key] = compute(W)
    return _last_result[result_key]


def spectrum_of(adjacency: sparse.csr_array) -> tuple[Tensor, Tensor]:
    """Return eigenvalues and eigenvectors of the normalised Laplacian."""
    L = normalized_laplacian(adjacency).to_dense()
    spectrum = decompose(L[None], torch.float32)
    return spectrum.eigenvalues[0].float(), spectrum.eigenvectors[0]


def with_loops(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Return the graph with a self loop at every node."""
    self_loops = sparse.eye_array(adjacency.shape[0], dtype=np.float32)
    return sparse.csr_array(adjacency + self_loops)


def normalized_adjacency(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Return D^-1/2 (A + I) D^-1/2."""
    return _normalize_by_degrees(with_loops(adjacency))


def _normalize_by_degrees(W: sparse.csr_array) -> sparse.csr_array:
    row_scaling, column_scaling = (
        sparse.diags_array(W.sum(axis=degree_axis) ** -0.5) for degree_axis in (1, 0)
    )
    return sparse.csr_array(row_scaling @ W @ column_scaling, dtype=np.float32)


def page_rank_graph(
    adjacency: sparse.csr_array, teleport: float = 0.05, n_neighbours: int = 64
) -> sparse.csr_array:
    """Return personalised PageRank, the largest entries of each column, normalised.

    GDC of Gasteiger et al. 2019: the matrix of the walk is symmetric; its largest
    entries are divided by the square roots of their sums over rows and columns.
    """
    n_nodes, block_size, remaining_rank = adjacency.shape[0], 512, 1e-3
    A = normalized_adjacency(adjacency)
    n_kept, rank_blocks = min(n_neighbours, n_nodes), []
    for block_start in range(0, n_nodes, block_size):
        teleport_vectors = np.eye(
            n_nodes, min(block_size, n_nodes - block_start), -block_start, np.float32
        )
        page_ranks = teleport_vectors.copy()
        for _ in range(int(np.ceil(np.log(remaining_rank) / np.log(1 - teleport)))):
            page_ranks = (1 - teleport) * (A @ page_ranks) + teleport * teleport_vectors
        smallest_rows = np.argpartition(-page_ranks, n_kept - 1, axis=0)[n_kept:]
        np.put_along_axis(page_ranks, smallest_rows, 0, axis=0)
        rank_blocks.append(sparse.csr_array(page_ranks))
    return _normalize_by_degrees(sparse.csr_array(sparse.hstack(rank_blocks)))
