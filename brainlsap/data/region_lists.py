"""Read lists of region names: label files, lookup tables, and lists beside a matrix.

A list gives a name, and perhaps a number and a place, for each region. This module
knows no atlas: whether names are regions of one is decided where the list is used.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from brainlsap.atlas.region_names import HEMISPHERE_WORDS, are_default_row_names
from brainlsap.data.table_rows import find_line_delimiter, split_line_cells
from brainlsap.data.tables import (
    INDEX_COLUMNS,
    NAME_COLUMNS,
    SIDE_COLUMNS,
    find_column_name,
    find_region_column_name,
    read_lines,
    read_table,
    was_just_modified,
)
from brainlsap.exceptions import FileFormatError, convert_reading_errors
from brainlsap.text import count_text, option_text

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
# Names of labels that stand for the background of an image.
_BACKGROUND_NAMES = ("", "background", "unknown", "clear label", "exterior")
BIDS_SIDECAR = "the .json beside the matrix"


# ---- one list -----------------------------------------------------------------------


def read_row_names(path: str | Path) -> tuple[str, ...]:
    """Read the names of a matrix's rows; numbers that count them decide their order."""
    return _order_names_by_numbers(read_region_list(path).table, path)


def is_background(region_name: str) -> bool:
    """Return whether a name stands for the background, as "Unknown" or "???"."""
    return region_name.strip(" ?").lower() in _BACKGROUND_NAMES


def drop_background_name(
    region_names: Sequence[str], n_matrix_rows: int
) -> tuple[str, ...]:
    """Return names without that of label 0 where a matrix has no row for it."""
    if len(region_names) == n_matrix_rows + 1 and is_background(region_names[0]):
        region_names = region_names[1:]
    return tuple(region_names)


class RegionList(NamedTuple):
    """Regions that a list or a table names.

    Parameters
    ----------
    table : DataFrame
        A row for each region, with columns `index` ("" where there is none) and
        `name`. A table with a header keeps its other columns, their names in lower
        case. A list keeps coordinates as `x`, `y`, `z`.
    has_header : bool
        Whether a header says what the columns are.
    """

    table: pd.DataFrame
    has_header: bool


def read_region_list(
    list_path: str | Path, image_label_numbers: Iterable[object] = ()
) -> RegionList:
    """Read a list or a table of region names.

    Parameters
    ----------
    list_path : str or Path
        A table with a header (`NAME_COLUMNS`), or a list without one: on each line a
        name, with numbers before or behind it (an integer, colours, coordinates).
    image_label_numbers : iterable, optional
        Labels of an image. Of several columns of integers, the one with all of these
        labels is the index; otherwise the first.

    Returns
    -------
    RegionList

    Raises
    ------
    FileFormatError
        If the file is empty, is XML, or does not say which cells are names.
    """
    text_lines = read_lines(list_path)
    if not text_lines:
        raise FileFormatError(
            "the file is empty; expected region names.", path=list_path
        )
    if text_lines[0].lstrip().startswith("<"):
        raise FileFormatError(
            "the file is XML; expected a table or a list of region names. Write a "
            "number and a name on each line. For an atlas of FSL, this number is the "
            "index in the XML file plus 1.",
            path=list_path,
        )
    workbench_table = _read_workbench_table(text_lines)
    if workbench_table is not None:
        return RegionList(workbench_table, has_header=False)
    delimiter, cell_rows = _split_delimiter_and_cells(text_lines)
    starts_with_number = any(map(_NUMBER.fullmatch, cell_rows[0]))
    has_name_column = find_region_column_name(cell_rows[0], NAME_COLUMNS) is not None
    has_header = has_name_column and not starts_with_number
    if not has_header:
        list_table = _build_list_table(list_path, cell_rows, delimiter is not None)
    else:
        list_table = read_table(list_path).fillna("").rename(columns=str.lower)
        list_table = list_table.replace(_INTEGER_AS_FLOAT, r"\1", regex=True)
    text_column_names = [
        column_name
        for column_name in list_table
        if not are_unsigned_integers(list_table[column_name])
    ]
    name_column_name = _choose_name_column(list_path, list_table, text_column_names)
    index_column_name = _choose_number_column(
        list_table,
        [*text_column_names, name_column_name],
        image_label_numbers,
        has_header,
    )
    name_texts = list_table.pop(name_column_name)
    index_cells = "" if index_column_name is None else list_table.pop(index_column_name)
    list_table = list_table.assign(index=index_cells, name=name_texts)
    if not has_header:
        list_table = list_table[
            [
                "index",
                "name",
                *(axis_name for axis_name in "xyz" if axis_name in list_table),
            ]
        ]
    return RegionList(list_table, has_header)


