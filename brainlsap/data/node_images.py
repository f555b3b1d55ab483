"""Codes of nodes in space, looked up for many points at once."""

from typing import Any

import numpy as np


class NodeImage:
    """Codes of nodes in space, axes turned to right, anterior, superior.

    Parameters
    ----------
    codes : int array of shape (n_x, n_y, n_z)
        0 for no node.
    affine : array of shape (4, 4)
        From voxel to RAS in mm.
    """

    def __init__(self, codes: np.ndarray, affine: np.ndarray) -> None:
        from nibabel import orientations

        # as MRtrix does: where distances tie, the order of the axes decides
        turn = orientations.io_orientation(affine)
        turned = orientations.apply_orientation(codes, turn)
        self.codes = np.ascontiguousarray(turned)
        self.affine = affine @ orientations.inv_ornt_aff(turn, codes.shape)
        self.inverse = np.linalg.inv(self.affine)
        self.spacing = np.sqrt((self.affine[:3, :3] ** 2).sum(axis=0))

    def voxels(self, points: np.ndarray) -> list[np.ndarray]:
        """Return the coordinates in voxels, one array for each axis."""
        return transform(self.inverse, points.T)

    def at(self, points: np.ndarray) -> np.ndarray:
        """Return the codes of the voxels in which points lie; 0 outside the image.

        Parameters
        ----------
        points : array of shape (n_points, 3)
            In mm.

        Returns
        -------
        int array of shape (n_points,)
        """
        return self.look_up(self.voxels(points))

    def look_up(self, voxels: list[np.ndarray]) -> np.ndarray:
        """Return the codes at coordinates in voxels, one array for each axis."""
        inside = np.ones(len(voxels[0]), dtype=bool)
        flat = np.zeros(len(voxels[0]), dtype=np.intp)
        for position, size in zip(voxels, self.codes.shape, strict=True):
            # -0.5 is rounded away from 0, so it is outside, as size - 0.5 is
            inside &= (position > -0.5) & (position < size - 0.5)
            flat *= size
            flat += np.floor(np.clip(position, 0, size - 1) + 0.5).astype(np.intp)
        found = self.codes.ravel()[flat]
        found[~inside] = 0
        return found


def transform(affine: np.ndarray, points: Any) -> list[np.ndarray]:
    """Return transformed coordinates, one array for each axis.

    Parameters
    ----------
    affine : array of shape (4, 4)
        To apply.
    points : sequence of three arrays of shape (n_points,)
        Coordinates, one array for each axis.

    Returns
    -------
    list of three arrays of shape (n_points,)
        float64.
    """
    found = []
    for row in affine[:3]:
        used = [axis for axis in range(3) if row[axis]]
        total = points[used[0]].astype(np.float64) * row[used[0]]
        for axis in used[1:]:
            total += points[axis] * row[axis]
        total += row[3]
        found.append(total)
    return found
