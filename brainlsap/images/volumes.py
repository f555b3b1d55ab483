"""Images of voxels (NIfTI, MGZ), their affines, and linear registrations."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import map_coordinates

from brainlsap.exceptions import ParameterError, reading
from brainlsap.images.space import ImageGrid

# Rounded to this many digits, halves of voxels are exact halves on every machine.
_DIGITS = 6


def read_volume(path: str | Path) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return the voxels of an image, scaled as its header says, affine and header."""
    import nibabel

    with reading(path, "an image (MRtrix's mrconvert makes .nii of .mif)"):
        image: Any = nibabel.load(path)
        affine = np.asarray(image.affine, dtype=np.float64)
        if not _is_invertible(affine):
            raise ValueError("the affine must be numbers, not singular")
        values = np.asarray(image.dataobj)
        if values.ndim == 4 and values.shape[3] == 1:
            values = values[..., 0]
        if values.ndim != 3 or values.dtype.kind not in "buif":
            raise ValueError(
                "expected three axes and a number in every voxel, got shape "
                f"{values.shape} of {values.dtype}. Align and average frames first"
            )
    return values, affine, image.header


def read_image_grid(path: str | Path) -> ImageGrid:
    """Return the size and affine of an image; its voxels are not read."""
    import nibabel

    with reading(path, "an image"):
        image: Any = nibabel.load(path)
        affine = np.asarray(image.affine, dtype=np.float64)
        return ImageGrid(tuple(image.shape[:3]), affine)


def _is_invertible(affine: np.ndarray) -> bool:
    return bool(np.isfinite(affine).all() and abs(np.linalg.det(affine)) > 1e-12)


def read_transform(
    transform: str | Path | np.ndarray | None, moving: str | Path, fixed: str | Path
) -> np.ndarray:
    """Return the matrix from RAS of the moving image to RAS of the fixed one, in mm.

    FreeSurfer's `.lta`, text or `.mat` of ITK and ANTs (with the fixed image as ANTs'
    `-f`), a matrix of FSL's flirt, or the very matrix; None is the same space. FSL's
    and FreeSurfer's matrices need the grids of both images.
    """
    if isinstance(transform, str | Path):
        transform = _read_registration(Path(transform), moving, fixed)
    matrix = np.eye(4) if transform is None else np.asarray(transform, dtype=float)
    if matrix.shape != (4, 4) or not _is_invertible(matrix):
        raise ParameterError(
            f"transform must be a 4 x 4 matrix that can be inverted, got {matrix!r:.60}"
        )
    return matrix


def _read_registration(path: Path, moving: str | Path, fixed: str | Path) -> np.ndarray:
    kind = "fs" if path.suffix.lower() == ".lta" else "itk"
    with reading(path, f"a linear registration ({kind}, FSL) by brainlsap[tract]"):
        from nitransforms.linear import load

        with suppress(ValueError):  # of words or bytes, of ITK
            if kind == "itk" and np.loadtxt(path).size == 16:
                kind = "fsl"
        registration = load(
            str(path), fmt=kind, reference=str(fixed), moving=str(moving)
        )
        # from points of the fixed image to the moving one, as images are resampled
        return np.linalg.inv(
            np.squeeze(np.asarray(registration.matrix, dtype=np.float64))
        )


def transform_points(affine: np.ndarray, points: Any) -> list[np.ndarray]:
    """Return transformed coordinates in float64; one array an axis, as `points` are.

    Not a matrix product: its rounding depends on the machine, and the last bit decides
    ties of distances.
    """
    axes = [np.asarray(axis, dtype=np.float64) for axis in points]
    return [
        sum(step * axis for step, axis in zip(row, axes, strict=False) if step) + row[3]
        for row in affine[:3]
    ]


def nearest(values: np.ndarray, coordinates: Sequence[np.ndarray]) -> np.ndarray:
    """Return the values at coordinates in voxels (one array an axis), the nearest.

    0 outside the centres of the outermost voxels; halves are rounded up, as in nilearn.
    """
    rounded = np.round(coordinates, _DIGITS)
    return map_coordinates(values, rounded, order=0, mode="constant")


def look_up(
    values: np.ndarray,
    affine: np.ndarray,
    shape: tuple[int, ...],
    grid_affine: np.ndarray,
) -> np.ndarray:
    """Return the nearest values at the voxels of another grid in the same space.

    `affine` maps voxels of `values` to mm, `grid_affine` voxels of the grid.
    """
    resampled = np.zeros(shape, dtype=values.dtype)
    steps = np.linalg.inv(affine) @ grid_affine
    j, k = np.indices(shape[1:])
    for i in range(shape[0]):  # by slices: three float64 volumes would be large
        voxel_grid = np.full_like(j, i), j, k
        resampled[i] = nearest(values, transform_points(steps, voxel_grid))
    return resampled
