"""Starts of one fit: where they begin, what they watch, what they stand on."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from brainlsap.model import ensemble
from brainlsap.model.ensemble import TrainingTask, train_ensemble, train_start
from brainlsap.model.inputs import InputScaler, make_batch


@pytest.fixture
def task(scans, settle):
    scaler = InputScaler.learn(scans.features, "region")
    batch = make_batch(
        scans.connectomes,
        scaler.apply(scans.features),
        settle(),
        torch.device("cpu"),
    )
    codes = np.unique(scans.y, return_inverse=True)[1]
    return TrainingTask(batch, codes, scans.people, scaler.measured, 2, 5)


@pytest.fixture
def watched(monkeypatch):
    """Settings, seed and number of scans of every network trained."""
    seen = []
    train = ensemble.train_network

    def train_and_note(make_network, learn, watch, settings, seed):
        n_watched = 0 if watch is None else len(watch.codes)
        seen.append((settings.initial_scale, seed, len(learn.codes), n_watched))
        return train(make_network, learn, watch, settings, seed)

    monkeypatch.setattr(ensemble, "train_network", train_and_note)
    return seen


def same(one, other):
    states = one.network.state_dict(), other.network.state_dict()
    return all(torch.equal(value, states[1][name]) for name, value in states[0].items())


def test_every_start_has_its_own_seed_and_slice(task, settle, watched):
    found = train_ensemble(task, settle(n_starts=3))
    assert [one[0] for one in watched] == [1.0, 1.0, 1.0]
    assert len({one[1] for one in watched}) == 3
    assert all(learn + watch == 32 and watch > 0 for _, _, learn, watch in watched)
    assert len(found.runs) == 3
    assert found.settings.initial_scale == 1.0
    assert not same(found.runs[0], found.runs[1])


def test_without_patience_everybody_is_learned_from(task, settle, watched):
    train_ensemble(task, settle(n_starts=2, patience=0))
    assert [one[2:] for one in watched] == [(32, 0), (32, 0)]


def test_statistics_are_those_of_everybody_given(task, settle):
    run = train_start(task, settle(), 1)
    with torch.no_grad():
        Z = task.batch.diffuse(run.network.heat())
    assert_allclose(run.network.standardize[0].mean, Z.mean(0), atol=1e-6)


def test_auto_takes_the_start_of_lowest_validation_loss(task, settle, watched):
    settings = replace(settle(n_starts=4), initial_scale="auto")
    found = train_ensemble(task, settings)
    means = {float(scale): np.mean(loss) for scale, loss in found.start_losses.items()}
    assert len(means) > 1
    assert set(means) == {one[0] for one in watched}
    chosen = found.settings.initial_scale
    assert chosen == min(means, key=means.get)
    # what was tried from there is kept, and the rest starts there too
    n_pilots = len(found.start_losses[f"{chosen:g}"])
    assert all(len(losses) == n_pilots for losses in found.start_losses.values())
    assert len(watched) == n_pilots * len(means) + 4 - n_pilots
    assert {one[0] for one in watched[n_pilots * len(means) :]} <= {chosen}
    again = train_ensemble(task, found.settings)
    assert len(found.runs) == len(again.runs) == 4
    assert all(same(*pair) for pair in zip(found.runs, again.runs, strict=True))
    assert again.start_losses == {}


def test_best_loss_is_that_of_the_best_epoch(task, settle):
    run = train_start(task, settle(n_epochs=15), 0)
    best = run.history.epoch.index(run.best_epoch)
    assert run.best_loss == run.history.validation_loss[best]
    unwatched = train_start(task, settle(n_epochs=15, patience=0), 0)
    assert unwatched.best_loss == unwatched.history.train_loss[-1]


def test_a_network_per_start_of_the_right_size(task, settle):
    run = train_start(task, settle(hidden_units=3), 0)
    assert run.network.readout.first.in_features == 6 * 3
    assert_array_equal(run.network.measured, np.arange(7) != 5)
