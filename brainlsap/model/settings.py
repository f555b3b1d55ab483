"""Every option of a fit, the presets, and the paper's hyperparameters."""

from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any, Literal, get_args, get_origin

import numpy as np
import torch

from brainlsap.exceptions import ParameterError, check_choice
from brainlsap.graph import (
    EXPANSIONS,
    KERNELS,
    Preparation,
    choose_degree,
    error_bound,
    largest_scale,
)

# An initial scale that is no number: those of the ridge.
EVIDENCE = "evidence"
# Where scales of networks without a ridge start.
_CONSTANT_SCALE = 1.0


@dataclass(frozen=True)
class HeatSettings:
    """Settings that fits of scans and fits of nodes have in common."""

    # what carries signals along the graph: heat, or the name of another network
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
    """Every setting of one fit; see `LSAPClassifier` for what each means."""

    tolerance: float = 1e-4
    scale_mode: Literal["region", "global", "frozen"] = "region"
    start: Literal["ridge", "constant"] = "ridge"
    initial_scale: float | str = EVIDENCE
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
    # a run whose training accuracy comes no farther from chance than this share of
    # the way to 1 is started again; 0 asks only that its output varies
    least_learned: float = 0.0

    def preparing(self) -> Preparation:
        """Return how connectomes are made ready."""
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

# Settings that stand in the `options` of LSAPClassifier.
OPTIONS = (
    *("degree", "tolerance", "scale_step", "scale_clip", "scale_penalty"),
    *("penalty_weight", "hidden_units", "readout_units", "standardize", "dropout"),
    *("learning_rate", "weight_decay", "readout_penalty", "patience"),
    *("validation_fraction", "batch_size", "inputs"),
)

# The degrees of the paper's supplement; the error they bring at the start is kept.
PAPER_DEGREES = {"chebyshev": 20, "hermite": 30, "laguerre": 20}

# What its own reader checks.
_CHECKED_ELSEWHERE = ("kernel", "network", "weights", "connectome")

# A start that is wrong by more is refused.
UNTRUSTED_ERROR = 1e-2

_LARGE = 1e18
# The smallest and the largest value of numbers that may not be 0, or not be large.
LIMITS: dict[str, tuple[float, float]] = {
    "tolerance": (1e-15, UNTRUSTED_ERROR),
    "temperature": (1e-6, _LARGE),
    "validation_fraction": (0.01, 0.99),
    **dict.fromkeys(("dropout", "input_dropout", "node_dropout"), (0, 0.95)),
    **dict.fromkeys(("n_layers", "hidden_units", "readout_units"), (1, _LARGE)),
    **dict.fromkeys(("n_epochs", "n_starts", "n_views"), (1, _LARGE)),
}


def check_settings(settings: HeatSettings) -> None:
    """Raise for the first setting that cannot be used."""
    check_choice("kernel", settings.kernel, KERNELS)
    for field in fields(settings):
        name, value = field.name, getattr(settings, field.name)
        if get_origin(field.type) is Literal:
            check_choice(name, value, get_args(field.type))
        elif name not in _CHECKED_ELSEWHERE and value != field.default:
            lowest, highest = LIMITS.get(name, (0, _LARGE))
            if not (isinstance(value, Real) and lowest <= float(value) <= highest):
                raise ParameterError(
                    f"{name} must be between {lowest:g} and {highest:g}, got {value!r}."
                )


def resolve_settings(preset: str, given: dict[str, Any]) -> Settings:
    """Return a preset with the settings that were given (not None) for its own.

    Raises for the first that cannot be used.
    """
    check_choice("preset", preset, PRESETS)
    known = {field.name for field in fields(Settings)}
    chosen = {k: v for k, v in given.items() if k in known and v is not None}
    for name, value in chosen.items():
        chosen[name] = value.item() if isinstance(value, np.generic) else value
    settings = settle_start(replace(PRESETS[preset], **chosen), chosen)
    settings.preparing()
    check_settings(settings)
    if settings.batch_size == 1:
        raise ParameterError("batch_size must be 0 (all scans) or at least 2, got 1.")
    if preset == "paper" and settings.degree is None:
        settings = replace(settings, degree=PAPER_DEGREES.get(settings.kernel))
    return settings


def settle_start(settings: Settings, chosen: dict[str, Any]) -> Settings:
    """Fill in how networks start where that follows from other settings.

    Constant inputs start without the ridge, which would see the features that are kept
    from the network. Raises where `chosen` settings contradict each other.
    """
    if settings.inputs == "constant":
        if chosen.get("start") == "ridge":
            raise ParameterError(
                "start='ridge' shows the network a ridge of the features, which "
                "inputs='constant' keeps from it. Leave start out."
            )
        settings = replace(settings, start="constant")
    if settings.start == "constant" and settings.initial_scale == EVIDENCE:
        if "initial_scale" in chosen and settings.inputs != "constant":
            raise ParameterError(
                f"initial_scale={EVIDENCE!r} takes the scales of the ridge, which "
                "start='constant' goes without. Give initial_scale a number, or "
                "start='ridge'."
            )
        settings = replace(settings, initial_scale=_CONSTANT_SCALE)
    return settings


def settle_kernel(settings: Settings) -> Settings:
    """Fill in degree and largest scale, so that each is known and trusted.

    Without a degree, the lowest is taken that keeps the tolerance up to `max_scale`.
    With one, scales may go as far as that degree keeps the tolerance, or its error
    at the start if that is larger (the paper's Laguerre-20: 2e-4 at scale 2). Raises
    where the start cannot be trusted, or lies above `max_scale`.
    """
    kernel, degree, largest = settings.kernel, settings.degree, settings.max_scale
    given = settings.initial_scale != EVIDENCE  # which is kept where it is trusted
    start = float(settings.initial_scale) if given else 0.0
    if largest is None:  # the exact kernel is a series of Chebyshev's
        largest = EXPANSIONS["chebyshev" if kernel == "exact" else kernel].max_scale
    if largest < start:
        raise ParameterError(
            f"initial_scale {start:g} lies above max_scale {largest:g}; raise that."
        )
    if kernel == "exact":
        degree = None
    elif degree is None:
        degree = choose_degree(kernel, largest, settings.tolerance)
    else:
        at_start = error_bound(kernel, start, degree, dtype=torch.float64)
        if at_start > UNTRUSTED_ERROR:
            raise ParameterError(
                f"the {kernel} kernel of degree {degree} can be wrong by {at_start:.2g}"
                f" at initial_scale {start:g}. Leave degree at None, or start lower."
            )
        trusted = largest_scale(kernel, degree, max(settings.tolerance, at_start))
        largest = min(largest, max(trusted, start))
    return replace(settings, degree=degree, max_scale=largest)
