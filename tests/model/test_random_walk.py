"""Random-walk normalisation: rows sum to 1, and the slow truth is expm of its own L."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.linalg import expm

from brainlsap.model import LSAPClassifier
from brainlsap.model.inputs import make_batch

N_SCANS, N_ROIS = 5, 6


def draw_connectomes(shared=False):
    rng = np.random.default_rng(0)
    half = np.triu(rng.gamma(1.0, 40.0, (N_SCANS, N_ROIS, N_ROIS)), 1)
    W = half + half.transpose(0, 2, 1)
    W[0, 4], W[0, :, 4] = 0, 0  # an isolated region
    return np.repeat(W[1:2], N_SCANS, axis=0) if shared else W


def slow_rows(W, scale):
    """Row p of expm(-s_p (I - D^-1 W)); an isolated region keeps its own value."""
    degree = W.sum(1)
    walk = np.divide(
        W, degree[:, None], out=np.zeros_like(W), where=degree[:, None] > 0
    )
    L = np.diag((degree > 0).astype(float)) - walk
    return np.stack([expm(-s * L)[row] for row, s in enumerate(scale)])


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("kernel", ["exact", "chebyshev", "laguerre"])
def test_slow_truth(settle, kernel, shared):
    W = draw_connectomes(shared)
    settings = settle(kernel=kernel, normalization="random_walk", tolerance=1e-6)
    X = np.random.default_rng(1).normal(size=(N_SCANS, N_ROIS, 2))
    batch = make_batch(W, X, settings, torch.device("cpu"), torch.float64)
    # unequal on purpose: equal scales hide a kernel that is transposed
    scale = torch.linspace(0.1, 2.3, N_ROIS).double()
    pairs = zip(W, X, strict=True)
    truth = np.stack([slow_rows(one, scale.numpy()) @ x for one, x in pairs])
    assert_allclose(batch.diffuse(scale).numpy(), truth, atol=1e-5)
    signal = torch.from_numpy(X)
    assert_allclose(batch.diffuse_signal(signal, scale).numpy(), truth, atol=1e-5)
    some = batch.select(torch.tensor([3, 0]))
    assert_allclose(some.diffuse(scale).numpy(), truth[[3, 0]], atol=1e-5)


def test_rows_sum_to_one_and_those_of_the_symmetric_kernel_do_not(settle):
    W, scale = draw_connectomes(), torch.linspace(0.1, 2.3, N_ROIS).double()
    ones = np.ones((N_SCANS, N_ROIS, 1))
    sums = {}
    for name in ("random_walk", "symmetric"):
        settings = settle(kernel="exact", normalization=name)
        batch = make_batch(W, ones, settings, torch.device("cpu"), torch.float64)
        sums[name] = batch.diffuse(scale).numpy()[:, :, 0]
    assert_allclose(sums["random_walk"], 1, atol=1e-12)
    assert np.abs(sums["symmetric"] - 1).max() > 0.01


def test_gradient_of_scales(settle):
    settings = settle(kernel="exact", normalization="random_walk")
    X = np.random.default_rng(1).normal(size=(N_SCANS, N_ROIS, 2))
    args = (draw_connectomes(), X, settings, torch.device("cpu"), torch.float64)
    batch = make_batch(*args)
    scale = torch.linspace(0.2, 2.3, N_ROIS).double().requires_grad_()
    H = torch.from_numpy(X).requires_grad_()
    assert torch.autograd.gradcheck(batch.diffuse, scale)
    assert torch.autograd.gradcheck(batch.diffuse_signal, (H, scale))


def fit(scans, **given):
    small = {"n_epochs": 30, "n_starts": 1, "initial_scale": 1.0, "random_state": 0}
    model = LSAPClassifier(**(small | given))
    return model.fit(scans.X, scans.y, groups=scans.people)


def test_constant_inputs_read_degrees_only_through_the_symmetric_kernel(scans):
    symmetric = fit(scans, inputs="constant")
    with pytest.warns(UserWarning, match="starts stayed dead"):
        walk = fit(scans, inputs="constant", normalization="random_walk", n_epochs=3)
    spread = symmetric.predict_proba(scans.X).std(axis=0)
    assert (spread > 1e-3).all()
    assert_allclose(walk.predict_proba(scans.X).std(axis=0), 0, atol=1e-6)


def test_constant_inputs_never_see_the_features(scans, draw_scans):
    model = fit(scans, inputs="constant", n_epochs=4)
    other = scans.with_features(draw_scans(seed=4).features)
    assert_allclose(model.predict_proba(other.X), model.predict_proba(scans.X))


def test_it_learns(scans):
    model = fit(scans, normalization="random_walk", n_epochs=60)
    assert (model.predict(scans.X) == scans.y).mean() > 0.8
