"""The spectral engine's differentiable steps, with hand-written derivatives."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from brainlsap.graph.spectral_rows import weighted_slopes, weighted_vectors

if TYPE_CHECKING:
    from brainlsap.graph.rewriting import Series
    from brainlsap.graph.spectral import SpectralEngine

# Items whose products are summed at once.
_AT_ONCE = 64


class Combine(torch.autograd.Function):
    """Y[t, p, f] = sum_n c_n(s_p) terms[t, n, p, f]."""

    @staticmethod
    def forward(
        ctx: Any, terms: Tensor, scale: Tensor, engine: "SpectralEngine"
    ) -> Tensor:
        """Sum the terms."""
        series = engine.rewriting.series(scale, terms.dtype)  # type: ignore[union-attr]
        ctx.save_for_backward(terms, series.slopes, scale)
        return _summed_terms(terms, series.coefficients)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the slope with respect to scale; terms are constant."""
        terms, dc, scale = ctx.saved_tensors
        steep = _summed_terms(terms, dc)
        return None, _summed_product(grad, steep).to(scale.dtype), None


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
            grad_scale = _summed_product(grad, slope).to(scale.dtype)
        if ctx.needs_input_grad[0] and not ctx.in_spectrum:
            grad_H = _transpose(engine, ctx.weights, grad.contiguous())
        return grad_H, grad_scale, None, None


def _summed_terms(terms: Tensor, c: Tensor) -> Tensor:
    """Return sum_n c[p, n] terms[t, n, p, f], over as many terms as c has."""
    weights = c.T[:, :, None].contiguous()
    out = terms.new_empty(len(terms), *terms.shape[2:])
    # a product of some items at a time stays in cache
    for part, sums in zip(terms.split(_AT_ONCE), out.split(_AT_ONCE), strict=True):
        torch.sum(part[:, : len(weights)] * weights, 1, out=sums)
    return out


def _diffuse_shared(
    engine: "SpectralEngine",
    weights: "Series | Tensor",
    H: Tensor,
    in_spectrum: bool,
    wants_scale: bool,
) -> tuple[Tensor, Tensor]:
    """One graph for everybody: form the kernel and its slope once, for all."""
    graphs = engine.graphs(slice(0, 1))
    U = graphs.vectors[0]
    rows = weighted_vectors(weights, graphs, engine.workspace(1))[0]
    if wants_scale:
        slope = weighted_slopes(weights, graphs, engine.workspace(1))
        rows = torch.cat([rows, rows * graphs.slopes[0] if slope is None else slope[0]])
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
    workspace = engine.workspace(len(H))
    # channels before regions: factors of eigenvalues then go over long rows
    thin = H.new_empty(len(workspace), H.shape[2], H.shape[1])
    given = (H.mT, out, slope) if wants_scale else (H.mT, out)
    for graphs, (signal, diffused, *sloped) in engine.chunks(*given):
        hat = signal
        if not in_spectrum:
            hat = torch.bmm(signal, graphs.vectors, out=thin[: len(signal)])
        rows = weighted_vectors(weights, graphs, workspace)
        torch.bmm(rows, hat.mT, out=diffused)
        if not wants_scale:
            continue
        # in the place of the rows, which are still in cache and done with
        steep = weighted_slopes(weights, graphs, workspace)
        if steep is None:
            steep, hat = rows, hat * graphs.slopes
        torch.bmm(steep, hat.mT, out=sloped[0])
    return out, slope


def _summed_product(one: Tensor, other: Tensor) -> Tensor:
    """Return the sum of products over items and channels, without a large product."""
    total = one.new_zeros(one.shape[1])
    for left, right in zip(one.split(_AT_ONCE), other.split(_AT_ONCE), strict=True):
        total += (left * right).sum((0, 2))
    return total


def _transpose(
    engine: "SpectralEngine", weights: "Series | Tensor", grad: Tensor
) -> Tensor:
    """K^T g = U ((U o E)^T g): not symmetric once scales differ."""
    if engine.shared:
        graphs = engine.graphs(slice(0, 1))
        rows = weighted_vectors(weights, graphs, engine.workspace(1))[0]
        return (graphs.vectors[0] @ rows.T) @ grad
    out = torch.empty_like(grad)
    workspace = engine.workspace(len(grad))
    thin = grad.new_empty(len(workspace), grad.shape[2], grad.shape[1])
    for graphs, (slope, diffused) in engine.chunks(grad.mT, out):
        rows = weighted_vectors(weights, graphs, workspace)
        hat = torch.bmm(slope, rows, out=thin[: len(rows)])
        torch.bmm(graphs.vectors, hat.mT, out=diffused)
    return out
