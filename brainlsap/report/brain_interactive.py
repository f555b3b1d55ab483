"""An interactive brain for a browser or notebook: names on hover, a menu of maps."""

from collections.abc import Sequence
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
from matplotlib.colors import Colormap, to_hex

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.exceptions import ParameterError
from brainlsap.files import replace_when_whole
from brainlsap.report.brain import (
    RegionValues,
    compute_region_rgba,
    make_map_table,
    make_scalar_mappable,
)
from brainlsap.report.brain_layout import CAMERAS, VIEWS, hemisphere_mesh

_VIEWER_DISTANCE = 1.7  # in sizes of the brain
_HEMISPHERE_GAP = 4.0  # mm; inflation pushes the hemispheres into each other
# nearly flat: light that comes from one side would be read as another value
_LIGHTING = {"ambient": 0.95, "diffuse": 0.1, "specular": 0.0, "roughness": 0.9}


class _RegionSurface(NamedTuple):
    """The surface of a region (-1: of none), with its points and triangles."""

    region_index: int
    hemisphere: str
    is_subcortex: bool
    mesh_array_by_argument: dict[str, np.ndarray]


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
            f"atlas {atlas.name} has no surfaces for an interactive view. Use "
            "plot_regions."
        )
    map_table = make_map_table(maps, atlas)
    scalar_mappable = make_scalar_mappable(map_table, cmap, vmin, vmax)
    region_surfaces = _make_region_surfaces(atlas)
    region_indices = [region_surface.region_index for region_surface in region_surfaces]
    trace_indices = [*range(len(region_surfaces))]
    restyle_arguments_by_map: dict[str, list[Any]] = {}
    for map_name, map_series in map_table.items():
        hex_colors = [
            to_hex(region_color)
            for region_color in compute_region_rgba(map_series, scalar_mappable)
        ]
        hover_texts = [
            _hover_text(atlas, region_index, x)
            for region_index, x in enumerate(map_series)
        ]
        hover_texts.append("no region")  # -1
        surface_style = {
            "color": [hex_colors[region_index] for region_index in region_indices],
            "hovertext": [hover_texts[region_index] for region_index in region_indices],
        }
        restyle_arguments_by_map[_text_with_escaped_tags(map_name)] = [
            surface_style,
            trace_indices,
        ]
    arguments_by_view = _make_button_arguments_by_view(region_surfaces)
    button_menus = []
    for update_method, arguments_by_label, y in (
        ("restyle", restyle_arguments_by_map, 0.99),
        ("update", arguments_by_view, 0.88),
    ):
        menu_buttons = [
            {"label": button_label, "method": update_method, "args": button_arguments}
            for button_label, button_arguments in arguments_by_label.items()
        ]
        if len(menu_buttons) > 1:
            menu_position = {"x": 0.01, "xanchor": "left", "y": y, "yanchor": "top"}
            button_menus.append({"buttons": menu_buttons, **menu_position})
    layout_settings = {
        "title": {"text": _text_with_escaped_tags(title)},
        "scene": {f"{axis_letter}axis": {"visible": False} for axis_letter in "xyz"},
        "showlegend": False,
        "margin": {"l": 0, "r": 0, "b": 0, "t": 40 if title else 0},
        "updatemenus": button_menus,
    }
    mesh_style = {"type": "mesh3d", "hoverinfo": "text", "lighting": _LIGHTING}
    surface_traces = [
        mesh_style | region_surface.mesh_array_by_argument
        for region_surface in region_surfaces
    ]
    figure = go.Figure(
        [
            *surface_traces,
            _make_color_bar_trace(
                scalar_mappable, _text_with_escaped_tags(colorbar_label)
            ),
        ],
        layout_settings,
    )
    figure.update_scenes(aspectmode="data")
    figure.plotly_restyle(*next(iter(restyle_arguments_by_map.values())))
    figure.plotly_update(*next(iter(arguments_by_view.values())))
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
    path = Path(path)
    page_html = interactive_brain_html(maps, atlas, **options)
    with replace_when_whole(path) as partial_path:
        partial_path.write_text(page_html, "utf-8")
    return path


def interactive_brain_html(
    maps: RegionValues, atlas: str | Path | Atlas = "destrieux160", **options: Any
) -> str:
    """Return the HTML file of :func:`write_interactive`, as text."""
    figure = interactive_brain(maps, atlas, **options)
    # An id is random otherwise, and the file another one every time.
    return figure.to_html(config={"displaylogo": False}, div_id="brain")


