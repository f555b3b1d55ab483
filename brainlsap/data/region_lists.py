"""Read lists of region names: label files, lookup tables, and lists beside a matrix.

A list gives a name, and perhaps a number and a place, for each region. This module
knows no atlas: whether names are regions of one is decided where the list is used.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from brainlsap.atlas.region_names import HEMISPHERE_WORDS, are_counts
from brainlsap.data.table_rows import sniff_delimiter, split_cells
from brainlsap.data.tables import (
    INDEX_COLUMNS,
    NAME_COLUMNS,
    SIDE_COLUMNS,
    find_head,
    find_region_column,
    read_lines,
    read_table,
)
from brainlsap.exceptions import FileFormatError, reading
from brainlsap.text import option_text

# pandas writes the integers of a column with missing values as "3.0".
_INTEGER_AS_FLOAT = re.compile(r"^(\d+)\.0+$")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
# Coordinates in brackets behind a name: `Insula (-38, 4, 0)`.
_BRACKETED_COORDINATES = re.compile(
    r"\s*[(\[]\s*" + r"[,;\s]+".join([r"([-+]?\d+\.?\d*)"] * 3) + r"\s*[)\]]\s*$"
)
# A number and a sign before the name: `1: Insula`, `1) Insula`, `1. Insula`.
_NUMBER_WITH_SIGN = re.compile(r"\s*(\d+)\s*(?:[:=)]|\.(?=\s))\s*(?=\S)")
# Number, red, green, blue and alpha in a label list of Connectome Workbench.
_WORKBENCH_NUMBERS = re.compile(r"\s*\d+(\s+\d{1,3}){4}\s*")
_FILE_ENDING = re.compile(r"(\.dense)?\.[^.]+(\.gz)?$", re.IGNORECASE)
# Maximum number of folders between a matrix and the root of its data set.
_MAX_LEVELS = 6
# Lists of the matrices in their folder. They must have a name for each row.
_STRICT_LISTS = (
    *("labels.txt", "labels.csv", "labels.tsv", "labels_list.txt", "label.json"),
    *("centres.txt", "centers.txt"),
)
# Lists that count only if they have as many names as the matrix has rows.
_TOLERANT_LISTS = tuple(
    f"{stem}.{suffix}"
    for stem in (
        *("label", "region_labels", "region_names", "regions", "roi_labels", "lookup"),
        *("roi_names", "rois", "node_labels", "node_names", "nodes", "lut"),
    )
    for suffix in ("txt", "csv", "tsv")
)
# Keys by which a BIDS sidecar names the nodes of a matrix.
_BIDS_KEYS = ("NodeFiles", "NodeFile", "NodeIndices")
BIDS_SIDECAR = "the .json beside the matrix"


# ---- one list -----------------------------------------------------------------------


def read_names(path: str | Path) -> tuple[str, ...]:
    """Read the names of a matrix's rows; numbers that count them decide their order."""
    return _in_counted_order(read_labels(path).table, path)


class RegionList(NamedTuple):
    """Regions that a list or a table names.

    Parameters
    ----------
    table : DataFrame
        A row for each region, with columns `index` ("" where there is none) and
        `name`. A table with a header keeps its other columns, heads in lower case. A
        list keeps coordinates as `x`, `y`, `z`.
    has_header : bool
        Whether a header says what the columns are.
    """

    table: pd.DataFrame
    has_header: bool


