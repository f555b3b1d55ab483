"""One graph of three communities, drawn from a seed."""

import numpy as np
import pytest
from scipy import sparse

from brainlsap.nodes import NodeGraph, NodeSplit


@pytest.fixture(scope="session")
def graph():
    """Three communities; each node's features say little about its own class."""
    rng, n_nodes = np.random.default_rng(0), 60
    labels = np.arange(n_nodes) % 3
    alike = labels[:, None] == labels
    W = np.triu(rng.random((n_nodes, n_nodes)) < np.where(alike, 0.25, 0.02), 1)
    W[-1] = W[:, -1] = False  # one isolated node
    features = rng.random((n_nodes, 12)) < 0.15
    features[np.arange(n_nodes), labels] |= rng.random(n_nodes) < 0.5
    matrices = (sparse.csr_array(one.astype(np.float32)) for one in (W | W.T, features))
    parts = np.digitize(np.arange(n_nodes), [15, 30])
    return NodeGraph("drawn", *matrices, labels, NodeSplit(*(parts == np.c_[:3])))
