"""Networks over one large graph: heat convolutions, and those compared with them.

The wide input never meets the graph: features are multiplied by weights, row by
sparse row, and only the hidden channels are diffused. Several views of the graph
(nodes dropped at random) are diffused side by side, as channels.
"""

import hashlib
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from brainlsap.exceptions import ParameterError
from brainlsap.graph import (
    Spectrum,
    decompose,
    diffuse_recurrence,
    normalized_laplacian,
)
from brainlsap.model.network import drop
from brainlsap.model.propagation import HeatScale
from brainlsap.nodes.settings import NodeSettings

Diffusion = Callable[[Tensor, Tensor], Tensor]

# Denser matrices are multiplied as they are: indices then cost more than zeros.
_DENSE_SHARE = 0.25
# One decomposition of thousands of nodes takes minutes; seeds share it.
_spectra: dict[bytes, Spectrum] = {}


class ConstantMatrix(nn.Module):
    """A constant matrix, sparse or dense, with its product and dropout of entries."""

    def __init__(self, matrix: sparse.csr_array) -> None:
        super().__init__()
        X = sparse.csr_array(matrix, dtype=np.float32)
        self.shape = X.shape
        self.is_dense = X.nnz > _DENSE_SHARE * X.shape[0] * X.shape[1]
        if self.is_dense:
            self.values = torch.from_numpy(X.toarray())
            return
        order = sparse.csr_array(X.copy())
        order.data = np.arange(X.nnz, dtype=np.float64)
        turned = sparse.csr_array(order.T)
        self.values = torch.from_numpy(X.data)
        self.order = torch.from_numpy(turned.data.astype(np.int64))
        self.places, self.turned_places = (
            tuple(torch.from_numpy(i.astype(np.int32)) for i in (M.indptr, M.indices))
            for M in (X, turned)
        )
        with warnings.catch_warnings():
            # torch says once that its CSR layout is beta; products are tested here
            warnings.filterwarnings("ignore", "Sparse CSR tensor support", UserWarning)
            _csr(self.places, self.values, self.shape)

    def forward(self, H: Tensor, dropout: float = 0.0) -> Tensor:
        """Return the matrix times `H`; a share of its entries is dropped."""
        values = drop(self.values, dropout, dropout > 0)
        if self.is_dense:
            return values @ H
        return _SparseProduct.apply(values, H, self)  # type: ignore[no-any-return]


def _csr(places: tuple[Tensor, ...], values: Tensor, size: Any) -> Tensor:
    rows, columns = places
    return torch.sparse_csr_tensor(
        rows, columns, values, size=size, check_invariants=False
    )


class _SparseProduct(torch.autograd.Function):
    """X H for constant sparse X; torch's own turns X around in every epoch."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, H: Tensor, X: ConstantMatrix) -> Tensor:
        ctx.save_for_backward(values)
        ctx.X = X
        return _csr(X.places, values, X.shape) @ H

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (values,), X = ctx.saved_tensors, ctx.X
        turned = _csr(X.turned_places, values[X.order], X.shape[::-1])
        return None, turned @ grad, None


class NodeInputs(NamedTuple):
    """What a network needs of a graph: features, diffusion, and both as they came."""

    features: ConstantMatrix
    diffusion: Diffusion
    adjacency: sparse.csr_array
    raw_features: sparse.csr_array


def prepare_nodes(graph: Any, settings: NodeSettings) -> NodeInputs:
    """Check a graph and make what a network needs of it; labels are not touched."""
    parts = []
    for what in ("adjacency", "features"):
        with np.errstate(over="ignore"):  # said below, by node
            one = sparse.csr_array(getattr(graph, what)).astype(np.float32)
        wrong = np.flatnonzero(~np.isfinite(one.data))
        if wrong.size:
            node = int(np.searchsorted(one.indptr, wrong[0], side="right")) - 1
            raise ParameterError(
                f"{what} must be finite in single precision: {wrong.size} of their "
                f"entries are not, the first of node {node}."
            )
        parts.append(one)
    adjacency, features = parts
    if features.shape[0] != adjacency.shape[0]:
        raise ParameterError(
            "adjacency must have shape (n_nodes, n_nodes) and features (n_nodes, "
            f"n_features), got {adjacency.shape} and {features.shape}."
        )
    scaled = features
    if settings.normalize == "row":
        total = np.abs(features).sum(axis=1)
        scaled = sparse.diags_array(1 / np.where(total > 0, total, 1)) @ features
    diffusion = make_diffusion(adjacency, settings)
    return NodeInputs(ConstantMatrix(scaled), diffusion, adjacency, features)


def make_diffusion(adjacency: sparse.csr_array, settings: NodeSettings) -> Diffusion:
    """Return how signals are diffused: by eigenvectors or by recurrence."""
    n_nodes = adjacency.shape[0]
    if settings.self_loops:
        adjacency = with_loops(adjacency)
    L = normalized_laplacian(adjacency)
    if settings.kernel != "exact":
        kernel, degree = settings.kernel, int(settings.degree or 0)
        return lambda H, scale: diffuse_recurrence(L, H, scale, kernel, degree)
    if n_nodes > settings.max_exact_nodes:
        raise ParameterError(
            f"the exact kernel needs the eigenvectors of {n_nodes} nodes, more than "
            f"max_exact_nodes={settings.max_exact_nodes}. Use kernel='chebyshev' with "
            "tolerance=1e-6: the same numbers to six digits."
        )
    # as it reads: the engine for many small graphs is several times slower on one
    # large one, and one matrix of all responses fits into memory here
    dense = L.to_dense()
    key = hashlib.blake2b(dense.numpy().tobytes(), digest_size=16).digest()
    if key not in _spectra:
        # the last one only: each takes as much memory as the square of its nodes
        _spectra.clear()
        _spectra[key] = decompose(dense[None], torch.float32)
    U, rates = _spectra[key].eigenvectors[0], _spectra[key].eigenvalues[0].float()
    return lambda H, scale: (U * torch.exp(-scale[:, None] * rates)) @ (U.T @ H)


def with_loops(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Return a graph in which every node is its own neighbour too."""
    loops = sparse.eye_array(adjacency.shape[0], dtype=np.float32)
    return sparse.csr_array(adjacency + loops)


