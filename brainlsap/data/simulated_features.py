r"""Simulated regional values: FDG uptake, cortical thickness, volumes.

For region r of person p at visit v, with :math:`\epsilon` standard normal draws,

.. math::
   y^{(p,v)}_r = \mu_r
      \left(1 + \alpha\,(\mathrm{age} - 73) + \beta_{\mathrm{site}}
              + \sigma_g \epsilon^{(p)} + \sigma_r \epsilon^{(p)}_r
              + \sigma_e \epsilon^{(p,v)}_r \right)
      \left(1 - \eta\, z^{(p,v)}\, \pi^{(p)}_r\right)

:math:`\mu_r` is the same for the two hemispheres; :math:`\eta` is the loss at an
average seed in Alzheimer's disease, :math:`z` the severity (0 in CN, 1 on average in
AD) and :math:`\pi^{(p)}` what has spread along the person's network, over its mean
at the seeds.

Where the numbers come from. Spread of healthy values: in the 108 people over 50 of
the FCON1000 thickness table the coefficient of variation is 8 % (median of the 148
regions; 5 to 15 %), 4 % of it shared by all regions, and that of subcortical volumes
10 to 16 %; their mean volumes are used. Loss at the seeds: volumes in AD against
controls are 27 % lower in the hippocampus and 39 % in the entorhinal cortex (Du et
al. 2001, J Neurol Neurosurg Psychiatry 71:441); glucose metabolism is severely
reduced in the limbic network (Nestor et al. 2003, Ann Neurol 54:343). One value of
27 % serves all features. Changes with age and between sites, and the uptake of
single nuclei, are of a plausible size only and claim no more.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from brainlsap.data.simulated_people import random_stream

MIDDLE_AGE = 73.0


@dataclass(frozen=True)
class FeatureModel:
    r"""How one kind of regional value is drawn.

    Parameters
    ----------
    unit : str
        Unit of the values.
    cortex_mean, cortex_spread : float
        Mean and standard deviation over cortical regions of a healthy 73-year-old.
    subcortex : dict of str to float or None
        Mean of every subcortical structure; None where none is measured.
    shared, regional, scan : float
        :math:`\sigma_g, \sigma_r, \sigma_e`, as parts of the mean.
    aging : float
        :math:`\alpha`, relative change per year.
    site : float
        Standard deviation of :math:`\beta`, relative.
    """

    unit: str
    cortex_mean: float
    cortex_spread: float
    subcortex: dict[str, float] | None
    shared: float
    regional: float
    scan: float
    aging: float
    site: float


SUBCORTEX_UPTAKE = {
    "thalamus": 1.30,
    "caudate": 1.25,
    "putamen": 1.40,
    "pallidum": 1.10,
    "hippocampus": 1.00,
    "amygdala": 0.95,
    "accumbens": 1.20,
}
SUBCORTEX_VOLUME = {
    "thalamus": 6800.0,
    "caudate": 3350.0,
    "putamen": 4500.0,
    "pallidum": 1750.0,
    "hippocampus": 3850.0,
    "amygdala": 1530.0,
    "accumbens": 500.0,
}
FEATURES = {
    "fdg": FeatureModel(
        unit="SUVR",
        cortex_mean=1.25,
        cortex_spread=0.10,
        subcortex=SUBCORTEX_UPTAKE,
        shared=0.040,
        regional=0.050,
        scan=0.025,
        aging=-0.003,
        site=0.010,
    ),
    "thickness": FeatureModel(
        unit="mm",
        cortex_mean=2.5,
        cortex_spread=0.28,
        subcortex=None,
        shared=0.035,
        regional=0.060,
        scan=0.025,
        aging=-0.003,
        site=0.010,
    ),
    "volume": FeatureModel(
        unit="mm3",
        cortex_mean=3000.0,
        cortex_spread=800.0,
        subcortex=SUBCORTEX_VOLUME,
        shared=0.080,
        regional=0.080,
        scan=0.020,
        aging=-0.005,
        site=0.010,
    ),
}


def healthy_means(
    model: FeatureModel, structures: list[str], is_cortex: np.ndarray, seed: tuple
) -> np.ndarray:
    r"""Return :math:`\mu_r`, equal for regions of the same structure.

    Parameters
    ----------
    model : FeatureModel
        The feature.
    structures : list of str of length n_rois
        Name of every region without its hemisphere.
    is_cortex : bool array of shape (n_rois,)
        Whether the region is cortical.
    seed : tuple of (int, str)
        Seed of the cohort, and the feature's name.

    Returns
    -------
    array of shape (n_rois,)
        In the feature's unit; NaN where it is not measured.
    """
    random_state, name = seed
    names = sorted(set(structures))
    rng = random_stream(random_state, f"mean {name}")
    # Cut at two deviations: the cortex has no region of half or twice the thickness.
    draws = np.clip(rng.standard_normal(len(names)), -2, 2)
    cortex = dict(
        zip(names, model.cortex_mean + model.cortex_spread * draws, strict=True)
    )
    if model.subcortex is None:
        below: dict[str, float] = {}
    else:
        middle = float(np.median(list(model.subcortex.values())))
        below = {name: model.subcortex.get(name, middle) for name in names}
    return np.array(
        [
            cortex[name] if on_cortex else below.get(name, np.nan)
            for name, on_cortex in zip(structures, is_cortex, strict=True)
        ]
    )


def draw_feature(
    name: str,
    means: np.ndarray,
    people: pd.DataFrame,
    loss: np.ndarray,
    *,
    noise: float = 1.0,
    random_state: int = 0,
) -> np.ndarray:
    r"""Draw the regional values of every scan by the formula of the module's page.

    Parameters
    ----------
    name : str
        Key of :data:`FEATURES`.
    means : array of shape (n_rois,)
        :math:`\mu_r`.
    people : DataFrame, one row per scan
        Columns person, visit, age and site, as
        :func:`~brainlsap.data.simulated_people.make_people` gives them.
    loss : array of shape (n_scans, n_rois)
        :math:`\eta z \pi_r`, the part that disease takes away.
    noise : float
        Factor on :math:`\sigma_g, \sigma_r, \sigma_e`.
    random_state : int
        Seed of the whole cohort.

    Returns
    -------
    array of shape (n_scans, n_rois)
        In the feature's unit.
    """
    model, n_rois = FEATURES[name], len(means)
    n_sites = int(people["site"].max()) + 1
    sites = np.array(
        [
            random_stream(random_state, f"site {name}", k).normal()
            for k in range(n_sites)
        ]
    )
    who, when = people["person"].tolist(), people["visit"].tolist()
    age, site = people["age"].to_numpy(float), people["site"].to_numpy(int)
    known = model.aging * (age - MIDDLE_AGE) + model.site * sites[site]
    values = np.empty(loss.shape)
    for row, (person, visit) in enumerate(zip(who, when, strict=True)):
        rng = random_stream(random_state, f"person {name}", person)
        shared, regional = rng.standard_normal(), rng.standard_normal(n_rois)
        own = model.shared * shared + model.regional * regional
        rng = random_stream(random_state, f"scan {name}", person, visit)
        error = model.scan * rng.standard_normal(n_rois)
        values[row] = means * (1 + known[row] + noise * (own + error))
    # However large the noise asked for, nothing measured becomes negative.
    return np.maximum(values, 0.5 * means) * (1 - loss)
