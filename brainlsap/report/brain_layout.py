"""Views of a brain: the region that every pixel shows, and where views stand, in mm.

**Pictures.** Triangles are painted from the farthest to the nearest, without a display,
and the outlines of regions are kept: one look at a brain serves any number of maps, and
figures are drawn of shapes and not of pixels.

**Layout.** A figure has a row of views for every map. Rows that would be too wide are
wrapped onto several lines. Names of maps stand at the left, colour bars at the right, a
title above; labels of regions stand above or below the view that shows the region best.

Nothing is drawn here: :func:`make_figure_layout` returns positions, and
:mod:`brainlsap.report.brain` draws.
"""

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
from contourpy import contour_generator
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from scipy import ndimage
from scipy.sparse import coo_array

from brainlsap.atlas import Atlas
from brainlsap.atlas.atlas_files import read_fsaverage5_mesh
from brainlsap.exceptions import ParameterError
from brainlsap.report.figures import LETTER_WIDTH, MM

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

SIDE_VIEWS = ("lateral", "medial", "posterior")

# All lengths are in mm.
MIN_VIEW_HEIGHT = 13.5  # lower views wrap onto another line
MAX_VIEW_HEIGHT = 48.0  # where a figure has many rows
MAX_MAP_HEIGHT = 140.0  # of all views, where a figure has one row
MAX_BAR_HEIGHT = 43.0
MAP_NAME_HEIGHT = 21.0  # room for the upright name of a map, before rows are known
VIEW_TITLE_HEIGHT = 6.0
VIEW_GAP = 2.0  # between views of a line
SUBCORTEX_GAP = 3.0  # in addition, before the subcortex
MAP_GAP = 6.0  # between maps of several lines
LABEL_HEIGHT = 3.2  # of one line of a label of a region
LABEL_STEP = 2.5  # between lines that lead to neighbouring labels
SIDE_LETTER_HEIGHT = 2.0  # of the L and R below a view of both hemispheres
BAR_WIDTH = 2.3
NO_VALUE_HEIGHT = 5.0  # of the key to grey regions, below a bar
SIDE_VIEW_SCALE = 0.8  # height of views from the side, relative to the others
SUBCORTEX_SCALE = 1.1  # height of the subcortex, which is small, relative to the others
LOW_SUBCORTEX_SCALE = 0.88  # of 3 maps or more, whose rows are as high as the subcortex
LEGEND_HEIGHT = 4.2  # of each line below all views that explains marks
TOLERANCE = 0.1


class LabelledMesh(NamedTuple):
    """Points (n_points, 3) in mm, faces (n_faces, 3), and each face's region.

    A region is its position in the atlas, or NO_REGION.
    """

    points: np.ndarray
    faces: np.ndarray
    face_region_indices: np.ndarray


class ViewPicture(NamedTuple):
    """Shapes in one view, in mm from its lower left corner.

    Regions are positions in the atlas. `shape_by_region` has the outlines of all
    regions that are seen, the whole brain's first under NO_REGION; `area_by_region` is
    in mm², and `centre_by_region` is well inside what is seen of a region.
    `mark_spots_by_region` has the inmost points, one for each line of drawings.
    `shade_rgba` (height, width, 4) darkens what turns away from the viewer; None for
    the cortex.
    """

    width: float
    height: float
    shape_by_region: dict[int, Path]
    area_by_region: dict[int, float]
    centre_by_region: dict[int, Any]
    mark_spots_by_region: dict[int, list[Any]]
    shade_rgba: np.ndarray | None


@lru_cache(maxsize=16)  # an atlas is hashed by identity
def hemisphere_mesh(
    atlas: Atlas, hemisphere: str, *, is_subcortex: bool
) -> LabelledMesh:
    """Return a hemisphere's inflated cortex on fsaverage5, or what lies below it."""
    if is_subcortex:
        side_by_region = dict(
            zip(atlas.names, atlas.regions["hemisphere"], strict=True)
        )
        structure_meshes = [
            LabelledMesh(
                mesh_points, faces, np.full(len(faces), atlas.names.index(region_name))
            )
            for region_name, (mesh_points, faces) in atlas.meshes().items()
            if side_by_region[region_name] in (hemisphere, "M")
        ]
        return _join_meshes(structure_meshes)
    mesh_points, faces = read_fsaverage5_mesh(hemisphere, "infl")
    vertex_labels = atlas.vertex_labels(hemisphere)
    if len(vertex_labels) != len(mesh_points):
        raise ParameterError(
            f"Atlas {atlas.name} labels {len(vertex_labels)} vertices in hemisphere "
            f"{hemisphere}; expected the {len(mesh_points)} of fsaverage5."
        )
    vertex_labels = np.where(vertex_labels < 0, NO_REGION, vertex_labels)
    unique_labels, vertex_label_indices = np.unique(vertex_labels, return_inverse=True)
    # List each edge in both directions.
    edge_starts, edge_ends = faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2).T
    averaging_matrix = coo_array(
        (1 / np.bincount(edge_starts)[edge_starts], (edge_starts, edge_ends))
    ).tocsr()
    label_membership = np.eye(len(unique_labels))[vertex_label_indices]
    for _ in range(_SMOOTHING):  # along the surface
        label_membership = (label_membership + averaging_matrix @ label_membership) / 2
    mesh_points, faces, face_label_indices = cut_faces_at_borders(
        mesh_points, faces, label_membership
    )
    return LabelledMesh(mesh_points, faces, unique_labels[face_label_indices])


