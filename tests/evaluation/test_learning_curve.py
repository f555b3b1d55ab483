"""Learning curves: nested people, the same tests, and a slope that is there or not."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from brainlsap import make_cohort
from brainlsap.evaluation import learning_curve, make_splits, read_features
from brainlsap.evaluation.learning_curve import (
    NO,
    SMALLEST_GAIN,
    UNCLEAR,
    YES,
    reduce_training_splits,
)
from brainlsap.exceptions import ParameterError


@pytest.fixture(scope="module")
def cohort():
    return make_cohort(60, atlas="desikan82", random_state=0)


@pytest.fixture(scope="module")
def splits(cohort):
    return make_splits(cohort.y, cohort.groups, 3)


def plant_signal(cohort, rng, effect):
    """Two classes that differ a little in every region, so that people help."""
    people = list(dict.fromkeys(cohort.groups))
    class_of_person = {person: k % 2 for k, person in enumerate(people)}
    codes = np.array([class_of_person[person] for person in cohort.groups])
    features = rng.normal(0, 1, cohort.features.shape)
    features += effect * (2 * codes - 1)[:, None, None]
    table = cohort.table.assign(label=np.where(codes == 1, "ill", "well"))
    return replace(
        cohort, features=features, table=table, classes=("well", "ill"), truth=None
    )


def linear_model():
    return make_pipeline(
        FunctionTransformer(read_features), LogisticRegression(max_iter=500)
    )


def test_smaller_shares_are_nested_and_test_people_the_same(cohort, splits):
    people, labels = cohort.groups, cohort.y
    for fold, (train, test) in enumerate(splits):
        smaller: set[str] = set()
        for share in (0.25, 0.5, 0.75, 1.0):
            rows, test_rows = reduce_training_splits(cohort, splits, share)[fold]
            assert np.array_equal(test_rows, test)
            chosen = set(people[rows])
            assert smaller <= chosen <= set(people[train])
            # All visits of a chosen person stay in training.
            assert set(rows) == {r for r in train if people[r] in chosen}
            assert set(labels[rows]) == set(labels[train])
            smaller = chosen
        assert smaller == set(people[train])
    other = reduce_training_splits(cohort, splits, 0.5, random_state=1)
    assert not np.array_equal(
        other[0][0], reduce_training_splits(cohort, splits, 0.5, random_state=0)[0][0]
    )


def test_subsets_differ_and_every_second_is_the_rest_of_one_before(cohort, splits):
    people = cohort.groups
    subsets = [
        set(people[reduce_training_splits(cohort, splits, 0.5, subset_number=k)[0][0]])
        for k in range(4)
    ]
    n_classes = len(cohort.classes)
    assert subsets[0] | subsets[1] == set(people[splits[0][0]])
    # Halves of classes with odd numbers share one person.
    assert len(subsets[0] & subsets[1]) <= n_classes
    assert subsets[2] not in subsets[:2]


class LuckyClassifier(ClassifierMixin, BaseEstimator):
    """Is right about everybody, or about nobody, by the first training scan."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        self.classes_ = np.unique(y)
        self.is_lucky_ = read_features(X)[:, 0].sum() > 0
        return self

    def predict_proba(self, X):
        is_ill = read_features(X).mean(axis=1) > 0
        is_first = is_ill if self.classes_[0] == "ill" else ~is_ill
        return np.eye(2)[np.where(is_first == self.is_lucky_, 0, 1)]


def test_intervals_hold_the_luck_of_the_draw_of_people(cohort):
    data = plant_signal(cohort, np.random.default_rng(0), 3.0)
    rng = np.random.default_rng(1)
    features = data.features.copy()
    features[:, 0] = rng.normal(size=features[:, 0].shape)
    data = replace(data, features=features)
    folds = make_splits(data.y, data.groups, 3)
    models = {"lucky": LuckyClassifier()}
    curve = learning_curve(data, models, folds, shares=(0.5, 1.0), n_draws=50)
    # Fits are right or wrong about all, so people of a fold add nearly nothing.
    half = curve.iloc[0]
    assert half["high"] - half["low"] > 0.2
    assert half["slope_high"] - half["slope_low"] > 0.2
    assert curve["answer"].iloc[0] == UNCLEAR


def test_a_planted_curve_rises_and_a_permuted_one_does_not(cohort):
    gains, null_gains = [], []
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        planted = plant_signal(cohort, rng, 0.15)
        permuted = replace(planted, features=rng.permutation(planted.features))
        folds = make_splits(planted.y, planted.groups, 3)
        for data, gains_of_kind in ((planted, gains), (permuted, null_gains)):
            models = {"linear": linear_model()}
            options = {"shares": (0.25, 1.0), "n_subsets": 2, "n_draws": 50}
            curve = learning_curve(data, models, folds, **options)
            assert curve["n_train_people"].is_monotonic_increasing
            gains_of_kind.append(np.diff(curve["estimate"]).item())
    assert np.mean(gains) > 0.05
    assert np.mean(null_gains) < 0.02


