"""Whether two maps of the brain go together more than smooth maps do by chance."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from brainlsap._arrays import check_at_least
from brainlsap.data import Atlas
from brainlsap.evaluation.ranking_agreement import rank_correlation
from brainlsap.exceptions import FileFormatError, ParameterError


class SpinTest(NamedTuple):
    """A correlation, those of rotated maps, and how many are as strong."""

    correlation: float
    rotated: np.ndarray
    p_value: float
    n_regions: int


# sums in one order, so that the last digit does not follow the number of threads
@threadpool_limits.wrap(limits=1)
def spin_test(
    first: pd.Series | Mapping[str, float],
    second: pd.Series | Mapping[str, float],
    atlas: Atlas,
    n_spins: int = 1000,
    random_state: int = 0,
) -> SpinTest:
    """Compare two maps by region with rotations of the cortex as the null.

    The sphere of fsaverage5 is rotated at random, the right hemisphere as the mirror
    image of the left, and a region gets the mean of the first map over the vertices
    that come to lie in it (Alexander-Bloch et al. 2018). Regions below the cortex
    have no sphere: their values are permuted among themselves.

    Parameters
    ----------
    first, second : Series or mapping of str to float
        One value per region by name; NaN and regions that one map lacks are left out.
    atlas : Atlas
        With vertex labels on fsaverage5.
    n_spins : int
        Rotations; about 20 ms each.
    random_state : int
        Seed.

    Returns
    -------
    SpinTest
        Fields correlation (Spearman), rotated (n_spins,), p_value (two-sided) and
        n_regions, in which both maps are known.

    Raises
    ------
    ParameterError
        Where fewer than five regions are known in both maps, or a map is constant.
    FileFormatError
        Where the atlas has no surface labels.

    Examples
    --------
    >>> from brainlsap.data import load_atlas
    >>> atlas = load_atlas("desikan82")
    >>> lobes = pd.Series(atlas.regions["y"].to_numpy(), index=atlas.names)
    >>> spin_test(lobes, lobes, atlas, n_spins=9).p_value
    0.1
    """
    check_at_least("n_spins", n_spins, 1)
    one, two = _by_region(first, atlas), _by_region(second, atlas)
    known = np.isfinite(one) & np.isfinite(two)
    correlation = rank_correlation(one[known], two[known])
    if known.sum() < 5 or not np.isfinite(correlation):
        raise ParameterError(
            "two maps can be compared where both vary over at least five common "
            f"regions, got {int(known.sum())}."
        )
    one, two = np.where(known, one, np.nan), np.where(known, two, np.nan)
    spins = _spun_maps(one, atlas, n_spins, np.random.default_rng(random_state))
    rotated = np.array([rank_correlation(spun, two) for spun in spins])
    beaten = int((np.abs(rotated) >= abs(correlation) - 1e-12).sum())
    return SpinTest(
        correlation, rotated, (1 + beaten) / (1 + n_spins), int(known.sum())
    )


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    """Return a rotation (3, 3), every one as likely as any other.

    Parameters
    ----------
    rng : numpy.random.Generator
        Draws it.

    Returns
    -------
    array of shape (3, 3)

    Examples
    --------
    >>> R = random_rotation(np.random.default_rng(0))
    >>> bool(np.allclose(R @ R.T, np.eye(3))), round(float(np.linalg.det(R)), 6)
    (True, 1.0)
    """
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))  # without the signs, QR prefers some directions
    return Q if np.linalg.det(Q) > 0 else Q[:, [1, 0, 2]]


def sphere_points(hemisphere: str) -> np.ndarray:
    """Return the vertices (10242, 3) of fsaverage5's sphere, at distance 1.

    Parameters
    ----------
    hemisphere : {"L", "R"}
        The side.

    Returns
    -------
    array of shape (10242, 3)

    Raises
    ------
    FileFormatError
        Where nilearn, whose installation holds the sphere, is not there.

    Examples
    --------
    >>> sphere_points("L").shape
    (10242, 3)
    """
    import nibabel

    spec = find_spec("nilearn")
    places = [] if spec is None else list(spec.submodule_search_locations or ())
    side = {"L": "left", "R": "right"}[hemisphere]
    part = Path("datasets", "data", "fsaverage5", f"sphere_{side}.gii.gz")
    found = [Path(place) / part for place in places if (Path(place) / part).is_file()]
    if not found:
        raise FileFormatError(
            f"The sphere of fsaverage5 ({part}) comes with nilearn; install nilearn."
        )
    image = nibabel.GiftiImage.from_filename(found[0])
    points = np.array(image.agg_data("pointset")).astype(np.float64)
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def _by_region(values: pd.Series | Mapping[str, float], atlas: Atlas) -> np.ndarray:
    # Before anything becomes a dict: an index may hold a name twice.
    places = atlas.match(list(values.keys()))
    full = np.full(len(atlas), np.nan)
    full[places] = [float(value) for value in dict(values).values()]
    return full


def _spun_maps(
    values: np.ndarray, atlas: Atlas, n_spins: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the map after each rotation (n_spins, n_rois); NaN where none is known."""
    from scipy.spatial import cKDTree

    sides = {side: (sphere_points(side), atlas.vertex_labels(side)) for side in "LR"}
    trees = {side: cKDTree(points) for side, (points, _) in sides.items()}
    cortical = np.zeros(len(atlas), dtype=bool)
    for _, labels in sides.values():
        cortical[labels[labels >= 0]] = True
    below = np.flatnonzero(~cortical & np.isfinite(values))
    mirror = np.diag([-1.0, 1.0, 1.0])
    maps = np.full((n_spins, len(values)), np.nan)
    for spun in maps:
        turn = random_rotation(rng)
        for side, (points, labels) in sides.items():
            rotation = turn if side == "L" else mirror @ turn @ mirror
            _, nearest = trees[side].query(points @ rotation)
            _add_means(spun, labels, np.append(values, np.nan)[labels[nearest]])
        spun[below] = values[rng.permutation(below)]
    return maps


def _add_means(spun: np.ndarray, labels: np.ndarray, moved: np.ndarray) -> None:
    """Write the mean of the moved values over the vertices of each region."""
    known = (labels >= 0) & np.isfinite(moved)
    count = np.bincount(labels[known], minlength=len(spun))
    total = np.bincount(labels[known], weights=moved[known], minlength=len(spun))
    there = count > 0
    spun[there] = total[there] / count[there]
