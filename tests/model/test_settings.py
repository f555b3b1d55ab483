"""Presets, what may be asked for, and degrees that can be trusted."""

import pytest
import torch

from brainlsap.exceptions import ParameterError
from brainlsap.graph import KERNELS, choose_degree, error_bound
from brainlsap.model import PRESETS, Settings
from brainlsap.model.settings import candidates, resolve_settings, settle_kernel

EXPANDED = sorted(set(KERNELS) - {"exact"})

# method.md, section 3
PAPER = {
    "initial_scale": 2.0,
    "scale_step": 1.0,
    "scale_clip": 0.1,
    "scale_mode": "region",
    "n_layers": 2,
    "hidden_units": 16,
    "readout_units": 16,
    "standardize": "scan",
    "dropout": 0.5,
    "learning_rate": 0.01,
    "weight_decay": 5e-4,
    "class_weight": "none",
    "n_epochs": 2000,
    "patience": 0,
    "batch_size": 0,
    "n_starts": 1,
    "threshold": 10.0,
    "weights": "binary",
}


@pytest.mark.parametrize(
    ("kernel", "degree"),
    [("chebyshev", 20), ("hermite", 30), ("laguerre", 20), ("exact", None)],
)
def test_paper_preset_has_the_papers_numbers(kernel, degree):
    settings = settle_kernel(resolve_settings("paper", {"kernel": kernel}))
    found = {name: getattr(settings, name) for name in PAPER}
    assert found == PAPER
    assert settings.degree == degree
    assert settings.max_scale >= 2.0


def test_papers_error_at_the_start_is_its_tolerance():
    """Laguerre-20 is wrong by 2e-4 at scale 2: more than the tolerance."""
    settings = settle_kernel(resolve_settings("paper", {"kernel": "laguerre"}))
    assert error_bound("laguerre", 2.0, 20) > settings.tolerance
    assert settings.max_scale == pytest.approx(2.0, rel=1e-4)


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_presets_can_be_used_with_every_kernel(preset):
    for kernel in KERNELS:
        settings = settle_kernel(resolve_settings(preset, {"kernel": kernel}))
        assert settings.kernel == kernel
        assert settings.max_scale >= 2.0
        assert (settings.degree is None) == (kernel == "exact")


def test_what_is_given_comes_before_the_preset():
    given = {"n_epochs": 7, "dropout": None, "device": "cpu", "degree": 9}
    settings = resolve_settings("paper", given)
    assert (settings.n_epochs, settings.dropout, settings.degree) == (7, 0.5, 9)


@pytest.mark.parametrize("kernel", EXPANDED)
def test_degree_is_the_lowest_that_reaches_the_largest_scale(kernel):
    settings = settle_kernel(
        Settings(kernel=kernel, initial_scale=1.0, max_scale=3.3, tolerance=1e-5)
    )
    assert settings.degree == choose_degree(kernel, 3.3, 1e-5)
    assert settings.max_scale == 3.3
    bound = error_bound(kernel, 3.3, settings.degree, dtype=torch.float64)
    assert bound <= settings.tolerance


@pytest.mark.parametrize(("kernel", "degree"), [("hermite", 30), ("laguerre", 40)])
def test_a_degree_by_hand_limits_the_scale(kernel, degree):
    settings = settle_kernel(
        Settings(kernel=kernel, degree=degree, initial_scale=1.0, tolerance=1e-4)
    )
    assert settings.degree == degree
    assert 2.0 < settings.max_scale < 4.5
    edge = settings.max_scale
    assert error_bound(kernel, edge, degree, dtype=torch.float64) <= 1e-4
    assert error_bound(kernel, edge * 1.01, degree, dtype=torch.float64) > 1e-4
    asked = settle_kernel(
        Settings(kernel=kernel, degree=degree, initial_scale=1.0, max_scale=2.5)
    )
    assert asked.max_scale == 2.5


def test_exact_kernel_has_no_degree():
    settings = settle_kernel(
        Settings(kernel="exact", degree=17, initial_scale=1.0, max_scale=4.0)
    )
    assert settings.degree is None
    assert settings.max_scale == 4.0


