"""Extreme graphs of nodes either give finite numbers, or are refused by our errors."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from brainlsap.exceptions import BrainlsapError
from brainlsap.model import LSAPNodeClassifier, NodeBaseline

N_NODES, N_FEATURES = 23, 5
TRAIN, VALIDATION = np.arange(8), np.arange(8, 14)


def put(value, *where):
    def change(array):
        array[where] = value
        return array

    return change


def one_edge(W):
    W[:] = 0.0
    W[0, 1] = W[1, 0] = 3.0
    return W


HOLDS = {
    "plain": {},
    "constant features": {"X": put(2.5)},
    "zero features": {"X": put(0.0)},
    "a node without features": {"X": put(0.0, 3)},
    "features that sum to 0": {"X": lambda X: X - X.mean(1, keepdims=True)},
    "features of 1e-30": {"X": lambda X: X * 1e-30},
    "features of 1e30": {"X": lambda X: X * 1e30},
    "negative features": {"X": np.negative},
    "one edge": {"W": one_edge},
    "no edge": {"W": put(0.0)},
    "every edge": {"W": lambda W: np.ones_like(W) - np.eye(N_NODES)},
    "weights of 1e-30": {"W": lambda W: W * 1e-30},
    "weights of 1e30": {"W": lambda W: W * 1e30},
    "a class of one node": {"y": put(2, 5)},
    "integers": {"W": lambda W: W.astype(int), "X": lambda X: (9 * X).astype(int)},
}
REFUSED = {
    "a feature that is NaN": {"X": put(np.nan, 3, 1)},
    "a feature that is not finite": {"X": put(-np.inf, 3, 1)},
    "a feature of 1e200": {"X": put(1e200, 3, 1)},
    "a weight that is NaN": {"W": put(np.nan, 4, 2)},
    "a weight of 1e200": {"W": put(1e200, 4, 2)},
    "a negative weight": {"W": put(-1.0, 4, 2)},
    "one direction": {"W": put(7.0, 4, 2)},
}
MODELS = {
    "lsap-c": LSAPNodeClassifier(n_epochs=3),
    "exact": LSAPNodeClassifier("exact", n_epochs=3),
    "described": LSAPNodeClassifier(
        "laguerre", scale_mode="descriptors", self_loops=True, n_epochs=3
    ),
    "paper": LSAPNodeClassifier("hermite", preset="paper", n_epochs=3),
    "mlp": NodeBaseline("mlp", n_epochs=3),
    "graphheat": NodeBaseline("graphheat", n_epochs=3),
}


def graph_of(changes):
    rng = np.random.default_rng(6)
    W = np.triu(rng.gamma(1.0, size=(N_NODES, N_NODES)), 1)
    W[W < 1.2] = 0.0
    W[-1] = W[:, -1] = 0.0
    parts = {"W": W + W.T, "X": rng.random((N_NODES, N_FEATURES))}
    parts["y"] = np.arange(N_NODES) % 2
    for name, change in changes.items():
        parts[name] = np.asarray(change(parts[name]))
    return SimpleNamespace(
        name="drawn",
        adjacency=sparse.csr_array(parts["W"]),
        features=sparse.csr_array(parts["X"]),
        labels=parts["y"],
    )


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("case", HOLDS)
def test_nodes_are_told(case, name):
    graph = graph_of(HOLDS[case])
    with warnings.catch_warnings():
        # "scales not learned" and its like: said to the user, and no matter here
        warnings.simplefilter("ignore", UserWarning)
        model = MODELS[name].fit(graph, TRAIN, VALIDATION)
    probability = model.predict_proba(graph)
    assert np.isfinite(probability).all()
    np.testing.assert_allclose(probability.sum(1), 1.0, atol=1e-5)
    for key, value in vars(model).items():
        if key.startswith("scale_") and isinstance(value, np.ndarray):
            assert np.isfinite(value).all()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("case", REFUSED)
def test_nodes_that_cannot_be_are_refused(case, name):
    graph = graph_of(REFUSED[case])
    with pytest.raises(BrainlsapError, match=r"finite|negative|symmetric"):
        MODELS[name].fit(graph, TRAIN, VALIDATION)
    if "feature" in case:
        with pytest.raises(BrainlsapError, match=r"features .* in column 1 of node 3"):
            MODELS[name].fit(graph, TRAIN, VALIDATION)
    good = MODELS[name].fit(graph_of({}), TRAIN, VALIDATION)
    with pytest.raises(BrainlsapError, match=r"finite|negative|symmetric"):
        good.predict_proba(graph)
