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

from brainlsap.arrays import MAX_ASYMMETRY, as_number_array
from brainlsap.atlas import Atlas, load_atlas
from brainlsap.atlas.region_names import are_default_row_names, as_text
from brainlsap.data.order_check import OrderCheck, UnknownOrderError
from brainlsap.data.region_lists import are_unsigned_integers
from brainlsap.data.row_order import (
    UNCHECKED_NAMES,
    RowNames,
    choose_row_names,
    list_row_orders,
)
from brainlsap.data.table_rows import find_line_delimiter, split_line_cells
from brainlsap.data.tables import has_decimal_comma, read_numbered_lines
from brainlsap.exceptions import (
    BrainlsapError,
    FileFormatError,
    ParameterError,
    RegionNameError,
    check_choice,
    convert_reading_errors,
)
from brainlsap.findings import LEFT_OUT, ROW_ORDER, Finding, make_findings
from brainlsap.text import (
    count_text,
    format_leave_out_advice,
    join_with_commas,
    option_text,
)

SYMMETRIZE = ("refuse", "mean", "max")
NEGATIVE = ("refuse", "drop", "absolute")
# The first of these that a file of several measures has is read by default.
DEFAULT_MEASURES = ("sift_radius2_count", "radius2_count", "count")
# Maximum number of regions that a tool leaves out because a brain lacks them. A matrix
# without more regions is of another atlas.
MAX_ABSENT_REGIONS = 8
_TEXT_SUFFIXES = (".csv", ".dat", ".tsv", ".txt")
# Smaller arrays of numbers are no connectomes.
_MIN_MATRIX_ROWS = 5
# A text that cannot be read is a connectome if it is a square of numbers, apart from a
# row or column of names and from cells with a fault.
_MAX_EXTRA_LINES = 2
_MIN_SHARE_OF_NUMBERS = 0.8
_DECIMAL_COMMA_CELL = re.compile(r"(?:^|[;\s])-?\d+,\d+[;\s]")
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
        Notes on what was mapped, mirrored or left out; files that needed the same have
        the same notes.
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
    weights : array of shape (n_rows, n_rows)
        Weights in the order of the file.
    row_names, column_names : tuple of str, optional
        Names in the file.
    measure : str
        Name of the weights in the file.
    omits_absent_regions : bool
        Whether the tool leaves out regions that a brain does not have.
    name_list_by_key : mapping of str to NameList, optional
        For an array of many scans: all lists of the file, by key.
    comment_text : str
        Comment lines of a text.
    """

    weights: np.ndarray
    row_names: tuple[str, ...] | None = None
    column_names: tuple[str, ...] | None = None
    measure: str = ""
    omits_absent_regions: bool = False
    name_list_by_key: Mapping[str, NameList] | None = None
    comment_text: str = ""


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
        delimiter), `.npy`, `.npz`, `.mat`, `.h5`, `.hdf5` or `.gii`. In memory: in
        the order of the atlas, or with names.
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
        Treatment of two directions that differ by more than rounding.
    negative : {"refuse", "drop", "absolute"}
        Treatment of negative weights, for example of correlations: refuse them, set
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
        If the file is no connectome of this atlas: another format, rows of unknown
        order or of an order that the weights contradict, NaN or infinite weights, or
        two triangles that differ.
    ParameterError
        If weights are negative and `negative` is "refuse".
    RegionNameError
        If a name is unknown or occurs twice, or a region is missing.

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
    connectome_path, raw_matrix, source_notes = _read_raw_matrix_and_notes(
        source, atlas, measure
    )
    _check_matrix_shape(raw_matrix, connectome_path)
    is_file = isinstance(source, str | Path)
    has_unnamed_rows = not is_file and raw_matrix.row_names is None
    if has_unnamed_rows:
        raw_matrix = raw_matrix._replace(
            row_names=atlas.names, column_names=atlas.names
        )
    row_names_record = choose_row_names(
        connectome_path,
        raw_matrix.weights,
        atlas,
        row_order,
        labels,
        raw_matrix.row_names or (),
        raw_matrix.comment_text,
    )
    if has_unnamed_rows:
        order_note = f"the rows were read in the order of {atlas.name}"
        row_names_record = row_names_record._replace(note=order_note, source="array")
    # names that the caller gave to a matrix in memory are not checked
    is_order_checked = is_file or has_unnamed_rows
    if row_order == UNCHECKED_NAMES and row_names_record.names:
        is_order_checked = False
    is_checked_alone = is_order_checked and order_check is None
    row_order_check = OrderCheck(atlas) if order_check is None else order_check
    if is_order_checked:
        row_order_check.add_matrix(
            _align_weight_columns(raw_matrix), row_names_record, connectome_path
        )
    if is_checked_alone:
        row_order_check.raise_refusal()
    if not row_names_record.names:  # the collected matrices are refused together
        n_matrix_rows = len(raw_matrix.weights)
        raise UnknownOrderError(
            f"the {n_matrix_rows} rows have no names. Write the region names into the "
            "first row and the first column of the file.",
            path=connectome_path,
            values={"n_rows": n_matrix_rows},
        )
    raw_matrix = _make_named_raw_matrix(raw_matrix, row_names_record, connectome_path)
    weight_matrix, order_findings = _reorder_weights_to_atlas(
        raw_matrix, atlas, connectome_path
    )
    symmetric_matrix, weight_notes = _treat_weights_with_notes(
        weight_matrix, atlas.names, connectome_path, symmetrize, negative
    )
    matrix_notes: list[Finding | str] = [*source_notes]
    if is_file:
        matrix_notes.append(
            Finding(
                row_names_record.note,
                kind=ROW_ORDER if row_names_record.is_tool_order else "",
            )
        )
    matrix_notes += [*order_findings, *weight_notes]
    if is_file and is_checked_alone:
        matrix_notes += row_order_check.count_matrices_by_note()
    return ConnectomeFile(symmetric_matrix, make_findings(matrix_notes))


def _read_raw_matrix_and_notes(
    source: str | Path | np.ndarray | pd.DataFrame,
    atlas: Atlas,
    measure_name: str | None,
) -> tuple[Path, RawMatrix, list[str]]:
    """Return the path of a matrix, the matrix, and how it was chosen among others.

    The path of a matrix in memory is the name of the argument.
    """
    if not isinstance(source, str | Path):
        return Path("connectome="), _to_raw_matrix(source), []
    connectome_path = Path(source)
    matrix_format = FORMATS.get(connectome_path.suffix.lower())
    if matrix_format is None:
        raise FileFormatError(
            "the name of a connectome file must end with "
            f"{' or '.join(sorted(FORMATS))}; got "
            f"{connectome_path.suffix or 'a name without suffix'}. To compute a "
            "connectome from a tractogram, use brainlsap.images.build_connectome.",
            path=connectome_path,
            kind="unknown format",
        )
    with convert_reading_errors(connectome_path, f"a {connectome_path.suffix} file"):
        raw_matrix, *further_matrices = read_raw_matrices(connectome_path)
    if further_matrices or (raw_matrix.measure and measure_name):
        raw_matrices = [raw_matrix, *further_matrices]
        raw_matrix, choice_notes = _choose_matrix_and_notes(
            raw_matrices, atlas, measure_name, connectome_path
        )
        return connectome_path, raw_matrix, choice_notes
    return connectome_path, raw_matrix, []


def _to_raw_matrix(matrix_or_frame: np.ndarray | pd.DataFrame) -> RawMatrix:
    """Return a matrix in memory, with names where a data frame has them."""
    names_by_axis = [
        tuple(map(str, pandas_index))
        for pandas_index in pd.DataFrame(matrix_or_frame).axes
    ]
    usable_names_by_axis = [
        row_or_column_names
        for row_or_column_names in names_by_axis
        if not are_default_row_names(row_or_column_names)
    ]
    try:
        number_array = as_number_array(matrix_or_frame)
    except (TypeError, ValueError):  # refused by shape and type
        number_array = np.asarray(matrix_or_frame)
    if not usable_names_by_axis:
        return RawMatrix(number_array)
    return RawMatrix(
        number_array,
        row_names=usable_names_by_axis[0],
        column_names=usable_names_by_axis[-1],
    )


def _check_matrix_shape(raw_matrix: RawMatrix, connectome_path: Path) -> None:
    """Raise where values are no square matrix of numbers."""
    matrix_values = raw_matrix.weights
    n_matrix_rows = len(matrix_values)
    if (
        matrix_values.shape == (n_matrix_rows, n_matrix_rows)
        and matrix_values.dtype.kind in "uifb"
    ):
        return
    hint_text = "The file may be incomplete."
    if _is_edge_list(matrix_values):
        hint_text = (
            "The file may be a list of connections (two region numbers and a "
            "weight on each line). Write a square matrix, with 0 where there is no "
            "connection."
        )
    raise FileFormatError(
        "expected a square matrix of numbers, got shape "
        f"{matrix_values.shape} of {matrix_values.dtype}. {hint_text}",
        path=connectome_path,
        kind="matrix shape",
        values={"shape": matrix_values.shape},
    )


def _make_named_raw_matrix(
    raw_matrix: RawMatrix, row_names_record: RowNames, connectome_path: Path
) -> RawMatrix:
    """Return a matrix with the names that its rows were given, parts added."""
    if row_names_record.names is not raw_matrix.row_names:
        raw_matrix = raw_matrix._replace(
            row_names=row_names_record.names, column_names=row_names_record.names
        )
    return (
        _make_merged_raw_matrix(raw_matrix, connectome_path)
        if row_names_record.adds_parts
        else raw_matrix
    )


def _align_weight_columns(raw_matrix: RawMatrix) -> np.ndarray:
    """Return the weights with columns in the order of rows, where names say both."""
    row_names = raw_matrix.row_names or ()
    column_names = raw_matrix.column_names or ()
    if (
        row_names == column_names
        or sorted(row_names) != sorted(column_names)
        or len({*row_names}) < len(row_names)
    ):
        return raw_matrix.weights
    return raw_matrix.weights[
        :, [column_names.index(row_name) for row_name in row_names]
    ]


def _make_merged_raw_matrix(raw_matrix: RawMatrix, connectome_path: Path) -> RawMatrix:
    """Return a matrix in which rows of one name are one row: the sum of their weights.

    Raises where the weights are means, which cannot be added.
    """
    mean_match = _MEAN_WORDS.search(connectome_path.name)
    if mean_match:
        raise FileFormatError(
            "several rows belong to the same region, so their weights would have to be "
            f"summed. The file name contains {mean_match[0]!r}, and means cannot be "
            "summed. Give a matrix of streamline counts, or of summed streamline "
            "weights.",
            path=connectome_path,
            kind="parts of means",
        )
    region_names = tuple(dict.fromkeys(raw_matrix.row_names or ()))
    region_index_by_row = [
        region_names.index(region_name) for region_name in raw_matrix.row_names or ()
    ]
    merging_matrix = np.zeros((len(region_names), len(region_index_by_row)))
    merging_matrix[region_index_by_row, np.arange(len(region_index_by_row))] = 1
    summed_weights = (
        merging_matrix
        @ _fill_triangle(raw_matrix.weights.astype(np.float64))
        @ merging_matrix.T
    )
    return raw_matrix._replace(
        weights=summed_weights, row_names=region_names, column_names=region_names
    )


def _fill_triangle(weight_matrix: np.ndarray) -> np.ndarray:
    """Return a matrix with both triangles where only one is filled."""
    upper_triangle = np.triu(weight_matrix, 1)
    lower_triangle = np.tril(weight_matrix, -1)
    if upper_triangle.any() and lower_triangle.any():
        return weight_matrix
    return weight_matrix + (upper_triangle + lower_triangle).T


def _is_edge_list(number_array: np.ndarray) -> bool:
    """Return whether rows look like two numbers of regions, and weights."""
    if number_array.ndim != 2 or number_array.dtype.kind not in "uif":
        return False
    if not 3 <= number_array.shape[1] < 6 or len(number_array) < 3:
        return False
    region_number_pairs = number_array[:, :2]
    are_integers = (region_number_pairs == np.round(region_number_pairs)).all()
    return bool((region_number_pairs >= 0).all() and are_integers)


def _choose_matrix_and_notes(
    raw_matrices: Sequence[RawMatrix],
    atlas: Atlas,
    measure_name: str | None,
    connectome_path: Path,
) -> tuple[RawMatrix, list[str]]:
    """Return the matrix of a measure, or else of a usual one, and notes on the choice.

    Raises where there is no such measure, or several matrices are left.
    """
    measures_text = ", ".join(
        sorted(
            {raw_matrix.measure for raw_matrix in raw_matrices if raw_matrix.measure}
        )
    )
    if measure_name is not None and measures_text:
        raw_matrices = [
            raw_matrix
            for raw_matrix in raw_matrices
            if raw_matrix.measure.lower() == measure_name.lower()
        ]
        if not raw_matrices:
            raise FileFormatError(
                f"the file does not contain the measure {measure_name!r}; it contains "
                f"{measures_text}. Choose one of these.",
                path=connectome_path,
                kind="no such measure",
            )
    fitting_matrices = [
        raw_matrix for raw_matrix in raw_matrices if _may_fit_atlas(raw_matrix, atlas)
    ] or raw_matrices
    if len(fitting_matrices) == 1:
        return fitting_matrices[0], []
    for default_measure_name in DEFAULT_MEASURES:
        default_matrices = [
            raw_matrix
            for raw_matrix in fitting_matrices
            if raw_matrix.measure == default_measure_name
        ]
        if len(default_matrices) == 1:
            other_measure_names = {
                raw_matrix.measure for raw_matrix in fitting_matrices
            } - {default_measure_name}
            choice_note = (
                f"the measure {default_measure_name} was read. The file also contains "
                f"{', '.join(sorted(other_measure_names))}; choose one with "
                f"{option_text('measure')}"
            )
            return default_matrices[0], [choice_note]
    advice_text = (
        "Give each matrix a name in the file, and choose one name with "
        f"{option_text('measure')}."
    )
    if measures_text:
        advice_text = f"Choose one with {option_text('measure')}: {measures_text}."
    raise FileFormatError(
        f"{len(fitting_matrices)} matrices could be the connectome. {advice_text}",
        path=connectome_path,
        kind="several matrices",
    )


def _may_fit_atlas(raw_matrix: RawMatrix, atlas: Atlas) -> bool:
    """Return whether names, or else the size, of a matrix may be those of an atlas."""
    if raw_matrix.row_names is None or all(map(str.isdecimal, raw_matrix.row_names)):
        return len(raw_matrix.weights) in {
            len(row_order.names) for row_order in list_row_orders(atlas)
        }
    n_known_names = sum(
        atlas.find(row_name) is not None for row_name in raw_matrix.row_names
    )
    return n_known_names >= len(atlas) / 2


def _reorder_weights_to_atlas(
    raw_matrix: RawMatrix, atlas: Atlas, connectome_path: Path
) -> tuple[np.ndarray, list[Finding]]:
    """Return a matrix in the order of an atlas, and what was left out.

    Raises where regions are missing, unless the tool omits those that a brain lacks.
    """
    findings = list[Finding]()
    row_names = raw_matrix.row_names or ()
    max_missing_regions = MAX_ABSENT_REGIONS if raw_matrix.omits_absent_regions else 0
    try:
        row_index_by_region, dropped_row_names = atlas.find_file_rows(row_names)
        column_index_by_region, _ = atlas.find_file_rows(raw_matrix.column_names or ())
        missing_region_indices = np.flatnonzero(
            (row_index_by_region < 0) | (column_index_by_region < 0)
        )
        if len(missing_region_indices) > max_missing_regions:
            other_atlas_name = atlas.find_better_atlas_name(row_names)
            advice_text = (
                "For a region without connections, write a row and a column of zeros."
            )
            if other_atlas_name:
                advice_text = (
                    f"The names of the rows belong to the atlas {other_atlas_name}."
                )
            raise RegionNameError(
                f"{len(missing_region_indices)} of the {len(atlas)} regions of "
                f"{atlas.name} are missing: "
                + join_with_commas((atlas.names[i] for i in missing_region_indices), 5)
                + f". {advice_text}",
                values={"atlas": other_atlas_name} if other_atlas_name else {},
            )
    except RegionNameError as error:
        hint_text = atlas.settings.get("remake_connectome", "")
        hint_text = (
            f" {hint_text}"
            if hint_text and atlas.find_better_atlas_name(row_names)
            else ""
        )
        raise RegionNameError(
            f"{error.message}{hint_text}",
            path=connectome_path,
            kind=error.kind,
            values=error.values,
        ) from error
    if dropped_row_names:
        dropped_names_text = join_with_commas(dict.fromkeys(dropped_row_names), 8)
        findings.append(
            Finding(
                f"rows that are not regions of the atlas {atlas.name} are left out: "
                f"{dropped_names_text}",
                LEFT_OUT,
            )
        )
    ordered_weights = raw_matrix.weights.take(row_index_by_region, 0).take(
        column_index_by_region, 1
    )
    ordered_weights = ordered_weights.astype(np.float64)
    if raw_matrix.omits_absent_regions:
        ordered_weights[missing_region_indices] = np.nan
        ordered_weights[:, missing_region_indices] = np.nan
        missing_weight_mask = np.isnan(ordered_weights)
        n_missing_by_region = np.minimum(
            missing_weight_mask.sum(0), missing_weight_mask.sum(1)
        )
        absent_region_mask = n_missing_by_region >= len(ordered_weights) - 1
        if 0 < absent_region_mask.sum() <= MAX_ABSENT_REGIONS:
            ordered_weights[absent_region_mask] = 0
            ordered_weights[:, absent_region_mask] = 0
            dropped_names_text = ", ".join(np.array(atlas.names)[absent_region_mask])
            message = (
                "regions that are absent from the file count as regions without "
                "connections: "
                f"{dropped_names_text}"
            )
            findings.append(Finding(message))
    return ordered_weights, findings


def treat_negative_weights_with_notes(
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
            "connection weights must not be negative",
            path=source,
            kind="negative weights",
            got=f"{int((W < 0).sum())} negative weights, the lowest {np.nanmin(W):.3g}",
            advice=(
                f"For correlations, {option_text('negative', 'drop')} sets negative "
                f"weights to 0, and {option_text('negative', 'absolute')} takes the "
                "absolute values of weights"
            ),
        )
    if negative == "drop":
        return np.maximum(W, 0), ["negative weights were set to 0"]
    return np.abs(W), ["negative weights were replaced by their absolute values"]


def _treat_weights_with_notes(
    weight_matrix: np.ndarray,
    region_names: Sequence[str],
    connectome_path: Path,
    symmetrize: str,
    negative: str,
) -> tuple[np.ndarray, list[str]]:
    """Return a symmetric matrix of weights that can be used, and notes.

    Raises where weights are not finite, negative, all 0, or differ both ways.
    """
    weight_matrix, weight_notes = treat_negative_weights_with_notes(
        weight_matrix, negative, connectome_path
    )
    infinite_weight_mask = ~np.isfinite(weight_matrix)
    if infinite_weight_mask.any():
        i, j = np.argwhere(infinite_weight_mask)[0]
        advice_text = "Write 0 where there is no connection"
        if i == j:
            advice_text = "Set the diagonal to 0"
        raise FileFormatError(
            "connection weights must be finite numbers",
            path=connectome_path,
            kind="weights not finite",
            got=(
                f"{infinite_weight_mask.sum()} NaN or infinite weights, for example "
                f"{weight_matrix[i, j]} between {region_names[i]} and "
                f"{region_names[j]}"
            ),
            advice=advice_text,
        )
    n_loops = np.count_nonzero(weight_matrix.diagonal())
    if np.count_nonzero(np.maximum(weight_matrix, weight_matrix.T)) == n_loops:
        raise FileFormatError(
            "the weights between all pairs of regions are 0, so the matrix contains no "
            "connections. Leave this scan out, or correct the file.",
            path=connectome_path,
            kind="no connections",
        )
    weight_matrix, symmetry_notes = _symmetrize_with_notes(
        weight_matrix, region_names, connectome_path, symmetrize
    )
    return weight_matrix.astype(np.float32), [*weight_notes, *symmetry_notes]


def _symmetrize_with_notes(
    weight_matrix: np.ndarray,
    region_names: Sequence[str],
    connectome_path: Path,
    symmetrize: str,
) -> tuple[np.ndarray, list[str]]:
    """Return a matrix with two equal triangles, and notes on what was done.

    Raises where they differ by more than rounding and `symmetrize` is "refuse".
    """
    larger_weights = np.maximum(weight_matrix, weight_matrix.T)
    if np.array_equal(weight_matrix, larger_weights):
        return weight_matrix, []
    smaller_weights = np.minimum(weight_matrix, weight_matrix.T)
    if np.count_nonzero(smaller_weights) == np.count_nonzero(weight_matrix.diagonal()):
        # the order of the atlas may scatter one triangle over both
        return larger_weights, [
            "only one triangle of the matrix was filled, so it was copied to the other"
        ]
    weight_differences = larger_weights - smaller_weights
    mean_weights = (larger_weights + smaller_weights) / 2
    if weight_differences.max() <= MAX_ASYMMETRY * larger_weights.max():
        return mean_weights, [
            "the two triangles of the matrix differ by rounding errors, so their mean "
            "was used"
        ]
    if symmetrize == "refuse":
        i, j = np.unravel_index(weight_differences.argmax(), weight_differences.shape)
        raise FileFormatError(
            "the matrix is not symmetric, and neither triangle is empty",
            path=connectome_path,
            kind="not symmetric",
            got=f"{weight_matrix[i, j]} from {region_names[i]} to {region_names[j]}, "
            f"but {weight_matrix[j, i]} in the opposite direction",
            advice=(
                "Symmetrise the matrix, for example by (W + W.T) / 2. For files, "
                f"{option_text('symmetrize', 'mean')} takes the mean of the two "
                "weights, and 'max' takes the larger one"
            ),
            values={"advised_option": "symmetrize"},
        )
    triangle_note = (
        "the two triangles of the matrix differ, so they were made equal by "
        f"{option_text('symmetrize', symmetrize)}"
    )
    return (larger_weights if symmetrize == "max" else mean_weights), [triangle_note]


# ---- one function for each format --------------------------------------------------


def _read_text_matrices(connectome_path: Path) -> list[RawMatrix]:
    """Read a matrix from text, with or without names in its first row and column."""
    all_text_lines = [
        text_line.strip(" ") for _, text_line in read_numbered_lines(connectome_path)
    ]
    text_lines = [text_line for text_line in all_text_lines if text_line[0] != "#"]
    if not text_lines:
        return []
    delimiter = find_line_delimiter(text_lines[0])
    _refuse_decimal_commas(connectome_path, text_lines, delimiter)
    if delimiter and all(text_line.endswith(delimiter) for text_line in text_lines):
        text_lines = [text_line[:-1] for text_line in text_lines]
    sample_cell_rows = [
        split_line_cells(text_line, delimiter)
        for text_line in text_lines[:_N_SAMPLE_LINES]
    ]
    _refuse_other_layouts(connectome_path, sample_cell_rows)
    comment_texts = [
        text_line.lstrip("# ") for text_line in all_text_lines if text_line[0] == "#"
    ]
    row_names, column_names, text_lines = _split_names_and_lines(
        comment_texts, text_lines, delimiter
    )
    weight_matrix = _parse_weight_matrix(
        text_lines, delimiter, has_row_names=bool(row_names)
    )
    _check_rows_match_columns(connectome_path, row_names, column_names)
    for axis_word, row_or_column_names in (
        ("row", row_names),
        ("column", column_names),
    ):
        if row_or_column_names and len(row_or_column_names) != len(weight_matrix):
            raise FileFormatError(
                f"the file has {len(row_or_column_names)} names for "
                f"{len(weight_matrix)} {axis_word}s; expected one name for each "
                f"{axis_word}. Correct the names.",
                path=connectome_path,
                kind="names per axis",
            )
    comment_text = "\n".join(comment_texts)
    usable_names_by_axis = [
        tuple(row_or_column_names)
        for row_or_column_names in (row_names, column_names)
        if row_or_column_names
    ]
    # of counts and names, only the names say which regions the rows are
    usable_names_by_axis = [
        row_or_column_names
        for row_or_column_names in usable_names_by_axis
        if not are_default_row_names(row_or_column_names)
    ] or usable_names_by_axis
    if not usable_names_by_axis:
        return [RawMatrix(weight_matrix, comment_text=comment_text)]
    return [
        RawMatrix(
            weight_matrix,
            usable_names_by_axis[0],
            usable_names_by_axis[-1],
            comment_text=comment_text,
        )
    ]


def _refuse_decimal_commas(
    connectome_path: Path, text_lines: Sequence[str], delimiter: str | None
) -> None:
    """Raise if the numbers of the last line have decimal commas; name the first one."""
    if delimiter != "," or '"' not in text_lines[-1]:
        if not _DECIMAL_COMMA_CELL.search(text_lines[-1]):
            return
        # A comma is then no delimiter, even in a line that has no other.
        delimiter = delimiter if delimiter != "," else None
    elif not any(map(has_decimal_comma, split_line_cells(text_lines[-1], delimiter))):
        return
    cell_text = next(
        (
            f"{cell_text!r} in row {row_number}, column {column_number}"
            for row_number, text_line in enumerate(text_lines, start=1)
            for column_number, cell_text in enumerate(
                split_line_cells(text_line, delimiter), start=1
            )
            if has_decimal_comma(cell_text)
        ),
        "",
    )
    raise FileFormatError(
        "the numbers have decimal commas",
        path=connectome_path,
        kind="decimal commas",
        got=cell_text,
        advice="Write decimal points, and remove separators of thousands",
    )


def _check_rows_match_columns(
    connectome_path: Path, row_names: Sequence[str], column_names: Sequence[str]
) -> None:
    """Raise if names of rows are not those of columns, as where a row was deleted."""
    n_named_rows, n_named_columns = len(row_names), len(column_names)
    if not (n_named_rows and n_named_columns) or n_named_rows == n_named_columns:
        return
    missing_row_names = [
        region_name for region_name in column_names if region_name not in row_names
    ]
    missing_column_names = [
        region_name for region_name in row_names if region_name not in column_names
    ]
    is_subset = not (missing_row_names and missing_column_names)
    if not is_subset or len(missing_row_names + missing_column_names) != abs(
        n_named_rows - n_named_columns
    ):
        return
    axis_word = "row" if missing_row_names else "column"
    missing_text = join_with_commas(missing_row_names or missing_column_names, 5)
    raise FileFormatError(
        f"the matrix has {n_named_rows} rows and {n_named_columns} columns; "
        f"the {axis_word} of {missing_text} is missing. Add the {axis_word}, or "
        "leave the scan out.",
        path=connectome_path,
        kind="names per axis",
        values={"is_matrix": True},
    )


def _parse_weight_matrix(
    text_lines: Sequence[str], delimiter: str | None, has_row_names: bool
) -> np.ndarray:
    """Return the numbers in lines; the first column is left out where it has names."""
    if not text_lines:
        return np.empty((0, 0))
    # names may be quoted and contain delimiters; those of rows are read already
    converter_by_column: dict[int | str, Callable[[str], float]] | None = None
    if has_row_names:
        converter_by_column = {0: lambda _: 0.0}
    try:
        weight_matrix = np.loadtxt(
            text_lines,
            delimiter=delimiter,
            quotechar='"',
            comments=None,
            converters=converter_by_column,
            ndmin=2,
        )
    except ValueError as error:
        # NumPy's message advises on its own arguments.
        fault_text = _unreadable_cell_text(text_lines, delimiter, has_row_names)
        raise ValueError(fault_text) from error
    return weight_matrix[:, 1:] if has_row_names else weight_matrix


def _unreadable_cell_text(
    text_lines: Sequence[str], delimiter: str | None, has_row_names: bool
) -> str:
    """Return the line or cell that prevents reading lines as a table of numbers."""
    n_cells = len(split_line_cells(text_lines[0], delimiter))
    for row_number, text_line in enumerate(text_lines, start=1):
        row_cells = split_line_cells(text_line, delimiter)
        if len(row_cells) != n_cells:
            return (
                f"row {row_number} has {len(row_cells)} cells, and row 1 has {n_cells}"
            )
        for column_number, cell_text in enumerate(row_cells, start=1):
            is_row_name = has_row_names and column_number == 1
            if not (is_row_name or _is_number(cell_text)):
                return (
                    f"the cell {cell_text!r} in row {row_number}, column "
                    f"{column_number} is not a number"
                )
    return "the cells of the file are not numbers"


def _is_number(cell_text: str) -> bool:
    """Return whether Python reads a cell as a number."""
    try:
        float(cell_text)
    except ValueError:
        return False
    return True


def _refuse_other_layouts(
    connectome_path: Path, cell_rows: Sequence[Sequence[str]]
) -> None:
    """Raise where rows are a list of connections, or a connectogram of DSI Studio."""
    if [
        cell_text.lower() for row_cells in cell_rows[:2] for cell_text in row_cells[:2]
    ] == ["data"] * 4:
        raise FileFormatError(
            "the file is a connectogram of DSI Studio, with two rows and two "
            "columns of names; expected a square matrix. Give the .connectivity.mat "
            "file of the same run.",
            path=connectome_path,
            kind="connectogram",
        )
    body_cell_rows = cell_rows[1:] or cell_rows  # the first row may name the columns
    distinct_word_counts = {
        _count_leading_words(row_cells) for row_cells in body_cell_rows
    }
    distinct_row_lengths = {len(row_cells) for row_cells in body_cell_rows}
    is_longer_than_pair = len(cell_rows) > 1 or len(cell_rows[0]) > 2
    if (
        distinct_word_counts == {2}
        and len(distinct_row_lengths) == 1
        and is_longer_than_pair
    ):
        raise FileFormatError(
            "the file is a list of connections; expected a square matrix. Each line of "
            "the list contains two regions and "
            f"{count_text(distinct_row_lengths.pop() - 2, 'number')}. Instead, write "
            "one row and one column for each region, with the names of the regions. "
            "Write 0 for each missing connection.",
            path=connectome_path,
            kind="list of connections",
        )


def _count_leading_words(row_cells: Sequence[str]) -> int:
    """Return the number of words at the start, or -1 if other cells are no numbers."""
    if _are_weights(row_cells):  # Most rows: one search is faster than one a cell.
        return 0
    word_flags = [_NUMBERS.fullmatch(cell_text) is None for cell_text in row_cells]
    n_words = word_flags.index(False) if False in word_flags else len(row_cells)
    return -1 if any(word_flags[n_words:]) else n_words


def _split_names_and_lines(
    comment_texts: Sequence[str], text_lines: list[str], delimiter: str | None
) -> tuple[list[str], list[str], list[str]]:
    """Return the names of rows and of columns, and the lines without the header."""
    row_names = list[str]()
    column_names = list[str]()
    first_line_cells = split_line_cells(text_lines[0], delimiter)
    # the header has a corner, or begins with a name where there are as many columns
    is_square_table = len(text_lines) == len(first_line_cells)
    starts_with_name = is_square_table and not _are_weights(first_line_cells[:1])
    has_corner_cell = first_line_cells[0].lower() in _CORNER_CELLS or starts_with_name
    n_columns = len(first_line_cells) - has_corner_cell
    if has_corner_cell or not _are_weights(first_line_cells[1:]):
        column_names, text_lines = first_line_cells, text_lines[1:]
    else:
        column_names = _find_column_names_in_comments(
            comment_texts, len(first_line_cells)
        )
    first_line_cells = (
        split_line_cells(text_lines[0], delimiter) if text_lines else [""]
    )
    # below a header with a corner, or with a cell less, the first column has names
    if len(first_line_cells) == n_columns + 1 or not _are_weights(first_line_cells[:1]):
        row_names = [
            split_line_cells(text_line, delimiter)[0] for text_line in text_lines
        ]
        # Without a known word, a corner can only be told if no line is missing.
        has_known_corner = bool(column_names) and (
            column_names[0].lower() in _CORNER_CELLS
        )
        if has_known_corner or len(column_names) == len(text_lines) + 1:
            column_names = column_names[1:]
    return row_names, column_names, text_lines


def _are_weights(cell_texts: Sequence[str]) -> bool:
    """Return whether all cells are numbers."""
    return _NUMBERS.fullmatch(" ".join(cell_texts)) is not None


def _find_column_names_in_comments(
    comment_texts: Sequence[str], n_columns: int
) -> list[str]:
    """Return the names of columns in a comment, as of NumPy's `savetxt(header=...)`."""
    for comment_text in comment_texts:
        comment_cells = split_line_cells(
            comment_text, find_line_delimiter(comment_text)
        ) or [""]
        if (
            comment_cells[0].lower() in _CORNER_CELLS
            and len(comment_cells) == n_columns + 1
        ):
            comment_cells = comment_cells[1:]
        has_names = not _are_weights(comment_cells) or all(
            map(str.isdecimal, comment_cells)
        )
        if len(comment_cells) == n_columns and has_names:
            return comment_cells
    return []


