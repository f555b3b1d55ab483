"""One value per region drawn on cortex and subcortex, by region name."""

import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

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

Maps: TypeAlias = pd.DataFrame
"""A row a region of the atlas, and a column a map, by title."""

Texts = tuple[str, str]
"""Title, and label of the colour bar."""

NO_VALUE, NO_REGION, LINE = "#b4b4b4", "#ededed", "#2b2b2b"
SIDEWAYS = ("lateral", "medial")
NARROW = 130.0
"""Below this width, in mm, more than four views stand on two lines."""
NARROWEST, WIDEST = 60, 400
MOST_DOTS = 40
TALLEST, TALLEST_BAR, HEAD, GAP, LETTER = 48.0, 43.0, 6.0, 2.0, 1.35
"""Of a row, the colour bar, titles, between views, a letter of 7 points; in mm."""


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
    markers at the regions' coordinates, one without these as a dot a line; the figure
    says so.

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
        "medial right", "subcortex"; "lateral" and "medial" are both sides.
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
        Of pyplot. Saved, it has 300 dpi, text as text (PDF: TrueType), and in SVG an
        id for every region: its name, after map and view.

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
    with styled(**{"text.parse_math": False}):  # names are printed as they are
        texts = (title or "", colorbar_label or "")
        if not atlas.has_surfaces:
            located = np.isfinite(atlas.coordinates).any()
            draw = _plot_markers if located else _plot_dots
            return draw(maps, atlas, scale, texts, width, figure)
        labels = (
            outline.values() if isinstance(outline, Mapping) else [""] * len(outline)
        )
        marked = dict(zip(atlas.match(list(outline)).tolist(), labels, strict=True))
        shown = _views(views, atlas)
        return _plot_surfaces(maps, atlas, scale, texts, width, figure, shown, marked)


def _views(asked: str | Sequence[str], atlas: Atlas) -> list[str]:
    """Return views by their full names."""
    seen = [
        one for one in VIEWS if one != "subcortex" or raster.subcortical_meshes(atlas)
    ]
    groups = {"all": seen, **{one: [one] for one in seen}}
    groups |= {one: [f"{one} left", f"{one} right"] for one in SIDEWAYS}
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
    maps: Maps, cmap: Any, vmin: float | None, vmax: float | None
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


def _missing_note(maps: Maps, atlas: Atlas) -> str:
    """Say which regions have a value and no surface to draw it on."""
    drawn = [raster.region_mesh(atlas, side, below=False).region for side in "LR"]
    drawn.append(atlas.match(list(raster.subcortical_meshes(atlas))))
    known = np.flatnonzero(maps.notna().any(axis=1))
    missing = np.setdiff1d(known, np.concatenate(drawn))
    names = ", ".join(atlas.full_names[place] for place in missing)
    return f"Not drawn, for want of a surface: {names}." if names else ""


