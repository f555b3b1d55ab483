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

# Graphs prepared and decomposed in one go: in float64 all would take twice the memory.
SPECTRA_AT_ONCE = 16
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
    W = as_float(W)
    _check_square("W", W)
    # of the largest weight: sums of counts in another order differ in rounding
    allowed = 1e-5 * W.mT + 1e-6 * W.amax((-2, -1), keepdim=True)
    symmetric = bool(((W - W.mT).abs() <= allowed).all())
    _check_weights(float(W.min()), float(W.max()), symmetric)
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
    scaled = sparse.diags_array(root) @ W @ sparse.diags_array(root)
    identity = sparse.diags_array((degree > 0).astype(W.dtype))
    return csr_tensor(sparse.csr_array(identity - scaled))


def _check_square(name: str, matrix: Tensor | sparse.csr_array) -> None:
    shape = tuple(matrix.shape)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ParameterError(
            f"{name} must have shape (..., n_rois, n_rois), got {shape}."
        )


def _check_weights(lowest: float, highest: float, symmetric: bool) -> None:
    for good, what in (
        (np.isfinite([lowest, highest]).all(), "be finite; it holds NaN or infinity"),
        (lowest >= 0, f"not be negative, its smallest weight is {lowest:g}"),
        (symmetric, "be symmetric; symmetrise it as (W + W.T) / 2"),
    ):
        if not good:
            raise ParameterError(f"W must {what}.")


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


def csr_tensor(like: Any, values: Tensor | None = None) -> Tensor:
    """Return a SciPy CSR matrix as a tensor, or other values at a tensor's places."""
    if values is None:
        rows, columns = (one.astype(np.int32) for one in (like.indptr, like.indices))
        values = like.data
    else:
        rows, columns = like.crow_indices(), like.col_indices()
    with warnings.catch_warnings():
        # that the layout is beta; products and gradients are tested here
        warnings.filterwarnings("ignore", "Sparse ", UserWarning)
        return torch.sparse_csr_tensor(rows, columns, values, like.shape)


def check_operator(L: Tensor) -> None:
    """Raise unless L is symmetric and its eigenvalues lie in [0, 2], as signals show.

    An eigendecomposition reads one half of a matrix, and the expansions grow without
    bound outside: both would be wrong in silence.
    """
    # numbers of its own: the caller's generators stay as they were
    drawn = np.random.default_rng(0).standard_normal((2, L.shape[-1], 1))
    x, y = torch.from_numpy(drawn).to(L.device, L.dtype)
    gap = ((y * (L @ x)).sum((-2, -1)) - (x * (L @ y)).sum((-2, -1))).abs()
    size = x.norm() * (L @ y).norm(dim=(-2, -1))
    if not bool((gap <= _TOLERANCE * size).all()):
        raise ParameterError(f"L must be symmetric and finite. {_ADVICE}")
    # power iteration towards the highest of L, and of 2 I - L, the lowest of L
    for shift, sign in ((0.0, 1.0), (2.0, -1.0)):
        now = x
        for _ in range(12):
            before = now / now.norm(dim=(-2, -1), keepdim=True).clamp_min(1e-30)
            now = shift * before + sign * (L @ before)
        found = float((before * now).sum((-2, -1)).max())
        if found > 2.0 + _TOLERANCE:
            raise ParameterError(
                f"L has an eigenvalue of about {shift + sign * found:.3g}; those of a "
                f"normalised Laplacian lie between 0 and 2. {_ADVICE}"
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
    parts = [torch.linalg.eigh(some.double()) for some in L.split(SPECTRA_AT_ONCE)]
    values = torch.cat([values for values, _ in parts]).clamp_(0.0, 2.0)
    return Spectrum(values, torch.cat([vectors.to(dtype) for _, vectors in parts]))


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
        self._kept: dict[tuple, Spectrum] = {}
        self._held = 0

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
        how = (dtype, *(_as_key(one) for one in vars(preparation).values()))
        starts = range(0, len(W), SPECTRA_AT_ONCE)
        # shown, at a terminal, to those who wait longer than five seconds
        for start in tqdm(starts, "spectra", delay=5.0, leave=False, disable=None):
            some = W[start : start + SPECTRA_AT_ONCE]
            keys = [(_as_key(one), *how) for one in some]
            new = {key: row for row, key in enumerate(keys) if key not in self._kept}
            found: dict[tuple, Spectrum] = {}
            if new:
                prepared = preparation.apply(some[list(new.values())])
                made = decompose(normalized_laplacian(prepared), dtype)
                found = dict(zip(new, map(Spectrum, *made), strict=True))
                size = made.eigenvectors.nbytes
                fits = self._held + size <= self.max_bytes
                if start == 0 and len(new) == len(set(keys)) and not fits:
                    self._kept, self._held = {}, 0  # full of another cohort
                if self._held + size <= self.max_bytes:
                    self._kept |= found
                    self._held += size
            each = [found[key] if key in found else self._kept[key] for key in keys]
            yield Spectrum(*map(torch.stack, zip(*each, strict=True)))


def _as_key(value: Any) -> Any:
    """Return a value, or the hash of an array's bytes: 64 bits, keyed anew each run."""
    return hash(value.tobytes()) if isinstance(value, np.ndarray) else value
