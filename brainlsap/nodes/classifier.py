"""The classifier of the nodes of one large graph: networks, training, and runs by name.

The wide input never meets the graph: features are multiplied by weights, row by
sparse row, and only the hidden channels are propagated. Several views of the graph
(nodes dropped at random) are propagated side by side, as channels.

A model is how :meth:`NodeNetwork.propagate` takes channels along the graph, and a
function of :data:`READ_OUTS`, from the first channels to one logit a class. Runs of
many models over many seeds give one table.
"""

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from joblib import hash as hash_of
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from brainlsap.exceptions import ParameterError, check_choice, convert_reading_errors
from brainlsap.files import replace_when_whole
from brainlsap.graph import decompose, diffuse_recurrence, normalized_laplacian
from brainlsap.graph.laplacian import make_csr_tensor
from brainlsap.model.network import HeatScale, drop_random_entries
from brainlsap.model.training import Adam, seed_generators
from brainlsap.nodes.graphs import (
    NODE_MODELS,
    NodeGraph,
    NodeSettings,
    make_node_split,
    resolve_node_settings,
    resolve_scale_method_name,
)
from brainlsap.text import count_text, option_name

# One-entry cache of what takes minutes to compute from a graph, keyed by function and
# graph; the seeds of a run share it.
_result_by_key: dict[str, Any] = {}

# Indices of labelled nodes, and the codes of their classes.
LabelledNodes = tuple[Tensor, ...]

# Columns that identify a row; a later run with the same values replaces it in a file.
_ABOUT = ["dataset", "split", "model", "variant", "options", "seed"]


class ConstantMatrix(nn.Module):
    """A constant matrix, sparse or dense, with its product and dropout of entries."""

    X: Tensor
    transposed_positions: Tensor

    def __init__(self, matrix: sparse.sparray) -> None:
        super().__init__()
        X = sparse.csr_array(matrix, dtype=np.float32)
        # a dense product is faster here: indices cost more than zeros
        self.is_dense = X.nnz > 0.25 * X.shape[0] * X.shape[1]
        stored_matrix = (
            torch.from_numpy(X.toarray()) if self.is_dense else make_csr_tensor(X)
        )
        self.register_buffer("X", stored_matrix, persistent=False)
        # the transpose holds, for each entry, its position among the values of X
        entry_position_matrix = sparse.csr_array(
            (np.arange(X.nnz), X.indices, X.indptr), X.shape
        )
        self.register_buffer(
            "transposed_positions",
            make_csr_tensor(entry_position_matrix.T.tocsr()),
            persistent=False,
        )

    def forward(self, H: Tensor, dropout: float = 0.0) -> Tensor:
        """Return the matrix times `H`; a share of its entries is dropped."""
        if self.is_dense:
            return drop_random_entries(self.X, dropout, is_training=True) @ H
        dropout_values = drop_random_entries(self.X.values(), dropout, is_training=True)
        return _SparseProduct.apply(dropout_values, H, self)  # type: ignore[no-any-return]


