"""Whether two images, or a tractogram and an image, lie in one space."""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from nibabel.affines import apply_affine, from_matvec, voxel_sizes
from scipy import ndimage

from brainlsap.exceptions import FileFormatError, ParameterError

# What names of files call the space of the person's own anatomical image.
OWN_SPACE = ("t1w", "t1", "anat", "orig", "native", "fsnative", "individual")
# Values of `space-` that say how coordinates are written, and not where the image lies.
COORDINATE_WORDS = ("rasmm", "lpsmm", "ras", "lps", "voxmm", "vox", "trackvis")
# How names of templates' spaces begin.
TEMPLATE_WORDS = ("mni", "icbm", "tal", "oasis", "nki", "fsaverage", "fslr")
# Labels that span less than this many mm are no whole brain.
SMALLEST_BRAIN = 80.0
# Grids of the same size whose corners are this far apart (mm) are of two spaces.
MOST_CORNER_DISTANCE = 2.0
# Share of the labelled voxels that the grid of a tractogram must hold.
LEAST_IN_GRID = 0.5
# Spacing of the coarse mask of the brain in mm, and layers by which gaps are closed.
MASK_SPACING, MASK_CLOSING = 4.0, 8


class ImageGrid(NamedTuple):
    """Size of an image in voxels, and its affine from voxel to RAS in mm."""

    shape: tuple[int, ...]
    affine: np.ndarray

    @property
    def corners(self) -> np.ndarray:
        """Return the centres of the eight corner voxels in mm."""
        ends = np.array(np.meshgrid(*((0, size - 1) for size in self.shape[:3])))
        return apply_affine(self.affine, ends.reshape(3, -1).T)


def named_space(path: str | Path) -> str:
    """Return the space that a file's name says, in lower case, "" where it says none.

    >>> named_space("sub-01_space-T1w_desc-dseg.nii.gz"), named_space("tracks.tck")
    ('t1w', '')
    >>> named_space("sub-01_dwi_space-RASMM_tractography.trx")
    ''
    """
    spaces = re.findall(r"(?:^|_)space-([A-Za-z0-9]+)", Path(path).name)
    spaces = [word.lower() for word in spaces]
    spaces = [word for word in spaces if word not in COORDINATE_WORDS]
    if not spaces:
        return ""
    return "t1w" if spaces[-1] in OWN_SPACE else spaces[-1]


def check_named_spaces(tractogram: str | Path, parcellation: str | Path) -> None:
    """Raise where names of a tractogram and a parcellation say two spaces.

    A parcellation whose name says no space lies in the person's own. A tractogram
    whose name says none lies in a space of that person, which is no template's.
    """
    of_lines, of_labels = named_space(tractogram), named_space(parcellation)
    if of_lines:
        is_one = of_lines == (of_labels or "t1w")
    else:
        is_one = not of_labels.startswith(TEMPLATE_WORDS)
    if not is_one:
        lines_words = f"space-{of_lines}" if of_lines else "no space"
        labels_words = f"space-{of_labels}" if of_labels else "none but the person's"
        raise ParameterError(
            f"its name says {lines_words}, and the name of the "
            f"parcellation {Path(parcellation).name} says {labels_words}. Give a "
            "parcellation in the space of the tractogram, or your word that both lie "
            "in one space by same_space=True (--same-space).",
            path=tractogram,
        )


def check_grids(
    tractogram: str | Path, lines: ImageGrid, labels: ImageGrid, voxels: np.ndarray
) -> None:
    """Raise where the grid in a tractogram's header lies elsewhere than the labels.

    Grids of one size must be one grid. Of other grids, such as that of the diffusion
    images, that of the tractogram must hold most labelled voxels (n, 3; in mm).
    """
    sizes = np.sort(voxel_sizes(lines.affine)), np.sort(voxel_sizes(labels.affine))
    is_same_size = sorted(lines.shape) == sorted(labels.shape[:3])
    word = "by same_space=True (--same-space) your word that both lie in one space"
    if is_same_size and np.allclose(*sizes, rtol=0.01):
        gaps = lines.corners[:, None] - labels.corners[None]
        distance = np.sqrt((gaps**2).sum(axis=2)).min(axis=1).max()
        if distance > max(MOST_CORNER_DISTANCE, sizes[1].max()):
            raise FileFormatError(
                "the image in its header has the size of the "
                f"parcellation {labels.shape[:3]}, but lies {distance:.0f} mm beside "
                "it (its affine differs). Give the parcellation of that image, or "
                f"{word}.",
                path=tractogram,
            )
    positions = apply_affine(np.linalg.inv(lines.affine), voxels)
    is_inside = (positions > -1) & (positions < np.array(lines.shape))
    share = is_inside.all(axis=1).mean()
    if share < LEAST_IN_GRID:
        raise FileFormatError(
            f"the image in its header holds {share:.0%} of the "
            f"parcellation's labelled voxels; expected {LEAST_IN_GRID:.0%} or more. "
            f"Give a parcellation in the same space, or {word}.",
            path=tractogram,
        )


def brain_mask(
    is_labelled: np.ndarray, affine: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return a coarse mask of the brain around labels, and its affine.

    None where the labels span no whole brain.
    """
    sizes = voxel_sizes(affine)
    if (sizes * is_labelled.shape).min() < SMALLEST_BRAIN:
        return None
    steps = np.maximum(np.rint(MASK_SPACING / sizes), 1).astype(int)
    coarse = is_labelled[tuple(slice(None, None, step) for step in steps)]
    margin = MASK_CLOSING + 3  # so that closing does not meet the border
    coarse = np.pad(coarse, margin)
    closed = ndimage.binary_closing(coarse, iterations=MASK_CLOSING)
    mask = ndimage.binary_dilation(ndimage.binary_fill_holes(closed))
    return mask, affine @ from_matvec(np.diag(steps), -margin * steps)