def _plot_surfaces(
    maps: Maps,
    atlas: Atlas,
    scale: Any,
    texts: Texts,
    width: float,
    figure: Any,
    views: list[str],
    marked: dict[int, str],
) -> Any:
    """Draw one row a map and one column a view, laid out in mm."""
    title, bar_label = texts
    pictures = {view: raster.region_picture(atlas, view) for view in views}
    tall = {view: 0.8 if view.startswith(SIDEWAYS) else 1.0 for view in views}
    wide = {view: tall[view] * one.width / one.height for view, one in pictures.items()}
    gap = {view: GAP + 3 * (view == "subcortex") for view in views}
    half = (len(views) + 1) // 2
    wrapped = width < NARROW and len(views) > 4
    lines = [views[:half], views[half:]] if wrapped else [views]
    names = [_wrap(name, 20) for name in maps]
    any_grey = bool(maps.isna().any(axis=None))
    # beside the bar of a single row there is room for "no value" or for a long line
    bar_label = _wrap(bar_label, 16 if any_grey and len(names) == 1 else 40)
    left = 2 + 3.0 * (1 + max(name.count("\n") for name in names))
    right = 14 + 3.0 * (1 + bar_label.count("\n"))
    head = HEAD + 3 * any(marked.values())  # above each row with titles
    rows = [
        (name * (line is lines[0]), values, line, head if wrapped or not row else 3.0)
        for row, (name, (_, values)) in enumerate(zip(names, maps.items(), strict=True))
        for line in lines
    ]
    note = _wrap(_missing_note(maps, atlas) if len(views) > 5 else "", width - left)
    fixed = sum(row[-1] for row in rows) + 5 * bool(title) + 2
    fixed += 3 * len(note.splitlines()) + 2 * ("subcortex" in views)
    row_tall: Any = max(tall.values())
    unit, height = TALLEST, np.inf
    if figure is not None:
        width, height = figure.bbox.size / figure.get_figure(root=True).dpi / MM
        unit = min(unit, (height - fixed) / (len(rows) * row_tall))
    for line in lines:
        room = width - left - right - sum(gap[view] for view in line)
        unit = min(unit, room / sum(wide[view] for view in line))
    needed = fixed + unit * len(rows) * row_tall
    end = left + max(sum(unit * wide[v] + gap[v] for v in line) for line in lines)
    if figure is None:
        width, height = end + right, needed
        figure = new_figure(width, height)
    size = np.array([width, height] * 2)
    y = (height + needed) / 2 - 5 * bool(title)
    top = y - head
    for name, values, line, above in rows:
        colors = region_colors(values, scale)
        y, x = y - above - unit * row_tall, left
        for view in line:
            x += gap[view]
            below = y + unit * (row_tall - tall[view]) / 2
            box = np.array([x, below, unit * wide[view], unit * tall[view]])
            axes = figure.add_axes(box / size, label=view)
            identity = "-".join(f"{name}.{view}".strip(".").split())
            ids = [f"{identity}.{one}" for one in (*atlas.names, "brain")]
            _draw_view(axes, view, pictures[view], colors, ids)
            _mark(axes, view, pictures, marked)
            if above >= HEAD:
                high, points = (row_tall / tall[view] + 1) / 2, 72 * MM * (head - HEAD)
                axes.set_title(view.capitalize(), y=high, pad=3 + points)
            x += box[2]
        middle = left / 2 / width, (y + unit * row_tall / 2) / height
        figure.text(*middle, name, rotation=90, ha="center", va="center", fontsize=8)
    y += 5 * any_grey
    long = min(TALLEST_BAR, top - y)
    box = np.array([end + 2, (top + y - long) / 2, 2.3, long])
    cax = figure.add_axes(box / size, label="colour bar")
    # Very small and very large numbers as 2.5 with "1e-4" above, for want of width.
    numbers = ScalarFormatter()
    numbers.set_powerlimits((-2, 4))
    ticks = MaxNLocator(int(np.clip(long / 5, 2, 6)), steps=[1, 2, 2.5, 5, 10])
    figure.colorbar(scale, cax=cax, format=numbers, ticks=ticks, label=bar_label)
    cax.yaxis.set_offset_position("left")  # above the bar, and not left of it
    if any_grey:
        key: Any = {"facecolor": NO_VALUE, "edgecolor": LINE, "linewidth": 0.5}
        at: Any = {"transform": cax.transAxes, "clip_on": False}
        cax.add_artist(Rectangle((0, -5 / long), 1, 2.3 / long, **key, **at))
        cax.text(1.5, -3.9 / long, "no value", va="center", **at)
    figure.text(0.5, 1 - 2 / height, title, fontsize=9, ha="center", va="top")
    figure.text(left / width, 1 / height, note)
    return figure


def _draw_view(
    axes: Any, view: str, picture: RegionPicture, colors: np.ndarray, ids: list[str]
) -> None:
    """Draw the regions of one view, each with its id, and say which side is which."""
    for place, shape in picture.shapes.items():  # -1: all of the brain, below them
        style: Any = {"facecolor": colors[place], "edgecolor": LINE}
        axes.add_artist(PathPatch(shape, linewidth=0.25, gid=ids[place], **style))
    width, height = picture.width, picture.height
    if picture.shade is not None:
        axes.imshow(picture.shade, extent=(0, width, 0, height), zorder=2)
    axes.set(xlim=(0, width), ylim=(0, height), aspect="equal")
    axes.set_axis_off()
    below = view == "subcortex"
    if len(VIEWS[view][0]) > 1:  # both hemispheres
        (one, _), (other, _) = VIEWS[view][0]
        y = 0 if below else height  # clear of the caudates
        axes.text(0, y, one, ha="left", va="top")
        axes.text(width, y, other, ha="right", va="top")
    style = {"ha": "right", "va": "center", "rotation": 90}
    style["fontsize"] = min(6.0, 8.6 * axes.bbox.height / axes.figure.dpi)
    for share, name in zip((0.75, 0.25), SIDEWAYS if below else (), strict=False):
        axes.text(-1, share * height, name, **style)


