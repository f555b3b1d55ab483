"""The spectral engine's ways through a layer, each against the exact kernel."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from brainlsap.graph import (
    EXPANSIONS,
    KERNELS,
    SpectralEngine,
    Spectrum,
    decompose,
    exact_heat_kernel,
    normalized_laplacian,
    polynomial_values,
)
from brainlsap.graph.spectral import ChebyshevSeries

DEGREE = {"exact": None, "chebyshev": 22, "hermite": 44, "laguerre": 90}
N_GRAPHS, N_ROIS, N_CHANNELS = 5, 7, 3
# unequal on purpose: equal scales hide a kernel that is transposed
SCALE = torch.linspace(0.1, 2.4, N_ROIS, dtype=torch.float64)


@pytest.fixture
def stack(draw_graph):
    """Five graphs, one of them with an isolated region."""
    W = np.stack([draw_graph("weighted", N_ROIS, seed) for seed in range(N_GRAPHS)])
    W[1, 4] = W[1, :, 4] = 0.0
    return normalized_laplacian(W)


def draw_signals(n_items=N_GRAPHS, seed=1):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(n_items, N_ROIS, N_CHANNELS, generator=rng, dtype=torch.float64)


def make_engine(L, kernel, graph_of=None, *, dtype=torch.float64, chunk=2):
    return SpectralEngine(
        decompose(L),
        graph_of,
        kernel=kernel,
        degree=DEGREE[kernel],
        dtype=dtype,
        chunk=chunk,
    )


def ways(engine, H, scale):
    """Every way of diffusing constant signals."""
    hat = engine.to_spectrum(H)
    found = {
        "diffuse": engine.diffuse(H, scale),
        "spectrum": engine.diffuse_spectrum(hat, scale),
    }
    if engine.kernel != "exact":
        found["terms"] = engine.combine(engine.terms(hat), scale)
    return found


def slow(L, H, scale):
    return torch.stack(
        [exact_heat_kernel(one, scale) @ h for one, h in zip(L, H, strict=True)]
    )


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_way_is_the_exact_kernel(stack, kernel):
    H = draw_signals()
    for name, got in ways(make_engine(stack, kernel), H, SCALE).items():
        assert_allclose(got, slow(stack, H, SCALE), atol=1e-10, err_msg=name)
    # Hermite's terms cancel by four digits here; only rounding may be left
    single = make_engine(stack, kernel, dtype=torch.float32)
    got = single.diffuse(H.float(), SCALE.float())
    assert_allclose(got, slow(stack, H, SCALE), atol=3e-6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_one_graph_for_all_is_that_graph_for_each(stack, kernel):
    H = draw_signals(n_items=4)
    zeros = torch.zeros(4, dtype=torch.int64)
    shared = make_engine(stack[2:3], kernel, zeros)
    each = make_engine(stack, kernel, zeros + 2)
    assert shared.shared
    assert not each.shared
    truth = slow(stack[[2, 2, 2, 2]], H, SCALE)
    for engine in (shared, each):
        for name, got in ways(engine, H, SCALE).items():
            assert_allclose(got, truth, atol=1e-10, err_msg=name)


@pytest.mark.parametrize(
    "rows", [slice(None), slice(1, 4), torch.tensor([3, 2, 4]), torch.tensor([1])]
)
@pytest.mark.parametrize("graph_of", [None, torch.tensor([3, 0, 3, 1, 4, 2, 0])])
def test_items_find_their_graph_also_once_selected(stack, graph_of, rows):
    used = stack if graph_of is None else stack[graph_of]
    H = draw_signals(n_items=len(used))
    chosen = make_engine(stack, "chebyshev", graph_of).select(rows)
    truth = slow(used[rows], H[rows], SCALE)
    for name, got in ways(chosen, H[rows], SCALE).items():
        assert_allclose(got, truth, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("n_graphs", [1, N_GRAPHS])
def test_exact_first_layer_is_kept_up_to_a_known_scale(stack, n_graphs):
    L = stack[torch.arange(N_GRAPHS) % n_graphs]
    engine = SpectralEngine(
        decompose(stack[:n_graphs]),
        torch.arange(N_GRAPHS) % n_graphs,
        kernel="exact",
        max_scale=2.4,
        dtype=torch.float64,
        chunk=3,
    )
    H = draw_signals()
    terms = engine.terms(engine.to_spectrum(H))
    assert_allclose(engine.combine(terms, SCALE), slow(L, H, SCALE), atol=1e-11)
    assert_allclose(engine.diffuse(H, SCALE), slow(L, H, SCALE), atol=1e-12)
    scale = SCALE.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda s: engine.combine(terms, s), scale)


@pytest.mark.parametrize("n_graphs", [1, N_GRAPHS])
@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_of_every_way(stack, kernel, n_graphs):
    graph_of = torch.arange(N_GRAPHS) % n_graphs
    engine = make_engine(stack[:n_graphs], kernel, graph_of)
    H = draw_signals().requires_grad_()
    scale = SCALE.clone().requires_grad_()
    assert torch.autograd.gradcheck(engine.diffuse, (H, scale))
    hat = engine.to_spectrum(H.detach())
    assert torch.autograd.gradcheck(lambda s: engine.diffuse_spectrum(hat, s), scale)
    if kernel != "exact":
        terms = engine.terms(hat)
        assert torch.autograd.gradcheck(lambda s: engine.combine(terms, s), scale)


def test_gradient_of_signals_is_the_transposed_kernels(stack):
    """Erratum 4: once scales differ, K^T is not K."""
    H = draw_signals().requires_grad_()
    probe = draw_signals(seed=6)
    engine = make_engine(stack, "chebyshev")
    (engine.diffuse(H, SCALE) * probe).sum().backward()
    K = exact_heat_kernel(stack, SCALE)
    assert_allclose(H.grad, K.mT @ probe, atol=1e-10)
    assert (K.mT @ probe - K @ probe).abs().max() > 0.1


@pytest.mark.parametrize(
    ("dtype", "allowed"), [(torch.float64, 1e-10), (torch.float32, 1e-5)]
)
@pytest.mark.parametrize("kernel", KERNELS)
def test_other_chunks_agree(stack, kernel, dtype, allowed):
    H = draw_signals().to(dtype)
    found = []
    for chunk in (1, 3, 16):
        engine = make_engine(stack, kernel, dtype=dtype, chunk=chunk)
        signal = H.clone().requires_grad_()
        scale = SCALE.to(dtype, copy=True).requires_grad_()
        out = engine.diffuse(signal, scale)
        out.square().sum().backward()
        assert out.dtype == scale.grad.dtype == dtype
        found.append((out.detach(), signal.grad, scale.grad))
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            assert_allclose(one, two, rtol=0, atol=allowed * float(one.abs().max()))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize("kernel", KERNELS)
def test_cuda_agrees_with_the_cpu(stack, kernel):
    spectrum = decompose(stack)
    moved = Spectrum(spectrum.eigenvalues.cuda(), spectrum.eigenvectors.cuda())
    engine = SpectralEngine(
        moved, kernel=kernel, degree=DEGREE[kernel], dtype=torch.float64
    )
    H = draw_signals().cuda().requires_grad_()
    scale = SCALE.cuda().requires_grad_()
    for name, got in ways(engine, H.detach(), scale).items():
        truth = slow(stack, H.detach().cpu(), SCALE)
        assert_allclose(got.detach().cpu(), truth, atol=1e-10, err_msg=name)
    assert torch.autograd.gradcheck(engine.diffuse, (H, scale))


def test_items_and_graphs_are_on_the_device_of_the_spectrum():
    """Indices made on the CPU meet eigenvectors elsewhere; `meta` stands for a GPU."""
    spectrum = Spectrum(
        torch.empty(3, N_ROIS, dtype=torch.float64, device="meta"),
        torch.empty(3, N_ROIS, N_ROIS, device="meta"),
    )
    for graph_of in (None, torch.tensor([0, 2, 1, 1])):
        engine = SpectralEngine(spectrum, graph_of, kernel="exact")
        assert engine.graph_of.device.type == "meta"
        for items in (slice(1, 3), torch.tensor([2, 0])):
            chosen = engine.select(items)
            assert chosen.graph_of.device == chosen.vectors.device
            H = torch.empty(2, N_ROIS, N_CHANNELS, device="meta")
            scale = torch.empty(N_ROIS, device="meta")
            assert chosen.diffuse(H, scale).device.type == "meta"


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
    c, dc = EXPANSIONS[kernel].coefficients(scales, degree, 2.0)
    maker = ChebyshevSeries(kernel, degree)
    series = maker.at(scales, dtype)
    E = evaluate(series.coefficients, maker.order)
    dE = -EIGENVALUES * E
    if not series.follows_eigenvalues:
        dE = evaluate(series.slopes, maker.order)
    tolerance = 1e-12 if dtype == torch.float64 else 1e-6
    assert_allclose(E, c @ values, atol=tolerance, rtol=0)
    assert_allclose(dE, dc @ values, atol=10 * tolerance, rtol=0)


def test_exact_is_interpolated_to_the_working_precision_with_few_terms():
    truth = torch.exp(-SCALES[:, None] * EIGENVALUES)
    double = ChebyshevSeries("exact", max_scale=5.0)
    single = ChebyshevSeries("exact", max_scale=5.0, dtype=torch.float32)
    for maker, error in ((double, 1e-12), (single, 1.5e-8)):
        c, _ = maker.coefficients(SCALES)
        assert_allclose(evaluate(c, maker.order), truth, atol=error, rtol=0)
    assert single.order < double.order - 3
    few = double.at(SCALES[1:3], torch.float32).coefficients.shape[1]
    assert few < 0.6 * double.order