def _join_meshes(labelled_meshes: list[LabelledMesh]) -> LabelledMesh:
    point_offsets = np.cumsum([0, *(len(mesh.points) for mesh in labelled_meshes)])
    renumbered_meshes = [
        mesh._replace(faces=mesh.faces + point_offset)
        for mesh, point_offset in zip(labelled_meshes, point_offsets, strict=False)
    ]
    return LabelledMesh(*map(np.concatenate, zip(*renumbered_meshes, strict=True)))


def cut_faces_at_borders(
    vertices: np.ndarray, faces: np.ndarray, label_membership: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut triangles where regions meet, so that borders are lines and no teeth.

    Returns points, faces, and the column of `label_membership` (n_vertices, n_regions)
    that each face belongs to. An edge is cut where its two regions' memberships are
    equal, a triangle from there to its middle.
    """
    vertex_labels = label_membership.argmax(axis=1)
    corner_labels = vertex_labels[faces]
    border_face_mask = (corner_labels != corner_labels[:, :1]).any(axis=1)
    # both ends of each of the three edges of a triangle
    start_vertices = faces[border_face_mask]
    end_vertices = np.roll(start_vertices, -1, axis=1)
    start_labels, end_labels = (
        vertex_labels[start_vertices],
        vertex_labels[end_vertices],
    )
    start_membership_margins = (
        label_membership[start_vertices, start_labels]
        - label_membership[start_vertices, end_labels]
    )
    end_membership_margins = (
        label_membership[end_vertices, end_labels]
        - label_membership[end_vertices, start_labels]
    )
    membership_margin_sums = start_membership_margins + end_membership_margins
    cut_fractions = np.where(
        membership_margin_sums > 1e-9,
        start_membership_margins / np.maximum(membership_margin_sums, 1e-9),
        0.5,
    )[..., None]
    # (n_border, 3, 3): where each edge is cut
    cut_points = (1 - cut_fractions) * vertices[
        start_vertices
    ] + cut_fractions * vertices[end_vertices]
    cut_edge_mask = (start_labels != end_labels)[..., None]
    triangle_centres = (cut_points * cut_edge_mask).sum(axis=1) / cut_edge_mask.sum(
        axis=1
    )
    # Add four points to every cut triangle.
    new_points = np.concatenate([cut_points, triangle_centres[:, None]], axis=1)
    new_vertex_offsets = len(vertices) + 4 * np.arange(len(start_vertices))[:, None]
    cut_vertices = new_vertex_offsets + np.arange(3)
    centre_vertices = np.repeat(new_vertex_offsets + 3, 3, axis=1)
    triangle_blocks = [
        np.stack([start_vertices, cut_vertices, centre_vertices], axis=-1),
        np.stack(
            [start_vertices, centre_vertices, np.roll(cut_vertices, 1, axis=1)], axis=-1
        ),
    ]
    return (
        np.concatenate([vertices, new_points.reshape(-1, 3)]),
        np.concatenate(
            [
                faces[~border_face_mask],
                *(triangle_block.reshape(-1, 3) for triangle_block in triangle_blocks),
            ]
        ),
        np.concatenate(
            [
                corner_labels[~border_face_mask, 0],
                start_labels.ravel(),
                start_labels.ravel(),
            ]
        ),
    )


@lru_cache(maxsize=64)
def make_view_picture(atlas: Atlas, view_name: str) -> ViewPicture:
    """Draw the regions of an atlas in one view: its drawings side by side."""
    is_subcortex = view_name == "subcortex"
    drawing_meshes, drawing_top_mm = list[LabelledMesh](), 0.0
    line_tops_mm = []
    for hemisphere_camera_pairs in VIEWS[view_name]:
        x, drawing_bottom_mm = 0.0, drawing_top_mm
        line_tops_mm.append(drawing_top_mm)
        for hemisphere, camera_name in hemisphere_camera_pairs:
            view_mesh = hemisphere_mesh(atlas, hemisphere, is_subcortex=is_subcortex)
            view_points = view_mesh.points @ CAMERAS[camera_name].T
            lower_corner = view_points.min(axis=0)
            upper_corner = view_points.max(axis=0)
            view_points += (x - lower_corner[0], drawing_top_mm - upper_corner[1], 0)
            drawing_meshes.append(view_mesh._replace(points=view_points))
            x += upper_corner[0] - lower_corner[0] + _GAP
            drawing_bottom_mm = min(
                drawing_bottom_mm, drawing_top_mm - upper_corner[1] + lower_corner[1]
            )
        drawing_top_mm = drawing_bottom_mm - _GAP
    view_mesh = _join_meshes(drawing_meshes)
    # Subcortical drawings are small things drawn large: they need more pixels a mm.
    pixels_per_mm = 5.0 if is_subcortex else 3.0
    face_of_pixel = rasterise_face_indices(
        view_mesh.points, view_mesh.faces, pixels_per_mm
    )
    pixel_region_indices = _remove_sliver_pixels(
        np.append(view_mesh.face_region_indices, BACKGROUND)[face_of_pixel]
    )
    shape_by_region = {
        NO_REGION: _trace_outline(
            pixel_region_indices != BACKGROUND, pixels_per_mm, 0.0
        )
    }
    area_by_region: dict[int, float] = {}
    centre_by_region: dict[int, Any] = {}
    mark_spots_by_region: dict[int, list[Any]] = {}
    # The row of pixels above which each line of drawings ends; row 0 is at the top.
    line_end_rows = [
        round(-line_top_mm * pixels_per_mm) for line_top_mm in line_tops_mm
    ]
    line_end_rows.append(len(pixel_region_indices))
    border_distance_of_pixel = _measure_pixel_border_distances(pixel_region_indices)
    # `find_objects` lists the labels from 1.
    region_slices = ndimage.find_objects(pixel_region_indices - BACKGROUND)
    for region_index in np.unique(
        pixel_region_indices[pixel_region_indices >= 0]
    ).tolist():
        row_slice, column_slice = region_slices[region_index - BACKGROUND - 1]
        box_corner_mm = (
            np.array([column_slice.start, len(pixel_region_indices) - row_slice.stop])
            / pixels_per_mm
        )
        region_pixel_mask = (
            pixel_region_indices[row_slice, column_slice] == region_index
        )
        shape_by_region[region_index] = _trace_outline(
            region_pixel_mask, pixels_per_mm, box_corner_mm
        )
        area_by_region[region_index] = region_pixel_mask.sum() / pixels_per_mm**2
        border_distances = np.where(
            region_pixel_mask, border_distance_of_pixel[row_slice, column_slice], 0.0
        )[::-1]
        mark_spots_by_region[region_index] = [
            box_corner_mm + (inmost_point + 0.5) / pixels_per_mm
            for inmost_point in _find_inmost_points(
                border_distances,
                [len(region_pixel_mask) - (r - row_slice.start) for r in line_end_rows],
            )
        ]
        # Prefer places high up in the region.
        border_distances *= np.linspace(1, 2, len(border_distances))[:, None]
        inmost_pixel = np.unravel_index(
            border_distances.argmax(), border_distances.shape
        )[::-1]
        centre_by_region[region_index] = (
            box_corner_mm + (np.array(inmost_pixel) + 0.5) / pixels_per_mm
        )
    shade_rgba = None
    if is_subcortex:
        facing_cosines = np.append(
            face_normals(view_mesh.points, view_mesh.faces)[:, 2], 0
        )[face_of_pixel]
        # Smooth the shade, so that triangles do not show.
        facing_cosines = ndimage.gaussian_filter(facing_cosines, 2)
        shade_rgba = np.zeros((*pixel_region_indices.shape, 4), dtype=np.float32)
        shade_rgba[..., 3] = (
            _SHADE * (1 - facing_cosines) ** 2 * (pixel_region_indices >= 0)
        )
    picture_height, picture_width = np.array(pixel_region_indices.shape) / pixels_per_mm
    return ViewPicture(
        picture_width,
        picture_height,
        shape_by_region,
        area_by_region,
        centre_by_region,
        mark_spots_by_region,
        shade_rgba,
    )


def _measure_pixel_border_distances(pixel_region_indices: np.ndarray) -> np.ndarray:
    """Return the distance of every pixel from another region, in pixels."""
    border_pixel_mask = np.zeros(pixel_region_indices.shape, bool)
    for axis in range(2):
        border_step_mask = np.diff(pixel_region_indices, axis=axis) != 0
        no_step_line = np.zeros_like(np.take(border_step_mask, [0], axis))
        border_pixel_mask |= np.append(border_step_mask, no_step_line, axis)
        border_pixel_mask |= np.append(no_step_line, border_step_mask, axis)
    return ndimage.distance_transform_edt(~border_pixel_mask) + 1


def _find_inmost_points(
    border_distances: np.ndarray, line_end_rows: list[int]
) -> list[Any]:
    """Return the pixel (x, y) farthest from the border in every line of drawings.

    Lines lie between consecutive `line_end_rows`, which count rows from the bottom and
    fall. Lines that do not show the region have no point.
    """
    inmost_points = []
    for upper_end, lower_end in pairwise(line_end_rows):
        distances_in_line = border_distances.copy()
        distances_in_line[max(upper_end, 0) :] = 0
        distances_in_line[: max(lower_end, 0)] = 0
        if distances_in_line.any():
            inmost_row, inmost_column = np.unravel_index(
                distances_in_line.argmax(), distances_in_line.shape
            )
            inmost_points.append(np.array([inmost_column, inmost_row]))
    return inmost_points


def _remove_sliver_pixels(pixel_region_indices: np.ndarray, n: int = 3) -> np.ndarray:
    """Give pixels where a region is not `n` of them wide to the nearest other one."""
    uniform_pixel_mask = ndimage.maximum_filter(
        pixel_region_indices, n
    ) == ndimage.minimum_filter(pixel_region_indices, n)
    wide_region_pixel_mask = ndimage.binary_dilation(
        uniform_pixel_mask, np.ones((n, n))
    )
    wide_region_pixel_mask &= pixel_region_indices != BACKGROUND
    nearest_pixels = ndimage.distance_transform_edt(
        ~wide_region_pixel_mask, None, False, True
    )
    return np.where(
        pixel_region_indices == BACKGROUND,
        pixel_region_indices,
        pixel_region_indices[tuple(nearest_pixels)],
    )


def _trace_outline(
    pixel_mask: np.ndarray, pixels_per_mm: float, origin_mm: Any
) -> Path:
    """Return the outline of pixels in mm; `corner` is the mask's lower left one."""
    padded_pixel_mask = np.pad(pixel_mask[::-1].astype(float), 1)
    contour_lines: Any = contour_generator(z=padded_pixel_mask).lines(0.5)
    # Without the stairs of the pixels, and with fewer points; the last is the first.
    contour_points = [
        ndimage.uniform_filter1d(contour_line[:-1], 5, 0, mode="wrap")[::3]
        for contour_line in contour_lines
    ]
    # Pixel 1 of the padded mask begins at 0.
    closed_rings = [
        (np.append(contour_part, contour_part[:1], axis=0) - 0.5) / pixels_per_mm
        + origin_mm
        for contour_part in contour_points
    ]
    return Path.make_compound_path(
        *(Path(closed_ring, closed=True) for closed_ring in closed_rings)
    )


def rasterise_face_indices(
    vertices: np.ndarray, faces: np.ndarray, pixels_per_mm: float
) -> Any:
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
    # Twice the area on the picture is negative where a face shows its back.
    edge_x, edge_y = np.moveaxis(face_corners[:, 1:] - face_corners[:, :1], -1, 0)
    front_face_indices = np.flatnonzero(
        edge_x[:, 0] * edge_y[:, 1] < edge_x[:, 1] * edge_y[:, 0]
    )
    # The rank of a face is its place from the farthest to the nearest.
    front_face_indices = front_face_indices[
        np.argsort(vertices[faces[front_face_indices], 2].mean(axis=1))
    ]
    span_ranks, span_rows, span_first_columns, span_last_columns = (
        _find_pixel_row_spans(face_corners[front_face_indices])
    )
    span_of_pixel, span_offsets = _enumerate_repeats(
        span_last_columns - span_first_columns + 1
    )
    pixel_indices = (span_rows * n_pixel_columns + span_first_columns)[
        span_of_pixel
    ] + span_offsets
    highest_ranks = np.full(n_pixel_rows * n_pixel_columns, -1)
    np.maximum.at(highest_ranks, pixel_indices, span_ranks[span_of_pixel])
    face_of_pixel = np.append(front_face_indices, -1)[highest_ranks]
    return face_of_pixel.reshape(n_pixel_rows, n_pixel_columns)


def _find_pixel_row_spans(face_corners: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return face, row, first and last column of each row of pixels in a triangle.

    Corners (n_faces, 3, 2) are columns and rows (row 0 at the top), counter-clockwise.
    A pixel is in a triangle if its centre, at whole numbers, is in it or on its border.
    """
    rounding_error = 1e-9
    face_first_rows = np.ceil(face_corners[..., 1].min(axis=1) - rounding_error).astype(
        int
    )
    face_last_rows = np.floor(face_corners[..., 1].max(axis=1) + rounding_error).astype(
        int
    )
    face_indices, row_offsets = _enumerate_repeats(face_last_rows - face_first_rows + 1)
    pixel_rows = face_first_rows[face_indices] + row_offsets
    span_first_columns = np.full(len(pixel_rows), -np.inf)
    span_last_columns = np.full(len(pixel_rows), np.inf)
    for k in range(3):
        x, y = face_corners[:, k].T
        next_x, next_y = face_corners[:, (k + 1) % 3].T
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes = (next_x - x) / (next_y - y)
            border_columns = (x - slopes * y)[face_indices] + slopes[
                face_indices
            ] * pixel_rows
        # Counter-clockwise, edges go down at the left and up at the right.
        left_edge_mask, right_edge_mask = (
            (next_y > y)[face_indices],
            (next_y < y)[face_indices],
        )
        np.maximum(
            span_first_columns,
            border_columns,
            out=span_first_columns,
            where=left_edge_mask,
        )
        np.minimum(
            span_last_columns,
            border_columns,
            out=span_last_columns,
            where=right_edge_mask,
        )
    span_first_columns = np.ceil(span_first_columns - rounding_error)
    span_last_columns = np.floor(span_last_columns + rounding_error)
    nonempty_span_mask = span_first_columns <= span_last_columns
    span_first_columns, span_last_columns = (
        span_first_columns[nonempty_span_mask],
        span_last_columns[nonempty_span_mask],
    )
    return (
        face_indices[nonempty_span_mask],
        pixel_rows[nonempty_span_mask],
        span_first_columns.astype(int),
        span_last_columns.astype(int),
    )


def _enumerate_repeats(repeat_counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each position as often as its count says, and the number of the repeat."""
    repeat_counts = np.maximum(repeat_counts, 0)
    item_indices = np.repeat(np.arange(len(repeat_counts)), repeat_counts)
    first_indices = np.cumsum(repeat_counts) - repeat_counts
    return item_indices, np.arange(len(item_indices)) - first_indices[item_indices]


def face_normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return the direction that every face shows, of length 1 (0 without an area)."""
    a, b, c = np.moveaxis(vertices[faces], 1, 0)
    normal_vectors = np.cross(b - a, c - a)
    return normal_vectors / np.maximum(
        np.linalg.norm(normal_vectors, axis=1, keepdims=True), 1e-12
    )


class Box(NamedTuple):
    """A rectangle in mm from the lower left corner of the figure."""

    x: float
    y: float
    width: float
    height: float


class RegionLabel(NamedTuple):
    """A text, and the spot of a view that it names; x and y are shares of the view."""

    text: str
    x: float
    y: float
    is_above: bool


class PlacedLabel(NamedTuple):
    """A label of a region, with its place above or below the view.

    `left_x`, `width` and `line_x`, where its line begins, are in mm. The text stands
    between `lower_line_number` and `upper_line_number`, counted in lines of text from
    the view.
    """

    text: str
    region_x: float
    region_y: float
    is_above: bool
    left_x: float
    width: float
    line_x: float
    lower_line_number: int
    upper_line_number: int
    is_fitting: bool


class PlacedView(NamedTuple):
    """One view of one map; labels begin at its `lower_edge` and `upper_edge`, in mm."""

    map_index: int
    view_name: str
    box: Box
    side_letters: tuple[str, ...]
    title_pad: float | None
    placed_labels: tuple[PlacedLabel, ...]
    lower_edge: float
    upper_edge: float


class PlacedText(NamedTuple):
    """A text that is centred at a point, in mm."""

    text: str
    x: float
    y: float


class PlacedBar(NamedTuple):
    """A colour bar with its label."""

    box: Box
    label: str
    has_no_value_swatch: bool


@dataclass(frozen=True)
class FigureLayout:
    """Places of all parts of a figure, in mm from its lower left corner."""

    width: float
    height: float
    placed_views: tuple[PlacedView, ...]
    placed_names: tuple[PlacedText, ...]
    placed_bars: tuple[PlacedBar, ...]
    placed_title: PlacedText
    legend_y_mm: float  # middle of the lines that explain marks


class _ViewLine(NamedTuple):
    """One line of views of one map; top and bottom are measured down from the first."""

    map_index: int
    line_number: int
    top_mm: float
    bottom_mm: float
    view_height: float  # of its tallest view, in units
    label_height: float  # above its views
    footer_height: float
    has_titles: bool


@dataclass(frozen=True)
class _ViewGrid:
    """Views of all maps on their lines; a view of height 1 has `mm_per_unit` mm."""

    mm_per_unit: float
    width: float
    height: float
    line_numbers: np.ndarray
    x: np.ndarray  # of every view, from the left of its line
    view_widths: np.ndarray  # in units
    view_heights: np.ndarray  # in units
    placed_labels_by_view: dict[str, list[PlacedLabel]]
    view_lines: list[_ViewLine]
    is_fitting: bool

    def map_tops_and_bottoms(self) -> np.ndarray:
        """Return the top and bottom of every map (n_maps, 2)."""
        top_bottom_pairs = [
            (
                min(grid_line.top_mm for grid_line in map_lines),
                max(grid_line.bottom_mm for grid_line in map_lines),
            )
            for map_lines in map(list, _group_view_lines_by_map(self.view_lines))
        ]
        return np.array(top_bottom_pairs)


def make_figure_layout(
    picture_by_view: Mapping[str, ViewPicture],
    map_names: Sequence[str],
    bar_labels: Sequence[str],
    tick_texts: Sequence[str],
    no_value_bar_mask: np.ndarray,
    label_by_region: Mapping[int, str],
    *,
    title: str,
    figure_width_mm: float,
    max_height_mm: float,
    min_view_height_mm: float = MIN_VIEW_HEIGHT,
    fills_height: bool = False,
    n_legend_lines: int = 0,
) -> FigureLayout:
    """Place views, names, colour bars and labels of regions.

    Parameters
    ----------
    picture_by_view : mapping of str to ViewPicture
        Picture of every view.
    map_names : sequence of str
        Names of the maps, one a row.
    bar_labels : sequence of str
        Labels of the colour bars: one for all maps, or one a map.
    tick_texts : sequence of str
        Numbers at the ticks of all bars.
    no_value_bar_mask : ndarray of bool
        For every bar, whether its maps show a region without a value.
    label_by_region : mapping of int to str
        Labels by position of the region in the atlas; "" for none.
    title : str
        Already wrapped; "" for none.
    figure_width_mm, max_height_mm : float
        Of the figure, in mm.
    min_view_height_mm : float
        Views that would be lower wrap onto another line.
    fills_height : bool
        Whether the figure is `max_height_mm` tall, whatever it needs: views are then as
        large as possible.
    n_legend_lines : int
        Number of lines below all views that explain marks.

    Returns
    -------
    FigureLayout
    """
    target_height_mm = np.inf if fills_height else min_view_height_mm
    n_maps, n_bars = len(map_names), len(bar_labels)
    header_height = 2.0 + (1 + 4.0 * (1 + title.count("\n")) if title else 0.0)
    footer_height = LEGEND_HEIGHT * n_legend_lines
    labels_by_view = _assign_labels_by_view(picture_by_view, label_by_region)
    no_value_heights = NO_VALUE_HEIGHT * no_value_bar_mask
    row_height = MAP_NAME_HEIGHT
    bar_heights = MAP_NAME_HEIGHT - no_value_heights
    # Names wrap to the height of rows, and the height depends on the room they leave.
    for attempt_number in range(5):
        previous_height = row_height
        wrapped_map_names = [
            wrap_text(map_name, row_height * 7 / 8) for map_name in map_names
        ]
        wrapped_bar_labels = [
            wrap_text(bar_label, bar_height + 3)
            for bar_label, bar_height in zip(bar_labels, bar_heights, strict=True)
        ]
        left_margin, right_margin = _measure_left_and_right_margins(
            wrapped_map_names, wrapped_bar_labels, tick_texts
        )
        right_margin = max(right_margin, 18.0 * no_value_bar_mask.any())
        available_size_mm = (
            figure_width_mm - left_margin - right_margin,
            max_height_mm - header_height - footer_height,
        )
        candidate_grids = [
            _make_view_grid(
                line_numbers,
                picture_by_view,
                labels_by_view,
                n_maps,
                *available_size_mm,
            )
            for line_numbers in _list_line_assignments(list(picture_by_view))
        ]
        best_grid = max(
            candidate_grids,
            key=lambda view_grid: (
                view_grid.is_fitting,
                min(view_grid.mm_per_unit, target_height_mm),
            ),
        )
        map_extents = best_grid.map_tops_and_bottoms()
        row_height = np.ptp(map_extents, axis=1).min()
        bar_extents = np.array(
            [
                (
                    map_extents[bar_index::n_bars, 0].min(),
                    map_extents[bar_index::n_bars, 1].max(),
                )
                for bar_index in range(n_bars)
            ]
        )
        bar_heights = np.ptp(bar_extents, axis=1) - no_value_heights
        bar_heights = np.minimum(bar_heights, MAX_BAR_HEIGHT)
        if attempt_number and row_height >= previous_height:
            break
    needed_height_mm = header_height + best_grid.height + footer_height
    figure_height_mm = max_height_mm if fills_height else needed_height_mm
    x = (
        left_margin
        + (figure_width_mm - left_margin - right_margin - best_grid.width) / 2
    )
    views_top_mm = (figure_height_mm + needed_height_mm) / 2 - header_height + 2
    placed_names = [
        PlacedText(
            map_name,
            x - 2 - 1.7 * map_name.count("\n"),
            views_top_mm - map_extent.mean(),
        )
        for map_name, map_extent in zip(wrapped_map_names, map_extents, strict=True)
    ]
    bar_middles = views_top_mm - (bar_extents.sum(axis=1) - no_value_heights) / 2
    placed_bars = [
        PlacedBar(
            Box(
                x + best_grid.width + 2,
                bar_middle - bar_height / 2,
                BAR_WIDTH,
                bar_height,
            ),
            bar_label,
            bool(has_no_value_swatch),
        )
        for bar_label, bar_middle, bar_height, has_no_value_swatch in zip(
            wrapped_bar_labels,
            bar_middles,
            bar_heights,
            no_value_bar_mask,
            strict=True,
        )
    ]
    return FigureLayout(
        width=figure_width_mm,
        height=figure_height_mm,
        placed_views=tuple(
            _place_views(best_grid, list(picture_by_view), x, views_top_mm)
        ),
        placed_names=tuple(placed_names),
        placed_bars=tuple(placed_bars),
        placed_title=PlacedText(
            title, figure_width_mm / 2, views_top_mm + header_height - 4
        ),
        legend_y_mm=(figure_height_mm - needed_height_mm) / 2 + footer_height / 2,
    )


def _measure_left_and_right_margins(
    map_names: Sequence[str], bar_labels: Sequence[str], tick_texts: Sequence[str]
) -> tuple[float, float]:
    """Return the mm that names of maps take at the left, and bars at the right."""
    n_line_breaks = max(map_name.count("\n") for map_name in map_names)
    left_margin = 4.5 + 3.4 * n_line_breaks if any(map_names) else 0.0
    tick_text_width = max(
        compute_text_width_mm(tick_text.replace("-", "\N{MINUS SIGN}"))
        for tick_text in tick_texts
    )
    bar_label_width = 3.0 * max(
        bool(bar_label) + bar_label.count("\n") + is_short_label(bar_label)
        for bar_label in bar_labels
    )
    # numbers on a screen are wider than in print
    return left_margin, max(14.0, 7.4 + 1.1 * tick_text_width) + bar_label_width


def _list_line_assignments(view_names: Sequence[str]) -> list[tuple[int, ...]]:
    """Return ways to wrap views onto lines, one for every number of lines.

    Of those with as many lines, the one whose longest line has fewest views.
    """
    line_number_splits = [
        _list_view_line_numbers(view_names, n_views)
        for n_views in range(len(view_names), 0, -1)
    ]
    return list(
        {line_numbers[-1]: line_numbers for line_numbers in line_number_splits}.values()
    )


def _list_view_line_numbers(
    view_names: Sequence[str], max_views_per_line: int
) -> tuple[int, ...]:
    """Return the line of every view; left and right of a pair stay together."""
    line_numbers: list[int] = []
    for _, view_group in groupby(view_names, lambda view: view.split()[0]):
        n_views = len([*view_group])
        line_number = line_numbers[-1] if line_numbers else 0
        if (
            line_numbers
            and line_numbers.count(line_number) + n_views > max_views_per_line
        ):
            line_number += 1
        line_numbers += [line_number] * n_views
    return tuple(line_numbers)


def side_letters(view_name: str) -> tuple[str, ...]:
    """Return the hemispheres of a view from left to right; () if it shows one."""
    hemisphere_letters = tuple(
        hemisphere for hemisphere, _ in VIEWS.get(view_name, VIEWS["dorsal"])[0]
    )
    return hemisphere_letters if len(hemisphere_letters) > 1 else ()


def _make_view_grid(
    line_numbers: Sequence[int],
    picture_by_view: Mapping[str, ViewPicture],
    labels_by_view: Mapping[str, Sequence[RegionLabel]],
    n_maps: int,
    max_width_mm: float,
    max_height_mm: float,
) -> _ViewGrid:
    """Place views on these lines, as large as the space allows."""
    view_names, view_line_numbers = list(picture_by_view), np.array(line_numbers)
    n_lines = view_line_numbers[-1] + 1
    side_view_mask = np.array(
        [view_name.startswith(SIDE_VIEWS) for view_name in view_names]
    )
    view_heights = np.where(side_view_mask, SIDE_VIEW_SCALE, 1.0)
    subcortex_scale = SUBCORTEX_SCALE if n_maps < 3 else LOW_SUBCORTEX_SCALE
    view_heights[np.array(view_names) == "subcortex"] = subcortex_scale
    aspect_ratios = [
        view_picture.width / view_picture.height
        for view_picture in picture_by_view.values()
    ]
    view_widths = view_heights * aspect_ratios
    view_gaps = np.array(
        [
            VIEW_GAP + SUBCORTEX_GAP * (view_name == "subcortex")
            for view_name in view_names
        ]
    )
    footer_heights = np.array(
        [SIDE_LETTER_HEIGHT * bool(side_letters(n)) for n in view_names]
    )
    title_widths = np.array(
        [compute_text_width_mm(view_name) + 1 for view_name in view_names]
    )
    line_heights = np.array(
        [view_heights[view_line_numbers == k].max() for k in range(n_lines)]
    )
    line_footer_heights = np.array(
        [footer_heights[view_line_numbers == k].max() for k in range(n_lines)]
    )
    line_gaps = np.bincount(view_line_numbers, view_gaps)
    mm_per_unit = max(MAX_VIEW_HEIGHT, MAX_MAP_HEIGHT / (n_lines * n_maps))
    mm_per_unit = min(
        mm_per_unit,
        *((max_width_mm - line_gaps) / np.bincount(view_line_numbers, view_widths)),
    )
    for _ in range(3):  # lower views are narrower, and leave labels less room
        column_widths = np.maximum(mm_per_unit * view_widths + view_gaps, title_widths)
        line_widths = np.bincount(view_line_numbers, column_widths)
        grid_width_mm = min(line_widths.max(), max_width_mm)
        is_fitting = bool(line_widths.max() <= max_width_mm + TOLERANCE)
        column_widths = (
            column_widths
            + ((grid_width_mm - line_widths) / np.bincount(view_line_numbers))[
                view_line_numbers
            ]
        )
        column_ends = np.concatenate(
            [np.cumsum(column_widths[view_line_numbers == k]) for k in range(n_lines)]
        )
        spare_widths = column_widths - mm_per_unit * view_widths - view_gaps
        x = column_ends - spare_widths / 2 - mm_per_unit * view_widths
        placed_labels_by_view: dict[str, list[PlacedLabel]] = {
            view_name: [] for view_name in view_names
        }
        label_heights_above, label_heights_below = np.zeros(n_lines), np.zeros(n_lines)
        for k, view_name in enumerate(view_names):
            for label_heights, is_above in (
                (label_heights_below, False),
                (label_heights_above, True),
            ):
                same_side_labels = [
                    region_label
                    for region_label in labels_by_view[view_name]
                    if region_label.is_above == is_above
                ]
                if not same_side_labels:
                    continue
                region_x_mm = [
                    x[k] + mm_per_unit * view_widths[k] * region_label.x
                    for region_label in same_side_labels
                ]
                new_placed_labels = _place_labels(
                    same_side_labels,
                    region_x_mm,
                    column_ends[k] - column_widths[k] + 1,
                    column_ends[k],
                )
                placed_labels_by_view[view_name] += new_placed_labels
                is_fitting &= all(
                    placed_label.is_fitting for placed_label in new_placed_labels
                )
                label_height = (
                    LABEL_HEIGHT
                    * max(
                        placed_label.upper_line_number
                        for placed_label in new_placed_labels
                    )
                    + 0.8
                )
                label_heights[view_line_numbers[k]] = max(
                    label_heights[view_line_numbers[k]], label_height
                )
        fixed_heights = []  # heights of what does not scale with the views
        for map_index in range(n_maps):
            for k in range(n_lines):
                has_titles = map_index == 0 or n_lines > 1
                map_gap = MAP_GAP if map_index and k == 0 and n_lines > 1 else 0.0
                heading_height = VIEW_TITLE_HEIGHT if has_titles else 2.0
                extra_height = (
                    label_heights_above[k]
                    + line_footer_heights[k]
                    + label_heights_below[k]
                )
                fixed_heights.append(extra_height + heading_height + map_gap)
        all_line_heights = np.tile(line_heights, n_maps)
        line_bottoms = np.cumsum(fixed_heights + mm_per_unit * all_line_heights)
        grid_height_mm = line_bottoms[-1]
        if grid_height_mm <= max_height_mm + TOLERANCE:
            break
        mm_per_unit = max(
            1.0, (max_height_mm - np.sum(fixed_heights)) / all_line_heights.sum()
        )
    grid_lines = []
    for line_index, line_bottom in enumerate(line_bottoms):
        map_index, k = divmod(line_index, n_lines)
        view_bottom = line_bottom - line_footer_heights[k] - label_heights_below[k]
        grid_lines.append(
            _ViewLine(
                map_index=map_index,
                line_number=k,
                top_mm=view_bottom - mm_per_unit * line_heights[k],
                bottom_mm=view_bottom,
                view_height=line_heights[k],
                label_height=label_heights_above[k],
                footer_height=line_footer_heights[k],
                has_titles=map_index == 0 or n_lines > 1,
            )
        )
    return _ViewGrid(
        mm_per_unit,
        grid_width_mm,
        grid_height_mm,
        view_line_numbers,
        x,
        view_widths,
        view_heights,
        placed_labels_by_view,
        grid_lines,
        is_fitting,
    )


def _place_views(
    view_grid: _ViewGrid, view_names: Sequence[str], x: float, grid_top: float
) -> list[PlacedView]:
    """Return all views; `x` and `grid_top` are the upper left corner of their grid."""
    placed_views = []
    for grid_line in view_grid.view_lines:
        y = grid_top - grid_line.bottom_mm
        for k in np.flatnonzero(
            view_grid.line_numbers == grid_line.line_number
        ).tolist():
            # lower views stand in the middle of their line
            vertical_shift = (
                view_grid.mm_per_unit
                * (grid_line.view_height - view_grid.view_heights[k])
                / 2
            )
            title_pad = 3 + (vertical_shift + grid_line.label_height) * 72 * MM
            placed_labels = [
                placed_label._replace(
                    left_x=x + placed_label.left_x, line_x=x + placed_label.line_x
                )
                for placed_label in view_grid.placed_labels_by_view[view_names[k]]
            ]
            placed_views.append(
                PlacedView(
                    map_index=grid_line.map_index,
                    view_name=view_names[k],
                    box=Box(
                        x + view_grid.x[k],
                        y + vertical_shift,
                        view_grid.mm_per_unit * view_grid.view_widths[k],
                        view_grid.mm_per_unit * view_grid.view_heights[k],
                    ),
                    side_letters=side_letters(view_names[k]),
                    title_pad=title_pad if grid_line.has_titles else None,
                    placed_labels=tuple(placed_labels),
                    lower_edge=y - grid_line.footer_height - 0.6,
                    upper_edge=y + view_grid.mm_per_unit * grid_line.view_height + 0.6,
                )
            )
    return placed_views


def _group_view_lines_by_map(grid_lines: Sequence[_ViewLine]) -> list[list[_ViewLine]]:
    """Return the lines of every map."""
    return [
        list(map_lines)
        for _, map_lines in groupby(grid_lines, lambda grid_line: grid_line.map_index)
    ]


def _assign_labels_by_view(
    picture_by_view: Mapping[str, ViewPicture], label_by_region: Mapping[int, str]
) -> dict[str, list[RegionLabel]]:
    """Return the labels of every view.

    A region is labelled in the view that shows most of it; views from the side are
    known best, and count double.
    """
    labels_by_view: dict[str, list[RegionLabel]] = {
        view_name: [] for view_name in picture_by_view
    }
    for region_index, label_text in label_by_region.items():
        area_by_view = {
            view_name: view_picture.area_by_region[region_index]
            * (2 if view_name.startswith(SIDE_VIEWS) else 1)
            for view_name, view_picture in picture_by_view.items()
            if region_index in view_picture.area_by_region
        }
        if not label_text or not area_by_view:
            continue
        view_name = max(area_by_view, key=area_by_view.__getitem__)
        view_picture = picture_by_view[view_name]
        x, y = np.divide(
            view_picture.centre_by_region[region_index],
            (view_picture.width, view_picture.height),
        )
        is_above = bool(y > 0.5) or view_name == "subcortex"
        labels_by_view[view_name].append(RegionLabel(label_text, x, y, is_above))
    return labels_by_view


def _place_labels(
    region_labels: Sequence[RegionLabel],
    region_x_mm: Sequence[float],
    leftmost_x_mm: float,
    rightmost_x_mm: float,
) -> list[PlacedLabel]:
    """Place the labels above, or below, a view between two ends.

    Each extends from its line to the right. Labels of regions farther to the right
    stand nearer to the view, so that lines to the others pass them at the left. From
    labels beside the view lines go straight.
    """
    label_order = np.argsort(region_x_mm, kind="stable")
    region_labels, sorted_region_x = (
        [region_labels[k] for k in label_order],
        np.array(region_x_mm)[label_order],
    )
    label_indents = LABEL_STEP * np.arange(len(region_labels))
    max_label_widths = rightmost_x_mm - leftmost_x_mm - label_indents
    wrapped_texts = [
        wrap_text(region_label.text, label_width)
        for region_label, label_width in zip(
            region_labels, max_label_widths - LETTER_WIDTH, strict=True
        )
    ]
    text_widths = np.array(
        [
            max(map(compute_text_width_mm, label_text.split("\n"))) + 1
            for label_text in wrapped_texts
        ]
    )
    left_x = np.minimum(sorted_region_x, rightmost_x_mm - text_widths) - label_indents
    left_x = (
        np.minimum.accumulate(left_x[::-1])[::-1].clip(min=leftmost_x_mm)
        + label_indents
    )
    lower_line_numbers, upper_line_numbers = (
        np.zeros(len(region_labels), int),
        np.zeros(len(region_labels), int),
    )
    for k in reversed(range(len(region_labels))):
        overlapping_label_mask = left_x[k + 1 :] < left_x[k] + text_widths[k]
        lower_line_numbers[k] = max(
            upper_line_numbers[k + 1 :][overlapping_label_mask], default=0
        )
        upper_line_numbers[k] = lower_line_numbers[k] + 1 + wrapped_texts[k].count("\n")
    line_x = np.where(
        lower_line_numbers == 0,
        sorted_region_x.clip(left_x, left_x + text_widths),
        left_x,
    )
    return [
        PlacedLabel(
            text=wrapped_texts[k],
            region_x=region_label.x,
            region_y=region_label.y,
            is_above=region_label.is_above,
            left_x=left_x[k],
            width=text_widths[k],
            line_x=line_x[k],
            lower_line_number=int(lower_line_numbers[k]),
            upper_line_number=int(upper_line_numbers[k]),
            is_fitting=bool(text_widths[k] <= max_label_widths[k]),
        )
        for k, region_label in enumerate(region_labels)
    ]


def is_short_label(label_text: str) -> bool:
    """Return whether a label has one to three letters; in math a sign counts as one."""
    return len(re.sub(r"(\\)[a-z]+|[${}^_]", r"\1", label_text)) <= 3


@lru_cache(maxsize=4096)
def compute_text_width_mm(label_text: str) -> float:
    """Return the width in mm of a line of 7 points."""
    # the dot makes blanks at the end count
    text_path = TextPath((0, 0), f"{label_text}.", 7)
    return text_path.vertices[:, 0].max() / (72 * MM)


def wrap_text(label_text: str, max_width_mm: float) -> str:
    """Break a text into lines of at most `max_width_mm`, but not within its math."""
    label_text = re.sub(
        r"\$[^$]*\$", lambda math: math[0].replace(" ", "\0"), label_text
    )
    max_letters = max(8, int(max_width_mm / LETTER_WIDTH))
    return textwrap.fill(label_text, max_letters, break_long_words=False).replace(
        "\0", " "
    )
