"""Average an image over labels that lie on another grid."""

from dataclasses import dataclass

import numpy as np

from brainlsap.data.spatial_transforms import interpolate, look_up, nearest


@dataclass(frozen=True, eq=False)
class Grid:
    """An image in the space of the labels.

    Parameters
    ----------
    values : array of shape (n_x, n_y, n_z)
        NaN where not covered.
    affine : array of shape (4, 4)
        From voxel to mm in the space of the labels.
    """

    values: np.ndarray
    affine: np.ndarray


@dataclass(frozen=True, eq=False)
class RegionMeans:
    """Means of regions, and how well they are covered.

    Parameters
    ----------
    means : array of shape (n,)
        Over covered voxels; NaN where there are none.
    n_voxels : int array of shape (n,)
        That were averaged.
    n_covered, n_expected : int arrays of shape (n,)
        Voxels of the labels: those that the image covers, and all of them.
    """

    means: np.ndarray
    n_voxels: np.ndarray
    n_covered: np.ndarray
    n_expected: np.ndarray

    @property
    def coverage(self) -> np.ndarray:
        """Share of the labels' voxels that the image covers; NaN for no voxels."""
        some = self.n_expected > 0
        nothing = np.full(len(self.means), np.nan)
        return np.divide(self.n_covered, self.n_expected, nothing, where=some)


def measure(
    scan: Grid, codes: np.ndarray, affine: np.ndarray, n: int, grid: str
) -> RegionMeans:
    """Average a scan over the regions 1 to n.

    Parameters
    ----------
    scan : Grid
        The image.
    codes : int array of shape (n_x, n_y, n_z)
        0 for no region.
    affine : array of shape (4, 4)
        Of the codes.
    n : int
        Number of regions.
    grid : {"pet", "parcellation"}
        Where voxels are averaged.

    Returns
    -------
    RegionMeans
    """
    there = np.nonzero(codes)
    regions = codes[there]
    steps = np.linalg.inv(scan.affine) @ affine
    places = [row[:3] @ np.array(there) + row[3] for row in steps[:3]]
    is_covered = nearest(~np.isnan(scan.values), places)
    n_expected = np.bincount(regions, minlength=n + 1)[1:]
    n_covered = np.bincount(regions[is_covered], minlength=n + 1)[1:]
    if grid == "pet":
        values = scan.values
        regions = look_up(codes, affine, values.shape, scan.affine)
    else:
        values = interpolate(scan.values, places)
    used = (regions > 0) & ~np.isnan(values)
    n_voxels = np.bincount(regions[used], minlength=n + 1)[1:]
    sums = np.bincount(regions[used], values[used], minlength=n + 1)[1:]
    means = np.divide(sums, n_voxels, np.full(n, np.nan), where=n_voxels > 0)
    return RegionMeans(means, n_voxels, n_covered, n_expected)


def shrink(codes: np.ndarray, layers: int) -> np.ndarray:
    """Take layers of voxels from the surface of every region.

    Parameters
    ----------
    codes : int array of shape (n_x, n_y, n_z)
        0 for no region.
    layers : int
        A voxel is taken where one of its six neighbours, or the outside of the image,
        is of another region; so many times.

    Returns
    -------
    int array of shape (n_x, n_y, n_z)
    """
    for _ in range(layers):
        around = np.pad(codes, 1)
        same = np.ones(codes.shape, dtype=bool)
        for axis in range(3):
            for start in (0, 2):
                part = [slice(1, -1)] * 3
                part[axis] = slice(start, start + codes.shape[axis])
                same &= around[tuple(part)] == codes
        codes = np.where(same, codes, 0)
    return codes
