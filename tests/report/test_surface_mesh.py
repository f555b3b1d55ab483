import numpy as np
import pytest

from brainlsap.data.atlas import load_atlas
from brainlsap.report.surface_mesh import cut_along_borders, cut_mesh
from brainlsap.report.surface_pictures import NO_REGION, scene_of

ATLAS = load_atlas("desikan82")


def area(points, faces):
    a, b, c = (points[faces[:, k]] for k in range(3))
    return np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2


@pytest.fixture(scope="module")
def halves():
    return scene_of(ATLAS, "inflated", "L"), cut_mesh(ATLAS, "inflated", "L")


def test_cutting_keeps_the_surface(halves):
    scene, cut = halves
    before, after = area(scene.points, scene.faces), area(cut.points, cut.faces)
    assert after.sum() == pytest.approx(before.sum(), rel=1e-9)
    np.testing.assert_allclose(cut.blend.sum(axis=1), 1)
    np.testing.assert_allclose(cut.points, cut.blend @ scene.points)
    np.testing.assert_array_equal(cut.points[: len(scene.points)], scene.points)


def test_the_cut_surface_is_closed_and_faces_outwards(halves):
    _, cut = halves
    directed = cut.faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    # each edge once in either direction: no hole, no triangle turned over
    forth = {tuple(edge) for edge in directed.tolist()}
    assert len(forth) == len(directed)
    assert forth == {(b, a) for a, b in forth}


def test_a_vertex_keeps_its_region(halves):
    scene, cut = halves
    labels = scene.kinds[scene.belongs.argmax(axis=1)]
    n_vertices = len(labels)
    corner = cut.faces < n_vertices
    owner = np.repeat(cut.region[:, None], 3, axis=1)
    np.testing.assert_array_equal(labels[cut.faces[corner]], owner[corner])
    assert set(cut.region) == {*range(34), NO_REGION}


def test_borders_are_where_two_regions_meet(halves):
    _, cut = halves
    _, faces, region = cut.by_region()
    np.testing.assert_array_equal(
        region[faces], np.repeat(cut.region[:, None], 3, axis=1)
    )
    owners = {}
    for face, one in zip(cut.faces.tolist(), cut.region.tolist(), strict=True):
        for k in range(3):
            owners.setdefault(frozenset((face[k - 1], face[k])), []).append(one)
    meet = {edge for edge, both in owners.items() if both[0] != both[1]}
    assert meet == {frozenset(one) for one in cut.borders.tolist()}


def test_three_regions_meet_in_the_middle():
    points = np.array([[0.0, 0, 0], [6, 0, 0], [0, 6, 0]])
    cut = cut_along_borders(
        points, np.array([[0, 1, 2]]), np.eye(3), np.array([4, 9, 2])
    )
    assert cut.region.tolist() == [4, 4, 9, 9, 2, 2]
    np.testing.assert_allclose(cut.points[-1], [2, 2, 0])
    np.testing.assert_allclose(area(cut.points, cut.faces), 3)
    assert len(cut.borders) == 3
