"""One value per region drawn on cortex and subcortex, by region name."""

import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PathCollection
from matplotlib.colors import Colormap, ListedColormap, Normalize, to_rgba
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path as Shape
from matplotlib.patheffects import Normal, Stroke, withStroke
from matplotlib.pyplot import get_cmap
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Affine2D, Transform

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.evaluation import Evaluation
from brainlsap.exceptions import ParameterError, check_choice
from brainlsap.report import brain_raster as raster
from brainlsap.report import figures
from brainlsap.report.brain_layout import (
    LABEL_HEIGHT,
    MAP_NAME_HEIGHT,
    MIN_VIEW_HEIGHT,
    Box,
    FigureLayout,
    PlacedBar,
    PlacedView,
    is_short_label,
    layout_figure,
    wrap_text,
)
from brainlsap.report.brain_raster import VIEWS, RegionPicture
from brainlsap.report.figures import LETTER, MM, PAGE, check_width, new_figure, styled
from brainlsap.report.plots import QUARTERS, label_rows, scales_in_training
from brainlsap.report.tables import shorten_name
from brainlsap.text import listed

RegionValues: TypeAlias = Mapping | pd.Series | pd.DataFrame
"""A value for every region by name, or several maps of such values by title."""

NO_VALUE = "#b4b4b4"  # regions without a value
NO_REGION = "#ededed"  # brain that belongs to no region
LINE = "#2b2b2b"
MAX_DOTS = 40
MARKER_VIEW_SCALE = 1.4  # minimum height of views with markers, relative to surfaces

# Drawn around a shape, which keeps all of its colour: dark around white, so that one of
# the two stands out from any colour beside it.
OUTLINE = [Stroke(linewidth=3), Stroke(linewidth=1.3, foreground="white"), Normal()]
HALO = [withStroke(linewidth=1.6, foreground="white")]

# Views of markers on nilearn's glass brain: its name there, and the range in mm that it
# shows across and up.
GLASS_VIEWS: dict[str, tuple[str, tuple[float, float], tuple[float, float]]] = {
    "dorsal": ("z", (-75, 77), (-112, 80)),
    "posterior": ("y", (-77, 77), (-77, 88)),
    "lateral left": ("l", (82, -113), (-76, 87)),
    "lateral right": ("r", (-113, 82), (-76, 87)),
}


