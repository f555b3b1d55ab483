"""Images of voxels (NIfTI, MGZ): their spaces, affines, and linear registrations.

Two images, or a tractogram and an image, are checked to lie in one space.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from nibabel.affines import apply_affine, from_matvec, voxel_sizes
from scipy import ndimage

from brainlsap.exceptions import FileFormatError, ParameterError, convert_reading_errors
from brainlsap.text import option_text

# Values of `space-` in file names that mean the participant's own anatomical image.
NATIVE_SPACES = ("t1w", "t1", "anat", "orig", "native", "fsnative", "individual")
# Values of `space-` that name a coordinate convention and not a space.
COORDINATE_CONVENTIONS = ("rasmm", "lpsmm", "ras", "lps", "voxmm", "vox", "trackvis")
# Prefixes of the names of template spaces.
TEMPLATE_PREFIXES = ("mni", "icbm", "tal", "oasis", "nki", "fsaverage", "fslr")
# Smallest extent of the labels of a whole brain, in mm.
MIN_BRAIN_SPAN = 80.0
# Largest distance in mm between the corners of two grids of the same image.
MAX_CORNER_DISTANCE = 2.0
# Smallest share of the labelled voxels that a tractogram's grid must contain.
MIN_SHARE_IN_GRID = 0.5
# Voxel size of the coarse brain mask, in mm.
MASK_SPACING = 4.0
# Iterations of the closing that fills gaps between labels.
MASK_CLOSING = 8

# Decimals to which voxel coordinates are rounded, so that halves are exact halves on
# every machine.
_COORDINATE_DECIMALS = 6


class ImageGrid(NamedTuple):
    """Size of an image in voxels, and its affine from voxel to RAS in mm."""

    shape: tuple[int, ...]
    affine: np.ndarray

    @property
    def corners_mm(self) -> np.ndarray:
        """Return the centres of the eight corner voxels in mm."""
        corner_voxel_indices = np.array(
            np.meshgrid(*((0, axis_size - 1) for axis_size in self.shape[:3]))
        )
        return apply_affine(self.affine, corner_voxel_indices.reshape(3, -1).T)


def find_space_name(image_path: str | Path) -> str:
    """Return the space in a file's name, in lower case; "" if it states none.

    >>> (
    ...     find_space_name("sub-01_space-T1w_desc-dseg.nii.gz"),
    ...     find_space_name("tracks.tck"),
    ... )
    ('t1w', '')
    >>> find_space_name("sub-01_dwi_space-RASMM_tractography.trx")
    ''
    """
    space_texts = re.findall(r"(?:^|_)space-([A-Za-z0-9]+)", Path(image_path).name)
    space_names = [
        space_text.lower()
        for space_text in space_texts
        if space_text.lower() not in COORDINATE_CONVENTIONS
    ]
    if not space_names:
        return ""
    return "t1w" if space_names[-1] in NATIVE_SPACES else space_names[-1]


def check_named_spaces(
    tractogram_path: str | Path, parcellation_path: str | Path
) -> None:
    """Raise if the names of a tractogram and a parcellation state two spaces.

    A parcellation whose name states no space is taken to be in the participant's own.
    A tractogram whose name states none is in a space of the participant, and not in
    that of a template.
    """
    tractogram_space_name = find_space_name(tractogram_path)
    label_space_name = find_space_name(parcellation_path)
    if tractogram_space_name:
        is_same_space = tractogram_space_name == (label_space_name or "t1w")
    else:
        is_same_space = not label_space_name.startswith(TEMPLATE_PREFIXES)
    if not is_same_space:
        tractogram_space_text = (
            f"space-{tractogram_space_name}"
            if tractogram_space_name
            else "no space entity"
        )
        label_space_text = (
            f"space-{label_space_name}" if label_space_name else "no space entity"
        )
        raise ParameterError(
            f"the file name contains {tractogram_space_text}, but the file name of the "
            f"parcellation contains {label_space_text}, so the two may be in different "
            "spaces",
            path=tractogram_path,
            got=f"parcellation {Path(parcellation_path).name}",
            advice="Give a parcellation in the space of the tractogram. If both are in "
            f"the same space, give {option_text('same_space', True)}",
        )


def check_tractogram_covers_labels(
    tractogram_path: str | Path,
    tractogram_grid: ImageGrid,
    label_grid: ImageGrid,
    labelled_points_mm: np.ndarray,
) -> None:
    """Raise if the grid in a tractogram's header does not cover the labels.

    Two grids of the same size must be the same grid. A grid of another size, for
    example that of the diffusion images, must contain most labelled voxels (n, 3; in
    mm).
    """
    tractogram_voxel_sizes_mm = np.sort(voxel_sizes(tractogram_grid.affine))
    label_voxel_sizes_mm = np.sort(voxel_sizes(label_grid.affine))
    is_same_shape = sorted(tractogram_grid.shape) == sorted(label_grid.shape[:3])
    advice_text = (
        f"confirm with {option_text('same_space', True)} that tractogram and "
        "parcellation are in the same space"
    )
    if is_same_shape and np.allclose(
        tractogram_voxel_sizes_mm, label_voxel_sizes_mm, rtol=0.01
    ):
        corner_differences = (
            tractogram_grid.corners_mm[:, None] - label_grid.corners_mm[None]
        )
        corner_distance_matrix = np.sqrt((corner_differences**2).sum(axis=2))
        max_corner_distance = corner_distance_matrix.min(axis=1).max()
        if max_corner_distance > max(MAX_CORNER_DISTANCE, label_voxel_sizes_mm.max()):
            raise FileFormatError(
                "the image in the header has the size of the parcellation "
                f"{label_grid.shape[:3]}, but a different affine: their corners are up "
                f"to {max_corner_distance:.0f} mm apart. Give a parcellation with the "
                f"affine of that image, or {advice_text}.",
                path=tractogram_path,
            )
    voxel_coordinates = apply_affine(
        np.linalg.inv(tractogram_grid.affine), labelled_points_mm
    )
    above_lower_bound_mask = voxel_coordinates > -1
    below_upper_bound_mask = voxel_coordinates < np.array(tractogram_grid.shape)
    share_in_grid = (above_lower_bound_mask & below_upper_bound_mask).all(axis=1).mean()
    if share_in_grid < MIN_SHARE_IN_GRID:
        raise FileFormatError(
            f"the image in the header covers {share_in_grid:.0%} of the labelled "
            f"voxels of the parcellation; expected {MIN_SHARE_IN_GRID:.0%} or more. "
            f"Give a parcellation in the same space, or {advice_text}.",
            path=tractogram_path,
        )


def make_brain_mask(
    label_mask: np.ndarray, affine: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return a coarse mask of the brain around labels, and its affine.

    None if the labels do not cover a whole brain.
    """
    voxel_sizes_mm = voxel_sizes(affine)
    if (voxel_sizes_mm * label_mask.shape).min() < MIN_BRAIN_SPAN:
        return None
    axis_strides = np.maximum(np.rint(MASK_SPACING / voxel_sizes_mm), 1).astype(int)
    coarse_mask = label_mask[
        tuple(slice(None, None, axis_stride) for axis_stride in axis_strides)
    ]
    n_margin_voxels = MASK_CLOSING + 3  # keeps the closing away from the border
    coarse_mask = np.pad(coarse_mask, n_margin_voxels)
    coarse_mask = ndimage.binary_closing(coarse_mask, iterations=MASK_CLOSING)
    coarse_mask = ndimage.binary_dilation(ndimage.binary_fill_holes(coarse_mask))
    return coarse_mask, affine @ from_matvec(
        np.diag(axis_strides), -n_margin_voxels * axis_strides
    )


