"""Connectomes become Laplacians, and small dense Laplacians their spectra.

Before the Laplacian, a preparation learned from training people is applied. The kind of
a connectome is its unit, density, spread and strong regions; a model tells connectomes
of another kind from those of its training.
"""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from scipy import sparse
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits
from torch import Tensor
from tqdm.auto import tqdm

from brainlsap.arrays import SelectedRows, as_number_array, check_features
from brainlsap.exceptions import ParameterError, check_at_least, check_choice

# How far a connectome may lie outside of those that a model was fitted on: factor of
# the mean weight, difference of density, factor of the spread of log weights, and
# difference of the correlation of strengths. Scanners and tractograms of one kind stay
# within these; another measure, unit, transformation or order of regions does not.
WEIGHT_FACTOR = 5.0
DENSITY_MARGIN = 0.25
SPREAD_FACTOR = 2.0
CORRELATION_MARGIN = 0.3
# Graphs decomposed in one batch: all at once, in float64, would take twice the memory.
SPECTRA_AT_ONCE = 16
# Tolerance for Laplacians computed in float32 or stored with few digits.
_FLOAT32_TOLERANCE = 1e-3
_ADVICE = "Compute L by normalized_laplacian(W) from a symmetric connectome W."


@dataclass(frozen=True, eq=False)
class Preparation:
    """Steps that prepare connectomes for the models, in their order.

    Steps: (1) `connectome`: whose; both directions are averaged, and the diagonal is
    cleared; (2) `threshold`; (3) `weights`. What they need of the training people,
    :meth:`learn` adds.

    Parameters
    ----------
    threshold : float
        Links below it become 0, in the connectome's unit; the paper drops those of
        fewer than 10 streamlines. 0 is none.
    weights : {"weighted", "log", "binary"}
        Keep weights, take log(1 + w), or set every link to 1 (the paper).
    connectome : {"own", "covariance"}
        Each scan's, or one network for all: :func:`covariance_connectome` of the
        training people's features, for people without diffusion imaging.
    network : array of shape (n_rois, n_rois), optional
        Learned: the one network, before step 3.

    Examples
    --------
    >>> W = np.array([[[5.0, 12.0], [12.0, 0.0]]])
    >>> Preparation(threshold=10, weights="binary").apply(W).tolist()
    [[[0.0, 1.0], [1.0, 0.0]]]
    """

    threshold: float = 0.0
    weights: str = "weighted"
    connectome: str = "own"
    network: np.ndarray | None = None

    def __post_init__(self) -> None:
        check_choice("weights", self.weights, ("weighted", "log", "binary"))
        check_choice("connectome", self.connectome, ("own", "covariance"))
        check_at_least("threshold", self.threshold, 0.0)
        if self.connectome == "covariance" and self.threshold > 1:
            raise ParameterError(
                "the threshold of correlations must be at most 1; got "
                f"{self.threshold!r}."
            )

    def learn(self, features: np.ndarray, groups: np.ndarray) -> "Preparation":
        """Learn from training scans.

        Parameters
        ----------
        features : array of shape (n_scans, n_rois, n_features)
            NaN where not measured; for a covariance.
        groups : array of shape (n_scans,)
            Participant of every scan.

        Returns
        -------
        Preparation
            The same options, with `network` where they need one.
        """
        if self.connectome == "own":
            return self
        network = covariance_connectome(features, groups)
        return replace(self, network=self._symmetrize_weights(network[None])[0])

    def apply(self, W: np.ndarray) -> np.ndarray:
        """Prepare connectomes, of training scans or of new ones.

        Parameters
        ----------
        W : array of shape (n_scans, n_rois, n_rois)
            Finite and not negative, with the regions that were learned from.

        Returns
        -------
        array of shape (n_scans, n_rois, n_rois)
            In float64; of one scan where one network serves all.
        """
        prepared_connectomes = (
            self._symmetrize_weights(W)
            if self.network is None
            else self.network[None].copy()
        )
        if self.weights == "log":
            np.log1p(prepared_connectomes, out=prepared_connectomes)
        elif self.weights == "binary":
            prepared_connectomes = (prepared_connectomes > 0).astype(np.float64)
        return prepared_connectomes

    def _symmetrize_weights(self, W: np.ndarray) -> np.ndarray:
        """Average both directions, clear the diagonal, threshold."""
        W = np.asarray(as_number_array(W))
        # Conversion of a few numbers at a time takes a third of a copy in float64.
        symmetric_connectomes = np.add(W, np.swapaxes(W, -1, -2), dtype=np.float64)
        symmetric_connectomes /= 2
        diagonal_indices = np.arange(W.shape[-1])
        symmetric_connectomes[..., diagonal_indices, diagonal_indices] = 0.0
        if self.threshold:
            symmetric_connectomes[symmetric_connectomes < self.threshold] = 0.0
        return symmetric_connectomes


