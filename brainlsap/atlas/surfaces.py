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
        file = BytesIO(Path(path).read_bytes())

        def read_integers(n: int) -> np.ndarray:
            return np.frombuffer(file.read(4 * n), ">i4", n).astype(int)

        n_vertices = read_integers(1)[0]
        vertex_colors = read_integers(2 * n_vertices).reshape(-1, 2)[:, 1]
        _, n_names = read_integers(2)  # the first says that a table of names follows
        # Newer files have minus their version here. The largest index then comes before
        # the table's file name, the number of names after it, and each name's index
        # before the name.
        is_new_form = n_names < 0
        file.read(read_integers(1 + is_new_form)[-1])  # file name of the table
        if is_new_form:
            n_names = read_integers(1)[0]
        names: list[str] = []
        index_of_color = {0: -1}
        clash_of_color: dict[int, str] = {}
        for i in range(n_names):
            name = file.read(read_integers(1 + is_new_form)[-1])
            names.append(as_text(name.rstrip(b"\0")))
            color = int(read_integers(4)[:3] @ [1, 2**8, 2**16])
            if index_of_color.setdefault(color, i) not in (-1, i):
                clash_of_color[color] = f"{names[index_of_color[color]]} and {names[i]}"
        used_colors, color_rows = np.unique(vertex_colors, return_inverse=True)
        for color, clash in clash_of_color.items():
            if color in used_colors:
                raise ValueError(f"{clash} have one color; give each its own")
        if not set(used_colors.tolist()) <= set(index_of_color):
            raise ValueError("a vertex has a label without a name")
    used_indices = np.array([index_of_color[color] for color in used_colors.tolist()])
    return used_indices[color_rows], names


def read_mesh(path: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """Read vertices (n_vertices, 3) and faces (n_faces, 3) of a GIFTI surface."""
    from nibabel.gifti import GiftiImage

    with reading(path, "a GIFTI surface"):
        image = GiftiImage.from_filename(path)
        points, faces = image.agg_data(("pointset", "triangle"))
        return points.astype(float).reshape(-1, 3), faces.astype(int).reshape(-1, 3)


def fsaverage5(hemisphere: str, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices (mm) and faces of fsaverage5's white, pial, infl or sphere."""
    # Read nilearn's files without importing nilearn, which would import matplotlib.
    spec = find_spec("nilearn")
    folder = Path(spec.origin if spec and spec.origin else "nilearn").parent
    side = {"L": "left", "R": "right"}[hemisphere]
    path = folder / "datasets" / "data" / "fsaverage5" / f"{kind}_{side}.gii.gz"
    return read_mesh(path)
