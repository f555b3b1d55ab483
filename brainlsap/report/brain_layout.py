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
        extents = [
            (min(line.top for line in lines), max(line.bottom for line in lines))
            for lines in map(list, _by_map(self.lines))
        ]
        return np.array(extents)


def layout_figure(
    pictures: Mapping[str, RegionPicture],
    map_names: Sequence[str],
    bar_labels: Sequence[str],
    tick_texts: Sequence[str],
    has_no_value: np.ndarray,
    region_labels: Mapping[int, str],
    *,
    title: str,
    width: float,
    max_height: float,
    min_view_height: float = MIN_VIEW_HEIGHT,
    fills_height: bool = False,
) -> FigureLayout:
    """Place views, names, colour bars and labels of regions.

    Parameters
    ----------
    pictures : mapping of str to RegionPicture
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
    width, max_height : float
        Of the figure, in mm.
    min_view_height : float
        Views that would be lower wrap onto another line.
    fills_height : bool
        Whether the figure is `max_height` tall, whatever it needs: views are then as
        large as possible.

    Returns
    -------
    FigureLayout
    """
    target_height = np.inf if fills_height else min_view_height
    n_maps, n_bars = len(map_names), len(bar_labels)
    header = 2.0 + (1 + 4.0 * (1 + title.count("\n")) if title else 0.0)
    labels = _locate_labels(pictures, region_labels)
    no_value_heights = NO_VALUE_HEIGHT * has_no_value
    row_height = MAP_NAME_HEIGHT
    bar_heights = MAP_NAME_HEIGHT - no_value_heights
    # Names wrap to the height of rows, and the height depends on the room they leave.
    for attempt in range(5):
        previous_height = row_height
        names = [wrap_text(name, row_height * 7 / 8) for name in map_names]
        wrapped_bars = [
            wrap_text(label, bar_height + 3)
            for label, bar_height in zip(bar_labels, bar_heights, strict=True)
        ]
        left_margin, right_margin = _margins(names, wrapped_bars, tick_texts)
        right_margin = max(right_margin, 18.0 * has_no_value.any())
        space = width - left_margin - right_margin, max_height - header
        grids = [
            _arrange(lines, pictures, labels, n_maps, *space)
            for lines in _line_splits(list(pictures))
        ]
        grid = max(grids, key=lambda grid: (grid.fits, min(grid.unit, target_height)))
        extents = grid.map_extents()
        row_height = np.ptp(extents, axis=1).min()
        bar_extents = np.array(
            [
                (extents[bar::n_bars, 0].min(), extents[bar::n_bars, 1].max())
                for bar in range(n_bars)
            ]
        )
        bar_heights = np.ptp(bar_extents, axis=1) - no_value_heights
        bar_heights = np.minimum(bar_heights, MAX_BAR_HEIGHT)
        if attempt and row_height >= previous_height:
            break
    needed_height = header + grid.height
    height = max_height if fills_height else needed_height
    x = left_margin + (width - left_margin - right_margin - grid.width) / 2
    top = (height + needed_height) / 2 - header + 2
    name_places = [
        PlacedText(name, x - 2 - 1.7 * name.count("\n"), top - extent.mean())
        for name, extent in zip(names, extents, strict=True)
    ]
    bar_middles = top - (bar_extents.sum(axis=1) - no_value_heights) / 2
    bars = [
        PlacedBar(
            Box(x + grid.width + 2, middle - bar_height / 2, BAR_WIDTH, bar_height),
            label,
            bool(is_grey),
        )
        for label, middle, bar_height, is_grey in zip(
            wrapped_bars, bar_middles, bar_heights, has_no_value, strict=True
        )
    ]
    return FigureLayout(
        width=width,
        height=height,
        views=tuple(_place_views(grid, list(pictures), x, top)),
        map_names=tuple(name_places),
        bars=tuple(bars),
        title=PlacedText(title, width / 2, top + header - 4),
    )


def _margins(
    names: Sequence[str], bar_labels: Sequence[str], tick_texts: Sequence[str]
) -> tuple[float, float]:
    """Return the mm that names of maps take at the left, and bars at the right."""
    n_breaks = max(name.count("\n") for name in names)
    left_margin = 4.5 + 3.4 * n_breaks if any(names) else 0.0
    longest = max(
        text_width(text.replace("-", "\N{MINUS SIGN}")) for text in tick_texts
    )
    label_width = 3.0 * max(
        bool(label) + label.count("\n") + is_short_label(label) for label in bar_labels
    )
    # numbers on a screen are wider than in print
    return left_margin, max(14.0, 7.4 + 1.1 * longest) + label_width


def _line_splits(views: Sequence[str]) -> list[tuple[int, ...]]:
    """Return ways to wrap views onto lines, one for every number of lines.

    Of those with as many lines, the one whose longest line has fewest views.
    """
    splits = [_wrap_views(views, n_views) for n_views in range(len(views), 0, -1)]
    return list({split[-1]: split for split in splits}.values())


