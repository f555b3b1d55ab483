"""The spectral engine's rows: eigenvectors, weighted by the kernel at each scale."""

from typing import NamedTuple

import torch
from torch import Tensor

from brainlsap.graph.rewriting import Series


class Graphs(NamedTuple):
    """Spectra of the graphs of some items, in the working precision.

    Parameters
    ----------
    vectors : Tensor of shape (n_graphs, n_rois, n_rois)
        Eigenvectors.
    slopes : Tensor of shape (n_graphs, 1, n_rois)
        Eigenvalues times -1: what a slope with respect to scale multiplies by.
    basis : Tensor of shape (n_graphs, order + 1, n_rois)
        Chebyshev polynomials of the eigenvalues.
    """

    vectors: Tensor
    slopes: Tensor
    basis: Tensor


def weighted_vectors(
    weights: Series | Tensor, graphs: Graphs, workspace: Tensor
) -> Tensor:
    """Return U o E.

    Parameters
    ----------
    weights : Series or Tensor of shape (n_rois,)
        The kernel at every region's scale; scales, where exponentials are taken.
    graphs : Graphs
        No more than the workspace holds.
    workspace : Tensor of shape (chunk, n_rois, n_rois)
        Overwritten: fresh memory costs more than the sums.

    Returns
    -------
    Tensor of shape (n_graphs, n_rois, n_rois)
        In the workspace.
    """
    if isinstance(weights, Tensor):
        rows = workspace[: len(graphs.vectors)]
        torch.mul(weights[:, None], graphs.slopes, out=rows)
        return rows.exp_().mul_(graphs.vectors)
    return _summed(weights.coefficients, graphs, workspace)


def weighted_slopes(
    weights: Series | Tensor, graphs: Graphs, workspace: Tensor
) -> Tensor | None:
    """Return U o dE/ds; None where that is U o E times -lambda.

    Parameters
    ----------
    weights : Series or Tensor of shape (n_rois,)
        The kernel at every region's scale; scales, where exponentials are taken.
    graphs : Graphs
        No more than the workspace holds.
    workspace : Tensor of shape (chunk, n_rois, n_rois)
        Overwritten.

    Returns
    -------
    Tensor of shape (n_graphs, n_rois, n_rois) or None
        In the workspace.
    """
    if isinstance(weights, Tensor) or weights.follows_eigenvalues:
        return None
    return _summed(weights.slopes, graphs, workspace)


def _summed(c: Tensor, graphs: Graphs, workspace: Tensor) -> Tensor:
    values = graphs.basis[:, : c.shape[1]]
    rows = workspace[: len(values)]
    torch.bmm(c.expand(len(values), -1, -1), values, out=rows)
    return rows.mul_(graphs.vectors)
