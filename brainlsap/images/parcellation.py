"""Parcellations: images of labels matched to an atlas by name, and atlases made of one.

An atlas is made from annotations, a table of labels, or an image of labels.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from operator import index
from pathlib import Path
from typing import NamedTuple

import nibabel
import numpy as np
import pandas as pd
from nibabel.affines import apply_affine, from_matvec
from scipy.ndimage import center_of_mass, find_objects

from brainlsap.atlas import Atlas, available_atlases, load_atlas
from brainlsap.atlas.atlas import (
    check_coordinates_in_mm,
    fill_region_table,
    find_region_sides,
)
from brainlsap.atlas.atlas_files import (
    AtlasSettings,
    read_annotation,
    read_fsaverage5_mesh,
)
from brainlsap.atlas.region_names import (
    as_text,
    find_side,
    is_no_grey_matter,
    is_non_region_name,
    split_side_from_name,
)
from brainlsap.data.connectomes import MAX_ABSENT_REGIONS
from brainlsap.data.region_lists import RegionList, is_background, read_region_list
from brainlsap.data.row_order import list_fitting_orders, list_row_orders
from brainlsap.data.tables import SIDE_COLUMNS, find_region_column_name, write_tsv
from brainlsap.exceptions import FileFormatError, ParameterError, RegionNameError
from brainlsap.files import check_new_folder, fill_folder
from brainlsap.images.volumes import read_volume_affine_header
from brainlsap.text import count_text, join_with_commas, option_text

LabelSource = str | Path | Mapping[int, str]
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

# From "L" and "R" to the name index of every vertex, and the names.
AnnotationBySide = dict[str, tuple[np.ndarray, list[str]]]

# Vertices of a hemisphere of fsaverage5, fsaverage6 and fsaverage. The vertices of each
# are the first ones of the next.
_N_VERTICES = (10242, 40962, 163842)
# Headers of the columns x, y and z.
_COORDINATE_HEADS = (
    *("{}", "mni_{}", "centroid_{}", "{}_mm", "{}_mni", "mni_{}_mm", "{}_coord"),
    "coord_{}",
)
# Columns of a table of labels that are read, and the headers that they may have.
_HEADS = {
    "hemisphere": SIDE_COLUMNS,
    "long_name": ("long_name", "full_name", "description"),
    **{
        axis_name: [
            column_pattern.format(axis_name) for column_pattern in _COORDINATE_HEADS
        ]
        for axis_name in "xyz"
    },
}
# Largest distance in mm between a region's x, y, z and its centre in the image.
_MAX_DISTANCE = 20


def read_freesurfer_label_names() -> dict[int, str]:
    """Return the labels of FreeSurferColorLUT.txt other than cortical regions.

    These are the labels that aseg, aparc+aseg, wmparc and gtmseg write.
    """
    label_table = pd.read_csv(
        Path(__file__).with_name("freesurfer_labels.tsv"), sep="\t"
    )
    name_by_label = dict(zip(label_table["number"], label_table["name"], strict=True))
    for label_range in _WHITE_MATTER_LABELS:
        name_by_label |= {
            label_number: f"white matter {label_number}" for label_number in label_range
        }
    return name_by_label


class LabelImage(NamedTuple):
    """Labels of voxels, and the regions that they stand for."""

    path: Path
    label_volume: np.ndarray  # (n_x, n_y, n_z), cropped to the labels; 0: background
    affine: np.ndarray  # from voxel to RAS in mm
    name_by_label: dict[int, str]  # of every label in the image but 0
    region_index_by_label: dict[
        int, int
    ]  # in the atlas, of every label that is a region
    label_voxel_counts: np.ndarray  # of every label from 0 to the highest
    notes: tuple[str, ...]
    is_named_by_order: bool = False  # nothing but an order of regions names the labels

    def find_label_numbers(self, core_names: Collection[str]) -> tuple[int, ...]:
        """Return the labels whose names have one of these cores."""
        return tuple(
            label_number
            for label_number, region_name in self.name_by_label.items()
            if split_side_from_name(region_name)[1] in core_names
        )

    def recode(self, code_by_label: Mapping[int, int]) -> np.ndarray:
        """Return the image with new codes, 0 for labels without one."""
        label_codes = np.zeros(len(self.label_voxel_counts), dtype=np.int32)
        label_codes[list(code_by_label)] = list(code_by_label.values())
        return label_codes[self.label_volume]


def match_label_image(
    image_path: str | Path, atlas: Atlas, label_source: LabelSource | None = None
) -> LabelImage:
    """Read a parcellation, and match its labels to the regions of the atlas by name.

    Without `label_source`, names come from a `<name>.tsv` (BIDS) beside
    `<name>.nii.gz`; otherwise labels are FreeSurfer's numbers, the nodes of MRtrix's
    `labelconvert`, or counted in the order of the atlas. Raises FileFormatError if the
    file is not an image of labels or they are unknown, RegionNameError if a name is not
    a region, two labels are one region, or regions are missing.
    """
    image_path = Path(image_path)
    label_volume, affine = _read_labels_and_affine(image_path)
    label_voxel_counts = np.bincount(label_volume.ravel())
    used_label_numbers = np.flatnonzero(label_voxel_counts[1:]) + 1
    name_by_label, label_note, is_named_by_order = _make_label_names(
        image_path, used_label_numbers.tolist(), atlas, label_source
    )
    region_index_by_label, absent_region_names = _match_labels_to_regions(
        image_path, name_by_label, atlas
    )
    label_image = LabelImage(
        image_path,
        label_volume,
        affine,
        name_by_label,
        region_index_by_label,
        label_voxel_counts,
        (label_note,),
        is_named_by_order,
    )
    _check_sides(label_image, atlas)
    if is_named_by_order:
        _check_label_order(label_image, atlas)
    if not absent_region_names:
        return label_image
    absent_note = (
        f"regions without a voxel in the parcellation: {', '.join(absent_region_names)}"
    )
    return label_image._replace(notes=(label_note, absent_note))


def _read_labels_and_affine(image_path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of an image, cropped to a margin of one voxel, and the affine.

    The cropped image is a quarter of most images.
    """
    voxel_values, affine, _ = read_volume_affine_header(image_path)
    with np.errstate(invalid="ignore"):
        label_volume = voxel_values.astype(np.int32)
    min_label = voxel_values.min()
    max_label = voxel_values.max()
    has_whole_numbers = min_label >= 0 and np.array_equal(label_volume, voxel_values)
    if not (has_whole_numbers and 0 < max_label <= MAX_LABEL):
        raise FileFormatError(
            f"expected whole labels from 0 (background) to {MAX_LABEL}; the labels "
            f"lie between {min_label:g} and {max_label:g}. The image may have been "
            "interpolated. Resample the original image by nearest neighbour.",
            path=image_path,
        )
    (label_slices,) = find_objects((label_volume > 0).astype(np.int8))
    crop_slices = tuple(
        slice(max(axis_slice.start - 1, 0), axis_slice.stop + 1)
        for axis_slice in label_slices
    )
    affine = affine @ from_matvec(
        np.eye(3), [axis_slice.start for axis_slice in crop_slices]
    )
    return np.ascontiguousarray(label_volume[crop_slices]), affine


