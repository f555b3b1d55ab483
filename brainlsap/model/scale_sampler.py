r"""Gibbs sampling of the scales of all regions from their posterior.

Given ridge :math:`\lambda`, log common scale m and spread :math:`\tau`, the log scales
:math:`x_p` have independent normal priors with mean m and standard deviation
:math:`\tau`. The prior of m is normal around 0; that of :math:`\tau` is half-normal.
The line of log scales is divided into cells around the points of a grid; the first
and the last cell are unbounded. The targets have the density of :class:`.LogEvidence`
at the grid points of the cells: the density is constant within a cell. One sweep draws

1. the ridge on a grid, from the eigenvalues of Z'Z;
2. the cell of every region given all other cells: only this region's rows and columns
   of :math:`M = Z^\top U Z + \lambda I` change, and the inverse of M is updated by the
   formula for the inverse of a partitioned matrix;
3. the log scale of every region within its cell, from its prior;
4. the common scale (normal) and the spread (on a grid);
5. all log scales jointly, by Metropolis moves that shift and stretch them.

Steps 2 and 3 draw cell and log scale jointly, because the cells of the other regions
are all that step 2 needs of them. The tests compare every conditional with one that is
computed from scratch, the sampled states with a posterior that is enumerated on the
grid, and whole sweeps without data with the prior.
"""

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dgemm
from scipy.special import log_ndtr, ndtri_exp

from brainlsap.model.evidence import (
    COMMON_SD,
    MIN_SCALE,
    LogEvidence,
    ScaleFit,
    compute_inverse_sds,
    term_coefs_and_slopes,
)

_N_GRID = 36
# The number of draws that are used, divided by this, is the number of burn-in sweeps.
_DRAWS_PER_BURN_IN_SWEEP = 6
# Proposals of the joint moves: standard deviations of the shift of log scales, one for
# every move of a sweep, and of the log of the factor that stretches them. The larger
# shift is accepted where the data are uninformative.
_SHIFT_SDS = (0.2, 1.0)
_LOG_STRETCH_SD = 0.5


