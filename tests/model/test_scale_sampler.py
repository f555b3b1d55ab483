"""The sampler of the scales against a dense sampler and a posterior by enumeration."""

from itertools import product

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import halfnorm, norm, truncnorm

from brainlsap.graph import Preparation
from brainlsap.model.evidence import (
    COMMON_SD,
    LogEvidence,
    ScaleFit,
    diffusion_terms,
    term_basis,
)
from brainlsap.model.scale_sampler import (
    ScaleSampler,
    draw_index_and_probabilities,
    draw_truncated_normal,
    log_interval_probability,
)

MAX_SCALE = 10.0
B = term_basis(MAX_SCALE)


def make_evidence(n_scans, n_rois, n_features, by_scans, n_targets=2, seed=0):
    rng = np.random.default_rng(seed)
    W = rng.gamma(0.5, size=(n_scans, n_rois, n_rois)) * 10
    W = W + W.transpose(0, 2, 1)
    W[:, np.arange(n_rois), np.arange(n_rois)] = 0
    X = rng.normal(size=(n_scans, n_rois, n_features))
    targets = rng.normal(size=(n_scans, n_targets)) + X[:, :1, 0]
    weights = rng.uniform(0.3, 1.0, n_scans)
    terms = diffusion_terms(W, X, Preparation(), B)
    return LogEvidence(terms, targets, weights, n_features, B, by_scans)


def make_sampler(evidence, seed=1, spread=0.7):
    n_rois = evidence.n_rois
    scales = np.random.default_rng(seed).uniform(0.05, 5.0, n_rois)
    initial = ScaleFit(scales, np.zeros((n_rois, 2)), 3.0, 0.2, spread, 0.0)
    return ScaleSampler(evidence, initial, MAX_SCALE, np.random.default_rng(seed))


def cell_limits(grid, grid_index):
    """Limits of cells that end halfway between grid points, or not at all."""
    edges = np.array([-np.inf, *(grid[1:] + grid[:-1]) / 2, np.inf])
    return edges[grid_index], edges[grid_index + 1]


def log_posterior(evidence, grid, grid_index, ridge, log_common, spread):
    """Log probability of cells and the ridge, up to a constant, from scratch."""
    minus_log_evidence, _, _ = evidence(np.exp(grid[grid_index]), ridge)
    lower, upper = cell_limits(grid, grid_index)
    # `norm(log_common, spread)` would take longer than everything else.
    lower, upper = (lower - log_common) / spread, (upper - log_common) / spread
    is_above = lower > 0  # where the distribution function is near 1
    cell_mass = np.where(
        is_above, ndtr(-lower) - ndtr(-upper), ndtr(upper) - ndtr(lower)
    )
    return np.log(cell_mass).sum() - minus_log_evidence


