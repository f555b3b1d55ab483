"""Connectomes of packed scans are made ready by what the training people taught."""

from collections.abc import Iterator

import numpy as np

from brainlsap._scratch import row_blocks
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
    return learned.apply(distinct_connectomes(connectomes, learned))


def distinct_connectomes(
    connectomes: np.ndarray, learned: LearnedPreparation
) -> np.ndarray:
    """Return every connectome, or one where all are made ready to the same.

    Parameters
    ----------
    connectomes : array of shape (n_scans, n_rois, n_rois)
    learned : LearnedPreparation

    Returns
    -------
    array of shape (n_scans, n_rois, n_rois), or (1, n_rois, n_rois)
        A view.
    """
    # one connectome shared by all is prepared and decomposed once
    shared = learned.is_shared or all_equal(connectomes)
    return connectomes[:1] if shared else connectomes


def all_equal(connectomes: np.ndarray) -> bool:
    """Tell whether all connectomes are the same; the first that differs ends it."""
    first = connectomes[0]
    return connectomes.strides[0] == 0 or all(
        np.array_equal(one, first)
        for part in row_blocks(connectomes)
        for one in connectomes[part]
    )


def prepare_in_blocks(
    connectomes: np.ndarray, learned: LearnedPreparation
) -> Iterator[np.ndarray]:
    """Yield prepared connectomes, so many at a time that they take little memory.

    Parameters
    ----------
    connectomes : array of shape (n_scans, n_rois, n_rois)
    learned : LearnedPreparation

    Yields
    ------
    array of shape (n_some, n_rois, n_rois)
    """
    for part in row_blocks(connectomes):
        yield learned.apply(connectomes[part], part.start)