def sample_scales(
    evidence_function: LogEvidence,
    initial_fit: ScaleFit,
    n_draws: int,
    max_scale: float,
    rng: np.random.Generator,
) -> ScaleFit:
    """Return posterior means and 95 % intervals of the scales, from an initial fit.

    The conditional densities of a region's scale are averaged over sweeps, not the
    drawn scales (Rao-Blackwell). Scales and ridge are exponentials of the mean logs;
    `log_common` is the mean log scale over regions; `log_evidence` stays that of the
    initial fit. A sixth as many sweeps come first as burn-in.
    """
    scale_sampler = ScaleSampler(evidence_function, initial_fit, max_scale, rng)
    density_draws, log_ridge_draws, spread_draws = [], [], []
    for _ in range(n_draws // _DRAWS_PER_BURN_IN_SWEEP + n_draws):
        density_draws.append(scale_sampler.draw_sweep_densities())
        log_ridge_draws.append(scale_sampler.log_ridge)
        spread_draws.append(scale_sampler.spread)
    scale_density = np.mean(density_draws[-n_draws:], axis=0)
    log_scale_grid = scale_sampler.log_scale_grid
    cell_edges = (log_scale_grid[1:] + log_scale_grid[:-1]) / 2
    log_intervals = [
        np.interp(
            (0.025, 0.975),
            region_density.cumsum()[:-1],
            cell_edges,
            log_scale_grid[0],
            log_scale_grid[-1],
        )
        for region_density in scale_density
    ]
    return ScaleFit(
        scales=np.exp(scale_density @ log_scale_grid),
        interval=np.exp(log_intervals),
        ridge=float(np.exp(np.mean(log_ridge_draws[-n_draws:]))),
        log_common=float((scale_density @ log_scale_grid).mean()),
        spread=float(np.mean(spread_draws[-n_draws:])),
        log_evidence=initial_fit.log_evidence,
    )


class ScaleSampler:
    """The state of the sampler, and one method for every step of a sweep.

    Parameters
    ----------
    evidence_function : LogEvidence
    initial_fit : ScaleFit
        Fit at which sampling starts.
    max_scale : float
        Largest scale of the grid.
    rng : numpy.random.Generator

    Attributes
    ----------
    grid : array of shape (n_grid,)
        Log scales at which the evidence is computed.
    cell_edges : array of shape (n_grid + 1,)
        Limits of the cells around the grid points; the outer two are infinite.
    grid_indices : int array of shape (n_rois,)
        Cell of the log scale of every region.
    log_common, spread, log_ridge : float
    g : array of shape (n_terms, n_columns)
        Coefficients of the standardised columns Z at these scales.
    ZtZ : array of shape (n_columns, n_columns)
    Ztt : array of shape (n_columns, n_targets)
    M_inverse : array of shape (n_columns, n_columns)
        Inverse of ZtZ + ridge I.
    """

    def __init__(
        self,
        evidence_function: LogEvidence,
        initial_fit: ScaleFit,
        max_scale: float,
        rng: np.random.Generator,
    ) -> None:
        self.evidence_function, self.rng = evidence_function, rng
        self.log_common, self.spread = initial_fit.log_common, initial_fit.spread
        self.log_ridge = float(np.log(initial_fit.ridge))
        self.log_scale_grid = np.linspace(np.log(MIN_SCALE), np.log(max_scale), _N_GRID)
        inner_edges = (self.log_scale_grid[1:] + self.log_scale_grid[:-1]) / 2
        # A log scale beyond the limits counts as the limit, as in `_ScalePosterior`.
        self.cell_edges = np.concatenate([[-np.inf], inner_edges, [np.inf]])
        self.spread_grid = np.geomspace(0.03, 3.0, 60)
        self.log_ridge_grid = np.log(evidence_function.n_people / 10) + np.linspace(
            -4, 10, 80
        )
        self._half_dof = 0.5 * evidence_function.n_contrasts * evidence_function.dof
        n_features = evidence_function.n_features
        self._identity_matrix = np.eye(n_features)
        self.region_slices = [
            slice(p * n_features, (p + 1) * n_features)
            for p in range(evidence_function.n_rois)
        ]
        term_coefs_on_grid, _ = term_coefs_and_slopes(
            np.exp(self.log_scale_grid), evidence_function.B
        )
        # of every region: coefficients (n_grid, n_terms, n_features), the same as rows
        # of all its columns' terms (n_grid, n_features, n_features * n_terms), and its
        # block of Z'Z (n_grid, n_features, n_features)
        self._region_coefs, self._coefs_on_grid, self._diagonal_blocks = [], [], []
        # of every region, where the matrix of the scans is used: its terms, contiguous
        self._region_terms = []
        for region_slice in self.region_slices:
            if evidence_function.gram is None:
                region_terms = np.ascontiguousarray(
                    evidence_function.X[:, :, region_slice]
                )
                self._region_terms.append(region_terms)
            region_coefs, diagonal_block = _compute_grid_coefs_and_products(
                evidence_function, region_slice, term_coefs_on_grid
            )
            region_coefs_on_grid = np.einsum(
                "arf,fg->afgr", region_coefs, np.eye(n_features)
            )
            self._region_coefs.append(region_coefs)
            self._coefs_on_grid.append(
                region_coefs_on_grid.reshape(_N_GRID, n_features, -1)
            )
            self._diagonal_blocks.append(diagonal_block)
        log_scales = np.log(np.maximum(initial_fit.scales, 1e-9))
        self.set_scales(self.nearest_grid_indices(log_scales))

    @property
    def ridge(self) -> float:
        """The ridge."""
        return float(np.exp(self.log_ridge))

    def nearest_grid_indices(self, region_log_scales: np.ndarray) -> np.ndarray:
        """Return the position on the grid of every log scale."""
        return np.abs(self.log_scale_grid - region_log_scales[:, None]).argmin(axis=1)

    def set_scales(self, grid_indices: np.ndarray) -> None:
        """Move to these scales."""
        self.grid_indices = grid_indices
        self.g, self.ZtZ, self.Ztt = self.compute_coefs_and_products(grid_indices)

    def compute_coefs_and_products(
        self, grid_indices: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the coefficients of all columns, Z'Z and Z't at these scales."""
        evidence_moments = self.evidence_function.moments(
            np.exp(self.log_scale_grid[grid_indices])
        )
        column_coefs = [
            region_coefs[a]
            for region_coefs, a in zip(self._region_coefs, grid_indices, strict=True)
        ]
        return (
            np.concatenate(column_coefs, axis=1),
            evidence_moments.ZtZ,
            evidence_moments.Ztt,
        )

    def draw_sweep_densities(self) -> np.ndarray:
        """Draw everything once; return the conditional densities (n_rois, n_grid)."""
        n_rois = self.evidence_function.n_rois
        self.draw_ridge()
        conditional_densities = np.empty((n_rois, _N_GRID))
        Z = None
        if self.evidence_function.gram is None:
            Z = np.einsum("rnd,rd->nd", self.evidence_function.X, self.g)
        for p in self.rng.permutation(n_rois):
            conditional_densities[p] = self.update_region_scale(p, Z)
        log_scales = self.draw_log_scales_within_cells()
        self.draw_log_common_scale(log_scales)
        self.draw_spread(log_scales)
        for shift_sd in _SHIFT_SDS:
            log_scales = self.move_log_scales_jointly(log_scales, shift_sd)
        return conditional_densities

    def draw_ridge(self) -> None:
        """Draw the ridge on its grid given all scales; compute the inverse of M."""
        n_contrasts = self.evidence_function.n_contrasts
        eigenvalues, eigenvectors = np.linalg.eigh(self.ZtZ)
        shifted_eigenvalues = (
            np.maximum(eigenvalues, 0.0) + np.exp(self.log_ridge_grid)[:, None]
        )
        projected_energy = ((eigenvectors.T @ self.Ztt) ** 2).sum(axis=1)
        rss_values = self.evidence_function.ttt - (
            projected_energy / shifted_eigenvalues
        ).sum(axis=1)
        log_dets = (
            np.log(shifted_eigenvalues).sum(axis=1)
            - len(self.ZtZ) * self.log_ridge_grid
        )
        log_likelihood = (
            -self._half_dof * np.log(rss_values) - 0.5 * n_contrasts * log_dets
        )
        log_ridge_shortfalls = self.evidence_function.log_ridge_shortfall_of(
            self.log_ridge_grid
        )
        grid_position, _ = draw_index_and_probabilities(
            log_likelihood - log_ridge_shortfalls**2 / 2, self.rng
        )
        self.log_ridge = self.log_ridge_grid[grid_position]
        M_inverse = (eigenvectors / shifted_eigenvalues[grid_position]) @ eigenvectors.T
        self.M_inverse = np.asfortranarray(M_inverse)
        # What the draws of all regions share, until common scale and spread change.
        ridge_times_identity = self.ridge * self._identity_matrix
        self._shifted_blocks = [
            region_block + ridge_times_identity
            for region_block in self._diagonal_blocks
        ]
        standard_edges = (self.cell_edges - self.log_common) / self.spread
        self._log_prior = log_interval_probability(
            standard_edges[:-1], standard_edges[1:]
        )

    def update_region_scale(self, p: int, Z: Any) -> np.ndarray:
        """Draw the scale of region p given all others; return its density on the grid.

        Z is updated in place where the evidence uses the matrix of the scans.
        """
        evidence_function = self.evidence_function
        region_slice = self.region_slices[p]
        k = evidence_function.n_targets
        region_coefs = self._region_coefs[p]
        region_coefs_on_grid = self._coefs_on_grid[p]
        n_terms = region_coefs_on_grid.shape[2]  # of all columns of the region
        self._remove_from_inverse(region_slice)
        # products of the region's terms, and of the targets, with all other columns
        stacked_rows = np.empty((n_terms + k, evidence_function.n_columns))
        if evidence_function.gram is None:
            X = self._region_terms[p]
            stacked_rows[:-k] = X.transpose(2, 0, 1).reshape(n_terms, -1) @ Z
        else:
            term_products = np.einsum(
                "frem,em->frm", evidence_function.gram[region_slice], self.g
            )
            stacked_rows[:-k] = term_products.reshape(n_terms, -1)
        stacked_rows[-k:] = self.Ztt.T
        stacked_rows[:, region_slice] = 0.0
        # M_inverse is symmetric; its rows are contiguous in this order
        solved_rows = stacked_rows @ self.M_inverse.T
        row_products = solved_rows @ stacked_rows.T
        # Schur complement of the other columns in M, at every scale of the grid
        explained_rows = (
            region_coefs_on_grid.reshape(-1, n_terms) @ row_products[:-k, :-k]
        )
        schur_complement = self._shifted_blocks[p] - np.einsum(
            "aft,agt->afg",
            explained_rows.reshape(region_coefs_on_grid.shape),
            region_coefs_on_grid,
        )
        if len(self._identity_matrix) > 1:
            # Symmetrise; otherwise rounding errors accumulate over regions.
            schur_complement += schur_complement.transpose(0, 2, 1).copy()
            schur_complement /= 2
        schur_inverse, log_det = _invert_with_log_dets(schur_complement)
        # products of the region's terms with the targets, less what others explain
        Xtt = (
            evidence_function.Xtt[:, region_slice]
            .transpose(1, 0, 2)
            .reshape(n_terms, k)
        )
        projected_rhs = region_coefs_on_grid @ (Xtt - row_products[:-k, -k:])
        rss_reduction = (projected_rhs * (schur_inverse @ projected_rhs)).sum(
            axis=(1, 2)
        )
        rss = evidence_function.ttt - row_products[-k:, -k:].trace() - rss_reduction
        log_density = self._log_prior - self._half_dof * np.log(rss)
        log_density -= 0.5 * evidence_function.n_contrasts * log_det
        a, scale_density = draw_index_and_probabilities(log_density, self.rng)
        # move to the drawn scale
        self.grid_indices[p], self.g[:, region_slice] = a, region_coefs[a]
        if Z is not None:
            Z[:, region_slice] = np.einsum("rnf,rf->nf", X, region_coefs[a])
        new_column_rows = region_coefs_on_grid[a] @ stacked_rows[:-k]
        new_column_rows[:, region_slice] = self._diagonal_blocks[p][a]
        self.ZtZ[region_slice] = new_column_rows
        self.ZtZ[:, region_slice] = new_column_rows.T
        self.Ztt[region_slice] = region_coefs_on_grid[a] @ Xtt
        solved_columns = (region_coefs_on_grid[a] @ solved_rows[:-k]).T
        self._add_to_inverse(region_slice, solved_columns, schur_inverse[a])
        return scale_density

    def _remove_from_inverse(self, region_slice: slice) -> None:
        """Downdate: remove this region's block from the inverse of M, in place."""
        inverse_columns = self.M_inverse[:, region_slice].copy()
        block_inverse, _ = _invert_with_log_dets(inverse_columns[region_slice])
        solved_rows = block_inverse @ inverse_columns.T
        self.M_inverse = dgemm(
            -1.0, inverse_columns, solved_rows, 1.0, self.M_inverse, overwrite_c=True
        )

    def _add_to_inverse(
        self,
        region_slice: slice,
        solved_columns: np.ndarray,
        schur_inverse: np.ndarray,
    ) -> None:
        """Update: add a region's block to the inverse of M, in place.

        `solved_columns` (n_columns, n_features) is the inverse of M without the region,
        times the region's columns of M; its rows of the region are overwritten.
        """
        # With C = (columns; -I) the inverse of the whole M is that without the region
        # plus C schur_inverse C'.
        solved_columns[region_slice] = -self._identity_matrix
        scaled_rows = schur_inverse @ solved_columns.T
        self.M_inverse = dgemm(
            1.0, solved_columns, scaled_rows, 1.0, self.M_inverse, overwrite_c=True
        )

    def draw_log_scales_within_cells(self) -> np.ndarray:
        """Draw the log scale of every region from its prior, within its cell."""
        lower_edges = self.cell_edges[self.grid_indices]
        upper_edges = self.cell_edges[self.grid_indices + 1]
        standard_normals = draw_truncated_normal(
            (lower_edges - self.log_common) / self.spread,
            (upper_edges - self.log_common) / self.spread,
            self.rng,
        )
        log_scales = self.log_common + self.spread * standard_normals
        return np.clip(log_scales, lower_edges, upper_edges)

    def draw_log_common_scale(self, log_scales: np.ndarray) -> None:
        """Draw the log of the common scale: normal given the log scales."""
        posterior_precision = len(log_scales) / self.spread**2 + 1 / COMMON_SD**2
        posterior_mean = log_scales.sum() / self.spread**2 / posterior_precision
        self.log_common = posterior_mean + self.rng.normal() / np.sqrt(
            posterior_precision
        )

    def draw_spread(self, log_scales: np.ndarray) -> None:
        """Draw the spread on its grid; its prior is half-normal with deviation 1.

        The grid is even in log spread, which adds log spread to the density.
        """
        spread_grid = self.spread_grid
        sum_of_squares = ((log_scales - self.log_common) ** 2).sum()
        log_density = (1 - len(log_scales)) * np.log(spread_grid)
        log_density -= sum_of_squares / spread_grid**2 / 2
        grid_position, _ = draw_index_and_probabilities(
            log_density - spread_grid**2 / 2, self.rng
        )
        self.spread = spread_grid[grid_position]

    def move_log_scales_jointly(
        self, log_scales: np.ndarray, shift_sd: float
    ) -> np.ndarray:
        r"""Shift and stretch all scales by a Metropolis step; return the log scales.

        This improves mixing where the data are uninformative. The proposal is
        :math:`m' = m + \delta`, :math:`\tau' = r \tau` and
        :math:`x_p' = m' + r (x_p - m)`, with :math:`\delta` and :math:`\log r` normal
        around 0. Its Jacobian is :math:`r^{n+1}`; the density of the log scales given
        m and :math:`\tau` changes by :math:`r^{-n}`, so that r remains in the ratio.
        The cell of a log scale is that of the nearest grid point, also beyond the
        limits.
        """
        log_shift = self.rng.normal(scale=shift_sd)
        stretch_factor = np.exp(self.rng.normal(scale=_LOG_STRETCH_SD))
        proposed_log_common = self.log_common + log_shift
        proposed_log_scales = proposed_log_common + stretch_factor * (
            log_scales - self.log_common
        )
        proposed_indices = self.nearest_grid_indices(proposed_log_scales)
        g, ZtZ, Ztt = self.compute_coefs_and_products(proposed_indices)
        log_ratio = self.log_likelihood(ZtZ, Ztt) - self.log_likelihood(
            self.ZtZ, self.Ztt
        )
        log_ratio += np.log(stretch_factor)  # Jacobian and density of the log scales
        log_ratio -= (stretch_factor**2 - 1) * self.spread**2 / 2  # prior of the spread
        log_ratio -= (proposed_log_common**2 - self.log_common**2) / (2 * COMMON_SD**2)
        if np.log(self.rng.random()) >= log_ratio:
            return log_scales
        self.grid_indices, self.g = proposed_indices, g
        self.ZtZ, self.Ztt = ZtZ, Ztt
        self.log_common = proposed_log_common
        self.spread = stretch_factor * self.spread
        return proposed_log_scales

    def log_likelihood(self, ZtZ: Any, Ztt: np.ndarray) -> float:
        """Return the log evidence at the present ridge, up to a constant."""
        cholesky_factor = cho_factor(ZtZ + self.ridge * np.eye(len(ZtZ)), lower=True)
        rss = self.evidence_function.ttt - float(
            (Ztt * cho_solve(cholesky_factor, Ztt)).sum()
        )
        half_log_det = np.log(np.diag(cholesky_factor[0])).sum()
        n_contrasts = self.evidence_function.n_contrasts
        return -self._half_dof * np.log(rss) - n_contrasts * half_log_det


def _compute_grid_coefs_and_products(
    evidence_function: LogEvidence, region_slice: slice, term_coefs_on_grid: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return a region's coefficients and block of Z'Z at every scale of the grid."""
    if evidence_function.gram is None:
        X = evidence_function.X[:, :, region_slice]
        term_gram = np.einsum("rnf,enm->frem", X, X)
    else:
        term_gram = evidence_function.gram[region_slice, :, :, region_slice]
    ZtZ = np.einsum(
        "ar,frem,ae->afm",
        term_coefs_on_grid,
        term_gram,
        term_coefs_on_grid,
        optimize=True,
    )
    inverse_sd = compute_inverse_sds(
        np.einsum("aff->af", ZtZ) / evidence_function.n_people
    )
    standardized_coefs = term_coefs_on_grid[:, :, None] * inverse_sd[:, None, :]
    return standardized_coefs, ZtZ * inverse_sd[:, :, None] * inverse_sd[:, None, :]


def _invert_with_log_dets(
    symmetric_blocks: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return inverses of symmetric blocks (..., n, n), and logs of determinants."""
    if symmetric_blocks.shape[-1] == 1:  # LAPACK would take most of the time of a draw
        return 1 / symmetric_blocks, np.log(np.abs(symmetric_blocks[..., 0, 0]))
    return np.linalg.inv(symmetric_blocks), np.linalg.slogdet(symmetric_blocks)[1]


def log_interval_probability(
    lower_limits: np.ndarray, upper_limits: np.ndarray
) -> np.ndarray:
    """Return the log of the standard normal probability between two limits."""
    # Use the tail that is small: differences of values near 1 lose their digits.
    upper_tail_mask = lower_limits > 0
    lower_limits, upper_limits = np.where(
        upper_tail_mask, (-upper_limits, -lower_limits), (lower_limits, upper_limits)
    )
    log_upper_probabilities = log_ndtr(upper_limits)
    return log_upper_probabilities + np.log1p(
        -np.exp(log_ndtr(lower_limits) - log_upper_probabilities)
    )


def draw_truncated_normal(
    lower_limits: np.ndarray, upper_limits: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw standard normal numbers between limits, by the inverse distribution."""
    upper_tail_mask = lower_limits > 0
    lower_limits, upper_limits = np.where(
        upper_tail_mask, (-upper_limits, -lower_limits), (lower_limits, upper_limits)
    )
    log_upper_probabilities = log_ndtr(upper_limits)
    uniform_draws = rng.random(len(lower_limits))
    lower_ratios = np.exp(log_ndtr(lower_limits) - log_upper_probabilities)
    normal_draws = ndtri_exp(
        log_upper_probabilities
        + np.log(lower_ratios + uniform_draws * (1 - lower_ratios))
    )
    return np.where(upper_tail_mask, -normal_draws, normal_draws)


def draw_index_and_probabilities(
    log_density: np.ndarray, rng: np.random.Generator
) -> tuple[int, np.ndarray]:
    """Return a drawn position, and the probabilities of all."""
    density = np.exp(log_density - log_density.max())
    cumulative_density = density.cumsum()
    density_sum = cumulative_density[-1]
    grid_position = int(cumulative_density.searchsorted(rng.random() * density_sum))
    return min(grid_position, len(density) - 1), density / density_sum