def test_settled_settings_stay_as_they_are():
    for kernel in KERNELS:
        once = settle_kernel(Settings(kernel=kernel))
        assert settle_kernel(once) == once


def test_hermite_of_degree_30_is_refused_at_scale_six():
    with pytest.raises(
        ParameterError,
        match=r"hermite kernel of degree 30 can be wrong by .* at initial_scale 6",
    ):
        settle_kernel(
            Settings(kernel="hermite", degree=30, initial_scale=6.0, max_scale=8.0)
        )


def test_a_start_above_the_largest_scale_is_refused():
    with pytest.raises(
        ParameterError, match=r"initial_scale 3 lies above max_scale 2.5; raise"
    ):
        settle_kernel(Settings(initial_scale=3.0, max_scale=2.5))


def test_hermite_cannot_go_where_its_terms_cancel():
    with pytest.raises(ParameterError, match=r"hermite kernel cannot reach tolerance"):
        settle_kernel(Settings(kernel="hermite", max_scale=9.0))


BAD_CHOICES = {
    "class_weight": "rare",
    "kernel": "fourier",
    "scale_mode": "hemisphere",
    "scale_penalty": "l2",
    "standardize": "person",
    "weights": "squared",
}


@pytest.mark.parametrize("name", sorted(BAD_CHOICES))
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_unknown_choices_are_refused_with_the_list(preset, name):
    value = BAD_CHOICES[name]
    with pytest.raises(ParameterError, match=rf"{name} must be one of '.*got '{value}"):
        resolve_settings(preset, {name: value})


def test_unknown_preset_is_refused():
    with pytest.raises(ParameterError, match=r"preset must be one of 'default', 'pap"):
        resolve_settings("best", {})


@pytest.mark.parametrize(
    ("name", "value", "lowest"),
    [
        ("n_layers", 0, 1),
        ("n_starts", 0, 1),
        ("patience", -3, 0),
        ("initial_scale", -0.5, 0.0),
        ("scale_step", float("nan"), 0.0),
        ("threshold", -1.0, 0.0),
    ],
)
def test_numbers_below_the_lowest_are_refused(name, value, lowest):
    with pytest.raises(
        ParameterError, match=rf"{name} must be at least {lowest}, got {value}"
    ):
        resolve_settings("default", {name: value})


def test_shares_out_of_range_are_refused():
    with pytest.raises(ParameterError, match=r"dropout must be at most 0\.9, got 1\.0"):
        resolve_settings("default", {"dropout": 1.0})
    for value in (0.0, 1.0, -0.2):
        with pytest.raises(
            ParameterError, match=rf"validation_fraction .* 0 and 1, got {value}"
        ):
            resolve_settings("default", {"validation_fraction": value})


def test_tolerance_and_batches_that_cannot_work_are_refused():
    for value in (0.0, 0.5, 50.0):
        with pytest.raises(ParameterError, match=rf"tolerance .* 0\.01, got {value}"):
            resolve_settings("default", {"tolerance": value})
    with pytest.raises(ParameterError, match=r"batch_size must be 0 .* got 1"):
        resolve_settings("default", {"batch_size": 1})


def test_no_number_is_refused_by_name():
    for name, value in [("n_epochs", "a"), ("initial_scale", "atuo")]:
        with pytest.raises(ParameterError, match=rf"{name} must be at least .*{value}"):
            resolve_settings("default", {name: value})
    with pytest.raises(ParameterError, match=r"max_scale must be .* 0.0, got inf"):
        resolve_settings("default", {"max_scale": float("inf")})


def test_auto_keeps_to_scales_that_are_allowed():
    settings = settle_kernel(resolve_settings("default", {"max_scale": 1.5}))
    assert [one.initial_scale for one in candidates(settings)] == [0.2, 1.0]
    settings = settle_kernel(resolve_settings("default", {"max_scale": 0.1}))
    assert [one.initial_scale for one in candidates(settings)] == [0.1]
