"""Which region every pixel of a brain shows, seen from one side.

Triangles are painted from the farthest to the nearest, without a display, and what is
kept are the outlines of regions: one look at a brain serves any number of maps, and
figures are drawn of shapes and not of pixels.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from contourpy import contour_generator
from matplotlib.path import Path
from PIL import Image, ImageDraw
from scipy import ndimage
from scipy.sparse import coo_array

from brainlsap.atlas import Atlas
from brainlsap.atlas.surfaces import fsaverage5
from brainlsap.exceptions import ParameterError

# What pixels show that are no region: the ground, and brain without a region.
BACKGROUND, NO_REGION = -2, -1

# View -> lines of drawings, the upper first: hemisphere, and where the viewer stands.
VIEWS: dict[str, tuple[tuple[tuple[str, str], ...], ...]] = {
    "dorsal": ((("L", "above"), ("R", "above")),),
    "ventral": ((("R", "below"), ("L", "below")),),
    "lateral left": ((("L", "left"),),),
    "lateral right": ((("R", "right"),),),
    "medial left": ((("L", "right"),),),
    "medial right": ((("R", "left"),),),
    "subcortex": ((("L", "left"), ("R", "right")), (("L", "right"), ("R", "left"))),
}
# Viewer -> axes of the picture in RAS coordinates: to the right, up, to the viewer.
CAMERAS = {
    "left": np.array([[0, -1, 0], [0, 0, 1], [-1, 0, 0]], float),
    "right": np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], float),
    "above": np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]], float),
    "below": np.array([[-1, 0, 0], [0, 1, 0], [0, 0, -1]], float),
}
_GAP = 5.0  # mm between the drawings of one view
_SMOOTHING = 3  # steps: as many as take the teeth of the triangles away
_SHADE = 0.45  # how much darker the subcortex gets where it turns away


class RegionMesh(NamedTuple):
    """Points (n_points, 3) in mm, faces (n_faces, 3), and each face's region.

    A region is its position in the atlas, or NO_REGION.
    """

    points: np.ndarray
    faces: np.ndarray
    region: np.ndarray


class RegionPicture(NamedTuple):
    """What one view shows, in mm from its lower left corner.

    `shapes` are the outlines of all regions that are seen, by position in the atlas,
    the whole brain's first under NO_REGION; `areas` are in mm², `centres` well inside
    what is seen of a region. `shade` (height, width, 4) darkens what turns away from
    the viewer; None for the cortex.
    """

    width: float
    height: float
    shapes: dict[int, Path]
    areas: dict[int, float]
    centres: dict[int, Any]
    shade: np.ndarray | None


@lru_cache(maxsize=16)  # an atlas is hashed by identity
def region_mesh(atlas: Atlas, hemisphere: str, *, is_subcortex: bool) -> RegionMesh:
    """Return a hemisphere's inflated cortex on fsaverage5, or what lies below it."""
    if is_subcortex:
        sides = dict(zip(atlas.names, atlas.regions["hemisphere"], strict=True))
        structures = [
            RegionMesh(points, faces, np.full(len(faces), atlas.names.index(name)))
            for name, (points, faces) in atlas.meshes().items()
            if sides[name] in (hemisphere, "M")
        ]
        return _join(structures)
    points, faces = fsaverage5(hemisphere, "infl")
    labels = atlas.vertex_labels(hemisphere)
    if len(labels) != len(points):
        raise ParameterError(
            f"Atlas {atlas.name} labels {len(labels)} vertices in hemisphere "
            f"{hemisphere}; expected the {len(points)} of fsaverage5."
        )
    labels = np.where(labels < 0, NO_REGION, labels)
    kinds, column = np.unique(labels, return_inverse=True)
    start, end = faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2).T  # each edge both ways
    mean = coo_array((1 / np.bincount(start)[start], (start, end))).tocsr()
    membership = np.eye(len(kinds))[column]
    for _ in range(_SMOOTHING):  # along the surface
        membership = (membership + mean @ membership) / 2
    points, faces, column = cut_at_borders(points, faces, membership)
    return RegionMesh(points, faces, kinds[column])


