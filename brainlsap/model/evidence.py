r"""The evidence of diffusion scales, and nested models of them, each fitted by it.

Features of region p are diffused at that region's scale, :math:`z_p(s_p) = \sum_n
c_n(s_p) [T_n(L - I) x]_p`, and standardised over the training scans. The coefficients
:math:`w` have a normal prior, and the targets :math:`t` have normal noise. The
likelihood of scan i counts with its weight :math:`u_i`:

.. math:: p(t \mid s, \lambda, v) = \int N\bigl(w \mid 0, \tfrac{v}{\lambda} I\bigr)
          \prod_i N(t_i \mid z_i^\top w, v)^{u_i} \, dw

This is the density of targets with covariance :math:`v (Z Z^\top / \lambda + U^{-1})`,
U = diag(u), except that the number of observations is :math:`\sum u_i`, the number of
people, instead of the number of scans. If all weights are 1, it is that density. At the
best v it is the evidence (marginal likelihood), a smooth function of all scales:
learning them needs neither epochs nor a validation set. `docs/mathematics` gives its
derivatives.

Three models are nested: no network; one scale for all regions; a scale for every
region. Each fit starts from the model before.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize

from brainlsap.arrays import SelectedRows
from brainlsap.graph import EXPANSIONS, Preparation, choose_degree
from brainlsap.graph.spectral import (
    chebyshev_nodes_and_transform,
    iter_rows_and_polynomials,
)
from brainlsap.model.inputs import are_equal_connectomes, make_signal_key

# Prior on log(ridge / n_columns), the noise-to-signal ratio: flat above log 0.3,
# half-normal below. With fewer people than regions the evidence would otherwise remove
# all noise, and left-out scores would be too good to be true.
LOG_NOISE_BOUND = float(np.log(0.3))
# Largest error of the kernel by its Chebyshev series.
KERNEL_TOLERANCE = 1e-5
# Scans that are added to the Gram matrix of the terms at once.
_ROWS_AT_ONCE = 4096

NESTED_MODELS = ("none", "one", "regions")
"""No network, one scale for all regions, a scale for every region."""

# Accept the richer model only if its Bayes factor over the last accepted one is at
# least 20. In data drawn from that simpler model, prior included, a Bayes factor has
# mean 1, so that by Markov's inequality at most 5 % reach 20 (up to Laplace's
# approximation, and to ridge and spread at their best). The bound does not hold for
# other data: where classes differ in many regions, averages over any dense graph are
# the better model, and are accepted.
MIN_LOG_BAYES_FACTOR = float(np.log(20.0))
MIN_SCALE = 0.01
# Standard deviation of the log of the common scale, whose prior is normal around 0.
COMMON_SD = 1.5
# Spreads of log scales that are tried, each from the solution of the one before.
_SPREADS = (0.2, 0.4, 0.8, 1.6)


@lru_cache(maxsize=8)
def term_basis(max_scale: float) -> np.ndarray:
    """Return B (degree + 1, n_terms), whose columns span c(s) of all scales up to this.

    Columns are orthonormal, so that c(s) is B B'c(s) up to the tolerance of the series.
    Chebyshev coefficients of different scales are similar: about nine combinations of
    the polynomials suffice. They are called terms.
    """
    # The smallest scale lies below `MIN_SCALE`.
    scale_grid = torch.from_numpy(np.append(0.0, np.geomspace(0.005, max_scale, 200)))
    degree = choose_degree("chebyshev", max_scale, KERNEL_TOLERANCE)
    c, _ = EXPANSIONS["chebyshev"].coefficients(scale_grid, degree)
    # c = U diag(singular_values) Vt, a row of c for every scale
    _, singular_values, Vt = np.linalg.svd(c.numpy(), full_matrices=False)
    needed_row_mask = singular_values > 0.1 * KERNEL_TOLERANCE * singular_values[0]
    return Vt[needed_row_mask].T.copy()


def term_coefs_and_slopes(
    region_scales: np.ndarray, B: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients of the terms and their derivatives, each (n_rois, n_terms).

    By the orthonormal columns of B, the coefficients of c(s) are c(s)'B.
    """
    degree = len(B) - 1
    # Further nodes, so that higher coefficients are not aliased.
    chebyshev_nodes, transform_matrix = chebyshev_nodes_and_transform(
        degree + 64, degree
    )
    kernel_values = np.exp(-np.multiply.outer(region_scales, chebyshev_nodes))
    node_term_matrix = transform_matrix @ B
    return kernel_values @ node_term_matrix, (
        kernel_values * -chebyshev_nodes
    ) @ node_term_matrix


