"""Heat kernels: the slow truth, and diffusion over one operator."""

import numpy as np
import torch
from torch import Tensor

from brainlsap.exceptions import ParameterError, check_choice
from brainlsap.graph.kernels import EXPANSIONS, KERNELS, choose_degree, error_bound
from brainlsap.graph.laplacian import (
    as_float,
    as_operator,
    check_spectrum,
    check_symmetric,
)
from brainlsap.graph.recurrence import diffuse_recurrence

# A degree given by hand brings its own error; past this the kernel is refused.
_REFUSED_ERROR = 1e-2


def exact_heat_kernel(L: Tensor | np.ndarray, scale: Tensor | float) -> Tensor:
    r"""Return the heat kernel from an eigendecomposition: slow, and the truth.

    .. math:: K_{pq} = \sum_i e^{-s_p \lambda_i} u_i[p] u_i[q]

    Row p belongs to region p and to its own scale, so K is not symmetric where
    scales differ. Written as plainly as it reads, in float64; every fast path is
    tested against it.

    Parameters
    ----------
    L : Tensor or array of shape (..., n_rois, n_rois)
        Normalised Laplacian, dense.
    scale : Tensor of shape (n_rois,) or float
        Heat scale of every region, dimensionless; 0 means no diffusion.

    Returns
    -------
    Tensor of shape (..., n_rois, n_rois)
        In float64; differentiable with respect to `scale`.

    Raises
    ------
    ParameterError
        For shapes that do not fit, negative or non-finite scales.

    Examples
    --------
    >>> L = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
    >>> exact_heat_kernel(L, 0.5).round(decimals=4).tolist()
    [[0.6839, 0.3161], [0.3161, 0.6839]]
    """
    L, scale = _check(L, scale)
    check_symmetric(L)
    eigenvalues, U = torch.linalg.eigh(L.to_dense().double())
    response = torch.exp(-scale.double()[:, None] * eigenvalues[..., None, :])
    return (U * response) @ U.mT


def heat_kernel(
    L: Tensor | np.ndarray,
    scale: Tensor | float,
    *,
    kernel: str = "chebyshev",
    degree: int | None = None,
    tolerance: float = 1e-4,
) -> Tensor:
    r"""Return the heat kernel :math:`\sum_n \mathrm{diag}(c_n(s)) P_n(L)`.

    Parameters
    ----------
    L : Tensor or array of shape (..., n_rois, n_rois)
        Normalised Laplacian, symmetric, with spectrum in [0, 2].
    scale : Tensor of shape (n_rois,) or float
        Heat scale of every region; row p of the kernel is row p of
        :math:`e^{-s_p L}`. Dimensionless, not negative.
    kernel : {"exact", "chebyshev", "hermite", "laguerre"}
        Eigenvectors, or which expansion.
    degree : int or None
        Degree of the expansion. None chooses the lowest that keeps `tolerance`
        at the largest scale.
    tolerance : float
        Largest error of the kernel, whose eigenvalues never exceed 1. Not used
        where `degree` is given: that degree's own error holds then, and above
        0.01 the kernel is refused.

    Returns
    -------
    Tensor of shape (..., n_rois, n_rois)
        In the precision of `L`; differentiable with respect to `scale`.

    Raises
    ------
    ParameterError
        For an unknown kernel, shapes that do not fit, negative scales, or scales
        that the kernel cannot reach with this degree.

    Examples
    --------
    >>> L = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
    >>> heat_kernel(L, torch.tensor([0.5, 0.0]))
    tensor([[0.68..., 0.31...],
            [0.0000, 1.0000]])
    """
    L = as_operator(L)
    identity = torch.eye(L.shape[-1], dtype=L.dtype, device=L.device).expand(L.shape)
    asked = {"kernel": kernel, "degree": degree, "tolerance": tolerance}
    return diffuse(L, identity, scale, **asked)  # type: ignore[arg-type]


