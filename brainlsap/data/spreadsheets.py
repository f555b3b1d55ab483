"""Cells of tables that a spreadsheet would run as formulas, made into plain text.

A label, a site or a name of a region is a stranger's text. Excel, LibreOffice and
others compute what begins with `=`, `+`, `-`, `@`, a tab or a carriage return, in CSV
and TSV too, and a formula can fetch or send. An apostrophe before it makes it text.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from brainlsap._files import write_text

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
# A number, a spread, an interval or a lone sign computes nothing but itself.
_NUMBERS = re.compile(
    r"[-+]*(?:inf|nan|[\d\s.,;:/%±()\[\]\N{EN DASH}-]|\d[eE][-+]?\d)*"
)
_GUARD = "'"


def guard_cells(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose texts no spreadsheet takes for formulas.

    Parameters
    ----------
    table : DataFrame
        To be written as CSV or TSV.

    Returns
    -------
    DataFrame
        Where a text, or the name of a column, begins like a formula and is no number,
        an apostrophe stands before it; numbers are left as they are.

    Examples
    --------
    >>> cells = ["=1+1", "-0.02 ± 0.01", "-", "@a", "AD"]
    >>> guard_cells(pd.DataFrame({"label": cells}))["label"].tolist()
    ["'=1+1", '-0.02 ± 0.01', '-', "'@a", 'AD']
    """
    return _change(table, guard_cell)


def guard_cell(cell: object) -> object:
    """Return one cell so that no spreadsheet takes it for a formula.

    Parameters
    ----------
    cell : object
        Text, or anything else, which is left as it is.

    Returns
    -------
    object

    Examples
    --------
    >>> guard_cell("=1+1"), guard_cell("AD")
    ("'=1+1", 'AD')
    """
    if not isinstance(cell, str):
        return cell
    # an apostrophe that stood there before is kept apart from ours
    bare = cell.lstrip(_GUARD)
    return _GUARD + cell if _is_formula(bare) else cell


def unguard_cells(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table that :func:`guard_cells` was given.

    Parameters
    ----------
    table : DataFrame
        As it was read.

    Returns
    -------
    DataFrame
        Without the apostrophes that guard formulas; others are left.

    Examples
    --------
    >>> table = pd.DataFrame({"label": ["=1+1", "'AD", "'=a"], "age": [70, 71, 72]})
    >>> unguard_cells(guard_cells(table)).equals(table)
    True
    """
    return _change(table, _unguarded)


def guarded_text(table: pd.DataFrame, separator: str = "\t", missing: str = "") -> str:
    """Return a table as text that no spreadsheet takes for formulas.

    Parameters
    ----------
    table : DataFrame
        Without its index.
    separator : str
        Between cells: tab, or comma.
    missing : str
        What stands for a missing value.

    Returns
    -------
    str
        Lines end with a line feed.

    Examples
    --------
    >>> table = pd.DataFrame({"label": ["=1+1", None], "age": [70, 71]})
    >>> guarded_text(table, ",", "n/a").splitlines()
    ['label,age', "'=1+1,70", 'n/a,71']
    """
    return str(
        guard_cells(table).to_csv(
            sep=separator, index=False, na_rep=missing, lineterminator="\n"
        )
    )


def write_tsv(table: pd.DataFrame, path: str | Path) -> Path:
    r"""Write a table as TSV, "n/a" where a value is missing, as BIDS has it.

    Parameters
    ----------
    table : DataFrame
        Without its index.
    path : str or Path
        The file; it appears whole or not at all.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     write_tsv(pd.DataFrame({"age": [70.5, None]}), f"{place}/t").read_bytes()
    b'age\n70.5\nn/a\n'
    """
    return write_text(path, guarded_text(table, missing="n/a"))


def _change(table: pd.DataFrame, change: Callable[[object], object]) -> pd.DataFrame:
    changed = table.rename(columns=change)
    for place, kind in enumerate(table.dtypes):
        if pd.api.types.is_numeric_dtype(kind):
            continue
        column = table.iloc[:, place]
        if isinstance(kind, pd.CategoricalDtype):
            column = column.astype(object)
        cells = [change(cell) for cell in column]
        changed.isetitem(place, pd.Series(cells, table.index, column.dtype))
    return changed


def _is_formula(text: str) -> bool:
    return text.startswith(_FORMULA) and not _NUMBERS.fullmatch(text)


def _unguarded(cell: object) -> object:
    if not isinstance(cell, str) or not cell.startswith(_GUARD):
        return cell
    return cell[1:] if _is_formula(cell.lstrip(_GUARD)) else cell
