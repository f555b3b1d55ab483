"""Parcellations: images of labels, and which label is which region, by name."""

from collections.abc import Collection, Mapping, Sequence
from operator import index
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from nibabel.affines import from_matvec
from scipy.ndimage import find_objects

from brainlsap.atlas import Atlas
from brainlsap.atlas.region_names import as_text, split_name
from brainlsap.data.connectomes import MOST_ABSENT
from brainlsap.data.row_order import fitting_orders, read_labels, row_orders
from brainlsap.data.tables import listed
from brainlsap.exceptions import FileFormatError, ParameterError, RegionNameError
from brainlsap.images.volumes import read_volume

Labels = str | Path | Mapping[int, str]
# Labels are counted in a table of this size at most; colour codes are no labels.
LARGEST_LABEL = 1_000_000
# Grey matter that the atlases leave out, but in which streamlines end. MRtrix's
# labelconvert makes nodes of it, and an endpoint is given to the nearest node.
NODES_BESIDE = ("accumbens", "cerebellumcortex")
# Labels that are regions, as a share of the regions, to be taken for FreeSurfer's.
_ENOUGH = 0.5
# Smallest share of the variance of labels' places that an order must explain, and its
# lead over another, to be told from it.
_EXPLAINED, _LEAD = 0.8, 0.2
# Fewer regions than this lie on an affine map by chance.
_FEWEST_PLACES = 20
# White matter below each region of the cortex, as wmparc numbers it.
_WHITE = range(3000, 3036), range(4000, 4036), range(13100, 13176), range(14100, 14176)


def freesurfer_labels() -> dict[int, str]:
    """Return the labels of FreeSurferColorLUT.txt beside regions of the cortex.

    Those that aseg, aparc+aseg, wmparc and gtmseg write.
    """
    table = pd.read_csv(Path(__file__).with_name("freesurfer_labels.tsv"), sep="\t")
    white = {n: f"white matter {n}" for part in _WHITE for n in part}
    return {**dict(zip(table["number"], table["name"], strict=True)), **white}


