"""The loop: steps, penalties, early stopping, restarts, seeds."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

from brainlsap.exceptions import ParameterError
from brainlsap.model import HeatNetwork, Labelled, train_network, training
from brainlsap.model.inputs import InputScaler, make_batch
from brainlsap.model.training import make_epoch, usable_runs

N_ROIS = 7


class Task:
    """Scans to train on and to watch, and a maker that counts its networks."""

    def __init__(self, scans, settings, spoilt=(), spoil=None):
        self.settings, self.n_made = settings, 0
        self.spoilt, self.spoil = spoilt, spoil
        scaler = InputScaler.learn(scans.features, settings.standardize)
        self.measured = torch.from_numpy(scaler.measured)
        scaled = scaler.apply(scans.features)
        whole = make_batch(scans.connectomes, scaled, settings, torch.device("cpu"))
        codes = torch.from_numpy(np.unique(scans.y, return_inverse=True)[1])
        self.n_classes = int(codes.max()) + 1
        rows = torch.arange(len(codes))
        self.learn, self.watch = (
            Labelled(whole.select(some), codes[some])
            for some in (rows[rows % 4 > 0], rows[rows % 4 == 0])
        )

    def make(self):
        network = HeatNetwork(N_ROIS, 2, self.n_classes, self.settings, self.measured)
        self.n_made += 1
        if self.n_made in self.spoilt:
            self.spoil(network)
        return network

    def run(self, *, watch=True, seed=0):
        validation = self.watch if watch else None
        return train_network(self.make, self.learn, validation, self.settings, seed)


def kill(network):
    """Constant logits: the read-out hears nothing, and zeros have no slope."""
    nn.init.zeros_(network.readout.first.weight)
    nn.init.constant_(network.readout.first.bias, -1.0)


def blow_up(network):
    nn.init.constant_(network.readout.second.weight, float("nan"))


def class_loss(network, part):
    with torch.no_grad():
        return float(nn.functional.cross_entropy(network(part.batch), part.codes))


def test_training_learns_the_planted_region(scans, settle):
    run = Task(scans, settle(n_epochs=60, patience=60, learning_rate=0.02)).run()
    for part in ("learn", "watch"):
        found = Task(scans, settle())
        labelled = getattr(found, part)
        with torch.no_grad():
            guess = run.network(labelled.batch).argmax(1)
        assert float((guess == labelled.codes).double().mean()) > 0.85
    assert run.healthy
    assert not run.diverged
    assert run.n_restarts == 0
    assert not run.network.training


def test_same_seed_same_bytes_and_the_global_generator_is_left_alone(scans, settle):
    settings = settle(dropout=0.4, batch_size=5)
    before = torch.random.get_rng_state()
    runs = [Task(scans, settings).run(seed=seed) for seed in (4, 4, 5)]
    assert torch.equal(torch.random.get_rng_state(), before)
    states = [run.network.state_dict() for run in runs]
    for name, value in states[0].items():
        assert value.numpy().tobytes() == states[1][name].numpy().tobytes()
    assert runs[0].history.train_loss == runs[1].history.train_loss
    assert runs[0].history.train_loss != runs[2].history.train_loss


@pytest.mark.parametrize("class_weight", ["balanced", "none"])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.2])
def test_scans_in_parts_have_the_slopes_of_all_at_once(
    scans, settle, monkeypatch, class_weight, label_smoothing
):
    settings = settle(
        standardize="scan",
        dropout=0.0,
        class_weight=class_weight,
        label_smoothing=label_smoothing,
    )
    found, sizes = [], []
    for size in (1000, 5):
        task = Task(scans, settings)
        torch.manual_seed(3)
        network = task.make()
        network.register_forward_pre_hook(lambda _, given: sizes.append(len(given[0])))
        monkeypatch.setattr(training, "_LAYER_BYTES", size * network.layer_bytes)
        loss = make_epoch(network, task.learn, settings)()
        slopes = {name: p.grad for name, p in network.named_parameters()}
        found.append((loss, slopes))
    assert sizes[0] == len(task.learn.codes)
    assert len(set(sizes[1:])) > 1  # unequal parts
    assert max(sizes[1:]) == 5
    (whole, slopes), (parts, others) = found
    assert_allclose(parts, whole, rtol=1e-5)
    for name, slope in slopes.items():
        largest = float(slope.abs().max())
        assert largest > 0, name
        assert_allclose(others[name], slope, atol=1e-5 * largest, err_msg=name)


@pytest.mark.parametrize("standardize", ["region", "scan"])
def test_only_scans_that_stand_alone_are_taken_in_parts(
    scans, settle, monkeypatch, standardize
):
    task = Task(scans, settle(standardize=standardize))
    network, sizes = task.make(), []
    monkeypatch.setattr(training, "_LAYER_BYTES", 7 * network.layer_bytes)
    network.register_forward_pre_hook(lambda _, given: sizes.append(len(given[0])))
    make_epoch(network, task.learn, task.settings)()
    n_items = len(task.learn.codes)
    assert sum(sizes) == n_items
    assert (max(sizes) == n_items) == (standardize == "region")


def test_global_generator_does_not_reach_the_run(scans, settle):
    settings = settle(dropout=0.4)
    losses = []
    for seed in (1, 2):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            losses.append(Task(scans, settings).run().history.train_loss)
    assert losses[0] == losses[1]


def test_early_stopping_returns_the_best_epoch(scans, settle):
    settings = settle(
        n_epochs=300,
        patience=14,
        learning_rate=0.1,
        hidden_units=6,
        class_weight="none",
    )
    noise = np.random.default_rng(0).permutation(scans.y)  # nothing to learn: overfits
    task = Task(type(scans)(scans.connectomes, scans.features, noise, None), settings)
    run = task.run()
    seen = run.history
    best = seen.epoch.index(run.best_epoch)
    assert seen.validation_loss[best] <= min(seen.validation_loss) + 1e-4
    assert class_loss(run.network, task.watch) == pytest.approx(
        seen.validation_loss[best], rel=1e-5
    )
    assert_array_equal(run.network.heat().detach(), seen.scales[best])
    # it stopped once patience was over, long before the last epoch
    assert 14 <= seen.epoch[-1] - run.best_epoch <= 16
    assert seen.epoch[-1] < 299


def test_without_a_slice_to_watch_all_epochs_run_and_the_last_is_taken(scans, settle):
    task = Task(scans, settle(n_epochs=9, patience=0))
    run = task.run(watch=False)
    assert run.best_epoch == run.history.epoch[-1] == 8
    assert np.isnan(run.history.validation_loss).all()
    assert np.isfinite(run.history.train_loss).all()
    assert_array_equal(run.network.heat().detach(), run.history.scales[-1])


def test_history_holds_every_look(scans, settle):
    run = Task(scans, settle(n_epochs=12, patience=50)).run()
    seen = run.history
    assert seen.epoch[-1] == 11
    assert len(seen.epoch) == len(seen.train_loss) == len(seen.validation_loss)
    assert np.shape(seen.scales) == (len(seen.epoch), N_ROIS)
    moved = np.abs(np.diff(seen.scales, axis=0))
    steps = np.diff(seen.epoch)[:, None]
    assert (moved <= 0.1 * steps + 1e-6).all()


@pytest.mark.parametrize("watch", [True, False])
def test_prediction_statistics_are_those_of_the_chosen_epoch(scans, settle, watch):
    task = Task(scans, settle(n_epochs=20))
    run = task.run(watch=watch)
    with torch.no_grad():
        Z = task.learn.batch.diffuse(run.network.heat())
    standardizer = run.network.standardize[0]
    assert_allclose(standardizer.mean, Z.mean(0), atol=1e-6)
    assert_allclose(standardizer.deviation, Z.std(0, correction=0), atol=1e-6)


@pytest.mark.parametrize("mode", ["region", "global", "frozen"])
def test_scale_modes(scans, settle, mode):
    run = Task(scans, settle(scale_mode=mode, scale_step=10.0)).run()
    scale = run.network.heat().detach().numpy()
    assert scale.shape == (N_ROIS,)
    assert len(np.unique(scale)) == (N_ROIS if mode == "region" else 1)
    assert np.all(scale == 1.0) == (mode == "frozen")


def test_literal_l1_term_drives_every_scale_to_zero_in_twenty_steps(scans, settle):
    """Erratum 5; the released code's barrier keeps them positive instead."""
    ends = {}
    for penalty in ("l1", "barrier", "none"):
        settings = settle(
            initial_scale=2.0,
            scale_step=1.0,
            scale_clip=0.1,
            scale_penalty=penalty,
            penalty_weight=1.0,
            n_epochs=20,
            patience=0,
        )
        run = Task(scans, settings).run(watch=False)
        ends[penalty] = run.network.heat().detach().numpy()
    assert_allclose(ends["l1"], 0.0, atol=1e-5)
    assert ends["barrier"].min() > 1.0
    assert_array_equal(ends["barrier"], ends["none"])


