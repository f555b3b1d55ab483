"""Read a parcellation: an image of labels, each label a region by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from brainlsap.data.atlas import Atlas, available_atlases, is_outside, load_atlas
from brainlsap.data.atlas_order import MOST_ABSENT
from brainlsap.data.label_tables import known_labels, read_label_table
from brainlsap.data.parcellations import other_parcellation
from brainlsap.data.region_messages import unknown_message
from brainlsap.data.region_names import split_name
from brainlsap.data.volume_files import read_volume, read_voxels
from brainlsap.exceptions import FileFormatError, RegionNameError

# Labels are counted in a table of this size at most; colour codes are no labels.
LARGEST_LABEL = 1_000_000
# Grey matter that the atlases leave out, but in which streamlines end. MRtrix's
# labelconvert makes nodes of it, and an endpoint is given to the nearest node.
NODES_BESIDE = frozenset(("accumbens", "cerebellumcortex"))


@dataclass(frozen=True, eq=False)
class LabelImage:
    """Labels of voxels, and what they mean.

    Parameters
    ----------
    path : Path
        Of the file.
    values : int array of shape (n_x, n_y, n_z)
        Labels; 0 is background. The part of the file's grid that holds labels.
    affine : array of shape (4, 4)
        From voxel to RAS in mm.
    names : dict of int to str
        Of every label in the image but 0.
    places : dict of int to int
        Position in the atlas of every label that is one of its regions.
    counts : dict of int to int
        Voxels of every label in the image but 0.
    notes : tuple of str
        What the labels were taken for, and what is absent.
    """

    path: Path
    values: np.ndarray
    affine: np.ndarray
    names: dict[int, str]
    places: dict[int, int]
    counts: dict[int, int]
    notes: tuple[str, ...]

    def with_cores(self, cores: frozenset[str]) -> tuple[int, ...]:
        """Return the labels whose names have one of these cores."""
        return tuple(
            n for n, name in self.names.items() if split_name(name)[1] in cores
        )

    def recoded(self, codes: Mapping[int, int]) -> np.ndarray:
        """Return the image with new numbers, 0 for labels that have none."""
        kind = np.int16 if max(codes.values(), default=0) < 2**15 else np.int32
        table = np.zeros(max(self.names, default=0) + 1, dtype=kind)
        for label, code in codes.items():
            table[label] = code
        return table[self.values]


def read_label_image(
    path: str | Path,
    atlas: Atlas,
    labels: str | Path | Mapping[int, str] | Sequence[str] | None = None,
) -> LabelImage:
    """Read a parcellation, and find the atlas' regions among its labels by name.

    Parameters
    ----------
    path : str or Path
        NIfTI or MGZ of whole numbers.
    atlas : Atlas
        Names the regions.
    labels : path, mapping of int to str, or sequence of str, optional
        As :func:`.read_label_table` takes it. By default the table `<name>.tsv`
        (BIDS) beside a `<name>.nii.gz`; else labels are FreeSurfer's numbers, or
        the nodes of MRtrix's `labelconvert`, or counted in the order of the atlas.

    Returns
    -------
    LabelImage

    Raises
    ------
    FileFormatError
        Where the file is no image of labels, or the labels are not known.
    RegionNameError
        Where a name is no region, two labels are one region, or regions are missing.
    """
    path = Path(path)
    image = read_volume(path)
    if len(image.shape) == 4 and image.shape[3] != 1:
        raise FileFormatError(
            f"{path}: a parcellation has three axes, got shape {tuple(image.shape)}."
        )
    voxels, affine = _crop(read_voxels(image, path), np.asarray(image.affine))
    values, counts = _whole_numbers(voxels, path)
    present = [int(n) for n in np.flatnonzero(counts) if n]
    names, note = _name_labels(path, present, atlas, labels)
    places = _find_places(path, names, atlas)
    absent = [n for i, n in enumerate(atlas.names) if i not in set(places.values())]
    if len(absent) > MOST_ABSENT:
        raise RegionNameError(_absent_message(path, absent, names, atlas))
    notes = [note]
    if absent:
        notes.append(f"absent from the parcellation: {', '.join(absent)}")
    sizes = {n: int(counts[n]) for n in present}
    return LabelImage(path, values, affine, names, places, sizes, tuple(notes))


def _crop(values: np.ndarray, affine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the part with labels and a layer around it: a quarter of most images."""
    values = values.reshape(values.shape[:3])
    there = values != 0
    box = []
    for axis in range(3):
        others = tuple(i for i in range(3) if i != axis)
        found = np.flatnonzero(there.any(axis=others))
        first, last = (found[0], found[-1]) if len(found) else (0, 0)
        box.append(slice(max(int(first) - 1, 0), int(last) + 2))
    shift = np.eye(4)
    shift[:3, 3] = [part.start for part in box]
    return values[tuple(box)], np.asarray(affine, dtype=np.float64) @ shift


