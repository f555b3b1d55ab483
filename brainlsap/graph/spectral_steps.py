"""The spectral engine's differentiable steps, with hand-written derivatives."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

if TYPE_CHECKING:
    from brainlsap.graph.rewriting import Series
    from brainlsap.graph.spectral import SpectralEngine


class Combine(torch.autograd.Function):
    """Y[t, p, f] = sum_n c_n(s_p) terms[t, p, f, n]."""

    @staticmethod
    def forward(
        ctx: Any, terms: Tensor, scale: Tensor, engine: "SpectralEngine"
    ) -> Tensor:
        """Sum the terms."""
        found = engine.rewriting.coefficients(scale)  # type: ignore[union-attr]
        c, dc = (part.to(terms.dtype) for part in found)
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
    weights: "Series | Tensor",
    H: Tensor,
    in_spectrum: bool,
    wants_scale: bool,
) -> tuple[Tensor, Tensor]:
    """One graph for everybody: form the kernel and its slope once, for all."""
    U = engine.vectors[0]
    rows = engine.weighted_vectors(weights, slice(0, 1))[0]
    if wants_scale:
        slope = rows * -engine.eigenvalues[0]
        if not isinstance(weights, Tensor):
            functions = weights.functions @ engine.basis[0]
            slope += U * (weights.weights @ functions)
        rows = torch.cat([rows, slope])
    both = (rows if in_spectrum else rows @ U.T) @ H
    n_rois = len(U)
    return both[:, :n_rois], both[:, n_rois:]


def _diffuse_chunks(
    engine: "SpectralEngine",
    weights: "Series | Tensor",
    H: Tensor,
    in_spectrum: bool,
    wants_scale: bool,
) -> tuple[Tensor, Tensor]:
    n_channels = H.shape[2]
    out = torch.empty_like(H)
    slope = torch.empty_like(H) if wants_scale else H[:0]
    workspace = engine.workspace(len(H))
    for part in engine.parts(H):
        picked = engine.graphs(part)
        hat = H[part] if in_spectrum else engine.vectors[picked].mT @ H[part]
        rows = engine.weighted_vectors(weights, picked, workspace)
        if not wants_scale:
            torch.bmm(rows, hat, out=out[part])
            continue
        first, rest = engine.slopes(weights, picked, hat)
        both = torch.bmm(rows, first)
        out[part], slope[part] = both[..., :n_channels], both[..., n_channels:]
        if rest.shape[2] and not isinstance(weights, Tensor):
            left = engine.vectors[picked] @ rest
            for k, values in enumerate(left.split(n_channels, dim=2)):
                slope[part].addcmul_(weights.weights[:, k, None], values)
    return out, slope


def _transpose(
    engine: "SpectralEngine", weights: "Series | Tensor", grad: Tensor
) -> Tensor:
    """K^T g = U ((U o E)^T g): not symmetric once scales differ."""
    if engine.shared:
        rows = engine.weighted_vectors(weights, slice(0, 1))[0]
        return (engine.vectors[0] @ rows.T) @ grad
    out = torch.empty_like(grad)
    workspace = engine.workspace(len(grad))
    for part in engine.parts(grad):
        picked = engine.graphs(part)
        rows = engine.weighted_vectors(weights, picked, workspace)
        torch.bmm(engine.vectors[picked], rows.mT @ grad[part], out=out[part])
    return out
