r"""The spectral engine: many small dense graphs, decomposed once.

With :math:`L = U \Lambda U^T`, the kernel of *any* variant is
:math:`K = (U \circ E) U^T` with :math:`E_{pi} = \sum_n c_n(s_p) P_n(\lambda_i)` (or
:math:`e^{-s_p \lambda_i}`): row p belongs to region p and its own scale. Two batched
products a layer, nothing stored but U.

The sum over n is a polynomial of the kernel's degree, so it is rewritten in float64
in Chebyshev polynomials, whose values and coefficients stay below 1: only that sum is
then done in the working precision (Hermite's terms would be wrong by 0.02 there).
"""

import numpy as np
import torch
from torch import Tensor

from brainlsap.graph.bounds import choose_degree, polynomial_values
from brainlsap.graph.expansions import EXPANSIONS
from brainlsap.graph.laplacian import Spectrum
from brainlsap.graph.spectral_steps import Combine, Diffuse

# The exact kernel's first layer is interpolated to this error: rounding of float64.
_EXACT = 1e-13
# A copy of the eigenvectors in the order of the items saves gathering them each time.
_COPY_BYTES = 1_000_000_000


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
        Largest scale that will be asked for; lets the exact kernel precompute a
        first layer (:meth:`terms`), by interpolation to 1e-13.
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
        chunk: int = 16,
    ) -> None:
        self.kernel, self.degree, self.span, self.chunk = kernel, degree, span, chunk
        self.vectors = spectrum.eigenvectors.to(dtype)
        self.eigenvalues = spectrum.eigenvalues.to(dtype)
        n_graphs = len(self.eigenvalues)
        self.shared = n_graphs == 1
        self.graph_of = torch.arange(n_graphs) if graph_of is None else graph_of
        self.in_order = graph_of is None
        self.order = degree if kernel != "exact" else None
        if kernel == "exact" and max_scale is not None:
            self.order = choose_degree("chebyshev", max_scale, _EXACT)
        self.basis = self.eigenvalues[:, None]
        if self.order is not None:
            chebyshev = EXPANSIONS["chebyshev"]
            values = polynomial_values(chebyshev, spectrum.eigenvalues, self.order)
            self.basis = values.to(dtype)
            self._prepare_rewriting(self.order, spectrum.eigenvalues.device)

    def _prepare_rewriting(self, order: int, device: torch.device) -> None:
        """Store nodes, and the cosine transform from values there to coefficients."""
        angle = np.pi * (np.arange(order + 1) + 0.5) / (order + 1)
        transform = np.cos(angle[:, None] * np.arange(order + 1)) * 2 / (order + 1)
        transform[:, 0] /= 2
        self.nodes = torch.from_numpy(1.0 + np.cos(angle)).to(device)
        self.transform = torch.from_numpy(transform).to(device)
        if self.kernel != "exact":
            expansion = EXPANSIONS[self.kernel]
            values = polynomial_values(expansion, self.nodes, order, self.span)
            self.transform = values @ self.transform

    def select(self, items: Tensor) -> "SpectralEngine":
        """Return the engine of some items, given by their numbers."""
        # Their eigenvectors are copied in order while that takes little memory (a
        # chunk is then a view of them); beyond, graphs are shared and gathered.
        chosen = object.__new__(SpectralEngine)
        chosen.__dict__.update(self.__dict__)
        chosen.graph_of, chosen.in_order = self.graph_of[items], False
        wanted = len(items) * self.vectors[0].numel() * self.vectors.element_size()
        if not self.shared and len(items) > 1 and wanted <= _COPY_BYTES:
            for name in ("vectors", "eigenvalues", "basis"):
                setattr(chosen, name, getattr(self, name)[chosen.graph_of])
            chosen.graph_of = torch.arange(len(items))
            chosen.in_order = True
        return chosen

    def coefficients(self, scale: Tensor) -> tuple[Tensor, Tensor]:
        """Return Chebyshev coefficients of the kernel and their slopes, float64.

        Parameters
        ----------
        scale : Tensor of shape (n_rois,)
            Heat scale of every region.

        Returns
        -------
        tuple of two Tensors of shape (n_rois, order + 1)
        """
        s = scale.detach().double()
        if self.kernel == "exact":
            c = torch.exp(-s[:, None] * self.nodes)
            dc = -self.nodes * c
        else:
            expansion = EXPANSIONS[self.kernel]
            c, dc = expansion.coefficients(s, self.degree or 0, self.span)
            if self.kernel == "chebyshev" and self.span == 2.0:
                return c, dc
        return c @ self.transform, dc @ self.transform

    def graphs(self, part: slice) -> slice | Tensor:
        """Return what picks the graphs of some items: a view where possible."""
        return part if self.in_order else self.graph_of[part]

    def weighted_vectors(
        self,
        weights: tuple[Tensor, Tensor],
        picked: slice | Tensor,
        slope: bool,
        workspace: Tensor | None = None,
    ) -> Tensor:
        """Return U o E, and below it U o dE/ds if asked for.

        Parameters
        ----------
        weights : tuple of Tensor
            From :meth:`coefficients`; for `exact` the scales, twice.
        picked : slice or int Tensor
            Graphs.
        slope : bool
            Whether the derivative is wanted too (not for `exact`: there it is
            minus eigenvalue times the response).
        workspace : Tensor of shape (chunk, n_rois or 2 n_rois, n_rois), optional
            From :meth:`workspace`; fresh memory costs more than the sums.

        Returns
        -------
        Tensor of shape (n_graphs, n_rois or 2 n_rois, n_rois)
        """
        U = self.vectors[picked]
        if workspace is None:
            workspace = self.workspace(len(U), slope)
        rows = workspace[: len(U)]
        if self.kernel == "exact":
            rates = -self.eigenvalues[picked][:, None]
            return torch.mul(weights[0][:, None], rates, out=rows).exp_().mul_(U)
        c = torch.cat(weights) if slope else weights[0]
        torch.bmm(c.expand(len(U), -1, -1), self.basis[picked], out=rows)
        n_rois = U.shape[-1]
        rows.view(len(U), -1, n_rois, n_rois).mul_(U[:, None])
        return rows

    def workspace(self, n_items: int, slope: bool) -> Tensor:
        """Return memory for the weighted vectors of a chunk.

        Parameters
        ----------
        n_items : int
            In the chunk.
        slope : bool
            Whether the derivative is wanted too.

        Returns
        -------
        Tensor of shape (n_items, n_rois or 2 n_rois, n_rois)
        """
        n_rois = self.vectors.shape[-1]
        n_rows = 2 * n_rois if slope and self.kernel != "exact" else n_rois
        return self.vectors.new_empty(min(self.chunk, n_items), n_rows, n_rois)

    def weights(self, scale: Tensor) -> tuple[Tensor, Tensor]:
        """Return what :meth:`weighted_vectors` takes, in the working precision."""
        dtype = self.vectors.dtype
        if self.kernel == "exact":
            return (scale.detach().to(dtype),) * 2
        c, dc = self.coefficients(scale)
        return c.to(dtype), dc.to(dtype)

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
        parts = self.parts(H)
        return torch.cat([self.vectors[self.graphs(i)].mT @ H[i] for i in parts])

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
        Tensor of shape (n_items, n_rois, n_channels, order + 1)
        """
        parts = []
        for part in self.parts(H_hat):
            graphs = slice(0, 1) if self.shared else self.graphs(part)
            values = self.basis[graphs].expand(len(H_hat[part]), -1, -1)
            weighted = torch.einsum("tif,tni->tifn", H_hat[part], values)
            joined = self.vectors[graphs] @ weighted.flatten(2)
            parts.append(joined.reshape(weighted.shape))
        return torch.cat(parts)

    def combine(self, terms: Tensor, scale: Tensor) -> Tensor:
        """Diffuse signals given by their terms; differentiable in scale.

        Parameters
        ----------
        terms : Tensor of shape (n_items, n_rois, n_channels, order + 1)
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

    def parts(self, H: Tensor) -> list[slice]:
        """Return the chunks of the items."""
        return [slice(i, i + self.chunk) for i in range(0, len(H), self.chunk)]
