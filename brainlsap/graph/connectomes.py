"""Connectomes are made ready for a Laplacian, by rules learned from training people."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from brainlsap.arrays import check_features
from brainlsap.exceptions import ParameterError, check_at_least, check_choice

_CHOICES = {
    "weights": ("weighted", "log", "binary"),
    "connectome": ("own", "mean", "covariance"),
}
# Connectomes that are prepared at once, in float64.
_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class Preparation:
    """How connectomes are made ready, in the order of the steps.

    Steps: (1) `connectome`: whose; both directions are averaged, and the diagonal is
    cleared; (2) `threshold`; (3) `consensus`; (4) `weights`. What they need of the
    training people, :meth:`learn` adds. Make it by :meth:`of`, which checks.

    Parameters
    ----------
    threshold : float
        Links below it become 0, in the connectome's unit; the paper drops those of
        fewer than 10 streamlines. 0 is none.
    weights : {"weighted", "log", "binary"}
        Keep weights, take log(1 + w), or set every link to 1 (the paper).
    consensus : float
        Links are kept that at least this share of the training people has. 0 is none.
    connectome : {"own", "mean", "covariance"}
        Each scan's, or one network for all: the mean of the training people, or
        :func:`covariance_connectome` of their features, for people without diffusion
        imaging.
    mask : bool array of shape (n_rois, n_rois), optional
        Learned: links that `consensus` keeps.
    network : array of shape (n_rois, n_rois), optional
        Learned: the one network, before step 3.

    Examples
    --------
    >>> W = np.array([[[5.0, 12.0], [12.0, 0.0]]])
    >>> Preparation.of(threshold=10, weights="binary").apply(W).tolist()
    [[[0.0, 1.0], [1.0, 0.0]]]
    """

    threshold: float = 0.0
    weights: str = "weighted"
    consensus: float = 0.0
    connectome: str = "own"
    mask: np.ndarray | None = None
    network: np.ndarray | None = None

    @classmethod
    def of(cls, **options: Any) -> "Preparation":
        """Return the preparation of named options; raise where one cannot be used."""
        known = [field.name for field in fields(cls)][:4]
        for name in options:
            check_choice("option of preparation", name, known)
        made = cls(**options)
        for name, choices in _CHOICES.items():
            check_choice(name, getattr(made, name), choices)
        check_at_least("threshold", made.threshold, 0.0)
        check_at_least("consensus", made.consensus, 0.0)
        covariance = made.connectome == "covariance"
        if made.consensus > 1 or (covariance and made.threshold > 1):
            raise ParameterError(
                "consensus, a share of people, and the threshold of correlations must "
                f"be at most 1, got {made.consensus!r} and {made.threshold!r}."
            )
        if covariance and made.consensus:
            raise ParameterError("consensus is for connectomes of people only.")
        return made

    @threadpool_limits.wrap(limits=1)
    def learn(
        self, connectomes: np.ndarray, features: np.ndarray, groups: np.ndarray
    ) -> "Preparation":
        """Learn from training scans; each person counts once, whatever their visits.

        Parameters
        ----------
        connectomes : array of shape (n_scans, n_rois, n_rois)
            Of the training scans.
        features : array of shape (n_scans, n_rois, n_features)
            NaN where not measured; for a covariance.
        groups : array of shape (n_scans,)
            Participant of every scan.

        Returns
        -------
        Preparation
            The same options, with `mask` or `network` where they need one.
        """
        if self.connectome == "covariance":
            network = covariance_connectome(features, groups)
            return replace(self, network=self._edges(network[None])[0])
        if self.connectome == "own" and not self.consensus:
            return self
        _, person, visits = np.unique(groups, return_inverse=True, return_counts=True)
        share = 1.0 / (visits[person] * len(visits))
        mean, presence = np.zeros((2, *connectomes.shape[1:]))
        for start in range(0, len(share), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            edges = self._edges(connectomes[part])
            mean += np.tensordot(share[part], edges, axes=1)
            presence += np.tensordot(share[part], edges > 0, axes=1)
        # shares are sums of fractions: 3 of 5 people must count as 0.6
        mask = presence >= self.consensus - 1e-12 if self.consensus else None
        return replace(
            self, mask=mask, network=mean if self.connectome == "mean" else None
        )

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
        edges = self._edges(W) if self.network is None else self.network[None].copy()
        if self.mask is not None:
            edges *= self.mask
        if self.weights == "log":
            np.log1p(edges, out=edges)
        elif self.weights == "binary":
            edges = (edges > 0).astype(np.float64)
        return edges

    def _edges(self, W: np.ndarray) -> np.ndarray:
        """Average both directions, clear the diagonal, threshold."""
        W = np.asarray(W, dtype=np.float64)
        edges = (W + np.swapaxes(W, -1, -2)) / 2
        diagonal = np.arange(W.shape[-1])
        edges[..., diagonal, diagonal] = 0.0
        edges[edges < self.threshold] = 0.0
        return edges


@threadpool_limits.wrap(limits=1)
def covariance_connectome(
    features: np.ndarray, groups: np.ndarray | None = None
) -> np.ndarray:
    """Return how regions' features go together over people, as a network.

    The weight of two regions is the correlation of their values over people, 0 where
    it is negative; the mean over features. A person's value is the mean over their
    visits. Regions measured together in fewer than three people, and regions that do
    not vary, have no link. Of thickness this is the structural covariance network.

    Of all scans of a cohort it has seen the people who are tested later. Inside folds
    it is the model's option `preparation={"connectome": "covariance"}`.

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
    people = np.arange(len(features)) if groups is None else np.asarray(groups)
    check_features(features)
    if len(set(people)) < 3:
        raise ParameterError(
            f"a covariance network needs at least 3 people, got {len(set(people))}."
        )
    network = np.zeros((features.shape[1], features.shape[1]))
    for kind in np.moveaxis(np.asarray(features, dtype=np.float64), 2, 0):
        values = pd.DataFrame(kind).groupby(people).mean()
        # means over visits leave a constant region a spread of rounding
        varies = values.std() > 1e-9 * values.mean().abs()
        known = values.where(varies, axis=1).corr(min_periods=3).fillna(0.0)
        network += known.to_numpy()
    network = np.clip(network / features.shape[2], 0.0, 1.0)
    np.fill_diagonal(network, 0.0)
    return network
