"""Read FreeSurfer's annotations without trusting the sizes that they say."""

import struct
from pathlib import Path

import numpy as np

from brainlsap.exceptions import FileFormatError

# Sizes of a vertex' number and label, and of an entry's colour.
_VERTEX, _WORD = 8, 4


def read_annotated(path: str | Path) -> tuple[np.ndarray, list[bytes]]:
    """Read a `.annot` file: a label for every vertex, and the labels' names.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    labels : int array of shape (n_vertices,)
        Number of the name, -1 where there is none.
    names : list of bytes
        As the file has them.

    Raises
    ------
    FileFormatError
        Where the file is missing or broken.

    Examples
    --------
    >>> read_annotated("nowhere.annot")
    Traceback (most recent call last):
    brainlsap.exceptions.FileFormatError: nowhere.annot: no such file.
    """
    from nibabel.freesurfer import read_annot

    path = Path(path)
    if not path.is_file():
        raise FileFormatError(f"{path}: no such file.")
    try:
        _check(path.read_bytes())
        labels, _, names = read_annot(path)
        names = list(names)
        if labels.size and not -1 <= labels.min() <= labels.max() < len(names):
            raise ValueError("a vertex has a label without a name")
    except Exception as error:  # a broken file fails in many ways
        raise FileFormatError(f"{path}: cannot be read ({error}).") from error
    return labels, names


def _check(content: bytes) -> None:
    """Raise where the file cannot hold as many vertices or names as it says."""
    if len(content) < _WORD:
        raise ValueError(f"{len(content)} bytes")
    n_vertices = struct.unpack_from(">i", content)[0]
    place = _WORD + _VERTEX * n_vertices
    if not 0 < _VERTEX * n_vertices < len(content):
        raise ValueError(f"{len(content)} bytes cannot hold its vertices")
    if len(content) < place + 3 * _WORD:
        return  # without a table of names, which is said by who reads it
    has_names, version, n_names = struct.unpack_from(">3i", content, place)
    n_names = n_names if version < 0 else version
    if has_names and not 0 <= n_names * _WORD <= len(content):
        raise ValueError(f"{len(content)} bytes cannot hold its {n_names} names")
