"""Scores against scikit-learn; ordinal scores only where an order is known."""

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics

from brainlsap.evaluation import fold_scores
from brainlsap.evaluation.scores import SCORES, Predictions, weighted_scores_by_name

CLASSES = ("CN", "SMC", "EMCI", "LMCI", "AD")


def score(truth, predicted, probability=None, decision=None):
    codes = [pd.Index(CLASSES).get_indexer(one) for one in (truth, predicted)]
    ranking = decision if probability is None else probability
    told = Predictions(*codes, probability, ranking, np.zeros(60), 5, is_ordered=True)
    found = weighted_scores_by_name(told, np.ones((1, len(truth))))
    return {name: found[name].item() for name in fold_scores()}


@pytest.fixture(scope="module")
def drawn():
    rng = np.random.default_rng(1)
    truth = rng.choice(CLASSES[:4], 60)  # nobody has AD, which is predicted
    probability = rng.dirichlet(np.ones(5), 60).round(2)  # with ties
    return truth, probability, np.array(CLASSES)[probability.argmax(1)]


def test_scores_are_those_of_scikit_learn(drawn):
    truth, probability, predicted = drawn
    found = score(truth, predicted, probability=probability)
    seen = {"labels": CLASSES[:4], "average": "macro", "zero_division": 0}
    a, b = (pd.Index(CLASSES).get_indexer(one) for one in (truth, predicted))
    steps = np.abs(np.subtract(a, b))
    auc = [
        metrics.roc_auc_score(truth == one, probability[:, k])
        for k, one in enumerate(CLASSES[:4])
    ]
    wanted = {
        "balanced_accuracy": metrics.recall_score(truth, predicted, **seen),
        "accuracy": metrics.accuracy_score(truth, predicted),
        "precision": metrics.precision_score(truth, predicted, **seen),
        "f1": metrics.f1_score(truth, predicted, **seen),
        "auc": np.mean(auc),
        "brier": ((probability - np.eye(5)[a]) ** 2).sum(1).mean(),
        "kappa": metrics.cohen_kappa_score(a, b, weights="quadratic"),
        "stage_error": steps.mean(),
        "adjacent_accuracy": (steps <= 1).mean(),
    }
    assert {*wanted, "ece"} == {*SCORES}, "compute a new score here in another way"
    compared = {name: found[name] for name in wanted}
    assert compared == pytest.approx(wanted, abs=1e-12)


def test_decision_values_give_an_auc_and_no_brier_score(drawn):
    truth, probability, predicted = drawn
    found = score(truth, predicted, decision=np.log1p(probability))
    assert 0 < found["auc"] < 1
    assert np.isnan(found["brier"])
