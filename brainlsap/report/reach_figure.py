"""The reach of a region, drawn on the brain."""

from pathlib import Path
from typing import Any

import numpy as np

from brainlsap.data.atlas import Atlas
from brainlsap.exceptions import ParameterError
from brainlsap.report.surface import plot_regions
from brainlsap.report.surface_values import as_atlas, as_maps


def plot_reach(
    reach: Any,
    region: str,
    atlas: str | Path | Atlas = "destrieux160",
    **how: Any,
) -> Any:
    """Draw how far a region looks: its row of the heat kernel on the brain.

    Parameters
    ----------
    reach : Series or mapping of str to float; or DataFrame or mapping of str to these
        What each region adds to the diffused value of `region`, by name, such as a
        row of :func:`brainlsap.study.kernel_reach`; or several, one row of drawings
        each.
    region : str
        Whose reach it is; it is numbered. Its own value is not counted for the limits
        of the colours, as it outshines all others.
    atlas : str, Path or Atlas
        With surface files.
    **how
        As for :func:`plot_regions`.

    Returns
    -------
    Figure
        As of :func:`plot_regions`.

    Raises
    ------
    RegionNameError
        If a name is unknown.
    ParameterError
        If no other region has a value.

    Examples
    --------
    >>> reach = {"lh_G_precuneus": 0.6, "rh_G_precuneus": 0.1, "Left-Putamen": 0.02}
    >>> figure = plot_reach(reach, "lh_G_precuneus", views=["inner left"])
    >>> [low_or_high.item() for low_or_high in figure.axes[-2].get_ylim()]
    [0.0, 0.1]
    """
    atlas = as_atlas(atlas)
    (own,) = atlas.match([region])
    maps = np.stack(list(as_maps(reach, atlas).values()))
    others = np.delete(maps, own, axis=1)
    if np.isnan(others).all():
        raise ParameterError(
            f"reach has no value but that of {atlas.names[own]}; there is no reach to "
            "draw."
        )
    highest = float(np.nanmax(others))
    settled = {
        "limits": (min(0.0, float(np.nanmin(others))), highest if highest > 0 else 1.0),
        "labels": [atlas.names[own]],
        "colorbar_label": "share of the diffused value",
    }
    return plot_regions(reach, atlas, **{**settled, **how})
