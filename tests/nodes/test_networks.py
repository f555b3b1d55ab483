"""Networks of the node task: by hand, by a slow truth, and that each learns."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone

from brainlsap.exceptions import ParameterError
from brainlsap.graph import exact_heat_kernel, normalized_laplacian
from brainlsap.model.network import NETWORKS
from brainlsap.nodes import NODE_MODELS, LSAPNodeClassifier
from brainlsap.nodes.classifier import (
    READ_OUTS,
    Attention,
    ConstantMatrix,
    NodeNetwork,
    page_rank_graph,
)
from brainlsap.nodes.graphs import VARIANTS, resolve_node_settings

N_NODES = 60
TRAIN, VALIDATION, TEST = np.arange(18), np.arange(18, 30), np.arange(30, N_NODES)


def walk(graph):
    """D^-1/2 (A + I) D^-1/2, dense."""
    W = graph.adjacency.toarray().astype(float) + np.eye(N_NODES)
    root = W.sum(1) ** -0.5
    return torch.from_numpy(root[:, None] * W * root)


def brief(name, graph, n_epochs=1):
    return LSAPNodeClassifier(name, n_epochs=n_epochs).fit(graph, TRAIN, VALIDATION)


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        *((name, "chosen") for name in NODE_MODELS),
        *(("lsap-c", variant) for variant in VARIANTS),
    ],
)
def test_every_model_learns_and_reads_no_test_label(graph, name, variant):
    noise = graph.labels.copy()
    noise[TEST] = np.random.default_rng(9).integers(-1, 50, len(TEST))
    noisy = SimpleNamespace(**{**vars(graph), "labels": noise})
    n_epochs = 20 if name == "gdc" else 12
    model = LSAPNodeClassifier(name, variant=variant, n_epochs=n_epochs)
    one, other = (clone(model).fit(g, TRAIN, VALIDATION) for g in (graph, noisy))
    # chance is a third; settings are those of large graphs
    lowest = 0.4 if name in {"mlp", "dagnn", "gat", "appnp", "gdc"} else 0.5
    assert one.score(graph, np.arange(N_NODES)) > lowest
    assert one.history_ == other.history_
    assert one.classes_.tolist() == other.classes_.tolist()
    found = (each.network_.parameters() for each in (one, other))
    assert all(torch.equal(*pair) for pair in zip(*found, strict=True))
    assert np.array_equal(one.predict_proba(), other.predict_proba())


def test_every_network_has_a_read_out_and_others_are_refused(graph):
    for name in NODE_MODELS:
        assert resolve_node_settings(name, "chosen", {}).network in READ_OUTS
        if name in NETWORKS:
            assert NODE_MODELS[name] == NETWORKS[name].title
    settings = replace(
        resolve_node_settings("gcn", "chosen", {}), network="no such network"
    )
    with pytest.raises(
        ParameterError, match=r"network must be one of .*'no such network'"
    ):
        NodeNetwork(graph, 3, settings)


def by_hand(name, net, A, X):
    """Logits as the publications write them, from dense matrices."""
    H = X @ net.weights[0]
    if name == "sgc":
        return A @ A @ H + net.biases[0]
    if name == "grand":
        mean = sum(torch.linalg.matrix_power(A, k) @ H for k in range(9)) / 9
        return torch.relu(mean + net.biases[0]) @ net.weights[1] + net.biases[1]
    if name == "gcn":
        H = torch.relu(A @ H + net.biases[0])
        return A @ H @ net.weights[1] + net.biases[1]
    H = first = torch.relu(H)
    if name == "gcnii":
        for k, weight in enumerate(net.deep_weights, start=1):
            beta = np.log(0.5 / k + 1)
            mixed = 0.9 * A @ H + 0.1 * first
            H = torch.relu((1 - beta) * mixed + beta * mixed @ weight)
        return net.output_layer(H)
    H = first = net.output_layer(H)
    steps = [H]
    for _ in range(10):
        H = 0.9 * (A @ H) + 0.1 * first
        steps.append(A @ steps[-1])
    if name == "appnp":
        return H
    every = torch.stack(steps, 1)
    return (
        torch.sigmoid(every @ net.gate_layer.weight.T + net.gate_layer.bias) * every
    ).sum(1)


@pytest.mark.parametrize("name", ["gcn", "sgc", "grand", "appnp", "dagnn", "gcnii"])
def test_networks_by_hand(graph, name):
    X = graph.features.toarray()
    X = torch.from_numpy(X / np.maximum(X.sum(1, keepdims=True), 1)).float()
    network = brief(name, graph, 2).network_
    logits = by_hand(name, network, walk(graph).float(), X)
    assert torch.allclose(network()[:, 0], logits, atol=1e-5)


def test_attention_by_hand_and_its_slope(graph):
    layer = Attention(2, 3, 0.0).double()
    H = torch.randn(N_NODES, 6, generator=torch.Generator().manual_seed(1)).double()
    W = graph.adjacency.toarray() + np.eye(N_NODES)
    edges = torch.from_numpy(W).nonzero().T
    truth = torch.empty(N_NODES, 6, dtype=torch.float64)
    with torch.no_grad():
        for head in range(2):
            h = H[:, 3 * head : 3 * head + 3]
            here, there = h @ layer.target_weight[head], h @ layer.source_weight[head]
            raw = torch.nn.functional.leaky_relu(here[:, None] + there, 0.2)
            raw[torch.from_numpy(W == 0)] = -torch.inf
            truth[:, 3 * head : 3 * head + 3] = raw.softmax(1) @ h
        views = torch.stack([H, 2 * H], dim=1)
        assert torch.allclose(layer(views, edges)[:, 0], truth)
    few = H[:, None].requires_grad_()
    assert torch.autograd.gradcheck(lambda x: layer(x, edges).square().sum(), few)


def test_sparse_and_dense_features_are_the_same():
    rng = np.random.default_rng(0)
    X = rng.random((9, 40)) * (rng.random((9, 40)) < 0.1)
    thin = ConstantMatrix(sparse.csr_array(X))
    weight = torch.rand(40, 4, requires_grad=True)
    assert not thin.is_dense
    thin(weight).square().sum().backward()
    wide = torch.from_numpy(X).float()
    other = weight.detach().clone().requires_grad_()
    (wide @ other).square().sum().backward()
    assert torch.allclose(weight.grad, other.grad, atol=1e-5)
    assert ConstantMatrix(sparse.csr_array(X + 1)).is_dense


@pytest.mark.parametrize("model", ["exact", "lsap-c", "lsap-l", "lsap-h"])
@pytest.mark.parametrize("self_loops", [True, False])
def test_heat_against_the_slow_truth(graph, model, self_loops):
    given = {"self_loops": self_loops, "tolerance": 1e-6}
    settings = resolve_node_settings(model, "consistency", given)
    W = graph.adjacency.toarray().astype(float) + np.eye(N_NODES) * self_loops
    rng = np.random.default_rng(2)
    scale = torch.from_numpy(rng.uniform(0, 2.4, N_NODES))
    H = torch.from_numpy(rng.normal(size=(N_NODES, 2, 7)))
    truth = exact_heat_kernel(normalized_laplacian(W), scale) @ H.flatten(1)
    found = NodeNetwork(graph, 3, settings).propagate(H.float(), scale.float())
    assert torch.allclose(found.double(), truth.view(H.shape), atol=2e-5)


def test_adc_learns_its_scale_and_graphheat_does_not(graph):
    scales = {name: set(brief(name, graph, 6).scale_) for name in ("adc", "graphheat")}
    assert scales["graphheat"] == {2.0}
    assert len(scales["adc"]) == 1
    assert scales["adc"] != {2.0}


def test_page_rank_against_an_inverse(graph):
    truth = 0.1 * np.linalg.inv(np.eye(N_NODES) - 0.9 * walk(graph).numpy())
    scaled = truth / np.sqrt(np.outer(truth.sum(1), truth.sum(0)))
    found = page_rank_graph(graph.adjacency, 0.1, N_NODES).toarray()
    assert np.abs(found - scaled).max() < 1e-3
    few = page_rank_graph(graph.adjacency, 0.1, 4)
    # the last node is alone
    assert np.diff(sparse.csc_array(few).indptr).tolist() == [4] * (N_NODES - 1) + [1]