def _match_labels_to_regions(
    image_path: Path, name_by_label: Mapping[int, str], atlas: Atlas
) -> tuple[dict[int, int], list[str]]:
    """Return the atlas position of every label that is a region, and absent regions."""
    # Drop other structures of FreeSurfer that are not regions of this atlas.
    freesurfer_structure_names = set(read_freesurfer_label_names().values())
    region_label_numbers = [
        label_number
        for label_number, region_name in name_by_label.items()
        if region_name not in freesurfer_structure_names
        or atlas.find(region_name) is not None
    ]
    try:
        region_label_indices, _ = atlas.find_file_rows(
            [name_by_label[label_number] for label_number in region_label_numbers]
        )
    except RegionNameError as error:
        raise RegionNameError(
            error.message, path=image_path, kind=error.kind, values=error.values
        ) from error
    absent_region_names = [
        atlas.names[i] for i in np.flatnonzero(region_label_indices < 0)
    ]
    if len(absent_region_names) > MAX_ABSENT_REGIONS:
        raise RegionNameError(
            f"{len(absent_region_names)} of the {len(atlas)} regions of {atlas.name} "
            f"have no voxel: {join_with_commas(absent_region_names, 5)}. Choose "
            "another atlas, or name the labels of the image with "
            f"{option_text('labels')}.",
            path=image_path,
        )
    region_index_by_label = {
        region_label_numbers[label_index]: i
        for i, label_index in enumerate(region_label_indices)
        if label_index >= 0
    }
    return region_index_by_label, absent_region_names


