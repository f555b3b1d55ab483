"""Regional maps as images: GIFTI, FreeSurfer's annotations, voxels."""

from pathlib import Path

import numpy as np

from brainlsap._files import replace_when_whole
from brainlsap.report.export_record import SIDES, Export, slug, write_sidecar
from brainlsap.report.surface_sheet import LIGHT
from brainlsap.report.surface_values import palette, shared_colours


def write_gifti(export: Export, kind: str = "shape") -> list[Path]:
    """Write GIFTI files of both hemispheres, one array a map.

    Parameters
    ----------
    export : Export
        What to write.
    kind : {"shape", "func"}
        As Connectome Workbench names them.

    Returns
    -------
    list of Path
        Two files and their sidecars.
    """
    from nibabel.gifti import GiftiDataArray, GiftiImage, GiftiMetaData

    intent = {"shape": "NIFTI_INTENT_SHAPE", "func": "NIFTI_INTENT_NONE"}[kind]
    written = []
    for side, (_, _, structure) in SIDES.items():
        arrays = [
            GiftiDataArray(
                export.on_vertices(values, side).astype(np.float32),
                intent=intent,
                datatype="NIFTI_TYPE_FLOAT32",
                meta=GiftiMetaData({"Name": name or export.measure}),
            )
            for name, values in export.maps.items()
        ]
        meta = GiftiMetaData({"AnatomicalStructurePrimary": structure})
        path = export.folder / f"hemi-{side}_space-fsaverage5_regions.{kind}.gii"
        with replace_when_whole(path) as partial:
            GiftiImage(darrays=arrays, meta=meta).to_filename(partial)
        about = export.about(Space="fsaverage5", MedialWall="NaN", Hemisphere=side)
        written += [path, write_sidecar(path, about)]
    return written


def write_annotations(export: Export) -> list[Path]:
    """Write FreeSurfer's annotations: regions in the colours of their values.

    Parameters
    ----------
    export : Export
        What to write.

    Returns
    -------
    list of Path
        `lh.<map>.annot` and `rh.<map>.annot` for each map, and their sidecars.
    """
    from nibabel.freesurfer import write_annot

    colours = shared_colours(np.stack(list(export.maps.values())), "viridis", None)
    written = []
    for name, values in export.maps.items():
        shown = palette(values, colours.scale, LIGHT)
        for side, (short, _, _) in SIDES.items():
            labels = export.atlas.vertex_labels(side)
            places = np.unique(labels[labels >= 0])
            table = _distinct(np.vstack([[25, 5, 25], shown[places]]))
            names = ["Unknown", *export.atlas.regions["annot_name"].iloc[places]]
            codes = np.where(labels < 0, 0, np.searchsorted(places, labels) + 1)
            path = export.folder / f"{short}.{slug(name)}.annot"
            with replace_when_whole(path) as partial:
                write_annot(partial, codes, table, names, fill_ctab=True)
            low, high = colours.scale.get_clim()
            coloured = {"ColourMap": "viridis", "Limits": [float(low), float(high)]}
            about = export.about(Space="fsaverage5", Map=name, **coloured)
            written += [path, write_sidecar(path, about)]
    return written


def write_volumes(export: Export) -> list[Path]:
    """Write an image of voxels for each map, on the parcellation's grid.

    Parameters
    ----------
    export : Export
        With a parcellation.

    Returns
    -------
    list of Path
        Images and their sidecars; NaN outside the regions, and where there is no
        value.
    """
    from nibabel import Nifti1Image

    image = export.parcellation
    if image is None:
        return []
    codes = image.recoded({label: place + 1 for label, place in image.places.items()})
    written = []
    for name, values in export.maps.items():
        data = np.append(np.nan, values).astype(np.float32)[codes]
        volume = Nifti1Image(data, image.affine)
        volume.header.set_xyzt_units("mm")
        path = export.folder / f"desc-{slug(name)}_regions.nii.gz"
        with replace_when_whole(path) as partial:
            volume.to_filename(partial)
        about = export.about(Map=name, Parcellation=image.path.name, Background="NaN")
        written += [path, write_sidecar(path, {**about, "Notes": list(image.notes)})]
    return written


def _distinct(colours: np.ndarray) -> np.ndarray:
    """Return RGBA rows of which no two are alike; a step of 255 is not seen.

    An annotation tells regions apart by colour, so equal values would become one.
    """
    taken: set[tuple[int, ...]] = set()
    rows = []
    for colour in colours.astype(int):
        place = 0
        told = tuple(colour.tolist())
        while told in taken:
            place += 1
            green, blue = divmod(place, 16)  # inwards from either end
            sign = [1 if part <= 127 else -1 for part in colour]
            moved = colour + np.multiply(sign, [0, green, blue])
            told = tuple(moved.tolist())
        taken.add(told)
        rows.append([*told, 0])
    return np.array(rows, dtype=np.int32)
