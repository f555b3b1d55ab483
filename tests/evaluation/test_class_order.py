"""The cohort's order of classes reaches an ordinal head, wherever it stands."""

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from brainlsap.data import make_cohort
from brainlsap.evaluation import cross_validate
from brainlsap.evaluation.class_order import told_order
from brainlsap.model import LSAPClassifier


class Ordered(BaseEstimator):
    def __init__(self, head="softmax", classes=None):
        self.head = head
        self.classes = classes


def test_an_ordinal_head_is_told_the_order_of_the_classes():
    stages = ("CN", "MCI", "AD")
    plain_head, own = Ordered(), Ordered("ordinal", ("AD", "MCI", "CN"))
    assert told_order(plain_head, stages) is plain_head
    assert told_order(own, stages) is own
    model = Ordered("ordinal")
    assert told_order(model, stages).classes == stages
    assert model.classes is None
    inside = Pipeline([("step", "passthrough"), ("last", Ordered("ordinal"))])
    assert told_order(inside, stages).get_params()["last__classes"] == stages


def test_cross_validation_tells_it():
    cohort = make_cohort(24, atlas="desikan82", random_state=0)
    model = LSAPClassifier(
        head="ordinal", n_starts=1, n_epochs=2, initial_scale=1.0, random_state=0
    )
    evaluation = cross_validate(model, cohort, 2, baselines=False)
    fold = evaluation.main.folds[0]
    assert fold.details["settings"]["classes"] == list(cohort.classes)
    np.testing.assert_allclose(fold.probability.sum(1), 1)
