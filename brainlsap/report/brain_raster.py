"""Which region every pixel of a brain shows, seen from one side.

A small orthographic z-buffer in numpy: it needs no display and no graphics library,
and it answers with regions instead of colours, so that one look at a brain serves any
number of maps and every colour is exactly that of the colour bar.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from nilearn.datasets import load_fsaverage
from scipy.sparse import coo_array, eye_array

from brainlsap.atlas import Atlas
from brainlsap.exceptions import ParameterError

# What pixels show that are no region: the ground, brain without a region, lines.
BACKGROUND, NO_REGION, OUTLINE, SILHOUETTE = -1, -2, -3, -4

# View -> lines of drawings, the upper first: hemisphere, and where the viewer stands.
VIEWS: dict[str, tuple[tuple[tuple[str, str], ...], ...]] = {
    "dorsal": ((("L", "above"), ("R", "above")),),
    "ventral": ((("R", "below"), ("L", "below")),),
    "lateral left": ((("L", "left"),),),
    "lateral right": ((("R", "right"),),),
    "medial left": ((("L", "right"),),),
    "medial right": ((("R", "left"),),),
    "subcortex": (
        (("L", "left"), ("R", "right")),
        (("L", "right"), ("R", "left")),
    ),
}
SURFACES = ("inflated", "pial", "white_matter")
# How much darker a surface gets where it turns away from the viewer.
_SHADES = {"inflated": 0.0, "pial": 0.35, "white_matter": 0.35, "subcortex": 0.45}
# Viewer -> axes of the picture in RAS coordinates: to the right, up, to the viewer.
_CAMERAS = {
    "left": np.array([[0, -1, 0], [0, 0, 1], [-1, 0, 0]], float),
    "right": np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], float),
    "above": np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]], float),
    "below": np.array([[-1, 0, 0], [0, 1, 0], [0, 0, -1]], float),
}
_GAP = 5.0  # mm between the drawings of one view
_SMOOTHING = 3  # steps: as many as take the teeth of the triangles away


@dataclass(frozen=True, eq=False)
class RegionMesh:
    """A mesh in which every triangle belongs to one region.

    `points` (n_points, 3) in mm with outward `normals`, `faces` (n_faces, 3), and the
    position in the atlas of each face's `region`, or NO_REGION.
    """

    points: np.ndarray
    normals: np.ndarray
    faces: np.ndarray
    region: np.ndarray


@dataclass(frozen=True, eq=False)
class RegionPicture:
    """What every pixel of a view shows.

    `region` (height, width) is a position in the atlas, BACKGROUND or NO_REGION, and
    `pixels` the same with lines: OUTLINE between regions, SILHOUETTE around all.
    `light` is 1 where the surface faces the viewer, less where it turns away; None
    where it is not lit. `line_centres` are the heights of the lines of drawings, as
    shares from the top.
    """

    region: np.ndarray
    pixels: np.ndarray
    light: np.ndarray | None
    line_centres: tuple[float, ...]


@lru_cache(maxsize=1)
def _fsaverage() -> Any:
    return load_fsaverage("fsaverage5")


@lru_cache(maxsize=8)  # an atlas is hashed by identity
def subcortical_meshes(atlas: Atlas) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the subcortical surfaces of an atlas; their files are read once."""
    return atlas.meshes()


@lru_cache(maxsize=16)
def region_mesh(atlas: Atlas, hemisphere: str, surface: str) -> RegionMesh:
    """Return a hemisphere's cortex on fsaverage5, or its "subcortex"."""
    if surface == "subcortex":
        return _subcortical_mesh(atlas, hemisphere)
    part = {"L": "left", "R": "right"}[hemisphere]
    mesh = _fsaverage()[surface].parts[part]
    points, faces = np.asarray(mesh.coordinates, float), np.asarray(mesh.faces, int)
    labels = atlas.vertex_labels(hemisphere)
    if len(labels) != len(points):
        raise ParameterError(
            f"Atlas {atlas.name} labels {len(labels)} vertices of hemisphere "
            f"{hemisphere}; figures are drawn on fsaverage5, which has {len(points)}."
        )
    kinds, column = np.unique(
        np.where(labels < 0, NO_REGION, labels), return_inverse=True
    )
    membership = _smooth_membership(column, len(kinds), faces)
    with_normals = np.hstack([points, _vertex_normals(points, faces)])
    cut, faces, column = cut_at_borders(with_normals, faces, membership)
    return RegionMesh(cut[:, :3], cut[:, 3:], faces, kinds[column])