def _check_sides(label_image: LabelImage, atlas: Atlas) -> None:
    """Raise if the left hemisphere's regions lie to the right of the right one's.

    The sides are compared with each other and not with x = 0, because in a
    participant's own space the hemispheres need not lie on both sides of x = 0.
    """
    label_sides = np.zeros(len(label_image.label_voxel_counts), dtype="<U1")
    region_sides = atlas.regions["hemisphere"].iloc[
        [*label_image.region_index_by_label.values()]
    ]
    label_sides[[*label_image.region_index_by_label]] = region_sides
    voxel_indices = np.argwhere(label_image.label_volume > 0)
    x = voxel_indices @ label_image.affine[0, :3]
    voxel_sides = label_sides[label_image.label_volume[tuple(voxel_indices.T)]]
    left_voxel_x = x[voxel_sides == "L"]
    right_voxel_x = x[voxel_sides == "R"]
    if (
        left_voxel_x.size
        and right_voxel_x.size
        and left_voxel_x.mean() - right_voxel_x.mean() > x.std()
    ):
        raise FileFormatError(
            "the regions of the left hemisphere are to the right of the regions of the "
            "right hemisphere. The image may be flipped, or its affine may be lost. "
            "Write the image again from its source, with the affine of the source.",
            path=label_image.path,
        )


def _check_label_order(label_image: LabelImage, atlas: Atlas) -> None:
    """Raise if labels 1, 2 ... lie where another order of rows has its regions."""
    region_names = [
        label_image.name_by_label[label_number]
        for label_number in sorted(label_image.name_by_label)
    ]
    label_centroids = _compute_label_centroids_mm(label_image)
    explained_share = _compute_explained_variance_share(
        label_centroids, region_names, atlas
    )
    for row_order in list_fitting_orders(atlas, len(label_centroids)):
        order_explained_share = _compute_explained_variance_share(
            label_centroids, row_order.names, atlas
        )
        has_lead = order_explained_share - explained_share >= _MIN_LEAD
        if order_explained_share >= _MIN_EXPLAINED_SHARE and has_lead:
            raise FileFormatError(
                f"the positions of the labels 1 to {len(label_centroids)} do not "
                "match the regions in this order, which explains "
                f"{explained_share:.0%} of the variance of the positions. They match "
                f"if the labels are {row_order.note} ({order_explained_share:.0%}). "
                "Name the labels with "
                f"{option_text('labels')}, or with a table in the folder of the image "
                "that has the columns index and name.",
                path=label_image.path,
            )


def _compute_label_centroids_mm(label_image: LabelImage) -> np.ndarray:
    """Return the centre of mass of labels 1, 2 ... in mm, NaN for absent labels."""
    voxel_indices = np.argwhere(label_image.label_volume > 0)
    voxel_labels = label_image.label_volume[tuple(voxel_indices.T)]
    label_voxel_counts = np.bincount(voxel_labels)[1:, None]
    axis_index_sums = [
        np.bincount(voxel_labels, weights=axis_voxel_indices)[1:]
        for axis_voxel_indices in voxel_indices.T
    ]
    with np.errstate(invalid="ignore"):
        centroids = np.column_stack(axis_index_sums) / label_voxel_counts
    return centroids @ label_image.affine[:3, :3].T + label_image.affine[:3, 3]


def _compute_explained_variance_share(
    label_centroids: np.ndarray, region_names: Sequence[str], atlas: Atlas
) -> float:
    """Return the share of the variance of centres that an affine map explains.

    The map is from the atlas' coordinates of the regions with these names.
    """
    if not {*"xyz"} <= {*atlas.regions}:
        return 0.0
    region_indices_or_none = [atlas.find(region_name) for region_name in region_names]
    known_region_mask = np.array(
        [region_index is not None for region_index in region_indices_or_none]
    )
    region_indices = np.array(
        [
            -1 if region_index is None else region_index
            for region_index in region_indices_or_none
        ]
    )
    atlas_centroids = atlas.coordinates[region_indices]
    compared_region_mask = known_region_mask & np.isfinite(atlas_centroids).all(axis=1)
    compared_region_mask &= np.isfinite(label_centroids).all(axis=1)
    if compared_region_mask.sum() < _MIN_CENTRES:
        return 0.0
    X = np.column_stack(
        [atlas_centroids[compared_region_mask], np.ones(compared_region_mask.sum())]
    )
    y = label_centroids[compared_region_mask]
    fit_residuals = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    total_variance = np.square(y - y.mean(axis=0)).sum()
    if total_variance == 0:
        return 0.0
    return float(1 - np.square(fit_residuals).sum() / total_variance)


class LabelNames(NamedTuple):
    """Names of labels, and where they come from."""

    name_by_label: dict[int, str]
    note: str
    is_named_by_order: bool = False  # labels only count the regions in a known order