def _read_npy_matrices(connectome_path: Path) -> list[RawMatrix]:
    """Read an array of NumPy, of one matrix or of many."""
    # mapped, since a matrix of label numbers is large and few of its rows are read
    number_array = np.load(connectome_path, mmap_mode="r", allow_pickle=False)
    return (
        _split_into_raw_matrices(number_array, {})
        if _is_matrix_stack(number_array)
        else [RawMatrix(number_array)]
    )


def _read_npz_matrices(connectome_path: Path) -> list[RawMatrix]:
    """Read the matrices of an archive of NumPy."""
    with (
        connectome_path.open("rb") as npz_file,
        np.load(npz_file, allow_pickle=False) as array_archive,
    ):
        return _find_matrices(connectome_path, dict(array_archive))


def _read_mat_matrices(connectome_path: Path) -> list[RawMatrix]:
    """Read a MATLAB file of any version; 7.3 is HDF5."""
    from scipy.io import loadmat

    with connectome_path.open("rb") as mat_file:
        if b"MATLAB 7.3" in mat_file.read(128):
            return _read_hdf_matrices(connectome_path)
    mat_variables = loadmat(connectome_path, squeeze_me=True)
    array_by_key = {k: np.asarray(v) for k, v in mat_variables.items() if k[:2] != "__"}
    return _find_matrices(connectome_path, array_by_key)


