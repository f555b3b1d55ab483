"""A brain to turn in a browser or notebook: names on hover, a menu of maps."""

from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from matplotlib.colors import Colormap, to_hex

from brainlsap.arrays import check_choice
from brainlsap.atlas import Atlas
from brainlsap.files import replace_when_whole
from brainlsap.report.brain import (
    color_scale,
    has_surfaces,
    named_atlas,
    region_colors,
    region_label,
    region_maps,
)
from brainlsap.report.brain_raster import (
    SURFACES,
    VIEWS,
    region_mesh,
    subcortical_meshes,
)

# Where the viewer stands, and what is up.
_CAMERAS = {
    "left": ((-1.7, 0, 0), (0, 0, 1)),
    "right": ((1.7, 0, 0), (0, 0, 1)),
    "above": ((0, 0, 1.7), (0, 1, 0)),
    "below": ((0, 0, -1.7), (0, 1, 0)),
}
_APART = 4.0  # mm between the hemispheres, which inflation pushes into each other
_LIGHTING = {"ambient": 0.75, "diffuse": 0.4, "specular": 0.02, "roughness": 0.9}


def interactive_brain(
    maps: Any,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    title: str | None = None,
    cmap: str | Colormap = "viridis",
    vmin: float | None = None,
    vmax: float | None = None,
    surface: str = "inflated",
    colorbar_label: str | None = None,
) -> go.Figure:
    """Draw a brain to turn, with the name and value of a region on hover.

    A notebook shows the figure; a menu switches between the maps, another one between
    the views. An atlas without surfaces is drawn as markers at its coordinates, and one
    without coordinates as bars.

    Parameters
    ----------
    maps, atlas, title, cmap, vmin, vmax, surface, colorbar_label
        As for :func:`brainlsap.report.plot_regions`.

    Returns
    -------
    plotly.graph_objects.Figure

    Raises
    ------
    RegionNameError
        If a name is unknown, or a region has two values.
    ParameterError
        If there is nothing to draw, or a limit cannot be used.
    """
    atlas = named_atlas(atlas)
    check_choice("surface", surface, SURFACES)
    values = region_maps(maps, atlas)
    scale, _ = color_scale(values, cmap, vmin, vmax)
    on_surface = has_surfaces(atlas)
    parts = _surface_parts(atlas, surface) if on_surface else _marker_parts(atlas)
    if not parts:
        return _bars(values, atlas, title, colorbar_label)
    figure = go.Figure([trace for *_, trace in parts])
    maps_menu: list[dict[str, Any]] = []
    for name, one in values.items():
        colors = [to_hex(color / 255) for color in region_colors(one, scale)]
        texts = [_describe(atlas, place, one[place]) for place in range(len(atlas))]
        texts += ["", "", "no region", ""]  # lines, NO_REGION, BACKGROUND
        look: dict[str, Any] = {
            "color" if on_surface else "marker.color": [colors[p[0]] for p in parts],
            "hovertext": [texts[part[0]] for part in parts],
        }
        args = [look, list(range(len(parts)))]
        label = escape(name, quote=False) or "values"
        maps_menu.append({"label": label, "method": "restyle", "args": args})
    views_menu = _views_menu(parts) if on_surface else []
    first_look = maps_menu[0]["args"][0]
    for place, trace in enumerate(figure.data):
        trace.update({key: shown[place] for key, shown in first_look.items()})
        if views_menu:
            trace.visible = views_menu[0]["args"][0]["visible"][place]
    figure.add_trace(_color_bar(scale, escape(colorbar_label or "", quote=False)))
    if views_menu:
        figure.update_layout({"scene.camera": views_menu[0]["args"][1]["scene.camera"]})
    menus = [maps_menu if len(maps_menu) > 1 else [], views_menu]
    figure.update_layout(
        title={"text": escape(title or "", quote=False)},
        scene={f"{axis}axis": {"visible": False} for axis in "xyz"},
        scene_aspectmode="data",
        showlegend=False,
        margin={"l": 0, "r": 0, "b": 0, "t": 40 if title else 0},
        updatemenus=[
            {"buttons": menu, "x": 0.01, "y": y, "xanchor": "left", "yanchor": "top"}
            for menu, y in zip(menus, (0.99, 0.88), strict=True)
            if menu
        ],
    )
    return figure


def write_interactive(
    maps: Any,
    path: str | Path,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    include_plotlyjs: bool | str = True,
    **options: Any,
) -> Path:
    """Write a brain to turn as one HTML file that needs no network.

    Parameters
    ----------
    maps, atlas
        As for :func:`interactive_brain`.
    path : str or Path
        The file; one of this name is replaced.
    include_plotlyjs : bool or str
        As Plotly has it: True writes its 5 MB into the file; "directory" refers to one
        `plotly.min.js` for all pages in the folder, written if it is not there.
    **options
        Further parameters of :func:`interactive_brain`.

    Returns
    -------
    Path
        The file.
    """
    figure, path = interactive_brain(maps, atlas, **options), Path(path)
    # The id is random otherwise, and the file another one every time.
    how = {"include_plotlyjs": include_plotlyjs, "div_id": "brain"}
    with replace_when_whole(path) as partial:
        figure.write_html(partial, config={"displaylogo": False}, **how)
    return path


