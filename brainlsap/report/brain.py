"""One value per region drawn on cortex and subcortex, by region name."""

import re
import textwrap
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PathCollection
from matplotlib.colors import Colormap, ListedColormap, Normalize, to_rgba
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path as Shape
from matplotlib.patheffects import Normal, Stroke, withStroke
from matplotlib.pyplot import get_cmap
from matplotlib.textpath import TextPath
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Affine2D

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.evaluation import Evaluation
from brainlsap.exceptions import ParameterError, check_choice, listed
from brainlsap.report import brain_raster as raster
from brainlsap.report import figures
from brainlsap.report.brain_raster import VIEWS, RegionPicture
from brainlsap.report.figures import LETTER, MM, PAGE, check_width, new_figure, styled
from brainlsap.report.plots import QUARTERS, name_rows, scales_in_training
from brainlsap.report.tables import shortened

NO_VALUE, NO_REGION, LINE = "#b4b4b4", "#ededed", "#2b2b2b"
SIDEWAYS = ("lateral", "medial", "posterior")
MOST_DOTS = 40
SMALLEST, TALLEST_VIEW, TALLEST_ROW, TALLEST_BAR = 13.5, 48.0, 140.0, 43.0
"""Smaller views stand on more lines; of many rows, of one, of colour bars; in mm."""
HEAD, GAP, LABEL, STEP, UPRIGHT, BETWEEN = 6.0, 2.0, 3.2, 2.5, 21.0, 6.0
"""Of titles, between views, labels, steps, upright lines, between maps; in mm."""

# Around a shape, which keeps all of its colour: dark around white, so that one of the
# two stands out from any colour beside it.
OUTLINED = [Stroke(linewidth=3), Stroke(linewidth=1.3, foreground="white"), Normal()]
HALO = [withStroke(linewidth=1.6, foreground="white")]

GLASS: dict[str, tuple[str, tuple[float, float], tuple[float, float]]] = {
    "dorsal": ("z", (-75, 77), (-112, 80)),
    "posterior": ("y", (-77, 77), (-77, 88)),
    "lateral left": ("l", (82, -113), (-76, 87)),
    "lateral right": ("r", (-113, 82), (-76, 87)),
}
"""Views of markers: nilearn's glass brain, and the mm that it holds across and up."""


