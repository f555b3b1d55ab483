"""A brain to turn in a browser or notebook: names on hover, a menu of maps."""

from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from matplotlib.colors import Colormap, to_hex

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.exceptions import ParameterError
from brainlsap.files import replace_when_whole
from brainlsap.report.brain import color_scale, is_located, region_colors, region_maps
from brainlsap.report.brain_raster import VIEWS, region_mesh, subcortical_meshes

# Where the viewer stands, and what is up.
_CAMERAS = {
    "left": ((-1.7, 0, 0), (0, 0, 1)),
    "right": ((1.7, 0, 0), (0, 0, 1)),
    "above": ((0, 0, 1.7), (0, 1, 0)),
    "below": ((0, 0, -1.7), (0, 1, 0)),
}
_APART = 4.0  # mm between the hemispheres, which inflation pushes into each other
_LIGHTING = {"ambient": 0.75, "diffuse": 0.4, "specular": 0.02, "roughness": 0.9}

# Region, hemisphere, whether it is subcortical, and trace of a piece.
Part = tuple[int, str, bool, Any]


def interactive_brain(
    maps: Any,
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
    the views. An atlas without surfaces is drawn as markers at its coordinates.

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
        If there is nothing to draw, or a limit cannot be used.
    """
    atlas = load_atlas(atlas)
    if not is_located(atlas):
        raise ParameterError(
            f"Atlas {atlas.name} has neither surfaces nor coordinates to draw on; "
            "plot_regions draws bars."
        )
    values = region_maps(maps, atlas)
    scale = color_scale(values, cmap, vmin, vmax)
    on_surface = atlas.has_surfaces
    parts = _surface_parts(atlas) if on_surface else _marker_parts(atlas)
    regions = [region for region, *_ in parts]
    figure = go.Figure([trace for *_, trace in parts])
    menus: list[list[dict[str, Any]]] = [[], _views_menu(parts)]
    for name, one in values.items():
        colors = [to_hex(color) for color in region_colors(one, scale)]
        texts = [_describe(atlas, place, value) for place, value in enumerate(one)]
        texts.append("no region")  # -1
        look: dict[str, Any] = {
            "color" if on_surface else "marker.color": [colors[k] for k in regions],
            "hovertext": [texts[k] for k in regions],
        }
        button = {"label": _plain(name), "method": "restyle"}
        menus[0].append(button | {"args": [look, [*range(len(parts))]]})
    first, view = menus[0][0]["args"][0], menus[1][0]["args"] if on_surface else None
    for place, trace in enumerate(figure.data):
        trace.update({key: shown[place] for key, shown in first.items()})
        trace.visible = view[0]["visible"][place] if view else True
    figure.add_trace(_color_bar(scale, _plain(colorbar_label)))
    at = {"x": 0.01, "xanchor": "left", "yanchor": "top"}
    figure.update_layout(
        title={"text": _plain(title)},
        scene={f"{axis}axis": {"visible": False} for axis in "xyz"},
        scene_aspectmode="data",
        showlegend=False,
        margin={"l": 0, "r": 0, "b": 0, "t": 40 if title else 0},
        updatemenus=[
            {"buttons": menu, "y": y, **at}
            for menu, y in zip(menus, (0.99, 0.88), strict=True)
            if len(menu) > 1
        ],
        **(view[1] if view else {}),
    )
    return figure


def write_interactive(
    maps: Any,
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


def _plain(text: str | None) -> str:
    return escape(text or "", quote=False)


def _describe(atlas: Atlas, place: int, value: float) -> str:
    number = "no value" if np.isnan(value) else f"{value:.4g}"
    label = _plain(atlas.full_names[place])
    return f"<b>{label}</b><br>{_plain(atlas.names[place])}<br>{number}"


def _surface_parts(atlas: Atlas) -> list[Part]:
    parts: list[Part] = []
    for below in (False, True) if subcortical_meshes(atlas) else (False,):
        for side, sign in (("L", -1), ("R", 1)):
            points, faces, regions = region_mesh(atlas, side, below=below)
            if not below:
                inwards = _APART / 2 - (sign * points[:, 0]).min()
                points = points + np.array([sign * inwards, 0, 0])
            for region in np.unique(regions):
                corners = points[faces[regions == region]].reshape(-1, 3)
                # Cut points stand once in each triangle; joined, light falls smoothly.
                kept, joined = np.unique(
                    corners.round(3).astype(np.float32), axis=0, return_inverse=True
                )
                (x, y, z), (i, j, k) = kept.T, joined.reshape(-1, 3).astype(np.int32).T
                shape = {"x": x, "y": y, "z": z, "i": i, "j": j, "k": k}
                trace = go.Mesh3d(**shape, hoverinfo="text", lighting=_LIGHTING)
                parts.append((int(region), side, below, trace))
    return parts


def _marker_parts(atlas: Atlas) -> list[Part]:
    parts: list[Part] = []
    for place, centre in enumerate(atlas.coordinates):
        if np.isfinite(centre).all():
            x, y, z = centre[:, None]
            shape = {"x": x, "y": y, "z": z, "mode": "markers", "marker": {"size": 6}}
            parts.append((place, "", False, go.Scatter3d(**shape, hoverinfo="text")))
    return parts


def _views_menu(parts: list[Part]) -> list[dict[str, Any]]:
    menu = []
    for view, lines in VIEWS.items():
        sides = {side for line in lines for side, _ in line}
        below = view == "subcortex"
        seen = [side in sides and sub == below for _, side, sub, _ in parts]
        eye, up = (dict(zip("xyz", v, strict=True)) for v in _CAMERAS[lines[0][0][1]])
        args = [{"visible": [*seen, True]}, {"scene.camera": {"eye": eye, "up": up}}]
        if any(seen):
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
