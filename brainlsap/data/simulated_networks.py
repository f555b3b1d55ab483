r"""Simulated connectomes and the spread of disease along them: arrays only.

Weights are expected numbers of streamlines. With :math:`d_{ij}` the distance of two
regions in mm and :math:`\epsilon_{ij}` symmetric standard normal draws,

.. math::
   B_{ij} &= A\, h_i h_j\, q_{ij}\, e^{-d_{ij}/\ell}\, e^{\sigma_B \epsilon_{ij}}
             + t\,[j \text{ is the twin of } i] \\
   W^{(p)}_{ij} &= B_{ij}\, e^{\sigma_P \epsilon^{(p)}_{ij}} \\
   C^{(p,v)}_{ij} &\sim \mathrm{Poisson}\left(W^{(p)}_{ij}\,
             e^{\sigma_V \epsilon^{(p,v)}_{ij}}\right)

for the base network B of a cohort, the true network W of person p and the counts C
of one scan. :math:`h` is the hub strength, :math:`q_{ij} < 1` joins the two
hemispheres more thinly than one (only homotopic twins have a callosal bundle), and
the diagonal is zero.

Sources: weights that fall with distance, Roberts et al. 2016 (NeuroImage 124:379).
The standard deviations of :func:`vary_network` and :func:`count_streamlines` are
those of 98 scans of 49 people, twice each (CoRR BNU_1, 84 regions, probabilistic
tractography): the logarithm of an edge varies by 0.4 to 0.7 between people and,
above 200 streamlines, by 0.1 to 0.2 between two scans of a person.
"""

import numpy as np

from brainlsap.exceptions import ParameterError


def symmetric_normal(n_rois: int, rng: np.random.Generator) -> np.ndarray:
    """Draw a symmetric matrix of standard normal values with a zero diagonal.

    Parameters
    ----------
    n_rois : int
        Number of regions.
    rng : numpy.random.Generator
        Where the draws come from.

    Returns
    -------
    array of shape (n_rois, n_rois)

    Examples
    --------
    >>> E = symmetric_normal(4, np.random.default_rng(0))
    >>> bool((E == E.T).all()), float(np.trace(E))
    (True, 0.0)
    """
    upper = np.triu(rng.standard_normal((n_rois, n_rois)), 1)
    return upper + upper.T


def pairwise_distance(positions: np.ndarray) -> np.ndarray:
    """Return Euclidean distances between regions.

    Parameters
    ----------
    positions : array of shape (n_rois, 3)
        Centroids in mm.

    Returns
    -------
    array of shape (n_rois, n_rois)
        In mm; the diagonal is 0.
    """
    difference = positions[:, None, :] - positions[None, :, :]
    return np.sqrt((difference**2).sum(axis=2))


def base_network(
    positions: np.ndarray,
    twins: np.ndarray,
    rng: np.random.Generator,
    *,
    strength: float = 400.0,
    length: float = 18.0,
    spread: float = 0.8,
    twin_weight: float = 60.0,
    hubs: np.ndarray | None = None,
    across: np.ndarray | None = None,
) -> np.ndarray:
    r"""Draw the network that a whole cohort shares: :math:`B` of the module's page.

    Parameters
    ----------
    positions : array of shape (n_rois, 3)
        Centroids in mm.
    twins : int array of shape (n_rois,)
        Position of each region's twin in the other hemisphere; -1 for none.
    rng : numpy.random.Generator
        Where the draws come from.
    strength : float
        :math:`A`, expected streamlines at no distance.
    length : float
        :math:`\ell`, mm over which a weight falls by a factor e.
    spread : float
        :math:`\sigma_B`, standard deviation of the logarithm of a weight.
    twin_weight : float
        :math:`t`, streamlines added between twins.
    hubs : array of shape (n_rois,), optional
        Strength :math:`h` of every region; 1 by default.
    across : array of shape (n_rois, n_rois), optional
        :math:`q`, factor on every pair; 1 by default.

    Returns
    -------
    array of shape (n_rois, n_rois)
        Symmetric, not negative, zero on the diagonal.

    Examples
    --------
    >>> positions = np.array([[-30.0, 0, 0], [-30, 40, 0], [30, 0, 0], [30, 40, 0]])
    >>> twins = np.array([2, 3, 0, 1])
    >>> B = base_network(positions, twins, np.random.default_rng(0), spread=0.0)
    >>> B.round(1)[0]
    array([ 0. , 43.3, 74.3,  7.3])
    """
    n_rois = len(positions)
    decay = strength * np.exp(-pairwise_distance(positions) / length)
    network = decay * np.exp(spread * symmetric_normal(n_rois, rng))
    if hubs is not None:
        network = network * np.outer(hubs, hubs)
    if across is not None:
        network = network * across
    has_twin = np.flatnonzero(twins >= 0)
    network[has_twin, twins[has_twin]] += twin_weight
    np.fill_diagonal(network, 0.0)
    return network


