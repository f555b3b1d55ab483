"""What all figures have in common: sizes in mm, letters, and how they are saved."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from brainlsap.exceptions import ParameterError

MM = 1 / 25.4
"""Inches."""

COLUMN, MIDDLE, PAGE = 85.0, 135.0, 180.0
"""One, one and a half and two columns of a journal's page, in mm."""

TALLEST, SMALLEST_PANEL = 240.0, 48.0
"""No figure is taller than a page, and letters of smaller panels overlap; in mm."""

LETTERS, LETTER, LINE = 7, 1.35, 3.4
"""Points; and how many mm a letter is wide, and a line high."""

INK = "#1a1a1a"
STYLE: Any = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor"), "white"),
    **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), 0.5),
    **dict.fromkeys(("xtick.major.size", "ytick.major.size"), 2.5),
    **dict.fromkeys(("font.size", "xtick.labelsize", "ytick.labelsize"), LETTERS),
    **dict.fromkeys(("legend.fontsize", "axes.labelsize"), LETTERS),
    # names as they are, whatever dollars are in them
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "text.parse_math"), False),
    **dict.fromkeys(("lines.linewidth", "lines.markeredgewidth"), 0.8),
    "errorbar.capsize": 2,
    "axes.titlesize": 8,
    "legend.frameon": False,
}
_SAVED: Any = {
    "pdf.fonttype": 42,  # TrueType: letters can be edited
    "svg.fonttype": "none",
    "svg.hashsalt": "brainlsap",
    "savefig.dpi": 300,
}


class PaperFigure(Figure):
    """A figure that is saved at 300 dpi, with its text as text in PDF and SVG."""

    note = ""
    """What a caption should say, such as what was not drawn."""

    def savefig(self, *arguments: Any, **options: Any) -> None:
        """Save as any figure is."""
        with plt.rc_context(_SAVED):
            super().savefig(*arguments, **options)

    def _ipython_display_(self) -> None:
        """Appear once in a notebook: as the value of a cell, or when the cell ends."""
        if "inline" in plt.get_backend():
            plt.close(self)
        raise NotImplementedError  # shown as other figures are


def add_lines(axes: Axes, number: float, is_side_by_side: bool = False) -> None:
    """Make a figure of ours taller by lines of text.

    One of several panels only with `beside`, and where these stand side by side.
    """
    figure = axes.figure
    lines = {panel.get_position(True).y0 for panel in figure.axes}
    if (
        isinstance(figure, PaperFigure)
        and len(lines if is_side_by_side else figure.axes) == 1
    ):
        figure.set_figheight(figure.get_figheight() + number * LINE * MM)


@contextmanager
def styled(**parameters: Any) -> Iterator[None]:
    """Draw in the letters and lines of all figures."""
    # Loads the backend: a notebook's turns interactive mode on, which inside would be
    # undone at the end, and no figure shown.
    plt.draw_if_interactive()
    with plt.rc_context(STYLE | parameters):
        yield


def check_width(width: Any) -> None:
    """Raise unless a figure may be so wide."""
    if not (isinstance(width, Real) and 60 <= float(width) <= 400):
        raise ParameterError(
            "width must be a number from 60 to 400, in mm, such as 85 (one column of a "
            f"journal) or 180 (two); got {width!r}."
        )


def new_figure(width: float, height: float, **options: Any) -> Any:
    """Return a figure of pyplot; width and height in mm."""
    size = (width * MM, height * MM)
    return plt.figure(figsize=size, dpi=150, FigureClass=PaperFigure, **options)


@styled()
def own_axes(axes: Any, width: float, height: float = 0, number: int = 1) -> Any:
    """Return so many axes in an array, those that are given or of a new figure.

    Width and height are in mm; without a height axes are about square. Several stand
    side by side, in a narrow figure one below the other, and have letters.
    """
    if axes is None:
        check_width(width)
        lines = number if width < 50 * number else 1
        height = height or min(width / 1.2, TALLEST)
        # "constrained" cuts labels beside axes of equal aspect off at the first drawing
        figure = new_figure(width, lines * height, layout="compressed")
        panels = figure.subplots(lines, number // lines, squeeze=False).ravel()
        for panel, letter in zip(panels, "abc" if number > 1 else "", strict=False):
            panel.set_title(letter, loc="left", weight="bold")
        return panels
    panels_given = np.ravel(axes)
    if len(panels_given) != number or not all(
        isinstance(panel, Axes) for panel in panels_given
    ):
        expected = f"{number} Axes of matplotlib, such as plt.subplots(1, {number})[1]"
        raise ParameterError(f"axes must be {expected}; got {axes!r}.")
    if (smallest_side := min(cell_size(panels_given[0]))) < SMALLEST_PANEL:
        problem = f"a panel of {smallest_side:.0f} mm may be too small for its letters"
        warnings.warn(f"{problem}; give it about 60 mm.", UserWarning, stacklevel=4)
    for panel in panels_given:  # made before, perhaps in other letters
        panel.tick_params(labelsize=LETTERS)
        plt.setp([panel.xaxis.label, panel.yaxis.label], size=LETTERS, parse_math=False)
        panel.spines[["top", "right"]].set_visible(False)
    return panels_given


def cell_size(axes: Any) -> Any:
    """Return width and height in mm that axes have with their labels.

    Of axes in a grid known before they are laid out.
    """
    figure, spec = axes.figure, axes.get_subplotspec()
    box, grid = (spec or axes).get_position(figure), figure.subplotpars
    grid_share: Any = (grid.right - grid.left, grid.top - grid.bottom) if spec else 1
    return box.size / grid_share * figure.bbox.size / figure.dpi / MM
