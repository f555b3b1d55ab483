"""make_cohort: the same for a seed, plausible, and with the answer it states."""

import numpy as np
import pandas as pd
import pytest

from brainlsap.data.atlas import Atlas, load_atlas
from brainlsap.data.classes import STAGES
from brainlsap.data.simulate import make_cohort
from brainlsap.data.simulated_networks import pairwise_distance
from brainlsap.data.simulated_regions import find_twins, region_positions
from brainlsap.exceptions import ParameterError, RegionNameError


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(40, random_state=1)


def upper_triangle(matrices):
    rows, columns = np.triu_indices(matrices.shape[-1], 1)
    return matrices[..., rows, columns]


def test_shapes_names_and_units(cohort):
    assert cohort.n_scans == 74
    assert cohort.connectomes.shape == (74, 160, 160)
    assert cohort.features.shape == (74, 160, 1)
    assert cohort.feature_names == ("fdg",)
    assert cohort.classes == STAGES
    assert cohort.label_name == "diagnosis"
    assert list(cohort.table.columns) == [
        "scan",
        "participant",
        "session",
        "label",
        "age",
        "sex",
        "site",
    ]
    assert 0.9 < np.median(cohort.features) < 1.5
    assert cohort.measured.all()


def test_scans_are_named_by_person_and_session(cohort):
    row = cohort.table.iloc[-1]
    assert row["scan"] == f"{row['participant']}_{row['session']}"
    assert cohort.table["scan"].is_unique
    assert len(set(cohort.groups)) == 40
    assert set(cohort.table["session"]) == {"ses-M00", "ses-M12", "ses-M24"}


def test_a_seed_gives_the_same_cohort(cohort):
    again, other = make_cohort(40, random_state=1), make_cohort(40, random_state=2)
    assert np.array_equal(cohort.connectomes, again.connectomes)
    assert np.array_equal(cohort.features, again.features)
    assert cohort.table.equals(again.table)
    assert cohort.truth.equals(again.truth)
    assert not np.array_equal(cohort.connectomes, other.connectomes)


def test_one_feature_more_changes_nothing_in_the_others():
    alone = make_cohort(9, feature="fdg", random_state=5)
    several = make_cohort(9, feature=["thickness", "volume", "fdg"], random_state=5)
    turned = make_cohort(9, feature=["fdg", "volume", "thickness"], random_state=5)
    assert several.feature_names == ("thickness", "volume", "fdg")
    assert np.array_equal(several.features[..., 2:], alone.features)
    assert np.array_equal(several.features, turned.features[..., ::-1], equal_nan=True)
    assert np.array_equal(several.connectomes, alone.connectomes)


def test_counts_are_whole_and_about_as_dense_as_real_ones(cohort):
    counts = cohort.connectomes
    assert np.array_equal(counts, np.rint(counts))
    assert np.array_equal(counts, counts.transpose(0, 2, 1))
    assert not np.diagonal(counts, axis1=1, axis2=2).any()
    assert 0.25 < (upper_triangle(counts) >= 10).mean() < 0.5
    assert 300_000 < upper_triangle(counts).sum(axis=1).mean() < 600_000


def test_networks_fall_with_distance_and_join_twins(cohort):
    mean = cohort.connectomes.mean(axis=0)
    distance = pairwise_distance(region_positions(cohort.atlas))
    twins = find_twins(cohort.atlas)
    sides = cohort.atlas.regions["hemisphere"].to_numpy()
    within = np.triu(sides[:, None] == sides[None, :], 1)
    near, far = distance < 30, (distance > 60) & (distance < 90)
    assert mean[within & near].mean() > 5 * mean[within & far].mean()
    across = sides[:, None] != sides[None, :]
    is_twin = np.zeros_like(across)
    is_twin[np.arange(160), twins] = True
    ratio = np.median(mean[is_twin]) / np.median(mean[across & ~is_twin])
    assert ratio > 5


def test_hubs_have_more_streamlines_than_most(cohort):
    strength = cohort.connectomes.mean(axis=0).sum(axis=1)
    hubs = cohort.atlas.match(["Left-Thalamus", "Right-Thalamus", "Left-Putamen"])
    assert strength[hubs].min() > np.median(strength)