def _read_hdf_matrices(connectome_path: Path) -> list[RawMatrix]:
    """Read an HDF5 file; data sets may lie in groups, names in MATLAB's cells."""
    import h5py

    array_by_key: dict[str, np.ndarray] = {}

    def read_hdf_item(item_key: str, hdf_item: h5py.Group | h5py.Dataset) -> None:
        if not isinstance(hdf_item, h5py.Dataset) or item_key.startswith("#refs#"):
            return
        if h5py.check_string_dtype(hdf_item.dtype) is not None:
            array_by_key[item_key] = np.array(hdf_item.asstr()[()], dtype=str)
        elif h5py.check_ref_dtype(hdf_item.dtype) is not None:
            code_arrays = [
                np.ravel(hdf_file[cell_reference])
                for cell_reference in np.ravel(hdf_item)
            ]
            array_by_key[item_key] = np.array(
                ["".join(map(chr, character_codes)) for character_codes in code_arrays]
            )
        elif hdf_item.attrs.get("MATLAB_class") == b"char" and hdf_item.ndim == 2:
            array_by_key[item_key] = np.array(
                ["".join(map(chr, character_row)) for character_row in hdf_item[()].T]
            )
        elif "MATLAB_class" in hdf_item.attrs and hdf_item.size:
            # MATLAB stores arrays with their axes in reverse order.
            array_by_key[item_key] = hdf_item[()].T
        elif hdf_item.size:
            array_by_key[item_key] = hdf_item[()]

    with h5py.File(connectome_path, "r") as hdf_file:
        hdf_file.visititems(read_hdf_item)
    return _find_matrices(connectome_path, array_by_key)


