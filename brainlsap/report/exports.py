"""Export values per region for other programs: GIFTI, NIfTI and a table."""

import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data import write_tsv
from brainlsap.evaluation import Evaluation, rank_regions
from brainlsap.evaluation.ranking import list_models_with_scales
from brainlsap.exceptions import ParameterError
from brainlsap.files import check_outputs, replace_when_whole
from brainlsap.report.brain import make_map_table
from brainlsap.text import join_with_commas, option_text

if TYPE_CHECKING:
    # It reads images by nibabel, which takes long to import.
    from brainlsap.images.parcellation import LabelImage


class ExportedFiles(list[Path]):
    """Files of an export, with notes on the regions that its images leave out.

    Attributes
    ----------
    notes : tuple of str
        Regions with values that images leave out, and how to get them.
    """

    def __init__(
        self, file_paths: Iterable[Path], omission_notes: Iterable[str] = ()
    ) -> None:
        super().__init__(file_paths)
        self.notes = tuple(omission_notes)

    def __repr__(self) -> str:
        """Return the list, and below it the notes."""
        return "\n".join([super().__repr__(), *self.notes])


def export_maps(
    maps: pd.Series | pd.DataFrame | Evaluation,
    folder: str | Path,
    atlas: str | Path | Atlas | None = None,
    *,
    parcellation: str | Path | None = None,
    overwrite: bool = False,
) -> ExportedFiles:
    """Write values by region name for other programs.

    - `regions.tsv`: one row per region with the columns by which ggseg identifies
      regions (`label`, `hemi`), and one column per map; `n/a` for missing values.
    - `hemi-{L,R}_space-fsaverage5_regions.shape.gii`: GIFTI for Connectome Workbench,
      FreeView or the ENIGMA toolbox, one array per map; NaN on the medial wall. Needs
      an atlas with surface labels, and a value of a cortical region.
    - `desc-<map>_regions.nii.gz`: an image on the grid of the parcellation; 0 outside
      and for missing values, as viewers expect. Needs a parcellation, or an atlas
      folder with a `parcellation.nii.gz`.

    Parameters
    ----------
    maps : Evaluation; or Series, DataFrame or mapping
        From an evaluation, one map per model with the relative scale of every
        region (:func:`brainlsap.evaluation.rank_regions`); else one or several named
        maps, as for :func:`brainlsap.report.plot_regions`. The name of a Series is
        that of its map.
    folder : str or Path
        Made if it does not exist.
    atlas : str, Path or Atlas, optional
        Argument of :func:`brainlsap.atlas.load_atlas`; by default the atlas of the
        evaluation, else "destrieux160".
    parcellation : str or Path, optional
        Label image in the space of the output, for example `aparc.a2009s+aseg.mgz`. If
        its labels are not FreeSurfer's, a table `<image>.tsv` beside it gives `index`
        and `name`.
    overwrite : bool
        Whether existing files may be replaced.

    Returns
    -------
    list of Path
        The files, in the order above. Its `notes` name the regions with values that
        the images leave out (for example the subcortex on surfaces), and how to get
        them.

    Raises
    ------
    RegionNameError
        If a name is unknown, or a region has two values.
    ParameterError
        If there is no value, two maps would have the same name, or a file exists.
    FileFormatError
        If the parcellation cannot be read.
    """
    if isinstance(maps, Evaluation):
        atlas, maps = atlas or maps.cohort.atlas, make_relative_scale_table(maps)
        if maps.empty:
            raise ParameterError(
                "this evaluation contains no scales of regions, so there is no map to "
                "export. Export the maps of the study in which the model was trained, "
                "or a table of values by region."
            )
    folder, atlas = Path(folder), load_atlas(atlas or "destrieux160")
    default_map_name = "value"
    if isinstance(maps, pd.Series) and maps.name:
        default_map_name = str(maps.name)
    map_table = make_map_table(maps, atlas).rename(columns={"": default_map_name})
    export_table = _make_region_identifier_table(atlas)
    if len({*map(_file_name_slug, map_table)}) < map_table.shape[1] or {
        *export_table
    } & {*map_table}:
        raise ParameterError(
            "the names of maps must differ in their letters or digits, and none "
            f"may be one of {', '.join(export_table)}; got "
            f"{', '.join(map(repr, map_table))}."
        )
    image_by_file_name: dict[str, Any] = {}
    surface_region_set: set[str] = set()
    valued_region_names = map_table.index[map_table.notna().any(axis=1)]
    if atlas.has_surfaces:
        vertex_labels = [atlas.vertex_labels(hemisphere) for hemisphere in "LR"]
        surface_region_set = {
            atlas.names[i] for i in np.unique(vertex_labels) if i >= 0
        }
        # Surfaces without any value would look like a failed export.
        if not surface_region_set.isdisjoint(valued_region_names):
            image_by_file_name = _make_gifti_by_file_name(map_table, atlas)
    atlas_paths = Path(atlas.folder).glob("*") if atlas.folder is not None else ()
    if parcellation is None and atlas.folder is not None:
        atlas_image_path = Path(atlas.folder, "parcellation.nii.gz")
        parcellation = atlas_image_path if atlas_image_path.is_file() else None
    volume_region_set: set[str] = set()
    if parcellation is not None:
        from brainlsap.images.parcellation import match_label_image

        label_image = match_label_image(parcellation, atlas)
        volume_region_set = {
            atlas.names[i] for i in label_image.region_index_by_label.values()
        }
        image_by_file_name |= _make_nifti_by_file_name(map_table, atlas, label_image)
    file_paths = [
        folder / file_name for file_name in ("regions.tsv", *image_by_file_name)
    ]
    check_outputs(
        file_paths, input_values=(parcellation, *atlas_paths), overwrite=overwrite
    )
    write_tsv(export_table.join(map_table, on="name"), file_paths[0])
    for file_name, image in image_by_file_name.items():
        with replace_when_whole(folder / file_name) as partial_path:
            image.to_filename(partial_path)
    omission_notes = _list_omission_notes(
        valued_region_names,
        surface_region_set,
        volume_region_set,
        parcellation,
        atlas.has_surfaces,
    )
    return ExportedFiles(file_paths, omission_notes)