def _surface_parts(atlas: Atlas, surface: str) -> list[tuple[int, str, bool, Any]]:
    """Return region, hemisphere, whether it is subcortical, and trace of each piece."""
    parts = []
    for kind in (surface, "subcortex") if subcortical_meshes(atlas) else (surface,):
        for side, sign in (("L", -1), ("R", 1)):
            mesh = region_mesh(atlas, side, kind)
            points = mesh.points.copy()
            if kind != "subcortex":
                points[:, 0] += sign * (_APART / 2 - (sign * points[:, 0]).min())
            for region in np.unique(mesh.region):
                corners = points[mesh.faces[mesh.region == region]].reshape(-1, 3)
                # Cut points stand once in each triangle; joined, light falls smoothly.
                kept, faces = np.unique(
                    corners.round(3).astype(np.float32), axis=0, return_inverse=True
                )
                (x, y, z), (i, j, k) = kept.T, faces.reshape(-1, 3).astype(np.int32).T
                shape = {"x": x, "y": y, "z": z, "i": i, "j": j, "k": k}
                trace = go.Mesh3d(**shape, hoverinfo="text", lighting=_LIGHTING)
                parts.append((int(region), side, kind == "subcortex", trace))
    return parts


def _marker_parts(atlas: Atlas) -> list[tuple[int, str, bool, Any]]:
    centres = atlas.regions[["x", "y", "z"]].to_numpy(float)
    sides = list(atlas.regions["hemisphere"])
    parts: list[tuple[int, str, bool, Any]] = []
    for place in np.flatnonzero(np.isfinite(centres).all(axis=1)).tolist():
        x, y, z = centres[place, :, None]
        shape = {"x": x, "y": y, "z": z, "mode": "markers", "marker": {"size": 6}}
        trace = go.Scatter3d(**shape, hoverinfo="text")
        parts.append((place, sides[place], False, trace))
    return parts


def _bars(
    values: dict[str, np.ndarray], atlas: Atlas, title: str | None, label: str | None
) -> go.Figure:
    figure = go.Figure()
    names = [escape(name, quote=False) for name in atlas.names]
    for name, one in values.items():
        texts = [_describe(atlas, place, one[place]) for place in range(len(atlas))]
        bars = {"x": names, "y": one, "hovertext": texts, "hoverinfo": "text"}
        figure.add_bar(name=escape(name, quote=False), **bars)
    figure.update_yaxes(title=escape(label or "", quote=False))
    note = f"Atlas {atlas.name} has neither surfaces nor coordinates."
    lines = [escape(line, quote=False) for line in (title or "", note)]
    return figure.update_layout(title={"text": "<br>".join(filter(None, lines))})


def _describe(atlas: Atlas, place: int, value: float) -> str:
    number = "no value" if np.isnan(value) else f"{value:.4g}"
    label = escape(region_label(atlas, place), quote=False)
    return f"<b>{label}</b><br>{escape(atlas.names[place], quote=False)}<br>{number}"


def _views_menu(parts: list[tuple[int, str, bool, Any]]) -> list[dict[str, Any]]:
    menu = []
    for view, lines in VIEWS.items():
        below = view == "subcortex"
        sides = {side for line in lines for side, _ in line}
        seen = [side in sides and sub == below for _, side, sub, _ in parts]
        if any(seen):
            eye, up = (
                dict(zip("xyz", v, strict=True)) for v in _CAMERAS[lines[0][0][1]]
            )
            camera = {"scene.camera": {"eye": eye, "up": up}}
            args = [{"visible": [*seen, True]}, camera]
            menu.append({"label": view.capitalize(), "method": "update", "args": args})
    return menu


def _color_bar(scale: Any, label: str) -> go.Scatter3d:
    """Return a trace of no points that carries the bar."""
    low, high = scale.get_clim()
    steps = np.linspace(0, 1, 33)
    colors = [to_hex(color) for color in scale.to_rgba(low + steps * (high - low))]
    marker = {
        "color": [low, high],
        "cmin": low,
        "cmax": high,
        "colorscale": list(zip(steps.tolist(), colors, strict=True)),
        "showscale": True,
        "colorbar": {"title": {"text": label}, "len": 0.7},
    }
    empty = [None, None]
    return go.Scatter3d(x=empty, y=empty, z=empty, mode="markers", marker=marker)
