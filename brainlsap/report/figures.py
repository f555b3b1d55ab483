"""Sizes, text style and saving that all figures share."""

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
"""Inches per mm."""

COLUMN_WIDTH, MIDDLE_WIDTH, PAGE_WIDTH = 85.0, 135.0, 180.0
"""Widths of one, one and a half and two columns of a journal's page, in mm."""

MAX_FIGURE_HEIGHT = 240.0
"""Largest height of a figure in mm: a page."""

SMALLEST_PANEL = 48.0
"""Smallest side of a panel in mm; in smaller ones, labels overlap."""

FONT_SIZE = 7
"""Size of the text in points."""

LETTER_WIDTH, LINE_HEIGHT = 1.35, 3.4
"""Mean width of a letter and height of a line of text, in mm."""

INK = "#1a1a1a"
STYLE: Any = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor"), "white"),
    **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), 0.5),
    **dict.fromkeys(("xtick.major.size", "ytick.major.size"), 2.5),
    **dict.fromkeys(("font.size", "xtick.labelsize", "ytick.labelsize"), FONT_SIZE),
    **dict.fromkeys(("legend.fontsize", "axes.labelsize"), FONT_SIZE),
    # Show dollar signs in names; matplotlib would parse them as mathematics.
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "text.parse_math"), False),
    **dict.fromkeys(("lines.linewidth", "lines.markeredgewidth"), 0.8),
    "errorbar.capsize": 2,
    "axes.titlesize": 8,
    "legend.frameon": False,
}
# Level 6, the default, compresses by 3 % more in three times the time.
_PNG_COMPRESSION = {"compress_level": 1}
_SAVED: Any = {
    "pdf.fonttype": 42,  # TrueType: the text can be edited.
    "svg.fonttype": "none",
    "svg.hashsalt": "brainlsap",
    "savefig.dpi": 300,
    # A figure without a layout engine gets none.
    **dict.fromkeys(("figure.autolayout", "figure.constrained_layout.use"), False),
}


class PaperFigure(Figure):
    """A figure that is saved at 300 dpi, with its text as text in PDF and SVG."""

    note = ""
    """A remark for the caption, for example on what was not drawn."""

    def savefig(self, *positional_arguments: Any, **save_options: Any) -> None:
        """Save the figure; arguments are those of matplotlib."""
        if save_options.get("format") == "png":
            save_options = {"pil_kwargs": _PNG_COMPRESSION, **save_options}
        with plt.rc_context(_SAVED), self._fix_layout(save_options):
            super().savefig(*positional_arguments, **save_options)

    @contextmanager
    def _fix_layout(self, save_options: dict[str, Any]) -> Iterator[None]:
        """Lay the figure out for a PNG file, and save it without a layout engine.

        With one, matplotlib draws all of a figure twice.
        """
        layout_engine = self.get_layout_engine()
        if layout_engine is None or save_options.keys() != {"format", "pil_kwargs"}:
            yield
            return
        dpi, self.dpi = self.dpi, _SAVED["savefig.dpi"]
        layout_engine.execute(self)
        self.dpi = dpi
        self.set_layout_engine(None)
        try:
            yield
        finally:
            self.set_layout_engine(layout_engine)

    def _ipython_display_(self) -> None:
        """Close the figure, so that a notebook shows it once, not again at the end."""
        if "inline" in plt.get_backend():
            plt.close(self)
        raise NotImplementedError  # Let the notebook show it as any figure.


def add_height_for_lines(
    axes: Axes, n_text_lines: float, is_side_by_side: bool = False
) -> None:
    """Make a figure with one panel, or one row of panels, taller by lines of text.

    A row of panels needs `is_side_by_side`. Figures of the user keep their size.
    """
    figure = axes.figure
    if not isinstance(figure, PaperFigure):
        return
    n_rows = len(figure.axes)
    if is_side_by_side:
        n_rows = len({panel_ax.get_position(True).y0 for panel_ax in figure.axes})
    if n_rows == 1:
        figure.set_figheight(figure.get_figheight() + n_text_lines * LINE_HEIGHT * MM)


