"""The released code's manner, kept for comparison: stacks of dense polynomials.

Every P_n(L) of every graph is computed once and kept (1.3 GB for 600 graphs at
degree 20); each epoch forms the kernel from them again, applies it, and repeats the
sum with the coefficients' derivatives for the scales. Exact decomposes every graph in
every epoch. Batched over people, no Python loop over them. Derivatives are the true
ones: only the manner is the released code's, not its errata.
"""

import torch
from torch import Tensor, nn

from brainlsap.graph import EXPANSIONS


class StackKernel(torch.autograd.Function):
    """K = sum_n c_n P_n from the kept stack, formed again in every epoch."""

    @staticmethod
    def forward(ctx, scale: Tensor, stack: Tensor, kernel: str, way: str) -> Tensor:
        c, dc = EXPANSIONS[kernel].coefficients(scale, len(stack) - 1)
        ctx.save_for_backward(stack, dc.float())
        ctx.way = way
        return WAYS[way](stack, c.float())

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None, None]:
        stack, dc = ctx.saved_tensors
        slope = WAYS[ctx.way](stack, dc)
        return (grad * slope).sum((0, 2)), None, None, None


def plain_sum(stack: Tensor, c: Tensor) -> Tensor:
    """Return sum_n c_n(s_p) P_n[p, q] of every graph: weigh the terms, then add."""
    return (c.T[:, None, :, None] * stack).sum(0)


def careful_sum(stack: Tensor, c: Tensor) -> Tensor:
    """Return the same with one pass over the stack and nothing kept."""
    out = stack[0] * c[:, 0, None]
    for n in range(1, len(stack)):
        out.addcmul_(c[:, n, None], stack[n])
    return out


WAYS = {"plain": plain_sum, "careful": careful_sum}


def polynomial_stack(L: Tensor, kernel: str, degree: int) -> Tensor:
    """Return every P_n(L), shape (degree + 1, n_graphs, n_rois, n_rois)."""
    steps = EXPANSIONS[kernel].recurrence(degree)
    stack = torch.empty(degree + 1, *L.shape)
    # a few graphs at a time: joining whole lists would hold the stack twice
    for start in range(0, len(L), 16):
        part = L[start : start + 16]
        now, before = torch.eye(L.shape[-1]).expand(part.shape), torch.zeros_like(part)
        stack[0, start : start + 16] = now
        for n, (alpha, beta, gamma) in enumerate(zip(*steps, strict=True), start=1):
            following = float(alpha) * (part @ now) + float(beta) * now
            before, now = now, following + float(gamma) * before
            stack[n, start : start + 16] = now
    return stack


class DenseNetwork(nn.Module):
    """Two heat convolutions and a read-out over dense kernels."""

    def __init__(
        self,
        L: Tensor,
        kernel: str,
        degree: int,
        hidden: int,
        n: int,
        way: str = "plain",
    ) -> None:
        super().__init__()
        n_rois = L.shape[-1]
        self.L, self.kernel, self.way = L, kernel, way
        self.stack = None
        if kernel != "exact":
            self.stack = polynomial_stack(L, kernel, degree)
        self.scale = nn.Parameter(torch.full((n_rois,), 2.0))
        self.first, self.second = nn.Linear(1, hidden), nn.Linear(hidden, hidden)
        self.readout = nn.Sequential(
            nn.Linear(n_rois * hidden, 16), nn.ReLU(), nn.Linear(16, n)
        )

    def forward(self, X: Tensor) -> Tensor:
        if self.stack is None:
            eigenvalues, U = torch.linalg.eigh(self.L)
            response = torch.exp(-self.scale[:, None] * eigenvalues[:, None, :])
            K = (U * response) @ U.mT
        else:
            K = StackKernel.apply(self.scale, self.stack, self.kernel, self.way)
        H = torch.relu(self.first(K @ X))
        H = torch.relu(self.second(K @ nn.functional.dropout(H, 0.5)))
        return self.readout(H.flatten(1))


def dense_epoch(network: DenseNetwork, X: Tensor, codes: Tensor, adam) -> float:
    """Take one full-batch epoch with both updates; return the loss."""
    network.zero_grad()
    loss = nn.functional.cross_entropy(network(X), codes)
    loss.backward()
    adam.step()
    with torch.no_grad():
        network.scale -= network.scale.grad.clamp(-0.1, 0.1)
        network.scale.clamp_(0, 10)
    return float(loss.detach())
