"""Pictures of an atlas from its sides: which region every pixel shows.

The cortex is FreeSurfer's fsaverage5 (from nilearn), the subcortex the atlas's own
meshes. A picture knows regions and no values; it is made once and coloured often.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from brainlsap.data.atlas import Atlas
from brainlsap.exceptions import ParameterError
from brainlsap.report.projection import CAMERAS, rasterise
from brainlsap.report.surface_views import MESHES, VIEWS, View

NOTHING, NO_REGION = -1, -2  # the background; a surface that is no region

# Subcortical drawings are small things drawn large: they need more pixels a mm.
PIXELS_PER_MM = {False: 4.0, True: 6.0}  # by whether the subcortex is drawn
_GAP = 5.0  # mm between drawings of one picture
_BORDER_STEPS = 3  # rounds of smoothing: as many as take the triangles' teeth away


@dataclass(frozen=True, eq=False)
class RegionPicture:
    """What every pixel of one view shows.

    Parameters
    ----------
    region : ndarray of int, shape (height, width)
        Position of the region in the atlas; -1 for the background, -2 for a surface
        that is no region (the medial wall). Row 0 is the top.
    facing : ndarray of float, shape (height, width)
        1 where the surface faces the viewer, down to 0 where it turns away.
    sides : tuple of (hemisphere, float, float)
        Hemisphere and centre of each drawing as shares of width and height, from
        the upper left corner.
    """

    region: np.ndarray
    facing: np.ndarray
    sides: tuple[tuple[str, float, float], ...]


@lru_cache(maxsize=64)  # an atlas is hashed by identity; a look takes 0.1 to 0.2 s
def region_picture(atlas: Atlas, view: str, mesh: str = "inflated") -> RegionPicture:
    """Draw the regions of an atlas from one side.

    Parameters
    ----------
    atlas : Atlas
        With surface files.
    view : str
        One of :data:`~brainlsap.report.surface_views.VIEWS`.
    mesh : str
        Surface of the cortex: one of :data:`~brainlsap.report.surface_views.MESHES`.

    Returns
    -------
    RegionPicture
        Region of every pixel.
    """
    look = VIEWS[view]
    kind = "subcortex" if look.subcortex else mesh
    scenes = {
        side: scene_of(atlas, kind, side) for line in look.drawings for side, _ in line
    }
    points, sides = arrange(look, {side: s.points for side, s in scenes.items()})
    order = [side for line in look.drawings for side, _ in line]
    drawn = Scene.join([scenes[side] for side in order])
    raster = rasterise(points, drawn.faces, PIXELS_PER_MM[look.subcortex])
    shown = raster.face >= 0
    face, weights = raster.face[shown], raster.weights[shown]
    region = np.full(raster.face.shape, NOTHING)
    region[shown] = _regions_of_pixels(drawn, face, weights)
    facing = np.zeros(raster.face.shape)
    normals = _normals(points, drawn.faces)[drawn.faces[face]]
    toward = np.einsum("pk,pkd->pd", weights, normals)
    facing[shown] = np.clip(toward[:, 2] / np.linalg.norm(toward, axis=1), 0, 1)
    return RegionPicture(region, facing, sides)


@dataclass(frozen=True, eq=False)
class Scene:
    """A mesh and how strongly each vertex belongs to each of its regions.

    Parameters
    ----------
    points : ndarray of float, shape (n_vertices, 3)
        mm.
    faces : ndarray of int, shape (n_faces, 3)
        Triangles, counter-clockwise seen from outside.
    belongs : ndarray of float, shape (n_vertices, n_kinds)
        Rows sum to one.
    kinds : ndarray of int, shape (n_kinds,)
        Position of the region in the atlas, or -2 for no region.
    """

    points: np.ndarray
    faces: np.ndarray
    belongs: np.ndarray
    kinds: np.ndarray

    @staticmethod
    def join(scenes: "list[Scene]") -> "Scene":
        """Put meshes into one list of vertices; no triangle joins two of them."""
        from scipy.linalg import block_diag

        starts = np.cumsum([0] + [len(s.points) for s in scenes[:-1]])
        return Scene(
            np.vstack([s.points for s in scenes]),
            np.vstack([s.faces + k for s, k in zip(scenes, starts, strict=True)]),
            block_diag(*[s.belongs for s in scenes]).astype(np.float32),
            np.concatenate([s.kinds for s in scenes]),
        )


@lru_cache(maxsize=16)
def scene_of(atlas: Atlas, kind: str, side: str) -> Scene:
    """Return one hemisphere's mesh with its regions.

    Parameters
    ----------
    atlas : Atlas
        With surface files.
    kind : str
        "subcortex", or one of :data:`~brainlsap.report.surface_views.MESHES`.
    side : {"L", "R"}
        Hemisphere.

    Returns
    -------
    Scene
    """
    if kind == "subcortex":
        return _subcortical_scene(atlas, side)
    points, faces = cortex_mesh(kind, side)
    labels = atlas.vertex_labels(side)
    kinds, column = np.unique(
        np.where(labels < 0, NO_REGION, labels), return_inverse=True
    )
    return Scene(points, faces, _soft_borders(column, len(kinds), faces), kinds)


def cortex_mesh(kind: str, side: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a surface of the cortex of fsaverage5.

    Parameters
    ----------
    kind : str
        One of :data:`~brainlsap.report.surface_views.MESHES`.
    side : {"L", "R"}
        Hemisphere.

    Returns
    -------
    points : ndarray of float, shape (10242, 3)
        mm.
    faces : ndarray of int, shape (20480, 3)
        Triangles, counter-clockwise seen from outside.
    """
    from nilearn.datasets import load_fsaverage

    part = {"L": "left", "R": "right"}[side]
    template = load_fsaverage("fsaverage5")
    surfaces = [template[name].parts[part] for name in MESHES[kind]]
    points = [np.asarray(surface.coordinates, float) for surface in surfaces]
    if len(points) > 1:  # the inflated surface has an origin of its own
        points = [p - p.mean(axis=0) for p in points]
    return np.mean(points, axis=0), np.asarray(surfaces[0].faces, int)