def plot_regions(
    values: RegionValues,
    atlas: Any = "destrieux160",
    *,
    title: str | None = None,
    cmap: str | Colormap | Sequence[str | Colormap | None] | None = None,
    vmin: float | Sequence[float | None] | None = None,
    vmax: float | Sequence[float | None] | None = None,
    shared_scale: bool = True,
    views: str | Sequence[str] = "all",
    colorbar_label: str | Sequence[str] | None = None,
    outline: str | Sequence[str] | Mapping[str, str] = (),
    width: float = PAGE,
    figure: Figure | SubFigure | None = None,
) -> Figure | SubFigure:
    r"""Draw one value per region on cortex and subcortex: the seven-view figure.

    Colours on the inflated cortex (fsaverage5) are flat, so each is exactly a colour of
    the colour bar. The subcortex is lit from the viewer; there, surfaces that face the
    viewer have the colour of the bar. A view assigns parts of a region that appear less
    than 1 mm wide to its neighbour.

    An atlas without surfaces is drawn as markers at the coordinates of its regions.
    Markers that stand out, by the distance of their value from the median (or from 0 if
    signs differ), lie above the others. An atlas with neither surfaces nor coordinates
    is drawn as dots, one line per region. For an atlas with an image,
    :func:`export_maps` writes a map that nilearn's `plot_stat_map` draws.

    Parameters
    ----------
    values : Series or mapping of str to float; or DataFrame or mapping of str to these
        One value per region *by name*, in any spelling that the atlas matches; or
        several maps by title (columns of a DataFrame), drawn one per row with a common
        colour scale. Regions without a value, or with NaN, are grey.
    atlas : str, Path or Atlas
        Argument of :func:`brainlsap.atlas.load_atlas`.
    title : str, optional
        Title of the figure. In the title and in `colorbar_label`, `$t_{38}$` is
        mathematics and `\$` a dollar sign; in region names dollar signs are literal.
    cmap : str or Colormap, or sequence of these, optional
        Colours from low to high; by default "viridis", and "RdBu_r" for values of both
        signs. A colour map of at most 20 colours (for example "tab10") gives each whole
        number its own colour. For values of both signs, the middle of a diverging
        colour map (lighter or darker there than at both ends) is at 0. The map may be
        your own; nilearn's are known by name after `import nilearn.plotting`.
    vmin, vmax : float or sequence of float, optional
        Values of the first and last colour; by default the smallest and largest value
        of all maps, and symmetric about 0 for diverging colours. There, a
        single limit is mirrored, and two limits are used as given. Values beyond have
        the end colours, and the colour bar shows this.
    shared_scale : bool
        If False, each of several maps has its own colours and colour bar; `cmap`,
        `vmin`, `vmax` and `colorbar_label` may then be lists with one item per map.
    views : "all", str or sequence of str
        Columns: "dorsal", "ventral", "lateral left", "lateral right", "medial left",
        "medial right" and "subcortex"; "lateral" and "medial" are both sides, "cortex"
        is all but the last. Markers have the views "dorsal", "posterior", "lateral
        left" and "lateral right". Views that would be too small for their titles wrap
        to several lines. "all" leaves out the cortex or the subcortex if none of its
        regions has a value, and the note states this.
    colorbar_label : str or sequence of str, optional
        Quantity and unit of the values.
    outline : str, sequence of str, or mapping of str to str
        Regions to mark with a thick outline, or with a ring around the marker (not for
        dots). A mapping also gives each a label, drawn above or below a view.
    width : float
        Width of a new figure in mm, from 60 to 400: for example 85 (one column of a
        journal) or 180 (two). The size of the text does not change. Rows are at most
        140 mm tall, so few views in a wide figure leave white margins.
    figure : Figure or SubFigure, optional
        An empty figure to draw in; its size replaces `width`, and views wrap to the
        number of lines that makes them largest. To draw beside other axes, use one of
        `fig.subfigures(1, 2)`. You then set the size and the options for saving
        yourself: `plt.rcParams["pdf.fonttype"] = 42`,
        `plt.rcParams["svg.fonttype"] = "none"`, `savefig(dpi=300)`.

    Returns
    -------
    Figure
        A pyplot figure. It is saved at 300 dpi with text as text (PDF: TrueType, at
        least 6 points, sub- and superscripts 4.9). In SVG, every region or marker has
        an id: map, view and region name, without signs other than `_`, `-` and `.`. The
        attribute `note` is a remark for the caption: what replaces surfaces, and which
        values or outlines were not drawn. A warning also reports missing outlines and
        regions without coordinates. An atlas of names alone shows dots for the 40
        regions that stand out most. Saving with `bbox_inches="tight"` would change the
        width.

    Raises
    ------
    RegionNameError
        If a name is unknown, or a region has two values.
    ParameterError
        If there is nothing to draw, or a value, view, limit or width cannot be used.
    """
    max_width, max_height = _available_size(width, figure)
    atlas = load_atlas(atlas)
    maps = region_maps(values, atlas)
    color_scales, bar_labels = _color_scales(
        maps, shared_scale, cmap, vmin, vmax, colorbar_label or ""
    )
    outline_labels = _outline_labels(outline, atlas)
    has_value = maps.notna().any(axis=1).to_numpy()
    is_located = np.isfinite(atlas.coordinates).all(axis=1)
    title = wrap_text(title or "", (max_width - 4) * 7 / 9)
    pictures: dict[str, RegionPicture] = {}
    # Axes of dots have no room for more: small numbers as 2.5, and "1e-4" below.
    with styled(**{"axes.formatter.limits": (-2, 4)}):
        if atlas.has_surfaces or is_located.any():
            if atlas.has_surfaces:
                available, is_located, note = _surface_views(atlas, maps, views)
                for view in _choose_views(views, available):
                    pictures[view] = raster.region_picture(atlas, view)
                min_view_height = MIN_VIEW_HEIGHT
            else:
                note = (
                    f"Atlas {atlas.name} has no surfaces: markers at regions' centres."
                )
                for view in _choose_views(views, list(GLASS_VIEWS)):
                    pictures[view] = _glass_picture(atlas, view)
                min_view_height = MARKER_VIEW_SCALE * MIN_VIEW_HEIGHT
            layout = layout_figure(
                pictures,
                list(maps.columns),
                bar_labels,
                _tick_texts(color_scales),
                _has_no_value(maps, pictures, len(color_scales)),
                outline_labels,
                title=title,
                width=max_width,
                max_height=max_height,
                min_view_height=min_view_height,
                fills_height=figure is not None,
            )
            figure = figure or new_figure(layout.width, layout.height)
            _draw_layout(
                figure, layout, atlas, maps, color_scales, pictures, outline_labels
            )
        else:
            figure, note = _plot_dots(
                maps, color_scales, title, bar_labels, max_width, figure
            )
            note = (
                f"Atlas {atlas.name} has neither surfaces nor coordinates: dots. {note}"
            )
            is_located = ~is_located
    drawing: Any = figure
    drawing.note = _describe_undrawn(
        atlas, note.strip(), pictures, has_value, is_located, outline_labels
    )
    return drawing


