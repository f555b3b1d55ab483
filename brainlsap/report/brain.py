"""One value per region drawn on cortex and subcortex, by region name."""

import re
import textwrap
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, Normalize, to_rgba_array
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from brainlsap.arrays import check_choice
from brainlsap.atlas import Atlas, load_atlas
from brainlsap.exceptions import BrainlsapError, ParameterError
from brainlsap.report.brain_raster import (
    VIEWS,
    region_mesh,
    region_picture,
    subcortical_meshes,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from brainlsap.evaluation import Evaluation

WIDTH = 7.09  # inches: 180 mm, the width of a journal's page
DPI = 300
QUARTERS = {0.0: "start", 0.25: "25%", 0.5: "50%", 0.75: "75%", 1.0: "end"}
NO_VALUE = "#b4b4b4"
_LINES = ("#2b2b2b", "#2b2b2b", "#ededed", "none")  # SILHOUETTE to BACKGROUND
# Inches.
_MARGIN, _GAP, _ROW_GAP, _TALLEST_ROW, _TALLEST_BAR = 0.06, 0.08, 0.1, 1.9, 1.7
_LINE, _LETTER = 0.115, 0.053  # height of a line and width of a letter of 7 points
_INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color")
_STYLE: Any = {
    **dict.fromkeys((*_INKED, "ytick.color"), "#1a1a1a"),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor"), "white"),
    **dict.fromkeys(("axes.linewidth", "ytick.major.width"), 0.5),
    **dict.fromkeys(("font.size", "ytick.labelsize"), 7),
    "axes.labelsize": 8,
    "text.parse_math": False,  # names are printed as they are
}


def plot_regions(
    values: Any,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    title: str | None = None,
    cmap: str | Colormap = "viridis",
    vmin: float | None = None,
    vmax: float | None = None,
    views: str | Sequence[str] = "all",
    colorbar_label: str | None = None,
) -> "Figure":
    """Draw one value per region on cortex and subcortex: the seven-view figure.

    On the inflated cortex (fsaverage5) colours are flat, so that each of them stands on
    the colour bar; the subcortex is lit from the viewer, and there it is the colour of
    what faces the viewer that stands on the bar. An atlas without surfaces is drawn as
    markers at the regions' coordinates; the figure says so.

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
    cmap : str or Colormap
        Colours, low to high.
    vmin, vmax : float, optional
        Values of the first and last colour; by default the smallest and largest of all
        maps. Values beyond get the end colours, and the bar says so.
    views : "all" or sequence of str
        Columns: "dorsal", "ventral", "lateral left", "lateral right", "medial left",
        "medial right", "subcortex".
    colorbar_label : str, optional
        What the values are, with their unit.

    Returns
    -------
    Figure
        Of pyplot, at most 180 mm wide, 300 dpi; each drawing is an image that is
        labelled with the name of its view.

    Raises
    ------
    RegionNameError
        If a name is unknown, or a region has two values.
    ParameterError
        If there is nothing to draw, or a value, view or limit cannot be used.
    """
    atlas = named_atlas(atlas)
    maps = region_maps(values, atlas)
    scale, extend = color_scale(maps, cmap, vmin, vmax)
    with plt.rc_context(_STYLE):
        if not has_surfaces(atlas):
            return _plot_markers(maps, atlas, scale, title, colorbar_label)
        seen = [one for one in VIEWS if one != "subcortex" or subcortical_meshes(atlas)]
        shown = seen if views == "all" else [views] if isinstance(views, str) else views
        for view in shown:
            check_choice("views", view, seen)
        note = _missing_note(maps, atlas) if views == "all" else ""
        label = colorbar_label or ""
        return _plot_surfaces(
            maps, atlas, list(shown), scale, extend, title, label, note
        )


def plot_scales_at_quarters(
    evaluation: "Evaluation",
    atlas: str | Path | Atlas | None = None,
    model: str | None = None,
    **options: Any,
) -> "Figure":
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
    scales = evaluation.scales[evaluation.scales["start"] == "mean"]
    having = list(scales.loc[scales["share"] < 1, "model"].unique())
    if not having or (model is not None and model not in having):
        raise ParameterError(
            "model must be one with scales during training "
            f"({', '.join(having) or 'none'}), got {model!r}."
        )
    cohort = evaluation.cohort
    known = np.array(cohort.region_names)[np.asarray(cohort.measured)]
    own = scales[(scales["model"] == (model or having[0]))]
    own = own[own["region"].isin(known)]
    median = own.groupby(["repeat", "fold", "share"])["scale"].transform("median")
    relative = own["scale"] / median.where(median > 0)
    table = relative.groupby([own["region"], own["share"]]).mean().unstack("share")
    maps = {QUARTERS.get(share, f"{share:.0%}"): table[share] for share in table}
    options = {"colorbar_label": "relative scale (median 1)", **options}
    atlas = atlas or find_atlas(evaluation) or cohort.atlas_name
    return plot_regions(maps, atlas, **options)


def find_atlas(evaluation: "Evaluation") -> Atlas | None:
    """Return the atlas of an evaluation, a user's own by the path it was read from."""
    cohort = evaluation.cohort
    asked = cohort.provenance.get("asked") or {}
    for name in (cohort.atlas_name, str(asked.get("atlas"))):
        try:
            atlas = named_atlas(name)
        except BrainlsapError:
            continue
        if set(cohort.region_names) <= set(atlas.names):
            return atlas
    return None


def named_atlas(atlas: str | Path | Atlas) -> Atlas:
    """Return the atlas; one that is named is loaded once, and its pictures are kept."""
    return atlas if isinstance(atlas, Atlas) else _load_once(atlas)


_load_once = lru_cache(maxsize=8)(load_atlas)


def has_surfaces(atlas: Atlas) -> bool:
    """Return whether the cortex of an atlas can be drawn."""
    return atlas.folder is not None and Path(atlas.folder, "lh.annot").is_file()


def can_be_drawn(atlas: Atlas) -> bool:
    """Return whether an atlas has surfaces or coordinates to draw on."""
    return has_surfaces(atlas) or bool(atlas.regions["x"].notna().any())


def coordinates(atlas: Atlas) -> np.ndarray:
    """Return the centres of an atlas' regions (n_rois, 3); raise where none has one."""
    if not can_be_drawn(atlas):
        raise ParameterError(
            f"Atlas {atlas.name} has neither surfaces nor coordinates to draw on."
        )
    return atlas.regions[["x", "y", "z"]].to_numpy(float)


def region_maps(values: Any, atlas: Atlas) -> dict[str, np.ndarray]:
    """Return each map by title ("" for a single one) in atlas order, NaN if absent."""
    if isinstance(values, pd.DataFrame):
        values = dict(values.items())
    if not isinstance(values, Mapping | pd.Series):
        raise ParameterError(
            "values must give each value by the region's name: a Series, a mapping, "
            f"or a DataFrame or mapping of several, got {type(values).__name__}."
        )
    parts = [values] if isinstance(values, pd.Series) else list(values.values())
    several = all(isinstance(part, Mapping | pd.Series) for part in parts)
    maps = values if several and isinstance(values, Mapping) else {"": values}
    found = {}
    for title, part in maps.items():
        # Before anything becomes a dict: an index may hold a name twice.
        places = atlas.match(list(part.keys()))
        full = np.full(len(atlas), np.nan)
        try:
            full[places] = list(dict(part).values())
        except (TypeError, ValueError) as error:
            raise ParameterError(f"values must be numbers ({error}).") from error
        if np.isinf(full).any() or np.isnan(full).all():
            what = "an infinite value" if np.isinf(full).any() else "no value"
            raise ParameterError(f"The map {str(title)!r} has {what}: nothing drawn.")
        found[str(title)] = full
    return found


def color_scale(
    maps: Mapping[str, np.ndarray],
    cmap: str | Colormap,
    vmin: float | None,
    vmax: float | None,
) -> tuple[ScalarMappable, str]:
    """Return the colours of all maps, and which ends of the bar have values beyond."""
    values = np.concatenate(list(maps.values()))
    lowest, highest = float(np.nanmin(values)), float(np.nanmax(values))
    half = 0.5 * (abs(lowest) or 1.0) if lowest == highest else 0.0
    low = lowest - half if vmin is None else float(vmin)
    high = highest + half if vmax is None else float(vmax)
    if not (np.isfinite([low, high]).all() and low < high):
        raise ParameterError(f"vmin must be less than vmax, got {low:g} and {high:g}.")
    ends = {(True, True): "both", (True, False): "min", (False, True): "max"}
    extend = ends.get((lowest < low, highest > high), "neither")
    return ScalarMappable(Normalize(low, high, clip=True), cmap), extend


def region_colors(values: np.ndarray, scale: ScalarMappable) -> np.ndarray:
    """Return bytes (n_rois + 4, 4); the last rows answer SILHOUETTE to BACKGROUND."""
    *lines, grey = np.round(to_rgba_array([*_LINES, NO_VALUE]) * 255).astype(np.uint8)
    colors = scale.to_rgba(np.nan_to_num(values), bytes=True)
    colors[np.isnan(values)] = grey
    return np.concatenate([colors, lines])


def region_label(atlas: Atlas, place: int) -> str:
    """Return a region's name for text, such as `left amygdala`."""
    region = atlas.regions.iloc[place]
    long = region["long_name"]
    if not isinstance(long, str) or not long.strip():
        return str(region["short_name"])
    side = {"L": "left ", "R": "right "}.get(region["hemisphere"], "")
    long = re.sub(r"\s*\([^)]*\)", "", long.strip())
    return f"{side}{long[0].lower()}{long[1:]}"


def _missing_note(maps: Mapping[str, np.ndarray], atlas: Atlas) -> str:
    """Say which regions have a value and no surface to draw it on."""
    known = ~np.all([np.isnan(one) for one in maps.values()], axis=0)
    drawn = [region_mesh(atlas, side, below=False).region for side in "LR"]
    drawn.append(atlas.match(list(subcortical_meshes(atlas))))
    missing = np.setdiff1d(np.flatnonzero(known), np.concatenate(drawn))
    names = ", ".join(region_label(atlas, place) for place in missing.tolist())
    return f"Not drawn, for want of a surface: {names}." if names else ""


def _plot_surfaces(
    maps: Mapping[str, np.ndarray],
    atlas: Atlas,
    views: list[str],
    scale: ScalarMappable,
    extend: str,
    title: str | None,
    bar_label: str,
    note: str,
) -> "Figure":
    """Draw one row a map and one column a view, laid out in inches."""
    pictures = [region_picture(atlas, view) for view in views]
    sideways = ("lateral", "medial")
    heights = np.array([0.8 if one.startswith(sideways) else 1.0 for one in views])
    widths = heights * [one.pixels.shape[1] / one.pixels.shape[0] for one in pictures]
    gaps = np.array([_GAP + 0.13 * (view == "subcortex") for view in views])
    unit = 1.0
    for _ in range(2):  # the letters' lines depend on the height, and it on them
        names = [_wrap(name, unit) for name in maps]
        bar_label = _wrap(bar_label, min(_TALLEST_BAR, len(names) * unit))
        left = _MARGIN + _LINE * max(1 + name.count("\n") for name in names)
        right = 0.52 + _LINE * (1 + bar_label.count("\n")) + _MARGIN
        unit = min(_TALLEST_ROW, (WIDTH - left - gaps.sum() - right) / widths.sum())
    widths, heights = widths * unit, heights * unit
    lefts = left + np.cumsum(gaps + np.append(0, widths[:-1]))
    note = _wrap(note, lefts[-1] + widths[-1] - left)
    width = lefts[-1] + widths[-1] + right
    foot = _MARGIN + _LINE * len(note.splitlines())
    step = heights.max() + 0.02 + _ROW_GAP
    head = foot + len(names) * step - _ROW_GAP
    height = head + 0.22 + (0.2 if title else 0)
    figure = plt.figure(figsize=(width, height), dpi=DPI)
    page = figure.add_axes((0, 0, 1, 1), label="page")
    page.set(xlim=(0, width), ylim=(0, height), autoscale_on=False)
    page.set_axis_off()
    middle: Any = {"ha": "center", "va": "center"}
    page.text(width / 2, head + 0.29, title or "", fontsize=9, **middle)
    page.text(left + _GAP, foot - 0.02, note, va="top")
    for x, one, view in zip(lefts, widths, views, strict=True):
        page.text(x + one / 2, head + 0.11, view.capitalize(), fontsize=8, **middle)
    for row, values in enumerate(maps.values()):
        y = head - row * step - heights.max() / 2
        page.text(left / 2 + 0.03, y, names[row], rotation=90, fontsize=8, **middle)
        colors = region_colors(values, scale)
        for column, (pixels, light, centres) in enumerate(pictures):
            image = np.take(colors, pixels, axis=0, mode="wrap")
            image[..., :3] = np.round(image[..., :3] * light[..., None])
            x, end = lefts[column], lefts[column] + widths[column]
            low, top = y - heights[column] / 2, y + heights[column] / 2
            view, below = views[column], views[column] == "subcortex"
            page.imshow(image, extent=(x, end, low, top), aspect="auto", label=view)
            if len(VIEWS[view][0]) > 1:  # both hemispheres
                (one, _), (other, _) = VIEWS[view][0]
                over = "bottom" if below else "top"  # clear of the caudates
                page.text(x, top, one, ha="left", va=over)
                page.text(end, top, other, ha="right", va=over)
            if below:
                for share, name in zip(centres, sideways, strict=True):
                    at = x - 0.01, top - share * heights[column]
                    page.text(*at, name, ha="right", va="center", rotation=90)
    any_grey = any(np.isnan(one).any() for one in maps.values())
    foot += 0.2 if any_grey else 0
    tall = min(_TALLEST_BAR, head + 0.06 - foot)
    x, y = lefts[-1] + widths[-1] + _GAP, (foot + head + 0.12 - tall) / 2
    box = (x / width, y / height, 0.09 / width, tall / height)
    cax = figure.add_axes(box, label="colour bar")
    _add_color_bar(cax, scale, extend, bar_label, int(np.clip(tall / 0.2, 2, 6)))
    if any_grey:
        box = (x / width, (y - 0.2) / height, 0.09 / width, 0.09 / height)
        patch = figure.add_axes(box, label="no value")
        patch.set(facecolor=NO_VALUE, xticks=[], yticks=[])
        patch.text(1.5, 0.45, "no value", transform=patch.transAxes, va="center")
    return figure


def _add_color_bar(
    cax: Any, scale: ScalarMappable, extend: str, label: str, n_ticks: int
) -> None:
    # Very small and very large numbers as 2.5 with "1e-4" above, for want of width.
    numbers = ScalarFormatter()
    numbers.set_powerlimits((-2, 4))
    ticks = MaxNLocator(n_ticks, steps=[1, 2, 2.5, 5, 10])
    cax.figure.colorbar(
        scale, cax=cax, extend=extend, format=numbers, ticks=ticks, label=label
    )
    cax.yaxis.set_offset_position("left")  # above the bar, and not left of it
    cax.tick_params(length=2)


def _wrap(text: str, inches: float) -> str:
    """Break a text into lines of at most so many inches."""
    return textwrap.fill(text, max(8, int(inches / _LETTER)), break_long_words=False)


def _plot_markers(
    maps: Mapping[str, np.ndarray],
    atlas: Atlas,
    scale: ScalarMappable,
    title: str | None,
    label: str | None,
) -> "Figure":
    from nilearn.plotting import plot_markers

    centres, height = coordinates(atlas), 0.6 + 1.45 * len(maps)
    figure = plt.figure(figsize=(WIDTH, height), dpi=DPI)
    for row, (name, values) in enumerate(maps.items()):
        known = np.isfinite(values) & np.isfinite(centres).all(axis=1)
        bottom = (height - 0.3 - 1.45 * (row + 1)) / height
        display = plot_markers(
            values[known],
            centres[known],
            node_size=18,
            node_cmap=scale.get_cmap(),
            node_vmin=scale.get_clim()[0],
            node_vmax=scale.get_clim()[1],
            alpha=1,
            display_mode="lyrz",
            figure=figure,
            axes=(0.05, bottom, 0.8, 1.38 / height),
            annotate=False,
            colorbar=False,
        )
        display.annotate(size=7)
        figure.text(0.02, bottom + 0.7 / height, name, rotation=90, va="center")
    tall = min(_TALLEST_BAR, 1.16 * len(maps)) / height
    cax = figure.add_axes((0.88, 0.5 - tall / 2, 0.013, tall))
    figure.colorbar(scale, cax=cax, label=label or "")
    note = f"Atlas {atlas.name} has no surfaces: markers at the centres of its regions."
    valued = ~np.all([np.isnan(one) for one in maps.values()], axis=0)
    if lacking := int((valued & np.isnan(centres).any(axis=1)).sum()):
        note += f" Not drawn, for want of coordinates: {lacking}."
    figure.text(0.02, 0.08 / height, note)
    figure.text(0.5, 1 - 0.18 / height, title or "", fontsize=9, ha="center")
    return figure
