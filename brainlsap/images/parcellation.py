"""Parcellations: images of labels, matched to the regions of an atlas by name."""

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
from brainlsap.data.connectomes import MAX_ABSENT_REGIONS
from brainlsap.data.region_lists import read_labels
from brainlsap.data.row_order import fitting_orders, row_orders
from brainlsap.exceptions import FileFormatError, ParameterError, RegionNameError
from brainlsap.images.volumes import read_volume
from brainlsap.text import listed

Labels = str | Path | Mapping[int, str]
# Largest label that is accepted; larger values are colour codes, not labels.
MAX_LABEL = 1_000_000
# Grey matter that the atlases leave out, but where streamlines end. MRtrix's
# labelconvert makes nodes of it, so it must compete for the ends.
NON_ATLAS_NODES = ("accumbens", "cerebellumcortex")
# Labels are read as FreeSurfer's if they include at least this share of the regions.
_MIN_FREESURFER_SHARE = 0.5
# Smallest share of the variance of label centres that the right order must explain, and
# its smallest lead over another order.
_MIN_EXPLAINED_SHARE = 0.8
_MIN_LEAD = 0.2
# With fewer regions than this, an affine map explains the centres by chance.
_MIN_CENTRES = 20
# Labels that wmparc gives to the white matter below each cortical region.
_WHITE_MATTER_LABELS = (
    *(range(3000, 3036), range(4000, 4036)),
    *(range(13100, 13176), range(14100, 14176)),
)


def freesurfer_labels() -> dict[int, str]:
    """Return the labels of FreeSurferColorLUT.txt other than cortical regions.

    These are the labels that aseg, aparc+aseg, wmparc and gtmseg write.
    """
    table = pd.read_csv(Path(__file__).with_name("freesurfer_labels.tsv"), sep="\t")
    names = dict(zip(table["number"], table["name"], strict=True))
    for label_range in _WHITE_MATTER_LABELS:
        names |= {number: f"white matter {number}" for number in label_range}
    return names


class LabelImage(NamedTuple):
    """Labels of voxels, and the regions that they stand for."""

    path: Path
    values: np.ndarray  # (n_x, n_y, n_z), cropped to the labels; 0: background
    affine: np.ndarray  # from voxel to RAS in mm
    names: dict[int, str]  # of every label in the image but 0
    positions: dict[int, int]  # in the atlas, of every label that is a region
    counts: np.ndarray  # number of voxels of every label from 0 to the highest
    notes: tuple[str, ...]
    is_order: bool = False  # nothing but an order of regions names the labels

    def find_labels(self, cores: Collection[str]) -> tuple[int, ...]:
        """Return the labels whose names have one of these cores."""
        return tuple(
            label for label, name in self.names.items() if split_name(name)[1] in cores
        )

    def recode(self, code_of_label: Mapping[int, int]) -> np.ndarray:
        """Return the image with new codes, 0 for labels without one."""
        code_table = np.zeros(len(self.counts), dtype=np.int32)
        code_table[list(code_of_label)] = list(code_of_label.values())
        return code_table[self.values]


def read_label_image(
    path: str | Path, atlas: Atlas, labels: Labels | None = None
) -> LabelImage:
    """Read a parcellation, and match its labels to the regions of the atlas by name.

    Without `labels`, names come from a `<name>.tsv` (BIDS) beside `<name>.nii.gz`;
    otherwise labels are FreeSurfer's numbers, the nodes of MRtrix's `labelconvert`, or
    counted in the order of the atlas. Raises FileFormatError if the file is not an
    image of labels or they are unknown, RegionNameError if a name is not a region, two
    labels are one region, or regions are missing.
    """
    path = Path(path)
    values, affine = _read_labels_of_voxels(path)
    counts = np.bincount(values.ravel())
    present = np.flatnonzero(counts[1:]) + 1
    names, note, is_order = _name_labels(path, present.tolist(), atlas, labels)
    positions, absent_regions = _locate_regions(path, names, atlas)
    image = LabelImage(
        path, values, affine, names, positions, counts, (note,), is_order
    )
    _check_sides(image, atlas)
    if is_order:
        _check_order(image, atlas)
    if not absent_regions:
        return image
    absent_note = f"absent from the parcellation: {', '.join(absent_regions)}"
    return image._replace(notes=(note, absent_note))


