"""Volumes travel by name, from tables and mappings, and are refused with a reason."""

import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from brainlsap.data import load_atlas, region_volumes
from brainlsap.exceptions import ParameterError, RegionNameError


@pytest.fixture
def atlas():
    return load_atlas("desikan82")


@pytest.fixture
def named(atlas):
    return pd.Series({name: 1000.0 + i for i, name in enumerate(atlas.names)})


def test_order_is_that_of_the_atlas(atlas, named):
    shuffled = named.sample(frac=1, random_state=2)
    assert_array_equal(region_volumes(shuffled, atlas), named)
    other = {name.replace("ctx-lh-", "lh."): v for name, v in shuffled.items()}
    assert_array_equal(region_volumes(other | {"Brain-Stem": 1.0}, atlas), named)


def test_volumes_come_from_a_table(atlas, named, tmp_path):
    path = tmp_path / "volumes.tsv"
    table = pd.DataFrame({"region": named.index, "volume": named.to_numpy()})
    table.sample(frac=1, random_state=5).to_csv(path, sep="\t", index=False)
    assert_array_equal(region_volumes(path, atlas), named)


def test_missing_doubled_and_empty_volumes_are_refused(atlas, named):
    first = atlas.names[0]
    with pytest.raises(RegionNameError, match=rf"lack 1 of the 82 regions .*{first}"):
        region_volumes(named.iloc[1:], atlas)
    twin = first.replace("ctx-lh-", "lh.")
    with pytest.raises(RegionNameError, match=rf"hold {first} twice, as '{first}' and"):
        region_volumes(dict(named) | {twin: 3.0}, atlas)
    named.iloc[7] = 0.0
    with pytest.raises(
        ParameterError, match=rf"positive, in mm3; got 0 for {atlas.names[7]}"
    ):
        region_volumes(named, atlas)
