"""One value per region drawn on cortex and subcortex, by region name."""

import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, Normalize, to_rgba
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.pyplot import get_cmap
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.evaluation import Evaluation
from brainlsap.exceptions import BrainlsapError, ParameterError, check_choice
from brainlsap.report import brain_raster as raster
from brainlsap.report.brain_raster import VIEWS, RegionPicture
from brainlsap.report.figures import MM, PAGE, new_figure, styled
from brainlsap.report.plots import QUARTERS, scales_in_training

NO_VALUE, NO_REGION, LINE = "#b4b4b4", "#ededed", "#2b2b2b"
SIDEWAYS = ("lateral", "medial", "posterior")
NARROWEST, WIDEST = 60, 400
MOST_DOTS = 40
SMALLEST, TALLEST, TALLEST_BAR = 12.0, 48.0, 43.0
"""Of a row: views that would be smaller stand on more lines; the colour bar; in mm."""
HEAD, GAP, LETTER = 6.0, 2.0, 1.35
"""Of titles, between views, a letter of 7 or 8 points; in mm."""

GLASS: dict[str, tuple[str, tuple[float, float], tuple[float, float]]] = {
    "dorsal": ("z", (-75, 77), (-112, 80)),
    "posterior": ("y", (-77, 77), (-77, 88)),
    "lateral left": ("l", (82, -113), (-76, 87)),
    "lateral right": ("r", (-113, 82), (-76, 87)),
}
"""Views of markers: nilearn's glass brain, and the mm that it holds across and up."""


def plot_regions(
    values: Any,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    title: str | None = None,
    cmap: str | Colormap | None = None,
    vmin: float | None = None,
    vmax: float | None = None,
    views: str | Sequence[str] = "all",
    colorbar_label: str | None = None,
    outline: Sequence[str] | Mapping[str, str] = (),
    width: float = PAGE,
    figure: Figure | SubFigure | None = None,
) -> Figure | SubFigure:
    """Draw one value per region on cortex and subcortex: the seven-view figure.

    On the inflated cortex (fsaverage5) colours are flat, so that each of them stands on
    the colour bar; the subcortex is lit from the viewer, and there it is the colour of
    what faces the viewer that stands on the bar. An atlas without surfaces is drawn as
    markers at the regions' coordinates, one without these as a dot a line.

    Parameters
    ----------
    values : Series or mapping of str to float; or DataFrame or mapping of str to these
        One value per region *by name*, in any spelling that the atlas matches; or
        several maps by title (columns of a DataFrame): one row each, on one scale of
        colours. Regions without a value, or with NaN, are grey.
    atlas : str, Path or Atlas
        What :func:`brainlsap.atlas.load_atlas` takes.
    title : str, optional
        Title of the figure.
    cmap : str or Colormap, optional
        Colours, low to high; by default "viridis", and for values of both signs
        "RdBu_r" with limits that are symmetric about 0.
    vmin, vmax : float, optional
        Values of the first and last colour; by default the smallest and largest of all
        maps. Values beyond get the end colours, and the bar says so.
    views : "all", str or sequence of str
        Columns: "dorsal", "ventral", "lateral left", "lateral right", "medial left",
        "medial right", "subcortex"; "lateral" and "medial" are both sides. Markers are
        seen "dorsal", "posterior", "lateral left" and "lateral right". Where they would
        be too small for their titles, they stand on several lines.
    colorbar_label : str, optional
        What the values are, with their unit.
    outline : sequence of str, or mapping of str to str
        Regions with a thick outline; a mapping has a label for each as well.
    width : float
        In mm, from 60 to 400, such as 85 (one column of a journal) or 180 (two);
        letters keep their size.
    figure : Figure or SubFigure, optional
        Where to draw, in place of `width`.

    Returns
    -------
    Figure
        Of pyplot. Saved, it has 300 dpi, text as text (PDF: TrueType, no letter below
        6 points), and in SVG an id for every region: its name, after map and view. Its
        attribute `note` is for the caption: what stands in for surfaces, and which
        values were not drawn (of which a warning says so, too).

    Raises
    ------
    RegionNameError
        If a name is unknown, or a region has two values.
    ParameterError
        If there is nothing to draw, or a value, view, limit or width cannot be used.
    """
    if not (pd.api.types.is_number(width) and NARROWEST <= width <= WIDEST):
        raise ParameterError(
            f"width must be a number from {NARROWEST} to {WIDEST}, in mm, such as 85 "
            f"(one column of a journal) or 180 (two); got {width!r}."
        )
    atlas = load_atlas(atlas)
    maps = region_maps(values, atlas)
    scale = color_scale(maps, cmap, vmin, vmax)
    located, note = np.isfinite(atlas.coordinates).all(axis=1), ""
    page = maps, scale, (title or "", colorbar_label or ""), width, figure
    with styled(**{"text.parse_math": False}):  # names are printed as they are
        if atlas.has_surfaces:
            marked = outline if isinstance(outline, Mapping) else dict.fromkeys(outline)
            places = atlas.match(list(marked)).tolist()
            labels = dict(zip(places, marked.values(), strict=True))
            below = atlas.match(list(raster.subcortical_meshes(atlas)))
            seen = [one for one in VIEWS if one != "subcortex" or len(below)]
            shown = {v: raster.region_picture(atlas, v) for v in _views(views, seen)}
            draw = partial(_draw_surfaces, atlas, shown, labels)
            ratios = {view: one.width / one.height for view, one in shown.items()}
            room = 3.0 * any(labels.values())
            drawing = _plot_views(*page, ratios, draw, room)
            cortex = [atlas.vertex_labels(side) for side in "LR"]
            located = np.isin(np.arange(len(atlas)), np.concatenate([below, *cortex]))
        elif located.any():
            note = f"Atlas {atlas.name} has no surfaces: markers at regions' centres."
            ends = {v: np.ptp(GLASS[v][1:], axis=1) for v in _views(views, [*GLASS])}
            ratios = {view: across / up for view, (across, up) in ends.items()}
            draw = partial(_draw_markers, atlas.coordinates)
            drawing = _plot_views(*page, ratios, draw, 0.0, 1.6 * SMALLEST)
        else:
            note = f"Atlas {atlas.name} has neither surfaces nor coordinates: dots."
            located = ~located
            drawing = _plot_dots(*page)
    undrawn = np.flatnonzero(maps.notna().any(axis=1) & ~located)
    if len(undrawn):
        names = ", ".join(atlas.full_names[place] for place in undrawn)
        told = f"Not drawn, as atlas {atlas.name} does not say where: {names}."
        warnings.warn(told, UserWarning, stacklevel=2)
        note = f"{note} {told}".strip()
    drawing.note = note
    return drawing


