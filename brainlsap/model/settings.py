"""Settings of a fit, the presets, and the hyperparameters of the paper."""

from dataclasses import Field, dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, Literal, get_args, get_origin

import numpy as np
import torch

from brainlsap.exceptions import ParameterError, check_choice
from brainlsap.graph import (
    EXPANSIONS,
    Preparation,
    choose_degree,
    error_bound,
    largest_scale,
)
from brainlsap.graph.kernels import kernel_names
from brainlsap.text import option_name, option_text

# Value of `initial_scale` that takes the scales of the ridge regression.
EVIDENCE = "evidence"
# Value of `network_weight` that chooses it on the people that each network leaves out.
BY_LEFT_OUT_PEOPLE = "left-out"
# Initial scale of networks without a ridge regression.
_CONSTANT_SCALE = 1.0


@dataclass(frozen=True)
class HeatSettings:
    """Settings of fits to scans and fits to the nodes of a graph."""

    # "heat" for LSAP, or the name of a baseline network.
    network: str = "heat"
    kernel: str = "chebyshev"
    degree: int | None = None
    max_scale: float | None = None
    scale_step: float = 10.0
    scale_clip: float = 0.1
    scale_penalty: Literal["none", "barrier", "l1"] = "none"
    penalty_weight: float = 1.0
    n_layers: int = 1
    learning_rate: float = 0.01


@dataclass(frozen=True)
class Settings(HeatSettings):
    """Every setting of one fit; `LSAPClassifier` explains them."""

    tolerance: float = 1e-4
    scale_mode: Literal["region", "global", "frozen"] = "region"
    start: Literal["ridge", "constant"] = "ridge"
    initial_scale: float | str = EVIDENCE
    network_weight: float | str = BY_LEFT_OUT_PEOPLE
    hidden_units: int = 8
    readout_units: int = 16
    standardize: Literal["region", "scan"] = "region"
    dropout: float = 0.3
    weight_decay: float = 0.0
    readout_penalty: float = 1e-2
    class_weight: Literal["balanced", "none"] = "balanced"
    n_epochs: int = 400
    patience: int = 40
    validation_fraction: float = 0.2
    batch_size: int = 0
    n_starts: int = 4
    threshold: float = 0.0
    weights: str = "weighted"
    connectome: str = "own"
    inputs: Literal["constant", "features"] = "features"
    head: Literal["ordinal", "softmax"] = "softmax"
    # Minimum training accuracy, as a fraction of the way from chance to 1; training is
    # restarted below it. With 0, the output must only vary between scans.
    least_learned: float = 0.0

    def leaves_people_out(self) -> bool:
        """Return whether networks leave people out, to stop or to be weighed."""
        return self.patience > 0 or self.network_weight == BY_LEFT_OUT_PEOPLE

    def preparation(self) -> Preparation:
        """Return the preparation of connectomes."""
        return Preparation(self.threshold, self.weights, self.connectome)


PRESETS = {
    "default": Settings(),
    "paper": Settings(
        start="constant",
        initial_scale=2.0,
        scale_step=1.0,
        n_layers=2,
        hidden_units=16,
        standardize="scan",
        dropout=0.5,
        weight_decay=5e-4,
        readout_penalty=0.0,
        scale_penalty="barrier",
        class_weight="none",
        n_epochs=2000,
        patience=0,
        n_starts=1,
        threshold=10.0,
        weights="binary",
    ),
}

# Settings that LSAPClassifier takes in its parameter `options`.
RARE_SETTINGS = (
    *("degree", "tolerance", "scale_step", "scale_clip", "scale_penalty"),
    *("penalty_weight", "hidden_units", "readout_units", "standardize", "dropout"),
    *("learning_rate", "weight_decay", "readout_penalty", "patience"),
    *("validation_fraction", "batch_size", "inputs", "network_weight"),
)

# Degrees from the supplement of the paper. Their kernel error is accepted.
PAPER_DEGREES = {"chebyshev": 20, "hermite": 30, "laguerre": 20}