def _available_size(width: float, figure: object) -> tuple[float, float]:
    """Return the width and the largest height of the drawing, in mm."""
    check_width(width)
    if figure is None:
        return width, figures.TALLEST
    if not isinstance(figure, Figure | SubFigure) or figure.axes:
        raise ParameterError(
            "figure must be a Figure without axes, beside axes one of "
            "fig.subfigures(1, 2); brains would cover its axes."
        )
    root: Any = figure.get_figure(root=True)
    width, height = np.array(figure.bbox.size) / root.dpi / MM
    return width, height


def _color_scales(
    maps: pd.DataFrame, is_shared: bool, cmap: Any, vmin: Any, vmax: Any, label: Any
) -> tuple[list[ScalarMappable], list[str]]:
    """Return the colours and the label of every colour bar: of all maps, or of each."""
    parts = [maps] if is_shared else [maps[[name]] for name in maps]
    n_bars = len(parts)
    scales = [
        color_scale(bar_maps, *limits)
        for bar_maps, *limits in zip(
            parts,
            _one_per_bar("cmap", cmap, n_bars),
            _one_per_bar("vmin", vmin, n_bars),
            _one_per_bar("vmax", vmax, n_bars),
            strict=True,
        )
    ]
    return scales, _one_per_bar("colorbar_label", label, n_bars)


def _one_per_bar(name: str, value: Any, n_bars: int) -> list[Any]:
    """Return a value for every colour bar; a single value holds for all."""
    is_single = isinstance(value, str) or not np.iterable(value)
    values = [value] * n_bars if is_single else [*value]
    if len(values) != n_bars:
        raise ParameterError(
            f"{name}: there are {len(values)} for {n_bars} colour bars "
            "(shared_scale=False: one a map)."
        )
    return values


def _outline_labels(
    outline: str | Sequence[str] | Mapping[str, str], atlas: Atlas
) -> dict[int, str]:
    """Return the labels of the regions to outline, by position; "" for none."""
    if isinstance(outline, str):
        outline = [outline]
    if not isinstance(outline, Mapping):
        outline = dict.fromkeys(outline, "")
    positions = atlas.match(list(outline)).tolist()
    return dict(zip(positions, map(str, outline.values()), strict=True))


