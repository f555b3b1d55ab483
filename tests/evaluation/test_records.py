import dataclasses

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from brainlsap.evaluation import cross_validate, fold_scores
from brainlsap.exceptions import ParameterError


@pytest.fixture
def evaluation(cohort, nearest_mean):
    models = {"first": DummyClassifier(), "second": nearest_mean}
    return cross_validate(
        models, cohort, n_folds=3, baselines={"low": DummyClassifier()}
    )


def test_every_score_can_be_made_again_from_the_predictions(evaluation):
    result = evaluation.result("second")
    told, scores = result.predictions(), result.scores()
    for number, part in told.groupby("fold"):
        probability = part[["p_CN", "p_AD"]].to_numpy()
        again = fold_scores(part["truth"], probability, result.classes)
        row = scores.set_index("fold").loc[number].drop("n_test")
        assert row.to_dict() == pytest.approx(again)


def test_scores_of_all_models_stand_in_one_table(evaluation):
    scores = evaluation.scores()
    assert list(scores.columns[:4]) == ["model", "fold", "n_test", "balanced_accuracy"]
    assert list(scores["model"]) == ["first"] * 3 + ["second"] * 3 + ["low"] * 3
    summary = evaluation.result("second").summary()
    second = scores.loc[scores["model"] == "second", "accuracy"]
    assert summary.loc["accuracy", "mean"] == second.mean()


def test_scales_only_where_the_model_has_them(evaluation):
    assert evaluation.main.scales() is None
    assert evaluation.main.scales_start() is None
    assert evaluation.result("second").scales().shape == (3, 7)
    assert evaluation.result("second").scales_start().shape == (3, 7)


def test_summary_of_the_cohort_counts_people_and_scans(evaluation, cohort):
    summary = evaluation.cohort
    assert (summary.n_scans, summary.n_participants) == (45, 30)
    counts = summary.class_counts()
    assert list(counts["class"]) == ["CN", "AD"]
    assert list(counts["participants"]) == [15, 15]
    assert counts["scans"].sum() == cohort.n_scans
    np.testing.assert_array_equal(np.flatnonzero(~summary.measured), [5])


def test_records_are_frozen_and_unknown_models_listed(evaluation):
    with pytest.raises(dataclasses.FrozenInstanceError):
        evaluation.settings = {}
    assert evaluation.result() is evaluation.result("first")
    assert evaluation.best_baseline().name == "low"
    with pytest.raises(
        ParameterError, match="one of 'first', 'second', 'low'; got 'x'"
    ):
        evaluation.result("x")
