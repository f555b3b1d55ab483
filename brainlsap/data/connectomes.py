"""Read one connectome and put its rows and columns in the order of an atlas.

The order comes from names wherever there are any; from the number of rows where one
documented tool writes such matrices (:mod:`brainlsap.data.row_order`); from nothing
else. One triangle is mirrored. Weights are kept as they are, the diagonal included.
"""

import gzip
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from brainlsap.arrays import check_choice
from brainlsap.atlas import Atlas, load_atlas
from brainlsap.atlas.region_names import as_text
from brainlsap.data.row_order import (
    are_counts,
    find_row_order,
    find_sidecar,
    read_names,
    row_orders,
)
from brainlsap.data.tables import (
    DELIMITERS,
    MOST_BYTES,
    read_lines,
    reading,
    sniff_delimiter,
    split_cells,
)
from brainlsap.exceptions import FileFormatError, ParameterError, RegionNameError

SYMMETRIZE = ("refuse", "mean", "max")
# Of several measures in one file, these are taken unless another is asked for.
USUAL_MEASURES = ("sift_radius2_count", "radius2_count", "count")
# More rows than any parcellation has; beyond, arrays are not copied whole.
_MOST_ROWS = 3000
# Regions that a tool leaves out where a brain lacks them; more is another atlas.
_MOST_ABSENT = 8
# Text is rounded: two triangles of one matrix may differ in the last digit written.
_ROUNDING = 1e-5
_CORNER = frozenset(("", "region", "name", "label", "index", "node", "roi"))
_NAME_KEYS = ("region_labels", "region_names", "regions", "names", "name", "labels")
# Numbers of labels count as names only where a file holds no texts.
_NUMBER_KEYS = (*_NAME_KEYS, "ids", "id")


class ConnectomeFile(NamedTuple):
    """A connectome in the order of an atlas, and what was done to get there.

    Parameters
    ----------
    matrix : float32 array of shape (n_rois, n_rois)
        Symmetric, finite, not negative.
    notes : tuple of str
        What was mapped, mirrored or left out; the same words for every file that
        needed the same.
    """

    matrix: np.ndarray
    notes: tuple[str, ...] = ()


class RawMatrix(NamedTuple):
    """A square matrix, and what its file calls its rows, its columns and its weights.

    `leaves_out`: the tool leaves out regions that a brain does not have.
    """

    values: np.ndarray
    rows: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    measure: str = ""
    leaves_out: bool = False


