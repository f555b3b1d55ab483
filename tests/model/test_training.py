"""The loop: steps, penalties, early stopping, restarts, seeds."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import StratifiedGroupKFold
from torch import nn

from brainlsap.model import training
from brainlsap.model.inputs import InputScaler, make_batch
from brainlsap.model.network import GraphNetwork
from brainlsap.model.settings import Settings
from brainlsap.model.training import (
    NetworkSnapshot,
    TrainingRun,
    are_networks_futile,
    make_inner_splits,
    make_network_choice,
    train_network_run,
    train_validated_runs,
)
from tests.model.conftest import draw_scans, settle

N_ROIS = 7


class Task:
    """Scans to train on and to watch, and a maker that counts its networks."""

    def __init__(self, scans, settings, spoilt=(), spoil=None):
        self.settings, self.n_made = settings, 0
        self.spoilt, self.spoil = spoilt, spoil
        scaler = InputScaler.learn(scans.features, settings.standardize)
        self.measured = torch.from_numpy(scaler.measured)
        self.scaled = scaler.apply(scans.features)
        how = settings, settings.preparation(), torch.device("cpu")
        whole = make_batch(scans.connectomes, self.scaled, *how)
        codes = torch.from_numpy(np.unique(scans.y, return_inverse=True)[1])
        self.n_classes = int(codes.max()) + 1
        rows = torch.arange(len(codes))
        self.learn, self.watch = (
            (whole.select_items(some), codes[some])
            for some in (rows[rows % 4 > 0], rows[rows % 4 == 0])
        )

    def make(self):
        given = self.settings, self.measured, self.settings.initial_scale
        network = GraphNetwork(N_ROIS, 2, self.n_classes, *given)
        self.n_made += 1
        if self.n_made in self.spoilt:
            self.spoil(network)
        return network

    def run(self, *, watch=True, seed=0):
        validation = self.watch if watch else None
        return train_network_run(self.make, self.learn, validation, self.settings, seed)


@pytest.mark.parametrize("fused", [True, None])
def test_adam_takes_the_steps_of_its_formula(fused):
    start, targets = np.array([0.5, -1.0, 3.0]), np.array([1.0, 2.0, -1.0])
    weight, unused = (nn.Parameter(torch.tensor(start)) for _ in range(2))
    optimizer = training.Adam([unused, weight], 0.01, 0.1, fused=fused)
    expected, mean, mean_square = start.copy(), np.zeros(3), np.zeros(3)
    for step in range(1, 6):
        weight.grad = 2 * (weight.detach() - torch.from_numpy(targets))
        optimizer.step()
        gradient = 2 * (expected - targets) + 0.1 * expected
        mean = 0.9 * mean + 0.1 * gradient
        mean_square = 0.999 * mean_square + 0.001 * gradient**2
        scaled_mean = mean / (1 - 0.9**step)
        scaled_root = np.sqrt(mean_square / (1 - 0.999**step))
        expected -= 0.01 * scaled_mean / (scaled_root + 1e-8)
    assert_allclose(weight.detach(), expected, rtol=1e-6)
    assert_array_equal(unused.detach(), start)  # as it had no gradient


def kill(network):
    """Constant logits: the read-out hears nothing, and zeros have no slope."""
    nn.init.zeros_(network.readout.weight)
    nn.init.constant_(network.readout.bias, -1.0)


def blow_up(network):
    nn.init.constant_(network.output.weight, float("nan"))


def class_loss(network, part):
    with torch.no_grad():
        return float(nn.functional.cross_entropy(network(part[0]), part[1]))


def test_early_stopping_returns_the_best_epoch(scans):
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


@pytest.mark.parametrize(
    ("start", "step", "n_epochs", "ends"),
    [
        # erratum 5: read literally, the l1 term drives every scale to 0
        (2.0, 1.0, 20, {"l1": (0, 1e-5), "barrier": (1, 3), "none": (1, 3)}),
        # five steps of 0.001 lead out of the barrier
        (0.005, 1e-3, 11, {"barrier": (0.0095, 0.012), "none": (0, 0.0095)}),
    ],
)
def test_penalties_of_scales(scans, start, step, n_epochs, ends):
    for penalty, (lowest, highest) in ends.items():
        given = {"initial_scale": start, "scale_step": step, "patience": 0}
        settings = settle(scale_penalty=penalty, n_epochs=n_epochs, **given)
        scale = Task(scans, settings).run(watch=False).network.heat().detach()
        assert lowest <= scale.min()
        assert scale.max() <= highest


def test_an_epoch_of_mini_batches_takes_every_scan_once(scans, monkeypatch):
    task = Task(scans, settle(batch_size=7, n_epochs=1, standardize="scan"))
    taken = []
    select = type(task.learn[0]).select_items
    monkeypatch.setattr(
        type(task.learn[0]),
        "select_items",
        lambda self, items: taken.append(items) or select(self, items),
    )
    task.run()
    assert [len(items) for items in taken] == [6, 6, 6, 6]  # no tail of one scan
    assert sorted(torch.cat(taken).tolist()) == list(range(24))
    assert torch.cat(taken).tolist() != list(range(24))


def test_steps_of_many_scans_take_each_of_them_once_before_any_twice(
    scans, monkeypatch
):
    monkeypatch.setattr(training, "MAX_STEP_SCANS", 8)
    task = Task(scans, settle(n_epochs=6, standardize="scan"))
    scans_of_steps = []
    forward = GraphNetwork.forward

    def record(network, batch):
        if network.training:
            features, all_features = batch.signal[0], task.learn[0].signal[0]
            is_same = (features[:, None] == all_features).all(dim=(2, 3))
            scans_of_steps.append(is_same.nonzero()[:, 1])
        return forward(network, batch)

    monkeypatch.setattr(GraphNetwork, "forward", record)
    task.run()
    assert len(scans_of_steps) == 6
    for first in (0, 3):
        taken = torch.cat(scans_of_steps[first : first + 3])
        assert sorted(taken.tolist()) == list(range(24))


def test_starts_with_many_scans_take_them_in_random_orders(scans, monkeypatch):
    monkeypatch.setattr(training, "MAX_STEP_SCANS", 8)
    task = Task(scans, settle(n_epochs=1))
    rows_of_starts = []
    select = training.select_batch_and_codes

    def record(batch, codes, rows):
        rows_of_starts.append(rows.tolist())
        return select(batch, codes, rows)

    monkeypatch.setattr(training, "select_batch_and_codes", record)
    codes = task.learn[1].numpy()
    split = np.arange(20), np.arange(20, 24)
    where = task.measured.numpy(), np.ones(N_ROIS), task.settings
    train_validated_runs(task.learn[0], codes, [split, split], *where, 0)
    for rows in rows_of_starts[::2]:
        assert sorted(rows) == list(range(20))
        assert rows != list(range(20))
    assert rows_of_starts[0] != rows_of_starts[2]


def test_many_people_are_watched_by_a_few_of_each_class(monkeypatch):
    monkeypatch.setattr(training, "MAX_STEP_SCANS", 30)
    rng = np.random.default_rng(0)
    person_class = rng.permutation(np.repeat([0, 1, 2], [200, 60, 40]))
    person = np.repeat(np.arange(300), rng.integers(1, 3, 300))
    codes = person_class[person]
    splits = make_inner_splits(codes, person, Settings(n_starts=4), seed=3)
    for learn, watch in splits:
        assert not set(person[learn]) & set(person[watch])
        assert sorted([*learn, *watch]) == list(range(len(codes)))
        assert 20 <= len(watch) <= 40
        watched_people = np.bincount(person_class[np.unique(person[watch])])
        assert_allclose(
            watched_people, np.array([200, 60, 40]) * 30 / len(codes), atol=1
        )
    watched = np.concatenate([person[np.unique(watch)] for _, watch in splits])
    assert len({*watched}) == sum(len({*person[watch]}) for _, watch in splits)


def test_balanced_weights_count_classes_alike():
    scans = draw_scans(classes=("AD", "CN", "CN", "CN", "SMC"))
    first = {}
    for weight in ("balanced", "none"):
        still = {"readout_penalty": 0.0, "learning_rate": 0.0, "scale_step": 0.0}
        task = Task(scans, settle(class_weight=weight, n_epochs=1, **still))
        run = task.run()
        # the network has not moved; its loss by hand
        run.network.train()
        with torch.no_grad():
            logits = run.network(task.learn[0])
        codes = task.learn[1]
        share = 1.0 / codes.bincount() if weight == "balanced" else None
        expected = nn.functional.cross_entropy(logits, codes, share)
        first[weight] = run.history.train_loss[0]
        assert first[weight] == pytest.approx(float(expected), rel=1e-5)
    assert abs(first["balanced"] - first["none"]) > 1e-3


@pytest.mark.parametrize("spoil", [kill, blow_up])
@pytest.mark.parametrize("watch", [True, False])
def test_dead_and_diverging_runs_start_again(scans, spoil, watch):
    task = Task(scans, settle(n_epochs=6), spoilt=(1, 2), spoil=spoil)
    run = task.run(watch=watch)
    assert (run.n_restarts, task.n_made) == (2, 3)
    assert not run.fault_text
    # the third attempt is not the first one's seed again
    assert (
        run.history.train_loss
        != Task(scans, settle(n_epochs=6)).run(watch=watch).history.train_loss
    )


def test_other_devices_generators_are_left_alone(scans, monkeypatch):
    """`torch.manual_seed` would seed every graphics card, for good."""
    seeded = []
    for name in ("manual_seed_all", "manual_seed"):
        monkeypatch.setattr(torch.cuda, name, seeded.append)
    before = torch.random.get_rng_state()
    Task(scans, settle(n_epochs=2, dropout=0.4)).run()
    assert seeded == []
    assert torch.equal(torch.random.get_rng_state(), before)


# --- the slice that chooses the epoch -------------------------------------------


def draw_people(n_people=31, n_classes=3, seed=0):
    """Codes of one to three visits a person, in a shuffled order; odd names."""
    people = np.repeat(np.arange(n_people), 1 + np.arange(n_people) % 3)
    people = np.random.default_rng(seed).permutation(people)
    return people % n_classes, np.array([f"sub-{7 * one}" for one in people])


def test_people_stay_whole_and_starts_watch_everybody_once():
    codes, people = draw_people()
    splits = make_inner_splits(codes, people, Settings(n_starts=6), seed=3)
    for learn, watch in splits:
        assert not set(people[learn]) & set(people[watch])
        assert sorted([*learn, *watch]) == list(range(len(codes)))
        assert set(codes[learn]) == set(codes[watch]) == {0, 1, 2}
    watched = np.concatenate([watch for _, watch in splits[:5]])
    assert sorted(watched) == list(range(len(codes)))
    assert splits[5][1].tolist() != splits[0][1].tolist()


@pytest.mark.parametrize("seed", range(4))
def test_people_are_divided_as_by_scikit_learn(seed):
    codes, people = draw_people(40, seed=seed)
    codes = np.where(np.arange(len(codes)) % 7, codes, 1)  # visits of two classes
    person_codes = np.unique(people, return_inverse=True)[1]
    fold_of_scan = training._draw_scan_fold_numbers(codes, person_codes, 4, seed)
    splitter = StratifiedGroupKFold(4, shuffle=True, random_state=seed)
    for fold, (_, rows) in enumerate(splitter.split(codes, codes, people)):
        assert_array_equal(np.flatnonzero(fold_of_scan == fold), rows)


def test_few_people_are_not_divided():
    codes, people = draw_people(19)
    assert len(make_inner_splits(codes, people, Settings(), 0)[0][1]) == 0
    codes, people = draw_people()
    codes = np.where(people == "sub-7", 3, codes)  # a class of one person
    assert len(make_inner_splits(codes, people, Settings(), 0)[0][1]) == 0


# --- starts ---------------------------------------------------------------------


def starts_of(scans, settings, is_decided=None):
    task = Task(scans, settings)
    how = settings, settings.preparation(), torch.device("cpu")
    batch = make_batch(scans.connectomes, task.scaled, *how)
    codes = np.unique(scans.y, return_inverse=True)[1]
    splits = make_inner_splits(codes, scans.people, settings, 5)
    given = splits, task.measured.numpy(), np.linspace(0.1, 1.9, N_ROIS), settings
    return batch, train_validated_runs(
        batch, codes, *given, seed=5, stop_function=is_decided
    )


def test_every_start_has_its_own_seed_and_slice(scans, monkeypatch):
    seen = []
    train = training.train_network_run

    def watching(make_network, learn, watch, settings, seed):
        seen.append((seed, len(learn[1]), 0 if watch is None else len(watch[1])))
        return train(make_network, learn, watch, settings, seed)

    monkeypatch.setattr(training, "train_network_run", watching)
    batch, runs = starts_of(scans, settle(n_starts=3))
    assert len({seed for seed, *_ in seen}) == 3
    assert all(learn + watch == 32 and watch > 0 for _, learn, watch in seen)
    one, other = (run.network.state_dict() for run in runs[:2])
    assert not all(torch.equal(value, other[name]) for name, value in one.items())
    # prediction uses the statistics of everybody
    network = runs[1].network
    with torch.no_grad():
        Z = batch.diffuse(network.heat())
    measured = network.rows
    mean = network.standardize[0].mean
    assert_allclose(mean[measured], Z.mean(0)[measured], atol=1e-6)
    seen.clear()
    starts_of(scans, settle(n_starts=2, patience=0, network_weight=1))
    assert [one[1:] for one in seen] == [(32, 0), (32, 0)]


@pytest.mark.parametrize("mode", ["region", "global", "frozen"])
def test_scales_start_where_they_are_told_to(scans, mode):
    settings = settle(scale_mode=mode, scale_step=0.0, n_starts=1, n_epochs=1)
    _, (run,) = starts_of(scans, settings)
    expected = np.linspace(0.1, 1.9, N_ROIS) if mode == "region" else [1.0] * N_ROIS
    assert_allclose(run.network.heat().detach(), expected, rtol=1e-6)


# --- the weight of networks beside a ridge -----------------------------------------


def make_runs(codes, evidence_of_steps):
    """Runs that leave out a half each; logits of a step are its evidence, and noise."""
    rng = np.random.default_rng(0)
    runs = []
    for rows in np.split(np.arange(len(codes)), 2):
        snapshots = []
        for step, evidence in enumerate(evidence_of_steps):
            logits = rng.normal(size=(len(rows), 2))
            logits[np.arange(len(rows)), codes[rows]] += evidence
            snapshots.append(NetworkSnapshot(2 * step + 1, logits, {}))
        run = TrainingRun(
            None, None, 0, 0.0, "", snapshots=snapshots, validation_scan_indices=rows
        )
        runs.append(run)
    return runs


def choose(codes, runs, people=None, **given):
    people = np.arange(len(codes)) if people is None else people
    return make_network_choice(
        runs, codes, people, np.zeros((len(codes), 2)), settle(**given)
    )


def test_weight_and_epoch_are_those_that_left_out_people_are_predicted_best_by():
    codes = np.arange(80) % 2
    share = choose(codes, make_runs(codes, [0.0, 4.0, 1.0]))
    assert share.weight == 1.0
    assert share.snapshot_index == 1
    assert share.gain > 0.5
    # a run that stopped before keeps its last snapshot
    runs = make_runs(codes, [0.0, 1.0, 4.0])
    del runs[0].snapshots[1:]
    assert choose(codes, runs).snapshot_index == 2
    # without patience the last epoch is taken
    last = choose(codes, make_runs(codes, [0.0, 4.0, 0.6]), patience=0)
    assert last.snapshot_index == 2
    assert 0 < last.weight < 1


def test_a_gain_that_few_people_carry_gives_no_weight():
    codes = np.arange(80) % 2
    runs = make_runs(codes, [1.5])
    share = choose(codes, runs)
    assert share.weight > 0
    # the same scans, but of five people: visits do not count as people
    share_of_visits = choose(codes, runs, people=np.arange(80) % 5)
    assert share_of_visits.gain == pytest.approx(16 * share.gain)
    noise = choose(codes, make_runs(codes, [0.0, 0.0, 0.0]))
    assert noise.weight == 0.0
    one_person = np.where(np.arange(80) == 3, 6.0, 0.0)
    assert choose(codes, make_runs(codes, [one_person[:40]])).weight == 0.0


def test_epochs_that_diverged_are_not_chosen():
    codes = np.arange(80) % 2
    runs = make_runs(codes, [3.0, 3.0])
    runs[0].snapshots[1].validation_logits[0, 0] = np.nan
    assert choose(codes, runs).snapshot_index == 0


def is_futile(codes, runs, n_people, **settings):
    ridge_logits = np.zeros((len(codes), 2))
    people = np.arange(len(codes))
    return are_networks_futile(
        runs, n_people, codes, people, ridge_logits, settle(**settings)
    )


def test_starts_end_where_the_gain_would_not_reach_three_standard_errors():
    codes = np.arange(80) % 2
    runs = make_runs(codes, [0.0, 0.4])[:1]
    runs[0].best_epoch = 3
    share = choose(codes, runs)
    z = share.gain / share.standard_error
    assert 0.5 < z < 2
    # over N people in place of 40 the gain has z sqrt(N / 40) standard errors
    enough_people = 40 * (3 / z) ** 2
    assert is_futile(codes, runs, 0.99 * enough_people, patience=3)
    assert not is_futile(codes, runs, 1.01 * enough_people, patience=3)
    # a start that stopped before it had learned tells nothing
    assert not is_futile(codes, runs, 40, patience=4)
    runs[0].fault_text = "the model gives every scan the same output"
    assert not is_futile(codes, runs, 40, patience=3)


def test_starts_go_on_where_all_of_them_have_a_weight():
    codes = np.arange(80) % 2
    useless, useful = make_runs(codes, [0.0])[0], make_runs(codes, [3.0])[1]
    useless.best_epoch, useful.best_epoch = 9, 1
    assert is_futile(codes, [useless], 80, patience=5)
    assert not is_futile(codes, [useless, useful], 80, patience=5)


def test_starts_end_where_nobody_is_left_out():
    codes = np.arange(80) % 2
    runs = make_runs(codes, [3.0])[:1]
    runs[0].validation_scan_indices = np.zeros(0, dtype=int)
    runs[0].snapshots[0] = NetworkSnapshot(1, np.zeros((0, 2)), {})
    assert is_futile(codes, runs, 0, patience=0)


def test_starts_end_when_they_are_decided(scans):
    settings = settle(n_starts=4)
    n_asked = []

    def is_decided(runs):
        n_asked.append(len(runs))
        return len(runs) == 2

    _, runs = starts_of(scans, settings, is_decided)
    assert len(runs) == 2
    assert n_asked == [1, 2]
