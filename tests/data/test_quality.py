"""Planted faults are found in the scan that has them, and in no other."""

from dataclasses import replace

import numpy as np
import pytest

from brainlsap.data import Cohort, quality_table
from brainlsap.data.quality import (
    list_odd_unit_texts,
    list_swapped_scans_by_value,
    list_value_range_sentences,
)
from brainlsap.simulation import make_cohort


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(24, atlas="desikan82", feature=["fdg", "thickness"])


def change(cohort, connectomes=None, features=None):
    """Return the cohort with arrays changed by functions."""
    W, X = np.array(cohort.connectomes), np.array(cohort.features)
    for values, function in ((W, connectomes), (X, features)):
        if function:
            function(values)
    return replace(cohort, connectomes=W, features=X)


def check_only(table, row, flag):
    """The flag stands at one scan, and nothing at the others."""
    assert flag in table["flags"].iloc[row]
    assert set(table.drop(table.index[row])["flags"]) <= {""}


def test_a_simulated_cohort_has_no_flags(cohort):
    table = quality_table(cohort)
    assert set(table["flags"]) == {""}
    assert table.index.tolist() == cohort.table["scan"].tolist()
    W, row = cohort.connectomes[3], table.iloc[3]
    assert row["streamlines"] == np.triu(W).sum()
    assert row["density"] == (W[np.triu_indices(82, 1)] > 0).mean()
    assert row["diagonal"] == row["isolated"] == 0
    assert row["thickness_missing"] == 0  # the subcortex has none in anybody


