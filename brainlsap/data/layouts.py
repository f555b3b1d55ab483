"""Which region is which row in matrices that have no names.

A matrix of numbers alone can only be read where its number of rows is that of a
documented order. The orders here are those of MRtrix's `labelconvert` tables
`fs_a2009s.txt` and `fs_default.txt` (a node for each cerebellar cortex and each
accumbens besides the atlas' regions), those of micapipe, FreeSurfer's label numbers
themselves, and the atlas' own. Everything else is refused with what such a size is
known to mean.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from brainlsap.data.atlas import Atlas
from brainlsap.data.layout_readings import READINGS
from brainlsap.exceptions import FileFormatError

_SUBCORTEX = (
    "Thalamus",
    "Caudate",
    "Putamen",
    "Pallidum",
    "Hippocampus",
    "Amygdala",
    "Accumbens-area",
)
# 14 structures and 70 or 150 rows of cortex, a wall or callosum on each side, have as
# many rows as MRtrix's nodes. Empty rows tell: the walls of (cortex, structures) and of
# (structures, cortex), where MRtrix has cortex.
WALLS = {
    "desikan82": (84, ((3, 38), (17, 52))),
    "destrieux160": (164, ((41, 116), (55, 130))),
}
# Position of the wall or callosum among the rows of one side, from 0.
_WALL = {"destrieux160": 41, "desikan82": 3}
_MICAPIPE = re.compile(
    r"(^|[-_])(cor|sub|full)-(connectome|edgelengths)", re.IGNORECASE
)
# Cerebellar rows of micapipe's full matrices, as its two versions count them.
_CEREBELLAR = (34, 28)
# Fewer rows than this are never label numbers: parcellations count from 1, too.
_FEWEST_LABELS = 1000
_MRTRIX_TABLES = {"destrieux160": "fs_a2009s.txt", "desikan82": "fs_default.txt"}


@dataclass(frozen=True)
class Layout:
    """The order of a matrix without names.

    Parameters
    ----------
    names : tuple of str
        Of every row, those that the atlas leaves out included.
    note : str
        What the order is taken from.
    """

    names: tuple[str, ...]
    note: str


@lru_cache(maxsize=16)
def known_layouts(atlas: Atlas) -> dict[int, Layout]:
    """Return the orders that are known for matrices without names, by size.

    Parameters
    ----------
    atlas : Atlas
        Names the regions and gives their order.

    Returns
    -------
    dict of int to Layout

    Examples
    --------
    >>> from brainlsap.data.atlas import load_atlas
    >>> sorted(known_layouts(load_atlas("destrieux160")))
    [160, 161, 164, 165, 192, 198]
    >>> known_layouts(load_atlas("desikan82"))[84].names[34:36]
    ('Left-Cerebellum-Cortex', 'Left-Thalamus')
    """
    layouts = {len(atlas): Layout(atlas.names, f"read in the order of {atlas.name}")}
    if atlas.name in _MRTRIX_TABLES:
        names = mrtrix_names(atlas)
        table = _MRTRIX_TABLES[atlas.name]
        note = f"read in the order of MRtrix's {table} ({len(names)} nodes)"
        layouts[len(names)] = Layout(names, note)
    for size, layout in tuple(layouts.items()):
        if size + 1 not in layouts:
            layouts[size + 1] = Layout(
                ("Unknown", *layout.names),
                f"{layout.note} after a first row for label 0",
            )
    full = micapipe_layouts(atlas)
    return layouts | {n: full[n] for n in full if n > len(atlas) + 14}


def mrtrix_names(atlas: Atlas) -> tuple[str, ...]:
    """Return the names of MRtrix's nodes for an atlas from FreeSurfer.

    Parameters
    ----------
    atlas : Atlas
        One that FreeSurfer has: destrieux160 or desikan82.

    Returns
    -------
    tuple of str
        Left cortex, left cerebellar cortex, seven structures left, seven right,
        right cortex, right cerebellar cortex.

    Examples
    --------
    >>> from brainlsap.data.atlas import load_atlas
    >>> names = mrtrix_names(load_atlas("destrieux160"))
    >>> len(names), names[75], names[163]
    (164, 'Left-Thalamus', 'Right-Cerebellum-Cortex')
    """
    regions = atlas.regions.sort_values("freesurfer_id")
    cortex = regions[regions["structure"] == "cortex"]
    return (
        *cortex.loc[cortex["hemisphere"] == "L", "name"],
        "Left-Cerebellum-Cortex",
        *(f"Left-{name}" for name in _SUBCORTEX),
        *(f"Right-{name}" for name in _SUBCORTEX),
        *cortex.loc[cortex["hemisphere"] == "R", "name"],
        "Right-Cerebellum-Cortex",
    )


@lru_cache(maxsize=16)
def micapipe_layouts(atlas: Atlas) -> dict[int, Layout]:
    """Return the orders of micapipe's matrices, by size.

    Parameters
    ----------
    atlas : Atlas
        Names the regions and gives their order.

    Returns
    -------
    dict of int to Layout
        Structures in the order of FreeSurfer's numbers, then the cerebellum in full
        matrices, then the cortex with the medial wall among its rows.

    Examples
    --------
    >>> from brainlsap.data.atlas import load_atlas
    >>> layouts = micapipe_layouts(load_atlas("destrieux160"))
    >>> sorted(layouts), layouts[198].names[89], layouts[198].names[48]
    ([164, 192, 198], 'Medial_wall', 'ctx_lh_G_and_S_frontomargin')
    """
    if atlas.name not in _WALL:
        return {}
    below = (
        *(f"Left-{name}" for name in _SUBCORTEX),
        *(f"Right-{name}" for name in _SUBCORTEX),
    )
    cortex = (*cortex_with_wall(atlas, "L"), *cortex_with_wall(atlas, "R"))
    layouts = {
        14 + n + len(cortex): Layout(
            (*below, *("Cerebellum",) * n, *cortex),
            f"read in the order of micapipe's full matrix ({n} cerebellar rows)",
        )
        for n in _CEREBELLAR
    }
    layouts[14 + len(cortex)] = Layout(
        (*below, *cortex), "read in the order of micapipe's subcortical matrix"
    )
    return layouts


def cortex_with_wall(atlas: Atlas, hemisphere: str) -> tuple[str, ...]:
    """Return the cortex of one side in FreeSurfer's order, the medial wall among it.

    Parameters
    ----------
    atlas : Atlas
        Either destrieux160 or desikan82.
    hemisphere : {"L", "R"}
        The side.

    Returns
    -------
    tuple of str
    """
    regions = atlas.regions.sort_values("freesurfer_id")
    of_side = (regions["structure"] == "cortex") & (regions["hemisphere"] == hemisphere)
    names = regions.loc[of_side, "name"].tolist()
    wall = _WALL[atlas.name]
    return (*names[:wall], "Medial_wall", *names[wall:])


def find_layout(values: np.ndarray, atlas: Atlas, path: Path) -> Layout:
    """Return the order of a matrix without names.

    Parameters
    ----------
    values : array of shape (n, n)
        Without names.
    atlas : Atlas
        Names the regions and gives their order.
    path : Path
        Of the file; micapipe's names say which of its matrices one is.

    Returns
    -------
    Layout

    Raises
    ------
    FileFormatError
        Where no documented order has this size, or two have.
    """
    n = len(values)
    micapipe = micapipe_layouts(atlas)
    from_micapipe = _MICAPIPE.search(path.name) or any(
        part.lower().startswith("micapipe") for part in path.parts
    )
    if from_micapipe and n in micapipe:
        return micapipe[n]
    layout = known_layouts(atlas).get(n)
    numbers = atlas.regions["freesurfer_id"]
    if (
        layout is None
        and n >= _FEWEST_LABELS
        and 0 <= numbers.min() <= numbers.max() < n
    ):
        names = tuple(str(number) for number in range(n))
        return Layout(names, "rows read as FreeSurfer's label numbers, from 0")
    if layout is None:
        raise FileFormatError(f"{path}: {refusal(n, atlas)}")
    check_walls(values, atlas, str(path))
    return layout


def check_walls(values: np.ndarray, atlas: Atlas, where: str) -> None:
    """Raise where a matrix of MRtrix's size has empty medial walls instead.

    Parameters
    ----------
    values : array of shape (n, n)
        Without names.
    atlas : Atlas
        Names the regions and gives their order.
    where : str
        What the message calls the matrix.

    Raises
    ------
    FileFormatError
    """
    size, places = WALLS.get(atlas.name, (0, ()))
    if len(values) != size:
        return
    for rows in map(list, places):
        if not values[rows].any() and not values[:, rows].any():
            raise FileFormatError(
                f"{where}: {size} rows without names could be MRtrix's "
                f"{_MRTRIX_TABLES[atlas.name]} or {size - 14} cortical rows with a "
                "medial wall or callosum on each side and 14 structures; rows "
                f"{rows[0] + 1} and {rows[1] + 1} are empty, as walls are. Give the "
                "names of the rows by labels=, or write them into the first row and "
                "column."
            )


def refusal(n: int, atlas: Atlas) -> str:
    """Return the sentence that refuses a matrix of a size without a known order.

    Parameters
    ----------
    n : int
        Number of rows.
    atlas : Atlas
        Names the regions and gives their order.

    Returns
    -------
    str
    """
    known = "; ".join(
        f"{size} ({layout.note})"
        for size, layout in sorted(known_layouts(atlas).items())
    )
    reading = READINGS.get(atlas.name, {}).get(n)
    could = f" {n} rows could be: {reading}." if reading else ""
    return (
        f"a matrix of {n} x {n} without names cannot be mapped to {atlas.name} "
        f"({len(atlas)} regions).{could} Known without names: {known}. Write the names "
        "of the regions into the first row and column, or choose the atlas that fits."
    )