def _views(asked: str | Sequence[str], seen: list[str]) -> list[str]:
    """Return views by their full names."""
    names = [*seen, *(one.split()[0] for one in seen)]
    groups = {n: [one for one in seen if one.startswith(n)] for n in names}
    groups["all"] = seen
    views = [asked] if isinstance(asked, str) else asked
    for view in views:
        check_choice("views", view, groups)
    return [one for view in views for one in groups[view]]


def plot_scales_at_quarters(
    evaluation: Evaluation,
    atlas: str | Path | Atlas | None = None,
    model: str | None = None,
    **options: Any,
) -> Figure | SubFigure:
    """Draw a model's heat scales at the start, the quarters and the end of training.

    Folds may begin at different scales, so what is drawn is relative, as in
    :func:`brainlsap.evaluation.rank_regions`: each scale over the median of its fold at
    that share of the training, mean over folds. The value of the median region is 1;
    at the start all regions are alike.

    Parameters
    ----------
    evaluation : Evaluation
        With scales at several shares of training.
    atlas : str, Path or Atlas, optional
        By default that of the evaluation's cohort.
    model : str, optional
        By default the first that has such scales.
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
    having = list(evaluation.scales.query("share < 1")["model"].unique())
    model = model or next(iter(having), "none")
    check_choice("model with scales during training", model, having)
    table = scales_in_training(evaluation, model)
    maps = {QUARTERS.get(share, f"{share:.0%}"): table[share] for share in table}
    options = {"colorbar_label": "relative scale (median 1)", **options}
    atlas = atlas or find_atlas(evaluation) or evaluation.cohort.atlas_name
    return plot_regions(maps, atlas, **options)


def find_atlas(evaluation: Evaluation) -> Atlas | None:
    """Return the atlas of an evaluation, a user's own by the path it was read from."""
    cohort = evaluation.cohort
    asked = cohort.provenance.get("asked") or {}
    for name in (cohort.atlas_name, str(asked.get("atlas"))):
        with suppress(BrainlsapError):
            atlas = load_atlas(name)
            if set(cohort.region_names) <= set(atlas.names):
                return atlas
    return None