def test_barrier_pushes_up_only_scales_near_zero(scans, settle):
    ends = {}
    for penalty in ("barrier", "none"):
        settings = settle(
            initial_scale=0.005,
            scale_step=1e-3,
            scale_penalty=penalty,
            penalty_weight=1.0,
            n_epochs=11,
            patience=0,
        )
        run = Task(scans, settings).run(watch=False)
        ends[penalty] = run.network.heat().detach().numpy()
    # five steps of 0.001 lead out of its reach
    assert ends["barrier"].min() > 0.0095
    assert ends["barrier"].max() < 0.012
    assert ends["none"].max() < 0.0095


def test_whole_batch_is_the_limit_of_mini_batches(scans, settle):
    runs = [
        Task(scans, settle(batch_size=size, n_epochs=6)).run() for size in (0, 24, 999)
    ]
    for run in runs[1:]:
        assert run.history.train_loss == runs[0].history.train_loss


def test_an_epoch_of_mini_batches_takes_every_scan_once(scans, settle, monkeypatch):
    task = Task(scans, settle(batch_size=7, n_epochs=1, standardize="scan"))
    taken = []
    select = type(task.learn.batch).select
    monkeypatch.setattr(
        type(task.learn.batch),
        "select",
        lambda self, items: taken.append(items) or select(self, items),
    )
    task.run()
    assert [len(items) for items in taken] == [6, 6, 6, 6]  # no tail of one scan
    assert sorted(torch.cat(taken).tolist()) == list(range(24))
    assert torch.cat(taken).tolist() != list(range(24))


