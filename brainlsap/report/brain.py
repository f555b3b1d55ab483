"""One value per region drawn on cortex and subcortex, by region name."""

import textwrap
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, ListedColormap, Normalize, to_rgba
from matplotlib.figure import Figure, SubFigure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path as Shape
from matplotlib.patheffects import Normal, Stroke, withStroke
from matplotlib.pyplot import get_cmap
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Affine2D
from sklearn.isotonic import IsotonicRegression

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.evaluation import Evaluation
from brainlsap.exceptions import BrainlsapError, ParameterError, check_choice
from brainlsap.report import brain_raster as raster
from brainlsap.report.brain_raster import VIEWS, RegionPicture
from brainlsap.report.figures import MM, PAGE, new_figure, styled
from brainlsap.report.plots import QUARTERS, bare, scales_in_training
from brainlsap.report.tables import shortened

NO_VALUE, NO_REGION, LINE = "#b4b4b4", "#ededed", "#2b2b2b"
SIDEWAYS = ("lateral", "medial", "posterior")
DIVERGING = (  # as matplotlib's list of them, and nilearn's
    *("PiYG", "PRGn", "BrBG", "PuOr", "RdGy", "RdBu", "RdYlBu", "RdYlGn", "Spectral"),
    *("coolwarm", "bwr", "seismic", "berlin", "managua", "vanimo"),
    *("cold_hot", "cold_white_hot", "blue_red"),
)
MOST_DOTS = 40
SMALLEST, TALLEST, TALLEST_ROW, TALLEST_BAR = 13.5, 48.0, 140.0, 43.0
"""Smaller views stand on more lines; of many rows, of one, of colour bars; in mm."""
HEAD, GAP, LETTER, LABEL, UPRIGHT = 6.0, 2.0, 1.35, 3.2, 21.0
"""Of titles, between views, a letter of 7 points, labels, upright lines; in mm."""

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