class LabelImage(NamedTuple):
    """Labels of voxels, and what they mean."""

    path: Path
    values: np.ndarray  # (n_x, n_y, n_z) the part that holds labels; 0: background
    affine: np.ndarray  # from voxel to RAS in mm
    names: dict[int, str]  # of every label in the image but 0
    positions: dict[int, int]  # in the atlas, of every label that is a region
    counts: np.ndarray  # voxels of every number from 0 to the highest label
    notes: tuple[str, ...]
    are_named_by_order: bool = False
    """Whether labels only count, and nothing but an order of regions names them."""

    def with_cores(self, cores: Collection[str]) -> tuple[int, ...]:
        """Return the labels whose names have one of these cores."""
        return tuple(n for n, x in self.names.items() if split_name(x)[1] in cores)

    def recoded(self, codes: Mapping[int, int]) -> np.ndarray:
        """Return the image with new numbers, 0 for labels that have none."""
        table = np.zeros(len(self.counts), dtype=np.int32)
        table[list(codes)] = list(codes.values())
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
    voxels, affine, _ = read_volume(path)
    with np.errstate(invalid="ignore"):
        values = voxels.astype(np.int32)
    lowest, highest = voxels.min(), voxels.max()
    is_whole = lowest >= 0 and np.array_equal(values, voxels)
    if not (is_whole and 0 < highest <= LARGEST_LABEL):
        raise FileFormatError(
            f"expected labels from 0 to {LARGEST_LABEL}, 0 for none, found "
            f"{lowest:g} to {highest:g}. Whole numbers became fractions? Resample by "
            "nearest neighbour.",
            path=path,
        )
    # the part with labels and a layer around it: a quarter of most images
    (tight,) = find_objects((values > 0).astype(np.int8))
    box = tuple(slice(max(part.start - 1, 0), part.stop + 1) for part in tight)
    values = np.ascontiguousarray(values[box])
    affine = affine @ from_matvec(np.eye(3), [part.start for part in box])
    counts = np.bincount(values.ravel())
    names, note, are_named_by_order = _name_labels(
        path, np.flatnonzero(counts[1:]) + 1, atlas, labels
    )
    # what FreeSurfer is known to have beside the regions is left out, too
    beside = set(freesurfer_labels().values())
    out = {n for n, x in names.items() if x in beside and atlas.find(x) is None}
    meant = [n for n in names if n not in out]
    try:
        rows, _ = atlas.rows([names[n] for n in meant])
    except RegionNameError as error:
        raise RegionNameError(
            error.message, path=path, kind=error.kind, values=error.values
        ) from error
    absent = [atlas.names[i] for i in np.flatnonzero(rows < 0)]
    if len(absent) > MOST_ABSENT:
        raise RegionNameError(
            f"{len(absent)} of the {len(atlas)} regions of {atlas.name} have "
            f"no voxel: {listed(absent, 5)}. Choose another atlas, or give labels=.",
            path=path,
        )
    positions = {meant[row]: i for i, row in enumerate(rows) if row >= 0}
    # also in a person's own space, where no region need lie on its side of x = 0
    side_of = np.zeros(len(counts), dtype="<U1")
    side_of[[*positions]] = atlas.regions["hemisphere"].iloc[[*positions.values()]]
    place = np.argwhere(values > 0)
    x, side = place @ affine[0, :3], side_of[values[tuple(place.T)]]
    left, right = (x[side == one] for one in "LR")
    if left.size and right.size and left.mean() - right.mean() > x.std():
        raise FileFormatError(
            "the left hemisphere's regions lie to the right of those of the "
            "right one (image flipped, or its affine lost?). Write it anew from its "
            "source, with the affine that belongs to it.",
            path=path,
        )
    if are_named_by_order:
        ordered = tuple(names[number] for number in sorted(names))
        _check_places(path, _centre_labels(values, affine), ordered, atlas)
    gone = (f"absent from the parcellation: {', '.join(absent)}",) if absent else ()
    return LabelImage(
        path,
        values,
        affine,
        names,
        positions,
        counts,
        (note, *gone),
        are_named_by_order,
    )


def _centre_labels(values: np.ndarray, affine: np.ndarray) -> np.ndarray:
    """Return the centre of mass of labels 1, 2 ... in mm, NaN where no voxel is."""
    place = np.argwhere(values > 0)
    label = values[tuple(place.T)]
    n_voxels = np.bincount(label)[1:, None]
    sums = [np.bincount(label, weights=place[:, axis])[1:] for axis in range(3)]
    with np.errstate(invalid="ignore"):
        centres = np.column_stack(sums) / n_voxels
    return centres @ affine[:3, :3].T + affine[:3, 3]


def _check_places(
    path: Path, centres: np.ndarray, names: Sequence[str], atlas: Atlas
) -> None:
    """Raise where labels that only count lie where another order has its regions."""
    explained = _explain_places(centres, names, atlas)
    for order in fitting_orders(atlas, len(centres)):
        other = _explain_places(centres, order.names, atlas)
        if other >= _EXPLAINED and other - explained >= _LEAD:
            raise FileFormatError(
                f"labels 1 to {len(centres)} do not lie where their regions "
                f"would be ({explained:.0%} of the variance of places explained), but "
                f"{order.note.removeprefix('read ')} ({other:.0%}). Name the labels by "
                "labels=, or by a table of index and name beside the image.",
                path=path,
            )


def _explain_places(centres: np.ndarray, names: Sequence[str], atlas: Atlas) -> float:
    """Return the share of variance of centres that an affine map explains."""
    if not {*"xyz"} <= {*atlas.regions}:
        return 0.0
    regions = [atlas.find(name) for name in names]
    is_region = np.array([region is not None for region in regions])
    known = np.array([-1 if region is None else region for region in regions])
    expected = atlas.coordinates[known]
    is_used = is_region & np.isfinite(expected).all(axis=1)
    is_used &= np.isfinite(centres).all(axis=1)
    if is_used.sum() < _FEWEST_PLACES:
        return 0.0
    design = np.column_stack([expected[is_used], np.ones(is_used.sum())])
    places = centres[is_used]
    residual = places - design @ np.linalg.lstsq(design, places, rcond=None)[0]
    spread = np.square(places - places.mean(axis=0)).sum()
    return float(1 - np.square(residual).sum() / spread) if spread > 0 else 0.0


