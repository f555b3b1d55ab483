"""Every baseline's way along a graph against a slow truth."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.linalg import expm

from brainlsap.graph import normalized_laplacian
from brainlsap.model.network import (
    NETWORKS,
    AdaptiveDiffusion,
    DenseGraphs,
    compute_spectra,
    gcn_graphs,
    gdc_graphs,
    heat_kernels,
)


@pytest.fixture
def W():
    rng = np.random.default_rng(0)
    half = np.triu(rng.gamma(1.0, 40.0, (3, 7, 7)), 1)
    half[half < 20] = 0
    return half + half.transpose(0, 2, 1)


def signal(*shape):
    return torch.from_numpy(np.random.default_rng(1).normal(size=shape))


def slow_gcn(A):
    root = 1 / np.sqrt(A.sum(1))
    return root[:, None] * A * root[None]


def with_loops(W):
    """A region weighs as much as all its neighbours together, in the mean."""
    return W / W.sum(1).mean() + np.eye(len(W))


def test_gcn_is_the_normalised_adjacency_with_loops(W):
    for one, found in zip(W, gcn_graphs(W)[0], strict=True):
        assert_allclose(found, slow_gcn(with_loops(one)), atol=1e-12)
    binary = (W > 0).astype(float)
    assert_allclose(gcn_graphs(binary)[0][1], slow_gcn(binary[1] + np.eye(7)))
    assert torch.isfinite(gcn_graphs(np.zeros((1, 4, 4)))[0]).all()


def test_gdc_keeps_the_strongest_of_personalised_pagerank(W):
    found = gdc_graphs(W, n_neighbours=3)[0][1]
    assert_allclose(found, slow_gdc(W[1], n_neighbours=3), atol=1e-10)
    assert_allclose(gdc_graphs(W[1:2], n_neighbours=3)[0][0], found)


def test_heat_kernels_and_adaptive_diffusion_are_matrix_exponentials(W):
    laplacians = normalized_laplacian(W).numpy()
    kernels = heat_kernels(W, 1.7)[0]
    assert_allclose(kernels, [expm(-1.7 * L) for L in laplacians], atol=1e-10)
    layer = AdaptiveDiffusion(3).double()
    layer.raw_radius.data = torch.tensor([0.2, -1.1, 2.5], dtype=torch.float64)
    H, truth = signal(3, 7, 3), np.empty((3, 7, 3))
    for graph, L in enumerate(laplacians):
        for channel, radius in enumerate([0.2, 1.1, 2.5]):
            truth[graph, :, channel] = expm(-radius * L) @ H[graph, :, channel].numpy()
    assert_allclose(layer(H, *compute_spectra(W)).detach(), truth, atol=1e-10)
    radius = torch.tensor([0.3, 1.2, 2.4], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda one: torch.func.functional_call(
            layer, {"raw_radius": one}, (H, *compute_spectra(W))
        ),
        radius,
    )


def slow_gdc(A, n_neighbours=64, teleport_probability=0.15):
    """Sum the walks of personalised PageRank, and keep the most probable targets."""
    T, walk = slow_gcn(with_loops(A)), np.zeros_like(A)
    for n_steps in range(400):
        share = teleport_probability * (1 - teleport_probability) ** n_steps
        walk += share * np.linalg.matrix_power(T, n_steps)
    for column in walk.T:
        column[np.argsort(column)[:-n_neighbours]] = 0
    walk = walk / walk.sum(0)
    return slow_gcn((walk + walk.T) / 2)


def slow_gat(A, H, layer):
    """Average the connected regions with the weights of each head."""
    target, source = (
        one.weight.detach().numpy() for one in (layer.target, layer.source)
    )
    n_rois, n_channels = H.shape
    Z = np.empty((n_rois, 2 * n_channels))
    for head, i in np.ndindex(2, n_rois):
        seen = [j for j in range(n_rois) if A[i, j] > 0 or i == j]
        logits = np.array([target[head] @ H[i] + source[head] @ H[j] for j in seen])
        share = np.exp(np.where(logits > 0, logits, 0.2 * logits))
        columns = slice(head * n_channels, (head + 1) * n_channels)
        Z[i, columns] = (share / share.sum()) @ H[seen]
    return Z


def slow_laplacian(A):
    return np.eye(len(A)) - slow_gcn(A)


def slow_adc(A, H, layer):
    columns = [
        expm(-abs(radius) * slow_laplacian(A)) @ H[:, channel]
        for channel, radius in enumerate(layer.raw_radius.detach().numpy())
    ]
    return np.stack(columns, axis=1)


# The slow result of every network, `(A, H, layer, scale) -> output`, for one graph.
SLOW_PROPAGATIONS = {
    "gcn": lambda A, H, *_: slow_gcn(with_loops(A)) @ H,
    "gat": lambda A, H, layer, _: slow_gat(A, H, layer),
    "gdc": lambda A, H, *_: slow_gdc(A) @ H,
    "graphheat": lambda A, H, _, scale: np.hstack(
        [H, expm(-scale * slow_laplacian(A)) @ H]
    ),
    "adc": lambda A, H, layer, _: slow_adc(A, H, layer),
}
WITH_GRAPHS = sorted(name for name, kind in NETWORKS.items() if kind.make_layer)


@pytest.mark.parametrize("name", WITH_GRAPHS)
def test_every_network_is_its_slow_propagation(W, name):
    assert name in SLOW_PROPAGATIONS, (
        f"add a slow computation of {name} to SLOW_PROPAGATIONS of "
        "tests/model/test_propagation.py"
    )
    kind, H = NETWORKS[name], signal(3, 7, 2)
    layer = kind.make_layer(2).double()
    with torch.no_grad():
        found = DenseGraphs(H, kind.make_graphs(W, 1.7)).propagate(layer)
        lone = W.copy()
        lone[:, 3] = lone[:, :, 3] = 0  # A region without connections.
        lone_output = DenseGraphs(H, kind.make_graphs(lone, 1.7)).propagate(layer)
    assert torch.isfinite(lone_output).all()
    for k, A in enumerate(W):
        truth = SLOW_PROPAGATIONS[name](A, H[k].numpy(), layer, 1.7)
        assert_allclose(found[k], truth, atol=1e-9)


@pytest.mark.parametrize("name", WITH_GRAPHS)
def test_the_unit_of_weights_does_not_change_the_output(W, name):
    kind, H = NETWORKS[name], signal(3, 7, 2)
    layer = kind.make_layer(2).double()
    with torch.no_grad():
        output, output_of_other_unit = (
            DenseGraphs(H, kind.make_graphs(weights, 1.7)).propagate(layer)
            for weights in (W, 1024 * W)
        )
    assert_allclose(output_of_other_unit, output, atol=1e-9)


@pytest.mark.parametrize("name", WITH_GRAPHS)
def test_networks_say_whether_the_scale_changes_their_graphs(W, name):
    kind = NETWORKS[name]
    graph_pairs = zip(kind.make_graphs(W, 1.0), kind.make_graphs(W, 2.0), strict=True)
    is_same = all(torch.equal(small, large) for small, large in graph_pairs)
    assert kind.uses_scale != is_same


@pytest.mark.parametrize("name", WITH_GRAPHS)
def test_a_shared_graph_and_parts_of_a_batch_are_the_same(W, name, monkeypatch):
    kind = NETWORKS[name]
    layer, H = kind.make_layer(2).double(), signal(3, 7, 2)
    same = np.repeat(W[:1], 3, axis=0)
    one, copies = (
        DenseGraphs(H, kind.make_graphs(graphs, 1.0)) for graphs in (W[:1], same)
    )
    with torch.no_grad():
        whole = one.propagate(layer)
        assert whole.shape == (3, 7, layer.width)
        assert_allclose(copies.propagate(layer), whole, atol=1e-12)
        own = DenseGraphs(H, kind.make_graphs(W, 1.0))
        expected = own.propagate(layer)
        rows = torch.tensor([2, 0])
        assert_allclose(own.select_items(rows).propagate(layer), expected[rows])
        monkeypatch.setattr("brainlsap.model.network.GRAPHS_AT_ONCE", 2)
        assert_allclose(own.propagate(layer), expected, atol=1e-12)
        assert_allclose(one.propagate(layer), whole, atol=1e-12)
