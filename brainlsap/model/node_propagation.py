"""Propagation of the baselines: means of powers, and personalised PageRank."""

from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

# Columns of PageRank made at once, and the share of a walk that is left undone.
_AT_ONCE, _REST = 512, 1e-3


class _MeanOfPowers(torch.autograd.Function):
    """(1 + A + ... + A^K) H / (K + 1) for A = 1 - L, which is its own transpose."""

    @staticmethod
    def forward(ctx: Any, H: Tensor, L: Tensor, order: int) -> Tensor:
        ctx.L, ctx.order = L, order
        return _mean_of_powers(H, L, order)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return _mean_of_powers(grad.contiguous(), ctx.L, ctx.order), None, None


def _mean_of_powers(H: Tensor, L: Tensor, order: int) -> Tensor:
    total = H.clone()
    for _ in range(order):
        H = torch.addmm(H, L, H, alpha=-1)
        total += H
    return total / (order + 1)


def mean_of_powers(H: Tensor, L: Tensor, order: int) -> Tensor:
    """Return the mean of (1 - L)^k H for k from 0 to `order`; differentiable in H.

    Parameters
    ----------
    H : Tensor of shape (n_nodes, n_channels)
    L : Tensor of shape (n_nodes, n_nodes)
        Normalised Laplacian, sparse CSR.
    order : int
        Highest power.

    Returns
    -------
    Tensor of shape (n_nodes, n_channels)

    Examples
    --------
    >>> from brainlsap.graph import normalized_laplacian
    >>> L = normalized_laplacian(sparse.csr_array(np.ones((2, 2), np.float32)))
    >>> mean_of_powers(torch.eye(2), L, 1).round(decimals=3).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    return _MeanOfPowers.apply(H, L, order)  # type: ignore[no-any-return]


def page_rank_graph(
    adjacency: sparse.csr_array, teleport: float, n_neighbours: int
) -> sparse.csr_array:
    """Return personalised PageRank, the largest entries of each column, normalised.

    Parameters
    ----------
    adjacency : SciPy CSR array of shape (n_nodes, n_nodes)
        Symmetric.
    teleport : float
        Probability of a jump back home.
    n_neighbours : int
        Entries that are kept of each column.

    Returns
    -------
    SciPy CSR array of shape (n_nodes, n_nodes)
        Symmetrically normalised, float32.

    Examples
    --------
    >>> ring = sparse.csr_array(np.roll(np.eye(5), 1, 1) + np.roll(np.eye(5), -1, 1))
    >>> np.diff(page_rank_graph(ring, 0.1, 3).indptr).tolist()
    [3, 3, 3, 3, 3]
    """
    n_nodes = adjacency.shape[0]
    W = sparse.csr_array(adjacency + sparse.eye_array(n_nodes), dtype=np.float32)
    root = sparse.diags_array(W.sum(axis=1) ** -0.5)
    A = sparse.csr_array(root @ W @ root, dtype=np.float32)
    blocks = []
    for start in range(0, n_nodes, _AT_ONCE):
        home = np.eye(n_nodes, min(_AT_ONCE, n_nodes - start), -start, np.float32)
        reach = home.copy()
        for _ in range(int(np.ceil(np.log(_REST) / np.log(1 - teleport)))):
            reach = (1 - teleport) * (A @ reach) + teleport * home
        blocks.append(_largest(reach, min(n_neighbours, n_nodes)))
    near = sparse.csr_array(sparse.hstack(blocks))
    left = sparse.diags_array(near.sum(axis=1) ** -0.5)
    right = sparse.diags_array(near.sum(axis=0) ** -0.5)
    return sparse.csr_array(left @ near @ right, dtype=np.float32)


def _largest(reach: np.ndarray, kept: int) -> sparse.csr_array:
    """Keep the largest entries of each column."""
    order = np.argpartition(-reach, kept - 1, axis=0)[:kept]
    values = np.take_along_axis(reach, order, axis=0)
    columns = np.broadcast_to(np.arange(reach.shape[1]), order.shape)
    return sparse.csr_array(
        (values.ravel(), (order.ravel(), columns.ravel())), shape=reach.shape
    )