def _join(meshes: list[RegionMesh]) -> RegionMesh:
    first_points = np.cumsum([0, *(len(mesh.points) for mesh in meshes)])
    renumbered = [
        mesh._replace(faces=mesh.faces + first_point)
        for mesh, first_point in zip(meshes, first_points, strict=False)
    ]
    return RegionMesh(*map(np.concatenate, zip(*renumbered, strict=True)))


def cut_at_borders(
    points: np.ndarray, faces: np.ndarray, membership: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut triangles where regions meet, so that borders are lines and no teeth.

    Returns points, faces, and the column of `membership` (n_vertices, n_regions) that
    each face belongs to. An edge is cut where its two regions' memberships are equal,
    a triangle from there to its middle.
    """
    label = membership.argmax(axis=1)
    corners = label[faces]
    is_border = (corners != corners[:, :1]).any(axis=1)
    # both ends of each of the three edges of a triangle
    start_vertex = faces[is_border]
    end_vertex = np.roll(start_vertex, -1, axis=1)
    start_label, end_label = label[start_vertex], label[end_vertex]
    start_lead = (
        membership[start_vertex, start_label] - membership[start_vertex, end_label]
    )
    end_lead = membership[end_vertex, end_label] - membership[end_vertex, start_label]
    total = start_lead + end_lead
    share = np.where(total > 1e-9, start_lead / np.maximum(total, 1e-9), 0.5)[..., None]
    # (n_border, 3, 3): where each edge is cut
    cuts = (1 - share) * points[start_vertex] + share * points[end_vertex]
    is_cut = (start_label != end_label)[..., None]
    middle = (cuts * is_cut).sum(axis=1) / is_cut.sum(axis=1)
    new_points = np.concatenate([cuts, middle[:, None]], axis=1)  # four a triangle
    start = len(points) + 4 * np.arange(len(start_vertex))[:, None]
    cut, centre = start + np.arange(3), np.repeat(start + 3, 3, axis=1)
    pieces = [
        np.stack([start_vertex, cut, centre], axis=-1),
        np.stack([start_vertex, centre, np.roll(cut, 1, axis=1)], axis=-1),
    ]
    return (
        np.concatenate([points, new_points.reshape(-1, 3)]),
        np.concatenate(
            [faces[~is_border], *(piece.reshape(-1, 3) for piece in pieces)]
        ),
        np.concatenate(
            [corners[~is_border, 0], start_label.ravel(), start_label.ravel()]
        ),
    )


@lru_cache(maxsize=64)
def region_picture(atlas: Atlas, view: str) -> RegionPicture:
    """Draw the regions of an atlas in one view: its drawings side by side."""
    is_subcortex = view == "subcortex"
    meshes, top = list[RegionMesh](), 0.0
    for line in VIEWS[view]:
        x, bottom = 0.0, top
        for hemisphere, viewer in line:
            mesh = region_mesh(atlas, hemisphere, is_subcortex=is_subcortex)
            points = mesh.points @ CAMERAS[viewer].T
            low, high = points.min(axis=0), points.max(axis=0)
            points += (x - low[0], top - high[1], 0)
            meshes.append(mesh._replace(points=points))
            x += high[0] - low[0] + _GAP
            bottom = min(bottom, top - high[1] + low[1])
        top = bottom - _GAP
    mesh = _join(meshes)
    # Subcortical drawings are small things drawn large: they need more pixels a mm.
    resolution = 5.0 if is_subcortex else 3.0
    face = rasterise(mesh.points, mesh.faces, resolution)
    region = _without_slivers(np.append(mesh.region, BACKGROUND)[face])
    shapes = {NO_REGION: _outline(region != BACKGROUND, resolution, 0.0)}
    areas: dict[int, float] = {}
    centres: dict[int, Any] = {}
    boxes = ndimage.find_objects(region - BACKGROUND)  # of the labels from 1
    for index in np.unique(region[region >= 0]).tolist():
        rows, columns = boxes[index - BACKGROUND - 1]
        corner = np.array([columns.start, len(region) - rows.stop]) / resolution
        mask = region[rows, columns] == index
        shapes[index] = _outline(mask, resolution, corner)
        areas[index] = mask.sum() / resolution**2
        inside = ndimage.distance_transform_edt(np.pad(mask[::-1], 1))
        inside *= np.linspace(1, 2, len(inside))[:, None]  # rather high up
        spot = np.unravel_index(inside.argmax(), inside.shape)[::-1]
        centres[index] = corner + (np.array(spot) - 0.5) / resolution
    shade = None
    if is_subcortex:
        facing = np.append(face_normals(mesh.points, mesh.faces)[:, 2], 0)[face]
        facing = ndimage.gaussian_filter(facing, 2)  # without the triangles
        shade = np.zeros((*region.shape, 4), dtype=np.float32)
        shade[..., 3] = _SHADE * (1 - facing) ** 2 * (region >= 0)
    height, width = np.array(region.shape) / resolution
    return RegionPicture(width, height, shapes, areas, centres, shade)


def _without_slivers(region: np.ndarray, n: int = 3) -> np.ndarray:
    """Give pixels where a region is not `n` of them wide to the nearest other one."""
    is_uniform = ndimage.maximum_filter(region, n) == ndimage.minimum_filter(region, n)
    is_wide = ndimage.binary_dilation(is_uniform, np.ones((n, n)))
    is_wide &= region != BACKGROUND
    nearest = ndimage.distance_transform_edt(~is_wide, None, False, True)
    return np.where(region == BACKGROUND, region, region[tuple(nearest)])


def _outline(mask: np.ndarray, resolution: float, corner: Any) -> Path:
    """Return the outline of pixels in mm; `corner` is the mask's lower left one."""
    pixels = np.pad(mask[::-1].astype(float), 1)
    contours: Any = contour_generator(z=pixels).lines(0.5)
    # Without the stairs of the pixels, and with fewer points; the last is the first.
    lines = [
        ndimage.uniform_filter1d(contour[:-1], 5, 0, mode="wrap")[::3]
        for contour in contours
    ]
    # Pixel 1 of the padded mask begins at 0.
    rings = [
        (np.append(line, line[:1], axis=0) - 0.5) / resolution + corner
        for line in lines
    ]
    return Path.make_compound_path(*(Path(ring, closed=True) for ring in rings))


def rasterise(points: np.ndarray, faces: np.ndarray, pixels_per_mm: float) -> Any:
    """Return the face nearest to the viewer at every pixel (height, width), or -1.

    `points` (n_points, 3) are in mm to the right, up, and to the viewer; faces are
    counter-clockwise seen from outside, and those that show their back are not drawn.
    The picture is as small as holds the mesh with an empty pixel around it, with row 0
    at the top.
    """
    low, high = points[:, :2].min(axis=0), points[:, :2].max(axis=0)
    width, height = np.ceil((high - low) * pixels_per_mm).astype(int) + 2
    corners = (points[faces, :2] - low) * pixels_per_mm + 0.5
    corners[..., 1] = height - 1 - corners[..., 1]
    front = np.flatnonzero(face_normals(points, faces)[:, 2] > 0)
    front = front[np.argsort(points[faces[front], 2].mean(axis=1))]  # the nearest last
    image = Image.new("I", (int(width), int(height)), -1)
    draw, flat = ImageDraw.Draw(image).polygon, corners[front].reshape(-1, 6).tolist()
    for face, triangle in zip(front.tolist(), flat, strict=True):
        draw(triangle, fill=face)
    return np.asarray(image)


def face_normals(points: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return the direction that every face shows, of length 1 (0 without an area)."""
    a, b, c = np.moveaxis(points[faces], 1, 0)
    normals = np.cross(b - a, c - a)
    return normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
