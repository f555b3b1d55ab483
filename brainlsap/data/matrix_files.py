"""Read matrices from files that can hold several: `.mat`, `.npz`, `.h5`, `.gii`.

Sizes are looked at before anything is read; nothing is ever unpickled. Which array is
what is told by :mod:`brainlsap.data.named_arrays`.
"""

import gzip
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from brainlsap.data.gifti_files import read_gifti
from brainlsap.data.hdf_heaps import check_texts
from brainlsap.data.hdf_structure import check_structure
from brainlsap.data.matlab_files import parse_matlab
from brainlsap.data.matrices import MOST_ROWS, NamedMatrix, check_square, parse_matrix
from brainlsap.data.named_arrays import NAME_KEYS, collect_matrices
from brainlsap.data.text_lines import split_lines
from brainlsap.exceptions import FileFormatError

# One scan's connectomes are far smaller than this; more is a fault or an attack.
MOST_BYTES = 256 * 2**20
_TEXT_SUFFIXES = (".csv", ".tsv", ".txt")


def read_gz_matrix(path: str | Path) -> tuple[NamedMatrix, ...]:
    """Read one matrix from compressed text, as BIDS writes `_relmat.tsv.gz`.

    Parameters
    ----------
    path : str or Path
        `.tsv.gz`, `.csv.gz` or `.txt.gz`.

    Returns
    -------
    tuple of NamedMatrix

    Raises
    ------
    FileFormatError
        Where the file is missing, broken, too large, or no matrix.
    """
    path = check_size(path)
    if Path(path.stem).suffix.lower() not in _TEXT_SUFFIXES:
        raise FileFormatError(
            f"{path}: compressed files are read as text only; expected a name that "
            f"ends in .gz after {', '.join(_TEXT_SUFFIXES)}."
        )
    try:
        with gzip.open(path) as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise FileFormatError(f"{path}: cannot be unpacked: {error}.") from error
    if len(data) > MOST_BYTES:
        raise FileFormatError(f"{path}: unpacks to more than {MOST_BYTES >> 20} MiB.")
    return (parse_matrix(path, split_lines(path, data)),)


def read_npz_matrices(path: str | Path) -> tuple[NamedMatrix, ...]:
    """Read the square matrices of a NumPy archive, and names where it holds them.

    Parameters
    ----------
    path : str or Path
        A `.npz` file.

    Returns
    -------
    tuple of NamedMatrix

    Raises
    ------
    FileFormatError
        Where the file is missing, broken, or holds no matrix of numbers.
    """
    path = check_size(path)
    try:
        with zipfile.ZipFile(path) as archive:
            too_large = sum(i.file_size for i in archive.infolist()) > MOST_BYTES
        if too_large:
            raise FileFormatError(
                f"{path}: unpacks to more than {MOST_BYTES >> 20} MiB."
            )
        with np.load(path, allow_pickle=False) as archive:
            found = {key: archive[key] for key in archive.files}
            # what is no array in the archive comes as bytes
            arrays = {k: v for k, v in found.items() if isinstance(v, np.ndarray)}
    except FileFormatError:
        raise
    except Exception as error:  # of zip, zlib and NumPy's header; all at once
        raise _unreadable(path, ".npz archive of arrays", error) from error
    return collect_matrices(path, arrays)


def read_mat_matrices(path: str | Path) -> tuple[NamedMatrix, ...]:
    """Read the square matrices of a MATLAB file with their names.

    Parameters
    ----------
    path : str or Path
        A `.mat` file of any version (7.3 is HDF5).

    Returns
    -------
    tuple of NamedMatrix

    Raises
    ------
    FileFormatError
        Where the file is missing, broken, or holds no matrix of numbers.
    """
    path = check_size(path)
    data = path.read_bytes()
    if b"MATLAB 7.3" in data[:128]:
        return read_hdf_matrices(path)
    try:
        arrays = parse_matlab(data, MOST_BYTES)
    except (ValueError, OverflowError, RecursionError, zlib.error) as error:
        raise _unreadable(path, "MATLAB file", error) from error
    return collect_matrices(path, arrays)


