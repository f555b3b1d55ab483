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

from typing import Any, NamedTuple

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


class ScaleProducts(NamedTuple):
    """Coefficients of Z and products of its columns, as in :class:`ScaleSampler`."""

    g: np.ndarray
    Z: Any
    XtZ: Any
    ZtZ: np.ndarray
    Ztt: np.ndarray


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
    Z : array of shape (n_scans, n_columns) or None
        Where the evidence uses the matrix of the scans.
    XtZ : array of shape (n_terms, n_columns, n_columns) or None
        Products of the terms of all columns with each column of Z, where the evidence
        uses the Gram matrix of the terms.
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
        # of every region, where the matrix of the scans is used: its terms as rows
        self._region_terms = []
        coef_arrays, diagonal_blocks = [], []
        for region_slice in self.region_slices:
            if evidence_function.gram is None:
                region_terms = evidence_function.X[:, :, region_slice]
                flat_terms = region_terms.transpose(2, 0, 1).reshape(
                    -1, region_terms.shape[1]
                )
                self._region_terms.append(np.ascontiguousarray(flat_terms))
            region_coefs, diagonal_block = _compute_grid_coefs_and_products(
                evidence_function, region_slice, term_coefs_on_grid
            )
            coef_arrays.append(region_coefs)
            diagonal_blocks.append(diagonal_block)
        # of every region: coefficients (n_grid, n_terms, n_features), and its block of
        # Z'Z (n_grid, n_features, n_features)
        self._region_coefs = np.stack(coef_arrays)
        self._diagonal_blocks = np.stack(diagonal_blocks)
        # The same as rows of all columns' terms of the region, with the shape
        # (n_rois, n_grid, n_features, n_features * n_terms).
        self._coefs_on_grid = np.einsum(
            "parf,fg->pafgr", self._region_coefs, np.eye(n_features)
        ).reshape(*self._diagonal_blocks.shape[:3], -1)
        # Products of these terms with the targets, with the shape
        # (n_rois, n_features * n_terms, n_targets).
        self._region_Xtt = (
            evidence_function.Xtt.transpose(1, 0, 2)
            .reshape(evidence_function.n_rois, -1, evidence_function.n_targets)
            .copy()
        )
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
        self._set_products(self.compute_products(grid_indices))

    def _set_products(self, scale_products: "ScaleProducts") -> None:
        self.g, self.Z, self.XtZ, self.ZtZ, self.Ztt = scale_products
        if self.XtZ is not None:
            self.XtZ = np.ascontiguousarray(
                self.XtZ
            )  # of a region, rows of all columns

    def compute_products(self, grid_indices: np.ndarray) -> "ScaleProducts":
        """Return the coefficients of all columns and their products at these scales."""
        evidence_function = self.evidence_function
        n_rois, n_columns = evidence_function.n_rois, evidence_function.n_columns
        column_coefs = self._region_coefs[np.arange(n_rois), grid_indices]
        g = column_coefs.transpose(1, 0, 2).reshape(-1, n_columns)
        Ztt = np.einsum("rd,rdk->dk", g, evidence_function.Xtt)
        if evidence_function.gram is None:
            Z = np.einsum("rnd,rd->nd", evidence_function.X, g)
            return ScaleProducts(g, Z, None, Z.T @ Z, Ztt)
        ZtX = _combine_gram_rows(evidence_function.gram, g)
        ZtZ = np.einsum("mrd,rd->md", ZtX, g)
        return ScaleProducts(g, None, ZtX.transpose(1, 2, 0), ZtZ, Ztt)

    def draw_sweep_densities(self) -> np.ndarray:
        """Draw everything once; return the conditional densities (n_rois, n_grid)."""
        n_rois = self.evidence_function.n_rois
        self.draw_ridge()
        conditional_densities = np.empty((n_rois, _N_GRID))
        for p in self.rng.permutation(n_rois):
            conditional_densities[p] = self.update_region_scale(p)
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
        self._shifted_blocks = (
            self._diagonal_blocks + self.ridge * self._identity_matrix
        )
        standard_edges = (self.cell_edges - self.log_common) / self.spread
        self._log_prior = log_interval_probability(
            standard_edges[:-1], standard_edges[1:]
        )

    def update_region_scale(self, p: int) -> np.ndarray:
        """Draw the scale of region p given all others; return its density on the grid.

        With M of all other regions, and b the products of the region's columns with
        theirs, the region adds the Schur complement b(s)'b(s) + ridge - b'M^-1 b to the
        determinant, and its inverse to the inverse.
        """
        evidence_function = self.evidence_function
        region_slice = self.region_slices[p]
        k = evidence_function.n_targets
        coefs_on_grid = self._coefs_on_grid[p]
        n_grid, n_features, n_terms = coefs_on_grid.shape  # terms of all its columns
        flat_coefs = coefs_on_grid.reshape(-1, n_terms)
        stacked_rows = self._stack_region_products(p)
        # The inverse of M without the region is P - C B^-1 C', where P is the inverse
        # of M, C are its columns of the region and B is their block.
        update_rows = np.empty((2 * n_features, evidence_function.n_columns))
        scaled_rows = np.empty_like(update_rows)
        update_rows[:n_features] = self.M_inverse.T[region_slice]
        block_inverse = _invert_blocks(update_rows[:n_features, region_slice])
        np.matmul(
            -block_inverse, update_rows[:n_features], out=scaled_rows[:n_features]
        )
        # R (P - C B^-1 C') = (R - R C B^-1 E') P, where E are the region's unit vectors
        stacked_rows[:, region_slice] = stacked_rows @ scaled_rows[:n_features].T
        # P is symmetric; its rows are contiguous in this order.
        solved_rows = stacked_rows @ self.M_inverse.T
        row_products = solved_rows @ stacked_rows.T
        # Schur complement of the other columns in M, at every scale of the grid
        explained_rows = flat_coefs @ row_products[:-k, :-k]
        schur_complement = self._shifted_blocks[p] - np.einsum(
            "aft,agt->afg", explained_rows.reshape(coefs_on_grid.shape), coefs_on_grid
        )
        if n_features > 1:
            # Symmetrise; otherwise rounding errors accumulate over regions.
            schur_complement += schur_complement.transpose(0, 2, 1).copy()
            schur_complement /= 2
        schur_inverse = _invert_blocks(schur_complement)
        log_det = _compute_log_dets(schur_complement)
        # products of the region's terms with the targets, less what others explain
        unexplained_Xtt = self._region_Xtt[p] - row_products[:-k, -k:]
        projected_rhs = (flat_coefs @ unexplained_Xtt).reshape(n_grid, n_features, k)
        rss_reduction = np.einsum(
            "afk,afg,agk->a", projected_rhs, schur_inverse, projected_rhs
        )
        explained_ttt = np.einsum("kk", row_products[-k:, -k:])
        rss = evidence_function.ttt - explained_ttt - rss_reduction
        log_density = self._log_prior - self._half_dof * np.log(rss)
        log_density -= 0.5 * evidence_function.n_contrasts * log_det
        a, scale_density = draw_index_and_probabilities(log_density, self.rng)
        if a == self.grid_indices[p]:
            return scale_density
        self._set_region_scale(p, a, stacked_rows[:-k])
        # The new inverse is that without the region plus D S^-1 D', where S is the
        # Schur complement, and D has the solved columns and, for the region, -I.
        new_rows = update_rows[n_features:]
        np.matmul(coefs_on_grid[a], solved_rows[:-k], out=new_rows)
        new_rows[:, region_slice] = -self._identity_matrix
        np.matmul(schur_inverse[a], new_rows, out=scaled_rows[n_features:])
        self.M_inverse = dgemm(
            1.0,
            update_rows.T,
            scaled_rows.T,
            1.0,
            self.M_inverse,
            trans_b=True,
            overwrite_c=True,
        )
        return scale_density

    def _stack_region_products(self, p: int) -> np.ndarray:
        """Return products of the region's terms, and of the targets, with Z as rows.

        The columns of the region itself are 0.
        """
        evidence_function = self.evidence_function
        region_slice = self.region_slices[p]
        n_terms, k = self._region_Xtt[p].shape
        stacked_rows = np.empty((n_terms + k, evidence_function.n_columns))
        if evidence_function.gram is None:
            np.matmul(self._region_terms[p], self.Z, out=stacked_rows[:-k])
        else:
            region_products = self.XtZ[:, region_slice].transpose(1, 0, 2)
            stacked_rows[:-k] = region_products.reshape(n_terms, -1)
        stacked_rows[-k:] = self.Ztt.T
        stacked_rows[:, region_slice] = 0.0
        return stacked_rows

    def _set_region_scale(self, p: int, a: int, term_rows: np.ndarray) -> None:
        """Move a region to a scale of the grid; `term_rows` are its terms' products."""
        evidence_function = self.evidence_function
        region_slice = self.region_slices[p]
        region_coefs, coef_rows = self._region_coefs[p, a], self._coefs_on_grid[p, a]
        self.grid_indices[p] = a
        self.g[:, region_slice] = region_coefs
        if evidence_function.gram is None:
            self.Z[:, region_slice] = (coef_rows @ self._region_terms[p]).T
        else:
            ZtX = _combine_gram_rows(evidence_function.gram[region_slice], region_coefs)
            self.XtZ[:, :, region_slice] = ZtX.transpose(1, 2, 0)
        new_column_rows = coef_rows @ term_rows
        new_column_rows[:, region_slice] = self._diagonal_blocks[p, a]
        self.ZtZ[region_slice] = new_column_rows
        self.ZtZ[:, region_slice] = new_column_rows.T
        self.Ztt[region_slice] = coef_rows @ self._region_Xtt[p]

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
        proposed_products = self.compute_products(proposed_indices)
        log_ratio = self.log_likelihood(
            proposed_products.ZtZ, proposed_products.Ztt
        ) - self.log_likelihood(self.ZtZ, self.Ztt)
        log_ratio += np.log(stretch_factor)  # Jacobian and density of the log scales
        log_ratio -= (stretch_factor**2 - 1) * self.spread**2 / 2  # prior of the spread
        log_ratio -= (proposed_log_common**2 - self.log_common**2) / (2 * COMMON_SD**2)
        if np.log(self.rng.random()) >= log_ratio:
            return log_scales
        self.grid_indices = proposed_indices
        self._set_products(proposed_products)
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


def _combine_gram_rows(gram_rows: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Return products of columns Z of coefficients g (n_terms, n_rows) with all terms.

    `gram_rows` are those of the columns of Z in the Gram matrix of the terms.
    """
    n_rows, n_terms, _, n_columns = gram_rows.shape
    # The Gram matrix, which fills no cache, is read once.
    combined_rows = g.T[:, None] @ gram_rows.reshape(n_rows, n_terms, -1)
    return combined_rows.reshape(n_rows, n_terms, n_columns)


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


def _invert_blocks(symmetric_blocks: np.ndarray) -> np.ndarray:
    """Return inverses of symmetric blocks (..., n, n)."""
    if symmetric_blocks.shape[-1] == 1:  # LAPACK would take most of the time of a draw
        return 1 / symmetric_blocks
    return np.linalg.inv(symmetric_blocks)


def _compute_log_dets(symmetric_blocks: np.ndarray) -> np.ndarray:
    """Return logs of determinants of symmetric blocks (..., n, n)."""
    if symmetric_blocks.shape[-1] == 1:
        return np.log(np.abs(symmetric_blocks[..., 0, 0]))
    return np.linalg.slogdet(symmetric_blocks)[1]


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
