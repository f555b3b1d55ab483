import json

import numpy as np
import pandas as pd
import pytest

from brainlsap.evaluation.fitted_steps import keep_step, restore_step
from brainlsap.evaluation.harmonisation import CombatHarmonizer
from brainlsap.evaluation.residuals import ConfoundRegressor
from brainlsap.exceptions import FileFormatError, ParameterError


@pytest.fixture(scope="module")
def scans():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(31, 3, 5))
    X[4, 1, 4] = np.nan
    table = pd.DataFrame(
        {
            "site": np.array(["a", "b", "c"])[np.arange(31) % 3],
            "age": rng.uniform(50, 80, 31),
            "sex": np.array(["F", "M"])[rng.integers(0, 2, 31)],
        }
    )
    return X, table


@pytest.mark.parametrize(
    "step",
    [
        CombatHarmonizer("site", ("age", "sex"), "error"),
        CombatHarmonizer("site"),
        ConfoundRegressor(("sex", "age")),
    ],
    ids=["combat that preserves", "combat", "regression"],
)
def test_a_step_comes_back_from_json_to_the_last_bit(step, scans):
    X, table = scans
    step.fit(X, covariates=table)
    again = restore_step(json.loads(json.dumps(keep_step(step))))
    assert again.get_params() == step.get_params()
    np.testing.assert_array_equal(
        again.transform(X, covariates=table), step.transform(X, covariates=table)
    )


def test_what_is_no_step_is_refused(scans):
    X, table = scans
    with pytest.raises(ParameterError, match="got ConfoundRegressor, not fitted"):
        keep_step(ConfoundRegressor())
    with pytest.raises(ParameterError, match=r"step must be one of Combat.*got dict"):
        keep_step({})
    kept = keep_step(ConfoundRegressor(["age"]).fit(X, covariates=table))
    for damage in (
        {"kind": "system"},
        {"parameters": {"pillars": []}},
        {"fitted": {"slope_": {"shape": [7, 7], "values": [0.0]}}},
    ):
        with pytest.raises(FileFormatError, match=r"damaged .*Fit the model again"):
            restore_step(kept | damage)
