"""From a PET image and a parcellation to one value for every region."""

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
from brainlsap.images.parcellation import LabelImage, Labels, read_label_image
from brainlsap.images.space import MIN_BRAIN_SPAN, named_space

# Smaller coverage of the regions, or the reference, means a wrong affine or a cut
# image.
MIN_OVERLAP, MIN_REFERENCE_COVERAGE = 0.9, 0.8
# Alignment, in mm: spacing of the grid, steps of the search, and the shift that is
# rejected; and the layers of the grid around the brain.
_GRID, _STEPS, MAX_SHIFT = 4.0, (8.0, 4.0, 2.0), 8.0
_MARGIN = 5
# A shift is reported only if labels explain this much more of the image there.
_MIN_FIT_GAIN = 1.15


class Grid(NamedTuple):
    """Values of voxels, and from voxel to mm in the space of the labels."""

    values: np.ndarray
    affine: np.ndarray


@dataclass(frozen=True, eq=False)
class RegionalUptake:
    """Uptake of every region, and how well the image covers it.

    Attributes
    ----------
    table
        A row for each region: `suvr`, its mean over that of the reference (NaN: not
        measured); `mean` in the unit of the image; `n_voxels` that were averaged;
        `coverage`, the share of its voxels that the image covers.
    notes
        What the labels were taken for, and what is not measured.
    reference_mean
        Of the reference region, in the unit of the image.
    reference_coverage
        Share of the reference's voxels that the image covers.
    overlap
        Share of the voxels of all regions that the image covers.
    shift_mm
        How far the image would have to be moved to fit the labels best; NaN: no brain
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
    labels: Labels | None = None,
    transform: str | Path | np.ndarray | None = None,
    same_space: bool = False,
    accept_low_coverage: bool = False,
) -> RegionalUptake:
    r"""Extract the standardised uptake value ratio of every region, by name.

    Labels go to the grid of the PET by nearest neighbour. A voxel that is 0, NaN or
    infinite in the image is not covered: it is in no mean, and lowers the coverage of
    its region.

    Parameters
    ----------
    pet : str or Path
        NIfTI or MGZ on any grid; scaling factors and affine of the header count. In
        the parcellation's space, which its name says (`space-T1w`, or the `space-` of
        the parcellation's name), or `same_space`, or else with a `transform` to it.
    parcellation : str or Path
        NIfTI or MGZ of labels on any grid, as :func:`.build_connectome` takes it.
    atlas : str, Path or Atlas
        As :func:`.load_atlas` takes it.
    reference : str or path
        Region whose mean is 1: "cerebellar cortex", "cerebellar white matter", "whole
        cerebellum", "pons" or "brain stem", labels of the parcellation; or an image in
        its space, of which voxels above 0 count.
    labels : path, or mapping of int to str, optional
        Names of the labels, as :func:`.build_connectome` takes them.
    transform : path or array of shape (4, 4), optional
        Registration of the PET to the parcellation's image (`.lta`, ITK, FSL), or the
        matrix from RAS of the PET to RAS of the parcellation.
    same_space : bool
        Your word that both images are in one space, where no name says so.
    accept_low_coverage : bool
        Whether to go on where less than 90 % of the regions or 80 % of the reference
        is covered, or where the image seems to lie 8 mm or more beside the labels;
        a note says so.

    Returns
    -------
    RegionalUptake
        `values` in atlas order, the coverage of every region, and `shift_mm`: the
        translation after which classes of labels (outside, cortex, subcortex,
        cerebellum, other) explain most of the image's variance (the correlation ratio
        of Roche et al. 1998, MICCAI). Of a PET that is in place it is some mm.

    Raises
    ------
    FileFormatError
        Where a file cannot be read, or the image does not cover the regions, or lies
        beside them.
    RegionNameError
        Where labels have names that are no regions, or regions are missing.
    ParameterError
        Where an argument cannot be used, or nothing says that the images share their
        space.
    """
    atlas = load_atlas(atlas)
    if transform is None and not same_space:
        check_same_space(pet, parcellation)
    image = read_label_image(parcellation, atlas, labels)
    codes = image.recode({n: i + 1 for n, i in image.positions.items()})
    mask, reference_name = _find_reference(reference, image)
    pet_to_parcellation = volumes.read_transform(transform, pet, parcellation)
    voxels, affine, _ = volumes.read_volume(pet)
    values = voxels.astype(np.float64)
    values[(values == 0) | ~np.isfinite(values)] = np.nan
    pet_grid = Grid(values, pet_to_parcellation @ affine)
    table = _measure(pet_grid, Grid(codes, image.affine), len(atlas))
    n_covered, n_labelled = table["n_covered"].sum(), table["n_labelled"].sum()
    overlap = float(n_covered / max(n_labelled, 1))
    reference_mean, reference_coverage = (
        _measure(pet_grid, mask, 1)[["mean", "coverage"]].iloc[0].tolist()
    )
    shift_mm = measure_shift(pet_grid, image, atlas)
    faults = []
    if overlap < MIN_OVERLAP:
        faults.append(f"covers {overlap:.0%} of the regions' voxels")
    if reference_coverage < MIN_REFERENCE_COVERAGE:
        faults.append(
            f"covers {reference_coverage:.0%} of the reference {reference_name}"
        )
    if shift_mm >= MAX_SHIFT:
        faults.append(f"fits the labels best when moved by {shift_mm:.0f} mm")
    if faults and not accept_low_coverage:
        raise FileFormatError(
            f"the image {' and '.join(faults)}; expected {MIN_OVERLAP:.0%} of "
            f"the regions and {MIN_REFERENCE_COVERAGE:.0%} of the reference. Are both "
            "in one space, or is a transform= missing? accept_low_coverage= goes on.",
            path=pet,
        )
    if not 0 < reference_mean < np.inf:
        raise FileFormatError(
            f"the mean of the reference {reference_name} is {reference_mean}; "
            "expected more than 0.",
            path=pet,
        )
    table.index = pd.Index(atlas.names, name="region")
    table["suvr"] = table["mean"] / reference_mean
    notes = [*image.notes, *(f"accepted: the image {fault}" for fault in faults)]
    if unmeasured_regions := table.index[table["suvr"].isna()].tolist():
        notes.append(f"not measured, no covered voxel: {', '.join(unmeasured_regions)}")
    table = table[["suvr", "mean", "n_voxels", "coverage"]]
    return RegionalUptake(
        table, tuple(notes), reference_mean, reference_coverage, overlap, shift_mm
    )


def check_same_space(pet: str | Path, parcellation: str | Path) -> None:
    """Raise unless the names of PET and parcellation say one space."""
    if named_space(pet) != (named_space(parcellation) or "t1w"):
        raise ParameterError(
            f"nothing says that it is in the space of {Path(parcellation).name}."
            " Give an image whose name says so (*_space-T1w_*_pet.nii.gz), transform= "
            "with its registration, or your word by same_space=True (--same-space).",
            path=pet,
        )


def _find_reference(reference: str | Path, image: LabelImage) -> tuple[Grid, str]:
    """Return the mask of the reference (1 inside, else 0), and what it is."""
    reference_name = str(reference).lower().replace("_", " ").replace("-", " ")
    if reference_name in REFERENCES:
        label_groups = [
            image.find_labels((core,)) for core in REFERENCES[reference_name]
        ]
        if not all(label_groups):
            raise FileFormatError(
                "the parcellation has no label for every part of the "
                f"reference {reference_name}. Give a mask in the same space by "
                "reference=.",
                path=image.path,
            )
        codes = {label: 1 for labels in label_groups for label in labels}
        return Grid(image.recode(codes), image.affine), reference_name
    path = Path(reference)
    if not path.is_file():
        raise ParameterError(
            f"reference must be one of {', '.join(map(repr, REFERENCES))}, or the path "
            f"of a mask; got {str(reference)!r}, and there is no such file."
        )
    mask, affine, _ = volumes.read_volume(path)
    is_inside = mask > 0
    if not is_inside.any():
        raise FileFormatError("expected a mask with voxels above 0.", path=path)
    return Grid(is_inside.astype(np.int32), affine), str(path)


def _measure(scan: Grid, labels: Grid, n_regions: int) -> pd.DataFrame:
    """Average a scan (NaN where not covered) over the regions 1 to n.

    The coverage is the share of a region's voxels that the scan covers.
    """
    label_voxels = np.nonzero(labels.values)
    regions = labels.values[label_voxels]
    steps = np.linalg.inv(scan.affine) @ labels.affine
    coordinates = volumes.transform_points(steps, label_voxels)
    is_covered = volumes.sample_nearest(~np.isnan(scan.values), coordinates)
    codes = volumes.resample_nearest(*labels, scan.values.shape, scan.affine)
    is_used = (codes > 0) & ~np.isnan(scan.values)
    sums = {
        "n_labelled": np.bincount(regions, minlength=n_regions + 1),
        "n_covered": np.bincount(regions[is_covered], minlength=n_regions + 1),
        "n_voxels": np.bincount(codes[is_used], minlength=n_regions + 1),
        "sum": np.bincount(codes[is_used], scan.values[is_used], n_regions + 1),
    }
    table = pd.DataFrame(sums).iloc[1:]
    table["mean"] = table["sum"] / table["n_voxels"]
    table["coverage"] = table["n_covered"] / table["n_labelled"]
    return table


def measure_shift(scan: Grid, image: LabelImage, atlas: Atlas) -> float:
    """Return the length of the translation of the image that fits the labels best.

    In mm; NaN where labels span no whole brain. The fit is the correlation ratio: the
    share of the image's variance that the class of the label explains, over a coarse
    grid in and around the brain.
    """
    sizes = voxel_sizes(image.affine)
    if (sizes * image.values.shape).min() < MIN_BRAIN_SPAN:
        return np.nan
    tissue_of_label = dict.fromkeys(image.names, 5)
    tissue_of_label |= {n: 3 - int(atlas.cortex[i]) for n, i in image.positions.items()}
    tissue_of_label |= dict.fromkeys(
        image.find_labels(REFERENCES["cerebellar cortex"]), 4
    )
    voxel_step = np.maximum(np.rint(_GRID / sizes), 1).astype(int)
    tissue = image.recode(tissue_of_label)[
        tuple(slice(None, None, step) for step in voxel_step)
    ]
    tissue = np.pad(tissue, _MARGIN)
    # white matter and fluid may have no label: inside the brain, a class of their own
    is_inside = ndimage.binary_closing(tissue > 0, iterations=3)
    is_inside = ndimage.binary_fill_holes(is_inside)
    tissue = np.where((tissue == 0) & is_inside, 1, tissue)
    is_near = ndimage.binary_dilation(is_inside, iterations=_MARGIN)
    coarse = image.affine @ from_matvec(np.diag(voxel_step), -_MARGIN * voxel_step)
    points, classes = apply_affine(coarse, np.argwhere(is_near)), tissue[is_near]
    n_points = np.maximum(np.bincount(classes), 1)
    values, mm_to_voxel = np.nan_to_num(scan.values), np.linalg.inv(scan.affine)

    def explained_variance(shift: np.ndarray) -> float:
        coordinates = volumes.transform_points(mm_to_voxel, (points + shift).T)
        voxel_values = volumes.sample_nearest(values, coordinates)
        means = np.bincount(classes, voxel_values) / n_points
        residual = ((voxel_values - means[classes]) ** 2).sum()
        total = ((voxel_values - voxel_values.mean()) ** 2).sum()
        return 1.0 - float(residual / total) if total > 0 else 0.0

    position = np.zeros(3)
    best_fit = fit_without_shift = explained_variance(position)
    for step in _STEPS:
        for _ in range(int(40 / step)):
            moves = [
                position + shift for shift in step * np.vstack([np.eye(3), -np.eye(3)])
            ]
            fits = [explained_variance(shift) for shift in moves]
            if max(fits) <= best_fit:
                break
            best_fit, position = max(fits), moves[int(np.argmax(fits))]
    if best_fit <= _MIN_FIT_GAIN * fit_without_shift:
        return 0.0
    return float(np.linalg.norm(position))
