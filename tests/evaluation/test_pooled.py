from dataclasses import replace

import numpy as np
import pytest

from brainlsap.evaluation import (
    SCORES,
    class_table,
    cross_validate,
    fold_scores,
    pooled_scores,
    repeat_splits,
)
from brainlsap.evaluation.pooled import (
    Predictions,
    bootstrap_draws,
    interval,
    predictions_of,
    weighted_scores,
)
from brainlsap.exceptions import ParameterError

CLASSES = ("a", "b", "c")


def draw(n_rows=60, seed=0, skill=0.5):
    rng = np.random.default_rng(seed)
    actual = np.arange(n_rows) % 3
    probability = rng.dirichlet(np.ones(3), n_rows).round(1)
    probability[np.arange(n_rows), actual] += skill
    probability /= probability.sum(axis=1, keepdims=True)
    return Predictions(actual, probability, np.arange(n_rows) // 2)


@pytest.fixture
def result(cohort, nearest_mean):
    return cross_validate(nearest_mean, cohort, 3, baselines=False).main


def test_weights_of_one_agree_with_the_scores_of_a_fold():
    told = draw()
    found = weighted_scores(told, np.ones((1, 60)))
    truth = [CLASSES[code] for code in told.actual]
    for name, value in fold_scores(truth, told.probability, CLASSES).items():
        assert found[name][0] == pytest.approx(value), name
    assert set(SCORES) < set(found)


def test_whole_weights_agree_with_repeated_rows():
    told = draw()
    weight = np.random.default_rng(1).integers(0, 3, 60)
    rows = np.repeat(np.arange(60), weight)
    repeated = Predictions(told.actual[rows], told.probability[rows], rows)
    one = weighted_scores(told, weight[None].astype(float))
    other = weighted_scores(repeated, np.ones((1, len(rows))))
    for name, value in one.items():
        np.testing.assert_allclose(value, other[name], err_msg=name)


def test_calibration_is_as_defined():
    told = Predictions(
        np.array([0, 0, 1, 1]),
        np.array([[0.9, 0.1], [0.62, 0.38], [0.64, 0.36], [0.0, 1.0]]),
        np.arange(4),
    )
    found = weighted_scores(told, np.ones((1, 4)))
    # bins: {0.9, 1.0} hold 0.9 and 1.0, both right; 0.6 holds 0.62 and 0.64, one right
    by_hand = (abs(1 - 0.9) + 2 * abs(0.5 - 0.63) + abs(1 - 1.0)) / 4
    assert found["ece"][0] == pytest.approx(by_hand)
    brier = np.mean([0.02, 2 * 0.38**2, 2 * 0.64**2, 0])
    assert found["brier"][0] == pytest.approx(brier)


def test_adjacent_accuracy_forgives_one_stage():
    told = Predictions(np.array([0, 0, 0]), np.eye(3), np.arange(3))
    found = weighted_scores(told, np.ones((1, 3)))
    assert found["accuracy"][0] == pytest.approx(1 / 3)
    assert found["adjacent_accuracy"][0] == pytest.approx(2 / 3)


def test_visits_of_a_person_make_the_interval_wider():
    told = draw(n_rows=40, skill=0.2)
    rows = np.repeat(np.arange(40), 6)
    visits = Predictions(told.actual[rows], told.probability[rows], rows)
    as_scans = visits._replace(person=np.arange(240))
    width = {}
    for name, one in (("person", visits), ("scan", as_scans)):
        low, high = interval(bootstrap_draws(one, 400, 0)["accuracy"], 0.95)
        width[name] = high - low
    assert width["person"] > 2 * width["scan"]


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    hits = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        right = rng.random(80) < 0.7
        probability = np.column_stack([right, ~right]).astype(float)
        told = Predictions(np.zeros(80, int), probability, np.arange(80))
        low, high = interval(bootstrap_draws(told, 300, seed)["accuracy"], 0.9)
        hits += low <= 0.7 <= high
    assert 46 <= hits <= 60


def test_table_of_a_model(result, cohort):
    table = pooled_scores(result, 200)
    inside = table.dropna()
    assert (inside["low"] <= inside["estimate"]).all()
    assert (inside["estimate"] <= inside["high"]).all()
    assert table.equals(pooled_scores(result, 200))
    classes = class_table(result, 200)
    assert classes["scans"].sum() == cohort.n_scans
    assert classes["people"].sum() == len(set(cohort.groups))
    told = result.predictions()
    ad = told[told["truth"] == "AD"]
    sensitivity = (ad["predicted"] == "AD").mean()
    assert classes.set_index("class").loc["AD", "sensitivity"] == sensitivity
    assert classes["specificity"][0] == pytest.approx(sensitivity)  # of two classes


def test_repeats_count_a_scan_once(cohort, nearest_mean):
    splits = repeat_splits(cohort.y, cohort.groups, 3, 2)
    twice = cross_validate(nearest_mean, cohort, splits=splits, baselines=False).main
    assert class_table(twice, 20)["scans"].sum() == cohort.n_scans
    assert len(predictions_of(twice).actual) == 2 * cohort.n_scans


def test_a_class_that_is_never_seen_has_no_rate(result):
    wide = replace(result, classes=("CN", "AD", "MCI"))
    folds = tuple(
        replace(
            fold,
            classes=wide.classes,
            probability=np.column_stack([fold.probability, np.zeros(len(fold.test))]),
        )
        for fold in result.folds
    )
    table = class_table(replace(wide, folds=folds), 20)
    assert np.isnan(table["sensitivity"][2])
    assert np.isnan(table["sensitivity_low"][2])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"level": 1.0}, "level must be between 0 and 1, got 1.0"),
        ({"n_draws": 0}, "n_draws must be at least 1, got 0"),
    ],
)
def test_draws_and_levels_that_cannot_be(result, settings, message):
    with pytest.raises(ParameterError, match=message):
        pooled_scores(result, **settings)
