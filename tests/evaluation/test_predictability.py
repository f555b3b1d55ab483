import numpy as np
import pandas as pd
import pytest

from brainlsap.evaluation.predictability import (
    column_score,
    find_confounds,
    find_telling_gaps,
)


def draw_people(n_people=90, seed=0):
    rng = np.random.default_rng(seed)
    visits = rng.integers(1, 4, n_people)
    person = np.repeat(np.arange(n_people), visits)
    return person, np.array(["CN", "MCI", "AD"])[person % 3]


def test_what_tells_everything_scores_one():
    person, label = draw_people()
    found = column_score(np.char.lower(label), label, person)
    assert found.score == 1
    assert found.tells
    assert found.n_people == 90


def test_what_tells_nothing_is_chance():
    person, label = draw_people()
    constant = column_score(np.zeros(len(label)), label, person)
    assert constant.score == pytest.approx(1 / 3)
    assert not constant.tells


def test_p_values_of_nothing_are_even():
    person, label = draw_people()
    draws = np.random.default_rng(1).integers(0, 4, (40, len(label)))
    p_values = np.array([column_score(one, label, person).p_value for one in draws])
    assert 0.3 < p_values.mean() < 0.7
    assert (p_values < 0.1).mean() < 0.25


def test_a_person_counts_once():
    person, label = draw_people()
    later = pd.Series(person).duplicated().to_numpy()
    site = np.where(later, label, "x")
    assert column_score(site, label, person).score == pytest.approx(1 / 3)


def test_numbers_are_binned_and_gaps_are_a_value():
    person, label = draw_people()
    rng = np.random.default_rng(0)
    age = 60 + 10 * (label == "AD") + rng.normal(0, 2, len(label))
    age[label == "MCI"] = np.nan
    found = column_score(age, label, person)
    assert str(found).startswith("balanced accuracy 1.00 (chance 0.33")


def test_the_label_under_its_own_name_is_no_confound(cohort):
    from dataclasses import replace

    own = replace(
        cohort,
        label_name="sex",
        table=cohort.table.assign(sex=cohort.y).drop(columns="age"),
    )
    findings, skipped = find_confounds(own)
    assert findings == []
    assert "no column of site" in skipped["label from one column"]


def test_each_column_is_tried_and_told(cohort):
    findings, skipped = find_confounds(cohort)
    assert [one.evidence.split()[0] for one in findings] == ["age", "sex"]
    assert {one.severity for one in findings} == {"note"}
    assert skipped == {}


def test_a_region_that_nobody_has_is_no_gap(cohort):
    assert np.isnan(cohort.features[:, 5]).all()
    assert find_telling_gaps(cohort) == []
