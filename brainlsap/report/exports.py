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
    written = _write_tables(values, folder, atlas, about)
    if atlas.has_surfaces:
        written += _write_surfaces(values, folder, atlas)
    if parcellation is None and atlas.folder is not None:
        own = Path(atlas.folder, "parcellation.nii.gz")
        parcellation = own if own.is_file() else None
    if parcellation is not None:
        written += _write_volumes(values, folder, atlas, Path(parcellation))
    return written


def relative_scales(evaluation: Evaluation) -> dict[str, pd.Series]:
    """Return the relative heat scale of every region, by model."""
    return {
        name: rank_regions(evaluation, name).set_index("region")["relative_scale"]
        for name in evaluation.scales["model"].unique()
    }


def _write_tables(
    values: Mapping[str, np.ndarray], folder: Path, atlas: Atlas, about: dict[str, str]
) -> list[Path]:
    rows = []
    for region in atlas.regions.to_dict("records"):
        name, side, annotated = (
            region[one] for one in ("name", "hemisphere", "annot_name")
        )
        if region["structure"] == "cortex" and isinstance(annotated, str) and annotated:
            label, structure = f"{side.lower()}h_{annotated}", f"{side}_{annotated}"
        else:
            # ggseg has kept the name that FreeSurfer gave the thalamus until version 6.
            label = re.sub("Thalamus$", "Thalamus-Proper", name)
            short = [one for part, one in _ENIGMA.items() if part in name.lower()]
            structure = f"{side}{short[0]}" if short else name
        hemi = {"L": "left", "R": "right"}.get(side, "midline")
        own = (name, label, hemi, structure, region["lobe"], region["freesurfer_id"])
        rows.append(own)
    write_tsv(
        pd.DataFrame(rows, columns=list(_COLUMNS)).assign(**values),
        folder / "regions.tsv",
    )
    described: dict[str, dict] = {
        name: {"Description": text} for name, text in _COLUMNS.items()
    }
    described |= dict.fromkeys(values, about)
    with replace_when_whole(folder / "regions.json") as partial:
        partial.write_text(json.dumps(described, indent=1), "utf-8")
    return [folder / "regions.tsv", folder / "regions.json"]


def _write_surfaces(
    values: Mapping[str, np.ndarray], folder: Path, atlas: Atlas
) -> list[Path]:
    from nibabel.gifti import GiftiDataArray, GiftiImage, GiftiMetaData

    written = []
    for side, structure in (("L", "CortexLeft"), ("R", "CortexRight")):
        labels = atlas.vertex_labels(side)  # -1, where there is none, finds the NaN
        arrays = [
            GiftiDataArray(
                np.append(one, np.nan)[labels].astype(np.float32),
                intent="NIFTI_INTENT_SHAPE",
                datatype="NIFTI_TYPE_FLOAT32",
                meta=GiftiMetaData({"Name": name}),
            )
            for name, one in values.items()
        ]
        meta = GiftiMetaData({"AnatomicalStructurePrimary": structure})
        written.append(folder / f"hemi-{side}_space-fsaverage5_regions.shape.gii")
        with replace_when_whole(written[-1]) as partial:
            GiftiImage(darrays=arrays, meta=meta).to_filename(partial)
    return written


def _write_volumes(
    values: Mapping[str, np.ndarray], folder: Path, atlas: Atlas, parcellation: Path
) -> list[Path]:
    from nibabel import Nifti1Image

    from brainlsap.images.parcellation import read_label_image

    image = read_label_image(parcellation, atlas)
    place_of = np.full(int(image.values.max()) + 1, -1)
    place_of[list(image.positions)] = list(image.positions.values())
    written = []
    for name, one in values.items():
        data = np.append(one, np.nan)[place_of[image.values]].astype(np.float32)
        volume = Nifti1Image(data, image.affine)
        volume.header.set_xyzt_units("mm")
        written.append(folder / f"desc-{_slug(name)}_regions.nii.gz")
        with replace_when_whole(written[-1]) as partial:
            volume.to_filename(partial)
    return written


def _slug(name: str) -> str:
    return re.sub(r"[^0-9A-Za-z]", "", name) or "values"