def plot_regions(
    values: Any,
    atlas: Any = "destrieux160",
    *,
    title: str | None = None,
    cmap: str | Colormap | Sequence[Any] | None = None,
    vmin: float | Sequence[Any] | None = None,
    vmax: float | Sequence[Any] | None = None,
    shared_scale: bool = True,
    views: str | Sequence[str] = "all",
    colorbar_label: str | Sequence[str] | None = None,
    outline: str | Sequence[str] | Mapping[str, str] = (),
    width: float = PAGE,
    figure: Figure | SubFigure | None = None,
) -> Figure | SubFigure:
    r"""Draw one value per region on cortex and subcortex: the seven-view figure.

    On the inflated cortex (fsaverage5) colours are flat, so that each of them stands on
    the colour bar; the subcortex is lit from the viewer, and there it is the colour of
    what faces the viewer that stands on the bar. Where a region is seen less than 1 mm
    wide, a view gives it to its neighbour. An atlas without surfaces is drawn as
    markers at the regions' coordinates, those above others whose values stand out: are
    farthest from the median, or from 0 where signs differ (of an atlas of an image
    :func:`export_maps` writes one, which nilearn's `plot_stat_map` draws); one without
    these as a dot a line.

    Parameters
    ----------
    values : Series or mapping of str to float; or DataFrame or mapping of str to these
        One value per region *by name*, in any spelling that the atlas matches; or
        several maps by title (columns of a DataFrame): one row each, on one scale of
        colours. Regions without a value, or with NaN, are grey.
    atlas : str, Path or Atlas
        What :func:`brainlsap.atlas.load_atlas` takes.
    title : str, optional
        Title of the figure; in it and in `colorbar_label` `$t_{38}$` is math (and
        `\$` a dollar), in names it is not.
    cmap : str or Colormap, or sequence of these, optional
        Colours, low to high; by default "viridis", and for values of both signs
        "RdBu_r". Of a map of 20 colours at most, such as "tab10", whole numbers have
        one each. For these, the middle of any map that is lighter there than at both
        ends, or darker, is at 0 (one of your own too; nilearn's are known by name after
        `import nilearn.plotting`).
    vmin, vmax : float or sequence of float, optional
        Values of the first and last colour; by default the smallest and largest of all
        maps, and symmetric about 0 where colours diverge there (one that is given is
        mirrored, two are kept). Values beyond get
        the end colours, and the bar says so.
    shared_scale : bool
        False: colours and a bar for every map of several, and `cmap`, `vmin`, `vmax`
        and `colorbar_label` may be lists of one for each.
    views : "all", str or sequence of str
        Columns: "dorsal", "ventral", "lateral left", "lateral right", "medial left",
        "medial right", "subcortex"; "lateral" and "medial" are both sides, "cortex" is
        all but the last. Markers are seen "dorsal", "posterior", "lateral left" and
        "lateral right". Where they would be too small for their titles, they stand on
        several lines. "all" leaves out a cortex or subcortex of which no region has a
        value, and the note says so.
    colorbar_label : str or sequence of str, optional
        What the values are, with their unit.
    outline : str, sequence of str, or mapping of str to str
        Regions with a thick outline, or ring around the marker (dots have none); a
        mapping has a label for each as well, above or below a view that shows it.
    width : float
        In mm, from 60 to 400, such as 85 (one column of a journal) or 180 (two);
        letters keep their size. Rows are at most 140 mm tall: few views in a wide
        figure have white beside them.
    figure : Figure or SubFigure, optional
        Without axes. Where to draw, in place of `width`, on as many lines as make
        views largest; beside axes, one of `fig.subfigures(1, 2)`. Size and what is said
        below of files are then yours: `plt.rcParams["pdf.fonttype"] = 42`,
        `plt.rcParams["svg.fonttype"] = "none"`, `savefig(dpi=300)`.

    Returns
    -------
    Figure
        Of pyplot. Saved, it has 300 dpi, text as text (PDF: TrueType, no letter below
        6 points but for sub- and superscripts, of 4.9), and in SVG an id for every
        region or marker: its name, after map and view, without signs but `_`, `-` and
        `.`. Its attribute `note` is for the caption: what stands in for surfaces, and
        which values or outlines were not drawn; of outlines, and of regions without a
        place, a warning says so, too (an atlas of names alone has dots, of the 40
        regions that stand out most).
        `bbox_inches="tight"` would change the width.

    Raises
    ------
    RegionNameError
        If a name is unknown, or a region has two values.
    ParameterError
        If there is nothing to draw, or a value, view, limit or width cannot be used.
    """
    size = _page_size(width, figure)
    atlas = load_atlas(atlas)
    maps = region_maps(values, atlas)
    parts = [maps] if shared_scale else [maps[[name]] for name in maps]
    how: Any = {"cmap": cmap, "vmin": vmin, "vmax": vmax}
    how["colorbar_label"] = colorbar_label or ""
    *colors, bars = [_of_each(parts, name, value) for name, value in how.items()]
    scales = [color_scale(*one) for one in zip(parts, *colors, strict=True)]
    asked = [outline] if isinstance(outline, str) else outline
    marked = asked if isinstance(asked, Mapping) else dict.fromkeys(asked, "")
    places = atlas.match(list(marked)).tolist()
    labels = dict(zip(places, map(str, marked.values()), strict=True))
    known = maps.notna().any(axis=1).to_numpy()
    located = np.isfinite(atlas.coordinates).all(axis=1)
    shown: dict[str, RegionPicture] = {}
    texts = _wrap(title or "", (size[0] - 4) * 7 / 9), bars
    page = maps, scales, texts, size, figure
    # Of dots, whose axes have no room for more: small numbers as 2.5, and "1e-4" below.
    with styled(**{"axes.formatter.limits": (-2, 4)}):
        if atlas.has_surfaces:
            seen, located, note = _surface_views(atlas, maps, views)
            shown = {v: raster.region_picture(atlas, v) for v in _views(views, seen)}
            drawing = _plot_views(page, atlas, shown, labels, SMALLEST)
        elif located.any():
            note = f"Atlas {atlas.name} has no surfaces: markers at regions' centres."
            shown = {v: _glass_picture(atlas, v) for v in _views(views, [*GLASS])}
            drawing = _plot_views(page, atlas, shown, labels, 1.4 * SMALLEST)
        else:
            drawing, left_out = _plot_dots(page)
            note = f"Atlas {atlas.name} has neither surfaces nor coordinates: dots."
            note, located = f"{note} {left_out}".strip(), ~located
    seen_at = {place for one in shown.values() for place in one.centres}
    n_hidden = len({*np.flatnonzero(known & located)} - seen_at) if shown else 0
    notes = [note] if note else []
    if n_hidden:
        told = f"{n_hidden} of {known.sum()} regions with a value are in no view"
        notes.append(f"{told} that is drawn; colours are those of all.")
    undrawn = np.flatnonzero(known & ~located).tolist()
    if len(undrawn) == known.sum() > 0:
        names = listed((atlas.full_names[k] for k in undrawn), 5)
        raise ParameterError(f"atlas {atlas.name} does not say where {names} lie.")
    lacks = {f"drawn, as atlas {atlas.name} does not say where": undrawn}
    lacks["outlined, as seen in no view that is drawn"] = sorted({*labels} - seen_at)
    for what, places in lacks.items():
        if places:
            names = ", ".join(atlas.full_names[k] for k in places)
            notes.append(f"Not {what}: {names}.")
            warnings.warn(notes[-1], UserWarning, stacklevel=2)
    drawing.note = " ".join(notes)
    return drawing


