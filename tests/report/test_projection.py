import numpy as np
import pytest

from brainlsap.report.projection import CAMERAS, rasterise


def slow_raster(points, faces, pixels_per_mm):
    """Ask every triangle at every pixel; the obvious truth."""
    low, high = points[:, :2].min(axis=0), points[:, :2].max(axis=0)
    width, height = np.ceil((high - low) * pixels_per_mm).astype(int) + 2
    flat = (points[:, :2] - low) * pixels_per_mm + 0.5
    face = np.full((height, width), -1)
    depth = np.full((height, width), -np.inf)
    for number, (a, b, c) in enumerate(faces):
        edges = np.column_stack([flat[b] - flat[a], flat[c] - flat[a]])
        if np.linalg.det(edges) <= 0:
            continue
        for row in range(height):
            for column in range(width):
                v, w = np.linalg.solve(edges, [column, row] - flat[a])
                z = (1 - v - w) * points[a, 2] + v * points[b, 2] + w * points[c, 2]
                place = height - 1 - row, column
                if min(v, w, 1 - v - w) >= 0 and z > depth[place]:
                    face[place], depth[place] = number, z
    return face, depth


def draw_mesh(seed, n_vertices=14, n_faces=19):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n_vertices, 3)) * [5, 4, 3]
    faces = np.array([rng.choice(n_vertices, 3, replace=False) for _ in range(n_faces)])
    return points, faces


@pytest.mark.parametrize("seed", range(4))
def test_every_pixel_shows_the_nearest_triangle(seed):
    points, faces = draw_mesh(seed)
    raster = rasterise(points, faces, pixels_per_mm=1.7)
    face, depth = slow_raster(points, faces, pixels_per_mm=1.7)
    np.testing.assert_array_equal(raster.face, face)
    shown = face >= 0
    corners = points[faces[raster.face[shown]], 2]
    found = np.einsum("pk,pk->p", raster.weights[shown], corners)
    np.testing.assert_allclose(found, depth[shown], atol=1e-9)
    np.testing.assert_allclose(raster.weights[shown].sum(axis=1), 1)
    assert (raster.weights[~shown] == 0).all()


def test_a_back_is_not_drawn():
    points, faces = draw_mesh(5)
    front = rasterise(points, faces, 2.0).face
    back = rasterise(points, faces[:, ::-1], 2.0).face
    assert not set(front[front >= 0]) & set(back[back >= 0])


def test_a_square_of_two_triangles_has_no_seam():
    rng = np.random.default_rng(6)
    for angle in rng.uniform(0, np.pi, size=7):
        turn = np.array(
            [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        )
        corners = np.array([[-9, -9], [9, -9], [9, 9], [-9, 9]]) @ turn.T
        points = np.column_stack([corners, np.zeros(4)])
        face = rasterise(points, np.array([[0, 1, 2], [0, 2, 3]]), 3.0).face
        for row in face >= 0:
            lit = np.flatnonzero(row)
            assert lit.size == 0 or lit.size == lit[-1] - lit[0] + 1


@pytest.mark.parametrize("name", sorted(CAMERAS))
def test_cameras_keep_the_world_right_handed(name):
    right, up, toward = CAMERAS[name]
    np.testing.assert_array_equal(np.cross(right, up), toward)
    assert np.linalg.norm(CAMERAS[name]) ** 2 == pytest.approx(3)


@pytest.mark.parametrize(
    ("name", "seen", "where"),
    [
        ("from left", "left", "toward"),
        ("from right", "left", "away"),
        ("from above", "left", "left"),
        ("from below", "left", "right"),
        ("from left", "front", "left"),
        ("from right", "front", "right"),
        ("from above", "front", "up"),
        ("from below", "front", "up"),
        ("from left", "top", "up"),
    ],
)
def test_where_a_camera_shows_what(name, seen, where):
    world = {"left": [-1, 0, 0], "front": [0, 1, 0], "top": [0, 0, 1]}
    screen = {
        "left": [-1, 0, 0],
        "right": [1, 0, 0],
        "up": [0, 1, 0],
        "toward": [0, 0, 1],
        "away": [0, 0, -1],
    }
    np.testing.assert_array_equal(CAMERAS[name] @ world[seen], screen[where])