def _read_gii_matrices(connectome_path: Path) -> list[RawMatrix]:
    """Read the one matrix of a GIFTI file, as micapipe writes `.shape.gii`."""
    from nibabel.gifti import GiftiImage

    (gifti_array,) = GiftiImage.from_filename(connectome_path).darrays
    return [RawMatrix(np.asarray(gifti_array.data, dtype=np.float64))]


class MatrixFormat(NamedTuple):
    """Reader of the files with one suffix.

    Attributes
    ----------
    read_matrices : callable
        `(path) -> matrices`; those of many scans have
        :attr:`RawMatrix.name_list_by_key`.
    may_hold_many_scans : bool
        Whether a file may hold the connectomes of many scans.
    """

    read_matrices: Callable[[Path], list[RawMatrix]]
    may_hold_many_scans: bool = False


FORMATS: dict[str, MatrixFormat] = {
    **dict.fromkeys((*_TEXT_SUFFIXES, ".gz"), MatrixFormat(_read_text_matrices)),
    **dict.fromkeys((".h5", ".hdf5"), MatrixFormat(_read_hdf_matrices, True)),
    ".gii": MatrixFormat(_read_gii_matrices),
    ".mat": MatrixFormat(_read_mat_matrices, True),
    ".npy": MatrixFormat(_read_npy_matrices, True),
    ".npz": MatrixFormat(_read_npz_matrices, True),
}
"""Formats of connectomes by suffix, in lower case."""


