r"""Simulated cohorts in which it is known where the disease was planted.

:func:`make_cohort` draws people in five stages, their connectomes, and regional values
that a disease lowers; :func:`write_study_folder` writes them as the folder that a study
has on disk.

**The model.** Disease spreads from known seeds along each person's own network. What a
method should find is in `Cohort.truth`.

1. People and visits. Shares, sex and age are those of the FDG rows of the demographics
   in Sim et al. 2024 (AAAI, "Learning to Approximate Adaptive Kernel Convolution on
   Graphs"). One is changed: the paper prints an age of 73.0 +- 1.3 for CN, so narrow
   that age alone would show who is healthy; 6.0 is used. Sites are drawn without
   regard to the stage, so that they are no confound.
2. A base network B over the atlas' centroids, each person's true network W, and the
   streamlines C that each scan counts. With :math:`d_{ij}` the distance of two regions
   in mm and :math:`\epsilon_{ij}` symmetric standard normal draws,

   .. math::
      B_{ij} &= A\, h_i h_j\, q_{ij}\, e^{-d_{ij}/\ell}\, e^{\sigma_B \epsilon_{ij}}
                + t\,[i, j \text{ homotopic}] \\
      W^{(p)}_{ij} &= B_{ij}\, e^{\sigma_P \epsilon^{(p)}_{ij}} \\
      C^{(p,v)}_{ij} &\sim \mathrm{Poisson}\left(W^{(p)}_{ij}\,
                e^{\sigma_V \epsilon^{(p,v)}_{ij}}\right)

   :math:`h` is the hub strength, :math:`q_{ij} < 1` joins the hemispheres more thinly
   than one (only homotopic regions have a callosal bundle), the diagonal is zero.
   Weights fall with distance (Roberts et al. 2016, NeuroImage 124:379);
   :math:`\sigma_P, \sigma_V` are those of 98 scans of 49 people, twice each (CoRR
   BNU_1, 84 regions, probabilistic tractography): the logarithm of an edge varies by
   0.4 to 0.7 between people and, above 200 streamlines, by 0.1 to 0.2 between two scans
   of a person.
3. Spread by network diffusion (Raj, Kuceyeski, Weiner 2012, Neuron 73:1204) on the
   *true* network, weighted, not thresholded, before counting:
   :math:`x^{(p)} = e^{-t H^{(p)}} x_0` with :math:`H = (D - W)/\bar d`.
4. Values of region r of person p at visit v, :math:`\epsilon` standard normal,

   .. math::
      y^{(p,v)}_r = \mu_r
         \left(1 + \alpha\,(\mathrm{age} - 73) + \beta_{\mathrm{site}}
                 + \sigma_g \epsilon^{(p)} + \sigma_r \epsilon^{(p)}_r
                 + \sigma_e \epsilon^{(p,v)}_r \right)
         \left(1 - \eta\, z^{(p,v)}\, \pi^{(p)}_r\right)

   :math:`\mu_r` is the same for both hemispheres; :math:`\eta` is the loss at an
   average seed in AD, :math:`\pi^{(p)} = x^{(p)}` over its mean at the seeds, and
   :math:`z = \frac{\mathrm{stage}}{4}\, \xi_p\, (1 + 0.05\,\mathrm{years})` the
   severity, years since the first visit and :math:`\xi_p` log-normal with mean 1 and
   a deviation of 0.2: stages overlap, and the healthy have no disease. Raj's own model
   lets atrophy pile up while disease spreads; here the pattern is fixed and only its
   depth grows, so that the expected effect of a region is one number.

Where the numbers come from. Spread of healthy values: in the 108 people over 50 of the
FCON1000 thickness table the coefficient of variation is 8 % (median of the 148
regions; 5 to 15 %), 4 % of it shared by all regions, and that of subcortical volumes 10
to 16 %; their mean volumes are used. Loss at the seeds: volumes in AD against controls
are 27 % lower in the hippocampus and 39 % in the entorhinal cortex (Du et al. 2001, J
Neurol Neurosurg Psychiatry 71:441); glucose metabolism is severely reduced in the
limbic network (Nestor et al. 2003, Ann Neurol 54:343). One value of 27 % serves all
features. Changes with age and between sites, and the uptake of single nuclei, are of a
plausible size only and claim no more.

Disease spreads for a time of 0.5: regions of mean degree pass on two fifths
of what they hold. On `destrieux160` the seeds then lose most, the regions best linked
to them a fifth of that, and half of the brain less than a fortieth. Real
hypometabolism in dementia reaches further, into the posterior cingulate and parietal
cortex; this is the early, medial temporal picture. Nothing here was set by looking at
what a model finds.

**The study folder.** The tree is BIDS-like, and :func:`~brainlsap.data.load_cohort`
reads it::

    dataset_description.json  README  participants.tsv  truth.tsv
    sub-0001/
        sub-0001_sessions.tsv
        ses-M00/dwi/sub-0001_ses-M00_atlas-destrieux_connectivity.csv
        ses-M00/pet/sub-0001_ses-M00_trc-18FFDG_desc-suvr_regions.tsv
    derivatives/freesurfer/sub-0001_ses-M00/stats/
        lh.aparc.a2009s.stats  rh.aparc.a2009s.stats  aseg.stats

Connectomes are in the form of MRtrix's `tck2connectome` (upper triangle, no names, 164
or 84 nodes; the first line names `labelconvert`'s table), thickness and volumes in
FreeSurfer's form, and uptake is a table of regions. Only the cohort's features are
written; for thickness without volumes, everybody has the same subcortical sizes.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.atlas.region_names import split_side_from_name
from brainlsap.data import Cohort, write_tsv
from brainlsap.data.covariates import KEY_COLUMNS
from brainlsap.data.row_order import list_row_orders
from brainlsap.data.tables import write_dataset_description
from brainlsap.exceptions import ParameterError, check_choice
from brainlsap.files import fill_folder
from brainlsap.text import option_text

__all__ = ["make_cohort", "write_study_folder"]

# Makes the generator of a purpose and person.
GeneratorMaker = Callable[..., np.random.Generator]
# From the paper: number of people, number of men, mean and deviation of age.
DEMOGRAPHICS = {
    "CN": (345, 173, 73.0, 6.0),
    "SMC": (186, 66, 71.7, 5.2),
    "EMCI": (461, 262, 71.7, 7.8),
    "LMCI": (231, 152, 71.1, 7.0),
    "AD": (162, 102, 74.9, 8.8),
}
STAGES = tuple(DEMOGRAPHICS)
# Share of people with one, two and three visits, and months between visits.
VISIT_SHARES = (0.40, 0.35, 0.25)
MONTHS_BETWEEN = 12
# Age in years at which healthy means apply.
MIDDLE_AGE = 73.0

# Number of streamlines of the base network.
N_STREAMLINES = 400_000
# Weight of the base network at distance 0, and its length constant in mm.
WEIGHT_AT_ZERO = 400.0
LENGTH_CONSTANT = 18.0
# Weight added between homotopic regions.
HOMOTOPIC_WEIGHT = 60.0
# Factor of weights between hemispheres.
ACROSS_HEMISPHERES = 0.15
# Deviations of the logarithm of edge weights between people and between scans.
PERSON_VARIABILITY = 0.5
RESCAN_VARIABILITY = 0.15
# Deviation of the logarithm of severity between people.
SEVERITY_SPREAD = 0.2
# Time t for which disease spreads.
SPREADING_TIME = 0.5
# Relative increase of severity per year.
PROGRESS_PER_YEAR = 0.05
# Deviation between sites as a part of the mean.
SITE_SPREAD = 0.010

# The medial temporal lobe, where tau pathology starts (Braak and Braak 1991).
SEEDS = ("goctempmedparahip", "entorhinal", "hippocampus", "amygdala")
# The bihemispheric hubs of van den Heuvel and Sporns 2011 (J Neurosci 31:15775).
HUBS = (
    *("gprecuneus", "gfrontsup", "gparietalsup"),
    *("precuneus", "superiorfrontal", "superiorparietal"),
    *("hippocampus", "putamen", "thalamus"),
)
HUB_STRENGTH = 1.5

# Healthy means of subcortical structures at 73 years: FDG-PET SUVR, volumes in mm3.
UPTAKE_BY_STRUCTURE = {
    "thalamus": 1.30,
    "caudate": 1.25,
    "putamen": 1.40,
    "pallidum": 1.10,
    "hippocampus": 1.00,
    "amygdala": 0.95,
    "accumbens": 1.20,
}
VOLUME_BY_STRUCTURE = {
    "thalamus": 6800.0,
    "caudate": 3350.0,
    "putamen": 4500.0,
    "pallidum": 1750.0,
    "hippocampus": 3850.0,
    "amygdala": 1530.0,
    "accumbens": 500.0,
}

README = """Simulated data, not of real people. brainlsap drew all values at random.