def test_mini_batches_learn_too(scans, settle):
    settings = settle(batch_size=8, n_epochs=30, patience=30, learning_rate=0.02)
    task = Task(scans, settings)
    run = task.run()
    with torch.no_grad():
        guess = run.network(task.learn.batch).argmax(1)
    assert float((guess == task.learn.codes).double().mean()) > 0.85


def test_balanced_weights_count_classes_alike(draw_scans, settle):
    scans = draw_scans(classes=("AD", "CN", "CN", "CN", "SMC"))
    first = {}
    for weight in ("balanced", "none"):
        settings = settle(
            class_weight=weight,
            n_epochs=1,
            readout_penalty=0.0,
            learning_rate=0.0,
            scale_step=0.0,
        )
        task = Task(scans, settings)
        run = task.run()
        # the network has not moved; its loss by hand
        run.network.train()
        with torch.no_grad():
            logits = run.network(task.learn.batch)
        codes = task.learn.codes
        each = nn.functional.cross_entropy(logits, codes, reduction="none").numpy()
        share = np.ones(len(each))
        if weight == "balanced":
            share = 1.0 / np.bincount(codes)[codes]
        expected = (share * each).sum() / share.sum()
        first[weight] = run.history.train_loss[0]
        assert first[weight] == pytest.approx(expected, rel=1e-5)
    assert abs(first["balanced"] - first["none"]) > 1e-3


