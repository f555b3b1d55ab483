"""One value per region drawn on cortex and subcortex, by region name."""

import textwrap
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, Normalize, to_rgba
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.patheffects import Normal, Stroke, withStroke
from matplotlib.pyplot import get_cmap
from matplotlib.ticker import MaxNLocator
from sklearn.isotonic import IsotonicRegression

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.evaluation import Evaluation
from brainlsap.exceptions import BrainlsapError, ParameterError, check_choice
from brainlsap.report import brain_raster as raster
from brainlsap.report.brain_raster import VIEWS, RegionPicture
from brainlsap.report.figures import MM, PAGE, new_figure, styled
from brainlsap.report.plots import QUARTERS, scales_in_training
from brainlsap.report.tables import shortened

NO_VALUE, NO_REGION, LINE = "#b4b4b4", "#ededed", "#2b2b2b"
SIDEWAYS = ("lateral", "medial", "posterior")
NARROWEST, WIDEST = 60, 400
STEPS = [1, 2, 2.5, 5, 10]
"""Between ticks of a colour bar, times a power of ten."""
MOST_DOTS = 40
SMALLEST, TALLEST, TALLEST_BAR = 12.0, 48.0, 43.0
"""Of a row: views that would be smaller stand on more lines; the colour bar; in mm."""
HEAD, GAP, LETTER, LABEL = 6.0, 2.0, 1.35, 3.2
"""Of titles, between views, a letter of 7 or 8 points, a line of labels; in mm."""

# Around a shape, which keeps all of its colour: black, and white on dark neighbours.
OUTLINED = [Stroke(linewidth=2.6, foreground="white"), Stroke(linewidth=1.6), Normal()]
HALO = [withStroke(linewidth=1.6, foreground="white")]

GLASS: dict[str, tuple[str, tuple[float, float], tuple[float, float]]] = {
    "dorsal": ("z", (-75, 77), (-112, 80)),
    "posterior": ("y", (-77, 77), (-77, 88)),
    "lateral left": ("l", (82, -113), (-76, 87)),
    "lateral right": ("r", (-113, 82), (-76, 87)),
}
"""Views of markers: nilearn's glass brain, and the mm that it holds across and up."""

