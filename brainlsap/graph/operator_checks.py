"""Whether an operator is a normalised Laplacian, as the expansions take it to be.

They are right on eigenvalues from 0 to 2 and grow without bound outside; an
eigendecomposition of a matrix that is not symmetric reads one half of it. Both would
be wrong in silence, so operators from outside are looked at first.
"""

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from brainlsap.exceptions import ParameterError
from brainlsap.graph.laplacian import sparse_tensor

# Rounding of Laplacians that were made in float32, or stored with few digits.
_TOLERANCE = 1e-3
_STEPS = 12
_ADVICE = "Make L with normalized_laplacian(W) from a symmetric connectome W."


def as_operator(L: Tensor | np.ndarray | sparse.sparray) -> Tensor:
    """Return a square operator as a Tensor, SciPy's sparse ones as sparse CSR.

    Parameters
    ----------
    L : Tensor, array or SciPy sparse matrix of shape (..., n_rois, n_rois)
        Integers and half precision become float64 and float32.

    Returns
    -------
    Tensor of shape (..., n_rois, n_rois)

    Raises
    ------
    ParameterError
        If it is not square.

    Examples
    --------
    >>> as_operator(np.eye(2)).dtype
    torch.float64
    """
    if sparse.issparse(L):
        L = sparse_tensor(sparse.csr_array(L))
    L = torch.as_tensor(L)
    if L.ndim < 2 or L.shape[-1] != L.shape[-2]:
        raise ParameterError(
            f"L must have shape (..., n_rois, n_rois), got {tuple(L.shape)}."
        )
    if L.layout == torch.sparse_coo:
        L = L.to_sparse_csr()
    return L.to(working_type(L))


def working_type(*given: Tensor) -> torch.dtype:
    """Return the precision to compute in: the highest given, float32 at least.

    Parameters
    ----------
    *given : Tensor
        What goes into the sum; integers count as float64.

    Returns
    -------
    torch.dtype

    Examples
    --------
    >>> working_type(torch.ones(1), torch.ones(1, dtype=torch.float64))
    torch.float64
    >>> working_type(torch.ones(1, dtype=torch.float16))
    torch.float32
    """
    found = torch.float32
    for one in given:
        real = one.dtype if one.is_floating_point() else torch.float64
        found = torch.promote_types(found, real)
    return found


def check_symmetric(L: Tensor) -> None:
    """Raise unless an operator is finite and symmetric.

    Parameters
    ----------
    L : Tensor of shape (..., n_rois, n_rois)
        Dense, or sparse CSR, which is tried on random signals only.

    Raises
    ------
    ParameterError
        Saying what to do.

    Examples
    --------
    >>> check_symmetric(torch.eye(3))
    """
    values = L if L.layout == torch.strided else L.values()
    if not bool(torch.isfinite(values).all()):
        raise ParameterError(f"L holds NaN or infinite values. {_ADVICE}")
    if L.layout == torch.strided:
        gap = (L - L.mT).abs().amax() if L.numel() else L.new_zeros(())
        size = L.abs().amax().clamp_min(1e-30) if L.numel() else L.new_ones(())
    else:
        x, y = _signals(L), _signals(L).flip(0)
        there, back = (y * (L @ x)).sum(), (x * (L @ y)).sum()
        gap, size = (there - back).abs(), x.norm() * (L @ y).norm() + 1e-30
    if float(gap) > _TOLERANCE * float(size):
        raise ParameterError(
            f"L must be symmetric, entries differ from their mirror images by up to "
            f"{float(gap):.2g}. {_ADVICE}"
        )


def check_spectrum(L: Tensor) -> None:
    """Raise if an eigenvalue outside [0, 2] shows itself in a few products.

    Parameters
    ----------
    L : Tensor of shape (..., n_rois, n_rois)
        Symmetric; dense or sparse CSR.

    Raises
    ------
    ParameterError
        Naming the eigenvalue.

    Examples
    --------
    >>> check_spectrum(torch.eye(3))
    >>> check_spectrum(4 * torch.eye(3))
    Traceback (most recent call last):
    brainlsap.exceptions.ParameterError: L has an eigenvalue of about 4; ...
    """
    if not L.shape[-1]:
        return
    highest = _largest(L, lambda x: L @ x)
    # of 2 I - L the largest belongs to the lowest of L
    lowest = 2.0 - _largest(L, lambda x: 2.0 * x - L @ x)
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
    return torch.from_numpy(drawn).to(L.dtype).to(L.device)


def _largest(L: Tensor, product: object) -> float:
    """Return a lower bound of the largest eigenvalue, by power iteration."""
    x = _signals(L)
    x = x.expand(*L.shape[:-2], *x.shape) if L.ndim > 2 else x
    quotient = x.new_zeros(())
    for _ in range(_STEPS):
        x = x / x.norm(dim=(-2, -1), keepdim=True).clamp_min(1e-30)
        moved = product(x)  # type: ignore[operator]
        quotient = (x * moved).sum((-2, -1))
        x = moved
    return float(quotient.max())
