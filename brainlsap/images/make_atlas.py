"""Make an atlas from annotations, a table of labels, or an image of labels."""

import json
from pathlib import Path

import nibabel
import numpy as np
import pandas as pd
from nibabel.affines import apply_affine
from scipy.ndimage import center_of_mass

from brainlsap.atlas import Atlas, available_atlases, load_atlas
from brainlsap.atlas.atlas import complete_regions, find_sides
from brainlsap.atlas.atlas_files import AtlasSettings, fsaverage5, read_annotation
from brainlsap.atlas.region_names import find_side, is_outside, split_name
from brainlsap.data.region_lists import RegionList, read_labels
from brainlsap.data.tables import SIDE_COLUMNS, find_region_column, write_tsv
from brainlsap.exceptions import FileFormatError, ParameterError
from brainlsap.files import fill_folder
from brainlsap.images.volumes import read_volume
from brainlsap.text import listed, option_text

# From "L" and "R" to the name index of every vertex, and the names.
Annotations = dict[str, tuple[np.ndarray, list[str]]]

# Vertices of a hemisphere of fsaverage5, fsaverage6 and fsaverage. The vertices of each
# are the first ones of the next.
_N_VERTICES = (10242, 40962, 163842)
# Names of labels that stand for the background of an image.
_BACKGROUND = ("", "background", "unknown", "clear label", "exterior")
# Headers of the columns x, y and z.
_COORDINATE_HEADS = ("{}", "mni_{}", "centroid_{}", "{}_mm", "{}_mni", "mni_{}_mm")
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


