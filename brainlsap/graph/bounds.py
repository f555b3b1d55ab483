"""How wrong an expansion can be, and what follows: degrees and trusted scales."""

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from brainlsap._arrays import check_at_least, check_choice
from brainlsap.exceptions import ParameterError
from brainlsap.graph.expansions import EXPANSIONS, Expansion

KERNELS = ("exact", *EXPANSIONS)

# No useful kernel needs more; a search that gets here has no answer.
_HIGHEST_DEGREE = 1000
# Scales beyond this are not told apart on a graph of a few hundred regions.
_LARGEST_SCALE = 1000.0


def polynomial_values(
    expansion: Expansion, eigenvalues: torch.Tensor, degree: int, span: float = 2.0
) -> torch.Tensor:
    """Evaluate every polynomial up to `degree` at every eigenvalue.

    Parameters
    ----------
    expansion : Expansion
        One of `EXPANSIONS`.
    eigenvalues : Tensor of shape (..., n_rois)
        Where to evaluate; float64 keeps the result exact to rounding.
    degree : int
        Highest degree.
    span : float
        The paper's `b` (Chebyshev only).

    Returns
    -------
    Tensor of shape (..., degree + 1, n_rois)

    Examples
    --------
    >>> values = polynomial_values(EXPANSIONS["laguerre"], torch.tensor([0.0, 2.0]), 1)
    >>> values.tolist()
    [[1.0, 1.0], [1.0, -1.0]]
    """
    alpha, beta, gamma = expansion.recurrence(degree, span)
    before, now = torch.zeros_like(eigenvalues), torch.ones_like(eigenvalues)
    values = [now]
    for a, b, c in zip(alpha, beta, gamma, strict=True):
        before, now = now, (float(a) * eigenvalues + float(b)) * now + float(c) * before
        values.append(now)
    return torch.stack(values, dim=-2)


@lru_cache(maxsize=4096)
def _rounding(
    kernel: str, scale: float, degree: int, lambda_max: float, span: float, eps: float
) -> float:
    """Return 8 eps times the largest sum of absolute terms on the spectrum."""
    if kernel == "exact":
        return 8 * eps
    expansion = EXPANSIONS[kernel]
    points = torch.linspace(0, lambda_max, 65, dtype=torch.float64)
    values = polynomial_values(expansion, points, degree, span).abs()
    s = torch.tensor([scale], dtype=torch.float64)
    coefficients = expansion.coefficients(s, degree, span)[0].abs()
    return float(8 * eps * (coefficients @ values).max())


