"""Error bounds against 50-digit truth; degrees and trusted scales."""

import itertools

import mpmath
import numpy as np
import pytest
import torch

from brainlsap.exceptions import ParameterError
from brainlsap.graph import (
    EXPANSIONS,
    KERNELS,
    choose_degree,
    error_bound,
    largest_scale,
    polynomial_values,
)


def truncation_error(kernel: str, s: float, degree: int, lam: float) -> float:
    """|exp(-s lam) - sum c_n P_n(lam)| in 50 digits, from the paper's formulas."""
    with mpmath.workdps(50):
        s, lam = mpmath.mpf(s), mpmath.mpf(lam)
        total, before, now = mpmath.mpf(0), mpmath.mpf(0), mpmath.mpf(1)
        x = lam - 1
        power = mpmath.mpf(1)
        for n in range(degree + 1):
            if kernel == "chebyshev":
                weight = (1 if n == 0 else 2) * (-1) ** n * mpmath.exp(-s)
                total += weight * mpmath.besseli(n, s) * now
                before, now = now, (x if n == 0 else 2 * x) * now - before
            elif kernel == "hermite":
                total += power * mpmath.exp(s**2 / 4) * now
                power *= -s / (2 * (n + 1))
                before, now = now, 2 * lam * now - 2 * n * before
            else:
                total += power / (s + 1) * now
                power *= s / (s + 1)
                before, now = now, ((2 * n + 1 - lam) * now - n * before) / (n + 1)
        return float(abs(mpmath.exp(-s * lam) - total))


@pytest.mark.parametrize("kernel", sorted(EXPANSIONS))
def test_bound_holds_against_fifty_digits(kernel):
    rng = np.random.default_rng(7)
    for _ in range(150):
        s, lam = rng.uniform(0, 8), rng.uniform(0, 2)
        degree = int(rng.integers(0, 35))
        error = truncation_error(kernel, s, degree, lam)
        bound = error_bound(kernel, s, degree) + 1e-45  # the truth has 50 digits
        assert error <= bound * (1 + 1e-9), (s, degree, lam)


def test_chebyshev_bound_is_not_a_hundred_times_too_large():
    for s, degree in itertools.product([0.3, 1.0, 2.5, 4.0], [2, 6, 11, 20]):
        worst = max(
            truncation_error("chebyshev", s, degree, lam)
            for lam in np.linspace(0, 2, 17)
        )
        assert error_bound("chebyshev", s, degree) <= 100 * worst


@pytest.mark.parametrize("span", [1.2, 2.0, 2.6])
def test_bound_holds_for_other_spans(span):
    """Erratum 6: a span below the largest eigenvalue must enlarge the bound."""
    points = torch.linspace(0, 2, 65, dtype=torch.float64)
    for s, degree in [(2.0, 9), (6.0, 20), (10.0, 20)]:
        c, _ = EXPANSIONS["chebyshev"].coefficients(
            torch.tensor([s], dtype=torch.float64), degree, span
        )
        values = polynomial_values(EXPANSIONS["chebyshev"], points, degree, span)
        error = float(((c @ values)[0] - torch.exp(-s * points)).abs().max())
        assert error <= error_bound("chebyshev", s, degree, span=span) + 1e-14


def test_paper_span_is_as_wrong_as_measured():
    assert 1e-3 < error_bound("chebyshev", 6.0, 20, span=1.2) < 1e-1
    assert error_bound("chebyshev", 10.0, 20, span=1.2) > 10


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kernel", sorted(EXPANSIONS))
def test_rounding_term_covers_the_recurrence(kernel, dtype):
    points = torch.linspace(0, 2, 97, dtype=torch.float64)
    for s, degree in [(0.4, 12), (1.5, 30), (2.5, 40)]:
        values = polynomial_values(EXPANSIONS[kernel], points.to(dtype), degree)
        c, _ = EXPANSIONS[kernel].coefficients(
            torch.tensor([s], dtype=torch.float64), degree, 2.0
        )
        got = (c.to(dtype) @ values)[0].double()
        error = float((got - torch.exp(-s * points)).abs().max())
        assert error <= error_bound(kernel, s, degree, dtype=dtype)


def test_bound_grows_with_scale():
    for kernel in EXPANSIONS:
        bounds = [error_bound(kernel, s, 15) for s in np.linspace(0, 9, 19)]
        assert all(b <= a for b, a in itertools.pairwise(bounds))


def test_exact_kernel_leaves_only_rounding():
    assert error_bound("exact", 50.0) == 0.0
    assert 0 < error_bound("exact", 50.0, dtype=torch.float64) < 1e-14


@pytest.mark.parametrize("kernel", sorted(EXPANSIONS))
@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-7])
def test_chosen_degree_is_the_lowest_that_fits(kernel, tolerance):
    degree = choose_degree(kernel, 3.0, tolerance)
    assert error_bound(kernel, 3.0, degree, dtype=torch.float64) <= tolerance
    assert error_bound(kernel, 3.0, degree - 1) > tolerance


def test_largest_scale_is_the_edge_of_trust():
    for kernel, degree in [("chebyshev", 12), ("hermite", 30), ("laguerre", 20)]:
        edge = largest_scale(kernel, degree)
        assert error_bound(kernel, edge, degree) <= 1e-4
        assert error_bound(kernel, edge * 1.01, degree) > 1e-4
    assert largest_scale("exact") == 1000.0


def test_papers_hermite_degree_cannot_be_trusted_where_scales_go():
    assert largest_scale("hermite", 30) < 4


def test_bad_arguments_are_named():
    with pytest.raises(ParameterError, match=r"kernel must be one of .*got 'fourier'"):
        error_bound("fourier", 1.0, 3)
    with pytest.raises(ParameterError, match=r"scale must be at least 0.0, got -1"):
        error_bound("laguerre", -1.0, 3)
    with pytest.raises(ParameterError, match=r"degree is needed for the hermite"):
        error_bound("hermite", 1.0)
    with pytest.raises(ParameterError, match=r"degree must be at least 0, got -2"):
        error_bound("hermite", 1.0, -2)
    with pytest.raises(ParameterError, match=r"tolerance must lie between 0 and 1"):
        choose_degree("laguerre", 1.0, 0.0)
    with pytest.raises(ParameterError, match=r"hermite kernel cannot reach .* scale 9"):
        choose_degree("hermite", 9.0)
    with pytest.raises(ParameterError, match=r"kernel must be one of .*got 'exact'"):
        choose_degree("exact", 1.0)
    assert KERNELS == ("exact", "chebyshev", "hermite", "laguerre")


def test_of_several_scales_the_largest_counts():
    one = error_bound("laguerre", 3.0, 20)
    assert error_bound("laguerre", np.array([0.5, 3.0, 1.0]), 20) == one
    assert error_bound("laguerre", torch.tensor([3.0, 0.5]), 20) == one


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        (np.array([1.0, -0.5]), "scale must be at least 0.0, got -0.5"),
        (np.array([1.0, np.nan]), "scale must be at least 0.0, got nan"),
        (np.zeros(0), "scale must hold at least one number, got none"),
    ],
)
def test_scales_that_have_no_bound_are_refused(scale, message):
    with pytest.raises(ParameterError, match=message):
        error_bound("hermite", scale, 10)
