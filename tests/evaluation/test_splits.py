import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedGroupKFold

from brainlsap.evaluation import check_splits, make_splits, read_splits, write_splits
from brainlsap.exceptions import FileFormatError, SplitError


def draw_people(seed, most_visits=4, changing=False):
    rng = np.random.default_rng(seed)
    n_classes, n_folds = int(rng.integers(2, 6)), int(rng.integers(2, 8))
    label = np.concatenate(
        [
            np.repeat(np.arange(n_classes), n_folds),
            rng.choice(n_classes, rng.integers(5, 120)),
        ]
    )
    visits = rng.integers(1, most_visits + 1, len(label))
    groups, y = np.repeat(np.arange(len(label)), visits), np.repeat(label, visits)
    if changing:
        last = np.flatnonzero(np.diff(groups, append=-1))
        later = last[visits > 1][::3]
        y[later] = (y[later] + 1) % n_classes
    return y.astype(str), groups.astype(str), n_folds


def count_people(y, groups, rows):
    frame = pd.DataFrame({"y": y[rows], "person": groups[rows]})
    return frame.groupby("y")["person"].nunique()


def worst_share(y, splits):
    """Largest difference between a class's share of a fold and of all scans."""
    names = np.unique(y)
    overall = np.array([(y == name).mean() for name in names])
    shares = [[(y[test] == name).mean() for name in names] for _, test in splits]
    return np.abs(np.array(shares) - overall).max()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), changing=st.booleans())
def test_folds_partition_scans_and_keep_people_whole(seed, changing):
    y, groups, n_folds = draw_people(seed, changing=changing)
    splits = make_splits(y, groups, n_folds, random_state=seed)
    tested = np.concatenate([test for _, test in splits])
    np.testing.assert_array_equal(np.sort(tested), np.arange(len(y)))
    for train, test in splits:
        assert not set(groups[train]) & set(groups[test])
        assert len(train) + len(test) == len(y)
        assert set(y[test]) == set(y)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_one_visit_each_counts_differ_by_at_most_one(seed):
    y, groups, n_folds = draw_people(seed, most_visits=1)
    splits = make_splits(y, groups, n_folds, random_state=seed)
    counts = pd.DataFrame([count_people(y, groups, test) for _, test in splits])
    assert (counts.max() - counts.min()).max() <= 1
    sizes = [len(test) for _, test in splits]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("changing", [False, True])
def test_several_visits_balance_no_worse_than_scikit_learn(changing):
    for seed in range(14):
        y, groups, n_folds = draw_people(seed, most_visits=5, changing=changing)
        ours = make_splits(y, groups, n_folds, random_state=seed)
        folds = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
        theirs = list(folds.split(y, y, groups))
        assert worst_share(y, ours) <= worst_share(y, theirs) + 1e-12


def test_same_seed_same_folds_and_another_seed_others():
    y, groups, _ = draw_people(3)
    one, same, other = (make_splits(y, groups, 2, seed) for seed in (5, 5, 6))
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(one, same, strict=True))
    assert not np.array_equal(one[0][1], other[0][1])


def test_many_kinds_of_people_are_still_dealt():
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(150), rng.integers(5, 13, 150))
    y = rng.choice(list("ABCD"), len(person))
    splits = make_splits(y, person, 3)
    sizes = [len(test) for _, test in splits]
    assert max(sizes) - min(sizes) < 0.02 * len(y)


def test_too_few_people_names_the_class_and_how_many():
    y = ["CN"] * 6 + ["AD"] * 5
    people = [*"abcdef", *"gghhi"]
    with pytest.raises(SplitError, match=r"folds \(4\), but 'AD' has 3 people"):
        make_splits(y, people, 4)


@pytest.mark.parametrize(
    ("y", "groups", "n_folds", "message"),
    [
        (["CN", "AD"], ["a", "b"], 1, "n_folds must be at least 2, got 1"),
        (["CN", "CN"], ["a", "b"], 2, "at least two classes are needed, got only 'CN'"),
        ([], [], 2, "at least two classes are needed, got none"),
        (["CN", "AD"], ["a"], 2, r"got shapes \(2,\) and \(1,\)"),
        (["CN", None], ["a", "b"], 2, "1 scans have no label or no participant"),
    ],
)
def test_impossible_requests(y, groups, n_folds, message):
    with pytest.raises(SplitError, match=message):
        make_splits(y, groups, n_folds)


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ([([0, 1], [2])], r"fold 1 has 1 person in training and test scans \(a\)"),
        ([([0, 2], [])], "fold 1 has no training or no test scans"),
        ([([0, 2], [7])], "fold 1 names row 7, but the cohort has 3 scans"),
        ([], "splits has no fold"),
    ],
)
def test_given_splits_are_checked(splits, message):
    with pytest.raises(SplitError, match=message):
        check_splits(splits, ["a", "b", "a"])


def test_round_trip_through_tsv_in_any_order_of_scans(tmp_path):
    y, groups, n_folds = draw_people(1)
    scans = [f"scan{k}" for k in range(len(y))]
    splits = make_splits(y, groups, n_folds)
    path = write_splits(
        splits, tmp_path / "splits.tsv", scans=scans, participants=groups
    )
    for before, after in zip(splits, read_splits(path, scans), strict=True):
        np.testing.assert_array_equal(before[0], after[0])
        np.testing.assert_array_equal(before[1], after[1])
    backwards = read_splits(path, scans[::-1])
    assert {scans[::-1][row] for row in backwards[0][1]} == {
        scans[row] for row in splits[0][1]
    }


def test_splits_of_another_cohort_are_refused(tmp_path):
    path = write_splits(
        [([0], [1])], tmp_path / "s.tsv", scans=["a1", "b1"], participants=["a", "b"]
    )
    with pytest.raises(SplitError, match=r"cohort has not \(b1\).*missing \(c1\)"):
        read_splits(path, ["a1", "c1"])
    doubled = path.read_text() + "1\ttrain\ta1\ta\n"
    path.write_text(doubled)
    with pytest.raises(SplitError, match="a scan is named twice"):
        read_splits(path, ["a1", "b1"])


def test_files_that_hold_no_splits_are_refused(tmp_path):
    path = tmp_path / "other.tsv"
    path.write_text("fold\tscan\n1\ta\n")
    with pytest.raises(FileFormatError, match=r"need the columns fold, part.*got fold"):
        read_splits(path, ["a"])
    with pytest.raises(FileFormatError, match="cannot be read as splits"):
        read_splits(tmp_path / "missing.tsv", ["a"])
