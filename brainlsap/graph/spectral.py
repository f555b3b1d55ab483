r"""The spectral engine: many small dense graphs, decomposed once.

With :math:`L = U \Lambda U^T`, the kernel of *any* variant is
:math:`K = (U \circ E) U^T` with :math:`E_{pi} = \sum_n c_n(s_p) P_n(\lambda_i)` (or
:math:`e^{-s_p \lambda_i}`): row p belongs to region p and its own scale. Two batched
products a layer, nothing stored but U.

The sum over n is rewritten, in float64, in Chebyshev polynomials
:math:`E_{pi} = \sum_n c_{pn} T_n(\lambda_i - 1)`. Their values stay below 1, so terms
below rounding are known and left out, and only this sum is formed in the working
precision (Hermite's own terms would be wrong by 0.02 there).
"""

import copy
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from brainlsap.graph.kernels import EXPANSIONS, choose_degree, polynomial_values
from brainlsap.graph.laplacian import Spectrum

# The exact kernel is interpolated to this error at the least: rounding of float64.
_EXACT = 1e-13
# Items whose products are summed, or whose polynomials are made, at once.
_AT_ONCE = 64
# Eigenvectors of a selection are copied, in the order of its items, up to this size.
_COPIED_BYTES = 500_000_000


class Series(NamedTuple):
    r"""A kernel at given scales, ready to be summed.

    The heat kernel's slope is :math:`-\lambda` times itself. An expansion's differs
    by a remainder, because it ends; only where that counts `slopes` are summed.
    """

    coefficients: Tensor  # (n_rois, n_terms), of T_0 to T_(n_terms - 1)
    slopes: Tensor  # (n_rois, n_slope_terms), with respect to scale
    follows_eigenvalues: bool  # whether the slope is -lambda times the kernel


class Graphs(NamedTuple):
    """Spectra of the graphs of some items, in the working precision."""

    vectors: Tensor  # (n_graphs, n_rois, n_rois)
    slopes: Tensor  # (n_graphs, 1, n_rois): eigenvalues times -1
    basis: Tensor  # (n_graphs, order + 1, n_rois): T_n of the eigenvalues


class ChebyshevSeries:
    """Turns a kernel's coefficients into those of Chebyshev polynomials."""

    def __init__(
        self,
        kernel: str,
        degree: int | None = None,
        max_scale: float = 0.0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | None = None,
    ) -> None:
        self.kernel = kernel
        self._last: tuple[torch.dtype, Tensor, Series] | None = None
        if kernel == "exact":
            # interpolation errs at most twice as much as the series it stands for
            error = max(_EXACT, _below_rounding(dtype)) / 2
            degree = choose_degree("chebyshev", max_scale, error)
        self.order = int(degree or 0)
        angle = np.pi * (np.arange(self.order + 1) + 0.5) / (self.order + 1)
        cosines = np.cos(angle[:, None] * np.arange(self.order + 1))
        transform = cosines * 2 / (self.order + 1)
        transform[:, 0] /= 2
        self.nodes = torch.from_numpy(1.0 + np.cos(angle)).to(device)
        self.transform = torch.from_numpy(transform).to(device)
        if kernel != "exact":
            values = polynomial_values(EXPANSIONS[kernel], self.nodes, self.order)
            self.transform = values @ self.transform

    def coefficients(self, scale: Tensor) -> tuple[Tensor, Tensor]:
        """Return float64 coefficients and slopes, of shape (n_rois, order + 1)."""
        s = scale.detach().double()
        if self.kernel == "exact":
            c = torch.exp(-s[:, None] * self.nodes)
            dc = -self.nodes * c
        else:
            c, dc = EXPANSIONS[self.kernel].coefficients(s, self.order, 2.0)
            if self.kernel == "chebyshev":
                return c, dc
        return c @ self.transform, dc @ self.transform

    def at(self, scale: Tensor, dtype: torch.dtype) -> Series:
        """Return the terms that count in a precision."""
        # layers and parts of an epoch ask for the same scales one after another
        wanted = scale.detach().double()
        if self._last is not None:
            last_dtype, last_scale, found = self._last
            if last_dtype == dtype and torch.equal(last_scale, wanted):
                return found
        c, dc = self.coefficients(wanted)
        left_out = _below_rounding(dtype)
        remainder = pad(dc, (0, 1)) + _times_eigenvalue(c)
        follows = float(remainder.abs().sum(1).amax()) <= max(left_out, 1e-15)
        kept, slopes = (_shortened(one, left_out).to(dtype) for one in (c, dc))
        found = Series(kept, slopes, follows)
        self._last = dtype, wanted.clone(), found
        return found


