"""Where the parts of a figure of brain views stand, in mm.

A figure has a row of views for every map. Rows that would be too wide are wrapped onto
several lines. Names of maps stand at the left, colour bars at the right, a title above;
labels of regions stand above or below the view that shows the region best.

Nothing is drawn here: :func:`layout_figure` returns positions, and
:mod:`brainlsap.report.brain` draws.
"""

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

import numpy as np
from matplotlib.textpath import TextPath

from brainlsap.report.brain_raster import VIEWS, RegionPicture
from brainlsap.report.figures import LETTER, MM

SIDE_VIEWS = ("lateral", "medial", "posterior")

# All lengths are in mm.
MIN_VIEW_HEIGHT = 13.5  # lower views wrap onto another line
MAX_VIEW_HEIGHT = 48.0  # where a figure has many rows
MAX_MAP_HEIGHT = 140.0  # of all views, where a figure has one row
MAX_BAR_HEIGHT = 43.0
MAP_NAME_HEIGHT = 21.0  # room for the upright name of a map, before rows are known
VIEW_TITLE_HEIGHT = 6.0
VIEW_GAP = 2.0  # between views of a line
SUBCORTEX_GAP = 3.0  # in addition, before the subcortex
MAP_GAP = 6.0  # between maps of several lines
LABEL_HEIGHT = 3.2  # of one line of a label of a region
LABEL_STEP = 2.5  # between lines that lead to neighbouring labels
SIDE_LETTER_HEIGHT = 2.0  # of the L and R below a view of both hemispheres
BAR_WIDTH = 2.3
NO_VALUE_HEIGHT = 5.0  # of the key to grey regions, below a bar
SIDE_VIEW_SCALE = 0.8  # height of views from the side, relative to the others
SUBCORTEX_SCALE = 1.1  # height of the subcortex, which is small, relative to the others
KEY_HEIGHT = 4.2  # of each line below all views that explains marks
TOLERANCE = 0.1


class Box(NamedTuple):
    """A rectangle in mm from the lower left corner of the figure."""

    x: float
    y: float
    width: float
    height: float


class RegionLabel(NamedTuple):
    """A text, and the spot of a view that it names; x and y are shares of the view."""

    text: str
    x: float
    y: float
    is_above: bool


class PlacedLabel(NamedTuple):
    """A label of a region, with its place above or below the view.

    `left_x`, `width` and `line_x`, where its line begins, are in mm; `level` and `top`
    count lines of text from the view.
    """

    text: str
    region_x: float
    region_y: float
    is_above: bool
    left_x: float
    width: float
    line_x: float
    level: int
    top: int
    fits: bool


class PlacedView(NamedTuple):
    """One view of one map; labels begin at its `lower_edge` and `upper_edge`, in mm."""

    map_index: int
    name: str
    box: Box
    side_letters: tuple[str, ...]
    title_pad: float | None
    labels: tuple[PlacedLabel, ...]
    lower_edge: float
    upper_edge: float


class PlacedText(NamedTuple):
    """A text that is centred at a point, in mm."""

    text: str
    x: float
    y: float


class PlacedBar(NamedTuple):
    """A colour bar with its label."""

    box: Box
    label: str
    has_no_value: bool


@dataclass(frozen=True)
class FigureLayout:
    """Places of all parts of a figure, in mm from its lower left corner."""

    width: float
    height: float
    views: tuple[PlacedView, ...]
    map_names: tuple[PlacedText, ...]
    bars: tuple[PlacedBar, ...]
    title: PlacedText
    key_y: float  # middle of the lines that explain marks


class _Line(NamedTuple):
    """One line of views of one map; top and bottom are measured down from the first."""

    map_index: int
    line: int
    top: float
    bottom: float
    view_height: float  # of its tallest view, in units
    label_room: float
    footer: float
    has_titles: bool


@dataclass(frozen=True)
class _Grid:
    """Views of all maps on their lines; `unit` is the height of a view of height 1."""

    unit: float
    width: float
    height: float
    line_of_view: np.ndarray
    x: np.ndarray  # of every view, from the left of its line
    view_widths: np.ndarray  # in units
    view_heights: np.ndarray  # in units
    labels: dict[str, list[PlacedLabel]]
    lines: list[_Line]
    fits: bool

    def map_extents(self) -> np.ndarray:
        """Return the top and bottom of every map (n_maps, 2)."""
        extent_of_map = [
            (
                min(view_line.top for view_line in map_lines),
                max(view_line.bottom for view_line in map_lines),
            )
            for map_lines in map(list, _by_map(self.lines))
        ]
        return np.array(extent_of_map)


