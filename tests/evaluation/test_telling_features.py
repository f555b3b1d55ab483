from dataclasses import replace

import numpy as np

from brainlsap.evaluation.telling_features import (
    explained_by_class,
    find_telling_features,
)


def test_share_agrees_with_the_slow_truth():
    rng = np.random.default_rng(0)
    label = np.array(list("aaabbbbccc") * 4)
    values = rng.normal(1e6, 1.0, (40, 3)) + (label == "b")[:, None]
    values[[3, 7], 1] = np.nan
    share = explained_by_class(values, label, ("a", "b", "c"))
    for column in range(3):
        known = ~np.isnan(values[:, column])
        x, y = values[known, column], label[known]
        between = sum(
            (y == k).sum() * (x[y == k].mean() - x.mean()) ** 2 for k in "abc"
        )
        expected = between / ((x - x.mean()) ** 2).sum()
        np.testing.assert_allclose(share[column], expected, rtol=1e-6)


def test_an_edge_of_one_scan_is_no_label():
    values, label = np.zeros((12, 1)), np.array(["a"] * 6 + ["b"] * 6)
    values[0] = 1.0
    assert explained_by_class(values, label, ("a", "b"))[0] < 0.5


def test_constant_columns_and_small_classes_explain_nothing():
    values, label = np.full((12, 1), 1e9 / 3), np.array(["a"] * 6 + ["b"] * 6)
    assert explained_by_class(values, label, ("a", "b"))[0] == 0
    values[:3] = np.nan
    values[6:] = 4
    assert explained_by_class(values, label, ("a", "b"))[0] == 0


def test_small_cohorts_are_told(cohort):
    few = cohort.select(np.arange(6))
    findings, skipped = find_telling_features(few)
    assert findings == []
    assert "no two classes have 5 scans" in skipped["label in the features"]


def test_words_inside_other_words_are_no_scores(cohort):
    for name, number in (("adas13", 1), ("cdr_sb", 1), ("dxa", 0), ("fdg", 0)):
        named = replace(cohort, feature_names=(name,))
        assert len(find_telling_features(named)[0]) == number
