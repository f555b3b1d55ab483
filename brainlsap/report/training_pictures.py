"""Scales during training as figures of a report."""

from pathlib import Path

import numpy as np
import pandas as pd

from brainlsap.data import Atlas
from brainlsap.evaluation import Evaluation, ModelResult
from brainlsap.evaluation.scale_paths import N_STEPS
from brainlsap.exceptions import BrainlsapError
from brainlsap.report.illustrations import SCALE_LABEL, Picture, as_png
from brainlsap.report.surface import plot_regions
from brainlsap.report.training_animation import write_training_animation
from brainlsap.report.training_figures import plot_trajectories

# All of the cortex is seen from the sides; from above and below nothing is added.
VIEWS = ("outer left", "inner left", "inner right", "outer right", "subcortical")
# Row of a path of scales, and the share of training that each row is at.
QUARTERS = {
    name: quarter * N_STEPS // 4
    for quarter, name in enumerate(("25%", "50%", "75%", "end"), start=1)
}
SHARES = np.linspace(0, 100, N_STEPS + 1).round().astype(int).tolist()
SHARE = "share of training (%)"
ANIMATION = "scales_during_training.gif"


def draw_training(
    evaluation: Evaluation, atlas: Atlas
) -> tuple[tuple[Picture, ...], tuple[str, ...]]:
    """Draw the scales of the first model during training: as lines, and on the brain.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    atlas : Atlas
        The regions; without surfaces there are only lines.

    Returns
    -------
    pictures : tuple of Picture
        None where no model has a path of scales.
    gaps : tuple of str
        What could not be drawn, and why.
    """
    result, path = _first_path(evaluation)
    if result is None or path is None:
        return (), ()
    ends = pd.Series(path[-1], index=list(result.region_names)).dropna()
    smallest = ", ".join(ends.nsmallest(3).index)
    told = f"{result.name}, mean over folds; each counts to the epoch that was chosen"
    lines = Picture(
        "scales_during_training",
        f"Heat scale of every region during training ({told}). Coloured: the regions "
        "that end smallest.",
        f"Lines of scales during training; smallest at the end: {smallest}.",
        as_png(_lines(path, result, atlas).figure),
    )
    maps = {
        name: pd.Series(path[row], index=list(result.region_names))
        for name, row in QUARTERS.items()
    }
    try:
        figure = plot_regions(
            maps, atlas, views=list(VIEWS), colorbar_label=SCALE_LABEL
        )
    except BrainlsapError as error:
        return (lines,), (f"Scales during training could not be drawn: {error}",)
    ends_of_start = (f"{np.nanmin(path[0]):.2f}", f"{np.nanmax(path[0]):.2f}")
    start = " to ".join(dict.fromkeys(ends_of_start))
    brain = Picture(
        "scales_at_quarters",
        f"Heat scales at the quarters of training ({told}), one scale of colours. At "
        f"the start all regions of a fold are alike; over folds and regions the start "
        f"is {start}. Grey: no value.",
        f"Heat scales on the brain at four times of training, from {start} at the "
        f"start; smallest at the end: {smallest}.",
        as_png(figure),
    )
    return (lines, brain), ()


def animate_training(evaluation: Evaluation, atlas: Atlas, folder: Path) -> Path | None:
    """Write the scales of the first model during training as a GIF.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.
    atlas : Atlas
        With surface files.
    folder : Path
        Where to.

    Returns
    -------
    Path or None
        None where no model has a path of scales.
    """
    result, path = _first_path(evaluation)
    if result is None or path is None:
        return None
    names = list(result.region_names)
    where, when = folder / ANIMATION, "{}% of training"
    return write_training_animation(path, SHARES, names, where, atlas, when=when)


def _first_path(
    evaluation: Evaluation,
) -> tuple[ModelResult | None, np.ndarray | None]:
    """Return the first model with a path of scales; NaN where nothing was measured."""
    for result in evaluation.results.values():
        path = result.scale_path()
        if path is not None and result.measured.any():
            return result, np.where(result.measured, path, np.nan)
    return None, None


def _lines(path: np.ndarray, result: ModelResult, atlas: Atlas):  # type: ignore[no-untyped-def]
    known = result.measured
    places = atlas.match(list(result.region_names))[known]
    names = [atlas.short_names[place] for place in places]
    ax = plot_trajectories(path[:, known], SHARES, names)
    ax.set_xlabel(SHARE)
    return ax
