"""Read regional measures of one FreeSurfer subject: its stats, or its vertices.

Stats files are those of `mris_anatomical_stats` (`?h.aparc*.stats`) and `mri_segstats`
(`aseg.stats`). A measure that stats do not hold is averaged over the vertices of each
region as `ThickAvg` is: plainly, every vertex counts the same however large the area
around it, without those outside `?h.cortex.label`.
"""

import gzip
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from brainlsap.arrays import check_choice
from brainlsap.atlas import Atlas
from brainlsap.atlas.atlas import read_annotation
from brainlsap.data.measures import Measure
from brainlsap.data.tables import MOST_BYTES, listed, read_lines, reading
from brainlsap.exceptions import FileFormatError, RegionNameError

HEMISPHERES = {"lh": "L", "rh": "R"}
CORTEX_COLUMNS = {"thickness": "ThickAvg", "area": "SurfArea", "volume": "GrayVol"}
_HEAD_SIZES = (
    "# Measure EstimatedTotalIntraCranialVol,",
    "# Measure IntraCranialVol,",
)
# FreeSurfer leaves out a region that a surface lacks. More than these, or a table
# that does not reach its last region, is a file that was cut.
_MOST_ABSENT = 4
# Share of the vertices that may be in no region of the table (measured: 1e-4).
_UNLABELLED = 5e-4
_OVERLAYS = (".mgh", ".mgz")


class StatsFile(NamedTuple):
    """Columns of one stats file, and what its header says (None where nothing)."""

    path: Path
    columns: dict[str, tuple[str, ...]]
    n_vertices: float | None
    head_size: float | None

    def numbers(self, column: str) -> np.ndarray:
        """Return one column as numbers."""
        if column not in self.columns:
            raise FileFormatError(
                f"{self.path}: no column {column}; found {', '.join(self.columns)}."
            )
        try:
            return np.array(self.columns[column], dtype=float)
        except ValueError as error:
            raise FileFormatError(
                f"{self.path}: column {column} must hold numbers: {error}."
            ) from error


