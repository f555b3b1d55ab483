"""make_cohort: kept draws, and the effects they state."""

import hashlib

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.exceptions import ParameterError, RegionNameError
from brainlsap.simulation import (
    DEMOGRAPHICS,
    STAGES,
    make_cohort,
    split_people_by_shares,
)


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(40, random_state=1)


def digest(connectomes):
    counts = np.ascontiguousarray(connectomes, dtype=np.float32)
    return hashlib.sha256(counts.tobytes()).hexdigest()[:16]


def test_draws_of_make_cohort_are_those_of_the_first_version():
    made = make_cohort(5, feature=("fdg", "thickness", "volume"), random_state=3)
    assert digest(made.connectomes) == "3d087d1965c53080"
    assert np.nansum(made.features, axis=(0, 1)) == pytest.approx(
        [1828.6067721424238, 3298.0185592669723, 4196214.331737875], rel=1e-12
    )
    effect = made.truth["effect"].abs().sum()
    assert effect == pytest.approx(3.212244166043681, rel=1e-12)
    assert made.table["age"].sum() == pytest.approx(680.6)


def test_bytes_do_not_depend_on_the_number_of_threads():
    made = []
    for n_threads in (1, 2, 3):
        with threadpool_limits(n_threads):
            cohort = make_cohort(6, random_state=4)
        made.append((cohort.features.tobytes(), cohort.connectomes.tobytes()))
    assert made[0] == made[1] == made[2]


def test_shapes_names_and_units(cohort):
    assert cohort.features.shape == (74, 160, 1)
    assert (cohort.feature_names, cohort.classes) == (("fdg",), STAGES)
    row = cohort.table.iloc[-1]
    assert row["scan"] == f"{row['participant']}_{row['session']}"
    assert set(cohort.table["session"]) == {"ses-M00", "ses-M12", "ses-M24"}
    assert len(set(cohort.groups)) == 40
    assert list(cohort.table)[4:] == ["age", "sex", "site"]
    assert 0.9 < np.median(cohort.features) < 1.5
    assert tuple(cohort.truth["region"]) == cohort.region_names


def test_one_feature_more_changes_nothing_in_the_others():
    alone = make_cohort(9, feature="fdg", random_state=5)
    several = make_cohort(9, feature=["thickness", "volume", "fdg"], random_state=5)
    assert np.array_equal(several.features[..., 2:], alone.features)
    assert np.array_equal(several.connectomes, alone.connectomes)
    truth = several.truth
    assert np.array_equal(truth["effect_fdg"], alone.truth["effect"])
    assert np.array_equal(truth["effect"], truth["effect_thickness"], equal_nan=True)


def test_the_mean_seed_loses_the_effect_asked_for():
    made = make_cohort(15, effect=0.2, feature="volume")
    healthy = make_cohort(15, effect=0.0, feature="volume")
    assert (healthy.truth["effect"] == 0).all()
    relative = made.truth["effect"] / healthy.features[..., 0].mean(axis=0)
    assert relative[made.truth["seed"]].mean() == pytest.approx(-0.2, abs=0.01)


def test_group_difference_follows_the_truth():
    made = make_cohort(
        400,
        atlas="desikan82",
        shares={"CN": 1, "AD": 1},
        visit_shares=(1,),
        random_state=3,
    )
    assert made.classes == ("CN", "AD")
    values, effect = made.features[..., 0], made.truth["effect"].to_numpy()
    ill = made.y == "AD"
    change = values[ill].mean(axis=0) - values[~ill].mean(axis=0)
    error = values.std(axis=0) * np.sqrt(2 / 200)
    # Both groups share one difference in age and in the people's overall level;
    # of 82 normal deviates the largest is about 3.
    shift = np.median(change - effect)
    assert abs(shift) < 0.02
    assert np.abs((change - effect - shift) / error).max() < 4


def test_thickness_has_no_subcortex():
    made = make_cohort(6, feature="thickness")
    assert np.isnan(made.features[:, 148:]).all()
    assert made.measured[:, :148].all()
    assert made.truth["effect"].isna().tolist() == [False] * 148 + [True] * 12


def test_seeds_by_name_and_a_users_own_atlas():
    made = make_cohort(8, seeds=["lh_G_precuneus", "Right-Caudate"])
    planted = made.truth.loc[made.truth["seed"], "region"]
    assert list(planted) == ["ctx_lh_G_precuneus", "Right-Caudate"]
    own = load_atlas("desikan82").regions[40:].reset_index(drop=True)
    made = make_cohort(6, atlas=Atlas("own", own, None), seeds=["rh_insula"])
    assert (made.n_rois, made.truth["seed"].sum()) == (42, 1)
    with pytest.raises(RegionNameError, match="lh_nowhere"):
        make_cohort(6, seeds=["lh_nowhere"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"feature": "age"}, r"feature must be one of 'fdg', .* got 'age'"),
        ({"effect": 0.7}, r"effect must be between 0 and 0\.5; got 0\.7"),
        ({"n_people": 3}, r"the number of shares above 0; got n_people 3 and"),
        ({"shares": {"MCI": 1}}, r"shares must be one of 'AD', .*'MCI'"),
        ({"visit_shares": (0, 0)}, r"shares must be 0 or more"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        make_cohort(**{"n_people": 6, **arguments})


def test_an_atlas_without_centroids_is_refused():
    flat = load_atlas("desikan82").regions.drop(columns=["x", "y", "z"])
    with pytest.raises(ParameterError, match="no coordinates for some regions"):
        make_cohort(6, atlas=Atlas("flat", flat, None))


def test_divide_is_complete_and_close_to_the_shares():
    paper = [numbers[0] for numbers in DEMOGRAPHICS.values()]
    assert split_people_by_shares(1385, paper).tolist() == [345, 186, 461, 231, 162]
    assert split_people_by_shares(17, paper).sum() == 17
    assert split_people_by_shares(5, paper).tolist() == [1] * 5
    assert split_people_by_shares(4, [0.5, 0.0, 0.5]).tolist() == [2, 0, 2]
