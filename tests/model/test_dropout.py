"""Dropping entries: how many, independently, and in one pass with rectifying."""

import pytest
import torch

from brainlsap.model.dropout import drop, rectify_and_drop


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.3, 0.5, 0.85, 0.875])
def test_dropping_keeps_the_mean_and_the_share_asked_for(rate):
    x = torch.ones(101, 67, 3, dtype=torch.float64, requires_grad=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        kept, again = drop(x, rate, training=True), drop(x, rate, training=True)
    assert kept.shape == x.shape
    assert not torch.equal(kept, again)
    values = kept.unique().tolist()
    assert values[0] == 0.0
    assert values[1:] == pytest.approx([1 / (1 - round(rate * 256) / 256)])
    silent = (kept == 0).double()
    assert silent.mean().item() == pytest.approx(rate, abs=0.015)
    # neighbours are dropped independently of each other, in every direction
    for axis in range(3):
        pairs = silent.narrow(axis, 1, silent.shape[axis] - 1) * silent.narrow(
            axis, 0, silent.shape[axis] - 1
        )
        assert pairs.mean().item() == pytest.approx(rate**2, abs=0.02)
    kept.sum().backward()
    assert torch.equal(x.grad, kept.detach())


def test_nothing_is_dropped_in_prediction_or_at_rate_zero():
    x = torch.arange(6.0)
    assert torch.equal(drop(x, 0.5, training=False), x)
    assert torch.equal(drop(x, 0.0, training=True), x)


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_rectify_and_drop_is_both_in_turn(rate):
    x = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    weight = torch.arange(35.0).reshape(7, 5)
    got, slopes = [], []
    for step in (
        lambda z: rectify_and_drop(z, rate, True),
        lambda z: drop(torch.relu(z), rate, True),
    ):
        leaf = x.clone().requires_grad_()
        torch.manual_seed(3)
        out = step(leaf * 1.0)
        (out * weight).sum().backward()
        got.append(out.detach())
        slopes.append(leaf.grad)
    assert torch.equal(*got)
    torch.testing.assert_close(*slopes)
    assert rectify_and_drop(x.clone(), rate, False).equal(torch.relu(x))