def _below_rounding(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).eps / 8


def _shortened(c: Tensor, left_out: float) -> Tensor:
    """Return a series without its last terms, as many as do not count."""
    # what is lost by ending after n terms, in the region where most is lost
    lost = c.abs().flip(1).cumsum(1).flip(1).amax(0)
    return c[:, : max(1, int((lost > left_out).sum()))]


def _times_eigenvalue(c: Tensor) -> Tensor:
    """Return the coefficients of lambda times a series: x T_n = (T_n-1 + T_n+1) / 2."""
    out, half = pad(c, (0, 1)), c / 2
    out[:, 1:] += half
    out[:, 1] += half[:, 0]
    out[:, : c.shape[1] - 1] += half[:, 1:]
    return out


class SpectralEngine:
    """Heat diffusion over decomposed graphs, differentiable in signal and scale.

    Parameters
    ----------
    spectrum : Spectrum
        Of the distinct graphs; the engine works on their device.
    graph_of : int Tensor of shape (n_items,) or None
        Graph of every item; None if item t belongs to graph t.
    kernel : {"exact", "chebyshev", "hermite", "laguerre"}
        How the heat kernel is made.
    degree : int or None
        Degree of the expansion; None for `exact`.
    max_scale : float or None
        Largest scale that will be asked for; lets the exact kernel be interpolated,
        to rounding, which is faster and lets the first layer be made once
        (:meth:`terms`). Without it every exponential is taken.
    dtype : torch.dtype
        Precision of signals and products.
    chunk : int
        Items handled at once, to stay in cache; results agree to rounding.

    Examples
    --------
    >>> from brainlsap.graph import decompose, normalized_laplacian
    >>> L = normalized_laplacian(torch.ones(1, 3, 3) - torch.eye(3))
    >>> engine = SpectralEngine(decompose(L), kernel="exact")
    >>> engine.diffuse(torch.ones(1, 3, 2), torch.tensor([0.0, 1.0, 2.0])).shape
    torch.Size([1, 3, 2])
    """

    def __init__(
        self,
        spectrum: Spectrum,
        graph_of: Tensor | None = None,
        *,
        kernel: str,
        degree: int | None = None,
        max_scale: float | None = None,
        dtype: torch.dtype = torch.float32,
        chunk: int = 20,
    ) -> None:
        self.kernel, self.chunk = kernel, chunk
        self.vectors = spectrum.eigenvectors.to(dtype)
        self.eigenvalues = spectrum.eigenvalues.to(dtype)
        n_graphs, device = len(self.eigenvalues), self.vectors.device
        self.shared = n_graphs == 1
        self.in_order = graph_of is None
        if graph_of is None:
            graph_of = torch.arange(n_graphs, device=device)
        self.graph_of = graph_of.to(device)
        self.series: ChebyshevSeries | None = None
        self.basis = self.eigenvalues[:, None]
        if kernel != "exact" or max_scale is not None:
            self.series = ChebyshevSeries(
                kernel, degree, max_scale or 0.0, dtype, device
            )
            chebyshev, order = EXPANSIONS["chebyshev"], self.series.order
            # in float64, some graphs at a time
            some = spectrum.eigenvalues.split(_AT_ONCE)
            made = (polynomial_values(chebyshev, one, order).to(dtype) for one in some)
            self.basis = torch.cat(list(made))

    @property
    def order(self) -> int | None:
        """Degree of the Chebyshev series; None where exponentials are taken."""
        return None if self.series is None else self.series.order

    def select(self, items: Tensor | slice) -> "SpectralEngine":
        """Return the engine of some items; a slice of items in order copies nothing."""
        # A copy of their eigenvectors in order saves gathering them each time (a chunk
        # is then a view); beyond a little memory, graphs are shared and gathered.
        chosen = copy.copy(self)
        if isinstance(items, slice):
            taken: slice | Tensor = items
            worth_it = self.in_order
        else:
            items = items.to(self.graph_of.device)
            taken = self.graph_of[items]
            worth_it = 2 <= len(items) <= _COPIED_BYTES / self.vectors[0].nbytes
        chosen.graph_of, chosen.in_order = self.graph_of[items], False
        if self.shared or not worth_it:
            return chosen
        chosen.vectors, chosen.basis = self.vectors[taken], self.basis[taken]
        chosen.eigenvalues = self.eigenvalues[taken]
        chosen.graph_of = torch.arange(len(chosen.vectors), device=self.vectors.device)
        chosen.in_order = True
        return chosen

    def graphs(self, picked: slice | Tensor) -> Graphs:
        """Return the spectra of some graphs: views, where a slice picks them."""
        slopes = -self.eigenvalues[picked][:, None]
        return Graphs(self.vectors[picked], slopes, self.basis[picked])

    def chunks(self, *signals: Tensor) -> Iterator[tuple[Graphs, tuple[Tensor, ...]]]:
        """Iterate over graphs and signals, of shape (n_items, ...), of a few items."""
        # views made all at once: a slice for each would take a tenth of an epoch
        cut = (signal.split(self.chunk) for signal in signals)
        parts = list(zip(*cut, strict=True))
        graphs: Iterator[Graphs]
        if self.shared:
            graphs = itertools.repeat(self.graphs(slice(0, 1)), len(parts))
        elif self.in_order:
            slopes = -self.eigenvalues[:, None]
            held = (one.split(self.chunk) for one in (self.vectors, slopes, self.basis))
            graphs = itertools.starmap(Graphs, zip(*held, strict=True))
        else:
            graphs = map(self.graphs, self.graph_of.split(self.chunk))
        return zip(graphs, parts, strict=True)

    def weights(self, scale: Tensor) -> Series | Tensor:
        """Return what rows are weighted by: a series, or the scales themselves."""
        dtype = self.vectors.dtype
        if self.series is None:
            return scale.detach().to(dtype)
        return self.series.at(scale, dtype)

    def workspace(self, n_items: int) -> Tensor:
        """Return memory for the weighted vectors of a chunk of items."""
        n_rois = self.vectors.shape[-1]
        return self.vectors.new_empty(min(self.chunk, n_items), n_rois, n_rois)

    def to_spectrum(self, H: Tensor) -> Tensor:
        """Return the graph Fourier transform of constant signals, U^T H.

        Parameters
        ----------
        H : Tensor of shape (n_items, n_rois, n_channels)
            Signals on the regions.

        Returns
        -------
        Tensor of shape (n_items, n_rois, n_channels)
        """
        if self.shared:
            return self.vectors[0].T @ H
        return torch.cat([graphs.vectors.mT @ h for graphs, (h,) in self.chunks(H)])

    def terms(self, H_hat: Tensor) -> Tensor:
        """Return every T_n(L - I) H of constant signals: a first layer made once.

        With these, :meth:`combine` diffuses at any scale for the price of one sum
        over terms, however large the graphs are.

        Parameters
        ----------
        H_hat : Tensor of shape (n_items, n_rois, n_channels)
            From :meth:`to_spectrum`.

        Returns
        -------
        Tensor of shape (n_items, order + 1, n_rois, n_channels)
        """
        n_items, n_rois, n_channels = H_hat.shape
        found = H_hat.new_empty(n_items, self.basis.shape[1], n_rois, n_channels)
        for graphs, (hat, out) in self.chunks(H_hat, found):
            values = graphs.basis.expand(len(hat), -1, -1)
            weighted = torch.einsum("tif,tni->tinf", hat, values)
            joined = graphs.vectors @ weighted.flatten(2)
            out[:] = joined.reshape(weighted.shape).transpose(1, 2)
        return found

    def combine(self, terms: Tensor, scale: Tensor) -> Tensor:
        """Diffuse signals given by their terms; differentiable in scale.

        Parameters
        ----------
        terms : Tensor of shape (n_items, order + 1, n_rois, n_channels)
            From :meth:`terms`; constant.
        scale : Tensor of shape (n_rois,)
            Heat scale of every region.

        Returns
        -------
        Tensor of shape (n_items, n_rois, n_channels)
        """
        return _Combine.apply(terms, scale, self)  # type: ignore[no-any-return]

    def diffuse(self, H: Tensor, scale: Tensor) -> Tensor:
        """Diffuse signals over each item's graph; differentiable.

        Parameters
        ----------
        H : Tensor of shape (n_items, n_rois, n_channels)
            Signals on the regions.
        scale : Tensor of shape (n_rois,)
            Heat scale of every region.

        Returns
        -------
        Tensor of shape (n_items, n_rois, n_channels)
        """
        return _Diffuse.apply(H, scale, self, False)  # type: ignore[no-any-return]

    def diffuse_spectrum(self, H_hat: Tensor, scale: Tensor) -> Tensor:
        """Diffuse constant signals given by :meth:`to_spectrum` (the first layer)."""
        return _Diffuse.apply(H_hat, scale, self, True)  # type: ignore[no-any-return]


