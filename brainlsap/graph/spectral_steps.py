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
            grad_scale = _summed_product(engine, grad, slope).to(scale.dtype)
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
        slope = engine.weighted_slopes(weights, slice(0, 1), engine.workspace(1))
        plain = rows * -engine.eigenvalues[0]
        rows = torch.cat([rows, plain if slope is None else slope[0]])
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
    out = torch.empty_like(H)
    slope = torch.empty_like(H) if wants_scale else H[:0]
    kernel, slopes = engine.workspace(len(H)), engine.workspace(len(H))
    # channels before regions: factors of eigenvalues then go over long rows
    thin = H.new_empty(len(kernel), H.shape[2], H.shape[1])
    for part in engine.parts(H):
        picked = engine.graphs(part)
        hat = H[part].mT
        if not in_spectrum:
            hat = torch.bmm(hat, engine.vectors[picked], out=thin[: len(hat)])
        rows = engine.weighted_vectors(weights, picked, kernel)
        torch.bmm(rows, hat.mT, out=out[part])
        if not wants_scale:
            continue
        steep = engine.weighted_slopes(weights, picked, slopes)
        if steep is None:
            steep, hat = rows, hat * -engine.eigenvalues[picked][:, None]
        torch.bmm(steep, hat.mT, out=slope[part])
    return out, slope


def _summed_product(engine: "SpectralEngine", one: Tensor, other: Tensor) -> Tensor:
    """Return the sum of products over items and channels, without a large product."""
    total = one.new_zeros(one.shape[1])
    for part in engine.parts(one):
        total += (one[part] * other[part]).sum((0, 2))
    return total


def _transpose(
    engine: "SpectralEngine", weights: "Series | Tensor", grad: Tensor
) -> Tensor:
    """K^T g = U ((U o E)^T g): not symmetric once scales differ."""
    if engine.shared:
        rows = engine.weighted_vectors(weights, slice(0, 1))[0]
        return (engine.vectors[0] @ rows.T) @ grad
    out = torch.empty_like(grad)
    workspace = engine.workspace(len(grad))
    thin = grad.new_empty(len(workspace), grad.shape[2], grad.shape[1])
    for part in engine.parts(grad):
        picked = engine.graphs(part)
        rows = engine.weighted_vectors(weights, picked, workspace)
        hat = torch.bmm(grad[part].mT, rows, out=thin[: len(rows)])
        torch.bmm(engine.vectors[picked], hat.mT, out=out[part])
    return out
