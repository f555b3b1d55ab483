"""The whole network against a slow one in NumPy, and its gradients."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from brainlsap.graph import KERNELS, exact_heat_kernel
from brainlsap.model.network import (
    DropoutMasks,
    HeatScale,
    RegionStandardizer,
    _LinearReluDrop,
    drop_random_entries,
    ordinal_log_probabilities,
)
from brainlsap.model.settings import Settings
from tests.model.conftest import draw_batch, draw_network, settle, slow_logits

CODES = torch.arange(9) % 3


def loss_and_gradients(network, batch):
    network.zero_grad()
    loss = nn.functional.cross_entropy(network(batch), CODES)
    loss.backward()
    found = {name: p.grad for name, p in network.named_parameters()}
    return {"loss": loss.detach(), **found}


@pytest.mark.parametrize("standardize", ["region", "scan"])
@pytest.mark.parametrize("n_layers", [1, 2, 3])
@pytest.mark.parametrize("kernel", KERNELS)
def test_forward_is_the_slow_network(kernel, n_layers, standardize):
    given = {"standardize": standardize, "tolerance": 1e-9}
    settings = settle(kernel=kernel, n_layers=n_layers, **given)
    batch, L, X = draw_batch(settings)
    network = draw_network(settings)
    expected = slow_logits(network, L, X)
    assert np.ptp(expected, axis=0).min() > 1e-3
    got = network(batch)  # training: the batch's own statistics
    assert got.shape == (9, 3)
    assert_allclose(got.detach(), expected, atol=1e-6)
    network.remember_statistics(batch)
    assert network.training
    network.eval()
    assert_allclose(network(batch).detach(), expected, atol=1e-6)
    # one scan at a time is the same as all at once
    after = np.arange(27.0).reshape(9, 3)
    batch.offset = torch.from_numpy(after)
    one = network(batch.select_items(torch.tensor([4])))
    assert_allclose(one.detach()[0], expected[4] + after[4], atol=1e-6)


@pytest.mark.parametrize("scale_mode", ["region", "global"])
@pytest.mark.parametrize("n_layers", [1, 2])
@pytest.mark.parametrize("kernel", KERNELS)
def test_gradient_of_scales_is_the_finite_difference(kernel, n_layers, scale_mode):
    settings = settle(kernel=kernel, n_layers=n_layers, scale_mode=scale_mode)
    batch, _, _ = draw_batch(settings)
    network = draw_network(settings)
    raw = network.heat.raw_scale
    analytic = loss_and_gradients(network, batch)["heat.raw_scale"]
    assert analytic.shape == ((6,) if scale_mode == "region" else (1,))
    numeric, step = torch.zeros_like(raw), 1e-6
    with torch.no_grad():
        for region in range(len(raw)):
            for sign in (1, -1):
                raw[region] += sign * step
                loss = nn.functional.cross_entropy(network(batch), CODES)
                numeric[region] += sign * loss / (2 * step)
                raw[region] -= sign * step
    assert analytic.abs().max() > 1e-3
    assert_allclose(analytic, numeric, atol=2e-8)


@pytest.mark.parametrize("scale_mode", ["region", "global", "frozen"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_one_layer_at_once_is_one_step_after_the_other(
    scale_mode, dropout, monkeypatch
):
    settings = settle(n_layers=1, scale_mode=scale_mode, dropout=dropout)
    batch, _, _ = draw_batch(settings)
    network = draw_network(settings)
    network.dropout = dropout
    network._dropout_masks = DropoutMasks(round(256 * dropout))
    n_rois, n_units = len(network.rows), network.mix[0].out_features
    mask = (torch.arange(n_rois * n_units * 9) % 3 > 0).double()
    limits = mask * torch.finfo(mask.dtype).max
    monkeypatch.setattr(DropoutMasks, "draw_mask", lambda *_: limits)
    monkeypatch.setattr("brainlsap.model.network._draw_random_bytes", lambda *_: None)
    # the same mask with the regions of an item side by side
    item_mask = mask.view(n_rois, n_units, 9).permute(2, 0, 1)
    monkeypatch.setattr(
        "brainlsap.model.network._make_keep_mask",
        lambda _bytes, _level, x: (
            item_mask.reshape(x.shape)
            if x.numel() == mask.numel()
            else torch.ones_like(x)
        ),
    )
    assert network.reads_terms
    at_once = loss_and_gradients(network, batch)
    network.reads_terms = False
    step_by_step = loss_and_gradients(network, batch)
    assert at_once["readout.weight"].abs().max() > 1e-4
    for name, value in step_by_step.items():
        if value is None:
            assert at_once[name] is None
        else:
            assert_allclose(at_once[name], value, atol=1e-12)


def test_dropout_masks_keep_their_share_and_differ():
    masks = DropoutMasks(77)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        drawn = [masks.draw_mask(torch.empty(0), 4000).clone() for _ in range(40)]
    together = torch.stack(drawn)
    assert set(together.unique().tolist()) == {0.0, torch.finfo(torch.float32).max}
    together = (together > 0).float()
    assert together.mean() == pytest.approx(1 - 77 / 256, abs=0.01)
    # every two masks agree no more often than by chance
    centred = together - together.mean()
    correlation = (centred @ centred.T / 4000 / together.var()).fill_diagonal_(0)
    assert correlation.abs().max() < 0.1


def test_gradients_of_weights_are_those_of_the_exact_kernel():
    settings = settle(kernel="chebyshev", n_layers=2, tolerance=1e-10)
    batch, L, X = draw_batch(settings)
    network = draw_network(settings)
    found = loss_and_gradients(network, batch)

    class SlowBatch:
        """Every diffusion by the exact kernel, differentiated by autograd."""

        signal, offset = X, None

        def propagate(self, heat, H=None):
            return exact_heat_kernel(L, heat()) @ (X if H is None else H)

    for name, gradient in loss_and_gradients(network, SlowBatch()).items():
        assert_allclose(found[name], gradient, atol=1e-8, err_msg=name)


# --- parts ----------------------------------------------------------------------


def stepped(start, largest, slope, size, clip):
    scale = HeatScale(len(slope), start, largest, "region")
    scale.raw_scale.grad = torch.tensor(slope)
    scale.step_(Settings(scale_step=size, scale_clip=clip))
    return scale


def test_a_step_is_plain_clipped_and_projected_onto_what_is_trusted():
    scale = stepped(2.0, 9.0, [0.03, -0.5, 800.0], 2.0, 0.25)
    assert_allclose(scale().detach(), [1.94, 2.25, 1.75], rtol=1e-6)
    scale = stepped(1.0, 1.2, [-1.0, -1.0, 0.1, 1.5, -0.1], 1.0, 3.0)
    assert_allclose(scale().detach(), [1.2, 1.2, 0.9, 0.0, 1.1], rtol=1e-6)
    assert scale.n_projected == 2  # those pushed to 0 are not counted
    scale = stepped(1.0, 9.0, [float("nan"), float("inf")], 1.0, 0.5)
    assert scale().tolist() == [1.0, 0.5]


def test_standardising_by_the_batch_and_by_what_was_remembered():
    rng = torch.Generator().manual_seed(4)
    Z = torch.randn(11, 3, 2, generator=rng, dtype=torch.float64)
    Z = Z * torch.tensor([1.0, 50.0, 0.02])[:, None] + 7.0
    Z[:, 1, 0] = 123.456  # this region does not vary
    standardizer = RegionStandardizer(3, 2)
    spread = Z.numpy().std(axis=0)
    spread[1, 0] = np.inf
    expected = (Z.numpy() - Z.numpy().mean(axis=0)) / spread
    assert_allclose(standardizer(Z), expected, atol=1e-10)
    standardizer.store_statistics(Z)
    standardizer.eval()
    assert_allclose(standardizer(Z[[4, 2]]), expected[[4, 2]], atol=1e-6)
    Z.requires_grad_()
    out = RegionStandardizer(3, 2)(Z)
    (out * torch.arange(6.0).reshape(3, 2)).square().sum().backward()
    assert torch.isfinite(Z.grad).all()
    assert not Z.grad[:, 1, 0].any()
    assert Z.grad[:, 1, 1].abs().min() > 0


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.875])
def test_dropping_keeps_the_mean_and_the_share_asked_for(rate):
    x = torch.ones(101, 67, 3, dtype=torch.float64, requires_grad=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        kept = drop_random_entries(x, rate, is_training=True)
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


@pytest.mark.parametrize("rate", [0.0, 0.4, 0.5])
def test_mixed_channels_are_linear_relu_and_dropout_in_turn(rate):
    rng = torch.Generator().manual_seed(0)
    given = [
        torch.randn(*shape, generator=rng, dtype=torch.float64).requires_grad_()
        for shape in ((7, 5, 2), (8, 2), (8,))
    ]
    level = round(256 * rate)

    def plain(*given):
        return drop_random_entries(
            torch.relu(nn.functional.linear(*given)), level / 256, True
        )

    def found(function):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            out = function(*given)
        value = out.detach().clone()
        return value, *torch.autograd.grad(out.square().sum(), given)

    at_once = found(lambda *given: _LinearReluDrop.apply(*given, level))
    for one, other in zip(at_once, found(plain), strict=True):
        assert_allclose(one, other, atol=1e-12)


def test_ordinal_log_probabilities_are_corns():
    logits = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 3)))
    got = ordinal_log_probabilities(logits).exp().numpy()
    beyond = 1 / (1 + np.exp(-logits.numpy()))
    for row, f in zip(got, beyond, strict=True):
        truth = [1 - f[0], f[0] * (1 - f[1]), f[0] * f[1] * (1 - f[2]), f.prod()]
        assert_allclose(row, truth, atol=1e-12)
    extreme = torch.tensor([[300.0, -300.0], [-300.0, 300.0]])
    assert torch.isfinite(ordinal_log_probabilities(extreme)).all()
    logits.requires_grad_()
    assert torch.autograd.gradcheck(ordinal_log_probabilities, logits)