def _text_with_escaped_tags(unescaped_text: str | None) -> str:
    """Return a text in which Plotly reads no tags."""
    return escape(unescaped_text or "", quote=False)


def _hover_text(atlas: Atlas, region_index: int, region_value: float) -> str:
    """Return the text shown on hover: the region's names and its value."""
    value_text = "no value" if np.isnan(region_value) else f"{region_value:.4g}"
    full_name, region_name = atlas.full_names[region_index], atlas.names[region_index]
    names_html = (
        f"<b>{_text_with_escaped_tags(full_name)}</b><br>"
        f"{_text_with_escaped_tags(region_name)}"
    )
    return f"{names_html}<br>{value_text}"


@lru_cache(maxsize=4)  # an atlas is hashed by identity
def _make_region_surfaces(atlas: Atlas) -> tuple[_RegionSurface, ...]:
    """Return the surfaces of all regions, and of the cortex that belongs to none."""
    region_surfaces = []
    for is_subcortex in (False, True) if atlas.meshes() else (False,):
        for hemisphere, side_sign in (("L", -1), ("R", 1)):
            mesh_points, faces, face_region_indices = hemisphere_mesh(
                atlas, hemisphere, is_subcortex=is_subcortex
            )
            if not is_subcortex:
                hemisphere_shift = (
                    _HEMISPHERE_GAP / 2 - (side_sign * mesh_points[:, 0]).min()
                )
                mesh_points = mesh_points + np.array(
                    [side_sign * hemisphere_shift, 0, 0]
                )
            for region_index in np.unique(face_region_indices):
                corner_points = mesh_points[
                    faces[face_region_indices == region_index]
                ].reshape(-1, 3)
                # Cut points stand once in each triangle; merged, light falls smoothly.
                vertices, vertex_indices = np.unique(
                    corner_points.round(3).astype(np.float32),
                    axis=0,
                    return_inverse=True,
                )
                triangle_vertices = vertex_indices.reshape(-1, 3).astype(np.int32)
                mesh_arrays = [*vertices.T, *triangle_vertices.T]
                coordinates_by_letter = dict(zip("xyzijk", mesh_arrays, strict=True))
                region_surfaces.append(
                    _RegionSurface(
                        int(region_index),
                        hemisphere,
                        is_subcortex,
                        coordinates_by_letter,
                    )
                )
    return tuple(region_surfaces)


def _make_button_arguments_by_view(
    region_surfaces: Sequence[_RegionSurface],
) -> dict[str, list[Any]]:
    """Return the contents of each view, and its direction."""
    arguments_by_view = {}
    for view_name, view_lines in VIEWS.items():
        hemisphere_set = {
            hemisphere
            for hemisphere_camera_pairs in view_lines
            for hemisphere, _ in hemisphere_camera_pairs
        }
        is_subcortex = view_name == "subcortex"
        visible_trace_flags = [
            region_surface.hemisphere in hemisphere_set
            and region_surface.is_subcortex == is_subcortex
            for region_surface in region_surfaces
        ]
        if not any(visible_trace_flags):
            continue
        _, up_direction, towards_viewer = CAMERAS[view_lines[0][0][1]]
        camera_settings = {
            "eye": dict(zip("xyz", _VIEWER_DISTANCE * towards_viewer, strict=True)),
            "up": dict(zip("xyz", up_direction, strict=True)),
        }
        # the last trace is the colour bar
        button_arguments = [
            {"visible": [*visible_trace_flags, True]},
            {"scene.camera": camera_settings},
        ]
        arguments_by_view[view_name.capitalize()] = button_arguments
    return arguments_by_view


def _make_color_bar_trace(scalar_mappable: Any, bar_label: str) -> dict[str, Any]:
    """Return a trace without points that carries the colour bar."""
    lower_limit, upper_limit = scalar_mappable.get_clim()
    color_positions = np.linspace(0, 1, 33)
    marker_style = {
        "color": [lower_limit, upper_limit],
        "cmin": lower_limit,
        "cmax": upper_limit,
        "showscale": True,
    }
    marker_style["colorscale"] = [
        *zip(
            color_positions,
            map(to_hex, scalar_mappable.cmap(color_positions)),
            strict=True,
        )
    ]
    marker_style["colorbar"] = {"title": {"text": bar_label}, "len": 0.7}
    empty_coordinates = {axis_letter: [None, None] for axis_letter in "xyz"}
    return {
        "type": "scatter3d",
        "mode": "markers",
        "marker": marker_style,
        **empty_coordinates,
    }