def _of_each(parts: list[Any], name: str, value: Any) -> list[Any]:
    """Return a value for every part that has a colour bar: one for all, or as many."""
    is_one = isinstance(value, str) or not np.iterable(value)
    each = [value] * len(parts) if is_one else [*value]
    if len(each) != len(parts):
        told = f"there are {len(each)} for {len(parts)} colour bars"
        raise ParameterError(f"{name}: {told} (shared_scale=False: one a map).")
    return each


def _page_size(width: Any, figure: Any) -> Any:
    """Return width and height of where to draw, in mm."""
    check_width(width)
    if figure is None:
        return width, figures.TALLEST
    if not isinstance(figure, Figure | SubFigure) or figure.axes:
        told = "beside axes one of fig.subfigures(1, 2); brains would cover its axes."
        raise ParameterError(f"figure must be a Figure without axes, {told}")
    size: Any = figure.bbox.size
    return size / figure.get_figure(root=True).dpi / MM


def _surface_views(atlas: Atlas, maps: pd.DataFrame, asked: Any) -> Any:
    """Return the views that there are, which regions they show, and a note.

    Of all views, those of the cortex or the subcortex are left out if no region there
    has a value.
    """
    cortex = np.concatenate([atlas.vertex_labels(side) for side in "LR"])
    below, places = atlas.match(list(atlas.meshes())), np.arange(len(atlas))
    parts = {"cortex": np.isin(places, cortex), "subcortex": np.isin(places, below)}
    there = [part for part in parts if parts[part].any()]
    known = [part for part in there if maps[parts[part]].notna().any(axis=None)]
    drawn = known if known and asked == "all" else there
    blank = [part for part in there if part not in drawn]
    note = "".join(f"No region of the {k} has a value: it is not drawn." for k in blank)
    seen = [v for v in VIEWS if (v if v == "subcortex" else "cortex") in drawn]
    return seen, parts["cortex"] | parts["subcortex"], note


def _views(asked: str | Sequence[str], seen: list[str]) -> list[str]:
    """Return views by their full names."""
    names = [*seen, *(one.split()[0] for one in seen)]
    groups = {n: [v for v in seen if v.startswith(n)] for n in names} | {"all": seen}
    groups["cortex"] = [view for view in seen if view != "subcortex"]
    views: Any = [asked] if isinstance(asked, str) else [*asked]
    for view in views or [asked]:
        check_choice("views", view, [*groups])
    return [one for view in views for one in groups[view]]


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
    having = list(evaluation.scales.query("share < 1")["model"].unique())
    model = model or next(iter(having), "none")
    check_choice("model with scales during training", model, having)
    maps = scales_in_training(evaluation, model).rename(columns=QUARTERS)
    options = {"colorbar_label": "relative heat scale", **options}
    return plot_regions(maps, atlas or evaluation.cohort, **options)


def region_maps(values: Any, atlas: Atlas) -> pd.DataFrame:
    """Return a row a region and a column a map ("" for a single one); NaN if absent."""
    is_numbered = isinstance(getattr(values, "index", None), pd.RangeIndex)
    if is_numbered or not isinstance(values, Mapping | pd.Series | pd.DataFrame):
        raise ParameterError(
            "values must give each value by the region's name: a mapping, Series or "
            f"DataFrame with names as index (set_index('region')); got {type(values)}."
        )
    maps = dict(values.items())
    if not maps or not all(isinstance(x, Mapping | pd.Series) for x in maps.values()):
        maps = {"": values}
    found = pd.DataFrame(index=list(atlas.names))
    for title, part in maps.items():
        # Before anything becomes a dict: an index may hold a name twice.
        places, full = atlas.match(list(part.keys())), np.full(len(atlas), np.nan)
        try:
            full[places] = list(dict(part).values())
        except (TypeError, ValueError) as error:
            told = f"values {title}".rstrip()
            raise ParameterError(f"{told} must be numbers ({error}).") from error
        found[str(title)] = full
    for title in found.columns[np.isinf(found).any() | found.isna().all()]:
        at = found.index[np.isinf(found[title])].tolist()[:5] or "every region"
        told = f"values of {title or 'the map'}"
        raise ParameterError(f"{told}: no value, or an infinite one, in {at}.")
    return found


