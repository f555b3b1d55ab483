"""Read PET tables that are no plain table of regions: `gtm.stats.dat`, time series.

`mri_gtmpvc` writes `gtm.stats.dat` without a header: index, number, name and tissue of
a segment, voxels, variance reduction, uptake, and in newer versions the residual.
petprep_extract_tacs writes `frame_start frame_end <regions>`, PETPrep
`FrameTimesStart FrameTimesEnd <regions>`: activity over time, which becomes SUVR by the
average over frames divided by that of a reference region.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from brainlsap.data.region_names import split_name
from brainlsap.data.tables import parse_numbers, read_table
from brainlsap.data.text_lines import read_lines
from brainlsap.exceptions import FileFormatError, ParameterError

# Reference region -> cores of the names whose mean it is.
REFERENCES = {
    "cerebellar cortex": ("cerebellumcortex",),
    "cerebellar white matter": ("cerebellumwhitematter",),
    "pons": ("pons",),
    "brain stem": ("brainstem",),
    "whole cerebellum": ("cerebellumcortex", "cerebellumwhitematter"),
}
_STARTS = ("frame_start", "frametimesstart", "start", "framestart")
_ENDS = ("frame_end", "frametimesend", "end", "frameend")
_GTM_COLUMNS = (7, 8)


def is_gtm_stats(path: Path, lines: list[str]) -> bool:
    """Tell whether a file is PETSurfer's `gtm.stats.dat`.

    Parameters
    ----------
    path : Path
        Of the file.
    lines : list of str
        Of its text.

    Returns
    -------
    bool
    """
    cells = lines[0].split() if lines else []
    return path.name == "gtm.stats.dat" or (
        len(cells) in _GTM_COLUMNS and cells[0] == "1" and cells[1].isdecimal()
    )


def read_gtm_stats(
    path: Path, reference: str | None = None
) -> tuple[list[str], np.ndarray]:
    """Read the uptake of every segment of PETSurfer.

    Parameters
    ----------
    path : Path
        A `gtm.stats.dat`.
    reference : str, optional
        A key of `REFERENCES`, or the name of a segment, that becomes 1. By default
        values stay as `mri_gtmpvc` scaled them (to the pons unless told otherwise).

    Returns
    -------
    names : list of str
    values : array of shape (n_segments,)

    Raises
    ------
    FileFormatError
        Where the file is no such table, or cut short.
    """
    rows = [line.split() for line in read_lines(path)]
    widths = {len(row) for row in rows}
    if len(widths) != 1 or not widths <= set(_GTM_COLUMNS):
        raise FileFormatError(
            f"{path}: expected PETSurfer's rows of 7 or 8 cells (index, number, name, "
            f"tissue, voxels, VRF, uptake), got rows of {sorted(widths)}. The file may "
            "be cut short."
        )
    order = [row[0] for row in rows]
    if order != [str(i) for i in range(1, len(rows) + 1)]:
        raise FileFormatError(
            f"{path}: rows must be counted 1 to {len(rows)} in their first column; "
            "some are missing or out of order."
        )
    names = [row[2] for row in rows]
    cells = pd.DataFrame({"uptake": [row[6] for row in rows]})
    values = parse_numbers(path, cells)[:, 0]
    if reference is not None:
        voxels = parse_numbers(path, pd.DataFrame({"nvox": [r[4] for r in rows]}))
        values = values / _reference_value(path, names, values, reference, voxels[:, 0])
    return names, values


def is_time_series(heads: list[str]) -> bool:
    """Tell whether a table is of activity over time.

    Parameters
    ----------
    heads : list of str
        Of its columns.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_time_series(["FrameTimesStart", "FrameTimesEnd", "Left-Thalamus"])
    True
    """
    lower = [head.lower() for head in heads[:2]]
    return len(lower) == 2 and lower[0] in _STARTS and lower[1] in _ENDS


def frames_first(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of activity over time with the times of its frames in front.

    Parameters
    ----------
    table : DataFrame
        As :func:`.read_table` gives it.

    Returns
    -------
    DataFrame
        Without a column that only counts rows; a table without frames is unchanged.

    Examples
    --------
    >>> table = pd.DataFrame([[0, 5, 0, 9]], columns=["", "pons", "start", "end"])
    >>> list(frames_first(table))
    ['start', 'end', 'pons']
    """
    heads = [str(head) for head in table.columns]
    starts = [head for head in heads if head.lower() in _STARTS]
    ends = [head for head in heads if head.lower() in _ENDS]
    if len(starts) != 1 or len(ends) != 1:
        return table
    times = [*starts, *ends]
    return table[[*times, *(head for head in heads if head and head not in times)]]