def diffusion_terms(
    connectomes: np.ndarray | SelectedRows,
    signals: np.ndarray,
    connectome_preparation: Preparation,
    B: np.ndarray,
) -> np.ndarray:
    """Return combinations of T_n(L - I) times signals, (n_terms, n_scans, n_columns).

    Columns are regions times features. No graph is decomposed.
    """
    n_scans, n_rois, n_features = signals.shape
    degree, n_terms = len(B) - 1, B.shape[1]
    has_shared_connectome = (
        connectome_preparation.network is not None or are_equal_connectomes(connectomes)
    )
    term_values = np.empty((n_terms, n_scans, n_rois * n_features))
    stored_polynomials: np.ndarray | None = None
    if isinstance(connectomes, SelectedRows) and connectomes.keeps_polynomials:
        polynomial_shape = degree + 1, *signals.shape
        stored_polynomials = np.empty(polynomial_shape, dtype=np.float32)
        signal_key = make_signal_key(signals, connectome_preparation)
        connectomes.polynomials = signal_key, stored_polynomials
    for scan_slice, polynomials in iter_rows_and_polynomials(
        connectomes,
        signals,
        connectome_preparation,
        degree,
        has_shared_connectome=has_shared_connectome,
    ):
        term_block = B.T @ polynomials.reshape(degree + 1, -1)
        term_values[:, scan_slice] = term_block.reshape(
            n_terms, -1, n_rois * n_features
        )
        if stored_polynomials is not None:
            stored_polynomials[:, scan_slice] = polynomials
    return term_values


def add_polynomials(
    term_sums: np.ndarray, A: np.ndarray, signals: np.ndarray, coefficients: np.ndarray
) -> None:
    """Add combinations of T_n(A) x to `term_sums` (n_combinations, n_scans, ...).

    `A` (n_scans or 1, n_rois, n_rois) has its spectrum in [-1, 1], `signals` are
    (n_scans, n_rois, n_columns) and `coefficients` (degree + 1, n_combinations).
    """
    # T_0 x = x, T_1 x = A x, T_(n+1) x = 2 A T_n x - T_(n-1) x
    previous_polynomial = signals
    current_polynomial = np.matmul(A, signals)
    for n, degree_coefficients in enumerate(coefficients):
        if n > 1:
            next_polynomial = 2 * np.matmul(A, current_polynomial) - previous_polynomial
            previous_polynomial = current_polynomial
            current_polynomial = next_polynomial
        term_sums += np.multiply.outer(
            degree_coefficients, current_polynomial if n else previous_polynomial
        )


class Moments(NamedTuple):
    """Products of the standardised columns Z, their derivatives dZ, and targets t.

    All rows are multiplied by the square roots of the weights, so that `ZtZ` is the
    Z'UZ of the formulas. `dZ` holds the derivative of each standardised column in its
    own scale. Row p of `dZtZ` holds the products of column p of dZ with all columns of
    Z. Products of columns are (n_columns, n_columns), and those with targets
    (n_columns, n_targets). `dZtdZ` is needed for the expected curvature only; otherwise
    it is None.
    """

    ZtZ: np.ndarray
    dZtZ: np.ndarray
    Ztt: np.ndarray
    dZtt: np.ndarray
    dZtdZ: np.ndarray | None