def region_maps(values: Any, atlas: Atlas) -> pd.DataFrame:
    """Return a row a region and a column a map ("" for a single one); NaN if absent."""
    if not isinstance(values, Mapping | pd.Series | pd.DataFrame):
        raise ParameterError(
            "values must give each value by the region's name: a Series, a mapping, "
            f"or a DataFrame or mapping of several, got {type(values).__name__}."
        )
    maps = {"": values} if isinstance(values, pd.Series) else dict(values.items())
    if not all(isinstance(part, Mapping | pd.Series) for part in maps.values()):
        maps = {"": values}
    found = pd.DataFrame(index=list(atlas.names))
    for title, part in maps.items():
        # Before anything becomes a dict: an index may hold a name twice.
        places, full = atlas.match(list(part.keys())), np.full(len(atlas), np.nan)
        try:
            full[places] = list(dict(part).values())
        except (TypeError, ValueError) as error:
            raise ParameterError(f"values must be numbers ({error}).") from error
        found[str(title)] = full
    for title in found.columns[np.isinf(found).any() | found.isna().all()]:
        raise ParameterError(f"The map {title!r} has no value, or an infinite one.")
    return found


def color_scale(
    maps: pd.DataFrame, cmap: Any, vmin: float | None, vmax: float | None
) -> ScalarMappable:
    """Return the colours of all maps; their bar says where values are beyond it."""
    low, high = lowest, highest = float(maps.min(axis=None)), float(maps.max(axis=None))
    if low == high:
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(low) or 1.0)
    if cmap is None and lowest < 0 < highest:
        cmap, high = "RdBu_r", max(-lowest, highest)
        low = -high
    low, high = low if vmin is None else float(vmin), high if vmax is None else vmax
    if not (np.isfinite([low, high]).all() and low < high):
        raise ParameterError(f"vmin must be less than vmax, got {low:g} and {high:g}.")
    colors: Any = get_cmap(cmap or "viridis").with_extremes(bad=NO_VALUE)
    ends = [["neither", "max"], ["min", "both"]]
    colors.colorbar_extend = ends[lowest < low][highest > high]
    return ScalarMappable(Normalize(low, high, clip=True), colors)


def region_colors(values: np.ndarray, scale: ScalarMappable) -> np.ndarray:
    """Return RGBA of every region (n_rois + 1, 4); the last, -1, is of no region."""
    colors = scale.to_rgba(np.ma.masked_invalid(values))
    return np.vstack([colors, to_rgba(NO_REGION)])


