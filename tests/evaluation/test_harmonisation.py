"""ComBat against neuroCombat's stored output; nothing of the test fold in the fit."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from brainlsap.evaluation import CombatHarmonizer, cross_validate
from brainlsap.exceptions import ParameterError

REFERENCE = Path(__file__).parent / "reference" / "combat.npz"
N_ROIS, N_FEATURES = 4, 3


@pytest.fixture(scope="module")
def reference():
    with np.load(REFERENCE, allow_pickle=False) as file:
        return dict(file)


@pytest.fixture(scope="module")
def table(reference):
    return pd.DataFrame({name: reference[name] for name in ("site", "age", "sex")})


@pytest.fixture(scope="module")
def X(reference):
    values = reference["values"].reshape(-1, N_ROIS, N_FEATURES)
    edges = np.random.default_rng(0).uniform(size=(len(values), N_ROIS, N_ROIS))
    return np.concatenate([edges, values], axis=2)


def harmonised(X, table, rows=slice(None), **settings):
    model = CombatHarmonizer(**settings).fit(X[rows], covariates=table[rows])
    return model.transform(X, covariates=table)


def features(X):
    return X[..., N_ROIS:].reshape(len(X), -1)


@pytest.mark.parametrize(
    ("preserve", "key", "error"),
    [
        ((), "plain", 1e-11),
        (("age", "sex"), "tight", 1e-11),
        (("AGE", "sex"), "early", 1e-4),
    ],
)
def test_it_is_what_neurocombat_makes(X, table, reference, preserve, key, error):
    found = harmonised(X, table, preserve=preserve)
    np.testing.assert_allclose(features(found), reference[key], atol=error, rtol=0)
    np.testing.assert_array_equal(found[..., :N_ROIS], X[..., :N_ROIS])


def test_the_arrays_given_are_left_alone(X, table):
    before = X.copy()
    harmonised(X, table)
    np.testing.assert_array_equal(X, before)


def test_scans_of_the_test_fold_cannot_change_the_fit(X, table):
    train = np.arange(len(X)) % 3 > 0
    one = CombatHarmonizer(preserve=["age"]).fit(X[train], covariates=table[train])
    changed, other = X.copy(), table.copy()
    changed[~train] = 1e6
    other.loc[~train, "age"] = 1
    two = clone(one).fit(changed[train], covariates=other[train])
    np.testing.assert_array_equal(one.gamma_, two.gamma_)
    some = np.flatnonzero(~train)[:1]
    alone = one.transform(X[some], covariates=table.iloc[some])
    together = one.transform(X, covariates=table)
    np.testing.assert_array_equal(alone[0], together[some[0]])


def test_the_label_is_not_looked_at(X, table):
    y = np.random.default_rng(0).permutation(len(X))
    one = CombatHarmonizer().fit(X, y, covariates=table)
    two = CombatHarmonizer().fit(X, covariates=table.assign(label=y))
    np.testing.assert_array_equal(one.delta_, two.delta_)


def test_sites_come_together_and_what_is_preserved_stays(X, table):
    found = features(harmonised(X, table, preserve=["age", "sex"]))
    before = pd.DataFrame(features(X)).groupby(table["site"]).mean()
    after = pd.DataFrame(found).groupby(table["site"]).mean()
    assert np.ptp(after, axis=0).mean() < 0.3 * np.ptp(before, axis=0).mean()
    slope = [np.polyfit(table["age"], one, 1)[0] for one in found.T]
    assert np.mean(slope) < -0.005


def test_unseen_sites_are_kept_with_a_warning_or_refused(X, table):
    seen = (table["site"] != "west").to_numpy()
    with pytest.warns(UserWarning, match=r"11 scans are of sites .* \(west\); they"):
        found = harmonised(X, table, seen)
    np.testing.assert_array_equal(found[~seen], X[~seen])
    assert not np.array_equal(found[seen], X[seen])
    with pytest.raises(ParameterError, match=r"not learned \(west\); unseen=.keep"):
        harmonised(X, table, seen, unseen="error")


def test_a_site_of_one_scan_is_no_site(X, table):
    few = table.assign(site=table["site"].where(table.index > 0, "lonely"))
    with pytest.warns(UserWarning, match=r"1 scans are of sites .*lonely"):
        found = harmonised(X, few)
    np.testing.assert_array_equal(found[0], X[0])


def test_missing_values_stay_and_are_not_learned_from(X, table):
    gaps = X.copy()
    gaps[3, 1, N_ROIS] = gaps[20:, 2, N_ROIS + 1] = np.nan
    gaps[:, 3, -1] = np.nan
    found = harmonised(gaps, table, preserve=["age"])
    np.testing.assert_array_equal(np.isnan(found), np.isnan(gaps))
    with_mean = harmonised(X, table.assign(age=table["age"].mean()))
    missing = table.assign(age=table["age"].where(table.index > 4))
    assert np.isfinite(harmonised(X, missing, preserve=["age"])).all()
    assert np.isfinite(with_mean).all()


def test_features_that_do_not_vary_are_left_alone(X, table):
    flat = X.copy()
    flat[:, 0, N_ROIS] = 3.3
    found = harmonised(flat, table)
    np.testing.assert_allclose(found[:, 0, N_ROIS], 3.3, rtol=1e-14)
    one = np.concatenate([X[..., :N_ROIS], X[..., N_ROIS : N_ROIS + 1] * 0 + 2], axis=2)
    one[:, 0, -1] = X[:, 0, N_ROIS]  # a single value has nothing to borrow from
    assert np.isfinite(harmonised(one, table)).all()


def test_impossible_requests(X, table):
    model = CombatHarmonizer()
    with pytest.raises(ParameterError, match=r"needs covariates: .* got NoneType"):
        model.fit(X)
    with pytest.raises(ParameterError, match=r"of the 34 scans.* DataFrame of 3 r"):
        model.fit(X, covariates=table[:3])
    with pytest.raises(ParameterError, match="have no column 'town'; there are site"):
        CombatHarmonizer("town").fit(X, covariates=table)
    with pytest.raises(ParameterError, match="at least two values with 2 scans"):
        model.fit(X, covariates=table.assign(site="one"))
    with pytest.raises(ParameterError, match="1 scans have no site; give one"):
        model.fit(X, covariates=table.assign(site=table["site"].where(table.index > 0)))
    with pytest.raises(ParameterError, match="unseen must be one of 'error', 'keep'"):
        CombatHarmonizer(unseen="guess").fit(X, covariates=table)


class Flat(LogisticRegression):
    def fit(self, X, y):
        return super().fit(np.nan_to_num(X[..., X.shape[1] :]).reshape(len(X), -1), y)

    def predict_proba(self, X):
        flat = np.nan_to_num(X[..., X.shape[1] :]).reshape(len(X), -1)
        return super().predict_proba(flat)


def test_cross_validation_hands_covariates_to_every_fold(cohort):
    from dataclasses import replace

    site = np.where(np.arange(cohort.n_scans) % 3 == 0, "north", "south")
    shifted = cohort.features + (site == "north")[:, None, None] * 3.0
    sited = replace(cohort, features=shifted, table=cohort.table.assign(site=site))
    model = make_pipeline(CombatHarmonizer(preserve=["age"]), Flat(C=0.1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluation = cross_validate(model, sited, 3, baselines=False)
    fold = evaluation.main.folds[0]
    train, test = evaluation.splits[0]
    X = sited.to_array()
    combat = CombatHarmonizer(preserve=["age"])
    combat.fit(X[train], covariates=sited.table.iloc[train])
    Z = combat.transform(X, covariates=sited.table)
    by_hand = Flat(C=0.1).fit(Z[train], sited.y[train]).predict_proba(Z[test])[:, ::-1]
    np.testing.assert_array_equal(fold.probability, by_hand)