def read_raw_matrices(connectome_path: Path) -> list[RawMatrix]:
    """Return the matrices of a file of one of the `FORMATS`; raise if it has none."""
    raw_matrices = list[RawMatrix]()
    if connectome_path.stat().st_size:
        matrix_format = FORMATS[connectome_path.suffix.lower()]
        raw_matrices = matrix_format.read_matrices(connectome_path)
    if not raw_matrices:
        raise FileFormatError(
            "the file is empty; expected a matrix of numbers.",
            path=connectome_path,
            kind="empty file",
            advice=f"Replace the file, or {format_leave_out_advice()}",
        )
    return raw_matrices


def find_unreadable_matrix_error(
    connectome_path: Path, *, is_named_connectome: bool
) -> FileFormatError | None:
    """Return the error of a text file that is a matrix by its name or form, or None.

    The form is that of a matrix if the rows and columns have the same names, or if most
    cells are numbers in about as many rows as columns.
    """
    suffix = connectome_path.suffix.lower()
    if suffix not in _TEXT_SUFFIXES or not connectome_path.is_file():
        return None
    try:
        with convert_reading_errors(connectome_path, f"a {suffix} file"):
            read_raw_matrices(connectome_path)
    except FileFormatError as error:
        if is_named_connectome or error.values.get("is_matrix"):
            return error
        with suppress(BrainlsapError):
            if _has_matrix_form(connectome_path, error.kind):
                return error
    except BrainlsapError:
        pass
    return None


