import pytest
import torch

from brainlsap.graph import EXPANSIONS
from brainlsap.graph.bounds import polynomial_values
from brainlsap.graph.rewriting import Rewriting

SCALES = torch.tensor([0.0, 0.03, 0.7, 1.9, 2.4, 5.0], dtype=torch.float64)
EIGENVALUES = torch.linspace(0, 2, 47, dtype=torch.float64)
# degree 20 for Hermite at scales of 5 is no kernel: its own limit is lower
CASES = [
    ("chebyshev", 20, 2.0, 6),
    ("chebyshev", 3, 2.0, 6),
    ("chebyshev", 8, 1.7, 6),
    ("chebyshev", 0, 2.0, 6),
    ("chebyshev", 1, 1.3, 6),
    ("hermite", 30, 2.0, 5),
    ("hermite", 1, 2.0, 5),
    ("laguerre", 20, 2.0, 6),
    ("laguerre", 0, 2.0, 6),
    ("laguerre", 7, 2.0, 6),
]


def evaluate(coefficients, order):
    values = polynomial_values(EXPANSIONS["chebyshev"], EIGENVALUES, order)
    return coefficients @ values[: coefficients.shape[1]]


def slow(kernel, degree, span, scales):
    values = polynomial_values(EXPANSIONS[kernel], EIGENVALUES, degree, span)
    c, dc = EXPANSIONS[kernel].coefficients(scales, degree, span)
    return c @ values, dc @ values


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("kernel", "degree", "span", "n_scales"), CASES)
def test_series_is_the_expansion_and_its_slope(kernel, degree, span, n_scales, dtype):
    scales = SCALES[:n_scales]
    truth, slope = slow(kernel, degree, span, scales)
    rewriting = Rewriting(kernel, degree, span)
    series = rewriting.series(scales, dtype)
    E = evaluate(series.coefficients.double(), rewriting.order)
    dE = -EIGENVALUES * E
    if not series.follows_eigenvalues:
        dE = evaluate(series.slopes.double(), rewriting.order)
    tolerance = 1e-12 if dtype == torch.float64 else 1e-6
    torch.testing.assert_close(E, truth, atol=tolerance, rtol=0)
    torch.testing.assert_close(dE, slope, atol=10 * tolerance, rtol=0)


def test_exact_is_interpolated_to_rounding():
    rewriting = Rewriting("exact", max_scale=5.0)
    series = rewriting.series(SCALES, torch.float64)
    E = evaluate(series.coefficients, rewriting.order)
    truth = torch.exp(-SCALES[:, None] * EIGENVALUES)
    torch.testing.assert_close(E, truth, atol=1e-12, rtol=0)


def test_exact_has_no_more_terms_than_the_working_precision_tells_apart():
    plain = Rewriting("exact", max_scale=5.0)
    single = Rewriting("exact", max_scale=5.0, dtype=torch.float32)
    assert single.order < plain.order - 3
    truth = torch.exp(-SCALES[:, None] * EIGENVALUES)
    c, _ = single.coefficients(SCALES)
    torch.testing.assert_close(evaluate(c, single.order), truth, atol=1.5e-8, rtol=0)


def test_a_series_made_before_serves_the_same_scales_and_precision_only():
    rewriting = Rewriting("laguerre", 20)
    first = rewriting.series(SCALES[:3], torch.float32)
    assert rewriting.series(SCALES[:3].clone(), torch.float32) is first
    moved = SCALES[:3].clone()
    for change in (lambda: None, lambda: moved.mul_(1.5)):
        change()
        for dtype in (torch.float64, torch.float32):
            found = rewriting.series(moved, dtype)
            fresh = Rewriting("laguerre", 20).series(moved, dtype)
            assert torch.equal(found.coefficients, fresh.coefficients)
            assert torch.equal(found.slopes, fresh.slopes)


def test_few_terms_are_kept_at_small_scales():
    rewriting = Rewriting("exact", max_scale=10.0)
    kept = rewriting.series(SCALES[1:4], torch.float32).coefficients.shape[1]
    assert kept < 0.6 * rewriting.order
    laguerre = Rewriting("laguerre", 20).series(SCALES[:2], torch.float32)
    assert laguerre.follows_eigenvalues


def test_a_remainder_that_counts_gives_the_slope_its_own_series():
    series = Rewriting("laguerre", 20).series(SCALES, torch.float32)
    assert not series.follows_eigenvalues
    assert series.slopes.shape[0] == 6