def layout_figure(
    picture_of_view: Mapping[str, RegionPicture],
    map_names: Sequence[str],
    bar_labels: Sequence[str],
    tick_texts: Sequence[str],
    has_no_value: np.ndarray,
    region_labels: Mapping[int, str],
    *,
    title: str,
    figure_width: float,
    max_height: float,
    min_view_height: float = MIN_VIEW_HEIGHT,
    fills_height: bool = False,
    n_key_lines: int = 0,
) -> FigureLayout:
    """Place views, names, colour bars and labels of regions.

    Parameters
    ----------
    picture_of_view : mapping of str to RegionPicture
        What every view shows.
    map_names : sequence of str
        Names of the maps, one a row.
    bar_labels : sequence of str
        Labels of the colour bars: one for all maps, or one a map.
    tick_texts : sequence of str
        Numbers at the ticks of all bars.
    has_no_value : ndarray of bool
        For every bar, whether its maps show a region without a value.
    region_labels : mapping of int to str
        Labels by position of the region in the atlas; "" for none.
    title : str
        Already wrapped; "" for none.
    figure_width, max_height : float
        Of the figure, in mm.
    min_view_height : float
        Views that would be lower wrap onto another line.
    fills_height : bool
        Whether the figure is `max_height` tall, whatever it needs: views are then as
        large as possible.
    n_key_lines : int
        Number of lines below all views that explain marks.

    Returns
    -------
    FigureLayout
    """
    target_height = np.inf if fills_height else min_view_height
    n_maps, n_bars = len(map_names), len(bar_labels)
    header = 2.0 + (1 + 4.0 * (1 + title.count("\n")) if title else 0.0)
    footer = KEY_HEIGHT * n_key_lines
    labels_of_view = _locate_labels(picture_of_view, region_labels)
    no_value_heights = NO_VALUE_HEIGHT * has_no_value
    row_height = MAP_NAME_HEIGHT
    bar_heights = MAP_NAME_HEIGHT - no_value_heights
    # Names wrap to the height of rows, and the height depends on the room they leave.
    for attempt_number in range(5):
        previous_height = row_height
        wrapped_names = [
            wrap_text(map_name, row_height * 7 / 8) for map_name in map_names
        ]
        wrapped_bars = [
            wrap_text(bar_label, bar_height + 3)
            for bar_label, bar_height in zip(bar_labels, bar_heights, strict=True)
        ]
        left_margin, right_margin = _side_margins(
            wrapped_names, wrapped_bars, tick_texts
        )
        right_margin = max(right_margin, 18.0 * has_no_value.any())
        available_size = (
            figure_width - left_margin - right_margin,
            max_height - header - footer,
        )
        candidate_grids = [
            _arrange_views(
                line_split, picture_of_view, labels_of_view, n_maps, *available_size
            )
            for line_split in _line_splits(list(picture_of_view))
        ]
        best_grid = max(
            candidate_grids,
            key=lambda best_grid: (best_grid.fits, min(best_grid.unit, target_height)),
        )
        map_extents = best_grid.map_extents()
        row_height = np.ptp(map_extents, axis=1).min()
        bar_extents = np.array(
            [
                (
                    map_extents[bar_index::n_bars, 0].min(),
                    map_extents[bar_index::n_bars, 1].max(),
                )
                for bar_index in range(n_bars)
            ]
        )
        bar_heights = np.ptp(bar_extents, axis=1) - no_value_heights
        bar_heights = np.minimum(bar_heights, MAX_BAR_HEIGHT)
        if attempt_number and row_height >= previous_height:
            break
    needed_height = header + best_grid.height + footer
    figure_height = max_height if fills_height else needed_height
    x = left_margin + (figure_width - left_margin - right_margin - best_grid.width) / 2
    views_top = (figure_height + needed_height) / 2 - header + 2
    name_places = [
        PlacedText(
            map_name, x - 2 - 1.7 * map_name.count("\n"), views_top - map_extent.mean()
        )
        for map_name, map_extent in zip(wrapped_names, map_extents, strict=True)
    ]
    bar_middles = views_top - (bar_extents.sum(axis=1) - no_value_heights) / 2
    placed_bars = [
        PlacedBar(
            Box(
                x + best_grid.width + 2,
                bar_middle - bar_height / 2,
                BAR_WIDTH,
                bar_height,
            ),
            bar_label,
            bool(is_grey),
        )
        for bar_label, bar_middle, bar_height, is_grey in zip(
            wrapped_bars, bar_middles, bar_heights, has_no_value, strict=True
        )
    ]
    return FigureLayout(
        width=figure_width,
        height=figure_height,
        views=tuple(_place_views(best_grid, list(picture_of_view), x, views_top)),
        map_names=tuple(name_places),
        bars=tuple(placed_bars),
        title=PlacedText(title, figure_width / 2, views_top + header - 4),
        key_y=(figure_height - needed_height) / 2 + footer / 2,
    )


