"""Connectomes of packed scans are made ready by what the training people taught."""

import numpy as np

from brainlsap.exceptions import ParameterError
from brainlsap.graph import LearnedPreparation
from brainlsap.model.settings import Settings


def learn_preparation(
    connectomes: np.ndarray,
    features: np.ndarray | None,
    groups: np.ndarray | None,
    settings: Settings,
) -> LearnedPreparation:
    """Learn from training scans how connectomes are made ready.

    Parameters
    ----------
    connectomes : array of shape (n_scans, n_rois, n_rois)
    features : array of shape (n_scans, n_rois, n_features), optional
    groups : array of shape (n_scans,), optional
        Participant of every scan.
    settings : Settings

    Returns
    -------
    LearnedPreparation

    Raises
    ------
    ParameterError
        For options that need people, and are given none.
    """
    options = settings.preparing()
    if not options.is_learned:
        return LearnedPreparation(options)
    if groups is None:
        raise ParameterError(
            "this preparation of connectomes is learned from training people; "
            "learn it there and pass it on as learned=."
        )
    return LearnedPreparation.learn(connectomes, features, groups, options)


def prepare_distinct(
    connectomes: np.ndarray, learned: LearnedPreparation
) -> np.ndarray:
    """Prepare every graph, or the only one that there is.

    Parameters
    ----------
    connectomes : array of shape (n_scans, n_rois, n_rois)
    learned : LearnedPreparation

    Returns
    -------
    array of shape (n_scans, n_rois, n_rois), or (1, n_rois, n_rois)
    """
    # one connectome shared by all is prepared and decomposed once
    shared = learned.is_shared or bool((connectomes == connectomes[:1]).all())
    return learned.apply(connectomes[:1] if shared else connectomes)
