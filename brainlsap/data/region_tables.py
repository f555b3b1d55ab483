"""Read a table of regions: the bundled ones, or a user's own."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.data.region_names import (
    HEMISPHERE_WORDS,
    SUBCORTEX_SHORT,
    bare_name,
    short_name,
    split_name,
)
from brainlsap.exceptions import FileFormatError, RegionNameError

COLUMNS = (
    "name",
    "freesurfer_id",
    "hemisphere",
    "structure",
    "annot_name",
    "long_name",
    "lobe",
    "short_name",
    "x",
    "y",
    "z",
)
_SIDES = {**HEMISPHERE_WORDS, "m": "M"}
_STRUCTURES = ("cortex", "subcortex")


def read_regions(path: str | Path) -> pd.DataFrame:
    """Read a table of regions and fill what it does not say.

    Parameters
    ----------
    path : str or Path
        Tab-separated text with a header; `name` and `hemisphere` (L, R, or M for
        the midline) must be there, the other columns of :class:`.Atlas` may be.

    Returns
    -------
    DataFrame
        One row per region in the order of the file, with all columns; further
        columns of the file stand behind.

    Raises
    ------
    FileFormatError
        If the file is no such table, or a value cannot be used.
    RegionNameError
        If a name stands twice.

    Examples
    --------
    >>> from brainlsap.data.atlas import bundled_atlases
    >>> table = read_regions(bundled_atlases() / "desikan82" / "regions.tsv")
    >>> table.loc[0, ["name", "hemisphere", "lobe"]].tolist()
    ['ctx-lh-bankssts', 'L', 'temporal']
    """
    path = Path(path)
    table = _read_text(path)
    doubled = sorted(set(table["name"][table["name"].duplicated()]))
    if doubled:
        raise RegionNameError(
            f"{path}: {len(doubled)} names stand more than once, such as "
            f"{doubled[0]!r}. Give every region its own name."
        )
    table["hemisphere"] = _sides(path, table)
    return _fill(path, table)


def _read_text(path: Path) -> pd.DataFrame:
    try:
        table = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)
    except (pd.errors.EmptyDataError, pd.errors.ParserError, UnicodeDecodeError) as err:
        raise FileFormatError(
            f"{path}: cannot be read as a tab-separated table of regions ({err}). "
            "The first line must name the columns, among them name and hemisphere."
        ) from err
    missing = [column for column in ("name", "hemisphere") if column not in table]
    if missing:
        raise FileFormatError(
            f"{path}: column {' and '.join(missing)} is missing, got "
            f"{', '.join(map(repr, table.columns))}. A table of regions is separated "
            "by tabs and needs the columns name and hemisphere."
        )
    if table.empty:
        raise FileFormatError(f"{path}: the table has a header but no region.")
    table["name"] = table["name"].str.strip()
    unnamed = np.flatnonzero(table["name"] == "")
    if len(unnamed):
        raise FileFormatError(
            f"{path}: line {unnamed[0] + 2} has no name. Name every region, or "
            "remove the line."
        )
    return table


def _sides(path: Path, table: pd.DataFrame) -> list[str]:
    sides = []
    for name, said in zip(table["name"], table["hemisphere"], strict=True):
        side = _SIDES.get(said.strip().lower())
        if side is None:
            raise FileFormatError(
                f"{path}: hemisphere of {name!r} must be L, R or M (midline), "
                f"got {said!r}."
            )
        in_name = split_name(name)[0]
        if side != "M" and in_name not in (None, side):
            raise FileFormatError(
                f"{path}: the name {name!r} says {in_name}, but its hemisphere says "
                f"{side}. Correct one of them."
            )
        sides.append(side)
    return sides


def _fill(path: Path, table: pd.DataFrame) -> pd.DataFrame:
    names, sides = table["name"], table["hemisphere"]
    filled: dict[str, Any] = {
        "freesurfer_id": "-1",
        "structure": [
            "subcortex" if split_name(name)[1] in SUBCORTEX_SHORT else "cortex"
            for name in names
        ],
        "annot_name": [bare_name(name) for name in names],
        "long_name": names,
        "lobe": "n/a",
        "short_name": [short_name(n, s) for n, s in zip(names, sides, strict=True)],
        "x": "n/a",
        "y": "n/a",
        "z": "n/a",
    }
    for column, values in filled.items():
        if column not in table:
            table[column] = values
    for column in ("freesurfer_id", *"xyz"):
        table[column] = _numbers(path, table, column)
    table["freesurfer_id"] = _labels(path, table)
    wrong = table.loc[~table["structure"].isin(_STRUCTURES)]
    if len(wrong):
        name, structure = wrong.iloc[0][["name", "structure"]]
        raise FileFormatError(
            f"{path}: structure of {name!r} must be cortex or subcortex, "
            f"got {structure!r}."
        )
    extra = [column for column in table if column not in (*COLUMNS, "index")]
    return table[[*COLUMNS, *extra]]


def _numbers(path: Path, table: pd.DataFrame, column: str) -> pd.Series:
    text = table[column].str.strip()
    absent = text.str.lower().isin(["", "n/a", "na", "nan"])
    values = pd.to_numeric(text.mask(absent), errors="coerce")
    wrong = values.isna() & ~absent
    if wrong.any():
        row = table[wrong].iloc[0]
        raise FileFormatError(
            f"{path}: {column} of {row['name']!r} must be a number or n/a, "
            f"got {row[column]!r}."
        )
    return values


def _labels(path: Path, table: pd.DataFrame) -> pd.Series:
    """Return whole label numbers; two regions never share one."""
    numbers = table["freesurfer_id"].fillna(-1)
    wrong = (numbers != numbers.round()) | ((numbers > 0) & numbers.duplicated())
    if wrong.any():
        row = table[wrong].iloc[0]
        raise FileFormatError(
            f"{path}: freesurfer_id of {row['name']!r} must be a whole number that no "
            f"other region has, got {row['freesurfer_id']:g}. Write n/a where there is "
            "none."
        )
    return numbers.astype(int)