Pictures: TypeAlias = Mapping[str, RegionPicture]
Labels: TypeAlias = Mapping[int, str]


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
    outline: str | Sequence[str] | Mapping[str, str] = (),
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
        "RdBu_r" with limits that are symmetric about 0 (one that is given is mirrored).
    vmin, vmax : float, optional
        Values of the first and last colour; by default the smallest and largest of all
        maps, rounded outwards to ticks of the bar. Values beyond get the end colours,
        and the bar says so.
    views : "all", str or sequence of str
        Columns: "dorsal", "ventral", "lateral left", "lateral right", "medial left",
        "medial right", "subcortex"; "lateral" and "medial" are both sides. Markers are
        seen "dorsal", "posterior", "lateral left" and "lateral right". Where they would
        be too small for their titles, they stand on several lines. "all" leaves out a
        subcortex of which no region has a value, and the note says so.
    colorbar_label : str, optional
        What the values are, with their unit.
    outline : str, sequence of str, or mapping of str to str
        Regions with a thick outline, or ring around the marker; a mapping has a label
        for each as well.
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
        values or outlines were not drawn (of which a warning says so, too).

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
    asked = [outline] if isinstance(outline, str) else outline
    marked = asked if isinstance(asked, Mapping) else dict.fromkeys(asked, "")
    labels = dict(zip(atlas.match(list(marked)).tolist(), marked.values(), strict=True))
    located, note = np.isfinite(atlas.coordinates).all(axis=1), ""
    shown: dict[str, RegionPicture] = {}
    page = maps, scale, (title or "", colorbar_label or ""), width, figure
    # Names as they are; for want of width, small numbers as 2.5 with "1e-4" above.
    with styled(**{"text.parse_math": False, "axes.formatter.limits": (-2, 4)}):
        if atlas.has_surfaces:
            below = atlas.match(list(atlas.meshes()))
            is_drawn = views != "all" or maps.iloc[below].notna().any(axis=None)
            seen = [v for v in VIEWS if v != "subcortex" or (len(below) and is_drawn)]
            if not is_drawn and len(below):
                note = "No subcortical region has a value: the subcortex is not drawn."
            shown = {v: raster.region_picture(atlas, v) for v in _views(views, seen)}
            drawing = _plot_views(page, shown, labels, partial(_draw_surfaces, atlas))
            cortex = [atlas.vertex_labels(side) for side in "LR"]
            located = np.isin(np.arange(len(atlas)), np.concatenate([below, *cortex]))
        elif located.any():
            note = f"Atlas {atlas.name} has no surfaces: markers at regions' centres."
            shown = {v: _glass_picture(atlas, v) for v in _views(views, [*GLASS])}
            drawing = _plot_views(page, shown, labels, _draw_markers, 1.6 * SMALLEST)
        else:
            note = f"Atlas {atlas.name} has neither surfaces nor coordinates: dots."
            if (n := maps.notna().any(axis=1).sum()) > MOST_DOTS:
                note += f" {n - MOST_DOTS} of {n} regions, those between, are left out."
            located = ~located
            drawing = _plot_dots(page)
    seen_at = {place for one in shown.values() for place in one.centres}
    undrawn = np.flatnonzero(maps.notna().any(axis=1) & ~located).tolist()
    lacks = {f"drawn, as atlas {atlas.name} does not say where": undrawn}
    lacks["outlined, as seen in no view that is drawn"] = sorted({*labels} - seen_at)
    for what, places in lacks.items():
        if places:
            told = f"Not {what}: {', '.join(atlas.full_names[k] for k in places)}."
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
    that share of the training, mean over folds. The value of the median region is 1.

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
        One row a share of training, on one scale of colours; start and end alone where
        training hardly changed any scale, as its `note` says then.

    Raises
    ------
    ParameterError
        If the model is unknown or has no scales during training.
    """
    having = list(evaluation.scales.query("share < 1")["model"].unique())
    model = model or next(iter(having), "none")
    check_choice("model with scales during training", model, having)
    table = scales_in_training(evaluation, model)
    change = np.ptp(table, axis=1).max()
    is_still = change < 0.1 * np.ptp(table)  # of all colours: hardly seen
    maps = table.iloc[:, [0, -1]] if is_still else table
    maps = maps.rename(columns=lambda share: QUARTERS.get(share, f"{share:.0%}"))
    options = {"colorbar_label": "relative scale (median 1)", **options}
    atlas = atlas or find_atlas(evaluation) or evaluation.cohort.atlas_name
    figure: Any = plot_regions(maps, atlas, **options)
    if is_still:
        told = f"Training changed no scale by more than {change:.2f}, and quarters"
        figure.note = f"{told} between start and end are left out. {figure.note}"
    return figure


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
    given = [abs(limit) for limit in (vmin, vmax) if limit is not None]
    is_signed = lowest < 0 < highest and (vmin or -1) < 0 < (vmax or 1)
    if cmap is None and is_signed and 0 not in given:
        cmap, high = "RdBu_r", max(given or [-lowest, highest])
        low = -high
        vmin, vmax = (low, high) if given else (None, None)
    low, high = low if vmin is None else float(vmin), high if vmax is None else vmax
    if not (np.isfinite([low, high]).all() and low < high):
        raise ParameterError(f"vmin must be less than vmax, got {low:g} and {high:g}.")
    ticks = np.array(MaxNLocator(5, steps=STEPS).tick_values(low, high)).tolist()
    low, high = ticks[0] if vmin is None else low, ticks[-1] if vmax is None else high
    colors: Any = get_cmap(cmap or "viridis").with_extremes(bad=NO_VALUE)
    ends = [["neither", "max"], ["min", "both"]]
    colors.colorbar_extend = ends[lowest < low][highest > high]
    return ScalarMappable(Normalize(low, high, clip=True), colors)


def region_colors(values: np.ndarray, scale: ScalarMappable) -> np.ndarray:
    """Return RGBA of every region (n_rois + 1, 4); the last, -1, is of no region."""
    return np.vstack([scale.to_rgba(values), to_rgba(NO_REGION)])


def _plot_views(
    page: Any, pictures: Pictures, labels: Labels, draw: Any, smallest: float = SMALLEST
) -> Any:
    """Draw one row a map and one column a view, laid out in mm.

    `draw` takes axes, a view's picture, the name of map and view, colours, and the
    regions to outline; `labels` are of these.
    """
    maps, scale, (title, label), width, figure = page
    views, drawn = list(pictures), {k for p in pictures.values() for k in p.centres}
    any_grey = maps.iloc[sorted(drawn)].isna().any(axis=None)
    height, is_new, marks = np.inf, figure is None, _label_table(pictures, labels)
    if not is_new:
        width, height = figure.bbox.size / figure.get_figure(root=True).dpi / MM
    tall = {view: 0.8 if view.startswith(SIDEWAYS) else 1.0 for view in views}
    sizes = {v: (tall[v] * p.width / p.height, tall[v]) for v, p in pictures.items()}
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
    titles = {v: _wrap(v.capitalize(), unit * sizes[v][0] + gap[v]) for v in views}
    long = max(unit * wide + gaps)
    of_lines = [marks[marks["view"].isin(line)] for line in lines]
    room, below = (
        LABEL * max(_n_rows(some[some["side"] == side], long) for some in of_lines)
        for side in (1, -1)
    )
    head = HEAD + room + 3 * any("\n" in one for one in titles.values())
    heads = [head, *[head if len(lines) > 1 else 2.0 + room] * (len(names) - 1)]
    sides = {v: [side for side, _ in VIEWS.get(v, VIEWS["dorsal"])[0]] for v in views}
    letters = 2.0 * any(len(one) > 1 for one in sides.values())
    foot = letters + below
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
    for name, above, title_of_map in zip(names, heads, maps, strict=True):
        colors, begin = region_colors(maps[title_of_map], scale), y - above
        for line, some in zip(lines, of_lines, strict=True):
            y, x, seen = y - above - unit * row_tall, left, {}
            for view in line:
                x += gap[view]
                across, up = unit * np.array(sizes[view])
                box = np.array([x, y + (unit * row_tall - up) / 2, across, up])
                axes = seen[view] = figure.add_axes(box / size, label=view)
                axes.set_axis_off()
                gid = "-".join(f"{title_of_map}.{view}".strip(".").split())
                draw(axes, pictures[view], gid, colors, labels.keys())
                high = (unit * row_tall / up + 1) / 2  # the row's end, of the axes
                if len(sides[view]) > 1:  # both hemispheres
                    style: Any = {"va": "top", "transform": axes.transAxes}
                    axes.text(0, 1 - high, sides[view][0], ha="left", **style)
                    axes.text(1, 1 - high, sides[view][1], ha="right", **style)
                if above == head:
                    axes.set_title(titles[view], y=high, pad=3 + room * 72 * MM)
                x += across
            frame = left, left + long, y - letters, y + unit * row_tall
            _write_labels(some, seen, frame, size)
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
    inside = np.interp([1e-9, 1 - 1e-9], [0, 1], scale.get_clim())
    # of 6 both ends are ticks where limits are round
    ticks = MaxNLocator(6 if long > 18 else 4, steps=STEPS).tick_values(*inside)
    cax.figure.colorbar(scale, cax=cax, ticks=ticks, label=label)
    cax.yaxis.set_offset_position("left")  # above the bar, and not left of it
    if any_grey:
        key: Any = {"facecolor": NO_VALUE, "edgecolor": LINE, "linewidth": 0.5}
        beside: Any = {"transform": cax.transAxes, "clip_on": False}
        cax.add_artist(Rectangle((0, -5 / long), 1, 2.3 / long, **key, **beside))
        cax.text(1.5, -3.9 / long, "no value", va="center", **beside)


def _draw_surfaces(
    atlas: Atlas, axes: Any, picture: RegionPicture, gid: str, colors: Any, marked: Any
) -> None:
    """Draw the regions of one view, each with its id, and say which side is which."""
    names = (*atlas.names, "brain")
    for place, shape in picture.shapes.items():  # -1: all of the brain, below them
        style: Any = {"facecolor": colors[place], "edgecolor": LINE, "linewidth": 0.25}
        if place in marked:  # above other regions, below the shade
            style |= {"zorder": 1.5, "clip_on": False, "path_effects": OUTLINED}
        axes.add_artist(PathPatch(shape, gid=f"{gid}.{names[place]}", **style))
    width, height = picture.width, picture.height
    if picture.shade is not None:
        axes.imshow(picture.shade, extent=(0, width, 0, height), zorder=2)
    axes.set(xlim=(0, width), ylim=(0, height), aspect="equal")
    is_small = axes.bbox.height / axes.figure.dpi < 16 * MM
    style = {"ha": "right", "va": "center", "rotation": 90, "fontsize": 6}
    lines = SIDEWAYS[:2] if axes.get_label() == "subcortex" else ()
    for share, word in zip((0.75, 0.25), lines, strict=False):
        axes.text(-1, share * height, f"{word[:3]}." if is_small else word, **style)


def _glass_picture(atlas: Atlas, view: str) -> RegionPicture:
    """Return which markers a view of the glass brain shows, the nearest last."""
    centres, (kind, across, up) = atlas.coordinates, GLASS[view]
    x, y, z = centres.T
    places = {"z": (x, y, z), "y": (x, z, -y), "l": (y, z, -x), "r": (y, z, x)}
    right, high, near = places[kind]
    shown = np.isfinite(centres).all(axis=1) & ((near >= 0) | (kind not in "lr"))
    order = [place for place in np.argsort(near).tolist() if shown[place]]
    spots = {k: (abs(right[k] - across[0]), high[k] - up[0]) for k in order}
    free = dict.fromkeys(order, 1 / max(1, len(order)))  # of other markers
    return RegionPicture(np.ptp(across), np.ptp(up), {}, free, spots, None)


def _draw_markers(
    axes: Any, picture: RegionPicture, gid: str, colors: np.ndarray, marked: Any
) -> None:
    """Draw the centres of regions in a glass brain."""
    from nilearn.plotting.displays import GlassBrainAxes

    kind, across, up = GLASS[axes.get_label()]
    GlassBrainAxes(axes, kind, 0, linewidth=0.5)
    style: Any = {"s": (0.055 * axes.bbox.height / axes.figure.dpi * 72) ** 2}
    style |= {"edgecolors": LINE, "linewidths": 0.25, "zorder": 3, "gid": gid}
    turn = np.sign(across[1] - across[0])
    shown = picture.centres.items()
    spots = {k: (across[0] + turn * x, up[0] + y) for k, (x, y) in shown}
    at = np.reshape([*spots.values()], (-1, 2)).T
    axes.scatter(*at, c=colors[[*spots]], **style)
    for place in marked & spots.keys():
        style |= {"gid": None, "path_effects": OUTLINED}
        axes.scatter(*spots[place], color=colors[place], **style)
    axes.set(xlim=across, ylim=up)


def _label_table(pictures: Pictures, labels: Labels) -> pd.DataFrame:
    """Return every label with its width, in mm, and the spot that it is of.

    A region is labelled in the view that shows most of it; views from the side are
    known best, and count double. x and y are shares of the view.
    """
    areas = pd.DataFrame({view: pd.Series(p.areas) for view, p in pictures.items()})
    best = (areas * [1 + view.startswith(SIDEWAYS) for view in areas]).idxmax(axis=1)
    rows = []
    for place in [k for k, text in labels.items() if text and k in best]:
        view, text = best[place], labels[place]
        one = pictures[view]
        x, y = np.divide(one.centres[place], (one.width, one.height))
        side = 1 if y > 0.5 or view == "subcortex" else -1
        rows.append((view, text, (len(text) + 2) * LETTER, x, y, side))
    return pd.DataFrame(rows, columns=["view", "text", "width", "x", "y", "side"])


def _n_rows(marks: pd.DataFrame, long: float) -> int:
    """Return how many rows of so many mm labels need."""
    return int(np.ceil(1.1 * marks["width"].sum() / long))


def _write_labels(
    marks: pd.DataFrame, axes: Mapping[str, Any], box: tuple[float, ...], size: Any
) -> None:
    """Write labels above and below a line of views, side by side; all in mm."""
    left, right, *edges = box
    seen = [axes[view].get_position() for view in marks["view"]]
    at = [size[0] * (p.x0 + p.width * x) for p, x in zip(seen, marks["x"], strict=True)]
    line: Any = {"arrowstyle": "-", "linewidth": 0.6, "path_effects": HALO}
    style: Any = {"ha": "center", "bbox": {"fc": "white", "ec": "none", "pad": 0.5}}
    style |= {"xycoords": "axes fraction", "textcoords": "subfigure fraction"}
    for step, some in marks.assign(at=at).sort_values("at").groupby("side"):
        n, edge = _n_rows(some, right - left), edges[step > 0]
        line |= {"shrinkA": 0, "shrinkB": 0, "relpos": (0.5, 0.5 - step / 2)}
        style |= {"va": "bottom" if step > 0 else "top", "arrowprops": line}
        for k in reversed(range(n)):  # each label as near to its spot as may be
            row = some.iloc[k::n]
            middle = row["width"].cumsum() - row["width"] / 2
            last = max(left, right - row["width"].sum())
            fit = IsotonicRegression(y_min=left, y_max=last).fit_transform
            x = (middle + fit(np.arange(len(row)), row["at"] - middle)) / size[0]
            y = (edge + step * (0.6 + LABEL * k)) / size[1]
            for one, at in zip(row.itertuples(), x, strict=True):
                axes[one.view].annotate(one.text, (one.x, one.y), (at, y), **style)


def _wrap(text: str, width: float) -> str:
    """Break a text into lines of at most so many mm."""
    return textwrap.fill(text, max(8, int(width / LETTER)), break_long_words=False)


def _plot_dots(page: Any) -> Any:
    """Draw a dot a region in the order of the first map, one column a map."""
    maps, scale, (title, label), width, figure = page
    table = maps.dropna(how="all").sort_values(maps.columns[0], kind="stable")
    n, half = len(table), MOST_DOTS // 2
    rows, names = np.arange(n), [*table.index]
    if n > MOST_DOTS:
        table = pd.concat([table.head(half), table.tail(half)])
        rows = np.delete(np.arange(MOST_DOTS + 1), half)
        names = [*table.index[:half], f"({n - MOST_DOTS} between)", *table.index[half:]]
    names = [shortened(one, max(30, int(0.4 * width / LETTER))) for one in names]
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