def _wrap_views(views: Sequence[str], views_per_line: int) -> tuple[int, ...]:
    """Return the line of every view; left and right of a pair stay together."""
    lines: list[int] = []
    for _, pair in groupby(views, lambda view: view.split()[0]):
        n_views = len([*pair])
        line = lines[-1] if lines else 0
        if lines and lines.count(line) + n_views > views_per_line:
            line += 1
        lines += [line] * n_views
    return tuple(lines)


def side_letters(view: str) -> tuple[str, ...]:
    """Return the hemispheres of a view from left to right; () if it shows one."""
    letters = tuple(side for side, _ in VIEWS.get(view, VIEWS["dorsal"])[0])
    return letters if len(letters) > 1 else ()


def _arrange(
    lines: Sequence[int],
    pictures: Mapping[str, RegionPicture],
    labels: Mapping[str, Sequence[RegionLabel]],
    n_maps: int,
    max_width: float,
    max_height: float,
) -> _Grid:
    """Place views on these lines, as large as the space allows."""
    names, line = list(pictures), np.array(lines)
    n_lines = line[-1] + 1
    is_side = np.array([name.startswith(SIDE_VIEWS) for name in names])
    view_heights = np.where(is_side, SIDE_VIEW_SCALE, 1.0)
    aspects = [picture.width / picture.height for picture in pictures.values()]
    view_widths = view_heights * aspects
    gaps = np.array(
        [VIEW_GAP + SUBCORTEX_GAP * (name == "subcortex") for name in names]
    )
    footers = np.array([SIDE_LETTER_HEIGHT * bool(side_letters(n)) for n in names])
    title_widths = np.array([text_width(name) + 1 for name in names])
    line_heights = np.array([view_heights[line == k].max() for k in range(n_lines)])
    line_footers = np.array([footers[line == k].max() for k in range(n_lines)])
    line_gaps = np.bincount(line, gaps)
    unit = max(MAX_VIEW_HEIGHT, MAX_MAP_HEIGHT / (n_lines * n_maps))
    unit = min(unit, *((max_width - line_gaps) / np.bincount(line, view_widths)))
    for _ in range(3):  # lower views are narrower, and leave labels less room
        columns = np.maximum(unit * view_widths + gaps, title_widths)
        line_widths = np.bincount(line, columns)
        width = min(line_widths.max(), max_width)
        fits = bool(line_widths.max() <= max_width + TOLERANCE)
        columns = columns + ((width - line_widths) / np.bincount(line))[line]
        ends = np.concatenate([np.cumsum(columns[line == k]) for k in range(n_lines)])
        spare = columns - unit * view_widths - gaps
        x = ends - spare / 2 - unit * view_widths
        placed_labels: dict[str, list[PlacedLabel]] = {name: [] for name in names}
        room_above, room_below = np.zeros(n_lines), np.zeros(n_lines)
        for k, name in enumerate(names):
            for room, is_above in ((room_below, False), (room_above, True)):
                spots = [label for label in labels[name] if label.is_above == is_above]
                if not spots:
                    continue
                region_x = [x[k] + unit * view_widths[k] * label.x for label in spots]
                new = _place_labels(spots, region_x, ends[k] - columns[k] + 1, ends[k])
                placed_labels[name] += new
                fits &= all(label.fits for label in new)
                label_room = LABEL_HEIGHT * max(label.top for label in new) + 0.8
                room[line[k]] = max(room[line[k]], label_room)
        fixed = []  # heights of what does not scale with the views
        for map_index in range(n_maps):
            for k in range(n_lines):
                has_titles = map_index == 0 or n_lines > 1
                gap = MAP_GAP if map_index and k == 0 and n_lines > 1 else 0.0
                heading = VIEW_TITLE_HEIGHT if has_titles else 2.0
                parts = room_above[k] + line_footers[k] + room_below[k]
                fixed.append(parts + heading + gap)
        all_heights = np.tile(line_heights, n_maps)
        bottoms = np.cumsum(fixed + unit * all_heights)
        height = bottoms[-1]
        if height <= max_height + TOLERANCE:
            break
        unit = max(1.0, (max_height - np.sum(fixed)) / all_heights.sum())
    grid_lines = []
    for row, end in enumerate(bottoms):
        map_index, k = divmod(row, n_lines)
        bottom = end - line_footers[k] - room_below[k]
        grid_lines.append(
            _Line(
                map_index=map_index,
                line=k,
                top=bottom - unit * line_heights[k],
                bottom=bottom,
                view_height=line_heights[k],
                label_room=room_above[k],
                footer=line_footers[k],
                has_titles=map_index == 0 or n_lines > 1,
            )
        )
    return _Grid(
        unit,
        width,
        height,
        line,
        x,
        view_widths,
        view_heights,
        placed_labels,
        grid_lines,
        fits,
    )


