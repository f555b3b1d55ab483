"""A template connectome for any atlas with surfaces: one published group average.

The ENIGMA Toolbox's structural connectome of young adults (Human Connectome Project) on
Schaefer's 400 parcels and 14 structures lies beside that atlas. For another atlas its
weights are moved from parcel to region by the share of vertices that they have in
common. It says which regions are usually connected, and nothing about anybody.
"""

from functools import lru_cache

import numpy as np
import pandas as pd

from brainlsap.atlas.atlas import Atlas, load_atlas
from brainlsap.exceptions import BrainlsapError

_SOURCE = "schaefer400"
_FILE = "template_connectome.csv.gz"


@lru_cache(maxsize=16)
def template_connectome(atlas: Atlas) -> np.ndarray | None:
    """Return the weights between regions that a healthy group has on average.

    Parameters
    ----------
    atlas : Atlas
        With surfaces (fsaverage5), or only deep structures are known.

    Returns
    -------
    array of shape (n_rois, n_rois) or None
        Arbitrary unit; NaN for regions that the template does not have. None for an
        atlas without surfaces.
    """
    source = load_atlas(_SOURCE)
    overlap = _share_parcels(source, atlas)
    if overlap is None or source.folder is None:
        return None
    table = pd.read_csv(source.folder / _FILE, index_col=0)
    log_weights = table.to_numpy() / 100  # written as whole hundredths
    weights = np.where(log_weights != 0, np.exp(log_weights), 0)
    template = overlap @ weights @ overlap.T
    is_absent = ~overlap.any(axis=1)
    template[is_absent] = np.nan
    template[:, is_absent] = np.nan
    template.flags.writeable = False
    return template


def _share_parcels(source: Atlas, atlas: Atlas) -> np.ndarray | None:
    """Return the share of each source parcel (columns) that lies in each region."""
    if not atlas.has_surfaces:
        return None
    overlap = np.zeros((len(atlas), len(source)))
    for hemisphere in "LR":
        try:
            region = atlas.vertex_labels(hemisphere)
        except BrainlsapError:  # of another mesh, or names that do not fit
            return None
        parcel = source.vertex_labels(hemisphere)
        if region.shape != parcel.shape:
            return None
        is_labelled = (region >= 0) & (parcel >= 0)
        np.add.at(overlap, (region[is_labelled], parcel[is_labelled]), 1)
    overlap /= np.maximum(overlap.sum(axis=0), 1)
    for row in np.flatnonzero(~atlas.cortex):
        structure = source.find(atlas.names[row])
        if structure is not None and not source.cortex[structure]:
            overlap[row, structure] = 1
    return overlap