@threadpool_limits.wrap(limits=1)
def covariance_connectome(
    features: np.ndarray, groups: np.ndarray | None = None
) -> np.ndarray:
    """Return the correlations of regions over people as a network.

    The weight of two regions is the correlation of their values over people, 0 where
    it is negative, then the mean over features: a feature that is anticorrelated is no
    link, and takes nothing from the link of another feature. A person's value is the
    mean over their visits. Regions measured together in fewer than three people, and
    regions that do not vary, have no link. Of thickness this is the structural
    covariance network.

    Of all scans of a cohort it has seen the people who are tested later. Inside folds
    it is the models' parameter `connectome="covariance"`.

    Parameters
    ----------
    features : array of shape (n_scans, n_rois, n_features)
        NaN where not measured.
    groups : array of shape (n_scans,), optional
        Participant of every scan; by default each is a person of its own.

    Returns
    -------
    array of shape (n_rois, n_rois)
        Symmetric, between 0 and 1, the diagonal 0.

    Raises
    ------
    ParameterError
        For fewer than three people, or features that are infinite.

    Examples
    --------
    >>> a = np.array([1.0, 2.0, 4.0])
    >>> features = np.stack([a, 3 * a, -a], axis=1)[..., None]
    >>> covariance_connectome(features).round(6).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    scan_person_ids = np.arange(len(features)) if groups is None else np.asarray(groups)
    features = as_number_array(features)
    check_features(features)
    if len(set(scan_person_ids)) < 3:
        raise ParameterError(
            "a covariance network requires at least 3 people; got "
            f"{len(set(scan_person_ids))}."
        )
    network = np.zeros((features.shape[1], features.shape[1]))
    for feature_values in np.moveaxis(np.asarray(features, dtype=np.float64), 2, 0):
        person_mean_table = pd.DataFrame(feature_values).groupby(scan_person_ids).mean()
        # means over visits leave a constant region a spread of rounding
        varying_region_mask = (
            person_mean_table.std() > 1e-9 * person_mean_table.mean().abs()
        )
        correlation_table = (
            person_mean_table.where(varying_region_mask, axis=1)
            .corr(min_periods=3)
            .fillna(0.0)
        )
        network += correlation_table.clip(0.0, 1.0).to_numpy()
    network /= features.shape[2]
    np.fill_diagonal(network, 0.0)
    return network


def compute_connectome_summary_by_name(W: np.ndarray) -> dict[str, np.ndarray]:
    """Return density, mean weight and spread of log weights of every connectome.

    Parameters
    ----------
    W : array of shape (n_scans, n_rois, n_rois)
        Symmetric, not negative. The diagonal does not count.

    Returns
    -------
    dict of str to array of shape (n_scans,)
        `density`, the share of pairs that are linked; `weight`, the mean weight of
        links; `spread`, the standard deviation of their natural logarithms; 0 where
        there is no link.
    """
    upper_row_indices, upper_column_indices = np.triu_indices(W.shape[-1], 1)
    summary_matrix = np.zeros((3, len(W)))
    for scan_index, connectome in enumerate(W):
        edge_weights = np.asarray(
            connectome[upper_row_indices, upper_column_indices], dtype=np.float64
        )
        positive_weights = edge_weights[edge_weights > 0]
        if positive_weights.size:
            log_weight_sd = np.log(positive_weights).std()
            summary_matrix[:, scan_index] = (
                positive_weights.size / edge_weights.size,
                positive_weights.mean(),
                log_weight_sd,
            )
    return dict(zip(("density", "weight", "spread"), summary_matrix, strict=True))


def learn_connectome_profile(W: np.ndarray) -> dict[str, Any]:
    """Learn what connectomes a model is fitted on, as JSON takes it.

    Parameters
    ----------
    W : array of shape (n_scans, n_rois, n_rois)

    Returns
    -------
    dict
        Lowest and highest of each of :func:`compute_connectome_summary_by_name`;
        `strength_ranks`, the mean rank of every region by its strength;
        `least_correlation` of a scan's ranks with these.
    """
    range_by_summary = {
        summary_name: [float(summary_values.min()), float(summary_values.max())]
        for summary_name, summary_values in compute_connectome_summary_by_name(
            W
        ).items()
    }
    strength_ranks = _rank_node_strengths(W)
    mean_strength_ranks = strength_ranks.mean(axis=0)
    return {
        "ranges": range_by_summary,
        "strength_ranks": mean_strength_ranks.round(2).tolist(),
        "least_correlation": float(
            _correlate_ranks(strength_ranks, mean_strength_ranks).min()
        ),
    }


def make_unlike_mask_by_reason(
    W: np.ndarray, training_profile: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Return whether connectomes are unlike those of the training, by reason.

    Parameters
    ----------
    W : array of shape (n_scans, n_rois, n_rois)
        The same regions in the same order as in the fit.
    training_profile : mapping
        From :func:`learn_connectome_profile`.

    Returns
    -------
    dict of str to bool array of shape (n_scans,)
        By what differs, in words, reasons that hold for at least one scan, with the
        median of these scans.
    """
    scan_values_by_summary = compute_connectome_summary_by_name(W)
    lower_bound, upper_bound = training_profile["ranges"]["weight"]
    mean_edge_weights = scan_values_by_summary["weight"]
    unlike_weight_mask = (mean_edge_weights * WEIGHT_FACTOR < lower_bound) | (
        mean_edge_weights > WEIGHT_FACTOR * upper_bound
    )
    lower_bound, upper_bound = training_profile["ranges"]["density"]
    edge_densities = scan_values_by_summary["density"]
    unlike_density_mask = edge_densities < lower_bound - DENSITY_MARGIN
    unlike_density_mask |= edge_densities > upper_bound + DENSITY_MARGIN
    lower_bound, upper_bound = training_profile["ranges"]["spread"]
    log_weight_sds = scan_values_by_summary["spread"]
    unlike_spread_mask = (log_weight_sds * SPREAD_FACTOR < lower_bound) | (
        log_weight_sds > SPREAD_FACTOR * upper_bound
    )
    mean_strength_ranks = np.array(training_profile["strength_ranks"])
    rank_correlations = _correlate_ranks(_rank_node_strengths(W), mean_strength_ranks)
    unlike_ranks_mask = (
        rank_correlations < training_profile["least_correlation"] - CORRELATION_MARGIN
    )
    unlike_mask_by_reason = dict[str, np.ndarray]()
    for summary_title, summary_name, unlike_scan_mask in (
        ("mean weight", "weight", unlike_weight_mask),
        ("density", "density", unlike_density_mask),
        ("spread of log weights", "spread", unlike_spread_mask),
    ):
        if unlike_scan_mask.any():
            lower_bound, upper_bound = training_profile["ranges"][summary_name]
            unlike_scan_median = np.median(
                scan_values_by_summary[summary_name][unlike_scan_mask]
            )
            range_text = f"(in the fit {lower_bound:.3g} to {upper_bound:.3g})"
            unlike_mask_by_reason[
                f"{summary_title} {unlike_scan_median:.3g} {range_text}"
            ] = unlike_scan_mask
    if unlike_ranks_mask.any():
        unlike_scan_median = np.median(rank_correlations[unlike_ranks_mask])
        reason_text = (
            "correlation of regions' strengths with their mean strengths in the fit "
            f"{unlike_scan_median:.2f} (in the fit at least "
            f"{training_profile['least_correlation']:.2f})"
        )
        unlike_mask_by_reason[reason_text] = unlike_ranks_mask
    return unlike_mask_by_reason


def _rank_node_strengths(W: np.ndarray) -> np.ndarray:
    """Return the rank of every region by its strength, (n_scans, n_rois)."""
    diagonal_weights = W.diagonal(axis1=1, axis2=2)
    node_strengths = W.sum(axis=2, dtype=np.float64) - diagonal_weights
    return rankdata(node_strengths, axis=1)


def _correlate_ranks(
    strength_ranks: np.ndarray, mean_strength_ranks: np.ndarray
) -> np.ndarray:
    """Return the correlation of every scan's ranks with mean ranks; 1 of no spread."""
    rank_deviations = strength_ranks - strength_ranks.mean(axis=1, keepdims=True)
    mean_rank_deviations = mean_strength_ranks - mean_strength_ranks.mean()
    norm_products = np.sqrt(
        (rank_deviations**2).sum(axis=1) * (mean_rank_deviations**2).sum()
    )
    rank_dot_products = rank_deviations @ mean_rank_deviations
    return np.divide(
        rank_dot_products,
        norm_products,
        out=np.ones(len(strength_ranks)),
        where=norm_products > 0,
    )


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
