"""Logistic regression on diffused features."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold

from brainlsap.arrays import pack
from brainlsap.exceptions import ParameterError
from brainlsap.graph import exact_heat_kernel, normalized_laplacian
from brainlsap.model import DiffusedLogisticRegression


def fit(scans, *given, **named):
    model = DiffusedLogisticRegression(*given, **named)
    return model.fit(scans.X, scans.y, groups=scans.people)


@pytest.mark.parametrize("scale", [0.0, 0.8, 2.5])
def test_it_is_diffusion_then_logistic_regression(scans, scale):
    known, new = np.arange(20), np.arange(20, 32)

    def standardise(values):
        mean, spread = values[known].mean(axis=0), values[known].std(axis=0)
        return (values - mean) / np.where(spread > 1e-12, spread, np.inf)

    start = standardise(np.nan_to_num(scans.features))
    kernels = exact_heat_kernel(normalized_laplacian(scans.connectomes), scale).numpy()
    Z = standardise(kernels @ start).reshape(32, -1)
    model = DiffusedLogisticRegression([scale])
    model.fit(scans.X[known], scans.y[known], groups=scans.people[known])
    linear = LogisticRegression(C=model.C_, class_weight="balanced", max_iter=2000)
    linear.fit(Z[known], scans.y[known])
    assert model.scale_ == scale
    expected = linear.predict_proba(Z[new])
    assert_allclose(model.predict_proba(scans.X[new]), expected, atol=2e-3)


def test_rounding_in_a_region_that_heat_does_not_come_to_is_no_signal(scans):
    unmeasured = np.isnan(scans.features).all(axis=(0, 2))
    for scale, comes in ((0.0, False), (0.8, True)):
        deviation = fit(scans, [scale]).after_.deviation
        assert np.isfinite(deviation[unmeasured]).all() == comes
        assert np.isfinite(deviation[~unmeasured]).all()


def test_tuning_finds_where_the_answer_is(draw_scans):
    """Heat blurs a single region that matters, and helps where all say a little."""
    scans = draw_scans(n_people=60)
    model = fit(scans)
    assert model.scale_ == model.fit_report_["scale"] == 0.0
    assert 0.8 < model.fit_report_["inner_balanced_accuracy"] <= 1.0
    rng = np.random.default_rng(5)
    code = (scans.y == "CN").astype(float)
    W = np.broadcast_to(np.ones((40, 40)) - np.eye(40), (80, 40, 40))
    spread = 0.3 * code[:, None, None] + rng.normal(size=(80, 40, 1))
    assert fit(type(scans)(W, spread, scans.y, scans.people), (0.0, 1.0)).scale_ == 1.0


def test_inner_folds_keep_people_whole_and_are_repeatable(scans, monkeypatch):
    seen, split = [], StratifiedGroupKFold.split

    def watching(self, X, y, groups):
        for learn, watch in split(self, X, y, groups):
            seen.append(watch)
            assert not set(scans.people[learn]) & set(scans.people[watch])
            yield learn, watch

    monkeypatch.setattr(StratifiedGroupKFold, "split", watching)
    models = [fit(scans, n_inner_folds=4, random_state=seed) for seed in (1, 1, 2)]
    assert len(seen) == 12
    assert_array_equal(seen[0], seen[4])
    assert not np.array_equal(seen[0], seen[8])
    found = [model.predict_proba(scans.X) for model in models]
    assert found[0].tobytes() == found[1].tobytes()


def test_odd_data_and_a_class_of_one_person(scans):
    features = scans.features.copy()
    features[:, 1], features[4, 2, 0] = 0.1 + 0.2, np.nan
    y = scans.y.astype(object)
    y[scans.people == 6] = "SMC"
    odd = type(scans)(scans.connectomes, features, y, scans.people)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fit(odd, (1.5, 0.5))  # nothing to tune on
    assert (model.scale_, model.C_) == (1.5, 0.01)
    assert np.isfinite(model.predict_proba(pack(scans.connectomes, features))).all()
    other = clone(model)
    assert other.scales == (1.5, 0.5)
    with pytest.raises(NotFittedError):
        other.predict(scans.X)
    with pytest.raises(ParameterError, match="7 regions and 2 features, as in fit"):
        model.predict(scans.X[..., :8])
