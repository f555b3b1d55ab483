"""Networks and spread, against loops and integration that are slow and obvious."""

import numpy as np
import pytest
from scipy.linalg import expm

from brainlsap.simulation import (
    compute_disease_pattern,
    draw_base_weight_matrix,
    make_diffusion_operator,
)

HALF = 11


def draw_rng(seed=0):
    return np.random.default_rng(seed)


LEFT = draw_rng(3).uniform([-60, -80, -40], [-5, 60, 60], size=(HALF, 3))
POSITIONS = np.concatenate([LEFT, LEFT * [-1, 1, 1]])
HOMOTOPIC = (np.arange(2 * HALF) + HALF) % (2 * HALF)


@pytest.fixture
def base():
    return draw_base_weight_matrix(POSITIONS, HOMOTOPIC, draw_rng())


def test_base_network_matches_the_formula_without_noise():
    hubs = np.ones(2 * HALF)
    hubs[4] = 3.0
    network = draw_base_weight_matrix(
        POSITIONS,
        HOMOTOPIC,
        draw_rng(),
        log_weight_sd=0.0,
        weight_factor_matrices=(np.outer(hubs, hubs),),
    )
    for i in range(2 * HALF):
        for j in range(2 * HALF):
            distance = np.linalg.norm(POSITIONS[i] - POSITIONS[j])
            expected = 400 * np.exp(-distance / 18) * hubs[i] * hubs[j]
            expected += 60 * (j == HOMOTOPIC[i])
            assert network[i, j] == pytest.approx(0.0 if i == j else expected)


def test_diffusion_operator_matches_a_loop(base):
    degree = base.sum(axis=1)
    operator = make_diffusion_operator(base)
    for i in range(len(base)):
        for j in range(len(base)):
            expected = (degree[i] * (i == j) - base[i, j]) / degree.mean()
            assert operator[i, j] == pytest.approx(expected, abs=1e-12)


def test_a_region_without_links_keeps_its_disease(base):
    base[5, :] = base[:, 5] = 0.0
    seeds = np.arange(len(base)) == 5
    spread = compute_disease_pattern(make_diffusion_operator(base), seeds, 2.0)
    assert spread == pytest.approx(seeds.astype(float), abs=1e-12)
    assert not make_diffusion_operator(np.zeros((3, 3))).any()


@pytest.mark.parametrize("time", [0.0, 0.5, 3.0])
def test_spread_matches_the_matrix_exponential(base, time):
    seeds = np.isin(np.arange(len(base)), [0, 4, 17])
    operator = make_diffusion_operator(base)
    expected = expm(-time * operator) @ seeds
    spread = compute_disease_pattern(operator, seeds, time)
    assert spread == pytest.approx(expected, abs=1e-12)