def read_connectome(
    path: str | Path,
    atlas: Atlas | str,
    *,
    measure: str | None = None,
    labels: str | Path | Sequence[str] | None = None,
    row_order: str | None = None,
    symmetrize: str = "refuse",
) -> ConnectomeFile:
    """Read a connectome of any tool into the order of an atlas.

    Parameters
    ----------
    path : str or Path
        A matrix as text (`.csv`, `.tsv`, `.txt`, `.dat`, also `.gz`, whatever the
        delimiter), `.npy`, `.npz`, `.mat`, `.h5` or `.gii`.
    atlas : Atlas or str
        Names the regions and gives their order.
    measure : str, optional
        Which matrix to take from a file of several, such as `radius2_meanlength`.
    labels : sequence of str or path, optional
        Name of every row, or a file with one a line, for matrices without names. By
        default a file `labels.txt`, `labels.csv`, `labels_list.txt` or
        `<name>_labels.*` beside the matrix or in one of the two folders above.
    row_order : {"atlas", "mrtrix", "micapipe", "freesurfer"}, optional
        Whose order the rows of a matrix without names have, where its size does not
        say so; a first row for label 0 may stand before it.
    symmetrize : {"refuse", "mean", "max"}
        What becomes of two directions that differ by more than rounding.

    Returns
    -------
    ConnectomeFile

    Raises
    ------
    FileFormatError
        Where the file is no connectome of this atlas: another format, a size without
        a known order, NaN, infinite or negative weights, or two triangles that differ.
    RegionNameError
        Where a name is unknown or stands twice, or a region is missing.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "connectome.csv"
    ...     np.savetxt(path, np.triu(np.ones((84, 84)), 1), "%d", ",")
    ...     connectome = read_connectome(path, "desikan82")
    >>> connectome.matrix.shape, int(connectome.matrix.sum())
    ((82, 82), 6642)
    """
    path, atlas = Path(path), load_atlas(atlas)
    check_choice("symmetrize", symmetrize, SYMMETRIZE)
    reader = FORMATS.get(path.suffix.lower())
    if reader is None:
        raise FileFormatError(
            f"{path}: connectomes are read from {', '.join(sorted(FORMATS))} files, "
            f"got {path.suffix or 'a name without suffix'}."
        )
    with reading(path, f"a {path.suffix} file"):
        if path.stat().st_size > MOST_BYTES:
            raise FileFormatError(
                f"{path}: {path.stat().st_size >> 20} MiB; a connectome has at most "
                f"{MOST_BYTES >> 20}. Is it the right file?"
            )
        found = reader(path)
    raw = found[0]
    notes: tuple[str, ...] = ()
    if len(found) > 1 or (measure is not None and raw.measure):
        raw, notes = _choose(found, atlas, measure, path)
    named = raw.rows is not None and not are_counts(raw.rows)
    if labels is not None:
        names = read_names(labels) if isinstance(labels, str | Path) else tuple(labels)
        if len(names) != len(raw.values):
            raise FileFormatError(
                f"{path}: {len(raw.values)} rows, but {len(names)} labels were given; "
                "expected one label for each row."
            )
        raw = raw._replace(rows=names, columns=names)
        notes += ("rows named by labels=",)
    elif not named and row_order is None:
        beside = find_sidecar(path, len(raw.values))
        if beside is not None:
            raw = raw._replace(rows=beside[0], columns=beside[0])
            notes += (beside[1],)
    return _in_atlas_order(raw, atlas, path, row_order, symmetrize, notes)


def check_connectome(
    values: np.ndarray | pd.DataFrame,
    atlas: Atlas | str,
    where: str = "connectome",
    *,
    symmetrize: str = "refuse",
) -> ConnectomeFile:
    """Check a matrix in memory: in the order of the atlas, or a frame with names.

    Raises ParameterError where the shape is another, else as :func:`read_connectome`.
    """
    atlas = load_atlas(atlas)
    check_choice("symmetrize", symmetrize, SYMMETRIZE)
    if isinstance(values, pd.DataFrame):
        rows, columns = tuple(map(str, values.index)), tuple(map(str, values.columns))
        if not are_counts(rows) or not are_counts(columns):
            raw = RawMatrix(values.to_numpy(dtype=np.float64), rows, columns)
            return _in_atlas_order(raw, atlas, Path(where), None, symmetrize, ())
    matrix = np.array(values, dtype=np.float64)
    if matrix.shape != (len(atlas), len(atlas)):
        raise ParameterError(
            f"{where} must have shape {(len(atlas), len(atlas))} for {atlas.name}, "
            f"got {matrix.shape}."
        )
    order = np.arange(len(atlas))
    return ConnectomeFile(
        *_check_and_mirror(matrix, order, atlas.names, where, symmetrize)
    )


def _choose(
    found: Sequence[RawMatrix], atlas: Atlas, measure: str | None, path: Path
) -> tuple[RawMatrix, tuple[str, ...]]:
    """Return the one matrix of a file that was asked for, or that is usual."""
    measures = ", ".join(sorted({raw.measure for raw in found if raw.measure}))
    if measure is not None and measures:
        asked = [raw for raw in found if raw.measure.lower() == measure.lower()]
        if not asked:
            raise FileFormatError(f"{path}: no measure {measure!r}; found {measures}.")
        found = asked
    if len(found) == 1:
        return found[0], ()
    sizes = {len(order.names) for order in row_orders(atlas)}
    fitting = []
    for raw in found:
        if raw.rows is None or are_counts(raw.rows):
            fits = len(raw.values) in sizes
        else:
            known = sum(atlas.find(name) is not None for name in raw.rows)
            fits = known >= len(atlas) / 2 or all(map(str.isdecimal, raw.rows))
        fitting += [raw] if fits else []
    fitting = fitting or list(found)
    for usual in (fitting[0].measure if len(fitting) == 1 else None, *USUAL_MEASURES):
        chosen = [raw for raw in fitting if raw.measure == usual]
        if len(chosen) == 1:
            rest = ", ".join(sorted({raw.measure for raw in fitting} - {usual}))
            note = f"took {usual}; measure= takes another of {rest}"
            return chosen[0], (note,) if rest else ()
    raise FileFormatError(
        f"{path}: {len(fitting)} matrices could be the connectome; choose by measure= "
        f"one of {measures or 'them, and give each a name'}."
    )


