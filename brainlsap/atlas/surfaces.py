"""Read surface files: FreeSurfer's annotations and GIFTI meshes."""

from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import numpy as np

from brainlsap.atlas.region_names import as_text
from brainlsap.exceptions import reading


def read_annotation(path: str | Path) -> tuple[np.ndarray, list[str]]:
    """Read a `.annot` file.

    Return the name index of every vertex (-1: none), and the names. nibabel drops names
    if the indices of the table are out of order or have gaps, so it is not used.
    """
    with reading(path, "a FreeSurfer annotation"):
        annotation_file = BytesIO(Path(path).read_bytes())

        def read_integers(n: int) -> np.ndarray:
            return np.frombuffer(annotation_file.read(4 * n), ">i4", n).astype(int)

        n_vertices = read_integers(1)[0]
        vertex_colors = read_integers(2 * n_vertices).reshape(-1, 2)[:, 1]
        _, n_names = read_integers(2)  # the first says that a table of names follows
        # Newer files have minus their version here. The largest index then comes before
        # the table's file name, the number of names after it, and each name's index
        # before the name.
        is_new_form = n_names < 0
        # Skip the file name of the table.
        annotation_file.read(read_integers(1 + is_new_form)[-1])
        if is_new_form:
            n_names = read_integers(1)[0]
        region_names: list[str] = []
        index_of_color = {0: -1}
        clash_of_color: dict[int, str] = {}
        for i in range(n_names):
            raw_name = annotation_file.read(read_integers(1 + is_new_form)[-1])
            region_names.append(as_text(raw_name.rstrip(b"\0")))
            color_code = int(read_integers(4)[:3] @ [1, 2**8, 2**16])
            if index_of_color.setdefault(color_code, i) not in (-1, i):
                clash_of_color[color_code] = (
                    f"{region_names[index_of_color[color_code]]} and {region_names[i]}"
                )
        used_colors, color_rows = np.unique(vertex_colors, return_inverse=True)
        for color_code, clashing_names in clash_of_color.items():
            if color_code in used_colors:
                raise ValueError(f"{clashing_names} have one color; give each its own")
        if not set(used_colors.tolist()) <= set(index_of_color):
            raise ValueError("a vertex has a label without a name")
    used_indices = np.array(
        [index_of_color[color_code] for color_code in used_colors.tolist()]
    )
    return used_indices[color_rows], region_names


def read_mesh(mesh_path: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """Read vertices (n_vertices, 3) and faces (n_faces, 3) of a GIFTI surface."""
    from nibabel.gifti import GiftiImage

    with reading(mesh_path, "a GIFTI surface"):
        image = GiftiImage.from_filename(mesh_path)
        vertices, faces = image.agg_data(("pointset", "triangle"))
        return vertices.astype(float).reshape(-1, 3), faces.astype(int).reshape(-1, 3)


def fsaverage5(hemisphere: str, surface_kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices (mm) and faces of fsaverage5's white, pial, infl or sphere."""
    # Read nilearn's files without importing nilearn, which would import matplotlib.
    nilearn_spec = find_spec("nilearn")
    nilearn_folder = Path(
        nilearn_spec.origin if nilearn_spec and nilearn_spec.origin else "nilearn"
    ).parent
    side_word = {"L": "left", "R": "right"}[hemisphere]
    mesh_path = (
        nilearn_folder
        / "datasets"
        / "data"
        / "fsaverage5"
        / f"{surface_kind}_{side_word}.gii.gz"
    )
    return read_mesh(mesh_path)
