"""The steps that make connectomes ready, each by itself."""

import numpy as np

from brainlsap._arrays import check_connectomes
from brainlsap.exceptions import ParameterError
from brainlsap.graph.preparation_options import Preparation


def keep_edges(W: np.ndarray, options: Preparation, first_row: int = 0) -> np.ndarray:
    """Symmetrise, clear the diagonal, threshold and divide by volume: steps 2 to 4.

    Parameters
    ----------
    W : array of shape (n_graphs, n_rois, n_rois)
    options : Preparation
    first_row : int
        Number of the first graph, for messages.

    Returns
    -------
    array of shape (n_graphs, n_rois, n_rois)
        A copy in float64.

    Raises
    ------
    ParameterError
        For weights that are not finite, negative or above 1e100, directions that
        differ where they may not, or another number of volumes.
    """
    W = np.asarray(W)
    if W.dtype.kind != "f" or W.itemsize < 8:  # halves end at 65504
        W = W.astype(np.float64)
    check_connectomes(W, first_row)
    edges = symmetric(W, options.symmetrize, first_row)
    _drop_weak(edges, options.threshold, options.threshold_unit)
    if options.volumes is not None:
        volumes = np.asarray(options.volumes)
        if volumes.shape != (W.shape[-1],):
            raise ParameterError(
                f"volumes must hold one number for each of {W.shape[-1]} regions, "
                f"got {volumes.size}."
            )
        with np.errstate(over="ignore"):
            edges *= 2.0 / (volumes[:, None] + volumes[None, :])
        check_connectomes(edges, first_row, " once divided by volumes,")
    return edges


def symmetric(W: np.ndarray, how: str = "mean", first_row: int = 0) -> np.ndarray:
    """Return the connectomes with equal directions and without a diagonal."""
    back = np.swapaxes(W, -1, -2)
    if how == "refuse":
        gap = np.abs(W - back).reshape(len(W), -1).max(axis=1, initial=0.0)
        bad = np.flatnonzero(gap > 1e-6 * W.reshape(len(W), -1).max(axis=1, initial=0))
        if bad.size:
            raise ParameterError(
                f"connectome of row {first_row + bad[0]} is not symmetric (its "
                f"directions differ by {gap[bad[0]]:g}), and symmetrize is 'refuse'."
            )
    made = np.maximum(W, back) if how == "max" else (W + back) / 2
    made = made.astype(np.float64, copy=False)
    diagonal = np.arange(W.shape[-1])
    made[..., diagonal, diagonal] = 0.0
    return made


def _drop_weak(edges: np.ndarray, threshold: float, unit: str) -> None:
    if threshold == 0:
        return
    if unit == "weight":
        edges[edges < threshold] = 0.0
        return
    for W in edges:
        if unit == "share":
            W[threshold * W.sum() / 2 > W] = 0.0
        else:
            W[~strongest_links(W, threshold)] = 0.0


def strongest_links(W: np.ndarray, density: float) -> np.ndarray:
    """Return which links are the strongest, this share of all pairs of regions.

    Parameters
    ----------
    W : array of shape (n_rois, n_rois)
        Symmetric.
    density : float
        Between 0 and 1. Links as weak as the weakest that stays stay too.

    Returns
    -------
    bool array of shape (n_rois, n_rois)
    """
    links = W[np.triu_indices(len(W), 1)]
    n_kept = round(density * links.size)
    if n_kept == 0:
        return np.zeros(W.shape, dtype=bool)
    place = links.size - n_kept
    return (np.partition(links, place)[place] <= W) & (W > 0)


def transform_weights(edges: np.ndarray, weights: str) -> np.ndarray:
    """Return the links as they are, as log(1 + w), or as 1."""
    if weights == "log":
        return np.log1p(edges)
    return (edges > 0).astype(np.float64) if weights == "binary" else edges


def fill_isolated(
    edges: np.ndarray,
    W: np.ndarray,
    options: Preparation,
    mean: np.ndarray | None = None,
    first_row: int = 0,
) -> np.ndarray:
    """Treat regions without links by the policy: step 6.

    Parameters
    ----------
    edges : array of shape (n_graphs, n_rois, n_rois)
        After thresholds; changed in place.
    W : array of shape (n_graphs, n_rois, n_rois)
        As they came.
    options : Preparation
    mean : array of shape (n_rois, n_rois), optional
        Links of the training people, for the policy `mean`.
    first_row : int
        Number of the first graph, for messages.

    Returns
    -------
    array of shape (n_graphs, n_rois, n_rois)

    Raises
    ------
    ParameterError
        For isolated regions where they are refused.
    """
    if options.isolated == "keep":
        return edges
    row, region = np.nonzero(~edges.any(axis=-1))
    if options.isolated == "refuse" and row.size:
        raise ParameterError(
            f"{row.size} regions have no link left (the first: region {region[0]} of "
            f"row {first_row + row[0]}), and isolated is 'refuse'. Lower the "
            "threshold, or choose 'keep', 'strongest' or 'mean'."
        )
    if row.size == 0:
        return edges
    given = mean if options.isolated == "mean" else None
    if given is None:
        given = keep_edges(W, _no_threshold(options))
    for graph, alone in zip(row, region, strict=True):
        links = given[alone] if given.ndim == 2 else given[graph, alone]
        if options.isolated == "strongest":
            links = np.where(np.arange(links.size) == links.argmax(), links, 0.0)
        edges[graph, alone] = np.maximum(edges[graph, alone], links)
        edges[graph, :, alone] = np.maximum(edges[graph, :, alone], links)
    return edges


def _no_threshold(options: Preparation) -> Preparation:
    return Preparation(symmetrize=options.symmetrize, volumes=options.volumes)
