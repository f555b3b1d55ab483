"""Networks and spread, against loops and integration that are slow and obvious."""

import numpy as np
import pytest
from scipy.linalg import expm

from brainlsap.data.simulated_networks import (
    OPERATORS,
    base_network,
    count_streamlines,
    diffusion_operator,
    normalized_operator,
    pairwise_distance,
    spread_from_seeds,
    symmetric_normal,
    vary_network,
)
from brainlsap.exceptions import ParameterError

HALF = 11


def draw_rng(seed=0):
    return np.random.default_rng(seed)


@pytest.fixture
def positions():
    left = draw_rng(3).uniform([-60, -80, -40], [-5, 60, 60], size=(HALF, 3))
    return np.concatenate([left, left * [-1, 1, 1]])


@pytest.fixture
def twins():
    return (np.arange(2 * HALF) + HALF) % (2 * HALF)


@pytest.fixture
def base(positions, twins):
    return base_network(positions, twins, draw_rng())


def assert_network(network, n_rois):
    assert network.shape == (n_rois, n_rois)
    assert np.array_equal(network, network.T)
    assert np.all(np.diag(network) == 0)
    assert network.min() >= 0


def test_distance_matches_a_loop(positions):
    distance = pairwise_distance(positions)
    for i in range(len(positions)):
        for j in range(len(positions)):
            expected = np.linalg.norm(positions[i] - positions[j])
            assert distance[i, j] == pytest.approx(expected, abs=1e-12)


def test_symmetric_normal_is_standard():
    draws = symmetric_normal(201, draw_rng())
    upper = draws[np.triu_indices(201, 1)]
    assert np.array_equal(draws, draws.T)
    assert abs(upper.mean()) < 0.03
    assert abs(upper.std() - 1) < 0.03


def test_base_network_matches_the_formula_without_noise(positions, twins):
    network = base_network(
        positions,
        twins,
        draw_rng(),
        strength=100.0,
        length=25.0,
        spread=0.0,
        twin_weight=7.0,
    )
    for i in range(2 * HALF):
        for j in range(2 * HALF):
            distance = np.linalg.norm(positions[i] - positions[j])
            expected = 100 * np.exp(-distance / 25) + 7 * (j == twins[i])
            assert network[i, j] == pytest.approx(0.0 if i == j else expected)


def test_base_network_is_a_network(base):
    assert_network(base, 2 * HALF)


def test_base_network_falls_with_distance(positions, twins):
    network = base_network(positions, twins, draw_rng(), twin_weight=0.0)
    upper = np.triu_indices(len(network), 1)
    slope = np.polyfit(pairwise_distance(positions)[upper], np.log(network[upper]), 1)
    assert slope[0] == pytest.approx(-1 / 18, rel=0.1)


def test_base_network_multiplies_hubs_and_pairs(positions, twins):
    hubs = np.ones(2 * HALF)
    hubs[4] = 3.0
    across = np.ones((2 * HALF, 2 * HALF))
    across[:HALF, HALF:] = across[HALF:, :HALF] = 0.5
    plain = base_network(positions, twins, draw_rng(), twin_weight=0.0)
    network = base_network(
        positions, twins, draw_rng(), twin_weight=0.0, hubs=hubs, across=across
    )
    assert network[4, 2] == pytest.approx(3 * plain[4, 2])
    assert network[4, HALF + 2] == pytest.approx(1.5 * plain[4, HALF + 2])
    assert network[1, 2] == plain[1, 2]


def test_regions_without_a_twin_gain_nothing(positions):
    alone = np.full(2 * HALF, -1)
    with_weight = base_network(positions, alone, draw_rng(), twin_weight=60.0)
    without = base_network(positions, alone, draw_rng(), twin_weight=0.0)
    assert np.array_equal(with_weight, without)