truth.tsv gives the regions in which disease was planted (seed), and the expected change
of each region from CN to AD (effect).
"""


class HealthyFeatureDistribution(NamedTuple):
    """Distribution of a feature in health; deviations are parts of the mean."""

    cortex_mean: float
    cortex_spread: float  # over regions, in the unit of the feature
    subcortex_mean_by_structure: dict[
        str, float
    ]  # empty if not measured in the subcortex
    person_spread: float
    region_spread: float  # of the regions of one person
    scan_spread: float
    change_per_year: float


HEALTHY_FEATURES = {
    "fdg": HealthyFeatureDistribution(
        1.25, 0.10, UPTAKE_BY_STRUCTURE, 0.040, 0.050, 0.025, -0.003
    ),
    "thickness": HealthyFeatureDistribution(2.5, 0.28, {}, 0.035, 0.060, 0.025, -0.003),
    "volume": HealthyFeatureDistribution(
        3000, 800, VOLUME_BY_STRUCTURE, 0.080, 0.080, 0.020, -0.005
    ),
}


# One thread: the order of sums, and so the last digit, depends on their number.
@threadpool_limits.wrap(limits=1)
def make_cohort(
    n_people: int = 120,
    *,
    atlas: str | Atlas = "destrieux160",
    feature: str | Sequence[str] = "fdg",
    shares: Mapping[str, float] | None = None,
    visit_shares: Sequence[float] = VISIT_SHARES,
    n_sites: int = 4,
    seeds: Sequence[str] | None = None,
    effect: float = 0.27,
    random_state: int = 0,
) -> Cohort:
    r"""Simulate a cohort of people from health to Alzheimer's disease.

    The model is described in :mod:`brainlsap.simulation`. The same arguments
    give the same cohort; a further feature does not change the others.

    Parameters
    ----------
    n_people : int
        Number of people; 120 people have 222 scans.
    atlas : str or Atlas
        Atlas with centroids; for the default seeds with a medial temporal lobe.
    feature : str or sequence of str
        Among `"fdg"` (SUVR), `"thickness"` (mm; the subcortex has none and is NaN)
        and `"volume"` (mm3).
    shares : mapping of str to float, optional
        Share of CN, SMC, EMCI, LMCI and AD; by default those of the paper, 345 / 186
        / 461 / 231 / 162.
    visit_shares : sequence of float
        Share of people with one, two, three ... visits, a year apart.
    n_sites : int
        Number of sites, which differ by a small factor.
    seeds : sequence of str, optional
        Regions in which disease starts, by name. By default parahippocampal gyrus
        (Destrieux) or entorhinal cortex (Desikan), hippocampus and amygdala, on both
        sides.
    effect : float
        :math:`\eta`, relative loss of an average seed in AD; 0 to 0.5.
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
        If an argument is invalid.
    RegionNameError
        If a seed is not in the atlas.

    Examples
    --------
    >>> cohort = make_cohort(10, random_state=3)
    >>> cohort.n_scans, cohort.n_rois, cohort.feature_names, cohort.classes
    (18, 160, ('fdg',), ('CN', 'SMC', 'EMCI', 'LMCI', 'AD'))
    >>> int(cohort.truth.sort_values("effect").head(6)["seed"].sum())
    6
    """
    feature_names = (feature,) if isinstance(feature, str) else tuple(feature)
    for feature_name in feature_names:
        check_choice("feature", feature_name, HEALTHY_FEATURES)
    if not 0 <= effect <= 0.5:
        raise ParameterError(
            f"effect must be between 0 and 0.5; got {effect!r}. In AD, an average seed "
            "region loses this share of its value."
        )
    atlas = load_atlas(atlas)
    make_rng = partial(make_random_generator, random_state)
    if shares is None:
        shares = {
            stage: demographic_values[0]
            for stage, demographic_values in DEMOGRAPHICS.items()
        }
    for stage in shares:
        check_choice("shares", stage, STAGES)
    stage_people_counts = split_people_by_shares(
        n_people, [shares.get(stage, 0.0) for stage in STAGES]
    )
    scan_table = _draw_scan_table(
        stage_people_counts,
        split_people_by_shares(n_people, visit_shares),
        n_sites,
        make_rng,
    )
    core_names = [split_side_from_name(region_name)[1] for region_name in atlas.names]
    seed_region_mask = _make_seed_region_mask(atlas, seeds)
    base_weight_matrix = _draw_atlas_weight_matrix(
        atlas, np.isin(core_names, HUBS), make_rng("base network")
    )
    connectomes = np.empty(
        (len(scan_table), *base_weight_matrix.shape), dtype=np.float32
    )
    disease_pattern_matrix = np.empty((n_people, len(base_weight_matrix)))
    person_severity_factors = np.empty(n_people)
    for person_number, scan_indices in scan_table.groupby("person").indices.items():
        # Multiply every edge by a log-normal factor of the person.
        edge_noise_matrix = draw_symmetric_normal_matrix(
            len(base_weight_matrix), make_rng("network", person_number)
        )
        weight_matrix = base_weight_matrix * np.exp(
            PERSON_VARIABILITY * edge_noise_matrix
        )
        disease_pattern_matrix[person_number] = compute_disease_pattern(
            make_diffusion_operator(weight_matrix), seed_region_mask, SPREADING_TIME
        )
        # Log-normal with mean 1.
        log_mean = -(SEVERITY_SPREAD**2) / 2
        person_severity_factors[person_number] = make_rng(
            "severity", person_number
        ).lognormal(log_mean, SEVERITY_SPREAD)
        for visit_number, scan_index in enumerate(scan_indices):
            rng = make_rng("count", person_number, visit_number)
            connectomes[scan_index] = draw_streamline_count_matrix(
                weight_matrix, rng, RESCAN_VARIABILITY
            )
    disease_pattern_matrix = (
        disease_pattern_matrix / disease_pattern_matrix[:, seed_region_mask].mean()
    )
    scan_person_numbers = scan_table["person"]
    scan_years_since_baseline = scan_table["visit"].to_numpy() * MONTHS_BETWEEN / 12
    scan_severities = (
        scan_table["stage"].to_numpy()
        / (len(STAGES) - 1)
        * person_severity_factors[scan_person_numbers]
    )
    scan_severities = scan_severities * (
        1 + PROGRESS_PER_YEAR * scan_years_since_baseline
    )
    relative_loss_matrix = np.minimum(
        effect * scan_severities[:, None] * disease_pattern_matrix[scan_person_numbers],
        0.95,
    )
    feature_matrices = []
    effects_by_column = {}
    for feature_name in feature_names:
        healthy_feature_matrix, healthy_region_means = _draw_healthy_values_and_means(
            feature_name, atlas, scan_table, make_rng
        )
        feature_matrices.append(healthy_feature_matrix * (1 - relative_loss_matrix))
        # 0 - x instead of -x, which is -0 without a loss.
        effects_by_column[f"effect_{feature_name}"] = 0.0 - healthy_region_means * (
            effect * disease_pattern_matrix.mean(axis=0)
        )
    first_feature_effects = effects_by_column[f"effect_{feature_names[0]}"]
    values_by_column = {
        "region": atlas.names,
        "seed": seed_region_mask,
        "effect": first_feature_effects,
    }
    if len(feature_names) > 1:
        values_by_column |= effects_by_column
    value_by_simulation_setting = {
        "n_people": n_people,
        "effect": effect,
        "random_state": random_state,
    }
    return Cohort(
        connectomes=connectomes,
        features=np.stack(feature_matrices, axis=2),
        table=scan_table[[*KEY_COLUMNS, "age", "sex", "site"]],
        atlas=atlas,
        feature_names=feature_names,
        classes=tuple(stage for stage in STAGES if stage in set(scan_table["label"])),
        findings=("All participants are simulated, and nobody was left out.",),
        provenance={"simulated": "make_cohort", **value_by_simulation_setting},
        truth=pd.DataFrame(values_by_column),
    )


def split_people_by_shares(n_people: int, group_shares: Sequence[float]) -> np.ndarray:
    """Divide people by shares: largest remainders, no positive share left empty."""
    share_array = np.asarray(group_shares, dtype=float)
    positive_share_mask = share_array > 0
    if (share_array < 0).any() or not 0 < positive_share_mask.sum() <= n_people:
        raise ParameterError(
            "all shares must be 0 or more, and at least one must be above 0. n_people "
            f"must be at least the number of shares above 0; got n_people {n_people} "
            f"and the shares {share_array.tolist()}."
        )
    exact_group_sizes = n_people * share_array / share_array.sum()
    group_sizes = np.floor(exact_group_sizes).astype(int)
    remainder_sort_indices = np.argsort(group_sizes - exact_group_sizes, kind="stable")
    group_sizes[remainder_sort_indices[: n_people - group_sizes.sum()]] += 1
    while (
        empty_group_indices := np.flatnonzero(positive_share_mask & (group_sizes == 0))
    ).size:
        group_sizes[group_sizes.argmax()] -= 1
        group_sizes[empty_group_indices[0]] += 1
    return group_sizes


def _make_seed_region_mask(
    atlas: Atlas, seed_region_names: Sequence[str] | None
) -> np.ndarray:
    """Return whether regions are seeds of disease, by name or by default."""
    if seed_region_names is not None:
        seed_region_mask = np.isin(
            np.arange(len(atlas)), atlas.match(seed_region_names)
        )
    else:
        seed_region_mask = np.isin(
            [split_side_from_name(region_name)[1] for region_name in atlas.names], SEEDS
        )
    if not seed_region_mask.any():
        raise ParameterError(
            f"the atlas {atlas.name!r} contains none of the regions in which the "
            "simulated disease starts by default. Name regions of this atlas with "
            f"{option_text('seeds')}."
        )
    return seed_region_mask


def _draw_scan_table(
    stage_people_counts: np.ndarray,
    visit_people_counts: np.ndarray,
    n_sites: int,
    make_rng: GeneratorMaker,
) -> pd.DataFrame:
    """Draw visits, stage, age, sex and site of every scan.

    `stage_people_counts` are people in each stage, `visit_people_counts` those
    with one visit, two ..
    """
    person_stage_codes = make_rng("stages").permutation(
        np.repeat(np.arange(len(stage_people_counts)), stage_people_counts)
    )
    person_visit_counts = make_rng("visits").permutation(
        np.repeat(np.arange(len(visit_people_counts)) + 1, visit_people_counts)
    )
    scan_row_tuples = []
    for person_number, (stage_code, n_person_visits) in enumerate(
        zip(person_stage_codes, person_visit_counts, strict=True)
    ):
        rng = make_rng("person", person_number)
        participant_name = f"sub-{person_number + 1:04d}"
        n_stage_people, n_stage_men, mean_age, age_sd = DEMOGRAPHICS[STAGES[stage_code]]
        age_at_baseline = float(np.clip(rng.normal(mean_age, age_sd), 55, 92))
        sex = "M" if rng.random() < n_stage_men / n_stage_people else "F"
        site_number = int(rng.integers(n_sites))
        for visit_number in range(n_person_visits):
            months_since_baseline = visit_number * MONTHS_BETWEEN
            session_name = f"ses-M{months_since_baseline:02d}"
            age_at_visit = round(age_at_baseline + months_since_baseline / 12, 1)
            key_column_values = (
                f"{participant_name}_{session_name}",
                participant_name,
                session_name,
                STAGES[stage_code],
            )
            covariate_values = (age_at_visit, sex, f"site-{site_number + 1}")
            scan_row_tuples.append(
                (
                    *key_column_values,
                    *covariate_values,
                    person_number,
                    visit_number,
                    stage_code,
                    site_number,
                )
            )
    non_key_column_names = (
        "age",
        "sex",
        "site",
        "person",
        "visit",
        "stage",
        "site_number",
    )
    return pd.DataFrame(scan_row_tuples, columns=[*KEY_COLUMNS, *non_key_column_names])


def _draw_atlas_weight_matrix(
    atlas: Atlas, hub_region_mask: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw the base network of an atlas' regions, of N_STREAMLINES streamlines."""
    region_centroids = atlas.regions.reindex(columns=[*"xyz"]).to_numpy(dtype=float)
    if not np.isfinite(region_centroids).all():
        raise ParameterError(
            f"the atlas {atlas.name!r} has no coordinates for some regions, but "
            "simulated connectomes require distances. Add the columns x, y, z (mm) to "
            "the regions.tsv of this atlas."
        )
    region_strengths = np.where(hub_region_mask, HUB_STRENGTH, 1.0)
    # The midline (0) belongs to both sides.
    region_side_signs = (
        atlas.regions["hemisphere"].map({"L": -1, "R": 1}).fillna(0).to_numpy()
    )
    hemisphere_factor_matrix = np.where(
        np.outer(region_side_signs, region_side_signs) < 0, ACROSS_HEMISPHERES, 1.0
    )
    weight_factor_matrices = (
        np.outer(region_strengths, region_strengths),
        hemisphere_factor_matrix,
    )
    base_weight_matrix = draw_base_weight_matrix(
        region_centroids,
        atlas.homotopic,
        rng,
        weight_factor_matrices=weight_factor_matrices,
    )
    return base_weight_matrix * (N_STREAMLINES / (base_weight_matrix.sum() / 2))


