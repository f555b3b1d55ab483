"""Values per region as files that other programs read: GIFTI, NIfTI and one table."""

import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data import write_tsv
from brainlsap.evaluation import Evaluation, rank_regions
from brainlsap.evaluation.ranking import models_with_scales
from brainlsap.exceptions import ParameterError
from brainlsap.files import check_outputs, replace_when_whole
from brainlsap.images.parcellation import LabelImage, read_label_image
from brainlsap.images.volumes import read_volume
from brainlsap.report.brain import region_maps
from brainlsap.text import listed


class ExportedFiles(list[Path]):
    """Files of an export, and what their images leave out.

    Attributes
    ----------
    notes : tuple of str
        Regions with values that images leave out, and how to get them.
    """

    def __init__(self, paths: Iterable[Path], notes: Iterable[str] = ()) -> None:
        super().__init__(paths)
        self.notes = tuple(notes)

    def __repr__(self) -> str:
        """Return the list, and below it the notes."""
        return "\n".join([super().__repr__(), *self.notes])


def export_maps(
    maps: Any,
    folder: str | Path,
    atlas: str | Path | Atlas | None = None,
    *,
    parcellation: str | Path | None = None,
    overwrite: bool = False,
) -> ExportedFiles:
    """Write values by region name for other programs.

    - `regions.tsv`: one row a region with the columns that ggseg (`label`, `hemi`)
      knows regions by, and one column a map; `n/a` where there is no value.
    - `hemi-{L,R}_space-fsaverage5_regions.shape.gii`: GIFTI for Connectome Workbench,
      FreeView or the ENIGMA toolbox, one array a map; NaN on the medial wall. For an
      atlas with surface labels.
    - `desc-<map>_regions.nii.gz`: an image on the parcellation's grid; 0 outside and
      where there is no value, as viewers expect. With a parcellation, or if the atlas'
      folder holds `parcellation.nii.gz`.

    Parameters
    ----------
    maps : Evaluation; or Series, DataFrame or mapping
        The relative heat scale of every region, one map a model, as
        :func:`brainlsap.evaluation.rank_regions` has it; or one map or several by name,
        as :func:`brainlsap.report.plot_regions` takes them; a Series by its own.
    folder : str or Path
        Made if need be.
    atlas : str, Path or Atlas, optional
        What :func:`brainlsap.atlas.load_atlas` takes; by default of the evaluation,
        else "destrieux160".
    parcellation : str or Path, optional
        Image of labels, such as `aparc.a2009s+aseg.mgz` in the space that is wanted;
        of other numbers with a table of `index` and `name` beside it, `<image>.tsv`.
    overwrite : bool
        Whether files of these names may be replaced.

    Returns
    -------
    list of Path
        The files, in the order above. Its `notes` name regions with values that the
        images leave out, such as the subcortex on surfaces, and how to get them.

    Raises
    ------
    RegionNameError
        If a name is unknown, or a region has two values.
    ParameterError
        If there is no value, two maps would have one name, or a file is there already.
    FileFormatError
        If the parcellation cannot be read.
    """
    if isinstance(maps, Evaluation):
        atlas, maps = atlas or maps.cohort.atlas, relative_scales(maps)
    folder, atlas = Path(folder), load_atlas(atlas or "destrieux160")
    alone = maps.name if isinstance(maps, pd.Series) and maps.name else "value"
    values = region_maps(maps, atlas).rename(columns={"": str(alone)})
    regions = _named_regions(atlas)
    if len({*map(_slug, values)}) < values.shape[1] or {*regions} & {*values}:
        raise ParameterError(
            "maps must have names that differ in their letters and digits and are none "
            f"of {', '.join(regions)}; got {', '.join(map(repr, values))}."
        )
    images = _surfaces(values, atlas) if atlas.has_surfaces else {}
    on_surface: set[str] = set()
    if atlas.has_surfaces:
        vertices = [atlas.vertex_labels(side) for side in "LR"]
        on_surface = {atlas.names[i] for i in np.unique(vertices) if i >= 0}
    in_volume: set[str] = set()
    own_files = Path(atlas.folder).glob("*") if atlas.folder is not None else ()
    if parcellation is None and atlas.folder is not None:
        own = Path(atlas.folder, "parcellation.nii.gz")
        parcellation = own if own.is_file() else None
    if parcellation is not None:
        labelled = read_label_image(parcellation, atlas)
        in_volume = {atlas.names[i] for i in labelled.positions.values()}
        images |= _volumes(values, atlas, labelled)
    paths = [folder / name for name in ("regions.tsv", *images)]
    inputs = (parcellation, *own_files)
    check_outputs(paths, inputs=inputs, overwrite=overwrite)
    write_tsv(regions.join(values, on="name"), paths[0])
    for name, image in images.items():
        with replace_when_whole(folder / name) as partial:
            image.to_filename(partial)
    with_values = values.index[values.notna().any(axis=1)]
    notes = _name_left_out(
        with_values, on_surface, in_volume, parcellation, atlas.has_surfaces
    )
    return ExportedFiles(paths, notes)


