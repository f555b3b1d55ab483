r"""Scales by evidence: ridge regression on diffused features, learned in closed form.

Features of region p are diffused at that region's scale, :math:`z_p(s_p) = \sum_n
c_n(s_p) [T_n(L - I) x]_p`, and standardised over the training scans. With a Gaussian
prior on weights and Gaussian noise the targets t are Gaussian too, with covariance

.. math:: v \, (Z Z^\top / \lambda + U^{-1}), \qquad U = \mathrm{diag}(u)

and their density, the evidence, is a smooth function of all scales that neither
epochs nor a validation slice are needed for. `docs/mathematics` derives it.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dgemm
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from brainlsap.arrays import check_groups
from brainlsap.class_prior import TRAINING, ClassPrior
from brainlsap.exceptions import check_at_least, check_choice
from brainlsap.graph import EXPANSIONS, Preparation, choose_degree, normalized_laplacian
from brainlsap.model.inputs import PackedClassifier, all_equal, check_packed

RUNGS = ("none", "one", "regions")
"""The ladder: no network, one scale for all regions, a scale for every region."""

# A rung is climbed where the data are 20 times as probable as with the one climbed
# last: by Markov's inequality at most 5 % of cohorts without the effect are, per rung.
CLIMB = float(np.log(20.0))
# Log of the common scale, normal around a scale of 1.
_COMMON_SD = 1.5
# Log of ridge / columns, which is the share of noise to signal, is normal below this,
# and anything above: with fewer people than regions the evidence would take away all
# noise, and left-out scores would be too good to be true.
_LOW_NOISE = float(np.log(0.3))
_LEAST_SCALE = 0.01
# Spreads of log scales that are tried, each from the solution of the one before.
_SPREADS = (0.2, 0.4, 0.8, 1.6)
_TOLERANCE = 1e-5
_N_GRID = 36
_AT_ONCE = 64


@lru_cache(maxsize=8)
def _basis(max_scale: float) -> np.ndarray:
    """Return B (degree + 1, n_terms): all c(s) up to a scale lie in its span.

    Chebyshev coefficients of different scales are much alike, so that about nine
    combinations of the terms serve for all, to the tolerance of the series.
    """
    scale = torch.from_numpy(np.append(0.0, np.geomspace(0.005, max_scale, 200)))
    degree = choose_degree("chebyshev", max_scale, _TOLERANCE)
    c, _ = EXPANSIONS["chebyshev"].coefficients(scale, degree)
    _, values, rows = np.linalg.svd(c.numpy(), full_matrices=False)
    return rows[values > 0.1 * _TOLERANCE * values[0]].T.copy()


def _coefficients(scale: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients of the terms and their slopes, each (n, n_terms)."""
    s = torch.from_numpy(np.asarray(scale, dtype=np.float64))
    c, slope = EXPANSIONS["chebyshev"].coefficients(s, len(B) - 1)
    return c.numpy() @ B, slope.numpy() @ B


def diffusion_terms(
    connectomes: np.ndarray, signals: np.ndarray, preparation: Preparation, B: Any
) -> np.ndarray:
    """Return combinations of T_n(L - I) times signals, (n_terms, n_scans, n_columns).

    Columns are regions times features. No graph is decomposed.
    """
    n_scans, n_rois, n_features = signals.shape
    shared = preparation.network is not None or all_equal(connectomes)
    out = np.zeros((B.shape[1], n_scans, n_rois, n_features))
    step = n_scans if shared else _AT_ONCE
    for start in range(0, n_scans, step):
        part = slice(start, start + step)
        W = preparation.apply(connectomes[:1] if shared else connectomes[part])
        M = normalized_laplacian(W).numpy()
        M = M - np.eye(n_rois)
        before, now = signals[part], np.matmul(M, signals[part])
        for n, weights in enumerate(B):
            if n > 1:
                before, now = now, 2 * np.matmul(M, now) - before
            out[:, part] += np.multiply.outer(weights, now if n else before)
    return out.reshape(len(out), n_scans, -1)


