"""The spectral engine's differentiable steps, with hand-written derivatives."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

if TYPE_CHECKING:
    from brainlsap.graph.spectral import SpectralEngine


class Combine(torch.autograd.Function):
    """Y[t, p, f] = sum_n c_n(s_p) terms[t, p, f, n]."""

    @staticmethod
    def forward(
        ctx: Any, terms: Tensor, scale: Tensor, engine: "SpectralEngine"
    ) -> Tensor:
        """Sum the terms."""
        c, dc = (part.to(terms.dtype) for part in engine.coefficients(scale))
        ctx.save_for_backward(terms, dc, scale)
        return torch.einsum("tpfn,pn->tpf", terms, c)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the slope with respect to scale; terms are constant."""
        terms, dc, scale = ctx.saved_tensors
        by_term = torch.einsum("tpfn,tpf->pn", terms, grad)
        return None, (by_term * dc).sum(1).to(scale.dtype), None


class Diffuse(torch.autograd.Function):
    """Y = (U o E) U^T H; the derivative with respect to scale is formed forward."""

    @staticmethod
    def forward(
        ctx: Any, H: Tensor, scale: Tensor, engine: "SpectralEngine", in_spectrum: bool
    ) -> Tensor:
        """Diffuse; keep the slope with respect to scale."""
        ctx.engine, ctx.in_spectrum = engine, in_spectrum
        ctx.weights = engine.weights(scale)
        wants_scale = ctx.needs_input_grad[1]
        one_graph = _diffuse_shared if engine.shared else _diffuse_chunks
        out, slope = one_graph(engine, ctx.weights, H, in_spectrum, wants_scale)
        ctx.save_for_backward(slope, scale)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the slopes with respect to signal and scale."""
        engine = ctx.engine
        slope, scale = ctx.saved_tensors
        grad_scale = grad_H = None
        if ctx.needs_input_grad[1]:
            grad_scale = (grad * slope).sum((0, 2)).to(scale.dtype)
        if ctx.needs_input_grad[0] and not ctx.in_spectrum:
            grad_H = _transpose(engine, ctx.weights, grad.contiguous())
        return grad_H, grad_scale, None, None


def _diffuse_shared(
    engine: "SpectralEngine",
    weights: tuple[Tensor, Tensor],
    H: Tensor,
    in_spectrum: bool,
    wants_scale: bool,
) -> tuple[Tensor, Tensor]:
    """One graph for everybody: form the kernel once, apply it to all."""
    U = engine.vectors[0]
    rows = engine.weighted_vectors(weights, slice(0, 1), wants_scale)[0]
    if engine.kernel == "exact" and wants_scale:
        rows = torch.cat([rows, rows * -engine.eigenvalues[0]])
    both = (rows if in_spectrum else rows @ U.T) @ H
    n_rois = len(U)
    return both[:, :n_rois], both[:, n_rois:]


def _diffuse_chunks(
    engine: "SpectralEngine",
    weights: tuple[Tensor, Tensor],
    H: Tensor,
    in_spectrum: bool,
    wants_scale: bool,
) -> tuple[Tensor, Tensor]:
    n_rois, n_channels = H.shape[1:]
    exact = engine.kernel == "exact"
    out = torch.empty_like(H)
    slope = torch.empty_like(H) if wants_scale else H[:0]
    workspace = engine.workspace(len(H), wants_scale)
    for part in engine.parts(H):
        picked = engine.graphs(part)
        hat = H[part] if in_spectrum else engine.vectors[picked].mT @ H[part]
        if exact and wants_scale:
            hat = torch.cat([hat, hat * -engine.eigenvalues[picked][..., None]], dim=2)
        rows = engine.weighted_vectors(weights, picked, wants_scale, workspace)
        both = torch.bmm(rows, hat)
        out[part] = both[:, :n_rois, :n_channels]
        if wants_scale:
            slope[part] = both[:, :, n_channels:] if exact else both[:, n_rois:]
    return out, slope


def _transpose(
    engine: "SpectralEngine", weights: tuple[Tensor, Tensor], grad: Tensor
) -> Tensor:
    """K^T g = U ((U o E)^T g): not symmetric once scales differ."""
    if engine.shared:
        rows = engine.weighted_vectors(weights, slice(0, 1), False)[0]
        return (engine.vectors[0] @ rows.T) @ grad
    out = torch.empty_like(grad)
    workspace = engine.workspace(len(grad), False)
    for part in engine.parts(grad):
        picked = engine.graphs(part)
        rows = engine.weighted_vectors(weights, picked, False, workspace)
        torch.bmm(engine.vectors[picked], rows.mT @ grad[part], out=out[part])
    return out
