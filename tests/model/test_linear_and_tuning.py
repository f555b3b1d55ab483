"""Logistic regression on diffused features, and settings chosen by inner folds."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from brainlsap.arrays import pack
from brainlsap.exceptions import ParameterError
from brainlsap.graph import exact_heat_kernel, normalized_laplacian
from brainlsap.model import (
    SPACES,
    DiffusedLogisticRegression,
    LSAPClassifier,
    NetworkClassifier,
    tuned,
)
from brainlsap.model.tuning import find_space


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


# --- settings chosen by inner folds ---------------------------------------------

SEEN = []


class Spy(ClassifierMixin, BaseEstimator):
    """Right as often as `skill` says, and remembers whom it was fitted to."""

    def __init__(self, skill=0.0):
        self.skill = skill

    def fit(self, X, y, groups=None):  # noqa: ARG002
        SEEN.append((len(y), set(groups)))
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        code = (X[:, 0, -1] > 0).astype(int)
        wrong = np.arange(len(X)) >= self.skill * len(X)
        return self.classes_[np.where(wrong, 1 - code, code)]

    def predict_proba(self, X):
        return (self.predict(X)[:, None] == self.classes_).astype(float)


@pytest.fixture
def visits():
    people = np.repeat(np.arange(18), 2)
    X = np.random.default_rng(0).gamma(1.0, size=(36, 4, 5))
    X[:, 0, -1] = np.where(people % 2, 1.0, -1.0)
    SEEN.clear()
    return X, np.where(people % 2, "CN", "AD"), people


@pytest.mark.parametrize(("n_candidates", "n_fits"), [(None, 9), (2, 6)])
def test_the_best_is_chosen_on_folds_that_share_nobody(visits, n_candidates, n_fits):
    X, y, people = visits
    space = {"skill": (1.0, 0.5, 0.2) if n_candidates is None else (1.0,) * 3}
    model = tuned(Spy(), space, n_candidates=n_candidates, random_state=1)
    model.fit(X, y, groups=people)
    assert model.best_params_ == {"skill": 1.0}
    assert model.best_score_ == 1.0
    *inner, (n_scans, everybody) = SEEN
    assert (len(inner), n_scans, everybody) == (n_fits, 36, set(people))
    for n_scans, seen in inner:
        assert n_scans == 2 * len(seen) < len(y)  # both visits of each
    assert_array_equal(model.predict(X), y)
    assert model.best_estimator_.fit_report_["tuned"]["chosen"] == {"skill": 1.0}


def test_a_class_of_one_person_leaves_nothing_to_tune(visits):
    X, _, people = visits
    y = np.where(people == 3, "CN", "AD")
    model = tuned(Spy(), {"skill": (0.2, 1.0)}).fit(X, y, groups=people)
    assert model.best_params_ == {"skill": 0.2}
    assert np.isnan(model.best_score_)
    with pytest.warns(UserWarning, match="of one person may be on both sides of an"):
        tuned(Spy(), {"skill": (1.0,)}).fit(X, visits[1])


def test_rare_options_are_searched_also_in_a_pipeline(scans):
    lsap = LSAPClassifier(n_starts=1, n_epochs=2, initial_scale=1.0, random_state=0)
    model = clone(tuned(lsap, {"dropout": (0.1, 0.3)}, n_inner_folds=2))
    model.fit(scans.X, scans.y, groups=scans.people)
    by_hand = clone(lsap).set_params(**model.best_params_)
    by_hand.fit(scans.X, scans.y, groups=scans.people)
    assert_array_equal(model.best_estimator_.scales_, by_hand.scales_)
    line = make_pipeline(FunctionTransformer(), lsap)
    small = {"lsapclassifier__dropout": (0.3,)}
    found = tuned(line, small, n_inner_folds=2)
    found.fit(scans.X, scans.y, groups=scans.people)
    assert found.best_estimator_.steps[-1][1].options == {"dropout": 0.3}


def test_spaces_name_settings_that_there_are():
    for space, kinds in SPACES.items():
        for model in (LSAPClassifier(), NetworkClassifier()):
            found = find_space(model, space)
            assert set(found) == set(kinds[type(model).__name__])
            chosen = {name: values[-1] for name, values in found.items()}
            clone(model).set_params(**chosen).settings()
    for model, space, message in (
        (Spy(), "default", "says nothing of Spy"),
        (LSAPClassifier(), {"dropuot": (0.1,)}, "got 'dropuot'"),
        (LSAPClassifier(), {}, "got none"),
    ):
        with pytest.raises(ParameterError, match=message):
            find_space(model, space)
