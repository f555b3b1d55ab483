"""What a fit says of itself: errors, limits, whether scales were learned."""

import warnings
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from brainlsap.graph import error_bound
from brainlsap.model.ensemble import Ensemble

# Scales that stay this close to their start were not learned.
UNMOVED = 0.05


def fit_report(ensemble: Ensemble, scales: np.ndarray) -> dict[str, Any]:
    """Return a record of a fit that can be written as JSON.

    Parameters
    ----------
    ensemble : Ensemble
        Every start, and the settings that they settled on.
    scales : array of shape (n_starts, n_rois)
        Learned scales, of the starts that are averaged.

    Returns
    -------
    dict
        kernel, degree, largest_scale, highest_learned_scale, approximation_error
        (bound at that scale, rounding of float64 included), scales_learned,
        scales_by_start,
        n_projected, best_epochs, n_restarts, n_unhealthy, settings.
    """
    runs, settings = ensemble.runs, ensemble.settings
    start = float(settings.initial_scale)
    highest = float(scales.max())
    moved = np.abs(scales.mean(0) - start)
    limit = UNMOVED * max(start, 1e-12)
    return {
        "kernel": settings.kernel,
        "degree": settings.degree,
        "largest_scale": settings.max_scale,
        "highest_learned_scale": highest,
        "approximation_error": error_bound(
            settings.kernel, highest, settings.degree, dtype=torch.float64
        ),
        "scales_learned": bool((moved > limit).any()),
        # of every network that is averaged: how far seeds spread
        "scales_by_start": np.round(scales, 6).tolist(),
        "n_projected": sum(run.network.heat.n_projected for run in runs),
        "best_epochs": [run.best_epoch for run in runs],
        "start_scale": start,
        "start_losses": ensemble.start_losses,
        "n_restarts": sum(run.n_restarts for run in runs),
        "n_unhealthy": sum(not run.healthy for run in runs),
        # a search over a grid hands NumPy's numbers on, which JSON does not know
        "settings": {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in asdict(settings).items()
        },
    }


def warn_of_limits(report: dict[str, Any]) -> None:
    """Warn once of scales that hit the limit, and of runs that stayed dead."""
    if report["n_projected"]:
        warnings.warn(
            f"scales reached {report['largest_scale']:.3g}, the largest at which the "
            f"{report['kernel']} kernel is trusted here, and were kept there. Raise "
            "max_scale, or the degree, to let them grow.",
            UserWarning,
            stacklevel=4,
        )
    if report["n_unhealthy"]:
        warnings.warn(
            f"{report['n_unhealthy']} starts stayed dead or diverged after restarts; "
            "the others, if any, are averaged. Lower learning_rate or scale_step, "
            "or check the features.",
            UserWarning,
            stacklevel=4,
        )
