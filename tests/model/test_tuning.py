"""Tuning by inner folds: people whole, choices kept, the same as a search by hand."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from brainlsap.exceptions import ParameterError
from brainlsap.model import (
    NETWORKS,
    PAPER_HYPERPARAMETERS,
    SPACES,
    LSAPClassifier,
    NetworkClassifier,
    paper_settings,
    tuned,
)

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


def draw_scans(n_people=18):
    people = np.repeat(np.arange(n_people), 2)
    X = np.random.default_rng(0).gamma(1.0, size=(2 * n_people, 4, 5))
    X[:, 0, -1] = np.where(people % 2, 1.0, -1.0)
    return X, np.where(people % 2, "CN", "AD"), people


@pytest.mark.parametrize("search", ["grid", "random"])
def test_the_best_is_chosen_on_folds_that_share_nobody(search):
    SEEN.clear()
    X, y, people = draw_scans()
    model = tuned(Spy(), {"skill": (0.2, 1.0, 0.5)}, search=search, random_state=1)
    model.fit(X, y, groups=people)
    assert model.best_params_ == {"skill": 1.0}
    assert model.best_score_ == 1.0
    *inner, (n_scans, everybody) = SEEN
    assert len(inner) == 9
    assert n_scans == len(y)
    assert everybody == set(people)
    for n_scans, seen in inner:
        assert n_scans == 2 * len(seen) < len(y)  # both visits of each
    assert_array_equal(model.predict(X), y)
    assert model.best_estimator_.fit_report_["tuned"]["chosen"] == {"skill": 1.0}


def test_a_random_search_tries_as_many_as_asked():
    SEEN.clear()
    X, y, people = draw_scans()
    space = {"skill": tuple(np.linspace(0, 1, 20))}
    tuned(Spy(), space, search="random", n_candidates=4).fit(X, y, groups=people)
    assert len(SEEN) == 4 * 3 + 1


def test_a_class_of_one_person_leaves_nothing_to_tune():
    X, y, people = draw_scans()
    y = np.where(people == 3, "CN", "AD")
    model = tuned(Spy(), {"skill": (0.2, 1.0)}).fit(X, y, groups=people)
    assert model.best_params_ == {"skill": 0.2}
    assert np.isnan(model.best_score_)


def test_last_step_of_a_pipeline_is_tuned_and_given_people():
    X, y, people = draw_scans()
    model = make_pipeline(FunctionTransformer(), NetworkClassifier(n_epochs=1))
    found = tuned(model, "default").space
    assert set(found) == {
        f"networkclassifier__{name}" for name in SPACES["default"]["NetworkClassifier"]
    }
    small = {"networkclassifier__dropout": (0.1,)}
    fitted = tuned(model, small, n_inner_folds=2).fit(X, y, groups=people)
    assert fitted.best_params_ == {"networkclassifier__dropout": 0.1}


def test_without_people_it_warns():
    X, y, _ = draw_scans()
    with pytest.warns(UserWarning, match="every scan for a person of its own"):
        tuned(Spy(), {"skill": (1.0,)}).fit(X, y)


def test_it_can_be_cloned_and_scales_are_those_of_the_best(scans):
    lsap = LSAPClassifier(n_starts=1, n_epochs=2, initial_scale=1.0, random_state=0)
    model = clone(tuned(lsap, {"dropout": (0.1, 0.3)}, n_inner_folds=2))
    model.fit(scans.X, scans.y, groups=scans.people)
    by_hand = clone(lsap).set_params(**model.best_params_)
    by_hand.fit(scans.X, scans.y, groups=scans.people)
    assert_array_equal(model.best_estimator_.scales_, by_hand.scales_)
    assert_array_equal(model.predict_proba(scans.X), by_hand.predict_proba(scans.X))


@pytest.mark.parametrize("space", sorted(SPACES))
def test_named_spaces_are_settings_of_the_models(space):
    models = {"LSAPClassifier": LSAPClassifier, "NetworkClassifier": NetworkClassifier}
    for kind, values in SPACES[space].items():
        given = {name: options[0] for name, options in values.items()}
        assert models[kind](**given).get_params()
    LSAPClassifier(
        **{k: v[-1] for k, v in SPACES[space]["LSAPClassifier"].items()}
    ).settings()


def test_the_papers_table():
    assert paper_settings("fdg", "gat")["dropout"] == 0.1
    assert paper_settings("fdg", "graphheat")["hidden_units"] == 16
    assert paper_settings("thickness", "graphheat")["hidden_units"] == 32
    for models in PAPER_HYPERPARAMETERS.values():
        for name, given in models.items():
            if name == "lsap":
                assert LSAPClassifier(**given).settings()["scale_step"] == 1.0
            else:
                assert name in NETWORKS
                NetworkClassifier(name, **given)


@pytest.mark.parametrize(
    ("model", "space", "message"),
    [
        (LSAPClassifier(), "tiny", r"space must be one of .*got 'tiny'"),
        (DummyClassifier(), "paper", r"'paper' says nothing of DummyClassifier"),
        (LSAPClassifier(), {"depth": (1,)}, r"settings of the model, got 'depth'"),
        (LSAPClassifier(), {}, r"settings of the model, got none"),
    ],
)
def test_spaces_that_cannot_be_used(model, space, message):
    with pytest.raises(ParameterError, match=message):
        tuned(model, space)


def test_searches_that_cannot_be_made():
    with pytest.raises(ParameterError, match=r"search must be one of .*got 'bayes'"):
        tuned(LSAPClassifier(), search="bayes")
    with pytest.raises(ParameterError, match=r"biomarker must be one of .*got 'tau'"):
        paper_settings("tau")
