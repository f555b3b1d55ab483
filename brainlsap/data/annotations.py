"""Read FreeSurfer's annotations without trusting the sizes that they say."""

import struct
from pathlib import Path

import numpy as np

from brainlsap.exceptions import FileFormatError

# Sizes of a vertex' number and label, of a number, and of a name's colour.
_VERTEX, _WORD, _COLOUR = 8, 4, 16


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
        content = path.read_bytes()
        _check(content)
        codes, table, names = read_annot(path, orig_ids=True)
        own = table[_numbers(content), 4]
        labels = _places(np.asarray(codes, dtype=np.int64), own.astype(np.int64))
        names = list(names)
    except Exception as error:  # a broken file fails in many ways
        raise FileFormatError(f"{path}: cannot be read ({error}).") from error
    return labels, names


def _numbers(content: bytes) -> list[int]:
    """Return the row of the table of colours that each name belongs to.

    Names stand in any order, and numbers may be left out.
    """
    place = _WORD + _VERTEX * struct.unpack_from(">i", content)[0] + _WORD
    version, size, length = struct.unpack_from(">3i", content, place)
    if version > 0:  # the old kind says how many, and nothing else
        return list(range(version))
    place += 3 * _WORD + length
    numbers = []
    (n_names,) = struct.unpack_from(">i", content, place)
    place += _WORD
    for _ in range(n_names):
        number, length = struct.unpack_from(">2i", content, place)
        if not 0 <= number < size:
            raise ValueError(f"a name has the number {number}, of {size}")
        numbers.append(number)
        place += 2 * _WORD + length + _COLOUR
    return numbers


def _places(codes: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return which name has the colour of each vertex, -1 for those of colour 0."""
    order = np.argsort(own, kind="stable")
    place = np.searchsorted(own[order], codes)
    found = order[np.minimum(place, len(order) - 1)]
    if (own[found] != codes)[codes != 0].any():
        raise ValueError("a vertex has a label without a name")
    return np.where(codes == 0, -1, found)


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
