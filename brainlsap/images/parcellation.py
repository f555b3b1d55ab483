"""Parcellations: images of labels, and which label is which region, by name."""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from operator import index
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas, available_atlases, load_atlas
from brainlsap.atlas.region_names import as_text, is_outside, split_name
from brainlsap.data.row_order import row_orders
from brainlsap.data.tables import read_lines, sniff_delimiter, split_cells
from brainlsap.exceptions import FileFormatError, ParameterError, RegionNameError
from brainlsap.images.volumes import read_volume, read_voxels

Labels = str | Path | Mapping[int, str]
# Labels are counted in a table of this size at most; colour codes are no labels.
LARGEST_LABEL = 1_000_000
# Regions that a tool leaves out where a brain lacks them; more is another atlas.
MOST_ABSENT = 8
# Grey matter that the atlases leave out, but in which streamlines end. MRtrix's
# labelconvert makes nodes of it, and an endpoint is given to the nearest node.
NODES_BESIDE = ("accumbens", "cerebellumcortex")
# Labels that are regions, as a share of the regions, to be taken for FreeSurfer's.
_ENOUGH = 0.5
# White matter below each region of the cortex, as wmparc numbers it.
_WHITE = ((3000, 3036), (4000, 4036), (13100, 13176), (14100, 14176))


@lru_cache(maxsize=1)
def freesurfer_labels() -> dict[int, str]:
    """Return the labels of FreeSurferColorLUT.txt beside regions of the cortex.

    Those that aseg, aparc+aseg, wmparc and gtmseg write.
    """
    table = pd.read_csv(Path(__file__).with_name("freesurfer_labels.tsv"), sep="\t")
    white = {
        n: f"white matter {n}" for first, last in _WHITE for n in range(first, last)
    }
    return {**dict(zip(table["number"], table["name"], strict=True)), **white}


class LabelImage(NamedTuple):
    """Labels of voxels, and what they mean."""

    path: Path
    values: np.ndarray  # (n_x, n_y, n_z) the part that holds labels; 0: background
    affine: np.ndarray  # from voxel to RAS in mm
    names: dict[int, str]  # of every label in the image but 0
    places: dict[int, int]  # position in the atlas of every label that is a region
    counts: dict[int, int]  # voxels of every label
    notes: tuple[str, ...]

    def with_cores(self, cores: Collection[str]) -> tuple[int, ...]:
        """Return the labels whose names have one of these cores."""
        return tuple(
            n for n, name in self.names.items() if split_name(name)[1] in cores
        )

    def recoded(self, codes: Mapping[int, int]) -> np.ndarray:
        """Return the image with new numbers, 0 for labels that have none."""
        kind = np.int16 if max(codes.values(), default=0) < 2**15 else np.int32
        table = np.zeros(max(self.names) + 1, dtype=kind)
        for label, code in codes.items():
            table[label] = code
        return table[self.values]


def read_label_image(
    path: str | Path, atlas: Atlas, labels: Labels | None = None
) -> LabelImage:
    """Read a parcellation, and find the atlas' regions among its labels by name.

    Without `labels` a `<name>.tsv` (BIDS) beside `<name>.nii.gz` counts; else labels
    are FreeSurfer's numbers, or the nodes of MRtrix's `labelconvert`, or counted in the
    order of the atlas. Raises FileFormatError where the file is no image of labels or
    these are not known, RegionNameError where a name is no region, two labels are one
    region, or regions are missing.
    """
    path = Path(path)
    image, affine = read_volume(path)
    voxels = read_voxels(image, path)
    # the part with labels and a layer around it: a quarter of most images
    there, box = voxels != 0, []
    for others in ((1, 2), (0, 2), (0, 1)):
        found = np.flatnonzero(there.any(axis=others))
        if not len(found):
            raise FileFormatError(f"{path}: the image holds no label but 0.")
        box.append(slice(max(int(found[0]) - 1, 0), int(found[-1]) + 2))
    voxels = voxels[tuple(box)]
    lowest, highest = voxels.min(), voxels.max()
    if not (lowest >= 0 and highest <= LARGEST_LABEL):
        raise FileFormatError(
            f"{path}: expected labels from 0 to {LARGEST_LABEL}, found {lowest:g} to "
            f"{highest:g}."
        )
    if voxels.dtype.kind == "f" and not np.array_equal(voxels, np.rint(voxels)):
        raise FileFormatError(
            f"{path}: expected whole numbers, one for each region; the image holds "
            "fractions. Resample parcellations by nearest neighbour only."
        )
    shift = np.eye(4)
    shift[:3, 3] = [part.start for part in box]
    kind = np.int16 if highest < 2**15 else np.int32
    values = np.ascontiguousarray(voxels, dtype=kind)
    counts = np.bincount(values.ravel())
    present = [int(n) for n in np.flatnonzero(counts) if n]
    names, note = _name_labels(path, present, atlas, labels)
    places = _find_places(path, names, atlas)
    absent = [n for i, n in enumerate(atlas.names) if i not in set(places.values())]
    if len(absent) > MOST_ABSENT:
        raise RegionNameError(
            f"{path}: {len(absent)} of the {len(atlas)} regions of {atlas.name} have "
            f"no voxel: {', '.join(absent[:5])} ... Choose the atlas that fits, or "
            "name the labels by labels=."
        )
    gone = (f"absent from the parcellation: {', '.join(absent)}",) if absent else ()
    sizes = {n: int(counts[n]) for n in present}
    notes = (note, *gone)
    return LabelImage(path, values, affine @ shift, names, places, sizes, notes)