def are_unsigned_integers(cell_texts: Iterable[str | None]) -> bool:
    """Return whether all cells that are not empty are integers without a sign."""
    return all(map(str.isdecimal, filter(None, cell_texts)))


def _split_delimiter_and_cells(
    text_lines: Sequence[str],
) -> tuple[str | None, list[list[str]]]:
    """Return the delimiter and the cells of each line that are not empty."""
    text_lines = [
        _BRACKETED_COORDINATES.sub(r" \1 \2 \3", text_line) for text_line in text_lines
    ]
    if all(map(_NUMBER_WITH_SIGN.match, text_lines)):
        text_lines = [
            _NUMBER_WITH_SIGN.sub(r"\1 ", text_line, count=1)
            for text_line in text_lines
        ]
    delimiter = find_line_delimiter(text_lines[0])
    cell_rows = list[list[str]]()
    for text_line in text_lines:
        line_cells = filter(None, split_line_cells(text_line, delimiter))
        cell_rows.append(
            [_INTEGER_AS_FLOAT.sub(r"\1", cell_text) for cell_text in line_cells]
            or [""]
        )
    return delimiter, cell_rows


def _choose_name_column(
    list_path: str | Path, list_table: pd.DataFrame, text_column_names: Sequence[str]
) -> str:
    """Return the column of names: if possible a text that differs in every row.

    Raises where it holds numbers although other columns hold words.
    """
    unique_column_names = [
        column_name
        for column_name in text_column_names
        if list_table[column_name].is_unique
    ]
    candidate_column_names = (
        find_region_column_name(column_names, NAME_COLUMNS)
        for column_names in (unique_column_names, text_column_names, list_table)
    )
    name_column_name = next(filter(None, candidate_column_names))
    word_column_names = [
        column_name
        for column_name in text_column_names
        if find_column_name([column_name], SIDE_COLUMNS) is None
        and pd.to_numeric(list_table[column_name], errors="coerce").isna().all()
    ]
    if word_column_names and name_column_name not in text_column_names:
        raise FileFormatError(
            f"the column {name_column_name!r} contains numbers instead of names. The "
            f"region names may be in {' or '.join(map(repr, word_column_names))}. "
            "Rename the column of region names to 'name'.",
            path=list_path,
        )
    return name_column_name


def _choose_number_column(
    list_table: pd.DataFrame,
    excluded_column_names: Sequence[str],
    image_label_numbers: Iterable[object],
    has_header: bool,
) -> str | None:
    """Return the column with all of `image_label_numbers`, else a usual one."""
    number_column_names = [
        column_name
        for column_name in list_table
        if column_name not in excluded_column_names
    ]
    label_texts = {
        str(image_label).removesuffix(".0") for image_label in image_label_numbers
    }
    candidate_column_names = [
        number_column_name
        for number_column_name in number_column_names
        if label_texts.issubset(list_table[number_column_name])
    ]
    candidate_column_names = candidate_column_names or number_column_names
    # without a header, or among columns with these labels, any column name will do
    accepted_column_names = [*INDEX_COLUMNS, *NAME_COLUMNS]
    if label_texts or not has_header:
        accepted_column_names += candidate_column_names
    if not has_header:
        candidate_column_names = [
            column_name
            for column_name in candidate_column_names
            if column_name not in "xyz"
        ]
    return find_region_column_name(candidate_column_names, accepted_column_names)