class NeedsPeople(ClassifierMixin, BaseEstimator):
    """Classifies by the mean feature if trained on enough scans, else as one class."""

    def __init__(self, min_scans=0):
        self.min_scans = min_scans

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        self.classes_ = np.unique(y)
        self.has_enough_ = len(y) >= self.min_scans
        return self

    def predict_proba(self, X):
        is_ill = read_features(X).mean(axis=1) > 0
        is_first = is_ill if self.classes_[0] == "ill" else ~is_ill
        return np.eye(2)[np.where(is_first & self.has_enough_, 0, 1)]


def test_more_people_help_a_model_that_needs_them(cohort):
    data = plant_signal(cohort, np.random.default_rng(0), 1.0)
    folds = make_splits(data.y, data.groups, 3)
    n_train = min(len(train) for train, _ in folds)
    models = {"needy": NeedsPeople(n_train), "easy": NeedsPeople()}
    options = {"shares": (0.5, 0.75, 1.0), "n_subsets": 2, "n_draws": 100}
    curve = learning_curve(data, models, folds, **options).set_index("model")
    assert curve.loc["needy", "estimate"].tolist() == [0.5, 0.5, 1.0]
    x = np.log2(curve.loc["needy", "n_train_people"])
    slope = np.polyfit(x, [0.5, 0.5, 1.0], 1)[0]
    assert curve.loc["needy", "slope"].iloc[0] == pytest.approx(slope)
    assert set(curve.loc["needy", "answer"]) == {YES}
    assert set(curve.loc["easy", "answer"]) == {NO}


def test_a_model_that_learns_nothing_has_a_slope_of_zero(cohort, splits):
    options = {"shares": (0.5, 1.0), "n_subsets": 2, "n_draws": 50}
    curve = learning_curve(cohort, {"prior": DummyClassifier()}, splits, **options)
    assert curve["slope"].abs().max() < 1e-12
    assert curve["slope_high"].max() < SMALLEST_GAIN
    assert set(curve["answer"]) == {NO}


def test_fits_of_all_training_people_are_those_of_the_evaluation(
    cohort, splits, tmp_path, monkeypatch
):
    models = {"prior": DummyClassifier()}
    options = {"shares": (0.5, 1.0), "n_subsets": 2, "n_draws": 20}
    first = learning_curve(cohort, models, splits, **options, memory=tmp_path)
    n_fits = (2 + 1) * len(splits)
    assert len(list(tmp_path.glob("*.json"))) == n_fits

    def refuse(*_, **__):
        raise AssertionError("fitted again")

    monkeypatch.setattr(DummyClassifier, "fit", refuse)
    again = learning_curve(cohort, models, splits, **options, memory=tmp_path)
    pd.testing.assert_frame_equal(first, again)


def test_shares_without_two_people_of_a_site_are_left_out():
    cohort = make_cohort(60, atlas="desikan82", n_sites=2, random_state=0)
    people = list(dict.fromkeys(cohort.groups))
    site = np.where(np.isin(cohort.groups, people[:5]), "small", "large")
    cohort = replace(cohort, table=cohort.table.assign(site=site))
    folds = make_splits(cohort.y, cohort.groups, 3)
    models = {"prior": DummyClassifier()}
    options = {"shares": (0.25, 1.0), "n_subsets": 2, "n_draws": 20}
    curve = learning_curve(cohort, models, folds, harmonize="site", **options)
    assert len(curve) < 2
    assert curve["share"].iloc[-1] == 1.0


@pytest.mark.parametrize("shares", [(0.5, 0.25, 1.0), (0.0, 1.0), (0.5, 0.75)])
def test_shares_must_ascend_to_one(cohort, splits, shares):
    with pytest.raises(ParameterError, match="shares"):
        learning_curve(cohort, {"prior": DummyClassifier()}, splits, shares=shares)


def test_one_subset_is_refused(cohort, splits):
    with pytest.raises(ParameterError, match="n_subsets"):
        learning_curve(cohort, {"prior": DummyClassifier()}, splits, n_subsets=1)


def test_one_share_has_no_slope(cohort, splits):
    models = {"prior": DummyClassifier()}
    curve = learning_curve(cohort, models, splits, shares=(1.0,), n_draws=20)
    assert curve["slope"].isna().all()
    assert set(curve["answer"]) == {UNCLEAR}
