"""Average a measure of every vertex over the regions of an annotation.

The mean is plain, as the `ThickAvg` of `mris_anatomical_stats` is: every vertex counts
the same, however large the area around it. Vertices outside `?h.cortex.label` are left
out where the file is there, as `mris_anatomical_stats -cortex` does.
"""

import gzip
from pathlib import Path

import numpy as np

from brainlsap.data.annotations import read_annotated
from brainlsap.data.atlas import Atlas, is_outside
from brainlsap.data.freesurfer import ANNOTATIONS
from brainlsap.data.text_lines import read_lines
from brainlsap.exceptions import FileFormatError, RegionNameError

HEMISPHERES = {"lh": "L", "rh": "R"}
_SUFFIXES = ("", ".mgh", ".mgz")
_SUMS = ("area", "volume")
# One value for each vertex of any surface is far smaller.
MOST_BYTES = 64 * 2**20
_MAGIC = b"\xff\xff\xff"
_HEADER = 15


def find_vertex_files(folder: Path, feature: str) -> dict[str, Path] | None:
    """Return the per-vertex files of a FreeSurfer subject for a measure.

    Parameters
    ----------
    folder : Path
        Of the subject.
    feature : str
        Such as `thickness`, `curv` or the name of an overlay.

    Returns
    -------
    dict of str to Path, or None
        By `lh` and `rh`; None where one is missing.
    """
    found = {}
    for side in HEMISPHERES:
        for suffix in _SUFFIXES:
            path = folder / "surf" / f"{side}.{feature}{suffix}"
            if path.is_file():
                found[side] = path
    return found if len(found) == len(HEMISPHERES) else None


def read_vertex_feature(folder: Path, feature: str, atlas: Atlas) -> np.ndarray:
    """Return the plain mean of a measure over the vertices of every region.

    Parameters
    ----------
    folder : Path
        A FreeSurfer subject with `surf/?h.<feature>` and the atlas' annotation.
    feature : str
        Any measure that can be averaged: `thickness`, `curv`, `sulc`, an overlay.
    atlas : Atlas
        One that FreeSurfer has.

    Returns
    -------
    float array of shape (n_rois,)
        NaN below the cortex and for regions without vertices.

    Raises
    ------
    FileFormatError
        Where a file is missing, broken, or of another surface; and for `area` and
        `volume`, which are sums.
    RegionNameError
        Where the annotation has regions that the atlas has not.
    """
    if feature in _SUMS:
        raise FileFormatError(
            f"{folder}: {feature} of a region is a sum over faces, not a mean over "
            "vertices; it is read from stats. Run mris_anatomical_stats."
        )
    if atlas.name not in ANNOTATIONS:
        raise FileFormatError(
            f"{folder}: annotations are known for {', '.join(ANNOTATIONS)}, not for "
            f"atlas {atlas.name}."
        )
    files = find_vertex_files(folder, feature)
    if files is None:
        wanted = f"lh.{feature} and rh.{feature}"
        raise FileFormatError(f"{folder / 'surf'}: no files {wanted}.")
    values = np.full(len(atlas), np.nan)
    for side, path in files.items():
        per_vertex = read_vertices(path)
        annotation = folder / "label" / f"{side}.{ANNOTATIONS[atlas.name]}.annot"
        regions = read_annotation(annotation, atlas, HEMISPHERES[side])
        if len(regions) != len(per_vertex):
            raise FileFormatError(
                f"{path}: {len(per_vertex)} vertices, but {annotation.name} has "
                f"{len(regions)}; they are not of one surface."
            )
        cortex = folder / "label" / f"{side}.cortex.label"
        if cortex.is_file():
            regions = np.where(_read_label(cortex, len(regions)), regions, -1)
        inside = regions >= 0
        n = np.bincount(regions[inside], minlength=len(atlas))
        total = np.bincount(regions[inside], per_vertex[inside], len(atlas))
        values[n > 0] = total[n > 0] / n[n > 0]
    return values


def read_vertices(path: Path) -> np.ndarray:
    """Read one value for every vertex, of FreeSurfer's own format or an overlay.

    Parameters
    ----------
    path : Path
        Such as `lh.thickness`, or `.mgh` / `.mgz`.

    Returns
    -------
    float array of shape (n_vertices,)

    Raises
    ------
    FileFormatError
        Where the file is something else, or cut short.
    """
    if path.suffix in _SUFFIXES[1:]:
        from nibabel.freesurfer import MGHImage

        try:
            whole = path.read_bytes()
            if path.suffix == ".mgz":
                with gzip.open(path) as file:
                    whole = file.read(MOST_BYTES)
            image = MGHImage.from_bytes(whole)
            promised = np.prod([float(n) for n in image.shape])
            if not 0 < promised * image.get_data_dtype().itemsize <= len(whole):
                raise ValueError(f"the header promises {promised:g} values")
            data = np.asanyarray(image.dataobj)
        except Exception as error:  # a broken image fails in many ways
            raise FileFormatError(f"{path}: cannot be read ({error}).") from error
        if max(data.shape) != data.size:
            raise FileFormatError(f"{path}: expected one value a vertex.")
        return data.ravel().astype(np.float64)
    raw = path.read_bytes()
    if raw[:3] != _MAGIC or len(raw) < _HEADER:
        raise FileFormatError(f"{path}: no file of values at vertices.")
    n, _, per_vertex = np.frombuffer(raw[3:_HEADER], ">i4").tolist()
    if per_vertex != 1 or len(raw) != _HEADER + 4 * n:
        raise FileFormatError(
            f"{path}: {len(raw)} bytes for {n} vertices; the file may be cut short."
        )
    return np.frombuffer(raw[_HEADER:], ">f4").astype(np.float64)


def read_annotation(path: Path, atlas: Atlas, hemisphere: str) -> np.ndarray:
    """Read the region of every vertex.

    Parameters
    ----------
    path : Path
        A `.annot` file.
    atlas : Atlas
        Names the regions and gives their order.
    hemisphere : {"L", "R"}
        The side of the file.

    Returns
    -------
    int array of shape (n_vertices,)
        Position in the atlas, -1 where the atlas has no region.

    Raises
    ------
    FileFormatError
        Where the file is missing or broken.
    RegionNameError
        Where it has regions that the atlas has not.
    """
    labels, names = read_annotated(path)
    texts = [name.decode("utf-8", "replace") for name in names]
    places = [atlas.find(name, hemisphere) for name in texts]
    kept = [
        i for i, n in enumerate(texts) if places[i] is not None or not is_outside(n)
    ]
    result = np.full(len(texts) + 1, -1)  # the last stands for vertices without label
    try:
        result[kept] = atlas.match([texts[i] for i in kept], hemisphere)
    except RegionNameError as error:
        raise RegionNameError(f"{path}: {error}") from error
    return result[labels]


def _read_label(path: Path, n: int) -> np.ndarray:
    """Return which vertices a `.label` file names."""
    try:
        rows = [int(line.split()[0]) for line in read_lines(path)[1:]]
    except (ValueError, IndexError) as error:
        raise FileFormatError(f"{path}: no FreeSurfer label file ({error}).") from error
    if not rows or min(rows) < 0 or max(rows) >= n:
        raise FileFormatError(f"{path}: names vertices outside 0 to {n - 1}.")
    inside = np.zeros(n, dtype=bool)
    inside[rows] = True
    return inside
