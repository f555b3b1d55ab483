"""A picture of regions becomes colours: as pixels, or as outlines that scale."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from brainlsap.report.surface_pictures import NOTHING, RegionPicture
from brainlsap.report.surface_sheet import Theme
from brainlsap.report.surface_values import colour_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

_SMOOTH = 1.0  # pixels, a quarter of a mm: takes the pixels' stairs away
_STRAIGHT = 0.35  # pixels that an outline may leave its line: 0.1 mm, for small files


def paint_pixels(
    picture: RegionPicture, colours: np.ndarray, theme: Theme, shade: float
) -> np.ndarray:
    """Return the picture as an image, with a line between regions.

    Parameters
    ----------
    picture : RegionPicture
        What every pixel shows.
    colours : ndarray of uint8, shape (n_rois + 2, 3)
        Of :func:`~brainlsap.report.surface_values.palette`.
    theme : Theme
        Colours of the lines.
    shade : float
        How much darker a surface gets where it turns away; 0 leaves colours flat.

    Returns
    -------
    ndarray of uint8, shape (height, width, 4)
    """
    region = picture.region
    image = np.empty((*region.shape, 4), dtype=np.uint8)
    image[..., :3] = colours[region]
    image[..., 3] = np.where(region == NOTHING, 0, 255)
    if shade:
        light = 1 - _darkness(picture, shade)
        image[..., :3] = np.round(image[..., :3] * light[..., None])
    image[_edges(region), :3] = colour_bytes(theme.outline)
    image[_edges(region == NOTHING)] = [*colour_bytes(theme.silhouette), 255]
    return image


def paint_paths(
    ax: "Axes",
    picture: RegionPicture,
    colours: np.ndarray,
    theme: Theme,
    shade: float,
) -> None:
    """Draw the picture as one filled outline per region, sharp at any size.

    Parameters
    ----------
    ax : Axes
        With the pixels of the picture as coordinates, row 0 on top.
    picture : RegionPicture
        What every pixel shows.
    colours : ndarray of uint8, shape (n_rois + 2, 3)
        Of :func:`~brainlsap.report.surface_values.palette`.
    theme : Theme
        Colours of the lines.
    shade : float
        As for :func:`paint_pixels`; the shade is the one thing that stays an image.
    """
    from matplotlib.collections import PathCollection
    from matplotlib.patches import PathPatch

    silhouette, regions = region_paths(picture)
    # Beneath, in the colour of lines: no ground shines through where three meet.
    below = PathPatch(silhouette, facecolor=theme.outline, edgecolor="none", zorder=0)
    fill = colours[list(regions)] / 255
    drawn = PathCollection(
        list(regions.values()),
        facecolors=fill,
        edgecolors=theme.outline,
        linewidths=0.3,
        transform=ax.transData,
    )
    ax.add_artist(below)
    ax.add_collection(drawn, autolim=False)
    if shade:
        dark = np.zeros((*picture.region.shape, 4))
        dark[..., 3] = _darkness(picture, shade) * (picture.region != NOTHING)
        ax.imshow(dark, aspect="auto", zorder=2)
    rim = {"facecolor": "none", "edgecolor": theme.silhouette}
    ax.add_artist(PathPatch(silhouette, linewidth=0.4, zorder=3, **rim))


@lru_cache(maxsize=32)  # a picture is hashed by identity, and made once
def region_paths(picture: RegionPicture) -> tuple["Path", dict[int, "Path"]]:
    """Return the outline of the whole drawing, and of every region in it.

    Two regions that touch share one line: the outline of a mask and that of its
    complement are the same where the masks are smoothed alike.

    Parameters
    ----------
    picture : RegionPicture
        What every pixel shows.

    Returns
    -------
    silhouette : Path
        In pixels, row 0 on top.
    regions : dict of int to Path
        By position in the atlas; -2 for what is no region.
    """
    seen = [int(one) for one in np.unique(picture.region) if one != NOTHING]
    regions = {one: _outline(picture.region == one) for one in seen}
    return _outline(picture.region != NOTHING), regions


def _outline(mask: np.ndarray) -> "Path":
    """Return the line around a mask, with its holes, as one path."""
    from contourpy import contour_generator
    from matplotlib.path import Path
    from scipy.ndimage import gaussian_filter

    rows, columns = np.nonzero(mask)
    room = 5
    top, left = rows.min() - room, columns.min() - room
    height, width = rows.max() + room + 1 - top, columns.max() + room + 1 - left
    part = np.zeros((height, width))
    part[rows - top, columns - left] = 1
    found: Any = contour_generator(z=gaussian_filter(part, _SMOOTH)).lines(0.5)
    if not found:  # a speck that smoothing takes away
        return Path(np.zeros((0, 2)))
    corner = np.array([left, top])
    closed = [Path(_straightened(line) + corner, closed=True) for line in found]
    return Path.make_compound_path(*closed)


def _straightened(line: np.ndarray) -> np.ndarray:
    """Return a closed line with fewer points, the first one again at the end."""
    from matplotlib.path import Path

    path = Path(line)
    path.should_simplify, path.simplify_threshold = True, _STRAIGHT
    kept: Any = path.cleaned(simplify=True)
    points = kept.vertices[kept.codes != Path.STOP]
    return np.concatenate([points, points[:1]])


def _darkness(picture: RegionPicture, shade: float) -> np.ndarray:
    return shade * (1 - picture.facing) ** 2


def _edges(kind: np.ndarray) -> np.ndarray:
    """Return the pixels that touch one of another kind, to the side or up or down."""
    edge = np.zeros(kind.shape, dtype=bool)
    across, down = kind[:, 1:] != kind[:, :-1], kind[1:] != kind[:-1]
    edge[:, 1:] |= across
    edge[:, :-1] |= across
    edge[1:] |= down
    edge[:-1] |= down
    return edge