def _describe_undrawn(
    atlas: Atlas,
    note: str,
    pictures: Mapping[str, RegionPicture],
    has_value: np.ndarray,
    is_located: np.ndarray,
    outline_labels: Mapping[int, str],
) -> str:
    """Return the figure's note with what was not drawn; warn of regions not drawn.

    Raises ParameterError where no region with a value can be drawn.
    """
    notes = [note] if note else []
    visible = {region for picture in pictures.values() for region in picture.centres}
    n_hidden = len(set(np.flatnonzero(has_value & is_located)) - visible)
    if pictures and n_hidden:
        notes.append(
            f"{n_hidden} of {has_value.sum()} regions with a value are in no view that "
            "is drawn; colours are those of all."
        )
    regions_without_place = np.flatnonzero(has_value & ~is_located).tolist()
    if len(regions_without_place) == has_value.sum() > 0:
        names = listed((atlas.full_names[k] for k in regions_without_place), 5)
        raise ParameterError(f"atlas {atlas.name} does not say where {names} lie.")
    undrawn = {
        f"drawn, as atlas {atlas.name} does not say where": regions_without_place,
        "outlined, as seen in no view that is drawn": sorted(
            {*outline_labels} - visible
        ),
    }
    for reason, regions in undrawn.items():
        if regions:
            names = ", ".join(atlas.full_names[k] for k in regions)
            notes.append(f"Not {reason}: {names}.")
            warnings.warn(notes[-1], UserWarning, stacklevel=3)
    return " ".join(notes)


def _surface_views(
    atlas: Atlas, maps: pd.DataFrame, views: str | Sequence[str]
) -> tuple[list[str], np.ndarray, str]:
    """Return the views that there are, whether they show each region, and a note.

    Of all views, those of the cortex or the subcortex are left out if no region there
    has a value.
    """
    cortex = np.concatenate([atlas.vertex_labels(side) for side in "LR"])
    subcortex = atlas.match(list(atlas.meshes()))
    regions = np.arange(len(atlas))
    is_in = {
        "cortex": np.isin(regions, cortex),
        "subcortex": np.isin(regions, subcortex),
    }
    parts = [name for name in is_in if is_in[name].any()]
    has_value = [name for name in parts if maps[is_in[name]].notna().any(axis=None)]
    drawn_parts = has_value if has_value and views == "all" else parts
    note = "".join(
        f"No region of the {name} has a value: it is not drawn."
        for name in parts
        if name not in drawn_parts
    )
    available = [
        view
        for view in VIEWS
        if ("subcortex" if view == "subcortex" else "cortex") in drawn_parts
    ]
    return available, is_in["cortex"] | is_in["subcortex"], note


def _choose_views(views: str | Sequence[str], available: list[str]) -> list[str]:
    """Return the full names of the views that a user names."""
    names = [*available, *(view.split()[0] for view in available)]
    groups = {name: [v for v in available if v.startswith(name)] for name in names}
    groups["all"] = available
    groups["cortex"] = [view for view in available if view != "subcortex"]
    names = [views] if isinstance(views, str) else [*views]
    if not names:
        check_choice("views", views, [*groups])
    for name in names:
        check_choice("views", name, [*groups])
    return [view for name in names for view in groups[name]]


def plot_scales_at_quarters(
    evaluation: Evaluation,
    model: str | None = None,
    atlas: str | Path | Atlas | None = None,
    **options: Any,
) -> Figure | SubFigure:
    """Draw a model's heat scales at the start, the quarters and the end of training.

    Folds may begin at different scales, so what is drawn is relative, as in
    :func:`brainlsap.evaluation.rank_regions`: each scale over the median of its fold at
    that share of the training, mean over folds. The value of the median region is 1.

    Parameters
    ----------
    evaluation : Evaluation
        With scales at several shares of training.
    model : str, optional
        By default the first that has such scales.
    atlas : str, Path or Atlas, optional
        By default that of the evaluation's cohort.
    **options
        As for :func:`plot_regions`.

    Returns
    -------
    Figure
        One row a share of training, on one scale of colours.

    Raises
    ------
    ParameterError
        If the model is unknown or has no scales during training.
    """
    models = list(evaluation.scales.query("share < 1")["model"].unique())
    model = model or next(iter(models), "none")
    check_choice("model with scales during training", model, models)
    maps = scales_in_training(evaluation, model).rename(columns=QUARTERS)
    options = {"colorbar_label": "relative heat scale", **options}
    return plot_regions(maps, atlas or evaluation.cohort, **options)