def _side_margins(
    map_names: Sequence[str], bar_labels: Sequence[str], tick_texts: Sequence[str]
) -> tuple[float, float]:
    """Return the mm that names of maps take at the left, and bars at the right."""
    n_breaks = max(map_name.count("\n") for map_name in map_names)
    left_margin = 4.5 + 3.4 * n_breaks if any(map_names) else 0.0
    longest_text = max(
        text_width(tick_text.replace("-", "\N{MINUS SIGN}")) for tick_text in tick_texts
    )
    label_width = 3.0 * max(
        bool(bar_label) + bar_label.count("\n") + is_short_label(bar_label)
        for bar_label in bar_labels
    )
    # numbers on a screen are wider than in print
    return left_margin, max(14.0, 7.4 + 1.1 * longest_text) + label_width


def _line_splits(view_names: Sequence[str]) -> list[tuple[int, ...]]:
    """Return ways to wrap views onto lines, one for every number of lines.

    Of those with as many lines, the one whose longest line has fewest views.
    """
    splits = [
        _wrap_views(view_names, n_views) for n_views in range(len(view_names), 0, -1)
    ]
    return list({split[-1]: split for split in splits}.values())


def _wrap_views(view_names: Sequence[str], views_per_line: int) -> tuple[int, ...]:
    """Return the line of every view; left and right of a pair stay together."""
    line_of_view: list[int] = []
    for _, view_pair in groupby(view_names, lambda view: view.split()[0]):
        n_views = len([*view_pair])
        line_number = line_of_view[-1] if line_of_view else 0
        if line_of_view and line_of_view.count(line_number) + n_views > views_per_line:
            line_number += 1
        line_of_view += [line_number] * n_views
    return tuple(line_of_view)


def side_letters(view_name: str) -> tuple[str, ...]:
    """Return the hemispheres of a view from left to right; () if it shows one."""
    hemisphere_letters = tuple(
        hemisphere for hemisphere, _ in VIEWS.get(view_name, VIEWS["dorsal"])[0]
    )
    return hemisphere_letters if len(hemisphere_letters) > 1 else ()


