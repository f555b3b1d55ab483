"""The baselines of the node task: they learn, they read no test label, they refuse."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import sparse

from brainlsap.exceptions import ParameterError
from brainlsap.graph import normalized_laplacian
from brainlsap.model import NODE_BASELINES, NodeBaseline
from brainlsap.model.node_propagation import mean_of_powers, page_rank_graph
from brainlsap.model.node_training import _weight_groups

pytest.importorskip("torch_geometric")
pytestmark = pytest.mark.filterwarnings(
    # what PyTorch Geometric says on import and of its sparse tensors
    "ignore::DeprecationWarning",
    "ignore::UserWarning",
)

N_NODES, N_CLASSES = 42, 3
TRAIN, VALIDATION, TEST = np.arange(12), np.arange(12, 24), np.arange(24, N_NODES)


@pytest.fixture(scope="module")
def graph():
    rng = np.random.default_rng(0)
    labels = np.arange(N_NODES) % N_CLASSES
    alike = labels[:, None] == labels
    W = np.triu(rng.random((N_NODES, N_NODES)) < np.where(alike, 0.4, 0.02), 1)
    features = rng.random((N_NODES, 11)) < 0.15
    features[np.arange(N_NODES), labels] |= rng.random(N_NODES) < 0.6
    return SimpleNamespace(
        name="drawn",
        adjacency=sparse.csr_array((W | W.T).astype(np.float32)),
        features=sparse.csr_array(features.astype(np.float32)),
        labels=labels,
    )


@pytest.mark.parametrize("name", sorted(NODE_BASELINES))
def test_every_baseline_learns_and_reads_no_test_label(graph, name):
    noise = graph.labels.copy()
    noise[TEST] = -1
    noisy = SimpleNamespace(**{**vars(graph), "labels": noise})
    one, other = (
        NodeBaseline(name, n_epochs=25).fit(each, TRAIN, VALIDATION)
        for each in (graph, noisy)
    )
    # chance is a third; settings are those of large graphs
    floor = 0.4 if name in {"mlp", "dagnn", "gat", "appnp"} else 0.5
    assert one.score(graph, np.arange(N_NODES)) > floor
    assert one.best_epoch_ == other.best_epoch_
    assert np.array_equal(one.predict_proba(), other.predict_proba())


def test_one_convolution_by_hand(graph):
    model = NodeBaseline("gcn", n_epochs=2).fit(graph, TRAIN, VALIDATION)
    first, one, _, two = model.network_.first, *model.network_.steps
    W = graph.adjacency.toarray() + np.eye(N_NODES)
    root = W.sum(1) ** -0.5
    A = torch.from_numpy(root[:, None] * W * root).float()
    X = graph.features.toarray()
    X = torch.from_numpy(X / np.maximum(X.sum(1, keepdims=True), 1)).float()
    with torch.no_grad():
        H = torch.relu(A @ (X @ first.weight) + one.layer.bias)
        logits = A @ two.layer.lin(H) + two.layer.bias
        found = model.network_()[:, 0]
    assert torch.allclose(found, logits, atol=1e-5)


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


def test_an_unknown_baseline():
    with pytest.raises(ParameterError, match=r"model must be one of 'adc', .*'lstm'"):
        NodeBaseline("lstm").settings()


def test_without_pytorch_geometric_the_extra_is_named(graph, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_geometric.nn", None)
    with pytest.raises(ParameterError, match=r"pip install 'brainlsap\[baselines\]'"):
        NodeBaseline("gcn", n_epochs=1).fit(graph, TRAIN, VALIDATION)


def test_mean_of_powers_against_matrices_and_its_slope(graph):
    L = normalized_laplacian(graph.adjacency.astype(np.float64))
    A = torch.eye(N_NODES, dtype=torch.float64) - L.to_dense()
    H = torch.rand(N_NODES, 5, dtype=torch.float64, requires_grad=True)
    truth = (H + A @ H + A @ A @ H) / 3
    assert torch.allclose(mean_of_powers(H, L, 2), truth)
    assert torch.autograd.gradcheck(lambda X: mean_of_powers(X, L, 2), H[:, :2])


def test_page_rank_against_an_inverse(graph):
    W = graph.adjacency.toarray().astype(float) + np.eye(N_NODES)
    root = W.sum(1) ** -0.5
    A = root[:, None] * W * root
    truth = 0.1 * np.linalg.inv(np.eye(N_NODES) - 0.9 * A)
    scaled = truth / np.sqrt(np.outer(truth.sum(1), truth.sum(0)))
    found = page_rank_graph(graph.adjacency, 0.1, N_NODES).toarray()
    assert np.abs(found - scaled).max() < 1e-3
    few = page_rank_graph(graph.adjacency, 0.1, 4)
    assert np.diff(sparse.csc_array(few).indptr).tolist() == [4] * N_NODES


def test_appnp_drops_channels_but_no_edges(graph):
    # PyTorch Geometric's own dropout drops edges again at every step
    network = NodeBaseline("appnp", n_epochs=1).fit(graph, TRAIN, VALIDATION).network_
    step = network.steps[-1]
    H = torch.randn(N_NODES, 3, generator=torch.manual_seed(0))
    torch.testing.assert_close(step.train()(H), step.eval()(H))


def test_gcnii_decays_its_convolutions_more(graph):
    network = NodeBaseline("gcnii", n_epochs=1).fit(graph, TRAIN, VALIDATION).network_
    groups = {g["weight_decay"]: g["params"] for g in _weight_groups(network, 5e-4)}
    assert {tuple(weight.shape) for weight in groups[0.01]} == {(64, 64)}
    assert len(groups[0.01]) == 16
    assert len(groups[5e-4]) == len(list(network.parameters())) - 16