def _place_views(
    grid: _Grid, names: Sequence[str], x: float, top: float
) -> list[PlacedView]:
    """Return all views; `x` and `top` are the upper left corner of their grid."""
    views = []
    for line in grid.lines:
        y = top - line.bottom
        for k in np.flatnonzero(grid.line_of_view == line.line).tolist():
            # lower views stand in the middle of their line
            rise = grid.unit * (line.view_height - grid.view_heights[k]) / 2
            title_pad = 3 + (rise + line.label_room) * 72 * MM
            labels = [
                label._replace(left_x=x + label.left_x, line_x=x + label.line_x)
                for label in grid.labels[names[k]]
            ]
            views.append(
                PlacedView(
                    map_index=line.map_index,
                    name=names[k],
                    box=Box(
                        x + grid.x[k],
                        y + rise,
                        grid.unit * grid.view_widths[k],
                        grid.unit * grid.view_heights[k],
                    ),
                    side_letters=side_letters(names[k]),
                    title_pad=title_pad if line.has_titles else None,
                    labels=tuple(labels),
                    lower_edge=y - line.footer - 0.6,
                    upper_edge=y + grid.unit * line.view_height + 0.6,
                )
            )
    return views


def _by_map(lines: Sequence[_Line]) -> list[list[_Line]]:
    """Return the lines of every map."""
    return [list(group) for _, group in groupby(lines, lambda line: line.map_index)]


def _locate_labels(
    pictures: Mapping[str, RegionPicture], region_labels: Mapping[int, str]
) -> dict[str, list[RegionLabel]]:
    """Return the labels of every view.

    A region is labelled in the view that shows most of it; views from the side are
    known best, and count double.
    """
    labels: dict[str, list[RegionLabel]] = {view: [] for view in pictures}
    for region, text in region_labels.items():
        areas = {
            view: picture.areas[region] * (2 if view.startswith(SIDE_VIEWS) else 1)
            for view, picture in pictures.items()
            if region in picture.areas
        }
        if not text or not areas:
            continue
        view = max(areas, key=areas.__getitem__)
        picture = pictures[view]
        x, y = np.divide(picture.centres[region], (picture.width, picture.height))
        is_above = bool(y > 0.5) or view == "subcortex"
        labels[view].append(RegionLabel(text, x, y, is_above))
    return labels


def _place_labels(
    labels: Sequence[RegionLabel], region_x: Sequence[float], begin: float, end: float
) -> list[PlacedLabel]:
    """Place the labels above, or below, a view between two ends.

    Each extends from its line to the right. Labels of regions farther to the right
    stand nearer to the view, so that lines to the others pass them at the left. From
    labels beside the view lines go straight.
    """
    order = np.argsort(region_x, kind="stable")
    labels, spot_x = [labels[k] for k in order], np.array(region_x)[order]
    steps = LABEL_STEP * np.arange(len(labels))
    room = end - begin - steps
    texts = [
        wrap_text(label.text, width)
        for label, width in zip(labels, room - LETTER, strict=True)
    ]
    widths = np.array([max(map(text_width, text.split("\n"))) + 1 for text in texts])
    left_x = np.minimum(spot_x, end - widths) - steps
    left_x = np.minimum.accumulate(left_x[::-1])[::-1].clip(min=begin) + steps
    levels, tops = np.zeros(len(labels), int), np.zeros(len(labels), int)
    for k in reversed(range(len(labels))):
        overlaps = left_x[k + 1 :] < left_x[k] + widths[k]
        levels[k] = max(tops[k + 1 :][overlaps], default=0)
        tops[k] = levels[k] + 1 + texts[k].count("\n")
    line_x = np.where(levels == 0, spot_x.clip(left_x, left_x + widths), left_x)
    return [
        PlacedLabel(
            text=texts[k],
            region_x=label.x,
            region_y=label.y,
            is_above=label.is_above,
            left_x=left_x[k],
            width=widths[k],
            line_x=line_x[k],
            level=int(levels[k]),
            top=int(tops[k]),
            fits=bool(widths[k] <= room[k]),
        )
        for k, label in enumerate(labels)
    ]


def is_short_label(label: str) -> bool:
    """Return whether a label has one to three letters; in math a sign counts as one."""
    return len(re.sub(r"(\\)[a-z]+|[${}^_]", r"\1", label)) <= 3


@lru_cache(maxsize=4096)
def text_width(text: str) -> float:
    """Return the width in mm of a line of 7 points."""
    # the dot makes blanks at the end count
    path = TextPath((0, 0), f"{text}.", 7)
    return path.vertices[:, 0].max() / (72 * MM)


def wrap_text(text: str, width: float) -> str:
    """Break a text into lines of at most `width` mm, but not within its math."""
    text = re.sub(r"\$[^$]*\$", lambda math: math[0].replace(" ", "\0"), text)
    max_letters = max(8, int(width / LETTER))
    return textwrap.fill(text, max_letters, break_long_words=False).replace("\0", " ")
