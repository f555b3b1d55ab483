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


class SpinTest(NamedTuple):
    """A correlation, those of rotated maps, and how many are as strong.

    Parameters
    ----------
    correlation : float
        Spearman's, over the regions that both maps know.
    rotated : array of shape (n_spins,)
        The same with the first map rotated.
    p_value : float
        Two-sided; the unrotated map counts as one of them.
    n_regions : int
        Regions compared.
    """

    correlation: float
    rotated: np.ndarray
    p_value: float
    n_regions: int


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
        Where the maps have fewer than five regions in common, or do not vary there.
    FileFormatError
        Where the atlas has no surface, or nilearn's sphere is missing.
    """
    check_at_least("n_spins", n_spins, 1)
    atlas = load_atlas(atlas)
    one, two = np.full((2, len(atlas)), np.nan)
    for full, named in ((one, dict(first)), (two, dict(second))):
        full[atlas.match(list(named))] = list(named.values())
    known = np.isfinite(one) & np.isfinite(two)
    correlation = rank_correlation(one[known], two[known])
    if known.sum() < 5 or not np.isfinite(correlation):
        raise ParameterError(
            "two maps can be compared where both vary over at least five common "
            f"regions, got {int(known.sum())}."
        )
    one[~known] = two[~known] = np.nan
    spins = _spun_maps(one, atlas, n_spins, np.random.default_rng(random_state))
    rotated = np.array([rank_correlation(spun, two) for spun in spins])
    beaten = int((np.abs(rotated) >= abs(correlation) - 1e-12).sum())
    p_value = (1 + beaten) / (1 + n_spins)
    return SpinTest(correlation, rotated, p_value, int(known.sum()))


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Return Spearman's correlation; NaN where a map is constant or too short."""
    both = pd.DataFrame({"first": first, "second": second})
    return float(both.corr("spearman", min_periods=3).iloc[0, 1])


def _spun_maps(
    values: np.ndarray, atlas: Atlas, n_spins: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the map after each rotation (n_spins, n_rois); NaN where none is known."""
    from scipy.spatial import cKDTree
    from scipy.spatial.transform import Rotation

    n_rois = len(atlas)
    sides = []
    for side in "LR":
        points, _ = fsaverage5(side, "sphere")
        points = points / np.linalg.norm(points, axis=1, keepdims=True)
        sides.append((side, points, cKDTree(points), atlas.vertex_labels(side)))
    below = np.flatnonzero(~atlas.cortex & np.isfinite(values))
    mirror = np.diag([-1.0, 1.0, 1.0])
    maps = np.full((n_spins, n_rois), np.nan)
    for spun in maps:
        turn = Rotation.random(random_state=rng).as_matrix()
        for side, points, tree, labels in sides:
            rotation = turn if side == "L" else mirror @ turn @ mirror
            _, nearest = tree.query(points @ rotation)
            moved = np.append(values, np.nan)[labels[nearest]]
            known = (labels >= 0) & np.isfinite(moved)
            count = np.bincount(labels[known], minlength=n_rois)
            total = np.bincount(labels[known], moved[known], minlength=n_rois)
            np.divide(total, count, out=spun, where=count > 0)
        spun[below] = values[rng.permutation(below)]
    return maps
