"""Whether the hemispheres of all scans of a new study are exchanged.

:func:`brainlsap.data.quality_table` finds single scans with exchanged hemispheres,
because they differ from the other scans of their study. Where all scans of a study are
exchanged, only scans of another study, such as those of a training, can show it.

Let `g` be a person's left minus right of every pair of homotopic regions, `m` its mean
over the people of the training and `v` its variance. The agreement of a person is
`t = sum(g m / (v + mean(v)))`. In the training, `m` is the mean over the other people.
`T` and `S` are mean and standard deviation of `t` there, over `n` people, and `t_new`,
`S_new` and `n_new` those of the new people. With `e = max(S, S_new) / sqrt(n_new)`, the
new scans are taken for exchanged if `t_new < -T / 2` and `t_new < -4 e`, and for not
exchanged if `t_new > T / 2` and `t_new > 2 e`. All else shows nothing, as do trainings
with `T < 6 S / sqrt(n)`, whose hemispheres differ too little.
"""

from collections.abc import Mapping
from enum import StrEnum, auto
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.data.quality import MIN_SCANS, unknown_sides_text

# Smallest mean agreement in the training, in standard errors.
_MIN_TRAINING_AGREEMENT = 6.0
# Largest and smallest agreement of exchanged and correct sides, in standard errors.
_MAX_EXCHANGED = -4.0
_MIN_CORRECT = 2.0
_N_DIGITS = 6


class Sides(StrEnum):
    """Whether the sides of new scans are those of a training."""

    CORRECT = auto()
    EXCHANGED = auto()
    UNKNOWN = auto()


def learn_sides(
    values: np.ndarray, groups: np.ndarray, homotopic: np.ndarray
) -> dict[str, Any] | None:
    """Learn the mean asymmetry of regional values, as JSON takes it.

    Parameters
    ----------
    values : array of shape (n_scans, n_rois)
        Of one feature; NaN where not measured.
    groups : array of shape (n_scans,)
        Participant of every scan.
    homotopic : int array of shape (n_rois,)
        The other hemisphere's region of each; the region itself if it has none.

    Returns
    -------
    dict or None
        `regions` and `partners`, positions of homotopic regions; `weights`, by which
        left minus right are multiplied and added; `mean` and `sd` of this sum. None
        where the hemispheres differ too little, or in too few people.
    """
    regions = np.flatnonzero(homotopic > np.arange(len(homotopic)))
    partners = homotopic[regions]
    asymmetries = _average_asymmetry(values, groups, regions, partners)
    n_people = len(asymmetries)
    if n_people < MIN_SCANS or not regions.size:
        return None
    variances = asymmetries.var(axis=0)
    region_weights = 1 / np.maximum(variances + variances.mean(), 1e-300)
    asymmetry_sum = asymmetries.sum(axis=0)
    means_of_others = (asymmetry_sum - asymmetries) / (n_people - 1)
    agreements = (asymmetries * means_of_others) @ region_weights
    mean_agreement, sd_agreement = agreements.mean(), agreements.std(ddof=1)
    if not mean_agreement > _MIN_TRAINING_AGREEMENT * sd_agreement / np.sqrt(n_people):
        return None
    weights = asymmetry_sum / n_people * region_weights
    return {
        "regions": regions.tolist(),
        "partners": partners.tolist(),
        "weights": [float(f"{weight:.{_N_DIGITS}g}") for weight in weights],
        "mean": float(mean_agreement),
        "sd": float(sd_agreement),
    }


def compare_sides(
    values: np.ndarray, groups: np.ndarray, training_sides: Mapping[str, Any] | None
) -> Sides:
    """Return whether the sides of new scans are those of :func:`learn_sides`.

    `values` has the regions of the training in its order.
    """
    if training_sides is None:
        return Sides.UNKNOWN
    asymmetries = _average_asymmetry(
        values, groups, training_sides["regions"], training_sides["partners"]
    )
    agreements = asymmetries @ np.array(training_sides["weights"])
    sd_agreement = training_sides["sd"]
    if len(agreements) > 1:
        sd_agreement = max(sd_agreement, agreements.std(ddof=1))
    standard_error = sd_agreement / np.sqrt(len(agreements))
    mean_agreement = agreements.mean()
    if mean_agreement < min(
        -training_sides["mean"] / 2, _MAX_EXCHANGED * standard_error
    ):
        return Sides.EXCHANGED
    if mean_agreement > max(training_sides["mean"] / 2, _MIN_CORRECT * standard_error):
        return Sides.CORRECT
    return Sides.UNKNOWN


def describe_sides(value_name: str, sides: Sides) -> str:
    """Return a sentence on sides that are exchanged or unknown; "" if correct."""
    if sides is Sides.EXCHANGED:
        return (
            f"{value_name}: left and right may have been swapped in all scans, because "
            "their differences are opposite to those of the training scans. Check "
            "which files and columns belong to which hemisphere. If they were swapped, "
            "the predictions are wrong"
        )
    return unknown_sides_text(value_name) if sides is Sides.UNKNOWN else ""


def _average_asymmetry(
    values: np.ndarray, groups: np.ndarray, regions: Any, partners: Any
) -> np.ndarray:
    """Return each person's mean difference of homotopic regions; 0 if not measured."""
    differences = pd.DataFrame(values[:, regions] - values[:, partners])
    return (
        differences.groupby(np.asarray(groups, dtype=str)).mean().fillna(0).to_numpy()
    )