def _draw_healthy_values_and_means(
    feature_name: str, atlas: Atlas, scan_table: pd.DataFrame, make_rng: GeneratorMaker
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the healthy part of y (n_scans, n_rois) in the module's formula, and mu.

    mu is equal for regions of one structure; NaN if the feature is not measured there.
    """
    feature_distribution = HEALTHY_FEATURES[feature_name]
    n_rois = len(atlas)
    core_names = [split_side_from_name(region_name)[1] for region_name in atlas.names]
    structure_names, structure_indices = np.unique(core_names, return_inverse=True)
    # Clip at two deviations: no cortical region has half or twice the mean thickness.
    structure_mean_draws = np.clip(
        make_rng(f"mean {feature_name}").standard_normal(len(structure_names)), -2, 2
    )
    structure_means = (
        feature_distribution.cortex_mean
        + feature_distribution.cortex_spread * structure_mean_draws
    )
    subcortex_mean_by_structure = feature_distribution.subcortex_mean_by_structure
    median_subcortex_mean = np.median(
        [*subcortex_mean_by_structure.values()] or [np.nan]
    )
    region_subcortex_means = [
        subcortex_mean_by_structure.get(core_name, median_subcortex_mean)
        for core_name in core_names
    ]
    region_means = np.where(
        atlas.cortex, structure_means[structure_indices], region_subcortex_means
    )
    site_numbers = scan_table["site_number"].to_numpy()
    site_draws = [
        make_rng(f"site {feature_name}", k).normal()
        for k in range(site_numbers.max() + 1)
    ]
    scan_age_effects = feature_distribution.change_per_year * (
        scan_table["age"].to_numpy() - MIDDLE_AGE
    )
    scan_fixed_effects = (
        scan_age_effects + SITE_SPREAD * np.array(site_draws)[site_numbers]
    )
    relative_value_matrix = np.empty((len(scan_table), n_rois))
    for person_number, scan_indices in scan_table.groupby("person").indices.items():
        rng = make_rng(f"person {feature_name}", person_number)
        shared_draw = rng.standard_normal()
        region_draws = rng.standard_normal(n_rois)
        person_region_effects = (
            feature_distribution.person_spread * shared_draw
            + feature_distribution.region_spread * region_draws
        )
        for visit_number, scan_index in enumerate(scan_indices):
            scan_region_noise = make_rng(
                f"scan {feature_name}", person_number, visit_number
            ).standard_normal(n_rois)
            random_region_effects = (
                person_region_effects
                + feature_distribution.scan_spread * scan_region_noise
            )
            relative_value_matrix[scan_index] = (
                1 + scan_fixed_effects[scan_index] + random_region_effects
            )
    # Extreme draws must not make a value negative.
    return np.maximum(
        region_means * relative_value_matrix, 0.5 * region_means
    ), region_means


def make_random_generator(
    random_state: int, purpose_name: str, *integer_keys: int
) -> np.random.Generator:
    """Return the generator of a purpose and person, independent of earlier draws."""
    # Entropy is padded with zeros; the number of keys tells no key from the key 0.
    return np.random.default_rng(
        [random_state, crc32(purpose_name.encode()), len(integer_keys), *integer_keys]
    )


def draw_symmetric_normal_matrix(n_rois: int, rng: np.random.Generator) -> np.ndarray:
    """Draw a symmetric matrix of standard normal values with a zero diagonal."""
    upper_triangle_matrix = np.triu(rng.standard_normal((n_rois, n_rois)), 1)
    return upper_triangle_matrix + upper_triangle_matrix.T


def draw_base_weight_matrix(
    region_centroids: np.ndarray,
    homotopic_indices: np.ndarray,
    rng: np.random.Generator,
    *,
    log_weight_sd: float = 0.8,
    weight_factor_matrices: Sequence[np.ndarray] = (),
) -> np.ndarray:
    """Draw the network B that a cohort shares; the factors are h_i h_j and q_ij.

    `homotopic_indices` is each region's counterpart in the other hemisphere, itself for
    none.
    """
    region_distance_matrix = np.sqrt(
        ((region_centroids[:, None] - region_centroids) ** 2).sum(axis=2)
    )
    weight_matrix = WEIGHT_AT_ZERO * np.exp(-region_distance_matrix / LENGTH_CONSTANT)
    weight_matrix = weight_matrix * np.exp(
        log_weight_sd * draw_symmetric_normal_matrix(len(region_centroids), rng)
    )
    for weight_factor_matrix in weight_factor_matrices:
        weight_matrix = weight_matrix * weight_factor_matrix
    weight_matrix[np.arange(len(region_centroids)), homotopic_indices] += (
        HOMOTOPIC_WEIGHT
    )
    np.fill_diagonal(weight_matrix, 0.0)
    return weight_matrix


def draw_streamline_count_matrix(
    weight_matrix: np.ndarray, rng: np.random.Generator, rescan_log_sd: float = 0.0
) -> np.ndarray:
    """Draw the streamline counts of one scan: symmetric whole numbers in float32."""
    row_indices, column_indices = np.triu_indices(len(weight_matrix), 1)
    expected_edge_counts = weight_matrix[row_indices, column_indices]
    if rescan_log_sd > 0:
        expected_edge_counts = expected_edge_counts * np.exp(
            rescan_log_sd * rng.standard_normal(expected_edge_counts.shape)
        )
    streamline_count_matrix = np.zeros(weight_matrix.shape, dtype=np.float32)
    streamline_count_matrix[row_indices, column_indices] = rng.poisson(
        expected_edge_counts
    )
    return streamline_count_matrix + streamline_count_matrix.T


# Written anew here: simulated data must share no code with the models under test.
def make_diffusion_operator(weight_matrix: np.ndarray) -> np.ndarray:
    r"""Return :math:`(D - W) / \bar d` of the network diffusion model.

    Raj, Kuceyeski, Weiner 2012 (Neuron 73:1204), over the mean degree: in a time of 1
    a region of mean degree passes on about 63 % of what it holds, whatever the number
    of streamlines.
    """
    node_degrees = weight_matrix.sum(axis=1)
    return (np.diag(node_degrees) - weight_matrix) / max(
        node_degrees.mean(), np.finfo(float).tiny
    )


def compute_disease_pattern(
    operator_matrix: np.ndarray, seed_region_mask: np.ndarray, spreading_time: float
) -> np.ndarray:
    r"""Return :math:`x(t) = e^{-t O} x_0`, :math:`x_0` being 1 at the seeds."""
    eigenvalues, eigenvectors = np.linalg.eigh(operator_matrix)
    eigenvector_coefficients = eigenvectors.T @ seed_region_mask.astype(float)
    disease_pattern = eigenvectors @ (
        np.exp(-spreading_time * eigenvalues) * eigenvector_coefficients
    )
    # Rounding can leave -1e-17 at regions that disease has not reached.
    return np.maximum(disease_pattern, 0.0)


def write_study_folder(
    cohort: Cohort, folder: str | Path, *, style: str = "", verbose: bool = False
) -> Path:
    """Write a simulated cohort as a study folder, completely or not at all.

    The tree is described in :mod:`brainlsap.simulation`.

    Parameters
    ----------
    cohort : Cohort
        A simulated cohort (one with a `truth`): the files state that nothing in them
        was measured.
    folder : str or Path
        New or empty folder.
    style : {"mrtrix", "named"}, optional
        File format of connectomes: MRtrix's numbers without names (destrieux160 and
        desikan82 only, and the default for them), or full matrices with region names
        on both axes.
    verbose : bool
        Whether to show a progress bar on standard error.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ParameterError
        If `folder` is not empty, or the cohort is not simulated or cannot be written
        in this style.
    """
    style_names = ["named"]
    if "mrtrix" in cohort.atlas.settings:
        style_names.insert(0, "mrtrix")
    style = style or style_names[0]
    check_choice(f"style for {cohort.atlas.name}", style, style_names)
    if cohort.truth is None:
        raise ParameterError(
            "cohort must be simulated (with cohort.truth), because the files that "
            "write_study_folder writes describe all data as simulated. Save other "
            "cohorts with Cohort.save(path)."
        )
    node_region_indices = (
        mrtrix_node_region_indices(cohort.atlas) if style == "mrtrix" else None
    )
    with fill_folder(folder) as partial_folder:
        provenance_record = {"Name": "brainlsap", **cohort.provenance}
        write_dataset_description(partial_folder, "Simulated cohort", provenance_record)
        _write_text(partial_folder / "README", README)
        write_tsv(cohort.truth, partial_folder / "truth.tsv")
        _write_participants(cohort, partial_folder)
        for scan_index in tqdm(
            range(cohort.n_scans), "writing", disable=not verbose or None
        ):
            _write_scan(cohort, scan_index, partial_folder, node_region_indices)
    return Path(folder)


def _write_participants(cohort: Cohort, study_folder: Path) -> None:
    """Write participants.tsv, and the sessions of every participant."""
    label_column_name = cohort.label_name
    header_by_column = {
        "participant": "participant_id",
        "session": "session_id",
        "label": label_column_name,
    }
    scan_table = cohort.table.drop(columns="scan").rename(columns=header_by_column)
    covariate_column_names = [
        column_name
        for column_name in scan_table
        if column_name not in header_by_column.values()
    ]
    participant_groupby = scan_table.groupby("participant_id", sort=False)
    first_visit_table = participant_groupby.head(1)[
        ["participant_id", label_column_name, *covariate_column_names]
    ]
    write_tsv(first_visit_table, study_folder / "participants.tsv")
    varying_column_names = [
        column_name
        for column_name in covariate_column_names
        if participant_groupby[column_name].nunique().gt(1).any()
    ]
    for participant_id, visit_table in participant_groupby:
        session_table = visit_table[
            ["session_id", label_column_name, *varying_column_names]
        ]
        sessions_path = (
            study_folder / str(participant_id) / f"{participant_id}_sessions.tsv"
        )
        write_tsv(session_table, sessions_path)


def _write_scan(
    cohort: Cohort,
    scan_index: int,
    study_folder: Path,
    node_region_indices: np.ndarray | None,
) -> None:
    """Write one scan's connectome and features."""
    atlas = cohort.atlas
    scan_key_series = cohort.table.loc[scan_index, ["scan", "participant", "session"]]
    scan_id, participant_id, session_id = scan_key_series
    scan_folder = study_folder / participant_id / session_id
    _write_text(
        scan_folder
        / "dwi"
        / f"{scan_id}_atlas-{_get_atlas_file_word(atlas)}_connectivity.csv",
        _make_connectome_text(
            cohort.connectomes[scan_index], atlas, node_region_indices
        ),
    )
    values_by_feature = dict(
        zip(cohort.feature_names, cohort.features[scan_index].T, strict=True)
    )
    annotation_name = atlas.settings.get("annotation")
    stats_feature_names = (
        {"thickness", "volume"} & {*values_by_feature} if annotation_name else set()
    )
    values_by_stats_feature = {
        feature_name: values_by_feature.pop(feature_name)
        for feature_name in stats_feature_names
    }
    if values_by_stats_feature:
        stats_folder = study_folder / "derivatives" / "freesurfer" / scan_id / "stats"
        for hemisphere in "LR":
            stats_path = stats_folder / f"{hemisphere.lower()}h.{annotation_name}.stats"
            _write_text(
                stats_path,
                aparc_text(atlas, hemisphere, scan_id, values_by_stats_feature),
            )
        region_volumes = values_by_stats_feature.get("volume")
        _write_text(
            stats_folder / "aseg.stats", aseg_text(atlas, scan_id, region_volumes)
        )
    for feature_name, regional_values in values_by_feature.items():
        stats_path = scan_folder / "anat" / f"{scan_id}_desc-{feature_name}_regions.tsv"
        column_name = feature_name
        if feature_name == "fdg":
            stats_path = (
                scan_folder / "pet" / f"{scan_id}_trc-18FFDG_desc-suvr_regions.tsv"
            )
            column_name = "suvr"
        number_text_series = pd.Series(regional_values).map(
            "{:.10g}".format, na_action="ignore"
        )
        write_tsv(
            pd.DataFrame({"region": atlas.names, column_name: number_text_series}),
            stats_path,
        )