def _mark(
    axes: Any, view: str, pictures: dict[str, RegionPicture], marked: dict[int, str]
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


def _plot_markers(
    maps: Maps, atlas: Atlas, scale: Any, texts: Texts, width: float, figure: Any
) -> Any:
    """Draw markers at the centres of the regions, one row a map."""
    from nilearn.plotting import plot_markers

    title, label = texts
    centres, height = atlas.coordinates, 15 + 37 * maps.shape[1]
    low, high = scale.get_clim()
    style: Any = {"node_cmap": scale.get_cmap(), "node_vmin": low, "node_vmax": high}
    style |= {"node_size": 18, "alpha": 1, "annotate": False, "colorbar": False}
    style["display_mode"] = "lyrz" if width > NARROW else "xz"
    figure = figure or new_figure(width, height)
    for row, (name, values) in enumerate(maps.items()):
        known = (values.notna() & np.isfinite(centres).all(axis=1)).to_numpy()
        bottom = (height - 8 - 37 * (row + 1)) / height
        box = (0.05, bottom, 0.8, 35 / height)
        display = plot_markers(
            values.to_numpy()[known], centres[known], figure=figure, axes=box, **style
        )
        display.annotate(size=7)
        figure.text(0.02, bottom + 18 / height, name, rotation=90, va="center")
    tall = min(TALLEST_BAR, 30 * maps.shape[1]) / height
    cax = figure.add_axes((0.88, 0.5 - tall / 2, 0.013, tall))
    figure.colorbar(scale, cax=cax, label=label)
    note = f"Atlas {atlas.name} has no surfaces: markers at the centres of its regions."
    valued = maps.notna().any(axis=1)
    if lacking := int((valued & np.isnan(centres).any(axis=1)).sum()):
        note += f" Not drawn, for want of coordinates: {lacking}."
    figure.text(0.02, 2 / height, _wrap(note, width))
    figure.text(0.5, 1 - 5 / height, title, fontsize=9, ha="center")
    return figure


def _plot_dots(
    maps: Maps, atlas: Atlas, scale: Any, texts: Texts, width: float, figure: Any
) -> Any:
    """Draw a dot a region in the order of the first map, one column a map."""
    title, label = texts
    table = maps.dropna(how="all").sort_values(maps.columns[0], kind="stable")
    note = f"Atlas {atlas.name} has neither surfaces nor coordinates: dots."
    n, half = len(table), MOST_DOTS // 2
    rows, names = np.arange(n), [*table.index]
    if n > MOST_DOTS:
        note += f" Of {n} regions the {half} smallest and {half} largest."
        table = pd.concat([table.head(half), table.tail(half)])
        rows = np.delete(np.arange(MOST_DOTS + 1), half)
        names = [*table.index[:half], f"({n - MOST_DOTS} between)", *table.index[half:]]
    figure = figure or new_figure(width, 22 + 3.6 * len(names), layout="constrained")
    shape: Any = {"sharex": True, "sharey": True, "squeeze": False}
    panels = figure.subplots(1, table.shape[1], **shape)[0]
    for axes, (name, values) in zip(panels, table.items(), strict=True):
        colors = scale.to_rgba(values.to_numpy())
        axes.hlines(rows, 0, 1, "#e4e4e4", lw=0.6, transform=axes.get_yaxis_transform())
        axes.scatter(values, rows, s=20, c=colors, edgecolors=LINE, lw=0.4, zorder=3)
        axes.set_yticks(range(len(names)), names)
        axes.set(ylim=(len(names) - 0.5, -0.5), title=name, xlabel=label)
        if values.min() < 0 < values.max():
            axes.axvline(0, color=LINE, linewidth=0.5)
        axes.tick_params(axis="y", length=0)
        axes.spines[["top", "right", "left"]].set_visible(False)
    figure.suptitle(title, fontsize=9)
    figure.supxlabel(_wrap(note, width), fontsize=7, x=0.01, ha="left")
    return figure