def _make_label_names(
    image_path: Path,
    used_label_numbers: list[int],
    atlas: Atlas,
    label_source: LabelSource | None,
) -> LabelNames:
    """Return the name of every label in the image."""
    file_stem = image_path.name.removesuffix(".gz").removesuffix(".nii")
    table_path = image_path.with_name(f"{file_stem}.tsv")
    if label_source is None and table_path.is_file():
        label_source = table_path
    if label_source is not None:
        name_by_label = read_name_by_label(label_source, atlas, used_label_numbers)
        nameless_label_texts = [
            str(label_number)
            for label_number in used_label_numbers
            if label_number not in name_by_label
        ]
        if nameless_label_texts:
            raise FileFormatError(
                f"{option_text('labels')} names "
                f"{count_text(len(name_by_label), 'label')}, but not "
                f"{join_with_commas(nameless_label_texts, 8)}, which occur in the "
                "image. Add their names, or set these voxels to 0.",
                path=image_path,
            )
        name_by_used_label = {
            label_number: name_by_label[label_number]
            for label_number in used_label_numbers
        }
        return LabelNames(name_by_used_label, "the labels are named by a table")
    label_names = recognize_label_names(used_label_numbers, atlas)
    if label_names is not None:
        return label_names
    known_label_numbers = {
        *atlas.regions["freesurfer_id"],
        *read_freesurfer_label_names(),
    }
    unknown_label_numbers = [
        label_number
        for label_number in used_label_numbers
        if label_number not in known_label_numbers
    ] or used_label_numbers
    raise FileFormatError(
        f"the labels {join_with_commas(map(str, unknown_label_numbers), 8)} of the "
        f"image do not belong to {atlas.name}. Choose the atlas of the image. Or write "
        "a table with the columns index and name, and give this table with "
        f"{option_text('labels')} or as {table_path.name} in the folder of the image. "
        "Without a table, labels must be numbered as in the atlas, in FreeSurfer "
        "(aparc+aseg), in the labelconvert of MRtrix, or from 1 to "
        f"{len(atlas)} in the order of an atlas on disk.",
        path=image_path,
    )


def recognize_label_names(
    used_label_numbers: Sequence[int], atlas: Atlas
) -> LabelNames | None:
    """Return names of labels that need no table; None if they do."""
    region_label_numbers = atlas.regions["freesurfer_id"].tolist()
    region_name_by_label = {
        label_number: region_name
        for label_number, region_name in zip(
            region_label_numbers, atlas.names, strict=True
        )
        if label_number > 0
    }
    structure_name_by_label = read_freesurfer_label_names() | region_name_by_label
    n_region_labels = sum(
        label_number in region_name_by_label for label_number in used_label_numbers
    )
    has_enough_regions = n_region_labels >= _MIN_FREESURFER_SHARE * len(atlas)
    if structure_name_by_label.keys() >= set(used_label_numbers) and has_enough_regions:
        name_by_label = {
            label_number: structure_name_by_label[label_number]
            for label_number in used_label_numbers
        }
        return LabelNames(
            name_by_label, "the labels were read as the label numbers of FreeSurfer"
        )
    # An atlas made from an image has that image's labels, and no others.
    if atlas.folder and (atlas.folder / "parcellation.nii.gz").is_file():
        return None
    for row_order in list_row_orders(atlas):
        name_by_label = dict(enumerate(row_order.names, start=1))
        if row_order.tool_name in ("atlas", "mrtrix") and list(
            used_label_numbers
        ) == list(name_by_label):
            return LabelNames(
                name_by_label, f"labels {row_order.note}", is_named_by_order=True
            )
    return None


def read_name_by_label(
    label_source: LabelSource, atlas: Atlas, used_label_numbers: Sequence[int] = ()
) -> dict[int, str]:
    """Return the name of every label.

    `label_source` is a file that :func:`.read_region_list` reads (a lookup table of
    FreeSurfer or MRtrix, or one with the columns `index` and `name`, as in BIDS), or
    names by number.
    """
    if isinstance(label_source, Mapping):
        return {
            index(label_number): as_text(region_name)
            for label_number, region_name in label_source.items()
        }
    # A list is rejected: its first name could belong to label 0 or 1.
    if not isinstance(label_source, str | Path):
        raise ParameterError(
            "labels must be a table, or a dict from region number to region name, for "
            "example dict(enumerate(names, start=1)); got "
            f"{type(label_source).__name__}."
        )
    label_table = read_region_list(label_source, used_label_numbers).table
    label_table = label_table[label_table["index"] != ""]
    repeated_label_table = label_table[
        label_table["index"].duplicated(keep=False)
    ].drop_duplicates()
    for label_number, repeated_names in repeated_label_table.groupby("index")["name"]:
        has_region_name = any(
            atlas.find(region_name) is not None for region_name in repeated_names
        )
        if len(repeated_names) > 1 and has_region_name:
            raise FileFormatError(
                f"the label {label_number} has several names: "
                f"{' and '.join(repeated_names)}; expected one name for each number. "
                "Keep only the name that is correct for this image.",
                path=label_source,
            )
    label_table = label_table.drop_duplicates("index")
    return dict(zip(label_table["index"].astype(int), label_table["name"], strict=True))


