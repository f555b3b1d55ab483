"""Coefficients, slopes and bounds against closed forms in 50 digits."""

import itertools

import mpmath
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import special

from brainlsap.exceptions import ParameterError
from brainlsap.graph import (
    EXPANSIONS,
    KERNELS,
    choose_degree,
    error_bound,
    heat_kernel,
    kernel_title,
    largest_scale,
    normalized_laplacian,
    polynomial_values,
)
from brainlsap.graph.kernels import Expansion, find_largest_accurate_scale, kernel_names

SCALES = torch.tensor([0.0, 1e-9, 0.04, 0.7, 2.0, 5.3], dtype=torch.float64)
POINTS = torch.linspace(0, 2, 65, dtype=torch.float64)
DEGREE = 11


PUBLISHED = ("chebyshev", "hermite", "laguerre")
"""Kernels of the paper or the docs; other tests run over all registered kernels."""


def taylor_coefficients(scale, degree):
    """Return e^-s (-s)^n / n! and its slope, of powers of lambda - 1."""
    s = scale.double()[:, None]
    order = torch.arange(1, degree + 1, dtype=torch.float64)
    powers = torch.cat([torch.ones_like(s), torch.cumprod(-s / order, 1)], dim=1)
    c = torch.exp(-s) * powers
    slope = -c.clone()
    slope[:, 1:] -= c[:, :-1]
    return c, slope


def taylor_at_zero_coefficients(scale, degree):
    """Return (-2 s)^n / n! and its slope, of powers of lambda / 2: terms cancel."""
    s = scale.double()[:, None]
    order = torch.arange(1, degree + 1, dtype=torch.float64)
    c = torch.cat([torch.ones_like(s), torch.cumprod(-2 * s / order, 1)], dim=1)
    slope = torch.zeros_like(c)
    slope[:, 1:] = -2 * c[:, :-1]
    return c, slope


def poisson_log_tail(scale, degree):
    """Return the log of the probability of more than `degree` events."""
    with np.errstate(divide="ignore"):
        return float(np.log(special.gammainc(degree + 1, scale)))


def exponential_log_tail(scale, degree):
    """Bound the terms beyond a degree at lambda = 2 by those of exp(2 s)."""
    return 2 * scale + poisson_log_tail(2 * scale, degree)


# A kernel of a third party, which every test of registered kernels runs over as well.
OWN = Expansion(
    "Own",
    taylor_coefficients,
    lambda degree: (np.ones(degree), -np.ones(degree), np.zeros(degree)),
    poisson_log_tail,
)
CANCELLING = Expansion(
    "Maclaurin",
    taylor_at_zero_coefficients,
    lambda degree: (np.full(degree, 0.5), np.zeros(degree), np.zeros(degree)),
    exponential_log_tail,
    max_scale=4.0,
)
REGISTERED = sorted({*EXPANSIONS, "own", "cancelling"})


@pytest.fixture(autouse=True)
def _own_kernels(monkeypatch):
    monkeypatch.setitem(EXPANSIONS, "own", OWN)
    monkeypatch.setitem(EXPANSIONS, "cancelling", CANCELLING)


def paper_coefficient(kernel: str, s: float, n: int) -> mpmath.mpf:
    """Return the coefficient as the paper, or the docs of a later kernel, print it."""
    s = mpmath.mpf(s)
    if kernel == "chebyshev":
        return (1 if n == 0 else 2) * (-1) ** n * mpmath.exp(-s) * mpmath.besseli(n, s)
    if kernel == "hermite":
        return (-s / 2) ** n / mpmath.factorial(n) * mpmath.exp(s**2 / 4)
    if kernel == "laguerre":
        return s**n / (s + 1) ** (n + 1)
    raise ValueError(kernel)


def paper_polynomials(kernel: str, x: float, degree: int) -> list:
    """Return the polynomials up to a degree as the paper prints their recurrence."""
    previous, current = mpmath.mpf(0), mpmath.mpf(1)
    polynomials = [current]
    for n in range(degree):
        if kernel == "chebyshev":
            following = (1 if n == 0 else 2) * (x - 1) * current - previous
        elif kernel == "hermite":
            following = 2 * x * current - 2 * n * previous
        elif kernel == "laguerre":
            following = ((2 * n + 1 - x) * current - n * previous) / (n + 1)
        else:
            raise ValueError(kernel)
        previous, current = current, following
        polynomials.append(current)
    return polynomials


