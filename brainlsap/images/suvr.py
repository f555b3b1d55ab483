"""From a PET image and a parcellation to one value for every region."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from nibabel.affines import apply_affine, from_matvec
from scipy import ndimage
from threadpoolctl import threadpool_limits

from brainlsap.arrays import check_at_least, check_choice
from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data.pet_tables import REFERENCES, frame_weights
from brainlsap.data.tables import reading
from brainlsap.exceptions import FileFormatError, ParameterError
from brainlsap.images.parcellation import LabelImage, Labels, read_label_image
from brainlsap.images.volumes import (
    interpolate,
    look_up,
    nearest,
    read_transform,
    read_volume,
    read_voxels,
)

GRIDS = ("pet", "parcellation")
# Less of the regions than this in the image is a wrong affine or a cut image.
LEAST_OVERLAP, LEAST_REFERENCE = 0.9, 0.8
# What names of files call the space of the person's own anatomical image.
_OWN_SPACE = ("t1w", "t1", "anat", "orig", "native", "fsnative", "individual")
# Alignment: grid and margin in mm, steps of the search, and what is too far.
_GRID, _MARGIN, _STEPS, MOST_SHIFT = 4.0, 20.0, (8.0, 4.0, 2.0), 8.0
# A shift counts where labels explain so much more of the image there.
_CLEARLY = 1.15
# Labels that span less than this many mm are no whole brain.
_SMALLEST_BRAIN = 80.0


@dataclass(frozen=True, eq=False)
class RegionalUptake:
    """Uptake of every region, and how well the image covers it.

    Attributes
    ----------
    values
        (n_rois,) mean of the region over the mean of the reference; NaN: not measured
    names
        Of the regions.
    notes
        What the labels were taken for, and what is not measured.
    means
        (n_rois,) in the unit of the image.
    coverage
        (n_rois,) share of the region's voxels that the image covers.
    n_voxels
        (n_rois,) covered voxels that were averaged.
    reference_mean
        Of the reference region, in the unit of the image.
    reference_coverage
        Share of the reference's voxels that the image covers.
    overlap
        Share of the voxels of all regions that the image covers.
    shift_mm
        How far the image would have to be moved to fit the labels best; NaN: no brain
    parameters
        How it was made.
    """

    values: np.ndarray
    names: tuple[str, ...]
    notes: tuple[str, ...]
    means: np.ndarray
    coverage: np.ndarray
    n_voxels: np.ndarray
    reference_mean: float
    reference_coverage: float
    overlap: float
    shift_mm: float
    parameters: dict[str, Any]

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each region: suvr, mean, n_voxels and coverage."""
        columns = {"suvr": self.values, "mean": self.means}
        columns |= {"n_voxels": self.n_voxels, "coverage": self.coverage}
        return pd.DataFrame(columns, index=pd.Index(self.names, name="region"))