def _order_names_by_numbers(
    list_table: pd.DataFrame, list_path: str | Path
) -> tuple[str, ...]:
    """Return names in the order of numbers that count them, else in that of lines.

    Raises where other numbers, as of a lookup table, do not rise from line to line.
    """
    sorted_index_texts = sorted(
        list_table["index"], key=lambda index_text: (len(index_text), index_text)
    )
    label_numbers = pd.to_numeric(list_table["index"], errors="coerce").dropna()
    if are_default_row_names(sorted_index_texts):
        list_table = list_table.set_index("index").loc[sorted_index_texts]
    elif label_numbers.is_unique and not label_numbers.is_monotonic_increasing:
        raise FileFormatError(
            "the numbers of the list are not in ascending order, so the order of "
            "the rows is unknown. Sort the lines in the order of the rows, or "
            "remove the numbers.",
            path=list_path,
        )
    return tuple(list_table["name"])


# ---- lines without a header ---------------------------------------------------------


def _build_list_table(
    list_path: str | Path, cell_rows: list[list[str]], has_delimiter: bool
) -> pd.DataFrame:
    """Return columns of integers ("0" ...), `name`, and x, y, z of lines.

    Cells that are numbers in every line, before and behind the name, become columns.
    Other numbers belong to the name (`Brodmann area 44 L`).
    """
    has_header = _has_unknown_header(cell_rows, has_delimiter)
    cell_rows = _drop_synonym_rows(list_path, cell_rows)
    leading_number_counts = [*map(_count_leading_numbers, cell_rows)]
    n_columns_before = min(leading_number_counts)
    n_unnumbered_rows = leading_number_counts.count(0)
    if 0 < n_unnumbered_rows < len(cell_rows) and not has_header:
        numbered_line = " ".join(
            cell_rows[leading_number_counts.index(max(leading_number_counts))]
        )
        raise FileFormatError(
            f"{len(cell_rows) - n_unnumbered_rows} of {len(cell_rows)} lines begin "
            f"with a number ({numbered_line!r}), but the other lines do not. Give "
            "every line a number. If these numbers are parts of names, insert a line "
            "'name' above the first line.",
            path=list_path,
        )
    n_columns_behind = min(
        _count_leading_numbers(row_cells[::-1]) for row_cells in cell_rows
    )
    if n_columns_before + n_columns_behind >= min(
        map(len, cell_rows)
    ):  # names are numbers, too
        n_columns_behind = 0
    name_cell_rows = [
        row_cells[n_columns_before : len(row_cells) - n_columns_behind]
        for row_cells in cell_rows
    ]
    # a short name and a long one, or a name and a side, need no header
    if has_header or (has_delimiter and max(map(len, name_cell_rows)) > 2):
        raise FileFormatError(
            f"none of the columns {', '.join(map(repr, cell_rows[0]))} contains names. "
            "Write the names of the columns into the first row. The column of region "
            f"names must be called {', '.join(NAME_COLUMNS)}, or have a similar name "
            "such as roi_name. A column of region numbers must be called "
            f"{', '.join(filter(None, INDEX_COLUMNS))}, or have a similar name.",
            path=list_path,
        )
    number_columns_before_name = [
        [row_cells[column_index] for row_cells in cell_rows]
        for column_index in range(n_columns_before)
    ]
    number_columns_behind_name = [
        [row_cells[column_index - n_columns_behind] for row_cells in cell_rows]
        for column_index in range(n_columns_behind)
    ]
    coordinates_by_axis = _pop_coordinates_by_axis(
        list_path, number_columns_before_name, number_columns_behind_name
    )
    region_names = [" ".join(name_part_texts) for name_part_texts in name_cell_rows]
    if not coordinates_by_axis:
        if _is_column_part_of_name(
            number_columns_behind_name, 0, name_cell_rows, has_delimiter
        ):
            name_suffixes = number_columns_behind_name.pop(0)
            region_names = [
                f"{region_name} {name_affix}"
                for region_name, name_affix in zip(
                    region_names, name_suffixes, strict=True
                )
            ]
        if _is_column_part_of_name(
            number_columns_before_name, -1, name_cell_rows, has_delimiter
        ):
            name_prefixes = number_columns_before_name.pop(-1)
            region_names = [
                f"{name_affix} {region_name}"
                for region_name, name_affix in zip(
                    region_names, name_prefixes, strict=True
                )
            ]
    has_numbers_behind = bool(number_columns_behind_name) and not coordinates_by_axis
    if has_delimiter or has_numbers_behind:
        region_names = _choose_long_names(name_cell_rows, has_delimiter) or region_names
    integer_columns = [
        number_cells
        for number_cells in (*number_columns_before_name, *number_columns_behind_name)
        if are_unsigned_integers(number_cells)
    ]
    list_table = pd.DataFrame(
        {str(i): name_part_texts for i, name_part_texts in enumerate(integer_columns)}
    )
    return list_table.assign(name=region_names, **coordinates_by_axis)


