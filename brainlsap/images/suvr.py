"""Regional SUVR from a PET image and a parcellation."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from nibabel.affines import apply_affine, from_matvec, voxel_sizes
from scipy import ndimage

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data.region_tables import REFERENCES
from brainlsap.exceptions import FileFormatError, ParameterError
from brainlsap.images import volumes
from brainlsap.images.parcellation import LabelImage, LabelSource, match_label_image
from brainlsap.images.volumes import MIN_BRAIN_SPAN, find_space_name
from brainlsap.text import option_text

# Smallest covered share of the voxels of all regions, and of the reference. Smaller
# shares are due to a wrong affine or a cropped image.
MIN_OVERLAP = 0.9
MIN_REFERENCE_COVERAGE = 0.8
# Shift in mm from which an image is rejected.
MAX_SHIFT = 8.0
# Spacing of the grid on which the shift is measured, in mm, and its margin in voxels.
_GRID_SPACING = 4.0
_GRID_MARGIN = 5
# Step lengths of the search for the best shift, in mm.
_STEPS = (8.0, 4.0, 2.0)
# Largest shift that the search reaches, in mm, by steps of one length.
_SEARCH_RANGE = 40
# A shift is reported only if labels explain this much more of the image there.
_MIN_FIT_GAIN = 1.15


class VoxelImage(NamedTuple):
    """Values of voxels, and the affine from voxel to mm in the space of the labels."""

    voxel_values: np.ndarray
    affine: np.ndarray


@dataclass(frozen=True, eq=False)
class RegionalUptake:
    """Uptake and coverage of every region.

    Attributes
    ----------
    table
        A row for each region: `suvr`, its mean divided by that of the reference (NaN if
        not measured); `mean` in the unit of the image; `n_voxels`, the number of
        averaged voxels; `coverage`, the share of its voxels that the image covers.
    notes
        Notes on the reading of labels and on regions that are not measured.
    reference_mean
        Mean of the reference region, in the unit of the image.
    reference_coverage
        Share of the reference's voxels that the image covers.
    overlap
        Share of the voxels of all regions that the image covers.
    shift_mm
        Length of the translation with which the image fits the labels best; NaN if the
        labels do not cover a whole brain.
    """

    table: pd.DataFrame
    notes: tuple[str, ...]
    reference_mean: float
    reference_coverage: float
    overlap: float
    shift_mm: float


def extract_suvr(
    pet: str | Path,
    parcellation: str | Path,
    atlas: str | Path | Atlas = "destrieux160",
    reference: str | Path = "cerebellar cortex",
    *,
    labels: LabelSource | None = None,
    transform: str | Path | np.ndarray | None = None,
    same_space: bool = False,
    accept_low_coverage: bool = False,
) -> RegionalUptake:
    r"""Extract the standardised uptake value ratio of every region.

    Labels are resampled to the grid of the PET image by nearest neighbour. A voxel that
    is 0, NaN or infinite in the image is not covered: it enters no mean, and lowers the
    coverage of its region.

    Parameters
    ----------
    pet : str or Path
        NIfTI or MGZ on any grid; scaling factors and affine of the header are applied.
        The image is in the parcellation's space if its name states that space
        (`space-T1w`, or the `space-` of the parcellation's name) or with `same_space`;
        otherwise it needs a `transform`.
    parcellation : str or Path
        NIfTI or MGZ of labels on any grid, as in :func:`.build_connectome`.
    atlas : str, Path or Atlas
        Anything that :func:`.load_atlas` accepts.
    reference : str or path
        Region with mean 1: "cerebellar cortex", "cerebellar white matter", "whole
        cerebellum", "pons" or "brain stem", which are labels of the parcellation; or a
        mask in its space (voxels above 0).
    labels : path, or mapping of int to str, optional
        Names of the labels, as in :func:`.build_connectome`.
    transform : path or array of shape (4, 4), optional
        Registration of the PET to the parcellation's image (`.lta`, ITK, FSL), or the
        matrix from RAS of the PET to RAS of the parcellation.
    same_space : bool
        State that both images are in one space, although no name says so.
    accept_low_coverage : bool
        Accept an image that covers less than 90 % of the regions or 80 % of the
        reference, or that fits the labels better after a shift of 8 mm or more. A note
        is added.

    Returns
    -------
    RegionalUptake
        Values in atlas order, the coverage of every region, and `shift_mm`: the length
        of the translation after which classes of labels (outside, cortex, subcortex,
        cerebellum, other) explain most of the image's variance (the correlation ratio
        of Roche et al. 1998, MICCAI). For an image in register it is a few mm.

    Raises
    ------
    FileFormatError
        If a file cannot be read, or the image does not cover the regions or is not in
        register with them.
    RegionNameError
        If labels have names that are not regions of the atlas, or regions are missing.
    ParameterError
        If an argument is invalid, or nothing states that the images are in one space.
    """
    atlas = load_atlas(atlas)
    if transform is None and not same_space:
        check_same_space(pet, parcellation)
    label_image = match_label_image(parcellation, atlas, labels)
    code_by_label = {
        label_number: region_index + 1
        for label_number, region_index in label_image.region_index_by_label.items()
    }
    region_code_volume = label_image.recode(code_by_label)
    reference_voxel_image, reference_name = _read_reference_image_and_name(
        reference, label_image
    )
    pet_to_parcellation_affine = volumes.read_transform_affine(
        transform, pet, parcellation
    )
    voxel_values, affine, _ = volumes.read_volume_affine_header(pet)
    uptake_volume = voxel_values.astype(np.float64)
    uptake_volume[(uptake_volume == 0) | ~np.isfinite(uptake_volume)] = np.nan
    pet_voxel_image = VoxelImage(uptake_volume, pet_to_parcellation_affine @ affine)
    uptake_table = _make_region_uptake_table(
        pet_voxel_image, VoxelImage(region_code_volume, label_image.affine), len(atlas)
    )
    covered_voxel_share = float(
        uptake_table["n_covered"].sum() / max(uptake_table["n_labelled"].sum(), 1)
    )
    reference_uptake_series = _make_region_uptake_table(
        pet_voxel_image, reference_voxel_image, 1
    ).iloc[0]
    reference_mean = float(reference_uptake_series["mean"])
    reference_coverage = float(reference_uptake_series["coverage"])
    shift_mm = estimate_pet_shift_mm(pet_voxel_image, label_image, atlas)
    space_fault_texts = []
    if covered_voxel_share < MIN_OVERLAP:
        space_fault_texts.append(
            f"covers {covered_voxel_share:.0%} of the regions' voxels"
        )
    if reference_coverage < MIN_REFERENCE_COVERAGE:
        space_fault_texts.append(
            f"covers {reference_coverage:.0%} of the reference region {reference_name}"
        )
    if shift_mm >= MAX_SHIFT:
        space_fault_texts.append(
            f"matches the labels best when it is moved by {shift_mm:.0f} mm"
        )
    if space_fault_texts and not accept_low_coverage:
        raise FileFormatError(
            f"the image {' and '.join(space_fault_texts)}; expected at least "
            f"{MIN_OVERLAP:.0%} of the regions, at least {MIN_REFERENCE_COVERAGE:.0%} "
            f"of the reference region, and a shift of less than {MAX_SHIFT:g} mm. The "
            "image and the parcellation may be in different spaces. Give a "
            f"{option_text('transform')} between these spaces, or accept the image "
            f"with {option_text('accept_low_coverage')}.",
            path=pet,
        )
    if not 0 < reference_mean < np.inf:
        raise FileFormatError(
            f"the mean of the reference region {reference_name} is {reference_mean}; "
            "expected more than 0. Check the image, or choose another reference region "
            f"with {option_text('reference')}.",
            path=pet,
        )
    uptake_table.index = pd.Index(atlas.names, name="region")
    uptake_table["suvr"] = uptake_table["mean"] / reference_mean
    extraction_notes = [
        *label_image.notes,
        *(
            f"the image {space_fault_text}, and was accepted because of "
            f"{option_text('accept_low_coverage')}"
            for space_fault_text in space_fault_texts
        ),
    ]
    if unmeasured_region_names := uptake_table.index[
        uptake_table["suvr"].isna()
    ].tolist():
        extraction_notes.append(
            "regions without a covered voxel count as not measured: "
            f"{', '.join(unmeasured_region_names)}"
        )
    uptake_table = uptake_table[["suvr", "mean", "n_voxels", "coverage"]]
    return RegionalUptake(
        table=uptake_table,
        notes=tuple(extraction_notes),
        reference_mean=reference_mean,
        reference_coverage=reference_coverage,
        overlap=covered_voxel_share,
        shift_mm=shift_mm,
    )


def check_same_space(pet_path: str | Path, parcellation_path: str | Path) -> None:
    """Raise unless the names of PET and parcellation state the same space."""
    if find_space_name(pet_path) != (find_space_name(parcellation_path) or "t1w"):
        raise ParameterError(
            "the file name of the PET image does not contain the space of the "
            "parcellation",
            path=pet_path,
            got=f"parcellation {Path(parcellation_path).name}",
            advice="Give an image whose file name contains the space of the "
            "parcellation (*_space-T1w_*_pet.nii.gz), or the registration of the "
            f"image with {option_text('transform')}. If the image is already aligned "
            f"with the parcellation, give {option_text('same_space', True)}",
        )


def _read_reference_image_and_name(
    reference: str | Path, label_image: LabelImage
) -> tuple[VoxelImage, str]:
    """Return the mask of the reference (1 inside, else 0), and its name or path."""
    reference_name = str(reference).lower().replace("_", " ").replace("-", " ")
    if reference_name in REFERENCES:
        part_label_lists = [
            label_image.find_label_numbers((core_name,))
            for core_name in REFERENCES[reference_name]
        ]
        if not all(part_label_lists):
            raise FileFormatError(
                "the parcellation has no labels for some parts of the reference "
                f"{reference_name}. Give a mask in the same space with "
                f"{option_text('reference')}.",
                path=label_image.path,
            )
        code_by_label = {
            label_number: 1
            for part_label_numbers in part_label_lists
            for label_number in part_label_numbers
        }
        return VoxelImage(
            label_image.recode(code_by_label), label_image.affine
        ), reference_name
    mask_path = Path(reference)
    if not mask_path.is_file():
        raise ParameterError(
            f"reference must be one of {', '.join(map(repr, REFERENCES))}, or the path "
            f"of a mask; got {str(reference)!r}, and there is no such file."
        )
    mask_volume, affine, _ = volumes.read_volume_affine_header(mask_path)
    reference_mask = mask_volume > 0
    if not reference_mask.any():
        raise FileFormatError(
            "expected a mask with voxels above 0, but the mask is empty.",
            path=mask_path,
        )
    return VoxelImage(reference_mask.astype(np.int32), affine), str(mask_path)


def _make_region_uptake_table(
    uptake_voxel_image: VoxelImage, region_voxel_image: VoxelImage, n_regions: int
) -> pd.DataFrame:
    """Average a scan (NaN if not covered) over the regions 1 to n.

    The coverage is the share of a region's voxels that the scan covers.
    """
    voxel_index_arrays = np.nonzero(region_voxel_image.voxel_values)
    label_voxel_codes = region_voxel_image.voxel_values[voxel_index_arrays]
    label_to_scan_affine = (
        np.linalg.inv(uptake_voxel_image.affine) @ region_voxel_image.affine
    )
    axis_coordinate_arrays = volumes.transform_coordinate_arrays(
        label_to_scan_affine, voxel_index_arrays
    )
    covered_voxel_mask = volumes.sample_nearest_values(
        ~np.isnan(uptake_voxel_image.voxel_values), axis_coordinate_arrays
    )
    region_code_volume = volumes.resample_nearest_volume(
        *region_voxel_image,
        uptake_voxel_image.voxel_values.shape,
        uptake_voxel_image.affine,
    )
    counted_voxel_mask = (region_code_volume > 0) & ~np.isnan(
        uptake_voxel_image.voxel_values
    )
    sums_by_column = {
        "n_labelled": np.bincount(label_voxel_codes, minlength=n_regions + 1),
        "n_covered": np.bincount(
            label_voxel_codes[covered_voxel_mask], minlength=n_regions + 1
        ),
        "n_voxels": np.bincount(
            region_code_volume[counted_voxel_mask], minlength=n_regions + 1
        ),
        "sum": np.bincount(
            region_code_volume[counted_voxel_mask],
            uptake_voxel_image.voxel_values[counted_voxel_mask],
            n_regions + 1,
        ),
    }
    uptake_table = pd.DataFrame(sums_by_column).iloc[1:]
    uptake_table["mean"] = uptake_table["sum"] / uptake_table["n_voxels"]
    uptake_table["coverage"] = uptake_table["n_covered"] / uptake_table["n_labelled"]
    return uptake_table


def estimate_pet_shift_mm(
    uptake_voxel_image: VoxelImage, label_image: LabelImage, atlas: Atlas
) -> float:
    """Return the length (mm) of the translation with which an image fits labels best.

    NaN if the labels do not cover a whole brain. The fit is the correlation ratio: the
    share of the image's variance that the class of the label explains, on a coarse grid
    in and around the brain.
    """
    voxel_sizes_mm = voxel_sizes(label_image.affine)
    if (voxel_sizes_mm * label_image.label_volume.shape).min() < MIN_BRAIN_SPAN:
        return np.nan
    # Classes: 0 outside, 1 unlabelled, 2 cortex, 3 subcortex, 4 cerebellum, 5 other.
    tissue_code_by_label = dict.fromkeys(label_image.name_by_label, 5)
    for label_number, region_index in label_image.region_index_by_label.items():
        tissue_code_by_label[label_number] = 2 if atlas.cortex[region_index] else 3
    cerebellar_label_numbers = label_image.find_label_numbers(
        REFERENCES["cerebellar cortex"]
    )
    tissue_code_by_label |= dict.fromkeys(cerebellar_label_numbers, 4)
    axis_strides = np.maximum(np.rint(_GRID_SPACING / voxel_sizes_mm), 1).astype(int)
    tissue_code_volume = label_image.recode(tissue_code_by_label)[
        tuple(slice(None, None, axis_stride) for axis_stride in axis_strides)
    ]
    tissue_code_volume = np.pad(tissue_code_volume, _GRID_MARGIN)
    # White matter and fluid may have no label; inside the brain they are one class.
    brain_mask = ndimage.binary_closing(tissue_code_volume > 0, iterations=3)
    brain_mask = ndimage.binary_fill_holes(brain_mask)
    tissue_code_volume = np.where(
        (tissue_code_volume == 0) & brain_mask, 1, tissue_code_volume
    )
    near_brain_mask = ndimage.binary_dilation(brain_mask, iterations=_GRID_MARGIN)
    grid_to_image_affine = from_matvec(
        np.diag(axis_strides), -_GRID_MARGIN * axis_strides
    )
    sample_points_mm = apply_affine(
        label_image.affine @ grid_to_image_affine, np.argwhere(near_brain_mask)
    )
    point_tissue_codes = tissue_code_volume[near_brain_mask]
    tissue_point_counts = np.maximum(np.bincount(point_tissue_codes), 1)
    uptake_volume = np.nan_to_num(uptake_voxel_image.voxel_values)
    mm_to_voxel_affine = np.linalg.inv(uptake_voxel_image.affine)

    def compute_explained_share(shift_vector_mm: np.ndarray) -> float:
        axis_coordinate_arrays = volumes.transform_coordinate_arrays(
            mm_to_voxel_affine, (sample_points_mm + shift_vector_mm).T
        )
        voxel_values = volumes.sample_nearest_values(
            uptake_volume, axis_coordinate_arrays
        )
        tissue_means = (
            np.bincount(point_tissue_codes, voxel_values) / tissue_point_counts
        )
        residual_variance = (
            (voxel_values - tissue_means[point_tissue_codes]) ** 2
        ).sum()
        total_variance = ((voxel_values - voxel_values.mean()) ** 2).sum()
        return (
            1.0 - float(residual_variance / total_variance)
            if total_variance > 0
            else 0.0
        )

    shift_directions = np.vstack([np.eye(3), -np.eye(3)])
    best_shift_vector_mm = np.zeros(3)
    unshifted_explained_share = compute_explained_share(best_shift_vector_mm)
    best_explained_share = unshifted_explained_share
    for step_mm in _STEPS:
        for _ in range(int(_SEARCH_RANGE / step_mm)):
            shift_vectors_mm = best_shift_vector_mm + step_mm * shift_directions
            explained_shares = [
                compute_explained_share(shift_vector_mm)
                for shift_vector_mm in shift_vectors_mm
            ]
            if max(explained_shares) <= best_explained_share:
                break
            best_explained_share = max(explained_shares)
            best_shift_vector_mm = shift_vectors_mm[int(np.argmax(explained_shares))]
    if best_explained_share <= _MIN_FIT_GAIN * unshifted_explained_share:
        return 0.0
    return float(np.linalg.norm(best_shift_vector_mm))