def read_labels(path: str | Path, present: Iterable[object] = ()) -> RegionList:
    """Read a list or a table of region names.

    Parameters
    ----------
    path : str or Path
        A table with a header (`NAME_COLUMNS`), or a list without one: on each line a
        name, with numbers before or behind it (an integer, colours, coordinates).
    present : iterable, optional
        Labels of an image. Of several columns of integers, the one with all of these
        labels is the index; otherwise the first.

    Returns
    -------
    RegionList

    Raises
    ------
    FileFormatError
        Where the file is empty, is XML, or does not say which cells are names.
    """
    lines = read_lines(path)
    if not lines:
        raise FileFormatError(
            "the file is empty; expected names of regions.", path=path
        )
    if lines[0].lstrip().startswith("<"):
        raise FileFormatError(
            "is XML; expected names of regions, a table or a list. Write a "
            "number and a name on each line (1 more than the index of FSL's atlases).",
            path=path,
        )
    workbench_labels = _read_workbench_list(lines)
    if workbench_labels is not None:
        return RegionList(workbench_labels, has_header=False)
    delimiter, rows = _split_list_lines(lines)
    starts_with_numbers = any(map(_NUMBER.fullmatch, rows[0]))
    has_name_column = find_region_column(rows[0], NAME_COLUMNS) is not None
    has_header = has_name_column and not starts_with_numbers
    if not has_header:
        table = _read_list_rows(path, rows, delimiter is not None)
    else:
        table = read_table(path).fillna("").rename(columns=str.lower)
        table = table.replace(_INTEGER_AS_FLOAT, r"\1", regex=True)
    text_columns = [head for head in table if not are_numbers(table[head])]
    name_column = _choose_name_column(path, table, text_columns)
    index_column = _choose_number_column(
        table, [*text_columns, name_column], present, has_header
    )
    names = table.pop(name_column)
    numbers = "" if index_column is None else table.pop(index_column)
    table = table.assign(index=numbers, name=names)
    if not has_header:
        table = table[["index", "name", *(axis for axis in "xyz" if axis in table)]]
    return RegionList(table, has_header)


def are_numbers(cells: Iterable[str | None]) -> bool:
    """Return whether all cells that are not empty are integers without a sign."""
    return all(map(str.isdecimal, filter(None, cells)))


def _split_list_lines(lines: Sequence[str]) -> tuple[str | None, list[list[str]]]:
    """Return the delimiter and the cells of each line that are not empty."""
    lines = [_BRACKETED_COORDINATES.sub(r" \1 \2 \3", line) for line in lines]
    if all(map(_NUMBER_WITH_SIGN.match, lines)):
        lines = [_NUMBER_WITH_SIGN.sub(r"\1 ", line, count=1) for line in lines]
    delimiter = sniff_delimiter(lines[0])
    rows = list[list[str]]()
    for line in lines:
        cells = filter(None, split_cells(line, delimiter))
        rows.append([_INTEGER_AS_FLOAT.sub(r"\1", cell) for cell in cells] or [""])
    return delimiter, rows


def _choose_name_column(
    path: str | Path, table: pd.DataFrame, text_columns: Sequence[str]
) -> str:
    """Return the column of names: if possible a text that differs in every row.

    Raises where it holds numbers although other columns hold words.
    """
    unique_columns = [head for head in text_columns if table[head].is_unique]
    candidates = (
        find_region_column(heads, NAME_COLUMNS)
        for heads in (unique_columns, text_columns, table)
    )
    name_column = next(filter(None, candidates))
    word_columns = [
        head
        for head in text_columns
        if find_head([head], SIDE_COLUMNS) is None
        and pd.to_numeric(table[head], errors="coerce").isna().all()
    ]
    if word_columns and name_column not in text_columns:
        raise FileFormatError(
            f"the column {name_column!r} holds numbers and no names. Give the "
            f"column of names the head 'name' ({', '.join(word_columns)}?).",
            path=path,
        )
    return name_column


def _choose_number_column(
    table: pd.DataFrame,
    excluded_columns: Sequence[str],
    present: Iterable[object],
    has_header: bool,
) -> str | None:
    """Return the column of numbers that has all labels `present`, else a usual one."""
    number_columns = [head for head in table if head not in excluded_columns]
    labels = {str(number).removesuffix(".0") for number in present}
    candidates = [h for h in number_columns if labels.issubset(table[h])]
    candidates = candidates or number_columns
    # without a header, or among columns with these labels, any head will do
    accepted_heads = [*INDEX_COLUMNS, *NAME_COLUMNS]
    if labels or not has_header:
        accepted_heads += candidates
    if not has_header:
        candidates = [head for head in candidates if head not in "xyz"]
    return find_region_column(candidates, accepted_heads)


