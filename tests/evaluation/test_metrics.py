import numpy as np
import pandas as pd
import pytest
from sklearn import metrics

from brainlsap.evaluation import SCORES, confusion_counts, fold_scores, summarise
from brainlsap.exceptions import ParameterError

CLASSES = ("CN", "MCI", "AD", "other")


def draw_predictions(n_scans=61, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.array(CLASSES, dtype=object)[rng.integers(0, n_classes, n_scans)]
    return truth, rng.dirichlet(np.ones(4), n_scans)


def test_scores_agree_with_scikit_learn():
    truth, probability = draw_predictions()
    predicted = np.array(CLASSES, dtype=object)[probability.argmax(axis=1)]
    ours = fold_scores(truth, probability, CLASSES)
    macro = {"labels": CLASSES, "average": "macro", "zero_division": 0}
    theirs = {
        "balanced_accuracy": metrics.balanced_accuracy_score(truth, predicted),
        "accuracy": metrics.accuracy_score(truth, predicted),
        "precision": metrics.precision_score(truth, predicted, **macro),
        "recall": metrics.recall_score(truth, predicted, **macro),
        "f1": metrics.f1_score(truth, predicted, **macro),
        "kappa": metrics.cohen_kappa_score(
            truth, predicted, labels=CLASSES, weights="quadratic"
        ),
        "auc": np.mean(
            [
                metrics.roc_auc_score(truth == name, probability[:, column])
                for column, name in enumerate(CLASSES)
            ]
        ),
        "stage_error": np.mean(
            [
                abs(CLASSES.index(a) - CLASSES.index(b))
                for a, b in zip(truth, predicted, strict=True)
            ]
        ),
    }
    assert ours == pytest.approx(theirs, abs=1e-12)
    assert tuple(ours) == tuple(SCORES)


def test_absent_class_does_not_count_as_a_failure():
    truth, probability = draw_predictions(n_classes=3)
    scores = fold_scores(truth, probability, CLASSES)
    aucs = [
        metrics.roc_auc_score(truth == name, probability[:, column])
        for column, name in enumerate(CLASSES[:3])
    ]
    assert scores["auc"] == pytest.approx(np.mean(aucs))
    assert scores["recall"] == scores["balanced_accuracy"]


def test_one_class_in_a_fold_leaves_auc_and_kappa_undefined():
    scores = fold_scores(["CN", "CN"], [[1, 0], [1, 0]], ["CN", "AD"])
    assert np.isnan(scores["auc"])
    assert np.isnan(scores["kappa"])
    assert scores["accuracy"] == 1


def test_majority_has_kappa_zero_and_chance_balanced_accuracy():
    scores = fold_scores(["CN", "CN", "AD"], [[0.7, 0.3]] * 3, ["CN", "AD"])
    assert scores["kappa"] == 0
    assert scores["balanced_accuracy"] == 0.5
    assert scores["auc"] == 0.5


def test_far_confusion_costs_more_than_near():
    def one_wrong(stage):
        probability = np.eye(3)[[0, 0, 1, 2, stage]]
        return fold_scores(["a", "a", "b", "c", "a"], probability, ["a", "b", "c"])

    assert one_wrong(2)["kappa"] < one_wrong(1)["kappa"]
    assert (one_wrong(1)["stage_error"], one_wrong(2)["stage_error"]) == (0.2, 0.4)


@pytest.mark.parametrize(
    ("truth", "probability", "message"),
    [
        (["CN", "XX"], np.ones((2, 2)), "classes must name every label; XX not in CN"),
        (["CN"], np.ones((1, 3)), r"here \(1, 2\); got \(1, 3\)"),
        ([], np.ones((0, 2)), "with at least one scan"),
        (["CN", "AD"], [[1, 0], [np.nan, 1]], "must be finite; 1 of 2 scans have NaN"),
    ],
)
def test_what_cannot_be_scored(truth, probability, message):
    with pytest.raises(ParameterError, match=message):
        fold_scores(truth, probability, ["CN", "AD"])


def test_summary_ignores_folds_without_a_value():
    scores = pd.DataFrame(
        {"fold": [1, 2, 3], "accuracy": [0.5, 0.6, 0.7], "auc": [0.8, np.nan, 0.6]}
    )
    summary = summarise(scores)
    assert list(summary.index) == ["accuracy", "auc"]
    assert summary.loc["accuracy", "sd"] == pytest.approx(0.1)
    assert tuple(summary.loc["auc"]) == pytest.approx((0.7, np.sqrt(0.02), 2))


def test_confusion_has_true_classes_in_rows():
    counts = confusion_counts(["a", "a", "b"], ["b", "a", "b"], ["b", "a"])
    np.testing.assert_array_equal(counts, [[1, 0], [1, 1]])