def make_relative_scale_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return the relative scale of every region, one column per model."""
    scales_by_model = {}
    for model_name in list_models_with_scales(evaluation):
        ranking_table = rank_regions(evaluation, model_name).set_index("region")
        scales_by_model[model_name] = ranking_table["relative_scale"]
    return pd.DataFrame(scales_by_model)


def _make_region_identifier_table(atlas: Atlas) -> pd.DataFrame:
    """Return regions with the names by which other programs identify them."""
    region_table, hemispheres = atlas.regions, atlas.regions["hemisphere"]
    cortical_region_mask = region_table["structure"] != "subcortex"
    annot_names = region_table["annot_name"].where(cortical_region_mask, "").fillna("")
    # ggseg uses the name that FreeSurfer gave the thalamus until version 6.
    freesurfer_names = region_table["name"].str.replace(
        "Thalamus$", "Thalamus-Proper", regex=True
    )
    labelled_region_table = region_table.assign(
        label=freesurfer_names.mask(
            annot_names != "", hemispheres.str.lower() + "h_" + annot_names
        ),
        hemi=hemispheres.map({"L": "left", "R": "right"}).fillna("midline"),
    )
    return labelled_region_table[["name", "label", "hemi", "lobe", "freesurfer_id"]]


def _make_gifti_by_file_name(map_table: pd.DataFrame, atlas: Atlas) -> dict[str, Any]:
    """Return GIFTI images of the maps by file name, one per hemisphere."""
    from nibabel.gifti import GiftiDataArray, GiftiImage, GiftiMetaData

    image_by_file_name = {}
    for hemisphere, structure_name in (("L", "CortexLeft"), ("R", "CortexRight")):
        # Label -1 (no region) is the index of the NaN.
        vertex_labels = atlas.vertex_labels(hemisphere)
        image_metadata = GiftiMetaData({"AnatomicalStructurePrimary": structure_name})
        image = GiftiImage(meta=image_metadata)
        for map_name, map_values in map_table.items():
            vertex_values = np.append(map_values, np.nan)[vertex_labels].astype(
                np.float32
            )
            data_array = GiftiDataArray(
                vertex_values,
                "NIFTI_INTENT_SHAPE",
                meta=GiftiMetaData({"Name": map_name}),
            )
            image.add_gifti_data_array(data_array)
        image_by_file_name[f"hemi-{hemisphere}_space-fsaverage5_regions.shape.gii"] = (
            image
        )
    return image_by_file_name


def _list_omission_notes(
    valued_region_names: Collection[str],
    surface_region_set: Collection[str],
    volume_region_set: Collection[str],
    parcellation_path: str | Path | None,
    has_surfaces: bool,
) -> list[str]:
    """Return notes on regions that the images leave out, with a solution."""
    omission_texts = []
    remedy_text = "regions.tsv has all values"
    undrawn_region_names = [
        region_name
        for region_name in valued_region_names
        if region_name not in {*surface_region_set, *volume_region_set}
    ]
    if not has_surfaces and parcellation_path is None:
        return [
            "no image was written, because the atlas has neither surfaces nor an "
            f"image. {option_text('parcellation')} writes NIfTI maps; {remedy_text}."
        ]
    if has_surfaces and parcellation_path is None and undrawn_region_names:
        omission_texts.append(
            f"the surfaces (.gii) leave out {len(undrawn_region_names)} of "
            f"{len(valued_region_names)} regions with values: "
            f"{join_with_commas(undrawn_region_names)}. "
            f"{option_text('parcellation')} writes NIfTI maps of them; {remedy_text}."
        )
    regions_without_voxels = [
        region_name
        for region_name in valued_region_names
        if region_name not in volume_region_set
    ]
    if parcellation_path is not None and regions_without_voxels:
        omission_texts.append(
            f"the NIfTI maps leave out {len(regions_without_voxels)} of "
            f"{len(valued_region_names)} regions with values, which "
            f"{Path(parcellation_path).name} does not have: "
            f"{join_with_commas(regions_without_voxels)}. Give an image that contains "
            f"these regions; {remedy_text}."
        )
    return omission_texts


def _make_nifti_by_file_name(
    map_table: pd.DataFrame, atlas: Atlas, label_image: "LabelImage"
) -> dict[str, Any]:
    """Return NIfTI images of the maps by file name, on the grid of the label image."""
    from nibabel import Nifti1Image

    from brainlsap.images.volumes import read_volume_affine_header

    label_path = label_image.path
    has_known_labels = atlas.folder or (atlas.regions["freesurfer_id"] > 0).any()
    if not has_known_labels and label_image.is_named_by_order:
        raise ParameterError(
            f"{label_path}: the regions of the labels are unknown. Write a table with "
            "the columns index and name. Save the table in the folder of the image, "
            "under the file name of the image with the ending .tsv"
        )
    label_volume, affine, header = read_volume_affine_header(label_path)
    label_volume = label_volume.astype(np.int32)
    sform_code = int(header["sform_code"]) if "sform_code" in header else 0
    region_index_by_label = pd.Series(label_image.region_index_by_label)
    region_index_by_label = region_index_by_label.reindex(
        range(label_volume.max() + 1), fill_value=-1
    )
    region_index_of_voxel = region_index_by_label.to_numpy()[label_volume]
    image_by_file_name = {}
    for map_name, map_values in map_table.items():
        voxel_values = np.append(map_values.fillna(0), 0)[region_index_of_voxel]
        image = Nifti1Image(voxel_values.astype(np.float32), affine)
        image.set_sform(affine, sform_code or 2)
        image.header.set_xyzt_units("mm")
        image_by_file_name[f"desc-{_file_name_slug(map_name)}_regions.nii.gz"] = image
    return image_by_file_name


def _file_name_slug(map_name: str) -> str:
    """Return the letters and digits of a name, for a file name."""
    return re.sub(r"[^0-9A-Za-z]", "", map_name) or "values"