@contextmanager
def use_paper_style(**rc_parameters: Any) -> Iterator[None]:
    """Draw in the style of all figures."""
    # Load the backend before the context: that of a notebook turns interactive mode on,
    # which leaving the context would undo, so that no figure would be shown.
    plt.draw_if_interactive()
    with plt.rc_context(STYLE | rc_parameters):
        yield


def check_width(width_mm: object) -> None:
    """Raise unless the width of a figure is allowed."""
    if not (isinstance(width_mm, Real) and 60 <= float(width_mm) <= 400):
        raise ParameterError(
            "width must be a number from 60 to 400, in mm, for example 85 (one column "
            f"of a journal) or 180 (two); got {width_mm!r}."
        )


def make_figure(width_mm: float, height_mm: float, **figure_options: Any) -> Any:
    """Return a new pyplot figure; width and height in mm."""
    size_inches = (width_mm * MM, height_mm * MM)
    return plt.figure(
        figsize=size_inches, dpi=150, FigureClass=PaperFigure, **figure_options
    )


@use_paper_style()
def prepare_axes_array(
    axes: Any, width_mm: float, height_mm: float = 0, n_panels: int = 1
) -> Any:
    """Return an array of axes: those given, or those of a new figure.

    Width and height are in mm; without a height, axes are about square. Several new
    axes have letters and stand side by side, or stacked in a narrow figure.
    """
    if axes is None:
        check_width(width_mm)
        n_panel_rows = n_panels if width_mm < 50 * n_panels else 1
        height_mm = height_mm or min(width_mm / 1.2, MAX_FIGURE_HEIGHT)
        # "constrained" cuts off labels beside axes of equal aspect when first drawn.
        figure = make_figure(width_mm, n_panel_rows * height_mm, layout="compressed")
        panel_axes_array = figure.subplots(
            n_panel_rows, n_panels // n_panel_rows, squeeze=False
        ).ravel()
        for panel_ax, panel_letter in zip(
            panel_axes_array, "abc" if n_panels > 1 else "", strict=False
        ):
            panel_ax.set_title(panel_letter, loc="left", weight="bold")
        return panel_axes_array
    user_axes_array = np.ravel(axes)
    if len(user_axes_array) != n_panels or not all(
        isinstance(panel_ax, Axes) for panel_ax in user_axes_array
    ):
        expected_text = (
            f"{n_panels} Axes of matplotlib, such as plt.subplots(1, {n_panels})[1]"
        )
        raise ParameterError(f"axes must be {expected_text}; got {axes!r}.")
    if (
        smallest_side_mm := min(cell_width_and_height_mm(user_axes_array[0]))
    ) < SMALLEST_PANEL:
        size_warning = (
            f"a panel of {smallest_side_mm:.0f} mm may be too small for its letters"
        )
        warnings.warn(f"{size_warning}. Use about 60 mm.", UserWarning, stacklevel=4)
    for panel_ax in user_axes_array:  # They may have been made in another style.
        panel_ax.tick_params(labelsize=FONT_SIZE)
        plt.setp(
            [panel_ax.xaxis.label, panel_ax.yaxis.label],
            size=FONT_SIZE,
            parse_math=False,
        )
        panel_ax.spines[["top", "right"]].set_visible(False)
    return user_axes_array


def cell_width_and_height_mm(axes: Any) -> Any:
    """Return width and height in mm of axes with their labels.

    The size of axes in a grid is that of their cell, before they are laid out.
    """
    figure, subplot_spec = axes.figure, axes.get_subplotspec()
    cell_box = (subplot_spec or axes).get_position(figure)
    subplot_margins = figure.subplotpars
    grid_fractions: Any = (
        (
            subplot_margins.right - subplot_margins.left,
            subplot_margins.top - subplot_margins.bottom,
        )
        if subplot_spec
        else 1
    )
    return cell_box.size / grid_fractions * figure.bbox.size / figure.dpi / MM