# Settings validated elsewhere: kernel above, weights and connectome by `Preparation`.
_CHECKED_ELSEWHERE = ("kernel", "network", "weights", "connectome")

# Largest kernel error accepted at the initial scale.
MAX_INITIAL_ERROR = 1e-2

_LARGE = 1e18
# Smallest and largest valid value of settings; the others are from 0 to _LARGE.
SETTING_LIMITS: dict[str, tuple[float, float]] = {
    "tolerance": (1e-15, MAX_INITIAL_ERROR),
    "temperature": (1e-6, _LARGE),
    "validation_fraction": (0.01, 0.99),
    "network_weight": (0, 1),
    **dict.fromkeys(("dropout", "input_dropout", "node_dropout"), (0, 0.95)),
    **dict.fromkeys(("n_layers", "hidden_units", "readout_units"), (1, _LARGE)),
    **dict.fromkeys(("n_epochs", "n_starts", "n_views"), (1, _LARGE)),
}


def check_settings(settings: HeatSettings) -> None:
    """Raise ParameterError for the first invalid setting."""
    check_choice("kernel", settings.kernel, kernel_names())
    for setting_field in fields(settings):
        setting_name = setting_field.name
        setting_value = getattr(settings, setting_field.name)
        if get_origin(setting_field.type) is Literal:
            check_choice(setting_name, setting_value, get_args(setting_field.type))
        elif (
            setting_name not in _CHECKED_ELSEWHERE
            and setting_value != setting_field.default
        ):
            _check_number_setting(setting_field, setting_value)


def _check_number_setting(setting_field: Field, setting_value: object) -> None:
    """Raise if the value of a setting is no number within its limits."""
    lower_limit, upper_limit = SETTING_LIMITS.get(setting_field.name, (0, _LARGE))
    value_type_set = {setting_field.type, *get_args(setting_field.type)}
    is_whole_number = int in value_type_set and float not in value_type_set
    number_type = Integral if is_whole_number else Real
    if (
        isinstance(setting_value, number_type)
        and lower_limit <= float(setting_value) <= upper_limit
    ):
        return
    number_text = "a whole number" if is_whole_number else "a finite number"
    limit_text = f"of at least {lower_limit:g}"
    if upper_limit < _LARGE:
        limit_text = f"from {lower_limit:g} to {upper_limit:g}"
    default_text = (
        f" or {setting_field.default!r}"
        if isinstance(setting_field.default, str)
        else ""
    )
    value_text = repr(setting_value)
    if isinstance(setting_value, str):
        value_text = f"the text {setting_value!r}"
    raise ParameterError(
        f"{option_name(setting_field.name)} must be {number_text} {limit_text}"
        f"{default_text}; got {value_text}."
    )


def resolve_settings(preset_name: str, value_by_setting: dict[str, Any]) -> Settings:
    """Return the settings of a preset, replaced by the values that are not None.

    Other parameters of the model among `value_by_setting` are ignored. Raises
    ParameterError for the first invalid setting.
    """
    check_choice("preset", preset_name, PRESETS)
    change_by_setting: dict[str, Any] = {}
    for setting_field in fields(Settings):
        setting_value = value_by_setting.get(setting_field.name)
        if setting_value is not None:
            is_numpy_scalar = isinstance(setting_value, np.generic)
            change_by_setting[setting_field.name] = (
                setting_value.item() if is_numpy_scalar else setting_value
            )
    resolved_settings = resolve_start_settings(
        replace(PRESETS[preset_name], **change_by_setting), change_by_setting
    )
    resolved_settings.preparation()
    check_settings(resolved_settings)
    if resolved_settings.batch_size == 1:
        raise ParameterError(
            f"{option_name('batch_size')} must be 0 (all scans in one batch) or at "
            "least 2; got 1."
        )
    if preset_name == "paper" and resolved_settings.degree is None:
        resolved_settings = replace(
            resolved_settings, degree=PAPER_DEGREES.get(resolved_settings.kernel)
        )
    return resolved_settings


