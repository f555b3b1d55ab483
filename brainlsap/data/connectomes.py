"""Read one connectome and put its rows and columns in the order of an atlas.

The order comes from names wherever there are any, else from what says whose order the
rows have (:mod:`brainlsap.data.row_order`), and is checked on the weights
(:mod:`brainlsap.data.order_check`). One triangle is mirrored. Weights are kept as they
are, the diagonal included.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from brainlsap.arrays import as_number_array
from brainlsap.atlas import Atlas, load_atlas
from brainlsap.atlas.region_names import are_counts, as_text
from brainlsap.data.order_check import OrderCheck, UnknownOrderError
from brainlsap.data.row_order import (
    TRUST_NAMES,
    are_numbers,
    find_names,
    row_orders,
)
from brainlsap.data.table_rows import sniff_delimiter, split_cells
from brainlsap.data.tables import read_lines
from brainlsap.exceptions import (
    BrainlsapError,
    FileFormatError,
    ParameterError,
    RegionNameError,
    check_choice,
    reading,
)
from brainlsap.findings import LEFT_OUT, ROW_ORDER, Finding, as_findings
from brainlsap.text import listed

SYMMETRIZE = ("refuse", "mean", "max")
NEGATIVE = ("refuse", "drop", "absolute")
# Of several measures in one file, these are taken unless another is asked for.
USUAL_MEASURES = ("sift_radius2_count", "radius2_count", "count")
# Regions that a tool leaves out where a brain lacks them; more is another atlas.
MOST_ABSENT = 8
# Text is rounded: two triangles of one matrix may differ in the last digit written.
_ROUNDING = 1e-5
_NUMBERS = re.compile(r"(?:[-+.\d\s]|(?<=[\d.])e(?=[-+\d])|nan|inf)*", re.IGNORECASE)
# Lines of a text by which a list of connections is known.
_SAMPLE = 5
# Words in names of files for averages over streamlines.
_MEANS = re.compile(r"mean_?[a-z]*|(?<![a-z])fa(?![a-z])|[a-z]*length", re.IGNORECASE)
_CORNER = frozenset(("", "region", "name", "label", "index", "node", "roi"))
# Ends of the keys of lists of names; numbers of labels count only where no texts do.
_NAME_KEYS = ("region_labels", "region_names", "regions", "names", "name", "labels")
_NUMBER_KEYS = (*_NAME_KEYS, "ids", "id")


class ConnectomeFile(NamedTuple):
    """A connectome in the order of an atlas, and what was done to get there.

    Parameters
    ----------
    matrix : float32 array of shape (n_rois, n_rois)
        Symmetric, finite, not negative.
    findings : tuple of Finding
        What was mapped, mirrored or left out; the same for every file that needed the
        same.
    """

    matrix: np.ndarray
    findings: tuple[Finding, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """The findings as text."""
        return tuple(map(str, self.findings))


class NameList(NamedTuple):
    """A list in a file, as texts, and whether the file has it as texts."""

    names: tuple[str, ...]
    are_texts: bool


class RawMatrix(NamedTuple):
    """A square matrix, and what its file calls its rows, its columns and its weights.

    `leaves_out`: the tool leaves out regions that a brain does not have. `lists`: of an
    array of many scans, all lists of the file by key, None elsewhere. `header`: comment
    lines of a text.
    """

    values: np.ndarray
    rows: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    measure: str = ""
    leaves_out: bool = False
    lists: Mapping[str, NameList] | None = None
    header: str = ""


def read_connectome(
    source: str | Path | np.ndarray | pd.DataFrame,
    atlas: Atlas | str,
    *,
    measure: str | None = None,
    labels: str | Path | Sequence[str] | None = None,
    row_order: str | None = None,
    symmetrize: str = "refuse",
    negative: str = "refuse",
    order_check: OrderCheck | None = None,
) -> ConnectomeFile:
    """Read a connectome of any tool into the order of an atlas.

    Parameters
    ----------
    source : path, array or DataFrame
        A matrix as text (`.csv`, `.tsv`, `.txt`, `.dat`, also `.gz`, whatever the
        delimiter), `.npy`, `.npz`, `.mat`, `.h5` or `.gii`. In memory: in the order of
        the atlas, or with names.
    atlas : Atlas or str
        Names the regions and gives their order.
    measure : str, optional
        Which matrix to take from a file of several, such as `radius2_meanlength`.
    labels : sequence of str or path, optional
        Name of every row, or a file with one a line, for matrices without names. By
        default a list beside the matrix counts (`labels.txt`, `labels.csv`,
        `labels_list.txt`, `<name>_labels.*`, brainlife's `label.json`, `centres.txt` of
        The Virtual Brain, BIDS' `.json`), or one above it, up to the folder that holds
        the `sub-*` of a matrix's person.
    row_order : str, optional
        Whose order the rows of a matrix without names have, where no word of its path
        says so; one of `brainlsap.data.row_order.ROW_ORDERS`. "atlas": that of the
        atlas; "labels": that of the regions' numbers in an image; "mrtrix",
        "ukbiobank", "micapipe", "enigma": that of this tool's matrices; "names" keeps
        names as they are, without the check on the weights. The refusal of a matrix
        lists all that its size may have.
    symmetrize : {"refuse", "mean", "max"}
        What becomes of two directions that differ by more than rounding.
    negative : {"refuse", "drop", "absolute"}
        What becomes of negative weights, as correlations have them: set to 0, or taken
        by their size.
    order_check : OrderCheck, optional
        Collects the matrix for one check of the order of rows of many; by default this
        matrix is checked alone.

    Returns
    -------
    ConnectomeFile

    Raises
    ------
    FileFormatError
        Where the file is no connectome of this atlas: another format, rows that
        nothing names or that the weights contradict, NaN or infinite weights, or two
        triangles that differ.
    ParameterError
        Where weights are negative and `negative` does not say what becomes of them.
    RegionNameError
        Where a name is unknown or stands twice, or a region is missing.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "connectome.csv"
    ...     np.savetxt(path, np.triu(np.ones((84, 84)), 1), "%d", ",")
    ...     connectome = read_connectome(path, "desikan82", row_order="mrtrix")
    >>> connectome.matrix.shape, int(connectome.matrix.sum())
    ((82, 82), 6642)
    """
    check_choice("symmetrize", symmetrize, SYMMETRIZE)
    atlas = load_atlas(atlas)
    path, raw, notes = _read_source(source, atlas, measure)
    n_rows = len(raw.values)
    if raw.values.shape != (n_rows, n_rows) or raw.values.dtype.kind not in "uifb":
        hint = "The file may be cut short."
        if _is_edge_list(raw.values):
            hint = (
                "It may be a list of connections, two numbers of regions and a weight "
                "each; write a square matrix, 0 where no connection is."
            )
        raise FileFormatError(
            "expected a square matrix of numbers, got shape "
            f"{raw.values.shape} of {raw.values.dtype}. {hint}",
            path=path,
        )
    is_file = isinstance(source, str | Path)
    is_bare = not is_file and raw.rows is None
    own = atlas.names if is_bare else raw.rows or ()
    rows = find_names(path, raw.values, atlas, row_order, labels, own, raw.header)
    if is_bare:
        note = f"taken in the order of {atlas.name}"
        rows = rows._replace(note=note, source="array")
    # names that somebody gave to a matrix in memory are taken as they are
    is_checked = is_file or is_bare
    is_checked &= row_order != TRUST_NAMES or not rows.names
    check = OrderCheck(atlas) if order_check is None else order_check
    if is_checked:
        check.add(_align_columns(raw), rows, path)
    if is_checked and order_check is None:
        check.raise_refusal()
    if not rows.names:  # the collected matrices are refused together
        raise UnknownOrderError(f"nothing names the {n_rows} rows.", path=path)
    if rows.names is not raw.rows:
        raw = raw._replace(rows=rows.names, columns=rows.names)
    if rows.adds_parts:
        raw = _add_parts(raw, path)
    values, left_out = _in_atlas_order(raw, atlas, path)
    matrix, changed = _check_weights(values, atlas.names, path, symmetrize, negative)
    order_note = Finding(rows.note, kind=ROW_ORDER if rows.is_tool_order else "")
    agreement = check.notes() if is_file and is_checked and order_check is None else ()
    findings = as_findings(
        [*notes, *[order_note] * is_file, *left_out, *changed, *agreement]
    )
    return ConnectomeFile(matrix, findings)


def _read_source(
    source: str | Path | np.ndarray | pd.DataFrame, atlas: Atlas, measure: str | None
) -> tuple[Path, RawMatrix, list[str]]:
    """Return where a matrix is from, itself, and how it was chosen among others.

    A matrix in memory without names has no `rows`.
    """
    notes = list[str]()
    if not isinstance(source, str | Path):
        axes = [tuple(map(str, axis)) for axis in pd.DataFrame(source).axes]
        named = [names for names in axes if not are_counts(names)]
        try:
            values = as_number_array(source)
        except (TypeError, ValueError):  # refused by shape and type
            values = np.asarray(source)
        raw = RawMatrix(values)
        if named:
            raw = raw._replace(rows=named[0], columns=named[-1])
        return Path("connectome="), raw, notes
    path = Path(source)
    reader = FORMATS.get(path.suffix.lower())
    if reader is None:
        raise FileFormatError(
            f"connectomes are read from {', '.join(sorted(FORMATS))} "
            f"files, got {path.suffix or 'a name without suffix'}. Of a tractogram "
            "brainlsap.images.build_connectome makes one.",
            path=path,
        )
    with reading(path, f"a {path.suffix} file"):
        raw, *others = reader(path)
    if others or (raw.measure and measure):
        raw, notes = _choose([raw, *others], atlas, measure, path)
    return path, raw, notes


def _align_columns(raw: RawMatrix) -> np.ndarray:
    """Return the weights with columns in the order of rows, where names say both."""
    rows, columns = raw.rows or (), raw.columns or ()
    if rows == columns or sorted(rows) != sorted(columns) or len({*rows}) < len(rows):
        return raw.values
    return raw.values[:, [columns.index(name) for name in rows]]


def _add_parts(raw: RawMatrix, path: Path) -> RawMatrix:
    """Return a matrix in which rows of one name are one row: the sum of their weights.

    Raises where weights are no counts of a kind, which cannot be added.
    """
    mean = _MEANS.search(path.name)
    if mean:
        raise FileFormatError(
            f"a region has several rows, and {mean[0]} of parts cannot be "
            "added. Take counts of streamlines or their weights.",
            path=path,
        )
    names = tuple(dict.fromkeys(raw.rows or ()))
    region = [names.index(name) for name in raw.rows or ()]
    merge = np.zeros((len(names), len(region)))
    merge[region, np.arange(len(region))] = 1
    values = merge @ _mirror(raw.values.astype(np.float64)) @ merge.T
    return raw._replace(values=values, rows=names, columns=names)


def _mirror(values: np.ndarray) -> np.ndarray:
    """Return a matrix with both triangles where only one is filled."""
    upper, lower = np.triu(values, 1), np.tril(values, -1)
    if upper.any() and lower.any():
        return values
    return values + (upper + lower).T


def _is_edge_list(values: np.ndarray) -> bool:
    """Return whether rows look like two numbers of regions, and weights."""
    if values.ndim != 2 or values.dtype.kind not in "uif":
        return False
    if not 3 <= values.shape[1] < 6 or len(values) < 3:
        return False
    ends = values[:, :2]
    return bool((ends >= 0).all() and (ends == np.round(ends)).all())


def _choose(
    found: Sequence[RawMatrix], atlas: Atlas, measure: str | None, path: Path
) -> tuple[RawMatrix, list[str]]:
    """Return the one matrix of a file that was asked for, or that is usual."""
    measures = ", ".join(sorted({raw.measure for raw in found if raw.measure}))
    if measure is not None and measures:
        found = [raw for raw in found if raw.measure.lower() == measure.lower()]
        if not found:
            raise FileFormatError(
                f"no measure {measure!r}; found {measures}.", path=path
            )
    sizes = {len(order.names) for order in row_orders(atlas)}

    def fits(raw: RawMatrix) -> bool:
        if raw.rows is None or all(map(str.isdecimal, raw.rows)):
            return len(raw.values) in sizes
        return sum(atlas.find(name) is not None for name in raw.rows) >= len(atlas) / 2

    fitting = list(filter(fits, found)) or found
    for usual in USUAL_MEASURES if len(fitting) > 1 else ():
        chosen = [raw for raw in fitting if raw.measure == usual]
        if len(chosen) == 1:
            rest = ", ".join(sorted({raw.measure for raw in fitting} - {usual}))
            return chosen[0], [f"took {usual}; measure= takes another of {rest}"]
    if len(fitting) > 1:
        raise FileFormatError(
            f"{len(fitting)} matrices could be the connectome; choose by "
            f"measure= one of {measures or 'them, and give each a name'}.",
            path=path,
        )
    return fitting[0], []


def _in_atlas_order(
    raw: RawMatrix, atlas: Atlas, path: Path
) -> tuple[np.ndarray, list[Finding]]:
    """Put the rows and columns of a matrix in the order of an atlas; say what went."""
    notes, rows = list[Finding](), raw.rows or ()
    try:
        to_row, dropped = atlas.rows(rows)
        to_column, _ = atlas.rows(raw.columns or ())
        missing = np.flatnonzero((to_row < 0) | (to_column < 0))
        if len(missing) > (MOST_ABSENT if raw.leaves_out else 0):
            raise RegionNameError(
                f"{len(missing)} of the {len(atlas)} regions of {atlas.name} are "
                f"missing: {listed((atlas.names[i] for i in missing), 5)}. Write a row "
                "of zeros for a region without connections."
            )
    except RegionNameError as error:
        hint = atlas.settings.get("remake_connectome", "")
        hint = f" {hint}" if hint and atlas.other_atlas(rows) else ""
        raise RegionNameError(
            f"{error.message}{hint}", path=path, kind=error.kind, values=error.values
        ) from error
    if dropped:
        few = listed(dict.fromkeys(dropped), 8)
        notes.append(Finding(f"left out, not in {atlas.name}: {few}", LEFT_OUT))
    values = raw.values.take(to_row, 0).take(to_column, 1).astype(np.float64)
    if raw.leaves_out:
        values[missing], values[:, missing] = np.nan, np.nan
        empty = np.isnan(values)
        absent = np.minimum(empty.sum(0), empty.sum(1)) >= len(empty) - 1
        if 0 < absent.sum() <= MOST_ABSENT:
            values[absent], values[:, absent] = 0, 0
            names = ", ".join(np.array(atlas.names)[absent])
            notes.append(Finding(f"absent from the file, without connections: {names}"))
    return values, notes


def settle_negative(
    W: np.ndarray, how: str, where: str | Path = "connectomes="
) -> tuple[np.ndarray, list[str]]:
    """Return weights without negative ones and what was done; raise unless `how` says.

    NaN stays.
    """
    check_choice("negative", how, NEGATIVE)
    if not (W < 0).any():
        return W, []
    if how == "refuse":
        raise ParameterError(
            "weights are negative. Of correlations, negative='drop' sets them to 0, "
            "negative='absolute' takes their size",
            path=where,
            got=f"{int((W < 0).sum())}, down to {np.nanmin(W):.3g}.",
        )
    if how == "drop":
        return np.maximum(W, 0), ["negative weights were set to 0"]
    return np.abs(W), ["negative weights were taken by their size"]


def _check_weights(
    values: np.ndarray, names: Sequence[str], path: Path, symmetrize: str, negative: str
) -> tuple[np.ndarray, list[str]]:
    """Return a matrix with both triangles, and what was done; the only place for it.

    Raises where weights are not finite, negative, all 0, or differ both ways.
    """
    values, notes = settle_negative(values, negative, path)
    if (bad := ~np.isfinite(values)).any():
        i, j = np.argwhere(bad)[0]
        hint = "on the diagonal: set it to 0" if i == j else "(write 0 where none is)"
        raise FileFormatError(
            f"weights are NaN or infinite {hint}",
            path=path,
            got=f"{bad.sum()} such, first {values[i, j]} between {names[i]} and "
            f"{names[j]}.",
        )
    larger, own = np.maximum(values, values.T), np.count_nonzero(values.diagonal())
    if np.count_nonzero(larger) == own:
        told = "every weight between two regions is 0; expected connections"
        raise FileFormatError(f"{told}.", path=path)
    if not np.array_equal(values, larger):
        smaller = np.minimum(values, values.T)
        if np.count_nonzero(smaller) == own:
            # one triangle, which rows in another order than the file's may scatter
            values, how = larger, "only one triangle is filled: mirrored"
        elif (gap := larger - smaller).max() <= _ROUNDING * larger.max():
            values = (larger + smaller) / 2
            how = "the two triangles differ by rounding: averaged"
        elif symmetrize == "refuse":
            i, j = np.unravel_index(gap.argmax(), gap.shape)
            raise FileFormatError(
                "weights are not symmetric, nor is a triangle 0. Take their "
                "mean, (W + W.T) / 2; of files symmetrize='mean' or 'max' does it. Got "
                f"{values[i, j]} from {names[i]} to {names[j]} but {values[j, i]} "
                "back.",
                path=path,
            )
        else:
            how = f"the two triangles differ: symmetrized by their {symmetrize}"
            values = larger if symmetrize == "max" else (larger + smaller) / 2
        notes = [*notes, how]
    return values.astype(np.float32), notes


# ---- one function for each format --------------------------------------------------


def _read_text(path: Path) -> list[RawMatrix]:
    """Read a matrix from text, with or without names in its first row and column."""
    whole = [line.strip(" ") for line in read_lines(path, comments=True)]
    lines = [line for line in whole if line[0] != "#"]
    if not lines:
        raise FileFormatError("the file is empty; expected a matrix.", path=path)
    delimiter = sniff_delimiter(lines[0])
    if re.search(r"(?:^|[;\s])-?\d+,\d+[;\s]", lines[-1]):
        raise FileFormatError(
            "numbers have decimal commas; write points (and thousands without "
            "separators).",
            path=path,
        )
    if delimiter and all(line.endswith(delimiter) for line in lines):
        lines = [line[:-1] for line in lines]
    _refuse_lists(path, [split_cells(line, delimiter) for line in lines[:_SAMPLE]])
    comments = [line.lstrip("# ") for line in whole if line[0] == "#"]
    rows, columns, lines = _take_names(comments, lines, delimiter)
    # names may have delimiters, in quotes; those of rows are read already
    how: dict[str, Any] = {"delimiter": delimiter, "quotechar": '"', "comments": None}
    if rows:
        how["converters"] = {0: lambda _: 0.0}
    try:
        values = np.loadtxt(lines, ndmin=2, **how) if lines else np.empty((0, 0))
    except ValueError as error:  # without NumPy's advice
        raise ValueError(str(error).partition("; use")[0]) from error
    values = values[:, 1:] if rows else values
    for side, given in (("rows", rows), ("columns", columns)):
        if given and len(given) != len(values):
            raise FileFormatError(
                f"{len(given)} names for {len(values)} {side}; expected one "
                "name for each.",
                path=path,
            )
    # a count says nothing beside names
    known = [tuple(given) for given in (rows, columns) if given]
    known = [given for given in known if not are_counts(given)] or known
    header = "\n".join(comments)
    if not known:
        return [RawMatrix(values, header=header)]
    return [RawMatrix(values, known[0], known[-1], header=header)]


def _refuse_lists(path: Path, rows: Sequence[Sequence[str]]) -> None:
    """Raise where rows are a list of connections, or drawn by DSI Studio."""
    if [cell.lower() for row in rows[:2] for cell in row[:2]] == ["data"] * 4:
        raise FileFormatError(
            "is a connectogram of DSI Studio, with two rows and two columns "
            "of heads; expected a square matrix. Give the .connectivity.mat of the "
            "same run.",
            path=path,
        )
    body = rows[1:] or rows  # the first row may name the columns
    n_words = {_count_words(row) for row in body}
    widths = {len(row) for row in body}
    is_long = len(rows) > 1 or len(rows[0]) > 2
    if n_words == {2} and len(widths) == 1 and is_long:
        raise FileFormatError(
            "is a list of connections, whose lines have two regions and "
            f"{widths.pop() - 2} number(s); expected a square matrix. Write one with "
            "the names of its rows, and 0 where no connection is.",
            path=path,
        )


def _count_words(row: Sequence[str]) -> int:
    """Return how many cells at the start are words, -1 where others are no numbers."""
    is_word = [_NUMBERS.fullmatch(cell) is None for cell in row]
    n_words = is_word.index(False) if False in is_word else len(row)
    return -1 if any(is_word[n_words:]) else n_words


def _take_names(
    comments: Sequence[str], lines: list[str], delimiter: str | None
) -> tuple[list[str], list[str], list[str]]:
    """Return the names of rows and of columns, and the lines below these."""

    def are_weights(cells: Sequence[str]) -> bool:
        return _NUMBERS.fullmatch(" ".join(cells)) is not None

    rows, columns, first = list[str](), list[str](), split_cells(lines[0], delimiter)
    # a head of its own, or a word that makes the first line one of names
    is_word = len(lines) == len(first) and not are_weights(first[:1])
    has_corner = first[0].lower() in _CORNER or is_word
    n_named = len(first) - has_corner
    if has_corner or not are_weights(first[1:]):
        columns, lines = first, lines[1:]
    # columns may be named in a comment, as by NumPy's savetxt(header=...)
    for text in comments if not columns else ():
        cells = split_cells(text, sniff_delimiter(text)) or [""]
        if cells[0].lower() in _CORNER and len(cells) == len(first) + 1:
            cells = cells[1:]
        is_named = not are_weights(cells) or all(map(str.isdecimal, cells))
        if len(cells) == len(first) and is_named:
            columns = cells
            break
    first = split_cells(lines[0], delimiter) if lines else [""]
    # a header with a corner, or of a cell less, promises names in the first column
    if len(first) == n_named + 1 or not are_weights(first[:1]):
        rows = [split_cells(line, delimiter)[0] for line in lines]
        columns = columns[1:] if len(columns) == len(lines) + 1 else columns
    return rows, columns, lines


def _read_npy(path: Path) -> list[RawMatrix]:
    # a matrix of label numbers is large and mostly empty; only its regions are read
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    return _matrices_of_scans(array, {}) if _is_stack(array) else [RawMatrix(array)]


def _read_npz(path: Path) -> list[RawMatrix]:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return _matrices_of(path, dict(arrays))


def _read_mat(path: Path) -> list[RawMatrix]:
    """Read a MATLAB file of any version; 7.3 is HDF5."""
    from scipy.io import loadmat

    with path.open("rb") as file:
        if b"MATLAB 7.3" in file.read(128):
            return _read_hdf(path)
    arrays = loadmat(path, squeeze_me=True)
    own = {k: np.asarray(v) for k, v in arrays.items() if k[:2] != "__"}
    return _matrices_of(path, own)


def _read_hdf(path: Path) -> list[RawMatrix]:
    """Read an HDF5 file; data sets may lie in groups, names in MATLAB's cells."""
    import h5py

    arrays: dict[str, np.ndarray] = {}

    def take(key: str, item: Any) -> None:
        if not isinstance(item, h5py.Dataset) or key.startswith("#refs#"):
            return
        if h5py.check_string_dtype(item.dtype) is not None:
            arrays[key] = np.array(item.asstr()[()], dtype=str)
        elif h5py.check_ref_dtype(item.dtype) is not None:
            cells = [np.ravel(file[reference]) for reference in np.ravel(item)]
            arrays[key] = np.array(["".join(map(chr, cell)) for cell in cells])
        elif item.attrs.get("MATLAB_class") == b"char" and item.ndim == 2:
            arrays[key] = np.array(["".join(map(chr, row)) for row in item[()].T])
        elif item.size:
            arrays[key] = item[()]

    with h5py.File(path, "r") as file:
        file.visititems(take)
    return _matrices_of(path, arrays)


def _read_gii(path: Path) -> list[RawMatrix]:
    """Read the one matrix of a GIFTI file, as micapipe writes `.shape.gii`."""
    from nibabel.gifti import GiftiImage

    (array,) = GiftiImage.from_filename(path).darrays
    return [RawMatrix(np.asarray(array.data, dtype=np.float64))]


FORMATS: dict[str, Callable[[Path], list[RawMatrix]]] = {
    **dict.fromkeys((".csv", ".dat", ".gz", ".tsv", ".txt"), _read_text),
    **dict.fromkeys((".h5", ".hdf5"), _read_hdf),
    ".gii": _read_gii,
    ".mat": _read_mat,
    ".npy": _read_npy,
    ".npz": _read_npz,
}


def is_matrix(path: Path) -> bool:
    """Return whether a file holds a connectome of any atlas, or many."""
    if path.is_file() and path.suffix.lower() in FORMATS:
        with suppress(BrainlsapError), reading(path, "a matrix"):
            shape = FORMATS[path.suffix.lower()](path)[0].values.shape
            return len(shape) == 2 and 5 < shape[0] == shape[1]
    return False


# ---- which arrays of a file are matrices, and which name their rows -----------------


def _matrices_of(path: Path, arrays: dict[str, np.ndarray]) -> list[RawMatrix]:
    """Return the square matrices of a file, each with its names and its measure.

    Known by their keys are QSIRecon and QSIPrep (`atlas_<A>_<measure>_connectivity`,
    with or without `atlas_`, beside `<A>_region_labels`) and DSI Studio
    (`connectivity` or `<measure> r2r`, beside `name`); any other file may hold square
    matrices and one list of as many different names. Raises where several lists could
    name a matrix, or one that says it does has the length of none.
    """
    squares = {
        key: value
        for key, value in arrays.items()
        if value.ndim == 2
        and 2 <= value.shape[0] == value.shape[1]
        and value.dtype.kind in "uifb"
    }
    stacks = [value for value in arrays.values() if _is_stack(value)]
    if len(stacks) == 1 and not squares:
        return _matrices_of_scans(stacks[0], arrays)
    if not squares:
        shapes = listed((f"{key} {value.shape}" for key, value in arrays.items()), 8)
        raise FileFormatError(
            f"expected a square matrix of numbers, found {shapes or 'nothing'}.",
            path=path,
        )
    sizes = {len(values) for values in squares.values()}
    lists = list[tuple[str, str, tuple[str, ...]]]()  # key, its start, names
    for key, value in arrays.items():
        end = next((end for end in _NUMBER_KEYS if key.lower().endswith(end)), "")
        if names := _names_in(value, numbers_count=end != ""):
            lists.append((key, key[: -len(end)] if end else "", names))
    found = []
    for key, values in squares.items():
        n = len(values)
        # a list is of the matrices that its key begins like, else of all
        mine = {
            name: names
            for name, start, names in lists
            if key.startswith(start) or not any(k.startswith(start) for k in squares)
        }
        fitting = {v for v in mine.values() if len(v) == n == len(set(v))}
        fitting = {v for v in fitting if not are_numbers(v)} or fitting
        is_odd = any(
            name.lower().endswith(_NAME_KEYS) and len(v) not in (1, *sizes)
            for name, v in mine.items()
            if not are_numbers(v)
        )
        if len(fitting) > 1 or (is_odd and not fitting):
            told = ", ".join(f"{name!r} ({len(v)})" for name, v in mine.items())
            raise FileFormatError(
                f"{n} rows of {key!r}, but lists of names are {told}; expected "
                f"one of {n}. Keep one, under the key {_NAME_KEYS[0]!r}.",
                path=path,
            )
        rows = next(iter(fitting), None)
        starts = [start for _, start, _ in lists if key.startswith(start)]
        measure = key.removeprefix(max(starts, key=len, default=""))
        measure = measure.removesuffix("_connectivity").removesuffix(" r2r")
        leaves_out = key.endswith(("connectivity", " r2r"))
        found.append(RawMatrix(values, rows, rows, measure, leaves_out))
    return found


def _is_stack(value: np.ndarray) -> bool:
    """Return whether an array holds square matrices, of scans first or last."""
    shape = value.shape
    is_square = len(shape) == 3 and shape[1] in (shape[0], shape[2])
    return is_square and value.dtype.kind in "uifb"


def _matrices_of_scans(
    stack: np.ndarray, arrays: dict[str, np.ndarray]
) -> list[RawMatrix]:
    """Return the matrices of an array of three axes, with all lists beside it."""
    n_first, n_rows, n_last = stack.shape
    is_last = n_rows != n_last  # MATLAB has scans last
    if n_first == n_rows == n_last:  # as many scans as regions
        scans_last = np.moveaxis(stack, 2, 0)
        is_last = _are_connectomes(scans_last)
        if is_last == _are_connectomes(stack):
            raise FileFormatError(
                f"an array of {n_first} x {n_rows} x {n_last} does not say which axis "
                "is that of scans. Write one file for each scan."
            )
    if is_last:
        stack = np.moveaxis(stack, 2, 0)
    lists = {
        key: NameList(names, value.dtype.kind in "USO")
        for key, value in arrays.items()
        if (names := _names_in(value, numbers_count=True))
    }
    return [RawMatrix(values, lists=lists) for values in stack]


def _are_connectomes(stack: np.ndarray) -> bool:
    """Return whether all matrices are symmetric, or have one triangle only."""
    turned = stack.swapaxes(1, 2)
    if np.array_equal(stack, turned):
        return True
    return not np.triu(stack, 1).any() or not np.tril(stack, -1).any()


def _names_in(value: np.ndarray, numbers_count: bool) -> tuple[str, ...]:
    """Return the names in text, in cells of text, or in bytes of lines (DSI Studio).

    Where `numbers_count`, whole numbers of a list are such, too.
    """
    if value.dtype == np.uint8 and 10 in value and value.size == max(value.shape):
        text = value.tobytes().decode("utf-8", "replace")
        return tuple(text.strip("\n\0").split("\n"))
    if value.dtype.kind in "USO":
        cells = list(map(as_text, value.ravel().tolist()))
        return tuple(cells[0].split("\n") if len(cells) == 1 else cells)
    is_list = value.dtype.kind in "uif" and value.size == max(value.shape, default=0)
    numbers = [f"{n:.15g}" for n in value.ravel()] if is_list and numbers_count else []
    return tuple(numbers) if are_numbers(numbers) else ()
