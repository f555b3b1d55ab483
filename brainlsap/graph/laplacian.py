"""Connectomes become Laplacians, and small dense Laplacians their spectra."""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from tqdm.auto import tqdm

from brainlsap.exceptions import ParameterError
from brainlsap.graph.connectomes import Preparation

# Graphs decomposed in one batch: all at once, in float64, would take twice the memory.
SPECTRA_AT_ONCE = 16
# Tolerance for Laplacians computed in float32 or stored with few digits.
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
    W = as_float(W)
    _check_square("W", W)
    # relative to the largest weight: sums in another order differ by rounding
    max_asymmetry = 1e-5 * W.mT + 1e-6 * W.amax((-2, -1), keepdim=True)
    is_symmetric = bool(((W - W.mT).abs() <= max_asymmetry).all())
    _check_weights(float(W.min()), float(W.max()), is_symmetric)
    degree = W.sum(dim=-1)
    root = torch.where(degree > 0, degree, torch.inf).rsqrt()
    laplacian = -(root[..., :, None] * W * root[..., None, :])
    diagonal = torch.diagonal(laplacian, dim1=-2, dim2=-1)
    diagonal += (degree > 0).to(W.dtype)
    return laplacian + 0.0  # no -0.0 where two regions are not joined


def _sparse_laplacian(W: sparse.csr_array) -> Tensor:
    _check_square("W", W)
    W = W.astype(np.result_type(W.dtype, np.float32))
    lowest, highest = W.data.min(initial=0.0), W.data.max(initial=0.0)
    _check_weights(lowest, highest, abs(W - W.T).max() <= 1e-6 * highest)
    degree = W.sum(axis=1)
    with np.errstate(divide="ignore"):
        root = np.where(degree > 0, degree**-0.5, 0.0).astype(W.dtype)
    normalized_weights = sparse.diags_array(root) @ W @ sparse.diags_array(root)
    identity = sparse.diags_array((degree > 0).astype(W.dtype))
    return csr_tensor(sparse.csr_array(identity - normalized_weights))


def _check_square(name: str, matrix: Tensor | sparse.csr_array) -> None:
    shape = tuple(matrix.shape)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ParameterError(
            f"{name} must have shape (..., n_rois, n_rois), got {shape}."
        )


def _check_weights(lowest: float, highest: float, is_symmetric: bool) -> None:
    for is_met, requirement in (
        (np.isfinite([lowest, highest]).all(), "be finite; it holds NaN or infinity"),
        (lowest >= 0, f"not be negative, its smallest weight is {lowest:g}"),
        (is_symmetric, "be symmetric; symmetrise it as (W + W.T) / 2"),
    ):
        if not is_met:
            raise ParameterError(f"W must {requirement}.")


def as_float(values: Tensor | np.ndarray | float) -> Tensor:
    """Return a Tensor of float32 or float64, which integers become."""
    if isinstance(values, np.ndarray) and not values.flags.writeable:
        values = values.copy()  # PyTorch warns of read-only arrays
    values = torch.as_tensor(values)
    if not values.is_floating_point():
        return values.double()
    return values.float() if values.element_size() < 4 else values


def as_operator(L: Tensor | np.ndarray) -> Tensor:
    """Return a square operator as a Tensor."""
    L = as_float(L)
    _check_square("L", L)
    return L


def csr_tensor(matrix: sparse.csr_array, values: Tensor | None = None) -> Tensor:
    """Return a SciPy CSR matrix as a tensor, or the pattern of one with `values`."""
    if values is None:
        rows, columns = (
            index_array.astype(np.int32)
            for index_array in (matrix.indptr, matrix.indices)
        )
        values = matrix.data
    else:
        rows, columns = matrix.crow_indices(), matrix.col_indices()
    with warnings.catch_warnings():
        # Silence PyTorch's beta warning: our tests cover products and gradients
        warnings.filterwarnings("ignore", "Sparse ", UserWarning)
        return torch.sparse_csr_tensor(rows, columns, values, matrix.shape)


def check_operator(L: Tensor) -> None:
    """Raise unless L is symmetric with eigenvalues in [0, 2], as random signals show.

    An eigendecomposition reads one half of a matrix, and the expansions grow without
    bound outside: both would be wrong in silence.
    """
    # a private generator: the caller's random state must not change
    random_vectors = np.random.default_rng(0).standard_normal((2, L.shape[-1], 1))
    x, y = torch.from_numpy(random_vectors).to(L.device, L.dtype)
    gap = ((y * (L @ x)).sum((-2, -1)) - (x * (L @ y)).sum((-2, -1))).abs()
    size = x.norm() * (L @ y).norm(dim=(-2, -1))
    if not bool((gap <= _TOLERANCE * size).all()):
        raise ParameterError(f"L must be symmetric and finite. {_ADVICE}")
    # power iteration towards the highest of L, and of 2 I - L, the lowest of L
    for shift, sign in ((0.0, 1.0), (2.0, -1.0)):
        current = x
        for _ in range(12):
            norm = current.norm(dim=(-2, -1), keepdim=True)
            previous = current / norm.clamp_min(1e-30)
            current = shift * previous + sign * (L @ previous)
        eigenvalue = float((previous * current).sum((-2, -1)).max())
        if eigenvalue > 2.0 + _TOLERANCE:
            raise ParameterError(
                f"L has an eigenvalue of about {shift + sign * eigenvalue:.3g}; those "
                f"of a normalised Laplacian lie between 0 and 2. {_ADVICE}"
            )