class DenseSampler:
    """Every conditional from scratch by the evidence; draws in the same order."""

    def __init__(self, sampler, rng):
        self.evidence_function, self.grid, self.rng = (
            sampler.evidence_function,
            sampler.log_scale_grid,
            rng,
        )
        self.grid_index = sampler.grid_indices.copy()
        self.log_common, self.spread = sampler.log_common, sampler.spread
        self.spreads = sampler.spread_grid
        self.log_ridges = sampler.log_ridge_grid

    def log_density(self, grid_index, log_ridge):
        state = self.log_common, self.spread
        return log_posterior(
            self.evidence_function, self.grid, grid_index, np.exp(log_ridge), *state
        )

    def draw_sweep_densities(self):
        densities = np.array(
            [self.log_density(self.grid_index, ridge) for ridge in self.log_ridges]
        )
        densities -= (
            self.evidence_function.log_ridge_shortfall_of(self.log_ridges) ** 2 / 2
        )
        self.log_ridge = self.log_ridges[
            draw_index_and_probabilities(densities, self.rng)[0]
        ]
        for region in self.rng.permutation(len(self.grid_index)):
            densities = np.empty(len(self.grid))
            for a in range(len(self.grid)):
                self.grid_index[region] = a
                densities[a] = self.log_density(self.grid_index, self.log_ridge)
            self.grid_index[region], _ = draw_index_and_probabilities(
                densities, self.rng
            )
        n_rois = len(self.grid_index)
        lower, upper = (
            (limits - self.log_common) / self.spread
            for limits in cell_limits(self.grid, self.grid_index)
        )
        uniform = self.rng.random(n_rois)
        # In cells above the prior mean, small uniform numbers are far from the mean.
        uniform = np.where(lower > 0, 1 - uniform, uniform)
        log_scales = self.log_common + self.spread * truncnorm.ppf(
            uniform, lower, upper
        )
        # normal prior and normal likelihood of the common scale
        precision = n_rois / self.spread**2 + 1 / COMMON_SD**2
        mean = (log_scales / self.spread**2).sum() / precision
        self.log_common = mean + self.rng.normal() / np.sqrt(precision)
        deviations = log_scales - self.log_common
        densities = [
            -(deviations**2).sum() / spread**2 / 2
            - n_rois * np.log(spread)
            - spread**2 / 2
            + np.log(spread)  # the grid is even in log spread
            for spread in self.spreads
        ]
        self.spread = self.spreads[
            draw_index_and_probabilities(np.array(densities), self.rng)[0]
        ]
        for shift_sd in (0.2, 1.0):
            log_scales = self.move_log_scales_jointly(log_scales, shift_sd)

    def log_joint(self, log_scales, grid_index, log_common, spread):
        """Log density of everything that the joint move changes."""
        minus_log_evidence, _, _ = self.evidence_function(
            np.exp(self.grid[grid_index]), np.exp(self.log_ridge)
        )
        log_prior = -(((log_scales - log_common) / spread) ** 2).sum() / 2
        log_prior -= len(log_scales) * np.log(spread)
        log_prior -= (log_common / COMMON_SD) ** 2 / 2 + spread**2 / 2
        return log_prior - minus_log_evidence

    def move_log_scales_jointly(self, log_scales, shift_sd):
        shift, log_stretch = self.rng.normal(scale=shift_sd), self.rng.normal(scale=0.5)
        stretch, log_common = np.exp(log_stretch), self.log_common + shift
        proposed = log_common + stretch * (log_scales - self.log_common)
        index = np.abs(self.grid - proposed[:, None]).argmin(axis=1)
        new = proposed, index, log_common, stretch * self.spread
        old = log_scales, self.grid_index, self.log_common, self.spread
        log_jacobian = (len(log_scales) + 1) * log_stretch
        log_ratio = self.log_joint(*new) - self.log_joint(*old) + log_jacobian
        if np.log(self.rng.random()) < log_ratio:
            log_scales, self.grid_index, self.log_common, self.spread = new
        return log_scales


@pytest.mark.parametrize("by_scans", [True, False])
@pytest.mark.parametrize("n_features", [1, 2])
def test_states_are_those_of_a_dense_sampler(by_scans, n_features):
    evidence = make_evidence(23, 5, n_features, by_scans)
    sampler = make_sampler(evidence)
    dense = DenseSampler(sampler, np.random.default_rng(1))
    for _ in range(2):
        sampler.draw_sweep_densities()
        dense.draw_sweep_densities()
        assert sampler.grid_indices.tolist() == dense.grid_index.tolist()
        assert sampler.log_ridge == dense.log_ridge
        assert sampler.log_common == pytest.approx(dense.log_common, rel=1e-9)
        assert sampler.spread == pytest.approx(dense.spread, rel=1e-9)


@pytest.mark.parametrize("by_scans", [True, False])
def test_a_conditional_and_the_updated_inverse_are_those_from_scratch(by_scans):
    evidence = make_evidence(30, 6, 2, by_scans)
    sampler = make_sampler(evidence)
    sampler.draw_ridge()
    for region in (4, 0, 4, 2):
        grid_index = sampler.grid_indices.copy()
        expected = np.empty(len(sampler.log_scale_grid))
        for a in range(len(sampler.log_scale_grid)):
            grid_index[region] = a
            expected[a] = log_posterior(
                evidence,
                sampler.log_scale_grid,
                grid_index,
                sampler.ridge,
                sampler.log_common,
                sampler.spread,
            )
        expected = np.exp(expected - expected.max())
        density = sampler.update_region_scale(region)
        np.testing.assert_allclose(density, expected / expected.sum(), atol=1e-8)
        moments = evidence.moments(np.exp(sampler.log_scale_grid[sampler.grid_indices]))
        np.testing.assert_allclose(sampler.ZtZ, moments.ZtZ, atol=1e-8)
        np.testing.assert_allclose(sampler.Ztt, moments.Ztt, atol=1e-8)
        M = moments.ZtZ + sampler.ridge * np.eye(evidence.n_columns)
        np.testing.assert_allclose(sampler.M_inverse @ M, np.eye(len(M)), atol=1e-7)


