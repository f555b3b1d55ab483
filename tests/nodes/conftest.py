"""One graph of three communities, drawn from a seed."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse


def _draw_nodes(n_nodes=60, n_features=12, seed=0, together=0.25):
    """Three communities; each node's features say little about its own class."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_nodes) % 3
    alike = labels[:, None] == labels
    W = np.triu(rng.random((n_nodes, n_nodes)) < np.where(alike, together, 0.02), 1)
    W[-1] = W[:, -1] = False  # one isolated node
    features = rng.random((n_nodes, n_features)) < 0.15
    features[np.arange(n_nodes), labels] |= rng.random(n_nodes) < 0.5
    return SimpleNamespace(
        name="drawn",
        adjacency=sparse.csr_array((W | W.T).astype(np.float32)),
        features=sparse.csr_array(features.astype(np.float32)),
        labels=labels,
    )


@pytest.fixture
def draw_nodes():
    return _draw_nodes


@pytest.fixture(scope="session")
def graph():
    return _draw_nodes()
