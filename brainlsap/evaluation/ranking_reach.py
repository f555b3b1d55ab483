"""Whether a scale means reach on the network, or the region against the whole brain."""

import numpy as np

from brainlsap.exceptions import ParameterError

WHOLE_BRAIN = 0.8
"""Above this share of rank one, a kernel averages over the whole brain."""


def rank_one_share(kernel: np.ndarray) -> float:
    r"""Return how much of what a kernel mixes in is one pattern for all regions.

    A kernel :math:`K \approx a I + b\, u u^T` gives every region its own value and
    the same weighted mean of the brain: its scale then says in which proportion, and
    nothing of reach along connections. The share is
    :math:`\sigma_1^2 / \sum_i \sigma_i^2` over the singular values of K without its
    diagonal.

    Parameters
    ----------
    kernel : array of shape (n_rois, n_rois)
        Heat kernel at the learned scales, the mean over scans.

    Returns
    -------
    float
        From 0 to 1; NaN where the kernel mixes nothing in. Dense graphs come near 1:
        binary connectomes of density 0.63 reach 0.93 at scale 2.

    Raises
    ------
    ParameterError
        Where the kernel is not square.

    Examples
    --------
    >>> u = np.array([[0.5, 0.5, 0.5, 0.5]])
    >>> rank_one_share(u.T @ u).__round__(2)
    0.75
    """
    kernel = np.asarray(kernel, dtype=float)
    if kernel.ndim != 2 or kernel.shape[0] != kernel.shape[1]:
        raise ParameterError(
            f"kernel must have shape (n_rois, n_rois), got {kernel.shape}."
        )
    mixed_in = kernel - np.diag(np.diag(kernel))
    energy = np.linalg.svd(mixed_in, compute_uv=False) ** 2
    return float(energy[0] / energy.sum()) if energy.sum() > 0 else float("nan")