# sums in one order, so that the last digit does not follow the number of threads
@threadpool_limits.wrap(limits=1)
def extract_suvr(
    pet: str | Path,
    parcellation: str | Path,
    atlas: str | Path | Atlas = "destrieux160",
    reference: str | Path = "cerebellar cortex",
    *,
    labels: Labels | None = None,
    transform: str | Path | np.ndarray | None = None,
    same_space: bool = False,
    grid: str = "pet",
    frames: tuple[float, float] | None = None,
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
    grid : {"pet", "parcellation"}
        Where voxels are averaged: labels go to the PET by nearest neighbour, or the
        PET to the labels by trilinear interpolation.
    frames : (float, float), optional
        Start and end in seconds of the frames to average, of images with time, whose
        BIDS `.json` lies beside.
    erosion : int
        Layers of voxels of the parcellation taken from the surface of every region,
        and of the reference.
    min_voxels : int
        A region with fewer covered voxels is not measured.
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
        Where an argument cannot be used, the frames are not said, or nothing says
        that the images share their space.
    """
    atlas = load_atlas(atlas)
    check_choice("grid", grid, GRIDS)
    check_at_least("erosion", erosion, 0)
    check_at_least("min_voxels", min_voxels, 1)
    if transform is None and not same_space:
        check_same_space(pet, parcellation)
    image = read_label_image(parcellation, atlas, labels)
    codes = image.recoded({n: place + 1 for n, place in image.places.items()})
    mask, mask_affine, said = _find_reference(reference, image)
    move = read_transform(transform, pet, parcellation)
    values, affine = read_pet(pet, frames)
    scan = Grid(values, move @ affine)
    whole = _measure(scan, Grid(codes, image.affine), len(atlas), grid)
    inner = Grid(_shrink(codes, erosion), image.affine)
    regions = _measure(scan, inner, len(atlas), grid) if erosion else whole
    one = _measure(scan, Grid(_shrink(mask, erosion), mask_affine), 1, grid)
    overlap = float(whole.n_covered.sum() / max(whole.n_expected.sum(), 1))
    share, level = float(one.coverage[0]), float(one.means[0])
    shift = measure_shift(scan, image, atlas)
    checks = (
        (overlap, LEAST_OVERLAP, "the regions' voxels"),
        (np.nan_to_num(share), LEAST_REFERENCE, f"the reference {said}"),
    )
    faults = [
        f"covers {found:.0%} of {what}, less than {least:.0%}"
        for found, least, what in checks
        if found < least
    ]
    if shift >= MOST_SHIFT:
        faults.append(f"fits the labels best when moved by {shift:.0f} mm")
    if faults and not accept_low_coverage:
        raise FileFormatError(
            f"{pet}: the image {' and '.join(faults)}. Are both in one space, or is a "
            "transform= missing? accept_low_coverage= goes on nevertheless."
        )
    if not 0 < level < np.inf:
        raise FileFormatError(
            f"{pet}: the mean of the reference {said} is {level}; expected more than 0."
        )
    means = np.where(regions.n_voxels >= min_voxels, regions.means, np.nan)
    notes = [*image.notes, *(f"accepted: the image {fault}" for fault in faults)]
    lost = [atlas.names[i] for i in np.flatnonzero(np.isnan(means))]
    if lost:
        few = f"fewer than {min_voxels} covered voxels"
        notes.append(f"not measured, {few}: {', '.join(lost)}")
    parameters = {
        "pet": str(pet),
        "parcellation": str(parcellation),
        "atlas": atlas.name,
        "reference": said,
        "transform": None if transform is None else str(transform),
        "same_space": bool(same_space),
        "grid": grid,
        "frames_s": None if frames is None else list(frames),
        "erosion_voxels": int(erosion),
        "min_voxels": int(min_voxels),
    }
    return RegionalUptake(
        values=means / level,
        names=atlas.names,
        notes=tuple(notes),
        means=means,
        coverage=regions.coverage,
        n_voxels=regions.n_voxels,
        reference_mean=level,
        reference_coverage=share,
        overlap=overlap,
        shift_mm=shift,
        parameters=parameters,
    )


def check_same_space(pet: str | Path, parcellation: str | Path) -> None:
    """Raise unless the names of PET and parcellation say one space."""
    spaces = []
    for path, unsaid in ((pet, "?"), (parcellation, "t1w")):
        found = re.search(r"(?:^|_)space-([A-Za-z0-9]+)", Path(path).name)
        space = found[1].lower() if found else unsaid
        spaces.append("t1w" if space in _OWN_SPACE else space)
    if spaces[0] != spaces[1]:
        raise ParameterError(
            f"{pet}: nothing says that it is in the space of {Path(parcellation).name}."
            " Give an image that was resampled to it and says so in its name "
            "(*_space-T1w_*_pet.nii.gz), a registration by transform=, or your word "
            "that they share their space by same_space=True (--same-space)."
        )


def read_pet(
    path: str | Path, frames: tuple[float, float] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return a PET image (mean over the window where it has frames) and its affine.

    NaN where a voxel is not covered: NaN, infinite or 0 in the file. `frames` is the
    window in seconds; frames count by their duration, of the `.json` of the same name
    (BIDS: `FrameTimesStart`, `FrameDuration`).
    """
    path = Path(path)
    image, affine = read_volume(path)
    n_frames = image.shape[3] if len(image.shape) == 4 else 1
    if n_frames == 1:
        values = read_voxels(image, path).astype(np.float64)
    elif frames is None:
        raise ParameterError(
            f"{path} has {n_frames} frames; say which to average by frames=(start, "
            "end) in seconds."
        )
    else:
        beside = path.with_name(path.name.removesuffix(".gz").rpartition(".")[0])
        beside = Path(f"{beside}.json")
        with reading(beside, "times of frames (FrameTimesStart, FrameDuration)"):
            said = json.loads(beside.read_text(encoding="utf-8"))
            times = [said["FrameTimesStart"], said["FrameDuration"]]
            start, duration = np.array(times, dtype=np.float64)
        if len(start) != n_frames:
            raise FileFormatError(f"{path}: {n_frames} frames, but {len(start)} times.")
        weights = frame_weights(path, start, start + duration, frames)
        values = np.zeros(image.shape[:3])
        for frame in np.flatnonzero(weights):
            values += weights[frame] * read_voxels(image, path, int(frame))
    values[(values == 0) | ~np.isfinite(values)] = np.nan
    return values, affine


def _find_reference(
    reference: str | Path, image: LabelImage
) -> tuple[np.ndarray, np.ndarray, str]:
    """Return the mask of the reference (1 inside, else 0), its affine, what it is."""
    word = str(reference).lower().replace("_", " ").replace("-", " ")
    if word in REFERENCES:
        found = [image.with_cores((part,)) for part in REFERENCES[word]]
        if not all(found):
            raise FileFormatError(
                f"{image.path}: the parcellation has no label for every part of the "
                f"reference {word}. Give the reference as a mask, an image in the same "
                "space, by reference=."
            )
        codes = {label: 1 for labels in found for label in labels}
        return image.recoded(codes), image.affine, word
    path = Path(reference)
    if not path.is_file():
        raise ParameterError(
            f"reference must be one of {', '.join(map(repr, REFERENCES))}, or the path "
            f"of a mask; got {str(reference)!r}, and there is no such file."
        )
    mask, affine = read_volume(path)
    inside = read_voxels(mask, path) > 0
    if not inside.any():
        raise FileFormatError(f"{path}: expected a mask with voxels above 0.")
    return inside.astype(np.int32), affine, str(path)


class Grid(NamedTuple):
    """Values of voxels, and from voxel to mm in the space of the labels."""

    values: np.ndarray
    affine: np.ndarray


class RegionMeans(NamedTuple):
    """Means of regions, voxels averaged, voxels covered and voxels of the labels."""

    means: np.ndarray
    n_voxels: np.ndarray
    n_covered: np.ndarray
    n_expected: np.ndarray

    @property
    def coverage(self) -> np.ndarray:
        """Share of the labels' voxels that the image covers; NaN for no voxels."""
        nothing = np.full(len(self.means), np.nan)
        some = self.n_expected > 0
        return np.divide(self.n_covered, self.n_expected, nothing, where=some)


def _measure(scan: Grid, labels: Grid, n: int, grid: str) -> RegionMeans:
    """Average a scan (NaN where not covered) over the regions 1 to n."""
    there = np.nonzero(labels.values)
    regions = labels.values[there]
    steps = np.linalg.inv(scan.affine) @ labels.affine
    places = [row[:3] @ np.array(there) + row[3] for row in steps[:3]]
    is_covered = nearest(~np.isnan(scan.values), places)
    n_expected = np.bincount(regions, minlength=n + 1)[1:]
    n_covered = np.bincount(regions[is_covered], minlength=n + 1)[1:]
    if grid == "pet":
        values = scan.values
        regions = look_up(labels.values, labels.affine, values.shape, scan.affine)
    else:
        values = interpolate(scan.values, places)
    used = (regions > 0) & ~np.isnan(values)
    n_voxels = np.bincount(regions[used], minlength=n + 1)[1:]
    sums = np.bincount(regions[used], values[used], minlength=n + 1)[1:]
    means = np.divide(sums, n_voxels, np.full(n, np.nan), where=n_voxels > 0)
    return RegionMeans(means, n_voxels, n_covered, n_expected)


def _shrink(codes: np.ndarray, layers: int) -> np.ndarray:
    """Take voxels off every region that have a neighbour of another, `layers` times."""
    cross = ndimage.generate_binary_structure(3, 1)
    for _ in range(layers):
        lowest, highest = (
            change(codes, footprint=cross, mode="constant")
            for change in (ndimage.minimum_filter, ndimage.maximum_filter)
        )
        codes = np.where(lowest == highest, codes, 0)
    return codes


def measure_shift(scan: Grid, image: LabelImage, atlas: Atlas) -> float:
    """Return the length of the translation of the image that fits the labels best.

    In mm; NaN where labels span no whole brain. The fit is the correlation ratio: the
    share of the image's variance that the class of the label explains, over a coarse
    grid in and around the brain.
    """
    last = np.array(image.values.shape) - 1
    if (np.abs(image.affine[:3, :3]) @ (last + 1)).min() < _SMALLEST_BRAIN:
        return np.nan
    corners = apply_affine(image.affine, np.array(list(np.ndindex(2, 2, 2))) * last)
    lowest = corners.min(axis=0) - _MARGIN
    shape = np.ceil((corners.max(axis=0) + _MARGIN - lowest) / _GRID).astype(int)
    coarse = from_matvec(_GRID * np.eye(3), lowest)
    kinds = dict.fromkeys(image.names, 5)
    kinds |= {n: 3 - int(atlas.cortex[place]) for n, place in image.places.items()}
    kinds |= dict.fromkeys(image.with_cores(REFERENCES["cerebellar cortex"]), 4)
    kind = look_up(image.recoded(kinds), image.affine, tuple(shape), coarse)
    # nodes alone leave white matter and fluid without a label: inside, but of none
    closed = ndimage.binary_closing(np.pad(kind > 0, 4), iterations=3)
    inside = ndimage.binary_fill_holes(closed)[4:-4, 4:-4, 4:-4]
    kind = np.where((kind == 0) & inside, 1, kind)
    near = ndimage.binary_dilation(inside, iterations=int(_MARGIN / _GRID))
    places, classes = np.argwhere(near) * _GRID + lowest, kind[near]
    sizes = np.bincount(classes, minlength=6)
    values, back = np.nan_to_num(scan.values), np.linalg.inv(scan.affine)

    def explained(move: np.ndarray) -> float:
        found = nearest(values, list(apply_affine(back, places + move).T))
        total = ((found - found.mean()) ** 2).sum()
        sums = np.bincount(classes, found, minlength=6)
        between = (sums**2 / np.maximum(sizes, 1)).sum() - found.sum() ** 2 / len(found)
        return float(between / total) if total > 0 else 0.0

    here, unmoved = np.zeros(3), explained(np.zeros(3))
    best = unmoved
    for step in _STEPS:
        better = True
        while better:
            better = False
            for move in np.vstack([np.eye(3), -np.eye(3)]) * step:
                fit = explained(here + move)
                if fit > best and np.linalg.norm(here + move) <= 40:
                    best, here, better = fit, here + move, True
    return float(np.linalg.norm(here)) if best > _CLEARLY * unmoved else 0.0
