import numpy as np

from brainlsap.evaluation import twins
from brainlsap.evaluation.twins import (
    ALIKE,
    alike_rows,
    find_twins,
    identical_rows,
)


def slow_alike(values):
    z = (values - values.mean(axis=0)) / values.std(axis=0)
    return [
        (i, j)
        for i in range(len(z))
        for j in range(i + 1, len(z))
        if ((z[i] - z[j]) ** 2).mean() / 2 < ALIKE
    ]


def test_gaps_equal_gaps_and_empty_rows_are_nobody():
    rows = np.random.default_rng(0).normal(size=(9, 4))
    rows[3, 1] = np.nan
    rows[8] = rows[3]
    rows[5] = rows[6] = np.nan
    assert identical_rows(rows) == [(3, 8)]


def test_blocks_agree_with_the_slow_truth(monkeypatch):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(23, 15))
    rows = np.vstack([rows, rows[[2, 11]] + rng.normal(0, 0.08, (2, 15))])
    expected = slow_alike(rows)
    assert (2, 23) in expected
    monkeypatch.setattr("brainlsap.evaluation.twins.BLOCK", 7)
    assert sorted(alike_rows(rows)) == expected


def test_what_is_common_to_all_is_told(cohort):
    from dataclasses import replace

    W = np.broadcast_to(cohort.connectomes[0], cohort.connectomes.shape)
    splits = [(np.arange(20), np.arange(20, cohort.n_scans))]
    for shared in (W, W.copy()):
        one = replace(cohort, connectomes=shared)
        findings, pairs, skipped = find_twins(one, splits)
        assert findings == []
        assert pairs.empty
        assert skipped["identical connectomes"] == (
            "all scans have the same connectomes"
        )
        assert (
            "needs 10 values that vary, has 5" in (skipped["nearly identical features"])
        )


def test_twins_on_one_side_do_not_count(cohort):
    from dataclasses import replace

    features = cohort.features.copy()
    features[1] = features[0]
    twins = replace(cohort, features=features)
    rest = np.arange(2, cohort.n_scans)
    findings, _, _ = find_twins(twins, [(np.array([0, 1]), rest)])
    assert findings == []
    findings, _, _ = find_twins(twins, [(np.array([0]), np.append(rest, 1))])
    assert findings[0].check == "identical features"


def test_few_numbers_first_finds_the_same_pairs(monkeypatch):
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(70, 90)) @ rng.normal(size=(90, 90))
    rows[[11, 66, 69]] = rows[[3, 40, 3]] + 0.01 * rng.normal(size=(3, 90))
    expected = alike_rows(rows)
    assert expected == [(3, 11), (3, 69), (11, 69), (40, 66)]
    monkeypatch.setattr(twins, "BLOCK", 16)
    assert alike_rows(rows) == expected
    monkeypatch.setattr(twins, "SHORT", 5)
    assert sorted(alike_rows(rows)) == expected
    monkeypatch.setattr(twins, "MOST_CANDIDATES", 0)
    assert sorted(alike_rows(rows)) == expected


def test_zeros_of_either_sign_are_identical():
    rows = np.array([[0.0, 1.0], [np.nan, 2.0], [-0.0, 1.0], [np.nan, np.nan]])
    rows = np.vstack([rows, rows[[3, 1]]])
    assert identical_rows(rows) == [(0, 2), (1, 5)]
