"""Make an atlas of what a user has: annotations, a table of labels, an image."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.atlas import Atlas, available_atlases, load_atlas
from brainlsap.atlas.atlas import complete_regions, find_sides
from brainlsap.atlas.region_names import find_side, is_outside, split_name
from brainlsap.atlas.surfaces import fsaverage5, read_annotation
from brainlsap.data.row_order import read_labels
from brainlsap.data.tables import SIDE_COLUMNS, find_region_column, listed, write_tsv
from brainlsap.exceptions import FileFormatError, ParameterError
from brainlsap.files import fill_folder

# Vertices of a hemisphere of fsaverage5, 6 and fsaverage, each the first of the next.
_N_VERTICES = (10242, 40962, 163842)
# Columns of tables of labels that have a meaning, and how their heads may be called.
_PLACES = ("{}", "mni_{}", "centroid_{}", "{}_mm", "{}_mni", "mni_{}_mm")
_BACKGROUND = ("", "background", "unknown", "clear label", "exterior")
_HEADS = {
    "hemisphere": SIDE_COLUMNS,
    "long_name": ("long_name", "full_name", "description"),
    **{axis: [head.format(axis) for head in _PLACES] for axis in "xyz"},
}
# mm between the place of a region in a table and its centre in the image.
_FARTHEST = 20


def make_atlas(  # noqa: C901 (step by step)
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
        Names of the regions in order: a column `name` (or `region`, `roi_name`,
        `label` ...), also `hemisphere`, `structure`, `full_name`, `x`, `y`, `z` (mm;
        or `mni_x` ...), and the number of each label in `image` (`index`, `id`, `no`
        ...); or lines of a number and a name, as of FreeSurfer, MRtrix, AAL, ITK-SNAP,
        FSL or Connectome Workbench; or of a name and its place; or a name on each
        line, which counts labels from 1 ("Background" or "Unknown" on the first: 0).
    image : path, optional
        NIfTI of the numbers in `labels`, in MNI152: centroids are the centres of mass,
        whatever `x`, `y`, `z` say, and say the sides that names do not. Labels that
        the image does not hold are left out.

    Returns
    -------
    Atlas
        As `load_atlas(folder)` reads it; `settings["notes"]` say what was left out.

    Raises
    ------
    ParameterError
        Where neither `annot` nor `labels` names the regions, or the folder exists.
    FileFormatError
        Where a file cannot be read, names and labels differ, names stand twice, or
        regions lie far outside of the brain, on another side than their names say, or
        more than 20 mm from `x`, `y`, `z`.
    """
    import nibabel

    from brainlsap.images.volumes import read_volume

    if Path(folder).name in available_atlases():
        raise ParameterError(
            f"folder= must have another name than {', '.join(available_atlases())}, "
            "which come with brainlsap."
        )
    if annot is None and labels is None:
        raise ParameterError("annot= or labels= must name the regions; give one.")
    settings: dict[str, Any] = {"file_words": [Path(folder).name.lower()], "notes": []}
    volume: Any = None
    if image is not None:
        voxels, affine, header = read_volume(image)
        volume = nibabel.Nifti1Image(voxels, affine, header, dtype=voxels.dtype)
    sides = {} if annot is None else _read_pair(Path(annot))
    if annot is not None:
        known = Path(annot).name[3:].removesuffix(".annot")
        settings |= {"annotation": known, "segmentation": f"{known}+aseg.mgz"}
    table = _name_regions(labels, volume, sides)
    if "x" in table and table.attrs.get("is_list"):
        told = "taken for x, y, z in mm of MNI152: the three numbers beside each name"
        settings["notes"].append(told)
    if volume is not None:
        named, table = table["name"], _place(table, volume, f"{image}", f"{labels}")
        absent = listed(named[~named.isin(table["name"])], 8)
        settings["notes"] += [f"left out, not in the image: {absent}"] if absent else []
    if "hemisphere" not in table:
        table["hemisphere"] = find_sides(table)
    if table["name"].duplicated().any():
        side = table["hemisphere"].map(find_side, na_action="ignore")
        sided = side.str.lower() + "h_" + table["name"]  # one name serves both sides
        is_bare = table["name"].map(split_name).str[0].isna() & side.notna()
        table["name"] = table["name"].mask(is_bare, sided)
    where = " of ".join(str(one) for one in (labels or annot, image) if one)
    regions = complete_regions(table, where)
    with fill_folder(folder) as partial:
        if volume is not None:
            nibabel.save(volume, partial / "parcellation.nii.gz")
        for side, (codes, names) in sides.items():
            colours = np.outer(np.arange(1, len(names) + 1), [67, 149, 1, 0]) % 256
            path = partial / f"{side.lower()}h.annot"
            coarse = codes[: _N_VERTICES[0]]
            nibabel.freesurfer.write_annot(path, coarse, colours, names, fill_ctab=True)
        if annot is not None:
            atlas = Atlas(Path(folder).name, regions)
            try:
                centres = _centres_on_surface(atlas, Path(annot))
            except FileFormatError as error:
                raise FileFormatError(
                    "does not name all regions of the annotation, "
                    f"or not with sides (lh_, rh_, or a column hemisphere): {error}",
                    path=labels or annot,
                ) from error
            is_bare = atlas.cortex & np.isnan(centres[:, 0])
            if bare := listed(regions["name"][is_bare], 8):
                told = f"without a surface, not in the annotation: {bare}"
                settings["notes"].append(told)
            if "structure" not in table:
                on_surface = ~np.isnan(centres[:, 0])
                table["structure"] = regions["structure"].mask(on_surface, "cortex")
            if regions["x"].isna().all():
                table[["x", "y", "z"]] = centres.round(1)
                settings["space"] = "MNI305"
        write_tsv(table, partial / "regions.tsv")
        (partial / "atlas.json").write_text(json.dumps(settings, indent=2) + "\n")
    return load_atlas(folder)


