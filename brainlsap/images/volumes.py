"""Images of voxels (NIfTI, MGZ), their affines, and linear registrations."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import map_coordinates

from brainlsap.exceptions import ParameterError, reading
from brainlsap.images.space import ImageGrid

# Decimals to which voxel coordinates are rounded, so that halves are exact halves on
# every machine.
_COORDINATE_DECIMALS = 6


def read_volume(path: str | Path) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return the voxels of an image (scaled by its header), its affine and header."""
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
    """Return the size and affine of an image without reading its voxels."""
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

    `transform` is FreeSurfer's `.lta`, a text or `.mat` file of ITK and ANTs (with the
    fixed image as ANTs' `-f`), a matrix of FSL's flirt, or an array; None means that
    both are in the same space. FSL's and FreeSurfer's matrices need the grids of both
    images.
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
    """Return the matrix of a registration file, from the moving to the fixed image."""
    file_format = "fs" if path.suffix.lower() == ".lta" else "itk"
    expected = f"a linear registration ({file_format}, FSL) by brainlsap[tract]"
    with reading(path, expected):
        from nitransforms.linear import load

        with suppress(ValueError):  # files of ITK hold words or bytes
            if file_format == "itk" and np.loadtxt(path).size == 16:
                file_format = "fsl"
        registration = load(
            str(path), fmt=file_format, reference=str(fixed), moving=str(moving)
        )
        # nitransforms maps points of the fixed image to the moving one.
        return np.linalg.inv(
            np.squeeze(np.asarray(registration.matrix, dtype=np.float64))
        )


def transform_points(affine: np.ndarray, points: Any) -> list[np.ndarray]:
    """Return transformed coordinates in float64, one array per axis like `points`.

    A matrix product would round differently from machine to machine, and the last bit
    decides between equal distances.
    """
    coordinates = [np.asarray(coordinate, dtype=np.float64) for coordinate in points]
    transformed_axes = []
    for *factors, translation in affine[:3]:
        terms = [
            factor * coordinate
            for factor, coordinate in zip(factors, coordinates, strict=True)
            if factor
        ]
        transformed_axes.append(sum(terms) + translation)
    return transformed_axes


def sample_nearest(values: np.ndarray, coordinates: Sequence[np.ndarray]) -> np.ndarray:
    """Return the values of the voxels nearest to voxel coordinates (one array an axis).

    0 outside the centres of the outermost voxels; halves are rounded up, as in nilearn.
    """
    stable_coordinates = np.round(coordinates, _COORDINATE_DECIMALS)
    return map_coordinates(values, stable_coordinates, order=0, mode="constant")


def resample_nearest(
    values: np.ndarray,
    affine: np.ndarray,
    shape: tuple[int, ...],
    grid_affine: np.ndarray,
) -> np.ndarray:
    """Return the nearest values at the voxels of another grid in the same space.

    `affine` maps voxels of `values` to mm, `grid_affine` voxels of the grid.
    """
    output = np.zeros(shape, dtype=values.dtype)
    voxel_to_voxel = np.linalg.inv(affine) @ grid_affine
    j, k = np.indices(shape[1:])
    for i in range(shape[0]):  # slice by slice, to save memory
        voxel_grid = np.full_like(j, i), j, k
        output[i] = sample_nearest(values, transform_points(voxel_to_voxel, voxel_grid))
    return output