def color_scale(maps: pd.DataFrame, cmap: Any, vmin: Any, vmax: Any) -> ScalarMappable:
    """Return the colours of all maps; their bar says where values are beyond it."""
    lowest, highest = float(maps.min(axis=None)), float(maps.max(axis=None))
    spare = 0.5 * (abs(lowest) or 1.0) * (highest - lowest <= 1e-12 * abs(lowest))
    low = lowest - spare if vmin is None else float(vmin)
    high = highest + spare if vmax is None else float(vmax)
    if not (np.isfinite([low, high]).all() and low < high):
        raise ParameterError(f"vmin must be less than vmax, got {low:g} and {high:g}.")
    colors: Any = get_cmap(cmap or ("RdBu_r" if low < 0 < high else "viridis"))
    n_kinds, is_free = highest - lowest + 1, vmin is vmax is None
    if is_free and n_kinds <= colors.N <= 20 and (maps.stack().dropna() % 1 == 0).all():
        colors = ListedColormap(colors(range(int(n_kinds))))  # of clusters and the like
        colors = colors.with_extremes(bad=NO_VALUE)
        return ScalarMappable(Normalize(lowest - 0.5, highest + 0.5), colors)
    first, middle, last = colors([0.0, 0.5, 1.0])[:, :3] @ (0.299, 0.587, 0.114)
    # the middle is lighter than both ends, or darker
    diverges = (middle - first) * (middle - last) > 0.01
    if diverges and low < 0 < high and None in (vmin, vmax):
        high = max([abs(v) for v in (vmin, vmax) if v is not None] or [-low, high])
        low = -high
    if diverges and min(low, lowest) < 0 < max(high, highest):  # the middle is at 0
        shares = 0.5 + np.linspace(low, high, 256) / (2 * max(abs(low), abs(high)))
        colors = ListedColormap(colors(shares), colors.name)
    colors = colors.with_extremes(bad=NO_VALUE)
    ends = [["neither", "max"], ["min", "both"]]
    colors.colorbar_extend = ends[lowest < low][highest > high]
    return ScalarMappable(Normalize(low, high, clip=True), colors)


def region_colors(values: np.ndarray, scale: ScalarMappable) -> np.ndarray:
    """Return RGBA of every region (n_rois + 1, 4); the last, -1, is of no region."""
    return np.vstack([scale.to_rgba(values), to_rgba(NO_REGION)])


