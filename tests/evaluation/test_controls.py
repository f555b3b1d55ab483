import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score

from brainlsap.evaluation.controls import (
    UNTUNED_C,
    RegionStandardizer,
    TunedLinearClassifier,
    baseline_models,
)
from brainlsap.exceptions import ParameterError, SplitError


def draw_packed(n_people=40, n_rois=5, n_features=2, seed=0):
    """Two visits each; the last feature of regions 1 and 3 tells the class."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n_people), 2)
    y = np.array(["CN", "AD", "MCI"])[person % 3]
    X = rng.normal(size=(len(y), n_rois, n_rois + n_features))
    X[:, 1, -1] += 5.0 * (person % 3 == 1)
    X[:, 3, -1] += 5.0 * (person % 3 == 2)
    return X, y, person


def test_features_are_standardised_by_region_and_gaps_are_zero():
    X, _, _ = draw_packed()
    X[:, 2, -1] = 0.1  # constant, with a mean that binary fractions cannot hold
    X[:, 3, -1] = np.nan
    X[0, 4, -1] = np.nan
    out = RegionStandardizer().fit_transform(X)
    assert out.shape == (80, 10)
    np.testing.assert_array_equal(out[:, [5, 7]], 0)
    assert out[0, 9] == 0
    telling = X[:, 1, -1]
    np.testing.assert_allclose(out[:, 3], (telling - telling.mean()) / telling.std())


def test_region_constant_in_training_is_zero_for_new_scans():
    X, _, _ = draw_packed()
    X[:40, 2, -1] = 1e6 / 3
    out = RegionStandardizer().fit(X[:40]).transform(X[40:])
    np.testing.assert_array_equal(out[:, 5], 0)


def test_connectome_is_not_looked_at():
    X, y, person = draw_packed()
    other = X.copy()
    other[:, :, :5] = 77.0
    for name, model in baseline_models().items():
        groups = {} if name == "majority class" else {"groups": person}
        one, two = (clone(model).fit(data, y, **groups) for data in (X, other))
        np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(other))


@pytest.mark.parametrize("kind", ["logistic", "svm"])
def test_planted_region_is_found(kind):
    X, y, person = draw_packed()
    train = person < 30
    model = TunedLinearClassifier(kind)
    model.fit(X[train], y[train], groups=person[train])
    probability = model.predict_proba(X[~train])
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert balanced_accuracy_score(y[~train], model.predict(X[~train])) > 0.85
    assert model.fit_report_["inner_balanced_accuracy"] > 0.8


def test_two_classes_have_two_columns():
    X, y, person = draw_packed()
    two = y != "MCI"
    model = TunedLinearClassifier("svm").fit(X[two], y[two], groups=person[two])
    assert model.predict_proba(X[two]).shape == (two.sum(), 2)
    np.testing.assert_array_equal(
        model.predict(X[two]),
        model.model_.predict(model.standardizer_.transform(X[two])),
    )


def test_tuning_keeps_people_whole():
    _, y, person = draw_packed()
    model = TunedLinearClassifier(n_inner_folds=4)
    inner = model._inner_splits(y, person)
    assert len(inner) == 4
    assert not any(set(person[a]) & set(person[b]) for a, b in inner)


def test_without_groups_it_warns():
    X, y, _ = draw_packed()
    with pytest.warns(UserWarning, match="fit without groups takes every scan"):
        TunedLinearClassifier().fit(X, y)


def test_a_class_of_one_person_leaves_nothing_to_tune():
    X, y, person = draw_packed()
    kept = (y != "MCI") | (person == person[y == "MCI"][0])
    model = TunedLinearClassifier().fit(X[kept], y[kept], groups=person[kept])
    assert model.fit_report_["C"] == UNTUNED_C
    assert np.isnan(model.fit_report_["inner_balanced_accuracy"])


def test_what_cannot_be_fitted():
    X, y, person = draw_packed()
    with pytest.raises(ParameterError, match=r"kind must be one of .*got 'tree'"):
        TunedLinearClassifier("tree").fit(X, y, groups=person)
    with pytest.raises(SplitError, match="at least two classes"):
        TunedLinearClassifier().fit(X, ["CN"] * len(X), groups=person)
