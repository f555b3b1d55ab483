r"""The recurrence engine: large sparse graphs, sparse products only.

Forward, :math:`Y = \sum_n \mathrm{diag}(c_n) P_n(L) H` runs the three-term recurrence
and keeps two sums, for the value and for its derivative with respect to scale.
Backward, :math:`\sum_n P_n(L) \mathrm{diag}(c_n) G` is one Clenshaw pass. Memory is
O(n_rois x n_channels) whatever the degree, and the kernel is never formed.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from brainlsap.graph.kernels import EXPANSIONS


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
    return _Recurrence.apply(H, scale, L, kernel, degree)  # type: ignore[no-any-return]


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, H: Tensor, scale: Tensor, L: Tensor, kernel: str, degree: int
    ) -> Tensor:
        expansion = EXPANSIONS[kernel]
        pair = expansion.coefficients(scale.detach(), degree, 2.0)
        c, dc = (part.to(H.dtype) for part in pair)
        steps = expansion.recurrence(degree, 2.0)
        wants_slope = ctx.needs_input_grad[1]
        before, now = torch.zeros_like(H), H
        out = c[:, :1] * H
        slope = dc[:, :1] * H if wants_slope else H[:0]
        for n, step in enumerate(zip(*steps, strict=True), start=1):
            # the input must not be overwritten
            memory = before if before is not H else torch.empty_like(H)
            before, now = now, _step(L, now, before, step, memory)
            out.addcmul_(c[:, n : n + 1], now)
            if wants_slope:
                slope.addcmul_(dc[:, n : n + 1], now)
        ctx.save_for_backward(slope, c, L, scale)
        ctx.steps = steps
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        slope, c, L, scale = ctx.saved_tensors
        grad_scale = grad_H = None
        if ctx.needs_input_grad[1]:
            rows = (grad * slope).sum(-1).reshape(-1, len(scale))
            grad_scale = rows.sum(0).to(scale.dtype)
        if ctx.needs_input_grad[0]:
            grad_H = _clenshaw(L, grad.contiguous(), c, ctx.steps)
        return grad_H, grad_scale, None, None, None


def _step(
    L: Tensor, now: Tensor, before: Tensor, step: tuple[float, ...], memory: Tensor
) -> Tensor:
    """Return (alpha L + beta) now + gamma before, in memory that is used again.

    Fresh memory for every step costs several times the product itself.
    """
    alpha, beta, gamma = (float(one) for one in step)
    if L.layout == torch.strided:
        following = torch.matmul(L, now).mul_(alpha).add_(before, alpha=gamma)
    else:
        following = torch.addmm(before, L, now, beta=gamma, alpha=alpha, out=memory)
    return following.add_(now, alpha=beta) if beta else following


def _clenshaw(
    L: Tensor, grad: Tensor, c: Tensor, steps: tuple[np.ndarray, ...]
) -> Tensor:
    """Sum P_n(L) (c_n * grad) from the highest degree down."""
    alpha, beta, gamma = steps
    degree = len(alpha)
    above, now = torch.zeros_like(grad), c[:, degree:] * grad
    for n in range(degree - 1, -1, -1):
        # the weight of P_(n+2)'s last term belongs to step n + 1
        skip = float(gamma[n + 1]) if n + 1 < degree else 0.0
        following = _step(L, now, above, (alpha[n], beta[n], skip), above)
        above, now = now, following.addcmul_(c[:, n : n + 1], grad)
    return now