def test_scans_of_a_person_are_alike_but_not_identical(cohort):
    logs = np.log1p(upper_triangle(cohort.connectomes))
    alike = np.corrcoef(logs)
    same = cohort.groups[:, None] == cohort.groups[None, :]
    np.fill_diagonal(same, False)
    other = cohort.groups[:, None] != cohort.groups[None, :]
    assert alike[same].min() > alike[other].max()
    assert alike[same].max() < 0.99
    # The real BNU_1 scans: 0.975 within a person, 0.904 between people.
    assert alike[same].mean() == pytest.approx(0.96, abs=0.03)
    assert alike[other].mean() == pytest.approx(0.91, abs=0.03)


def test_features_of_a_person_are_alike_but_not_identical(cohort):
    values = cohort.features[..., 0]
    residual = values / values.mean(axis=0)
    alike = np.corrcoef(residual)
    same = cohort.groups[:, None] == cohort.groups[None, :]
    np.fill_diagonal(same, False)
    other = cohort.groups[:, None] != cohort.groups[None, :]
    assert alike[same].mean() > alike[other].mean() + 0.4
    assert alike[same].max() < 1.0


@pytest.mark.parametrize("atlas", ["destrieux160", "desikan82"])
def test_the_seeds_lose_most(atlas):
    for seed in range(3):
        truth = make_cohort(12, atlas=atlas, random_state=seed).truth
        assert list(truth.columns) == ["region", "seed", "effect"]
        assert truth["seed"].sum() == 6
        assert truth.nsmallest(6, "effect")["seed"].all()
        assert (truth["effect"] <= 0).all()
        deepest = truth.loc[truth["seed"], "effect"].mean()
        assert truth.loc[~truth["seed"], "effect"].median() > 0.1 * deepest


def test_the_mean_seed_loses_the_effect_asked_for():
    cohort = make_cohort(15, effect=0.2, feature="volume")
    healthy = make_cohort(15, effect=0.0, feature="volume", noise=0.0).features
    seeds = cohort.truth["seed"].to_numpy()
    relative = cohort.truth["effect"] / healthy[..., 0].mean(axis=0)
    assert relative[seeds].mean() == pytest.approx(-0.2, abs=0.01)


def test_group_difference_follows_the_truth():
    cohort = make_cohort(400, shares={"CN": 1, "AD": 1}, visits=(1,), random_state=3)
    values = cohort.features[..., 0]
    change = values[cohort.y == "AD"].mean(axis=0) - values[cohort.y == "CN"].mean(
        axis=0
    )
    error = values.std(axis=0) * np.sqrt(2 / 200)
    # 160 regions: the largest of so many normal deviates is about 3. Both groups
    # share one difference in age and in the people's overall level.
    shift = np.median(change - cohort.truth["effect"])
    assert abs(shift) < 0.02
    assert np.abs((change - cohort.truth["effect"] - shift) / error).max() < 4
    seeds = cohort.truth["seed"].to_numpy()
    assert change[seeds].mean() == pytest.approx(
        cohort.truth["effect"][seeds].mean(), rel=0.1
    )


def test_stages_stand_in_order_at_the_seeds():
    cohort = make_cohort(250, visits=(1,), random_state=6)
    seeds = cohort.truth["seed"].to_numpy()
    level = cohort.features[:, seeds, 0].mean(axis=1)
    means = [level[cohort.y == stage].mean() for stage in STAGES]
    assert (np.diff(means) < 0).all()


def test_disease_deepens_with_the_years():
    early = make_cohort(60, visits=(0, 0, 1), shares={"AD": 1}, noise=0.0)
    seeds = early.truth["seed"].to_numpy()
    level = early.features[:, seeds, 0].mean(axis=1).reshape(60, 3)
    far = early.features[:, ~seeds, 0].mean(axis=1).reshape(60, 3)
    assert (np.diff(level) < 0).all()
    assert (level[:, 2] / level[:, 0] < far[:, 2] / far[:, 0]).all()


def test_no_effect_and_no_spread():
    healthy = make_cohort(12, effect=0.0)
    assert (healthy.truth["effect"] == 0).all()
    local = make_cohort(12, spread=0.0).truth
    assert local.loc[~local["seed"], "effect"].abs().max() < 1e-12