def _drop_synonym_rows(
    list_path: str | Path, cell_rows: list[list[str]]
) -> list[list[str]]:
    """Return lines of a lookup table of MRtrix without further names of one number.

    Its lines are number, short name, long name and colours. Two lines of one number and
    short name are synonyms (`36 L.TH Left-Thalamus`, `36 L.TH Left-Thalamus-Proper`),
    of which the first is kept. Raises where two lines have only the number in common.
    """
    first_row_cells_by_number: dict[str, list[str]] = {}
    distinct_cell_rows = list[list[str]]()
    for row_cells in cell_rows:
        has_two_names = (
            len(row_cells) >= 6
            and row_cells[0].isdecimal()
            and not any(map(_NUMBER.fullmatch, row_cells[1:3]))
            and _are_all_numbers(row_cells[3:])
        )
        if not has_two_names:
            return cell_rows
        first_row_cells = first_row_cells_by_number.setdefault(row_cells[0], row_cells)
        if first_row_cells is row_cells:
            distinct_cell_rows.append(row_cells)
        elif first_row_cells[1] != row_cells[1]:
            raise FileFormatError(
                f"the number {row_cells[0]} is given to {first_row_cells[2]!r} and to "
                f"{row_cells[2]!r}; expected one region for each number. Correct the "
                "number of one of these regions.",
                path=list_path,
            )
    return distinct_cell_rows


def _has_unknown_header(cell_rows: list[list[str]], has_delimiter: bool) -> bool:
    """Return whether the first line is a header, with no known column name."""
    first_row_cells, *further_cell_rows = cell_rows
    has_columns = has_delimiter or any(
        map(_are_all_numbers, zip(*further_cell_rows, strict=False))
    )
    has_numbers = any(map(_NUMBER.fullmatch, first_row_cells))
    return has_columns and len(first_row_cells) > 1 and not has_numbers


def _is_column_part_of_name(
    number_columns: list[list[str]],
    column_index: int,
    name_cell_rows: list[list[str]],
    has_delimiter: bool,
) -> bool:
    """Return whether a column of numbers beside the names belongs to them.

    It does where it counts the parts of one name (`Vis 1`, `Vis 2`), or stands behind
    names of several words and is no index (`Brodmann area 44`).
    """
    if not number_columns:
        return False
    region_name_texts = [
        " ".join(name_part_texts) for name_part_texts in name_cell_rows
    ]
    number_texts = number_columns[column_index]
    can_be_index = len(set(number_texts)) == len(number_texts)
    if len(set(region_name_texts)) == len(region_name_texts):
        has_many_words = min(map(len, name_cell_rows)) > 1 and not has_delimiter
        is_only_column_behind = column_index == 0 and len(number_columns) == 1
        return has_many_words and is_only_column_behind and not can_be_index
    # the number of two regions of one name may be an index; of more it is not
    max_repeats = max(map(region_name_texts.count, region_name_texts))
    makes_names_distinct = len(
        {*zip(region_name_texts, number_texts, strict=True)}
    ) == len(region_name_texts)
    return makes_names_distinct and (max_repeats > 2 or not can_be_index)