def make_atlas(
    folder: str | Path,
    *,
    annot: str | Path | None = None,
    labels: str | Path | None = None,
    image: str | Path | None = None,
) -> Atlas:
    """Make a folder of your own atlas, which every function and command accepts.

    Parameters
    ----------
    folder : str or Path
        Folder to make; its name is that of the atlas.
    annot : path, optional
        FreeSurfer's annotation `lh.NAME.annot` of fsaverage, fsaverage6 or fsaverage5,
        with `rh.NAME.annot` beside it: the surfaces and, without `labels`, the names.
        FreeSurfer's stats of NAME are then read by name.
    labels : path, optional
        Names of the regions in order: a column `name` (or `region`, `roi_name`,
        `label` ...), also `hemisphere`, `structure`, `full_name`, `x`, `y`, `z` (mm;
        or `mni_x` ...), and the number of each label in `image` (`index`, `id`, `no`
        ...); or lines of a number and a name, as of FreeSurfer, MRtrix, AAL, ITK-SNAP,
        FSL or Connectome Workbench; or of a name and its place; or a name on each
        line, which counts labels from 1 ("Background" or "Unknown" on the first: 0).
    image : path, optional
        NIfTI of the numbers in `labels`, in MNI152: centroids are the centres of mass,
        whatever `x`, `y`, `z` say, and give the sides that names do not. Regions
        without a voxel in the image are left out.

    Returns
    -------
    Atlas
        As `load_atlas(folder)` reads it; `settings["notes"]` list what was left out.

    Raises
    ------
    ParameterError
        If neither `annot` nor `labels` names the regions, or the folder exists.
    FileFormatError
        If a file cannot be read, names and labels differ, a name occurs twice, or
        regions lie far outside the brain, on another side than in their names, or more
        than 20 mm from `x`, `y`, `z`.
    """
    if Path(folder).name in available_atlases():
        raise ParameterError(
            f"{option_text('folder')} must not have the name of an atlas of "
            f"brainlsap ({', '.join(map(repr, available_atlases()))}). Choose another "
            "name."
        )
    check_new_folder(folder)
    if annot is None and labels is None:
        raise ParameterError(
            f"the names of the regions are missing. Give {option_text('annot')} or "
            f"{option_text('labels')}."
        )
    atlas_settings: AtlasSettings = {
        "file_words": [Path(folder).name.lower()],
        "notes": [],
    }
    label_nifti = None if image is None else _read_label_nifti(image)
    annotation_by_side: AnnotationBySide = {}
    if annot is not None:
        annotation_by_side = _read_annotation_by_side(Path(annot))
        parcellation_name = Path(annot).name[3:].removesuffix(".annot")
        atlas_settings["annotation"] = parcellation_name
        atlas_settings["segmentation"] = f"{parcellation_name}+aseg.mgz"

    region_table, has_header = _read_region_list(
        labels, label_nifti, annotation_by_side
    )
    if "x" in region_table and not has_header:
        atlas_settings["notes"].append(
            "the three numbers beside each name were read as x, y, z in mm of MNI152"
        )
    if label_nifti is not None:
        region_name_series = region_table["name"]
        region_table = _make_located_region_table(
            region_table, label_nifti, f"{image}", f"{labels}"
        )
        absent_region_names = region_name_series[
            ~region_name_series.isin(region_table["name"])
        ]
        if len(absent_region_names):
            absence_note = (
                "regions of the list that are not in the image are left out: "
                f"{join_with_commas(absent_region_names, 8)}"
            )
            atlas_settings["notes"].append(absence_note)
    if annot is None and labels is not None:
        atlas_settings["notes"] += _list_non_grey_notes(
            region_table["name"].tolist(), labels, image
        )
    region_table = _add_sides_to_table(region_table)
    names_source_text = f"{labels or annot}"
    coordinate_source_text = (
        names_source_text if image is None else f"{names_source_text} of {image}"
    )
    complete_region_table = fill_region_table(region_table, coordinate_source_text)
    check_coordinates_in_mm(complete_region_table, coordinate_source_text)

    with fill_folder(folder) as partial_folder:
        if label_nifti is not None:
            nibabel.save(label_nifti, partial_folder / "parcellation.nii.gz")
        _write_annotations(annotation_by_side, partial_folder)
        if annot is not None:
            atlas = Atlas(Path(folder).name, complete_region_table)
            surface_centroids = _compute_surface_centroids(
                atlas, Path(annot), names_source_text
            )
            _add_surface_columns(region_table, atlas_settings, atlas, surface_centroids)
        write_tsv(region_table, partial_folder / "regions.tsv")
        (partial_folder / "atlas.json").write_text(
            json.dumps(atlas_settings, indent=2) + "\n"
        )
    return load_atlas(folder)


