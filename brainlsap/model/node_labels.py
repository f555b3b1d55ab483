"""Which nodes may be learned from, and their classes: the one door for labels."""

from typing import Any

import numpy as np
import torch

from brainlsap.exceptions import ParameterError
from brainlsap.model.node_training import LabelledNodes


def check_nodes(
    train: Any, validation: Any, n_nodes: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return training and validation nodes as numbers, checked.

    Parameters
    ----------
    train : bool array of shape (n_nodes,), or int array of nodes
        Learned from.
    validation : bool array of shape (n_nodes,), or int array of nodes, or None
        Chooses the epoch.
    n_nodes : int
        Nodes of the graph.

    Returns
    -------
    train, validation : int array of nodes
        The second is None if none was given.

    Raises
    ------
    ParameterError
        For nodes that are not there, none, or in both.

    Examples
    --------
    >>> check_nodes([True, False, False], [2], 3)
    (array([0]), array([2]))
    """
    learned = _numbers("train", train, n_nodes)
    if validation is None:
        return learned, None
    chosen = _numbers("validation", validation, n_nodes)
    shared = np.intersect1d(learned, chosen)
    if len(shared):
        raise ParameterError(
            f"{len(shared)} node(s) stand in both train and validation, the first is "
            f"node {shared[0]}; they must not overlap."
        )
    return learned, chosen


def _numbers(name: str, nodes: Any, n_nodes: int) -> np.ndarray:
    given = np.asarray(nodes)
    if given.dtype == bool:
        if given.shape != (n_nodes,):
            raise ParameterError(
                f"{name} must be a mask of shape ({n_nodes},), got {given.shape}."
            )
        given = np.flatnonzero(given)
    if given.ndim != 1 or not len(given) or given.dtype.kind not in "iu":
        raise ParameterError(
            f"{name} must be a mask of nodes, or their numbers, and hold some; got "
            f"{given.dtype} of shape {given.shape}."
        )
    if given.min() < 0 or given.max() >= n_nodes or len(np.unique(given)) < len(given):
        raise ParameterError(
            f"{name} must hold numbers from 0 to {n_nodes - 1}, each once; got "
            f"{given.min()} to {given.max()}, {len(np.unique(given))} different."
        )
    return given


def check_node_labels(
    labels: Any, train: np.ndarray, validation: np.ndarray | None
) -> tuple[np.ndarray, LabelledNodes, LabelledNodes | None]:
    """Read the labels of training and validation nodes, and no others.

    Parameters
    ----------
    labels : array of shape (n_nodes,)
        Classes; what stands at other nodes is never looked at.
    train : int array of nodes
        From :func:`check_nodes`.
    validation : int array of nodes, or None
        From :func:`check_nodes`.

    Returns
    -------
    classes : array of shape (n_classes,)
        Of the training nodes.
    train : LabelledNodes
    validation : LabelledNodes or None

    Raises
    ------
    ParameterError
        If a node has no label, training one class only, or validation a class that
        training has not.

    Examples
    --------
    >>> classes, train, _ = check_node_labels(["b", "a", "?"], np.array([0, 1]), None)
    >>> classes.tolist(), train.codes.tolist()
    (['a', 'b'], [1, 0])
    """
    learned = _labels_of("train", labels, train)
    classes = np.unique(learned)
    if len(classes) < 2:
        raise ParameterError(
            f"train holds the class {classes[0]!s} only; at least 2 are needed."
        )
    if validation is None:
        return classes, _coded(train, learned, classes), None
    chosen = _labels_of("validation", labels, validation)
    unknown = np.setdiff1d(chosen, classes)
    if len(unknown):
        raise ParameterError(
            f"validation holds the class {unknown[0]!s}, which train does not."
        )
    return (
        classes,
        _coded(train, learned, classes),
        _coded(validation, chosen, classes),
    )


def _labels_of(name: str, labels: Any, nodes: np.ndarray) -> np.ndarray:
    mine = np.asarray(labels)[nodes]
    if mine.dtype.kind in "if" and not (mine >= 0).all():
        raise ParameterError(
            f"{int((~(mine >= 0)).sum())} node(s) of {name} have no label (negative "
            "or NaN); leave them out."
        )
    return mine


def _coded(nodes: np.ndarray, mine: np.ndarray, classes: np.ndarray) -> LabelledNodes:
    codes = torch.from_numpy(np.searchsorted(classes, mine))
    return LabelledNodes(torch.from_numpy(nodes), codes)
