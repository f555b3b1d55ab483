r"""The simulated cohorts on which methods are judged, fixed before any was tuned.

They are simpler than those of :func:`~brainlsap.data.simulate.make_cohort` and
never change: 160 regions on two half-ellipsoids with semi-axes of 60, 80 and 55 mm;
base weights :math:`400\, e^{-d/18\,\mathrm{mm}}` times a log-normal factor of
:math:`\sigma = 0.8`, plus 60 between twins; each person multiplies every edge by a
log-normal factor of :math:`\sigma = 0.6`, which is the *true* network. The observed
one is a Poisson count of it in which entries under 10 are dropped. One scan per
person, of stage k = 0 to 4:

.. math:: y_{pr} = \mu_r + b_p - 1.5\, \tfrac{k_p}{4}\, \pi_{pr} + \sigma\epsilon_{pr},
          \quad \mu_r \sim N(2.5, 0.25),\; b_p \sim N(0, 0.1)

with :math:`\sigma` = 0.1 (low noise) or 0.2 (high), and in the cases

- `"normalized"`: :math:`\pi_p = e^{-3 O_p} x_0`, :math:`O_p` the normalised Laplacian
  of the true, weighted network, :math:`x_0` 1 at 6 random regions, scaled so that the
  largest value in the cohort is 1;
- `"combinatorial"`: the same with the combinatorial Laplacian over its mean degree,
  the network diffusion model of Raj et al. 2012;
- `"planted"`: no network signal: :math:`\pi` is 1 on 10 random regions, 0 elsewhere;
- `"permuted"`: the first case, with the labels permuted between people: nothing is to
  be found.
"""

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from brainlsap._arrays import check_choice
from brainlsap.data.atlas import Atlas
from brainlsap.data.classes import STAGES
from brainlsap.data.cohort import Cohort
from brainlsap.data.simulated_networks import (
    OPERATORS,
    base_network,
    count_streamlines,
    spread_from_seeds,
    vary_network,
)
from brainlsap.data.simulated_people import divide, random_stream

N_ROIS = 160
SEMI_AXES = (60.0, 80.0, 55.0)
STAGE_SHARES = (0.27, 0.14, 0.33, 0.14, 0.12)
SMALLEST_COUNT = 10
SPREADING_TIME = 3.0
DEEPEST_LOSS = 1.5
N_SEEDS = {"normalized": 6, "combinatorial": 6, "planted": 10, "permuted": 6}
NOISE = {"low": 0.1, "high": 0.2}


# sums in one order, so that the last digit does not follow the number of threads
@threadpool_limits.wrap(limits=1)
def make_decisive_cohort(
    case: str, *, noise: str = "low", n_people: int = 400, random_state: int = 0
) -> Cohort:
    """Simulate one of the cohorts on which methods are judged.

    The model is on the page of :mod:`brainlsap.data.decisive_cohorts`. The same
    seed gives the same people, stages, connectomes, means and errors in every case
    and at both levels of noise, so that cases can be compared in pairs.

    Parameters
    ----------
    case : {"normalized", "combinatorial", "planted", "permuted"}
        How disease spreads.
    noise : {"low", "high"}
        Standard deviation of a value: 0.1 or 0.2.
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

    Raises
    ------
    ParameterError
        Where `case` or `noise` is unknown, or people are fewer than stages.

    Examples
    --------
    >>> cohort = make_decisive_cohort("planted", n_people=20)
    >>> cohort.n_scans, cohort.n_rois, int(cohort.truth["seed"].sum())
    (20, 160, 10)
    """
    check_choice("case", case, N_SEEDS)
    check_choice("noise", noise, NOISE)
    stages = random_stream(random_state, "decisive stages").permutation(
        np.repeat(np.arange(len(STAGES)), divide(n_people, STAGE_SHARES))
    )
    atlas = _ellipsoid_atlas(random_state)
    seeded = np.zeros(N_ROIS, dtype=bool)
    rng = random_stream(random_state, "decisive seeds")
    seeded[rng.permutation(N_ROIS)[: N_SEEDS[case]]] = True
    connectomes, pattern = _draw_networks(case, atlas, seeded, n_people, random_state)
    values = _draw_values(stages, pattern, NOISE[noise], random_state)
    effect = 0.0 - DEEPEST_LOSS * pattern.mean(axis=0)
    if case == "permuted":
        stages = random_stream(random_state, "decisive labels").permutation(stages)
        seeded, effect = np.zeros_like(seeded), np.zeros(N_ROIS)
    people = [f"sub-{person + 1:04d}" for person in range(n_people)]
    return Cohort(
        connectomes=connectomes,
        features=values[:, :, None],
        table=pd.DataFrame(
            {
                "scan": people,
                "participant": people,
                "session": "",
                "label": [STAGES[stage] for stage in stages],
            }
        ),
        atlas=atlas,
        feature_names=("value",),
        classes=STAGES,
        notes=("simulated: nobody's data",),
        provenance={
            "simulated": "make_decisive_cohort",
            "case": case,
            "noise": noise,
            "n_people": n_people,
            "random_state": random_state,
        },
        truth=pd.DataFrame({"region": atlas.names, "seed": seeded, "effect": effect}),
    )


