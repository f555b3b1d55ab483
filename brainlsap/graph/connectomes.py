"""Connectomes before a Laplacian: rules learned from training people, and their kind.

The kind of a connectome is its unit, density, spread and strong regions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

from brainlsap.arrays import as_number_array, check_features
from brainlsap.exceptions import ParameterError, check_at_least, check_choice

# How far a connectome may lie outside of those that a model was fitted on: factor of
# the mean weight, difference of density, factor of the spread of log weights, and
# difference of the correlation of strengths. Scanners and tractograms of one kind stay
# within these; another measure, unit, transformation or order of regions does not.
WEIGHT_FACTOR = 5.0
DENSITY_MARGIN = 0.25
SPREAD_FACTOR = 2.0
CORRELATION_MARGIN = 0.3


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
