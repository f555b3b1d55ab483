"""One temperature, learned on people that were left out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from brainlsap.model import LSAPClassifier
from brainlsap.model.calibration import fit_temperature


def draw_logits(n_items=400, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n_items, n_classes))
    probability = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    codes = np.array([rng.choice(n_classes, p=row) for row in probability])
    return logits, codes


@pytest.mark.parametrize("factor", [0.5, 1.0, 4.0])
def test_temperature_is_what_logits_were_multiplied_by(factor):
    logits, codes = draw_logits()
    own = fit_temperature(logits, codes)
    assert_allclose(fit_temperature(factor * logits, codes), factor * own, rtol=1e-3)


def test_no_temperature_near_it_has_a_lower_loss():
    logits, codes = draw_logits(60)

    def loss(T):
        exp = np.exp(logits / T)
        return -np.log(exp[np.arange(60), codes] / exp.sum(1)).mean()

    found = fit_temperature(logits, codes)
    assert loss(found) <= min(loss(found * 0.99), loss(found * 1.01))


def fit(scans, **given):
    small = {"n_epochs": 30, "n_starts": 2, "initial_scale": 1.0, "random_state": 0}
    model = LSAPClassifier(**(small | given))
    return model.fit(scans.X, scans.y, groups=scans.people)


def test_classes_stay_and_probabilities_soften(scans):
    plain, scaled = fit(scans), fit(scans, calibration="temperature")
    T = scaled.fit_report_["temperature"]
    assert T == scaled.temperature_ != 1.0
    assert plain.temperature_ == 1.0
    scaled.temperature_ = 1.0
    assert_array_equal(scaled.predict_proba(scans.X), plain.predict_proba(scans.X))
    scaled.temperature_ = 50.0
    assert_allclose(scaled.predict_proba(scans.X), 0.5, atol=0.1)


def test_nobody_to_watch_leaves_probabilities_alone(scans):
    model = fit(scans, calibration="temperature", patience=0)
    assert model.temperature_ == 1.0
