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
        log_n_people = np.log(evidence.n_people)
        self.log_ridge_limits = log_n_people - 10, log_n_people + 15

    def log_scales(self, x: np.ndarray, scale_spread: float) -> np.ndarray:
        """Return the log scales of all regions, within their limits."""
        return np.clip(x[1] + scale_spread * x[2:], *self.log_limits)

    def value_without_network(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value of the model without a network, and its slope."""
        zero_scales = np.zeros(self.n_rois)
        negative_log_evidence, _, ridge_slope = self.evidence(
            zero_scales, float(np.exp(x[0]))
        )
        noise_excess = self.evidence.noise_prior_excess(x[0])
        return negative_log_evidence + float(noise_excess**2) / 2, ridge_slope * np.exp(
            x
        ) - noise_excess

    def __call__(self, x: np.ndarray, scale_spread: float) -> tuple[float, np.ndarray]:
        """Return the value and its gradient in x."""
        log_scales = self.log_scales(x, scale_spread)
        scales = np.exp(log_scales)
        negative_log_posterior, scale_gradient, ridge_gradient = self.evidence(
            scales, np.exp(x[0])
        )
        lowest_log_scale, highest_log_scale = self.log_limits
        log_scale_gradient = (
            scale_gradient
            * scales
            * ((lowest_log_scale < log_scales) & (log_scales < highest_log_scale))
        )
        noise_excess = self.evidence.noise_prior_excess(x[0])
        negative_log_posterior += (
            (x[1] / COMMON_SD) ** 2 + (x[2:] ** 2).sum() + noise_excess**2
        ) / 2
        log_ridge_gradient = ridge_gradient * np.exp(x[0]) - noise_excess
        common_gradient = log_scale_gradient.sum() + x[1] / COMMON_SD**2
        deviation_gradient = scale_spread * log_scale_gradient + x[2:]
        return negative_log_posterior, np.concatenate(
            [[log_ridge_gradient, common_gradient], deviation_gradient]
        )

    def minimize(
        self, x: np.ndarray, scale_spread: float, n_free: int
    ) -> tuple[np.ndarray, float]:
        """Return the minimum over the first `n_free` entries of x, and its value."""

        def value_of_free(free_values: np.ndarray) -> tuple[float, np.ndarray]:
            all_values = x.copy()
            all_values[:n_free] = free_values
            negative_log_posterior, gradient = self(all_values, scale_spread)
            return negative_log_posterior, gradient[:n_free]

        parameter_bounds: list[object] = [self.log_ridge_limits, self.log_limits]
        parameter_bounds += [(None, None)] * self.n_rois
        minimization = minimize(
            value_of_free,
            x[:n_free],
            jac=True,
            bounds=parameter_bounds[:n_free],
            options={"maxiter": 60, "ftol": 1e-8},
        )
        x = x.copy()
        x[:n_free] = minimization.x
        return x, float(minimization.fun)

    def fit_by_laplace(
        self, x: np.ndarray, negative_log_posterior: float, scale_spread: float
    ) -> ScaleFit:
        """Integrate over the scales by Laplace's approximation around a minimum.

        The curvature is the expected one; without integrating, more scales would be
        better by themselves.
        """
        scales = np.exp(self.log_scales(x, scale_spread))
        F = self.evidence.information(scales, float(np.exp(x[0])))
        # derivatives of log scales in the common scale and the deviations
        J = np.column_stack([np.ones(self.n_rois), scale_spread * np.eye(self.n_rois)])
        J = J if scale_spread else J[:, :1]
        prior_precision = [1 / COMMON_SD**2, *np.ones(J.shape[1] - 1)]
        curvature = J.T @ F @ J + np.diag(prior_precision)
        log_det = np.linalg.slogdet(curvature)[1]
        half_width = 1.96 * np.sqrt(np.diag(J @ np.linalg.inv(curvature) @ J.T))
        log_interval = np.column_stack(
            [np.log(scales) - half_width, np.log(scales) + half_width]
        )
        return ScaleFit(
            scales=scales,
            interval=np.exp(np.clip(log_interval, *self.log_limits)),
            ridge=float(np.exp(x[0])),
            log_common=float(x[1]),
            spread=scale_spread,
            log_evidence=-negative_log_posterior - log_det / 2 - np.log(COMMON_SD),
        )


def fit_nested_models(
    evidence: Evidence, richest_model: str, max_scale: float
) -> dict[str, ScaleFit]:
    """Fit all nested models up to the richest, each from the one before.

    Parameters
    ----------
    evidence : Evidence
    richest_model : str
        One of :data:`NESTED_MODELS`.
    max_scale : float
        Largest scale.
    """
    scale_posterior = _ScalePosterior(evidence, max_scale)
    n_rois = evidence.n_rois
    zero_deviations = np.zeros(n_rois)
    minimization = minimize(
        scale_posterior.value_without_network,
        [np.log(evidence.n_people)],
        jac=True,
        bounds=[scale_posterior.log_ridge_limits],
    )
    log_ridge = minimization.x[0]
    scale_fits = {
        "none": ScaleFit(
            scales=zero_deviations,
            interval=np.zeros((n_rois, 2)),
            ridge=float(np.exp(log_ridge)),
            log_common=-np.inf,
            spread=0.0,
            log_evidence=-float(minimization.fun),
        )
    }
    if richest_model == "none":
        return scale_fits
    start_points = [
        np.array([log_ridge, np.log(s), *zero_deviations]) for s in (0.2, 0.6, 1.5, 4.0)
    ]
    best_start = min(start_points, key=lambda x: scale_posterior(x, 0.0)[0])
    x, negative_log_posterior = scale_posterior.minimize(best_start, 0.0, n_free=2)
    scale_fits["one"] = scale_posterior.fit_by_laplace(x, negative_log_posterior, 0.0)
    if richest_model == "one":
        return scale_fits
    previous_spread = 1.0
    for scale_spread in _SPREADS:
        x = x.copy()
        x[2:] *= previous_spread / scale_spread
        x, negative_log_posterior = scale_posterior.minimize(
            x, scale_spread, n_free=len(x)
        )
        scale_fit = scale_posterior.fit_by_laplace(
            x, negative_log_posterior, scale_spread
        )
        previous_spread = scale_spread
        if (
            "regions" in scale_fits
            and scale_fit.log_evidence <= scale_fits["regions"].log_evidence
        ):
            break
        scale_fits["regions"] = scale_fit
    return scale_fits