class LogEvidence:
    r"""Log evidence of scales and ridge, with its derivatives.

    .. math:: \ell(s, \lambda) = -\tfrac{k}{2} \left[\nu \log 2\pi e \hat v
              + \log|M| - D \log\lambda\right], \quad
              M = Z^\top U Z + \lambda I, \quad
              \hat v = \frac{t^\top U t - t^\top U Z M^{-1} Z^\top U t}{\nu k}

    for k independent targets, D columns and :math:`\nu = \sum u - 1` degrees of freedom
    (the intercept takes one). The columns of c classes without an order sum to 1, so
    that they hold c - 1 independent targets: the evidence is that of any c - 1
    orthonormal contrasts. With fewer scans than columns the same is computed from the
    matrix of the scans, :math:`K = \sqrt{U} Z Z^\top \sqrt{U} / \lambda + I`, by
    :math:`\log|K| = \log|M| - D \log\lambda` and Woodbury's formula.

    Calling it returns :math:`-\ell` (nats), its derivatives in the scales (n_rois,) and
    its derivative in the ridge.

    Parameters
    ----------
    terms : array of shape (n_terms, n_scans, n_columns)
        From :func:`diffusion_terms`.
    targets : array of shape (n_scans, k)
    scan_weights : array of shape (n_scans,)
        Weight of each scan; their sum is the number of people.
    n_features : int
        Columns of each region, which share its scale.
    B : array of shape (degree + 1, n_terms)
        Basis of the terms, from :func:`term_basis`.
    uses_scan_matrix : bool, optional
        Whether to use the matrix of the scans; by default the smaller matrix is used.
    """

    def __init__(
        self,
        terms: np.ndarray,
        targets: np.ndarray,
        scan_weights: np.ndarray,
        n_features: int,
        B: np.ndarray,
        uses_scan_matrix: bool | None = None,
    ) -> None:
        self.B, self.n_features, self.weights = B, n_features, scan_weights
        n_terms, n_scans, self.n_columns = terms.shape
        self.n_rois = self.n_columns // n_features
        self.n_people = float(scan_weights.sum())
        self.dof = self.n_people - 1.0
        self.term_means = np.einsum("rnd,n->rd", terms, scan_weights) / self.n_people
        # centred terms and targets, times the square roots of the weights
        self.X = terms - self.term_means[:, None]
        self.X *= np.sqrt(scan_weights)[:, None]
        self.set_targets(targets)
        self.gram: np.ndarray | None = None  # not used with the matrix of the scans
        if uses_scan_matrix is None:
            uses_scan_matrix = n_scans < self.n_columns
        if not uses_scan_matrix:
            gram_matrix = np.zeros((n_terms * self.n_columns,) * 2)
            for block_start in range(0, n_scans, _ROWS_AT_ONCE):
                term_block = self.X[:, block_start : block_start + _ROWS_AT_ONCE]
                flat_terms = term_block.transpose(1, 0, 2).reshape(
                    term_block.shape[1], -1
                )
                gram_matrix += flat_terms.T @ flat_terms
            # (column, its term, term, column): blocks of a region are contiguous
            gram_matrix = gram_matrix.reshape(n_terms, self.n_columns, n_terms, -1)
            self.gram = np.ascontiguousarray(gram_matrix.transpose(1, 0, 2, 3))

    def set_targets(self, targets: np.ndarray) -> None:
        """Set the targets (n_scans, k); recompute only what depends on them."""
        self.n_targets = targets.shape[1]
        self.target_means = targets.T @ self.weights / self.n_people
        self.t = (targets - self.target_means) * np.sqrt(self.weights)[:, None]
        self.ttt = float((self.t**2).sum())  # trace of t't
        self.Xtt = np.matmul(self.X.transpose(0, 2, 1), self.t)
        self.n_contrasts = count_contrasts(self.t)

    def log_ridge_shortfall_of(self, log_ridge: np.ndarray | float) -> np.ndarray:
        """Return the distance of log_ridge below the bound, or 0 above the bound.

        Half the square of this is minus the log of the prior.
        """
        log_ridge_bound = LOG_NOISE_BOUND + np.log(self.n_columns)
        return np.maximum(log_ridge_bound - log_ridge, 0.0)

    def column_coefs_and_slopes(
        self, scales: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients of all columns and derivatives, (n_terms, n_columns)."""
        g, dg = term_coefs_and_slopes(scales, self.B)
        g = np.repeat(g, self.n_features, axis=0).T
        dg = np.repeat(dg, self.n_features, axis=0).T
        return np.ascontiguousarray(g), np.ascontiguousarray(dg)

    def standardized_columns_and_slopes(
        self, scales: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return Z and dZ, times the square roots of the weights, and 1 / deviation.

        Z and dZ are (n_scans, n_columns). The deviations (n_columns,) are the standard
        deviations of the columns before they are standardised.
        """
        g, dg = self.column_coefs_and_slopes(scales)
        Z = np.einsum("rnd,rd->nd", self.X, g)
        inverse_sd = compute_inverse_sds((Z**2).sum(0) / self.n_people)
        Z, dZ = Z * inverse_sd, np.einsum("rnd,rd->nd", self.X, dg) * inverse_sd
        # For z = x / sd, dz = dx / sd - z d(log sd), and d(log sd) = z'dx / (n sd).
        return Z, dZ - Z * ((Z * dZ).sum(0) / self.n_people), inverse_sd

    def moments(self, scales: np.ndarray, needs_curvature: bool = False) -> Moments:
        """Return Z'Z, (dZ)'Z, Z't, (dZ)'t and, if `needs_curvature`, (dZ)'dZ."""
        if self.gram is None:
            Z, dZ, _ = self.standardized_columns_and_slopes(scales)
            dZtdZ = dZ.T @ dZ if needs_curvature else None
            return Moments(Z.T @ Z, dZ.T @ Z, Z.T @ self.t, dZ.T @ self.t, dZtdZ)
        g, dg = self.column_coefs_and_slopes(scales)
        # Each region's two combinations of terms, times all terms of all columns: the
        # Gram matrix, which fills no cache, is read once. (column, 2, term, column)
        n_terms = len(g)
        term_combinations = np.stack([g, dg]).transpose(2, 0, 1)
        combined_gram = np.ascontiguousarray(term_combinations) @ self.gram.reshape(
            self.n_columns, n_terms, -1
        )
        combined_gram = combined_gram.reshape(self.n_columns, 2, n_terms, -1)
        ZtZ, dZtZ = np.einsum("dkem,em->kdm", combined_gram, g)
        inverse_sd = compute_inverse_sds(np.diag(ZtZ) / self.n_people)
        # For z = x / sd, dz = dx / sd - z d(log sd).
        log_sd_slope = np.diag(dZtZ) * inverse_sd**2 / self.n_people
        inverse_sd_products = np.outer(inverse_sd, inverse_sd)
        ZtZ, dZtZ = ZtZ * inverse_sd_products, dZtZ * inverse_sd_products
        Ztt = np.einsum("rd,rdk->dk", g, self.Xtt) * inverse_sd[:, None]
        dZtt = np.einsum("rd,rdk->dk", dg, self.Xtt) * inverse_sd[:, None]
        dZtdZ = None
        if needs_curvature:
            dZtdZ = (
                np.einsum("dem,em->dm", combined_gram[:, 1], dg) * inverse_sd_products
            )
            dZtdZ += np.outer(log_sd_slope, log_sd_slope) * ZtZ
            dZtdZ -= log_sd_slope[:, None] * dZtZ.T + dZtZ * log_sd_slope
        dZtZ = dZtZ - log_sd_slope[:, None] * ZtZ
        return Moments(ZtZ, dZtZ, Ztt, dZtt - log_sd_slope[:, None] * Ztt, dZtdZ)

    def __call__(
        self, scales: np.ndarray, ridge: float
    ) -> tuple[float, np.ndarray, float]:
        """Return minus the log evidence, and its derivatives in scales and ridge."""
        k, n_columns = self.n_contrasts, self.n_columns
        if self.gram is None:
            Z, dZ, _ = self.standardized_columns_and_slopes(scales)
            K = Z @ Z.T / ridge + np.eye(len(Z))
            cholesky_factor = cho_factor(K, lower=True)
            K_inverse = cho_solve(cholesky_factor, np.eye(len(K)))
            solved_targets = cho_solve(cholesky_factor, self.t)
            noise_variance = float((self.t * solved_targets).sum()) / (self.dof * k)
            # G is the derivative of minus the log evidence in Z.
            weighted_Z = (
                k * K_inverse @ Z
                - solved_targets @ (solved_targets.T @ Z) / noise_variance
            )
            G = weighted_Z / ridge
            column_gradient = (G * dZ).sum(0)
            ridge_gradient = -(G * Z).sum() / (2 * ridge)
            log_det = 0.0
        else:
            ZtZ, dZtZ, Ztt, dZtt, _ = self.moments(scales)
            cholesky_factor = cho_factor(ZtZ + ridge * np.eye(n_columns), lower=True)
            M_inverse = _invert_by_cholesky(cholesky_factor[0])
            w = cho_solve(cholesky_factor, Ztt)
            # penalised: squared residuals plus ridge times squared weights w
            rss = self.ttt - float((Ztt * w).sum())
            noise_variance = rss / (self.dof * k)
            # G / 2 is the derivative of minus the log evidence in M
            G = k * M_inverse + w @ w.T / noise_variance
            column_gradient = (G * dZtZ).sum(1) - (w * dZtt).sum(1) / noise_variance
            ridge_gradient = (np.trace(G) - k * n_columns / ridge) / 2
            log_det = -n_columns * np.log(ridge)
        log_det += 2 * np.log(np.diag(cholesky_factor[0])).sum()
        negative_log_evidence = (
            self.dof * np.log(2 * np.pi * np.e * noise_variance) + log_det
        )
        scale_gradient = column_gradient.reshape(-1, self.n_features).sum(1)
        return (
            float(negative_log_evidence * k / 2),
            scale_gradient,
            float(ridge_gradient),
        )

    def information(self, scales: np.ndarray, ridge: float) -> np.ndarray:
        """Return the expected curvature of minus the log evidence in log scales.

        This is Fisher's information at known noise variance and ridge (n_rois, n_rois).
        The information about scales is multiplied by ds/d(log s) = s on both sides.
        """
        ZtZ, dZtZ, _, _, dZtdZ = self.moments(scales, needs_curvature=True)
        identity_matrix = np.eye(len(ZtZ))
        M_inverse = np.linalg.inv(ZtZ + ridge * identity_matrix)
        # With K = ZZ'/ridge + I: S = Z'K^-1 Z, dS = (dZ)'K^-1 Z, ddS = (dZ)'K^-1 dZ,
        # all by K^-1 = I - Z M^-1 Z'.
        S = ridge * (identity_matrix - ridge * M_inverse)
        dS = ridge * dZtZ @ M_inverse
        ddS = dZtdZ - dZtZ @ M_inverse @ dZtZ.T
        column_information = self.n_contrasts * (S * ddS + dS * dS.T) / ridge**2
        block_shape = (self.n_rois, self.n_features) * 2
        return column_information.reshape(block_shape).sum((1, 3)) * np.outer(
            scales, scales
        )


def _invert_by_cholesky(lower_cholesky_factor: np.ndarray) -> np.ndarray:
    """Return the inverse of a matrix with this factor in its lower triangle."""
    # A third of the time of solving for the identity matrix.
    inverse_matrix, _ = dpotri(lower_cholesky_factor, lower=True)
    return np.where(
        _make_lower_triangle_mask(len(inverse_matrix)), inverse_matrix, inverse_matrix.T
    )


@lru_cache(maxsize=8)
def _make_lower_triangle_mask(n_rows: int) -> np.ndarray:
    """Return which entries of a matrix are on the diagonal or below."""
    return np.tri(n_rows, dtype=bool)


def count_contrasts(t: np.ndarray) -> int:
    """Return the number of independent columns of centred targets (n_scans, k).

    An orthonormal change of the columns keeps the number, as it keeps the evidence. It
    is at least 1, so that targets that do not vary give no division by 0.
    """
    eigenvalues = np.linalg.eigvalsh(t.T @ t)
    positive_eigenvalue_mask = eigenvalues > 1e-9 * eigenvalues.max(initial=0.0)
    return max(1, int(np.count_nonzero(positive_eigenvalue_mask)))


def class_targets(class_codes: np.ndarray, is_ordered: bool) -> np.ndarray:
    """Return the class number, or without an order a column for each class."""
    if is_ordered or class_codes.max() == 1:
        return class_codes[:, None].astype(float)
    return (class_codes[:, None] == np.unique(class_codes)).astype(float)


def compute_inverse_sds(variances: np.ndarray) -> np.ndarray:
    """Return 1 / sqrt(variance), or 0 for columns that do not vary."""
    max_variance = max(float(variances.max(initial=0.0)), 1e-300)
    constant_column_mask = variances <= 1e-12 * max_variance
    return np.where(
        constant_column_mask,
        0.0,
        1 / np.sqrt(np.where(constant_column_mask, 1.0, variances)),
    )


class ScaleFit(NamedTuple):
    """The scales of one nested model, and its other parameters.

    `interval` (n_rois, 2) holds 95 % intervals; `log_common` is the log of the common
    scale, `spread` the standard deviation of log scales around it.
    """

    scales: np.ndarray
    interval: np.ndarray
    ridge: float
    log_common: float
    spread: float
    log_evidence: float


class _ScalePosterior:
    """Minus the log posterior of ridge, common scale and deviations of regions.

    Its argument x is (log ridge, log common scale, deviations of log scales from it in
    units of `scale_spread`). Additive constants of the priors are left out.
    """

    def __init__(self, evidence_function: LogEvidence, max_scale: float) -> None:
        self.evidence_function = evidence_function
        self.n_rois = evidence_function.n_rois
        self.log_scale_limits = np.log(MIN_SCALE), np.log(max_scale)
        log_n_people = np.log(evidence_function.n_people)
        # Z'UZ has the diagonal n_people: within these limits its columns are fitted
        # fully at one end and not at all at the other.
        self.log_ridge_limits = log_n_people - 10, log_n_people + 15

    def log_scales(self, x: np.ndarray, scale_spread: float) -> np.ndarray:
        """Return the log scales of all regions, within their limits."""
        return np.clip(x[1] + scale_spread * x[2:], *self.log_scale_limits)

    def compute_own_value_and_slope(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value of the model without a network, and its slope."""
        zero_scales = np.zeros(self.n_rois)
        negative_log_evidence, _, ridge_slope = self.evidence_function(
            zero_scales, float(np.exp(x[0]))
        )
        log_ridge_shortfall = self.evidence_function.log_ridge_shortfall_of(x[0])
        return negative_log_evidence + float(
            log_ridge_shortfall**2
        ) / 2, ridge_slope * np.exp(x) - log_ridge_shortfall

    def __call__(self, x: np.ndarray, scale_spread: float) -> tuple[float, np.ndarray]:
        """Return the value and its gradient in x."""
        log_scales = self.log_scales(x, scale_spread)
        scales = np.exp(log_scales)
        negative_log_posterior, scale_gradient, ridge_gradient = self.evidence_function(
            scales, np.exp(x[0])
        )
        lowest_log_scale, highest_log_scale = self.log_scale_limits
        log_scale_gradient = (
            scale_gradient
            * scales
            * ((lowest_log_scale < log_scales) & (log_scales < highest_log_scale))
        )
        log_ridge_shortfall = self.evidence_function.log_ridge_shortfall_of(x[0])
        negative_log_posterior += (
            (x[1] / COMMON_SD) ** 2 + (x[2:] ** 2).sum() + log_ridge_shortfall**2
        ) / 2
        log_ridge_gradient = ridge_gradient * np.exp(x[0]) - log_ridge_shortfall
        common_gradient = log_scale_gradient.sum() + x[1] / COMMON_SD**2
        deviation_gradient = scale_spread * log_scale_gradient + x[2:]
        return negative_log_posterior, np.concatenate(
            [[log_ridge_gradient, common_gradient], deviation_gradient]
        )

    def minimize(
        self,
        x: np.ndarray,
        scale_spread: float,
        n_free_parameters: int,
        relative_tolerance: float = 1e-8,
    ) -> tuple[np.ndarray, float]:
        """Return the minimum over the first entries of x, and its value."""

        def evaluate_free_parameters(
            free_parameters: np.ndarray,
        ) -> tuple[float, np.ndarray]:
            all_parameters = x.copy()
            all_parameters[:n_free_parameters] = free_parameters
            negative_log_posterior, gradient = self(all_parameters, scale_spread)
            return negative_log_posterior, gradient[:n_free_parameters]

        parameter_bounds: list[object] = [self.log_ridge_limits, self.log_scale_limits]
        parameter_bounds += [(None, None)] * self.n_rois
        minimization_result = minimize(
            evaluate_free_parameters,
            x[:n_free_parameters],
            jac=True,
            bounds=parameter_bounds[:n_free_parameters],
            options={"maxiter": 60, "ftol": relative_tolerance},
        )
        x = x.copy()
        x[:n_free_parameters] = minimization_result.x
        return x, float(minimization_result.fun)

    def fit_by_laplace(
        self, x: np.ndarray, negative_log_posterior: float, scale_spread: float
    ) -> ScaleFit:
        """Integrate over the scales by Laplace's approximation around a minimum.

        The curvature is the expected one. Without the integral, the evidence of more
        scales would always be higher. The factors 2 pi of the normal priors and of the
        integral cancel.
        """
        scales = np.exp(self.log_scales(x, scale_spread))
        F = self.evidence_function.information(scales, float(np.exp(x[0])))
        # derivatives of log scales in the common scale and the deviations
        J = np.column_stack([np.ones(self.n_rois), scale_spread * np.eye(self.n_rois)])
        J = J if scale_spread else J[:, :1]
        prior_precisions = [1 / COMMON_SD**2, *np.ones(J.shape[1] - 1)]
        curvature_matrix = J.T @ F @ J + np.diag(prior_precisions)
        log_det = np.linalg.slogdet(curvature_matrix)[1]
        half_widths = 1.96 * np.sqrt(np.diag(J @ np.linalg.inv(curvature_matrix) @ J.T))
        log_interval = np.column_stack(
            [np.log(scales) - half_widths, np.log(scales) + half_widths]
        )
        return ScaleFit(
            scales=scales,
            interval=np.exp(np.clip(log_interval, *self.log_scale_limits)),
            ridge=float(np.exp(x[0])),
            log_common=float(x[1]),
            spread=scale_spread,
            log_evidence=-negative_log_posterior - log_det / 2 - np.log(COMMON_SD),
        )


def fit_scales_by_nested_model(
    evidence_function: LogEvidence, richest_model_name: str, max_scale: float
) -> dict[str, ScaleFit]:
    """Fit all nested models up to the richest, each from the one before.

    Parameters
    ----------
    evidence_function : LogEvidence
    richest_model_name : str
        One of :data:`NESTED_MODELS`.
    max_scale : float
        Largest scale.
    """
    scale_posterior = _ScalePosterior(evidence_function, max_scale)
    n_rois = evidence_function.n_rois
    zero_deviations = np.zeros(n_rois)
    minimization_result = minimize(
        scale_posterior.compute_own_value_and_slope,
        [np.log(evidence_function.n_people)],
        jac=True,
        bounds=[scale_posterior.log_ridge_limits],
    )
    log_ridge = minimization_result.x[0]
    scale_fit_by_model = {
        "none": ScaleFit(
            scales=zero_deviations,
            interval=np.zeros((n_rois, 2)),
            ridge=float(np.exp(log_ridge)),
            log_common=-np.inf,
            spread=0.0,
            log_evidence=-float(minimization_result.fun),
        )
    }
    if richest_model_name == "none":
        return scale_fit_by_model
    # The evidence may have several maxima along the common scale.
    start_parameter_vectors = [
        np.array([log_ridge, np.log(s), *zero_deviations]) for s in (0.2, 0.6, 1.5, 4.0)
    ]
    best_start_parameters = min(
        start_parameter_vectors, key=lambda x: scale_posterior(x, 0.0)[0]
    )
    x, min_negative_log_posterior = scale_posterior.minimize(
        best_start_parameters, 0.0, n_free_parameters=2
    )
    scale_fit_by_model["one"] = scale_posterior.fit_by_laplace(
        x, min_negative_log_posterior, 0.0
    )
    if richest_model_name == "one":
        return scale_fit_by_model
    previous_spread = 1.0  # of no importance, because all deviations are 0
    for scale_spread in _SPREADS:
        x = x.copy()
        x[2:] *= previous_spread / scale_spread
        x, min_negative_log_posterior = scale_posterior.minimize(
            x, scale_spread, n_free_parameters=len(x)
        )
        scale_fit = scale_posterior.fit_by_laplace(
            x, min_negative_log_posterior, scale_spread
        )
        previous_spread = scale_spread
        # The evidence first rises with the spread and then falls: stop at the fall.
        if (
            "regions" in scale_fit_by_model
            and scale_fit.log_evidence <= scale_fit_by_model["regions"].log_evidence
        ):
            break
        scale_fit_by_model["regions"] = scale_fit
    return scale_fit_by_model


def refit_scales(
    evidence_function: LogEvidence,
    *,
    spread: float,
    initial_ridge: float,
    initial_scale: float,
    max_scale: float,
) -> np.ndarray:
    """Return the most probable scales (n_rois,) at a known spread of log scales.

    Parameters
    ----------
    evidence_function : LogEvidence
    spread : float
        Standard deviation of log scales around the common one; 0 for one scale.
    initial_ridge, initial_scale : float
        Start of the ridge and of the scales of all regions.
    max_scale : float
        Largest scale.
    """
    scale_posterior = _ScalePosterior(evidence_function, max_scale)
    x = np.zeros(2 + evidence_function.n_rois)
    x[:2] = np.log([initial_ridge, initial_scale])
    n_free_parameters = len(x) if spread else 2
    # Ranks of scales change no more at smaller tolerances than between draws of people.
    x, _ = scale_posterior.minimize(
        x, spread, n_free_parameters, relative_tolerance=1e-6
    )
    return np.exp(scale_posterior.log_scales(x, spread))