def _in_counted_order(table: pd.DataFrame, path: str | Path) -> tuple[str, ...]:
    """Return names in the order of numbers that count them, else in that of lines.

    Raises where other numbers, as of a lookup table, do not rise from line to line.
    """
    numbers = sorted(table["index"], key=lambda number: (len(number), number))
    labels = pd.to_numeric(table["index"], errors="coerce").dropna()
    if are_counts(numbers):
        table = table.set_index("index").loc[numbers]
    elif labels.is_unique and not labels.is_monotonic_increasing:
        raise FileFormatError(
            "its numbers do not rise from line to line, so the order of the "
            "rows is unknown. Sort the lines in the order of the rows, or leave the "
            "numbers out.",
            path=path,
        )
    return tuple(table["name"])


# ---- lines without a header ---------------------------------------------------------


def _read_list_rows(
    path: str | Path, rows: list[list[str]], has_delimiter: bool
) -> pd.DataFrame:
    """Return columns of integers ("0" ...), `name`, and x, y, z of lines.

    Cells that are numbers in every line, before and behind the name, become columns.
    Other numbers belong to the name (`Brodmann area 44 L`).
    """
    has_header = _has_unknown_header(rows, has_delimiter)
    n_leading = [*map(_count_numbers, rows)]
    n_before = min(n_leading)
    n_unnumbered = n_leading.count(0)
    if 0 < n_unnumbered < len(rows) and not has_header:
        numbered_line = " ".join(rows[n_leading.index(max(n_leading))])
        raise FileFormatError(
            f"{len(rows) - n_unnumbered} of {len(rows)} lines begin with a "
            f"number ({numbered_line!r}), the others do not. Give every line its "
            "number, or write name into the first line where such numbers are parts "
            "of names.",
            path=path,
        )
    n_behind = min(_count_numbers(row[::-1]) for row in rows)
    if n_before + n_behind >= min(map(len, rows)):  # names are numbers, too
        n_behind = 0
    name_cells = [row[n_before : len(row) - n_behind] for row in rows]
    # a short name and a long one, or a name and a side, need no header
    if has_header or (has_delimiter and max(map(len, name_cells)) > 2):
        raise FileFormatError(
            f"no column of names among {', '.join(map(repr, rows[0]))}; "
            f"understood are {', '.join(NAME_COLUMNS)} (or roi_name ...), and for "
            f"their numbers {', '.join(filter(None, INDEX_COLUMNS))}. Write one of "
            "these heads into the first row.",
            path=path,
        )
    columns_before = [[row[column] for row in rows] for column in range(n_before)]
    columns_behind = [
        [row[column - n_behind] for row in rows] for column in range(n_behind)
    ]
    coordinates = _take_coordinates(path, columns_before, columns_behind)
    names = [" ".join(cells) for cells in name_cells]
    if not coordinates:
        if _is_part_of_name(columns_behind, 0, name_cells, has_delimiter):
            suffixes = columns_behind.pop(0)
            names = [f"{name} {x}" for name, x in zip(names, suffixes, strict=True)]
        if _is_part_of_name(columns_before, -1, name_cells, has_delimiter):
            prefixes = columns_before.pop(-1)
            names = [f"{x} {name}" for name, x in zip(names, prefixes, strict=True)]
    has_numbers_behind = bool(columns_behind) and not coordinates
    if has_delimiter or has_numbers_behind:
        names = _choose_long_names(name_cells, has_delimiter) or names
    integer_columns = [
        column for column in (*columns_before, *columns_behind) if are_numbers(column)
    ]
    table = pd.DataFrame({str(i): cells for i, cells in enumerate(integer_columns)})
    return table.assign(name=names, **coordinates)


def _has_unknown_header(rows: list[list[str]], has_delimiter: bool) -> bool:
    """Return whether the first line is a header, with none of the known heads."""
    first_row, *other_rows = rows
    is_table = has_delimiter or any(
        map(_are_any_numbers, zip(*other_rows, strict=False))
    )
    has_numbers = any(map(_NUMBER.fullmatch, first_row))
    return is_table and len(first_row) > 1 and not has_numbers