def test_label_smoothing_is_for_training_only(scans, settle):
    still = {"n_epochs": 1, "learning_rate": 0.0, "scale_step": 0.0, "dropout": 0.0}
    plain, smooth = (
        Task(scans, settle(**still, label_smoothing=share)).run()
        for share in (0.0, 0.4)
    )
    assert smooth.history.validation_loss == plain.history.validation_loss
    task = Task(scans, settle())
    plain.network.train()
    with torch.no_grad():
        logs = torch.log_softmax(plain.network(task.learn.batch), 1)
    share = 1.0 / torch.bincount(task.learn.codes)[task.learn.codes]
    own = logs.gather(1, task.learn.codes[:, None])[:, 0]
    # torch weighs the spread part by the class it is spread to
    weight = 1.0 / torch.bincount(task.learn.codes)
    spread = (weight * logs).sum(1) / 2
    expected = -(0.6 * share * own + 0.4 * spread).sum() / share.sum()
    assert smooth.history.train_loss[0] == pytest.approx(float(expected), rel=1e-5)


def test_readout_penalty_shrinks_the_readout(scans, settle):
    norms = [
        float(
            Task(scans, settle(readout_penalty=weight, n_epochs=30, patience=0))
            .run(watch=False)
            .network.readout.penalty()
            .detach()
        )
        for weight in (0.0, 0.1)
    ]
    assert norms[1] < 0.7 * norms[0]


@pytest.mark.parametrize("spoil", [kill, blow_up])
@pytest.mark.parametrize("watch", [True, False])
def test_dead_and_diverging_runs_start_again(scans, settle, spoil, watch):
    task = Task(scans, settle(n_epochs=6), spoilt=(1, 2), spoil=spoil)
    run = task.run(watch=watch)
    assert (run.n_restarts, task.n_made) == (2, 3)
    assert run.healthy
    # the third attempt is not the first one's seed again
    assert (
        run.history.train_loss
        != Task(scans, settle(n_epochs=6)).run(watch=watch).history.train_loss
    )


@pytest.mark.parametrize(("spoil", "diverged"), [(kill, False), (blow_up, True)])
def test_runs_that_stay_dead_say_so(scans, settle, spoil, diverged):
    task = Task(scans, settle(n_epochs=4), spoilt=range(99), spoil=spoil)
    run = task.run()
    assert not run.healthy
    assert run.diverged == diverged
    assert run.n_restarts == 3
    assert torch.isfinite(run.network.heat()).all()


def test_a_run_that_diverges_late_keeps_its_best_epoch(scans, settle):
    task = Task(scans, settle(n_epochs=30, patience=30))
    learn = task.learn

    class Spoilt:
        """The ninth epoch's signals are not numbers."""

        n_seen = 0

        def __call__(self, module, inputs):
            if module.training:
                self.n_seen += 1
                if self.n_seen == 9:
                    return (inputs[0] * float("nan"),)
            return inputs

    def make():
        network = Task.make(task)
        network.readout.register_forward_pre_hook(Spoilt())
        return network

    run = train_network(make, learn, task.watch, task.settings, 0)
    assert run.healthy
    assert run.history.epoch[-1] < 9
    assert run.best_epoch in run.history.epoch


def test_dead_runs_are_averaged_only_if_none_is_healthy(scans, settle):
    settings = settle(n_epochs=4)
    well = Task(scans, settings).run()
    dead = Task(scans, settings, spoilt=range(99), spoil=kill).run()
    lost = Task(scans, settings, spoilt=range(99), spoil=blow_up).run()
    assert usable_runs([dead, well, lost]) == [well]
    assert usable_runs([lost, dead]) == [dead]
    with pytest.raises(
        ParameterError, match=r"diverged in every start \(2\).*Lower learning_rate"
    ):
        usable_runs([lost, lost])
