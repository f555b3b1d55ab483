"""Which regions a brain figure names, and where their numbers stand."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from brainlsap._arrays import check_choice
from brainlsap.data.atlas import Atlas
from brainlsap.exceptions import ParameterError
from brainlsap.report.surface_pictures import RegionPicture
from brainlsap.report.surface_views import VIEWS

TOP = ("smallest", "largest")


@dataclass(frozen=True)
class Badge:
    """A number on a drawing.

    Parameters
    ----------
    number : int
        From 1, as the key beneath the row has it.
    region : int
        Position in the atlas.
    column : int
        Which drawing of the row; -1 where the region is seen in none.
    x, y : float
        Where it stands, as shares of width and height from the upper left corner.
    """

    number: int
    region: int
    column: int
    x: float = 0.5
    y: float = 0.5


def labelled_regions(
    values: np.ndarray, atlas: Atlas, labels: Any, top: str
) -> list[int]:
    """Return the positions of the regions to name.

    Parameters
    ----------
    values : ndarray of float, shape (n_rois,)
        One map.
    atlas : Atlas
        Holds the names.
    labels : int or sequence of str
        How many, or which.
    top : {"smallest", "largest"}
        Which values come first, where `labels` is a number.

    Returns
    -------
    list of int
        The first is number 1. Regions without a value are never among the top.

    Raises
    ------
    ParameterError
        If `labels` is no number from 0 and no sequence of names, or `top` unknown.
    """
    check_choice("top", top, TOP)
    if isinstance(labels, Sequence) and not isinstance(labels, str):
        return [int(place) for place in atlas.match(labels)]
    if isinstance(labels, bool) or not isinstance(labels, int) or labels < 0:
        raise ParameterError(
            "labels must be how many regions to name, from 0, or a list of their "
            f"names, got {labels!r}."
        )
    order = np.argsort(values if top == "smallest" else -values, kind="stable")
    known = order[~np.isnan(values[order])]
    return known[:labels].tolist()


def place_badges(
    regions: Sequence[int], columns: Sequence[str], pictures: Sequence[RegionPicture]
) -> list[Badge]:
    """Put each number where its region is drawn widest.

    Parameters
    ----------
    regions : sequence of int
        Positions in the atlas, in the order of their numbers.
    columns : sequence of str
        Name of each view.
    pictures : sequence of RegionPicture
        Picture of each view.

    Returns
    -------
    list of Badge
    """
    return [
        _place(number, region, columns, pictures)
        for number, region in enumerate(regions, start=1)
    ]


def key_of(badges: Sequence[Badge], atlas: Atlas) -> str:
    """Return what the numbers mean, as one line.

    Parameters
    ----------
    badges : sequence of Badge
        Of one row.
    atlas : Atlas
        Holds the short names.

    Returns
    -------
    str
        Such as `1 (L) Sub.put   2 (R) G.precuneus`; a region that is not seen in
        any of the views is marked.
    """
    hidden = {-1: " (not in view)"}
    names = [
        f"{one.number} {atlas.short_names[one.region]}{hidden.get(one.column, '')}"
        for one in badges
    ]
    # Spaces that do not break: a number stays with its name.
    return "   ".join(name.replace(" ", "\xa0") for name in names)


def _place(
    number: int, region: int, columns: Sequence[str], pictures: Sequence[RegionPicture]
) -> Badge:
    best, widest = Badge(number, region, -1), 0.0
    for column, (view, picture) in enumerate(zip(columns, pictures, strict=True)):
        row, across, depth = _deepest(picture.region == region)
        height, width = picture.region.shape
        drawn = depth / height * VIEWS[view].size
        if drawn > widest:
            widest = drawn
            x, y = (across + 0.5) / width, (row + 0.5) / height
            best = Badge(number, region, column, x, y)
    return best


def _deepest(mask: np.ndarray) -> tuple[int, int, int]:
    """Return row and column of the pixel farthest from the border, and how far."""
    from scipy.ndimage import distance_transform_cdt

    rows, columns = np.nonzero(mask)
    if not len(rows):
        return 0, 0, 0
    top, left = rows.min(), columns.min()
    part = np.pad(mask[top : rows.max() + 1, left : columns.max() + 1], 1)
    depth = distance_transform_cdt(part)
    row, column = np.unravel_index(depth.argmax(), depth.shape)
    return int(top + row - 1), int(left + column - 1), int(depth.max())