def _subcortical_mesh(atlas: Atlas, hemisphere: str) -> RegionMesh:
    sides = dict(zip(atlas.names, atlas.regions["hemisphere"], strict=True))
    points, normals, faces, regions = [], [], [], []
    start = 0
    for name, (vertices, triangles) in subcortical_meshes(atlas).items():
        if sides[name] in (hemisphere, "M"):
            points.append(vertices)
            normals.append(_vertex_normals(vertices, triangles))
            faces.append(triangles + start)
            regions.append(np.full(len(triangles), atlas.names.index(name)))
            start += len(vertices)
    if not points:
        raise ParameterError(
            f"Atlas {atlas.name} has no subcortical mesh of hemisphere {hemisphere}; "
            "leave the view 'subcortex' out."
        )
    return RegionMesh(*map(np.concatenate, (points, normals, faces, regions)))


def _smooth_membership(column: np.ndarray, n_kinds: int, faces: np.ndarray) -> Any:
    """Smooth the regions' indicators (n_vertices, n_kinds) along the surface."""
    links = faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    n_vertices = len(column)
    graph = coo_array((np.ones(len(links)), tuple(links.T)), shape=(n_vertices,) * 2)
    graph = ((graph + graph.T) > 0).astype(float)
    walk = graph.multiply(1 / graph.sum(axis=1)[:, None]).tocsr()
    step = (eye_array(n_vertices) + walk) / 2
    membership = np.eye(n_kinds)[column]
    for _ in range(_SMOOTHING):
        membership = step @ membership
    return membership


