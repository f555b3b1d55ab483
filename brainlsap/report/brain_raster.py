"""Which region every pixel of a brain shows, seen from one side.

Triangles are painted from the farthest to the nearest, without a display, and what is
kept are the outlines of regions: one look at a brain serves any number of maps, and
figures are drawn of shapes and not of pixels.
"""

from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from contourpy import contour_generator
from matplotlib.path import Path
from PIL import Image, ImageDraw
from scipy import ndimage
from scipy.sparse import coo_array

from brainlsap.atlas import Atlas
from brainlsap.atlas.atlas_files import fsaverage5
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
    what is seen of a region; `mark_spots` are the inmost points, one for each line of
    drawings. `shade` (height, width, 4) darkens what turns away from
    the viewer; None for the cortex.
    """

    width: float
    height: float
    shapes: dict[int, Path]
    areas: dict[int, float]
    centres: dict[int, Any]
    mark_spots: dict[int, list[Any]]
    shade: np.ndarray | None


@lru_cache(maxsize=16)  # an atlas is hashed by identity
def region_mesh(atlas: Atlas, hemisphere: str, *, is_subcortex: bool) -> RegionMesh:
    """Return a hemisphere's inflated cortex on fsaverage5, or what lies below it."""
    if is_subcortex:
        side_of_region = dict(
            zip(atlas.names, atlas.regions["hemisphere"], strict=True)
        )
        structure_meshes = [
            RegionMesh(
                mesh_points, faces, np.full(len(faces), atlas.names.index(region_name))
            )
            for region_name, (mesh_points, faces) in atlas.meshes().items()
            if side_of_region[region_name] in (hemisphere, "M")
        ]
        return _join_meshes(structure_meshes)
    mesh_points, faces = fsaverage5(hemisphere, "infl")
    labels = atlas.vertex_labels(hemisphere)
    if len(labels) != len(mesh_points):
        raise ParameterError(
            f"Atlas {atlas.name} labels {len(labels)} vertices in hemisphere "
            f"{hemisphere}; expected the {len(mesh_points)} of fsaverage5."
        )
    labels = np.where(labels < 0, NO_REGION, labels)
    label_values, label_columns = np.unique(labels, return_inverse=True)
    # List each edge in both directions.
    edge_starts, edge_ends = faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2).T
    neighbour_mean = coo_array(
        (1 / np.bincount(edge_starts)[edge_starts], (edge_starts, edge_ends))
    ).tocsr()
    label_membership = np.eye(len(label_values))[label_columns]
    for _ in range(_SMOOTHING):  # along the surface
        label_membership = (label_membership + neighbour_mean @ label_membership) / 2
    mesh_points, faces, label_columns = cut_at_borders(
        mesh_points, faces, label_membership
    )
    return RegionMesh(mesh_points, faces, label_values[label_columns])


def _join_meshes(region_meshes: list[RegionMesh]) -> RegionMesh:
    first_points = np.cumsum([0, *(len(mesh.points) for mesh in region_meshes)])
    renumbered_faces = [
        mesh._replace(faces=mesh.faces + first_point)
        for mesh, first_point in zip(region_meshes, first_points, strict=False)
    ]
    return RegionMesh(*map(np.concatenate, zip(*renumbered_faces, strict=True)))