def _has_matrix_form(connectome_path: Path, error_kind: str) -> bool:
    """Return whether most cells of a text file are numbers, in a square."""
    text_lines = [
        text_line
        for _, text_line in read_numbered_lines(connectome_path)
        if text_line[0] != "#"
    ]
    delimiter = find_line_delimiter(text_lines[-1]) if text_lines else None
    has_quoted_cells = bool(text_lines) and '"' in text_lines[-1]
    if error_kind == "decimal commas" and delimiter == "," and not has_quoted_cells:
        delimiter = None
    cell_rows = [split_line_cells(text_line, delimiter) for text_line in text_lines]
    inner_cells = [
        cell_text for row_cells in cell_rows[1:] for cell_text in row_cells[1:]
    ]
    n_numbers = sum(
        _is_number(cell_text) or has_decimal_comma(cell_text)
        for cell_text in inner_cells
    )
    n_rows, n_columns = len(cell_rows), max(map(len, cell_rows), default=0)
    return (
        min(n_rows, n_columns) > _MIN_MATRIX_ROWS
        and abs(n_rows - n_columns) <= _MAX_EXTRA_LINES
        and n_numbers > _MIN_SHARE_OF_NUMBERS * len(inner_cells)
    )


def is_matrix_file(connectome_path: Path) -> bool:
    """Return whether a file holds a connectome of any atlas, or many."""
    if connectome_path.is_file() and connectome_path.suffix.lower() in FORMATS:
        with (
            suppress(BrainlsapError),
            convert_reading_errors(connectome_path, "a matrix"),
        ):
            array_shape = read_raw_matrices(connectome_path)[0].weights.shape
            return (
                len(array_shape) == 2
                and _MIN_MATRIX_ROWS < array_shape[0] == array_shape[1]
            )
    return False