def _choose_long_names(
    name_cell_rows: list[list[str]], has_delimiter: bool
) -> list[str] | None:
    """Return the second of two names of every line, as of MRtrix and AAL.

    None where the cells are parts of one name: one of them is a side, or the second
    ones do not tell all regions apart.
    """
    has_side = any(
        cell_text.lower() in HEMISPHERE_WORDS
        for row_name_cells in name_cell_rows
        for cell_text in row_name_cells
    )
    distinct_row_lengths = {len(row_name_cells) for row_name_cells in name_cell_rows}
    short_names = {row_name_cells[0] for row_name_cells in name_cell_rows}
    long_names = {row_name_cells[-1] for row_name_cells in name_cell_rows}
    has_two_names = has_delimiter or (
        distinct_row_lengths == {2} and len(short_names) == len(name_cell_rows)
    )
    if (
        has_side
        or not has_two_names
        or len(long_names) < len({*map(tuple, name_cell_rows)})
    ):
        return None
    return [row_name_cells[-1] for row_name_cells in name_cell_rows]


def _pop_coordinates_by_axis(
    list_path: str | Path,
    number_columns_before_name: list[list[str]],
    number_columns_behind_name: list[list[str]],
) -> dict[str, list[str]]:
    """Remove three columns of coordinates from the numbers, and return them as x, y, z.

    They have signs or fractions. Columns between 0 and 1 are colours. Raises
    FileFormatError where other columns have signs or fractions.
    """
    for number_columns in (number_columns_before_name, number_columns_behind_name):
        fraction_column_flags = [
            not are_unsigned_integers(number_column) for number_column in number_columns
        ]
        number_lists = [
            [*map(float, number_column)] for number_column in number_columns
        ]
        color_column_flags = [
            min(numbers) >= 0 and max(numbers) <= 1 for numbers in number_lists
        ]
        column_flag_pairs = zip(fraction_column_flags, color_column_flags, strict=True)
        if not any(
            has_fraction and not is_color_column
            for has_fraction, is_color_column in column_flag_pairs
        ):
            continue
        # an index may precede x
        has_index = (
            len(number_columns) == 4
            and number_columns is number_columns_before_name
            and not fraction_column_flags[0]
        )
        start_index = 1 if has_index else 0
        if len(number_columns) - start_index != 3 or (
            number_columns is number_columns_behind_name
            and number_columns_before_name[1:]
        ):
            raise FileFormatError(
                "the meaning of the columns of numbers is unclear, because they have "
                "no names. Name all columns in the first row, for example index, name, "
                "x, y, z (coordinates in mm of MNI152).",
                path=list_path,
                kind="numbers without a heading",
            )
        coordinates_by_axis = dict(
            zip("xyz", number_columns[start_index:], strict=True)
        )
        del number_columns[start_index:]
        return coordinates_by_axis
    return {}


def _count_leading_numbers(row_cells: Sequence[str]) -> int:
    """Return the number of cells with numbers at the start of a line.

    The last cell does not count, since it may be a name.
    """
    number_flags = [
        _NUMBER.fullmatch(cell_text) is not None for cell_text in row_cells[:-1]
    ]
    return [*number_flags, False].index(False)


def _are_all_numbers(cell_texts: Iterable[str]) -> bool:
    """Return whether all cells are numbers of any kind."""
    return all(map(_NUMBER.fullmatch, cell_texts))


def _read_workbench_table(text_lines: Sequence[str]) -> pd.DataFrame | None:
    """Return index and name of Connectome Workbench's label lists, None of others.

    They have a name on one line, and its number, red, green, blue, alpha on the next.
    """
    name_lines = text_lines[::2]
    number_lines = text_lines[1::2]
    alternates_with_numbers = len(name_lines) == len(number_lines) and all(
        map(_WORKBENCH_NUMBERS.fullmatch, number_lines)
    )
    if not alternates_with_numbers or any(
        map(_WORKBENCH_NUMBERS.fullmatch, name_lines)
    ):
        return None
    label_number_texts = [number_line.split()[0] for number_line in number_lines]
    return pd.DataFrame(
        {"index": label_number_texts, "name": [*map(str.strip, name_lines)]}
    )