def error_bound(
    kernel: str,
    scale: float | np.ndarray | Tensor,
    degree: int | None = None,
    lambda_max: float = 2.0,
    *,
    span: float = 2.0,
    dtype: torch.dtype | None = None,
) -> float:
    r"""Bound the error of a heat kernel's expansion.

    The largest :math:`|e^{-s\lambda} - \sum_{n \le m} c_n P_n(\lambda)|` over
    :math:`\lambda \in [0, \lambda_{max}]` is at most the sum of the terms left out:
    exact for Chebyshev (:math:`|T_n| \le 1`), by Cramer's inequality for Hermite,
    and the geometric tail :math:`e^{\lambda_{max}/2} (s/(s+1))^{m+1}` for Laguerre.
    It grows with scale, so the bound at the largest scale holds for all. Because
    :math:`L` is symmetric it bounds the spectral norm and every entry of the
    kernel's error for one scale, and every entry for one scale per region.

    Parameters
    ----------
    kernel : {"exact", "chebyshev", "hermite", "laguerre"}
        Which expansion.
    scale : float, array or Tensor
        Heat scale, dimensionless, not negative; of several the largest counts.
    degree : int or None
        Degree of the expansion; None for `exact`.
    lambda_max : float
        Largest eigenvalue; 2 is safe for every normalised Laplacian.
    span : float
        The paper's `b`, for Chebyshev. Below `lambda_max` the bound grows fast.
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
    check_choice("kernel", kernel, KERNELS)
    largest = _largest(scale)
    eps = 0.0 if dtype is None else torch.finfo(dtype).eps / 2
    if kernel == "exact":
        return 8 * eps
    if degree is None:
        raise ParameterError(f"degree is needed for the {kernel} kernel; got None.")
    check_at_least("degree", degree, 0)
    with np.errstate(over="ignore"):
        tail = EXPANSIONS[kernel].log_tail(largest, degree, lambda_max, span)
        bound = float(np.exp(tail))
    if eps:
        bound += _rounding(kernel, largest, degree, lambda_max, span, eps)
    return bound


def _largest(scale: float | np.ndarray | Tensor) -> float:
    if isinstance(scale, Tensor):
        scale = scale.detach().cpu().numpy()
    values = np.asarray(scale, dtype=float)
    if not values.size:
        raise ParameterError("scale must hold at least one number, got none.")
    check_at_least("scale", float(values.min()), 0.0)  # NaN is the smallest
    check_at_least("scale", float(values.max()), 0.0)
    return float(values.max())


def choose_degree(
    kernel: str,
    max_scale: float,
    tolerance: float = 1e-4,
    lambda_max: float = 2.0,
    *,
    span: float = 2.0,
) -> int:
    """Return the lowest degree whose error stays within a tolerance.

    Parameters
    ----------
    kernel : {"chebyshev", "hermite", "laguerre"}
        Which expansion.
    max_scale : float
        Largest scale that must be trusted.
    tolerance : float
        Largest error of the kernel's response, whose largest value is 1.
    lambda_max : float
        Largest eigenvalue of the Laplacian.
    span : float
        The paper's `b`, for Chebyshev.

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
    if not 0 < tolerance < 1:
        raise ParameterError(f"tolerance must lie between 0 and 1, got {tolerance!r}.")

    def fits(degree: int) -> bool:
        bound = error_bound(
            kernel, max_scale, degree, lambda_max, span=span, dtype=torch.float64
        )
        return bound <= tolerance

    low, high = -1, 1
    while high <= _HIGHEST_DEGREE and not fits(high):
        low, high = high, 2 * high
    if high > _HIGHEST_DEGREE:
        raise ParameterError(
            f"the {kernel} kernel cannot reach tolerance {tolerance:g} at scale "
            f"{max_scale:g} with a degree up to {_HIGHEST_DEGREE}. Use the chebyshev "
            "kernel, a smaller max_scale or a larger tolerance."
        )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


@lru_cache(maxsize=256)
def largest_scale(
    kernel: str,
    degree: int | None = None,
    tolerance: float = 1e-4,
    lambda_max: float = 2.0,
    *,
    span: float = 2.0,
    dtype: torch.dtype = torch.float64,
) -> float:
    """Return the largest scale at which a kernel of this degree can be trusted.

    Parameters
    ----------
    kernel : {"exact", "chebyshev", "hermite", "laguerre"}
        Which expansion.
    degree : int or None
        Its degree; None for `exact`.
    tolerance : float
        Error that is still trusted.
    lambda_max : float
        Largest eigenvalue of the Laplacian.
    span : float
        The paper's `b`, for Chebyshev.
    dtype : torch.dtype
        Precision in which the sum is formed; the spectral engine uses float64.

    Returns
    -------
    float
        Scale; at most 1,000, which stands for "no limit".

    Examples
    --------
    >>> round(largest_scale("hermite", 30), 1), largest_scale("exact")
    (3.1, 1000.0)
    """

    def trusted(scale: float) -> bool:
        bound = error_bound(kernel, scale, degree, lambda_max, span=span, dtype=dtype)
        return bound <= tolerance

    if trusted(_LARGEST_SCALE):
        return _LARGEST_SCALE
    low, high = 0.0, _LARGEST_SCALE
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if trusted(middle) else (low, middle)
    return low
