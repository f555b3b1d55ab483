"""Read one connectome and put its rows and columns in the order of an atlas.

Rows are matched by name wherever they have names. The order of other rows is that of a
known tool (:mod:`brainlsap.data.row_order`), and is checked on the weights
(:mod:`brainlsap.data.order_check`). A single triangle is mirrored. Weights are not
changed, the diagonal included.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from brainlsap.arrays import as_number_array
from brainlsap.atlas import Atlas, load_atlas
from brainlsap.atlas.region_names import are_counts, as_text
from brainlsap.data.order_check import OrderCheck, UnknownOrderError
from brainlsap.data.region_lists import are_numbers
from brainlsap.data.row_order import UNCHECKED_NAMES, RowNames, name_rows, row_orders
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
from brainlsap.text import listed, option_text

SYMMETRIZE = ("refuse", "mean", "max")
NEGATIVE = ("refuse", "drop", "absolute")
# The first of these that a file of several measures has is read by default.
DEFAULT_MEASURES = ("sift_radius2_count", "radius2_count", "count")
# Maximum number of regions that a tool leaves out because a brain lacks them. A matrix
# without more regions is of another atlas.
MAX_ABSENT_REGIONS = 8
# Maximum difference of the two triangles by rounding, relative to the largest weight.
_MAX_ASYMMETRY = 1e-5
_NUMBERS = re.compile(r"(?:[-+.\d\s]|(?<=[\d.])e(?=[-+\d])|nan|inf)*", re.IGNORECASE)
# Number of lines of a text by which a list of connections is recognised.
_N_SAMPLE_LINES = 5
# Words in names of files for means over streamlines, which cannot be added.
_MEAN_WORDS = re.compile(
    r"mean_?[a-z]*|(?<![a-z])fa(?![a-z])|[a-z]*length", re.IGNORECASE
)
# First cells of a header with a cell above the names of rows.
_CORNER_CELLS = frozenset(("", "region", "name", "label", "index", "node", "roi"))
# Ends of the keys of lists of names. Lists of label numbers count where no texts do.
_NAME_KEYS = ("region_labels", "region_names", "regions", "names", "name", "labels")
_NUMBER_KEYS = (*_NAME_KEYS, "ids", "id")


class ConnectomeFile(NamedTuple):
    """A connectome in the order of an atlas, and how it was read.

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
    """A list in a file, as texts, and whether the file stores texts (not numbers)."""

    names: tuple[str, ...]
    are_texts: bool


