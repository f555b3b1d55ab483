"""Coefficients, derivatives and recurrences against closed forms and mpmath."""

import mpmath
import numpy as np
import pytest
import torch
from scipy import special

from brainlsap.graph import EXPANSIONS, polynomial_values
from brainlsap.graph.expansions import _scaled_bessel

SCALES = torch.tensor([0.0, 1e-9, 0.04, 0.7, 2.0, 5.3], dtype=torch.float64)
DEGREE = 11


def paper_coefficient(kernel: str, s: float, n: int) -> mpmath.mpf:
    """The formulas as the paper prints them, in 50 digits."""
    s = mpmath.mpf(s)
    if kernel == "chebyshev":
        return (1 if n == 0 else 2) * (-1) ** n * mpmath.exp(-s) * mpmath.besseli(n, s)
    if kernel == "hermite":
        return (-s / 2) ** n / mpmath.factorial(n) * mpmath.exp(s**2 / 4)
    return s**n / (s + 1) ** (n + 1)


def basis_weight(kernel: str, n: int) -> float:
    return float(mpmath.sqrt(2**n * mpmath.factorial(n))) if kernel == "hermite" else 1


@pytest.mark.parametrize("kernel", sorted(EXPANSIONS))
def test_coefficients_are_the_papers(kernel):
    with mpmath.workdps(50):
        expected = [
            [
                float(paper_coefficient(kernel, float(s), n) * basis_weight(kernel, n))
                for n in range(DEGREE + 1)
            ]
            for s in SCALES
        ]
    got, _ = EXPANSIONS[kernel].coefficients(SCALES, DEGREE, 2.0)
    assert got.dtype == torch.float64
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("kernel", sorted(EXPANSIONS))
def test_derivatives_are_those_of_the_coefficients(kernel):
    with mpmath.workdps(50):
        expected = [
            [
                float(
                    mpmath.diff(
                        lambda s, n=n: paper_coefficient(kernel, s, n),
                        mpmath.mpf(float(s)),
                    )
                    * basis_weight(kernel, n)
                )
                for n in range(DEGREE + 1)
            ]
            for s in SCALES[2:]
        ]
    _, got = EXPANSIONS[kernel].coefficients(SCALES[2:], DEGREE, 2.0)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("kernel", sorted(EXPANSIONS))
def test_derivative_at_scale_zero_is_its_limit(kernel):
    # sum_n dc_n P_n(lambda) at s = 0 is d/ds exp(-s lambda) = -lambda
    _, slope = EXPANSIONS[kernel].coefficients(torch.zeros(1), DEGREE, 2.0)
    points = torch.linspace(0, 2, 9, dtype=torch.float64)
    values = polynomial_values(EXPANSIONS[kernel], points, DEGREE)
    np.testing.assert_allclose((slope @ values)[0], -points, atol=1e-12)


def test_zeroth_chebyshev_slope_is_half_the_papers():
    """Erratum 2: the paper's dc_0/ds drops the factor 2 - delta_n0."""
    s, step = 1.3, 1e-6
    value = [float(np.exp(-t) * special.iv(0, t)) for t in (s - step, s + step)]
    numeric = (value[1] - value[0]) / (2 * step)
    _, slope = EXPANSIONS["chebyshev"].coefficients(torch.tensor([s]), 3, 2.0)
    assert float(slope[0, 0]) == pytest.approx(numeric, rel=1e-6)
    papers = 2 * np.exp(-s) * (special.iv(1, s) - special.iv(0, s))
    assert papers == pytest.approx(2 * numeric, rel=1e-6)


def test_doubled_zeroth_coefficient_is_not_a_heat_kernel():
    """Erratum 3: doubling c_0 adds exp(-z) I_0(z), 1 at scale 0."""
    c, _ = EXPANSIONS["chebyshev"].coefficients(
        torch.tensor([0.0, 0.1]).double(), 12, 2.0
    )
    values = polynomial_values(
        EXPANSIONS["chebyshev"], torch.tensor([0.0, 1.5], dtype=torch.float64), 12
    )
    doubled = c.clone()
    doubled[:, 0] *= 2
    excess = (doubled - c) @ values
    np.testing.assert_allclose(excess[0], 1.0)
    np.testing.assert_allclose(
        excess[1], special.ive(0, float(np.float32(0.1))), rtol=1e-12
    )


def test_unshifted_chebyshev_recurrence_is_wrong():
    """Erratum 1: the coefficients belong to T_n(2 L / b - 1), not to T_n(L)."""
    points = torch.linspace(0, 2, 9, dtype=torch.float64)
    c, _ = EXPANSIONS["chebyshev"].coefficients(torch.tensor([1.0]), 20, 2.0)
    shifted = c @ polynomial_values(EXPANSIONS["chebyshev"], points, 20)
    np.testing.assert_allclose(shifted[0], np.exp(-points.numpy()), atol=1e-14)
    unshifted = c.numpy() @ np.stack(
        [special.eval_chebyt(n, points.numpy() / 2) for n in range(21)]
    )
    assert np.abs(unshifted[0] - np.exp(-points.numpy())).max() > 0.1


@pytest.mark.parametrize(
    ("kernel", "truth"),
    [
        ("chebyshev", lambda n, x: special.eval_chebyt(n, x - 1)),
        ("laguerre", special.eval_laguerre),
        (
            "hermite",
            lambda n, x: (
                special.eval_hermite(n, x) / np.sqrt(2.0**n * special.factorial(n))
            ),
        ),
    ],
)
def test_recurrence_makes_the_polynomials(kernel, truth):
    points = torch.linspace(0, 2, 9, dtype=torch.float64)
    got = polynomial_values(EXPANSIONS[kernel], points, 13)
    for n in range(14):
        np.testing.assert_allclose(got[n], truth(n, points.numpy()), atol=1e-11)


def test_span_moves_the_chebyshev_interval():
    points = torch.linspace(0, 1.2, 7, dtype=torch.float64)
    c, _ = EXPANSIONS["chebyshev"].coefficients(torch.tensor([2.0]), 18, 1.2)
    values = polynomial_values(EXPANSIONS["chebyshev"], points, 18, span=1.2)
    np.testing.assert_allclose((c @ values)[0], torch.exp(-2 * points), atol=1e-13)


def test_bessel_values_hold_from_zero_to_large_arguments():
    z = torch.tensor([0.0, 1e-12, 0.5, 3.0, 30.0, 400.0], dtype=torch.float64)
    order = 43
    expected = special.ive(np.arange(order + 1)[None], z.numpy()[:, None])
    np.testing.assert_allclose(
        _scaled_bessel(z, order), expected, rtol=2e-12, atol=1e-280
    )
