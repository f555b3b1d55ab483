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
        voxel_values = np.asarray(image.dataobj)
        if voxel_values.ndim == 4 and voxel_values.shape[3] == 1:
            voxel_values = voxel_values[..., 0]
        if voxel_values.ndim != 3 or voxel_values.dtype.kind not in "buif":
            raise ValueError(
                "expected three axes and a number in every voxel, got shape "
                f"{voxel_values.shape} of {voxel_values.dtype}. Align and average "
                "frames first"
            )
    return voxel_values, affine, image.header


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
    transform: str | Path | np.ndarray | None,
    moving_image: str | Path,
    fixed_image: str | Path,
) -> np.ndarray:
    """Return the matrix from RAS of the moving image to RAS of the fixed one, in mm.

    `transform` is FreeSurfer's `.lta`, a text or `.mat` file of ITK and ANTs (with the
    fixed image as ANTs' `-f`), a matrix of FSL's flirt, or an array; None means that
    both are in the same space. FSL's and FreeSurfer's matrices need the grids of both
    images.
    """
    if isinstance(transform, str | Path):
        transform = _read_registration(Path(transform), moving_image, fixed_image)
    affine_matrix = (
        np.eye(4) if transform is None else np.asarray(transform, dtype=float)
    )
    if affine_matrix.shape != (4, 4) or not _is_invertible(affine_matrix):
        raise ParameterError(
            "transform must be a 4 x 4 matrix that can be inverted, got "
            f"{affine_matrix!r:.60}"
        )
    return affine_matrix


def _read_registration(
    path: Path, moving_image: str | Path, fixed_image: str | Path
) -> np.ndarray:
    """Return the matrix of a registration file, from the moving to the fixed image."""
    file_format = "fs" if path.suffix.lower() == ".lta" else "itk"
    expected_format = f"a linear registration ({file_format}, FSL) by brainlsap[tract]"
    with reading(path, expected_format):
        from nitransforms.linear import load

        with suppress(ValueError):  # files of ITK hold words or bytes
            if file_format == "itk" and np.loadtxt(path).size == 16:
                file_format = "fsl"
        nitransforms_map = load(
            str(path),
            fmt=file_format,
            reference=str(fixed_image),
            moving=str(moving_image),
        )
        # nitransforms maps points of the fixed image to the moving one.
        return np.linalg.inv(
            np.squeeze(np.asarray(nitransforms_map.matrix, dtype=np.float64))
        )


def transform_points(affine: np.ndarray, points: Any) -> list[np.ndarray]:
    """Return transformed coordinates in float64, one array per axis like `points`.

    A matrix product would round differently from machine to machine, and the last bit
    decides between equal distances.
    """
    point_coordinates = [
        np.asarray(axis_coordinates, dtype=np.float64) for axis_coordinates in points
    ]
    transformed_axes = []
    for *axis_factors, axis_translation in affine[:3]:
        axis_terms = [
            axis_factor * axis_coordinates
            for axis_factor, axis_coordinates in zip(
                axis_factors, point_coordinates, strict=True
            )
            if axis_factor
        ]
        transformed_axes.append(sum(axis_terms) + axis_translation)
    return transformed_axes


def sample_nearest(
    voxel_values: np.ndarray, voxel_coordinates: Sequence[np.ndarray]
) -> np.ndarray:
    """Return the values of the voxels nearest to voxel coordinates (one array an axis).

    0 outside the centres of the outermost voxels; halves are rounded up, as in nilearn.
    """
    stable_coordinates = np.round(voxel_coordinates, _COORDINATE_DECIMALS)
    return map_coordinates(voxel_values, stable_coordinates, order=0, mode="constant")


def resample_nearest(
    voxel_values: np.ndarray,
    affine: np.ndarray,
    target_shape: tuple[int, ...],
    grid_affine: np.ndarray,
) -> np.ndarray:
    """Return the nearest values at the voxels of another grid in the same space.

    `affine` maps voxels of `voxel_values` to mm, `grid_affine` voxels of the grid.
    """
    resampled_values = np.zeros(target_shape, dtype=voxel_values.dtype)
    voxel_to_voxel = np.linalg.inv(affine) @ grid_affine
    j, k = np.indices(target_shape[1:])
    for i in range(target_shape[0]):  # slice by slice, to save memory
        voxel_grid = np.full_like(j, i), j, k
        resampled_values[i] = sample_nearest(
            voxel_values, transform_points(voxel_to_voxel, voxel_grid)
        )
    return resampled_values