def make_atlas(
    folder: str | Path,
    *,
    annot: str | Path | None = None,
    labels: str | Path | None = None,
    image: str | Path | None = None,
) -> Atlas:
    """Make an atlas of one's own: a folder that every function and command accepts.

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
            f"{option_text('folder')} must have another name than "
            f"{', '.join(available_atlases())}, which come with brainlsap."
        )
    if annot is None and labels is None:
        raise ParameterError(
            f"{option_text('annot')} or {option_text('labels')} must name the regions; "
            "give one."
        )
    settings: AtlasSettings = {"file_words": [Path(folder).name.lower()], "notes": []}
    label_volume = None if image is None else _read_label_volume(image)
    annotations: Annotations = {}
    if annot is not None:
        annotations = _read_annotations(Path(annot))
        parcellation_name = Path(annot).name[3:].removesuffix(".annot")
        settings["annotation"] = parcellation_name
        settings["segmentation"] = f"{parcellation_name}+aseg.mgz"

    region_table, has_header = _list_regions(labels, label_volume, annotations)
    if "x" in region_table and not has_header:
        settings["notes"].append(
            "taken for x, y, z in mm of MNI152: the three numbers beside each name"
        )
    if label_volume is not None:
        all_names = region_table["name"]
        region_table = _locate_label_regions(
            region_table, label_volume, f"{image}", f"{labels}"
        )
        absent_names = all_names[~all_names.isin(region_table["name"])]
        if len(absent_names):
            absence_note = f"left out, not in the image: {listed(absent_names, 8)}"
            settings["notes"].append(absence_note)
    region_table = _distinguish_sides(region_table)
    names_source = f"{labels or annot}"
    coordinate_source = names_source if image is None else f"{names_source} of {image}"
    regions = complete_regions(region_table, coordinate_source)

    with fill_folder(folder) as partial_folder:
        if label_volume is not None:
            nibabel.save(label_volume, partial_folder / "parcellation.nii.gz")
        _write_annotations(annotations, partial_folder)
        if annot is not None:
            atlas = Atlas(Path(folder).name, regions)
            surface_centroids = _find_surface_centres(atlas, Path(annot), names_source)
            _add_surface_facts(region_table, settings, atlas, surface_centroids)
        write_tsv(region_table, partial_folder / "regions.tsv")
        (partial_folder / "atlas.json").write_text(
            json.dumps(settings, indent=2) + "\n"
        )
    return load_atlas(folder)


def _read_label_volume(image: str | Path) -> nibabel.Nifti1Image:
    voxels, affine, header = read_volume(image)
    return nibabel.Nifti1Image(voxels, affine, header, dtype=voxels.dtype)


def _read_annotations(left_path: Path) -> Annotations:
    """Return the annotations of both hemispheres."""
    if not left_path.name.startswith("lh."):
        raise ParameterError(
            f"{option_text('annot')} must be a file lh.NAME.annot, got "
            f"{left_path.name}."
        )
    annotations: Annotations = {}
    for hemisphere in "LR":
        annotation_path = _path_of_side(left_path, hemisphere)
        vertex_names, region_names = read_annotation(annotation_path)
        annotations[hemisphere] = vertex_names, region_names
    for hemisphere, (vertex_names, _) in annotations.items():
        if len(vertex_names) not in _N_VERTICES:
            raise FileFormatError(
                f"{_path_of_side(left_path, hemisphere)}: {len(vertex_names)} "
                f"vertices; expected one of {_N_VERTICES}, as of fsaverage5, "
                "fsaverage6 and fsaverage. Map it by mri_surf2surf."
            )
    return annotations


def _path_of_side(left_path: Path, hemisphere: str) -> Path:
    return left_path.with_name(f"{hemisphere.lower()}{left_path.name[1:]}")


def _write_annotations(annotations: Annotations, folder: Path) -> None:
    """Write annotations on fsaverage5, each name with a colour of its own."""
    for hemisphere, (vertex_names, region_names) in annotations.items():
        region_colors = (
            np.outer(np.arange(1, len(region_names) + 1), [67, 149, 1, 0]) % 256
        )
        nibabel.freesurfer.write_annot(
            folder / f"{hemisphere.lower()}h.annot",
            vertex_names[: _N_VERTICES[0]],
            region_colors,
            region_names,
            fill_ctab=True,
        )


def _list_regions(
    labels: str | Path | None,
    label_volume: nibabel.Nifti1Image | None,
    annotations: Annotations,
) -> RegionList:
    """Return the regions of a table of labels, or else those of annotations."""
    if labels is not None:
        region_table, has_header = _read_label_regions(labels, label_volume)
    else:
        region_table, has_header = _list_annotated_regions(annotations), True
    for column_name, column_spellings in _HEADS.items():
        region_table = region_table.rename(
            columns={find_region_column(region_table, column_spellings): column_name}
        )
    return RegionList(region_table, has_header)


def _read_label_regions(
    labels: str | Path, label_volume: nibabel.Nifti1Image | None
) -> RegionList:
    """Return the regions of a table of labels, without the background."""
    used_labels = []
    if label_volume is not None:
        used_labels = np.setdiff1d(label_volume.dataobj, [0]).tolist()
    label_table, has_header = read_labels(labels, used_labels)
    is_background = label_table["name"].str.strip(" ?").str.lower().isin(_BACKGROUND)
    is_zero = label_table["index"] == "0"
    # A list without numbers may begin with the background.
    if not any(label_table["index"]):
        is_zero.iloc[0] = is_background.iloc[0]
    zero_names = label_table["name"][is_zero & ~is_background].tolist()
    if zero_names:
        raise FileFormatError(
            f"the number of {zero_names[0]} is 0, which is the background of "
            "an image. Count regions as the image does, mostly from 1.",
            path=labels,
        )
    label_table = label_table[~is_zero].reset_index(drop=True)
    label_table["freesurfer_id"] = label_table.pop("index")
    # Without an image, the annotations of each side may count their own labels.
    if label_volume is None and label_table["freesurfer_id"].duplicated().any():
        label_table["freesurfer_id"] = "n/a"
    return RegionList(label_table, has_header)


def _list_annotated_regions(annotations: Annotations) -> pd.DataFrame:
    """Return the regions that annotations name."""
    region_rows = [
        (region_name, hemisphere, region_name)
        for hemisphere, (_, region_names) in annotations.items()
        for region_name in region_names
        if not is_outside(region_name)
    ]
    return pd.DataFrame(region_rows, columns=["name", "hemisphere", "annot_name"])


def _distinguish_sides(region_table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with sides, and a prefix where one name serves both sides."""
    if "hemisphere" not in region_table:
        region_table["hemisphere"] = find_sides(region_table)
    if region_table["name"].duplicated().any():
        hemispheres = region_table["hemisphere"].map(find_side, na_action="ignore")
        names_with_side = hemispheres.str.lower() + "h_" + region_table["name"]
        has_no_side = (
            region_table["name"].map(split_name).str[0].isna() & hemispheres.notna()
        )
        region_table["name"] = region_table["name"].mask(has_no_side, names_with_side)
    return region_table


