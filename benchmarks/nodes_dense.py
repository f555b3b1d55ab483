"""Heat convolution on nodes in the manner of the code published with the paper.

Every polynomial of the graph is a dense matrix, made once; each layer of each epoch
forms the kernel from them, and its slope in the scales again. Derivatives are the true
ones: only the manner is compared, not the errata.
"""

import os

import torch
from torch import Tensor

from brainlsap.graph import EXPANSIONS


def stack_bytes(n_nodes: int, degree: int) -> int:
    """Return what the stack takes in float32."""
    return (degree + 1) * n_nodes**2 * 4


def fits(n_nodes: int, degree: int) -> bool:
    """Tell whether the stack takes less than half the memory of this machine."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return stack_bytes(n_nodes, degree) < memory / 2


def polynomials(L: Tensor, degree: int) -> Tensor:
    """Return every Chebyshev polynomial, shape (degree + 1, n_nodes, n_nodes)."""
    stack = torch.empty(degree + 1, *L.shape)
    before, now = torch.zeros(L.shape), torch.eye(L.shape[0])
    stack[0] = now
    steps = zip(*EXPANSIONS["chebyshev"].recurrence(degree, 2.0), strict=True)
    for n, (alpha, beta, gamma) in enumerate(steps, start=1):
        following = float(alpha) * (L @ now) + float(beta) * now
        before, now = now, following + float(gamma) * before
        stack[n] = now
    return stack


class DenseKernel(torch.autograd.Function):
    """K = sum_n c_n P_n, formed again whenever it is asked for."""

    @staticmethod
    def forward(ctx, scale: Tensor, stack: Tensor) -> Tensor:
        degree = len(stack) - 1
        c, dc = EXPANSIONS["chebyshev"].coefficients(scale, degree, 2.0)
        ctx.save_for_backward(stack, dc.float())
        return torch.einsum("pn,npq->pq", c.float(), stack)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        stack, dc = ctx.saved_tensors
        return (grad * torch.einsum("pn,npq->pq", dc, stack)).sum(1), None


def dense_diffusion(stack: Tensor):
    """Return `(H, scale) -> H` with the kernel formed from the stack."""
    return lambda H, scale: DenseKernel.apply(scale, stack) @ H
