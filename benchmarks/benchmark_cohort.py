"""The fixed cohorts on which methods are judged: where disease is and how it spread."""

from functools import partial

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from brainlsap.atlas import Atlas
from brainlsap.data import Cohort
from brainlsap.exceptions import check_choice
from brainlsap.simulation import (
    STAGES,
    compute_disease_pattern,
    draw_base_weight_matrix,
    draw_streamline_count_matrix,
    draw_symmetric_normal_matrix,
    make_diffusion_operator,
    make_random_generator,
    split_people_by_shares,
)

ROIS = 160
SHARES = (0.27, 0.14, 0.33, 0.14, 0.12)
SEEDS = {"normalized": 6, "combinatorial": 6, "planted": 10, "permuted": 6}
NOISE = {"low": 0.1, "high": 0.2}
DEEPEST_LOSS = 1.5


def normalized_operator(network: np.ndarray) -> np.ndarray:
    r"""Return :math:`I - D^{-1/2} W D^{-1/2}`; regions without a link keep zeros."""
    degree = network.sum(axis=1)
    root = np.where(degree > 0, 1.0 / np.sqrt(np.where(degree > 0, degree, 1.0)), 0.0)
    return np.diag((degree > 0).astype(float)) - root[:, None] * network * root


OPERATORS = {
    "normalized": normalized_operator,
    "combinatorial": make_diffusion_operator,
}


@threadpool_limits.wrap(limits=1)
def make_benchmark_cohort(
    case: str, *, noise: str = "low", n_people: int = 400, random_state: int = 0
) -> Cohort:
    r"""Simulate one of the cohorts on which methods are judged, fixed before any was.

    They are simpler than those of :func:`make_cohort`: 160 regions on two
    half-ellipsoids with semi-axes of 60, 80 and 55 mm; base weights
    :math:`400\, e^{-d/18\,\mathrm{mm}}` times a log-normal factor of
    :math:`\sigma = 0.8`, plus 60 between homotopic regions; each person multiplies
    every edge by a log-normal factor of :math:`\sigma = 0.6`, which is the *true*
    network. The observed one is a Poisson count of it in which entries under 10 are
    dropped. One scan per person, of stage k = 0 to 4:

    .. math:: y_{pr} = \mu_r + b_p - 1.5\, \tfrac{k_p}{4}\, \pi_{pr} + \sigma\epsilon,
              \quad \mu_r \sim N(2.5, 0.25),\; b_p \sim N(0, 0.1)

    The same seed gives the same people, stages, connectomes, means and errors in every
    case and at both levels of noise, so that cases can be compared in pairs.

    Parameters
    ----------
    case : {"normalized", "combinatorial", "planted", "permuted"}
        `"normalized"`: :math:`\pi_p = e^{-3 O_p} x_0`, :math:`O_p` the normalised
        Laplacian of the true, weighted network, :math:`x_0` 1 at 6 random regions,
        scaled so that the largest value in the cohort is 1. `"combinatorial"`: the
        same with the combinatorial Laplacian over its mean degree (Raj et al. 2012).
        `"planted"`: no network signal; :math:`\pi` is 1 on 10 random regions.
        `"permuted"`: the first, with labels permuted between people: nothing to find.
    noise : {"low", "high"}
        :math:`\sigma`: 0.1 or 0.2.
    n_people : int
        One scan each; 400 are 108 / 56 / 132 / 56 / 48 in the five stages.
    random_state : int
        Seed; the judging uses 0 to 4.

    Returns
    -------
    Cohort
        One feature, `value`. `truth` has one row per region: region, seed (planted or
        seeded) and effect, the expected change from CN to AD; with permuted labels no
        region is marked and every effect is 0.
    """
    check_choice("case", case, SEEDS)
    check_choice("noise", noise, NOISE)
    stream = partial(make_random_generator, random_state)
    stages = np.repeat(np.arange(len(STAGES)), split_people_by_shares(n_people, SHARES))
    stages = stream("decisive stages").permutation(stages)
    atlas = _ellipsoid_atlas(stream("decisive atlas"))
    chosen = stream("decisive seeds").permutation(ROIS)
    seeded = np.isin(np.arange(ROIS), chosen[: SEEDS[case]])
    positions = atlas.regions[["x", "y", "z"]].to_numpy()
    base = draw_base_weight_matrix(positions, atlas.homotopic, stream("decisive base"))
    connectomes = np.empty((n_people, *base.shape), dtype=np.float32)
    pattern = np.tile(seeded.astype(float), (n_people, 1))
    operator = OPERATORS.get("normalized" if case == "permuted" else case)
    for person in range(n_people):
        rng = stream("decisive network", person)
        network = base * np.exp(0.6 * draw_symmetric_normal_matrix(ROIS, rng))
        if operator is not None:
            pattern[person] = compute_disease_pattern(
                operator(network), seeded, spreading_time=3.0
            )
        counts = draw_streamline_count_matrix(network, rng)
        connectomes[person] = np.where(counts < 10, 0.0, counts)
    pattern = pattern / pattern.max()
    rng = stream("decisive values")
    means = rng.normal(2.5, 0.25, ROIS)
    offset = rng.normal(0.0, 0.1, (n_people, 1))
    error = NOISE[noise] * rng.standard_normal(pattern.shape)
    severity = stages[:, None] / (len(STAGES) - 1)
    values = means + offset - DEEPEST_LOSS * severity * pattern + error
    effect = 0.0 - DEEPEST_LOSS * pattern.mean(axis=0)
    if case == "permuted":
        stages = stream("decisive labels").permutation(stages)
        seeded, effect = np.zeros_like(seeded), np.zeros(ROIS)
    people = [f"sub-{person + 1:04d}" for person in range(n_people)]
    table = {"scan": people, "participant": people, "session": ""}
    table["label"] = [STAGES[stage] for stage in stages]
    asked = {"noise": noise, "n_people": n_people, "random_state": random_state}
    return Cohort(
        connectomes=connectomes,
        features=values[:, :, None],
        table=pd.DataFrame(table),
        atlas=atlas,
        feature_names=("value",),
        classes=STAGES,
        findings=("simulated: nobody's data",),
        provenance={"simulated": "make_benchmark_cohort", "case": case, **asked},
        truth=pd.DataFrame({"region": atlas.names, "seed": seeded, "effect": effect}),
    )


def _ellipsoid_atlas(rng: np.random.Generator) -> Atlas:
    """Return 80 random points on a half-ellipsoid, and their mirror images."""
    half = ROIS // 2
    directions = rng.normal(size=(half, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    left = directions * [60.0, 80.0, 55.0]
    left[:, 0] = -np.abs(left[:, 0])
    positions = np.concatenate([left, left * [-1, 1, 1]])
    names = [f"ctx_{s}_{i + 1:03d}" for s in ("lh", "rh") for i in range(half)]
    return Atlas.from_names(names, coordinates=positions, name="ellipsoid160")
