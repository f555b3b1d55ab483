"""The baselines of the node task: their layers, and that they read no test label."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import sparse

from brainlsap.exceptions import ParameterError
from brainlsap.nodes import NODE_BASELINES, NodeBaseline
from brainlsap.nodes.baselines import Attend, normalized_adjacency, page_rank_graph
from brainlsap.nodes.classifier import weight_groups
from brainlsap.nodes.networks import ConstantMatrix

N_NODES = 42
TRAIN, VALIDATION, TEST = np.arange(12), np.arange(12, 24), np.arange(24, N_NODES)
pytestmark = pytest.mark.filterwarnings("ignore:the network did not learn")


@pytest.fixture
def graph(draw_nodes):
    return draw_nodes(N_NODES, 11, together=0.4)


def walk(graph):
    """D^-1/2 (A + I) D^-1/2, dense."""
    W = graph.adjacency.toarray().astype(float) + np.eye(N_NODES)
    root = W.sum(1) ** -0.5
    return torch.from_numpy(root[:, None] * W * root)


def brief(name, graph, n_epochs=1):
    return NodeBaseline(name, n_epochs=n_epochs).fit(graph, TRAIN, VALIDATION)


@pytest.mark.parametrize("name", sorted(NODE_BASELINES))
def test_every_baseline_learns_and_reads_no_test_label(graph, name):
    noise = graph.labels.copy()
    noise[TEST] = -1
    noisy = SimpleNamespace(**{**vars(graph), "labels": noise})
    one, other = (brief(name, each, 25) for each in (graph, noisy))
    # chance is a third; settings are those of large graphs
    lowest = 0.4 if name in {"mlp", "dagnn", "gat", "appnp"} else 0.5
    assert one.score(graph, np.arange(N_NODES)) > lowest
    assert one.best_epoch_ == other.best_epoch_
    assert np.array_equal(one.predict_proba(), other.predict_proba())


def by_hand(name, net, A, X):
    """Logits as the publications write them, from dense matrices."""
    H = X @ net.weight
    if name == "sgc":
        return A @ A @ H
    if name == "gcn":
        H = torch.relu(A @ H + net.bias)
        return A @ H @ net.last_weight + net.last_bias
    H = first = torch.relu(H)
    if name == "gcnii":
        for k, weight in enumerate(net.deep, start=1):
            beta = np.log(0.5 / k + 1)
            mixed = 0.9 * A @ H + 0.1 * first
            H = torch.relu((1 - beta) * mixed + beta * mixed @ weight)
        return net.last(H)
    H = first = net.last(H)
    steps = [H]
    for _ in range(10):
        H = 0.9 * (A @ H) + 0.1 * first
        steps.append(A @ steps[-1])
    if name == "appnp":
        return H
    every = torch.stack(steps, 1)
    return (torch.sigmoid(every @ net.gate.weight.T + net.gate.bias) * every).sum(1)


@pytest.mark.parametrize("name", ["gcn", "sgc", "appnp", "dagnn", "gcnii"])
def test_networks_by_hand(graph, name):
    X = graph.features.toarray()
    X = torch.from_numpy(X / np.maximum(X.sum(1, keepdims=True), 1)).float()
    network = brief(name, graph, 2).network_
    logits = by_hand(name, network, walk(graph).float(), X)
    assert torch.allclose(network()[:, 0], logits, atol=1e-5)


def test_attention_by_hand_and_its_slope(graph):
    layer = Attend(graph.adjacency, 2, 3, 0.0).double()
    H = torch.randn(N_NODES, 6, generator=torch.Generator().manual_seed(1)).double()
    W = graph.adjacency.toarray() + np.eye(N_NODES)
    truth = torch.empty(N_NODES, 6, dtype=torch.float64)
    with torch.no_grad():
        for head in range(2):
            h = H[:, 3 * head : 3 * head + 3]
            here, there = h @ layer.here[head], h @ layer.there[head]
            raw = torch.nn.functional.leaky_relu(here[:, None] + there, 0.2)
            raw[torch.from_numpy(W == 0)] = -torch.inf
            truth[:, 3 * head : 3 * head + 3] = raw.softmax(1) @ h
        assert torch.allclose(layer(H), truth)
    few = H[:, :6].requires_grad_()
    assert torch.autograd.gradcheck(lambda x: layer(x).square().sum(), few)


def test_propagation_has_the_slope_of_its_matrix(graph):
    A = ConstantMatrix(normalized_adjacency(graph.adjacency))
    H = torch.rand(N_NODES, 5, requires_grad=True)
    probe = torch.rand(N_NODES, 5)
    (A(H) * probe).sum().backward()
    assert torch.allclose(H.grad, walk(graph).float().T @ probe, atol=1e-5)


def test_grand_is_the_mean_of_powers(graph):
    network = brief("grand", graph).network_
    A = walk(graph)
    H = torch.rand(N_NODES, 5)
    powers = [torch.linalg.matrix_power(A, k) @ H.double() for k in range(9)]
    found = network.diffuse(H, network.heat())
    assert torch.allclose(found.double(), sum(powers) / 9, atol=1e-5)


def test_adc_learns_its_scale_and_graphheat_does_not(graph):
    scales = {
        name: NodeBaseline(name, n_epochs=6, patience=0)
        .fit(graph, TRAIN, VALIDATION)
        .network_.heat.raw_scale.tolist()
        for name in ("adc", "graphheat")
    }
    assert scales["graphheat"] == [2.0]
    assert scales["adc"] != [2.0]


def test_settings_differ_by_data_set():
    assert NodeBaseline("grand").settings("cora").degree == 8
    assert NodeBaseline("grand").settings("citeseer").degree == 2
    wide = NodeBaseline("gcn").settings("amazon-photo")
    assert (wide.normalize, wide.hidden_units, wide.weight_decay) == ("none", 64, 5e-5)
    assert NodeBaseline("sgc").settings("amazon-photo").weight_decay == 1e-5
    assert NodeBaseline("gcn", patience=7).settings().patience == 7
    with pytest.raises(ParameterError, match=r"model must be one of 'adc', .*'lstm'"):
        NodeBaseline("lstm").settings()


def test_page_rank_against_an_inverse(graph):
    truth = 0.1 * np.linalg.inv(np.eye(N_NODES) - 0.9 * walk(graph).numpy())
    scaled = truth / np.sqrt(np.outer(truth.sum(1), truth.sum(0)))
    found = page_rank_graph(graph.adjacency, 0.1, N_NODES).toarray()
    assert np.abs(found - scaled).max() < 1e-3
    few = page_rank_graph(graph.adjacency, 0.1, 4)
    # the last node is alone
    assert np.diff(sparse.csc_array(few).indptr).tolist() == [4] * (N_NODES - 1) + [1]


def test_gcnii_decays_its_convolutions_more(graph):
    network = brief("gcnii", graph).network_
    groups = {g["weight_decay"]: g["params"] for g in weight_groups(network, 5e-4)}
    assert {tuple(weight.shape) for weight in groups[0.01]} == {(64, 64)}
    assert len(groups[0.01]) == 16
    assert len(groups[5e-4]) == len(list(network.parameters())) - 16
