"""Read regional measures of one FreeSurfer subject: its stats, or its vertices.

Stats files are those of `mris_anatomical_stats` (`?h.aparc*.stats`) and `mri_segstats`
(`aseg.stats`). A measure that stats do not hold is averaged over the vertices of each
region as `ThickAvg` is: plainly, every vertex counts the same however large the area
around it, without those outside `?h.cortex.label`.
"""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.arrays import check_choice
from brainlsap.atlas import Atlas
from brainlsap.data.measures import Measure
from brainlsap.data.tables import listed, read_lines, reading
from brainlsap.exceptions import FileFormatError, RegionNameError

HEMISPHERES = {"lh": "L", "rh": "R"}
CORTEX_COLUMNS = {"thickness": "ThickAvg", "area": "SurfArea", "volume": "GrayVol"}
# Starts of the lines of a header that count -> what they say.
_HEADER = {
    "# ColHeaders": "heads",
    "# NRows": "rows",
    "# hemi ": "side",
    "# Measure Cortex, NumVert": "vertices",
}
# Share of the vertices that may be in no region of the table (measured: 1e-4).
_UNLABELLED = 5e-4
_OVERLAYS = ("", ".mgh", ".mgz")


def read_stats(
    folder: str | Path, atlas: Atlas, measure: Measure, subcortex: str = "absent"
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return one measure of a FreeSurfer subject in the order of an atlas, and notes.

    `folder` is the subject's, or its `stats`. Volumes below the cortex are read where
    the measure is one, or `subcortex` asks for them. A measure that stats do not hold
    is averaged over vertices.
    """
    folder = Path(folder)
    stats = folder / "stats" if (folder / "stats").is_dir() else folder
    annotation = atlas.settings.get("annotation")
    if annotation is None:
        raise FileFormatError(
            f"{stats}: FreeSurfer's stats are known for atlases whose atlas.json names "
            f"their annotation, not for atlas {atlas.name}. Give the values as a table "
            "of regions."
        )
    name = measure.name
    files: dict[Path, str | None] = {
        stats / f"{side}.{annotation}.stats": letter
        for side, letter in HEMISPHERES.items()
    }
    on_surface, notes = measure.on_surface, tuple[str, ...]()
    values = np.full(len(atlas), np.nan)
    if name not in CORTEX_COLUMNS or not all(map(Path.is_file, files)):
        subject = stats.parent if stats.name == "stats" else stats
        averaged = _vertex_means(subject, name, atlas, annotation)
        if averaged is not None:
            files, on_surface = {}, True
            values, notes = averaged, (f"{name}: plain mean over the vertices",)
        else:
            check_choice("feature of FreeSurfer's stats", name, CORTEX_COLUMNS)
    if not on_surface or subcortex == "volume":
        files[stats / "aseg.stats"] = None
    for path, side in files.items():
        if not path.is_file():
            others = sorted(stats.glob(f"{path.name[:2]}.aparc*.stats"))
            hint = f"; {others[0].name} is of another parcellation" if others else ""
            hint += f". {atlas.settings.get('remake_values', '')}" if others else "."
            raise FileFormatError(f"{path}: no such file{hint}")
        column = CORTEX_COLUMNS[name] if side else "Volume_mm3"
        found = _read_column(path, column, atlas, side)
        values = np.where(np.isnan(found), values, found)
    return values, notes


def _read_column(path: Path, column: str, atlas: Atlas, side: str | None) -> np.ndarray:
    """Return a column of a stats file in the order of an atlas."""
    rows, header = [], dict[str, str]()
    for line in read_lines(path, comments=True):
        if line[0] != "#":
            rows.append(line.split())
        else:
            for start in filter(line.startswith, _HEADER):
                header[_HEADER[start]] = line
    heads = header.get("heads", "").split()[2:]
    if "StructName" not in heads or column not in heads or not rows:
        raise FileFormatError(
            f"{path}: expected a FreeSurfer stats file with a line '# ColHeaders' that "
            f"names StructName and {column}, and rows below it; it may be cut short."
        )
    said = header.get("rows", f"{len(rows)}").split()[-1]
    if {len(row) for row in rows} != {len(heads)} or said != f"{len(rows)}":
        raise FileFormatError(
            f"{path}: cut short; expected {said} rows of {len(heads)} cells, got "
            f"{len(rows)}, the last of {len(rows[-1])}."
        )
    if HEMISPHERES.get(header.get("side", "").rpartition(" ")[2], side) != side:
        raise FileFormatError(
            f"{path}: says that it is of the other hemisphere; the files of the two "
            "may be exchanged."
        )
    cells = dict(zip(heads, zip(*rows, strict=True), strict=True))
    with reading(path, "a stats file"):
        numbers = np.array(cells[column], dtype=float)
    names, expected = cells["StructName"], ~atlas.cortex
    if side is None:  # what is no region of the atlas is left out
        names = tuple(n if atlas.find(n) is not None else "none" for n in names)
    else:
        expected = atlas.cortex & (atlas.regions["hemisphere"].to_numpy() == side)
    try:
        places, _ = atlas.rows(names, side)
    except RegionNameError as error:
        raise RegionNameError(f"{path}: {error}") from error
    missing = np.flatnonzero(expected & (places < 0))
    # FreeSurfer leaves out a region that a surface lacks: its vertices are in others
    counts = cells.get("NumVert", ()) if missing.size else ()
    n_known = np.array(counts, dtype=float).sum()
    n_vertices = float(header.get("vertices", ",inf,").split(",")[-2])
    if missing.size and n_known < n_vertices * (1 - _UNLABELLED):
        raise FileFormatError(
            f"{path}: {missing.size} of {expected.sum()} regions have no row "
            f"({listed((atlas.names[i] for i in missing), 5)}). The file may be cut "
            "short; run mris_anatomical_stats or mri_segstats again."
        )
    return np.where(expected & (places >= 0), numbers[places], np.nan)


def _vertex_means(
    subject: Path, name: str, atlas: Atlas, annotation: str
) -> np.ndarray | None:
    """Return the plain mean of `surf/?h.<name>` over the vertices of every region.

    None where a hemisphere has no such file.
    """
    from nibabel.freesurfer import MGHImage, read_morph_data

    overlays = {
        side: path
        for side in HEMISPHERES
        for suffix in _OVERLAYS
        if (path := subject / "surf" / f"{side}.{name}{suffix}").is_file()
    }
    if len(overlays) < len(HEMISPHERES):
        return None
    if name in ("area", "volume"):
        raise FileFormatError(
            f"{subject}: {name} of a region is a sum over faces, not a mean over "
            "vertices; it is read from stats. Run mris_anatomical_stats."
        )
    values = np.full(len(atlas), np.nan)
    for side, path in overlays.items():
        with reading(path, "one value a vertex"):
            if path.suffix in _OVERLAYS[1:]:
                with (gzip.open if path.suffix == ".mgz" else open)(path, "rb") as file:
                    image: Any = MGHImage.from_bytes(file.read())
                per_vertex = np.asarray(image.dataobj)
            else:
                per_vertex = read_morph_data(path)
            per_vertex = per_vertex.astype(np.float64).ravel()
        annot = subject / "label" / f"{side}.{annotation}.annot"
        regions = atlas.vertex_labels(HEMISPHERES[side], annot)
        if len(regions) != len(per_vertex):
            raise FileFormatError(
                f"{path}: {len(per_vertex)} vertices, but {annot.name} has "
                f"{len(regions)}; they are not of one surface, or one was cut short."
            )
        counted = regions >= 0
        cortex = subject / "label" / f"{side}.cortex.label"
        if cortex.is_file():
            outside = np.ones(len(regions), dtype=bool)
            with reading(cortex, "a FreeSurfer label"):
                outside[np.loadtxt(cortex, int, skiprows=2, usecols=0, ndmin=1)] = False
            counted &= ~outside
        means = pd.Series(per_vertex[counted]).groupby(regions[counted]).mean()
        values[means.index] = means
    return values
