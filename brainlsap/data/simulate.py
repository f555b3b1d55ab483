r"""Simulated cohorts with a planted answer.

Nobody's data: people in five stages, their connectomes, and regional values that a
disease lowers as it spreads from known seeds along each person's own network. What
a method should find is in :attr:`Cohort.truth <brainlsap.data.Cohort>`.

The parts, each with its formulas and sources on its own page:

1. people and visits, :mod:`brainlsap.data.simulated_people`;
2. a base network over the atlas' centroids, each person's true network, and the
   streamlines that each scan counts, :mod:`brainlsap.data.simulated_networks`;
3. spread by network diffusion (Raj, Kuceyeski, Weiner 2012, Neuron 73:1204) on the
   *true* network, weighted, not thresholded, before counting:
   :math:`x^{(p)} = e^{-t H^{(p)}} x_0` with :math:`H = (D - W)/\bar d`;
4. regional values that lose :math:`\eta\, z\, x_r / \bar x_{\mathrm{seeds}}`,
   :mod:`brainlsap.data.simulated_features`.

Severity is :math:`z = \frac{\mathrm{stage}}{4}\, \xi_p\, (1 + 0.05\,
\mathrm{years})`, years since the first visit and :math:`\xi_p` log-normal with mean
1 and a deviation of 0.2: stages overlap, and the healthy have no disease. Raj's own
model lets atrophy pile up while disease spreads; here the pattern is fixed and only
its depth grows, so that the expected effect of a region is one number.

By default disease spreads for a time of 0.5: regions of mean degree pass on two
fifths of what they hold. On `destrieux160` the seeds then lose most, the regions best
linked to them a fifth of that, and half of the brain less than a fortieth. Real
hypometabolism in dementia reaches further, into the posterior cingulate and parietal
cortex; this is the early, medial temporal picture. Nothing here was set by looking at
what a model finds.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from brainlsap._arrays import check_at_least, check_choice
from brainlsap.data.atlas import Atlas, load_atlas
from brainlsap.data.classes import STAGES, order_classes
from brainlsap.data.cohort import Cohort
from brainlsap.data.simulated_features import FEATURES, draw_feature, healthy_means
from brainlsap.data.simulated_networks import (
    base_network,
    count_streamlines,
    diffusion_operator,
    spread_from_seeds,
    vary_network,
)
from brainlsap.data.simulated_people import (
    MONTHS_BETWEEN,
    VISIT_SHARES,
    make_people,
    random_stream,
)
from brainlsap.data.simulated_regions import (
    choose_seeds,
    find_twins,
    hemisphere_factor,
    hub_strength,
    region_positions,
    structure_names,
)
from brainlsap.exceptions import ParameterError

STREAMLINES = 400_000
ACROSS_HEMISPHERES = 0.15
PERSON_VARIABILITY = 0.5
RESCAN_VARIABILITY = 0.15
SEVERITY_SPREAD = 0.2
PROGRESS_PER_YEAR = 0.05


# sums in one order, so that the last digit does not follow the number of threads
@threadpool_limits.wrap(limits=1)
def make_cohort(
    n_people: int = 120,
    *,
    atlas: str | Atlas = "destrieux160",
    feature: str | Sequence[str] = "fdg",
    shares: Mapping[str, float] | None = None,
    visits: Sequence[float] = VISIT_SHARES,
    n_sites: int = 4,
    conversion: float = 0.0,
    seeds: Sequence[str] | int | None = None,
    effect: float = 0.27,
    spread: float = 0.5,
    noise: float = 1.0,
    random_state: int = 0,
) -> Cohort:
    r"""Simulate a cohort of people from health to Alzheimer's disease.

    The model is on the page of :mod:`brainlsap.data.simulate`. The same arguments
    give the same cohort; asking for one feature more changes nothing in the others.

    Parameters
    ----------
    n_people : int
        120 people make 222 scans.
    atlas : str or Atlas
        With centroids; for the default seeds with a medial temporal lobe.
    feature : str or sequence of str
        Among `"fdg"` (SUVR), `"thickness"` (mm; the subcortex has none and is NaN)
        and `"volume"` (mm3).
    shares : mapping of str to float, optional
        Share of CN, SMC, EMCI, LMCI and AD; by default the FDG row of the paper's
        demographics, 345 / 186 / 461 / 231 / 162.
    visits : sequence of float
        Share of the people who come once, twice and three times, a year apart.
    n_sites : int
        Sites differ by a small factor and are drawn without regard to the stage.
    conversion : float
        Probability of being one stage further at the next visit; 0 keeps everybody's
        diagnosis.
    seeds : sequence of str, int or None
        Regions in which disease starts: names, or a number of regions to draw. By
        default parahippocampal gyrus (Destrieux) or entorhinal cortex (Desikan),
        hippocampus and amygdala, on both sides.
    effect : float
        :math:`\eta`, part of its value that an average seed loses in AD; 0 to 0.5.
    spread : float
        :math:`t`, time of diffusion; 0 keeps the disease at the seeds.
    noise : float
        Factor on the variation between people and between scans.
    random_state : int
        Seed.

    Returns
    -------
    Cohort
        Connectomes are streamline counts, not thresholded. `truth` has one row per
        region: region, seed, and effect, the expected change from CN to AD at the
        first visit in the unit of the (first) feature, NaN where not measured; with
        several features also `effect_<feature>` for each.

    Raises
    ------
    ParameterError
        Where an argument cannot be used.
    RegionNameError
        Where a seed is not in the atlas.

    Examples
    --------
    >>> cohort = make_cohort(10, random_state=3)
    >>> cohort.n_scans, cohort.n_rois, cohort.feature_names, cohort.classes
    (18, 160, ('fdg',), ('CN', 'SMC', 'EMCI', 'LMCI', 'AD'))
    >>> int(cohort.truth.sort_values("effect").head(6)["seed"].sum())
    6
    """
    names = _check_arguments(feature, effect, spread, noise)
    atlas = load_atlas(atlas)
    people = make_people(
        n_people,
        shares=shares,
        visits=visits,
        n_sites=n_sites,
        conversion=conversion,
        random_state=random_state,
    )
    seeded = choose_seeds(atlas, seeds, random_state)
    connectomes, pattern = _draw_networks(atlas, people, seeded, spread, random_state)
    pattern = pattern / pattern[:, seeded].mean()
    severity = _draw_severity(people, random_state)
    loss = np.minimum(effect * severity[:, None] * pattern[people["person"]], 0.95)
    means = {name: _means(atlas, name, random_state) for name in names}
    features = [
        draw_feature(name, mean, people, loss, noise=noise, random_state=random_state)
        for name, mean in means.items()
    ]
    table = _scan_table(people)
    return Cohort(
        connectomes=connectomes,
        features=np.stack(features, axis=2),
        table=table,
        atlas=atlas,
        feature_names=names,
        classes=order_classes(table["label"].tolist()),
        notes=("simulated: nobody's data",),
        provenance={
            "simulated": "make_cohort",
            "n_people": n_people,
            "effect": effect,
            "spread": spread,
            "noise": noise,
            "conversion": conversion,
            "random_state": random_state,
        },
        truth=_truth_table(atlas, seeded, means, effect * pattern.mean(axis=0)),
    )


def _check_arguments(
    feature: str | Sequence[str], effect: float, spread: float, noise: float
) -> tuple[str, ...]:
    """Return the features' names; raise where an argument is out of range."""
    names = (feature,) if isinstance(feature, str) else tuple(feature)
    if not names or len(set(names)) < len(names):
        raise ParameterError(
            f"feature must name at least one feature, each once; got {list(names)}."
        )
    for name in names:
        check_choice("feature", name, FEATURES)
    if not 0 <= effect <= 0.5:
        raise ParameterError(
            f"effect must be between 0 and 0.5, the part that a seed loses in AD; "
            f"got {effect!r}."
        )
    check_at_least("spread", spread, 0)
    check_at_least("noise", noise, 0)
    return names


