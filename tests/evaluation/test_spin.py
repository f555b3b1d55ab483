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
    same = spin_test(along, along, ATLAS, n_spins=29)
    assert same.correlation == 1
    assert same.p_value == pytest.approx(1 / 30)
    other = spin_test(along, dict(tilted.iloc[1:]), ATLAS, 29, 1)
    assert other.n_regions == len(ATLAS) - 1
    assert other.p_value > 0.05
    again = spin_test(along, dict(tilted.iloc[1:]), ATLAS, 29, 1)
    np.testing.assert_array_equal(other.rotated, again.rotated)
    with pytest.raises(ParameterError, match="at least five common regions"):
        spin_test(along, along * 0, ATLAS)
