"""Covariates regressed out on the training scans' slopes, and how columns are read."""

import numpy as np
import pandas as pd
import pytest

from brainlsap.evaluation import ConfoundRegressor
from brainlsap.evaluation.covariate_design import CovariateDesign, find_column
from brainlsap.exceptions import ParameterError

N = 40


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "Age": rng.uniform(50, 90, N),
            "sex": np.where(rng.uniform(size=N) < 0.5, "F", "M"),
            "EstimatedTotalIntraCranialVol": rng.normal(1.5e6, 1e5, N),
        }
    )


@pytest.fixture
def X(table):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, 3, 5))
    X[..., 3:] += 0.1 * table["Age"].to_numpy()[:, None, None]
    X[..., 4] += 2.0 * (table["sex"] == "M").to_numpy()[:, None]
    return X


def test_nothing_is_left_of_the_covariates_in_training(X, table):
    columns = ("age", "sex", "etiv")
    model = ConfoundRegressor(columns).fit(X, covariates=table)
    left = model.transform(X, covariates=table)[..., 3:].reshape(N, -1)
    design = CovariateDesign.learn(columns, table).apply(table)
    scaled = design / design.std(axis=0)
    np.testing.assert_allclose(scaled.T @ (left - left.mean(axis=0)), 0, atol=1e-8)
    np.testing.assert_allclose(
        left.mean(axis=0), X[..., 3:].reshape(N, -1).mean(axis=0)
    )
    assert model.slope_.shape == (3, 6)
    np.testing.assert_array_equal(
        model.transform(X, covariates=table)[..., :3], X[..., :3]
    )


def test_test_scans_cannot_change_the_fit(X, table):
    train = np.arange(N) < 25
    one = ConfoundRegressor(["age"]).fit(X[train], covariates=table[train])
    other = X.copy()
    other[~train] = 99.0
    two = ConfoundRegressor(["age"]).fit(other[train], covariates=table[train])
    np.testing.assert_array_equal(one.slope_, two.slope_)
    alone = one.transform(X[30:31], covariates=table[30:31])
    np.testing.assert_array_equal(alone[0], one.transform(X, covariates=table)[30])


def test_missing_values_stay_and_missing_covariates_say_nothing(X, table):
    gaps = X.copy()
    gaps[5, 1, 3] = np.nan
    gaps[:, 2, 4] = np.nan
    gaps[2:, 0, 4] = np.nan  # too few to tell a slope
    holes = table.assign(Age=table["Age"].where(table.index > 3))
    model = ConfoundRegressor(["age", "sex"]).fit(gaps, covariates=holes)
    left = model.transform(gaps, covariates=holes)
    np.testing.assert_array_equal(np.isnan(left), np.isnan(gaps))
    np.testing.assert_array_equal(left[:2, 0, 4], gaps[:2, 0, 4])
    unknown = holes.assign(Age=np.nan, sex="other")
    np.testing.assert_array_equal(model.transform(X, covariates=unknown), X)


def test_another_coding_is_refused(table):
    design = CovariateDesign.learn(("age", "sex"), table)
    with pytest.raises(ParameterError, match="'sex' was F or M in training, got '1'"):
        design.apply(table.assign(sex=np.arange(N) % 2 + 1))
    with pytest.raises(ParameterError, match="'Age' was numbers in training, got '60-"):
        design.apply(table.assign(Age="60-70"))
    # a word that training had not says nothing, nor does what is missing
    assert (design.apply(table.assign(sex="X", Age=None)) == 0).all()
    numbered = CovariateDesign.learn(("sex",), table.assign(sex=["1", "x"] * (N // 2)))
    assert (numbered.apply(table.assign(sex="3")) == 0).all()


def test_columns_are_found_whatever_their_case(table):
    assert find_column(table, "age") == "Age"
    assert find_column(table, "eTIV") == "EstimatedTotalIntraCranialVol"
    with pytest.raises(ParameterError, match="have no column 'height'; there are Age"):
        find_column(table, "height")
    with pytest.raises(ParameterError, match="have more than one column 'age'"):
        find_column(table.assign(AGE=1), "age")
    with pytest.raises(ParameterError, match="'Age' is missing in every training scan"):
        CovariateDesign.learn(["age"], table.assign(Age=np.nan))


def test_covariates_are_needed(X):
    with pytest.raises(ParameterError, match="ConfoundRegressor needs covariates"):
        ConfoundRegressor().fit(X)