# ---- which arrays of a file are matrices, and which name their rows -----------------


class _RowNameList(NamedTuple):
    """A list of a file that may name rows.

    `key_prefix` is the start of its key, by which it belongs to the matrices whose keys
    start alike; "" for all matrices.
    """

    list_key: str
    key_prefix: str
    names: tuple[str, ...]


def _find_matrices(
    connectome_path: Path, array_by_key: dict[str, np.ndarray]
) -> list[RawMatrix]:
    """Return the square matrices of a file, each with its names and its measure.

    Known by their keys are QSIRecon and QSIPrep (`atlas_<A>_<measure>_connectivity`,
    with or without `atlas_`, beside `<A>_region_labels`) and DSI Studio
    (`connectivity` or `<measure> r2r`, beside `name`). Any other file may hold square
    matrices and one list of as many different names.

    Raises
    ------
    FileFormatError
        If there is no matrix, or several lists could name one, or a list whose key
        says that it names rows has the length of no matrix.
    """
    square_array_by_key = {
        array_key: array_value
        for array_key, array_value in array_by_key.items()
        if array_value.ndim == 2
        and 2 <= array_value.shape[0] == array_value.shape[1]
        and array_value.dtype.kind in "uifb"
    }
    stack_arrays = [
        array_value
        for array_value in array_by_key.values()
        if _is_matrix_stack(array_value)
    ]
    if len(stack_arrays) == 1 and not square_array_by_key:
        return _split_into_raw_matrices(stack_arrays[0], array_by_key)
    if not square_array_by_key:
        shapes_text = join_with_commas(
            (
                f"{array_key} {array_value.shape}"
                for array_key, array_value in array_by_key.items()
            ),
            8,
        )
        raise FileFormatError(
            "expected a square matrix of numbers, but the file contains "
            f"{shapes_text or 'nothing'}. Give a file with one row and one column for "
            "each region.",
            path=connectome_path,
            kind="no square matrix",
        )
    row_name_lists = _find_row_name_lists(array_by_key)
    matrix_sizes = {len(square_array) for square_array in square_array_by_key.values()}
    raw_matrices = list[RawMatrix]()
    for array_key, square_array in square_array_by_key.items():
        names_by_list_key = {
            row_name_list.list_key: row_name_list.names
            for row_name_list in row_name_lists
            if array_key.startswith(row_name_list.key_prefix)
            or not any(
                k.startswith(row_name_list.key_prefix) for k in square_array_by_key
            )
        }
        row_names = _choose_row_name_list(
            connectome_path,
            array_key,
            len(square_array),
            names_by_list_key,
            matrix_sizes,
        )
        list_prefixes = [
            row_name_list.key_prefix
            for row_name_list in row_name_lists
            if array_key.startswith(row_name_list.key_prefix)
        ]
        measure_name = array_key.removeprefix(max(list_prefixes, key=len, default=""))
        measure_name = measure_name.removesuffix("_connectivity").removesuffix(" r2r")
        omits_absent_regions = array_key.endswith(("connectivity", " r2r"))
        raw_matrices.append(
            RawMatrix(
                square_array, row_names, row_names, measure_name, omits_absent_regions
            )
        )
    return raw_matrices


