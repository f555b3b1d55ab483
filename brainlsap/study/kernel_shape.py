"""What the kernel of a model does at its learned scales."""

import numpy as np
import torch

from brainlsap.data import Cohort
from brainlsap.graph import (
    LearnedPreparation,
    exact_heat_kernel,
    normalized_laplacian,
)
from brainlsap.model import LSAPClassifier
from brainlsap.model.inputs import distinct_connectomes

# Connectomes handled at once.
_CHUNK = 64


def mean_kernel(
    model: LSAPClassifier, cohort: Cohort, scales: np.ndarray
) -> np.ndarray:
    """Return the heat kernel at given scales, the mean over scans.

    Parameters
    ----------
    model : LSAPClassifier
        Says how connectomes are prepared; it need not be fitted.
    cohort : Cohort
        The scans.
    scales : array of shape (n_rois,)
        Heat scale of every region.

    Returns
    -------
    array of shape (n_rois, n_rois)
        Row p is how region p mixes the brain; the exact kernel, which all variants
        approximate.

    Examples
    --------
    >>> from brainlsap.data import make_cohort
    >>> cohort = make_cohort(10, atlas="desikan82")
    >>> kernel = mean_kernel(LSAPClassifier(), cohort, np.zeros(82))
    >>> bool(np.allclose(kernel, np.eye(82)))
    True
    """
    connectomes = np.asarray(cohort.connectomes)
    options = model.resolve().preparing()
    learned = LearnedPreparation.learn(
        connectomes, cohort.features, cohort.groups, options
    )
    prepared = learned.apply(distinct_connectomes(connectomes, learned))
    scale = torch.from_numpy(np.asarray(scales, dtype=np.float64))
    total = np.zeros((cohort.n_rois, cohort.n_rois))
    for first in range(0, len(prepared), _CHUNK):
        laplacian = normalized_laplacian(prepared[first : first + _CHUNK])
        total += exact_heat_kernel(laplacian, scale).sum(0).numpy()
    return total / len(prepared)