def _plot_views(  # noqa: C901 (straight, from texts to views)
    page: Any, atlas: Atlas, pictures: Any, labels: Any, smallest: float
) -> Any:
    """Draw one row a map and one column a view, laid out in mm.

    `labels` are of the regions to outline. Views smaller than `smallest` stand on
    several lines; in a figure that is given, all do if that makes them larger.
    """
    maps, scales, (title, bar_labels), (width, height), figure = page
    smallest = smallest if figure is None else np.inf
    drawn = sorted({k for p in pictures.values() for k in p.centres})
    greys = maps.iloc[drawn].isna().to_numpy().reshape(-1, len(scales)).any(axis=0)
    top = 2 + bool(title) * (1 + 4.0 * (1 + title.count("\n")))
    marks = _label_table(pictures, labels)
    splits = [_lines(pictures, n) for n in range(len(pictures), 0, -1)]
    # of every number of lines, the split whose longest line has fewest views
    lines = {one[-1]: one for one in splits}.values()
    ends = {"top": "min", "bottom": "max"}
    tall, talls = UPRIGHT, UPRIGHT - 5 * greys
    for again in range(5):  # upright texts are as long as rows, which they leave room
        names, asked = [_wrap(name, tall * 7 / 8) for name in maps], tall
        bars = [_wrap(*one) for one in zip(bar_labels, talls + 3, strict=True)]
        left, right = _margins(names, bars, scales)
        right = max(right, 18.0 * greys.any())
        room = width - left - right, height - top
        found = [_arrange(x, pictures, marks, maps.shape[1], room) for x in lines]
        best = max(found, key=lambda one: (one.fits, min(one.unit, smallest)))
        of_map = best.rows.groupby("map").agg(ends)
        tall = (of_map["bottom"] - of_map["top"]).min()
        spans = of_map.groupby(of_map.index % len(scales)).agg(ends).to_numpy()
        talls = np.minimum(np.ptp(spans, axis=1) - 5 * greys, TALLEST_BAR)
        if again and tall >= asked:
            break
    unit, long, views, rows = best.unit, best.long, best.views, best.rows
    needed = top + best.height
    if figure is None:
        figure, height = new_figure(width, needed), needed
    left += (width - left - right - long) / 2
    size, start = np.array([width, height] * 2), (height + needed) / 2 - top + 2
    for row in rows.itertuples():
        title_of_map, y = maps.columns[row.map], start - row.bottom
        edges = y - row.foot - 0.6, y + unit * row.tall + 0.6
        data = maps[title_of_map], scales[row.map % len(scales)]
        for view in views[views["line"] == row.line].itertuples():
            rise = unit * (row.tall - view.tall) / 2
            box = left + view.x, y + rise, unit * view.wide, unit * view.tall
            axes = figure.add_axes(box / size, label=view.Index)
            axes.set_axis_off()
            gid = f"{title_of_map}.{view.Index}".strip(".")
            _draw_view(atlas, axes, pictures[view.Index], gid, data, labels.keys())
            for x, letter in enumerate(view.letters):
                style: Any = {"ha": ("left", "right")[x], "va": "top"}
                axes.text(x, 0, letter, transform=axes.transAxes, **style)
            for some in best.labels[view.Index]:
                _write_labels(some, axes, left, edges, size)
            if row.titled:
                style = {"pad": 3 + (rise + row.room) * 72 * MM, "fontsize": 7}
                axes.set_title(view.Index.capitalize(), **style)
    for name, middle in zip(names, of_map.mean(axis=1), strict=True):
        at = (left - 2 - 1.7 * name.count("\n")) / width, (start - middle) / height
        figure.text(*at, name, rotation=90, ha="center", va="center", fontsize=8)
    middles = start - (spans.sum(axis=1) - 5 * greys) / 2
    each = zip(scales, bars, talls, greys, middles, strict=True)
    for scale, label, tall, grey, middle in each:
        box = left + long + 2, middle - tall / 2, 2.3, tall
        cax = figure.add_axes(box / size, label="colour bar")
        _color_bar(cax, scale, label, tall, grey)
    style = {"fontsize": 9, "ha": "center", "va": "top", "parse_math": True}
    figure.text(0.5, (start + top - 4) / height, title, **style)
    return figure


def _margins(names: Any, bars: Any, scales: Any) -> tuple[float, float]:
    """Return the mm that names of maps take at the left, and bars at the right."""
    left = 4.5 + 3.4 * max(name.count("\n") for name in names) if any(names) else 0.0
    drawn = [form.format(x=x) for xs, form in map(_ticks, scales) for x in xs]
    long = max(_length(one.replace("-", "\N{MINUS SIGN}")) for one in drawn)
    beside = max(3.0 * (bool(one) + one.count("\n") + _is_short(one)) for one in bars)
    return left, max(14.0, 7.4 + 1.1 * long) + beside  # letters on a screen are wider


def _lines(views: Iterable[str], per_line: int) -> tuple[int, ...]:
    """Return on which line each view stands; left and right of a pair are together."""
    lines: list[int] = []
    for _, pair in groupby(views, lambda view: view.split()[0]):
        n, last = len([*pair]), lines[-1] if lines else 0
        is_full = lines and lines.count(last) + n > per_line
        lines += [last + bool(is_full)] * n
    return tuple(lines)