def test_sweeps_without_data_sample_the_prior():
    evidence = make_evidence(5, 2, 1, by_scans=False, n_targets=1)
    evidence.n_contrasts = 0  # the density of the targets is then constant
    sampler = make_sampler(evidence)
    last_cell = len(sampler.log_scale_grid) - 1
    common_draws, spread_draws, last_cell_draws = [], [], []
    for _ in range(600):
        sampler.draw_sweep_densities()
        common_draws.append(sampler.log_common)
        spread_draws.append(sampler.spread)
        last_cell_draws.append(sampler.grid_indices == last_cell)
    assert abs(np.mean(common_draws)) < 0.4
    assert abs(np.std(common_draws) - COMMON_SD) < 0.25
    # The grid of spreads starts at 0.03.
    median = halfnorm.ppf((1 + halfnorm.cdf(0.03)) / 2)
    assert abs(np.median(spread_draws) - median) < 0.15
    last_edge = (sampler.log_scale_grid[-1] + sampler.log_scale_grid[-2]) / 2
    spreads = halfnorm.ppf((np.arange(200) + 0.5) / 200)
    expected_share = norm.sf(last_edge / np.hypot(COMMON_SD, spreads)).mean()
    assert abs(np.mean(last_cell_draws) - expected_share) < 0.04


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(-np.inf, -9.0), (-0.3, 0.2), (6.0, 6.1), (12.0, np.inf), (-40.5, -40.0)],
)
def test_a_log_scale_in_its_cell_is_normal_between_its_limits(lower, upper):
    n_draws = 4000
    limits = np.full((2, n_draws), [[lower], [upper]])
    draws = draw_truncated_normal(*limits, np.random.default_rng(0))
    assert ((draws >= lower) & (draws <= upper)).all()
    # Mean by quadrature of the density relative to the limit nearest to 0.
    nearest = 0.0 if lower < 0 < upper else min(lower, upper, key=abs)
    points = np.linspace(max(lower, nearest - 3), min(upper, nearest + 3), 20_001)
    density = np.exp((nearest**2 - points**2) / 2)
    density /= density.sum()
    mean = density @ points
    standard_error = np.sqrt(density @ (points - mean) ** 2 / n_draws)
    assert abs(draws.mean() - mean) < 4 * standard_error
    if np.isfinite([lower, upper]).all() and abs(lower) < 7:
        mass = norm.cdf(-lower) - norm.cdf(-upper)
        log_mass = log_interval_probability(np.array([lower]), np.array([upper]))
        assert log_mass[0] == pytest.approx(np.log(mass), rel=1e-6)


def test_sampled_scales_have_the_posterior_that_is_enumerated_on_the_grid():
    evidence = make_evidence(25, 2, 1, by_scans=False, n_targets=1, seed=3)
    sampler = make_sampler(evidence, spread=0.9)
    sampler.draw_ridge()
    ridge, n_grid = sampler.ridge, len(sampler.log_scale_grid)
    expected = np.empty((n_grid, n_grid))
    for a, b in product(range(n_grid), repeat=2):
        state = ridge, sampler.log_common, sampler.spread
        expected[a, b] = log_posterior(
            evidence, sampler.log_scale_grid, np.array([a, b]), *state
        )
    expected = np.exp(expected - expected.max())
    expected /= expected.sum()
    n_sweeps, sampled = 2500, np.zeros((2, n_grid))
    for _ in range(n_sweeps):
        for region in (0, 1):
            sampler.update_region_scale(region)
            sampled[region, sampler.grid_indices[region]] += 1
    for axis, counts in enumerate(sampled):
        marginal = expected.sum(axis=1 - axis)
        mean, grid_mean = (
            counts @ sampler.log_scale_grid / n_sweeps,
            marginal @ sampler.log_scale_grid,
        )
        sd = np.sqrt(marginal @ (sampler.log_scale_grid - grid_mean) ** 2)
        assert abs(mean - grid_mean) < 0.1 * sd  # 5 standard errors, were draws free
        distance = np.abs(counts / n_sweeps - marginal).sum() / 2
        assert distance < 0.08
    uniform = np.full(n_grid, 1 / n_grid)
    assert np.abs(uniform - expected.sum(axis=1)).sum() / 2 > 0.2  # the test can fail
