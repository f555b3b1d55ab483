"""The network that scales act on, and how far regions look in it, for a report."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.data import Atlas
from brainlsap.evaluation import RankingEvidence
from brainlsap.exceptions import BrainlsapError
from brainlsap.report.glass_brain import plot_glass_brain
from brainlsap.report.illustrations import Picture, as_png
from brainlsap.report.network_figures import plot_connectome, plot_ring
from brainlsap.report.surface import plot_regions
from brainlsap.report.training_pictures import VIEWS

WEIGHT = "mean weight"
N_EDGES = 100


def draw_network(
    evidence: RankingEvidence | None, atlas: Atlas
) -> tuple[tuple[Picture, ...], tuple[str, ...]]:
    """Draw the mean connectome by lobe and by its strongest edges, and the reach.

    Parameters
    ----------
    evidence : RankingEvidence or None
        With `connectome` and `reach`, as far as they are known.
    atlas : Atlas
        The regions.

    Returns
    -------
    pictures : tuple of Picture
    gaps : tuple of str
        What could not be drawn, and why.
    """
    if evidence is None:
        return (), ()
    makers: list[Callable[[RankingEvidence, Atlas], Picture]] = []
    if evidence.connectome is not None:
        makers += [_matrix, _edges]
    if evidence.reach:
        makers.append(_reach)
    pictures, gaps = [], []
    for make in makers:
        try:
            pictures.append(make(evidence, atlas))
        except BrainlsapError as error:
            gaps.append(f"A picture of the network could not be drawn: {error}")
    return tuple(pictures), tuple(gaps)


def _matrix(evidence: RankingEvidence, atlas: Atlas) -> Picture:
    weights, names = _drawable(evidence), list(evidence.region_names)
    ax = plot_connectome(weights, names, atlas, label=f"{WEIGHT} of all scans")
    density = (weights[np.triu_indices(len(weights), 1)] > 0).mean()
    return Picture(
        "connectome",
        "Mean connectome of all scans as they were read, ordered by hemisphere and "
        f"lobe; logarithmic colours, blank: no scan has the edge ({density:.1%} of "
        "the pairs have it in some scan).",
        f"Matrix of {len(names)} regions by lobe; {density:.1%} of the pairs joined.",
        as_png(ax.figure),
    )


def _edges(evidence: RankingEvidence, atlas: Atlas) -> Picture:
    weights, names = _drawable(evidence), list(evidence.region_names)
    figure: Any
    if atlas.folder is None:
        told = "inside a ring of the regions"
        figure = plot_ring(weights, names, atlas, n_edges=N_EDGES, label=WEIGHT).figure
    else:
        told = "in the outline of the brain; dots: regions, in the colour of their lobe"
        figure = plot_glass_brain(weights, names, atlas, n_edges=N_EDGES, label=WEIGHT)
    return Picture(
        "strongest_edges",
        f"The {N_EDGES} strongest edges of the mean connectome {told}.",
        f"The strongest edges of the mean connectome {told}.",
        as_png(figure),
    )


def _reach(evidence: RankingEvidence, atlas: Atlas) -> Picture:
    names = list(evidence.region_names)
    chosen = dict.fromkeys([next(iter(evidence.reach)), list(evidence.reach)[-1]])
    maps, told = {}, []
    for region in chosen:
        size = np.abs(evidence.reach[region])
        share = size / size.sum()
        place = names.index(region)
        effective = np.exp(-(share[share > 0] * np.log(share[share > 0])).sum())
        short = atlas.short_names[atlas.match([region])[0]]
        told.append(f"{short} {share[place]:.0%}, {effective:.1f} regions in effect")
        share[place] = np.nan  # it would outshine all others
        maps[short] = pd.Series(100 * share, index=names)
    highest = max(float(np.nanmax(one.to_numpy())) for one in maps.values())
    figure = plot_regions(
        maps,
        atlas,
        views=list(VIEWS),
        limits=(0.0, highest if highest > 0 else 1.0),
        colorbar_label="share of the value (%)",
    )
    return Picture(
        "reach",
        f"How far a region looks: what every region adds to its diffused value, by "
        f"{evidence.model}, for the region of smallest scale and that of largest (each "
        f"itself grey). Own share: {'; '.join(told)}.",
        f"Rows of the heat kernel on the brain. Own share: {'; '.join(told)}.",
        as_png(figure),
    )


def _drawable(evidence: RankingEvidence) -> np.ndarray:
    weights = np.array(evidence.connectome, dtype=float)
    weights = (weights + weights.T) / 2  # means of rounded numbers
    np.fill_diagonal(weights, 0.0)
    return weights
