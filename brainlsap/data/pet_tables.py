"""Read PET tables that are no plain table of regions: `gtm.stats.dat`, time activity.

PETSurfer's `mri_gtmpvc` writes `gtm.stats.dat` without a header: index, number, name
and tissue of a segment, voxels, variance reduction, uptake, and in newer versions the
residual. petprep_extract_tacs writes `frame_start frame_end <regions>`, PETPrep
`FrameTimesStart FrameTimesEnd <regions>`: activity over time, which becomes SUVR by
the average over frames divided by that of a reference region. Where that region has
several parts, each counts by its volume, which both write into `*_morph.tsv`.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from brainlsap.atlas.region_names import split_name
from brainlsap.data.tables import (
    find_column,
    listed,
    parse_numbers,
    read_lines,
    read_table,
)
from brainlsap.exceptions import FileFormatError, ParameterError

# Reference region -> cores of the names whose mean it is.
REFERENCES = {
    "cerebellar cortex": ("cerebellumcortex",),
    "cerebellar white matter": ("cerebellumwhitematter",),
    "pons": ("pons",),
    "brain stem": ("brainstem",),
    "whole cerebellum": ("cerebellumcortex", "cerebellumwhitematter"),
}
_STARTS, _ENDS = ("frame_start", "frametimesstart"), ("frame_end", "frametimesend")


def read_gtm_stats(
    path: Path, reference: str | Path | None = None
) -> tuple[list[str], np.ndarray]:
    """Return names and uptake of PETSurfer's segments.

    `reference`, a key of `REFERENCES` or a segment's name, becomes 1; by default
    values stay as `mri_gtmpvc` scaled them (to the pons unless told otherwise).
    """
    rows = [line.split() for line in read_lines(path)]
    counted = [row[0] for row in rows] == [str(i) for i in range(1, len(rows) + 1)]
    if {len(row) for row in rows} not in ({7}, {8}) or not counted:
        raise FileFormatError(
            f"{path}: expected PETSurfer's rows of 7 or 8 cells, counted 1, 2 ... in "
            "their first column. The file may be cut short."
        )
    table = pd.DataFrame([row[:7] for row in rows])
    names, (voxels, values) = table[2].tolist(), parse_numbers(path, table[[4, 6]]).T
    if reference is not None:
        volumes = dict(zip(names, voxels.tolist(), strict=True))
        values = values / _reference_value(path, names, values, reference, volumes)
    return names, values


@lru_cache(maxsize=64)
def is_time_series(heads: tuple[str, ...]) -> bool:
    """Return whether columns are of activity over time.

    >>> is_time_series(("FrameTimesStart", "FrameTimesEnd", "Left-Thalamus"))
    True
    """
    return None not in [find_column(heads, words) for words in (_STARTS, _ENDS)]


def average_frames(
    path: Path,
    table: pd.DataFrame,
    frames: tuple[float, float] | None = None,
    reference: str | Path | None = None,
) -> tuple[list[str], np.ndarray]:
    """Average activity over a window of frames, divided by that of a reference.

    `frames` is the start and end of the window, needless where there is one frame;
    `reference` a key of `REFERENCES`, a column, or a file of its own (by default
    PETPrep's one `_ref-` file beside the table).
    """
    names, values = _mean_of_frames(path, table, frames)
    if reference is None:
        stem = path.name.partition("_desc-")[0]
        files = list(path.parent.glob(f"{stem}_ref-*_timeseries.tsv"))
    else:
        files = [Path(reference)] if str(reference).endswith(".tsv") else []
    if len(files) == 1 and files[0] != path:
        parts, means = _mean_of_frames(files[0], read_table(files[0]), frames)
        if len(parts) != 1:
            wanted = f"a time series of one reference region, got {listed(parts, 6)}"
            raise FileFormatError(f"{files[0]}: expected {wanted}.")
        return names, values / _above_zero(files[0], parts[0], means[0])
    if reference is None:
        raise ParameterError(
            f"{path} holds activity over time; name the region that is to be 1 by "
            f"reference=, one of {', '.join(REFERENCES)}, a column or a file."
        )
    volumes = _volumes(path)
    return names, values / _reference_value(path, names, values, reference, volumes)


def _mean_of_frames(
    path: Path, table: pd.DataFrame, frames: tuple[float, float] | None
) -> tuple[list[str], np.ndarray]:
    """Return the regions of a time series, and their means over a window."""
    edges = [find_column(table, words) for words in (_STARTS, _ENDS)]
    if None in edges:
        raise FileFormatError(f"{path}: no columns of starts and ends of frames.")
    # a head may be empty: such a column counts the rows
    names = [head for head in table if head and head not in edges]
    start, end = parse_numbers(path, table[edges]).T
    weights = frame_weights(path, start, end, frames)
    used = weights > 0
    return names, weights[used] @ parse_numbers(path, table[names])[used]


def frame_weights(
    path: Path, start: np.ndarray, end: np.ndarray, frames: tuple[float, float] | None
) -> np.ndarray:
    """Return the share of every frame in the average."""
    if not start.size or not (end > start).all() or (start[1:] < end[:-1] - 1e-6).any():
        raise FileFormatError(
            f"{path}: frames must follow each other, each ending after it starts."
        )
    if frames is None and len(start) > 1:
        raise ParameterError(
            f"{path}: {len(start)} frames from {start[0]:g} to {end[-1]:g}; say "
            "which to average by frames=, as start and end."
        )
    first, last = frames or (start[0], end[0])
    inside = (start >= first - 1e-6) & (end <= last + 1e-6)
    touched = (start < last - 1e-6) & (end > first + 1e-6)
    duration = np.where(inside, end - start, 0)
    is_whole = np.isclose(duration.sum(), last - first, rtol=1e-3)
    if not inside.any() or (touched & ~inside).any() or not is_whole:
        edges = ", ".join(f"{edge:g}" for edge in (*start[:40], end[-1]))
        raise FileFormatError(
            f"{path}: the window {first:g} to {last:g} must begin and end where frames "
            f"do and be filled by them; they change at {edges}."
        )
    return duration / duration.sum()


def _volumes(path: Path) -> dict[str, float]:
    """Return the volumes of regions from `*_morph.tsv`, empty where there is none.

    petprep_extract_tacs writes it beside the activity, PETPrep into `anat`; both with
    the columns `index`, `name` and `volume-mm3`.
    """
    segmentation = re.search(r"_seg-[A-Za-z0-9]+", path.name)
    pattern = f"*{segmentation[0]}*_morph.tsv" if segmentation else "*_morph.tsv"
    above = path.parent.parent
    for folder in (path.parent, above / "anat", above.parent / "anat"):
        found = list(folder.glob(pattern))
        table = read_table(found[0]) if len(found) == 1 else pd.DataFrame()
        if {"name", "volume-mm3"} <= set(table):
            sizes = parse_numbers(found[0], table[["volume-mm3"]])[:, 0].tolist()
            return dict(zip(table["name"], sizes, strict=True))
    return {}


def _reference_value(
    path: Path,
    names: Sequence[str],
    values: np.ndarray,
    reference: str | Path,
    volumes: dict[str, float],
) -> float:
    """Return the mean of a reference region over its volume.

    Without volumes, left and right of one structure count alike; two tissues do not.
    """
    side, core = split_name(str(reference))
    cores = REFERENCES.get(str(reference).lower(), (core,))
    parts = [(row, *split_name(name)) for row, name in enumerate(names)]
    found = {row: core for row, s, core in parts if core in cores and side in (None, s)}
    if set(found.values()) != set(cores):
        raise FileFormatError(
            f"{path}: no region {reference!r} to refer to; known are "
            f"{', '.join(REFERENCES)} and the regions of the file."
        )
    weights = np.array([volumes.get(names[row], np.nan) for row in found])
    if not (weights > 0).all():
        if len(cores) > 1:
            raise FileFormatError(
                f"{path}: the {reference} has {len(found)} parts, which count by their "
                "volumes, and those are not known; expected a *_morph.tsv (name, "
                "volume-mm3) beside it or in anat. Make it, or give another reference=."
            )
        weights = np.ones(len(found))
    mean = np.average(values[list(found)], weights=weights)
    return _above_zero(path, str(reference), float(mean))


def _above_zero(path: Path, reference: str, value: float) -> float:
    if not 0 < value < np.inf:
        raise FileFormatError(
            f"{path}: {reference} has the mean {value:g}; expected more than 0."
        )
    return value
