"""The control that needs the graph, against the same steps written plainly."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from brainlsap._arrays import pack
from brainlsap.exceptions import ParameterError
from brainlsap.graph import exact_heat_kernel, normalized_laplacian
from brainlsap.model import DiffusedLogisticRegression


def fit(scans, *given, **named):
    model = DiffusedLogisticRegression(*given, **named)
    return model.fit(scans.X, scans.y, groups=scans.people)


def slow_signals(scans, scale, rows):
    """Standardised, diffused by the exact kernel, standardised again."""

    def standardise(values):
        mean, spread = values[rows].mean(axis=0), values[rows].std(axis=0)
        return (values - mean) / np.where(spread > 1e-12, spread, np.inf)

    start = standardise(np.nan_to_num(scans.features))
    L = normalized_laplacian(scans.connectomes)
    Z = standardise(exact_heat_kernel(L, scale).numpy() @ start)
    return Z.reshape(len(Z), -1)


@pytest.mark.parametrize("scale", [0.0, 0.8, 2.5])
def test_it_is_diffusion_then_logistic_regression(scans, scale):
    known, new = np.arange(20), np.arange(20, 32)
    model = DiffusedLogisticRegression([scale])
    model.fit(scans.X[known], scans.y[known], groups=scans.people[known])
    Z = slow_signals(scans, scale, known)
    linear = LogisticRegression(C=model.C_, class_weight="balanced", max_iter=2000)
    linear.fit(Z[known], scans.y[known])
    assert model.scale_ == scale
    assert_allclose(
        model.predict_proba(scans.X[new]), linear.predict_proba(Z[new]), atol=2e-3
    )
    assert_array_equal(model.predict(scans.X[new]), linear.predict(Z[new]))


def test_rounding_in_a_region_that_heat_does_not_reach_is_no_signal(scans):
    unmeasured = np.isnan(scans.features).all(axis=(0, 2))
    assert unmeasured.any()
    for scale, reached in ((0.0, False), (0.8, True)):
        deviation = fit(scans, [scale]).after_.deviation
        assert np.isfinite(deviation[unmeasured]).all() == reached
        assert np.isfinite(deviation[~unmeasured]).all()


def test_tuning_finds_where_the_answer_is(draw_scans):
    """Heat blurs a single region that tells, and helps where all tell a little."""
    scans = draw_scans(n_people=60)
    assert fit(scans).scale_ == 0.0
    rng = np.random.default_rng(5)
    code = (scans.y == "CN").astype(float)
    W = np.broadcast_to(np.ones((40, 40)) - np.eye(40), (80, 40, 40))
    spread = 0.3 * code[:, None, None] + rng.normal(size=(80, 40, 1))
    wide = type(scans)(W, spread, scans.y, scans.people)
    assert fit(wide, (0.0, 1.0)).scale_ == 1.0


def test_tuning_keeps_people_whole_and_is_repeatable(scans, monkeypatch):
    from sklearn.model_selection import StratifiedGroupKFold

    dealt = []
    split = StratifiedGroupKFold.split

    def watching(self, X, y, groups):
        for learn, watch in split(self, X, y, groups):
            dealt.append((learn, watch))
            yield learn, watch

    monkeypatch.setattr(StratifiedGroupKFold, "split", watching)
    models = [fit(scans, n_inner_folds=4, random_state=seed) for seed in (1, 1, 2)]
    assert len(dealt) == 12
    for learn, watch in dealt:
        assert not set(scans.people[learn]) & set(scans.people[watch])
    assert_array_equal(dealt[0][1], dealt[4][1])
    assert not np.array_equal(dealt[0][1], dealt[8][1])
    found = [model.predict_proba(scans.X) for model in models]
    assert_array_equal(found[0], found[1])


def test_report_holds_the_choice(scans):
    model = fit(scans)
    assert model.fit_report_["scale"] == model.scale_
    assert model.fit_report_["C"] == model.C_
    assert 0.8 < model.fit_report_["inner_balanced_accuracy"] <= 1.0


def test_a_class_of_one_person_cannot_be_tuned(scans):
    y = scans.y.astype(object)
    y[scans.people == 6] = "SMC"
    alone = type(scans)(scans.connectomes, scans.features, y, scans.people)
    model = fit(alone, (1.5, 0.5))
    assert model.scale_ == 1.5
    assert np.isnan(model.fit_report_["inner_balanced_accuracy"])
    assert model.predict_proba(scans.X).shape == (32, 3)


def test_missing_and_constant_regions_leave_everything_finite(scans):
    features = scans.features.copy()
    features[:, 1] = 0.1 + 0.2
    features[4, 2, 0] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fit(scans.with_features(features))
        probability = model.predict_proba(pack(scans.connectomes, features))
    assert np.isfinite(probability).all()


def test_it_is_cloned_without_what_it_learned(scans):
    other = clone(fit(scans, (0.0, 3.0), weights="log"))
    assert (other.scales, other.weights) == ((0.0, 3.0), "log")
    for method in (other.predict, other.predict_proba):
        with pytest.raises(NotFittedError):
            method(scans.X)


def test_what_cannot_be_used_is_refused(scans):
    model = DiffusedLogisticRegression()
    with pytest.raises(ParameterError, match=r"y must have shape \(32,\), .*\(31,\)"):
        model.fit(scans.X, scans.y[1:])
    with pytest.raises(ParameterError, match=r"two classes, got only 'CN'"):
        model.fit(scans.X, np.full(32, "CN"))
    with pytest.raises(ParameterError, match=r"groups must have shape \(32,\)"):
        model.fit(scans.X, scans.y, groups=scans.people[1:])