def test_people_differ_by_the_variability_asked_for(base):
    upper = np.triu_indices(len(base), 1)
    ratios = [
        np.log(vary_network(base, draw_rng(seed), variability=0.6)[upper] / base[upper])
        for seed in range(13)
    ]
    assert np.std(ratios) == pytest.approx(0.6, rel=0.05)
    assert_network(vary_network(base, draw_rng()), len(base))


def test_counts_are_whole_symmetric_and_centred(base):
    counts = np.array([count_streamlines(base, draw_rng(seed)) for seed in range(300)])
    assert_network(counts[0], len(base))
    assert np.array_equal(counts, np.rint(counts))
    error = (counts.mean(axis=0) - base) / np.sqrt(base / 300 + 1e-9)
    np.fill_diagonal(error, 0)
    assert np.abs(error).max() < 5


def test_rescans_vary_more_than_counting_alone(base):
    big = base * 1000
    still = np.std([count_streamlines(big, draw_rng(s)) for s in range(29)], axis=0)
    moved = np.std(
        [count_streamlines(big, draw_rng(s), rescan=0.2) for s in range(29)], axis=0
    )
    upper = np.triu_indices(len(base), 1)
    assert np.median(moved[upper] / big[upper]) == pytest.approx(0.2, rel=0.15)
    assert np.median(still[upper] / big[upper]) < 0.02


def test_normalized_operator_matches_a_loop(base):
    degree = base.sum(axis=1)
    operator = normalized_operator(base)
    for i in range(len(base)):
        for j in range(len(base)):
            expected = float(i == j) - base[i, j] / np.sqrt(degree[i] * degree[j])
            assert operator[i, j] == pytest.approx(expected, abs=1e-12)


def test_diffusion_operator_keeps_mass_and_has_mean_degree_one(base):
    operator = diffusion_operator(base)
    assert np.abs(operator.sum(axis=1)).max() < 1e-12
    assert np.diag(operator).mean() == pytest.approx(1.0)
    assert np.allclose(diffusion_operator(1000 * base), operator)


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_a_region_without_links_keeps_its_disease(base, name):
    network = base.copy()
    network[5, :] = network[:, 5] = 0.0
    seeds = np.arange(len(base)) == 5
    spread = spread_from_seeds(OPERATORS[name](network), seeds, 2.0)
    assert spread == pytest.approx(seeds.astype(float), abs=1e-12)


def test_operators_of_an_empty_network_are_zero():
    for operator in OPERATORS.values():
        assert not operator(np.zeros((3, 3))).any()


@pytest.mark.parametrize("name", sorted(OPERATORS))
@pytest.mark.parametrize("time", [0.0, 0.5, 3.0])
def test_spread_matches_the_matrix_exponential(base, name, time):
    seeds = np.isin(np.arange(len(base)), [0, 4, 17])
    operator = OPERATORS[name](base)
    expected = expm(-time * operator) @ seeds
    assert spread_from_seeds(operator, seeds, time) == pytest.approx(
        expected, abs=1e-12
    )


def test_spread_matches_small_steps_of_the_differential_equation(base):
    seeds = np.arange(len(base)) == 3
    operator = diffusion_operator(base)
    level, n_steps = seeds.astype(float), 20_000
    for _ in range(n_steps):
        level = level - operator @ level / n_steps
    assert spread_from_seeds(operator, seeds, 1.0) == pytest.approx(level, abs=1e-4)


def test_diffusion_conserves_disease_and_leaves_the_seed(base):
    seeds = np.arange(len(base)) == 3
    operator = diffusion_operator(base)
    levels = [spread_from_seeds(operator, seeds, time) for time in (0, 0.5, 1, 4)]
    assert [level.sum() for level in levels] == pytest.approx([1.0] * 4)
    assert all(np.diff([level[3] for level in levels]) < 0)
    assert min(level.min() for level in levels) >= 0


def test_negative_time_is_refused(base):
    with pytest.raises(ParameterError, match=r"spread must be at least 0, got -1\.0"):
        spread_from_seeds(diffusion_operator(base), np.ones(len(base), bool), -1.0)
