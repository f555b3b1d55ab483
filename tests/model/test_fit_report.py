"""What a fit says of itself holds, can be stored, and is warned of."""

import json
import warnings

import numpy as np
import pytest
import torch

from brainlsap.graph import (
    KERNELS,
    exact_heat_kernel,
    heat_kernel,
    normalized_laplacian,
)
from brainlsap.model import LSAPClassifier
from brainlsap.model.fit_report import warn_of_limits

EXPANDED = sorted(set(KERNELS) - {"exact"})
SMALL = {
    "initial_scale": 1.0,
    "max_scale": 3.0,
    "scale_step": 5.0,
    "linear_penalty": 0.0,
    "hidden_units": 3,
    "readout_units": 4,
    "n_starts": 2,
    "n_epochs": 10,
    "patience": 8,
}


def fit(scans, **given):
    model = LSAPClassifier(**(SMALL | given))
    return model.fit(scans.X, scans.y, groups=scans.people)


@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_report_can_be_written_as_json_and_read_back(scans, kernel, preset):
    given = {"scale_step": 0.5, "hidden_units": 8, "readout_units": 16}
    model = fit(scans, kernel=kernel, preset=preset, **given)
    report = json.loads(json.dumps(model.fit_report_, allow_nan=False))
    assert report == model.fit_report_
    assert report["kernel"] == report["settings"]["kernel"] == kernel
    assert report["settings"]["n_starts"] == len(report["best_epochs"]) == 2
    assert (report["degree"] is None) == (kernel == "exact")
    assert report["n_unhealthy"] == 0


def test_numbers_of_a_parameter_grid_can_be_written_too(scans):
    grid = np.arange(4, 6), np.linspace(0.5, 1.0, 3)
    model = fit(scans, n_epochs=grid[0][1], initial_scale=grid[1][0])
    assert '"n_epochs": 5,' in json.dumps(model.fit_report_)


@pytest.mark.parametrize("kernel", EXPANDED)
def test_reported_error_bounds_the_true_one_at_the_learned_scales(scans, kernel):
    # five steps of at most 0.1 stay below the largest scale
    model = fit(scans, kernel=kernel, tolerance=1e-3, max_scale=1.6, n_epochs=5)
    report = model.fit_report_
    learned = model.scales_by_start_
    assert report["highest_learned_scale"] == learned.max()
    assert 0.5 < learned.max() <= report["largest_scale"] == 1.6
    L = normalized_laplacian(scans.connectomes)
    worst = 0.0
    for scale in torch.from_numpy(learned):
        got = heat_kernel(L, scale, kernel=kernel, degree=report["degree"])
        worst = max(worst, float((got - exact_heat_kernel(L, scale)).abs().max()))
    assert 1e-9 < worst <= report["approximation_error"] <= 1e-3


def test_exact_kernel_reports_rounding_only(scans):
    assert fit(scans, kernel="exact").fit_report_["approximation_error"] < 1e-14


@pytest.mark.parametrize(
    ("given", "learned"),
    [
        ({"scale_step": 5.0}, True),
        ({"scale_mode": "frozen"}, False),
        ({"scale_step": 1e-3}, False),
    ],
)
def test_scales_that_stay_within_five_percent_were_not_learned(scans, given, learned):
    model = fit(scans, **given)
    assert model.fit_report_["scales_learned"] == learned
    moved = np.abs(model.scales_ - model.scales_start_) > 0.05
    assert moved.any() == learned


def test_best_epochs_are_those_of_the_histories(scans):
    model = fit(scans)
    for epoch, history in zip(
        model.fit_report_["best_epochs"], model.history_, strict=True
    ):
        assert epoch in history.epoch


@pytest.fixture
def quiet():
    return {
        "kernel": "hermite",
        "largest_scale": 3.1234,
        "n_projected": 0,
        "n_unhealthy": 0,
    }


def test_nothing_is_warned_of_where_all_is_well(quiet):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_limits(quiet)


def test_scales_at_the_limit_are_warned_of(quiet):
    with pytest.warns(
        UserWarning, match=r"scales reached 3.12, .* the hermite kernel is trusted here"
    ):
        warn_of_limits(quiet | {"n_projected": 17})


def test_starts_that_stayed_dead_are_warned_of(quiet):
    with pytest.warns(
        UserWarning, match=r"2 starts stayed dead or diverged .* Lower learning_rate"
    ):
        warn_of_limits(quiet | {"n_unhealthy": 2})
