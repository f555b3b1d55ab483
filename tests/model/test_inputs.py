"""Packed scans that can be used, features on one footing, graphs decomposed once."""

import warnings

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from brainlsap.arrays import PackedScans, pack_scans
from brainlsap.exceptions import ParameterError
from brainlsap.graph import exact_heat_kernel, normalized_laplacian
from brainlsap.model.inputs import (
    InputScaler,
    check_and_unpack_scans,
    make_batch,
    order_classes_and_codes,
)
from tests.model.conftest import settle


def batch_of(W, scaled, settings, dtype=torch.float64):
    where = torch.device("cpu"), dtype
    return make_batch(W, scaled, settings, settings.preparation(), *where)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_packed_scans_come_apart_and_stay_as_they_were(scans, dtype):
    X = scans.X.astype(dtype)
    before = X.copy()
    connectomes, features = check_and_unpack_scans(X)
    assert connectomes.base is not None  # a view: connectomes are not copied
    assert features.dtype == np.float64
    assert_allclose(connectomes, scans.connectomes, rtol=1e-6)
    scaled = InputScaler.learn(features, "scan").apply(features)
    batch_of(connectomes, scaled, settle(threshold=30.0, weights="binary"))
    assert_array_equal(X, before)


FAULTS = {
    "nan edge": r"row 4 of X contains a weight",
    "negative edge": r"row 6 of X.*negative='drop'",
    "infinite feature": r"got -inf in row 3 of X",
    "no scan": r"X contains no scan",
    "no feature": r"at least one feature; got \(32, 7, 7\)",
    "two axes": r"X must have shape .* got \(7, 9\).*StandardScaler",
    "other size": r"5 regions and 2 features, as in the fit; got 7 regions and 2 "
    "features",
}


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_scans_that_cannot_be_used_are_refused(scans, name):
    X = scans.X
    X[4, 1, 2] = np.nan if name == "nan edge" else X[4, 1, 2]
    X[6, 2, 1] = -1e-3 if name == "negative edge" else X[6, 2, 1]
    X[3, 2, -1] = -np.inf if name == "infinite feature" else X[3, 2, -1]
    chosen = {"no scan": X[:0], "no feature": X[:, :, :7], "two axes": X[0]}
    with pytest.raises(ParameterError, match=FAULTS[name]):
        check_and_unpack_scans(
            chosen.get(name, X), (5, 2) if name == "other size" else None
        )


def test_connectomes_permuted_on_one_axis_are_refused(scans):
    X = scans.X
    n_rois = X.shape[1]
    order = np.random.default_rng(0).permutation(n_rois)
    check_and_unpack_scans(X[:, order][..., [*order, *range(n_rois, X.shape[2])]])
    one_triangle = X.copy()
    one_triangle[..., :n_rois] = np.triu(X[..., :n_rois])
    check_and_unpack_scans(one_triangle)
    X[5] = X[5, order]
    with pytest.raises(ParameterError, match="row 5 of X"):
        check_and_unpack_scans(X)


def test_classes_are_taken_in_the_order_given():
    y = np.array(["CN", "AD", "MCI", "CN"])
    found, codes = order_classes_and_codes(y, 4, ("CN", "SMC", "MCI", "AD"), "ordinal")
    assert (found.tolist(), codes.tolist()) == (["CN", "MCI", "AD"], [0, 2, 1, 0])
    found, codes = order_classes_and_codes(np.array([7, 1, 4]), 3, None, "ordinal")
    assert (found.tolist(), codes.tolist()) == ([1, 4, 7], [2, 0, 1])


STAGES = ("CN", "MCI", "AD")


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        # ADNI's usual three would sort to AD, CN, MCI
        (STAGES, None, "unknown for AD, CN, MCI.*with classes="),
        (
            STAGES,
            ("CN", "AD"),
            r"got \['CN', 'AD'\], but y contains \['AD', 'CN', 'MCI'",
        ),
        (STAGES, ("CN", *STAGES), "every class of y once"),
        # scikit-learn's numbers for sorted labels
        ((0, 1, 2), STAGES, r"contains \[0, 1, 2\]\. .*codes, classes=range"),
        (("CN", "CN", "CN"), None, r"two classes; got only 'CN'\."),
        (("CN", "AD"), None, r"shape \(3,\).* got \(2,\)"),
    ],
)
def test_without_an_order_the_ordinal_head_is_refused(y, classes, message):
    with pytest.raises(ParameterError, match=message):
        order_classes_and_codes(np.array(y), 3, classes, "ordinal")


@pytest.fixture
def features():
    """Region 1 constant, region 3 never measured, two values missing."""
    values = np.random.default_rng(3).normal(5, 2, (10, 6, 2))
    values[:, 1] = 0.1 + 0.2
    values[:, 3] = np.nan
    values[2, 0, 1] = values[7, 4, 0] = np.nan
    return values


