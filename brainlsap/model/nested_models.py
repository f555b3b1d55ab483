"""Three nested models of the scales, each fitted by its evidence.

No network; one scale for all regions; a scale for every region. Each fit starts from
the model before.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from brainlsap.model.evidence import Evidence

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

    Its argument x is (log ridge, log common scale, deviations from it in units of
    `spread`).
    """

    def __init__(self, evidence: Evidence, max_scale: float) -> None:
        self.evidence = evidence
        self.n_rois = evidence.n_rois
        self.log_limits = np.log(MIN_SCALE), np.log(max_scale)
        log_people = np.log(evidence.n_people)
        self.log_ridge_limits = log_people - 10, log_people + 15

    def log_scales(self, x: np.ndarray, spread: float) -> np.ndarray:
        """Return the log scales of all regions, within their limits."""
        return np.clip(x[1] + spread * x[2:], *self.log_limits)

    def value_without_network(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value of the model without a network, and its slope."""
        zeros = np.zeros(self.n_rois)
        value, _, slope = self.evidence(zeros, float(np.exp(x[0])))
        excess = self.evidence.noise_prior_excess(x[0])
        return value + float(excess**2) / 2, slope * np.exp(x) - excess

    def __call__(self, x: np.ndarray, spread: float) -> tuple[float, np.ndarray]:
        """Return the value and its gradient in x."""
        log_scale = self.log_scales(x, spread)
        scale = np.exp(log_scale)
        value, by_scale, by_ridge = self.evidence(scale, np.exp(x[0]))
        low, high = self.log_limits
        by_log_scale = by_scale * scale * ((low < log_scale) & (log_scale < high))
        excess = self.evidence.noise_prior_excess(x[0])
        value += ((x[1] / COMMON_SD) ** 2 + (x[2:] ** 2).sum() + excess**2) / 2
        by_log_ridge = by_ridge * np.exp(x[0]) - excess
        by_common = by_log_scale.sum() + x[1] / COMMON_SD**2
        by_deviation = spread * by_log_scale + x[2:]
        return value, np.concatenate([[by_log_ridge, by_common], by_deviation])

    def minimize(
        self, x: np.ndarray, spread: float, n_free: int
    ) -> tuple[np.ndarray, float]:
        """Return the minimum over the first `n_free` entries of x, and its value."""

        def value_of_free(free: np.ndarray) -> tuple[float, np.ndarray]:
            full = x.copy()
            full[:n_free] = free
            value, slope = self(full, spread)
            return value, slope[:n_free]

        bounds: list[object] = [self.log_ridge_limits, self.log_limits]
        bounds += [(None, None)] * self.n_rois
        solution = minimize(
            value_of_free,
            x[:n_free],
            jac=True,
            bounds=bounds[:n_free],
            options={"maxiter": 60, "ftol": 1e-8},
        )
        x = x.copy()
        x[:n_free] = solution.x
        return x, float(solution.fun)

    def fit_by_laplace(self, x: np.ndarray, value: float, spread: float) -> ScaleFit:
        """Integrate over the scales by Laplace's approximation around a minimum.

        The curvature is the expected one; without integrating, more scales would be
        better by themselves.
        """
        scale = np.exp(self.log_scales(x, spread))
        F = self.evidence.information(scale, float(np.exp(x[0])))
        # derivatives of log scales in the common scale and the deviations
        J = np.column_stack([np.ones(self.n_rois), spread * np.eye(self.n_rois)])
        J = J if spread else J[:, :1]
        prior_precision = [1 / COMMON_SD**2, *np.ones(J.shape[1] - 1)]
        curvature = J.T @ F @ J + np.diag(prior_precision)
        log_det = np.linalg.slogdet(curvature)[1]
        half_width = 1.96 * np.sqrt(np.diag(J @ np.linalg.inv(curvature) @ J.T))
        log_interval = np.column_stack(
            [np.log(scale) - half_width, np.log(scale) + half_width]
        )
        return ScaleFit(
            scales=scale,
            interval=np.exp(np.clip(log_interval, *self.log_limits)),
            ridge=float(np.exp(x[0])),
            log_common=float(x[1]),
            spread=spread,
            log_evidence=-value - log_det / 2 - np.log(COMMON_SD),
        )


def fit_nested_models(
    evidence: Evidence, richest: str, max_scale: float
) -> dict[str, ScaleFit]:
    """Fit all nested models up to the richest, each from the one before.

    Parameters
    ----------
    evidence : Evidence
    richest : str
        One of :data:`NESTED_MODELS`.
    max_scale : float
        Largest scale.
    """
    posterior = _ScalePosterior(evidence, max_scale)
    n_rois = evidence.n_rois
    zeros = np.zeros(n_rois)
    solution = minimize(
        posterior.value_without_network,
        [np.log(evidence.n_people)],
        jac=True,
        bounds=[posterior.log_ridge_limits],
    )
    log_ridge = solution.x[0]
    fits = {
        "none": ScaleFit(
            scales=zeros,
            interval=np.zeros((n_rois, 2)),
            ridge=float(np.exp(log_ridge)),
            log_common=-np.inf,
            spread=0.0,
            log_evidence=-float(solution.fun),
        )
    }
    if richest == "none":
        return fits
    starts = [np.array([log_ridge, np.log(s), *zeros]) for s in (0.2, 0.6, 1.5, 4.0)]
    best_start = min(starts, key=lambda x: posterior(x, 0.0)[0])
    x, value = posterior.minimize(best_start, 0.0, n_free=2)
    fits["one"] = posterior.fit_by_laplace(x, value, 0.0)
    if richest == "one":
        return fits
    previous_spread = 1.0
    for spread in _SPREADS:
        x = x.copy()
        x[2:] *= previous_spread / spread
        x, value = posterior.minimize(x, spread, n_free=len(x))
        fit = posterior.fit_by_laplace(x, value, spread)
        previous_spread = spread
        if "regions" in fits and fit.log_evidence <= fits["regions"].log_evidence:
            break
        fits["regions"] = fit
    return fits
