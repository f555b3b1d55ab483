"""The sheet that drawings stand on: rows, columns, titles, one colour bar."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from brainlsap.report.surface_pictures import RegionPicture
from brainlsap.report.surface_views import VIEWS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable

# Inches. Letters of 9 points on a sheet of 10 inches are 6.4 points on 18 cm, the
# width of a journal's page.
_WIDTH = 10.0
_TALLEST_ROW = 2.2
_MARGIN = 0.12
_GAP = 0.14
_ROW_GAP = 0.16
_LINE = 0.15  # of letters of 9 points
_LETTER = 0.07  # their mean width
_KEY_LINE, _KEY_LETTER = 0.13, 0.063  # of letters of 7.5 points
_TITLE = 0.34
_HEADER = 0.26
_LINE_NAME = 0.12
_BAR = 0.70
_TALLEST_BAR = 2.4
_DPI = 200


@dataclass(frozen=True)
class Theme:
    """Colours of everything that is not data.

    Parameters
    ----------
    paper, ink : str
        Ground and letters.
    outline, silhouette : str
        Lines between regions, and around a drawing.
    no_value, no_region : str
        A region without a value; a surface that is no region (the medial wall).
    """

    paper: str
    ink: str
    outline: str
    silhouette: str
    no_value: str
    no_region: str


LIGHT = Theme("white", "#1a1a1a", "#2b2b2b", "#2b2b2b", "#b4b4b4", "#ededed")
DARK = Theme("#101114", "#f0f0f0", "#101114", "#b9b9b9", "#6b6b6b", "#2c2e34")


class Sheet:
    """A figure with one row per map and one column per view.

    Parameters
    ----------
    columns : sequence of str
        Views, by their names in :data:`~brainlsap.report.surface_views.VIEWS`.
    pictures : sequence of RegionPicture
        The picture of each view, for its shape.
    rows : sequence of str
        Name of each map; empty names take no room.
    theme : Theme
        Colours.
    title, label : str or None
        Title of the whole; what the values are, beside the colour bar.
    keys : sequence of str
        What the numbers on each row's drawings mean; empty without numbers.

    Attributes
    ----------
    figure : Figure
        What was drawn so far.
    """

    def __init__(
        self,
        columns: Sequence[str],
        pictures: Sequence[RegionPicture],
        rows: Sequence[str],
        theme: Theme,
        title: str | None = None,
        label: str | None = None,
        keys: Sequence[str] = (),
    ) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.columns, self.pictures, self.theme = columns, pictures, theme
        self._lay_out(rows, title, label, keys)
        self.figure = Figure((self._width, self._height), dpi=_DPI)
        FigureCanvasAgg(self.figure)  # no display, whatever backend is chosen
        self.figure.set_facecolor(theme.paper)
        self._write(title)

    def _lay_out(
        self,
        rows: Sequence[str],
        title: str | None,
        label: str | None,
        keys: Sequence[str],
    ) -> None:
        """Find the height of a row, so that everything fits the width of the sheet."""
        sizes = np.array([VIEWS[view].size for view in self.columns])
        shapes = np.array([picture.region.shape for picture in self.pictures])
        widths = sizes * shapes[:, 1] / shapes[:, 0]
        self._gaps = [_GAP + _LINE_NAME * bool(VIEWS[v].lines) for v in self.columns]
        self._n_rows = len(rows)
        height = 1.0
        for _ in range(2):  # the letters' lines depend on the height, and it on them
            body = len(rows) * height + (len(rows) - 1) * _ROW_GAP
            self._rows = [_wrap(name, height) for name in rows]
            self._label = _wrap(label or "", min(_TALLEST_BAR, body))
            self._left = _MARGIN + _LINE * max(map(_n_lines, self._rows))
            right = _BAR + _LINE * _n_lines(self._label) + _MARGIN
            fixed = self._left + sum(self._gaps) + right
            unit = min(_TALLEST_ROW, (_WIDTH - fixed) / widths.sum())
            height = unit * sizes.max()
        self._sizes = np.column_stack([widths, sizes]) * unit
        across = self._sizes[:, 0].sum() + sum(self._gaps)
        self._width = fixed - sum(self._gaps) + across
        self._keys = [textwrap.wrap(key, int(across / _KEY_LETTER)) for key in keys]
        n_key_lines = max(map(len, self._keys), default=0)
        self._row, self._below = height, n_key_lines * _KEY_LINE
        self._step = height + self._below + _ROW_GAP
        self._body = len(rows) * self._step - _ROW_GAP
        self._height = _MARGIN + self._body + _HEADER + (_TITLE if title else 0.04)

    def add_drawing(self, row: int, column: int) -> "Axes":
        """Make the place of one drawing.

        Parameters
        ----------
        row, column : int
            Place; row 0 is the top.

        Returns
        -------
        Axes
            Of the pixels of the view's picture, row 0 on top; its label is the name
            of the view.
        """
        width, height = self._sizes[column]
        middle = self._middle_of_row(row)
        ax = self._axes(self._start(column), middle - height / 2, width, height)
        rows, columns = self.pictures[column].region.shape
        ax.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
        ax.set_axis_off()
        ax.set_label(self.columns[column])
        self._name_sides(ax, column)
        return ax

    def add_colour_bar(
        self,
        scale: "ScalarMappable",
        extend: str,
        any_grey: bool,
    ) -> None:
        """Put the one colour bar to the right of all rows.

        Parameters
        ----------
        scale : ScalarMappable
            Colours and limits of every drawing.
        extend : {"neither", "min", "max", "both"}
            Where values lie beyond the limits.
        any_grey : bool
            Whether to explain grey.
        """
        from matplotlib.ticker import MaxNLocator, ScalarFormatter

        ink = self.theme.ink
        room = self._body - (0.3 if any_grey else 0)
        height = min(_TALLEST_BAR, 0.86 * room)
        x = self._start(len(self.columns) - 1) + self._sizes[-1, 0] + _GAP
        y = _MARGIN + self._body - (room + height) / 2
        ax = self._axes(x, y, 0.11, height)
        ax.set_label("colour bar")
        # Very small and very large numbers as 2.5 with "1e-4" above: no room for more.
        numbers = ScalarFormatter()
        numbers.set_powerlimits((-2, 4))
        bar = self.figure.colorbar(scale, cax=ax, extend=extend, format=numbers)
        n_ticks = int(np.clip(height / 0.18, 3, 6))
        bar.locator = MaxNLocator(n_ticks, steps=[1, 2, 2.5, 5, 10])
        bar.update_ticks()
        ax.yaxis.set_offset_position("left")  # above the bar, and not left of it
        ax.yaxis.get_offset_text().set(color=ink, size=8)
        bar.outline.set(edgecolor=ink, linewidth=0.5)
        ax.tick_params(labelsize=8, color=ink, labelcolor=ink, width=0.5, length=2.5)
        bar.set_label(self._label, fontsize=9, color=ink)
        if any_grey:
            patch = self._axes(x, y - 0.3, 0.11, 0.11)
            patch.set(facecolor=self.theme.no_value, xticks=[], yticks=[])
            patch.set_label("no value")
            for line in patch.spines.values():
                line.set(edgecolor=ink, linewidth=0.5)
            patch.text(
                1.5,
                0.45,
                "no value",
                transform=patch.transAxes,
                va="center",
                fontsize=8,
                color=ink,
            )

    def _name_sides(self, ax: "Axes", column: int) -> None:
        ink, lines = self.theme.ink, VIEWS[self.columns[column]].lines
        sides = self.pictures[column].sides
        first = dict.fromkeys(side for side, _, _ in sides)
        if len(first) > 1:
            for side, across, align in zip(
                first, (0, 1), ("left", "right"), strict=True
            ):
                ax.text(
                    across,
                    1,
                    side,
                    transform=ax.transAxes,
                    ha=align,
                    va="top",
                    fontsize=8,
                    color=ink,
                )
        for line, name in enumerate(lines):
            of_line = sides[line * len(sides) // len(lines)]
            ax.text(
                -0.03,
                1 - of_line[2],
                name,
                transform=ax.transAxes,
                ha="right",
                va="center",
                rotation=90,
                fontsize=6.5,
                color=ink,
            )

    def _write(self, title: str | None) -> None:
        ink, head = self.theme.ink, _MARGIN + self._body
        for column, view in enumerate(self.columns):
            middle = self._start(column) + self._sizes[column, 0] / 2
            self._text(middle, head + 0.08, VIEWS[view].title, fontsize=9, color=ink)
        across = (_MARGIN / 2 + self._left) / 2
        for row, name in enumerate(self._rows):
            style = {"fontsize": 9, "color": ink, "rotation": 90, "va": "center"}
            self._text(across, self._middle_of_row(row), name, **style)
        for row, lines in enumerate(self._keys):
            y = self._middle_of_row(row) - self._row / 2 - 0.04
            style = {"fontsize": 7.5, "color": ink, "ha": "left", "va": "top"}
            self._text(self._left + _GAP, y, "\n".join(lines), **style)
        if title:
            above = head + _HEADER + 0.06
            self._text(self._width / 2, above, title, fontsize=11, color=ink)

    def _start(self, column: int) -> float:
        return (
            self._left + self._sizes[:column, 0].sum() + sum(self._gaps[: column + 1])
        )

    def _middle_of_row(self, row: int) -> float:
        from_below = self._n_rows - 1 - row
        return _MARGIN + from_below * self._step + self._below + self._row / 2

    def _axes(self, x: float, y: float, width: float, height: float) -> "Axes":
        w, h = self._width, self._height
        return self.figure.add_axes((x / w, y / h, width / w, height / h))

    def _text(self, x: float, y: float, text: str, **style: Any) -> None:
        style = {"ha": "center", "va": "bottom", **style}
        self.figure.text(x / self._width, y / self._height, text, **style)


def _wrap(text: str, length: float) -> str:
    """Break a text into lines of at most so many inches, about equally long."""
    most = max(8, int(length / _LETTER))
    fewest = len(textwrap.wrap(text, most, break_long_words=False))
    narrow = next(
        width
        for width in range(1, most + 1)
        if len(textwrap.wrap(text, width, break_long_words=False)) <= fewest
    )
    return textwrap.fill(text, narrow, break_long_words=False)


def _n_lines(text: str) -> int:
    return len(text.splitlines())