def _in_atlas_order(
    raw: RawMatrix,
    atlas: Atlas,
    path: Path,
    row_order: str | None,
    symmetrize: str,
    notes: tuple[str, ...],
) -> ConnectomeFile:
    """Put the rows and columns of a matrix in the order of an atlas, and check it."""
    shape = raw.values.shape
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 2:
        size = " x ".join(map(str, shape)) or "a single number"
        raise FileFormatError(
            f"{path}: expected a square matrix, got {size}. The file may be cut short, "
            "or hold something else than a connectome."
        )
    rows, columns = raw.rows, raw.columns
    named = rows is not None and not are_counts(rows)
    if rows is None or columns is None or not named:
        rows, order = find_row_order(raw.values, atlas, path, row_order)
        columns, notes = rows, (*notes, order)
    elif not notes:
        notes = ("read by name",)
    try:
        to_row, dropped = atlas.rows(rows)
        to_column = to_row if columns == rows else atlas.rows(columns)[0]
        missing = np.flatnonzero((to_row < 0) | (to_column < 0))
        if len(missing) > (_MOST_ABSENT if raw.leaves_out else 0):
            names = ", ".join(atlas.names[i] for i in missing[:5])
            more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
            raise RegionNameError(
                f"{len(missing)} of the {len(atlas)} regions of {atlas.name} are "
                f"missing: {names}{more}. A connectome needs every region; write a "
                "row of zeros for one without connections."
            )
    except RegionNameError as error:
        other = atlas.other_atlas(rows)
        hint = f" {atlas.settings.get('remake_connectome', '')}" if other else ""
        raise RegionNameError(f"{path}: {error}{hint}") from error
    if dropped:
        names = ", ".join(dict.fromkeys(dropped))
        names = names if len(dropped) < 40 else f"{len(dropped)} rows"
        notes += (f"left out, not in {atlas.name}: {names}",)
    values = np.asarray(raw.values[np.ix_(to_row, to_column)], dtype=np.float64)
    if raw.leaves_out:
        empty = np.isnan(values)
        empty[missing], empty[:, missing] = True, True
        absent = (empty.sum(0) >= len(atlas) - 1) & (empty.sum(1) >= len(atlas) - 1)
        if 0 < absent.sum() <= _MOST_ABSENT:
            values[absent], values[:, absent] = 0, 0
            names = ", ".join(np.array(atlas.names)[absent])
            notes += (f"absent from the file, without connections: {names}",)
    in_file = np.argsort(to_row) if rows == columns else np.arange(len(atlas))
    matrix, note = _check_and_mirror(
        values, in_file, atlas.names, str(path), symmetrize, named=named
    )
    return ConnectomeFile(matrix, (*notes, *note))


