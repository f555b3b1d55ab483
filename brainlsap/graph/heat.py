r"""Heat kernels over one operator: the slow truth, and the recurrence engine.

The recurrence engine is for large sparse graphs. Forward, :math:`Y = \sum_n
\mathrm{diag}(c_n) P_n(L) H` runs the three-term recurrence and keeps two sums, for the
value and for its derivative with respect to scale. Backward, :math:`\sum_n P_n(L)
\mathrm{diag}(c_n) G` is one Clenshaw pass. Memory is O(n_rois x n_channels) whatever
the degree, and the kernel is never formed.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from brainlsap.exceptions import ParameterError, check_choice
from brainlsap.graph.kernels import (
    EXPANSIONS,
    choose_degree,
    error_bound,
    find_recurrence_limit,
    kernel_names,
)
from brainlsap.graph.laplacian import as_float, as_operator, check_operator

# A degree given by hand brings its own error; past this the kernel is refused.
_REFUSED_ERROR = 1e-2


def exact_heat_kernel(L: Tensor | np.ndarray, scale: Tensor | float) -> Tensor:
    r"""Return the heat kernel from an eigendecomposition: slow, and the truth.

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
    L, scale = _check_scale(L, scale)
    check_operator(L)
    eigenvalues, U = torch.linalg.eigh(L.to_dense().double())
    spectral_response = torch.exp(-scale.double()[:, None] * eigenvalues[..., None, :])
    return (U * spectral_response) @ U.mT