class _SparseProduct(torch.autograd.Function):
    """X H for constant sparse X; torch would transpose X again in every epoch."""

    @staticmethod
    def forward(
        ctx: Any, matrix_values: Tensor, H: Tensor, constant_matrix: ConstantMatrix
    ) -> Tensor:
        ctx.values, ctx.transposed_positions = (
            matrix_values,
            constant_matrix.transposed_positions,
        )
        return make_csr_tensor(constant_matrix.X, matrix_values) @ H

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        transposed_values = ctx.values[ctx.transposed_positions.values()]
        return (
            None,
            make_csr_tensor(ctx.transposed_positions, transposed_values) @ grad_output,
            None,
        )


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
    step_matrix: ConstantMatrix
    deep_weights: nn.ParameterList
    output_layer: nn.Linear
    gate_layer: nn.Linear
    attention: "Attention"
    output_attention: "Attention"

    def __init__(
        self, graph: NodeGraph, n_classes: int, node_settings: NodeSettings
    ) -> None:
        super().__init__()
        self.settings = node_settings
        network_name, n_hidden_units = node_settings.network, node_settings.hidden_units
        check_choice("network", network_name, READ_OUTS)
        self.read_out = READ_OUTS[network_name]
        is_convolution = self.read_out is apply_convolutions
        adjacency = sparse.csr_array(graph.adjacency, dtype=np.float32)
        X = sparse.csr_array(graph.features, dtype=np.float32)
        if node_settings.normalize == "row":
            row_sums = np.abs(X).sum(axis=1)
            X = sparse.diags_array(1 / np.where(row_sums > 0, row_sums, 1)) @ X
        self.features = ConstantMatrix(X)
        self._store_propagators(adjacency)
        n_heads, dropout_rate = 8 if network_name == "gat" else 1, node_settings.dropout
        layer_sizes = [X.shape[1], n_heads * n_hidden_units]
        if is_convolution:
            n_hidden_layers = node_settings.n_layers - (
                node_settings.head == "convolution"
            )
            layer_sizes = [X.shape[1], *[n_hidden_units] * n_hidden_layers, n_classes]
            self.biases = nn.ParameterList(
                torch.zeros(layer_size) for layer_size in layer_sizes[1:]
            )
        self.weights = nn.ParameterList(map(draw_weights, layer_sizes, layer_sizes[1:]))
        if network_name == "gat":
            self.attention = Attention(n_heads, n_hidden_units, dropout_rate)
        elif network_name == "gcnii":
            deep_weights = (
                draw_weights(n_hidden_units, n_hidden_units)
                for _ in range(node_settings.n_layers)
            )
            self.deep_weights = nn.ParameterList(deep_weights)
        if not is_convolution:
            self.output_layer = nn.Linear(
                layer_sizes[1], n_classes, bias=network_name != "gat"
            )
        if network_name == "gat":
            self.output_attention = Attention(1, n_classes, dropout_rate)
        elif network_name == "dagnn":
            self.gate_layer = nn.Linear(n_classes, 1)

    def _store_propagators(self, adjacency: sparse.csr_array) -> None:
        """Store what propagates: a matrix of steps, a Laplacian or its eigenvectors."""
        node_settings, n_nodes = self.settings, adjacency.shape[0]
        scale_mode = node_settings.scale_mode.replace("node", "region")
        initial_scale = node_settings.initial_scale or 0.0
        max_scale = node_settings.max_scale or 0.0
        self.heat = HeatScale(n_nodes, initial_scale, max_scale, scale_mode)
        if node_settings.network != "heat":
            make_step_matrix = (
                page_rank_graph
                if node_settings.network == "gdc"
                else normalized_adjacency
            )
            self.step_matrix = ConstantMatrix(
                compute_cached(make_step_matrix, adjacency)
            )
            return
        W = add_self_loops(adjacency) if node_settings.self_loops else adjacency
        if node_settings.kernel != "exact":
            self.register_buffer("L", normalized_laplacian(W), persistent=False)
            return
        if n_nodes > node_settings.max_exact_nodes:
            raise ParameterError(
                f"the graph has {n_nodes} nodes, more than "
                f"max_exact_nodes={node_settings.max_exact_nodes}. Use model='lsap-c' "
                "with tolerance=1e-6, whose results agree to six digits."
            )
        for buffer_name, buffer_tensor in zip(
            ("eigenvalues", "U"), compute_cached(decompose_adjacency, W), strict=True
        ):
            self.register_buffer(buffer_name, buffer_tensor, persistent=False)

    def forward(self, n_views: int = 1) -> Tensor:
        """Return logits of shape `(n_nodes, n_views, n_classes)`."""
        node_settings, view_logits = self.settings, []
        for _ in range(n_views):
            H = self.features(
                self.weights[0], node_settings.input_dropout * self.training
            )
            if self.training and node_settings.node_dropout:
                kept_node_mask = (
                    torch.rand(len(H), 1, device=H.device) >= node_settings.node_dropout
                )
                H = H * (kept_node_mask / (1 - node_settings.node_dropout))
            view_logits.append(H)
        return self.read_out(self, torch.stack(view_logits, dim=1))

    def propagate(self, H: Tensor, scale: Any = None) -> Tensor:
        """Propagate all views at once, as heat or by steps over edges."""
        node_settings, flat_channels = self.settings, H.flatten(1)
        n_steps = int(node_settings.degree or 0)
        if node_settings.network != "heat":
            step_channel_tensors = self.collect_step_channels(H, n_steps)
            if node_settings.network == "grand":
                return sum(step_channel_tensors[1:], start=H) / len(
                    step_channel_tensors
                )
            return step_channel_tensors[-1]
        if node_settings.kernel != "exact":
            flat_channels = diffuse_recurrence(
                self.L, flat_channels, scale, node_settings.kernel, n_steps
            )
        else:
            # written out: the engine for many small graphs is several times slower on
            # one large graph, and one matrix of all responses fits into memory here
            spectral_response = torch.exp(-scale[:, None] * self.eigenvalues)
            flat_channels = (self.U * spectral_response) @ (self.U.T @ flat_channels)
        return flat_channels.view(H.shape)

    def collect_step_channels(self, H: Tensor, n_steps: int) -> list[Tensor]:
        """Return channels after 0 to `n_steps` steps over edges."""
        step_channel_tensors = [H]
        for _ in range(n_steps):
            step_channel_tensors.append(
                self.step_matrix(step_channel_tensors[-1].flatten(1)).view(H.shape)
            )
        return step_channel_tensors

    def drop_channels(self, H: Tensor) -> Tensor:
        """Return channels, some dropped while training."""
        return drop_random_entries(H, self.settings.dropout, self.training)