# ---- lists beside a matrix ----------------------------------------------------------


def find_row_names_by_list(
    matrix_path: Path, n_matrix_rows: int
) -> dict[str, tuple[str, ...]]:
    """Return the names of rows by the list beside a matrix that gives them.

    BIDS sidecars come first. Then the matrix's folder and those above it are searched,
    up to the folder of its participant: lists further up may belong to an atlas or to
    another study. The nearest folder with a list decides.

    Raises
    ------
    FileFormatError
        If a list of this matrix has another length than the matrix, or BIDS
        sidecars contradict each other.
    """
    n_folder_levels = _count_folder_levels(matrix_path)
    sidecar_names = _read_sidecar_names(
        matrix_path, [*matrix_path.parents[:n_folder_levels]]
    )
    if sidecar_names is not None:
        check_one_name_per_row(
            matrix_path,
            n_matrix_rows,
            sidecar_names,
            f"the rows are named by {BIDS_SIDECAR}",
        )
        return {BIDS_SIDECAR: sidecar_names}
    for folder_level in range(len(matrix_path.parents[: max(n_folder_levels, 2)])):
        names_by_list = _read_row_names_by_list(
            matrix_path, n_matrix_rows, folder_level, n_folder_levels
        )
        if names_by_list:
            return names_by_list
    return {}


def check_one_name_per_row(
    matrix_path: Path, n_matrix_rows: int, region_names: Sequence[str], origin_text: str
) -> None:
    """Raise FileFormatError where there is not one name for each row."""
    if len(region_names) != n_matrix_rows:
        raise FileFormatError(
            f"the matrix has {n_matrix_rows} rows, but the list contains "
            f"{count_text(len(region_names), 'name')} ({origin_text}); expected one "
            "name for each row. Correct the list, or give another list with "
            f"{option_text('labels')}.",
            path=matrix_path,
        )


def _read_row_names_by_list(
    matrix_path: Path, n_matrix_rows: int, folder_level: int, n_folder_levels: int
) -> dict[str, tuple[str, ...]]:
    """Return the lists of the folder so many levels above the matrix, by file name."""
    folder = matrix_path.parents[folder_level]
    file_names = ["label.json"]  # brainlife keeps it one folder above the matrix
    if folder_level >= n_folder_levels:
        file_names = file_names if os.access(folder / "label.json", os.F_OK) else []
    else:
        name_stem = _FILE_ENDING.sub("", matrix_path.name)
        matrix_list_names = [
            f"{name_stem}_labels{list_ending}"
            for list_ending in (".txt", ".csv", ".tsv")
        ]
        candidate_file_names = (*matrix_list_names, *_STRICT_LISTS, *_TOLERANT_LISTS)
        entry_names = _list_file_names(folder)
        file_names = [
            list_name for list_name in candidate_file_names if list_name in entry_names
        ]
    names_by_list = dict[str, tuple[str, ...]]()
    for file_name in file_names:
        list_path = folder / file_name
        if list_path == matrix_path:
            continue
        region_names = _read_names_of_list(list_path, n_matrix_rows)
        if region_names is None:
            continue
        if folder_level == 0 and file_name not in _TOLERANT_LISTS:
            check_one_name_per_row(
                matrix_path,
                n_matrix_rows,
                region_names,
                f"the rows are named by {file_name}",
            )
        # a list of another length belongs to other matrices
        if len(region_names) == n_matrix_rows:
            names_by_list[file_name] = region_names
    return names_by_list


def _count_folder_levels(matrix_path: Path) -> int:
    """Return the number of folders above a matrix in its data set, at least one."""
    participant_folders = (
        parent_folder
        for parent_folder in matrix_path.parents
        if parent_folder.name.startswith("sub-")
    )
    participant_folder = next(participant_folders, None)
    if participant_folder is not None:
        return len(matrix_path.parts) - len(participant_folder.parts) + 1
    for n_folder_levels, parent_folder in enumerate(
        matrix_path.parents[:_MAX_LEVELS], start=1
    ):
        if os.access(f"{parent_folder}/dataset_description.json", os.F_OK):
            return n_folder_levels
    return 1


