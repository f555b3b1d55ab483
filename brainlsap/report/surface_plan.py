"""What a brain figure shall show, the same for every engine that draws it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from brainlsap.data.atlas import Atlas
from brainlsap.report.surface_labels import Badge, labelled_regions, place_badges
from brainlsap.report.surface_pictures import RegionPicture, region_picture
from brainlsap.report.surface_sheet import Theme
from brainlsap.report.surface_values import Colours, palette
from brainlsap.report.surface_views import VIEWS

# How much darker a surface gets where it turns away, by what it is.
_SHADE = {"subcortex": 0.45, "inflated": 0.0, "half-inflated": 0.0}
_FOLDED = 0.35


@dataclass(frozen=True, eq=False)
class Plan:
    """A brain figure before it is drawn.

    Parameters
    ----------
    atlas : Atlas
        The regions.
    maps : dict of str to ndarray of float, shape (n_rois,)
        One row of drawings each, by title.
    columns : list of str
        Views, by their names in :data:`~brainlsap.report.surface_views.VIEWS`.
    mesh : str
        Surface of the cortex.
    colours : Colours
        Of all maps.
    theme : Theme
        Colours of everything else.
    title, label : str or None
        Title of the whole; what the values are.
    labels : int or sequence of str
        How many regions to name, or which.
    top : {"smallest", "largest"}
        Which values come first.
    vector : bool
        Outlines instead of pixels.
    """

    atlas: Atlas
    maps: dict[str, np.ndarray]
    columns: list[str]
    mesh: str
    colours: Colours
    theme: Theme
    title: str | None = None
    label: str | None = None
    labels: Any = 0
    top: str = "smallest"
    vector: bool = False

    def pictures(self) -> list[RegionPicture]:
        """Return the picture of every view, in the order of the columns."""
        return [region_picture(self.atlas, view, self.mesh) for view in self.columns]

    def palettes(self) -> list[np.ndarray]:
        """Return the colour of every region, one array of bytes a map."""
        return [
            palette(values, self.colours.scale, self.theme)
            for values in self.maps.values()
        ]

    def badges(self) -> list[list[Badge]]:
        """Return the numbers that stand on the drawings of each map."""
        pictures = self.pictures()
        return [
            place_badges(
                labelled_regions(values, self.atlas, self.labels, self.top),
                self.columns,
                pictures,
            )
            for values in self.maps.values()
        ]

    def kind(self, column: int) -> str:
        """Return "subcortex", or the surface of the cortex, of one column."""
        return "subcortex" if VIEWS[self.columns[column]].subcortex else self.mesh

    def shade(self, column: int) -> float:
        """Return how much darker a surface gets where it turns away."""
        return _SHADE.get(self.kind(column), _FOLDED)

    def any_grey(self) -> bool:
        """Return whether a region of a map has no value."""
        return any(np.isnan(values).any() for values in self.maps.values())