def region_maps(values: RegionValues, atlas: Atlas) -> pd.DataFrame:
    """Return a row a region and a column a map ("" for a single one); NaN if absent."""
    is_numbered = isinstance(getattr(values, "index", None), pd.RangeIndex)
    if is_numbered or not isinstance(values, Mapping | pd.Series | pd.DataFrame):
        raise ParameterError(
            "values must give each value by the region's name: a mapping, Series or "
            f"DataFrame with names as index (set_index('region')); got {type(values)}."
        )
    parts = dict(values.items())
    is_single = not all(isinstance(x, Mapping | pd.Series) for x in parts.values())
    if not parts or is_single:
        parts = {"": values}
    maps = pd.DataFrame(index=list(atlas.names))
    for title, map_values in parts.items():
        # Match before anything becomes a dict: an index may hold a name twice.
        regions = atlas.match(list(map_values.keys()))
        column = np.full(len(atlas), np.nan)
        try:
            column[regions] = list(dict(map_values).values())
        except (TypeError, ValueError) as error:
            map_title = f"values {title}".rstrip()
            raise ParameterError(f"{map_title} must be numbers ({error}).") from error
        maps[str(title)] = column
    for title in maps.columns[np.isinf(maps).any() | maps.isna().all()]:
        names = maps.index[np.isinf(maps[title])].tolist()[:5] or "every region"
        map_title = title or "the map"
        raise ParameterError(
            f"values of {map_title}: no value, or an infinite one, in {names}."
        )
    return maps


def color_scale(maps: pd.DataFrame, cmap: Any, vmin: Any, vmax: Any) -> ScalarMappable:
    """Return the colours of all maps; their bar says where values are beyond it."""
    lowest, highest = float(maps.min(axis=None)), float(maps.max(axis=None))
    is_constant = highest - lowest <= 1e-12 * abs(lowest)
    margin = 0.5 * (abs(lowest) or 1.0) if is_constant else 0.0
    low = lowest - margin if vmin is None else float(vmin)
    high = highest + margin if vmax is None else float(vmax)
    if not (np.isfinite([low, high]).all() and low < high):
        raise ParameterError(f"vmin must be less than vmax, got {low:g} and {high:g}.")
    colors: Any = get_cmap(cmap or ("RdBu_r" if low < 0 < high else "viridis"))
    n_integers = highest - lowest + 1
    is_qualitative = (
        vmin is vmax is None
        and n_integers <= colors.N <= 20
        and (maps.stack().dropna() % 1 == 0).all()
    )
    if is_qualitative:  # clusters and the like: a colour for every whole number
        colors = ListedColormap(colors(range(int(n_integers))))
        colors = colors.with_extremes(bad=NO_VALUE)
        return ScalarMappable(Normalize(lowest - 0.5, highest + 0.5), colors)
    start, middle, end = colors([0.0, 0.5, 1.0])[:, :3] @ (0.299, 0.587, 0.114)
    # the middle is lighter than both ends, or darker
    is_diverging = (middle - start) * (middle - end) > 0.01
    if is_diverging and low < 0 < high and None in (vmin, vmax):
        limits = [abs(limit) for limit in (vmin, vmax) if limit is not None]
        high = float(max(limits or [-low, high]))
        low = -high
    if is_diverging and min(low, lowest) < 0 < max(high, highest):  # the middle is at 0
        shares = 0.5 + np.linspace(low, high, 256) / (2 * max(abs(low), abs(high)))
        colors = ListedColormap(colors(shares), colors.name)
    colors = colors.with_extremes(bad=NO_VALUE)
    extensions = [["neither", "max"], ["min", "both"]]
    colors.colorbar_extend = extensions[lowest < low][highest > high]
    return ScalarMappable(Normalize(low, high, clip=True), colors)


def region_colors(values: np.ndarray, scale: ScalarMappable) -> np.ndarray:
    """Return RGBA of every region (n_rois + 1, 4); the last, -1, is of no region."""
    return np.vstack([scale.to_rgba(values), to_rgba(NO_REGION)])


