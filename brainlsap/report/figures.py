"""What all figures have in common: sizes in mm, letters, and how they are saved."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

MM = 1 / 25.4
"""Inches."""

COLUMN, PAGE = 85.0, 180.0
"""Widths of a journal's page, in mm."""

INK, GREY = "#1a1a1a", "#8a8a8a"
STYLE: Any = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor"), "white"),
    **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), 0.5),
    **dict.fromkeys(("xtick.major.size", "ytick.major.size"), 2.5),
    **dict.fromkeys(("font.size", "xtick.labelsize", "ytick.labelsize"), 7),
    **dict.fromkeys(("legend.fontsize", "axes.labelsize"), 7),
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

    def savefig(self, *given: Any, **options: Any) -> None:
        """Save as any figure is."""
        with plt.rc_context(_SAVED):
            super().savefig(*given, **options)

    def _ipython_display_(self) -> None:
        """Appear once in a notebook: as the value of a cell, or when the cell ends."""
        if "inline" in plt.get_backend():
            plt.close(self)
        raise NotImplementedError  # shown as other figures are


@contextmanager
def styled(**more: Any) -> Iterator[None]:
    """Draw in the letters and lines of all figures."""
    # Loads the backend: a notebook's turns interactive mode on, which inside would be
    # undone at the end, and no figure shown.
    plt.draw_if_interactive()
    with plt.rc_context(STYLE | more):
        yield


def new_figure(width: float, height: float, **options: Any) -> Figure:
    """Return a figure of pyplot; width and height in mm."""
    size = (width * MM, height * MM)
    return plt.figure(figsize=size, dpi=150, FigureClass=PaperFigure, **options)


def new_axes(width: float, height: float) -> Axes:
    """Return the only axes of a new figure; width and height in mm."""
    # "constrained" cuts labels beside axes of equal aspect off at the first drawing
    return new_figure(width, height, layout="compressed").add_subplot()
