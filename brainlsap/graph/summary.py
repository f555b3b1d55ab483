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
    upper_rows, upper_columns = np.triu_indices(W.shape[-1], 1)
    summaries = np.zeros((3, len(W)))
    for scan, connectome in enumerate(W):
        edge_weights = np.asarray(
            connectome[upper_rows, upper_columns], dtype=np.float64
        )
        positive_weights = edge_weights[edge_weights > 0]
        if positive_weights.size:
            log_weight_sd = np.log(positive_weights).std()
            summaries[:, scan] = (
                positive_weights.size / edge_weights.size,
                positive_weights.mean(),
                log_weight_sd,
            )
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
    summary_ranges = {
        summary_name: [float(summary_values.min()), float(summary_values.max())]
        for summary_name, summary_values in summarize_connectomes(W).items()
    }
    strength_ranks = _strength_ranks(W)
    mean_ranks = strength_ranks.mean(axis=0)
    return {
        "ranges": summary_ranges,
        "strength_ranks": mean_ranks.round(2).tolist(),
        "least_correlation": float(_correlate_ranks(strength_ranks, mean_ranks).min()),
    }


def find_unlike(
    W: np.ndarray, training_kind: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """Return which connectomes are unlike those of :func:`learn_kind`, by reason.

    Parameters
    ----------
    W : array of shape (n_scans, n_rois, n_rois)
        The same regions in the same order as in the fit.
    training_kind : mapping
        From :func:`learn_kind`.

    Returns
    -------
    dict of str to bool array of shape (n_scans,)
        By what differs, in words, reasons that hold for at least one scan.
    """
    scan_summaries = summarize_connectomes(W)
    value_texts = {}
    for summary_name, summary_values in scan_summaries.items():
        lower_bound, upper_bound = training_kind["ranges"][summary_name]
        median_value = np.median(summary_values)
        value_texts[summary_name] = (
            f"{median_value:.3g} (fit {lower_bound:.3g} to {upper_bound:.3g})"
        )
    lower_bound, upper_bound = training_kind["ranges"]["weight"]
    weight = scan_summaries["weight"]
    is_other_unit = (weight * WEIGHT_FACTOR < lower_bound) | (
        weight > WEIGHT_FACTOR * upper_bound
    )
    lower_bound, upper_bound = training_kind["ranges"]["density"]
    density = scan_summaries["density"]
    is_other_density = density < lower_bound - DENSITY_MARGIN
    is_other_density |= density > upper_bound + DENSITY_MARGIN
    lower_bound, upper_bound = training_kind["ranges"]["spread"]
    weight_spread = scan_summaries["spread"]
    is_other_spread = (weight_spread * SPREAD_FACTOR < lower_bound) | (
        weight_spread > SPREAD_FACTOR * upper_bound
    )
    training_ranks = np.array(training_kind["strength_ranks"])
    rank_correlations = _correlate_ranks(_strength_ranks(W), training_ranks)
    is_other_pattern = (
        rank_correlations < training_kind["least_correlation"] - CORRELATION_MARGIN
    )
    median_value = np.median(rank_correlations)
    correlation_text = (
        f"{median_value:.2f} (fit at least {training_kind['least_correlation']:.2f})"
    )
    is_unlike_by_reason = {
        f"mean weight {value_texts['weight']}": is_other_unit,
        f"density {value_texts['density']}": is_other_density,
        f"spread of log weights {value_texts['spread']}": is_other_spread,
        f"correlation of regions' strengths with the fit {correlation_text}": (
            is_other_pattern
        ),
    }
    return {
        reason: is_unlike
        for reason, is_unlike in is_unlike_by_reason.items()
        if any(is_unlike)
    }


def _strength_ranks(W: np.ndarray) -> np.ndarray:
    """Return the rank of every region by its strength, (n_scans, n_rois)."""
    diagonal = W.diagonal(axis1=1, axis2=2)
    strengths = W.sum(axis=2, dtype=np.float64) - diagonal
    return rankdata(strengths, axis=1)


def _correlate_ranks(strength_ranks: np.ndarray, mean_ranks: np.ndarray) -> np.ndarray:
    """Return the correlation of every scan's ranks with mean ranks; 1 of no spread."""
    rank_deviations = strength_ranks - strength_ranks.mean(axis=1, keepdims=True)
    mean_rank_deviations = mean_ranks - mean_ranks.mean()
    norm_products = np.sqrt(
        (rank_deviations**2).sum(axis=1) * (mean_rank_deviations**2).sum()
    )
    cross_products = rank_deviations @ mean_rank_deviations
    return np.divide(
        cross_products,
        norm_products,
        out=np.ones(len(strength_ranks)),
        where=norm_products > 0,
    )
