"""Two maps of the brain compared, with rotations of the cortex as the null."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.atlas.surfaces import fsaverage5
from brainlsap.exceptions import ParameterError, check_at_least

FEWEST_REGIONS = 5
"""Maps that share fewer regions, or rotations that leave fewer, are not compared."""

LEAST_USABLE = 0.5
"""A rotation must leave this share of the regions, and this share of rotations must."""


class SpinTest(NamedTuple):
    """A correlation, those of rotated maps, and how many are as strong.

    Parameters
    ----------
    correlation : float
        Spearman's, over the regions that both maps know.
    rotated : array of shape (n_spins,)
        The same with the first map rotated; NaN where the rotated map shares too few
        regions with the second one, or does not vary there.
    p_value : float
        Two-sided, among the rotations that are not NaN; the unrotated map counts as one
        of them.
    n_regions : int
        Regions compared.
    n_rotations : int
        Rotations that are not NaN.
    """

    correlation: float
    rotated: np.ndarray
    p_value: float
    n_regions: int
    n_rotations: int


@threadpool_limits.wrap(limits=1)
def spin_test(
    first: pd.Series | Mapping[str, float],
    second: pd.Series | Mapping[str, float],
    atlas: Atlas | str | Path,
    n_spins: int = 1000,
    random_state: int = 0,
) -> SpinTest:
    """Compare two maps by region with rotations of the cortex as the null.

    Neighbouring regions are alike, so that a plain p-value of a correlation is too
    small. Here the sphere of fsaverage5 is turned at random, the right hemisphere by
    the mirrored rotation, and every region takes the mean of what lies over it
    (Alexander-Bloch et al. 2018, NeuroImage 178:540). Subcortical regions, which have
    no surface, are permuted among themselves.

    Where maps know few regions, or regions of one lobe only, most rotations bring them
    to places that the other map does not know. A rotation counts if it leaves at least
    half of the regions, and five; the others count neither as strong nor as weak. If
    more than half of all rotations leave fewer, the test is refused, since the few that
    remain hardly move the map.

    Parameters
    ----------
    first, second : Series or mapping of str to float
        Values by region name; regions in one of them only, and NaN, do not count.
    atlas : Atlas, or what :func:`.load_atlas` takes
        With vertex labels.
    n_spins : int
        Rotations.
    random_state : int
        Seed.

    Returns
    -------
    SpinTest

    Raises
    ------
    ParameterError
        Where the maps have fewer than five regions in common, or do not vary there, or
        where most rotations leave too few of them.
    FileFormatError
        Where the atlas has no surface, or nilearn's sphere is missing.
    """
    from scipy.spatial import cKDTree
    from scipy.spatial.transform import Rotation

    check_at_least("n_spins", n_spins, 1)
    atlas = load_atlas(atlas)
    one, two = np.full((2, len(atlas)), np.nan)
    for full, named in ((one, dict(first)), (two, dict(second))):
        full[atlas.match(list(named))] = list(named.values())
    known = np.isfinite(one) & np.isfinite(two)
    correlation = rank_correlation(one[known], two[known])
    n_regions = int(known.sum())
    if n_regions < FEWEST_REGIONS or not np.isfinite(correlation):
        raise ParameterError(
            "two maps can be compared where both vary over at least five common "
            f"regions, got {n_regions}."
        )
    n_needed = max(FEWEST_REGIONS, int(np.ceil(LEAST_USABLE * n_regions)))
    one[~known] = two[~known] = np.nan
    sides = []
    for side in "LR":
        points, _ = fsaverage5(side, "sphere")
        points = points / np.linalg.norm(points, axis=1, keepdims=True)
        sides.append((side, points, cKDTree(points), atlas.vertex_labels(side)))
    below = np.flatnonzero(~atlas.cortex & known)
    mirror, rng = np.diag([-1.0, 1.0, 1.0]), np.random.default_rng(random_state)
    rotated = np.empty(n_spins)
    for spin in range(n_spins):
        spun, turn = np.full_like(one, np.nan), Rotation.random(random_state=rng)
        for side, points, tree, labels in sides:
            rotation = turn.as_matrix()
            if side == "R":
                rotation = mirror @ rotation @ mirror
            _, nearest = tree.query(points @ rotation)
            moved = np.append(one, np.nan)[labels[nearest]]
            told = (labels >= 0) & np.isfinite(moved)
            count = np.bincount(labels[told], minlength=len(atlas))
            total = np.bincount(labels[told], moved[told], minlength=len(atlas))
            np.divide(total, count, out=spun, where=count > 0)
        spun[below] = one[rng.permutation(below)]
        n_shared = np.count_nonzero(np.isfinite(spun) & np.isfinite(two))
        is_usable = n_shared >= n_needed
        rotated[spin] = rank_correlation(spun, two) if is_usable else np.nan
        n_unusable = np.count_nonzero(np.isnan(rotated[: spin + 1]))
        if n_unusable > (1 - LEAST_USABLE) * n_spins:
            raise ParameterError(
                f"{n_unusable} of the first {spin + 1} rotations leave fewer than "
                f"{n_needed} of the {n_regions} regions that both maps know, which is "
                "too few to compare. Give maps of more of the cortex."
            )
    n_rotations = int(np.isfinite(rotated).sum())
    n_as_strong = int((np.abs(rotated) >= abs(correlation) - 1e-12).sum())
    p_value = (1 + n_as_strong) / (1 + n_rotations)
    return SpinTest(correlation, rotated, p_value, n_regions, n_rotations)


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Return Spearman's correlation; NaN where a map is constant or too short."""
    both = pd.DataFrame({"first": first, "second": second})
    return float(both.corr("spearman", min_periods=3).iloc[0, 1])
