"""The regions that a linear model reads in one scan: a private figure."""

from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from brainlsap.atlas import Atlas
from brainlsap.report import tables
from brainlsap.report.figures import COLUMN, own_axes
from brainlsap.report.plots import label_rows

N_REGIONS = 15
"""Regions of largest contribution that the figure shows; the rest is one row."""


def plot_contributions(
    contributions: pd.DataFrame, atlas: Atlas | None, axis_label: str
) -> Figure:
    """Draw the largest contributions of regions to the score of one scan.

    Parameters
    ----------
    contributions : DataFrame
        Rows of one scan and one target of :func:`brainlsap.contribution_table`.
    atlas : Atlas or None
        For the names of regions.
    axis_label : str
        Label of the axis.

    Returns
    -------
    Figure
        A bar per region, and one for the sum of all others.
    """
    values = contributions.set_index("region")["contribution"]
    order = values.abs().sort_values(ascending=False, kind="stable").index
    shown_regions = list(order[:N_REGIONS])
    other_regions = order[N_REGIONS:]
    names = tables.region_labels(shown_regions, atlas)
    lengths = values[shown_regions].tolist()
    if len(other_regions):
        names.append(f"{len(other_regions)} other regions")
        lengths.append(float(values[other_regions].sum()))
    (axes,) = own_axes(None, COLUMN, 18 + 5 * len(names))
    axes.barh(np.arange(len(names)), lengths, color="#0b5a8f")
    axes.axvline(0, color="black", linewidth=0.8)
    label_rows(axes, [tables.shorten_name(name, 40) for name in names])
    axes.set_xlabel(fill(axis_label, 22))
    return axes.figure
