"""A graph of nodes becomes features and a way to diffuse over it."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from brainlsap.exceptions import ParameterError
from brainlsap.graph import (
    Spectrum,
    decompose,
    diffuse_recurrence,
    normalized_laplacian,
)
from brainlsap.model.node_network import Diffusion, NodeFeatures
from brainlsap.model.node_settings import NodeSettings

# One decomposition of thousands of nodes takes minutes; seeds share it.
_spectra: dict[bytes, Spectrum] = {}


@dataclass(frozen=True, eq=False)
class NodeInputs:
    """What a network needs of a graph: features, diffusion, and both as they came."""

    features: NodeFeatures
    diffusion: Diffusion
    adjacency: sparse.csr_array
    raw_features: sparse.csr_array


def prepare_nodes(graph: Any, settings: NodeSettings) -> NodeInputs:
    """Check a graph and make what a network needs of it; labels are not touched.

    Parameters
    ----------
    graph : NodeGraph
        Anything with `adjacency` and `features`.
    settings : NodeSettings
        As resolved.

    Returns
    -------
    NodeInputs

    Raises
    ------
    ParameterError
        If adjacency and features do not fit or are not finite, or the exact kernel
        is asked of a graph that is too large for it.

    Examples
    --------
    See :func:`brainlsap.model.LSAPNodeClassifier`.
    """
    adjacency = _in_single(graph.adjacency, "adjacency")
    features = _in_single(graph.features, "features")
    n_nodes = adjacency.shape[0]
    if adjacency.shape != (n_nodes, n_nodes) or features.shape[0] != n_nodes:
        raise ParameterError(
            "adjacency must have shape (n_nodes, n_nodes) and features (n_nodes, "
            f"n_features), got {adjacency.shape} and {features.shape}."
        )
    scaled = features
    if settings.normalize == "row":
        total = np.abs(features).sum(axis=1)
        scaled = sparse.diags_array(1 / np.where(total > 0, total, 1)) @ features
    return NodeInputs(
        NodeFeatures(sparse.csr_array(scaled, dtype=np.float32)),
        make_diffusion(adjacency, settings),
        adjacency,
        features,
    )


def _in_single(given: Any, what: str) -> sparse.csr_array:
    """Return a matrix in single precision, in which every entry is a number."""
    whole = sparse.csr_array(given)
    with np.errstate(over="ignore"):  # told below, by node
        single = whole.astype(np.float32)
    wrong = np.flatnonzero(~np.isfinite(single.data))
    if wrong.size:
        node = int(np.searchsorted(single.indptr, wrong[0], side="right")) - 1
        raise ParameterError(
            f"{what} must be finite in single precision: {wrong.size} of their "
            f"entries are not, the first {whole.data[wrong[0]]} in column "
            f"{single.indices[wrong[0]]} of node {node}. Mend or remove those nodes."
        )
    return single


def make_diffusion(adjacency: sparse.csr_array, settings: NodeSettings) -> Diffusion:
    """Return how signals are diffused: by eigenvectors or by recurrence.

    Parameters
    ----------
    adjacency : SciPy CSR array of shape (n_nodes, n_nodes)
        Symmetric.
    settings : NodeSettings
        As resolved.

    Returns
    -------
    callable
        `(H, scale) -> H`, H of shape (n_nodes, n_channels).

    Raises
    ------
    ParameterError
        If the exact kernel is asked of a graph that is too large for it.

    Examples
    --------
    >>> from brainlsap.model.node_settings import resolve_node_settings
    >>> pair = sparse.csr_array(np.array([[0, 1.0], [1, 0]], np.float32))
    >>> diffuse = make_diffusion(pair, resolve_node_settings("default", {}))
    >>> diffuse(torch.eye(2), torch.zeros(2)).round().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    n_nodes = adjacency.shape[0]
    if settings.self_loops:
        adjacency = sparse.csr_array(
            adjacency + sparse.eye_array(n_nodes, dtype=np.float32)
        )
    L = normalized_laplacian(adjacency)
    if settings.kernel != "exact":
        kernel, degree = settings.kernel, int(settings.degree or 0)
        return lambda H, scale: diffuse_recurrence(L, H, scale, kernel, degree)
    if n_nodes > settings.max_exact_nodes:
        raise ParameterError(
            f"the exact kernel needs the eigenvectors of {n_nodes} nodes, more than "
            f"max_exact_nodes={settings.max_exact_nodes}. Use kernel='chebyshev' with "
            "a tight tolerance (tolerance=1e-6): the same numbers to six digits."
        )
    # as it reads: the engine for many small graphs is several times slower on one
    # large one, and one matrix of all responses fits into memory here
    spectrum = _spectrum(L)
    U, rates = spectrum.eigenvectors[0], spectrum.eigenvalues[0].float()
    return lambda H, scale: (U * torch.exp(-scale[:, None] * rates)) @ (U.T @ H)


def _spectrum(L: Tensor) -> Spectrum:
    dense = L.to_dense()
    key = hashlib.blake2b(dense.numpy().tobytes(), digest_size=16).digest()
    if key not in _spectra:
        # the last one only: each takes as much memory as the square of its nodes
        _spectra.clear()
        _spectra[key] = decompose(dense[None], torch.float32)
    return _spectra[key]
