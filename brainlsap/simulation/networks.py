r"""Simulated connectomes and the spread of disease along them: arrays only.

Weights are expected numbers of streamlines. With :math:`d_{ij}` the distance of two
regions in mm and :math:`\epsilon_{ij}` symmetric standard normal draws,

.. math::
   B_{ij} &= A\, h_i h_j\, q_{ij}\, e^{-d_{ij}/\ell}\, e^{\sigma_B \epsilon_{ij}}
             + t\,[i, j \text{ homotopic}] \\
   W^{(p)}_{ij} &= B_{ij}\, e^{\sigma_P \epsilon^{(p)}_{ij}} \\
   C^{(p,v)}_{ij} &\sim \mathrm{Poisson}\left(W^{(p)}_{ij}\,
             e^{\sigma_V \epsilon^{(p,v)}_{ij}}\right)

for the base network B of a cohort, the true network W of person p and the counts C
of one scan. :math:`h` is the hub strength, :math:`q_{ij} < 1` joins the hemispheres
more thinly than one (only homotopic regions have a callosal bundle), and the diagonal
is zero.

Sources: weights that fall with distance, Roberts et al. 2016 (NeuroImage 124:379).
The deviations :math:`\sigma_P, \sigma_V` are those of 98 scans of 49 people, twice
each (CoRR BNU_1, 84 regions, probabilistic tractography): the logarithm of an edge
varies by 0.4 to 0.7 between people and, above 200 streamlines, by 0.1 to 0.2 between
two scans of a person.
"""

from collections.abc import Sequence
from zlib import crc32

import numpy as np

# Of the base network: A, ell in mm, and t.
STRENGTH, LENGTH, HOMOTOPIC = 400.0, 18.0, 60.0


def random_stream(random_state: int, name: str, *keys: int) -> np.random.Generator:
    """Return the generator of one purpose and person, whatever was drawn before."""
    # Entropy is padded with zeros, so without their number no key is the key 0.
    return np.random.default_rng([random_state, crc32(name.encode()), len(keys), *keys])


def symmetric_normal(n_rois: int, rng: np.random.Generator) -> np.ndarray:
    """Draw a symmetric matrix of standard normal values with a zero diagonal."""
    upper = np.triu(rng.standard_normal((n_rois, n_rois)), 1)
    return upper + upper.T


def base_network(
    positions: np.ndarray,
    homotopic: np.ndarray,
    rng: np.random.Generator,
    *,
    spread: float = 0.8,
    factors: Sequence[np.ndarray] = (),
) -> np.ndarray:
    """Draw the network B that a cohort shares; `factors` are h_i h_j and q_ij.

    `homotopic` is each region's counterpart in the other hemisphere, itself for none.
    """
    difference = positions[:, None, :] - positions[None, :, :]
    distance = np.sqrt((difference**2).sum(axis=2))
    network = STRENGTH * np.exp(-distance / LENGTH)
    network = network * np.exp(spread * symmetric_normal(len(positions), rng))
    for factor in factors:
        network = network * factor
    rows = np.arange(len(positions))
    network[rows, homotopic] += HOMOTOPIC
    np.fill_diagonal(network, 0.0)
    return network


def vary_network(
    base: np.ndarray, rng: np.random.Generator, variability: float
) -> np.ndarray:
    """Draw one person's true network: every edge times its own log-normal factor."""
    return base * np.exp(variability * symmetric_normal(len(base), rng))


def count_streamlines(
    network: np.ndarray, rng: np.random.Generator, rescan: float = 0.0
) -> np.ndarray:
    """Draw the streamlines that one scan finds: whole, symmetric, float32."""
    rows, columns = np.triu_indices(len(network), 1)
    expected = network[rows, columns]
    if rescan > 0:
        expected = expected * np.exp(rescan * rng.standard_normal(expected.shape))
    counts = np.zeros(network.shape, dtype=np.float32)
    counts[rows, columns] = rng.poisson(expected)
    return counts + counts.T


# Written here, so that simulated data share no code with the model judged on them.
def normalized_operator(network: np.ndarray) -> np.ndarray:
    r"""Return :math:`I - D^{-1/2} W D^{-1/2}`; regions without a link keep zeros."""
    degree = network.sum(axis=1)
    root = np.where(degree > 0, 1.0 / np.sqrt(np.where(degree > 0, degree, 1.0)), 0.0)
    return np.diag((degree > 0).astype(float)) - root[:, None] * network * root


def diffusion_operator(network: np.ndarray) -> np.ndarray:
    r"""Return :math:`(D - W) / \bar d` of the network diffusion model.

    Raj, Kuceyeski, Weiner 2012 (Neuron 73:1204), over the mean degree: in a time of 1
    a region of mean degree passes on about 63 % of what it holds, whatever the number
    of streamlines.
    """
    degree = network.sum(axis=1)
    return (np.diag(degree) - network) / max(degree.mean(), np.finfo(float).tiny)


OPERATORS = {"normalized": normalized_operator, "combinatorial": diffusion_operator}


def spread_from_seeds(
    operator: np.ndarray, seeds: np.ndarray, time: float
) -> np.ndarray:
    r"""Return :math:`x(t) = e^{-t O} x_0`, :math:`x_0` being 1 at the seeds."""
    eigenvalues, vectors = np.linalg.eigh(operator)
    start = vectors.T @ seeds.astype(float)
    # Rounding can leave -1e-17 at regions that disease has not reached.
    return np.maximum(vectors @ (np.exp(-time * eigenvalues) * start), 0.0)