def _get_atlas_file_word(atlas: Atlas) -> str:
    """Return the value of `atlas-` in file names."""
    return atlas.settings.get("file_words", [atlas.name])[0]


def _make_connectome_text(
    connectome: np.ndarray, atlas: Atlas, node_region_indices: np.ndarray | None
) -> str:
    """Return a connectome as CSV: MRtrix's matrix of nodes, or with region names."""
    if node_region_indices is None:
        connectome_table = pd.DataFrame(connectome, atlas.names, atlas.names)
        return _make_whole_number_table(connectome_table).to_csv(index_label="region")
    node_matrix = mrtrix_matrix(connectome.astype(float), node_region_indices)
    connectome_table = _make_whole_number_table(pd.DataFrame(node_matrix))
    # Numbers alone do not tell the order of rows.
    header_text = f"# nodes of {atlas.settings['mrtrix']} (labelconvert), simulated\n"
    return header_text + connectome_table.to_csv(header=False, index=False)


def _make_whole_number_table(number_table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose columns of counts are whole numbers, as MRtrix writes."""
    whole_number_column_mask = (number_table == number_table.round()).all()
    if whole_number_column_mask.all():
        return number_table.astype(np.int64)
    return number_table.astype(
        dict.fromkeys(number_table.columns[whole_number_column_mask], np.int64)
    )


def _write_text(file_path: Path, file_text: str) -> None:
    file_path.parent.mkdir(parents=True, exist_ok=True)
    file_path.write_text(file_text.rstrip("\n") + "\n", encoding="utf-8")


def mrtrix_node_region_indices(atlas: Atlas) -> np.ndarray:
    """Return the position in the atlas of every node of MRtrix's matrix.

    -1 for nodes that the atlas leaves out: cerebellum, and accumbens in destrieux160.
    """
    row_order = next(
        row_order
        for row_order in list_row_orders(atlas)
        if row_order.tool_name == "mrtrix"
    )
    region_indices_or_none = [
        atlas.find(region_name) for region_name in row_order.names
    ]
    return np.array(
        [
            -1 if region_index is None else region_index
            for region_index in region_indices_or_none
        ]
    )


def mrtrix_matrix(
    connectome: np.ndarray, node_region_indices: np.ndarray
) -> np.ndarray:
    """Return a connectome as `tck2connectome -zero_diagonal` writes it.

    It has the upper triangle only. Nodes that the atlas lacks have no connections.
    """
    # Index -1 is the added node, which has no connections.
    padded_connectome = np.pad(connectome, (0, 1))
    return np.triu(
        padded_connectome[np.ix_(node_region_indices, node_region_indices)], 1
    )


_ASEG_HEADER = """# generating_program brainlsap (simulated, nobody's data)
# subjectname {scan}
# ColHeaders Index SegId NVoxels Volume_mm3 StructName normMean normStdDev normMin \
normMax normRange
"""
_APARC_HEADER = """# generating_program brainlsap (simulated, nobody's data)
# subjectname {scan}
# hemi {side}
# Measure Cortex, NumVert, Number of Vertices, {n_vertices}, unitless
# ColHeaders StructName NumVert SurfArea GrayVol ThickAvg ThickStd MeanCurv GausCurv \
FoldInd CurvInd
"""


def aparc_text(
    atlas: Atlas,
    hemisphere: str,
    scan_id: str,
    values_by_feature: dict[str, np.ndarray],
) -> str:
    """Return the `?h.aparc*.stats` of one hemisphere in FreeSurfer's layout.

    Values have ten digits, unlike FreeSurfer's four, so that reading returns the
    simulated values. By default thickness is 2.5 mm, and volume is area times
    thickness.
    """
    hemisphere_region_mask = atlas.regions["hemisphere"].to_numpy() == hemisphere
    region_indices = np.flatnonzero(atlas.cortex & hemisphere_region_mask)
    mean_thicknesses = values_by_feature.get("thickness", np.full(len(atlas), 2.5))[
        region_indices
    ]
    # Areas in mm^2 are arbitrary, but differ between regions.
    surface_areas = 600 + 24 * (np.arange(len(region_indices)) * 7 % 40)
    vertex_counts = surface_areas * 3 // 2
    gray_volumes = (
        values_by_feature["volume"][region_indices]
        if "volume" in values_by_feature
        else surface_areas * mean_thicknesses
    )
    # FreeSurfer leaves out a region that a brain does not have.
    measured_region_mask = np.isfinite(mean_thicknesses) & np.isfinite(gray_volumes)
    annot_names = atlas.regions["annot_name"].to_numpy()[region_indices]
    header_text = _APARC_HEADER.format(
        scan=scan_id,
        side=f"{hemisphere.lower()}h",
        n_vertices=vertex_counts[measured_region_mask].sum(),
    )
    return header_text + "\n".join(
        f"{annot_names[i]:<36s} {vertex_counts[i]:6d} {surface_areas[i]:6d} "
        f"{gray_volumes[i]:16.9f} {mean_thicknesses[i]:13.10f}  0.550     0.130     "
        "0.028       18     2.0"
        for i in np.flatnonzero(measured_region_mask).tolist()
    )


def aseg_text(atlas: Atlas, scan_id: str, region_volumes: np.ndarray | None) -> str:
    """Return an `aseg.stats`; without volumes everybody has the same sizes."""
    if region_volumes is None:
        core_names = [
            split_side_from_name(region_name)[1] for region_name in atlas.names
        ]
        region_volumes = np.array(
            [VOLUME_BY_STRUCTURE.get(core_name, 1000.0) for core_name in core_names]
        )
    label_numbers = atlas.regions["freesurfer_id"].to_numpy()
    region_indices = np.flatnonzero(~atlas.cortex & np.isfinite(region_volumes))
    region_indices = region_indices[np.argsort(label_numbers[region_indices])]
    return _ASEG_HEADER.format(scan=scan_id) + "\n".join(
        f"{line_number:3d} {label_numbers[region_index]:3d} "
        f"{region_volumes[region_index]:9.0f} {region_volumes[region_index]:18.9f}  "
        f"{atlas.names[region_index]:<32s} 70.0000 10.0000 20.0000 110.0000 90.0000"
        for line_number, region_index in enumerate(region_indices, start=1)
    )