def _is_part_of_name(
    columns: list[list[str]],
    column: int,
    name_cells: list[list[str]],
    has_delimiter: bool,
) -> bool:
    """Return whether a column of numbers beside the names belongs to them.

    It does where it counts the parts of one name (`Vis 1`, `Vis 2`), or stands behind
    names of several words and is no index (`Brodmann area 44`).
    """
    if not columns:
        return False
    names = [" ".join(cells) for cells in name_cells]
    numbers = columns[column]
    can_be_index = len(set(numbers)) == len(numbers)
    if len(set(names)) == len(names):
        has_many_words = min(map(len, name_cells)) > 1 and not has_delimiter
        is_only_column_behind = column == 0 and len(columns) == 1
        return has_many_words and is_only_column_behind and not can_be_index
    # the number of two regions of one name may be an index; of more it is not
    n_alike = max(map(names.count, names))
    is_distinct = len({*zip(names, numbers, strict=True)}) == len(names)
    return is_distinct and (n_alike > 2 or not can_be_index)


def _choose_long_names(
    name_cells: list[list[str]], has_delimiter: bool
) -> list[str] | None:
    """Return the second of two names of every line, as of MRtrix and AAL.

    None where the cells are parts of one name: one of them is a side, or the second
    ones do not tell all regions apart.
    """
    has_side = any(
        cell.lower() in HEMISPHERE_WORDS for cells in name_cells for cell in cells
    )
    n_cells = {len(cells) for cells in name_cells}
    short_names = {cells[0] for cells in name_cells}
    long_names = {cells[-1] for cells in name_cells}
    is_pair = has_delimiter or (n_cells == {2} and len(short_names) == len(name_cells))
    if has_side or not is_pair or len(long_names) < len({*map(tuple, name_cells)}):
        return None
    return [cells[-1] for cells in name_cells]


def _take_coordinates(
    path: str | Path, columns_before: list[list[str]], columns_behind: list[list[str]]
) -> dict[str, list[str]]:
    """Remove three columns of coordinates from the numbers, and return them as x, y, z.

    They have signs or fractions. Columns between 0 and 1 are colours. Raises
    FileFormatError where other columns have signs or fractions.
    """
    for columns in (columns_before, columns_behind):
        has_fractions = [not are_numbers(column) for column in columns]
        values = [[*map(float, column)] for column in columns]
        is_colour = [min(x) >= 0 and max(x) <= 1 for x in values]
        pairs = zip(has_fractions, is_colour, strict=True)
        if not any(fractions and not colour for fractions, colour in pairs):
            continue
        # an index may precede x
        has_index = (
            len(columns) == 4 and columns is columns_before and not has_fractions[0]
        )
        start = 1 if has_index else 0
        if len(columns) - start != 3 or (
            columns is columns_behind and columns_before[1:]
        ):
            raise FileFormatError(
                "the numbers beside the names have no heads, and are neither "
                "labels nor colours. Name the columns in the first row: index, name, "
                "x, y, z (mm of MNI152).",
                path=path,
            )
        coordinates = dict(zip("xyz", columns[start:], strict=True))
        del columns[start:]
        return coordinates
    return {}


def _count_numbers(row: Sequence[str]) -> int:
    """Return how many cells at the start of a line are numbers.

    The last cell does not count, since it may be a name.
    """
    is_number = [_NUMBER.fullmatch(cell) is not None for cell in row[:-1]]
    return [*is_number, False].index(False)


def _are_any_numbers(cells: Iterable[str]) -> bool:
    """Return whether all cells are numbers of any kind."""
    return all(map(_NUMBER.fullmatch, cells))


def _read_workbench_list(lines: Sequence[str]) -> pd.DataFrame | None:
    """Return index and name of Connectome Workbench's label lists, None of others.

    They have a name on one line, and its number, red, green, blue, alpha on the next.
    """
    names = lines[::2]
    numbers = lines[1::2]
    is_pair = len(names) == len(numbers) and all(
        map(_WORKBENCH_NUMBERS.fullmatch, numbers)
    )
    if not is_pair or any(map(_WORKBENCH_NUMBERS.fullmatch, names)):
        return None
    index = [line.split()[0] for line in numbers]
    return pd.DataFrame({"index": index, "name": [*map(str.strip, names)]})


# ---- lists beside a matrix ----------------------------------------------------------


