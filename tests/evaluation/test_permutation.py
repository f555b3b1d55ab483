import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from brainlsap.evaluation import permutation_test
from brainlsap.evaluation.permutation import permute_labels
from brainlsap.exceptions import ParameterError


def test_visits_move_together_and_classes_keep_their_people():
    person = np.repeat(np.arange(20), np.arange(20) % 3 + 1)
    y = np.array(["CN", "AD"], dtype=object)[person % 2]
    permuted = permute_labels(y, person, np.random.default_rng(0))
    assert (permuted != y).any()
    labels = [set(permuted[person == one]) for one in range(20)]
    assert all(len(one) == 1 for one in labels)
    assert sum(one == {"AD"} for one in labels) == 10


def test_changing_labels_go_to_people_with_as_many_visits():
    person = np.repeat(np.arange(12), 2)
    y = np.array(["CN"] * 24, dtype=object)
    y[[1, 3]] = "AD"
    y = np.append(y, ["AD", "AD", "AD"])
    person = np.append(person, [12, 12, 12])
    permuted = permute_labels(y, person, np.random.default_rng(1))
    assert list(permuted[-3:]) == ["AD"] * 3
    assert (permuted[:24:2] == "CN").all()
    assert (permuted == "AD").sum() == 5


def test_a_planted_answer_is_better_than_chance(cohort, nearest_mean):
    found = permutation_test(nearest_mean, cohort, 2, 19)
    assert found.p_value == 0.05
    assert found.score > 0.9
    error = found.permuted.std(ddof=1) / np.sqrt(19)
    assert abs(found.permuted.mean() - 0.5) < 3 * error


def test_what_knows_nothing_is_not(cohort):
    assert permutation_test(DummyClassifier(), cohort, 2, 3).p_value == 1


def test_impossible_requests(cohort):
    with pytest.raises(ParameterError, match="n_permutations must be at least"):
        permutation_test(DummyClassifier(), cohort, 2, 0)
    with pytest.raises(ParameterError, match=r"score must be one of .*got 'x'"):
        permutation_test(DummyClassifier(), cohort, 2, score="x")