def _truth_table(
    atlas: Atlas, seeded: np.ndarray, means: dict[str, np.ndarray], loss: np.ndarray
) -> pd.DataFrame:
    """Return the answer; the first feature's effect stands under `effect` as well."""
    # 0 - x, since -x of no loss would be -0.
    effects = {f"effect_{name}": 0.0 - mean * loss for name, mean in means.items()}
    first = next(iter(effects.values()))
    several = effects if len(effects) > 1 else {}
    return pd.DataFrame(
        {"region": atlas.names, "seed": seeded, "effect": first, **several}
    )


def _means(atlas: Atlas, feature: str, random_state: int) -> np.ndarray:
    is_cortex = (atlas.regions["structure"] == "cortex").to_numpy()
    seed = (random_state, feature)
    return healthy_means(FEATURES[feature], structure_names(atlas), is_cortex, seed)


def _draw_networks(
    atlas: Atlas,
    people: pd.DataFrame,
    seeded: np.ndarray,
    spread: float,
    random_state: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return counts (n_scans, n_rois, n_rois) and what spread (n_people, n_rois)."""
    base = base_network(
        region_positions(atlas),
        find_twins(atlas),
        random_stream(random_state, "base network"),
        hubs=hub_strength(atlas),
        across=hemisphere_factor(atlas, ACROSS_HEMISPHERES),
    )
    base *= STREAMLINES / (base.sum() / 2)
    connectomes = np.empty((len(people), *base.shape))
    pattern = np.empty((people["person"].nunique(), len(base)))
    who, when = people["person"].to_numpy(int), people["visit"].tolist()
    for person in range(len(pattern)):
        rng = random_stream(random_state, "network", person)
        true_network = vary_network(base, rng, variability=PERSON_VARIABILITY)
        operator = diffusion_operator(true_network)
        pattern[person] = spread_from_seeds(operator, seeded, spread)
        for row in np.flatnonzero(who == person).tolist():
            rng = random_stream(random_state, "count", person, when[row])
            connectomes[row] = count_streamlines(
                true_network, rng, rescan=RESCAN_VARIABILITY
            )
    return connectomes, pattern


def _draw_severity(people: pd.DataFrame, random_state: int) -> np.ndarray:
    """Return the severity at every scan: 0 in CN, 1 on average at a first AD visit."""
    n_people = people["person"].nunique()
    depth = np.array(
        [
            random_stream(random_state, "severity", person).lognormal(
                -(SEVERITY_SPREAD**2) / 2, SEVERITY_SPREAD
            )
            for person in range(n_people)
        ]
    )
    years = people["visit"].to_numpy() * MONTHS_BETWEEN / 12
    stage = people["stage"].to_numpy() / (len(STAGES) - 1)
    return stage * depth[people["person"]] * (1 + PROGRESS_PER_YEAR * years)


def _scan_table(people: pd.DataFrame) -> pd.DataFrame:
    """Return the cohort's table: names of scans, and what is known of them."""
    participant = [f"sub-{person + 1:04d}" for person in people["person"]]
    session = [f"ses-M{visit * MONTHS_BETWEEN:02d}" for visit in people["visit"]]
    return pd.DataFrame(
        {
            "scan": [f"{p}_{s}" for p, s in zip(participant, session, strict=True)],
            "participant": participant,
            "session": session,
            "label": [STAGES[stage] for stage in people["stage"]],
            "age": people["age"],
            "sex": people["sex"],
            "site": [f"site-{site + 1}" for site in people["site"]],
        }
    )