class _Combine(torch.autograd.Function):
    """Y[t, p, f] = sum_n c_n(s_p) terms[t, n, p, f]."""

    @staticmethod
    def forward(
        ctx: Any, terms: Tensor, scale: Tensor, engine: SpectralEngine
    ) -> Tensor:
        series = engine.series.at(scale, terms.dtype)  # type: ignore[union-attr]
        ctx.save_for_backward(terms, series.slopes, scale)
        return _summed_terms(terms, series.coefficients)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        terms, dc, scale = ctx.saved_tensors
        slope = _summed_terms(terms, dc)
        return None, _summed_product(grad, slope).to(scale.dtype), None


class _Diffuse(torch.autograd.Function):
    """Y = (U o E) U^T H; the derivative with respect to scale is formed forward."""

    @staticmethod
    def forward(
        ctx: Any, H: Tensor, scale: Tensor, engine: SpectralEngine, in_spectrum: bool
    ) -> Tensor:
        ctx.engine, ctx.in_spectrum = engine, in_spectrum
        ctx.weights = engine.weights(scale)
        diffuse = _diffuse_shared if engine.shared else _diffuse_chunks
        wants_slope = ctx.needs_input_grad[1]
        out, slope = diffuse(engine, ctx.weights, H, in_spectrum, wants_slope)
        ctx.save_for_backward(slope, scale)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        slope, scale = ctx.saved_tensors
        grad_scale = grad_H = None
        if ctx.needs_input_grad[1]:
            grad_scale = _summed_product(grad, slope).to(scale.dtype)
        if ctx.needs_input_grad[0] and not ctx.in_spectrum:
            grad_H = _transpose(ctx.engine, ctx.weights, grad.contiguous())
        return grad_H, grad_scale, None, None