def draw_weights(n_inputs: int, n_outputs: int) -> nn.Parameter:
    """Draw a matrix of weights."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(n_inputs, n_outputs)))


def apply_convolutions(network: NodeNetwork, H: Tensor) -> Tensor:
    r"""Return logits of K layers :math:`H \leftarrow \sigma(P(H) W + b)`.

    P is heat for LSAP, GraphHeat (one fixed scale) and ADC (one learned scale); a step
    along the edges for GCN, GDC (of another graph) and SGC (two steps); and the mean
    of several for GRAND.
    """
    layer_scale = network.heat()
    for layer_index, layer_bias in enumerate(network.biases):
        if layer_index > 0:
            H = network.drop_channels(torch.relu(H)) @ network.weights[layer_index]
        H = (
            network.propagate(H, layer_scale)
            if layer_index < network.settings.n_layers
            else H
        ) + layer_bias
    return H


def apply_gat(network: Any, H: Tensor) -> Tensor:
    """Apply GAT: two layers of attention."""
    edge_index = network.step_matrix.X.to_sparse().indices()
    H = network.drop_channels(nn.functional.elu(network.attention(H, edge_index)))
    return network.output_attention(network.output_layer(H), edge_index)


def apply_mlp(network: Any, H: Tensor) -> Tensor:
    """Apply a perceptron, which ignores the graph."""
    return network.output_layer(network.drop_channels(torch.relu(H)))


def apply_appnp(network: Any, H: Tensor) -> Tensor:
    """Apply APPNP: ten steps, each with a tenth of the initial channels."""
    H = initial_channels = apply_mlp(network, H)
    for _ in range(10):
        H = 0.9 * network.propagate(H) + 0.1 * initial_channels
    return H


def apply_dagnn(network: Any, H: Tensor) -> Tensor:
    """Apply DAGNN: a sum over steps, weighted at every node by a gate."""
    stacked_channels = torch.stack(
        network.collect_step_channels(apply_mlp(network, H), 10), dim=2
    )
    return (torch.sigmoid(network.gate_layer(stacked_channels)) * stacked_channels).sum(
        2
    )


def apply_gcnii(network: Any, H: Tensor) -> Tensor:
    """Apply GCNII: every layer mixes in the first channels."""
    H = initial_channels = torch.relu(H)
    for k, weight_matrix in enumerate(network.deep_weights, start=1):
        mapping_strength = float(np.log(0.5 / k + 1))
        H = 0.9 * network.propagate(network.drop_channels(H)) + 0.1 * initial_channels
        H = torch.relu(
            (1 - mapping_strength) * H + mapping_strength * (H @ weight_matrix)
        )
    return apply_mlp(network, H)


READ_OUTS = {
    **dict.fromkeys(("heat", "gcn", "gdc", "sgc", "grand"), apply_convolutions),
    "mlp": apply_mlp,
    "gat": apply_gat,
    "appnp": apply_appnp,
    "dagnn": apply_dagnn,
    "gcnii": apply_gcnii,
}
"""Functions from the first channels to logits, by network of `settings.json`."""


class Attention(nn.Module):
    """GAT's mean over neighbours, weighted by attention, for several heads.

    Of channels h, the weight of neighbour j of i is the softmax over j of
    leaky_relu(a . h_i + b . h_j).
    """

    def __init__(
        self, n_heads: int, n_channels_per_head: int, dropout_rate: float
    ) -> None:
        super().__init__()
        self.target_weight = draw_weights(n_heads, n_channels_per_head)
        self.source_weight = draw_weights(n_heads, n_channels_per_head)
        self.bias, self.rate = (
            nn.Parameter(torch.zeros(n_heads * n_channels_per_head)),
            dropout_rate,
        )

    def forward(self, H: Tensor, edge_index: Tensor) -> Tensor:
        """Return channels of shape `(n_nodes, n_views, n_heads * n_channels)`."""
        (target_node_indices, source_node_indices), head_channels = (
            edge_index,
            H.unflatten(-1, self.target_weight.shape),
        )
        target_scores = (head_channels * self.target_weight).sum(-1)
        source_scores = (head_channels * self.source_weight).sum(-1)
        attention_logits = nn.functional.leaky_relu(
            target_scores[target_node_indices] + source_scores[source_node_indices], 0.2
        )
        target_index_tensor = target_node_indices[:, None, None].expand_as(
            attention_logits
        )
        lowest_logits = torch.full_like(target_scores, -torch.inf)
        max_logits = lowest_logits.scatter_reduce(
            0, target_index_tensor, attention_logits.detach(), "amax"
        )
        attention_weights = torch.exp(
            attention_logits - max_logits[target_node_indices]
        )
        weight_sums = torch.zeros_like(target_scores).index_add(
            0, target_node_indices, attention_weights
        )
        attention_weights = drop_random_entries(
            attention_weights / weight_sums[target_node_indices],
            self.rate,
            self.training,
        )
        edge_messages = (
            attention_weights[..., None] * head_channels[source_node_indices]
        )
        head_outputs = torch.zeros_like(head_channels).index_add(
            0, target_node_indices, edge_messages
        )
        return head_outputs.flatten(2) + self.bias


def compute_cached(
    compute_function: Callable[[sparse.csr_array], Any], W: sparse.csr_array
) -> Any:
    """Return `compute_function(W)`; the last result is cached."""
    result_key = hash_of((compute_function.__name__, W.indptr, W.indices, W.data))
    if result_key not in _result_by_key:
        _result_by_key.clear()
        _result_by_key[result_key] = compute_function(W)
    return _result_by_key[result_key]


def decompose_adjacency(adjacency: sparse.csr_array) -> tuple[Tensor, Tensor]:
    """Return eigenvalues and eigenvectors of the normalised Laplacian."""
    L = normalized_laplacian(adjacency).to_dense()
    spectrum = decompose(L[None], torch.float32)
    return spectrum.eigenvalues[0].float(), spectrum.eigenvectors[0]


def add_self_loops(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Return the graph with a self loop at every node."""
    self_loop_matrix = sparse.eye_array(adjacency.shape[0], dtype=np.float32)
    return sparse.csr_array(adjacency + self_loop_matrix)