def _arrange_views(
    line_of_view: Sequence[int],
    picture_of_view: Mapping[str, RegionPicture],
    labels_of_view: Mapping[str, Sequence[RegionLabel]],
    n_maps: int,
    max_width: float,
    max_height: float,
) -> _Grid:
    """Place views on these lines, as large as the space allows."""
    view_names, view_line_index = list(picture_of_view), np.array(line_of_view)
    n_lines = view_line_index[-1] + 1
    is_side = np.array([view_name.startswith(SIDE_VIEWS) for view_name in view_names])
    view_heights = np.where(is_side, SIDE_VIEW_SCALE, 1.0)
    view_heights[np.array(view_names) == "subcortex"] = SUBCORTEX_SCALE
    aspect_ratios = [
        view_picture.width / view_picture.height
        for view_picture in picture_of_view.values()
    ]
    view_widths = view_heights * aspect_ratios
    view_gaps = np.array(
        [
            VIEW_GAP + SUBCORTEX_GAP * (view_name == "subcortex")
            for view_name in view_names
        ]
    )
    footer_heights = np.array(
        [SIDE_LETTER_HEIGHT * bool(side_letters(n)) for n in view_names]
    )
    title_widths = np.array([text_width(view_name) + 1 for view_name in view_names])
    line_heights = np.array(
        [view_heights[view_line_index == k].max() for k in range(n_lines)]
    )
    line_footers = np.array(
        [footer_heights[view_line_index == k].max() for k in range(n_lines)]
    )
    line_gaps = np.bincount(view_line_index, view_gaps)
    mm_per_unit = max(MAX_VIEW_HEIGHT, MAX_MAP_HEIGHT / (n_lines * n_maps))
    mm_per_unit = min(
        mm_per_unit,
        *((max_width - line_gaps) / np.bincount(view_line_index, view_widths)),
    )
    for _ in range(3):  # lower views are narrower, and leave labels less room
        column_widths = np.maximum(mm_per_unit * view_widths + view_gaps, title_widths)
        line_widths = np.bincount(view_line_index, column_widths)
        grid_width = min(line_widths.max(), max_width)
        is_fitting = bool(line_widths.max() <= max_width + TOLERANCE)
        column_widths = (
            column_widths
            + ((grid_width - line_widths) / np.bincount(view_line_index))[
                view_line_index
            ]
        )
        column_ends = np.concatenate(
            [np.cumsum(column_widths[view_line_index == k]) for k in range(n_lines)]
        )
        spare_widths = column_widths - mm_per_unit * view_widths - view_gaps
        x = column_ends - spare_widths / 2 - mm_per_unit * view_widths
        placed_labels: dict[str, list[PlacedLabel]] = {
            view_name: [] for view_name in view_names
        }
        room_above, room_below = np.zeros(n_lines), np.zeros(n_lines)
        for k, view_name in enumerate(view_names):
            for room_of_lines, is_above in ((room_below, False), (room_above, True)):
                side_labels = [
                    region_label
                    for region_label in labels_of_view[view_name]
                    if region_label.is_above == is_above
                ]
                if not side_labels:
                    continue
                region_x = [
                    x[k] + mm_per_unit * view_widths[k] * region_label.x
                    for region_label in side_labels
                ]
                new_labels = _place_labels(
                    side_labels,
                    region_x,
                    column_ends[k] - column_widths[k] + 1,
                    column_ends[k],
                )
                placed_labels[view_name] += new_labels
                is_fitting &= all(region_label.fits for region_label in new_labels)
                label_room = (
                    LABEL_HEIGHT * max(region_label.top for region_label in new_labels)
                    + 0.8
                )
                room_of_lines[view_line_index[k]] = max(
                    room_of_lines[view_line_index[k]], label_room
                )
        fixed_heights = []  # heights of what does not scale with the views
        for map_index in range(n_maps):
            for k in range(n_lines):
                has_titles = map_index == 0 or n_lines > 1
                map_gap = MAP_GAP if map_index and k == 0 and n_lines > 1 else 0.0
                heading_height = VIEW_TITLE_HEIGHT if has_titles else 2.0
                line_extras = room_above[k] + line_footers[k] + room_below[k]
                fixed_heights.append(line_extras + heading_height + map_gap)
        all_heights = np.tile(line_heights, n_maps)
        line_bottoms = np.cumsum(fixed_heights + mm_per_unit * all_heights)
        grid_height = line_bottoms[-1]
        if grid_height <= max_height + TOLERANCE:
            break
        mm_per_unit = max(1.0, (max_height - np.sum(fixed_heights)) / all_heights.sum())
    grid_lines = []
    for line_row, line_end in enumerate(line_bottoms):
        map_index, k = divmod(line_row, n_lines)
        view_bottom = line_end - line_footers[k] - room_below[k]
        grid_lines.append(
            _Line(
                map_index=map_index,
                line=k,
                top=view_bottom - mm_per_unit * line_heights[k],
                bottom=view_bottom,
                view_height=line_heights[k],
                label_room=room_above[k],
                footer=line_footers[k],
                has_titles=map_index == 0 or n_lines > 1,
            )
        )
    return _Grid(
        mm_per_unit,
        grid_width,
        grid_height,
        view_line_index,
        x,
        view_widths,
        view_heights,
        placed_labels,
        grid_lines,
        is_fitting,
    )


def _place_views(
    view_grid: _Grid, view_names: Sequence[str], x: float, grid_top: float
) -> list[PlacedView]:
    """Return all views; `x` and `grid_top` are the upper left corner of their grid."""
    placed_views = []
    for grid_line in view_grid.lines:
        y = grid_top - grid_line.bottom
        for k in np.flatnonzero(view_grid.line_of_view == grid_line.line).tolist():
            # lower views stand in the middle of their line
            vertical_shift = (
                view_grid.unit * (grid_line.view_height - view_grid.view_heights[k]) / 2
            )
            title_pad = 3 + (vertical_shift + grid_line.label_room) * 72 * MM
            labels = [
                region_label._replace(
                    left_x=x + region_label.left_x, line_x=x + region_label.line_x
                )
                for region_label in view_grid.labels[view_names[k]]
            ]
            placed_views.append(
                PlacedView(
                    map_index=grid_line.map_index,
                    name=view_names[k],
                    box=Box(
                        x + view_grid.x[k],
                        y + vertical_shift,
                        view_grid.unit * view_grid.view_widths[k],
                        view_grid.unit * view_grid.view_heights[k],
                    ),
                    side_letters=side_letters(view_names[k]),
                    title_pad=title_pad if grid_line.has_titles else None,
                    labels=tuple(labels),
                    lower_edge=y - grid_line.footer - 0.6,
                    upper_edge=y + view_grid.unit * grid_line.view_height + 0.6,
                )
            )
    return placed_views