def relative_scales(evaluation: Evaluation) -> pd.DataFrame:
    """Return the relative heat scale of every region, a column a model."""
    names = models_with_scales(evaluation)
    found = {k: rank_regions(evaluation, k).set_index("region") for k in names}
    return pd.DataFrame({k: one["relative_scale"] for k, one in found.items()})


def _named_regions(atlas: Atlas) -> pd.DataFrame:
    """Return the regions by the names that other programs know."""
    regions, side = atlas.regions, atlas.regions["hemisphere"]
    cortical = regions["structure"] != "subcortex"
    annotated = regions["annot_name"].where(cortical, "").fillna("")
    # ggseg has kept the name that FreeSurfer gave the thalamus until version 6.
    label = regions["name"].str.replace("Thalamus$", "Thalamus-Proper", regex=True)
    found = regions.assign(
        label=label.mask(annotated != "", side.str.lower() + "h_" + annotated),
        hemi=side.map({"L": "left", "R": "right"}).fillna("midline"),
    )
    return found[["name", "label", "hemi", "lobe", "freesurfer_id"]]


def _surfaces(values: pd.DataFrame, atlas: Atlas) -> dict[str, Any]:
    from nibabel.gifti import GiftiDataArray, GiftiImage, GiftiMetaData

    images = {}
    for side, structure in (("L", "CortexLeft"), ("R", "CortexRight")):
        labels = atlas.vertex_labels(side)  # -1, where there is none, finds the NaN
        meta = GiftiMetaData({"AnatomicalStructurePrimary": structure})
        image = GiftiImage(meta=meta)
        for name, one in values.items():
            data = np.append(one, np.nan)[labels].astype(np.float32)
            named: Any = {"meta": GiftiMetaData({"Name": name})}
            part = GiftiDataArray(data, "NIFTI_INTENT_SHAPE", **named)
            image.add_gifti_data_array(part)
        images[f"hemi-{side}_space-fsaverage5_regions.shape.gii"] = image
    return images


def _name_left_out(
    regions: Collection[str],
    on_surface: Collection[str],
    in_volume: Collection[str],
    parcellation: str | Path | None,
    has_surfaces: bool,
) -> list[str]:
    """Return which regions with values the images leave out, and how to get them."""
    messages = []
    table = "regions.tsv has all values"
    not_drawn = [name for name in regions if name not in {*on_surface, *in_volume}]
    if not has_surfaces and parcellation is None:
        return [
            "no image was written: the atlas has neither surfaces nor an image. "
            f"parcellation= (--parcellation IMAGE) writes NIfTI maps; {table}."
        ]
    if has_surfaces and parcellation is None and not_drawn:
        messages.append(
            f"the surfaces (.gii) leave out {len(not_drawn)} of {len(regions)} regions "
            f"with values: {listed(not_drawn)}. parcellation= (--parcellation IMAGE) "
            f"writes NIfTI maps with them; {table}."
        )
    not_in_volume = [name for name in regions if name not in in_volume]
    if parcellation is not None and not_in_volume:
        messages.append(
            f"the NIfTI maps leave out {len(not_in_volume)} of {len(regions)} regions "
            f"with values, which {Path(parcellation).name} does not have: "
            f"{listed(not_in_volume)}. Give an image with them; {table}."
        )
    return messages


def _volumes(
    values: pd.DataFrame, atlas: Atlas, labelled: LabelImage
) -> dict[str, Any]:
    from nibabel import Nifti1Image

    parcellation = labelled.path
    is_numbered = atlas.folder or (atlas.regions["freesurfer_id"] > 0).any()
    if not is_numbered and labelled.is_order:
        told = "which number is whose is not said; write a table of index and name"
        raise ParameterError(f"{parcellation}: {told} beside it, of its name with .tsv")
    voxels, affine, header = read_volume(parcellation)
    space = int(header["sform_code"]) if "sform_code" in header else 0  # such as MNI's
    labels = voxels.astype(np.int32)
    place_of = pd.Series(labelled.positions)
    place_of = place_of.reindex(range(labels.max() + 1), fill_value=-1)
    images = {}
    for name, one in values.items():
        data = np.append(one.fillna(0), 0)[place_of.to_numpy()[labels]]
        volume = Nifti1Image(data.astype(np.float32), affine)
        volume.set_sform(affine, space or 2)
        volume.header.set_xyzt_units("mm")
        images[f"desc-{_slug(name)}_regions.nii.gz"] = volume
    return images


def _slug(name: str) -> str:
    return re.sub(r"[^0-9A-Za-z]", "", name) or "values"
