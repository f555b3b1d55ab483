"""Read the weights of streamlines, such as those of MRtrix's `tcksift2`."""

from pathlib import Path

import numpy as np

from brainlsap.data.text_lines import read_lines
from brainlsap.exceptions import FileFormatError


def read_streamline_weights(
    weights: str | Path | np.ndarray | None,
) -> np.ndarray | None:
    """Read one weight for every streamline.

    Parameters
    ----------
    weights : path, array of shape (n_streamlines,), or None
        Text of numbers with white space or commas between them (lines with `#` are
        skipped), or `.npy`.

    Returns
    -------
    array of shape (n_streamlines,) or None
        float64; None where none were given.

    Raises
    ------
    FileFormatError
        Where one is no number, NaN, infinite or negative.

    Examples
    --------
    >>> read_streamline_weights([0.5, 2]).tolist()
    [0.5, 2.0]
    """
    if weights is None:
        return None
    where = "streamline_weights"
    try:
        if isinstance(weights, str | Path):
            where = str(weights)
            if where.endswith(".npy"):
                weights = _load(where)
            else:
                text = " ".join(read_lines(where)).replace(",", " ")
                weights = np.array(text.split(), dtype=np.float64)
        values = np.asarray(weights, dtype=np.float64).ravel()
    except (OSError, ValueError, EOFError, TypeError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(
            f"{where}: expected one number for each streamline: {error}."
        ) from error
    wrong = np.flatnonzero(~(values >= 0) | np.isinf(values))
    if wrong.size:
        raise FileFormatError(
            f"{where}: weights must be finite and not negative; number {wrong[0] + 1} "
            f"is {values[wrong[0]]}."
        )
    return values


def _load(where: str) -> np.ndarray:
    try:
        # mapped, so that a header which lies about its shape allocates nothing
        return np.load(where, mmap_mode="r", allow_pickle=False)
    except OSError:
        raise
    except Exception as error:  # the parser of a broken header trips in many ways
        raise ValueError(str(error) or type(error).__name__) from error
