"""Scales and their steps, standardising, the read-out."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from brainlsap.model import HeatScale, Readout, RegionStandardizer


def with_slope(scale, slope):
    scale.raw_scale.grad = torch.tensor(slope)
    return scale


def test_every_region_starts_at_the_same_scale_and_returns_to_it():
    scale = HeatScale(4, 1.5, largest=6.0)
    with_slope(scale, [1.0, 2.0, 3.0, -4.0]).step_(0.01, clip=1.0)
    assert len(set(scale().tolist())) == 4
    scale.reset_parameters()
    assert scale().tolist() == [1.5] * 4


def test_a_step_is_plain_and_clipped():
    scale = with_slope(HeatScale(3, 2.0, largest=9.0), [0.03, -0.5, 800.0])
    scale.step_(2.0, clip=0.25)
    assert_allclose(scale().detach(), [1.94, 2.25, 1.75], rtol=1e-6)
    assert scale.n_projected == 0


def test_projection_keeps_scales_trusted_and_counts_those_above():
    scale = with_slope(HeatScale(5, 1.0, largest=1.2), [-1.0, -1.0, 0.1, 1.5, -0.1])
    scale.step_(1.0, clip=3.0)
    assert_allclose(scale().detach(), [1.2, 1.2, 0.9, 0.0, 1.1], rtol=1e-6)
    assert scale.n_projected == 2  # those pushed to 0 are not counted
    scale.project_()
    assert scale.n_projected == 2


def test_a_slope_that_is_not_a_number_leaves_the_scale_finite():
    scale = with_slope(
        HeatScale(3, 1.0, largest=9.0), [float("nan"), float("inf"), float("-inf")]
    )
    scale.step_(1.0, clip=0.5)
    assert_allclose(scale().detach(), [1.0, 0.5, 1.5])


def test_global_mode_has_one_scale_for_all_and_sums_their_slopes():
    scale = HeatScale(3, 2.0, largest=9.0, mode="global")
    assert scale.raw_scale.shape == (1,)
    (scale() * torch.tensor([0.1, 0.2, 0.3])).sum().backward()
    scale.step_(1.0, clip=10.0)
    assert_allclose(scale().detach(), [1.4] * 3, rtol=1e-6)


def test_frozen_mode_is_not_learned():
    scale = HeatScale(3, 2.0, largest=9.0, mode="frozen")
    assert not scale().requires_grad
    scale.step_(1.0, clip=1.0)
    assert scale().tolist() == [2.0] * 3


def test_a_scale_says_its_mode_and_limit():
    assert repr(HeatScale(3, 2.0, largest=9.5, mode="global")) == (
        "HeatScale(n_rois=3, mode=global, largest=9.5)"
    )


@pytest.fixture
def signals():
    rng = torch.Generator().manual_seed(4)
    Z = torch.randn(11, 3, 2, generator=rng, dtype=torch.float64)
    Z = Z * torch.tensor([1.0, 50.0, 0.02])[:, None] + 7.0
    Z[:, 1, 0] = 123.456  # this region does not vary
    return Z


def test_training_standardises_by_the_batch(signals):
    out = RegionStandardizer(3, 2)(signals).numpy()
    expected = signals.numpy()
    spread = expected.std(axis=0)
    spread[1, 0] = np.inf
    expected = (expected - expected.mean(axis=0)) / spread
    assert_allclose(out, expected, atol=1e-10)
    assert not out[:, 1, 0].any()


def test_prediction_standardises_by_what_was_remembered(signals):
    standardizer = RegionStandardizer(3, 2)
    expected = standardizer(signals)
    standardizer.remember(signals)
    standardizer.eval()
    for rows in ([0], [4, 2, 9]):
        assert_allclose(standardizer(signals[rows]), expected[rows], atol=1e-6)
    # running means would have moved; a second look at others changes nothing
    standardizer(signals[:3] + 5)
    assert torch.equal(standardizer(signals), expected)
    assert set(standardizer.state_dict()) == {"mean", "deviation"}


def test_a_constant_region_gives_zero_and_no_infinite_slope(signals):
    Z = signals.clone().requires_grad_()
    out = RegionStandardizer(3, 2)(Z)
    (out * torch.arange(6.0).reshape(3, 2)).square().sum().backward()
    assert torch.isfinite(Z.grad).all()
    assert not Z.grad[:, 1, 0].any()
    assert Z.grad[:, 1, 1].abs().min() > 0


def test_readout_is_a_perceptron_without_relu_on_its_logits():
    rng = torch.Generator().manual_seed(5)
    H = torch.randn(13, 6, generator=rng)
    readout = Readout(6, 4, 3, dropout=0.0)
    for parameter in readout.parameters():
        nn.init.normal_(parameter, generator=rng)
    logits = readout(H)
    hidden = np.maximum(H.numpy() @ weight(readout.first) + bias(readout.first), 0)
    expected = hidden @ weight(readout.second) + bias(readout.second)
    assert_allclose(logits.detach(), expected, atol=1e-5)
    assert logits.min() < 0
    squares = sum(w**2 for w in weight(readout.first).ravel())
    assert readout.penalty().item() == pytest.approx(squares)


def weight(linear):
    return linear.weight.detach().numpy().T


def bias(linear):
    return linear.bias.detach().numpy()


def test_dropout_falls_silent_in_prediction():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        readout = Readout(8, 5, 3, dropout=0.6)
        H = torch.ones(2, 8)
        assert not torch.equal(readout(H), readout(H))
    readout.eval()
    assert torch.equal(readout(H), readout(H))