def truncation_error(kernel: str, s: float, degree: int, x: float) -> float:
    """Return the error of a published expansion, from 50 digits."""
    with mpmath.workdps(50):
        s, x = mpmath.mpf(s), mpmath.mpf(x)
        values = paper_polynomials(kernel, x, degree)
        total = sum(paper_coefficient(kernel, s, n) * v for n, v in enumerate(values))
        return float(abs(mpmath.exp(-s * x) - total))


def norm(kernel: str, n: int) -> float:
    """Return what our Hermite coefficients are multiplied by."""
    return float(mpmath.sqrt(2**n * mpmath.factorial(n))) if kernel == "hermite" else 1


@pytest.mark.parametrize("kernel", REGISTERED)
def test_slopes_are_derivatives_of_the_coefficients(kernel):
    scales, step = torch.tensor([0.3, 1.1, 2.4], dtype=torch.float64), 1e-6
    c, slope = EXPANSIONS[kernel].coefficients(scales, DEGREE)
    above, _ = EXPANSIONS[kernel].coefficients(scales + step, DEGREE)
    below, _ = EXPANSIONS[kernel].coefficients(scales - step, DEGREE)
    assert c.dtype == slope.dtype == torch.float64
    assert c.shape == slope.shape == (3, DEGREE + 1)
    assert_allclose(slope, (above - below) / (2 * step), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kernel", REGISTERED)
def test_expansion_is_within_its_bound_of_the_exponential(kernel):
    for s, degree in itertools.product([0.0, 0.2, 1.0, 2.5], [0, 3, 10, 25]):
        scale = torch.tensor([s], dtype=torch.float64)
        c, _ = EXPANSIONS[kernel].coefficients(scale, degree)
        values = (c @ polynomial_values(EXPANSIONS[kernel], POINTS, degree))[0]
        error = float((values - torch.exp(-s * POINTS)).abs().max())
        assert error <= error_bound(kernel, s, degree, dtype=torch.float64), (s, degree)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kernel", REGISTERED)
def test_recurrence_is_right_wherever_it_is_allowed(kernel, dtype):
    """Every allowed scale, at the chosen degree and at the highest one."""
    expansion = EXPANSIONS[kernel]
    limit = min(find_largest_accurate_scale(kernel, dtype), 40.0)
    assert limit >= 1
    degree_values = {
        degree: polynomial_values(expansion, POINTS.to(dtype), degree)
        for degree in (100, 1000)
    }
    for s in (0.0, 1e-6, 0.1, *np.linspace(0.2, 1, 5) * limit):
        degrees = {choose_degree(kernel, s, 1e-3), 100, 1000}
        scale = torch.tensor([s], dtype=torch.float64)
        for degree in degrees:
            bound = error_bound(kernel, s, degree)
            c, slope = expansion.coefficients(scale, degree)
            values = degree_values.get(degree)
            if values is None:
                values = polynomial_values(expansion, POINTS.to(dtype), degree)
            assert torch.isfinite(slope).all()
            error = ((c.to(dtype) @ values)[0] - torch.exp(-s * POINTS)).abs().max()
            assert error <= bound + 2e-4, (s, degree)


@pytest.mark.parametrize("kernel", REGISTERED)
def test_models_may_use_every_scale_up_to_the_largest(kernel):
    max_scale = EXPANSIONS[kernel].max_scale
    degree = choose_degree(kernel, max_scale)
    assert largest_scale(kernel, degree) >= max_scale
    for s in np.linspace(0, max_scale, 9):
        c, _ = EXPANSIONS[kernel].coefficients(torch.tensor([s]), degree)
        values = (c @ polynomial_values(EXPANSIONS[kernel], POINTS, degree))[0]
        assert_allclose(values, torch.exp(-s * POINTS), atol=1e-4, rtol=0)


@pytest.mark.parametrize("kernel", REGISTERED)
def test_the_largest_scale_is_below_the_default_only_if_terms_cancel(kernel):
    max_scale = EXPANSIONS[kernel].max_scale
    default = Expansion.max_scale
    assert max_scale == default or (
        find_largest_accurate_scale(kernel, torch.float32) < default
    ), f"{kernel} is accurate at larger scales: remove max_scale={max_scale}"


@pytest.mark.parametrize("kernel", REGISTERED)
def test_the_chosen_degree_is_not_far_above_the_lowest_that_fits(kernel):
    """A bound that is too large makes every model slower."""
    max_scale = EXPANSIONS[kernel].max_scale
    degree = int(choose_degree(kernel, max_scale, 1e-4) / 1.2) - 1
    scale = torch.tensor([max_scale], dtype=torch.float64)
    c, _ = EXPANSIONS[kernel].coefficients(scale, degree)
    values = (c @ polynomial_values(EXPANSIONS[kernel], POINTS, degree))[0]
    assert (values - torch.exp(-max_scale * POINTS)).abs().max() > 1e-4


def test_a_kernel_whose_terms_cancel_is_refused_where_it_is_wrong():
    limit = find_largest_accurate_scale("cancelling", torch.float32)
    assert 1 < limit < 10
    L = normalized_laplacian(np.ones((3, 3)) - np.eye(3)).float()
    heat_kernel(L, 0.99 * limit, kernel="cancelling")
    with pytest.raises(
        ParameterError, match="recurrence in float32 is accurate only up to"
    ):
        heat_kernel(L, 1.5 * limit, kernel="cancelling")


def test_every_kernel_has_a_title_of_its_own():
    titles = [kernel_title(kernel) for kernel in kernel_names()]
    assert len(set(titles)) == len(EXPANSIONS) + 1
    assert {*KERNELS} < {*kernel_names()} == {"exact", *EXPANSIONS}
    assert kernel_title("chebyshev") == "a Chebyshev expansion of the heat kernel"


@pytest.mark.parametrize("kernel", PUBLISHED)
def test_coefficients_and_slopes_are_those_of_the_formulas(kernel):
    orders = range(DEGREE + 1)
    c, dc = EXPANSIONS[kernel].coefficients(SCALES, DEGREE)
    assert c.dtype == dc.dtype == torch.float64
    with mpmath.workdps(50):
        for row, s in enumerate(SCALES.tolist()):
            truth = [
                float(paper_coefficient(kernel, s, n) * norm(kernel, n)) for n in orders
            ]
            assert_allclose(c[row], truth, rtol=1e-12, atol=1e-300)
            if s < 0.01:
                continue
            slopes = [
                mpmath.diff(lambda t, n=n: paper_coefficient(kernel, t, n), s)
                for n in orders
            ]
            truth = [float(one * norm(kernel, n)) for n, one in enumerate(slopes)]
            assert_allclose(dc[row], truth, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("kernel", REGISTERED)
def test_slope_at_scale_zero_is_its_limit(kernel):
    # sum_n dc_n P_n(lambda) at s = 0 is d/ds exp(-s lambda) = -lambda
    _, slope = EXPANSIONS[kernel].coefficients(torch.zeros(1), DEGREE)
    values = polynomial_values(EXPANSIONS[kernel], POINTS, DEGREE)
    assert_allclose((slope @ values)[0], -POINTS, atol=1e-12)


@pytest.mark.parametrize("kernel", PUBLISHED)
def test_recurrence_makes_the_polynomials(kernel):
    points = POINTS[::8]
    got = polynomial_values(EXPANSIONS[kernel], points, 13)
    for column, x in enumerate(points.tolist()):
        truth = [
            float(v) / norm(kernel, n)
            for n, v in enumerate(paper_polynomials(kernel, x, 13))
        ]
        assert_allclose(got[:, column], truth, atol=1e-11)


def test_unshifted_chebyshev_recurrence_is_wrong():
    """Erratum 1: the coefficients belong to T_n(2 L / b - 1), not to T_n(L)."""
    c, _ = EXPANSIONS["chebyshev"].coefficients(torch.tensor([1.0]), 20)
    shifted = c @ polynomial_values(EXPANSIONS["chebyshev"], POINTS, 20)
    assert_allclose(shifted[0], torch.exp(-POINTS), atol=1e-14)
    unshifted = [special.eval_chebyt(n, POINTS.numpy() / 2) for n in range(21)]
    wrong = (c.numpy() @ np.stack(unshifted))[0]
    assert np.abs(wrong - np.exp(-POINTS.numpy())).max() > 0.1


@pytest.mark.parametrize("kernel", PUBLISHED)
def test_bound_holds_against_fifty_digits(kernel):
    rng = np.random.default_rng(7)
    for _ in range(60):
        s, x = rng.uniform(0, 8), rng.uniform(0, 2)
        degree = int(rng.integers(0, 35))
        bound = error_bound(kernel, s, degree) + 1e-45  # the truth has 50 digits
        error = truncation_error(kernel, s, degree, x)
        assert error <= bound * (1 + 1e-9), (s, degree, x)


def test_chebyshev_bound_is_not_a_hundred_times_too_large():
    for s, degree in itertools.product([0.3, 1.0, 2.5, 4.0], [2, 6, 11, 20]):
        errors = [
            truncation_error("chebyshev", s, degree, x) for x in np.linspace(0, 2, 9)
        ]
        assert error_bound("chebyshev", s, degree) <= 100 * max(errors)


def test_the_published_bound_is_as_wrong_as_measured():
    """Erratum 6: a b of 1.2 lies below the largest eigenvalue."""
    n, points = np.arange(21), POINTS.numpy()
    for s, error in ((6.0, 4e-3), (10.0, 19.0)):
        c = np.where(n, 2, 1) * (-1.0) ** n * special.ive(n, 0.6 * s)
        made = np.polynomial.chebyshev.chebval(2 * points / 1.2 - 1, c)
        wrong = np.abs(made - np.exp(-s * points)).max()
        assert wrong == pytest.approx(error, rel=0.1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kernel", REGISTERED)
def test_rounding_term_covers_the_recurrence(kernel, dtype):
    for s, degree in [(0.4, 12), (1.5, 30), (2.5, 40)]:
        values = polynomial_values(EXPANSIONS[kernel], POINTS.to(dtype), degree)
        c, _ = EXPANSIONS[kernel].coefficients(
            torch.tensor([s], dtype=torch.float64), degree
        )
        got = (c.to(dtype) @ values)[0].double()
        error = float((got - torch.exp(-s * POINTS)).abs().max())
        assert error <= error_bound(kernel, s, degree, dtype=dtype)
    assert 0 < error_bound("exact", 50.0, dtype=dtype) < 5 * torch.finfo(dtype).eps


@pytest.mark.parametrize("kernel", REGISTERED)
def test_bound_grows_with_scale_and_the_largest_counts(kernel):
    bounds = [error_bound(kernel, s, 15) for s in np.linspace(0, 9, 19)]
    assert all(b <= a for b, a in itertools.pairwise(bounds))
    one = error_bound(kernel, 3.0, 20)
    assert error_bound(kernel, np.array([0.5, 3.0, 1.0]), 20) == one
    assert error_bound(kernel, torch.tensor([3.0, 0.5]), 20) == one


@pytest.mark.parametrize("kernel", REGISTERED)
@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-7])
def test_chosen_degree_is_the_lowest_that_fits(kernel, tolerance):
    degree = choose_degree(kernel, 3.0, tolerance)
    assert error_bound(kernel, 3.0, degree, dtype=torch.float64) <= tolerance
    assert error_bound(kernel, 3.0, degree - 1) > tolerance


@pytest.mark.parametrize("kernel", REGISTERED)
def test_largest_scale_is_the_edge_of_trust(kernel):
    degree = choose_degree(kernel, 2.0)
    edge = largest_scale(kernel, degree)
    assert edge >= 2.0
    assert error_bound(kernel, edge, degree) <= 1e-4
    assert error_bound(kernel, edge * 1.01, degree) > 1e-4


def test_largest_scale_of_the_exact_and_of_the_published_kernel():
    assert largest_scale("exact") == 1000.0
    assert largest_scale("hermite", 30) < 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: error_bound("fourier", 1.0, 3), "kernel must be one of .*'fourier'"),
        (lambda: error_bound("laguerre", -1.0, 3), "at least 0.0; got -1"),
        (lambda: error_bound("hermite", np.array([1, np.nan]), 3), "got nan"),
        (lambda: error_bound("hermite", 1.0), "degree must be at least 0; got None"),
        (lambda: choose_degree("hermite", 9.0), "hermite kernel cannot reach .* 9"),
        (lambda: choose_degree("exact", 1.0), "kernel must be one of .*got 'exact'"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ParameterError, match=message):
        call()