def _name_labels(
    path: Path, present: np.ndarray, atlas: Atlas, labels: Labels | None
) -> tuple[dict[int, str], str, bool]:
    """Return the name of every label in the image, and what says so.

    And whether nothing but an order of regions does.
    """
    beside = path.with_name(path.name.removesuffix(".gz").removesuffix(".nii") + ".tsv")
    if labels is None and beside.is_file():
        labels = beside
    numbers = present.tolist()
    if labels is not None:
        table = read_label_table(labels, atlas, numbers)
        if unnamed := [str(n) for n in numbers if n not in table]:
            raise FileFormatError(
                f"labels= names {len(table)} labels, but not "
                f"{listed(unnamed, 8)}, which it holds. Add them, or make them 0.",
                path=path,
            )
        return {n: table[n] for n in numbers}, "labels named by a table", False
    if known := known_labels(numbers, atlas):
        return known
    expected = {*atlas.regions["freesurfer_id"], *freesurfer_labels()}
    beyond = [n for n in numbers if n not in expected] or numbers
    raise FileFormatError(
        f"the labels are not known for {atlas.name}: found "
        f"{listed(map(str, beyond), 8)}. Expected the atlas' own numbers, FreeSurfer's "
        "(aparc+aseg), the nodes of MRtrix's labelconvert, or (an atlas on disk) 1 to "
        f"{len(atlas)} in its order. Choose the atlas of the image, or name them in a "
        f"table of index and name beside it ({beside.name}), or by labels=.",
        path=path,
    )


def known_labels(
    present: Sequence[int], atlas: Atlas
) -> tuple[dict[int, str], str, bool] | None:
    """Return names of labels known without a table, and what says so.

    And whether nothing but an order of regions does.
    """
    ids = zip(atlas.regions["freesurfer_id"].tolist(), atlas.names, strict=True)
    own = {n: name for n, name in ids if n > 0}
    known = freesurfer_labels() | own
    n_regions = sum(n in own for n in present)
    if known.keys() >= set(present) and n_regions >= _ENOUGH * len(atlas):
        note = "labels read as FreeSurfer's numbers"
        return {n: known[n] for n in present}, note, False
    # an atlas of an image has the numbers of that, and no others
    has_image = atlas.folder and (atlas.folder / "parcellation.nii.gz").is_file()
    for tool, ordered, note, _ in () if has_image else row_orders(atlas):
        names = dict(enumerate(ordered, start=1))
        if tool in ("atlas", "mrtrix") and list(present) == list(names):
            return names, f"labels {note}", True
    return None


def read_label_table(
    labels: Labels, atlas: Atlas, present: Sequence[int] = ()
) -> dict[int, str]:
    """Return the name of every label.

    `labels` is a file as :func:`.read_labels` reads it: a lookup table of FreeSurfer or
    MRtrix, or with the columns `index` and `name` (BIDS); or names by number.
    """
    if isinstance(labels, Mapping):
        return {index(number): as_text(name) for number, name in labels.items()}
    if not isinstance(labels, str | Path):  # of a list, the first may be of label 0
        raise ParameterError(
            "labels must be a table or names by number, such as "
            f"dict(enumerate(names, start=1)); got {type(labels).__name__}."
        )
    rows = read_labels(labels, present)
    rows = rows[rows["index"] != ""]
    again = rows[rows["index"].duplicated(keep=False)].drop_duplicates()
    for number, some in again.groupby("index")["name"]:
        if len(some) > 1 and {*map(atlas.find, some)} != {None}:
            raise FileFormatError(
                f"the label {number} is {' and '.join(some)}; expected one "
                "name for each number. Keep the one that the image means.",
                path=labels,
            )
    rows = rows.drop_duplicates("index")
    return dict(zip(rows["index"].astype(int), rows["name"], strict=True))
