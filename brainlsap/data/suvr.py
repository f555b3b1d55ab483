"""From a PET image and a parcellation to one value for every region."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap._arrays import check_at_least, check_choice
from brainlsap.data.atlas import Atlas, load_atlas
from brainlsap.data.feature_rules import FeatureFile
from brainlsap.data.label_images import read_label_image
from brainlsap.data.pet_images import read_pet
from brainlsap.data.pet_references import find_reference
from brainlsap.data.region_means import Grid, measure, shrink
from brainlsap.data.spatial_transforms import read_transform
from brainlsap.exceptions import FileFormatError

GRIDS = ("pet", "parcellation")
# Less of the regions than this in the image is a wrong affine or a cut image.
LEAST_OVERLAP, LEAST_REFERENCE = 0.9, 0.8


@dataclass(frozen=True, eq=False)
class RegionalUptake(FeatureFile):
    """Uptake of every region, and how well the image covers it.

    Parameters
    ----------
    values : array of shape (n_rois,)
        SUVR: mean of the region over the mean of the reference; NaN where too few
        voxels are covered.
    notes : tuple of str
        What the labels were taken for, and what is not measured.
    names : tuple of str
        Of the regions.
    means : array of shape (n_rois,)
        In the unit of the image.
    coverage : array of shape (n_rois,)
        Share of the region's voxels in the parcellation that the image covers.
    n_voxels : int array of shape (n_rois,)
        Covered voxels that were averaged.
    reference_mean, reference_coverage : float
        Of the reference region.
    overlap : float
        Share of the voxels of all regions that the image covers.
    parameters : dict
        How it was made.

    Examples
    --------
    See :func:`brainlsap.data.extract_suvr`.
    """

    names: tuple[str, ...] = ()
    means: np.ndarray = field(default_factory=lambda: np.empty(0))
    coverage: np.ndarray = field(default_factory=lambda: np.empty(0))
    n_voxels: np.ndarray = field(default_factory=lambda: np.empty(0))
    reference_mean: float = np.nan
    reference_coverage: float = np.nan
    overlap: float = np.nan
    parameters: dict[str, Any] = field(default_factory=dict)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each region: suvr, mean, n_voxels and coverage."""
        columns = {"suvr": self.values, "mean": self.means}
        columns |= {"n_voxels": self.n_voxels, "coverage": self.coverage}
        return pd.DataFrame(columns, index=pd.Index(self.names, name="region"))


