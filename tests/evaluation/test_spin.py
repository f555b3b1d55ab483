"""Maps compared by rotations of the cortex."""

import numpy as np
import pandas as pd
import pytest

from brainlsap.atlas import load_atlas
from brainlsap.evaluation import spin_test
from brainlsap.exceptions import ParameterError

ATLAS = load_atlas("desikan82")


def test_a_smooth_map_is_like_itself_and_not_like_a_tilted_one():
    along = pd.Series(ATLAS.regions["y"].to_numpy(float), index=list(ATLAS.names))
    tilted = pd.Series(ATLAS.regions["z"].to_numpy(float), index=list(ATLAS.names))
    same = spin_test(along, along, ATLAS, n_spins=19)
    assert same.correlation == 1
    assert same.p_value == pytest.approx(1 / 20)
    assert same.n_rotations == 19
    other = spin_test(along, dict(tilted.iloc[1:]), ATLAS, 19, 1)
    assert other.n_regions == len(ATLAS) - 1
    assert other.p_value > 0.05
    again = spin_test(along, dict(tilted.iloc[1:]), ATLAS, 19, 1)
    np.testing.assert_array_equal(other.null_correlations, again.null_correlations)
    with pytest.raises(ParameterError, match="at least five common regions"):
        spin_test(along, along * 0, ATLAS)


@pytest.mark.parametrize("layout", ["scattered", "neighbours"])
def test_maps_of_few_regions_that_rotations_tear_apart_are_refused(layout):
    rng = np.random.default_rng(0)
    y, is_left = ATLAS.regions["y"].to_numpy(float), ATLAS.coordinates[:, 0] < 0
    left = np.flatnonzero(ATLAS.cortex & is_left)
    regions = left[np.argsort(y[left])[:6]]
    if layout == "scattered":
        regions = rng.choice(np.flatnonzero(ATLAS.cortex), 6, replace=False)
    names = np.array(ATLAS.names)[regions]
    first, second = (pd.Series(rng.normal(size=6), names) for _ in range(2))
    with pytest.raises(
        ParameterError, match="of the 6 regions that have a value in both maps"
    ):
        spin_test(first, second, ATLAS, 19)


def test_rotations_that_leave_too_few_regions_count_neither_way():
    rng = np.random.default_rng(1)
    cortex = np.flatnonzero(ATLAS.cortex)
    regions = rng.choice(cortex, 24, replace=False)
    names = np.array(ATLAS.names)[regions]
    first, second = (pd.Series(rng.normal(size=24), names) for _ in range(2))
    test = spin_test(first, second, ATLAS, 29)
    is_usable = np.isfinite(test.null_correlations)
    assert 15 <= test.n_rotations == is_usable.sum() < 29
    as_strong = np.abs(test.null_correlations[is_usable]) >= abs(test.correlation)
    assert test.p_value == (1 + as_strong.sum()) / (1 + is_usable.sum())