def _read_names_of_list(list_path: Path, n_matrix_rows: int) -> tuple[str, ...] | None:
    """Return the names in a list beside a matrix, None where it is no list of names."""
    if not list_path.is_file():
        return None
    if list_path.name == "label.json":
        return _read_brainlife_names(list_path, n_matrix_rows)
    if list_path.stem in ("centres", "centers"):
        return _read_tvb_names(list_path)
    if list_path.name not in _TOLERANT_LISTS:
        return drop_background_name(read_row_names(list_path), n_matrix_rows)
    try:
        return drop_background_name(read_row_names(list_path), n_matrix_rows)
    except FileFormatError:  # another kind of file may have such a name
        return None


def _read_brainlife_names(
    label_path: Path, n_matrix_rows: int
) -> tuple[str, ...] | None:
    """Return the names in brainlife's `label.json`, one entry for each region.

    The first entry may stand for the diagonal: it has no name, or is a self-loop.
    """
    with convert_reading_errors(label_path, "brainlife's label.json"):
        label_entries = json.loads(label_path.read_text(encoding="utf-8"))
        if not isinstance(label_entries, list):
            return None
        region_names = [
            str(label_entry.get("name") or "") for label_entry in label_entries
        ]
    if len(region_names) == n_matrix_rows + 1 and region_names[0].lower() in (
        "",
        "self-loop",
        "selfloop",
    ):
        region_names = region_names[1:]
    return tuple(region_names)


def _read_tvb_names(centres_path: Path) -> tuple[str, ...]:
    """Return the names in The Virtual Brain's `centres.txt`: name, x, y, z."""
    cell_rows = [
        split_line_cells(text_line, find_line_delimiter(text_line))
        for text_line in read_lines(centres_path)
    ]
    if any(len(row_cells) < 4 for row_cells in cell_rows):
        raise FileFormatError(
            "expected the name and the three coordinates of one region on each line.",
            path=centres_path,
        )
    return tuple(" ".join(row_cells[:-3]) for row_cells in cell_rows)


# ---- sidecars of BIDS ---------------------------------------------------------------


def _read_sidecar_names(
    matrix_path: Path, folders: Sequence[Path]
) -> tuple[str, ...] | None:
    """Return the names that BIDS sidecars of a matrix give, None where none do.

    By BIDS' inheritance a `.json` describes every file below its folder whose name has
    its suffix and all of its entities. Keys of nearer sidecars replace those further
    up.
    """
    node_fields = dict[str, Any]()
    nearest_sidecar_path = matrix_path
    for folder in folders[::-1]:
        sidecar_paths = [*_iter_sidecar_paths(matrix_path, folder)]
        sidecar_contents = [
            _read_value_by_key(sidecar_path) for sidecar_path in sidecar_paths
        ]
        sidecar_fields_list = [
            {
                bids_key: sidecar_content[bids_key]
                for bids_key in _BIDS_KEYS
                if bids_key in sidecar_content
            }
            for sidecar_content in sidecar_contents
        ]
        sidecar_fields_list = [*filter(None, sidecar_fields_list)]
        if any(
            sidecar_fields != sidecar_fields_list[0]
            for sidecar_fields in sidecar_fields_list
        ):
            names_text = " and ".join(
                sidecar_path.name for sidecar_path in sidecar_paths
            )
            raise FileFormatError(
                f"{names_text} in {folder} describe the nodes differently. Keep only "
                "one of these files in that folder.",
                path=matrix_path,
            )
        if sidecar_fields_list:
            node_fields |= sidecar_fields_list[0]
            nearest_sidecar_path = sidecar_paths[0]
    if not node_fields:
        return None
    return _read_bids_node_names(nearest_sidecar_path, matrix_path, node_fields)