def cut_at_borders(
    vertices: np.ndarray, faces: np.ndarray, membership: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut triangles where regions meet, so that borders are lines and no teeth.

    Returns points, faces, and the column of `membership` (n_vertices, n_regions) that
    each face belongs to. An edge is cut where its two regions' memberships are equal,
    a triangle from there to its middle.
    """
    vertex_labels = membership.argmax(axis=1)
    corner_labels = vertex_labels[faces]
    is_border = (corner_labels != corner_labels[:, :1]).any(axis=1)
    # both ends of each of the three edges of a triangle
    start_vertex = faces[is_border]
    end_vertex = np.roll(start_vertex, -1, axis=1)
    start_label, end_label = vertex_labels[start_vertex], vertex_labels[end_vertex]
    start_lead = (
        membership[start_vertex, start_label] - membership[start_vertex, end_label]
    )
    end_lead = membership[end_vertex, end_label] - membership[end_vertex, start_label]
    lead_sums = start_lead + end_lead
    cut_shares = np.where(
        lead_sums > 1e-9, start_lead / np.maximum(lead_sums, 1e-9), 0.5
    )[..., None]
    # (n_border, 3, 3): where each edge is cut
    cut_points = (1 - cut_shares) * vertices[start_vertex] + cut_shares * vertices[
        end_vertex
    ]
    is_cut = (start_label != end_label)[..., None]
    triangle_centres = (cut_points * is_cut).sum(axis=1) / is_cut.sum(axis=1)
    # Add four points to every cut triangle.
    new_points = np.concatenate([cut_points, triangle_centres[:, None]], axis=1)
    first_new_vertex = len(vertices) + 4 * np.arange(len(start_vertex))[:, None]
    cut_vertices = first_new_vertex + np.arange(3)
    centre_vertices = np.repeat(first_new_vertex + 3, 3, axis=1)
    new_triangles = [
        np.stack([start_vertex, cut_vertices, centre_vertices], axis=-1),
        np.stack(
            [start_vertex, centre_vertices, np.roll(cut_vertices, 1, axis=1)], axis=-1
        ),
    ]
    return (
        np.concatenate([vertices, new_points.reshape(-1, 3)]),
        np.concatenate(
            [
                faces[~is_border],
                *(triangle_group.reshape(-1, 3) for triangle_group in new_triangles),
            ]
        ),
        np.concatenate(
            [corner_labels[~is_border, 0], start_label.ravel(), start_label.ravel()]
        ),
    )


@lru_cache(maxsize=64)
def region_picture(atlas: Atlas, view_name: str) -> RegionPicture:
    """Draw the regions of an atlas in one view: its drawings side by side."""
    is_subcortex = view_name == "subcortex"
    drawing_meshes, drawing_top = list[RegionMesh](), 0.0
    line_tops = []  # mm
    for view_line in VIEWS[view_name]:
        x, drawing_bottom = 0.0, drawing_top
        line_tops.append(drawing_top)
        for hemisphere, camera_name in view_line:
            view_mesh = region_mesh(atlas, hemisphere, is_subcortex=is_subcortex)
            view_points = view_mesh.points @ CAMERAS[camera_name].T
            lower_corner = view_points.min(axis=0)
            upper_corner = view_points.max(axis=0)
            view_points += (x - lower_corner[0], drawing_top - upper_corner[1], 0)
            drawing_meshes.append(view_mesh._replace(points=view_points))
            x += upper_corner[0] - lower_corner[0] + _GAP
            drawing_bottom = min(
                drawing_bottom, drawing_top - upper_corner[1] + lower_corner[1]
            )
        drawing_top = drawing_bottom - _GAP
    view_mesh = _join_meshes(drawing_meshes)
    # Subcortical drawings are small things drawn large: they need more pixels a mm.
    pixels_per_mm = 5.0 if is_subcortex else 3.0
    face_of_pixel = rasterise(view_mesh.points, view_mesh.faces, pixels_per_mm)
    region_of_pixel = _without_slivers(
        np.append(view_mesh.region, BACKGROUND)[face_of_pixel]
    )
    shape_of_region = {
        NO_REGION: _trace_outline(region_of_pixel != BACKGROUND, pixels_per_mm, 0.0)
    }
    area_of_region: dict[int, float] = {}
    centre_of_region: dict[int, Any] = {}
    mark_spots: dict[int, list[Any]] = {}
    # The row of pixels above which each line of drawings ends; row 0 is at the top.
    line_rows = [round(-line_top * pixels_per_mm) for line_top in line_tops]
    line_rows.append(len(region_of_pixel))
    # `find_objects` lists the labels from 1.
    region_boxes = ndimage.find_objects(region_of_pixel - BACKGROUND)
    for region_index in np.unique(region_of_pixel[region_of_pixel >= 0]).tolist():
        box_rows, box_columns = region_boxes[region_index - BACKGROUND - 1]
        box_corner = (
            np.array([box_columns.start, len(region_of_pixel) - box_rows.stop])
            / pixels_per_mm
        )
        region_mask = region_of_pixel[box_rows, box_columns] == region_index
        shape_of_region[region_index] = _trace_outline(
            region_mask, pixels_per_mm, box_corner
        )
        area_of_region[region_index] = region_mask.sum() / pixels_per_mm**2
        border_distance = ndimage.distance_transform_edt(np.pad(region_mask[::-1], 1))
        mark_spots[region_index] = [
            box_corner + (inmost_point - 0.5) / pixels_per_mm
            for inmost_point in _find_inmost_points(
                border_distance,
                [len(region_mask) - (r - box_rows.start) for r in line_rows],
            )
        ]
        # Prefer places high up in the region.
        border_distance *= np.linspace(1, 2, len(border_distance))[:, None]
        inmost_pixel = np.unravel_index(
            border_distance.argmax(), border_distance.shape
        )[::-1]
        centre_of_region[region_index] = (
            box_corner + (np.array(inmost_pixel) - 0.5) / pixels_per_mm
        )
    pixel_shade = None
    if is_subcortex:
        face_orientation = np.append(
            face_normals(view_mesh.points, view_mesh.faces)[:, 2], 0
        )[face_of_pixel]
        # Smooth the shade, so that triangles do not show.
        face_orientation = ndimage.gaussian_filter(face_orientation, 2)
        pixel_shade = np.zeros((*region_of_pixel.shape, 4), dtype=np.float32)
        pixel_shade[..., 3] = (
            _SHADE * (1 - face_orientation) ** 2 * (region_of_pixel >= 0)
        )
    picture_height, picture_width = np.array(region_of_pixel.shape) / pixels_per_mm
    return RegionPicture(
        picture_width,
        picture_height,
        shape_of_region,
        area_of_region,
        centre_of_region,
        mark_spots,
        pixel_shade,
    )


def _find_inmost_points(border_distance: np.ndarray, line_ends: list[int]) -> list[Any]:
    """Return the pixel (x, y) farthest from the border in every line of drawings.

    Lines lie between consecutive `line_ends`, which count rows from the bottom and
    fall. Lines that do not show the region have no point.
    """
    inmost_points = []
    for upper_end, lower_end in pairwise(line_ends):
        line_distance = border_distance.copy()
        line_distance[max(upper_end, 0) + 1 :] = 0
        line_distance[: max(lower_end, 0)] = 0
        if line_distance.any():
            inmost_row, inmost_column = np.unravel_index(
                line_distance.argmax(), line_distance.shape
            )
            inmost_points.append(np.array([inmost_column, inmost_row]))
    return inmost_points


def _without_slivers(region_of_pixel: np.ndarray, n: int = 3) -> np.ndarray:
    """Give pixels where a region is not `n` of them wide to the nearest other one."""
    is_uniform = ndimage.maximum_filter(region_of_pixel, n) == ndimage.minimum_filter(
        region_of_pixel, n
    )
    is_wide = ndimage.binary_dilation(is_uniform, np.ones((n, n)))
    is_wide &= region_of_pixel != BACKGROUND
    nearest_pixels = ndimage.distance_transform_edt(~is_wide, None, False, True)
    return np.where(
        region_of_pixel == BACKGROUND,
        region_of_pixel,
        region_of_pixel[tuple(nearest_pixels)],
    )


def _trace_outline(
    region_mask: np.ndarray, pixels_per_mm: float, lower_left: Any
) -> Path:
    """Return the outline of pixels in mm; `corner` is the mask's lower left one."""
    padded_mask = np.pad(region_mask[::-1].astype(float), 1)
    contour_lines: Any = contour_generator(z=padded_mask).lines(0.5)
    # Without the stairs of the pixels, and with fewer points; the last is the first.
    contour_points = [
        ndimage.uniform_filter1d(contour_line[:-1], 5, 0, mode="wrap")[::3]
        for contour_line in contour_lines
    ]
    # Pixel 1 of the padded mask begins at 0.
    closed_rings = [
        (np.append(contour_part, contour_part[:1], axis=0) - 0.5) / pixels_per_mm
        + lower_left
        for contour_part in contour_points
    ]
    return Path.make_compound_path(
        *(Path(closed_ring, closed=True) for closed_ring in closed_rings)
    )


def rasterise(vertices: np.ndarray, faces: np.ndarray, pixels_per_mm: float) -> Any:
    """Return the face nearest to the viewer at every pixel (height, width), or -1.

    `vertices` (n_vertices, 3) are in mm to the right, up, and to the viewer; faces are
    counter-clockwise seen from outside, and those that show their back are not drawn.
    The picture is as small as holds the mesh with an empty pixel around it, with row 0
    at the top.
    """
    lower_corner = vertices[:, :2].min(axis=0)
    upper_corner = vertices[:, :2].max(axis=0)
    n_pixel_columns, n_pixel_rows = (
        np.ceil((upper_corner - lower_corner) * pixels_per_mm).astype(int) + 2
    )
    face_corners = (vertices[faces, :2] - lower_corner) * pixels_per_mm + 0.5
    face_corners[..., 1] = n_pixel_rows - 1 - face_corners[..., 1]
    front_faces = np.flatnonzero(face_normals(vertices, faces)[:, 2] > 0)
    # Draw the nearest faces last.
    front_faces = front_faces[np.argsort(vertices[faces[front_faces], 2].mean(axis=1))]
    image = Image.new("I", (int(n_pixel_columns), int(n_pixel_rows)), -1)
    draw_polygon = ImageDraw.Draw(image).polygon
    flat_corners = face_corners[front_faces].reshape(-1, 6).tolist()
    for face_index, corner_list in zip(front_faces.tolist(), flat_corners, strict=True):
        draw_polygon(corner_list, fill=face_index)
    return np.asarray(image)


def face_normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return the direction that every face shows, of length 1 (0 without an area)."""
    a, b, c = np.moveaxis(vertices[faces], 1, 0)
    normal_vectors = np.cross(b - a, c - a)
    return normal_vectors / np.maximum(
        np.linalg.norm(normal_vectors, axis=1, keepdims=True), 1e-12
    )
