"""Regional maps as CIFTI-2: both hemispheres, and voxels below the cortex, in one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from brainlsap._files import replace_when_whole
from brainlsap.report.export_record import SIDES, Export, write_sidecar

# Structures below the cortex that CIFTI-2 has a name for, by a part of the region's.
STRUCTURES = {
    "accumbens": "ACCUMBENS",
    "amygdala": "AMYGDALA",
    "caudate": "CAUDATE",
    "cerebell": "CEREBELLUM",
    "hippocampus": "HIPPOCAMPUS",
    "pallidum": "PALLIDUM",
    "putamen": "PUTAMEN",
    "thalamus": "THALAMUS",
}
_SIDE = {"L": "_LEFT", "R": "_RIGHT"}


def write_cifti(export: Export) -> list[Path]:
    """Write one file of dense scalars, one map after the other.

    The medial wall has no vertices in it, as CIFTI-2 has it. Regions below the cortex
    are there with the voxels of the parcellation, where one is given.

    Parameters
    ----------
    export : Export
        What to write.

    Returns
    -------
    list of Path
        The `.dscalar.nii` and its sidecar.
    """
    from nibabel.cifti2 import Cifti2Image
    from nibabel.cifti2.cifti2_axes import ScalarAxis

    parts = [*_surfaces(export), *_volumes(export)]
    axis = parts[0][0]
    for more, _ in parts[1:]:
        axis = axis + more
    places = np.concatenate([one for _, one in parts])
    data = np.stack([values[places] for values in export.maps.values()])
    names = [name or export.measure for name in export.maps]
    image = Cifti2Image(data.astype(np.float32), (ScalarAxis(names), axis))
    image.nifti_header.set_intent("NIFTI_INTENT_CONNECTIVITY_DENSE_SCALARS")
    image.nifti_header.set_data_dtype(np.float32)
    path = export.folder / "space-fsaverage5_regions.dscalar.nii"
    with replace_when_whole(path) as partial:
        image.to_filename(partial)
    below = "voxels of the parcellation" if export.parcellation else "left out"
    about = export.about(Space="fsaverage5", Subcortex=below)
    return [path, write_sidecar(path, about)]


def _surfaces(export: Export) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield the axis of each hemisphere, and the region of its vertices."""
    from nibabel.cifti2.cifti2_axes import BrainModelAxis

    for side, (_, word, _) in SIDES.items():
        labels = export.atlas.vertex_labels(side)
        name = f"CIFTI_STRUCTURE_CORTEX_{word.upper()}"
        yield BrainModelAxis.from_mask(labels >= 0, name=name), labels[labels >= 0]


def _volumes(export: Export) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield the axis of each structure below the cortex, and its voxels' regions."""
    from nibabel.cifti2.cifti2_axes import BrainModelAxis

    image = export.parcellation
    if image is None:
        return
    codes = image.recoded({label: place + 1 for label, place in image.places.items()})
    below = (export.atlas.regions["structure"] != "cortex").to_numpy()
    regions: dict[str, list[int]] = {}
    for place in np.flatnonzero(below):
        regions.setdefault(_structure(export, int(place)), []).append(int(place) + 1)
    for name, own in regions.items():
        mask = np.isin(codes, own)
        if mask.any():
            axis = BrainModelAxis.from_mask(mask, name=name, affine=image.affine)
            yield axis, codes[tuple(axis.voxel.T)].astype(int) - 1


def _structure(export: Export, place: int) -> str:
    """Return what CIFTI-2 calls a region below the cortex, OTHER without a name."""
    name = export.atlas.names[place].lower()
    side = _SIDE.get(str(export.atlas.regions["hemisphere"].iloc[place]), "")
    if "stem" in name:
        return "CIFTI_STRUCTURE_BRAIN_STEM"
    found = next((one for part, one in STRUCTURES.items() if part in name), None)
    return f"CIFTI_STRUCTURE_{found}{side}" if found else "CIFTI_STRUCTURE_OTHER"
