"""What kind of connectome a matrix is: its unit, density, spread and strong regions."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import rankdata

# How far a connectome may lie outside of those that a model was fitted on: factor of
# the mean weight, difference of density, factor of the spread of log weights, and
# difference of the correlation of strengths. Scanners and tractograms of one kind stay
# within these; another measure, unit, transformation or order of regions does not.
WEIGHT_FACTOR = 5.0
DENSITY_MARGIN = 0.25
SPREAD_FACTOR = 2.0
CORRELATION_MARGIN = 0.3


def summarize_connectomes(W: np.ndarray) -> dict[str, np.ndarray]:
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
    rows, columns = np.triu_indices(W.shape[-1], 1)
    summaries = np.zeros((3, len(W)))
    for scan, matrix in enumerate(W):
        weights = np.asarray(matrix[rows, columns], dtype=np.float64)
        links = weights[weights > 0]
        if links.size:
            spread = np.log(links).std()
            summaries[:, scan] = links.size / weights.size, links.mean(), spread
    return dict(zip(("density", "weight", "spread"), summaries, strict=True))


def learn_kind(W: np.ndarray) -> dict[str, Any]:
    """Learn what connectomes a model is fitted on, as JSON takes it.

    Parameters
    ----------
    W : array of shape (n_scans, n_rois, n_rois)

    Returns
    -------
    dict
        Lowest and highest of each of :func:`summarize_connectomes`; `strength_ranks`,
        the mean rank of every region by its strength; `least_correlation` of a scan's
        ranks with these.
    """
    ranges = {
        name: [float(values.min()), float(values.max())]
        for name, values in summarize_connectomes(W).items()
    }
    ranks = _strength_ranks(W)
    mean_ranks = ranks.mean(axis=0)
    return {
        "ranges": ranges,
        "strength_ranks": mean_ranks.round(2).tolist(),
        "least_correlation": float(_correlations(ranks, mean_ranks).min()),
    }


def find_unlike(W: np.ndarray, kind: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return which connectomes are unlike those of :func:`learn_kind`, by reason.

    Parameters
    ----------
    W : array of shape (n_scans, n_rois, n_rois)
        The same regions in the same order as in the fit.
    kind : mapping
        From :func:`learn_kind`.

    Returns
    -------
    dict of str to bool array of shape (n_scans,)
        By what differs, in words, reasons that hold for at least one scan.
    """
    summaries = summarize_connectomes(W)
    shown = {}
    for name, values in summaries.items():
        low, high = kind["ranges"][name]
        middle = np.median(values)
        shown[name] = f"{middle:.3g} (fit {low:.3g} to {high:.3g})"
    low, high = kind["ranges"]["weight"]
    weight = summaries["weight"]
    is_other_unit = (weight * WEIGHT_FACTOR < low) | (weight > WEIGHT_FACTOR * high)
    low, high = kind["ranges"]["density"]
    density = summaries["density"]
    is_other_density = density < low - DENSITY_MARGIN
    is_other_density |= density > high + DENSITY_MARGIN
    low, high = kind["ranges"]["spread"]
    spread = summaries["spread"]
    is_other_spread = (spread * SPREAD_FACTOR < low) | (spread > SPREAD_FACTOR * high)
    ranks = np.array(kind["strength_ranks"])
    correlation = _correlations(_strength_ranks(W), ranks)
    is_other_pattern = correlation < kind["least_correlation"] - CORRELATION_MARGIN
    middle = np.median(correlation)
    pattern = f"{middle:.2f} (fit at least {kind['least_correlation']:.2f})"
    reasons = {
        f"mean weight {shown['weight']}": is_other_unit,
        f"density {shown['density']}": is_other_density,
        f"spread of log weights {shown['spread']}": is_other_spread,
        f"correlation of regions' strengths with the fit {pattern}": is_other_pattern,
    }
    return {
        reason: is_unlike for reason, is_unlike in reasons.items() if any(is_unlike)
    }


def _strength_ranks(W: np.ndarray) -> np.ndarray:
    """Return the rank of every region by its strength, (n_scans, n_rois)."""
    diagonal = W.diagonal(axis1=1, axis2=2)
    strengths = W.sum(axis=2, dtype=np.float64) - diagonal
    return rankdata(strengths, axis=1)


def _correlations(ranks: np.ndarray, mean_ranks: np.ndarray) -> np.ndarray:
    """Return the correlation of every scan's ranks with mean ranks; 1 of no spread."""
    deviations = ranks - ranks.mean(axis=1, keepdims=True)
    expected = mean_ranks - mean_ranks.mean()
    norms = np.sqrt((deviations**2).sum(axis=1) * (expected**2).sum())
    products = deviations @ expected
    return np.divide(products, norms, out=np.ones(len(ranks)), where=norms > 0)