def read_stats(
    folder: str | Path, atlas: Atlas, measure: Measure, subcortex: str = "absent"
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Read one measure of a FreeSurfer subject.

    Parameters
    ----------
    folder : str or Path
        The subject's folder, or its `stats` folder.
    atlas : Atlas
        Its `atlas.json` names the annotation.
    measure : Measure
        Thickness, area or volume, also divided by the intracranial volume (eTIV); or
        any measure of vertices in `surf/?h.<name>`.
    subcortex : {"absent", "mean", "volume"}
        Volumes of the subcortex are read for `volume`, and where the measure is one.

    Returns
    -------
    values : float array of shape (n_rois,)
        In mm, mm2 or mm3; NaN where there is none.
    notes : tuple of str

    Raises
    ------
    FileFormatError
        Where a file is missing, cut short, of the other hemisphere or of another
        parcellation.
    RegionNameError
        Where a region is unknown or stands twice.
    """
    folder = Path(folder)
    stats = folder / "stats" if (folder / "stats").is_dir() else folder
    subject = stats.parent if stats.name == "stats" else stats
    annotation = atlas.settings.get("annotation")
    if annotation is None:
        raise FileFormatError(
            f"{stats}: FreeSurfer's stats are known for atlases whose atlas.json names "
            f"their annotation, not for atlas {atlas.name}. Give the values as a table "
            "of regions."
        )
    name = "volume" if measure.by_head_size else measure.name
    paths = {side: stats / f"{side}.{annotation}.stats" for side in HEMISPHERES}
    notes: tuple[str, ...] = ()
    in_stats = name in CORTEX_COLUMNS and all(map(Path.is_file, paths.values()))
    overlays = None if in_stats else _find_overlays(subject, name)
    if overlays is not None:
        values = _vertex_means(subject, overlays, name, atlas, annotation)
        notes = (f"{name}: plain mean over the vertices",)
    else:
        check_choice("feature of FreeSurfer's stats", name, CORTEX_COLUMNS)
        values = np.full(len(atlas), np.nan)
        for side, path in paths.items():
            if not path.is_file():
                raise FileFormatError(_missing_message(path, atlas, annotation))
            table = _read_file(path, path.stat().st_mtime_ns)
            rows = _rows_of(table, atlas, HEMISPHERES[side])
            there = rows >= 0
            values[there] = table.numbers(CORTEX_COLUMNS[name])[rows[there]]
    on_surface = measure.on_surface or overlays is not None
    if not on_surface or subcortex == "volume" or measure.by_head_size:
        path = stats / "aseg.stats"
        if not path.is_file():
            raise FileFormatError(f"{path}: no such file.")
        table = _read_file(path, path.stat().st_mtime_ns)
    if not on_surface or subcortex == "volume":
        rows = _rows_of(table, atlas, None)
        there = (rows >= 0) & ~atlas.cortex
        values[there] = table.numbers("Volume_mm3")[rows[there]]
    if measure.by_head_size:
        if not table.head_size or table.head_size <= 0:
            raise FileFormatError(
                f"{table.path}: no line '# Measure EstimatedTotalIntraCranialVol' with "
                "a volume above 0."
            )
        values /= table.head_size
    return values, notes


@lru_cache(maxsize=3)  # the files of one subject, of which several measures are read
def _read_file(  # noqa: C901 (one branch a line of the header)
    path: Path, _changed: int
) -> StatsFile:
    """Read one stats file of FreeSurfer 5 to 8."""
    rows, header, heads = [], {}, []
    for line in read_lines(path, comments=True):
        if not line.startswith("#"):
            rows.append(line.split())
        elif line.startswith("# ColHeaders"):
            heads = line.split()[2:]
        elif line.startswith("# NRows"):
            header["rows"] = line.split()[-1]
        elif line.startswith("# hemi "):
            header["side"] = line.split()[-1]
        elif line.startswith("# Measure Cortex, NumVert"):
            header["vertices"] = line
        elif line.startswith(_HEAD_SIZES):
            header["head"] = line
    if "StructName" not in heads or not rows:
        raise FileFormatError(
            f"{path}: expected a FreeSurfer stats file with a line '# ColHeaders' that "
            "names StructName, and rows below it. The file may be cut short."
        )
    short = [row for row in rows if len(row) != len(heads)]
    expected = header.get("rows", str(len(rows)))
    if short or expected != str(len(rows)):
        raise FileFormatError(
            f"{path}: cut short; expected {header.get('rows', 'complete')} rows of "
            f"{len(heads)} cells, got {len(rows)} rows"
            + (f", one of {len(short[0])} cells." if short else ".")
        )
    with reading(path, "a stats file"):
        said = {
            key: float(header[key].split(",")[-2])
            for key in ("vertices", "head")
            if key in header
        }
    columns = dict(zip(heads, zip(*rows, strict=True), strict=True))
    side = header.get("side")
    if side in HEMISPHERES and path.name[:2] in set(HEMISPHERES) - {side}:
        raise FileFormatError(
            f"{path}: says that it is of {side}; expected the hemisphere of its name. "
            "The files of the two hemispheres may be exchanged."
        )
    return StatsFile(path, columns, said.get("vertices"), said.get("head"))


@lru_cache(maxsize=16)  # every subject of a study has the same names
def _find_rows(
    names: tuple[str, ...], atlas: Atlas, hemisphere: str | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the row of every region, those that are expected, and those without."""
    of_file = ~atlas.cortex
    if hemisphere is None:  # aseg: what is no region of the atlas is left out
        names = tuple(n if atlas.find(n) is not None else "none" for n in names)
    else:
        sides = atlas.regions["hemisphere"].to_numpy()
        of_file = atlas.cortex & (sides == hemisphere)
    rows, _ = atlas.rows(names, hemisphere)
    expected = np.flatnonzero(of_file)
    return rows, expected, expected[rows[expected] < 0]


def _rows_of(table: StatsFile, atlas: Atlas, hemisphere: str | None) -> np.ndarray:
    """Return the row of every region in a stats file, and check that none was lost."""
    try:
        found = _find_rows(table.columns["StructName"], atlas, hemisphere)
    except RegionNameError as error:
        raise RegionNameError(f"{table.path}: {error}") from error
    rows, expected, missing = found
    if not missing.size:
        return rows
    cut = (
        hemisphere is None or missing.size > _MOST_ABSENT or missing[-1] == expected[-1]
    )
    if not cut and table.n_vertices:
        cut = table.numbers("NumVert").sum() < table.n_vertices * (1 - _UNLABELLED)
    if cut:
        raise FileFormatError(
            f"{table.path}: {missing.size} of {expected.size} regions have no row "
            f"({listed([atlas.names[i] for i in missing], 5)}). The file may be cut "
            "short; run mris_anatomical_stats or mri_segstats again."
        )
    return rows


def _missing_message(path: Path, atlas: Atlas, annotation: str) -> str:
    others = sorted(path.parent.glob(f"{path.name[:2]}.aparc*.stats"))
    if not others:
        return f"{path}: no such file."
    return (
        f"{path}: no such file; {others[0].name} is of another parcellation than "
        f"{annotation}. {atlas.settings.get('remake_values', '')}"
    )


# ---- measures of vertices ----------------------------------------------------------


def _find_overlays(subject: Path, name: str) -> dict[str, Path] | None:
    """Return the files of a measure of vertices by side, None where one is missing."""
    found = {
        side: path
        for side in HEMISPHERES
        for suffix in ("", *_OVERLAYS)
        if (path := subject / "surf" / f"{side}.{name}{suffix}").is_file()
    }
    return found if len(found) == len(HEMISPHERES) else None


def _vertex_means(
    subject: Path, overlays: dict[str, Path], name: str, atlas: Atlas, annotation: str
) -> np.ndarray:
    """Return the plain mean of a measure over the vertices of every region."""
    if name in ("area", "volume"):
        raise FileFormatError(
            f"{subject}: {name} of a region is a sum over faces, not a mean over "
            "vertices; it is read from stats. Run mris_anatomical_stats."
        )
    values = np.full(len(atlas), np.nan)
    for side, path in overlays.items():
        per_vertex = read_vertices(path)
        annot = subject / "label" / f"{side}.{annotation}.annot"
        labels, names = read_annotation(annot)
        if len(labels) != len(per_vertex):
            raise FileFormatError(
                f"{path}: {len(per_vertex)} vertices, but {annot.name} has "
                f"{len(labels)}; they are not of one surface."
            )
        try:
            rows, _ = atlas.rows(names, HEMISPHERES[side])
        except RegionNameError as error:
            raise RegionNameError(f"{annot}: {error}") from error
        # a last place for vertices without a label, and for labels of no region
        place = np.full(len(names) + 1, len(atlas))
        place[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
        regions = place[labels]
        cortex = subject / "label" / f"{side}.cortex.label"
        if cortex.is_file():
            regions = np.where(_in_label(cortex, len(regions)), regions, len(atlas))
        counts = np.bincount(regions, minlength=len(atlas) + 1)[:-1]
        sums = np.bincount(regions, per_vertex, len(atlas) + 1)[:-1]
        values[counts > 0] = sums[counts > 0] / counts[counts > 0]
    return values


def read_vertices(path: str | Path) -> np.ndarray:
    """Return one value for every vertex, from FreeSurfer's own format or an overlay."""
    from nibabel.freesurfer import MGHImage, read_morph_data

    path = Path(path)
    with reading(path, "one value a vertex"):
        if path.suffix not in _OVERLAYS:
            size = np.fromfile(path, ">i4", 3, offset=3)  # vertices, faces, values each
            if path.stat().st_size != 15 + 4 * int(size[0]):
                raise FileFormatError(
                    f"{path}: {path.stat().st_size} bytes for {size[0]} vertices; the "
                    "file may be cut short."
                )
            return np.asarray(read_morph_data(path), dtype=np.float64)
        with (gzip.open if path.suffix == ".mgz" else open)(path, "rb") as file:
            content = file.read(MOST_BYTES)
        image = MGHImage.from_bytes(content)
        promised = float(np.prod([float(n) for n in image.shape]))
        if max(image.shape) != promised or promised > len(content):
            raise FileFormatError(
                f"{path}: the header promises {promised:g} values, shape "
                f"{image.shape}; expected one value a vertex."
            )
        return np.asarray(image.dataobj, dtype=np.float64).ravel()


def _in_label(path: Path, n: int) -> np.ndarray:
    """Return which vertices a `.label` file names."""
    with reading(path, "a FreeSurfer label"):
        rows = [int(line.split()[0]) for line in read_lines(path)[1:]]
    if not rows or min(rows) < 0 or max(rows) >= n:
        raise FileFormatError(f"{path}: names vertices outside 0 to {n - 1}.")
    inside = np.zeros(n, dtype=bool)
    inside[rows] = True
    return inside
