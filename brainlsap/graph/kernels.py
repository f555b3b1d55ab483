r"""Heat kernels of a Laplacian: exact, as polynomials, and diffusion by a recurrence.

**Polynomials.** Every expansion writes :math:`e^{-s\lambda} = \sum_n c_n(s)
P_n(\lambda)` on the spectrum :math:`[0, 2]`, with polynomials of a three-term
recurrence

.. math:: P_{n+1} = (\alpha_n \lambda + \beta_n) P_n + \gamma_n P_{n-1},
          \quad P_{-1} = 0, \; P_0 = 1.

A new kernel is three functions and one entry of :data:`EXPANSIONS`; studies compare it
by name after one entry of `MODELS` in :mod:`brainlsap.evaluation.models` as well.
Formulas: Huang et al. 2020 and Sim et al. 2024. The docstring of each expansion gives
the errata of the latter.

**Recurrence engine.** It is for large sparse graphs. Forward, :math:`Y = \sum_n
\mathrm{diag}(c_n) P_n(L) H` runs the three-term recurrence and keeps two sums, for the
value and for its derivative with respect to scale. Backward, :math:`\sum_n P_n(L)
\mathrm{diag}(c_n) G` is one Clenshaw pass. Memory is O(n_rois x n_channels) whatever
the degree, and the kernel is never formed. The slow truth is
:func:`exact_heat_kernel`, from an eigendecomposition.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from brainlsap.exceptions import ParameterError, check_at_least, check_choice
from brainlsap.graph.laplacian import as_float_tensor, as_square_tensor, check_operator

Recurrence = tuple[np.ndarray, np.ndarray, np.ndarray]

# A search for a degree stops here without an answer.
_HIGHEST_DEGREE = 1000
# Searches for a scale stop here: at larger scales, the kernel of a network of a few
# hundred regions hardly changes.
_LARGEST_SCALE = 1000.0
# Largest error by rounding that a recurrence may have, as `tolerance` of `diffuse`.
_MAX_ROUNDING = 2e-4

# Largest truncation error of a degree that the user chose; beyond it, raise an error.
_REFUSED_ERROR = 1e-2


@dataclass(frozen=True)
class Expansion:
    """One way to expand the heat kernel.

    Attributes
    ----------
    title : str
        Name of the polynomials in text.
    coefficients : callable
        `(scale, degree) -> (c, dc)`: coefficients and their derivatives with
        respect to scale, float64 tensors of shape `(n_rois, degree + 1)`.
    recurrence : callable
        `degree -> (alpha, beta, gamma)`, each of shape `(degree,)`.
    log_tail : callable
        `(scale, degree) -> float`: log of a bound on the truncation error over
        `[0, 2]`.
    max_scale_by_dtype : dict
        Largest scale at which the recurrence may be run in each precision, whatever
        the degree, where it shall be lower than that of
        :func:`find_largest_accurate_scale`.
    max_scale : float
        Default limit of the scales of a model. On a brain network, the kernel has made
        the values of all regions nearly equal well before a scale of 10.
    """

    title: str
    coefficients: Callable[[Tensor, int], tuple[Tensor, Tensor]]
    recurrence: Callable[[int], Recurrence]
    log_tail: Callable[[float, int], float]
    max_scale_by_dtype: dict[torch.dtype, float] = field(default_factory=dict)
    max_scale: float = 10.0


def compute_scaled_bessel(z: Tensor, max_order: int) -> Tensor:
    r"""Return :math:`e^{-z} I_n(z)` for n = 0..max_order, one column each.

    The ratios :math:`I_n / I_{n-1} = z / (2n + z\, I_{n+1}/I_n)` are run downwards
    from a high order and normalised by :math:`e^{-z}(I_0 + 2\sum I_n) = 1`: only
    positive numbers are added, so every value is accurate, also at z = 0.
    """
    max_argument = float(z.max()) if z.numel() else 0.0
    # e^-z I_n(z) falls about as exp(-n^2 / 2z), to e^-40 at n = sqrt(80 z). The other
    # terms are a margin, because it falls more slowly where n is not small against z.
    start_order = (
        max(max_order, int(np.sqrt(80.0 * max_argument) + max_argument / 4)) + 16
    )
    # NumPy's operations on few numbers cost a fraction of those of PyTorch.
    arguments = z.numpy(force=True)
    order_ratio_matrix = np.empty((len(arguments), start_order))
    single_order_ratios = np.zeros_like(arguments)
    for n in range(start_order, 0, -1):
        single_order_ratios = arguments / (2 * n + arguments * single_order_ratios)
        order_ratio_matrix[:, n - 1] = single_order_ratios
    ratios_to_order_zero = torch.cumprod(
        torch.from_numpy(order_ratio_matrix).to(z.device), dim=1
    )
    order_zero_values = 1.0 / (
        1.0 + 2.0 * ratios_to_order_zero.sum(dim=1, keepdim=True)
    )
    return torch.cat(
        [order_zero_values, order_zero_values * ratios_to_order_zero[:, :max_order]],
        dim=1,
    )


def _chebyshev_coefs_and_slopes(
    region_scales: Tensor, degree: int
) -> tuple[Tensor, Tensor]:
    r"""Return coefficients of :math:`T_n(\lambda - 1)` and their slopes.

    .. math::
        c_n = (2 - \delta_{n0}) (-1)^n e^{-s} I_n(s), \quad
        \frac{dc_n}{ds} = (2 - \delta_{n0}) (-1)^n e^{-s}
        \left[\frac{I_{n-1} + I_{n+1}}{2} - I_n\right]

    No sum halves its first term: the factor :math:`2 - \delta_{n0}` is in
    :math:`c_n`. (The paper's recurrence has :math:`L` where :math:`L - I` is meant, and
    its :math:`dc_0/ds` is twice the true value; the authors' code doubles :math:`c_0`
    as well. The paper's b, the assumed largest eigenvalue, is 2 here: at eigenvalues
    above b the polynomials would grow without bound.)
    """
    bessel_values = compute_scaled_bessel(region_scales.double(), degree + 1)
    previous_order_values = torch.cat(
        [bessel_values[:, 1:2], bessel_values[:, :degree]], dim=1
    )
    alternating_signs = torch.ones(
        degree + 1, dtype=torch.float64, device=bessel_values.device
    )
    alternating_signs[1::2] = -1.0
    alternating_signs[1:] *= 2.0
    bessel_slopes = (previous_order_values + bessel_values[:, 1:]) / 2 - bessel_values[
        :, :-1
    ]
    return alternating_signs * bessel_values[
        :, :-1
    ] + 0.0, alternating_signs * bessel_slopes + 0.0  # no -0.0


def _chebyshev_recurrence(degree: int) -> Recurrence:
    alphas, betas = np.full(degree, 2.0), np.full(degree, -2.0)
    alphas[:1], betas[:1] = 1.0, -1.0
    return alphas, betas, np.full(degree, -1.0)


def _chebyshev_log_tail(scale: float, degree: int) -> float:
    """Sum the coefficients left out: no |T_n| is above 1 on the spectrum."""
    s = torch.tensor([scale], dtype=torch.float64)
    bessel_values = compute_scaled_bessel(s, degree + 60 + int(2 * scale))[
        0, degree + 1 :
    ]
    with np.errstate(divide="ignore"):
        return float(np.logaddexp.reduce(np.log(2.0 * bessel_values.numpy())))


def _hermite_coefs_and_slopes(
    region_scales: Tensor, degree: int
) -> tuple[Tensor, Tensor]:
    r"""Return coefficients of the physicists' :math:`H_n(\lambda)` and their slopes.

    .. math::
        c_n = \frac{(-s/2)^n}{n!} e^{s^2/4}, \qquad
        \frac{dc_n}{ds} = c_n \left(\frac{n}{s} + \frac{s}{2}\right)

    Both are returned times :math:`\sqrt{2^n n!}`, and the recurrence makes
    :math:`H_n / \sqrt{2^n n!}`: the same sum, without the overflow of either factor.
    At s = 0 the slope is its limit.
    """
    s = region_scales.double()
    polynomial_orders = torch.arange(
        1, degree + 1, dtype=torch.float64, device=s.device
    )
    term_ratios = -s[:, None] / torch.sqrt(2.0 * polynomial_orders)
    scale_powers = torch.cat(
        [torch.ones_like(s)[:, None], torch.cumprod(term_ratios, 1)], dim=1
    )
    c = scale_powers * torch.exp(s**2 / 4)[:, None]
    dc = c * (s / 2)[:, None]
    dc[:, 1:] -= torch.sqrt(polynomial_orders / 2.0) * c[:, :-1]
    return c + 0.0, dc


def _hermite_recurrence(degree: int) -> Recurrence:
    n = np.arange(degree, dtype=np.float64)
    return np.sqrt(2.0 / (n + 1)), np.zeros(degree), -np.sqrt(n / (n + 1))


def _hermite_log_tail(scale: float, degree: int) -> float:
    """Sum the terms left out, each by Cramer's bound.

    |H_n(x)| <= 1.086435 sqrt(2^n n!) exp(x^2 / 2) (Abramowitz and Stegun 22.14.17). At
    x = 2 the exponential is e^2. Terms fall from n = s^2 / 2; 200 + 2 s^2 are summed.
    """
    if scale == 0:
        return -np.inf
    omitted_orders = np.arange(degree + 1, degree + 201 + int(2 * scale**2))
    log_factorials = np.cumsum(np.log(np.maximum(np.arange(omitted_orders[-1] + 1), 1)))
    log_terms = (
        omitted_orders * np.log(scale / np.sqrt(2.0))
        - log_factorials[omitted_orders] / 2
    )
    log_sum = float(np.logaddexp.reduce(log_terms))
    return log_sum + np.log(1.086435) + 2.0 + scale**2 / 4


def _laguerre_coefs_and_slopes(
    region_scales: Tensor, degree: int
) -> tuple[Tensor, Tensor]:
    r"""Return coefficients of :math:`L_n(\lambda)` and their slopes.

    .. math::
        c_n = \frac{s^n}{(s+1)^{n+1}}, \qquad
        \frac{dc_n}{ds} = \frac{s^{n-1} (n - s)}{(s+1)^{n+2}}
    """
    s = region_scales.double()[:, None]
    polynomial_orders = torch.arange(degree + 1, dtype=torch.float64, device=s.device)
    ratio_powers = (s / (s + 1)) ** polynomial_orders
    # n r^(n-1), written so that n = 0 needs no power -1 of zero
    power_slopes = polynomial_orders * torch.cat(
        [torch.zeros_like(s), ratio_powers[:, :-1]], dim=1
    )
    return ratio_powers / (s + 1), (power_slopes / (s + 1) - ratio_powers) / (
        s + 1
    ) ** 2


def _laguerre_recurrence(degree: int) -> Recurrence:
    n = np.arange(degree, dtype=np.float64)
    return -1 / (n + 1), (2 * n + 1) / (n + 1), -n / (n + 1)


def _laguerre_log_tail(scale: float, degree: int) -> float:
    """Sum the terms left out, a geometric series.

    |L_n(x)| <= exp(x / 2), at most e on the spectrum (A. and S. 22.14.12).
    """
    with np.errstate(divide="ignore"):
        return float((degree + 1) * np.log(scale / (scale + 1)) + 1.0)


EXPANSIONS = {
    "chebyshev": Expansion(
        "Chebyshev",
        _chebyshev_coefs_and_slopes,
        _chebyshev_recurrence,
        _chebyshev_log_tail,
    ),
    "hermite": Expansion(
        "Hermite",
        _hermite_coefs_and_slopes,
        _hermite_recurrence,
        _hermite_log_tail,
        max_scale_by_dtype={torch.float32: 2.5, torch.float64: 6.0},
        max_scale=5.0,  # beyond, its terms cancel ever worse
    ),
    "laguerre": Expansion(
        "Laguerre", _laguerre_coefs_and_slopes, _laguerre_recurrence, _laguerre_log_tail
    ),
}
"""The expansions by name. A further one is one more entry."""

KERNELS = ("exact", *EXPANSIONS)
"""Kernels that come with the package; `kernel_names` adds those registered later."""


def kernel_names() -> tuple[str, ...]:
    """Return the names of all kernels that are registered now."""
    return ("exact", *EXPANSIONS)


def kernel_title(kernel: str) -> str:
    """Return the name of a kernel in text, also if the kernel is not registered."""
    if kernel == "exact":
        return "the exact heat kernel, from eigenvectors"
    if kernel not in EXPANSIONS:
        return f"the heat kernel {kernel}"
    polynomial_title = EXPANSIONS[kernel].title
    indefinite_article = "an" if polynomial_title[0] in "AEIOU" else "a"
    return f"{indefinite_article} {polynomial_title} expansion of the heat kernel"


def polynomial_values(expansion: Expansion, eigenvalues: Tensor, degree: int) -> Tensor:
    """Evaluate every polynomial up to `degree` at every eigenvalue.

    Parameters
    ----------
    expansion : Expansion
        One of `EXPANSIONS`.
    eigenvalues : Tensor of shape (..., n_rois)
        Points of evaluation; float64 keeps the result exact to rounding.
    degree : int
        Highest degree.

    Returns
    -------
    Tensor of shape (..., degree + 1, n_rois)
    """
    alphas, betas, gammas = expansion.recurrence(degree)
    previous_polynomial = torch.zeros_like(eigenvalues)
    current_polynomial = torch.ones_like(eigenvalues)
    polynomials = [current_polynomial]
    for a, b, c in zip(alphas, betas, gammas, strict=True):
        previous_polynomial, current_polynomial = (
            current_polynomial,
            (float(a) * eigenvalues + float(b)) * current_polynomial
            + float(c) * previous_polynomial,
        )
        polynomials.append(current_polynomial)
    return torch.stack(polynomials, dim=-2)


@lru_cache(maxsize=32)  # a search for a scale asks for one degree many times
def _compute_absolute_polynomials(kernel: str, degree: int) -> Tensor:
    """Return absolute polynomials on the spectrum, shape (degree + 1, 65)."""
    test_eigenvalues = torch.linspace(0, 2, 65, dtype=torch.float64)
    return polynomial_values(EXPANSIONS[kernel], test_eigenvalues, degree).abs()


@lru_cache(maxsize=4096)
def _compute_rounding_error_factor(kernel: str, scale: float, degree: int) -> float:
    """Return eight times the largest sum of absolute terms on the spectrum."""
    absolute_polynomials = _compute_absolute_polynomials(kernel, degree)
    s = torch.tensor([scale], dtype=torch.float64)
    c, _ = EXPANSIONS[kernel].coefficients(s, degree)
    return float(8 * (c[0].abs() @ absolute_polynomials).max())


def error_bound(
    kernel: str,
    scale: float | np.ndarray | Tensor,
    degree: int | None = None,
    *,
    dtype: torch.dtype | None = None,
) -> float:
    r"""Bound the error of a heat kernel's expansion.

    The largest :math:`|e^{-s\lambda} - \sum_{n \le m} c_n P_n(\lambda)|` over
    :math:`\lambda \in [0, 2]` is at most the sum of the terms left out:
    for Chebyshev that of :math:`|c_n|`, which the error reaches at :math:`\lambda = 0`;
    for Hermite by Cramer's inequality; for Laguerre the geometric tail
    :math:`e (s/(s+1))^{m+1}`.
    This sum grows with scale, so that at the largest scale it holds for all. Because
    :math:`L` is symmetric it bounds every entry of the kernel's error, also for one
    scale per region.

    Parameters
    ----------
    kernel : str
        A key of `EXPANSIONS`, or `exact`.
    scale : float, array or Tensor
        Heat scale, dimensionless, not negative; of several the largest counts.
    degree : int or None
        Degree of the expansion; None for `exact`.
    dtype : torch.dtype or None
        If given, a rounding term is added: eight units of this precision times
        the largest sum of absolute terms. It is calibrated, not proven.

    Returns
    -------
    float
        The bound; infinite where it overflows.

    Raises
    ------
    ParameterError
        For an unknown kernel, a negative scale or a degree below 0.

    Examples
    --------
    >>> error_bound("chebyshev", scale=4.0, degree=20) < 1e-14
    True
    >>> error_bound("hermite", scale=6.0, degree=30) > 1e6
    True
    """
    check_choice("kernel", kernel, kernel_names())
    scales = torch.as_tensor(scale, dtype=torch.float64).detach()
    max_scale = float(scales.max())
    for extreme_scale in (float(scales.min()), max_scale):  # NaN is both
        check_at_least("scale", extreme_scale, 0.0)
    rounding_unit = 0.0 if dtype is None else torch.finfo(dtype).eps / 2
    if kernel == "exact":
        return 8 * rounding_unit
    check_at_least("degree", degree, 0)
    expansion_degree = int(degree or 0)
    with np.errstate(over="ignore"):
        truncation_error = float(
            np.exp(EXPANSIONS[kernel].log_tail(max_scale, expansion_degree))
        )
    if rounding_unit:
        truncation_error += rounding_unit * _compute_rounding_error_factor(
            kernel, max_scale, expansion_degree
        )
    return truncation_error


@lru_cache(maxsize=256)  # every fit of a study has the same limits
def choose_degree(kernel: str, max_scale: float, tolerance: float = 1e-4) -> int:
    """Return the lowest degree whose error stays within a tolerance.

    Parameters
    ----------
    kernel : str
        A key of `EXPANSIONS`.
    max_scale : float
        Largest scale that must be trusted.
    tolerance : float
        Largest error of the kernel's response, whose largest value is 1.

    Returns
    -------
    int
        The degree.

    Raises
    ------
    ParameterError
        If no degree up to 1,000 does.

    Examples
    --------
    >>> choose_degree("chebyshev", 10.0), choose_degree("laguerre", 2.0)
    (13, 25)
    """
    check_choice("kernel", kernel, tuple(EXPANSIONS))

    def is_within_tolerance(degree: int) -> bool:
        return error_bound(kernel, max_scale, degree, dtype=torch.float64) <= tolerance

    degree = bisect_left(range(_HIGHEST_DEGREE + 1), True, key=is_within_tolerance)
    if degree > _HIGHEST_DEGREE:
        raise ParameterError(
            f"the {kernel} kernel cannot reach the tolerance {tolerance:g} at scale "
            f"{max_scale:g}. Use the chebyshev kernel, a smaller scale or a larger "
            "tolerance."
        )
    return degree


@lru_cache(maxsize=64)
def find_largest_accurate_scale(kernel: str, dtype: torch.dtype) -> float:
    """Return the largest scale at which a recurrence is right in a precision.

    If terms of opposite sign cancel, rounding errors grow with scale. The limit
    holds for every degree; it is infinite if terms never cancel by that much.

    Parameters
    ----------
    kernel : str
        One of :data:`EXPANSIONS`.
    dtype : torch.dtype
        Precision of the signals.

    Examples
    --------
    >>> find_largest_accurate_scale("hermite", torch.float32)
    2.5
    >>> find_largest_accurate_scale("chebyshev", torch.float32)
    inf
    """
    rounding_unit = torch.finfo(dtype).eps / 2

    def is_within_tolerance(scale: float) -> bool:
        rounding_error_factor = _compute_rounding_error_factor(
            kernel, scale, _HIGHEST_DEGREE
        )
        return rounding_unit * rounding_error_factor <= _MAX_ROUNDING

    computed_max_scale = _bisect_largest_scale(is_within_tolerance)
    if computed_max_scale == _LARGEST_SCALE:
        computed_max_scale = np.inf
    declared_max_scale = EXPANSIONS[kernel].max_scale_by_dtype.get(dtype, np.inf)
    return min(computed_max_scale, declared_max_scale)


def _bisect_largest_scale(is_accurate_scale: Callable[[float], bool]) -> float:
    """Return the largest scale, at most `_LARGEST_SCALE`, up to which a test holds."""
    if is_accurate_scale(_LARGEST_SCALE):
        return _LARGEST_SCALE
    lower_scale, upper_scale = 0.0, _LARGEST_SCALE
    while upper_scale - lower_scale > 1e-6 * upper_scale:
        middle_scale = (lower_scale + upper_scale) / 2
        if is_accurate_scale(middle_scale):
            lower_scale = middle_scale
        else:
            upper_scale = middle_scale
    return lower_scale


@lru_cache(maxsize=256)
def largest_scale(
    kernel: str, degree: int | None = None, tolerance: float = 1e-4
) -> float:
    """Return the largest scale at which a kernel of this degree can be trusted.

    Parameters
    ----------
    kernel : str
        A key of `EXPANSIONS`, or `exact`.
    degree : int or None
        Its degree; None for `exact`.
    tolerance : float
        Error that is still trusted, summed in float64 as the spectral engine does.

    Returns
    -------
    float
        Scale; at most 1,000, which stands for "no limit".

    Examples
    --------
    >>> round(largest_scale("hermite", 30), 1), largest_scale("exact")
    (3.1, 1000.0)
    """

    def is_within_tolerance(scale: float) -> bool:
        return error_bound(kernel, scale, degree, dtype=torch.float64) <= tolerance

    return _bisect_largest_scale(is_within_tolerance)


def exact_heat_kernel(L: Tensor | np.ndarray, scale: Tensor | float) -> Tensor:
    r"""Return the exact heat kernel from an eigendecomposition, slowly.

    .. math:: K_{pq} = \sum_i e^{-s_p \lambda_i} u_i[p] u_i[q]

    Row p belongs to region p and to its own scale, so K is not symmetric where
    scales differ. Written as plainly as it reads, in float64; every fast path is
    tested against it.

    Parameters
    ----------
    L : Tensor or array of shape (..., n_rois, n_rois)
        Normalised Laplacian, dense.
    scale : Tensor of shape (n_rois,) or float
        Heat scale of every region, dimensionless; 0 means no diffusion.

    Returns
    -------
    Tensor of shape (..., n_rois, n_rois)
        In float64; differentiable with respect to `scale`.

    Raises
    ------
    ParameterError
        For shapes that do not fit, negative or non-finite scales.

    Examples
    --------
    >>> L = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
    >>> exact_heat_kernel(L, 0.5).round(decimals=4).tolist()
    [[0.6839, 0.3161], [0.3161, 0.6839]]
    """
    L, scale = _as_operator_and_scales(L, scale)
    check_operator(L)
    eigenvalues, U = torch.linalg.eigh(L.to_dense().double())
    spectral_response = torch.exp(-scale.double()[:, None] * eigenvalues[..., None, :])
    return (U * spectral_response) @ U.mT


def heat_kernel(
    L: Tensor | np.ndarray, scale: Tensor | float, **diffuse_options: Any
) -> Tensor:
    r"""Return the heat kernel :math:`\sum_n \mathrm{diag}(c_n(s)) P_n(L)`.

    Parameters
    ----------
    L : Tensor or array of shape (..., n_rois, n_rois)
        Normalised Laplacian, symmetric, with spectrum in [0, 2].
    scale : Tensor of shape (n_rois,) or float
        Heat scale of every region; row p of the kernel is row p of
        :math:`e^{-s_p L}`. Dimensionless, not negative.
    **diffuse_options
        `kernel`, `degree` and `tolerance` of :func:`diffuse`.

    Returns
    -------
    Tensor of shape (..., n_rois, n_rois)
        In the precision of `L`; differentiable with respect to `scale`.

    Examples
    --------
    >>> L = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
    >>> heat_kernel(L, torch.tensor([0.5, 0.0]))
    tensor([[0.68..., 0.31...],
            [0.0000, 1.0000]])
    """
    L = as_square_tensor(L)
    identity_matrix = torch.eye(L.shape[-1], dtype=L.dtype, device=L.device).expand(
        L.shape
    )
    return diffuse(L, identity_matrix, scale, **diffuse_options)


def diffuse(
    L: Tensor | np.ndarray,
    X: Tensor | np.ndarray,
    scale: Tensor | float,
    *,
    kernel: str = "chebyshev",
    degree: int | None = None,
    tolerance: float = 1e-4,
) -> Tensor:
    """Diffuse signals on regions by the heat kernel.

    The exact kernel is made by eigenvectors, an expansion by its recurrence
    (:func:`diffuse_recurrence`), which keeps no kernel.

    Parameters
    ----------
    L : Tensor or array of shape (..., n_rois, n_rois)
        Normalised Laplacian; dense with any leading axes, or one sparse CSR.
    X : Tensor or array of shape (..., n_rois, n_channels)
        Signals.
    scale : Tensor of shape (n_rois,) or float
        Heat scale of every region, dimensionless, not negative.
    kernel : str
        A key of `EXPANSIONS`, or `exact`, which uses eigenvectors.
    degree : int or None
        Degree of the expansion. None chooses the lowest that keeps `tolerance`
        at the largest scale.
    tolerance : float
        Largest error of the kernel, whose eigenvalues never exceed 1. Not used
        where `degree` is given: that degree's own error holds then, and above
        0.01 the kernel is refused.

    Returns
    -------
    Tensor of shape (..., n_rois, n_channels)
        In the higher precision of `L` and `X`, float32 at least. Differentiable with
        respect to `X` and `scale`.

    Raises
    ------
    ParameterError
        For an unknown kernel, shapes that do not fit, negative scales, or scales that
        the kernel cannot reach with this degree; or if `L` is not symmetric or has
        eigenvalues outside 0 to 2.

    Examples
    --------
    >>> L = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
    >>> diffuse(L, torch.tensor([[1.0], [0.0]]), 0.5)
    tensor([[0.68...],
            [0.31...]])
    """
    L, scale = _as_operator_and_scales(L, scale)
    X = as_float_tensor(X).to(L.device)
    dtype = torch.promote_types(L.dtype, X.dtype)
    L, X = L.to(dtype), X.to(dtype)
    if X.ndim != L.ndim or X.shape[:-1] != L.shape[:-1]:
        raise ParameterError(
            "X must have shape (..., n_rois, n_channels) with as many regions as L "
            f"of shape {tuple(L.shape)}; got shape {tuple(X.shape)}."
        )
    if not bool(torch.isfinite(X).all()):
        raise ParameterError(
            "X must be finite, but it contains NaN or infinite values. Replace these "
            "values."
        )
    check_choice("kernel", kernel, kernel_names())
    if kernel == "exact":
        return exact_heat_kernel(L, scale).to(dtype) @ X
    max_scale = float(scale.detach().max())
    if degree is None:
        degree = choose_degree(kernel, max_scale, tolerance)
    kernel_error_bound = error_bound(kernel, max_scale, degree)
    if kernel_error_bound > _REFUSED_ERROR:
        raise ParameterError(
            f"the {kernel} kernel of degree {degree} can have an error of "
            f"{kernel_error_bound:.2g} at scale {max_scale:g}. Use a higher degree, or "
            "the chebyshev kernel."
        )
    check_operator(L)
    max_recurrence_scale = find_largest_accurate_scale(kernel, dtype)
    if max_scale > max_recurrence_scale:
        raise ParameterError(
            f"the {kernel} recurrence in {str(dtype).removeprefix('torch.')} is "
            f"accurate only up to scale {max_recurrence_scale:.3g}; got "
            f"{max_scale:g}. Use the chebyshev kernel."
        )
    return diffuse_recurrence(L, X, scale, kernel, degree)


def _as_operator_and_scales(
    L: Tensor | np.ndarray, scale: Tensor | float | np.ndarray
) -> tuple[Tensor, Tensor]:
    """Return both as Tensors, one scale for every region."""
    L = as_square_tensor(L)
    scale = as_float_tensor(scale).to(L.device)
    if scale.shape not in ((), L.shape[-1:]):
        scale_shape = tuple(scale.shape)
        raise ParameterError(
            f"scale must have shape {(L.shape[-1],)}; got shape {scale_shape}."
        )
    scale = scale.expand(L.shape[-1])
    if not (bool((scale >= 0).all()) and bool(torch.isfinite(scale).all())):
        raise ParameterError(
            "scale must be finite and not negative; its smallest value is "
            f"{float(scale.detach().min()):g}."
        )
    return L, scale


def diffuse_recurrence(
    L: Tensor, H: Tensor, scale: Tensor, kernel: str, degree: int
) -> Tensor:
    """Diffuse signals over one graph by recurrence; differentiable.

    Parameters
    ----------
    L : Tensor of shape (..., n_rois, n_rois)
        Normalised Laplacian, dense (any leading axes) or sparse CSR; constant.
    H : Tensor of shape (..., n_rois, n_channels)
        Signals on the regions, in the precision of `L`.
    scale : Tensor of shape (n_rois,)
        Heat scale of every region.
    kernel : str
        A key of `EXPANSIONS`.
    degree : int
        Its degree; the caller has checked that the scales can be trusted.

    Returns
    -------
    Tensor of shape (..., n_rois, n_channels)
    """
    return _RecurrenceDiffusion.apply(H, scale, L, kernel, degree)  # type: ignore[no-any-return]


class _RecurrenceDiffusion(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, H: Tensor, region_scales: Tensor, L: Tensor, kernel: str, degree: int
    ) -> Tensor:
        expansion = EXPANSIONS[kernel]
        coefficients_and_slopes = expansion.coefficients(region_scales.detach(), degree)
        c, dc = (coefficients.to(H.dtype) for coefficients in coefficients_and_slopes)
        recurrence_weight_arrays = expansion.recurrence(degree)
        needs_slope = ctx.needs_input_grad[1]
        previous_term, current_term = torch.zeros_like(H), H
        Y = c[:, :1] * H
        scale_slopes = dc[:, :1] * H if needs_slope else H[:0]
        for n, recurrence_weights in enumerate(
            zip(*recurrence_weight_arrays, strict=True), start=1
        ):
            # Do not overwrite the input.
            output_buffer = (
                previous_term if previous_term is not H else torch.empty_like(H)
            )
            previous_term, current_term = (
                current_term,
                _compute_next_term(
                    L, current_term, previous_term, recurrence_weights, output_buffer
                ),
            )
            Y.addcmul_(c[:, n : n + 1], current_term)
            if needs_slope:
                scale_slopes.addcmul_(dc[:, n : n + 1], current_term)
        ctx.save_for_backward(scale_slopes, c, L, region_scales)
        ctx.steps = recurrence_weight_arrays
        return Y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        scale_slopes, c, L, region_scales = ctx.saved_tensors
        scale_gradients = signal_gradients = None
        if ctx.needs_input_grad[1]:
            batch_scale_gradients = (
                (grad_output * scale_slopes).sum(-1).reshape(-1, len(region_scales))
            )
            scale_gradients = batch_scale_gradients.sum(0).to(region_scales.dtype)
        if ctx.needs_input_grad[0]:
            signal_gradients = _sum_by_clenshaw(
                L, grad_output.contiguous(), c, ctx.steps
            )
        return signal_gradients, scale_gradients, None, None, None


def _compute_next_term(
    L: Tensor,
    current_term: Tensor,
    previous_term: Tensor,
    recurrence_weights: tuple[float, ...],
    output_buffer: Tensor,
) -> Tensor:
    """Return (alpha L + beta) current + gamma previous, in memory that is reused.

    Allocating memory for every step costs several times the product itself.
    """
    laplacian_factor, current_factor, previous_factor = (
        float(recurrence_weight) for recurrence_weight in recurrence_weights
    )
    if L.layout == torch.strided:
        next_term = (
            torch.matmul(L, current_term)
            .mul_(laplacian_factor)
            .add_(previous_term, alpha=previous_factor)
        )
    else:
        next_term = torch.addmm(
            previous_term,
            L,
            current_term,
            beta=previous_factor,
            alpha=laplacian_factor,
            out=output_buffer,
        )
    return (
        next_term.add_(current_term, alpha=current_factor)
        if current_factor
        else next_term
    )


def _sum_by_clenshaw(
    L: Tensor,
    grad_output: Tensor,
    c: Tensor,
    recurrence_weight_arrays: tuple[np.ndarray, ...],
) -> Tensor:
    """Sum P_n(L) (c_n * grad) from the highest degree down."""
    alphas, betas, gammas = recurrence_weight_arrays
    degree = len(alphas)
    previous_sum = torch.zeros_like(grad_output)
    current_sum = c[:, degree:] * grad_output
    for n in range(degree - 1, -1, -1):
        # The weight of the last term of P_(n+2) belongs to step n + 1.
        previous_sum_weight = float(gammas[n + 1]) if n + 1 < degree else 0.0
        next_sum = _compute_next_term(
            L,
            current_sum,
            previous_sum,
            (alphas[n], betas[n], previous_sum_weight),
            previous_sum,
        )
        previous_sum = current_sum
        current_sum = next_sum.addcmul_(c[:, n : n + 1], grad_output)
    return current_sum