def _iter_sidecar_paths(matrix_path: Path, folder: Path) -> Iterator[Path]:
    """Yield the `.json` files of a folder that describe a matrix, sorted by name."""
    *matrix_entities, matrix_suffix = matrix_path.name.partition(".")[0].split("_")
    if not folder.is_dir():
        return
    for entry_name in _list_file_names(folder, ".json"):
        name_parts = entry_name.partition(".")[0].split("_")
        if name_parts[-1] == matrix_suffix and {*name_parts} <= {
            *matrix_entities,
            matrix_suffix,
        }:
            yield folder / entry_name


def _list_file_names(folder: Path, name_ending: str = "") -> dict[str, None]:
    """Return the names in a folder that end so, sorted; the dict serves as a set.

    The folder of a study is asked for every matrix, and lists every participant. It is
    listed again only if its time of modification has changed. A time that is not yet
    two seconds old could stay the same in another change, so it is not relied on.
    """
    modified_ns = folder.stat().st_mtime_ns
    if was_just_modified(modified_ns):
        return _list_folder_file_names(str(folder), name_ending)
    return _list_unchanged_file_names((str(folder), modified_ns), name_ending)


@lru_cache(maxsize=256)
def _list_unchanged_file_names(
    folder_and_time: tuple[str, int], name_ending: str
) -> dict[str, None]:
    """Return the names in a folder that end so, for a folder modified at this time."""
    return _list_folder_file_names(folder_and_time[0], name_ending)


def _list_folder_file_names(folder_text: str, name_ending: str) -> dict[str, None]:
    """Return the names in a folder that end so, sorted."""
    with os.scandir(folder_text) as folder_entries:
        file_names = [
            folder_entry.name
            for folder_entry in folder_entries
            if folder_entry.name.endswith(name_ending)
        ]
    return dict.fromkeys(sorted(file_names))


def _read_value_by_key(json_path: Path) -> dict[str, Any]:
    """Return the keys of a JSON file, none where it holds something else."""
    with convert_reading_errors(json_path, "a BIDS sidecar"):
        json_content = json.loads(json_path.read_text(encoding="utf-8"))
    return json_content if isinstance(json_content, dict) else {}


def _read_bids_node_names(
    sidecar_path: Path, matrix_path: Path, value_by_sidecar_key: dict[str, Any]
) -> tuple[str, ...] | None:
    """Return the names of the nodes that the keys of BIDS sidecars give, None if none.

    `sidecar_path` is the one nearest to the matrix at `matrix_path`.
    """
    with convert_reading_errors(sidecar_path, "a BIDS sidecar"):
        node_indices = [
            str(node_index)
            for node_index in value_by_sidecar_key.get("NodeIndices") or ()
        ]
        node_file_names = (
            value_by_sidecar_key.get("NodeFiles", value_by_sidecar_key.get("NodeFile"))
            or ()
        )
        node_file_names = (
            [node_file_names] if isinstance(node_file_names, str) else node_file_names
        )
    node_tables = []
    for file_name in node_file_names:
        # paths are relative to the root of the data set
        relative_path = file_name.removeprefix("bids:").lstrip(":/")
        candidate_paths = (
            folder / relative_path for folder in matrix_path.parents[:_MAX_LEVELS]
        )
        node_tables.append(
            read_region_list(
                next(filter(Path.is_file, candidate_paths), relative_path)
            ).table
        )
    if not node_tables:
        return tuple(node_indices) or None
    node_table = pd.concat(node_tables)[["index", "name"]].drop_duplicates()
    names_by_index = node_table.groupby("index")["name"].agg(list)
    for node_index in node_indices or filter(None, names_by_index.index):
        node_names = names_by_index.get(node_index, [])
        if len(node_names) != 1:
            names_text = "no name"
            if node_names:
                names_text = f"the names {' and '.join(map(repr, node_names))}"
            raise FileFormatError(
                f"the index {node_index} has {names_text} in {node_file_names}; "
                "expected exactly one name for each index. Correct the indices of the "
                "nodes.",
                path=sidecar_path,
            )
    if not node_indices:
        return _order_names_by_numbers(node_table, sidecar_path)
    return tuple(names_by_index[node_index][0] for node_index in node_indices)
