"""Read a linear registration, and look voxels up from one grid in another."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from brainlsap.data.volume_files import DECODING_ERRORS
from brainlsap.exceptions import FileFormatError, ParameterError

# Rounded to this many digits, halves of voxels are halves whatever the arithmetic.
_DIGITS = 6


def read_transform(
    transform: str | Path | np.ndarray | None, moving: str | Path, fixed: str | Path
) -> np.ndarray:
    """Return the matrix of a registration, from RAS of one image to RAS of another.

    Parameters
    ----------
    transform : path, array of shape (4, 4), or None
        Registration of the moving image to the fixed one: FreeSurfer's `.lta`, text
        or `.mat` of ITK and ANTs (with the fixed image as ANTs' `-f`), a matrix of
        FSL's flirt; or the very matrix. None where both share their space.
    moving, fixed : path
        Images that were registered; FSL's and FreeSurfer's matrices need their grids.

    Returns
    -------
    array of shape (4, 4)
        From RAS of the moving image to RAS of the fixed one, in mm.

    Raises
    ------
    FileFormatError
        Where the file is no linear registration, or nitransforms is missing.
    ParameterError
        Where an array is no such matrix.
    """
    if transform is None:
        return np.eye(4)
    if isinstance(transform, str | Path):
        matrix = _read_file(Path(transform), moving, fixed)
    else:
        matrix = np.asarray(transform, dtype=np.float64)
    is_affine = matrix.shape == (4, 4) and np.isfinite(matrix).all()
    if not is_affine or abs(np.linalg.det(matrix)) < 1e-9:
        raise ParameterError(
            "transform must be a 4 x 4 matrix that can be inverted, got "
            f"{matrix!r:.60}."
        )
    return matrix


def _read_file(path: Path, moving: str | Path, fixed: str | Path) -> np.ndarray:
    try:
        from nitransforms.linear import load
    except ImportError as error:
        raise FileFormatError(
            f"{path}: registrations need nitransforms; pip install 'brainlsap[tract]'."
        ) from error
    if not path.is_file():
        raise FileFormatError(f"{path}: no such file; expected a registration.")
    kind = _kind(path)
    try:
        read = load(str(path), fmt=kind, reference=str(fixed), moving=str(moving))
        # from points of the fixed image to the moving one, as images are resampled
        matrix = np.squeeze(np.asarray(read.matrix, dtype=np.float64))
        return np.linalg.inv(matrix)
    except Exception as error:  # that library raises errors of every kind
        raise FileFormatError(
            f"{path}: cannot be read as a linear registration ({kind}): {error}."
        ) from error


def _kind(path: Path) -> str:
    if path.suffix.lower() == ".lta":
        return "fs"
    try:
        text = path.read_text(encoding="utf-8")
        numbers = np.array(text.split(), dtype=np.float64)
    except DECODING_ERRORS:
        return "itk"
    return "fsl" if numbers.shape == (16,) else "itk"


def look_up(
    values: np.ndarray, affine: np.ndarray, shape: tuple[int, ...], other: np.ndarray
) -> np.ndarray:
    """Return the values of an image at the voxels of another grid, the nearest ones.

    Parameters
    ----------
    values : array of shape (n_x, n_y, n_z)
        To look up.
    affine : array of shape (4, 4)
        Of these values, from voxel to mm.
    shape : (int, int, int)
        Of the other grid.
    other : array of shape (4, 4)
        Of the other grid, from voxel to mm in the same space.

    Returns
    -------
    array of `shape`
        As :func:`nearest` gives them.
    """
    found = np.zeros(shape, dtype=values.dtype)
    steps = np.linalg.inv(affine) @ other
    j, k = np.indices(shape[1:], dtype=np.float64)
    for i in range(shape[0]):  # by slices: three float64 volumes would be large
        places = [row[0] * i + row[1] * j + row[2] * k + row[3] for row in steps[:3]]
        found[i] = nearest(values, places)
    return found


def nearest(values: np.ndarray, places: Sequence[np.ndarray]) -> np.ndarray:
    """Return the values at coordinates in voxels, those of the nearest voxels.

    Parameters
    ----------
    values : array of shape (n_x, n_y, n_z)
        To look up.
    places : three arrays of one shape
        Coordinates, one array for each axis.

    Returns
    -------
    array of the shape of a coordinate
        0 outside the centres of the outermost voxels. Halves go up, as in scipy's and
        nilearn's nearest neighbours.
    """
    places = [np.round(place, _DIGITS) for place in places]
    inside = np.ones(places[0].shape, dtype=bool)
    for place, size in zip(places, values.shape, strict=True):
        inside &= (place >= 0) & (place <= size - 1)
    found = np.zeros(inside.shape, dtype=values.dtype)
    at = tuple(np.floor(place[inside] + 0.5).astype(np.intp) for place in places)
    found[inside] = values[at]
    return found


def interpolate(values: np.ndarray, places: Sequence[np.ndarray]) -> np.ndarray:
    """Return the values at coordinates in voxels, trilinear.

    Parameters
    ----------
    values : array of shape (n_x, n_y, n_z)
        NaN where not covered; these do not count among the neighbours.
    places : three arrays of shape (n_places,)
        Coordinates, one array for each axis.

    Returns
    -------
    array of shape (n_places,)
        NaN where the nearest voxel is not covered, or there is none.
    """
    from scipy.ndimage import map_coordinates

    covered = ~np.isnan(values)
    sums, shares = (
        map_coordinates(part, places, order=1, mode="nearest")
        for part in (np.where(covered, values, 0.0), covered.astype(np.float64))
    )
    is_near = nearest(covered, places) & (shares > 0)
    return np.divide(sums, shares, np.full(len(sums), np.nan), where=is_near)