def test_disease_spreads_along_the_persons_own_network():
    # Among people as ill, those whose network drains the seeds more lose more outside.
    settings = {"shares": {"AD": 1}, "visits": (1,), "noise": 0.0, "random_state": 2}
    ill, healthy = make_cohort(60, **settings), make_cohort(60, effect=0, **settings)
    loss = 1 - ill.features[..., 0] / healthy.features[..., 0]
    seeds = ill.truth["seed"].to_numpy()
    links = ill.connectomes[:, seeds][:, :, ~seeds].sum(axis=1)
    share = loss[:, ~seeds] / loss[:, seeds].sum(axis=1, keepdims=True)
    links = links / ill.connectomes.sum(axis=2).mean(axis=1, keepdims=True)
    neighbours = np.argsort(-links.mean(axis=0))[:10]
    for region in neighbours:
        assert np.corrcoef(links[:, region], share[:, region])[0, 1] > 0.8


def test_thickness_has_no_subcortex():
    cohort = make_cohort(6, feature="thickness")
    assert np.isnan(cohort.features[:, 148:]).all()
    assert cohort.measured[:, :148].all()
    assert 2.2 < np.nanmean(cohort.features) < 2.8
    effect = cohort.truth["effect"]
    assert effect[148:].isna().all()
    assert effect[:148].notna().all()


def test_truth_of_several_features():
    truth = make_cohort(6, feature=("volume", "fdg")).truth
    assert list(truth.columns) == [
        "region",
        "seed",
        "effect",
        "effect_volume",
        "effect_fdg",
    ]
    assert truth["effect"].equals(truth["effect_volume"].rename("effect"))
    alone = make_cohort(6, feature="fdg").truth
    assert truth["effect_fdg"].equals(alone["effect"].rename("effect_fdg"))


def test_named_seeds_are_planted():
    cohort = make_cohort(8, seeds=["lh_G_precuneus", "Right-Caudate"])
    planted = cohort.truth.loc[cohort.truth["seed"], "region"]
    assert list(planted) == ["ctx_lh_G_precuneus", "Right-Caudate"]


def test_fewer_classes_where_stages_are_left_out():
    assert make_cohort(8, shares={"AD": 1, "CN": 3}).classes == ("CN", "AD")


def test_conversion_reaches_the_labels():
    table = make_cohort(60, conversion=0.5).table
    assert (table.groupby("participant")["label"].nunique() > 1).any()


def test_a_users_own_atlas_serves():
    own = load_atlas("desikan82").regions[40:].reset_index(drop=True)
    cohort = make_cohort(6, atlas=Atlas("own", own, None), seeds=3)
    assert cohort.n_rois == 42
    assert cohort.truth["seed"].sum() == 3


def test_provenance_says_how(cohort):
    assert cohort.provenance["simulated"] == "make_cohort"
    assert cohort.provenance["random_state"] == 1
    assert "simulated" in cohort.notes[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"feature": "curvature"}, r"feature must be one of 'fdg', .* got 'curvature'"),
        ({"feature": []}, r"feature must name at least one feature, .* got \[\]"),
        ({"feature": ["fdg", "fdg"]}, r"each once; got \['fdg', 'fdg'\]"),
        ({"effect": 0.7}, r"effect must be between 0 and 0\.5, .* got 0\.7"),
        ({"spread": -1.0}, r"spread must be at least 0, got -1\.0"),
        ({"noise": -0.5}, r"noise must be at least 0, got -0\.5"),
        ({"n_people": 3}, r"n_people must be at least 5, .* got 3"),
        ({"n_sites": 0}, r"n_sites must be at least 1, got 0"),
        ({"random_state": -3}, r"random_state must be a whole number .* got -3"),
        ({"atlas": "aal"}, r"atlas must be one of .* got 'aal'"),
        ({"seeds": 1000}, r"seeds must be between 1 and 160"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        make_cohort(**{"n_people": 6, **arguments})


def test_an_unknown_seed_is_refused():
    with pytest.raises(RegionNameError, match="lh_nowhere"):
        make_cohort(6, seeds=["lh_nowhere"])


def test_truth_is_a_table_in_atlas_order(cohort):
    assert isinstance(cohort.truth, pd.DataFrame)
    assert tuple(cohort.truth["region"]) == cohort.region_names
    assert cohort.truth["seed"].dtype == bool