class Evidence:
    r"""Log evidence of scales, and what follows from it.

    .. math:: \ell(s, \lambda) = -\tfrac{k}{2} \left[\nu \log 2\pi e \hat v
              + \log|M| - D \log\lambda\right], \quad
              M = Z^\top U Z + \lambda I, \quad
              \hat v = \frac{t^\top U t - t^\top U Z M^{-1} Z^\top U t}{\nu k}

    for k targets, D columns and :math:`\nu = \sum u - 1` (the intercept takes one).
    Where there are fewer scans than columns, the same from the matrix of the scans.

    Parameters
    ----------
    terms : array of shape (n_terms, n_scans, n_columns)
        Of :func:`diffusion_terms`.
    targets : array of shape (n_scans, k)
    weights : array of shape (n_scans,)
        How much each scan counts; their sum is the number of people.
    n_features : int
        Columns of each region, which share its scale.
    B : array of shape (degree + 1, n_terms)
        Of the terms.
    by_scans : bool, optional
        Which form; by default the smaller matrix.
    """

    def __init__(
        self,
        terms: np.ndarray,
        targets: np.ndarray,
        weights: np.ndarray,
        n_features: int,
        B: np.ndarray,
        by_scans: bool | None = None,
    ) -> None:
        self.B, self.n_features, self.weights = B, n_features, weights
        n_terms, n_scans, self.n_columns = terms.shape
        self.n_rois = self.n_columns // n_features
        self.total = float(weights.sum())
        self.n_free = self.total - 1.0
        self.term_means = np.einsum("rnd,n->rd", terms, weights) / self.total
        self.X = (terms - self.term_means[:, None]) * np.sqrt(weights)[:, None]
        self.aim(targets)
        self.gram = None  # in the form of the scans there is none
        if not (n_scans < self.n_columns if by_scans is None else by_scans):
            flat = self.X.transpose(1, 0, 2).reshape(n_scans, -1)
            # (column, its term, term, column): blocks of a region lie together
            G = (flat.T @ flat).reshape(n_terms, self.n_columns, n_terms, -1)
            self.gram = np.ascontiguousarray(G.transpose(1, 0, 2, 3))

    def aim(self, targets: np.ndarray) -> None:
        """Take these targets (n_scans, k); all else stays."""
        self.n_targets = targets.shape[1]
        self.center = targets.T @ self.weights / self.total
        self.t = (targets - self.center) * np.sqrt(self.weights)[:, None]
        self.squares = float((self.t**2).sum())
        self.h = np.matmul(self.X.transpose(0, 2, 1), self.t)

    def low_noise(self, log_ridge: Any) -> Any:
        """Return how far log ridges are below what noise is expected to be."""
        return np.maximum(_LOW_NOISE + np.log(self.n_columns) - log_ridge, 0.0)

    def per_column(self, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients and slopes of every column, (n_terms, n_columns)."""
        both = _coefficients(scale, self.B)
        g, dg = (np.repeat(one, self.n_features, axis=0).T for one in both)
        return np.ascontiguousarray(g), np.ascontiguousarray(dg)

    def columns(self, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return standardised columns Z, times the weights' roots, and their slopes.

        Last, one over the standard deviation of every column before.
        """
        g, dg = self.per_column(scale)
        Z = np.einsum("rnd,rd->nd", self.X, g)
        size = _inverse((Z**2).sum(0) / self.total)
        Z, slope = Z * size, np.einsum("rnd,rd->nd", self.X, dg) * size
        return Z, slope - Z * ((Z * slope).sum(0) / self.total), size

    def moments(self, scale: np.ndarray, second: bool = False) -> tuple:
        """Return Z'Z, Z'Z with the left factor's slope, Z't and its slope, slopes'."""
        if self.gram is None:
            Z, slope, _ = self.columns(scale)
            squares = slope.T @ slope if second else None
            return Z.T @ Z, slope.T @ Z, Z.T @ self.t, slope.T @ self.t, squares
        g, dg = self.per_column(scale)
        # (column, its term, column)
        right = np.einsum("drem,em->drm", self.gram, g)
        A = np.einsum("rd,drm->dm", g, right)
        E = np.einsum("rd,drm->dm", dg, right)
        size = _inverse(np.diag(A) / self.total)
        shift = np.diag(E) * size**2 / self.total
        both = np.outer(size, size)
        A, E = A * both, E * both
        b = np.einsum("rd,rdk->dk", g, self.h) * size[:, None]
        db = np.einsum("rd,rdk->dk", dg, self.h) * size[:, None]
        squares = None
        if second:
            right = np.einsum("drem,em->drm", self.gram, dg)
            squares = np.einsum("rd,drm->dm", dg, right) * both
            squares += np.outer(shift, shift) * A
            squares -= shift[:, None] * E.T + E * shift
        return A, E - shift[:, None] * A, b, db - shift[:, None] * b, squares

    def __call__(
        self, scale: np.ndarray, ridge: float
    ) -> tuple[float, np.ndarray, float]:
        """Return minus the log evidence, and its slopes in scales and ridge."""
        k, n_columns = self.n_targets, self.n_columns
        if self.gram is None:
            Z, slope, _ = self.columns(scale)
            K = Z @ Z.T / ridge + np.eye(len(Z))
            factor = cho_factor(K, lower=True)
            inverse, a = cho_solve(factor, np.eye(len(K))), cho_solve(factor, self.t)
            noise = float((self.t * a).sum()) / (self.n_free * k)
            G = (k * inverse @ Z - a @ (a.T @ Z) / noise) / ridge
            by_column, by_ridge = (G * slope).sum(0), -(G * Z).sum() / (2 * ridge)
            log_det = 0.0
        else:
            A, E, b, db, _ = self.moments(scale)
            factor = cho_factor(A + ridge * np.eye(n_columns), lower=True)
            inverse, w = cho_solve(factor, np.eye(n_columns)), cho_solve(factor, b)
            noise = (self.squares - float((b * w).sum())) / (self.n_free * k)
            G = k * inverse + w @ w.T / noise
            by_column = (G * E).sum(1) - (w * db).sum(1) / noise
            by_ridge = (np.trace(G) - k * n_columns / ridge) / 2
            log_det = -n_columns * np.log(ridge)
        log_det += 2 * np.log(np.diag(factor[0])).sum()
        value = self.n_free * np.log(2 * np.pi * np.e * noise) + log_det
        by_region = by_column.reshape(-1, self.n_features).sum(1)
        return float(value * k / 2), by_region, float(by_ridge)

    def information(self, scale: np.ndarray, ridge: float) -> np.ndarray:
        """Return the expected curvature of minus the log evidence in log scales."""
        A, E, _, _, squares = self.moments(scale, second=True)
        inverse = np.linalg.inv(A + ridge * np.eye(len(A)))
        own = ridge * (np.eye(len(A)) - ridge * inverse)
        left, both = ridge * E @ inverse, squares - E @ inverse @ E.T
        found = self.n_targets * (own * both + left * left.T) / ridge**2
        shape = (self.n_rois, self.n_features) * 2
        return found.reshape(shape).sum((1, 3)) * np.outer(scale, scale)


def sample_scales(
    evidence: Evidence,
    fit: "Fit",
    n_draws: int,
    max_scale: float,
    rng: np.random.Generator,
) -> "Fit":
    """Return the posterior of the scales by Gibbs sampling, from where a fit is.

    Each region's scale is drawn on a grid of log scales given all others, in closed
    form (one block of M changes), then the common scale, the spread and the ridge. A
    sixth as many draws come first and are thrown away; of the others the conditional
    densities are averaged, not the draws.
    """
    n_rois, n_features, k = evidence.n_rois, evidence.n_features, evidence.n_targets
    n_terms = len(evidence.X)
    common, spread = fit.common, fit.spread
    grid = np.linspace(np.log(_LEAST_SCALE), np.log(max_scale), _N_GRID)
    g, _ = _coefficients(np.exp(grid), evidence.B)
    blocks = [slice(p * n_features, (p + 1) * n_features) for p in range(n_rois)]
    found = [_on_grid(evidence, block, g) for block in blocks]
    candidates, own = zip(*found, strict=True)

    def at(state: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return coefficients of all columns, and their products with themselves, t."""
        A, _, b, _, _ = evidence.moments(np.exp(grid[state]))
        each = [one[a] for one, a in zip(candidates, state, strict=True)]
        return np.concatenate(each, axis=1), A, b

    def log_evidence(A: np.ndarray, b: np.ndarray, ridge: float) -> float:
        """Return the log evidence but for what no scale changes."""
        factor = cho_factor(A + ridge * np.eye(len(A)), lower=True)
        left = evidence.squares - float((b * cho_solve(factor, b)).sum())
        return -half * np.log(left) - k * np.log(np.diag(factor[0])).sum()

    state = np.abs(grid - np.log(np.maximum(fit.scales, 1e-9))[:, None]).argmin(1)
    now, A, b = at(state)
    spreads = np.geomspace(0.03, 3.0, 60)
    ridges = np.log(evidence.total / 10) + np.linspace(-4, 10, 80)
    half, identity = 0.5 * k * evidence.n_free, np.eye(n_features)
    n_sweeps = n_draws // 6 + n_draws
    masses, log_ridges, kept_spreads = np.empty((n_sweeps, n_rois, _N_GRID)), [], []

    for sweep in range(n_sweeps):
        values, vectors = np.linalg.eigh(A)
        values = np.maximum(values, 0.0) + np.exp(ridges)[:, None]
        energy = ((vectors.T @ b) ** 2).sum(axis=1)
        left = evidence.squares - (energy / values).sum(axis=1)
        log_det = np.log(values).sum(axis=1) - len(A) * ridges
        log_density = -half * np.log(left) - 0.5 * k * log_det
        drawn, _ = _pick(log_density - evidence.low_noise(ridges) ** 2 / 2, rng)
        ridge = float(np.exp(ridges[drawn]))
        inverse = np.asfortranarray((vectors / values[drawn]) @ vectors.T)
        log_prior = -(((grid - common) / spread) ** 2) / 2
        if evidence.gram is None:
            Z = np.einsum("rnd,rd->nd", evidence.X, now)
        for p in rng.permutation(n_rois):
            block, one = blocks[p], candidates[p]
            # the inverse of M without the region, in its memory
            step = inverse[:, block].copy()
            solved = np.linalg.inv(step[block]) @ step.T
            inverse = dgemm(-1.0, step, solved, 1.0, inverse, overwrite_c=True)
            if evidence.gram is None:
                X = evidence.X[:, :, block]
                rows = np.einsum("rnf,nd->frd", X, Z)
            else:
                rows = np.einsum("frem,em->frm", evidence.gram[block], now)
            rows[:, :, block] = 0.0
            rest = b.copy()
            rest[block] = 0.0
            others = np.concatenate([rows.reshape(-1, len(A)), rest.T])
            reached = others @ inverse.T  # symmetric: its rows lie together
            inner = reached @ others.T
            schur = own[p] + ridge * identity
            both = inner[:-k, :-k].reshape(n_features, n_terms, n_features, n_terms)
            schur -= np.einsum("arf,frgm,amg->afg", one, both, one)
            # what rounding makes of it would grow from region to region
            schur = (schur + schur.transpose(0, 2, 1)) / 2
            h = inner[:-k, -k:].reshape(n_features, n_terms, k)
            h = evidence.h[:, block].transpose(1, 0, 2) - h
            pull = np.einsum("arf,frk->afk", one, h)
            within = np.linalg.inv(schur)
            gain = (pull * (within @ pull)).sum(axis=(1, 2))
            left = evidence.squares - float(np.trace(inner[-k:, -k:]))
            log_density = log_prior - half * np.log(left - gain)
            log_density -= 0.5 * k * np.linalg.slogdet(schur)[1]
            a, masses[sweep, p] = _pick(log_density, rng)
            state[p], now[:, block] = a, one[a]
            if evidence.gram is None:
                Z[:, block] = np.einsum("rnf,rf->nf", X, one[a])
            row = np.einsum("rf,frm->fm", one[a], rows)
            row[:, block] = own[p][a]
            A[block], A[:, block] = row, row.T
            b[block] = np.einsum("rf,rfk->fk", one[a], evidence.h[:, block])
            step = np.einsum("rf,frm->mf", one[a], reached[:-k].reshape(rows.shape))
            step[block] = -identity
            solved = within[a] @ step.T
            inverse = dgemm(1.0, step, solved, 1.0, inverse, overwrite_c=True)
        # scales are anywhere in their cells; else a small spread could never grow
        log_scale = grid[state] + (rng.random(n_rois) - 0.5) * (grid[1] - grid[0])
        precision = n_rois / spread**2 + 1 / _COMMON_SD**2
        mean = log_scale.sum() / spread**2 / precision
        common = mean + rng.normal() / np.sqrt(precision)
        squares = ((log_scale - common) ** 2).sum()
        log_density = (1 - n_rois) * np.log(spreads) - (squares / spreads**2) / 2
        spread = spreads[_pick(log_density - spreads**2 / 2, rng)[0]]
        # shifting and stretching all scales at once mixes where data say little
        shift, stretch = rng.normal(scale=0.2), np.exp(rng.normal(scale=0.5))
        moved = common + shift + stretch * (log_scale - common)
        moved = np.abs(grid - moved[:, None]).argmin(axis=1)
        there = at(moved)
        gain = log_evidence(*there[1:], ridge) - log_evidence(A, b, ridge)
        gain += np.log(stretch)
        gain -= (stretch**2 - 1) * spread**2 / 2
        gain -= ((common + shift) ** 2 - common**2) / (2 * _COMMON_SD**2)
        if np.log(rng.random()) < gain:
            state, common, spread = moved, common + shift, stretch * spread
            now, A, b = there
        log_ridges.append(ridges[drawn])
        kept_spreads.append(spread)
    density = masses[-n_draws:].mean(axis=0)
    edges = (grid[1:] + grid[:-1]) / 2
    ends = [
        np.interp((0.025, 0.975), mass.cumsum()[:-1], edges, grid[0], grid[-1])
        for mass in density
    ]
    return Fit(
        scales=np.exp(density @ grid),
        interval=np.exp(ends),
        ridge=float(np.exp(np.mean(log_ridges[-n_draws:]))),
        common=float((density @ grid).mean()),
        spread=float(np.mean(kept_spreads[-n_draws:])),
        evidence=fit.evidence,
    )


def _on_grid(
    evidence: Evidence, block: slice, g: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return a region's coefficients and block of Z'Z at every scale of the grid."""
    if evidence.gram is None:
        X = evidence.X[:, :, block]
        G = np.einsum("rnf,enm->frem", X, X)
    else:
        G = evidence.gram[block, :, :, block]
    inner = np.einsum("ar,frem,ae->afm", g, G, g, optimize=True)
    size = _inverse(np.einsum("aff->af", inner) / evidence.total)
    return g[:, :, None] * size[:, None, :], inner * size[:, :, None] * size[:, None, :]


def _pick(log_density: np.ndarray, rng: np.random.Generator) -> tuple[int, np.ndarray]:
    """Return one drawn position, and the probabilities of all."""
    mass = np.exp(log_density - log_density.max())
    mass /= mass.sum()
    drawn = int(np.searchsorted(mass.cumsum(), rng.random()))
    return min(drawn, len(mass) - 1), mass


class Fit(NamedTuple):
    """Scales of one rung of the ladder, and what else its evidence is highest at."""

    scales: np.ndarray
    interval: np.ndarray  # of 95 %, (n_rois, 2)
    ridge: float
    common: float  # log of the common scale
    spread: float  # standard deviation of log scales
    evidence: float


def climb(  # noqa: C901 (one rung after the other)
    evidence: Evidence, last: str, max_scale: float
) -> dict[str, Fit]:
    """Fit every rung of the ladder up to the last, each from the one below.

    The evidence of a rung is integrated over its scales by Laplace's approximation
    (with the expected curvature), so that more of them are not better by themselves.
    """
    n_rois, sd = evidence.n_rois, _COMMON_SD
    low, high = np.log(_LEAST_SCALE), np.log(max_scale)
    ridges = (np.log(evidence.total) - 10, np.log(evidence.total) + 15)
    zeros = np.zeros(n_rois)

    def at(x: np.ndarray, spread: float) -> np.ndarray:
        return np.clip(x[1] + spread * x[2:], low, high)

    def loss(x: np.ndarray, spread: float) -> tuple[float, np.ndarray]:
        log_scale = at(x, spread)
        scale = np.exp(log_scale)
        value, slope, by_ridge = evidence(scale, np.exp(x[0]))
        slope = slope * scale * ((low < log_scale) & (log_scale < high))
        low_noise = evidence.low_noise(x[0])
        value += ((x[1] / sd) ** 2 + (x[2:] ** 2).sum() + low_noise**2) / 2
        by_ridge = by_ridge * np.exp(x[0]) - low_noise
        by_common = slope.sum() + x[1] / sd**2
        own = spread * slope + x[2:]
        return value, np.concatenate([[by_ridge, by_common], own])

    def search(x: np.ndarray, spread: float, free: slice) -> Any:
        def part(values: np.ndarray) -> tuple[float, np.ndarray]:
            whole = x.copy()
            whole[free] = values
            value, slope = loss(whole, spread)
            return value, slope[free]

        bounds = [ridges, (low, high)] + [(None, None)] * n_rois
        options = {"maxiter": 60, "ftol": 1e-8}
        found = minimize(part, x[free], jac=True, bounds=bounds[free], options=options)
        x = x.copy()
        x[free] = found.x
        return x, float(found.fun)

    def settle(x: np.ndarray, value: float, spread: float) -> Fit:
        scale = np.exp(at(x, spread))
        F = evidence.information(scale, float(np.exp(x[0])))
        J = np.column_stack([np.ones(n_rois), spread * np.eye(n_rois)])
        J = J if spread else J[:, :1]
        curvature = J.T @ F @ J + np.diag([1 / sd**2, *np.ones(J.shape[1] - 1)])
        log_det = np.linalg.slogdet(curvature)[1]
        half = 1.96 * np.sqrt(np.diag(J @ np.linalg.inv(curvature) @ J.T))
        ends = np.column_stack([np.log(scale) - half, np.log(scale) + half])
        ends = np.exp(np.clip(ends, low, high))
        value = -value - log_det / 2 - np.log(sd)
        return Fit(scale, ends, float(np.exp(x[0])), float(x[1]), spread, value)

    def without(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, _, slope = evidence(zeros, float(np.exp(x[0])))
        low_noise = evidence.low_noise(x[0])
        return value + float(low_noise**2) / 2, slope * np.exp(x) - low_noise

    start = [np.log(evidence.total)]
    found = minimize(without, start, jac=True, bounds=[ridges])
    ridge, value = float(np.exp(found.x[0])), -float(found.fun)
    fits = {"none": Fit(zeros, np.zeros((n_rois, 2)), ridge, -np.inf, 0.0, value)}
    if last == "none":
        return fits
    tried = [np.array([found.x[0], np.log(s), *zeros]) for s in (0.2, 0.6, 1.5, 4.0)]
    best = min(tried, key=lambda x: loss(x, 0.0)[0])
    x, value = search(best, 0.0, slice(0, 2))
    fits["one"] = settle(x, value, 0.0)
    if last == "one":
        return fits
    before = 1.0
    for spread in _SPREADS:
        x = x.copy()
        x[2:] *= before / spread
        x, value = search(x, spread, slice(0, None))
        fit, before = settle(x, value, spread), spread
        if "regions" in fits and fit.evidence <= fits["regions"].evidence:
            break
        fits["regions"] = fit
    return fits


@dataclass(eq=False, repr=False)
class LSAPRidgeClassifier(PackedClassifier):
    r"""Classify scans by ridge regression with scales learned by their evidence.

    LSAP without a neural network: every region's features are diffused at its own
    scale and enter a linear model of the stage. Noise, prior, common scale, the
    scale of every region and their spread are learned from the marginal likelihood,
    with weak priors: their most probable values or, where every region has a scale,
    posterior means (`n_draws`). It needs seconds, and says how sure it is of every
    scale. A person counts once, whatever their visits, and every class the same.

    Three models are a ladder: no network, one scale for all regions, a scale for
    every region. A rung is climbed where the data are 20 times as probable with it as
    with the one climbed last, at first no network; one that is not is passed over.

    Parameters
    ----------
    ladder : {"auto", "none", "one", "regions"}
        Climb as far as the evidence supports, or to a given rung.
    classes : sequence, optional
        All classes in order of stage: the target is then the number of the stage.
        Without it every class is a target, also where labels are numbers: those of
        scikit-learn's stacking or calibration are in alphabetical order.
    max_scale : float
        Largest scale; scales are dimensionless.
    n_draws : int
        Sweeps of the Gibbs sampler on the last rung. Scales, their spread and the
        ridge are then posterior means (of logarithms for scales and ridge), from the
        average of the conditional densities of all sweeps. 0 takes the most probable
        values, and intervals by curvature.
    threshold : float
        Edges below it are dropped, in the connectome's unit.
    weights : {"weighted", "log", "binary"}
        What becomes of the edges that stay.
    connectome : {"own", "covariance"}, optional
        As of :class:`LSAPClassifier`.
    class_prior : {"training", "balanced"} or dict of class to share
        Class shares that `predict_proba` assumes: those of the training scans,
        equal ones, or your own. `predict` does not depend on it.
    random_state : int, optional
        Seed of the draws; None counts as 0.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Sorted; `stages_` has them in order of stage.
    class_prior_, training_shares_ : arrays of shape (n_classes,)
        Class shares that `predict_proba` assumes, and those of the training scans,
        in the order of `classes_`.
    chosen_ : {"none", "one", "regions"}
    evidence_ : dict of str to float
        Log evidence of every rung, in nats.
    scales_ : array of shape (n_rois,)
        Of the chosen rung; 0 without the network.
    scales_interval_ : array of shape (n_rois, 2)
        95 % interval of every scale; of simulated ones 30 draws held 91 to 93 %,
        intervals by curvature (`n_draws=0`) 64 to 65 %.
    measured_ : bool array of shape (n_rois,)
        Regions with a feature in training.
    left_out_scores_ : array of shape (n_scans, n_targets)
        Prediction of every training scan by a fit without that person, in closed
        form; what probabilities are calibrated on.
    fit_report_ : dict
        `chosen`, `evidence`, `common_scale`, `spread` of log scales, `ridge`,
        `ordered`, `class_prior`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(1.0, size=(40, 5, 6))
    >>> y = np.where(np.arange(40) % 2, "AD", "CN")
    >>> X[y == "AD", 2, 5] += 3
    >>> model = LSAPRidgeClassifier().fit(X, y, groups=np.arange(40))
    >>> model.predict(X[:2]).tolist(), model.chosen_
    (['CN', 'AD'], 'none')
    """

    ladder: str = "auto"
    _: KW_ONLY
    classes: Sequence | None = None
    max_scale: float = 10.0
    n_draws: int = 30
    threshold: float = 0.0
    weights: str = "weighted"
    connectome: str | None = None
    class_prior: ClassPrior = TRAINING
    random_state: int | None = None

    def fit(
        self, X: np.ndarray, y: np.ndarray, groups: np.ndarray | None = None
    ) -> "LSAPRidgeClassifier":
        """Learn from packed scans (n_scans, n_rois, n_rois + n_features).

        `groups` is the participant of every scan; without it each scan is one.
        """
        return self.fit_with([], X, y, groups)

    # one BLAS thread: the same bytes whatever their number
    @threadpool_limits.wrap(limits=1)
    def fit_with(
        self,
        others: Sequence["LSAPRidgeClassifier"],
        X: np.ndarray,
        y: np.ndarray,
        groups: np.ndarray | None = None,
    ) -> "LSAPRidgeClassifier":
        """Fit this and others that differ in `ladder` only, climbing it once."""
        tops = {}  # the highest rung of each
        for model in (self, *others):
            check_choice("ladder", model.ladder, ("auto", *RUNGS))
            tops[model] = 2 if model.ladder == "auto" else RUNGS.index(model.ladder)
        check_at_least("n_draws", self.n_draws, 0)
        check_at_least("max_scale", self.max_scale, 0.1)
        codes = self._learn_classes(y, len(X), self.classes)
        people = check_groups(groups, len(X), "the left-out scores")
        self._learn_prior(y, self.class_prior, is_balanced=True)
        terms, B = self._learn_terms(X, people)
        ordered = self.classes is not None
        targets = _targets(codes, ordered)
        _, person, visits = np.unique(people, return_inverse=True, return_counts=True)
        weights = 1 / (visits[person] * np.bincount(codes, 1 / visits[person])[codes])
        weights *= len(visits) / weights.sum()
        evidence = Evidence(terms, targets, weights, self.n_features_, B)
        fits = climb(evidence, RUNGS[max(tops.values())], self.max_scale)
        learned, sampled = vars(self).copy(), False
        for model, top in tops.items():
            model.__dict__.update(learned | {"ladder": model.ladder})
            model.evidence_ = {name: fits[name].evidence for name in RUNGS[: top + 1]}
            model.chosen_ = RUNGS[top]
            if model.ladder == "auto":
                model.chosen_ = "none"
                for name in ("one", "regions"):
                    if model.evidence_[name] > model.evidence_[model.chosen_] + CLIMB:
                        model.chosen_ = name
            if model.chosen_ == "regions" and self.n_draws and not sampled:
                rng, sampled = np.random.default_rng(self.random_state or 0), True
                given = self.n_draws, self.max_scale, rng
                fits["regions"] = sample_scales(evidence, fits["regions"], *given)
            fit = fits[model.chosen_]
            model.scales_, model.scales_interval_ = fit.scales, fit.interval
            model.fit_report_ = {
                "chosen": model.chosen_,
                "evidence": model.evidence_,
                "common_scale": float(np.exp(fit.common)),
                "spread": fit.spread,
                "ridge": fit.ridge,
                "ordered": ordered,
                "class_prior": self._prior_report(),
            }
            found = _regress(evidence, fit, person)
            model.left_out_scores_, model.coefficients_, model.intercept_ = found
            model.means_, model.precision_ = _calibrate(
                found[0], targets, codes, weights
            )
        return self

    def _learn_terms(
        self, X: np.ndarray, people: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Learn what prepares scans; return their terms, and the terms' basis."""
        how = self.threshold, self.weights, self.connectome or "own"
        inputs = self._learn_inputs(X, people, Preparation(*how), "region")
        return self._terms(*inputs), _basis(self.max_scale)

    def _terms(self, connectomes: np.ndarray, features: np.ndarray) -> np.ndarray:
        signals, B = self.scaler_.apply(features), _basis(self.max_scale)
        return diffusion_terms(connectomes, signals, self.preparation_, B)

    @threadpool_limits.wrap(limits=1)
    def learn_evidence(self, X: np.ndarray, groups: np.ndarray) -> Evidence:
        """Return the evidence of packed scans for `region_slopes`.

        Every person counts the same, so that it fits any labels.
        """
        terms, B = self._learn_terms(X, groups)
        visits = pd.Series(groups).map(pd.Series(groups).value_counts())
        targets = np.arange(len(X))[:, None].astype(float)
        return Evidence(terms, targets, 1 / visits.to_numpy(), self.n_features_, B)

    @threadpool_limits.wrap(limits=1)
    def decision_scores(self, X: np.ndarray) -> np.ndarray:
        """Return the predicted targets, shape (n_scans, n_targets).

        With ordered classes or two, one column: the expected number of the class.
        """
        check_is_fitted(self, "coefficients_")
        terms = self._terms(*check_packed(X, (self.n_rois_, self.n_features_)))
        scores = np.tensordot(terms, self.coefficients_, ((0, 2), (0, 1)))
        return scores + self.intercept_

    def log_odds(self, scores: np.ndarray) -> np.ndarray:
        """Return log-probabilities of equally common classes, up to a constant.

        `scores` (n_scans, n_targets) are of :meth:`decision_scores`, or the left-out
        ones of the training scans; the result is (n_scans, n_classes), classes in
        order of stage.
        """
        apart = scores[:, None] - self.means_
        return -np.einsum("nck,kl,ncl->nc", apart, self.precision_, apart) / 2

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probability of every class in `classes_`, a row a scan.

        Classes have the shares `class_prior_`.
        """
        balanced = softmax(self.log_odds(self.decision_scores(X)), axis=1)
        return self._assume_prior(balanced[:, self.stages_.argsort()])


@threadpool_limits.wrap(limits=1)
def region_slopes(
    evidence: Evidence, codes: np.ndarray, ordered: bool, max_scale: float
) -> np.ndarray:
    """Return how much the evidence asks of each region for a smaller scale.

    For every row of `codes` (n_labellings, n_scans): slopes in log scales where all
    regions have the likeliest common scale and ridge of a grid, in standard deviations
    of their expected curvature, (n_labellings, n_rois). That is the first step of a
    fit of a scale per region, at a hundredth of its price.
    """
    targets = [_targets(one, ordered) for one in codes]
    k, root = targets[0].shape[1], np.sqrt(evidence.weights)[:, None]
    t = np.hstack(targets)
    t = (t - evidence.weights @ t / evidence.total) * root
    squares = (t**2).sum(axis=0).reshape(-1, k).sum(axis=1)
    ridges = evidence.total * np.exp(np.linspace(-6, 10, 33))
    log_ridges, scales = np.log(ridges), np.geomspace(0.05, max_scale, 24)
    prior = evidence.low_noise(log_ridges) ** 2 / k
    found = []  # log evidence of every scale, ridge and labelling
    for scale in scales:
        Z, _, _ = evidence.columns(np.full(evidence.n_rois, scale))
        values, vectors = np.linalg.eigh(Z.T @ Z)
        energy = (((Z @ vectors).T @ t) ** 2).reshape(len(values), -1, k).sum(axis=2)
        values = np.maximum(values, 0) + ridges[:, None]
        log_det = (np.log(values) - log_ridges[:, None]).sum(axis=1)
        left = squares - (1 / values) @ energy
        found.append(-evidence.n_free * np.log(left) - (log_det + prior)[:, None])
    best = np.argmax(np.concatenate(found), axis=0)
    slopes, sizes = [], {}
    for one, place in zip(targets, best, strict=True):
        scale = np.full(evidence.n_rois, scales[place // len(ridges)])
        ridge = ridges[place % len(ridges)]
        evidence.aim(one)
        if place not in sizes:
            curvature = np.diag(evidence.information(scale, ridge))
            sizes[place] = scale * _inverse(curvature)
        slopes.append(evidence(scale, ridge)[1] * sizes[place])
    return np.array(slopes)


def _targets(codes: np.ndarray, ordered: bool) -> np.ndarray:
    """Return the number of the class, or a column a class without an order."""
    if ordered or codes.max() == 1:
        return codes[:, None].astype(float)
    return (codes[:, None] == np.unique(codes)).astype(float)


def _regress(
    evidence: Evidence, fit: Fit, person: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return left-out scores of every scan, coefficients of terms, and intercept."""
    Z, _, size = evidence.columns(fit.scales)
    inverse = np.linalg.inv(Z.T @ Z + fit.ridge * np.eye(Z.shape[1]))
    reach = Z @ inverse
    w = reach.T @ evidence.t
    root = np.sqrt(evidence.weights)[:, None]
    residual, left_out = evidence.t - Z @ w, np.empty_like(evidence.t)
    for rows in pd.Series(person).groupby(person).indices.values():
        hat = reach[rows] @ Z[rows].T + root[rows] @ root[rows].T / evidence.total
        left_out[rows] = np.linalg.solve(np.eye(len(rows)) - hat, residual[rows])
    scores = (evidence.t - left_out) / root + evidence.center
    g, _ = evidence.per_column(fit.scales)
    coefficients = (g * size)[:, :, None] * w
    means = np.tensordot(evidence.term_means, coefficients, ((0, 1), (0, 1)))
    return scores, coefficients, evidence.center - means


def _calibrate(
    scores: np.ndarray, targets: np.ndarray, codes: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean score of every class, and the precision around them.

    The likeliest class of a normal density around each mean, with equal priors: the
    classes are weighted alike throughout.
    """
    own = weights[:, None] * (codes[:, None] == np.unique(codes))
    means = own.T @ scores / own.sum(axis=0)[:, None]
    # without a signal, scores without the person point away from their class; the
    # direction that was fitted then counts, and hardly tells the classes apart
    middle, aims = means.mean(axis=0), own.T @ targets / own.sum(axis=0)[:, None]
    aims -= aims.mean(axis=0)
    if (aims * (means - middle)).sum() <= 0:
        means = middle + 1e-3 * aims
    apart = scores - means[codes]
    covariance = (weights[:, None] * apart).T @ apart / weights.sum()
    return means, np.linalg.pinv(covariance, hermitian=True)


def _inverse(variance: np.ndarray) -> np.ndarray:
    """Return 1 / sqrt, or 0 for columns that do not vary."""
    flat = variance <= 1e-12 * max(float(variance.max(initial=0.0)), 1e-300)
    return np.where(flat, 0.0, 1 / np.sqrt(np.where(flat, 1.0, variance)))
