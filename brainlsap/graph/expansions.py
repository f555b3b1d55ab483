r"""Polynomial expansions of the heat kernel, with bounds on what they leave out.

Every expansion writes :math:`e^{-s\lambda} = \sum_n c_n(s) P_n(\lambda)` for
:math:`\lambda \in [0, \lambda_{max}]`, with a three-term recurrence

.. math:: P_{n+1} = (\alpha_n \lambda + \beta_n) P_n + \gamma_n P_{n-1},
          \quad P_{-1} = 0, \; P_0 = 1.

Coefficients, their derivatives with respect to the scale, recurrence and bound of
one expansion stand together here; nobody repeats a convention elsewhere. Formulas:
Huang et al. 2020 and Sim et al. 2024, with the latter's errata settled (see each).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

Recurrence = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Expansion:
    """One way to expand the heat kernel, as a bundle of functions.

    Attributes
    ----------
    coefficients : callable
        `(scale, degree, span) -> (c, dc)`: coefficients and their derivatives with
        respect to scale, float64 tensors of shape `(n_rois, degree + 1)`.
    recurrence : callable
        `(degree, span) -> (alpha, beta, gamma)`, each of shape `(degree,)`.
    log_tail : callable
        `(scale, degree, lambda_max, span) -> float`: log of a bound on the
        truncation error over `[0, lambda_max]`.
    recurrence_limit : dict
        Largest scale at which the recurrence may be run in each precision,
        whatever the degree (terms of opposite sign cancel); infinite if not named.
    """

    coefficients: Callable[[Tensor, int, float], tuple[Tensor, Tensor]]
    recurrence: Callable[[int, float], Recurrence]
    log_tail: Callable[[float, int, float, float], float]
    recurrence_limit: dict[torch.dtype, float]


# --- Chebyshev ---------------------------------------------------------------


def _scaled_bessel(z: Tensor, order: int) -> Tensor:
    r"""Return :math:`e^{-z} I_n(z)` for n = 0..order, shape `(len(z), order + 1)`.

    The ratios :math:`I_n / I_{n-1} = z / (2n + z\, I_{n+1}/I_n)` are run downwards
    from a high order and normalised by :math:`e^{-z}(I_0 + 2\sum I_n) = 1`: only
    positive numbers are added, so every value is accurate, also at z = 0.
    """
    largest = float(z.max()) if z.numel() else 0.0
    start = max(order, int(np.sqrt(80.0 * largest) + largest / 4)) + 16
    ratio = torch.zeros_like(z)
    ratios = []
    for n in range(start, 0, -1):
        ratio = z / (2 * n + z * ratio)
        ratios.append(ratio)
    relative = torch.cumprod(torch.stack(ratios[::-1], dim=1), dim=1)
    zeroth = 1.0 / (1.0 + 2.0 * relative.sum(dim=1, keepdim=True))
    return torch.cat([zeroth, zeroth * relative[:, :order]], dim=1)


def chebyshev_coefficients(
    scale: Tensor, degree: int, span: float = 2.0
) -> tuple[Tensor, Tensor]:
    r"""Return Chebyshev coefficients and derivatives with respect to scale.

    .. math::
        c_n = (2 - \delta_{n0}) (-1)^n e^{-z} I_n(z), \quad
        \frac{dc_n}{ds} = (2 - \delta_{n0}) (-1)^n \frac{b}{2} e^{-z}
        \left[\frac{I_{n-1} + I_{n+1}}{2} - I_n\right], \quad z = s b / 2

    They belong to :math:`T_n(2\lambda/b - 1)`. The half of the zeroth term is
    inside :math:`c_0`; no caller halves it again. (The paper's recurrence has
    :math:`L` where the shifted operator is meant, and its :math:`dc_0/ds` is twice
    the true value; the authors' code doubles :math:`c_0` as well.)

    Parameters
    ----------
    scale : Tensor of shape (n_rois,)
        Non-negative scales.
    degree : int
        Highest polynomial degree.
    span : float
        The paper's `b`: the expansion holds on `[0, span]`.

    Returns
    -------
    coefficients, derivatives : Tensor of shape (n_rois, degree + 1)
        float64.

    Examples
    --------
    >>> c, dc = chebyshev_coefficients(torch.zeros(1), degree=2)
    >>> c.tolist(), dc.tolist()
    ([[1.0, 0.0, 0.0]], [[-1.0, -1.0, 0.0]])
    """
    z = scale.double() * (span / 2)
    bessel = _scaled_bessel(z, degree + 1)
    below = torch.cat([bessel[:, 1:2], bessel[:, :degree]], dim=1)
    sign = torch.ones(degree + 1, dtype=torch.float64, device=z.device)
    sign[1::2] = -1.0
    sign[1:] *= 2.0
    slope = (below + bessel[:, 1:]) / 2 - bessel[:, :-1]
    # -0.0 where nothing is left would surprise a reader of the example above
    return sign * bessel[:, :-1] + 0.0, (span / 2) * sign * slope + 0.0


def _chebyshev_recurrence(degree: int, span: float) -> Recurrence:
    alpha = np.full(degree, 4.0 / span)
    beta = np.full(degree, -2.0)
    gamma = np.full(degree, -1.0)
    alpha[:1], beta[:1] = 2.0 / span, -1.0
    return alpha, beta, gamma


def _chebyshev_log_tail(
    scale: float, degree: int, lambda_max: float, span: float
) -> float:
    """Sum the coefficients left out, each times the largest |T_n| on the spectrum."""
    z = torch.tensor([scale * span / 2], dtype=torch.float64)
    last = degree + 60 + int(2 * float(z))
    bessel = _scaled_bessel(z, last)[0, degree + 1 :].numpy()
    order = np.arange(degree + 1, last + 1)
    beyond = max(2.0 * lambda_max / span - 1.0, 1.0)
    with np.errstate(divide="ignore", over="ignore"):
        growth = order * np.arccosh(beyond)  # |T_n| <= cosh(n arccosh x) <= exp
        return float(np.logaddexp.reduce(np.log(2.0 * bessel) + growth))


# --- Hermite -----------------------------------------------------------------


def hermite_coefficients(
    scale: Tensor, degree: int, span: float = 2.0
) -> tuple[Tensor, Tensor]:
    r"""Return Hermite coefficients and derivatives with respect to scale.

    .. math::
        c_n = \frac{(-s/2)^n}{n!} e^{s^2/4}, \qquad
        \frac{dc_n}{ds} = c_n \left(\frac{n}{s} + \frac{s}{2}\right)

    of the physicists' :math:`H_n(\lambda)`. Both are returned times
    :math:`\sqrt{2^n n!}`, and the recurrence makes :math:`H_n / \sqrt{2^n n!}`:
    the same sum, without the overflow of either factor. At s = 0 the derivative
    is its limit.

    Parameters
    ----------
    scale : Tensor of shape (n_rois,)
        Non-negative scales.
    degree : int
        Highest polynomial degree.
    span : float
        Not used; Hermite polynomials are not scaled to the spectrum.

    Returns
    -------
    coefficients, derivatives : Tensor of shape (n_rois, degree + 1)
        float64.

    Examples
    --------
    >>> c, dc = hermite_coefficients(torch.zeros(1), degree=1)
    >>> c.tolist(), dc[0].round(decimals=4).tolist()
    ([[1.0, 0.0]], [0.0, -0.7071])
    """
    del span
    s = scale.double()
    order = torch.arange(1, degree + 1, dtype=torch.float64, device=s.device)
    steps = -s[:, None] / torch.sqrt(2.0 * order)
    powers = torch.cat([torch.ones_like(s)[:, None], torch.cumprod(steps, 1)], dim=1)
    c = powers * torch.exp(s**2 / 4)[:, None]
    dc = c * (s / 2)[:, None]
    dc[:, 1:] -= torch.sqrt(order / 2.0) * c[:, :-1]
    return c + 0.0, dc


def _hermite_recurrence(degree: int, span: float) -> Recurrence:
    del span
    n = np.arange(degree, dtype=np.float64)
    return np.sqrt(2.0 / (n + 1)), np.zeros(degree), -np.sqrt(n / (n + 1))


_LOG_CRAMER = float(np.log(1.086435))


def _hermite_log_terms(scale: float, first: int, lambda_max: float) -> float:
    """Log of the sum from `first` on, by Cramer's bound on Hermite polynomials.

    |H_n(x)| <= 1.086435 sqrt(2^n n!) exp(x^2 / 2) (Abramowitz and Stegun 22.14.17).
    """
    if scale == 0:
        return -np.inf if first else _LOG_CRAMER + lambda_max**2 / 2
    order = np.arange(first, first + 200 + int(2 * scale**2))
    log_factorial = np.cumsum(np.log(np.maximum(np.arange(order[-1] + 1), 1)))
    terms = order * np.log(scale / np.sqrt(2.0)) - log_factorial[order] / 2
    total = float(np.logaddexp.reduce(terms))
    return total + _LOG_CRAMER + lambda_max**2 / 2 + scale**2 / 4


def _hermite_log_tail(
    scale: float, degree: int, lambda_max: float, span: float
) -> float:
    del span
    return _hermite_log_terms(scale, degree + 1, lambda_max)


# --- Laguerre ----------------------------------------------------------------


def laguerre_coefficients(
    scale: Tensor, degree: int, span: float = 2.0
) -> tuple[Tensor, Tensor]:
    r"""Return Laguerre coefficients and derivatives with respect to scale.

    .. math::
        c_n = \frac{s^n}{(s+1)^{n+1}}, \qquad
        \frac{dc_n}{ds} = \frac{s^{n-1} (n - s)}{(s+1)^{n+2}}

    Parameters
    ----------
    scale : Tensor of shape (n_rois,)
        Non-negative scales.
    degree : int
        Highest polynomial degree.
    span : float
        Not used; Laguerre polynomials are not scaled to the spectrum.

    Returns
    -------
    coefficients, derivatives : Tensor of shape (n_rois, degree + 1)
        float64.

    Examples
    --------
    >>> c, dc = laguerre_coefficients(torch.ones(1), degree=2)
    >>> c.tolist(), dc.tolist()
    ([[0.5, 0.25, 0.125]], [[-0.25, 0.0, 0.0625]])
    """
    del span
    s = scale.double()[:, None]
    order = torch.arange(degree + 1, dtype=torch.float64, device=s.device)
    ratio = s / (s + 1)
    powers = ratio**order
    # n r^(n-1), written so that n = 0 needs no power -1 of zero
    lowered = order * torch.cat([torch.zeros_like(s), powers[:, :-1]], dim=1)
    return powers / (s + 1), (lowered / (s + 1) - powers) / (s + 1) ** 2


def _laguerre_recurrence(degree: int, span: float) -> Recurrence:
    del span
    n = np.arange(degree, dtype=np.float64)
    return -1 / (n + 1), (2 * n + 1) / (n + 1), -n / (n + 1)


def _laguerre_log_tail(
    scale: float, degree: int, lambda_max: float, span: float
) -> float:
    """Geometric tail: |L_n(x)| <= exp(x / 2) for x >= 0 (A. and S. 22.14.12)."""
    del span
    with np.errstate(divide="ignore"):
        return float((degree + 1) * np.log(scale / (scale + 1)) + lambda_max / 2)


EXPANSIONS = {
    "chebyshev": Expansion(
        chebyshev_coefficients, _chebyshev_recurrence, _chebyshev_log_tail, {}
    ),
    "hermite": Expansion(
        hermite_coefficients,
        _hermite_recurrence,
        _hermite_log_tail,
        {torch.float32: 2.5, torch.float64: 6.0},
    ),
    "laguerre": Expansion(
        laguerre_coefficients, _laguerre_recurrence, _laguerre_log_tail, {}
    ),
}
