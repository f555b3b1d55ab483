"""Look at a mesh from one side: which triangle every pixel shows.

A small orthographic z-buffer in numpy. It needs no display and no graphics library,
and it answers with triangles and not with colours, so that one look at a brain serves
any number of maps and a colour is exactly what the colour bar says.
"""

from dataclasses import dataclass

import numpy as np

# Direction -> axes of the screen in RAS coordinates: to the right, up, to the viewer.
CAMERAS: dict[str, np.ndarray] = {
    "from left": np.array([[0, -1, 0], [0, 0, 1], [-1, 0, 0]], float),
    "from right": np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], float),
    "from above": np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]], float),
    "from below": np.array([[-1, 0, 0], [0, 1, 0], [0, 0, -1]], float),
}


@dataclass(frozen=True, eq=False)
class Raster:
    """What every pixel shows.

    Parameters
    ----------
    face : ndarray of int, shape (height, width)
        The triangle nearest to the viewer; -1 where there is none. Row 0 is the top.
    weights : ndarray of float, shape (height, width, 3)
        Barycentric weights of the pixel's centre in that triangle.
    """

    face: np.ndarray
    weights: np.ndarray


def rasterise(points: np.ndarray, faces: np.ndarray, pixels_per_mm: float) -> Raster:
    """Find the triangle that every pixel shows.

    Parameters
    ----------
    points : ndarray of float, shape (n_vertices, 3)
        Screen coordinates in mm: to the right, up, to the viewer.
    faces : ndarray of int, shape (n_faces, 3)
        Triangles, counter-clockwise seen from outside; those that show their back
        are not drawn.
    pixels_per_mm : float
        Resolution.

    Returns
    -------
    Raster
        As small as holds the mesh, with one empty pixel around it.

    Examples
    --------
    >>> points = np.array([[0.0, 0, 0], [4, 0, 0], [0, 4, 0]])
    >>> raster = rasterise(points, np.array([[0, 1, 2]]), pixels_per_mm=1)
    >>> raster.face + 1
    array([[0, 0, 0, 0, 0, 0],
           [0, 1, 0, 0, 0, 0],
           [0, 1, 1, 0, 0, 0],
           [0, 1, 1, 1, 0, 0],
           [0, 1, 1, 1, 1, 0],
           [0, 0, 0, 0, 0, 0]])
    """
    low, high = points[:, :2].min(axis=0), points[:, :2].max(axis=0)
    width, height = np.ceil((high - low) * pixels_per_mm).astype(int) + 2
    # Pixel centres lie at whole numbers; column 1, row 1 (from below) is the corner.
    flat = (points[:, :2] - low) * pixels_per_mm + 0.5
    shown = np.flatnonzero(_twice_area(flat[faces]) > 0)
    faces = faces[shown]
    planes = _weight_planes(flat[faces])
    owner, column, row = _candidates(flat[faces])
    first, second = (
        (planes[:, k, 0][owner] * column)
        + (planes[:, k, 1][owner] * row)
        + planes[:, k, 2][owner]
        for k in (0, 1)
    )
    third = 1 - first - second
    # A hair of tolerance: a centre on a shared edge must not fall between the two.
    inside = np.flatnonzero(np.minimum(np.minimum(first, second), third) > -1e-9)
    owner, first, second = owner[inside], first[inside], second[inside]
    pixel = (height - 1 - row[inside]) * width + column[inside]
    z = points[:, 2][faces]
    depth = z[owner, 2] + (
        (z[:, 0] - z[:, 2])[owner] * first + (z[:, 1] - z[:, 2])[owner] * second
    )
    nearest = np.full(height * width, -np.inf)
    np.maximum.at(nearest, pixel, depth)
    won = depth == nearest[pixel]
    out_face = np.full(height * width, -1)
    out_weights = np.zeros((height * width, 3))
    out_face[pixel[won]] = shown[owner[won]]
    out_weights[pixel[won], 0] = first[won]
    out_weights[pixel[won], 1] = second[won]
    out_weights[pixel[won], 2] = 1 - first[won] - second[won]
    return Raster(
        out_face.reshape(height, width), out_weights.reshape(height, width, 3)
    )


def _twice_area(corners: np.ndarray) -> np.ndarray:
    """Return twice the area of flat triangles; negative if they show their back."""
    (ax, ay), (bx, by), (cx, cy) = np.moveaxis(corners, 0, -1)
    return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)


def _weight_planes(corners: np.ndarray) -> np.ndarray:
    """Return the first two barycentric weights as planes over column and row.

    The answer has shape (n_faces, 2, 3): a weight is
    `plane[0] * column + plane[1] * row + plane[2]`.
    """
    (ax, ay), (bx, by), (cx, cy) = np.moveaxis(corners, 0, -1)
    first = np.stack([by - cy, cx - bx, bx * cy - cx * by], axis=-1)
    second = np.stack([cy - ay, ax - cx, cx * ay - ax * cy], axis=-1)
    return np.stack([first, second], axis=1) / _twice_area(corners)[:, None, None]


def _candidates(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return face, column and row of all pixels in the boxes around triangles."""
    low = np.ceil(corners.min(axis=1)).astype(int)
    size = np.maximum(np.floor(corners.max(axis=1)).astype(int) - low + 1, 0)
    count = size[:, 0] * size[:, 1]
    owner = np.repeat(np.arange(len(corners)), count)
    step = np.arange(count.sum()) - (np.cumsum(count) - count)[owner]
    down, across = np.divmod(step, size[:, 0][owner])
    return owner, low[:, 0][owner] + across, low[:, 1][owner] + down
