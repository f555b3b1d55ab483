"""Draw one value per region on cortex and subcortex, from values by name."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from brainlsap._arrays import check_choice
from brainlsap.data.atlas import Atlas
from brainlsap.report.engines import ENGINES
from brainlsap.report.surface_plan import Plan
from brainlsap.report.surface_sheet import DARK, LIGHT
from brainlsap.report.surface_values import as_atlas, as_maps, shared_colours
from brainlsap.report.surface_views import MESHES, check_views


def plot_regions(
    values: Any,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    views: str | Sequence[str] = "paper",
    mesh: str = "inflated",
    engine: str = "matplotlib",
    cmap: Any = "viridis",
    limits: tuple[float, float] | None = None,
    labels: int | Sequence[str] = 0,
    top: str = "smallest",
    title: str | None = None,
    colorbar_label: str | None = None,
    vector: bool = False,
    dark: bool = False,
) -> Any:
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
    engine : {"matplotlib", "pyvista", "plotly"}
        "matplotlib" needs nothing else. "pyvista" lights every surface. "plotly"
        gives a brain to turn, with a menu of maps and one of views. The last two come
        with `pip install brainlsap[surfaces]`.
    cmap : str or Colormap
        Colours, low to high; a map that colour-blind readers can read.
    limits : tuple of (float, float) or None
        Values of the first and last colour; by default the smallest and largest
        value of all maps. Values beyond get the end colours, and the bar says so.
    labels : int or sequence of str
        How many regions of each map to number and name beneath its row, or which.
    top : {"smallest", "largest"}
        Which values `labels` counts from: of heat scales the smallest matter most.
    title : str or None
        Title of the figure.
    colorbar_label : str or None
        What the values are, with their unit.
    vector : bool
        Draw regions as outlines, sharp at any size and separate objects in an SVG or
        PDF; by default as pixels. Of the engine "matplotlib" only.
    dark : bool
        Light on a dark ground, for slides.

    Returns
    -------
    matplotlib.figure.Figure or plotly.graph_objects.Figure
        Plotly's of the engine "plotly", matplotlib's of the others. Save the latter
        with `figure.savefig(path)`; the drawings have 4 pixels per mm of brain, more
        than 300 dpi on a whole page.

    Raises
    ------
    RegionNameError
        If a name is unknown, or a region has two values.
    ParameterError
        If there is nothing to draw, or a value, a view or a limit cannot be used.
    ImportError
        If the engine is not installed.

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
    atlas = as_atlas(atlas)
    check_choice("mesh", mesh, MESHES)
    check_choice("engine", engine, ENGINES)
    maps = as_maps(values, atlas)
    plan = Plan(
        atlas=atlas,
        maps=maps,
        columns=check_views(views, atlas),
        mesh=mesh,
        colours=shared_colours(np.stack(list(maps.values())), cmap, limits),
        theme=DARK if dark else LIGHT,
        title=title,
        label=colorbar_label,
        labels=labels,
        top=top,
        vector=vector,
    )
    return ENGINES[engine](plan)
