"""People: shares, visits, and that draws do not depend on order."""

import numpy as np
import pytest

from brainlsap.data.classes import STAGES
from brainlsap.data.simulated_people import (
    AGE,
    MALE_SHARE,
    PAPER_SHARES,
    divide,
    draw_stages,
    make_people,
    random_stream,
)
from brainlsap.exceptions import ParameterError


def test_streams_differ_by_seed_name_and_key():
    draws = {
        random_stream(seed, name, *keys).normal()
        for seed in (0, 1)
        for name in ("network", "count")
        for keys in ((), (0,), (1,), (0, 1), (1, 0))
    }
    assert len(draws) == 20


def test_streams_do_not_depend_on_order():
    first = [random_stream(5, "x", key).normal() for key in (0, 1, 2)]
    again = [random_stream(5, "x", key).normal() for key in (2, 1, 0)]
    assert first == again[::-1]


def test_numpy_seeds_are_whole_numbers_too():
    assert random_stream(np.int64(4), "x").normal() == random_stream(4, "x").normal()


@pytest.mark.parametrize("seed", [-1, 1.5, None, "0"])
def test_other_seeds_are_refused(seed):
    with pytest.raises(
        ParameterError, match=r"random_state must be a whole number of at least 0, got"
    ):
        random_stream(seed, "x")


@pytest.mark.parametrize("n_people", [5, 17, 120, 1385])
def test_divide_is_complete_and_close_to_the_shares(n_people):
    shares = list(PAPER_SHARES.values())
    counts = divide(n_people, shares)
    exact = n_people * np.array(shares) / sum(shares)
    assert counts.sum() == n_people
    assert counts.min() >= 1
    assert np.abs(counts - exact).max() < (1.0 if n_people > 17 else 2.0)


def test_divide_reproduces_the_papers_numbers():
    assert divide(1385, list(PAPER_SHARES.values())).tolist() == [
        345,
        186,
        461,
        231,
        162,
    ]


def test_divide_leaves_a_share_of_zero_empty():
    assert divide(4, [0.5, 0.0, 0.5]).tolist() == [2, 0, 2]


def test_divide_refuses_fewer_people_than_groups():
    with pytest.raises(
        ParameterError, match=r"n_people must be at least 3, one for every .*, got 2"
    ):
        divide(2, [1, 1, 1])


@pytest.mark.parametrize("shares", [[0.5, -0.1], [0, 0], [float("nan"), 1]])
def test_divide_refuses_impossible_shares(shares):
    with pytest.raises(
        ParameterError, match=r"shares must be finite, not negative and not all 0"
    ):
        divide(10, shares)


def test_stages_follow_shares_and_are_shuffled():
    stages = draw_stages(200, None, 0)
    assert np.bincount(stages).tolist() == [50, 27, 67, 33, 23]
    assert not np.array_equal(stages, np.sort(stages))


def test_stages_take_the_callers_shares():
    stages = draw_stages(30, {"CN": 2, "AD": 1}, 0)
    assert np.bincount(stages).tolist() == [20, 0, 0, 0, 10]


def test_an_unknown_stage_is_refused():
    with pytest.raises(
        ParameterError, match=r"shares must name stages among CN, SMC.*; got 'MCI'"
    ):
        draw_stages(30, {"CN": 1, "MCI": 1}, 0)


def test_people_come_one_to_three_times_a_year_apart():
    people = make_people(60)
    visits = people.groupby("person")["visit"]
    assert visits.count().value_counts().to_dict() == {1: 24, 2: 21, 3: 15}
    assert all(list(times) == list(range(len(times))) for _, times in visits)
    grown = people.groupby("person")["age"].agg(lambda age: age.max() - age.min())
    assert grown.to_numpy() == pytest.approx(visits.count().to_numpy() - 1)


def test_people_keep_stage_sex_and_site():
    people = make_people(60)
    fixed = people.groupby("person")[["stage", "start", "sex", "site"]].nunique()
    assert (fixed == 1).all(axis=None)


def test_demographics_are_those_stated():
    people = make_people(3000, visits=(1,), n_sites=3)
    for stage, name in enumerate(STAGES):
        group = people[people["stage"] == stage]
        mean, deviation = AGE[name]
        # Ages are cut at 55 and 92, which the widest group feels a little.
        assert group["age"].mean() == pytest.approx(mean, abs=1.2)
        assert group["age"].std() == pytest.approx(deviation, rel=0.15)
        assert (group["sex"] == "M").mean() == pytest.approx(MALE_SHARE[name], abs=0.07)
    assert people["age"].between(55, 92).all()
    site_shares = people.groupby("stage")["site"].value_counts(normalize=True)
    assert site_shares.to_numpy() == pytest.approx(1 / 3, abs=0.1)


def test_conversion_moves_people_on_but_never_back():
    people = make_people(200, conversion=0.4, random_state=2)
    last = people.groupby("person")["stage"].last()
    start = people.groupby("person")["start"].first()
    assert (last >= start).all()
    assert (last > start).sum() > 20
    assert people["stage"].max() == 4
    assert (make_people(200)["stage"] == make_people(200)["start"]).all()


def test_people_are_the_same_for_a_seed_and_others_for_another():
    assert make_people(40, random_state=1).equals(make_people(40, random_state=1))
    assert not make_people(40, random_state=1).equals(make_people(40, random_state=2))


def test_no_site_is_refused():
    with pytest.raises(ParameterError, match=r"n_sites must be at least 1, got 0"):
        make_people(10, n_sites=0)


def test_conversion_must_be_a_probability():
    with pytest.raises(
        ParameterError, match=r"conversion must be between 0 and 1, got 1\.5"
    ):
        make_people(10, conversion=1.5)