def vary_network(
    base: np.ndarray, rng: np.random.Generator, *, variability: float = 0.6
) -> np.ndarray:
    r"""Draw one person's true network: every edge times its own log-normal factor.

    Parameters
    ----------
    base : array of shape (n_rois, n_rois)
        The cohort's network.
    rng : numpy.random.Generator
        Where the draws come from.
    variability : float
        :math:`\sigma_P`, standard deviation of the logarithm.

    Returns
    -------
    array of shape (n_rois, n_rois)
        Symmetric; weighted and not thresholded.
    """
    return base * np.exp(variability * symmetric_normal(len(base), rng))


def count_streamlines(
    network: np.ndarray, rng: np.random.Generator, *, rescan: float = 0.0
) -> np.ndarray:
    r"""Draw the streamlines that one scan finds.

    Parameters
    ----------
    network : array of shape (n_rois, n_rois)
        Expected counts of the person.
    rng : numpy.random.Generator
        Where the draws come from.
    rescan : float
        :math:`\sigma_V`, standard deviation of the logarithm between scans, beyond
        counting noise.

    Returns
    -------
    array of shape (n_rois, n_rois)
        Whole numbers as float64, symmetric.
    """
    rows, columns = np.triu_indices(len(network), 1)
    expected = network[rows, columns]
    if rescan > 0:
        expected = expected * np.exp(rescan * rng.standard_normal(expected.shape))
    counts = np.zeros_like(network)
    counts[rows, columns] = rng.poisson(expected)
    return counts + counts.T


def normalized_operator(network: np.ndarray) -> np.ndarray:
    r"""Return :math:`I - D^{-1/2} W D^{-1/2}` of a weighted network.

    Written here in three lines so that simulated data do not share code with the
    model that is judged on them. Regions without a link keep a row of zeros: what
    is there stays there.

    Parameters
    ----------
    network : array of shape (n_rois, n_rois)
        Symmetric weights, not negative.

    Returns
    -------
    array of shape (n_rois, n_rois)
    """
    degree = network.sum(axis=1)
    root = np.where(degree > 0, 1.0 / np.sqrt(np.where(degree > 0, degree, 1.0)), 0.0)
    return np.diag((degree > 0).astype(float)) - root[:, None] * network * root


def diffusion_operator(network: np.ndarray) -> np.ndarray:
    r"""Return :math:`(D - W) / \bar d`, the operator of the network diffusion model.

    The combinatorial Laplacian (Raj, Kuceyeski, Weiner 2012, Neuron 73:1204) over
    the mean degree, so that a time of 1 lets a region of mean degree pass on about
    63 % of what it holds, whatever the number of streamlines.

    Parameters
    ----------
    network : array of shape (n_rois, n_rois)
        Symmetric weights, not negative.

    Returns
    -------
    array of shape (n_rois, n_rois)

    Examples
    --------
    >>> diffusion_operator(np.array([[0.0, 3], [3, 0]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    degree = network.sum(axis=1)
    return (np.diag(degree) - network) / max(degree.mean(), np.finfo(float).tiny)


OPERATORS = {
    "normalized": normalized_operator,
    "combinatorial": diffusion_operator,
}


def spread_from_seeds(
    operator: np.ndarray, seeds: np.ndarray, time: float
) -> np.ndarray:
    r"""Let disease diffuse: :math:`x(t) = e^{-t O} x_0`, :math:`x_0` 1 at seeds.

    Parameters
    ----------
    operator : array of shape (n_rois, n_rois)
        Symmetric, eigenvalues not negative.
    seeds : bool array of shape (n_rois,)
        Where disease starts.
    time : float
        :math:`t`, without unit; 0 leaves everything at the seeds.

    Returns
    -------
    array of shape (n_rois,)
        Not negative.

    Raises
    ------
    ParameterError
        Where `time` is negative.

    Examples
    --------
    >>> O = diffusion_operator(np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    >>> spread_from_seeds(O, np.array([True, False, False]), 0.5).round(3)
    array([0.731, 0.225, 0.044])
    """
    if not time >= 0:
        raise ParameterError(f"spread must be at least 0, got {time!r}.")
    eigenvalues, vectors = np.linalg.eigh(operator)
    start = vectors.T @ seeds.astype(float)
    # Rounding can leave -1e-17 at regions that disease has not reached.
    return np.maximum(vectors @ (np.exp(-time * eigenvalues) * start), 0.0)
