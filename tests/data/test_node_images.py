"""Codes of nodes in space: axes, halves, and what lies outside."""

import nibabel
import numpy as np
import pytest

from brainlsap.data.node_images import NodeImage


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_axes_are_turned_and_points_keep_their_codes(axes):
    codes = np.arange(1, 61).reshape(3, 4, 5)
    affine = np.eye(4)[[*axes, 3]] @ np.diag([1, -2, 3, 1])
    nodes = NodeImage(codes, affine)
    assert nibabel.aff2axcodes(nodes.affine) == ("R", "A", "S")
    voxels = np.argwhere(codes)
    points = nibabel.affines.apply_affine(affine, voxels + 0.3)
    np.testing.assert_array_equal(nodes.at(points), codes.ravel())


def test_halves_go_away_from_zero_and_outside_is_no_node():
    nodes = NodeImage(np.arange(1, 5).reshape(4, 1, 1), np.eye(4))
    points = np.array([[x, 0, 0] for x in (-0.5, -0.4, 0.5, 1.5, 3.4, 3.5, 1e30)])
    assert nodes.at(points).tolist() == [0, 1, 2, 3, 4, 0, 0]