def heat_kernel(
    L: Tensor | np.ndarray, scale: Tensor | float, **options: Any
) -> Tensor:
    r"""Return the heat kernel :math:`\sum_n \mathrm{diag}(c_n(s)) P_n(L)`.

    Parameters
    ----------
    L : Tensor or array of shape (..., n_rois, n_rois)
        Normalised Laplacian, symmetric, with spectrum in [0, 2].
    scale : Tensor of shape (n_rois,) or float
        Heat scale of every region; row p of the kernel is row p of
        :math:`e^{-s_p L}`. Dimensionless, not negative.
    **options
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
    L = as_operator(L)
    identity_matrix = torch.eye(L.shape[-1], dtype=L.dtype, device=L.device).expand(
        L.shape
    )
    return diffuse(L, identity_matrix, scale, **options)


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
    kernel : {"exact", "chebyshev", "hermite", "laguerre"}
        Eigenvectors, or which expansion.
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
    L, scale = _check_scale(L, scale)
    X = as_float(X).to(L.device)
    dtype = torch.promote_types(L.dtype, X.dtype)
    L, X = L.to(dtype), X.to(dtype)
    if X.ndim != L.ndim or X.shape[:-1] != L.shape[:-1]:
        raise ParameterError(
            f"X must have shape (..., n_rois, n_channels) to fit L of shape "
            f"{tuple(L.shape)}, got {tuple(X.shape)}."
        )
    if not bool(torch.isfinite(X).all()):
        raise ParameterError("X must be finite; it holds NaN or infinite values.")
    check_choice("kernel", kernel, kernel_names())
    if kernel == "exact":
        return exact_heat_kernel(L, scale).to(dtype) @ X
    max_scale = float(scale.detach().max())
    if degree is None:
        degree = choose_degree(kernel, max_scale, tolerance)
    kernel_error = error_bound(kernel, max_scale, degree)
    if kernel_error > _REFUSED_ERROR:
        raise ParameterError(
            f"the {kernel} kernel of degree {degree} can be wrong by "
            f"{kernel_error:.2g} at scale {max_scale:g}. Use a higher degree, or the "
            "chebyshev kernel."
        )
    check_operator(L)
    max_recurrence_scale = find_recurrence_limit(kernel, dtype)
    if max_scale > max_recurrence_scale:
        raise ParameterError(
            f"the {kernel} recurrence in {str(dtype).removeprefix('torch.')} is right "
            f"up to scale {max_recurrence_scale:.3g} only, got {max_scale:g}; use the "
            "chebyshev kernel."
        )
    return diffuse_recurrence(L, X, scale, kernel, degree)


def _check_scale(
    L: Tensor | np.ndarray, scale: Tensor | float | np.ndarray
) -> tuple[Tensor, Tensor]:
    """Return both as Tensors, one scale for every region."""
    L = as_operator(L)
    scale = as_float(scale).to(L.device)
    if scale.shape not in ((), L.shape[-1:]):
        scale_shape = tuple(scale.shape)
        raise ParameterError(
            f"scale must have shape {(L.shape[-1],)}, got {scale_shape}."
        )
    scale = scale.expand(L.shape[-1])
    if not (bool((scale >= 0).all()) and bool(torch.isfinite(scale).all())):
        raise ParameterError(
            "scale must be finite and not negative, its smallest value is "
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
    kernel : {"chebyshev", "hermite", "laguerre"}
        Which expansion.
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
        ctx: Any, H: Tensor, scale: Tensor, L: Tensor, kernel: str, degree: int
    ) -> Tensor:
        expansion = EXPANSIONS[kernel]
        coefficients_and_slopes = expansion.coefficients(scale.detach(), degree)
        c, dc = (coefficients.to(H.dtype) for coefficients in coefficients_and_slopes)
        recurrence_weights = expansion.recurrence(degree)
        needs_slope = ctx.needs_input_grad[1]
        previous_term, current_term = torch.zeros_like(H), H
        Y = c[:, :1] * H
        scale_slope = dc[:, :1] * H if needs_slope else H[:0]
        for n, step_weights in enumerate(
            zip(*recurrence_weights, strict=True), start=1
        ):
            # Do not overwrite the input.
            output_buffer = (
                previous_term if previous_term is not H else torch.empty_like(H)
            )
            previous_term, current_term = (
                current_term,
                _next_term(L, current_term, previous_term, step_weights, output_buffer),
            )
            Y.addcmul_(c[:, n : n + 1], current_term)
            if needs_slope:
                scale_slope.addcmul_(dc[:, n : n + 1], current_term)
        ctx.save_for_backward(scale_slope, c, L, scale)
        ctx.steps = recurrence_weights
        return Y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        scale_slope, c, L, scale = ctx.saved_tensors
        grad_scale = grad_H = None
        if ctx.needs_input_grad[1]:
            scale_grads = (grad_output * scale_slope).sum(-1).reshape(-1, len(scale))
            grad_scale = scale_grads.sum(0).to(scale.dtype)
        if ctx.needs_input_grad[0]:
            grad_H = _clenshaw(L, grad_output.contiguous(), c, ctx.steps)
        return grad_H, grad_scale, None, None, None


def _next_term(
    L: Tensor,
    current_term: Tensor,
    previous_term: Tensor,
    step_weights: tuple[float, ...],
    output_buffer: Tensor,
) -> Tensor:
    """Return (alpha L + beta) current + gamma previous, in memory that is reused.

    Allocating memory for every step costs several times the product itself.
    """
    alpha, beta, gamma = (float(step_weight) for step_weight in step_weights)
    if L.layout == torch.strided:
        next_term = (
            torch.matmul(L, current_term).mul_(alpha).add_(previous_term, alpha=gamma)
        )
    else:
        next_term = torch.addmm(
            previous_term, L, current_term, beta=gamma, alpha=alpha, out=output_buffer
        )
    return next_term.add_(current_term, alpha=beta) if beta else next_term


def _clenshaw(
    L: Tensor,
    grad_output: Tensor,
    c: Tensor,
    recurrence_weights: tuple[np.ndarray, ...],
) -> Tensor:
    """Sum P_n(L) (c_n * grad) from the highest degree down."""
    alpha, beta, gamma = recurrence_weights
    degree = len(alpha)
    previous_sum = torch.zeros_like(grad_output)
    current_sum = c[:, degree:] * grad_output
    for n in range(degree - 1, -1, -1):
        # The weight of the last term of P_(n+2) belongs to step n + 1.
        skip_weight = float(gamma[n + 1]) if n + 1 < degree else 0.0
        next_sum = _next_term(
            L, current_sum, previous_sum, (alpha[n], beta[n], skip_weight), previous_sum
        )
        previous_sum = current_sum
        current_sum = next_sum.addcmul_(c[:, n : n + 1], grad_output)
    return current_sum