class Spectrum(NamedTuple):
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


def decompose(L: Tensor, dtype: torch.dtype = torch.float64) -> Spectrum:
    """Decompose dense Laplacians, in float64 whatever their precision.

    Parameters
    ----------
    L : Tensor of shape (n_graphs, n_rois, n_rois)
        Normalised Laplacians.
    dtype : torch.dtype
        What the eigenvectors are kept in.

    Returns
    -------
    Spectrum
        Eigenvalues are float64, clipped to [0, 2], where the true ones lie.

    Examples
    --------
    >>> L = normalized_laplacian(np.ones((1, 2, 2)) - np.eye(2))
    >>> decompose(L).eigenvalues.tolist()
    [[0.0, 2.0]]
    """
    batches = [torch.linalg.eigh(batch.double()) for batch in L.split(SPECTRA_AT_ONCE)]
    values = torch.cat([values for values, _ in batches]).clamp_(0.0, 2.0)
    return Spectrum(values, torch.cat([vectors.to(dtype) for _, vectors in batches]))


class SpectrumCache:
    """Spectra by the hash of the connectome as it came, and its preparation.

    Folds, models and starts of one process see the same graphs again and again; one
    that is known is neither prepared nor decomposed again.

    Parameters
    ----------
    max_bytes : int
        Memory for eigenvectors between calls; what does not fit is made again.

    Examples
    --------
    >>> W = 1.0 - np.eye(3)[None].repeat(5, 0)
    >>> (spectrum,) = SpectrumCache().blocks(W, Preparation())
    >>> spectrum.eigenvalues.shape
    torch.Size([5, 3])
    """

    def __init__(self, max_bytes: int = 1_000_000_000) -> None:
        self.max_bytes = max_bytes
        self._spectra: dict[tuple, Spectrum] = {}
        self._n_bytes = 0

    def blocks(
        self,
        W: np.ndarray,
        preparation: Preparation,
        dtype: torch.dtype = torch.float32,
    ) -> Iterator[Spectrum]:
        """Yield the spectra of a few connectomes at a time.

        Parameters
        ----------
        W : array of shape (n_graphs, n_rois, n_rois)
            Connectomes as they came.
        preparation : Preparation
            As learned from training scans.
        dtype : torch.dtype
            What the eigenvectors are wanted in.

        Yields
        ------
        Spectrum
            Of `SPECTRA_AT_ONCE` graphs; eigenvalues in float64.
        """
        preparation_key = (
            dtype,
            *(_as_key(array) for array in vars(preparation).values()),
        )
        starts = range(0, len(W), SPECTRA_AT_ONCE)
        # shown, at a terminal, to those who wait longer than five seconds
        for start in tqdm(starts, "spectra", delay=5.0, leave=False, disable=None):
            batch = W[start : start + SPECTRA_AT_ONCE]
            keys = [(_as_key(array), *preparation_key) for array in batch]
            new_rows = {
                key: row for row, key in enumerate(keys) if key not in self._spectra
            }
            new_spectra: dict[tuple, Spectrum] = {}
            if new_rows:
                weights = preparation.apply(batch[list(new_rows.values())])
                decomposed = decompose(normalized_laplacian(weights), dtype)
                new_spectra = dict(
                    zip(new_rows, map(Spectrum, *decomposed), strict=True)
                )
                n_bytes = decomposed.eigenvectors.nbytes
                is_within_limit = self._n_bytes + n_bytes <= self.max_bytes
                if (
                    start == 0
                    and len(new_rows) == len(set(keys))
                    and not is_within_limit
                ):
                    self._spectra, self._n_bytes = {}, 0  # filled by another cohort
                if self._n_bytes + n_bytes <= self.max_bytes:
                    self._spectra |= new_spectra
                    self._n_bytes += n_bytes
            spectra = [
                new_spectra[key] if key in new_spectra else self._spectra[key]
                for key in keys
            ]
            yield Spectrum(*map(torch.stack, zip(*spectra, strict=True)))


def _as_key(value: Any) -> Any:
    """Return a value, or the hash of an array's bytes: 64 bits, keyed anew each run."""
    return hash(value.tobytes()) if isinstance(value, np.ndarray) else value