def plot_regions(
    values: Any,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    title: str | None = None,
    cmap: str | Colormap | None = None,
    vmin: float | None = None,
    vmax: float | None = None,
    shared_scale: bool = True,
    views: str | Sequence[str] = "all",
    colorbar_label: str | Sequence[str] | None = None,
    outline: str | Sequence[str] | Mapping[str, str] = (),
    width: float = PAGE,
    figure: Figure | SubFigure | None = None,
) -> Figure | SubFigure:
    """Draw one value per region on cortex and subcortex: the seven-view figure.

    On the inflated cortex (fsaverage5) colours are flat, so that each of them stands on
    the colour bar; the subcortex is lit from the viewer, and there it is the colour of
    what faces the viewer that stands on the bar. Where a region is seen less than 1 mm
    wide, a view gives it to its neighbour. An atlas without surfaces is drawn as
    markers at the regions' coordinates (:func:`export_maps` writes an image, which
    nilearn's `plot_stat_map` draws), one without these as a dot a line.

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
        "RdBu_r". For these, the middle of any map that matplotlib or nilearn lists as
        diverging is at 0 (nilearn's are known by name after `import nilearn.plotting`).
    vmin, vmax : float, optional
        Values of the first and last colour; by default the smallest and largest of all
        maps, and symmetric about 0 where colours diverge there (one that is given is
        mirrored, two are kept). Values beyond get
        the end colours, and the bar says so.
    shared_scale : bool
        False: colours and a bar for every map of several.
    views : "all", str or sequence of str
        Columns: "dorsal", "ventral", "lateral left", "lateral right", "medial left",
        "medial right", "subcortex"; "lateral" and "medial" are both sides. Markers are
        seen "dorsal", "posterior", "lateral left" and "lateral right". Where they would
        be too small for their titles, they stand on several lines. "all" leaves out a
        subcortex of which no region has a value, and the note says so.
    colorbar_label : str or sequence of str, optional
        What the values are, with their unit; a sequence: of every map's own bar.
    outline : str, sequence of str, or mapping of str to str
        Regions with a thick outline, or ring around the marker; a mapping has a label
        for each as well.
    width : float
        In mm, from 60 to 400, such as 85 (one column of a journal) or 180 (two);
        letters keep their size. Rows are at most 140 mm tall: few views in a wide
        figure have white beside them.
    figure : Figure or SubFigure, optional
        Where to draw, in place of `width`, on as many lines as make views largest;
        beside axes, one of `fig.subfigures(1, 2)`. Size and what is said below of
        files are then yours: `plt.rcParams["pdf.fonttype"] = 42`, `savefig(dpi=300)`.

    Returns
    -------
    Figure
        Of pyplot. Saved, it has 300 dpi, text as text (PDF: TrueType, no letter below
        6 points), and in SVG an id for every region or marker: its name, after map and
        view. Its attribute `note` is for the caption: what stands in for surfaces, and
        which values or outlines were not drawn (of which a warning says so, too).
        `bbox_inches="tight"` would change the width.

    Raises
    ------
    RegionNameError
        If a name is unknown, or a region has two values.
    ParameterError
        If there is nothing to draw, or a value, view, limit or width cannot be used.
    """
    if not (pd.api.types.is_number(width) and 60 <= width <= 400):
        raise ParameterError(
            "width must be a number from 60 to 400, in mm, such as 85 (one column of a "
            f"journal) or 180 (two); got {width!r}."
        )
    if not isinstance(figure, Figure | SubFigure | None):
        raise ParameterError("figure must be a Figure, or one of fig.subfigures(1, 2).")
    atlas = load_atlas(atlas)
    maps = region_maps(values, atlas)
    parts = [maps] if shared_scale else [maps[[name]] for name in maps]
    scales = [color_scale(part, cmap, vmin, vmax) for part in parts]
    asked = [outline] if isinstance(outline, str) else outline
    marked = asked if isinstance(asked, Mapping) else dict.fromkeys(asked, "")
    labels = dict(zip(atlas.match(list(marked)).tolist(), marked.values(), strict=True))
    located, note = np.isfinite(atlas.coordinates).all(axis=1), ""
    shown: dict[str, RegionPicture] = {}
    said: Any = colorbar_label or ""
    bars = [said] * len(scales) if isinstance(said, str) else [*said]
    if len(bars) != len(scales):
        told = f"there are {len(bars)} for {len(scales)} colour bars"
        raise ParameterError(f"colorbar_label: {told} (shared_scale=False: one a map).")
    page = maps, scales, (title or "", bars), width, figure
    # For want of width, small numbers as 2.5 with "1e-4" above.
    with styled(**{"axes.formatter.limits": (-2, 4)}):
        if atlas.has_surfaces:
            below = atlas.match(list(atlas.meshes()))
            is_drawn = views != "all" or maps.iloc[below].notna().any(axis=None)
            seen = [v for v in VIEWS if v != "subcortex" or (len(below) and is_drawn)]
            if not is_drawn and len(below):
                note = "No subcortical region has a value: the subcortex is not drawn."
            shown = {v: raster.region_picture(atlas, v) for v in _views(views, seen)}
            drawing = _plot_views(page, atlas, shown, labels, SMALLEST)
            cortex = [atlas.vertex_labels(side) for side in "LR"]
            located = np.isin(np.arange(len(atlas)), np.concatenate([below, *cortex]))
        elif located.any():
            note = f"Atlas {atlas.name} has no surfaces: markers at regions' centres; "
            note += "export_maps writes images, for nilearn's plot_stat_map."
            shown = {v: _glass_picture(atlas, v) for v in _views(views, [*GLASS])}
            drawing = _plot_views(page, atlas, shown, labels, 1.4 * SMALLEST)
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
    groups = {n: [v for v in seen if v.startswith(n)] for n in names} | {"all": seen}
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
    options = {"colorbar_label": "relative heat scale", **options}
    atlas = atlas or find_atlas(evaluation) or evaluation.cohort.atlas_name
    figure: Any = plot_regions(maps, atlas, **options)
    if is_still:
        told = f"Training changed no relative scale by more than {change:.2g}: quarters"
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
            raise ParameterError(f"values must be numbers ({error}).") from error
        found[str(title)] = full
    for title in found.columns[np.isinf(found).any() | found.isna().all()]:
        at = found.index[np.isinf(found[title])].tolist()[:5] or "every region"
        raise ParameterError(f"values {title}: no value, or an infinite one, in {at}.")
    return found


def color_scale(
    maps: pd.DataFrame, cmap: Any, vmin: float | None, vmax: float | None
) -> ScalarMappable:
    """Return the colours of all maps; their bar says where values are beyond it."""
    lowest, highest = float(maps.min(axis=None)), float(maps.max(axis=None))
    spare = 0.5 * (abs(lowest) or 1.0) * (lowest == highest)
    low = lowest - spare if vmin is None else float(vmin)
    high = highest + spare if vmax is None else float(vmax)
    if not (np.isfinite([low, high]).all() and low < high):
        raise ParameterError(f"vmin must be less than vmax, got {low:g} and {high:g}.")
    colors: Any = get_cmap(cmap or ("RdBu_r" if low < 0 < high else "viridis"))
    diverges = colors.name.removesuffix("_r") in DIVERGING
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


