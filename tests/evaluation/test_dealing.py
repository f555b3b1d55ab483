from itertools import product

import numpy as np
import pytest

from brainlsap.evaluation.dealing import deal_people, imbalance, worst_imbalance


def all_dealings(visits, n_folds, loss):
    """Try every way to deal a few people: slow and obvious."""
    total, best = visits.sum(axis=0), np.inf
    for fold in product(range(n_folds), repeat=len(visits)):
        scans = np.zeros((n_folds, len(total)))
        np.add.at(scans, np.array(fold), visits)
        best = min(best, loss(scans, total, n_folds).sum())
    return best


@pytest.mark.parametrize("seed", range(6))
def test_few_people_are_dealt_nearly_as_well_as_can_be(seed):
    rng = np.random.default_rng(seed)
    visits = np.zeros((9, 2), dtype=int)
    visits[np.arange(9), np.arange(9) % 2] = rng.integers(1, 4, 9)
    fold = deal_people(visits, 2, rng)
    scans = np.stack([visits[fold == one].sum(axis=0) for one in (0, 1)])
    found = worst_imbalance(scans, visits.sum(axis=0), 2).sum()
    best = all_dealings(visits, 2, worst_imbalance)
    # Eighth powers: a factor of 4 is a deviation larger by a fifth.
    assert found <= 4 * best + 1e-12


def test_rare_class_reaches_every_fold_although_one_person_has_most_visits():
    visits = np.array([[0, 9], [0, 1], [0, 1], *[[2, 0]] * 11])
    fold = deal_people(visits, 3, np.random.default_rng(0))
    assert set(fold[:3]) == {0, 1, 2}


def test_even_folds_have_no_imbalance_and_an_absent_class_costs_most():
    total = np.array([6, 3])
    assert imbalance(np.array([2, 1]), total, 3) == 0
    assert worst_imbalance(np.array([2, 1]), total, 3) == 0
    assert imbalance(np.array([3, 0]), total, 3) > imbalance(np.array([6, 3]), total, 3)
