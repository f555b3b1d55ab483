"""Find the nearest labelled voxel of many points, as MRtrix's radial search does."""

from functools import cached_property

import numpy as np

from brainlsap.data.node_images import NodeImage, transform

# Distances closer to each other than this share are compared in MRtrix's own order.
_NEARLY = 1e-9
# Ends are searched in the order of cubes of so many voxels: near ones share memory.
_CUBE = 8


class RadialSearch:
    """Find the nearest node within a radius, for many points at once.

    A tree of the labelled voxels finds the nearest two. Where these are equally far,
    or at the very radius, the search is done again in MRtrix's order.

    Parameters
    ----------
    nodes : NodeImage
        Codes of nodes in space.
    radius : float
        In mm; a voxel whose centre is exactly so far away is too far.
    """

    def __init__(self, nodes: NodeImage, radius: float) -> None:
        from scipy.spatial import cKDTree

        self.nodes, self.radius = nodes, radius
        self.half_diagonal = float(np.sqrt(((0.5 * nodes.spacing) ** 2).sum()))
        axes = nodes.affine[:3, :3] / nodes.spacing
        is_square = np.allclose(axes.T @ axes, np.eye(3), atol=1e-5)
        # then the voxel in which a point lies is the nearest, and near enough
        self.trusts_own = is_square and radius > self.half_diagonal
        labelled = nodes.codes > 0
        voxels = np.argwhere(_surface(labelled) if self.trusts_own else labelled)
        centres = np.stack(transform(nodes.affine, voxels.T), axis=1)
        self.found_codes = np.append(nodes.codes[tuple(voxels.T)], 0)
        self.tree = cKDTree(centres, balanced_tree=False) if len(centres) else None

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Return the code of the nearest node of every point, 0 for none.

        Parameters
        ----------
        points : array of shape (n_points, 3)
            In mm.

        Returns
        -------
        int array of shape (n_points,)
        """
        if self.tree is None or not len(points):
            return np.zeros(len(points), dtype=self.nodes.codes.dtype)
        voxels = self.nodes.voxels(points)
        codes = self.nodes.look_up(voxels)
        if not self.trusts_own:
            codes[:] = 0
        rest = np.flatnonzero(codes == 0)
        rest = rest[_near_together([axis[rest] for axis in voxels])]
        codes[rest] = self._nearest(points[rest].astype(np.float64))
        return codes

    def _nearest(self, points: np.ndarray) -> np.ndarray:
        if self.tree is None or not len(points):
            return np.zeros(len(points), dtype=self.nodes.codes.dtype)
        far = self.radius * (1 + _NEARLY) + np.finfo(float).tiny
        distance, index = self.tree.query(points, k=2, distance_upper_bound=far)
        nearest, second = distance.T
        codes = self.found_codes[index[:, 0]]
        codes[nearest >= self.radius] = 0
        found = nearest < np.inf
        unsure = found & (second <= nearest * (1 + _NEARLY) + 1e-12)
        unsure |= found & (nearest >= self.radius * (1 - _NEARLY))
        again = np.flatnonzero(unsure)
        codes[again] = self.in_order(points[again])
        return codes

    @cached_property
    def offsets(self) -> np.ndarray:
        """Voxels around a voxel in the order of search (int, n_offsets, 3)."""
        reach = self.radius + self.half_diagonal
        most = int(np.ceil(reach / self.nodes.spacing.min()))
        steps = np.arange(-most, most + 1)
        z, y, x = np.meshgrid(steps, steps, steps, indexing="ij")
        offsets = np.stack([x.ravel(), y.ravel(), z.ravel()], axis=1)
        squares = (offsets * self.nodes.spacing) ** 2
        distance = np.sqrt(squares[:, 2] + squares[:, 1] + squares[:, 0])
        order = np.argsort(distance, kind="stable")
        return offsets[order[distance[order] < reach]]

    def in_order(self, points: np.ndarray) -> np.ndarray:
        """Search voxel by voxel in MRtrix's order; slow, and right where voxels tie.

        Parameters
        ----------
        points : array of shape (n_points, 3)
            In mm.

        Returns
        -------
        int array of shape (n_points,)
        """
        codes = np.zeros(len(points), dtype=self.nodes.codes.dtype)
        least = np.full(len(points), self.radius)
        active = np.arange(len(points))
        centre = np.stack(self.nodes.voxels(points), axis=1)
        centre = np.trunc(centre + np.copysign(0.5, centre))
        for offset in self.offsets:
            if not len(active):
                break
            voxel = (centre[active] + offset).T
            here = transform(self.nodes.affine, voxel)
            dx, dy, dz = (points[active, axis] - here[axis] for axis in range(3))
            distance = np.sqrt(dx * dx + (dy * dy + dz * dz))
            nearer = distance < least[active]
            found = np.where(nearer, self.nodes.look_up(list(voxel)), 0)
            changed = found > 0
            codes[active[changed]] = found[changed]
            # no voxel further on can be nearer than the nearest so far
            is_over = distance > least[active] + 2 * self.half_diagonal
            least[active[changed]] = distance[changed]
            active = active[~is_over]
        return codes


def _surface(labelled: np.ndarray) -> np.ndarray:
    """Return the labelled voxels with a face to one without label, or to outside."""
    inner = np.zeros_like(labelled)
    middle = (slice(1, -1),) * 3
    inner[middle] = labelled[middle]
    for axis in range(3):
        for part in (slice(None, -2), slice(2, None)):
            shifted = tuple(part if i == axis else slice(1, -1) for i in range(3))
            inner[middle] &= labelled[shifted]
    return labelled & ~inner


def _near_together(voxels: list[np.ndarray]) -> np.ndarray:
    """Return an order of points in which neighbours in space are near each other."""
    key = np.zeros(len(voxels[0]), dtype=np.uint16)
    for axis in voxels:
        cube = np.clip(axis, 0, 31 * _CUBE).astype(np.uint16) // _CUBE
        key = key * np.uint16(32) + cube
    return np.argsort(key, kind="stable")
