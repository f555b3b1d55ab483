"""A template connectome for any atlas with surfaces: one published group average.

The template is the ENIGMA Toolbox's structural connectome of young adults (Human
Connectome Project) on Schaefer's 400 parcels and 14 structures, stored with that atlas.
For another atlas, the weights of each parcel are distributed over the regions by the
share of its vertices in each region. The template shows which regions are usually
connected; it holds no data of single participants.
"""

from functools import lru_cache

import numpy as np
import pandas as pd

from brainlsap.atlas.atlas import Atlas, load_atlas
from brainlsap.exceptions import BrainlsapError

_TEMPLATE_ATLAS = "schaefer400"
_TEMPLATE_FILE = "template_connectome.csv.gz"


@lru_cache(maxsize=16)
def template_connectome(atlas: Atlas) -> np.ndarray | None:
    """Return the weights between regions that a healthy group has on average.

    Parameters
    ----------
    atlas : Atlas
        Atlas with surfaces on fsaverage5.

    Returns
    -------
    array of shape (n_rois, n_rois) or None
        In arbitrary units; NaN for regions that the template does not have. None for an
        atlas without surfaces.
    """
    template_atlas = load_atlas(_TEMPLATE_ATLAS)
    parcel_shares = _share_parcels(template_atlas, atlas)
    if parcel_shares is None or template_atlas.folder is None:
        return None
    weight_table = pd.read_csv(template_atlas.folder / _TEMPLATE_FILE, index_col=0)
    log_weights = weight_table.to_numpy() / 100  # stored in hundredths
    template_weights = np.where(log_weights != 0, np.exp(log_weights), 0)
    region_weights = parcel_shares @ template_weights @ parcel_shares.T
    is_absent = ~parcel_shares.any(axis=1)
    region_weights[is_absent] = np.nan
    region_weights[:, is_absent] = np.nan
    region_weights.flags.writeable = False
    return region_weights


def _share_parcels(template_atlas: Atlas, atlas: Atlas) -> np.ndarray | None:
    """Return the share of each template parcel that lies in each region.

    An array of shape (n_rois, n_parcels), or None for an atlas without surfaces on
    fsaverage5. Deep structures are matched by name.
    """
    if not atlas.has_surfaces:
        return None
    parcel_shares = np.zeros((len(atlas), len(template_atlas)))
    for hemisphere in "LR":
        try:
            region_of_vertex = atlas.vertex_labels(hemisphere)
        except BrainlsapError:  # another surface, or names that are not of the atlas
            return None
        parcel_of_vertex = template_atlas.vertex_labels(hemisphere)
        if region_of_vertex.shape != parcel_of_vertex.shape:
            return None
        is_labelled = (region_of_vertex >= 0) & (parcel_of_vertex >= 0)
        vertices = region_of_vertex[is_labelled], parcel_of_vertex[is_labelled]
        np.add.at(parcel_shares, vertices, 1)
    parcel_shares /= np.maximum(parcel_shares.sum(axis=0), 1)
    for region in np.flatnonzero(~atlas.cortex):
        subcortical_row = template_atlas.find(atlas.names[region])
        if subcortical_row is not None and not template_atlas.cortex[subcortical_row]:
            parcel_shares[region, subcortical_row] = 1
    return parcel_shares