def average_frames(
    path: Path,
    table: pd.DataFrame,
    frames: tuple[float, float] | None = None,
    reference: str | Path | None = None,
) -> tuple[list[str], np.ndarray]:
    """Average activity over frames and divide it by that of a reference.

    Parameters
    ----------
    path : Path
        Of the table.
    table : DataFrame
        Its cells as text; start and end of frames first.
    frames : (float, float), optional
        Start and end of the window in the unit of the table (seconds in BIDS); it must
        begin and end where frames do. Needless where there is one frame.
    reference : str or path, optional
        A key of `REFERENCES`, the name of a column, or a time series of its own. By
        default PETPrep's one `_ref-` file beside the table.

    Returns
    -------
    names : list of str
    values : array of shape (n_regions,)
        Means weighted by the duration of frames, over the reference's.

    Raises
    ------
    ParameterError
        Where no window or no reference is given, and none follows.
    FileFormatError
        Where frames overlap, the window cuts one, or the reference is missing.
    """
    heads = [str(head) for head in table.columns]
    numbers = parse_numbers(path, table)
    weights = frame_weights(path, numbers[:, 0], numbers[:, 1], frames)
    values = _mean(numbers, weights)
    names = heads[2:]
    file = _reference_file(path, reference)
    if file is not None:
        other = frames_first(read_table(file))
        if not is_time_series(list(other.columns)) or other.shape[1] != 3:
            raise FileFormatError(
                f"{file}: expected a time series of one reference region, got the "
                f"columns {', '.join(other.columns[:6])}."
            )
        times = parse_numbers(file, other)
        share = frame_weights(file, times[:, 0], times[:, 1], frames)
        return names, values / _above_zero(file, "it", float(_mean(times, share)[0]))
    if reference is None:
        raise ParameterError(
            f"{path} holds activity over time; name the region that is to be 1 by "
            f"reference=, one of {', '.join(REFERENCES)}, a column or a file."
        )
    if str(reference) in names:
        one = float(values[names.index(str(reference))])
        return names, values / _above_zero(path, str(reference), one)
    return names, values / _reference_value(path, names, values, str(reference))


def frame_weights(
    path: Path, start: np.ndarray, end: np.ndarray, frames: tuple[float, float] | None
) -> np.ndarray:
    """Return the share of every frame in the average."""
    if not start.size or np.isnan(start + end).any():
        raise FileFormatError(f"{path}: no frames, or frames without start or end.")
    if not (end > start).all() or (start[1:] < end[:-1] - 1e-6).any():
        raise FileFormatError(
            f"{path}: frames must follow each other, each ending after it starts."
        )
    if frames is None:
        if len(start) > 1:
            raise ParameterError(
                f"{path} has {len(start)} frames from {start[0]:g} to {end[-1]:g}; say "
                "which to average by frames=(start, end)."
            )
        return np.ones(1)
    inside = (start >= frames[0] - 1e-6) & (end <= frames[1] + 1e-6)
    touched = (start < frames[1] - 1e-6) & (end > frames[0] + 1e-6)
    duration = np.where(inside, end - start, 0)
    is_whole = np.isclose(duration.sum(), frames[1] - frames[0], rtol=1e-3)
    if not inside.any() or (touched & ~inside).any() or not is_whole:
        edges = ", ".join(f"{edge:g}" for edge in (*start[:40], end[-1]))
        raise FileFormatError(
            f"{path}: the window {frames[0]:g} to {frames[1]:g} must begin and end "
            f"where frames do and be filled by them; they change at {edges}."
        )
    return duration / duration.sum()


def _mean(numbers: np.ndarray, weights: np.ndarray) -> np.ndarray:
    used = weights > 0
    return weights[used] @ numbers[used, 2:]


def _reference_file(path: Path, reference: str | Path | None) -> Path | None:
    if reference is not None:
        file = Path(reference)
        return file if file.suffix == ".tsv" and file.is_file() else None
    stem = path.name.partition("_desc-")[0]
    found = sorted(path.parent.glob(f"{stem}_ref-*_timeseries.tsv"))
    return found[0] if len(found) == 1 and found[0] != path else None


def _reference_value(
    path: Path,
    names: list[str],
    values: np.ndarray,
    reference: str,
    voxels: np.ndarray | None = None,
) -> float:
    """Return the mean of a reference region, by voxels where they are known."""
    cores = REFERENCES.get(reference.lower(), (split_name(reference)[1],))
    side = None if reference.lower() in REFERENCES else split_name(reference)[0]
    rows = [
        i
        for i, name in enumerate(names)
        if split_name(name)[1] in cores and side in (None, split_name(name)[0])
    ]
    found = {split_name(names[i])[1] for i in rows}
    if found != set(cores):
        raise FileFormatError(
            f"{path}: no region {reference!r} to refer to; known are "
            f"{', '.join(REFERENCES)} and the regions of the file."
        )
    weights = None if voxels is None else voxels[rows]
    value = float(np.average(values[rows], weights=weights))
    return _above_zero(path, reference, value)


def _above_zero(path: Path, reference: str, value: float) -> float:
    if not 0 < value < np.inf:
        raise FileFormatError(
            f"{path}: {reference} has the mean {value:g}; expected more than 0."
        )
    return value