def _name_labels(
    path: Path, present: list[int], atlas: Atlas, labels: Labels | None
) -> tuple[dict[int, str], str]:
    """Return the name of every label in the image, and what says so."""
    beside = path.with_name(path.name.removesuffix(".gz").removesuffix(".nii") + ".tsv")
    if labels is None and beside.is_file():
        labels = beside
    if labels is not None:
        table = read_label_table(labels, atlas)
        unnamed = [n for n in present if n not in table]
        if unnamed:
            raise FileFormatError(
                f"{path}: labels= names {len(table)} labels, but not "
                f"{_listed(unnamed)}, which the image holds. Add them, or set their "
                "voxels to 0."
            )
        return {n: table[n] for n in present}, "labels named by a table"
    names, note = known_labels(present, atlas)
    if names:
        return names, note
    others = [load_atlas(name) for name in available_atlases() if name != atlas.name]
    fitting = [other.name for other in others if known_labels(present, other)[0]]
    hint = f" They fit {' or '.join(fitting)}." if fitting else ""
    raise FileFormatError(
        f"{path}: the labels are not known for {atlas.name}: found {_listed(present)}. "
        "Expected FreeSurfer's numbers (aparc+aseg), the nodes of MRtrix's "
        f"labelconvert, or 1 to {len(atlas)} in the order of the atlas.{hint} Name "
        "them by labels=, a table of numbers and names."
    )


def _listed(numbers: Sequence[int]) -> str:
    more = f" ... ({len(numbers)} labels)" if len(numbers) > 8 else ""
    return ", ".join(map(str, numbers[:8])) + more


def _find_places(path: Path, names: dict[int, str], atlas: Atlas) -> dict[int, int]:
    """Return the region of every label that is one; raise for unknown names."""
    beside = set(freesurfer_labels().values())
    # what is neither a region nor known to be outside is refused by match
    meant = {
        n: name
        for n, name in names.items()
        if atlas.find(name) is not None or not (is_outside(name) or name in beside)
    }
    try:
        return dict(zip(meant, atlas.match(meant.values()).tolist(), strict=True))
    except RegionNameError as error:
        raise RegionNameError(f"{path}: {error}") from error


def known_labels(present: Sequence[int], atlas: Atlas) -> tuple[dict[int, str], str]:
    """Return names of labels known without a table (else none), and what says so."""
    ids = atlas.regions["freesurfer_id"].tolist()
    own = {n: name for n, name in zip(ids, atlas.names, strict=True) if n > 0}
    known = freesurfer_labels() | own
    n_regions = sum(n in own for n in present)
    if known.keys() >= set(present) and n_regions >= _ENOUGH * len(atlas):
        return {n: known[n] for n in present}, "labels read as FreeSurfer's numbers"
    for tool, ordered, note, _ in row_orders(atlas):
        names = dict(enumerate(ordered, start=1))
        if tool in ("atlas", "mrtrix") and list(present) == list(names):
            return names, f"labels {note}"
    return {}, ""


def read_label_table(labels: Labels, atlas: Atlas) -> dict[int, str]:
    """Return the name of every label.

    `labels` is a file of FreeSurfer's or MRtrix's lookup tables (number, one or more
    names, colour; the name that the atlas knows counts) or with the columns `index`
    and `name` (BIDS); or names by number.
    """
    if isinstance(labels, str | Path):
        return _read_lookup_file(Path(labels), atlas)
    if not isinstance(labels, Mapping):  # of a list, the first may be of label 0
        raise ParameterError(
            "labels must be a table or names by number, such as "
            f"dict(enumerate(names, start=1)); got {type(labels).__name__}."
        )
    return {index(number): as_text(name) for number, name in labels.items()}


def _read_lookup_file(path: Path, atlas: Atlas) -> dict[int, str]:
    rows = [split_cells(line, sniff_delimiter(line)) for line in read_lines(path)]
    heads = [cell.lower() for cell in rows[0]] if rows else []
    if {"index", "name"} <= set(heads):
        places = [heads.index("index"), heads.index("name")]
        rows = [[row[i] for i in places] for row in rows[1:] if len(row) > max(places)]
    found: dict[int, str] = {}
    for number, *cells in rows:
        names = [cell for cell in cells if cell and not cell.isdecimal()]
        if not number.isdecimal() or not names:
            raise FileFormatError(
                f"{path}: expected a label's number and its name in every line, or the "
                f"columns index and name; got {' '.join([number, *cells])!r:.60}."
            )
        known = [one for one in names if atlas.find(one) is not None]
        best = (known or names)[-1]
        first = found.setdefault(int(number), best)
        if first != best and {atlas.find(first), atlas.find(best)} != {None}:
            raise FileFormatError(
                f"{path}: the label {number} is {first} and {best}; expected one name "
                "for each number. Keep the one that the image means."
            )
    return found