def read_volume_affine_header(path: str | Path) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return the voxels of an image (scaled by its header), its affine and header."""
    import nibabel

    with convert_reading_errors(
        path, "an image (MRtrix's mrconvert converts .mif to .nii)"
    ):
        image: Any = nibabel.load(path)
        affine = np.asarray(image.affine, dtype=np.float64)
        if not _is_invertible(affine):
            raise ValueError("the affine must be finite and invertible")
        voxel_values = np.asarray(image.dataobj)
        if voxel_values.ndim == 4 and voxel_values.shape[3] == 1:
            voxel_values = voxel_values[..., 0]
        if voxel_values.ndim != 3 or voxel_values.dtype.kind not in "buif":
            raise ValueError(
                "expected three axes and a number in every voxel; got shape "
                f"{voxel_values.shape} of {voxel_values.dtype}. Align and average "
                "the frames first"
            )
    return voxel_values, affine, image.header


def read_image_grid(path: str | Path) -> ImageGrid:
    """Return the size and affine of an image without reading its voxels."""
    import nibabel

    with convert_reading_errors(path, "an image"):
        image: Any = nibabel.load(path)
        affine = np.asarray(image.affine, dtype=np.float64)
        return ImageGrid(tuple(image.shape[:3]), affine)


def _is_invertible(affine: np.ndarray) -> bool:
    return bool(np.isfinite(affine).all() and abs(np.linalg.det(affine)) > 1e-12)


def read_transform_affine(
    transform: str | Path | np.ndarray | None,
    moving_image_path: str | Path,
    fixed_image_path: str | Path,
) -> np.ndarray:
    """Return the matrix from RAS of the moving image to RAS of the fixed one, in mm.

    `transform` is FreeSurfer's `.lta`, a text or `.mat` file of ITK and ANTs (with the
    fixed image as ANTs' `-f`), a matrix of FSL's flirt, or an array; None means that
    both are in the same space. FSL's and FreeSurfer's matrices need the grids of both
    images.
    """
    if isinstance(transform, str | Path):
        transform = _read_registration_matrix(
            Path(transform), moving_image_path, fixed_image_path
        )
    affine_matrix = (
        np.eye(4) if transform is None else np.asarray(transform, dtype=float)
    )
    if affine_matrix.shape != (4, 4) or not _is_invertible(affine_matrix):
        raise ParameterError(
            f"transform must be an invertible 4 x 4 matrix; got {affine_matrix!r:.60}"
        )
    return affine_matrix


def _read_registration_matrix(
    path: Path, moving_image_path: str | Path, fixed_image_path: str | Path
) -> np.ndarray:
    """Return the matrix of a registration file, from the moving to the fixed image."""
    file_format = "fs" if path.suffix.lower() == ".lta" else "itk"
    expected_format_text = (
        f"a linear registration ({file_format} or FSL; needs brainlsap[tract])"
    )
    with convert_reading_errors(path, expected_format_text):
        from nitransforms.linear import load

        with suppress(ValueError):  # files of ITK hold words or bytes
            if file_format == "itk" and np.loadtxt(path).size == 16:
                file_format = "fsl"
        nitransforms_map = load(
            str(path),
            fmt=file_format,
            reference=str(fixed_image_path),
            moving=str(moving_image_path),
        )
        # nitransforms maps points of the fixed image to the moving one.
        return np.linalg.inv(
            np.squeeze(np.asarray(nitransforms_map.matrix, dtype=np.float64))
        )


def transform_coordinate_arrays(
    affine: np.ndarray, axis_coordinate_arrays: Any
) -> list[np.ndarray]:
    """Return transformed coordinates in float64, one array per axis as they came.

    A matrix product would round differently from machine to machine, and the last bit
    decides between equal distances.
    """
    float_coordinate_arrays = [
        np.asarray(axis_coordinates, dtype=np.float64)
        for axis_coordinates in axis_coordinate_arrays
    ]
    transformed_coordinate_arrays = []
    for *axis_factors, axis_translation in affine[:3]:
        axis_terms = [
            axis_factor * axis_coordinates
            for axis_factor, axis_coordinates in zip(
                axis_factors, float_coordinate_arrays, strict=True
            )
            if axis_factor
        ]
        transformed_coordinate_arrays.append(sum(axis_terms) + axis_translation)
    return transformed_coordinate_arrays


def sample_nearest_values(
    voxel_values: np.ndarray, axis_coordinate_arrays: Sequence[np.ndarray]
) -> np.ndarray:
    """Return the values of the voxels nearest to voxel coordinates (one array an axis).

    0 outside the centres of the outermost voxels; halves are rounded up, as in nilearn.
    """
    rounded_coordinates = np.round(axis_coordinate_arrays, _COORDINATE_DECIMALS)
    return ndimage.map_coordinates(
        voxel_values, rounded_coordinates, order=0, mode="constant"
    )


def resample_nearest_volume(
    voxel_values: np.ndarray,
    source_affine: np.ndarray,
    target_shape: tuple[int, ...],
    target_affine: np.ndarray,
) -> np.ndarray:
    """Return the nearest values at the voxels of another grid in the same space.

    `source_affine` maps voxels of `voxel_values` to mm, `target_affine` voxels of the
    grid.
    """
    resampled_values = np.zeros(target_shape, dtype=voxel_values.dtype)
    grid_to_image_affine = np.linalg.inv(source_affine) @ target_affine
    j, k = np.indices(target_shape[1:])
    for i in range(target_shape[0]):  # slice by slice, to save memory
        voxel_index_arrays = np.full_like(j, i), j, k
        resampled_values[i] = sample_nearest_values(
            voxel_values,
            transform_coordinate_arrays(grid_to_image_affine, voxel_index_arrays),
        )
    return resampled_values
