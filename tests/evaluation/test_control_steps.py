"""Controls: what each takes away is gone, and nothing else."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from brainlsap._arrays import pack
from brainlsap.evaluation.control_steps import (
    CovariatesAsFeatures,
    PermutedLabels,
    ShuffledEdges,
)
from brainlsap.evaluation.controls import TunedLinearClassifier
from brainlsap.evaluation.linear_inputs import EdgeComponents, log_edges
from brainlsap.exceptions import ParameterError

N_SCANS, N_ROIS = 24, 5


def draw_scans(seed=0):
    rng = np.random.default_rng(seed)
    half = np.triu(rng.gamma(1.0, 40.0, (N_SCANS, N_ROIS, N_ROIS)), 1)
    half[half < 10] = 0
    return pack(half + half.transpose(0, 2, 1), rng.normal(size=(N_SCANS, N_ROIS, 2)))


def weights_of(W):
    return np.sort(W[np.triu_indices(N_ROIS, 1)])


def test_shuffling_keeps_weights_symmetry_and_features():
    X = draw_scans()
    moved = ShuffledEdges(random_state=3).fit_transform(X)
    for before, after in zip(X, moved, strict=True):
        W = after[:, :N_ROIS]
        assert_array_equal(W, W.T)
        assert_array_equal(weights_of(W), weights_of(before[:, :N_ROIS]))
        assert (W.diagonal() == 0).all()
    assert not np.allclose(moved[:, :, :N_ROIS], X[:, :, :N_ROIS])
    assert_array_equal(moved[:, :, N_ROIS:], X[:, :, N_ROIS:])


def test_shuffling_depends_on_network_and_seed_alone():
    X = draw_scans()
    moved = ShuffledEdges(random_state=3).fit_transform(X)
    backwards = ShuffledEdges(random_state=3).fit_transform(X[::-1])
    assert_array_equal(backwards[::-1], moved)
    other = ShuffledEdges(random_state=4).fit_transform(X)
    assert not np.allclose(other, moved)
    X[:, :, :N_ROIS] = X[0, :, :N_ROIS]
    shared = ShuffledEdges().fit_transform(X)[:, :, :N_ROIS]
    assert (shared == shared[0]).all()


def covariates():
    return pd.DataFrame(
        {
            "age": np.linspace(60, 80, N_SCANS),
            "site": np.where(np.arange(N_SCANS) % 3, "north", "south"),
            "group": np.where(np.arange(N_SCANS) % 2, "patient", "control"),
            "name": [f"person {k}" for k in range(N_SCANS)],
        }
    )


def test_covariates_take_the_place_of_the_brain():
    X, y = draw_scans(), np.where(np.arange(N_SCANS) % 2, "AD", "CN")
    told = covariates().assign(name=[f"x{k}" for k in range(N_SCANS)])
    step = CovariatesAsFeatures().fit(X, y, covariates=told)
    # "group" is another name of the label
    assert set(step.columns_) == {"age", "site", "name"}
    assert step.columns_["site"] == ("north", "south")
    out = step.transform(X, covariates=told)
    assert (out[:, :, :N_ROIS] == 0).all()
    assert np.isnan(out[:, 1:, N_ROIS:]).all()
    edges = X[:, :, :N_ROIS][:, *np.triu_indices(N_ROIS, 1)]
    assert_allclose(out[:, 0, N_ROIS], edges.sum(1))
    assert_allclose(out[:, 0, N_ROIS + 1], (edges > 0).mean(1))
    assert_allclose(out[:, 0, N_ROIS + 2], told["age"])
    assert_array_equal(out[:, 0, N_ROIS + 4], told["site"] == "south")


def test_words_that_name_people_are_left_out(monkeypatch):
    monkeypatch.setattr("brainlsap.evaluation.control_steps._MOST_LEVELS", 5)
    step = CovariatesAsFeatures().fit(draw_scans(), None, covariates=covariates())
    assert "name" not in step.columns_


def test_covariates_of_the_fit_are_asked_for():
    step = CovariatesAsFeatures().fit(draw_scans(), None, covariates=covariates())
    with pytest.raises(ParameterError, match=r"columns of the fit; 'age' is missing"):
        step.transform(draw_scans())


def test_permuted_labels_move_with_people():
    X, people = draw_scans(), np.arange(N_SCANS) // 2
    y = np.where(people % 2, "AD", "CN")
    seen = {}

    class Spy(DummyClassifier):
        def fit(self, X, y, groups=None):
            seen["y"], seen["groups"] = y, groups
            return super().fit(X, y)

    model = PermutedLabels(Spy(), random_state=1).fit(X, y, groups=people)
    assert (seen["y"][::2] == seen["y"][1::2]).all()
    assert (seen["y"] != y).any()
    assert sorted(seen["y"]) == sorted(y)
    assert_array_equal(seen["groups"], people)
    assert_allclose(model.predict_proba(X).sum(1), 1)
    assert set(model.predict(X)) <= {"AD", "CN"}


def test_folds_draw_their_own_permutation():
    X, people = draw_scans(), np.arange(N_SCANS)
    y = np.where(people % 2, "AD", "CN")
    seen = []

    class Spy(DummyClassifier):
        def fit(self, X, y):
            seen.append(y)
            return super().fit(X, y)

    for groups in (people, people + 100, people):
        PermutedLabels(Spy(), random_state=1).fit(X, y, groups=groups)
    assert (seen[0] != seen[1]).any()
    assert_array_equal(seen[0], seen[2])


def test_rotated_edges_are_worth_all_edges():
    X = draw_scans()
    y = np.where(np.arange(N_SCANS) % 2, "AD", "CN")
    train, test = np.arange(18), np.arange(18, N_SCANS)
    step = EdgeComponents().fit(X[train])
    edges = log_edges(X)
    Z = (edges - edges[train].mean(0)) / edges[train].std(0)
    slow = LogisticRegression(C=0.1, tol=1e-10).fit(Z[train], y[train])
    fast = LogisticRegression(C=0.1, tol=1e-10).fit(step.transform(X[train]), y[train])
    assert_allclose(
        fast.predict_proba(step.transform(X[test])),
        slow.predict_proba(Z[test]),
        atol=1e-6,
    )


def test_a_shared_connectome_leaves_nothing_to_read():
    X = draw_scans()
    X[:, :, :N_ROIS] = X[0, :, :N_ROIS]
    assert_array_equal(EdgeComponents().fit_transform(X), np.zeros((N_SCANS, 1)))


def test_edges_alone_can_be_told_apart():
    X = draw_scans()
    y = np.where(np.arange(N_SCANS) % 2, "AD", "CN")
    X[y == "AD", 1, 3] += 500
    X[y == "AD", 3, 1] += 500
    people = np.arange(N_SCANS)
    model = TunedLinearClassifier(reads="edges").fit(X, y, groups=people)
    assert model.score(X, y) > 0.9
    changed = X.copy()
    changed[:, :, N_ROIS:] = 0
    assert_array_equal(model.predict_proba(changed), model.predict_proba(X))


def test_unknown_input_is_refused():
    model = TunedLinearClassifier(reads="nodes")
    with pytest.raises(ParameterError, match=r"reads must be one of .*got 'nodes'"):
        model.fit(draw_scans(), np.arange(N_SCANS) % 2, groups=np.arange(N_SCANS))
