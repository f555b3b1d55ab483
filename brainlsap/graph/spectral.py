r"""The spectral engine: many small dense graphs, decomposed once.

With :math:`L = U \Lambda U^T`, the kernel of *any* variant is
:math:`K = (U \circ E) U^T` with :math:`E_{pi} = \sum_n c_n(s_p) P_n(\lambda_i)` (or
:math:`e^{-s_p \lambda_i}`): row p belongs to region p and its own scale. Two batched
products a layer.

The sum over n is rewritten, in float64, in Chebyshev polynomials
:math:`E_{pi} = \sum_n c_{pn} T_n(\lambda_i - 1)`. Their values stay below 1, so terms
below rounding are known and left out, and only this sum is formed in the working
precision (Hermite's own terms would be wrong by 0.02 there). The exact kernel is the
series of so high a degree that rounding alone is left. Signals that do not change, as
the features of a first layer, need their terms :math:`T_n(L - I) X` only, which come by
recurrence: networks of one layer decompose no graph, and read each of them once.
"""

import copy
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from brainlsap.arrays import SelectedRows
from brainlsap.graph.kernels import EXPANSIONS, choose_degree, polynomial_values
from brainlsap.graph.laplacian import Preparation, Spectrum

# Smallest error asked of the series of the exact kernel: rounding of float64.
_EXACT = 1e-13


# Connectomes of their own whose polynomials are computed at once: in cache.
_GRAPHS_AT_ONCE = 4
# Scans of one shared connectome whose polynomials are computed at once.
_SCANS_AT_ONCE = 256


