"""Images of voxels (NIfTI, MGZ), their affines, and linear registrations."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from brainlsap.exceptions import FileFormatError, ParameterError

SUFFIXES = (".nii", ".nii.gz", ".mgz", ".mgh", ".img", ".hdr")
# What gzip can make of a byte at most, and where headers stand.
_MOST_PACKED, _HEADER = 1032, 4096
# Rounded to this many digits, halves of voxels are halves whatever the arithmetic.
_DIGITS = 6


def read_volume(path: str | Path) -> Any:
    """Open an image of three axes or four, with an affine that can be inverted."""
    import nibabel

    path = Path(path)
    if not path.is_file():
        raise FileFormatError(f"{path}: no such file; expected an image.")
    if not path.name.lower().endswith(SUFFIXES):
        raise FileFormatError(
            f"{path}: images are read from {', '.join(SUFFIXES[:4])} files, got "
            f"{path.suffix or 'a name without suffix'}. MRtrix's mrconvert makes .nii "
            "of .mif."
        )
    try:
        image: Any = nibabel.load(path)
        affine = np.asarray(image.affine, dtype=np.float64)
    except Exception as error:  # each format has errors of its own
        raise FileFormatError(
            f"{path}: cannot be read as an image: {error}. The file may be cut short."
        ) from error
    if affine.shape != (4, 4) or not np.isfinite(affine).all():
        raise FileFormatError(f"{path}: the affine is not a 4 x 4 matrix of numbers.")
    if abs(np.linalg.det(affine[:3, :3])) < 1e-12:
        raise FileFormatError(f"{path}: the affine is singular; voxels have no volume.")
    if len(image.shape) not in (3, 4) or min(image.shape) < 1:
        raise FileFormatError(
            f"{path}: expected an image of three axes, or four with time, got shape "
            f"{tuple(image.shape)}."
        )
    return image


def read_voxels(image: Any, path: str | Path, frame: int | None = None) -> np.ndarray:
    """Return the values of an image, or of one of its frames, scaled by its header."""
    path = Path(path)
    # memory would be asked for before the first voxel is read
    promised = np.dtype(image.get_data_dtype()).itemsize
    for n in image.shape:
        promised *= int(n)
    packed = path.suffix.lower() in (".gz", ".mgz")
    there = path.stat().st_size * (_MOST_PACKED if packed else 1) + _HEADER
    if promised > there and path.suffix.lower() != ".hdr":
        raise FileFormatError(
            f"{path}: the header promises {promised:,} bytes of voxels, and the file "
            f"has {path.stat().st_size:,}. It may be cut short."
        )
    try:
        data = image.dataobj
        values = np.asarray(data if frame is None else data[..., frame])
    except Exception as error:  # each format has errors of its own
        raise FileFormatError(
            f"{path}: the voxels cannot be read: {error}. The file may be cut short."
        ) from error
    if values.dtype.kind not in "buif":
        raise FileFormatError(
            f"{path}: expected a number in every voxel, got {values.dtype}."
        )
    return values


def read_transform(
    transform: str | Path | np.ndarray | None, moving: str | Path, fixed: str | Path
) -> np.ndarray:
    """Return the matrix from RAS of the moving image to RAS of the fixed one, in mm.

    FreeSurfer's `.lta`, text or `.mat` of ITK and ANTs (with the fixed image as ANTs'
    `-f`), a matrix of FSL's flirt, or the very matrix; None is the same space. FSL's
    and FreeSurfer's matrices need the grids of both images.
    """
    if transform is None:
        return np.eye(4)
    if isinstance(transform, str | Path):
        matrix = _read_registration(Path(transform), moving, fixed)
    else:
        matrix = np.asarray(transform, dtype=np.float64)
    is_affine = matrix.shape == (4, 4) and np.isfinite(matrix).all()
    if not is_affine or abs(np.linalg.det(matrix)) < 1e-9:
        raise ParameterError(
            "transform must be a 4 x 4 matrix that can be inverted, got "
            f"{matrix!r:.60}."
        )
    return matrix


def _read_registration(path: Path, moving: str | Path, fixed: str | Path) -> np.ndarray:
    try:
        from nitransforms.linear import load
    except ImportError as error:
        raise FileFormatError(
            f"{path}: registrations need nitransforms; pip install 'brainlsap[tract]'."
        ) from error
    if not path.is_file():
        raise FileFormatError(f"{path}: no such file; expected a registration.")
    kind = "fs" if path.suffix.lower() == ".lta" else "itk"
    try:
        if kind == "itk" and len(np.loadtxt(path).ravel()) == 16:
            kind = "fsl"
    except ValueError:  # words or bytes, of ITK
        pass
    try:
        read = load(str(path), fmt=kind, reference=str(fixed), moving=str(moving))
        # from points of the fixed image to the moving one, as images are resampled
        matrix = np.squeeze(np.asarray(read.matrix, dtype=np.float64))
        return np.linalg.inv(matrix)
    except Exception as error:  # that library raises errors of every kind
        raise FileFormatError(
            f"{path}: cannot be read as a linear registration ({kind}): {error}."
        ) from error


def nearest(values: np.ndarray, places: Sequence[np.ndarray]) -> np.ndarray:
    """Return the values at coordinates in voxels (one array an axis), the nearest.

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


def look_up(
    values: np.ndarray, affine: np.ndarray, shape: tuple[int, ...], other: np.ndarray
) -> np.ndarray:
    """Return the nearest values at the voxels of another grid in the same space.

    `affine` leads from voxels of `values` to mm, `other` from voxels of the grid.
    """
    found = np.zeros(shape, dtype=values.dtype)
    steps = np.linalg.inv(affine) @ other
    j, k = np.indices(shape[1:], dtype=np.float64)
    for i in range(shape[0]):  # by slices: three float64 volumes would be large
        places = [row[0] * i + row[1] * j + row[2] * k + row[3] for row in steps[:3]]
        found[i] = nearest(values, places)
    return found


def interpolate(values: np.ndarray, places: Sequence[np.ndarray]) -> np.ndarray:
    """Return the trilinear values at coordinates in voxels (one array an axis).

    NaN is not covered: it does not count among the neighbours, and is the result where
    the nearest voxel is NaN or there is none.
    """
    from scipy.ndimage import map_coordinates

    covered = ~np.isnan(values)
    sums, shares = (
        map_coordinates(part, places, order=1, mode="nearest")
        for part in (np.where(covered, values, 0.0), covered.astype(np.float64))
    )
    is_near = nearest(covered, places) & (shares > 0)
    return np.divide(sums, shares, np.full(len(sums), np.nan), where=is_near)
