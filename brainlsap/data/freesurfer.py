"""Read the `stats` files that FreeSurfer writes for one subject."""

from functools import lru_cache
from pathlib import Path

import numpy as np

from brainlsap.data.atlas import Atlas, is_outside
from brainlsap.data.stats_files import StatsTable, read_stats
from brainlsap.exceptions import FileFormatError, RegionNameError

# Annotation of FreeSurfer for each atlas that has one.
ANNOTATIONS = {"destrieux160": "aparc.a2009s", "desikan82": "aparc"}

HEMISPHERES = {"lh": "L", "rh": "R"}
CORTEX_COLUMNS = {"thickness": "ThickAvg", "area": "SurfArea", "volume": "GrayVol"}
VOLUME_COLUMN = "Volume_mm3"
# FreeSurfer leaves out a region that a surface lacks. More than these, or a table
# that does not reach its last region, is a file that was cut.
MOST_ABSENT = 4
# Share of the vertices that may be in no region of the table (measured: 1e-4).
UNLABELLED = 5e-4
# Parcellation -> the other one, and the steps of recon-all that make it.
_OTHER_PARCELLATION = {
    "aparc.a2009s": ("aparc", "-cortparc2 -parcstats2"),
    "aparc": ("aparc.a2009s", "-cortparc -parcstats"),
}


class SubjectStats:
    """The `stats` folder of one FreeSurfer subject; each file is read once.

    Parameters
    ----------
    folder : str or Path
        The subject's folder, or its `stats` folder.
    atlas : Atlas
        Decides which parcellation is read.
    """

    def __init__(self, folder: str | Path, atlas: Atlas) -> None:
        folder = Path(folder)
        self.folder = folder / "stats" if (folder / "stats").is_dir() else folder
        self.atlas = atlas
        self._tables: dict[str, StatsTable] = {}

    @property
    def annotation(self) -> str:
        """FreeSurfer's name of the parcellation, such as `aparc.a2009s`.

        Raises
        ------
        FileFormatError
            Where FreeSurfer has none of the atlas' regions.
        """
        if self.atlas.name not in ANNOTATIONS:
            raise FileFormatError(
                f"{self.folder}: FreeSurfer's stats are known for "
                f"{', '.join(ANNOTATIONS)}, not for atlas {self.atlas.name}. Give the "
                "features as a table of regions."
            )
        return ANNOTATIONS[self.atlas.name]

    @property
    def subject(self) -> Path:
        """The subject's folder, above `stats`."""
        return self.folder.parent if self.folder.name == "stats" else self.folder

    def has_cortex(self) -> bool:
        """Tell whether the parcellation's stats of both sides are there.

        Returns
        -------
        bool
        """
        names = [f"{side}.{self.annotation}.stats" for side in HEMISPHERES]
        return all((self.folder / name).is_file() for name in names)

    def cortex(self, feature: str) -> np.ndarray:
        """Return one cortical measure.

        Parameters
        ----------
        feature : str
            A key of `CORTEX_COLUMNS`.

        Returns
        -------
        float array of shape (n_rois,)
            In mm, mm2 or mm3; NaN below the cortex and where FreeSurfer found no such
            region.

        Raises
        ------
        FileFormatError
            Where a file is missing, cut short, or of another parcellation.
        RegionNameError
            Where a region is unknown.
        """
        values = np.full(len(self.atlas), np.nan)
        for side, hemisphere in HEMISPHERES.items():
            table = self._read(f"{side}.{self.annotation}.stats")
            try:
                places = _find_cortex(table.names, self.atlas, hemisphere)
            except RegionNameError as error:
                raise RegionNameError(f"{table.path}: {error}") from error
            _check_complete(table, places, self.atlas, hemisphere)
            kept = places >= 0
            values[places[kept]] = table.numbers(CORTEX_COLUMNS[feature])[kept]
        return values

    def subcortex_volume(self) -> np.ndarray:
        """Return the volumes of subcortical regions.

        Returns
        -------
        float array of shape (n_rois,)
            In mm3; NaN in the cortex.

        Raises
        ------
        FileFormatError
            Where `aseg.stats` is missing, cut short, or lacks a region.
        """
        values = np.full(len(self.atlas), np.nan)
        table = self._read("aseg.stats")
        try:
            places = _find_subcortex(table.names, self.atlas)
        except RegionNameError as error:
            raise RegionNameError(f"{table.path}: {error}") from error
        kept = places >= 0
        values[places[kept]] = table.numbers(VOLUME_COLUMN)[kept]
        below = (self.atlas.regions["structure"] == "subcortex").to_numpy()
        missing = np.flatnonzero(below & np.isnan(values))
        if missing.size:
            names = ", ".join(self.atlas.names[i] for i in missing)
            raise FileFormatError(f"{table.path}: no row for {names}.")
        return values

    def head_size(self) -> float:
        """Return the intracranial volume (eTIV).

        Returns
        -------
        float
            In mm3.

        Raises
        ------
        FileFormatError
            Where `aseg.stats` is missing or does not say it.
        """
        table = self._read("aseg.stats")
        if not table.head_size or table.head_size <= 0:
            raise FileFormatError(
                f"{table.path}: no line '# Measure EstimatedTotalIntraCranialVol' with "
                "a volume above 0."
            )
        return table.head_size

    def _read(self, name: str) -> StatsTable:
        if name not in self._tables:
            path = self.folder / name
            if not path.is_file():
                raise FileFormatError(_missing_message(path, self.annotation))
            table = read_stats(path)
            if table.side in HEMISPHERES and not name.startswith((table.side, "aseg")):
                raise FileFormatError(
                    f"{path}: says that it is of {table.side}; expected the hemisphere "
                    "of its name. The files of the two hemispheres may be exchanged."
                )
            self._tables[name] = table
        return self._tables[name]


