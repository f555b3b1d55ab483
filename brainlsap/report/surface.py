"""Draw one value per region on cortex and subcortex, from values by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from brainlsap.data.atlas import Atlas, load_atlas
from brainlsap.exceptions import ParameterError
from brainlsap.report.surface_pictures import (
    NO_REGION,
    NOTHING,
    RegionPicture,
    region_picture,
)
from brainlsap.report.surface_sheet import DARK, LIGHT, Sheet, Theme
from brainlsap.report.surface_views import MESHES, VIEWS, check_views

if TYPE_CHECKING:
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

# How much darker a surface gets where it turns away, by what it is.
_SHADE = {"subcortex": 0.45, "inflated": 0.0, "half-inflated": 0.0}
_FOLDED = 0.35


@dataclass(frozen=True, eq=False)
class _Colours:
    scale: "ScalarMappable"
    extend: str  # whether values lie beyond the limits, as the colour bar shows it


def plot_regions(
    values: Any,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    views: str | Sequence[str] = "paper",
    mesh: str = "inflated",
    cmap: Any = "viridis",
    limits: tuple[float, float] | None = None,
    title: str | None = None,
    colorbar_label: str | None = None,
    dark: bool = False,
) -> "Figure":
    """Draw one value per region on cortex and subcortex.

    Colours are flat on the inflated cortex, so that every one of them stands on the
    colour bar; the subcortex and the folded surfaces (pial, white) are lit from the
    viewer: there it is the colour of what faces the viewer that stands on the bar.
    No display is needed, and nothing is saved or shown.

    Parameters
    ----------
    values : Series or mapping of str to float; or DataFrame or mapping of str to these
        One value per region *by name*, in any spelling that the atlas matches; or
        several maps by title (columns of a DataFrame): one row of drawings each, on
        one scale of colours. Regions without a value, or with NaN, are grey.
    atlas : str, Path or Atlas
        What :func:`brainlsap.data.load_atlas` takes, with surface files.
    views : "paper" or sequence of str
        Columns: "top", "bottom", "outer left", "outer right", "inner left", "inner
        right" and "subcortical" (also "dorsal", "lateral left" ...); "paper" is all.
    mesh : {"inflated", "half-inflated", "pial", "white"}
        Surface of the cortex (fsaverage5). The folded ones hide what lies in sulci.
    cmap : str or Colormap
        Colours, low to high; a map that colour-blind readers can read.
    limits : tuple of (float, float) or None
        Values of the first and last colour; by default the smallest and largest
        value of all maps. Values beyond get the end colours, and the bar says so.
    title : str or None
        Title of the figure.
    colorbar_label : str or None
        What the values are, with their unit.
    dark : bool
        Light on a dark ground, for slides.

    Returns
    -------
    Figure
        Save it with `figure.savefig(path)`; the drawings have 4 pixels per mm, enough
        for 300 dpi on a whole page.

    Raises
    ------
    RegionNameError
        If a name is unknown, or a region has two values.
    ParameterError
        If there is nothing to draw, or a value, a view or a limit cannot be used.

    Examples
    --------
    >>> figure = plot_regions(
    ...     {"lh_G_precuneus": 0.04, "(L) Sub.put": 0.06},
    ...     views=["inner left", "subcortical"],
    ...     colorbar_label="heat scale",
    ... )
    >>> [ax.get_label() for ax in figure.axes]
    ['inner left', 'subcortical', 'colour bar', 'no value']
    """
    atlas = _atlas(atlas) if isinstance(atlas, str | Path) else atlas
    if mesh not in MESHES:
        raise ParameterError(f"mesh must be one of {', '.join(MESHES)}, got {mesh!r}.")
    maps = _as_maps(values, atlas)
    columns = check_views(views, atlas)
    pictures = [region_picture(atlas, view, mesh) for view in columns]
    colours = _colours(np.stack(list(maps.values())), cmap, limits)
    theme = DARK if dark else LIGHT
    sheet = Sheet(columns, pictures, list(maps), theme, title, colorbar_label)
    for row, of_regions in enumerate(maps.values()):
        palette = _palette(of_regions, colours.scale, theme)
        for column, picture in enumerate(pictures):
            kind = "subcortex" if VIEWS[columns[column]].subcortex else mesh
            shade = _SHADE.get(kind, _FOLDED)
            sheet.add_drawing(row, column, _paint(picture, palette, theme, shade))
    any_grey = bool(np.isnan(np.stack(list(maps.values()))).any())
    sheet.add_colour_bar(colours.scale, colours.extend, any_grey)
    return sheet.figure


@lru_cache(maxsize=8)  # so that pictures, which are kept per atlas, are kept
def _atlas(name: str | Path) -> Atlas:
    return load_atlas(name)


def _as_maps(values: Any, atlas: Atlas) -> dict[str, np.ndarray]:
    """Return each map as an array in atlas order, NaN where there is no value."""
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


def _colours(
    values: np.ndarray, cmap: Any, limits: tuple[float, float] | None
) -> _Colours:
    """Return the one scale of colours of all maps."""
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
    return _Colours(scale, ends.get((lowest < low, highest > high), "neither"))


def _palette(values: np.ndarray, scale: "ScalarMappable", theme: Theme) -> np.ndarray:
    """Return the colour of each region as bytes; the last two are for no region."""
    from matplotlib.colors import to_rgb

    rgb = np.zeros((len(values) + 2, 3), dtype=np.uint8)
    rgb[: len(values)] = scale.to_rgba(np.nan_to_num(values), bytes=True)[:, :3]
    rgb[: len(values)][np.isnan(values)] = _bytes(to_rgb(theme.no_value))
    rgb[NO_REGION] = _bytes(to_rgb(theme.no_region))
    rgb[NOTHING] = _bytes(to_rgb(theme.silhouette))
    return rgb


def _bytes(rgb: Sequence[float]) -> np.ndarray:
    return np.round(np.asarray(rgb) * 255).astype(np.uint8)


def _paint(
    picture: RegionPicture, palette: np.ndarray, theme: Theme, shade: float
) -> np.ndarray:
    """Return the picture as RGBA bytes, with outlines."""
    from matplotlib.colors import to_rgb

    region = picture.region
    image = np.empty((*region.shape, 4), dtype=np.uint8)
    image[..., :3] = palette[region]
    image[..., 3] = np.where(region == NOTHING, 0, 255)
    if shade:
        light = 1 - shade * (1 - picture.facing) ** 2
        image[..., :3] = np.round(image[..., :3] * light[..., None])
    border = _edges(region)
    image[border, :3] = _bytes(to_rgb(theme.outline))
    rim = _edges(region == NOTHING)
    image[rim] = [*_bytes(to_rgb(theme.silhouette)), 255]
    return image


def _edges(kind: np.ndarray) -> np.ndarray:
    """Return the pixels that touch one of another kind, to the side or up or down."""
    edge = np.zeros(kind.shape, dtype=bool)
    across, down = kind[:, 1:] != kind[:, :-1], kind[1:] != kind[:-1]
    edge[:, 1:] |= across
    edge[:, :-1] |= across
    edge[1:] |= down
    edge[:-1] |= down
    return edge
