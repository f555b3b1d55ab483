"""Values by region name become arrays in atlas order, and colours on one scale."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from brainlsap.data.atlas import Atlas, load_atlas
from brainlsap.exceptions import ParameterError
from brainlsap.report.surface_pictures import NO_REGION, NOTHING
from brainlsap.report.surface_sheet import Theme

if TYPE_CHECKING:
    from matplotlib.cm import ScalarMappable


@dataclass(frozen=True, eq=False)
class Colours:
    """The one scale of colours of all maps.

    Parameters
    ----------
    scale : ScalarMappable
        Colours and limits.
    extend : {"neither", "min", "max", "both"}
        Whether values lie beyond the limits, as the colour bar shows it.
    """

    scale: "ScalarMappable"
    extend: str


def as_atlas(atlas: str | Path | Atlas) -> Atlas:
    """Return the atlas; one that is named is loaded once, and its pictures are kept.

    Parameters
    ----------
    atlas : str, Path or Atlas
        What :func:`brainlsap.data.load_atlas` takes.

    Returns
    -------
    Atlas
    """
    return atlas if isinstance(atlas, Atlas) else _loaded(atlas)


@lru_cache(maxsize=8)
def _loaded(name: str | Path) -> Atlas:
    return load_atlas(name)


def as_maps(values: Any, atlas: Atlas) -> dict[str, np.ndarray]:
    """Return each map as an array in atlas order, NaN where there is no value.

    Parameters
    ----------
    values : Series, DataFrame or mapping
        As :func:`brainlsap.report.plot_regions` takes them.
    atlas : Atlas
        Holds the names.

    Returns
    -------
    dict of str to ndarray of float, shape (n_rois,)
        By title; a single map without one has the title "".

    Raises
    ------
    RegionNameError
        If a name is unknown, or a region has two values.
    ParameterError
        If values have no names, or there is no value that can be drawn.
    """
    if isinstance(values, pd.DataFrame):
        values = {str(name): values[name] for name in values}
    if isinstance(values, pd.Series):
        values = {"": values}
    if not isinstance(values, Mapping):
        raise ParameterError(
            "values must give each value by the region's name: a Series, a mapping, "
            f"or a DataFrame or mapping of several, got {type(values).__name__}."
        )
    several = [isinstance(part, Mapping | pd.Series) for part in values.values()]
    maps = dict(values) if several and all(several) else {"": dict(values)}
    return {str(name): _as_array(str(name), part, atlas) for name, part in maps.items()}


def _as_array(name: str, values: Mapping | pd.Series, atlas: Atlas) -> np.ndarray:
    of = f" of map {name!r}" if name else ""
    # Before anything becomes a dict: an index may hold a name twice.
    places = atlas.match(list(values.keys()))
    full = np.full(len(atlas), np.nan)
    try:
        full[places] = [float(value) for value in dict(values).values()]
    except (TypeError, ValueError) as error:
        raise ParameterError(f"The values{of} must be numbers ({error}).") from error
    if np.isinf(full).any():
        region = atlas.names[int(np.flatnonzero(np.isinf(full))[0])]
        raise ParameterError(
            f"The value{of} at {region} is infinite; give a number, or NaN for grey."
        )
    if np.isnan(full).all():
        raise ParameterError(f"There is no value{of} to draw; all are missing or NaN.")
    return full


def shared_colours(
    values: np.ndarray, cmap: Any, limits: tuple[float, float] | None
) -> Colours:
    """Return the one scale of colours of all maps.

    Parameters
    ----------
    values : ndarray of float, shape (n_maps, n_rois)
        All that is drawn.
    cmap : str or Colormap
        Colours, low to high.
    limits : tuple of (float, float) or None
        Values of the first and last colour; None takes the smallest and largest.

    Returns
    -------
    Colours

    Raises
    ------
    ParameterError
        If the colour map is unknown, or the limits are no two rising numbers.
    """
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Colormap, Normalize

    if not isinstance(cmap, Colormap) and cmap not in colormaps:
        raise ParameterError(
            f"cmap must be a colour map of matplotlib, such as 'viridis' or 'cividis', "
            f"got {cmap!r}."
        )
    lowest, highest = float(np.nanmin(values)), float(np.nanmax(values))
    if limits is None:
        half = 0.5 * (abs(lowest) or 1.0) if lowest == highest else 0.0
        low, high = lowest - half, highest + half
    else:
        low, high = (float(limit) for limit in limits)
        if not (np.isfinite([low, high]).all() and low < high):
            raise ParameterError(
                f"limits must be two numbers, the smaller first, got {limits!r}."
            )
    scale = ScalarMappable(Normalize(low, high, clip=True), cmap)
    ends = {(True, True): "both", (True, False): "min", (False, True): "max"}
    return Colours(scale, ends.get((lowest < low, highest > high), "neither"))


def palette(values: np.ndarray, scale: "ScalarMappable", theme: Theme) -> np.ndarray:
    """Return the colour of each region; the last two are for what is no region.

    Parameters
    ----------
    values : ndarray of float, shape (n_rois,)
        One map; NaN is grey.
    scale : ScalarMappable
        Colours and limits.
    theme : Theme
        Greys.

    Returns
    -------
    ndarray of uint8, shape (n_rois + 2, 3)
        So that a region picture's -1 and -2 find their colours too.
    """
    rgb = np.zeros((len(values) + 2, 3), dtype=np.uint8)
    rgb[: len(values)] = scale.to_rgba(np.nan_to_num(values), bytes=True)[:, :3]
    rgb[: len(values)][np.isnan(values)] = colour_bytes(theme.no_value)
    rgb[NO_REGION] = colour_bytes(theme.no_region)
    rgb[NOTHING] = colour_bytes(theme.silhouette)
    return rgb


def colour_bytes(colour: Any) -> np.ndarray:
    """Return a colour as three bytes.

    Parameters
    ----------
    colour : str or sequence of float
        As matplotlib takes colours.

    Returns
    -------
    ndarray of uint8, shape (3,)

    Examples
    --------
    >>> colour_bytes("#ff8000").tolist()
    [255, 128, 0]
    """
    from matplotlib.colors import to_rgb

    return np.round(np.array(to_rgb(colour), dtype=float) * 255).astype(np.uint8)


def hex_colours(colours: np.ndarray) -> list[str]:
    """Return colours as web pages write them.

    Parameters
    ----------
    colours : ndarray of uint8, shape (n_colours, 3 or more)
        Red, green, blue.

    Returns
    -------
    list of str

    Examples
    --------
    >>> hex_colours(np.array([[255, 128, 0]], dtype=np.uint8))
    ['#ff8000']
    """
    return [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue, *_ in colours]
