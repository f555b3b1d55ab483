"""Read a PET image as one frame: the mean of a window, uncovered voxels as NaN."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from brainlsap.data.pet_tables import frame_weights
from brainlsap.data.volume_files import read_volume, read_voxels
from brainlsap.exceptions import FileFormatError, ParameterError


def read_pet(
    path: str | Path,
    frames: tuple[float, float] | None = None,
    frame_times: Sequence[Sequence[float]] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Read a PET image, averaged over its frames where it has several.

    Parameters
    ----------
    path : str or Path
        NIfTI or MGZ of three axes, or four with time.
    frames : (float, float), optional
        Start and end of the window in seconds; frames count by their duration.
    frame_times : sequence of (float, float), optional
        Start and end of every frame in seconds. By default those of the `.json` of
        the same name (BIDS: `FrameTimesStart`, `FrameDuration`).

    Returns
    -------
    values : array of shape (n_x, n_y, n_z)
        float64; NaN where a voxel is not covered: NaN, infinite or 0 in the file.
    affine : array of shape (4, 4)
        From voxel to RAS in mm.

    Raises
    ------
    FileFormatError
        Where the image or its frames cannot be read.
    ParameterError
        Where it has several frames and no window or no times are given.
    """
    path = Path(path)
    image = read_volume(path)
    if len(image.shape) == 3 or image.shape[3] == 1:
        values = read_voxels(image, path).reshape(image.shape[:3]).astype(np.float64)
    else:
        weights = _weights(path, image.shape[3], frames, frame_times)
        values = np.zeros(image.shape[:3])
        for frame in np.flatnonzero(weights):
            values += weights[frame] * read_voxels(image, path, int(frame))
    values[(values == 0) | ~np.isfinite(values)] = np.nan
    return values, np.asarray(image.affine, dtype=np.float64)


def _weights(
    path: Path,
    n_frames: int,
    frames: tuple[float, float] | None,
    times: Sequence[Sequence[float]] | None,
) -> np.ndarray:
    if frames is None:
        raise ParameterError(
            f"{path} has {n_frames} frames; say which to average by frames=(start, "
            "end) in seconds."
        )
    known = _sidecar_times(path) if times is None else times
    table = np.asarray(known, dtype=np.float64)
    if table.shape != (n_frames, 2):
        raise FileFormatError(
            f"{path}: {n_frames} frames, but times of shape {table.shape}; expected "
            f"start and end of each, ({n_frames}, 2)."
        )
    return frame_weights(path, table[:, 0], table[:, 1], frames)


def _sidecar_times(path: Path) -> np.ndarray:
    """Return start and end of every frame, as BIDS writes them beside an image."""
    name = path.name.removesuffix(".gz").rpartition(".")[0] + ".json"
    try:
        said = json.loads(path.with_name(name).read_text(encoding="utf-8"))
        start = np.asarray(said["FrameTimesStart"], dtype=np.float64)
        duration = np.asarray(said["FrameDuration"], dtype=np.float64)
        return np.stack([start, start + duration], axis=1)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ParameterError(
            f"{path}: the times of its frames are not known: {name} beside it needs "
            "FrameTimesStart and FrameDuration; or give frame_times=."
        ) from error