def _has_no_value(
    maps: pd.DataFrame, pictures: Mapping[str, RegionPicture], n_bars: int
) -> np.ndarray:
    """Return for every colour bar whether its maps show a region without a value."""
    visible = sorted({k for picture in pictures.values() for k in picture.centres})
    is_missing = maps.iloc[visible].isna().any().to_numpy()
    return is_missing.reshape(-1, n_bars).any(axis=0)


def _draw_layout(
    figure: Figure | SubFigure,
    layout: FigureLayout,
    atlas: Atlas,
    maps: pd.DataFrame,
    color_scales: Sequence[ScalarMappable],
    pictures: Mapping[str, RegionPicture],
    outline_labels: Mapping[int, str],
) -> None:
    """Draw views, names, colour bars and the title at their places."""
    for view in layout.views:
        axes = _add_axes(figure, layout, view.box, view.name)
        axes.set_axis_off()
        map_name = maps.columns[view.map_index]
        _draw_view(
            atlas,
            axes,
            pictures[view.name],
            f"{map_name}.{view.name}".strip("."),
            maps[map_name],
            color_scales[view.map_index % len(color_scales)],
            outline_labels.keys(),
        )
        for letter, (x, alignment) in zip(
            view.side_letters, ((0, "left"), (1, "right")), strict=False
        ):
            axes.text(x, 0, letter, ha=alignment, va="top", transform=axes.transAxes)
        _write_labels(axes, view, layout)
        if view.title_pad is not None:
            axes.set_title(view.name.capitalize(), pad=view.title_pad, fontsize=7)
    for name in layout.map_names:
        centre = name.x / layout.width, name.y / layout.height
        style: Any = {"rotation": 90, "ha": "center", "va": "center", "fontsize": 8}
        figure.text(*centre, name.text, **style)
    for scale, bar in zip(color_scales, layout.bars, strict=True):
        _draw_color_bar(_add_axes(figure, layout, bar.box, "colour bar"), scale, bar)
    style = {"fontsize": 9, "ha": "center", "va": "top", "parse_math": True}
    figure.text(0.5, layout.title.y / layout.height, layout.title.text, **style)


def _add_axes(
    figure: Figure | SubFigure, layout: FigureLayout, box: Box, label: str
) -> Axes:
    """Return new axes at a place in mm."""
    size = np.array([layout.width, layout.height] * 2)
    return figure.add_axes(np.array(box) / size, label=label)


def _tick_texts(color_scales: Sequence[ScalarMappable]) -> list[str]:
    """Return the numbers at the ticks of all colour bars."""
    texts = list[str]()
    for ticks, number_format in map(_ticks, color_scales):
        texts += [number_format.format(x=tick) for tick in ticks]
    return texts


def _ticks(scale: ScalarMappable) -> tuple[Sequence[float], str]:
    """Return where a bar has ticks, and their format: plain, with as many decimals.

    Very small and very large numbers are written as 1e-06.
    """
    low, high = scale.get_clim()
    if high - low == scale.cmap.N:  # a colour for each whole number
        return [*np.arange(low + 0.5, high)], "{x:.0f}"
    locator = MaxNLocator(4, steps=[1, 2, 2.5, 5, 10])
    ticks = locator.tick_values(low, high)
    if not 1e-4 <= np.abs(ticks).max() < 1e6:
        return ticks, "{x:.3g}"
    step = np.format_float_positional(
        ticks[1] - ticks[0], 6, fractional=False, trim="-"
    )
    n_decimals = len(step.partition(".")[2])
    return ticks, f"{{x:z.{n_decimals}f}}"


def _draw_color_bar(axes: Axes, scale: ScalarMappable, bar: PlacedBar) -> None:
    """Draw a colour bar, and below it the colour of regions without a value."""
    ticks, number_format = _ticks(scale)
    axes.figure.colorbar(
        scale, cax=axes, ticks=ticks, format=number_format, label=bar.label
    )
    axes.yaxis.label.set_parse_math(True)
    if is_short_label(bar.label):  # upright: a turned "t" looks like a plus
        axes.yaxis.label.set(rotation=0, ha="left", va="center")
    if bar.has_no_value:
        height = bar.box.height
        patch: Any = {"facecolor": NO_VALUE, "edgecolor": LINE, "linewidth": 0.5}
        placement: Any = {"transform": axes.transAxes, "clip_on": False}
        axes.add_artist(
            Rectangle((0, -5 / height), 1, 2.3 / height, **patch, **placement)
        )
        axes.text(1.5, -3.9 / height, "no value", va="center", **placement)