def resolve_start_settings(
    network_settings: Settings, change_by_setting: dict[str, Any]
) -> Settings:
    """Return settings with the start of training that follows from other settings.

    With constant inputs, training starts without the ridge regression, which would show
    the features to the network. Raises ParameterError if `change_by_setting`, the
    settings that differ from the preset, contradict each other.
    """
    if network_settings.inputs == "constant":
        if change_by_setting.get("start") == "ridge":
            raise ParameterError(
                f"{option_text('start', 'ridge')} adds a ridge model of the features "
                f"to the network, but {option_text('inputs', 'constant')} excludes "
                f"the features. Leave {option_name('start')} out."
            )
        network_settings = replace(network_settings, start="constant")
    if (
        network_settings.start == "constant"
        and network_settings.initial_scale == EVIDENCE
    ):
        if (
            "initial_scale" in change_by_setting
            and network_settings.inputs != "constant"
        ):
            raise ParameterError(
                f"{option_text('initial_scale', EVIDENCE)} starts from the scales of "
                f"the ridge model, but {option_text('start', 'constant')} fits no "
                f"ridge model. Give {option_name('initial_scale')} a number, or give "
                f"{option_text('start', 'ridge')}."
            )
        network_settings = replace(network_settings, initial_scale=_CONSTANT_SCALE)
    if network_settings.start == "constant":
        network_weight = change_by_setting.get("network_weight", 1)
        if network_weight != 1 and network_settings.inputs != "constant":
            raise ParameterError(
                f"{option_text('network_weight', network_weight)} is the weight of the "
                "network relative to the ridge model, but "
                f"{option_text('start', 'constant')} fits no ridge model. Leave "
                f"{option_name('network_weight')} out, or give "
                f"{option_text('start', 'ridge')}."
            )
        network_settings = replace(network_settings, network_weight=1.0)
    return network_settings


def resolve_kernel_settings(network_settings: Settings) -> Settings:
    """Return settings with a degree and a largest scale; the kernel is accurate there.

    If the degree is None, take the lowest that keeps the tolerance up to `max_scale`.
    If it is given, lower `max_scale` to the largest scale at which this degree keeps
    the tolerance, or its error at the initial scale if that is larger (2e-4 at scale 2
    for the paper's Laguerre-20). Raises ParameterError if the error at the initial
    scale is too large, or the initial scale is above `max_scale`.
    """
    kernel = network_settings.kernel
    polynomial_degree = network_settings.degree
    max_scale = network_settings.max_scale
    # Scales from the evidence are limited to `max_scale` when they are set.
    initial_scale = 0.0
    if network_settings.initial_scale != EVIDENCE:
        initial_scale = float(network_settings.initial_scale)
    if max_scale is None:
        # The exact kernel is a Chebyshev series, too.
        max_scale = EXPANSIONS["chebyshev" if kernel == "exact" else kernel].max_scale
    if max_scale < initial_scale:
        raise ParameterError(
            f"{option_text('initial_scale', initial_scale)} is above "
            f"{option_text('max_scale', max_scale)}. Increase "
            f"{option_name('max_scale')}."
        )
    if kernel == "exact":
        polynomial_degree = None
    elif polynomial_degree is None:
        polynomial_degree = choose_degree(kernel, max_scale, network_settings.tolerance)
    else:
        initial_error = error_bound(
            kernel, initial_scale, polynomial_degree, dtype=torch.float64
        )
        if initial_error > MAX_INITIAL_ERROR:
            raise ParameterError(
                f"the {kernel} kernel of degree {polynomial_degree} can have an "
                f"error of {initial_error:.2g} at "
                f"{option_text('initial_scale', initial_scale)}. Leave "
                f"{option_name('degree')} out, or lower "
                f"{option_name('initial_scale')}."
            )
        tolerance = max(network_settings.tolerance, initial_error)
        accurate_scale = largest_scale(kernel, polynomial_degree, tolerance)
        max_scale = min(max_scale, max(accurate_scale, initial_scale))
    return replace(network_settings, degree=polynomial_degree, max_scale=max_scale)
