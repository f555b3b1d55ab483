"""What the model's preparation learns comes from the training fold alone."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold

from brainlsap._arrays import pack
from brainlsap.exceptions import ParameterError
from brainlsap.graph import covariance_connectome, prepare_connectomes
from brainlsap.model import (
    DiffusedLogisticRegression,
    LSAPClassifier,
    load_model,
    save_model,
)
from brainlsap.model.inputs import make_batch

SMALL = {"n_epochs": 4, "n_starts": 1, "initial_scale": 1.0, "linear_penalty": 0.0}


def fit(scans, rows, preparation=None, **given):
    model = LSAPClassifier(preparation=preparation, **(SMALL | given))
    return model.fit(scans.X[rows], scans.y[rows], groups=scans.people[rows])


@pytest.mark.parametrize(
    "preparation",
    [
        {"consensus": 0.5},
        {"group_density": 0.5},
        {"isolated": "mean"},
        {"connectome": "mean"},
        {"connectome": "covariance"},
    ],
)
def test_test_fold_cannot_change_what_is_learned(scans, preparation):
    learn = scans.people < 16
    model = fit(scans, learn, preparation, threshold=0.3)
    before = {k: np.array(v) for k, v in model.preparation_.items() if k != "options"}
    first = model.predict_proba(scans.X[~learn])
    wild = scans.X[~learn]
    wild[1:, :, :7] = 1e5 * (1 - np.eye(7))
    wild[1:, :, 7:] *= -3
    second = model.predict_proba(wild)
    for name, value in before.items():
        assert_array_equal(np.array(model.preparation_[name]), value)
    np.testing.assert_allclose(second[0], first[0], atol=1e-6)


def test_consensus_is_that_of_the_training_people(scans):
    learn = scans.people < 16
    model = fit(scans, learn, {"consensus": 0.4}, threshold=40.0)
    edges = prepare_connectomes(scans.connectomes, threshold=40.0) > 0
    train = np.mean(
        [edges[scans.people == person].mean(axis=0) for person in range(16)], axis=0
    )
    mask = model.preparation_["mask"]
    assert_array_equal(mask, train >= 0.4 - 1e-9)
    everybody = np.mean(
        [edges[scans.people == person].mean(axis=0) for person in range(24)], axis=0
    )
    # with the test people the mask would have been another
    assert (mask != (everybody >= 0.4)).any()


def test_covariance_needs_no_connectome_of_anybody(scans):
    scans = type(scans)(
        np.zeros_like(scans.connectomes), scans.features, scans.y, scans.people
    )
    model = fit(scans, scans.people < 16, {"connectome": "covariance"})
    train = scans.people < 16
    expected = covariance_connectome(scans.features[train], scans.people[train])
    assert_array_equal(model.preparation_["covariance"], expected)
    assert model.fit_report_["density"] > 0.1
    assert model.predict(scans.X).shape == scans.y.shape


def test_without_options_nothing_changes(scans):
    rows = scans.people < 16
    plain, named = fit(scans, rows), fit(scans, rows, {"symmetrize": "mean"})
    assert_array_equal(plain.predict_proba(scans.X), named.predict_proba(scans.X))
    assert {k: v for k, v in plain.preparation_.items() if k != "options"} == {
        "mask": None,
        "mean": None,
        "covariance": None,
    }


def test_fit_report_tells_density_isolated_regions_and_gap(scans):
    rows = scans.people < 16
    report = fit(scans, rows, threshold=90.0).fit_report_
    edges = prepare_connectomes(scans.connectomes[rows], threshold=90.0) > 0
    assert report["density"] == pytest.approx(edges.sum() / (rows.sum() * 42))
    assert report["isolated_regions"] == (~edges.any(axis=2)).sum(axis=1).mean() > 0
    assert 0 <= report["smallest_gap"] <= report["spectral_gap"] <= 2


def test_preset_keeps_its_threshold_beside_further_options(scans):
    rows = scans.people < 16
    given = {"preset": "paper", "n_epochs": 2}
    model = LSAPClassifier(preparation={"consensus": 0.5}, **given)
    model.fit(scans.X[rows], scans.y[rows], groups=scans.people[rows])
    options = model.preparation_["options"]
    assert (options["threshold"], options["weights"]) == (10.0, "binary")
    assert options["consensus"] == 0.5


def test_diffused_logistic_regression_prepares_inside_its_folds(scans):
    rows = scans.people < 16
    model = DiffusedLogisticRegression((0.0, 1.0), preparation={"consensus": 0.6})
    model.fit(scans.X[rows], scans.y[rows], groups=scans.people[rows])
    mask = model.preparation_["mask"]
    assert mask.shape == (7, 7)
    X = pack(np.full((3, 7, 7), 1e5), scans.features[:3])
    assert model.predict(X).shape == (3,)
    assert_array_equal(model.preparation_["mask"], mask)


def test_unknown_options_are_refused(scans):
    with pytest.raises(ParameterError, match=r"option of preparation must be one of"):
        fit(scans, scans.people < 16, {"thershold": 3})


def test_batch_without_people_cannot_learn(scans, settle):
    settings = settle(preparation={"consensus": 0.5})
    with pytest.raises(ParameterError, match=r"learned from training people; learn it"):
        make_batch(scans.connectomes, scans.features, settings, torch.device("cpu"))


@pytest.mark.parametrize(
    "preparation",
    [
        {"consensus": 0.4, "volumes": tuple(range(1, 8)), "isolated": "strongest"},
        {"connectome": "covariance", "threshold": 0.3, "threshold_unit": "density"},
    ],
)
def test_stored_model_prepares_as_it_learned(scans, preparation, tmp_path):
    rows = scans.people < 16
    model = fit(scans, rows, preparation)
    path = save_model(
        model,
        tmp_path / "model.safetensors",
        region_names=list("abcdefg"),
        feature_names=["thickness", "fdg"],
    )
    loaded = load_model(path)
    expected = model.predict_proba(scans.X[~rows])
    assert_array_equal(loaded.predict_proba(scans.X[~rows]), expected)


def test_model_with_options_can_be_cloned_and_searched(scans):
    model = LSAPClassifier(preparation={"consensus": 0.4}, patience=0, **SMALL)
    assert clone(model).get_params()["preparation"] == {"consensus": 0.4}
    search = GridSearchCV(
        model,
        {"preparation": [{"consensus": 0.0}, {"group_density": 0.5}]},
        cv=StratifiedGroupKFold(2),
    )
    search.fit(scans.X, scans.y, groups=scans.people)
    assert search.best_params_["preparation"] in (
        {"consensus": 0.0},
        {"group_density": 0.5},
    )
