"""Compare two maps of the brain, with rotations of the cortex as the null model."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.atlas.atlas_files import fsaverage5
from brainlsap.exceptions import ParameterError, check_at_least

MIN_REGIONS = 5
"""Maps, or a rotated map and the other one, need as many common regions."""

MIN_USABLE_SHARE = 0.5
"""A rotation must leave this share of the regions, and this share of rotations must."""


class SpinTest(NamedTuple):
    """The correlation of two maps, and its p-value among rotated maps.

    Parameters
    ----------
    correlation : float
        Spearman's, over the regions that both maps have.
    null_correlations : array of shape (n_spins,)
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
    null_correlations: np.ndarray
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
    """Compare two maps by region with rotations of the cortex as the null model.

    Neighbouring regions are alike, so that the usual p-value of a correlation is too
    small. Here the sphere of fsaverage5 is rotated at random, the right hemisphere by
    the mirrored rotation, and every region takes the mean of the vertices that come to
    lie on it (Alexander-Bloch et al. 2018, NeuroImage 178:540). Subcortical regions,
    which have no surface, are permuted among themselves.

    If maps have few regions, or regions of one lobe only, most rotations move them to
    places where the other map has no value. A rotation counts if it leaves at least
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
        If the maps have fewer than five regions in common, or do not vary there, or if
        most rotations leave too few of them.
    FileFormatError
        If the atlas has no surface, or nilearn's sphere is missing.
    """
    check_at_least("n_spins", n_spins, 1)
    atlas = load_atlas(atlas)
    first_map = _values_in_atlas(first, atlas)
    second_map = _values_in_atlas(second, atlas)
    is_common = np.isfinite(first_map) & np.isfinite(second_map)
    observed_correlation = rank_correlation(first_map[is_common], second_map[is_common])
    n_regions = int(is_common.sum())
    if n_regions < MIN_REGIONS or not np.isfinite(observed_correlation):
        raise ParameterError(
            "two maps can be compared where both vary over at least five common "
            f"regions, got {n_regions}."
        )
    first_map[~is_common] = second_map[~is_common] = np.nan
    null_correlations = _correlate_rotated_maps(
        first_map, second_map, atlas, n_spins, random_state
    )
    n_rotations = int(np.isfinite(null_correlations).sum())
    n_as_strong = int(
        (np.abs(null_correlations) >= abs(observed_correlation) - 1e-12).sum()
    )
    p_value = (1 + n_as_strong) / (1 + n_rotations)
    return SpinTest(
        observed_correlation, null_correlations, p_value, n_regions, n_rotations
    )


def _values_in_atlas(
    values_by_region: pd.Series | Mapping[str, float], atlas: Atlas
) -> np.ndarray:
    """Return a map in the order of the atlas; NaN for regions that it lacks."""
    named_values = dict(values_by_region)
    region_values = np.full(len(atlas), np.nan)
    region_values[atlas.match(list(named_values))] = list(named_values.values())
    return region_values


class _SpinHemisphere:
    """A hemisphere of fsaverage5's sphere with the labels of an atlas."""

    def __init__(self, atlas: Atlas, hemisphere: str) -> None:
        from scipy.spatial import cKDTree

        vertices, _ = fsaverage5(hemisphere, "sphere")
        self.vertices = vertices / np.linalg.norm(vertices, axis=1, keepdims=True)
        self.tree = cKDTree(self.vertices)
        self.labels = atlas.vertex_labels(hemisphere)
        self.n_regions = len(atlas)
        # The right hemisphere turns as the mirror image of the left one.
        self.mirror = np.diag([-1.0 if hemisphere == "R" else 1.0, 1.0, 1.0])

    def rotate_into(
        self, spun_map: np.ndarray, region_map: np.ndarray, rotation_matrix: np.ndarray
    ) -> None:
        """Write the rotated map's mean over each region of this side to `spun_map`."""
        mirrored_rotation = self.mirror @ rotation_matrix @ self.mirror
        _, nearest_vertex = self.tree.query(self.vertices @ mirrored_rotation)
        # Label -1, of vertices without a region, takes the NaN at the end.
        vertex_values = np.append(region_map, np.nan)[self.labels[nearest_vertex]]
        is_valid = (self.labels >= 0) & np.isfinite(vertex_values)
        labels = self.labels[is_valid]
        n_vertices = np.bincount(labels, minlength=self.n_regions)
        value_sums = np.bincount(
            labels, vertex_values[is_valid], minlength=self.n_regions
        )
        np.divide(value_sums, n_vertices, out=spun_map, where=n_vertices > 0)


def _correlate_rotated_maps(
    first_map: np.ndarray,
    second_map: np.ndarray,
    atlas: Atlas,
    n_spins: int,
    random_state: int,
) -> np.ndarray:
    """Return the correlations (n_spins,) of the rotated first map with the second.

    A rotation that leaves too few regions is NaN; an error is raised as soon as more
    than half of the rotations do.
    """
    from scipy.spatial.transform import Rotation

    is_common = np.isfinite(first_map)
    n_regions = int(is_common.sum())
    n_needed = max(MIN_REGIONS, int(np.ceil(MIN_USABLE_SHARE * n_regions)))
    hemispheres = [_SpinHemisphere(atlas, side) for side in "LR"]
    subcortex_rows = np.flatnonzero(~atlas.cortex & is_common)
    rng = np.random.default_rng(random_state)
    spun_correlations = np.full(n_spins, np.nan)
    n_unusable = 0
    for spin_index in range(n_spins):
        rotation_matrix = Rotation.random(random_state=rng).as_matrix()
        spun_map = np.full_like(first_map, np.nan)
        for hemisphere in hemispheres:
            hemisphere.rotate_into(spun_map, first_map, rotation_matrix)
        spun_map[subcortex_rows] = first_map[rng.permutation(subcortex_rows)]
        n_shared = np.count_nonzero(np.isfinite(spun_map) & np.isfinite(second_map))
        if n_shared >= n_needed:
            spun_correlations[spin_index] = rank_correlation(spun_map, second_map)
        n_unusable += np.isnan(spun_correlations[spin_index])
        if n_unusable > (1 - MIN_USABLE_SHARE) * n_spins:
            raise ParameterError(
                f"{n_unusable} of the first {spin_index + 1} rotations leave fewer "
                f"than {n_needed} of the {n_regions} regions that both maps know, "
                "which is too few to compare. Give maps of more of the cortex."
            )
    return spun_correlations


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Return Spearman's correlation; NaN if a map is constant or too short."""
    value_pairs = pd.DataFrame({"first": first, "second": second})
    return float(value_pairs.corr("spearman", min_periods=3).iloc[0, 1])