def _plot_views(
    page: Any, atlas: Atlas, pictures: Any, labels: Any, smallest: float
) -> Any:
    """Draw one row a map and one column a view, laid out in mm.

    `labels` are of the regions to outline. Views smaller than `smallest` stand on
    several lines; in a figure that is given, all do if that makes them larger.
    """
    maps, scales, (title, _), width, figure = page
    drawn = sorted({k for p in pictures.values() for k in p.centres})
    any_grey = maps.iloc[drawn].isna().any(axis=None)
    marks, height, n = _label_table(pictures, labels), np.inf, len(pictures)
    if figure is not None:
        width, height = figure.bbox.size / figure.get_figure(root=True).dpi / MM
        smallest = np.inf
    what = page, pictures, marks, (width, height), any_grey
    found = [_arrange(per_line, *what) for per_line in (n, (n + 1) // 2, 2)]
    best = max(found, key=lambda one: min(one[0], smallest))
    unit, needed, left, long, names, bars, views, rows = best
    if figure is None:
        figure, height = new_figure(width, needed), needed
    size, start = np.array([width, height] * 2), (height + needed) / 2 - 5 * bool(title)
    for row in rows.itertuples():
        title_of_map, y, seen = maps.columns[row.map], start - row.bottom, {}
        colors = region_colors(maps[title_of_map], scales[row.map % len(scales)])
        for view in views[views["line"] == row.line].itertuples():
            rise = unit * (row.tall - view.tall) / 2
            box = left + view.x, y + rise, unit * view.wide, unit * view.tall
            axes = seen[view.Index] = figure.add_axes(box / size, label=view.Index)
            axes.set_axis_off()
            gid = "-".join(f"{title_of_map}.{view.Index}".strip(".").split())
            _draw_view(atlas, axes, pictures[view.Index], gid, colors, labels.keys())
            for x, letter in enumerate(view.letters):
                style: Any = {"ha": ("left", "right")[x], "va": "top"}
                axes.text(x, 0, letter, transform=axes.transAxes, **style)
            if row.titled:
                style = {"pad": 3 + (rise + row.room) * 72 * MM, "fontsize": 7}
                axes.set_title(view.Index.capitalize(), **style)
        frame = left, left + long, y - row.foot, y + unit * row.tall
        _write_labels(marks[marks["view"].isin(seen)], seen, frame, size)
    ends = {"top": "min", "bottom": "max"}
    middles = rows.groupby("map").agg(ends).mean(axis=1)
    for name, middle in zip(names, middles, strict=True):
        at = (left - 2 - 1.5 * name.count("\n")) / width, (start - middle) / height
        figure.text(*at, name, rotation=90, ha="center", va="center", fontsize=8)
    spans = rows.groupby(rows["map"] % len(scales)).agg(ends).to_numpy()
    for scale, label, (top, bottom) in zip(scales, bars, spans, strict=True):
        tall = min(TALLEST_BAR, bottom - top - 5 * any_grey)
        middle = start - (top + bottom - 5 * any_grey) / 2
        box = left + long + 2, middle - tall / 2, 2.3, tall
        cax = figure.add_axes(box / size, label="colour bar")
        _color_bar(cax, scale, label, tall, any_grey)
    figure.text(0.5, 1 - 2 / height, title, fontsize=9, ha="center", va="top")
    return figure


def _arrange(
    per_line: int, page: Any, pictures: Any, marks: Any, size: Any, any_grey: bool
) -> tuple[Any, ...]:
    """Return a layout for so many views on a line, in mm, and down from the top.

    The height of views of height 1, and of all; where lines begin and how long they
    are; names of maps and labels of bars, broken; a table of views, and one of the
    lines of every map.
    """
    maps, scales, (title, bars), *_ = page
    sides = [[side for side, _ in VIEWS.get(v, VIEWS["dorsal"])[0]] for v in pictures]
    views = pd.DataFrame({"line": np.arange(len(sides)) // per_line}, index=[*pictures])
    views["tall"] = [0.8 if view.startswith(SIDEWAYS) else 1.0 for view in pictures]
    views["wide"] = views["tall"] * [p.width / p.height for p in pictures.values()]
    views["gap"] = GAP + 3.0 * (views.index == "subcortex")
    views["letters"] = [one if len(one) > 1 else [] for one in sides]
    views["foot"] = 2.0 * views["letters"].astype(bool)
    kinds = {"tall": "max", "wide": "sum", "gap": "sum", "foot": "max"}
    lines = views.groupby("line").agg(kinds)
    largest = max(TALLEST, TALLEST_ROW / (len(lines) * maps.shape[1]))
    names = [_wrap(name, UPRIGHT) for name in maps]
    bars = [_wrap(label, UPRIGHT + 3) for label in bars]
    left = 4.5 + 3.0 * max(name.count("\n") for name in names) if any(names) else 0.0
    ticks = [_ticks(TALLEST_BAR).tick_values(*one.get_clim()) for one in scales]
    letters = max(len(f"{tick:g}") for tick in np.concatenate(ticks).round(12))
    beside = 3.0 * max(bool(label) + label.count("\n") for label in bars)
    right = max(14 + LETTER * max(0, letters - 4) + beside, 18.0 * any_grey)
    unit = min(largest, *((size[0] - left - right - lines["gap"]) / lines["wide"]))
    long = (unit * lines["wide"] + lines["gap"]).max()
    of_line = marks.groupby([marks["view"].map(views["line"]), "side"])["width"]
    n = of_line.agg(_n_rows, long).unstack().reindex(lines.index, columns=[1, -1])
    n = n.fillna(0).to_numpy(float)
    lines[["room", "below"]] = LABEL * n + 0.8 * (n > 0)
    rows = pd.concat([lines] * len(names), keys=range(len(names)), names=["map"])
    rows = rows.reset_index()
    rows["titled"] = (rows["map"] == 0) | (len(lines) > 1)
    fixed = rows["room"] + rows["foot"] + rows["below"]
    fixed += np.where(rows["titled"], HEAD, 2)
    rest = 2 + 5 * bool(title)
    unit = min(unit, (size[1] - rest - fixed.sum()) / rows["tall"].sum())
    end = (fixed + unit * rows["tall"]).cumsum()
    rows["bottom"] = end - rows["foot"] - rows["below"]
    rows["top"] = rows["bottom"] - unit * rows["tall"]
    widths = unit * views["wide"] + views["gap"]
    of_line = widths.groupby(views["line"])
    long = of_line.sum().max()
    widths += (long - of_line.transform("sum")) / (1 + of_line.transform("size"))
    views["x"] = widths.groupby(views["line"]).cumsum() - unit * views["wide"]
    left += (size[0] - left - long - right) / 2
    return unit, rest + end.iloc[-1], left, long, names, bars, views, rows


def _ticks(long: float) -> MaxNLocator:
    """Return where a bar of so many mm has ticks."""
    return MaxNLocator(6 if long > 18 else 4, steps=[1, 2, 2.5, 5, 10])


def _color_bar(cax: Any, scale: Any, label: str, long: float, any_grey: bool) -> None:
    """Draw the bar, `long` mm, and below it the colour of no value."""
    cax.figure.colorbar(scale, cax=cax, ticks=_ticks(long), label=label)
    cax.yaxis.set_offset_position("left")  # above the bar, and not left of it
    if any_grey:
        key: Any = {"facecolor": NO_VALUE, "edgecolor": LINE, "linewidth": 0.5}
        beside: Any = {"transform": cax.transAxes, "clip_on": False}
        cax.add_artist(Rectangle((0, -5 / long), 1, 2.3 / long, **key, **beside))
        cax.text(1.5, -3.9 / long, "no value", va="center", **beside)


def _draw_view(
    atlas: Atlas, axes: Any, picture: RegionPicture, gid: str, colors: Any, marked: Any
) -> None:
    """Draw the regions of one view, each with its id."""
    names, view = (*atlas.names, "brain"), axes.get_label()
    where = Affine2D().scale(1 / picture.width, 1 / picture.height) + axes.transAxes
    if raster.NO_REGION not in picture.shapes:  # markers
        from nilearn.plotting.displays import GlassBrainAxes

        kind, across, up = GLASS[view]
        GlassBrainAxes(axes, kind, 0, linewidth=0.5)
        axes.set(xlim=across, ylim=up)
    for place, shape in picture.shapes.items():  # -1: all of the brain, below them
        style: Any = {"facecolor": colors[place], "edgecolor": LINE, "linewidth": 0.25}
        style |= {"transform": where, "gid": f"{gid}.{names[place]}"}
        if place in marked:  # above other regions, below the shade
            style |= {"zorder": 1.5, "clip_on": False, "path_effects": OUTLINED}
        axes.add_artist(PathPatch(shape, **style))
    if picture.shade is not None:
        axes.imshow(picture.shade, extent=(0, 1, 0, 1), zorder=2, aspect="auto")
    style = {"ha": "right", "va": "center", "rotation": 90, "fontsize": 6}
    is_small = axes.bbox.height / axes.figure.dpi < 16 * MM
    words = ("lat.", "med.") if is_small else SIDEWAYS[:2]
    for k, word in enumerate(words if view == "subcortex" else ()):
        axes.text(-0.01, 0.75 - k / 2, word, **style)


def _glass_picture(atlas: Atlas, view: str) -> RegionPicture:
    """Return which markers a view of the glass brain shows, the nearest last."""
    centres, (kind, across, up) = atlas.coordinates, GLASS[view]
    x, y, z = centres.T
    places = {"z": (x, y, z), "y": (x, z, -y), "l": (y, z, -x), "r": (y, z, x)}
    right, high, near = places[kind]
    shown = np.isfinite(centres).all(axis=1) & ((near >= 0) | (kind not in "lr"))
    order = [place for place in np.argsort(near).tolist() if shown[place]]
    spots = {k: (abs(right[k] - across[0]), high[k] - up[0]) for k in order}
    shapes = {k: Shape.circle(x_y, 0.0275 * np.ptp(up)) for k, x_y in spots.items()}
    free = dict.fromkeys(order, 1 / max(1, len(order)))  # of other markers
    return RegionPicture(np.ptp(across), np.ptp(up), shapes, free, spots, None)


def _label_table(pictures: Any, labels: Any) -> pd.DataFrame:
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


def _n_rows(widths: pd.Series, long: float) -> int:
    """Return how many rows of so many mm labels need."""
    return int(np.ceil(1.1 * widths.sum() / long))


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
        n, wide = _n_rows(some["width"], right - left), some["width"]
        # of several rows, lines of the far ones go straight between labels of the near
        both = wide.rolling(2)
        apart = (both.max() if n > 1 else both.sum()) / 2
        begin = apart.fillna(wide.iloc[0] / 2).cumsum().to_numpy()
        last = max(left, right - begin[-1] - wide.iloc[-1] / 2)
        fit = IsotonicRegression(y_min=left, y_max=last).fit_transform
        x = (begin + fit(np.arange(len(some)), some["at"] - begin)) / size[0]
        style["va"] = "bottom" if step > 0 else "top"
        line["relpos"] = 0.5, 0.5 - step / 2
        for k, one in enumerate(some.itertuples()):
            near, to = edges[step > 0] + 0.6 * step, axes[one.view]
            bend = partial(_bent, to.figure.transSubfigure, (x[k], near / size[1]))
            place = x[k], (near + step * LABEL * (k % n)) / size[1]
            style["arrowprops"] = {**line, "connectionstyle": bend}
            to.annotate(one.text, (one.x, one.y), place, **style)


def _bent(transform: Any, middle: Any, start: Any, end: Any, **_: Any) -> Shape:
    """Return a line from a label straight to its middle, and on to a region."""
    return Shape([start, transform.transform(middle), end])


def _wrap(text: str, width: float) -> str:
    """Break a text into lines of at most so many mm."""
    return textwrap.fill(text, max(8, int(width / LETTER)), break_long_words=False)


def _plot_dots(page: Any) -> Any:
    """Draw a dot a region in the order of the first map, one column a map."""
    maps, scales, (title, bars), width, figure = page
    table = maps.dropna(how="all").sort_values(maps.columns[0], kind="stable")
    n, half = len(table) - MOST_DOTS, MOST_DOTS // 2
    if n > 0:
        between = pd.DataFrame(np.nan, [f"({n} between)"], table.columns)
        table = pd.concat([table.head(half), between, table.tail(half)])
    names = [shortened(one, max(30, int(0.4 * width / LETTER))) for one in table.index]
    rows = np.arange(len(names))
    figure = figure or new_figure(width, 22 + 3.6 * len(names), layout="constrained")
    shape: Any = {"sharex": True, "sharey": True, "squeeze": False}
    panels = figure.subplots(1, table.shape[1], **shape)[0]
    for k, (axes, (name, values)) in enumerate(zip(panels, table.items(), strict=True)):
        colors = scales[k % len(scales)].to_rgba(values.to_numpy())
        axes.hlines(rows, 0, 1, "#e4e4e4", lw=0.6, transform=axes.get_yaxis_transform())
        axes.scatter(values, rows, s=20, c=colors, edgecolors=LINE, lw=0.4, zorder=3)
        axes.set_yticks(rows, names)
        axes.set(ylim=(len(names) - 0.5, -0.5), title=_wrap(name, UPRIGHT))
        if values.min() < 0 < values.max():
            axes.axvline(0, color=LINE, linewidth=0.5)
        bare(axes)
        axes.set_xlabel(bars[k] if len(bars) > 1 else "")
    figure.suptitle(title, fontsize=9)
    figure.supxlabel(bars[0] if len(bars) == 1 else "", fontsize=7)
    return figure
