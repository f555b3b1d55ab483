"""Read lists of the names of regions, and tell names from numbers that only count."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from brainlsap.data.text_lines import read_lines, sniff_delimiter
from brainlsap.exceptions import FileFormatError

_NAME_HEADS = ("name", "label", "region")


def read_names(path: str | Path) -> tuple[str, ...]:
    """Read the names of regions, one a line.

    Parameters
    ----------
    path : str or Path
        Of several columns the one headed `name` or `label` counts, else the last. A
        column that counts the names from 0 or 1 decides their order.

    Returns
    -------
    tuple of str

    Raises
    ------
    FileFormatError
        Where the file is missing or empty.
    """
    rows = [split_cells(line, sniff_delimiter(line)) for line in read_lines(path)]
    if not rows:
        raise FileFormatError(f"{path}: the file is empty; expected names of regions.")
    heads = [cell.lower() for cell in rows[0]]
    named = [heads.index(head) for head in _NAME_HEADS if head in heads]
    if not named:
        return in_counted_order([row[0] for row in rows], [row[-1] for row in rows])
    whole = [row[: len(heads)] for row in rows[1:] if len(row) >= len(heads)]
    if not whole:
        return ()
    columns = list(zip(*whole, strict=True))
    counted = [i for i in range(len(heads)) if _are_decimal(columns[i])]
    place = next((i for i in named if i not in counted), named[0])
    numbers = next((columns[i] for i in counted if i != place), ())
    return in_counted_order(numbers, columns[place])


def in_counted_order(numbers: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return names in the order of numbers that count them, else as they are.

    Parameters
    ----------
    numbers : sequence of str
        What stands beside the names.
    names : sequence of str
        One for each number.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> in_counted_order(["2", "1"], ["lh_b", "lh_a"])
    ('lh_a', 'lh_b')
    >>> in_counted_order(["17", "10"], ["lh_b", "lh_a"])
    ('lh_b', 'lh_a')
    """
    if not numbers or not _are_decimal(numbers):
        return tuple(names)
    values = np.array(numbers, dtype=float)
    order = np.argsort(values, kind="stable")
    counts = np.arange(len(values))
    if not any(np.array_equal(values[order], counts + start) for start in (0, 1)):
        return tuple(names)
    return tuple(names[place] for place in order)


def are_counts(names: Sequence[str]) -> bool:
    """Tell whether names only count the rows, as data frames do by themselves.

    Parameters
    ----------
    names : sequence of str
        Of the rows.

    Returns
    -------
    bool

    Examples
    --------
    >>> are_counts(["1", "2", "3"]), are_counts(["10", "11"])
    (True, False)
    """
    return any(
        list(names) == [str(i) for i in range(start, start + len(names))]
        for start in (0, 1)
    )


def split_cells(line: str, delimiter: str | None) -> list[str]:
    """Return the cells of a line without white space and quotes around them.

    Parameters
    ----------
    line : str
        Of text.
    delimiter : str or None
        Between cells; None is white space.

    Returns
    -------
    list of str

    Examples
    --------
    >>> split_cells('1, "lh_a"', ",")
    ['1', 'lh_a']
    """
    return [cell.strip().strip('"').strip() for cell in line.split(delimiter)]


def _are_decimal(cells: Sequence[str]) -> bool:
    return all(cell.isdecimal() for cell in cells)
