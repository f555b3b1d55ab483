"""A brain to turn in the browser: one file, no network, no other library."""

import base64
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from brainlsap._arrays import check_choice
from brainlsap._files import write_text
from brainlsap.data.atlas import Atlas
from brainlsap.report.surface_labels import TOP
from brainlsap.report.surface_mesh import CutMesh, cut_mesh
from brainlsap.report.surface_pictures import scene_of
from brainlsap.report.surface_sheet import LIGHT
from brainlsap.report.surface_values import (
    Colours,
    as_atlas,
    as_maps,
    hex_colours,
    palette,
    shared_colours,
)
from brainlsap.report.surface_views import MESHES, VIEWS

# Where the viewer stands: turned about the axis of the body, and raised.
_STANDS = {
    "from left": (np.pi, 0.0),
    "from right": (0.0, 0.0),
    "from above": (-np.pi / 2, np.pi / 2),
    "from below": (np.pi / 2, -np.pi / 2),
}
_HUNDREDTHS = 100  # of a mm: what is kept of a coordinate, in two bytes


def write_interactive(
    values: Any,
    path: str | Path,
    atlas: str | Path | Atlas = "destrieux160",
    **how: Any,
) -> Path:
    """Write one HTML file with a brain to turn, for values by region name.

    Parameters
    ----------
    values : Series, DataFrame or mapping
        As for :func:`plot_regions`; a menu switches between several maps.
    path : str or Path
        The file, such as `brain.html`; one that is there is replaced.
    atlas : str, Path or Atlas
        What :func:`brainlsap.data.load_atlas` takes, with surface files.
    **how
        As for :func:`interactive_html`.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> values = {"lh_G_precuneus": 0.04, "(L) Sub.put": 0.06}
    >>> path = write_interactive(values, tempfile.mkdtemp() + "/brain.html")
    >>> path.stat().st_size < 2_000_000
    True
    """
    return write_text(path, interactive_html(values, atlas, **how))


def interactive_html(
    values: Any,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    meshes: Sequence[str] = ("inflated", "pial"),
    cmap: Any = "viridis",
    limits: tuple[float, float] | None = None,
    top: str = "smallest",
    title: str = "Regions of the brain",
    colorbar_label: str | None = None,
) -> str:
    """Return a page with both hemispheres and the subcortex, to turn and point at.

    Pointing at a region shows its name, value and rank. A table holds the same for
    those who cannot see or point; every control works by keyboard. The page needs no
    network, no WebGL and no library.

    Parameters
    ----------
    values : Series, DataFrame or mapping
        As for :func:`plot_regions`; a menu switches between several maps.
    atlas : str, Path or Atlas
        What :func:`brainlsap.data.load_atlas` takes, with surface files.
    meshes : sequence of {"inflated", "half-inflated", "pial", "white"}
        Surfaces of the cortex to choose from, the first one shown first.
    cmap : str or Colormap
        Colours, low to high.
    limits : tuple of (float, float) or None
        Values of the first and last colour; by default of all maps.
    top : {"smallest", "largest"}
        Which value has rank 1. Equal values share the better rank.
    title : str
        Title of the page.
    colorbar_label : str or None
        What the values are, with their unit.

    Returns
    -------
    str
        HTML. To put it into another page, escape it into the `srcdoc` of an iframe.

    Raises
    ------
    RegionNameError
        If a name is unknown, or a region has two values.
    ParameterError
        If there is nothing to draw, or a mesh, a limit or `top` cannot be used.

    Examples
    --------
    >>> html = interactive_html({"lh_G_precuneus": 0.04, "(L) Sub.put": 0.06})
    >>> html.startswith("<!DOCTYPE html>"), "http" in html.replace("http-equiv", "")
    (True, False)
    """
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup

    atlas = as_atlas(atlas)
    check_choice("top", top, TOP)
    for mesh in meshes:
        check_choice("mesh", mesh, MESHES)
    maps = as_maps(values, atlas)
    colours = shared_colours(np.stack(list(maps.values())), cmap, limits)
    below = (atlas.regions["structure"] == "subcortex").any() and bool(atlas.meshes())
    views = _views()
    data = {
        "regions": list(zip(atlas.names, _long_names(atlas), strict=True)),
        "parts": _parts(atlas, tuple(meshes), bool(below)),
        "maps": [_map(name, one, colours, top) for name, one in maps.items()],
        "views": {view["key"]: view for view in views},
        "bar": _bar(colours),
        "wall": LIGHT.no_region,
        "grey": LIGHT.no_value,
        "order": f"Rank 1 is the {top} value.",
    }
    page = Environment(
        loader=PackageLoader("brainlsap.report"), autoescape=True, trim_blocks=True
    )
    return page.get_template("brain.html.j2").render(
        title=title,
        label=colorbar_label or "",
        maps=[name or "values" for name in maps],
        meshes=meshes,
        views=views,
        data=Markup(_safe_json(data)),
    )