def _draw_view(
    atlas: Atlas,
    axes: Any,
    picture: RegionPicture,
    gid: str,
    values: pd.Series,
    scale: ScalarMappable,
    outlined_regions: Collection[int],
) -> None:
    """Draw the regions of one view; ids in SVG begin with `gid`."""
    colors = region_colors(values, scale)
    names, view, shapes = (*atlas.names, "brain"), axes.get_label(), picture.shapes
    in_view = Affine2D().scale(1 / picture.width, 1 / picture.height) + axes.transAxes
    order = [*shapes]
    if raster.NO_REGION not in shapes:  # markers on a glass brain
        glass_name, x_range, y_range = GLASS_VIEWS[view]
        lines, edge_colors = _glass_lines(glass_name)
        style: Any = {
            "edgecolors": edge_colors,
            "facecolors": "none",
            "linewidths": 0.5,
        }
        axes.add_collection(PathCollection(lines, **style), autolim=False)
        axes.set(xlim=x_range, ylim=y_range)
        # Draw markers that stand out above the others.
        centre = 0 if values.min() < 0 < values.max() else values.median()
        order.sort(key=(values - centre).abs().fillna(-1).to_numpy().__getitem__)
    for region in order:  # -1: all of the brain, below its regions
        # lines at the edge of a view are not clipped
        style = {"facecolor": colors[region], "edgecolor": LINE, "clip_on": False}
        # no "$", "(" or "²", which ids of XML and CSS cannot hold
        id_words = re.sub(r"[^\w\s.-]|[²³]", "", f"{gid}.{names[region]}").split()
        style |= {"linewidth": 0.25, "transform": in_view, "gid": "-".join(id_words)}
        if region in outlined_regions:  # above other regions, below the shade
            style |= {"zorder": 1.5, "path_effects": OUTLINE}
        axes.add_artist(PathPatch(shapes[region], **style))
    if picture.shade is not None:
        axes.imshow(picture.shade, extent=(0, 1, 0, 1), zorder=2, aspect="auto")
    if view == "subcortex":
        _name_subcortex_lines(axes)


def _name_subcortex_lines(axes: Axes) -> None:
    """Write lateral and medial beside the two lines of drawings if there is room."""
    height = axes.bbox.height / axes.figure.dpi / MM
    titles: tuple[str, ...] = ()
    if height > 17:
        titles = ("lateral", "medial")
    elif height > 9:
        titles = ("lat.", "med.")
    style: Any = {"ha": "right", "va": "center", "rotation": 90, "fontsize": 6}
    for k, title in enumerate(titles):
        axes.text(-0.01, 0.75 - k / 2, title, **style)


@lru_cache
def _glass_lines(glass_name: str) -> tuple[list[Shape], list[Any]]:
    """Return the lines of nilearn's glass brain, in mm, and their colours."""
    from nilearn.plotting.displays import GlassBrainAxes

    axes = Figure().add_subplot()
    GlassBrainAxes(axes, glass_name, 0)
    lines, edge_colors = list[Shape](), list[Any]()
    for patch in axes.patches:
        to_mm = patch.get_transform() - axes.transData
        lines.append(to_mm.transform_path(patch.get_path()))
        edge_colors.append(patch.get_edgecolor())
    return lines, edge_colors