def iter_rows_and_polynomials(
    connectomes: np.ndarray | SelectedRows,
    signals: np.ndarray,
    connectome_preparation: Preparation,
    degree: int,
    *,
    has_shared_connectome: bool,
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield rows of scans and T_n(L - I) x of their signals, of a few scans at a time.

    No graph is decomposed, and no connectome is read twice.

    Parameters
    ----------
    connectomes : array of shape (n_scans, n_rois, n_rois)
    signals : float64 array of shape (n_scans, n_rois, n_columns)
    connectome_preparation : Preparation
        Learned from the training scans.
    degree : int
        Highest n.
    has_shared_connectome : bool
        Whether all scans have the connectome of the first, or of the preparation.

    Yields
    ------
    rows : slice
    polynomials : array of shape (degree + 1, n_rows, n_rois, n_columns)
    """
    n_scans, n_rois, n_columns = signals.shape
    if has_shared_connectome:
        W = connectome_preparation.apply(connectomes[:1])[0]
    n_scans_at_once = _SCANS_AT_ONCE if has_shared_connectome else _GRAPHS_AT_ONCE
    for block_start in range(0, n_scans, n_scans_at_once):
        scan_slice = slice(block_start, min(block_start + n_scans_at_once, n_scans))
        if has_shared_connectome:
            # One matrix product for all scans: their columns side by side.
            signal_matrix = signals[scan_slice].transpose(1, 0, 2).reshape(n_rois, -1)
            polynomials = _apply_polynomials(W, signal_matrix, degree)
            polynomial_shape = degree + 1, n_rois, -1, n_columns
            yield (
                scan_slice,
                polynomials.reshape(polynomial_shape).transpose(0, 2, 1, 3),
            )
        else:
            W = connectome_preparation.apply(connectomes[scan_slice])
            yield scan_slice, _apply_polynomials(W, signals[scan_slice], degree)


def _apply_polynomials(W: np.ndarray, x: np.ndarray, degree: int) -> np.ndarray:
    """Return T_0(L - I) x to T_degree(L - I) x on a first axis.

    Connectomes W are prepared: symmetric, finite and not negative. L is not formed.
    """
    node_degrees = W.sum(axis=-1)[..., None]
    isolated_region_mask = node_degrees == 0
    inverse_sqrt_degrees = 1 / np.sqrt(
        np.where(isolated_region_mask, np.inf, node_degrees)
    )
    has_isolated_region = bool(isolated_region_mask.any())

    def apply_shifted_laplacian(signal: np.ndarray, product_buffer: np.ndarray) -> None:
        # (L - I) x = -D^(-1/2) W D^(-1/2) x
        np.matmul(W, inverse_sqrt_degrees * signal, out=product_buffer)
        product_buffer *= -inverse_sqrt_degrees
        if has_isolated_region:  # It keeps its value: its row of L is 0.
            product_buffer -= isolated_region_mask * signal

    polynomials = np.empty((degree + 1, *x.shape))
    polynomials[0] = x
    if degree:
        apply_shifted_laplacian(x, polynomials[1])
    # T_(n+1) x = 2 (L - I) T_n x - T_(n-1) x
    for n in range(2, degree + 1):
        apply_shifted_laplacian(polynomials[n - 1], polynomials[n])
        polynomials[n] *= 2
        polynomials[n] -= polynomials[n - 2]
    return polynomials


@lru_cache(maxsize=8)
def chebyshev_nodes_and_transform(
    n_chebyshev_nodes: int, degree: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues, and what turns a kernel's values there into coefficients.

    They are the nodes of Gauss-Chebyshev quadrature, of shape (n_chebyshev_nodes,), and
    the matrix (n_chebyshev_nodes, degree + 1) of the discrete cosine transform.
    """
    node_angles = np.pi * (np.arange(n_chebyshev_nodes) + 0.5) / n_chebyshev_nodes
    transform_matrix = (
        np.cos(node_angles[:, None] * np.arange(degree + 1)) * 2 / n_chebyshev_nodes
    )
    transform_matrix[:, 0] /= 2
    return 1.0 + np.cos(node_angles), transform_matrix


class ChebyshevSeries:
    """Coefficients of a kernel's Chebyshev series as functions of the scales.

    Parameters
    ----------
    kernel : str
        A key of `EXPANSIONS`, or `exact`.
    degree : int or None
        Of the expansion; the exact kernel's follows from `max_scale`.
    max_scale : float
        Largest scale that the exact kernel is asked for.
    dtype : torch.dtype
        Precision of the sums.
    device : torch.device, optional
        Device of the scales.
    """

    def __init__(
        self,
        kernel: str,
        degree: int | None = None,
        max_scale: float = 0.0,
        dtype: torch.dtype = torch.float32,
        device: torch.device | None = None,
    ) -> None:
        self.dtype, self.tolerance = dtype, torch.finfo(dtype).eps / 8
        # The last scales, and their truncated coefficients and slopes.
        self._last: tuple[Tensor, Tensor, Tensor] | None = None
        if kernel == "exact":
            max_error = max(_EXACT, self.tolerance)
            degree = choose_degree("chebyshev", max_scale, max_error)
        self.order = highest_order = int(degree or 0)
        is_chebyshev_kernel = kernel in ("exact", "chebyshev")
        self.expansion = None if is_chebyshev_kernel else EXPANSIONS[kernel]
        # enough quadrature nodes to avoid aliasing of higher coefficients
        n_chebyshev_nodes = highest_order + 1 if self.expansion else highest_order + 64
        chebyshev_nodes, transform_matrix = chebyshev_nodes_and_transform(
            n_chebyshev_nodes, highest_order
        )
        self.nodes = torch.from_numpy(chebyshev_nodes).to(device)
        self.transform = torch.from_numpy(transform_matrix).to(device)
        if self.expansion:
            node_polynomials = polynomial_values(
                self.expansion, self.nodes, highest_order
            )
            self.transform = node_polynomials @ self.transform

    def coefficients(self, scale: Tensor) -> tuple[Tensor, Tensor]:
        """Return float64 coefficients and slopes, of shape (n_rois, order + 1)."""
        s = scale.detach().double()
        if self.expansion:
            c, dc = self.expansion.coefficients(s, self.order)
        else:
            c = torch.exp(-s[:, None] * self.nodes)
            dc = -self.nodes * c
        return c @ self.transform, dc @ self.transform

    def truncated_coefs_and_slopes(self, scale: Tensor) -> tuple[Tensor, Tensor]:
        """Return the coefficients and slopes that exceed the precision of the sums.

        Those of the last scales are kept: a network needs them for statistics, for
        validation and for the next step.
        """
        # Comparison and truncation read values, which would synchronise a GPU.
        is_on_cpu = scale.device.type == "cpu"
        if is_on_cpu and self._last is not None:
            last_scale, c, dc = self._last
            if torch.equal(last_scale, scale):
                return c, dc
        c, dc = self.coefficients(scale)
        if is_on_cpu:
            n_terms = self._count_terms(torch.maximum(c.abs(), dc.abs()))
            c, dc = c[:, :n_terms], dc[:, :n_terms]
        c, dc = c.to(self.dtype), dc.to(self.dtype)
        if is_on_cpu:
            self._last = scale.detach().clone(), c, dc
        return c, dc

    def _count_terms(self, absolute_coefs: Tensor) -> int:
        """Return the number of terms before those whose sum is below the tolerance."""
        # an upper bound of the error of ending before each term, the last term first
        truncation_errors = absolute_coefs.amax(0).flip(0).cumsum(0)
        return max(1, int((truncation_errors > self.tolerance).sum()))

    def has_exact_slope(self, scale: Tensor) -> bool:
        r"""Return whether the kernel's slope is :math:`-\lambda` times itself.

        The heat kernel's is. An expansion's differs by a remainder, because it ends;
        only where that counts, a series of slopes has to be summed as well.
        """
        c, dc = self.coefficients(scale)
        if c.device.type != "cpu":
            return False
        # x T_n = (T_n-1 + T_n+1) / 2 gives the coefficients of lambda times the series
        remainder_coefficients, half_coefficients = (
            pad(dc, (0, 1)) + pad(c, (0, 1)),
            c / 2,
        )
        remainder_coefficients[:, 1:] += half_coefficients
        remainder_coefficients[:, 1] += half_coefficients[:, 0]
        remainder_coefficients[:, : c.shape[1] - 1] += half_coefficients[:, 1:]
        return float(remainder_coefficients.abs().sum(1).amax()) <= max(
            self.tolerance, 1e-15
        )

    def evaluate_polynomials(self, eigenvalues: Tensor) -> Tensor:
        """Return T_n of eigenvalues - 1, of shape (..., order + 1, n_rois)."""
        polynomials = polynomial_values(
            EXPANSIONS["chebyshev"], eigenvalues, self.order
        )
        return polynomials.to(self.dtype)


class _SumTermsFunction(torch.autograd.Function):
    """Y[t, p, f] = sum_n c_n(s_p) terms[n, t, p, f]: signals diffuse by their terms.

    Differentiable in scale; terms are those that :class:`GraphBatch` keeps.
    """

    @staticmethod
    def forward(
        ctx: Any,
        signal_terms: Tensor,
        region_scales: Tensor,
        chebyshev_series: ChebyshevSeries,
    ) -> Tensor:
        c, slope_coefficients = chebyshev_series.truncated_coefs_and_slopes(
            region_scales
        )
        ctx.save_for_backward(signal_terms, slope_coefficients, region_scales)
        return _sum_weighted_terms(signal_terms, c)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        signal_terms, slope_coefficients, region_scales = ctx.saved_tensors
        scale_slopes = _sum_weighted_terms(signal_terms, slope_coefficients)
        return (
            None,
            (grad_output * scale_slopes).sum((0, 2)).to(region_scales.dtype),
            None,
        )


class GraphBatch:
    """Scans prepared for diffusion: the terms of their features, and their graphs.

    Attributes
    ----------
    series : ChebyshevSeries
        Of the kernel.
    signal : Tensor of shape (order + 1, n_items, n_rois, n_channels)
        Terms of the features: all that a first layer needs of the graphs.
    graphs : tuple of Tensor
        Eigenvectors, minus eigenvalues, and T_n of each item's graph, or of one for
        all; empty unless further layers need them.
    chunk : int
        Items handled at once, to stay in cache; results agree to rounding.
    offset : Tensor of shape (n_items, n_classes) or None
        Logits to which a network adds its own.
    """

    _region_terms: "RegionTerms | None" = None

    def __init__(
        self,
        series: ChebyshevSeries,
        spectra: Iterable[Spectrum],
        X: Tensor,
        stores_graphs: bool = False,
    ) -> None:
        """Prepare features (n_items, n_rois, n_channels), on their device.

        `spectra` are of a few items each, in order, or of one graph for all.
        """
        self.series, self.chunk_size = series, 32 if X.device.type == "cpu" else 512
        self.signal = X.new_empty(series.order + 1, *X.shape)
        self.offset: Tensor | None = None
        stored_tensor_tuples, item_start = [], 0
        for spectrum in spectra:
            eigenvalues, eigenvectors = (
                spectrum_tensor.to(X.device) for spectrum_tensor in spectrum
            )
            # a block of one graph is the last block, or the graph shared by all items
            item_stop = (
                len(X) if len(eigenvectors) == 1 else item_start + len(eigenvectors)
            )
            item_slice, item_start = slice(item_start, item_stop), item_stop
            U = eigenvectors.to(X.dtype)
            polynomial_basis = series.evaluate_polynomials(eigenvalues)
            X_hat = U.mT @ X[item_slice]
            item_basis = polynomial_basis.expand(len(X_hat), -1, -1)
            weighted_signals = torch.einsum("tif,tni->tinf", X_hat, item_basis)
            signal_terms = (U @ weighted_signals.flatten(2)).reshape(
                weighted_signals.shape
            )
            self.signal[:, item_slice] = signal_terms.permute(2, 0, 1, 3)
            if stores_graphs:
                stored_tensor_tuples.append(
                    (U, -eigenvalues.to(series.dtype)[:, None], polynomial_basis)
                )
        self.graphs = tuple(
            torch.cat(graph_tensors)
            for graph_tensors in zip(*stored_tensor_tuples, strict=True)
        )

    @classmethod
    def from_terms(cls, series: ChebyshevSeries, signal: Tensor) -> "GraphBatch":
        """Return a batch for networks of one layer, which need terms alone."""
        graph_batch = cls(series, (), signal[0])
        graph_batch.signal = signal
        return graph_batch

    def select_items(self, item_indices: Tensor | slice) -> "GraphBatch":
        """Return the batch of some items; a slice copies nothing."""
        graph_batch = copy.copy(self)
        graph_batch.signal = self.signal[:, item_indices]
        graph_batch._region_terms = None
        if self._region_terms is not None and isinstance(item_indices, slice):
            graph_batch._region_terms = self._region_terms.select_items(item_indices)
        selected_tensors = (
            graph_tensor if len(graph_tensor) == 1 else graph_tensor[item_indices]
            for graph_tensor in self.graphs
        )
        graph_batch.graphs = tuple(selected_tensors)
        graph_batch.offset = None if self.offset is None else self.offset[item_indices]
        return graph_batch

    def region_terms(self, region_indices: Tensor) -> "RegionTerms":
        """Return the terms of these regions, region by region; keep them.

        Every call of a batch must name the same regions.
        """
        if self._region_terms is None:
            self._region_terms = RegionTerms.from_signal(
                self.signal[:, :, region_indices]
            )
            if len(region_indices) == self.signal.shape[2]:
                # Keep the terms once in memory.
                self.signal = self._region_terms.terms.permute(1, 3, 0, 2)
        return self._region_terms

    def diffuse(self, scale: Tensor, H: Tensor | None = None) -> Tensor:
        """Diffuse the features, or a signal H (n_items, n_rois, n_channels)."""
        if H is None:
            return _SumTermsFunction.apply(self.signal, scale, self.series)  # type: ignore[no-any-return]
        return _DiffusionFunction.apply(H, scale, self)  # type: ignore[no-any-return]

    def propagate(self, layer: torch.nn.Module, H: Tensor | None = None) -> Tensor:
        """Diffuse the features, or a signal H, at a layer's scales."""
        return self.diffuse(layer(), H)

    def iter_graphs_and_signals(self, *signals: Tensor) -> Iterator[tuple[Tensor, ...]]:
        """Yield stored graphs, and signals, of a few items at a time."""
        if len(self.graphs[0]) == 1:  # for all
            yield *self.graphs, *signals
            return
        for chunk_start in range(0, len(signals[0]), self.chunk_size):
            chunk_slice = slice(chunk_start, chunk_start + self.chunk_size)
            yield tuple(
                item_tensor[chunk_slice] for item_tensor in (*self.graphs, *signals)
            )


class RegionTerms:
    """The terms of the features with all items of a region side by side.

    Attributes
    ----------
    rows : Tensor of shape (n_rois, 1 + (order + 1) * n_channels, n_items)
        A row of ones, then the terms of every order, channel by channel.
    n_channels : int
    """

    def __init__(self, rows: Tensor, n_channels: int) -> None:
        self.rows, self.n_channels = rows, n_channels
        self._moments: tuple[Tensor, Tensor] | None = None
        # The last coefficients, and the covariances of their combination.
        self._last: tuple[Tensor, Tensor] | None = None

    @classmethod
    def from_signal(cls, signal: Tensor) -> "RegionTerms":
        """Return the terms of a signal (order + 1, n_items, n_rois, n_channels)."""
        n_orders, n_items, n_rois, n_channels = signal.shape
        rows = signal.new_ones(n_rois, 1 + n_orders * n_channels, n_items)
        rows[:, 1:].unflatten(1, (n_orders, n_channels)).copy_(
            signal.permute(2, 0, 3, 1)
        )
        return cls(rows, n_channels)

    @property
    def terms(self) -> Tensor:
        """The terms, of shape (n_rois, order + 1, n_channels, n_items)."""
        return self.rows[:, 1:].unflatten(1, (-1, self.n_channels))

    def select_items(self, item_slice: slice) -> "RegionTerms":
        """Return the terms of some items, without a copy."""
        return RegionTerms(self.rows[..., item_slice], self.n_channels)

    def diffuse(
        self,
        c: Tensor,
        means: Tensor,
        inverse_sds: Tensor,
        slope_coefficients: Tensor | None = None,
    ) -> Tensor:
        r"""Return standardised diffused features, ones and derivatives, as rows.

        Parameters
        ----------
        c : Tensor of shape (n_rois, n_terms)
            Coefficients of the terms.
        means, inverse_sds : Tensor of shape (n_rois, n_channels)
            Of the diffused features.
        slope_coefficients : Tensor of shape (n_rois, n_terms), optional
            Derivatives of `c` in the scales.

        Returns
        -------
        Tensor of shape (n_rois, n_rows, n_items)
            A row a channel, :math:`(\sum_n c_n T_n x - mean) / sd`; a row of ones;
            with `slope_coefficients`, a row a channel :math:`\sum_n c'_n T_n x` minus
            its mean over the items.
        """
        n_rois, n_terms = c.shape
        n_channels = self.n_channels
        n_rows = 1 + n_channels * (1 if slope_coefficients is None else 2)
        coefs = c.new_zeros(n_rois, n_rows, 1 + n_terms * n_channels)
        term_coefs = coefs[:, :, 1:].unflatten(2, (n_terms, n_channels))
        # Every channel is a combination of its own terms, and of the row of ones.
        term_coefs[:, :n_channels].diagonal(dim1=1, dim2=3).copy_(
            c[:, :, None] * inverse_sds[:, None]
        )
        coefs[:, :n_channels, 0] = -means * inverse_sds
        coefs[:, n_channels, 0] = 1.0
        if slope_coefficients is not None:
            term_coefs[:, n_channels + 1 :].diagonal(dim1=1, dim2=3).copy_(
                slope_coefficients[:, :, None].expand(-1, -1, n_channels)
            )
            coefs[:, n_channels + 1 :, 0] = -self._combine_means(slope_coefficients).to(
                c.dtype
            )
        return torch.bmm(coefs, self.rows[:, : coefs.shape[2]])

    def means_and_sds(self, c: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation of sum_n c[p, n] T_n x over the items.

        They are quadratic forms in c: no item is read again when the scales change.
        Both are of shape (n_rois, n_channels).
        """
        variances = (
            (self._compute_covariances_with(c) * c[:, None]).sum(2).clamp_min_(0.0)
        )
        return self._combine_means(c).to(c.dtype), variances.sqrt_().to(c.dtype)

    def combination_covariances(self, c: Tensor, slope_coefficients: Tensor) -> Tensor:
        """Return the covariance, (n_rois, n_channels), of two combinations of terms."""
        return (
            (self._compute_covariances_with(c) * slope_coefficients[:, None])
            .sum(2)
            .to(c.dtype)
        )

    def _combine_means(self, c: Tensor) -> Tensor:
        """Return the means over items of a combination of terms, in float64."""
        term_means, _ = self._compute_term_means_and_covariances()
        return (term_means[:, :, : c.shape[1]] * c[:, None]).sum(2)

    def _compute_covariances_with(self, c: Tensor) -> Tensor:
        """Return the covariances of a combination with each term, in float64.

        They are of shape (n_rois, n_channels, n_terms). Those of the last combination
        are kept, because a step asks twice.
        """
        if self._last is None or self._last[0] is not c:
            _, covariances = self._compute_term_means_and_covariances()
            n_terms = c.shape[1]
            covariances = covariances[:, :, :n_terms, :n_terms]
            self._last = c, (covariances * c[:, None, None]).sum(3)
        return self._last[1]

    def _compute_term_means_and_covariances(self) -> tuple[Tensor, Tensor]:
        """Return means and covariances over the items, computed once."""
        if self._moments is None:
            # Square in float64: at large scales the terms nearly cancel.
            region_moments = [
                _compute_means_and_covariances(terms.double().transpose(0, 1))
                for terms in self.terms
            ]
            region_means, region_covariances = zip(*region_moments, strict=True)
            self._moments = torch.stack(region_means), torch.stack(region_covariances)
        return self._moments


def _compute_means_and_covariances(channel_terms: Tensor) -> tuple[Tensor, Tensor]:
    """Return means and covariances of terms (n_channels, n_terms, n_items)."""
    term_means = channel_terms.mean(-1)
    term_deviations = channel_terms - term_means[..., None]
    return term_means, term_deviations @ term_deviations.mT / channel_terms.shape[-1]


class _DiffusionFunction(torch.autograd.Function):
    """Y = (U o E) U^T H; the derivative with respect to scale is formed forward.

    The rows U o E are computed again in the backward pass: reading them from memory
    takes as long.
    """

    @staticmethod
    def forward(
        ctx: Any, H: Tensor, region_scales: Tensor, graph_batch: GraphBatch
    ) -> Tensor:
        needs_slope = ctx.needs_input_grad[1]
        c, slope_coefficients = graph_batch.series.truncated_coefs_and_slopes(
            region_scales
        )
        has_exact_slope = needs_slope and graph_batch.series.has_exact_slope(
            region_scales
        )
        Y, scale_slopes = torch.empty_like(H), torch.empty_like(H) if needs_slope else H
        # allocating memory for the rows of every part would cost more than the sums
        eigenvector_buffer = torch.empty_like(
            graph_batch.graphs[0][: graph_batch.chunk_size]
        )
        for (
            U,
            neg_eigenvalues,
            polynomial_basis,
            signal,
            Y_chunk,
            slope_chunk,
        ) in graph_batch.iter_graphs_and_signals(H, Y, scale_slopes):
            spectral_signal = signal.mT @ U  # channels first: faster than its transpose
            weighted_eigenvectors = _weight_eigenvectors(
                c, U, polynomial_basis, eigenvector_buffer
            )
            _multiply_into(weighted_eigenvectors, spectral_signal.mT, Y_chunk)
            if has_exact_slope:
                _multiply_into(
                    weighted_eigenvectors,
                    (spectral_signal * neg_eigenvalues).mT,
                    slope_chunk,
                )
            elif needs_slope:
                _multiply_into(
                    _weight_eigenvectors(
                        slope_coefficients, U, polynomial_basis, eigenvector_buffer
                    ),
                    spectral_signal.mT,
                    slope_chunk,
                )
        ctx.batch = graph_batch
        ctx.save_for_backward(c, scale_slopes, region_scales)
        return Y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        c, scale_slopes, region_scales = ctx.saved_tensors
        scale_gradients = signal_gradients = None
        if ctx.needs_input_grad[1]:
            scale_gradients = (
                (grad_output * scale_slopes).sum((0, 2)).to(region_scales.dtype)
            )
        if ctx.needs_input_grad[0]:  # K^T g = U ((U o E)^T g): not symmetric
            signal_gradients, graph_batch = torch.empty_like(grad_output), ctx.batch
            eigenvector_buffer = torch.empty_like(
                graph_batch.graphs[0][: graph_batch.chunk_size]
            )
            for (
                U,
                _,
                polynomial_basis,
                signal,
                signal_gradient_chunk,
            ) in graph_batch.iter_graphs_and_signals(grad_output, signal_gradients):
                weighted_eigenvectors = _weight_eigenvectors(
                    c, U, polynomial_basis, eigenvector_buffer
                )
                _multiply_into(
                    U, (signal.mT @ weighted_eigenvectors).mT, signal_gradient_chunk
                )
        return signal_gradients, scale_gradients, None


def _weight_eigenvectors(
    c: Tensor, U: Tensor, polynomial_basis: Tensor, eigenvector_buffer: Tensor
) -> Tensor:
    """Return U o E, the eigenvectors weighted by a series."""
    truncated_basis = polynomial_basis[:, : c.shape[1]]
    weighted_eigenvectors = eigenvector_buffer[: len(U)]
    return torch.bmm(
        c.expand(len(truncated_basis), -1, -1),
        truncated_basis,
        out=weighted_eigenvectors,
    ).mul_(U)


def _multiply_into(
    matrix_batch: Tensor, signal_batch: Tensor, output_buffer: Tensor
) -> None:
    torch.bmm(
        matrix_batch.expand(len(signal_batch), -1, -1), signal_batch, out=output_buffer
    )


def _sum_weighted_terms(signal_terms: Tensor, c: Tensor) -> Tensor:
    """Return sum_n c[p, n] terms[n, t, p, f], over as many terms as c has."""
    term_weights = c.T[:, :, None].contiguous()
    weighted_sum = signal_terms[0] * term_weights[0]
    for signal_term, term_weight in zip(
        signal_terms[1:], term_weights[1:], strict=False
    ):
        weighted_sum.addcmul_(signal_term, term_weight)
    return weighted_sum
