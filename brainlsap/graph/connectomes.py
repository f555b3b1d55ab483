"""Connectomes are made ready for a Laplacian, by rules learned from training people."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from brainlsap.arrays import as_number_array, check_features
from brainlsap.exceptions import ParameterError, check_at_least, check_choice


@dataclass(frozen=True, eq=False)
class Preparation:
    """How connectomes are made ready, in the order of the steps.

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
                f"the threshold of correlations is at most 1, got {self.threshold!r}."
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
        prepared_weights = (
            self._symmetrize_weights(W)
            if self.network is None
            else self.network[None].copy()
        )
        if self.weights == "log":
            np.log1p(prepared_weights, out=prepared_weights)
        elif self.weights == "binary":
            prepared_weights = (prepared_weights > 0).astype(np.float64)
        return prepared_weights

    def _symmetrize_weights(self, W: np.ndarray) -> np.ndarray:
        """Average both directions, clear the diagonal, threshold."""
        W = np.asarray(as_number_array(W), dtype=np.float64)
        symmetric_weights = (W + np.swapaxes(W, -1, -2)) / 2
        diagonal_index = np.arange(W.shape[-1])
        symmetric_weights[..., diagonal_index, diagonal_index] = 0.0
        symmetric_weights[symmetric_weights < self.threshold] = 0.0
        return symmetric_weights


@threadpool_limits.wrap(limits=1)
def covariance_connectome(
    features: np.ndarray, groups: np.ndarray | None = None
) -> np.ndarray:
    """Return how regions' features go together over people, as a network.

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
    person_of_scan = np.arange(len(features)) if groups is None else np.asarray(groups)
    features = as_number_array(features)
    check_features(features)
    if len(set(person_of_scan)) < 3:
        raise ParameterError(
            "a covariance network needs at least 3 people, got "
            f"{len(set(person_of_scan))}."
        )
    network = np.zeros((features.shape[1], features.shape[1]))
    for feature_values in np.moveaxis(np.asarray(features, dtype=np.float64), 2, 0):
        person_means = pd.DataFrame(feature_values).groupby(person_of_scan).mean()
        # means over visits leave a constant region a spread of rounding
        is_varying = person_means.std() > 1e-9 * person_means.mean().abs()
        correlation_table = (
            person_means.where(is_varying, axis=1).corr(min_periods=3).fillna(0.0)
        )
        network += correlation_table.clip(0.0, 1.0).to_numpy()
    network /= features.shape[2]
    np.fill_diagonal(network, 0.0)
    return network