def _list_non_grey_notes(
    region_names: list[str], labels_path: str | Path, image_path: str | Path | None
) -> list[str]:
    """Return a note on names of white matter and fluid, or raise without an image.

    A lookup table of a tool names everything that its images may hold.
    """
    non_grey_names = [*filter(is_no_grey_matter, region_names)]
    if not non_grey_names:
        return []
    message = (
        f"{len(non_grey_names)} of the {len(region_names)} names are of white "
        f"matter, fluid or unknown tissue: {join_with_commas(non_grey_names, 5)}"
    )
    if image_path is not None:
        return [f"{message}. These names count as regions"]
    raise FileFormatError(
        f"{message}; expected the regions of the matrices, in the order of their rows. "
        "Remove these lines. If the file is the lookup table of a tool, instead give "
        f"the image of the regions with {option_text('image')}.",
        path=labels_path,
    )


def _read_label_nifti(image_path: str | Path) -> nibabel.Nifti1Image:
    voxel_values, affine, header = read_volume_affine_header(image_path)
    return nibabel.Nifti1Image(voxel_values, affine, header, dtype=voxel_values.dtype)


def _read_annotation_by_side(left_annotation_path: Path) -> AnnotationBySide:
    """Return the annotations of both hemispheres."""
    if not left_annotation_path.name.startswith("lh."):
        raise ParameterError(
            f"{option_text('annot')} must be a file lh.NAME.annot; got "
            f"{left_annotation_path.name}."
        )
    annotation_by_side: AnnotationBySide = {}
    for hemisphere in "LR":
        annotation_path = _get_annotation_path(left_annotation_path, hemisphere)
        vertex_name_indices, region_names = read_annotation(annotation_path)
        annotation_by_side[hemisphere] = vertex_name_indices, region_names
    for hemisphere, (vertex_name_indices, _) in annotation_by_side.items():
        if len(vertex_name_indices) not in _N_VERTICES:
            raise FileFormatError(
                f"{_get_annotation_path(left_annotation_path, hemisphere)} contains "
                f"{len(vertex_name_indices)} vertices; expected one of {_N_VERTICES} "
                "(fsaverage5, fsaverage6, fsaverage). Map the annotation to one of "
                "these surfaces by mri_surf2surf."
            )
    return annotation_by_side


def _get_annotation_path(left_annotation_path: Path, hemisphere: str) -> Path:
    return left_annotation_path.with_name(
        f"{hemisphere.lower()}{left_annotation_path.name[1:]}"
    )


def _write_annotations(
    annotation_by_side: AnnotationBySide, atlas_folder: Path
) -> None:
    """Write annotations on fsaverage5, each name with a colour of its own."""
    for hemisphere, (vertex_name_indices, region_names) in annotation_by_side.items():
        region_colors = (
            np.outer(np.arange(1, len(region_names) + 1), [67, 149, 1, 0]) % 256
        )
        nibabel.freesurfer.write_annot(
            atlas_folder / f"{hemisphere.lower()}h.annot",
            vertex_name_indices[: _N_VERTICES[0]],
            region_colors,
            region_names,
            fill_ctab=True,
        )


def _read_region_list(
    labels_path: str | Path | None,
    label_nifti: nibabel.Nifti1Image | None,
    annotation_by_side: AnnotationBySide,
) -> RegionList:
    """Return the regions of a table of labels, or else those of annotations."""
    if labels_path is not None:
        region_table, has_header = _read_label_region_list(labels_path, label_nifti)
    else:
        region_table, has_header = (
            _make_annotated_region_table(annotation_by_side),
            True,
        )
    for column_name, column_spellings in _HEADS.items():
        region_table = region_table.rename(
            columns={
                find_region_column_name(region_table, column_spellings): column_name
            }
        )
    return RegionList(region_table, has_header)


