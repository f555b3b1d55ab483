"""Connectomes become Laplacians, and small dense Laplacians their spectra."""

import hashlib
import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from tqdm import tqdm

from brainlsap.exceptions import ParameterError

# Graphs prepared and decomposed in one go: in float64 all would take twice the memory.
_AT_ONCE = 16
# Rounding of Laplacians that were made in float32, or stored with few digits.
_TOLERANCE = 1e-3
_ADVICE = "Make L with normalized_laplacian(W) from a symmetric connectome W."


def normalized_laplacian(W: Tensor | np.ndarray | sparse.sparray) -> Tensor:
    r"""Return the normalised Laplacian of undirected weighted graphs.

    .. math:: L = I - D^{-1/2} W D^{-1/2}, \qquad D = \mathrm{diag}(W \mathbf 1)

    Its spectrum lies in [0, 2]. An isolated node (degree 0) has a row of zeros,
    diagonal included: it has nobody to share heat with, so its kernel row is that
    of the identity and it keeps its own value at every scale.

    Parameters
    ----------
    W : array, Tensor or SciPy sparse matrix of shape (..., n_rois, n_rois)
        Symmetric, finite, non-negative weights in any unit. Self loops count towards
        the degree. Leading axes are for many dense graphs.

    Returns
    -------
    Tensor of shape (..., n_rois, n_rois)
        Of the input's precision (float64 for integers, float32 for halves); sparse
        CSR if `W` is a SciPy sparse matrix.

    Raises
    ------
    ParameterError
        If `W` is not square, or not symmetric, finite and non-negative.

    Examples
    --------
    >>> normalized_laplacian(np.array([[0.0, 4.0], [4.0, 0.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    if sparse.issparse(W):
        return _sparse_laplacian(sparse.csr_array(W))
    W = as_tensor(W)
    W = W if W.is_floating_point() else W.double()
    W = W.float() if W.element_size() < 4 else W  # halves end at 65504
    if W.ndim < 2 or W.shape[-1] != W.shape[-2]:
        raise ParameterError(
            f"W must have shape (..., n_rois, n_rois), got {tuple(W.shape)}."
        )
    if W.numel():
        # of the largest weight: sums of counts in another order differ in rounding
        allowed = 1e-5 * W.mT + 1e-6 * W.amax((-2, -1), keepdim=True)
        symmetric = bool(((W - W.mT).abs() <= allowed).all())
        _check_weights(bool(torch.isfinite(W).all()), float(W.min()), symmetric)
    degree = W.sum(dim=-1)
    root = torch.where(degree > 0, degree, torch.inf).rsqrt()
    laplacian = -(root[..., :, None] * W * root[..., None, :])
    diagonal = torch.diagonal(laplacian, dim1=-2, dim2=-1)
    diagonal += (degree > 0).to(W.dtype)
    return laplacian + 0.0  # no -0.0 where two regions are not joined


def _sparse_laplacian(W: sparse.csr_array) -> Tensor:
    if W.shape[0] != W.shape[1]:
        raise ParameterError(f"W must have shape (n_rois, n_rois), got {W.shape}.")
    W = W.astype(W.dtype if W.dtype in (np.float32, np.float64) else np.float64)
    largest = W.data.max(initial=0.0)
    gap = abs(W - W.T).max() if W.nnz else 0.0
    finite = bool(np.isfinite(W.data).all())
    _check_weights(finite, W.data.min(initial=0.0), gap <= 1e-6 * largest)
    degree = W.sum(axis=1)
    with np.errstate(divide="ignore"):
        root = np.where(degree > 0, degree**-0.5, 0.0).astype(W.dtype)
    scaled = sparse.diags_array(root) @ W @ sparse.diags_array(root)
    identity = sparse.diags_array((degree > 0).astype(W.dtype))
    return sparse_tensor(sparse.csr_array(identity - scaled))


def _check_weights(finite: bool, lowest: float, symmetric: bool) -> None:
    if not finite:
        raise ParameterError("W must be finite; it holds NaN or infinite weights.")
    if lowest < 0:
        raise ParameterError(
            f"W must not be negative, its smallest weight is {lowest:g}. The heat "
            "kernel needs non-negative weights; clip or square correlations first."
        )
    if not symmetric:
        raise ParameterError("W must be symmetric; symmetrise it as (W + W.T) / 2.")


def sparse_tensor(matrix: sparse.csr_array) -> Tensor:
    """Return a SciPy sparse matrix as sparse CSR Tensor; doubled entries are added."""
    if not matrix.has_canonical_format:  # products of SciPy's are not
        matrix = matrix.copy()
        matrix.sum_duplicates()
    with warnings.catch_warnings():
        # torch calls its CSR layout beta; products and gradients are tested here
        warnings.filterwarnings("ignore", "Sparse CSR tensor support", UserWarning)
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int32)),
            torch.from_numpy(matrix.indices.astype(np.int32)),
            torch.from_numpy(matrix.data),
            size=matrix.shape,
            check_invariants=True,  # of those from outside, wrong ones would crash
        )


def as_tensor(values: Tensor | np.ndarray | float) -> Tensor:
    """Return a Tensor; a copy of read-only arrays, which PyTorch warns of."""
    if isinstance(values, np.ndarray) and not values.flags.writeable:
        values = values.copy()
    return torch.as_tensor(values)


def as_operator(L: Tensor | np.ndarray | sparse.sparray) -> Tensor:
    """Return a square operator as a Tensor, sparse ones as CSR, float32 at least."""
    if sparse.issparse(L):
        L = sparse_tensor(sparse.csr_array(L))
    L = as_tensor(L)
    if L.ndim < 2 or L.shape[-1] != L.shape[-2]:
        raise ParameterError(
            f"L must have shape (..., n_rois, n_rois), got {tuple(L.shape)}."
        )
    if L.layout == torch.sparse_coo:
        L = L.to_sparse_csr()
    return L.to(working_type(L))


def working_type(*given: Tensor) -> torch.dtype:
    """Return the highest precision given, float32 at least; integers are float64."""
    found = torch.float32
    for one in given:
        real = one.dtype if one.is_floating_point() else torch.float64
        found = torch.promote_types(found, real)
    return found


def check_symmetric(L: Tensor) -> None:
    """Raise unless an operator is finite and symmetric (sparse: on random signals).

    An eigendecomposition reads one half of a matrix: it would be wrong in silence.
    """
    values = L if L.layout == torch.strided else L.values()
    if not bool(torch.isfinite(values).all()):
        raise ParameterError(f"L holds NaN or infinite values. {_ADVICE}")
    if not L.numel():
        return
    if L.layout == torch.strided:
        gap, size = (L - L.mT).abs().amax(), L.abs().amax()
    else:
        x, y = _signals(L), _signals(L).flip(0)
        gap = ((y * (L @ x)).sum() - (x * (L @ y)).sum()).abs()
        size = x.norm() * (L @ y).norm()
    if float(gap) > _TOLERANCE * float(size.clamp_min(1e-30)):
        raise ParameterError(
            f"L must be symmetric, entries differ from their mirror images by up to "
            f"{float(gap):.2g}. {_ADVICE}"
        )


def check_spectrum(L: Tensor) -> None:
    """Raise if an eigenvalue outside [0, 2] shows itself in a few products.

    The expansions are right between 0 and 2 and grow without bound outside.
    """
    if not L.shape[-1]:
        return
    highest = _largest_eigenvalue(lambda x: L @ x, _signals(L))
    # of 2 I - L the largest belongs to the lowest of L
    lowest = 2.0 - _largest_eigenvalue(lambda x: 2.0 * x - L @ x, _signals(L))
    for found in (highest, lowest):
        if not -_TOLERANCE <= found <= 2.0 + _TOLERANCE:
            raise ParameterError(
                f"L has an eigenvalue of about {found:.3g}; those of a normalised "
                f"Laplacian lie between 0 and 2, and the kernels are right only there. "
                f"{_ADVICE}"
            )


def _signals(L: Tensor) -> Tensor:
    # numbers of its own: the caller's generators stay as they were
    drawn = np.random.default_rng(0).standard_normal((L.shape[-1], 1))
    x = torch.from_numpy(drawn).to(L.device, L.dtype)
    return x.expand(*L.shape[:-2], *x.shape) if L.ndim > 2 else x


def _largest_eigenvalue(product: Callable[[Tensor], Tensor], x: Tensor) -> float:
    """Return a lower bound of the largest eigenvalue, by power iteration."""
    quotient = x.new_zeros(())
    for _ in range(12):
        x = x / x.norm(dim=(-2, -1), keepdim=True).clamp_min(1e-30)
        moved = product(x)
        quotient = (x * moved).sum((-2, -1))
        x = moved
    return float(quotient.max())


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues and eigenvectors of many small graphs.

    Parameters
    ----------
    eigenvalues : Tensor of shape (n_graphs, n_rois)
        Ascending, in [0, 2].
    eigenvectors : Tensor of shape (n_graphs, n_rois, n_rois)
        Column i belongs to eigenvalue i.
    """

    eigenvalues: Tensor
    eigenvectors: Tensor


