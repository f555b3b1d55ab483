"""Draw a planned brain figure with VTK's light, off screen."""

from typing import TYPE_CHECKING, Any

import numpy as np

from brainlsap.report.engines import draw_sheet
from brainlsap.report.surface_mesh import CutMesh, cut_mesh
from brainlsap.report.surface_pictures import PIXELS_PER_MM, arrange
from brainlsap.report.surface_plan import Plan
from brainlsap.report.surface_values import colour_bytes
from brainlsap.report.surface_views import VIEWS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LIGHT = {"ambient": 0.3, "diffuse": 0.7, "specular": 0.0}


def draw_lit(plan: Plan) -> "Figure":
    """Draw every view with VTK, on the same sheet as the flat engine.

    Parameters
    ----------
    plan : Plan
        What to show.

    Returns
    -------
    Figure

    Raises
    ------
    ImportError
        If pyvista is not installed.
    """
    pyvista = import_pyvista()
    palettes = plan.palettes()
    with pyvista.vtk_verbosity("off"):  # it warns of displays that are not there
        images = [
            _photographs(pyvista, plan, column, palettes)
            for column in range(len(plan.columns))
        ]

    def paint(ax: "Axes", row: int, column: int) -> None:
        ax.imshow(images[column][row], aspect="auto")

    return draw_sheet(plan, paint)


def import_pyvista() -> Any:
    """Return pyvista, or say how to get it.

    Returns
    -------
    module

    Raises
    ------
    ImportError
        If pyvista is not installed.
    """
    try:
        import pyvista
    except ImportError as error:
        raise ImportError(
            "engine='pyvista' needs pyvista, which is not installed; get it by 'pip "
            "install brainlsap[surfaces]', or leave engine at 'matplotlib'."
        ) from error
    return pyvista


def _photographs(
    pyvista: Any, plan: Plan, column: int, palettes: list[np.ndarray]
) -> list[np.ndarray]:
    """Return the images of one view, one for each map, on the flat picture's pixels."""
    look = VIEWS[plan.columns[column]]
    order = [side for line in look.drawings for side, _ in line]
    cut = {side: cut_mesh(plan.atlas, plan.kind(column), side) for side in order}
    points, _ = arrange(look, {side: one.points for side, one in cut.items()})
    faces, region, borders = _joined([cut[side] for side in order])
    mesh = pyvista.PolyData.from_regular_faces(points, faces)
    height, width = plan.pictures()[column].region.shape
    plotter = pyvista.Plotter(
        off_screen=True, window_size=(width, height), lighting="none"
    )
    plotter.add_light(pyvista.Light(light_type="headlight"))
    plotter.enable_anti_aliasing("ssaa")
    _add_borders(pyvista, plotter, points, borders, plan)
    _look_from_front(plotter, points, height, PIXELS_PER_MM[look.subcortex])
    images = []
    for colours in palettes:
        mesh.cell_data["colour"] = colours[region]
        # The name lets a map take the place of the one before.
        how = {"name": "brain", "smooth_shading": True, "reset_camera": False}
        plotter.add_mesh(mesh, scalars="colour", rgb=True, **how, **_LIGHT)
        images.append(plotter.screenshot(return_img=True, transparent_background=True))
    plotter.close()
    return images


def _joined(cuts: list[CutMesh]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    starts = np.cumsum([0] + [len(one.points) for one in cuts[:-1]])
    pairs = list(zip(cuts, starts, strict=True))
    return (
        np.concatenate([one.faces + start for one, start in pairs]),
        np.concatenate([one.region for one in cuts]),
        np.concatenate([one.borders + start for one, start in pairs]),
    )


def _add_borders(
    pyvista: Any, plotter: Any, points: np.ndarray, borders: np.ndarray, plan: Plan
) -> None:
    if not len(borders):
        return
    # A little towards the viewer, or the surface hides half of the line.
    raised = points + np.array([0.0, 0.0, 0.4])
    cells = np.column_stack([np.full(len(borders), 2), borders])
    lines = pyvista.PolyData(raised, lines=cells.ravel())
    ink = tuple(int(part) for part in colour_bytes(plan.theme.outline))
    plotter.add_mesh(lines, color=ink, line_width=1.6, lighting=False)


def _look_from_front(
    plotter: Any, points: np.ndarray, height: int, pixels_per_mm: float
) -> None:
    """Set the camera so that a pixel is what it is in the flat picture."""
    low, high = points[:, :2].min(axis=0), points[:, :2].max(axis=0)
    x, y = (low + high) / 2
    camera = plotter.camera
    camera.parallel_projection = True
    camera.focal_point = (x, y, 0)
    camera.position = (x, y, 1000)
    camera.up = (0, 1, 0)
    camera.parallel_scale = height / pixels_per_mm / 2
    camera.clipping_range = (100, 2000)
