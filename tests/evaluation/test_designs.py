import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brainlsap.evaluation import (
    check_splits,
    count_repeats,
    hold_out_split,
    leave_one_out_splits,
    make_splits,
    read_splits,
    repeat_splits,
    split_scans_ignoring_people,
    whole_groups,
    write_splits,
)
from brainlsap.exceptions import SplitError


def draw_people(seed):
    rng = np.random.default_rng(seed)
    n_folds, n_classes = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    n_people = n_folds * n_classes + int(rng.integers(0, 60))
    person = np.repeat(np.arange(n_people), rng.integers(1, 4, n_people))
    y = np.array(list("ABCD"))[person % n_classes]
    # Some people move to another site between visits.
    site = (person * 7 + (rng.random(len(person)) < 0.2)) % 5
    return y, person.astype(str), np.array(list("vwxyz"))[site], n_folds


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_no_design_shares_a_person(seed):
    y, groups, site, n_folds = draw_people(seed)
    designs = [
        repeat_splits(y, groups, n_folds, 2, seed),
        make_splits(y, groups, n_folds, seed, balance=site),
        hold_out_split(groups, [groups[0], groups[-1]], groups),
    ]
    for splits in designs:
        check_splits(splits, groups)
    for train, test in leave_one_out_splits(site, groups):
        assert not set(groups[train]) & set(groups[test])
        assert not set(site[train]) & set(site[test])
        unused = np.setdiff1d(np.arange(len(y)), np.concatenate([train, test]))
        assert set(groups[unused]) <= set(groups[test])


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_same_seed_same_file_and_round_trip(seed, tmp_path_factory):
    y, groups, site, n_folds = draw_people(seed)
    folder = tmp_path_factory.mktemp("splits")
    scans = [f"scan{k}" for k in range(len(y))]
    files = []
    for name in ("one.tsv", "two.tsv"):
        splits = repeat_splits(y, groups, n_folds, 2, seed)
        splits += leave_one_out_splits(site, groups)[:1]
        files.append(
            write_splits(splits, folder / name, scans=scans, participants=groups)
        )
    assert files[0].read_bytes() == files[1].read_bytes()
    for before, after in zip(splits, read_splits(files[0], scans), strict=True):
        np.testing.assert_array_equal(before[0], after[0])
        np.testing.assert_array_equal(before[1], after[1])


def test_repeats_differ_and_begin_with_the_plain_folds():
    y, groups, _, n_folds = draw_people(3)
    splits = repeat_splits(y, groups, n_folds, 3, 11)
    assert count_repeats(splits) == 3
    tests = [tuple(test) for _, test in splits]
    assert len(set(tests)) == len(tests)
    plain = make_splits(y, groups, n_folds, 11)
    assert tests[:n_folds] == [tuple(test) for _, test in plain]
    for start in range(0, len(splits), n_folds):
        rows = np.concatenate([test for _, test in splits[start : start + n_folds]])
        assert sorted(rows) == list(range(len(y)))
    assert count_repeats(hold_out_split(y, ["A"], groups)) == 1


def test_sites_are_spread_like_classes():
    person = np.arange(160)
    y, site = np.array(list("AB"))[person % 2], np.array(list("vwxyz"))[person % 5]
    splits = make_splits(y, person, 4, balance=site)
    for labels in (y, site):
        counts = pd.DataFrame(
            [pd.Series(labels[test]).value_counts() for _, test in splits]
        )
        assert (counts.max() - counts.min()).max() <= 1


def test_families_and_people_stay_whole_at_once():
    people = ["a", "a", "b", "c", "d"]
    family = ["f", None, "f", "g", None]
    groups = whole_groups(people, family)
    assert groups.tolist() == ["0", "0", "0", "1", "2"]
    assert len(set(whole_groups([None, None]))) == 2


def test_scans_as_people_share_people():
    y, groups, _, n_folds = draw_people(1)
    splits = split_scans_ignoring_people(y, n_folds, 0)
    with pytest.raises(SplitError, match="in training and test scans"):
        check_splits(splits, groups)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: repeat_splits(list("AB"), list("ab"), 2, 0),
            "n_repeats must be at least 1, got",
        ),
        (
            lambda: leave_one_out_splits(["n", "n"], ["a", "b"]),
            "at least two sites, got 1 and 0",
        ),
        (
            lambda: leave_one_out_splits(["n", None, "s"], list("abc")),
            "and 1 scans without",
        ),
        (lambda: hold_out_split(["n", "s"], ["x"], list("ab")), r"\(n, s\), got 'x'"),
        (lambda: hold_out_split(["n", "s"], [], list("ab")), "got nothing"),
        (
            lambda: hold_out_split(["n", "s"], ["n"], list("aa")),
            "with n held out nobody is",
        ),
    ],
)
def test_impossible_designs(call, message):
    with pytest.raises(SplitError, match=message):
        call()
