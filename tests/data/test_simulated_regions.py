"""What a simulation reads from an atlas: twins, hubs, positions, seeds."""

import numpy as np
import pandas as pd
import pytest

from brainlsap.data.atlas import Atlas, load_atlas
from brainlsap.data.simulated_regions import (
    choose_seeds,
    find_twins,
    hemisphere_factor,
    hub_strength,
    region_positions,
    structure_names,
)
from brainlsap.exceptions import ParameterError, RegionNameError


def draw_atlas(**changes):
    regions = pd.DataFrame(
        {
            "name": ["lh_alpha", "Left-Putamen", "stem", "rh_alpha", "rh_beta"],
            "freesurfer_id": -1,
            "hemisphere": ["L", "L", "M", "R", "R"],
            "structure": ["cortex", "subcortex", "subcortex", "cortex", "cortex"],
            "annot_name": ["alpha", "n/a", "n/a", "alpha", "beta"],
            "x": [-10.0, -20, 0, 10, 30],
            "y": 1.0,
            "z": 2.0,
        }
    )
    return Atlas("tiny", regions.assign(**changes), None)


@pytest.fixture(params=["destrieux160", "desikan82"])
def bundled(request):
    return load_atlas(request.param)


def test_twins_are_mutual_and_on_the_other_side(bundled):
    twins = find_twins(bundled)
    sides = bundled.regions["hemisphere"].to_numpy()
    assert twins.min() >= 0
    assert np.array_equal(twins[twins], np.arange(len(bundled)))
    assert (sides[twins] != sides).all()
    assert (bundled.regions["annot_name"].to_numpy()[twins] != "").all()


def test_twins_lie_about_opposite_each_other(bundled):
    positions, twins = region_positions(bundled), find_twins(bundled)
    mirrored = positions[twins] * [-1, 1, 1]
    assert np.linalg.norm(positions - mirrored, axis=1).max() < 20


def test_twins_have_one_structure_name(bundled):
    names = np.array(structure_names(bundled))
    assert (names == names[find_twins(bundled)]).all()
    assert len(set(names)) == len(bundled) // 2


def test_a_region_alone_has_no_twin():
    assert find_twins(draw_atlas()).tolist() == [3, -1, -1, 0, -1]


def test_hubs_are_those_of_the_literature(bundled):
    strength = hub_strength(bundled)
    hubs = {bundled.names[i] for i in np.flatnonzero(strength > 1)}
    assert len(hubs) == 12
    assert {"Left-Thalamus", "Right-Putamen", "Left-Hippocampus"} <= hubs
    assert set(strength) == {1.0, 1.5}


def test_hemisphere_factor_spares_one_side_and_the_midline():
    factor = hemisphere_factor(draw_atlas(), 0.15)
    assert np.array_equal(factor, factor.T)
    assert factor[0].tolist() == [1.0, 1.0, 1.0, 0.15, 0.15]
    assert (factor[2] == 1).all()


def test_positions_are_those_of_the_table():
    assert region_positions(draw_atlas())[1].tolist() == [-20.0, 1.0, 2.0]


def test_unknown_positions_are_refused():
    for atlas in (
        draw_atlas(y=np.nan),
        Atlas("tiny", draw_atlas().regions.drop(columns="z"), None),
    ):
        with pytest.raises(
            ParameterError, match=r"atlas 'tiny' has no centroid .* Add columns x, y, z"
        ):
            region_positions(atlas)


@pytest.mark.parametrize(
    ("name", "cortex"),
    [
        ("destrieux160", "ctx_lh_G_oc-temp_med-Parahip"),
        ("desikan82", "ctx-lh-entorhinal"),
    ],
)
def test_default_seeds_are_the_medial_temporal_lobe(name, cortex):
    atlas = load_atlas(name)
    seeds = {atlas.names[i] for i in np.flatnonzero(choose_seeds(atlas, None, 0))}
    other = cortex.replace("lh", "rh")
    assert seeds == {
        cortex,
        other,
        *(f"{s}-{n}" for s in ("Left", "Right") for n in ("Hippocampus", "Amygdala")),
    }


def test_seeds_by_name_take_any_spelling():
    atlas = load_atlas("destrieux160")
    seeds = choose_seeds(atlas, ["lh.G&S_paracentral", "Right-Thalamus-Proper"], 0)
    assert np.flatnonzero(seeds).tolist() == [2, 154]


def test_seeds_by_number_are_drawn():
    atlas = load_atlas("desikan82")
    assert choose_seeds(atlas, 7, 0).sum() == 7
    assert np.array_equal(choose_seeds(atlas, 7, 0), choose_seeds(atlas, 7, 0))
    assert not np.array_equal(choose_seeds(atlas, 7, 0), choose_seeds(atlas, 7, 1))
    assert choose_seeds(atlas, len(atlas), 0).all()


def test_an_atlas_without_the_default_seeds_asks_for_some():
    with pytest.raises(
        ParameterError, match=r"atlas 'tiny' has none of the regions .* seeds="
    ):
        choose_seeds(draw_atlas(), None, 0)


@pytest.mark.parametrize("number", [0, 6])
def test_an_impossible_number_of_seeds_is_refused(number):
    with pytest.raises(
        ParameterError, match=rf"seeds must be between 1 and 5, .* got {number}"
    ):
        choose_seeds(draw_atlas(), number, 0)


def test_an_unknown_seed_is_refused_by_the_atlas():
    with pytest.raises(RegionNameError, match="lh_precuneos"):
        choose_seeds(load_atlas("desikan82"), ["lh_precuneos"], 0)