def _arrange(line: Any, pictures: Any, marks: Any, n_maps: int, most: Any) -> Any:
    """Return a layout for views on these lines, at most so wide and tall; in mm.

    `unit` is the height of views of height 1, `height` that of all lines, `long` their
    length; `rows` are the lines of every map, down from the top; `labels` those above
    and below every view; every title and label `fits`, or not.
    """
    sides = [[side for side, _ in VIEWS.get(v, VIEWS["dorsal"])[0]] for v in pictures]
    views = pd.DataFrame({"line": line}, index=[*pictures])
    views["tall"] = [0.8 if view.startswith(SIDEWAYS) else 1.0 for view in pictures]
    views["wide"] = views["tall"] * [p.width / p.height for p in pictures.values()]
    views["gap"] = GAP + 3.0 * (views.index == "subcortex")
    views["letters"] = [one if len(one) > 1 else [] for one in sides]
    views["foot"] = 2.0 * views["letters"].astype(bool)
    kinds = {"tall": "max", "wide": "sum", "gap": "sum", "foot": "max"}
    lines = views.groupby("line").agg(kinds)
    titles = [_length(view) + 1 for view in pictures]
    unit = max(TALLEST_VIEW, TALLEST_ROW / (len(lines) * n_maps))
    unit = min(unit, *((most[0] - lines["gap"]) / lines["wide"]))
    for _ in range(3):  # less tall views are less wide, and leave labels less room
        columns = np.maximum(unit * views["wide"] + views["gap"], titles)
        of_line = columns.groupby(views["line"])
        longest = of_line.sum().max()
        long = min(longest, most[0])
        columns += (long - of_line.transform("sum")) / of_line.transform("size")
        end = columns.groupby(views["line"]).cumsum()
        spare = columns - unit * views["wide"] - views["gap"]
        views["x"] = end - spare / 2 - unit * views["wide"]
        lines[["room", "below"]], fits = 0.0, longest <= most[0] + 0.1
        labels: Any = {view: [] for view in pictures}
        for (view, side), some in marks.groupby(["view", "side"]):
            at = views.at[view, "x"] + unit * views.at[view, "wide"] * some["x"]
            begin = end[view] - columns[view] + 1
            placed = _place_labels(some.assign(at=at), begin, end[view])
            labels[view].append(placed)
            fits &= placed["fits"].all()
            where = views.at[view, "line"], "room" if side > 0 else "below"
            need = LABEL * placed["top"].max() + 0.8
            lines.loc[where] = max(lines.loc[where], need)
        rows = pd.concat([lines] * n_maps, keys=range(n_maps), names=["map"])
        rows = rows.reset_index()
        rows["titled"] = (rows["map"] == 0) | (len(lines) > 1)
        fixed = rows["room"] + rows["foot"] + rows["below"]
        fixed += np.where(rows["titled"], HEAD, 2)
        is_next = (rows["map"] > 0) & ~rows["map"].duplicated() & (len(lines) > 1)
        fixed += BETWEEN * is_next
        bottom = (fixed + unit * rows["tall"]).cumsum()
        if bottom.iat[-1] <= most[1] + 0.1:
            break
        unit = max(1.0, (most[1] - fixed.sum()) / rows["tall"].sum())
    rows["bottom"] = bottom - rows["foot"] - rows["below"]
    rows["top"] = rows["bottom"] - unit * rows["tall"]
    found = {"unit": unit, "height": bottom.iat[-1], "long": long, "views": views}
    return SimpleNamespace(**found, rows=rows, labels=labels, fits=fits)


def _place_labels(some: pd.DataFrame, begin: float, end: float) -> pd.DataFrame:
    """Place labels of a view between two ends, each from its line to the right.

    Those of regions farther to the right stand nearer to the view, so that lines to
    the others pass them at the left. From labels beside the view lines go straight.
    """
    some = some.sort_values("at")
    step = STEP * np.arange(len(some))
    room = end - begin - step
    text = [_wrap(*one) for one in zip(some["text"], room - LETTER, strict=True)]
    wide = np.array([max(map(_length, one.split("\n"))) + 1 for one in text])
    x = np.minimum(some["at"], end - wide).to_numpy() - step
    x = np.minimum.accumulate(x[::-1])[::-1].clip(min=begin) + step
    up, top = np.zeros((2, len(some)))
    for k in reversed(range(len(some))):
        up[k] = max(top[k + 1 :][x[k + 1 :] < x[k] + wide[k]], default=0)
        top[k] = up[k] + 1 + text[k].count("\n")
    line = np.where(up == 0, some["at"].clip(x, x + wide), x)
    found = {"text": text, "at": x, "wide": wide, "line": line, "up": up, "top": top}
    return some.assign(**found, fits=wide <= room)


def _ticks(scale: Any) -> tuple[Any, str]:
    """Return where a bar has ticks, and their format: plain, with as many decimals.

    Of very small and very large numbers 1e-06.
    """
    low, high = scale.get_clim()
    if high - low == scale.cmap.N:  # a colour for each whole number
        return np.arange(low + 0.5, high), "{x:.0f}"
    ticks = MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    if not 1e-4 <= np.abs(ticks).max() < 1e6:
        return ticks, "{x:.3g}"
    step = ticks[1] - ticks[0]
    told = np.format_float_positional(step, 6, fractional=False, trim="-")
    return ticks, f"{{x:z.{len(told.partition('.')[2])}f}}"


