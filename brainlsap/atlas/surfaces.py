"""Files of surfaces: FreeSurfer's annotations and GIFTI meshes."""

from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import numpy as np

from brainlsap.atlas.region_names import as_text
from brainlsap.exceptions import reading


def read_annotation(path: str | Path) -> tuple[np.ndarray, list[str]]:
    """Read a `.annot` file: the number of each vertex' name (-1: none), the names.

    Names stand in any order, and numbers may be left out; nibabel drops them.
    """
    with reading(path, "a FreeSurfer annotation"):
        file = BytesIO(Path(path).read_bytes())

        def integers(n: int) -> np.ndarray:
            return np.frombuffer(file.read(4 * n), ">i4", n).astype(int)

        codes = integers(2 * integers(1)[0]).reshape(-1, 2)[:, 1]
        n_names = integers(2)[1]  # behind a 1: that a table of names follows
        is_new = n_names < 0  # then the largest number comes first
        file.read(integers(1 + is_new)[-1])  # the table's own file
        n_names = integers(1)[0] if is_new else n_names
        names, numbers, doubled = list[str](), {0: -1}, dict[int, str]()
        for i in range(n_names):
            name = file.read(integers(1 + is_new)[-1])
            names.append(as_text(name.rstrip(b"\0")))
            color = int(integers(4)[:3] @ [1, 2**8, 2**16])
            if numbers.setdefault(color, i) not in (-1, i):
                doubled[color] = f"{names[numbers[color]]} and {names[i]}"
        found, places = np.unique(codes, return_inverse=True)
        if shared := [told for color, told in doubled.items() if color in found]:
            raise ValueError(f"{shared[0]} have one color; give each its own")
        if not set(found.tolist()) <= set(numbers):
            raise ValueError("a vertex has a label without a name")
    return np.array([numbers[code] for code in found.tolist()])[places], names


def read_mesh(path: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """Read vertices (n_vertices, 3) and faces (n_faces, 3) of a GIFTI surface."""
    from nibabel.gifti import GiftiImage

    with reading(path, "a GIFTI surface"):
        image = GiftiImage.from_filename(path)
        points, faces = image.agg_data(("pointset", "triangle"))
        return points.astype(float).reshape(-1, 3), faces.astype(int).reshape(-1, 3)


def fsaverage5(hemisphere: str, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices, in mm, and faces of fsaverage5's white, pial, infl or sphere."""
    spec = find_spec("nilearn")  # its files alone: nilearn itself brings what draws
    folder = Path(spec.origin if spec and spec.origin else "nilearn").parent
    side = {"L": "left", "R": "right"}[hemisphere]
    path = folder / "datasets" / "data" / "fsaverage5" / f"{kind}_{side}.gii.gz"
    return read_mesh(path)
