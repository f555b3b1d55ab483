"""Connectomes become Laplacians, and small dense Laplacians their spectra."""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from tqdm.auto import tqdm

from brainlsap.arrays import SelectedRows
from brainlsap.exceptions import ParameterError
from brainlsap.graph.connectomes import Preparation

# Graphs decomposed in one batch: all at once, in float64, would take twice the memory.
SPECTRA_AT_ONCE = 16
# Tolerance for Laplacians computed in float32 or stored with few digits.
_FLOAT32_TOLERANCE = 1e-3
_ADVICE = "Compute L by normalized_laplacian(W) from a symmetric connectome W."


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
    W = as_float_tensor(W)
    _check_square("W", W)
    # relative to the largest weight: sums in another order differ by rounding
    asymmetry_tolerances = 1e-5 * W.mT + 1e-6 * W.amax((-2, -1), keepdim=True)
    is_symmetric = bool(((W - W.mT).abs() <= asymmetry_tolerances).all())
    _check_weight_range(float(W.min()), float(W.max()), is_symmetric)
    node_degrees = W.sum(dim=-1)
    inverse_sqrt_degrees = torch.where(
        node_degrees > 0, node_degrees, torch.inf
    ).rsqrt()
    laplacian = -(
        inverse_sqrt_degrees[..., :, None] * W * inverse_sqrt_degrees[..., None, :]
    )
    laplacian_diagonal = torch.diagonal(laplacian, dim1=-2, dim2=-1)
    laplacian_diagonal += (node_degrees > 0).to(W.dtype)
    return laplacian + 0.0  # no -0.0 where two regions are not joined


def _sparse_laplacian(W: sparse.csr_array) -> Tensor:
    _check_square("W", W)
    W = W.astype(np.result_type(W.dtype, np.float32))
    min_weight, max_weight = W.data.min(initial=0.0), W.data.max(initial=0.0)
    _check_weight_range(min_weight, max_weight, abs(W - W.T).max() <= 1e-6 * max_weight)
    node_degrees = W.sum(axis=1)
    with np.errstate(divide="ignore"):
        inverse_sqrt_degrees = np.where(
            node_degrees > 0, node_degrees**-0.5, 0.0
        ).astype(W.dtype)
    normalized_weights = (
        sparse.diags_array(inverse_sqrt_degrees)
        @ W
        @ sparse.diags_array(inverse_sqrt_degrees)
    )
    identity_matrix = sparse.diags_array((node_degrees > 0).astype(W.dtype))
    return make_csr_tensor(sparse.csr_array(identity_matrix - normalized_weights))


def _check_square(argument_name: str, matrix: Tensor | sparse.csr_array) -> None:
    matrix_shape = tuple(matrix.shape)
    if len(matrix_shape) < 2 or matrix_shape[-1] != matrix_shape[-2]:
        raise ParameterError(
            f"{argument_name} must have shape (..., n_rois, n_rois); got shape "
            f"{matrix_shape}."
        )


def _check_weight_range(
    min_weight: float, max_weight: float, is_symmetric: bool
) -> None:
    for is_requirement_met, requirement_text in (
        (
            np.isfinite([min_weight, max_weight]).all(),
            "be finite, but it contains NaN or infinite weights",
        ),
        (min_weight >= 0, f"not be negative; its smallest weight is {min_weight:g}"),
        (is_symmetric, "be symmetric. Symmetrise it, for example by (W + W.T) / 2"),
    ):
        if not is_requirement_met:
            raise ParameterError(f"W must {requirement_text}.")


def as_float_tensor(tensor_like: Tensor | np.ndarray | float) -> Tensor:
    """Return a Tensor of float32 or float64, which integers become."""
    if isinstance(tensor_like, np.ndarray) and not tensor_like.flags.writeable:
        tensor_like = tensor_like.copy()  # PyTorch warns of read-only arrays
    tensor_like = torch.as_tensor(tensor_like)
    if not tensor_like.is_floating_point():
        return tensor_like.double()
    return tensor_like.float() if tensor_like.element_size() < 4 else tensor_like


def as_square_tensor(L: Tensor | np.ndarray) -> Tensor:
    """Return a square operator as a Tensor."""
    L = as_float_tensor(L)
    _check_square("L", L)
    return L


def make_csr_tensor(
    matrix: sparse.csr_array, csr_values: Tensor | None = None
) -> Tensor:
    """Return a CSR matrix as a tensor, or the pattern of one with `csr_values`."""
    if csr_values is None:
        row_pointers, column_indices = (
            index_array.astype(np.int32)
            for index_array in (matrix.indptr, matrix.indices)
        )
        csr_values = matrix.data
    else:
        row_pointers, column_indices = matrix.crow_indices(), matrix.col_indices()
    with warnings.catch_warnings():
        # Silence PyTorch's beta warning: our tests cover products and gradients
        warnings.filterwarnings("ignore", "Sparse ", UserWarning)
        return torch.sparse_csr_tensor(
            row_pointers, column_indices, csr_values, matrix.shape
        )


