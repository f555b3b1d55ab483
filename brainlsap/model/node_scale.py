"""The range of every node: free, one for all, or a small function of descriptors."""

from collections.abc import Callable

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn

from brainlsap.model.node_settings import NodeSettings
from brainlsap.model.propagation import HeatScale


def node_descriptors(
    adjacency: sparse.csr_array, features: sparse.csr_array
) -> np.ndarray:
    """Describe every node without any label: five numbers, standardised.

    Degree and mean degree of the neighbours (logarithms), share of joined pairs
    among the neighbours, cosine between own and the neighbours' mean features, and
    the number of own features (logarithm).

    Parameters
    ----------
    adjacency : SciPy CSR array of shape (n_nodes, n_nodes)
        Symmetric, of 0 and 1.
    features : SciPy CSR array of shape (n_nodes, n_features)

    Returns
    -------
    float32 array of shape (n_nodes, 5)
        Mean 0 and standard deviation 1; 0 where all nodes are alike.

    Examples
    --------
    >>> ring = sparse.csr_array(np.roll(np.eye(4), 1, 1) + np.roll(np.eye(4), -1, 1))
    >>> node_descriptors(ring, sparse.csr_array(np.eye(4))).shape
    (4, 5)
    """
    W = sparse.csr_array(adjacency, dtype=np.float64)
    X = sparse.csr_array(features, dtype=np.float64)
    degree = W.sum(axis=1)
    inverse = sparse.diags_array(1 / np.maximum(degree, 1))
    triangles = (W @ W).multiply(W).sum(axis=1)
    pairs = np.maximum(degree * (degree - 1), 1)
    around = inverse @ (W @ X)
    size = _length(X) * _length(around)
    cosine = around.multiply(X).sum(axis=1) / np.maximum(size, 1e-12)
    columns = np.stack(
        [
            np.log1p(degree),
            np.log1p(inverse @ (W @ degree)),
            triangles / pairs,
            cosine,
            np.log1p(np.diff(X.indptr)),
        ],
        axis=1,
    )
    spread = columns.std(axis=0)
    centred = columns - columns.mean(axis=0)
    return np.where(spread > 1e-9, centred / np.maximum(spread, 1e-9), 0).astype(
        np.float32
    )


def _length(X: sparse.csr_array) -> np.ndarray:
    return np.sqrt(X.multiply(X).sum(axis=1))


class DescribedScale(nn.Module):
    r"""Scales as a logistic function of node descriptors.

    .. math:: s_p = s_{max} \, \sigma(b + w \cdot d_p)

    Six numbers are learned whatever the number of nodes, so a few labelled nodes
    can teach them, and nodes without a label get theirs from the same function.

    Parameters
    ----------
    descriptors : Tensor of shape (n_nodes, n_descriptors)
        Standardised.
    initial_scale : float
        Where every scale starts.
    largest : float
        Largest scale that the kernel is trusted at.

    Examples
    --------
    >>> DescribedScale(torch.zeros(3, 5), 2.0, 8.0)().tolist()
    [2.0, 2.0, 2.0]
    """

    descriptors: Tensor

    def __init__(
        self, descriptors: Tensor, initial_scale: float, largest: float
    ) -> None:
        super().__init__()
        self.register_buffer("descriptors", descriptors, persistent=False)
        self.largest = largest
        # a start at either end would have no slope
        share = min(max(initial_scale / largest, 0.01), 0.99)
        start = float(np.log(share / (1 - share)))
        self.slope = nn.Parameter(torch.zeros(descriptors.shape[1]))
        self.offset = nn.Parameter(torch.tensor(start))

    def forward(self) -> Tensor:
        """Return the scale of every node, shape `(n_nodes,)`."""
        return self.largest * torch.sigmoid(self.descriptors @ self.slope + self.offset)


def make_scale(
    settings: NodeSettings, n_nodes: int, describe: Callable[[], np.ndarray]
) -> HeatScale | DescribedScale:
    """Return the scales of a fit at their start.

    Parameters
    ----------
    settings : NodeSettings
        As resolved.
    n_nodes : int
        Number of nodes.
    describe : callable
        Returns the descriptors; called only where they are used.

    Returns
    -------
    HeatScale or DescribedScale

    Examples
    --------
    >>> from brainlsap.model.node_settings import resolve_node_settings
    >>> settings = resolve_node_settings("default", {"scale_mode": "global"})
    >>> make_scale(settings, 3, lambda: np.zeros((3, 5)))().tolist()
    [4.0, 4.0, 4.0]
    """
    start, largest = float(settings.initial_scale or 0), float(settings.max_scale or 0)
    if settings.scale_mode == "descriptors":
        return DescribedScale(torch.from_numpy(describe()), start, largest)
    mode = "region" if settings.scale_mode == "node" else settings.scale_mode
    return HeatScale(n_nodes, start, largest, mode)