def cut_at_borders(
    points: np.ndarray, faces: np.ndarray, membership: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut triangles where regions meet, so that borders are lines and no teeth.

    Returns points (all columns of the given ones, interpolated), faces, and the column
    of `membership` (n_vertices, n_regions) that each face belongs to. An edge is cut
    where its two regions' memberships are equal, a triangle from there to its middle.
    """
    label = membership.argmax(axis=1)
    corners = label[faces]
    mixed = (corners != corners[:, :1]).any(axis=1)
    first = faces[mixed]
    second = np.roll(first, -1, axis=1)  # the other end of each of the three edges
    own, other = label[first], label[second]
    lead = membership[first, own] - membership[first, other]
    back = membership[second, other] - membership[second, own]
    total = np.where(lead + back > 1e-9, lead + back, 1)
    share = np.where(lead + back > 1e-9, lead / total, 0.5)[..., None]
    cuts = (1 - share) * points[first] + share * points[second]  # (n_mixed, 3, ...)
    between = (own != other)[..., None]
    middle = (cuts * between).sum(axis=1) / between.sum(axis=1)
    added = np.concatenate([cuts, middle[:, None]], axis=1)  # four points a triangle
    start = len(points) + 4 * np.arange(len(first))[:, None]
    cut, centre = start + np.arange(3), np.repeat(start + 3, 3, axis=1)
    pieces = [
        np.stack([first, cut, centre], axis=-1),
        np.stack([first, centre, np.roll(cut, 1, axis=1)], axis=-1),
    ]
    return (
        np.concatenate([points, added.reshape(-1, points.shape[1])]),
        np.concatenate([faces[~mixed], *(piece.reshape(-1, 3) for piece in pieces)]),
        np.concatenate([corners[~mixed, 0], own.ravel(), own.ravel()]),
    )


def _vertex_normals(points: np.ndarray, faces: np.ndarray) -> np.ndarray:
    a, b, c = (points[faces[:, k]] for k in range(3))
    of_faces = np.cross(b - a, c - a)
    normals = np.zeros_like(points)
    for k in range(3):
        np.add.at(normals, faces[:, k], of_faces)
    return normals / np.maximum(np.linalg.norm(normals, axis=1), 1e-12)[:, None]


@lru_cache(maxsize=64)
def region_picture(atlas: Atlas, view: str, surface: str = "inflated") -> RegionPicture:
    """Draw the regions of an atlas in one view: its drawings side by side."""
    # Subcortical drawings are small things drawn large: they need more pixels a mm.
    resolution = 6.0 if view == "subcortex" else 4.0
    kind = "subcortex" if view == "subcortex" else surface
    gap = round(_GAP * resolution)
    lines = [
        [
            _look_at(atlas, hemisphere, kind, seen, resolution)
            for hemisphere, seen in line
        ]
        for line in VIEWS[view]
    ]
    heights = [max(region.shape[0] for region, _ in line) for line in lines]
    widths = [
        sum(r.shape[1] for r, _ in line) + gap * (len(line) - 1) for line in lines
    ]
    shape = sum(heights) + gap * (len(lines) - 1), max(widths)
    region = np.full(shape, BACKGROUND, dtype=np.int16)
    light = np.ones(shape, dtype=np.float32) if _SHADES[kind] else None
    top, centres = 0, []
    for line, height in zip(lines, heights, strict=True):
        left = 0
        for seen, lit in line:
            rows, columns = seen.shape
            place = slice(top, top + rows), slice(left, left + columns)
            region[place] = seen
            if light is not None:
                light[place] = lit
            left += columns + gap
        centres.append((top + height / 2) / shape[0])
        top += height + gap
    pixels = region.copy()
    pixels[_edges(region)] = OUTLINE
    pixels[_edges(region == BACKGROUND)] = SILHOUETTE
    if light is not None:
        light[pixels <= OUTLINE] = 1
    return RegionPicture(region, pixels, light, tuple(centres))


def _edges(kind: np.ndarray) -> np.ndarray:
    """Return the pixels that touch one of another kind, to the side or up or down."""
    edge = np.zeros(kind.shape, dtype=bool)
    across, down = kind[:, 1:] != kind[:, :-1], kind[1:] != kind[:-1]
    edge[:, 1:] |= across
    edge[:, :-1] |= across
    edge[1:] |= down
    edge[:-1] |= down
    return edge


def _look_at(
    atlas: Atlas, hemisphere: str, surface: str, viewer: str, pixels_per_mm: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return region and light of every pixel of one hemisphere from one side."""
    mesh, camera = region_mesh(atlas, hemisphere, surface), _CAMERAS[viewer]
    face, weights = rasterise(mesh.points @ camera.T, mesh.faces, pixels_per_mm)
    region = np.append(mesh.region, BACKGROUND)[face]
    light = np.ones(face.shape)
    if _SHADES[surface]:
        shown = face >= 0
        corners = mesh.normals[mesh.faces[face[shown]]]
        normals = np.einsum("pk,pkd->pd", weights[shown], corners)
        length = np.maximum(np.linalg.norm(normals, axis=1), 1e-12)
        facing = np.clip(normals @ camera[2] / length, 0, 1)
        light[shown] = 1 - _SHADES[surface] * (1 - facing) ** 2
    return region, light


def rasterise(
    points: np.ndarray, faces: np.ndarray, pixels_per_mm: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the face nearest to the viewer at every pixel, and where in it that is.

    `points` (n_points, 3) are in mm to the right, up, and to the viewer; faces are
    counter-clockwise seen from outside, and those that show their back are not drawn.
    The first array (height, width) is as small as holds the mesh with an empty pixel
    around it, -1 where there is no face and with row 0 at the top; the second
    (height, width, 3) holds the barycentric weights of the pixel's centre.
    """
    low, high = points[:, :2].min(axis=0), points[:, :2].max(axis=0)
    width, height = np.ceil((high - low) * pixels_per_mm).astype(int) + 2
    # Pixel centres lie at whole numbers; column 1, row 1 (from below) is the corner.
    flat = (points[:, :2] - low) * pixels_per_mm + 0.5
    (ax, ay), (bx, by), (cx, cy) = np.moveaxis(flat[faces], (1, 2), (0, 1))
    area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    front = np.flatnonzero(area > 0)
    corners, area = flat[faces[front]], area[front]
    (ax, ay), (bx, by), (cx, cy) = np.moveaxis(corners, (1, 2), (0, 1))
    # All pixels in the boxes around the triangles: owner, column and row.
    first = np.ceil(corners.min(axis=1)).astype(int)
    size = np.maximum(np.floor(corners.max(axis=1)).astype(int) - first + 1, 0)
    count = size.prod(axis=1)
    owner = np.repeat(np.arange(len(corners)), count)
    step = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    down, across = np.divmod(step, size[owner, 0])
    column, row = first[owner, 0] + across, first[owner, 1] + down
    weight_a = (
        ((by - cy) / area)[owner] * column
        + ((cx - bx) / area)[owner] * row
        + ((bx * cy - cx * by) / area)[owner]
    )
    weight_b = (
        ((cy - ay) / area)[owner] * column
        + ((ax - cx) / area)[owner] * row
        + ((cx * ay - ax * cy) / area)[owner]
    )
    weight_c = 1 - weight_a - weight_b
    # A hair of tolerance: a centre on a shared edge must not fall between the two.
    inside = np.flatnonzero(
        np.minimum(np.minimum(weight_a, weight_b), weight_c) > -1e-9
    )
    owner, weights = owner[inside], np.stack([weight_a, weight_b, weight_c], 1)[inside]
    pixel = (height - 1 - row[inside]) * width + column[inside]
    depth = np.einsum("pk,pk->p", points[faces[front], 2][owner], weights)
    nearest = np.full(height * width, -np.inf)
    np.maximum.at(nearest, pixel, depth)
    won = depth == nearest[pixel]
    face, where = np.full(height * width, -1), np.zeros((height * width, 3))
    face[pixel[won]], where[pixel[won]] = front[owner[won]], weights[won]
    return face.reshape(height, width), where.reshape(height, width, 3)
