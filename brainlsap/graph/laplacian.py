"""Connectomes become Laplacians, and small dense Laplacians their spectra."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from brainlsap._scratch import new_array, release
from brainlsap.exceptions import ParameterError


def normalized_laplacian(W: Tensor | np.ndarray | sparse.sparray) -> Tensor:
    r"""Return the normalised Laplacian of undirected weighted graphs.

    .. math:: L = I - D^{-1/2} W D^{-1/2}, \qquad D = \mathrm{diag}(W \mathbf 1)

    Its spectrum lies in [0, 2]. An isolated node (degree 0) has a row of zeros,
    diagonal included: it has nobody to share heat with, so its kernel row is that
    of the identity and it keeps its own value at every scale.

    Parameters
    ----------
    W : array, Tensor or SciPy sparse matrix of shape (..., n_rois, n_rois)
        Symmetric, finite, non-negative weights. Self loops count towards the
        degree. Leading axes are for many dense graphs.

    Returns
    -------
    Tensor of shape (..., n_rois, n_rois)
        Of the input's precision (float64 for integers, float32 for halves); sparse
        CSR if `W` is a SciPy sparse matrix. The unit of the weights does not matter.

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
    W = torch.as_tensor(W)
    W = W if W.is_floating_point() else W.double()
    W = W.float() if W.element_size() < 4 else W  # halves end at 65504
    if W.ndim < 2 or W.shape[-1] != W.shape[-2]:
        raise ParameterError(
            f"W must have shape (..., n_rois, n_rois), got {tuple(W.shape)}."
        )
    _check_weights(bool(torch.isfinite(W).all()), float(W.min()) if W.numel() else 0.0)
    if W.numel():
        W = _in_reach(W)
    degree = W.sum(dim=-1)
    root = torch.where(degree > 0, degree, torch.inf).rsqrt()
    laplacian = -(root[..., :, None] * W * root[..., None, :])
    diagonal = torch.diagonal(laplacian, dim1=-2, dim2=-1)
    diagonal += (degree > 0).to(W.dtype)
    return laplacian + 0.0  # no -0.0 where two regions are not joined


def _in_reach(W: Tensor) -> Tensor:
    """Check symmetry; change the unit of graphs whose degrees would leave the range."""
    largest = W.amax((-2, -1), keepdim=True)
    # of the largest weight: sums of counts in another order differ in rounding
    allowed = 1e-5 * W.mT + 1e-6 * largest
    if not bool(((W - W.mT).abs() <= allowed).all()):
        raise ParameterError("W must be symmetric; symmetrise it as (W + W.T) / 2.")
    limit = _REACH[W.dtype]
    far = (largest > limit) | ((largest < 1 / limit) & (largest > 0))
    if not bool(far.any()):
        return W
    # by an even power of 2, so that not one digit changes
    half = torch.frexp(torch.where(far, largest, 1.0)).exponent // 2
    return torch.ldexp(torch.ldexp(W, -half), -half)


def _sparse_laplacian(W: sparse.csr_array) -> Tensor:
    if W.shape[0] != W.shape[1]:
        raise ParameterError(f"W must have shape (n_rois, n_rois), got {W.shape}.")
    dtype = W.dtype if W.dtype in (np.float32, np.float64) else np.float64
    W = W.astype(dtype)
    _check_weights(bool(np.isfinite(W.data).all()), W.data.min(initial=0.0))
    largest, limit = W.data.max(initial=0.0), _REACH[torch.from_numpy(W.data).dtype]
    if largest > limit or 0 < largest < 1 / limit:
        half = np.frexp(largest)[1] // 2
        W.data = np.ldexp(np.ldexp(W.data, -half), -half)
    if abs(W - W.T).max() > 1e-6 * max(W.data.max(initial=0.0), 1e-300):
        raise ParameterError("W must be symmetric; symmetrise it as (W + W.T) / 2.")
    degree = W.sum(axis=1)
    with np.errstate(divide="ignore"):
        root = np.where(degree > 0, degree**-0.5, 0.0).astype(dtype)
    scaled = sparse.diags_array(root) @ W @ sparse.diags_array(root)
    identity = sparse.diags_array((degree > 0).astype(dtype))
    return sparse_tensor(sparse.csr_array(identity - scaled))


def sparse_tensor(matrix: sparse.csr_array) -> Tensor:
    """Return a SciPy sparse matrix as a sparse CSR Tensor.

    Parameters
    ----------
    matrix : csr_array of shape (n_rows, n_columns)
        Columns of a row in any order; of entries given twice the sum counts.

    Returns
    -------
    Tensor of shape (n_rows, n_columns)

    Examples
    --------
    >>> sparse_tensor(sparse.csr_array(np.eye(2))).to_dense().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
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


def _check_weights(finite: bool, lowest: float) -> None:
    if not finite:
        raise ParameterError("W must be finite; it holds NaN or infinite weights.")
    if lowest < 0:
        raise ParameterError(
            f"W must not be negative, its smallest weight is {lowest:g}. The heat "
            "kernel needs non-negative weights; clip or square correlations first."
        )


# Weights up to this, and down to one over it, have degrees that can be told.
_REACH = {torch.float32: 1e15, torch.float64: 1e150}
# Graphs decomposed in one go.
_AT_ONCE = 16


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues and eigenvectors of many small graphs.

    Parameters
    ----------
    eigenvalues : Tensor of shape (n_graphs, n_rois)
        Ascending, in [0, 2].
    eigenvectors : Tensor of shape (n_graphs, n_rois, n_rois)
        Column i belongs to eigenvalue i.

    Examples
    --------
    >>> decompose(torch.zeros(4, 3, 3)).eigenvectors.shape
    torch.Size([4, 3, 3])
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
        Eigenvalues are float64, clipped to [0, 2], where the true ones lie. Vectors
        of more than 500 MB are mapped to a file (:mod:`brainlsap._scratch`).

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
    if overwrite:
        eigenvectors = L
    elif L.device.type == "cpu":
        eigenvectors = new_tensor(L.shape, dtype)
    else:
        eigenvectors = L.new_empty(L.shape, dtype=dtype)
    # a few at a time: in float64 all of them would be twice what is kept
    for start in range(0, len(L), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        eigenvalues[part], eigenvectors[part] = torch.linalg.eigh(L[part].double())
        release()
    return Spectrum(eigenvalues.clamp_(0.0, 2.0), eigenvectors)


def new_tensor(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Return a tensor to be filled, mapped to a file where it is large.

    Parameters
    ----------
    shape : sequence of int
    dtype : torch.dtype

    Returns
    -------
    Tensor
        Of unknown content, in memory of the CPU.

    Examples
    --------
    >>> new_tensor((2, 3), torch.float32).shape
    torch.Size([2, 3])
    """
    return torch.from_numpy(new_array(shape, torch.empty(0, dtype=dtype).numpy().dtype))
