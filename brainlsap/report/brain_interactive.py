"""An interactive brain for a browser or notebook: names on hover, a menu of maps."""

from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, to_hex

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.exceptions import ParameterError
from brainlsap.files import replace_when_whole
from brainlsap.report import brain_raster as raster
from brainlsap.report.brain import RegionValues, color_scale, region_colors, region_maps

_VIEWER_DISTANCE = 1.7  # in sizes of the brain
_HEMISPHERE_GAP = 4.0  # mm; inflation pushes the hemispheres into each other
# nearly flat: light that comes from one side would be read as another value
_LIGHTING = {"ambient": 0.95, "diffuse": 0.1, "specular": 0.0, "roughness": 0.9}


class _RegionSurface(NamedTuple):
    """The surface of a region (-1: of none), with its points and triangles."""

    region: int
    side: str
    is_subcortex: bool
    mesh: dict[str, np.ndarray]


def interactive_brain(
    maps: RegionValues,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    title: str | None = None,
    cmap: str | Colormap | None = None,
    vmin: float | None = None,
    vmax: float | None = None,
    colorbar_label: str | None = None,
) -> go.Figure:
    """Draw a brain to turn, with the name and value of a region on hover.

    A notebook shows the figure; a menu switches between the maps, another one between
    the views.

    Parameters
    ----------
    maps, atlas, title, cmap, vmin, vmax, colorbar_label
        As for :func:`brainlsap.report.plot_regions`.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    RegionNameError
        If a name is unknown, or a region has two values.
    ParameterError
        If there is nothing to draw, the atlas has no surfaces, or a limit cannot be
        used.
    """
    atlas = load_atlas(atlas)
    if not atlas.has_surfaces:
        raise ParameterError(
            f"{atlas.name}: no surfaces for an interactive view; plot_regions works."
        )
    values = region_maps(maps, atlas)
    scale = color_scale(values, cmap, vmin, vmax)
    surfaces = _region_surfaces(atlas)
    regions = [surface.region for surface in surfaces]
    trace_indices = [*range(len(surfaces))]
    styles_of_maps: dict[str, list[Any]] = {}
    for name, map_values in values.items():
        colors = [to_hex(color) for color in region_colors(map_values, scale)]
        texts = [_describe(atlas, region, x) for region, x in enumerate(map_values)]
        texts.append("no region")  # -1
        style = {
            "color": [colors[region] for region in regions],
            "hovertext": [texts[region] for region in regions],
        }
        styles_of_maps[_escape(name)] = [style, trace_indices]
    views = _views(surfaces)
    menus = []
    for method, choices, y in (
        ("restyle", styles_of_maps, 0.99),
        ("update", views, 0.88),
    ):
        buttons = [
            {"label": label, "method": method, "args": arguments}
            for label, arguments in choices.items()
        ]
        if len(buttons) > 1:
            position = {"x": 0.01, "xanchor": "left", "y": y, "yanchor": "top"}
            menus.append({"buttons": buttons, **position})
    layout = {
        "title": {"text": _escape(title)},
        "scene": {f"{axis}axis": {"visible": False} for axis in "xyz"},
        "showlegend": False,
        "margin": {"l": 0, "r": 0, "b": 0, "t": 40 if title else 0},
        "updatemenus": menus,
    }
    mesh_style = {"type": "mesh3d", "hoverinfo": "text", "lighting": _LIGHTING}
    traces = [mesh_style | surface.mesh for surface in surfaces]
    figure = go.Figure([*traces, _color_bar(scale, _escape(colorbar_label))], layout)
    figure.update_scenes(aspectmode="data")
    figure.plotly_restyle(*next(iter(styles_of_maps.values())))
    figure.plotly_update(*next(iter(views.values())))
    return figure


def write_interactive(
    maps: RegionValues,
    path: str | Path,
    atlas: str | Path | Atlas = "destrieux160",
    **options: Any,
) -> Path:
    """Write a brain to turn as one HTML file (5 MB) that needs no network.

    Parameters
    ----------
    maps, atlas
        As for :func:`interactive_brain`.
    path : str or Path
        The file; one of this name is replaced.
    **options
        Further parameters of :func:`interactive_brain`.

    Returns
    -------
    Path
        The file.
    """
    figure, path = interactive_brain(maps, atlas, **options), Path(path)
    with replace_when_whole(path) as partial:
        # An id is random otherwise, and the file another one every time.
        figure.write_html(partial, config={"displaylogo": False}, div_id="brain")
    return path


def _escape(text: str | None) -> str:
    """Return a text in which Plotly reads no tags."""
    return escape(text or "", quote=False)


def _describe(atlas: Atlas, region: int, value: float) -> str:
    """Return what is shown on hover: the region's names and its value."""
    number = "no value" if np.isnan(value) else f"{value:.4g}"
    full_name, name = atlas.full_names[region], atlas.names[region]
    return f"<b>{_escape(full_name)}</b><br>{_escape(name)}<br>{number}"


def _region_surfaces(atlas: Atlas) -> list[_RegionSurface]:
    """Return the surfaces of all regions, and of the cortex that belongs to none."""
    surfaces = []
    for is_subcortex in (False, True) if atlas.meshes() else (False,):
        for side, sign in (("L", -1), ("R", 1)):
            points, faces, regions = raster.region_mesh(
                atlas, side, is_subcortex=is_subcortex
            )
            if not is_subcortex:
                shift = _HEMISPHERE_GAP / 2 - (sign * points[:, 0]).min()
                points = points + np.array([sign * shift, 0, 0])
            for region in np.unique(regions):
                corners = points[faces[regions == region]].reshape(-1, 3)
                # Cut points stand once in each triangle; merged, light falls smoothly.
                vertices, vertex_index = np.unique(
                    corners.round(3).astype(np.float32), axis=0, return_inverse=True
                )
                triangles = vertex_index.reshape(-1, 3).astype(np.int32)
                columns = [*vertices.T, *triangles.T]
                mesh = dict(zip("xyzijk", columns, strict=True))
                surfaces.append(_RegionSurface(int(region), side, is_subcortex, mesh))
    return surfaces


def _views(surfaces: list[_RegionSurface]) -> dict[str, list[Any]]:
    """Return what each view shows, and from where."""
    views = {}
    for view, lines in raster.VIEWS.items():
        sides = {side for line in lines for side, _ in line}
        is_subcortex = view == "subcortex"
        is_visible = [
            surface.side in sides and surface.is_subcortex == is_subcortex
            for surface in surfaces
        ]
        if not any(is_visible):
            continue
        _, upwards, towards_viewer = raster.CAMERAS[lines[0][0][1]]
        camera = {
            "eye": dict(zip("xyz", _VIEWER_DISTANCE * towards_viewer, strict=True)),
            "up": dict(zip("xyz", upwards, strict=True)),
        }
        # the last trace is the colour bar
        arguments = [{"visible": [*is_visible, True]}, {"scene.camera": camera}]
        views[view.capitalize()] = arguments
    return views


def _color_bar(scale: ScalarMappable, label: str) -> dict[str, Any]:
    """Return a trace without points that carries the colour bar."""
    low, high = scale.get_clim()
    steps = np.linspace(0, 1, 33)
    marker = {"color": [low, high], "cmin": low, "cmax": high, "showscale": True}
    marker["colorscale"] = [*zip(steps, map(to_hex, scale.cmap(steps)), strict=True)]
    marker["colorbar"] = {"title": {"text": label}, "len": 0.7}
    no_points = {axis: [None, None] for axis in "xyz"}
    return {"type": "scatter3d", "mode": "markers", "marker": marker, **no_points}
