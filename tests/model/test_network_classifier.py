"""The networks to compare: each learns, is repeatable, and equals a slow truth."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import expm
from sklearn.base import clone

from brainlsap.exceptions import ParameterError
from brainlsap.graph import normalized_laplacian
from brainlsap.model import NETWORKS, NetworkClassifier
from brainlsap.model.diffusion_networks import (
    AdaptiveDiffusion,
    heat_kernels,
    spectra,
)
from brainlsap.model.graph_networks import (
    adjacency_with_loops,
    attend,
    diffused_adjacency,
    make_gat,
    rewired_by_pagerank,
)
from brainlsap.model.graph_scans import GraphScans
from brainlsap.model.plain_networks import BrainNetwork, EdgeToEdge

GEOMETRIC = sorted(name for name, kind in NETWORKS.items() if kind.geometric)
OWN = sorted(set(NETWORKS) - set(GEOMETRIC))


def need_geometric(network):
    if NETWORKS[network].geometric:
        pytest.importorskip("torch_geometric", reason="the extra baselines is absent")


def fit(scans, network, **given):
    small = {"n_epochs": 30, "patience": 10, "dropout": 0.1, "random_state": 3}
    model = NetworkClassifier(network, **(small | given))
    return model.fit(scans.X, scans.y, groups=scans.people)


def draw_connectomes(n_graphs=3, n_rois=7, seed=0):
    rng = np.random.default_rng(seed)
    half = np.triu(rng.gamma(1.0, 40.0, (n_graphs, n_rois, n_rois)), 1)
    half[half < 20] = 0
    return half + half.transpose(0, 2, 1)


def random_signal(*shape, seed=1):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape)).float()


@pytest.mark.parametrize("network", sorted(NETWORKS))
def test_each_network_finds_a_planted_region_and_repeats_itself(scans, network):
    need_geometric(network)
    # attention and PageRank blur seven regions, and take longer
    model = fit(scans, network, n_epochs=80, patience=0)
    probability = model.predict_proba(scans.X)
    assert probability.shape == (len(scans.y), 2)
    assert_allclose(probability.sum(1), 1, atol=1e-12)
    assert (model.predict(scans.X) == scans.y).mean() > 0.8
    one, two = (fit(scans, network, n_epochs=3).predict_proba(scans.X) for _ in "ab")
    assert_array_equal(one, two)


@pytest.mark.parametrize("network", sorted(NETWORKS))
def test_one_graph_for_all_equals_its_copies(draw_scans, network):
    need_geometric(network)
    scans = draw_scans()
    one = np.repeat(scans.connectomes[:1], len(scans.y), axis=0)
    shared = fit(
        SimpleNamespace(
            X=np.concatenate([one, scans.features], 2), y=scans.y, people=scans.people
        ),
        network,
        n_epochs=2,
    )
    # a scan beside one of another graph is no longer of a shared graph
    mixed = np.concatenate([one[:4], scans.connectomes[4:5]])
    X = np.concatenate([mixed, scans.features[:5]], 2)
    alone = shared.predict_proba(np.concatenate([one[:4], scans.features[:4]], 2))
    assert_allclose(shared.predict_proba(X)[:4], alone, atol=1e-6)


@pytest.mark.parametrize("network", OWN)
def test_global_generator_is_left_alone(scans, network):
    before = torch.random.get_rng_state()
    fit(scans, network, n_epochs=1)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_perceptron_never_sees_the_connectome(scans, draw_scans):
    model = fit(scans, "mlp", n_epochs=3)
    other = draw_scans(seed=5).connectomes
    X = np.concatenate([other, scans.features], axis=2)
    assert_array_equal(model.predict_proba(X), model.predict_proba(scans.X))


def test_starts_are_averaged(scans):
    model = fit(scans, "mlp", n_starts=3, n_epochs=2)
    each = []
    for network in model.networks_:
        single = clone(model).set_params(n_starts=1)
        single.__dict__.update(vars(model))
        single.networks_ = [network]
        each.append(single.predict_proba(scans.X))
    assert_allclose(np.mean(each, axis=0), model.predict_proba(scans.X))
    assert len(model.fit_report_["best_epoch"]) == 3
    assert not np.allclose(each[0], each[1])


def test_without_patience_everybody_is_learned_from(scans):
    report = fit(scans, "mlp", patience=0, n_epochs=4).fit_report_
    assert report["n_epochs"] == [4]
    assert report["best_epoch"] == [3]


def test_slow_truth_of_attention():
    geometric = pytest.importorskip("torch_geometric.nn")
    layer = geometric.DenseGATConv(3, 4, heads=2)
    adjacency = adjacency_with_loops(draw_connectomes())[0].float()
    H = random_signal(3, 7, 3)
    truth = layer(H, adjacency, add_loop=False)
    torch.testing.assert_close(attend(layer, H, adjacency), truth)
    one = layer(H, adjacency[:1], add_loop=False)
    torch.testing.assert_close(attend(layer, H, adjacency[:1]), one)


def test_a_gat_of_odd_width_has_one_head():
    pytest.importorskip("torch_geometric")
    settings = SimpleNamespace(hidden_units=5, n_layers=1, dropout=0.0)
    network = make_gat(2, 3, settings, torch.tensor([True] * 7))
    assert network.layers[0].heads == 1


def test_rewiring_equals_that_of_pytorch_geometric():
    geometric = pytest.importorskip("torch_geometric")
    from torch_geometric.transforms import GDC

    W = draw_connectomes(n_rois=9)
    adjacency = adjacency_with_loops(W)[0]
    transform = GDC(
        self_loop_weight=0,
        normalization_in="sym",
        normalization_out="col",
        diffusion_kwargs={"method": "ppr", "alpha": 0.15},
        sparsification_kwargs={"method": "topk", "k": 4, "dim": 0},
        exact=True,
    )
    for one, mine in zip(
        adjacency, rewired_by_pagerank(adjacency, 0.15, 4), strict=True
    ):
        edges = one.nonzero().T
        data = geometric.data.Data(
            edge_index=edges, edge_attr=one[edges[0], edges[1]].float(), num_nodes=9
        )
        told = transform(data)
        truth = torch.zeros(9, 9)
        truth[told.edge_index[0], told.edge_index[1]] = told.edge_attr
        assert_allclose(mine.numpy(), truth.numpy(), atol=1e-6)
    assert_allclose(rewired_by_pagerank(adjacency).sum(1).numpy(), 1)


def test_rewired_graph_is_symmetric():
    S = diffused_adjacency(draw_connectomes())[0]
    torch.testing.assert_close(S, S.mT)


def test_loops_weigh_as_much_as_the_mean_region():
    W = draw_connectomes()
    adjacency = adjacency_with_loops(W)[0].numpy()
    off = adjacency - np.eye(7)
    assert_allclose(off.sum(-1).mean(-1), 1)
    binary = (W > 0).astype(float)
    assert_array_equal(adjacency_with_loops(binary)[0].numpy(), binary + np.eye(7))


def test_slow_truth_of_one_fixed_scale():
    W = draw_connectomes()
    for one, kernel in zip(W, heat_kernels(W, 1.7)[0], strict=True):
        truth = expm(-1.7 * normalized_laplacian(one).numpy())
        assert_allclose(kernel.numpy(), truth, atol=1e-10)


def test_slow_truth_of_a_radius_for_each_channel():
    W = draw_connectomes()
    layer = AdaptiveDiffusion(3, 4).double()
    layer.raw_radius.data = torch.tensor([0.2, -1.1, 2.5], dtype=torch.float64)
    H = random_signal(3, 7, 3).double()
    Z = np.empty(H.shape)
    for graph, L in enumerate(normalized_laplacian(W).numpy()):
        for channel, radius in enumerate([0.2, 1.1, 2.5]):
            Z[graph, :, channel] = expm(-radius * L) @ H[graph, :, channel].numpy()
    truth = layer.mix(torch.from_numpy(Z))
    torch.testing.assert_close(layer(H, *spectra(W)), truth)
    assert torch.autograd.gradcheck(
        lambda radius: torch.func.functional_call(
            layer, {"raw_radius": radius}, (H, *spectra(W))
        ),
        torch.tensor([0.3, 1.2, 2.4], dtype=torch.float64, requires_grad=True),
    )


def test_slow_truth_of_the_edge_filter():
    layer = EdgeToEdge(4, 3)
    A = random_signal(2, 4, 4)
    out = layer(A)
    row, column = layer.row.weight, layer.column.weight
    for b, f, i, j in np.ndindex(2, 3, 4, 4):
        truth = layer.row.bias[f] + row[f] @ A[b, i] + column[f] @ A[b, :, j]
        torch.testing.assert_close(out[b, f, i, j], truth)


def test_edges_are_standardised_over_training_scans():
    settings = SimpleNamespace(hidden_units=4, n_layers=1, dropout=0.0)
    network = BrainNetwork(2, 3, settings, torch.tensor([True] * 7))
    edges = random_signal(5, 7, 7)
    edges[:, 2, 3] = 4.0
    network.learn_statistics(GraphScans(random_signal(5, 7, 2), (edges,), False))
    told = (edges - network.edge_mean) / network.edge_deviation
    assert_allclose(told[:, 2, 3], 0)
    assert_allclose(told[:, 0, 1].numpy().std(), 1, rtol=1e-5)


def test_missing_extra_is_named(scans, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_geometric.nn", None)
    with pytest.raises(ParameterError, match=r"Install brainlsap\[baselines\]"):
        fit(scans, "gcn")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"network": "resnet"}, r"network must be one of .*got 'resnet'"),
        ({"class_weight": "some"}, r"class_weight must be one of .*got 'some'"),
        ({"n_epochs": 0}, r"n_epochs must be at least 1, got 0"),
        ({"dropout": 1.0}, r"dropout must be at least 0 and below 1, got 1.0"),
    ],
)
def test_settings_that_cannot_be_used(scans, given, message):
    with pytest.raises(ParameterError, match=message):
        fit(scans, **({"network": "mlp"} | given))


def test_other_regions_than_in_the_fit_are_refused(scans, draw_scans):
    model = fit(scans, "mlp", n_epochs=1)
    with pytest.raises(ParameterError, match=r"must hold 7 regions and 2 features"):
        model.predict_proba(draw_scans(n_rois=6).X)


def test_a_face_says_nothing_before_it_is_fitted(scans):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        NetworkClassifier().predict(scans.X)
