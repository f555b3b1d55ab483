"""Draw a planned brain figure with plotly: one brain to turn, and menus."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from brainlsap.report.surface_mesh import cut_mesh
from brainlsap.report.surface_pictures import NO_REGION
from brainlsap.report.surface_plan import Plan
from brainlsap.report.surface_values import hex_colours
from brainlsap.report.surface_views import VIEWS

# Where the viewer stands, and what is up, by the camera of a view.
_EYES = {
    "from left": ((-1.7, 0, 0), (0, 0, 1)),
    "from right": ((1.7, 0, 0), (0, 0, 1)),
    "from above": ((0, 0, 1.7), (0, 1, 0)),
    "from below": ((0, 0, -1.7), (0, 1, 0)),
}
_APART = 4.0  # mm between the hemispheres, which inflation pushed into each other
_LIGHTING = {"ambient": 0.75, "diffuse": 0.4, "specular": 0.02, "roughness": 0.9}


@dataclass(frozen=True, eq=False)
class _Part:
    """The piece of surface that is one region."""

    region: int
    side: str
    kind: str
    points: np.ndarray
    faces: np.ndarray


def draw_turning(plan: Plan) -> Any:
    """Draw one brain to turn; a menu switches the map, another one the view.

    Parameters
    ----------
    plan : Plan
        What to show.

    Returns
    -------
    plotly.graph_objects.Figure
        One trace a region, so that a switch of maps sends 160 colours.

    Raises
    ------
    ImportError
        If plotly is not installed.
    """
    graph = import_plotly()
    parts = _parts(plan)
    maps, views = _map_buttons(plan, parts), _view_buttons(plan, parts)
    painted, (seen, camera) = maps[0]["args"][0], views[0]["args"]
    figure = graph.Figure([_trace(graph, part) for part in parts])
    figure.add_trace(_colour_bar(graph, plan))
    for place in range(len(parts)):
        figure.data[place].update({key: one[place] for key, one in painted.items()})
        figure.data[place].visible = seen["visible"][place]
    hidden = {f"{axis}axis": {"visible": False} for axis in "xyz"}
    figure.update_layout(
        title={"text": plan.title},
        scene={**hidden, "aspectmode": "data", "camera": camera["scene.camera"]},
        paper_bgcolor=plan.theme.paper,
        font={"color": plan.theme.ink},
        showlegend=False,
        updatemenus=[
            {"buttons": buttons, "x": 0, "y": y, "xanchor": "left"}
            for buttons, y in ((maps, 1.0), (views, 0.88))
        ],
    )
    return figure


def import_plotly() -> Any:
    """Return plotly's graph objects, or say how to get them.

    Returns
    -------
    module

    Raises
    ------
    ImportError
        If plotly is not installed.
    """
    try:
        from plotly import graph_objects as go
    except ImportError as error:
        raise ImportError(
            "engine='plotly' needs plotly, which is not installed; get it by 'pip "
            "install brainlsap[surfaces]', or leave engine at 'matplotlib'."
        ) from error
    return go


def _parts(plan: Plan) -> list[_Part]:
    kinds = {plan.kind(column): None for column in range(len(plan.columns))}
    return [
        part for kind in kinds for side in "LR" for part in _pieces(plan, kind, side)
    ]


def _pieces(plan: Plan, kind: str, side: str) -> list[_Part]:
    points, faces, region = cut_mesh(plan.atlas, kind, side).by_region()
    if kind != "subcortex":
        sign = -1 if side == "L" else 1
        inner = sign * (sign * points[:, 0]).min()
        points = points + np.array([sign * _APART / 2 - inner, 0, 0])
    pieces = []
    for one in np.unique(region):
        own = faces[region[faces[:, 0]] == one]
        kept, place = np.unique(own, return_inverse=True)
        pieces.append(_Part(int(one), side, kind, points[kept], place.reshape(-1, 3)))
    return pieces


def _trace(graph: Any, part: _Part) -> Any:
    x, y, z = part.points.astype(np.float32).T
    i, j, k = part.faces.astype(np.int32).T
    mesh = {"x": x, "y": y, "z": z, "i": i, "j": j, "k": k}
    return graph.Mesh3d(**mesh, hoverinfo="text", lighting=_LIGHTING)


def _colour_bar(graph: Any, plan: Plan) -> Any:
    """Return a trace of no points, which carries the bar."""
    low, high = plan.colours.scale.get_clim()
    share = np.linspace(0, 1, 33)
    colours = hex_colours(
        plan.colours.scale.to_rgba(low + share * (high - low), bytes=True)
    )
    marker = {
        "color": [low, high],
        "cmin": low,
        "cmax": high,
        "colorscale": list(zip(share.tolist(), colours, strict=True)),
        "showscale": True,
        "colorbar": {"title": {"text": plan.label or ""}, "len": 0.7},
    }
    empty = [None, None]
    return graph.Scatter3d(x=empty, y=empty, z=empty, mode="markers", marker=marker)


def _map_buttons(plan: Plan, parts: list[_Part]) -> list[dict[str, Any]]:
    buttons = []
    for (name, values), colours in zip(plan.maps.items(), plan.palettes(), strict=True):
        colour = hex_colours(colours)
        texts = [*(_says(plan, k, values[k]) for k in range(len(values))), "", ""]
        texts[NO_REGION] = "no region"
        painted = {
            "color": [colour[part.region] for part in parts],
            "hovertext": [texts[part.region] for part in parts],
        }
        of = list(range(len(parts)))
        buttons.append(
            {"label": name or "values", "method": "restyle", "args": [painted, of]}
        )
    return buttons


def _says(plan: Plan, region: int, value: float) -> str:
    told = "no value" if np.isnan(value) else f"{value:.4g}"
    return f"{plan.atlas.names[region]}: {told}"


def _view_buttons(plan: Plan, parts: list[_Part]) -> list[dict[str, Any]]:
    buttons = []
    for view in plan.columns:
        look = VIEWS[view]
        sides = {side for line in look.drawings for side, _ in line}
        seen = [
            part.side in sides and (part.kind == "subcortex") == look.subcortex
            for part in parts
        ]
        eye, up = (
            dict(zip("xyz", one, strict=True)) for one in _EYES[look.drawings[0][0][1]]
        )
        camera = {"scene.camera": {"eye": eye, "up": up}}
        buttons.append(
            {
                "label": look.title,
                "method": "update",
                "args": [{"visible": [*seen, True]}, camera],
            }
        )
    return buttons