def _safe_json(data: Any) -> str:
    """Return JSON in which no text can end the script element that it stands in."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _long_names(atlas: Atlas) -> list[str]:
    given = atlas.regions["long_name"].fillna("").astype(str)
    short = atlas.short_names
    return [name or short[k] for k, name in enumerate(given)]


def _map(name: str, values: np.ndarray, colours: Colours, top: str) -> dict[str, Any]:
    signed = values if top == "smallest" else -values
    ranked = np.sort(signed[~np.isnan(signed)])
    ranks = np.searchsorted(ranked, signed, side="left") + 1
    painted = palette(values, colours.scale, LIGHT)[: len(values)]
    known = (~np.isnan(values)).tolist()
    return {
        "name": name,
        "colours": hex_colours(painted),
        "values": [
            float(f"{value:.6g}") if here else None
            for value, here in zip(values.tolist(), known, strict=True)
        ],
        "ranks": [
            rank if here else None
            for rank, here in zip(ranks.tolist(), known, strict=True)
        ],
        "ranked": len(ranked),
    }


def _bar(colours: Colours) -> dict[str, Any]:
    low, high = colours.scale.get_clim()
    steps = np.linspace(low, high, 33)
    shown = hex_colours(colours.scale.to_rgba(steps, bytes=True))
    return {"low": float(low), "high": float(high), "colours": shown}


def _views() -> list[dict[str, Any]]:
    """Return the views of the cortex; the subcortex stands beside all of them."""
    views = []
    for key, look in VIEWS.items():
        if look.subcortex:
            continue
        (line,) = look.drawings
        yaw, pitch = _STANDS[line[0][1]]
        sides = "".join(side for side, _ in line)
        view = {"key": key, "title": look.title, "sides": sides}
        views.append({**view, "yaw": yaw, "pitch": pitch})
    return views


@lru_cache(maxsize=4)
def _parts(atlas: Atlas, meshes: tuple[str, ...], below: bool) -> list[dict[str, Any]]:
    parts = []
    for side in ("L", "R"):
        cut = cut_mesh(atlas, meshes[0], side)
        shapes = [cut.blend @ scene_of(atlas, mesh, side).points for mesh in meshes]
        parts.append(_part("cortex", side, cut, shapes))
    for side in ("L", "R") if below else ():
        cut = cut_mesh(atlas, "subcortex", side)
        parts.append(_part("subcortex", side, cut, [cut.points]))
    return parts


def _part(
    kind: str, side: str, cut: CutMesh, shapes: list[np.ndarray]
) -> dict[str, Any]:
    """Return a mesh as text: coordinates, triangles and regions in two bytes each."""
    return {
        "kind": kind,
        "side": side,
        "points": [_text(np.round(one * _HUNDREDTHS), "<i2") for one in shapes],
        "faces": _text(cut.faces, "<u2"),
        "region": _text(cut.region, "<i2"),
    }


def _text(values: np.ndarray, kind: str) -> str:
    return base64.b64encode(values.astype(kind).tobytes()).decode("ascii")
