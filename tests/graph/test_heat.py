"""Every kernel and both engines against the eigendecomposition."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import linalg, sparse

from brainlsap.exceptions import ParameterError
from brainlsap.graph import (
    EXPANSIONS,
    KERNELS,
    diffuse,
    error_bound,
    exact_heat_kernel,
    heat_kernel,
    largest_scale,
    normalized_laplacian,
)
from brainlsap.graph.kernels import find_largest_accurate_scale
from tests.graph.conftest import KINDS, dense_to_csr, draw_graph, find_degree

# unequal on purpose: equal scales hide a kernel that is transposed
SCALE = torch.tensor([0.3, 1.0, 2.5, 0.7, 1.9], dtype=torch.float64)


def draw_scale(n_rois: int, highest: float, seed: int = 3) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    scale = rng.uniform(0, highest, n_rois)
    scale[0], scale[-1] = 0.0, highest
    return torch.from_numpy(scale)


def test_exact_kernel_is_the_matrix_exponential(laplacian):
    K = exact_heat_kernel(laplacian, SCALE)
    for row, s in enumerate(SCALE):
        truth = linalg.expm(-float(s) * laplacian.numpy())
        assert_allclose(K[row], truth[row], atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_rois", [2, 13, 97])
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel_matches_eigendecomposition(kernel, n_rois, kind):
    L = normalized_laplacian(draw_graph(kind, n_rois))
    degree = find_degree(kernel)
    edge = min(largest_scale(kernel, degree, 1e-4), 6.0)
    scale = draw_scale(n_rois, edge)
    truth = exact_heat_kernel(L, scale)
    bound = error_bound(kernel, edge, degree)
    allowed = max(1e-12, error_bound(kernel, edge, degree, dtype=torch.float64))
    fast = heat_kernel(L, scale, kernel=kernel, degree=degree)
    assert_allclose(fast, truth, atol=allowed, rtol=0)
    # float32, up to where the recurrence may go in it
    single_limit = np.inf
    if kernel in EXPANSIONS:
        single_limit = find_largest_accurate_scale(kernel, torch.float32)
    single_edge = min(edge, single_limit)
    scale = draw_scale(n_rois, single_edge)
    fast = heat_kernel(L.float(), scale, kernel=kernel, degree=degree)
    assert fast.dtype == torch.float32
    truth = exact_heat_kernel(L, scale)
    assert_allclose(fast.double(), truth, atol=5e-6 + bound, rtol=0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_diffusion_gradients(laplacians, kernel):
    """Erratum 4: rows scaled forward and columns backward give its transpose."""
    rng = torch.Generator().manual_seed(1)
    X = torch.randn(5, 7, 2, generator=rng, dtype=torch.float64, requires_grad=True)
    scale = (draw_scale(7, 2.5) + 0.01).requires_grad_()
    given = {"kernel": kernel, "degree": find_degree(kernel)}
    assert torch.autograd.gradcheck(
        lambda x, s: diffuse(laplacians, x, s, **given), (X, scale), fast_mode=True
    )


def test_sparse_laplacian_diffuses_by_recurrence():
    W = draw_graph("binary", 29)
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.normal(size=(29, 4))).requires_grad_()
    scale = draw_scale(29, 3.0).requires_grad_()
    L = normalized_laplacian(sparse.csr_array(W))
    out = diffuse(L, X, scale, tolerance=1e-11)
    truth = exact_heat_kernel(normalized_laplacian(W), scale) @ X
    assert_allclose(out.detach(), truth.detach(), atol=1e-10)
    probe = torch.from_numpy(rng.normal(size=(29, 4)))
    got = torch.autograd.grad((out * probe).sum(), (X, scale))
    expected = torch.autograd.grad((truth * probe).sum(), (X, scale))
    for one, other in zip(got, expected, strict=True):
        assert_allclose(one, other, atol=1e-9)


def test_silently_wrong_kernels_are_refused(laplacian):
    with pytest.raises(
        ParameterError,
        match=r"hermite kernel of degree 30 can have an error of .* at scale 6",
    ):
        heat_kernel(laplacian, 6.0, kernel="hermite", degree=30)
    with pytest.raises(ParameterError, match=r"hermite recurrence in float32 .* 2.5"):
        heat_kernel(laplacian.float(), 3.0, kernel="hermite", degree=60)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kernel": "fourier"}, r"kernel must be one of .*got 'fourier'"),
        ({"L": torch.ones(5)}, r"L must have shape .* got shape \(5,\)"),
        ({"scale": SCALE[:3]}, r"scale must have shape \(5,\).*\(3,\)"),
        ({"scale": -SCALE}, "scale must be finite and not negative"),
        ({"X": torch.ones(4, 2)}, r"X must have shape .* got shape \(4, 2\)"),
        (
            {"X": torch.full((5, 2), torch.nan)},
            "X must be finite, but it contains NaN or inf",
        ),
    ],
)
def test_bad_arguments_are_named(laplacian, given, message):
    with pytest.raises(ParameterError, match=message):
        diffuse(**{"L": laplacian, "X": torch.eye(5), "scale": SCALE} | given)


def test_operators_of_any_kind_and_precision_agree(laplacian):
    L = laplacian.numpy()
    X = np.arange(10).reshape(5, 2)
    truth = exact_heat_kernel(L, 1.3) @ torch.from_numpy(X).double()
    kinds = (np.asarray, np.float32, torch.from_numpy, dense_to_csr)
    for kind in kinds:
        for signal in (X, X.astype(np.float32), X.astype(np.float16)):
            out = diffuse(kind(L), signal, 1.3)
            assert out.dtype in (torch.float32, torch.float64)
            assert_allclose(out, truth, atol=1e-3)
    out = diffuse(dense_to_csr(L), X, 1.3, kernel="exact")
    assert_allclose(out, truth, atol=1e-12)
