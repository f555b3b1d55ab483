"""The slice that chooses the epoch: whole people, another one for each start."""

import numpy as np
import pytest

from brainlsap.model.inner_split import inner_split


def draw_people(n_people=31, n_classes=3, seed=0):
    """Codes of one to three visits a person, in a shuffled order; odd names."""
    rng = np.random.default_rng(seed)
    people = np.repeat(np.arange(n_people), 1 + np.arange(n_people) % 3)
    order = rng.permutation(len(people))
    people = people[order]
    return people % n_classes, np.array([f"sub-{7 * one}" for one in people])


@pytest.mark.parametrize("start", [0, 1, 4, 5, 11])
def test_people_stay_whole_and_every_scan_is_somewhere(start):
    codes, people = draw_people()
    learn, watch = inner_split(codes, people, 0.2, start, seed=3)
    assert not set(people[learn]) & set(people[watch])
    assert sorted([*learn, *watch]) == list(range(len(codes)))
    assert set(codes[learn]) == set(codes[watch]) == {0, 1, 2}


@pytest.mark.parametrize(("fraction", "expected"), [(0.2, 0.2), (0.34, 1 / 3)])
def test_the_slice_is_about_as_large_as_asked(fraction, expected):
    codes = np.arange(60) % 2
    _, watch = inner_split(codes, np.arange(60), fraction, 0, seed=0)
    assert len(watch) == round(60 * expected)


def test_at_most_half_is_watched():
    _, watch = inner_split(np.arange(40) % 2, np.arange(40), 0.9, 0, seed=0)
    assert len(watch) == 20


def test_starts_watch_different_slices_and_together_everybody():
    codes, people = draw_people()
    slices = [inner_split(codes, people, 0.25, start, 0)[1] for start in range(4)]
    assert sorted(np.concatenate(slices)) == list(range(len(codes)))
    # the next round deals the people anew
    fifth = inner_split(codes, people, 0.25, 4, 0)[1]
    assert not any(np.array_equal(fifth, one) for one in slices)


def test_same_seed_same_slice():
    codes, people = draw_people()
    for one, again in zip(
        inner_split(codes, people, 0.2, 1, 9),
        inner_split(codes, people, 0.2, 1, 9),
        strict=True,
    ):
        np.testing.assert_array_equal(one, again)
    other = inner_split(codes, people, 0.2, 1, 10)[1]
    assert not np.array_equal(other, inner_split(codes, people, 0.2, 1, 9)[1])


def test_few_people_are_not_divided():
    # 38 scans, but only 19 people
    people = np.arange(38) // 2
    learn, watch = inner_split(people % 2, people, 0.2, 0, 0)
    assert learn.tolist() == list(range(38))
    assert len(watch) == 0


def test_a_class_of_one_person_is_not_divided():
    codes = np.r_[np.arange(30) % 2, 2, 2]
    people = np.r_[np.arange(30), 30, 30]
    learn, watch = inner_split(codes, people, 0.2, 0, 0)
    assert len(learn) == 32
    assert len(watch) == 0


def test_a_rare_class_is_always_learned_from():
    codes = np.r_[np.arange(30) % 2, 2, 2]
    people = np.arange(32)
    for start in range(7):
        learn, watch = inner_split(codes, people, 0.2, start, 0)
        assert 2 in codes[learn]
        assert len(watch) > 0


def test_a_tiny_share_leaves_no_more_slices_than_people():
    codes = np.arange(27) % 2
    learn, watch = inner_split(codes, np.arange(27), 0.001, 0, 0)
    assert 1 <= len(watch) <= 3
    assert len(learn) + len(watch) == 27


def test_people_whose_class_changed_stay_whole_too():
    codes, people = draw_people(n_people=33, n_classes=2)
    codes[people == "sub-14"] = [0, 1, 1]
    for start in range(5):
        learn, watch = inner_split(codes, people, 0.2, start, 1)
        assert ("sub-14" in people[learn]) != ("sub-14" in people[watch])