def _read_label_region_list(
    labels_path: str | Path, label_nifti: nibabel.Nifti1Image | None
) -> RegionList:
    """Return the regions of a table of labels, without the background."""
    used_label_numbers = []
    if label_nifti is not None:
        used_label_numbers = np.setdiff1d(label_nifti.dataobj, [0]).tolist()
    label_table, has_header = read_region_list(labels_path, used_label_numbers)
    background_name_mask = label_table["name"].map(is_background)
    zero_label_mask = label_table["index"] == "0"
    # A list without numbers may begin with the background.
    if not any(label_table["index"]):
        zero_label_mask.iloc[0] = background_name_mask.iloc[0]
    zero_label_names = label_table["name"][
        zero_label_mask & ~background_name_mask
    ].tolist()
    if zero_label_names:
        raise FileFormatError(
            f"the region {zero_label_names[0]} has the number 0, which is reserved for "
            "the background. Give each region the number of its voxels in the "
            "image.",
            path=labels_path,
        )
    label_table = label_table[~zero_label_mask].reset_index(drop=True)
    label_table["freesurfer_id"] = label_table.pop("index")
    if not has_header:
        _check_repeated_numbers(label_table, labels_path)
    # Without an image, the annotations of each side may count their own labels.
    if label_nifti is None and label_table["freesurfer_id"].duplicated().any():
        label_table["freesurfer_id"] = "n/a"
    return RegionList(label_table, has_header)


def _check_repeated_numbers(
    labelled_region_table: pd.DataFrame, labels_path: str | Path
) -> None:
    """Raise where a list gives one number to two regions that are not of two sides."""
    numbered_row_mask = labelled_region_table["freesurfer_id"] != ""
    name_groupby = labelled_region_table[numbered_row_mask].groupby("freesurfer_id")[
        "name"
    ]
    for label_number, repeated_names in name_groupby:
        region_sides = {
            split_side_from_name(region_name)[0] for region_name in repeated_names
        }
        has_several_names = repeated_names.nunique() > 1
        if has_several_names and len(region_sides - {None}) < len(repeated_names):
            raise FileFormatError(
                f"the number {label_number} is given to "
                f"{join_with_commas(map(repr, repeated_names))}; expected one region "
                "for each number, or one on each side. Keep one of these lines.",
                path=labels_path,
            )


def _make_annotated_region_table(annotation_by_side: AnnotationBySide) -> pd.DataFrame:
    """Return the regions that annotations name."""
    row_tuples = [
        (region_name, hemisphere, region_name)
        for hemisphere, (_, region_names) in annotation_by_side.items()
        for region_name in region_names
        if not is_non_region_name(region_name)
    ]
    return pd.DataFrame(row_tuples, columns=["name", "hemisphere", "annot_name"])