def _summed_terms(terms: Tensor, c: Tensor) -> Tensor:
    """Return sum_n c[p, n] terms[t, n, p, f], over as many terms as c has."""
    weights = c.T[:, :, None].contiguous()
    out = terms.new_empty(len(terms), *terms.shape[2:])
    # a product of some items at a time stays in cache
    for part, sums in zip(terms.split(_AT_ONCE), out.split(_AT_ONCE), strict=True):
        torch.sum(part[:, : len(weights)] * weights, 1, out=sums)
    return out


def _summed_product(one: Tensor, other: Tensor) -> Tensor:
    """Return the sum of products over items and channels, without a large product."""
    total = one.new_zeros(one.shape[1])
    for left, right in zip(one.split(_AT_ONCE), other.split(_AT_ONCE), strict=True):
        total += (left * right).sum((0, 2))
    return total


def _weighted_vectors(
    weights: Series | Tensor, graphs: Graphs, workspace: Tensor
) -> Tensor:
    """Return U o E in the workspace: fresh memory costs more than the sums."""
    if isinstance(weights, Series):
        return _weighted_sum(weights.coefficients, graphs, workspace)
    rows = workspace[: len(graphs.vectors)]
    torch.mul(weights[:, None], graphs.slopes, out=rows)
    return rows.exp_().mul_(graphs.vectors)


