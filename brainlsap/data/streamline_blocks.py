"""A block of streamlines: what is held in memory at once of a tractogram."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from brainlsap.exceptions import FileFormatError


@dataclass(frozen=True, eq=False)
class StreamlineBlock:
    """Some streamlines of a file, one after the other.

    Parameters
    ----------
    first : int
        Number of the first streamline in its file, from 0.
    points : float array of shape (n_points, 3)
        RAS in mm. Rows that are of no streamline may stand between them.
    starts, stops : int arrays of shape (n_streamlines,)
        Rows of the first point of every streamline, and behind its last.
    """

    first: int
    points: np.ndarray
    starts: np.ndarray
    stops: np.ndarray

    def __len__(self) -> int:
        return len(self.starts)

    def select(self, kept: np.ndarray) -> "StreamlineBlock":
        """Return the block with some of the streamlines (bool array) only."""
        return StreamlineBlock(
            self.first, self.points, self.starts[kept], self.stops[kept]
        )

    @cached_property
    def lengths(self) -> np.ndarray:
        """Length of every streamline in mm; 0 for a single point or none."""
        points = self.points.astype(np.float64)
        steps = np.zeros(len(points) + 2)
        with np.errstate(invalid="ignore"):  # beside marks of NaN and infinity
            steps[1:-2] = np.sqrt((np.diff(points, axis=0) ** 2).sum(axis=1))
        # each by itself: a running sum would lose all that follow a very long one
        ends = np.column_stack([self.starts + 1, self.stops]).ravel()
        sums = np.add.reduceat(steps, ends)[::2] if len(ends) else np.zeros(0)
        return np.where(self.stops - self.starts > 1, sums, 0.0)


def cut_short(path: Path, what: str) -> FileFormatError:
    """Return the error that says what is wrong with a tractogram.

    Parameters
    ----------
    path : Path
        Of the file.
    what : str
        Half a sentence.

    Returns
    -------
    FileFormatError
    """
    return FileFormatError(f"{path}: {what}; the file is cut short or damaged.")


def check_count(path: Path, said: int, found: int) -> None:
    """Raise where a header counts other streamlines than there are; 0 is no count.

    Parameters
    ----------
    path : Path
        Of the file.
    said, found : int
        Numbers of streamlines.

    Raises
    ------
    FileFormatError
    """
    if said and said != found:
        raise cut_short(path, f"the header says {said} streamlines, found {found}")


def check_points(path: Path, points: np.ndarray) -> None:
    """Raise where a coordinate is NaN or infinite.

    Parameters
    ----------
    path : Path
        Of the file.
    points : array of shape (n_points, 3)
        As read.

    Raises
    ------
    FileFormatError
    """
    if not np.isfinite(points).all():
        raise cut_short(path, "a point has coordinates that are no numbers")