def _read_labels_of_voxels(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of an image, cropped to a margin of one voxel, and the affine.

    The cropped image is a quarter of most images.
    """
    voxels, affine, _ = read_volume(path)
    with np.errstate(invalid="ignore"):
        values = voxels.astype(np.int32)
    lowest = voxels.min()
    highest = voxels.max()
    is_whole = lowest >= 0 and np.array_equal(values, voxels)
    if not (is_whole and 0 < highest <= MAX_LABEL):
        raise FileFormatError(
            f"expected labels from 0 to {MAX_LABEL}, 0 for none, found "
            f"{lowest:g} to {highest:g}. Whole numbers became fractions? Resample by "
            "nearest neighbour.",
            path=path,
        )
    (tight_box,) = find_objects((values > 0).astype(np.int8))
    box = tuple(slice(max(axis.start - 1, 0), axis.stop + 1) for axis in tight_box)
    affine = affine @ from_matvec(np.eye(3), [axis.start for axis in box])
    return np.ascontiguousarray(values[box]), affine


def _locate_regions(
    path: Path, names: Mapping[int, str], atlas: Atlas
) -> tuple[dict[int, int], list[str]]:
    """Return the atlas position of every label that is a region, and absent regions."""
    # Drop other structures of FreeSurfer that are not regions of this atlas.
    other_structures = set(freesurfer_labels().values())
    region_labels = [
        label
        for label, name in names.items()
        if name not in other_structures or atlas.find(name) is not None
    ]
    try:
        rows, _ = atlas.rows([names[label] for label in region_labels])
    except RegionNameError as error:
        raise RegionNameError(
            error.message, path=path, kind=error.kind, values=error.values
        ) from error
    absent_regions = [atlas.names[i] for i in np.flatnonzero(rows < 0)]
    if len(absent_regions) > MAX_ABSENT_REGIONS:
        raise RegionNameError(
            f"{len(absent_regions)} of the {len(atlas)} regions of "
            f"{atlas.name} have no voxel: {listed(absent_regions, 5)}. Choose another "
            "atlas, or give labels=.",
            path=path,
        )
    positions = {region_labels[row]: i for i, row in enumerate(rows) if row >= 0}
    return positions, absent_regions


def _check_sides(image: LabelImage, atlas: Atlas) -> None:
    """Raise if the left hemisphere's regions lie to the right of the right one's.

    The sides are compared with each other and not with x = 0, because in a
    participant's own space the hemispheres need not lie on both sides of x = 0.
    """
    side_of_label = np.zeros(len(image.counts), dtype="<U1")
    region_sides = atlas.regions["hemisphere"].iloc[[*image.positions.values()]]
    side_of_label[[*image.positions]] = region_sides
    voxels = np.argwhere(image.values > 0)
    x = voxels @ image.affine[0, :3]
    voxel_sides = side_of_label[image.values[tuple(voxels.T)]]
    left_x = x[voxel_sides == "L"]
    right_x = x[voxel_sides == "R"]
    if left_x.size and right_x.size and left_x.mean() - right_x.mean() > x.std():
        raise FileFormatError(
            "the left hemisphere's regions lie to the right of those of "
            "the right one (image flipped, or its affine lost?). Write it anew from "
            "its source, with the affine that belongs to it.",
            path=image.path,
        )


def _check_order(image: LabelImage, atlas: Atlas) -> None:
    """Raise if labels 1, 2 ... lie where another order of rows has its regions."""
    names = [image.names[label] for label in sorted(image.names)]
    centres = _label_centres(image)
    own_share = _explained_share(centres, names, atlas)
    for order in fitting_orders(atlas, len(centres)):
        other_share = _explained_share(centres, order.names, atlas)
        has_lead = other_share - own_share >= _MIN_LEAD
        if other_share >= _MIN_EXPLAINED_SHARE and has_lead:
            raise FileFormatError(
                f"labels 1 to {len(centres)} do not lie where their "
                f"regions would be ({own_share:.0%} of the variance of places "
                f"explained), but labels {order.note} do ({other_share:.0%}). "
                "Name the labels by labels=, or by a table of index and name beside "
                "the image.",
                path=image.path,
            )


def _label_centres(image: LabelImage) -> np.ndarray:
    """Return the centre of mass of labels 1, 2 ... in mm, NaN for absent labels."""
    voxels = np.argwhere(image.values > 0)
    voxel_labels = image.values[tuple(voxels.T)]
    n_voxels = np.bincount(voxel_labels)[1:, None]
    sums = [np.bincount(voxel_labels, weights=axis)[1:] for axis in voxels.T]
    with np.errstate(invalid="ignore"):
        centres = np.column_stack(sums) / n_voxels
    return centres @ image.affine[:3, :3].T + image.affine[:3, 3]


def _explained_share(centres: np.ndarray, names: Sequence[str], atlas: Atlas) -> float:
    """Return the share of the variance of centres that an affine map explains.

    The map is from the atlas' coordinates of the regions with these names.
    """
    if not {*"xyz"} <= {*atlas.regions}:
        return 0.0
    positions = [atlas.find(name) for name in names]
    is_region = np.array([position is not None for position in positions])
    rows = np.array([-1 if position is None else position for position in positions])
    coordinates = atlas.coordinates[rows]
    is_used = is_region & np.isfinite(coordinates).all(axis=1)
    is_used &= np.isfinite(centres).all(axis=1)
    if is_used.sum() < _MIN_CENTRES:
        return 0.0
    X = np.column_stack([coordinates[is_used], np.ones(is_used.sum())])
    y = centres[is_used]
    residual = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    total_variance = np.square(y - y.mean(axis=0)).sum()
    if total_variance == 0:
        return 0.0
    return float(1 - np.square(residual).sum() / total_variance)


class LabelNames(NamedTuple):
    """Names of labels, and where they come from."""

    names: dict[int, str]
    note: str
    is_order: bool = False  # labels only count the regions in a known order


def _name_labels(
    path: Path, present: list[int], atlas: Atlas, labels: Labels | None
) -> LabelNames:
    """Return the name of every label in the image."""
    stem = path.name.removesuffix(".gz").removesuffix(".nii")
    sidecar = path.with_name(f"{stem}.tsv")
    if labels is None and sidecar.is_file():
        labels = sidecar
    if labels is not None:
        name_of_label = read_label_table(labels, atlas, present)
        nameless = [str(label) for label in present if label not in name_of_label]
        if nameless:
            raise FileFormatError(
                f"labels= names {len(name_of_label)} labels, but not "
                f"{listed(nameless, 8)}, which it holds. Add them, or make them 0.",
                path=path,
            )
        names = {label: name_of_label[label] for label in present}
        return LabelNames(names, "labels named by a table")
    label_names = recognize_labels(present, atlas)
    if label_names is not None:
        return label_names
    expected = {*atlas.regions["freesurfer_id"], *freesurfer_labels()}
    unknown_labels = [label for label in present if label not in expected] or present
    raise FileFormatError(
        f"the labels are not known for {atlas.name}: found "
        f"{listed(map(str, unknown_labels), 8)}. Expected the atlas' own numbers, "
        "FreeSurfer's (aparc+aseg), the nodes of MRtrix's labelconvert, or (an atlas "
        f"on disk) 1 to {len(atlas)} in its order. Choose the atlas of the image, or "
        "name them in a table of index and name beside it "
        f"({sidecar.name}), or by labels=.",
        path=path,
    )


def recognize_labels(present: Sequence[int], atlas: Atlas) -> LabelNames | None:
    """Return names of labels that need no table; None if they do."""
    region_labels = atlas.regions["freesurfer_id"].tolist()
    region_names = {
        label: name
        for label, name in zip(region_labels, atlas.names, strict=True)
        if label > 0
    }
    all_names = freesurfer_labels() | region_names
    n_regions = sum(label in region_names for label in present)
    has_enough_regions = n_regions >= _MIN_FREESURFER_SHARE * len(atlas)
    if all_names.keys() >= set(present) and has_enough_regions:
        names = {label: all_names[label] for label in present}
        return LabelNames(names, "labels read as FreeSurfer's numbers")
    # An atlas made from an image has that image's labels, and no others.
    if atlas.folder and (atlas.folder / "parcellation.nii.gz").is_file():
        return None
    for order in row_orders(atlas):
        names = dict(enumerate(order.names, start=1))
        if order.tool in ("atlas", "mrtrix") and list(present) == list(names):
            return LabelNames(names, f"labels {order.note}", is_order=True)
    return None


def read_label_table(
    labels: Labels, atlas: Atlas, present: Sequence[int] = ()
) -> dict[int, str]:
    """Return the name of every label.

    `labels` is a file that :func:`.read_labels` reads (a lookup table of FreeSurfer or
    MRtrix, or one with the columns `index` and `name`, as in BIDS), or names by number.
    """
    if isinstance(labels, Mapping):
        return {index(number): as_text(name) for number, name in labels.items()}
    # A list is rejected: its first name could belong to label 0 or 1.
    if not isinstance(labels, str | Path):
        raise ParameterError(
            "labels must be a table or names by number, for example "
            f"dict(enumerate(names, start=1)); got {type(labels).__name__}."
        )
    rows = read_labels(labels, present).table
    rows = rows[rows["index"] != ""]
    repeated_rows = rows[rows["index"].duplicated(keep=False)].drop_duplicates()
    for number, names in repeated_rows.groupby("index")["name"]:
        has_region = any(atlas.find(name) is not None for name in names)
        if len(names) > 1 and has_region:
            raise FileFormatError(
                f"the label {number} is {' and '.join(names)}; expected one "
                "name for each number. Keep the one that the image means.",
                path=labels,
            )
    rows = rows.drop_duplicates("index")
    return dict(zip(rows["index"].astype(int), rows["name"], strict=True))