def _weighted_slopes(
    weights: Series | Tensor, graphs: Graphs, workspace: Tensor
) -> Tensor | None:
    """Return U o dE/ds in the workspace; None where that is U o E times -lambda."""
    if not isinstance(weights, Series) or weights.follows_eigenvalues:
        return None
    return _weighted_sum(weights.slopes, graphs, workspace)


def _weighted_sum(c: Tensor, graphs: Graphs, workspace: Tensor) -> Tensor:
    values = graphs.basis[:, : c.shape[1]]
    rows = workspace[: len(values)]
    torch.bmm(c.expand(len(values), -1, -1), values, out=rows)
    return rows.mul_(graphs.vectors)


def _diffuse_shared(
    engine: SpectralEngine,
    weights: Series | Tensor,
    H: Tensor,
    in_spectrum: bool,
    wants_slope: bool,
) -> tuple[Tensor, Tensor]:
    """One graph for everybody: form the kernel and its slope once, for all."""
    graphs = engine.graphs(slice(0, 1))
    U = graphs.vectors[0]
    rows = _weighted_vectors(weights, graphs, engine.workspace(1))[0]
    if wants_slope:
        slope = _weighted_slopes(weights, graphs, engine.workspace(1))
        rows = torch.cat([rows, rows * graphs.slopes[0] if slope is None else slope[0]])
    both = (rows if in_spectrum else rows @ U.T) @ H
    return both[:, : len(U)], both[:, len(U) :]


def _diffuse_chunks(
    engine: SpectralEngine,
    weights: Series | Tensor,
    H: Tensor,
    in_spectrum: bool,
    wants_slope: bool,
) -> tuple[Tensor, Tensor]:
    out = torch.empty_like(H)
    slope = torch.empty_like(H) if wants_slope else H[:0]
    workspace = engine.workspace(len(H))
    # channels before regions: factors of eigenvalues then go over long rows
    thin = H.new_empty(len(workspace), H.shape[2], H.shape[1])
    given = (H.mT, out, slope) if wants_slope else (H.mT, out)
    for graphs, (signal, diffused, *sloped) in engine.chunks(*given):
        hat = signal
        if not in_spectrum:
            hat = torch.bmm(signal, graphs.vectors, out=thin[: len(signal)])
        rows = _weighted_vectors(weights, graphs, workspace)
        torch.bmm(rows, hat.mT, out=diffused)
        if not wants_slope:
            continue
        # in the place of the rows, which are still in cache and done with
        steep = _weighted_slopes(weights, graphs, workspace)
        if steep is None:
            steep, hat = rows, hat * graphs.slopes
        torch.bmm(steep, hat.mT, out=sloped[0])
    return out, slope


def _transpose(
    engine: SpectralEngine, weights: Series | Tensor, grad: Tensor
) -> Tensor:
    """K^T g = U ((U o E)^T g): not symmetric once scales differ."""
    if engine.shared:
        graphs = engine.graphs(slice(0, 1))
        rows = _weighted_vectors(weights, graphs, engine.workspace(1))[0]
        return (graphs.vectors[0] @ rows.T) @ grad
    out = torch.empty_like(grad)
    workspace = engine.workspace(len(grad))
    thin = grad.new_empty(len(workspace), grad.shape[2], grad.shape[1])
    for graphs, (slope, diffused) in engine.chunks(grad.mT, out):
        rows = _weighted_vectors(weights, graphs, workspace)
        hat = torch.bmm(slope, rows, out=thin[: len(rows)])
        torch.bmm(graphs.vectors, hat.mT, out=diffused)
    return out