def _name_regions(labels: Any, volume: Any, sides: dict[str, Any]) -> pd.DataFrame:
    """Return the regions of a table of labels, or else those of annotations."""
    if labels is not None:
        present = [] if volume is None else np.setdiff1d(volume.dataobj, [0]).tolist()
        table = read_labels(labels, present)
        is_none = table["name"].str.strip(" ?").str.lower().isin(_BACKGROUND)
        # a list without numbers may begin with what 0 stands for
        is_zero = table["index"] == "0"
        if not any(table["index"]):
            is_zero.iloc[0] = is_none.iloc[0]
        if wrong := [*table["name"][is_zero & ~is_none]]:
            raise FileFormatError(
                f"the number of {wrong[0]} is 0, which is the background of "
                "an image. Count regions as the image does, mostly from 1.",
                path=labels,
            )
        table = table[~is_zero].reset_index(drop=True)
        table["freesurfer_id"] = table.pop("index")
        if volume is None and table["freesurfer_id"].duplicated().any():
            table["freesurfer_id"] = "n/a"  # of annotations each side may count its own
    else:
        pairs = [(name, side) for side, (_, names) in sides.items() for name in names]
        rows = [(name, side, name) for name, side in pairs if not is_outside(name)]
        table = pd.DataFrame(rows, columns=["name", "hemisphere", "annot_name"])
    for name, heads in _HEADS.items():
        table = table.rename(columns={find_region_column(table, heads): name})
    return table


def _read_pair(left: Path) -> dict[str, tuple[np.ndarray, list[str]]]:
    """Return the number of each vertex' name, and the names, of both hemispheres."""
    if not left.name.startswith("lh."):
        raise ParameterError(f"annot= must be a file lh.NAME.annot, got {left.name}.")
    files = {side: left.with_name(f"{side.lower()}{left.name[1:]}") for side in "LR"}
    found = {side: read_annotation(path) for side, path in files.items()}
    for side, (codes, _) in found.items():
        if len(codes) not in _N_VERTICES:
            raise FileFormatError(
                f"{len(codes)} vertices; expected one of {_N_VERTICES}, "
                "as of fsaverage5, fsaverage6 and fsaverage. Map it by mri_surf2surf.",
                path=files[side],
            )
    return found


def _place(table: pd.DataFrame, volume: Any, image: str, labels: str) -> pd.DataFrame:
    """Return the regions that an image holds, with their centres of mass."""
    from nibabel.affines import apply_affine
    from scipy.ndimage import center_of_mass

    voxels = np.asarray(volume.dataobj)
    if (voxels != np.round(voxels)).any():
        raise FileFormatError(
            "labels must be whole numbers; it was interpolated. Resample "
            "the parcellation by nearest neighbour.",
            path=image,
        )
    if not any(table.get("freesurfer_id", ())):
        table["freesurfer_id"] = range(1, len(table) + 1)
    numbers = pd.to_numeric(table["freesurfer_id"], errors="coerce")
    is_there = numbers.isin(np.unique(voxels))
    again = table["name"][is_there & numbers.duplicated(keep=False)]
    if len(again):
        raise FileFormatError(
            f"{listed(again, 8)} share their numbers with one another; "
            "expected one name for each label. Correct the numbers.",
            path=labels,
        )
    unnamed = [*map("{:.9g}".format, np.setdiff1d(voxels, [0, *numbers]))]
    if unnamed:
        spare = listed(table["name"][~is_there], 8)
        spare = f", of which the image does not hold {spare}" if spare else ""
        raise FileFormatError(
            f"labels= has no name for {listed(unnamed, 8)}; it names "
            f"{numbers.min():g} to {numbers.max():g} (a list without numbers counts "
            f"from 1){spare}. Add a line for each, or set them to 0.",
            path=image,
        )
    table = table[is_there].reset_index(drop=True)
    centres = center_of_mass(
        np.ones(voxels.shape), voxels, numbers[is_there].to_numpy()
    )
    places = apply_affine(volume.affine, centres).round(1)
    said = table.reindex(columns=[*"xyz"]).apply(pd.to_numeric, errors="coerce")
    given = said.to_numpy(float)
    far = [
        f"{table['name'][i]} at {(*map(round, given[i]),)}, not {(*map(round, at),)}"
        for i, at in enumerate(places)
        if np.linalg.norm(given[i] - at) > _FARTHEST
    ]
    if far:
        raise FileFormatError(
            f"x, y, z of {len(far)} of {len(table)} regions are more than "
            f"{_FARTHEST} mm from their centres in {image}: {listed(far, 3)}. Names or "
            "numbers are exchanged, or the table is of another image; correct it, or "
            "leave x, y and z out, as the image's count.",
            path=labels,
        )
    table[["x", "y", "z"]] = places
    return table


def _centres_on_surface(atlas: Atlas, left: Path) -> np.ndarray:
    """Return the mean of each region's vertices half way through fsaverage's cortex."""
    centres = np.full((len(atlas), 3), np.nan)
    for side in "LR":
        middle = (fsaverage5(side, "white")[0] + fsaverage5(side, "pial")[0]) / 2
        path = left.with_name(f"{side.lower()}{left.name[1:]}")
        labels = atlas.vertex_labels(side, path)[: len(middle)]
        means = pd.DataFrame(middle).groupby(labels).mean().drop(-1, errors="ignore")
        centres[means.index] = means
    return centres
