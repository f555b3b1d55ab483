r"""The spectral engine: many small dense graphs, decomposed once.

With :math:`L = U \Lambda U^T`, the kernel of *any* variant is
:math:`K = (U \circ E) U^T` with :math:`E_{pi} = \sum_n c_n(s_p) P_n(\lambda_i)` (or
:math:`e^{-s_p \lambda_i}`): row p belongs to region p and its own scale. Two batched
products a layer, nothing stored but U.

The sum over n is rewritten in float64 in Chebyshev polynomials, whose values and
coefficients stay below 1: only that sum is then done in the working precision
(Hermite's own terms would be wrong by 0.02 there): :mod:`brainlsap.graph.rewriting`.
"""

import itertools
from collections.abc import Iterator

import torch
from torch import Tensor

from brainlsap._scratch import large_bytes, letting_go
from brainlsap.graph.bounds import polynomial_values
from brainlsap.graph.expansions import EXPANSIONS
from brainlsap.graph.laplacian import Spectrum
from brainlsap.graph.rewriting import Rewriting, Series
from brainlsap.graph.spectral_rows import Graphs
from brainlsap.graph.spectral_steps import Combine, Diffuse

# Chunks after which memory of eigenvectors that are mapped to a file is given back.
_CHUNKS_HELD = 16
# Graphs whose polynomials are made at once, in float64.
_AT_ONCE = 64


class SpectralEngine:
    """Heat diffusion over decomposed graphs, differentiable in signal and scale.

    Parameters
    ----------
    spectrum : Spectrum
        Of the distinct graphs, float64.
    graph_of : int Tensor of shape (n_items,) or None
        Graph of every item; None if item t belongs to graph t.
    kernel : {"exact", "chebyshev", "hermite", "laguerre"}
        How the heat kernel is made.
    degree : int or None
        Degree of the expansion; None for `exact`.
    span : float
        The paper's `b` (Chebyshev only).
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
        span: float = 2.0,
        max_scale: float | None = None,
        dtype: torch.dtype = torch.float32,
        chunk: int = 20,
    ) -> None:
        self.kernel, self.degree, self.span, self.chunk = kernel, degree, span, chunk
        self.vectors = spectrum.eigenvectors.to(dtype)
        self.eigenvalues = spectrum.eigenvalues.to(dtype)
        n_graphs = len(self.eigenvalues)
        self.shared = n_graphs == 1
        self.graph_of = torch.arange(n_graphs) if graph_of is None else graph_of
        self.in_order = graph_of is None
        self.rewriting: Rewriting | None = None
        self.basis = self.eigenvalues[:, None]
        if kernel != "exact" or max_scale is not None:
            device = spectrum.eigenvalues.device
            self.rewriting = Rewriting(
                kernel, degree, span, max_scale or 0.0, dtype, device
            )
            self.basis = _basis(spectrum.eigenvalues, self.rewriting.order, dtype)

    @property
    def order(self) -> int | None:
        """Degree of the Chebyshev series; None where exponentials are taken."""
        return None if self.rewriting is None else self.rewriting.order

    def select(self, items: Tensor | slice) -> "SpectralEngine":
        """Return the engine of some items; a slice of items in order copies nothing."""
        # A copy of their eigenvectors in order saves gathering them each time (a chunk
        # is then a view); beyond a little memory, graphs are shared and gathered.
        chosen = object.__new__(SpectralEngine)
        chosen.__dict__.update(self.__dict__)
        chosen.graph_of, chosen.in_order = self.graph_of[items], False
        if isinstance(items, slice):
            if self.in_order and not self.shared:
                chosen._take(items)
            return chosen
        wanted = len(items) * self.vectors[0].numel() * self.vectors.element_size()
        if not self.shared and len(items) > 1 and wanted <= large_bytes():
            chosen._take(chosen.graph_of)
        return chosen

    def _take(self, graphs: Tensor | slice) -> None:
        """Keep these graphs only, in the order of the items."""
        self.vectors = self.vectors[graphs]
        self.eigenvalues, self.basis = self.eigenvalues[graphs], self.basis[graphs]
        self.graph_of, self.in_order = torch.arange(len(self.vectors)), True

    def graphs(self, picked: slice | Tensor) -> Graphs:
        """Return the spectra of some graphs: views, where a slice picks them."""
        slopes = -self.eigenvalues[picked][:, None]
        return Graphs(self.vectors[picked], slopes, self.basis[picked])

    def chunks(self, *signals: Tensor) -> Iterator[tuple[Graphs, tuple[Tensor, ...]]]:
        """Return an iterator over the graphs and the signals of some items at a time.

        Parameters
        ----------
        *signals : Tensors of shape (n_items, ...)
            Of all items.

        Returns
        -------
        iterator of tuple of Graphs and of tuple of Tensors
            Of up to `chunk` items; views of the signals.
        """
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
        return letting_go(zip(graphs, parts, strict=True), _CHUNKS_HELD)

    def weights(self, scale: Tensor) -> Series | Tensor:
        """Return what rows are weighted by: a series, or the scales themselves."""
        dtype = self.vectors.dtype
        if self.rewriting is None:
            return scale.detach().to(dtype)
        return self.rewriting.series(scale, dtype)

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
        chunks = self.chunks(H)
        return torch.cat([graphs.vectors.mT @ h for graphs, (h,) in chunks])

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
        return Combine.apply(terms, scale, self)  # type: ignore[no-any-return]

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
        return Diffuse.apply(H, scale, self, False)  # type: ignore[no-any-return]

    def diffuse_spectrum(self, H_hat: Tensor, scale: Tensor) -> Tensor:
        """Diffuse signals given by their transform (the first layer's, made once).

        Parameters
        ----------
        H_hat : Tensor of shape (n_items, n_rois, n_channels)
            From :meth:`to_spectrum`; treated as constant.
        scale : Tensor of shape (n_rois,)
            Heat scale of every region.

        Returns
        -------
        Tensor of shape (n_items, n_rois, n_channels)
        """
        return Diffuse.apply(H_hat, scale, self, True)  # type: ignore[no-any-return]


def _basis(eigenvalues: Tensor, order: int, dtype: torch.dtype) -> Tensor:
    """Return the values of the Chebyshev polynomials, made in float64."""
    shape = len(eigenvalues), order + 1, eigenvalues.shape[1]
    basis = eigenvalues.new_empty(shape, dtype=dtype)
    for part in (slice(i, i + _AT_ONCE) for i in range(0, len(basis), _AT_ONCE)):
        basis[part] = polynomial_values(
            EXPANSIONS["chebyshev"], eigenvalues[part], order
        )
    return basis