def extract_suvr(
    pet: str | Path,
    parcellation: str | Path,
    atlas: str | Path | Atlas = "destrieux160",
    reference: str | Path = "cerebellar cortex",
    *,
    labels: str | Path | Mapping[int, str] | Sequence[str] | None = None,
    transform: str | Path | np.ndarray | None = None,
    grid: str = "pet",
    frames: tuple[float, float] | None = None,
    frame_times: Sequence[Sequence[float]] | None = None,
    erosion: int = 0,
    min_voxels: int = 1,
    accept_low_coverage: bool = False,
) -> RegionalUptake:
    r"""Extract the standardised uptake value ratio of every region, by name.

    A voxel that is 0, NaN or infinite in the image is not covered: it is in no mean,
    and lowers the coverage of its region.

    Parameters
    ----------
    pet : str or Path
        NIfTI or MGZ on any grid; scaling factors and affine of the header count.
    parcellation : str or Path
        NIfTI or MGZ of labels on any grid, as :func:`.build_connectome` takes it.
    atlas : str, Path or Atlas
        As :func:`.load_atlas` takes it.
    reference : {"cerebellar cortex", "pons", "whole cerebellum"} or path
        Region whose mean is 1: labels of the parcellation; or an image in its space,
        of which voxels above 0 count.
    labels : path, mapping of int to str, or sequence of str, optional
        Names of the labels, as :func:`.build_connectome` takes them.
    transform : path or array of shape (4, 4), optional
        Registration of the PET to the parcellation's image (`.lta`, ITK, FSL), or the
        matrix from RAS of the PET to RAS of the parcellation. By default they share
        their space.
    grid : {"pet", "parcellation"}
        Where voxels are averaged: labels go to the PET by nearest neighbour, or the
        PET to the labels by trilinear interpolation.
    frames : (float, float), optional
        Start and end in seconds of the frames to average, of images with time.
    frame_times : sequence of (float, float), optional
        Start and end of every frame; by default from the BIDS `.json` beside the PET.
    erosion : int
        Layers of voxels of the parcellation taken from the surface of every region,
        and of the reference.
    min_voxels : int
        A region with fewer covered voxels is not measured.
    accept_low_coverage : bool
        Whether to go on where less than 90 % of the regions or 80 % of the reference
        is covered; a note says so.

    Returns
    -------
    RegionalUptake
        With `values` in atlas order, and the coverage of every region.

    Raises
    ------
    FileFormatError
        Where a file cannot be read, or the image does not cover the regions.
    RegionNameError
        Where labels have names that are no regions, or regions are missing.
    ParameterError
        Where an argument cannot be used, or the frames are not said.

    Examples
    --------
    >>> import tempfile, nibabel
    >>> labels = np.zeros((4, 4, 4), dtype=np.int16)
    >>> labels[1], labels[2], labels[3] = 1, 2, 3
    >>> uptake = labels * 1.5
    >>> names = ["lh_a", "rh_a", "Left-Cerebellum-Cortex"]
    >>> with tempfile.TemporaryDirectory() as place:
    ...     for name, data in (("pet", uptake), ("labels", labels)):
    ...         image = nibabel.Nifti1Image(data, np.eye(4))
    ...         nibabel.save(image, f"{place}/{name}.nii")
    ...     table = Path(place) / "regions.tsv"
    ...     _ = table.write_text("name\themisphere\nlh_a\tL\nrh_a\tR\n")
    ...     found = extract_suvr(
    ...         f"{place}/pet.nii", f"{place}/labels.nii", table, labels=names
    ...     )
    >>> found.to_frame()["suvr"].round(3).to_dict()
    {'lh_a': 0.333, 'rh_a': 0.667}
    """
    atlas = load_atlas(atlas)
    check_choice("grid", grid, GRIDS)
    check_at_least("erosion", erosion, 0)
    check_at_least("min_voxels", min_voxels, 1)
    image = read_label_image(parcellation, atlas, labels)
    codes = image.recoded({n: place + 1 for n, place in image.places.items()})
    mask, mask_affine, said = find_reference(reference, image)
    move = read_transform(transform, pet, parcellation)
    values, affine = read_pet(pet, frames, frame_times)
    scan = Grid(values, move @ affine)
    whole = measure(scan, codes, image.affine, len(atlas), grid)
    inner = shrink(codes, erosion)
    regions = measure(scan, inner, image.affine, len(atlas), grid) if erosion else whole
    one = measure(scan, shrink(mask, erosion), mask_affine, 1, grid)
    overlap = float(whole.n_covered.sum() / max(whole.n_expected.sum(), 1))
    notes = _check_cover(pet, overlap, one.coverage[0], said, accept_low_coverage)
    level = _check_level(pet, said, float(one.means[0]))
    means = np.where(regions.n_voxels >= min_voxels, regions.means, np.nan)
    notes += _not_measured(atlas, means, min_voxels)
    ratios = _ratios(pet, atlas, means, level)
    parameters = {
        "pet": str(pet),
        "parcellation": str(parcellation),
        "atlas": atlas.name,
        "reference": said,
        "transform": _said(transform),
        "grid": grid,
        "frames_s": None if frames is None else list(frames),
        "erosion_voxels": int(erosion),
        "min_voxels": int(min_voxels),
    }
    return RegionalUptake(
        *(ratios, image.notes + notes, atlas.names, means),
        *(regions.coverage, regions.n_voxels, level, float(one.coverage[0])),
        *(overlap, parameters),
    )


def _ratios(
    pet: str | Path, atlas: Atlas, means: np.ndarray, level: float
) -> np.ndarray:
    with np.errstate(over="ignore"):
        ratios = means / level
    beyond = [atlas.names[i] for i in np.flatnonzero(np.isinf(ratios))]
    if beyond:
        raise FileFormatError(
            f"{pet}: the mean of {', '.join(beyond)} over that of the reference "
            f"({level:g}) is too large for a number. Is the image in a unit of "
            "activity?"
        )
    return ratios


def _not_measured(atlas: Atlas, means: np.ndarray, min_voxels: int) -> tuple[str, ...]:
    lost = [atlas.names[i] for i in np.flatnonzero(np.isnan(means))]
    if not lost:
        return ()
    few = f"fewer than {min_voxels} covered voxels"
    return (f"not measured, {few}: {', '.join(lost)}",)


def _said(transform: object) -> str | None:
    if transform is None or isinstance(transform, str | Path):
        return None if transform is None else str(transform)
    return "given as a matrix"


def _check_cover(
    pet: str | Path, overlap: float, share: float, reference: str, accepted: bool
) -> tuple[str, ...]:
    """Return what is to be noted of low coverage; raise unless it is accepted."""
    low = []
    if overlap < LEAST_OVERLAP:
        low.append(
            f"covers {overlap:.0%} of the regions' voxels, less than "
            f"{LEAST_OVERLAP:.0%}"
        )
    if not share >= LEAST_REFERENCE:
        low.append(
            f"covers {np.nan_to_num(share):.0%} of the reference {reference}, less "
            f"than {LEAST_REFERENCE:.0%}"
        )
    if low and not accepted:
        raise FileFormatError(
            f"{pet}: the image {' and '.join(low)}. Are both in one space, or is a "
            "transform= missing? accept_low_coverage= goes on nevertheless."
        )
    return tuple(f"accepted: the image {what}" for what in low)


def _check_level(pet: str | Path, reference: str, level: float) -> float:
    if not 0 < level < np.inf:
        raise FileFormatError(
            f"{pet}: the mean of the reference {reference} is {level}; expected more "
            "than 0, and a number."
        )
    return level
