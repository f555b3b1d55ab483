import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from brainlsap.evaluation import task_keys
from brainlsap.evaluation.task_keys import code_version, describe, task_key

SPLIT = (np.array([0, 1]), np.array([2]))


def test_a_key_follows_model_rows_seed_data_and_code(monkeypatch):
    model = make_pipeline(StandardScaler(), LogisticRegression())
    one = task_key(model, SPLIT, 0, "data")
    keys = {
        one,
        task_key(
            make_pipeline(StandardScaler(), LogisticRegression(C=2)), SPLIT, 0, ""
        ),
        task_key(model, SPLIT[::-1], 0, "data"),
        task_key(model, SPLIT, 1, "data"),
        task_key(model, SPLIT, 0, "other"),
    }
    again = make_pipeline(StandardScaler(), LogisticRegression())
    assert task_key(again, SPLIT, 0, "data") == one
    monkeypatch.setattr(task_keys, "code_version", lambda: "another")
    keys.add(task_key(model, SPLIT, 0, "data"))
    assert len(keys) == 6


def test_code_is_that_of_the_rooms_that_fit():
    assert code_version() == code_version()
    assert len(code_version()) == 64


def test_searches_and_arrays_are_described():
    search = GridSearchCV(
        LogisticRegression(), {"C": np.array([1.0])}, cv=GroupKFold(3)
    )
    other = GridSearchCV(LogisticRegression(), {"C": np.array([1.0])}, cv=GroupKFold(4))
    assert describe(search) == describe(search)
    assert describe(search) != describe(other)
    assert describe(np.arange(2)) != describe(np.arange(2.0))


class Own(StandardScaler):
    """A user's own class: its file is hashed."""


def test_a_users_own_class_is_told_by_its_file():
    kind = describe(Own())["kind"]
    name, digest = kind.split(" ")
    assert name.endswith("Own")
    assert len(digest) == 64
    assert describe(FunctionTransformer(np.log1p, validate=True)) is not None


def test_what_has_no_lasting_description():
    from sklearn.frozen import FrozenEstimator

    nameless = type("Nameless", (), {"__module__": "nowhere"})
    for model in (
        FunctionTransformer(lambda X: X),
        FrozenEstimator(StandardScaler()),
        LogisticRegression(C=object()),
        nameless(),
    ):
        assert task_key(model, SPLIT, 0, "data") is None
    assert "nowhere" not in sys.modules
    for thing, said in (
        (object(), "nothing lasting tells a object"),
        (FrozenEstimator(StandardScaler()), "what it has learned is not among its"),
        (lambda X: X, "<lambda> may hold other values each time"),
        (nameless, "nowhere.Nameless has no source"),
    ):
        with pytest.raises(TypeError, match=said):
            describe(thing)