def _locate_label_regions(
    region_table: pd.DataFrame,
    label_volume: nibabel.Nifti1Image,
    image: str,
    labels: str,
) -> pd.DataFrame:
    """Return the regions that have voxels in an image, with their centres of mass."""
    voxels = np.asarray(label_volume.dataobj)
    if (voxels != np.round(voxels)).any():
        raise FileFormatError(
            "labels must be whole numbers; it was interpolated. Resample "
            "the parcellation by nearest neighbour.",
            path=image,
        )
    if not any(region_table.get("freesurfer_id", ())):
        region_table["freesurfer_id"] = range(1, len(region_table) + 1)
    label_numbers = pd.to_numeric(region_table["freesurfer_id"], errors="coerce")
    is_in_image = label_numbers.isin(np.unique(voxels))
    is_repeated = is_in_image & label_numbers.duplicated(keep=False)
    if is_repeated.any():
        raise FileFormatError(
            f"{listed(region_table['name'][is_repeated], 8)} share their numbers "
            "with one another; expected one name for each label. Correct the numbers.",
            path=labels,
        )
    nameless_labels = np.setdiff1d(voxels, [0, *label_numbers])
    if len(nameless_labels):
        unused_names = listed(region_table["name"][~is_in_image], 8)
        unused_note = ""
        if unused_names:
            unused_note = f", of which the image does not hold {unused_names}"
        raise FileFormatError(
            f"{option_text('labels')} has no name for "
            f"{listed(map('{:.9g}'.format, nameless_labels), 8)}; it names "
            f"{label_numbers.min():g} to {label_numbers.max():g} (a list without "
            f"numbers counts from 1){unused_note}. Add a line for each, or set them to "
            "0.",
            path=image,
        )
    region_table = region_table[is_in_image].reset_index(drop=True)
    voxel_centroids = center_of_mass(
        np.ones(voxels.shape), voxels, label_numbers[is_in_image].to_numpy()
    )
    centroids_mm = apply_affine(label_volume.affine, voxel_centroids).round(1)
    _compare_coordinates(region_table, centroids_mm, image, labels)
    region_table[["x", "y", "z"]] = centroids_mm
    return region_table


def _compare_coordinates(
    region_table: pd.DataFrame, image_centroids: np.ndarray, image: str, labels: str
) -> None:
    """Raise if x, y, z of a table are far from the centres (n, 3) in the image."""
    axes = region_table.reindex(columns=[*"xyz"]).apply(pd.to_numeric, errors="coerce")
    table_centroids = axes.to_numpy(float)
    centroid_distances = np.linalg.norm(table_centroids - image_centroids, axis=1)
    distant_regions = [
        f"{region_table['name'][i]} at {(*map(round, table_centroids[i]),)}, "
        f"not {(*map(round, image_centroids[i]),)}"
        for i in np.flatnonzero(centroid_distances > _MAX_DISTANCE)
    ]
    if distant_regions:
        raise FileFormatError(
            f"x, y, z of {len(distant_regions)} of {len(region_table)} regions are "
            f"more than {_MAX_DISTANCE} mm from their centres in {image}: "
            f"{listed(distant_regions, 3)}. Names or numbers are exchanged, or the "
            "table is of another image; correct it, or leave x, y and z out, as the "
            "image's count.",
            path=labels,
        )


def _find_surface_centres(
    atlas: Atlas, left_path: Path, names_source: str
) -> np.ndarray:
    """Return the mean of each region's vertices, midway between white and pial surface.

    NaN for regions without vertices; MNI305, as fsaverage.
    """
    surface_centroids = np.full((len(atlas), 3), np.nan)
    for hemisphere in "LR":
        midthickness_vertices = (
            fsaverage5(hemisphere, "white")[0] + fsaverage5(hemisphere, "pial")[0]
        ) / 2
        try:
            region_of_vertex = atlas.vertex_labels(
                hemisphere, _path_of_side(left_path, hemisphere)
            )
        except FileFormatError as error:
            raise FileFormatError(
                "does not name all regions of the annotation, or not with "
                f"sides (lh_, rh_, or a column hemisphere): {error}",
                path=names_source,
            ) from error
        vertices = pd.DataFrame(midthickness_vertices).groupby(
            region_of_vertex[: len(midthickness_vertices)]
        )
        region_means = vertices.mean().drop(-1, errors="ignore")
        surface_centroids[region_means.index] = region_means
    return surface_centroids


def _add_surface_facts(
    region_table: pd.DataFrame,
    settings: AtlasSettings,
    atlas: Atlas,
    surface_centroids: np.ndarray,
) -> None:
    """Add to a table of regions, and to an atlas' settings, what surfaces tell.

    `surface_centroids` (n_rois, 3) is NaN for regions that the annotations do not hold.
    """
    is_on_surface = ~np.isnan(surface_centroids[:, 0])
    off_surface = atlas.regions["name"][atlas.cortex & ~is_on_surface]
    if len(off_surface):
        absence_note = (
            f"without a surface, not in the annotation: {listed(off_surface, 8)}"
        )
        settings["notes"].append(absence_note)
    if "structure" not in region_table:
        region_table["structure"] = atlas.regions["structure"].mask(
            is_on_surface, "cortex"
        )
    if atlas.regions["x"].isna().all():
        region_table[["x", "y", "z"]] = surface_centroids.round(1)
        settings["space"] = "MNI305"