def normalized_adjacency(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Return D^-1/2 (A + I) D^-1/2."""
    return _normalize_by_degrees(add_self_loops(adjacency))


def _normalize_by_degrees(W: sparse.csr_array) -> sparse.csr_array:
    row_scaling_matrix, column_scaling_matrix = (
        sparse.diags_array(W.sum(axis=degree_axis) ** -0.5) for degree_axis in (1, 0)
    )
    return sparse.csr_array(
        row_scaling_matrix @ W @ column_scaling_matrix, dtype=np.float32
    )


def page_rank_graph(
    adjacency: sparse.csr_array,
    teleport_probability: float = 0.05,
    n_neighbours: int = 64,
) -> sparse.csr_array:
    """Return personalised PageRank, the largest entries of each column, normalised.

    GDC of Gasteiger et al. 2019: the matrix of the walk is symmetric; its largest
    entries are divided by the square roots of their sums over rows and columns.
    """
    n_nodes, block_size, rank_tolerance = adjacency.shape[0], 512, 1e-3
    A = normalized_adjacency(adjacency)
    n_entries_per_column, rank_matrices = min(n_neighbours, n_nodes), []
    for start_node in range(0, n_nodes, block_size):
        teleport_vectors = np.eye(
            n_nodes, min(block_size, n_nodes - start_node), -start_node, np.float32
        )
        page_ranks = teleport_vectors.copy()
        for _ in range(
            int(np.ceil(np.log(rank_tolerance) / np.log(1 - teleport_probability)))
        ):
            page_ranks = (1 - teleport_probability) * (
                A @ page_ranks
            ) + teleport_probability * teleport_vectors
        smallest_row_indices = np.argpartition(
            -page_ranks, n_entries_per_column - 1, axis=0
        )[n_entries_per_column:]
        np.put_along_axis(page_ranks, smallest_row_indices, 0, axis=0)
        rank_matrices.append(sparse.csr_array(page_ranks))
    return _normalize_by_degrees(sparse.csr_array(sparse.hstack(rank_matrices)))


@dataclass(eq=False, repr=False)
class LSAPNodeClassifier(ClassifierMixin, BaseEstimator):
    """Classify nodes by heat convolutions whose scale is learned for every node.

    Parameters
    ----------
    model : str
        LSAP by its kernel: lsap-c (Chebyshev), lsap-h (Hermite), lsap-l (Laguerre),
        exact (by eigenvectors, up to `max_exact_nodes`). Or a baseline, trained and
        chosen exactly as LSAP is: mlp; gcn (Kipf and Welling 2017); gat (Velickovic
        et al. 2018); sgc (Wu et al. 2019); appnp and gdc (Gasteiger et al. 2019);
        graphheat (Xu et al. 2019); adc (Zhao et al. 2021); gcnii (Chen et al. 2020);
        dagnn (Liu et al. 2020); grand (random propagation, Feng et al. 2020).
    variant : str
        Method that learns LSAP's scales: one for each node, moved by the loss of
        training labels ("labels"), by that and the consistency of predictions under
        dropout on all nodes ("consistency"), or by the loss of validation labels,
        which then choose twice ("validation"); one for all ("global"); the start for
        ever ("frozen"); "paper" for the paper's network and hyperparameters. "chosen"
        takes what was chosen on validation nodes of the data set of the graph's
        name, else "consistency".
    n_epochs : int, optional
        At the most; by default the model's own.
    random_state : int
        Seed of weights and dropout.
    device : str
        Device for training, as torch names it.
    options : dict, optional
        Other settings by name, in place of the model's own on this data set. Kernel:
        `degree` (by default the lowest within `tolerance`, the largest error of the
        kernel), `max_exact_nodes`, `self_loops`. Scales: `scale_mode` ("node",
        "global", "frozen"), `scale_signal` (as the variants), `initial_scale`,
        `max_scale`, `scale_step` (the paper's beta_s), `scale_clip` (the most that
        one moves in an epoch), `scale_penalty` ("none", "barrier", "l1") and
        `penalty_weight` (the paper's alpha). Network: `n_layers` (the number K of
        heat convolutions), `hidden_units`, `head` ("linear": a layer without
        diffusion gives the logits; "convolution"), `dropout`,
        `input_dropout`, `node_dropout` (shares of hidden channels, of features, of
        whole nodes), `normalize` ("row", "none": features over their sum). Training:
        `n_views` draws of dropout an epoch, `consistency` (weight of their squared
        distance from their mean, sharpened by `temperature`), `learning_rate`,
        `weight_decay`, `patience` (epochs without a better validation; 0 for no
        early stop).

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Classes of the training nodes.
    scale_ : array of shape (n_nodes,)
        Learned heat scales; of models that diffuse heat.
    best_epoch_ : int
        The epoch that was kept.
    history_ : dict of lists
        `train_loss` and `validation_accuracy` of every epoch.
    settings_ : NodeSettings
        As used, with the degree that was chosen.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from scipy import sparse
    >>> W = np.kron(np.eye(2), np.ones((6, 6)) - np.eye(6)).astype(np.float32)
    >>> graph = SimpleNamespace(
    ...     adjacency=sparse.csr_array(W),
    ...     features=sparse.csr_array(np.eye(12, dtype=np.float32)),
    ...     labels=np.repeat([0, 1], 6),
    ... )
    >>> model = LSAPNodeClassifier(n_epochs=40, random_state=1)
    >>> model.fit(graph, train=np.array([0, 6]), validation=np.array([1, 7]))
    LSAPNodeClassifier(n_epochs=40, random_state=1)
    >>> model.score(graph, np.array([2, 3, 4, 5, 8, 9, 10, 11]))
    1.0
    """

    model: str = "lsap-c"
    _: KW_ONLY
    variant: str = "chosen"
    n_epochs: int | None = None
    random_state: int = 0
    device: str = "cpu"
    options: dict[str, object] | None = None

    def settings(self, dataset_name: str = "") -> NodeSettings:
        """Return the settings of a fit on a data set of this name, checked.

        Raises
        ------
        ParameterError
            For a setting that is unknown or cannot be used.
        """
        value_by_setting = {"n_epochs": self.n_epochs, **(self.options or {})}
        return resolve_node_settings(
            self.model, self.variant, value_by_setting, dataset_name
        )

    def fit(
        self, graph: NodeGraph, train: np.ndarray, validation: np.ndarray | None = None
    ) -> Self:
        """Learn from the training nodes; validation nodes choose the epoch.

        Parameters
        ----------
        graph : NodeGraph, or any object with `adjacency`, `features` and `labels`
            Labels of other nodes than the two sets below are not read.
        train, validation : mask of shape (n_nodes,) or numbers of nodes
            Without validation the last epoch is kept.

        Returns
        -------
        self

        Raises
        ------
        ParameterError
            For sets that overlap or hold nodes without label, parts that do not fit,
            a signal of validation nodes without them, or training that diverges.
        """
        node_settings = self.settings(getattr(graph, "name", ""))
        if validation is None and node_settings.scale_signal == "validation":
            raise ParameterError(
                "scale_signal='validation' requires validation nodes. Give a "
                "validation set."
            )
        device = torch.device(self.device)
        self.classes_, labelled_training_nodes, labelled_validation_nodes = (
            read_classes_and_labelled_nodes(graph, train, validation, device)
        )
        with seed_generators(self.random_state, device):
            network = NodeNetwork(graph, len(self.classes_), node_settings).to(device)
            best_epoch, self.history_ = train_to_best_epoch_and_losses(
                network, labelled_training_nodes, labelled_validation_nodes
            )
        if not np.isfinite(self.history_["train_loss"][-1]):
            raise ParameterError(
                f"training diverged. Lower {option_name('learning_rate')} or "
                f"{option_name('scale_step')}, or check features and adjacency for "
                "NaN and very large numbers."
            )
        self.network_, self.settings_, self.best_epoch_ = (
            network,
            node_settings,
            best_epoch,
        )
        if node_settings.network == "heat":
            self.scale_ = network.heat().detach().cpu().double().numpy()
        return self

    def predict_proba(self) -> np.ndarray:
        """Return the probability of every class for the nodes of the fit's graph.

        Returns
        -------
        array of shape (n_nodes, n_classes)
        """
        check_is_fitted(self, "network_")
        with torch.no_grad():
            return self.network_(1)[:, 0].softmax(1).cpu().double().numpy()

    def predict(self) -> np.ndarray:
        """Return the class of highest probability of every node."""
        return self.classes_[self.predict_proba().argmax(1)]

    def score(self, graph: NodeGraph, nodes: np.ndarray) -> float:  # type: ignore[override]
        """Return the accuracy on some nodes; only here their labels are read."""
        return float((self.predict() == np.asarray(graph.labels))[nodes].mean())


def read_classes_and_labelled_nodes(
    graph: NodeGraph,
    train_indices: np.ndarray,
    validation_indices: np.ndarray | None = None,
    device: str | torch.device = "cpu",
) -> tuple[np.ndarray, LabelledNodes, LabelledNodes | None]:
    """Read the labels of training and validation nodes, and no others."""
    node_labels = np.asarray(graph.labels)
    node_selections = [
        node_selection
        for node_selection in (train_indices, validation_indices)
        if node_selection is not None
    ]
    node_index_arrays = [
        np.arange(len(node_labels))[node_selection]
        for node_selection in node_selections
    ]
    shared_node_indices = (
        np.intersect1d(*node_index_arrays) if len(node_index_arrays) > 1 else []
    )
    if len(shared_node_indices):
        raise ParameterError(
            f"{count_text(len(shared_node_indices), 'node', 'are')} in both train and "
            f"validation: {shared_node_indices[:5]}. Remove these nodes from train or "
            "from validation."
        )
    classes = np.unique(node_labels[node_index_arrays[0]])
    if classes.dtype.kind in "if":  # negative or NaN stands for no label
        classes = classes[classes >= 0]
    unknown_label_mask = ~np.isin(
        node_labels[np.concatenate(node_index_arrays)], classes
    )
    if unknown_label_mask.any() or len(classes) < 2:
        raise ParameterError(
            "train must contain at least two classes, and validation must contain "
            "only classes of train; got "
            f"{count_text(unknown_label_mask.sum(), 'node')} without a label or with a "
            "class that train does not contain. The classes of train are "
            f"{classes.tolist()}."
        )
    labelled_node_sets = []
    for node_selection in node_index_arrays:
        class_codes = np.searchsorted(classes, node_labels[node_selection])
        labelled_node_sets.append(
            (
                torch.from_numpy(node_selection).to(device),
                torch.from_numpy(class_codes).to(device),
            )
        )
    return (
        classes,
        labelled_node_sets[0],
        labelled_node_sets[1] if validation_indices is not None else None,
    )


def train_to_best_epoch_and_losses(
    network: NodeNetwork,
    labelled_training_nodes: LabelledNodes,
    labelled_validation_nodes: Any,
) -> tuple[int, dict[str, list[float]]]:
    """Train until validation stops improving; the network ends at its best epoch.

    Returns that epoch, and every epoch's training loss and validation
    accuracy.
    """
    node_settings, parameter_by_name = (
        network.settings,
        dict(network.named_parameters()),
    )
    parameter_by_name.pop("heat.raw_scale")
    deep_weights = [
        parameter_by_name.pop(parameter_name)
        for parameter_name in [*parameter_by_name]
        if parameter_name.startswith("deep_weights.")
    ]
    learning_rate = node_settings.learning_rate
    # the inner weights of GCNII have a decay of their own
    optimizers = [
        Adam([*parameter_by_name.values()], learning_rate, node_settings.weight_decay),
        Adam(deep_weights, learning_rate, weight_decay=0.01),
    ]
    history_by_metric: dict[str, list[float]] = {
        "train_loss": [],
        "validation_accuracy": [],
    }
    best_sort_key, best_epoch, best_state_dict = (-1.0, 0.0), -1, {}
    for epoch in range(node_settings.n_epochs):
        epoch_score_tensors = [
            train_epoch(
                network, optimizers, labelled_training_nodes, labelled_validation_nodes
            )
        ]
        if labelled_validation_nodes is not None:
            epoch_score_tensors += compute_accuracy_and_loss(
                network, labelled_validation_nodes
            )
        # the only synchronisation with the device in an epoch
        loss, *accuracy_and_loss = torch.stack(epoch_score_tensors).tolist()
        history_by_metric["train_loss"].append(loss)
        history_by_metric["validation_accuracy"] += accuracy_and_loss[:1]
        epoch_sort_key = (0.0, float(epoch))
        if accuracy_and_loss:
            epoch_sort_key = (accuracy_and_loss[0], -accuracy_and_loss[1])
        if epoch_sort_key > best_sort_key:
            best_sort_key, best_epoch = epoch_sort_key, epoch
            best_state_dict = copy.deepcopy(network.state_dict())
        is_stale = (
            node_settings.patience and epoch - best_epoch >= node_settings.patience
        )
        if is_stale or not np.isfinite(loss):
            break
    network.load_state_dict(best_state_dict)
    network.eval()
    return best_epoch, history_by_metric


@torch.no_grad()
def compute_accuracy_and_loss(
    network: nn.Module, labelled_nodes: LabelledNodes
) -> tuple[Tensor, Tensor]:
    """Return accuracy and cross-entropy of labelled nodes, without dropout."""
    network.eval()
    node_logits, (node_indices, class_codes) = network(1), labelled_nodes
    node_accuracy = (
        (node_logits[node_indices, 0].argmax(1) == class_codes).float().mean()
    )
    return node_accuracy, compute_label_loss(node_logits, labelled_nodes)


def train_epoch(
    network: NodeNetwork,
    optimizers: list[Adam],
    labelled_training_nodes: LabelledNodes,
    labelled_validation_nodes: Any,
) -> Tensor:
    """Train one full-batch epoch with both updates; return the loss of the labels."""
    node_settings = network.settings
    network.train()
    network.zero_grad()
    logits = network(node_settings.n_views)
    loss = total_loss = compute_label_loss(logits, labelled_training_nodes)
    if node_settings.consistency:
        consistency_loss = compute_inconsistency_loss(logits, node_settings.temperature)
        total_loss = loss + node_settings.consistency * consistency_loss
    scale_loss = total_loss
    raw_scale = network.heat.raw_scale
    scale_signal = node_settings.scale_signal
    if raw_scale.requires_grad and scale_signal != "consistency":
        scale_loss = (
            loss
            if scale_signal == "labels"
            else compute_label_loss(network(1), labelled_validation_nodes)
        )
    total_loss.backward(retain_graph=scale_loss is loss)
    if scale_loss is not total_loss:
        (raw_scale.grad,) = torch.autograd.grad(scale_loss, raw_scale)
    for optimizer in optimizers:
        optimizer.step()
    network.heat.step_(node_settings)
    return loss.detach()


def compute_label_loss(node_logits: Tensor, labelled_nodes: LabelledNodes) -> Tensor:
    """Return the mean cross-entropy of the labelled nodes over all views."""
    node_indices, class_codes = labelled_nodes
    class_codes = class_codes[:, None].expand(-1, node_logits.shape[1]).flatten()
    return nn.functional.cross_entropy(
        node_logits[node_indices].flatten(0, 1), class_codes
    )


def compute_inconsistency_loss(view_logits: Tensor, temperature: float) -> Tensor:
    """Return the distance of views from their sharpened mean, over all nodes."""
    view_probabilities = view_logits.softmax(-1)
    sharpened_probabilities = view_probabilities.mean(1).pow(1 / temperature)
    target_probabilities = (
        sharpened_probabilities / sharpened_probabilities.sum(1, keepdim=True)
    ).detach()
    return (view_probabilities - target_probabilities[:, None]).square().sum(-1).mean()


def run_nodes(
    graph: NodeGraph,
    models: Sequence[str] = ("lsap-c", "gcn"),
    *,
    n_seeds: int = 10,
    split: str = "public",
    variant: str = "chosen",
    out: str | Path | None = None,
    verbose: bool = False,
    **classifier_options: Any,
) -> pd.DataFrame:
    """Train models on the nodes of a graph, for several seeds.

    Test labels are read once for each row, by its score. A seed draws weights, dropout
    and, where the split is drawn, the split: the same for every model.

    Parameters
    ----------
    graph : NodeGraph
        With labels.
    models : sequence of str
        Keys of `NODE_MODELS`.
    n_seeds : int
        Seeds 0 to `n_seeds - 1` are run.
    split : str
        As :func:`make_node_split` takes it.
    variant : str
        As :class:`LSAPNodeClassifier` takes it.
    out : str or Path, optional
        CSV (or `.tsv`) file that each row is added to when it is there: a run that was
        stopped goes on after them, and several data sets may share one. A row of other
        data, splits or settings is not mixed up with those asked for, but replaced.
    verbose : bool
        Print a line a seed.
    **classifier_options
        `n_epochs`, `options` and `device`, as :class:`LSAPNodeClassifier` takes them.

    Returns
    -------
    DataFrame
        One row a model and seed: dataset, split, model, variant, options, seed,
        accuracy in percent (validation, test), best_epoch, n_epochs, seconds, and a
        hash of all that the scores depend on.

    Raises
    ------
    ParameterError
        For unknown names, or a file that is no such table, before anything is trained.
    """
    classifiers = [
        LSAPNodeClassifier(
            model_name, variant=variant, random_state=seed, **classifier_options
        )
        for model_name in models
        for seed in range(n_seeds)
    ]
    classifier_settings = [
        node_classifier.settings(graph.name) for node_classifier in classifiers
    ]
    options_text = " ".join(
        f"{k}={v}" for k, v in (classifier_options.get("options") or {}).items()
    )
    row_by_run_key = {}
    run_keys = []
    column_separator = "\t" if str(out).endswith(".tsv") else ","
    if out is not None and Path(out).is_file():
        with convert_reading_errors(out, "a table that run_nodes wrote"):
            score_table = pd.read_csv(out, sep=column_separator, keep_default_na=False)
        if not {*_ABOUT, "hash"} <= {*score_table}:
            raise ParameterError(
                f"{out} already exists and was not written by run_nodes. Name "
                "another file with out=."
            )
        row_by_run_key = {
            tuple(run_row[k] for k in _ABOUT): run_row
            for run_row in score_table.to_dict("records")
        }
    sparse_matrices = [graph.adjacency, graph.features]
    graph_arrays = [
        graph.labels,
        *(
            [sparse_matrix.data, sparse_matrix.indices, sparse_matrix.indptr]
            for sparse_matrix in sparse_matrices
        ),
    ]
    for node_classifier, node_settings in zip(
        classifiers, classifier_settings, strict=True
    ):
        seed, model_title = (
            node_classifier.random_state,
            NODE_MODELS[node_classifier.model],
        )
        node_split = make_node_split(graph, split, seed)
        used_variant = resolve_scale_method_name(
            node_classifier.model, variant, graph.name
        )
        run_keys.append(
            (graph.name, split, model_title, used_variant, options_text, seed)
        )
        fit_hash = hash_of((graph_arrays, vars(node_split), vars(node_settings), seed))[
            :12
        ]
        if row_by_run_key.get(run_keys[-1], {}).get("hash") == fit_hash:
            continue
        start_seconds = time.perf_counter()
        node_classifier.fit(graph, node_split.train, node_split.validation)
        training_losses, validation_accuracies = node_classifier.history_.values()
        run_row = row_by_run_key[run_keys[-1]] = {
            **dict(zip(_ABOUT, run_keys[-1], strict=True)),
            "validation": 100 * max(validation_accuracies),
            "test": 100 * node_classifier.score(graph, node_split.test),
            "best_epoch": node_classifier.best_epoch_,
            "n_epochs": len(training_losses),
            "seconds": time.perf_counter() - start_seconds,
            "hash": fit_hash,
        }
        if out is not None:
            with replace_when_whole(out) as partial_path:
                score_table = pd.DataFrame(row_by_run_key.values())
                score_table.to_csv(
                    partial_path, sep=column_separator, index=False, float_format="%.7g"
                )
        if verbose:
            scores_text = "validation {validation:.1f} %, test {test:.1f} %".format(
                **run_row
            )
            print(f"{model_title} seed {seed}: {scores_text}", flush=True)  # noqa: T201
    return pd.DataFrame([row_by_run_key[run_key] for run_key in run_keys])


def summarize_nodes(run_table: pd.DataFrame) -> pd.DataFrame:
    """Return mean, sample standard deviation and maximum of runs over seeds.

    Parameters
    ----------
    run_table : DataFrame
        From :func:`run_nodes`.

    Returns
    -------
    DataFrame
        One row a data set, split, model, variant and options; sd is NaN of one seed.
    """
    run_groups = run_table.groupby(_ABOUT[:-1], sort=False)
    return run_groups.agg(
        seeds=("test", "size"),
        validation=("validation", "mean"),
        mean=("test", "mean"),
        sd=("test", "std"),
        maximum=("test", "max"),
        seconds=("seconds", "mean"),
    ).reset_index()
