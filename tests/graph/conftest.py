"""Graphs of every kind, drawn from a seed."""

import numpy as np
import pytest
import torch
from scipy import sparse

from brainlsap.graph import choose_degree, normalized_laplacian
from brainlsap.graph.laplacian import make_csr_tensor

KINDS = ["weighted", "binary", "disconnected", "ring"]


def draw_graph(kind: str, n_rois: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    W = np.triu(rng.gamma(1.0, 50.0, (n_rois, n_rois)), 1)
    if kind == "binary":
        W = (W > 40).astype(float)
    elif kind == "disconnected":
        half = n_rois // 2
        W[:half, half:] = 0.0
        W[0] = 0.0  # and one isolated region
    elif kind == "ring":
        W = np.zeros((n_rois, n_rois))
        W[np.arange(n_rois - 1), np.arange(1, n_rois)] = 1.0
        W[0, -1] = 1.0
    return W + W.T


def dense_to_csr(matrix) -> torch.Tensor:
    return make_csr_tensor(sparse.csr_array(matrix))


@pytest.fixture
def laplacian() -> torch.Tensor:
    return normalized_laplacian(draw_graph("weighted", 5))


@pytest.fixture
def laplacians() -> torch.Tensor:
    """Five graphs, one of them with an isolated region."""
    W = np.stack([draw_graph("weighted", 7, seed) for seed in range(5)])
    W[1, 4] = W[1, :, 4] = 0.0
    return normalized_laplacian(W)


def find_degree(kernel):
    """Return a degree at which a kernel is accurate at scale 2.5, None for "exact"."""
    published = {"exact": None, "chebyshev": 24, "hermite": 44, "laguerre": 90}
    if kernel in published:
        return published[kernel]
    return choose_degree(kernel, 2.5, 1e-11)
