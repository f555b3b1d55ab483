"""The spectral engine's ways through a layer, each against the exact kernel."""

import pytest
import torch
from numpy.testing import assert_allclose

from brainlsap.graph import (
    EXPANSIONS,
    KERNELS,
    decompose,
    exact_heat_kernel,
    polynomial_values,
)
from brainlsap.graph.laplacian import Spectrum
from brainlsap.graph.spectral import ChebyshevSeries, GraphBatch
from tests.graph.conftest import find_degree

N_GRAPHS, N_ROIS, N_CHANNELS = 5, 7, 3
# unequal on purpose: equal scales hide a kernel that is transposed
SCALE = torch.linspace(0.1, 2.4, N_ROIS, dtype=torch.float64)


def draw_signals(n_items=N_GRAPHS, seed=1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(n_items, N_ROIS, N_CHANNELS, generator=rng, dtype=torch.float64)


def make_batch(L, kernel, H):
    series = ChebyshevSeries(kernel, find_degree(kernel), 2.4, H.dtype)
    blocks = [decompose(some) for some in L.split(2)]
    batch = GraphBatch(series, blocks, H.detach(), stores_graphs=True)
    batch.chunk_size = 2  # five graphs in three parts
    return batch


def ways(L, kernel, H, scale):
    """Every way of diffusing constant signals."""
    batch = make_batch(L, kernel, H)
    return {"diffuse": batch.diffuse(scale, H), "terms": batch.diffuse(scale)}


def slow(L, H, scale):
    return torch.stack(
        [exact_heat_kernel(one, scale) @ h for one, h in zip(L, H, strict=True)]
    )


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_way_is_the_exact_kernel(laplacians, kernel):
    H = draw_signals()
    for name, got in ways(laplacians, kernel, H, SCALE).items():
        assert_allclose(got, slow(laplacians, H, SCALE), atol=1e-10, err_msg=name)
    # Hermite's terms cancel by four digits here; only rounding may be left
    single = make_batch(laplacians, kernel, H.float())
    got = single.diffuse(SCALE.float(), H.float())
    assert_allclose(got, slow(laplacians, H, SCALE), atol=3e-6)
    # one graph for all is that graph for each
    truth = slow(laplacians[[2] * N_GRAPHS], H, SCALE)
    for name, got in ways(laplacians[2:3], kernel, H, SCALE).items():
        assert_allclose(got, truth, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("rows", [slice(1, 4), torch.tensor([3, 2, 4])])
def test_items_find_their_graph_also_once_selected(laplacians, rows):
    H = draw_signals()
    for L in (laplacians, laplacians[2:3]):
        chosen = make_batch(L, "chebyshev", H).select_items(rows)
        truth = slow(L.expand(N_GRAPHS, -1, -1)[rows], H[rows], SCALE)
        assert_allclose(chosen.diffuse(SCALE, H[rows]), truth, atol=1e-10)
        assert_allclose(chosen.diffuse(SCALE), truth, atol=1e-10)


@pytest.mark.parametrize("n_graphs", [1, N_GRAPHS])
@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_of_every_way(laplacians, kernel, n_graphs):
    H = draw_signals().requires_grad_()
    batch = make_batch(laplacians[:n_graphs], kernel, H)
    scale = SCALE.clone().requires_grad_()
    assert torch.autograd.gradcheck(batch.diffuse, (scale, H), fast_mode=True)
    assert torch.autograd.gradcheck(batch.diffuse, scale)
    truth = torch.autograd.grad(batch.diffuse(scale, H).square().sum(), (scale, H))
    batch = make_batch(laplacians[:n_graphs], kernel, H.float())
    out = batch.diffuse(scale.float(), H.float())
    single = torch.autograd.grad(out.square().sum(), (scale, H))
    for one, other in zip(single, truth, strict=True):
        assert_allclose(one, other, rtol=0, atol=1e-5 * float(other.abs().max()))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize("kernel", KERNELS)
def test_cuda_agrees_with_the_cpu(laplacians, kernel):
    spectrum = Spectrum(*(one.cuda() for one in decompose(laplacians)))
    series = ChebyshevSeries(
        kernel, find_degree(kernel), 2.4, torch.float64, torch.device("cuda")
    )
    H = draw_signals().cuda().requires_grad_()
    batch = GraphBatch(series, [spectrum], H.detach(), stores_graphs=True)
    scale = SCALE.cuda().requires_grad_()
    truth = slow(laplacians, H.detach().cpu(), SCALE)
    assert_allclose(batch.diffuse(scale, H).detach().cpu(), truth, atol=1e-10)
    assert torch.autograd.gradcheck(batch.diffuse, (scale, H))


@pytest.mark.parametrize("kernel", KERNELS)
def test_nothing_of_a_layer_leaves_the_device(kernel):
    """Values cannot be read on `meta`, which stands for a GPU that must not wait."""
    meta = torch.device("meta")
    spectrum = Spectrum(
        torch.empty(3, N_ROIS, dtype=torch.float64, device=meta),
        torch.empty(3, N_ROIS, N_ROIS, device=meta),
    )
    series = ChebyshevSeries(kernel, find_degree(kernel), 2.4, device=meta)
    X = torch.empty(3, N_ROIS, N_CHANNELS, device=meta)
    batch = GraphBatch(series, [spectrum], X, stores_graphs=True)
    batch = batch.select_items(torch.tensor([2, 0], device=meta))
    H = torch.empty(2, N_ROIS, N_CHANNELS, device=meta, requires_grad=True)
    scale = torch.empty(N_ROIS, device=meta, requires_grad=True)
    for out in (batch.diffuse(scale, H), batch.diffuse(scale)):
        out.sum().backward()
        assert out.device == scale.grad.device == meta


SCALES = torch.tensor([0.0, 1e-3, 0.3, 1.0, 2.5, 5.0], dtype=torch.float64)
EIGENVALUES = torch.linspace(0, 2, 47, dtype=torch.float64)


def evaluate(coefficients, order):
    values = polynomial_values(EXPANSIONS["chebyshev"], EIGENVALUES, order)
    return coefficients.double() @ values[: coefficients.shape[1]]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    ("kernel", "degree", "n_scales"),
    [
        ("chebyshev", 20, 6),
        ("chebyshev", 0, 6),
        ("hermite", 30, 5),  # at 5 that is no kernel: its own limit is lower
        ("hermite", 1, 5),
        ("laguerre", 20, 6),
        ("laguerre", 0, 6),
    ],
)
def test_series_is_the_expansion_and_its_slope(kernel, degree, n_scales, dtype):
    scales = SCALES[:n_scales]
    values = polynomial_values(EXPANSIONS[kernel], EIGENVALUES, degree)
    c, dc = EXPANSIONS[kernel].coefficients(scales, degree)
    maker = ChebyshevSeries(kernel, degree, dtype=dtype)
    found, slopes = maker.truncated_coefs_and_slopes(scales)
    E = evaluate(found, maker.order)
    dE = (
        -EIGENVALUES * E
        if maker.has_exact_slope(scales)
        else evaluate(slopes, maker.order)
    )
    tolerance = 1e-12 if dtype == torch.float64 else 1e-6
    assert_allclose(E, c @ values, atol=tolerance, rtol=0)
    assert_allclose(dE, dc @ values, atol=10 * tolerance, rtol=0)


def test_exact_is_summed_to_the_working_precision_with_few_terms():
    truth = torch.exp(-SCALES[:, None] * EIGENVALUES)
    double, single = (
        ChebyshevSeries("exact", max_scale=5.0, dtype=dtype)
        for dtype in (torch.float64, torch.float32)
    )
    for maker, error in ((double, 1e-12), (single, 1.5e-8)):
        c, _ = maker.coefficients(SCALES)
        assert_allclose(evaluate(c, maker.order), truth, atol=error, rtol=0)
    assert single.order < double.order - 3
    assert (
        single.truncated_coefs_and_slopes(SCALES[1:3])[0].shape[1] < 0.6 * double.order
    )


def test_coefficients_that_are_kept_are_those_of_the_scales():
    series = ChebyshevSeries("chebyshev", 12, dtype=torch.float64)
    scale = torch.tensor([0.5, 2.0], dtype=torch.float64)
    first = series.truncated_coefs_and_slopes(scale)
    for kept, computed in zip(
        series.truncated_coefs_and_slopes(scale.clone()), first, strict=True
    ):
        assert kept is computed
    scale[1] = 3.0  # in place, as a training step changes scales
    fresh = ChebyshevSeries("chebyshev", 12, dtype=torch.float64)
    for kept, computed in zip(
        series.truncated_coefs_and_slopes(scale),
        fresh.truncated_coefs_and_slopes(scale),
        strict=True,
    ):
        assert_allclose(kept, computed, rtol=0, atol=0)