def _by_map(grid_lines: Sequence[_Line]) -> list[list[_Line]]:
    """Return the lines of every map."""
    return [
        list(map_lines)
        for _, map_lines in groupby(grid_lines, lambda grid_line: grid_line.map_index)
    ]


def _locate_labels(
    picture_of_view: Mapping[str, RegionPicture], region_labels: Mapping[int, str]
) -> dict[str, list[RegionLabel]]:
    """Return the labels of every view.

    A region is labelled in the view that shows most of it; views from the side are
    known best, and count double.
    """
    labels_of_view: dict[str, list[RegionLabel]] = {
        view_name: [] for view_name in picture_of_view
    }
    for region, label_text in region_labels.items():
        visible_areas = {
            view_name: view_picture.areas[region]
            * (2 if view_name.startswith(SIDE_VIEWS) else 1)
            for view_name, view_picture in picture_of_view.items()
            if region in view_picture.areas
        }
        if not label_text or not visible_areas:
            continue
        view_name = max(visible_areas, key=visible_areas.__getitem__)
        view_picture = picture_of_view[view_name]
        x, y = np.divide(
            view_picture.centres[region], (view_picture.width, view_picture.height)
        )
        is_above = bool(y > 0.5) or view_name == "subcortex"
        labels_of_view[view_name].append(RegionLabel(label_text, x, y, is_above))
    return labels_of_view


def _place_labels(
    labels: Sequence[RegionLabel],
    region_x: Sequence[float],
    start_x: float,
    end_x: float,
) -> list[PlacedLabel]:
    """Place the labels above, or below, a view between two ends.

    Each extends from its line to the right. Labels of regions farther to the right
    stand nearer to the view, so that lines to the others pass them at the left. From
    labels beside the view lines go straight.
    """
    label_order = np.argsort(region_x, kind="stable")
    labels, spot_x = [labels[k] for k in label_order], np.array(region_x)[label_order]
    label_steps = LABEL_STEP * np.arange(len(labels))
    label_room = end_x - start_x - label_steps
    wrapped_texts = [
        wrap_text(region_label.text, label_width)
        for region_label, label_width in zip(labels, label_room - LETTER, strict=True)
    ]
    text_widths = np.array(
        [
            max(map(text_width, label_text.split("\n"))) + 1
            for label_text in wrapped_texts
        ]
    )
    left_x = np.minimum(spot_x, end_x - text_widths) - label_steps
    left_x = np.minimum.accumulate(left_x[::-1])[::-1].clip(min=start_x) + label_steps
    label_levels, label_tops = np.zeros(len(labels), int), np.zeros(len(labels), int)
    for k in reversed(range(len(labels))):
        is_overlapping = left_x[k + 1 :] < left_x[k] + text_widths[k]
        label_levels[k] = max(label_tops[k + 1 :][is_overlapping], default=0)
        label_tops[k] = label_levels[k] + 1 + wrapped_texts[k].count("\n")
    line_x = np.where(
        label_levels == 0, spot_x.clip(left_x, left_x + text_widths), left_x
    )
    return [
        PlacedLabel(
            text=wrapped_texts[k],
            region_x=region_label.x,
            region_y=region_label.y,
            is_above=region_label.is_above,
            left_x=left_x[k],
            width=text_widths[k],
            line_x=line_x[k],
            level=int(label_levels[k]),
            top=int(label_tops[k]),
            fits=bool(text_widths[k] <= label_room[k]),
        )
        for k, region_label in enumerate(labels)
    ]


def is_short_label(label_text: str) -> bool:
    """Return whether a label has one to three letters; in math a sign counts as one."""
    return len(re.sub(r"(\\)[a-z]+|[${}^_]", r"\1", label_text)) <= 3


@lru_cache(maxsize=4096)
def text_width(label_text: str) -> float:
    """Return the width in mm of a line of 7 points."""
    # the dot makes blanks at the end count
    text_path = TextPath((0, 0), f"{label_text}.", 7)
    return text_path.vertices[:, 0].max() / (72 * MM)


def wrap_text(label_text: str, max_width: float) -> str:
    """Break a text into lines of at most `max_width` mm, but not within its math."""
    label_text = re.sub(
        r"\$[^$]*\$", lambda math: math[0].replace(" ", "\0"), label_text
    )
    max_letters = max(8, int(max_width / LETTER))
    return textwrap.fill(label_text, max_letters, break_long_words=False).replace(
        "\0", " "
    )