class RawMatrix(NamedTuple):
    """A square matrix as it stands in a file.

    Parameters
    ----------
    values : array of shape (n_rows, n_rows)
        Weights in the order of the file.
    rows, columns : tuple of str, optional
        Names in the file.
    measure : str
        What the weights are, as the file calls it.
    omits_absent_regions : bool
        Whether the tool leaves out regions that a brain does not have.
    lists : mapping of str to NameList, optional
        For an array of many scans: all lists of the file, by key.
    header : str
        Comment lines of a text.
    """

    values: np.ndarray
    rows: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    measure: str = ""
    omits_absent_regions: bool = False
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
        The measure to read from a file with several, for example
        `radius2_meanlength`.
    labels : sequence of str or path, optional
        Name of every row, or a file with one name a line, for matrices without names.
        By default a list beside the matrix counts (`labels.txt`, `labels.csv`,
        `labels_list.txt`, `<name>_labels.*`, brainlife's `label.json`, `centres.txt` of
        The Virtual Brain, BIDS' `.json`), or one above it, up to the folder that holds
        the `sub-*` of the participant.
    row_order : str, optional
        The order of the rows of a matrix without names; one of
        `brainlsap.data.row_order.ROW_ORDERS`. By default words of the path decide.
        "atlas": the order of the atlas; "labels": the order of the regions' numbers in
        an image; "mrtrix", "ukbiobank", "micapipe", "enigma": the order of this tool's
        matrices; "names": names are used without the check on the weights. A matrix
        whose order is unknown is refused with a list of all orders of its size.
    symmetrize : {"refuse", "mean", "max"}
        How to treat two directions that differ by more than rounding.
    negative : {"refuse", "drop", "absolute"}
        How to treat negative weights, for example of correlations: refuse them, set
        them to 0, or take their absolute values.
    order_check : OrderCheck, optional
        Collects matrices, so that the order of their rows is checked once on their
        mean. By default this matrix is checked alone.

    Returns
    -------
    ConnectomeFile

    Raises
    ------
    FileFormatError
        Where the file is no connectome of this atlas: another format, rows of unknown
        order or of an order that the weights contradict, NaN or infinite weights, or
        two triangles that differ.
    ParameterError
        Where weights are negative and `negative` is "refuse".
    RegionNameError
        Where a name is unknown or occurs twice, or a region is missing.

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
    path, raw, source_notes = _read_source(source, atlas, measure)
    _check_matrix_shape(raw, path)
    is_file = isinstance(source, str | Path)
    has_unnamed_rows = not is_file and raw.rows is None
    if has_unnamed_rows:
        raw = raw._replace(rows=atlas.names, columns=atlas.names)
    rows = name_rows(
        path, raw.values, atlas, row_order, labels, raw.rows or (), raw.header
    )
    if has_unnamed_rows:
        note = f"taken in the order of {atlas.name}"
        rows = rows._replace(note=note, source="array")
    # names that the caller gave to a matrix in memory are not checked
    is_checked = is_file or has_unnamed_rows
    if row_order == UNCHECKED_NAMES and rows.names:
        is_checked = False
    is_checked_alone = is_checked and order_check is None
    check = OrderCheck(atlas) if order_check is None else order_check
    if is_checked:
        check.add(_align_columns(raw), rows, path)
    if is_checked_alone:
        check.raise_refusal()
    if not rows.names:  # the collected matrices are refused together
        raise UnknownOrderError(f"nothing names the {len(raw.values)} rows.", path=path)
    raw = _apply_row_names(raw, rows, path)
    values, order_findings = _in_atlas_order(raw, atlas, path)
    matrix, weight_notes = _treat_weights(
        values, atlas.names, path, symmetrize, negative
    )
    notes: list[Finding | str] = [*source_notes]
    if is_file:
        notes.append(Finding(rows.note, kind=ROW_ORDER if rows.is_tool_order else ""))
    notes += [*order_findings, *weight_notes]
    if is_file and is_checked_alone:
        notes += check.notes()
    return ConnectomeFile(matrix, as_findings(notes))


def _read_source(
    source: str | Path | np.ndarray | pd.DataFrame, atlas: Atlas, measure: str | None
) -> tuple[Path, RawMatrix, list[str]]:
    """Return the path of a matrix, the matrix, and how it was chosen among others.

    The path of a matrix in memory is the name of the argument.
    """
    if not isinstance(source, str | Path):
        return Path("connectome="), _take_array(source), []
    path = Path(source)
    matrix_format = FORMATS.get(path.suffix.lower())
    if matrix_format is None:
        raise FileFormatError(
            f"connectomes are read from {', '.join(sorted(FORMATS))} files, "
            f"got {path.suffix or 'a name without suffix'}. A tractogram becomes a "
            "connectome by brainlsap.images.build_connectome.",
            path=path,
            kind="unknown format",
        )
    with reading(path, f"a {path.suffix} file"):
        matrix, *further_matrices = matrix_format.read(path)
    if further_matrices or (matrix.measure and measure):
        matrices = [matrix, *further_matrices]
        matrix, notes = _choose_matrix(matrices, atlas, measure, path)
        return path, matrix, notes
    return path, matrix, []


def _take_array(source: np.ndarray | pd.DataFrame) -> RawMatrix:
    """Return a matrix in memory, with names where a data frame has them."""
    axes = [tuple(map(str, axis)) for axis in pd.DataFrame(source).axes]
    name_axes = [names for names in axes if not are_counts(names)]
    try:
        values = as_number_array(source)
    except (TypeError, ValueError):  # refused by shape and type
        values = np.asarray(source)
    if not name_axes:
        return RawMatrix(values)
    return RawMatrix(values, rows=name_axes[0], columns=name_axes[-1])


def _check_matrix_shape(raw: RawMatrix, path: Path) -> None:
    """Raise where values are no square matrix of numbers."""
    values = raw.values
    n_rows = len(values)
    if values.shape == (n_rows, n_rows) and values.dtype.kind in "uifb":
        return
    hint = "The file may be cut short."
    if _is_edge_list(values):
        hint = (
            "It may be a list of connections, two numbers of regions and a weight "
            "each; write a square matrix, 0 where no connection is."
        )
    raise FileFormatError(
        "expected a square matrix of numbers, got shape "
        f"{values.shape} of {values.dtype}. {hint}",
        path=path,
        kind="matrix shape",
        values={"shape": values.shape},
    )


def _apply_row_names(raw: RawMatrix, rows: RowNames, path: Path) -> RawMatrix:
    """Return a matrix with the names that its rows were given, parts added."""
    if rows.names is not raw.rows:
        raw = raw._replace(rows=rows.names, columns=rows.names)
    return _add_parts(raw, path) if rows.adds_parts else raw


def _align_columns(raw: RawMatrix) -> np.ndarray:
    """Return the weights with columns in the order of rows, where names say both."""
    rows = raw.rows or ()
    columns = raw.columns or ()
    if rows == columns or sorted(rows) != sorted(columns) or len({*rows}) < len(rows):
        return raw.values
    return raw.values[:, [columns.index(name) for name in rows]]


def _add_parts(raw: RawMatrix, path: Path) -> RawMatrix:
    """Return a matrix in which rows of one name are one row: the sum of their weights.

    Raises where the weights are means, which cannot be added.
    """
    mean_word = _MEAN_WORDS.search(path.name)
    if mean_word:
        raise FileFormatError(
            f"a region has several rows, and {mean_word[0]} of parts cannot be "
            "added. Give a matrix of counts of streamlines, or of their weights.",
            path=path,
            kind="parts of means",
        )
    names = tuple(dict.fromkeys(raw.rows or ()))
    region_of_row = [names.index(name) for name in raw.rows or ()]
    merge = np.zeros((len(names), len(region_of_row)))
    merge[region_of_row, np.arange(len(region_of_row))] = 1
    values = merge @ _mirror(raw.values.astype(np.float64)) @ merge.T
    return raw._replace(values=values, rows=names, columns=names)


def _mirror(values: np.ndarray) -> np.ndarray:
    """Return a matrix with both triangles where only one is filled."""
    upper = np.triu(values, 1)
    lower = np.tril(values, -1)
    if upper.any() and lower.any():
        return values
    return values + (upper + lower).T


def _is_edge_list(values: np.ndarray) -> bool:
    """Return whether rows look like two numbers of regions, and weights."""
    if values.ndim != 2 or values.dtype.kind not in "uif":
        return False
    if not 3 <= values.shape[1] < 6 or len(values) < 3:
        return False
    region_numbers = values[:, :2]
    are_integers = (region_numbers == np.round(region_numbers)).all()
    return bool((region_numbers >= 0).all() and are_integers)


def _choose_matrix(
    matrices: Sequence[RawMatrix], atlas: Atlas, measure: str | None, path: Path
) -> tuple[RawMatrix, list[str]]:
    """Return the matrix of a measure, or else of a usual one, and notes on the choice.

    Raises where there is no such measure, or several matrices are left.
    """
    measures = ", ".join(sorted({raw.measure for raw in matrices if raw.measure}))
    if measure is not None and measures:
        matrices = [raw for raw in matrices if raw.measure.lower() == measure.lower()]
        if not matrices:
            raise FileFormatError(
                f"no measure {measure!r}; found {measures}.",
                path=path,
                kind="no such measure",
            )
    candidates = [raw for raw in matrices if _may_fit(raw, atlas)] or matrices
    if len(candidates) == 1:
        return candidates[0], []
    for default_measure in DEFAULT_MEASURES:
        defaults = [raw for raw in candidates if raw.measure == default_measure]
        if len(defaults) == 1:
            other_measures = {raw.measure for raw in candidates} - {default_measure}
            note = (
                f"took {default_measure}; {option_text('measure')} takes another of "
                f"{', '.join(sorted(other_measures))}"
            )
            return defaults[0], [note]
    raise FileFormatError(
        f"{len(candidates)} matrices could be the connectome. Choose by "
        f"{option_text('measure')} one of {measures or 'them, and give each a name'}.",
        path=path,
        kind="several matrices",
    )


def _may_fit(raw: RawMatrix, atlas: Atlas) -> bool:
    """Return whether names, or else the size, of a matrix may be those of an atlas."""
    if raw.rows is None or all(map(str.isdecimal, raw.rows)):
        return len(raw.values) in {len(order.names) for order in row_orders(atlas)}
    n_known = sum(atlas.find(name) is not None for name in raw.rows)
    return n_known >= len(atlas) / 2


def _in_atlas_order(
    raw: RawMatrix, atlas: Atlas, path: Path
) -> tuple[np.ndarray, list[Finding]]:
    """Return a matrix in the order of an atlas, and what was left out.

    Raises where regions are missing, unless the tool omits those that a brain lacks.
    """
    findings = list[Finding]()
    rows = raw.rows or ()
    max_missing = MAX_ABSENT_REGIONS if raw.omits_absent_regions else 0
    try:
        row_of_region, dropped_names = atlas.rows(rows)
        column_of_region, _ = atlas.rows(raw.columns or ())
        missing = np.flatnonzero((row_of_region < 0) | (column_of_region < 0))
        if len(missing) > max_missing:
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
    if dropped_names:
        names = listed(dict.fromkeys(dropped_names), 8)
        findings.append(Finding(f"left out, not in {atlas.name}: {names}", LEFT_OUT))
    values = raw.values.take(row_of_region, 0).take(column_of_region, 1)
    values = values.astype(np.float64)
    if raw.omits_absent_regions:
        values[missing] = np.nan
        values[:, missing] = np.nan
        is_empty = np.isnan(values)
        n_empty = np.minimum(is_empty.sum(0), is_empty.sum(1))
        is_absent = n_empty >= len(values) - 1
        if 0 < is_absent.sum() <= MAX_ABSENT_REGIONS:
            values[is_absent] = 0
            values[:, is_absent] = 0
            names = ", ".join(np.array(atlas.names)[is_absent])
            message = f"absent from the file, without connections: {names}"
            findings.append(Finding(message))
    return values, findings


def treat_negative_weights(
    W: np.ndarray, negative: str, source: str | Path = "connectomes="
) -> tuple[np.ndarray, list[str]]:
    """Return weights without negative ones, and notes on what was done. NaN stays.

    `negative` is one of `NEGATIVE`. Raises ParameterError where it is "refuse".
    """
    check_choice("negative", negative, NEGATIVE)
    if not (W < 0).any():
        return W, []
    if negative == "refuse":
        raise ParameterError(
            f"weights are negative. Of correlations, {option_text('negative', 'drop')} "
            f"sets them to 0, {option_text('negative', 'absolute')} takes their "
            "absolute values",
            path=source,
            kind="negative weights",
            got=f"{int((W < 0).sum())}, down to {np.nanmin(W):.3g}.",
        )
    if negative == "drop":
        return np.maximum(W, 0), ["negative weights were set to 0"]
    return np.abs(W), ["negative weights were taken by their size"]


def _treat_weights(
    values: np.ndarray, names: Sequence[str], path: Path, symmetrize: str, negative: str
) -> tuple[np.ndarray, list[str]]:
    """Return a symmetric matrix of weights that can be used, and notes.

    Raises where weights are not finite, negative, all 0, or differ both ways.
    """
    values, notes = treat_negative_weights(values, negative, path)
    is_bad = ~np.isfinite(values)
    if is_bad.any():
        i, j = np.argwhere(is_bad)[0]
        hint = "on the diagonal: set it to 0" if i == j else "(write 0 where none is)"
        raise FileFormatError(
            f"weights are NaN or infinite {hint}",
            path=path,
            kind="weights not finite",
            got=f"{is_bad.sum()} such, first {values[i, j]} between {names[i]} and "
            f"{names[j]}.",
        )
    n_loops = np.count_nonzero(values.diagonal())
    if np.count_nonzero(np.maximum(values, values.T)) == n_loops:
        raise FileFormatError(
            "every weight between two regions is 0; expected connections.",
            path=path,
            kind="no connections",
        )
    values, symmetry_notes = _symmetrize(values, names, path, symmetrize)
    return values.astype(np.float32), [*notes, *symmetry_notes]


def _symmetrize(
    values: np.ndarray, names: Sequence[str], path: Path, symmetrize: str
) -> tuple[np.ndarray, list[str]]:
    """Return a matrix with two equal triangles, and notes on what was done.

    Raises where they differ by more than rounding and `symmetrize` is "refuse".
    """
    larger = np.maximum(values, values.T)
    if np.array_equal(values, larger):
        return values, []
    smaller = np.minimum(values, values.T)
    if np.count_nonzero(smaller) == np.count_nonzero(values.diagonal()):
        # the order of the atlas may scatter one triangle over both
        return larger, ["only one triangle is filled: mirrored"]
    difference = larger - smaller
    mean = (larger + smaller) / 2
    if difference.max() <= _MAX_ASYMMETRY * larger.max():
        return mean, ["the two triangles differ by rounding: averaged"]
    if symmetrize == "refuse":
        i, j = np.unravel_index(difference.argmax(), difference.shape)
        raise FileFormatError(
            "weights are not symmetric, nor is a triangle 0. Take their mean, "
            f"(W + W.T) / 2; for files {option_text('symmetrize', 'mean')} or 'max' "
            "does so",
            path=path,
            kind="not symmetric",
            got=f"{values[i, j]} from {names[i]} to {names[j]} but {values[j, i]} "
            "back.",
        )
    note = f"the two triangles differ: symmetrized by their {symmetrize}"
    return (larger if symmetrize == "max" else mean), [note]


# ---- one function for each format --------------------------------------------------


def _read_text(path: Path) -> list[RawMatrix]:
    """Read a matrix from text, with or without names in its first row and column."""
    all_lines = [line.strip(" ") for line in read_lines(path, comments=True)]
    lines = [line for line in all_lines if line[0] != "#"]
    if not lines:
        raise FileFormatError(
            "the file is empty; expected a matrix.", path=path, kind="empty file"
        )
    delimiter = sniff_delimiter(lines[0])
    if re.search(r"(?:^|[;\s])-?\d+,\d+[;\s]", lines[-1]):
        raise FileFormatError(
            "numbers have decimal commas. Write points (and thousands without "
            "separators).",
            path=path,
            kind="decimal commas",
        )
    if delimiter and all(line.endswith(delimiter) for line in lines):
        lines = [line[:-1] for line in lines]
    sample = [split_cells(line, delimiter) for line in lines[:_N_SAMPLE_LINES]]
    _refuse_other_layouts(path, sample)
    comments = [line.lstrip("# ") for line in all_lines if line[0] == "#"]
    rows, columns, lines = _take_names(comments, lines, delimiter)
    values = _parse_weights(lines, delimiter, has_row_names=bool(rows))
    for axis, axis_names in (("rows", rows), ("columns", columns)):
        if axis_names and len(axis_names) != len(values):
            raise FileFormatError(
                f"{len(axis_names)} names for {len(values)} {axis}; expected "
                "one name for each.",
                path=path,
                kind="names per axis",
            )
    header = "\n".join(comments)
    name_axes = [tuple(axis_names) for axis_names in (rows, columns) if axis_names]
    # of counts and names, only the names say which regions the rows are
    name_axes = [names for names in name_axes if not are_counts(names)] or name_axes
    if not name_axes:
        return [RawMatrix(values, header=header)]
    return [RawMatrix(values, name_axes[0], name_axes[-1], header=header)]


def _parse_weights(
    lines: Sequence[str], delimiter: str | None, has_row_names: bool
) -> np.ndarray:
    """Return the numbers in lines; the first column is left out where it has names."""
    if not lines:
        return np.empty((0, 0))
    # names may be quoted and contain delimiters; those of rows are read already
    converters: dict[int | str, Callable[[str], float]] | None = None
    if has_row_names:
        converters = {0: lambda _: 0.0}
    try:
        values = np.loadtxt(
            lines,
            delimiter=delimiter,
            quotechar='"',
            comments=None,
            converters=converters,
            ndmin=2,
        )
    except ValueError as error:
        # NumPy's message advises on its own arguments.
        fault = _describe_unreadable(lines, delimiter, has_row_names)
        raise ValueError(fault) from error
    return values[:, 1:] if has_row_names else values


def _describe_unreadable(
    lines: Sequence[str], delimiter: str | None, has_row_names: bool
) -> str:
    """Return which line or cell keeps lines from being a table of numbers."""
    n_cells = len(split_cells(lines[0], delimiter))
    for row, line in enumerate(lines, start=1):
        cells = split_cells(line, delimiter)
        if len(cells) != n_cells:
            return f"row {row} has {len(cells)} cells, and row 1 has {n_cells}"
        for column, cell in enumerate(cells, start=1):
            is_row_name = has_row_names and column == 1
            if not (is_row_name or _is_number(cell)):
                return f"{cell!r} in row {row}, column {column} is no number"
    return "its cells are no numbers"


def _is_number(cell: str) -> bool:
    """Return whether Python reads a cell as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _refuse_other_layouts(path: Path, rows: Sequence[Sequence[str]]) -> None:
    """Raise where rows are a list of connections, or a connectogram of DSI Studio."""
    if [cell.lower() for row in rows[:2] for cell in row[:2]] == ["data"] * 4:
        raise FileFormatError(
            "is a connectogram of DSI Studio, with two rows and two columns "
            "of heads; expected a square matrix. Give the .connectivity.mat of the "
            "same run.",
            path=path,
            kind="connectogram",
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
            kind="list of connections",
        )


def _count_words(row: Sequence[str]) -> int:
    """Return how many cells at the start are words, -1 where others are no numbers."""
    is_word = [_NUMBERS.fullmatch(cell) is None for cell in row]
    n_words = is_word.index(False) if False in is_word else len(row)
    return -1 if any(is_word[n_words:]) else n_words


def _take_names(
    comments: Sequence[str], lines: list[str], delimiter: str | None
) -> tuple[list[str], list[str], list[str]]:
    """Return the names of rows and of columns, and the lines without the header."""
    rows = list[str]()
    columns = list[str]()
    first_cells = split_cells(lines[0], delimiter)
    # the header has a corner, or begins with a name where there are as many columns
    is_square = len(lines) == len(first_cells)
    starts_with_name = is_square and not _are_weights(first_cells[:1])
    has_corner = first_cells[0].lower() in _CORNER_CELLS or starts_with_name
    n_columns = len(first_cells) - has_corner
    if has_corner or not _are_weights(first_cells[1:]):
        columns, lines = first_cells, lines[1:]
    else:
        columns = _find_names_in_comments(comments, len(first_cells))
    first_cells = split_cells(lines[0], delimiter) if lines else [""]
    # below a header with a corner, or with a cell less, the first column has names
    if len(first_cells) == n_columns + 1 or not _are_weights(first_cells[:1]):
        rows = [split_cells(line, delimiter)[0] for line in lines]
        columns = columns[1:] if len(columns) == len(lines) + 1 else columns
    return rows, columns, lines


def _are_weights(cells: Sequence[str]) -> bool:
    """Return whether all cells are numbers."""
    return _NUMBERS.fullmatch(" ".join(cells)) is not None


def _find_names_in_comments(comments: Sequence[str], n_columns: int) -> list[str]:
    """Return the names of columns in a comment, as of NumPy's `savetxt(header=...)`."""
    for text in comments:
        cells = split_cells(text, sniff_delimiter(text)) or [""]
        if cells[0].lower() in _CORNER_CELLS and len(cells) == n_columns + 1:
            cells = cells[1:]
        are_names = not _are_weights(cells) or all(map(str.isdecimal, cells))
        if len(cells) == n_columns and are_names:
            return cells
    return []


def _read_npy(path: Path) -> list[RawMatrix]:
    """Read an array of NumPy, of one matrix or of many."""
    # mapped, since a matrix of label numbers is large and few of its rows are read
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    return _split_stack(array, {}) if _is_stack(array) else [RawMatrix(array)]


def _read_npz(path: Path) -> list[RawMatrix]:
    """Read the matrices of an archive of NumPy."""
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return _find_matrices(path, dict(arrays))


def _read_mat(path: Path) -> list[RawMatrix]:
    """Read a MATLAB file of any version; 7.3 is HDF5."""
    from scipy.io import loadmat

    with path.open("rb") as file:
        if b"MATLAB 7.3" in file.read(128):
            return _read_hdf(path)
    variables = loadmat(path, squeeze_me=True)
    arrays = {k: np.asarray(v) for k, v in variables.items() if k[:2] != "__"}
    return _find_matrices(path, arrays)


def _read_hdf(path: Path) -> list[RawMatrix]:
    """Read an HDF5 file; data sets may lie in groups, names in MATLAB's cells."""
    import h5py

    arrays: dict[str, np.ndarray] = {}

    def read_item(key: str, item: h5py.Group | h5py.Dataset) -> None:
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
        file.visititems(read_item)
    return _find_matrices(path, arrays)


def _read_gii(path: Path) -> list[RawMatrix]:
    """Read the one matrix of a GIFTI file, as micapipe writes `.shape.gii`."""
    from nibabel.gifti import GiftiImage

    (array,) = GiftiImage.from_filename(path).darrays
    return [RawMatrix(np.asarray(array.data, dtype=np.float64))]


class MatrixFormat(NamedTuple):
    """How files of one suffix are read.

    Attributes
    ----------
    read : callable
        `(path) -> matrices`; those of many scans have :attr:`RawMatrix.lists`.
    may_hold_many_scans : bool
        Whether a file may hold the connectomes of many scans.
    """

    read: Callable[[Path], list[RawMatrix]]
    may_hold_many_scans: bool = False


FORMATS: dict[str, MatrixFormat] = {
    **dict.fromkeys((".csv", ".dat", ".gz", ".tsv", ".txt"), MatrixFormat(_read_text)),
    **dict.fromkeys((".h5", ".hdf5"), MatrixFormat(_read_hdf, True)),
    ".gii": MatrixFormat(_read_gii),
    ".mat": MatrixFormat(_read_mat, True),
    ".npy": MatrixFormat(_read_npy, True),
    ".npz": MatrixFormat(_read_npz, True),
}
"""Formats of connectomes by suffix, in lower case."""


def is_matrix(path: Path) -> bool:
    """Return whether a file holds a connectome of any atlas, or many."""
    if path.is_file() and path.suffix.lower() in FORMATS:
        with suppress(BrainlsapError), reading(path, "a matrix"):
            shape = FORMATS[path.suffix.lower()].read(path)[0].values.shape
            return len(shape) == 2 and 5 < shape[0] == shape[1]
    return False


# ---- which arrays of a file are matrices, and which name their rows -----------------


class _NamedList(NamedTuple):
    """A list of a file that may name rows.

    `prefix` is the start of its key, by which it belongs to the matrices whose keys
    start alike; "" for all matrices.
    """

    key: str
    prefix: str
    names: tuple[str, ...]


def _find_matrices(path: Path, arrays: dict[str, np.ndarray]) -> list[RawMatrix]:
    """Return the square matrices of a file, each with its names and its measure.

    Known by their keys are QSIRecon and QSIPrep (`atlas_<A>_<measure>_connectivity`,
    with or without `atlas_`, beside `<A>_region_labels`) and DSI Studio
    (`connectivity` or `<measure> r2r`, beside `name`). Any other file may hold square
    matrices and one list of as many different names.

    Raises
    ------
    FileFormatError
        Where there is no matrix, or several lists could name one, or a list whose key
        says that it names rows has the length of no matrix.
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
        return _split_stack(stacks[0], arrays)
    if not squares:
        shapes = listed((f"{key} {value.shape}" for key, value in arrays.items()), 8)
        raise FileFormatError(
            f"expected a square matrix of numbers, found {shapes or 'nothing'}.",
            path=path,
            kind="no square matrix",
        )
    lists = _find_name_lists(arrays)
    sizes = {len(values) for values in squares.values()}
    matrices = list[RawMatrix]()
    for key, values in squares.items():
        own_lists = {
            name_list.key: name_list.names
            for name_list in lists
            if key.startswith(name_list.prefix)
            or not any(k.startswith(name_list.prefix) for k in squares)
        }
        rows = _choose_row_list(path, key, len(values), own_lists, sizes)
        prefixes = [x.prefix for x in lists if key.startswith(x.prefix)]
        measure = key.removeprefix(max(prefixes, key=len, default=""))
        measure = measure.removesuffix("_connectivity").removesuffix(" r2r")
        omits_absent_regions = key.endswith(("connectivity", " r2r"))
        matrices.append(RawMatrix(values, rows, rows, measure, omits_absent_regions))
    return matrices


def _find_name_lists(arrays: Mapping[str, np.ndarray]) -> list[_NamedList]:
    """Return the arrays of a file that are lists of names, or of label numbers."""
    lists = list[_NamedList]()
    for key, value in arrays.items():
        endings = (end for end in _NUMBER_KEYS if key.lower().endswith(end))
        ending = next(endings, "")
        names = _names_in(value, numbers_count=ending != "")
        if names:
            prefix = key[: -len(ending)] if ending else ""
            lists.append(_NamedList(key, prefix, names))
    return lists


def _choose_row_list(
    path: Path,
    key: str,
    n_rows: int,
    own_lists: Mapping[str, tuple[str, ...]],
    sizes: Collection[int],
) -> tuple[str, ...] | None:
    """Return the one list of as many different names as a matrix has rows, if any.

    Raises where there are several, or where a list of names has the length of no
    matrix.
    """
    candidates = {
        names for names in own_lists.values() if len(names) == n_rows == len(set(names))
    }
    candidates = {names for names in candidates if not are_numbers(names)} or candidates
    has_odd_length = any(
        list_key.lower().endswith(_NAME_KEYS) and len(names) not in (1, *sizes)
        for list_key, names in own_lists.items()
        if not are_numbers(names)
    )
    if len(candidates) > 1 or (has_odd_length and not candidates):
        lengths = ", ".join(f"{k!r} ({len(names)})" for k, names in own_lists.items())
        raise FileFormatError(
            f"{n_rows} rows of {key!r}, but lists of names are {lengths}; "
            f"expected one of {n_rows}. Keep one, under the key {_NAME_KEYS[0]!r}.",
            path=path,
            kind="names per row",
        )
    return next(iter(candidates), None)


def _is_stack(value: np.ndarray) -> bool:
    """Return whether an array holds square matrices, of scans first or last."""
    shape = value.shape
    is_square = len(shape) == 3 and shape[1] in (shape[0], shape[2])
    return is_square and value.dtype.kind in "uifb"


def _split_stack(stack: np.ndarray, arrays: dict[str, np.ndarray]) -> list[RawMatrix]:
    """Return the matrices of an array of three axes, with all lists beside it."""
    n_first, n_rows, n_last = stack.shape
    is_scan_last = n_rows != n_last  # as of MATLAB
    if n_first == n_rows == n_last:  # as many scans as regions
        is_scan_last = _are_connectomes(np.moveaxis(stack, 2, 0))
        if is_scan_last == _are_connectomes(stack):
            raise FileFormatError(
                f"an array of {n_first} x {n_rows} x {n_last} does not say which axis "
                "is that of scans. Write one file for each scan."
            )
    if is_scan_last:
        stack = np.moveaxis(stack, 2, 0)
    lists = dict[str, NameList]()
    for key, value in arrays.items():
        names = _names_in(value, numbers_count=True)
        if names:
            lists[key] = NameList(names, are_texts=value.dtype.kind in "USO")
    return [RawMatrix(values, lists=lists) for values in stack]


def _are_connectomes(stack: np.ndarray) -> bool:
    """Return whether all matrices are symmetric, or have one triangle only."""
    if np.array_equal(stack, stack.swapaxes(1, 2)):
        return True
    return not np.triu(stack, 1).any() or not np.tril(stack, -1).any()


def _names_in(value: np.ndarray, numbers_count: bool) -> tuple[str, ...]:
    """Return the names in an array: text, cells of text, or bytes of lines.

    DSI Studio writes bytes. With `numbers_count`, integers in a list are names, too.
    """
    is_list = value.size == max(value.shape, default=0)
    if value.dtype == np.uint8 and 10 in value and is_list:
        text = value.tobytes().decode("utf-8", "replace")
        return tuple(text.strip("\n\0").split("\n"))
    if value.dtype.kind in "USO":
        cells = list(map(as_text, value.ravel().tolist()))
        return tuple(cells[0].split("\n") if len(cells) == 1 else cells)
    if not numbers_count or not is_list or value.dtype.kind not in "uif":
        return ()
    numbers = [f"{number:.15g}" for number in value.ravel()]
    return tuple(numbers) if are_numbers(numbers) else ()
