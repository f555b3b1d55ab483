"""Make an atlas of what a user has: annotations, a table of labels, an image."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas, load_atlas
from brainlsap.atlas.atlas import complete_regions
from brainlsap.atlas.region_names import HEMISPHERE_WORDS, is_outside, split_name
from brainlsap.atlas.surfaces import fsaverage5, read_annotation
from brainlsap.data.row_order import read_labels
from brainlsap.data.tables import SIDE_COLUMNS, find_column, listed, write_tsv
from brainlsap.exceptions import FileFormatError, ParameterError, reading
from brainlsap.files import fill_folder

# Vertices of a hemisphere of fsaverage5, 6 and fsaverage, each the first of the next.
_N_VERTICES = (10242, 40962, 163842)


def make_atlas(
    folder: str | Path,
    *,
    annot: str | Path | None = None,
    labels: str | Path | None = None,
    image: str | Path | None = None,
) -> Atlas:
    """Make an atlas of one's own: a folder that every function and command takes.

    Parameters
    ----------
    folder : str or Path
        To make; its name is that of the atlas.
    annot : path, optional
        FreeSurfer's annotation `lh.NAME.annot` of fsaverage, fsaverage6 or fsaverage5,
        with `rh.NAME.annot` beside it: the surfaces and, without `labels`, the names.
        FreeSurfer's stats of NAME are then read by name.
    labels : path, optional
        Names of the regions in order: a column `name` (or `region`, `roi`, `label`
        ...), also `hemisphere`, `x`, `y`, `z` (mm) or further ones, and the number of
        each label in `image` (`index`, `id`, `no` ...); or a lookup table like
        FreeSurferColorLUT.txt; or a name on each line.
    image : path, optional
        NIfTI of the numbers in `labels`, in MNI152: centroids are the centres of mass.
        Labels that the image does not hold are left out.

    Returns
    -------
    Atlas
        As `load_atlas(folder)` reads it.

    Raises
    ------
    ParameterError
        Where neither `annot` nor `labels` names the regions, or the folder exists.
    FileFormatError
        Where a file cannot be read, names and labels differ, or names stand twice.
    """
    from nibabel.freesurfer import write_annot

    if annot is None and labels is None:
        raise ParameterError("annot= or labels= must name the regions; give one.")
    settings: dict[str, Any] = {"file_words": [Path(folder).name.lower()]}
    sides = {} if annot is None else _read_pair(Path(annot))
    if annot is not None:
        known = Path(annot).name[3:].removesuffix(".annot")
        settings |= {"annotation": known, "segmentation": f"{known}+aseg.mgz"}
    if labels is not None:
        table = read_labels(labels)
        table = table[table["index"] != "0"].reset_index(drop=True)
    else:
        rows = [
            (name, side, name)
            for side, (_, names) in sides.items()
            for name in names
            if not is_outside(name)
        ]
        table = pd.DataFrame(rows, columns=["name", "hemisphere", "annot_name"])
    said = table["name"].map(lambda name: split_name(name)[0])
    table = table.rename(columns={find_column(table, SIDE_COLUMNS): "hemisphere"})
    if "hemisphere" not in table:
        table["hemisphere"] = said.fillna("M")
    elif table["name"].duplicated().any():  # one name serves both sides
        side = table["hemisphere"].str.lower().map(HEMISPHERE_WORDS)
        sided = side.str.lower() + "h_" + table["name"]
        table["name"] = table["name"].where(said.notna() | side.isna(), sided)
    if "index" in table and (numbers := table.pop("index")).ne("").all():
        table["freesurfer_id"] = numbers
    with fill_folder(folder) as partial:
        if image is not None:
            table = _place_in_image(table, Path(image), partial / "parcellation.nii.gz")
        regions = complete_regions(table, str(labels or annot))
        for side, (codes, names) in sides.items():
            colours = np.outer(np.arange(1, len(names) + 1), [67, 149, 1, 0]) % 256
            path = partial / f"{side.lower()}h.annot"
            write_annot(path, codes, colours, names, fill_ctab=True)
        if annot is not None and regions["x"].isna().all():
            atlas = Atlas(Path(folder).name, regions)
            table[["x", "y", "z"]] = _centres_on_surface(atlas, Path(annot)).round(1)
            settings["space"] = "MNI305"
        write_tsv(table, partial / "regions.tsv")
        text = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
        (partial / "atlas.json").write_text(text, encoding="utf-8")
    return load_atlas(folder)


def _read_pair(left: Path) -> dict[str, tuple[np.ndarray, list[str]]]:
    """Return the number of each vertex' name, and the names, of both hemispheres."""
    if not left.name.startswith("lh."):
        raise ParameterError(f"annot= must be a file lh.NAME.annot, got {left.name}.")
    found = {}
    for side in "LR":
        path = left.with_name(f"{side.lower()}{left.name[1:]}")
        codes, names = read_annotation(path)
        if len(codes) not in _N_VERTICES:
            raise FileFormatError(
                f"{path}: {len(codes)} vertices; expected one of {_N_VERTICES}, as of "
                "fsaverage5, fsaverage6 and fsaverage. Map it by mri_surf2surf."
            )
        found[side] = codes[: _N_VERTICES[0]], names
    return found


def _place_in_image(table: pd.DataFrame, image: Path, copy: Path) -> pd.DataFrame:
    """Return the regions that an image holds, with their centres of mass; copy it."""
    import nibabel
    from scipy.ndimage import center_of_mass

    with reading(image, "an image of labels"):
        volume: Any = nibabel.load(image)
        voxels = np.asarray(volume.dataobj)
        nibabel.save(nibabel.Nifti1Image(voxels, volume.affine), copy)
    if "freesurfer_id" not in table:
        table["freesurfer_id"] = range(1, len(table) + 1)
    numbers, present = table["freesurfer_id"].astype(int), np.setdiff1d(voxels, [0])
    unnamed = np.setdiff1d(present, numbers)
    if len(unnamed):
        raise FileFormatError(
            f"{image}: labels {listed(map(str, unnamed.tolist()), 8)} have no name in "
            "labels=. Name them, or set their voxels to 0."
        )
    is_there = numbers.isin(present)
    places = center_of_mass(np.ones(voxels.shape), voxels, numbers[is_there].to_numpy())
    places = nibabel.affines.apply_affine(volume.affine, places).round(1)
    xyz = pd.DataFrame(places, columns=[*"xyz"])
    return table[is_there].reset_index(drop=True).assign(**xyz)


def _centres_on_surface(atlas: Atlas, left: Path) -> np.ndarray:
    """Return the mean of each region's vertices half way through fsaverage's cortex."""
    centres = np.full((len(atlas), 3), np.nan)
    for side in "LR":
        middle = (fsaverage5(side, "white")[0] + fsaverage5(side, "pial")[0]) / 2
        path = left.with_name(f"{side.lower()}{left.name[1:]}")
        labels = atlas.vertex_labels(side, path)[: len(middle)]
        for row in np.unique(labels[labels >= 0]):
            centres[row] = middle[labels == row].mean(axis=0)
    return centres