def _check_and_mirror(
    values: np.ndarray,
    in_file: np.ndarray,
    names: Sequence[str],
    where: str,
    how: str,
    *,
    named: bool = False,
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return a matrix with both triangles, and what was done; the only place for it.

    `in_file` is the order of the file, in which one triangle can be seen to be empty;
    named rows may come in any order, which scatters it. Raises where weights are NaN,
    infinite or negative, or all of them 0.
    """
    for what, mask in (
        ("NaN", np.isnan(values)),
        ("infinite", np.isinf(values)),
        ("negative", values < 0),
    ):
        if mask.any():
            i, j = np.argwhere(mask)[0]
            raise FileFormatError(
                f"{where}: {int(mask.sum())} weights are {what}, first {values[i, j]} "
                f"between {names[i]} and {names[j]}; expected finite weights that are "
                "not negative. Make the connectome again, or write 0 for no connection."
            )
    if np.count_nonzero(values) == np.count_nonzero(np.diagonal(values)):
        raise FileFormatError(
            f"{where}: every weight between two regions is 0; expected a connectome "
            "with connections."
        )
    if np.array_equal(values, values.T):
        return values.astype(np.float32), ()
    filled = values[np.ix_(in_file, in_file)]
    lower, upper = np.tril(filled, -1).any(), np.triu(filled, 1).any()
    one_way = named and not np.triu((values != 0) & (values.T != 0), 1).any()
    if lower != upper or one_way:
        mirrored = values + values.T
        np.fill_diagonal(mirrored, np.diagonal(values))
        side = "lower" if lower else "upper"
        what = f"the {side} triangle" if lower != upper else "one way"
        return mirrored.astype(np.float32), (f"only {what} is filled: mirrored",)
    gap = np.abs(values - values.T)
    if gap.max() <= _ROUNDING * values.max():
        note = "the two triangles differ by rounding: averaged"
    elif how == "refuse":
        i, j = np.unravel_index(gap.argmax(), gap.shape)
        raise FileFormatError(
            f"{where}: not symmetric, {values[i, j]} from {names[i]} to {names[j]} but "
            f"{values[j, i]} back; expected the same both ways, or one triangle of "
            "zeros. Take their mean or the larger by symmetrize='mean' or 'max'."
        )
    else:
        note = f"the two triangles differ: symmetrized by their {how}"
    both = (values + values.T) / 2 if how != "max" else np.maximum(values, values.T)
    return both.astype(np.float32), (note,)


# ---- one function for each format --------------------------------------------------


def _read_text(  # noqa: C901 (one pass over what may stand around the numbers)
    path: Path, data: bytes | None = None
) -> list[RawMatrix]:
    """Read a matrix from text, with or without names in its first row and column."""
    whole = read_lines(path, data, comments=True)
    lines = [line.strip(" ") for line in whole if not line.startswith("#")]
    if not lines:
        raise FileFormatError(f"{path}: the file is empty; expected a matrix.")
    if lines[0].startswith("data\tdata\t"):
        raise FileFormatError(
            f"{path}: a connectogram of DSI Studio, made for drawing; read the "
            ".connectivity.mat that it writes beside it."
        )
    delimiter = sniff_delimiter(lines[0])
    if delimiter and all(line.endswith(delimiter) for line in lines):
        lines = [line[:-1] for line in lines]
    first = split_cells(lines[0], delimiter)
    columns: Sequence[str] | None = None
    if not _are_numbers(first[1:]) or first[0].lower() in _CORNER:
        columns, lines = first, lines[1:]
    elif len(whole) > len(lines):
        columns = _commented_names(whole, len(lines))
    if not any(lines):
        raise FileFormatError(f"{path}: names but no numbers; expected a matrix.")
    rows: Sequence[str] | None = None
    cells = first if columns is not first else split_cells(lines[0], delimiter)
    # a header with a corner, or of a cell less, promises names in the first column
    corner = columns is not None and columns[0].lower() in _CORNER
    promised = corner and columns is not None and len(columns) == len(lines) + 1
    promised |= columns is not None and len(cells) == len(columns) + 1
    if promised or not _are_numbers(cells[:1]):
        parts = [line.split(delimiter, 1) for line in lines]
        rows = [part[0].strip().strip('"') for part in parts]
        lines = [part[1] if len(part) > 1 else "" for part in parts]
        if columns is not None and len(columns) == len(rows) + 1:
            columns = columns[1:]
    values = _parse_numbers(path, lines, delimiter, columns is not None)
    for names, side in ((rows, "rows"), (columns, "columns")):
        if names is not None and len(names) != len(values):
            raise FileFormatError(
                f"{path}: {len(names)} names for {len(values)} {side}; expected one "
                "name for each."
            )
    if rows and columns:  # a count says nothing beside names
        rows = columns if are_counts(rows) else rows
        columns = rows if are_counts(columns) else columns
    rows, columns = rows or columns, columns or rows
    if rows is None or columns is None:
        return [RawMatrix(values)]
    return [RawMatrix(values, tuple(rows), tuple(columns))]


def _are_numbers(cells: Sequence[str]) -> bool:
    try:
        np.array([cell for cell in cells if cell != "n/a"], dtype=float)
    except ValueError:
        return False
    return True


def _commented_names(lines: Sequence[str], n: int) -> list[str] | None:
    """Return names of all columns from a comment, as NumPy's savetxt(header=...)."""
    for line in lines:
        text = line.lstrip("#").strip(" ")
        cells = split_cells(text, sniff_delimiter(text))
        if len(cells) == n + 1 and cells[0].lower() in _CORNER:
            cells = cells[1:]
        named = not _are_numbers(cells) or all(cell.isdecimal() for cell in cells)
        if line.startswith("#") and len(cells) == n and named:
            return cells
    return None


def _parse_numbers(
    path: Path, lines: list[str], delimiter: str | None, below_names: bool
) -> np.ndarray:
    """Return the numbers of lines that have as many cells each."""
    widths = {
        line.count(delimiter) + 1 if delimiter else len(line.split()) for line in lines
    }
    flat = "\n".join(lines).replace(delimiter or " ", "\n")
    with suppress(ValueError):
        if not flat.encode().translate(None, b"0123456789\n "):  # counts: fastest
            values = np.fromstring(flat, np.int64, sep="\n").astype(float)
        else:
            values = pd.read_csv(
                StringIO(flat), header=None, dtype=float, na_filter=False
            ).to_numpy()
        return values.reshape(len(lines), *widths)
    try:  # NumPy's words say which cell is wrong
        return np.loadtxt(lines, delimiter=delimiter, ndmin=2)
    except ValueError as error:
        separator = DELIMITERS.get(delimiter or "", "white space")
        below = " below the names" if below_names else ""
        reason = str(error).split("; use `usecols`")[0].rstrip(".")
        raise FileFormatError(
            f"{path}: not a matrix of numbers between {separator}: {reason}{below}. "
            "The file may be cut short, or have other delimiters."
        ) from error


def _read_gz(path: Path) -> list[RawMatrix]:
    """Read one matrix from compressed text, as BIDS writes `_relmat.tsv.gz`."""
    if FORMATS.get(Path(path.stem).suffix.lower()) is not _read_text:
        raise FileFormatError(
            f"{path}: compressed files are read as text only; expected a name that "
            "ends in .gz after .csv, .tsv or .txt."
        )
    with gzip.open(path) as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise FileFormatError(f"{path}: unpacks to more than {MOST_BYTES >> 20} MiB.")
    return _read_text(path, data)


def _read_npy(path: Path) -> list[RawMatrix]:
    # mapped, so that a header which lies about its shape asks for no memory
    values = np.load(path, mmap_mode="r", allow_pickle=False)
    if values.ndim == 0 or values.dtype.kind not in "uifb":
        raise FileFormatError(
            f"{path}: expected an array of numbers, got {values.dtype}."
        )
    # a matrix of label numbers is large and mostly empty; its rows are picked first
    large = len(values) > _MOST_ROWS
    return [RawMatrix(values if large else values.astype(np.float64))]


def _read_npz(path: Path) -> list[RawMatrix]:
    with zipfile.ZipFile(path) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > MOST_BYTES:
            raise FileFormatError(
                f"{path}: unpacks to more than {MOST_BYTES >> 20} MiB."
            )
    with np.load(path, allow_pickle=False) as arrays:
        return _matrices_of(path, {key: arrays[key] for key in arrays.files})


def _read_mat(path: Path) -> list[RawMatrix]:
    """Read a MATLAB file of any version; 7.3 is HDF5."""
    from scipy.io import loadmat, whosmat

    with path.open("rb") as file:
        if b"MATLAB 7.3" in file.read(128):
            return _read_hdf(path)
    promised = sum(8.0 * np.prod([float(n) for n in item[1]]) for item in whosmat(path))
    if promised > MOST_BYTES:
        raise FileFormatError(f"{path}: unpacks to more than {MOST_BYTES >> 20} MiB.")
    arrays = loadmat(path)
    return _matrices_of(path, {k: v for k, v in arrays.items() if k[:2] != "__"})


def _read_hdf(path: Path) -> list[RawMatrix]:  # noqa: C901 (one branch a type)
    """Read an HDF5 file; data sets may lie in groups, names in MATLAB's cells."""
    import h5py

    arrays: dict[str, np.ndarray] = {}
    unread: dict[str, tuple[int, ...]] = {}

    def text(item: Any) -> str:
        return "".join(map(chr, np.ravel(item[()])))

    def take(key: str, item: Any) -> None:
        if not isinstance(item, h5py.Dataset) or key.startswith("#refs#"):
            return
        kind, size = item.dtype.kind, item.size or 0
        if not 0 < size * item.dtype.itemsize <= MOST_BYTES:
            return
        is_list = max(item.shape, default=0) == size <= _MOST_ROWS
        if h5py.check_string_dtype(item.dtype) is not None and is_list:
            arrays[key] = np.array(item.asstr()[()], dtype=str)
        elif h5py.check_ref_dtype(item.dtype) is not None and is_list:
            cells = [text(file[reference]) for reference in np.ravel(item[()])]
            arrays[key] = np.array(cells, dtype=str)
        elif item.attrs.get("MATLAB_class") == b"char" and item.ndim == 2:
            arrays[key] = np.array(["".join(map(chr, row)) for row in item[()].T])
        elif kind in "uifb":
            arrays[key] = item[()]
        elif is_list:
            unread[key] = item.shape

    with h5py.File(path, "r") as file:
        file.visititems(take)
    found = _matrices_of(path, arrays)
    sizes = {len(matrix.values) for matrix in found if matrix.rows is None}
    hidden = [key for key, shape in unread.items() if sizes & set(shape)]
    if hidden:
        raise FileFormatError(
            f"{path}: {hidden[0]!r} may name the rows, but is kept as records; "
            "expected a list of text."
        )
    return found


def _read_gii(path: Path) -> list[RawMatrix]:
    """Read the one matrix of a GIFTI file, as micapipe writes `.shape.gii`."""
    from nibabel.gifti import GiftiImage

    arrays = [array.data for array in GiftiImage.from_filename(path).darrays]
    if len(arrays) != 1 or arrays[0] is None:
        raise FileFormatError(
            f"{path}: expected a GIFTI file with one matrix, got {len(arrays)} arrays."
        )
    return [RawMatrix(np.asarray(arrays[0], dtype=np.float64))]


FORMATS: dict[str, Callable[[Path], list[RawMatrix]]] = {
    **dict.fromkeys((".csv", ".dat", ".tsv", ".txt"), _read_text),
    **dict.fromkeys((".h5", ".hdf5"), _read_hdf),
    ".gii": _read_gii,
    ".gz": _read_gz,
    ".mat": _read_mat,
    ".npy": _read_npy,
    ".npz": _read_npz,
}


# ---- which arrays of a file are matrices, and which name their rows -----------------


def _matrices_of(path: Path, arrays: Mapping[str, Any]) -> list[RawMatrix]:
    """Return the square matrices of a file, each with its names and its measure.

    Known by their keys are QSIRecon and QSIPrep (`atlas_<A>_<measure>_connectivity`,
    with or without `atlas_`, beside `<A>_region_labels`) and DSI Studio
    (`connectivity` or `<measure> r2r`, beside `name`); any other file may hold square
    matrices and one list of as many different names.
    """
    arrays = {k: v for k, v in arrays.items() if isinstance(v, np.ndarray)}
    squares = {
        key: value
        for key, value in arrays.items()
        if value.ndim == 2
        and 2 <= value.shape[0] == value.shape[1] <= _MOST_ROWS
        and value.dtype.kind in "uifb"
    }
    if not squares:
        shapes = ", ".join(f"{k} {v.shape}" for k, v in list(arrays.items())[:8])
        raise FileFormatError(
            f"{path}: expected a square matrix of numbers, found {shapes or 'nothing'}."
        )
    texts = {key: texts for key, v in arrays.items() if (texts := _texts(v))}
    numbers = {
        key: whole
        for key, value in arrays.items()
        if key.lower().endswith(_NUMBER_KEYS) and (whole := _whole_numbers(value))
    }
    found = []
    for key, values in squares.items():
        names = _names_of(path, key, squares, (texts, numbers))
        prefixes = [p for name in texts if key.startswith(p := _prefix(name))]
        measure = key.removeprefix(max(prefixes, key=len, default=""))
        measure = measure.removesuffix("_connectivity").removesuffix(" r2r")
        leaves_out = key.endswith(("_connectivity", " r2r")) or key == "connectivity"
        matrix = np.array(values, dtype=np.float64)
        found.append(RawMatrix(matrix, names, names, measure, leaves_out))
    return found


def _prefix(key: str) -> str:
    """Return what stands before `names`, `region_labels` ... in the key of a list."""
    ends = [end for end in _NUMBER_KEYS if key.lower().endswith(end)]
    return key[: -len(ends[0])] if ends else ""


def _names_of(
    path: Path,
    key: str,
    squares: Mapping[str, np.ndarray],
    kinds: Sequence[Mapping[str, tuple[str, ...]]],
) -> tuple[str, ...] | None:
    """Return the one list that names a matrix: by its prefix, or by its length.

    Raises where several could, or where its list has another length.
    """
    n, sizes = len(squares[key]), {len(values) for values in squares.values()}
    for lists in kinds:
        fitting = {k: v for k, v in lists.items() if len(v) == n == len(set(v))}
        own = [k for k in fitting if (p := _prefix(k)) and key.startswith(p)]
        others = [
            k
            for k in fitting
            if not any((p := _prefix(k)) and other.startswith(p) for other in squares)
        ]
        chosen = own or others
        if len({fitting[k] for k in chosen}) > 1:
            raise FileFormatError(
                f"{path}: {', '.join(map(repr, chosen))} could each name the {n} rows; "
                f"expected one such list. Keep one, under the key {_NAME_KEYS[0]!r}."
            )
        if chosen:
            return fitting[chosen[0]]
    for name, names in kinds[0].items():
        is_mine = name.lower().endswith(_NAME_KEYS) and key.startswith(_prefix(name))
        if is_mine and len(names) > 1 and len(names) not in sizes:
            raise FileFormatError(
                f"{path}: {n} rows of {key!r}, but {name!r} names {len(names)}; "
                "expected one name for each row. Correct the list, or leave it out."
            )
    return None


def _texts(value: np.ndarray) -> tuple[str, ...]:
    """Return the names in text, in cells of text, or in bytes of lines (DSI Studio)."""
    if value.dtype == np.uint8 and 10 in value and value.size == max(value.shape):
        joined = value.tobytes().decode("utf-8", "replace").replace("\0", "")
        return tuple(joined.strip("\n").split("\n"))
    if value.dtype.kind not in "USO" or value.size > _MOST_ROWS:
        return ()
    cells = []
    for cell in value.ravel().tolist():
        if isinstance(cell, np.ndarray):
            text = "".join(map(str, cell.ravel().tolist()))
        else:
            text = as_text(cell)
        cells.append(text.strip())
    if len(cells) == 1 and "\n" in cells[0]:
        cells = cells[0].split("\n")
    return tuple(cells)


def _whole_numbers(value: np.ndarray) -> tuple[str, ...]:
    """Return whole numbers of a list as text, nothing where it holds others."""
    if value.dtype.kind not in "uif" or value.size != max(value.shape, default=0):
        return ()
    flat = value.ravel()
    if not np.isfinite(flat).all() or (flat < 0).any() or (flat != np.rint(flat)).any():
        return ()
    return tuple(str(int(number)) for number in flat)