def find_lists_beside(path: Path, n_rows: int) -> dict[str, tuple[str, ...]]:
    """Return the names of rows by the list beside a matrix that gives them.

    BIDS sidecars come first. Then the matrix's folder and those above it are searched,
    up to the folder of its participant: lists further up may belong to an atlas or to
    another study. The nearest folder with a list decides.

    Raises
    ------
    FileFormatError
        Where a list of this matrix has another length than the matrix, or BIDS
        sidecars contradict each other.
    """
    n_levels = _count_levels(path)
    sidecar_names = _read_sidecars(path, [*path.parents[:n_levels]])
    if sidecar_names is not None:
        check_length(path, n_rows, sidecar_names, f"rows named by {BIDS_SIDECAR}")
        return {BIDS_SIDECAR: sidecar_names}
    for level in range(len(path.parents[: max(n_levels, 2)])):
        lists = _read_lists_of_level(path, n_rows, level, n_levels)
        if lists:
            return lists
    return {}


def check_length(path: Path, n_rows: int, names: Sequence[str], origin: str) -> None:
    """Raise FileFormatError where there is not one name for each row."""
    if len(names) != n_rows:
        raise FileFormatError(
            f"{n_rows} rows, but {len(names)} names ({origin}); expected one "
            "for each row. Correct the list, or give another by "
            f"{option_text('labels')}.",
            path=path,
        )


def _read_lists_of_level(
    path: Path, n_rows: int, level: int, n_levels: int
) -> dict[str, tuple[str, ...]]:
    """Return the lists of the folder so many levels above the matrix, by file name."""
    folder = path.parents[level]
    file_names = ["label.json"]  # brainlife keeps it one folder above the matrix
    if level < n_levels:
        stem = _FILE_ENDING.sub("", path.name)
        matrix_lists = [f"{stem}_labels{end}" for end in (".txt", ".csv", ".tsv")]
        file_names = [*matrix_lists, *_STRICT_LISTS, *_TOLERANT_LISTS]
    lists = dict[str, tuple[str, ...]]()
    for file_name in file_names:
        # most are absent, and a Path for each would take longer than reading the rest
        list_path = f"{folder}/{file_name}"
        if not os.access(list_path, os.F_OK) or Path(list_path) == path:
            continue
        names = _read_list_file(Path(list_path), n_rows)
        if names is None:
            continue
        if level == 0 and file_name not in _TOLERANT_LISTS:
            check_length(path, n_rows, names, f"rows named by {file_name}")
        # a list of another length belongs to other matrices
        if len(names) == n_rows:
            lists[file_name] = names
    return lists


def _count_levels(path: Path) -> int:
    """Return how many folders above a matrix belong to its data set, at least one."""
    folders = (folder for folder in path.parents if folder.name.startswith("sub-"))
    participant_folder = next(folders, None)
    if participant_folder is not None:
        return len(path.parts) - len(participant_folder.parts) + 1
    for n_levels, folder in enumerate(path.parents[:_MAX_LEVELS], start=1):
        if os.access(f"{folder}/dataset_description.json", os.F_OK):
            return n_levels
    return 1


def _read_list_file(path: Path, n_rows: int) -> tuple[str, ...] | None:
    """Return the names in a list beside a matrix, None where it is no list of names."""
    if not path.is_file():
        return None
    if path.name == "label.json":
        return _read_brainlife_labels(path, n_rows)
    if path.stem in ("centres", "centers"):
        return _read_tvb_centres(path)
    if path.name not in _TOLERANT_LISTS:
        return read_names(path)
    try:
        return read_names(path)
    except FileFormatError:  # another kind of file may have such a name
        return None


def _read_brainlife_labels(path: Path, n_rows: int) -> tuple[str, ...] | None:
    """Return the names in brainlife's `label.json`, one entry for each region.

    The first entry may stand for the diagonal: it has no name, or is a self-loop.
    """
    with reading(path, "brainlife's label.json"):
        entries = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(entries, list):
            return None
        names = [str(entry.get("name") or "") for entry in entries]
    if len(names) == n_rows + 1 and names[0].lower() in ("", "self-loop", "selfloop"):
        names = names[1:]
    return tuple(names)