def test_region_mode_standardises_over_the_training_scans_only(features):
    scaler = InputScaler.learn(features[:8])
    got = scaler.apply(features)
    for region in (0, 2, 4, 5):
        for kind in range(2):
            column = features[:, region, kind]
            known = ~np.isnan(column)
            train = column[:8][known[:8]]
            expected = (column - train.mean()) / train.std()
            assert_allclose(got[known, region, kind], expected[known], atol=1e-12)
            assert not got[~known, region, kind].any()
    # constant and never measured regions stay 0 whatever comes later
    assert not scaler.apply(np.full((1, 6, 2), 9.0))[0, [1, 3]].any()
    assert scaler.measured.tolist() == [True, True, True, False, True, True]
    with pytest.raises(ParameterError, match="NaN in every region of every scan"):
        InputScaler.learn(np.full((4, 3, 2), np.nan))


def test_scan_mode_is_the_papers(features):
    features[1] = 4.0  # no range
    features[5] = np.nan  # nothing measured
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = InputScaler.learn(features, "scan").apply(features)
    assert not got[[1, 5]].any()
    for scan in (0, 2, 7):
        for kind in range(2):
            values = features[scan, :, kind]
            known = ~np.isnan(values)
            expected = (values - values[known].mean()) / np.ptp(values[known])
            assert_allclose(got[scan, known, kind], expected[known], atol=1e-12)
            assert not got[scan, ~known, kind].any()


@pytest.mark.parametrize("weights", ["weighted", "log", "binary"])
def test_batch_diffuses_over_the_prepared_graphs(scans, weights):
    settings = settle(kernel="exact", weights=weights, threshold=25.0)
    scaled = InputScaler.learn(scans.features).apply(scans.features)
    scale = torch.linspace(0.2, 2.0, 7, dtype=torch.float64)
    expected = []
    for W, signal in zip(scans.connectomes, scaled, strict=True):
        kept = np.where(W < 25.0, 0, W)
        each = {"weighted": kept, "log": np.log(1 + kept), "binary": kept > 0}
        L = normalized_laplacian(each[weights].astype(float))
        expected.append(exact_heat_kernel(L, scale).numpy() @ signal)
    batch = batch_of(scans.connectomes, scaled, settings)
    assert_allclose(batch.diffuse(scale), expected, atol=1e-10)
    single = batch_of(scans.connectomes, scaled, settings, torch.float32)
    assert_allclose(single.diffuse(scale.float()), expected, atol=1e-5)


def test_one_connectome_for_all_is_decomposed_once(scans):
    settings = settle(kernel="chebyshev", tolerance=1e-9, n_layers=2)
    shared = np.broadcast_to(scans.connectomes[2], scans.connectomes.shape)
    scaled = np.nan_to_num(scans.features)
    scale = torch.linspace(0.2, 2.0, 7, dtype=torch.float64)
    L = normalized_laplacian(scans.connectomes[2])
    truth = exact_heat_kernel(L, scale).numpy() @ scaled
    for connectomes in (shared, shared.copy(), pack_scans(shared, scaled)[..., :7]):
        batch = batch_of(connectomes, scaled, settings)
        assert len(batch.graphs[0]) == 1
        exact = connectomes.dtype == np.float64
        assert_allclose(batch.diffuse(scale), truth, atol=1e-8 if exact else 1e-5)


@pytest.mark.parametrize("is_shared", [False, True])
def test_terms_of_one_layer_are_those_of_a_decomposed_graph(is_shared):
    rng = np.random.default_rng(0)
    W = rng.gamma(1.0, size=(1 if is_shared else 11, 6, 6))
    W = np.triu(W, 1) + np.triu(W, 1).transpose(0, 2, 1)
    W[0, 2] = W[0, :, 2] = 0  # a region without a link
    W = np.repeat(W, 11, axis=0) if is_shared else W
    signals = rng.normal(size=(11, 6, 2))
    settings = settle(n_layers=1, degree=5)
    eigenvalues, U = np.linalg.eigh(normalized_laplacian(W).numpy() - np.eye(6))
    angles = np.arccos(np.clip(eigenvalues, -1, 1))
    terms = [
        np.einsum("gij,gj,gkj,gkc->gic", U, np.cos(n * angles), U, signals)
        for n in range(6)
    ]
    assert_allclose(batch_of(W, signals, settings).signal, terms, atol=1e-12)


def test_packed_scans_of_a_cohort_are_those_of_an_array(scans):
    W, features = scans.connectomes.astype(np.float32), scans.X[:, :, 7:]
    rows = np.array([4, 1, 9])
    packed_scans = PackedScans(W, features, rows)
    assert_array_equal(np.asarray(packed_scans), pack_scans(W, features, rows))
    for got, expected in zip(
        check_and_unpack_scans(packed_scans),
        check_and_unpack_scans(pack_scans(W, features, rows)),
        strict=True,
    ):
        assert_array_equal(got[:], expected)