def _ellipsoid_atlas(random_state: int) -> Atlas:
    """Return 80 random points on a half-ellipsoid, and their mirror images."""
    half = N_ROIS // 2
    directions = random_stream(random_state, "decisive atlas").normal(size=(half, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    left = directions * SEMI_AXES
    left[:, 0] = -np.abs(left[:, 0])
    positions = np.concatenate([left, left * [-1, 1, 1]])
    number = [f"{i + 1:03d}" for i in range(half)]
    regions = pd.DataFrame(
        {
            "name": [f"ctx_{side}_{n}" for side in ("lh", "rh") for n in number],
            "freesurfer_id": np.arange(N_ROIS) + 1,
            "hemisphere": ["L"] * half + ["R"] * half,
            "structure": "cortex",
            "annot_name": number * 2,
            "long_name": [f"region {n}" for n in number * 2],
            "lobe": "none",
            "short_name": [f"({side}) {n}" for side in "LR" for n in number],
            "x": positions[:, 0],
            "y": positions[:, 1],
            "z": positions[:, 2],
        }
    )
    return Atlas(name="ellipsoid160", regions=regions, folder=None)


def _draw_networks(
    case: str, atlas: Atlas, seeded: np.ndarray, n_people: int, random_state: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return observed networks (n_people, n_rois, n_rois) and pi (n_people, n_rois)."""
    half = N_ROIS // 2
    base = base_network(
        atlas.regions[["x", "y", "z"]].to_numpy(),
        (np.arange(N_ROIS) + half) % N_ROIS,
        random_stream(random_state, "decisive base"),
    )
    connectomes = np.empty((n_people, N_ROIS, N_ROIS))
    pattern = np.tile(seeded.astype(float), (n_people, 1))
    operator = OPERATORS.get("normalized" if case == "permuted" else case)
    for person in range(n_people):
        rng = random_stream(random_state, "decisive network", person)
        true_network = vary_network(base, rng, variability=0.6)
        if operator is not None:
            pattern[person] = spread_from_seeds(
                operator(true_network), seeded, SPREADING_TIME
            )
        counts = count_streamlines(true_network, rng)
        connectomes[person] = np.where(counts < SMALLEST_COUNT, 0.0, counts)
    return connectomes, pattern / pattern.max()


def _draw_values(
    stages: np.ndarray, pattern: np.ndarray, noise: float, random_state: int
) -> np.ndarray:
    """Return y (n_people, n_rois) of the module's page."""
    rng = random_stream(random_state, "decisive values")
    means = rng.normal(2.5, 0.25, N_ROIS)
    offset = rng.normal(0.0, 0.1, (len(stages), 1))
    error = noise * rng.standard_normal(pattern.shape)
    severity = stages[:, None] / (len(STAGES) - 1)
    return means + offset - DEEPEST_LOSS * severity * pattern + error
