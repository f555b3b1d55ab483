"""The ordinal head (CORN): its loss written plainly, and what it learns."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from brainlsap._arrays import pack
from brainlsap.exceptions import ParameterError
from brainlsap.model import LSAPClassifier, load_model, save_model
from brainlsap.model.layers import ordinal_log_probabilities

STAGES = ("CN", "SMC", "MCI", "AD")


def slow_log_probability(logits, stage):
    """Add up what CORN's conditional tasks say of one scan."""
    beyond = 1 / (1 + np.exp(-logits))
    told = np.log(beyond[:stage]).sum()
    return told + (np.log(1 - beyond[stage]) if stage < len(logits) else 0.0)


def test_slow_truth():
    logits = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 3)))
    told = ordinal_log_probabilities(logits).numpy()
    truth = [[slow_log_probability(row, k) for k in range(4)] for row in logits.numpy()]
    assert_allclose(told, truth, atol=1e-12)
    assert_allclose(np.exp(told).sum(1), 1, atol=1e-12)


def test_extreme_logits_stay_finite():
    told = ordinal_log_probabilities(torch.tensor([[300.0, -300.0], [-300.0, 300.0]]))
    assert torch.isfinite(told).all()
    assert told.exp().argmax(1).tolist() == [1, 0]


def test_gradient():
    logits = torch.tensor([[0.3, -1.2, 2.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(ordinal_log_probabilities, logits)


@pytest.fixture
def staged(draw_scans):
    scans = draw_scans(n_people=60)
    stage = scans.people % 4
    features = scans.features.copy()
    features[:, 3] = 2.0 * stage[:, None] + 0.3 * features[:, 0]
    return pack(scans.connectomes, features), np.array(STAGES)[stage], scans.people


def fit(staged, **given):
    X, y, people = staged
    small = {"n_epochs": 80, "n_starts": 1, "initial_scale": 0.2, "dropout": 0.1}
    model = LSAPClassifier(head="ordinal", random_state=0, **(small | given))
    return model.fit(X, y, groups=people)


def test_it_learns_stages_in_the_order_given(staged):
    model = fit(staged, classes=STAGES)
    assert model.classes_.tolist() == list(STAGES)
    probability = model.predict_proba(staged[0])
    assert_allclose(probability.sum(1), 1, atol=1e-9)
    off = [
        abs(STAGES.index(a) - STAGES.index(b))
        for a, b in zip(model.predict(staged[0]), staged[1], strict=True)
    ]
    assert np.mean(off) < 0.5
    assert model.networks_[0].readout.second.out_features == 3


def test_linear_path_has_as_many_outputs(staged):
    model = fit(staged, classes=STAGES, linear_penalty=0.1, n_epochs=3)
    assert model.networks_[0].linear.out_features == 3


def test_without_order_it_is_refused(staged):
    with pytest.raises(ParameterError, match="needs the order of the classes"):
        fit(staged)


def test_it_is_stored_and_read(staged, tmp_path):
    model = fit(
        staged,
        classes=STAGES,
        n_epochs=3,
        calibration="temperature",
        normalization="random_walk",
    )
    names = {
        "region_names": [f"r{k}" for k in range(7)],
        "feature_names": ("a", "b"),
    }
    path = save_model(model, tmp_path / "model.safetensors", **names)
    again = load_model(path)
    assert_allclose(again.predict_proba(staged[0]), model.predict_proba(staged[0]))
