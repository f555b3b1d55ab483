"""Meshes cut along the borders of regions, for drawing in three dimensions.

A triangle whose corners lie in two or three regions is cut where the regions'
smoothed indicators are equal, the same line that the flat pictures draw. Every
triangle then belongs to one region, and borders are lines instead of teeth.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.sparse import coo_array, csr_array

from brainlsap.data.atlas import Atlas
from brainlsap.report.surface_pictures import scene_of


@dataclass(frozen=True, eq=False)
class CutMesh:
    """A mesh in which every triangle belongs to one region.

    Parameters
    ----------
    blend : sparse array of shape (n_points, n_vertices)
        Each point as a mean of the vertices that were cut; rows sum to one. The
        points of any surface with the same vertices are `blend @ vertices`.
    points : ndarray of float, shape (n_points, 3)
        mm.
    faces : ndarray of int, shape (n_faces, 3)
        Triangles, counter-clockwise seen from outside.
    region : ndarray of int, shape (n_faces,)
        Position in the atlas; -2 for a surface that is no region.
    borders : ndarray of int, shape (n_segments, 2)
        Lines between regions.
    """

    blend: csr_array
    points: np.ndarray
    faces: np.ndarray
    region: np.ndarray
    borders: np.ndarray

    def by_region(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the mesh with the points on borders once for each region.

        Returns
        -------
        points : ndarray of float, shape (n_split, 3)
            mm.
        faces : ndarray of int, shape (n_faces, 3)
            In the order of `region`.
        region : ndarray of int, shape (n_split,)
            Of each point.
        """
        owned = np.column_stack([self.faces.ravel(), np.repeat(self.region, 3)])
        pairs, place = np.unique(owned, axis=0, return_inverse=True)
        return self.points[pairs[:, 0]], place.reshape(-1, 3), pairs[:, 1]


@lru_cache(maxsize=16)
def cut_mesh(atlas: Atlas, kind: str, side: str) -> CutMesh:
    """Cut one hemisphere along the borders of its regions.

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
    CutMesh
    """
    scene = scene_of(atlas, kind, side)
    return cut_along_borders(scene.points, scene.faces, scene.belongs, scene.kinds)


def cut_along_borders(
    points: np.ndarray, faces: np.ndarray, belongs: np.ndarray, kinds: np.ndarray
) -> CutMesh:
    """Cut the triangles that lie in several regions.

    Parameters
    ----------
    points : ndarray of float, shape (n_vertices, 3)
        mm.
    faces : ndarray of int, shape (n_faces, 3)
        Triangles.
    belongs : ndarray of float, shape (n_vertices, n_kinds)
        How strongly a vertex belongs to each region.
    kinds : ndarray of int, shape (n_kinds,)
        Position of each region in the atlas.

    Returns
    -------
    CutMesh

    Examples
    --------
    >>> points = np.array([[0.0, 0, 0], [4, 0, 0], [0, 4, 0]])
    >>> belongs = np.array([[1.0, 0], [0, 1], [0, 1]])
    >>> cut = cut_along_borders(
    ...     points, np.array([[0, 1, 2]]), belongs, np.array([5, 7])
    ... )
    >>> cut.points[3:].tolist(), cut.region.tolist()
    ([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]], [5, 7, 7])
    """
    label = belongs.argmax(axis=1)
    corner = label[faces]
    same = corner == np.roll(corner, -1, axis=1)  # of each edge, from corner k on
    whole, two, three = same.all(axis=1), same.sum(axis=1) == 1, ~same.any(axis=1)
    edges, share = _cut_edges(faces, label, belongs)
    centre = len(points) + len(edges) + np.arange(three.sum())
    parts = (
        (faces[whole], faces[whole][:, 0], np.zeros((0, 2), dtype=int)),
        _in_two(faces[two], same[two], edges, len(points)),
        _in_three(faces[three], centre, edges, len(points)),
    )
    new_faces, owner, borders = (
        np.concatenate(part) for part in zip(*parts, strict=True)
    )
    blend = _blend(len(points), edges, share, faces[three])
    return CutMesh(blend, blend @ points, new_faces, kinds[label[owner]], borders)


def _cut_edges(
    faces: np.ndarray, label: np.ndarray, belongs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges between regions, sorted, and the cut's share of each end."""
    edges = np.sort(faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    edges = np.unique(edges[label[edges[:, 0]] != label[edges[:, 1]]], axis=0)
    first, second = label[edges].T
    lead = belongs[edges, first[:, None]] - belongs[edges, second[:, None]]
    # A lead of nothing at both ends is cut in the middle.
    width = np.maximum(lead[:, 0] - lead[:, 1], 1e-12)
    along = np.where(width > 1e-9, lead[:, 0] / width, 0.5)
    return edges, np.column_stack([1 - along, along])


def _cut_of(ends: np.ndarray, edges: np.ndarray, n_vertices: int) -> np.ndarray:
    """Return the number of the point that cuts each edge."""
    low, high = np.sort(ends, axis=-1).T
    return n_vertices + np.searchsorted(
        edges[:, 0] * n_vertices + edges[:, 1], low * n_vertices + high
    )


def _in_two(
    faces: np.ndarray, same: np.ndarray, edges: np.ndarray, n_vertices: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return triangles, a vertex of the region of each, and the border."""
    # The corner that stands alone is the one after the edge between equals.
    turn = (same.argmax(axis=1)[:, None] + [2, 3, 4]) % 3
    a, b, c = np.take_along_axis(faces, turn, axis=1).T
    p = _cut_of(np.column_stack([a, b]), edges, n_vertices)
    q = _cut_of(np.column_stack([a, c]), edges, n_vertices)
    triangles = [(a, p, q), (p, b, c), (p, c, q)]
    pieces = np.concatenate([np.column_stack(one) for one in triangles])
    return pieces, np.concatenate([a, b, b]), np.column_stack([p, q])


def _in_three(
    faces: np.ndarray, centre: np.ndarray, edges: np.ndarray, n_vertices: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    pieces, owners, borders = [], [], []
    for k in range(3):
        a, b, c = faces[:, k], faces[:, (k + 1) % 3], faces[:, (k + 2) % 3]
        p = _cut_of(np.column_stack([a, b]), edges, n_vertices)
        q = _cut_of(np.column_stack([a, c]), edges, n_vertices)
        pieces += [np.column_stack([a, p, centre]), np.column_stack([a, centre, q])]
        owners += [a, a]
        borders.append(np.column_stack([p, centre]))
    return np.concatenate(pieces), np.concatenate(owners), np.concatenate(borders)


def _blend(
    n_vertices: int, edges: np.ndarray, share: np.ndarray, three: np.ndarray
) -> csr_array:
    """Return every point as a mean of vertices: themselves, cuts, centres."""
    vertices, cuts = np.arange(n_vertices), np.repeat(np.arange(len(edges)), 2)
    cut = coo_array(
        (share.ravel(), (cuts, edges.ravel())), shape=(len(edges), n_vertices)
    ).tocsr()
    own = coo_array((np.ones(n_vertices), (vertices, vertices))).tocsr()
    numbers = [
        _cut_of(three[:, [k, (k + 1) % 3]], edges, n_vertices) - n_vertices
        for k in range(3)
    ]
    from scipy.sparse import vstack

    centres = (cut[numbers[0]] + cut[numbers[1]] + cut[numbers[2]]) / 3
    return csr_array(vstack([own, cut, centres]))
