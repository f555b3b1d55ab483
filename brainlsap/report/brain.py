"""One value per region drawn on cortex and subcortex, by region name."""

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, Normalize, to_rgba_array
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from brainlsap.arrays import check_choice
from brainlsap.atlas import Atlas, load_atlas
from brainlsap.exceptions import ParameterError
from brainlsap.report.brain_raster import (
    SURFACES,
    VIEWS,
    RegionPicture,
    region_mesh,
    region_picture,
    subcortical_meshes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from brainlsap.evaluation import Evaluation

WIDTH = 7.09  # inches: 180 mm, the width of a journal's page
DPI = 300
QUARTERS = {0.0: "start", 0.25: "25%", 0.5: "50%", 0.75: "75%", 1.0: "end"}
# Height of a view in units of a row.
_HEIGHTS = {"dorsal": 1.0, "ventral": 1.0, "subcortex": 1.0}
_LATERAL_HEIGHT = 0.8
# Inches.
_MARGIN, _GAP, _ROW_GAP, _TALLEST_ROW, _TALLEST_BAR = 0.06, 0.08, 0.1, 1.9, 1.7
_LINE, _LETTER = 0.115, 0.053  # height of a line and width of a letter of 7 points
_MOST_BARS = 20


@dataclass(frozen=True)
class _Theme:
    """Colours of everything that is not data."""

    paper: str
    ink: str
    outline: str
    silhouette: str
    no_value: str
    no_region: str

    @property
    def settings(self) -> Any:
        """Settings of matplotlib: letters of 7 points, names printed as they are."""
        axes = ("axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
        widths = ("axes.linewidth", "xtick.major.width", "ytick.major.width")
        sizes = {"font.size": 7, "xtick.labelsize": 7, "ytick.labelsize": 7}
        return {
            **dict.fromkeys(("text.color", *axes), self.ink),
            **dict.fromkeys(widths, 0.5),
            **sizes,
            "axes.facecolor": self.paper,
            "axes.labelsize": 8,
            "text.parse_math": False,
        }


_LIGHT = _Theme("white", "#1a1a1a", "#2b2b2b", "#2b2b2b", "#b4b4b4", "#ededed")
_DARK = _Theme("black", "#f0f0f0", "black", "#b9b9b9", "#6b6b6b", "#2c2e34")


def plot_regions(
    values: Any,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    title: str | None = None,
    cmap: str | Colormap = "viridis",
    vmin: float | None = None,
    vmax: float | None = None,
    views: str | Sequence[str] = "all",
    surface: str = "inflated",
    colorbar_label: str | None = None,
    legend: int | Sequence[str] = 0,
    legend_order: str = "smallest",
    black_bg: bool = False,
    figure: "Figure | None" = None,
) -> "Figure":
    """Draw one value per region on cortex and subcortex: the seven-view figure.

    On the inflated cortex colours are flat, so that each of them stands on the colour
    bar; the subcortex and the folded surfaces are lit from the viewer, and there it is
    the colour of what faces the viewer that stands on the bar.

    An atlas without surfaces is drawn as markers at the regions' coordinates, and one
    without coordinates as bars; the figure says so.

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
    surface : {"inflated", "pial", "white_matter"}
        Surface of the cortex (fsaverage5). The folded ones hide what lies in sulci.
    colorbar_label : str, optional
        What the values are, with their unit.
    legend : int or sequence of str
        How many regions of each map to number and name beneath its row, or which.
    legend_order : {"smallest", "largest"}
        Which values `legend` counts from: of heat scales the smallest matter most.
    black_bg : bool
        Light on a dark ground, for slides.
    figure : Figure, optional
        Draw into this empty figure, which is given the size that is needed; by
        default a new one of pyplot, 180 mm wide at 300 dpi.

    Returns
    -------
    Figure
        Each drawing is an image that is labelled with the name of its view.

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
    check_choice("surface", surface, SURFACES)
    check_choice("legend_order", legend_order, ("smallest", "largest"))
    shown = _check_views(views, atlas)
    ranked = [
        _legend_regions(one, atlas, legend, legend_order) for one in maps.values()
    ]
    theme = _DARK if black_bg else _LIGHT
    figure = plt.figure(dpi=DPI) if figure is None else figure
    figure.set_facecolor(theme.paper)
    with plt.rc_context(theme.settings):
        if not has_surfaces(atlas):
            _plot_without_surfaces(
                figure, maps, atlas, scale, colorbar_label or "", title, legend_order
            )
            return figure
        pictures = [region_picture(atlas, view, surface) for view in shown]
        numbers = [_place_numbers(regions, pictures) for regions in ranked]
        page = _Page(figure, shown, pictures, theme)
        note = _missing_note(maps, atlas, surface) if views == "all" else ""
        legends = [_legend_text(of_row, atlas) for of_row in numbers]
        page.lay_out(list(maps), legends, title, colorbar_label or "", note)
        for row, one in enumerate(maps.values()):
            colors = region_colors(one, scale, theme)
            for column, picture in enumerate(pictures):
                own = [number for number in numbers[row] if number[2] == column]
                page.draw(row, column, _paint(picture, colors), own)
        any_grey = any(np.isnan(one).any() for one in maps.values())
        page.add_color_bar(scale, extend, any_grey)
    return figure


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
    during = scales[scales["share"] < 1]["model"]
    if during.empty or (model is not None and model not in set(during)):
        having = ", ".join(dict.fromkeys(during)) or "none"
        raise ParameterError(
            f"model must be one with scales during training ({having}), got {model!r}."
        )
    model = during.iloc[0] if model is None else model
    cohort = evaluation.cohort
    known = np.array(cohort.region_names)[np.asarray(cohort.measured)]
    own = scales[(scales["model"] == model) & scales["region"].isin(known)]
    median = own.groupby(["repeat", "fold", "share"])["scale"].transform("median")
    relative = own["scale"] / median.where(median > 0)
    means = relative.groupby([own["region"], own["share"]]).mean()
    table = means.unstack("share")
    maps = {QUARTERS.get(share, f"{share:.0%}"): table[share] for share in table}
    options = {"colorbar_label": "relative heat scale (median = 1)", **options}
    return plot_regions(maps, cohort.atlas_name if atlas is None else atlas, **options)


def named_atlas(atlas: str | Path | Atlas) -> Atlas:
    """Return the atlas; one that is named is loaded once, and its pictures are kept."""
    return atlas if isinstance(atlas, Atlas) else _load_once(atlas)


@lru_cache(maxsize=8)
def _load_once(name: str | Path) -> Atlas:
    return load_atlas(name)


def has_surfaces(atlas: Atlas) -> bool:
    """Return whether the cortex of an atlas can be drawn."""
    return atlas.folder is not None and Path(atlas.folder, "lh.annot").is_file()


def region_maps(values: Any, atlas: Atlas) -> dict[str, np.ndarray]:
    """Return each map by title ("" for a single one) in atlas order, NaN if absent."""
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
    maps = dict(values) if several and all(several) else {"": values}
    found = {}
    for title, part in maps.items():
        of = f" of map {str(title)!r}" if title != "" else ""
        full = np.full(len(atlas), np.nan)
        # Before anything becomes a dict: an index may hold a name twice.
        places = atlas.match(list(part.keys()))
        try:
            full[places] = [float(value) for value in dict(part).values()]
        except (TypeError, ValueError) as error:
            raise ParameterError(
                f"The values{of} must be numbers ({error})."
            ) from error
        if np.isinf(full).any():
            region = atlas.names[int(np.isinf(full).argmax())]
            raise ParameterError(
                f"The value{of} at {region} is infinite; give NaN for grey."
            )
        if np.isnan(full).all():
            raise ParameterError(f"There is no value{of} to draw.")
        found[str(title)] = full
    return found


def color_scale(
    maps: Mapping[str, np.ndarray],
    cmap: str | Colormap,
    vmin: float | None,
    vmax: float | None,
) -> tuple[ScalarMappable, str]:
    """Return the colours of all maps, and which ends of the bar have values beyond."""
    if not isinstance(cmap, Colormap) and cmap not in plt.colormaps():
        raise ParameterError(
            f"cmap must be a colour map of matplotlib, such as 'viridis', got {cmap!r}."
        )
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


def region_colors(
    values: np.ndarray, scale: ScalarMappable, theme: _Theme = _LIGHT
) -> np.ndarray:
    """Return bytes (n_rois + 4, 4); the last rows answer SILHOUETTE to BACKGROUND."""
    greys = [theme.silhouette, theme.outline, theme.no_region, "none", theme.no_value]
    others = np.round(to_rgba_array(greys) * 255).astype(np.uint8)
    colors = scale.to_rgba(np.nan_to_num(values), bytes=True)
    colors[np.isnan(values)] = others[4]
    return np.concatenate([colors, others[:4]])


def region_label(atlas: Atlas, place: int) -> str:
    """Return a region's name for text, such as `left amygdala`."""
    region = atlas.regions.iloc[place]
    long = region["long_name"]
    if not isinstance(long, str) or not long.strip():
        return str(region["short_name"])
    side = {"L": "left ", "R": "right "}.get(region["hemisphere"], "")
    long = re.sub(r"\s*\([^)]*\)", "", long.strip())
    return f"{side}{long[0].lower()}{long[1:]}"


def _check_views(views: str | Sequence[str], atlas: Atlas) -> list[str]:
    if views == "all":
        return [
            view for view in VIEWS if view != "subcortex" or subcortical_meshes(atlas)
        ]
    chosen = [views] if isinstance(views, str) else list(views)
    if not chosen:
        raise ParameterError("views names none; leave it at 'all'.")
    for view in chosen:
        check_choice("views", view, VIEWS)
    return chosen


def _paint(picture: RegionPicture, colors: np.ndarray) -> np.ndarray:
    """Return a picture as an image of bytes (height, width, 4)."""
    image = np.take(colors, picture.pixels, axis=0, mode="wrap")
    if picture.light is not None:
        image[..., :3] = np.round(image[..., :3] * picture.light[..., None])
    return image


def _legend_regions(
    values: np.ndarray, atlas: Atlas, legend: Any, order: str
) -> list[int]:
    if isinstance(legend, Sequence) and not isinstance(legend, str):
        return [int(place) for place in atlas.match(legend)]
    if isinstance(legend, bool) or not isinstance(legend, int) or legend < 0:
        raise ParameterError(
            "legend must be how many regions to name, or a list of their names, "
            f"got {legend!r}."
        )
    ranked = np.argsort(values if order == "smallest" else -values, kind="stable")
    return ranked[~np.isnan(values[ranked])][:legend].tolist()


def _place_numbers(
    regions: Sequence[int], pictures: Sequence[RegionPicture]
) -> list[tuple[int, int, int, float, float]]:
    """Return number, region, column, row and column of pixels where it is widest."""
    from scipy.ndimage import distance_transform_cdt

    placed = []
    for number, region in enumerate(regions, start=1):
        best, widest = (number, region, -1, 0.0, 0.0), 0.0
        for column, picture in enumerate(pictures):
            rows, columns = np.nonzero(picture.region == region)
            if not len(rows):
                continue
            mask = np.zeros((np.ptp(rows) + 3, np.ptp(columns) + 3), dtype=bool)
            mask[rows - rows.min() + 1, columns - columns.min() + 1] = True
            depth = distance_transform_cdt(mask)
            y, x = np.unravel_index(depth.argmax(), depth.shape)
            share = depth.max() / len(picture.region)
            if share > widest:
                widest = share
                y, x = y + rows.min() - 1.0, x + columns.min() - 1.0
                best = (number, region, column, float(y), float(x))
        placed.append(best)
    return placed


def _legend_text(numbers: Sequence[tuple], atlas: Atlas) -> str:
    hidden = {-1: " (not in view)"}
    names = [
        f"{number} {region_label(atlas, region)}{hidden.get(column, '')}"
        for number, region, column, _, _ in numbers
    ]
    # Spaces that do not break: a number stays with its name.
    return "   ".join(name.replace(" ", "\xa0") for name in names)


def _missing_note(maps: Mapping[str, np.ndarray], atlas: Atlas, surface: str) -> str:
    """Say which regions have a value and no surface to draw it on."""
    known = ~np.all([np.isnan(one) for one in maps.values()], axis=0)
    known[atlas.match(list(subcortical_meshes(atlas)))] = False
    for hemisphere in "LR":
        drawn = region_mesh(atlas, hemisphere, surface).region
        known[drawn[drawn >= 0]] = False
    if not known.any():
        return ""
    names = ", ".join(
        region_label(atlas, place) for place in np.flatnonzero(known).tolist()
    )
    return f"Not drawn, for want of a surface: {names}."


class _Page:
    """A figure with one row a map and one column a view, laid out in inches."""

    def __init__(
        self,
        figure: "Figure",
        views: list[str],
        pictures: list[RegionPicture],
        theme: _Theme,
    ) -> None:
        self.figure, self.views, self.pictures = figure, views, pictures
        self.theme = theme

    def lay_out(
        self,
        rows: list[str],
        legends: list[str],
        title: str | None,
        bar_label: str,
        note: str,
    ) -> None:
        """Find the height of a row with which everything fits the page, and write."""
        heights = np.array([_HEIGHTS.get(v, _LATERAL_HEIGHT) for v in self.views])
        shapes = np.array([picture.region.shape for picture in self.pictures])
        widths = heights * shapes[:, 1] / shapes[:, 0]
        gaps = np.array([_GAP + 0.13 * (view == "subcortex") for view in self.views])
        unit = 1.0
        for _ in range(2):  # the letters' lines depend on the height, and it on them
            names = [_wrap(name, unit) for name in rows]
            bar = min(_TALLEST_BAR, len(names) * (unit + _ROW_GAP) + 0.1)
            self.bar_label = _wrap(bar_label, bar)
            left = _MARGIN + _LINE * max(len(name.splitlines()) for name in names)
            right = 0.52 + _LINE * len(self.bar_label.splitlines()) + _MARGIN
            unit = min(_TALLEST_ROW, (WIDTH - left - gaps.sum() - right) / widths.sum())
        self.sizes = np.column_stack([widths, heights]) * unit
        self.row_height = unit * heights.max()
        self.left = left + np.cumsum(gaps + np.append(0, self.sizes[:-1, 0]))
        body_end = self.left[-1] + self.sizes[-1, 0]
        self.width = body_end + right
        letters = int((body_end - left) / _LETTER)
        lines = [textwrap.wrap(one, letters, break_on_hyphens=False) for one in legends]
        below = _LINE * max(len(one) for one in lines) + 0.02
        notes = textwrap.wrap(note, letters)
        step = self.row_height + below + _ROW_GAP
        foot = _MARGIN + _LINE * len(notes)
        self.body = foot, foot + len(names) * step - _ROW_GAP
        self.tops = self.body[1] - step * np.arange(len(names))
        header = self.body[1] + 0.04
        height = header + 0.16 + (0.2 if title else 0) + 0.02
        self.figure.set_size_inches(self.width, height)
        self.size = self.width, height
        page = self.page = self.axes(0, 0, *self.size, "page")
        page.set(xlim=(0, self.width), ylim=(0, height), autoscale_on=False)
        page.set_axis_off()
        middle: dict[str, Any] = {"ha": "center", "va": "center"}
        for column, view in enumerate(self.views):
            x = self.left[column] + self.sizes[column, 0] / 2
            page.text(x, header + 0.07, view.capitalize(), fontsize=8, **middle)
        for top, name, own in zip(self.tops, names, lines, strict=True):
            y = top - self.row_height / 2
            page.text(left / 2 + 0.03, y, name, rotation=90, fontsize=8, **middle)
            y = top - self.row_height - 0.02
            page.text(left + _GAP, y, "\n".join(own), va="top")
        page.text(left + _GAP, foot - 0.02, "\n".join(notes), va="top")
        page.text(self.width / 2, header + 0.25, title or "", fontsize=9, **middle)

    def axes(
        self, x: float, y: float, width: float, height: float, label: str
    ) -> "Axes":
        w, h = self.size
        return self.figure.add_axes((x / w, y / h, width / w, height / h), label=label)

    def draw(
        self, row: int, column: int, image: np.ndarray, numbers: Sequence[tuple]
    ) -> None:
        """Put one brain into its place, with the letters and numbers on it."""
        width, height = self.sizes[column]
        view, text = self.views[column], self.page.text
        left, right = self.left[column], self.left[column] + width
        bottom = self.tops[row] - (self.row_height + height) / 2
        top = bottom + height
        where = (left, right, bottom, top)
        self.page.imshow(image, extent=where, aspect="auto", label=view)
        sides = list(dict.fromkeys(side for line in VIEWS[view] for side, _ in line))
        if len(sides) > 1:
            up = "bottom" if view == "subcortex" else "top"  # clear of the caudates
            text(left, top, sides[0], ha="left", va=up)
            text(right, top, sides[1], ha="right", va=up)
        if view == "subcortex":
            centres = self.pictures[column].line_centres
            for centre, name in zip(centres, ("lateral", "medial"), strict=True):
                y = top - centre * height
                text(left - 0.01, y, name, ha="right", va="center", rotation=90)
        halo = [withStroke(linewidth=1.6, foreground=self.theme.paper)]
        bold: dict[str, Any] = {"fontweight": "bold", "path_effects": halo}
        rows, columns = image.shape[:2]
        for number, _, _, down, across in numbers:
            x = left + (across + 0.5) / columns * width
            y = top - (down + 0.5) / rows * height
            text(x, y, str(number), ha="center", va="center_baseline", **bold)

    def add_color_bar(self, scale: ScalarMappable, extend: str, any_grey: bool) -> None:
        """Put the one colour bar to the right of all rows."""
        foot, top = self.body[0] + (0.2 if any_grey else 0), self.body[1] + 0.12
        height = min(_TALLEST_BAR, top - foot - 0.06)
        x, y = self.left[-1] + self.sizes[-1, 0] + _GAP, (foot + top - height) / 2
        ax = self.axes(x, y, 0.09, height, "colour bar")
        # Very small and very large numbers as 2.5 with "1e-4" above, for want of width.
        numbers = ScalarFormatter()
        numbers.set_powerlimits((-2, 4))
        bar = self.figure.colorbar(scale, cax=ax, extend=extend, format=numbers)
        n_ticks = int(np.clip(height / 0.2, 2, 6))
        bar.locator = MaxNLocator(n_ticks, steps=[1, 2, 2.5, 5, 10])
        bar.update_ticks()
        ax.yaxis.set_offset_position("left")  # above the bar, and not left of it
        ax.tick_params(length=2, width=0.5, labelsize=7, colors=self.theme.ink)
        bar.set_label(self.bar_label)
        if any_grey:
            patch = self.axes(x, y - 0.2, 0.09, 0.09, "no value")
            patch.set(facecolor=self.theme.no_value, xticks=[], yticks=[])
            patch.text(1.5, 0.45, "no value", transform=patch.transAxes, va="center")


def _wrap(text: str, inches: float) -> str:
    """Break a text into lines of at most so many inches, about equally long."""
    most = max(8, int(inches / _LETTER))
    fewest = len(textwrap.wrap(text, most, break_long_words=False))
    width = next(
        width
        for width in range(1, most + 1)
        if len(textwrap.wrap(text, width, break_long_words=False)) <= fewest
    )
    return textwrap.fill(text, width, break_long_words=False)


def _plot_without_surfaces(
    figure: "Figure",
    maps: Mapping[str, np.ndarray],
    atlas: Atlas,
    scale: ScalarMappable,
    label: str,
    title: str | None,
    order: str,
) -> None:
    """Draw markers at the regions' coordinates, or bars if there are none."""
    centres = atlas.regions[["x", "y", "z"]].to_numpy(float)
    known = [np.flatnonzero(np.isfinite(values)) for values in maps.values()]
    located = all(np.isfinite(centres[places]).all() for places in known)
    n_bars = min(max(map(len, known)), _MOST_BARS)
    row, foot, top = 1.45 if located else 0.13 * n_bars + 0.6, 0.3, 0.3
    height = foot + len(maps) * row + top
    figure.set_size_inches(WIDTH, height)
    for number, (name, values) in enumerate(maps.items()):
        places = known[number]
        bottom = (foot + (len(maps) - 1 - number) * row) / height
        if located:
            box = (0.05, bottom, 0.8, 0.95 * row / height)
            _draw_markers(figure, box, values[places], centres[places], scale)
        else:
            ranked = places[np.argsort(values[places], kind="stable")]
            ranked = (ranked[::-1] if order == "largest" else ranked)[:n_bars]
            box = (0.45, bottom + 0.45 / height, 0.5, (row - 0.5) / height)
            ax = figure.add_axes(box, label="bars", xlabel=label)
            names = [region_label(atlas, place) for place in ranked]
            names = [textwrap.shorten(one, 48, placeholder=" ...") for one in names]
            colors = scale.to_rgba(values[ranked])
            ax.barh(range(len(ranked)), values[ranked], tick_label=names, color=colors)
            ax.invert_yaxis()
            ax.margins(y=0.01)
            ax.spines[["top", "right", "left"]].set_visible(False)
        y = bottom + row / 2 / height
        figure.text(0.02, y, name, rotation=90, va="center", fontsize=8)
    how = "markers at the centres of its regions"
    if located:
        bar_height = min(_TALLEST_BAR, 0.8 * len(maps) * row) / height
        cax = figure.add_axes((0.88, 0.5 - bar_height / 2, 0.013, bar_height))
        figure.colorbar(scale, cax=cax, label=label)
    else:
        n_known = max(map(len, known))
        how = f"bars, of the {n_bars} {order} of {n_known} regions with a value"
    note = f"Atlas {atlas.name} has no surfaces to draw on: {how}."
    figure.text(0.02, 0.08 / height, note)
    figure.text(0.5, 1 - 0.18 / height, title or "", fontsize=9, ha="center")


def _draw_markers(
    figure: "Figure", box: Any, values: np.ndarray, centres: np.ndarray, scale: Any
) -> None:
    from nilearn.plotting import plot_markers

    display = plot_markers(
        values,
        centres,
        node_size=18,
        node_cmap=scale.get_cmap(),
        node_vmin=scale.get_clim()[0],
        node_vmax=scale.get_clim()[1],
        alpha=1,
        display_mode="lyrz",
        figure=figure,
        axes=box,
        annotate=False,
        black_bg=plt.rcParams["axes.facecolor"] == _DARK.paper,
        colorbar=False,
    )
    display.annotate(size=7)
