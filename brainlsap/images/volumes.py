"""Images of voxels (NIfTI, MGZ), their affines, and linear registrations."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from brainlsap.data.tables import reading
from brainlsap.exceptions import FileFormatError, ParameterError

SUFFIXES = (".nii", ".nii.gz", ".mgz", ".mgh", ".img", ".hdr")
# Rounded to this many digits, halves of voxels are halves whatever the arithmetic.
_DIGITS = 6


def read_volume(path: str | Path) -> tuple[Any, np.ndarray]:
    """Open an image of three axes or four; return it and its affine, in float64."""
    import nibabel

    if not str(path).lower().endswith(SUFFIXES):
        raise FileFormatError(
            f"{path}: images are read from {', '.join(SUFFIXES)} files. MRtrix's "
            "mrconvert makes .nii of .mif."
        )
    with reading(path, "an image"):
        image: Any = nibabel.load(path)
        affine = np.asarray(image.affine, dtype=np.float64)
    if not _is_invertible(affine):
        raise FileFormatError(f"{path}: the affine must be numbers, not singular.")
    if len(image.shape) not in (3, 4):
        raise FileFormatError(
            f"{path}: expected an image of three axes, or four with time, got shape "
            f"{tuple(image.shape)}."
        )
    return image, affine


def _is_invertible(affine: np.ndarray) -> bool:
    finite = bool(np.isfinite(affine).all())
    return finite and abs(np.linalg.det(affine[:3, :3])) > 1e-12


def read_voxels(image: Any, path: str | Path, frame: int | None = None) -> np.ndarray:
    """Return the values of three axes, scaled by the header, of one frame if said."""
    with reading(path, "voxels"):
        data = image.dataobj
        values = np.asarray(data if frame is None else data[..., frame])
    if values.ndim == 4 and values.shape[3] == 1:
        values = values[..., 0]
    if values.ndim != 3 or values.dtype.kind not in "buif":
        raise FileFormatError(
            f"{path}: expected three axes and a number in every voxel, got shape "
            f"{values.shape} of {values.dtype}."
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
    if matrix.shape != (4, 4) or not _is_invertible(matrix):
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
    kind = "fs" if path.suffix.lower() == ".lta" else "itk"
    with reading(path, f"a linear registration ({kind}, or 16 numbers of FSL)"):
        try:
            if kind == "itk" and np.loadtxt(path).size == 16:
                kind = "fsl"
        except ValueError:  # words or bytes, of ITK
            pass
        read = load(str(path), fmt=kind, reference=str(fixed), moving=str(moving))
        # from points of the fixed image to the moving one, as images are resampled
        return np.linalg.inv(np.squeeze(np.asarray(read.matrix, dtype=np.float64)))


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
