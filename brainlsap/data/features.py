"""Read one scan's regional values: FreeSurfer's stats, or a table of regions."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from brainlsap._arrays import check_choice
from brainlsap.data.atlas import Atlas, is_outside
from brainlsap.data.feature_rules import (
    SUBCORTEX,
    FeatureFile,
    check_structures,
    finish_feature,
    get_feature,
)
from brainlsap.data.freesurfer import CORTEX_COLUMNS, SubjectStats
from brainlsap.data.parcellations import GTMSEG, other_parcellation
from brainlsap.data.region_values import read_named_values
from brainlsap.data.text_lines import ends_with_line
from brainlsap.data.vertex_features import find_vertex_files, read_vertex_feature
from brainlsap.exceptions import FileFormatError, RegionNameError


def read_feature(
    path: str | Path,
    feature: str,
    atlas: Atlas,
    *,
    subcortex: str = "absent",
    frames: tuple[float, float] | None = None,
    reference: str | Path | None = None,
) -> FeatureFile:
    r"""Read one feature of one scan.

    Parameters
    ----------
    path : str or Path
        A FreeSurfer subject's folder (or its `stats`), or a table of regions: one row
        per region with a column of names (`region`, `name` ...) and one of values,
        headed like the feature, `suvr` or `value`; one row, a column per region;
        PETSurfer's `gtm.stats.dat`; or activity over time with the start and end of
        frames first.
    feature : str
        `thickness`, `area`, `volume` and `volume_per_etiv` (divided by the
        intracranial volume) are known to FreeSurfer's stats; any other name is
        looked for as a column, or as a measure of vertices (`surf/?h.<feature>`).
    atlas : Atlas
        Names the regions and gives their order.
    subcortex : {"absent", "mean", "volume"}
        What the subcortex has where the feature is measured on the surface.
    frames : (float, float), optional
        Start and end of the window over which activity is averaged, in the unit of
        the file (seconds in BIDS).
    reference : str or path, optional
        Region of PET by whose mean values are divided: a key of
        :data:`.REFERENCES`, the name of a region, or a time series of its own.

    Returns
    -------
    FeatureFile

    Raises
    ------
    FileFormatError
        Where the file is missing, cut short, lacks the column or a region.
    RegionNameError
        Where a region is unknown or stands twice.
    ParameterError
        Where activity over time needs `frames` or `reference`.

    Examples
    --------
    >>> import tempfile
    >>> from brainlsap.data.atlas import load_atlas
    >>> atlas = load_atlas("desikan82")
    >>> rows = "".join(f"{name}\t{i}\n" for i, name in enumerate(atlas.names))
    >>> with tempfile.TemporaryDirectory() as place:
    ...     path = Path(place) / "sub-01_trc-18FFDG_regions.tsv"
    ...     _ = path.write_text("region\tsuvr\n" + rows)
    ...     read_feature(path, "fdg", atlas).values[:3].tolist()
    [0.0, 1.0, 2.0]
    """
    check_choice("subcortex", subcortex, SUBCORTEX)
    path = Path(path)
    if path.is_dir():
        return read_stats_feature(SubjectStats(path, atlas), feature, subcortex)
    return read_region_table(
        path,
        feature,
        atlas,
        subcortex=subcortex,
        frames=frames,
        reference=reference,
    )


def read_stats_feature(
    stats: SubjectStats, feature: str, subcortex: str = "absent"
) -> FeatureFile:
    """Read one feature of a FreeSurfer subject.

    Parameters
    ----------
    stats : SubjectStats
        Of one FreeSurfer subject.
    feature : str
        `thickness`, `area`, `volume` or `volume_per_etiv`; or a measure of vertices,
        which is averaged where stats have none.
    subcortex : {"absent", "mean", "volume"}
        What the subcortex has for features of the cortical surface.

    Returns
    -------
    FeatureFile

    Raises
    ------
    FileFormatError, RegionNameError
        As :class:`.SubjectStats` does.
    """
    known = get_feature(feature)
    measure = known.also[0] if known.by_head_size else feature
    if _by_vertices(stats, measure):
        values = read_vertex_feature(stats.subject, measure, stats.atlas)
        known = replace(known, on_surface=True)
        note: tuple[str, ...] = (f"{feature}: plain mean over the vertices",)
    else:
        check_choice("feature of FreeSurfer's stats", measure, CORTEX_COLUMNS)
        values, note = stats.cortex(measure), ()
    if not known.on_surface or subcortex == "volume":
        below = stats.subcortex_volume()
        values = np.where(np.isnan(values), below, values)
    if known.by_head_size:
        values = values / stats.head_size()
    finished = finish_feature(values, known, stats.atlas, subcortex)
    return FeatureFile(finished.values, note + finished.notes)


def _by_vertices(stats: SubjectStats, measure: str) -> bool:
    """Tell whether a measure is only there for every vertex."""
    in_stats = measure in CORTEX_COLUMNS and stats.has_cortex()
    return not in_stats and find_vertex_files(stats.subject, measure) is not None


def read_region_table(
    path: str | Path,
    feature: str,
    atlas: Atlas,
    *,
    subcortex: str = "absent",
    frames: tuple[float, float] | None = None,
    reference: str | Path | None = None,
) -> FeatureFile:
    r"""Read one scan's table: a row for every region, or one row of all.

    Parameters
    ----------
    path : str or Path
        As :func:`read_feature` takes it.
    feature : str
        Name of the feature.
    atlas : Atlas
        Names the regions and gives their order.
    subcortex : {"absent", "mean", "volume"}
        What the subcortex has for features of the cortical surface.
    frames, reference : optional
        As :func:`read_feature` takes them.

    Returns
    -------
    FeatureFile

    Raises
    ------
    FileFormatError
        Where the table lacks a column of names or values, a region, or a number.
    RegionNameError
        Where a region is unknown or stands twice.

    Examples
    --------
    >>> import tempfile
    >>> from brainlsap.data.atlas import load_atlas
    >>> atlas = load_atlas("desikan82")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "regions.tsv"
    ...     lines = [f"{name}\t1.2" for name in atlas.names]
    ...     _ = path.write_text("region\tsuvr\n" + "\n".join(lines))
    ...     read_region_table(path, "fdg", atlas).values[:3]
    array([1.2, 1.2, 1.2])
    """
    known = get_feature(feature)
    found = read_named_values(Path(path), known, atlas, frames, reference)
    names = found.names
    kept = [
        i for i, n in enumerate(names) if atlas.find(n) is not None or not is_outside(n)
    ]
    try:
        places = atlas.match([names[i] for i in kept])
    except RegionNameError as error:
        other = other_parcellation(names, atlas)
        message = f"{other} {GTMSEG}" if other else str(error)
        raise RegionNameError(f"{path}: {message}") from error
    if known.by_head_size:
        raise FileFormatError(
            f"{path}: {feature} needs the intracranial volume, which tables of regions "
            "do not hold; read it from FreeSurfer's stats or from a table of scans."
        )
    values = np.full(len(atlas), np.nan)
    values[places] = found.values[kept]
    check_structures(places, atlas, str(path))
    below = (atlas.regions["structure"] == "subcortex").to_numpy()
    if below.any() and not below[places].any() and not _is_whole(path):
        raise FileFormatError(
            f"{path}: no subcortical region, and the last line has no end: the file "
            "may be cut short. Make it again, or add a line end if it is whole."
        )
    finished = finish_feature(values, known, atlas, subcortex)
    return FeatureFile(finished.values, (*found.notes, *finished.notes))


def _is_whole(path: str | Path) -> bool:
    return Path(path).suffix.lower() == ".xlsx" or ends_with_line(path)