def _whole_numbers(values: np.ndarray, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return labels as integers, and how many voxels each has."""
    is_float = values.dtype.kind == "f"
    if is_float and not np.array_equal(values, np.rint(values)):  # nor does NaN
        raise FileFormatError(
            f"{path}: expected whole numbers, one for each region; the image holds "
            "fractions or NaN. Resample parcellations by nearest neighbour only."
        )
    lowest, highest = values.min(), values.max()
    if lowest < 0 or highest > LARGEST_LABEL:
        raise FileFormatError(
            f"{path}: expected labels from 0 to {LARGEST_LABEL}, found {lowest:g} to "
            f"{highest:g}."
        )
    kind = np.int16 if highest < 2**15 else np.int32
    numbers = np.ascontiguousarray(values, dtype=kind)
    return numbers, np.bincount(numbers.ravel())


def _name_labels(
    path: Path,
    present: list[int],
    atlas: Atlas,
    labels: str | Path | Mapping[int, str] | Sequence[str] | None,
) -> tuple[dict[int, str], str]:
    """Return the name of every label in the image, and what says so."""
    beside = path.with_name(path.name.removesuffix(".gz").removesuffix(".nii") + ".tsv")
    if labels is None and beside != path and beside.is_file():
        labels = beside
    if labels is None:
        names, note = known_labels(present, atlas)
        if not names:
            raise FileFormatError(_unknown_labels(path, present, atlas))
        return names, note
    table = read_label_table(labels, atlas)
    unnamed = [n for n in present if n not in table]
    if unnamed:
        raise FileFormatError(
            f"{path}: labels= names {len(table)} labels, but not {_listed(unnamed)}, "
            "which the image holds. Add them, or set their voxels to 0."
        )
    return {n: table[n] for n in present}, "labels named by a table"


def _find_places(path: Path, names: dict[int, str], atlas: Atlas) -> dict[int, int]:
    known = {n: name for n, name in names.items() if atlas.find(name) is not None}
    others = [name for n, name in names.items() if n not in known]
    strange = [n for n in others if not is_outside(n) and not _is_freesurfers(n)]
    try:
        if strange:
            other = other_parcellation(strange, atlas)
            hint = f" {other} Choose the atlas that fits." if other else ""
            message = unknown_message(atlas.name, atlas.names, strange, len(names))
            raise RegionNameError(message + hint)
        places = atlas.match(known.values())
    except RegionNameError as error:
        raise RegionNameError(f"{path}: {error}") from error
    return dict(zip(known, places.tolist(), strict=True))


def _is_freesurfers(name: str) -> bool:
    from brainlsap.data.freesurfer_labels import BESIDE

    return name in BESIDE.values() or name.startswith("white matter ")


def _listed(numbers: Sequence[int]) -> str:
    more = f" ... ({len(numbers)} labels)" if len(numbers) > 8 else ""
    return ", ".join(map(str, numbers[:8])) + more


def _unknown_labels(path: Path, present: Sequence[int], atlas: Atlas) -> str:
    fitting = [
        name
        for name in available_atlases()
        if name != atlas.name and known_labels(present, load_atlas(name))[0]
    ]
    hint = f" They fit {' or '.join(fitting)}." if fitting else ""
    found = _listed(present) if present else "none but 0"
    return (
        f"{path}: the labels are not known for {atlas.name}: found {found}. Expected "
        "FreeSurfer's numbers (aparc+aseg), the nodes of MRtrix's labelconvert, or 1 "
        f"to {len(atlas)} in the order of the atlas.{hint} Name the labels by labels=, "
        "a table of numbers and names."
    )


def _absent_message(
    path: Path, absent: Sequence[str], names: dict[int, str], atlas: Atlas
) -> str:
    other = other_parcellation(list(names.values()), atlas)
    hint = f" {other}" if other else ""
    return (
        f"{path}: {len(absent)} of the {len(atlas)} regions of {atlas.name} have no "
        f"voxel: {', '.join(absent[:5])} ...{hint} Choose the atlas that fits, or name "
        "the labels by labels=."
    )