def read_hdf_matrices(path: str | Path) -> tuple[NamedMatrix, ...]:
    """Read the square matrices of an HDF5 file with their names.

    Parameters
    ----------
    path : str or Path
        A `.h5` file; data sets may lie in groups.

    Returns
    -------
    tuple of NamedMatrix

    Raises
    ------
    FileFormatError
        Where the file is missing, broken, or holds no matrix of numbers, or its
        names may stand in cells or records, which are not read.
    """
    import h5py

    path = check_size(path)
    arrays: dict[str, np.ndarray] = {}
    unread: dict[str, tuple[int, ...]] = {}

    def take(name: str | bytes, item: object) -> None:
        # a name that is not in UTF-8 comes as bytes
        key = name if isinstance(name, str) else name.decode("utf-8", "replace")
        if isinstance(item, h5py.Dataset) and 0 < item.size <= MOST_ROWS**2:
            kind = item.dtype.kind
            if item.size * item.dtype.itemsize > MOST_BYTES:
                return
            as_text = h5py.check_string_dtype(item.dtype) is not None
            is_list = max(item.shape, default=0) == item.size
            if as_text and is_list and item.size <= MOST_ROWS:
                check_texts(item)
                arrays[key] = np.array(item.asstr()[()], dtype=str)
            elif kind in "uifb" and sum(a.nbytes for a in arrays.values()) < MOST_BYTES:
                arrays[key] = item[()]
                if kind == "u" and not is_list and key.lower().endswith(NAME_KEYS):
                    unread[key] = item.shape  # MATLAB's text, a row a name
            elif is_list:  # MATLAB's cells, or records
                unread[key] = item.shape

    check_structure(path)
    try:
        with h5py.File(path, "r") as file:
            file.visititems(take)
    except Exception as error:  # HDF5 reports a broken file in many ways
        raise _unreadable(path, "HDF5 file", error) from error
    found = collect_matrices(path, arrays)
    _check_unread(path, found, unread)
    return found


def read_gii_matrix(path: str | Path) -> tuple[NamedMatrix, ...]:
    """Read the one matrix of a GIFTI file, as micapipe writes `.shape.gii`.

    Parameters
    ----------
    path : str or Path
        A `.gii` file with one array.

    Returns
    -------
    tuple of NamedMatrix

    Raises
    ------
    FileFormatError
        Where the file is missing, broken, or holds no matrix of numbers.
    """
    path = check_size(path)
    arrays = [array.data for array in read_gifti(path).darrays]
    if len(arrays) != 1 or arrays[0] is None:
        raise FileFormatError(
            f"{path}: expected a GIFTI file with one matrix, got {len(arrays)} arrays."
        )
    check_square(path, arrays[0].shape)
    return (NamedMatrix(np.asarray(arrays[0], dtype=np.float64)),)


def check_size(path: str | Path) -> Path:
    """Raise where a file is missing or larger than any connectome.

    Parameters
    ----------
    path : str or Path
        Of the file.

    Returns
    -------
    Path

    Raises
    ------
    FileFormatError
    """
    path = Path(path)
    if not path.is_file():
        raise FileFormatError(f"{path}: no such file.")
    if path.stat().st_size > MOST_BYTES:
        raise FileFormatError(
            f"{path}: {path.stat().st_size >> 20} MiB; a connectome has at most "
            f"{MOST_BYTES >> 20}. Is it the right file?"
        )
    return path


def alone(
    reader: Callable[[str | Path], NamedMatrix],
) -> Callable[[str | Path], tuple[NamedMatrix, ...]]:
    """Return a reader of one matrix as one of several.

    Parameters
    ----------
    reader : callable
        From path to matrix.

    Returns
    -------
    callable
        From path to a tuple of the one matrix.
    """

    def read(path: str | Path) -> tuple[NamedMatrix, ...]:
        return (reader(path),)

    return read


def _check_unread(
    path: Path, found: tuple[NamedMatrix, ...], unread: dict[str, tuple[int, ...]]
) -> None:
    """Refuse to go by the order of rows where names may stand in what was not read."""
    sizes = {len(matrix.values) for matrix in found if matrix.rows is None}
    hidden = [key for key, shape in unread.items() if sizes & set(shape)]
    if hidden:
        raise FileFormatError(
            f"{path}: {hidden[0]!r} may name the rows, but is kept as cells or records "
            "(as MATLAB does in files of version 7.3); expected a list of text. Save "
            "the file with '-v7', or write the names as text."
        )


def _unreadable(path: Path, what: str, error: Exception) -> FileFormatError:
    reason = str(error) or type(error).__name__
    return FileFormatError(
        f"{path}: cannot be read as a {what}: {reason.rstrip('.')}. The file may be "
        "cut short."
    )