def _color_bar(cax: Any, scale: Any, label: str, long: float, any_grey: bool) -> None:
    """Draw the bar, `long` mm, and below it the colour of no value."""
    ticks, form = _ticks(scale)
    cax.figure.colorbar(scale, cax=cax, ticks=ticks, format=form, label=label)
    cax.yaxis.label.set_parse_math(True)
    if _is_short(label):  # upright: a turned "t" looks like a plus
        cax.yaxis.label.set(rotation=0, ha="left", va="center")
    if any_grey:
        key: Any = {"facecolor": NO_VALUE, "edgecolor": LINE, "linewidth": 0.5}
        beside: Any = {"transform": cax.transAxes, "clip_on": False}
        cax.add_artist(Rectangle((0, -5 / long), 1, 2.3 / long, **key, **beside))
        cax.text(1.5, -3.9 / long, "no value", va="center", **beside)


def _draw_view(
    atlas: Atlas, axes: Any, picture: RegionPicture, gid: str, data: Any, marked: Any
) -> None:
    """Draw the regions of one view, each with its id; data are values and colours."""
    values, colors = data[0], region_colors(*data)
    names, view, shapes = (*atlas.names, "brain"), axes.get_label(), picture.shapes
    where = Affine2D().scale(1 / picture.width, 1 / picture.height) + axes.transAxes
    order = [*shapes]
    if raster.NO_REGION not in shapes:  # markers; those that stand out lie above others
        kind, across, up = GLASS[view]
        lines, edges = _glass_lines(kind)
        thin: Any = {"edgecolors": edges, "facecolors": "none", "linewidths": 0.5}
        axes.add_collection(PathCollection(lines, **thin), autolim=False)
        axes.set(xlim=across, ylim=up)
        usual = 0 if values.min() < 0 < values.max() else values.median()
        order.sort(key=(values - usual).abs().fillna(-1).to_numpy().__getitem__)
    for place in order:  # -1: all of the brain, below its regions
        # lines at the edge of a view are whole
        style: Any = {"facecolor": colors[place], "edgecolor": LINE, "clip_on": False}
        # no "$", "(" or "²", which ids of XML and CSS cannot hold
        told = re.sub(r"[^\w\s.-]|[²³]", "", f"{gid}.{names[place]}").split()
        style |= {"linewidth": 0.25, "transform": where, "gid": "-".join(told)}
        if place in marked:  # above other regions, below the shade
            style |= {"zorder": 1.5, "path_effects": OUTLINED}
        axes.add_artist(PathPatch(shapes[place], **style))
    if picture.shade is not None:
        axes.imshow(picture.shade, extent=(0, 1, 0, 1), zorder=2, aspect="auto")
    style = {"ha": "right", "va": "center", "rotation": 90, "fontsize": 6}
    tall = axes.bbox.height / axes.figure.dpi / MM * (view == "subcortex")
    words = SIDEWAYS[:2] if tall > 17 else ("lat.", "med.") if tall > 9 else ()
    for k, word in enumerate(words):
        axes.text(-0.01, 0.75 - k / 2, word, **style)


@lru_cache
def _glass_lines(kind: str) -> tuple[list[Shape], list[Any]]:
    """Return the lines of nilearn's glass brain, in mm, and their colours."""
    from nilearn.plotting.displays import GlassBrainAxes

    axes = Figure().add_subplot()
    GlassBrainAxes(axes, kind, 0)
    lines, edges = list[Shape](), list[Any]()
    for one in axes.patches:
        in_mm = one.get_transform() - axes.transData
        lines.append(in_mm.transform_path(one.get_path()))
        edges.append(one.get_edgecolor())
    return lines, edges


def _glass_picture(atlas: Atlas, view: str) -> RegionPicture:
    """Return which markers a view of the glass brain shows."""
    centres, (kind, across, up) = atlas.coordinates, GLASS[view]
    x, y, z = centres.T
    axes = {"z": (x, y, z), "y": (x, z, -y), "l": (y, z, -x), "r": (y, z, x)}
    right, high, near = axes[kind]
    shown = np.isfinite(centres).all(axis=1) & ((near >= 0) | (kind not in "lr"))
    places = np.flatnonzero(shown).tolist()
    spots = {k: (abs(right[k] - across[0]), high[k] - up[0]) for k in places}
    shapes = {k: Shape.circle(x_y, 0.0275 * np.ptp(up)) for k, x_y in spots.items()}
    free = dict.fromkeys(places, 1 / max(1, len(places)))  # of other markers
    return RegionPicture(np.ptp(across), np.ptp(up), shapes, free, spots, None)


