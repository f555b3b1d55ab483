"""Tiny scans with a planted answer, and the network's slow truth in NumPy."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from brainlsap.arrays import pack_scans
from brainlsap.graph import decompose, exact_heat_kernel, normalized_laplacian
from brainlsap.graph.spectral import ChebyshevSeries, GraphBatch
from brainlsap.model.network import GraphNetwork
from brainlsap.model.settings import Settings, resolve_kernel_settings

PLANTED, UNMEASURED = 3, 5


@dataclass(frozen=True, eq=False)
class Scans:
    """Every third person has two visits; region 3 tells the classes, 5 is NaN."""

    connectomes: np.ndarray
    features: np.ndarray
    y: np.ndarray
    people: np.ndarray

    @property
    def X(self):
        return pack_scans(self.connectomes, self.features)


def draw_scans(n_people=24, n_rois=7, n_features=2, classes=("AD", "CN"), seed=0):
    rng = np.random.default_rng(seed)
    people = np.repeat(np.arange(n_people), 1 + (np.arange(n_people) % 3 == 0))
    code = people % len(classes)
    n_scans = len(people)
    half = rng.gamma(1.0, 40.0, (n_scans, n_rois, n_rois))
    connectomes = np.triu(half, 1) + np.triu(half, 1).transpose(0, 2, 1)
    features = rng.normal(size=(n_scans, n_rois, n_features))
    features[:, PLANTED] += 3.0 * code[:, None]
    features[:, UNMEASURED] = np.nan
    return Scans(connectomes, features, np.array(classes)[code], people)


def draw_batch(settings, n_items=9, n_rois=6, n_features=2, seed=0):
    """Graphs, signals, their Laplacians; float64."""
    rng = np.random.default_rng(seed)
    half = np.triu(rng.gamma(1.0, 40.0, (n_items, n_rois, n_rois)), 1)
    L = normalized_laplacian(half + half.transpose(0, 2, 1))
    X = torch.from_numpy(rng.normal(size=(n_items, n_rois, n_features)))
    kernel = settings.kernel, settings.degree, settings.max_scale
    series = ChebyshevSeries(*kernel, torch.float64)
    return GraphBatch(series, [decompose(L)], X, stores_graphs=True), L, X


def settle(**given):
    small = {
        "hidden_units": 4,
        "readout_units": 5,
        "dropout": 0.0,
        "weight_decay": 0.0,
        "initial_scale": 1.0,
        "max_scale": 2.5,
        "n_starts": 2,
        "n_epochs": 12,
        "patience": 6,
    }
    return resolve_kernel_settings(Settings(**(small | given)))


def draw_network(settings, n_rois=6, n_channels=2, n_classes=3, seed=0):
    """Weights from a seed, unequal scales, region 2 not measured; float64."""
    measured = torch.ones(n_rois, dtype=torch.bool)
    measured[2] = False
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = GraphNetwork(
            n_rois, n_channels, n_classes, settings, measured, settings.initial_scale
        )
    network.double()
    if settings.scale_mode == "region":
        # unequal on purpose: equal scales hide a kernel that is transposed
        network.heat.raw_scale.data = torch.linspace(0.1, 2.3, n_rois).double()
    return network


def slow_logits(network, L, X):
    """K convolutions, standardised over these scans, scan by scan, in NumPy."""
    scale = network.heat().detach()
    kernels = [exact_heat_kernel(one, scale).numpy() for one in L]
    H = X.numpy()
    for mix, standardize in zip(network.mix, network.standardize, strict=True):
        Z = np.stack([K @ signal for K, signal in zip(kernels, H, strict=True)])
        if not isinstance(standardize, torch.nn.Identity):
            Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
        H = np.maximum(_affine(mix, Z.swapaxes(1, 2)).swapaxes(1, 2), 0)
    logits = []
    for signal in H:
        flat = signal[network.rows.numpy()].ravel()
        hidden = np.maximum(_affine(network.readout, flat), 0)
        logits.append(_affine(network.output, hidden))
    return np.array(logits)


def _affine(linear, x):
    """Weights times inputs, which stand on the last axis but one of a matrix."""
    weight, bias = linear.weight.detach().numpy(), linear.bias.detach().numpy()
    return weight @ x + (bias if x.ndim == 1 else bias[:, None])


@pytest.fixture
def scans():
    return draw_scans()


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("this machine has no CUDA device")
    return request.param
