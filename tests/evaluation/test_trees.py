"""Trees on features."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from brainlsap.evaluation.trees import TreeClassifier
from brainlsap.exceptions import ParameterError


def draw_scans():
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(60, 3, 5))
    y = np.array(["0", "1", "2"], dtype=object)[np.arange(60) % 3]
    X[:, 1, 4] += 4 * (np.arange(60) % 3)
    X[0, 2, 4] = np.nan
    return X, y


@pytest.mark.parametrize("kind", ["boosting", "forest"])
def test_it_learns_repeats_itself_and_never_sees_the_network(kind):
    X, y = draw_scans()
    model = TreeClassifier(kind, n_trees=30).fit(X, y)
    told = model.predict_proba(X)
    assert_allclose(told.sum(1), 1)
    assert (model.predict(X) == y).mean() > 0.9
    assert_array_equal(
        TreeClassifier(kind, n_trees=30).fit(X, y).predict_proba(X), told
    )
    X[:, :, :3] = 0
    assert_array_equal(model.predict_proba(X), told)


def test_unknown_kind_is_refused():
    with pytest.raises(ParameterError, match=r"kind must be one of .*got 'bush'"):
        TreeClassifier("bush").fit(*draw_scans())
