"""Read the surface files of an atlas: vertex labels and subcortical meshes."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from brainlsap.data.annotations import read_annotated
from brainlsap.data.gifti_files import read_gifti
from brainlsap.data.region_messages import nearest_names
from brainlsap.data.region_names import as_text, is_outside
from brainlsap.exceptions import FileFormatError, ParameterError

if TYPE_CHECKING:
    from brainlsap.data.atlas import Atlas


def read_vertex_labels(atlas: "Atlas", hemisphere: str) -> np.ndarray:
    """Read the annotation of one hemisphere as positions in the atlas.

    Parameters
    ----------
    atlas : Atlas
        The region set; its folder holds `lh.annot` and `rh.annot`.
    hemisphere : {"L", "R"}
        The side.

    Returns
    -------
    ndarray of int, shape (n_vertices,)
        Position of the region in the atlas; -1 where there is none.

    Raises
    ------
    ParameterError
        If `hemisphere` is neither L nor R.
    FileFormatError
        If there is no annotation, or it names an unknown region.
    """
    if hemisphere not in ("L", "R"):
        raise ParameterError(f"hemisphere must be 'L' or 'R', got {hemisphere!r}.")
    path = Path(atlas.folder or "", f"{hemisphere.lower()}h.annot")
    if atlas.folder is None or not path.is_file():
        raise FileFormatError(
            f"Atlas {atlas.name} has no surface labels (no file {path}). Put lh.annot "
            "and rh.annot, on fsaverage5, beside its regions.tsv."
        )
    codes, labels = read_annotated(path)
    places = np.full(len(labels) + 1, -1)  # the last one answers code -1: no label
    for code, label in enumerate(labels):
        place = atlas.find(label, hemisphere)
        if place is not None:
            places[code] = place
        elif not is_outside(label):
            near = nearest_names(label, atlas.names, hemisphere)
            raise FileFormatError(
                f"{path}: label {as_text(label)!r} is unknown to atlas {atlas.name} "
                f"(nearest: {', '.join(near) or 'none'}). Rename it in the annotation "
                "or in regions.tsv."
            )
    return places[codes]


def read_meshes(
    folder: Path, names: Iterable[str]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Read the subcortical meshes of an atlas.

    Parameters
    ----------
    folder : Path
        The atlas's folder; `meshes/<name>.surf.gii` are read where they are.
    names : iterable of str
        The regions.

    Returns
    -------
    dict
        From region name to float vertices (n_vertices, 3) in mm and int faces
        (n_faces, 3).

    Raises
    ------
    FileFormatError
        If a file is no GIFTI surface.
    """
    found = {}
    for name in names:
        path = folder / "meshes" / f"{name}.surf.gii"
        if not path.is_file():
            continue
        found_in = read_gifti(path).agg_data(("pointset", "triangle"))
        try:
            points, faces = (np.array(one) for one in found_in)
        except ValueError:  # several of one kind, of different sizes
            points = faces = np.empty(0)
        if points.shape[1:] != (3,) or faces.shape[1:] != (3,):
            raise FileFormatError(
                f"{path}: a surface needs points (n, 3) and triangles (n, 3), got "
                f"{points.shape} and {faces.shape}."
            )
        found[name] = points.astype(float), faces.astype(int)
    return found
