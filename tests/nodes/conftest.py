"""One graph of three communities, drawn from a seed."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse


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
    return SimpleNamespace(
        name="drawn",
        adjacency=sparse.csr_array((W | W.T).astype(np.float32)),
        features=sparse.csr_array(features.astype(np.float32)),
        labels=labels,
    )