def check_operator(L: Tensor) -> None:
    """Raise unless L is symmetric with eigenvalues in [0, 2], as random signals show.

    An eigendecomposition reads one half of a matrix, and the expansions grow without
    bound outside: both would be wrong in silence.
    """
    # a private generator: the caller's random state must not change
    random_vectors = np.random.default_rng(0).standard_normal((2, L.shape[-1], 1))
    x, y = torch.from_numpy(random_vectors).to(L.device, L.dtype)
    asymmetries = ((y * (L @ x)).sum((-2, -1)) - (x * (L @ y)).sum((-2, -1))).abs()
    norm_products = x.norm() * (L @ y).norm(dim=(-2, -1))
    if not bool((asymmetries <= _FLOAT32_TOLERANCE * norm_products).all()):
        raise ParameterError(f"L must be symmetric and finite. {_ADVICE}")
    # power iteration towards the highest of L, and of 2 I - L, the lowest of L
    for spectrum_shift, operator_sign in ((0.0, 1.0), (2.0, -1.0)):
        current_signal = x
        for _ in range(12):
            signal_norms = current_signal.norm(dim=(-2, -1), keepdim=True)
            unit_signal = current_signal / signal_norms.clamp_min(1e-30)
            current_signal = spectrum_shift * unit_signal + operator_sign * (
                L @ unit_signal
            )
        max_eigenvalue = float((unit_signal * current_signal).sum((-2, -1)).max())
        if max_eigenvalue > 2.0 + _FLOAT32_TOLERANCE:
            raise ParameterError(
                "L has an eigenvalue of about "
                f"{spectrum_shift + operator_sign * max_eigenvalue:.3g}, but the "
                "eigenvalues of a normalised Laplacian lie between 0 and 2. "
                f"{_ADVICE}"
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
    """Decompose dense Laplacians in float64.

    Parameters
    ----------
    L : Tensor of shape (n_graphs, n_rois, n_rois)
        Normalised Laplacians.
    dtype : torch.dtype
        Type of the stored eigenvectors.

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
    eigh_results = [
        torch.linalg.eigh(laplacian_batch.double())
        for laplacian_batch in L.split(SPECTRA_AT_ONCE)
    ]
    eigenvalues = torch.cat([eigenvalues for eigenvalues, _ in eigh_results]).clamp_(
        0.0, 2.0
    )
    return Spectrum(
        eigenvalues,
        torch.cat([eigenvectors.to(dtype) for _, eigenvectors in eigh_results]),
    )


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
    >>> (spectrum,) = SpectrumCache().iter_spectra(W, Preparation())
    >>> spectrum.eigenvalues.shape
    torch.Size([5, 3])
    """

    def __init__(self, max_bytes: int = 1_000_000_000) -> None:
        self.max_bytes = max_bytes
        self._spectrum_by_key: dict[tuple, Spectrum] = {}
        self._n_bytes = 0

    def iter_spectra(
        self,
        W: np.ndarray | SelectedRows,
        connectome_preparation: Preparation,
        dtype: torch.dtype = torch.float32,
    ) -> Iterator[Spectrum]:
        """Yield the spectra of a few connectomes at a time.

        Parameters
        ----------
        W : array of shape (n_graphs, n_rois, n_rois)
            Connectomes as they came.
        connectome_preparation : Preparation
            As learned from training scans.
        dtype : torch.dtype
            Type of the returned eigenvectors.

        Yields
        ------
        Spectrum
            Of `SPECTRA_AT_ONCE` graphs; eigenvalues in float64.
        """
        preparation_key = (
            dtype,
            *(
                _hash_if_array(setting_value)
                for setting_value in vars(connectome_preparation).values()
            ),
        )
        block_starts = range(0, len(W), SPECTRA_AT_ONCE)
        # shown, at a terminal, to those who wait longer than five seconds
        for block_start in tqdm(
            block_starts, "spectra", delay=5.0, leave=False, disable=None
        ):
            connectome_batch = W[block_start : block_start + SPECTRA_AT_ONCE]
            connectome_keys = [
                (_hash_if_array(connectome), *preparation_key)
                for connectome in connectome_batch
            ]
            graph_index_by_key = {
                connectome_key: graph_index
                for graph_index, connectome_key in enumerate(connectome_keys)
                if connectome_key not in self._spectrum_by_key
            }
            new_spectrum_by_key: dict[tuple, Spectrum] = {}
            if graph_index_by_key:
                prepared_connectomes = connectome_preparation.apply(
                    connectome_batch[list(graph_index_by_key.values())]
                )
                new_spectrum = decompose(
                    normalized_laplacian(prepared_connectomes), dtype
                )
                new_spectrum_by_key = dict(
                    zip(graph_index_by_key, map(Spectrum, *new_spectrum), strict=True)
                )
                n_bytes = new_spectrum.eigenvectors.nbytes
                is_within_limit = self._n_bytes + n_bytes <= self.max_bytes
                if (
                    block_start == 0
                    and len(graph_index_by_key) == len(set(connectome_keys))
                    and not is_within_limit
                ):
                    # filled by another cohort
                    self._spectrum_by_key, self._n_bytes = {}, 0
                if self._n_bytes + n_bytes <= self.max_bytes:
                    self._spectrum_by_key |= new_spectrum_by_key
                    self._n_bytes += n_bytes
            graph_spectra = [
                new_spectrum_by_key[connectome_key]
                if connectome_key in new_spectrum_by_key
                else self._spectrum_by_key[connectome_key]
                for connectome_key in connectome_keys
            ]
            yield Spectrum(*map(torch.stack, zip(*graph_spectra, strict=True)))


def _hash_if_array(setting_or_array: Any) -> Any:
    """Return a value, or the hash of an array's bytes: 64 bits, keyed anew each run."""
    return (
        hash(setting_or_array.tobytes())
        if isinstance(setting_or_array, np.ndarray)
        else setting_or_array
    )