def _subcortical_scene(atlas: Atlas, side: str) -> Scene:
    here = dict(zip(atlas.names, atlas.regions["hemisphere"], strict=True))
    meshes = {k: v for k, v in atlas.meshes().items() if here[k] in (side, "M")}
    if not meshes:
        raise ParameterError(
            f"Atlas {atlas.name} has no subcortical mesh of side {side}; leave the "
            "view 'subcortical' out, or put meshes/<name>.surf.gii in its folder."
        )
    return Scene.join(
        [
            Scene(v, f, np.ones((len(v), 1)), np.array([atlas.names.index(name)]))
            for name, (v, f) in meshes.items()
        ]
    )


def _soft_borders(column: np.ndarray, n_kinds: int, faces: np.ndarray) -> np.ndarray:
    """Smooth the regions' indicators, so that borders cut through triangles.

    A pixel belongs to the region whose interpolated indicator is largest: the border
    is then a smooth line less than an edge (about 3 mm) from where the labels change,
    and not a row of teeth.
    """
    from scipy.sparse import coo_array, eye_array

    n_vertices = len(column)
    links = faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    graph = coo_array((np.ones(len(links)), tuple(links.T)), shape=(n_vertices,) * 2)
    graph = ((graph + graph.T) > 0).astype(float)
    walk = graph.multiply(1 / graph.sum(axis=1)[:, None]).tocsr()
    step = (eye_array(n_vertices) + walk) / 2
    belongs = np.eye(n_kinds)[column]
    for _ in range(_BORDER_STEPS):
        belongs = step @ belongs
    return belongs


def _regions_of_pixels(
    scene: Scene, face: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    of_vertex = scene.belongs.argmax(axis=1)
    corners = of_vertex[scene.faces]  # (n_faces, 3)
    column = corners[face, 0]
    # Where the three corners agree, everything between them does.
    mixed = np.flatnonzero((corners != corners[:, :1]).any(axis=1)[face])
    two_best = np.argpartition(scene.belongs, -2, axis=1)[:, -2:]
    vertices = scene.faces[face[mixed]]  # (n_mixed, 3)
    choices = two_best[vertices].reshape(len(mixed), 6)
    share = scene.belongs[vertices[:, :, None], choices[:, None, :]]
    best = np.einsum("pk,pkc->pc", weights[mixed], share).argmax(axis=1)
    column[mixed] = choices[np.arange(len(mixed)), best]
    return scene.kinds[column]


def _normals(points: np.ndarray, faces: np.ndarray) -> np.ndarray:
    a, b, c = (points[faces[:, k]] for k in range(3))
    of_faces = np.cross(b - a, c - a)
    normals = np.zeros_like(points)
    for k in range(3):
        np.add.at(normals, faces[:, k], of_faces)
    return normals / np.maximum(np.linalg.norm(normals, axis=1), 1e-12)[:, None]


def arrange(
    look: View, points: dict[str, np.ndarray]
) -> tuple[np.ndarray, tuple[tuple[str, float, float], ...]]:
    """Turn every drawing to the viewer and put the drawings beside each other.

    Parameters
    ----------
    look : View
        Which drawings, and from which side.
    points : dict of str to ndarray of float, shape (n_vertices, 3)
        Mesh of each hemisphere, in mm.

    Returns
    -------
    points : ndarray of float, shape (n_drawn, 3)
        On the screen, in mm: to the right, up, to the viewer; all drawings in order.
    sides : tuple of (hemisphere, float, float)
        As of :class:`RegionPicture`.
    """
    placed: list[np.ndarray] = []
    centres: list[tuple[str, np.ndarray]] = []
    bottom = 0.0
    for line in look.drawings:
        left, lowest = 0.0, bottom
        for side, camera in line:
            seen = points[side] @ CAMERAS[camera].T
            low, high = seen[:, :2].min(axis=0), seen[:, :2].max(axis=0)
            corner = np.array([left, bottom - (high - low)[1]])
            seen[:, :2] += corner - low
            placed.append(seen)
            centres.append((side, corner + (high - low) / 2))
            left += (high - low)[0] + _GAP
            lowest = min(lowest, corner[1])
        bottom = lowest - _GAP
    everything = np.vstack(placed)
    low, high = everything[:, :2].min(axis=0), everything[:, :2].max(axis=0)
    sides = tuple(
        (side, *((centre - [low[0], high[1]]) / (high - low) * [1, -1]).tolist())
        for side, centre in centres
    )
    return everything, sides
