"""A template connectome for any atlas with surfaces: a published group average.

The source is the ENIGMA Toolbox's structural connectome of young adults (Human
Connectome Project) on Schaefer's 400 parcels and 14 subcortical structures, stored with
that atlas. For another atlas, weights are transferred from parcels to regions by the
share of vertices in common. The template shows which regions are usually connected; it
has no information about individuals.
"""

from functools import lru_cache

import numpy as np
import pandas as pd

from brainlsap.atlas.atlas import Atlas, load_atlas
from brainlsap.exceptions import BrainlsapError

# Atlas of the published connectome, and its file in the atlas' folder.
_SOURCE_ATLAS = "schaefer400"
_SOURCE_FILE = "template_connectome.csv.gz"


@lru_cache(maxsize=16)
def template_connectome(atlas: Atlas) -> np.ndarray | None:
    """Return the mean weights between regions in a healthy group.

    Parameters
    ----------
    atlas : Atlas
        An atlas with surfaces on fsaverage5.

    Returns
    -------
    array of shape (n_rois, n_rois) or None
        Weights in an arbitrary unit; NaN for regions without a counterpart in the
        template. None for an atlas without surfaces.
    """
    source = load_atlas(_SOURCE_ATLAS)
    overlap = _share_parcels(source, atlas)
    if overlap is None or source.folder is None:
        return None
    table = pd.read_csv(source.folder / _SOURCE_FILE, index_col=0)
    log_weights = table.to_numpy() / 100  # the file has whole hundredths
    weights = np.where(log_weights != 0, np.exp(log_weights), 0)
    template = overlap @ weights @ overlap.T
    is_absent = ~overlap.any(axis=1)
    template[is_absent] = np.nan
    template[:, is_absent] = np.nan
    template.flags.writeable = False
    return template


def _share_parcels(source: Atlas, atlas: Atlas) -> np.ndarray | None:
    """Return the share of each source parcel (columns) in each region (rows)."""
    if not atlas.has_surfaces:
        return None
    overlap = np.zeros((len(atlas), len(source)))
    for hemisphere in "LR":
        try:
            region_of_vertex = atlas.vertex_labels(hemisphere)
        except BrainlsapError:  # another mesh, or names that do not match
            return None
        parcel_of_vertex = source.vertex_labels(hemisphere)
        if region_of_vertex.shape != parcel_of_vertex.shape:
            return None
        is_labelled = (region_of_vertex >= 0) & (parcel_of_vertex >= 0)
        regions = region_of_vertex[is_labelled]
        parcels = parcel_of_vertex[is_labelled]
        np.add.at(overlap, (regions, parcels), 1)
    overlap /= np.maximum(overlap.sum(axis=0), 1)
    for row in np.flatnonzero(~atlas.cortex):
        structure = source.find(atlas.names[row])
        if structure is not None and not source.cortex[structure]:
            overlap[row, structure] = 1
    return overlap