def decompose(
    L: Tensor, dtype: torch.dtype = torch.float64, overwrite: bool = False
) -> Spectrum:
    """Decompose dense Laplacians, in float64 whatever their precision.

    Parameters
    ----------
    L : Tensor of shape (n_graphs, n_rois, n_rois)
        Normalised Laplacians.
    dtype : torch.dtype
        What the eigenvectors are kept in.
    overwrite : bool
        Put the eigenvectors into the memory of `L`, which must be of `dtype`: no
        second array of that size is needed, and the Laplacians are lost.

    Returns
    -------
    Spectrum
        Eigenvalues are float64, clipped to [0, 2], where the true ones lie.

    Raises
    ------
    ParameterError
        If `L` is to be overwritten in another precision.

    Examples
    --------
    >>> L = normalized_laplacian(np.ones((1, 2, 2)) - np.eye(2))
    >>> decompose(L).eigenvalues.tolist()
    [[0.0, 2.0]]
    """
    if overwrite and L.dtype != dtype:
        raise ParameterError(
            f"overwrite puts eigenvectors of {dtype} into L, which is {L.dtype}; give "
            "L in that precision, or leave overwrite out."
        )
    eigenvalues = L.new_empty(L.shape[:-1], dtype=torch.float64)
    eigenvectors = L if overwrite else L.new_empty(L.shape, dtype=dtype)
    for start in range(0, len(L), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        eigenvalues[part], eigenvectors[part] = torch.linalg.eigh(L[part].double())
    return Spectrum(eigenvalues.clamp_(0.0, 2.0), eigenvectors)


class SpectrumCache:
    """Spectra by the hash of the prepared connectome, the oldest dropped first.

    Folds, kernels and seeds see the same graphs again and again, and a shared
    connectome is one graph however many people use it.

    Parameters
    ----------
    max_bytes : int
        Memory for eigenvectors between calls; what does not fit is made again.

    Examples
    --------
    >>> W = np.broadcast_to(1.0 - np.eye(3), (5, 3, 3))
    >>> spectrum, graph_of = SpectrumCache().spectra(W)
    >>> spectrum.eigenvalues.shape, graph_of.tolist()
    (torch.Size([1, 3]), [0, 0, 0, 0, 0])
    """

    def __init__(self, max_bytes: int = 1_000_000_000) -> None:
        self.max_bytes = max_bytes
        self._kept: OrderedDict[bytes, Spectrum] = OrderedDict()
        self._held = 0

    def spectra(
        self,
        W: np.ndarray,
        prepare: Callable[[np.ndarray, int], np.ndarray] | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> tuple[Spectrum, np.ndarray]:
        """Return the spectra of the distinct graphs, and each scan's graph.

        Parameters
        ----------
        W : array of shape (n_scans, n_rois, n_rois)
            Connectomes; prepared ones where `prepare` is not given.
        prepare : callable, optional
            Takes some connectomes and the number of the first of them, and returns
            them prepared.
        dtype : torch.dtype
            What the eigenvectors are wanted in.

        Returns
        -------
        spectrum : Spectrum
            Of the distinct graphs; eigenvalues in float64.
        graph_of : int array of shape (n_scans,)
            Row of `spectrum` that belongs to each scan.
        """
        shared = len(W) > 1 and W.strides[0] == 0
        looked_at = W[:1] if shared else W
        n_graphs, n_rois = looked_at.shape[:2]
        # as many as there may be: rows that stay empty take no memory
        values = torch.empty(n_graphs, n_rois, dtype=torch.float64)
        vectors = torch.empty(n_graphs, n_rois, n_rois, dtype=dtype)
        row_of: dict[bytes, int] = {}
        graph_of = []
        starts = range(0, n_graphs, _AT_ONCE)
        # shown, at a terminal, to those who wait longer than five seconds
        bar = {"delay": 5.0, "leave": False, "disable": None}
        for start in tqdm(starts, "decomposing", unit="graph", unit_scale=16, **bar):
            some = looked_at[start : start + _AT_ONCE]
            some = some if prepare is None else prepare(some, start)
            for one in some:
                content = np.ascontiguousarray(one).tobytes() + str(dtype).encode()
                key = hashlib.blake2b(content, digest_size=16).digest()
                if key not in row_of:
                    row = row_of[key] = len(row_of)
                    found = self._look_up(key, one, dtype, row_of)
                    values[row], vectors[row] = found.eigenvalues, found.eigenvectors
                graph_of.append(row_of[key])
        spectrum = Spectrum(values[: len(row_of)], vectors[: len(row_of)])
        return spectrum, np.zeros(len(W), int) if shared else np.array(graph_of)

    def _look_up(
        self, key: bytes, W: np.ndarray, dtype: torch.dtype, used: dict[bytes, int]
    ) -> Spectrum:
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        spectrum = decompose(normalized_laplacian(np.array(W)[None]), dtype)
        size = spectrum.eigenvectors.nbytes
        # those used now come last: where the first is one of them, all are
        while self._held + size > self.max_bytes and self._kept:
            if next(iter(self._kept)) in used:
                return spectrum
            self._held -= self._kept.popitem(last=False)[1].eigenvectors.nbytes
        self._kept[key] = spectrum
        self._held += size
        return spectrum
