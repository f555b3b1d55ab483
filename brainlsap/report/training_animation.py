"""Heat scales during training as pictures that move."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap._files import replace_when_whole
from brainlsap.data.atlas import Atlas
from brainlsap.exceptions import ParameterError
from brainlsap.report.surface import plot_regions
from brainlsap.report.surface_values import as_atlas
from brainlsap.report.training_figures import SCALE_LABEL, checked_history


def write_training_animation(
    scales: Any,
    epochs: Sequence[int],
    region_names: Sequence[str],
    path: str | Path,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    n_frames: int = 24,
    seconds: float = 6.0,
    when: str = "epoch {}",
    **how: Any,
) -> Path:
    """Write the scales during training as a GIF that moves.

    Parameters
    ----------
    scales : array of shape (n_looks, n_rois)
        Scales at every look.
    epochs : sequence of int, length n_looks
        When it was looked, rising.
    region_names : sequence of str, length n_rois
        Name of every column.
    path : str or Path
        The file, ending in `.gif`.
    atlas : str, Path or Atlas
        With surface files.
    n_frames : int
        At the most; looks are taken evenly from the first to the last.
    seconds : float
        How long one round takes; the last frame then stands for a second.
    when : str
        Title of a frame, with {} for its epoch.
    **how
        As for :func:`plot_regions`, of the engine "matplotlib".

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ParameterError
        If the shapes do not fit together, the epochs do not rise, the file does not
        end in `.gif`, or there is no frame to draw.

    Examples
    --------
    >>> import tempfile
    >>> names = ["lh_G_precuneus", "Left-Putamen"]
    >>> path = tempfile.mkdtemp() + "/training.gif"
    >>> write_training_animation(
    ...     [[2.0, 2.0], [0.9, 2.9]], [0, 20], names, path, views="inner left"
    ... ).name
    'training.gif'
    """
    scales, times = checked_history(scales, epochs, region_names)
    if Path(path).suffix.lower() != ".gif":
        raise ParameterError(
            f"the animation is a GIF: end its name in .gif, got {path}."
        )
    if n_frames < 1 or seconds <= 0:
        raise ParameterError(
            "an animation needs n_frames of at least 1 and seconds above 0, got "
            f"n_frames={n_frames!r}, seconds={seconds!r}."
        )
    atlas = as_atlas(atlas)
    looks = np.unique(np.linspace(0, len(times) - 1, n_frames).round().astype(int))
    low, high = float(np.nanmin(scales)), float(np.nanmax(scales))
    how = {"colorbar_label": SCALE_LABEL, **how}
    if low < high:
        how.setdefault("limits", (low, high))
    how.setdefault("views", ["outer left", "inner left", "inner right", "outer right"])
    colours = _fixed_palette(how.get("cmap", "viridis"))
    frames = [
        _frame(
            pd.Series(scales[look], index=list(region_names)),
            atlas,
            {**how, "title": when.format(times[look])},
        ).quantize(palette=colours, dither=0)
        for look in looks
    ]
    pause = max(20, int(1000 * seconds / len(frames)))
    with replace_when_whole(path) as partial:
        frames[0].save(
            partial,
            format="GIF",
            save_all=True,
            append_images=frames[1:],
            duration=[pause] * (len(frames) - 1) + [pause + 1000],
            loop=0,
        )
    return Path(path)


def _fixed_palette(cmap: Any) -> Any:
    """Return the colours of the map and greys: a GIF has 256, and must not guess."""
    from matplotlib import colormaps
    from PIL import Image

    shown = colormaps[cmap] if isinstance(cmap, str) else cmap
    colours = shown(np.linspace(0, 1, 216), bytes=True)[:, :3]
    greys = np.repeat(np.linspace(0, 255, 40).round()[:, None], 3, axis=1)
    palette = Image.new("P", (1, 1))
    palette.putpalette(np.vstack([colours, greys]).astype(np.uint8).tobytes())
    return palette


def _frame(values: pd.Series, atlas: Atlas, how: dict[str, Any]) -> Any:
    from PIL import Image

    figure = plot_regions(values, atlas, **how)
    figure.set_dpi(100)
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    return Image.fromarray(np.ascontiguousarray(pixels))
