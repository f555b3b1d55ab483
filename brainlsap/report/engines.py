"""The engines that draw a planned brain figure: flat, lit, interactive."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from brainlsap.report.surface_labels import Badge, key_of
from brainlsap.report.surface_paint import paint_paths, paint_pixels
from brainlsap.report.surface_plan import Plan
from brainlsap.report.surface_sheet import Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_flat(plan: Plan) -> "Figure":
    """Draw with matplotlib alone: no display, no graphics library.

    Parameters
    ----------
    plan : Plan
        What to show.

    Returns
    -------
    Figure
    """

    def paint(ax: "Axes", row: int, column: int) -> None:
        picture, colours = pictures[column], palettes[row]
        how = (picture, colours, plan.theme, plan.shade(column))
        if plan.vector:
            paint_paths(ax, *how)
        else:
            ax.imshow(paint_pixels(*how), aspect="auto")

    pictures, palettes = plan.pictures(), plan.palettes()
    return draw_sheet(plan, paint)


def draw_sheet(plan: Plan, paint: Callable[["Axes", int, int], None]) -> "Figure":
    """Draw rows, columns, numbers and the colour bar around what `paint` draws.

    Parameters
    ----------
    plan : Plan
        What to show.
    paint : function of (Axes, row, column)
        Draws one brain into its place.

    Returns
    -------
    Figure
    """
    badges = plan.badges()
    keys = [key_of(of_row, plan.atlas) for of_row in badges]
    sheet = Sheet(
        plan.columns,
        plan.pictures(),
        list(plan.maps),
        plan.theme,
        plan.title,
        plan.label,
        keys if any(keys) else (),
    )
    for row, of_row in enumerate(badges):
        for column in range(len(plan.columns)):
            ax = sheet.add_drawing(row, column)
            paint(ax, row, column)
            _write_numbers(ax, [one for one in of_row if one.column == column], plan)
    sheet.add_colour_bar(plan.colours.scale, plan.colours.extend, plan.any_grey())
    return sheet.figure


def _write_numbers(ax: "Axes", badges: Sequence[Badge], plan: Plan) -> None:
    from matplotlib.patheffects import withStroke

    around = withStroke(linewidth=1.6, foreground=plan.theme.paper)
    for one in badges:
        ax.text(
            one.x,
            1 - one.y,
            str(one.number),
            transform=ax.transAxes,
            ha="center",
            va="center_baseline",
            fontsize=6.5,
            fontweight="bold",
            color=plan.theme.ink,
            path_effects=[around],
            zorder=5,
        )


def _lit(plan: Plan) -> Any:
    from brainlsap.report.engine_pyvista import draw_lit

    return draw_lit(plan)


def _interactive(plan: Plan) -> Any:
    from brainlsap.report.engine_plotly import draw_turning

    return draw_turning(plan)


ENGINES: dict[str, Callable[[Plan], Any]] = {
    "matplotlib": draw_flat,
    "pyvista": _lit,
    "plotly": _interactive,
}