def diffuse(
    L: Tensor | np.ndarray,
    X: Tensor | np.ndarray,
    scale: Tensor | float,
    *,
    kernel: str = "chebyshev",
    degree: int | None = None,
    tolerance: float = 1e-4,
) -> Tensor:
    """Diffuse signals on regions by the heat kernel.

    The exact kernel is made by eigenvectors, an expansion by its recurrence
    (:func:`diffuse_recurrence`), which keeps no kernel.

    Parameters
    ----------
    L : Tensor or array of shape (..., n_rois, n_rois)
        Normalised Laplacian; dense with any leading axes, or one sparse CSR.
    X : Tensor or array of shape (..., n_rois, n_channels)
        Signals.
    scale : Tensor of shape (n_rois,) or float
        Heat scale of every region, dimensionless, not negative.
    kernel : {"exact", "chebyshev", "hermite", "laguerre"}
        As for :func:`heat_kernel`.
    degree, tolerance
        As for :func:`heat_kernel`.

    Returns
    -------
    Tensor of shape (..., n_rois, n_channels)
        In the higher precision of `L` and `X`, float32 at least. Differentiable with
        respect to `X` and `scale`.

    Raises
    ------
    ParameterError
        As :func:`heat_kernel`; or if `L` is not symmetric or has eigenvalues outside
        0 to 2.

    Examples
    --------
    >>> L = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
    >>> diffuse(L, torch.tensor([[1.0], [0.0]]), 0.5)
    tensor([[0.68...],
            [0.31...]])
    """
    L, scale = _check(L, scale)
    X = as_float(X).to(L.device)
    dtype = torch.promote_types(L.dtype, X.dtype)
    L, X = L.to(dtype), X.to(dtype)
    if X.ndim != L.ndim or X.shape[:-1] != L.shape[:-1]:
        raise ParameterError(
            f"X must have shape (..., n_rois, n_channels) to fit L of shape "
            f"{tuple(L.shape)}, got {tuple(X.shape)}."
        )
    if not bool(torch.isfinite(X).all()):
        raise ParameterError("X must be finite; it holds NaN or infinite values.")
    largest = float(scale.detach().max())
    check_choice("kernel", kernel, KERNELS)
    if kernel != "exact" and degree is None:
        degree = choose_degree(kernel, largest, tolerance)
    bound = error_bound(kernel, largest, degree)
    if bound > _REFUSED_ERROR:
        raise ParameterError(
            f"the {kernel} kernel of degree {degree} can be wrong by {bound:.2g} at "
            f"scale {largest:g} (its true values never exceed 1). Use a higher "
            "degree, smaller scales, or the chebyshev kernel."
        )
    check_symmetric(L)
    check_spectrum(L)
    if degree is None or kernel == "exact":
        return exact_heat_kernel(L, scale).to(dtype) @ X
    limit = EXPANSIONS[kernel].recurrence_limit.get(dtype, np.inf)
    if largest > limit:
        raise ParameterError(
            f"the {kernel} recurrence in {str(dtype).removeprefix('torch.')} is right "
            f"up to scale {limit:g} only, got {largest:g}; use the chebyshev kernel."
        )
    return diffuse_recurrence(L, X, scale, kernel, degree)


def _check(
    L: Tensor | np.ndarray, scale: Tensor | float | np.ndarray
) -> tuple[Tensor, Tensor]:
    """Return both as Tensors, one scale for every region."""
    L = as_operator(L)
    scale = as_float(scale).to(L.device)
    if scale.ndim == 0:
        scale = scale.expand(L.shape[-1])
    if scale.shape != L.shape[-1:]:
        raise ParameterError(
            f"scale must have shape ({L.shape[-1]},), one for every region, "
            f"got {tuple(scale.shape)}."
        )
    if not (bool((scale >= 0).all()) and bool(torch.isfinite(scale).all())):
        raise ParameterError(
            "scale must be finite and not negative, its smallest value is "
            f"{float(scale.detach().min()):g}."
        )
    return L, scale
