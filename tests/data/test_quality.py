"""Planted faults are found in the scan that has them, and in no other."""

import numpy as np
import pytest

from brainlsap.data.atlas import load_atlas
from brainlsap.data.cohort import Cohort
from brainlsap.data.mirror import asymmetry_scores, mirror_positions
from brainlsap.data.quality import (
    quality_table,
    region_quality_table,
    robust_deviation,
)
from brainlsap.data.simulate import make_cohort


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(24, atlas="desikan82", feature=["fdg", "thickness"])


def change(cohort, connectomes=None, features=None):
    """Return the cohort with arrays changed by functions."""
    W, X = np.array(cohort.connectomes), np.array(cohort.features)
    if connectomes:
        connectomes(W)
    if features:
        features(X)
    return Cohort(
        *(W, X, cohort.table, cohort.atlas, cohort.feature_names, cohort.classes)
    )


def check_only(table, row, flag):
    """The flag stands at one scan, and nothing at the others but its twin."""
    assert flag in table["flags"].iloc[row]
    others = table.drop(table.index[row])["flags"]
    assert set(others[~others.str.contains("identical")]) <= {""}


def other_person(cohort, row):
    return int(np.flatnonzero(cohort.groups != cohort.groups[row])[-1])


def test_a_simulated_cohort_has_no_flags(cohort):
    table = quality_table(cohort)
    assert set(table["flags"]) == {""}
    assert table.index.tolist() == cohort.table["scan"].tolist()
    W = cohort.connectomes[3]
    row = table.iloc[3]
    assert row["streamlines"] == np.triu(W).sum()
    assert row["density"] == (W[np.triu_indices(82, 1)] > 0).mean()
    assert row["asymmetry"] == row["diagonal"] == row["isolated"] == 0
    assert (table["mirrored"] >= 0).all()
    assert row["thickness_missing"] == 14


def test_left_and_right_swapped(cohort):
    mirror = mirror_positions(cohort.atlas)

    def swap(W):
        W[5] = W[5][np.ix_(mirror, mirror)]

    def swap_values(X):
        X[9] = X[9][mirror]

    table = quality_table(change(cohort, connectomes=swap))
    check_only(table, 5, "connectome looks as if left and right were swapped")
    table = quality_table(change(cohort, features=swap_values))
    assert (table["fdg_mirrored"].drop(table.index[9]) >= 0).all()


def test_copies_of_other_people(cohort):
    other = other_person(cohort, 0)

    def copy(W):
        W[0] = W[other]

    table = quality_table(change(cohort, connectomes=copy))
    scans = table.index
    assert table["connectome_twin"].iloc[[0, other]].tolist() == [
        scans[other],
        scans[0],
    ]
    assert f"connectome identical to {scans[other]}" in table["flags"].iloc[0]

    def copy_values(X):
        X[0, :, 1] = X[other, :, 1]

    table = quality_table(change(cohort, features=copy_values))
    assert table["thickness_twin"].iloc[0] == scans[other]
    assert (table["fdg_twin"] == "").all()


def test_connectomes(cohort):
    def cut(W):
        W[4, 7], W[4, :, 7] = 0, 0

    table = quality_table(change(cohort, connectomes=cut))
    check_only(table, 4, "1 regions without links")

    def scramble(W):
        order = np.random.default_rng(0).permutation(82)
        W[6] = W[6][np.ix_(order, order)]

    table = quality_table(change(cohort, connectomes=scramble))
    assert "connectome far from the others" in table["flags"].iloc[6]
    assert table["connectome_deviation"].idxmax() == table.index[6]

    def add_diagonal(W):
        np.fill_diagonal(W[2], W[2].sum() / 2 / 82)

    table = quality_table(change(cohort, connectomes=add_diagonal))
    assert table["diagonal"].iloc[2] == pytest.approx(0.5)


def test_features(cohort):
    def centimetres(X):
        X[3, :, 1] /= 10

    table = quality_table(change(cohort, features=centimetres))
    flags = table["flags"].iloc[3]
    assert "thickness implausible in 68 regions" in flags
    assert "thickness far from the others" in flags
    check_only(table, 3, "implausible")

    def fill(X):
        X[8, :30, 0] = 1.0

    table = quality_table(change(cohort, features=fill))
    assert "fdg one value in 30 regions" in table["flags"].iloc[8]
    assert table["fdg_equal"].iloc[8] == 30

    def remove(X):
        X[1, :, 1] = np.nan

    table = quality_table(change(cohort, features=remove))
    assert table["flags"].iloc[1] == "thickness not measured"


def test_few_scans_and_a_shared_connectome(cohort):
    few = cohort.select(np.arange(5))
    table = quality_table(few)
    assert (table["fdg_deviation"] == 0).all()
    shared = Cohort(
        *(np.broadcast_to(few.connectomes[0], few.connectomes.shape), few.features),
        *(few.table, few.atlas, few.feature_names, few.classes),
    )
    table = quality_table(shared)
    assert table["density"].nunique() == 1
    assert "connectome_twin" not in table
    assert set(table["flags"]) == {""}


def test_regions(cohort):
    def spoil(X):
        X[:, 4, 0] = 1.5

    def cut(W):
        W[::2, 9], W[::2, :, 9] = 0, 0

    table = region_quality_table(change(cohort, cut, spoil))
    name = cohort.region_names
    assert table.index[table["fdg_constant"]].tolist() == [name[4]]
    n = cohort.n_scans
    assert table["isolated"][name[9]] == len(range(0, n, 2)) / n
    assert table["thickness_missing"].tolist() == [0.0] * 68 + [1.0] * 14
    assert not table["thickness_constant"].any()


def test_mirror_positions_go_back_and_forth():
    for name in ("destrieux160", "desikan82"):
        atlas = load_atlas(name)
        mirror = mirror_positions(atlas)
        np.testing.assert_array_equal(mirror[mirror], np.arange(len(atlas)))
        assert (mirror != np.arange(len(atlas))).all()


def test_a_region_without_twin_faces_itself(tiny):
    assert mirror_positions(tiny).tolist() == [3, 4, 5, 0, 1, 2, 6]


def test_own_scans_do_not_vouch_for_each_other():
    """One person's swapped scans are many, and still found."""
    values = np.tile([3.0, 1.0], (12, 1))
    values[:5] = [1.0, 3.0]
    people = np.array(["a"] * 5 + list("bcdefgh"))
    scores = asymmetry_scores(values, np.array([1, 0]), people)
    np.testing.assert_allclose(scores[:5], -1)


def test_robust_deviation():
    values = np.array([[1.0, np.nan, 5], [2, np.nan, 5], [3, np.nan, 5]])
    found = robust_deviation(values)
    np.testing.assert_allclose(found[:, 0], [-1 / 1.4826, 0, 1 / 1.4826])
    assert np.isnan(found[:, 1]).all()
    assert (found[:, 2] == 0).all()