def _plot_views(
    maps: pd.DataFrame,
    scale: Any,
    texts: tuple[str, str],
    width: float,
    figure: Any,
    ratios: Mapping[str, float],
    draw: Callable,
    room: float = 0.0,
    smallest: float = SMALLEST,
) -> Any:
    """Draw one row a map and one column a view, laid out in mm.

    `ratios` are widths of views over their heights; `draw` takes axes, a view, the name
    of map and view, and colours; `room` is that for labels.
    """
    (title, label), views, any_grey = texts, list(ratios), maps.isna().any(axis=None)
    height, is_new = np.inf, figure is None
    if not is_new:
        width, height = figure.bbox.size / figure.get_figure(root=True).dpi / MM
    tall = {view: 0.8 if view.startswith(SIDEWAYS) else 1.0 for view in views}
    sizes = {view: (tall[view] * ratios[view], tall[view]) for view in views}
    row_tall = max(tall.values())
    gap = {view: GAP + 3 * (view == "subcortex") for view in views}
    for per_line in (len(views), (len(views) + 1) // 2, 2):
        lines = [views[k : k + per_line] for k in range(0, len(views), per_line)]
        wide = np.array([sum(sizes[view][0] for view in line) for line in lines])
        gaps = np.array([sum(gap[view] for view in line) for line in lines])
        # about as tall as a map is: what stands upright beside it is broken so
        long = 3 + len(lines) * row_tall * min(TALLEST, *((width - 25 - gaps) / wide))
        names = [_wrap(name, long) for name in maps]
        words = _wrap(label, min(40, len(names) * long - 7 * any_grey))
        left = 2 + 3.0 * (1 + max(name.count("\n") for name in names))
        right = 14 + 3.0 * (1 + words.count("\n"))
        unit = min(TALLEST, *((width - left - right - gaps) / wide))
        if unit >= smallest:
            break
    is_narrow = any(
        " " in view and LETTER * len(view) > unit * sizes[view][0] + gap[view]
        for view in views
    )
    space = "\n" if is_narrow else " "
    titles = {view: view.capitalize().replace(" ", space) for view in views}
    head = HEAD + room + 3 * is_narrow
    heads = [head, *[head if len(lines) > 1 else 2.0] * (len(names) - 1)]
    sides = {v: [side for side, _ in VIEWS.get(v, VIEWS["dorsal"])[0]] for v in views}
    foot = 2.0 * any(len(one) > 1 for one in sides.values())
    fixed = sum(heads) * len(lines) + foot * len(names) * len(lines)
    fixed += 2 + 5 * bool(title)
    n_units = row_tall * len(names) * len(lines)
    unit = min(unit, (height - fixed) / n_units)
    needed = fixed + unit * n_units
    end = left + max(unit * wide + gaps)
    if is_new:
        width, height = end + right, needed
        figure = new_figure(width, height)
    size = np.array([width, height] * 2)
    y = (height + needed) / 2 - 5 * bool(title)
    top = y - head
    for name, above, (title_of_map, values) in zip(
        names, heads, maps.items(), strict=True
    ):
        colors, begin = region_colors(values, scale), y - above
        for line in lines:
            y, x = y - above - unit * row_tall, left
            for view in line:
                x += gap[view]
                across, up = unit * np.array(sizes[view])
                box = np.array([x, y + (unit * row_tall - up) / 2, across, up])
                axes = figure.add_axes(box / size, label=view)
                axes.set_axis_off()
                identity = f"{title_of_map}.{view}".strip(".")
                draw(axes, view, "-".join(identity.split()), colors)
                high = (unit * row_tall / up + 1) / 2  # the row's end, of the axes
                if len(sides[view]) > 1:  # both hemispheres
                    style: Any = {"va": "top", "transform": axes.transAxes}
                    axes.text(0, 1 - high, sides[view][0], ha="left", **style)
                    axes.text(1, 1 - high, sides[view][1], ha="right", **style)
                if above >= HEAD:
                    axes.set_title(titles[view], y=high, pad=3 + room * 72 * MM)
                x += across
            y -= foot
        at = left / 2 / width, (begin + y + foot) / 2 / height
        figure.text(*at, name, rotation=90, ha="center", va="center", fontsize=8)
    y += foot + 5 * any_grey
    long = min(TALLEST_BAR, top - y)
    box = np.array([end + 2, (top + y - long) / 2, 2.3, long])
    cax = figure.add_axes(box / size, label="colour bar")
    _color_bar(cax, scale, words, long, any_grey)
    figure.text(0.5, 1 - 2 / height, title, fontsize=9, ha="center", va="top")
    return figure


def _color_bar(cax: Any, scale: Any, label: str, long: float, any_grey: bool) -> None:
    """Draw the bar, `long` mm, and below it the colour of no value."""
    # Very small and very large numbers as 2.5 with "1e-4" above, for want of width.
    numbers = ScalarFormatter()
    numbers.set_powerlimits((-2, 4))
    ticks = MaxNLocator(int(np.clip(long / 5, 2, 6)), steps=[1, 2, 2.5, 5, 10])
    cax.figure.colorbar(scale, cax=cax, format=numbers, ticks=ticks, label=label)
    cax.yaxis.set_offset_position("left")  # above the bar, and not left of it
    if any_grey:
        key: Any = {"facecolor": NO_VALUE, "edgecolor": LINE, "linewidth": 0.5}
        beside: Any = {"transform": cax.transAxes, "clip_on": False}
        cax.add_artist(Rectangle((0, -5 / long), 1, 2.3 / long, **key, **beside))
        cax.text(1.5, -3.9 / long, "no value", va="center", **beside)


def _draw_surfaces(
    atlas: Atlas,
    pictures: dict[str, RegionPicture],
    labels: dict[int, str | None],
    axes: Any,
    view: str,
    identity: str,
    colors: np.ndarray,
) -> None:
    """Draw the regions of one view, each with its id, and say which side is which."""
    picture, names = pictures[view], (*atlas.names, "brain")
    for place, shape in picture.shapes.items():  # -1: all of the brain, below them
        style: Any = {"facecolor": colors[place], "edgecolor": LINE, "linewidth": 0.25}
        axes.add_artist(PathPatch(shape, gid=f"{identity}.{names[place]}", **style))
    width, height = picture.width, picture.height
    if picture.shade is not None:
        axes.imshow(picture.shade, extent=(0, width, 0, height), zorder=2)
    axes.set(xlim=(0, width), ylim=(0, height), aspect="equal")
    is_small = axes.bbox.height / axes.figure.dpi < 16 * MM
    style = {"ha": "right", "va": "center", "rotation": 90, "fontsize": 6}
    for share, word in zip(
        (0.75, 0.25), SIDEWAYS if view == "subcortex" else (), strict=False
    ):
        axes.text(-1, share * height, f"{word[:3]}." if is_small else word, **style)
    _mark(axes, view, pictures, labels)


def _draw_markers(
    centres: np.ndarray, axes: Any, view: str, identity: str, colors: np.ndarray
) -> None:
    """Draw the centres of regions in a glass brain, the nearest last."""
    from nilearn.plotting.displays import GlassBrainAxes

    (x, y, z), (kind, across, up) = centres.T, GLASS[view]
    places = {"z": (x, y, z), "y": (x, z, -y), "l": (y, z, -x), "r": (y, z, x)}
    right, high, near = places[kind]
    GlassBrainAxes(axes, kind, 0, linewidth=0.5)
    shown = np.isfinite(centres).all(axis=1) & ((near >= 0) | (kind not in "lr"))
    order = np.argsort(near)
    order = order[shown[order]]
    style: Any = {"s": (0.055 * axes.bbox.height / axes.figure.dpi * 72) ** 2}
    style |= {"edgecolors": LINE, "linewidths": 0.25, "zorder": 3, "gid": identity}
    axes.scatter(right[order], high[order], c=colors[order], **style)
    axes.set(xlim=across, ylim=up)


def _mark(
    axes: Any, view: str, pictures: dict[str, RegionPicture], marked: dict[int, Any]
) -> None:
    """Outline regions, and label each in the view that shows most of it."""
    height = pictures[view].height
    for place in marked.keys() & pictures[view].shapes.keys():
        shape: Any = pictures[view].shapes[place]
        axes.add_artist(PathPatch(shape, fill=False, ec="black", lw=1, zorder=3))
        shown = {  # views from the side are known best
            one: part.areas.get(place, 0) * (1 + one.startswith(SIDEWAYS))
            for one, part in pictures.items()
        }
        if marked[place] and shown[view] == max(shown.values()):
            parts = shape.to_polygons()  # of the large ones, the highest
            part = max(parts, key=lambda one: (len(one) > 15, one[:, 1].mean()))
            x, y = part.mean(axis=0)
            above = y > height / 2 or view == "subcortex"
            style: Any = {"ha": "center", "va": "bottom" if above else "top"}
            style["arrowprops"] = {"arrowstyle": "-", "linewidth": 0.6, "shrinkA": 0}
            at = (x, height if above else 0)
            axes.annotate(marked[place], (x, y), at, zorder=4, **style)


def _wrap(text: str, width: float) -> str:
    """Break a text into lines of at most so many mm."""
    return textwrap.fill(text, max(8, int(width / LETTER)), break_long_words=False)


def _plot_dots(
    maps: pd.DataFrame, scale: Any, texts: tuple[str, str], width: float, figure: Any
) -> Any:
    """Draw a dot a region in the order of the first map, one column a map."""
    title, label = texts
    table = maps.dropna(how="all").sort_values(maps.columns[0], kind="stable")
    n, half = len(table), MOST_DOTS // 2
    rows, names = np.arange(n), [*table.index]
    if n > MOST_DOTS:
        table = pd.concat([table.head(half), table.tail(half)])
        rows = np.delete(np.arange(MOST_DOTS + 1), half)
        names = [*table.index[:half], f"({n - MOST_DOTS} between)", *table.index[half:]]
    figure = figure or new_figure(width, 22 + 3.6 * len(names), layout="constrained")
    shape: Any = {"sharex": True, "sharey": True, "squeeze": False}
    panels = figure.subplots(1, table.shape[1], **shape)[0]
    room = (width - LETTER * max(map(len, names))) / len(panels)
    for axes, (name, values) in zip(panels, table.items(), strict=True):
        colors = scale.to_rgba(values.to_numpy())
        axes.hlines(rows, 0, 1, "#e4e4e4", lw=0.6, transform=axes.get_yaxis_transform())
        axes.scatter(values, rows, s=20, c=colors, edgecolors=LINE, lw=0.4, zorder=3)
        axes.set_yticks(range(len(names)), names)
        axes.set(ylim=(len(names) - 0.5, -0.5), title=_wrap(name, room))
        if values.min() < 0 < values.max():
            axes.axvline(0, color=LINE, linewidth=0.5)
        axes.tick_params(axis="y", length=0)
        axes.spines[["top", "right", "left"]].set_visible(False)
    figure.suptitle(title, fontsize=9)
    figure.supxlabel(label, fontsize=7)
    return figure