def _add_sides_to_table(region_table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with sides, and a prefix where one name serves both sides."""
    if "hemisphere" not in region_table:
        region_table["hemisphere"] = find_region_sides(region_table)
    if region_table["name"].duplicated().any():
        hemispheres = region_table["hemisphere"].map(find_side, na_action="ignore")
        names_with_side = hemispheres.str.lower() + "h_" + region_table["name"]
        sideless_name_mask = (
            region_table["name"].map(split_side_from_name).str[0].isna()
            & hemispheres.notna()
        )
        region_table["name"] = region_table["name"].mask(
            sideless_name_mask, names_with_side
        )
    return region_table


def _make_located_region_table(
    region_table: pd.DataFrame,
    label_nifti: nibabel.Nifti1Image,
    image_path_text: str,
    labels_path_text: str,
) -> pd.DataFrame:
    """Return the regions that have voxels in an image, with their centres of mass."""
    voxel_values = np.asarray(label_nifti.dataobj)
    if (voxel_values != np.round(voxel_values)).any():
        raise FileFormatError(
            "expected whole numbers as labels, but some labels of this parcellation "
            "are not whole numbers. The parcellation was probably interpolated. "
            "Resample the original parcellation by nearest neighbour.",
            path=image_path_text,
        )
    if not any(region_table.get("freesurfer_id", ())):
        region_table["freesurfer_id"] = range(1, len(region_table) + 1)
    label_numbers = pd.to_numeric(region_table["freesurfer_id"], errors="coerce")
    region_in_image_mask = label_numbers.isin(np.unique(voxel_values))
    repeated_number_mask = region_in_image_mask & label_numbers.duplicated(keep=False)
    if repeated_number_mask.any():
        raise FileFormatError(
            "several of the regions "
            f"{join_with_commas(region_table['name'][repeated_number_mask], 8)} have "
            "the same number; expected one name for each label. Correct the numbers.",
            path=labels_path_text,
        )
    nameless_label_numbers = np.setdiff1d(voxel_values, [0, *label_numbers])
    if len(nameless_label_numbers):
        unused_names_text = join_with_commas(
            region_table["name"][~region_in_image_mask], 8
        )
        unused_note = ""
        if unused_names_text:
            unused_note = f"; the image does not contain {unused_names_text}"
        raise FileFormatError(
            f"{option_text('labels')} has no name for "
            f"{join_with_commas(map('{:.9g}'.format, nameless_label_numbers), 8)}. The "
            f"file contains names for the labels {label_numbers.min():g} to "
            f"{label_numbers.max():g} (a "
            f"list without numbers is numbered from 1){unused_note}. Add one line for "
            "each missing label, or set these voxels to 0.",
            path=image_path_text,
        )
    region_table = region_table[region_in_image_mask].reset_index(drop=True)
    voxel_centroids = center_of_mass(
        np.ones(voxel_values.shape),
        voxel_values,
        label_numbers[region_in_image_mask].to_numpy(),
    )
    centroids_mm = apply_affine(label_nifti.affine, voxel_centroids).round(1)
    _check_coordinates_match_image(
        region_table, centroids_mm, image_path_text, labels_path_text
    )
    region_table[["x", "y", "z"]] = centroids_mm
    return region_table


def _check_coordinates_match_image(
    region_table: pd.DataFrame,
    image_centroids: np.ndarray,
    image_path_text: str,
    labels_path_text: str,
) -> None:
    """Raise if x, y, z of a table are far from the centres (n, 3) in the image."""
    xyz_table = region_table.reindex(columns=[*"xyz"]).apply(
        pd.to_numeric, errors="coerce"
    )
    table_centroids = xyz_table.to_numpy(float)
    centroid_distances = np.linalg.norm(table_centroids - image_centroids, axis=1)
    distant_region_texts = [
        f"{region_table['name'][i]} at {(*map(round, table_centroids[i]),)}, "
        f"not {(*map(round, image_centroids[i]),)}"
        for i in np.flatnonzero(centroid_distances > _MAX_DISTANCE)
    ]
    if distant_region_texts:
        raise FileFormatError(
            f"the coordinates x, y, z of {len(distant_region_texts)} of "
            f"{len(region_table)} regions are more than {_MAX_DISTANCE} mm from the "
            f"centres of these regions in {image_path_text}: "
            f"{join_with_commas(distant_region_texts, 3)}. Names or numbers may have "
            "been swapped, or the table may belong to another image. Correct the "
            "table, or remove x, y and z to use the centres of the regions in the "
            "image.",
            path=labels_path_text,
        )


def _compute_surface_centroids(
    atlas: Atlas, left_annotation_path: Path, name_source_path: str
) -> np.ndarray:
    """Return the mean of each region's vertices, midway between white and pial surface.

    NaN for regions without vertices; MNI305, as fsaverage.
    """
    surface_centroids = np.full((len(atlas), 3), np.nan)
    for hemisphere in "LR":
        midthickness_vertices = (
            read_fsaverage5_mesh(hemisphere, "white")[0]
            + read_fsaverage5_mesh(hemisphere, "pial")[0]
        ) / 2
        try:
            vertex_region_indices = atlas.vertex_labels(
                hemisphere, _get_annotation_path(left_annotation_path, hemisphere)
            )
        except FileFormatError as error:
            raise FileFormatError(
                "the table does not name all regions of the annotation, or does "
                f"not give their sides (lh_, rh_, or a column hemisphere): {error}",
                path=name_source_path,
            ) from error
        vertex_groupby = pd.DataFrame(midthickness_vertices).groupby(
            vertex_region_indices[: len(midthickness_vertices)]
        )
        centroid_table = vertex_groupby.mean().drop(-1, errors="ignore")
        surface_centroids[centroid_table.index] = centroid_table
    return surface_centroids


def _add_surface_columns(
    region_table: pd.DataFrame,
    atlas_settings: AtlasSettings,
    atlas: Atlas,
    surface_centroids: np.ndarray,
) -> None:
    """Add to a table of regions, and to an atlas' settings, what surfaces tell.

    `surface_centroids` (n_rois, 3) is NaN for regions that the annotations do not hold.
    """
    surface_region_mask = ~np.isnan(surface_centroids[:, 0])
    off_surface_names = atlas.regions["name"][atlas.cortex & ~surface_region_mask]
    if len(off_surface_names):
        absence_note = (
            "regions that are not in the annotation have no surface: "
            f"{join_with_commas(off_surface_names, 8)}"
        )
        atlas_settings["notes"].append(absence_note)
    if "structure" not in region_table:
        region_table["structure"] = atlas.regions["structure"].mask(
            surface_region_mask, "cortex"
        )
    if atlas.regions["x"].isna().all():
        region_table[["x", "y", "z"]] = surface_centroids.round(1)
        atlas_settings["space"] = "MNI305"