def _label_table(pictures: Any, labels: Any) -> pd.DataFrame:
    """Return every label with the spot that it is of.

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
        rows.append((view, text, x, y, side))
    return pd.DataFrame(rows, columns=["view", "text", "x", "y", "side"])


def _write_labels(
    some: pd.DataFrame, axes: Any, left: float, edges: Any, size: Any
) -> None:
    """Write labels above or below a view, whose edges are given; all in mm."""
    line: Any = {"arrowstyle": "-", "linewidth": 0.6, "path_effects": HALO}
    style: Any = {"bbox": {"fc": "white", "ec": "none", "pad": 0.5}}
    style |= {"xycoords": "axes fraction", "textcoords": "subfigure fraction"}
    for one in some.itertuples():
        x, near = (left + one.line) / size[0], edges[one.side > 0]
        bend = partial(_bent, axes.figure.transSubfigure, (x, near / size[1]))
        start = (one.line - one.at) / one.wide, 0.5 - one.side / 2
        line |= {"relpos": start, "connectionstyle": bend}
        style["va"] = "bottom" if one.side > 0 else "top"
        up = (near + one.side * LABEL * one.up) / size[1]
        place = (left + one.at) / size[0], up
        axes.annotate(one.text, (one.x, one.y), place, arrowprops={**line}, **style)


def _bent(transform: Any, middle: Any, start: Any, end: Any, **_: Any) -> Shape:
    """Return a line from a label straight to its middle, and on to a region."""
    return Shape([start, transform.transform(middle), end])


def _is_short(label: str) -> bool:
    """Return whether a label has three letters at most, in math each sign as one."""
    return len(re.sub(r"(\\)[a-z]+|[${}^_]", r"\1", label)) <= 3


@lru_cache(maxsize=4096)
def _length(text: str) -> float:
    """Return how many mm a line of 7 points is long, and the dot behind it."""
    return TextPath((0, 0), f"{text}.", 7).vertices[:, 0].max() / (72 * MM)


def _wrap(text: str, width: float) -> str:
    """Break a text into lines of at most so many mm, but none within its math."""
    text = re.sub(r"\$[^$]*\$", lambda math: math[0].replace(" ", "\0"), text)
    most = max(8, int(width / LETTER))
    return textwrap.fill(text, most, break_long_words=False).replace("\0", " ")


def _plot_dots(page: Any) -> tuple[Any, str]:
    """Draw a dot for each region that stands out in a map; say how many do not."""
    maps, scales, (title, bars), (width, _), figure = page
    known = maps.dropna(how="all")
    is_signed = (known.min() < 0) & (known.max() > 0)
    apart = (known - known.median().mask(is_signed, 0)).abs()
    ranks = apart.rank(ascending=False).min(axis=1)
    kept = ranks.sort_values(kind="stable").index[:MOST_DOTS]
    n = len(ranks) - len(kept)
    note = f"{n} of {len(ranks)} regions stand out least and are left out." if n else ""
    table = maps.loc[kept].sort_values([*maps])
    most = max(30, int(0.4 * width / LETTER))
    names = [shortened(one, most) for one in table.index]
    figure = figure or new_figure(width, 22 + 3.6 * len(names), layout="constrained")
    shape: Any = {"sharex": len(scales) == 1, "sharey": True, "squeeze": False}
    panels = figure.subplots(1, table.shape[1], **shape)[0]
    for k, (axes, (name, values)) in enumerate(zip(panels, table.items(), strict=True)):
        colors = scales[k % len(scales)].to_rgba(values.to_numpy())
        rows = range(len(names))
        axes.scatter(values, rows, 20, colors, edgecolors=LINE, lw=0.4, zorder=3)
        name_rows(axes, names)
        axes.set_title(_wrap(name, UPRIGHT))
        if values.min() < 0 < values.max():
            axes.axvline(0, color=LINE, linewidth=0.5)
        axes.set_xlabel(bars[k] if len(bars) > 1 else "", parse_math=True)
    figure.suptitle(title, fontsize=9, parse_math=True)
    below = [*(bars if len(bars) == 1 else ""), _wrap(note, width - 4)]
    figure.supxlabel("\n".join(filter(None, below)), fontsize=7, parse_math=True)
    return figure, note