def _missing_message(path: Path, annotation: str) -> str:
    other, step = _OTHER_PARCELLATION.get(annotation, ("", ""))
    twin = path.with_name(path.name.replace(f".{annotation}.", f".{other}."))
    if twin == path or not twin.is_file():
        return f"{path}: no such file."
    return (
        f"{path}: no such file; {twin.name} is of another parcellation. "
        f"'recon-all -s SUBJECT {step}' makes the one that is wanted."
    )


@lru_cache(maxsize=16)
def _find_cortex(names: tuple[str, ...], atlas: Atlas, hemisphere: str) -> np.ndarray:
    places = [atlas.find(name, hemisphere) for name in names]
    kept = [
        i for i, n in enumerate(names) if places[i] is not None or not is_outside(n)
    ]
    result = np.full(len(names), -1)
    result[kept] = atlas.match([names[i] for i in kept], hemisphere)
    return result


@lru_cache(maxsize=16)
def _find_subcortex(names: tuple[str, ...], atlas: Atlas) -> np.ndarray:
    result = np.full(len(names), -1)
    kept = [i for i, name in enumerate(names) if atlas.find(name) is not None]
    result[kept] = atlas.match([names[i] for i in kept])
    return result


def _check_complete(
    table: StatsTable, places: np.ndarray, atlas: Atlas, hemisphere: str
) -> None:
    regions = atlas.regions
    wanted = (regions["structure"] == "cortex") & (regions["hemisphere"] == hemisphere)
    expected = np.flatnonzero(wanted)
    missing = np.setdiff1d(expected, places)
    if not missing.size:
        return
    cut = missing.size > MOST_ABSENT or expected[-1] in missing
    if table.n_vertices:
        counted = table.numbers("NumVert").sum()
        cut = cut or counted < table.n_vertices * (1 - UNLABELLED)
    if cut:
        names = ", ".join(atlas.names[i] for i in missing[:5])
        more = " ..." if missing.size > 5 else ""
        raise FileFormatError(
            f"{table.path}: {missing.size} of {expected.size} regions have no row "
            f"({names}{more}). The file may be cut short; run mris_anatomical_stats "
            "again."
        )