def _glass_picture(atlas: Atlas, view: str) -> RegionPicture:
    """Return which markers a view of the glass brain shows."""
    coordinates = atlas.coordinates
    glass_name, x_range, y_range = GLASS_VIEWS[view]
    x, y, z = coordinates.T
    axes = {"z": (x, y, z), "y": (x, z, -y), "l": (y, z, -x), "r": (y, z, x)}
    rightwards, upwards, towards_viewer = axes[glass_name]
    is_visible = np.isfinite(coordinates).all(axis=1)
    if glass_name in "lr":
        is_visible &= towards_viewer >= 0
    regions = np.flatnonzero(is_visible).tolist()
    centres = {
        k: (abs(rightwards[k] - x_range[0]), upwards[k] - y_range[0]) for k in regions
    }
    shapes = {
        k: Shape.circle(x_y, 0.0275 * np.ptp(y_range)) for k, x_y in centres.items()
    }
    areas = dict.fromkeys(regions, 1 / max(1, len(regions)))  # few markers: more room
    return RegionPicture(
        np.ptp(x_range), np.ptp(y_range), shapes, areas, centres, shade=None
    )


def _write_labels(axes: Axes, view: PlacedView, layout: FigureLayout) -> None:
    """Write the labels of regions above and below a view, with lines to the regions."""
    for label in view.labels:
        edge = view.upper_edge if label.is_above else view.lower_edge
        direction = 1 if label.is_above else -1
        elbow = label.line_x / layout.width, edge / layout.height
        y = (edge + direction * LABEL_HEIGHT * label.level) / layout.height
        line_start = (label.line_x - label.left_x) / label.width, 0.5 - direction / 2
        axes.annotate(
            label.text,
            (label.region_x, label.region_y),
            (label.left_x / layout.width, y),
            xycoords="axes fraction",
            textcoords="subfigure fraction",
            va="bottom" if label.is_above else "top",
            bbox={"fc": "white", "ec": "none", "pad": 0.5},
            arrowprops={
                "arrowstyle": "-",
                "linewidth": 0.6,
                "path_effects": HALO,
                "relpos": line_start,
                "connectionstyle": partial(
                    _bent_line, axes.figure.transSubfigure, elbow
                ),
            },
        )


def _bent_line(
    transform: Transform, elbow: tuple[float, float], start: Any, end: Any, **_: Any
) -> Shape:
    """Return a line from a label straight to its elbow, and on to a region."""
    return Shape([start, transform.transform(elbow), end])


def _plot_dots(
    maps: pd.DataFrame,
    color_scales: Sequence[ScalarMappable],
    title: str,
    bar_labels: Sequence[str],
    width: float,
    figure: Any,
) -> tuple[Any, str]:
    """Draw a dot for each region that stands out in a map; say how many do not."""
    table = maps.dropna(how="all")
    is_signed = (table.min() < 0) & (table.max() > 0)
    deviations = (table - table.median().mask(is_signed, 0)).abs()
    ranks = deviations.rank(ascending=False).min(axis=1)
    regions = ranks.sort_values(kind="stable").index[:MAX_DOTS]
    n_omitted, note = len(ranks) - len(regions), ""
    if n_omitted:
        note = f"{n_omitted} of {len(ranks)} regions stand out least and are left out."
    table = maps.loc[regions].sort_values([*maps])
    max_letters = max(30, int(0.4 * width / LETTER))
    names = [shorten_name(name, max_letters) for name in table.index]
    figure = figure or new_figure(width, 22 + 3.6 * len(names), layout="constrained")
    panels = figure.subplots(
        1, table.shape[1], sharex=len(color_scales) == 1, sharey=True, squeeze=False
    )[0]
    for k, (axes, (name, values)) in enumerate(zip(panels, table.items(), strict=True)):
        colors = color_scales[k % len(color_scales)].to_rgba(values.to_numpy())
        rows = range(len(names))
        axes.scatter(values, rows, 20, colors, edgecolors=LINE, lw=0.4, zorder=3)
        label_rows(axes, names)
        axes.set_title(wrap_text(name, MAP_NAME_HEIGHT))
        if values.min() < 0 < values.max():
            axes.axvline(0, color=LINE, linewidth=0.5)
        axes.set_xlabel(bar_labels[k] if len(bar_labels) > 1 else "", parse_math=True)
    figure.suptitle(title, fontsize=9, parse_math=True)
    footer = [bar_labels[0] if len(bar_labels) == 1 else "", wrap_text(note, width - 4)]
    figure.supxlabel("\n".join(filter(None, footer)), fontsize=7, parse_math=True)
    return figure, note