def lateral(n_scans, noise, seed=0):
    """Return a cohort whose regions differ between the sides by as much as 1."""
    rng = np.random.default_rng(seed)
    names = [f"{side}h_{i}" for side in "lr" for i in range(30)]
    usual = rng.normal(3, 0.5, 60)
    X = usual + noise * rng.normal(size=(n_scans, 60))
    W = rng.poisson(rng.gamma(1, 20, (60, 60)), (n_scans, 60, 60))
    W = np.triu(W, 1) + np.triu(W, 1).transpose(0, 2, 1)
    labels = ["CN", "AD"] * (n_scans // 2)
    return Cohort.from_arrays(W, X, labels, atlas=names, feature_names=["fdg"])


def test_exchanged_hemispheres_are_found_in_connectomes_and_pet():
    cohort = lateral(40, 0.4)
    mirror = cohort.atlas.homotopic

    def swap(W):
        W[5] = W[5][np.ix_(mirror, mirror)]

    def swap_values(X):
        X[[9, 30]] = X[[9, 30]][:, mirror]

    table = quality_table(change(cohort, swap, swap_values))
    flag = "left and right may have been swapped"
    assert f"connectome: {flag}" in table["flags"].iloc[5]
    found = table["flags"].str.contains(f"fdg: {flag}")
    assert np.flatnonzero(found).tolist() == [9, 30]
    assert table.attrs["notes"] == []


def test_scans_that_lack_single_values_are_not_unlike_the_others(cohort):
    sides = np.random.default_rng(0).normal(0, 0.1, 82)

    def remove_and_swap(X):
        X[..., 0] += sides - sides[cohort.atlas.homotopic]
        X[1, :2, 0], X[2, :9, 0], X[3, 4, 0] = np.nan, np.nan, np.nan
        X[[3, 5]] = X[[3, 5]][:, cohort.atlas.homotopic]

    table = quality_table(change(cohort, None, remove_and_swap))
    assert np.flatnonzero(table["flags"] != "").tolist() == [1, 2, 3, 5]
    assert np.flatnonzero(table["unlike"]).tolist() == [2, 3, 5]
    scans = cohort.table["scan"]
    assert list_swapped_scans_by_value(table["swapped"]) == {
        "fdg": [scans[3], scans[5]]
    }


def test_one_number_without_its_decimal_point_hides_no_exchanged_scan():
    cohort = lateral(40, 0.4)
    mirror = cohort.atlas.homotopic

    def swap_and_mistype(X):
        X[9] = X[9][mirror]
        X[20, 3] *= 10_000

    table = quality_table(change(cohort, None, swap_and_mistype))
    found = table["flags"].str.contains("fdg: left and right may have been swapped")
    assert np.flatnonzero(found).tolist() == [9]


@pytest.mark.parametrize("n_scans", [10, 50])
def test_false_alarms_of_exchanged_hemispheres_are_rare(n_scans):
    """At most 1 in 1,000 scans, and none where the sides hardly differ."""
    n_flags = n_found = n_silent = 0
    noises = [0.3, 0.6, 1, 1.5, 2, 4] * (60 // n_scans)
    for seed, noise in enumerate(noises):
        cohort = lateral(n_scans, noise, seed)
        W = np.broadcast_to(cohort.connectomes[0], cohort.connectomes.shape)
        cohort = replace(cohort, connectomes=W)
        n_flags += quality_table(cohort)["flags"].str.contains("swapped").sum()
        X = np.array(cohort.features)
        X[0] = X[0][cohort.atlas.homotopic]
        table = quality_table(replace(cohort, features=X))
        n_found += "fdg: left and right may" in table["flags"].iloc[0]
        n_silent += any(one.startswith("fdg: left and") for one in table.attrs["notes"])
    assert n_flags <= len(noises) * n_scans / 1000
    # found, or said that it cannot be told
    assert n_found + n_silent >= 0.98 * len(noises)
    assert n_found >= len(noises) / 6


def test_one_persons_exchanged_scans_do_not_vouch_for_each_other():
    cohort = lateral(40, 0.4)
    X = np.array(cohort.features)
    X[:12] = X[:12][:, cohort.atlas.homotopic]
    people = ["a"] * 12 + [f"b{i}" for i in range(28)]
    table = cohort.table.assign(participant=people)
    flags = quality_table(replace(cohort, features=X, table=table))["flags"]
    found = flags.str.contains("fdg: left and right may")
    assert found[:12].all()
    assert not found[12:].any()


def test_connectomes(cohort):
    def cut(W):
        W[4, 7], W[4, :, 7] = 0, 0

    table = quality_table(change(cohort, connectomes=cut))
    check_only(table, 4, f"1 region without connections: {cohort.region_names[7]}")

    def cut_in_all(W):
        W[:, 7], W[:, :, 7] = 0, 0

    table = quality_table(change(cohort, connectomes=cut_in_all))
    assert set(table["flags"]) == {""}
    assert (table["isolated"] == 1).all()
    assert any(cohort.region_names[7] in note for note in table.attrs["notes"])

    def scramble(W):
        order = np.random.default_rng(0).permutation(82)
        W[6] = W[6][np.ix_(order, order)]

    table = quality_table(change(cohort, connectomes=scramble))
    assert (
        "connectome very different from the connectomes of other scans"
        in table["flags"].iloc[6]
    )
    assert "order of its rows" in table["flags"].iloc[6]
    assert table["connectome_deviation"].idxmax() == table.index[6]

    def add_diagonal(W):
        np.fill_diagonal(W[2], W[2].sum() / 2 / 82)

    table = quality_table(change(cohort, connectomes=add_diagonal))
    assert table["diagonal"].iloc[2] == pytest.approx(0.5)

    def half_in_logarithms(W):
        W[:10] = np.log1p(W[:10])

    table = quality_table(change(cohort, connectomes=half_in_logarithms))
    told = table["flags"].str.contains("the weights may be logarithms", regex=False)
    assert np.flatnonzero(told).tolist() == [*range(10)]


def test_features(cohort):
    def centimetres(X):
        X[3, :, 1] /= 10

    table = quality_table(change(cohort, features=centimetres))
    assert "thickness very different from other scans" in table["flags"].iloc[3]
    check_only(table, 3, "thickness has implausible values in 68 regions")

    def fill(X):
        X[8, :30, 0] = 1.0

    table = quality_table(change(cohort, features=fill))
    assert "in 30 regions" in table["flags"].iloc[8]
    assert table["fdg_equal"].iloc[8] == 30

    def remove(X):
        X[1, :, 1] = np.nan

    table = quality_table(change(cohort, features=remove))
    assert table["flags"].iloc[1].startswith("thickness missing in 68 regions: ")

    def remove_one(X):
        X[1, 7, 0], X[2, 9, 0] = np.nan, 0

    flags = quality_table(change(cohort, features=remove_one))["flags"]
    assert flags.iloc[1] == f"fdg missing in 1 region: {cohort.region_names[7]}"
    assert (
        f"fdg filled with zero in 1 region: {cohort.region_names[9]}" in flags.iloc[2]
    )

    def lower(X):
        X[5, 10:40, 0] *= 0.5
        X[5, 20, 0] = 0.05

    flag = quality_table(change(cohort, features=lower))["flags"].iloc[5]
    assert int(flag.partition(", lower in ")[2].split(")")[0]) >= 30
    far_text = flag.partition("most of all in ")[2]
    assert f"{cohort.region_names[20]} (0.05; in other scans " in far_text


def test_few_scans_and_a_shared_connectome(cohort):
    few = cohort.select(np.arange(5))
    assert (quality_table(few)["fdg_deviation"] == 0).all()
    W = np.broadcast_to(few.connectomes[0], few.connectomes.shape)
    table = quality_table(replace(few, connectomes=W))
    assert table["density"].nunique() == 1
    assert "connectome_deviation" not in table
    assert set(table["flags"]) == {""}


def test_one_value_far_from_those_of_others_is_named():
    cohort = make_cohort(20, atlas="desikan82", random_state=0)
    values = np.array(cohort.features)
    assert (quality_table(cohort)["fdg_outliers"] == 0).all()
    values[3, 7] = -8000.0
    cohort = replace(cohort, features=values, feature_names=("gmv",))
    flags = quality_table(cohort)["flags"]
    others = np.delete(values[:, 7, 0], 3)
    assert flags.iloc[3] == (
        f"gmv very different from other scans in {cohort.region_names[7]} "
        f"(-8000; in other scans {others.min():.3g} to {others.max():.3g}). "
        "Correct the values or write n/a"
    )
    assert (flags.drop(flags.index[3]) == "").all()


def test_an_implausible_value_is_given_with_its_region():
    cohort = make_cohort(20, atlas="desikan82", random_state=0)
    values = np.array(cohort.features)
    values[3, 7] = 13.2
    flag = quality_table(replace(cohort, features=values))["flags"].iloc[3]
    region = cohort.region_names[7]
    assert (
        f"fdg has implausible values in 1 region: {region} (13.2; in other scans "
        in flag
    )
    assert "very different" not in flag  # the value is named once


def test_values_are_described_and_odd_units_named(cohort):
    about = list_value_range_sentences(cohort)
    assert [text.partition(" (")[0] for text in about] == ["fdg", "thickness"]
    assert list_odd_unit_texts(cohort) == []

    def shift(X):
        X[:5, :, 0] *= 5  # SUV, no ratios
        X[7, 3, 1] = -0.1

    found = list_odd_unit_texts(change(cohort, features=shift))
    assert "fdg" in found[0]
    assert f"in 5 of {cohort.n_scans} scans" in found[0]
    assert len(found) == 1  # one value below 0 is an error of one cell

    def shift_scores(X):
        X[:, :20, 1] -= 3

    found = list_odd_unit_texts(change(cohort, features=shift_scores))
    assert "thickness" in found[0]
    assert " values are below 0" in found[0]
    own = replace(change(cohort, features=shift), feature_names=("fdg_z", "w"))
    assert (
        list_value_range_sentences(own) == list_odd_unit_texts(own) == []
    )  # of one's own


def test_missing_connectomes_have_no_isolated_regions():
    features = np.random.default_rng(0).random((6, 5))
    cohort = Cohort.from_arrays(None, features, [*"xyzxyz"], atlas=list("abcde"))
    notes = quality_table(cohort).attrs["notes"]
    assert not any("connectome" in note for note in notes)
