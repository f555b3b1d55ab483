import json

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from brainlsap.evaluation.controls import TunedLinearClassifier
from brainlsap.evaluation.fitting import (
    class_probabilities,
    fit_parameters,
    inner_model,
    plain,
    regional,
    seeded,
)
from brainlsap.exceptions import ParameterError

GROUPS = np.array(["a", "a", "b"])


def test_only_unset_seeds_are_set_also_inside_a_pipeline():
    model = make_pipeline(FunctionTransformer(), LogisticRegression())
    model, told = seeded(model, 11)
    assert model[-1].random_state == 11
    assert told["seeded"]
    kept, told = seeded(LogisticRegression(random_state=4), 11)
    assert kept.random_state == 4
    assert not told["seeded"]


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (DummyClassifier(), []),
        (TunedLinearClassifier(), ["groups"]),
        (
            make_pipeline(FunctionTransformer(), TunedLinearClassifier()),
            ["tunedlinearclassifier__groups"],
        ),
        (make_pipeline(FunctionTransformer(), LogisticRegression()), []),
        (GridSearchCV(DummyClassifier(), {}, cv=GroupKFold(2)), ["groups"]),
        (GridSearchCV(DummyClassifier(), {}, cv=3), []),
    ],
)
def test_groups_reach_every_model_that_takes_them(model, names):
    assert list(fit_parameters(model, GROUPS)) == names


def test_heart_of_a_search_over_a_pipeline_is_found():
    X, y = np.arange(12.0)[:, None], np.arange(12) % 2
    pipeline = make_pipeline(FunctionTransformer(), LogisticRegression())
    search = GridSearchCV(pipeline, {"logisticregression__C": [1.0]}, cv=2).fit(X, y)
    assert isinstance(inner_model(search), LogisticRegression)
    assert inner_model(inner_model(search)) is inner_model(search)


@pytest.mark.parametrize(
    ("model", "source"),
    [
        (LogisticRegression(), "predict_proba"),
        (LinearSVC(), "decision_function"),
        (RidgeClassifier(), "decision_function"),
    ],
)
@pytest.mark.parametrize("n_known", [2, 3])
def test_probability_agrees_with_predict(model, source, n_known):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.array(["b", "a", "d"])[np.argmax(X[:, :n_known], axis=1)]
    model.fit(X, y)
    classes = ("d", "c", "b", "a")
    probability, said = class_probabilities(model, X, classes)
    assert said == source
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    np.testing.assert_array_equal(probability[:, 1], 0)
    np.testing.assert_array_equal(
        np.array(classes)[probability.argmax(axis=1)], model.predict(X)
    )


class OnlyPredicts:
    classes_ = np.array(["a", "b"])

    def predict(self, X):
        return np.array(["b", "a", "b"])[: len(X)]


class PredictsNaN(OnlyPredicts):
    def predict_proba(self, X):
        return np.full((len(X), 2), np.nan)


def test_model_that_only_predicts_gives_zeros_and_ones():
    probability, source = class_probabilities(OnlyPredicts(), GROUPS, ("a", "b"))
    assert source == "predict"
    np.testing.assert_array_equal(probability, [[0, 1], [1, 0], [0, 1]])


def test_unusable_predictions():
    with pytest.raises(ParameterError, match="PredictsNaN predicts NaN; expected"):
        class_probabilities(PredictsNaN(), GROUPS, ("a", "b"))
    with pytest.raises(ParameterError, match="OnlyPredicts knows the class 'b'"):
        class_probabilities(OnlyPredicts(), GROUPS, ("a", "c"))


def test_one_scale_serves_all_regions():
    model = OnlyPredicts()
    assert regional(model, "scales_", 3) is None
    model.scales_ = np.float32(1.5)
    np.testing.assert_array_equal(regional(model, "scales_", 3), [1.5, 1.5, 1.5])


def test_anything_becomes_json():
    value = {
        1: np.array([1.0, np.nan]),
        "deep": [(np.int64(3), np.bool_(True)), {"model": DummyClassifier()}],
        "none": None,
    }
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == {
        "1": [1.0, None],
        "deep": [[3, True], {"model": "DummyClassifier"}],
        "none": None,
    }