def _find_row_name_lists(array_by_key: Mapping[str, np.ndarray]) -> list[_RowNameList]:
    """Return the arrays of a file that are lists of names, or of label numbers."""
    row_name_lists = list[_RowNameList]()
    for array_key, array_value in array_by_key.items():
        matching_endings = (
            key_ending
            for key_ending in _NUMBER_KEYS
            if array_key.lower().endswith(key_ending)
        )
        known_ending = next(matching_endings, "")
        names_in_list = _read_names_in_array(
            array_value, accepts_numbers=known_ending != ""
        )
        if names_in_list:
            key_prefix = array_key[: -len(known_ending)] if known_ending else ""
            row_name_lists.append(_RowNameList(array_key, key_prefix, names_in_list))
    return row_name_lists


def _choose_row_name_list(
    connectome_path: Path,
    matrix_key: str,
    n_matrix_rows: int,
    names_by_list_key: Mapping[str, tuple[str, ...]],
    matrix_sizes: Collection[int],
) -> tuple[str, ...] | None:
    """Return the one list of as many different names as a matrix has rows, if any.

    Otherwise return a list in which few names are repeated: reading then refuses the
    repeated region. Raises where there are several lists, or where a list of names has
    the length of no matrix.
    """
    candidate_name_lists = {
        names_in_list
        for names_in_list in names_by_list_key.values()
        if len(names_in_list) == n_matrix_rows == len(set(names_in_list))
    } or {
        names_in_list
        for names_in_list in names_by_list_key.values()
        if len(names_in_list) == n_matrix_rows and have_few_repeats(names_in_list)
    }
    candidate_name_lists = {
        names_in_list
        for names_in_list in candidate_name_lists
        if not are_unsigned_integers(names_in_list)
    } or candidate_name_lists
    has_list_of_wrong_length = any(
        list_key.lower().endswith(_NAME_KEYS)
        and len(names_in_list) not in (1, *matrix_sizes)
        for list_key, names_in_list in names_by_list_key.items()
        if not are_unsigned_integers(names_in_list)
    )
    if len(candidate_name_lists) > 1 or (
        has_list_of_wrong_length and not candidate_name_lists
    ):
        lengths_text = ", ".join(
            f"{k!r} ({len(names_in_list)})"
            for k, names_in_list in names_by_list_key.items()
        )
        raise FileFormatError(
            f"{matrix_key!r} has {n_matrix_rows} rows, but the lists of names in the "
            f"file have these lengths: {lengths_text}. Keep one list of "
            f"{n_matrix_rows} region names, under the key {_NAME_KEYS[0]!r}.",
            path=connectome_path,
            kind="names per row",
        )
    return next(iter(candidate_name_lists), None)


def have_few_repeats(names_in_list: Sequence[str]) -> bool:
    """Return whether a list may name rows one by one, though some names are repeated.

    Names without a hemisphere stand twice. Networks and lobes stand more often.
    """
    return 2 * len({*names_in_list}) >= len(names_in_list) > 0


def _is_matrix_stack(array_value: np.ndarray) -> bool:
    """Return whether an array holds square matrices, of scans first or last."""
    array_shape = array_value.shape
    is_square = len(array_shape) == 3 and array_shape[1] in (
        array_shape[0],
        array_shape[2],
    )
    return is_square and array_value.dtype.kind in "uifb"


def _split_into_raw_matrices(
    stacked_matrices: np.ndarray, array_by_key: dict[str, np.ndarray]
) -> list[RawMatrix]:
    """Return the matrices of an array of three axes, with all lists beside it."""
    first_axis_size, n_matrix_rows, last_axis_size = stacked_matrices.shape
    is_scan_axis_last = n_matrix_rows != last_axis_size  # as of MATLAB
    if first_axis_size == n_matrix_rows == last_axis_size:  # as many scans as regions
        is_scan_axis_last = _are_connectomes(np.moveaxis(stacked_matrices, 2, 0))
        if is_scan_axis_last == _are_connectomes(stacked_matrices):
            raise FileFormatError(
                f"the array has the shape {first_axis_size} x {n_matrix_rows} x "
                f"{last_axis_size}, so the axis of the scans is unclear. Write one "
                "file for each scan."
            )
    if is_scan_axis_last:
        stacked_matrices = np.moveaxis(stacked_matrices, 2, 0)
    name_list_by_key = dict[str, NameList]()
    for array_key, array_value in array_by_key.items():
        names_in_list = _read_names_in_array(array_value, accepts_numbers=True)
        if names_in_list:
            name_list_by_key[array_key] = NameList(
                names_in_list, are_texts=array_value.dtype.kind in "USO"
            )
    return [
        RawMatrix(matrix_values, name_list_by_key=name_list_by_key)
        for matrix_values in stacked_matrices
    ]


def _are_connectomes(stacked_matrices: np.ndarray) -> bool:
    """Return whether all matrices are symmetric, or have one triangle only."""
    if np.array_equal(stacked_matrices, stacked_matrices.swapaxes(1, 2)):
        return True
    return (
        not np.triu(stacked_matrices, 1).any()
        or not np.tril(stacked_matrices, -1).any()
    )


def _read_names_in_array(
    array_value: np.ndarray, accepts_numbers: bool
) -> tuple[str, ...]:
    """Return the names in an array: text, cells of text, or bytes of lines.

    DSI Studio writes bytes. With `accepts_numbers`, integers in a list are names, too.
    """
    is_one_dimensional = array_value.size == max(array_value.shape, default=0)
    if array_value.dtype == np.uint8 and 10 in array_value and is_one_dimensional:
        joined_text = array_value.tobytes().decode("utf-8", "replace")
        return tuple(joined_text.strip("\n\0").split("\n"))
    if array_value.dtype.kind in "USO":
        cell_texts = list(map(as_text, array_value.ravel().tolist()))
        return tuple(cell_texts[0].split("\n") if len(cell_texts) == 1 else cell_texts)
    if (
        not accepts_numbers
        or not is_one_dimensional
        or array_value.dtype.kind not in "uif"
    ):
        return ()
    number_texts = [
        f"{number_in_array:.15g}" for number_in_array in array_value.ravel()
    ]
    return tuple(number_texts) if are_unsigned_integers(number_texts) else ()
