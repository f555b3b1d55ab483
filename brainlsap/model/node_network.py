"""Heat convolutions over one large graph: weights first, then diffusion.

The wide input never meets the graph: features are multiplied by weights, row by
sparse row, and only the hidden channels are diffused. Several views of the graph
(nodes dropped at random) are diffused side by side, as channels.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from brainlsap.model.network import drop
from brainlsap.model.node_scale import DescribedScale
from brainlsap.model.node_settings import NodeSettings
from brainlsap.model.propagation import HeatScale

Diffusion = Callable[[Tensor, Tensor], Tensor]

# Denser features are multiplied as they are: indices then cost more than zeros.
_DENSE_SHARE = 0.25


class NodeFeatures(nn.Module):
    """Constant features of nodes, sparse or dense, with their product and dropout.

    Parameters
    ----------
    features : SciPy CSR array of shape (n_nodes, n_features)

    Examples
    --------
    >>> features = NodeFeatures(sparse.csr_array(np.eye(3, 5, dtype=np.float32)))
    >>> features(torch.ones(5, 2)).shape
    torch.Size([3, 2])
    """

    values: Tensor
    rows: Tensor
    columns: Tensor
    turned_rows: Tensor
    turned_columns: Tensor
    order: Tensor

    def __init__(self, features: sparse.csr_array) -> None:
        super().__init__()
        X = sparse.csr_array(features, dtype=np.float32)
        self.shape = X.shape
        self.is_dense = X.nnz > _DENSE_SHARE * X.shape[0] * X.shape[1]
        if self.is_dense:
            self.register_buffer("values", torch.from_numpy(X.toarray()), False)
            return
        order = sparse.csr_array(X.copy())
        order.data = np.arange(X.nnz, dtype=np.float64)
        turned = sparse.csr_array(order.T)
        parts = {
            "values": X.data,
            "rows": X.indptr.astype(np.int32),
            "columns": X.indices.astype(np.int32),
            "turned_rows": turned.indptr.astype(np.int32),
            "turned_columns": turned.indices.astype(np.int32),
            "order": turned.data.astype(np.int64),
        }
        for name, part in parts.items():
            self.register_buffer(name, torch.from_numpy(part), False)
        with warnings.catch_warnings():
            # torch says once that its CSR layout is beta; products are tested here
            warnings.filterwarnings("ignore", "Sparse CSR tensor support", UserWarning)
            _csr(self.rows, self.columns, self.values, self.shape)

    def forward(self, weight: Tensor, dropout: float = 0.0) -> Tensor:
        """Return features times `weight`; a share of the features is dropped."""
        values = drop(self.values, dropout, dropout > 0)
        if self.is_dense:
            return values @ weight
        return _SparseProduct.apply(values, weight, self)  # type: ignore[no-any-return]


def _csr(rows: Tensor, columns: Tensor, values: Tensor, shape: tuple) -> Tensor:
    return torch.sparse_csr_tensor(
        rows, columns, values, size=shape, check_invariants=False
    )


class _SparseProduct(torch.autograd.Function):
    """X W for constant sparse X; torch's own turns X around in every epoch."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, weight: Tensor, X: NodeFeatures) -> Tensor:
        ctx.save_for_backward(values)
        ctx.X = X
        return _csr(X.rows, X.columns, values, X.shape) @ weight

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (values,) = ctx.saved_tensors
        X = ctx.X
        turned = _csr(X.turned_rows, X.turned_columns, values[X.order], X.shape[::-1])
        return None, turned @ grad, None


class NodeNetwork(nn.Module):
    r"""K heat convolutions over one graph, to one logit for each class.

    .. math:: H_k = K(s)\, \mathrm{drop}(\mathrm{ReLU}(H_{k-1}))\, W_k + b_k

    Row p of the kernel K(s) has node p's own scale; all layers share the scales. With
    `head="convolution"` the last convolution gives the logits (the paper's network),
    with `"linear"` a layer without diffusion follows.

    Parameters
    ----------
    features : NodeFeatures
        Of all nodes.
    diffusion : callable
        `(H, scale) -> H`: by the recurrence, or by eigenvectors.
    heat : HeatScale or DescribedScale
        Scales of all nodes.
    n_classes : int
        Number of classes.
    settings : NodeSettings
        Layers, units and dropout.

    Examples
    --------
    >>> features = NodeFeatures(sparse.csr_array(np.eye(3, 5, dtype=np.float32)))
    >>> heat = HeatScale(3, 2.0, 8.0)
    >>> network = NodeNetwork(features, lambda H, scale: H, heat, 2, NodeSettings())
    >>> network().shape
    torch.Size([3, 1, 2])
    """

    def __init__(
        self,
        features: NodeFeatures,
        diffusion: Diffusion,
        heat: HeatScale | DescribedScale,
        n_classes: int,
        settings: NodeSettings,
    ) -> None:
        super().__init__()
        self.features, self.diffuse, self.heat = features, diffusion, heat
        self.settings = settings
        n_linear = settings.n_layers + (settings.head == "linear")
        sizes = [features.shape[1], *[settings.hidden_units] * (n_linear - 1)]
        self.weights = nn.ParameterList(
            torch.empty(one, two)
            for one, two in zip(sizes, [*sizes[1:], n_classes], strict=True)
        )
        self.biases = nn.ParameterList(
            torch.zeros(one.shape[1]) for one in self.weights
        )
        for weight in self.weights:
            nn.init.xavier_uniform_(weight)

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
