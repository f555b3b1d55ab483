"""Presets, what may be asked for, and degrees that can be trusted."""

import pytest
import torch

from brainlsap.exceptions import ParameterError
from brainlsap.graph import KERNELS, choose_degree, error_bound
from brainlsap.model.settings import Settings, resolve_kernel_settings, resolve_settings

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
    settings = resolve_kernel_settings(resolve_settings("paper", {"kernel": kernel}))
    assert {name: getattr(settings, name) for name in PAPER} == PAPER
    assert settings.degree == degree
    assert settings.max_scale >= 2.0
    assert resolve_kernel_settings(settings) == settings
    # Laguerre-20 is wrong by 2e-4 at scale 2: more than the tolerance
    if kernel == "laguerre":
        assert error_bound("laguerre", 2.0, 20) > settings.tolerance
        assert settings.max_scale == pytest.approx(2.0, rel=1e-4)


@pytest.mark.parametrize("kernel", KERNELS)
def test_degree_is_the_lowest_that_goes_to_the_largest_scale(kernel):
    given = {"kernel": kernel, "initial_scale": 1.0, "max_scale": 3.3}
    settings = resolve_kernel_settings(
        resolve_settings("default", given | {"tolerance": 1e-5})
    )
    assert settings.max_scale == 3.3
    if kernel == "exact":
        assert settings.degree is None
    else:
        assert settings.degree == choose_degree(kernel, 3.3, 1e-5)
        bound = error_bound(kernel, 3.3, settings.degree, dtype=torch.float64)
        assert bound <= 1e-5


@pytest.mark.parametrize(("kernel", "degree"), [("hermite", 30), ("laguerre", 40)])
def test_a_degree_by_hand_limits_the_scale(kernel, degree):
    given = Settings(kernel=kernel, degree=degree, initial_scale=1.0)
    edge = resolve_kernel_settings(given).max_scale
    assert 2.0 < edge < 4.5
    assert error_bound(kernel, edge, degree, dtype=torch.float64) <= 1e-4
    assert error_bound(kernel, edge * 1.01, degree, dtype=torch.float64) > 1e-4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"kernel": "hermite", "degree": 30, "initial_scale": 6, "max_scale": 8},
            r"hermite kernel of degree 30 can have an error of .* at initial_scale=6",
        ),
        (
            {"initial_scale": 3.0, "max_scale": 2.5},
            r"initial_scale=3.0 is above max_scale=2.5",
        ),
        ({"kernel": "hermite", "max_scale": 9.0}, "hermite kernel cannot"),
        ({"kernel": "fourier"}, r"kernel must be one of '.*got 'fourier'"),
        ({"n_layers": 0}, "n_layers must be a whole number of at least 1; got 0"),
        (
            {"scale_step": float("nan")},
            "scale_step must be a finite number of .* 0; got nan",
        ),
        ({"initial_scale": "auto"}, "initial_scale .* or 'evidence'; got .*'auto'"),
        ({"n_epochs": 3.0}, r"n_epochs must be a whole number .*got 3\.0"),
        ({"n_layers": "2"}, "n_layers must be a whole number .*got the text '2'"),
        ({"max_scale": float("inf")}, "max_scale must be .*got inf"),
        ({"dropout": 1.0}, r"dropout must be .* from 0 to 0\.95; got 1\.0"),
        ({"validation_fraction": 1.0}, "validation_fraction .* to 0.99; got 1.0"),
        ({"tolerance": 0.5}, r"tolerance .* 0\.01; got 0\.5"),
        ({"network_weight": 1.5}, r"network_weight .* 0 to 1 or 'left-out'; got 1\.5"),
        ({"batch_size": 1}, r"batch_size must be 0 .* got 1"),
        ({"connectome": "mean"}, "connectome must be one of .* got 'mean'"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(given, message):
    with pytest.raises(ParameterError, match=message):
        resolve_kernel_settings(resolve_settings("default", given))