def _read_tvb_centres(path: Path) -> tuple[str, ...]:
    """Return the names in The Virtual Brain's `centres.txt`: name, x, y, z."""
    rows = [split_cells(line, sniff_delimiter(line)) for line in read_lines(path)]
    if any(len(row) < 4 for row in rows):
        raise FileFormatError(
            "expected the name and three coordinates of a region on each line.",
            path=path,
        )
    return tuple(" ".join(row[:-3]) for row in rows)


# ---- sidecars of BIDS ---------------------------------------------------------------


def _read_sidecars(path: Path, folders: Sequence[Path]) -> tuple[str, ...] | None:
    """Return the names that BIDS sidecars of a matrix give, None where none do.

    By BIDS' inheritance a `.json` describes every file below its folder whose name has
    its suffix and all of its entities. Keys of nearer sidecars replace those further
    up.
    """
    node_keys = dict[str, Any]()
    nearest_sidecar = path
    for folder in folders[::-1]:
        sidecars = [*_iter_sidecars(path, folder)]
        contents = [_read_json(sidecar) for sidecar in sidecars]
        descriptions = [
            {key: content[key] for key in _BIDS_KEYS if key in content}
            for content in contents
        ]
        descriptions = [*filter(None, descriptions)]
        if any(description != descriptions[0] for description in descriptions):
            names = " and ".join(sidecar.name for sidecar in sidecars)
            raise FileFormatError(
                f"{names} in {folder} describe its nodes differently. Keep one "
                "of them in that folder.",
                path=path,
            )
        if descriptions:
            node_keys |= descriptions[0]
            nearest_sidecar = sidecars[0]
    if not node_keys:
        return None
    return _read_bids_nodes(nearest_sidecar, path, node_keys)


def _iter_sidecars(path: Path, folder: Path) -> Iterator[Path]:
    """Yield the `.json` files of a folder that describe a matrix, sorted by name."""
    *entities, suffix = path.name.partition(".")[0].split("_")
    if not folder.is_dir():
        return
    for name in sorted(entry.name for entry in os.scandir(folder)):
        if not name.endswith(".json"):
            continue
        name_parts = name.partition(".")[0].split("_")
        if name_parts[-1] == suffix and {*name_parts} <= {*entities, suffix}:
            yield folder / name


def _read_json(path: Path) -> dict[str, Any]:
    """Return the keys of a JSON file, none where it holds something else."""
    with reading(path, "a BIDS sidecar"):
        content = json.loads(path.read_text(encoding="utf-8"))
    return content if isinstance(content, dict) else {}


def _read_bids_nodes(
    sidecar: Path, path: Path, node_keys: dict[str, Any]
) -> tuple[str, ...] | None:
    """Return the names of the nodes that the keys of BIDS sidecars give, None if none.

    `sidecar` is the one nearest to the matrix at `path`.
    """
    with reading(sidecar, "a BIDS sidecar"):
        indices = [str(index) for index in node_keys.get("NodeIndices") or ()]
        files = node_keys.get("NodeFiles", node_keys.get("NodeFile")) or ()
        files = [files] if isinstance(files, str) else files
    tables = []
    for name in files:
        # paths are relative to the root of the data set
        relative_path = name.removeprefix("bids:").lstrip(":/")
        candidates = (folder / relative_path for folder in path.parents[:_MAX_LEVELS])
        tables.append(
            read_labels(next(filter(Path.is_file, candidates), relative_path)).table
        )
    if not tables:
        return tuple(indices) or None
    nodes = pd.concat(tables)[["index", "name"]].drop_duplicates()
    names_by_index = nodes.groupby("index")["name"].agg(list)
    for index in indices or filter(None, names_by_index.index):
        names = names_by_index.get(index, [])
        if len(names) != 1:
            raise FileFormatError(
                f"the node {index} is {' and '.join(names) or 'nowhere'} in "
                f"{files}; expected every index once. Give each node its own index.",
                path=sidecar,
            )
    if not indices:
        return _in_counted_order(nodes, sidecar)
    return tuple(names_by_index[index][0] for index in indices)
