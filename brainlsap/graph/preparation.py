"""Connectomes are made ready for a Laplacian: symmetric, thresholded, weighted."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from brainlsap._scratch import row_blocks
from brainlsap.exceptions import ParameterError
from brainlsap.graph.group_networks import covariance_connectome, shares_of_scans
from brainlsap.graph.preparation_options import Preparation
from brainlsap.graph.preparation_steps import (
    fill_isolated,
    keep_edges,
    strongest_links,
    transform_weights,
)

_LEARNED = ("mask", "mean", "covariance")


def prepare_connectomes(
    W: np.ndarray,
    *,
    threshold: float = 0.0,
    weights: str = "weighted",
    threshold_unit: str = "weight",
    symmetrize: str = "mean",
    volumes: tuple[float, ...] | None = None,
    isolated: str = "keep",
) -> np.ndarray:
    """Make connectomes ready for a Laplacian, by the steps that need no training.

    Parameters
    ----------
    W : array of shape (n_graphs, n_rois, n_rois)
        Streamline counts or other non-negative weights.
    threshold, weights, threshold_unit : see :class:`Preparation`
        Which links stay, and as what.
    symmetrize, volumes : see :class:`Preparation`
        What weights are made of.
    isolated : {"keep", "strongest", "refuse"}
        What becomes of regions without links.

    Returns
    -------
    array of shape (n_graphs, n_rois, n_rois)
        In float64.

    Raises
    ------
    ParameterError
        For an option that cannot be used, or what an option refuses.

    Examples
    --------
    >>> W = np.array([[[5.0, 12.0], [12.0, 0.0]]])
    >>> prepare_connectomes(W, threshold=10, weights="binary").tolist()
    [[[0.0, 1.0], [1.0, 0.0]]]
    """
    options = Preparation.of(
        threshold=threshold,
        weights=weights,
        threshold_unit=threshold_unit,
        symmetrize=symmetrize,
        volumes=volumes,
        isolated=isolated,
    )
    if options.is_learned:
        raise ParameterError(
            "isolated='mean' is learned from training scans; use LearnedPreparation."
        )
    edges = keep_edges(W, options)
    return transform_weights(fill_isolated(edges, W, options), options.weights)


@dataclass(frozen=True, eq=False)
class LearnedPreparation:
    """A preparation with what it learned from the training scans.

    Parameters
    ----------
    options : Preparation
        The steps.
    mask : bool array of shape (n_rois, n_rois), optional
        Links that `consensus` and `group_density` keep.
    mean : array of shape (n_rois, n_rois), optional
        Mean of the training people after step 4.
    covariance : array of shape (n_rois, n_rois), optional
        Of the training people's features.

    Examples
    --------
    >>> W = np.array(
    ...     [[[0.0, 4, 1], [4, 0, 0], [1, 0, 0]], [[0, 2, 0], [2, 0, 0], [0] * 3]]
    ... )
    >>> options = Preparation.of(consensus=0.6)
    >>> prepared = LearnedPreparation.learn(W, None, np.arange(2), options).apply(W)
    >>> prepared[0].tolist()
    [[0.0, 4.0, 0.0], [4.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """

    options: Preparation
    mask: np.ndarray | None = None
    mean: np.ndarray | None = None
    covariance: np.ndarray | None = None

    @classmethod
    def learn(
        cls,
        connectomes: np.ndarray,
        features: np.ndarray | None,
        groups: np.ndarray,
        options: Preparation,
    ) -> "LearnedPreparation":
        """Learn from training scans; each person counts once, whatever their visits.

        Parameters
        ----------
        connectomes : array of shape (n_scans, n_rois, n_rois)
            Of the training scans.
        features : array of shape (n_scans, n_rois, n_features), optional
            NaN where not measured; needed for a covariance only.
        groups : array of shape (n_scans,)
            Participant of every scan.
        options : Preparation
            The steps.

        Returns
        -------
        LearnedPreparation

        Raises
        ------
        ParameterError
            For a covariance without features, or what an option refuses.
        """
        if not options.is_learned:
            return cls(options)
        if options.connectome == "covariance":
            if features is None:
                raise ParameterError("connectome='covariance' needs features.")
            covariance = covariance_connectome(features, groups)
            mean = keep_edges(covariance[None], options)[0]
            return cls(options, _learn_mask(None, mean, options), mean, covariance)
        mean, presence = _mean_and_presence(connectomes, groups, options)
        return cls(options, _learn_mask(presence, mean, options), mean)

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> "LearnedPreparation":
        """Return what :meth:`to_dict` has taken apart."""
        options = Preparation.of(**state["options"])
        return cls(options, **{name: state[name] for name in _LEARNED})

    def to_dict(self) -> dict[str, Any]:
        """Return options and learned arrays, so that a file can hold them."""
        options = {k: v for k, v in asdict(self.options).items() if v is not None}
        return {"options": options} | {name: getattr(self, name) for name in _LEARNED}

    @property
    def is_shared(self) -> bool:
        """Whether every scan gets one and the same network."""
        return self.options.connectome != "own"

    def apply(self, W: np.ndarray, first_row: int = 0) -> np.ndarray:
        """Prepare connectomes, of training scans or of new ones.

        Parameters
        ----------
        W : array of shape (n_scans, n_rois, n_rois)
            With the regions that were learned from.
        first_row : int
            Number of the first of them, for messages.

        Returns
        -------
        array of shape (n_scans, n_rois, n_rois)
            In float64; a broadcast view where one network serves all.

        Raises
        ------
        ParameterError
            For what an option refuses.
        """
        options, raw = self.options, W
        if options.connectome == "own":
            edges = keep_edges(W, options, first_row)
        else:
            edges = np.array(self.mean)[None]
            raw = edges.copy() if self.covariance is None else self.covariance[None]
        if self.mask is not None:
            edges *= self.mask
        fill_isolated(edges, raw, options, self.mean, first_row)
        prepared = transform_weights(edges, options.weights)
        # a broadcast view cannot be written to, which PyTorch warns of
        return (
            prepared if len(prepared) == len(W) else np.broadcast_to(prepared, W.shape)
        )


def _mean_and_presence(
    connectomes: np.ndarray, groups: np.ndarray, options: Preparation
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return people's mean link, and the share of people who have it where asked."""
    share = shares_of_scans(groups)
    mean = np.zeros(connectomes.shape[1:])
    presence = np.zeros(connectomes.shape[1:])
    for part in row_blocks(connectomes):
        edges = keep_edges(connectomes[part], options, part.start)
        mean += np.tensordot(share[part], edges, axes=1)
        if options.consensus > 0:
            presence += np.tensordot(share[part], edges > 0, axes=1)
    return mean, presence if options.consensus > 0 else None


def _learn_mask(
    presence: np.ndarray | None, mean: np.ndarray, options: Preparation
) -> np.ndarray | None:
    """Return the links that the group's thresholds keep; None without any."""
    if presence is None and options.group_density is None:
        return None
    mask = mean > 0
    if presence is not None:
        # shares are sums of fractions: 3 of 5 people must count as 0.6
        mask &= presence >= options.consensus - 1e-12
    if options.group_density is not None:
        mask &= strongest_links(mean, options.group_density)
    return mask