def node_descriptors(
    adjacency: sparse.csr_array, features: sparse.csr_array
) -> np.ndarray:
    """Describe every node without any label: five numbers, standardised.

    Log degree; log mean degree of the neighbours; clustering; cosine of the node's
    features and its neighbours' mean; log number of features.
    """
    W = sparse.csr_array(adjacency, dtype=np.float64)
    X = sparse.csr_array(features, dtype=np.float64)
    degree = W.sum(axis=1)
    inverse = sparse.diags_array(1 / np.maximum(degree, 1))
    around = inverse @ (W @ X)
    lengths = [np.sqrt(one.multiply(one).sum(axis=1)) for one in (X, around)]
    columns = [
        np.log1p(degree),
        np.log1p(inverse @ (W @ degree)),
        (W @ W).multiply(W).sum(axis=1) / np.maximum(degree * (degree - 1), 1),
        around.multiply(X).sum(axis=1) / np.maximum(lengths[0] * lengths[1], 1e-12),
        np.log1p(np.diff(X.indptr)),
    ]
    described = np.stack(columns, axis=1)
    spread = described.std(axis=0)
    centred = described - described.mean(axis=0)
    standard = np.where(spread > 1e-9, centred / np.maximum(spread, 1e-9), 0)
    return standard.astype(np.float32)


class DescribedScale(nn.Module):
    r"""Scales :math:`s_{max} \sigma(d_p \cdot w + w_0)` of node descriptors d."""

    def __init__(
        self, descriptors: Tensor, initial_scale: float, largest: float
    ) -> None:
        super().__init__()
        self.descriptors, self.largest = descriptors, largest
        # a start at either end would have no slope
        share = min(max(initial_scale / largest, 0.01), 0.99)
        start = float(np.log(share / (1 - share)))
        self.slope = nn.Parameter(torch.zeros(descriptors.shape[1]))
        self.offset = nn.Parameter(torch.tensor(start))

    def forward(self) -> Tensor:
        """Return the scale of every node, shape `(n_nodes,)`."""
        return self.largest * torch.sigmoid(self.descriptors @ self.slope + self.offset)


def drawn_weights(n_in: int, n_out: int) -> nn.Parameter:
    """Draw a matrix of weights."""
    return nn.Parameter(nn.init.xavier_uniform_(torch.empty(n_in, n_out)))


class NodeNetwork(nn.Module):
    r"""K heat convolutions :math:`H \leftarrow \sigma(K(s) H W + b)` to logits."""

    def __init__(
        self,
        features: ConstantMatrix,
        diffusion: Diffusion,
        heat: HeatScale | DescribedScale,
        n_classes: int,
        settings: NodeSettings,
    ) -> None:
        super().__init__()
        self.features, self.diffuse, self.heat = features, diffusion, heat
        self.settings = settings
        n_hidden = settings.n_layers - (settings.head == "convolution")
        hidden = [settings.hidden_units] * n_hidden
        sizes = [features.shape[1], *hidden, n_classes]
        self.weights = nn.ParameterList(map(drawn_weights, sizes, sizes[1:]))
        self.biases = nn.ParameterList(torch.zeros(size) for size in sizes[1:])

    def forward(self, n_views: int = 1) -> Tensor:
        """Return logits of shape `(n_nodes, n_views, n_classes)`."""
        given, scale = self.settings, self.heat()
        H = torch.stack([self._first() for _ in range(n_views)], dim=1)
        for k, bias in enumerate(self.biases):
            if k > 0:
                H = drop(torch.relu(H), given.dropout, self.training)
                H = H @ self.weights[k]
            if k < given.n_layers:
                # views side by side: one pass over the graph for all of them
                flat = self.diffuse(H.flatten(1), scale)
                H = flat.view(len(flat), n_views, -1)
            H = H + bias
        return H

    def _first(self) -> Tensor:
        """Return one view's features times weights; whole nodes may be left out."""
        given = self.settings
        H = self.features(self.weights[0], given.input_dropout * self.training)
        if not self.training or given.node_dropout == 0:
            return H
        keep = torch.rand(len(H), 1, device=H.device) >= given.node_dropout
        return H * (keep / (1 - given.node_dropout))


def heat_network(
    inputs: NodeInputs, n_classes: int, settings: NodeSettings
) -> nn.Module:
    """Make the network of LSAP, GraphHeat (one scale, given) and ADC (one, learned)."""
    start, largest = float(settings.initial_scale or 0), float(settings.max_scale or 0)
    heat: HeatScale | DescribedScale
    if settings.scale_mode == "descriptors":
        described = node_descriptors(inputs.adjacency, inputs.raw_features)
        heat = DescribedScale(torch.from_numpy(described), start, largest)
    else:
        mode = "region" if settings.scale_mode == "node" else settings.scale_mode
        heat = HeatScale(inputs.adjacency.shape[0], start, largest, mode)
    return NodeNetwork(inputs.features, inputs.diffusion, heat, n_classes, settings)
