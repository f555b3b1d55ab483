"""Packed scans that can be used, features on one footing, graphs decomposed once."""

import warnings

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from brainlsap._arrays import pack
from brainlsap.exceptions import ParameterError
from brainlsap.graph import exact_heat_kernel, normalized_laplacian
from brainlsap.model.inputs import InputScaler, check_packed, make_batch

CPU = torch.device("cpu")


def test_packed_scans_come_apart(scans):
    connectomes, features = check_packed(scans.X)
    assert_array_equal(connectomes, scans.connectomes)
    assert_array_equal(features, scans.features)


def spoil(name, scans):
    X = scans.X
    if name == "nan edge":
        X[4, 1, 2] = np.nan
    elif name == "infinite edge":
        X[5, 0, 3] = np.inf
    elif name == "negative edge":
        X[6, 2, 1] = -1e-3
    elif name == "infinite feature":
        X[3, 2, -1] = -np.inf
    elif name == "no scan":
        X = X[:0]
    elif name == "no feature":
        X = X[:, :, :7]
    else:
        X = X[0]
    return X


FAULTS = {
    "nan edge": r"connectomes must be finite.*row 4 of X is not\. Leave the scan out",
    "infinite edge": r"not negative; that of row 5 of X",
    "negative edge": r"not negative; that of row 6 of X",
    "infinite feature": r"features must be finite, or NaN where not measured",
    "no scan": r"X holds no scan",
    "no feature": r"at least one feature, got \(32, 7, 7\)",
    "two axes": r"X must have shape .* got \(7, 9\)",
}


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_scans_that_cannot_be_used_are_refused(scans, name):
    X = spoil(name, scans)
    with pytest.raises(ParameterError, match=FAULTS[name]):
        check_packed(X)


@pytest.fixture
def features():
    """Region 1 constant, region 3 never measured, two values missing."""
    values = np.random.default_rng(3).normal(5, 2, (10, 6, 2))
    values[:, 1] = 0.1 + 0.2
    values[:, 3] = np.nan
    values[2, 0, 1] = values[7, 4, 0] = np.nan
    return values


def test_region_mode_standardises_each_region_over_scans(features):
    scaler = InputScaler.learn(features, "region")
    got = scaler.apply(features)
    for region in (0, 2, 4, 5):
        for kind in range(2):
            column = features[:, region, kind]
            known = ~np.isnan(column)
            expected = (column - column[known].mean()) / column[known].std()
            assert_allclose(got[known, region, kind], expected[known], atol=1e-12)
            assert not got[~known, region, kind].any()
    assert not got[:, [1, 3]].any()
    assert scaler.measured.tolist() == [True, True, True, False, True, True]


def test_region_mode_uses_the_training_scans_only(features):
    scaler = InputScaler.learn(features[:6], "region")
    later = np.full((1, 6, 2), 9.0)
    expected = (9.0 - features[:6, 5].mean(axis=0)) / features[:6, 5].std(axis=0)
    got = scaler.apply(later)
    assert_allclose(got[0, 5], expected)
    # constant and never measured regions stay silent whatever comes later
    assert not got[0, [1, 3]].any()


def test_scan_mode_is_the_papers(features):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = InputScaler.learn(features, "scan").apply(features)
    for scan in range(10):
        for kind in range(2):
            values = features[scan, :, kind]
            known = ~np.isnan(values)
            expected = (values - values[known].mean()) / np.ptp(values[known])
            assert_allclose(got[scan, known, kind], expected[known], atol=1e-12)
            assert not got[scan, ~known, kind].any()


def test_scan_mode_gives_zero_where_a_scan_tells_nothing(features):
    features[1] = 4.0  # no range
    features[5] = np.nan  # nothing measured
    got = InputScaler.learn(features, "scan").apply(features)
    assert not got[[1, 5]].any()
    assert np.isfinite(got).all()


def test_features_that_are_all_missing_are_refused():
    with pytest.raises(ParameterError, match=r"NaN in every region of every scan"):
        InputScaler.learn(np.full((4, 3, 2), np.nan), "region")


def slow_batch(scans, settings, scaled, scale):
    out = []
    for W, signal in zip(scans.connectomes, scaled, strict=True):
        kept = np.where(settings.threshold > W, 0, W)
        each = {"weighted": kept, "log": np.log(1 + kept), "binary": kept > 0}
        L = normalized_laplacian(each[settings.weights].astype(float))
        out.append(exact_heat_kernel(L, scale).numpy() @ signal)
    return np.array(out)


@pytest.mark.parametrize("weights", ["weighted", "log", "binary"])
def test_batch_diffuses_over_the_prepared_graphs(scans, settle, weights):
    settings = settle(kernel="exact", weights=weights, threshold=25.0)
    scaled = InputScaler.learn(scans.features, "region").apply(scans.features)
    scale = torch.linspace(0.2, 2.0, 7, dtype=torch.float64)
    batch = make_batch(scans.connectomes, scaled, settings, CPU, torch.float64)
    expected = slow_batch(scans, settings, scaled, scale)
    assert_allclose(batch.diffuse(scale), expected, atol=1e-10)
    single = make_batch(scans.connectomes, scaled, settings, CPU)
    assert single.signal.dtype == torch.float32
    assert_allclose(single.diffuse(scale.float()), expected, atol=1e-5)


def test_one_connectome_for_all_is_decomposed_once(scans, settle):
    settings = settle(kernel="chebyshev", tolerance=1e-9)
    shared = np.broadcast_to(scans.connectomes[2], scans.connectomes.shape)
    scaled = np.nan_to_num(scans.features)
    scale = torch.linspace(0.2, 2.0, 7, dtype=torch.float64)
    found = []
    for connectomes in (shared, shared.copy(), pack(shared, scaled)[..., :7]):
        batch = make_batch(connectomes, scaled, settings, CPU, torch.float64)
        assert batch.engine.shared
        assert len(batch.engine.vectors) == 1
        found.append(batch.diffuse(scale))
    L = normalized_laplacian(scans.connectomes[2])
    truth = exact_heat_kernel(L, scale).numpy() @ scaled
    for one in found:
        assert_allclose(one, truth, atol=1e-8)


def test_visits_with_the_same_connectome_share_a_graph(scans, settle):
    connectomes = scans.connectomes.copy()
    connectomes[1] = connectomes[0]
    scaled = np.nan_to_num(scans.features)
    batch = make_batch(connectomes, scaled, settle(kernel="exact"), CPU)
    assert len(batch.engine.vectors) == len(connectomes) - 1
    assert batch.engine.graph_of[:3].tolist() == [0, 0, 1]


def test_scans_are_left_as_they_were(scans, settle):
    X = scans.X
    before = X.copy()
    connectomes, features = check_packed(X)
    scaled = InputScaler.learn(features, "scan").apply(features)
    make_batch(connectomes, scaled, settle(threshold=30.0, weights="binary"), CPU)
    assert_array_equal(X, before)
