"""Every step of preparation against a slow loop; what is learned, from whom."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from brainlsap.exceptions import ParameterError
from brainlsap.graph import Preparation, covariance_connectome
from brainlsap.graph.laplacian import (
    learn_connectome_profile,
    make_unlike_mask_by_reason,
)

N_SCANS, N_ROIS, N_FEATURES = 9, 7, 2
PEOPLE = np.array(["a", "a", "a", "b", "c", "c", "d", "e", "f"])


@pytest.fixture
def W():
    """Counts with zeros, unequal directions and a diagonal."""
    rng = np.random.default_rng(4)
    drawn = rng.poisson(6.0, (N_SCANS, N_ROIS, N_ROIS)).astype(float)
    drawn[rng.random(drawn.shape) < 0.35] = 0.0
    return drawn


def slow_edges(W, threshold):
    """Return steps 1 and 2, one pair of regions at a time."""
    n = len(W)
    made = np.zeros((n, n))
    for i, j in np.ndindex(n, n):
        weight = (W[i, j] + W[j, i]) / 2
        if i != j and weight >= threshold:
            made[i, j] = weight
    return made


def slow_weights(made, weights):
    each = {"weighted": lambda w: w, "log": lambda w: np.log(1 + w)}
    return np.vectorize(each.get(weights, lambda w: float(w > 0)))(made)


@pytest.mark.parametrize("weights", ["weighted", "log", "binary"])
@pytest.mark.parametrize("threshold", [0.0, 4.0])
def test_steps_are_those_of_a_slow_loop(W, threshold, weights):
    before = W.copy()
    got = Preparation(threshold=threshold, weights=weights).apply(W)
    for one, raw in zip(got, W, strict=True):
        expected = slow_weights(slow_edges(raw, threshold), weights)
        assert_allclose(one, expected, rtol=1e-14)
    assert_array_equal(W, before)


@pytest.fixture
def features():
    rng = np.random.default_rng(8)
    common = rng.normal(size=(len(PEOPLE), 1, N_FEATURES))
    values = 100 + common + 0.8 * rng.normal(size=(len(PEOPLE), N_ROIS, N_FEATURES))
    values[:, 1] *= -1
    values[2, 4, 0] = values[7, 0, 1] = np.nan
    values[:, 5] = np.nan
    values[:, 6, 0] = 0.1 + 0.2  # whose means over visits differ by rounding
    return values


def test_covariance_is_correlation_over_people(features):
    expected = np.zeros((N_ROIS, N_ROIS))
    for kind in range(N_FEATURES):
        table = pd.DataFrame(features[..., kind]).groupby(PEOPLE).mean()
        for i, j in np.ndindex(N_ROIS, N_ROIS):
            known = table[[i, j]].dropna().to_numpy()
            if i != j and len(known) > 2 and (known.std(axis=0) > 1e-9).all():
                correlation = np.corrcoef(known.T)[0, 1]
                expected[i, j] += max(correlation, 0) / N_FEATURES
    got = covariance_connectome(features, PEOPLE)
    assert_allclose(got, expected, atol=1e-10)
    assert got.max() > 0.1
    assert not got[5].any()
    assert_array_equal(got, got.T)


def test_features_that_go_against_each_other_do_not_cancel():
    values = np.random.default_rng(0).normal(size=20)
    with_first = np.stack([values, values, -values], axis=1)
    with_second = np.stack([values, -values, -values], axis=1)
    network = covariance_connectome(np.stack([with_first, with_second], axis=2))
    expected = [[0, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0]]
    assert_allclose(network, expected, atol=1e-12)


def test_covariance_of_training_people_serves_everybody(W, features):
    options = {"threshold": 0.4}
    given = Preparation(connectome="covariance", **options)
    learned = given.learn(features[:7], PEOPLE[:7])
    network = covariance_connectome(features[:7], PEOPLE[:7])
    expected = Preparation(**options).apply(network[None])
    assert_allclose(learned.apply(np.zeros_like(W[7:])), expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"weights": "mm"}, r"weights must be one of 'binary'"),
        ({"threshold": 10.0, "connectome": "covariance"}, "at most 1; got 10"),
    ],
)
def test_options_that_cannot_be_used_are_refused(given, message):
    with pytest.raises(ParameterError, match=message):
        Preparation(**given)


def test_a_covariance_needs_three_people(features):
    with pytest.raises(ParameterError, match="at least 3 people; got 2"):
        covariance_connectome(features[:4], PEOPLE[:4])


def test_a_reason_has_the_value_of_the_unlike_scans(W):
    training_kind = learn_connectome_profile(W)
    W[3] *= 1e-6
    ((reason, unlike_scan_mask),) = make_unlike_mask_by_reason(W, training_kind).items()
    assert np.flatnonzero(unlike_scan_mask).tolist() == [3]
    upper_weights = W[3][np.triu_indices(N_ROIS, 1)]
    expected_mean = upper_weights[upper_weights > 0].mean()
    assert reason.startswith(f"mean weight {expected_mean:.3g} ")
