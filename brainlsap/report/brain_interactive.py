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
from brainlsap.report import brain_raster as raster
from brainlsap.report.brain import color_scale, region_colors, region_maps

_DISTANCE = 1.7  # of the viewer, in sizes of the brain
_APART = 4.0  # mm between the hemispheres, which inflation pushes into each other
# nearly flat: light that comes from one side would be read as another value
_LIGHTING = {"ambient": 0.95, "diffuse": 0.1, "specular": 0.0, "roughness": 0.9}


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
        raise ParameterError(f"{atlas.name}: no surfaces to turn; plot_regions works.")
    values = region_maps(maps, atlas)
    scale = color_scale(values, cmap, vmin, vmax)
    pieces = _pieces(atlas)
    regions, traces = [region for region, *_ in pieces], [*range(len(pieces))]
    looks: dict[str, list[Any]] = {}
    for name, one in values.items():
        colors = [to_hex(color) for color in region_colors(one, scale)]
        texts = [_describe(atlas, place, value) for place, value in enumerate(one)]
        texts.append("no region")  # -1
        look = {"color": colors, "hovertext": texts}
        look = {key: [each[k] for k in regions] for key, each in look.items()}
        looks[_plain(name)] = [look, traces]
    views = _views(pieces)
    menus = []
    for method, each, y in (("restyle", looks, 0.99), ("update", views, 0.88)):
        buttons = [{"label": k, "method": method, "args": v} for k, v in each.items()]
        if len(buttons) > 1:
            place = {"x": 0.01, "xanchor": "left", "y": y, "yanchor": "top"}
            menus.append({"buttons": buttons, **place})
    layout = {
        "title": {"text": _plain(title)},
        "scene": {f"{axis}axis": {"visible": False} for axis in "xyz"},
        "showlegend": False,
        "margin": {"l": 0, "r": 0, "b": 0, "t": 40 if title else 0},
        "updatemenus": menus,
    }
    style = {"type": "mesh3d", "hoverinfo": "text", "lighting": _LIGHTING}
    drawn = [style | shape for *_, shape in pieces]
    figure = go.Figure([*drawn, _color_bar(scale, _plain(colorbar_label))], layout)
    figure.update_scenes(aspectmode="data")
    figure.plotly_restyle(*next(iter(looks.values())))
    figure.plotly_update(*next(iter(views.values())))
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


def _pieces(atlas: Atlas) -> list[Any]:
    """Return regions (-1: none), their sides, whether below the cortex, and shapes."""
    pieces = []
    for below in (False, True) if atlas.meshes() else (False,):
        for side, sign in (("L", -1), ("R", 1)):
            points, faces, regions = raster.region_mesh(atlas, side, below=below)
            if not below:
                inwards = _APART / 2 - (sign * points[:, 0]).min()
                points = points + np.array([sign * inwards, 0, 0])
            for region in np.unique(regions):
                corners = points[faces[regions == region]].reshape(-1, 3)
                # Cut points stand once in each triangle; joined, light falls smoothly.
                kept, joined = np.unique(
                    corners.round(3).astype(np.float32), axis=0, return_inverse=True
                )
                columns = [*kept.T, *joined.reshape(-1, 3).astype(np.int32).T]
                shape = dict(zip("xyzijk", columns, strict=True))
                pieces.append((int(region), side, below, shape))
    return pieces


def _views(pieces: list[Any]) -> dict[str, list[Any]]:
    """Return what each view shows, and from where."""
    views = {}
    for view, lines in raster.VIEWS.items():
        sides = {side for line in lines for side, _ in line}
        below = view == "subcortex"
        seen = [side in sides and where == below for _, side, where, _ in pieces]
        _, up, near = raster.CAMERAS[lines[0][0][1]]
        eye, up = (dict(zip("xyz", v, strict=True)) for v in (_DISTANCE * near, up))
        if any(seen):
            camera = {"scene.camera": {"eye": eye, "up": up}}
            views[view.capitalize()] = [{"visible": [*seen, True]}, camera]
    return views


def _color_bar(scale: Any, label: str) -> dict[str, Any]:
    """Return a trace of no points that carries the bar."""
    low, high = scale.get_clim()
    steps = np.linspace(0, 1, 33)
    marker = {"color": [low, high], "cmin": low, "cmax": high, "showscale": True}
    marker["colorscale"] = [*zip(steps, map(to_hex, scale.cmap(steps)), strict=True)]
    marker["colorbar"] = {"title": {"text": label}, "len": 0.7}
    place = {axis: [None, None] for axis in "xyz"}
    return {"type": "scatter3d", "mode": "markers", "marker": marker, **place}
