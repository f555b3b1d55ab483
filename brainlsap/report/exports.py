"""Values per region as files that other programs read: GIFTI, NIfTI and one table."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.data import write_tsv
from brainlsap.evaluation import Evaluation, rank_regions
from brainlsap.evaluation.ranking import models_with_scales
from brainlsap.exceptions import ParameterError
from brainlsap.files import replace_when_whole
from brainlsap.report.brain import find_atlas, region_maps

# What the ENIGMA toolbox calls the structures below the cortex, after a side's letter.
_ENIGMA = {
    "accumbens": "accumb",
    "amygdala": "amyg",
    "caudate": "caud",
    "hippocampus": "hippo",
    "pallidum": "pal",
    "putamen": "put",
    "thalamus": "thal",
}
_COLUMNS = {
    "name": "Name of the region in the atlas.",
    "label": "Label that ggseg (R) joins its atlases by.",
    "hemi": "Hemisphere, as ggseg has it.",
    "Structure": "Name of the region in tables of the ENIGMA toolbox.",
    "lobe": "Lobe that the region belongs to.",
    "freesurfer_id": "Number of the region in FreeSurfer's images; -1 if it has none.",
}


def export_maps(
    maps: Any,
    folder: str | Path,
    atlas: str | Path | Atlas | None = None,
    *,
    parcellation: str | Path | None = None,
    measure: str = "value",
    units: str = "arbitrary",
) -> list[Path]:
    """Write values by region name for other programs.

    - `regions.tsv`, and what its columns are in `regions.json`: one row a region with
      the columns that ggseg (`label`, `hemi`) and the ENIGMA toolbox (`Structure`)
      know regions by, and one column a map; `n/a` where there is no value.
    - `hemi-{L,R}_space-fsaverage5_regions.shape.gii`: GIFTI for Connectome Workbench,
      FreeView or the ENIGMA toolbox, one array a map; NaN on the medial wall. For an
      atlas with surface labels.
    - `desc-<map>_regions.nii.gz`: an image on the parcellation's grid; NaN outside.
      With a parcellation, or if the atlas' folder holds `parcellation.nii.gz`.

    Parameters
    ----------
    maps : Evaluation; or Series, DataFrame or mapping
        The relative heat scale of every region, one map a model, as
        :func:`brainlsap.evaluation.rank_regions` has it; or one map or several by name,
        as :func:`brainlsap.report.plot_regions` takes them.
    folder : str or Path
        Made if need be; files of these names are replaced.
    atlas : str, Path or Atlas, optional
        What :func:`brainlsap.atlas.load_atlas` takes; by default of the evaluation,
        else "destrieux160".
    parcellation : str or Path, optional
        Image of labels, such as `aparc.a2009s+aseg.mgz` in the space that is wanted.
    measure, units : str
        What the values are, for `regions.json`.

    Returns
    -------
    list of Path
        The files, in the order above.

    Raises
    ------
    RegionNameError
        If a name is unknown, or a region has two values.
    ParameterError
        If there is no value, or two maps would have one name.
    FileFormatError
        If the parcellation cannot be read.
    """
    if isinstance(maps, Evaluation):
        atlas = atlas or find_atlas(maps) or maps.cohort.atlas_name
        measure, units = "heat scale relative to the median region", "1"
        maps = relative_scales(maps)
    atlas, folder = load_atlas(atlas or "destrieux160"), Path(folder)
    values = {name or measure: one for name, one in region_maps(maps, atlas).items()}
    if len(set(map(_slug, values))) < len(values) or {*_COLUMNS} & {*values}:
        raise ParameterError(
            "maps must have names that differ in their letters and digits and are none "
            f"of {', '.join(_COLUMNS)}; got {', '.join(map(repr, values))}."
        )
    about = {"Description": measure, "Units": units}
    write_tsv(_named_regions(atlas).assign(**values), folder / "regions.tsv")
    described: dict[str, Any] = {k: {"Description": v} for k, v in _COLUMNS.items()}
    described |= dict.fromkeys(values, about)
    with replace_when_whole(folder / "regions.json") as partial:
        partial.write_text(json.dumps(described, indent=1), "utf-8")
    images = _surfaces(values, atlas) if atlas.has_surfaces else {}
    if parcellation is None and atlas.folder is not None:
        own = Path(atlas.folder, "parcellation.nii.gz")
        parcellation = own if own.is_file() else None
    if parcellation is not None:
        images |= _volumes(values, atlas, Path(parcellation))
    for name, image in images.items():
        with replace_when_whole(folder / name) as partial:
            image.to_filename(partial)
    return [folder / name for name in ("regions.tsv", "regions.json", *images)]


def relative_scales(evaluation: Evaluation) -> dict[str, pd.Series]:
    """Return the relative heat scale of every region, by model."""
    return {
        name: rank_regions(evaluation, name).set_index("region")["relative_scale"]
        for name in models_with_scales(evaluation)
    }


def _named_regions(atlas: Atlas) -> pd.DataFrame:
    """Return the regions by the names of other programs: the columns of _COLUMNS."""
    regions, side = atlas.regions, atlas.regions["hemisphere"]
    names, cortical = regions["name"], regions["structure"] == "cortex"
    annotated = regions["annot_name"].where(cortical, "").fillna("")
    below = names.str.lower().str.extract(f"({'|'.join(_ENIGMA)})")[0].map(_ENIGMA)
    # ggseg has kept the name that FreeSurfer gave the thalamus until version 6.
    label = names.str.replace("Thalamus$", "Thalamus-Proper", regex=True)
    structure = (side + below).fillna(names)
    has_label = annotated != ""
    return pd.DataFrame(
        {
            "name": names,
            "label": label.mask(has_label, side.str.lower() + "h_" + annotated),
            "hemi": side.map({"L": "left", "R": "right"}).fillna("midline"),
            "Structure": structure.mask(has_label, side + "_" + annotated),
            "lobe": regions["lobe"],
            "freesurfer_id": regions["freesurfer_id"],
        }
    )


def _surfaces(values: Mapping[str, np.ndarray], atlas: Atlas) -> dict[str, Any]:
    from nibabel.gifti import GiftiDataArray, GiftiImage, GiftiMetaData

    kind: Any = {"intent": "NIFTI_INTENT_SHAPE", "datatype": "NIFTI_TYPE_FLOAT32"}
    images = {}
    for side, structure in (("L", "CortexLeft"), ("R", "CortexRight")):
        labels = atlas.vertex_labels(side)  # -1, where there is none, finds the NaN
        arrays = [np.append(one, np.nan)[labels] for one in values.values()]
        parts = [
            GiftiDataArray(
                one.astype(np.float32), meta=GiftiMetaData({"Name": name}), **kind
            )
            for name, one in zip(values, arrays, strict=True)
        ]
        meta = GiftiMetaData({"AnatomicalStructurePrimary": structure})
        name = f"hemi-{side}_space-fsaverage5_regions.shape.gii"
        images[name] = GiftiImage(darrays=parts, meta=meta)
    return images


def _volumes(
    values: Mapping[str, np.ndarray], atlas: Atlas, parcellation: Path
) -> dict[str, Any]:
    from nibabel import Nifti1Image

    from brainlsap.images.parcellation import read_label_image

    image = read_label_image(parcellation, atlas)
    place_of = np.full(int(image.values.max()) + 1, -1)
    place_of[list(image.positions)] = list(image.positions.values())
    images = {}
    for name, one in values.items():
        data = np.append(one, np.nan)[place_of[image.values]].astype(np.float32)
        volume = Nifti1Image(data, image.affine)
        volume.header.set_xyzt_units("mm")
        images[f"desc-{_slug(name)}_regions.nii.gz"] = volume
    return images


def _slug(name: str) -> str:
    return re.sub(r"[^0-9A-Za-z]", "", name) or "values"
